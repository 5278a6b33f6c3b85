# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of CPUs: clocks, idle states, threads, and CPU isolation."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import OF_ITS_LIKE, OTHER

_PROFILE = (
    "OpenShift: section [cpu] of the pool's Tuned (governor=performance, force_latency=cstate.id_no_zero:1|3), or its"
    " PerformanceProfile, never both. Elsewhere: tuned-adm profile accelerator-performance."
)

ROWS: tuple[TuningRow, ...] = (
    TuningRow("cpu_model", "cpu", "model of the CPUs", OTHER, OF_ITS_LIKE, alike=False),
    TuningRow(
        "cpus_online",
        "cpu",
        "CPUs that are online",
        "A core or a socket is missing there.",
        "Look for it in dmesg, and at cpu*/online in /sys/devices/system/cpu.",
    ),
    TuningRow(
        "governor",
        "cpu",
        "governor of the CPUs' clocks",
        "Clocks go up only when a core has been busy for a while, so that latency of the network varies.",
        _PROFILE,
        "performance",
        "performance",
        source="NVIDIA nvidia-base, OCI check_gpu_setup, TuneD",
        setting=RowSetting("cpu", "governor"),
    ),
    TuningRow(
        "cpu_driver",
        "cpu",
        "driver of the CPUs' clocks",
        OTHER,
        "Compare the BIOS settings of power management, and intel_pstate= or amd_pstate= of the kernel.",
    ),
    TuningRow(
        "turbo",
        "cpu",
        "clocks above the nominal one",
        OTHER,
        "Write no_turbo or boost below /sys/devices/system/cpu, or set it in the BIOS as the others have it.",
    ),
    TuningRow(
        "smt",
        "cpu",
        "two threads on a core",
        OTHER,
        "Set it in the BIOS, or by nosmt of the kernel, as the others have it.",
    ),
    TuningRow(
        "idle_latency",
        "cpu",
        "latency of the deepest idle state that CPUs may go to, in us",
        "A core that sleeps deeply takes so long to answer an interrupt of the HCA.",
        _PROFILE,
        "<=100",
        "<=100",
        source="TuneD latency-performance, accelerator-performance",
        setting=RowSetting("cpu", "force_latency"),
    ),
    TuningRow(
        "held_latency",
        "cpu",
        "latency to which a program holds the CPUs, in us",
        OTHER,
        "See who has /dev/cpu_dma_latency open: fuser -v /dev/cpu_dma_latency.",
    ),
    TuningRow("idle_arguments", "cpu", "arguments of the kernel about idle states", OTHER, OF_ITS_LIKE),
    TuningRow(
        "isolated",
        "cpu",
        "CPUs that are isolated",
        OTHER,
        "Compare isolcpus of the kernel, or the PerformanceProfile of its pool.",
    ),
    TuningRow(
        "nohz_full",
        "cpu",
        "CPUs without a tick",
        OTHER,
        "Compare nohz_full of the kernel, or the PerformanceProfile of its pool.",
    ),
    TuningRow(
        "numa_cpus",
        "cpu",
        "CPUs of the NUMA nodes",
        OTHER,
        "Compare NPS or SNC in the BIOS, and look for a socket or a core that is missing.",
    ),
    TuningRow(
        "irqbalance",
        "cpu",
        "irqbalance",
        OTHER,
        "systemctl enable --now irqbalance, or disable it, as the others have it.",
    ),
)
