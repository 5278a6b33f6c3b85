# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a report other than its findings: charts of fabrics, comparisons, trends, and software versions. They
are computed from the facts of the run. The matrices of measured pairs are in pair_matrices.py.

Facts may come from a stage that failed before its end, or from an older version of the collection. Facts that do not
load are not shown, and the page shows the reason.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.fleet.hca_locations import collect_places, find_topology, number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve_members
from ..._check.bandwidth import results
from ..._check.bandwidth.facts import NOTHING, Facts
from ..._check.collectives import check as collectives
from ..._check.collectives.latency import summarize_latencies
from ..._check.collectives.trend import summarize_group_figures
from ..._check.compare import check as compare
from ..._check.discover import check as discover
from ..._check.fabric import check as fabric
from ..._check.operators import check as operators
from ..._check.platform import check as platform
from ..._check.reachability import check as reachability
from ..._model.base.errors import RdmaError
from ..._model.base.load import load
from ..._model.infiniband.fabric import Place, Topology
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.run.link_errors import EarlierErrors
from ..._model.run.records import Record
from .inputs import ReportFacts
from .link_errors import ErrorHistory, collect_history
from .trends import Trend, list_latencies, list_steps, list_trends


class Undrawable(ValueError):
    """The error for facts of a record that cannot be shown in the report. Its message is the reason."""


@dataclasses.dataclass(frozen=True)
class FabricChart:
    """An InfiniBand fabric as stage fabric observed it: its members, and their positions in the topology.

    :ivar name: name of the fabric
    :ivar membership: HCAs of the fabric by node, with their rails
    :ivar topology: nodes and links of the fabric, as a port reported them
    :ivar places: positions in the topology, by node and HCA
    """

    name: str
    membership: Membership
    topology: Topology
    places: typing.Mapping[tuple[str, str], Place]

    def leaves(self, rail: int) -> dict[str, str]:
        """Return the name of the leaf of each node on a rail, by node. Nodes whose leaf the topology does not show are
        left out.
        """
        return {
            place.node: place.leaf for place in self.places.values() if place.rail == rail and place.leaf is not None
        }


Charts = typing.Mapping[str, FabricChart]


def collect_charts(record: typing.Optional[Record], facts: ReportFacts) -> Charts:
    """Return the topology and the positions of the HCAs of each InfiniBand fabric that has a topology, by name of the
    fabric. Return an empty mapping if stage fabric left no facts.

    :param record: record of stage fabric; None if there is none
    :param facts: facts of this run
    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("nodes", "subnets", "topologies"))
    if loaded is None:
        return {}
    intent, seen = loaded
    result = {}
    for wanted in intent.fabrics:
        membership = find_membership(wanted, seen)
        topology = find_topology(membership, seen.topologies)[0] if is_infiniband(wanted) else None
        if topology is not None:
            result[wanted.name] = FabricChart(
                wanted.name, membership, topology, collect_places(membership, seen.topologies)
            )
    return result


def list_memberships(record: typing.Optional[Record], facts: ReportFacts, known: Charts) -> tuple[Membership, ...]:
    """Return the members of each fabric of the intent, in the order of the intent. Return an empty tuple if stage
    fabric left no facts.

    :param record: record of stage fabric; None if there is none
    :param known: charts of InfiniBand fabrics by name of the fabric. The members of such a fabric are taken from its
        chart instead of being computed again
    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("nodes", "subnets", "topologies"))
    return (
        tuple(
            known[wanted.name].membership if wanted.name in known else find_membership(wanted, loaded[1])
            for wanted in loaded[0].fabrics
        )
        if loaded
        else ()
    )


def load_intent_and_facts(
    record: typing.Optional[Record], facts: ReportFacts, parts: typing.Sequence[str]
) -> typing.Optional[tuple[Intent, typing.Any]]:
    """Return the intent and the typed facts of a record. Return None if there are none, because the stage did not run
    or its role failed.

    :param record: record of a stage; None if there is none
    :param parts: required fields of the facts. Loading all facts of a large cluster takes long
    :raises Undrawable: the facts do not load
    """
    if record is None or not record.facts or record.intent is None:
        return None
    try:
        return load(Intent, record.intent, "intent"), facts.of(record.stage, parts)
    except RdmaError as error:
        raise Undrawable(f"The facts of this stage could not be shown: {error}.") from error


def read_plan(record: Record, facts: ReportFacts) -> typing.Optional[DisruptionPlan]:
    """Return the plan of drains and reboots of stage network. Return None if the stage did not reach its plan.

    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("plan",))
    return loaded[1].plan if loaded is not None else None


def read_comparisons(record: Record, facts: ReportFacts) -> tuple[compare.Compared, ...]:
    """Return the comparisons of networks that stage compare has made, one for each measured quantity. Return an empty
    tuple if the stage left no facts.

    :param record: record of stage compare
    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("bandwidth", "collectives", "latencies"))
    return compare.compare_measures(*loaded) if loaded is not None else ()


def judge_collectives(record: typing.Optional[Record], facts: ReportFacts) -> collectives.JudgedRuns:
    """Return the proven figures and latencies of stage collectives. Both are empty if the stage left no facts.

    :param record: record of stage collectives; None if there is none
    :raises Undrawable: the facts do not load
    """
    parts = ("nodes", "collectives", "bandwidth", "hcas", "subnets", "topologies", "neighbours")
    loaded = load_intent_and_facts(record, facts, parts)
    return collectives.judge_facts(*loaded) if loaded is not None else collectives.JudgedRuns()


