# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the clocks of the nodes with the clock of the controller. Check id: ``discover.clock``, judged in stage
discover.

Certificates, tokens and Leases expire by the clock of the machine that reads them, and logs of two nodes are compared
by their times. The transfer time of an answer is unknown, so an offset is a range: from the node's time minus the time
of the answer, to the node's time minus the time of the request.
"""

from __future__ import annotations

import typing

from ..._model.node.clock import NodeClock, ObservedClock
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

CHECK = "discover.clock"
#: seconds; apart by so much or more for sure. Tokens and certificates that were just made are refused; Kerberos, for
#: one, forgives 300 s, TLS nothing
MOST_APART = 30.0
#: seconds; a time service keeps a clock better than this by a factor of a hundred
TELLS_APART = 2.0
#: a time service without a mark in the kernel: chronyd without rtcsync
_UNSYNCHRONISED = (
    "The kernel's clock is not marked as kept by a time service, so it may drift: none runs, it has not reached its"
    " servers, or it is chronyd without rtcsync."
)

#: seconds that a node is ahead of the controller, at least and at most
Range = tuple[float, float]


def check(clocks: typing.Mapping[str, ObservedClock]) -> list[Finding]:
    """Return a finding for each node. If all nodes agree with each other and differ from the controller, add a finding
    on the controller's clock, and compare each node with the other nodes.
    """
    ranges = {
        name: _compute_clock_offset(seen.value)
        for name, seen in clocks.items()
        if seen.value is not None and seen.error is None
    }
    known = {name: found for name, found in ranges.items() if found is not None}
    if _controller_is_off(known.values()):
        return [
            _check_controller(known),
            *(_check_node(name, seen, _compute_relative_offset(known, name)) for name, seen in clocks.items()),
        ]
    return [_check_node(name, seen, ranges.get(name)) for name, seen in clocks.items()]


def _compute_clock_offset(clock: NodeClock) -> typing.Optional[Range]:
    if clock.asked is None or clock.answered is None or clock.answered < clock.asked:
        return None
    return clock.seconds - clock.answered, clock.seconds - clock.asked


def _find_least(found: Range) -> float:
    """Return the smallest possible difference between two clocks in seconds, from the range of their offset."""
    return max(found[0], -found[1], 0.0)


def _controller_is_off(ranges: typing.Iterable[Range]) -> bool:
    """Return whether the controller's clock is wrong and not those of the nodes: there are two or more nodes, all of
    them differ by at least ``MOST_APART`` seconds, and the ranges of their offsets overlap.
    """
    found = list(ranges)
    return (
        len(found) > 1
        and all(_find_least(item) >= MOST_APART for item in found)
        and max(low for low, _high in found) <= min(high for _low, high in found)
    )


def _compute_relative_offset(known: typing.Mapping[str, Range], name: str) -> typing.Optional[Range]:
    """Return the offset range of a node in seconds, relative to the middle of the range that all nodes have in common.
    Return None if the offset of the node is unknown.

    :param known: offset range of each node
    """
    if name not in known:
        return None
    low, high = known[name]
    middle = (max(item[0] for item in known.values()) + min(item[1] for item in known.values())) / 2
    return low - middle, high - middle


def _check_controller(known: typing.Mapping[str, Range]) -> Finding:
    low, high = max(item[0] for item in known.values()), min(item[1] for item in known.values())
    measured = f"{_format_offset_range((-high, -low))} {len(known)} nodes, which agree"
    why = (
        "All nodes show the same time and this machine another one, so certificates and tokens that are good on the"
        " nodes may be refused here."
    )
    return Finding(
        CHECK,
        "controller",
        FAIL,
        measured,
        _describe_expected_offset(),
        why,
        "Set the clock of this machine: chronyc makestep, or timedatectl set-ntp true.",
    )


def _check_node(name: str, seen: ObservedClock, found: typing.Optional[Range]) -> Finding:
    clock = seen.value
    if clock is None or seen.error is not None:
        why, remedy = (
            f"node_info gave no answer: {seen.error or 'its answer is empty'}.",
            f"Make {name} answer: see its finding discover.node.",
        )
        return Finding(CHECK, name, UNKNOWN, "no answer", _describe_expected_offset(), why, remedy)
    if found is None:
        why = (
            "The answer was not stamped with the time of the controller, or the controller's clock was set back"
            " meanwhile."
        )
        return Finding(CHECK, name, UNKNOWN, "not compared", _describe_expected_offset(), why, "Run the stage again.")
    measured, least = f"{_format_offset_range(found)} the controller", _find_least(found)
    step = (
        f"On {name}: chronyc makestep, then chronyc tracking; without chrony: timedatectl set-ntp true, then"
        " timedatectl timesync-status."
    )
    if least >= MOST_APART:
        why = (
            "Certificates, tokens and Leases hold by the clock of who reads them, and the logs of this node can't be"
            " put beside those of others."
        )
        return Finding(CHECK, name, FAIL, measured, _describe_expected_offset(), why, step)
    if max(map(abs, found)) >= MOST_APART:
        why = f"The answer took {found[1] - found[0]:.0f} s, so that a clock that is off by as much would not be seen."
        return Finding(
            CHECK,
            name,
            UNKNOWN,
            measured,
            _describe_expected_offset(),
            why,
            f"Find out why {name} answers so slowly (load, ssh, DNS), then run the stage again.",
        )
    if least >= TELLS_APART:
        return Finding(
            CHECK, name, WARN, measured, _describe_expected_offset(), "No time service keeps both clocks.", step
        )
    if clock.synchronised is None:
        why = "The kernel did not say whether a time service keeps its clock (adjtimex was refused), so it may drift."
        return Finding(
            CHECK,
            name,
            WARN,
            measured,
            _describe_expected_offset(),
            why,
            f"Run chronyc tracking, or timedatectl, on {name}.",
        )
    if not clock.synchronised:
        remedy = (
            f"On {name}: systemctl enable --now chronyd, with rtcsync in its configuration; chronyc tracking shows what"
            " it follows."
        )
        return Finding(
            CHECK, name, WARN, f"{measured}, not synchronised", _describe_expected_offset(), _UNSYNCHRONISED, remedy
        )
    return ok(CHECK, name, f"{measured}, synchronised", _describe_expected_offset())


def _describe_expected_offset() -> str:
    return f"less than {TELLS_APART:.0f} s apart, synchronised"


def _format_offset_range(found: Range) -> str:
    """Return an offset range as text, such as ``within 0.5 s of``. The caller appends the name of the other clock."""
    low, high = found
    if low <= 0 <= high:
        return f"within {max(-low, high):.1f} s of"
    near, far = sorted(map(abs, found))
    return f"{_format_span(near)} to {_format_span(far)} {'ahead of' if low > 0 else 'behind'}"


def _format_span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
