# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of RoCE, checked on Ethernet fabrics. The expected values come from the fabric."""

from __future__ import annotations

from .row import TuningRow

BY_OPERATOR = (
    "Set roceOptimized.enabled: true in the NicConfigurationTemplate of NVIDIA's NIC configuration operator. Without"
    " this operator, run this command on the node now, and in a systemd unit at each boot: "
)
BY_NVIDIA = "mlnx_qos -i INTERFACE --trust dscp."

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "roce_trust",
        "roce",
        "trust mode of the NIC for priorities",
        "The NIC puts RDMA packets into the queue of all other traffic, which may lose packets.",
        f"{BY_OPERATOR}{BY_NVIDIA}",
        source="NVIDIA's NIC configuration operator",
        alike=False,
    ),
    TuningRow(
        "roce_pfc",
        "roce",
        "priorities with PFC",
        "PFC does not pause the sender, so packets are lost, and the sender retransmits all packets from the first"
        " lost packet on.",
        f"{BY_OPERATOR}dcb pfc set dev INTERFACE prio-pfc all:off 3:on.",
        source="NVIDIA's NIC configuration operator",
        alike=False,
    ),
    TuningRow(
        "roce_dscp",
        "roce",
        "mapping of DSCP to priority",
        "The NIC puts RDMA packets into the queue of all other traffic, which may lose packets.",
        f"{BY_OPERATOR}dcb app replace dev INTERFACE dscp-prio 26:3.",
        source="NVIDIA's NIC configuration operator",
        alike=False,
    ),
    TuningRow(
        "roce_ecn",
        "roce",
        "priorities with ECN",
        "Senders slow down only when PFC stops them, and congestion spreads over the fabric.",
        f"{BY_OPERATOR}echo 1 | tee /sys/class/net/INTERFACE/ecn/roce_np/enable/3"
        " /sys/class/net/INTERFACE/ecn/roce_rp/enable/3.",
        source="NVIDIA's NIC configuration operator",
        alike=False,
    ),
    TuningRow(
        "roce_traffic_class",
        "roce",
        "traffic class of RDMA packets",
        "Packets carry the DSCP of this traffic class, unless the program sets another one. The switches put them into"
        " a different queue. NCCL_IB_TC sets the traffic class of NCCL.",
        f"{BY_OPERATOR}echo 106 > /sys/class/infiniband/DEVICE/tc/1/traffic_class.",
        source="NVIDIA's NIC configuration operator 106, oci-hpc 105",
        alike=False,
    ),
    TuningRow(
        "roce_tos",
        "roce",
        "TOS of rdma_cm connections",
        "Packets of rdma_cm connections carry the DSCP of this TOS, unless the program sets another one. The switches"
        " put them into a different queue.",
        f"{BY_OPERATOR}cma_roce_tos -d DEVICE -t 106.",
        source="NVIDIA's NIC configuration operator 106, oci-hpc 105",
        alike=False,
    ),
    TuningRow(
        "mtu",
        "roce",
        "MTU of the interface, in bytes",
        "RDMA packets carry less than 4096 bytes of payload, which reduces the rate.",
        "For VFs, set mtu: 9000 in the SriovNetworkNodePolicy. For the interface, set the MTU in NetworkManager and"
        " on the switch.",
        source="room for 4096 bytes and the headers of RoCE",
        alike=False,
    ),
)
