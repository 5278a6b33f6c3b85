# SPDX-License-Identifier: GPL-3.0-or-later

"""Parsers of the firmware of HCAs: mstconfig of several versions, devlink, and the objects of NVIDIA's operator."""

from __future__ import annotations

import json
import pathlib
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FirmwareSetting,
    NicDevice,
    NicState,
    NicTemplate,
    is_equal,
    parse_number,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node import devlink, mstconfig
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nic_configuration_operator import (
    nic_device,
    nic_state,
    nic_template,
)

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "mstflint"
TABLES = ("4.21", "4.26", "4.34", "4.36")


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


def by_name(query: mstconfig.Query) -> dict[str, FirmwareSetting]:
    return {setting.name: setting for setting in query.settings}


@pytest.mark.parametrize("version", TABLES)
def test_all_versions_say_the_same(version: str) -> None:
    query = mstconfig.parse(fixture(f"mstconfig_{version}_connectx6.txt"))
    seen = by_name(query)
    assert query.device_type == "ConnectX6"
    assert (
        seen["SRIOV_EN"] == FirmwareSetting("SRIOV_EN", "True(1)", "False(0)", "False(0)") and seen["SRIOV_EN"].pending
    )
    assert seen["NUM_OF_VFS"] == FirmwareSetting("NUM_OF_VFS", "16", "0", "0")
    # its default is another value than the one in force, which is none that waits
    assert (
        seen["LINK_TYPE_P1"] == FirmwareSetting("LINK_TYPE_P1", "IB(1)", "IB(1)", "VPI(3)")
        and not seen["LINK_TYPE_P1"].pending
    )
    assert seen["NUM_OF_PF"].read_only is (version != "4.21")
    assert seen["PCI_ATOMIC_MODE"].next == "PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0)"
    # 4.21 prints a name of 41 signs into its value
    assert len(seen) == (18 if version == "4.21" else 19)


def test_json_says_what_the_table_says() -> None:
    table = mstconfig.parse(fixture("mstconfig_4.26_connectx6.txt"))
    assert by_name(mstconfig.parse_json(fixture("mstconfig_4.31_connectx6.json"))) == by_name(table)


def test_firmware_that_says_only_what_comes_next() -> None:
    seen = by_name(mstconfig.parse(fixture("mstconfig_4.21_connectx3pro.txt")))
    assert (
        seen["SRIOV_EN"] == FirmwareSetting("SRIOV_EN", "True(1)") and not seen["SRIOV_EN"].pending and len(seen) == 6
    )
    assert by_name(mstconfig.parse(fixture("mstconfig_4.21_next_only.txt")))["NUM_OF_VFS"] == FirmwareSetting(
        "NUM_OF_VFS", "16"
    )


def test_what_is_not_available_is_unknown() -> None:
    setting = by_name(mstconfig.parse(fixture("mstconfig_4.34_bluefield3.txt")))["CNP_DSCP_P1"]
    assert setting == FirmwareSetting("CNP_DSCP_P1", "48", None, "48") and not setting.pending


def test_a_table_stands_although_some_could_not_be_read() -> None:
    text = fixture("mstconfig_4.26_some_unread.txt")
    assert mstconfig.parse(text) == mstconfig.parse(fixture("mstconfig_4.26_connectx6.txt")) and "-E-" in text


TABLE = fixture("mstconfig_4.26_connectx6.txt")


@pytest.mark.parametrize(
    "text",
    [
        "",
        fixture("mstconfig_no_device.txt"),
        TABLE.rstrip("\n"),
        TABLE + TABLE,
        TABLE.replace("Next Boot", ""),
        TABLE.replace("False(0)             False(0)             True(1)", "False(0)"),
        TABLE.partition("Configurations:")[0] + "Configurations:   Default\n         SRIOV_EN    True(1)\n",
        TABLE.partition("        MEMIC_BAR_SIZE")[0],
        TABLE.replace("MEMIC_SIZE_LIMIT", "MEMIC_BAR_SIZE  "),
    ],
)
def test_what_is_no_table_of_one_device_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        mstconfig.parse(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update({"Device #2": {}}),
        lambda data: data["Device #1"]["tlv_configuration"].clear(),
        lambda data: data["Device #1"]["tlv_configuration"]["SRIOV_EN"].pop("next_value"),
        lambda data: data["Device #1"]["tlv_configuration"]["SRIOV_EN"].update(next_value=["x"]),
        lambda data: data["Device #1"]["tlv_configuration"]["SRIOV_EN"].update(next_value="a b"),
        lambda data: data["Device #1"]["tlv_configuration"]["SRIOV_EN"].update(read_only="no"),
        lambda data: data["Device #1"]["tlv_configuration"].update({"-d x": {"read_only": False, "next_value": 1}}),
    ],
)
def test_json_of_another_form_is_an_error(change: typing.Callable[[typing.Any], typing.Any]) -> None:
    data = json.loads(fixture("mstconfig_4.31_connectx6.json"))
    change(data)
    with pytest.raises(ParseError):
        mstconfig.parse_json(json.dumps(data))
    with pytest.raises(ParseError):
        # as the tool leaves it when it could not open the device
        mstconfig.parse_json("{}\n")


