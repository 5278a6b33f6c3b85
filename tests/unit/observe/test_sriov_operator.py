# SPDX-License-Identifier: GPL-3.0-or-later

"""What is seen of the operator: by what it runs, not by its name; and the wait until it serves."""

from __future__ import annotations

import builtins
import typing
import weakref

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    OperatorFacts,
    SupportedNic,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import (
    find_established_name,
    is_operator,
    namespace_of_operator,
    observe,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_state import state_of_pod
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.wait_for_operator import wait_until_serving
from ansible_collections.linerate.rdma.tests.unit.fake_api import Paged

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
CONTAINER = {
    "image": "op:v1.6.0",
    "command": ["sriov-network-operator"],
    "env": [{"name": "RESOURCE_PREFIX", "value": "openshift.io"}],
}


def deployment(container: dict[str, typing.Any], available: int = 1) -> dict[str, typing.Any]:
    return {
        "kind": "Deployment",
        "metadata": {"name": "any-name", "namespace": "ops", "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        "status": {"observedGeneration": 1, "availableReplicas": available, "updatedReplicas": 1},
    }


DAEMON = {
    "kind": "DaemonSet",
    "metadata": {"name": "sriov-network-config-daemon", "namespace": "ops", "uid": "u1"},
    "spec": {"template": {"spec": {"containers": [{"image": "d:1"}]}}},
    "status": {"desiredNumberScheduled": 1, "numberReady": 1, "updatedNumberScheduled": 1},
}
POD = {
    "kind": "Pod",
    "metadata": {"name": "sriov-network-config-daemon-x", "namespace": "ops", "ownerReferences": [{"uid": "u1"}]},
    "spec": {"nodeName": "worker-1"},
    "status": READY,
}
NODE = {
    "kind": "Node",
    "metadata": {"name": "worker-1", "labels": {"feature.node.kubernetes.io/network-sriov.capable": "true"}},
    "status": READY,
}
CONFIG = {"kind": "SriovOperatorConfig", "metadata": {"name": "default", "namespace": "ops"}}
STATE = {
    "kind": "SriovNetworkNodeState",
    "metadata": {"name": "worker-1", "namespace": "ops"},
    "spec": {},
    "status": {"syncStatus": "Succeeded"},
}


POLICY = {
    "kind": "SriovNetworkNodePolicy",
    "metadata": {"name": "p", "namespace": "ops"},
    "spec": {"resourceName": "r", "numVfs": 4},
}
NICS = {
    "kind": "ConfigMap",
    "metadata": {"name": "supported-nic-ids", "namespace": "ops"},
    "data": {"Intel_ixgbe_82576": "8086 10c9 10ca"},
}


class Api(Paged):
    def __init__(
        self, **kinds: typing.Union[typing.Callable[..., typing.Any], builtins.list[dict[str, typing.Any]], ApiError]
    ) -> None:
        self.kinds: dict[str, typing.Any] = {
            "Deployment": [deployment(CONTAINER)],
            "DaemonSet": [DAEMON],
            "Pod": [POD],
            "Node": [NODE],
            **kinds,
        }
        self.kinds = {
            "SriovOperatorConfig": [CONFIG],
            "SriovNetworkNodeState": [STATE],
            "SriovNetworkNodePolicy": [POLICY],
            **self.kinds,
        }
        self.kinds = {"ConfigMap": NICS, **self.kinds}
        self.groups: tuple[str, ...] = ()

    def serves(self, group: str) -> bool:
        return group in self.groups

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        answer = self.kinds[kind]
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, typing.Any] = answer
        return found

    def log(self, namespace: str, pod: str, seconds: int) -> str:
        answer = self.kinds.get("log", "")
        if isinstance(answer, Exception):
            raise answer
        assert (namespace, pod) == ("ops", "op-1") and seconds >= 600
        return str(answer)

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        answer = self.kinds.get(kind, [])
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return Listing(tuple(answer), "1")


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (CONTAINER, True),
        ({"image": "x", "env": [{"name": "SRIOV_NETWORK_CONFIG_DAEMON_IMAGE", "value": "y"}]}, True),
        ({"image": "sriov-network-operator-webhook:1", "command": ["webhook"]}, False),
        ({"image": "x", "env": None, "command": None}, False),
    ],
)
def test_operator_by_what_it_runs(container: dict[str, typing.Any], expected: bool) -> None:
    assert is_operator(deployment(container)) is expected


