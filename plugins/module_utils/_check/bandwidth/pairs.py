# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, pair by pair: whether rping worked, and whether the measured bandwidth is valid. pair_floors.py
compares a valid bandwidth with the floor and with the best comparable pairs.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.bandwidth.floors import Best, Doubt, PairLimits, format_gbps
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import LEFT_OUT
from ..._model.measurement.pairs import PairResult
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from .causes import explain_cause, name_ends, spell_kinds
from .pair_floors import check_fleet, check_floor, check_tcp_fleet, format_queue_pairs

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
        else [_check_ping(subject, ground, pair), _check_measured(subject, ground, pair, doubt)]
    )
    if pair.average_gbps is not None and not doubt:
        if not tcp or fabric.line_rate.floor_gbps is not None:
            findings.append(check_floor(subject, ground, pair, pair.average_gbps, best.get(ground.kind(pair))))
        own = best.get(ground.kind(pair))
        if own is not None:
            findings.append((check_tcp_fleet if tcp else check_fleet)(subject, ground, pair, pair.average_gbps, own))
    if fabric.bandwidth.sweep and not tcp:
        findings.append(_check_sweep(subject, pair))
    return findings


def _explain(kind: str, ground: PairLimits, pair: PairResult) -> tuple[str, str]:
    """Return the cause and the remedy of a kind of failure, with the names of the nodes and pods of the pair.

    :param kind: kind of failure that a measurement reports, such as ``transport_retry``
    """
    why, remedy = explain_cause(kind, ground.fabric)
    return why, _name_ends(remedy, ground, pair)


def _name_ends(remedy: str, ground: PairLimits, pair: PairResult) -> str:
    ends = list(dict.fromkeys((pair.client_end, pair.server_end)))
    pods = [ground.pods[end].name for end in ends if end in ground.pods]
    return name_ends(remedy, list(dict.fromkeys(node for _rail, node in ends)), pods)


#: what to do after an error of a tool without a text
_DMESG = (
    "Run dmesg on both nodes, and correct errors of mlx5 or rdma_cm at the time of the run. Then run stage"
    " bandwidth again."
)


def _check_ping(subject: str, ground: PairLimits, pair: PairResult) -> Finding:
    expected = f"{PINGS} round trips, exit code 0"
    measured = (count_of(pair.pings, "round trip") if pair.pings is not None else "no round trips") + (
        f"; {pair.ping_evidence}"
        if pair.ping_evidence
        else ", rping failed without an error message"
        if pair.ping_failure
        else ""
    )
    if pair.pings is not None and pair.pings >= PINGS and not pair.ping_failure:
        return _warn_of_retries("bandwidth.rping", subject, pair, measured, expected)
    if pair.ping_failure:
        why, remedy = _explain(pair.ping_failure, ground, pair)
        if not pair.ping_evidence and why == explain_cause("exit_code", ground.fabric)[0]:
            why = f"rping failed after {count_of(pair.pings or 0, 'round trip')} and printed no error."
            remedy = _name_ends(_DMESG, ground, pair)
        return Finding("bandwidth.rping", subject, FAIL, measured, expected, why, remedy)
    if pair.pings is None:
        return Finding(
            "bandwidth.rping",
            subject,
            UNKNOWN,
            measured,
            expected,
            *_explain(pair.failure if pair.failure in LEFT_OUT else "not_run", ground, pair),
        )
    return Finding(
        "bandwidth.rping",
        subject,
        FAIL,
        measured,
        expected,
        "rping ended before its last round trip and reported no error, so the connection is not reliable.",
        _name_ends(f"Run stage bandwidth again. If the finding remains: {_DMESG}", ground, pair),
    )


def _warn_of_retries(check: str, subject: str, pair: PairResult, measured: str, expected: str) -> Finding:
    """Return a pass, or a warning if earlier attempts of the pair failed in a way that tells of the network. One
    address that is not resolved is not enough: the neighbours may not know a port that has just come up.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param measured: measured value of the last attempt
    :param expected: expected value
    """
    if not pair.retried:
        return build_pass(check, subject, measured, expected)
    kinds = collections.Counter(pair.retried)
    measured = f"{measured}; earlier attempts failed: {spell_kinds(kinds)}"
    if not kinds["disconnected"] and kinds["no_address"] < 2:
        return build_pass(check, subject, measured, expected)
    why = (
        f"The pair passed only at attempt {len(pair.retried) + 1}. Possible causes: a link that goes down and up,"
        " an outdated ARP or EVPN entry, or a subnet manager that does not always answer. A job can fail in the"
        " same way when it starts."
    )
    remedy = (
        f"Run stage bandwidth again. If the finding remains, run dmesg on {pair.client} and {pair.server}, and search"
        " it for link state changes. Read the log of the subnet manager (InfiniBand) or of the switches for that time."
        " Correct the cause, then run the stage once more."
    )
    return Finding(check, subject, WARN, measured, f"{expected}, at the first attempt", why, remedy)