def list_steps_over_runs(
    record: Record, facts: ReportFacts, proven: collectives.JudgedRuns
) -> tuple[tuple[Trend, ...], tuple[Trend, ...], int]:
    """Return three results: the trends of the collective steps over the kept runs, the trends of the latencies, and the
    number of kept runs. Without kept runs these are two empty tuples and 0. The trends of the latencies are empty if
    the intent does not limit latencies.

    :param record: record of stage collectives
    :param proven: figures and latencies that are proven in this run
    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("earlier",))
    if loaded is None or not loaded[1].earlier.runs:
        return (), (), 0
    intent, kept = loaded[0], loaded[1].earlier
    ratio = intent.cluster.collectives.latency_ratio if intent.cluster.collectives is not None else None
    latencies = list_latencies(summarize_latencies("", proven.latencies), kept, ratio) if ratio else ()
    return list_steps(summarize_group_figures("", proven.figures), kept), latencies, len(kept.runs)


def read_held(record: typing.Optional[Record], facts: ReportFacts) -> typing.Optional[tuple[Intent, Facts]]:
    """Return the intent and the facts of stage bandwidth from which figures and floors are computed. Return None if the
    stage left no facts.

    :param record: record of stage bandwidth; None if there is none
    :raises Undrawable: the facts do not load
    """
    return load_intent_and_facts(record, facts, ("nodes", "bandwidth", "hcas", "subnets", "topologies", "neighbours"))


def over_runs(record: Record, facts: ReportFacts) -> tuple[tuple[Trend, ...], int]:
    """Return the bandwidth trends of rails and pairs over the kept runs, and the number of kept runs. Return an empty
    tuple and 0 if there are no kept runs, or if this run measured nothing.

    :param record: record of stage bandwidth
    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("bandwidth", "earlier"))
    if loaded is None or loaded[1].bandwidth is None or not loaded[1].earlier.runs:
        return (), 0
    intent, kept = loaded[0], loaded[1].earlier
    links = read_held(record, facts)
    measured = results.keep_valid_results(
        intent.fabrics, loaded[1].bandwidth, links[1] if links is not None else NOTHING
    )
    return list_trends(measured, kept), len(kept.runs)


def read_error_history(record: Record, facts: ReportFacts, earlier: EarlierErrors) -> typing.Optional[ErrorHistory]:
    """Return the link errors over the kept runs. Return None if there are no earlier readings, or if the stage left no
    facts.

    :param record: record of stage fabric
    :param earlier: error counters that the kept runs have read
    :raises Undrawable: the facts do not load
    """
    loaded = load_intent_and_facts(record, facts, ("topologies",)) if earlier.readings else None
    if loaded is None:
        return None
    return collect_history(
        record.run, [one for seen in loaded[1].topologies.values() for one in seen.value or ()], earlier
    )


def collect_versions(records: typing.Mapping[str, Record], facts: ReportFacts) -> dict[str, str]:
    """Return the versions in use on the cluster as texts, by component, such as ``28.43.1014 (16), 28.42.1000 (2)`` for
    the HCA firmware. The number of devices or nodes of each version is in parentheses, the largest first, so that
    different versions are visible. Components without readable facts are left out.

    :param records: records of this run, by stage
    """
    result = {}
    for title, stage, part, versions in _FLEET:
        try:
            found = (
                collections.Counter(versions(facts.of(stage, (part,))))
                if stage in records and records[stage].facts
                else {}
            )
        except RdmaError:
            # a stage whose role failed, or an older record; nothing is said of what is not known
            continue
        if found:
            result[title] = ", ".join(
                f"{version} ({count})" for version, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
            )
    return result


def find_membership(wanted: Fabric, facts: typing.Union[fabric.Facts, reachability.Facts]) -> Membership:
    """Return the HCAs of a fabric by node, with their rails. Facts of nodes that contain an error are ignored."""
    nodes = {name: seen.value for name, seen in facts.nodes.items() if seen.value is not None and seen.error is None}
    subnets = {
        name: seen.value for name, seen in facts.subnets.items() if seen.value is not None and seen.error is None
    }
    return number_by_leaf(resolve_members(wanted, nodes, subnets), facts.topologies)


def _list_firmwares(facts: discover.Facts) -> typing.Iterator[str]:
    for seen in facts.nodes.values():
        yield from (
            hca.firmware for hca in (seen.value.hcas if seen.value else ()) if hca.firmware and not hca.is_virtual
        )


def _list_kernels(facts: platform.Facts) -> typing.Iterator[str]:
    return (seen.value.kernel for seen in facts.platforms.values() if seen.value)


def _gpu_drivers(facts: platform.Facts) -> typing.Iterator[str]:
    return (
        seen.value.gpu.version
        for seen in facts.platforms.values()
        if seen.value and seen.value.gpu and seen.value.gpu.version
    )


def _list_ofed_versions(facts: platform.Facts) -> typing.Iterator[str]:
    return (
        seen.value.gpu.ofed
        for seen in facts.platforms.values()
        if seen.value and seen.value.gpu and seen.value.gpu.ofed
    )


def _list_operator_versions(facts: operators.Facts) -> typing.Iterator[str]:
    return (found.version for found in (facts.operators.installations if facts.operators else ()) if found.version)


#: title, stage, part of its facts, what it takes out of them
_FLEET: tuple[tuple[str, str, str, typing.Callable[[typing.Any], typing.Iterator[str]]], ...] = (
    ("HCA firmware", "discover", "nodes", _list_firmwares),
    ("Kernel", "platform", "platforms", _list_kernels),
    ("GPU driver", "platform", "platforms", _gpu_drivers),
    ("DOCA-OFED", "platform", "platforms", _list_ofed_versions),
    ("SR-IOV operator", "operators", "operators", _list_operator_versions),
)
