# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage training, for the pages to which the report links. Check ids:
``training.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "training.channels": Explanation(
        means=(
            "The log does not contain every channel of a rank, or contains only one end of a channel. The missing"
            " channels are not verified."
        ),
        measured="The lines of NCCL about each channel of each communicator, from both ends of the channel.",
        causes=(
            "The log starts too late, ends too early, or several processes wrote to the same file.",
            "Since NCCL 2.22, a communicator connects at its first collective, and the job ran no collective.",
            "With NVLS alone, NCCL connects no ring.",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "Provide the complete log of every pod, one file for each pod. In the run that provides the log, run a"
            " collective with `NCCL_NVLS_ENABLE=0`. Then run stage `training` again."
        ),
    ),
    "training.gpu_direct": Explanation(
        means=(
            "Channels over RDMA do not use GPUDirect RDMA. The data passes through host memory, at a fraction of the"
            " rate."
        ),
        measured="`GDRDMA` in the line of each channel, and the lines of NCCL about each pair of GPU and HCA.",
        causes=(
            "Neither nvidia-peermem nor DMA-BUF works on the node (`host.gpudirect`).",
            "The HCA is too far from the GPU, or ACS is enabled between them.",
            "NCCL_NET_GDR_LEVEL prevents it.",
            "On GH200 and GB200, NCCL does not use it by itself, depending on its release (NCCL_NET_GDR_C2C).",
        ),
        look=(
            "nvidia-smi topo -m",
            "lsmod",
            "kubectl logs POD -n NAMESPACE",
        ),
        remedy=(
            "Load nvidia_peermem or use the open GPU driver, and give the job the HCA beside each GPU. With"
            " NCCL_DEBUG_SUBSYS=INIT,NET, NCCL logs the reason for each pair. Then run stage `training` again with the"
            " new logs."
        ),
    ),
    "training.hcas": Explanation(
        means="The job uses HCAs that its pod did not get, or does not use some HCAs that the pod got.",
        measured="Devices in the channels of NCCL, compared with the functions in the annotation of the pod.",
        causes=(
            "NCCL_IB_HCA matches prefixes: mlx5_1 also matches mlx5_10.",
            "RDMA mode shared: a pod sees all RDMA devices of the node.",
            "A port is down, or no GPU is near it.",
            "NVLink joins the nodes (MNNVL), and no channel uses the HCAs (unknown).",
            "All pods are on one node, so its HCAs loop the data back, and no cable or switch carries any (unknown).",
            "The pod was removed, so the HCAs that it got could not be determined (unknown).",
            (
                "Several pods have the same host name, or the pods with the host names in the log belong to several"
                " jobs (unknown)."
            ),
            (
                "A pod of the job is on the network, and the log contains no line of it (unknown; warn if"
                " `rdma_cluster.training.ranks` is set)."
            ),
            (
                "Several files contain lines of the same host, or the file of one pod contains lines of several hosts"
                " (unknown)."
            ),
        ),
        look=(
            "ibv_devinfo",
            "kubectl get pod POD -n NAMESPACE -o yaml",
        ),
        remedy=(
            "Name the exact devices: `NCCL_IB_HCA==mlx5_1,mlx5_2`. With RDMA mode exclusive, a pod sees only its own"
            " devices. Run stage `training` again while the pods exist."
        ),
    ),
    "training.log": Explanation(
        means="There is no NCCL log to check, or a file or a host was left out. NCCL writes no log by default.",
        measured="Lines of NCCL in the files that `training_logs` names.",
        causes=(
            "The job does not set NCCL_DEBUG=INFO.",
            "No log was provided, although `rdma_cluster.training` requires the verification of a job.",
            "A program in a pod writes false NCCL lines, or the file contains the logs of many runs. The file or host"
            " then has more processes and ranks than can be stored. Its lines are ignored. The other files and hosts"
            " are checked.",
            "A file has a hole of NUL characters, or is one of too many: all files together have more than 64 GiB or"
            " 200 million lines, or take more than 1,800 seconds of CPU time.",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "Run the job with `NCCL_DEBUG=INFO` in every rank, and set `training_logs` to its logs. Then run stage"
            " `training` again."
        ),
    ),
    "training.oob": Explanation(
        means=(
            "NCCL makes its first connections over the loopback interface, and other hosts cannot reach this interface."
        ),
        measured="The interface in the bootstrap line of NCCL for each host.",
        causes=(
            "NCCL_SOCKET_IFNAME names lo, or excludes all other interfaces.",
            "/etc/hosts resolves the host name to 127.0.0.1.",
        ),
        look=(
            "ip addr",
            "cat /etc/hosts",
        ),
        remedy=(
            "Set NCCL_SOCKET_IFNAME to an interface of the pod network, for example eth0. Run the job again, then run"
            " stage `training` again with the new logs."
        ),
    ),
    "training.problem": Explanation(
        means=(
            "NCCL logged a warning. The check fails for warnings that are known to stop or slow down a job. All other"
            " warnings cause a warning, and so do variables that slow down the job without an effect on its channels:"
            " NCCL_PROTO=LL, and a limit of channels that is too small."
        ),
        measured=(
            "Lines with NCCL WARN and ATTN, and warnings and errors of UCX, libfabric and libibverbs. Similar lines are"
            " counted together, with the first place of each."
        ),
        causes=(
            "Memory could not be pinned or registered (memlock, GPUDirect).",
            "A link went down or lost packets while the job ran.",
            "Another rank failed first: the first problem in the log is the cause.",
            "/dev/shm is too small.",
            (
                "The log contains more than 1,000 different warnings of unknown kinds. Further warnings are only"
                " counted, and their content is unknown."
            ),
            (
                "NVLink between nodes (GB200, GB300) is used without a working IMEX: the pods have no claim of a"
                " ComputeDomain."
            ),
            "The pods have different numbers of HCAs, or the job combines HCAs of InfiniBand and of Ethernet.",
            "Ranks call different collectives, or use different settings or images.",
        ),
        look=(
            "kubectl logs POD -n NAMESPACE",
            "dmesg",
            "ibqueryerrors",
        ),
        remedy="Follow the remedy of the finding for this warning. Start with the first problem in the log.",
    ),
    "training.queue_pairs": Explanation(
        means=(
            "The queue pairs of a job do not match the fabric: a smaller MTU, or on RoCE a version or a traffic class"
            " with which switches put the packets into a different queue."
        ),
        measured=(
            "The MTU and the GID index of the queue pairs in the NCCL log, and NCCL_IB_TC in the environment of NCCL."
            " Without NCCL_IB_TC, the traffic class that stage `tuning` has read on the node counts."
        ),
        causes=(
            "The NetworkAttachmentDefinition sets no MTU, so the interfaces of the pods have an MTU of 1500.",
            "NCCL_IB_GID_INDEX=0 is set in the job or the image.",
            "NCCL_IB_TC has a value for a different cluster.",
            "NCCL_IB_TC is not set, and stage tuning has read no traffic class that the node sets for its HCAs.",
        ),
        look=(
            "ip link",
            "ibv_devinfo",
            "show_gids",
            "env",
        ),
        remedy=(
            "Set mtu of the fabric, then run stage `network` again. Remove NCCL_IB_GID_INDEX from the job and the"
            " image, and set NCCL_IB_TC to the traffic class of the fabric. Then run stage `training` again with new"
            " logs."
        ),
    ),
    "training.rails": Explanation(
        means="No channel of a host uses one of the rails of the fabric. The bandwidth of that rail is unused.",
        measured="Rails of the HCAs in the channels of NCCL on the host.",
        causes=(
            "NCCL_IB_HCA excludes the HCA, or the pod has no function on the rail.",
            "The job has fewer GPUs than rails.",
            "The pods of a node got only a part of the rails, as with `rdma_job.interfaces`, and the intent does not"
            " set `rdma_cluster.training.interfaces`.",
            "NVLink joins the nodes (MNNVL), and each channel leaves the NVLink domain from one node only (unknown).",
            "The rails are unknown: see `fabric.rails`.",
        ),
        look=(
            "kubectl get pod POD -n NAMESPACE -o yaml",
            "nvidia-smi topo -m",
        ),
        remedy=(
            "Give the pod one network attachment for each rail, and name all HCAs in NCCL_IB_HCA. Use as many GPUs as"
            " rails, or set NCCL_CROSS_NIC=1. Then run stage `training` again with new logs."
        ),
    ),
    "training.ranks": Explanation(
        means="Ranks are missing or did not complete, or the number of ranks differs from the intent.",
        measured="Ranks of each communicator in the log, and `rdma_cluster.training.ranks`.",
        causes=(
            "The log of a pod is missing.",
            "A rank failed or hangs: its last lines show the position.",
            "WORLD_SIZE differs between pods.",
            (
                "Several files contain lines of the same process, or the file of one pod contains lines of several"
                " hosts (unknown): a pod writes lines in the name of another pod."
            ),
            (
                "A host or a file has more than 4,096 processes and ranks (unknown): a program writes false NCCL lines,"
                " or the log contains many runs."
            ),
        ),
        look=(
            "kubectl get pods -n NAMESPACE -o wide",
            "kubectl logs POD -n NAMESPACE",
        ),
        remedy=(
            "Check the last lines of the named ranks. Provide the log of every pod, from its first line on. Then run"
            " stage `training` again."
        ),
    ),
    "training.transport": Explanation(
        means=(
            "A rank sends over TCP (NET/Socket). NCCL fell back to TCP without an error, and the job runs at a fraction"
            " of its speed. Or two GPUs of a pod exchange data through host memory (SHM) instead of NVLink or PCIe. If"
            " the rank uses a network plugin, such as UCX or libfabric, the transport could not be determined"
            " (unknown)."
        ),
        measured="The transport of each channel of each rank in the NCCL log.",
        causes=(
            "The pod has no RDMA device, or has no permission to open it.",
            "The memlock limit is too low, so memory could not be registered.",
            "NCCL_IB_DISABLE or NCCL_NET=Socket is set in the job or the image.",
            "The image lacks libibverbs or its provider library.",
            "The image contains a network plugin (libnccl-net.so), which NCCL prefers to its own transports (unknown).",
            "For SHM: the job or the image sets NCCL_P2P_DISABLE or NCCL_P2P_LEVEL, or NVLinks are inactive.",
        ),
        look=(
            "ibv_devinfo",
            "ulimit -l",
            "env",
        ),
        remedy=(
            "In the pod, `ibv_devinfo` must show an active port, and `ulimit -l` must show a sufficient limit. Remove"
            " NCCL_IB_DISABLE, NCCL_NET and NCCL_P2P_DISABLE from the job and the image. Then run stage `training`"
            " again with new logs."
        ),
    ),
    "training.ucx": Explanation(
        means=(
            "A job that sends over UCX, for example with NIXL, sends over TCP between hosts, or over HCAs that its pod"
            " did not get. UCX selects a different transport without an error."
        ),
        measured=(
            "The transports of each endpoint in the UCX log (UCX_LOG_LEVEL=info), compared with the HCAs of the pod."
            " The check runs only with `rdma_cluster.training.library: ucx`."
        ),
        causes=(
            "The pod has no RDMA device, or has no permission to open it.",
            "UCX in the image was built without verbs, or the rdma-core of the image lacks the provider library.",
            "UCX_TLS or UCX_NET_DEVICES excludes RDMA.",
            "An endpoint uses TCP in addition to RDMA (warning).",
            (
                "No endpoint uses some HCAs of the pod (warning). UCX uses two HCAs by default (UCX_MAX_RNDV_RAILS), or"
                " those in UCX_NET_DEVICES."
            ),
            (
                "NVLink between nodes (cuda_ipc) carries the data of GPUs in addition to RDMA (warning), or alone"
                " (unknown)."
            ),
            (
                "UCX sends unreliable datagrams, because it cannot open RC or DC, or because a process has very many"
                " peers (warning)."
            ),
            (
                "The log contains no line about an endpoint, or no such line for one of the pods, or the pods were not"
                " queried (unknown)."
            ),
        ),
        look=("ucx_info -d", "ulimit -l", "env"),
        remedy=(
            "Check the transports in the output of `ucx_info -d` in the pod. Remove UCX_TLS and UCX_NET_DEVICES from"
            " the job. Then run stage `training` again with new logs."
        ),
    ),
    "training.version": Explanation(
        means="Ranks use different versions of NCCL, which may be incompatible, or the log contains no version.",
        measured="The line with the NCCL version of each rank.",
        causes=(
            "The pods use different images, or a library path leads to a different NCCL library.",
            "The logs of several jobs are mixed.",
            (
                "A process loads two NCCL libraries, such as that of PyTorch and that of vLLM or DeepEP. This works if"
                " all ranks of each communicator use the same one, which the check does not compare."
            ),
        ),
        look=(
            "kubectl get pods -n NAMESPACE -o yaml",
            "env",
        ),
        remedy=(
            "Use the same image for all pods, check LD_LIBRARY_PATH, and provide the log of only one job. Then run"
            " stage `training` again."
        ),
    ),
}
