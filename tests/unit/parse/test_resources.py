# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes resources: objects of a real cluster with operator v1.6.0, and resources that are none."""

from __future__ import annotations

import copy
import json
import pathlib
import typing

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity as theirs

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.drain import (
    list_drain_blockers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    LabelExpression,
    LabelSelector,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import VfGroup
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import (
    core as kubernetes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks import multus
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import machine_config, sriov_operator

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"


def fixture(name: str) -> dict[str, typing.Any]:
    found: dict[str, typing.Any] = yaml.safe_load((FIXTURES / name).read_text())
    return found


def test_machine_config_pools_by_type_never_by_index() -> None:
    master, worker = map(machine_config.machine_pool, fixture("machineconfigpools.yaml")["items"])
    assert (master.name, master.paused, master.machines, master.updated, master.degraded, master.message) == (
        "master",
        False,
        3,
        3,
        0,
        "",
    )
    assert master.wanted_config == master.current_config
    assert (worker.paused, worker.paused_by_operator, worker.machines, worker.updated, worker.degraded) == (
        True,
        False,
        3,
        1,
        1,
    )
    assert worker.conditions == {
        "NodeDegraded": "True",
        "Degraded": "True",
        "RenderDegraded": "False",
        "Updated": "False",
        "Updating": "False",
    }
    assert worker.message == 'Node worker-2 is reporting: "failed to drain node: worker-2 after 1 hour"'
    assert worker.selector == LabelSelector(
        {"node-role.kubernetes.io/worker": ""}, (LabelExpression("node-role.kubernetes.io/infra", "DoesNotExist"),)
    )
    held = {
        "metadata": {"name": "w", "annotations": {"sriovnetwork.openshift.io/state": "Paused"}},
        "spec": {"paused": True},
    }
    assert machine_config.machine_pool(held).paused_by_operator


FAILED = {
    "type": "Failure",
    "status": "False",
    "message": "Error: KubeletConfig a does not match any MachineConfigPools",
}
PASSED = {"type": "Success", "status": "True", "message": "Success"}


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        ({}, None),
        ({"observedGeneration": 2, "conditions": []}, None),
        # the operator has not come to it since it was changed
        ({"observedGeneration": 1, "conditions": [PASSED]}, None),
        # the last one counts
        ({"observedGeneration": 2, "conditions": [FAILED, PASSED]}, ""),
        ({"observedGeneration": 2, "conditions": [PASSED, FAILED]}, FAILED["message"]),
        ({"observedGeneration": 2, "conditions": [{"type": "Failure"}]}, "no reason is reported"),
    ],
)
def test_what_the_operator_says_of_a_kubelet_config(
    status: dict[str, typing.Any], refusal: typing.Optional[str]
) -> None:
    wanted = {
        "kind": "KubeletConfig",
        "metadata": {"name": "a"},
        "spec": {"kubeletConfig": {"maxPods": 9, "cpuManagerPolicy": "static"}},
    }
    live = {
        **wanted,
        "metadata": {"name": "a", "generation": 2, "finalizers": ["99-worker-generated-kubelet"]},
        "status": status,
    }
    config = machine_config.host_config(wanted, live)
    assert (config.refusal, config.there, config.generated, config.what) == (
        refusal,
        True,
        ("99-worker-generated-kubelet",),
        "maxPods 9, CPU manager static",
    )
    assert not machine_config.host_config(wanted).there
    assert not machine_config.host_config(wanted, {**live, "spec": {"kubeletConfig": {"maxPods": 8}}}).there


@pytest.mark.parametrize(
    ("generation", "said", "refusal"),
    [
        (1, "2026-11-25T00:21:13Z", ""),
        (2, "2026-11-25T00:21:13Z", None),
        (2, "2026-11-25T00:30:04Z", ""),
        # the clocks of two machines
        (2, "2026-11-25T00:30:02Z", ""),
        (2, "no time", None),
    ],
)
def test_when_the_real_controller_said_it_tells_of_which_wish_it_is(
    generation: int, said: str, refusal: typing.Optional[str]
) -> None:
    """As the machine config controller of July 2023 left it in the lab: without observedGeneration."""
    fields = [
        {"manager": "linerate.rdma", "time": "2026-11-25T00:21:12Z", "fieldsV1": {"f:spec": {"f:kubeletConfig": {}}}},
        {"manager": "kubectl-edit", "time": "2026-11-25T00:30:03Z", "fieldsV1": {"f:spec": {"f:logLevel": {}}}},
        {
            "manager": "machine-config-controller",
            "time": "2026-11-25T00:45:00Z",
            "fieldsV1": {"f:metadata": {"f:finalizers": {}}},
        },
        {
            "manager": "machine-config-controller",
            "time": "2026-11-25T00:45:00Z",
            "subresource": "status",
            "fieldsV1": {"f:status": {}},
        },
    ]
    live = {
        "kind": "KubeletConfig",
        "metadata": {"name": "a", "generation": generation, "managedFields": fields},
        "status": {"conditions": [{**PASSED, "lastTransitionTime": said}]},
    }
    assert machine_config.host_config(live, live).refusal == refusal


