# SPDX-License-Identifier: GPL-3.0-or-later

"""The bandwidth that a collective should reach: the bus bandwidth of nccl-tests, computed from the measured rates of
the rails. Pure arithmetic without verdicts.

Rates of links are in Gb/s and bandwidths of collectives in GB/s, both decimal, as their tools print them. A formula
counts the bytes that have to leave a node. It is an upper bound, since NVLink inside the nodes may be the limit.
docs/collectives.md compares each formula with published figures.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of

#: tree: NCCL's double binary tree, which NVLSTree uses between nodes as well; in_network: the switches reduce (SHARP);
#: pat: of small ranks, one a node
Algorithm = typing.Literal["ring", "tree", "nvls_tree", "in_network", "pat", "nvls"]
#: collectives of which a formula is known
Collective = typing.Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"]

#: of the bound that a run must reach, by library and collective: not more than published runs reach whose links are
#: known (docs/collectives.md)
SHARES: dict[tuple[str, str], float] = {
    ("NCCL", "all_reduce"): 0.9,
    ("NCCL", "all_gather"): 0.85,
    ("NCCL", "reduce_scatter"): 0.85,
    ("NCCL", "alltoall"): 0.85,
    ("RCCL", "all_reduce"): 0.85,
}
#: of any other
SHARE = 0.8
#: smallest message whose figure is held against the bound, in bytes: the published figures that it is made from are of
#: 8 GiB, and 512 MiB reaches 0.92 of that
LEAST_BYTES = 1 << 30
#: collectives of which a ring loads all rails alike
_EVEN = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
#: as NCCL writes them; NVLS over several nodes is NVLS inside of them and SHARP between them
_NAMES: dict[str, Algorithm] = {
    "RING": "ring",
    "TREE": "tree",
    "NVLS_TREE": "nvls_tree",
    "COLLNET_DIRECT": "in_network",
    "COLLNET_CHAIN": "in_network",
    "PAT": "pat",
}


@dataclasses.dataclass(frozen=True)
class Shape:
    """The number of nodes and ranks that take part.

    :ivar nodes: number of nodes
    :ivar gpus: number of ranks of each node
    """

    nodes: int
    gpus: int

    @property
    def ranks(self) -> int:
        """Return the number of ranks of all nodes together."""
        return self.nodes * self.gpus


@dataclasses.dataclass(frozen=True)
class NodeFigure:
    """The bus bandwidth of a collective on a single node, for the slowest of the nodes that take part.

    :ivar bus_gbs: bus bandwidth, in GB/s
    :ivar algorithm: algorithm of NCCL; None if the log does not show it
    """

    bus_gbs: float
    algorithm: typing.Optional[Algorithm] = None


@dataclasses.dataclass(frozen=True)
class Floor:
    """The bandwidth that is expected of a run of a collective.

    :ivar bound_gbs: bus bandwidth by the formula of the algorithm, in GB/s, which no run exceeds
    :ivar floor_gbs: lowest bus bandwidth that passes, in GB/s
    :ivar most_gbs: bound of the fastest algorithm that NCCL may have used, in GB/s
    :ivar how: the formula with its numbers, as text for a finding
    :ivar network_gbs: floor by the rails alone, in GB/s; larger than ``floor_gbs`` if the inside of the nodes is the
        limit
    """

    bound_gbs: float
    floor_gbs: float
    most_gbs: float
    how: str
    network_gbs: float = 0.0


def name_algorithm(written: str, nodes: int) -> typing.Optional[Algorithm]:
    """Return the algorithm whose formula applies to an algorithm that NCCL's log names, or None if no formula is known
    for it.

    :param written: name of the algorithm in NCCL's log, such as ``NVLS``
    :param nodes: number of nodes of the communicator
    """
    if written == "NVLS":
        return "in_network" if nodes > 1 else "nvls"
    return _NAMES.get(written)


def compute_bus_factor(collective: str, ranks: int) -> float:
    """Return the ratio of bus bandwidth to algorithm bandwidth, as nccl-tests defines it.

    Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md, and ``GetBw`` of src/all_reduce.cu, all_gather.cu, reduce_scatter.cu,
    alltoall.cu, broadcast.cu, reduce.cu and sendrecv.cu.

    :param collective: name of the collective, such as ``all_reduce``
    :param ranks: number of all ranks
    :raises ValueError: fewer than one rank
    """
    if ranks < 1:
        raise ValueError(f"a communicator needs at least one rank, not {ranks}")
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in ("all_gather", "reduce_scatter", "alltoall") else 1.0


def compute_node_rate_gbs(rails_gbps: typing.Sequence[float]) -> float:
    """Return the rate in GB/s that a node sends over all of its rails: the number of rails times the slowest rail,
    because NCCL gives each rail the same share.

    :param rails_gbps: measured rate of each rail in one direction, in Gb/s, on the slowest node
    :raises ValueError: no rail, or a rate that is not between 0 and 1e6 Gb/s
    """
    if not rails_gbps or not all(0 < rate < 1e6 for rate in rails_gbps):
        raise ValueError("each rail of a node needs a measured rate above 0")
    return len(rails_gbps) * min(rails_gbps) / 8


def compute_sent_by_tree(nodes: int) -> float:
    """Return the data that the busiest node sends in an all_reduce over NCCL's two binary trees, as a multiple of the
    size S of the message.

    Each tree carries one half of the message up and down. With two nodes, each node is root of one tree and leaf of the
    other: S/2 down and S/2 up. With three nodes, one node is an inner node of one tree: S/2 more. With four or more
    nodes, an inner node has a parent and two children in one tree: S/2 up and twice S/2 down. As leaf of the other tree
    it sends S/2 up. Source: the trees that ncclGetDtree of NVIDIA/nccl, src/graph/trees.cc, builds.

    :param nodes: number of nodes
    """
    return {2: 1.0, 3: 1.5}.get(nodes, 2.0)


def compute_network_bound_gbs(
    collective: str, algorithm: Algorithm, shape: Shape, rate_gbs: float
) -> typing.Optional[float]:
    """Return the bus bandwidth in GB/s that the network allows. Return None if no formula is known, or if no data
    leaves a node.

    :param collective: name of the collective, such as ``all_reduce``
    :param algorithm: algorithm of NCCL
    :param shape: number of nodes and of ranks of the test
    :param rate_gbs: rate that a node sends over all of its rails in GB/s (B in the formulas)
    """
    if shape.nodes < 2:
        return None
    ranks = shape.ranks
    if collective == "alltoall":
        return rate_gbs * (ranks - 1) / (shape.gpus * (ranks - shape.gpus))
    if algorithm in ("ring", "pat"):
        return rate_gbs if collective in _EVEN else None
    if collective != "all_reduce":
        return None
    return (
        rate_gbs
        * compute_bus_factor("all_reduce", ranks)
        / (1.0 if algorithm == "in_network" else compute_sent_by_tree(shape.nodes))
    )


def compute_node_bound_gbs(
    collective: str, algorithm: Algorithm, shape: Shape, node: NodeFigure
) -> typing.Optional[float]:
    """Return the bus bandwidth in GB/s that the inside of a node allows, or None if the figure of the node proves
    nothing about this algorithm.

    A tree reduces inside the node first, at the algorithm bandwidth that the node reached alone. Only the bus factor
    changes with the number of ranks. A ring passes through the node at the bandwidth that a ring reached there.

    :param collective: name of the collective, such as ``all_reduce``
    :param algorithm: algorithm of NCCL
    :param shape: number of nodes and of ranks of the test
    :param node: bus bandwidth of a single node
    """
    if (
        algorithm in ("tree", "nvls_tree", "in_network")
        and collective == "all_reduce"
        and shape.gpus > 1
        and node.algorithm != "ring"
    ):
        return node.bus_gbs * compute_bus_factor(collective, shape.ranks) / compute_bus_factor(collective, shape.gpus)
    return node.bus_gbs if algorithm == node.algorithm == "ring" else None


def pick_least_share(collective: str) -> float:
    """Return the lowest share of the bound that published runs of a collective reach, over all libraries (NCCL, RCCL).

    :param collective: name of the collective, such as ``all_reduce``
    """
    return min(SHARES.get((library, collective), SHARE) for library, _collective in SHARES)


def compute_bandwidth_floor(
    collective: str,
    shape: Shape,
    rails_gbps: typing.Sequence[float],
    algorithm: typing.Optional[Algorithm] = None,
    node: typing.Optional[NodeFigure] = None,
    share: typing.Optional[float] = None,
    library: str = "NCCL",
) -> typing.Optional[Floor]:
    """Return the lowest bus bandwidth that passes for a run over the network, with its derivation. Return None if no
    formula is known.

    If the algorithm is unknown, the floor is computed from the lower of the bounds of ring and tree, and the upper
    bound is the higher of both. A tree of two or three nodes is limited by the inside of the nodes. If that was not
    measured, the floor is that of a ring, which is low.

    :param collective: name of the collective, such as ``all_reduce``
    :param shape: number of nodes and of ranks of the test
    :param rails_gbps: measured rate of each rail in one direction, in Gb/s, on the slowest node
    :param algorithm: algorithm in NCCL's log; None if unknown
    :param node: bus bandwidth of a single node; None if it was not measured
    :param share: share of the bound, above 0 and at most 1; None to use the share of published runs
    :param library: NCCL or RCCL
    :raises ValueError: a share outside of this range, no rail, or an invalid rate
    """
    share = SHARES.get((library, collective), SHARE) if share is None else share
    if not 0 < share <= 1:
        raise ValueError(f"a share must be above 0 and at most 1, not {share:g}")
    rate = compute_node_rate_gbs(rails_gbps)
    if collective == "sendrecv" and shape.nodes > 1:
        rail = rate / len(rails_gbps)
        return Floor(rail, share * rail, rail, f"{share:g} x {spell_gbs(rail)} of one rail")
    algorithms: tuple[Algorithm, ...] = (algorithm,) if algorithm else ("ring", "tree")
    bounds = [_compute_bus_bound(collective, item, shape, rate, node) for item in algorithms]
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return None
    least, most = min(known), max(known)
    # what the inside of a node allows is not known, so no more is asked for than a ring would reach
    loose = node is None and shape.nodes in (2, 3) and algorithm in ("tree", "nvls_tree", "in_network")
    asked = min(least, rate) if loose else least
    how = (
        f"{share:g} x {spell_gbs(asked)}, from {count_of(len(rails_gbps), 'rail')} x {min(rails_gbps):g}"
        f" Gb/s, {count_of(shape.nodes, 'node')}"
        f" x {count_of(shape.gpus, 'GPU')}"
    )
    named = "point to point" if collective == "alltoall" else algorithm or "algorithm unknown"
    how += f", {named}" + (
        ", limited to the bandwidth of a ring because the bandwidth inside a node was not measured" if loose else ""
    )
    rails = [compute_network_bound_gbs(collective, item, shape, rate) for item in algorithms]
    # a tree of two or three nodes could send more than the GPUs of a healthy node take, so no more is asked than of a
    # ring
    alone = min(rate, *(bound for bound in rails if bound is not None))
    return Floor(least if algorithm else most, share * asked, most, how, share * alone)


def spell_gbs(value: float) -> str:
    """Format a bandwidth in GB/s as text with its unit.

    :param value: bandwidth in GB/s
    """
    return f"{value:.1f} GB/s" if value >= 1 or not value else f"{value:.3g} GB/s"


def _compute_bus_bound(
    collective: str, algorithm: Algorithm, shape: Shape, rate_gbs: float, node: typing.Optional[NodeFigure]
) -> typing.Optional[float]:
    network = compute_network_bound_gbs(collective, algorithm, shape, rate_gbs)
    inside = compute_node_bound_gbs(collective, algorithm, shape, node) if node else None
    return network if network is None or inside is None else min(network, inside)
