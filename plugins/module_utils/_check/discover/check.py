# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage discover: do the nodes have the HCAs and NICs that the intent asks for, and what do their ports say. Check ids:
``discover.*``.

Which InfiniBand HCA is on which fabric is not known here: only the subnet manager says that (stage fabric). So HCAs are
counted against all InfiniBand fabrics of the intent together, and one that can't be used is a failure only where the
good ones are too few.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.clock import ObservedClock
from ..._model.findings import FAIL, PASS, UNKNOWN, WARN, Finding, ok
from ..._model.hca import NO_GUID, Hca, Netdev, NodeHcas, ObservedHcas, Port
from ..._model.intent import Fabric, Intent
from ..._model.load import Hints
from ..._model.profiles import find_traits, is_infiniband, moves, owns_rdma
from ..._model.text import folded
from ..fleet import bonds, unreachable_nodes, vendors, why_no_sriov
from ..fleet.hcas_of_fabric import find_candidates, selects
from . import clock, numa

#: of a list that a node gives, in the words of a finding; and of its HCAs, of which nodes have 16 at most
_MOST, _MOST_HCAS = 8, 16


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: answer of node_info of each node
    :ivar clocks: of each node, from the same answer
    :ivar by_pods: names of the nodes that are reached by observers
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    clocks: dict[str, ObservedClock] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """One finding at least for each node, for each fabric on each node, and for each port that a fabric may use."""
    findings: list[Finding] = []
    if not facts.nodes:
        findings.append(
            Finding(
                "discover.node",
                "inventory",
                UNKNOWN,
                "no node",
                "at least 1 node",
                "No node was asked, so nothing is known.",
                "Put the nodes into the inventory's group rdma_nodes.",
            )
        )
    read: dict[str, NodeHcas] = {}
    for name, observed in facts.nodes.items():
        findings += _check_node(name, observed, facts.by_pods)
        if observed.value is not None and observed.error is None:
            read[name] = observed.value
    hints = Hints()
    for name, node in read.items():
        findings += _check_infiniband(intent, name, node)
        for fabric in intent.fabrics:
            if find_traits(fabric).members and not is_infiniband(fabric):
                findings += _check_ethernet(fabric, name, node)
            findings += _check_listed(fabric, name, node, hints)
        findings += _check_pcie(intent, name, node)
    findings += _check_fleet(intent, read)
    findings += _check_guids(read)
    findings += _check_descriptions(read)
    findings += numa.check(read)
    findings += clock.check({name: facts.clocks.get(name, ObservedClock()) for name in facts.nodes})
    return tuple(findings)


def _check_node(name: str, observed: ObservedHcas, by_pods: typing.Container[str]) -> list[Finding]:
    expected = "an answer of node_info"
    if observed.value is None or observed.error is not None:
        why = f"node_info gave no answer: {observed.error or 'its answer is empty'}."
        remedy = unreachable_nodes.remedy(name, by_pods, "Python 3.9 or later")
        return [Finding("discover.node", name, UNKNOWN, "no answer", expected, why, remedy)]
    node = observed.value
    virtual = sum(hca.is_virtual for hca in node.hcas)
    findings = [
        ok("discover.node", name, f"{len(node.hcas) - virtual} physical and {virtual} virtual functions", expected)
    ]
    if node.errors:
        why = f"These could not be read, so what they would say is unknown: {'; '.join(node.errors[:10])}."
        remedy = f"Read them on {name} by hand. Files that come and go while VFs are made are right at the next run."
        findings.append(Finding("discover.read", name, WARN, f"{len(node.errors)} unread", "0 unread", why, remedy))
    else:
        findings.append(ok("discover.read", name, "0 unread", "0 unread"))
    return findings


