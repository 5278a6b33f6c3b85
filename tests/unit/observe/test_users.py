# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of others that an operator serves, and that keep it."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.users import (
    find_gpu_pods,
    find_sriov_users,
    fold_users,
    keep_operator,
    name_users,
)


def item(name: str, **metadata: typing.Any) -> dict[str, typing.Any]:
    return {"metadata": {"name": name, "namespace": "ops", **metadata}}


class Served:
    """:ivar statuses: HTTP status of kinds that are not listed"""

    def __init__(self, objects: dict[str, list[typing.Any]], **statuses: int) -> None:
        self.objects, self.statuses = objects, statuses

    def list(self, kind: str, selector: str = "") -> Listing:
        if kind in self.statuses:
            raise ApiError(self.statuses[kind], "Forbidden", "no", "GET")
        return Listing(tuple(self.objects.get(kind, ())), "1")


def test_what_neither_the_collection_nor_an_operator_made_is_of_a_user() -> None:
    objects = [
        item("theirs"),
        item("copied", labels=MANAGED_BY, managedFields=[{"manager": "kubectl"}]),
        item("ours", labels=MANAGED_BY, managedFields=[{"manager": "linerate.rdma"}]),
        item("default"),
        item("made", ownerReferences=[{"uid": "o"}]),
        item("going", deletionTimestamp="now"),
    ]
    seen = Served({"SriovNetworkNodePolicy": objects}, SriovIBNetwork=404)
    assert find_sriov_users(typing.cast(Cluster, seen)) == (
        "SriovNetworkNodePolicy ops/theirs",
        "SriovNetworkNodePolicy ops/copied",
    )
    assert name_users("SriovNetworkNodeState", [item("worker-1")]) == []
    assert name_users("NicClusterPolicy", [{"metadata": {"name": "a"}}]) == ["NicClusterPolicy a"]


def test_what_may_not_be_listed_keeps_nothing_secret() -> None:
    with pytest.raises(ApiError):
        find_sriov_users(typing.cast(Cluster, Served({}, SriovNetwork=403)))


def test_of_many_some_are_named() -> None:
    users = fold_users([f"SriovNetwork ops/{number}" for number in range(500)])
    assert len(users) == 21 and keep_operator("operator x", users).why.endswith("ops/19, 480 more")


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        *(({"name": name}, True) for name in ("nvidia.com/gpu", "nvidia.com/pgpu", "nvidia.com/GH100_H100_SXM5_80GB")),
        ({"name": "nvidia.com/NVIDIA_A100-40C"}, True),
        ({"name": "rdma/shared"}, False),
        ({"name": "cpu", "runtime": "kata-qemu-nvidia-gpu"}, True),
        ({"name": "cpu", "runtime": "kata"}, False),
    ],
)
def test_gpus_of_virtual_machines_keep_the_operator_of_gpus(spec: dict[str, str], counts: bool) -> None:
    containers = [{"name": "c", "resources": {"limits": {spec["name"]: "1"}}}]
    pod = {
        "kind": "Pod",
        "metadata": {"name": "vm", "namespace": "team"},
        "spec": {"nodeName": "n1", "containers": containers, "runtimeClassName": spec.get("runtime")},
        "status": {"phase": "Running"},
    }

    class Pods:
        def pages(self, _kind: str, **_options: bool) -> typing.Iterator[typing.Any]:
            return iter([pod])

    assert find_gpu_pods(typing.cast(Cluster, Pods())) == (["Pod team/vm"] if counts else [])
