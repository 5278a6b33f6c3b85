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
            "The GPUs are on one NVLink fabric of several nodes, and share no memory over it: IMEX does not work, or"
            " the pod has no channel of it."
        ),
        (
            "Give the pods a claim of a ComputeDomain (NVIDIA's DRA driver), and see that it is Ready: kubectl get"
            " computedomains -A. On nodes without it see nvidia-imex-ctl -N, and /dev/nvidia-caps-imex-channels."
            " NCCL_MNNVL_ENABLE=0 only hides it: the job then sends between nodes over the HCAs alone."
        ),
    ),
    "open_files": (
        FAIL,
        "The process may open no more files: each connection between ranks takes some.",
        "Run 'ulimit -n' in the container; raise the limit (LimitNOFILE) of the container runtime's systemd service.",
    ),
    "memlock": (
        FAIL,
        "Memory could not be pinned: memlock of the process is too low.",
        (
            "Run 'ulimit -l' in the container; raise memlock in the container runtime. IPC_LOCK alone does not help a"
            " process that is not root."
        ),
    ),
    "peer_memory": (
        FAIL,
        "The HCA could not register memory of the GPU: neither nvidia-peermem nor DMA-BUF works here.",
        (
            "Load nvidia_peermem on the node (driver.rdma.enabled of the ClusterPolicy), or install the open kernel"
            " driver, which has DMA-BUF."
        ),
    ),
    "completion": (
        FAIL,
        "A transfer over the network ended with an error.",
        "Read the status in the text, and dmesg of both nodes at that time.",
    ),
    "gid_change": (
        FAIL,
        (
            "The addresses (GIDs) of an HCA changed while the job ran: queue pairs that use the old ones send no"
            " packets any more."
        ),
        (
            "See what changed the addresses of the HCA's netdev: dmesg, and the log of NetworkManager or"
            " systemd-networkd of the node (DHCP, a bond, an operator that configures the netdev again). Leave"
            " NCCL_IB_GID_INDEX unset, so that NCCL chooses the GID by its address."
        ),
    ),
    "sm_event": (
        WARN,
        (
            "The subnet manager changed, or configured the port of an HCA again, while the job ran. A job survives it"
            " where LIDs and partitions stay as they are."
        ),
        "Read the log of the subnet manager for that time, and sminfo for which one is master now.",
    ),
    "async_event": (
        FAIL,
        "The HCA reported an event while the job ran: a port went down, or a queue pair failed.",
        "See dmesg of the node and the link.",
    ),
    "failover": (
        FAIL,
        (
            "A port of an HCA failed while the job ran. NCCL tried to go on over another one"
            " (NCCL_IB_RESILIENCY_PORT_FAILOVER)."
        ),
        "See dmesg of the node at that time, and the link of that HCA: ibstat, and ibqueryerrors or ethtool -S NETDEV.",
    ),
    "slow_requests": (
        WARN,
        "Requests of an HCA took longer than NCCL_IB_WQE_LATENCY_THRESHOLD_NS: the text names both ends.",
        "Measure this pair of HCAs alone (stage bandwidth), and read the error counters of the links between them.",
    ),
    "queue_pair": (
        FAIL,
        "Queue pairs could not be connected: the ends do not reach each other.",
        (
            "Each rail must reach the same rail of the other nodes; on RoCE compare the GIDs and addresses of both"
            " ends, and NCCL_IB_GID_INDEX."
        ),
    ),
    "pkey": (
        FAIL,
        "The partition key that the job asks for (NCCL_IB_PKEY_VALUE) is not in the table of the HCA's port.",
        (
            "Read the table: cat /sys/class/infiniband/*/ports/1/pkeys/*. Make the port a member in the partitions of"
            " the subnet manager, or correct NCCL_IB_PKEY_VALUE."
        ),
    ),
    "link_layers": (
        FAIL,
        "HCAs of InfiniBand and of Ethernet meet in one connection: these can't reach each other.",
        (
            "Name the HCAs of one fabric alone in NCCL_IB_HCA, by their exact names (NCCL_IB_HCA='=mlx5_0,mlx5_1'); see"
            " cat /sys/class/infiniband/*/ports/1/link_layer in each pod."
        ),
    ),
    "nic_counts": (
        FAIL,
        "The pods of the job have different numbers of HCAs.",
        (
            "Compare ls /sys/class/infiniband in all pods; ask for the same devices in each pod template, and set"
            " NCCL_IB_HCA alike."
        ),
    ),
    "merged_nics": (
        FAIL,
        "NCCL could not merge HCAs into one, as it was told to.",
        (
            "Correct NCCL_NET_FORCE_MERGE (names as in ls /sys/class/infiniband), or leave it unset;"
            " NCCL_IB_MERGE_NICS=0 merges none."
        ),
    ),
    "no_libibverbs": (
        WARN,
        "The image has no libibverbs, or one that is too old for this release of NCCL.",
        (
            "Install rdma-core in the image: libibverbs1 and ibverbs-providers on Debian and Ubuntu, libibverbs on"
            " RHEL. ldconfig -p | grep ibverbs shows what the image has."
        ),
    ),
    "no_device": (
        FAIL,
        "An RDMA device is listed in the pod, and it can't be opened or asked.",
        (
            "See in the pod: ls /dev/infiniband, and ibv_devinfo. The device plugin or the claim must bring the device"
            " files; on nodes in RDMA's exclusive mode (rdma system) the device must be moved into the pod."
        ),
    ),
    "verbs": (
        FAIL,
        "A call of libibverbs failed: the text names the call, and the error of the system.",
        (
            "See dmesg of the node at that time, and ulimit -l in the container. Compare rdma-core in the image with"
            " the driver on the node."
        ),
    ),
    "gid_settings": (
        FAIL,
        "NCCL can't choose a GID by the settings of the job: NCCL_IB_ADDR_RANGE fits no address family.",
        (
            "Correct NCCL_IB_ADDR_RANGE and NCCL_IB_ADDR_FAMILY, or leave both unset; see"
            " /sys/class/infiniband/*/ports/1/gids in the pod."
        ),
    ),
    "routed_subnets": (
        WARN,
        "The two ends are in different InfiniBand subnets, and the router has no address (FLID) for the other one.",
        "See the router settings of both subnet managers, and NCCL_IB_ROUTABLE_FLID_GID_INDEX.",
    ),
    "forced": (
        FAIL,
        "A variable forces a feature that these machines do not have.",
        (
            "Remove the variable: NCCL_MNNVL_ENABLE and NCCL_NVLS_ENABLE take 2, NCCL_IB_OOO_RQ and NCCL_CUMEM_ENABLE"
            " take their default when they are unset."
        ),
    ),
    "gpu_initiated": (
        FAIL,
        "The job asks for transfers that the GPU starts itself (GIN), and the HCAs or the driver can't do that.",
        (
            "GIN needs nvidia_peermem or DMA-BUF on each node, and its type GDAKI HCAs from ConnectX-6 Dx on; see"
            " NCCL_GIN_TYPE and NCCL_GIN_ENABLE in the job."
        ),
    ),
    "ignored_interface": (
        WARN,
        "The pod has no interface of this name, and NCCL took another one.",
        "Correct NCCL_OOB_NET_IFNAME, or remove it (ip addr in the pod).",
    ),
    "no_interface": (
        FAIL,
        "NCCL found no interface with an address for its own connections.",
        "Set NCCL_SOCKET_IFNAME to an interface that the pod has (ip addr in the pod).",
    ),
    "no_network": (
        FAIL,
        "NCCL could not start the network that it was told to take.",
        "Correct NCCL_NET, and make sure that the pod has the RDMA devices (ibv_devices) and its image libibverbs.",
    ),
    "address": (
        FAIL,
        "NCCL can't read the address at which the ranks are to meet.",
        "Correct NCCL_COMM_ID: ADDRESS:PORT, [ADDRESS]:PORT of IPv6, or HOST:PORT with a name that the pod resolves.",
    ),
    "bootstrap": (
        FAIL,
        "The ranks do not agree on how many they are, or two processes have the same rank.",
        "Compare RANK and WORLD_SIZE of all pods; end the pods of an earlier attempt that use the same address.",
    ),
    "strange_peer": (
        WARN,
        "Something that is not a rank of this job connected to a port of NCCL, or a rank of another job did.",
        (
            "Exclude the job's pods from port scanners, health checks and the sidecars of a service mesh. Two jobs must"
            " not share NCCL_COMM_ID or MASTER_ADDR and MASTER_PORT."
        ),
    ),
    "connection": (
        FAIL,
        "A TCP connection between ranks failed or was closed.",
        "Another rank most likely failed first: see the first problem in the log.",
    ),
    "shared_memory": (
        FAIL,
        "Shared memory could not be made or opened.",
        "Mount a memory volume at /dev/shm of the pod, large enough for all ranks.",
    ),
    "unix_sockets": (
        FAIL,
        (
            "Ranks on one machine could not hand memory to each other over a Unix socket: they are in different network"
            " namespaces, or one of them has ended."
        ),
        (
            "See the first problem in the log. Where several pods of the job share a machine, use one pod for all its"
            " GPUs, or NCCL_CUMEM_ENABLE=0."
        ),
    ),
    "same_gpu": (FAIL, "Two ranks use the same GPU.", "Start one rank for each GPU, and set the device by LOCAL_RANK."),
    "versions": (
        FAIL,
        "Ranks or libraries of different versions of NCCL meet.",
        "Use one image for all pods; see LD_LIBRARY_PATH.",
    ),
    "nvls": (
        FAIL,
        "NVLink SHARP (multicast in the NVSwitches) could not be used.",
        (
            "See the fabric manager on the node (systemctl status nvidia-fabricmanager) and nvidia-smi -q -d FABRIC. It"
            " and the driver must be of one release. NCCL_NVLS_ENABLE=0 runs the job without it, slower."
        ),
    ),
    "collnet": (
        WARN,
        "Collectives in the switches (CollNet: SHARP) could not be used; the job runs over rings and trees.",
        (
            "See the aggregation manager of the subnet manager, and that NVIDIA's SHARP plugin is in the image"
            " (libnccl-net.so of nccl-rdma-sharp-plugins). NCCL_COLLNET_ENABLE=0 asks for none."
        ),
    ),
    "gdrcopy": (
        WARN,
        "GDRCopy does not work: its library in the image does not fit gdrdrv on the node, or gdrdrv is not loaded.",
        (
            "Load gdrdrv on the node (gdrcopy.enabled of the ClusterPolicy), and use libgdrapi of the same release; or"
            " unset NCCL_GDRCOPY_ENABLE."
        ),
    ),
    "gpu_memory": (
        FAIL,
        "The memory of a GPU is used up.",
        (
            "See nvidia-smi on that node for processes of an earlier job. Leave NCCL some memory: each communicator"
            " takes hundreds of MiB, fewer channels (NCCL_MAX_CTAS) take less."
        ),
    ),
    "threads": (
        FAIL,
        "A thread could not be started: the pod has reached its limit of processes.",
        "Raise podPidsLimit of the kubelet, or ulimit -u in the container; /sys/fs/cgroup/pids.max has the limit.",
    ),
    "memory": (
        FAIL,
        "The memory of the machine or of the pod is used up.",
        "Raise resources.limits.memory of the pod, and see dmesg of the node for processes that were killed.",
    ),
    "aborted": (
        WARN,
        "The communicator was given up: this is a consequence.",
        "See the first problem in the log, of any rank.",
    ),
    "driver": (
        FAIL,
        "CUDA or the driver failed.",
        "Compare the driver on the node with what the CUDA of the image needs (nvidia-smi).",
    ),
    "peer_access": (
        WARN,
        "GPUs that NVLink connects can't reach each other directly.",
        "Check the NVLinks (nvidia-smi nvlink -s) and the fabric manager.",
    ),
    "iommu": (
        WARN,
        (
            "The kernel runs without iommu=pt, so each access of an HCA or GPU to memory is translated: RCCL can hang,"
            " and GPUDirect RDMA is slow."
        ),
        (
            "Boot the node with iommu=pt (rdma_cluster.host.kernel_arguments, or GRUB_CMDLINE_LINUX by hand), and see"
            " cat /proc/cmdline."
        ),
    ),
    "affinity": (
        WARN,
        "The process may not run on the CPUs beside its GPU: the pod's CPUs are elsewhere.",
        (
            "Give the pod CPUs of the GPU's NUMA node: topologyManagerPolicy of the kubelet, and a pod of the class"
            " Guaranteed with whole CPUs."
        ),
    ),
    "topology_file": (
        FAIL,
        "A file that describes the topology can't be read, or is of another machine or release.",
        (
            "See NCCL_TOPO_FILE and NCCL_GRAPH_FILE in the job and in its image. Where the machine is no virtual one,"
            " use none; otherwise compare it with NCCL_TOPO_DUMP_FILE=/tmp/topology.xml of the machine."
        ),
    ),
    "no_algorithm": (
        FAIL,
        "The settings leave no algorithm for a collective.",
        "Remove NCCL_ALGO and NCCL_PROTO from the job and its image.",
    ),
    "no_transport": (
        FAIL,
        "There is no way between two ranks: neither NVLink or PCIe, nor shared memory, nor a network.",
        (
            "Take NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA out of the job, and see which network"
            " the ranks use (NCCL_DEBUG=INFO)."
        ),
    ),
    "topology": (
        WARN,
        (
            "NCCL sees a topology of the machine that does not hold together, as in virtual machines and in containers"
            " that see a part of /sys."
        ),
        (
            "Write what NCCL sees to a file (NCCL_TOPO_DUMP_FILE=/tmp/topology.xml), and compare it with lspci -tv of"
            " the machine. In virtual machines use the NCCL_TOPO_FILE of the provider."
        ),
    ),
    "collective_mismatch": (
        FAIL,
        "Ranks do not call the same collective: they differ in its size, or in its algorithm or protocol.",
        (
            "Set NCCL_ALGO, NCCL_PROTO and the variables of tuning alike in all pods, use one image, and see whether a"
            " rank has other data or another code path."
        ),
    ),
    "plugin": (
        WARN,
        "A plugin of NCCL does not do what NCCL expects.",
        "Use plugins of NCCL's release (libnccl-net.so, libnccl-tuner.so, libnccl-profiler.so in the image), or none.",
    ),
    "proxy": (
        FAIL,
        "A thread of NCCL that does the transfers of a rank failed.",
        "See the first problem of this host in the log.",
    ),
    "application": (
        FAIL,
        "The program calls NCCL in a way that NCCL refuses. The cluster has no part in it.",
        "See the program's own stack trace at that line, and that its framework fits this release of NCCL.",
    ),
    "hint": (WARN, "NCCL corrected a setting.", "Correct the variable or the setting."),
    "timeout": (
        FAIL,
        "A collective did not end in time: some rank did not take part, or the network stands still.",
        "See what the slowest rank did last.",
    ),
    "": (
        WARN,
        "The log warns of it, and it is not known here whether it matters.",
        "Read the text; the channels show what it did to the transport.",
    ),
}
