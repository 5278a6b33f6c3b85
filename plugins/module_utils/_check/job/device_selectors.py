# SPDX-License-Identifier: GPL-3.0-or-later

"""Evaluate the selectors of device requests against the devices of the cluster, as far as this collection supports
their CEL expressions.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._model.base.errors import ParseError
from ..._model.base.text import cut_text, join_first
from ..._model.kubernetes.device_claims import (
    MOST_OF_NODE,
    DeviceAlternative,
    DeviceClaim,
    DeviceClaims,
    DeviceMatch,
    DeviceRequest,
    SliceDevice,
)
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding
from ..._parse.kubernetes.device_selectors import Part, parse

_CHECK = "job.device_claims"
_SHOWN = 200


class _Lacking(Exception):
    """The error for a selector that names an attribute which the device does not have. In CEL this is an error, on
    which Kubernetes aborts the allocation.
    """


class _Unknown(Exception):
    """The error for a CEL expression whose value cannot be determined: this collection does not support the expression,
    or the value of an attribute is not known.
    """


class DeviceChoice(typing.NamedTuple):
    """The devices that one alternative of a device request may use, by the class and the selectors.

    :ivar sure: devices that match, by node
    :ivar doubted: devices for which the match can't be determined, by node
    :ivar lacking: attributes that selectors name and some devices do not have
    :ivar unevaluated: selectors that can't be evaluated
    :ivar selected: whether the class or the alternative has any selector
    """

    sure: typing.Mapping[str, tuple[SliceDevice, ...]]
    doubted: typing.Mapping[str, tuple[SliceDevice, ...]]
    lacking: tuple[str, ...] = ()
    unevaluated: tuple[str, ...] = ()
    selected: bool = False

    def of_node(self, node: str, doubted: bool) -> tuple[SliceDevice, ...]:
        """Return the devices that a node can use: its own, and those that are not assigned to a node by name.

        :param node: name of the node
        :param doubted: whether to include devices for which the match can't be determined
        """
        found = [*self.sure.get(node, ()), *(self.sure.get("", ()) if node else ())]
        if doubted:
            found += [*self.doubted.get(node, ()), *(self.doubted.get("", ()) if node else ())]
        return tuple(found)

    def most(self, doubted: bool) -> int:
        """Return the largest number of matching devices that any single node can use.

        :param doubted: whether to include devices for which the match can't be determined
        """
        nodes = {*self.sure, *(self.doubted if doubted else ()), ""}
        return max(len(self.of_node(node, doubted)) for node in nodes)


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


def choose(way: DeviceAlternative, known: DeviceClaims) -> typing.Optional[DeviceChoice]:
    """Return the devices that one alternative of a request may use. Return None if its DeviceClass is unknown.

    :param way: alternative of a request: DeviceClass, selectors and number of devices
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    kind = next((item for item in known.classes if item.name == way.device_class), None)
    if kind is None:
        return None
    sure: dict[str, list[SliceDevice]] = {}
    doubted: dict[str, list[SliceDevice]] = {}
    lacking: dict[str, None] = {}
    unevaluated: dict[str, None] = {}
    selectors = (*kind.selectors, *way.selectors)
    only = kind.drivers[0] if len(kind.drivers) == 1 else ""
    for (driver, node), devices in known.members.items():
        if len(devices) > MOST_OF_NODE or (only and driver != only):
            continue
        for device in devices:
            fits: typing.Optional[bool] = None if device.tainted and way.tolerates else not device.tainted
            for text in selectors if fits is not False else ():
                try:
                    if not fits_selector(text, driver, device):
                        fits = False
                        break
                except _Lacking as error:
                    lacking[str(error)] = None
                    fits = False
                    break
                except _Unknown:
                    unevaluated[text] = None
                    fits = None
            if fits is not False:
                (sure if fits else doubted).setdefault(node, []).append(device)
    return DeviceChoice(
        {node: tuple(found) for node, found in sure.items()},
        {node: tuple(found) for node, found in doubted.items()},
        tuple(lacking),
        tuple(unevaluated),
        bool(selectors),
    )


