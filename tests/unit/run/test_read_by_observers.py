# SPDX-License-Identifier: GPL-3.0-or-later

"""Many nodes through their observers, which are processes of this machine behind an API server that speaks exec: each
has its facts, or says why not."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Observer
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import node_reader as node_side
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.observer_reply import (
    ObserverReply,
    parse_replies,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import closer_time
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.read_by_observers import (
    ObserveRequest,
    read_nodes,
)
from ansible_collections.linerate.rdma.tests.unit.exec_server import ExecServer, Fault
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas

KINDS = ("hcas", "clock")


def observers(count: int) -> typing.Iterator[Observer]:
    for number in range(count):
        yield Observer(f"node-{number}", "ready", pod=f"observer-{number}", container="observer")


@pytest.fixture
def asked(tmp_path: pathlib.Path) -> ObserveRequest:
    add_six_hcas(Tree(tmp_path / "sys"))
    return ObserveRequest(KINDS, (str(tmp_path / "sys"),), (), sys.executable, 60.0)


def test_each_node_has_its_facts_or_the_reason_and_the_others_go_on(asked: ObserveRequest) -> None:
    refused = Observer("node-8", "failed", "image", "ErrImagePull: no such host", "kubectl describe pod observer-8")
    with ExecServer() as server:
        server.faults["observer-1"] = Fault(cut=100)
        server.faults["observer-2"] = Fault(refuse=403, words="pods is forbidden")
        server.faults["observer-3"] = Fault(times=1, refuse=503, words="overloaded")
        found = dict(read_nodes(FakeApi.client(server.url), "observers", [*observers(6), refused], asked, 4))
    assert set(found) == {*(f"node-{number}" for number in range(6)), "node-8"}
    expected = node_side.NodeReader(asked.sysfs).read("hcas")
    for number in (0, 3, 4, 5):
        mine = found[f"node-{number}"]
        assert mine["hcas"] == ObserverReply(expected, None)
        clock = mine["clock"].value
        assert clock["asked"] <= clock["seconds"] + 0.5 <= clock["answered"] + 1.0
    for number, words in ((1, "bytes of stdout"), (2, "pods is forbidden")):
        assert all(
            (one.value, (one.error or "")[:13]) == (None, "unreachable: ") and words in (one.error or "")
            for one in found[f"node-{number}"].values()
        )
    assert (
        found["node-8"]["hcas"].error
        == "unreachable: node node-8 has no observer (image): ErrImagePull: no such host. kubectl describe pod"
        " observer-8"
    )


def test_a_slow_look_is_asked_for_the_time_again_and_the_shortest_way_counts(
    asked: ObserveRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closer_time, "SLOW_SECONDS", 0.0)
    with ExecServer() as server:
        began = time.time()
        ((_node, found),) = read_nodes(FakeApi.client(server.url), "observers", observers(1), asked)
        took = time.time() - began
        assert server.asked["observer-0"] == 1 + closer_time.ATTEMPTS
        clock = found["clock"].value
        assert began < clock["asked"] <= clock["seconds"] <= clock["answered"] and clock["answered"] - clock[
            "asked"
        ] <= took / (1 + closer_time.ATTEMPTS)
        # a look without a clock asks for no time
        list(
            read_nodes(
                FakeApi.client(server.url), "observers", observers(1), dataclasses.replace(asked, kinds=("hcas",))
            )
        )
        assert server.asked["observer-0"] == 2 + closer_time.ATTEMPTS


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo lost >&2; exit 3", "ended with exit code 3: lost"),
        ("echo not json", "'not json' is not JSON"),
        ("echo '[]'", "is not a value or an error of hcas"),
    ],
)
def test_an_answer_that_is_none_is_an_error_of_each_kind(
    asked: ObserveRequest, tmp_path: pathlib.Path, script: str, words: str
) -> None:
    broken = tmp_path / "python"
    broken.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    broken.chmod(0o755)
    with ExecServer() as server:
        wanted = ObserveRequest(KINDS, asked.sysfs, (), str(broken), 30.0)
        ((_node, found),) = read_nodes(FakeApi.client(server.url), "observers", observers(1), wanted)
    assert set(found) == set(KINDS)
    assert all(
        one.value is None and one.error is not None and one.error.startswith("failed: ") and words in one.error
        for one in found.values()
    )


def test_an_image_without_python_is_named(asked: ObserveRequest) -> None:
    with ExecServer() as server:
        wanted = ObserveRequest(KINDS, asked.sysfs, (), "/nowhere/python3", 30.0)
        ((_node, found),) = read_nodes(FakeApi.client(server.url), "observers", observers(1), wanted)
    assert "/nowhere/python3 in the observer ended with exit code 127" in (found["hcas"].error or "")


def test_without_an_observer_nobody_is_asked(asked: ObserveRequest) -> None:
    gone = Observer("node-1", "failed", "no_pod", "nobody made one", "look at it")
    assert [node for node, _found in read_nodes(FakeApi.client("http://127.0.0.1:9"), "observers", [gone], asked)] == [
        "node-1"
    ]


@pytest.mark.parametrize(
    "item", [None, {}, {"value": None}, {"error": ""}, {"value": 1, "error": "x"}, {"error": 7}, "x"]
)
def test_an_answer_is_a_value_or_an_error(item: typing.Any) -> None:
    with pytest.raises(ParseError):
        parse_replies(json.dumps({"hcas": item}), ["hcas"])
    assert parse_replies('{"hcas": {"value": {}}, "more": 1}', ["hcas"]) == {"hcas": ObserverReply({}, None)}
