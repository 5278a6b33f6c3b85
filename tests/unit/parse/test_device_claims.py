# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of Dynamic Resource Allocation, and what the devices of their classes are."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.device_claims import (
    DeviceAlternative,
    DeviceClaim,
    DeviceClaims,
    DeviceClass,
    DeviceMatch,
    DeviceRequest,
    DeviceSlice,
    PodClaim,
    SliceDevice,
    TakenClaim,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.dra.device_claims import (
    read_claim,
    read_class,
    read_compute_domain,
    read_pod_claims,
    read_slice,
    read_taken_claims,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError


def named(kind: str, spec: typing.Any, **metadata: str) -> dict[str, typing.Any]:
    return {"kind": kind, "metadata": {"name": "nics", **metadata}, "spec": spec}


def request(**way: typing.Any) -> dict[str, typing.Any]:
    return {"devices": {"requests": [{"name": "nic", **way}]}}


def test_a_claim_has_the_classes_of_each_request_in_the_order_of_its_ways() -> None:
    spec = {
        "devices": {
            "requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}},
                *request()["devices"]["requests"],
            ]
        }
    }
    spec["devices"]["requests"][1]["firstAvailable"] = [
        {"name": "a", "deviceClassName": "dranet"},
        {"name": "b", "deviceClassName": "sriov"},
    ]
    wanted = (
        DeviceRequest("gpu", (DeviceAlternative("gpu.nvidia.com", 8),)),
        DeviceRequest("nic", (DeviceAlternative("dranet"), DeviceAlternative("sriov"))),
    )
    assert read_claim(named("ResourceClaim", spec)) == DeviceClaim("default/nics", False, wanted)
    assert read_claim(named("ResourceClaimTemplate", {"spec": spec}, namespace="training")) == DeviceClaim(
        "training/nics", True, wanted
    )
    # of v1beta1
    assert read_claim(named("ResourceClaim", request(deviceClassName="dra.net"))).requests == (
        DeviceRequest("nic", (DeviceAlternative("dra.net"),)),
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"devices": []}, ""),
        (request(), "deviceClassName"),
        (request(exactly=[1]), "exactly is not a mapping"),
        ({"devices": {"requests": [{"exactly": {"deviceClassName": "a"}}]}}, "requests: name"),
        (request(exactly={"deviceClassName": "A B"}), "deviceClassName"),
        (
            {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "a"}}] * 33}},
            "33 entries; the limit is 32",
        ),
    ],
)
def test_what_is_no_claim_is_refused(spec: typing.Any, said: str) -> None:
    if not said:
        assert read_claim(named("ResourceClaim", spec)).requests == ()
        return
    with pytest.raises(ResourceError, match=said):
        read_claim(named("ResourceClaim", spec))


def test_all_devices_of_a_node_are_one_at_least() -> None:
    (found,) = read_claim(
        named("ResourceClaim", request(exactly={"deviceClassName": "a", "allocationMode": "All"}))
    ).requests
    assert found.ways == (DeviceAlternative("a", 1),) and found.classes == ("a",)
    with pytest.raises(ResourceError, match="count"):
        read_claim(named("ResourceClaim", request(exactly={"deviceClassName": "a", "count": "many"})))


SLICE = {
    "driver": "dra.net",
    "pool": {"name": "worker-1", "generation": 3, "resourceSliceCount": 1},
    "nodeName": "worker-1",
    "devices": [{"name": "a"}] * 2,
}


def test_a_slice_has_some_devices_of_a_node() -> None:
    assert read_slice(named("ResourceSlice", SLICE)) == DeviceSlice(
        "dra.net", "worker-1", 3, "worker-1", 2, (SliceDevice({}), SliceDevice({}))
    )
    assert read_slice(named("ResourceSlice", {**SLICE, "nodeName": None, "allNodes": True})).node == ""
    for wrong, said in (
        ({"driver": "A b"}, "driver"),
        ({"pool": {}}, "pool: name"),
        ({"devices": [{}] * 129}, "the limit is 128"),
        ({"devices": 1}, "devices"),
    ):
        with pytest.raises(ResourceError, match=said):
            read_slice(named("ResourceSlice", {**SLICE, **wrong}))


