# SPDX-License-Identifier: GPL-3.0-or-later

"""``ip -json link show``: what is set for VFs, and what a driver does not tell."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import VfAdministration
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.ip_link import parse_vf_settings

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "iproute2"
UNTOUCHED = VfAdministration(None, None, "Follow", 0, 0, False, True, 0, 0)


def captured(name: str) -> str:
    return (FIXTURES / f"{name}.stdout").read_text()


def of(**changes: typing.Any) -> str:
    return json.dumps([{"ifname": "eth1", "vfinfo_list": [{"vf": 0, **changes}]}])


def test_an_igb_whose_vfs_nobody_has_touched() -> None:
    assert parse_vf_settings(captured("6.15-igb")) == {"eth1": dict.fromkeys(range(3), UNTOUCHED)}


def test_a_vf_that_a_pod_has_with_all_that_its_network_sets() -> None:
    settings = parse_vf_settings(captured("6.15-igb-vf-in-pod"))["eth1"]
    assert settings[0] == VfAdministration(None, None, "Follow", 100, 2, True, False, 0, 500)
    assert [settings[number] for number in (1, 2, 3)] == [UNTOUCHED] * 3


def test_guids_and_link_states_on_infiniband() -> None:
    assert parse_vf_settings(captured("by-hand-infiniband"))["ibp60s0"] == {
        0: VfAdministration("0x0200000000000001", "0x0200000000000001", "Up", 0, 0, False, False),
        1: VfAdministration("0x0000000000000000", "0x0000000000000000", "Down", 0, 0, False, False),
    }


def test_what_a_driver_does_not_tell_is_not_known() -> None:
    assert parse_vf_settings(of()) == {"eth1": {0: VfAdministration(vlan=0, vlan_qos=0)}}
    # before there was a list of VLANs
    assert parse_vf_settings(of(vlan=7, qos=1)) == {"eth1": {0: VfAdministration(vlan=7, vlan_qos=1)}}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Cannot find device", "is not JSON"),
        (captured("6.15-igb")[:-20], "is not JSON"),
        ("{}", "is not a list of objects"),
        ("[1]", "is not a list of objects"),
        (of(trust="on"), "trust: 'on' is not true or false"),
        (of(vlan_list=[{"vlan": "100"}]), "vlan: '100' is not a number"),
        (of(rate={"max_tx": -1}), "max_tx: '-1' is not a rate in Mb/s from 0 to 4.29497e+09"),
        (of(rate={"max_tx": True}), "max_tx: 'True' is not a rate in Mb/s from 0 to 4.29497e+09"),
        (of(rate={"min_tx": 2**32}), "min_tx: '4294967296' is not a rate in Mb/s from 0 to 4.29497e+09"),
        (of(vlan=4096), "vlan: '4096' is not a VLAN ID from 0 to 4095"),
        (of(vlan=7, qos=8), "qos: '8' is not a VLAN priority from 0 to 7"),
        (of(vf=65536), "vf: '65536' is not a number of virtual functions from 0 to 65535"),
        (of(link_state="up"), "link_state: 'up' is not one of auto, enable, disable"),
        (of(**{"node guid": "1"}), "is not a GUID"),
        (of(vf=None), "vf: 'None' is not a number"),
        (json.dumps([{"vfinfo_list": [{"vf": 0}]}]), "ifname: 'nothing' is not the name of a network interface"),
        (json.dumps([{"ifname": "eth1", "vfinfo_list": [{"vf": 0}, {"vf": 0}]}]), "is not a list with each VF once"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, seen: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_vf_settings(text)
    assert seen in str(raised.value)
