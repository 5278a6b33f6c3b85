# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the HCAs of all nodes with each other. Check ids: ``discover.fleet``, ``discover.guids``,
``discover.descriptions``, ``discover.hardware_addresses``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.boundary.devices import assigned_address
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import NO_GUID, NodeHcas
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .hcas import MOST, describe_address, list_fitting, list_infiniband_hcas
from .infiniband import describe_change_to_infiniband, describe_set_to_ethernet, list_set_to_ethernet

_ONE_NIC = "each MAC address on 1 NIC or bond"


def check_fleet(intent: Intent, nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Return a finding for each node on its number of InfiniBand HCAs: a warning if another node has more HCAs, since a
    node may have lost an HCA even if the remaining HCAs are enough.

    The list is empty for fewer than two nodes, without InfiniBand fabrics, and without HCAs.
    """
    fabrics = [fabric for fabric in intent.fabrics if is_infiniband(fabric)]
    counted = {name: list_fitting(fabrics, node) for name, node in nodes.items()}
    most = max(map(len, counted.values()), default=0)
    if not fabrics or not most or len(nodes) < 2:
        return []
    full = {describe_address(hca) for hcas in counted.values() if len(hcas) == most for hca in hcas}
    findings, expected = [], f"{count_of(most, 'InfiniBand HCA')}, the most on any of {len(nodes)} nodes"
    for name, hcas in counted.items():
        if len(hcas) == most:
            findings.append(build_pass("discover.fleet", name, count_of(most, "InfiniBand HCA"), expected))
            continue
        missing = sorted(full - {describe_address(hca) for hca in hcas})
        why = (
            "The nodes of one fleet usually have the same hardware. Other nodes have an InfiniBand HCA at"
            f" {join_first(missing, MOST)}, but this node does not."
        )
        remedy = (
            "If the node has fewer HCAs on purpose, waive this finding. Otherwise run lspci -nn on the node. If it"
            " lists the card, load its driver (modprobe mlx5_ib for NVIDIA), and correct the error that dmesg"
            " shows. If it does not list the card, seat or replace the card. Then run stage discover again."
        )
        ethernet = [hca for hca in list_set_to_ethernet(nodes[name]) if describe_address(hca) in missing]
        if ethernet:
            why = f"{why} {describe_set_to_ethernet(ethernet)}"
            change = describe_change_to_infiniband(ethernet, "Otherwise waive this finding.")
            remedy = change if len(ethernet) == len(missing) else f"{change} For the other HCAs: {remedy}"
        findings.append(
            Finding("discover.fleet", name, WARN, count_of(len(hcas), "InfiniBand HCA"), expected, why, remedy)
        )
    return findings


def check_guids(nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Check that no two HCAs have the same node GUID or port GUID, since packets for one of them may reach the other.

    Return a failed finding for each GUID that several HCAs or ports have, or else one pass. The list is empty without
    InfiniBand HCAs. Virtual functions are judged by stage virtual_functions.
    """
    owners: dict[tuple[str, str], list[str]] = {}
    for name, hca in list_infiniband_hcas(nodes):
        if hca.node_guid not in (None, NO_GUID):
            owners.setdefault(("node", hca.node_guid or ""), []).append(f"{name} {hca.name}")
        for port in hca.ports:
            if port.guid not in (None, NO_GUID):
                owners.setdefault(("port", port.guid or ""), []).append(f"{name} {hca.name} port {port.number}")
    findings = []
    for (kind, guid), names in sorted(owners.items()):
        if len(names) > 1:
            why = (
                "The subnet manager cannot distinguish HCAs with the same GUID, so packets for one HCA may reach"
                " another. The usual cause is firmware that was burnt with the GUIDs of another card."
            )
            remedy = (
                "Drain the nodes, give each card its own GUIDs (on the node: mstflint -d ADDRESS -guid 0x... sg), and"
                " reset the card (mstfwreset -d ADDRESS reset). Then run stage discover again."
            )
            measured = f"on {count_of(len(names), 'port' if kind == 'port' else 'HCA')}: {join_first(names, MOST)}"
            expected = f"each GUID on 1 {'port' if kind == 'port' else 'HCA'}"
            findings.append(Finding("discover.guids", f"{kind} GUID {guid}", FAIL, measured, expected, why, remedy))
    if owners and not findings:
        counts = [sum(kind == wanted for kind, _guid in owners) for wanted in ("port", "node")]
        findings.append(
            build_pass(
                "discover.guids",
                "all nodes",
                f"{count_of(counts[0], 'port GUID')} and {counts[1]} node GUIDs, all different",
                "all different",
            )
        )
    return findings


def check_hardware_addresses(intent: Intent, nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Return a failed finding for each MAC address that several NICs of Ethernet fabrics have, or else one pass.

    The member interfaces of a bond share one address and count once.

    A machine that the inventory contains under two names is found too, since both names have the same MAC addresses.

    :param nodes: HCAs of each node
    """
    fabrics = [fabric for fabric in intent.fabrics if find_traits(fabric).members and not is_infiniband(fabric)]
    owners: dict[str, dict[tuple[str, str], str]] = {}
    for name, node in nodes.items():
        for hca in list_fitting(fabrics, node):
            for netdev in hca.netdevs:
                address = assigned_address(netdev.hardware_address)
                if address:
                    place = (name, netdev.bond or hca.name)
                    owners.setdefault(address, {}).setdefault(place, f"{name} {hca.name} ({netdev.name})")
    shared = {address: list(named.values()) for address, named in owners.items() if len(named) > 1}
    if owners and not shared:
        measured = f"{count_of(len(owners), 'MAC address', 'MAC addresses')}, each on one NIC or bond"
        return [build_pass("discover.hardware_addresses", "all nodes", measured, _ONE_NIC)]
    return [_report_shared_address(address, named) for address, named in sorted(shared.items())]


def _report_shared_address(address: str, owners: typing.Sequence[str]) -> Finding:
    why = (
        "A switch sends packets for one of these NICs to another. Or the inventory contains one machine under several"
        " names."
    )
    remedy = (
        "Run cat /etc/machine-id on these nodes. If the output is the same, correct ansible_host in the inventory."
        " Otherwise run ethtool -P INTERFACE on each node: it shows the permanent address of the NIC. Where it differs"
        " from the address of this finding, remove that address from the connection profile (nmcli connection show),"
        " netplan file or udev rule that sets it. Then run stage discover again."
    )
    return Finding(
        "discover.hardware_addresses",
        f"MAC address {address}",
        FAIL,
        f"on {count_of(len(owners), 'NIC')}: {join_first(owners, MOST)}",
        _ONE_NIC,
        why,
        remedy,
    )


def check_descriptions(nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Warn about InfiniBand HCAs with the same node description. Fabric tools identify an HCA by its description alone.

    :param nodes: HCAs of each node, by node
    """
    owners: dict[str, list[str]] = {}
    for name, hca in list_infiniband_hcas(nodes):
        if hca.node_description is not None:
            owners.setdefault(hca.node_description, []).append(f"{name} {hca.name}")
    findings = []
    for description, names in sorted(owners.items()):
        if len(names) > 1:
            why = (
                "Tools such as iblinkinfo show an HCA by its node description, so only the GUIDs distinguish these"
                " HCAs. The usual cause is that rdma-ndd does not run on these nodes."
            )
            remedy = (
                "Start rdma-ndd on each of these nodes (package rdma-core; systemctl enable --now rdma-ndd): it writes"
                " the host name and the device into the description. Then run stage discover again."
            )
            measured = f"{count_of(len(names), 'HCA')} with node description {description!r}: {join_first(names, MOST)}"
            expected = "a unique node description for each HCA"
            findings.append(Finding("discover.descriptions", names[0], WARN, measured, expected, why, remedy))
    if owners and not findings:
        findings.append(
            build_pass(
                "discover.descriptions",
                "all nodes",
                f"{count_of(len(owners), 'description')}, all different",
                "all different",
            )
        )
    return findings
