# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: compare the bandwidth of a pair with the floor of the intent and with the best comparable pair.
Check ids: ``bandwidth.floor``, ``bandwidth.fleet``.
"""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.bounds import find_bounds
from ..._analysis.bandwidth.end_rates import NO_POD
from ..._analysis.bandwidth.floors import (
    TCP_FAIL,
    TCP_GBPS,
    TCP_SHARE,
    TCP_WARN,
    Best,
    PairLimits,
    format_gbps,
)
from ..._model.base.phrases import count_of, format_clause
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.pairs import QUEUE_PAIRS, PairResult
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .causes import add_stage

#: queue pairs that fill any link
_ENOUGH = max(count for _rate, count in QUEUE_PAIRS)
#: what to do where more queue pairs than the intent's fill the link
_MORE = "Set NCCL_IB_QPS_PER_CONNECTION=4 in jobs that use NCCL, so that each connection uses several queue pairs."


def format_queue_pairs(pair: PairResult) -> str:
    """Return the number of queue pairs of a measurement as the end of a text; empty if it is unknown."""
    if not pair.queue_pairs:
        return ""
    return f", {pair.queue_pairs} queue pair{'s' if pair.queue_pairs > 1 else ''}"


def _describe_amount(count: typing.Optional[int], size: typing.Optional[int]) -> str:
    """Return the number of queue pairs and the message size of a measurement as text.

    :param count: number of queue pairs; None if unknown, which is written as 1
    :param size: size of a message in bytes
    """
    many = count or 1
    return f"{many} queue pair{'s' if many > 1 else ''} and messages of {size} bytes"


def _format_both_rates(pair: PairResult, average: float) -> str:
    """Return the bandwidth of a pair as text. If the pair was measured again with more queue pairs, the second figure
    is added.

    :param average: bandwidth of the first measurement in Gb/s
    """
    found = pair.wider
    if found is None or found.average_gbps is None:
        return format_gbps(average)
    few = _describe_amount(pair.queue_pairs, pair.message_bytes)
    many = _describe_amount(found.queue_pairs, found.message_bytes)
    return f"{format_gbps(average)} with {few}, {format_gbps(found.average_gbps)} with {many}"


def _few_explain(ground: PairLimits, pair: PairResult, best: typing.Optional[Best]) -> bool:
    """Return whether the number of queue pairs explains why a pair is below its floor: the pair reaches the floor with
    more queue pairs, and no comparable pair reaches the floor with as few. The result is False if the floor or the
    figure with more queue pairs is unknown.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param best: best comparable pair; None if there is none
    """
    floor, proven = ground.floor(pair)[0], ground.proven(pair)
    if floor is None or proven is None or proven < floor:
        return False
    return best is None or best.average < floor or (pair.queue_pairs or 1) < best.queue_pairs


def _uses_one_path(ground: PairLimits, pair: PairResult) -> bool:
    """Return whether all queue pairs of a pair take the same path, as on InfiniBand.

    On Ethernet, switches choose a link for each queue pair, unless a flow label makes all of them one flow.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    """
    return is_infiniband(ground.fabric) or pair.flow_label is not None


def _check_proven(
    check: str, subject: str, ground: PairLimits, pair: PairResult, average: float, expected: str, explained: bool
) -> Finding:
    """Return the finding on a pair that is too slow with the configured number of queue pairs, but reaches the required
    rate with more of them. It is a warning if the number explains the low rate, else the status is ``unknown``.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pair: result of the measurement
    :param average: measured rate in Gb/s
    :param expected: expected value, as text for the finding
    :param explained: whether the number of queue pairs explains the low rate
    :raises ValueError: the pair was not measured with more queue pairs
    """
    found, same = pair.wider, _uses_one_path(ground, pair)
    if found is None:
        raise ValueError(f"{subject} was not measured with more queue pairs")
    few, many = (
        _describe_amount(pair.queue_pairs, pair.message_bytes),
        _describe_amount(found.queue_pairs, found.message_bytes),
    )
    known = find_bounds(pair, ground.pods, ground.nodes, ground.floor(pair)[0], ground.ways == 2)
    words, steps = [f"The pair is too slow with {few}, but not with {many}."], [one.remedy for one in known]
    if explained:
        what = "the path and both HCAs are" if same else "both HCAs are"
        small = " and the messages too small" if (pair.message_bytes or 0) < (found.message_bytes or 0) else ""
        words.append(
            f"Therefore {what} fast enough. In the slow measurement, the queue pairs were too few{small} to fill the"
            " link. A job that uses as few queue pairs may be as slow."
        )
        words += [] if same else ["However, with more flows, good links may hide a slow link between the switches."]
        steps += [
            _MORE,
            (
                f"Set pods.queue_pairs of the fabric to {found.queue_pairs}, so that the first measurement uses as"
                " many. If the pair is still too slow, update the firmware of both NICs to the release that their"
                " vendor recommends. Then run stage bandwidth again."
            ),
        ]
    else:
        words.append(
            "Other pairs are fast enough with as few queue pairs, so the number of queue pairs alone does not explain"
            " the result. Possible causes:"
        )
        causes = [
            "temporary load",
            "intermittent packet loss",
            "firmware, PCIe settings or CPUs of one of the two nodes that limit the rate of each queue pair",
        ]
        causes += (
            []
            if same
            else [
                "a slow link between switches, which more queue pairs hide because each queue pair is a separate flow"
                " over its own links"
            ]
        )
        words.append(f"{', '.join(causes[:-1])}, or {causes[-1]}.")
        steps += [
            (
                f"Read {_describe_errors(ground)} of both ends, and correct the cause of counters that increase. Then"
                " run stage bandwidth again on idle nodes."
            )
        ]
        steps += (
            []
            if same
            else [
                "To send all queue pairs over one path, use pods.connection: tcp and an image with perftest 23.10 or"
                " newer (--flow_label)."
            ]
        )
        steps += [
            "If the result stays and no port reports errors, compare firmware, PCIe settings and CPUs of both nodes,"
            f" and set pods.queue_pairs of the fabric to {found.queue_pairs}."
        ]
    if explained and known:
        words.append("A further cause lowers the rate of this pair. Follow its remedy first, which is the first below.")
    words += [one.why for one in known]
    return Finding(
        check,
        subject,
        WARN if explained else UNKNOWN,
        _format_both_rates(pair, average),
        expected,
        " ".join(words),
        " ".join(steps),
    )


def _describe_errors(ground: PairLimits) -> str:
    """Return the end of a remedy that names the error counters to read on the ports of the path, with the command.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    """
    return "the errors (ibqueryerrors)" if is_infiniband(ground.fabric) else "the errors and discards (ethtool -S)"


def _with_more(ground: PairLimits, pair: PairResult) -> tuple[str, str]:
    """Return a text on the repetition of a slow pair with more queue pairs, and the first step of the remedy. The step
    is empty unless the user should try more queue pairs first.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    """
    found = pair.wider
    if found is not None and ground.proven(pair) is not None:
        wide = _describe_amount(found.queue_pairs, found.message_bytes)
        return f"With {wide} the pair is too slow as well, so the number of queue pairs is not the cause.", ""
    untold = (
        f" There is no valid figure with {count_of(found.queue_pairs, 'queue pair')}:"
        f" {ground.doubt_wider(pair).rstrip('.')}."
        if found is not None
        else ""
    )
    if found is not None and not found.commands:
        # what others of its ends reached speaks for it
        return untold.strip(), ""
    if not pair.queue_pairs or pair.queue_pairs >= _ENOUGH:
        return untold.strip(), ""
    what = "one queue pair" if pair.queue_pairs == 1 else f"{pair.queue_pairs} queue pairs"
    why = (
        f"The pair was measured with {what}, which do{'es' if pair.queue_pairs == 1 else ''} not fill a fast link on"
        f" every host.{untold}"
    )
    return (
        why,
        (
            f"Before you replace anything, set pods.queue_pairs of the fabric to {_ENOUGH} and run stage bandwidth"
            " again. If the pair is still too slow, continue as follows. "
        ),
    )


def check_floor(
    subject: str, ground: PairLimits, pair: PairResult, average: float, best: typing.Optional[Best]
) -> Finding:
    """Return the finding that compares the bandwidth of a pair with its floor.

    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param average: measured rate in Gb/s
    :param best: best comparable pair; None if there is none
    """
    floor, text = ground.floor(pair)
    if floor is None:
        return Finding(
            "bandwidth.floor",
            subject,
            UNKNOWN,
            f"{format_gbps(average)}, minimum of this pair unknown",
            "at least the minimum of this pair, computed from the highest rates of its links",
            f"{text[0].upper()}{format_clause(text[1:])}.",
            _describe_unknown_floor(ground, pair),
        )
    if average >= floor:
        return build_pass("bandwidth.floor", subject, format_gbps(average), f">= {format_gbps(floor)} ({text})")
    expected = f">= {format_gbps(floor)} ({text})"
    if (ground.proven(pair) or 0.0) >= floor:
        return _check_proven(
            "bandwidth.floor", subject, ground, pair, average, expected, _few_explain(ground, pair, best)
        )
    ends = [ground.pods[end] for end in (pair.client_end, pair.server_end) if end in ground.pods]
    known = find_bounds(pair, ground.pods, ground.nodes, floor, ground.ways == 2)
    bound = "; ".join(f"{pod.node}: {pod.binding}" for pod in ends if pod.binding and not pod.far_cpus)
    why = "The pair is slower than its links allow." + (f" CPU binding of the pods: {bound}." if bound else "")
    look = "NUMA node and error counters" if is_infiniband(ground.fabric) else "NUMA node, MTU and error counters"
    remedy = (
        "Follow the remedy of the finding bandwidth.suspect, which names the end at fault, and of bandwidth.link"
        f" if there is one. If no end is named, check {look} of {pair.client} and {pair.server}. Then run stage"
        " bandwidth again."
    )
    why = " ".join([why, *(one.why for one in known)])
    remedy = add_stage(" ".join(one.remedy for one in known)) if known else remedy
    more, first = _with_more(ground, pair)
    return Finding(
        "bandwidth.floor",
        subject,
        FAIL,
        _format_both_rates(pair, average),
        expected,
        f"{why} {more}".strip(),
        f"{first}{remedy}",
    )


def _describe_unknown_floor(ground: PairLimits, pair: PairResult) -> str:
    """Return the remedy of a pair whose floor is unknown, with the nodes whose links are unknown.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    """
    without_pod: dict[str, None] = {}
    without_rate: dict[str, None] = {}
    for end, rate in zip((pair.client_end, pair.server_end), ground.ends(pair)):
        if rate.unknown:
            (without_pod if rate.unknown == NO_POD else without_rate)[end[1]] = None
    steps = [
        f"Follow the remed{'y' if len(nodes) == 1 else 'ies'} of the finding{'' if len(nodes) == 1 else 's'} {check} of"
        f" {' and '.join(nodes)}, then run stage bandwidth again."
        for check, nodes in (("bandwidth.pod", without_pod), ("bandwidth.link", without_rate))
        if nodes
    ]
    if without_rate and not without_pod:
        steps.append(
            "Or set line_rate.expected_gbps of the fabric to the rate that its links must have, and run stage bandwidth"
            " again."
        )
    return " ".join(steps)


def check_fleet(subject: str, ground: PairLimits, pair: PairResult, average: float, best: Best) -> Finding:
    """Return the finding that compares the RDMA bandwidth of a pair with the best pair of its network.

    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param average: measured rate in Gb/s
    :param best: best comparable pair
    """
    fraction = ground.fabric.line_rate.fleet_fraction
    of, others = (
        ("between rails", "others between rails") if pair.between_rails else ("of the rail", "others on the same rail")
    )
    expected = (
        f">= {format_gbps(fraction * best.average)} ({fraction:g} of the best pair {of}, {format_gbps(best.average)})"
    )
    if average >= fraction * best.average:
        return build_pass("bandwidth.fleet", subject, format_gbps(average), expected)
    if (ground.proven(pair) or 0.0) >= fraction * best.average:
        # the best pair has as few: on one way alone is a pair that reaches its floor as good
        return _check_proven(
            "bandwidth.fleet",
            subject,
            ground,
            pair,
            average,
            expected,
            _few_explain(ground, pair, best) and _uses_one_path(ground, pair),
        )
    remedy = (
        "Follow the remedy of the finding bandwidth.suspect, which names the end at fault. Then run stage bandwidth"
        " again."
    )
    if ground.kind(pair)[1] is not None:
        why = (
            f"The links of this pair support the same rate as those of {others}, so one of its ends or the path between"
            " them is at fault."
        )
        return Finding("bandwidth.fleet", subject, FAIL, _format_both_rates(pair, average), expected, why, remedy)
    now = ground.now(pair)
    if now is not None and best.now is not None and now < best.now:
        why = (
            f"The link of this pair runs at {now:g} Gb/s, and the link of the best pair at {best.now:g} Gb/s. It is"
            " unknown whether the slower link supports more, so its rate may be intended."
        )
        remedy = "Follow the remedy of the finding bandwidth.link of this pair's nodes, then run stage bandwidth again."
        return Finding("bandwidth.fleet", subject, UNKNOWN, format_gbps(average), expected, why, remedy)
    why = f"One of the ends of this pair, or the path between them, is at fault: {others} are faster."
    return Finding("bandwidth.fleet", subject, FAIL, _format_both_rates(pair, average), expected, why, remedy)


def check_tcp_fleet(subject: str, ground: PairLimits, pair: PairResult, average: float, best: Best) -> Finding:
    """Return the finding that compares the TCP bandwidth of a pair with the best pair of its network.

    CPUs limit TCP, so a loss that CPUs can explain is a warning, and a larger loss is a failure.

    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param average: measured rate in Gb/s
    :param best: best comparable pair
    """
    expected = (
        f">= {format_gbps(TCP_WARN * best.average)} ({TCP_WARN:g} of the best pair of the network,"
        f" {format_gbps(best.average)})"
    )
    if average >= TCP_WARN * best.average:
        now = ground.now(pair) if ground.fabric.line_rate.floor_gbps is None else None
        least = ground.ways * min(TCP_SHARE * now, TCP_GBPS) if now is not None else 0.0
        if now is not None and average < least:
            why = (
                f"No pair of the network is much faster, but its links run at {now:g} Gb/s, and CPUs alone do not"
                " limit TCP to so little. Possible causes: disabled offloads, a rate limit, or packet loss on a"
                " part of the path that all pairs share."
            )
            remedy = (
                f"On {pair.client} and {pair.server}, check the interface of the network: offloads (ethtool -k),"
                " rate limits (tc qdisc show) and drops (ip -s link). Correct the cause. If the rate is right,"
                " set line_rate.floor_gbps of the fabric to it, with its reason. Then run stage bandwidth again."
            )
            expected += f", and >= {format_gbps(least)}"
            return Finding("bandwidth.fleet", subject, WARN, format_gbps(average), expected, why, remedy)
        return build_pass("bandwidth.fleet", subject, format_gbps(average), expected)
    if average >= TCP_FAIL * best.average:
        why = (
            "The pair is slower than other pairs of the same network. This is not a failure, because CPUs limit TCP,"
            " and other processes may have used the CPUs at that time."
        )
        remedy = (
            f"Run stage bandwidth again while {pair.client} and {pair.server} run no other jobs. If the pair is"
            " still slow, compare the load (uptime) and the CPU model (lscpu) of the two nodes with those of a"
            " faster pair, or raise pods.cpu of the fabric. Then run the stage once more."
        )
        return Finding("bandwidth.fleet", subject, WARN, format_gbps(average), expected, why, remedy)
    why = (
        f"The pair reaches less than {TCP_FAIL:g} of the best pair of the same network. CPUs alone do not explain"
        " this difference, so the path loses packets or a link is broken."
    )
    remedy = (
        "Follow the remedy of the finding bandwidth.suspect, which names the end at fault. At that end, check errors"
        " and drops (ip -s link), duplex, MTU and rate limits (tc qdisc). Then run stage bandwidth again."
    )
    return Finding("bandwidth.fleet", subject, FAIL, format_gbps(average), expected, why, remedy)
