# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet that changes its objects, or writes Events, without end: what waits and what is kept is bounded, and the
news of the others comes."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.grace import SuspectTimer
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import ObserversFacts, Wanted
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import cluster_reader
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import name_of
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import (
    observer_view,
    observers,
    state_lines,
    wait_for_network,
    watch,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observer_view import ObserverView
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers import Observers
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.poll import poll
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.state_lines import StateLines
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate, WatchFeed
from ansible_collections.linerate.rdma.tests.unit.hostile.test_objects_not_read import (
    UID,
    Item,
    Server,
    node,
    observer,
)


def feed_of(*events: tuple[str, Item]) -> tuple[WatchFeed, Server]:
    server = Server(nodes=[node(1), node(2)])
    server.events = [b"".join(json.dumps({"type": of, "object": item}).encode() + b"\n" for of, item in events)]
    feed = server.feed = WatchFeed(Cluster(server), {}, ("Node",))
    feed._follow("Node")
    return feed, server


def numbered(number: int, version: int) -> tuple[str, Item]:
    item = node(number)
    return "MODIFIED", {**item, "metadata": {**item["metadata"], "resourceVersion": str(version)}}


def versions(changes: typing.Iterable[KindUpdate]) -> list[tuple[str, str]]:
    return [
        (change.items[0]["metadata"]["name"], change.items[0]["metadata"]["resourceVersion"])
        for change in changes
        if change.action == "put"
    ]


def test_of_an_object_that_changes_without_end_the_first_changes_and_the_newest_wait() -> None:
    flood = [numbered(1, version) for version in range(100)]
    feed, _server = feed_of(*flood[:50], numbered(2, 5), *flood[50:])
    found = versions(feed.gather(0.0))
    most = watch.MOST_OF_ONE
    assert found == [*(("worker-1", str(number)) for number in range(most - 1)), ("worker-1", "99"), ("worker-2", "5")]
    assert feed.get(0.0) is None


def test_a_kind_of_which_too_much_waits_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_WAITING", 30)
    feed, server = feed_of(*(numbered(number, 1) for number in range(40)))
    assert [change.action for change in feed.gather(0.0)] == ["replace"]
    assert len(server.watched) == 2


def test_what_was_taken_waits_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_WAITING", 3)
    changes = watch._Changes()
    for version in range(100):
        assert changes.put(KindUpdate("Node", "put", (numbered(1, version)[1],)))
        assert changes.put(KindUpdate("Node", "error", error="away"))
        assert [versions([change]) for change in (changes.get(0.0), changes.get(0.0)) if change] == [
            [("worker-1", str(version))],
            [],
        ]
    assert not changes._of_object


def event(number: int, uid: str, time: str = "2026-11-28T11:00:00Z") -> Item:
    about = {"kind": "Pod", "name": "o1", "uid": uid}
    words = {"type": "Warning", "reason": "Failed", "message": f"cause {number}"}
    return {"metadata": {"name": f"e{number}"}, "involvedObject": about, "lastTimestamp": time, **words}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer_view, "MOST_EVENTS", 100)
    monkeypatch.setattr(observers, "MOST_EVENTS", 100)
    monkeypatch.setattr(observer_view, "MOST_OF_OBJECT", 10)


def stranger(number: int) -> str:
    return f"{number:08}-0000-0000-0000-000000000000"


