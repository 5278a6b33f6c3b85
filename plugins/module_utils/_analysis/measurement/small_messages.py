# SPDX-License-Identifier: GPL-3.0-or-later

"""Evaluate the latencies of small messages between two nodes without a comparison with other pairs of nodes, and
without a limit from the intent.
"""

from __future__ import annotations

import typing

#: less than light takes through two ports and a cable: HCAs take 0.6 us and more
LEAST_US = 0.3
#: of the 99th percentile to the usual time; on healthy links it is 2 or 3 times as long
MOST_TAIL = 10
#: multiple of the usual latency above which a pair is broken rather than slow: as the only limit it finds no slow pair
_FAR_RATIO = 3


def find_no_measurement(usual_us: float, p99_us: typing.Optional[float], is_median: bool) -> str:
    """Return the reason why latencies cannot be the result of a measurement. Return an empty text if they can.

    :param usual_us: median or mean latency in microseconds
    :param p99_us: latency in microseconds that 99 % of the messages do not exceed; None if not known
    :param is_median: whether ``usual_us`` is a median. A mean may exceed the 99th percentile, because a few very slow
        messages raise it
    """
    if usual_us < LEAST_US:
        return f"A time of {usual_us:g} us is too short for any link; expected at least {LEAST_US:g} us"
    if is_median and p99_us is not None and p99_us < usual_us:
        return "The 99th percentile of the message times is below their median"
    return ""


def explain_far_ratio(ratio: float, most_us: typing.Optional[float]) -> typing.Optional[tuple[str, str, str]]:
    """Return the measured value, the expected value and the reason why a latency ratio finds no slow pair. Return None
    if it can find one, or if the intent also has a limit in microseconds.

    :param ratio: ``latency_ratio`` of the intent
    :param most_us: ``most_latency_us`` of the intent
    """
    if ratio <= _FAR_RATIO or most_us is not None:
        return None
    return (
        f"{ratio:g}, without most_latency_us",
        f"at most {_FAR_RATIO:g}, or a limit in most_latency_us",
        f"The run would report a pair only if it takes {ratio:g} times as long as the other pairs.",
    )


def describe_limit(usual_us: float, p99_us: typing.Optional[float], usual: str) -> str:
    """Return the expected 99th percentile of a pair for which :func:`find_tail` returns a message.

    :param usual_us: median or mean latency in microseconds
    :param p99_us: latency in microseconds that 99 % of the messages do not exceed; None if not known
    :param usual: what ``usual_us`` is: ``median`` or ``mean``
    """
    if p99_us is not None and p99_us < usual_us:
        return f"p99 at least {usual_us:.2f} us, the {usual}"
    return f"p99 at most {MOST_TAIL * usual_us:.2f} us, {MOST_TAIL} times the {usual}"


def find_tail(usual_us: float, p99_us: typing.Optional[float]) -> str:
    """Return a message if one in a hundred messages takes much longer than the usual message, or if the mean is above
    the 99th percentile. Return an empty text otherwise.

    :param usual_us: median or mean latency in microseconds
    :param p99_us: latency in microseconds that 99 % of the messages do not exceed; None if not known
    """
    if p99_us is not None and p99_us > MOST_TAIL * usual_us:
        return (
            f"One message in a hundred takes more than {MOST_TAIL} times the usual time. Possible causes are"
            " lost packets that are sent again, a queue in a switch, and a CPU that is busy or in an idle state."
        )
    if p99_us is not None and p99_us < usual_us:
        return "The mean is above the 99th percentile: a few messages take very long."
    return ""
