# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of RoCE, checked on Ethernet fabrics. The expected values come from the fabric."""

from __future__ import annotations

from .row import TuningRow

BY_OPERATOR = (
    "NVIDIA's NIC operator: NicConfigurationTemplate, roceOptimized.enabled: true. Elsewhere, in a unit that runs at"
    " each boot: "
)
BY_NVIDIA = "mlnx_qos -i INTERFACE --trust dscp."

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "roce_trust",
        "roce",
        "what a NIC tells priorities by",
        "RDMA packets go into the queue of all others, which loses some.",
        f"{BY_OPERATOR}{BY_NVIDIA}",
        source="NIC operator",
        alike=False,
    ),
    TuningRow(
        "roce_pfc",
        "roce",
        "priorities with PFC",
        "Nobody is told to pause, and lost packets are sent again from the first one on.",
        f"{BY_OPERATOR}dcb pfc set dev INTERFACE prio-pfc all:off 3:on.",
        source="NIC operator",
        alike=False,
    ),
    TuningRow(
        "roce_dscp",
        "roce",
        "DSCP and the priority to which it leads",
        "RDMA packets go into the queue of all others, which loses some.",
        f"{BY_OPERATOR}dcb app replace dev INTERFACE dscp-prio 26:3.",
        source="NIC operator",
        alike=False,
    ),
    TuningRow(
        "roce_ecn",
        "roce",
        "priorities with ECN",
        "Senders slow down only when PFC stops them, and congestion spreads over the fabric.",
        f"{BY_OPERATOR}echo 1 to ecn/roce_np/enable/3 and ecn/roce_rp/enable/3 of INTERFACE.",
        source="NIC operator",
        alike=False,
    ),
    TuningRow(
        "roce_traffic_class",
        "roce",
        "traffic class of RDMA packets",
        "Packets of programs that say nothing themselves carry no DSCP; NCCL_IB_TC sets NCCL's.",
        f"{BY_OPERATOR}echo 106 to /sys/class/infiniband/DEVICE/tc/1/traffic_class.",
        source="NIC operator 106, OCI 105",
        alike=False,
    ),
    TuningRow(
        "roce_tos",
        "roce",
        "TOS of connections by rdma_cm",
        "Packets of programs that say nothing themselves carry no DSCP.",
        f"{BY_OPERATOR}cma_roce_tos -d DEVICE -t 106.",
        source="NIC operator 106, OCI 105",
        alike=False,
    ),
    TuningRow(
        "mtu",
        "roce",
        "MTU of the interface, in bytes",
        "RDMA packets carry less than 4096 bytes, which costs rate.",
        "SriovNetworkNodePolicy, mtu: 9000, for VFs; for the interface NetworkManager, and the switch before it.",
        source="room for 4096 bytes and the headers of RoCE",
        alike=False,
    ),
)
