# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems that UCX and libfabric write into the log of a job, by kind of problem."""

from __future__ import annotations

from ..._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/transports.py): status, cause and remedy
TRANSPORT_CAUSES: dict[str, tuple[Status, str, str]] = {
    "transport_names": (
        FAIL,
        "A variable makes UCX or libfabric use a device or a transport that the pod does not have.",
        (
            "Compare UCX_NET_DEVICES, UCX_TLS, FI_VERBS_DEVICE_NAME or FI_VERBS_IFACE of the job with ucx_info -d,"
            " fi_info and ibv_devices in the pod. If these variables are unset, UCX and libfabric use the available"
            " devices."
        ),
    ),
    "no_transport_between": (
        FAIL,
        "UCX found no transport that both processes have and that supports the operations of the program.",
        (
            "Leave UCX_TLS unset, or add a network transport to the local transports: UCX_TLS=rc,sm,self, and"
            " cuda_copy,cuda_ipc with GPUs. Compare ucx_info -d in both pods."
        ),
    ),
    "partition": (
        FAIL,
        "The HCA's port is in no partition that the job can use as a full member.",
        (
            "Read the table in the pod: cat /sys/class/infiniband/*/ports/*/pkeys/*. Give the port full membership of"
            " the partition in the configuration of the subnet manager, and correct UCX_IB_PKEY."
        ),
    ),
    "gid_choice": (
        FAIL,
        (
            "UCX or libfabric cannot select a GID of the HCA's port: no GID matches, or the settings contradict each"
            " other."
        ),
        (
            "Read the GIDs in the pod: cat /sys/class/infiniband/*/ports/*/gids/*. RoCE needs a GID of an address of"
            " the pod. Leave UCX_IB_GID_INDEX, UCX_IB_ROCE_SUBNETS and FI_VERBS_GID_IDX unset."
        ),
    ),
    "unconnected": (
        FAIL,
        "UCX or libfabric could not connect queue pairs: the two HCAs do not reach each other.",
        (
            "Verify that each rail reaches the same rail of the other nodes. On RoCE, compare the GIDs and addresses"
            " at both ends. On InfiniBand, compare the LIDs and partitions (ibv_devinfo -v in both pods)."
        ),
    ),
    "transport_setting": (
        WARN,
        "UCX or libfabric corrected or refused a setting.",
        "Correct the variable (UCX_..., FI_...) that the message under 'measured' names, or remove it.",
    ),
    "transport_version": (
        FAIL,
        "UCX does not match the libraries or the driver in the pod or on the node.",
        (
            "Use UCX, rdma-core and the program from one image (ucx_info -v, ldd). DEVX needs the driver and firmware"
            " of NVIDIA. With UCX_IB_MLX5_DEVX=n, UCX does not use DEVX."
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
            "Verify in both pods that the HCA's interface has an address and a route to the other address: ip route"
            " get ADDRESS. Run rping between the two pods to test rdma_cm alone (stage reachability)."
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
        "Give the pod an IPoIB or Ethernet interface of this HCA with an address (ip addr in the pod).",
    ),
    "no_active_port": (
        FAIL,
        "An HCA of the pod has no active port.",
        "Check the link: ibstat on the node, and stage fabric; for an Ethernet HCA, ip link on the node.",
    ),
}
