# SPDX-License-Identifier: GPL-3.0-or-later

"""What Ethernet links could carry, by the ports, by the fleet and by the intent; and what that makes of the HCAs of
stage bandwidth."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.bandwidth.pcie_rates import (
    compute_most_of_pcie,
    compute_sustained_gbps,
    find_pcie,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.line_rates import find_line_rates
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import load_exactly
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
    compute_pcie_gbps,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

GEN4 = PcieLink(16.0, 16, 16.0, 16, 16.0, 16, 256, 512)


def intent(
    line_rate: typing.Optional[dict[str, typing.Any]] = None, **changes: typing.Union[dict[str, typing.Any], bool]
) -> Intent:
    fabric = {
        "name": "storage",
        "profile": "sriov_ethernet",
        "select": {"hcas_per_node": 1, "vendor": "15b3"},
        "virtual_functions": 4,
        "resource_name": "mlx",
        "network": {"name": "net", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    }
    return parse_intent([{**fabric, "line_rate": line_rate or {}, **changes}])


def nic(
    now: typing.Optional[float],
    card: typing.Optional[float] = None,
    partner: typing.Optional[float] = None,
    state: str = "ACTIVE",
    driver: str = "mlx5_core",
    rate: typing.Optional[float] = None,
    link: PcieLink = GEN4,
) -> ObservedHcas:
    netdev = Netdev(
        "eth2", "02:00:00:00:00:01", 9000, "up", port=1, speed_gbps=now, supported_gbps=card, partner_gbps=partner
    )
    port = Port(1, state, "LinkUp", "Ethernet", rate if rate is not None else now, 4, "HDR")
    return ObservedHcas(
        NodeHcas(
            (
                Hca(
                    "mlx5_0",
                    "mlx5_0",
                    (netdev,),
                    PciFunction("0000:3c:00.0", "15b3", "101d", "0200", driver, 0, link),
                    ports=(port,),
                ),
            )
        )
    )


_PF: dict[str, typing.Any] = {"physical_function": "0000:3c:00.0"}


def judged(
    nics: dict[str, ObservedHcas],
    fraction: float = 0.95,
    wanted: typing.Optional[Intent] = None,
    carried: typing.Optional[float] = None,
    rdma: bool = True,
) -> dict[tuple[str, str], Finding]:
    """Findings of nodes with these NICs, whose pairs have that fraction of their links' rate."""
    seen = {
        name: typing.cast(NodeHcas, observed.value).hcas[0].netdevs[0].speed_gbps or carried
        for name, observed in nics.items()
    }
    pods = tuple(
        RdmaPod(
            "storage",
            name,
            f"pod-{name}",
            "test",
            "mlx5_2" if rdma else None,
            f"10.0.0.{number}",
            "0000:3c:00.2",
            "net1",
            rate if rdma else None,
            252.06,
            **_PF,
        )
        for number, (name, rate) in enumerate(seen.items(), 1)
    )
    pairs = []
    for one in nics:
        for other in nics:
            if one != other:
                average = fraction * min(seen[one] or 1, seen[other] or 1)
                sizes = (
                    {"pings": 5, "message_bytes": 1048576, "iterations": 900}
                    if rdma
                    else {"transport": "TCP", "streams": 4}
                )
                pairs.append(PairResult("storage", one, other, average_gbps=average, **sizes))
    found = check(wanted or intent(), Facts(tuple(nics), BandwidthFacts(pods, tuple(pairs)), nics))
    return {(finding.check.split(".")[1], finding.subject): finding for finding in found}


