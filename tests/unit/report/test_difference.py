# SPDX-License-Identifier: GPL-3.0-or-later

"""What changed between two runs, and what is no change."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    LatencyFigures,
    StepFigures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Waiver, judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._report.difference.runs import (
    MOST_OF_NODE,
    RunDifference,
    describe_differences,
    find_differences,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.difference.snapshot import Snapshot
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.difference_page import (
    difference_html,
    difference_json,
)

HCAS = NodeHcas(
    (
        Hca(
            "mlx5_0",
            firmware="28.39.1002",
            ports=(Port(1, "ACTIVE", rate_gbps=400.0, pkeys=("0x7fff", "0xffff")),),
            netdevs=(Netdev("ib0", "00", queue_pair=5),),
        ),
        Hca("mlx5_1", physical_function="0000:01:00.0", vf_index=0),
    )
)
SUBNETS = [
    {
        "rdma_device": "mlx5_0",
        "port": 1,
        "master": {"lid": 1, "guid": "0x1", "state": "MASTER", "priority": 14, "activity": 100},
        "error": None,
    }
]
TOPOLOGY = {
    "nodes": [{"guid": "0x1", "description": "leaf-1"}, {"guid": "0x2", "description": "worker-1 mlx5_0"}],
    "links": [{"a": {"guid": "0x1", "port": 3}, "b": {"guid": "0x2", "port": 1}, "width": 4, "speed": "NDR"}],
}


def seen(value: typing.Any, error: typing.Optional[str] = None) -> dict[str, typing.Any]:
    return {"value": value, "error": error}


def run(name: str = "run-1", nodes: typing.Sequence[str] = ("worker-1", "worker-2"), **start: typing.Any) -> Snapshot:
    facts = {
        "hcas": {node: seen(to_data(HCAS)) for node in nodes},
        "subnets": {node: seen(copy.deepcopy(SUBNETS)) for node in nodes},
        "topologies": {
            "worker-1": seen(
                [{"rdma_device": "mlx5_0", "topology": copy.deepcopy(TOPOLOGY), "errors": {"seconds": 1.5}}]
            )
        },
    }
    return Snapshot(RunStart(name, f"time of {name}", nodes=tuple(nodes), **start), facts, {})


def record(gate: str, *findings: Finding, waivers: typing.Sequence[Waiver] = ()) -> Record:
    return Record(
        "fabric", "run", "then", "later", False, typing.cast(typing.Any, gate), judge(findings, waivers).judged
    )


def finding(status: typing.Any, subject: str = "compute") -> Finding:
    return Finding("fabric.one_master", subject, status, f"measured {status}", "one", "so", "do")


def test_two_runs_of_one_cluster_do_not_differ() -> None:
    before, after = run("run-1"), run("run-2")
    after.facts["subnets"]["worker-1"]["value"][0]["master"]["activity"] = 999
    after.facts["hcas"]["worker-1"]["value"]["hcas"][0]["netdevs"][0]["queue_pair"] = 77
    after.facts["hcas"]["worker-1"]["value"]["hcas"][0]["ports"][0]["pkeys"].reverse()
    after.facts["hcas"]["worker-2"]["value"]["hcas"].reverse()
    after.facts["topologies"]["worker-1"]["value"][0]["errors"]["seconds"] = 2.5
    assert find_differences(before, after) == []


def test_latencies_that_moved_are_a_difference() -> None:
    def with_median(name: str, *medians: float) -> Snapshot:
        found = (LatencyFigures("compute", "all_reduce", 4, 18.0, median, 40.0) for median in medians)
        return dataclasses.replace(run(name), latencies=tuple(found))

    assert find_differences(with_median("run-1", 20.0), with_median("run-2", 30.0)) == []
    for one, other in ((20.0, 31.0), (31.0, 20.0)):
        assert find_differences(with_median("run-1", one), with_median("run-2", other)) == [
            RunDifference(
                "collectives",
                "compute all_reduce, small messages of pairs",
                f"median {one} us",
                f"median {other} us",
            )
        ]
    assert find_differences(with_median("run-1", 20.0), with_median("run-2")) == []


def test_steps_of_collectives_that_moved_are_a_difference() -> None:
    def with_steps(name: str, *steps: StepFigures) -> Snapshot:
        return dataclasses.replace(run(name), collectives=steps)

    whole = StepFigures("compute", "all_reduce", "all", 4, 1, 94.0, 94.0, 94.0)
    leaf = StepFigures("compute", "all_reduce", "a leaf", 2, 2, 90.0, 94.0, 95.0)
    near, slow = dataclasses.replace(whole, median=88.0), dataclasses.replace(whole, median=46.0)
    assert find_differences(with_steps("run-1", whole, leaf), with_steps("run-2", near, leaf)) == []
    assert find_differences(with_steps("run-1", whole, leaf), with_steps("run-2", slow)) == [
        RunDifference("collectives", "compute all_reduce, all: 4 nodes", "94.0 GB/s", "46.0 GB/s"),
        RunDifference("collectives", "compute all_reduce, a leaf: 2 nodes", "94.0 GB/s", "not verified"),
    ]
    assert find_differences(with_steps("run-1", whole), run("run-2")) == [], "the gates tell that none ran"


def test_firmware_link_and_vf_by_node() -> None:
    before, after = run(), run()
    hcas = after.facts["hcas"]["worker-1"]["value"]["hcas"]
    hcas[0]["firmware"], hcas[0]["ports"][0]["rate_gbps"] = "28.41.1000", 200.0
    del after.facts["hcas"]["worker-2"]["value"]["hcas"][1]
    after.facts["subnets"]["worker-2"]["value"][0]["master"]["guid"] = "0x2"
    assert find_differences(before, after) == [
        RunDifference("worker-1", "mlx5_0 firmware", "28.39.1002", "28.41.1000"),
        RunDifference("worker-1", "mlx5_0 port 1 rate_gbps", "400.0", "200.0"),
        RunDifference("worker-2", "mlx5_1", "present", "absent"),
        RunDifference("worker-2", "subnet manager of mlx5_0 port 1 master guid", "0x1", "0x2"),
    ]
    assert (
        describe_differences(find_differences(before, after))[0]
        == "worker-1: mlx5_0 firmware: 28.39.1002 -> 28.41.1000"
    )


def test_nodes_that_come_go_or_fall_silent() -> None:
    before, after = run(nodes=("worker-1", "worker-2")), run(nodes=("worker-1", "worker-3"))
    hcas, subnets = (typing.cast(dict[str, typing.Any], after.facts[kind]) for kind in ("hcas", "subnets"))
    hcas["worker-1"] = seen(None, "unreachable: no route")
    del subnets["worker-1"]
    assert find_differences(before, after) == [
        RunDifference("worker-1", "hcas", "seen", "unreachable: no route"),
        RunDifference("worker-1", "subnets", "looked at", "not looked at"),
        RunDifference("worker-2", "node", "takes part", "absent"),
        RunDifference("worker-3", "node", "absent", "takes part"),
    ]


def test_the_look_after_the_network_counts_where_both_have_it() -> None:
    before, after = run(), run()
    for snapshot in (before, after):
        typing.cast(typing.Any, snapshot.facts)["hcas_after_network"] = {
            node: seen(to_data(HCAS)) for node in snapshot.start.nodes
        }
    after.facts["hcas"]["worker-1"]["value"]["hcas"][0]["firmware"] = "now"
    assert find_differences(before, after) == []
    after.facts["hcas_after_network"]["worker-1"]["value"]["hcas"][0]["firmware"] = "now"
    assert [item.after for item in find_differences(before, after)] == ["now"]


def test_cables() -> None:
    before, after = run(), run()
    links = after.facts["topologies"]["worker-1"]["value"][0]["topology"]["links"]
    links[0].update(a=links[0]["b"], b=links[0]["a"])
    assert find_differences(before, after) == [], "a link has no direction"
    links[0]["speed"] = "HDR"
    assert find_differences(before, after) == [
        RunDifference("fabric", "link leaf-1 port 3 - worker-1 mlx5_0 port 1", "4x NDR", "4x HDR")
    ]
    links[0]["b"]["port"] = 4
    assert [(item.before, item.after) for item in find_differences(before, after)] == [
        ("4x NDR", "absent"),
        ("absent", "4x HDR"),
    ]


def clos(*hosts: int) -> dict[str, typing.Any]:
    """Two leaves of one description, each with an uplink, and hosts by the leaf (1 or 2) that each is cabled to."""
    nodes = [
        {"guid": "0x9", "description": "spine"},
        *({"guid": f"0x{leaf}", "description": "Quantum Mellanox Technologies"} for leaf in (1, 2)),
    ]
    nodes += [{"guid": f"0xa{number}", "description": f"worker-{number} mlx5_0"} for number in range(len(hosts))]
    links = [
        {"a": {"guid": f"0x{leaf}", "port": 40}, "b": {"guid": "0x9", "port": leaf}, "width": 4, "speed": "NDR"}
        for leaf in (1, 2)
    ]
    for number, leaf in enumerate(hosts):
        links.append(
            {
                "a": {"guid": f"0x{leaf}", "port": 1 + number // 2},
                "b": {"guid": f"0xa{number}", "port": 1},
                "width": 4,
                "speed": "NDR",
            }
        )
    return {"nodes": nodes, "links": links}


def cabled(topology: typing.Optional[dict[str, typing.Any]], error: typing.Optional[str] = None) -> Snapshot:
    made = run()
    typing.cast(typing.Any, made.facts)["topologies"] = {
        "worker-1": seen([{"rdma_device": "mlx5_0", "port": 1, "topology": topology, "error": error}])
    }
    return made


def test_switches_of_one_description_are_told_apart_by_their_guid() -> None:
    """All hosts change places with those of the other leaf, at the same ports."""
    found = find_differences(cabled(clos(1, 2, 1, 2)), cabled(clos(2, 1, 2, 1)))
    assert len(found) == 8 and found[0] == RunDifference(
        "fabric", "link Quantum Mellanox Technologies (0x1) port 1 - worker-0 mlx5_0 port 1", "4x NDR", "absent"
    )


def test_an_uplink_of_switches_of_one_description_that_is_gone() -> None:
    after = clos(1, 2)
    del after["links"][1]
    assert find_differences(cabled(clos(1, 2)), cabled(after)) == [
        RunDifference("fabric", "link Quantum Mellanox Technologies (0x2) port 40 - spine port 2", "4x NDR", "absent")
    ]


def test_a_switch_that_is_called_otherwise_has_the_same_cables() -> None:
    after = clos(1, 2)
    after["nodes"][0]["description"] = "spine-1"
    assert find_differences(cabled(clos(1, 2)), cabled(after)) == [
        RunDifference("fabric", "name of 0x9", "spine", "spine-1")
    ]


def test_cables_that_one_run_did_not_see_are_not_the_same() -> None:
    whole, blind, none = cabled(clos(1, 2)), cabled(None, "ibnetdiscover: timed out"), run()
    typing.cast(typing.Any, none.facts)["topologies"] = {}
    error = "unknown: worker-1 mlx5_0: ibnetdiscover: timed out"
    assert find_differences(whole, none) == [RunDifference("fabric", "topology", "seen", "not looked at")]
    assert find_differences(none, whole) == [RunDifference("fabric", "topology", "not looked at", "seen")]
    assert find_differences(whole, blind) == [RunDifference("fabric", "topology", "seen", error)]
    assert find_differences(blind, blind) == [RunDifference("fabric", "topology", error, f"{error} (not compared)")]
    assert find_differences(none, none) == []


def test_bios_and_switch_ports_are_compared() -> None:
    """What one run did not see is no equality, and neither is what both could not read."""
    before, after = run(), run()
    attribute = {"name": "SriovGlobalEnable", "current": "Enabled"}
    for snapshot, value in ((before, "Enabled"), (after, "Disabled")):
        settings = [{"key": "sriov", "attributes": [{**attribute, "current": value}], "looked_for": []}]
        facts = typing.cast(typing.Any, snapshot.facts)
        facts["bios"] = {
            "worker-1": seen({"version": "1.8.2", "settings": settings}),
            "worker-2": seen(None, "HTTP 401"),
        }
        netdevs = [
            {
                "name": "eth2",
                "switch_ports": [{"chassis": f"leaf of {value}", "port": "1"}],
                "hardware_addresses": [value],
            }
        ]
        facts["neighbours"] = {"worker-1": seen({"netdevs": netdevs})}
    ports = [f'{{"chassis": "leaf of {value}", "port": "1"}}' for value in ("Enabled", "Disabled")]
    assert find_differences(before, after) == [
        RunDifference("worker-1", "BIOS settings sriov attributes SriovGlobalEnable current", "Enabled", "Disabled"),
        RunDifference("worker-1", "neighbours netdev eth2 switch_ports", *ports),
        RunDifference("worker-2", "bios", "HTTP 401", "HTTP 401 (not compared)"),
    ]
    typing.cast(typing.Any, after.facts)["bios"] = {}
    assert RunDifference("worker-1", "bios", "looked at", "not looked at") in find_differences(before, after)


def test_intent_and_versions() -> None:
    before = run(fabrics=[{"name": "compute", "virtual_functions": 8}], versions={"linerate.rdma": "1.0.0"})
    after = run(
        fabrics=[{"name": "compute", "virtual_functions": 4}], versions={"linerate.rdma": "1.1.0"}, check_mode=True
    )
    assert find_differences(before, after) == [
        RunDifference("cluster", "rdma_fabrics compute virtual_functions", "8", "4"),
        RunDifference("cluster", "versions linerate.rdma", "1.0.0", "1.1.0"),
        RunDifference("cluster", "check_mode", "false", "true"),
    ]


def test_findings_appear_vanish_and_change_their_status() -> None:
    before = Snapshot(RunStart("a", ""), {}, {"fabric": record("closed", finding("fail"), finding("pass", "spare"))})
    waiver = Waiver("fabric.*", "so")
    after = Snapshot(
        RunStart("b", ""), {}, {"fabric": record("open", finding("fail"), finding("pass", "storage"), waivers=[waiver])}
    )
    assert find_differences(before, after) == [
        RunDifference("stage fabric", "gate", "closed", "open"),
        RunDifference("stage fabric", "fabric.one_master on compute", "fail", "fail, waived"),
        RunDifference("stage fabric", "fabric.one_master on spare", "pass", "absent"),
        RunDifference("stage fabric", "fabric.one_master on storage", "absent", "pass"),
    ]
    assert find_differences(after, Snapshot(RunStart("c", ""), {}, {}))[0] == RunDifference(
        "stage fabric", "gate", "open", "no record"
    )


def test_the_files() -> None:
    before, after = RunStart("run-1", "then"), RunStart("run-2", "now")
    found = [RunDifference("worker-1", "<b>", "password=hunter2", "2")]
    data = json.loads(difference_json(before, after, found))
    assert (data["before"]["run"], data["differences"][0]["node"]) == ("run-1", "worker-1")
    page = difference_html(before, after, found)
    assert "1 difference<" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert "hunter2" not in page + difference_json(before, after, found)
    assert "no difference" in difference_html(before, after, [])


def test_what_one_node_shows_takes_bounded_lines_and_hides_no_other_node() -> None:
    before, after = run("run-1"), run("run-2")
    for number, side in enumerate((before, after)):
        side.facts["hcas"]["worker-1"]["value"] = [{"name": "A" * 60_000, **{f"k{key}": number for key in range(5000)}}]
    after.facts["subnets"]["worker-2"]["value"][0]["master"]["priority"] = 3
    found = find_differences(before, after)
    assert [item.node for item in found] == ["worker-1"] * (MOST_OF_NODE + 1) + ["worker-2"]
    assert max(len(item.what) for item in found) < 500
    assert found[MOST_OF_NODE] == RunDifference(
        "worker-1", "differences", f"{MOST_OF_NODE} differences are listed", "more differences exist"
    )
