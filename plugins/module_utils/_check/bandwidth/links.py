# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, HCAs: does each network link and each PCIe link run as fast as both of its ends allow. This check
needs no measurement and no other node.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.line_rates import HcaRates, LineRates, Pcie
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import ObservedHcas
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, ok

_CHECK, _EXPECTED = "bandwidth.link", "link and PCIe as fast as both ends of each can be"
#: of a rate, by which numbers of one link may differ: 400 and 399.9
_ROUNDING = 1.001
#: the worst one counts
_ORDER: tuple[Status, ...] = (PASS, WARN, UNKNOWN, FAIL)


class _Said(typing.NamedTuple):
    status: Status
    why: str
    remedy: str


def check_links(
    fabric: Fabric,
    nodes: typing.Sequence[str],
    rates: LineRates,
    why: str,
    hcas: typing.Mapping[str, ObservedHcas],
    by_link: bool,
) -> list[Finding]:
    """Return a finding for each HCA of the fabric, and for each node whose HCAs are unknown. The list is empty for a
    fabric that has no HCAs of its own (the pod network).

    :param nodes: names of the nodes that must take part
    :param rates: rates of the links of the fabric's HCAs, by node and PCI address
    :param why: reason why the HCAs of the fabric are unknown; empty if they are known
    :param hcas: answer of node_info of each node
    :param by_link: whether the floor of the pairs is computed from these links. A missing rate is then unknown instead
        of a warning
    """
    if not find_traits(fabric).members:
        return []
    findings = [_check_hca(fabric, node, found, by_link) for (node, _address), found in rates.items()]
    seen = {node for node, _address in rates}
    for node in nodes:
        if node not in seen:
            error = (hcas[node].error if node in hcas else "it was not asked") or why or "it shows none"
            text = f"Which HCA of the node is on the fabric is not known: {error}."
            remedy = f"See the stages discover and fabric for {node}."
            findings.append(
                Finding(
                    _CHECK, f"{fabric.name} {node}", UNKNOWN if by_link else WARN, "no HCA", _EXPECTED, text, remedy
                )
            )
    return findings


def _check_hca(fabric: Fabric, node: str, found: HcaRates, by_link: bool) -> Finding:
    subject = f"{fabric.name} {node} {found.hca}"
    if found.pcie is None and found.now is None:
        return ok(_CHECK, subject, "a device of a hypervisor, which has no link of its own", _EXPECTED)
    words = [f"{found.now:g} Gb/s" if found.now is not None else "link rate not known"]
    words += [f"PCIe {found.pcie.trained}"] if found.pcie is not None else []
    could = [f"{found.could:g} Gb/s ({found.why})" if found.could is not None else "link: not known"]
    could += [f"PCIe {found.pcie.text}"] if found.pcie is not None and found.pcie.text else []
    said = [
        *_check_port_rate(fabric, found, by_link),
        *(_check_pcie_link(fabric, found, found.pcie, by_link) if found.pcie is not None else ()),
    ]
    if not said:
        return ok(_CHECK, subject, ", ".join(words), ", ".join(could))
    status = max((one.status for one in said), key=_ORDER.index)
    return Finding(
        _CHECK,
        subject,
        status,
        ", ".join(words),
        ", ".join(could),
        " ".join(one.why for one in said),
        " ".join(one.remedy for one in said),
    )


def _check_port_rate(fabric: Fabric, found: HcaRates, by_link: bool) -> typing.Iterator[_Said]:
    unknown: Status = UNKNOWN if by_link else WARN
    if found.could is None:
        remedy = "Write the rate that the links of this fabric shall have into line_rate.expected_gbps."
        if is_infiniband(fabric):
            remedy += " Or see fabric.capability for why iblinkinfo does not tell it."
        yield _Said(unknown, f"What the link can do is not known: {found.why}.", remedy)
    elif found.now is None:
        yield _Said(
            unknown,
            "The rate of the link is not known: its interface is down or elsewhere.",
            "See ip link on the node, and discover.port.",
        )
    elif found.now < found.could:
        why = (
            f"The link runs at {found.now:g} Gb/s and can do {found.could:g} ({found.why}): it trained down, or one of"
            " its ports is set to less."
        )
        tool = "ibportstate" if is_infiniband(fabric) else "ethtool"
        remedy = (
            f"Seat or replace the cable or transceiver, and see the speeds enabled at both ports ({tool}, and the"
            " switch's own tool)."
        )
        if found.why.startswith("other ports"):
            remedy += " If some links are meant to be slower, declare a fabric for each rate."
        yield _Said(FAIL, why, remedy)
    elif (
        fabric.line_rate.expected_gbps is not None
        and found.now * found.told_share > found.could * _ROUNDING
        and not fabric.line_rate.reason
    ):
        why = (
            f"The link runs at {found.now:g} Gb/s, and the intent expects {found.could:g} of each: the floor is too"
            " low, and no reason is given."
        )
        yield _Said(
            unknown,
            why,
            "Correct line_rate.expected_gbps, declare a fabric for each rate, or say in line_rate.reason why it is"
            " less.",
        )


def _check_pcie_link(fabric: Fabric, found: HcaRates, pcie: Pcie, by_link: bool) -> typing.Iterator[_Said]:
    if pcie.could is None:
        return
    if pcie.trained_down and pcie.slot_known:
        why = f"The PCIe link runs at {pcie.trained}, and card and slot can do {pcie.text}: it trained down."
        yield _Said(
            FAIL,
            why,
            "Seat the card or its riser anew, and see the slot's settings in the BIOS; if it stays, replace the card.",
        )
    elif pcie.trained_down:
        why = (
            f"The PCIe link runs at {pcie.trained} and the card can do {pcie.text}; what the slot can do is not known."
        )
        yield _Said(
            UNKNOWN if by_link else WARN,
            why,
            "Compare with the slot (lspci -vv of the port above the card, as root), and seat the card anew.",
        )
    if pcie.small_packets:
        why = "MaxPayload is set below what card and slot can do, so headers take more of the PCIe link."
        yield _Said(WARN, why, "Set Max Payload Size in the BIOS to auto or 256, or boot with pci=pcie_bus_safe.")
    enough = fabric.line_rate.fraction * (found.could or 0.0)
    if pcie.slot_known and pcie.card is not None and pcie.could < enough and pcie.could < pcie.card:
        why = (
            f"The slot is smaller than the card: it carries {pcie.could:.4g} Gb/s of data, and the link could carry"
            f" {found.could:g}."
        )
        yield _Said(
            WARN,
            why,
            "Move the card to a slot that offers what the card can, if the figures shall reach the link's rate.",
        )
    elif pcie.could < enough and not pcie.trained_down:
        why = (
            f"By sysfs the card itself can do {pcie.text}, which carries {pcie.could:.4g} Gb/s of data, and the link"
            f" could carry {found.could:g}. Few cards are made so; else what the card says of itself is wrong, and the"
            " floor is too low."
        )
        yield _Said(
            WARN,
            why,
            "Compare LnkCap in lspci -vv, as root, with the datasheet of the board. If the board can do more, replace"
            " the card.",
        )
