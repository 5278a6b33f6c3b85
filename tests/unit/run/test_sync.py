# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait's loop, with a clock and news that the test gives."""

from __future__ import annotations

import copy
import pathlib

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.readiness import Target, World
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError, Listing
from ansible_collections.linerate.rdma.plugins.module_utils._run.sync import KINDS, Change, WatchFeed, take, wait

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"
TARGET = Target("storage", ("pol1",), "openshift.io/igbvf", "default/op-net", ("kl-a",), 1)


def resources(name):
    data = yaml.safe_load((FIXTURES / name).read_text())
    return data.get("items", [data])


NODE = resources("node-worker-sriov.yaml")[0]
STATE = next(item for item in resources("sriovnetworknodestates-igb-succeeded.yaml") if item["metadata"]["name"] == "kl-a")
POLICY = next(item for item in resources("sriov-crs.yaml") if item["kind"] == "SriovNetworkNodePolicy")


def changed(resource, **paths):
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

    def __init__(self, *steps):
        self.now = 0.0
        self.steps = list(steps)

    def get(self, timeout):
        if self.steps and self.steps[0][0] <= self.now + timeout:
            second, change = self.steps.pop(0)
            self.now = max(self.now, second)
            return change
        self.now += timeout
        return None

    def budgets(self):
        return ("shop/db",)


def start(state=STATE, node=NODE):
    return [
        (0, Change("Node", "replace", (node,))),
        (0, Change("SriovNetworkNodeState", "replace", (state,))),
        (0, Change("SriovNetworkNodePolicy", "replace", (POLICY,))),
        (0, Change("NetworkAttachmentDefinition", "replace", tuple(resources("networkattachmentdefinitions.yaml")))),
    ]


def run(*steps, limit=100.0, **options):
    script, lines = Script(*steps), []
    facts = wait(script, (TARGET,), limit, lambda: script.now, lines.append, **options)
    return facts, lines


BARE = changed(changed(STATE, spec__interfaces=[]), status__interfaces=[{**STATE["status"]["interfaces"][0], "numVfs": 0, "Vfs": []}])


def test_all_in_place_ends_at_once():
    facts, lines = run(*start())
    assert (facts.finished, facts.timed_out, facts.waited_seconds) == (True, False, 0.0)
    assert facts.nodes[0].phase == "ready"
    assert lines[-1] == "0 s  storage kl-a ready: 4 openshift.io/igbvf on 1 physical functions"


def test_the_course_of_a_real_rollout():
    no_vfs = changed(NODE, status__allocatable={"openshift.io/igbvf": "0"})
    seen = changed(STATE, status__interfaces=BARE["status"]["interfaces"])
    facts, lines = run(
        *start(BARE, no_vfs),
        (3, Change("SriovNetworkNodeState", "put", (seen,))),
        (6, Change("SriovNetworkNodeState", "put", (changed(seen, status__syncStatus="InProgress"),))),
        (14, Change("SriovNetworkNodeState", "put", (STATE,))),
        (22, Change("Node", "put", (NODE,))),
    )
    assert (facts.finished, facts.waited_seconds, facts.nodes[0].phase) == (True, 22.0, "ready")
    assert [line.split()[0] for line in lines] == ["0", "3", "6", "14", "22"]
    assert "older than the policy" in lines[1]
    assert "offers 0 openshift.io/igbvf of 4" in lines[3]


def test_a_failed_sync_ends_early_with_its_text():
    failed = changed(STATE, status__syncStatus="Failed")
    failed["status"]["lastSyncError"] = "device or resource busy"
    facts, _lines = run(*start(failed), limit=1800.0)
    assert (facts.finished, facts.timed_out, facts.waited_seconds) == (True, False, 20.0)
    assert (facts.nodes[0].phase, facts.nodes[0].detail) == ("failed", "the config daemon failed: device or resource busy")


def test_a_failed_sync_that_heals_is_no_failure():
    facts, _lines = run(*start(changed(STATE, status__syncStatus="Failed")), (15, Change("SriovNetworkNodeState", "put", (STATE,))))
    assert facts.nodes[0].phase == "ready"


