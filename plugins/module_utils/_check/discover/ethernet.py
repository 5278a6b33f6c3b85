# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the NICs of Ethernet fabrics. Check ids: ``discover.hcas``, ``discover.port``, ``discover.select``."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import bonds
from ..._analysis.fleet.hcas_of_fabric import find_candidates, hca_matches
from ..._analysis.fleet.mtus import find_usual_list, list_differing_nodes
from ..._model.base.load_error import Hints
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_traits, is_infiniband, is_interface_moved, owns_rdma
from ..._model.node.hca import Hca, Netdev, NodeHcas
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from .functions import check_driver, check_sriov
from .hcas import MOST, MOST_HCAS, describe, describe_hcas, describe_states, list_others
from .ports import check_ports_of_ethernet


def check_ethernet(fabric: Fabric, name: str, node: NodeHcas) -> list[Finding]:
    hcas = find_candidates(fabric, node)
    wanted = fabric.select.hcas_per_node
    measured = count_of(len(hcas), "NIC") + (f": {describe_hcas(hcas)}" if hcas else "")
    expected = f"{count_of(wanted, 'NIC')} for {fabric.name}"
    subject = f"{name} {fabric.name}"
    nameless = _list_nameless(fabric, node) if len(hcas) < wanted else []
    if nameless and len(hcas) + len(nameless) >= wanted:
        why = (
            f"The interfaces of these NICs are in pods: {describe_hcas(nameless)}. A pod can rename an interface, so"
            " select.netdev does not match them."
        )
        remedy = (
            f"Select the NICs by their PCI addresses in select.pci of the fabric '{fabric.name}', which a pod does not"
            " change. Then run stage discover again."
        )
        return [Finding("discover.hcas", subject, WARN, measured, expected, why, remedy)]
    if len(hcas) != wanted:
        why, remedy = bonds.explain_parts(fabric, node) or _explain_count(fabric, node, hcas)
        if "again." not in remedy:
            remedy = f"{remedy} Then run stage discover again."
        return [Finding("discover.hcas", subject, FAIL, measured, expected, why, remedy)]
    findings = [build_pass("discover.hcas", subject, measured, expected)]
    for hca in hcas:
        driven = check_driver(name, hca, owns_rdma(fabric), node)
        findings += [driven, check_sriov(name, hca)] if find_traits(fabric).functions else [driven]
        if driven.status == PASS:
            findings.append(_check_netdev(f"{name} {hca.name}", hca, is_interface_moved(fabric)))
            if len(hca.all_ports) > 1 and not is_interface_moved(fabric):
                findings += check_ports_of_ethernet(f"{name} {hca.name}", hca)
    for bond, parts in bonds.list_parts(fabric, node).items():
        findings += _check_bond(f"{name} {fabric.name} {bond}", bond, parts)
    return findings


def _explain_count(fabric: Fabric, node: NodeHcas, hcas: typing.Sequence[Hca]) -> tuple[str, str]:
    """Return the cause and the remedy for a node that does not have ``hcas_per_node`` NICs of a fabric.

    :param hcas: NICs that the fabric selects
    """
    its, again = f"of the fabric '{fabric.name}'", "Then run stage discover again."
    if len(hcas) > fabric.select.hcas_per_node:
        return (
            f"The selectors {its} match more NICs than hcas_per_node.",
            f"Limit select {its} to its own NICs with pci or netdev, or raise hcas_per_node. {again}",
        )
    others = describe_hcas([hca for hca in list_others(node, hcas) if not hca.is_virtual])
    if others:
        return (
            f"These other NICs of the node do not match the selectors {its}: {others}.",
            f"If one of them belongs to the fabric, correct select {its}. Otherwise install or repair the missing NIC,"
            f" or lower hcas_per_node. {again}",
        )
    return (
        "The kernel shows no other NIC on the PCI bus: the card is not installed, not seated, or switched off.",
        f"Run lspci -nn on the node and look for the missing card. If it is not listed, seat or replace it. If the node"
        f" needs fewer NICs, correct hcas_per_node {its}. {again}",
    )


def compare_mtus(intent: Intent, nodes: typing.Mapping[str, NodeHcas]) -> typing.Iterator[Finding]:
    """Compare the MTU of the interfaces between nodes, and yield findings of status ``unknown`` on the nodes that have
    an interface with another MTU than most nodes. Only fabrics are compared whose pods get the interface of the node,
    or one on top of it, with its MTU, and for which the intent sets no MTU. On InfiniBand, where the fabric of an HCA
    is not known yet, only the interfaces that the intent names are compared.

    :param nodes: HCAs of each node
    """
    for fabric in intent.fabrics:
        its = find_traits(fabric)
        if not its.members or its.functions or fabric.mtu is not None:
            continue
        mtus = {name: _list_mtus(fabric, node) for name, node in nodes.items()}
        usual = find_usual_list(mtus)
        for name, found in list_differing_nodes(mtus, usual).items():
            why = (
                "Pods get the MTU of the interface of their node. Packets larger than the smaller MTU are dropped"
                " without an error."
            )
            number = str(usual[0]) if len(set(usual)) == 1 else "MTU"
            interface = fabric.select.netdev[0] if len(fabric.select.netdev) == 1 else "INTERFACE"
            remedy = (
                f"Set the MTU of the interface on {name} to that of the other nodes: in the network configuration of"
                f" the node, and with ip link set dev {interface} mtu {number}. Or set mtu of the fabric in the"
                " intent, if its profile supports this key. Then run stage discover again."
            )
            yield Finding(
                "discover.port",
                f"{name} {fabric.name} MTU",
                UNKNOWN,
                f"MTU {_format_mtus(found)}",
                f"MTU {_format_mtus(usual)}, as on most nodes",
                why,
                remedy,
            )