def test_who_changed_it_last_may_not_be_known() -> None:
    live = {
        "kind": "KubeletConfig",
        "metadata": {"name": "a", "generation": 3},
        "status": {"conditions": [{**PASSED, "lastTransitionTime": "2026-11-25T00:21:13Z"}]},
    }
    assert machine_config.host_config(live, live).refusal is None


@pytest.mark.parametrize(("written", "read"), [(None, None), (2, "2"), ("25%", "25%")])
def test_pools_of_nodes(written: typing.Optional[typing.Union[int, str]], read: typing.Optional[str]) -> None:
    pool = sriov_operator.node_pool(
        {"metadata": {"name": "p"}, "spec": {"maxUnavailable": written, "rdmaMode": "exclusive"}}
    )
    assert (pool.max_unavailable, pool.rdma_mode, pool.selector, pool.offload) == (
        read,
        "exclusive",
        LabelSelector(),
        False,
    )


def test_a_pod_as_a_drain_sees_it() -> None:
    pod = kubernetes.parse_pod(fixture("pod-with-vf.yaml"))
    assert "openshift.io/igbvf" in pod.requests
    assert (pod.owner, pod.mirror, pod.ended) == ("", False, False)
    owned = {
        "metadata": {"name": "p", "ownerReferences": [{"kind": "Job", "controller": True}]},
        "status": {"phase": "Succeeded"},
    }
    assert (kubernetes.parse_pod(owned).owner, kubernetes.parse_pod(owned).ended) == ("Job", True)


@pytest.mark.parametrize(
    ("namespace", "name", "recreated"),
    [
        ("openshift-etcd", "etcd-guard-m0", True),
        ("openshift-kube-scheduler", "openshift-kube-scheduler-guard-m0", True),
        ("openshift-etcd", "etcd-guard-m1", False),
        ("team-x", "etcd-guard-m0", False),
        ("openshift-etcd", "debug", False),
    ],
)
def test_openshift_creates_its_guard_pods_again(namespace: str, name: str, recreated: bool) -> None:
    pod = kubernetes.parse_pod({"metadata": {"name": name, "namespace": namespace}, "spec": {"nodeName": "m0"}})
    assert bool(pod.owner) is recreated
    assert bool(list_drain_blockers([pod], DrainOptions())) is not recreated


def test_a_budget_without_a_status_allows_nothing() -> None:
    budget = kubernetes.parse_budget(
        {"metadata": {"name": "b", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}
    )
    assert (budget.allowed, budget.selector) == (0, LabelSelector({"a": "b"}))
    assert kubernetes.parse_budget({"metadata": {"name": "b"}}).selector is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([{"key": "a", "operator": "Exists"}] * 16, False),
        ([{"key": "a", "operator": "Exists"}] * 17, True),
        ([{"key": "a", "operator": "In", "values": [str(number) for number in range(15)]}], False),
        ([{"key": "a", "operator": "In", "values": [str(number) for number in range(16)]}], True),
    ],
)
def test_a_budget_that_asks_too_much_is_one_of_all_pods(asked: typing.Sequence[typing.Any], expected: bool) -> None:
    budget = kubernetes.parse_budget(
        {"metadata": {"name": "b", "namespace": "n"}, "spec": {"selector": {"matchExpressions": asked}}}
    )
    assert (budget.selector == LabelSelector()) is expected


def test_settings_of_the_operator() -> None:
    settings = sriov_operator.operator_settings(
        {"metadata": {"name": "default"}, "spec": {"disableDrain": True, "disablePlugins": ["mellanox"]}}
    )
    assert (settings.disable_drain, settings.mode, settings.disabled_plugins) == (True, "daemon", ("mellanox",))


def test_a_broken_range_of_functions_is_an_error() -> None:
    with pytest.raises(ResourceError, match="' is not a range of virtual functions such as 0-3"):
        sriov_operator.vf_range("3", "x")


