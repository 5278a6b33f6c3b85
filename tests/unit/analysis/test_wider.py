# SPDX-License-Identifier: GPL-3.0-or-later

"""With how much a pair that is too slow is measured once more."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import (
    compute_seconds_of_wider,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.wider import widen_amount
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

(FABRIC,) = parse_intent(
    [
        {
            "name": "compute",
            "profile": "sriov_infiniband",
            "select": {"hcas_per_node": 1},
            "virtual_functions": 8,
            "resource_name": "mlx",
            "network": {"name": "ib", "namespace": "test"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        }
    ]
).fabrics
MIB = 2**20


@pytest.mark.parametrize(
    ("pods", "first", "amount"),
    [
        ({}, 4, (16, 4 * MIB, None)),
        ({}, None, (16, 4 * MIB, None)),
        ({}, 16, (16, 4 * MIB, None)),
        ({}, 32, (32, 4 * MIB, None)),
        # perftest takes two messages of memory for each queue pair
        ({"memory": "128Mi"}, 1, (16, 2 * MIB, None)),
        ({"memory": "32Mi"}, 1, (8, MIB, None)),
        ({"memory": "1Mi"}, 1, None),
        ({"message_bytes": 8 * MIB}, 1, (16, 8 * MIB, None)),
        ({"message_bytes": 8 * MIB}, 16, None),
        # no more data than before, but for what perftest sends at least
        ({"iterations": 100, "message_bytes": 65536, "memory": "128Mi"}, 1, (16, 65536, 6)),
        ({"iterations": 1000}, 1, (16, 4 * MIB, 15)),
        ({"iterations": 5}, 1, (16, MIB, 5)),
    ],
)
def test_more_queue_pairs_and_larger_messages_as_far_as_there_is_room(
    pods: dict[str, typing.Any],
    first: typing.Optional[int],
    amount: typing.Optional[tuple[int, int, typing.Optional[int]]],
) -> None:
    fabric = dataclasses.replace(FABRIC, pods=dataclasses.replace(FABRIC.pods, **pods))
    assert widen_amount(fabric, first) == amount


def test_the_time_of_a_second_measurement_is_planned_where_there_can_be_one() -> None:
    assert compute_seconds_of_wider(FABRIC) == (15, 160)
    assert compute_seconds_of_wider(
        dataclasses.replace(FABRIC, pods=dataclasses.replace(FABRIC.pods, memory="1Mi"))
    ) == (0, 0)
