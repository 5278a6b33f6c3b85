# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of perfquery (infiniband-diags/perfquery.c): the counters of some ports of one node. They are
PortCounters, and with ``-x`` PortCountersExtended.

All versions query one port after the other and stop at the first port that does not answer (``iberror: failed:
perfquery``, exit code 255). The output before that point is valid. Up to rdma-core 28 the tool printed zeros for the
extended errors of ports that do not support them, and older versions did not print the capabilities of a port. A
counter is therefore used only if the capability mask in the heading of the port announces it.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..._model.infiniband.counters import BITS, RCV_DATA, WIDE_BITS, XMIT_DATA, XMIT_WAIT, PortCounters

_TOOL = "perfquery"
_HEAD = re.compile(
    r"# Port (extended )?counters: Lid ([0-9]{1,6}) port ([0-9]{1,3})(?: \(CapMask: 0x([0-9A-Fa-f]{1,4})(?: CapMask2:"
    r" 0x([0-9A-Fa-f]{1,8}))?\))?",
    re.ASCII,
)
_FIELD = re.compile(r"(\w{1,60}):\.+(0x[0-9A-Fa-f]{1,16}|[0-9]{1,20})", re.ASCII)
# CapabilityMask of ClassPortInfo, and CapabilityMask2 (libibmad/iba_types.h): 64-bit counters of data, with and without
# those of unicast and multicast; PortXmitWait in PortCounters; the other counters in PortCountersExtended
_WIDE, _WAIT, _WIDE_ERRORS = 1 << 9 | 1 << 10, 1 << 12, 1 << 1
_DATA = (XMIT_DATA, RCV_DATA)
_SELECT, _SELECT_2 = "PortSelect", "CounterSelect2"
#: the last field of each block, and of the part of the extended one that not all ports have
_LAST, _LAST_WIDE, _LAST_WIDE_ERRORS = XMIT_WAIT, "PortRcvPkts", "QP1Dropped"
#: before what one node was asked for (see _render/measurement/counters.py), with its LID
ASKED = "linerate asked"
_ASKED = re.compile(rf"^{ASKED} ([0-9]{{1,6}})$", re.MULTILINE | re.ASCII)
#: that a port has, at most
_MOST_FIELDS = 60
#: of what the tool complains of
_MOST_CHARACTERS = 200


def parse(text: str) -> tuple[PortCounters, ...]:
    """Parse the counters of all ports in the output. Each port is returned once. If both kinds of counters
    (PortCounters and PortCountersExtended) were printed for a port, each counter is taken from the kind in which it has
    more bits. Other lines, such as warnings, are allowed between the ports. The result is empty if the text contains no
    port.

    :raises ParseError: the counters of a port are incomplete or belong to another port, or a value exceeds the number
        of bits of its counter
    """
    if text and not text.endswith("\n"):
        raise ParseError(_TOOL, text[-_MOST_CHARACTERS:].strip(), "a complete last line")
    found: dict[tuple[int, int], PortCounters] = {}
    lines = text.split("\n")
    for count, line in enumerate(lines):
        if not line.startswith("# Port "):
            continue
        head = _HEAD.fullmatch(line)
        if head is None:
            raise ParseError(f"{_TOOL}, line {count + 1}", line, "the heading of a port")
        port = _parse_port(head, lines, count)
        before = found.get((port.lid, port.port))
        found[port.lid, port.port] = port if before is None else _merge_counters(before, port)
    return tuple(found.values())


def _merge_counters(one: PortCounters, other: PortCounters) -> PortCounters:
    """Return one reading of a port that combines two. A counter that is in both is taken from the reading in which it
    has more bits (PortCountersExtended before PortCounters), or from the later reading if both have the same number of
    bits.

    :param one: earlier reading
    :param other: later reading
    """
    later = {name: value for name, value in other.counters.items() if name in other.wide or name not in one.wide}
    return PortCounters(one.lid, one.port, {**one.counters, **later}, tuple(dict.fromkeys((*one.wide, *other.wide))))


def _parse_port(head: typing.Match[str], lines: typing.Sequence[str], at: int) -> PortCounters:
    """Return the counters of one port in the output of perfquery.

    :param head: match of the heading line with the LID and the number of the port, which precedes the counters
    :param lines: all lines of the output
    :param at: index of the heading line in ``lines``
    :raises ParseError: the counters are incomplete or belong to another port, or a value exceeds the number of bits of
        its counter
    """
    wide, lid, number = bool(head.group(1)), int(head.group(2)), int(head.group(3))
    fields: dict[str, int] = {}
    for line in lines[at + 1 : at + 1 + _MOST_FIELDS]:
        field = _FIELD.fullmatch(line)
        if field is None:
            break
        name, value = field.groups()
        if name in fields:
            raise ParseError(f"{_TOOL}, line {at + 1}", line, "each counter of a port once")
        fields[name] = int(value, 16 if value.startswith("0x") else 10)
    last = (_LAST_WIDE_ERRORS if _SELECT_2 in fields else _LAST_WIDE) if wide else _LAST
    if fields.get(_SELECT) != number or last not in fields:
        raise ParseError(f"{_TOOL}, line {at + 1}", lines[at], f"the counters of port {number} up to {last}")
    promised = int(head.group(4) or "0", 16)
    if wide:
        names = (
            [
                name
                for name in BITS
                if name in fields and (name in _DATA or int(head.group(5) or "0", 16) & _WIDE_ERRORS)
            ]
            if promised & _WIDE
            else []
        )
    else:
        names = [name for name in BITS if name in fields and (name != XMIT_WAIT or promised & _WAIT)]
    for name in names:
        if fields[name] >> (WIDE_BITS if wide else BITS[name]):
            raise ParseError(
                f"{_TOOL}, line {at + 1}", f"{name} {fields[name]}", f"at most {WIDE_BITS if wide else BITS[name]} bits"
            )
    return PortCounters(lid, number, {name: fields[name] for name in names}, tuple(names) if wide else ())


def list_answers(text: str) -> dict[int, tuple[tuple[PortCounters, ...], str]]:
    """Parse the output for several nodes, where a line with the queried LID precedes the output for each node. This
    function never raises an error, so that an answer that cannot be parsed does not affect the other nodes.

    :returns: by LID, two values: the counters of the ports of the node, and an error text. The counters are empty if
        the answer is invalid or comes from another LID, and the text is then the reason. Otherwise the text contains
        the messages of the tool, and is empty if there are none
    """
    result: dict[int, tuple[tuple[PortCounters, ...], str]] = {}
    marks = list(_ASKED.finditer(text))
    for mark, following in zip(marks, (*marks[1:], None)):
        lid = int(mark.group(1))
        part = text[mark.end() + 1 : following.start() if following is not None else len(text)]
        complaints = dict.fromkeys(
            line.strip()
            for line in part.split("\n")
            if line.strip() and not line.startswith("# Port ") and not _FIELD.fullmatch(line)
        )
        words = "; ".join(complaints)[:_MOST_CHARACTERS]
        try:
            ports = parse(part)
        except ParseError as error:
            result[lid] = (), str(error)
            continue
        others = [port for port in ports if port.lid != lid]
        result[lid] = ((), f"LID {others[0].lid} responded instead") if others else (ports, words)
    return result
