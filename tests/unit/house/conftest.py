# SPDX-License-Identifier: GPL-3.0-or-later

"""Intents for the tests of the house."""

from __future__ import annotations

import copy
import typing

import pytest

COMPUTE: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": "any", "hcas_per_node": 4},
    "virtual_functions": 8,
    "resource_name": "mlx_compute",
    "network": {"name": "sriov-ib-compute", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "100.100.0.0/22", "gateway": "100.100.0.1", "exclude": ["100.100.0.1"]},
}
STORAGE: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"vendor": "8086", "device": "10c9", "hcas_per_node": 1},
    "virtual_functions": 4,
    "resource_name": "igb_storage",
    "network": {"name": "sriov-storage", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.56.0.0/24"},
    "line_rate": {"floor_gbps": 0.01, "reason": "soft RDMA on an emulated NIC"},
}


def make_fabrics(**changes: typing.Any) -> list[dict[str, typing.Any]]:
    """Both fabrics; ``changes`` go into the first, with ``__`` between the keys of a path; None removes the key."""
    result = [copy.deepcopy(COMPUTE), copy.deepcopy(STORAGE)]
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = result[0]
        for parent in parents:
            target = target.setdefault(parent, {})
        if value is None:
            target.pop(last)
        else:
            target[last] = value
    return result


@pytest.fixture(name="fabrics")
def fixture_fabrics() -> typing.Callable[..., list[dict[str, typing.Any]]]:
    return make_fabrics
