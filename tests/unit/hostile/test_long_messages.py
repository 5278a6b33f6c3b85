# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of a megabyte, which a kubelet or a daemon on a node writes into objects: a wait repeats them, so that
nothing of such a length is kept or shown."""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import Target
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import MOST_LINE, open_progress
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core, observers
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_state import state_of_pod
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import MOST_EXCERPT
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import (
    drivers,
    machine_config,
    nic_configuration_operator,
    node_tuning,
    nvidia_network_operator,
    sriov_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import cluster_state, wait_for_network
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate

LONG = f"first {'x' * 1_000_000} last"
#: characters of a text that is kept, with the words around it
MOST = MOST_EXCERPT + 200


def longest(value: typing.Any) -> int:
    """Return the length of the longest text in a parsed object."""
    if isinstance(value, str):
        return len(value)
    if dataclasses.is_dataclass(value):
        return max([longest(getattr(value, field.name)) for field in dataclasses.fields(value)], default=0)
    if isinstance(value, typing.Mapping):
        return max([longest(item) for pair in value.items() for item in pair], default=0)
    return max(map(longest, value), default=0) if isinstance(value, (list, tuple)) else 0


def made(kind: str, status: Resource, **more: typing.Any) -> Resource:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"name": "a", "namespace": "b"}, "status": status, **more}


def condition(kind: str, status: str = "False") -> Resource:
    return {"type": kind, "status": status, "message": LONG, "reason": LONG}


def pod(**status: typing.Any) -> Resource:
    return made("Pod", status)


WAITING = {"waiting": {"reason": "CreateContainerError", "message": LONG}}
ENDED = {"terminated": {"reason": LONG, "message": LONG}}


@pytest.mark.parametrize(
    ("read", "resource"),
    [
        (core.parse_node, made("Node", {"conditions": [condition("Ready")]})),
        (state_of_pod, pod(phase="Failed", reason=LONG, message=LONG, containerStatuses=[{"state": ENDED}] * 50)),
        (state_of_pod, pod(phase=LONG, conditions=[condition("PodScheduled")])),
        (state_of_pod, pod(containerStatuses=[{"state": WAITING}])),
        (state_of_pod, pod(initContainerStatuses=[{"state": WAITING}])),
        (observers.observer_pod, pod(containerStatuses=[{"name": "observer", "imageID": LONG, "state": WAITING}])),
        (observers.explain_remaining_namespace, made("Namespace", {"conditions": [condition("x", "True")] * 50})),
        (machine_config.machine_pool, made("MachineConfigPool", {"conditions": [condition("NodeDegraded", "True")]})),
        (
            node_tuning.node_profile,
            made("Profile", {"conditions": [condition("Degraded", "True")], "tunedProfile": LONG}),
        ),
        (node_tuning.explain_invalid, made("Tuned", {"conditions": [condition("Valid")]})),
        (
            nic_configuration_operator.nic_state,
            made(
                "NicDevice",
                {"conditions": [condition("ConfigUpdateInProgress"), condition("FirmwareUpdateInProgress")]},
            ),
        ),
        (nvidia_network_operator.parse_reported, made("NicClusterPolicy", {"state": "notReady", "reason": LONG})),
        (drivers.driver_policy, made("NicClusterPolicy", {"state": "notReady", "reason": LONG})),
        (sriov_operator.node_state, made("SriovNetworkNodeState", {"lastSyncError": LONG})),
    ],
)
def test_a_message_of_an_object_is_kept_by_its_ends(
    read: typing.Callable[[Resource], typing.Any], resource: Resource
) -> None:
    assert 0 < longest(read(resource)) <= MOST


def test_a_cut_message_has_the_error_at_its_end() -> None:
    found = core.parse_node(made("Node", {"conditions": [condition("Ready")]})).not_ready
    assert found.startswith("first ") and found.endswith(" last")


def test_a_line_of_progress_is_cut(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lines"
    with open_progress(str(path)) as say:
        say(LONG)
        say("the next")
    first, second = path.read_text().splitlines()
    assert len(first) < MOST_LINE + 100 and second == "the next"


class Kubelet:
    """A feed of a cluster with a Node whose Ready condition has another message of a megabyte each time."""

    def __init__(self, kinds: typing.Iterable[str]) -> None:
        self.now, self.count = 0.0, 0
        spec = {"config": '{"type":"macvlan"}'}
        there = {
            "Node": tuple(made("Node", {"conditions": [condition("Ready")]}) for _node in range(1)),
            "NetworkAttachmentDefinition": (
                {"kind": "NetworkAttachmentDefinition", "metadata": {"name": "net", "namespace": "jobs"}, "spec": spec},
            ),
        }
        self.changes = [KindUpdate(kind, "replace", there.get(kind, ())) for kind in kinds]

    def get(self, timeout: float) -> KindUpdate:
        if self.changes:
            return self.changes.pop(0)
        self.now, self.count = self.now + 0.1, self.count + 1
        ready = {**condition("Ready"), "message": f"{self.count}{LONG}"}
        return KindUpdate("Node", "put", (made("Node", {"conditions": [ready]}),))

    def gather(self, seconds: float) -> list[KindUpdate]:
        self.now += seconds
        found, self.changes = self.changes, []
        return found

    def pods(self, *_given: typing.Any) -> dict[str, typing.Any]:
        return {}

    parts = pods

    def daemon_error(self, _pod: typing.Any) -> str:
        return ""


def test_a_kubelet_that_changes_its_message_fills_no_log() -> None:
    target = Target("f", (), "", "jobs/net", ("a",), 1, ("ready", "attachment"), plugin={"type": "macvlan"})
    feed, said = Kubelet(cluster_state.list_kinds([target])), typing.cast(list[str], [])
    facts = wait_for_network.wait(typing.cast(typing.Any, feed), [target], 20.0, lambda: feed.now, said.append)
    assert len(said) > 10 and max(map(len, said)) <= MOST and longest(facts) <= MOST
