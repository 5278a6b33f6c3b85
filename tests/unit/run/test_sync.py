# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait's loop, with a clock and news that the test gives."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.sriov import judge
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import ClusterState, Target
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import Budget, ClusterPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import NIC_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.answers import Choice
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_state import PodState
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import KINDS, list_kinds, take
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.wait_for_network import (
    ROLLED_SECONDS,
    STEADY_SECONDS,
    wait,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import (
    REQUIRED,
    KindUpdate,
    Parts,
    WatchFeed,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import Paged

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"
POD = ClusterPod("db-0", "shop", "kl-a", {"app": "db"}, ("openshift.io/igbvf",), "StatefulSet")
BUDGET = {
    "metadata": {"name": "db", "namespace": "shop"},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}
DAEMON = {
    "metadata": {"name": "config-daemon-x", "namespace": "ops"},
    "spec": {"nodeName": "kl-a", "containers": []},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
TARGET = Target("storage", ("pol1",), "openshift.io/igbvf", "default/op-net", ("kl-a",), 1)


def resources(name: str) -> list[dict[str, typing.Any]]:
    data = yaml.safe_load((FIXTURES / name).read_text())
    found: list[dict[str, typing.Any]] = data.get("items", [data])
    return found


NODE = resources("node-worker-sriov.yaml")[0]
STATE = next(
    item for item in resources("sriovnetworknodestates-igb-succeeded.yaml") if item["metadata"]["name"] == "kl-a"
)
POLICY = next(item for item in resources("sriov-crs.yaml") if item["kind"] == "SriovNetworkNodePolicy")


def changed(resource: dict[str, typing.Any], **paths: typing.Any) -> dict[str, typing.Any]:
    """A copy with values at dotted paths (two underscores stand for the dot)."""
    result = copy.deepcopy(resource)
    for path, value in paths.items():
        *parents, last = path.split("__")
        target = result
        for key in parents:
            target = target[key]
        target[last] = value
    return result


class Script:
    """A feed that plays (second, change) and moves the clock."""

    error = ""
    stands: Parts = ()

    def __init__(self, *steps: tuple[float, KindUpdate]) -> None:
        self.now = 0.0
        self.looks: list[tuple[float, typing.Sequence[str]]] = []
        self.steps = list(steps)

    def get(self, timeout: float) -> typing.Optional[KindUpdate]:
        if self.steps and self.steps[0][0] <= self.now + timeout:
            second, change = self.steps.pop(0)
            self.now = max(self.now, second)
            return change
        self.now += timeout
        return None

    def gather(self, seconds: float) -> list[KindUpdate]:
        self.now += seconds
        due = [change for second, change in self.steps if second <= self.now]
        del self.steps[: len(due)]
        return due

    def pods(
        self, nodes: typing.Sequence[str], budgets: typing.Iterable[Budget], prefixes: typing.Iterable[str]
    ) -> dict[str, tuple[ClusterPod, ...]]:
        self.looks.append((self.now, tuple(nodes)))
        return dict.fromkeys(nodes, (POD,))

    def daemon_error(self, pod: str) -> str:
        self.looks.append((self.now, pod))
        return self.error

    def parts(self, nodes: typing.Sequence[str]) -> dict[str, Parts]:
        self.looks.append((self.now, tuple(nodes)))
        return dict.fromkeys(nodes, self.stands)


def start(state: dict[str, typing.Any] = STATE, node: dict[str, typing.Any] = NODE) -> list[tuple[int, KindUpdate]]:
    return [
        (0, KindUpdate("Node", "replace", (node,))),
        (0, KindUpdate("SriovNetworkNodeState", "replace", (state,))),
        (0, KindUpdate("SriovNetworkNodePolicy", "replace", (POLICY,))),
        (
            0,
            KindUpdate("NetworkAttachmentDefinition", "replace", tuple(resources("networkattachmentdefinitions.yaml"))),
        ),
        *(
            (0, KindUpdate(kind, "replace"))
            for kind in ("SriovNetworkPoolConfig", "MachineConfigPool", "PodDisruptionBudget")
        ),
        (0, KindUpdate("Pod", "error", error="pods is forbidden")),
    ]


def run(
    *steps: tuple[int, KindUpdate], limit: float = 100.0, error: str = "", **options: typing.Any
) -> tuple[SyncFacts, list[str]]:
    script = Script(*steps)
    lines: list[str] = []
    script.error = error
    facts = wait(script, (TARGET,), limit, lambda: script.now, lines.append, settle=0.0, **options)
    return facts, lines


BARE = changed(
    changed(STATE, spec__interfaces=[]),
    status__interfaces=[{**STATE["status"]["interfaces"][0], "numVfs": 0, "Vfs": []}],
)


def test_all_in_place_ends_at_once() -> None:
    facts, lines = run(*start())
    assert (facts.finished, facts.timed_out, facts.waited_seconds) == (True, False, 0.0)
    assert facts.nodes[0].phase == "ready"
    assert lines[-1] == "0 s  storage kl-a ready: 4 openshift.io/igbvf on 1 physical function"


def test_the_course_of_a_real_rollout() -> None:
    no_vfs = changed(NODE, status__allocatable={"openshift.io/igbvf": "0"})
    seen = changed(STATE, status__interfaces=BARE["status"]["interfaces"])
    facts, lines = run(
        *start(BARE, no_vfs),
        (3, KindUpdate("SriovNetworkNodeState", "put", (seen,))),
        (6, KindUpdate("SriovNetworkNodeState", "put", (changed(seen, status__syncStatus="InProgress"),))),
        (14, KindUpdate("SriovNetworkNodeState", "put", (STATE,))),
        (22, KindUpdate("Node", "put", (NODE,))),
    )
    assert (facts.finished, facts.waited_seconds, facts.nodes[0].phase) == (True, 22.0 + STEADY_SECONDS, "ready")
    assert [line.split()[0] for line in lines] == ["0", "3", "6", "14", "22"]
    assert "older than the policy" in lines[1]
    assert "offers 0 openshift.io/igbvf instead of 4" in lines[3]


def offering(amount: str) -> KindUpdate:
    return KindUpdate("Node", "put", (changed(NODE, status__allocatable={"openshift.io/igbvf": amount}),))


def test_an_offer_of_a_device_plugin_that_is_gone_is_not_taken() -> None:
    """The node's status is up to 10 s old: it still shows what the plugin offered before the config daemon ended it."""
    working = changed(STATE, status__syncStatus="InProgress")
    done = (20, KindUpdate("SriovNetworkNodeState", "put", (STATE,)))
    facts, lines = run(*start(working), done, (26, offering("0")), (36, offering("4")))
    assert [line.partition("  ")[0] for line in lines] == ["0 s", "20 s", "26 s", "36 s"]
    assert "ready" in lines[1] and "offers 0 openshift.io/igbvf instead of 4" in lines[2] and "ready" in lines[3]
    assert (facts.finished, facts.waited_seconds, facts.nodes[0].phase) == (True, 36.0 + STEADY_SECONDS, "ready")


def test_a_limit_that_comes_before_a_node_was_ready_for_long_ends_the_wait_as_ready() -> None:
    working = changed(STATE, status__syncStatus="InProgress")
    facts, _lines = run(*start(working), (20, KindUpdate("SriovNetworkNodeState", "put", (STATE,))), limit=25.0)
    assert (facts.finished, facts.timed_out, facts.waited_seconds, facts.nodes[0].phase) == (True, False, 25.0, "ready")


def test_a_failed_sync_ends_early_with_its_text() -> None:
    failed = changed(STATE, status__syncStatus="Failed")
    failed["status"]["lastSyncError"] = "device or resource busy"
    facts, _lines = run(*start(failed), limit=1800.0)
    assert (facts.finished, facts.timed_out, facts.waited_seconds) == (True, False, 20.0)
    assert (facts.nodes[0].phase, facts.nodes[0].detail) == (
        "failed",
        "the config daemon failed: device or resource busy",
    )


def test_a_failed_sync_that_heals_is_no_failure() -> None:
    facts, _lines = run(
        *start(changed(STATE, status__syncStatus="Failed")), (15, KindUpdate("SriovNetworkNodeState", "put", (STATE,)))
    )
    assert facts.nodes[0].phase == "ready"


def test_time_out_returns_the_last_state() -> None:
    facts, _lines = run(*start(BARE), limit=30.0)
    assert (facts.finished, facts.timed_out, facts.waited_seconds) == (False, True, 30.0)
    assert "has not written policy pol1" in facts.nodes[0].detail


def test_an_api_server_that_never_answers() -> None:
    facts, _lines = run((1, KindUpdate("Node", "error", error="GET /api/v1/nodes: no answer")), limit=10.0)
    assert facts.timed_out
    assert "no answer" in facts.nodes[0].detail


def test_an_api_server_that_goes_away_meanwhile() -> None:
    facts, _lines = run(
        *start(BARE),
        (2, KindUpdate("SriovNetworkNodeState", "error", error="refused")),
        (9, KindUpdate("SriovNetworkNodeState", "replace", (STATE,))),
    )
    assert facts.nodes[0].phase == "ready"


def test_a_node_that_vanishes_is_a_failure() -> None:
    facts, _lines = run(*start(BARE), (2, KindUpdate("Node", "drop", (NODE,))))
    assert facts.nodes[0].phase == "failed"
    assert "no node kl-a" in facts.nodes[0].detail


def drained() -> dict[str, typing.Any]:
    state = changed(STATE, status__syncStatus="InProgress")
    wish = {
        "sriovnetwork.openshift.io/current-state": "Draining",
        "sriovnetwork.openshift.io/desired-state": "Drain_Required",
    }
    state["metadata"]["annotations"].update(wish)
    return state


def test_a_blocked_drain_names_pod_and_budget_and_ends() -> None:
    facts, lines = run(
        *start(drained()),
        (1, KindUpdate("PodDisruptionBudget", "replace", (BUDGET,))),
        limit=1800.0,
        grace={"drain_held": 60.0},
    )
    assert (facts.waited_seconds, facts.nodes[0].phase) == (61.0, "failed")
    assert (
        "pod shop/db-0 cannot be evicted because PodDisruptionBudget shop/db currently allows no eviction"
    ) in facts.nodes[0].detail
    assert "cannot be evicted because" in lines[-1]


def test_a_drain_that_is_let_go_goes_on() -> None:
    free = changed(BUDGET, status__disruptionsAllowed=1)
    budgets = [
        (second, KindUpdate("PodDisruptionBudget", "put", (item,))) for second, item in ((1, BUDGET), (40, free))
    ]
    facts, _lines = run(
        *start(drained()), *budgets, (90, KindUpdate("SriovNetworkNodeState", "put", (STATE,))), limit=1800.0
    )
    assert (facts.waited_seconds, facts.nodes[0].phase) == (90.0 + STEADY_SECONDS, "ready")


def test_news_is_judged_together_while_a_node_without_news_waits_and_at_once_when_none_does() -> None:
    nodes, working = ("kl-a", "kl-b", "kl-c"), changed(STATE, status__syncStatus="InProgress")
    first = start()
    first[0] = (0, KindUpdate("Node", "replace", tuple(changed(NODE, metadata__name=name) for name in nodes)))
    first[1] = (
        0,
        KindUpdate("SriovNetworkNodeState", "replace", tuple(changed(working, metadata__name=name) for name in nodes)),
    )
    done = [KindUpdate("SriovNetworkNodeState", "put", (changed(STATE, metadata__name=name),)) for name in nodes]
    script, told = Script(*first, (10.0, done[0]), (10.75, done[1]), (20.0, done[2])), []
    targets = (dataclasses.replace(TARGET, nodes=nodes),)
    facts = wait(
        script,
        targets,
        100.0,
        lambda: script.now,
        lambda line: told.append((script.now, line.split()[3:5])),
        settle=0.125,
        steady=0.0,
    )
    assert [(now, words[0]) for now, words in told if words[1] == "ready:"] == [
        (11.125, "kl-a"),
        (11.125, "kl-b"),
        (20.125, "kl-c"),
    ]
    assert facts.finished and facts.waited_seconds == 20.1


def test_a_drain_is_explained_without_asking_all_the_time() -> None:
    script = Script(*start(drained()))
    wait(script, (TARGET,), 300.0, lambda: script.now, lambda line: None, settle=0.0)
    assert [second for second, _nodes in script.looks] == [float(second) for second in range(0, 300, 30)]


def test_a_sync_that_fails_again_and_again_ends_with_the_daemon_s_words() -> None:
    working = changed(STATE, status__syncStatus="InProgress")
    facts, _lines = run(
        *start(working), (0, KindUpdate("Pod", "replace", (DAEMON,))), limit=1800.0, error="cannot allocate memory"
    )
    assert (facts.waited_seconds, facts.nodes[0].phase) == (90.0, "failed")
    assert facts.nodes[0].detail == (
        "the config daemon is working (syncStatus InProgress); the log of the config daemon contains: cannot"
        " allocate memory"
    )


def test_the_log_of_a_failed_sync_is_read_before_the_wait_ends() -> None:
    failed = changed(STATE, status__syncStatus="Failed", status__lastSyncError="cannot configure sriov interfaces")
    log = (
        "cannot configure sriov interfaces: write /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs: no space left on"
        " device"
    )
    facts, _lines = run(*start(failed), (0, KindUpdate("Pod", "replace", (DAEMON,))), limit=1800.0, error=log)
    assert (facts.waited_seconds, facts.nodes[0].phase) == (20.0, "failed")
    assert (
        f"the log of the config daemon contains: {log}. The function has no interrupt vectors" in facts.nodes[0].detail
        and "msix_vec_per_pf_max" in facts.nodes[0].remedy
    )


def test_a_config_daemon_that_is_killed_and_comes_back_is_no_failure() -> None:
    working = changed(STATE, status__syncStatus="InProgress")
    successor = changed(DAEMON, metadata__name="config-daemon-y")
    facts, lines = run(
        *start(working),
        (0, KindUpdate("Pod", "replace", (DAEMON,))),
        (5, KindUpdate("Pod", "drop", (DAEMON,))),
        (9, KindUpdate("Pod", "put", (successor,))),
        # news of the old one comes late
        (9, KindUpdate("Pod", "drop", (DAEMON,))),
        (20, KindUpdate("SriovNetworkNodeState", "put", (STATE,))),
    )
    assert (facts.nodes[0].phase, facts.waited_seconds) == ("ready", 20.0 + STEADY_SECONDS)
    assert [line.split(";")[-1].strip() for line in lines if "pod of the config daemon is not ready" in line] == [
        "the pod of the config daemon is not ready: it does not exist on the node"
    ]


def test_a_config_daemon_that_stays_away_ends_early() -> None:
    facts, _lines = run(
        *start(changed(STATE, status__syncStatus="InProgress")), (5, KindUpdate("Pod", "replace")), limit=1800.0
    )
    assert (facts.waited_seconds, facts.nodes[0].phase) == (125.0, "failed")
    assert "DaemonSet sriov-network-config-daemon" in facts.nodes[0].remedy


def booted(identity: str, ready: str = "True") -> dict[str, typing.Any]:
    """The node after a boot."""
    node = changed(NODE, status__nodeInfo={"bootID": identity})
    node["status"]["conditions"] = [
        {"type": "Ready", "status": ready, "message": "Kubelet stopped posting node status."}
    ]
    return node


def test_a_reboot_loop_ends_at_the_second_boot() -> None:
    working = changed(STATE, status__syncStatus="InProgress")
    boots = [(60 * number, KindUpdate("Node", "put", (booted(str(number)),))) for number in (1, 2, 3)]
    facts, _lines = run(*start(working, booted("0")), *boots, limit=1800.0)
    assert (facts.waited_seconds, facts.nodes[0].phase) == (120.0, "failed")
    assert "the node booted 2 times" in facts.nodes[0].detail


def test_a_boot_for_each_wish_is_no_loop() -> None:
    working = changed(STATE, status__syncStatus="InProgress")
    again = changed(working, metadata__generation=3)
    facts, _lines = run(
        *start(working, booted("0")),
        (10, KindUpdate("Node", "put", (booted("1"),))),
        (20, KindUpdate("SriovNetworkNodeState", "put", (again,))),
        (30, KindUpdate("Node", "put", (booted("2"),))),
        (40, KindUpdate("SriovNetworkNodeState", "put", (changed(again, status__syncStatus="Succeeded"),))),
    )
    assert (facts.nodes[0].phase, facts.waited_seconds) == ("ready", 40.0 + STEADY_SECONDS)


def test_a_node_that_is_lost_ends_with_what_the_control_plane_says() -> None:
    facts, _lines = run(
        *start(changed(STATE, status__syncStatus="InProgress")),
        (7, KindUpdate("Node", "put", (booted("0", "Unknown"),))),
        limit=1800.0,
    )
    assert (facts.waited_seconds, facts.nodes[0].phase) == (127.0, "failed")
    assert facts.nodes[0].detail.endswith("the node is NotReady: Kubelet stopped posting node status.")


def test_a_node_that_comes_and_goes_ends() -> None:
    flaps = [
        (10 * number, KindUpdate("Node", "put", (booted("0", "False" if number % 2 else "True"),)))
        for number in range(1, 8)
    ]
    facts, _lines = run(*start(changed(STATE, status__syncStatus="InProgress"), booted("0")), *flaps, limit=1800.0)
    assert (facts.waited_seconds, facts.nodes[0].phase) == (50.0, "failed")
    assert "from Ready to NotReady 3 times" in facts.nodes[0].detail


def test_a_server_that_is_away_at_the_end_is_named_beside_the_last_state() -> None:
    facts, lines = run(*start(BARE), (2, KindUpdate("Node", "error", error="no answer")), limit=30.0)
    assert facts.timed_out
    assert facts.nodes[0].detail.endswith("this is the last known state: Node: no answer")
    assert "the API server does not respond" in lines[-1]


def test_a_server_that_answers_again_is_told() -> None:
    _facts, lines = run(
        *start(BARE), (2, KindUpdate("Node", "error", error="no answer")), (5, KindUpdate("Node", "put")), limit=30.0
    )
    assert [line for line in lines if "API server" in line] == [
        ("2 s  the API server does not respond; its last response is kept, and the requests are repeated"),
        "5 s  the API server responds again",
    ]


def test_the_way_back() -> None:
    gone = changed(NODE, status__allocatable={"openshift.io/igbvf": "0"})
    facts, _lines = run(
        *start(),
        (1, KindUpdate("SriovNetworkNodePolicy", "drop", (POLICY,))),
        (5, KindUpdate("SriovNetworkNodeState", "put", (BARE,))),
        (9, KindUpdate("Node", "put", (gone,))),
        release=True,
    )
    assert (facts.nodes[0].phase, facts.waited_seconds) == ("ready", 9.0)


@pytest.mark.parametrize("kind", REQUIRED)
def test_an_error_before_the_first_answer_is_kept(kind: str) -> None:
    world = take(ClusterState(unread={kind: "no response yet"}), KindUpdate(kind, "error", error="Forbidden"))
    assert world.unread == {kind: "Forbidden"}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(REQUIRED)))
def test_a_kind_that_only_explains_holds_nobody_up(kind: str) -> None:
    world = take(ClusterState(unread={kind: "no response yet"}), KindUpdate(kind, "error", error="Forbidden"))
    assert (world.unread, world.blind) == ({}, {kind: "Forbidden"})


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_ready_before_each_kind_has_answered(kind: str) -> None:
    steps = [(second, change) for second, change in start() if change.kind != kind]
    facts, _lines = run(*steps, limit=10.0)
    assert (facts.nodes[0].phase, facts.nodes[0].detail) == ("waiting", f"{kind} not read yet: no response yet")


class Api:
    """Plays answers: of lists, of watches, and errors."""

    def __init__(
        self,
        events: builtins.list[
            typing.Union[builtins.list[dict[str, typing.Any]], ApiError, tuple[dict[str, typing.Any], ...]]
        ],
    ) -> None:
        self.events = events
        self.lists: list[tuple[str, str]] = []
        self.watches: list[str] = []

    def _next(self) -> typing.Union[builtins.list[dict[str, typing.Any]], tuple[dict[str, typing.Any], ...]]:
        step = self.events.pop(0) if self.events else ApiError(0, "Unreachable", "refused", "GET")
        if isinstance(step, Exception):
            raise step
        return step

    def list(
        self, kind: str, namespace: str = "", selector: str = "", only: typing.Optional[Choice] = None, most: int = 0
    ) -> Listing:
        self.lists.append((kind, namespace))
        return Listing(tuple(self._next()), "7")

    def watch(self, kind: str, version: str, namespace: str = "", selector: str = "") -> typing.Iterator[typing.Any]:
        self.watches.append(version)
        return iter(self._next())


def follow(
    events: list[typing.Union[list[dict[str, typing.Any]], ApiError, tuple[dict[str, typing.Any], ...]]],
    count: int,
    kind: str = "SriovNetworkNodePolicy",
    pauses: int = 1,
) -> tuple[Api, list[KindUpdate], list[float]]:
    api = Api(events)
    waited: list[float] = []
    feed = WatchFeed(typing.cast(Cluster, api), {kind: "ops"}, KINDS)

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == pauses:
            feed.stop()

    feed._stop.wait = pause  # type: ignore[assignment, method-assign]
    feed._follow(kind)
    found = [feed.get(0.0) for _number in range(count)]
    assert feed.get(0.0) is None
    return api, [change for change in found if change is not None], waited


def test_watch_events_become_changes() -> None:
    moved = changed(POLICY, metadata__resourceVersion="9")
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}}
    events = [{"type": "MODIFIED", "object": moved}, bookmark, {"type": "DELETED", "object": moved}]
    api, found, _waited = follow([(POLICY,), events, ApiError(0, "", "refused", "")], 4)
    assert [change.action for change in found] == ["replace", "put", "drop", "error"]
    assert api.lists == [("SriovNetworkNodePolicy", "ops")]


