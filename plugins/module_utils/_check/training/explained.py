# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage training, for the pages to which the report links. Check ids:
``training.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "training.channels": Explanation(
        means=(
            "Not every channel of a rank was seen in the log, or one end of it alone. What was not seen is not proven."
        ),
        measured="NCCL's lines about each channel of each communicator, from both of its ends.",
        causes=(
            "The log begins too late, ends too early, or was written by several processes into one file.",
            "Since NCCL 2.22 a communicator connects at its first collective, and none ran.",
            "NVLS alone connects no ring.",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "Give the whole log of every pod, one file a pod; run a collective with `NCCL_NVLS_ENABLE=0` for the run"
            " that is the proof."
        ),
    ),
    "training.gpu_direct": Explanation(
        means=(
            "Channels over RDMA do not use GPUDirect: data goes through the host's memory, at a fraction of the rate."
        ),
        measured="`GDRDMA` in the line of each channel, and what NCCL says of each pair of GPU and HCA.",
        causes=(
            "Neither nvidia-peermem nor DMA-BUF works on the node (`host.gpudirect`).",
            "The HCA is too far from the GPU, or ACS is on between them.",
            "NCCL_NET_GDR_LEVEL forbids it.",
        ),
        look=(
            "nvidia-smi topo -m",
            "lsmod",
            "kubectl logs POD -n NAMESPACE",
        ),
        remedy=(
            "Load nvidia_peermem or use the open driver; give the job the HCA beside the GPU."
            " NCCL_DEBUG_SUBSYS=INIT,NET says why for each."
        ),
    ),
    "training.hcas": Explanation(
        means="The job uses HCAs that its pod did not get, or leaves out some that it got.",
        measured="Devices in NCCL's channels against the functions in the annotation of the pod.",
        causes=(
            "NCCL_IB_HCA takes prefixes: mlx5_1 is mlx5_10 as well.",
            "RDMA mode shared: a pod sees all devices of the node.",
            "A port is down, or no GPU is near it.",
            "The pod is gone, so nothing is known of what it got (unknown).",
            (
                "Several pods have the host name, or the pods with the host names of the log are of several jobs"
                " (unknown)."
            ),
            "Several files have lines of the host, or the file of a pod has lines of several hosts (unknown).",
        ),
        look=(
            "ibv_devinfo",
            "kubectl get pod POD -n NAMESPACE -o yaml",
        ),
        remedy=(
            "Name the devices exactly: `NCCL_IB_HCA==mlx5_1,mlx5_2`; RDMA mode exclusive keeps others out. Run the"
            " stage while the pods are there."
        ),
    ),
    "training.log": Explanation(
        means=(
            "There is no log of NCCL to judge, or one file or host was left out. NCCL is silent unless it is told"
            " otherwise."
        ),
        measured="Lines of NCCL in the files of `training_logs`.",
        causes=(
            "NCCL_DEBUG is not INFO in the job.",
            "No log was given though `rdma_cluster.training` asks for the proof.",
            "A program in one pod makes up lines of NCCL, or the file has the logs of many runs: it names more"
            " processes and ranks than can be kept. Nothing of this file or host counts, and the others are judged.",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy="Run the job with `NCCL_DEBUG=INFO` in every rank, and name its logs in `training_logs`.",
    ),
    "training.oob": Explanation(
        means="NCCL makes its first connections over the loopback interface, which no other host reaches.",
        measured="The interface in NCCL's bootstrap line of each host.",
        causes=(
            "NCCL_SOCKET_IFNAME names lo, or leaves nothing else.",
            "/etc/hosts leads the host's name to 127.0.0.1.",
        ),
        look=(
            "ip addr",
            "cat /etc/hosts",
        ),
        remedy="Set NCCL_SOCKET_IFNAME to an interface of the pod network, such as eth0.",
    ),
    "training.problem": Explanation(
        means="NCCL warns of something. What is known to stop or slow down a job fails; the rest warns.",
        measured=(
            "Lines of NCCL WARN and ATTN, and warnings and errors of UCX, libfabric and libibverbs. Alike ones are"
            " counted together, with the first place of each."
        ),
        causes=(
            "Memory could not be pinned or registered (memlock, GPUDirect).",
            "A link went down or lost packets while the job ran.",
            "Another rank failed first: the first problem in the log counts.",
            "/dev/shm is too small.",
            (
                "More than 1,000 different warnings of no known kind: the further ones are counted, and what they say"
                " is unknown."
            ),
            "NVLink between nodes (GB200, GB300) without a working IMEX: the pods have no claim of a ComputeDomain.",
            "The pods have different numbers of HCAs, or HCAs of InfiniBand and of Ethernet meet.",
            "Ranks call different collectives, or have different settings or images.",
        ),
        look=(
            "kubectl logs POD -n NAMESPACE",
            "dmesg",
            "ibqueryerrors",
        ),
        remedy="Do what the finding names for this warning; begin with the first problem of the log.",
    ),
    "training.queue_pairs": Explanation(
        means=(
            "The queue pairs of a job have less than the fabric gives them: a smaller MTU, or on RoCE a version or a"
            " traffic class by which switches put its packets into another queue."
        ),
        measured="What NCCL writes of MTU and GID index of its queue pairs, and NCCL_IB_TC of its environment.",
        causes=(
            "The NetworkAttachmentDefinition names no MTU, so that pods have 1500.",
            "NCCL_IB_GID_INDEX=0 is set in the job or the image.",
            "NCCL_IB_TC is that of another cluster.",
        ),
        look=(
            "ip link",
            "ibv_devinfo",
            "show_gids",
            "env",
        ),
        remedy=(
            "Set mtu of the fabric and run the stage network again; take NCCL_IB_GID_INDEX out of job and image, and"
            " set NCCL_IB_TC to the traffic class of the fabric."
        ),
    ),
    "training.rails": Explanation(
        means="No channel of a host uses one of the fabric's rails. That bandwidth was paid for and lies idle.",
        measured="Rails of the HCAs in NCCL's channels of the host.",
        causes=(
            "NCCL_IB_HCA leaves it out, or the pod has no function there.",
            "Fewer GPUs than rails.",
            "Rails are not known: see `fabric.rails`.",
        ),
        look=(
            "kubectl get pod POD -n NAMESPACE -o yaml",
            "nvidia-smi topo -m",
        ),
        remedy=(
            "Name an attachment for each rail and all HCAs in NCCL_IB_HCA; use as many GPUs as rails, or"
            " NCCL_CROSS_NIC=1."
        ),
    ),
    "training.ranks": Explanation(
        means="Ranks are missing, did not complete, or their number is not what the intent says.",
        measured="Ranks of each communicator in the log, and `rdma_cluster.training.ranks`.",
        causes=(
            "The log of a pod is missing.",
            "A rank failed or hangs: its last lines say where.",
            "WORLD_SIZE differs between pods.",
            (
                "Several files have lines of a process, or the file of a pod has lines of several hosts (unknown): a"
                " pod writes in the name of another one."
            ),
            (
                "A host or a file has more than 4,096 processes and ranks (unknown): a program makes up lines of NCCL,"
                " or the log is of many runs."
            ),
        ),
        look=(
            "kubectl get pods -n NAMESPACE -o wide",
            "kubectl logs POD -n NAMESPACE",
        ),
        remedy="See the last lines of the ranks that are named; give the log of every pod, from its first line on.",
    ),
    "training.transport": Explanation(
        means=(
            "A rank sends over TCP (NET/Socket). NCCL fell back in silence, and the job runs at a fraction of its"
            " speed. Over the network of a plugin, such as UCX or libfabric, it is not known what it sends by"
            " (unknown)."
        ),
        measured="The transport of each channel of each rank in NCCL's log.",
        causes=(
            "The pod has no RDMA device, or may not open it.",
            "memlock is too low, so nothing could be registered.",
            "NCCL_IB_DISABLE or NCCL_NET=Socket is set in the job or the image.",
            "libibverbs or its provider is not in the image.",
            "The image brings a network plugin (libnccl-net.so), which NCCL takes before its own (unknown).",
        ),
        look=(
            "ibv_devinfo",
            "ulimit -l",
            "env",
        ),
        remedy=(
            "In the pod, `ibv_devinfo` must show an active port and `ulimit -l` enough; take NCCL_IB_DISABLE and"
            " NCCL_NET out of job and image."
        ),
    ),
    "training.ucx": Explanation(
        means=(
            "A job whose data go by UCX, such as NIXL's, sends over TCP between hosts, or over HCAs that its pod did"
            " not get. UCX takes another transport without an error."
        ),
        measured=(
            "The transports of each endpoint in UCX's log (UCX_LOG_LEVEL=info), against the HCAs of the pod. Only with"
            " `rdma_cluster.training.library: ucx`."
        ),
        causes=(
            "The pod has no RDMA device, or may not open it.",
            "UCX in the image is built without verbs, or its rdma-core lacks the provider.",
            "UCX_TLS or UCX_NET_DEVICES leaves RDMA out.",
            "TCP is beside RDMA in an endpoint (warn).",
            "NVLink between nodes (cuda_ipc) carries the data of GPUs beside RDMA (warn), or alone (unknown).",
            "UCX sends by unreliable datagrams, because it can't open RC or DC, or has very many peers (warn).",
            "The log has no line of an endpoint, or none of one of the pods, or the pods were not looked at (unknown).",
        ),
        look=("ucx_info -d", "ulimit -l", "env"),
        remedy="See the transports in `ucx_info -d` in the pod; take UCX_TLS and UCX_NET_DEVICES out of the job.",
    ),
    "training.version": Explanation(
        means="Ranks run several versions of NCCL, which need not understand each other; or the log shows none.",
        measured="The line of NCCL's version of each rank.",
        causes=(
            "Pods of several images, or a library path that finds another one.",
            "Logs of several jobs are mixed.",
        ),
        look=(
            "kubectl get pods -n NAMESPACE -o yaml",
            "env",
        ),
        remedy="Use one image for all pods, see LD_LIBRARY_PATH, and give one job's log.",
    ),
}
