# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems that UCX and libfabric write into the log of a job, by kind of problem."""

from __future__ import annotations

from ..._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/transports.py): status, cause and remedy
TRANSPORT_CAUSES: dict[str, tuple[Status, str, str]] = {
    "transport_names": (
        FAIL,
        "UCX or libfabric is told to use a device or a transport that the pod does not have.",
        (
            "Compare UCX_NET_DEVICES, UCX_TLS, FI_VERBS_DEVICE_NAME or FI_VERBS_IFACE of the job with ucx_info -d,"
            " fi_info and ibv_devices in the pod; unset, each takes what there is."
        ),
    ),
    "no_transport_between": (
        FAIL,
        "UCX found no transport that both ends have and that has what the program asks for.",
        (
            "Leave UCX_TLS unset, or name a network transport beside those of one machine: UCX_TLS=rc,sm,self and"
            " cuda_copy,cuda_ipc with GPUs. Compare ucx_info -d in both pods."
        ),
    ),
    "partition": (
        FAIL,
        "The HCA's port is in no partition that the job may use as a full member.",
        (
            "Read the table: cat /sys/class/infiniband/*/ports/1/pkeys/*. Give the port full membership in the"
            " partitions of the subnet manager, and correct UCX_IB_PKEY."
        ),
    ),
    "gid_choice": (
        FAIL,
        "UCX or libfabric can't choose a GID of the HCA's port: none fits, or the settings contradict each other.",
        (
            "See /sys/class/infiniband/*/ports/*/gids in the pod: RoCE needs a GID of an address of the pod. Leave"
            " UCX_IB_GID_INDEX, UCX_IB_ROCE_SUBNETS and FI_VERBS_GID_IDX unset."
        ),
    ),
    "unconnected": (
        FAIL,
        "Queue pairs could not be connected: the ends do not reach each other.",
        (
            "Each rail must reach the same rail of the other nodes; on RoCE compare the GIDs and addresses of both"
            " ends, on InfiniBand the LIDs and partitions (ibv_devinfo -v in both pods)."
        ),
    ),
    "transport_setting": (
        WARN,
        "UCX or libfabric corrected a setting, or refused it.",
        "Correct the variable (UCX_..., FI_...) that the text names, or remove it.",
    ),
    "transport_version": (
        FAIL,
        "UCX does not fit the libraries or the driver that it meets.",
        (
            "Use UCX, rdma-core and the program as one image has them (ucx_info -v, ldd); DEVX needs the driver and"
            " firmware of NVIDIA, and UCX_IB_MLX5_DEVX=n does without."
        ),
    ),
    "forked": (
        WARN,
        "The process makes another process (fork) while its memory is registered: data can be damaged.",
        "Set RDMAV_FORK_SAFE=1 or UCX_IB_FORK_INIT=y, or start other processes before MPI or NCCL starts.",
    ),
    "rdma_cm": (
        FAIL,
        "A connection over rdma_cm failed: the other end refused it, has ended, or has no address on this fabric.",
        (
            "See in both pods that the HCA's interface has an address, and the way to the other one: ip route get"
            " ADDRESS. rping between the two pods shows it alone (stage reachability)."
        ),
    ),
    "other_protocol": (
        FAIL,
        "The two ends of a connection have other releases or settings of UCX or libfabric.",
        "Use one image for all pods, with one set of UCX_ and FI_ variables.",
    ),
    "no_ip_of_device": (
        WARN,
        "libfabric found no interface with an address for an HCA, so it does not use it for connections (FI_EP_MSG).",
        "Give the pod an IPoIB or Ethernet interface of this HCA with an address (ip addr in the pod).",
    ),
    "no_active_port": (
        FAIL,
        "An HCA of the pod has no active port.",
        "See the link: ibstat on the node, and stage fabric; ip link where the HCA is Ethernet.",
    ),
}
