# SPDX-License-Identifier: GPL-3.0-or-later

"""What decides whether a node is drained or rebooted, and what keeps it from it; and the plan that is made of it.

Filled by _parse/kubernetes (core, sriov_operator, machine_config), judged by _analysis/disruption/sriov.py and
_analysis/readiness/sriov.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.kubernetes import Label, ObjectName, Subdomain, Uid
from ..boundary.words import Word


@dataclasses.dataclass(frozen=True)
class LabelExpression:
    """The requirement of a selector on one label.

    :ivar operator: In, NotIn, Exists or DoesNotExist
    :ivar values: of the first two
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class LabelSelector:
    """A selector of the API (metav1.LabelSelector); without requirements it takes everything."""

    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    expressions: tuple[LabelExpression, ...] = ()


@dataclasses.dataclass(frozen=True)
class NodePool:
    """A SriovNetworkPoolConfig: nodes that the operator drains in turn.

    :ivar max_unavailable: as it is written, ``2`` or ``25%``; None: all at once
    :ivar rdma_mode: shared, exclusive, or empty
    :ivar offload: it only names a pool for OVS hardware offload and is none for drains
    """

    name: ObjectName
    selector: LabelSelector = LabelSelector()
    max_unavailable: typing.Optional[str] = None
    rdma_mode: Word = ""
    offload: bool = False


@dataclasses.dataclass(frozen=True)
class MachinePool:
    """A MachineConfigPool of OpenShift.

    :ivar selector: None takes no node
    :ivar labels: its own, by which KubeletConfigs select it
    :ivar config_selector: of its MachineConfigs, by their labels; None takes none
    :ivar max_unavailable: as it is written, ``2`` or ``25%``; None is 1
    :ivar paused_by_operator: the SR-IOV operator has paused it for a drain of its own, and will let it go on
    :ivar paused_by_us: the collection has paused it, in a run that was stopped before it let it go on
    :ivar sources: names of the MachineConfigs that its wanted one is made of
    :ivar wanted_config: MachineConfig that its nodes should have; current_config: that all of them have
    :ivar conditions: type to status (True, False, Unknown)
    :ivar message: of the condition that says that it is degraded
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
    """SriovOperatorConfig ``default``.

    :ivar disable_drain: nodes are neither cordoned nor drained, and none waits for another
    :ivar mode: daemon or systemd
    :ivar disabled_plugins: of the config daemon
    """

    disable_drain: bool = False
    mode: str = "daemon"
    disabled_plugins: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget.

    :ivar allowed: evictions that it allows now
    :ivar selector: None takes no pod
    """

    name: ObjectName
    namespace: Label
    allowed: int
    selector: typing.Optional[LabelSelector] = None


@dataclasses.dataclass(frozen=True)
class ClusterPod:
    """A pod, as far as a drain cares.

    :ivar requests: names of the resources that its containers request
    :ivar owner: kind of its controller; empty when nothing would make it again
    :ivar mirror: the kubelet runs it from a file
    :ivar ended: Succeeded or Failed
    :ivar uid: another pod of the same name has another one
    :ivar empty_dir: it has a volume of the kind emptyDir, which ends with it
    :ivar of_run: a run of the collection made it, and makes it again where it needs it
    :ivar controller: uid of its controller; empty when it has none
    :ivar tolerates_cordon: the scheduler puts it on a cordoned node as well
    :ivar any_budget: each PodDisruptionBudget of its namespace may select it: it has more labels than are kept
    :ivar unread: it is too large to be read: its metadata and its node alone are known
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


Action = typing.Literal["nothing", "configure", "drain", "reboot", "unknown"]


@dataclasses.dataclass(frozen=True)
class NodePlan:
    """The operator's planned actions on one node.

    :ivar action: configure: virtual functions are made where none are, and nobody notices; drain; reboot; unknown
    :ivar reasons: why; for unknown what is not known
    :ivar pods: namespace/name of the pods that it takes from the node
    :ivar lost: those of them that nothing makes again
    :ivar blockers: what will keep the drain from its end
    :ivar pool: SriovNetworkPoolConfig that the node takes its turn in; empty for the operator's default
    :ivar rolled_by: MachineConfigPool that drains and reboots it, whatever the operator does; empty for none
    :ivar listed: whether the inventory has it
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


@dataclasses.dataclass(frozen=True)
class PoolPlan:
    """The order in which the nodes of one pool take turns.

    :ivar name: empty for the operator's default pool
    :ivar machines: it is a MachineConfigPool
    :ivar nodes: that are drained or rebooted
    :ivar at_once: how many may be at the same time; None: no limit
    :ivar waves: how many turns that makes; None when it never ends
    :ivar limit: where at_once comes from, in words
    :ivar blockers: what keeps all its nodes
    """

    name: str
    nodes: tuple[str, ...]
    at_once: typing.Optional[int]
    waves: typing.Optional[int]
    limit: str
    blockers: tuple[str, ...] = ()
    machines: bool = False


@dataclasses.dataclass(frozen=True)
class DisruptionPlan:
    """Answer of sriov_plan.

    :ivar drains: whether the operator drains at all (not disableDrain)
    :ivar unread: kinds that could not be read, and why; a kind that the server does not serve is none of them
    :ivar closed: why nodes may not go down now, whoever takes them down, each with what to do
    :ivar pauses: health checks that are paused while MachineConfigPools roll, in words
    """

    nodes: tuple[NodePlan, ...] = ()
    pools: tuple[PoolPlan, ...] = ()
    drains: bool = True
    unread: dict[str, str] = dataclasses.field(default_factory=dict)
    closed: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
