# SPDX-License-Identifier: GPL-3.0-or-later

"""What the user wants: the schema of ``rdma_fabrics``, ``rdma_waivers`` and ``rdma_cluster``.

The field types are the schema (see load.py); meaning that spans fields is checked in _check/validate/check.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.form import Bound
from ..measurement.collectives import Collectives
from ..node.bios import BiosIntent
from ..node.firmware import FirmwareIntent
from ..node.tuning import Roce, Tuning
from ..run.findings import Waiver
from .comparison import Measure
from .host_intent import HostNeeds

#: of a list that selects HCAs or NICs. A node has some ten; servers of each model have theirs in other slots, and each
#: HCA is looked for in the list
MOST_SELECTED = 256

#: see profiles.py for what each of them is
Profile = typing.Literal[
    "sriov_infiniband", "sriov_ethernet", "rdma_shared", "host_device", "macvlan", "ipoib", "pod_network"
]


@dataclasses.dataclass(frozen=True)
class Select:
    """The selectors of the HCAs or NICs of a node that belong to the fabric.

    :ivar subnet_manager: ``any`` alone, or the GUIDs (0x...) of the subnet managers of the fabric, of which the port
        must see one. InfiniBand only
    :ivar hcas_per_node: how many physical functions each node must have on this fabric
    :ivar pci: PCI addresses, 0000:3c:00.0
    :ivar netdev: names of the PFs' netdevs
    :ivar vendor: PCI vendor id, four hex digits
    :ivar device: PCI device id of the PFs, four hex digits
    """

    hcas_per_node: int
    subnet_manager: typing.Annotated[tuple[str, ...], Bound("subnet managers", MOST_SELECTED)] = ()
    pci: typing.Annotated[tuple[str, ...], Bound("PCI addresses", MOST_SELECTED)] = ()
    netdev: typing.Annotated[tuple[str, ...], Bound("network interfaces", MOST_SELECTED)] = ()
    vendor: typing.Optional[str] = None
    device: typing.Optional[str] = None


#: what a network may have set for a VF on Ethernet, when a pod takes it
VF_SETTINGS = ("vlan", "vlan_qos", "trust", "spoof_check", "min_tx_rate", "max_tx_rate")


@dataclasses.dataclass(frozen=True)
class PodSecurity:
    """The level of Pod Security that the namespace of the jobs gets. Without it the namespace keeps its own.

    :ivar enforce: the level: value of the label pod-security.kubernetes.io/enforce
    :ivar reason: why, printed in the report: with ``privileged``, who may make pods there is root on the nodes
    """

    enforce: typing.Literal["privileged", "baseline", "restricted"]
    reason: str


@dataclasses.dataclass(frozen=True)
class Network:
    """The attachment that pods name in their annotation.

    :ivar name: of the SriovNetwork, MacvlanNetwork..., and so of the NetworkAttachmentDefinition; empty for the pod
        network only
    :ivar namespace: of the jobs' pods; pods that measure have a namespace of their own
    :ivar pod_security: level that the namespace gets; None leaves it as it is
    :ivar link_state: of the VF; None leaves the operator's default
    :ivar meta_plugins: chained CNI plugins, as the CNI reads them
    :ivar mode: of macvlan; None is "bridge"
    :ivar vlan: VLAN id of the VF on Ethernet, and ``vlan_qos`` its priority
    :ivar trust: the VF may set its own address and promiscuous mode; None leaves the driver's default, as with
        ``spoof_check``
    :ivar min_tx_rate: of the VF, in Mb/s, like ``max_tx_rate``; 0 is no limit
    """

    namespace: str
    name: str = ""
    pod_security: typing.Optional[PodSecurity] = None
    link_state: typing.Optional[typing.Literal["auto", "enable", "disable"]] = None
    meta_plugins: tuple[dict[str, typing.Any], ...] = ()
    mode: typing.Optional[typing.Literal["bridge", "private", "vepa", "passthru"]] = None
    vlan: typing.Optional[int] = None
    vlan_qos: typing.Optional[int] = None
    trust: typing.Optional[bool] = None
    spoof_check: typing.Optional[bool] = None
    min_tx_rate: typing.Optional[int] = None
    max_tx_rate: typing.Optional[int] = None

    @property
    def vf_settings(self) -> dict[str, typing.Union[int, bool]]:
        """Return the settings of the CNI plugin for a VF that a pod takes, by name; what the intent leaves to the
        driver is not in it."""
        return {name: getattr(self, name) for name in VF_SETTINGS if getattr(self, name) is not None}


@dataclasses.dataclass(frozen=True)
class Route:
    """A route in the pods, keys as CNI names them.

    :ivar dst: network that it leads to
    :ivar gw: address on the range; None takes the gateway
    """

    dst: str
    gw: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class NvIpamPool:
    """The pool of nv-ipam out of which each node gets its share.

    :ivar name: of the IPPool or CIDRPool
    :ivar kind: shares are blocks of addresses (IPPool), or networks of their own (CIDRPool)
    :ivar namespace: that nv-ipam watches (its flag --ippools-namespace)
    :ivar per_node_block_size: addresses of a node's block; IPPool only
    :ivar per_node_network_prefix: length of the prefix of a node's network; CIDRPool only, and needed there
    :ivar gateway_index: of the gateway in each node's network, 1 is the first host; CIDRPool only
    :ivar create: make the pool; else it must be there
    """

    name: str
    kind: typing.Literal["IPPool", "CIDRPool"] = "IPPool"
    namespace: str = "nvidia-network-operator"
    per_node_block_size: int = 100
    per_node_network_prefix: typing.Optional[int] = None
    gateway_index: typing.Optional[int] = None
    create: bool = True


@dataclasses.dataclass(frozen=True)
class Ipam:
    """Addresses of the pods on this network; ranges as whereabouts and nv-ipam read them.

    :ivar range_start: whereabouts only, like range_end
    :ivar pool: nv-ipam only, and needed there
    """

    type: typing.Literal["whereabouts", "nv-ipam"]
    range: str
    range_start: typing.Optional[str] = None
    range_end: typing.Optional[str] = None
    gateway: typing.Optional[str] = None
    exclude: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    pool: typing.Optional[NvIpamPool] = None


@dataclasses.dataclass(frozen=True)
class LineRate:
    """The floor of the measured average.

    :ivar fraction: of the slowest of what link and PCIe can do, and the VF's share of them
    :ivar fleet_fraction: of the best pair of the same rail whose links can do the same
    :ivar expected_gbps: rate that each link of the fabric shall have, in Gb/s; None takes what both of its ends can do
    :ivar floor_gbps: an absolute floor in Gb/s instead of ``fraction``; needs a reason
    :ivar reason: why an absolute or a low floor, printed in the report
    """

    fraction: float = 0.92
    fleet_fraction: float = 0.93
    expected_gbps: typing.Optional[float] = None
    floor_gbps: typing.Optional[float] = None
    reason: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Pods:
    """The pods that measure. They are in the namespace linerate-measure, which comes and goes with a measurement,
    unless an admin has prepared it.

    :ivar image: has rping, ib_write_bw and rdma (iproute2)
    :ivar image_pull_policy: of Kubernetes
    :ivar runtime_class: RuntimeClass that gives access to RDMA devices where the device plugin does not mount them
    :ivar mount_infiniband: mount the host's /dev/infiniband, where the device plugin does not
    :ivar connection: how perftest connects: over rdma_cm (needed by iWARP), or over TCP
    :ivar message_bytes: message size in bytes
    :ivar queue_pairs: of ib_write_bw, at once; None: as many as the rate of the ports takes
    :ivar iterations: of ib_write_bw; None measures for ``seconds``
    :ivar seconds: duration of one measurement
    :ivar limit_seconds: hard limit of one command
    :ivar cpu: request and limit, as Kubernetes writes it
    :ivar memory: request and limit, as Kubernetes writes it
    :ivar tolerations: of the pods, as Kubernetes reads them; for taints such as nvidia.com/gpu
    :ivar service_account: in the namespace that an admin has prepared; None takes one that comes and goes with a
        measurement
    :ivar image_pull_secrets: names of secrets in the namespace that an admin has prepared
    """

    image: str = "nvcr.io/nvidia/doca/doca:3.1.0-full-rt-host"
    image_pull_policy: typing.Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    runtime_class: typing.Optional[str] = None
    mount_infiniband: bool = False
    connection: typing.Literal["tcp", "rdma_cm"] = "tcp"
    message_bytes: int = 1048576
    queue_pairs: typing.Optional[int] = None
    iterations: typing.Optional[int] = None
    seconds: int = 10
    limit_seconds: int = 120
    cpu: str = "2"
    memory: str = "1Gi"
    tolerations: tuple[dict[str, typing.Any], ...] = ()
    service_account: typing.Optional[str] = None
    image_pull_secrets: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Bandwidth:
    """The settings that choose the pairs to measure.

    :ivar rounds: so many of disjoint pairs; or all, so that everybody meets everybody, or as many as fit a stage; or
        those that use each link of the fabric in both directions, and then suspects alone (auto). None means all for a
        few nodes, and auto for more
    :ivar rails: rails of a node at the same time, as training uses them, or one by one
    :ivar directions: of a pair: only one of them, one after the other, or at the same time (ib_write_bw -b)
    :ivar sweep: measure all message sizes as well, for the report
    :ivar latency: each port is in one pair at least whose latency is measured after the rounds
    :ivar most_latency_us: that the median of such a pair may take, in us; None: the pairs are compared alone
    :ivar latency_ratio: times the median of the pairs, from which on one is named
    :ivar layers: which pairs are measured layer by layer as well, from the cable up to the pod. None means the suspects
        where the run has observers, by which alone the host can be measured, and else none
    """

    rounds: typing.Optional[typing.Union[int, typing.Literal["all", "auto"]]] = None
    rails: typing.Literal["parallel", "serial"] = "parallel"
    directions: typing.Literal["one", "both", "at_once"] = "both"
    sweep: bool = False
    latency: bool = False
    most_latency_us: typing.Optional[float] = None
    latency_ratio: float = 1.5
    layers: typing.Optional[typing.Literal["none", "suspects", "all"]] = None


@dataclasses.dataclass(frozen=True)
class Fabric:
    """One fabric and what pods get of it.

    :ivar select: unset for the pod network only
    :ivar virtual_functions: on each physical function; of the SR-IOV profiles
    :ivar resource_name: of the device plugin, where the profile has one
    :ivar ipam: unset for the pod network only
    :ivar rdma: the VFs carry an RDMA device of their own (isRdma of the policy); always so on InfiniBand
    :ivar pods_per_node: pods of a node on a network that they share (rdmaHcaMax); None is 63
    :ivar roce: of Ethernet: what its NICs must be set to; None: what NVIDIA's NIC operator sets is advice
    :ivar rails: HCA k of each node is on the leaf of the others' HCA k; or none are planned, and no cabling is wrong.
        None: not said, and leaf is supposed unless many nodes are cabled in ways of their own
    :ivar routing: of InfiniBand: what goes to a LID takes the one way of the forwarding tables (static), or switches
        choose among several (adaptive). None: not known, and nothing that is read tells it
    :ivar uplinks: of InfiniBand: links that each leaf has to other switches; None: as many as the leaves beside it
    """

    name: str
    profile: Profile
    network: Network
    select: Select = Select(0)
    virtual_functions: int = 0
    resource_name: str = ""
    ipam: typing.Optional[Ipam] = None
    pods_per_node: typing.Optional[int] = None
    rails: typing.Optional[typing.Literal["leaf", "none"]] = None
    routing: typing.Optional[typing.Literal["static", "adaptive"]] = None
    uplinks: typing.Optional[int] = None
    mtu: typing.Optional[int] = None
    rdma: bool = True
    roce: typing.Optional[Roce] = None
    line_rate: LineRate = LineRate()
    pods: Pods = Pods()
    bandwidth: Bandwidth = Bandwidth()

    @property
    def pool(self) -> typing.Optional[NvIpamPool]:
        """Return the pool of nv-ipam; None with whereabouts, and without addresses of the fabric's own."""
        return self.ipam.pool if self.ipam else None


