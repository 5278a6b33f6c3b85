# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the running pods that lose virtual functions when a removal takes SriovNetworkNodePolicies, although the SR-IOV
operator does not evict them. The rule is that of stage network.
"""

from __future__ import annotations

import typing

from ...._analysis.controllers.drains.drain import explain_function_holders, explain_link_users
from ...._analysis.controllers.sriov.card_firmware import (
    CardTemplates,
    describe_disable,
    list_lost_functions,
    list_template_conflicts,
    writes_firmware,
)
from ...._analysis.controllers.sriov.function_reset import find_function_change
from ...._analysis.controllers.sriov.policies import find_wanted
from ...._analysis.disruption.function_use import Evicts, list_disturbed_functions, list_left_users
from ...._analysis.disruption.link_users import find_link_users
from ...._analysis.fleet.nics_in_use import describe_use, is_needed
from ...._model.base.marks import RUN_LABEL, is_ours
from ...._model.kubernetes.disruption import FunctionHolder, OperatorSettings
from ...._model.kubernetes.objects import ClusterNode
from ...._model.operators.sriov_operator import NodeState, Policy
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._parse.kubernetes.foreign import is_made_pod
from ...._parse.kubernetes.resource import labels_of
from ..function_holders import FunctionHolders
from .known_uses import KnownUses, describe_waiver


class _Any(typing.Container[str]):
    """A stand-in for the PCI addresses of a node whose virtual functions are not known. It contains each address."""

    def __contains__(self, _address: object) -> bool:
        return True


class RemovedFunctions(typing.NamedTuple):
    """The policies that a removal deletes, and the nodes that lose virtual functions by this deletion.

    :ivar nodes: nodes that a removed policy selects
    :ivar removed: policies that the removal takes
    :ivar left: policies of the operator that remain
    :ivar states: SriovNetworkNodeStates by node. On a node without a state, each function counts as removed
    :ivar rebooted: names of the nodes that the operator reboots
    :ivar drains: whether the operator drains nodes
    """

    nodes: typing.Sequence[ClusterNode]
    removed: typing.Sequence[Policy]
    left: typing.Sequence[Policy]
    states: typing.Mapping[str, NodeState]
    rebooted: typing.Container[str]
    drains: bool


def explain_losses(cluster: Cluster, taken: RemovedFunctions, prefix: str, known: KnownUses) -> typing.Iterator[str]:
    """Yield the reasons why the virtual functions of nodes must not be removed now, each with its node and its remedy:
    running pods use them, or the physical function whose eSwitch mode the operator resets, and the operator does not
    evict these pods. Pods of a run of the collection do not count.

    :param prefix: prefix of the resources of virtual functions
    :param known: uses of NICs by the nodes themselves, such as by a bridge on which networks of pods are
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    if not taken.nodes:
        return
    holders = FunctionHolders(cluster, {node.name for node in taken.nodes}, prefix)
    for _pod in holders.collect(cluster.pages("Pod", only=_may_hold, partial=True), lambda _pod: False):
        pass
    resources = {f"{prefix}/{policy.resource_name}" for policy in taken.removed}
    for node in taken.nodes:
        addresses = _list_addresses(taken, node)
        reboots = node.name in taken.rebooted
        evicts: Evicts = "none" if not taken.drains else "all" if reboots else "functions"
        here = holders.found.get(node.name, ())
        users = list_left_users(here, addresses, evicts, reboots, resources) if addresses else ()
        if users:
            yield f"{node.name}: {explain_function_holders(users, prefix, taken.drains)}"
        links = explain_link_users(() if reboots else _list_link_users(taken, node, here, known))
        if links:
            yield f"{node.name}: {links}"


