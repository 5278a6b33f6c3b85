# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems in the log of a job that are about HCAs and the network."""

from __future__ import annotations

from ...._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/nccl/problem.py): status, cause and remedy
NETWORK_CAUSES: dict[str, tuple[Status, str, str]] = {
    "completion": (
        FAIL,
        "A transfer over the network ended with an error, whose status the message under 'measured' has.",
        (
            "Run dmesg on the nodes of both ranks, and correct the error of the HCA that it shows at that time. If"
            " it shows none, run ibqueryerrors (on Ethernet ethtool -S), and repair the link whose error counters"
            " increase."
        ),
    ),
    "gid_change": (
        FAIL,
        (
            "The addresses (GIDs) of an HCA changed while the job ran. Queue pairs with the old addresses no longer"
            " send packets."
        ),
        (
            "On the node, run dmesg and journalctl -u NetworkManager -u systemd-networkd for that time, to find"
            " what changed the addresses of the HCA's network interface: DHCP, a bond, or an operator. Stop this"
            " change while jobs run. Remove NCCL_IB_GID_INDEX from the job, so that NCCL selects the GID by its"
            " address."
        ),
    ),
    "sm_event": (
        WARN,
        (
            "The subnet manager changed, or configured the port of an HCA again, while the job ran. The job continues"
            " if LIDs and partitions stay the same."
        ),
        (
            "Run sminfo on a node to find the master subnet manager, and read its log for that time. If the job ran"
            " to its end, no action is needed. Otherwise correct the error in the log."
        ),
    ),
    "async_event": (
        FAIL,
        "The HCA reported an event while the job ran: a port went down, or a queue pair failed.",
        (
            "Run dmesg on the node of this rank, and ibstat (on Ethernet ip link). If the port is down or went down,"
            " reseat its cable. If dmesg shows an error of the HCA, correct it."
        ),
    ),
    "failover": (
        FAIL,
        (
            "A port of an HCA failed while the job ran. NCCL tried to continue over another port"
            " (NCCL_IB_RESILIENCY_PORT_FAILOVER)."
        ),
        (
            "Run dmesg on the node of this rank, and ibqueryerrors (on Ethernet ethtool -S). If the port went"
            " down or its error counters increase, reseat its cable, then replace it."
        ),
    ),
    "slow_requests": (
        WARN,
        (
            "Requests of an HCA took longer than NCCL_IB_WQE_LATENCY_THRESHOLD_NS. The message under 'measured' names"
            " both HCAs."
        ),
        (
            "Run stage bandwidth when the job has ended, and follow the remedies of its findings on these two HCAs."
            " If there are none, the network was busy: no action is needed."
        ),
    ),
    "queue_pair": (
        FAIL,
        "NCCL could not connect queue pairs: the two HCAs do not reach each other.",
        (
            "Run stage reachability, and follow the remedies of its findings: it tests whether each HCA reaches"
            " the HCAs of the other nodes. On RoCE, also remove NCCL_IB_GID_INDEX from the job."
        ),
    ),
    "pkey": (
        FAIL,
        "The partition key that the job requests (NCCL_IB_PKEY_VALUE) is not in the table of the HCA's port.",
        (
            "In the pod, run cat /sys/class/infiniband/*/ports/*/pkeys/* to see the partition keys of its ports."
            " Set NCCL_IB_PKEY_VALUE to one of them, or make the port a member of the requested partition in"
            " partitions.conf of the subnet manager."
        ),
    ),
    "link_layers": (
        FAIL,
        "NCCL connected an InfiniBand HCA with an Ethernet HCA. These HCAs cannot reach each other.",
        (
            "In each pod, run grep . /sys/class/infiniband/*/ports/*/link_layer to see the link layer of each"
            " HCA. Name only the HCAs of one link layer in NCCL_IB_HCA, by their exact names, such as"
            " NCCL_IB_HCA='=mlx5_0,mlx5_1'."
        ),
    ),
    "nic_counts": (
        FAIL,
        "The pods of the job have different numbers of HCAs, so NCCL cannot pair them.",
        (
            "Run ls /sys/class/infiniband in the pods to find the one with fewer HCAs. Request the same devices"
            " and networks in each pod template, and set the same NCCL_IB_HCA in all pods."
        ),
    ),
    "merged_nics": (
        FAIL,
        "NCCL could not merge HCAs into one device, as NCCL_NET_FORCE_MERGE of the job requires.",
        (
            "Remove NCCL_NET_FORCE_MERGE from the job. If the job needs it, use the names that ls"
            " /sys/class/infiniband in the pod prints."
        ),
    ),
    "no_libibverbs": (
        WARN,
        "The image has no libibverbs, or its libibverbs is too old for this release of NCCL.",
        (
            "Install rdma-core in the image: libibverbs1 and ibverbs-providers on Debian and Ubuntu, libibverbs"
            " on RHEL. ldconfig -p | grep ibverbs in the pod must then list libibverbs.so.1."
        ),
    ),
    "no_device": (
        FAIL,
        "The pod lists an RDMA device, but NCCL could not open or query it.",
        (
            "Run ls /dev/infiniband in the pod. If there is no uverbs file, request the RDMA resource of the"
            " network in the pod template, so that the device plugin provides it. If there is one, run rdma"
            " system on the node: in the mode exclusive, the CNI plugin of the network must move the RDMA device"
            " into the pod (see the finding virtual_functions.rdma_device)."
        ),
    ),
    "verbs": (
        FAIL,
        (
            "A call of libibverbs failed. The message under 'measured' names the call and the error of the operating"
            " system."
        ),
        (
            "If the error is 'Cannot allocate memory', raise the memlock limit (ulimit -l in the container"
            " prints it). Otherwise run dmesg on the node, and correct the error of the HCA at that time. If"
            " there is none, use an image whose rdma-core matches the driver of the node."
        ),
    ),
    "gid_settings": (
        FAIL,
        "NCCL cannot select a GID with the settings of the job: NCCL_IB_ADDR_RANGE does not match the address family.",
        (
            "Remove NCCL_IB_ADDR_RANGE and NCCL_IB_ADDR_FAMILY from the job. If the job needs them, run cat"
            " /sys/class/infiniband/*/ports/*/gids/* in the pod, and set them to the family and the range of"
            " these GIDs."
        ),
    ),
    "routed_subnets": (
        WARN,
        "The two HCAs are in different InfiniBand subnets, and the router has no address (FLID) for the other subnet.",
        (
            "Configure the router and its FLIDs in both subnet managers (routing between subnets). If both fabrics"
            " should be one subnet, let one subnet manager serve both. Set NCCL_IB_ROUTABLE_FLID_GID_INDEX to the"
            " index of the FLID in the GID table of the HCA."
        ),
    ),
    "gpu_initiated": (
        FAIL,
        "The job requires transfers that the GPU starts itself (GIN), but the HCAs or the driver do not support them.",
        (
            "If the job does not need GIN, remove NCCL_GIN_ENABLE and NCCL_GIN_TYPE from it. Otherwise follow"
            " the remedy of the finding host.gpudirect of each node, because"
            " GIN needs nvidia_peermem or DMA-BUF. The GIN type"
            " GDAKI also needs HCAs from ConnectX-6 Dx on."
        ),
    ),
    "ignored_interface": (
        WARN,
        "The pod has no interface of the name in NCCL_OOB_NET_IFNAME, so NCCL used another interface.",
        "Run ip addr in the pod to list its interfaces, and set NCCL_OOB_NET_IFNAME to one of them, or remove it.",
    ),
    "no_interface": (
        FAIL,
        "NCCL found no interface with an address for its own TCP connections, over which the ranks find each other.",
        (
            "Run ip addr in the pod, and set NCCL_SOCKET_IFNAME to the interface of the pod network that has an"
            " address (usually eth0), or remove the variable."
        ),
    ),
    "no_network": (
        FAIL,
        "NCCL could not start the network that NCCL_NET of the job requires.",
        (
            "Remove NCCL_NET from the job, or set it to IB. Run ibv_devices in the pod: if it lists no device,"
            " request the RDMA resource of the network in the pod template. If the command is missing, install"
            " rdma-core in the image."
        ),
    ),
    "collnet": (
        WARN,
        "NCCL could not use collectives in the switches (CollNet: SHARP). The job runs over rings and trees.",
        (
            "If the job does not need SHARP, set NCCL_COLLNET_ENABLE=0. Otherwise check that the aggregation"
            " manager (sharp_am) runs beside the subnet manager, and use an image with NVIDIA's SHARP plugin"
            " (libnccl-net.so of nccl-rdma-sharp-plugins)."
        ),
    ),
}