@pytest.mark.parametrize(
    ("one", "other", "line_rate", "link", "floor", "text"),
    [
        # all that the ports can
        ((100.0, 100.0), (100.0, 100.0), {}, "pass", "pass", ""),
        # both ends offer more: one link, and both
        ((100.0, 100.0, 100.0), (25.0, 100.0, 100.0), {}, "fail", "fail", "100 Gb/s ("),
        ((25.0, 100.0, 100.0), (25.0, 100.0, 100.0), {}, "fail", "fail", "100 Gb/s ("),
        # the switch offers less than the card can
        ((100.0, 200.0, 100.0), (100.0, 200.0, 100.0), {}, "warn", "pass", "The card supports 200 Gb/s, and the port"),
        # it offers less to one port than to the others of its kind; what the intent expects decides
        ((200.0, 200.0, 200.0), (100.0, 200.0, 100.0), {}, "unknown", "pass", "(a) run at 200 Gb/s. The port of the"),
        ((200.0, 200.0), (100.0, 200.0, 100.0), {}, "unknown", "pass", "offers only 100 Gb/s, but other ports of its"),
        ((100.0, 200.0, 100.0), (100.0, 200.0, 100.0), {"expected_gbps": 100}, "pass", "pass", ""),
        # nothing is negotiated: the other port of its kind can do more; where none does nobody knows it but the intent
        ((200.0, 200.0), (50.0, 200.0), {}, "fail", "fail", "other ports of its kind"),
        ((100.0, 200.0), (50.0, 200.0), {}, "fail", "unknown", "other ports of its kind"),
        (
            (100.0, 200.0),
            (100.0, 200.0),
            {},
            "unknown",
            "unknown",
            "rate that both ends of the link support is unknown",
        ),
        ((100.0, 200.0), (100.0, 200.0), {"expected_gbps": 100}, "pass", "pass", ""),
        ((100.0, 200.0), (100.0, 200.0), {"expected_gbps": 200}, "fail", "fail", "line_rate.expected_gbps"),
        # the intent expects less than the links run at: only with a reason
        (
            (400.0, 400.0, 400.0),
            (400.0, 400.0, 400.0),
            {"expected_gbps": 10},
            "unknown",
            "pass",
            "the intent gives no reason",
        ),
        (
            (400.0, 400.0, 400.0),
            (400.0, 400.0, 400.0),
            {"expected_gbps": 320},
            "unknown",
            "fail",
            "the intent gives no reason",
        ),
        (
            (400.0, 400.0, 400.0),
            (400.0, 400.0, 400.0),
            {"expected_gbps": 395},
            "unknown",
            "fail",
            "the intent gives no reason",
        ),
        (
            (400.0, 400.0, 400.0),
            (400.0, 400.0, 400.0),
            {"expected_gbps": 10, "reason": "shaped by the provider"},
            "pass",
            "pass",
            "",
        ),
        # a driver that says nothing
        ((100.0,), (25.0,), {}, "fail", "unknown", "other ports of its kind"),
        ((25.0,), (25.0,), {}, "unknown", "unknown", "does not report"),
        ((25.0,), (25.0,), {"floor_gbps": 20, "reason": "agreed"}, "warn", "pass", "does not report"),
        # an older kernel does not know the mode in which the port runs; and the card can't carry it
        ((400.0, 100.0), (400.0, 100.0), {}, "warn", "fail", "which is too little for a network link of"),
    ],
)
def test_ethernet_with_two_nodes(
    one: tuple[typing.Any, ...],
    other: tuple[typing.Any, ...],
    line_rate: dict[str, typing.Any],
    link: str,
    floor: str,
    text: str,
) -> None:
    # 400 Gb/s do not fit into a slot of generation 4
    found = judged({"a": nic(*one), "b": nic(*other)}, 0.95 if one[0] <= 200 else 0.45, intent(line_rate))
    finding = found["link", "storage b mlx5_0"]
    assert (finding.status, text in f"{finding.expected}; {finding.why}") == (link, True)
    assert (found["floor", "storage a -> b"].status, bool(finding.remedy)) == (floor, link != "pass")


def test_a_port_of_the_switch_that_offers_less_than_two_others() -> None:
    nics = {"a": nic(200.0, 200.0, 200.0), "b": nic(200.0, 200.0, 200.0), "c": nic(100.0, 200.0, 100.0)}
    found = judged(nics)
    assert {name: found["link", f"storage {name} mlx5_0"].status for name in nics} == {
        "a": "pass",
        "b": "pass",
        "c": "unknown",
    }
    # one node alone does not speak against all others
    found = judged({**dict.fromkeys("abd", nic(100.0, 200.0, 100.0)), "c": nic(200.0, 200.0, 200.0)})
    assert {name: found["link", f"storage {name} mlx5_0"].status for name in "abcd"} == {
        **dict.fromkeys("abd", "warn"),
        "c": "pass",
    }
    # without RDMA, no floor comes from the link
    found = judged(nics, wanted=intent(rdma=False), rdma=False)
    assert found["link", "storage c mlx5_0"].status == "warn"


def test_cards_of_two_kinds_are_compared_with_their_own() -> None:
    found = judged({"a": nic(100.0, 100.0), "b": nic(100.0, 100.0), "c": nic(25.0, 25.0), "d": nic(25.0, 25.0)})
    # these pairs have no error counters
    unread = {check for (check, _subject), finding in found.items() if finding.status == "unknown"}
    assert unread == {"errors"}
    assert {finding.status for (check, _subject), finding in found.items() if check not in unread} == {"pass"}


