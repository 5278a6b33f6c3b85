# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of the kubelet: its assignment of CPUs and memory to pods."""

from __future__ import annotations

from .row import TuningRow
from .words import OTHER

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "cpu_manager",
        "kubelet",
        "policy of the CPU manager",
        "Ranks share cores with others.",
        "OpenShift: rdma_cluster.host.kubelet of the intent, a KubeletConfig. Elsewhere: cpuManagerPolicy in its"
        " configuration, its state file removed, a restart.",
        "static",
        "static",
        source="row S4.9",
    ),
    TuningRow(
        "memory_manager",
        "kubelet",
        "policy of the memory manager",
        OTHER,
        "memoryManagerPolicy in the kubelet's configuration, as the others have it.",
    ),
    TuningRow(
        "topology_manager",
        "kubelet",
        "policy of the topology manager",
        "GPU, HCA and CPUs of a pod may be on different NUMA nodes.",
        "OpenShift: rdma_cluster.host.kubelet of the intent, a KubeletConfig. Elsewhere: topologyManagerPolicy in its"
        " configuration, and a restart.",
        "best-effort|restricted|single-numa-node",
        "best-effort|restricted|single-numa-node",
        source="row S4.9",
    ),
    TuningRow(
        "reserved_cpus",
        "kubelet",
        "CPUs that the kubelet leaves to the system",
        OTHER,
        "reservedSystemCPUs in the kubelet's configuration, as the others have it.",
    ),
)
