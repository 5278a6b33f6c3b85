# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent of the user: the schema of ``rdma_fabrics``, ``rdma_waivers`` and ``rdma_cluster``.

The field types are the schema (see load.py). Rules across fields are checked in _check/validate/check.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.marks import DEFAULT_INTENT
from ..boundary.form import Bound
from ..boundary.kubernetes import LABEL
from ..measurement.collectives import Collectives
from ..node.bios import BiosIntent
from ..node.firmware import FirmwareIntent
from ..node.tuning import Roce, Tuning
from ..run.findings import Waiver
from .comparison import Measure
from .host_intent import HostNeeds
from .networks import Ipam, Network, NvIpamPool

#: of a list that selects HCAs or NICs. A node has some ten; servers of each model have theirs in other slots, and each
#: HCA is looked for in the list
MOST_SELECTED = 256

#: see profiles.py for what each of them is
Profile = typing.Literal[
    "sriov_infiniband", "sriov_ethernet", "rdma_shared", "host_device", "macvlan", "ipoib", "pod_network"
]


@dataclasses.dataclass(frozen=True)
class Select:
    """The selectors of the HCAs or NICs of a node that belong to the fabric. Only the selectors that are set must
    match.

    :ivar subnet_manager: ``any`` alone, or the GUIDs (0x...) of the fabric's subnet managers. A port belongs to the
        fabric if its subnet manager is one of them. InfiniBand only
    :ivar hcas_per_node: required number of physical functions per node on this fabric
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


@dataclasses.dataclass(frozen=True)
class LineRate:
    """The floor of the measured average bandwidth.

    :ivar fraction: share of the slowest of the link rate, the PCIe rate and the VF's share of them
    :ivar fleet_fraction: share of the best pair on the same rail whose links have the same capability
    :ivar expected_gbps: required rate of each link of the fabric, in Gb/s; None for the highest rate that both of its
        ends support
    :ivar floor_gbps: an absolute floor of each direction in Gb/s instead of ``fraction``; requires a reason
    :ivar reason: reason for an absolute or a low floor, printed in the report
    """

    fraction: float = 0.92
    fleet_fraction: float = 0.93
    expected_gbps: typing.Optional[float] = None
    floor_gbps: typing.Optional[float] = None
    reason: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Pods:
    """The measuring pods. They run in the namespace linerate-measure, which is created and deleted with each
    measurement, unless an administrator has prepared it.

    :ivar image: image that contains rping, ib_write_bw and rdma (iproute2)
    :ivar image_pull_policy: pull policy of Kubernetes
    :ivar runtime_class: RuntimeClass that gives access to RDMA devices where the device plugin does not mount them
    :ivar priority_class: PriorityClass of the pods; with preemptionPolicy Never they preempt no other pod. None for the
        default of the cluster
    :ivar mount_infiniband: mount the host's /dev/infiniband, where the device plugin does not
    :ivar connection: how perftest connects: by rdma_cm (needed by iWARP), or by TCP
    :ivar message_bytes: message size in bytes
    :ivar queue_pairs: number of concurrent queue pairs of ib_write_bw; None derives it from the rate of the ports
    :ivar iterations: iterations of ib_write_bw; None measures for ``seconds``
    :ivar seconds: duration of one measurement
    :ivar limit_seconds: hard limit of one command
    :ivar cpu: request and limit, as Kubernetes writes it
    :ivar memory: request and limit, as Kubernetes writes it
    :ivar tolerations: tolerations of the pods in the format of Kubernetes, for taints such as nvidia.com/gpu
    :ivar service_account: account in the namespace that an administrator has prepared; None for a temporary one
    :ivar image_pull_secrets: names of secrets in the namespace that an administrator has prepared
    """

    image: str = "nvcr.io/nvidia/doca/doca:3.1.0-full-rt-host"
    image_pull_policy: typing.Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    runtime_class: typing.Optional[str] = None
    priority_class: typing.Optional[str] = None
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
    """The settings that select the pairs to measure.

    :ivar rounds: number of rounds of disjoint pairs; or ``all``: every node with every other node, or as many as fit
        into the stage; or ``auto``: rounds that use each link of the fabric in both directions, and then suspects
        alone. None means all for a few nodes, and auto for more
    :ivar rails: whether the rails of a node run at the same time, as in training, or one after the other
    :ivar directions: directions of a pair: only one, one after the other, or both at the same time (ib_write_bw -b)
    :ivar sweep: whether to measure all message sizes as well, for the report
    :ivar latency: whether to measure latency after the rounds, with each port in at least one pair
    :ivar most_latency_us: highest allowed median latency of a pair, in microseconds; None: the pairs are compared with
        each other only
    :ivar latency_ratio: a pair is reported if its latency exceeds this multiple of the median of all pairs
    :ivar layers: pairs that are also measured layer by layer, from the cable up to the pod. None means the suspects if
        the run has observers, which are needed to measure the host, and else none
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
    """One fabric of the intent: how its HCAs are selected, the network that pods get on them, and how it is measured.

    :ivar name: name of the fabric
    :ivar profile: kind of network that pods get
    :ivar network: network attachment of the pods
    :ivar select: selectors of its HCAs; not set for the pod network
    :ivar virtual_functions: number of virtual functions on each physical function; SR-IOV profiles only
    :ivar resource_name: name of the extended resource that the device plugin offers, without its prefix; empty for a
        profile without a device plugin
    :ivar ipam: addresses of the pods; None for the pod network
    :ivar pods_per_node: largest number of pods of a node that share its interface (rdmaHcaMax); None for 63
    :ivar rails: ``leaf`` if HCA k of every node must be on the same leaf, ``none`` if the cabling follows no such plan.
        None: it must, unless many nodes are cabled in different ways
    :ivar routing: InfiniBand only: ``static`` if packets to a LID take the single path of the forwarding tables,
        ``adaptive`` if switches choose among several. None if unknown
    :ivar uplinks: InfiniBand only: required number of links from each leaf to other switches; None compares each leaf
        with the leaves that share a switch with it
    :ivar mtu: MTU of the interfaces in bytes; None leaves it unchanged
    :ivar rdma: whether each virtual function has its own RDMA device (isRdma of the policy). On InfiniBand it always
        has
    :ivar roce: Ethernet only: settings that its NICs must have; None: the defaults of NVIDIA's NIC operator are
        recommended
    :ivar line_rate: floor of the bandwidth between pods
    :ivar pods: settings of the measuring pods
    :ivar bandwidth: settings that select the pairs to measure
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
        """Return the nv-ipam pool. Return None with whereabouts, and if the fabric has no addresses of its own."""
        return self.ipam.pool if self.ipam else None


@dataclasses.dataclass(frozen=True)
class DrainPool:
    """The SriovNetworkPoolConfig of the selected nodes.

    It has a number of nodes instead of a percentage, because the operator rounds down: 25% of 3 nodes is 0, and no node
    would ever be drained.

    :ivar max_unavailable: number of nodes that may be drained at the same time
    :ivar rdma_mode: mode of the nodes' RDMA devices and network namespaces; None leaves it to the operator. A change
        reboots the nodes
    """

    max_unavailable: int
    rdma_mode: typing.Optional[typing.Literal["shared", "exclusive"]] = None


@dataclasses.dataclass(frozen=True)
class DrainOptions:
    """The pods that a drain by the collection may evict. The options are those of ``kubectl drain`` with the same
    names.

    :ivar delete_empty_dir_data: whether to evict pods with an emptyDir volume, whose data is lost
    :ivar force: whether to evict pods without a controller, which are not recreated
    """

    delete_empty_dir_data: bool = False
    force: bool = False


@dataclasses.dataclass(frozen=True)
class NetworkOperator:
    """NVIDIA's network operator, and the parts of its single NicClusterPolicy that do not belong to a fabric.

    :ivar version: release whose images the policy names
    :ivar repository: repository of the images
    :ivar ofed_driver: version of the image doca-driver; None leaves the nodes' own driver
    :ivar nv_ipam: whether to run nv-ipam
    :ivar nic_feature_discovery: whether to label the nodes with the properties of their NICs
    """

    version: str = "v26.4.1"
    repository: str = "nvcr.io/nvidia/mellanox"
    ofed_driver: typing.Optional[str] = None
    nv_ipam: bool = False
    nic_feature_discovery: bool = False


@dataclasses.dataclass(frozen=True)
class Training:
    """The properties that the log of a job must prove.

    :ivar fabric: fabric whose HCAs the job uses; None for all fabrics
    :ivar ranks: number of ranks of the whole job; None for the number in the log
    :ivar gpu_direct: whether each channel over the network must use GPUDirect RDMA
    :ivar library: library whose log lines prove the network: NCCL or RCCL (``nccl``), or UCX, which NIXL uses
    :ivar interfaces: number of rails of a fabric that a pod of the job gets; None for all rails
    """

    fabric: typing.Optional[str] = None
    ranks: typing.Optional[int] = None
    gpu_direct: bool = True
    library: typing.Literal["nccl", "ucx"] = "nccl"
    interfaces: typing.Optional[int] = None


#: the most that may happen to a node, the least first
Disruption = typing.Literal["none", "drain", "reboot"]


@dataclasses.dataclass(frozen=True)
class ClusterIntent:
    """The settings that all fabrics share.

    :ivar node_selector: label of the nodes that the collection manages
    :ivar nodes_expected: required number of nodes in the inventory; None accepts any number
    :ivar operator_namespace: namespace of the SR-IOV network operator; None detects it
    :ivar resource_prefix: prefix of the device plugin's resources
    :ivar wait_seconds: limit of the wait for the network
    :ivar node_pool: how many nodes the operator drains at a time, and their RDMA mode; None keeps the operator's
        default of one node at a time
    :ivar disruption: worst allowed effect on a node; a plan that exceeds it is refused before anything is applied
    :ivar drain: pods that a drain by the collection may evict
    :ivar pause_health_checks: whether to pause the MachineHealthChecks and NodeHealthChecks of nodes until their reset
        is complete. Otherwise a node with such a check is not reset
    :ivar management_cluster_paused: whether the MachineHealthChecks of the nodes are paused in the management cluster
        of Cluster API, which no run can read. Otherwise a node whose Machine is in another cluster is not reset
    :ivar network_operator: settings of NVIDIA's network operator, for profiles that need it
    :ivar host: host settings that jobs need
    :ivar bios: required BIOS settings of each node; they need access to its BMC
    :ivar firmware: required firmware settings of the HCAs, in addition to those of each fabric
    :ivar tuning: expected tuning of the hosts
    :ivar mirror: mirror of a disconnected site: registry and path below which each image and chart keeps its own name,
        or a replacement for each source
    :ivar measures: figures of jobs and tests on the fabrics and on other networks, for stage compare
    :ivar training: properties that a job's log must prove; None if no job is checked
    :ivar collectives: required performance of collectives; None if none are run
    :ivar intent_name: name of this intent in the cluster, a label of all its objects. If the cluster has several
        intents, each one needs its own name
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
    management_cluster_paused: bool = False
    network_operator: NetworkOperator = NetworkOperator()
    host: HostNeeds = dataclasses.field(default_factory=HostNeeds)
    bios: BiosIntent = dataclasses.field(default_factory=BiosIntent)
    firmware: FirmwareIntent = dataclasses.field(default_factory=FirmwareIntent)
    tuning: Tuning = dataclasses.field(default_factory=Tuning)
    mirror: dict[str, str] = dataclasses.field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    training: typing.Optional[Training] = None
    collectives: typing.Optional[Collectives] = None
    intent_name: typing.Annotated[str, LABEL] = DEFAULT_INTENT


@dataclasses.dataclass(frozen=True)
class Intent:
    """The complete intent, loaded from its three variables.

    :ivar fabrics: fabrics of ``rdma_fabrics``
    :ivar waivers: waivers of ``rdma_waivers``
    :ivar cluster: settings of ``rdma_cluster``
    """

    fabrics: tuple[Fabric, ...]
    waivers: tuple[Waiver, ...] = ()
    cluster: ClusterIntent = ClusterIntent()