def test_a_port_that_is_down_has_no_rate_whatever_its_driver_makes_up() -> None:
    # moved into the pod: there it runs
    nics = {name: nic(None, 100.0, state="DOWN", rate=40.0) for name in "ab"}
    found = judged(nics, carried=100.0)
    assert {found["link", "storage b mlx5_0"].status, found["floor", "storage a -> b"].status} == {"pass"}
    down = judged(nics, carried=25.0)
    assert {down["link", "storage b mlx5_0"].status, down["floor", "storage a -> b"].status} == {"unknown"}


def test_a_link_whose_rate_nobody_saw_is_not_known() -> None:
    found = judged({name: nic(None, 100.0, 100.0, state="DOWN") for name in "ab"})
    finding = found["link", "storage b mlx5_0"]
    assert (finding.status, "The rate of the link was not read" in finding.why) == ("unknown", True)


def test_an_interface_that_pods_share_is_the_function_itself() -> None:
    # in the pod is the function, and no virtual one of it
    nics = {name: nic(None, 100.0, state="DOWN") for name in "ab"}
    pods = tuple(
        RdmaPod("storage", name, f"pod-{name}", "test", "mlx5_0", address, "0000:3c:00.0", "net1", 100.0, 252.06)
        for name, address in zip(nics, ("10.0.0.1", "10.0.0.2"))
    )
    (finding,) = [
        finding
        for finding in check(intent(), Facts(tuple(nics), BandwidthFacts(pods, ()), nics))
        if finding.check == "bandwidth.link" and " b " in finding.subject
    ]
    assert finding.status == "pass"


@pytest.mark.parametrize(
    ("fraction", "bonded", "measured", "floor"),
    [
        (0.95, True, "pass", "pass"),
        (0.5, True, "pass", "fail"),
        # the RDMA device of a bond spreads its queue pairs over both links
        (1.9, True, "pass", "pass"),
        (2.1, True, "unknown", ""),
        (1.9, False, "unknown", ""),
    ],
)
def test_a_bond_carries_as_much_as_its_links(fraction: float, bonded: bool, measured: str, floor: str) -> None:
    (hca,) = typing.cast(NodeHcas, nic(100.0, 100.0, 100.0).value).hcas
    assert hca.pci is not None
    netdevs = [
        (dataclasses.replace(hca.netdevs[0], name=name, bond="bond0" if bonded else None),) for name in ("eth2", "eth3")
    ]
    pci = dataclasses.replace(hca.pci, address="0000:3c:00.1")
    first = dataclasses.replace(hca, netdevs=netdevs[0])
    second = dataclasses.replace(hca, name="eth3", rdma_device=None, netdevs=netdevs[1], pci=pci, ports=())
    names = ["bond0" if bonded else "eth2"]
    select, changes = {"hcas_per_node": 1, "netdev": names}, {"profile": "rdma_shared", "virtual_functions": 0}
    wanted = intent(select=select, **typing.cast(typing.Any, changes))
    found = judged({name: ObservedHcas(NodeHcas((first, second))) for name in "ab"}, fraction, wanted)
    assert found["measured", "storage a -> b"].status == measured
    assert floor in ("", found["floor", "storage a -> b"].status if floor else "")


def bonded(now: typing.Optional[float], partner: typing.Optional[float] = 100.0, pcie: PcieLink = GEN4) -> ObservedHcas:
    """A node with a bond of two functions. The first one has the RDMA device and a good link, the second one these."""
    (hca,) = typing.cast(NodeHcas, nic(100.0, 100.0, 100.0).value).hcas
    assert hca.pci is not None
    one, two = (dataclasses.replace(hca.netdevs[0], name=name, bond="bond0") for name in ("eth2", "eth3"))
    two = dataclasses.replace(two, speed_gbps=now, partner_gbps=partner)
    pci = dataclasses.replace(hca.pci, address="0000:3c:00.1", link=pcie)
    second = dataclasses.replace(hca, name="eth3", rdma_device=None, netdevs=(two,), pci=pci, ports=())
    return ObservedHcas(NodeHcas((dataclasses.replace(hca, netdevs=(one,)), second)))


