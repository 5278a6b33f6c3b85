# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage collectives: the performance that an NCCL job gets from the network, proven by NCCL's log and compared with the
rates of the links. Check ids: ``collectives.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.hca_locations import collect_places, number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import resolve_members
from ..._analysis.fleet.paths.ethernet_routes import find_leaves
from ..._analysis.schedule.collectives import group_by_leaves
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import BandwidthFacts
from ..._model.measurement.collectives import (
    CollectivePod,
    Collectives,
    CollectivesFacts,
    EarlierCollectives,
    RanTest,
    TestKey,
)
from ..._model.node.hca import ObservedHcas
from ..._model.node.neighbours import ObservedNeighbours
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import UNKNOWN, Finding, build_pass
from .course import Course, key_of
from .group_verdict import GroupFigure
from .hardware import NodesHardware, collect_rates
from .latency import GroupLatency, summarize_latencies
from .pods import check_cleanup, check_ended, check_image, check_pod, check_sizes
from .surroundings import Surroundings, UsedHca
from .trend import check_trend, summarize_group_figures
from .unevaluated import explain_excess, report_excess, report_too_many, report_unforeseen
from .unknown_leaves import UNKNOWN_LEAF, add_unknown_leaves, report_without_leaf
from .wanted import pick_fabric

#: variables that each run sets itself, beside those by which it is logged
SET_BY_RUN = frozenset(("NCCL_ALGO", "NCCL_NVLS_ENABLE"))
#: parts of the logs of all runs, as a check goes through them: those of 1,024 nodes with 8 ranks have 10 million for
#: three collectives
MOST_PARTS = 64_000_000


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar collectives: answer of rdma_collectives; None if it did not run
    :ivar bandwidth: answer of rdma_bandwidth, from which floors are computed; None if it did not run
    :ivar hcas: HCAs that node_info read, or the error, by node
    :ivar subnets: subnet managers that the ports of a node see, or the error, by node
    :ivar topologies: answer of fabric_info of each node, which gives the leaf of each node
    :ivar tunings: settings of each node, which may be the cause of a slow collective
    :ivar neighbours: LLDP neighbors of each node, which give the leaf of each node of an Ethernet fabric
    :ivar earlier: figures of kept runs; empty if none are kept
    """

    nodes: tuple[str, ...] = ()
    collectives: typing.Optional[CollectivesFacts] = None
    bandwidth: typing.Optional[BandwidthFacts] = None
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    tunings: dict[str, ObservedTuning] = dataclasses.field(default_factory=dict)
    neighbours: dict[str, ObservedNeighbours] = dataclasses.field(default_factory=dict)
    earlier: EarlierCollectives = dataclasses.field(default_factory=EarlierCollectives)


@dataclasses.dataclass(frozen=True)
class JudgedRuns:
    """The findings and figures of all runs of the stage.

    :ivar findings: findings on all runs
    :ivar figures: figure of each proven group
    :ivar latencies: latency of each proven pair of nodes
    """

    findings: tuple[Finding, ...] = ()
    figures: tuple[GroupFigure, ...] = ()
    latencies: tuple[GroupLatency, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return findings on each pod, each test, each step of each collective, the trend, and pods that were not removed.

    If the intent does not ask for collectives, return one passed finding. If no fabric can be chosen, or the stage did
    not run over it, return one finding of status ``unknown``.
    """
    wanted, expected = (
        intent.cluster.collectives,
        "collectives on each node, if the intent has rdma_cluster.collectives",
    )
    if wanted is None:
        return (
            build_pass(
                "collectives.wanted",
                "collectives",
                "no collective ran, so the performance is not verified",
                "no collective: the intent has no rdma_cluster.collectives",
            ),
        )
    seen, fabric = facts.collectives, pick_fabric(wanted, intent.fabrics)
    if fabric is None:
        why = "rdma_cluster.collectives.fabric of the intent does not select exactly one fabric with RDMA."
        return (
            Finding(
                "collectives.wanted",
                "collectives",
                UNKNOWN,
                "0 fabrics selected by rdma_cluster.collectives.fabric",
                "1 fabric with RDMA selected",
                why,
                (
                    "Set rdma_cluster.collectives.fabric to the name of one fabric with RDMA, then run stage"
                    " collectives again."
                ),
            ),
        )
    if seen is None or seen.fabric != fabric.name:
        what = "no results" if seen is None else f"results over fabric {seen.fabric or 'without a name'}"
        why = (
            "Stage collectives did not run before this check, so the performance of NCCL is not known."
            if seen is None
            else "The results are of a run with a different intent, so they do not show the performance of this fabric."
        )
        return (
            Finding(
                "collectives.wanted",
                "collectives",
                UNKNOWN,
                what,
                f"results over fabric {fabric.name}",
                why,
                (
                    "Run stages bandwidth and collectives with the current intent: ansible-playbook"
                    " linerate.rdma.site --tags bandwidth,collectives."
                ),
            ),
        )
    judged = judge_runs(wanted, fabric, facts, seen)
    pods = {pod.node: pod for pod in seen.pods}
    usable = [pod.node for pod in seen.pods if not pod.error]
    return (
        build_pass(
            "collectives.wanted",
            "collectives",
            f"{count_of(len(seen.runs), 'test')} over fabric {fabric.name}, {seen.announced} planned",
            expected,
        ),
        *check_image(wanted, seen),
        *check_sizes(wanted, seen),
        *(check_pod(fabric, node, pods.get(node), seen.ended) for node in facts.nodes),
        *judged.findings,
        *check_trend(
            summarize_group_figures(fabric.name, judged.figures),
            facts.earlier,
            summarize_latencies(fabric.name, judged.latencies),
            wanted.latency_ratio,
        ),
        *report_without_leaf(
            wanted, fabric, collect_leaves(wanted, fabric, facts, usable), usable, bool(facts.neighbours)
        ),
        *check_ended(seen),
        check_cleanup(seen),
    )


