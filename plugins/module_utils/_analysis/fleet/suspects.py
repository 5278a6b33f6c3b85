# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the node, HCA, leaf or path that failing pairs have in common, from the pairs that passed and the pairs that
failed.

Each trial (measurement of a pair) names the elements on which it depends. An element is suspected if the trials over it
fail more often than the rest, by more than chance explains. The statistic is the likelihood ratio of Kulldorff's scan
statistic (Communications in Statistics 26, 1997, for Bernoulli trials), applied greedily as in risk modeling (Kompella
and others, NSDI 2005): the strongest suspect explains its failures, and the next one is sought among the remaining
failures. Only the outcome of a trial counts, so a slow pair is a trial as well as a pair that loses packets. No graph
library is needed.
"""

from __future__ import annotations

import collections
import math
import typing

from ..._model.infiniband.fabric import LinkEnd, Place, Topology

#: further suspects are told by their number only
MOST_SUSPECTS = 10
#: between the two names of a way
_WAY = " <-> "
#: links of a switch that are named
_MOST_LINKS = 8
#: of each kind of element: what it is called before its name
_CALLED = {
    "node": "node",
    "hca": "HCA",
    "client": "client",
    "server": "server",
    "leaf": "leaf",
    "uplinks": "uplinks of",
    "leaves": "links between",
    "path": "path",
    "fabric": "all of",
}
#: probability at which an element is suspected by chance alone
_BY_CHANCE = 0.05


class Element(typing.NamedTuple):
    """A part of the fabric that may be faulty, such as an HCA or a leaf.

    :ivar kind: node, hca (with its port and cable), client or server (an HCA in one role), leaf, uplinks (of a leaf),
        leaves (the path between two leaves), path (between two HCAs), fabric
    :ivar name: name for a finding, such as worker-1 mlx5_0
    """

    kind: str
    name: str


class Trial(typing.NamedTuple):
    """The outcome of one measurement between two HCAs.

    :ivar client: node and HCA of the client
    :ivar server: node and HCA of the server
    :ivar passed: whether the measurement passed
    :ivar elements: all elements on which the outcome depends, without duplicates
    """

    client: str
    server: str
    passed: bool
    elements: tuple[Element, ...]


class Suspect(typing.NamedTuple):
    """An element, or elements that cannot be distinguished, which explain some failed trials.

    :ivar elements: several if the trials cannot distinguish them; empty if no element stands out among the remaining
        failures
    :ivar failed: number of failed trials that depend on the elements
    :ivar trials: number of trials that depend on the elements
    :ivar explained: the failed trials that depend on the elements and that no earlier suspect explains
    """

    elements: tuple[Element, ...]
    failed: int
    trials: int
    explained: tuple[Trial, ...]


def make_trial(fabric: str, client: Place, server: Place, passed: bool) -> Trial:
    """Return a trial between two HCAs of a fabric, with all elements on which its outcome depends. If the leaf of one
    HCA is unknown, the trial contains no leaf, so that no leaf is suspected because of it.

    :param fabric: name of the fabric
    :param client: location of the client's HCA
    :param server: location of the server's HCA
    :param passed: whether the measurement passed
    """
    # hundreds of thousands of these are made for a large fabric
    one, other = f"{client.node} {client.hca}", f"{server.node} {server.hca}"
    elements = [
        Element("fabric", fabric),
        Element("client", one),
        Element("server", other),
        Element("path", f"{one}{_WAY}{other}" if one < other else f"{other}{_WAY}{one}"),
        Element("hca", one),
        Element("hca", other),
        Element("node", client.node),
        Element("node", server.node),
    ]
    if client.leaf is not None and server.leaf is not None:
        leaves = sorted({client.leaf, server.leaf})
        elements += [Element("leaf", leaf) for leaf in leaves]
        if len(leaves) == 2:
            elements += [Element("uplinks", leaf) for leaf in leaves]
            elements.append(Element("leaves", _WAY.join(leaves)))
    return Trial(one, other, passed, tuple(dict.fromkeys(elements)))


def name_suspect(elements: typing.Sequence[Element]) -> str:
    """Return the name of a suspect for a finding, such as ``HCA worker-1 mlx5_0 or leaf leaf-1``.

    :param elements: elements of the suspect, which the trials cannot distinguish
    """
    return " or ".join(f"{_CALLED[element.kind]} {element.name}" for element in elements)


def links_of(element: Element, topology: typing.Optional[Topology]) -> str:
    """Return the links that an element of the kind ``uplinks`` or ``leaves`` represents, as text with the port at each
    end. The text is empty for other kinds, and without a topology.

    :param topology: topology of the fabric; None if none was read
    """
    if topology is None or element.kind not in ("uplinks", "leaves"):
        return ""
    names = {node.guid: node.called for node in topology.nodes}
    far: dict[str, set[str]] = {name: set() for name in element.name.split(_WAY)}
    links = []
    for link in topology.links:
        for near, other in ((link.a, link.b), (link.b, link.a)):
            name = names.get(near.guid, near.guid)
            if name in far and other.kind == "Switch":
                far[name].add(other.guid)
                links.append((near, other))
    # between two leaves lie the switches that both are linked to; in a deeper tree there is none, and all uplinks count
    shared = set.intersection(*far.values())
    texts = sorted({_describe_link(near, other, names) for near, other in links if not shared or other.guid in shared})
    return ", ".join(texts[:_MOST_LINKS]) + (
        f" and {len(texts) - _MOST_LINKS} more" if len(texts) > _MOST_LINKS else ""
    )


def _describe_link(near: LinkEnd, far: LinkEnd, names: typing.Mapping[str, str]) -> str:
    return f"{names.get(near.guid, near.guid)} port {near.port} - {names.get(far.guid, far.guid)} port {far.port}"


def find_suspects(trials: typing.Sequence[Trial], most: int = MOST_SUSPECTS) -> tuple[Suspect, ...]:
    """Return the fewest elements that explain the failed trials, with the strongest first. Exactly one suspect explains
    each failed trial.

    :param trials: all trials. The passed ones exonerate the elements on which they depend
    :param most: maximum number of suspects with elements. A last suspect without an element holds the failures that
        they do not explain
    """
    left = [trial for trial in trials if not trial.passed]
    total = collections.Counter(element for trial in trials for element in trial.elements)
    failed = collections.Counter(element for trial in left for element in trial.elements)
    passed = len(trials) - len(left)
    found: list[Suspect] = []
    while left:
        now = collections.Counter(element for trial in left for element in trial.elements)
        # what an earlier suspect explains says nothing about the others
        over = {element: count + total[element] - failed[element] for element, count in now.items()}
        best = _find_strongest(now, over, len(left), passed + len(left), len(total)) if len(found) < most else None
        if best is None:
            found.append(Suspect((), len(left), len(left) + passed, tuple(left)))
            break
        explained = [trial for trial in left if best in trial.elements]
        alike = set(explained[0].elements).intersection(*(trial.elements for trial in explained[1:]))
        same = sorted(element for element in alike if (now[element], over[element]) == (now[best], over[best]))
        found.append(Suspect(_drop_redundant_elements(same), failed[best], total[best], tuple(explained)))
        left = [trial for trial in left if best not in trial.elements]
    return tuple(found)


def _find_strongest(
    failed: typing.Mapping[Element, int],
    over: typing.Mapping[Element, int],
    all_failed: int,
    everything: int,
    elements: int,
) -> typing.Optional[Element]:
    """Return the element to suspect first, or None if no element stands out.

    An element whose trials all failed comes before one that also has passed trials: two faulty HCAs are two HCAs, and
    not one node that is half faulty. An element whose failures chance may explain counts only if no trial over it
    passed, because a fabric of two nodes provides no more trials.

    :param failed: number of unexplained failed trials over each element
    :param over: number of unexplained failed trials and passed trials over each element
    :param all_failed: number of all unexplained failed trials
    :param everything: number of all unexplained failed trials and passed trials
    :param elements: number of elements
    """
    threshold = math.log(elements / _BY_CHANCE)

    def rank(element: Element) -> tuple[bool, bool, float, int]:
        """Return the rank of an element: whether it fails more often than chance explains, whether all trials over it
        failed, how much more likely its own failure rate makes the outcome, and the number of its failures.
        """
        strength = _compute_likelihood_ratio(failed[element], over[element], all_failed, everything)
        return strength >= threshold, failed[element] == over[element], strength, failed[element]

    # of equals the first by name, so that the answer is the same each time
    best = max(sorted(failed), key=rank, default=None)
    return best if best is not None and any(rank(best)[:2]) else None


def _compute_likelihood_ratio(failed: int, trials: int, all_failed: int, everything: int) -> float:
    """Return the logarithm of the factor by which the outcome is more likely if this element has its own failure rate.
    Return 0 if the failure rate of the element is not above that of all other trials.

    :param failed: number of failed trials over the element
    :param trials: number of trials over the element
    :param all_failed: number of all failed trials
    :param everything: number of all trials
    """
    others_failed, others = all_failed - failed, everything - trials
    if others and failed / trials <= others_failed / others:
        return 0.0
    return (
        _compute_log_likelihood(failed, trials)
        + _compute_log_likelihood(others_failed, others)
        - _compute_log_likelihood(all_failed, everything)
    )


def _compute_log_likelihood(failed: int, trials: int) -> float:
    """Return the logarithm of the likelihood of the outcome, for the failure rate that fits it best.

    :param failed: number of failed trials
    :param trials: number of all trials
    """
    return sum(count * math.log(count / trials) for count in (failed, trials - failed) if count)


def _drop_redundant_elements(elements: typing.Sequence[Element]) -> tuple[Element, ...]:
    """Return the elements without those that add no information to another one: a path beside its ends, and a node or a
    role beside the HCA. Return all elements if none would remain.

    :param elements: elements that the trials cannot distinguish
    """
    hcas = [element.name for element in elements if element.kind == "hca"]

    def more(element: Element) -> bool:
        """Return whether an element adds information to the other ones. A path does not, nor does a node or a role
        whose HCA is among them.
        """
        if element.kind == "node":
            return not any(name.startswith(f"{element.name} ") for name in hcas)
        return element.kind != "path" and not (element.kind in ("client", "server") and element.name in hcas)

    return tuple(element for element in elements if more(element)) or tuple(elements)