def test_a_version_that_is_too_old_lists_again_without_a_word() -> None:
    api, found, _waited = follow(
        [
            (POLICY,),
            ApiError(410, "Expired", "too old resource version", "WATCH"),
            (POLICY,),
            ApiError(0, "", "refused", ""),
        ],
        3,
    )
    assert [change.action for change in found] == ["replace", "replace", "error"]
    assert len(api.lists) == 2


def test_a_restart_is_survived() -> None:
    _api, found, _waited = follow([ApiError(0, "Unreachable", "refused", "GET")], 1)
    assert found[0].error.startswith("GET: refused")


GONE = ApiError(0, "Unreachable", "refused", "WATCH")
EVENT = {"type": "MODIFIED", "object": changed(POLICY, metadata__resourceVersion="9")}


def test_a_watch_that_breaks_goes_on_where_it_was() -> None:
    api, found, _waited = follow([(POLICY,), [EVENT], GONE, GONE, [EVENT], GONE], 7, pauses=3)
    assert [change.action for change in found] == ["replace", "put", "error", "error", "put", "put", "error"]
    # one list; the watches go on from the last event
    assert len(api.lists) == 1
    assert api.watches == ["7", "9", "9", "9", "9"]


def test_pauses_grow_while_the_server_is_away_and_are_long_for_what_it_refuses() -> None:
    assert follow([GONE] * 7, 7, pauses=7)[2] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert follow([ApiError(403, "Forbidden", "cannot list", "GET")], 1)[2] == [30.0]


