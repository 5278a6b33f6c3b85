# SPDX-License-Identifier: GPL-3.0-or-later

"""Evaluate the selectors of a device request for each device of the cluster, as far as this collection supports their
CEL expressions.
"""

from __future__ import annotations

import functools
import typing

from ...._model.base.errors import ParseError
from ...._model.kubernetes.device_claims import (
    MOST_OF_NODE,
    DeviceAlternative,
    DeviceClaims,
    SliceDevice,
)
from ...._parse.kubernetes.dra.device_selectors import Part, parse


class _Lacking(Exception):
    """The error for a selector that names an attribute which the device does not have.

    In CEL this is an error as well, on which Kubernetes aborts the allocation.
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
        """Return the devices that a node can use: its own devices, and those that are not assigned to a node by name.

        :param node: name of the node; empty for the devices that are not assigned to a node only
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


def choose(way: DeviceAlternative, known: DeviceClaims) -> typing.Optional[DeviceChoice]:
    """Return the devices that one alternative of a request may use. Return None if its DeviceClass is unknown.

    Devices of other drivers than that of the class, and nodes with implausibly many devices, are left out.

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
    """Return the value that a subexpression of a CEL expression has for a device: a text, number, truth value or list.

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
    """Return whether an ``&&`` or ``||`` expression is true for a device.

    As in CEL, an operand that decides the result takes precedence over an error in another operand, in any order.

    :param part: the expression, whose parts are the operands
    :param driver: driver of the device
    :raises _Lacking: an operand names an attribute that the device does not have, and no other operand decides
    :raises _Unknown: the value of an operand can't be determined, and no other operand decides
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
