# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, latency of small messages between pods. Pairs are compared with each other, and with a limit if the
intent sets one. Check id: ``bandwidth.latency``.
"""

from __future__ import annotations

import statistics
import typing

from ..._analysis.measurement.small_messages import describe_limit, find_no_measurement, find_tail
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma
from ..._model.measurement.bandwidth import PairLatency, RdmaPod
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .causes import name_ends, spell_kinds
from .pairs import on_rail

#: pairs, from which on a median says something
_SEVERAL = 3
#: from here on without a limit of the intent it is worth a word
_LONG_US = 100
_LOSS = (
    "Run rdma statistic show on both nodes twice (on InfiniBand perfquery -x), and replace the cable of a port"
    " whose error counters increase."
)
_REMEDY = (
    "follow the remedies of the findings of stage tuning on idle states and governor of the CPUs of both nodes."
    " If there are none, stop other traffic between the nodes, and compare the number of switches between them"
    " with that of a faster pair. Then run stage bandwidth again."
)


def check_latencies(
    fabric: Fabric, pods: typing.Iterable[RdmaPod], latencies: typing.Sequence[PairLatency]
) -> typing.Iterator[Finding]:
    """Yield a finding on the latency of each pair, and on each port that is in no pair. Yield nothing if the intent
    does not ask for latency, or if the fabric has no RDMA.

    :param pods: pods of the fabric
    :param latencies: measured latencies of the fabric
    """
    wanted = fabric.bandwidth
    if not wanted.latency or not carries_rdma(fabric):
        return
    medians = [pair.typical_us for pair in latencies if pair.typical_us is not None and not pair.failure]
    usual = statistics.median(medians) if len(medians) >= _SEVERAL else None
    limits = [f"at most {wanted.most_latency_us:g} us (by the intent)"] if wanted.most_latency_us is not None else []
    if usual is not None:
        limits.append(f"at most {wanted.latency_ratio:g} x {usual:.2f} us, the median of {len(medians)} pairs")
    expected = "; ".join(limits) or f"no limit: too few for a comparison ({count_of(len(medians), 'pair')})"
    for pair in latencies:
        yield _check_pair(fabric, pair, usual, expected)
    there = {end for pair in latencies for end in (pair.client_end, pair.server_end)}
    for pod in pods:
        if not pod.error and (pod.rail, pod.node) not in there:
            subject = f"{fabric.name} {pod.node}{on_rail(fabric, pod.rail)}"
            why = (
                "The latency of this port is not known: a port is measured with a partner on its rail, and is left"
                " out after several of its pairs failed."
            )
            remedy = (
                "Follow the remedies of the findings bandwidth.measured and bandwidth.suspect of this port, then run"
                " stage bandwidth again."
            )
            yield Finding("bandwidth.latency", subject, UNKNOWN, "not measured", expected, why, remedy)


def _check_pair(fabric: Fabric, pair: PairLatency, usual: typing.Optional[float], expected: str) -> Finding:
    wanted = fabric.bandwidth
    nodes = list(dict.fromkeys((pair.client, pair.server)))
    loss, step = name_ends(_LOSS, nodes, []), name_ends(_REMEDY, nodes, [])
    again = f"{step[:1].upper()}{step[1:]}"
    check, subject = (
        "bandwidth.latency",
        f"{fabric.name} {pair.client} -> {pair.server}{on_rail(fabric, pair.server_end[0])}",
    )
    if pair.typical_us is None or pair.failure:
        why = f"There is no latency figure: {pair.evidence or pair.failure or 'it did not run'}."
        remedy = (
            "Run podman run --rm --entrypoint which IMAGE ib_write_lat, with the image in pods.image of the"
            " fabric. If it prints no path, set pods.image to an image with ib_write_lat. Otherwise correct the"
            " error under 'why'. Then run stage bandwidth again."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            spell_kinds({pair.failure: 1}) if pair.failure else "no figure",
            expected,
            why,
            remedy,
        )
    measured = f"{pair.typical_us:.2f} us" + (f", p99 {pair.p99_us:.2f} us" if pair.p99_us is not None else "")
    none = find_no_measurement(pair.typical_us, pair.p99_us, True)
    if none:
        remedy = (
            "Set pods.image of the fabric to an image with another version of perftest, then run stage bandwidth again."
        )
        return Finding(check, subject, UNKNOWN, measured, expected, f"{none}. The figure is invalid.", remedy)
    if wanted.most_latency_us is not None and pair.typical_us > wanted.most_latency_us:
        why = "Idle states or a low frequency of the CPUs, a longer path, or other traffic delay small messages."
        return Finding(check, subject, FAIL, measured, expected, why, again)
    if usual is not None and pair.typical_us > wanted.latency_ratio * usual:
        why = "Small messages take longer than between the other pairs. A job waits for its slowest pair."
        return Finding(check, subject, WARN, measured, expected, why, again)
    tail = find_tail(pair.typical_us, pair.p99_us)
    if tail:
        expected = describe_limit(pair.typical_us, pair.p99_us, "median")
        return Finding(
            check,
            subject,
            WARN,
            measured,
            expected,
            tail,
            f"{loss} If no counter increases, {step}",
        )
    if wanted.most_latency_us is None and pair.typical_us > _LONG_US:
        why = (
            "The intent sets no limit for the latency, so the pair is compared only with other pairs. All of them"
            " may be slow."
        )
        remedy = (
            f"Set bandwidth.most_latency_us of the fabric to the latency that you accept. To lower the latency, {step}"
        )
        return Finding(check, subject, WARN, measured, f"at most {_LONG_US} us", why, remedy)
    return build_pass(check, subject, measured, expected)
