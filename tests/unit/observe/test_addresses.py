# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses in use: leaks are seen between two looks, and what can't be read is said."""

from __future__ import annotations

import ipaddress
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressLease, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.addresses import observe
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError

OURS = [ipaddress.ip_network("10.79.0.0/24")]
WHEREABOUTS = "IPPool.whereabouts.cni.cncf.io"


def pod(name: str, address: str) -> dict[str, typing.Any]:
    return {"metadata": {"name": name, "namespace": "training"}, "spec": {}, "status": {"podIPs": [{"ip": address}]}}


def leases(**allocations: str) -> dict[str, typing.Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {
            "range": "10.79.0.0/24",
            "allocations": {key[1:]: {"podref": value} for key, value in allocations.items()},
        },
    }


class Api:
    """Each kind answers with its list, with an error, or with one list after the other."""

    def __init__(self, **kinds: typing.Any) -> None:
        self.kinds = {key.replace("_", "."): value for key, value in kinds.items()}
        self.asked: list[typing.Any] = []

    def pages(self, kind: str, namespace: str = "") -> typing.Iterator[typing.Any]:
        self.asked.append((kind, namespace))
        answer = self.kinds.get(kind, ApiError(404, "NotFound", "unknown", kind))
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        yield from answer


def test_a_lease_without_its_pod_is_a_leak() -> None:
    api = Api(Pod=[pod("a", "10.244.0.5")])
    api.kinds[WHEREABOUTS] = [leases(_2="training/a", _3="training/gone")]
    facts = observe(typing.cast(Cluster, api), OURS)
    assert (facts.leaks, facts.pods, facts.errors) == ((AddressLease("10.79.0.3", "training/gone"),), 1, ())


def attached(name: str, addresses: typing.Sequence[str], phase: str = "Running") -> dict[str, typing.Any]:
    """A pod with the annotation of multus."""
    status = [{"name": "cni0", "ips": ["10.244.0.5"], "default": True}, {"name": "a/b", "ips": list(addresses)}]
    found = pod(name, "10.244.0.5")
    found["metadata"]["annotations"] = {"k8s.v1.cni.cncf.io/network-status": json.dumps(status)}
    return {**found, "status": {**found["status"], "phase": phase}}


@pytest.mark.parametrize(
    ("there", "leaked"),
    [
        # of a StatefulSet: whereabouts has kept the address of the predecessor [whereabouts issues 176, 182]
        (attached("a", ["10.79.0.4"]), ["10.79.0.2"]),
        (attached("a", ["10.79.0.4"], "Succeeded"), ["10.79.0.2", "10.79.0.4"]),
        (attached("a", ["10.79.0.4"], "Failed"), ["10.79.0.2", "10.79.0.4"]),
        (attached("a", ["10.79.0.2", "10.79.0.4"]), []),
        # not attached yet, or not to these networks: nothing shows what the pod holds
        (attached("a", []), []),
        (attached("a", ["10.80.0.1"]), []),
        (pod("a", "10.244.0.5"), []),
    ],
)
def test_a_lease_that_its_pod_does_not_hold_is_a_leak(there: dict[str, typing.Any], leaked: list[str]) -> None:
    api = Api(Pod=[there])
    api.kinds[WHEREABOUTS] = [leases(_2="training/a", _4="training/a")]
    assert [lease.address for lease in observe(typing.cast(Cluster, api), OURS).leaks] == leaked


def test_pods_that_come_and_go_meanwhile_are_no_leaks() -> None:
    looks = iter([[leases(_2="training/a", _3="training/goes")], [leases(_2="training/a", _4="training/comes")]])
    api = Api(Pod=[pod("a", "10.244.0.5")])
    api.kinds[WHEREABOUTS] = lambda: next(looks)
    assert observe(typing.cast(Cluster, api), OURS).leaks == ()


def test_running_pods_with_an_address_of_a_pool_of_nv_ipam_are_its_users() -> None:
    spec = {"subnet": "10.79.0.0/24", "perNodeBlockSize": 8}
    pool = {"kind": "IPPool", "metadata": {"name": "p", "namespace": "ops"}, "spec": spec}
    pods = [attached("a", ["10.79.0.2"]), attached("b", ["10.80.0.2"]), attached("c", ["10.79.0.3"], "Succeeded")]
    api = Api(Pod=pods)
    api.kinds["IPPool.nv-ipam.nvidia.com"] = [pool]
    (found,) = observe(typing.cast(Cluster, api), OURS).pools
    assert found.pods == ("training/a",)