def test_a_version_that_is_always_too_old_does_not_spin() -> None:
    old = ApiError(410, "Expired", "too old resource version", "WATCH")
    _api, _found, waited = follow([(POLICY,), old, (POLICY,), old, (POLICY,), old], 5, pauses=2)
    assert waited == [0.5, 1.0]


def test_watches_that_end_at_once_do_not_spin() -> None:
    assert follow([(POLICY,), []], 1)[2] == [4.0]


def test_a_kind_of_another_cluster_is_asked_once() -> None:
    api, found, waited = follow([ApiError(404, "NotFound", "no such kind", "GET")], 1, kind="MachineConfigPool")
    assert (found[0].action, found[0].items, len(api.lists), waited) == ("replace", (), 1, [])


def test_a_kind_that_must_be_there_is_asked_again() -> None:
    assert follow([ApiError(404, "NotFound", "no such kind", "GET")], 1)[1][0].action == "error"


SHARED = Target(
    "roce",
    (),
    "",
    "training/net",
    ("kl-a",),
    1,
    ("objects", "attachment", "pool", "ready"),
    ("MacvlanNetwork net",),
    {"master": "ens1"},
    "IPPool.nv-ipam.nvidia.com ops/pool",
)


def test_only_what_targets_need_is_watched() -> None:
    assert list_kinds([TARGET]) == KINDS == list_kinds([])
    assert list_kinds([SHARED]) == (
        "Node",
        "NetworkAttachmentDefinition",
        "IPPool.nv-ipam.nvidia.com",
        "MacvlanNetwork",
    )
    assert set(list_kinds([TARGET, SHARED])) == {*KINDS, "IPPool.nv-ipam.nvidia.com", "MacvlanNetwork"}