@dataclasses.dataclass(frozen=True)
class DrainPool:
    """A SriovNetworkPoolConfig of the nodes that take part.

    A number of nodes and no percentage, which the operator rounds down: 25% of 3 nodes are none, and no node ever gets
    its turn.

    :ivar max_unavailable: nodes that may be drained at the same time
    :ivar rdma_mode: of the nodes' RDMA devices and network namespaces; None leaves it to the operator. A change reboots
        the nodes
    """

    max_unavailable: int
    rdma_mode: typing.Optional[typing.Literal["shared", "exclusive"]] = None


@dataclasses.dataclass(frozen=True)
class DrainOptions:
    """The pods that a drain of the collection may evict, by the options of ``kubectl drain`` of the same name.

    :ivar delete_empty_dir_data: pods with a volume of the kind emptyDir, whose data is lost
    :ivar force: pods that no controller makes again
    """

    delete_empty_dir_data: bool = False
    force: bool = False


@dataclasses.dataclass(frozen=True)
class NetworkOperator:
    """NVIDIA's network operator, and what its one NicClusterPolicy must have beside the fabrics' own parts.

    :ivar version: release whose images the policy names
    :ivar repository: of the images
    :ivar ofed_driver: version of the image doca-driver; None leaves the nodes' own driver
    :ivar nv_ipam: run nv-ipam
    :ivar nic_feature_discovery: label the nodes with what their NICs are
    """

    version: str = "v26.4.1"
    repository: str = "nvcr.io/nvidia/mellanox"
    ofed_driver: typing.Optional[str] = None
    nv_ipam: bool = False
    nic_feature_discovery: bool = False


