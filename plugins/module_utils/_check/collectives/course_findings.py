# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings at the end of a collective's course: its steps, and the components that are slow. Check ids:
``collectives.bandwidth``, ``collectives.repeat``, ``collectives.steps``, ``collectives.suspect``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.collectives import CollectiveGroup, CollectiveTests, Kind
from ..._analysis.schedule.halving import Named
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.measurement.collectives import ExpectedBusbw, TestName
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .floor import spell_gbs
from .repeats import MOVED

#: nodes of a group that a finding names
_NAMED = 4
_NODE = (
    "Follow the remedies of the findings of stages tuning and host on this node (ACS, IOMMU, CPUs, PCIe). If"
    " there are none, run nvidia-smi -q -d PERFORMANCE on the node while it is busy, and correct the reason for"
    " which a GPU throttles. Then run stage collectives again."
)
_PORT = (
    "Follow the remedies of the findings of stages fabric and bandwidth on the HCA of this rail (link, errors,"
    " PCIe). If there are none, run nvidia-smi topo -m on the node: the GPU beside this HCA must be at PIX or"
    " PXB, else follow the findings of stage tuning on ACS. Then run stage collectives again."
)
_LEAF = (
    "Read the error counters of the ports of this leaf (ibqueryerrors, or the counters of the Ethernet switch),"
    " and repair the port whose counters increase. On Ethernet, make PFC and ECN of its ports equal to those of"
    " another leaf. Then run stage collectives again."
)
_UPLINK = (
    "Read the state and the error counters of the links of this leaf to other switches (iblinkinfo and"
    " ibqueryerrors, or the Ethernet switch). Repair a link that is down or whose counters increase. If all are"
    " good, enable adaptive routing. Then run stage collectives again."
)
_RAIL = (
    "Compare the leaf of this rail, and the firmware and settings of the HCAs on it (findings of stages"
    " discover, platform and tuning), with those of a fast rail. Correct what differs, then run stage"
    " collectives again."
)


_FAST = "a result, as fast as the links allow"


def report_steps(name: TestName, climb: CollectiveTests, nodes: int) -> list[Finding]:
    """Return a finding for each step of a collective (one node, two nodes, ...): passed if a group of the step is
    proven, else unknown.

    :param name: name of the collective
    :param climb: tests of the collective, with their results
    :param nodes: number of nodes with a pod
    """
    steps: list[Finding] = []
    first = climb.unproven[0] if climb.unproven else ""
    for kind in (*climb.proven, *climb.unproven):
        subject, expected = f"{name}, {kind}", "at least 1 test verified, and as fast as the links allow"
        if kind in climb.proven:
            left = [node for node, step in climb.left_out.items() if step == kind]
            steps.append(
                build_pass(
                    "collectives.steps",
                    subject,
                    f"verified{f' without {join_first(left, _NAMED)}' if left else ''}",
                    expected,
                )
            )
            continue
        why = (
            (
                f"No test of this size was made: it needs a verified and fast test of the smaller size '{first}', and"
                " there is none."
            )
            if kind != first
            else f"No test of '{first}' has both a log of NCCL that shows its transport and a sufficient bandwidth."
            f" Tests with more nodes are only valid after a verified and fast test of '{first}'."
        )
        steps.append(
            Finding(
                "collectives.steps",
                subject,
                UNKNOWN,
                "0 tests verified",
                expected,
                why,
                (
                    "Follow the remedies of the findings collectives.started, collectives.way and"
                    f" collectives.bandwidth of '{name}, {first}', then run stage collectives again."
                ),
            )
        )
    if nodes < 2:
        why = "The stage has a usable pod on only one node, so no test between nodes could run."
        steps.append(
            Finding(
                "collectives.steps",
                f"{name}, two nodes",
                UNKNOWN,
                "one node with a usable pod",
                "at least two nodes with a usable pod",
                why,
                "Follow the remedies of the findings collectives.pod of the other nodes, then run stage collectives"
                " again.",
            )
        )
    return steps


