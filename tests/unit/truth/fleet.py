# SPDX-License-Identifier: GPL-3.0-or-later

"""Healthy fleets of several shapes: an intent, and all facts that a run on them would leave, by where each stage takes
them from.

Everything in them is as it should be: each finding passes, and nothing is waived. Tests bend one fact of it.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
import uuid

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.pings import Endpoint, plan
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rounds import iterate_rounds
from ansible_collections.linerate.rdma.plugins.module_utils._check.compare.check import list_bandwidths
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.facts import LintFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES, OfCluster, Source
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import VARIABLES
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    PortErrors,
    SeenErrors,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ManagerPort,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenManagers,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import (
    attachment_kind,
    list_definitions,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclLog, PodFunction, TrainingPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller, PolicyState
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import (
    AddressFacts,
    SharedPool,
    UsedNetwork,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject, Leftovers
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    LabelSelector,
    MachinePool,
    NodePlan,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import (
    ROLE_LABEL,
    ClusterPolicies,
    HostConfig,
    KubeletStatus,
    MemlockProof,
    ObservedText,
    Roll,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import (
    ImageFacts,
    MirrorRule,
    RegistrySources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode, Workload
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts, SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.hca_counters import HcaErrors
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult, SweepRow
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import (
    ObservedPings,
    ObservedServers,
    Ping,
    PingPlan,
    PingServer,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import (
    BiosAttribute,
    BiosSetting,
    BiosValue,
    NodeBios,
    ObservedBios,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.clock import NodeClock, ObservedClock
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FirmwareSetting,
    HcaFirmware,
    NicDevice,
    NicDevices,
    NodeFirmware,
    ObservedFirmware,
    ReportedSetting,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
    Sriov,
    VfAdministration,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Identity
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import (
    NodeSetting,
    ObservedSettings,
    TuningSet,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    Acs,
    GpuDriver,
    InterfaceNetwork,
    NodePlatform,
    ObservedPlatform,
    PciEvidence,
    SriovCapability,
    VfMemory,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.feature_discovery import (
    FeatureDiscovery,
    WorkerConfig,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import OlmFacts, OperatorStatus
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OperatorFacts,
    OperatorInstallation,
    Policy,
    StateInterface,
    StateVf,
    SupportedNic,
    VfGroup,
    WantedInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

RATE = 400.0
SPINES = 4
LABEL = "feature.node.kubernetes.io/network-sriov.capable"
OPERATOR = "sriov-network-operator"
#: hosts of the job whose log is judged
JOB_HOSTS = 2
#: of a disconnected site: what the fabrics' pods are started from comes from its mirror alone
_IMAGES = ImageFacts(
    (MirrorRule("ImageTagMirrorSet site", "tag", "nvcr.io/nvidia", ("mirror.example:5000/nvidia",), True),),
    RegistrySources(blocked=("docker.io",), insecure=("mirror.example:5000",)),
)
_CONTROLLERS = (
    Controller("node-feature-discovery", "node-feature-discovery/nfd-master", "v0.18.3", 1, 1, "helm", "nfd"),
    Controller("sriov-network-operator", f"{OPERATOR}/{OPERATOR}", "v1.6.0", 1, 1, "helm", OPERATOR),
    Controller("gpu-operator", "gpu-operator/gpu-operator", "v26.3.3", 1, 1, "helm", "gpu-operator"),
)
_PCIE = PcieLink(32.0, 16, 32.0, 16, 32.0, 16, 512, 512)

_ON_OFF = (BiosValue("Enabled", "Enabled"), BiosValue("Disabled", "Disabled"))


def identity_of_node(name: str) -> Identity:
    """What the machine of a node is called, by itself and by its BMC."""
    return Identity(str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), (f"SN-{name}",))


#: by the BMC of each node
_BIOS = NodeBios(
    "Dell Inc.",
    "PowerEdge R750",
    "1.8.2",
    (
        BiosSetting(
            "sriov",
            (
                BiosAttribute(
                    "SriovGlobalEnable", "Enabled", "SR-IOV Global Enable", allowed=_ON_OFF, reset_required=True
                ),
            ),
            ("SR-?IOV",),
        ),
        BiosSetting(
            "iommu",
            (BiosAttribute("ProcVirtualization", "Enabled", "Virtualization Technology", allowed=_ON_OFF),),
            ("VT-d",),
        ),
    ),
    "/redfish/v1/Systems/System.Embedded.1/Bios/BiosRegistry",
    settings_uri="/redfish/v1/Systems/System.Embedded.1/Bios/Settings",
    apply_times=("OnReset",),
    jobs=(),
    lockdown=False,
)

#: how the nodes are tuned, by row: of a node as a whole, of its CPUs, GPUs and HCAs
_NODE_ROWS = {
    "cpu_model": "AMD EPYC 9654",
    "cpus_online": "0-255",
    "turbo": "on",
    "smt": "on",
    "held_latency": "none",
    "idle_arguments": "none",
    "isolated": "none",
    "nohz_full": "none",
    "numa_cpus": "0-255",
    "irqbalance": "runs",
    "swap_kib": "0",
    "swappiness": "10",
    "dirty_ratio": "10",
    "dirty_background_ratio": "3",
    "thp": "always",
    "thp_defrag": "madvise",
    "numa_balancing": "0",
    "zone_reclaim_mode": "0",
    "min_free_kbytes": "135168",
    "kernel": "6.12.95",
    "pci_realloc": "unset",
    "ib_umad": "loaded",
    "rdma_shared": "on",
    "tuned": "hpc-compute",
    "kernel_log": "none",
    "kernel_log_corrected": "none",
    "kernel_log_programs": "none",
    "gpus": "2",
    "cpu_manager": "static",
    "memory_manager": "none",
    "topology_manager": "single-numa-node",
    "topology_scope": "container",
    "reserved_cpus": "none",
    "gc_thresh1": "4096",
    "gc_thresh2": "8192",
    "gc_thresh3": "16384",
    "rmem_max": "536870912",
    "wmem_max": "536870912",
    "hugepages": "0",
    "memlock": "unlimited",
    "p2pdma": "on",
}
_CPU_ROWS = {"governor": "performance", "cpu_driver": "amd-pstate-epp", "idle_latency": "1"}
_GPUS = ("0000:18:00.0", "0000:2a:00.0")
_GPU_ROWS = {
    "gpu_model": "10de:2330",
    "gpu_link_width": "full",
    "gpu_link_speed": "full",
    "gpu_nic_path": "PIX",
    "gpu_numa": "0",
    "acs": "direct",
    "gpu_driver": "570.86.15",
    "gpu_persistence": "Enabled",
    "gpu_ecc": "Enabled",
    "gpu_mig": "Disabled",
    "gpu_max_clock": "1980 MHz",
    "gpu_slowed": "none",
    "gpu_fabric": "Success",
    "gpu_fabric_health": "Healthy",
    "gpu_clique": "7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8.1",
    "relaxed_ordering_gpu": "on",
}
_HCA_ROWS = {
    "hca_numa": "0",
    "numa_told": "yes",
    "irq_locality": "local",
    "irq_isolated": "apart",
    "max_read_request": "4096",
    "max_payload": "512",
    "relaxed_ordering": "on",
    "relaxed_ordering_root": "on",
    "iommu": "identity",
    "arp_announce": "2",
    "arp_ignore": "1",
    "rp_filter": "2",
}
_ROCE_ROWS = {
    "roce_trust": "dscp",
    "roce_pfc": "3",
    "roce_dscp": "26:3",
    "roce_ecn": "3",
    "roce_traffic_class": "106",
    "roce_tos": "106",
    "mtu": "9000",
}

Facts = typing.Mapping[Source, typing.Any]


@dataclasses.dataclass(frozen=True)
class Shape:
    """How large a fleet is, and of what.

    :ivar rails: HCAs of a node on the fabric ``compute``
    :ivar storage: HCAs of a node on an InfiniBand fabric of its own; 0 for none
    :ivar on_leaf: nodes on one leaf; each rail has leaves of its own
    :ivar infiniband: else ``compute`` is RoCE, with what a RoCE cluster on OpenShift has
    :ivar mixed: every other node is of another model
    :ivar functions: VFs of each HCA
    :ivar partners: of each node in each rail; None for all
    """

    name: str
    nodes: int
    rails: int
    storage: int = 0
    on_leaf: int = 16
    infiniband: bool = True
    mixed: bool = False
    functions: int = 2
    partners: typing.Optional[int] = None

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"node-{number:0{len(str(self.nodes))}d}" for number in range(1, self.nodes + 1))


PAIR = Shape("2 nodes of 4 HCAs", 2, 4)
FEW = Shape("5 nodes of 2 HCAs, two models", 5, 2, on_leaf=2, mixed=True)
ROCE = Shape("3 nodes of 2 RoCE NICs", 3, 2, infiniband=False)
TWO = Shape("3 nodes of 2 and 2 HCAs", 3, 2, 2, on_leaf=2)
MIXED = Shape("64 nodes of 8 HCAs, two models", 64, 8, mixed=True, functions=1, partners=3)
LARGE = Shape("512 nodes of 8 and 2 HCAs", 512, 8, 2, 32, functions=1, partners=1)
SHAPES = (PAIR, FEW, ROCE, TWO, MIXED, LARGE)


@dataclasses.dataclass(frozen=True)
class Fleet:
    """A fleet and what a run saw of it.

    :ivar facts: value of each field of the stages' ``Facts``, by where it comes from
    """

    shape: Shape
    intent: Intent
    facts: Facts

    def of(self, stage: str, facts: typing.Optional[Facts] = None) -> typing.Any:
        """The ``Facts`` of a stage."""
        seen = self.facts if facts is None else facts
        return TABLE[stage][0](**{field: seen[source] for field, source in SOURCES[stage].items() if source in seen})


@functools.cache
def healthy(shape: Shape) -> Fleet:
    """Made once: nobody changes it."""
    intent = parse_intent(fabrics_of(shape), [], cluster_of(shape))
    made = _Made(shape, intent)
    by_kind = made.facts()
    facts = {}
    for sources in SOURCES.values():
        for source in sources.values():
            key = (
                (source.kind, source.key)
                if isinstance(source, OfCluster)
                else getattr(source, "kind", None) or getattr(source, "field", None)
            )
            if key in by_kind:
                facts[source] = by_kind[key]
    return Fleet(shape, intent, facts)


def fabrics_of(shape: Shape) -> list[dict[str, typing.Any]]:
    compute: dict[str, typing.Any] = {
        "name": "compute",
        "profile": "sriov_infiniband",
        "select": {"subnet_manager": "any", "hcas_per_node": shape.rails},
        "virtual_functions": shape.functions,
        "resource_name": "mlx_compute",
        "network": {"name": "net-compute", "namespace": "training", "link_state": "enable"},
        "ipam": {"type": "whereabouts", "range": "100.64.0.0/14"},
        "mtu": 4092,
        "bandwidth": {"rounds": shape.partners, "directions": "both"},
    }
    if not shape.infiniband:
        compute.update(
            profile="sriov_ethernet",
            roce={"dscp": 26, "priority": 3},
            select={"vendor": "15b3", "device": "101d", "hcas_per_node": shape.rails},
            network={**compute["network"], "vlan": 100, "trust": True},
            ipam={"type": "nv-ipam", "range": "100.64.0.0/16", "pool": {"name": "compute", "per_node_block_size": 64}},
            bandwidth={"directions": "at_once", "sweep": True},
        )
    storage = {
        **compute,
        "name": "storage",
        "select": {"subnet_manager": "any", "hcas_per_node": shape.storage},
        "resource_name": "mlx_storage",
        "network": {"name": "net-storage", "namespace": "training", "link_state": "enable"},
        "ipam": {"type": "whereabouts", "range": "100.72.0.0/14"},
    }
    if not shape.storage:
        return [compute]
    # where two fabrics take VFs, each says which manager is its own
    for number, fabric in enumerate((compute, storage)):
        fabric["select"]["subnet_manager"] = identity(9, number, 1)
    return [compute, storage]


def cluster_of(shape: Shape) -> dict[str, typing.Any]:
    memlock = {"limit_gib": 8, "proof_mib": 64}
    host: dict[str, typing.Any] = {"memlock": {"by": "containerd", **memlock}, "gpudirect": "peermem"}
    # without a wish for it, a BIOS and most settings of a firmware only explain what nodes show
    asked = {} if shape.infiniband else {"bios": {"sriov": True, "iommu": True}, "firmware": {"ats_enabled": False}}
    if not shape.infiniband:
        host = {
            "memlock": {"by": "machine_config", **memlock},
            "gpudirect": "dma_buf",
            "kubelet": {"topology_manager_policy": "single-numa-node"},
        }
    # only what can be reached over the network of the fabric: the log is one job's
    return {
        "disruption": "reboot",
        "host": host,
        "tuning": {"set": True},
        "training": {"fabric": "compute", "ranks": JOB_HOSTS * shape.rails},
        **asked,
    }


class _Hca(typing.NamedTuple):
    """Where an HCA is: on which node, on which rail of which fabric (0 compute, 1 storage), and how many of its node
    come before it."""

    node: int
    fabric: int
    rail: int
    place: int


def identity(kind: int, *parts: int) -> str:
    return f"0x{kind:02x}" + "".join(f"{part:04x}" for part in (*parts, 0, 0, 0)[:3]) + "00"


def _physical(node: typing.Optional[NodeHcas]) -> typing.Iterator[Hca]:
    assert node is not None
    return (hca for hca in node.hcas if not hca.is_virtual)


class _Made:
    """Facts of a shape, kind by kind."""

    def __init__(self, shape: Shape, intent: Intent) -> None:
        self.shape, self.intent = shape, intent
        self.per_node = shape.rails + shape.storage
        self.fabrics = intent.fabrics
        self.nodes = [self._node(number) for number in range(shape.nodes)]

    def facts(self) -> dict[typing.Any, typing.Any]:
        shape, names = self.shape, self.shape.names
        hcas = {name: ObservedHcas(self.nodes[number]) for number, name in enumerate(names)}
        operators, bandwidth = self._operators(), self._bandwidth()
        facts: dict[typing.Any, typing.Any] = {
            "nodes": names,
            "variables": VARIABLES[:3],
            "images": {},
            "strict_images": False,
            "mistyped": {},
            "origins": {},
            "inventory_error": "",
            "inventory_kind": "",
            "inventory_where": "",
            "unchecked_hosts": 0,
            "check_mode": False,
            "hcas": hcas,
            "clock": {name: ObservedClock(NodeClock(1000.0, True, 0.01, 999.9, 1000.1)) for name in names},
            "tuning": {name: ObservedTuning(self._tuning(number)) for number, name in enumerate(names)},
            "platform": {
                name: ObservedPlatform(
                    dataclasses.replace(
                        self._platform(hcas[name].value), identity=identity_of_node(name), boot=f"boot-{name}"
                    )
                )
                for name in names
            },
            "bios": {name: ObservedBios(dataclasses.replace(_BIOS, identity=identity_of_node(name))) for name in names},
            "firmware": {name: ObservedFirmware(self._firmware(hcas[name].value)) for name in names},
            "subnets": dict.fromkeys(names, ObservedSubnets(self._subnets())),
            "topologies": {
                name: ObservedTopologies(self._topologies() if name == names[0] and shape.infiniband else ())
                for name in names
            },
            "hcas_after_network": hcas,
            ("operators", "operators"): operators,
            ("operators", "images"): _IMAGES,
            ("needed_operators", "operators"): self._needed(),
            ("access", "rights"): RightsFacts(40),
            ("operators_after_network", "operators"): operators,
            ("bandwidth", "bandwidth"): bandwidth,
            ("bandwidth", "fabrics"): list_bandwidths(bandwidth),
            ("nccl_log", "log"): self._log(),
            ("job_pods", "pods"): self._job_pods(),
        }
        if shape.infiniband:
            facts.update(self._pings())
        else:
            facts["nic_devices", "nics"] = NicDevices(
                tuple(self._card(name, hca) for name in names for hca in _physical(hcas[name].value))
            )
            # only a network that sets something for the VF of a pod is looked at with pods
            facts["vf_pods", "pods"] = self._vf_pods()
            # its operators are OLM's
            facts["olm", "olm"] = OlmFacts(
                (OperatorStatus("nfd", "nfd", "ready", "nfd.v1 Succeeded", "", "nfd/nfd", True, "nfd.v1", "nfd.v1"),)
            )
            facts["hcas_in_use"] = {
                name: ObservedHcas(self._node(number, in_use=True)) for number, name in enumerate(names)
            }
        facts.update(self._settings())
        facts.update(self._network())
        facts.update(self._host())
        return facts

    def _hcas(self, node: int) -> typing.Iterator[_Hca]:
        for place in range(self.per_node):
            fabric = int(place >= self.shape.rails)
            yield _Hca(node, fabric, place - fabric * self.shape.rails, place)

    def _address(self, at: _Hca, function: typing.Optional[int] = None) -> str:
        """Models have their HCAs on other buses."""
        bus = (0x90 if self.shape.mixed and at.node % 2 else 0x10) + at.place
        return f"0000:{bus:02x}:00.{0 if function is None else function + 1}"

    def _lid(self, at: _Hca) -> int:
        return 100 + at.node * self.per_node + at.place

    def _vf_device(self, at: _Hca, index: int) -> str:
        return f"mlx5_{self.per_node + at.place * self.shape.functions + index}"

    def _node(self, node: int, in_use: bool = False) -> NodeHcas:
        name, hcas = self.shape.names[node], []
        other = self.shape.mixed and node % 2
        infiniband = self.shape.infiniband
        for at in self._hcas(node):
            device = f"mlx5_{at.place}"
            model = ("1023" if other else "1021") if infiniband else "101d"
            pci = PciFunction(
                self._address(at), "15b3", model, "0207" if infiniband else "0200", "mlx5_core", at.place // 4, _PCIE
            )
            hcas.append(
                Hca(
                    device,
                    device,
                    (self._netdev(f"ib{at.place}" if infiniband else f"ens{at.place}np0", self._port(at), at),),
                    pci,
                    identity(1, node, at.place),
                    f"{name} {device}",
                    "28.43.1014" if other else "28.42.1000",
                    "MT_0000000838",
                    "MT4129",
                    (self._port(at),),
                    Sriov(16, self.shape.functions),
                )
            )
        for at in self._hcas(node):
            hcas += [
                self._virtual(at, index, in_use and not index and not at.rail) for index in range(self.shape.functions)
            ]
        return NodeHcas(tuple(hcas), boot=f"boot-{name}")

    def _port(self, at: _Hca, index: typing.Optional[int] = None) -> Port:
        own = identity(2, at.node, at.place, 0 if index is None else index + 1)
        if not self.shape.infiniband:
            return Port(1, "ACTIVE", "LinkUp", "Ethernet", RATE, 4, "NDR", mtu=4092)
        return Port(1, "ACTIVE", "LinkUp", "InfiniBand", RATE, 4, "NDR", self._lid(at), 1, own, ("0xffff",), 4092)

    def _netdev(self, name: str, port: Port, at: _Hca, function: int = 0) -> Netdev:
        if not self.shape.infiniband:
            address = f"94:6d:ae:{at.node & 0xFF:02x}:{at.place:02x}:{function:02x}"
            return Netdev(name, address, 4092, "up", port=1, speed_gbps=RATE, supported_gbps=RATE, partner_gbps=RATE)
        return Netdev(name, "00:00:10:49:fe:80", 4092, "up", port.guid, "0xfe80000000000000", 4169, 1)

    def _virtual(self, at: _Hca, index: int, taken: bool) -> Hca:
        device, own = self._vf_device(at, index), identity(2, at.node, at.place, index + 1)
        port = self._port(at, index)
        pci = PciFunction(
            self._address(at, index),
            "15b3",
            "101e",
            "0207" if self.shape.infiniband else "0200",
            "mlx5_core",
            at.place // 4,
            _PCIE,
        )
        administration = VfAdministration(own, own, "Down", 0, 0, False, True, 0, 0)
        if not self.shape.infiniband:
            administration = VfAdministration(None, None, "Up", 100 if taken else 0, 0, taken, True, 0, 0)
        return Hca(
            device,
            device,
            () if taken else (self._netdev(f"vf{at.place}v{index}", port, at, index + 1),),
            pci,
            own,
            f"{self.shape.names[at.node]} {device}",
            "28.42.1000",
            "MT_0000000838",
            "MT4126",
            (port,),
            None,
            self._address(at),
            index,
            administration,
        )

    def _platform(self, node: typing.Optional[NodeHcas]) -> NodePlatform:
        assert node is not None
        functions = tuple(self._evidence(hca, place) for place, hca in enumerate(node.hcas))
        gpu = GpuDriver("570.86.15", True, True, ("nvidia-peermem",), "24.10-0.7.0")
        return NodePlatform(
            "6.12.95",
            "x86_64",
            ("intel_iommu=on", "iommu=pt"),
            ("dmar0", "dmar1"),
            160,
            ("DMAR",),
            functions,
            (),
            gpu,
            uplinks=("eno1",),
            networks=(InterfaceNetwork("eno1", "192.168.1.0/24"),),
            addresses=("192.168.1.11",),
            locked_down=False,
        )

    def _evidence(self, hca: Hca, place: int) -> PciEvidence:
        """Where pods are to have InfiniBand the platform is looked at before VFs are made, so that PCI has to prove
        that they can be."""
        assert hca.pci is not None
        sriov = hca.sriov or Sriov()
        seen = PciEvidence(
            hca.pci.address, hca.pci.driver, sriov.total, sriov.current, 30 + place, hca.physical_function
        )
        if hca.is_virtual:
            return seen
        current = 0 if self.shape.infiniband else self.shape.functions
        offers = SriovCapability(16, 16, current, 1, 1, True, (0,))
        bus = int(hca.pci.address.split(":")[1], 16)
        return dataclasses.replace(
            seen, sriov_current=current, capability=offers, memory=VfMemory((0,)), last_bus=bus, acs=Acs(0x5F, 0x1D)
        )

    def _firmware(self, node: typing.Optional[NodeHcas]) -> NodeFirmware:
        link = "IB(1)" if self.shape.infiniband else "ETH(2)"
        values = {
            "SRIOV_EN": "True(1)",
            "NUM_OF_VFS": "16",
            "PF_NUM_OF_VF_VALID": "False(0)",
            "LINK_TYPE_P1": link,
            "ATS_ENABLED": "False(0)",
        }
        settings = tuple(FirmwareSetting(name, value, value, "0") for name, value in values.items())
        return NodeFirmware(tuple(self._firmware_of(hca, settings) for hca in _physical(node)))

    def _firmware_of(self, hca: Hca, settings: tuple[FirmwareSetting, ...]) -> HcaFirmware:
        assert hca.pci is not None
        version = ReportedSetting(hca.firmware or "", "devlink")
        psid = ReportedSetting(hca.board or "", "devlink")
        return HcaFirmware(hca.pci.address, hca.pci.device, psid, version, version, settings, "mstconfig 4.21")

    def _card(self, node: str, hca: Hca) -> NicDevice:
        assert hca.pci is not None
        return NicDevice(
            f"{node}-{hca.name}", node, (hca.pci.address,), hca.board or "", hca.firmware or "", configured=True
        )

    def _tuning(self, node: int) -> NodeTuning:
        hcas = tuple(f"mlx5_{at.place}" for at in self._hcas(node))
        rows: dict[str, tuple[RowReading, ...]] = {name: (RowReading(value),) for name, value in _NODE_ROWS.items()}
        rows.update({name: (RowReading(value, ("0-255",)),) for name, value in _CPU_ROWS.items()})
        rows.update({name: (RowReading(value, _GPUS),) for name, value in _GPU_ROWS.items()})
        rows.update({name: (RowReading(value, hcas),) for name, value in _HCA_ROWS.items()})
        ways = {
            **{address: address for address in _GPUS},
            **{f"mlx5_{at.place}": self._address(at) for at in self._hcas(node)},
        }
        rows["pci_way"] = tuple(
            RowReading(f"pci0000:00 0000:00:01.0 {address}", (name,)) for name, address in ways.items()
        )
        rows["hca_model"] = (RowReading("1023" if self.shape.mixed and node % 2 else "1021", hcas),)
        rows.update(
            {name: () if self.shape.infiniband else (RowReading(value, hcas),) for name, value in _ROCE_ROWS.items()}
        )
        return NodeTuning(rows)

    def _settings(self) -> dict[typing.Any, typing.Any]:
        """OpenShift's operator sets the nodes of one fleet, a role those of another one."""
        names = self.shape.names
        if not self.shape.infiniband:
            return {("node_tuning", "set"): TuningSet("tuned", dict.fromkeys(names, NodeSetting("set")))}
        return {
            ("node_tuning", "set"): TuningSet("kernel_settings"),
            "kernel_settings": dict.fromkeys(names, ObservedSettings({"changes": []})),
        }

    # the fabric

    def _managers(self, fabric: int) -> tuple[SubnetManager, SubnetManager]:
        return SubnetManager(1, identity(9, fabric, 1), "MASTER", 15, 100), SubnetManager(
            2, identity(9, fabric, 2), "STANDBY", 3, 9
        )

    def _subnets(self) -> tuple[SeenSubnet, ...]:
        if not self.shape.infiniband:
            return ()
        return tuple(SeenSubnet(f"mlx5_{at.place}", 1, self._managers(at.fabric)[0]) for at in self._hcas(0))

    def _topologies(self) -> tuple[SeenTopology, ...]:
        return tuple(self._topology(at) for at in self._hcas(0) if at.rail == 0)

    def _topology(self, seen_from: _Hca) -> SeenTopology:
        fabric, shape = seen_from.fabric, self.shape
        rails, leaves = (shape.rails, shape.storage)[fabric], -(-shape.nodes // shape.on_leaf)
        nodes: list[FabricNode] = []
        links: list[Link] = []
        for spine in range(SPINES):
            nodes.append(FabricNode("Switch", identity(4, fabric, spine), f"spine-{spine + 1}", 65, 50000 + spine))
        for number in range(rails * leaves):
            rail, leaf = divmod(number, leaves)
            own, lid = identity(3, fabric, number), 40000 + number
            nodes.append(FabricNode("Switch", own, f"leaf-{rail}-{leaf + 1}", 65, lid))
            for spine in range(SPINES):
                end = LinkEnd("Switch", identity(4, fabric, spine), 1 + number, 50000 + spine)
                links.append(Link(LinkEnd("Switch", own, 40 + spine, lid), end, 4, "NDR"))
            for node in range(leaf * shape.on_leaf, min(shape.nodes, (leaf + 1) * shape.on_leaf)):
                at = _Hca(node, fabric, rail, rail + fabric * shape.rails)
                nodes.append(
                    FabricNode(
                        "Ca", identity(1, node, at.place), f"{shape.names[node]} mlx5_{at.place}", 1, self._lid(at)
                    )
                )
                end = LinkEnd("Ca", identity(1, node, at.place), 1, self._lid(at), identity(2, node, at.place))
                links.append(Link(LinkEnd("Switch", own, 1 + node % shape.on_leaf, lid), end, 4, "NDR"))
        master, standby = self._managers(fabric)
        for place, manager in enumerate((master, standby)):
            nodes.append(FabricNode("Ca", identity(8, fabric, place), f"sm-{place + 1} mlx5_0", 1, manager.lid))
            end = LinkEnd("Ca", identity(8, fabric, place), 1, manager.lid, manager.guid)
            links.append(Link(LinkEnd("Switch", identity(3, fabric, place), 39, 40000 + place), end, 4, "NDR"))
        managers = SeenManagers(
            (ManagerPort(1, master), ManagerPort(2, standby)), None, master.guid, 100, 120, 10.0, True
        )
        counters = ErrorReport((PortErrors(identity(3, fabric, 0), 1, {"SymbolErrorCounter": 3}),), 2 * len(links))
        errors = SeenErrors(counters, counters, 10.0)
        device = f"mlx5_{seen_from.place}"
        return SeenTopology(
            device,
            1,
            Topology(tuple(nodes), tuple(links)),
            None,
            managers,
            SeenCapabilities(links=2 * len(links)),
            errors,
        )

    def _pings(self) -> dict[str, typing.Any]:
        shape, names = self.shape, self.shape.names
        rails = [
            {
                names[node]: Endpoint(f"mlx5_{place}", 1, self._lid(_Hca(node, 0, 0, place)))
                for node in range(shape.nodes)
            }
            for place in range(self.per_node)
        ]
        planned: dict[str, PingPlan] = plan(rails, shape.partners)
        pings = {
            name: ObservedPings(
                tuple(
                    Ping(task.device, task.port, lid, 1000, 1000) for task in planned[name].clients for lid in task.lids
                )
            )
            for name in names
        }
        serving = {
            name: ObservedServers(tuple(PingServer(port.device, port.port) for port in planned[name].servers))
            for name in names
        }
        return {"ping_plan": planned, "ping_servers": serving, "pings": pings, "ping_servers_stopped": serving}

    # the cluster

    def _resource(self, fabric: Fabric) -> int:
        return fabric.select.hcas_per_node * self.shape.functions

    def _operators(self) -> OperatorFacts:
        shape, names = self.shape, self.shape.names
        labels = {LABEL: "true", "node-role.kubernetes.io/worker": ""}
        offered = {f"openshift.io/{fabric.resource_name}": self._resource(fabric) for fabric in self.fabrics}
        deployment = Workload(OPERATOR, OPERATOR, 1, 1, ("ghcr.io/k8snetworkplumbingwg/sriov-network-operator:v1.6.0",))
        daemon = Workload("sriov-network-config-daemon", OPERATOR, shape.nodes, shape.nodes, (), names)
        discovery = FeatureDiscovery(
            Workload("nfd-worker", "node-feature-discovery", shape.nodes, shape.nodes, (), names), {}, WorkerConfig()
        )
        return OperatorFacts(
            tuple(sorted({name for fabric in self.fabrics for name in list_definitions(fabric)})),
            (OperatorInstallation(deployment, "1.6.0", "helm", "openshift.io"),),
            (OPERATOR,),
            tuple(ClusterNode(name, labels, True, False, offered, f"boot-{name}") for name in names),
            tuple(self._state(number) for number in range(shape.nodes)),
            daemon,
            tuple(self._policy(fabric) for fabric in self.fabrics),
            (SupportedNic("15b3", "1021", "101e"),),
            (discovery,),
            (),
            (Workload("kube-multus-ds", "kube-system", shape.nodes, shape.nodes, (), names),),
            1,
            len(self.fabrics),
            namespace=OPERATOR,
        )

    def _needed(self) -> OperatorsSeen:
        if self.intent.cluster.host.gpudirect != "peermem":
            return OperatorsSeen(controllers=_CONTROLLERS[:2])
        return OperatorsSeen(
            controllers=_CONTROLLERS, configurations=(PolicyState("ClusterPolicy", "gpu-cluster-policy", "ready"),)
        )

    def _policy(self, fabric: Fabric) -> Policy:
        return Policy(
            f"linerate-{fabric.name}",
            fabric.resource_name,
            self.shape.functions,
            {LABEL: "true"},
            "15b3",
            mtu=fabric.mtu or 0,
            rdma=True,
        )

    def _state(self, node: int) -> NodeState:
        wanted, seen, count = [], [], self.shape.functions
        link = "IB" if self.shape.infiniband else "ETH"
        hcas = {hca.name: hca for hca in self.nodes[node].hcas}
        for at in self._hcas(node):
            fabric, hca = self.fabrics[at.fabric], hcas[f"mlx5_{at.place}"]
            netdev, address = hca.netdevs[0].name, self._address(at)
            group = VfGroup(f"linerate-{fabric.name}", fabric.resource_name, "netdevice", 4092, True, 0, count - 1)
            wanted.append(WantedInterface(address, count, netdev, (group,), 4092, link))
            vfs = tuple(
                StateVf(
                    index, self._address(at, index), "mlx5_core", f"vf{at.place}v{index}", self._told(at, index), 4092
                )
                for index in range(count)
            )
            device = hca.pci.device if hca.pci else ""
            seen.append(
                StateInterface(netdev, address, "15b3", device, "mlx5_core", link, 4092, 16, count, vfs, "legacy", "up")
            )
        return NodeState(
            self.shape.names[node], tuple(wanted), tuple(seen), "Succeeded", "", "Idle", "Idle", 3, "shared", "shared"
        )

    def _told(self, at: _Hca, index: int) -> typing.Optional[str]:
        """The daemon writes the bytes of a GUID the wrong way round."""
        if not self.shape.infiniband:
            return None
        digits = identity(2, at.node, at.place, index + 1)[2:]
        return ":".join(reversed([digits[place : place + 2] for place in range(0, 16, 2)]))

    def _network(self) -> dict[typing.Any, typing.Any]:
        names, openshift = self.shape.names, not self.shape.infiniband
        applied = [AppliedObject("Namespace", "training", action="unchanged")]
        if openshift:
            applied.append(AppliedObject("MachineConfig", "99-worker-linerate-memlock", action="created"))
            applied.append(AppliedObject("KubeletConfig", "linerate-worker", action="created"))
            applied.append(AppliedObject("IPPool", "compute", "nvidia-network-operator", "compute", "created"))
        sync = []
        for fabric in self.fabrics:
            applied.append(
                AppliedObject("SriovNetworkNodePolicy", f"linerate-{fabric.name}", OPERATOR, fabric.name, "created")
            )
            applied.append(
                AppliedObject(attachment_kind(fabric), fabric.network.name, OPERATOR, fabric.name, "unchanged")
            )
            count, matched = (
                self._resource(fabric),
                tuple(self._address(at) for at in self._hcas(0) if self.fabrics[at.fabric] == fabric),
            )
            sync += [
                SyncNode(fabric.name, name, "ready", f"{count} openshift.io/{fabric.resource_name}", "", matched, count)
                for name in names
            ]
        taken = (
            UsedNetwork("pods", "10.244.0.0/16", "cluster"),
            UsedNetwork("services", "10.96.0.0/12", "ServiceCIDR kubernetes"),
            UsedNetwork("node", "192.168.1.11/32", "node node-1", node="node-1"),
            UsedNetwork("attachment", "100.80.0.0/16", "default/other", "whereabouts"),
        )
        pools = (
            (SharedPool("IPPool", "nvidia-network-operator", "compute", "100.64.0.0/16", 64, names),)
            if openshift
            else ()
        )
        planned = DisruptionPlan(tuple(NodePlan(name, "configure") for name in names))
        rolls: tuple[Roll, ...] = ()
        if openshift:
            nodes = tuple(
                NodePlan(
                    name, "reboot", ("KubeletConfig linerate-kubelet is new",), ("default/web",), rolled_by="worker"
                )
                for name in names
            )
            planned = DisruptionPlan(
                nodes, (PoolPlan("worker", names, 1, len(names), "maxUnavailable is 1", machines=True),)
            )
            rolls = (Roll("worker", 1, "rendered-worker-2", len(names), len(names), 300.0),)
        facts: dict[typing.Any, typing.Any] = {
            ("applied", "applied"): tuple(applied),
            ("applied", "leftovers"): Leftovers(),
            ("network_objects", "unmade"): {},
            ("network_objects", "lint"): LintFacts(),
            ("sync", "sync"): SyncFacts(True, False, 24.0, tuple(sync)),
            ("addresses", "addresses"): AddressFacts(taken, 20, (), pools),
            ("disruption", "allowed"): True,
            ("disruption", "plan"): planned,
        }
        if openshift:
            facts.update(
                {("rolls", "rolls"): rolls, ("rolls", "kubelet"): self._kubelet(), ("roll_prepared", "error"): ""}
            )
        return facts

    def _kubelet(self) -> KubeletStatus:
        label = "pools.operator.machineconfiguration.openshift.io/worker"
        config = HostConfig(
            "KubeletConfig",
            "linerate-kubelet",
            "topologyManagerPolicy",
            {},
            LabelSelector({label: ""}),
            ("99-worker-generated-kubelet",),
            "",
            True,
        )
        other = HostConfig(
            "KubeletConfig", "of-somebody", "maxPods", {}, LabelSelector({"custom": "infra"}), (), "", True
        )
        nodes = LabelSelector({"node-role.kubernetes.io/worker": ""})
        pool = MachinePool(
            "worker",
            nodes,
            wanted_config="rendered-worker-2",
            current_config="rendered-worker-2",
            machines=self.shape.nodes,
            updated=self.shape.nodes,
            conditions={"Updating": "False", "Degraded": "False"},
            config_selector=LabelSelector({ROLE_LABEL: "worker"}),
            sources=("00-worker", "99-worker-generated-kubelet"),
            labels={label: ""},
        )
        return KubeletStatus((config,), (other,), (pool,))

    def _host(self) -> dict[typing.Any, typing.Any]:
        names, limit = self.shape.names, 8 << 30
        proofs = tuple(
            MemlockProof(
                fabric.name,
                name,
                f"training/memlock-{number}",
                65532,
                limit,
                limit,
                self._vf_device(_Hca(number, 0, 0, 0), 0),
                64 << 20,
                64 << 20,
                "registered",
            )
            for fabric in self.fabrics
            for number, name in enumerate(names)
        )
        if not self.shape.infiniband:
            # its MachineConfigPool rolled all nodes
            return {
                ("memlock", "proofs"): proofs,
                "tuning_after_network": {
                    name: ObservedTuning(self._tuning(number)) for number, name in enumerate(names)
                },
                "platform_after_network": {
                    name: ObservedPlatform(self._platform(self.nodes[number])) for number, name in enumerate(names)
                },
            }
        return {
            ("memlock", "proofs"): proofs,
            "containerd": {name: ObservedText(str(limit)) for name in names},
            ("cluster_policy", "policies"): ClusterPolicies(("cluster-policy",), "ready", True),
        }

    # what pods do

    def _pod(self, fabric: Fabric, at: _Hca) -> RdmaPod:
        return RdmaPod(
            fabric.name,
            self.shape.names[at.node],
            f"linerate-{fabric.name}-{at.node}-{at.rail}",
            "training",
            self._vf_device(at, 0),
            f"100.{64 + 8 * at.fabric}.{at.rail + 16 * (at.node // 250)}.{at.node % 250 + 1}",
            self._address(at, 0),
            "net1",
            RATE,
            504.1,
            "",
            at.rail,
            self._address(at),
            "0-31",
            "bound to NUMA node 0",
        )

    def _vf_pods(self) -> tuple[RdmaPod, ...]:
        return tuple(
            self._pod(self.fabrics[0], at)
            for node in range(self.shape.nodes)
            for at in self._hcas(node)
            if at.rail == 0
        )

    def _bandwidth(self) -> BandwidthFacts:
        shape, names = self.shape, self.shape.names
        pods = tuple(self._pod(self.fabrics[at.fabric], at) for node in range(shape.nodes) for at in self._hcas(node))
        pairs = []
        for at in self._hcas(0):
            fabric = self.fabrics[at.fabric]
            wanted = fabric.bandwidth.rounds
            for turn in iterate_rounds(names, wanted if isinstance(wanted, int) else None):
                for one, other in turn:
                    both = ((one, other), (other, one)) if fabric.bandwidth.directions == "both" else ((one, other),)
                    pairs += [self._result(fabric, client, server, at.rail) for client, server in both]
        return BandwidthFacts(pods, tuple(pairs))

    def _result(self, fabric: Fabric, client: str, server: str, rail: int) -> PairResult:
        average = 780.0 if fabric.bandwidth.directions == "at_once" else 390.0
        sweep = (SweepRow(65536, 350.0), SweepRow(1048576, average)) if fabric.bandwidth.sweep else ()
        commands = ("rping -c", "ib_write_bw -d")
        return PairResult(
            fabric.name,
            client,
            server,
            5,
            "",
            "",
            average,
            average + 4,
            1048576,
            5000,
            "",
            "",
            12.0,
            commands,
            rail,
            0,
            sweep,
            packet_bytes=4096 if self.shape.infiniband else 2048,
            gid_index=None if self.shape.infiniband else 3,
            errors=() if self.shape.infiniband else self._errors(fabric, client, server, rail),
            traffic_class=fabric.roce.traffic_class if fabric.roce is not None else None,
        )

    def _errors(self, fabric: Fabric, client: str, server: str, rail: int) -> tuple[HcaErrors, ...]:
        """The error counters of both devices of a pair, none of which rose."""
        return tuple(
            HcaErrors(node, self._vf_device(at, 0), 12.0, 12)
            for node in (client, server)
            for at in self._hcas(self.shape.names.index(node))
            if (self.fabrics[at.fabric].name, at.rail) == (fabric.name, rail)
        )

    def _job(self) -> Job:
        hcas = tuple(self._vf_device(at, 0) for at in self._hcas(0) if not at.fabric)
        return Job(hosts=JOB_HOSTS, gpus=self.shape.rails, hcas=hcas, channels=self.shape.rails)

    def _log(self) -> NcclLog:
        log: NcclLog = parse(self._job().lines())
        return log

    def _job_pods(self) -> tuple[TrainingPod, ...]:
        pods = []
        for node in range(JOB_HOSTS):
            ats = [at for at in self._hcas(node) if not at.fabric]
            functions = tuple(
                PodFunction("training/net-compute", f"net{at.rail + 1}", self._address(at, 0), self._vf_device(at, 0))
                for at in ats
            )
            pods.append(
                TrainingPod(f"job-worker-{node}", f"job-worker-{node}", self.shape.names[node], functions, job="llama")
            )
        return tuple(pods)