@pytest.mark.usefixtures("small")
def test_events_about_other_objects_hide_none_of_the_observers_from_the_first_look() -> None:
    """The API server lists Events by their names, and a kubelet chooses those of its own."""
    mine = event(1, UID[:-1] + "2")
    mine["metadata"]["name"] = "linerate-observer-o1.18a0"
    flood = [event(number, stranger(number)) for number in range(2, 2000)]
    server = Server(pods=[observer("o1")], daemonsets=[], nodes=[], events=[*flood, mine])
    found = observer_view.seen_in(Cluster(server), "linerate-observers")
    assert [item.message for item in found.events] == ["cause 1"]
    feed = server.feed = WatchFeed(
        Cluster(server), {}, ("Event",), only={"Event": observer_view.is_about_observers}, most={"Event": 100}
    )
    feed._follow("Event")
    (change,) = feed.gather(0.0)
    assert [item["metadata"]["name"] for item in change.items] == ["linerate-observer-o1.18a0"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("flooded", ["linerate-observer-aaaaa", "linerate-observer", "linerate-observer-o1"])
def test_events_under_the_names_of_observers_hide_no_other_one(flooded: str) -> None:
    pods = [observer("linerate-observer-o1"), observer("linerate-observer-o2")]
    mine = event(1, pods[1]["metadata"]["uid"])
    mine["metadata"]["name"] = "linerate-observer-o2.18a0"
    flood = [event(number, stranger(number)) for number in range(2, 2000)]
    for number, one in enumerate(flood):
        # an object of any name has the same room as all of them
        part = f"{number:05}." if flooded.endswith("aaaaa") else "."
        one["metadata"]["name"] = f"{flooded}{part}{number:05}"
    server = Server(pods=pods, daemonsets=[], nodes=[], events=sorted([*flood, mine], key=name_of))
    found = observer_view.seen_in(Cluster(server), "linerate-observers")
    assert "cause 1" in [item.message for item in found.events] and len(found.events) <= 100


def test_a_list_of_a_few_objects_ends_however_few_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_PASSED", 3)
    server = Server(events=[event(number, stranger(number)) for number in range(2000)])
    assert not Cluster(server).list("Event", most=100, only=lambda item: item["metadata"]["name"] == "e1999").items


@pytest.mark.usefixtures("small")
def test_events_without_end_leave_the_telling_ones_of_the_observers() -> None:
    view = ObserverView("linerate-observers")
    view.replace("Pod", [observer("o1")])
    view.replace("Event", [event(1, UID[:-1] + "2", "2026-11-28T10:00:00Z")])
    for number in range(2, 2000):
        view.change("Event", [event(number, stranger(number), "2026-11-28T12:00:00Z")], False)
    kept = view.seen().events
    assert len(kept) <= 100 and "cause 1" in [item.message for item in kept]
    assert view.dropped == 1999 - len(kept)


@pytest.mark.usefixtures("small")
def test_events_without_end_about_one_pod_leave_its_newest() -> None:
    view = ObserverView("linerate-observers")
    view.replace("Pod", [observer("o1")])
    view.replace("Event", [event(n, UID[:-1] + "2", f"2026-11-28T11:{n // 60:02}:{n % 60:02}Z") for n in range(101)])
    assert sorted(item.message for item in view.seen().events) == sorted(f"cause {n}" for n in range(91, 101))


@pytest.mark.usefixtures("small")
def test_the_number_of_events_that_were_left_out_is_said() -> None:
    said: list[str] = []
    changes = [
        KindUpdate("Event", "replace", tuple(event(number, stranger(number)) for number in range(200))),
        KindUpdate("DaemonSet", "replace"),
        KindUpdate("Pod", "replace"),
        KindUpdate("Node", "replace"),
    ]

    class Feed:
        def get(self, _timeout: float) -> typing.Optional[KindUpdate]:
            return changes.pop(0) if changes else None

    now = iter(range(1000))
    made = Observers(typing.cast(Cluster, None), "o", 20, lambda: float(next(now)), lambda _s: None, said.append)
    facts = made._follow(typing.cast("typing.Any", Feed()), Wanted("o", "image", "run-1"), ["worker-1"])
    assert isinstance(facts, ObserversFacts)
    assert any(line.endswith("; 150 Events were ignored, because there are more than 100") for line in said)


@pytest.mark.usefixtures("small")
def test_news_without_end_keep_no_wait_from_its_limit_and_make_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_AT_ONCE", 50)
    said: list[str] = []
    asked, nodes = 0, KindUpdate("Node", "replace", (node(1),))

    class Feed:
        """There is always another one."""

        def get(self, _timeout: float) -> KindUpdate:
            nonlocal asked
            asked += 1
            assert asked < 100_000
            if asked < 4:
                return (KindUpdate("DaemonSet", "replace"), KindUpdate("Pod", "replace"), nodes)[asked - 1]
            return KindUpdate("Event", "put", (event(asked, stranger(asked)),))

    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.001
        return now

    made = Observers(typing.cast(Cluster, None), "o", 40, clock, lambda _s: None, said.append)
    facts = made._follow(typing.cast("typing.Any", Feed()), Wanted("o", "image", "run-1"), ["worker-1"])
    # that there is no DaemonSet is seen as soon as without the flood
    assert [item.reason for item in facts.nodes] == ["no_daemon_set"] and now < 12
    # the first ones, then one each five seconds, and the last
    assert state_lines.MOST_OF_ONE < len(said) <= state_lines.MOST_OF_ONE + 4


def test_what_is_gathered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_AT_ONCE", 20)
    feed, _server = feed_of(*(numbered(number, 1) for number in range(100)))
    assert len(feed.gather(0.0)) == 20
    assert feed.get(0.0) is not None


def test_a_node_that_changes_its_state_without_end_gets_one_line_a_minute() -> None:
    said: list[str] = []
    lines = StateLines(said.append)
    for tenth in range(10 * 600):
        lines.tell("worker-1", f"worker-1 waiting: {tenth}", tenth / 10)
        lines.tell("worker-2", f"worker-2 waiting: {tenth // 3000}", tenth / 10)
    lines.tell("worker-1", "worker-1 waiting: 5999", 600.0, ends=True)
    lines.tell("worker-1", "worker-1 ready", 600.0, ends=True)
    lines.tell("worker-1", "worker-1 ready", 600.0, ends=True)
    of_one = [line for line in said if "worker-1" in line]
    assert len(of_one) == state_lines.MOST_OF_ONE + 9 + 2 and of_one[-1] == "600 s  worker-1 ready"
    assert [line for line in said if "worker-2" in line] == ["0 s  worker-2 waiting: 0", "300 s  worker-2 waiting: 1"]


def test_the_wait_for_the_network_has_this_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet that is Ready and not Ready in turn made ten lines a second for as long as others are waited for."""
    said: list[str] = []
    now = 0.0

    def flapping(_timer: object, _judgements: object, at: float) -> tuple[SyncNode, ...]:
        return (SyncNode("compute", "worker-1", "waiting", f"not Ready for the {at * 10:.0f}th time"),)

    class Feed:
        def get(self, _timeout: float) -> None:
            nonlocal now
            now += 0.1

        def gather(self, _seconds: float) -> list[KindUpdate]:
            return []

    monkeypatch.setattr(SuspectTimer, "apply", flapping)
    wait_for_network.wait(typing.cast("typing.Any", Feed()), (), 600.0, lambda: now, said.append)
    assert len([line for line in said if "worker-1" in line]) == state_lines.MOST_OF_ONE + 9 + 1


def test_a_node_that_changes_its_state_makes_no_lines_about_the_others() -> None:
    said: list[str] = []
    looks = iter(range(100))
    others = tuple(f"worker-{number}: lacks mlx5_0" for number in range(2, 1000))
    poll(
        lambda: next(looks),
        lambda look: (f"worker-1: lacks mlx5_{look % 2}", *others) if look < 50 else (),
        "all is there",
        1000.0,
        10.0,
        lambda: 0.0,
        lambda _seconds: None,
        said.append,
    )
    assert len(said) == len(others) + 50 + 1 and said[-1] == "0 s  all is there"
