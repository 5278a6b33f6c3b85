# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugins of the observers under a real ansible-playbook: what is seen becomes a fact, Ansible gets counts, and
a failure is still shown.

The nodes are this machine: one that answers, one without the interpreter, and one that can't be reached.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.action import fabric_info, ibping, node_info
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils import _observer
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import measure_size
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-aaaaaa"
NODES = ("broken", "far", "good")
PORT = {"device": "mlx5_0", "port": 1}


class Played(typing.NamedTuple):
    """What one run of a playbook left."""

    folder: FactFolder
    answers: dict[str, dict[str, typing.Any]]
    output: str


@pytest.fixture(scope="module", name="played")
def fixture_played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    path = tmp_path_factory.mktemp("observers")
    tree = Tree(path / "sys")
    add_six_hcas(tree)
    folder = FactFolder(str(path / "report"), RUN)
    folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=NODES))
    kept = {"facts_dir": folder.report_dir, "run": RUN}
    look = {"sysfs": [str(tree.root)]}
    calls: dict[str, tuple[str, dict[str, typing.Any]]] = {
        "kept": ("node_info", {**kept, **look}),
        "plain": ("node_info", look),
        "later": ("node_info", {**kept, **look, "gather_subset": ["hcas"], "moment": "later"}),
        "half": ("node_info", {**kept, **look, "gather_subset": ["platform"]}),
        "unwritten": ("node_info", {**look, "facts_dir": str(path / "hosts.yml"), "run": RUN}),
        "unchosen": ("fabric_info", kept),
        "fact": ("fact", {**kept, "kind": "limit", "value": {"limit": "8"}}),
        "neither": ("fact", {**kept, "kind": "limit"}),
        "no_kind": ("fact", {**kept, "kind": "../x", "value": 1}),
    }
    tasks: list[dict[str, typing.Any]] = [
        {"name": name, f"linerate.rdma.{module}": arguments, "register": name}
        for name, (module, arguments) in calls.items()
    ]
    keep = {
        "content": "{{ {" + ", ".join(f"'{name}': {name}" for name in calls) + "} | to_json }}",
        "dest": str(path) + "/{{ inventory_hostname }}.json",
    }
    tasks.append({"name": "Keep", "ansible.builtin.copy": {**keep, "mode": "0600"}, "delegate_to": "localhost"})
    play = {"hosts": "all", "gather_facts": False, "ignore_errors": True, "ignore_unreachable": True, "tasks": tasks}
    (path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    local = {"ansible_connection": "local"}
    hosts = {
        "good": {**local, "ansible_python_interpreter": sys.executable},
        "broken": {**local, "ansible_python_interpreter": "/nowhere/python3"},
        "far": {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": "-o ControlPath=none"},
    }
    me = {"localhost": {**local, "ansible_python_interpreter": sys.executable}}
    (path / "hosts.yml").write_text(yaml.safe_dump({"nodes": {"hosts": hosts}, "me": {"hosts": me}}), encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_HOME": str(path / "home"),
        "ANSIBLE_NOCOLOR": "1",
    }
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).parent / "ansible-playbook"
    )
    command = [program, "-i", "hosts.yml", "--limit", "nodes", "play.yml"]
    done = subprocess.run(
        command,
        cwd=path,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    written = {node: path / f"{node}.json" for node in NODES}
    assert all(name.exists() for name in written.values()), output
    return Played(
        folder, {node: json.loads(name.read_text(encoding="utf-8")) for node, name in written.items()}, output
    )


def test_value_becomes_a_fact_and_ansible_gets_counts(played: Played) -> None:
    answer = played.answers["good"]["kept"]
    assert (
        answer["counts"] == {"hcas": 6, "platform": 6, "firmware": 6, "clock": 5, "tuning": 2}
        and answer["changed"] is False
    )
    assert "hcas" not in answer and "platform" not in answer
    fact = played.folder.read("hcas", "good")
    assert fact is not None and [hca["name"] for hca in fact.value["hcas"]] == [f"mlx5_{index}" for index in range(6)]
    assert len(played.folder.of_nodes("platform", ["good"])["good"]["value"]["functions"]) == 6
    clock = played.folder.of_nodes("clock", ["good"])["good"]["value"]
    assert clock["asked"] < clock["seconds"] < clock["answered"], "the node is this machine"


def test_without_a_folder_the_module_s_own_answer_comes(played: Played) -> None:
    answer = played.answers["good"]["plain"]
    assert len(answer["hcas"]["hcas"]) == 6 and answer["platform"]["functions"] and "counts" not in answer
    fact = played.folder.read("hcas", "good")
    assert fact is not None and fact.value == answer["hcas"]


def test_what_is_seen_later_is_a_fact_of_its_own(played: Played) -> None:
    assert played.answers["good"]["later"]["counts"] == {"hcas_later": 6}
    assert len(played.folder.of_nodes("hcas_later", ["good"])["good"]["value"]["hcas"]) == 6


def test_failure_is_a_fact_and_is_shown(played: Played) -> None:
    answer = played.answers["broken"]["kept"]
    assert answer["failed"] is True and "/nowhere/python3" in played.output
    for kind in ("hcas", "platform", "clock", "hcas_later"):
        found = played.folder.of_nodes(kind, ["broken"])["broken"]
        assert found["value"] is None and found["error"].startswith("failed: ") and "/nowhere/python3" in found["error"]


def test_node_that_is_not_reached_is_a_fact_and_is_shown(played: Played) -> None:
    assert played.answers["far"]["kept"]["unreachable"] is True and "UNREACHABLE!" in played.output
    for kind in ("hcas", "platform", "clock", "tuning"):
        found = played.folder.of_nodes(kind, ["far"])["far"]
        assert found["value"] is None and found["error"].startswith("unreachable: ")


def test_part_that_is_not_asked_for_leaves_its_fact(played: Played) -> None:
    assert played.answers["good"]["half"]["counts"] == {"platform": 6}
    assert len(played.folder.of_nodes("hcas", ["good"])["good"]["value"]["hcas"]) == 6


def test_folder_that_cannot_be_written_fails_the_task(played: Played) -> None:
    answer = played.answers["good"]["unwritten"]
    assert answer["failed"] is True and "could not be written" in answer["msg"] and "hosts.yml" in answer["msg"]


def test_node_of_which_no_port_was_chosen_is_not_asked(played: Played) -> None:
    for node in NODES:
        answer = played.answers[node]["unchosen"]
        assert (answer.get("failed", False), answer["counts"], answer["changed"]) == (False, {}, False)
        assert played.folder.read("topologies", node) is None


def test_fact_of_an_ordinary_module_touches_no_node(played: Played) -> None:
    assert all(played.folder.of_nodes("limit", [node])[node]["value"] == {"limit": "8"} for node in NODES)
    assert played.answers["good"]["fact"]["path"] == played.folder.path("limit", "good")
    assert "value, error" in played.answers["good"]["neither"]["msg"]
    assert "is not a valid kind of fact" in played.answers["good"]["no_kind"]["msg"]


def action(of: typing.Any) -> typing.Any:
    """An action plugin without Ansible around it: what it takes from facts needs none."""
    return object.__new__(of.ActionModule)


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: pathlib.Path) -> FactFolder:
    folder = FactFolder(str(tmp_path), RUN)
    folder.write("vantage_points", value={"worker-1": [PORT]})
    folder.write("ping_plan", "worker-1", {"servers": [PORT], "clients": [{**PORT, "lids": [4]}]})
    folder.write("ping_plan", "worker-2", error="unreachable")
    return folder


