# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, suspects: a failed pair accuses both of its ends. The node, HCA, leaf or path that remains after the
pairs that passed are taken into account is reported.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.suspects import Element, find_suspects, make_trial
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import Place
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.pairs import End, PairResult
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass


def check_suspects(
    fabric: Fabric,
    pods: typing.Mapping[End, RdmaPod],
    pairs: typing.Sequence[PairResult],
    passed: typing.Sequence[typing.Optional[bool]],
    where: typing.Mapping[End, Place],
) -> list[Finding]:
    """Report the nodes, HCAs, leaves and paths that failed pairs have in common and passed pairs do not use. Return one
    passed finding if no pair failed, and an empty list without pairs.

    :param pods: pods of the fabric, by rail and node
    :param pairs: measured pairs of the fabric
    :param passed: verdict on each pair, in the same order; None for a pair that proves nothing about its ends
    :param where: leaf and leaf port of each HCA port, by rail and node, as far as known
    """
    if not pairs:
        return []
    ends = {
        end: where.get(end) or Place(end[1], pod.physical_function or f"rail {end[0]}", end[0])
        for end, pod in pods.items()
    }
    expected = "0 measurements failed"
    trials = [
        make_trial(fabric.name, ends[pair.client_end], ends[pair.server_end], verdict)
        for pair, verdict in zip(pairs, passed)
        if verdict is not None and pair.client_end in ends and pair.server_end in ends
    ]
    if not trials:
        return [report_unmeasured(fabric, "end", expected)]
    if all(one.passed for one in trials):
        return [
            build_pass("bandwidth.suspect", fabric.name, f"{count_of(len(trials), 'measurement')} passed", expected)
        ]
    findings = []
    for suspect in find_suspects(trials):
        measured = f"{suspect.failed} of {suspect.trials} measurements failed"
        names = _list_names(suspect.elements)
        if not names:
            some = ", ".join(f"{one.client} -> {one.server}" for one in suspect.explained[:8])
            measured = f"{measured}: {some}"
            why = (
                "Measurements that passed used the same components as these failed measurements. So no component"
                " fails always: the cause is intermittent, or it affects only these two ends together."
            )
            remedy = (
                "Follow the remedies of the findings bandwidth.rping, bandwidth.measured and bandwidth.floor of these"
                " pairs, then run stage bandwidth again. If other pairs fail then, the cause is intermittent. If the"
                " same pairs fail, compare firmware, MTU and partitions of their two ends."
            )
            findings.append(Finding("bandwidth.suspect", fabric.name, FAIL, measured, expected, why, remedy))
            continue
        text = " or ".join(names)
        told = [
            _describe_hca_location(place, pods[end])
            for end, place in ends.items()
            if f"{place.node} {place.hca}" in text
        ]
        why = (
            "The failed measurements used"
            f" {'one of these components' if len(names) > 1 else 'this component'}. Measurements"
            " that did not use it passed, or failed for a different cause."
            if suspect.trials < len(trials)
            else "No measurement passed."
        )
        if len(names) > 1:
            why += " The measured pairs cannot distinguish these components. A measurement with an additional node can."
        infiniband = is_infiniband(fabric)
        counters = "its port (ibqueryerrors)" if infiniband else "its port (ethtool -S INTERFACE)"
        mtu = "" if infiniband else "the MTU "
        remedy = (
            f"On the node of this component, check the PCIe link (lspci -vv as root), {counters}, {mtu}and the VF"
            " (ip -d link show). Correct what differs from a node that passed. Then run stage bandwidth again."
        )
        findings.append(
            Finding(
                "bandwidth.suspect",
                f"{fabric.name} {text}",
                FAIL,
                measured,
                expected,
                " ".join((why, *told[:4])),
                remedy,
            )
        )
    return findings


def report_unmeasured(fabric: Fabric, suspect: str, expected: str) -> Finding:
    """Return the finding of status unknown that no measurement of a fabric is valid.

    :param suspect: element that the measurements would test, such as an end or a link, for the text
    :param expected: expected value, as text for the finding
    """
    why = f"Without a valid measurement, it is unknown which {suspect} is at fault."
    remedy = "Follow the remedies of the findings bandwidth.measured of the pairs, then run stage bandwidth again."
    return Finding("bandwidth.suspect", fabric.name, UNKNOWN, "no valid measurement", expected, why, remedy)


def _list_names(elements: typing.Sequence[Element]) -> list[str]:
    """Return the names of the suspects. A node is left out if one of its HCAs is named.

    Fabrics, and nodes as client or server only, are left out unless nothing else remains.

    :param elements: elements of a suspect, which the pairs cannot distinguish
    """
    hcas = [element.name for element in elements if element.kind == "hca"]
    nodes = [
        element.name
        for element in elements
        if element.kind == "node" and not any(name.startswith(f"{element.name} ") for name in hcas)
    ]
    others = [
        f"{element.kind} {element.name}"
        for element in elements
        if element.kind not in ("hca", "node", "client", "server", "fabric")
    ]
    return [*hcas, *nodes, *others] or [f"{element.kind} {element.name}" for element in elements]


def _describe_hca_location(place: Place, pod: RdmaPod) -> str:
    """Describe the location of an HCA: PCI address, rail, and leaf if it is known."""
    leaf = f", leaf {place.leaf} port {place.leaf_port}" if place.leaf else ""
    return f"{place.node} {place.hca}: {pod.physical_function or 'PCI address unknown'}, rail {place.rail}{leaf}."
