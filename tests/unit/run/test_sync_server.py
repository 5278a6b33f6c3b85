# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait against an API server over HTTP, with the real client: news, restarts, and a history that is gone. Each step
answers a line of its progress."""

from __future__ import annotations

import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import wait_for_network
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import (
    IN_NAMESPACE,
    KINDS,
    SELECTORS,
    only_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.wait_for_network import wait
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import WatchFeed

from ..fake_api import FakeApi
from .test_sync import BARE, DAEMON, NODE, POLICY, STATE, TARGET, changed, resources

#: far more than any step takes; a wait that gets there has failed
LIMIT = 60.0


@pytest.fixture
def api() -> typing.Iterator[FakeApi]:
    server = FakeApi()
    server.serve("Node", [NODE])
    server.serve("SriovNetworkNodeState", [BARE], "ops")
    server.serve("SriovNetworkNodePolicy", [POLICY], "ops")
    server.serve("NetworkAttachmentDefinition", resources("networkattachmentdefinitions.yaml"))
    server.serve("SriovNetworkPoolConfig", [], "ops")
    server.serve("PodDisruptionBudget", [])
    server.serve("Pod", [DAEMON], "ops")
    server.start()
    yield server
    server.stop()


def run(api: FakeApi, *steps: tuple[str, typing.Callable[..., typing.Any]]) -> tuple[SyncFacts, list[str]]:
    """Wait; when a line has the text of the next step, do what the step says."""
    rest, lines = list(steps), []

    def say(line: str) -> None:
        lines.append(line)
        if rest and rest[0][0] in line:
            rest.pop(0)[1]()

    feed = WatchFeed(
        api.client(api.url), dict.fromkeys(IN_NAMESPACE, "ops"), KINDS, selectors=SELECTORS, only=only_of((TARGET,))
    )
    feed.start()
    try:
        facts = wait(feed, (TARGET,), LIMIT, time.monotonic, say, steady=0.0)
    finally:
        feed.stop()
    assert not rest, lines
    return facts, lines


def lists(api: FakeApi) -> dict[str, int]:
    return {name.rsplit("/", 1)[-1]: count for name, count in api.requests.items() if name.startswith("list ")}


def arrive(api: FakeApi) -> typing.Callable[..., typing.Any]:
    return lambda: api.put("SriovNetworkNodeState", STATE, "ops")


def test_one_list_and_one_watch_a_kind(api: FakeApi) -> None:
    facts, _lines = run(api, ("has not written policy pol1", arrive(api)))
    assert facts.nodes[0].phase == "ready"
    assert set(api.requests.values()) == {1}
    # OpenShift's kind is not followed where it is not known
    assert not any("machineconfigpools" in name for name in api.requests if name.startswith("watch"))


def test_a_restart_of_the_server_goes_on_where_it_was(api: FakeApi) -> None:
    def come_back() -> None:
        arrive(api)()
        api.start()

    facts, lines = run(api, ("has not written policy pol1", api.stop), ("the API server does not respond", come_back))
    assert (facts.nodes[0].phase, facts.timed_out) == ("ready", False)
    # what happened meanwhile came by the watch: it was not listed again
    assert lists(api)["sriovnetworknodestates"] == 1, lines


def test_a_server_that_has_forgotten_is_listed_again(api: FakeApi) -> None:
    def come_back() -> None:
        arrive(api)()
        api.forget()
        api.start()

    facts, _lines = run(api, ("has not written policy pol1", api.stop), ("the API server does not respond", come_back))
    assert facts.nodes[0].phase == "ready"
    assert lists(api)["sriovnetworknodestates"] == 2


def test_a_server_that_comes_late_is_waited_for(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_for_network, "QUIET_SECONDS", 0.0)
    api.stop()

    def come() -> None:
        arrive(api)()
        api.start()

    facts, _lines = run(api, ("not read yet", come))
    assert facts.nodes[0].phase == "ready"


def test_on_the_way_back_kinds_that_are_gone_leave_nothing_to_wait_for() -> None:
    """A teardown that took the operator's definitions is run again."""
    server = FakeApi()
    server.serve("Node", [changed(NODE, status__allocatable={})])
    server.serve("Pod", [], "ops")
    server.start()
    feed = WatchFeed(
        server.client(server.url), dict.fromkeys(IN_NAMESPACE, "ops"), KINDS, selectors=SELECTORS, needed=()
    )
    feed.start()
    try:
        facts = wait(feed, (TARGET,), LIMIT, time.monotonic, lambda line: None, release=True)
    finally:
        feed.stop()
        server.stop()
    assert (facts.finished, facts.nodes[0].phase, facts.nodes[0].detail) == (
        True,
        "ready",
        "no virtual function and no openshift.io/igbvf",
    )
