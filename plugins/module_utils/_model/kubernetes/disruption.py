# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that determine whether a node is drained or rebooted and that block it, and the resulting plan. Created
by _parse/kubernetes (core, sriov_operator, machine_config), judged by _analysis/disruption/sriov.py and
_analysis/readiness/sriov.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.devices import Interface, PciAddress, PciId
from ..boundary.kubernetes import Label, ObjectName, Subdomain, Uid
from ..boundary.words import Word


@dataclasses.dataclass(frozen=True)
class LabelExpression:
    """The requirement of a selector on one label.

    :ivar key: key of the label
    :ivar operator: In, NotIn, Exists or DoesNotExist
    :ivar values: values for In and NotIn
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class LabelSelector:
    """A selector of the API (metav1.LabelSelector). It selects an object that meets all of its requirements, and every
    object if it has none.

    :ivar labels: required value by label (matchLabels)
    :ivar expressions: further requirements (matchExpressions)
    """

    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    expressions: tuple[LabelExpression, ...] = ()


@dataclasses.dataclass(frozen=True)
class NodePool:
    """A SriovNetworkPoolConfig: a group of nodes with a limit of concurrent drains.

    :ivar selector: selector of the nodes
    :ivar max_unavailable: limit of concurrent drains as written, ``2`` or ``25%``; None for no limit
    :ivar rdma_mode: shared, exclusive, or empty
    :ivar offload: whether it configures only OVS hardware offload, so that it does not limit drains
    """

    name: ObjectName
    selector: LabelSelector = LabelSelector()
    max_unavailable: typing.Optional[str] = None
    rdma_mode: Word = ""
    offload: bool = False


@dataclasses.dataclass(frozen=True)
class MachinePool:
    """A MachineConfigPool of OpenShift.

    :ivar selector: selector of the nodes by label; None selects no node
    :ivar paused: whether it applies no new configuration (spec.paused)
    :ivar paused_by_operator: whether the SR-IOV operator paused it for its own drain, and will resume it
    :ivar wanted_config: MachineConfig that its nodes should have
    :ivar current_config: MachineConfig that all of its nodes have
    :ivar machines: number of its nodes
    :ivar updated: number of nodes that have ``wanted_config``
    :ivar degraded: number of nodes on which the configuration failed
    :ivar conditions: status (True, False, Unknown) by condition type
    :ivar message: message of the condition that reports it as degraded
    :ivar config_selector: selector of its MachineConfigs by label; None selects none
    :ivar max_unavailable: limit of unavailable nodes as written, ``2`` or ``25%``; None is 1
    :ivar paused_by_us: whether an interrupted run of the collection paused it and did not resume it
    :ivar sources: names of the MachineConfigs that its target configuration is rendered from
    :ivar labels: labels of the pool, by which KubeletConfigs select it
    """

    ONCE = ("name",)

    name: ObjectName
    selector: typing.Optional[LabelSelector] = None
    paused: bool = False
    paused_by_operator: bool = False
    wanted_config: Subdomain = ""
    current_config: Subdomain = ""
    machines: int = 0
    updated: int = 0
    degraded: int = 0
    conditions: dict[str, str] = dataclasses.field(default_factory=dict)
    message: str = ""
    config_selector: typing.Optional[LabelSelector] = None
    max_unavailable: typing.Optional[str] = None
    paused_by_us: bool = False
    sources: tuple[Subdomain, ...] = ()
    labels: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class OperatorSettings:
    """The SriovOperatorConfig ``default``: how the SR-IOV network operator works on the nodes.

    :ivar disable_drain: whether nodes are neither cordoned nor drained, and do not wait for each other
    :ivar mode: daemon or systemd
    :ivar disabled_plugins: disabled plugins of the config daemon
    """

    disable_drain: bool = False
    mode: str = "daemon"
    disabled_plugins: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget, which limits the evictions of the pods that it selects.

    :ivar allowed: number of evictions that it allows now
    :ivar selector: selector of the pods by label; None selects no pod
    """

    name: ObjectName
    namespace: Label
    allowed: int
    selector: typing.Optional[LabelSelector] = None


@dataclasses.dataclass(frozen=True)
class ClusterPod:
    """A pod, with the properties that a drain depends on.

    :ivar requests: names of the resources that its containers request
    :ivar owner: kind of its controller; empty if it would not be recreated
    :ivar mirror: whether the kubelet runs it from a file
    :ivar ended: whether it is Succeeded or Failed
    :ivar uid: differs for another pod of the same name
    :ivar empty_dir: whether it has an emptyDir volume, which is lost with it
    :ivar of_run: whether a run of the collection created it, and recreates it if needed
    :ivar controller: uid of its controller; empty if it has none
    :ivar tolerates_cordon: whether the scheduler places it on a cordoned node as well
    :ivar any_budget: whether any PodDisruptionBudget of its namespace may select it, since it has more labels than are
        kept
    :ivar unread: whether it was too large to be read, so that only its metadata and node are known
    """

    name: Subdomain
    namespace: Label
    node: Subdomain
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    requests: tuple[Word, ...] = ()
    owner: Word = ""
    mirror: bool = False
    ended: bool = False
    uid: Uid = ""
    empty_dir: bool = False
    of_run: bool = False
    controller: Uid = ""
    tolerates_cordon: bool = False
    any_budget: bool = False
    unread: bool = False