def network(state: str) -> dict[str, typing.Any]:
    return {"kind": "MacvlanNetwork", "metadata": {"name": "net"}, "status": {"state": state} if state else {}}


def test_a_network_of_another_operator_is_followed_to_its_end() -> None:
    world = ClusterState(unread=dict.fromkeys(list_kinds([SHARED]), "no response yet"))
    attachment = {
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "net", "namespace": "training"},
        "spec": {"config": '{"type": "macvlan", "master": "ens1"}'},
    }
    pool = {
        "kind": "IPPool.nv-ipam.nvidia.com",
        "metadata": {"name": "pool", "namespace": "ops"},
        "status": {"allocations": [{"nodeName": "kl-a"}]},
    }
    said = []
    for change in (
        KindUpdate("Node", "replace", (NODE,)),
        KindUpdate("MacvlanNetwork", "replace", (network(""),)),
        KindUpdate("IPPool.nv-ipam.nvidia.com", "replace", (pool,)),
        KindUpdate("NetworkAttachmentDefinition", "replace"),
        KindUpdate("MacvlanNetwork", "put", (network("ready"),)),
        KindUpdate("NetworkAttachmentDefinition", "put", (attachment,)),
        KindUpdate("MacvlanNetwork", "drop", (network("ready"),)),
    ):
        world = take(world, change)
        (found,) = judge([SHARED], world)
        said.append(found.suspect or found.node.phase)
    assert said == ["waiting", "waiting", "waiting", "not_reported", "no_attachment", "ready", "not_reported"]