def test_a_device_has_attributes_of_the_driver_and_of_others() -> None:
    attributes = {
        "rdma": {"bool": True},
        "dra.net/ifName": {"string": "eth1"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "numaNode": {"int": 0},
        "release": {"version": "1.2.3"},
        "names": {"strings": ["a"]},
        "odd": 1,
    }
    read: dict[str, typing.Any] = {
        "dra.net/rdma": True,
        "dra.net/ifName": "eth1",
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
        "dra.net/numaNode": 0,
        "dra.net/release": None,
        "dra.net/names": None,
        "dra.net/odd": None,
    }
    device = {"name": "a", "attributes": attributes}
    taint = {"key": "a", "effect": "NoSchedule"}
    for found, tainted in (
        (device, False),
        # of v1beta1
        ({"name": "a", "basic": {"attributes": attributes}}, False),
        ({**device, "taints": [taint]}, True),
        ({**device, "taints": [{**taint, "effect": "None"}]}, False),
    ):
        assert read_slice(named("ResourceSlice", {**SLICE, "devices": [found]})).members == (
            SliceDevice(read, tainted),
        )
    for wrong in ({"a b": {"int": 1}}, {f"a{number}": {"int": 1} for number in range(33)}):
        with pytest.raises(ResourceError, match="attribute"):
            read_slice(named("ResourceSlice", {**SLICE, "devices": [{"name": "a", "attributes": wrong}]}))


def test_selectors_tolerations_and_constraints_of_a_claim() -> None:
    spec = request(
        exactly={
            "deviceClassName": "dranet",
            "selectors": [{"cel": {"expression": "true"}}],
            "tolerations": [{"operator": "Exists"}],
        }
    )
    spec["devices"]["constraints"] = [
        {"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": ["nic"]},
        {"distinctAttribute": "dra.net/ifName"},
    ]
    found = read_claim(named("ResourceClaim", spec))
    assert found.requests == (DeviceRequest("nic", (DeviceAlternative("dranet", 1, ("true",), True),)),)
    assert found.matches == (DeviceMatch("resource.kubernetes.io/pcieRoot", ("nic",)),)
    spec["devices"]["constraints"] = [{"matchAttribute": "a", "requests": "nic"}]
    with pytest.raises(ResourceError, match="requests is not a list"):
        read_claim(named("ResourceClaim", spec))


def test_compute_domain_makes_the_template_of_its_channel() -> None:
    spec: dict[str, typing.Any] = {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "channel"}}}
    found = read_compute_domain({**named("ComputeDomain", spec, namespace="training")})
    wanted = (DeviceRequest("channel", (DeviceAlternative("compute-domain-default-channel.nvidia.com"),)),)
    assert found == DeviceClaim("training/channel", True, wanted, nodes=2)
    with pytest.raises(ResourceError, match="channel"):
        read_compute_domain(named("ComputeDomain", {}))


def test_devices_are_counted_by_node_and_of_the_newest_generation_of_their_pool() -> None:
    slices = (
        DeviceSlice("dra.net", "a", 2, "worker-1", 4),
        DeviceSlice("dra.net", "a", 2, "worker-1", 3),
        DeviceSlice("dra.net", "a", 1, "worker-1", 90),
        DeviceSlice("dra.net", "b", 1, "worker-2", 6),
        DeviceSlice("dra.net", "c", 1, "", 1),
        DeviceSlice("gpu.nvidia.com", "a", 1, "worker-1", 8),
    )
    known = DeviceClaims(slices=slices)
    assert [known.count_devices(driver) for driver in ("dra.net", "gpu.nvidia.com", "other.example")] == [8, 8, 0]
    # a slice of one node is not about the pool of another one
    forged = DeviceSlice("dra.net", "a", 1 << 40, "worker-9", 0)
    assert DeviceClaims(slices=(*slices, forged)).count_devices("dra.net") == 8


