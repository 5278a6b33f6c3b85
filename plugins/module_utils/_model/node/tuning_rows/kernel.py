# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of the kernel and services: boot arguments, loaded modules, and hardware errors in the kernel log."""

from __future__ import annotations

from .row import RowSetting, TuningRow
from .words import OTHER, describe_argument

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "kernel",
        "kernel",
        "kernel release",
        OTHER,
        "Install the kernel release of the comparable nodes on the node, then drain and reboot it.",
    ),
    TuningRow(
        "iommu",
        "kernel",
        "IOMMU translation mode of the HCA",
        "The IOMMU translates the address of every DMA access, which reduces the rate of small messages.",
        f"{describe_argument('iommu=pt')} On Arm, the argument is iommu.passthrough=1.",
        "identity",
        "identity",
        source="NVIDIA's TuneD profiles: iommu=pt for H100, iommu.passthrough=1 for GB200",
    ),
    TuningRow(
        "pci_realloc",
        "kernel",
        "kernel argument pci=realloc",
        "The kernel may assign the BARs of VFs differently on the node.",
        "On all nodes, use the value of pci=realloc with which both the VFs and the GPUs get their BARs.",
        source="the SR-IOV operator adds pci=realloc, NVIDIA's TuneD profile h100-performance sets pci=realloc=off",
    ),
    TuningRow(
        "ib_umad",
        "kernel",
        "module ib_umad",
        "Without this module, sminfo, ibping and the other fabric tools do not work.",
        "On OpenShift, add 'ib_umad=+r' to section [modules] of the pool's Tuned. On other clusters, run modprobe"
        " ib_umad on the node, and add a file to /etc/modules-load.d.",
        "loaded",
        "loaded",
        source="NVIDIA's TuneD profile nvidia-base",
        setting=RowSetting("modules", "ib_umad", "loaded", "+r"),
    ),
    TuningRow(
        "rdma_shared",
        "kernel",
        "network namespaces share RDMA devices",
        "The mode decides whether a pod sees all RDMA devices of the node or only its own, so the same pod behaves"
        " differently on this node.",
        "If the intent sets rdma_cluster.node_pool.rdma_mode, run stage network, which sets this mode. Otherwise run"
        " rdma system set netns shared (for on) or rdma system set netns exclusive (for off) on the node before any"
        " container starts.",
    ),
    TuningRow(
        "tuned",
        "kernel",
        "TuneD profile",
        OTHER,
        "On OpenShift, correct the Tuned that the node's Profile in openshift-cluster-node-tuning-operator names."
        " On other clusters, run tuned-adm profile PROFILE on the node, with the profile that tuned-adm active shows on"
        " the comparable nodes.",
    ),
    TuningRow(
        "kernel_log",
        "kernel",
        "kernel log since the boot, searched for faults of GPUs (nvidia, amdgpu), HCAs (mlx5, bnxt) and PCIe",
        "A device, its driver or a program has failed since the node started. A fault of hardware usually recurs under"
        " load. A program can cause some Xid errors, such as 13, and the link repairs PCIe errors that are corrected.",
        "Search dmesg on the node for the PCI function, and find the Xid in NVIDIA's Xid catalog"
        " (docs.nvidia.com/deploy/xid-errors). If its action is RESTART_APP, correct the program. If PCIe errors are"
        " corrected ones, act only if they increase. Otherwise drain the node, reset or replace the device, and reboot"
        " the node, which clears the kernel log.",
        "none",
        "none",
        source="azurehpc-health-checks, imbue-ai/cluster-health, leptonai/gpud",
        alike=False,
    ),
)