def test_fabric_is_looked_at_from_the_ports_that_were_chosen(folder: FactFolder) -> None:
    plugin = action(fabric_info)
    assert plugin.arguments(folder, "worker-1", {"timeout": 9}) == {"timeout": 9, "ports": [PORT]}
    assert plugin.arguments(folder, "worker-2", {}) == {"ports": []} and plugin.kinds({"ports": []}) == {}
    assert plugin.arguments(folder, "worker-2", {"ports": [PORT]}) == {"ports": [PORT]}, "what the user says counts"
    assert plugin.arguments(None, "worker-1", {}) == {} and plugin.kinds({"ports": [PORT]}) == {
        "topology": "topologies"
    }


@pytest.mark.parametrize(
    ("mode", "node", "part", "kinds"),
    [
        ("serve", "worker-1", {"servers": [PORT]}, {"servers": "ping_servers"}),
        ("ping", "worker-1", {"clients": [{**PORT, "lids": [4]}]}, {"pings": "pings"}),
        ("ping", "worker-2", {"clients": []}, {"pings": "pings"}),
        ("serve", "worker-3", {"servers": []}, {"servers": "ping_servers"}),
        ("stop", "worker-1", {}, {"servers": "ping_servers_stopped"}),
    ],
)
def test_each_node_gets_its_part_of_the_plan(
    folder: FactFolder, mode: str, node: str, part: dict[str, typing.Any], kinds: dict[str, str]
) -> None:
    plugin = action(ibping)
    assert (
        plugin.arguments(folder, node, {"mode": mode}) == {"mode": mode, **part}
        and plugin.kinds({"mode": mode}) == kinds
    )
    assert plugin.arguments(None, node, {"mode": mode}) == {"mode": mode}


