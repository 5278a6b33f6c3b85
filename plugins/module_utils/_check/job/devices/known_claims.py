# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the device claims of a job and of the cluster, and find the purposes of the devices that they provide."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.job.job import (
    JobWorkload,
    PodContainer,
)
from ...._model.job.surroundings import JobSurroundings
from ...._model.kubernetes.device_claims import DeviceClaims, PodClaim, Use
from ...._parse.kubernetes.dra import device_claims as parse
from ...._parse.kubernetes.resource import Resource


def read_claims(resources: typing.Iterable[Resource]) -> DeviceClaims:
    """Return the device claims, ComputeDomains and DeviceClasses in a list of objects, such as those in the file of a
    job.

    :param resources: objects of any kind; other kinds are ignored
    :raises ResourceError: an object is malformed
    """
    resources = tuple(resources)
    claims = tuple(parse.read_claim(item) for item in resources if item.get("kind") in (parse.CLAIM, parse.TEMPLATE))
    domains = tuple(parse.read_compute_domain(item) for item in resources if item.get("kind") == parse.COMPUTE_DOMAIN)
    classes = tuple(parse.read_class(item) for item in resources if item.get("kind") == parse.CLASS)
    return DeviceClaims((*claims, *domains), classes)


def add_cluster(known: DeviceClaims, surroundings: typing.Optional[JobSurroundings]) -> DeviceClaims:
    """Add the claims, classes and ResourceSlices of the cluster to those from the file of a job.

    :param known: claims and classes from the file
    :param surroundings: state of the cluster; None if no cluster was queried, so that ``known`` is returned unchanged
    """
    if surroundings is None:
        return known
    unread = (
        surroundings.device_claims is None or surroundings.device_classes is None or surroundings.device_slices is None
    )
    claims, classes = (
        (*known.claims, *(surroundings.device_claims or ())),
        (*known.classes, *(surroundings.device_classes or ())),
    )
    return DeviceClaims(claims, classes, unread, surroundings.device_slices or (), surroundings.device_errors)


def add_uses(job: JobWorkload, known: DeviceClaims) -> JobWorkload:
    """Return the job with ``claimed`` set in each container: the purposes of the devices that it claims, such as
    ``network`` or ``gpu``.

    :param known: ResourceClaims and DeviceClasses from the file and from the cluster
    """
    templates = []
    for template in job.templates:
        claims = {claim.name: claim for claim in template.device_claims}
        containers = tuple(_add_uses(item, claims, job.namespace, known) for item in template.containers)
        templates.append(dataclasses.replace(template, containers=containers))
    return dataclasses.replace(job, templates=tuple(templates))


def _add_uses(
    container: PodContainer, claims: typing.Mapping[str, PodClaim], namespace: str, known: DeviceClaims
) -> PodContainer:
    taken = (item for item in container.device_claims if item.name in claims)
    uses = (use for item in taken for use in list_uses(namespace, claims[item.name], known, item.request))
    return dataclasses.replace(container, claimed=tuple(dict.fromkeys(uses)))


def list_uses(namespace: str, claim: PodClaim, known: DeviceClaims, request: str = "") -> tuple[Use, ...]:
    """Return the purposes of the devices that a claim provides, such as ``network``.

    If the claim was not found, the only purpose is ``unknown``.

    :param namespace: namespace of the job
    :param claim: claim of the pod
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    :param request: name of the request whose devices are meant; empty for all requests
    """
    found = known.find(namespace, claim)
    if found is None:
        return ("unknown",)
    return tuple(
        dict.fromkeys(known.use_of(name) for item in found.requests if item.is_named(request) for name in item.classes)
    )
