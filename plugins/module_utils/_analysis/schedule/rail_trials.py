# SPDX-License-Identifier: GPL-3.0-or-later

"""The tests of one rail that search for a slow port, leaf or uplink, and the parts of a group that they examine."""

from __future__ import annotations

import dataclasses
import typing

#: part: members of a slow group; single: one node beside a fast one of its leaf; abroad: beside a fast one of another
#: leaf, which accuses nobody; pair: two of a leaf, where nobody is known to be fast; leaf: a leaf beside a node of
#: another one; leaves: two leaves, to find some that are fast to each other
Kind = typing.Literal["part", "single", "abroad", "pair", "leaf", "leaves"]


@dataclasses.dataclass(frozen=True)
class RailTrial:
    """A test: one collective that uses a single rail.

    :ivar rail: number of the rail
    :ivar kind: purpose of the test: ``part`` (a subset of a slow group), ``single`` (one suspect with a fast node of
        its leaf), ``abroad`` (one suspect with a fast node of another leaf), ``pair`` (two nodes of a leaf), ``leaf``
        (the uplinks of a leaf, with a fast node of another leaf), ``leaves`` (all nodes of two leaves)
    :ivar nodes: nodes that take part, at least two
    :ivar suspects: nodes that the test examines; the remaining nodes are known to be fast
    """

    rail: int
    kind: Kind
    nodes: tuple[str, ...]
    suspects: tuple[str, ...]


@dataclasses.dataclass(eq=False)
class SuspectPart:
    """A subset of a slow group that is tested together, and that is halved if it is slow.

    :ivar nodes: names of the nodes
    :ivar parent: larger subset of which this is one half; None for the whole group
    :ivar halves: the two subsets into which it was divided; empty before it is divided
    :ivar fast: whether the test of the subset was fast enough; None if unknown
    :ivar again: whether the test of the subset is repeated once, because it was slow although both halves are fast
    """

    nodes: tuple[str, ...]
    parent: typing.Optional[SuspectPart] = None
    halves: tuple[SuspectPart, ...] = ()
    fast: typing.Optional[bool] = None
    again: bool = False


@dataclasses.dataclass(eq=False)
class WaitingTrial:
    """A test that waits for its turn, or for a fast node as a partner.

    :ivar kind: purpose of the test
    :ivar suspects: nodes that the test examines
    :ivar leaf: name of the leaf of all suspects; empty if they are on several leaves
    :ivar part: part of the group that the test examines; None for a test of pairs
    :ivar slow: number of slow results
    :ivar silent: whether it once gave no figure
    :ivar used: nodes and leaves that have been its partners
    """

    kind: Kind
    suspects: tuple[str, ...]
    leaf: str = ""
    part: typing.Optional[SuspectPart] = None
    slow: int = 0
    silent: bool = False
    used: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(eq=False)
class PairSample:
    """Pairs of nodes of a leaf or rail that are tested to find at least one fast pair.

    :ivar members: nodes of the leaf or rail
    :ivar pending: number of pairs without a result
    :ivar open: whether no pair was fast so far
    """

    members: tuple[str, ...]
    pending: int
    open: bool = True
