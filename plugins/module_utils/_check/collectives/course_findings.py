# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings at the end of a collective's course: its steps, and the components that are slow. Check ids:
``collectives.bandwidth``, ``collectives.repeat``, ``collectives.steps``, ``collectives.suspect``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.collectives import CollectiveGroup, CollectiveTests, Kind
from ..._analysis.schedule.halving import Named
from ..._model.base.text import folded
from ..._model.measurement.collectives import ExpectedBusbw, TestName
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .floor import spell_gbs
from .repeats import MOVED

#: nodes of a group that a finding names
_NAMED = 4
_NODE = (
    "Look at what its rails share: PCIe, ACS, IOMMU, the CPUs, a throttled GPU. See tuning and host of this node beside"
    " another one."
)
_PORT = (
    "See fabric and bandwidth of this HCA: its link, its errors, its PCIe slot; and the way from the GPU beside it"
    " (nvidia-smi topo -m)."
)
_LEAF = "See the leaf: buffers, PFC and ECN, adaptive routing, its error counters."
_UPLINK = (
    "See the links of this leaf to other switches: how many are up, their errors, and how flows are spread over them."
)
_RAIL = (
    "See what all nodes have alike on this rail: the leaf, the position of its HCA, the GPU beside it, firmware and"
    " settings."
)


def report_steps(name: TestName, climb: CollectiveTests, nodes: int) -> list[Finding]:
    """Return a finding for each step of a collective: passed if a group of the step is proven, else unknown.

    :param name: name of the collective
    :param climb: the tests with their results
    :param nodes: number of nodes with a pod
    """
    steps: list[Finding] = []
    for kind in (*climb.proven, *climb.unproven):
        subject, expected = f"{name}, {kind}", "a group of it is proven, and as fast as the links allow"
        if kind in climb.proven:
            left = [node for node, step in climb.left_out.items() if step == kind]
            steps.append(
                ok(
                    "collectives.steps",
                    subject,
                    f"proven{f' without {folded(left, _NAMED)}' if left else ''}",
                    expected,
                )
            )
            continue
        why = "No group of it is proven, or a step before it was not, so that nothing can be built on it."
        steps.append(
            Finding(
                "collectives.steps",
                subject,
                UNKNOWN,
                "not proven",
                expected,
                why,
                "See the other findings of this collective first.",
            )
        )
    if nodes < 2:
        why = "A network needs two nodes, and one alone has a pod."
        steps.append(
            Finding(
                "collectives.steps",
                f"{name}, two nodes",
                UNKNOWN,
                "one node",
                "two nodes at least",
                why,
                "See collectives.pod.",
            )
        )
    return steps


@dataclasses.dataclass(frozen=True)
class GroupRun:
    """The result of one run of a group.

    :ivar passes: whether it was proven and fast enough; None where it was not proven or gave no figure
    :ivar bus_gbs: bus bandwidth that is proven, in GB/s; None where none is
    :ivar failure: what ended it, or what failed in it besides its figure; empty where nothing did
    """

    passes: typing.Optional[bool]
    bus_gbs: typing.Optional[float]
    failure: str = ""


def report_unsteady(subject: str, runs: typing.Sequence[GroupRun]) -> typing.Iterator[Finding]:
    """Report a group that was slow, failed or was not proven, and passed when it ran again: nothing was changed, so the
    fault may come back.

    :param runs: of the group, the first one first
    """
    *before, last = runs
    if not before or not last.passes or last.bus_gbs is None:
        return
    failures = [run.failure for run in before if run.failure]
    figures = [run.bus_gbs for run in before if run.bus_gbs is not None]
    lowest = min(figures) if figures else None
    first = failures[0] if failures else spell_gbs(lowest) if lowest is not None else "not proven"
    steady = not failures and (lowest is None or last.bus_gbs < (1 + MOVED) * lowest)
    why = (
        "The group ran again without a change, and passed. What kept it from passing may come back: a link that loses"
        " packets or goes down, a throttled GPU, a process that crashes, or other traffic."
    )
    remedy = (
        "Keep other jobs off these nodes, and run: ansible-playbook linerate.rdma.site --tags bandwidth,collectives. If"
        " it comes back, see the error counters of the links (stage fabric) and nvidia-smi -q -d PERFORMANCE of the"
        " nodes."
    )
    yield Finding(
        "collectives.repeat",
        f"{subject}, run again",
        WARN if steady else UNKNOWN,
        f"{first}, then {spell_gbs(last.bus_gbs)}",
        "the same in each run",
        why,
        remedy,
    )


