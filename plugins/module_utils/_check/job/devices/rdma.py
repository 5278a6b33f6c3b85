# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the network devices that a job claims from DRANET have RDMA. DRANET also offers NICs without RDMA, such as
those of the front-end network. Check id: ``job.device_claims``.
"""

from __future__ import annotations

import typing

from ...._model.base.phrases import count_of
from ...._model.kubernetes.device_claims import DeviceClaims, DeviceRequest
from ...._model.run.findings import FAIL, WARN, Finding
from ..scope import LintedTemplate
from .choice import choose

#: attribute by which DRANET says whether a device has RDMA [kubernetes-sigs/dranet v1.4.0]
_RDMA = "dra.net/rdma"
_CHECK, _EXPECTED = "job.device_claims", "network devices with RDMA"
_SELECT = (
    'Add the selector device.attributes["dra.net"].rdma == true to the request or to its DeviceClass, then create the'
    " claim and the job again."
)


def check_rdma(scope: LintedTemplate, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Report network devices without RDMA: a failure if no claim of the pods can provide a device with RDMA, and a
    warning if a claim can provide devices of both kinds. A job with another source of RDMA devices, or one that
    disables RDMA, has no finding.

    :param scope: pod template of a job, and the cluster in which it would run
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    if scope.tcp or scope.devices or _may_get_devices(scope):
        return
    claims = [(item.name, known.find(scope.job.namespace, item)) for item in scope.template.device_claims]
    requests = [(name, request) for name, claim in claims if claim is not None for request in claim.requests]
    network = [(name, item) for name, item in requests if any(known.use_of(kind) == "network" for kind in item.classes)]
    offered = [(name, _list_rdma(request, known)) for name, request in network]
    if any(None in values or False not in values for _name, values in offered):
        return
    none = all(True not in values for _name, values in offered)
    for name, values in offered:
        subject, without = f"{scope.subject} {name}", values.count(False)
        if none:
            why = "DRANET reports no RDMA for any device that this claim can provide, so NCCL sends over TCP."
            measured = f"{count_of(len(values), 'device')} without RDMA"
            yield Finding(_CHECK, subject, FAIL, measured, _EXPECTED, why, _SELECT)
        elif True in values:
            why = (
                "The claim can provide devices with and without RDMA. With a device without RDMA, NCCL sends over TCP."
            )
            measured = f"{without} of {count_of(len(values), 'device')} without RDMA"
            yield Finding(_CHECK, subject, WARN, measured, _EXPECTED, why, _SELECT)


def _may_get_devices(scope: LintedTemplate) -> bool:
    """Return whether a network of the annotation can bring RDMA devices into the pods: an attachment that is unknown
    or has a resource of a device plugin, or any attachment of privileged pods. A bare macvlan brings no device.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    attachments = [item for _request, item in scope.attachments()]
    if any(item is None or item.problem or item.resource for item in attachments):
        return True
    return bool(attachments) and all(container.privileged for container in scope.workers)


def _list_rdma(request: DeviceRequest, known: DeviceClaims) -> list[typing.Optional[bool]]:
    """Return for each device that a request can provide whether it has RDMA; None if DRANET does not report it.

    :param request: request of a claim
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    found: list[typing.Optional[bool]] = []
    for way in request.ways:
        choice = choose(way, known)
        if choice is None:
            return [None]
        for devices in (*choice.sure.values(), *choice.doubted.values()):
            values = [(device.attributes or {}).get(_RDMA) for device in devices]
            found += [value if isinstance(value, bool) else None for value in values]
    return found
