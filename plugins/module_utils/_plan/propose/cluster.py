# SPDX-License-Identifier: GPL-3.0-or-later

"""The proposal of ``rdma_cluster``: the settings that all fabrics share."""

from __future__ import annotations

import hashlib
import typing

from ..._model.intent.disruption_override import DISRUPTION
from ..._model.intent.intent import ClusterIntent
from ..._model.intent.proposal import Blank, Entry, Section, Value, make_data
from ..._model.operators.sriov_operator import OperatorFacts
from .groups import HcaGroup
from .inputs import ProposalInputs

# of a node that the operator drains, and that it reboots as well
_DRAIN_SECONDS, _REBOOT_SECONDS = 300, 900


def propose_cluster_section(
    groups: typing.Sequence[HcaGroup], items: typing.Sequence[Section], seen: ProposalInputs, nodes: tuple[str, ...]
) -> Section:
    disruption = _propose_disruption(groups, items)
    seconds = len(nodes) * (_REBOOT_SECONDS if disruption.value == "reboot" else _DRAIN_SECONDS)
    wait = max(ClusterIntent().wait_seconds, seconds)
    entries: tuple[tuple[str, Entry], ...] = (
        ("intent_name", _propose_intent_name(groups, nodes, seen.operators)),
        ("node_selector", _propose_node_selector(seen.operators, nodes)),
        _propose_resource_prefix(seen.operators),
        (
            "wait_seconds",
            Value(
                wait,
                f"the operator configures {len(nodes)} nodes one after the other; set node_pool.max_unavailable to"
                " configure several nodes at the same time",
            ),
        ),
        ("disruption", disruption),
    )
    return Section(entries, "settings of all fabrics")


def _propose_intent_name(
    groups: typing.Sequence[HcaGroup], nodes: typing.Iterable[str], operators: typing.Optional[OperatorFacts]
) -> Value:
    """Propose a name for the intent, such as ``infiniband-3fa9c1``. It contains a digest of the names of the nodes, so
    different inventories of one cluster get different names. Two admins with the same nodes get the same name; the
    comment of the value therefore names an existing policy that has this name already.

    :param operators: facts with the policies of the cluster; None if they are not known
    """
    layers = {"infiniband" if group.infiniband else "ethernet" for group in groups}
    digest = hashlib.sha256("\n".join(sorted(nodes)).encode()).hexdigest()[:6]
    name = f"{next(iter(layers)) if len(layers) == 1 else 'rdma'}-{digest}"
    there = next((policy.name for policy in operators.policies if policy.intent == name), "") if operators else ""
    taken = (
        f"SriovNetworkNodePolicy {there} has this name already: with it a run changes the objects of that intent. If it"
        " is not yours, ask its owner, and set another name. It is "
    )
    return Value(
        name,
        f"{taken if there else ''}a label of all objects of this intent, made from the names of the nodes; each intent"
        " of a cluster needs its own, and a teardown removes only the objects with it. Do not change it after the first"
        " run",
    )


def _propose_disruption(groups: typing.Sequence[HcaGroup], items: typing.Sequence[Section]) -> Value:
    wanted = [make_data(item).get("virtual_functions") for item in items]
    there = all(hca.sriov and hca.sriov.current == count for group, count in zip(groups, wanted) for hca in group.all)
    if there:
        return Value(
            "drain",
            "the VFs exist already; a new policy drains the nodes one after the other, which evicts their pods",
            DISRUPTION,
        )
    why = (
        "VFs must be created, and the first policy on ConnectX usually changes firmware settings: the operator drains"
        " and reboots the nodes one after the other"
    )
    return Value("reboot", why, DISRUPTION)


def _propose_resource_prefix(operators: typing.Optional[OperatorFacts]) -> tuple[str, Entry]:
    """Return the key ``resource_prefix`` and the proposal for its value: the prefix that the operator adds to resource
    names. It is a blank if the prefix cannot be determined. The operator's namespace is not proposed, since each stage
    detects it.

    :param operators: SR-IOV operators of the cluster; None if they could not be read
    """
    usual = ClusterIntent().resource_prefix
    key, hint = "resource_prefix", "prefix of the device plugin's resources"
    if operators is None:
        return key, Blank(hint, "the cluster could not be queried")
    if len(operators.installations) == 1:
        (found,) = operators.installations
        by = f"the operator {found.deployment.name} {found.version}".strip()
        where = f"{by} in {found.deployment.namespace}, installed by {found.origin}"
        why = (
            f"RESOURCE_PREFIX of {where}"
            if found.resource_prefix
            else f"the default of {where}, which does not set RESOURCE_PREFIX"
        )
        return key, Value(found.resource_prefix or usual, why)
    if operators.installations:
        names = ", ".join(item.deployment.namespace for item in operators.installations)
        return key, Blank(
            hint, f"the cluster has {len(operators.installations)} SR-IOV operators, in {names}, but may have only one"
        )
    if operators.errors:
        return key, Blank(hint, "no SR-IOV operator was found, but not all objects could be read: see the notes above")
    return key, Value(
        usual,
        "no SR-IOV operator is installed yet, so this is its default; operators_install: true installs the operator"
        f" into {operators.namespace}",
    )


def _propose_node_selector(
    operators: typing.Optional[OperatorFacts], nodes: tuple[str, ...]
) -> typing.Union[Section, Blank]:
    label = ClusterIntent().node_selector
    ((key, value),) = label.items()
    hint = "a mapping with a label that only the participating nodes have"
    if operators is None:
        return Blank(hint, "the cluster could not be queried")
    bearing = {node.name for node in operators.nodes if node.labels.get(key) == value}
    if set(nodes) <= bearing:
        others = sorted(bearing - set(nodes))
        more = (
            f"; these nodes also have it, do not take part, and would get VFs as well: {', '.join(others)}"
            if others
            else ""
        )
        return Section(
            ((key, Value(value, f"all {len(nodes)} nodes have this label from node feature discovery{more}")),),
            "nodes that take part",
        )
    without = sorted(set(nodes) - bearing)
    known = {node.name for node in operators.nodes}
    strangers = [name for name in without if name not in known]
    if strangers and operators.errors:
        return Blank(
            hint,
            f"the labels of {', '.join(strangers)} are unknown, because not all objects could be read: see the"
            " notes above",
        )
    why = (
        f"the cluster has no node with the name {', '.join(strangers)}"
        if strangers
        else f"{', '.join(without)} lack the usual label {key}: {value}"
    )
    return Blank(hint, f"{why}. Set your own label: kubectl label node NODE example.com/rdma=true")
