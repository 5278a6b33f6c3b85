# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems that UCX and libfabric write into the log of a job, by kind of problem."""

from __future__ import annotations

from ...._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/transports.py): status, cause and remedy
TRANSPORT_CAUSES: dict[str, tuple[Status, str, str]] = {
    "transport_names": (
        FAIL,
        "A variable makes UCX or libfabric use a device or a transport that the pod does not have.",
        (
            "Remove UCX_NET_DEVICES, UCX_TLS, FI_VERBS_DEVICE_NAME and FI_VERBS_IFACE from the job: UCX and"
            " libfabric then use the available devices. If the job needs them, use the names that ucx_info -d,"
            " fi_info and ibv_devices print in the pod."
        ),
    ),
    "no_transport_between": (
        FAIL,
        "UCX found no transport that both processes have and that supports the operations of the program.",
        (
            "Remove UCX_TLS from the job, or set UCX_TLS=rc,sm,self (with GPUs rc,sm,self,cuda_copy,cuda_ipc)."
            " If it is not set, run ucx_info -d in both pods, and give the pod that lacks rc an RDMA device."
        ),
    ),
    "partition": (
        FAIL,
        "The HCA's port is in no partition that the job can use as a full member.",
        (
            "In the pod, run cat /sys/class/infiniband/*/ports/*/pkeys/* to see the partition keys of its port"
            " (0x8000 and above is full membership). Give the port full membership in partitions.conf of the"
            " subnet manager. If the job sets UCX_IB_PKEY, set it to one of these keys."
        ),
    ),
    "gid_choice": (
        FAIL,
        (
            "UCX or libfabric cannot select a GID of the HCA's port: no GID matches, or the settings contradict each"
            " other."
        ),
        (
            "Remove UCX_IB_GID_INDEX, UCX_IB_ROCE_SUBNETS and FI_VERBS_GID_IDX from the job. If they are not"
            " set, run cat /sys/class/infiniband/*/ports/*/gids/* in the pod: RoCE needs a GID with an address"
            " of the pod, so give the interface of the HCA an address (ipam of the fabric)."
        ),
    ),
    "unconnected": (
        FAIL,
        "UCX or libfabric could not connect queue pairs: the two HCAs do not reach each other.",
        (
            "Run stage reachability, and follow the remedies of its findings: it tests whether each HCA reaches"
            " the HCAs of the other nodes. If there are none, run ibv_devinfo -v in both pods, and compare the"
            " GIDs (RoCE) or the partitions (InfiniBand)."
        ),
    ),
    "transport_setting": (
        WARN,
        "UCX or libfabric corrected or refused a setting.",
        "Correct the variable (UCX_..., FI_...) that the message under 'measured' names, or remove it.",
    ),
    "transport_version": (
        FAIL,
        "The release of UCX does not match the libraries in the pod or the driver on the node.",
        (
            "Use UCX, rdma-core and the program from one image: ucx_info -v prints the release of UCX. If the"
            " message names DEVX, set UCX_IB_MLX5_DEVX=n in the job, or install the driver and firmware of"
            " NVIDIA on the node."
        ),
    ),
    "forked": (
        WARN,
        "The process starts another process (fork) while its memory is registered. This can damage data.",
        "Set RDMAV_FORK_SAFE=1 or UCX_IB_FORK_INIT=y, or start the other processes before MPI or NCCL starts.",
    ),
    "rdma_cm": (
        FAIL,
        "A connection over rdma_cm failed: the other process refused it, has ended, or has no address on this fabric.",
        (
            "In both pods, run ip addr and ip route get ADDRESS with the address of the other pod: the interface"
            " of the HCA must have an address and the route. If both are right, run stage bandwidth, whose"
            " finding bandwidth.rping tests rdma_cm alone."
        ),
    ),
    "other_protocol": (
        FAIL,
        "The two processes of a connection have different releases or settings of UCX or libfabric.",
        "Use one image for all pods, and the same UCX_ and FI_ variables.",
    ),
    "no_ip_of_device": (
        WARN,
        (
            "libfabric found no interface with an address for an HCA, so it does not use the HCA for connections"
            " (FI_EP_MSG)."
        ),
        (
            "Give the interface of this HCA in the pod an address: set ipam of the fabric, and run stage network. ip"
            " addr in the pod must then show it."
        ),
    ),
    "no_active_port": (
        FAIL,
        "An HCA of the pod has no active port.",
        (
            "Run ibstat on the node (for an Ethernet HCA, ip link). If the port is Down, check its cable. If it is"
            " Initializing, follow the remedies of the findings of stage fabric. Run stage virtual_functions for a"
            " virtual function."
        ),
    ),
}
