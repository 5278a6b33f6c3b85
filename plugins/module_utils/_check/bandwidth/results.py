# SPDX-License-Identifier: GPL-3.0-or-later

"""Evaluate results while the measurement of a fabric continues: pairs that passed, links that were tested, and pairs to
measure again.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.bandwidth.floors import PairLimits
from ..._analysis.fleet.hca_locations import find_topology_with_source
from ..._analysis.fleet.paths.routes import find_paths
from ..._analysis.schedule.layers import choose_pairs, list_pairs
from ..._analysis.schedule.localization import Evidence, locate_slow_links
from ..._analysis.schedule.paths import PathTable
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ..._model.measurement.pairs import End, PairResult
from .facts import NOTHING, Facts, find_limits, find_membership
from .pairs import list_verdicts
from .slow_links import compute_least_share, list_readings
from .too_slow import TooSlow

Pair = frozenset[End]
Pairs = typing.AbstractSet[Pair]


def split_verdicts(
    fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult], seen: Facts = NOTHING
) -> tuple[Pairs, Pairs]:
    """Return two sets of pairs: those that passed every measurement, and those that failed at least one. Measurements
    that are not valid are ignored.

    :param pods: pods of the fabric
    :param pairs: measured pairs of the fabric
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    """
    good: dict[Pair, bool] = {}
    for pair, passed in zip(pairs, list_verdicts(find_limits(fabric, seen, pods), pairs)):
        if passed is not None:
            good[pair.pair] = passed and good.get(pair.pair, True)
    return {key for key, passed in good.items() if passed}, {key for key, passed in good.items() if not passed}


def find_paths_between(
    fabric: Fabric, seen: Facts, pods: typing.Optional[typing.Iterable[RdmaPod]] = None
) -> tuple[typing.Optional[PathTable], str]:
    """Return the paths between the ports of a fabric and an empty text, or None and the reason why the paths are
    unknown.

    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    :param pods: pods whose ports count, unless the pod has an error; None to count the ports of all nodes
    """
    membership = find_membership(fabric, seen)
    if not membership.resolved:
        return None, membership.why
    only = (
        None if pods is None else {(pod.rail, pod.node) for pod in pods if pod.fabric == fabric.name and not pod.error}
    )
    # on InfiniBand each HCA of a host has its own LID, so packets between two of them leave the host by the cable
    return find_paths(fabric, membership, seen.topologies, only, seen.neighbours, across=True)


@dataclasses.dataclass(frozen=True)
class VantagePort:
    """The port from which a fabric was read, and the LIDs of its switches and ports.

    :ivar node: name of the node
    :ivar device: RDMA device of the node
    :ivar port: number of the port of the RDMA device
    :ivar lids: LID of each switch by its GUID, and of each port that takes part by the GUID of the port
    """

    node: str
    device: str
    port: int
    lids: typing.Mapping[str, int]


def find_vantage_port(fabric: Fabric, ways: PathTable, seen: Facts) -> typing.Optional[VantagePort]:
    """Return the port through which the counters of a fabric can be read, or None if no node read the topology of the
    fabric.

    :param ways: paths between the ports
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    """
    node, shown, _why = find_topology_with_source(find_membership(fabric, seen), seen.topologies)
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
    """Return the conclusions about each link from the measured pairs.

    :param ways: paths between the ports
    :param pods: pods of the fabric
    :param pairs: measured pairs of the fabric
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    """
    ground = find_limits(fabric, seen, pods)
    return collect_evidence_within(ground, ways, pairs, list_figures_within(ground, pairs))


def collect_evidence_within(
    ground: PairLimits, ways: PathTable, pairs: typing.Iterable[PairResult], figures: typing.Iterable[bool]
) -> Evidence:
    """Return the conclusions about each link from the measured pairs, if the limits of the pairs are already computed.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param ways: paths between the ports
    :param pairs: measured pairs of the fabric
    :param figures: whether the bandwidth of each pair is a valid measurement, in the order of the pairs
    """
    measured = [ground.best_of(pair) for pair, figure in zip(pairs, figures) if figure]
    return locate_slow_links(
        ways, list_readings(ways, measured), compute_least_share(ways, measured, lambda pair: ground.floor(pair)[0])
    )


def too_slow(fabric: Fabric, pods: typing.Sequence[RdmaPod], seen: Facts = NOTHING) -> TooSlow:
    """Return an object that selects, while a fabric is measured, the pairs to measure again with more queue pairs.

    :param pods: pods of the fabric
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    """
    return TooSlow(find_limits(fabric, seen, pods))


def list_figures(
    fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult], seen: Facts = NOTHING
) -> list[bool]:
    """Return for each pair whether it has a bandwidth that is a valid measurement, in the order of the pairs.

    :param pods: pods of the fabric
    :param pairs: measured pairs of the fabric
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    """
    return list_figures_within(find_limits(fabric, seen, pods), pairs)


def list_figures_within(ground: PairLimits, pairs: typing.Iterable[PairResult]) -> list[bool]:
    """Return for each pair whether it has a bandwidth that is a valid measurement, as ``list_figures`` does, if the
    limits of the pairs are already computed.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: measured pairs of the fabric
    """
    return [
        pair.average_gbps is not None and pair.average_gbps > 0 and not pair.failure and not ground.doubt(pair)
        for pair in pairs
    ]


def choose_layer_tests(
    fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult], seen: Facts, wanted: str
) -> tuple[PairResult, ...]:
    """Return the pairs that are to be measured layer by layer: those that the intent requests.

    :param pods: pods of the fabric
    :param pairs: measured pairs of the fabric
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    :param wanted: pairs that the intent requests: ``none``, ``suspects`` or ``all``
    """
    return choose_layer_tests_within(find_limits(fabric, seen, pods), pairs, wanted)


def choose_layer_tests_within(
    ground: PairLimits, pairs: typing.Sequence[PairResult], wanted: str
) -> tuple[PairResult, ...]:
    """Return the pairs that are to be measured layer by layer, if the limits of the pairs are already computed.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: measured pairs of the fabric
    :param wanted: pairs that the intent requests: ``none``, ``suspects`` or ``all``
    """
    if wanted == "none":
        return ()
    return list_pairs(pairs) if wanted == "all" else choose_pairs(pairs, list_verdicts(ground, pairs))


def keep_valid_results(
    fabrics: typing.Iterable[Fabric], measured: BandwidthFacts, seen: Facts = NOTHING
) -> BandwidthFacts:
    """Return the answer of rdma_bandwidth with only those pairs that belong to these fabrics and whose figure is not
    doubtful. Pairs without a figure stay.

    :param measured: answer of rdma_bandwidth
    :param seen: facts that show links and paths: HCAs, subnet managers and topologies of the nodes
    """
    result: list[PairResult] = []
    for fabric in fabrics:
        ground = find_limits(fabric, seen, measured.pods)
        result += [pair for pair in measured.pairs if pair.fabric == fabric.name and not ground.doubt(pair)]
    return dataclasses.replace(measured, pairs=tuple(result))
