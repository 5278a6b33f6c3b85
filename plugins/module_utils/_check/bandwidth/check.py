# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: does each pair of nodes reach its line rate, through pods, over RDMA (rows S1.10 to S1.12). Check
ids: ``bandwidth.*``.

Two floors: one from the link itself (fraction of the slowest of what port and PCIe could carry, and of the virtual
function's share of both), so that a uniformly slow fabric shows; and one from the fleet (93 % of the best pair of the
same rail whose links could carry the same), so that one slow node shows. The average column counts, never the peak.
Where pods have no RDMA device, TCP is measured for stage compare. Processors bound it, so only a figure far below the
best of its network is too low, unless the intent has a floor. A pair that fails accuses two ends; ``bandwidth.suspect``
names the one, or the path, that is left when partners that pass are taken into account.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.addresses.arithmetic import outside_of
from ..._analysis.bandwidth.floors import Best, PairLimits, in_pods, read
from ..._analysis.controllers.image_pull import explain, of_pods
from ..._analysis.fleet.hca_locations import (
    collect_places,
    collect_possible_rates,
    find_topology_with_source,
    number_by_leaf,
)
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve
from ..._analysis.fleet.line_rates import LineRates, find_line_rates
from ..._analysis.fleet.routes import find_paths, report_coverage
from ..._analysis.schedule.coverage import compute_coverage
from ..._analysis.schedule.layers import chosen, every
from ..._analysis.schedule.localization import Evidence, weigh
from ..._analysis.schedule.measurements import by_links, everybody
from ..._analysis.schedule.paths import PathTable
from ..._model.base.text import percent
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, Place, SeenSubnet
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import carries_rdma, is_infiniband, list_rails
from ..._model.measurement.bandwidth import BandwidthFacts, Earlier, End, PairLayers, PairResult, RdmaPod, RoundPlan
from ..._model.node.hca import ObservedHcas
from ..._model.node.neighbours import ObservedNeighbours
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .causes import CAUSES, explain_cause
from .ethernet import describe_pinned, report_unheard
from .latency import check_latencies
from .layers import check_layers
from .left_out import check_left_out
from .links import check_links
from .pairs import check_pair, list_verdicts, on_rail, subject_of
from .port_counters import Counted
from .slow_links import check_slow_links, compute_least_share, list_readings
from .suspects import check_suspects
from .too_slow import TooSlow
from .trend import check_trend, check_unread

Pair = frozenset[End]
Pairs = typing.AbstractSet[Pair]


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar bandwidth: answer of rdma_bandwidth; None when it did not run
    :ivar hcas: answer of node_info of each node; with the next two, what its links could carry, and where a suspect is
    :ivar subnets: answer of subnet_manager_info of each node
    :ivar topologies: answer of fabric_info of each node
    :ivar earlier: what kept runs have measured
    :ivar functions: HCAs of each node after virtual functions were made; only what these are held back by is told from
        it
    :ivar neighbours: what each node heard by LLDP, where the ways of an Ethernet fabric are asked for
    """

    nodes: tuple[str, ...] = ()
    bandwidth: typing.Optional[BandwidthFacts] = None
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    earlier: Earlier = dataclasses.field(default_factory=Earlier)
    functions: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    neighbours: dict[str, ObservedNeighbours] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return findings on the rounds, for each HCA, each pod, each pair, for who is left as a suspect, and on what was
    left behind."""
    findings: list[Finding] = []
    seen = facts.bandwidth or BandwidthFacts((), ())
    nodes = {**read(facts.hcas), **read(facts.functions)}
    for fabric in intent.fabrics:
        pods = {(pod.rail, pod.node): pod for pod in seen.pods if pod.fabric == fabric.name}
        pairs = [pair for pair in seen.pairs if pair.fabric == fabric.name]
        plan = next((plan for plan in seen.plans if plan.fabric == fabric.name), None)
        rates, why = _find_rates(fabric, facts, pods.values())
        by_link = fabric.line_rate.floor_gbps is None and carries_rdma(fabric)
        ground = PairLimits(fabric, pods, rates, nodes)
        findings += _check_rounds(fabric, plan, len(facts.nodes))
        findings += check_links(fabric, facts.nodes, rates, why, facts.hcas, by_link)
        for rail in list_rails(fabric):
            findings += [_check_pod(fabric, (rail, name), pods.get((rail, name))) for name in facts.nodes]
            findings += _check_coverage(fabric, rail, facts.nodes, pods, pairs, plan)
        best = ground.best(pairs)
        for pair in pairs:
            findings += check_pair(ground, pair, best)
        sound_pairs = [
            (subject_of(fabric, pair), pair) for pair in pairs if pair.is_comparable and not ground.doubt(pair)
        ]
        findings += check_trend(fabric.name, sound_pairs, facts.earlier)
        findings += _check_suspects(ground, pairs, plan, facts, rates)
        findings += check_left_out(fabric, pairs)
        latencies = [pair for pair in seen.latencies if pair.fabric == fabric.name]
        findings += check_latencies(fabric, pods.values(), latencies)
        findings += _check_layers(ground, pairs, best, seen, facts)
    findings += check_unread(facts.earlier)
    if facts.bandwidth is not None:
        findings.append(_check_cleanup(seen))
    return tuple(findings)


