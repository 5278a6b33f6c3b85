# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, links of the HCAs: each network link and each PCIe link must run as fast as both of its ends allow.
This check needs no measurement and no other node.
"""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.pcie_rates import Pcie
from ..._analysis.fleet.line_rates import HcaRates, LineRates
from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import ObservedHcas
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, build_pass
from .causes import name_check_of_fabric, name_check_of_hcas

_CHECK, _EXPECTED = "bandwidth.link", "network link and PCIe link at the highest rate that both ends support"
#: of a rate, by which numbers of one link may differ: 400 and 399.9
_ROUNDING = 1.001
#: the worst one counts
_ORDER: tuple[Status, ...] = (PASS, WARN, UNKNOWN, FAIL)


class _Said(typing.NamedTuple):
    """The judgment of one property of a link, from which its finding is built.

    :ivar status: status of the finding
    :ivar why: cause, as a sentence
    :ivar remedy: instruction that resolves the cause
    :ivar measured: text that is added to the measured value; empty for none
    :ivar expected: text that is added to the expected value; empty for none
    """

    status: Status
    why: str
    remedy: str
    measured: str = ""
    expected: str = ""


def check_links(
    fabric: Fabric,
    nodes: typing.Sequence[str],
    rates: LineRates,
    why: str,
    hcas: typing.Mapping[str, ObservedHcas],
    by_link: bool,
) -> list[Finding]:
    """Check for each HCA of the fabric that the rate of its link and of its PCIe link is known and not below its
    maximum, and report each node whose HCAs are unknown. The list is empty for a fabric that has no HCAs of its own
    (the pod network).

    :param nodes: names of the nodes that must take part
    :param rates: rates of the links of the fabric's HCAs, by node and PCI address
    :param why: reason why the HCAs of the fabric are unknown; empty if they are known
    :param hcas: HCAs that node_info read, or the error, by node
    :param by_link: whether the lowest acceptable bandwidth of the pairs is computed from these links. A missing rate is
        then unknown instead of a warning
    """
    if not find_traits(fabric).members:
        return []
    findings = [
        _check_hca(fabric, node, one, by_link)
        for (node, _address), found in rates.items()
        # a bond sends through all of its functions, whichever has the RDMA device
        for one in (found, *found.parts)
    ]
    seen = {node for node, _address in rates}
    for node in nodes:
        if node not in seen:
            text, remedy = _explain_no_hca(fabric, node, why, hcas.get(node))
            findings.append(
                Finding(
                    _CHECK,
                    f"{fabric.name} {node}",
                    UNKNOWN if by_link else WARN,
                    "network link and PCIe link not checked, because no HCA is known",
                    _EXPECTED,
                    text,
                    remedy,
                )
            )
    return findings


def _explain_no_hca(fabric: Fabric, node: str, why: str, hcas: typing.Optional[ObservedHcas]) -> tuple[str, str]:
    """Return cause and remedy of a node without a known HCA on the fabric.

    :param why: reason why the HCAs of the fabric are unknown; empty if they are known
    :param hcas: HCAs of the node, or the error; None if node_info did not run on the node
    """
    again = f"then run stages {'fabric' if is_infiniband(fabric) else 'discover'} and bandwidth again."
    if hcas is None:
        return (
            f"The module node_info did not query {node}, so its HCAs are unknown.",
            f"Follow the remedy of the finding discover.node of {node}, then run stages discover, fabric and bandwidth"
            " again.",
        )
    if hcas.error:
        return (
            f"The module node_info could not read the HCAs of {node}: {format_clause(hcas.error)}.",
            f"Follow the remedy of the finding discover.node of {node}, then run stages discover, fabric and bandwidth"
            " again.",
        )
    if why:
        return (
            f"The HCAs of the fabric {fabric.name} are unknown: {format_clause(why)}.",
            f"Follow the remedy of the finding {name_check_of_fabric(fabric)}, {again}",
        )
    return (
        f"The data of {node} have no HCA of the fabric {fabric.name}, so it is unknown which link to check.",
        f"Follow the remedy of the finding {name_check_of_hcas(fabric)} of {node}, {again}",
    )


def _check_hca(fabric: Fabric, node: str, found: HcaRates, by_link: bool) -> Finding:
    subject = f"{fabric.name} {node} {found.hca}"
    if found.pcie is None and found.now is None:
        return build_pass(_CHECK, subject, "virtual device of a hypervisor, without a link of its own", _EXPECTED)
    words = [f"{found.now:g} Gb/s" if found.now is not None else "link rate unknown"]
    words += [f"PCIe {_describe_trained(found.pcie)}"] if found.pcie is not None else []
    could = [f"{found.could:g} Gb/s ({found.why})" if found.could is not None else "a known highest rate"]
    could += [f"PCIe {found.pcie.text}"] if found.pcie is not None and found.pcie.text else []
    of_port = list(_check_port_rate(fabric, node, found, by_link))
    of_pcie = list(_check_pcie_link(fabric, node, found, found.pcie, by_link)) if found.pcie is not None else []
    said = [*of_port, *of_pcie]
    if not said:
        return build_pass(_CHECK, subject, ", ".join(words), ", ".join(could))
    status = max((one.status for one in said), key=_ORDER.index)
    words += [one.measured for one in said if one.measured]
    could += [one.expected for one in said if one.expected]
    return Finding(
        _CHECK,
        subject,
        status,
        ", ".join(words),
        ", ".join(could),
        " ".join(one.why for one in said),
        f"Network link: {of_port[0].remedy} PCIe link: {' '.join(one.remedy for one in of_pcie)}"
        if of_port and of_pcie
        else " ".join(one.remedy for one in said),
    )


def _describe_trained(pcie: Pcie) -> str:
    """Return the speed and the width of a PCIe link as text, with the size of its packets if the expected text has one
    as well.
    """
    if pcie.now is None or not pcie.text or "packets" in pcie.trained:
        return pcie.trained
    size = f"of {pcie.payload} bytes" if pcie.payload is not None else "of unknown size"
    return f"{pcie.trained} with packets {size}"


def _check_port_rate(fabric: Fabric, node: str, found: HcaRates, by_link: bool) -> typing.Iterator[_Said]:
    unknown: Status = UNKNOWN if by_link else WARN
    if found.could is None:
        remedy = (
            "Set line_rate.expected_gbps of the fabric to the rate that its links must have, then run stage bandwidth"
            " again."
        )
        if is_infiniband(fabric):
            remedy = (
                "Run stage fabric, and follow the remedies of its findings. If it has none, set"
                " line_rate.expected_gbps of the fabric to the rate that its links must have. Then run stage"
                " bandwidth again."
            )
        why = f"The rate that both ends of the link support is unknown: {format_clause(found.why)}."
        yield _Said(unknown, why, remedy, "highest rate of both ends unknown")
    elif found.now is None:
        yield _Said(
            unknown,
            "The rate of the link was not read: an interface that is down has no rate, and an interface in"
            " another network namespace is not visible.",
            f"Run ip link on {node}. If it lists the interface of {found.hca} as DOWN, run ip link set INTERFACE"
            " up. If it does not list the interface, a pod or a network namespace has it (lsns -t net): end this"
            " pod. Then run stages discover and bandwidth again.",
        )
    elif found.now < found.could:
        why = (
            "The link runs below the rate that both of its ends support. The cause is a bad cable or"
            " transceiver, or a port that is set to a lower speed."
        )
        tool = (
            "run ibportstate LID PORT query with the LID and the port of each end (iblinkinfo lists them)"
            if is_infiniband(fabric)
            else f"run ethtool INTERFACE on {node}, and show interfaces status on the switch"
        )
        enable = (
            " (ibportstate LID PORT espeed 31, then ibportstate LID PORT reset for the port of the switch, while no job"
            " uses the link)"
            if is_infiniband(fabric)
            else " (ethtool -s INTERFACE autoneg on on the node)"
        )
        remedy = (
            f"Read the speeds that are enabled at both ports: {tool}. If a speed is disabled, enable it{enable}."
            f" Otherwise reseat the cable or transceiver of {found.hca} on {node}. If the rate stays low, replace"
            " it. Then run stage bandwidth again."
        )
        if found.why.startswith("other ports"):
            remedy += " If some links are slower by design, declare a fabric for each rate."
        yield _Said(FAIL, why, remedy)
    elif found.slower_than:
        why = (
            f"The port at the other end of the cable offers only {found.could:g} Gb/s, but {found.slower_than}. The"
            " port of the switch is set to a lower speed, or it is built for one."
        )
        yield _Said(
            unknown,
            why,
            f"On the switch, compare the speed of the port of {node} (show interfaces status) with the ports of"
            " the other nodes. If it is set to a lower speed, set the full speed. If the port is built for the"
            " lower speed, move the cable to a port with the full speed, or waive this finding with the reason."
            " Then run stages discover and bandwidth again.",
            expected=found.slower_than,
        )
    elif found.card is not None:
        yield _Said(
            WARN,
            f"The card supports {found.card:g} Gb/s, and the port at the other end of the cable offers only"
            f" {found.could:g} Gb/s. The floors of the pairs come from the lower rate, so they do not show this loss.",
            "On the switch, read the speeds that the port of this node supports (show interfaces status). If it is set"
            " to a lower speed or split, set the full speed. If the fabric is built for this rate, set"
            " line_rate.expected_gbps of the fabric to it. Then run stages discover and bandwidth again.",
            f"card for {found.card:g} Gb/s",
            f"switch port for the {found.card:g} Gb/s of the card",
        )
    elif (
        fabric.line_rate.expected_gbps is not None
        and found.now * found.told_share > found.could * _ROUNDING
        and not fabric.line_rate.reason
    ):
        why = (
            "The rate in line_rate.expected_gbps of the intent is below the rate of the link, and the intent gives no"
            " reason for it (line_rate.reason). The check bandwidth.floor then also accepts pairs that are slower than"
            " their links."
        )
        yield _Said(
            unknown,
            why,
            "Correct line_rate.expected_gbps, declare a fabric for each rate, or explain the lower rate in"
            " line_rate.reason. Then run stage bandwidth again.",
        )


def _check_pcie_link(fabric: Fabric, node: str, found: HcaRates, pcie: Pcie, by_link: bool) -> typing.Iterator[_Said]:
    if pcie.alone:
        yield _Said(
            WARN,
            f"This node alone reports this PCIe maximum for a card of its board: {pcie.alone}. The floors of other"
            " nodes do not use it.",
            f"As root, run lspci -vv on {node} and on another node with this board, and compare LnkCap of the"
            " cards with the datasheet of the board. If this card reports more than the datasheet, replace it."
            " If the other cards report less than the datasheet, reseat them. Then run stages discover and"
            " bandwidth again.",
            "PCIe maximum of the card reported by this node alone",
            "a PCIe maximum that a second node with this board confirms",
        )
    if pcie.could is None:
        return
    if pcie.trained_down and pcie.slot_known:
        why = (
            "The PCIe link runs below the rate that both the card and the slot support. A bad contact is the usual"
            " cause."
        )
        yield _Said(
            FAIL,
            why,
            f"Drain {node} and power it off. Reseat the card {found.hca} or its riser, and check the settings of"
            " the slot in the BIOS. If the link still runs below its rate, replace the card. Then run stages"
            " discover and bandwidth again.",
        )
    elif pcie.trained_down:
        why = "The card supports more than its PCIe link uses, and the rate that the slot supports is unknown."
        yield _Said(
            UNKNOWN if by_link else WARN,
            why,
            f"As root, run lspci -vv on {node}, and compare LnkCap of the PCIe port above the card with LnkSta of"
            " the card. If the port supports more, power off the node and reseat the card. Then run stages"
            " discover and bandwidth again.",
        )
    if pcie.small_packets:
        why = (
            "MaxPayload is set below the value that card and slot support, so packet headers use a larger share of the"
            " PCIe link."
        )
        remedy = (
            f"Set Max Payload Size in the BIOS of {node} to auto or 256, or add the kernel argument"
            " pci=pcie_bus_safe. Drain the node and reboot it. Then run stages discover and bandwidth again."
        )
        yield _Said(WARN, why, remedy)
    enough = fabric.line_rate.fraction * (found.could or 0.0)
    if pcie.slot_known and pcie.card is not None and pcie.could < enough and pcie.could < pcie.card:
        why = "The slot has fewer lanes or a lower speed than the card, so it limits the link."
        yield _Said(
            WARN,
            why,
            f"If this rate is intended, no action is required. Otherwise drain {node}, power it off, and move the"
            f" card {found.hca} to a slot that supports its full rate. Then run stages discover and bandwidth"
            " again.",
            f"slot for {pcie.could:.4g} Gb/s of data",
            f"slot for at least {enough:.4g} Gb/s of data",
        )
    elif pcie.could < enough and not pcie.trained_down:
        why = (
            f"The PCIe maximum that the card reports carries {pcie.could:.4g} Gb/s of data, which is too little for a"
            f" network link of {found.could or 0.0:g} Gb/s. Either the card is built this way, or it reports a wrong"
            " maximum. If it is wrong, the minimum of bandwidth.floor is too low, because it is computed from it."
        )
        yield _Said(
            WARN,
            why,
            f"As root, run lspci -vv on {node}, and compare LnkCap of the card with its datasheet. If they agree,"
            " waive this finding. If the datasheet shows more, replace the card, and run stages discover and"
            " bandwidth again.",
            f"PCIe maximum of the card {pcie.could:.4g} Gb/s of data",
            f"PCIe maximum of the card at least {enough:.4g} Gb/s of data",
        )