def judge_runs(wanted: Collectives, fabric: Fabric, facts: Facts, seen: CollectivesFacts) -> JudgedRuns:
    """Judge the stored runs in the order in which each collective ran them, and return the findings and the proven
    figures. A run whose log has more ranks, channels or parts than its nodes can have gets a finding of status
    ``unknown`` and counts as not proven. If all logs together are too large, nothing is judged, and one such finding is
    returned.

    :param wanted: settings of the collectives in the intent
    :param seen: result of the module rdma_collectives: the pods and the completed tests
    """
    parts = sum(ran.log.size for ran in seen.runs if ran.log is not None)
    if parts > MOST_PARTS:
        return JudgedRuns((report_too_many(parts, MOST_PARTS),))
    found: dict[TestKey, list[RanTest]] = {}
    findings: list[Finding] = []
    for ran in seen.runs:
        excess = explain_excess(ran, wanted.gpus_per_node)
        if excess:
            measured, _expected = excess
            findings.append(report_excess(ran, excess, wanted.image))
            unproven = dataclasses.replace(ran, log=None, evidence=f"its log has {measured} and was not evaluated")
            found.setdefault(ran.key, []).append(unproven)
        else:
            found.setdefault(ran.key, []).append(ran)
    figures: list[GroupFigure] = []
    latencies: list[GroupLatency] = []
    for course in list_courses(wanted, fabric, facts, seen.pods):
        try:
            findings += _follow(course, found)
        except Exception as error:
            # the pod of one node may print what nobody foresaw; the other courses are judged
            findings.append(report_unforeseen(course, error))
        figures += course.figures.values()
        latencies += course.latencies.values()
    return JudgedRuns(tuple(findings), tuple(figures), tuple(latencies))


def _follow(course: Course, found: typing.Mapping[TestKey, list[RanTest]]) -> list[Finding]:
    """Replay the tests of a collective with the stored runs, and return the findings. The run of each test is removed
    from ``found``, so that the remaining runs belong to no test.

    :param course: course of a collective before its first test
    :param found: stored runs, by the key of the test, in the order in which they ran
    """
    while True:
        tests = course.next()
        if not tests:
            return [*course.findings, *course.end()]
        there = {test: found.get(key_of(course.name, test), []) for test, _run in tests}
        course.take(tests, {test: runs.pop(0) for test, runs in there.items() if runs})


def judge_facts(intent: Intent, facts: Facts) -> JudgedRuns:
    """Judge the stored runs, and return the findings and the proven figures. The result is empty if the intent does not
    ask for collectives, or if the stage did not run over the fabric of the intent.
    """
    wanted, seen = intent.cluster.collectives, facts.collectives
    fabric = pick_fabric(wanted, intent.fabrics) if wanted is not None else None
    if wanted is None or fabric is None or seen is None or seen.fabric != fabric.name:
        return JudgedRuns()
    return judge_runs(wanted, fabric, facts, seen)


