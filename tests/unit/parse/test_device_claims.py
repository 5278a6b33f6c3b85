# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of Dynamic Resource Allocation, and what the devices of their classes are."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.device_claims import DeviceClaim, DeviceClaims, DeviceClass, PodClaim
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.device_claims import read_claim, read_class, read_pod_claims, read_taken_claims
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError


def named(kind: str, spec: typing.Any, **metadata: str) -> typing.Dict[str, typing.Any]:
    return {"kind": kind, "metadata": {"name": "nics", **metadata}, "spec": spec}


def request(**way: typing.Any) -> typing.Dict[str, typing.Any]:
    return {"devices": {"requests": [{"name": "nic", **way}]}}


def test_a_claim_has_the_classes_of_each_request_in_the_order_of_its_ways() -> None:
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}}, *request()["devices"]["requests"]]}}
    spec["devices"]["requests"][1]["firstAvailable"] = [{"name": "a", "deviceClassName": "dranet"}, {"name": "b", "deviceClassName": "sriov"}]
    wanted = (("gpu.nvidia.com",), ("dranet", "sriov"))
    assert read_claim(named("ResourceClaim", spec)) == DeviceClaim("default/nics", False, wanted)
    assert read_claim(named("ResourceClaimTemplate", {"spec": spec}, namespace="training")) == DeviceClaim("training/nics", True, wanted)
    # of v1beta1
    assert read_claim(named("ResourceClaim", request(deviceClassName="dra.net"))).classes == (("dra.net",),)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"devices": []}, ""),
        (request(), "deviceClassName"),
        (request(exactly=[1]), "exactly is no mapping"),
        (request(exactly={"deviceClassName": "A B"}), "deviceClassName"),
        ({"devices": {"requests": [{"exactly": {"deviceClassName": "a"}}] * 33}}, "33 entries; 32 are the most"),
    ],
)
def test_what_is_no_claim_is_refused(spec: typing.Any, said: str) -> None:
    if not said:
        assert read_claim(named("ResourceClaim", spec)).classes == ()
        return
    with pytest.raises(ResourceError, match=said):
        read_claim(named("ResourceClaim", spec))


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
def test_a_class_names_its_drivers(expression: str, drivers: typing.Tuple[str, ...]) -> None:
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": "example.com/nic"}
    assert read_class(named("DeviceClass", spec)) == DeviceClass("nics", drivers, "example.com/nic")


@pytest.mark.parametrize("selector", [{}, {"cel": {}}, {"rego": {"policy": "x"}}])
def test_a_selector_of_another_kind_names_no_driver(selector: typing.Any) -> None:
    assert read_class(named("DeviceClass", {"selectors": [selector]})) == DeviceClass("nics")


@pytest.mark.parametrize("expression", [1, "x" * 10_241])
def test_an_expression_that_no_api_server_takes_is_refused(expression: typing.Any) -> None:
    with pytest.raises(ResourceError, match="the expression of a selector is no text, or a longer one"):
        read_class(named("DeviceClass", {"selectors": [{"cel": {"expression": expression}}]}))


def test_names_are_those_of_kubernetes() -> None:
    for read in (read_claim, read_class):
        with pytest.raises(ResourceError, match="is refused"):
            read({"kind": "X", "metadata": {"name": "A:b"}})
        with pytest.raises(ResourceError):
            read(typing.cast(typing.Any, None))


def test_claims_of_a_pod_and_of_its_containers() -> None:
    spec = {"resourceClaims": [{"name": "rdma", "resourceClaimTemplateName": "nics"}, {"name": "gpu", "resourceClaimName": "all"}]}
    assert read_pod_claims(spec, "x") == (PodClaim("rdma", "nics", True), PodClaim("gpu", "all", False))
    assert read_taken_claims({"resources": {"claims": [{"name": "rdma", "request": "nic"}]}}, "x") == ("rdma",)
    for wrong in ({"name": "a"}, {"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "b"}):
        with pytest.raises(ResourceError, match="of resourceClaimName and resourceClaimTemplateName"):
            read_pod_claims({"resourceClaims": [wrong]}, "x")


def test_what_the_devices_of_a_class_are() -> None:
    classes = (DeviceClass("mine", ("dra.net",)), DeviceClass("both", ("dra.net", "gpu.nvidia.com")), DeviceClass("dranet", ("gpu.nvidia.com",)))
    known = DeviceClaims((), classes)
    assert [known.use_of(name) for name in ("mine", "both", "dranet", "other.example")] == ["network", "unknown", "gpu", "unknown"]
    assert [DeviceClaims().use_of(name) for name in ("mrdma.google.com", "mig.nvidia.com", "mine")] == ["network", "gpu", "unknown"]
