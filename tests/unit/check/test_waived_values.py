# SPDX-License-Identifier: GPL-3.0-or-later

"""A waiver of a finding that tells of several components, by what the finding measured."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.unread import (
    count_unread,
    describe_unread,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.waivers import check_waivers
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import MOST_PATTERN, Waiver, judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.collectives_world import FABRIC


@pytest.mark.parametrize(
    ("errors", "open_"),
    [
        (("list clusterserviceversions: forbidden",), True),
        (("list clusterserviceversions: forbidden", "list pods: forbidden"), False),
        (("list pods: forbidden",), False),
    ],
)
def test_a_waiver_of_one_unread_kind_covers_no_other(errors: tuple[str, ...], open_: bool) -> None:
    finding = describe_unread("operators.read", "cluster", errors, "Give the rights.")
    waiver = Waiver(
        "operators.read", "we may not list them", "cluster", measured="1 object not read: list clusterserviceversions"
    )
    assert judge([finding], [waiver]).open is waiver.covers(finding) is open_
    assert judge([finding], [Waiver("operators.read", "we may not list them", "cluster")]).open


def test_the_value_names_what_was_not_read() -> None:
    assert count_unread(("list pods: forbidden", "list pods: again", "nodes: HTTP 500")) == (
        "3 objects not read: list pods, nodes"
    )


def test_the_pattern_of_a_value_is_as_long_as_the_others_at_most() -> None:
    waivers = [{"check": "operators.read", "reason": "we may not", "measured": "x" * (MOST_PATTERN + 1)}]
    (found,) = check_waivers(parse_intent([FABRIC], waivers))
    assert (found.status, found.subject) == ("fail", "rdma_waivers[0].measured")
