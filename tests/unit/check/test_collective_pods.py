# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of stage collectives on pods, sizes of messages and undecided searches: each names what is missing."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.halving import Named
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.course_findings import report_suspects
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.pods import check_pod, check_sizes
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import NcclTestRow, NcclTests
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    CollectiveHca,
    CollectivePod,
    Collectives,
    CollectivesFacts,
    RanTest,
)
from ansible_collections.linerate.rdma.tests.unit.check.job_world import FABRICS

FABRIC = FABRICS[0]
RAILS = FABRIC.select.hcas_per_node
HCAS = tuple(CollectiveHca(f"mlx5_{rail}", rail) for rail in range(RAILS))
WANTED = Collectives("registry.example/nccl-tests:1", "8", "64Gi")


def test_pod_without_an_hca_on_a_rail_names_the_rail_in_the_measured_value() -> None:
    finding = check_pod(FABRIC, "n1", CollectivePod("n1", "pod-1", "n1", HCAS[:-1]))
    assert (finding.status, finding.measured.endswith(f"; no HCA on rail {RAILS - 1}")) == ("unknown", True)
    assert "hcas_per_node" in finding.why


def test_pod_without_a_host_name_says_so_in_the_measured_value() -> None:
    finding = check_pod(FABRIC, "n1", CollectivePod("n1", "pod-1", "", HCAS))
    assert finding.status == "unknown" and finding.measured.endswith("; host name of the pod unknown")
    assert finding.expected.endswith("and its host name")
    assert "facts/collectives in the folder of the report" in finding.why


def test_message_above_the_reported_limit_shows_the_limit() -> None:
    rows = tuple(NcclTestRow(1 << shift, 1, "float", "sum", None, None, None) for shift in (30, 31, 32, 33))
    ran = RanTest("all_reduce", "two nodes", ("n1", "n2"), figures=NcclTests(rows=rows, reduced_bytes=1 << 31))
    (finding,) = check_sizes(WANTED, CollectivesFacts("compute", runs=(ran,)))
    assert finding.measured == "1 GiB to 8 GiB, although the test reported a limit of 2 GiB"
    assert "head registry.example/nccl-tests:1 -c 4 /opt/nccl-tests/build/all_reduce_perf" in finding.remedy


def test_undecided_search_names_its_nodes_in_the_right_number() -> None:
    (one,) = report_suspects("all_reduce", "two nodes", Named(undecided=((1, ("n2",)),)))
    (two,) = report_suspects("all_reduce", "two nodes", Named(undecided=((1, ("n2", "n3")),)))
    assert "of this node," in one.remedy and one.why.startswith("n2 or the node tested with it is slow on rail 1.")
    assert "of these nodes," in two.remedy and two.why.startswith("At least one of n2, n3 is slow on rail 1.")