def _check_infiniband(intent: Intent, name: str, node: NodeHcas) -> list[Finding]:
    """Count against all InfiniBand fabrics together, then each port."""
    fabrics = [fabric for fabric in intent.fabrics if is_infiniband(fabric)]
    if not fabrics:
        return []
    # those that share an interface may stand on the HCAs of others
    apart = sum(fabric.select.hcas_per_node for fabric in fabrics if not find_traits(fabric).shared)
    wanted = max([apart, *(fabric.select.hcas_per_node for fabric in fabrics if find_traits(fabric).shared)])
    hcas = _fitting(fabrics, node)
    label = " and ".join(fabric.name for fabric in fabrics)
    measured = f"{len(hcas)} InfiniBand HCAs" + (f": {_described(hcas)}" if hcas else "")
    expected = f"at least {wanted} InfiniBand HCAs for {label}"
    if len(hcas) < wanted:
        why, remedy = _why_too_few(node)
        findings = [Finding("discover.hcas", f"{name} {label}", FAIL, measured, expected, why, remedy)]
    else:
        findings = [ok("discover.hcas", f"{name} {label}", measured, expected)]
    # a function without RDMA device shows no link layer: its class says what it would be
    mute = [
        hca
        for hca in _others(node, hcas)
        if _is_infiniband_function(hca)
        and not hca.rdma_device
        and any(selects(fabric.select, hca) for fabric in fabrics)
    ]
    for hca in (*hcas, *mute):
        findings.append(_spared(_check_driver(name, hca, True, node), len(hcas), wanted))
    usable = sum(
        any(trouble(port) is None for port in hca.all_ports if port.link_layer == "InfiniBand") for hca in hcas
    )
    for hca in hcas:
        for port in hca.all_ports:
            if port.link_layer == "InfiniBand":
                findings.append(_spared(_check_port(f"{name} {hca.name} port {port.number}", port), usable, wanted))
    capable = sum(hca.sriov is not None and bool(hca.sriov.total) for hca in hcas)
    for hca in hcas if any(find_traits(fabric).functions for fabric in fabrics) else ():
        findings.append(_spared(_check_sriov(name, hca), capable, wanted))
    return findings


def _is_infiniband_function(hca: Hca) -> bool:
    return hca.pci is not None and hca.pci.device_class == "0207"


def _spared(finding: Finding, good: int, wanted: int) -> Finding:
    """A finding that does not pass is a warning where the node has enough HCAs without this one: it may be on no fabric
    of the intent."""
    if finding.status == PASS or good < wanted:
        return finding
    why = (
        f"{finding.why} The node has {good} good HCAs and the intent needs {wanted}, so this one may be on no fabric of"
        " the intent; stage fabric tells."
    )
    return dataclasses.replace(finding, status=WARN, why=why)


def _check_driver(name: str, hca: Hca, rdma: bool, node: NodeHcas) -> Finding:
    """Check that the kernel drives the function.

    :param rdma: an RDMA device is asked for as well
    """
    subject, expected = f"{name} {hca.name}", "a driver and an RDMA device" if rdma else "a driver"
    driver = hca.pci.driver if hca.pci else None
    if hca.pci is not None and driver is None:
        if "driver" in hca.unread:
            why, remedy = "Whether a driver is bound could not be read.", f"See the finding discover.read of {name}."
            return Finding("discover.driver", subject, UNKNOWN, "not known", expected, why, remedy)
        why = f"No driver is bound to the function {hca.pci.address} [{hca.pci.vendor}:{hca.pci.device}]."
        return Finding("discover.driver", subject, FAIL, "no driver", expected, why, vendors.load_driver([hca]))
    if driver == "vfio-pci":
        why = (
            "The function is given away as a whole, to a virtual machine or to a program of its own, so the node can't"
            " use it."
        )
        remedy = f"Take it back: driverctl unset-override {hca.pci.address if hca.pci else ''}, or end what holds it."
        return Finding("discover.driver", subject, FAIL, driver, expected, why, remedy)
    carrier = node.carrier(hca)
    held = hca.held.rdma_device if hca.held else None
    if rdma and not hca.rdma_device and held:
        return ok("discover.driver", subject, f"{driver}, {held} in a pod", expected)
    if rdma and not hca.rdma_device and carrier is None:
        why = f"The driver {driver} has made no RDMA device of it."
        return Finding(
            "discover.driver", subject, FAIL, f"{driver}, no RDMA device", expected, why, vendors.load_rdma([hca])
        )
    shown = f", in a bond with {carrier.name}" if carrier else ""
    return ok(
        "discover.driver",
        subject,
        f"{driver or 'no PCI function'}{f', {hca.rdma_device}' if hca.rdma_device else shown}",
        expected,
    )


def _check_sriov(name: str, hca: Hca) -> Finding:
    """Check that the function can make VFs at all; how many are enough is known when it is known whose member it is
    (stage platform)."""
    subject, expected = f"{name} {hca.name}", "SR-IOV: sriov_totalvfs of 1 or more"
    if hca.sriov is None:
        return Finding("discover.sriov", subject, FAIL, "absent", expected, *why_no_sriov.why(hca))
    if hca.sriov.total is None:
        why, remedy = "sriov_totalvfs is there and could not be read.", f"See the finding discover.read of {name}."
        return Finding("discover.sriov", subject, UNKNOWN, "not read", expected, why, remedy)
    if hca.sriov.total == 0:
        why, remedy = "Firmware: the function has SR-IOV and makes no VF.", vendors.more_functions(hca)
        return Finding("discover.sriov", subject, FAIL, "0 VFs at most", expected, why, remedy)
    return ok("discover.sriov", subject, f"{hca.sriov.total} VFs at most", expected)


