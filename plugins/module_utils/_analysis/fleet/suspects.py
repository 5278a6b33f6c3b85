# SPDX-License-Identifier: GPL-3.0-or-later

"""What do the failing pairs have in common: the node, HCA, leaf or path that explains them, named from who passed and
who failed.

Each trial names the elements that it depends on. An element is suspected when the trials over it fail so much more
often than the others that chance does not explain it. That is the likelihood ratio of Kulldorff's scan statistic
(Communications in Statistics 26, 1997, for Bernoulli trials), taken greedily as in risk modelling (Kompella and others,
NSDI 2005): the strongest suspect explains its failures, and the next one is sought among what is left. It needs no
graph library, and nothing about the trials but their outcome, so a pair that is slow is a trial as well as one that
loses packets.
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
    """Something that can be broken.

    :ivar kind: node, hca (with its port and cable), client or server (an HCA in one role), leaf, uplinks (of a leaf),
        leaves (the way between two), path (between two ends), fabric
    :ivar name: what a reader calls it: worker-1 mlx5_0
    """

    kind: str
    name: str


class Trial(typing.NamedTuple):
    """One measurement between two ends.

    :ivar client: name of the end that asked
    :ivar elements: all that it depends on, each once
    """

    client: str
    server: str
    passed: bool
    elements: tuple[Element, ...]


class Suspect(typing.NamedTuple):
    """A component that explains some failed trials.

    :ivar elements: more than one: the trials cannot tell them apart. Empty: nothing stands out in what is left
    :ivar failed: trials over it that failed
    :ivar trials: trials over it
    :ivar explained: those of the failed ones that no earlier suspect explains
    """

    elements: tuple[Element, ...]
    failed: int
    trials: int
    explained: tuple[Trial, ...]


def make_trial(fabric: str, client: Place, server: Place, passed: bool) -> Trial:
    """Return a trial between two HCAs of a fabric, with all that it depends on. Without a topology no leaf is known,
    and none is suspected."""
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


def named(elements: typing.Sequence[Element]) -> str:
    """Return the name of a suspect: HCA worker-1 mlx5_0 or leaf leaf-1."""
    return " or ".join(f"{_CALLED[element.kind]} {element.name}" for element in elements)


def links_of(element: Element, topology: typing.Optional[Topology]) -> str:
    """Return the links that are meant by uplinks and leaves, with the port at each end; empty for other kinds, and
    without a topology."""
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
    """Return the fewest elements that explain the failed trials, the strongest first. Every failed trial is explained
    by exactly one suspect.

    :param trials: the passed ones too: they exonerate what they ran over
    :param most: what so many suspects do not explain is the last one, without an element
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
    """Return the element to suspect first.

    One without a passing trial comes before one that has some: two bad HCAs are two HCAs, and not one half-bad node.
    What chance may have made counts only when nothing passed over it; a fabric of two nodes has no more to tell.
    """
    threshold = math.log(elements / _BY_CHANCE)

    def rank(element: Element) -> tuple[bool, bool, float, int]:
        strength = _compute_likelihood_ratio(failed[element], over[element], all_failed, everything)
        return strength >= threshold, failed[element] == over[element], strength, failed[element]

    # of equals the first by name, so that the answer is the same each time
    best = max(sorted(failed), key=rank, default=None)
    return best if best is not None and any(rank(best)[:2]) else None


def _compute_likelihood_ratio(failed: int, trials: int, all_failed: int, everything: int) -> float:
    """Logarithm of how much likelier the outcome is when this element has a failure rate of its own; 0 when its rate is
    not above the others'."""
    others_failed, others = all_failed - failed, everything - trials
    if others and failed / trials <= others_failed / others:
        return 0.0
    return (
        _compute_log_likelihood(failed, trials)
        + _compute_log_likelihood(others_failed, others)
        - _compute_log_likelihood(all_failed, everything)
    )


def _compute_log_likelihood(failed: int, trials: int) -> float:
    """Of the outcome, with the failure rate that fits it best."""
    return sum(count * math.log(count / trials) for count in (failed, trials - failed) if count)


def _drop_redundant_elements(elements: typing.Sequence[Element]) -> tuple[Element, ...]:
    """Without what says no more than another one: a path beside its ends, a node or a role beside the HCA."""
    hcas = [element.name for element in elements if element.kind == "hca"]

    def more(element: Element) -> bool:
        if element.kind == "node":
            return not any(name.startswith(f"{element.name} ") for name in hcas)
        return element.kind != "path" and not (element.kind in ("client", "server") and element.name in hcas)

    return tuple(element for element in elements if more(element)) or tuple(elements)