def test_only_established_definitions_of_our_groups() -> None:
    good = {
        "metadata": {"name": "sriovnetworks.sriovnetwork.openshift.io"},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }
    assert find_established_name(good) == "sriovnetworks.sriovnetwork.openshift.io"
    assert find_established_name({**good, "status": {}}) == ""
    assert find_established_name({**good, "metadata": {"name": "pods.example.org"}}) == ""


def test_facts() -> None:
    facts = observe(typing.cast(Cluster, Api()), "ops")
    assert (facts.installations[0].version, facts.installations[0].resource_prefix, facts.configs) == (
        "v1.6.0",
        "openshift.io",
        ("ops",),
    )
    assert facts.daemon is not None
    assert (facts.daemon.nodes, facts.troubles, facts.errors) == (("worker-1",), (), ())
    assert ([policy.name for policy in facts.policies], facts.supported_nics) == (
        ["p"],
        (SupportedNic("8086", "10c9", "10ca"),),
    )


def in_namespace(item: dict[str, typing.Any], namespace: str) -> dict[str, typing.Any]:
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


@pytest.mark.parametrize(
    ("configs", "deployments", "openshift", "expected"),
    [
        # a tenant may create one, but gives no Deployment rights in the whole cluster
        ([in_namespace(CONFIG, "there")], [deployment(CONTAINER)], True, "ops"),
        ([in_namespace(CONFIG, "there")], [], True, "there"),
        (
            [in_namespace(CONFIG, "there")],
            [deployment(CONTAINER), in_namespace(deployment(CONTAINER), "elsewhere")],
            False,
            "sriov-network-operator",
        ),
        # of another name it is none that the operator obeys
        ([{**CONFIG, "metadata": {"name": "mine", "namespace": "there"}}], [deployment(CONTAINER)], True, "ops"),
        ([], [deployment(CONTAINER), in_namespace(deployment({"image": "x"}), "elsewhere")], False, "ops"),
        # two: where a new one would be, and stage operators names both
        (
            [],
            [deployment(CONTAINER), in_namespace(deployment(CONTAINER), "elsewhere")],
            False,
            "sriov-network-operator",
        ),
        ([in_namespace(CONFIG, "left-over"), CONFIG], [deployment(CONTAINER)], False, "ops"),
        ([], [], False, "sriov-network-operator"),
        ([], [], True, "openshift-sriov-network-operator"),
        (ApiError(404, "NotFound", "no", "GET"), [deployment(CONTAINER)], False, "ops"),
        (
            ApiError(403, "Forbidden", "no", "GET"),
            ApiError(403, "Forbidden", "no", "GET"),
            True,
            "openshift-sriov-network-operator",
        ),
    ],
)
def test_where_the_operator_is(configs: typing.Any, deployments: typing.Any, openshift: bool, expected: str) -> None:
    api = Api(SriovOperatorConfig=configs, Deployment=deployments)
    api.groups = ("security.openshift.io",) if openshift else ()
    cluster = typing.cast(Cluster, api)
    assert (namespace_of_operator(cluster), namespace_of_operator(cluster, "named")) == (expected, "named")
    assert observe(cluster).namespace == expected
    assert observe(cluster, "named").namespace == "named"


def test_a_deployment_without_rights_is_no_operator() -> None:
    theirs = in_namespace(deployment(CONTAINER), "elsewhere")
    theirs["spec"]["template"]["spec"]["serviceAccountName"] = "mine"
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "ops"}
    binding = {
        "metadata": {"name": "operator"},
        "roleRef": {"kind": "ClusterRole", "name": "operator"},
        "subjects": [account],
    }
    api = Api(SriovOperatorConfig=[], Deployment=[theirs, deployment(CONTAINER)], ClusterRoleBinding=[binding])
    assert namespace_of_operator(typing.cast(Cluster, api)) == "ops"


