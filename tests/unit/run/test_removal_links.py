# SPDX-License-Identifier: GPL-3.0-or-later

"""A teardown takes no NIC from a node that needs it: neither by a reset nor by the removal of its driver."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import read_last_nics_in_use
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.known_uses import KnownUses
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.run.test_intents import SELECTOR, Api, objects_of, scope_of
from ansible_collections.linerate.rdma.tests.unit.run.test_removal_nodes import (
    NODES,
    Item,
    node,
    settings,
    sriov,
    with_driver,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_removed_functions import NETWORK_STATUS, PF
from ansible_collections.linerate.rdma.tests.unit.run.test_reset_functions import on_function, torn

UPLINK, ADDRESS, BOND = "the default route of the node", "the address of the node 10.0.0.5", "the bond bond0"
STORAGE = "the network 10.9.0.0/24"
A0 = node("a0", kind="a")
DRIVER = with_driver(ofed_driver="doca3")
DRIVEN: dict[str, dict[str, str]] = {"a0": {}, "b0": {}}


def gate(intent: Intent, known: typing.Optional[KnownUses], *items: Item) -> list[str]:
    """Return the warnings of a teardown that is not refused."""
    told: list[str] = []
    named = dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, operator_namespace="sriov"))
    api, removal = Api(*objects_of(named), *items), Removal(KINDS, SELECTOR, scope=scope_of(intent))
    uses = dataclasses.replace(known or KnownUses(), told=told)
    refuse_removal(typing.cast(Cluster, api), removal, intent.cluster.disruption, intent.cluster, uses)
    return told


@pytest.mark.parametrize("key", [PF, "ens1"])
@pytest.mark.parametrize("use", [UPLINK, ADDRESS])
def test_a_nic_that_its_node_needs_is_not_reset_without_a_waiver(use: str, key: str) -> None:
    known = KnownUses({"a0": {key: use}})
    with pytest.raises(RdmaError, match=f"a0: ens1 carries {use}, and the operator resets it: MTU 9000") as told:
        gate(sriov(disruption="drain"), known, A0, torn())
    assert "waiver for network.lint_uplink with the subject 'teardown a0 ens1'" in str(told.value)
    waived = dataclasses.replace(known, waivers=(Waiver("network.lint_uplink", "console", "teardown a0 ens1"),))
    (warning,) = gate(sriov(disruption="drain"), waived, A0, torn())
    assert f"ens1 carries {use}" in warning


def test_other_uses_of_a_reset_nic_are_a_warning() -> None:
    for use in (BOND, STORAGE):
        (warning,) = gate(sriov(disruption="drain"), KnownUses({"a0": {PF: use}}), A0, torn())
        assert f"ens1 carries {use}" in warning


def test_an_unknown_use_of_a_reset_nic_refuses_the_teardown_without_a_waiver() -> None:
    with pytest.raises(RdmaError, match="a0: ens1 may carry the default route") as told:
        gate(sriov(disruption="drain"), None, A0, torn())
    assert "'teardown a0 ens1'" in str(told.value)


def test_an_unknown_use_of_a_reset_nic_on_infiniband_is_a_warning() -> None:
    infiniband = torn()
    infiniband["status"]["interfaces"][0]["linkType"] = "IB"
    (warning,) = gate(sriov(disruption="drain"), None, A0, infiniband)
    assert "ens1 may carry the default route" in warning
    waived = KnownUses(waivers=(Waiver("network.lint_uplink", "console", "teardown a0 ens1"),))
    (warning,) = gate(sriov(disruption="drain"), waived, A0, torn())
    assert "ens1 may carry the default route" in warning
    # its link stays
    kept = torn("legacy")
    for part in ("spec", "status"):
        kept[part]["interfaces"][0]["mtu"] = 1500
    assert gate(sriov(disruption="drain"), None, A0, kept) == []


_BRIDGED = {"type": "bridge", "bridge": "br1"}


@pytest.mark.parametrize(
    ("use", "config", "kept"),
    [
        ("the bridge br1", _BRIDGED, True),
        ("the bridge br1", {"plugins": [{"type": "tuning"}, _BRIDGED]}, True),
        ("the bridge br2", _BRIDGED, False),
        ("the bond bond0", {"type": "macvlan", "master": "bond0"}, True),
        ("the bond bond0", {"type": "ipvlan", "master": "bond0.100"}, True),
        ("the bond bond1", {"type": "macvlan", "master": "bond0"}, False),
        ("", {"type": "macvlan", "master": "vlan100"}, True),
        ("", {"type": "macvlan", "master": "vlan200"}, False),
        (STORAGE, _BRIDGED, False),
    ],
)
def test_a_teardown_keeps_the_eswitch_mode_of_a_port_of_the_bridge_or_bond_on_which_pods_have_a_network(
    use: str, config: dict[str, typing.Any], kept: bool
) -> None:
    user = on_function("0000:81:00.0")
    entry = [{"name": "team-x/bridged", "interface": "net1", "ips": ["10.9.0.5"]}]
    user["metadata"]["annotations"] = {NETWORK_STATUS: json.dumps(entry)}
    attachment = {
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "bridged", "namespace": "team-x"},
        "spec": {"config": json.dumps({"cniVersion": "0.3.1", "name": "bridged", **config})},
    }
    known = KnownUses({"a0": {"ens1": use} if use else {}}, uppers={"a0": {PF: ("vlan100",)}})
    items = A0, user, attachment, torn()
    if kept:
        with pytest.raises(RdmaError, match="another eSwitch mode makes its devices again: team-x/train"):
            gate(sriov(disruption="drain"), known, *items)
    else:
        warnings = gate(sriov(disruption="drain"), known, *items)
        assert len(warnings) == (1 if use else 0)
        assert any("ens1 is a port of the bridge br2" in warning for warning in warnings) is use.startswith(
            "the bridge"
        )


def test_a_teardown_of_idle_nics_is_let_through_without_a_word() -> None:
    eno1 = {"eno1": UPLINK}
    assert gate(sriov(disruption="drain"), KnownUses({"a0": eno1}), A0, torn()) == []
    assert gate(sriov(disruption="drain"), KnownUses({"a0": {PF: UPLINK}}), A0, torn(externallyManaged=True)) == []
    # a reboot makes the network of the node again
    systemd = settings(configurationMode="systemd")
    assert gate(sriov(), KnownUses({"a0": {PF: UPLINK}}), A0, torn(), systemd) == []
    assert gate(DRIVER, KnownUses({}, DRIVEN), *NODES) == []
    # it has no driver
    assert gate(with_driver(), KnownUses({}, {"a0": {"ens1": UPLINK}, "b0": {}}), *NODES) == []


@pytest.mark.parametrize("use", [UPLINK, ADDRESS, BOND])
def test_the_driver_of_nics_that_a_node_needs_is_not_removed_without_a_waiver(use: str) -> None:
    """On b0, a node of another team, too."""
    known = KnownUses({}, {"a0": {}, "b0": {"ens1": use}})
    with pytest.raises(RdmaError, match=f"from all nodes at the same time: b0: ens1 carries {use}") as told:
        gate(DRIVER, known, *NODES)
    assert "'ofed_driver b0'" in str(told.value) and "run the teardown again" in told.value.remedy
    waived = dataclasses.replace(known, waivers=(Waiver("network.lint_uplink", "console", "ofed_driver b0"),))
    (warning,) = gate(DRIVER, waived, *NODES)
    assert f"ens1 carries {use}" in warning


def test_other_and_unknown_uses_of_a_removed_driver_are_a_warning() -> None:
    warnings = gate(DRIVER, KnownUses({}, {"a0": {"ens1": STORAGE}}), *NODES)
    assert len(warnings) == 2 and f"ens1 carries {STORAGE}" in warnings[0]
    assert "b0: the default route of the node is unknown" in warnings[1]
    assert len(gate(DRIVER, None, *NODES)) == 2


def test_the_last_run_of_the_stages_tells_the_uses(tmp_path: pathlib.Path) -> None:
    assert read_last_nics_in_use(None) == read_last_nics_in_use(str(tmp_path)) == ({}, None, {})
    start = RunStart("r1", "2026-01-01T00:00:00Z", nodes=("a0",))
    folder = FactFolder(str(tmp_path), "r1")
    folder.begin(start)
    assert read_last_nics_in_use(str(tmp_path)) == ({}, None, {})
    uses = {"in_use": {"a0": {PF: UPLINK}}, "driven": {"a0": {"ens1": UPLINK}}, "uppers": {"a0": {PF: ["vlan100"]}}}
    folder.write("network_objects", value=uses)
    assert read_last_nics_in_use(str(tmp_path)) == (
        {"a0": {PF: UPLINK}},
        {"a0": {"ens1": UPLINK}},
        {"a0": {PF: ("vlan100",)}},
    )
    pathlib.Path(folder.path("network_objects")).write_text(json.dumps({"value": 5}), encoding="utf-8")
    assert read_last_nics_in_use(str(tmp_path)) == ({}, None, {})


def test_a_later_run_without_stage_network_hides_no_use(tmp_path: pathlib.Path) -> None:
    for number, value in enumerate(("ens1", "ens2", "")):
        run = f"2026010{number + 1}T000000Z-00000{number}"
        for path in (tmp_path, tmp_path / "runs" / run):
            path.mkdir(parents=True, exist_ok=True)
            folder = FactFolder(str(path), run)
            folder.begin(RunStart(run, f"2026-01-0{number + 1}T00:00:00Z", nodes=("a0",)))
            if value:
                folder.write("network_objects", value={"in_use": {"a0": {value: UPLINK}}, "driven": {}})
    assert read_last_nics_in_use(str(tmp_path)) == ({"a0": {"ens2": UPLINK}}, {}, {})
