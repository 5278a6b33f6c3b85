# SPDX-License-Identifier: GPL-3.0-or-later

"""Select cards by their serial numbers in the templates for NVIDIA's NIC configuration operator. Pure.

A template stays in the cluster. Without serial numbers, it would also select a card whose NicDevice the operator
creates after the run, such as that of a new node, and the operator would then drain and reboot that node.
"""

from __future__ import annotations

import typing

from .._model.base.text import join_first
from .._model.node.firmware import NicDevice, NicDevices, NicTemplate
from .._model.node.platform import ObservedPlatform

#: nodes that may claim one serial number; where more do, none of them has it
_MOST_CLAIMS = 16


class Card(typing.NamedTuple):
    """An HCA of a fabric for which the NIC configuration operator has a NicDevice.

    :ivar node: name of the node
    :ivar address: PCI address of the HCA
    :ivar nic: the NicDevice
    :ivar settled: whether the HCA is known to have its desired settings
    """

    node: str
    address: str
    nic: NicDevice
    settled: bool


def find_strangers(kind: str, group: typing.Sequence[Card], nics: NicDevices) -> list[NicDevice]:
    """Return the cards outside of a group that a template for the group would also match, because they have the same
    PCI device id and a PCI address of the group.

    :param kind: PCI device id of the group
    :param nics: all NicDevices of the cluster
    """
    ports: dict[str, set[str]] = {}
    for card in group:
        ports.setdefault(card.nic.name, set()).add(card.address)
    addresses = {card.address for card in group}
    return [
        nic
        for nic in nics.devices
        if nic.type in ("", kind) and addresses & {*nic.ports} and not {*nic.ports} <= ports.get(nic.name, set())
    ]


def leave_out(
    kind: str, group: typing.Sequence[Card], nics: NicDevices, strangers: typing.Sequence[NicDevice]
) -> dict[str, str]:
    """Return the cards of a group that no template may select: the reason by the name of the NicDevice. A card is
    excluded if a template with its serial number would also match other cards, or if its serial number is in doubt.
    Serial numbers should be unique. A false NicDevice may repeat those of many nodes; then only a few cards are
    excluded, and not those of all nodes.

    :param kind: PCI device id of the group
    :param nics: all NicDevices of the cluster
    :param strangers: cards outside of the group that have a PCI address of it. If empty, the reason is that not all
        cards are known
    """
    names = join_first(sorted(nic.name for nic in strangers), 5)
    why = (
        (
            f"the template would also match ports of {names}, which do not belong to the fabric or to this run. Create"
            " your own NicConfigurationTemplate for the HCAs"
        )
        if strangers
        else f"not all NicDevices are known ({nics.errors[0]}), so the template could also match other HCAs"
    )
    claims: dict[str, dict[str, str]] = {}
    for nic in nics.devices:
        if nic.serial and nic.type in ("", kind):
            claims.setdefault(nic.serial, {}).setdefault(nic.node, nic.name)
    doubted = _find_doubted({serial: set(nodes) for serial, nodes in claims.items()})
    strange = {(nic.node, nic.serial) for nic in strangers}
    found = {}
    for card in group:
        serial = card.nic.serial
        if not serial or (card.node, serial) in strange:
            found[card.nic.name] = why
        elif card.node in doubted or len(claims[serial]) > _MOST_CLAIMS:
            others = sorted(name for node, name in claims[serial].items() if node != card.node)
            claimed = f" ({join_first(others, 5)} and {card.nic.name})" if others else ""
            found[card.nic.name] = (
                f"NicDevices of several nodes have the same serial number{claimed}, so at least one of them is false."
                " Compare the serial numbers with the output of mstflint -d ADDRESS query full on these nodes, and"
                " delete the false NicDevice"
            )
    return found


def _find_doubted(claims: typing.Mapping[str, set[str]]) -> set[str]:
    """Return the nodes that may report serial numbers of cards of other nodes. If a node shares serial numbers with
    several nodes, only this node is in doubt. If two nodes share a serial number only with each other, both are in
    doubt. A serial number that more than 16 nodes report is ignored.

    :param claims: names of the nodes that report a serial number, by serial number
    """
    left = {serial: set(nodes) for serial, nodes in claims.items() if 1 < len(nodes) <= _MOST_CLAIMS}
    doubted: set[str] = set()
    while True:
        others: dict[str, set[str]] = {}
        for nodes in left.values():
            for node in nodes:
                others.setdefault(node, set()).update(nodes - {node})
        most = max(map(len, others.values()), default=0)
        if not most:
            return doubted
        worst = sorted(node for node in others if len(others[node]) == most)
        gone = set(worst if most == 1 else worst[:1])
        doubted |= gone
        left = {serial: nodes - gone for serial, nodes in left.items()}


def list_serials(
    kind: str,
    group: typing.Sequence[Card],
    nics: NicDevices,
    before: typing.Optional[NicTemplate],
    platforms: typing.Mapping[str, ObservedPlatform],
) -> list[str]:
    """Return the sorted serial numbers that a template for a group of cards selects.

    A card that the template selects already remains selected while its node cannot be read. Otherwise the operator
    would configure the node again when the node can be read. Such a node may be compromised, and its NicDevice may
    report the serial number of a card of another node. So the serial number remains only if the selector of the
    template contains it already, and if no NicDevice of another node reports it.

    :param kind: PCI device id of the group
    :param nics: all NicDevices of the cluster
    :param before: the template as it is in the cluster; None if it does not exist there
    :param platforms: observed platform of each node of the run
    """
    claims: dict[str, set[str]] = {}
    for nic in nics.devices:
        claims.setdefault(nic.serial, set()).add(nic.node)
    kept = {
        nic.serial
        for nic in (nics.devices if before is not None else ())
        if before is not None and nic.name in before.cards and nic.type in ("", kind) and not nic.dpu
        if nic.node in platforms and platforms[nic.node].value is None
        if nic.serial in before.serials and claims[nic.serial] == {nic.node}
    }
    return sorted({*(card.nic.serial for card in group), *kept} - {""})
