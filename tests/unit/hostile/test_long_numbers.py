# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers and texts of one node or BMC without an end: they are the error of that node, and the fact of all stays."""

from __future__ import annotations

import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    MOST_WORDS,
    NodeDifference,
    NodeDifferences,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import BiosValue
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import parse_node
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.quantity import parse_whole
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._plan.bios import plan_bios
from ansible_collections.linerate.rdma.tests.unit.check.test_bios_by_bmc import bios

PARSERS = pathlib.Path(__file__).resolve().parents[3] / "plugins" / "module_utils" / "_parse"
#: a captured group of digits, of any number
ENDLESS = re.compile(r"\((?:\?P<\w+>)?-?(?:\[0-9\]|\\d)[+*]\)")


@pytest.mark.parametrize("amount", ["1e99", "9" * 30, "-1e20", "10E"])
def test_an_amount_beyond_64_bits_is_refused(amount: str) -> None:
    with pytest.raises(ResourceError, match="more than 9223372036854775807"):
        parse_whole(amount, "openshift.io/r1")
    assert parse_whole("9223372036854775807", "x") == 2**63 - 1


def test_a_node_with_such_an_amount_is_read_without_it() -> None:
    status = {"allocatable": {"openshift.io/r1": "1e99", "openshift.io/r2": "8"}}
    found = parse_node({"kind": "Node", "metadata": {"name": "worker-1"}, "spec": {}, "status": status})
    assert found.allocatable == {"openshift.io/r2": 8} and found.unread == {"openshift.io/r1": "1e99"}


@pytest.mark.parametrize("digits", [5, 70, 5000])
def test_a_rail_of_many_digits_is_no_rail(digits: int) -> None:
    head = "job-worker-0:1:2 [0] NCCL INFO "
    line = f"{head}NET/IB : Using [0]mlx5_0:1{{}}/IB [RO]; OOB eth0:10.0.0.1<0>\n{head}Using network IB\n"
    sound = nccl_log.parse_text(line.format(":3"))
    assert [device.rail for process in sound.processes for device in process.devices] == [3]
    hostile = nccl_log.parse_text(line.format(f":{'9' * digits}"))
    assert [device.rail for process in hostile.processes for device in process.devices] == [None]


def test_no_pattern_takes_digits_without_an_end_for_a_number() -> None:
    endless = {
        f"{path.relative_to(PARSERS)}:{number}"
        for path in sorted(PARSERS.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ENDLESS.search(line)
    }
    assert endless == set()


def test_texts_of_a_bmc_end_in_the_plan_of_a_roll() -> None:
    allowed = (BiosValue("x" * 4_000_000, "x"), *[BiosValue("z", "z")] * 100)
    hostile = bios(sriov={"name": "n" * 100_000, "current": "y" * 4_000_000, "allowed": allowed})
    (refusal,) = plan_bios(hostile, {"sriov": (True,)}).refusals
    assert len(refusal.why) < 1000 and "93 more" in refusal.why
    error = BmcError("not_found", "bmc", "w" * 4_000_000, "r" * 4_000_000)
    assert len(error.what) < 2100 and len(str(error)) < 4300
    seen = NodeDifferences((NodeDifference("BIOS", "sriov", "n" * 10_000, "on"),), ("a" * 10_000,), "b" * 10_000)
    texts: list[typing.Any] = [seen.differences[0].now, *seen.refusals, seen.error]
    assert all(len(text) < MOST_WORDS + 100 for text in texts)
