# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of stage tuning, one each: what is expected of it by profile, who says so, what harm it does otherwise, and how it is set.

Sources: NVIDIA: NVIDIA/skyhook-packages, nvidia-tuned; TuneD: redhat-performance/tuned, profiles; OCI: oracle-quickstart/oci-hpc; Azure:
Azure/azurehpc-health-checks; Imbue: imbue-ai/cluster-health; gpud: leptonai/gpud; LSR: linux-system-roles hpc; NIC operator:
Mellanox/nic-configuration-operator. What they set against each other is told and not judged.
"""

from __future__ import annotations

import dataclasses
import re
import typing

_BOUND = re.compile(r"\A(>=|<=)\s*([0-9]{1,18})\Z")
_NUMBER = re.compile(r"\A([0-9]{1,18})(?![0-9])")
_PRINTABLE = re.compile(r"\A[ -~]{1,80}\Z")

Level = typing.Literal["fail", "warn"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a row is set without a reboot: a key in a section of a profile of TuneD.

    :ivar best: value to choose where a rule takes several, such as what OpenShift's own profile has; empty: the bound of the rule, or its first value
    :ivar word: what TuneD writes for ``best``, where that is another word; no other value can then be set
    """

    section: typing.Literal["cpu", "vm", "sysctl", "modules"]
    key: str
    best: str = ""
    word: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """One thing that a node shows.

    :ivar check: id of the check that judges it, without its stage
    :ivar what: in words, with its unit
    :ivar harm: what comes of another value; for a row of which nothing is expected, of one node that has another than its like
    :ivar remedy: how to set it, on OpenShift and elsewhere
    :ivar training: rule of this profile; empty: nothing is expected
    :ivar inference: likewise
    :ivar level: of a node that does not fit the profile, or of which it could not be read; with a rule of the intent's own it is ``fail``
    :ivar source: who expects it; for a row of which nothing is expected, what experts say against each other
    :ivar alike: nodes of one kind are held against each other
    :ivar setting: how it is set without a reboot; None: it is not
    """

    name: str
    check: str
    what: str
    harm: str
    remedy: str
    training: str = ""
    inference: str = ""
    level: Level = "warn"
    source: str = ""
    alike: bool = True
    setting: typing.Optional[Setting] = None


def fits(rule: str, value: str) -> bool:
    """Whether a value is one that a rule takes: one of several with | between them, each a value, or ``>=N`` or ``<=N`` of the number that it begins with."""
    return any(_fits(option.strip(), value) for option in rule.split("|"))


def _fits(option: str, value: str) -> bool:
    bound = _BOUND.match(option)
    if not bound:
        return option == value
    number = _NUMBER.match(value)
    if not number:
        return value == "unlimited" and bound.group(1) == ">="
    return int(number.group(1)) >= int(bound.group(2)) if bound.group(1) == ">=" else int(number.group(1)) <= int(bound.group(2))


def chosen(rule: str, best: str = "") -> typing.Tuple[str, str]:
    """The one value to set for a rule, with ``>`` or ``<`` before it where the rule is a bound: what fits it already is then left as it is.

    :param best: taken where the rule takes it
    """
    options = [option.strip() for option in rule.split("|")]
    option = next((option for option in options if best and _fits(option, best)), options[0])
    bound = _BOUND.match(option)
    if not bound:
        return "", option
    return bound.group(1)[0], best if best and _fits(option, best) else bound.group(2)


def rule_of(written: typing.Any) -> typing.Optional[str]:
    """The rule that somebody wrote: a text or a whole number; None when it is none. A bare ``on`` of YAML is a boolean, and no rule."""
    if isinstance(written, bool) or not isinstance(written, (str, int)):
        return None
    text = str(written).strip()
    options = [option.strip() for option in text.split("|")]
    wrong = any(not option or (option[0] in "<>" and not _BOUND.match(option)) for option in options)
    return None if wrong or not _PRINTABLE.match(text) else text


#: least branch of the driver by version of CUDA [CUDA Toolkit release notes, table of driver versions; row S4.8]
LEAST_DRIVER = {13: 580, 12: 525, 11: 450}


