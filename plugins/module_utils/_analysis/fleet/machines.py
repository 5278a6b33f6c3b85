# SPDX-License-Identifier: GPL-3.0-or-later

"""Verify that the facts of a node come from the machine that the cluster knows by the name of the node, by comparing
the boot IDs that both report. Check ids: ``operators.machine``, ``virtual_functions.machine``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.objects import ClusterNode
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass

_LOOK = "cat /proc/sys/kernel/random/boot_id"


@dataclasses.dataclass(frozen=True)
class Answers:
    """The boot IDs in the facts of one kind.

    :ivar kind: kind of the facts
    :ivar boots: ID of the boot in which each node answered, for the nodes that did; None if the ID was not read
    """

    kind: str
    boots: typing.Mapping[str, typing.Optional[str]]


def collect_answers(
    kind: str, nodes: typing.Mapping[str, typing.Union[ObservedHcas, ObservedPlatform]]
) -> typing.Optional[Answers]:
    """Return the boot IDs in the facts of the nodes, or None if no node answered.

    :param kind: kind of the facts
    :param nodes: fact of each node
    """
    boots = {name: seen.value.boot for name, seen in nodes.items() if seen.value is not None and seen.error is None}
    return Answers(kind, boots) if boots else None


def check(
    check_id: str,
    nodes: typing.Iterable[str],
    asked: typing.Sequence[typing.Optional[Answers]],
    cluster: typing.Sequence[ClusterNode],
) -> typing.Iterator[Finding]:
    """Check that each fact of a node has the boot ID that the kubelet of the node reports, which proves that both are
    the same boot of the same machine. Nodes that the cluster does not know, or that have no facts, yield no finding.

    :param check_id: check id of the findings
    :param nodes: names of the nodes of the inventory
    :param asked: boot ID of each node in the facts of one kind, for each kind; None for a kind without an answer
    :param cluster: nodes of the cluster, with the boot IDs of their kubelets
    """
    answers = [one for one in asked if one is not None]
    kubelets = {node.name: node.boot_id.lower() for node in cluster}
    owners: dict[str, list[str]] = {}
    for name, boot in kubelets.items():
        owners.setdefault(boot, []).append(name)
    for name in nodes:
        given = {one.kind: (one.boots[name] or "").lower() for one in answers if name in one.boots}
        if given and name in kubelets:
            yield _check_node(check_id, name, given, kubelets[name], owners)


def _check_node(
    check_id: str,
    name: str,
    given: typing.Mapping[str, str],
    told: str,
    owners: typing.Mapping[str, typing.Sequence[str]],
) -> Finding:
    """Compare the boot IDs in the facts of one node with the boot ID that its kubelet reports.

    :param check_id: check id of the finding
    :param name: name of the node
    :param given: boot ID by kind of fact
    :param told: boot ID that the kubelet of the node reports; empty if it reports none
    :param owners: names of the nodes by the boot ID that their kubelets report
    """
    expected = f"boot ID {told}, as reported by the kubelet" if told else "the same boot ID as the kubelet reports"
    measured = ", ".join(
        f"{f'boot ID {boot}' if boot else 'no boot ID'} in facts/{kind}/{name}.json"
        for kind, boot in sorted(given.items())
    )
    odd = {kind: boot for kind, boot in sorted(given.items()) if not boot or boot != told}
    if told and not odd:
        return build_pass(check_id, name, f"boot ID {told}", expected)
    compare = (
        f"Compare the output of '{_LOOK}' at the address of {name} with status.nodeInfo.bootID in kubectl get node"
        f" {name} -o yaml"
    )
    if not told:
        measured = f"{measured}, no boot ID from the kubelet"
        why = "Without a boot ID from the kubelet, the data may come from another machine than this node."
        return Finding(
            check_id,
            name,
            UNKNOWN,
            measured,
            expected,
            why,
            f"Run systemctl restart kubelet on {name}. Check that kubectl get node {name} -o"
            " jsonpath='{.status.nodeInfo.bootID}' prints a boot ID, then run all stages again.",
        )
    others = {other: kind for kind, boot in odd.items() for other in (owners.get(boot, ()) if boot else ())}
    if others:
        whose = ", ".join(list(others)[:3])
        why = (
            f"The data of {name} was read on the machine that the cluster knows as {whose}. The results of the stages"
            f" for {name} therefore belong to {whose}."
        )
        remedy = (
            f"{compare}, and correct ansible_host of {name} and {whose} in the inventory. Then run all stages again."
        )
        return Finding(check_id, name, FAIL, measured, expected, why, remedy)
    if not all(odd.values()):
        why = f"The file /proc/sys/kernel/random/boot_id of {name} was not read, so the data may be of another machine."
        remedy = f"Run '{_LOOK}' on {name}, and correct the error. Then run all stages again."
        return Finding(check_id, name, UNKNOWN, measured, expected, why, remedy)
    why = (
        "No kubelet reports this boot ID. The data comes from a machine that is not a node of the cluster, or the node"
        " has rebooted since."
    )
    remedy = (
        f"{compare}. If they differ, correct ansible_host of {name} in the inventory. Otherwise run all stages again."
    )
    return Finding(check_id, name, UNKNOWN, measured, expected, why, remedy)