def test_moment_is_no_argument_of_the_module() -> None:
    given = {"moment": "later", "gather_subset": ["hcas"]}
    assert action(node_info).kinds(given) == {"hcas": "hcas_later"} and given == {"gather_subset": ["hcas"]}


@pytest.mark.parametrize(
    ("later", "lost"), [(["mlx5_0"], ["mlx5_1"]), (["mlx5_0", "mlx5_1"], []), ([], ["mlx5_0, mlx5_1"])]
)
def test_what_is_missing_since_an_earlier_moment(
    folder: FactFolder, monkeypatch: pytest.MonkeyPatch, later: list[str], lost: list[str]
) -> None:
    def hcas(*names: str) -> dict[str, typing.Any]:
        return {"hcas": [{"name": name, "rdma_device": name} for name in names], "errors": []}

    plugin = action(node_info)
    monkeypatch.setattr(plugin, "ask", lambda arguments, task_vars: {"hcas": hcas(*later)})
    given = {"since": "before_reset", "gather_subset": ["hcas"]}
    kinds = plugin.kinds(given)
    assert given == {"gather_subset": ["hcas"]}, "it is no argument of the module"
    assert "missing" not in plugin._collect_node_facts(folder, "worker-1", kinds, given, {}), (
        "nothing was kept at that moment"
    )
    folder.write("hcas_before_reset", "worker-1", hcas("mlx5_0", "mlx5_1"))
    assert plugin._collect_node_facts(folder, "worker-1", kinds, given, {})["missing"] == lost


@pytest.mark.parametrize(
    # seconds that an answer takes; of the looks, the first in which all is there again; how many are made within five
    # minutes
    ("takes", "whole", "looks"),
    [(1.0, 0, 1), (1.0, 3, 4), (1.0, 99, 29), (100.0, 99, 3), (900.0, 99, 1)],
)
def test_a_node_is_asked_until_nothing_is_missing_or_the_wait_has_ended(
    folder: FactFolder, monkeypatch: pytest.MonkeyPatch, takes: float, whole: int, looks: int
) -> None:
    now, asked, shown = [0.0], [0], typing.cast(list[str], [])

    def answer(_self: typing.Any, _arguments: typing.Any, _task_vars: typing.Any) -> dict[str, typing.Any]:
        now[0] += takes
        asked[0] += 1
        names = ["mlx5_0", "mlx5_1"] if asked[0] > whole else ["mlx5_0"]
        return {"hcas": {"hcas": [{"name": name, "rdma_device": name} for name in names], "errors": []}}

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(_observer.ObserverAction, "ask", answer)
    monkeypatch.setattr(node_info, "time", types.SimpleNamespace(time=time.time, monotonic=lambda: now[0], sleep=sleep))
    plugin = action(node_info)
    monkeypatch.setattr(node_info, "Display", lambda: types.SimpleNamespace(display=shown.append))
    both = [{"name": name, "rdma_device": name} for name in ("mlx5_0", "mlx5_1")]
    folder.write("hcas_before_reset", "worker-1", {"hcas": both, "errors": []})
    given = {"since": "before_reset", "wait_seconds": 300, "gather_subset": ["hcas"]}
    given = plugin.arguments(folder, "worker-1", given)
    kinds = plugin.kinds(given)
    missing = [] if looks > whole else ["mlx5_1"]
    assert plugin._collect_node_facts(folder, "worker-1", kinds, given, {})["missing"] == missing and asked[0] == looks
    assert [line.split(" s  ")[1] for line in shown] == ["mlx5_1"] * bool(missing or whole) + [
        "it reports everything that it reported before"
    ] * (0 < whole < 99)