def _list_mtus(fabric: Fabric, node: NodeHcas) -> tuple[int, ...]:
    """Return the MTUs of the interfaces that pods of a fabric may get, or that are below theirs, in ascending order.

    :param node: HCAs of the node
    """
    netdevs, named = [netdev for hca in find_candidates(fabric, node) for netdev in hca.netdevs], fabric.select.netdev
    if named or is_infiniband(fabric):
        netdevs = [netdev for netdev in netdevs if netdev.name in named or netdev.bond in named]
    return tuple(sorted(netdev.mtu for netdev in netdevs if netdev.mtu is not None))


def _format_mtus(mtus: typing.Sequence[int]) -> str:
    """Return MTUs as text, each once, such as ``1500 and 9000``; ``not known`` without an MTU."""
    return " and ".join(map(str, sorted(set(mtus)))) or "not known"


def _check_bond(subject: str, bond: str, parts: typing.Sequence[tuple[Hca, Netdev]]) -> typing.Iterator[Finding]:
    """Check that all member interfaces of a bond are up and have the same speed and MTU. A member that is down, or of
    unread state, is unknown: it may be a lost link. Other differences are a warning.

    Other checks rely on this, because they look at one member of the bond only.

    :param subject: subject of the finding
    :param bond: name of the bond
    :param parts: member interfaces of the bond, each with its HCA
    """
    expected = "all members of the bond up, with the same speed and the same MTU"
    shown = [f"{netdev.name} {netdev.state or 'state not read'}" for _hca, netdev in parts]
    speeds = sorted({netdev.speed_gbps for _hca, netdev in parts if netdev.speed_gbps is not None})
    mtus = sorted({netdev.mtu for _hca, netdev in parts if netdev.mtu is not None})
    troubles = []
    down = any(netdev.state != "up" for _hca, netdev in parts)
    if down:
        troubles.append(
            "A member of the bond that is down carries no data, and it cannot replace another member that fails. The"
            " intent does not say whether the fabric needs it."
        )
    if len(speeds) > 1:
        shown.append(" and ".join(f"{speed:g} Gb/s" for speed in speeds))
        troubles.append(
            "The members of the bond have different speeds: the slowest member limits the flows that the bond assigns"
            " to it."
        )
    if len(mtus) > 1:
        shown.append(f"MTU {' and '.join(map(str, mtus))}")
        troubles.append("A member of the bond with a smaller MTU drops packets that fit the MTU of the other members.")
    if troubles:
        remedy = (
            f"On the node, run cat /proc/net/bonding/{bond} and ip -d link. Bring up each member that is down (ip link"
            " set dev INTERFACE up), give all members the same speed and MTU, and check the cables and the switch"
            " ports. Then run stage discover again."
            f"{' If the bond is built with fewer cables, waive this finding.' if down else ''}"
        )
        yield Finding(
            "discover.port",
            subject,
            UNKNOWN if down else WARN,
            join_first(shown, MOST),
            expected,
            " ".join(troubles),
            remedy,
        )
    else:
        yield build_pass("discover.port", subject, join_first(shown, MOST), expected)


def _list_nameless(fabric: Fabric, node: NodeHcas) -> list[Hca]:
    """Return the functions of a node whose interfaces are in pods, so that their names on the node are unknown, and
    that match all other selectors of the fabric. The list is empty unless the fabric selects interfaces by name and
    moves them into pods.
    """
    if not (is_interface_moved(fabric) and fabric.select.netdev):
        return []
    select = dataclasses.replace(fabric.select, netdev=())
    return [hca for hca in node.hcas if hca.held and hca.held.netdevs and not hca.names and hca_matches(select, hca)]


