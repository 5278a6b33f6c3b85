# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems in the log of a job that are about GPUs, memory and limits of a machine."""

from __future__ import annotations

from ...._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/nccl/problem.py): status, cause and remedy
MACHINE_CAUSES: dict[str, tuple[Status, str, str]] = {
    "imex": (
        FAIL,
        (
            "The GPUs are on one NVLink fabric of several nodes but do not share memory over it. IMEX does not work,"
            " or the pod has no IMEX channel."
        ),
        (
            "Give the pods a claim of a ComputeDomain (NVIDIA's DRA driver), and verify that the ComputeDomain"
            " is Ready: kubectl get computedomains -A. On nodes without a ComputeDomain, run nvidia-imex-ctl -N:"
            " it must list all nodes of the job as connected. Do not set NCCL_MNNVL_ENABLE=0, which only hides"
            " the problem: the job then sends between nodes only over the HCAs."
        ),
    ),
    "open_files": (
        FAIL,
        "The process has reached its limit of open files. Each connection between ranks needs some files.",
        (
            "On the nodes of the job, set LimitNOFILE=1048576 in a drop-in of the systemd service of the"
            " container runtime (systemctl edit containerd), and restart the service. Create the pods again:"
            " ulimit -n in a container must then print the new limit."
        ),
    ),
    "memlock": (
        FAIL,
        "The process could not pin memory, because its memlock limit is too low.",
        (
            "Raise the memlock limit of the container runtime: set rdma_cluster.host.memlock in the intent, and"
            " run stages network and host. Create the pods again: ulimit -l in a container must then print the"
            " new limit. The capability IPC_LOCK alone has no effect for a process that is not root."
        ),
    ),
    "peer_memory": (
        FAIL,
        "The HCA could not register GPU memory: neither nvidia-peermem nor DMA-BUF works on this node.",
        (
            "Set rdma_cluster.host.gpudirect: auto in the intent, run stage host, and follow the remedy of its"
            " finding host.gpudirect for the node of the pod (kubectl get pods -A -o wide): it shows"
            " whether nvidia_peermem or DMA-BUF is missing."
        ),
    ),
    "shared_memory": (
        FAIL,
        "NCCL could not create or open shared memory.",
        (
            "Add an emptyDir volume with medium: Memory to the pod template, and mount it at /dev/shm. Its sizeLimit"
            " must suffice for all ranks of the pod, such as 16Gi."
        ),
    ),
    "nvls": (
        FAIL,
        "NCCL could not use NVLink SHARP (multicast in the NVSwitches).",
        (
            "On the node, run nvidia-smi -q -d FABRIC: the state must be Completed. If it is not, run systemctl"
            " status nvidia-fabricmanager, and install the release of the fabric manager that the driver has. To"
            " run the job without NVLink SHARP, but slower, set NCCL_NVLS_ENABLE=0."
        ),
    ),
    "gdrcopy": (
        WARN,
        "GDRCopy does not work: its library in the image does not match gdrdrv on the node, or gdrdrv is not loaded.",
        (
            "Set gdrcopy.enabled: true in the ClusterPolicy, so that the GPU operator loads gdrdrv, and use"
            " libgdrapi of the same release in the image. If the job does not need GDRCopy, remove"
            " NCCL_GDRCOPY_ENABLE."
        ),
    ),
    "gpu_memory": (
        FAIL,
        "NCCL or the program could not allocate memory on a GPU, because none is free.",
        (
            "Run nvidia-smi on the node of this rank, and end processes of an earlier job. Otherwise lower the"
            " memory that the program takes: each communicator of NCCL needs hundreds of MiB, and less with"
            " fewer channels (NCCL_MAX_CTAS)."
        ),
    ),
    "gpu_hardware": (
        FAIL,
        "The hardware of a GPU failed: an error in its memory or on its NVLinks that it could not correct.",
        (
            "Find the GPU on that host: run nvidia-smi -q -d ECC,ROW_REMAPPER and nvidia-smi nvlink -e, and search"
            " dmesg for NVRM: Xid (48, 63, 64, 74, 79, 94, 95). Drain the node and reset the GPU (nvidia-smi -r -i"
            " GPU). If the error returns, replace the GPU."
        ),
    ),
    "fabric_manager": (
        FAIL,
        "The GPUs of a host with NVSwitches are not registered with the NVLink fabric, so CUDA does not start on them.",
        (
            "Drain that host, then run systemctl restart nvidia-fabricmanager on it. If the GPU operator"
            " installs the driver, delete its driver pod on that host instead, which runs the fabric manager."
            " nvidia-smi -q -d FABRIC must then report State: Completed. If it does not, install the release of"
            " the fabric manager that the driver has."
        ),
    ),
    "gpu_kernel": (
        FAIL,
        (
            "A program on a GPU failed. CUDA reports this to the next caller, here NCCL, so neither NCCL nor the"
            " network is the cause."
        ),
        (
            "Search dmesg of that host for NVRM: Xid at that time: 13, 31 and 43 are faults of the program, and 48, 79,"
            " 94 and 95 are faults of the GPU. For a fault of the program, run it with CUDA_LAUNCH_BLOCKING=1 to find"
            " the kernel that fails."
        ),
    ),
    "threads": (
        FAIL,
        "NCCL could not start a thread, because the pod has reached its limit of processes.",
        (
            "In a container of the job, run cat /sys/fs/cgroup/pids.max and ulimit -u. If pids.max is low, raise"
            " podPidsLimit in the kubelet configuration of the node. If ulimit -u is low, raise LimitNPROC of the"
            " container runtime."
        ),
    ),
    "memory": (
        FAIL,
        (
            "NCCL could not allocate memory of the host: the pod has reached its memory limit, or the node has no"
            " free memory."
        ),
        (
            "Raise resources.limits.memory of the pod. If dmesg on the node shows 'Out of memory', end other pods on"
            " the node."
        ),
    ),
    "driver": (
        FAIL,
        "A call of CUDA or of the GPU driver failed. The message under 'measured' names the error.",
        (
            "Run nvidia-smi on the node. If its CUDA Version is lower than that of the image, update the driver or"
            " use an older image. If dmesg shows NVRM: Xid, follow NVIDIA's description of this Xid."
        ),
    ),
    "peer_access": (
        WARN,
        "GPUs that are connected by NVLink cannot reach each other directly.",
        (
            "Run nvidia-smi nvlink -s and systemctl status nvidia-fabricmanager on the node. If a link is inactive"
            " or the fabric manager does not run, follow the remedies of the findings of stage tuning on GPUs"
            " (tuning.gpu)."
        ),
    ),
    "iommu": (
        WARN,
        (
            "The kernel runs without iommu=pt, so the IOMMU translates each access of an HCA or GPU to memory. RCCL"
            " can hang, and GPUDirect RDMA is slow."
        ),
        (
            "Add iommu=pt to rdma_cluster.host.kernel_arguments, and run ansible-playbook linerate.rdma.site"
            " -e platform_settle=true, which reboots the nodes in turn. cat /proc/cmdline on the node must"
            " then show iommu=pt."
        ),
    ),
    "affinity": (
        WARN,
        "The process is not allowed to run on the CPUs near its GPU, because the pod has CPUs of another NUMA node.",
        (
            "Give the pod CPUs of the GPU's NUMA node: set topologyManagerPolicy: single-numa-node and"
            " cpuManagerPolicy: static in the kubelet configuration (rdma_cluster.host.kubelet), and request"
            " whole CPUs with requests equal to limits in the pod template."
        ),
    ),
    "topology": (
        WARN,
        (
            "NCCL sees an inconsistent topology of the machine. This happens in virtual machines, and in containers"
            " that see only a part of /sys."
        ),
        (
            "In a virtual machine, set NCCL_TOPO_FILE to the topology file of the provider. Otherwise set"
            " NCCL_TOPO_DUMP_FILE=/tmp/topology.xml in the job, and compare the file that NCCL writes with lspci"
            " -tv on the node: mount all of /sys into the pod if devices are missing."
        ),
    ),
}