def report_unused_floors(
    name: TestName, floors: typing.Sequence[ExpectedBusbw], used: typing.AbstractSet[ExpectedBusbw]
) -> typing.Iterator[Finding]:
    """Report each floor of the intent that no group was compared with. A floor of all groups is not missed where each
    group has a floor of its number of nodes.

    :param used: floors that a group was compared with
    """
    for item in floors:
        if item.test != name or item in used or (item.nodes is None and used):
            continue
        groups = f"a group of {item.nodes} nodes" if item.nodes is not None else "a group of several nodes"
        why = (
            f"No test of {groups} gave a figure over all rails. expected_busbw counts only for such a figure; the tests"
            " of two nodes run each rail by itself, and a floor that is derived from the rail is their limit."
        )
        remedy = (
            "Set nodes of this entry of rdma_cluster.collectives.expected_busbw to the number of nodes of a group that"
            " the report lists, or remove the entry. If the group was not tested, correct the other findings of this"
            " collective, and run: ansible-playbook site.yml --tags bandwidth,collectives."
        )
        yield Finding(
            "collectives.bandwidth",
            f"{name}, expected_busbw of {f'{item.nodes} nodes' if item.nodes is not None else 'all groups'}",
            UNKNOWN,
            "compared with no group",
            f"{spell_gbs(item.gbs)}, by the intent: {item.reason}",
            why,
            remedy,
        )


def report_suspects(name: TestName, kind: Kind, named: Named) -> typing.Iterator[Finding]:
    """Yield a finding on each node, port, leaf, uplink and rail that was found to be slow, and on nodes among which the
    slow one could not be found.

    :param name: name of the collective
    :param kind: step of the collective
    :param named: result of the search
    """
    places: list[tuple[str, str, str]] = [(node, "each of its rails is slow", _NODE) for node in named.nodes]
    for node, rail in named.ports:
        what = (
            "gives no figure"
            if (node, rail) in named.silent
            else "is slow with each other node, and those are fast without it"
        )
        places.append((f"{node} rail {rail}", f"this port {what}", _PORT))
    places += [
        (f"{leaf} rail {rail}", "nodes of this leaf are slow with each other", _LEAF) for leaf, rail in named.leaves
    ]
    places += [
        (f"{leaf} rail {rail}", "its nodes are fast with each other, and slow with those of other leaves", _UPLINK)
        for leaf, rail in named.uplinks
    ]
    places += [(f"rail {rail}", "it is slow between any two nodes", _RAIL) for rail in named.rails]
    for place, why, remedy in places:
        yield Finding(
            "collectives.suspect",
            f"{name}, {place}",
            FAIL,
            f"named in step {kind}",
            "nothing to name",
            f"{_first_up(why)}.",
            remedy,
        )
    for rail, nodes in named.undecided:
        why = "There is nobody that is known to be fast to test them with, or their tests contradict each other."
        subject = f"{name}, rail {rail} of {folded(nodes, _NAMED)}"
        yield Finding(
            "collectives.suspect",
            subject,
            UNKNOWN,
            f"not decided in step {kind}",
            "nothing to name",
            why,
            "Run the stage again on an idle fabric.",
        )


def report_group(subject: str, group: CollectiveGroup) -> Finding:
    """Return the finding on a group that is slow or not proven, although none of its members was found to be slow."""
    if group.kind == "one node":
        why = "The inside of this node is slow or not proven, before any network; it takes no part in the other steps."
        return Finding(
            "collectives.suspect",
            subject,
            FAIL,
            "slow or not proven",
            "nothing to name",
            why,
            "See collectives.inside and collectives.way of it.",
        )
    why = "Each rail alone is fast enough, or none could be named, and the group is slow or not proven all the same."
    remedy = "See collectives.cause of it: what all rails share is PCIe, the CPUs, power, and links between switches."
    return Finding("collectives.suspect", subject, FAIL, "slow or not proven", "nothing to name", why, remedy)


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