@dataclasses.dataclass(frozen=True)
class GroupRun:
    """The result of one run of a group.

    :ivar passes: whether it was proven and fast enough; None if it was not proven or gave no figure
    :ivar bus_gbs: proven bus bandwidth in GB/s; None if none is proven
    :ivar failure: failure that ended the run, or the first failed check other than its bandwidth; empty without a
        failure
    """

    passes: typing.Optional[bool]
    bus_gbs: typing.Optional[float]
    failure: str = ""


def report_unsteady(subject: str, runs: typing.Sequence[GroupRun]) -> typing.Iterator[Finding]:
    """Yield a finding on a group that failed or was slow at first, and passed when it ran again without a change, since
    its fault may recur. Yield nothing for any other group.

    The finding is a warning if no run failed and the last figure is hardly higher than the lowest; otherwise its status
    is ``unknown``.

    :param subject: subject of the group
    :param runs: results of the group in the order of its runs
    """
    *before, last = runs
    if not before or not last.passes or last.bus_gbs is None:
        return
    failures = [run.failure for run in before if run.failure]
    figures = [run.bus_gbs for run in before if run.bus_gbs is not None]
    lowest = min(figures) if figures else None
    first = failures[0] if failures else spell_gbs(lowest) if lowest is not None else "not verified"
    steady = not failures and (lowest is None or last.bus_gbs < (1 + MOVED) * lowest)
    why = (
        "The group did not pass at first, ran again without a change, and passed. The cause may recur: a link that"
        " loses packets or goes down, a throttled GPU, a process that crashes, or other traffic."
    )
    remedy = (
        "Keep other jobs off these nodes, and run: ansible-playbook linerate.rdma.site --tags"
        " bandwidth,collectives. If the finding returns, follow the remedies of the findings fabric.errors, and"
        " run nvidia-smi -q -d PERFORMANCE on the nodes to find a GPU that throttles."
    )
    yield Finding(
        "collectives.repeat",
        f"{subject}, run again",
        WARN if steady else UNKNOWN,
        f"{first}, then {spell_gbs(last.bus_gbs)}",
        "the same result in each run of the test",
        why,
        remedy,
    )