def test_node_state() -> None:
    state = sriov_operator.node_state(fixture("sriovnetworknodestates-igb-succeeded.yaml")["items"][0])
    assert (state.node, state.sync_status, state.current_state, state.desired_state, state.generation) == (
        "kl-a",
        "Succeeded",
        "Idle",
        "Idle",
        2,
    )
    assert [(item.address, item.vfs_count, item.groups) for item in state.wanted] == [
        ("0000:01:00.0", 4, (VfGroup("pol1", "igbvf", "netdevice", first=0, last=3),))
    ]
    (interface,) = state.interfaces
    assert (interface.name, interface.vendor, interface.device, interface.driver, interface.link_type) == (
        "eth2",
        "8086",
        "10c9",
        "igb",
        "ETH",
    )
    assert (interface.total_vfs, interface.vfs_count, [vf.address for vf in interface.vfs]) == (
        7,
        4,
        ["0000:01:10.0", "0000:01:10.2", "0000:01:10.4", "0000:01:10.6"],
    )


def test_node() -> None:
    node = kubernetes.parse_node(fixture("node-worker-sriov.yaml"))
    assert (node.name, node.ready, node.unschedulable, node.allocatable) == (
        "kl-a",
        True,
        False,
        {"openshift.io/igbvf": 4},
    )
    assert node.labels["kl/sriov"] == "yes"


def test_extended_resources_are_quantities_as_the_api_server_writes_them() -> None:
    # [k8s.io/apimachinery pkg/api/resource/quantity.go]: 1000 devices come back as 1k, whatever the kubelet sent
    written = [
        "0",
        "4",
        4,
        "110",
        "1k",
        "1500k",
        "2M",
        "1G",
        "3T",
        "1P",
        "1E",
        "1e3",
        "1E3",
        "12e2",
        "20e-1",
        "+5",
        "5.0",
        "1.5k",
        "2000m",
        "3000000u",
        "1Ki",
        "2Mi",
    ]
    written += ["1Gi", "1Ti", "1Pi", "1Ei"]
    for text in written:
        resource = fixture("node-worker-sriov.yaml")
        resource["status"]["allocatable"]["devices.kubevirt.io/kvm"] = text
        node = kubernetes.parse_node(resource)
        assert node.allocatable == {"openshift.io/igbvf": 4, "devices.kubevirt.io/kvm": int(theirs(text))}, text
        assert node.unread == {}


def test_a_foreign_number_that_can_not_be_read_is_no_error_and_is_not_lost() -> None:
    for text in ("many", "", "1.5", "100m", "1 k", "1K", "1ki", "0x10", "1e", "٣", True, None, ["4"], {"value": 4}):
        resource = fixture("node-worker-sriov.yaml")
        resource["status"]["allocatable"]["example.com/odd"] = text
        node = kubernetes.parse_node(resource)
        assert node.allocatable == {"openshift.io/igbvf": 4}
        assert node.unread == {"example.com/odd": str(text)}


def test_a_node_says_which_machine_config_it_is_through_with() -> None:
    prefix = "machineconfiguration.openshift.io"
    for has, wanted, state, expected in (
        ("a", "a", "Done", "a"),
        ("a", "b", "Done", ""),
        ("a", "a", "Working", ""),
        ("a", "a", "Degraded", ""),
        ("", "", "Done", ""),
    ):
        resource = fixture("node-worker-sriov.yaml")
        resource["metadata"]["annotations"].update(
            {f"{prefix}/currentConfig": has, f"{prefix}/desiredConfig": wanted, f"{prefix}/state": state}
        )
        assert kubernetes.parse_node(resource).machine_config == expected
    assert kubernetes.parse_node(fixture("node-worker-sriov.yaml")).machine_config == ""


def test_a_node_that_does_not_answer_is_not_ready() -> None:
    resource = fixture("node-worker-sriov.yaml")
    for condition in resource["status"]["conditions"]:
        condition["status"] = "Unknown"
    assert not kubernetes.parse_node(resource).ready


def test_policy() -> None:
    resource = next(item for item in fixture("sriov-crs.yaml")["items"] if item["kind"] == "SriovNetworkNodePolicy")
    policy = sriov_operator.parse_policy(resource)
    assert (policy.name, policy.resource_name, policy.vfs_count, policy.vendor, policy.device, policy.pf_names) == (
        "pol1",
        "igbvf",
        4,
        "8086",
        "10c9",
        ("eth2",),
    )


