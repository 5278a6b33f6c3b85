# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse forwarding tables as dump_fts prints them, with or without ``-n`` (infiniband-diags/dump_fts.c, the same from
rdma-core 28 to 64), and the file ``opensm-lfts.dump`` of opensm, which has nearly the same form (osm_dump.c).

An entry that is missing from a table is unknown. It does not mean that the switch has no path to the LID. dump_fts
leaves out ports above 127 (before rdma-core 63, where it reads them as negative), and the last LID if that is a
multiple of 64. If a switch does not answer, dump_fts prints the previous block again and reports the failure only on
its standard error.

A fabric of 10,000 hosts has nine million lines. With ``-n`` all lines have the same width, so they are split without a
loop.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..._model.infiniband.forwarding import UNTOLD, ForwardingTable

_TOOL = "dump_fts"
_BLOCK = 64
#: a description may hold anything but the end of a line
_HEAD = re.compile(
    r"Unicast lids \[(?:0x([0-9a-f]{1,4})-0x([0-9a-f]{1,4})|0-([0-9]{1,5}))\] of switch "
    r"(?:DR path slid [0-9]+; dlid [0-9]+; [0-9,]+|Lid [0-9]{1,5}) guid 0x([0-9a-f]{16}) \(.*\):\n(  Lid  Out  "
    r" Destination\n       Port     Info ?\n)?",
    re.ASCII,
)
_LINE = re.compile(r"^0x([0-9a-f]{4}) ([0-9]{3}) (?:[:#] .*)?$", re.ASCII | re.MULTILINE)
_END = re.compile(r"([0-9]{1,6}) (?:valid )?lids dumped ?\n\Z", re.ASCII)
_FAILED = re.compile(
    r"SubnGet\(LFT\) failed on switch '.{0,400}' .{0,200} Node GUID 0x([0-9a-f]{1,16}) SMA LID [0-9]+; MAD status"
    r" 0x[0-9a-f]+ AM 0x([0-9a-f]{1,4})",
    re.ASCII,
)
#: a line with -n
_WIDTH = len("0x0001 001 \n")
_LIDS = [f"0x{lid:04x}" for lid in range(0x10000)]
_LID = {text: lid for lid, text in enumerate(_LIDS)}
_PORT = {f"{port:03d}": port for port in range(256)}


def parse(text: str, stderr: str = "") -> tuple[ForwardingTable, ...]:
    """Parse the forwarding tables of all switches, in the order of the text.

    :param text: standard output of dump_fts, or the file of opensm
    :param stderr: standard error of the tool, which names the blocks of 64 LIDs that a switch did not return. These
        LIDs are unknown in the tables
    :raises ParseError: there is no table, a line has an unexpected form, a table has no end because the output was cut
        off, a switch or LID occurs twice, or ``stderr`` names a switch without a table
    """
    starts = [match.start() for match in re.finditer(r"^Unicast lids \[", text, re.MULTILINE)]
    if not starts or starts[0] != 0:
        raise ParseError(_TOOL, text.strip(), "one or more tables that begin with 'Unicast lids [0x0-0x1f] of switch'")
    failed = _parse_failed_blocks(stderr)
    tables: dict[str, ForwardingTable] = {}
    for start, end in zip(starts, [*starts[1:], len(text)]):
        table = _parse_forwarding_table(text[start:end], failed)
        if table.guid in tables:
            raise ParseError(_TOOL, table.guid, "each switch once")
        tables[table.guid] = table
    unknown = sorted(failed.keys() - tables.keys())
    if unknown:
        raise ParseError(_TOOL, unknown[0], "a switch that has a table")
    return tuple(tables.values())


def _parse_failed_blocks(stderr: str) -> dict[str, set[int]]:
    """Parse the standard error of dump_fts. Return the numbers of the blocks of 64 LIDs that a switch did not return,
    by the GUID of the switch. Lines of other errors are ignored.

    :param stderr: text on standard error
    :raises ParseError: a line that begins like the error of a block has an unexpected form
    """
    result: dict[str, set[int]] = {}
    for line in stderr.split("\n"):
        if "SubnGet" not in line:
            continue
        match = _FAILED.fullmatch(line.strip())
        if match is None:
            raise ParseError(
                f"{_TOOL}: standard error", line.strip(), "of the form 'SubnGet(LFT) failed on switch ... AM 0x1'"
            )
        result.setdefault("0x" + match.group(1).zfill(16), set()).add(int(match.group(2), 16))
    return result


