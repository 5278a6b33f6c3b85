# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, the error counters of the HCAs of a RoCE fabric while its pairs are measured."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.hca_counters import HcaErrors
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)

from ..truth.fleet import FEW, ROCE, Fleet, healthy

#: the HCA whose counters are changed
FIRST = healthy(ROCE).of("bandwidth").bandwidth.pairs[0].errors[0]
NAME = f"compute: {FIRST.node} {FIRST.device}"
Change = typing.Callable[[HcaErrors], typing.Optional[HcaErrors]]


def judged(change: Change, fleet: typing.Optional[Fleet] = None, extra: tuple[HcaErrors, ...] = ()) -> list[Finding]:
    """Return the findings on counters after a change of the first counters of the first pair."""
    fleet = fleet or healthy(ROCE)
    facts = fleet.of("bandwidth")
    first: PairResult = facts.bandwidth.pairs[0]
    changed = change(first.errors[0])
    errors = (*(() if changed is None else (changed,)), *first.errors[1:], *extra)
    pairs = (dataclasses.replace(first, errors=errors), *facts.bandwidth.pairs[1:])
    facts = dataclasses.replace(facts, bandwidth=dataclasses.replace(facts.bandwidth, pairs=pairs))
    return [item for item in check(fleet.intent, facts) if item.check == "bandwidth.errors"]


def test_a_healthy_roce_fabric_has_one_passed_finding() -> None:
    (finding,) = judged(lambda item: item)
    assert (finding.status, finding.subject) == (PASS, "compute")
    assert (
        finding.measured == "no error counter of 6 of 6 HCAs increased; errors of the cables of 3 nodes not read: no"
        " pod inspects them (rdma_observers)"
    )


@pytest.mark.parametrize(
    ("counter", "status"),
    [
        ("packet_seq_err", WARN),
        ("rx_roce_discards", WARN),
        ("ip4InDiscards", WARN),
        ("tx_rdma_retx_pkts", WARN),
        ("rnr_nak_retry_err", FAIL),
    ],
)
def test_loss_is_found_whatever_the_figure_says(counter: str, status: str) -> None:
    found = judged(lambda item: dataclasses.replace(item, grown={counter: 7}))
    assert [item.status for item in found] == [status, PASS]
    assert found[0].subject == NAME and found[0].measured == f"{counter} +7"
    assert "run stage bandwidth again" in found[0].remedy and counter in found[0].why


@pytest.mark.parametrize(
    "change",
    [
        lambda item: None,
        lambda item: dataclasses.replace(item, read=0),
        lambda item: dataclasses.replace(item, why="the pod did not respond"),
        lambda item: dataclasses.replace(item, device="mlx5_99"),
        lambda item: dataclasses.replace(item, lower=("packet_seq_err",)),
    ],
)
def test_counters_that_were_not_read_of_one_pair_are_unknown(change: Change) -> None:
    found = judged(change)
    assert [item.status for item in found if item.subject == NAME] == [UNKNOWN]


def test_loss_in_one_pair_does_not_hide_that_another_pair_was_not_read() -> None:
    fleet = healthy(ROCE)
    facts = fleet.of("bandwidth")
    first, *others = facts.bandwidth.pairs
    lossy = dataclasses.replace(first.errors[0], grown={"packet_seq_err": 2})
    number = next(place for place, pair in enumerate(others) if FIRST.node in (pair.client, pair.server))
    others[number] = dataclasses.replace(others[number], errors=())
    pairs = (dataclasses.replace(first, errors=(lossy, *first.errors[1:])), *others)
    facts = dataclasses.replace(facts, bandwidth=dataclasses.replace(facts.bandwidth, pairs=pairs))
    found = {item.subject: item for item in check(fleet.intent, facts) if item.check == "bandwidth.errors"}
    item = found[NAME]
    assert (item.status, item.measured) == (UNKNOWN, "error counters not read; packet_seq_err +2")


def test_congestion_is_reported_and_is_no_error() -> None:
    (finding,) = judged(lambda item: dataclasses.replace(item, congestion={"np_cnp_sent": 40, "rx_prio3_pause": 2}))
    assert finding.status == PASS and "; congestion: np_cnp_sent +40, rx_prio3_pause +2" in finding.measured


def test_errors_of_the_cable_are_those_of_the_physical_function() -> None:
    physical = HcaErrors(FIRST.node, "mlx5_0", 12.0, 9, {"rx_discards_phy": 3})
    found = judged(lambda item: item, extra=(physical,))
    assert [(item.status, item.subject) for item in found] == [
        (WARN, f"compute: {FIRST.node} mlx5_0"),
        (PASS, "compute"),
    ]
    assert found[1].measured.endswith("errors of the cables of 2 nodes not read: no pod inspects them (rdma_observers)")


def test_infiniband_has_no_such_finding() -> None:
    fleet = healthy(FEW)
    assert [item for item in check(fleet.intent, fleet.of("bandwidth")) if item.check == "bandwidth.errors"] == []
