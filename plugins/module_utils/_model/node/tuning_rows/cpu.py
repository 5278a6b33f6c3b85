# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of CPUs: clocks, idle states, threads, and CPU isolation."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import OF_ITS_LIKE, OTHER

_PROFILE = (
    "On OpenShift, configure section [cpu] of the pool's Tuned (governor=performance,"
    " force_latency=cstate.id_no_zero:1|3), or the pool's PerformanceProfile, but not both. On other clusters, run"
    " tuned-adm profile accelerator-performance on the node."
)

ROWS: tuple[TuningRow, ...] = (
    TuningRow("cpu_model", "cpu", "model of the CPUs", OTHER, OF_ITS_LIKE, alike=False),
    TuningRow(
        "cpus_online",
        "cpu",
        "online CPUs",
        "A core or a socket is missing on the node.",
        "Run lscpu on the node to find the missing CPUs. If they are offline, write 1 to"
        " /sys/devices/system/cpu/cpuNUMBER/online. If the kernel does not list them, enable them in the BIOS, or"
        " replace the CPU that dmesg reports.",
    ),
    TuningRow(
        "governor",
        "cpu",
        "CPU frequency governor",
        "The CPU clock increases only after a core has been busy for a while, so the network latency varies.",
        _PROFILE,
        "performance",
        "performance",
        source="NVIDIA's TuneD profile nvidia-base, check_gpu_setup of oci-hpc",
        setting=RowSetting("cpu", "governor"),
    ),
    TuningRow(
        "cpu_driver",
        "cpu",
        "CPU frequency driver",
        OTHER,
        "Set the power management of the BIOS, and the kernel arguments intel_pstate= and amd_pstate=, as on the"
        " comparable nodes.",
    ),
    TuningRow(
        "turbo",
        "cpu",
        "turbo or boost clocks of the CPUs",
        OTHER,
        "Set no_turbo or boost below /sys/devices/system/cpu, or the setting of the BIOS, to the value of the"
        " comparable nodes.",
    ),
    TuningRow(
        "smt",
        "cpu",
        "simultaneous multithreading of the CPUs",
        OTHER,
        "Set simultaneous multithreading in the BIOS, or by the kernel argument nosmt, as on the comparable nodes.",
    ),
    TuningRow(
        "idle_latency",
        "cpu",
        "exit latency of the deepest permitted CPU idle state, in us",
        "A core in a deep idle state needs this time before it can handle an interrupt of the HCA.",
        _PROFILE,
        "<=100",
        "<=100",
        source="TuneD latency-performance, accelerator-performance",
        setting=RowSetting("cpu", "force_latency"),
    ),
    TuningRow(
        "held_latency",
        "cpu",
        "CPU latency limit that a program requests, in us",
        OTHER,
        "Run fuser -v /dev/cpu_dma_latency on the node to find the program that has the file open, and configure it as"
        " on the comparable nodes.",
    ),
    TuningRow(
        "idle_arguments",
        "cpu",
        "kernel arguments for idle states",
        OTHER,
        "Compare intel_idle.max_cstate=, processor.max_cstate= and idle= in /proc/cmdline with those of the"
        " comparable nodes. Set the same arguments in the boot loader (grubby, or /etc/default/grub), then drain"
        " and reboot the node.",
    ),
    TuningRow(
        "isolated",
        "cpu",
        "isolated CPUs",
        OTHER,
        "Set the kernel argument isolcpus, or the PerformanceProfile of the pool, as on the comparable nodes. Then"
        " drain and reboot the node.",
    ),
    TuningRow(
        "nohz_full",
        "cpu",
        "CPUs without the timer tick (nohz_full)",
        OTHER,
        "Set the kernel argument nohz_full, or the PerformanceProfile of the pool, as on the comparable nodes. Then"
        " drain and reboot the node.",
    ),
    TuningRow(
        "numa_cpus",
        "cpu",
        "CPUs of the NUMA nodes",
        OTHER,
        "Run lscpu on the node and on a comparable node. If CPUs are missing, repair or replace them. Otherwise"
        " drain the node, set NPS or SNC in its BIOS as on the comparable nodes, and reboot it.",
    ),
    TuningRow(
        "irqbalance",
        "cpu",
        "irqbalance",
        OTHER,
        "Run systemctl enable --now irqbalance on the node, or disable irqbalance, as on the comparable nodes.",
    ),
)