@hypothesis.given(
    rows=some.dictionaries(
        some.from_regex(r"[A-Z][A-Z0-9_]{0,34}", fullmatch=True),
        some.tuples(
            some.sampled_from(["True(1)", "False(0)", "N/A", "16", "0x1f(31)"]),
            some.sampled_from(["True(1)", "N/A", "8"]),
            some.booleans(),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_each_row_is_told_as_it_was_printed(rows: dict[str, tuple[str, str, bool]]) -> None:
    lines = ["Configurations:       Current    Next Boot"]
    lines += [
        f"{'*' if new != old else ' '}{'RO' if only else '  '}     {name:<44}{old:<20}{new:<20}"
        for name, (old, new, only) in rows.items()
    ]
    told = mstconfig.parse("\n".join(lines) + "\n").settings
    known = {"N/A": None}
    assert told == tuple(
        FirmwareSetting(name, known.get(new, new), known.get(old, old), None, only)
        for name, (old, new, only) in rows.items()
    )


def test_versions_of_the_tool() -> None:
    assert mstconfig.parse_version(fixture("mstconfig_4.21_version.txt")) == (4, 21)
    assert mstconfig.parse_version(
        "mlxconfig, mft 4.30.1-113, built on Nov 28 2024, 10:05:44. Git SHA Hash: N/A\n"
    ) == (
        4,
        30,
    )
    with pytest.raises(ParseError):
        mstconfig.parse_version("mstconfig: command not found\n")


def test_devlink() -> None:
    assert devlink.parse(fixture("devlink_mlx5.json"), "0000:3b:00.0") == ("MT_0000000225", "20.41.1000", "20.42.1000")
    assert devlink.parse(fixture("devlink_mlx5_old.json"), "0000:00:06.0") == (
        "MT_0000000009",
        "16.26.0100",
        "16.26.0100",
    )
    # another driver says nothing of what is stored, nor of a board
    assert devlink.parse(fixture("devlink_bnxt.json"), "0000:af:00.0") == (None, "216.1.216.0", None)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"info":{}}', '{"info":{"pci/0000:3b:00.0":{"versions":{"running":{"fw":7}}}}}', "[" * 100_000],
)
def test_devlink_that_says_something_else(text: str) -> None:
    with pytest.raises(ParseError):
        devlink.parse(text, "0000:3b:00.0")
    with pytest.raises(ParseError):
        devlink.parse(fixture("devlink_mlx5.json"), "0000:3b:00.1")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("True(1)", "true", True),
        ("True(1)", "1", True),
        ("True(1)", "True", True),
        ("False(0)", "no", True),
        ("IB(1)", "ib", True),
        ("16", "0x10", True),
        ("per_mkey(0)", "per_mkey", True),
        ("True(1)", "False(0)", False),
        ("IB(1)", "ETH(2)", False),
        ("16", "8", False),
        ("per_mkey(0)", "force_relax", False),
    ],
)
def test_values_that_are_one(one: str, other: str, alike: bool) -> None:
    for pair in ((one, other), (other, one)):
        assert is_equal(*pair) is alike


@hypothesis.given(some.text(max_size=30))
def test_a_number_is_told_or_none(value: str) -> None:
    assert is_equal(value, value) and (parse_number(value) is None or isinstance(parse_number(value), int))


def card(**status: typing.Any) -> dict[str, typing.Any]:
    """After config/samples/configuration.net_v1alpha1_nicdevice.yaml of nic-configuration-operator."""
    return {
        "kind": "NicDevice",
        "metadata": {"name": "co-node-25-101b-0000-04-00", "namespace": "nic-configuration-operator"},
        "spec": {"configuration": {"template": {"linkType": "Ethernet", "numVfs": 8}}},
        "status": {
            "conditions": [{"reason": "UpdateSuccessful", "status": "False", "type": "ConfigUpdateInProgress"}],
            "firmwareVersion": "20.42.1000",
            "node": "co-node-25",
            "partNumber": "mcx632312a-hdat",
            "ports": [
                {"networkInterface": "enp4s0f0np0", "pci": "0000:04:00.0", "rdmaInterface": "mlx5_0"},
                {"pci": "0000:04:00.1"},
            ],
            "psid": "mt_0000000225",
            "type": "101b",
            **status,
        },
    }


