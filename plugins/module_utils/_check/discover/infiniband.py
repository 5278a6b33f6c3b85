# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the InfiniBand HCAs of each node. Check ids: ``discover.hcas``, ``discover.driver``, ``discover.port``,
``discover.sriov``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import vendors
from ..._analysis.fleet.hcas_of_fabric import find_candidates, hca_matches
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import Hca, NodeHcas
from ..._model.run.findings import FAIL, PASS, WARN, Finding, build_pass
from .functions import check_driver, check_sriov
from .hcas import describe_hcas, list_fitting, list_others
from .ports import check_port, find_trouble

#: PCI vendor and device of models of NVIDIA that have Ethernet alone: ConnectX-4 Lx, ConnectX-6 Dx and ConnectX-6 Lx
#: [pci.ids]
_ETHERNET_ONLY = frozenset((("15b3", "1015"), ("15b3", "101d"), ("15b3", "101f")))


def check_infiniband(intent: Intent, name: str, node: NodeHcas) -> list[Finding]:
    """Return findings on the number of HCAs, compared with all InfiniBand fabrics together, and on the driver, ports
    and SR-IOV of each HCA. The list is empty without InfiniBand fabrics.

    :param name: name of the node
    :param node: HCAs of the node
    """
    fabrics = [fabric for fabric in intent.fabrics if is_infiniband(fabric)]
    if not fabrics:
        return []
    # those that share an interface may stand on the HCAs of others
    apart = sum(fabric.select.hcas_per_node for fabric in fabrics if not find_traits(fabric).shared)
    wanted = max([apart, *(fabric.select.hcas_per_node for fabric in fabrics if find_traits(fabric).shared)])
    hcas = list_fitting(fabrics, node)
    label = " and ".join(fabric.name for fabric in fabrics)
    measured = count_of(len(hcas), "InfiniBand HCA") + (f": {describe_hcas(hcas)}" if hcas else "")
    expected = f"at least {count_of(wanted, 'InfiniBand HCA')} for {label}"
    if len(hcas) < wanted:
        why, remedy = _explain_too_few(intent, node)
        findings = [Finding("discover.hcas", f"{name} {label}", FAIL, measured, expected, why, remedy)]
    else:
        findings = [build_pass("discover.hcas", f"{name} {label}", measured, expected)]
    # a function without RDMA device shows no link layer: its class says what it would be
    mute = [
        hca
        for hca in list_others(node, hcas)
        if _is_infiniband_function(hca)
        and not hca.rdma_device
        and any(hca_matches(fabric.select, hca) for fabric in fabrics)
    ]
    for hca in (*hcas, *mute):
        findings.append(_reduce_to_warning(check_driver(name, hca, True, node), len(hcas), wanted))
    usable = sum(
        any(find_trouble(port) is None for port in hca.all_ports if port.link_layer == "InfiniBand") for hca in hcas
    )
    for hca in hcas:
        for port in hca.all_ports:
            if port.link_layer == "InfiniBand":
                found = check_port(f"{name} {hca.name} port {port.number}", port, hca.rdma_device or hca.name)
                findings.append(_reduce_to_warning(found, usable, wanted))
    capable = sum(hca.sriov is not None and bool(hca.sriov.total) for hca in hcas)
    for hca in hcas if any(find_traits(fabric).functions for fabric in fabrics) else ():
        findings.append(_reduce_to_warning(check_sriov(name, hca), capable, wanted))
    return findings


def _is_infiniband_function(hca: Hca) -> bool:
    return hca.pci is not None and hca.pci.device_class == "0207"


def _reduce_to_warning(finding: Finding, good: int, wanted: int) -> Finding:
    """Return the finding on an HCA, changed to a warning if the node has enough other usable HCAs.

    An HCA that is not needed may belong to no fabric of the intent. A passed finding is not changed.

    :param good: number of usable HCAs of the node
    :param wanted: number of HCAs that the intent requires
    """
    if finding.status == PASS or good < wanted:
        return finding
    why = (
        f"{finding.why} This is a warning, because the node has {count_of(good, 'usable HCA')} and the intent"
        f" requires {wanted}: this HCA may belong to no fabric of the intent."
    )
    remedy = (
        f"If no fabric of the intent uses this HCA, waive this finding. Otherwise follow these steps. {finding.remedy}"
    )
    return dataclasses.replace(finding, status=WARN, why=why, remedy=remedy)


