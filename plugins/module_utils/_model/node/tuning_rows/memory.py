# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of memory: swap, pages, and locked memory."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import OTHER, sysctl

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "swap_kib",
        "memory",
        "swap, in KiB",
        "Memory that goes to a disk stops a rank, and with it all of them.",
        "swapoff -a, and its line out of /etc/fstab; OpenShift has none.",
        "0",
        "0",
        source="Azure check_hw_swap, Imbue",
    ),
    TuningRow(
        "swappiness",
        "memory",
        "vm.swappiness",
        "It matters only where there is swap.",
        sysctl("vm.swappiness", "10"),
        source="NVIDIA inference 1, TuneD 10; without swap any",
        setting=RowSetting("sysctl", "vm.swappiness"),
    ),
    TuningRow(
        "dirty_ratio",
        "memory",
        "vm.dirty_ratio, in %",
        "Checkpoints are written out in bursts of another size.",
        sysctl("vm.dirty_ratio", "10"),
        source="TuneD latency-performance 10, throughput-performance 40",
        setting=RowSetting("sysctl", "vm.dirty_ratio"),
    ),
    TuningRow(
        "dirty_background_ratio",
        "memory",
        "vm.dirty_background_ratio, in %",
        "Checkpoints are written out in bursts of another size.",
        sysctl("vm.dirty_background_ratio", "3"),
        source="TuneD latency-performance 3, throughput-performance 10",
        setting=RowSetting("sysctl", "vm.dirty_background_ratio"),
    ),
    TuningRow(
        "thp",
        "memory",
        "transparent hugepages",
        "Jobs have other page faults on this node than on others.",
        "OpenShift: transparent_hugepages in section [vm] of the pool's Tuned; a PerformanceProfile forces never."
        " Elsewhere: kernel_settings_transparent_hugepages.",
        source="TuneD hpc-compute says always for training, OpenShift's PerformanceProfile forces never",
        setting=RowSetting("vm", "transparent_hugepages"),
    ),
    TuningRow(
        "thp_defrag",
        "memory",
        "defragmentation for transparent hugepages",
        "Jobs have other page faults on this node than on others.",
        "OpenShift: section [vm] of the pool's Tuned. Elsewhere: kernel_settings_transparent_hugepages_defrag.",
        setting=RowSetting("vm", "transparent_hugepage.defrag"),
    ),
    TuningRow(
        "hugepages",
        "memory",
        "hugepages that are set aside",
        "A pod that asks for them can't run there.",
        "OpenShift: spec.hugepages.pages of the pool's PerformanceProfile. Elsewhere: hugepages= of the kernel, or"
        " vm.nr_hugepages.",
        source="only where a job asks for them",
    ),
    TuningRow(
        "numa_balancing",
        "memory",
        "kernel.numa_balancing",
        "The kernel unmaps pages to see who uses them, and moves them under running ranks.",
        sysctl("kernel.numa_balancing", "0"),
        "0",
        "0",
        source="NVIDIA gb200, TuneD hpc-compute",
        setting=RowSetting("sysctl", "kernel.numa_balancing"),
    ),
    TuningRow(
        "zone_reclaim_mode",
        "memory",
        "vm.zone_reclaim_mode",
        OTHER,
        sysctl("vm.zone_reclaim_mode", "0"),
        source="TuneD hpc-compute and LSR 1, all others 0",
        setting=RowSetting("sysctl", "vm.zone_reclaim_mode"),
    ),
    TuningRow(
        "min_free_kbytes",
        "memory",
        "vm.min_free_kbytes, in KiB",
        "Drivers that need memory in an interrupt find none, and packets are lost.",
        sysctl("vm.min_free_kbytes", "135168"),
        ">=65536",
        ">=65536",
        source="NVIDIA gb200 65536, TuneD hpc-compute 135168",
        setting=RowSetting("sysctl", "vm.min_free_kbytes"),
    ),
    TuningRow(
        "memlock",
        "memory",
        "locked memory that containers may have, in bytes",
        "RDMA registers what it locks; ibv_reg_mr fails beyond the limit. Stage host proves it by a pod.",
        "OpenShift: rdma_cluster.host.memlock of the intent. Elsewhere: LimitMEMLOCK=infinity in a drop-in of the"
        " runtime's unit.",
        "unlimited",
        "unlimited",
        source="LSR, OCI",
    ),
)