#: of the links, where nobody has looked at the nodes
NOTHING = Facts()


def split_verdicts(
    fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult], seen: Facts = NOTHING
) -> tuple[Pairs, Pairs]:
    """Return the pairs that passed in all that was measured of them, and those that did not. A figure that is no
    measurement is in neither.

    :param seen: what is known of the links so far
    """
    good: dict[Pair, bool] = {}
    for pair, passed in zip(pairs, list_verdicts(_find_limits(fabric, seen, pods), pairs)):
        if passed is not None:
            good[pair.pair] = passed and good.get(pair.pair, True)
    return {key for key, passed in good.items() if passed}, {key for key, passed in good.items() if not passed}


def find_paths_between(
    fabric: Fabric, seen: Facts, pods: typing.Optional[typing.Iterable[RdmaPod]] = None
) -> tuple[typing.Optional[PathTable], str]:
    """Return the ways between the ports of a fabric, or None and why they are not known.

    :param pods: only the ports of these, as far as they can be used; None: of all nodes
    """
    membership = _find_membership(fabric, seen)
    if not membership.resolved:
        return None, membership.why
    only = (
        None if pods is None else {(pod.rail, pod.node) for pod in pods if pod.fabric == fabric.name and not pod.error}
    )
    # on InfiniBand what goes from one HCA of a host to another has another LID, and leaves by the cable
    return find_paths(fabric, membership, seen.topologies, only, seen.neighbours, across=True)


@dataclasses.dataclass(frozen=True)
class VantagePort:
    """The port from which a fabric was seen, and the locations of its ports.

    :ivar device: RDMA device of the node, and ``port`` of it
    :ivar lids: of each switch by its GUID, and of each port that takes part by that of the port
    """

    node: str
    device: str
    port: int
    lids: typing.Mapping[str, int]


def find_vantage_port(fabric: Fabric, ways: PathTable, seen: Facts) -> typing.Optional[VantagePort]:
    """Through which port of which node the counters of a fabric can be read; None where nobody saw it."""
    node, shown, _why = find_topology_with_source(_find_membership(fabric, seen), seen.topologies)
    if shown is None or shown.topology is None:
        return None
    lids = {item.guid: item.lid for item in shown.topology.nodes if item.lid}
    return VantagePort(node, shown.rdma_device, shown.port, {**lids, **{end.guid: end.lid for end in ways.ends}})


def collect_evidence(
    fabric: Fabric,
    ways: PathTable,
    pods: typing.Sequence[RdmaPod],
    pairs: typing.Sequence[PairResult],
    seen: Facts = NOTHING,
) -> Evidence:
    """Compute what the figures prove of the links."""
    ground = _find_limits(fabric, seen, pods)
    return _collect_evidence(ground, ways, pairs, _figures(ground, pairs))


def _collect_evidence(
    ground: PairLimits, ways: PathTable, pairs: typing.Iterable[PairResult], figures: typing.Iterable[bool]
) -> Evidence:
    """:param figures: of each pair, whether its figure is a measurement"""
    measured = [ground.best_of(pair) for pair, figure in zip(pairs, figures) if figure]
    return weigh(
        ways, list_readings(ways, measured), compute_least_share(ways, measured, lambda pair: ground.floor(pair)[0])
    )


