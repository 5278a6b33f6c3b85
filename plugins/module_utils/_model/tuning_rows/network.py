# SPDX-License-Identifier: GPL-3.0-or-later

"""The network beside RDMA: neighbours and sockets."""

from __future__ import annotations

from .row import Row, Setting
from .words import sysctl

ROWS: tuple[Row, ...] = (
    Row(
        "arp_announce",
        "network",
        "net.ipv4.conf.*.arp_announce",
        "With several HCAs in one subnet, one answers with the address of another.",
        sysctl("net.ipv4.conf.all.arp_announce", "2"),
        "1|2",
        "1|2",
        source="NVIDIA nvidia-base 2, OCI 1",
        setting=Setting("sysctl", "net.ipv4.conf.all.arp_announce", "2"),
    ),
    Row(
        "arp_ignore",
        "network",
        "net.ipv4.conf.*.arp_ignore",
        "With several HCAs in one subnet, any of them answers for all.",
        sysctl("net.ipv4.conf.all.arp_ignore", "1"),
        "1|2",
        "1|2",
        source="NVIDIA nvidia-base 1, OCI 2",
        setting=Setting("sysctl", "net.ipv4.conf.all.arp_ignore", "1"),
    ),
    Row(
        "rp_filter",
        "network",
        "net.ipv4.conf.*.rp_filter",
        "With several HCAs in one subnet, packets that come by another one are dropped.",
        sysctl("net.ipv4.conf.all.rp_filter", "2"),
        "0|2",
        "0|2",
        source="OCI",
        setting=Setting("sysctl", "net.ipv4.conf.all.rp_filter", "2"),
    ),
    Row(
        "gc_thresh1",
        "network",
        "net.ipv4.neigh.default.gc_thresh1",
        "Neighbours are forgotten while they are needed, and connections stall in large clusters.",
        sysctl("net.ipv4.neigh.default.gc_thresh1", "4096"),
        ">=4096",
        ">=4096",
        source="LSR",
        setting=Setting("sysctl", "net.ipv4.neigh.default.gc_thresh1", "8192"),
    ),
    Row(
        "gc_thresh2",
        "network",
        "net.ipv4.neigh.default.gc_thresh2",
        "Neighbours are forgotten while they are needed, and connections stall in large clusters.",
        sysctl("net.ipv4.neigh.default.gc_thresh2", "8192"),
        ">=8192",
        ">=8192",
        source="LSR",
        setting=Setting("sysctl", "net.ipv4.neigh.default.gc_thresh2", "32768"),
    ),
    Row(
        "gc_thresh3",
        "network",
        "net.ipv4.neigh.default.gc_thresh3",
        "No more neighbours than these are reached at all.",
        sysctl("net.ipv4.neigh.default.gc_thresh3", "16384"),
        ">=16384",
        ">=16384",
        source="LSR",
        setting=Setting("sysctl", "net.ipv4.neigh.default.gc_thresh3", "65536"),
    ),
    Row(
        "rmem_max",
        "network",
        "net.core.rmem_max, in bytes",
        "TCP of storage and of NCCL's start is slower there.",
        sysctl("net.core.rmem_max", "536870912"),
        source="NVIDIA 536870912; RDMA does not use it",
        setting=Setting("sysctl", "net.core.rmem_max"),
    ),
    Row(
        "wmem_max",
        "network",
        "net.core.wmem_max, in bytes",
        "TCP of storage and of NCCL's start is slower there.",
        sysctl("net.core.wmem_max", "536870912"),
        source="NVIDIA 536870912; RDMA does not use it",
        setting=Setting("sysctl", "net.core.wmem_max"),
    ),
)
