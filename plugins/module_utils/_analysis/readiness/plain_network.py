# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge whether pods of a node can be attached to a network without virtual functions. The conditions are checked in
the order that the profile of the fabric defines.

Each condition is read only from the authoritative resource: from an operator's object for the actions of the operator,
from the NetworkAttachmentDefinition for the configuration that multus reads, and from the node for the resources of its
device plugins.
"""

from __future__ import annotations

import typing

from ..._model.base.text import both_ends
from ..._model.operators.operators import NIC_LABEL
from .state import ClusterState, Target


class Missing(typing.NamedTuple):
    """The first condition of a network that is not met on a node.

    :ivar detail: the condition, as text
    :ivar suspect: keyword of a state that counts as a failure if it lasts too long (GRACE in grace.py); empty if it may
        last without limit
    """

    detail: str
    suspect: str = ""


#: None when it holds
Predicate = typing.Callable[[Target, str, ClusterState], typing.Optional[Missing]]


def find_first_missing(target: Target, name: str, observed: ClusterState) -> typing.Optional[Missing]:
    """Return the first condition that is not met, so that pods of a node cannot be attached to the network. Return None
    if all are met.

    :param target: fabric for which the run waits
    :param name: name of a node that the cluster has
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    for predicate in target.predicates:
        missing = PREDICATES[predicate](target, name, observed)
        if missing is not None:
            return missing
    return None


def _check_node_readiness(target: Target, name: str, observed: ClusterState) -> typing.Optional[Missing]:
    node = observed.nodes[name]
    return (
        None if node.ready else Missing(f"the node is NotReady: {node.not_ready or 'no reason reported'}", "node_lost")
    )


def _check_operator_objects(target: Target, name: str, observed: ClusterState) -> typing.Optional[Missing]:
    """Return the unmet condition for the first object of the fabric that its operator does not report as ready, with
    the reason. Return None if all are ready.

    :param target: fabric for which the run waits
    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    for what in target.objects:
        kind, _blank, key = what.partition(" ")
        if kind in observed.blind:
            return Missing(f"{kind} could not be read: {observed.blind[kind]}", "unread")
        seen = observed.reports.get(kind, {}).get(key)
        if seen is None:
            return Missing(f"{what} does not exist", "not_reported")
        if seen.state == "ready":
            continue
        if seen.state == "error":
            return Missing(f"{what} is in state error: {_describe_cause(seen.reason, seen.parts)}", "state_error")
        if seen.state == "notReady":
            away = sorted(
                node.name for node in observed.nodes.values() if not node.ready and node.name not in target.nodes
            )
            others = (
                (
                    "; the operator waits for all nodes of the cluster, and these nodes outside this run are NotReady:"
                    f" {', '.join(away[:5])}"
                )
                if away
                else ""
            )
            return _not_ready(
                kind, name, observed, f"{what} is not ready: {_describe_cause(seen.reason, seen.parts)}{others}"
            )
        if seen.state == "ignore":
            return Missing(f"the operator ignores {what}: {_describe_cause(seen.reason, seen.parts)}", "state_error")
        return Missing(f"the operator has not reported the state of {what} yet", "not_reported")
    return None


def _not_ready(kind: str, name: str, observed: ClusterState, detail: str) -> Missing:
    """Return the unmet condition for an object that is not ready.

    For a NicClusterPolicy, the state of its pods on this node is added, because the operator reports only which of its
    parts is not ready, without the reason. Objects of networks have no pods on the nodes.

    :param kind: kind of the object
    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    :param detail: description of the object's state
    """
    if kind != "NicClusterPolicy":
        return Missing(detail)
    if observed.nodes[name].labels.get(NIC_LABEL) != "true":
        return Missing(
            (
                f"{detail}; the node has no label {NIC_LABEL}=true, and the operator deploys nothing on a node without"
                " this label"
            ),
            "no_nic_label",
        )
    for pod, stand in observed.parts.get(name, ()):
        if stand.phase != "ready":
            return Missing(
                f"{detail}; pod {pod} of the operator on the node: {stand.detail}",
                f"part_{stand.suspect}" if stand.suspect else "part",
            )
    return Missing(detail, "part")


def _describe_cause(reason: str, parts: typing.Sequence[str]) -> str:
    return "; ".join(part for part in (reason, *parts) if part) or "no reason reported"


def _check_attachment(target: Target, name: str, observed: ClusterState) -> typing.Optional[Missing]:
    """Return the unmet condition if the NetworkAttachmentDefinition does not exist, is unreadable for multus, or
    differs from the intent. Return None if it is as expected.

    :param target: fabric for which the run waits
    :param name: name of the node; the result is the same for all nodes
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    seen = observed.attachments.get(target.attachment)
    if seen is None:
        return Missing(f"NetworkAttachmentDefinition {target.attachment} does not exist", "no_attachment")
    if seen.fault:
        return Missing(
            f"multus cannot read NetworkAttachmentDefinition {target.attachment}: {seen.fault}", "bad_attachment"
        )
    other = [key for key, value in sorted(target.plugin.items()) if seen.plugin.get(key) != value]
    if other:
        differences = ", ".join(
            f"{key} is {_quote_value(seen.plugin.get(key))} instead of {_quote_value(target.plugin[key])}"
            for key in other
        )
        return Missing(
            f"NetworkAttachmentDefinition {target.attachment} differs from the intent: {differences}", "bad_attachment"
        )
    return None


def _quote_value(value: object) -> str:
    """Return a value in Python syntax, shortened. Any user with the right to change the definition controls the
    value.
    """
    return repr(both_ends(value, 200)) if isinstance(value, str) else both_ends(repr(value), 200)


def _check_pool_share(target: Target, name: str, observed: ClusterState) -> typing.Optional[Missing]:
    """Return the unmet condition if the node has no share of the nv-ipam pool, or if the pool does not exist or could
    not be read. Return None if the node has a share, or if the network uses no such pool.

    :param target: fabric for which the run waits
    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    if not target.pool:
        return None
    kind, _blank, key = target.pool.partition(" ")
    if kind in observed.blind:
        return Missing(f"{kind} could not be read: {observed.blind[kind]}", "unread")
    seen = observed.reports.get(kind, {}).get(key)
    if seen is None:
        return Missing(f"{target.pool} does not exist", "no_share")
    if name not in seen.nodes:
        return Missing(
            f"{target.pool} has no share for the node; nodes with a share: {', '.join(seen.nodes[:5]) or 'none'}",
            "no_share",
        )
    return None


def _check_node_resource(target: Target, name: str, observed: ClusterState) -> typing.Optional[Missing]:
    """Return the unmet condition if the node does not offer the required amount of the extended resource that pods
    request. Return None if the node offers it, or if the network needs no resource.

    :param target: fabric for which the run waits
    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    offered = observed.nodes[name].allocatable.get(target.resource, 0)
    if not target.resource or offered == target.offers or (offered > target.offers and not target.exact):
        return None
    if not offered:
        return Missing(f"the node offers no {target.resource}", "not_shared")
    return Missing(f"the node offers {offered} {target.resource} instead of {target.offers}", "other_share")


PREDICATES: dict[str, Predicate] = {
    "objects": _check_operator_objects,
    "attachment": _check_attachment,
    "pool": _check_pool_share,
    "resource": _check_node_resource,
    "ready": _check_node_readiness,
}
