# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the settings for the pods that measure a fabric. Check id: ``validate.pods``."""

from __future__ import annotations

import operator
import typing

from ..._analysis.measurement.small_messages import explain_far_ratio
from ..._model.base.rules import run_rule
from ..._model.intent.intent import Fabric
from ..._model.run.findings import Finding, build_pass
from .refusal import refuse_value

#: of the latency of a pair to the median
_MOST_RATIO = 100


def check_pods(fabric: Fabric, path: str) -> list[Finding]:
    """Check the keys ``pods`` and ``bandwidth`` of a fabric: sizes and numbers are at least 1, and the time limit is
    sufficient for the number of iterations and rounds.

    :param path: path of the fabric in the intent
    """
    findings: list[Finding] = []
    for what in ("pods.message_bytes", "pods.queue_pairs", "pods.iterations", "pods.seconds", "bandwidth.rounds"):
        findings += run_rule(_check_at_least_one, fabric, path, what)
    findings += run_rule(_check_time_limit, fabric, path)
    findings += run_rule(_check_rounds, fabric, path)
    findings += run_rule(_check_latency, fabric, path)
    return findings or [
        build_pass(
            "validate.pods",
            f"{path}.pods",
            f"{fabric.pods.seconds} s, at most {fabric.pods.limit_seconds} s",
            "a measurement that is shorter than its time limit",
        )
    ]


def _check_at_least_one(fabric: Fabric, path: str, what: str) -> typing.Iterator[Finding]:
    value = operator.attrgetter(what)(fabric)
    if isinstance(value, int) and value < 1:
        yield refuse_value(
            "pods",
            f"{path}.{what}",
            str(value),
            "at least 1",
            "ib_write_bw would reject this value or measure nothing.",
            f"Set {path}.{what} to at least 1, or remove the key.",
        )


def _check_time_limit(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    pods = fabric.pods
    if pods.limit_seconds <= pods.seconds:
        why = "The run would stop each command before its measurement ends."
        remedy = (
            f"Set {path}.pods.limit_seconds to at least {2 * pods.seconds}, twice the value of seconds, to leave"
            " time for the connection setup."
        )
        yield refuse_value(
            "pods",
            f"{path}.pods.limit_seconds",
            f"{pods.limit_seconds} s",
            f"more than {pods.seconds} s (seconds)",
            why,
            remedy,
        )


def _check_rounds(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.bandwidth.rounds == "auto" and fabric.bandwidth.directions == "at_once":
        why = (
            "With rounds: auto, the rounds distinguish the two directions of each link. A measurement of both"
            " directions at once gives no figure for one direction."
        )
        remedy = f"Remove {path}.bandwidth.directions, or set {path}.bandwidth.rounds to a number or to all."
        yield refuse_value(
            "pods",
            f"{path}.bandwidth.rounds",
            "auto with directions at_once",
            "auto with directions one or both",
            why,
            remedy,
        )


def _check_latency(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    wanted = fabric.bandwidth
    # not a number compares with nothing
    if not 1 < wanted.latency_ratio <= _MOST_RATIO:
        why = (
            "With a ratio of 1, half of the pairs would be reported. With a ratio above the maximum, only a broken pair"
            " would be reported."
        )
        expected = f"more than 1, at most {_MOST_RATIO}"
        name = f"{path}.bandwidth.latency_ratio"
        yield refuse_value(
            "pods", name, f"{wanted.latency_ratio:g}", expected, why, f"Remove {name} to use the default of 1.5."
        )
    elif (far := explain_far_ratio(wanted.latency_ratio, wanted.most_latency_us)) is not None:
        yield refuse_value(
            "pods",
            f"{path}.bandwidth.latency_ratio",
            *far,
            "Set most_latency_us, the longest time that you accept. Or remove latency_ratio to use the default of 1.5.",
        )
    if wanted.most_latency_us is not None and not (wanted.latency and 0 < wanted.most_latency_us < 1e6):
        why = (
            "The run compares this limit with measured latencies, which needs latency: true and a limit in this range."
        )
        name = f"{path}.bandwidth.most_latency_us"
        expected = "more than 0 us and below 1000000 us, with latency: true"
        yield refuse_value(
            "pods",
            name,
            f"{wanted.most_latency_us:g} us, with latency: {str(wanted.latency).lower()}",
            expected,
            why,
            f"Set {path}.bandwidth.latency to true and {name} to the longest latency that you accept, in us."
            " Or remove most_latency_us.",
        )
