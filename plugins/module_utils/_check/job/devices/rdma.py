# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the network devices that a job claims from DRANET have RDMA. DRANET also offers NICs without RDMA, such as
those of the front-end network. Check id: ``job.device_claims``.
"""

from __future__ import annotations

import typing

from ...._model.base.phrases import count_of
from ...._model.kubernetes.device_claims import DeviceClaims, DeviceRequest
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding
from ..scope import LintedTemplate
from .choice import choose

#: attribute by which DRANET says whether a device has RDMA [kubernetes-sigs/dranet v1.4.0]
_DRIVER, _RDMA = "dra.net", "dra.net/rdma"
_CHECK, _EXPECTED = "job.device_claims", "network devices with RDMA"
_SELECT = (
    'Add the selector device.attributes["dra.net"].rdma == true to the request or to its DeviceClass, then create the'
    " claim and the job again."
)
_UPDATE = (
    "Run kubectl get resourceslices -o yaml: if the attribute rdma is missing on a network device, update DRANET on its"
    " node."
)


def check_rdma(scope: LintedTemplate, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Report network devices without RDMA: a failure if no claim of the pods can provide a device with RDMA, unknown if
    DRANET does not report it for the only devices that could have it, and a warning if a claim can provide devices of
    both kinds. A job with another source of RDMA devices, or one that disables RDMA, has no finding.

    :param scope: pod template of a job, and the cluster in which it would run
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    if scope.tcp or scope.devices or _may_get_devices(scope):
        return
    claims = [(item.name, known.find(scope.job.namespace, item)) for item in scope.template.device_claims]
    requests = [(name, request) for name, claim in claims if claim is not None for request in claim.requests]
    network = [(name, item) for name, item in requests if any(known.use_of(kind) == "network" for kind in item.classes)]
    offered = [(name, _list_rdma(request, known)) for name, request in network]
    if any(values is None or set(values) <= {True} for _name, values in offered):
        return
    every = {value for _name, values in offered for value in values or ()}
    for name, values in offered:
        finding = _judge(f"{scope.subject} {name}", values or [], every)
        if finding is not None:
            yield finding


def _judge(
    subject: str, values: typing.Sequence[typing.Optional[bool]], every: typing.Container[typing.Optional[bool]]
) -> typing.Optional[Finding]:
    """Return the finding on the devices that one request of a claim can provide, none of which is sure to have RDMA.
    Return None if only another request of the job can provide devices with RDMA.

    :param values: for each device whether it has RDMA; None if DRANET does not report it
    :param every: these values of all requests
    """
    without, untold = values.count(False), values.count(None)
    counted = f"of {count_of(len(values), 'device')}"
    if True not in every and None not in every:
        why = "DRANET reports no RDMA for any device that this claim can provide, so NCCL sends over TCP."
        return Finding(_CHECK, subject, FAIL, f"{count_of(without, 'device')} without RDMA", _EXPECTED, why, _SELECT)
    if untold and True not in values:
        why = (
            f"DRANET reports for no device of this claim that it has RDMA, and reports nothing for {untold}"
            f" {counted}. Without RDMA, NCCL sends over TCP."
        )
        measured = f"RDMA not reported for {untold} {counted}"
        return Finding(_CHECK, subject, UNKNOWN, measured, _EXPECTED, why, f"{_UPDATE} {_SELECT}")
    if True in values:
        why = "The claim can provide devices with and without RDMA. With a device without RDMA, NCCL sends over TCP."
        measured = f"{without} {counted} without RDMA"
        if untold:
            measured += f", not reported for {untold}"
            why = (
                why
                if without
                else (
                    "DRANET does not report for all devices of the claim whether they have RDMA. With a device without"
                    " RDMA, NCCL sends over TCP."
                )
            )
        return Finding(_CHECK, subject, WARN, measured, _EXPECTED, why, _SELECT)
    return None


def _may_get_devices(scope: LintedTemplate) -> bool:
    """Return whether a network of the annotation can bring RDMA devices into the pods: an attachment that is unknown
    or has a resource of a device plugin, or any attachment of privileged pods. A bare macvlan brings no device.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    attachments = [item for _request, item in scope.attachments()]
    if any(item is None or item.problem or item.resource for item in attachments):
        return True
    return bool(attachments) and all(container.privileged for container in scope.workers)


def _list_rdma(request: DeviceRequest, known: DeviceClaims) -> typing.Optional[list[typing.Optional[bool]]]:
    """Return for each device that a request can provide whether it has RDMA; None for a device for which DRANET does
    not report it. Return None if the devices are unknown, or if some are not of DRANET.

    :param request: request of a claim
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    found: list[typing.Optional[bool]] = []
    for way in request.ways:
        choice = choose(way, known)
        if choice is None:
            return None
        drivers = next((item.drivers for item in known.classes if item.name == way.device_class), ())
        for devices in (*choice.sure.values(), *choice.doubted.values()):
            for device in devices:
                if drivers != (_DRIVER,) and not any(
                    name.startswith(f"{_DRIVER}/") for name in device.attributes or ()
                ):
                    return None
                value = (device.attributes or {}).get(_RDMA)
                found.append(value if isinstance(value, bool) else None)
    return found
