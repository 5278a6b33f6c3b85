# SPDX-License-Identifier: GPL-3.0-or-later

"""A hardware address of zeros is none: one place says so, and it identifies no interface anywhere."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.devices import assigned_address
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import NetdevNeighbours
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.ethernet import _join_nics_by_network

CODE = pathlib.Path(__file__).resolve().parents[3] / "plugins" / "module_utils"
NONE = "00:00:00:00:00:00"


@pytest.mark.parametrize("address", [NONE, ":".join(["00"] * 20), "00", ""])
def test_zeros_of_any_length_are_no_address(address: str) -> None:
    assert assigned_address(address) == ""


def test_another_address_is_in_lower_case() -> None:
    assert assigned_address("02:FC:00:00:00:05") == "02:fc:00:00:00:05"


@pytest.mark.parametrize(
    ("address", "met"), [(NONE, {}), ("02:fc:00:00:00:05", {("b", "mlx5_0"): {("a", "mlx5_0"): None}})]
)
def test_a_neighbour_without_an_address_joins_no_networks(address: str, met: object) -> None:
    seen = {
        ("a", "mlx5_0"): [NetdevNeighbours("ens1", address)],
        ("b", "mlx5_0"): [NetdevNeighbours("ens1", "02:fc:00:00:00:06", (), (address,))],
    }
    assert _join_nics_by_network(seen)._seen == met


def test_no_other_place_knows_such_an_address() -> None:
    assert not [path for path in CODE.rglob("*.py") if f'"{NONE}"' in path.read_text(encoding="utf-8")]
