# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ibqueryerrors (infiniband-diags/ibqueryerrors.c): the error counters of all ports of a fabric
that exceed their thresholds.

The exit code of ibqueryerrors is 1 if it found errors, and 0 even if it could not start. Only the summary at the end
proves that it completed.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..._model.infiniband.error_counters import ErrorReport, PortErrors, UnreadPort

_TOOL = "ibqueryerrors"
_PORT = re.compile(r"\A   GUID 0x([0-9a-f]{1,16}) port ([0-9]{1,3}|ALL):((?: \[[^\[\]]+\])+)\Z", re.ASCII)
# a 64-bit counter is repeated with a unit: [PortRcvErrors == 1234 (1.234K)]
_COUNTER = re.compile(r" \[(\w{1,60}) == ([0-9]{1,20})( ?\([0-9.]{1,20}[A-Za-z]{0,2}\))?\]", re.ASCII)
_NODES = re.compile(r"\A## Summary: ([0-9]{1,9}) nodes checked, ([0-9]{1,9}) bad nodes found\Z", re.ASCII)
_CHECKED = re.compile(
    r"\A##          ([0-9]{1,9}) ports checked, ([0-9]{1,9}) ports have errors beyond threshold\Z", re.ASCII
)
_FAILURES = re.compile(r"\A##          ([0-9]{1,9}) PMA query failures\Z", re.ASCII)
# on stderr, by IBWARN; of classportinfo nothing is lost: the counters are asked for all the same
_UNREAD = re.compile(
    r"(?:\A|\n)ibwarn: \[[0-9]+\] \w+: (\w+) query failed on .{0,300}, Lid ([0-9]{1,6})(?: .{0,300})? port"
    r" ([0-9]{1,3})(?=\n|\Z)",
    re.ASCII,
)
_NO_COUNTER = "classportinfo"


def parse(text: str, stderr: str = "") -> ErrorReport:
    """Return the ports with error counters above the thresholds of the tool (0 unless it reads a threshold file), the
    number of ports that were checked, and the ports that did not answer. The line ``port ALL``, the sum over a switch,
    is ignored.

    :param stderr: standard error of the tool, which names the ports that did not answer
    :raises ParseError: the summary at the end is missing because the tool failed or its output was cut off, or the
        number of ports with errors differs from the number in the summary
    """
    ports: list[PortErrors] = []
    checked: typing.Optional[int] = None
    bad = failures = 0
    # not splitlines(): a node description in a heading may hold what Unicode takes for the end of a line
    for count, line in enumerate(text.split("\n"), 1):
        if line.startswith("   GUID 0x"):
            found = _parse_port(line, count)
            ports += [found] if found else []
        elif line.startswith("##"):
            summary, missed = _CHECKED.match(line), _FAILURES.match(line)
            if summary:
                checked, bad = int(summary.group(1)), int(summary.group(2))
            failures = int(missed.group(1)) if missed else failures
    if checked is None:
        raise ParseError(_TOOL, text.strip(), "a summary of the ports checked at the end")
    if len(ports) != bad:
        raise ParseError(_TOOL, f"{len(ports)} ports with errors", f"the {bad} ports that its summary reports")
    unread = [(name, UnreadPort(int(lid), int(port))) for name, lid, port in _UNREAD.findall(stderr)]
    lost = tuple(port for name, port in unread if name != _NO_COUNTER)
    return ErrorReport(tuple(ports), checked, max(failures - (len(unread) - len(lost)), len(lost)), lost)


def _parse_port(line: str, count: int) -> typing.Optional[PortErrors]:
    match = _PORT.match(line)
    counters = _COUNTER.findall(match.group(3)) if match else []
    if not match or "".join(_COUNTER.sub("", match.group(3))).strip():
        raise ParseError(f"{_TOOL}, line {count}", line, "the error counters of a port")
    if match.group(2) == "ALL":
        return None
    return PortErrors(
        f"0x{int(match.group(1), 16):016x}",
        int(match.group(2)),
        {name: int(value) for name, value, _unit in counters},
        any(unit for _name, _value, unit in counters),
    )