def test_a_card_of_the_operator() -> None:
    ports = ("0000:04:00.0", "0000:04:00.1")
    assert nic_device(card()) == NicDevice(
        "co-node-25-101b-0000-04-00",
        "co-node-25",
        ports,
        "MT_0000000225",
        "20.42.1000",
        configured=True,
        namespace="nic-configuration-operator",
        type="101b",
    )
    waiting = nic_device(
        card(
            conditions=[
                {"type": "ConfigUpdateInProgress", "status": "True", "reason": "PendingReboot", "message": "m"}
            ],
            dpu=True,
        )
    )
    assert (waiting.waits, waiting.message, waiting.dpu) == ("PendingReboot", "m", True)


@pytest.mark.parametrize("status", [{"node": ""}, {"ports": []}, {"ports": "x"}])
def test_a_card_that_is_nowhere_is_an_error(status: dict[str, typing.Any]) -> None:
    with pytest.raises(ResourceError):
        nic_device(card(**status))


def test_how_far_the_operator_is_with_a_card() -> None:
    seen = {**card(), "metadata": {"name": "c", "generation": 3}}
    seen["status"]["conditions"] = [
        {
            "type": "ConfigUpdateInProgress",
            "reason": "PendingFirmwareUpdate",
            "message": "m" * 999,
            "observedGeneration": 3,
        },
        {"type": "FirmwareUpdateInProgress", "reason": "FirmwareUpdateFailed"},
    ]
    template = {"linkType": "Ethernet", "numVfs": 8}
    assert nic_state(seen) == NicState("c", template, True, "PendingFirmwareUpdate", "m" * 300, "FirmwareUpdateFailed")
    # a condition without a generation, and one of a generation before, say nothing of now
    assert nic_state(card()).seen is False
    seen["status"]["conditions"][0]["observedGeneration"] = 2
    assert nic_state(seen).seen is False
    assert nic_state({"kind": "NicDevice", "metadata": {"name": "c"}, "spec": {}, "status": {}}) == NicState("c")


def template(**status: typing.Any) -> dict[str, typing.Any]:
    labels = {"app.kubernetes.io/managed-by": "linerate.rdma"}
    return {
        "kind": "NicConfigurationTemplate",
        "metadata": {"name": "t", "labels": labels},
        "spec": {},
        "status": status,
    }


def test_whose_a_template_is_and_on_which_cards_it_decides() -> None:
    label = "app.kubernetes.io/managed-by"
    made = template(nicDevices=["a", "b"])
    assert nic_template(made, label, "linerate.rdma") == NicTemplate("t", True, ("a", "b"), namespace="default")
    made["metadata"] |= {"namespace": "nic", "managedFields": [{"manager": "linerate.rdma"}]}
    assert nic_template(made, label, "linerate.rdma") == NicTemplate("t", True, ("a", "b"), namespace="nic")
    # copied with its label
    made["metadata"]["managedFields"] = [{"manager": "kubectl-create"}]
    assert nic_template(made, label, "linerate.rdma").ours is False
    assert nic_template(template(), label, "helm") == NicTemplate("t", namespace="default")
    with pytest.raises(ResourceError):
        nic_template(template(nicDevices="a"), label, "helm")


def test_serial_numbers_of_a_template_are_those_of_its_selector() -> None:
    selector = {"nicSelector": {"serialNumbers": ["MT1", "MT2"]}}
    assert nic_template({**template(), "spec": selector}, "l", "m").serials == ("MT1", "MT2")
    with pytest.raises(ResourceError, match="serialNumbers is not a list"):
        nic_template({**template(), "spec": {"nicSelector": {"serialNumbers": "MT1"}}}, "l", "m")


def test_settings_of_a_template_are_kept() -> None:
    settings = {"numVfs": 4, "linkType": "Ethernet"}
    assert nic_template({**template(), "spec": {"template": settings}}, "l", "m").template == settings
    with pytest.raises(ResourceError, match=r"spec\.template is not a mapping"):
        nic_template({**template(), "spec": {"template": "x"}}, "l", "m")


_KEYS = [
    "spec",
    "status",
    "metadata",
    "conditions",
    "type",
    "reason",
    "configuration",
    "template",
    "nicDevices",
    "name",
    "labels",
]
_JUNK = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=8),
    lambda more: some.lists(more, max_size=3) | some.dictionaries(some.sampled_from(_KEYS), more, max_size=4),
    max_leaves=12,
)


@hypothesis.given(_JUNK)
def test_a_card_and_a_template_are_understood_or_an_error(junk: typing.Any) -> None:
    for read in (nic_state, lambda item: nic_template(item, "l", "m")):
        try:
            assert read(junk).name
        except ResourceError:
            continue