def _check_netdev(subject: str, hca: Hca, moved: bool) -> Finding:
    """Check that a function has a network interface, and that the interface is up unless it is moved into pods.

    :param subject: subject of the finding
    :param hca: function whose interface is checked
    :param moved: whether the interface is moved into pods, which bring it up; it may be down when it returns to the
        node
    """
    expected = "a network interface, up or down" if moved else "a network interface that is up"
    if moved and hca.held and hca.held.netdevs:
        shown = describe_states(hca.held.netdevs)
        return build_pass("discover.port", subject, f"in a pod: {shown}", expected)
    if not hca.netdevs:
        return Finding(
            "discover.port",
            subject,
            WARN,
            "no network interface",
            expected,
            "The node does not show the network interface of this NIC: a pod or another program has it in"
            " its own network namespace, or the NIC is assigned to a virtual machine.",
            "On the node, run lsns -t net for the PIDs of the network namespaces, and nsenter -t PID -n ip link for"
            " each of them, to find the program that has the interface. When no job needs the program or the"
            " virtual machine any more, end it. Then run stage discover again.",
        )
    states = describe_states(hca.netdevs)
    if moved or any(netdev.state == "up" for netdev in hca.netdevs):
        return build_pass("discover.port", subject, states, expected)
    if all(netdev.state is None for netdev in hca.netdevs):
        files = " ".join(f"/sys/class/net/{netdev.name}/operstate" for netdev in hca.netdevs[:MOST])
        why = f"Reading {files} failed, so the state of the interface is unknown."
        remedy = (
            f"Run cat {files} as root on the node. If it prints an error, drain the node and reload the driver of the"
            " NIC. Then run stage"
            " discover again."
        )
        return Finding("discover.port", subject, WARN, states, expected, why, remedy)
    why = (
        "The interface carries no packets, and neither do its virtual functions. Either no program brought it up,"
        " or the cable or the switch port is faulty."
    )
    return Finding(
        "discover.port",
        subject,
        WARN,
        states,
        expected,
        why,
        f"On the node, run ip link show {hca.netdevs[0].name}. If its flags do not contain UP, run ip link set dev"
        f" {hca.netdevs[0].name} up, or let the SR-IOV operator bring it up in stage network. If they contain"
        " NO-CARRIER, check the cable and the switch port. Then run stage discover again.",
    )


def check_listed(fabric: Fabric, name: str, node: NodeHcas, hints: Hints) -> list[Finding]:
    """Return a finding on each PCI address that the intent lists for the fabric. A mismatch is a mistake in the intent,
    or a missing card.

    :param name: name of the node
    :param hints: search for the most similar known PCI address, limited in the number of calls
    """
    findings = []
    by_address = {hca.pci.address: hca for hca in node.hcas if hca.pci}
    for address in fabric.select.pci:
        subject = f"{name} {fabric.name} {address}"
        hca = by_address.get(address.lower())
        expected = f"a physical function at this address, for fabric {fabric.name}"
        if hca is None:
            known = (
                join_first([address for address, item in by_address.items() if not item.is_virtual], MOST_HCAS)
                or "none"
            )
            why = (
                "The address in select.pci is wrong, or the card is missing. Physical functions of the node:"
                f" {known}{hints.nearest(address, by_address)}."
            )
            remedy = (
                f"Compare lspci -D on the node with select.pci of the fabric '{fabric.name}'. Correct the address, or"
                " seat or replace the card. Then run stage discover again."
            )
            findings.append(
                Finding("discover.select", subject, FAIL, "no PCI function at this address", expected, why, remedy)
            )
        elif hca.is_virtual:
            why = (
                f"The address in select.pci is that of a virtual function of {hca.physical_function}, and a"
                " fabric selects physical functions only."
            )
            remedy = (
                f"Put {hca.physical_function} into select.pci of the fabric '{fabric.name}' instead. Then run stage"
                " discover again."
            )
            findings.append(Finding("discover.select", subject, FAIL, "a virtual function", expected, why, remedy))
        elif hca not in find_candidates(fabric, node):
            layers = join_first(sorted({port.link_layer or "unread" for port in hca.ports}), MOST) or "no RDMA port"
            why = f"{_find_misfit(fabric, hca, layers)}."
            remedy = (
                f"Correct the selectors or the profile of the fabric '{fabric.name}', or delete this address in its"
                " list pci. Then run stage discover again."
            )
            findings.append(
                Finding("discover.select", subject, FAIL, f"{describe(hca)}, {layers}", expected, why, remedy)
            )
        else:
            findings.append(build_pass("discover.select", subject, describe(hca), expected))
    return findings


def _find_misfit(fabric: Fabric, hca: Hca, layers: str) -> str:
    """Return how a function contradicts the intent that lists it: its link layer, or another selector.

    :param hca: function that the intent lists
    :param layers: link layers of the ports of the function, for the text
    """
    usable = bonds.list_usable_names(fabric, hca)
    if hca_matches(fabric.select, hca, usable):
        return f"The link layer of the function does not match the profile {fabric.profile}: {layers}"
    pci, names = hca.pci, join_first(usable, MOST) or "none"
    wrong = {
        f"vendor {fabric.select.vendor}, but the function has {pci.vendor if pci else 'none'}": (
            pci and fabric.select.vendor in (None, pci.vendor)
        ),
        f"device {fabric.select.device}, but the function has {pci.device if pci else 'none'}": (
            pci and fabric.select.device in (None, pci.device)
        ),
        f"netdev {', '.join(fabric.select.netdev)}, but the function has {names}": (
            not fabric.select.netdev or any(name in fabric.select.netdev for name in usable)
        ),
    }
    return "The function does not match another selector of the fabric: " + "; ".join(
        text for text, fits in wrong.items() if not fits
    )