def too_slow(fabric: Fabric, pods: typing.Sequence[RdmaPod], seen: Facts = NOTHING) -> TooSlow:
    """Return what chooses, while a fabric is measured, the pairs that are measured once more with more queue pairs."""
    return TooSlow(_find_limits(fabric, seen, pods))


def list_figures(
    fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult], seen: Facts = NOTHING
) -> list[bool]:
    """Return, for each pair, whether it has a figure that is a measurement."""
    return _figures(_find_limits(fabric, seen, pods), pairs)


def _figures(ground: PairLimits, pairs: typing.Iterable[PairResult]) -> list[bool]:
    return [
        pair.average_gbps is not None and pair.average_gbps > 0 and not pair.failure and not ground.doubt(pair)
        for pair in pairs
    ]


def choose_layer_tests(
    fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult], seen: Facts, wanted: str
) -> tuple[PairResult, ...]:
    """Return the pairs that are to be measured layer by layer.

    :param wanted: ``none``, ``suspects`` or ``all``
    """
    return _choose_layer_tests(_find_limits(fabric, seen, pods), pairs, wanted)


def _choose_layer_tests(ground: PairLimits, pairs: typing.Sequence[PairResult], wanted: str) -> tuple[PairResult, ...]:
    if wanted == "none":
        return ()
    return every(pairs) if wanted == "all" else chosen(pairs, list_verdicts(ground, pairs))


def _check_layers(
    ground: PairLimits,
    pairs: typing.Sequence[PairResult],
    best: typing.Mapping[typing.Any, Best],
    seen: BandwidthFacts,
    facts: Facts,
) -> list[Finding]:
    """Find the layer in which a pair loses bandwidth, for those that were looked at, and those that the intent wants to
    be."""
    fabric = ground.fabric
    looked = [item for item in seen.layers if item.fabric == fabric.name]
    keys = {(item.client_end, item.server_end) for item in looked}
    # without a word of the intent it depends on the run
    for pair in _choose_layer_tests(ground, pairs, fabric.bandwidth.layers or "none"):
        if (pair.client_end, pair.server_end) not in keys:
            why, suspect = "this run did not look at it", fabric.bandwidth.layers == "suspects"
            looked.append(
                PairLayers(
                    fabric.name, pair.client, pair.server, pair.rail, suspect, why=why, server_rail=pair.server_rail
                )
            )

    def bound(pair: PairResult) -> typing.Optional[float]:
        own = best.get(ground.kind(pair))
        known = [ground.floor(pair)[0], own.average * fabric.line_rate.fleet_fraction if own is not None else None]
        return max((value for value in known if value is not None), default=None)

    subjects = [
        subject_of(
            fabric, PairResult(fabric.name, item.client, item.server, rail=item.rail, server_rail=item.server_rail)
        )
        for item in looked
    ]
    return check_layers(ground, list(zip(subjects, looked)), bound, facts.hcas)


def _check_suspects(
    ground: PairLimits,
    pairs: typing.Sequence[PairResult],
    plan: typing.Optional[RoundPlan],
    facts: Facts,
    rates: LineRates,
) -> list[Finding]:
    """Find the components at fault: by the paths of the tests where the rounds were made for that, else by what pairs
    share."""
    fabric, where = ground.fabric, _collect_places(ground.fabric, facts)
    passed = list_verdicts(ground, pairs)
    if plan is None or plan.cover is None:
        blind = _report_unheard(fabric, facts, False) if plan is not None and by_links(fabric, len(facts.nodes)) else []
        return [*blind, *check_suspects(fabric, ground.pods, pairs, passed, where)]
    # of all nodes: the cable of one without a pod is not known to be good
    ways, why = find_paths_between(fabric, facts)
    if ways is None:
        remedy = "Run the stages discover, fabric and bandwidth again, in one run."
        return [
            Finding(
                "bandwidth.coverage",
                fabric.name,
                UNKNOWN,
                "not known",
                "each link that these nodes use is measured",
                f"{why}.",
                remedy,
            )
        ]
    figures = _figures(ground, pairs)
    evidence = _collect_evidence(ground, ways, pairs, figures)
    remedy = "See bandwidth.measured and bandwidth.pod for the nodes at these links."
    note = describe_pinned(fabric, ways, pairs) if ways.hashed else ""
    findings = [
        report_coverage("bandwidth.coverage", fabric, ways, compute_coverage(ways, evidence.measured), remedy, note)
    ]
    findings += _report_unheard(fabric, facts, True)
    shown = find_topology_with_source(_find_membership(fabric, facts), facts.topologies)[1]
    measured = facts.bandwidth.counted if facts.bandwidth is not None else ()
    counted = Counted(
        fabric,
        ways,
        [item for item in measured if item.fabric == fabric.name],
        collect_possible_rates(shown.capabilities if shown else None),
    )
    findings += check_slow_links(
        fabric, ways, evidence, where, rates, [ground.best_of(pair) for pair in pairs], counted
    )
    findings += [*counted.routing(), *counted.other_lids(shown.topology.lmc if shown and shown.topology else None)]
    if any(verdict is False and not figure for verdict, figure in zip(passed, figures)):
        # what gave no figure has another cause than a slow link, and is told from those that gave one
        findings += check_suspects(
            fabric,
            ground.pods,
            pairs,
            [None if verdict is None else figure for verdict, figure in zip(passed, figures)],
            where,
        )
    return findings