def _check_measured(subject: str, ground: PairLimits, pair: PairResult, doubt: typing.Optional[Doubt]) -> Finding:
    """Check that the measurement of a pair gave an average bandwidth and no failure, and that nothing casts doubt on
    the figure.

    :param subject: subject of the finding
    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pair: result of the measurement
    :param doubt: reason why the bandwidth is not a valid measurement; None if there is none
    """
    expected = "an average bandwidth in Gb/s, exit code 0"
    # a figure beside a failure is none: a killed server leaves a perfect table and exit code 1
    if pair.average_gbps is not None and pair.average_gbps > 0 and not pair.failure:
        how = (
            f"TCP, {_format_streams(pair)}"
            if pair.transport == "TCP"
            else f"{_or_unknown(pair.iterations)} messages of {_or_unknown(pair.message_bytes)}"
            f" bytes{format_queue_pairs(pair)}"
        )
        figures = f"{format_gbps(pair.average_gbps)} average, {how}"
        if doubt:
            valid, remedy = _describe_valid_figure(doubt.kind, ground.fabric.pods.image, pair)
            return Finding("bandwidth.measured", subject, UNKNOWN, f"{figures}, not valid", valid, doubt.text, remedy)
        if pair.transport == "TCP":
            return _warn_of_retries("bandwidth.measured", subject, pair, figures, expected)
        return build_pass("bandwidth.measured", subject, figures, expected)
    why, remedy = _subnet_manager(ground, pair) or _explain(pair.failure, ground, pair)
    status: typing.Literal["unknown", "fail"] = (
        UNKNOWN if pair.failure in ("ping", "not_run", "pod", "other_run", *LEFT_OUT) else FAIL
    )
    return Finding("bandwidth.measured", subject, status, pair.evidence or "no bandwidth", expected, why, remedy)


def _describe_valid_figure(kind: str, image: str, pair: PairResult) -> tuple[str, str]:
    """Return the property that a valid figure has, and the remedy.

    :param kind: kind of the doubt about the figure
    :param image: image of the measuring pods
    :param pair: result of the measurement
    """
    if kind == "amount":
        return (
            "a bandwidth measured with the requested messages and queue pairs",
            "If the intent was changed after the measurement, run stage bandwidth again. Otherwise run podman run --rm"
            f" --entrypoint head {image} -c 4 /usr/bin/ib_write_bw. If it does not print ELF, ib_write_bw is a script"
            " that changes the options: set pods.image to an image with the unchanged program of perftest, then run"
            " stage bandwidth again.",
        )
    if kind == "transport":
        return (
            "a bandwidth measured with RDMA",
            "Follow the remedies of the findings bandwidth.pod of both nodes, then run stage bandwidth again.",
        )
    return (
        "an average in Gb/s within the capacity of the link and the peak of the measurement",
        f"Check whether {pair.client} and {pair.server} are virtual machines on one host: systemd-detect-virt"
        " prints none on a machine of its own. Two functions of one HCA exchange their data inside the HCA,"
        " faster than its port, so such a pair measures no cable: run one of the two nodes on another host."
        f" Otherwise run stage bandwidth again. If the figure is still too high, the clock of {pair.client} (the"
        " client) is wrong: compare /sys/devices/system/clocksource/clocksource0/current_clocksource there with"
        " another node (usually tsc). If it differs, search dmesg for clocksource to find the reason, correct"
        " it, drain the node and reboot it. Then run stage bandwidth again.",
    )


def _subnet_manager(ground: PairLimits, pair: PairResult) -> typing.Optional[tuple[str, str]]:
    """Return cause and remedy of a pair whose small messages arrive and whose large messages do not, on link speeds
    that only newer subnet managers support. Return None for any other pair.

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
    why, remedy = _explain(pair.failure, ground, pair)
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
        "If the time limit stopped the measurement, raise pods.limit_seconds of the fabric. Otherwise correct"
        " the error under 'measured'. Then run stage bandwidth again."
        if pair.sweep_failure
        else "Follow the remedy of the finding bandwidth.measured of this pair, then run stage bandwidth again."
    )
    return Finding(
        "bandwidth.sweep",
        subject,
        UNKNOWN,
        spell_kinds({pair.sweep_failure: 1}) if pair.sweep_failure else "not measured",
        expected,
        why,
        remedy,
    )


def list_verdicts(ground: PairLimits, pairs: typing.Sequence[PairResult]) -> list[typing.Optional[bool]]:
    """Return a verdict for each pair: True if its bandwidth is valid and reaches its floors, False if it failed or is
    below a floor.

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
