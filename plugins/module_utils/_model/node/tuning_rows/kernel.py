# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of the kernel and services: boot arguments, loaded modules, and hardware errors in the kernel log."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import OTHER, argument

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "kernel",
        "kernel",
        "release of the kernel",
        OTHER,
        "Update it, or bring the node back to the release of the others.",
    ),
    TuningRow(
        "iommu",
        "kernel",
        "how the IOMMU translates for the HCA",
        "Each DMA is looked up in tables, which costs rate with small messages.",
        f"{argument('iommu=pt')} On Arm: iommu.passthrough=1.",
        "identity",
        "identity",
        source="NVIDIA h100 iommu=pt, gb200 iommu.passthrough=1",
    ),
    TuningRow(
        "pci_realloc",
        "kernel",
        "pci=realloc of the kernel",
        "BARs of VFs are placed otherwise there.",
        "Use the one with which VFs and GPUs both get their BARs, on all nodes.",
        source="the SR-IOV operator adds pci=realloc, NVIDIA h100-performance sets pci=realloc=off",
    ),
    TuningRow(
        "ib_umad",
        "kernel",
        "module ib_umad",
        "Without it sminfo, ibping and the other tools of the fabric see nothing.",
        "OpenShift: 'ib_umad=+r' in section [modules] of the pool's Tuned. Elsewhere: modprobe ib_umad, and a file in"
        " /etc/modules-load.d.",
        "loaded",
        "loaded",
        source="NVIDIA nvidia-base",
        setting=RowSetting("modules", "ib_umad", "loaded", "+r"),
    ),
    TuningRow(
        "rdma_shared",
        "kernel",
        "RDMA devices are shared by network namespaces",
        OTHER,
        "rdma system set netns, before any container runs; stage network sets what the intent says.",
    ),
    TuningRow(
        "tuned",
        "kernel",
        "profile of TuneD",
        OTHER,
        "OpenShift: see the node's Profile in openshift-cluster-node-tuning-operator. Elsewhere: tuned-adm active.",
    ),
    TuningRow(
        "kernel_log",
        "kernel",
        "faults of GPUs, HCAs and PCIe that the kernel has told of since it started",
        "Hardware or its driver has failed, and does again, as a rule under load.",
        "Look at the function in dmesg; NVIDIA's list of Xid says what each number means. Reset or replace it, and"
        " reboot, which empties the log.",
        "none",
        "none",
        source="Azure, Imbue, gpud",
        alike=False,
    ),
)