def _sysctl(key: str, value: str) -> str:
    return (
        f"OpenShift: '{key}={value}' in section [sysctl] of the pool's Tuned. Elsewhere: kernel_settings_sysctl of linux-system-roles.kernel_settings, "
        f"or sysctl -w {key}={value} and a file in /etc/sysctl.d."
    )


def _argument(argument: str) -> str:
    return (
        f"OpenShift: '{argument}' in kernelArguments of the pool's MachineConfig, together with all others, so that it reboots once. "
        f"Elsewhere: grubby --update-kernel=ALL --args={argument}."
    )


_OF_ITS_LIKE = "Find out what was done to it, and set it as the others are."
_OTHER = "Jobs run in step: a node that behaves otherwise is what all others wait for."
_PROFILE = (
    "OpenShift: section [cpu] of the pool's Tuned (governor=performance, force_latency=cstate.id_no_zero:1|3), or its PerformanceProfile, never both. "
    "Elsewhere: tuned-adm profile accelerator-performance."
)
_ROCE = "NVIDIA's NIC operator: NicConfigurationTemplate, roceOptimized.enabled: true. Elsewhere, in a unit that runs at each boot: "

ROWS: typing.Tuple[Row, ...] = (
    # CPUs
    Row("cpu_model", "cpu", "model of the CPUs", _OTHER, _OF_ITS_LIKE, alike=False),
    Row(
        "cpus_online",
        "cpu",
        "CPUs that are online",
        "A core or a socket is missing there.",
        "Look for it in dmesg, and at cpu*/online in /sys/devices/system/cpu.",
    ),
    Row(
        "governor",
        "cpu",
        "governor of the CPUs' clocks",
        "Clocks go up only when a core has been busy for a while, so that latency of the network varies.",
        _PROFILE,
        "performance",
        "performance",
        source="NVIDIA nvidia-base, OCI check_gpu_setup, TuneD",
        setting=Setting("cpu", "governor"),
    ),
    Row(
        "cpu_driver",
        "cpu",
        "driver of the CPUs' clocks",
        _OTHER,
        "Compare the BIOS settings of power management, and intel_pstate= or amd_pstate= of the kernel.",
    ),
    Row(
        "turbo",
        "cpu",
        "clocks above the nominal one",
        _OTHER,
        "Write no_turbo or boost below /sys/devices/system/cpu, or set it in the BIOS as the others have it.",
    ),
    Row("smt", "cpu", "two threads on a core", _OTHER, "Set it in the BIOS, or by nosmt of the kernel, as the others have it."),
    Row(
        "idle_latency",
        "cpu",
        "latency of the deepest idle state that CPUs may go to, in us",
        "A core that sleeps deeply takes so long to answer an interrupt of the HCA.",
        _PROFILE,
        "<=100",
        "<=100",
        source="TuneD latency-performance, accelerator-performance",
        setting=Setting("cpu", "force_latency"),
    ),
    Row(
        "held_latency",
        "cpu",
        "latency to which a program holds the CPUs, in us",
        _OTHER,
        "See who has /dev/cpu_dma_latency open: fuser -v /dev/cpu_dma_latency.",
    ),
    Row("idle_arguments", "cpu", "arguments of the kernel about idle states", _OTHER, _OF_ITS_LIKE),
    Row("isolated", "cpu", "CPUs that are isolated", _OTHER, "Compare isolcpus of the kernel, or the PerformanceProfile of its pool."),
    Row("nohz_full", "cpu", "CPUs without a tick", _OTHER, "Compare nohz_full of the kernel, or the PerformanceProfile of its pool."),
    Row("numa_cpus", "cpu", "CPUs of the NUMA nodes", _OTHER, "Compare NPS or SNC in the BIOS, and look for a socket or a core that is missing."),
    Row("irqbalance", "cpu", "irqbalance", _OTHER, "systemctl enable --now irqbalance, or disable it, as the others have it."),
    # memory
    Row(
        "swap_kib",
        "memory",
        "swap, in KiB",
        "Memory that goes to a disk stops a rank, and with it all of them.",
        "swapoff -a, and its line out of /etc/fstab; OpenShift has none.",
        "0",
        "0",
        source="Azure check_hw_swap, Imbue",
    ),
    Row(
        "swappiness",
        "memory",
        "vm.swappiness",
        "It matters only where there is swap.",
        _sysctl("vm.swappiness", "10"),
        source="NVIDIA inference 1, TuneD 10; without swap any",
        setting=Setting("sysctl", "vm.swappiness"),
    ),
    Row(
        "dirty_ratio",
        "memory",
        "vm.dirty_ratio, in %",
        "Checkpoints are written out in bursts of another size.",
        _sysctl("vm.dirty_ratio", "10"),
        source="TuneD latency-performance 10, throughput-performance 40",
        setting=Setting("sysctl", "vm.dirty_ratio"),
    ),
    Row(
        "dirty_background_ratio",
        "memory",
        "vm.dirty_background_ratio, in %",
        "Checkpoints are written out in bursts of another size.",
        _sysctl("vm.dirty_background_ratio", "3"),
        source="TuneD latency-performance 3, throughput-performance 10",
        setting=Setting("sysctl", "vm.dirty_background_ratio"),
    ),
    Row(
        "thp",
        "memory",
        "transparent hugepages",
        "Jobs have other page faults on this node than on others.",
        (
            "OpenShift: transparent_hugepages in section [vm] of the pool's Tuned; a PerformanceProfile forces never. Elsewhere: "
            "kernel_settings_transparent_hugepages."
        ),
        source="TuneD hpc-compute says always for training, OpenShift's PerformanceProfile forces never",
        setting=Setting("vm", "transparent_hugepages"),
    ),
    Row(
        "thp_defrag",
        "memory",
        "defragmentation for transparent hugepages",
        "Jobs have other page faults on this node than on others.",
        "OpenShift: section [vm] of the pool's Tuned. Elsewhere: kernel_settings_transparent_hugepages_defrag.",
        setting=Setting("vm", "transparent_hugepage.defrag"),
    ),
    Row(
        "hugepages",
        "memory",
        "hugepages that are set aside",
        "A pod that asks for them can't run there.",
        "OpenShift: spec.hugepages.pages of the pool's PerformanceProfile. Elsewhere: hugepages= of the kernel, or vm.nr_hugepages.",
        source="only where a job asks for them",
    ),
    Row(
        "numa_balancing",
        "memory",
        "kernel.numa_balancing",
        "The kernel unmaps pages to see who uses them, and moves them under running ranks.",
        _sysctl("kernel.numa_balancing", "0"),
        "0",
        "0",
        source="NVIDIA gb200, TuneD hpc-compute",
        setting=Setting("sysctl", "kernel.numa_balancing"),
    ),
    Row(
        "zone_reclaim_mode",
        "memory",
        "vm.zone_reclaim_mode",
        _OTHER,
        _sysctl("vm.zone_reclaim_mode", "0"),
        source="TuneD hpc-compute and LSR 1, all others 0",
        setting=Setting("sysctl", "vm.zone_reclaim_mode"),
    ),
    Row(
        "min_free_kbytes",
        "memory",
        "vm.min_free_kbytes, in KiB",
        "Drivers that need memory in an interrupt find none, and packets are lost.",
        _sysctl("vm.min_free_kbytes", "135168"),
        ">=65536",
        ">=65536",
        source="NVIDIA gb200 65536, TuneD hpc-compute 135168",
        setting=Setting("sysctl", "vm.min_free_kbytes"),
    ),
    Row(
        "memlock",
        "memory",
        "locked memory that containers may have, in bytes",
        "RDMA registers what it locks; ibv_reg_mr fails beyond the limit. Stage host proves it by a pod.",
        "OpenShift: rdma_cluster.host.memlock of the intent. Elsewhere: LimitMEMLOCK=infinity in a drop-in of the runtime's unit.",
        "unlimited",
        "unlimited",
        source="LSR, OCI",
    ),
    # kernel and services
    Row("kernel", "kernel", "release of the kernel", _OTHER, "Update it, or bring the node back to the release of the others."),
    Row(
        "iommu",
        "kernel",
        "how the IOMMU translates for the HCA",
        "Each DMA is looked up in tables, which costs rate with small messages.",
        f"{_argument('iommu=pt')} On Arm: iommu.passthrough=1.",
        "identity",
        "identity",
        source="NVIDIA h100 iommu=pt, gb200 iommu.passthrough=1",
    ),
    Row(
        "pci_realloc",
        "kernel",
        "pci=realloc of the kernel",
        "BARs of VFs are placed otherwise there.",
        "Use the one with which VFs and GPUs both get their BARs, on all nodes.",
        source="the SR-IOV operator adds pci=realloc, NVIDIA h100-performance sets pci=realloc=off",
    ),
    Row(
        "ib_umad",
        "kernel",
        "module ib_umad",
        "Without it sminfo, ibping and the other tools of the fabric see nothing.",
        "OpenShift: 'ib_umad=+r' in section [modules] of the pool's Tuned. Elsewhere: modprobe ib_umad, and a file in /etc/modules-load.d.",
        "loaded",
        "loaded",
        source="NVIDIA nvidia-base",
        setting=Setting("modules", "ib_umad", "loaded", "+r"),
    ),
    Row(
        "rdma_shared",
        "kernel",
        "RDMA devices are shared by network namespaces",
        _OTHER,
        "rdma system set netns, before any container runs; stage network sets what the intent says.",
    ),
    Row(
        "tuned",
        "kernel",
        "profile of TuneD",
        _OTHER,
        "OpenShift: see the node's Profile in openshift-cluster-node-tuning-operator. Elsewhere: tuned-adm active.",
    ),
    Row(
        "kernel_log",
        "kernel",
        "faults of GPUs, HCAs and PCIe that the kernel has told of since it started",
        "Hardware or its driver has failed, and does again, as a rule under load.",
        "Look at the function in dmesg; NVIDIA's list of Xid says what each number means. Reset or replace it, and reboot, which empties the log.",
        "none",
        "none",
        source="Azure, Imbue, gpud",
        alike=False,
    ),
    # PCI
    Row("hca_model", "pci", "model of the HCAs", _OTHER, _OF_ITS_LIKE, alike=False),
    Row(
        "hca_numa", "pci", "NUMA nodes of the HCAs", "A rank would use an HCA across the sockets.", "Compare the slots of the HCAs, and NPS or SNC in the BIOS."
    ),
    Row(
        "irq_locality",
        "pci",
        "CPUs that serve the HCA's interrupts",
        "Each interrupt crosses the sockets.",
        "set_irq_affinity_bynode.sh NODE INTERFACE of mlnx-tools, or irqbalance without a ban on these CPUs.",
        "local",
        "local",
        source="TuneD cpu-partitioning",
    ),
    Row(
        "irq_isolated",
        "pci",
        "CPUs that serve the HCA's interrupts, and are isolated for jobs",
        "A rank that has a CPU for itself is stopped by each interrupt.",
        (
            "OpenShift: spec.globallyDisableIrqLoadBalancing of the pool's PerformanceProfile. Elsewhere: write the CPUs that are not isolated to "
            "/proc/irq/NUMBER/smp_affinity_list, or IRQBALANCE_BANNED_CPULIST of irqbalance."
        ),
        "apart",
        "apart",
        source="TuneD cpu-partitioning, OpenShift's PerformanceProfile",
    ),
    Row(
        "numa_told",
        "pci",
        "whether the BIOS says of which NUMA node a GPU or HCA is",
        "The topology manager and NCCL choose CPUs without knowing its socket, and jobs cross the sockets by chance.",
        "Update the BIOS, which has to say it (_PXM of ACPI); see numa_node of the function in /sys/bus/pci/devices.",
        "yes",
        "yes",
        source="Linux sysfs-bus-pci: -1 is unknown",
    ),
    Row(
        "max_read_request",
        "pci",
        "MaxReadReq of the HCA, in bytes",
        "It fetches memory in smaller pieces, and does not reach its rate.",
        "NVIDIA's NIC operator: NicConfigurationTemplate, pciPerformanceOptimized. Elsewhere: setpci -s ADDRESS CAP_EXP+8.w=5000:7000.",
        "4096",
        "4096",
        source="NIC operator",
    ),
    Row(
        "max_payload",
        "pci",
        "MaxPayload of the HCA, in bytes",
        "It sends in smaller pieces than HCAs of other nodes. Stage discover judges it along the path.",
        "Compare the slots and the BIOS of the nodes.",
    ),
    Row(
        "relaxed_ordering",
        "pci",
        "relaxed ordering of the HCA",
        "Its writes wait for each other, which costs rate into remote memory.",
        "mlxconfig -d ADDRESS set PCI_WR_ORDERING=1 and a reset, or setpci -s ADDRESS CAP_EXP+8.w=10:10.",
        "on",
        "on",
        source="NVIDIA GPUDirect Storage, mlx5",
    ),
    Row(
        "relaxed_ordering_gpu",
        "pci",
        "relaxed ordering of the GPU",
        _OTHER,
        "Compare NVreg_EnablePCIERelaxedOrderingMode of the module nvidia, and the BIOS of the nodes.",
        source="the driver of the GPUs decides; NVreg_EnablePCIERelaxedOrderingMode forces it",
    ),
    Row(
        "relaxed_ordering_root",
        "pci",
        "relaxed ordering of the root port above the HCA",
        _OTHER,
        "Compare the BIOS of the nodes: PCIe relaxed ordering of the slot.",
        source="of its own packets alone; what HCAs mark passes either way (PCI Express Base Specification 7.5.3.4)",
    ),
    Row("pci_way", "pci", "way to each GPU and HCA on PCI: host bridge, root port, bridges", _OTHER, "Compare the slots of the cards; lspci -tv.", alike=False),
    Row("gpus", "pci", "GPUs on PCI", "A GPU has left the bus.", "Look for it in dmesg (Xid 79), then power-cycle the node."),
    Row("gpu_model", "pci", "model of the GPUs", _OTHER, _OF_ITS_LIKE, alike=False),
    Row(
        "gpu_numa", "pci", "NUMA nodes of the GPUs", "A rank would use a GPU across the sockets.", "Compare the slots of the GPUs, and NPS or SNC in the BIOS."
    ),
    Row(
        "gpu_link_width",
        "pci",
        "lanes of the GPU's link",
        "Memory of the GPU is reached at a part of its rate.",
        "Reseat the GPU or its riser, and look at LnkSta of lspci -vv.",
        "full",
        "full",
        source="Imbue, Azure",
    ),
    Row(
        "gpu_nic_path",
        "pci",
        "way from each GPU to the nearest HCA",
        "GPUDirect RDMA crosses the sockets.",
        "Move the HCA to a slot beside the GPU; nvidia-smi topo -m shows the ways.",
        "PIX|PXB|PHB|NODE",
        "PIX|PXB|PHB|NODE",
        source="Azure",
    ),
    Row(
        "acs",
        "pci",
        "bridges between a GPU and its HCA",
        "ACS sends each packet between them up to the root complex and back, which halves the rate of GPUDirect RDMA.",
        f"{_argument('pci=disable_acs_redir=pci:0:0')} Or switch ACS off in the BIOS. A host of virtual machines needs it on.",
        "direct|exempt",
        "direct|exempt",
        source="NVIDIA nvidia-acs-disable, GPUDirect Storage; not of Arm and of Data Direct, which rdma_topo sets up",
    ),
    # GPUs
    Row(
        "gpu_driver",
        "gpu",
        "driver of the GPUs",
        "CUDA programs behave otherwise there, or refuse to run.",
        "OpenShift: spec.driver.version of the ClusterPolicy. Elsewhere: update the packages of the driver.",
    ),
    Row(
        "gpu_persistence",
        "gpu",
        "persistence mode of the GPUs",
        "The driver unloads when no job runs, and each start takes seconds longer.",
        "systemctl enable --now nvidia-persistenced; the GPU operator's driver container does it.",
        "Enabled",
        "Enabled",
        source="Azure",
    ),
    Row(
        "gpu_ecc",
        "gpu",
        "ECC of the GPUs' memory",
        "A bit that flips goes into the weights unseen.",
        "nvidia-smi -i GPU -e 1, then reset the GPU.",
        "Enabled",
        "Enabled",
        source="Azure",
    ),
    Row(
        "gpu_mig",
        "gpu",
        "MIG of the GPUs",
        "Instances of a GPU have no peer-to-peer, so NCCL goes through the host.",
        "GPU operator: label nvidia.com/mig.config=all-disabled. Elsewhere: nvidia-smi -i GPU -mig 0.",
        "Disabled",
        source="NVIDIA MIG user guide",
    ),
    Row("gpu_max_clock", "gpu", "highest clock of the GPUs' cores", _OTHER, "nvidia-smi -q -d CLOCK; nvidia-smi -rgc takes a lock back."),
    Row(
        "gpu_slowed",
        "gpu",
        "why the GPU slows itself down",
        "One slow GPU holds up all ranks.",
        "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: look at fans, inlet and power supplies of the node.",
        "none",
        "none",
        "fail",
        source="Azure, gpud",
        alike=False,
    ),
    Row(
        "p2pdma",
        "gpu",
        "CONFIG_PCI_P2PDMA of the kernel, or the module nvidia_peermem in its place",
        "The HCA gets no memory of the GPUs by DMA-BUF, and GPUDirect RDMA does not work.",
        "Run a kernel that is built with CONFIG_PCI_P2PDMA=y; or load nvidia_peermem, which needs the peer memory of DOCA-OFED.",
        "on|peermem",
        "on|peermem",
        source="siderolabs/pkgs#1356, gpud",
    ),
    # kubelet
    Row(
        "cpu_manager",
        "kubelet",
        "policy of the CPU manager",
        "Ranks share cores with others.",
        (
            "OpenShift: rdma_cluster.host.kubelet of the intent, a KubeletConfig. Elsewhere: cpuManagerPolicy in its configuration, its state file "
            "removed, a restart."
        ),
        "static",
        "static",
        source="row S4.9",
    ),
    Row("memory_manager", "kubelet", "policy of the memory manager", _OTHER, "memoryManagerPolicy in the kubelet's configuration, as the others have it."),
    Row(
        "topology_manager",
        "kubelet",
        "policy of the topology manager",
        "GPU, HCA and CPUs of a pod may be on different NUMA nodes.",
        "OpenShift: rdma_cluster.host.kubelet of the intent, a KubeletConfig. Elsewhere: topologyManagerPolicy in its configuration, and a restart.",
        "best-effort|restricted|single-numa-node",
        "best-effort|restricted|single-numa-node",
        source="row S4.9",
    ),
    Row(
        "reserved_cpus",
        "kubelet",
        "CPUs that the kubelet leaves to the system",
        _OTHER,
        "reservedSystemCPUs in the kubelet's configuration, as the others have it.",
    ),
    # network
    Row(
        "arp_announce",
        "network",
        "net.ipv4.conf.*.arp_announce",
        "With several HCAs in one subnet, one answers with the address of another.",
        _sysctl("net.ipv4.conf.all.arp_announce", "2"),
        "1|2",
        "1|2",
        source="NVIDIA nvidia-base 2, OCI 1",
        setting=Setting("sysctl", "net.ipv4.conf.all.arp_announce", "2"),
    ),
    Row(
        "arp_ignore",
        "network",
        "net.ipv4.conf.*.arp_ignore",
        "With several HCAs in one subnet, any of them answers for all.",
        _sysctl("net.ipv4.conf.all.arp_ignore", "1"),
        "1|2",
        "1|2",
        source="NVIDIA nvidia-base 1, OCI 2",
        setting=Setting("sysctl", "net.ipv4.conf.all.arp_ignore", "1"),
    ),
    Row(
        "rp_filter",
        "network",
        "net.ipv4.conf.*.rp_filter",
        "With several HCAs in one subnet, packets that come by another one are dropped.",
        _sysctl("net.ipv4.conf.all.rp_filter", "2"),
        "0|2",
        "0|2",
        source="OCI",
        setting=Setting("sysctl", "net.ipv4.conf.all.rp_filter", "2"),
    ),
    Row(
        "gc_thresh1",
        "network",
        "net.ipv4.neigh.default.gc_thresh1",
        "Neighbours are forgotten while they are needed, and connections stall in large clusters.",
        _sysctl("net.ipv4.neigh.default.gc_thresh1", "4096"),
        ">=4096",
        ">=4096",
        source="LSR",
        setting=Setting("sysctl", "net.ipv4.neigh.default.gc_thresh1", "8192"),
    ),
    Row(
        "gc_thresh2",
        "network",
        "net.ipv4.neigh.default.gc_thresh2",
        "Neighbours are forgotten while they are needed, and connections stall in large clusters.",
        _sysctl("net.ipv4.neigh.default.gc_thresh2", "8192"),
        ">=8192",
        ">=8192",
        source="LSR",
        setting=Setting("sysctl", "net.ipv4.neigh.default.gc_thresh2", "32768"),
    ),
    Row(
        "gc_thresh3",
        "network",
        "net.ipv4.neigh.default.gc_thresh3",
        "No more neighbours than these are reached at all.",
        _sysctl("net.ipv4.neigh.default.gc_thresh3", "16384"),
        ">=16384",
        ">=16384",
        source="LSR",
        setting=Setting("sysctl", "net.ipv4.neigh.default.gc_thresh3", "65536"),
    ),
    Row(
        "rmem_max",
        "network",
        "net.core.rmem_max, in bytes",
        "TCP of storage and of NCCL's start is slower there.",
        _sysctl("net.core.rmem_max", "536870912"),
        source="NVIDIA 536870912; RDMA does not use it",
        setting=Setting("sysctl", "net.core.rmem_max"),
    ),
    Row(
        "wmem_max",
        "network",
        "net.core.wmem_max, in bytes",
        "TCP of storage and of NCCL's start is slower there.",
        _sysctl("net.core.wmem_max", "536870912"),
        source="NVIDIA 536870912; RDMA does not use it",
        setting=Setting("sysctl", "net.core.wmem_max"),
    ),
    # RoCE, judged for the fabrics of Ethernet; rules come from the fabric
    Row(
        "roce_trust",
        "roce",
        "what a NIC tells priorities by",
        "RDMA packets go into the queue of all others, which loses some.",
        f"{_ROCE}mlnx_qos -i INTERFACE --trust dscp.",
        source="NIC operator",
        alike=False,
    ),
    Row(
        "roce_pfc",
        "roce",
        "priorities with PFC",
        "Nobody is told to pause, and lost packets are sent again from the first one on.",
        f"{_ROCE}dcb pfc set dev INTERFACE prio-pfc all:off 3:on.",
        source="NIC operator",
        alike=False,
    ),
    Row(
        "roce_dscp",
        "roce",
        "DSCP and the priority to which it leads",
        "RDMA packets go into the queue of all others, which loses some.",
        f"{_ROCE}dcb app replace dev INTERFACE dscp-prio 26:3.",
        source="NIC operator",
        alike=False,
    ),
    Row(
        "roce_ecn",
        "roce",
        "priorities with ECN",
        "Senders slow down only when PFC stops them, and congestion spreads over the fabric.",
        f"{_ROCE}echo 1 to ecn/roce_np/enable/3 and ecn/roce_rp/enable/3 of INTERFACE.",
        source="NIC operator",
        alike=False,
    ),
    Row(
        "roce_traffic_class",
        "roce",
        "traffic class of RDMA packets",
        "Packets of programs that say nothing themselves carry no DSCP; NCCL_IB_TC sets NCCL's.",
        f"{_ROCE}echo 106 to /sys/class/infiniband/DEVICE/tc/1/traffic_class.",
        source="NIC operator 106, OCI 105",
        alike=False,
    ),
    Row(
        "roce_tos",
        "roce",
        "TOS of connections by rdma_cm",
        "Packets of programs that say nothing themselves carry no DSCP.",
        f"{_ROCE}cma_roce_tos -d DEVICE -t 106.",
        source="NIC operator 106, OCI 105",
        alike=False,
    ),
    Row(
        "mtu",
        "roce",
        "MTU of the interface, in bytes",
        "RDMA packets carry less than 4096 bytes, which costs rate.",
        "SriovNetworkNodePolicy, mtu: 9000, for VFs; for the interface NetworkManager, and the switch before it.",
        source="room for 4096 bytes and the headers of RoCE",
        alike=False,
    ),
)

BY_NAME: typing.Dict[str, Row] = {row.name: row for row in ROWS}