@pytest.mark.parametrize(
    ("expression", "drivers"),
    [
        ('device.driver == "dra.net"', ("dra.net",)),
        ("device.driver=='dra.net' && device.attributes['dra.net'].rdma == true", ("dra.net",)),
        ('device.driver == "dra.net" || device.driver == "gpu.nvidia.com"', ("dra.net", "gpu.nvidia.com")),
        ('device.driver != "dra.net"', ()),
        ("true", ()),
        ("device.driver == '-a'", ()),
    ],
)
def test_a_class_names_its_drivers(expression: str, drivers: tuple[str, ...]) -> None:
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": "example.com/nic"}
    assert read_class(named("DeviceClass", spec)) == DeviceClass("nics", drivers, "example.com/nic", (expression,))


@pytest.mark.parametrize("selector", [{}, {"cel": {}}, {"rego": {"policy": "x"}}])
def test_a_selector_of_another_kind_names_no_driver(selector: typing.Any) -> None:
    # an empty expression is one that nothing can evaluate
    assert read_class(named("DeviceClass", {"selectors": [selector]})) == DeviceClass("nics", selectors=("",))


@pytest.mark.parametrize("expression", [1, "x" * 10_241])
def test_an_expression_that_no_api_server_takes_is_refused(expression: typing.Any) -> None:
    with pytest.raises(
        ResourceError, match="the expression of a selector is not text, or longer than the API server accepts"
    ):
        read_class(named("DeviceClass", {"selectors": [{"cel": {"expression": expression}}]}))


def test_names_are_those_of_kubernetes() -> None:
    for read in (read_claim, read_class):
        with pytest.raises(ResourceError, match="' is rejected: it is not"):
            read({"kind": "X", "metadata": {"name": "A:b"}})
        with pytest.raises(ResourceError):
            read(typing.cast(typing.Any, None))


def test_claims_of_a_pod_and_of_its_containers() -> None:
    spec = {
        "resourceClaims": [
            {"name": "rdma", "resourceClaimTemplateName": "nics"},
            {"name": "gpu", "resourceClaimName": "all"},
        ]
    }
    assert read_pod_claims(spec, "x") == (PodClaim("rdma", "nics", True), PodClaim("gpu", "all", False))
    taken = [{"name": "rdma", "request": "nic/sriov"}, {"name": "gpu"}]
    assert read_taken_claims({"resources": {"claims": taken}}, "x") == (
        TakenClaim("rdma", "nic/sriov"),
        TakenClaim("gpu"),
    )
    with pytest.raises(ResourceError, match="request"):
        read_taken_claims({"resources": {"claims": [{"name": "rdma", "request": "A b"}]}}, "x")
    for wrong in ({"name": "a"}, {"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "b"}):
        with pytest.raises(ResourceError, match="of resourceClaimName and resourceClaimTemplateName"):
            read_pod_claims({"resourceClaims": [wrong]}, "x")


def test_what_the_devices_of_a_class_are() -> None:
    classes = (
        DeviceClass("mine", ("dra.net",)),
        DeviceClass("both", ("dra.net", "gpu.nvidia.com")),
        DeviceClass("dranet", ("gpu.nvidia.com",)),
    )
    known = DeviceClaims((), classes)
    assert [known.use_of(name) for name in ("mine", "both", "dranet", "other.example")] == [
        "network",
        "unknown",
        "gpu",
        "unknown",
    ]
    assert [DeviceClaims().use_of(name) for name in ("mrdma.google.com", "mig.nvidia.com", "mine")] == [
        "network",
        "gpu",
        "unknown",
    ]