def _why_too_few(node: NodeHcas) -> tuple[str, str]:
    """Return the nearest cause that the node itself shows."""
    bare = [
        hca
        for hca in node.hcas
        if hca.pci and hca.pci.device_class == "0207" and not hca.rdma_device and not hca.is_virtual
    ]
    if bare:
        driverless = [hca for hca in bare if hca.pci and not hca.pci.driver]
        names = _described(bare)
        if driverless:
            return (f"These HCAs have no driver: {names}.", vendors.load_driver(driverless))
        return (f"These HCAs have a driver but no RDMA device: {names}.", vendors.load_rdma(bare))
    ethernet = _set_to_ethernet(node)
    if ethernet:
        names = _described(ethernet)
        return (f"These are set to Ethernet: {names}.", _to_infiniband(ethernet))
    return (
        "The node shows no further InfiniBand HCA: it is not there, not seated, or switched off.",
        "Compare with lspci -nn on the node; correct select and hcas_per_node if the intent is wrong.",
    )


def _set_to_ethernet(node: NodeHcas) -> list[Hca]:
    return [
        hca
        for hca in node.hcas
        if not hca.is_virtual and hca.ports and all(port.link_layer == "Ethernet" for port in hca.ports)
    ]


def _to_infiniband(hcas: typing.Sequence[Hca]) -> str:
    able = [hca for hca in hcas if hca.pci and vendors.find_vendor(hca) is vendors.NVIDIA]
    if not able:
        return "They have no InfiniBand; look for the HCAs that have, with lspci -nn on the node."
    address = able[0].pci.address if len(able) == 1 and able[0].pci else "ADDRESS"
    return (
        f"If they are meant, set their link type to InfiniBand (mstconfig -d {address} set LINK_TYPE_P1=1), and reboot."
    )


@dataclasses.dataclass(frozen=True)
class PortTrouble:
    """:ivar known: the state was read"""

    measured: str
    why: str
    remedy: str
    known: bool = True


def trouble(port: Port) -> typing.Optional[PortTrouble]:
    """Return the problem that keeps a port from use; None when it is in use."""
    seen = f"{port.state or 'state unread'}, {port.physical_state or 'link unread'}"
    if port.state is None or port.physical_state is None:
        return PortTrouble(
            seen, "The port's state could not be read.", "See the finding discover.read of this node.", known=False
        )
    if port.physical_state == "Disabled":
        return PortTrouble(
            seen,
            "The port is switched off by hand or by the subnet manager.",
            "Switch it on: ibportstate, or the switch's own tool for the far end.",
        )
    if port.physical_state in ("Polling", "Sleep", "PortConfigurationTraining"):
        return PortTrouble(
            seen,
            "The port looks for a partner and finds none: no cable, a bad cable or transceiver, or the far port is "
            "off.",
            "Check the cable and the switch port at its other end.",
        )
    if port.physical_state != "LinkUp":
        return PortTrouble(
            seen,
            "The link is up and down, or under test.",
            "Replace the cable or transceiver; see the port's error counters.",
        )
    if port.state == "INIT" and port.sm_lid is None:
        return PortTrouble(
            f"{seen}, no subnet manager",
            "The link is up, but no subnet manager has given the port a LID.",
            "Start a subnet manager on this fabric: opensm on a server, UFM, or the switch's own.",
        )
    if port.state != "ACTIVE":
        return PortTrouble(
            seen,
            "A subnet manager knows the port and has not made it active.",
            "See the subnet manager's log for this port.",
        )
    if port.lid is None or port.sm_lid is None:
        return PortTrouble(
            f"{seen}, LID {port.lid or 0}, SM LID {port.sm_lid or 0}",
            "The port is active without a LID.",
            "Read again; see the subnet manager's log.",
        )
    return None


def _check_port(subject: str, port: Port) -> Finding:
    expected = "ACTIVE, LinkUp, with a LID"
    wrong = trouble(port)
    if wrong is None:
        rate = f"{port.rate_gbps:g} Gb/s ({port.width}X {port.speed})" if port.rate_gbps is not None else "rate unread"
        return ok("discover.port", subject, f"ACTIVE, LinkUp, {rate}, LID {port.lid}", expected)
    return Finding(
        "discover.port", subject, FAIL if wrong.known else UNKNOWN, wrong.measured, expected, wrong.why, wrong.remedy
    )


