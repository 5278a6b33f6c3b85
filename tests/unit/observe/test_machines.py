# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigs and KubeletConfigs of an earlier intent, which are found by their label."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.machines import find_labelled
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs

CONFIGS = render_host_configs(
    HostNeeds(Memlock("machine_config", limit_gib=8), ("iommu=pt",), Kubelet("single-numa-node"))
)
MEMLOCK, ARGUMENTS, KUBELET = (f"{item['kind']} {item['metadata']['name']}" for item in CONFIGS)


class Openshift:
    """A cluster with objects that others could list, and one pool that uses all MachineConfigs.

    :ivar refused: what may not be listed or read, with the status
    """

    def __init__(self, *objects: typing.Any, served: bool = True, refused: typing.Optional[dict[str, int]] = None):
        self.objects, self.served, self.refused = objects, served, refused or {}
        self.asked: list[str] = []

    def serves(self, group: str) -> bool:
        assert group == "machineconfiguration.openshift.io"
        self._ask("group")
        return self.served

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if what in self.refused:
            raise ApiError(self.refused[what], "Forbidden", "may not", what)

    def list(self, kind: str, selector: str = "") -> Listing:
        self._ask(f"list {kind}")
        if kind == "MachineConfigPool":
            source = [{"name": item["metadata"]["name"]} for item in self.objects if item["kind"] == "MachineConfig"]
            return Listing(({"metadata": {"name": "worker"}, "spec": {"configuration": {"source": source}}},), "1")
        assert selector == "app.kubernetes.io/managed-by=linerate.rdma"
        mine = (item for item in self.objects if MANAGED_BY.items() <= item["metadata"]["labels"].items())
        return Listing(tuple(item for item in mine if item["kind"] == kind), "1")

    def get(self, kind: str, _namespace: str, name: str) -> typing.Any:
        self._ask(f"get {name}")
        return next(item for item in self.objects if (item["kind"], item["metadata"]["name"]) == (kind, name))


def found(cluster: Openshift, *known: typing.Any) -> tuple[list[str], list[str]]:
    seen = find_labelled(typing.cast(Cluster, cluster), known)
    return [f"{item['kind']} {item['metadata']['name']}" for item in seen.objects], list(seen.unread)


def strange(name: str, **metadata: typing.Any) -> typing.Any:
    return {"kind": "MachineConfig", "metadata": {"name": name, "labels": {}, **metadata}}


def test_all_with_the_label_are_found_but_those_that_are_known() -> None:
    owned = strange("99-worker-generated-kubelet", labels=dict(MANAGED_BY), ownerReferences=[{"name": "linerate"}])
    cluster = Openshift(*CONFIGS, strange("00-worker"), owned)
    assert found(cluster) == ([MEMLOCK, ARGUMENTS, KUBELET], [])
    assert found(cluster, CONFIGS[0], CONFIGS[2]) == ([ARGUMENTS], [])


@pytest.mark.parametrize(("status", "unread"), [(404, 0), (403, 1)])
def test_a_cluster_without_them_is_asked_for_the_group_alone(status: int, unread: int) -> None:
    """The API server forbids to list a kind that it does not know rather than say so, if the user has few rights."""
    cluster = Openshift(served=False)
    assert found(cluster) == ([], []) and cluster.asked == ["group"]
    assert len(found(Openshift(refused={"list KubeletConfig": status}))[1]) == unread


def test_a_user_who_may_not_list_machine_configs_finds_those_of_the_pools() -> None:
    forbidden = {"list MachineConfig": 403}
    foreign = strange("99-gpu-linerate-memlock")
    cluster = Openshift(*CONFIGS, strange("00-worker"), foreign, refused=forbidden)
    assert found(cluster) == ([ARGUMENTS, MEMLOCK, KUBELET], [])
    assert "get 00-worker" not in cluster.asked
    # those of the intent are known already
    cluster.asked.clear()
    assert found(cluster, *CONFIGS) == ([], []) and [item for item in cluster.asked if item.startswith("get ")] == [
        "get 99-gpu-linerate-memlock"
    ]


@pytest.mark.parametrize("beside", ["group", "list MachineConfigPool", "get 99-worker-linerate-memlock"])
def test_what_nobody_may_read_is_told(beside: str) -> None:
    seen, unread = found(Openshift(*CONFIGS, refused={"list MachineConfig": 403, beside: 403}))
    assert MEMLOCK not in seen and unread == [f"{beside}: may not"]


@pytest.mark.parametrize("lost", ["group", "list MachineConfig", "list KubeletConfig"])
def test_without_an_api_server_nothing_is_said(lost: str) -> None:
    with pytest.raises(ApiError):
        found(Openshift(*CONFIGS, refused={lost: 0}))
