# SPDX-License-Identifier: GPL-3.0-or-later

"""The address that a pod announces is a word of its node: one of another pod, or out of the range, would have another
end measured."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.addresses import (
    find_announced_twice,
    why_outside,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.causes import CAUSES
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network, NvIpamPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import Api, run

FABRIC = Fabric(
    "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.80.0.0/22")
)
ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
NODES = ("a", "b", "c")


class Announcing(Api):
    """Pods whose nodes write another address: by the number of the pod."""

    def __init__(self, written: typing.Mapping[int, str]) -> None:
        super().__init__(NODES)
        self.written = written

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        made = super().create(definition)
        address = self.written.get(len(self.made))
        if address:
            made["metadata"]["annotations"][ANNOTATION] = json.dumps(
                [{"name": "test/net", "interface": "net1", "ips": [address]}]
            )
        return made


@pytest.mark.parametrize(
    ("wanted", "address", "outside"),
    [
        (Ipam("whereabouts", "10.80.0.0/22"), "10.80.3.254", False),
        (Ipam("whereabouts", "10.80.0.0/22"), "10.80.4.1", True),
        (Ipam("whereabouts", "10.80.0.1/22"), "10.80.0.7", False),
        (Ipam("whereabouts", "10.80.0.5-10.80.0.9/22"), "10.80.0.7", False),
        (Ipam("whereabouts", "10.80.0.0/22"), "fd00::1", True),
        (Ipam("whereabouts", "fd00::/64"), "fd00::1", False),
        (Ipam("whereabouts", "fd00::/64"), "fd01::1", True),
        (Ipam("nv-ipam", "10.80.0.0/22", pool=NvIpamPool("p")), "203.0.113.7", True),
        (Ipam("nv-ipam", "10.80.0.0/22", pool=NvIpamPool("p", create=False)), "203.0.113.7", False),
        (Ipam("whereabouts", "what nobody reads"), "203.0.113.7", False),
        (None, "203.0.113.7", False),
    ],
)
def test_an_address_out_of_a_range_that_is_known(wanted: typing.Optional[Ipam], address: str, outside: bool) -> None:
    told = why_outside(dataclasses.replace(FABRIC, ipam=wanted), address)
    assert bool(told) is outside and (address in told or not outside)


def test_each_pod_of_an_address_names_the_others() -> None:
    pods = [
        RdmaPod("compute", node, f"p-{node}", "n", address=address)
        for node, address in (("a", "10.80.0.1"), ("b", "10.80.0.1"), ("c", "10.80.0.2"))
    ]
    pods += [
        RdmaPod("compute", "d", "p-d", "n", address="10.80.0.2", error="no look"),
        RdmaPod("compute", "e", "p-e", "n"),
    ]
    assert find_announced_twice(pods) == {
        "p-a": "the pod announces the address 10.80.0.1, which is also announced by the pod p-b on b",
        "p-b": "the pod announces the address 10.80.0.1, which is also announced by the pod p-a on a",
    }


@pytest.mark.parametrize(
    ("written", "errors"),
    [
        ({}, ("", "", "")),
        ({1: "203.0.113.7"}, ("outside the range 10.0.0.0/24", "", "")),
        (
            {1: "10.0.0.2"},
            (
                "is also announced by the pod linerate-storage-b on b",
                "is also announced by the pod linerate-storage-a on a",
                "",
            ),
        ),
    ],
    ids=["own", "outside", "of another pod"],
)
def test_no_pair_is_measured_to_an_address_that_is_not_the_pods_own(
    written: dict[int, str], errors: typing.Sequence[str]
) -> None:
    facts, _lines = run(Announcing(written), NODES)
    assert [(pod.node, pod.cause) for pod in facts.pods] == [
        (node, "address" if error else "") for node, error in zip(NODES, errors)
    ]
    assert [error in pod.error and bool(error) is bool(pod.error) for pod, error in zip(facts.pods, errors)] == [
        True,
        True,
        True,
    ]
    refused = {node for node, error in zip(NODES, errors) if error}
    assert not refused & {node for pair in facts.pairs for node in (pair.client, pair.server)}
    why, remedy = CAUSES["address"][:2]
    assert "not its own" in why and ANNOTATION in remedy
