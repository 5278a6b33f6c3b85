# SPDX-License-Identifier: GPL-3.0-or-later

"""Report the suspects: nodes, HCAs, leaves and links whose failure would explain several failing pairs. Each finding
has the remedy.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hca_locations import find_topology
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.suspects import MOST_SUSPECTS, Element, Suspect, links_of, name_suspect
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import ObservedTopologies, Place, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .pairs import lose_some_each
from .partitions import find_status, remedy_of
from .ping_results import Pair

#: cause of a loss that each pair has
_BUSY = (
    "Each pair loses some messages, but no pair loses all messages. A cable cannot be the cause. The nodes may be too"
    " busy to answer in time, and a late answer counts as lost."
)


def check_suspects(
    fabric: Fabric,
    pairs: typing.Sequence[Pair],
    found: typing.Sequence[Suspect],
    membership: Membership,
    topologies: typing.Mapping[str, ObservedTopologies],
) -> list[Finding]:
    """Return one finding for each suspect, which is a common cause of failing pairs, and for the failing pairs that no
    suspect explains. Return a single pass if no pair fails, and a single finding of status ``unknown`` if no pair has a
    result. Pairs that only partition keys separate have a finding of their own if there is no suspect.

    :param pairs: all planned pairs with their results
    :param found: suspects, the strongest first. A suspect without elements holds the pairs that the suspects do not
        explain
    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    """
    measured = sum(pair.ping is not None for pair in pairs)
    expected = "no pair fails"
    if not measured:
        why, remedy = (
            "Without the result of a pair, the stage cannot search for a common cause of failures.",
            (
                "Follow the remedies of the findings reachability.node and reachability.port, then run stage"
                " reachability again."
            ),
        )
        expected = "pairs with results, of which no pair fails"
        return [Finding("reachability.suspect", fabric.name, UNKNOWN, "no pair with a result", expected, why, remedy)]
    parted = [found for found in (pair.apart for pair in pairs) if found]
    if parted and not found:
        why = (
            "The ports of these pairs have no partition in which they can exchange packets. Cables and HCAs are not"
            " the cause. The finding reachability.pair of each pair names the partition keys."
        )
        subject = f"{fabric.name} partition keys"
        return [
            Finding(
                "reachability.suspect",
                subject,
                find_status(parted),
                f"{len(parted)} of {measured} pairs fail",
                expected,
                why,
                remedy_of(parted),
            )
        ]
    if not found:
        return [build_pass("reachability.suspect", fabric.name, f"0 of {measured} pairs fail", expected)]
    topology, blind = find_topology(membership, topologies)
    where = {
        f"{place.node} {place.hca}": place
        for place in (end.place for pair in pairs for end in (pair.client, pair.server))
    }
    return [
        (
            _judge_suspect(fabric, suspect, where, topology, blind, lose_some_each(pairs))
            if suspect.elements
            else _judge_rest(fabric, suspect, len(found) - 1)
        )
        for suspect in found
    ]


def _judge_rest(fabric: Fabric, rest: Suspect, named_before: int) -> Finding:
    """Return the finding on the failing pairs that no suspect explains.

    :param rest: pairs that no suspect explains, in the form of a suspect
    :param named_before: number of suspects that were reported
    """
    if named_before == MOST_SUSPECTS:
        why, remedy = (
            "The components in the other findings reachability.suspect do not explain these failing pairs:"
            f" {_format_explained_pairs(rest)}.",
            "Follow the remedies of the other findings reachability.suspect first, then run stage reachability again.",
        )
    else:
        why = (
            "These failing pairs have no common cause, because too many other pairs pass over the same HCAs, leaves"
            f" and links: {_format_explained_pairs(rest)}."
        )
        remedy = (
            "Follow the remedy of the finding reachability.pair of each pair. Or set a higher reachability_count or"
            " reachability_rounds, and run stage reachability again: more pings may show a common cause."
        )
    return Finding(
        "reachability.suspect",
        fabric.name,
        FAIL,
        count_of(rest.failed, "pair fails", "pairs fail"),
        "no pair fails",
        why,
        remedy,
    )


def _format_explained_pairs(suspect: Suspect) -> str:
    """Return the first three pairs that a suspect explains as text, and the number of further pairs."""
    more = f" and {len(suspect.explained) - 3} more" if len(suspect.explained) > 3 else ""
    return ", ".join(f"{one.client} -> {one.server}" for one in suspect.explained[:3]) + more


def _judge_suspect(
    fabric: Fabric,
    suspect: Suspect,
    where: typing.Mapping[str, Place],
    topology: typing.Optional[Topology],
    blind: str,
    some_each: bool,
) -> Finding:
    """Return the failed finding on an HCA, switch or link that failing pairs have in common.

    :param suspect: elements in common, with the pairs that they explain
    :param where: leaf and leaf port of each HCA, by the name of the HCA
    :param topology: topology of the fabric; None if none was read
    :param blind: why switches cannot be suspected, such as an unread topology; empty if they can
    :param some_each: whether every pair loses some messages and none loses all, which indicates other traffic
    """
    unseen = f" The switches were not searched for a cause: {blind}" if blind else ""
    why = f"All of these failing pairs use this component: {_format_explained_pairs(suspect)}."
    if len(suspect.elements) > 1:
        why = (
            "These failing pairs use all of these components, so the pings cannot show which component is faulty:"
            f" {_format_explained_pairs(suspect)}."
        )
    remedy = f"{' '.join(_next_steps(suspect.elements, where, topology))} Then run stage reachability again."
    if some_each:
        why = _BUSY
        remedy = (
            "Set reachability_timeout_ms to 1000, and run stage reachability again while no job runs. If each pair"
            f" still loses some messages, follow these steps. {remedy}"
        )
    subject = f"{fabric.name} {name_suspect(suspect.elements)}"
    return Finding(
        "reachability.suspect",
        subject,
        FAIL,
        f"{suspect.failed} of {suspect.trials} pairs fail",
        "no pair fails",
        why + unseen,
        remedy,
    )


def _next_steps(
    elements: typing.Iterable[Element], where: typing.Mapping[str, Place], topology: typing.Optional[Topology]
) -> typing.Iterator[str]:
    """Yield one instruction for each element that a suspect consists of, such as an HCA or a switch. The links between
    switches share one instruction, which names each link once.

    :param elements: elements of the suspect, which the pairs cannot distinguish
    :param where: leaf and leaf port of each HCA, by the name of the HCA
    :param topology: topology of the fabric; None if none was read
    """
    of_links = [element for element in elements if element.kind in ("uplinks", "leaves")]
    if of_links:
        names = ", ".join(dict.fromkeys(links_of(element, topology) or element.name for element in of_links))
        yield (
            "As root on a node of the fabric, run ibqueryerrors and ibtracert SOURCE-LID DESTINATION-LID. Of these"
            " links and switches, repair the link whose error counters increase, or the switch at which ibtracert"
            f" stops: {names}."
        )
    yield from (_next_step(element, where, topology) for element in elements if element not in of_links)


def _next_step(element: Element, where: typing.Mapping[str, Place], topology: typing.Optional[Topology]) -> str:
    """Return the instruction for one element of a suspect. The instruction for an HCA names both ends of its cable.

    :param element: HCA, switch, leaf or links that failing pairs have in common
    :param where: leaf and leaf port of each HCA, by the name of the HCA
    :param topology: topology of the fabric; None if none was read
    """
    name = element.name
    if element.kind == "hca":
        place = where[name]
        cable = f"{name} to port {place.leaf_port} of {place.leaf}" if place.leaf else f"{name} to its leaf"
        return (
            "Run ibqueryerrors as root on a node of the fabric for the error counters of both ends of the cable"
            f" from {cable}. Drain the node, and reseat or replace the cable. If the pings still fail, replace the"
            " HCA."
        )
    steps = {
        "node": (
            f"Check the findings of stages discover and fabric on {name}, and follow their remedies: the node must be"
            " up, and ibping -S must run on it."
        ),
        "client": (
            f"On {' '.join(name.split()[:1])}, run ibping -C {' '.join(name.split()[1:])} -L LID as root with the LID"
            " of a partner. If it gets no answer, correct the error of this HCA that dmesg shows. The link is not the"
            " cause, because the port answers other ports."
        ),
        "server": (
            f"On {' '.join(name.split()[:1])}, run ibping -S -C {' '.join(name.split()[1:])} as root, and ping it from"
            " another node (ibping -L LID). If it does not answer, correct the error that ibping -S prints, or that"
            " dmesg shows for this HCA. The link is not the cause, because the port gets answers from other ports."
        ),
        "leaf": (
            f"Run iblinkinfo as root on a node, and find the ports of the switch {name} that are down or slow."
            " Repair their links. Without such a port, restart the switch at a time without jobs, and update its"
            " firmware if it is old."
        ),
        "path": (
            f"Run ibtracert in both directions between the ports: {name}. Repair the link or the switch at which it"
            " stops. Each port passes with other ports, so the cause is on the path."
        ),
        "fabric": (
            "Correct the component that all pairs share: subnet manager, partition key or ibping. Follow the remedies"
            " of the findings fabric.manager and fabric.partitions first. Without such findings, run ibping -S on a"
            " node and ibping -L LID on another node as root, and correct the error that they print."
        ),
    }
    return steps[element.kind]
