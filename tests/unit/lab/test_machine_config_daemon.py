# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for the machine config daemon: what it tells of a node, in which order, and that no node is reset before
it is drained or twice."""

from __future__ import annotations

import typing

import pytest

from tests.lab.machine_config_daemon import ASKED, DONE, HAS, REASON, STATE, WANTED, Daemon, changed, pool_of

Node = dict[str, typing.Any]


def node(**annotations: str) -> Node:
    return {
        "metadata": {"name": "worker-1", "annotations": annotations},
        "status": {"nodeInfo": {"bootID": "first"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def at(has: str, wanted: str, state: str, asked: str, done: str) -> Node:
    return node(**{HAS: has, WANTED: wanted, STATE: state, ASKED: asked, DONE: done})


def test_a_node_that_joins_has_what_its_pool_has() -> None:
    daemon = Daemon(None, print)
    assert daemon.step(node(), "") == {}
    assert daemon.step(node(), "rendered-a") == {
        HAS: "rendered-a",
        WANTED: "rendered-a",
        STATE: "Done",
        ASKED: "uncordon-rendered-a",
    }


def test_the_whole_way_to_another_configuration() -> None:
    resets: list[tuple[str, ...]] = []
    said: list[str] = []

    def take(*words: str) -> str:
        resets.append(words)
        return ""

    daemon = Daemon(take, said.append)
    assert daemon.step(at("a", "a", "Done", "uncordon-a", "uncordon-a"), "b") == {}
    assert daemon.step(at("a", "b", "Done", "uncordon-a", "uncordon-a"), "b") == {STATE: "Working", ASKED: "drain-b"}
    for _look in range(2):
        # the controller has not drained it yet
        assert daemon.step(at("a", "b", "Working", "drain-b", "uncordon-a"), "b") == {} and not resets
    drained = at("a", "b", "Working", "drain-b", "drain-b")
    for _look in range(3):
        assert daemon.step(drained, "b") == {} and resets == [("worker-1", "a", "b")]
    away = {
        **drained,
        "status": {"nodeInfo": {"bootID": "second"}, "conditions": [{"type": "Ready", "status": "False"}]},
    }
    assert daemon.step(away, "b") == {}
    back = {
        **drained,
        "status": {"nodeInfo": {"bootID": "second"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    assert daemon.step(back, "b") == {ASKED: "uncordon-b"}
    assert daemon.step(at("a", "b", "Working", "uncordon-b", "drain-b"), "b") == {}
    assert daemon.step(at("a", "b", "Working", "uncordon-b", "uncordon-b"), "b") == {HAS: "b", STATE: "Done"}
    assert resets == [("worker-1", "a", "b")]
    assert said == ["worker-1 goes to b", "worker-1 is reset", "worker-1 has b"]


def test_where_no_node_is_reset_it_is_drained_all_the_same() -> None:
    daemon = Daemon(None, lambda line: None)
    assert daemon.step(at("a", "b", "Working", "drain-b", "uncordon-a"), "b") == {}
    assert daemon.step(at("a", "b", "Working", "drain-b", "drain-b"), "b") == {ASKED: "uncordon-b"}


@pytest.mark.parametrize(
    ("labels", "config"),
    [
        ({}, ""),
        ({"worker": ""}, "rendered-worker"),
        ({"worker": "", "gpu": ""}, "rendered-gpu"),
        ({"new": ""}, ""),
        ({"gpu": "no"}, ""),
    ],
)
def test_a_node_is_of_its_own_pool_before_it_is_of_the_workers(labels: dict[str, str], config: str) -> None:
    pools = [
        {
            "metadata": {"name": "worker"},
            "spec": {"nodeSelector": {"matchLabels": {"worker": ""}}, "configuration": {"name": "rendered-worker"}},
        },
        {
            "metadata": {"name": "gpu"},
            "spec": {"nodeSelector": {"matchLabels": {"gpu": ""}}, "configuration": {"name": "rendered-gpu"}},
        },
        {"metadata": {"name": "new"}, "spec": {"nodeSelector": {"matchLabels": {"new": ""}}}},
    ]
    assert pool_of({"metadata": {"name": "worker-1", "labels": labels}}, pools) == config


def test_kernel_arguments_come_and_go_with_the_configuration() -> None:
    assert changed(["a"], ["a"]) == []
    assert changed(["a=1", "b"], ["b", "c d"]) == ["grubby", "--update-kernel=ALL", "--remove-args=a=1", "--args=c d"]


def test_a_node_that_cannot_says_so_once() -> None:
    tried: list[str] = []

    def take(*words: str) -> str:
        tried.append(words[0])
        return "no room"

    daemon = Daemon(take, lambda line: None)
    assert daemon.step(at("a", "b", "Working", "drain-b", "drain-b"), "b") == {STATE: "Degraded", REASON: "no room"}
    assert daemon.step(at("a", "b", "Degraded", "drain-b", "drain-b"), "b") == {} and tried == ["worker-1"]