def keep_valid_results(
    fabrics: typing.Iterable[Fabric], measured: BandwidthFacts, seen: Facts = NOTHING
) -> BandwidthFacts:
    """Return the same without the pairs whose figure is no measurement."""
    result: list[PairResult] = []
    for fabric in fabrics:
        ground = _find_limits(fabric, seen, measured.pods)
        result += [pair for pair in measured.pairs if pair.fabric == fabric.name and not ground.doubt(pair)]
    return dataclasses.replace(measured, pairs=tuple(result))


def compute_floors(intent: Intent, facts: Facts) -> dict[str, tuple[float, ...]]:
    """Return the floors of each fabric in Gb/s, by its name: of each pair with a figure its floor, where known."""
    seen, result = facts.bandwidth or BandwidthFacts((), ()), {}
    for fabric in intent.fabrics:
        ground = _find_limits(fabric, facts, seen.pods)
        of_pairs = [
            ground.floor(pair)[0] for pair in seen.pairs if pair.fabric == fabric.name and pair.average_gbps is not None
        ]
        result[fabric.name] = tuple(floor for floor in of_pairs if floor is not None)
    return result


def _find_limits(fabric: Fabric, facts: Facts, pods: typing.Iterable[RdmaPod]) -> PairLimits:
    """Return the limits of the pairs of one fabric."""
    mine = {(pod.rail, pod.node): pod for pod in pods if pod.fabric == fabric.name}
    return PairLimits(fabric, mine, _find_rates(fabric, facts, mine.values())[0])


def _collect_subnets(facts: Facts) -> dict[str, tuple[SeenSubnet, ...]]:
    return {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None}


def _find_rates(fabric: Fabric, facts: Facts, pods: typing.Iterable[RdmaPod]) -> tuple[LineRates, str]:
    """Return the rates that the links of its HCAs could carry."""
    return find_line_rates(fabric, read(facts.hcas), _collect_subnets(facts), facts.topologies, in_pods(pods))


def _find_membership(fabric: Fabric, facts: Facts) -> Membership:
    """Whose HCAs are on the fabric, as far as it is known."""
    return number_by_leaf(resolve(fabric, read(facts.hcas), _collect_subnets(facts)), facts.topologies)


def _collect_places(fabric: Fabric, facts: Facts) -> dict[End, Place]:
    """Return the place of each end, where it is known."""
    return {
        (place.rail, place.node): place
        for place in collect_places(_find_membership(fabric, facts), facts.topologies).values()
    }


def _report_unheard(fabric: Fabric, facts: Facts, covered: bool) -> list[Finding]:
    """Ports of Ethernet with RDMA that do not tell their switch; InfiniBand has its topology, and other Ethernet is not
    asked.

    :param covered: the rounds were made to use each link
    """
    if is_infiniband(fabric) or not carries_rdma(fabric):
        return []
    return report_unheard("bandwidth.coverage", fabric, _find_membership(fabric, facts), facts.neighbours, covered)


