# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware of a node's HCAs, by tools that are stand-ins: which say what, which are not there, and which fail."""

from __future__ import annotations

import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FirmwareSetting,
    HcaFirmware,
    ReportedSetting,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import firmware, sysfs
from ansible_collections.linerate.rdma.tests.unit.firmware_node import ADDRESSES, FirmwareNode
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import add_igb, add_infiniband_vfs, guid

FIRST, SECOND = ADDRESSES[:2]


@pytest.fixture(name="node")
def fixture_node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> FirmwareNode:
    return FirmwareNode(tmp_path, monkeypatch)


def seen(node: FirmwareNode, **more: typing.Any) -> tuple[HcaFirmware, ...]:
    root = str(node.tree.root)
    return firmware.read_firmware(sysfs.read_node([root]), root, **more).hcas


def test_without_tools_sysfs_says_what_runs(node: FirmwareNode) -> None:
    hcas = seen(node)
    assert [hca.address for hca in hcas] == list(ADDRESSES)
    assert (hcas[0].running, hcas[0].psid) == (
        ReportedSetting("28.42.1000", "sysfs"),
        ReportedSetting("MT_0000000838", "sysfs"),
    ) and hcas[0].device == "1021"
    assert (hcas[0].stored, hcas[0].settings, hcas[0].settings_from, hcas[0].errors) == (None, (), "", ())
    assert hcas[0].not_asked == ("devlink is not installed", "mstconfig is not installed")


def test_a_function_with_two_rdma_devices_is_asked_once(node: FirmwareNode) -> None:
    node.tree.rdma(f"devices/pci{FIRST[:7]}/{FIRST}", "mlx5_99", guid(1, 99))
    assert [hca.address for hca in seen(node)] == list(ADDRESSES)


@pytest.mark.parametrize("version", ["4.21.0", "4.31.0"])
def test_mstconfig_says_what_is_set(node: FirmwareNode, version: str) -> None:
    node.add_mstconfig(version)
    node.set(
        FIRST,
        NUM_OF_VFS=["0", "8", "16", False],
        BOOT_VLAN=["1", "1", "2", False],
        IP_VER=["IPv4(0)", "IPv4(0)", "IPv4(0)", False],
    )
    first = seen(node)[0]
    assert first.settings_from == f"mstconfig {version[:4]}" and first.errors == ()
    assert first.setting("NUM_OF_VFS") == FirmwareSetting("NUM_OF_VFS", "16", "8", "0")
    # what waits is kept whatever it is; what is of no interest is not
    assert first.setting("BOOT_VLAN") is not None and first.setting("IP_VER") is None
    assert seen(node, chosen=[FIRST], every=True)[0].setting("IP_VER") is not None
    assert [hca.address for hca in seen(node, chosen=[SECOND])] == [SECOND]


def test_a_build_without_json_is_asked_for_the_table(node: FirmwareNode) -> None:
    node.add_mstconfig("4.30.0")
    old = (node.tools / "mstconfig").read_text(encoding="utf-8").splitlines()[1]
    node.tool("mstconfig", f'[ "$1" = -v ] && echo "mstconfig, mstflint 4.33.0, Git SHA Hash: N/A" && exit; {old}')
    first = seen(node)[0]
    assert first.settings_from == "mstconfig 4.33" and first.setting("SRIOV_EN") is not None and first.errors == ()


def test_devlink_says_what_is_stored(node: FirmwareNode) -> None:
    said = (
        '{"info":{"pci/%s":{"versions":{"fixed":{"fw.psid":"MT_9"},'
        '"running":{"fw.version":"1.2.3"},"stored":{"fw.version":"1.2.4"}}}}}'
    )
    node.tool(
        "devlink",
        f"[ $4 = pci/{FIRST} ] || {{ echo 'kernel answers: Operation not supported' >&2; exit 1; }}; echo"
        f" '{said % FIRST}'",
    )
    first, second = seen(node)[:2]
    assert (first.psid, first.running, first.stored) == (
        ReportedSetting("MT_9", "devlink"),
        ReportedSetting("1.2.3", "devlink"),
        ReportedSetting("1.2.4", "devlink"),
    )
    # some functions have no devlink: nothing wrong, and sysfs has the version
    assert (
        second.running == ReportedSetting("28.42.1000", "sysfs")
        and "Operation not supported" in second.not_asked[0]
        and second.errors == ()
    )
    node.tool("devlink", "echo nonsense")
    assert "devlink: 'nonsense' is not JSON" in seen(node)[0].not_asked[0]