@pytest.mark.parametrize(
    ("node", "status", "said"),
    [
        (bonded(100.0), "pass", "100 Gb/s"),
        (bonded(25.0), "fail", "25 Gb/s"),
        (bonded(25.0, None), "fail", "25 Gb/s"),
        (bonded(None, None), "unknown", "link rate unknown"),
        (bonded(100.0, pcie=PcieLink(8.0, 4, 32.0, 16, 32.0, 16)), "fail", "8 GT/s x4"),
    ],
)
def test_each_part_of_a_bond_has_a_link_of_its_own(node: ObservedHcas, status: str, said: str) -> None:
    """The same on all nodes, so that no other node shows it."""
    select, changes = {"hcas_per_node": 1, "netdev": ["bond0"]}, {"profile": "rdma_shared", "virtual_functions": 0}
    wanted = intent(select=select, **typing.cast(typing.Any, changes))
    found = judged(dict.fromkeys("ab", node), wanted=wanted)
    for name in "ab":
        assert found["link", f"storage {name} mlx5_0"].status == "pass"
        part = found["link", f"storage {name} eth3"]
        assert (part.status, said in part.measured) == (status, True), part


@pytest.mark.parametrize(
    ("line_rate", "partner", "status", "said"),
    [
        ({}, 50.0, "warn", "card for 100 Gb/s"),
        ({"expected_gbps": 50.0}, 50.0, "pass", "50 Gb/s"),
        ({"expected_gbps": 100.0}, 50.0, "fail", "50 Gb/s"),
        # a partner of which nothing is known
        ({}, None, "unknown", "highest rate of both ends unknown"),
    ],
)
def test_a_switch_that_offers_less_than_all_cards_support_is_told(
    line_rate: dict[str, typing.Any], partner: typing.Optional[float], status: str, said: str
) -> None:
    """No other port shows it, and each pair reaches the floor of the slower rate."""
    found = judged(dict.fromkeys("ab", nic(50.0, 100.0, partner)), wanted=intent(line_rate))
    for name in "ab":
        link = found["link", f"storage {name} mlx5_0"]
        assert (link.status, said in link.measured) == (status, True), link
    assert status != "warn" or "line_rate.expected_gbps" in found["link", "storage a mlx5_0"].remedy


def test_tcp_over_a_link_that_trained_down() -> None:
    wanted = intent(rdma=False)
    found = judged({"a": nic(100.0, 100.0), "b": nic(25.0, 100.0)}, wanted=wanted, rdma=False)
    assert (found["link", "storage b mlx5_0"].status, found["link", "storage a mlx5_0"].status) == ("fail", "pass")
    # no floor of TCP comes from links, so what is not known of them leaves none open
    found = judged({"a": nic(25.0, 100.0), "b": nic(25.0, 100.0)}, wanted=wanted, rdma=False)
    assert found["link", "storage b mlx5_0"].status == "warn"
    # and still no figure is above them
    above = judged({"a": nic(25.0, 100.0), "b": nic(25.0, 100.0)}, 1.1, wanted, rdma=False)
    assert above["measured", "storage a -> b"].status == "unknown"


def test_a_device_of_a_hypervisor_has_no_link() -> None:
    wanted = intent(rdma=False)
    for driver, rate in (("virtio-pci", None), ("vmxnet3", 10.0)):
        nics = {name: nic(rate, driver=driver, state="DOWN", link=PcieLink()) for name in "ab"}
        found = judged(nics, 2.1, wanted, rdma=False)
        # nor does a rate that it makes up bound anything
        assert {found["link", "storage a mlx5_0"].status, found["measured", "storage a -> b"].status} == {"pass"}


def test_nodes_whose_hcas_are_not_known_are_said() -> None:
    found = judged({"a": nic(100.0, 100.0), "b": nic(100.0, 100.0)})
    assert ("link", "storage b") not in found
    facts = Facts(("a", "b"), None, {"a": nic(100.0, 100.0), "b": ObservedHcas(None, "unreachable")})
    (finding,) = [
        item for item in check(intent(), facts) if item.subject == "storage b" and item.check == "bandwidth.link"
    ]
    assert (finding.status, "unreachable" in finding.why) == ("unknown", True)


def test_a_rate_limit_of_the_intent_is_no_fault() -> None:
    wanted = intent(network={"name": "net", "namespace": "test", "max_tx_rate": 20000})
    nics = {"a": nic(100.0, 100.0), "b": nic(100.0, 100.0)}
    passed = judged(nics, 0.19, wanted)["floor", "storage a -> b"]
    assert passed.status == "pass" and passed.expected.startswith(">= 18.40 Gb/s ")
    assert judged(nics, 0.17, wanted)["floor", "storage a -> b"].status == "fail"


