# SPDX-License-Identifier: GPL-3.0-or-later

"""The difference between an object of the cluster and the rendered one, as a refusal names it."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.differences import describe_difference


def of(**spec: typing.Any) -> dict[str, typing.Any]:
    return {"metadata": {"labels": {"a": str(spec)}}, "spec": spec}


@pytest.mark.parametrize(
    ("there", "wanted", "text"),
    [
        (of(numVfs=4), of(numVfs=4), ""),
        (of(numVfs=4, resourceName="storage"), of(numVfs=2), "numVfs: 4 -> 2, resourceName: storage -> not set"),
        (
            of(ipam=json.dumps({"type": "whereabouts", "range": "10.70.0.0/24"})),
            of(ipam=json.dumps({"range": "10.80.0.0/24", "type": "whereabouts"})),
            "ipam.range: 10.70.0.0/24 -> 10.80.0.0/24",
        ),
        (of(text="{" * 90000), of(text="x\ny"), f'text: {"{" * 37}... -> "x\\ny"'),
        (
            of(),
            of(**{f"f{at}": at for at in range(6)}),
            ", ".join(f"f{at}: not set -> {at}" for at in range(4)) + ", and 2 more",
        ),
        ({"data": {"a": [1]}}, {"data": {"a": [2]}}, "data.a: [1] -> [2]"),
    ],
)
def test_difference_names_the_first_fields_with_both_values(
    there: dict[str, typing.Any], wanted: dict[str, typing.Any], text: str
) -> None:
    assert describe_difference(there, wanted) == text
