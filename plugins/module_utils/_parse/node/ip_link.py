# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the settings of VFs on physical functions from ``ip -json link show``. Format: iproute2 4.16 to 6.15,
ip/ipaddress.c print_vfinfo.

A missing key of a VF has one of two meanings. VLAN and priority are missing if they are 0, all others if the driver
does not report them.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.devices import INTERFACE
from ..._model.boundary.form import Range
from ..._model.boundary.numbers import RATE_MBPS, VFS, VLAN, VLAN_QOS
from ..._model.node.hca import LinkPolicy, VfAdministration
from ..limits import MIB, decode_json
from .sysfs import guid_of_bytes

_TOOL = "ip -json link show"
#: in the words of sysfs
_LINK_POLICIES: dict[str, LinkPolicy] = {"auto": "Follow", "enable": "Up", "disable": "Down"}
#: bytes. A VF takes 400 of them and an interface 900; nodes with 16 HCAs of 128 VFs, and as many pods as a kubelet
#: takes, have 2.5 MB
MOST_LINKS = 16 * MIB

Value = typing.TypeVar("Value")
Object = dict[str, typing.Any]
#: by number of the VF
Settings = dict[int, VfAdministration]


def parse_vf_settings(text: str) -> dict[str, Settings]:
    """Return the settings that the physical functions of a node apply to their VFs, by network interface and number of
    the VF. Interfaces without VFs are left out.

    :param text: output of ``ip -json link show``
    :raises ParseError: the output has an unexpected form, or two VFs of one interface have the same number
    """
    links = decode_json(text, _TOOL, most_bytes=MOST_LINKS, unique=False)
    found: dict[str, Settings] = {}
    for link in _require_objects("", links):
        vfs = _require_objects("vfinfo_list", link.get("vfinfo_list", []))
        settings = {_parse_number("vf", vf.get("vf"), VFS): _parse_administration(vf) for vf in vfs}
        name = link.get("ifname")
        if len(settings) < len(vfs):
            raise ParseError(f"{_TOOL}, vfinfo_list of {name}", str(vfs), "a list with each VF once")
        if settings:
            found[INTERFACE.of(name, f"{_TOOL}, ifname")] = settings
    return found


def _parse_administration(vf: Object) -> VfAdministration:
    """Return the settings of a VF that its physical function has made. A setting that the driver does not report is
    None.

    :param vf: entry of the VF in the output of ``ip -j link``
    :raises ParseError: a value has another form
    """
    # a VF has one VLAN at most, and yet a list of them
    vlan = next(iter(_require_objects("vlan_list", vf.get("vlan_list", []))), vf)
    rate = _require_type("rate", vf.get("rate", {}), dict, "an object")
    return VfAdministration(
        node_guid=_parse_guid(vf.get("node guid")),
        port_guid=_parse_guid(vf.get("port guid")),
        link_policy=_link_policy(vf.get("link_state")),
        vlan=_parse_number("vlan", vlan.get("vlan", 0), VLAN),
        vlan_qos=_parse_number("qos", vlan.get("qos", 0), VLAN_QOS),
        trust=_parse_flag("trust", vf.get("trust")),
        spoof_check=_parse_flag("spoofchk", vf.get("spoofchk")),
        min_tx_rate=_parse_number("min_tx", rate["min_tx"], RATE_MBPS) if "min_tx" in rate else None,
        max_tx_rate=_parse_number("max_tx", rate["max_tx"], RATE_MBPS) if "max_tx" in rate else None,
    )


def _require_type(key: str, value: typing.Any, kind: type[Value], expected: str) -> Value:
    if not isinstance(value, kind):
        raise ParseError(f"{_TOOL}, {key}", str(value), expected)
    return value


def _require_objects(key: str, value: typing.Any) -> list[Object]:
    return [
        _require_type(key, item, dict, "a list of objects")
        for item in _require_type(key, value, list, "a list of objects")
    ]


def _parse_number(key: str, value: typing.Any, known: Range) -> int:
    number = _require_type(key, value, int, "a number")
    if not known.fits(value):
        raise ParseError(f"{_TOOL}, {key}", str(value), known.expected)
    return number


def _parse_flag(key: str, value: typing.Any) -> typing.Optional[bool]:
    return None if value is None else _require_type(key, value, bool, "true or false")


def _parse_guid(value: typing.Any) -> typing.Optional[str]:
    return None if value is None else guid_of_bytes(_require_type("guid", value, str, "a GUID"))


def _link_policy(value: typing.Any) -> typing.Optional[LinkPolicy]:
    """Return the link policy of a VF. Return None if the driver does not report it.

    :raises ParseError: the value is not known
    """
    if value is None:
        return None
    policy = _LINK_POLICIES.get(_require_type("link_state", value, str, "a link state"))
    if policy is None:
        raise ParseError(f"{_TOOL}, link_state", value, f"one of {', '.join(_LINK_POLICIES)}")
    return policy