def test_what_packets_leave_of_pcie() -> None:
    # the paper's own figure: 57.9 Gb/s for packets on 8 GT/s x8, of which 256 of 280 are data
    assert compute_sustained_gbps(8.0, 8, 256) == pytest.approx(57.88 * 256 / 280, rel=0.025)
    assert compute_most_of_pcie(63.015, 256) == pytest.approx(63.015 * 256 / 276)
    assert compute_sustained_gbps(8.0, 8, 256) < 63.015 * 256 / 280 == pytest.approx(57.6, abs=0.02)
    assert (
        compute_sustained_gbps(8.0, 8, 128)
        < compute_sustained_gbps(8.0, 8, 256)
        == compute_sustained_gbps(8.0, 8, 4096)
    )
    # flits hold acknowledgements and flow control
    assert compute_sustained_gbps(64.0, 16) == pytest.approx(compute_pcie_gbps(64.0, 16) * 256 / 280)
    # a slot that fits the link leaves its rate alone
    for speed, width, rate in ((8.0, 16, 100), (16.0, 16, 200), (32.0, 16, 400), (64.0, 16, 800)):
        assert compute_sustained_gbps(speed, width) > rate


@pytest.mark.parametrize(
    ("link", "now", "could", "down", "slot_known"),
    [
        (PcieLink(32.0, 16, 32.0, 16, 32.0, 16), 16, 16, False, True),
        # a narrower slot bounds the card, and is no fault
        (PcieLink(32.0, 8, 32.0, 16, 32.0, 8), 8, 8, False, True),
        (PcieLink(32.0, 4, 32.0, 16, 32.0, 8), 4, 8, True, True),
        # sysfs says half of it
        (PcieLink(32.0, None, 32.0, 16, 32.0, 16), None, 16, False, True),
        (PcieLink(None, 16, 32.0, 16, 32.0, 16), None, 16, False, True),
        (PcieLink(32.0, 16, None, 16, 32.0, 16), 16, None, False, False),
        (PcieLink(32.0, 16, 32.0, None, 32.0, 16), 16, None, False, False),
        (PcieLink(32.0, 16, 32.0, 16, 32.0, None), 16, 16, False, False),
        (PcieLink(32.0, 16, 32.0, 16, None, 16), 16, 16, False, False),
    ],
)
def test_what_card_and_slot_leave_of_a_pcie_link(
    link: PcieLink, now: typing.Optional[int], could: typing.Optional[int], down: bool, slot_known: bool
) -> None:
    found = find_pcie(link)
    assert (found.now, found.could) == tuple(
        None if lanes is None else compute_sustained_gbps(32.0, lanes) for lanes in (now, could)
    )
    assert (found.trained_down, found.slot_known) == (down, slot_known)


def of_nic(
    netdevs: tuple[tuple[typing.Optional[float], ...], ...], ports: tuple[tuple[str, typing.Optional[float]], ...]
) -> tuple[typing.Optional[float], typing.Optional[float]]:
    """What is told of a NIC with these interfaces (speed, supported, partner) and ports (state, rate)."""
    (hca,) = typing.cast(NodeHcas, nic(100.0).value).hcas
    made = (
        dataclasses.replace(hca.netdevs[0], speed_gbps=now, supported_gbps=card, partner_gbps=partner)
        for now, card, partner in netdevs
    )
    made_ports = (
        dataclasses.replace(hca.ports[0], number=number, state=state, rate_gbps=rate)
        for number, (state, rate) in enumerate(ports, 1)
    )
    nodes = {"a": NodeHcas((dataclasses.replace(hca, netdevs=tuple(made), ports=tuple(made_ports)),))}
    found = find_line_rates(intent().fabrics[0], nodes, {}, {}, {})[0]["a", "0000:3c:00.0"]
    return found.now, found.could


@pytest.mark.parametrize(
    ("netdevs", "ports", "now", "could"),
    [
        # several interfaces of one function: the fastest counts
        (((25.0, 100.0, 100.0), (100.0, 200.0, 200.0), (None, None, None)), (("DOWN", 40.0),), 100.0, 200.0),
        # none has a speed: a port that is up, and not what a driver makes up for one that is down
        (
            ((None, 200.0, 200.0),),
            (("ACTIVE", 25.0), ("ACTIVE", 100.0), ("ACTIVE", None), ("DOWN", 400.0)),
            100.0,
            200.0,
        ),
        # what the kernel knows of the ports is less than what runs
        (((400.0, 100.0, 100.0),), (), 400.0, 400.0),
        (((400.0, 100.0, 800.0),), (), 400.0, 400.0),
        (((None, 200.0, 100.0),), (), None, 100.0),
    ],
)
def test_several_interfaces_and_ports_of_a_nic(
    netdevs: tuple[tuple[typing.Optional[float], ...], ...],
    ports: tuple[tuple[str, typing.Optional[float]], ...],
    now: typing.Optional[float],
    could: float,
) -> None:
    assert of_nic(netdevs, ports) == (now, could)