def test_pods_inside_of_a_range_are_evidence() -> None:
    facts = observe(typing.cast(Cluster, Api(Pod=[pod("a", "10.244.0.5"), pod("b", "10.79.0.9")])), OURS)
    assert facts.taken == (UsedNetwork("pods", "10.79.0.9/32", "pod training/b"),)


def test_a_kind_that_may_not_be_read_is_said_and_nothing_is_called_a_leak() -> None:
    api = Api(Pod=ApiError(403, "Forbidden", "pods is forbidden", "GET /api/v1/pods"))
    api.kinds[WHEREABOUTS] = [leases(_3="training/gone")]
    facts = observe(typing.cast(Cluster, api), OURS)
    assert facts.leaks == ()
    assert facts.errors == ("GET /api/v1/pods: pods is forbidden",)


def test_an_attachment_that_says_nothing_is_named() -> None:
    facts = observe(
        typing.cast(
            Cluster, Api(NetworkAttachmentDefinition=[{"metadata": {"name": "n", "namespace": "x"}, "spec": {}}])
        ),
        OURS,
    )
    assert facts.unclear == ("x/n: its spec.config is empty, so its configuration is in a file on the nodes",)


def static(namespace: str, name: str, count: int) -> dict[str, typing.Any]:
    """A NetworkAttachmentDefinition that gives this many addresses."""
    config = {
        "type": "macvlan",
        "ipam": {
            "type": "static",
            "addresses": [{"address": f"10.9.{number // 256}.{number % 256}/32"} for number in range(count)],
        },
    }
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"config": json.dumps(config)}}


def test_the_attachments_of_one_tenant_keep_no_others_from_being_compared() -> None:
    many = [static("tenant", f"n{number}", 60) for number in range(1000)]
    facts = observe(
        typing.cast(
            Cluster, Api(NetworkAttachmentDefinition=[static("tenant", "huge", 65), *many, static("other", "plain", 1)])
        ),
        OURS,
    )
    assert len(facts.taken) < 600 and UsedNetwork("attachment", "10.9.0.0/32", "other/plain", "static") in facts.taken
    assert facts.unclear == (
        "tenant/huge: it assigns addresses from more than 64 networks",
        "namespace tenant has more than 512 networks in its NetworkAttachmentDefinitions",
    )


def test_only_the_api_server_s_own_service_is_asked_for() -> None:
    api = Api()
    assert observe(typing.cast(Cluster, api), OURS).errors == ()
    assert [namespace for kind, namespace in api.asked if kind == "Service"] == ["default"]


def test_no_answer_is_an_error() -> None:
    with pytest.raises(ApiError):
        observe(typing.cast(Cluster, Api(Node=ApiError(0, "Unreachable", "no answer", "GET /api/v1/nodes"))), OURS)


@pytest.mark.parametrize("address", ["garbage", "0.0.0.0/0", "127.0.0.1", "10.0.0.0/8", None])
def test_what_one_node_shows_instead_of_its_address_is_of_that_node_alone(address: typing.Optional[str]) -> None:
    nodes = [
        {"metadata": {"name": name}, "spec": {}, "status": {"addresses": [{"type": "InternalIP", "address": shown}]}}
        for name, shown in (("worker-1", "10.78.0.11"), ("evil", address))
    ]
    facts = observe(typing.cast(Cluster, Api(Node=nodes)), OURS)
    assert (facts.taken, facts.errors) == (
        (UsedNetwork("node", "10.78.0.11/32", "node worker-1", node="worker-1"),),
        (),
    )
    assert [item.node for item in facts.unread] == ["evil"]


def test_what_a_kubelet_writes_of_its_pods_instead_of_addresses_is_of_its_node_alone() -> None:
    wrong = {
        "metadata": {"name": "p", "namespace": "tenant"},
        "spec": {"nodeName": "evil"},
        "status": {"podIPs": [{"ip": "010.1.2.3"}]},
    }
    nowhere = {**wrong, "metadata": {"name": "q", "namespace": "tenant"}, "spec": {}}
    facts = observe(typing.cast(Cluster, Api(Pod=[wrong, pod("b", "10.244.1.2")])), ())
    assert (
        facts.errors == ()
        and [(item.node, "podIPs" in item.why) for item in facts.unread] == [("evil", True)]
        and facts.pods == 1
    )
    assert observe(typing.cast(Cluster, Api(Pod=[nowhere])), ()).errors != ()
    # the pod is there, so what whereabouts keeps for it is no leak
    kept = {"IPPool.whereabouts.cni.cncf.io": [leases(_1="tenant/p")]}
    assert observe(typing.cast(Cluster, Api(**kept, Pod=[wrong])), ()).leaks == ()
    assert len(observe(typing.cast(Cluster, Api(**kept, Pod=[])), ()).leaks) == 1