POLICED = Target("roce", (), "", "", ("kl-a",), 1, ("objects",), ("NicClusterPolicy nic-cluster-policy",))
POLICY_STATE = {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}, "status": {"state": "notReady"}}


@pytest.mark.parametrize(
    ("labels", "stands", "said", "seconds", "phase"),
    [
        ({}, (), f"the node has no label {NIC_LABEL}=true", 180.0, "failed"),
        (
            {NIC_LABEL: "true"},
            (("ds-1", PodState("waiting", "ErrImagePull: no such host", "image")),),
            "pod ds-1 of the operator on the node: ErrImagePull: no such host",
            180.0,
            "failed",
        ),
        ({NIC_LABEL: "true"}, (), "no reason reported", 3600.0, "waiting"),
    ],
)
def test_why_a_nic_policy_is_not_ready_is_told_and_ends_the_wait_unless_a_driver_is_built(
    labels: dict[str, str], stands: Parts, said: str, seconds: float, phase: str
) -> None:
    node = changed(NODE, metadata__labels={**NODE["metadata"]["labels"], **labels})
    script = Script(
        (0, KindUpdate("Node", "replace", (node,))), (0, KindUpdate("NetworkAttachmentDefinition", "replace"))
    )
    lines: list[str] = []
    script.steps.append((0, KindUpdate("NicClusterPolicy", "replace", (POLICY_STATE,))))
    script.stands = stands
    facts = wait(script, (POLICED,), 3600.0, lambda: script.now, lines.append, settle=0.0)
    assert (facts.waited_seconds, facts.nodes[0].phase) == (seconds, phase)
    assert said in facts.nodes[0].detail and facts.nodes[0].remedy
    assert said in lines[-1]