def test_slow_ports_of_a_kind_are_no_fault_of_each_other() -> None:
    # 100 Mb/s, of a driver that does not tell more; and one that is down
    found = judged({"a": nic(0.1), "b": nic(0.1), "c": nic(None, state="DOWN")})
    assert {found["link", f"storage {name} mlx5_0"].status for name in "abc"} == {"unknown"}


@pytest.mark.parametrize("speed", [0.0, -32.0, 1e-6])
@pytest.mark.parametrize("field", ["max_speed", "slot_speed"])
def test_no_floor_comes_from_a_speed_that_no_pcie_link_has(field: str, speed: float) -> None:
    changes: dict[str, typing.Any] = {field: speed}
    link = dataclasses.replace(GEN4, current_speed=None, **changes)
    found = judged({name: nic(100.0, 100.0, 100.0, link=link) for name in "ab"}, 0.1)
    assert found["floor", "storage a -> b"].status == "fail"
    with pytest.raises(LoadError, match=r"the speed of a PCIe lane in GT/s from 2\.5"):
        load_exactly(PcieLink, {field: speed})


@pytest.mark.parametrize("data", [{"max_width": 0}, {"slot_width": -8}, {"payload": 0}, {"payload_could": 1}])
def test_no_fact_has_less_than_the_least_of_a_pcie_link(data: dict[str, int]) -> None:
    assert (
        find_pcie(dataclasses.replace(GEN4, **data)).could
        == find_pcie(dataclasses.replace(GEN4, **dict.fromkeys(data))).could
    )
    with pytest.raises(LoadError):
        load_exactly(PcieLink, data)


@pytest.mark.parametrize("rate", [0.0, -400.0, 1e-6])
def test_no_fact_has_less_than_the_least_rate_of_a_link(rate: float) -> None:
    for kind, data in (
        (Port, {"number": 1, "rate_gbps": rate}),
        (Netdev, {"name": "eth2", "hardware_address": "", "supported_gbps": rate}),
    ):
        with pytest.raises(LoadError, match="the rate of a link"):
            load_exactly(kind, data)


def _of_board(seen: ObservedHcas, board: str = "MT_0000000359") -> ObservedHcas:
    value = typing.cast(NodeHcas, seen.value)
    return ObservedHcas(NodeHcas((dataclasses.replace(value.hcas[0], board=board),)))


def test_card_that_says_it_can_do_less_is_held_to_the_others_of_its_board() -> None:
    """Its floor does not follow what it says of itself."""
    half = PcieLink(8.0, 16, 8.0, 16, 16.0, 16, 256, 512)
    nics = {"a": _of_board(nic(200.0, 200.0, 200.0, link=half)), "b": _of_board(nic(200.0, 200.0, 200.0))}
    found = judged(nics, 0.4)
    link = found["link", "storage a mlx5_0"]
    assert link.status == "fail" and "below the rate that both the card and the slot support" in link.why
    assert "PCIe 8 GT/s x16" in link.measured and "PCIe 16 GT/s x16" in link.expected
    assert {item.status for (check_id, _subject), item in found.items() if check_id == "floor"} == {"fail"}
    # a board of another PSID may be made so
    other = {**nics, "a": _of_board(nic(200.0, 200.0, 200.0, link=half), "MT_0000000360")}
    assert judged(other, 0.4)["link", "storage a mlx5_0"].status == "warn"


def test_card_that_says_it_can_not_carry_its_own_port_is_a_warning() -> None:
    half = PcieLink(8.0, 16, 8.0, 16, 8.0, 16, 256, 512)
    found = judged({name: _of_board(nic(200.0, 200.0, 200.0, link=half)) for name in ("a", "b")}, 0.45)
    link = found["link", "storage a mlx5_0"]
    assert link.status == "warn" and "which is too little for a network link of" in link.why
    assert "PCIe maximum of the card" in link.measured and "PCIe 8 GT/s x16" in link.expected