def _check_ethernet(fabric: Fabric, name: str, node: NodeHcas) -> list[Finding]:
    hcas = find_candidates(fabric, node)
    wanted = fabric.select.hcas_per_node
    measured = f"{len(hcas)} NICs" + (f": {_described(hcas)}" if hcas else "")
    expected = f"{wanted} NICs for {fabric.name}"
    subject = f"{name} {fabric.name}"
    nameless = _nameless(fabric, node) if len(hcas) < wanted else []
    if nameless and len(hcas) + len(nameless) >= wanted:
        why = (
            "Pods have the interfaces of these, and nothing keeps the names that they had on the node:"
            f" {_described(nameless)}."
        )
        remedy = (
            f"Name the functions themselves, in select.pci of the fabric '{fabric.name}': a pod does not change that."
        )
        return [Finding("discover.hcas", subject, WARN, measured, expected, why, remedy)]
    if len(hcas) != wanted:
        others = _described([hca for hca in _others(node, hcas) if not hca.is_virtual]) or "none"
        why = (
            f"The selectors of the fabric fit {len(hcas)} physical functions of the node. Others that it has: {others}."
        )
        remedy = f"Correct select and hcas_per_node of the fabric '{fabric.name}', or the node's hardware."
        return [
            Finding(
                "discover.hcas",
                subject,
                FAIL,
                measured,
                expected,
                *(bonds.explain_parts(fabric, node) or (why, remedy)),
            )
        ]
    findings = [ok("discover.hcas", subject, measured, expected)]
    for hca in hcas:
        driven = _check_driver(name, hca, owns_rdma(fabric), node)
        findings += [driven, _check_sriov(name, hca)] if find_traits(fabric).functions else [driven]
        if driven.status == PASS:
            findings.append(_check_netdev(f"{name} {hca.name}", hca, moves(fabric)))
    return findings


def _nameless(fabric: Fabric, node: NodeHcas) -> list[Hca]:
    """Functions that the fabric may have selected by the name of an interface, before a pod got it."""
    if not (moves(fabric) and fabric.select.netdev):
        return []
    select = dataclasses.replace(fabric.select, netdev=())
    return [hca for hca in node.hcas if hca.held and hca.held.netdevs and not hca.names and selects(select, hca)]


def _check_netdev(subject: str, hca: Hca, moved: bool) -> Finding:
    """:param moved: into pods, which set it up; back on the node it is down"""
    expected = "a network interface, up or down" if moved else "a network interface that is up"
    if moved and hca.held and hca.held.netdevs:
        shown = _states(hca.held.netdevs)
        return ok("discover.port", subject, f"in a pod: {shown}", expected)
    if not hca.netdevs:
        return Finding(
            "discover.port",
            subject,
            WARN,
            "no network interface",
            expected,
            "The function has no network interface here: it may be in another network namespace, or given to a virtual "
            "machine.",
            "See ip link in the node's other network namespaces.",
        )
    states = _states(hca.netdevs)
    if moved or any(netdev.state == "up" for netdev in hca.netdevs):
        return ok("discover.port", subject, states, expected)
    why = "The interface has no carrier or was never set up. VFs have no link while their physical function has none."
    return Finding(
        "discover.port",
        subject,
        WARN,
        states,
        expected,
        why,
        "Set it up (ip link set dev ... up) and check the cable. The SR-IOV operator sets it up when it makes VFs.",
    )


def _check_listed(fabric: Fabric, name: str, node: NodeHcas, hints: Hints) -> list[Finding]:
    """Each PCI address that the intent lists is looked up: a list that contradicts the node is the intent's mistake, or
    a missing card."""
    findings = []
    by_address = {hca.pci.address: hca for hca in node.hcas if hca.pci}
    for address in fabric.select.pci:
        subject = f"{name} {fabric.name} {address}"
        hca = by_address.get(address.lower())
        expected = f"a physical function for {fabric.name}"
        remedy = f"Correct select.pci of the fabric '{fabric.name}'."
        if hca is None:
            known = (
                folded([address for address, item in by_address.items() if not item.is_virtual], _MOST_HCAS) or "none"
            )
            why = (
                "The node has no such function; physical functions that it has:"
                f" {known}{hints.nearest(address, by_address)}."
            )
            findings.append(Finding("discover.select", subject, FAIL, "absent", expected, why, remedy))
        elif hca.is_virtual:
            why = f"It is a virtual function of {hca.physical_function}."
            findings.append(Finding("discover.select", subject, FAIL, "a virtual function", expected, why, remedy))
        elif hca not in find_candidates(fabric, node):
            layers = folded(sorted({port.link_layer or "unread" for port in hca.ports}), _MOST) or "no RDMA port"
            why = f"The function is there, but {_misfit(fabric, hca, layers)}."
            findings.append(
                Finding("discover.select", subject, FAIL, f"{_describe(hca)}, {layers}", expected, why, remedy)
            )
        else:
            findings.append(ok("discover.select", subject, _describe(hca), expected))
    return findings