def report_unused_floors(
    name: TestName, floors: typing.Sequence[ExpectedBusbw], used: typing.AbstractSet[ExpectedBusbw]
) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` for each ``expected_busbw`` of the intent with which no group was compared.

    An entry without a number of nodes gets no finding if groups were compared with other entries.

    :param name: name of the collective
    :param floors: entries of ``expected_busbw`` in the intent
    :param used: entries with which a group was compared
    """
    for item in floors:
        if item.test != name or item in used or (item.nodes is None and used):
            continue
        groups = f"a group of {item.nodes} nodes" if item.nodes is not None else "a group of several nodes"
        why = (
            f"No test of {groups} gave a bandwidth over all rails, and expected_busbw applies only to such a bandwidth."
            " The tests of two nodes measure each rail separately, and their floor is derived from the rate of the"
            " rail."
        )
        remedy = (
            "In this entry of rdma_cluster.collectives.expected_busbw, set nodes to the number of nodes of a group that"
            " the report lists, or remove the entry. If the group was not tested, correct the other findings of this"
            " collective, then run: ansible-playbook linerate.rdma.site --tags bandwidth,collectives."
        )
        yield Finding(
            "collectives.bandwidth",
            f"{name}, expected_busbw of {count_of(item.nodes, 'node') if item.nodes is not None else 'all groups'}",
            UNKNOWN,
            "not compared with any group",
            f"a group to compare with {spell_gbs(item.gbs)}, set in the intent: {item.reason}",
            why,
            remedy,
        )


def report_suspects(name: TestName, kind: Kind, named: Named) -> typing.Iterator[Finding]:
    """Yield a failed finding for each node, port, leaf, uplink and rail that was found to be slow, and a finding of
    status ``unknown`` for each group of nodes in which the slow node could not be found.

    :param name: name of the collective
    :param kind: step of the collective
    :param named: slow components that the search found
    """
    places: list[tuple[str, str, str, str]] = [
        (
            node,
            "slow with other nodes on several rails",
            "This node is slow on several rails, so the cause is what its rails share.",
            _NODE,
        )
        for node in named.nodes
    ]
    for node, rail in named.ports:
        silent = (node, rail) in named.silent
        why = (
            "This port gave no result: its HCA is not usable, or its path to the GPU is broken."
            if silent
            else "The other nodes are fast without this port, so the cause is its HCA, its cable or its path to the"
            " GPU."
        )
        measured = "no result with any other node" if silent else "slow with every other node"
        places.append((f"{node} rail {rail}", measured, why, _PORT))
    places += [
        (
            f"{leaf} rail {rail}",
            "nodes of this leaf slow with each other",
            "The nodes of this leaf share only the leaf, so the cause is the leaf.",
            _LEAF,
        )
        for leaf, rail in named.leaves
    ]
    places += [
        (
            f"{leaf} rail {rail}",
            "nodes of this leaf slow with nodes of other leaves",
            "The nodes of this leaf are fast with each other, so the cause is the links of the leaf to other switches.",
            _UPLINK,
        )
        for leaf, rail in named.uplinks
    ]
    places += [
        (
            f"rail {rail}",
            "slow between any two nodes",
            "All nodes are slow on this rail, so the cause is what they have in common on it.",
            _RAIL,
        )
        for rail in named.rails
    ]
    for place, measured, why, remedy in places:
        yield Finding(
            "collectives.suspect",
            f"{name}, {place}",
            FAIL,
            f"{measured}, in the tests of the step '{kind}'",
            _FAST,
            why,
            remedy,
        )
    for rail, nodes in named.undecided:
        several = len(nodes) > 1
        which = f"At least one of {join_first(nodes, 16)}" if several else f"{nodes[0]} or the node tested with it"
        why = (
            f"{which} is slow on rail {rail}. The tests do not show which node: no fast node was left to test"
            f" {'each of them' if several else 'it'} with, or the results differed from test to test."
        )
        subject = f"{name}, rail {rail} of {join_first(nodes, _NAMED)}"
        yield Finding(
            "collectives.suspect",
            subject,
            UNKNOWN,
            f"slow, slow node not determined, in the tests of the step '{kind}'",
            _FAST,
            why,
            f"Follow the remedies of the findings collectives.bandwidth of {'these nodes' if several else 'this node'},"
            " then run stage collectives again while the fabric is idle.",
        )


def report_group(subject: str, group: CollectiveGroup, slow: bool) -> Finding:
    """Return the failed finding on a group that is slow or not proven, although no single member of it was found to be
    slow.

    :param subject: subject of the group
    :param group: nodes and kind of the test
    :param slow: whether its bandwidth is verified, so that it can only be too low
    """
    measured = "verified, but slow" if slow else "not verified"
    if group.kind == "one node":
        why = (
            "The test does not use the network, so the cause is inside the node: its GPUs, NVLink or PCIe. The node"
            " takes no part in the tests with other nodes."
            if slow
            else "Without a verified test of the node alone, its GPUs and NVLink are not known to be good. The node"
            " takes no part in the tests with other nodes."
        )
        checks = "collectives.inside" if slow else "collectives.started and collectives.way"
        return Finding(
            "collectives.suspect",
            subject,
            FAIL,
            measured,
            "verified, and as fast as the other nodes",
            why,
            f"Follow the {'remedy of the finding' if slow else 'remedies of the findings'} {checks} of this node, then"
            " run stage collectives again.",
        )
    why = "The tests of single rails show no slow node, port or leaf, so the cause is what the rails share."
    checks = "collectives.cause" if slow else "collectives.started and collectives.way"
    remedy = (
        f"Follow the {'remedy of the finding' if slow else 'remedies of the findings'} {checks} of these nodes. Check"
        " what all rails share: the PCIe links"
        " (lspci -vv), the CPUs, the power (nvidia-smi -q -d PERFORMANCE), and the links between switches. Then run"
        " stage collectives again."
    )
    expected = "verified, and as fast as the links allow"
    return Finding("collectives.suspect", subject, FAIL, measured, expected, why, remedy)
