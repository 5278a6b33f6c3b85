# SPDX-License-Identifier: GPL-3.0-or-later

"""nic_firmware and nic_firmware_info as Ansible runs them, with a stand-in for mstconfig that keeps what it is told."""

from __future__ import annotations

import io
import json
import pathlib
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import LONGEST
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.sysfs import read_node
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.set_firmware import set_firmware
from ansible_collections.linerate.rdma.plugins.modules import nic_firmware, nic_firmware_info
from ansible_collections.linerate.rdma.tests.unit.firmware_node import ADDRESSES, FirmwareNode

FIRST, SECOND = ADDRESSES[:2]
Result = dict[str, typing.Any]


@pytest.fixture(name="node")
def fixture_node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> FirmwareNode:
    node = FirmwareNode(tmp_path, monkeypatch)
    node.add_mstconfig()
    return node


@pytest.fixture(name="run")
def fixture_run(node: FirmwareNode, monkeypatch: pytest.MonkeyPatch) -> typing.Callable[..., Result]:
    def call(module: typing.Any = nic_firmware, check: bool = False, **options: typing.Any) -> Result:
        output = io.StringIO()
        arguments = {"sysfs": [str(node.tree.root)], **options, "_ansible_check_mode": check, "_ansible_diff": True}
        with monkeypatch.context() as patch, patch_module_args(arguments), pytest.raises(SystemExit):
            patch.setattr("sys.stdout", output)
            module.main()
        answer: Result = json.loads(output.getvalue().strip().splitlines()[-1])
        return answer

    return call


Run = typing.Callable[..., Result]


def test_check_then_run_then_again_then_a_change(node: FirmwareNode, run: Run) -> None:
    wanted = {"SRIOV_EN": True, "NUM_OF_VFS": 24}
    before = node.state.read_text(encoding="utf-8")
    checked = run(check=True, settings=wanted, devices=[FIRST])
    assert node.state.read_text(encoding="utf-8") == before
    made = run(settings=wanted, devices=[FIRST])
    for answer in (checked, made):
        assert answer["changed"] and answer["reset_required"] and "mstfwreset" in answer["resets"][FIRST]
        assert answer["hcas"] == [
            {"address": FIRST, "device": "1021", "before": {"NUM_OF_VFS": "16"}, "after": {"NUM_OF_VFS": "24"}}
        ]
        assert answer["diff"] == {"before": f"{FIRST} NUM_OF_VFS=16\n", "after": f"{FIRST} NUM_OF_VFS=24\n"}
    assert node.settings()["NUM_OF_VFS"] == ["0", "16", "24", False] and node.settings(SECOND)["NUM_OF_VFS"][2] == "16"
    again = run(settings=wanted, devices=[FIRST])
    # the reset is still due
    assert (
        not again["changed"]
        and again["reset_required"]
        and again["hcas"][0]["after"] == {}
        and again["diff"] == {"before": "", "after": ""}
    )
    node.set(FIRST, NUM_OF_VFS=["0", "24", "24", False])
    assert run(settings=wanted, devices=[FIRST])["reset_required"] is False
    back = run(settings={"NUM_OF_VFS": 16}, devices=[FIRST])
    assert back["changed"] and node.settings()["NUM_OF_VFS"][2] == "16"


def test_all_hcas_where_none_is_named(node: FirmwareNode, run: Run) -> None:
    answer = run(settings={"PCI_WR_ORDERING": "force_relax", "ATS_ENABLED": False, "LINK_TYPE_P1": "IB"})
    assert [hca["address"] for hca in answer["hcas"]] == list(ADDRESSES)
    assert {node.settings(address)["PCI_WR_ORDERING"][2] for address in ADDRESSES} == {"force_relax(1)"}
    assert all(hca["after"] == {"PCI_WR_ORDERING": "force_relax"} for hca in answer["hcas"])
    assert not run(settings={"PCI_WR_ORDERING": 1})["changed"]


def test_each_hca_as_it_is_asked_of_that_one(node: FirmwareNode, run: Run) -> None:
    wanted = {FIRST.upper(): {"NUM_OF_VFS": 24}, SECOND: {"NUM_OF_VFS": 8, "ATS_ENABLED": False}}
    before = node.state.read_text(encoding="utf-8")
    checked = run(check=True, by_device=wanted)
    assert checked["changed"] and node.state.read_text(encoding="utf-8") == before
    made = run(by_device=wanted)
    assert [(hca["address"], hca["after"]) for hca in made["hcas"]] == [
        (FIRST, {"NUM_OF_VFS": "24"}),
        (SECOND, {"NUM_OF_VFS": "8"}),
    ] and {*made["resets"]} == {
        FIRST,
        SECOND,
    }
    assert made["hcas"] == checked["hcas"] and not run(by_device=wanted)["changed"]
    assert {node.settings(address)["NUM_OF_VFS"][2] for address in ADDRESSES[2:]} == {"16"}