def test_nothing_is_held_of_workloads_of_tenants() -> None:
    """A tenant's DaemonSets are as large as etcd takes them, as many as they like, and have the names that are looked
    for."""
    alive: list[weakref.ref[Large]] = []
    most = [0]

    def pages(
        kind: str, namespace: str = "", selector: str = "", *, only: typing.Any = None
    ) -> typing.Iterator[dict[str, typing.Any]]:
        yield from filter(only, Api.list(api, kind, namespace).items)
        for number in range(50 if kind in ("DaemonSet", "Deployment", "NetworkAttachmentDefinition") else 0):
            name = ("kube-multus-ds", "sriov-network-config-daemon", "other")[number % 3]
            container = {**CONTAINER, "name": "multus"}
            template = {"spec": {"serviceAccountName": "mine", "containers": [container]}}
            item = Large(
                {
                    "kind": kind,
                    "metadata": {"name": name, "namespace": f"tenant-{number}"},
                    "spec": {"template": template},
                }
            )
            alive.append(weakref.ref(item))
            most[0] = max(most[0], sum(seen() is not None for seen in alive))
            yield item

    account = {"kind": "ServiceAccount", "name": "default", "namespace": "ops"}
    binding = {
        "metadata": {"name": "operator"},
        "roleRef": {"kind": "ClusterRole", "name": "operator"},
        "subjects": [account],
    }
    api = Api(ClusterRoleBinding=[binding], DaemonSet=[DAEMON, multus("multus", "m", "kube-multus", namespace="ops")])
    api.pages = pages  # type: ignore[method-assign,assignment]
    facts = observe(typing.cast(Cluster, api))
    assert ([item.deployment.namespace for item in facts.installations], facts.namespace, facts.errors) == (
        ["ops"],
        "ops",
        (),
    )
    assert (
        facts.daemon is not None and facts.daemon.nodes,
        [item.namespace for item in facts.multus],
        facts.attachments,
    ) == (("worker-1",), ["ops"], 50)
    api.kinds["SriovOperatorConfig"] = []
    assert namespace_of_operator(typing.cast(Cluster, api)) == "ops"
    assert len(alive) == 250 - 50 and most[0] <= 4


def test_a_kubelet_fills_no_memory_with_pods_of_its_own() -> None:
    waiting = {"reason": "ErrImagePull", "message": "x" * 1_000_000}
    status = {"containerStatuses": [{"name": "c", "state": {"waiting": waiting}}]}
    real = {"metadata": {"name": "real", "namespace": "ops"}, "spec": {"nodeName": "worker-1"}, "status": status}
    mirror = {
        **real,
        "metadata": {"name": "planted", "namespace": "ops", "annotations": {"kubernetes.io/config.mirror": "a"}},
    }
    facts = observe(typing.cast(Cluster, Api(Pod=[real, mirror])), "ops")
    assert [text[:19] for text in facts.troubles] == ["real: ErrImagePull:"] and len(facts.troubles[0]) < 3000


class Large(dict[str, typing.Any]):
    """An object that a weak reference may name."""


def test_a_server_that_does_not_answer_tells_no_namespace() -> None:
    with pytest.raises(ApiError):
        namespace_of_operator(
            typing.cast(Cluster, Api(Deployment=[], SriovOperatorConfig=ApiError(0, "Unreachable", "refused", "GET")))
        )


def multus(name: str, uid: str, *containers: str, namespace: str = "openshift-multus") -> dict[str, typing.Any]:
    """As OpenShift's cluster network operator and the quick start of multus-cni write them."""
    return {
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": {
            "template": {"spec": {"containers": [{"name": container, "image": "m:1"} for container in containers]}}
        },
        "status": {"desiredNumberScheduled": 3, "numberReady": 2, "updatedNumberScheduled": 3},
    }


def multus_pod(uid: str, node: str, ready: bool = True, **metadata: str) -> dict[str, typing.Any]:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {
        "metadata": {"name": f"{uid}-{node}", "ownerReferences": [{"uid": uid}], **metadata},
        "spec": {"nodeName": node},
        "status": status,
    }


