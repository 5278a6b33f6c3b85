# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of collectives: what the loader takes of it, and what can't be meant."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.wanted import find_mistakes, pick_fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    Collectives,
    ExpectedBusbw,
)
from ansible_collections.linerate.rdma.tests.unit.check.job_world import FABRICS

WANTED = {"image": "registry.example/nccl-tests:1", "cpu": "32", "memory": "256Gi", "fabric": "compute"}


def of(**more: typing.Any) -> Collectives:
    answer: Collectives = load(Collectives, {**WANTED, **more}, "rdma_cluster.collectives")
    return answer


def test_the_least_that_is_asked_for_has_no_mistake() -> None:
    wanted = of()
    assert find_mistakes(wanted, FABRICS) == () and wanted.tests == ("all_reduce",) and wanted.share is None
    fabric = pick_fabric(wanted, FABRICS)
    assert fabric is not None and fabric.name == "compute"


def test_a_floor_of_ones_own_is_loaded() -> None:
    wanted = of(
        expected_busbw=[{"test": "all_reduce", "gbs": 240, "nodes": 2, "reason": "half of the rails are for storage"}]
    )
    assert (
        wanted.expected_busbw == (ExpectedBusbw("all_reduce", 240.0, "half of the rails are for storage", 2),)
        and find_mistakes(wanted, FABRICS) == ()
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"tests": ["sendrecv"]},
        {"launcher": "MPIJob"},
        {"expected_busbw": [{"test": "all_reduce", "gbs": 240}]},
        {"expected_busbw": [{"gbs": 240, "reason": "a b"}]},
        {"busbw": 400},
        {"share": "0.9"},
        {"image": None},
    ],
)
def test_what_the_loader_refuses(wrong: dict[str, typing.Any]) -> None:
    with pytest.raises(LoadError, match=r"rdma_cluster\.collectives"):
        of(**wrong)


FLOOR = ExpectedBusbw("all_reduce", 240.0, "half of the rails")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"fabric": "nothing"}, "fabric"),
        ({"gpus_per_node": 0}, "gpus_per_node"),
        ({"gpus_per_node": 3}, "gpus_per_node"),
        ({"gpus_per_node": 100}, "gpus_per_node"),
        ({"image": " "}, "image"),
        ({"memory": ""}, "memory"),
        ({"tests": ()}, "tests"),
        ({"tests": ("all_reduce", "all_reduce")}, "tests"),
        ({"most_bytes": 1 << 29}, "most_bytes"),
        ({"least_bytes": 4096}, "least_bytes"),
        ({"least_bytes": 1 << 20, "most_bytes": 1 << 19}, "most_bytes"),
        ({"seconds": 5}, "seconds"),
        ({"most_latency_us": 20.0}, "most_latency_us"),
        ({"latency": True, "most_latency_us": 0.0}, "most_latency_us"),
        ({"latency": True, "most_latency_us": float("nan")}, "most_latency_us"),
        ({"latency": True, "tests": ("all_gather",)}, "latency"),
        ({"latency_ratio": 1.0}, "latency_ratio"),
        ({"latency": True, "latency_ratio": 4.0}, "latency_ratio"),
        ({"latency_ratio": float("nan")}, "latency_ratio"),
        ({"soak_minutes": -1}, "soak_minutes"),
        ({"soak_minutes": 121}, "soak_minutes"),
        ({"leaves": {"su-1": ()}}, "leaves[su-1]"),
        ({"leaves": {" ": ("a",)}}, "leaves[ ]"),
        ({"leaves": {"su-1": ("a", "b"), "su-2": ("b",)}}, "leaves[su-2]"),
        ({"program_folder": "build"}, "program_folder"),
        ({"share": 0.49}, "share"),
        ({"share": 0.5}, "share_reason"),
        ({"share": 0.84, "share_reason": "slow"}, "share_reason"),
        ({"share": 0.84, "tests": ("alltoall", "all_reduce"), "share_reason": " "}, "share_reason"),
        ({"share": 1.01}, "share"),
        ({"share": float("nan")}, "share"),
        ({"expected_busbw": (dataclasses.replace(FLOOR, gbs=0.0),)}, "expected_busbw[0].gbs"),
        ({"expected_busbw": (dataclasses.replace(FLOOR, gbs=float("inf")),)}, "expected_busbw[0].gbs"),
        ({"expected_busbw": (dataclasses.replace(FLOOR, reason="slow"),)}, "expected_busbw[0].reason"),
        ({"expected_busbw": (dataclasses.replace(FLOOR, nodes=1),)}, "expected_busbw[0].nodes"),
        ({"expected_busbw": (dataclasses.replace(FLOOR, test="all_gather"),)}, "expected_busbw[0].test"),
        ({"expected_busbw": (FLOOR, FLOOR)}, "expected_busbw[1]"),
    ],
)
def test_what_cannot_be_meant_is_named_with_its_key(more: dict[str, typing.Any], key: str) -> None:
    (mistake,) = find_mistakes(dataclasses.replace(of(), **more), FABRICS)
    assert mistake.key == key and all((mistake.measured, mistake.expected, mistake.why, mistake.remedy))
    if key == "expected_busbw[0].test":
        assert mistake.remedy == (
            "Add 'all_gather' to rdma_cluster.collectives.tests, or remove rdma_cluster.collectives.expected_busbw[0]."
        )


@pytest.mark.parametrize(
    "more",
    [
        {"share": 0.5, "share_reason": "half of the rails are for storage"},
        {"share": 0.85},
        {"share": 0.8, "tests": ("alltoall",)},
    ],
)
def test_a_share_as_of_published_runs_or_with_a_reason_is_taken(more: dict[str, typing.Any]) -> None:
    assert find_mistakes(dataclasses.replace(of(), **more), FABRICS) == ()


def test_the_nodes_of_leaves_are_those_of_the_inventory() -> None:
    wanted = dataclasses.replace(of(), leaves={"su-1": ("node-1", "nodee-2"), "su-2": ("node-3", "ghost")})
    told = find_mistakes(wanted, FABRICS, ("node-1", "node-2", "node-3"))
    assert [(item.key, item.measured) for item in told] == [("leaves[su-1]", "nodee-2"), ("leaves[su-2]", "ghost")]
    assert "did you mean 'node-2'" in told[0].expected
    # where the inventory has no nodes, that is told
    assert find_mistakes(wanted, FABRICS) == ()


def test_one_of_several_fabrics_must_be_named() -> None:
    (mistake,) = find_mistakes(of(fabric=None), FABRICS)
    assert mistake.key == "fabric" and "fabrics with RDMA" in mistake.measured
    assert find_mistakes(of(fabric=None), FABRICS[:1]) == ()