def _parse_forwarding_table(text: str, failed: typing.Mapping[str, set[int]]) -> ForwardingTable:
    """Return the forwarding table of one switch. The entries of blocks that the tool could not read are unknown.

    :param text: head, entries and end of one table
    :param failed: numbers of the blocks that the tool could not read, by GUID of the switch
    :raises ParseError: the text has another form, or is incomplete
    """
    head, end = _HEAD.match(text), _END.search(text)
    if head is None:
        raise ParseError(
            _TOOL, text.partition("\n")[0], "the head of a table: range of LIDs, switch, GUID, description"
        )
    if end is None or end.start() < head.end() or text[end.start() - 1] != "\n":
        raise ParseError(
            _TOOL,
            text.rstrip("\n").rpartition("\n")[2],
            "the end of a table, '12 valid lids dumped': the output was cut off",
        )
    first_text, last_text, opensm_last, digits, titles = head.groups()
    first, last = int(first_text or "0", 16), int(last_text, 16) if last_text else int(opensm_last)
    body = text[head.end() : end.start()]
    ports, count = _parse_table_entries(body, first, last)
    # dump_fts counts its lines; opensm, which has no titles, prints the last LID
    if int(end.group(1)) != (count if titles else last):
        raise ParseError(_TOOL, end.group().strip(), f"the end of a table of {count} lines up to LID {last}")
    guid = "0x" + digits
    unread = tuple(sorted(failed.get(guid, ())))
    for block in unread:
        ports[block * _BLOCK : (block + 1) * _BLOCK] = bytes([UNTOLD]) * len(
            ports[block * _BLOCK : (block + 1) * _BLOCK]
        )
    return ForwardingTable(guid, bytes(ports), unread)


def _parse_table_entries(body: str, first: int, last: int) -> tuple[bytearray, int]:
    """Return the output port of each LID from 0 to ``last``, as bytes indexed by LID, and the number of lines in the
    table. A LID without a line has the value UNTOLD (255) instead of a port.

    :param body: lines of the table
    :param first: lowest LID of the table
    :param last: highest LID of the table
    :raises ParseError: a line has an unexpected form, or the LIDs are not ascending from ``first`` to ``last``
    """
    ports = bytearray([UNTOLD]) * (last + 1)
    count = body.count("\n")
    words = (
        body.split()
        if len(body) == _WIDTH * count and body[_WIDTH - 2 :: _WIDTH] + body[6::_WIDTH] == " " * 2 * count
        else []
    )
    if len(words) == 2 * count:
        lids, outs = words[0::2], words[1::2]
    else:
        found = _LINE.findall(body)
        if len(found) != count:
            raise _not_a_line(body)
        lids, outs = ["0x" + lid for lid, _out in found], [out for _lid, out in found]
    try:
        numbers = bytes(map(_PORT.__getitem__, outs))
        begin = _LID[lids[0]] if lids else first
        if lids == _LIDS[begin : begin + count]:
            places: typing.Sequence[int] = range(begin, begin + count)
        else:
            places = list(map(_LID.__getitem__, lids))
    except KeyError as error:
        raise _not_a_line(body, str(error.args[0])) from error
    # rising, so none is there twice
    if places and not (
        first <= places[0] and places[-1] <= last and all(one < other for one, other in zip(places, places[1:]))
    ):
        raise ParseError(_TOOL, f"{lids[0]} to {lids[-1]}", f"ascending LIDs from {first} to {last}")
    if isinstance(places, range):
        ports[places.start : places.stop] = numbers
    else:
        for place, number in zip(places, numbers):
            ports[place] = number
    return ports, count


def _not_a_line(body: str, word: str = "") -> ParseError:
    """Return the error about the first line of a table that has another form.

    :param body: lines of the table
    :param word: text that the line contains; empty: the first line that does not have the form of an entry
    """
    line = next(
        (line for line in body.split("\n") if (word in line if word else line and not _LINE.fullmatch(line))),
        body[:200],
    )
    return ParseError(_TOOL, line, "a line of a table, '0x0001 033 : (Switch portguid ...)'")