def test_where_multus_is_ready_not_how_often() -> None:
    daemons = [
        multus("multus", "m", "kube-multus"),
        multus("multus-additional-cni-plugins", "a", "kube-multus-additional-cni-plugins"),
    ]
    daemons.append(multus("multus-admission-controller", "c", "multus-admission-controller", "kube-rbac-proxy"))
    pods = [
        multus_pod("m", "worker-1"),
        multus_pod("m", "theirs-1", False),
        multus_pod("a", "theirs-1"),
        multus_pod("c", "control-1"),
    ]
    # one that goes away serves nobody any more, though it is still Ready
    pods.append(multus_pod("m", "worker-2", deletionTimestamp="2026-01-02T03:04:05Z"))
    (seen,) = observe(typing.cast(Cluster, Api(DaemonSet=[DAEMON, *daemons], Pod=[POD, *pods])), "ops").multus
    assert (seen.name, seen.wanted, seen.ready, seen.nodes) == ("multus", 3, 2, ("worker-1",))
    # others call the container by the name of their distribution
    (seen,) = observe(
        typing.cast(Cluster, Api(DaemonSet=[multus("rke2-multus", "m", "kube-rke2-multus")], Pod=pods)), "ops"
    ).multus
    assert seen.nodes == ("worker-1",)
    (seen,) = observe(
        typing.cast(Cluster, Api(DaemonSet=[multus("multus-cni-node", "m", "main")], Pod=pods)), "ops"
    ).multus
    assert seen.nodes == ("worker-1",)


@pytest.mark.parametrize(("status", "errors"), [(404, ()), (403, ("GET configmaps: no",))])
def test_a_list_of_supported_nics_that_is_not_there_is_no_empty_one(status: int, errors: tuple[str, ...]) -> None:
    facts = observe(typing.cast(Cluster, Api(ConfigMap=ApiError(status, "", "no", "GET configmaps"))), "ops")
    assert (facts.supported_nics, facts.errors) == (None, errors)


def test_a_kind_that_may_not_be_read_is_no_absent_one() -> None:
    facts = observe(
        typing.cast(
            Cluster,
            Api(Deployment=ApiError(403, "Forbidden", "deployments is forbidden", "GET /apis/apps/v1/deployments")),
        ),
        "ops",
    )
    assert facts.installations == ()
    assert facts.errors == ("GET /apis/apps/v1/deployments: deployments is forbidden",)


def test_a_kind_that_the_server_does_not_know_is_no_error() -> None:
    facts = observe(
        typing.cast(Cluster, Api(NetworkAttachmentDefinition=ApiError(404, "NotFound", "could not find", "GET"))), "ops"
    )
    assert (facts.attachments, facts.errors) == (None, ())
    assert observe(typing.cast(Cluster, Api()), "ops").attachments == 0


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ApiError):
        observe(typing.cast(Cluster, Api(Node=ApiError(0, "Unreachable", "refused", "GET"))), "ops")


def serve(api: Api, limit: float = 60.0) -> tuple[OperatorFacts, list[str]]:
    now = [0.0]
    lines: list[str] = []

    def pause(seconds: float) -> None:
        now[0] += seconds

    return (
        wait_until_serving(
            typing.cast(Cluster, api),
            ClusterIntent(operator_namespace="ops"),
            ["worker-1"],
            limit,
            lambda: now[0],
            pause,
            lines.append,
        ),
        lines,
    )


def test_the_wait_ends_when_the_operator_serves() -> None:
    answers = [[deployment(CONTAINER, 0)], [deployment(CONTAINER, 0)], [deployment(CONTAINER)]]
    facts, lines = serve(Api(Deployment=lambda: answers.pop(0)))
    assert facts.installations[0].deployment.ready == 1
    assert lines == ["0 s  Deployment ops/any-name: 0 of 1 pods available", "4 s  the operator is ready"]


def test_an_operator_that_has_not_reported_the_node_does_not_serve_it() -> None:
    reports = [[{**STATE, "status": {}}], [STATE]]
    _facts, lines = serve(Api(SriovNetworkNodeState=lambda: reports.pop(0)))
    assert lines == [
        "0 s  worker-1: config daemon ready, physical functions not reported",
        "2 s  the operator is ready",
    ]


def test_the_wait_ends_with_its_time_and_says_what_is_missing() -> None:
    pod = {
        **POD,
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]},
    }
    facts, lines = serve(Api(Pod=[pod]), 10.0)
    assert facts.daemon is not None
    assert facts.daemon.nodes == ()
    assert any("not scheduled: 0/1 nodes are available" in line for line in lines)


