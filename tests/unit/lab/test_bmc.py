# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's BMC says no where a vendor's would, and resets whatever really is the node."""

from __future__ import annotations

import json
import pathlib
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates, tree
from lab.bmc.bios import Tree
from lab.bmc.server import RESET, BmcServer

DELL = "/redfish/v1/Systems/System.Embedded.1"
SETTINGS = f"{DELL}/Bios/Settings"
ON_RESET = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return Certificates(tmp_path_factory.mktemp("certificates")).of()


@pytest.fixture
def dell(certificate: pathlib.Path) -> BmcServer:
    return BmcServer(tree("dell"), certificate)


def reason(body: Tree) -> str:
    return str(body["error"]["@Message.ExtendedInfo"][0]["MessageId"]).rpartition(".")[2]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (None, "PropertyMissing"),
        ({"Attributes": {}}, "PropertyMissing"),
        ({"Attributes": {"NoSuchThing": "1"}}, "PropertyUnknown"),
        ({"Attributes": {"SriovGlobalEnable": "Perhaps"}}, "PropertyValueNotInList"),
    ],
)
def test_values_that_no_bios_takes(dell: BmcServer, body: typing.Any, said: str) -> None:
    answer = dell.patch(SETTINGS, body, None)
    assert answer.status == 400 and reason(answer.body) == said and dell.get(SETTINGS).body["Attributes"] == {}


def test_only_the_settings_object_takes_values(dell: BmcServer) -> None:
    assert dell.patch(f"{DELL}/Bios", {"Attributes": {"SriovGlobalEnable": "Disabled"}}, None).status == 405


def test_without_a_time_a_bmc_with_jobs_keeps_values_and_never_applies_them(dell: BmcServer) -> None:
    value = {"Attributes": {"SriovGlobalEnable": "Disabled"}}
    assert dell.patch(SETTINGS, value, None).status == 200
    dell.reset()
    assert (
        dell.get(f"{DELL}/Bios").body["Attributes"]["SriovGlobalEnable"] == "Enabled"
        and dell.get(SETTINGS).body["Attributes"] == value["Attributes"]
    )
    made = dell.patch(SETTINGS, {**value, **ON_RESET}, None)
    assert made.status == 202 and dell.get(dict(made.headers)["Location"]).body["JobState"] == "Scheduled"
    assert reason(dell.patch(SETTINGS, {**value, **ON_RESET}, None).body) == "PendingJob"
    dell.reset()
    assert (
        dell.get(f"{DELL}/Bios").body["Attributes"]["SriovGlobalEnable"] == "Disabled"
        and dell.get(SETTINGS).body["Attributes"] == {}
    )
    assert dell.get(dict(made.headers)["Location"]).body["JobState"] == "Completed"


def test_an_etag_guards_what_has_one(certificate: pathlib.Path) -> None:
    hpe = BmcServer(tree("hpe"), certificate)
    value, path = {"Attributes": {"Sriov": "Disabled"}}, hpe.bios.settings
    first = dict(hpe.get(path).headers)["ETag"]
    assert [hpe.patch(path, value, match).status for match in (None, '"old"', first, first)] == [428, 412, 200, 412]
    assert hpe.get(path).body["Attributes"]["Sriov"] == "Disabled" and len(hpe.get(path).body["Attributes"]) > 100, (
        "a full copy"
    )


@pytest.mark.parametrize("vendor", ["supermicro", "hpe"])
def test_what_somebody_else_changes_is_not_overwritten(
    vendor: str, certificate: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Told by a file, as the lab tells it; no ETag that was read is true when it is sent."""
    one = BmcServer(tree(vendor), certificate, state=tmp_path)
    name = {"supermicro": "SR_IOVSupport_0047", "hpe": "Sriov"}[vendor]
    (tmp_path / "faults.json").write_text(json.dumps({"contended": True}))
    for _attempt in range(3):
        answer = one.patch(one.bios.settings, {"Attributes": {name: "Disabled"}}, one.bios.etag)
        assert (answer.status, reason(answer.body)) == (412, "PreconditionFailed")
    (tmp_path / "faults.json").write_text(json.dumps({"contended": False}))
    assert one.patch(one.bios.settings, {"Attributes": {name: "Disabled"}}, one.bios.etag).status == 200


def test_supermicro_shows_attributes_only_while_something_waits(certificate: pathlib.Path) -> None:
    one = BmcServer(tree("supermicro"), certificate)
    assert "Attributes" not in one.get(one.bios.settings).body
    assert one.patch(one.bios.settings, {"Attributes": {"SR_IOVSupport_0047": "Disabled"}}, one.bios.etag).status == 200
    assert one.get(one.bios.settings).body["Attributes"] == {"SR_IOVSupport_0047": "Disabled"}
    one.reset()
    assert "Attributes" not in one.get(one.bios.settings).body


def test_resets(certificate: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    command = (
        sys.executable,
        "-c",
        f"import sys; open({str(mark)!r}, 'a').write(sys.argv[1] + ' '); sys.exit(sys.argv[1] == 'PowerCycle')",
    )
    one = BmcServer(tree("lenovo"), certificate, state=tmp_path, reset=command)
    assert (
        one.patch(one.bios.settings, {"Attributes": {"DevicesandIOPorts_SRIOV": "Disabled"}}, one.bios.etag).status
        == 200
    )
    at = one.bios.system + RESET
    assert [one.post(at, {"ResetType": kind}).status for kind in ("ForceOff", "Nmi", "On", "PowerCycle")] == [
        204,
        400,
        204,
        500,
    ]
    assert mark.read_text() == "ForceOff On PowerCycle " and one.resets == ["ForceOff", "On", "PowerCycle"]
    assert one.post(one.bios.system + "/Actions/Other", {}).status == 404
    kept = json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))
    assert kept[one.bios.path]["Attributes"]["DevicesandIOPorts_SRIOV"] == "Disabled"
    again = BmcServer(tree("lenovo"), certificate, state=tmp_path)
    assert again.get(again.bios.path).body["Attributes"]["DevicesandIOPorts_SRIOV"] == "Disabled"
