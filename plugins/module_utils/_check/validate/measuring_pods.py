# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the settings for the pods that measure a fabric. Check id: ``validate.pods``."""

from __future__ import annotations

import operator
import typing

from ..._model.base.rules import run_rule
from ..._model.intent.intent import Fabric
from ..._model.run.findings import Finding, ok
from .refusal import refuse_value

#: of the latency of a pair to the median
_MOST_RATIO = 100


def check_pods(fabric: Fabric, path: str) -> list[Finding]:
    """Check the settings for the pods that measure a fabric, and for its bandwidth measurement.

    :param path: path of the fabric in the intent
    """
    findings: list[Finding] = []
    for what in ("pods.message_bytes", "pods.queue_pairs", "pods.iterations", "pods.seconds", "bandwidth.rounds"):
        findings += run_rule(_check_at_least_one, fabric, path, what)
    findings += run_rule(_check_time_limit, fabric, path)
    findings += run_rule(_check_rounds, fabric, path)
    findings += run_rule(_check_latency, fabric, path)
    return findings or [
        ok(
            "validate.pods",
            f"{path}.pods",
            f"{fabric.pods.seconds} s, at most {fabric.pods.limit_seconds} s",
            "a measurement that fits its limit",
        )
    ]


def _check_at_least_one(fabric: Fabric, path: str, what: str) -> typing.Iterator[Finding]:
    value = operator.attrgetter(what)(fabric)
    if isinstance(value, int) and value < 1:
        yield refuse_value(
            "pods",
            f"{path}.{what}",
            str(value),
            "1 at least",
            "ib_write_bw would refuse it or measure nothing.",
            "Correct the number.",
        )


def _check_time_limit(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    pods = fabric.pods
    if pods.limit_seconds <= pods.seconds:
        why = "Each command would be stopped before its measurement ends."
        remedy = "Leave room for connecting: limit_seconds should be twice seconds at least."
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
            "Rounds that use each link tell its two directions apart, and a figure of both at once tells nothing of one"
            " of them."
        )
        remedy = "Leave directions out, or write a number or all into rounds."
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
        why = "At 1 every second pair would be named, and a pair that is so late is a broken one."
        expected = f"more than 1, {_MOST_RATIO} at most"
        name = f"{path}.bandwidth.latency_ratio"
        yield refuse_value("pods", name, f"{wanted.latency_ratio:g}", expected, why, "Leave it out: 1.5.")
    if wanted.most_latency_us is not None and not (wanted.latency and 0 < wanted.most_latency_us < 1e6):
        why = "No pair could be held against it."
        name = f"{path}.bandwidth.most_latency_us"
        expected = "us above 0, with latency: true"
        yield refuse_value("pods", name, f"{wanted.most_latency_us:g}", expected, why, "Set latency, or leave it out.")
