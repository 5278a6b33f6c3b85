# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, links of Ethernet fabrics: findings on the links between two leaves, of which each flow uses one,
and whether a flow uses the same link each time it is measured.
"""

from __future__ import annotations

import collections
import statistics
import typing

from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.paths.ethernet_routes import HOW, Neighbours, find_ports_without_lldp
from ..._analysis.fleet.paths.routes import join_names
from ..._analysis.schedule.flows import compute_flow_label, compute_udp_port, not_of_label
from ..._analysis.schedule.leaf_rounds import find_uncrossed_leaves
from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.localization import Evidence
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.rate_shares import GOOD
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.measurement.pairs import PairResult
from ..._model.run.findings import FAIL, WARN, Finding
from .pairs import on_rail

#: commands by which switches show what their ports count
COUNTERS = (
    "the switch's own counters (show interfaces counters errors on EOS and NX-OS, show interfaces extensive on Junos)"
)


def is_other_flow(pair: PairResult) -> bool:
    """Return whether a pair was measured with another flow label than in the rounds, and so perhaps over other links.

    Such a measurement proves nothing about the links of the rounds. The result is False for a measurement without a
    flow label.
    """
    return pair.flow_label is not None and pair.flow_label != compute_flow_label(pair.rail, pair.client, pair.server)


def describe_pinned(fabric: Fabric, ways: PathTable, pairs: typing.Iterable[PairResult]) -> str:
    """Return a text on whether a flow takes the same path each time it is measured.

    It does if all pairs were measured with flow labels. Otherwise the text has the reason why they were not.

    :param ways: paths between the ports
    :param pairs: measured pairs of the fabric
    """
    measured = [pair for pair in pairs if pair.average_gbps is not None]
    without = [pair for pair in measured if pair.flow_label is None]
    if not without:
        unsure = not_of_label(cable.driver for cable in ways.cables.values() if cable.driver)
        if unsure:
            return (
                f"each flow has its own flow label, but it is unknown whether the driver {', '.join(unsure)} derives"
                " the UDP source port from the label, so a flow may change its path"
            )
        return (
            "each flow has its own flow label, and thus the same UDP source port and the same path in each measurement"
        )
    if fabric.pods.connection == "rdma_cm":
        why = "rdma_cm (pods.connection) does not support flow labels"
    else:
        which = "" if len(without) == len(measured) else f" in {len(without)} of {len(measured)} measurements"
        why = f"perftest in the pods does not support --flow_label{which} (supported since 23.10)"
    return (
        f"flows are not pinned to a path because {why}: each measurement may use a different link, and may miss a slow"
        " link between leaves"
    )


def report_ports_without_lldp(
    check: str, fabric: Fabric, membership: Membership, neighbours: Neighbours, covered: bool
) -> list[Finding]:
    """Report in one warning all ports whose switch LLDP did not show. The list is empty if the switch of each port is
    known.

    The status is a warning whatever the number of ports, since all of them were measured. Missing LLDP only makes the
    location of a slow link less exact.

    :param check: check id of the finding
    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param neighbours: LLDP neighbors of each node
    :param covered: whether the rounds were planned to use each link, based on the LLDP of the other ports
    """
    found = find_ports_without_lldp(membership, neighbours)
    if not found:
        return []
    count = sum(map(len, membership.members.values()))
    names = join_names([f"{port.node} rail {port.rail}: {port.why}" for port in found], "; ")
    taken = (
        "Each of these ports was treated as the only port of its switch"
        if covered
        else "The rounds were therefore planned by pairs of nodes, which does not ensure that each link is used"
    )
    why = (
        f"LLDP does not show the switch of these ports: {names}. {taken}. It is unknown which links these ports share"
        " with other ports, so a slow link is located less exactly."
    )
    first = next((port.interface for port in found if port.interface), "<interface>")
    remedy = (
        f"{HOW}. Check which LLDP frames arrive, and from which hardware addresses: run 'tcpdump -e -nn -i {first}"
        " ether proto 0x88cc' on the node. Then run stage bandwidth again."
    )
    measured = f"switch unknown for {len(found)} of {count_of(count, 'port')}"
    expected = "switch known for each port (LLDP shows exactly one)"
    return [Finding(check, f"{fabric.name} switches", WARN, measured, expected, why, remedy)]


def report_uncrossed_leaves(fabric: Fabric, ways: PathTable, tests: typing.Iterable[Test]) -> list[Finding]:
    """Warn about pairs of leaves between which no test ran, if the switches choose the links: a pair of leaves without
    a path is not noticed then. The list is empty if there is no such pair of leaves.

    :param ways: paths between the ports
    :param tests: tests with a figure
    """
    missing, every = find_uncrossed_leaves(ways, tests) if ways.hashed else ((), 0)
    if not missing:
        return []
    names = [f"{ways.name_of(near)} and {ways.name_of(far)}{on_rail(fabric, rail)}" for rail, near, far in missing]
    why = (
        f"No test ran between these leaves: {join_names(names, '; ')}. If the switches have no path between two of them"
        " (VXLAN, routes or access lists), no measurement shows it."
    )
    remedy = (
        "Follow the remedies of the findings bandwidth.measured. If there are none, the fabric has too many leaves for"
        " a test of each pair of them: run stage collectives with all nodes, or set bandwidth.rounds of the fabric to"
        " all and run stage bandwidth again."
    )
    measured = f"{every - len(missing)} of {count_of(every, 'pair')} of leaves exchanged data"
    return [Finding("bandwidth.coverage", f"{fabric.name} leaves", WARN, measured, "each pair of leaves", why, remedy)]


def report_between_leaves(
    fabric: Fabric, ways: PathTable, evidence: Evidence, pairs: typing.Iterable[PairResult], expected: str
) -> typing.Iterator[Finding]:
    """Yield a failed finding for each ordered pair of leaves with slow flows between them. The finding lists the flows,
    since the switches do not report which link a flow uses.

    :param ways: paths between the ports
    :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
    :param pairs: measured pairs of the fabric
    :param expected: expected value, as text for the finding
    """
    labels: dict[Test, typing.Optional[int]] = {}
    figures: dict[Test, list[float]] = collections.defaultdict(list)
    others: dict[Test, list[float]] = collections.defaultdict(list)
    for pair in pairs:
        test = ways.test(pair.rail, pair.client, pair.server, pair.server_rail)
        if test is not None and pair.average_gbps:
            (others if is_other_flow(pair) else figures)[test].append(pair.average_gbps)
            labels.setdefault(test, pair.flow_label)
    measured: dict[tuple[str, str], list[Test]] = collections.defaultdict(list)
    slow: dict[tuple[str, str], dict[Test, float]] = collections.defaultdict(dict)
    names: dict[tuple[str, str], str] = {}
    for number, test in ways.flows.items():
        leaves = ways.directions[number].source, ways.directions[number].target
        if test in evidence.measured:
            measured[leaves].append(test)
        if number in evidence.slow:
            slow[leaves][test] = evidence.slow[number]
            names[leaves] = ways.name(number)
    for leaves, shares in slow.items():
        count = len(measured[leaves])
        part = " to ".join(dict.fromkeys(f"{share:.0%}" for share in (min(shares.values()), max(shares.values()))))
        told = f"{len(shares)} of {count} flows between these leaves carry {part} of the usual rate"
        again = [
            statistics.fmean(others[test]) / statistics.fmean(figures[test]) * share
            for test, share in shares.items()
            if others[test] and figures[test]
        ]
        flows = join_names([_describe_flow(ways, test, labels.get(test)) for test in shares], ", ")
        good = sum(evidence.measured[test].good for test in measured[leaves])
        why = (
            f"The cables at both ends of these flows are good in other flows: {flows}."
            f" {_explain_slow_links(len(shares), good, count)}"
        )
        if again:
            fast = sum(share >= GOOD for share in again)
            what = (
                "so the cause is the link that the flow takes, not a host"
                if fast
                else "so the other links between these leaves are no better, or the hosts themselves limit each other"
            )
            why += f" With a different flow label, {fast} of {len(again)} of these pairs reach the usual rate, {what}."
        one, other = (ways.name_of(leaf) for leaf in leaves)
        remedy = (
            f"Check the ports between {one} and {other}, and the ports of the spines on the path. Read rate, errors,"
            f" discards and PFC pauses from {COUNTERS}, and repair the port whose counters increase. Then run stage"
            " bandwidth again."
        )
        yield Finding("bandwidth.suspect", f"{fabric.name} {names[leaves]}", FAIL, told, expected, why, remedy)


def _describe_flow(ways: PathTable, test: Test, label: typing.Optional[int]) -> str:
    one, other = (ways.ends[end] for end in test)
    known = label is not None and not not_of_label([ways.cables[one.guid].driver])
    port = f", UDP source port {compute_udp_port(label)}" if label is not None and known else ""
    return f"{one.node} -> {other.node} (rail {one.rail}{port})"


def _explain_slow_links(slow: int, good: int, count: int) -> str:
    if good:
        return (
            "One or several of the links between these leaves are slow: other flows between these leaves are good. Only"
            " the switches know which link a flow takes."
        )
    if slow == count > 1:
        return (
            "Each flow between these leaves is slow, so the cause is all links between them, or a component that these"
            " links share. One leaf may have fewer or slower uplinks than other leaves."
        )
    return (
        "One or several of the links between these leaves are slow: no other flow between these leaves is known to be"
        " good."
    )


def describe_switch_step(name: str) -> str:
    """Return the instruction for a switch whose links are all slow.

    :param name: name of the switch
    """
    return (
        f"Check the switch {name}: its power, temperature and firmware. Read rate, errors and PFC pauses of its ports"
        f" from {COUNTERS}. Correct what differs from a healthy switch of the same model."
    )


def set_step() -> str:
    """Return the remedy for a set of links of which one is slow, if it is not known which one."""
    return (
        "Read the rate and the errors of these ports: run ethtool <interface> and ethtool -S <interface> on the nodes,"
        f" and read {COUNTERS}. {_SWAP}"
    )


def pair_step(ways: PathTable, test: Test) -> str:
    """Return the instruction for two HCA ports that are slow only with each other.

    :param ways: paths between the ports
    :param test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
    """
    seen = [f"ethtool -S {_name_interface(ways, end)} on {ways.ends[end].node}" for end in test]
    return (
        "Run stage bandwidth again while the nodes and the fabric are idle. If the pair is still slow, read"
        f" {' and '.join(seen)}, and read {COUNTERS}."
    )


def describe_cable_step(ways: PathTable, number: int) -> str:
    """Return the instruction for the cable between a node and its switch.

    :param ways: paths between the ports
    :param number: index in ``PathTable.directions`` of one of the two directions of the cable
    """
    direction = ways.directions[number]
    end, leaf = (
        (direction.source, direction.target)
        if direction.target in ways.switches
        else (direction.target, direction.source)
    )
    cable = ways.cables[end]
    name = cable.interface or "<interface>"
    there = f" Read the counters of port {cable.port} of {ways.name_of(leaf)} from {COUNTERS}." if cable.port else ""
    node = ways.name_of(end).partition(" ")[0]
    return (
        f"On {node}, run ethtool {name} and ethtool -S {name}, and check the NUMA node of the pod.{there} Reseat the"
        " cable. If the link is still slow, swap the cable, then the HCA."
    )


_SWAP = "Swap one cable, then run stage bandwidth again."


def _name_interface(ways: PathTable, end: int) -> str:
    cable = ways.cables.get(ways.ends[end].guid)
    return (cable.interface if cable is not None else "") or "<interface>"