def explain_uplinks(taken: RemovedFunctions, known: KnownUses) -> typing.Iterator[str]:
    """Yield the reasons why physical functions must not be reset now: they carry the default route or an address of
    their node, or their use is unknown and the reset interrupts the link or makes the interface again. On InfiniBand an
    unknown use is a warning, because a default route over IPoIB is unusual and an empty report folder is not. Add a
    warning to ``known`` about other and waived uses too. A node that reboots does not count, because the reboot sets up
    its network again.

    :param taken: policies that the removal deletes, and their nodes
    :param known: uses of NICs by the nodes themselves
    """
    for node in taken.nodes:
        state = None if node.name in taken.rebooted else taken.states.get(node.name)
        if state is None:
            continue
        wishes = {item.address: item for item in find_wanted(taken.left, node, state)}
        changes = [(one, find_function_change(wishes.get(one.address), one, state)) for one in state.interfaces]
        used = known.functions.get(node.name)
        for interface, change in changes:
            if not change.texts or (used is None and not (change.interrupts or change.remakes)):
                continue
            name = interface.name or interface.address
            use = (used or {}).get(interface.address) or (used or {}).get(interface.name) or ""
            doing = "may carry the default route of the node (no run with stage network is known that has read it)"
            subject, said = (
                f"teardown {node.name} {name}",
                f"{name} {doing if used is None else describe_use(use)}, and the operator resets it:"
                f" {', '.join(change.texts)}",
            )
            unproven = used is None and (interface.link_type or "").upper() != "IB"
            if (unproven or is_needed(use)) and not known.is_waived(subject, said):
                yield f"{node.name}: {said}. {describe_waiver(subject)}"
            elif use or used is None:
                known.warn(f"{node.name}: {said}")


def explain_firmware(
    taken: RemovedFunctions, place: str, settings: OperatorSettings, cards: CardTemplates
) -> typing.Iterator[str]:
    """Yield the reasons why policies must not be removed now, each with its node and its remedy: the operator then sets
    a smaller number of virtual functions in the firmware of a card, and another port of the card has more of them, or a
    template of NVIDIA's NIC configuration operator sets another number.

    :param place: namespace of the operator; empty if it is not known
    :param cards: templates that remain, and cards of NVIDIA's NIC configuration operator
    """
    if not writes_firmware(settings):
        return
    for node in taken.nodes:
        state = taken.states.get(node.name)
        if state is None:
            continue
        before = (*state.wanted, *find_wanted((*taken.left, *taken.removed), node, state))
        after = find_wanted(taken.left, node, state)
        for why in (
            *list_lost_functions(before, after, state.interfaces),
            *list_template_conflicts(cards, node, after, state.interfaces, before),
        ):
            yield f"{node.name}: {why}. {describe_disable(place, settings)}."


def _list_link_users(
    taken: RemovedFunctions, node: ClusterNode, holders: typing.Sequence[FunctionHolder], known: KnownUses
) -> tuple[str, ...]:
    """Return the pods that use a physical function whose network devices disappear and return when the operator resets
    it, as text.

    :param taken: policies that the removal deletes, and their nodes
    :param holders: running pods of the node that may use its functions
    :param known: uses of NICs by the nodes themselves
    """
    state, used = taken.states.get(node.name), known.functions.get(node.name) or {}
    if state is None:
        return ()
    uppers = known.uppers.get(node.name)
    return find_link_users(find_wanted(taken.left, node, state), state, used, holders, uppers).lost


def _may_hold(pod: Resource) -> bool:
    labels = labels_of(pod)
    return is_made_pod(pod) and not (is_ours(labels) and RUN_LABEL in labels)


def _list_addresses(taken: RemovedFunctions, node: ClusterNode) -> typing.Container[str]:
    """Return the PCI addresses of the virtual functions that the operator removes from a node. If the functions of the
    node are not known, the result contains each address.

    :param taken: policies that the removal deletes, and their nodes
    """
    state = taken.states.get(node.name)
    if state is None or not state.interfaces:
        return _Any()
    return list_disturbed_functions(find_wanted(taken.left, node, state), state)
