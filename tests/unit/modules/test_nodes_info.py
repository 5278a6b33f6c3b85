# SPDX-License-Identifier: GPL-3.0-or-later

"""The module nodes_info looks at nodes again: only at those that are named, and what was seen before is forgotten
whatever comes back."""

from __future__ import annotations

import json
import pathlib
import sys
import time
import types
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.node_reader import NodeReader
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.modules import nodes_info as module
from ansible_collections.linerate.rdma.tests.unit.exec_server import ExecServer, Fault
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas

RUN = "run-1"
NODES = ("a", "b", "c")


class Site:
    """Nodes a and b have observers, c is reached by ssh; of all was seen something before.

    :ivar sysfs: of all of them
    """

    def __init__(self, tmp_path: pathlib.Path, server: ExecServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.server, self.sysfs, self._said = server, str(tmp_path / "sys"), capsys
        self.tree = Tree(tmp_path / "sys")
        add_six_hcas(self.tree)
        self.folder = FactFolder(str(tmp_path / "report"), RUN)
        self.folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=NODES, by_pods=("a", "b")))
        observers = [
            {"node": node, "phase": "ready", "pod": f"observer-{node}", "container": "observer"} for node in ("a", "b")
        ]
        self.folder.write(
            "observers", value={"namespace": "observers", "image": "x", "nodes": observers, "changed": True}
        )
        for node in NODES:
            self.folder.write("hcas", node, value={"hcas": []})

    def look(self, **options: typing.Any) -> dict[str, typing.Any]:
        given = {
            "facts_dir": self.folder.report_dir,
            "run": RUN,
            "kinds": ["hcas"],
            "sysfs": [self.sysfs],
            "python": sys.executable,
            **options,
        }
        with patch_module_args(given), pytest.raises(SystemExit):
            module.main()
        answer: dict[str, typing.Any] = json.loads(self._said.readouterr().out)
        return {
            key: value for key, value in answer.items() if key in ("asked", "unanswered", "missing", "failed", "msg")
        }

    def hcas(self, node: str) -> typing.Union[int, str]:
        fact = self.folder.read("hcas", node)
        assert fact is not None
        return fact.error or len(fact.value["hcas"])


@pytest.fixture
def site(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> typing.Iterator[Site]:
    with ExecServer() as server:
        monkeypatch.setattr(module, "connect", lambda given: FakeApi.client(server.url))
        yield Site(tmp_path, server, capsys)


def test_all_that_have_an_observer_are_asked_unless_some_are_named(site: Site) -> None:
    assert site.look() == {"asked": 2, "unanswered": 0}
    seen = site.hcas("a")
    assert isinstance(seen, int) and seen >= 6
    site.folder.write("hcas", "a", value={"hcas": []})
    assert site.look(nodes=["b", "c"]) == {"asked": 1, "unanswered": 0}
    assert (site.hcas("a"), site.hcas("b"), site.hcas("c")) == (0, seen, 0)
    assert site.server.asked == {"observer-a": 1, "observer-b": 2}


def test_what_a_node_had_and_lacks_is_counted_and_so_is_a_node_that_is_not_back(site: Site) -> None:
    site.folder.write("hcas_before_reset", "a", value=NodeReader((site.sysfs,)).read("hcas"))
    assert site.look(nodes=["a", "b"], since="before_reset") == {"asked": 2, "unanswered": 0, "missing": 0}
    site.tree.write("class/infiniband/mlx5_0/ports/1/state", "2: INIT")
    assert site.look(nodes=["a", "b"], since="before_reset") == {"asked": 2, "unanswered": 0, "missing": 1}
    site.server.faults["observer-b"] = Fault(refuse=403, words="its kubelet does not answer")
    assert site.look(nodes=["a", "b"], since="before_reset") == {"asked": 2, "unanswered": 1, "missing": 2}
    assert "its kubelet does not answer" in str(site.hcas("b"))


def test_only_nodes_that_lack_something_are_asked_again_until_they_have_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    site.folder.write("hcas_before_reset", "a", value=NodeReader((site.sysfs,)).read("hcas"))
    site.tree.write("class/infiniband/mlx5_0/ports/1/state", "2: INIT")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            site.tree.write("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")

    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    told = tmp_path / "progress"
    answer = site.look(nodes=["a", "b"], since="before_reset", wait_seconds=300, progress_file=str(told))
    assert answer == {"asked": 2, "unanswered": 0, "missing": 0} and pauses == [10.0, 10.0]
    assert site.server.asked == {"observer-a": 3, "observer-b": 1}
    assert told.read_text().splitlines()[0].endswith("nodes that report less than before: 1 (a)")


def test_one_node_whose_answer_has_another_form_ends_no_look_at_the_others(site: Site) -> None:
    site.folder.write("hcas_before_reset", "a", value={"hcas": [{"name": 5}]})
    site.folder.write("hcas_before_reset", "b", value=NodeReader((site.sysfs,)).read("hcas"))
    assert site.look(nodes=["a", "b"], since="before_reset") == {"asked": 2, "unanswered": 0, "missing": 1}
    assert site.hcas("b") == site.hcas("a") and site.hcas("b") != 0


def test_the_wait_for_all_nodes_has_one_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that takes its time with each answer costs no more than one that never has what it had."""
    site.folder.write("hcas_before_reset", "a", value=NodeReader((site.sysfs,)).read("hcas"))
    site.tree.write("class/infiniband/mlx5_0/ports/1/state", "2: INIT")
    now = [0.0]

    def monotonic() -> float:
        now[0] += 40.0
        return now[0]

    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=monotonic, sleep=lambda seconds: None))
    assert site.look(nodes=["a", "b"], since="before_reset", wait_seconds=300) == {
        "asked": 2,
        "unanswered": 0,
        "missing": 1,
    }
    assert site.server.asked == {"observer-a": 7, "observer-b": 1}


def test_what_was_seen_before_does_not_stay_where_nobody_can_ask(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_given: typing.Any) -> typing.NoReturn:
        raise RdmaError("no API server", "Start it")

    monkeypatch.setattr(module, "connect", broken)
    assert site.look(nodes=["a", "c"])["failed"]
    assert (site.hcas("a"), site.hcas("b"), site.hcas("c")) == (
        "failed: it was queried again and did not respond",
        0,
        0,
    )


def test_a_run_that_reaches_none_of_them_by_pods_needs_no_observers(site: Site) -> None:
    site.folder.write("observers", error="none was started")
    assert site.look(nodes=["c"], since="before_reset") == {"asked": 0, "unanswered": 0, "missing": 0}
    assert site.look(nodes=["a"])["failed"] and site.look()["failed"]
