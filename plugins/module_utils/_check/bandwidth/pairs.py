# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, pair by pair: whether rping worked, whether the measured bandwidth is valid, and whether it reaches
the floor and the best comparable pairs.
"""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.bounds import find_bounds
from ..._analysis.bandwidth.floors import NO_POD, TCP_FAIL, TCP_WARN, Best, Doubt, PairLimits, format_gbps
from ..._model.base.phrases import count_of, format_clause
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import LEFT_OUT, QUEUE_PAIRS, PairResult
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from .causes import explain_cause

#: checks of a figure
OF_FIGURE = frozenset(("bandwidth.floor", "bandwidth.fleet"))
#: round trips that rping must count
PINGS = 5
#: speeds of switches that opensm of distributions (3.3) does not know
_NEW_SPEEDS = frozenset(("NDR", "XDR"))


def on_rail(fabric: Fabric, rail: int) -> str:
    """Return the rail as part of the subject of a finding; empty if a node has only one rail.

    :param rail: rail of the pair or pod
    """
    return f" rail {rail}" if fabric.select.hcas_per_node > 1 else ""


def _format_repeat(pair: PairResult) -> str:
    """Return the number of the repetition as part of the subject of a finding; empty for the first measurement of a
    pair.
    """
    return "" if not pair.again else " again" if pair.again == 1 else f" again, look {pair.again}"


def subject_of(fabric: Fabric, pair: PairResult) -> str:
    """Return the subject of the findings on one measurement: fabric, client, direction, server, rail and repetition."""
    arrow = "<->" if fabric.bandwidth.directions == "at_once" else "->"
    client = f"{pair.client} rail {pair.rail}" if pair.between_rails else pair.client
    return f"{fabric.name} {client} {arrow} {pair.server}{on_rail(fabric, pair.server_end[0])}{_format_repeat(pair)}"


#: queue pairs that fill any link
_ENOUGH = max(count for _rate, count in QUEUE_PAIRS)
#: what to do where more queue pairs than the intent's fill the link
_MORE = (
    "Configure jobs to use several queue pairs (NCCL: NCCL_IB_QPS_PER_CONNECTION). Compare firmware, PCIe settings and"
    " CPUs of both nodes with the recommendations of the NIC's vendor."
)


def check_pair(ground: PairLimits, pair: PairResult, best: typing.Mapping[typing.Any, Best]) -> list[Finding]:
    """Check one measurement: the ping before it succeeded, its bandwidth is valid, and this bandwidth is neither below
    the floor of the intent nor far below that of the best comparable pair.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pair: result of the measurement
    :param best: best pair of each group of comparable pairs, by the key of the group
    """
    fabric = ground.fabric
    subject, tcp, doubt = subject_of(fabric, pair), pair.transport == "TCP", ground.doubt(pair)
    findings = (
        [_check_measured(subject, ground, pair, doubt)]
        if tcp
        else [_check_ping(subject, fabric, pair), _check_measured(subject, ground, pair, doubt)]
    )
    if pair.average_gbps is not None and not doubt:
        if not tcp or fabric.line_rate.floor_gbps is not None:
            findings.append(_check_floor(subject, ground, pair, pair.average_gbps, best.get(ground.kind(pair))))
        own = best.get(ground.kind(pair))
        if own is not None:
            findings.append((_check_tcp_fleet if tcp else _check_fleet)(subject, ground, pair, pair.average_gbps, own))
    if fabric.bandwidth.sweep and not tcp:
        findings.append(_check_sweep(subject, pair))
    return findings


#: what to do after an error of a tool without a text
_DMESG = (
    "Read dmesg of both nodes for errors of mlx5 or rdma_cm at the time of the run, and correct them. Then run stage"
    " bandwidth again."
)


def _check_ping(subject: str, fabric: Fabric, pair: PairResult) -> Finding:
    expected = f"{PINGS} round trips, exit code 0"
    measured = (count_of(pair.pings, "round trip") if pair.pings is not None else "no round trips") + (
        f"; {pair.ping_evidence}"
        if pair.ping_evidence
        else ", rping failed without an error message"
        if pair.ping_failure
        else ""
    )
    if pair.pings is not None and pair.pings >= PINGS and not pair.ping_failure:
        return build_pass("bandwidth.rping", subject, measured, expected)
    if pair.ping_failure:
        why, remedy = explain_cause(pair.ping_failure, fabric)
        if not pair.ping_evidence and why == explain_cause("exit_code", fabric)[0]:
            why, remedy = f"rping failed after {count_of(pair.pings or 0, 'round trip')} and printed no error.", _DMESG
        return Finding("bandwidth.rping", subject, FAIL, measured, expected, why, remedy)
    if pair.pings is None:
        return Finding(
            "bandwidth.rping",
            subject,
            UNKNOWN,
            measured,
            expected,
            *explain_cause(pair.failure if pair.failure in LEFT_OUT else "not_run", fabric),
        )
    return Finding(
        "bandwidth.rping",
        subject,
        FAIL,
        measured,
        expected,
        "rping ended before its last round trip and reported no error, so the connection is not reliable.",
        f"Run stage bandwidth again. If the finding remains: {_DMESG}",
    )


def _check_measured(subject: str, ground: PairLimits, pair: PairResult, doubt: typing.Optional[Doubt]) -> Finding:
    """Check that the measurement of a pair gave an average bandwidth and no failure, and that nothing casts doubt on
    the figure.

    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pair: result of the measurement
    :param doubt: reason why the bandwidth is not a valid measurement; None if there is none
    """
    expected = "an average in Gb/s, exit code 0"
    # a figure beside a failure is none: a killed server leaves a perfect table and exit code 1
    if pair.average_gbps is not None and pair.average_gbps > 0 and not pair.failure:
        how = (
            f"TCP, {_format_streams(pair)}"
            if pair.transport == "TCP"
            else f"{_or_unknown(pair.iterations)} messages of {_or_unknown(pair.message_bytes)}"
            f" bytes{_format_queue_pairs(pair)}"
        )
        figures = f"{format_gbps(pair.average_gbps)} average, {how}"
        if doubt:
            valid, remedy = _describe_valid_figure(doubt.kind, ground.fabric.pods.image, pair.client)
            return Finding("bandwidth.measured", subject, UNKNOWN, f"{figures}, not valid", valid, doubt.text, remedy)
        return build_pass("bandwidth.measured", subject, figures, expected)
    why, remedy = _subnet_manager(ground, pair) or explain_cause(pair.failure, ground.fabric)
    status: typing.Literal["unknown", "fail"] = (
        UNKNOWN if pair.failure in ("ping", "not_run", "pod", "other_run", *LEFT_OUT) else FAIL
    )
    return Finding("bandwidth.measured", subject, status, pair.evidence or "no bandwidth", expected, why, remedy)


def _describe_valid_figure(kind: str, image: str, client: str) -> tuple[str, str]:
    """Return the property that a valid figure has, and the remedy.

    :param kind: kind of the doubt about the figure
    :param image: image of the measuring pods
    :param client: node of the client, whose clock the figure depends on
    """
    if kind == "amount":
        return (
            "a figure of the requested messages and queue pairs",
            "If the intent was changed after the measurement, run stage bandwidth again. Otherwise run podman run --rm"
            f" --entrypoint head {image} -c 4 /usr/bin/ib_write_bw. If it does not print ELF, ib_write_bw is a script"
            " that changes the options: set pods.image to an image with the unchanged program of perftest, then run"
            " stage bandwidth again.",
        )
    if kind == "transport":
        return (
            "a figure of RDMA",
            "Follow the remedies of the findings bandwidth.pod of both nodes, then run stage bandwidth again.",
        )
    return (
        "an average in Gb/s within the capacity of the link and the peak of the measurement",
        f"Run stage bandwidth again. If the figure is still too high, the clock of {client} (the client) is wrong:"
        " compare /sys/devices/system/clocksource/clocksource0/current_clocksource there with another node (usually"
        " tsc). If it differs, search dmesg for clocksource to find the reason, correct it, and reboot the node. Then"
        " run stage bandwidth again.",
    )


def _subnet_manager(ground: PairLimits, pair: PairResult) -> typing.Optional[tuple[str, str]]:
    """Return cause and remedy of a pair whose small messages arrive and whose large ones do not, on link speeds that
    only newer subnet managers support. Return None for any other pair.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    """
    small = pair.pings is not None and pair.pings >= PINGS and not pair.ping_failure
    if pair.failure != "transport_retry" or not small or not is_infiniband(ground.fabric):
        return None
    speeds = sorted(
        {
            port.speed
            for end in (pair.client_end, pair.server_end)
            for port in ground.ports(end)
            if port.speed in _NEW_SPEEDS
        }
    )
    if not speeds:
        return None
    why, remedy = explain_cause(pair.failure, ground.fabric)
    why += (
        f" The small messages of rping arrived, so the path loses only large messages. On {speeds[0]} switches, an"
        " opensm that does not support this speed causes such a loss."
    )
    first = (
        "Find the master subnet manager (sminfo) and its release (run opensm --version on its host). If it is opensm of"
        " a Linux distribution, use NVIDIA's subnet manager instead (DOCA-OFED, UFM, or the one on the switch)."
    )
    return why, f"{first} If it is NVIDIA's subnet manager: {remedy[0].lower()}{remedy[1:]}"


def _or_unknown(number: typing.Optional[int]) -> str:
    return "unknown" if number is None else str(number)


def _format_streams(pair: PairResult) -> str:
    if pair.streams is None:
        return "an unknown number of parallel streams"
    return count_of(pair.streams, "parallel stream")


def _format_queue_pairs(pair: PairResult) -> str:
    if not pair.queue_pairs:
        return ""
    return f", {pair.queue_pairs} queue pair{'s' if pair.queue_pairs > 1 else ''}"


def _describe_amount(count: typing.Optional[int], size: typing.Optional[int]) -> str:
    """Return the number of queue pairs and the message size of a measurement as text.

    :param count: number of queue pairs; None if unknown
    :param size: size of a message in bytes; None if unknown
    """
    many = count or 1
    return f"{many} queue pair{'s' if many > 1 else ''} of {size} bytes"


def _format_both_rates(pair: PairResult, average: float) -> str:
    """Return the bandwidth of a pair as text. If the pair was measured again with more queue pairs, the second figure
    is added.

    :param average: bandwidth of the first measurement in Gb/s
    """
    found = pair.wider
    if found is None or found.average_gbps is None:
        return format_gbps(average)
    same = found.message_bytes == pair.message_bytes
    by, wide = _format_queue_pairs(pair)[2:] or "1 queue pair", "" if same else f" of {found.message_bytes} bytes"
    return f"{format_gbps(average)} with {by}, {format_gbps(found.average_gbps)} with {found.queue_pairs}{wide}"


def _few_explain(ground: PairLimits, pair: PairResult, best: typing.Optional[Best]) -> bool:
    """Return whether the number of queue pairs explains why a pair is below its floor: it reaches the floor with more
    of them, and no comparable pair reaches the floor with as few.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param best: best comparable pair; None if there is none
    """
    floor, proven = ground.floor(pair)[0], ground.proven(pair)
    if floor is None or proven is None or proven < floor:
        return False
    return best is None or best.average < floor or (pair.queue_pairs or 1) < best.queue_pairs


def _uses_one_path(ground: PairLimits, pair: PairResult) -> bool:
    """Return whether all queue pairs of a pair take the same path, which is so on InfiniBand. Ethernet switches choose
    a link for each queue pair, unless a flow label makes all of them one flow.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    """
    return is_infiniband(ground.fabric) or pair.flow_label is not None


def _check_proven(
    check: str, subject: str, ground: PairLimits, pair: PairResult, average: float, expected: str, explained: bool
) -> Finding:
    """Return a warning on a pair that is too slow with the configured number of queue pairs, but reaches the required
    rate with more of them.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pair: result of the measurement
    :param average: measured rate in Gb/s
    :param expected: expected value, as text for the finding
    :param explained: whether the number of queue pairs explains the low figure
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
        words.append(
            f"Therefore {what} verified, and the small number of queue pairs in the measurement is the cause. A job"
            " that uses as few queue pairs may be as slow."
        )
        words += [] if same else ["However, with more flows, good links may hide a slow link between the switches."]
        steps += [_MORE, f"Set pods.queue_pairs of the fabric to {found.queue_pairs} for the first measurement."]
    else:
        words.append(
            "Other pairs are fast enough with as few queue pairs, so the number of queue pairs alone does not explain"
            " the result. Possible causes:"
        )
        causes = [
            "temporary load",
            "intermittent packet loss",
            "a limit of its ends when they send with few queue pairs",
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
        steps += [f"Read {_describe_errors(ground)} of both ends, then run stage bandwidth again on idle nodes."]
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


def _check_sweep(subject: str, pair: PairResult) -> Finding:
    expected = "an average in Gb/s for each message size"
    if pair.sweep and not pair.sweep_failure:
        return build_pass(
            "bandwidth.sweep",
            subject,
            "; ".join(f"{row.message_bytes} bytes: {format_gbps(row.average_gbps)}" for row in pair.sweep),
            expected,
        )
    why = (
        "The measurement of all message sizes (bandwidth.sweep) failed, although that of one message size succeeded."
        if pair.sweep_failure
        else "The measurement of one message size failed, so the other message sizes were not measured."
    )
    remedy = (
        "Correct the error under 'measured', and raise pods.limit_seconds of the fabric if the time limit stopped the"
        " measurement. Then run stage bandwidth again."
        if pair.sweep_failure
        else "Follow the remedy of the finding bandwidth.measured of this pair, then run stage bandwidth again."
    )
    return Finding("bandwidth.sweep", subject, UNKNOWN, pair.sweep_failure or "not measured", expected, why, remedy)


def _check_floor(
    subject: str, ground: PairLimits, pair: PairResult, average: float, best: typing.Optional[Best]
) -> Finding:
    floor, text = ground.floor(pair)
    if floor is None:
        return Finding(
            "bandwidth.floor",
            subject,
            UNKNOWN,
            f"{format_gbps(average)}, minimum of this pair unknown",
            "at least a minimum that follows from the rates of the links",
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
        "Follow the remedy of the finding bandwidth.suspect, which names the end at fault, and of bandwidth.link if"
        f" there is one. Check {look} at that end. Then run stage bandwidth again."
    )
    why, remedy = " ".join([why, *(one.why for one in known)]), " ".join(one.remedy for one in known) or remedy
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


def _check_fleet(subject: str, ground: PairLimits, pair: PairResult, average: float, best: Best) -> Finding:
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


def _check_tcp_fleet(subject: str, ground: PairLimits, pair: PairResult, average: float, best: Best) -> Finding:
    """Return the finding that compares the TCP bandwidth of a pair with the best pair of its network. Processors limit
    TCP: a loss that they can explain is a warning, and a larger one is a failure.

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
        return build_pass("bandwidth.fleet", subject, format_gbps(average), expected)
    if average >= TCP_FAIL * best.average:
        why = (
            "The pair is slower than other pairs of the same network. This is not a failure, because CPUs limit TCP,"
            " and other processes may have used the CPUs at that time."
        )
        remedy = (
            "Run stage bandwidth again. If the pair is still slow, compare the CPUs of the nodes, their load, and"
            " pods.cpu of the fabric."
        )
        return Finding("bandwidth.fleet", subject, WARN, format_gbps(average), expected, why, remedy)
    why = (
        f"The pair reaches less than {TCP_FAIL:g} of the best pair of the same network. CPUs do not explain this"
        " difference. Packet loss or a broken link does."
    )
    remedy = (
        "Follow the remedy of the finding bandwidth.suspect, which names the end at fault. At that end, check errors"
        " and drops (ip -s link), duplex, MTU and rate limits (tc qdisc). Then run stage bandwidth again."
    )
    return Finding("bandwidth.fleet", subject, FAIL, format_gbps(average), expected, why, remedy)


def list_verdicts(ground: PairLimits, pairs: typing.Sequence[PairResult]) -> list[typing.Optional[bool]]:
    """Return a verdict for each pair: True if its bandwidth is valid and reaches its floors, False if it does not.

    Return None for a pair that proves nothing about its ends: its figure is not a valid measurement or belongs to
    another run, one of its ends was left out, or its two figures differ and the number of queue pairs does not explain
    why. A pair does not fail because its floor is unknown.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: measured pairs of the fabric
    """
    best = ground.best(pairs)
    result: list[typing.Optional[bool]] = []
    for pair in pairs:
        if pair.failure in (*LEFT_OUT, "other_run") or (not pair.failure and ground.doubt(pair)):
            result.append(None)
            continue
        findings = check_pair(ground, pair, best)
        statuses = [finding.status for finding in findings]
        if (
            FAIL not in statuses
            and ground.proven(pair) is not None
            and any(item.status == UNKNOWN and item.check in OF_FIGURE for item in findings)
        ):
            result.append(None)
            continue
        result.append(FAIL not in statuses and _check_measured("", ground, pair, None).status == PASS)
    return result
