# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems that NCCL and PyTorch write into the log of a job, by kind of problem."""

from __future__ import annotations

from ..._analysis.fleet.providers import PROVIDERS
from ..._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/nccl_problem.py): status, cause and remedy
NCCL_CAUSES: dict[str, tuple[Status, str, str]] = {
    # the provider may be that of an HCA that the job does not use; where the job lacks an HCA, training.transport fails
    **{kind: (WARN, cause.why, cause.remedy) for kind, cause in PROVIDERS.items()},
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
    "completion": (
        FAIL,
        "A transfer over the network ended with an error.",
        "Read the status in the message under 'measured', and read dmesg of both nodes at that time.",
    ),
    "gid_change": (
        FAIL,
        (
            "The addresses (GIDs) of an HCA changed while the job ran. Queue pairs with the old addresses no longer"
            " send packets."
        ),
        (
            "Find the cause of the change of the addresses of the HCA's netdev: read dmesg and the log of"
            " NetworkManager or systemd-networkd on the node (DHCP, a bond, or an operator that configures the netdev"
            " again). Leave NCCL_IB_GID_INDEX unset, so that NCCL selects the GID by its address."
        ),
    ),
    "sm_event": (
        WARN,
        (
            "The subnet manager changed, or configured the port of an HCA again, while the job ran. The job continues"
            " if LIDs and partitions stay the same."
        ),
        "Read the log of the subnet manager for that time. Run sminfo on a node to find the current master.",
    ),
    "async_event": (
        FAIL,
        "The HCA reported an event while the job ran: a port went down, or a queue pair failed.",
        "Read dmesg of the node, and check the link of the HCA: ibstat.",
    ),
    "failover": (
        FAIL,
        (
            "A port of an HCA failed while the job ran. NCCL tried to continue over another port"
            " (NCCL_IB_RESILIENCY_PORT_FAILOVER)."
        ),
        (
            "Read dmesg of the node at that time, and check the link of that HCA: ibstat, and ibqueryerrors or ethtool"
            " -S NETDEV."
        ),
    ),
    "slow_requests": (
        WARN,
        (
            "Requests of an HCA took longer than NCCL_IB_WQE_LATENCY_THRESHOLD_NS. The message under 'measured' names"
            " both HCAs."
        ),
        "Measure this pair of HCAs alone (stage bandwidth), and read the error counters of the links between them.",
    ),
    "queue_pair": (
        FAIL,
        "NCCL could not connect queue pairs: the two HCAs do not reach each other.",
        (
            "Verify that each rail reaches the same rail of the other nodes. On RoCE, compare the GIDs and addresses"
            " at both ends, and NCCL_IB_GID_INDEX."
        ),
    ),
    "pkey": (
        FAIL,
        "The partition key that the job requests (NCCL_IB_PKEY_VALUE) is not in the table of the HCA's port.",
        (
            "Read the table on the node: cat /sys/class/infiniband/*/ports/*/pkeys/*. Make the port a member of the"
            " partition in the configuration of the subnet manager, or correct NCCL_IB_PKEY_VALUE."
        ),
    ),
    "link_layers": (
        FAIL,
        "A connection is between an InfiniBand HCA and an Ethernet HCA. These HCAs cannot reach each other.",
        (
            "Name the HCAs of only one fabric in NCCL_IB_HCA, by their exact names (NCCL_IB_HCA='=mlx5_0,mlx5_1'). Run"
            " cat /sys/class/infiniband/*/ports/*/link_layer in each pod to find their link layers."
        ),
    ),
    "nic_counts": (
        FAIL,
        "The pods of the job have different numbers of HCAs.",
        (
            "Compare ls /sys/class/infiniband in all pods. Request the same devices in each pod template, and set the"
            " same NCCL_IB_HCA in all pods."
        ),
    ),
    "merged_nics": (
        FAIL,
        "NCCL could not merge HCAs into one device, as the job requires.",
        (
            "Correct NCCL_NET_FORCE_MERGE (names as in ls /sys/class/infiniband), or leave it unset. With"
            " NCCL_IB_MERGE_NICS=0, NCCL merges no HCAs."
        ),
    ),
    "no_libibverbs": (
        WARN,
        "The image has no libibverbs, or its libibverbs is too old for this release of NCCL.",
        (
            "Install rdma-core in the image: libibverbs1 and ibverbs-providers on Debian and Ubuntu, libibverbs on"
            " RHEL. Run ldconfig -p | grep ibverbs in the pod to list the libraries of the image."
        ),
    ),
    "no_device": (
        FAIL,
        "The pod lists an RDMA device, but NCCL could not open or query it.",
        (
            "Run ls /dev/infiniband and ibv_devinfo in the pod. The device plugin or the claim must provide the device"
            " files. If the node uses RDMA's exclusive mode (rdma system), move the device into the pod."
        ),
    ),
    "verbs": (
        FAIL,
        (
            "A call of libibverbs failed. The message under 'measured' names the call and the error of the operating"
            " system."
        ),
        (
            "Read dmesg of the node at that time, and run ulimit -l in the container. Compare rdma-core in the image"
            " with the driver on the node."
        ),
    ),
    "gid_settings": (
        FAIL,
        "NCCL cannot select a GID with the settings of the job: NCCL_IB_ADDR_RANGE does not match the address family.",
        (
            "Correct NCCL_IB_ADDR_RANGE and NCCL_IB_ADDR_FAMILY, or leave both unset. Read the GIDs in the pod: cat"
            " /sys/class/infiniband/*/ports/*/gids/*."
        ),
    ),
    "routed_subnets": (
        WARN,
        "The two HCAs are in different InfiniBand subnets, and the router has no address (FLID) for the other subnet.",
        "Check the router settings of both subnet managers, and NCCL_IB_ROUTABLE_FLID_GID_INDEX.",
    ),
    "forced": (
        FAIL,
        "A variable forces a feature that these machines do not have.",
        (
            "Remove the variable. If NCCL_MNNVL_ENABLE and NCCL_NVLS_ENABLE are unset, NCCL uses the value 2. If"
            " NCCL_IB_OOO_RQ and NCCL_CUMEM_ENABLE are unset, NCCL uses their defaults."
        ),
    ),
    "gpu_initiated": (
        FAIL,
        "The job requires transfers that the GPU starts itself (GIN), but the HCAs or the driver do not support them.",
        (
            "GIN needs nvidia_peermem or DMA-BUF on each node. The GIN type GDAKI needs HCAs from ConnectX-6 Dx on."
            " Check NCCL_GIN_TYPE and NCCL_GIN_ENABLE in the job."
        ),
    ),
    "ignored_interface": (
        WARN,
        "The pod has no interface of this name, so NCCL used another interface.",
        "Correct NCCL_OOB_NET_IFNAME, or remove it. Run ip addr in the pod to list its interfaces.",
    ),
    "no_interface": (
        FAIL,
        "NCCL found no interface with an address for its own connections.",
        "Set NCCL_SOCKET_IFNAME to an interface of the pod. Run ip addr in the pod to list its interfaces.",
    ),
    "no_network": (
        FAIL,
        "NCCL could not start the network that the job requires.",
        "Correct NCCL_NET. Verify that the pod has the RDMA devices (ibv_devices) and that its image has libibverbs.",
    ),
    "address": (
        FAIL,
        "NCCL cannot read the address at which the ranks meet.",
        (
            "Correct NCCL_COMM_ID: ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or HOST:PORT with a name that the pod can"
            " resolve."
        ),
    ),
    "bootstrap": (
        FAIL,
        "The ranks have different values for the number of ranks, or two processes have the same rank.",
        "Compare RANK and WORLD_SIZE of all pods. End the pods of an earlier attempt that use the same address.",
    ),
    "strange_peer": (
        WARN,
        "A program that is not a rank of this job connected to a port of NCCL. It can be a rank of another job.",
        (
            "Exclude the pods of the job from port scanners, health checks and the sidecars of a service mesh. Do not"
            " use the same NCCL_COMM_ID, or the same MASTER_ADDR and MASTER_PORT, for two jobs."
        ),
    ),
    "connection": (
        FAIL,
        "A TCP connection between ranks failed or was closed.",
        "Read the first problem in the log: most likely another rank failed first.",
    ),
    "shared_memory": (
        FAIL,
        "NCCL could not create or open shared memory.",
        "Mount a memory volume at /dev/shm of the pod that is large enough for all ranks.",
    ),
    "unix_sockets": (
        FAIL,
        (
            "Ranks on one machine could not share memory over a Unix socket. They are in different network namespaces,"
            " or one of them has ended."
        ),
        (
            "Read the first problem in the log. If several pods of the job run on one machine, use one pod for all its"
            " GPUs, or set NCCL_CUMEM_ENABLE=0."
        ),
    ),
    "same_gpu": (
        FAIL,
        "Two ranks use the same GPU.",
        "Start one rank for each GPU, and select the device by LOCAL_RANK.",
    ),
    "versions": (
        FAIL,
        "The ranks or libraries have different versions of NCCL.",
        "Use one image for all pods, and check LD_LIBRARY_PATH.",
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
    "collnet": (
        WARN,
        "NCCL could not use collectives in the switches (CollNet: SHARP). The job runs over rings and trees.",
        (
            "Check the aggregation manager of the subnet manager. Verify that the image has NVIDIA's SHARP plugin"
            " (libnccl-net.so of nccl-rdma-sharp-plugins). With NCCL_COLLNET_ENABLE=0, NCCL does not try to use SHARP."
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
    "aborted": (
        WARN,
        "NCCL aborted the communicator. This is a consequence of another problem.",
        "Read the first problem of any rank in the log.",
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
    "topology_file": (
        FAIL,
        "A topology file could not be read, or belongs to another machine or release.",
        (
            "Check NCCL_TOPO_FILE and NCCL_GRAPH_FILE in the job and in its image. Unless the machine is virtual, use"
            " no such file. On a virtual machine, compare the file with the output of"
            " NCCL_TOPO_DUMP_FILE=/tmp/topology.xml on that machine."
        ),
    ),
    "no_algorithm": (
        FAIL,
        "The settings of the job leave no algorithm for a collective.",
        "Remove NCCL_ALGO and NCCL_PROTO from the job and its image.",
    ),
    "no_transport": (
        FAIL,
        "NCCL has no path between two ranks: not over NVLink or PCIe, not over shared memory, and not over a network.",
        (
            "Remove NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA from the job. Find the network of"
            " the ranks in the log with NCCL_DEBUG=INFO."
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
    "collective_mismatch": (
        FAIL,
        "The ranks do not call the same collective: its size, its algorithm or its protocol differs between them.",
        (
            "Set the same NCCL_ALGO, NCCL_PROTO and tuning variables in all pods, and use one image. Check whether a"
            " rank has different data or a different code path."
        ),
    ),
    "plugin": (
        WARN,
        "A plugin of NCCL does not behave as NCCL expects.",
        (
            "Use plugins of the release of NCCL (libnccl-net.so, libnccl-tuner.so, libnccl-profiler.so in the image),"
            " or no plugins."
        ),
    ),
    "proxy": (
        FAIL,
        "A thread of NCCL that transfers the data of a rank failed.",
        "Read the first problem of this host in the log.",
    ),
    "application": (
        FAIL,
        "The program calls NCCL in a way that NCCL refuses. The cluster is not the cause.",
        "Read the stack trace of the program at that line. Verify that its framework supports this release of NCCL.",
    ),
    "hint": (
        WARN,
        "NCCL corrected a setting of the job.",
        "Correct the variable or the setting that the message under 'measured' names.",
    ),
    "timeout": (
        FAIL,
        "A collective did not end in time: a rank did not take part, or the network does not transfer data.",
        "Find the last action of the slowest rank in the log.",
    ),
    "": (
        WARN,
        "The message is not among those whose effect on the network is known.",
        (
            "Look up this message in the documentation of NCCL. If the findings training.transport and"
            " training.channels pass, it did not change the transport, and no action is needed. Otherwise correct what"
            " it names, and run the job again."
        ),
    ),
}