def test_time_out_returns_the_last_state():
    facts, _lines = run(*start(BARE), limit=30.0)
    assert (facts.finished, facts.timed_out, facts.waited_seconds) == (False, True, 30.0)
    assert "has not put policy pol1" in facts.nodes[0].detail


def test_an_api_server_that_never_answers():
    facts, _lines = run((1, Change("Node", "error", error="GET /api/v1/nodes: no answer")), limit=10.0)
    assert facts.timed_out
    assert "no answer" in facts.nodes[0].detail


def test_an_api_server_that_goes_away_meanwhile():
    facts, _lines = run(*start(BARE), (2, Change("SriovNetworkNodeState", "error", error="refused")), (9, Change("SriovNetworkNodeState", "replace", (STATE,))))
    assert facts.nodes[0].phase == "ready"


def test_a_node_that_vanishes_is_a_failure():
    facts, _lines = run(*start(BARE), (2, Change("Node", "drop", (NODE,))))
    assert facts.nodes[0].phase == "failed"
    assert "no node kl-a" in facts.nodes[0].detail


def test_a_blocked_drain_names_the_budget_and_ends():
    drained = changed(STATE, status__syncStatus="InProgress")
    drained["metadata"]["annotations"].update(
        {"sriovnetwork.openshift.io/current-state": "Draining", "sriovnetwork.openshift.io/desired-state": "Drain_Required"}
    )
    facts, _lines = run(*start(drained), limit=1800.0, grace={"drain_blocked": 60.0})
    assert (facts.waited_seconds, facts.nodes[0].phase) == (60.0, "failed")
    assert "no eviction is allowed by: shop/db" in facts.nodes[0].detail


def test_the_way_back():
    gone = changed(NODE, status__allocatable={"openshift.io/igbvf": "0"})
    facts, _lines = run(
        *start(),
        (1, Change("SriovNetworkNodePolicy", "drop", (POLICY,))),
        (5, Change("SriovNetworkNodeState", "put", (BARE,))),
        (9, Change("Node", "put", (gone,))),
        release=True,
    )
    assert (facts.nodes[0].phase, facts.waited_seconds) == ("ready", 9.0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_before_the_first_answer_is_kept(kind):
    world = take(World(unread={kind: "no answer yet"}), Change(kind, "error", error="Forbidden"))
    assert world.unread == {kind: "Forbidden"}


class Api:
    """Lists once, then refuses, then lists again: a restart, and a version that is too old."""

    def __init__(self, events):
        self.events = events
        self.lists = []

    def list(self, kind, namespace="", selector=""):
        self.lists.append((kind, namespace))
        step = self.events.pop(0) if self.events else ApiError(0, "Unreachable", "refused", "GET")
        if isinstance(step, Exception):
            raise step
        return Listing(step, "7")

    def watch(self, kind, version, namespace="", selector=""):
        step = self.events.pop(0)
        if isinstance(step, Exception):
            raise step
        yield from step


def follow(events, count):
    api = Api(events)
    feed = WatchFeed(api, {"SriovNetworkNodePolicy": "ops"})
    feed._stop.wait = lambda seconds: feed._stop.set()
    feed._follow("SriovNetworkNodePolicy")
    found = [feed.get(0.0) for _number in range(count)]
    assert feed.get(0.0) is None
    return api, found


def test_watch_events_become_changes():
    moved = changed(POLICY, metadata__resourceVersion="9")
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}}
    api, found = follow([(POLICY,), [{"type": "MODIFIED", "object": moved}, bookmark, {"type": "DELETED", "object": moved}], ApiError(0, "", "refused", "")], 4)
    assert [change.action for change in found] == ["replace", "put", "drop", "error"]
    assert api.lists == [("SriovNetworkNodePolicy", "ops")]


def test_a_version_that_is_too_old_lists_again_without_a_word():
    api, found = follow([(POLICY,), ApiError(410, "Expired", "too old resource version", "WATCH"), (POLICY,), ApiError(0, "", "refused", "")], 3)
    assert [change.action for change in found] == ["replace", "replace", "error"]
    assert len(api.lists) == 2


def test_a_restart_is_survived():
    _api, found = follow([ApiError(0, "Unreachable", "refused", "GET")], 1)
    assert found[0].error.startswith("GET: refused")
