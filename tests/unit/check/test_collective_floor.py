# SPDX-License-Identifier: GPL-3.0-or-later

"""What a collective should reach: the formula against each published figure, against NCCL's trees counted again, and
against numbers done by hand."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.floor import (
    SHARES,
    NodeFigure,
    Shape,
    compute_bandwidth_floor,
    compute_bus_factor,
    compute_network_bound_gbs,
    compute_node_rate_gbs,
    compute_sent_by_tree,
    name_algorithm,
)
from ansible_collections.linerate.rdma.tests.unit.check.published_collectives import (
    PAGE,
    PUBLISHED,
    Published,
    put_table,
)

NDR = [392.0] * 8
H100 = NodeFigure(480.0, "nvls")


@pytest.mark.parametrize(
    "item",
    [item for item in PUBLISHED if item.kind == "run" and not item.unexplained],
    ids=lambda item: f"{item.system} {item.gbs:g}",
)
def test_each_explained_run_lies_between_floor_and_bound(item: Published) -> None:
    assert item.share is not None and item.asked <= item.share <= 1


@pytest.mark.parametrize(
    "item",
    [item for item in PUBLISHED if item.kind == "run" and item.unexplained],
    ids=lambda item: f"{item.system} {item.gbs:g}",
)
def test_what_is_not_explained_is_really_not(item: Published) -> None:
    assert item.share is None or not item.asked <= item.share <= 1


@pytest.mark.parametrize("item", [item for item in PUBLISHED if item.kind == "fault"], ids=lambda item: item.source)
def test_each_fault_is_below_its_floor(item: Published) -> None:
    assert item.share is not None and item.share < item.asked


@pytest.mark.parametrize(
    "item", [item for item in PUBLISHED if item.kind == "floor"], ids=lambda item: f"{item.system} {item.source[:6]}"
)
def test_no_floor_of_others_is_above_the_bound(item: Published) -> None:
    assert (item.share is None and item.unexplained) or (item.share is not None and item.share <= 1)


def test_no_share_is_more_than_published_runs_reach() -> None:
    for (library, collective), share in SHARES.items():
        runs = [
            item.share
            for item in PUBLISHED
            if (item.library, item.collective, item.kind) == (library, collective, "run") and not item.unexplained
        ]
        # nobody publishes a reduce_scatter; it moves what an all_gather does
        assert share <= min(
            (run for run in runs if run),
            default=SHARES[library, "all_gather" if collective == "reduce_scatter" else collective],
        )


def test_the_page_has_the_table_of_today() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert put_table(text) == text, "run: python -m tests.unit.check.published_collectives"


# NCCL's trees, by the rule of ncclGetBtree and ncclGetDtree: a parent and up to two children of each node, in each of
# two trees


def edges(nodes: int) -> typing.Iterator[tuple[int, int]]:
    """Parent and child of each edge of both trees."""
    for child in range(1, nodes):
        bit = child & -child
        parent = (child ^ bit) | (bit << 1)
        parent = parent if parent < nodes else child ^ bit
        yield parent, child
        if nodes % 2:
            yield (parent + 1) % nodes, (child + 1) % nodes
        else:
            yield nodes - 1 - parent, nodes - 1 - child


@pytest.mark.parametrize("nodes", [*range(2, 40), 64, 100, 1000])
def test_what_the_busiest_node_sends_over_two_trees(nodes: int) -> None:
    sent = dict.fromkeys(range(nodes), 0.0)
    for parent, child in edges(nodes):
        sent[parent] += 0.5
        sent[child] += 0.5
    assert max(sent.values()) == compute_sent_by_tree(nodes)


# by hand


def test_rails_times_the_slowest() -> None:
    assert compute_node_rate_gbs(NDR) == 392.0 and compute_node_rate_gbs([392.0] * 7 + [196.0]) == 196.0
    for wrong in ([], [0.0], [400.0, float("nan")], [float("inf")], [-1.0]):
        with pytest.raises(ValueError, match="measured rate"):
            compute_node_rate_gbs(wrong)


@pytest.mark.parametrize(
    ("collective", "algorithm", "nodes", "bound"),
    [
        ("all_reduce", "ring", 2, 392.0),
        ("all_reduce", "ring", 1000, 392.0),
        ("all_gather", "ring", 2, 392.0),
        ("reduce_scatter", "pat", 4, 392.0),
        ("all_reduce", "nvls_tree", 2, 392 * 2 * 15 / 16),
        ("all_reduce", "tree", 3, 392 * 2 * 23 / 24 / 1.5),
        ("all_reduce", "nvls_tree", 4, 392 * 31 / 32),
        ("all_reduce", "in_network", 4, 392 * 2 * 31 / 32),
        ("alltoall", "ring", 2, 392 * 15 / 64),
        ("all_gather", "tree", 2, None),
        ("all_reduce", "ring", 1, None),
        ("alltoallv_of_tomorrow", "ring", 2, None),
    ],
)
def test_bounds(collective: str, algorithm: typing.Any, nodes: int, bound: typing.Optional[float]) -> None:
    found = compute_network_bound_gbs(collective, algorithm, Shape(nodes, 8), 392.0)
    assert found == (None if bound is None else pytest.approx(bound))


def test_two_nodes_are_bound_by_their_inside() -> None:
    floor = compute_bandwidth_floor("all_reduce", Shape(2, 8), NDR, "nvls_tree", H100)
    assert (
        floor is not None
        and floor.bound_gbs == pytest.approx(480 * (15 / 8) / (7 / 4))
        and floor.floor_gbs == pytest.approx(0.9 * floor.bound_gbs)
    )
    # without the figure of one node no more is asked for than of a ring, and the bound is that of the network
    loose = compute_bandwidth_floor("all_reduce", Shape(2, 8), NDR, "nvls_tree")
    assert (
        loose is not None
        and loose.floor_gbs == pytest.approx(0.9 * 392)
        and loose.bound_gbs == pytest.approx(735)
        and "was not measured" in loose.how
    )


def test_a_ring_is_not_bound_by_what_nvls_reached() -> None:
    for node, bound in ((H100, 392.0), (NodeFigure(370.0, "ring"), 370.0), (NodeFigure(370.0), 392.0)):
        floor = compute_bandwidth_floor("all_reduce", Shape(4, 8), NDR, "ring", node)
        assert floor is not None and floor.bound_gbs == bound


def test_an_algorithm_that_is_not_known_gives_the_least_floor_and_the_most_bound() -> None:
    floor = compute_bandwidth_floor("all_reduce", Shape(4, 8), NDR)
    assert floor is not None and floor.floor_gbs == pytest.approx(0.9 * 392 * 31 / 32) and floor.bound_gbs == 392.0
    floor = compute_bandwidth_floor("all_reduce", Shape(2, 8), NDR)
    assert floor is not None and floor.floor_gbs == pytest.approx(0.9 * 392) and floor.most_gbs == pytest.approx(735)


def test_one_rail_of_a_sendrecv() -> None:
    floor = compute_bandwidth_floor("sendrecv", Shape(2, 8), NDR)
    assert floor is not None and floor.bound_gbs == 49.0 and floor.floor_gbs == pytest.approx(0.8 * 49)


def test_share_and_library() -> None:
    floor = compute_bandwidth_floor("all_reduce", Shape(4, 8), NDR, "ring", share=0.5)
    assert (
        floor is not None
        and floor.floor_gbs == 196.0
        and floor.how == "0.5 x 392.0 GB/s, from 8 rails x 392 Gb/s, 4 nodes x 8 GPUs, ring"
    )
    floor = compute_bandwidth_floor("all_reduce", Shape(4, 8), NDR, "ring", library="RCCL")
    assert floor is not None and floor.floor_gbs == pytest.approx(0.85 * 392)
    for share in (0.0, 1.01, -1.0, float("nan")):
        with pytest.raises(ValueError, match="a share must be above 0 and at most 1"):
            compute_bandwidth_floor("all_reduce", Shape(4, 8), NDR, share=share)
    assert (
        compute_bandwidth_floor("all_reduce", Shape(1, 8), NDR) is None
        and compute_bandwidth_floor("all_gather", Shape(2, 8), NDR, "tree") is None
    )


@pytest.mark.parametrize(
    ("written", "nodes", "name"),
    [
        ("RING", 2, "ring"),
        ("NVLS", 1, "nvls"),
        ("NVLS", 2, "in_network"),
        ("COLLNET_CHAIN", 2, "in_network"),
        ("Unknown", 2, None),
        ("SYMMETRIC", 1, None),
    ],
)
def test_names_of_algorithms(written: str, nodes: int, name: typing.Optional[str]) -> None:
    assert name_algorithm(written, nodes) == name


def test_factors_of_nccl_tests() -> None:
    assert [
        compute_bus_factor(name, 16) for name in ("all_reduce", "all_gather", "alltoall", "broadcast", "sendrecv")
    ] == [
        1.875,
        0.9375,
        0.9375,
        1.0,
        1.0,
    ]
    with pytest.raises(ValueError, match="a communicator needs at least one rank"):
        compute_bus_factor("all_reduce", 0)
