# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of RDMA devices before and after a measurement, and the findings on them. Two stages use this
code: collectives for a soak, bandwidth for each pair on RoCE.

A pod reads the counters of its own functions. A virtual function counts errors of its own packets, but no errors of the
cable. So the observer of the node reads the counters of its physical function.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.measurement.hca_counters import CONGESTION, ERRORS, FATAL, MAXIMUM, HcaErrors
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

#: counters in one text, at most
_MOST = 8
EXPECTED = "no increase of any error counter"

Readings = typing.Mapping[str, typing.Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The words about a measurement in the findings on its counters.

    :ivar check: check id
    :ivar stage: stage that measures
    :ivar name: name of the measurement with its article
    :ivar cost: sentence on the effect of a packet that is sent again
    """

    check: str
    stage: str
    name: str
    cost: str

    def describe_remedy(self, node: str) -> str:
        """Return the remedy for error counters that rose during this measurement.

        :param node: name of the node of the HCA
        """
        return (
            "Follow the remedies of the findings of stage fabric on the links of this HCA. If there are none,"
            f" run rdma statistic show on {node} twice to see which counters increase. On RoCE, make PFC and ECN"
            f" of {node} and of its switch port equal (findings tuning.roce). On InfiniBand, reseat the cable."
            f" Then run stage {self.stage} again."
        )


def compare_readings(
    node: str, device: str, before: typing.Optional[Readings], after: typing.Optional[Readings], seconds: float
) -> HcaErrors:
    """Return by how much the error counters of an RDMA device rose during a measurement, or the reason why that is
    unknown.

    :param before: counters of the devices of its pod before the measurement; None if they could not be read
    :param after: error counters after the measurement; None or empty if they were not read
    :param seconds: time between the two readings
    """
    if before is None or after is None:
        return HcaErrors(node, device, seconds, why="its pod did not respond")
    first, second = before.get(device, {}), after.get(device, {})
    both = sorted(ERRORS & first.keys() & second.keys())
    if not both:
        return HcaErrors(node, device, seconds, why="sysfs in the pod shows no error counter of the HCA")
    grown = {name: second[name] - first[name] for name in both if second[name] > first[name]}
    lower = tuple(name for name in both if second[name] < first[name])
    stuck = tuple(name for name in both if second[name] == MAXIMUM.get(name))
    once = tuple(sorted(ERRORS & (first.keys() ^ second.keys())))
    flow = sorted(CONGESTION & first.keys() & second.keys())
    congestion = {name: second[name] - first[name] for name in flow if second[name] > first[name]}
    return HcaErrors(node, device, seconds, len(both), grown, lower, stuck, once, congestion=congestion)


def merge_errors(found: typing.Iterable[HcaErrors]) -> tuple[HcaErrors, ...]:
    """Return one item for each HCA, with the sum of its counter changes over all measurements. The changes of an HCA
    are unknown if they are unknown in one of its measurements.

    :param found: counter changes, one item for each HCA and measurement
    """
    of: dict[tuple[str, str], list[HcaErrors]] = {}
    for item in found:
        of.setdefault((item.node, item.device), []).append(item)
    return tuple(_add_up(items) for items in of.values())


def _add_up(items: typing.Sequence[HcaErrors]) -> HcaErrors:
    """Return the errors of one HCA over several periods: the sums of its counters, the counters of any period that fell
    or stuck, and the first reason why counters were not read.

    :param items: errors of the HCA in each period, at least one
    """
    grown: collections.Counter[str] = collections.Counter()
    congestion: collections.Counter[str] = collections.Counter()
    for item in items:
        grown.update(item.grown)
        congestion.update(item.congestion)
    lower, stuck, once = (
        tuple(dict.fromkeys(name for names in lists for name in names))
        for lists in ([item.lower for item in items], [item.stuck for item in items], [item.once for item in items])
    )
    why = next((item.why or "the counters were not read" for item in items if item.why or not item.read), "")
    seconds, read = sum(item.seconds for item in items), min(item.read for item in items)
    node, device = items[0].node, items[0].device
    return HcaErrors(node, device, seconds, read, dict(grown), lower, stuck, once, why, dict(congestion))


def judge_errors(
    measurement: Measurement,
    subject: str,
    expected: typing.Iterable[tuple[str, str]],
    found: typing.Iterable[HcaErrors],
    note: str = "",
) -> typing.Iterator[Finding]:
    """Yield a finding for each HCA whose error counters rose during a measurement or are unknown, and one passed
    finding for all remaining HCAs together.

    :param subject: subject of the measurement
    :param expected: node and RDMA device of each HCA that took part
    :param found: counter changes that were measured, one item for each HCA
    :param note: end of the text of the passed finding
    """
    known = {(item.node, item.device): item for item in found}
    quiet: list[HcaErrors] = []
    total = 0
    for node, device in expected:
        total += 1
        item = known.get((node, device), HcaErrors(node, device, why="the counters were not read"))
        finding = _judge_hca(measurement, f"{subject}: {node} {device}", item)
        if finding is None:
            quiet.append(item)
        else:
            yield finding
    if quiet:
        measured = f"no error counter of {len(quiet)} of {count_of(total, 'HCA')} increased"
        yield build_pass(measurement.check, subject, f"{measured}{_spell_congestion(quiet)}{note}", EXPECTED)


def _judge_hca(measurement: Measurement, name: str, item: HcaErrors) -> typing.Optional[Finding]:
    """Return the finding on an HCA whose error counters rose, or are unknown. Return None if they were read and did not
    rise.

    :param measurement: measurement during which the counters were read, with its check id
    :param name: subject of the finding
    :param item: changes of the counters
    """
    check, doubts = measurement.check, _list_doubts(measurement, item)
    fatal = [counter for counter in FATAL if counter in item.grown]
    unknown = bool(item.why) or not item.read
    if fatal or (item.grown and not doubts and not unknown):
        names = [*fatal, *(counter for counter in item.grown if counter not in fatal)]
        said = ", ".join(f"{counter} +{item.grown[counter]}" for counter in names[:_MOST])
        said += f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        first = item.grown[names[0]]
        rate = (
            f"about {3600 * first / item.seconds:,.0f} {names[0]} per hour" if item.seconds else f"{first} {names[0]}"
        )
        why = f"The HCA loses or damages packets under load ({rate}). {measurement.cost}"
        return Finding(
            check, name, FAIL if fatal else WARN, said, EXPECTED, why, measurement.describe_remedy(item.node)
        )
    if unknown:
        why = (
            "The error counters of this HCA were not read, so packet loss is not known:"
            f" {format_clause(item.why, 'none was read')}."
        )
        remedy = (
            "While the stage runs, run ls /sys/class/infiniband/*/ports/*/hw_counters in the pod. If it lists no"
            f" counter, update the driver of the HCA on {item.node}. Then run stage {measurement.stage} again."
        )
        said = "; ".join(["error counters not read", *_spell_grown(item)])
        return Finding(check, name, UNKNOWN, said, EXPECTED, why, remedy)
    if doubts:
        said = "; ".join([*(what for what, _why, _remedy in doubts), *_spell_grown(item)])
        why, remedy = (" ".join(part) for part in list(zip(*doubts))[1:])
        return Finding(check, name, UNKNOWN, said, EXPECTED, why, f"{remedy} Then run stage {measurement.stage} again.")
    return None


def _spell_congestion(items: typing.Iterable[HcaErrors]) -> str:
    """Return the counters of congestion that rose, with the increases of all HCAs added up, as the end of a sentence.
    Return an empty text if no counter rose.
    """
    total: collections.Counter[str] = collections.Counter()
    for item in items:
        total.update(item.congestion)
    if not total:
        return ""
    return f"; congestion: {join_first([f'{name} +{rise}' for name, rise in sorted(total.items())], _MOST)}"


def _spell_grown(item: HcaErrors) -> list[str]:
    return [f"{counter} +{rise}" for counter, rise in list(item.grown.items())[:_MOST]]


def _list_doubts(measurement: Measurement, item: HcaErrors) -> list[tuple[str, str, str]]:
    """Return the reasons for which an increase of the counters could not be observed: counters that were reset, are at
    their maximum, or were read only once. Each reason is a tuple of three texts: the measured value, the explanation
    and the remedy.
    """
    lower, stuck, once = (", ".join(names[:_MOST]) for names in (item.lower, item.stuck, item.once))
    doubts = (
        (
            lower,
            "counters reset during the measurement",
            (
                f"Counters are lower after the measurement than before it, so their increase is not known: {lower}. A"
                " reload of the driver or a reset sets them to 0."
            ),
            (
                f"Run dmesg on {item.node}. If it shows that the driver was reloaded or the port was down, correct"
                " the cause."
            ),
        ),
        (
            stuck,
            f"counters at their maximum: {stuck}",
            "A counter stays at its maximum, so an increase cannot be detected.",
            f"Clear the counters of the HCA: run perfquery -C {item.device} -P PORT -R as root on {item.node}, with the"
            f" number of the port (ls /sys/class/infiniband/{item.device}/ports).",
        ),
        (
            once,
            f"counters read only once: {once}",
            f"These counters were read only before {measurement.name} or only after it.",
            f"Run dmesg on {item.node}. If it shows that the driver was reloaded, correct the cause.",
        ),
    )
    return [(measured, why, remedy) for names, measured, why, remedy in doubts if names]
