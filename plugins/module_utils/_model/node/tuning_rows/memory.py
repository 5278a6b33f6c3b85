# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of memory: swap, pages, and locked memory."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import OTHER, describe_sysctl

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "swap_kib",
        "memory",
        "swap, in KiB",
        "If the kernel swaps memory of a rank to disk, this rank stops and all other ranks wait for it.",
        "Run swapoff -a on the node, and remove the swap entry from /etc/fstab. OpenShift nodes have no swap.",
        "0",
        "0",
        source="check_hw_swap of azurehpc-health-checks, imbue-ai/cluster-health",
    ),
    TuningRow(
        "swappiness",
        "memory",
        "vm.swappiness",
        "This value has an effect only on a node with swap.",
        describe_sysctl("vm.swappiness", "10"),
        source="NVIDIA's TuneD profile for inference 1, TuneD's own profiles 10; without swap any value",
        setting=RowSetting("sysctl", "vm.swappiness"),
    ),
    TuningRow(
        "dirty_ratio",
        "memory",
        "vm.dirty_ratio, in %",
        "The kernel writes checkpoints to storage in bursts of a different size.",
        describe_sysctl("vm.dirty_ratio", "10"),
        source="TuneD latency-performance 10, throughput-performance 40",
        setting=RowSetting("sysctl", "vm.dirty_ratio"),
    ),
    TuningRow(
        "dirty_background_ratio",
        "memory",
        "vm.dirty_background_ratio, in %",
        "The kernel writes checkpoints to storage in bursts of a different size.",
        describe_sysctl("vm.dirty_background_ratio", "3"),
        source="TuneD latency-performance 3, throughput-performance 10",
        setting=RowSetting("sysctl", "vm.dirty_background_ratio"),
    ),
    TuningRow(
        "thp",
        "memory",
        "transparent hugepages",
        "The page fault behavior of jobs differs from that on comparable nodes.",
        "On OpenShift, set transparent_hugepages in section [vm] of the pool's Tuned; a PerformanceProfile always sets"
        " never. On other clusters, set kernel_settings_transparent_hugepages.",
        source="TuneD hpc-compute says always for training, OpenShift's PerformanceProfile forces never",
        setting=RowSetting("vm", "transparent_hugepages"),
    ),
    TuningRow(
        "thp_defrag",
        "memory",
        "defragmentation for transparent hugepages",
        "The page fault behavior of jobs differs from that on comparable nodes.",
        "On OpenShift, configure section [vm] of the pool's Tuned. On other clusters, set"
        " kernel_settings_transparent_hugepages_defrag.",
        setting=RowSetting("vm", "transparent_hugepage.defrag"),
    ),
    TuningRow(
        "hugepages",
        "memory",
        "reserved hugepages, their number by size",
        "A pod that requests hugepages cannot run on the node.",
        "On OpenShift, set spec.hugepages.pages of the pool's PerformanceProfile. On other clusters, set the kernel"
        " argument hugepages=, or vm.nr_hugepages.",
        source="only where a job asks for them",
    ),
    TuningRow(
        "numa_balancing",
        "memory",
        "kernel.numa_balancing",
        "The kernel unmaps pages to track their use, and migrates pages while ranks are running.",
        describe_sysctl("kernel.numa_balancing", "0"),
        "0",
        "0",
        source="TuneD profiles: NVIDIA's for GB200, hpc-compute",
        setting=RowSetting("sysctl", "kernel.numa_balancing"),
    ),
    TuningRow(
        "zone_reclaim_mode",
        "memory",
        "vm.zone_reclaim_mode",
        OTHER,
        describe_sysctl("vm.zone_reclaim_mode", "0"),
        source="TuneD profile hpc-compute and role linux-system-roles.hpc 1, all others 0",
        setting=RowSetting("sysctl", "vm.zone_reclaim_mode"),
    ),
    TuningRow(
        "min_free_kbytes",
        "memory",
        "vm.min_free_kbytes, in KiB",
        "Drivers that allocate memory in an interrupt may fail, and packets are lost.",
        describe_sysctl("vm.min_free_kbytes", "135168"),
        ">=65536",
        ">=65536",
        source="TuneD profiles: NVIDIA's for GB200 65536, hpc-compute 135168",
        setting=RowSetting("sysctl", "vm.min_free_kbytes"),
    ),
    TuningRow(
        "memlock",
        "memory",
        "locked memory limit of containers, in bytes",
        "RDMA locks the memory that it registers, and ibv_reg_mr fails above the limit. Stage host tests the limit in"
        " a pod.",
        "Set rdma_cluster.host.memlock in the intent: unlimited: true, with by: machine_config on OpenShift (stage"
        " network applies it) or by: containerd on nodes with containerd (stage host applies it). For another runtime,"
        " set LimitMEMLOCK=infinity in a drop-in of its systemd unit, then run systemctl daemon-reload and systemctl"
        " restart of the unit on the node.",
        "unlimited",
        "unlimited",
        source="role linux-system-roles.hpc, oci-hpc",
    ),
)
