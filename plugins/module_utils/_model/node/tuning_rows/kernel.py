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
        "A device or its driver has reported a fault. Such a fault usually recurs under load.",
        "Search dmesg on the node for the PCI function. For an Xid, take the action of its number in NVIDIA's Xid"
        " catalog. Drain the node before you reset or replace the device. Then reboot the node, which clears the kernel"
        " log.",
        "none",
        "none",
        source="azurehpc-health-checks, imbue-ai/cluster-health, leptonai/gpud",
        alike=False,
    ),
    TuningRow(
        "kernel_log_corrected",
        "kernel",
        "errors that a PCIe or C2C link has corrected, logged since the kernel started",
        "The link corrected these errors, so no data was lost. Errors that continue slow the link, because it sends the"
        " packets again.",
        "With the PCI address of the function as ADDRESS, run cat /sys/bus/pci/devices/ADDRESS/aer_dev_correctable on"
        " the node before and after a job. If no number rises, waive this finding until the next boot, which clears the"
        " kernel log. If a number rises, drain the node, power it off, and reseat the card or its riser.",
        "none",
        "none",
        source="kernel documentation of PCIe AER",
        alike=False,
    ),
    TuningRow(
        "kernel_log_programs",
        "kernel",
        "Xids of programs that ended with an error on a GPU, logged since the kernel started",
        "A program ended with an error on the GPU, such as an access outside of its memory. In most cases the program"
        " is the cause, and the GPU works.",
        "Read the log of the job that ran at the time of the Xid in dmesg, and run its program with NVIDIA's Compute"
        " Sanitizer. If different programs get the Xid only on one GPU, drain the node, run dcgmi diag -r 3 on it, and"
        " replace the GPU if a test fails.",
        source="NVIDIA's Xid catalog names the program as the usual cause",
        alike=False,
    ),
)
