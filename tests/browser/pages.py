# SPDX-License-Identifier: GPL-3.0-or-later

"""The pages that the browser shows: made by the renderers of the collection, of what its checks find in a made-up
cluster."""

from __future__ import annotations

import copy
import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    PortErrors,
    SeenErrors,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedTopologies,
    SeenTopology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import Earlier, EarlierPair
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.link_errors import (
    EarlierErrors,
    collect_readings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import Report, Since, build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.signature import (
    MOST_FABRICS,
    MOST_WAIVERS,
    SignedEvidence,
    render_signature,
)
from ansible_collections.linerate.rdma.tests.unit.report.node_world import run
from ansible_collections.linerate.rdma.tests.unit.report.report_world import (
    FINISHED,
    RUN,
    STARTED,
    Made,
    World,
    fabrics,
    records,
)

CREATED = "2026-01-02T03:10:00+00:00"
VERSIONS = {"linerate.rdma": "1.0.0", "ansible-core": "2.19.4"}
SINCE = Since(
    "20260101T030405Z-bbbbbb",
    "2026-01-01T03:04:05+00:00",
    2,
    ("node-3: mlx5_1 firmware: 28.41.1000 -> 28.43.1014", "node-3: cable moved"),
)
#: a leaf that nothing crosses, and an HCA at half its width
ILL = World(nodes=8, rails=8, slow=3, cut=(0, 1))
WELL = World(nodes=8, rails=8)
FLEET = World(nodes=1_000, rails=8, on_leaf=32, slow=3, cut=(0, 1))
LONG = "W" * 400


def report(
    made: Made,
    since: typing.Optional[Since] = None,
    versions: typing.Optional[typing.Mapping[str, str]] = None,
    errors: typing.Optional[EarlierErrors] = None,
) -> Report:
    return dataclasses.replace(
        build_report(made.records, {}, "", CREATED, versions or VERSIONS, made.source),
        since=since,
        errors=errors or EarlierErrors(),
    )


def long_signature() -> str:
    """A sheet with more of everything than it has room for, in the widest letters."""
    waivers = [
        {"check": "bandwidth.*", "subject": f"*node-{number}*", "reason": f"{number} {LONG}"}
        for number in (1, 2, *range(4, 5 + MOST_WAIVERS))
    ]
    made = records(World(nodes=9, slow=3), waivers)
    intent, facts = copy.deepcopy(made.records["bandwidth"].intent), copy.deepcopy(made.facts["bandwidth"])
    assert intent is not None
    (fabric,), pairs, pods = intent["fabrics"], facts["bandwidth"]["pairs"], facts["bandwidth"]["pods"]
    names = [f"{number}{LONG}" for number in range(MOST_FABRICS + 2)]
    intent["fabrics"] = [{**fabric, "name": name} for name in names]
    for what, items in (("pairs", pairs), ("pods", pods)):
        facts["bandwidth"][what] = [{**item, "fabric": name} for name in names for item in items]
    crowded = made.change("bandwidth", facts, intent=intent)
    evidence = SignedEvidence(f"{LONG}.tar.gz", "ab" * 32, "cd" * 32, 1_000, LONG, LONG, LONG)
    return render_signature(report(crowded, versions={f"{number} {LONG[:20]}": LONG for number in range(20)}), evidence)


def with_trends(world: World, lost: float = 0.05) -> Made:
    """The same as five runs before, but that a pair had more then, and lost it by and by."""
    made = records(world)
    facts: Facts = load(Facts, made.facts["bandwidth"], "facts")
    found = []
    for place, pair in enumerate(facts.bandwidth.pairs if facts.bandwidth else ()):
        now = pair.average_gbps or 0.0
        figures = tuple(
            now * (1 + 0.002 * (-1) ** step + (0.012 * (5 - step) + lost if place == 3 else 0)) for step in range(5)
        )
        found.append(EarlierPair(pair.fabric, pair.rail, pair.client, pair.server, figures))
    facts = dataclasses.replace(
        facts, earlier=Earlier(tuple(f"2025122{number}T030405Z-aaaaaa" for number in range(5)), (), tuple(found))
    )
    data = to_data(facts)
    context = StageContext("bandwidth", RUN, STARTED, FINISHED, False, {})
    record = judge_stage(context, RawIntent(fabrics(world), []), data, (), (FactCount("hcas", world.nodes, 0),))
    return Made({**made.records, "bandwidth": record}, {**made.facts, "bandwidth": data})


def with_errors(made: Made, counted: typing.Mapping[str, typing.Sequence[int]]) -> tuple[Made, EarlierErrors]:
    """The same, with kept runs before it.

    :param counted: symbol errors of the port of an HCA by its name, run by run; the last is this run's
    """
    data = copy.deepcopy(made.facts["fabric"])
    topologies: dict[str, ObservedTopologies] = load(dict[str, ObservedTopologies], data["topologies"], "topologies")
    node, one = next((node, seen.value[0]) for node, seen in topologies.items() if seen.value)
    assert one.topology is not None and one.errors is not None
    guids = {item.guid: item.description for item in one.topology.nodes}
    places = {guids[end.guid]: end.place for link in one.topology.links for end in (link.a, link.b) if end.kind == "Ca"}

    def step(number: int) -> SeenTopology:
        ports = tuple(
            PortErrors(*places[name], {"SymbolErrorCounter": values[number]}, True) for name, values in counted.items()
        )
        report = ErrorReport(ports, 2 * len(places))
        return dataclasses.replace(one, errors=SeenErrors(report, report, 10.0))

    runs = len(next(iter(counted.values()))) - 1
    before = EarlierErrors(
        tuple(collect_readings(f"2025122{number}T030405Z-aaaaaa", (step(number),)) for number in range(runs))
    )
    data["topologies"][node] = to_data(ObservedTopologies((step(runs),)))
    return Made(made.records, {**made.facts, "fabric": data}), before


def over_runs() -> str:
    """A pair that became slower, and links that count errors more and more, once, and not any more."""
    counted = {
        "node-2 mlx5_1": (0, 3, 9, 31, 64, 212),
        "node-3 mlx5_0": (0, 0, 120, 120, 120, 120),
        "node-4 mlx5_0": (700, 700, 2, 2, 9, 9),
    }
    made, errors = with_errors(with_trends(World(nodes=4, rails=2, on_leaf=2, rounds=3)), counted)
    return render_html(report(made, errors=errors))


#: by name; made when it is asked for
PAGES: typing.Mapping[str, typing.Callable[[], str]] = {
    "ill": lambda: render_html(report(run(ILL), SINCE)),
    "well": lambda: render_html(report(run(WELL))),
    "little": lambda: render_html(report(run(World(nodes=4, rails=2, on_leaf=2, rounds=3)))),
    "trends": over_runs,
    "waived": lambda: render_html(
        report(records(World(slow=3), [{"check": "bandwidth.*", "reason": "the HCA is ordered"}]))
    ),
    "fleet": lambda: render_html(report(run(FLEET))),
    "signature": long_signature,
    "short signature": lambda: render_signature(
        report(records(World())), SignedEvidence("rdma-evidence.tar.gz", "ab" * 32, "cd" * 32, 8)
    ),
}
