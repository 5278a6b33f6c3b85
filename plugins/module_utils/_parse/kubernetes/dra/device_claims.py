# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects of Dynamic Resource Allocation: claims of pods, ResourceClaim, ResourceClaimTemplate, DeviceClass,
ResourceSlice.

[k8s.io/api v0.37 resource/v1, v1beta1 and v1beta2]
"""

from __future__ import annotations

import re
import sys
import typing

from ...._model.boundary.kubernetes import DEVICE_POOL, LABEL, LABEL_KEY, REQUEST_NAME, SUBDOMAIN
from ...._model.kubernetes.device_claims import (
    DeviceAlternative,
    DeviceClaim,
    DeviceClass,
    DeviceMatch,
    DeviceRequest,
    DeviceSlice,
    PodClaim,
    SliceDevice,
    TakenClaim,
)
from ..resource import Resource, ResourceError, items_of, mapping_at, name_of, number_of, text_at, text_of, title_of

CLAIM, TEMPLATE, CLASS, SLICE = "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"
#: of NVIDIA's driver for GPUs: it makes the template of its own channel, of this class
COMPUTE_DOMAIN, CHANNEL = "ComputeDomain", "compute-domain-default-channel.nvidia.com"
#: taints with these effects keep pods from a device
_TAINTS = ("NoSchedule", "NoExecute")
#: name of an attribute in a slice, with its domain where it is not that of the driver, and its longest text
_ATTRIBUTE = re.compile(r"([a-z0-9][a-z0-9.-]{0,252}/)?[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_LONGEST_VALUE = 64
#: requests of a claim, ways of a request, selectors of a class: what the API server takes at most
_MOST = 32
#: claims of a pod, of which the API server takes any number
_MOST_OF_A_POD = 256
#: devices of a slice, which the API server takes at most
_MOST_DEVICES = 128
_LONGEST_EXPRESSION = 10_240
#: the part of a selector, in CEL, that names a driver
_DRIVER = re.compile(r"""\bdevice\.driver\s{0,9}==\s{0,9}(["'])([a-z0-9.-]{1,253})\1""")


def read_pod_claims(spec: Resource, what: str) -> tuple[PodClaim, ...]:
    """Return the device claims in the spec of a pod, each with the name of its ResourceClaim or ResourceClaimTemplate.
    The result is empty if the pod has none.

    :param what: name of the pod in messages
    :raises ResourceError: the claims have an unexpected form, or there are too many
    """
    found = []
    for item in _list_bounded_entries(mapping_at(spec), "resourceClaims", what, _MOST_OF_A_POD):
        name = text_of(LABEL, item.get("name"), f"{what}: resourceClaims: name")
        claim = text_at(SUBDOMAIN, item, "resourceClaimName", f"{what}: resourceClaims")
        template = text_at(SUBDOMAIN, item, "resourceClaimTemplateName", f"{what}: resourceClaims")
        if bool(claim) == bool(template):
            raise ResourceError(
                f"{what}: resourceClaims: {name} sets {'both' if claim else 'none'} of resourceClaimName and"
                " resourceClaimTemplateName"
            )
        found.append(PodClaim(name, claim or template, bool(template)))
    return tuple(found)


def read_taken_claims(container: Resource, what: str) -> tuple[TakenClaim, ...]:
    """Return those device claims of its pod that a container uses, each with the request of the claim if the container
    names only one.

    :param what: name of the container in messages
    :raises ResourceError: the claims have an unexpected form
    """
    found = _list_bounded_entries(mapping_at(container, "resources"), "claims", what, _MOST_OF_A_POD)
    where = f"{what}.resources.claims"
    return tuple(
        TakenClaim(text_of(LABEL, item.get("name"), f"{where}: name"), text_at(REQUEST_NAME, item, "request", where))
        for item in found
    )


def read_claim(resource: Resource) -> DeviceClaim:
    """Return the device requests and the constraints of a ResourceClaim or a ResourceClaimTemplate.

    :raises ResourceError: the object has an unexpected form, or too many requests or constraints
    """
    what, template = title_of(resource), mapping_at(resource).get("kind") == TEMPLATE
    devices = mapping_at(resource, *(("spec", "spec", "devices") if template else ("spec", "devices")))
    namespace = text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{what}: metadata") or "default"
    name = text_of(SUBDOMAIN, name_of(resource), f"{what}: metadata.name")
    return DeviceClaim(
        f"{namespace}/{name}",
        template,
        tuple(_parse_device_request(item, what) for item in _list_bounded_entries(devices, "requests", what)),
        tuple(
            _parse_device_match(item, what)
            for item in _list_bounded_entries(devices, "constraints", what)
            if item.get("matchAttribute") is not None
        ),
    )


def read_compute_domain(resource: Resource) -> DeviceClaim:
    """Return the ResourceClaimTemplate that a ComputeDomain creates, in the form of a parsed claim. Pods use it to
    share memory over NVLink between machines.

    :raises ResourceError: the object has an unexpected form
    """
    what, spec = title_of(resource), mapping_at(resource, "spec")
    namespace = text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{what}: metadata") or "default"
    template = mapping_at(spec, "channel", "resourceClaimTemplate")
    name = text_of(SUBDOMAIN, template.get("name"), f"{what}: channel.resourceClaimTemplate.name")
    nodes = number_of(spec["numNodes"], f"{what}: numNodes") if spec.get("numNodes") is not None else 0
    request = DeviceRequest("channel", (DeviceAlternative(CHANNEL),))
    return DeviceClaim(f"{namespace}/{name}", True, (request,), nodes=nodes)


def _parse_device_match(constraint: Resource, what: str) -> DeviceMatch:
    """Return a constraint of a claim: requests whose devices must have the same value of an attribute.

    :param what: name of the claim, for messages
    :raises ResourceError: a value has another form
    """
    requests = constraint.get("requests") or []
    if not isinstance(requests, list) or len(requests) > _MOST:
        raise ResourceError(f"{what}: constraints: requests is not a list, or has more than {_MOST} entries")
    return DeviceMatch(
        text_of(LABEL_KEY, constraint.get("matchAttribute"), f"{what}: constraints: matchAttribute"),
        tuple(text_of(REQUEST_NAME, name, f"{what}: constraints: requests") for name in requests),
    )


def read_slice(resource: Resource) -> DeviceSlice:
    """Return the driver, the pool, the node and the devices of a ResourceSlice. The node is empty if the devices do not
    belong to one node.

    :raises ResourceError: the object has an unexpected form, or too many devices
    """
    what, spec = title_of(resource), mapping_at(resource, "spec")
    pool, devices = mapping_at(spec, "pool"), _list_bounded_entries(spec, "devices", what, _MOST_DEVICES)
    driver = text_of(SUBDOMAIN, spec.get("driver"), f"{what}: driver")
    return DeviceSlice(
        driver,
        text_of(DEVICE_POOL, pool.get("name"), f"{what}: pool: name"),
        number_of(pool.get("generation"), f"{what}: pool: generation"),
        text_at(SUBDOMAIN, spec, "nodeName", what),
        len(devices),
        tuple(_parse_slice_device(item, driver, what) for item in devices),
    )


def _parse_slice_device(device: Resource, driver: str, what: str) -> SliceDevice:
    """Parse the attributes of one device of a ResourceSlice, and whether a taint keeps pods away from it. In v1beta1
    both are below the key ``basic``.

    :param driver: driver of the slice
    :param what: name of the slice in messages
    :raises ResourceError: the device has an unexpected form, or too many attributes
    """
    basic = mapping_at(device, "basic") or device
    attributes = mapping_at(basic, "attributes")
    if len(attributes) > _MOST:
        raise ResourceError(f"{what}: a device has {len(attributes)} attributes; the limit is {_MOST}")
    tainted = any(item.get("effect") in _TAINTS for item in _list_bounded_entries(basic, "taints", what))
    return SliceDevice(
        {_attribute_name(name, driver, what): _attribute_value(item) for name, item in attributes.items()}, tainted
    )


def _attribute_name(name: typing.Any, driver: str, what: str) -> str:
    """Return the name of a device attribute with its domain, such as ``dra.net/rdma``. If the name has no domain, the
    name of the driver is used as its domain.

    :param what: name of the device in messages
    :raises ResourceError: the API server does not accept such a name
    """
    if not isinstance(name, str) or not _ATTRIBUTE.fullmatch(name):
        raise ResourceError(f"{what}: an attribute of a device has no name that the API server accepts")
    return sys.intern(name if "/" in name else f"{driver}/{name}")


def _attribute_value(item: typing.Any) -> typing.Union[str, int, bool, None]:
    """Return the value of a device attribute as text, number or boolean. Return None for a value of another type, and
    for a text of more than 64 characters.

    :param item: mapping with the key ``string``, ``int`` or ``bool``
    """
    found = (
        next((item[key] for key in ("string", "int", "bool") if key in item), None) if isinstance(item, dict) else None
    )
    if isinstance(found, str):
        return sys.intern(found) if len(found) <= _LONGEST_VALUE else None
    return found if isinstance(found, (bool, int)) else None


def read_class(resource: Resource) -> DeviceClass:
    """Return the name, the drivers, the selectors and the extended resource of a DeviceClass. The drivers are those
    that the selectors compare with ``device.driver``, each once. The extended resource is empty if the class has none.

    :raises ResourceError: the object has an unexpected form
    """
    what, spec, drivers = title_of(resource), mapping_at(resource, "spec"), []
    name = text_of(SUBDOMAIN, name_of(resource), f"{what}: metadata.name")
    selectors = _read_selectors(spec, what)
    for expression in selectors:
        drivers += [found[1] for found in _DRIVER.findall(expression) if SUBDOMAIN.fits(found[1])]
    resource_name = text_at(LABEL_KEY, spec, "extendedResourceName", what)
    return DeviceClass(name, tuple(dict.fromkeys(drivers)), resource_name, selectors)


def _read_selectors(parent: Resource, what: str) -> tuple[str, ...]:
    """Return the CEL expressions of the device selectors of an object. A selector of another kind becomes an empty
    expression, which cannot be evaluated.

    :param parent: device class or device request
    :param what: name of ``parent`` in messages
    :raises ResourceError: an expression is not text or too long, or there are too many selectors
    """
    found = []
    for item in _list_bounded_entries(parent, "selectors", what):
        expression = mapping_at(item, "cel").get("expression") or ""
        if not isinstance(expression, str) or len(expression) > _LONGEST_EXPRESSION:
            raise ResourceError(
                f"{what}: the expression of a selector is not text, or longer than the API server accepts"
            )
        found.append(expression)
    return tuple(found)


def _parse_device_request(request: Resource, what: str) -> DeviceRequest:
    """Parse a device request with its alternatives, each of which names a device class. In v1 they are below
    ``exactly`` or ``firstAvailable``, in v1beta1 in the request itself.

    :param what: name of the claim in messages
    :raises ResourceError: the request has an unexpected form
    """
    ways = [
        *_list_bounded_entries(request, "firstAvailable", what),
        *([mapping_at(request, "exactly")] if request.get("exactly") else []),
    ] or [dict(request)]
    return DeviceRequest(
        text_of(LABEL, request.get("name"), f"{what}: requests: name"),
        tuple(_parse_subrequest(item, what) for item in ways),
    )


def _parse_subrequest(way: Resource, what: str) -> DeviceAlternative:
    """Return one of the alternatives of a request. The count is 1 if it requests all devices of a node.

    :param what: name of the claim, for messages
    :raises ResourceError: a value has another form
    """
    name = text_of(SUBDOMAIN, way.get("deviceClassName"), f"{what}: requests: deviceClassName")
    count = number_of(way["count"], f"{what}: requests: count") if way.get("count") is not None else 1
    # all that a node has are one at least
    return DeviceAlternative(
        name,
        1 if way.get("allocationMode") == "All" else count,
        _read_selectors(way, what),
        bool(_list_bounded_entries(way, "tolerations", what)),
    )


def _list_bounded_entries(parent: Resource, key: str, what: str, most: int = _MOST) -> list[dict[str, typing.Any]]:
    found = items_of(parent, key, what)
    if len(found) > most:
        raise ResourceError(f"{what}: {key} has {len(found)} entries; the limit is {most}")
    return found