@dataclasses.dataclass(frozen=True)
class Training:
    """The properties that the log of a job must prove.

    :ivar fabric: whose HCAs it uses; None are those of all fabrics
    :ivar ranks: of the whole job; None takes what the log says
    :ivar gpu_direct: each channel over the network must be GPUDirect RDMA
    :ivar library: whose lines prove the network: NCCL or RCCL, or UCX, by which NIXL sends
    """

    fabric: typing.Optional[str] = None
    ranks: typing.Optional[int] = None
    gpu_direct: bool = True
    library: typing.Literal["nccl", "ucx"] = "nccl"


#: the most that may happen to a node, the least first
Disruption = typing.Literal["none", "drain", "reboot"]


@dataclasses.dataclass(frozen=True)
class ClusterIntent:
    """The settings that all fabrics share.

    :ivar node_selector: label of the nodes that take part
    :ivar nodes_expected: number of nodes that the inventory must have; None takes those that it has
    :ivar operator_namespace: of the SR-IOV network operator; None is where it is seen
    :ivar resource_prefix: of the device plugin's resources
    :ivar wait_seconds: limit of the wait for the network
    :ivar node_pool: in which turns, and with which RDMA mode, the operator works on the nodes; None leaves its default:
        one node at a time
    :ivar disruption: the most that may happen to a node; what needs more is refused before anything is applied
    :ivar drain: what a drain of the collection may take
    :ivar pause_health_checks: pause the MachineHealthChecks and NodeHealthChecks of nodes that are about to be reset,
        until they are back. Otherwise such a node is not reset
    :ivar network_operator: NVIDIA's, for profiles that need it
    :ivar host: what jobs need of the nodes beside the network
    :ivar bios: what is asked of the BIOS of each node; its BMC must be known for that
    :ivar firmware: what the firmware of the HCAs shall be set to beside what each fabric needs
    :ivar tuning: what is expected of the nodes under the network
    :ivar mirror: of a disconnected site: registry and path below which each image and chart has its own name, or what
        takes the place of each source
    :ivar measures: figures of jobs and tests on the fabrics and on other networks, for stage compare
    :ivar training: what a job's log must prove; None when no job is asked for
    :ivar collectives: what collectives must reach over the network; None when none is to be run
    """

    node_selector: dict[str, str] = dataclasses.field(
        default_factory=lambda: {"feature.node.kubernetes.io/network-sriov.capable": "true"}
    )
    nodes_expected: typing.Optional[int] = None
    operator_namespace: typing.Optional[str] = None
    resource_prefix: str = "openshift.io"
    wait_seconds: int = 1800
    disruption: Disruption = "drain"
    node_pool: typing.Optional[DrainPool] = None
    drain: DrainOptions = DrainOptions()
    pause_health_checks: bool = False
    network_operator: NetworkOperator = NetworkOperator()
    host: HostNeeds = dataclasses.field(default_factory=HostNeeds)
    bios: BiosIntent = dataclasses.field(default_factory=BiosIntent)
    firmware: FirmwareIntent = dataclasses.field(default_factory=FirmwareIntent)
    tuning: Tuning = dataclasses.field(default_factory=Tuning)
    mirror: dict[str, str] = dataclasses.field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    training: typing.Optional[Training] = None
    collectives: typing.Optional[Collectives] = None


@dataclasses.dataclass(frozen=True)
class Intent:
    """All of it, as one value."""

    fabrics: tuple[Fabric, ...]
    waivers: tuple[Waiver, ...] = ()
    cluster: ClusterIntent = ClusterIntent()