def _misfit(fabric: Fabric, hca: Hca, layers: str) -> str:
    """Return the part of the intent that a listed function contradicts."""
    usable = bonds.list_usable_names(fabric, hca)
    if selects(fabric.select, hca, usable):
        return f"its link layer is not that of the profile {fabric.profile}: it has {layers}"
    pci, names = hca.pci, folded(usable, _MOST) or "none"
    wrong = {
        f"vendor {fabric.select.vendor}, it has {pci.vendor if pci else 'none'}": (
            pci and fabric.select.vendor in (None, pci.vendor)
        ),
        f"device {fabric.select.device}, it has {pci.device if pci else 'none'}": (
            pci and fabric.select.device in (None, pci.device)
        ),
        f"netdev {', '.join(fabric.select.netdev)}, it has {names}": (
            not fabric.select.netdev or any(name in fabric.select.netdev for name in usable)
        ),
    }
    return "another selector contradicts: " + "; ".join(text for text, fits in wrong.items() if not fits)


def _check_pcie(intent: Intent, name: str, node: NodeHcas) -> list[Finding]:
    """A card in a narrow slot, or one that trained down, can't reach the rate of its link."""
    findings = []
    for hca in _fitting(intent.fabrics, node):
        # a virtio NIC is memory of the hypervisor: it has no link
        if hca.pci is None or hca.pci.driver == "virtio-pci":
            continue
        link, subject = hca.pci.link, f"{name} {hca.name}"
        if link.current_speed is None or link.current_width is None or link.max_speed is None or link.max_width is None:
            why = "sysfs does not say speed or width of the PCIe link, as in some virtual machines."
            findings.append(
                Finding(
                    "discover.pcie",
                    subject,
                    WARN,
                    "not known",
                    "the card's most",
                    why,
                    "See lspci -vv on the node, as root.",
                )
            )
            continue
        measured, expected = (
            f"{link.current_speed:g} GT/s x{link.current_width}",
            f"{link.max_speed:g} GT/s x{link.max_width}",
        )
        if link.current_speed < link.max_speed or link.current_width < link.max_width:
            why = (
                "The PCIe link runs below what the card can: a slot with fewer lanes or an older generation, a riser,"
                " or a link that trained down."
            )
            findings.append(
                Finding(
                    "discover.pcie",
                    subject,
                    WARN,
                    measured,
                    expected,
                    why,
                    "Seat the card anew, or move it to a slot that offers what it needs; see the BIOS's slot settings.",
                )
            )
        else:
            findings.append(ok("discover.pcie", subject, measured, expected))
    return findings


