# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems in the log of a job that are about HCAs and the network."""

from __future__ import annotations

from ..._model.run.findings import FAIL, WARN, Status

#: kind of a problem (_parse/job/nccl_problem.py): status, cause and remedy
NETWORK_CAUSES: dict[str, tuple[Status, str, str]] = {
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
    "collnet": (
        WARN,
        "NCCL could not use collectives in the switches (CollNet: SHARP). The job runs over rings and trees.",
        (
            "Check the aggregation manager of the subnet manager. Verify that the image has NVIDIA's SHARP plugin"
            " (libnccl-net.so of nccl-rdma-sharp-plugins). With NCCL_COLLNET_ENABLE=0, NCCL does not try to use SHARP."
        ),
    ),
}
