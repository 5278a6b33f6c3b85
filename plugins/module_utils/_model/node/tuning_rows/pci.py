# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of PCI: position of HCAs and GPUs, the path between them, and their memory requests."""

from __future__ import annotations

from .row import TuningRow
from .words import OF_ITS_LIKE, OTHER, describe_argument

_AT_EACH_BOOT = (
    "With the PCI address of the HCA as ADDRESS, run this command on the node now, and in a systemd unit at each boot: "
)

ROWS: tuple[TuningRow, ...] = (
    TuningRow("hca_model", "pci", "model of the HCAs", OTHER, OF_ITS_LIKE, alike=False),
    TuningRow(
        "hca_numa",
        "pci",
        "NUMA nodes of the HCAs",
        "A rank would use an HCA of a different CPU socket.",
        "Drain the node, set NPS or SNC in its BIOS as on the comparable nodes, or power it off and put the"
        " HCAs into the same slots as there.",
    ),
    TuningRow(
        "irq_locality",
        "pci",
        "CPUs that handle the interrupts of each HCA",
        "CPUs of another NUMA node than that of the HCA handle some of its interrupts, which adds latency.",
        "On each affected node, run set_irq_affinity_bynode.sh NUMBER INTERFACE of mlnx-tools for the interface of each"
        " such HCA, with the number in /sys/class/net/INTERFACE/device/numa_node. Or run"
        " irqbalance, and remove the CPUs of this NUMA node from IRQBALANCE_BANNED_CPULIST.",
        "local",
        "local",
        source="TuneD cpu-partitioning",
        elsewhere=(
            "Write the CPUs of the NUMA node of the HCA to /proc/irq/NUMBER/smp_affinity_list. Or run irqbalance, and"
            " remove these CPUs from IRQBALANCE_BANNED_CPULIST."
        ),
        meaning="only CPUs of the NUMA node of the HCA",
    ),
    TuningRow(
        "irq_isolated",
        "pci",
        "CPUs that handle the interrupts of each HCA",
        "Each interrupt stops a rank that has exclusive use of the CPU.",
        "On OpenShift, set spec.globallyDisableIrqLoadBalancing: true in the pool's PerformanceProfile. On other"
        " clusters, write the CPUs that are not isolated to /proc/irq/NUMBER/smp_affinity_list, or set"
        " IRQBALANCE_BANNED_CPULIST of irqbalance to the isolated CPUs.",
        "apart",
        "apart",
        source="TuneD cpu-partitioning, OpenShift's PerformanceProfile",
        meaning="only CPUs that are not isolated",
    ),
    TuningRow(
        "numa_told",
        "pci",
        "NUMA node of each GPU and HCA reported by the BIOS",
        "The topology manager and NCCL choose CPUs without information about the socket of the device, so jobs may"
        " use CPUs of a different socket.",
        "Update the BIOS, which must report the NUMA node (_PXM of ACPI). The file numa_node of the function in"
        " /sys/bus/pci/devices shows the reported value.",
        "yes",
        "yes",
        source="kernel documentation of numa_node in sysfs",
    ),
    TuningRow(
        "max_read_request",
        "pci",
        "MaxReadReq of the HCA, in bytes",
        "The HCA reads memory in smaller requests, and does not reach its rate.",
        "With NVIDIA's NIC configuration operator, set pciPerformanceOptimized in the NicConfigurationTemplate. Without"
        " it, run setpci -s ADDRESS CAP_EXP+8.w=5000:7000 on the node.",
        "4096",
        "4096",
        source="NVIDIA's NIC configuration operator",
        elsewhere=f"{_AT_EACH_BOOT}setpci -s ADDRESS CAP_EXP+8.w=5000:7000.",
    ),
    TuningRow(
        "max_payload",
        "pci",
        "MaxPayload of the HCA, in bytes",
        "Another MaxPayload indicates another slot, PCIe switch or BIOS setting, and a smaller one reduces the rate of"
        " the HCA.",
        "Compare the slot of the HCA, the PCIe switches above it (lspci -tv), and MaxPayload in the BIOS with those of"
        " a comparable node, and correct the difference.",
    ),
    TuningRow(
        "relaxed_ordering",
        "pci",
        "relaxed ordering of the HCA",
        "The writes of the HCA wait for each other, which reduces the rate of transfers into remote memory.",
        "Run setpci -s ADDRESS CAP_EXP+8.w=10:10 on the node. To keep the value after a reboot, run mlxconfig -d"
        " ADDRESS set PCI_WR_ORDERING=1, then drain and power-cycle the node.",
        "on",
        "on",
        source="NVIDIA's documentation of GPUDirect Storage",
        elsewhere=f"{_AT_EACH_BOOT}setpci -s ADDRESS CAP_EXP+8.w=10:10.",
    ),
    TuningRow(
        "relaxed_ordering_gpu",
        "pci",
        "relaxed ordering of the GPU",
        OTHER,
        "Set NVreg_EnablePCIERelaxedOrderingMode of the module nvidia (/proc/driver/nvidia/params), and the BIOS"
        " settings, as on the comparable nodes.",
        source="the driver of the GPUs decides; NVreg_EnablePCIERelaxedOrderingMode forces it",
    ),
    TuningRow(
        "relaxed_ordering_root",
        "pci",
        "relaxed ordering of the root port above the HCA",
        OTHER,
        "Drain the node, set PCIe relaxed ordering of the slot in its BIOS as on the comparable nodes, and reboot it.",
        source="applies only to packets of the root port itself (PCI Express Base Specification 7.5.3.4)",
    ),
    TuningRow(
        "pci_way",
        "pci",
        "PCI path to each GPU and HCA: host bridge, root port, bridges",
        OTHER,
        "Compare the slots of the cards between the nodes: run lspci -tv on each node.",
        alike=False,
    ),
    TuningRow(
        "gpus",
        "pci",
        "GPUs on PCI",
        "A GPU is no longer visible on the PCI bus.",
        "Search dmesg on the node for the GPU (NVIDIA: Xid 79), then drain and power-cycle the node. If the GPU"
        " stays missing, reseat or replace it.",
    ),
    TuningRow("gpu_model", "pci", "model of the GPUs", OTHER, OF_ITS_LIKE, alike=False),
    TuningRow(
        "gpu_numa",
        "pci",
        "NUMA nodes of the GPUs",
        "A rank would use a GPU of a different CPU socket.",
        "Drain the node, set NPS or SNC in its BIOS as on the comparable nodes, or power it off and put the"
        " GPUs into the same slots as there.",
    ),
    TuningRow(
        "gpu_link_width",
        "pci",
        "PCIe link width of the GPU, compared with the maximum of GPU and slot",
        "Transfers to and from the GPU memory do not reach the full PCIe rate.",
        "Run lspci -vv on the node, and compare LnkSta of the GPU with LnkCap. Drain the node, power it"
        " off, and reseat the GPU or its riser.",
        "full",
        "full",
        source="imbue-ai/cluster-health, azurehpc-health-checks",
    ),
    TuningRow(
        "gpu_nic_path",
        "pci",
        "path from each GPU to the nearest HCA",
        "GPUDirect RDMA traffic crosses the CPU sockets.",
        "Run nvidia-smi topo -m (NVIDIA) or lspci -tv on the node, which shows the paths. Drain the node, power it off,"
        " and move"
        " the HCA to a slot behind the same PCIe switch or CPU socket as the GPU.",
        "PIX|PXB|PHB|NODE",
        "PIX|PXB|PHB|NODE",
        source="azurehpc-health-checks",
    ),
    TuningRow(
        "acs",
        "pci",
        "packets between a GPU and its HCA at the PCI bridges",
        "ACS redirects each packet between the GPU and the HCA through the root complex, which halves the rate of"
        " GPUDirect RDMA.",
        f"{describe_argument('pci=disable_acs_redir=pci:0:0')} Or disable ACS in the BIOS. A host of virtual"
        " machines requires"
        " ACS.",
        "direct|exempt",
        "direct|exempt",
        source="NVIDIA's documentation of GPUDirect Storage; does not apply to Data Direct",
    ),
)