class Operator(Paged):
    """An API server with a DaemonSet of a NicClusterPolicy and one of somebody else in its namespace, each with a pod
    on two nodes."""

    def list(
        self, kind: str, namespace: str = "", selector: str = "", fields: str = "", only: typing.Optional[Choice] = None
    ) -> Listing:
        if kind == "DaemonSet":
            owner = {"kind": "NicClusterPolicy", "name": "nic-cluster-policy", "controller": True}
            mine = {"metadata": {"name": "rdma", "namespace": "nvidia", "ownerReferences": [owner]}}
            return Listing(
                (
                    mine,
                    {"metadata": {"name": "other", "namespace": "nvidia"}},
                    {"metadata": {"name": "rdma", "namespace": "shop"}},
                ),
                "1",
            )
        assert (kind, namespace) == ("Pod", "nvidia")
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}
        status = {
            "initContainerStatuses": [{"state": waiting}],
            "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
        }
        pods = [
            {
                "metadata": {
                    "name": f"{name}-{node}",
                    "namespace": namespace,
                    "ownerReferences": [{"kind": "DaemonSet", "name": name, "controller": True}],
                },
                "spec": {"nodeName": node},
                "status": status,
            }
            for name in ("rdma", "other")
            for node in ("kl-a", "kl-b")
        ]
        return Listing(tuple(pods), "1")