def _check_fleet(intent: Intent, nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """A node with fewer HCAs than the others has lost one, even where enough are left."""
    fabrics = [fabric for fabric in intent.fabrics if is_infiniband(fabric)]
    counted = {name: _fitting(fabrics, node) for name, node in nodes.items()}
    most = max(map(len, counted.values()), default=0)
    if not fabrics or not most or len(nodes) < 2:
        return []
    full = {_address(hca) for hcas in counted.values() if len(hcas) == most for hca in hcas}
    findings, expected = [], f"{most} InfiniBand HCAs, as the best of {len(nodes)} nodes has"
    for name, hcas in counted.items():
        if len(hcas) == most:
            findings.append(ok("discover.fleet", name, f"{most} InfiniBand HCAs", expected))
            continue
        missing = sorted(full - {_address(hca) for hca in hcas})
        why = (
            f"Nodes of one fleet are usually alike. Others have an InfiniBand HCA at {folded(missing, _MOST)}, and this"
            " node has none there."
        )
        remedy = (
            "See lspci -nn on the node: a card that is absent is dead or not seated. Nodes that are meant to differ are"
            " right as they are."
        )
        ethernet = [hca for hca in _set_to_ethernet(nodes[name]) if _address(hca) in missing]
        if ethernet:
            why = f"{why} These are set to Ethernet: {_described(ethernet)}."
            remedy = f"{_to_infiniband(ethernet)} {remedy}"
        findings.append(Finding("discover.fleet", name, WARN, f"{len(hcas)} InfiniBand HCAs", expected, why, remedy))
    return findings


def _check_guids(nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Two owners of one GUID take each other's packets. VFs are none of this check's business (stage
    virtual_functions)."""
    owners: dict[tuple[str, str], list[str]] = {}
    for name, hca in _infiniband_hcas(nodes):
        if hca.node_guid not in (None, NO_GUID):
            owners.setdefault(("node", hca.node_guid or ""), []).append(f"{name} {hca.name}")
        for port in hca.ports:
            if port.guid not in (None, NO_GUID):
                owners.setdefault(("port", port.guid or ""), []).append(f"{name} {hca.name} port {port.number}")
    findings = []
    for (kind, guid), names in sorted(owners.items()):
        if len(names) > 1:
            why = f"These have the same {kind} GUID: {folded(names, _MOST)}. The subnet manager can't tell them apart."
            remedy = "Give each its own: firmware burnt with another card's GUIDs is the usual cause (flint -d ... sg)."
            findings.append(
                Finding("discover.guids", f"{kind} GUID {guid}", FAIL, f"{len(names)} owners", "1 owner", why, remedy)
            )
    if owners and not findings:
        counts = [sum(kind == wanted for kind, _guid in owners) for wanted in ("port", "node")]
        findings.append(
            ok(
                "discover.guids",
                "all nodes",
                f"{counts[0]} port GUIDs and {counts[1]} node GUIDs, all different",
                "all different",
            )
        )
    return findings


def _check_descriptions(nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """The fabric's tools name an HCA by its description alone."""
    owners: dict[str, list[str]] = {}
    for name, hca in _infiniband_hcas(nodes):
        if hca.node_description is not None:
            owners.setdefault(hca.node_description, []).append(f"{name} {hca.name}")
    findings = []
    for description, names in sorted(owners.items()):
        if len(names) > 1:
            shown = folded(names, _MOST)
            why = (
                f"These HCAs have the same node description {description!r}: {shown}. In the fabric's topology they"
                " look alike; GUIDs still tell them apart."
            )
            remedy = (
                "Run rdma-ndd on each node (package rdma-core): it writes host name and device into the description."
            )
            findings.append(
                Finding("discover.descriptions", names[0], WARN, f"{len(names)} HCAs", "1 HCA", why, remedy)
            )
    if owners and not findings:
        findings.append(
            ok("discover.descriptions", "all nodes", f"{len(owners)} descriptions, all different", "all different")
        )
    return findings


def _others(node: NodeHcas, chosen: typing.Iterable[Hca]) -> list[Hca]:
    """Return the functions of a node beside some of its own. They are told apart as objects: to compare each with each
    takes the square of their number."""
    known = set(map(id, chosen))
    return [hca for hca in node.hcas if id(hca) not in known]


def _fitting(fabrics: typing.Sequence[Fabric], node: NodeHcas) -> list[Hca]:
    """Return the HCAs of a node that could be members of one of the fabrics, each once."""
    chosen = {id(hca) for fabric in fabrics for hca in find_candidates(fabric, node)}
    return [hca for hca in node.hcas if not hca.is_virtual and id(hca) in chosen]


def _infiniband_hcas(nodes: typing.Mapping[str, NodeHcas]) -> typing.Iterator[tuple[str, Hca]]:
    """Physical ones, with the name of their node."""
    for name, node in nodes.items():
        for hca in node.hcas:
            if not hca.is_virtual and any(port.link_layer == "InfiniBand" for port in hca.ports):
                yield name, hca


def _address(hca: Hca) -> str:
    return hca.pci.address if hca.pci else hca.name


def _described(hcas: typing.Sequence[Hca]) -> str:
    return folded([_describe(hca) for hca in hcas], _MOST_HCAS)


def _states(netdevs: typing.Sequence[Netdev]) -> str:
    """``ib0 up``"""
    return folded([f"{netdev.name} {netdev.state or 'unread'}" for netdev in netdevs], _MOST)


def _describe(hca: Hca) -> str:
    """``mlx5_0 (0000:3c:00.0)``"""
    return f"{hca.name} ({hca.pci.address})" if hca.pci and hca.pci.address != hca.name else hca.name
