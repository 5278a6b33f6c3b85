# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the line rate that a fabric must reach, and the reason for a low one. Check id: ``validate.line_rate``."""

from __future__ import annotations

import operator
import typing

from ..._model.base.rules import run_rule, run_rules
from ..._model.boundary.fabric import GBPS
from ..._model.intent.intent import Fabric, LineRate
from ..._model.intent.profiles import carries_rdma
from ..._model.run.findings import Finding, build_pass
from .refusal import refuse_value

#: of line_rate: what a floor is made of at least, and below which a reason is needed. No HCA has a port of less than 10
#: Gb/s; software RDMA may
_LEAST_FRACTION, _LOW_FRACTION = 0.05, 0.8
_LEAST_RATE, _LOW_RATE = 1.0, 10.0


def check_line_rate(fabric: Fabric, path: str) -> list[Finding]:
    """Check the key ``line_rate`` of a fabric: its fractions are between 0 and 1, its rates are plausible, and a low or
    absolute floor has a reason.

    :param path: path of the fabric in the intent
    """
    rate, path = fabric.line_rate, f"{path}.line_rate"
    findings = run_rule(_check_fraction, f"{path}.fraction", operator.attrgetter("fraction"), rate, 0.92)
    findings += run_rule(_check_fraction, f"{path}.fleet_fraction", operator.attrgetter("fleet_fraction"), rate, 0.93)
    findings += run_rules((_check_expected_rate, _check_floor, _check_reason, _check_reason_of_low), rate, path)
    findings += run_rule(_check_reason_of_limit, fabric, path)
    if findings:
        return findings
    if rate.floor_gbps is not None:
        return [
            build_pass(
                "validate.line_rate",
                path,
                f"{rate.floor_gbps:g} Gb/s, because: {rate.reason}",
                "an absolute floor with a reason",
            )
        ]
    of = f"{rate.expected_gbps:g} Gb/s and PCIe rate" if rate.expected_gbps is not None else "link rate and PCIe rate"
    because = f", because: {rate.reason}" if rate.reason else ""
    return [
        build_pass(
            "validate.line_rate",
            path,
            f"{rate.fraction:.0%} of the slower of {of}{because}",
            "a floor that can detect a slow link",
        )
    ]


def _check_fraction(
    place: str, read: typing.Callable[[LineRate], float], rate: LineRate, usual: float
) -> typing.Iterator[Finding]:
    fraction = read(rate)
    if not _LEAST_FRACTION <= fraction <= 1:
        why = "A link cannot be faster than its rate (1), and every link passes a floor near 0."
        yield refuse_value(
            "line_rate",
            place,
            f"{fraction}",
            f"{_LEAST_FRACTION:g} to 1",
            why,
            f"Set {place} to {usual} (the default), or to another fraction of the rate.",
        )


def _check_expected_rate(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    if rate.expected_gbps is not None and not _LEAST_RATE <= rate.expected_gbps <= GBPS.most:
        why = "No link of an HCA has this rate, so the floor that the run computes from it would be wrong."
        remedy = (
            f"Set {path}.expected_gbps to the rate of the links in Gb/s, such as 400. Or remove the key: the run"
            " then expects the highest rate that both ends of each link support."
        )
        yield refuse_value(
            "line_rate",
            f"{path}.expected_gbps",
            f"{rate.expected_gbps} Gb/s",
            f"{_LEAST_RATE:g} to {GBPS.most:g} Gb/s",
            why,
            remedy,
        )


def _check_floor(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    if rate.floor_gbps is not None and not 0 < rate.floor_gbps < float("inf"):
        why = "Every measurement, or none, would reach this floor, so it verifies nothing."
        yield refuse_value(
            "line_rate",
            f"{path}.floor_gbps",
            f"{rate.floor_gbps} Gb/s",
            "more than 0 Gb/s",
            why,
            f"Set {path}.floor_gbps to the lowest bandwidth that you accept, in Gb/s. Or remove the key: the"
            f" run then uses {path}.fraction of the rate.",
        )


def _check_reason(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    if rate.floor_gbps is not None and not (rate.reason or "").strip():
        why = (
            "An absolute floor does not show how fast the link could be, so the report must contain the reason for the"
            " floor."
        )
        yield refuse_value(
            "line_rate",
            f"{path}.reason",
            "no reason",
            "a reason together with floor_gbps",
            why,
            f"Set {path}.reason to the reason for this floor. Or remove floor_gbps: the run then uses"
            f" {path}.fraction of the rate.",
        )


def _check_reason_of_low(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    """Check that a low ``fraction`` or a low ``expected_gbps`` has a reason, since either lowers the bandwidth that the
    fabric must reach.

    :param rate: line rate settings of the fabric
    :param path: path of the fabric in the intent
    """
    if (rate.reason or "").strip():
        return
    limits = (
        ("fraction", _LEAST_FRACTION, _LOW_FRACTION),
        ("fleet_fraction", _LEAST_FRACTION, _LOW_FRACTION),
        ("expected_gbps", _LEAST_RATE, _LOW_RATE),
    )
    for name, least, low in limits:
        value = getattr(rate, name)
        if value is not None and least <= value < low:
            why = (
                f"{name} is {value:g}. A floor this low does not show how fast the link could be, so the report must"
                " contain the reason for it."
            )
            yield refuse_value(
                "line_rate",
                f"{path}.reason",
                "no reason",
                f"a reason together with {name} below {low:g}",
                why,
                f"Set {path}.reason to the reason for this value, or remove {path}.{name} to use the default.",
            )


def _check_reason_of_limit(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    """Check that a low ``network.max_tx_rate`` of a fabric with RDMA has a reason, since it lowers the bandwidth that
    the fabric must reach. The rates of the network are in Mb/s, all other rates of the intent in Gb/s.

    :param path: path of ``line_rate`` in the intent
    """
    limit, rate = fabric.network.max_tx_rate or 0, fabric.line_rate
    if not 0 < limit < 1000 * _LOW_RATE or rate.floor_gbps is not None or (rate.reason or "").strip():
        return
    if carries_rdma(fabric):
        why = (
            f"network.max_tx_rate is in Mb/s: it limits each VF to {limit / 1000:g} Gb/s, and lowers the floor to a"
            " fraction of that. A floor this low does not show how fast the link could be, so the report must contain"
            " the reason for it."
        )
        yield refuse_value(
            "line_rate",
            f"{path}.reason",
            "no reason",
            f"a reason together with network.max_tx_rate below {1000 * _LOW_RATE:g} Mb/s",
            why,
            f"If you mean {limit} Gb/s, set network.max_tx_rate of the fabric to {1000 * limit}. If the limit is"
            f" intended, set {path}.reason to the reason for it.",
        )