def test_the_pods_of_a_nic_policy_are_those_of_its_daemon_sets() -> None:
    feed = WatchFeed(typing.cast(Cluster, Operator()), {}, ())
    assert feed.parts(["kl-a", "kl-c"]) == {
        "kl-a": (("rdma-kl-a", PodState("waiting", "ImagePullBackOff: Back-off", "image")),),
        "kl-c": (),
    }


def test_a_kind_that_may_not_be_read_is_said_and_what_was_known_stays() -> None:
    blind = take(
        ClusterState(unread={"MacvlanNetwork": "no response yet"}),
        KindUpdate("MacvlanNetwork", "error", error="Forbidden"),
    )
    assert blind.blind == {"MacvlanNetwork": "Forbidden"}
    stale = take(
        take(ClusterState(), KindUpdate("MacvlanNetwork", "replace", (network("ready"),))),
        KindUpdate("MacvlanNetwork", "error", error="away"),
    )
    assert stale.stale == {"MacvlanNetwork": "away"} and stale.reports["MacvlanNetwork"]["net"].state == "ready"


def test_nodes_that_were_rolled_a_moment_ago_prove_nothing_at_the_first_look() -> None:
    """Seen: a node that was Ready again showed what its config daemon had reported, and its kubelet offered, before it
    booted."""
    at_once, _lines = run(*start(), steady=STEADY_SECONDS)
    assert (at_once.waited_seconds, at_once.nodes[0].phase) == (0.0, "ready")
    daemon_starts = (30, KindUpdate("SriovNetworkNodeState", "put", (changed(STATE, status__syncStatus="InProgress"),)))
    daemon_ends = (90, KindUpdate("SriovNetworkNodeState", "put", (STATE,)))
    waited, _lines = run(*start(), daemon_starts, daemon_ends, rolled=True, limit=600.0)
    assert (waited.waited_seconds, waited.nodes[0].phase) == (90.0 + ROLLED_SECONDS, "ready")
    nothing_more, _lines = run(*start(), rolled=True, limit=600.0)
    assert (nothing_more.waited_seconds, nothing_more.nodes[0].phase) == (ROLLED_SECONDS, "ready")