def _explain_too_few(intent: Intent, node: NodeHcas) -> tuple[str, str]:
    """Return the most likely cause why a node has too few HCAs, and its remedy, from the functions that the node
    reports.
    """
    bare = [
        hca
        for hca in node.hcas
        if hca.pci and hca.pci.device_class == "0207" and not hca.rdma_device and not hca.is_virtual
    ]
    if bare:
        driverless = [hca for hca in bare if hca.pci and not hca.pci.driver]
        names = describe_hcas(bare)
        if driverless:
            return (
                f"{_these(bare)} no driver: {names}."
                if len(driverless) == len(bare)
                else f"These HCAs have no driver or no RDMA device: {names}.",
                f"{vendors.load_driver(driverless)} Then run stage discover again.",
            )
        return (
            f"{_these(bare)} a driver but no RDMA device: {names}.",
            f"{vendors.load_rdma(bare)} Then run stage discover again.",
        )
    ethernet = _list_switched(intent, node)
    if ethernet:
        return (
            describe_set_to_ethernet(ethernet),
            describe_change_to_infiniband(ethernet, "Otherwise correct hcas_per_node of the fabrics in the intent."),
        )
    return (
        "The kernel shows no other InfiniBand HCA on the PCI bus: the card is not installed, not seated, or switched"
        " off.",
        (
            "Run lspci -nn on the node and look for the missing card. If it is not listed, seat or replace it. If the"
            " node needs fewer HCAs, correct hcas_per_node of the fabric. Then run stage discover again."
        ),
    )


def _list_switched(intent: Intent, node: NodeHcas) -> list[Hca]:
    """Return the HCAs that are set to Ethernet and may be those that an InfiniBand fabric lacks.

    NICs that an Ethernet fabric of the intent needs, and models without InfiniBand, are left out.
    """
    needed: set[str] = set()
    for fabric in intent.fabrics:
        if find_traits(fabric).members and not is_infiniband(fabric):
            chosen = find_candidates(fabric, node)
            # of more than it needs, one may have been switched
            needed.update(hca.name for hca in chosen if len(chosen) <= fabric.select.hcas_per_node)
    return [
        hca
        for hca in list_set_to_ethernet(node)
        if hca.name not in needed and not (hca.pci and (hca.pci.vendor, hca.pci.device) in _ETHERNET_ONLY)
    ]


def list_set_to_ethernet(node: NodeHcas) -> list[Hca]:
    return [
        hca
        for hca in node.hcas
        if not hca.is_virtual and hca.ports and all(port.link_layer == "Ethernet" for port in hca.ports)
    ]


def describe_set_to_ethernet(hcas: typing.Sequence[Hca]) -> str:
    return f"{_these(hcas, ('is', 'are'))} set to Ethernet: {describe_hcas(hcas)}."


def _these(hcas: typing.Sequence[Hca], verbs: tuple[str, str] = ("has", "have")) -> str:
    """Return the subject of a sentence on HCAs with its verb, such as ``This HCA has`` or ``These HCAs have``.

    :param verbs: singular and plural of the verb
    """
    return f"This HCA {verbs[0]}" if len(hcas) == 1 else f"These HCAs {verbs[1]}"


def describe_change_to_infiniband(hcas: typing.Sequence[Hca], otherwise: str) -> str:
    """Return the remedy for HCAs that are set to Ethernet.

    :param otherwise: instruction for the case that no fabric uses these HCAs
    """
    able = [hca for hca in hcas if hca.pci and vendors.find_vendor(hca) is vendors.NVIDIA]
    if not able:
        return (
            "The HCAs that are set to Ethernet do not support InfiniBand. Look for InfiniBand HCAs with lspci -nn on"
            " the node, and install or seat the missing card. Then run stage discover again."
        )
    if len(able) == 1 and able[0].pci:
        return (
            "If a fabric of the intent uses this HCA, set its link type to InfiniBand on the node (mstconfig -d"
            f" {able[0].pci.address} set LINK_TYPE_P1=1), then drain and reboot the node. {otherwise} Then run stage"
            " discover again."
        )
    return (
        "If a fabric of the intent uses these HCAs, set the link type of each of them to InfiniBand on the node"
        f" (mstconfig -d ADDRESS set LINK_TYPE_P1=1), then drain and reboot the node. {otherwise} Then run stage"
        " discover again."
    )