def list_courses(
    wanted: Collectives, fabric: Fabric, facts: Facts, pods: typing.Sequence[CollectivePod]
) -> tuple[Course, ...]:
    """Return the course (sequence of tests) of each requested collective, before its first test.

    The result is empty if no pod can be used.

    :param wanted: settings of the collectives in the intent
    :param pods: pods of the stage; those with an error are left out
    """
    usable = [pod for pod in pods if not pod.error]
    if not usable:
        return ()
    ground = collect_hardware(wanted, fabric, facts, usable)
    leaves = collect_leaves(wanted, fabric, facts, [pod.node for pod in usable])
    host_of = ground.hosts
    tunings = {
        host_of[node]: observed.value
        for node, observed in facts.tunings.items()
        if node in host_of and observed.value is not None
    }
    known = any(hca.rate_gbps is not None for hcas in ground.hcas.values() for hca in hcas.values())
    seen = Surroundings(
        hcas={host_of[node]: hcas for node, hcas in ground.hcas.items()},
        tunings=tunings,
        roce=fabric.roce,
        adaptive_routing={"adaptive": True, "static": False}.get(fabric.routing or ""),
        # pods measure the rails from the memory of their hosts
        from_gpu_memory=False if known else None,
        set_by_run=SET_BY_RUN,
    )
    ended = facts.collectives.ended if facts.collectives is not None else ""
    return tuple(Course(name, wanted, ground, leaves, seen, ended) for name in wanted.tests)


def collect_hardware(
    wanted: Collectives, fabric: Fabric, facts: Facts, pods: typing.Sequence[CollectivePod]
) -> NodesHardware:
    """Return the HCAs of the nodes' pods, with the rates that stage bandwidth measured, and a first assignment of GPUs
    to rails: the GPUs are divided equally among the rails, in the order of their numbers.

    :param wanted: settings of the collectives in the intent
    :param pods: usable pods of the stage
    """
    rates = collect_rates(fabric, facts.bandwidth)
    hcas = {
        pod.node: {
            hca.device: UsedHca(hca.rail, hca.numa_node, rates.get((hca.rail, pod.node)), hca.physical)
            for hca in pod.hcas
        }
        for pod in pods
    }
    rails = fabric.select.hcas_per_node
    each = max(1, wanted.gpus_per_node // rails)
    return NodesHardware({pod.node: pod.host for pod in pods}, hcas, {rail: rail * each for rail in range(rails)})


def collect_leaves(
    wanted: Collectives, fabric: Fabric, facts: Facts, nodes: typing.Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each leaf, by the name of the leaf.

    The leaves come from the intent if it names them, else from the topology or LLDP. A node whose leaf is unknown on
    any rail is assigned to an unknown leaf of its own. If no leaf is known, all nodes are on one unknown leaf. The key
    of an unknown leaf is an ``UnknownLeaf``.

    :param wanted: settings of the collectives in the intent
    :param nodes: names of the nodes with a usable pod
    """
    if wanted.leaves:
        grouped = {leaf: tuple(node for node in nodes if node in members) for leaf, members in wanted.leaves.items()}
        there = {leaf: members for leaf, members in grouped.items() if members}
        return add_unknown_leaves(there, nodes) if there else {UNKNOWN_LEAF: tuple(nodes)}
    known = {name: observed.value for name, observed in facts.hcas.items() if observed.value is not None}
    subnets = {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None}
    membership = number_by_leaf(resolve_members(fabric, known, subnets), facts.topologies)
    found: dict[str, dict[int, str]] = {node: {} for node in nodes}
    if not is_infiniband(fabric):
        for (rail, node), leaf in find_leaves(membership, facts.neighbours).items():
            found.get(node, {})[rail] = leaf
    for place in collect_places(membership, facts.topologies).values():
        if place.node in found and place.leaf:
            found[place.node][place.rail] = place.leaf
    placed = {node: leaves for node, leaves in found.items() if len(leaves) >= fabric.select.hcas_per_node}
    if not placed:
        return {UNKNOWN_LEAF: tuple(nodes)}
    return add_unknown_leaves(group_by_leaves(placed), nodes)
