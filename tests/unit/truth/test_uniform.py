# SPDX-License-Identifier: GPL-3.0-or-later

"""A fault that all nodes have alike is no smaller than one of a single node: checks that compare nodes with each other
must not be the only ones that notice it."""

from __future__ import annotations

import typing

import pytest

from .breaks import uniform_cases
from .fleet import PAIR, ROCE, Shape, healthy
from .judge import CLOSED, verdict
from .table import GAPS, ROWS

ALL = (*ROWS, *GAPS)
#: what all may say alike, by kind and fact: why
ALIKE: dict[tuple[str, str], str] = {
    ("hcas", "node.hcas(PF).ports[].rate_gbps"): "It warns: all links are faster than their names say.",
    ("topologies", "node[].topology.links(HCA).a.port"): "No HCA has a port 0; the parser refuses it.",
    ("topologies", "node[].managers.ports[].manager.state"): "Master and standby have changed places.",
    ("tuning", "node.rows[gpu_fabric][].where"): "Of which GPUs it is only counts where others are missing.",
    ("tuning", "node.rows[gpu_fabric][].where[]"): "Of which GPUs it is only counts where others are missing.",
    ("tuning", "node.rows[gpu_clique][].value"): "NVLink that ends in each node has no clique.",
    ("tuning", "node.rows[gpu_clique][].where"): "Of which GPUs it is only counts where others are missing.",
    ("tuning", "node.rows[gpu_clique][].where[]"): "Of which GPUs it is only counts where others are missing.",
    ("job_pods.pods", "[].job"): "All pods are still of one job.",
}


@pytest.mark.parametrize("shape", [PAIR, ROCE], ids=["InfiniBand", "RoCE"])
def test_fault_of_all_nodes_alike_is_noticed_as_one_of_a_single_node(shape: Shape) -> None:
    fleet = healthy(shape)
    seen = [broken for broken in uniform_cases(fleet) if not any(row.named(broken.case) for row in ALL)]
    assert len(seen) > 300
    missed = [broken for broken in seen if verdict(fleet, broken) != CLOSED]
    unlisted = [broken.words for broken in missed if (broken.case.kind, broken.case.fact) not in ALIKE]
    assert unlisted == []


def test_each_exception_is_of_a_fact_that_there_is() -> None:
    known: set[tuple[str, typing.Any]] = set()
    for shape in (PAIR, ROCE):
        known |= {(broken.case.kind, broken.case.fact) for broken in uniform_cases(healthy(shape))}
    assert [entry for entry in ALIKE if entry not in known] == []