@pytest.mark.parametrize(
    ("status", "phase", "detail", "suspect"),
    [
        (READY, "ready", "Ready", ""),
        ({}, "waiting", "the scheduler has not processed the pod", ""),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, "waiting", "is being created", ""),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "Insufficient openshift.io/igb"}]},
            "waiting",
            "Insufficient openshift.io/igb",
            "unschedulable",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImageNeverPull", "message": "not present"}}}]},
            "waiting",
            "ErrImageNeverPull: not present",
            "image",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "CreateContainerError"}}}]},
            "waiting",
            "CreateContainerError",
            "container",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"},
            "failed",
            "Evicted The node was low on memory",
            "",
        ),
        ({"phase": "Succeeded"}, "failed", "it ended", ""),
    ],
)
def test_where_a_pod_stands(status: dict[str, typing.Any], phase: str, detail: str, suspect: str) -> None:
    stand = state_of_pod({"metadata": {"name": "p"}, "status": status})
    assert (stand.phase, stand.suspect) == (phase, suspect)
    assert detail in stand.detail


def test_a_pod_that_is_being_deleted_will_not_be_ready() -> None:
    assert state_of_pod({"metadata": {"deletionTimestamp": "2026-11-21T08:00:00Z"}, "status": READY}).phase == "failed"


OPERATOR = {
    "kind": "Pod",
    "metadata": {"name": "op-1", "namespace": "ops"},
    "spec": {"containers": [CONTAINER], "nodeName": "worker-1"},
    "status": READY,
}
REFUSED = (
    'DaemonSet.apps \\"network-resources-injector\\" is invalid: spec.template.spec.volumes[0].secret.secretName:'
    " Required value"
)
LOG = (
    f'2026-11-25T09:09:28Z\tERROR\tcontroller.go:288\tReconciler error\t{{"error": "failed to apply object {"x" * 3000}'
    f' with err: {REFUSED}"}}\n'
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"DaemonSet": []}, "secretName: Required value"),
        # it works, whatever its log says
        ({}, ""),
        # no right to read it, no pod, a pod that is something else
        ({"DaemonSet": [], "log": ApiError(403, "Forbidden", "no", "GET")}, ""),
        ({"DaemonSet": [], "Pod": []}, ""),
        ({"DaemonSet": [], "Pod": [POD]}, ""),
    ],
)
def test_what_the_operator_says_where_it_makes_no_daemon(changes: dict[str, typing.Any], said: str) -> None:
    seen = observe(typing.cast(Cluster, Api(**{"Pod": [OPERATOR], "log": LOG, **changes})))
    assert seen.says.endswith(said) and bool(seen.says) == bool(said) and len(seen.says) <= 500
    assert seen.errors == ()


def test_a_server_that_is_gone_is_an_error_while_its_log_is_read() -> None:
    with pytest.raises(ApiError):
        observe(typing.cast(Cluster, Api(Pod=[OPERATOR], DaemonSet=[], log=ApiError(0, "Unreachable", "gone", "GET"))))


@pytest.mark.parametrize(
    "updated, label, nodes",
    [(2, "3", ("worker-1",)), (2, "4", ("worker-1", "worker-2")), (2, "", ("worker-1", "worker-2")), (3, "3", None)],
)
def test_a_pod_of_an_earlier_template_serves_no_node_while_the_daemons_are_replaced(
    updated: int, label: str, nodes: typing.Optional[tuple[str, ...]]
) -> None:
    """After a rollback the number of a template differs, and Kubernetes counts the pod as updated."""
    daemon = multus("multus", "m", "kube-multus")
    daemon["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "4"}
    daemon["status"].update(numberReady=3, updatedNumberScheduled=updated)
    pods = [multus_pod("m", "worker-1"), multus_pod("m", "worker-2")]
    pods[1]["metadata"]["labels"] = {"pod-template-generation": label} if label else {}
    (seen,) = observe(typing.cast(Cluster, Api(DaemonSet=[DAEMON, daemon], Pod=[POD, *pods])), "ops").multus
    assert seen.nodes == (nodes or ("worker-1", "worker-2"))