def test_nothing_is_set_where_one_of_the_hcas_can_not_be(node: FirmwareNode, run: Run) -> None:
    before = node.state.read_text(encoding="utf-8")
    answer = run(by_device={FIRST: {"NUM_OF_VFS": 24}, SECOND: {"NUM_OF_PF": 2}})
    assert answer["failed"] and f"{SECOND}: NUM_OF_PF is read-only" in answer["msg"] and FIRST not in answer["msg"]
    assert node.state.read_text(encoding="utf-8") == before
    assert run(settings={"NUM_OF_VFS": 4}, by_device={FIRST: {}})["failed"] and run()["failed"]
    assert "by_device" in run(by_device={FIRST: "x"})["msg"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"SRIOV_ON": 1, "NUM_OF_VFS": 4}, f"{SECOND}: its firmware has no setting SRIOV_ON"),
        ({"NUM_OF_PF": 2, "NUM_OF_VFS": 4}, f"{FIRST}: NUM_OF_PF is read-only"),
        (
            {"MAX_ACC_OUT_READ": 44, "NUM_OF_VFS": 4},
            "the firmware reports this setting only after ADVANCED_PCI_SETTINGS is set to True",
        ),
        ({"NUM_OF_VFS": "-d x"}, "'-d x' is not a valid value of NUM_OF_VFS"),
    ],
)
def test_what_can_not_be_set_is_refused_before_anything_is(
    node: FirmwareNode, run: Run, settings: Result, text: str
) -> None:
    before = node.state.read_text(encoding="utf-8")
    answer = run(settings=settings)
    assert answer["failed"] and text in answer["msg"] and "No setting was written" in answer["msg"]
    assert node.state.read_text(encoding="utf-8") == before


def test_a_bluefield(node: FirmwareNode, run: Run) -> None:
    folder = f"bus/pci/devices/{SECOND}"
    node.tree.write(f"{folder}/device", "0xa2dc")
    node.set(SECOND, INTERNAL_CPU_OFFLOAD_ENGINE=["ENABLED(0)", "ENABLED(0)", "ENABLED(0)", False])
    before = node.state.read_text(encoding="utf-8")
    refused = run(settings={"NUM_OF_VFS": 4})
    assert refused["failed"] and "DPU mode" in refused["msg"] and node.state.read_text(encoding="utf-8") == before
    # in NIC mode it is set, and must not be reset by the tool
    node.set(SECOND, INTERNAL_CPU_OFFLOAD_ENGINE=["ENABLED(0)", "DISABLED(1)", "DISABLED(1)", False])
    made = run(settings={"NUM_OF_VFS": 4}, devices=[SECOND])
    assert (
        made["changed"]
        and ("Drain the node and power-cycle it. Do not use mstfwreset, which may return a BlueField to DPU mode.")
        in made["resets"][SECOND]
    )


def test_where_the_operator_decides_nothing_is_set(node: FirmwareNode, run: Run) -> None:
    before = node.state.read_text(encoding="utf-8")
    answer = run(settings={"NUM_OF_VFS": 4}, managed_by_operator=True)
    assert (
        answer["failed"]
        and "NicConfigurationTemplate" in answer["msg"]
        and node.state.read_text(encoding="utf-8") == before
    )


def test_an_hca_that_can_not_be_asked_is_refused(node: FirmwareNode, run: Run) -> None:
    node.breaks(SECOND)
    answer = run(settings={"NUM_OF_VFS": 4})
    assert answer["failed"] and f"{SECOND}: " in answer["msg"] and "Failed to open the device" in answer["msg"]
    assert node.settings()["NUM_OF_VFS"][2] == "16"
    assert (
        "the node has no physical function 0000:77:00.0"
        in run(settings={"NUM_OF_VFS": 4}, devices=["0000:77:00.0"])["msg"]
    )
    assert run(settings={"NUM_OF_VFS": 4}, devices=[FIRST])["changed"]


def test_a_tool_that_fails_or_lies(node: FirmwareNode, run: Run) -> None:
    real = (node.tools / "mstconfig").read_text(encoding="utf-8").splitlines()[1]
    node.tool("mstconfig", f'[ "$4" = set ] && {{ echo "-E- Failed to set configuration"; exit 3; }}; {real}')
    assert "Failed to set configuration" in run(settings={"NUM_OF_VFS": 4})["msg"]
    node.tool("mstconfig", f'[ "$4" = set ] && exit 0; {real}')
    assert "the tool accepted NUM_OF_VFS, but the next value differs" in run(settings={"NUM_OF_VFS": 4})["msg"]


def test_without_the_tool(node: FirmwareNode, run: Run) -> None:
    (node.tools / "mstconfig").unlink()
    assert "mstconfig is not installed. Install the package mstflint" in run(settings={"NUM_OF_VFS": 4})["msg"]


def test_nic_firmware_info(node: FirmwareNode, run: Run) -> None:
    node.set(FIRST, NUM_OF_VFS=["0", "8", "16", False])
    answer = run(nic_firmware_info, devices=[FIRST.upper()])
    (hca,) = answer["firmware"]["hcas"]
    assert (
        not answer["changed"]
        and hca["pending"] == ["NUM_OF_VFS"]
        and hca["dpu_mode"] is False
        and hca["settings_from"] == "mstconfig 4.21"
    )
    assert hca["running"] == {"value": "28.42.1000", "source": "sysfs"} and hca["not_asked"] == [
        "devlink is not installed"
    ]
    assert "the node has no physical function x" in run(nic_firmware_info, devices=["x"])["msg"]


def test_no_write_begins_that_may_outlast_the_hold_on_the_cluster(node: FirmwareNode) -> None:
    """A slow tool: the second HCA would be set while another run may change the cluster."""
    before, times, sysfs = node.settings(SECOND), iter((0.0, LONGEST - 60, LONGEST - 59)), str(node.tree.root)
    told = f"{SECOND} was not set because setting all HCAs took more than 540 s.*Set before: {FIRST}. Rerun"
    with pytest.raises(RdmaError, match=told):
        set_firmware(
            read_node([sysfs]),
            sysfs,
            (FIRST, SECOND),
            lambda _address: {"NUM_OF_VFS": "24"},
            False,
            lambda: next(times, LONGEST),
        )
    assert node.settings()["NUM_OF_VFS"][2] == "24" and node.settings(SECOND) == before
