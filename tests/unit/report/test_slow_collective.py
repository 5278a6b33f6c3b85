# SPDX-License-Identifier: GPL-3.0-or-later

"""A case like NVIDIA/nccl#2409, as a whole run: two nodes with 400G RoCE rails that reach 392 Gb/s by ib_write_bw from
the memory of the hosts, and collectives that reach half of their floor with GPUDirect RDMA. The run is not green, and
it names a cause.
"""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.tests.unit.collectives_world import CLUSTER, FABRIC, NcclApi
from ansible_collections.linerate.rdma.tests.unit.report.report_world import records
from ansible_collections.linerate.rdma.tests.unit.report.test_collective_figures import CONTEXT, SMALL
from ansible_collections.linerate.rdma.tests.unit.report.test_metrics import report
from ansible_collections.linerate.rdma.tests.unit.run.test_collectives import measured, run

NODES = ("a", "b")
ROCE: dict[str, typing.Any] = {**FABRIC, "roce": {"dscp": 26}}
REDIRECTED = {"acs": (RowReading("redirected", ("0000:15:00.0",)),)}


def judged(**rows: tuple[RowReading, ...]) -> Record:
    """Return the record of the stage, with a slow way from each GPU to its HCA.

    :param rows: settings of node a, as stage tuning reads them
    """
    api = NcclApi(NODES)
    api.image_sets = {"NCCL_IB_QPS_PER_CONNECTION": "8", "NCCL_IB_TC": "106"}
    api.slow = {(node, rail) for node in NODES for rail in (0, 1)}
    facts = Facts(NODES, run(api, fabric=ROCE)[0], measured(NODES), tunings={"a": ObservedTuning(NodeTuning(rows))})
    return judge_stage(CONTEXT, RawIntent([ROCE], None, CLUSTER), to_data(facts))


@pytest.mark.parametrize(
    ("rows", "cause"), [({}, "from host memory"), (REDIRECTED, "halves the rate of GPUDirect RDMA")]
)
def test_slow_collective_over_fast_links_is_not_green_and_has_a_cause(
    rows: dict[str, tuple[RowReading, ...]], cause: str
) -> None:
    record = judged(**rows)
    found = [item.finding for item in record.judged]
    slow = [item for item in found if item.check == "collectives.bandwidth" and item.status == "fail"]
    assert record.gate == "closed" and slow and all("% of the minimum" in item.why for item in slow)
    assert any(item.status == "warn" and cause in item.why for item in found if item.check == "collectives.cause")
    assert any(cause in item.why for item in slow)
    whole = records(SMALL)
    shown = report(dataclasses.replace(whole, records={**whole.records, "collectives": record}))
    assert not shown.green and shown.summary.startswith("NOT GREEN")