def test_a_task_that_ends_by_its_timeout_leaves_nothing_of_an_earlier_moment(
    folder: FactFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Timeout(BaseException):
        """As ansible-core's own, which no handler of errors takes."""

    def answer(_self: typing.Any, _arguments: typing.Any, _task_vars: typing.Any) -> typing.NoReturn:
        raise Timeout

    monkeypatch.setattr(_observer.ObserverAction, "ask", answer)
    plugin = action(node_info)
    folder.write("hcas", "worker-1", {"hcas": [], "errors": []})
    given = plugin.arguments(folder, "worker-1", {"gather_subset": ["hcas"]})
    with pytest.raises(Timeout):
        plugin._collect_node_facts(folder, "worker-1", plugin.kinds(given), given, {})
    fact = folder.read("hcas", "worker-1")
    assert fact is not None and (fact.value, fact.error) == (None, "failed: it was queried again and did not respond")


@pytest.mark.parametrize("wrong", [{"hcas": [{"name": 5}], "errors": []}, {"hcas": "none"}])
def test_an_answer_of_another_form_leaves_nothing_of_an_earlier_moment(
    folder: FactFolder, monkeypatch: pytest.MonkeyPatch, wrong: typing.Any
) -> None:
    """A node whose HCAs can't be read after its reset is not judged by what it showed before."""
    before = {"hcas": [{"name": "mlx5_0", "rdma_device": "mlx5_0"}], "errors": []}
    for kind in ("hcas", "hcas_before_reset"):
        folder.write(kind, "worker-1", before)
    folder.write("tuning", "worker-1", {"rows": {"before": []}})
    monkeypatch.setattr(_observer.ObserverAction, "ask", lambda *_given: {"hcas": wrong, "tuning": {"rows": {}}})
    plugin = action(node_info)
    given = plugin.arguments(
        folder, "worker-1", {"since": "before_reset", "wait_seconds": 300, "gather_subset": ["hcas", "tuning"]}
    )
    with pytest.raises(RdmaError):
        plugin._collect_node_facts(folder, "worker-1", plugin.kinds(given), given, {})
    kept = {kind: folder.read(kind, "worker-1") for kind in ("hcas", "tuning")}
    assert kept["hcas"] is not None and kept["hcas"].value != before
    assert kept["tuning"] is not None and kept["tuning"].value == {"rows": {}}


def test_a_look_that_is_refused_leaves_nothing_of_an_earlier_moment(
    folder: FactFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: typing.Any) -> typing.NoReturn:
        raise RdmaError("an answer of 17 MiB", "Look at the node by hand")

    monkeypatch.setattr(_observer.ObserverAction, "ask", refused)
    plugin = action(node_info)
    folder.write("hcas", "worker-1", {"hcas": [], "errors": []})
    given = plugin.arguments(folder, "worker-1", {"gather_subset": ["hcas"]})
    with pytest.raises(RdmaError):
        plugin._collect_node_facts(folder, "worker-1", plugin.kinds(given), given, {})
    fact = folder.read("hcas", "worker-1")
    assert fact is not None and (fact.value, fact.error) == (None, "failed: it was queried again and did not respond")


def test_what_a_node_lacks_is_said_in_one_line(folder: FactFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [{"name": f"mlx5_{number}", "rdma_device": f"mlx5_{number}"} for number in range(3000)]
    folder.write("hcas_before_reset", "worker-1", {"hcas": many, "errors": []})
    monkeypatch.setattr(_observer.ObserverAction, "ask", lambda *_given: {"hcas": {"hcas": [], "errors": []}})
    plugin, shown = action(node_info), typing.cast(list[str], [])
    now = iter(range(0, 10_000, 100))
    monkeypatch.setattr(
        node_info,
        "time",
        types.SimpleNamespace(time=time.time, monotonic=lambda: next(now), sleep=lambda _seconds: None),
    )
    monkeypatch.setattr(node_info, "Display", lambda: types.SimpleNamespace(display=shown.append))
    given = plugin.arguments(
        folder, "worker-1", {"since": "before_reset", "wait_seconds": 300, "gather_subset": ["hcas"]}
    )
    (missing,) = plugin._collect_node_facts(folder, "worker-1", plugin.kinds(given), given, {})["missing"]
    assert len(shown) == 1 and len(shown[0]) < 200 and len(missing) < 200 and "2995 more" in missing


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (None, ["hcas", "platform", "firmware", "clock", "tuning"]),
        ("hcas", ["hcas"]),
        ("hcas,platform", ["hcas", "platform"]),
        (["!hcas"], ["platform", "firmware", "clock", "tuning"]),
    ],
)
def test_facts_are_those_of_the_subset(words: typing.Any, keys: list[str]) -> None:
    assert list(action(node_info).kinds({"gather_subset": words})) == keys


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ({"hcas": [1, 2], "errors": ["x"]}, 2),
        ({"a": 1, "b": 2}, 2),
        ({}, 0),
        ([1, 2, 3], 3),
        (None, 0),
        ("text", 1),
        (0, 1),
    ],
)
def test_size_of_an_answer(value: typing.Any, count: int) -> None:
    assert measure_size(value) == count


