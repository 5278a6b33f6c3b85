# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems in the log of a job that are about GPUs, memory and limits of a machine."""

from __future__ import annotations

from ..._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/nccl_problem.py): status, cause and remedy
MACHINE_CAUSES: dict[str, tuple[Status, str, str]] = {
    "imex": (
        FAIL,
        (
            "The GPUs are on one NVLink fabric of several nodes but do not share memory over it. IMEX does not work,"
            " or the pod has no IMEX channel."
        ),
        (
            "Give the pods a claim of a ComputeDomain (NVIDIA's DRA driver), and verify that the ComputeDomain is"
            " Ready: kubectl get computedomains -A. On nodes without a ComputeDomain, run nvidia-imex-ctl -N and check"
            " /dev/nvidia-caps-imex-channels. NCCL_MNNVL_ENABLE=0 only hides the problem: the job then sends between"
            " nodes only over the HCAs."
        ),
    ),
    "open_files": (
        FAIL,
        "The process has reached its limit of open files. Each connection between ranks needs some files.",
        (
            "Run 'ulimit -n' in the container. Raise the limit (LimitNOFILE) in the systemd service of the container"
            " runtime."
        ),
    ),
    "memlock": (
        FAIL,
        "The process could not pin memory, because its memlock limit is too low.",
        (
            "Run 'ulimit -l' in the container. Raise the memlock limit of the container runtime. IPC_LOCK alone has no"
            " effect for a process that is not root."
        ),
    ),
    "peer_memory": (
        FAIL,
        "The HCA could not register GPU memory: neither nvidia-peermem nor DMA-BUF works on this node.",
        (
            "Load nvidia_peermem on the node (driver.rdma.enabled of the ClusterPolicy), or install the open kernel"
            " driver, which supports DMA-BUF."
        ),
    ),
    "shared_memory": (
        FAIL,
        "NCCL could not create or open shared memory.",
        "Mount a memory volume at /dev/shm of the pod that is large enough for all ranks.",
    ),
    "nvls": (
        FAIL,
        "NCCL could not use NVLink SHARP (multicast in the NVSwitches).",
        (
            "Check the fabric manager on the node (systemctl status nvidia-fabricmanager, nvidia-smi -q -d FABRIC)."
            " The fabric manager and the driver must be of the same release. With NCCL_NVLS_ENABLE=0, the job runs"
            " without NVLink SHARP, but slower."
        ),
    ),
    "gdrcopy": (
        WARN,
        "GDRCopy does not work: its library in the image does not match gdrdrv on the node, or gdrdrv is not loaded.",
        (
            "Load gdrdrv on the node (gdrcopy.enabled of the ClusterPolicy), and use libgdrapi of the same release; or"
            " unset NCCL_GDRCOPY_ENABLE."
        ),
    ),
    "gpu_memory": (
        FAIL,
        "A GPU has no free memory.",
        (
            "Run nvidia-smi on that node to find processes of an earlier job. Leave memory for NCCL: each communicator"
            " needs hundreds of MiB. With fewer channels (NCCL_MAX_CTAS), it needs less."
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
            "Drain that host, then run systemctl restart nvidia-fabricmanager and read its log. It must be of the"
            " release of"
            " the driver. nvidia-smi -q -d FABRIC must then report State: Completed. Where the GPU operator installs"
            " the driver, its driver container runs Fabric Manager. Then run stage tuning again (gpu_fabric)."
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
        "Raise podPidsLimit of the kubelet, or ulimit -u in the container. Read the limit in /sys/fs/cgroup/pids.max.",
    ),
    "memory": (
        FAIL,
        "The machine or the pod has no free memory.",
        "Raise resources.limits.memory of the pod. Read dmesg of the node to find killed processes.",
    ),
    "driver": (
        FAIL,
        "CUDA or the GPU driver failed.",
        "Compare the driver on the node (nvidia-smi) with the driver that the CUDA release of the image needs.",
    ),
    "peer_access": (
        WARN,
        "GPUs that are connected by NVLink cannot reach each other directly.",
        "Check the NVLinks (nvidia-smi nvlink -s) and the fabric manager on the node.",
    ),
    "iommu": (
        WARN,
        (
            "The kernel runs without iommu=pt, so the IOMMU translates each access of an HCA or GPU to memory. RCCL"
            " can hang, and GPUDirect RDMA is slow."
        ),
        (
            "Boot the node with iommu=pt (rdma_cluster.host.kernel_arguments, or GRUB_CMDLINE_LINUX by hand). Verify"
            " it with cat /proc/cmdline."
        ),
    ),
    "affinity": (
        WARN,
        "The process is not allowed to run on the CPUs near its GPU, because the pod has CPUs of another NUMA node.",
        (
            "Give the pod CPUs of the GPU's NUMA node: set topologyManagerPolicy of the kubelet, and use a pod of the"
            " QoS class Guaranteed with whole CPUs."
        ),
    ),
    "topology": (
        WARN,
        (
            "NCCL sees an inconsistent topology of the machine. This happens in virtual machines, and in containers"
            " that see only a part of /sys."
        ),
        (
            "Write the topology that NCCL sees to a file (NCCL_TOPO_DUMP_FILE=/tmp/topology.xml), and compare it with"
            " lspci -tv of the machine. In virtual machines, use the NCCL_TOPO_FILE of the provider."
        ),
    ),
}