def _check_rounds(fabric: Fabric, plan: typing.Optional[RoundPlan], nodes: int) -> list[Finding]:
    """Compare the number of partners of each node, as planned before the pods were started, with what the intent asks
    for now."""
    if plan is None:
        return []
    took = f"about {_time(plan.seconds)}, {_time(plan.most_seconds)} at most"
    asked, all_rounds, by_link = _asked(fabric, nodes), everybody(nodes), by_links(fabric, nodes)
    measured = f"{plan.rounds} of {all_rounds} rounds, {took}" if plan.cover is None else f"{cover_text(plan)}, {took}"
    expected = "all rounds, so that everybody meets everybody"
    if by_link:
        expected = "rounds that use each link in both directions, and then suspects alone"
    elif isinstance(fabric.bandwidth.rounds, int):
        expected = f"the rounds that the intent asks for: {asked}"
    few = plan.rounds < asked if asked is not None else by_link and not plan.why
    if few if plan.cover is None else not by_link:
        why = "The run made its rounds by another intent, so what this one asks for was not measured."
        return [
            Finding(
                "bandwidth.rounds",
                fabric.name,
                UNKNOWN,
                measured,
                expected,
                why,
                "Run the stage again with this intent.",
            )
        ]
    if plan.cover is not None or asked is not None or plan.rounds >= all_rounds:
        return [ok("bandwidth.rounds", fabric.name, measured, expected)]
    why = (
        f"All of them would take longer than a stage should. Each node met {plan.rounds} others, who lie evenly among"
        " all, which tells a slow node as well."
    )
    if plan.why:
        why += f" Rounds that use each link need its ways: {plan.why}."
    remedy = (
        f"No action if that is enough. Otherwise set bandwidth.rounds of the fabric to {all_rounds}: the pods then live"
        " as long as that takes."
    )
    return [Finding("bandwidth.rounds", fabric.name, WARN, measured, expected, why, remedy)]


def _asked(fabric: Fabric, nodes: int) -> typing.Optional[int]:
    """Rounds of pairs that the intent asks for; None where it leaves it to the time that they take, or asks for rounds
    by links."""
    wanted = fabric.bandwidth.rounds
    if wanted == "all":
        return everybody(nodes)
    return min(wanted, everybody(nodes)) if isinstance(wanted, int) else None


def cover_text(plan: RoundPlan) -> str:
    """Describe the links that the rounds use."""
    cover = plan.cover
    if cover is None or not cover.directions:
        return f"{plan.rounds} rounds"
    of = "the nodes' cables" if cover.spread else "links"
    rails = f", {cover.between_rails} of them between the rails of each host," if cover.between_rails else ""
    share = f"{percent(cover.covered, cover.directions)} % of {cover.directions / 2:g} {of} in both directions"
    return (
        f"{plan.rounds} rounds of {cover.tests} tests{rails} over"
        f" {share}{'; its rails are apart' if cover.apart else ''}"
    )


