# SPDX-License-Identifier: GPL-3.0-or-later

"""Which changes of a run in check mode excuse a finding: those that may be about it, and no others."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.mended import (
    BY_CHECK,
    BY_PLATFORM,
    may_resolve,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import LABEL_ABSENT
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import CHECKS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES, Finding, Status

SWAPPINESS, GOVERNOR = "sysctl vm.swappiness: 60 -> 10", "sysfs /sys/devices/system/cpu/*/scaling_governor: a -> b"


def finding(check: str, subject: str = "worker-1", status: Status = "fail", measured: str = "") -> Finding:
    return Finding(check, subject, status, measured, "", "so", "do")


@pytest.mark.parametrize(
    ("check", "subject", "stage", "lines", "resolved"),
    [
        ("tuning.memory", "worker-1 swappiness", "tuning", (SWAPPINESS,), True),
        ("tuning.memory", "worker-1 dirty_ratio", "tuning", (SWAPPINESS,), False),
        ("tuning.memory", "worker-1 swappiness", "tuning", (GOVERNOR,), False),
        ("tuning.memory", "worker-1 swap_kib", "tuning", (SWAPPINESS, GOVERNOR), False),
        ("tuning.memory", "worker-1 thp", "tuning", ("wrote /etc/tmpfiles.d/90-linerate-rdma.conf",), True),
        ("tuning.memory", "worker-1 swappiness", "tuning", ("create Tuned linerate-rdma",), True),
        ("tuning.memory", "worker-1 swap_kib", "tuning", ("create Tuned linerate-rdma",), False),
        ("tuning.kernel", "worker-1 tuned", "tuning", ("create Tuned linerate-rdma",), True),
        ("tuning.cpu", "worker-1 governor", "tuning", (GOVERNOR,), True),
        ("tuning.cpu", "worker-1 governor", "tuning", (SWAPPINESS,), False),
        ("tuning.set", "worker-1", "tuning", (SWAPPINESS,), True),
        # what a reboot with other arguments changes, and what it does not
        ("tuning.kernel", "worker-1 iommu", "platform", (), True),
        ("tuning.kernel", "worker-1 iommu", "tuning", (SWAPPINESS,), False),
        ("tuning.kernel", "worker-1 kernel_log", "platform", (), False),
        ("tuning.cpu", "worker-1 smt", "platform", (), True),
        ("tuning.cpu", "worker-1 irqbalance", "platform", (), False),
        ("tuning.pci", "worker-1 acs", "platform", (), True),
        ("tuning.pci", "worker-1 gpu_nic_path", "platform", (), False),
    ],
)
def test_a_tuning_row_waits_for_its_own_setting(
    check: str, subject: str, stage: str, lines: typing.Sequence[str], resolved: bool
) -> None:
    assert may_resolve(finding(check, subject), {stage}, lines) == resolved


@pytest.mark.parametrize(
    "check",
    [
        *("tuning.gpu", "tuning.nvlink_domain", "tuning.roce"),
        *("operators.driver", "operators.driver_kernels", "operators.image", "operators.resource_prefix"),
        *("network.address_pool", "network.addresses", "network.lint_uplink"),
    ],
)
def test_what_no_run_makes_waits_for_no_change(check: str) -> None:
    assert not may_resolve(finding(check), STAGES)


def test_what_a_change_of_another_kind_is_not_about() -> None:
    for check, able in BY_CHECK.items():
        for stage in STAGES:
            assert may_resolve(finding(check), {stage}) == (stage in able), (check, stage)


@pytest.mark.parametrize(
    ("check", "status", "measured"),
    [
        # node feature discovery, which the stage installs, writes the labels
        ("operators.driver", "fail", f"{LABEL_ABSENT} on: worker-1"),
        ("operators.driver", "unknown", "driver policies and nodes not read"),
        ("operators.needed", "fail", ""),
        ("operators.config", "fail", ""),
    ],
)
def test_what_an_operator_brings_waits_for_it(check: str, status: Status, measured: str) -> None:
    assert may_resolve(finding(check, status=status, measured=measured), {"operators"}, ("an operator",))
    assert not may_resolve(finding(check, status=status, measured=measured), {"tuning"})


def test_what_is_named_is_there() -> None:
    assert set(BY_CHECK) <= set(CHECKS)
    assert set(BY_PLATFORM) <= {row.name for row in ROWS if row.setting is None}