@pytest.mark.parametrize(
    ("first", "again", "said", "kept"),
    [
        # fast enough, asked once
        (1.0, [], "", False),
        # the module took its time to get there; the shortest way is fast
        (34.0, [1.0], "1034.5", True),
        # a busy machine: the shortest way of them
        (55.0, [40.0, 12.0, 33.0, 9.0, 11.0], "1034.5", True),
        (55.0, [40.0, 4.0], "1034.5", True),
        # slow for another reason: the first was no slower
        (34.0, [40.0] * 5, "1034.5", False),
        # busybox, and a shell that fails
        (34.0, [1.0], "1034.%N", False),
        (34.0, [1.0], "", False),
    ],
)
def test_a_slow_answer_is_asked_for_the_time_again(
    first: float, again: typing.Sequence[float], said: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ways = [1000.0], list(again)

    def answer(_self: typing.Any, _arguments: typing.Any, _task_vars: typing.Any) -> dict[str, typing.Any]:
        now[0] += first
        return {"clock": {"seconds": 7.0, "synchronised": True}}

    def command(_self: typing.Any, text: str) -> dict[str, typing.Any]:
        assert text == "date +%s.%N"
        now[0] += ways.pop(0)
        return {"rc": 0 if said else 1, "stdout": f"{said}\r\n"}

    monkeypatch.setattr(_observer.ObserverAction, "ask", answer)
    monkeypatch.setattr(node_info.ActionModule, "_low_level_execute_command", command)
    monkeypatch.setattr(time, "time", lambda: now[0])
    clock = object.__new__(node_info.ActionModule).ask({}, {})["clock"]
    assert clock["synchronised"] and clock["seconds"] == (1034.5 if kept else 7.0)
    assert not ways and clock["answered"] - clock["asked"] == pytest.approx(min(again) if kept else first)
