# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of PCI: position of HCAs and GPUs, the path between them, and their memory requests."""

from __future__ import annotations

from .row import TuningRow
from .words import OF_ITS_LIKE, OTHER, argument

_AT_EACH_BOOT = "In a systemd unit that runs at each boot: "

ROWS: tuple[TuningRow, ...] = (
    TuningRow("hca_model", "pci", "model of the HCAs", OTHER, OF_ITS_LIKE, alike=False),
    TuningRow(
        "hca_numa",
        "pci",
        "NUMA nodes of the HCAs",
        "A rank would use an HCA across the sockets.",
        "Compare the slots of the HCAs, and NPS or SNC in the BIOS.",
    ),
    TuningRow(
        "irq_locality",
        "pci",
        "CPUs that serve the HCA's interrupts",
        "Each interrupt crosses the sockets.",
        "set_irq_affinity_bynode.sh NODE INTERFACE of mlnx-tools, or irqbalance without a ban on these CPUs.",
        "local",
        "local",
        source="TuneD cpu-partitioning",
        elsewhere=(
            "Write the CPUs of its NUMA node to /proc/irq/NUMBER/smp_affinity_list, or run irqbalance without a ban on"
            " these CPUs."
        ),
    ),
    TuningRow(
        "irq_isolated",
        "pci",
        "CPUs that serve the HCA's interrupts, and are isolated for jobs",
        "A rank that has a CPU for itself is stopped by each interrupt.",
        "OpenShift: spec.globallyDisableIrqLoadBalancing of the pool's PerformanceProfile. Elsewhere: write the CPUs"
        " that are not isolated to /proc/irq/NUMBER/smp_affinity_list, or IRQBALANCE_BANNED_CPULIST of irqbalance.",
        "apart",
        "apart",
        source="TuneD cpu-partitioning, OpenShift's PerformanceProfile",
    ),
    TuningRow(
        "numa_told",
        "pci",
        "whether the BIOS says of which NUMA node a GPU or HCA is",
        "The topology manager and NCCL choose CPUs without knowing its socket, and jobs cross the sockets by chance.",
        "Update the BIOS, which has to say it (_PXM of ACPI); see numa_node of the function in /sys/bus/pci/devices.",
        "yes",
        "yes",
        source="Linux sysfs-bus-pci: -1 is unknown",
    ),
    TuningRow(
        "max_read_request",
        "pci",
        "MaxReadReq of the HCA, in bytes",
        "It fetches memory in smaller pieces, and does not reach its rate.",
        "NVIDIA's NIC operator: NicConfigurationTemplate, pciPerformanceOptimized. Elsewhere: setpci -s ADDRESS"
        " CAP_EXP+8.w=5000:7000.",
        "4096",
        "4096",
        source="NIC operator",
        elsewhere=f"{_AT_EACH_BOOT}setpci -s ADDRESS CAP_EXP+8.w=5000:7000.",
    ),
    TuningRow(
        "max_payload",
        "pci",
        "MaxPayload of the HCA, in bytes",
        "It sends in smaller pieces than HCAs of other nodes. Stage discover judges it along the path.",
        "Compare the slots and the BIOS of the nodes.",
    ),
    TuningRow(
        "relaxed_ordering",
        "pci",
        "relaxed ordering of the HCA",
        "Its writes wait for each other, which costs rate into remote memory.",
        "mlxconfig -d ADDRESS set PCI_WR_ORDERING=1 and a reset, or setpci -s ADDRESS CAP_EXP+8.w=10:10.",
        "on",
        "on",
        source="NVIDIA GPUDirect Storage, mlx5",
        elsewhere=f"{_AT_EACH_BOOT}setpci -s ADDRESS CAP_EXP+8.w=10:10.",
    ),
    TuningRow(
        "relaxed_ordering_gpu",
        "pci",
        "relaxed ordering of the GPU",
        OTHER,
        "Compare NVreg_EnablePCIERelaxedOrderingMode of the module nvidia, and the BIOS of the nodes.",
        source="the driver of the GPUs decides; NVreg_EnablePCIERelaxedOrderingMode forces it",
    ),
    TuningRow(
        "relaxed_ordering_root",
        "pci",
        "relaxed ordering of the root port above the HCA",
        OTHER,
        "Compare the BIOS of the nodes: PCIe relaxed ordering of the slot.",
        source="of its own packets alone; what HCAs mark passes either way (PCI Express Base Specification 7.5.3.4)",
    ),
    TuningRow(
        "pci_way",
        "pci",
        "way to each GPU and HCA on PCI: host bridge, root port, bridges",
        OTHER,
        "Compare the slots of the cards; lspci -tv.",
        alike=False,
    ),
    TuningRow(
        "gpus",
        "pci",
        "GPUs on PCI",
        "A GPU has left the bus.",
        "Look for it in dmesg (Xid 79), then power-cycle the node.",
    ),
    TuningRow("gpu_model", "pci", "model of the GPUs", OTHER, OF_ITS_LIKE, alike=False),
    TuningRow(
        "gpu_numa",
        "pci",
        "NUMA nodes of the GPUs",
        "A rank would use a GPU across the sockets.",
        "Compare the slots of the GPUs, and NPS or SNC in the BIOS.",
    ),
    TuningRow(
        "gpu_link_width",
        "pci",
        "lanes of the GPU's link",
        "Memory of the GPU is reached at a part of its rate.",
        "Reseat the GPU or its riser, and look at LnkSta of lspci -vv.",
        "full",
        "full",
        source="Imbue, Azure",
    ),
    TuningRow(
        "gpu_nic_path",
        "pci",
        "way from each GPU to the nearest HCA",
        "GPUDirect RDMA crosses the sockets.",
        "Move the HCA to a slot beside the GPU; nvidia-smi topo -m shows the ways.",
        "PIX|PXB|PHB|NODE",
        "PIX|PXB|PHB|NODE",
        source="Azure",
    ),
    TuningRow(
        "acs",
        "pci",
        "bridges between a GPU and its HCA",
        "ACS sends each packet between them up to the root complex and back, which halves the rate of GPUDirect RDMA.",
        f"{argument('pci=disable_acs_redir=pci:0:0')} Or switch ACS off in the BIOS. A host of virtual machines needs"
        " it on.",
        "direct|exempt",
        "direct|exempt",
        source="NVIDIA nvidia-acs-disable, GPUDirect Storage; not of Arm and of Data Direct, which rdma_topo sets up",
    ),
)
