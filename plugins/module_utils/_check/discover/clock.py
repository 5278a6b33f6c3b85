# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the clocks of the nodes with the clock of the controller. Check id: ``discover.clock``, judged in stage
discover.

Certificates, tokens and Leases expire by the clock of the machine that reads them, and logs of two nodes are compared
by their times. The transfer time of an answer is unknown, so an offset is a range: from the node's time minus the time
of the answer, to the node's time minus the time of the request.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.node.clock import NodeClock, ObservedClock
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

CHECK = "discover.clock"
#: seconds; apart by so much or more for sure. Tokens and certificates that were just made are refused; Kerberos, for
#: one, forgives 300 s, TLS nothing
MOST_APART = 30.0
#: seconds; a time service keeps a clock better than this by a factor of a hundred
TELLS_APART = 2.0
#: a time service without a mark in the kernel: chronyd without rtcsync
_UNSYNCHRONISED = (
    "The kernel reports that its clock is not synchronized, so the clock may drift: no time service runs, the time"
    " service does not reach its servers, or its option rtcsync is missing."
)

#: seconds that a node is ahead of the controller, at least and at most
Range = tuple[float, float]


def check(clocks: typing.Mapping[str, ObservedClock]) -> list[Finding]:
    """Compare the clock of each node with that of the controller, and return one finding for each node.

    If all nodes have the same time and it differs from that of the controller, add a finding on the controller's clock,
    and compare each node with the other nodes instead.

    :param clocks: reading of the clock of each node with the controller's times of request and answer, or the error, by
        node
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
    """Return the smallest possible difference between two clocks in seconds, from the range of their offset.

    :param found: smallest and largest possible offset in seconds
    """
    return max(found[0], -found[1], 0.0)


def _controller_is_off(ranges: typing.Iterable[Range]) -> bool:
    """Return whether the controller's clock is wrong and not those of the nodes: there are two or more nodes, all of
    them differ by at least ``MOST_APART`` seconds, and the ranges of their offsets overlap.

    :param ranges: offset of each node, as smallest and largest possible value in seconds
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
    :param name: name of the node
    """
    if name not in known:
        return None
    low, high = known[name]
    middle = (max(item[0] for item in known.values()) + min(item[1] for item in known.values())) / 2
    return low - middle, high - middle


def _check_controller(known: typing.Mapping[str, Range]) -> Finding:
    low, high = max(item[0] for item in known.values()), min(item[1] for item in known.values())
    measured = f"{_format_offset_range((-high, -low))} {count_of(len(known), 'node')}, which agree with each other"
    why = (
        "All nodes have the same time, and the clock of the controller differs from it. The controller may reject"
        " certificates and tokens that are valid on the nodes."
    )
    return Finding(
        CHECK,
        "controller",
        FAIL,
        measured,
        _describe_expected_offset(),
        why,
        "On the controller, run chronyc makestep, or timedatectl set-ntp true if chrony is not installed. Then run"
        " stage discover again.",
    )


def _check_node(name: str, seen: ObservedClock, found: typing.Optional[Range]) -> Finding:
    clock = seen.value
    if clock is None or seen.error is not None:
        why = (
            f"The module node_info failed on {name}, so the offset of its clock is unknown:"
            f" {format_clause(seen.error)}."
            if seen.error
            else f"The module node_info returned no clock from {name}, so the offset of its clock is unknown."
        )
        remedy = (
            f"Follow the remedy of the finding discover.node of {name}. If that finding passes, run ansible"
            f" {name} --become -m linerate.rdma.node_info, and correct the error that it prints. Then run stage"
            " discover again."
        )
        return Finding(CHECK, name, UNKNOWN, "clock not read", _describe_expected_offset(), why, remedy)
    if found is None:
        if clock.asked is None or clock.answered is None:
            why = (
                "The stored data of the node does not contain the times at which the controller queried it, so"
                " the offset of its clock is unknown."
            )
            remedy = "Run stage discover again, which stores these times."
        else:
            why = (
                f"The clock of the controller was set back by at least {clock.asked - clock.answered:.1f} s while it"
                " queried the node, so the offset could not be computed."
            )
            remedy = (
                "Run chronyc tracking on the controller until 'System time' is less than"
                f" {TELLS_APART:g} seconds slow or fast of NTP time. Then run stage discover again."
            )
        return Finding(CHECK, name, UNKNOWN, "offset unknown", _describe_expected_offset(), why, remedy)
    measured, least = f"{_format_offset_range(found)} the controller", _find_least(found)
    step = (
        f"On {name}, run chronyc makestep, then chronyc tracking. If chrony is not installed, run timedatectl set-ntp"
        " true, then timedatectl timesync-status. Then run stage discover again."
    )
    if least >= MOST_APART:
        why = (
            "Each machine checks certificates, tokens and Leases against its own clock, so this node may reject valid"
            " ones or accept expired ones. The logs of this node cannot be compared with those of other nodes."
        )
        return Finding(CHECK, name, FAIL, measured, _describe_expected_offset(), why, step)
    if max(map(abs, found)) >= MOST_APART:
        why = (
            f"The node took {found[1] - found[0]:.0f} s to answer, and the offset of its clock is known only to that"
            " accuracy."
        )
        return Finding(
            CHECK,
            name,
            UNKNOWN,
            f"somewhere {measured}",
            _describe_expected_offset(),
            why,
            f"Find the cause of the slow response of {name} (load, ssh, DNS), then run stage discover again.",
        )
    if least >= TELLS_APART:
        return Finding(
            CHECK,
            name,
            WARN,
            measured,
            _describe_expected_offset(),
            "A time service keeps clocks closer than this, so the node or the controller has no working time service.",
            step,
        )
    if clock.synchronised is None:
        why = (
            "The kernel does not report whether a time service keeps its clock (adjtimex was refused), so the clock"
            " may drift."
        )
        return Finding(
            CHECK,
            name,
            WARN,
            f"{measured}, synchronization not reported",
            _describe_expected_offset(),
            why,
            f"Run chronyc tracking or timedatectl on {name}. If the clock is synchronized, waive this finding."
            " Otherwise run systemctl enable --now chronyd there. Then run stage discover again.",
        )
    if not clock.synchronised:
        remedy = (
            f"Run chronyc tracking on {name}. If it cannot connect, run systemctl enable --now chronyd. If it shows the"
            " reference 00000000, correct the servers in chrony.conf. Otherwise add rtcsync to chrony.conf. Then run"
            " systemctl restart chronyd there, and run stage discover again."
        )
        return Finding(
            CHECK, name, WARN, f"{measured}, not synchronized", _describe_expected_offset(), _UNSYNCHRONISED, remedy
        )
    return build_pass(CHECK, name, f"{measured}, synchronized", _describe_expected_offset())


def _describe_expected_offset() -> str:
    return f"clock within {TELLS_APART:.0f} s of the controller, synchronized"


def _format_offset_range(found: Range) -> str:
    """Return an offset range as text, such as ``within 0.5 s of``. The caller appends the name of the other clock.

    :param found: smallest and largest possible offset in seconds
    """
    low, high = found
    if low <= 0 <= high:
        return f"within {max(-low, high):.1f} s of"
    near, far = sorted(map(abs, found))
    spans = dict.fromkeys((_format_span(near), _format_span(far)))
    return f"{' to '.join(spans)} {'ahead of' if low > 0 else 'behind'}"


def _format_span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