def test_a_tool_that_fails_is_an_error_and_leaves_the_others(node: FirmwareNode) -> None:
    node.add_mstconfig()
    node.breaks(FIRST)
    first, second = seen(node)[:2]
    assert (
        first.settings == ()
        and first.settings_from == ""
        and "Failed to open the device" in first.errors[0]
        and "ended with exit code 3" in first.errors[0]
    )
    assert second.settings and second.errors == ()
    node.tool("mstconfig", "echo Usage: none")
    assert "is not the table" in seen(node)[0].errors[0]


def test_settings_that_could_be_read_count_though_others_could_not(node: FirmwareNode) -> None:
    fixture = pathlib.Path(__file__).parent.parent / "fixtures" / "mstflint" / "mstconfig_4.26_some_unread.txt"
    node.tool("mstconfig", f"cat {fixture}; exit 3")
    first = seen(node)[0]
    assert (
        first.setting("SRIOV_EN") == FirmwareSetting("SRIOV_EN", "True(1)", "False(0)", "False(0)")
        and "Failed to query some of the TLVs" in first.errors[0]
    )


def test_mlxconfig_is_as_good(node: FirmwareNode) -> None:
    node.add_mstconfig()
    (node.tools / "mstconfig").rename(node.tools / "mlxconfig")
    assert seen(node)[0].settings_from.startswith("mlxconfig")


def test_a_tool_that_hangs_is_ended(node: FirmwareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.tool("mstconfig", '[ "$1" = -v ] || exec tail -f /dev/null')
    monkeypatch.setattr(firmware, "_ONE_SECONDS", 0.3)
    # nothing at all is asked once all of the time is gone
    assert all("querying all HCAs took more" in hca.errors[0] for hca in seen(node))
    monkeypatch.setattr(firmware, "_ONE_SECONDS", 1.2)
    assert all("did not end within" in hca.errors[0] for hca in seen(node))


def test_what_is_not_the_kernels_or_not_the_nodes_is_not_asked(node: FirmwareNode, tmp_path: pathlib.Path) -> None:
    node.add_mstconfig()
    node.tree.function(
        "0000:e0:00.0", vendor="0x15b3", device="0x1021", driver="vfio-pci", sriov_totalvfs="16", sriov_numvfs="0"
    )
    add_igb(node.tree)
    by_address = {hca.address: hca for hca in seen(node)}
    assert "vfio-pci" in by_address["0000:e0:00.0"].not_asked[0] and by_address["0000:e0:00.0"].settings == ()
    assert (
        by_address["0000:01:00.0"].not_asked == ("devlink is not installed", "mstconfig: the HCA is not an NVIDIA HCA")
        and by_address["0000:01:00.0"].errors == ()
    )
    # simulated HCAs are in a sysfs that is not the kernel's
    simulated = firmware.read_firmware(sysfs.read_node([str(node.tree.root)]), str(tmp_path / "nowhere")).hcas
    assert all("does not list this PCI function" in hca.not_asked[0] or "vfio" in hca.not_asked[0] for hca in simulated)


def test_virtual_functions_are_left_out(
    node: FirmwareNode, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vf").mkdir()
    other = FirmwareNode(tmp_path / "vf", monkeypatch, hcas=False)
    add_infiniband_vfs(other.tree)
    assert [hca.address for hca in seen(other)] == ["0000:3c:00.0"] and node.tree is not other.tree
