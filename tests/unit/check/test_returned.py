# SPDX-License-Identifier: GPL-3.0-or-later

"""platform.returned: what a node has after its reset, against what the stages before have judged."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.returned import check, list_missing_parts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import NodeOutcome
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    HeldParts,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
)

PORT = Port(1, state="ACTIVE", link_layer="InfiniBand", rate_gbps=400.0)
NETDEV = Netdev("ibs1", "", state="up")
HCA = Hca(
    "mlx5_0",
    "mlx5_0",
    (NETDEV,),
    PciFunction("0000:17:00.0", "15b3", "1021", "0207"),
    "0x946dae0300112233",
    ports=(PORT,),
)
NIC = Hca("ens3", None, (Netdev("ens3", "", state="up"),), PciFunction("0000:31:00.0", "8086", "159b", "0200"))
BEFORE = NodeHcas((HCA, NIC))


def now(*hcas: Hca) -> NodeHcas:
    return NodeHcas(hcas)


def with_port(**changes: typing.Any) -> Hca:
    return dataclasses.replace(HCA, ports=(dataclasses.replace(PORT, **changes),))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (now(HCA), "ens3 (0000:31:00.0)"),
        (now(NIC), "mlx5_0 (0000:17:00.0)"),
        (now(dataclasses.replace(HCA, rdma_device=None, ports=()), NIC), "the RDMA device of mlx5_0 (0000:17:00.0)"),
        (now(with_port(state="INIT"), NIC), "mlx5_0 port 1, which was ACTIVE and now is INIT"),
        (now(with_port(state=None), NIC), "mlx5_0 port 1, which was ACTIVE and now is missing"),
        (now(dataclasses.replace(HCA, ports=()), NIC), "mlx5_0 port 1, which was ACTIVE and now is missing"),
        (now(with_port(rate_gbps=200.0), NIC), "mlx5_0 port 1, which had 400 Gb/s and now has 200 Gb/s"),
        (now(with_port(rate_gbps=None), NIC), "mlx5_0 port 1, which had 400 Gb/s and now has an unknown rate"),
        (now(HCA, dataclasses.replace(NIC, netdevs=())), "the interface ens3 of ens3 (0000:31:00.0)"),
        (
            now(HCA, dataclasses.replace(NIC, netdevs=(Netdev("ens3", "", state="down"),))),
            "ens3, which was up and now is down",
        ),
        (
            now(HCA, dataclasses.replace(NIC, netdevs=(Netdev("ens3", ""),))),
            "ens3, which was up and now is in an unknown state",
        ),
    ],
)
def test_what_is_missing_is_named(after: NodeHcas, words: str) -> None:
    assert list_missing_parts(BEFORE, after) == (words,)
    (finding,) = check({"a": BEFORE}, {"a": ObservedHcas(after)})
    assert (finding.check, finding.subject, finding.status) == ("platform.returned", "a", "fail")
    assert words in finding.measured and "rdma_from=discover" in finding.remedy


def test_as_it_was() -> None:
    (finding,) = check({"a": BEFORE}, {"a": ObservedHcas(BEFORE)})
    assert (finding.status, finding.measured) == ("pass", "2 HCAs are present again, with all links")


def test_buses_may_be_numbered_anew_and_devices_named_anew() -> None:
    moved = dataclasses.replace(
        HCA, name="mlx5_2", rdma_device="mlx5_2", pci=PciFunction("0000:18:00.0", "15b3", "1021", "0207")
    )
    assert list_missing_parts(NodeHcas((HCA,)), NodeHcas((moved,))) == ()


def test_a_guid_of_zeros_is_none() -> None:
    unset = "0x0000000000000000"
    one, other = dataclasses.replace(HCA, node_guid=unset), dataclasses.replace(NIC, node_guid=unset)
    assert list_missing_parts(NodeHcas((one, other)), NodeHcas((one,))) == ("ens3 (0000:31:00.0)",)


def test_vfs_and_links_that_were_down_are_not_waited_for() -> None:
    virtual = Hca("mlx5_4", "mlx5_4", physical_function="0000:17:00.0", vf_index=0)
    assert list_missing_parts(NodeHcas((with_port(state="DOWN"), virtual)), NodeHcas((with_port(state="DOWN"),))) == ()


def test_what_a_pod_had_is_the_node_s_again() -> None:
    held = dataclasses.replace(NIC, netdevs=(), held=HeldParts((Netdev("net1", "", state="up"),), ("ens3",)))
    assert list_missing_parts(NodeHcas((held,)), NodeHcas((NIC,))) == ()


@pytest.mark.parametrize("seen", [{}, {"a": ObservedHcas(error="unreachable: timed out")}, {"a": ObservedHcas()}])
def test_a_node_that_nobody_looked_at_since_is_unknown(seen: typing.Any) -> None:
    (finding,) = check({"a": BEFORE}, seen)
    assert finding.status == "unknown" and finding.remedy


@pytest.mark.parametrize(
    "outcome",
    [
        NodeOutcome("a", "done", did=("set", "drained", "reset")),
        NodeOutcome("a", "unproven"),
        NodeOutcome("a", "failed", did=("reset",)),
    ],
)
def test_a_node_that_was_reset_and_of_which_nothing_was_kept_is_unknown(outcome: NodeOutcome) -> None:
    (finding,) = check({}, {"a": ObservedHcas(BEFORE)}, (outcome, outcome))
    assert (finding.check, finding.subject, finding.status) == ("platform.returned", "a", "unknown") and finding.remedy
    (kept,) = check({"a": BEFORE}, {"a": ObservedHcas(BEFORE)}, (outcome,))
    assert kept.status == "pass"
    assert (
        list(check({}, {}, (NodeOutcome("a", "done", did=("set",)), NodeOutcome("b", "nothing"))))
        == list(check({}, {}, None))
        == []
    )


def test_of_a_node_of_which_nothing_was_kept_nobody_can_say_that_all_is_back() -> None:
    (finding,) = check({"worker-1": NodeHcas(())}, {"worker-1": ObservedHcas(BEFORE)})
    assert (finding.subject, finding.status, finding.measured) == ("worker-1", "unknown", "HCAs and links not compared")
    assert "The data from before the reset contains no HCA" in finding.why and "-e rdma_from=discover" in finding.remedy


def test_node_that_shows_the_boot_of_before_its_reset_is_unknown() -> None:
    before, same = dataclasses.replace(BEFORE, boot="aa-1"), ObservedHcas(dataclasses.replace(BEFORE, boot="aa-1"))
    outcome = NodeOutcome("a", "done", did=("reset",))
    (found,) = check({"a": before}, {"a": same}, (outcome,))
    assert found.status == "unknown" and "the same boot as before its reset (aa-1)" in found.why
    other = ObservedHcas(dataclasses.replace(BEFORE, boot="bb-2"))
    assert [item.status for item in check({"a": before}, {"a": other}, (outcome,))] == ["pass"]


CARDS = (NodeHcas((HCA,)), NodeHcas((dataclasses.replace(NIC, netdevs=(Netdev("ens3", "b8:3f:d2:00:00:01"),)),)))


@pytest.mark.parametrize("own", CARDS)
def test_machine_with_none_of_the_guids_and_addresses_of_before_is_another(own: NodeHcas) -> None:
    (card,) = own.hcas
    netdevs = tuple(dataclasses.replace(netdev, hardware_address="b8:3f:d2:00:00:09") for netdev in card.netdevs)
    guid = card.node_guid and "0x946dae0300119999"
    other = NodeHcas((dataclasses.replace(card, netdevs=netdevs, node_guid=guid),))
    (found,) = check({"a": own}, {"a": ObservedHcas(other)})
    assert (found.status, found.measured) == ("unknown", "HCAs of a different machine")
    assert "none of the node GUIDs and MAC addresses" in found.why and "ansible_host" in found.remedy
    assert [item.status for item in check({"a": own}, {"a": ObservedHcas(own)})] == ["pass"]


def test_bond_may_have_the_address_of_its_other_part_after_a_reset() -> None:
    before, after = (
        NodeHcas((dataclasses.replace(NIC, netdevs=(Netdev("ens3", address, state="up", bond="bond0"),)),))
        for address in ("b8:3f:d2:00:00:01", "b8:3f:d2:00:00:02")
    )
    assert [item.status for item in check({"a": before}, {"a": ObservedHcas(after)})] == ["pass"]


def test_one_card_of_two_that_was_replaced_is_missing_and_the_machine_is_the_same() -> None:
    new = dataclasses.replace(HCA, node_guid="0x946dae0300119999")
    kept = dataclasses.replace(NIC, netdevs=(Netdev("ens3", "b8:3f:d2:00:00:01", state="up"),))
    (found,) = check({"a": NodeHcas((HCA, kept))}, {"a": ObservedHcas(NodeHcas((new, kept)))})
    assert found.status == "fail" and "mlx5_0" in found.measured


def test_remedy_for_a_slower_port_is_its_cable_and_not_a_missing_hca() -> None:
    slower = with_port(rate_gbps=100.0)
    (finding,) = check({"a": BEFORE}, {"a": ObservedHcas(NodeHcas((slower, *BEFORE.hcas[1:])))})
    assert "its cable or its switch port" in finding.remedy and "lspci" not in finding.remedy
