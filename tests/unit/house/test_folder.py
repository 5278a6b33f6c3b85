# SPDX-License-Identifier: GPL-3.0-or-later

"""From the folder of the facts to what the checks take, for every stage."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import (
    list_changes,
    list_rolled_nodes_to_read,
    list_unread_kinds,
    read_answers,
    read_facts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import (
    CHANGES,
    FIRMWARE,
    HCAS,
    PLATFORM,
    SOURCES,
    SUBNETS,
    TOPOLOGIES,
    Joined,
    OfCluster,
    OfListedNodes,
    OfNodes,
    OfNodesThatHaveIt,
    OfRun,
    list_shared_sources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts as TeardownFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.either import list_sides
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import class_of, read_hints
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.form import Bound
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan, NodePlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import Roll
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world

RUN = "20260102T030405Z-aaaaaa"
INTENT = functools.partial(Intent, ())
NODES = ("worker-1", "worker-2")
FACTS = {**{stage: facts for stage, (facts, _check) in TABLE.items()}, "teardown": TeardownFacts}
#: fields that no fact fills: the action that judges hands them over
HANDED = {"teardown": {"operator_removed"}}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: pathlib.Path) -> FactFolder:
    return begun(tmp_path)


def begun(path: pathlib.Path, check_mode: bool = False, nodes: tuple[str, ...] = NODES) -> FactFolder:
    folder = FactFolder(str(path), RUN)
    folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", check_mode, nodes, ("rdma_fabrics",)))
    return folder


def sample(cls: typing.Any) -> typing.Any:
    """Data of a type, with one item in each list and each mapping."""
    origin, arguments = typing.get_origin(cls), typing.get_args(cls)
    if origin is typing.Annotated and isinstance(arguments[1], Bound):
        return sample(arguments[0])
    if origin is typing.Annotated:
        return arguments[0](arguments[1].example)
    if origin is typing.Union:
        return sample(arguments[0])
    if origin is typing.Literal:
        return arguments[0]
    if origin is tuple:
        return [sample(arguments[0])]
    if origin is dict:
        return {
            sample(arguments[0]) if typing.get_origin(arguments[0]) is typing.Annotated else "worker-1": sample(
                arguments[1]
            )
        }
    if dataclasses.is_dataclass(class_of(cls)):
        # a value has no reason beside it why there is none
        reasons = (list_sides(class_of(cls)) or ((), ()))[1]
        return {
            name: getattr(class_of(cls), name, None) if name in reasons else sample(hint)
            for name, hint in read_hints(cls).items()
        }
    return {str: "x", int: 1, float: 1.0, bool: True, bytes: "AA=="}.get(cls, {})


def fill(folder: FactFolder, stage: str) -> dict[str, typing.Any]:
    """Write a fact for each field of a stage, and say what must come of them."""
    hints = typing.get_type_hints(FACTS[stage], include_extras=True)
    start, expected = folder.start(), {}
    of_nodes: dict[str, typing.Any] = {}
    of_cluster: dict[str, dict[str, typing.Any]] = {}
    of_cluster_lists: dict[str, list[str]] = {}
    for field, source in SOURCES[stage].items():
        kind = typing.get_args(hints[field])
        if isinstance(source, OfRun):
            expected[field] = getattr(start, source.field)
        elif isinstance(source, OfNodes):
            value = sample(read_hints(kind[1])["value"])
            expected[field] = {node: {"value": value, "error": None} for node in NODES}
            of_nodes[source.kind] = {**of_nodes.get(source.kind, {}), source.key: value} if source.key else value
            if source.listed_by:
                of_cluster[source.listed_by] = {node: [{"device": "mlx5_0", "port": 1}] for node in NODES}
        elif isinstance(source, OfListedNodes):
            of_nodes[source.kind] = sample(read_hints(kind[1])["value"])
            of_cluster_lists[source.listed_by] = list(NODES)
            expected[field] = {node: {"value": of_nodes[source.kind], "error": None} for node in NODES}
        elif isinstance(source, OfNodesThatHaveIt):
            of_nodes[source.kind] = sample(kind[1])
            expected[field] = dict.fromkeys(NODES, of_nodes[source.kind])
        elif isinstance(source, Joined):
            for name in source.kinds:
                of_cluster.setdefault(name, {})[source.key] = sample(hints[field])
            expected[field] = sample(hints[field]) * len(source.kinds)
        else:
            of_cluster.setdefault(source.kind, {})[source.key] = expected[field] = sample(hints[field])
    for name, value in of_nodes.items():
        for node in NODES:
            folder.write(name, node, value)
    for name, found in {**of_cluster, **of_cluster_lists}.items():
        folder.write(name, value=found)
    return expected


@pytest.mark.parametrize("stage", FACTS)
def test_sources_fit_the_facts(stage: str) -> None:
    fields = {field.name for field in dataclasses.fields(FACTS[stage])}
    assert set(SOURCES[stage]) == fields - HANDED.get(stage, set()), (
        "a field without a source is empty for ever; a source without a field is refused"
    )


def test_sources_are_those_of_the_stages() -> None:
    assert set(SOURCES) == set(FACTS) == {*STAGES, "teardown"} and set(CHANGES) <= set(SOURCES)
    fields = {field.name for field in dataclasses.fields(RunStart)}
    assert all(
        source.field in fields
        for sources in SOURCES.values()
        for source in sources.values()
        if isinstance(source, OfRun)
    )
    of_nodes = {
        source.kind
        for sources in SOURCES.values()
        for source in sources.values()
        if isinstance(source, (OfNodes, OfListedNodes, OfNodesThatHaveIt))
    }
    of_cluster = {
        source.kind for sources in SOURCES.values() for source in sources.values() if isinstance(source, OfCluster)
    }
    assert not of_nodes & of_cluster, "a kind is either of nodes or of the cluster"


@pytest.mark.parametrize("stage", FACTS)
def test_full_folder_loads_into_the_facts_of_the_stage(folder: FactFolder, stage: str) -> None:
    expected = fill(folder, stage)
    data, counts = read_facts(folder, stage)
    assert to_data(data) == to_data(expected)
    assert load(FACTS[stage], data, stage)
    assert all(count.missing == 0 and count.seen for count in counts)
    kinds = [
        source.kind
        for source in SOURCES[stage].values()
        if isinstance(source, (OfNodes, OfListedNodes, OfCluster, OfNodesThatHaveIt))
    ]
    assert {count.kind for count in counts} == set(kinds)


def test_a_list_of_several_facts_needs_each_of_them(folder: FactFolder) -> None:
    """Of objects that nobody asked for nothing is left only in words."""
    source = SOURCES["teardown"]["removed"]
    assert isinstance(source, Joined) and source.whole
    fill(folder, "teardown")
    folder.write(source.kinds[1], value={})
    data, _counts = read_facts(folder, "teardown")
    assert "removed" not in data and "stays" in data


@pytest.mark.parametrize("stage", FACTS)
def test_empty_folder_loads_too_and_every_node_has_its_error(folder: FactFolder, stage: str) -> None:
    data, counts = read_facts(folder, stage)
    assert load(FACTS[stage], data, stage)
    assert all(count.seen == 0 and count.missing for count in counts)
    for field, source in SOURCES[stage].items():
        if isinstance(source, OfNodes):
            assert set(data[field]) == set(NODES) and all(
                f"no fact {source.kind}" in item["error"] for item in data[field].values()
            )
        elif isinstance(source, OfListedNodes):
            assert data[field] == {}, "nobody was asked for it"
        elif isinstance(source, OfCluster):
            assert field not in data, "the default says that nothing was seen"


# without a wish for them, the stages host, collectives and training have nothing to prove
@pytest.mark.parametrize(
    "stage", [stage for stage in STAGES if stage not in ("validate", "host", "collectives", "training")]
)
def test_no_stage_passes_on_an_empty_folder(folder: FactFolder, stage: str) -> None:
    facts, check = TABLE[stage]
    findings = check(world.intent(), load(facts, read_facts(folder, stage)[0], stage))
    assert any(finding.status in ("fail", "unknown") for finding in findings)


def test_facts_that_are_not_needed_are_not_read(folder: FactFolder) -> None:
    pathlib.Path(folder.path("hcas", "worker-1")).parent.mkdir(parents=True)
    data, counts = read_facts(folder, "fabric", ["subnets"])
    assert set(data) == {"subnets"} and [count.kind for count in counts] == ["subnets"]


def test_counts_say_how_many_nodes_are_missing(folder: FactFolder) -> None:
    folder.write("hcas", "worker-1", {"hcas": []})
    folder.write("hcas", "worker-2", error="unreachable")
    assert read_facts(folder, "discover")[1] == (FactCount("hcas", 1, 1), FactCount("clock", 0, 2))


def test_node_that_is_in_no_inventory_is_not_counted(folder: FactFolder) -> None:
    folder.write("hcas", "spare", {"hcas": []})
    assert set(read_facts(folder, "discover")[0]["nodes"]) == set(NODES)


def test_topologies_of_nodes_that_were_not_chosen(folder: FactFolder) -> None:
    """They count as seen, with nothing: only where nobody chose was nobody asked."""
    folder.write("vantage_points", value={"worker-1": [{"device": "mlx5_0", "port": 1}]})
    folder.write("topologies", "worker-1", to_data(world.seen_topologies()))
    data, counts = read_facts(folder, "fabric", ["topologies"])
    assert data["topologies"]["worker-2"] == {"value": [], "error": None}
    assert len(data["topologies"]["worker-1"]["value"]) == 2 and counts == (FactCount("topologies", 2, 0),)
    os.unlink(folder.path("topologies", "worker-1"))
    assert "no fact topologies" in read_facts(folder, "fabric", ["topologies"])[0]["topologies"]["worker-1"]["error"]


def test_key_that_a_fact_lacks_is_an_error_about_the_node(folder: FactFolder) -> None:
    folder.write("containerd", "worker-1", {"state": "absent"})
    folder.write("containerd", "worker-2", ["limit"])
    found = read_facts(folder, "host", ["runtimes"])[0]["runtimes"]
    assert found == {node: {"value": None, "error": "the fact containerd has no 'limit'"} for node in NODES}


@pytest.mark.parametrize(("stage", "kind"), [("network", "sync"), ("teardown", "maps_removed")])
def test_fact_of_another_form_is_named(folder: FactFolder, stage: str, kind: str) -> None:
    path = folder.write(kind, value=["no mapping"])
    with pytest.raises(FileError, match="the value is not a mapping") as caught:
        read_facts(folder, stage)
    assert path in str(caught.value)


def test_nothing_is_planned_where_nobody_looked(folder: FactFolder) -> None:
    with pytest.raises(FileError, match="this run has not read the HCAs of any node, so no plan can be made"):
        read_answers(folder)


def test_a_stage_that_plans_by_hcas_looks_at_them_also_when_it_runs_alone(folder: FactFolder) -> None:
    for stage in ("network", "virtual_functions", "bandwidth", "reachability"):
        assert {"hcas", "subnets"} <= set(list_unread_kinds(folder, stage, INTENT)), stage


def test_a_plan_is_made_from_the_nodes_that_answered(folder: FactFolder) -> None:
    folder.write("hcas", "worker-1", to_data(world.node(1)))
    folder.write("hcas", "worker-2", error="unreachable")
    folder.write("subnets", "worker-2", to_data(world.subnets()))
    answers = read_answers(folder)
    assert (dict(answers.hcas), dict(answers.subnets)) == ({"worker-1": world.node(1)}, {"worker-2": world.subnets()})
    folder.write("hcas", "worker-1", {"hca": []})
    # what can't be read of one node is its error, and never what it showed
    assert dict(read_answers(folder).hcas) == {}


def test_stage_host_reads_again_the_nodes_that_the_run_has_rolled(folder: FactFolder) -> None:
    asks = functools.partial(Intent, (), cluster=ClusterIntent(host=HostNeeds(kubelet=Kubelet("restricted"))))
    assert list_rolled_nodes_to_read(folder, "host", asks) == [] and not folder.has("rolled_nodes")
    plan = DisruptionPlan((NodePlan("worker-1", "reboot", rolled_by="gpu"), NodePlan("worker-2", "configure")))
    folder.write("disruption", value={"plan": to_data(plan), "allowed": True})
    folder.write("rolls", value={"rolls": [to_data(Roll("gpu", 1, "rendered-2", 1, 1))]})
    assert list_rolled_nodes_to_read(folder, "host", INTENT) == [], "the intent asks for nothing of kernel and kubelet"
    assert list_rolled_nodes_to_read(folder, "tuning", asks) == [], "another stage"
    assert list_rolled_nodes_to_read(folder, "host", asks) == ["worker-1"]
    for needs in (HostNeeds(kernel_arguments=("iommu=pt",)), HostNeeds(gpudirect="auto")):
        of_kernel = functools.partial(Intent, (), cluster=ClusterIntent(host=needs))
        assert list_rolled_nodes_to_read(folder, "host", of_kernel) == ["worker-1"]
    assert folder.value("rolled_nodes") == ["worker-1"]
    # what the node did not answer is an error of it, and no answer from before the roll
    for field in ("tunings_after_roll", "platforms_after_roll"):
        seen, _counts = read_facts(folder, "host", (field,))
        assert [*seen[field]] == ["worker-1"] and seen[field]["worker-1"]["error"]
    folder.write("rolls", value={"rolls": [{"pool": 5}]})
    assert list_rolled_nodes_to_read(folder, "host", asks) == [], "the judgement names the damaged fact"


def test_stages_look_at_what_this_run_has_not_seen(folder: FactFolder) -> None:
    assert (
        list_shared_sources("fabric") == (HCAS, SUBNETS, TOPOLOGIES)
        and list_shared_sources("platform") == (HCAS, PLATFORM, FIRMWARE, SUBNETS)
        and list_shared_sources("compare") == ()
    )
    assert list_unread_kinds(folder, "fabric", INTENT) == ["hcas", "subnets", "topologies"]
    for node in NODES:
        folder.write("hcas", node, {"hcas": []})
    folder.write("subnets", "worker-1", [])
    assert list_unread_kinds(folder, "fabric", INTENT) == ["subnets", "topologies"], (
        "each node must have been looked at"
    )
    folder.write("subnets", "worker-2", error="unreachable: it is not asked again in this run")
    assert list_unread_kinds(folder, "fabric", INTENT) == ["topologies"]
    folder.write("vantage_points", value={})
    assert list_unread_kinds(folder, "fabric", INTENT) == []
    assert (
        list_unread_kinds(folder, "platform", INTENT) == ["platform", "firmware"]
        and list_unread_kinds(folder, "validate", INTENT) == []
    )


SWITCHED = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1},
    "virtual_functions": 4,
    "resource_name": "roce",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}


@pytest.mark.parametrize(
    ("changes", "nodes", "wanted"),
    [
        ({"bandwidth": {"rounds": "auto"}}, 2, True),
        ({}, 17, True),
        ({}, 16, False),
        ({"bandwidth": {"rounds": "all"}}, 17, False),
        ({"bandwidth": {"directions": "at_once"}}, 17, False),
        ({"rdma": False, "bandwidth": {"rounds": "auto"}}, 17, False),
        ({"profile": "sriov_infiniband", "bandwidth": {"rounds": "auto"}}, 17, False),
    ],
)
def test_switches_are_listened_for_where_rounds_are_made_of_what_they_tell(
    tmp_path: pathlib.Path, changes: dict[str, typing.Any], nodes: int, wanted: bool
) -> None:
    names = tuple(f"worker-{number}" for number in range(nodes))
    folder = begun(tmp_path, nodes=names)

    def intent() -> Intent:
        return parse_intent([{**SWITCHED, **changes}])

    assert ("neighbours" in list_unread_kinds(folder, "bandwidth", intent)) == wanted
    assert not any("neighbours" in list_unread_kinds(folder, stage, intent) for stage in STAGES if stage != "bandwidth")
    if wanted:
        assert folder.value("listeners") == list(names)
        for name in names:
            folder.write("neighbours", name, error="unreachable: it is not asked again in this run")
        assert "neighbours" not in list_unread_kinds(folder, "bandwidth", intent)
        data, counts = read_facts(folder, "bandwidth", ["neighbours"])
        assert set(data["neighbours"]) == set(names) and counts == (FactCount("neighbours", 0, nodes),)
    else:
        assert read_facts(folder, "bandwidth", ["neighbours"]) == ({"neighbours": {}}, ())


def test_another_run_looks_again(tmp_path: pathlib.Path, folder: FactFolder) -> None:
    for node in NODES:
        os.utime(folder.write("hcas", node, {"hcas": []}), (1, 1))
    begun(tmp_path)
    assert list_unread_kinds(folder, "discover", INTENT) == ["hcas", "clock"]


def test_changes_are_what_the_facts_tell_and_none_twice(folder: FactFolder) -> None:
    folder.write("containerd", "worker-1", {"limit": "8", "changes": ["drop-in of containerd on worker-1"]})
    folder.write("containerd", "worker-2", error="unreachable")
    # answers of another form, which the judgement refuses by the name of the node
    folder.write("containerd", "worker-3", {"limit": "8", "changes": 5})
    folder.write("containerd", "worker-4", {"limit": "8", "changes": [{"a": 1}]})
    folder.write("cluster_policy", value={"changes": ["ClusterPolicy gpu", "ClusterPolicy gpu"]})
    assert list_changes(folder, "host") == ["drop-in of containerd on worker-1", "ClusterPolicy gpu"]
    assert list_changes(folder, "discover") == list_changes(folder, "bandwidth") == []


@pytest.mark.parametrize(
    ("allowed", "check_mode", "changes"),
    [
        (True, False, ["worker-1 is drained", "created Namespace test"]),
        # refused: what came after it was a dry run, and nothing was made
        (False, False, []),
        # in check mode it says what would be made
        (False, True, ["worker-1 is drained", "created Namespace test"]),
    ],
)
def test_changes_of_a_plan_that_was_refused(
    tmp_path: pathlib.Path, allowed: bool, check_mode: bool, changes: list[str]
) -> None:
    folder = begun(tmp_path, check_mode)
    folder.write("disruption", value={"allowed": allowed, "lines": ["worker-1 is drained"], "plan": None})
    folder.write("applied", value={"applied": [], "changes": ["created Namespace test"]})
    assert list_changes(folder, "network") == changes


@pytest.mark.parametrize(
    ("kind", "action", "planned"),
    [
        ("SriovNetworkNodePolicy", "unchanged", False),
        ("SriovNetworkNodePolicy", "changed", True),
        ("MachineConfig", "created", True),
        ("SriovNetwork", "created", False),
    ],
)
def test_plan_of_nodes_is_no_change_if_the_objects_for_it_were_refused(
    tmp_path: pathlib.Path, kind: str, action: str, planned: bool
) -> None:
    folder = begun(tmp_path, True)
    folder.write("disruption", value={"allowed": True, "lines": ["worker-1 is changed"], "plan": None})
    applied = [
        {"kind": "SriovNetworkNodePolicy", "name": "a", "action": "refused"},
        {"kind": kind, "name": "b", "action": action},
    ]
    folder.write("applied", value={"applied": applied, "changes": []})
    assert list_changes(folder, "network") == (["worker-1 is changed"] if planned else [])


@pytest.mark.parametrize(
    ("wish", "changes", "nodes", "wanted"),
    [
        ({}, {}, 3, True),
        ({"fabric": "storage"}, {}, 3, True),
        ({"fabric": "other"}, {}, 3, False),
        ({}, {}, 2, False),
        ({"leaves": {"su-1": ["worker-1"]}}, {}, 3, False),
        (None, {}, 3, False),
        ({}, {"profile": "sriov_infiniband"}, 3, False),
        ({}, {"rdma": False}, 3, False),
    ],
)
def test_switches_are_listened_for_where_collectives_go_from_leaf_to_leaf(
    tmp_path: pathlib.Path,
    wish: typing.Optional[dict[str, typing.Any]],
    changes: dict[str, typing.Any],
    nodes: int,
    wanted: bool,
) -> None:
    folder = begun(tmp_path, nodes=tuple(f"worker-{number}" for number in range(nodes)))
    base = {"image": "registry.example/nccl-tests:1", "cpu": "8", "memory": "64Gi"}
    cluster = {} if wish is None else {"collectives": {**base, **wish}}
    intent = parse_intent([{**SWITCHED, **changes}], None, cluster)
    assert ("neighbours" in list_unread_kinds(folder, "collectives", lambda: intent)) == wanted
