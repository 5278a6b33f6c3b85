# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that devices of the cluster match the selectors of device requests, and that the cluster has enough of them."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.text import cut_text, join_first
from ...._model.kubernetes.device_claims import (
    DeviceAlternative,
    DeviceClaim,
    DeviceClaims,
    DeviceMatch,
    DeviceRequest,
    SliceDevice,
)
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding
from .choice import DeviceChoice, choose

_CHECK = "job.device_claims"
_SHOWN = 200


def check_selectors(subject: str, claim: DeviceClaim, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Report the requests whose selectors leave too few devices on every node, and the constraints that no node can
    meet.

    :param subject: subject of the findings
    :param claim: claim of a pod
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    chosen: dict[str, tuple[DeviceRequest, list[DeviceChoice]]] = {}
    for request in claim.requests:
        choices = [choose(way, known) for way in request.ways]
        if None in choices:
            continue
        found = [item for item in choices if item is not None]
        ways = list(zip(request.ways, found))
        if all(item.most(True) < way.count for way, item in ways):
            # of what no selector takes away it is told elsewhere
            if any(item.selected for item in found):
                yield _report_none(subject, request, ways)
            continue
        if all(item.most(False) < way.count for way, item in ways):
            unevaluated = tuple(dict.fromkeys(text for item in found for text in item.unevaluated))
            if unevaluated:
                yield _report_unknown(subject, request, unevaluated)
        lacking = tuple(dict.fromkeys(name for item in found for name in item.lacking))
        if lacking:
            yield _report_lacking(subject, request, lacking)
        chosen[request.name] = request, found
    for match in claim.matches:
        yield from _check_match(subject, match, chosen, claim)


def check_totals(
    subject: str, claims: typing.Sequence[tuple[str, DeviceClaim]], known: DeviceClaims
) -> typing.Iterator[Finding]:
    """Yield a failed finding if a node can meet each of several requests of one pod for the same devices, but no node
    can meet them together. Requests with several alternatives are ignored.

    :param subject: subject of the finding
    :param claims: claims of a pod, each with its name in the pod
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    wanted: dict[DeviceAlternative, dict[str, int]] = {}
    for name, claim in claims:
        for request in claim.requests:
            # of several ways nobody knows which one is taken
            if len(request.ways) == 1:
                (way,) = request.ways
                wanted.setdefault(dataclasses.replace(way, count=1), {})[f"{name}/{request.name}"] = way.count
    for way, counts in wanted.items():
        choice = choose(way, known) if len(counts) > 1 else None
        if choice is None or any(choice.most(True) < count for count in counts.values()):
            continue
        total = sum(counts.values())
        if choice.most(True) < total:
            why = (
                f"Requests {join_first(tuple(counts), 8)} of one pod need the same devices, of class"
                f" {way.device_class}. A"
                " node has enough devices for each request, but no node has enough for all of them. The pods would"
                " stay Pending."
            )
            remedy = (
                "Request at most as many devices in each pod as a node has, or correct the selectors. Run kubectl get"
                " resourceslices -o yaml to compare them with the devices."
            )
            measured = f"at most {choice.most(True)} of {total} devices on a node"
            yield Finding(_CHECK, subject, FAIL, measured, "devices for all claims of the pod on one node", why, remedy)


def _format_selectors(request: DeviceRequest) -> str:
    """Return the selectors of a request as text for a finding.

    If the request has none, the text says that they are those of its class.
    """
    found = [cut_text(text, _SHOWN) for way in request.ways for text in way.selectors]
    return join_first(tuple(dict.fromkeys(found)), 3, "; ") or "those of its class"


def _report_none(
    subject: str, request: DeviceRequest, ways: typing.Sequence[tuple[DeviceAlternative, DeviceChoice]]
) -> Finding:
    lacking = tuple(dict.fromkeys(name for _way, item in ways for name in item.lacking))
    measured = " or ".join(
        f"at most {item.most(True)} of {way.count} requested devices on a node" for way, item in ways
    )
    why = (
        f"The selectors of request {request.name} ({_format_selectors(request)}) leave too few devices"
        " on each node, so the"
        " pods would stay Pending."
    )
    if lacking:
        why += (
            f" Some devices do not have {join_first(lacking, 3)}. A selector that names an attribute which a device"
            " does not have ends the allocation with an error."
        )
    remedy = (
        "Compare the selectors with the attributes of the devices: kubectl get resourceslices -o yaml. If some devices"
        ' do not have an attribute, test for it first in the selector: "NAME" in device.attributes["DOMAIN"] && ...'
    )
    return Finding(_CHECK, subject, FAIL, measured, "all requested devices on one node", why, remedy)


def _report_lacking(subject: str, request: DeviceRequest, lacking: typing.Sequence[str]) -> Finding:
    why = (
        f"A selector of request {request.name} names {join_first(lacking, 3)}, but some devices do not have it. If"
        " Kubernetes evaluates one of these devices first, the allocation ends with an error."
    )
    remedy = 'Test for the attribute first in the selector: "NAME" in device.attributes["DOMAIN"] && ...'
    return Finding(
        _CHECK,
        subject,
        WARN,
        f"devices without {join_first(lacking, 3)}",
        "attributes that all devices have",
        why,
        remedy,
    )


def _report_unknown(subject: str, request: DeviceRequest, unevaluated: typing.Sequence[str]) -> Finding:
    shown = join_first(tuple(cut_text(text, _SHOWN) for text in unevaluated), 3, "; ")
    why = (
        f"job_lint cannot evaluate a selector of request {request.name} ({shown}). It evaluates only comparisons of"
        " attributes with strings, numbers, true and false."
    )
    remedy = (
        "Compare the selector with the output of kubectl get resourceslices -o yaml. If a pod with this claim reaches"
        " the state Running, the selector is right: waive this finding."
    )
    return Finding(
        _CHECK, subject, UNKNOWN, "selector not evaluated", "a node with devices that match the selectors", why, remedy
    )


def _check_match(
    subject: str,
    match: DeviceMatch,
    chosen: typing.Mapping[str, tuple[DeviceRequest, list[DeviceChoice]]],
    claim: DeviceClaim,
) -> typing.Iterator[Finding]:
    """Yield a failed finding if no node can meet a constraint of a claim: the devices of its requests must have the
    same value of an attribute. A constraint on requests whose devices are not known is skipped.

    :param subject: subject of the finding
    :param match: constraint (``matchAttribute``) of the claim
    :param chosen: each request with the devices that each of its alternatives may use, by name of the request
    :param claim: claim with the constraint
    """
    named = [item.name for item in claim.requests if not match.requests or any(map(item.is_named, match.requests))]
    if not named or not set(named) <= set(chosen):
        return
    parts = [chosen[name] for name in named]
    for request, choices in parts:
        devices = [
            device for item in choices for node in (*item.sure, *item.doubted) for device in item.of_node(node, True)
        ]
        if devices and not any(_may_have(match.attribute, device) for device in devices):
            why = (
                f"All devices of the claim must have the same value of {match.attribute}, but no device that request"
                f" {request.name} can use has this attribute. The pods would stay Pending."
            )
            yield _report_match(subject, match, f"no device with {match.attribute}", why)
            return
    nodes = {node for _request, choices in parts for item in choices for node in (*item.sure, *item.doubted)} or {""}
    if any(_can_match_attribute(match.attribute, node, parts) for node in nodes):
        return
    why = (
        f"The devices of requests {', '.join(named)} must have the same value of {match.attribute}, but no node has"
        " enough devices with the same value. The pods would stay Pending."
    )
    yield _report_match(subject, match, f"no node with enough devices with the same {match.attribute}", why)


def _may_have(name: str, device: SliceDevice) -> bool:
    return device.attributes is None or name in device.attributes


def _can_match_attribute(
    name: str, node: str, parts: typing.Sequence[tuple[DeviceRequest, list[DeviceChoice]]]
) -> bool:
    """Return whether one value of an attribute is shared by enough devices of a node for all requests together.

    A device whose value is unknown counts for each value.

    :param name: name of the attribute
    :param node: name of the node
    :param parts: the requests, each with the devices that its alternatives may use
    """
    seen = [
        [
            (way.count, _list_attribute_values(name, item.of_node(node, True)))
            for way, item in zip(request.ways, choices)
        ]
        for request, choices in parts
    ]
    wanted = {value for ways in seen for _count, found in ways for value in found}
    return any(all(any(_count(value, found) >= count for count, found in ways) for ways in seen) for value in wanted)


def _list_attribute_values(
    name: str, devices: typing.Iterable[SliceDevice]
) -> list[typing.Union[str, int, bool, None]]:
    """Return the value of an attribute for each device that may have the attribute. An unknown value is None.

    :param name: name of the attribute
    :param devices: devices of one node
    """
    return [(item.attributes or {}).get(name) for item in devices if _may_have(name, item)]


def _count(
    value: typing.Union[str, int, bool, None], found: typing.Iterable[typing.Union[str, int, bool, None]]
) -> int:
    return sum(one is None or value is None or one == value for one in found)


def _report_match(subject: str, match: DeviceMatch, measured: str, why: str) -> Finding:
    remedy = (
        "Compare the constraint with the attributes of the devices: kubectl get resourceslices -o yaml. Remove the"
        " constraint, or name an attribute that the drivers of all its requests publish, such as"
        " resource.kubernetes.io/pcieRoot."
    )
    return Finding(_CHECK, subject, FAIL, measured, f"devices with the same {match.attribute}", why, remedy)
