# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``nvidia-smi --query-gpu=... --format=csv``: one line of names, then one line for each GPU.
Forms: captures of 580.159.04, its --help-query-gpu, nvml.h.

A name may be followed by its unit, as in ``clocks.max.sm [MHz]``. A value that a GPU does not have is ``[N/A]`` or
``[Not Supported]``.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError

_TOOL = "nvidia-smi"
_ADDRESS = re.compile(r"\A([0-9A-Fa-f]{8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])\Z")
_MASK = re.compile(r"\A0x[0-9A-Fa-f]{1,16}\Z")
#: bits of nvmlClocksEventReasons that slow a GPU down though nobody asked for it; idle, a power cap under load and
#: clocks that somebody set are none of these
_SLOW = ((0x08, "hw_slowdown"), (0x20, "sw_thermal"), (0x40, "hw_thermal"), (0x80, "hw_power_brake"))

#: performance states from P0, the fastest, to P15 [nvmlPstates_t of nvml.h], and PCIe generations
_LINK = re.compile(r"\AP([0-9]{1,2}) ([1-7]) ([1-7])\Z")
_UNKNOWN_FIELD = re.compile(r'Field "([^"\n]{1,200})" is not a valid field to query')

#: value of each field by name, of one GPU
Gpu = dict[str, str]


def parse_gpus(text: str, fields: typing.Sequence[str]) -> dict[str, Gpu]:
    """Return the requested fields of each GPU as texts by field, by the PCI address of the GPU as sysfs writes it
    (0000:18:00.0). A value that the GPU does not have is left out, and so is the field ``pci.bus_id``.

    :param fields: requested fields, in the order of the query, including ``pci.bus_id``
    :raises ParseError: the output has an unexpected form, another set of fields, or no GPU
    """
    lines = [line for line in text.splitlines() if line.strip()]
    names = [name.strip().partition(" [")[0] for name in lines[0].split(",")] if lines else []
    if names != list(fields):
        raise ParseError(_TOOL, lines[0] if lines else "", f"the names {', '.join(fields)}")
    found: dict[str, Gpu] = {}
    for line in lines[1:]:
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(names):
            raise ParseError(_TOOL, line, f"{len(names)} values")
        gpu = dict(zip(names, values))
        address = _parse_pci_address(gpu.pop("pci.bus_id", ""))
        if address in found:
            raise ParseError(_TOOL, line, "each GPU once")
        found[address] = {
            name: value for name, value in gpu.items() if value and not value.startswith("[") and value != "N/A"
        }
    if not found:
        raise ParseError(_TOOL, text, "at least one GPU")
    return found


def explain_slowness(mask: str) -> str:
    """Return the reasons why a GPU is slowed down, joined by ``+``: ``hw_slowdown``, ``sw_thermal``, ``hw_thermal`` and
    ``hw_power_brake``. Return ``none`` if none of these bits is set.

    :param mask: value of ``clocks_event_reasons.active``, such as ``0x0000000000000001``
    :raises ParseError: the text is not a mask
    """
    if not _MASK.match(mask):
        raise ParseError(_TOOL, mask, "a mask such as 0x0000000000000001")
    return "+".join(name for bit, name in _SLOW if int(mask, 16) & bit) or "none"


def describe_link(text: str) -> str:
    """Return the speed of the PCIe link of a GPU: ``full``, a text such as ``gen 3 of gen 5``, or ``idle``. A GPU in
    another performance state than P0 may have lowered the speed itself, so a lower speed of such a GPU is ``idle``.

    [nvidia-smi --help-query-gpu, pcie.link.gen.current: "These may be reduced when the GPU is not in use"]

    :param text: values of ``pstate``, ``pcie.link.gen.current`` and ``pcie.link.gen.max``, such as ``P0 5 5``
    :raises ParseError: the text has an unexpected form
    """
    match = _LINK.match(text)
    if not match:
        raise ParseError(_TOOL, text, "a performance state and two PCIe generations, such as P0 5 5")
    current, most = int(match.group(2)), int(match.group(3))
    if current >= most:
        return "full"
    return f"gen {current} of gen {most}" if match.group(1) == "0" else "idle"


def _parse_pci_address(text: str) -> str:
    match = _ADDRESS.match(text)
    if not match or int(match.group(1), 16) > 0xFFFF:
        raise ParseError(_TOOL, text, "a PCI address such as 00000000:18:00.0")
    return f"{int(match.group(1), 16):04x}:{match.group(2)}:{match.group(3)}.{match.group(4)}".lower()


def find_unknown_field(text: str) -> typing.Optional[str]:
    """Return the name of the first field that this nvidia-smi does not know, from its output. Return None if the output
    contains no such error.
    """
    match = _UNKNOWN_FIELD.search(text)
    return match.group(1) if match else None