def fits_selector(text: str, driver: str, device: SliceDevice) -> bool:
    """Return whether a device matches a selector, which is a CEL expression.

    :param text: text of the CEL expression
    :param driver: name of the driver of the device
    :raises _Lacking: the selector names an attribute that the device does not have
    :raises _Unknown: the result can't be determined
    """
    tree = _parse_selector(text)
    found = _compute_part_value(tree, driver, device) if tree is not None else None
    if not isinstance(found, bool):
        raise _Unknown
    return found


@functools.lru_cache(maxsize=512)
def _parse_selector(text: str) -> typing.Optional[Part]:
    try:
        return parse(text)
    except ParseError:
        return None


_Value = typing.Union[str, int, bool, list[typing.Any]]


def _compute_part_value(part: Part, driver: str, device: SliceDevice) -> _Value:
    """Return the value that a subexpression of a CEL expression has for a device.

    :param part: subexpression in the syntax tree
    :param driver: name of the driver of the device
    :raises _Lacking: the expression names an attribute that the device does not have
    :raises _Unknown: the value can't be determined
    """
    if part.kind == "literal" and part.value is not None:
        return part.value
    if part.kind == "driver":
        return driver
    if part.kind in ("attribute", "has"):
        return _read_attribute(part, device)
    if part.kind in ("&&", "||"):
        return _combine_parts(part, driver, device)
    if part.kind == "!":
        return not _require_boolean(part.parts[0], driver, device)
    if part.kind == "list":
        return [_compute_part_value(item, driver, device) for item in part.parts]
    if part.kind == "in" and part.parts[1].kind == "attributes":
        name = _compute_part_value(part.parts[0], driver, device)
        return _has_attribute(f"{part.parts[1].value}/{name}", device)
    if len(part.parts) == 2:
        return _compare_values(
            part.kind,
            _compute_part_value(part.parts[0], driver, device),
            _compute_part_value(part.parts[1], driver, device),
        )
    if part.kind == "lowerAscii":
        found = _compute_part_value(part.parts[0], driver, device)
        if isinstance(found, str):
            return "".join(letter.lower() if letter.isascii() else letter for letter in found)
    raise _Unknown


def _require_boolean(part: Part, driver: str, device: SliceDevice) -> bool:
    found = _compute_part_value(part, driver, device)
    if not isinstance(found, bool):
        raise _Unknown
    return found


def _combine_parts(part: Part, driver: str, device: SliceDevice) -> bool:
    """Return whether an ``&&`` or ``||`` expression is true for a device. As in CEL, an operand that decides the result
    takes precedence over an error in another operand, in any order.

    :param part: part of the parsed expression
    :param driver: driver of the device
    """
    decides, unknown = part.kind == "||", False
    lacking: typing.Optional[_Lacking] = None
    for item in part.parts:
        try:
            if _require_boolean(item, driver, device) is decides:
                return decides
        except _Lacking as error:
            lacking = error
        except _Unknown:
            unknown = True
    if unknown:
        raise _Unknown
    if lacking is not None:
        raise lacking
    return not decides


def _has_attribute(name: str, device: SliceDevice) -> bool:
    if device.attributes is None:
        raise _Unknown
    return name in device.attributes


def _read_attribute(part: Part, device: SliceDevice) -> _Value:
    name = str(part.value)
    there = _has_attribute(name, device)
    if part.kind == "has":
        return there
    if not there:
        raise _Lacking(name)
    found = (device.attributes or {})[name]
    if found is None:
        raise _Unknown
    return found


def _compare_values(sign: str, left: _Value, right: _Value) -> bool:
    if sign in ("==", "!="):
        alike = type(left) is type(right) and left == right
        return alike if sign == "==" else not alike
    if sign == "in" and isinstance(right, list):
        return any(type(left) is type(item) and left == item for item in right)
    if isinstance(left, str) and isinstance(right, str):
        if sign == "startsWith":
            return left.startswith(right)
        if sign == "endsWith":
            return left.endswith(right)
        if sign == "contains":
            return right in left
    if (
        isinstance(left, int)
        and isinstance(right, int)
        # no number of CEL
        and bool not in (type(left), type(right))
        and sign in ("<", ">", "<=", ">=")
    ):
        return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[sign]
    raise _Unknown


def _format_selectors(request: DeviceRequest) -> str:
    """Return the selectors of a request as text for a finding."""
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
    same value of an attribute.

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
    Attributes with unknown values count as equal.

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
