# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of the host's IP network, not of RDMA: neighbor tables and sockets."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import describe_sysctl

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "arp_announce",
        "network",
        "net.ipv4.conf.*.arp_announce",
        "With several HCAs in one subnet, an HCA may announce the address of a different HCA.",
        describe_sysctl("net.ipv4.conf.all.arp_announce", "2"),
        "1|2",
        "1|2",
        source="NVIDIA's TuneD profile nvidia-base 2, oci-hpc 1",
        setting=RowSetting("sysctl", "net.ipv4.conf.all.arp_announce", "2"),
    ),
    TuningRow(
        "arp_ignore",
        "network",
        "net.ipv4.conf.*.arp_ignore",
        "With several HCAs in one subnet, any HCA may answer ARP requests for the addresses of all HCAs.",
        describe_sysctl("net.ipv4.conf.all.arp_ignore", "1"),
        "1|2",
        "1|2",
        source="NVIDIA's TuneD profile nvidia-base 1, oci-hpc 2",
        setting=RowSetting("sysctl", "net.ipv4.conf.all.arp_ignore", "1"),
    ),
    TuningRow(
        "rp_filter",
        "network",
        "net.ipv4.conf.*.rp_filter",
        "With several HCAs in one subnet, the kernel drops packets that arrive at a different HCA.",
        describe_sysctl("net.ipv4.conf.all.rp_filter", "2"),
        "0|2",
        "0|2",
        source="oci-hpc",
        setting=RowSetting("sysctl", "net.ipv4.conf.all.rp_filter", "2"),
    ),
    TuningRow(
        "gc_thresh1",
        "network",
        "net.ipv4.neigh.default.gc_thresh1",
        "The kernel removes neighbor entries that are still in use, and connections stall in large clusters.",
        describe_sysctl("net.ipv4.neigh.default.gc_thresh1", "4096"),
        ">=4096",
        ">=4096",
        source="role linux-system-roles.hpc",
        setting=RowSetting("sysctl", "net.ipv4.neigh.default.gc_thresh1", "8192"),
    ),
    TuningRow(
        "gc_thresh2",
        "network",
        "net.ipv4.neigh.default.gc_thresh2",
        "The kernel removes neighbor entries that are still in use, and connections stall in large clusters.",
        describe_sysctl("net.ipv4.neigh.default.gc_thresh2", "8192"),
        ">=8192",
        ">=8192",
        source="role linux-system-roles.hpc",
        setting=RowSetting("sysctl", "net.ipv4.neigh.default.gc_thresh2", "32768"),
    ),
    TuningRow(
        "gc_thresh3",
        "network",
        "net.ipv4.neigh.default.gc_thresh3",
        "The node cannot reach more neighbors than this limit.",
        describe_sysctl("net.ipv4.neigh.default.gc_thresh3", "16384"),
        ">=16384",
        ">=16384",
        source="role linux-system-roles.hpc",
        setting=RowSetting("sysctl", "net.ipv4.neigh.default.gc_thresh3", "65536"),
    ),
    TuningRow(
        "rmem_max",
        "network",
        "net.core.rmem_max, in bytes",
        "TCP connections of storage and of the NCCL startup are slower on the node.",
        describe_sysctl("net.core.rmem_max", "536870912"),
        source="NVIDIA's TuneD profile nvidia-base 536870912; RDMA does not use it",
        setting=RowSetting("sysctl", "net.core.rmem_max"),
    ),
    TuningRow(
        "wmem_max",
        "network",
        "net.core.wmem_max, in bytes",
        "TCP connections of storage and of the NCCL startup are slower on the node.",
        describe_sysctl("net.core.wmem_max", "536870912"),
        source="NVIDIA's TuneD profile nvidia-base 536870912; RDMA does not use it",
        setting=RowSetting("sysctl", "net.core.wmem_max"),
    ),
)