@pytest.mark.parametrize(
    ("labels", "intent"),
    [
        ({"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/intent": "ada"}, "ada"),
        ({"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/intent": "not\na label"}, ""),
        ({"app.kubernetes.io/managed-by": "linerate.rdma"}, ""),
        ({"linerate.rdma/intent": "ada"}, ""),
    ],
)
def test_policy_has_the_intent_that_its_label_names(labels: dict[str, str], intent: str) -> None:
    resource = next(item for item in fixture("sriov-crs.yaml")["items"] if item["kind"] == "SriovNetworkNodePolicy")
    resource["metadata"]["labels"] = labels
    assert sriov_operator.parse_policy(resource).intent == intent


def test_network_interface() -> None:
    pod = fixture("pod-with-vf.yaml")
    assert multus.network_interface(pod, "default/op-net") == ("net1", "10.79.0.21", "0000:01:10.0")


def test_network_interface_says_what_is_missing() -> None:
    pod = fixture("pod-with-vf.yaml")
    with pytest.raises(ResourceError, match="not attached to test/other; it is attached to: kl, default/op-net"):
        multus.network_interface(pod, "test/other")
    annotations = pod["metadata"]["annotations"]
    whole = annotations[multus.STATUS_ANNOTATION]
    annotations[multus.STATUS_ANNOTATION] = whole[: len(whole) // 2]
    with pytest.raises(ResourceError, match="is not JSON:"):
        multus.network_interface(pod, "default/op-net")
    annotations[multus.STATUS_ANNOTATION] = json.dumps([{"name": "default/op-net", "interface": "net1"}])
    with pytest.raises(ResourceError, match="no IP address"):
        multus.network_interface(pod, "default/op-net")
    del annotations[multus.STATUS_ANNOTATION]
    with pytest.raises(ResourceError, match="multus did not attach"):
        multus.network_interface(pod, "default/op-net")


def deployment(**changes: typing.Union[dict[str, str], int]) -> dict[str, typing.Any]:
    resource: dict[str, typing.Any] = {
        "kind": "Deployment",
        "metadata": {
            "name": "sriov-network-operator",
            "namespace": "sriov-network-operator",
            "generation": 2,
            "labels": {},
        },
        "spec": {
            "replicas": 1,
            "template": {
                "spec": {
                    "containers": [
                        {
                            "image": "registry:5000/op:v1.6.0",
                            "env": [{"name": "RESOURCE_PREFIX", "value": "openshift.io"}],
                        }
                    ]
                }
            },
        },
        "status": {"observedGeneration": 2, "availableReplicas": 1, "updatedReplicas": 1},
    }
    resource["metadata"].update(changes)
    return resource


@pytest.mark.parametrize(
    ("replicas", "pods", "updated", "available", "ready"),
    [
        pytest.param(1, 1, 1, 1, 1, id="all are of the present template"),
        pytest.param(1, 2, 1, 1, 0, id="the old one is available, and the new one crashes"),
        pytest.param(2, 3, 1, 2, 0, id="both old ones are available"),
        pytest.param(2, 3, 2, 3, 2, id="one old one is left"),
        pytest.param(2, 2, 0, 2, 0, id="none is of the present template"),
        pytest.param(2, 0, 2, 2, 2, id="the number of pods is not told"),
    ],
)
def test_an_old_pod_that_is_available_does_not_stand_for_a_new_one(
    replicas: int, pods: int, updated: int, available: int, ready: int
) -> None:
    resource = deployment()
    resource["spec"]["replicas"] = replicas
    resource["status"].update(replicas=pods, updatedReplicas=updated, availableReplicas=available)
    found = sriov_operator.parse_installation(resource).deployment
    assert (found.wanted, found.ready) == (replicas, ready)


def test_installation_names_its_origin_and_version() -> None:
    helm = sriov_operator.parse_installation(
        deployment(labels={"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "1.6.0"})
    )
    assert (helm.origin, helm.version, helm.resource_prefix, helm.deployment.ready) == (
        "helm",
        "1.6.0",
        "openshift.io",
        1,
    )
    nvidia = sriov_operator.parse_installation(deployment(labels={"helm.sh/chart": "network-operator-25.7.0"}))
    assert (nvidia.origin, nvidia.version) == ("nvidia-network-operator", "v1.6.0")
    assert (
        sriov_operator.parse_installation(deployment(labels={"olm.owner": "sriov-network-operator.v4.18"})).origin
        == "olm"
    )
    assert sriov_operator.parse_installation(deployment()).origin == "unknown"


def test_status_of_an_older_generation_is_not_ready() -> None:
    assert sriov_operator.parse_installation(deployment(generation=3)).deployment.ready == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"status":"Failure","reason":"InternalError","message":"container not found"}', "container not found"),
        ('{"metadata":{},"status":"Success"}', '{"metadata":{},"status":"Success"}'),
        ("", ""),
        ("[]", "[]"),
        ('{"status":"Succ', '{"status":"Succ'),
    ],
)
def test_status_message(text: str, message: str) -> None:
    assert kubernetes.status_message(text) == message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "name",
                    "status",
                    "spec",
                    "interfaces",
                    "Vfs",
                    "labels",
                    "allocatable",
                    "a/b",
                    "conditions",
                    "annotations",
                    "template",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


