# SPDX-License-Identifier: GPL-3.0-or-later

"""Check what the intent says of the pods that measure. Check id: ``validate.pods``."""

from __future__ import annotations

import operator
import typing

from ..._model.base.rules import run_rule
from ..._model.intent.intent import Fabric
from ..._model.run.findings import Finding, ok
from .refusal import refuse_value


def check_pods(fabric: Fabric, path: str) -> list[Finding]:
    """Check what a fabric says of the pods that measure it.

    :param path: of the fabric in the intent
    """
    findings: list[Finding] = []
    for what in ("pods.message_bytes", "pods.queue_pairs", "pods.iterations", "pods.seconds", "bandwidth.rounds"):
        findings += run_rule(_check_at_least_one, fabric, path, what)
    findings += run_rule(_limit, fabric, path)
    findings += run_rule(_check_rounds, fabric, path)
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


def _limit(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
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
