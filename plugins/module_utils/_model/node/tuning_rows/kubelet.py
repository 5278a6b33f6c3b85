# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of the kubelet: its assignment of CPUs and memory to pods."""

from __future__ import annotations

from .row import TuningRow
from .words import OTHER

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "cpu_manager",
        "kubelet",
        "CPU manager policy",
        "Ranks share CPU cores with other processes.",
        "On OpenShift, set rdma_cluster.host.kubelet in the intent, which creates a KubeletConfig. On other clusters,"
        " drain the node, set cpuManagerPolicy in the configuration of the kubelet, remove the state file of the CPU"
        " manager, and restart the kubelet.",
        "static",
        "static",
        source="kubernetes.io: Control CPU Management Policies on the Node",
    ),
    TuningRow(
        "memory_manager",
        "kubelet",
        "memory manager policy",
        OTHER,
        "Drain the node, set memoryManagerPolicy in the configuration of the kubelet to the value of the comparable"
        " nodes, remove /var/lib/kubelet/memory_manager_state, and restart the kubelet.",
    ),
    TuningRow(
        "topology_manager",
        "kubelet",
        "topology manager policy",
        "The GPU, the HCA and the CPUs of a pod may be on different NUMA nodes.",
        "On OpenShift, set rdma_cluster.host.kubelet in the intent, which creates a KubeletConfig. On other clusters,"
        " drain the node, set topologyManagerPolicy in the configuration of the kubelet, and restart the kubelet.",
        "best-effort|restricted|single-numa-node",
        "best-effort|restricted|single-numa-node",
        source="kubernetes.io: Control Topology Management Policies on a node",
    ),
    TuningRow(
        "topology_scope",
        "kubelet",
        "topology manager scope",
        OTHER,
        "OpenShift: set rdma_cluster.host.kubelet.topology_manager_scope in the intent. Elsewhere: drain the node, set"
        " topologyManagerScope in the configuration of the kubelet to the value of the comparable nodes, and restart"
        " the kubelet.",
    ),
    TuningRow(
        "reserved_cpus",
        "kubelet",
        "CPUs that the kubelet reserves for the system",
        OTHER,
        "Drain the node, set reservedSystemCPUs in the configuration of the kubelet to the value of the comparable"
        " nodes, remove the state file of the CPU manager, and restart the kubelet.",
    ),
)