REAL = (
    (kubernetes.parse_node, fixture("node-worker-sriov.yaml")),
    (sriov_operator.node_state, fixture("sriovnetworknodestates-igb-succeeded.yaml")["items"][0]),
    (
        sriov_operator.parse_policy,
        next(item for item in fixture("sriov-crs.yaml")["items"] if item["kind"] == "SriovNetworkNodePolicy"),
    ),
    (kubernetes.parse_pod, fixture("pod-with-vf.yaml")),
    (machine_config.machine_pool, fixture("machineconfigpools.yaml")["items"][1]),
    (
        machine_config.host_config,
        {"kind": "MachineConfig", "metadata": {"name": "m"}, "spec": {"kernelArguments": ["a"]}},
    ),
    (
        machine_config.host_config,
        {
            "kind": "KubeletConfig",
            "metadata": {"name": "k"},
            "spec": {"kubeletConfig": {"a": 1}, "machineConfigPoolSelector": {}},
        },
    ),
    (
        sriov_operator.node_pool,
        {
            "metadata": {"name": "p"},
            "spec": {"maxUnavailable": 2, "nodeSelector": {"matchExpressions": [{"key": "a", "values": ["b"]}]}},
        },
    ),
    (
        kubernetes.parse_budget,
        {
            "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}},
            "status": {"disruptionsAllowed": 1},
        },
    ),
    (
        sriov_operator.operator_settings,
        {"metadata": {"name": "default"}, "spec": {"disableDrain": True, "disablePlugins": ["mellanox"]}},
    ),
)


@given(JSON)
def test_any_resource(resource: typing.Any) -> None:
    for parse in (*(parse for parse, _resource in REAL), kubernetes.parse_workload, sriov_operator.parse_installation):
        try:
            parse(resource)
        except ResourceError as error:
            assert str(error)


def places(resource: typing.Any) -> typing.Iterator[tuple[typing.Any, typing.Union[int, str]]]:
    """Every mapping and list of a resource, with each of its keys."""
    keys = resource if isinstance(resource, dict) else range(len(resource)) if isinstance(resource, list) else ()
    for key in keys:
        yield resource, key
        yield from places(resource[key])


JUNK: tuple[typing.Any, ...] = (
    None,
    0,
    -1,
    1.5,
    True,
    "",
    "x",
    "3",
    [],
    ["x"],
    [1],
    [None],
    [{}],
    [[]],
    {},
    {"a": 1},
    {"a": None},
    {"a": {}},
    {"a": []},
)


@pytest.mark.parametrize(("parse", "resource"), REAL, ids=lambda value: getattr(value, "__name__", ""))
def test_a_real_resource_with_any_one_thing_changed_is_read_or_refused(
    parse: typing.Callable[..., typing.Any], resource: dict[str, typing.Any]
) -> None:
    for number in range(len(list(places(resource)))):
        for junk in JUNK:
            changed = copy.deepcopy(resource)
            parent, key = list(places(changed))[number]
            parent[key] = junk
            try:
                parse(changed)
            except ResourceError as error:
                assert str(error)


@given(st.text() | JSON.map(json.dumps))
def test_any_status_message(text: str) -> None:
    assert isinstance(kubernetes.status_message(text), str)


def test_supported_nics() -> None:
    data = {
        "kind": "ConfigMap",
        "metadata": {"name": "supported-nic-ids"},
        "data": {"b": "15b3 1021 101e", "a": "8086 10C9 10CA"},
    }
    assert [(nic.vendor, nic.device, nic.virtual_device) for nic in sriov_operator.supported_nics(data)] == [
        ("8086", "10c9", "10ca"),
        ("15b3", "1021", "101e"),
    ]
    assert sriov_operator.supported_nics({**data, "data": None}) == ()
    with pytest.raises(
        ResourceError, match=r"ConfigMap supported-nic-ids: data\[a\] is '8086 10c9'; expected three PCI ids"
    ):
        sriov_operator.supported_nics({**data, "data": {"a": "8086 10c9"}})
