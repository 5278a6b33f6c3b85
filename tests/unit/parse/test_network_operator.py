# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of NVIDIA's network operator and NetworkAttachmentDefinitions. Shapes: network-operator v26.4.1 api/v1alpha1,
controllers/conditions.go."""

from __future__ import annotations

import json
import pathlib
import typing

import hypothesis
import hypothesis.strategies as st
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.multus import own_interface
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nvidia_network_operator import (
    nic_policy,
    parse_attachment,
    parse_reported,
)

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"
STATES = [
    {"name": "state-OFED", "state": "notReady", "message": "2 of 4 pods"},
    {"name": "state-multus-cni", "state": "ignore"},
    {"name": "x", "state": "ready"},
]


def policy(
    status: typing.Optional[dict[str, typing.Any]] = None,
    **metadata: typing.Union[dict[str, str], list[dict[str, typing.Any]]],
) -> dict[str, typing.Any]:
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy", "generation": 2, **metadata},
        "spec": {"rdmaSharedDevicePlugin": {"image": "x", "config": "{}"}, "nvIpam": {"image": "y"}},
        "status": status or {},
    }


def test_a_policy_that_is_not_ready_names_its_parts() -> None:
    seen = parse_reported(policy({"state": "notReady", "reason": "waiting", "appliedStates": STATES}))
    assert (seen.kind, seen.name, seen.state, seen.reason, seen.parts) == (
        "NicClusterPolicy",
        "nic-cluster-policy",
        "notReady",
        "waiting",
        ("state-OFED notReady: 2 of 4 pods",),
    )


@pytest.mark.parametrize(("generation", "state"), [(1, ""), (2, "ready")])
def test_a_status_of_an_older_wish_is_none(generation: int, state: str) -> None:
    assert (
        parse_reported(
            policy({"state": "ready", "conditions": [{"type": "Ready", "observedGeneration": generation}]})
        ).state
        == state
    )


def test_shares_of_a_pool() -> None:
    pool = {
        "kind": "IPPool",
        "metadata": {"name": "pool", "namespace": "ops"},
        "status": {"allocations": [{"nodeName": "a"}, {"nodeName": "b"}]},
    }
    assert (parse_reported(pool).name, parse_reported(pool).nodes) == ("ops/pool", ("a", "b"))


def test_whose_a_policy_is() -> None:
    fields: dict[str, typing.Any] = {"f:spec": {"f:rdmaSharedDevicePlugin": {"f:config": {}}}}
    seen = nic_policy(policy(managedFields=[{"manager": "helm", "fieldsV1": fields}]))
    assert (seen.ours, seen.configs, seen.owners) == (
        False,
        {"rdmaSharedDevicePlugin": "{}"},
        {"rdmaSharedDevicePlugin": "helm"},
    )
    ours = nic_policy(
        policy(
            labels={"app.kubernetes.io/managed-by": "linerate.rdma"},
            managedFields=[{"manager": "linerate.rdma", "fieldsV1": fields}],
        )
    )
    assert (ours.ours, ours.owners) == (True, {})


def test_real_attachments_are_read() -> None:
    items = yaml.safe_load((FIXTURES / "networkattachmentdefinitions.yaml").read_text())["items"]
    read = [parse_attachment(item) for item in items]
    assert read and all(item.plugin["type"] and not item.fault for item in read)


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        (None, "is empty"),
        ("", "is empty"),
        ('{"type": "macvlan"', "is not JSON"),
        ("[]", "is not a mapping"),
        ("{}", "no plugin with a type"),
        ('{"plugins": []}', "no plugin with a type"),
        ('{"plugins": [{"master": "ens1"}]}', "no plugin with a type"),
        ("[" * 100000, "is not JSON"),
    ],
)
def test_what_multus_could_not_read(config: typing.Optional[str], fault: str) -> None:
    assert (
        fault
        in parse_attachment(
            {"kind": "NetworkAttachmentDefinition", "metadata": {"name": "net"}, "spec": {"config": config}}
        ).fault
    )


@hypothesis.given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_configuration_is_read_or_has_a_fault(value: typing.Any) -> None:
    seen = parse_attachment(
        {"kind": "NetworkAttachmentDefinition", "metadata": {"name": "net"}, "spec": {"config": json.dumps(value)}}
    )
    assert bool(seen.fault) != bool(seen.plugin)


@pytest.mark.parametrize("parser", [parse_reported, nic_policy, parse_attachment])
@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"metadata": []},
        {"metadata": {"name": ""}},
        {"metadata": {"name": "x"}, "status": "ready", "spec": "x"},
    ],
)
def test_another_shape_is_an_error(
    parser: typing.Callable[..., typing.Any],
    wrong: typing.Optional[typing.Union[dict[str, typing.Any], list[typing.Any]]],
) -> None:
    with pytest.raises(ResourceError):
        parser(wrong)


def test_the_interface_of_a_pod_s_own_network() -> None:
    pod = {"metadata": {"name": "pod"}, "status": {"podIP": "10.244.1.7"}}
    assert own_interface(pod) == ("eth0", "10.244.1.7", None)
    status = json.dumps([{"name": "net", "interface": "net1"}, {"name": "cbr0", "interface": "ens3", "default": True}])
    annotated = {**pod, "metadata": {"name": "pod", "annotations": {"k8s.v1.cni.cncf.io/network-status": status}}}
    assert own_interface(annotated) == ("ens3", "10.244.1.7", None)
    broken = {**pod, "metadata": {"name": "pod", "annotations": {"k8s.v1.cni.cncf.io/network-status": "["}}}
    assert own_interface(broken) == ("eth0", "10.244.1.7", None)
    with pytest.raises(ResourceError, match=r"no status\.podIP"):
        own_interface({"metadata": {"name": "pod"}})
