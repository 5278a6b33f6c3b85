# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of Dynamic Resource Allocation: claims of pods, ResourceClaim, ResourceClaimTemplate, DeviceClass.

[k8s.io/api v0.37 resource/v1, v1beta1 and v1beta2]
"""

from __future__ import annotations

import re
import typing

from ..._model.boundary.kubernetes import LABEL, LABEL_KEY, SUBDOMAIN
from ..._model.device_claims import DeviceClaim, DeviceClass, PodClaim
from .resource import Resource, ResourceError, items_of, mapping_at, name_of, text_at, text_of, title_of

CLAIM, TEMPLATE, CLASS = "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"
#: requests of a claim, ways of a request, selectors of a class: what the API server takes at most
_MOST = 32
#: claims of a pod, of which the API server takes any number
_MOST_OF_A_POD = 256
_LONGEST_EXPRESSION = 10_240
#: the part of a selector, in CEL, that names a driver
_DRIVER = re.compile(r"""\bdevice\.driver\s{0,9}==\s{0,9}(["'])([a-z0-9.-]{1,253})\1""")


def read_pod_claims(spec: Resource, what: str) -> typing.Tuple[PodClaim, ...]:
    """Return the claims of a pod.

    :param spec: of the pod
    :param what: where it stands, for the message
    :raises ResourceError: another form
    """
    found = []
    for item in _few(mapping_at(spec), "resourceClaims", what, _MOST_OF_A_POD):
        name = text_of(LABEL, item.get("name"), f"{what}: resourceClaims: name")
        claim = text_at(SUBDOMAIN, item, "resourceClaimName", f"{what}: resourceClaims")
        template = text_at(SUBDOMAIN, item, "resourceClaimTemplateName", f"{what}: resourceClaims")
        if bool(claim) == bool(template):
            raise ResourceError(f"{what}: resourceClaims: {name} names {'both' if claim else 'none'} of resourceClaimName and resourceClaimTemplateName")
        found.append(PodClaim(name, claim or template, bool(template)))
    return tuple(found)


def read_taken_claims(container: Resource, what: str) -> typing.Tuple[str, ...]:
    """Return the names of the claims of its pod that a container takes.

    :param what: where it stands, for the message
    :raises ResourceError: another form
    """
    found = _few(mapping_at(container, "resources"), "claims", what, _MOST_OF_A_POD)
    return tuple(text_of(LABEL, item.get("name"), f"{what}.resources.claims: name") for item in found)


def read_claim(resource: Resource) -> DeviceClaim:
    """Return what a ResourceClaim or a ResourceClaimTemplate asks for.

    :raises ResourceError: another form
    """
    what, template = title_of(resource), mapping_at(resource).get("kind") == TEMPLATE
    devices = mapping_at(resource, *(("spec", "spec", "devices") if template else ("spec", "devices")))
    namespace = text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{what}: metadata") or "default"
    name = text_of(SUBDOMAIN, name_of(resource), f"{what}: metadata.name")
    return DeviceClaim(f"{namespace}/{name}", template, tuple(_classes(item, what) for item in _few(devices, "requests", what)))


def read_class(resource: Resource) -> DeviceClass:
    """Return a DeviceClass.

    :raises ResourceError: another form
    """
    what, spec, drivers = title_of(resource), mapping_at(resource, "spec"), []
    name = text_of(SUBDOMAIN, name_of(resource), f"{what}: metadata.name")
    for item in _few(spec, "selectors", what):
        # a selector of a later kind names no driver that is known
        expression = mapping_at(item, "cel").get("expression") or ""
        if not isinstance(expression, str) or len(expression) > _LONGEST_EXPRESSION:
            raise ResourceError(f"{what}: the expression of a selector is no text, or a longer one than the API server takes")
        drivers += [found[1] for found in _DRIVER.findall(expression) if SUBDOMAIN.fits(found[1])]
    return DeviceClass(name, tuple(dict.fromkeys(drivers)), text_at(LABEL_KEY, spec, "extendedResourceName", what))


def _classes(request: Resource, what: str) -> typing.Tuple[str, ...]:
    """The classes of a request: of v1 in ``exactly`` or ``firstAvailable``, of v1beta1 in the request itself."""
    ways = [*_few(request, "firstAvailable", what), *([mapping_at(request, "exactly")] if request.get("exactly") else [])] or [dict(request)]
    return tuple(text_of(SUBDOMAIN, way.get("deviceClassName"), f"{what}: requests: deviceClassName") for way in ways)


def _few(parent: Resource, key: str, what: str, most: int = _MOST) -> typing.List[typing.Dict[str, typing.Any]]:
    found = items_of(parent, key, what)
    if len(found) > most:
        raise ResourceError(f"{what}: {key} has {len(found)} entries; {most} are the most")
    return found