def _time(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def _check_pod(fabric: Fabric, end: End, pod: typing.Optional[RdmaPod]) -> Finding:
    subject, expected = (
        f"{fabric.name} {end[1]}{on_rail(fabric, end[0])}",
        "a pod with an RDMA device and an address on the network",
    )
    if pod is None:
        why = "No pod was started on this node."
        return Finding(
            "bandwidth.pod",
            subject,
            UNKNOWN,
            "no pod",
            expected,
            why,
            "See network.allocatable of this node: the node must offer the resource (kubectl describe node).",
        )
    if pod.error:
        status: typing.Literal["unknown", "fail"] = UNKNOWN if not pod.name else FAIL
        if pod.cause == "image":
            why, remedy = explain(pod.error, of_pods(pod.namespace, pod.name))
        else:
            why, remedy = explain_cause(pod.cause, fabric) if pod.cause in CAUSES else ("", "")
        if not remedy:
            remedy = (
                f"kubectl -n {pod.namespace} describe pod {pod.name} while the stage runs."
                if pod.name
                else "See the stages network and virtual_functions."
            )
        return Finding(
            "bandwidth.pod", subject, status, pod.name or "no pod", expected, f"{why} {pod.error}".strip(), remedy
        )
    if pod.device is None and carries_rdma(fabric):
        why, remedy = explain_cause("no_device", fabric)
        return Finding(
            "bandwidth.pod",
            subject,
            FAIL,
            f"{pod.name}: no RDMA device on {pod.interface or 'its interface'}",
            expected,
            why,
            remedy,
        )
    outside = outside_of(fabric, pod.address)
    if outside:
        remedy = (
            f"See which attachment the pod has (kubectl -n {pod.namespace} get pod {pod.name} -o yaml, its"
            " network-status), and run stage network again: another tool may keep another range in it."
        )
        return Finding(
            "bandwidth.pod",
            subject,
            FAIL,
            f"{pod.interface} {pod.address}",
            f"an address of {outside}",
            _OUTSIDE,
            remedy,
        )
    if pod.device is None:
        return ok(
            "bandwidth.pod",
            subject,
            f"{pod.interface} {pod.address}, no RDMA device: TCP is measured",
            "a pod with an address on the network",
        )
    rate = f"{pod.rate_gbps:g} Gb/s port" if pod.rate_gbps is not None else "port rate not known"
    measured = f"{pod.device} on {pod.interface} {pod.address}, {rate}" + (f", {pod.binding}" if pod.binding else "")
    return ok("bandwidth.pod", subject, measured, expected)


_OUTSIDE = (
    "The pod is on the network, and its address is none that ipam of the intent hands out: what was measured has other"
    " addresses than the intent asks for."
)


def _check_coverage(
    fabric: Fabric,
    rail: int,
    nodes: typing.Sequence[str],
    pods: typing.Mapping[End, RdmaPod],
    pairs: typing.Sequence[PairResult],
    plan: typing.Optional[RoundPlan],
) -> list[Finding]:
    """Find what should have been measured and was not: whole rails, nodes, and pairs of those that could."""
    usable = [name for name in nodes if (rail, name) in pods and not pods[rail, name].error]
    if len(nodes) < 2:
        why, remedy = "A pair needs two nodes.", "Put a second node into the group rdma_nodes."
        return [
            Finding(
                "bandwidth.measured",
                f"{fabric.name}{on_rail(fabric, rail)}",
                UNKNOWN,
                "no pair",
                "at least one pair",
                why,
                remedy,
            )
        ]
    findings = []
    met: dict[End, set[End]] = collections.defaultdict(set)
    asked = _asked(fabric, len(nodes))
    by_cover = plan is not None and plan.cover is not None and by_links(fabric, len(nodes))
    for pair in pairs:
        # rounds of pairs are within rails
        if pair.client_end != pair.server_end and (by_cover or not pair.between_rails):
            met[pair.client_end].add(pair.server_end)
            if fabric.bandwidth.directions != "both":
                met[pair.server_end].add(pair.client_end)
    # with a node that rests in each round, as an odd number has it, some partners are one less
    partners = len(usable) - 1
    rounds = asked if asked is not None else plan.rounds if plan is not None and plan.cover is None else None
    if by_cover:
        # which links they met each other over counts, and bandwidth.coverage says that
        partners = min(partners, 1)
    elif rounds is not None:
        partners = min(partners, max(1, rounds - len(usable) % 2))
    for name in nodes:
        subject = f"{fabric.name} {name}{on_rail(fabric, rail)}"
        expected = f"measured with {max(1, partners)} others"
        if name not in usable:
            error = pods[rail, name].error if (rail, name) in pods else "none was started"
            why, remedy = f"There is no pod to measure with: {error}.", CAUSES["pod"].remedy
            findings.append(Finding("bandwidth.measured", subject, UNKNOWN, "with none", expected, why, remedy))
        elif len(met[rail, name]) < max(1, partners):
            why, remedy = (
                explain_cause("not_run", fabric)
                if partners > 0
                else ("No other node has a pod to measure with.", CAUSES["pod"].remedy)
            )
            findings.append(
                Finding("bandwidth.measured", subject, UNKNOWN, f"with {len(met[rail, name])}", expected, why, remedy)
            )
    return findings


def _check_cleanup(seen: BandwidthFacts) -> Finding:
    expected = "no pod of ours is left"
    if seen.remaining:
        why = f"These pods are still there, or may still run: {', '.join(seen.remaining)}."
        return Finding(
            "bandwidth.cleanup",
            "pods",
            FAIL,
            f"{len(seen.remaining)} left",
            expected,
            why,
            "Delete them by hand; see their events if they stay in Terminating, and the kubelet of a node that did not"
            " end its pod.",
        )
    if seen.leftovers:
        why = f"An interrupted earlier run had left these pods, which were removed first: {', '.join(seen.leftovers)}."
        return Finding(
            "bandwidth.cleanup",
            "pods",
            WARN,
            f"0 left, {len(seen.leftovers)} of an earlier run removed",
            expected,
            why,
            "Nothing to do.",
        )
    return ok("bandwidth.cleanup", "pods", "0 left", expected)
