# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of the wait for the network with a text of 1 MB in one field each: what the wait says of a node stays short,
in the facts and in lines of progress."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.sriov import judge, judge_release
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import ClusterState, Target
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Attachment
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import MOST_TEXT, SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.nvidia import Reported
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_state import PodState
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.wait_for_network import wait
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate
from ansible_collections.linerate.rdma.tests.unit.check import test_readiness as worlds

LONG = "x" * 1_000_000
PLAIN = Target(
    "storage",
    (),
    "",
    "jobs/net",
    ("kl-a",),
    1,
    ("objects", "attachment", "pool", "ready"),
    ("NicClusterPolicy nic", "MacvlanNetwork net"),
    pool="IPPool.nv-ipam.nvidia.com ns/pool",
    plugin={"type": "macvlan", "master": "ens1"},
)


def grown(value: typing.Any) -> typing.Iterator[typing.Any]:
    """Yield copies of a value, each with one of its texts made long."""
    if value == "kl-a":
        # by which the wait finds it
        return
    if isinstance(value, str):
        yield LONG
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            for other in grown(getattr(value, field.name)):
                yield dataclasses.replace(value, **{field.name: other})
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            for other in grown(item):
                yield (*value[:number], other, *value[number + 1 :])
    elif isinstance(value, dict):
        for key, item in value.items():
            for other in grown(item):
                yield {**value, key: other}
            if isinstance(key, str) and key not in ("kl-a", "pol1", "default/op-net", "jobs/net"):
                yield {**{name: one for name, one in value.items() if name != key}, LONG: item}


def list_worlds() -> typing.Iterator[tuple[Target, ClusterState]]:
    tests: tuple[typing.Any, ...] = (
        worlds.test_waiting,
        worlds.test_failed_at_once,
        worlds.test_a_drain_says_what_it_waits_for,
    )
    for test in tests:
        (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]
        for case in mark.args[1]:
            yield worlds.TARGET, case[0]
    ready = dataclasses.replace(worlds.READY, attachments={"jobs/net": Attachment("net", {"type": "x", "master": "y"})})
    for state in ("error", "notReady", "ignore", "ready"):
        reports = {
            "NicClusterPolicy": {"nic": Reported("NicClusterPolicy", "nic", state, "why", ("part not ready",))},
            "MacvlanNetwork": {"net": Reported("MacvlanNetwork", "net", state, "why")},
        }
        yield PLAIN, dataclasses.replace(ready, reports=reports)
        parts = {"kl-a": (("pod", PodState("waiting", "detail")),)}
        yield PLAIN, dataclasses.replace(ready, reports=reports, parts=parts)
    yield PLAIN, dataclasses.replace(ready, attachments={"jobs/net": Attachment("net", {}, "fault")}, reports={})
    logs = {"kl-a": "error: text"}
    yield worlds.TARGET, dataclasses.replace(worlds.state(sync_status="InProgress"), logs=logs)
    yield worlds.TARGET, dataclasses.replace(worlds.READY, daemons={"kl-a": ("pod", PodState("failed", "text"))})


def test_each_text_of_each_object_leaves_details_and_remedies_short() -> None:
    seen = 0
    for target, world in list_worlds():
        for other in grown(world):
            for found in (*judge((target,), other), *judge_release((target,), other)):
                assert len(found.node.detail) < 2_000 and len(found.node.remedy) < 2_000
                seen += 1
    assert seen > 1_000


def test_a_node_of_the_wait_has_short_texts_however_it_is_made() -> None:
    node = dataclasses.replace(SyncNode("storage", "a", "waiting", LONG, LONG), phase="failed")
    assert len(node.detail) == len(node.remedy) == MOST_TEXT + len(" ... ")


@pytest.mark.parametrize("kind", ["NetworkAttachmentDefinition", "Node"])
def test_lines_of_progress_are_short(kind: str) -> None:
    class News:
        """Each second another text."""

        now = 0.0

        def get(self, timeout: float) -> KindUpdate:
            self.now += 1
            text = f"{self.now}{LONG}"
            status = {"conditions": [{"type": "Ready", "status": "False", "message": text}]}
            objects: dict[str, dict[str, typing.Any]] = {
                "Node": {"kind": "Node", "metadata": {"name": "kl-a"}, "status": status},
                "NetworkAttachmentDefinition": {
                    "kind": "NetworkAttachmentDefinition",
                    "metadata": {"name": "net", "namespace": "jobs"},
                    "spec": {"config": f'{{"type": "macvlan", "master": "{text if kind != "Node" else "ens1"}"}}'},
                },
            }
            at = list(objects)[int(self.now) % 2]
            return KindUpdate(at, "replace", (objects[at],))

        def gather(self, seconds: float) -> list[KindUpdate]:
            return []

    lines: list[str] = []
    news = News()
    target = dataclasses.replace(PLAIN, predicates=("attachment", "ready"), objects=(), pool="")
    facts = wait(typing.cast(typing.Any, news), (target,), 50.0, lambda: news.now, lines.append)
    assert lines and max(map(len, lines)) < 2_000 and len(facts.nodes[0].detail) < 2_000