@dataclasses.dataclass(frozen=True)
class SharedResource:
    """A resource of the shared RDMA device plugin (k8s-rdma-shared-dev-plugin), whose pods use physical functions.

    :ivar name: name of the resource, with its prefix
    :ivar known: whether its selectors are known
    :ivar interfaces: names of the network interfaces that it selects; empty for all
    :ivar vendors: PCI vendor ids that it selects; empty for all
    :ivar devices: PCI device ids that it selects; empty for all
    """

    name: Word
    known: bool = False
    interfaces: tuple[Interface, ...] = ()
    vendors: tuple[PciId, ...] = ()
    devices: tuple[PciId, ...] = ()


@dataclasses.dataclass(frozen=True)
class FunctionHolder:
    """A running pod that may use virtual or physical functions of its node.

    :ivar pod: its namespace and name
    :ivar addresses: PCI addresses of its devices, from its network-status and its networks
    :ivar resources: names of the resources of virtual functions that it requests, with their prefix
    :ivar claims: whether it has a ResourceClaim that may be for network devices
    :ivar stays: whether a drain leaves it on its node, because it is of a DaemonSet
    :ivar claimed: PCI addresses that only its annotation names: the pod requests no network device, and no
        NetworkAttachmentDefinition of this name exists
    :ivar interfaces: interfaces of the node on which its networks are, such as the master of a macvlan
    :ivar shared: resources of the shared RDMA device plugin that it requests
    :ivar on_host: devices that it requests, if it runs on the network of its node; the pod may then use each NIC
    """

    pod: str
    addresses: tuple[PciAddress, ...] = ()
    resources: tuple[Word, ...] = ()
    claims: bool = False
    stays: bool = False
    claimed: tuple[PciAddress, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    shared: tuple[SharedResource, ...] = ()
    on_host: tuple[Word, ...] = ()


Action = typing.Literal["nothing", "configure", "drain", "reboot", "unknown"]
#: what NVIDIA's network operator does with its driver: load it after a drain, or remove it without one. ``reload``: the
#: GPU operator restarts its driver after it evicted the pods that use GPUs
DriverAction = typing.Literal["", "load", "remove", "reload"]


@dataclasses.dataclass(frozen=True)
class NodePlan:
    """The action that the operators will take on one node, with its consequences for pods.

    :ivar node: name of the node
    :ivar action: ``nothing``, ``configure`` (create the first virtual functions of a device, without effect on pods),
        ``drain``, ``reboot`` or ``unknown``. A change that disturbs the node without a drain counts as ``drain``
    :ivar reasons: reasons for the action; for unknown, the missing information
    :ivar pods: namespace/name of the pods that it evicts from the node
    :ivar lost: those of them that are not recreated
    :ivar blockers: reasons why the drain cannot complete
    :ivar pool: SriovNetworkPoolConfig of the node; empty for the operator's default
    :ivar rolled_by: MachineConfigPool that drains and reboots it, independent of the operator; empty for none
    :ivar listed: whether the inventory contains the node
    :ivar driver: ``load`` if NVIDIA's network operator drains the node to load its driver, ``remove`` if it removes the
        driver and no operator drains the node, ``reload`` if the GPU operator restarts its driver; otherwise empty
    :ivar undrained: whether the operator makes the change without a drain, and without waiting for other nodes
    :ivar loses_link: whether a NIC that the node itself uses loses its link during the change
    :ivar doubts: uses of the NICs that the change may disturb, without proof, as text
    :ivar uplinks: default routes, addresses and bonds of the node on NICs whose driver changes, as text. Without a
        waiver for each node, nothing is applied
    """

    node: str
    action: Action
    reasons: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    pool: str = ""
    listed: bool = True
    rolled_by: str = ""
    driver: DriverAction = ""
    undrained: bool = False
    loses_link: bool = False
    doubts: tuple[str, ...] = ()
    uplinks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the node, marked if the inventory does not contain it."""
        return self.node if self.listed else f"{self.node} (not in the inventory)"


@dataclasses.dataclass(frozen=True)
class PoolPlan:
    """The order in which the nodes of one pool are drained or rebooted.

    :ivar name: name of the pool, or of the policy for a driver; empty for the operator's default pool
    :ivar machines: whether it is a MachineConfigPool
    :ivar nodes: nodes to drain or reboot
    :ivar at_once: maximum number of nodes at the same time; None for no limit
    :ivar waves: number of waves; None if the nodes never all get their turn
    :ivar limit: origin of at_once, in words
    :ivar blockers: reasons that block all its nodes
    :ivar driver: action of NVIDIA's network operator or of the GPU operator on the driver of these nodes; empty for a
        pool
    :ivar undrained: whether the operator changes these nodes without a drain, all at the same time
    """

    name: str
    nodes: tuple[str, ...]
    at_once: typing.Optional[int]
    waves: typing.Optional[int]
    limit: str
    blockers: tuple[str, ...] = ()
    machines: bool = False
    driver: DriverAction = ""
    undrained: bool = False

    @property
    def nic_policy(self) -> str:
        """The kind and name of the policy with the driver of NICs."""
        return self.name if " " in self.name else f"NicClusterPolicy {self.name}"


@dataclasses.dataclass(frozen=True)
class DisruptionPlan:
    """The planned drains and reboots of all nodes and pools (sriov_plan).

    :ivar nodes: plan of each node
    :ivar pools: order in which the nodes of each pool are drained or rebooted
    :ivar drains: whether the operator drains at all (not disableDrain)
    :ivar unread: kinds that could not be read, with the reason; a kind that the server does not serve is not included
    :ivar closed: reasons why no component may take nodes down now, each with a remedy
    :ivar pauses: health checks that are paused while MachineConfigPools roll, in words
    """

    nodes: tuple[NodePlan, ...] = ()
    pools: tuple[PoolPlan, ...] = ()
    drains: bool = True
    unread: dict[str, str] = dataclasses.field(default_factory=dict)
    closed: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
