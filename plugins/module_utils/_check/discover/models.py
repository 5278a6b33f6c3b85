# SPDX-License-Identifier: GPL-3.0-or-later

"""Find slower HCAs of another model than those at the same PCI address of most nodes. Check id: ``discover.models``.

Port, cable and PCIe link of such an HCA agree with each other, so only the comparison with other nodes shows it.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.layouts import group_families
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_traits
from ..._model.node.hca import Hca, NodeHcas
from ..._model.run.findings import UNKNOWN, WARN, Finding
from .hcas import list_fitting

#: nodes that are named
_NAMED = 4
#: nodes with a faster model at the address, from which on the slower model is the exception
_CLEAR = 2
_HARM = (
    "A collective runs at the speed of its slowest HCA, and all later stages expect only the lower rate of this HCA."
)


class _Card(typing.NamedTuple):
    """An HCA at a PCI address: its name, its model, as text, and the rate in Gb/s that it supports, as far as known."""

    name: str
    model: str
    gbps: float


class _Odd(typing.NamedTuple):
    """A slower HCA of another model: the HCA, the address, the HCA of a node with the faster model, those nodes, and
    whether they are clearly the usual ones.
    """

    card: _Card
    address: str
    usual: _Card
    nodes: tuple[str, ...]
    clear: bool


def check_models(intent: Intent, nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Return a finding for each HCA of a fabric that is slower and of another model than the HCAs at its PCI address on
    as many or more nodes. Nodes are compared if they have their HCAs at the same PCI addresses.

    The status is ``unknown`` if two nodes have the faster model, and another HCA of the node has the usual model:
    nodes are not bought with one slower card among several. Else it is ``warn``, because the node may be of another
    delivery.

    :param nodes: HCAs of each node that could be read
    """
    fabrics = [fabric for fabric in intent.fabrics if find_traits(fabric).members]
    cards = {
        name: {hca.pci.address: card for hca in list_fitting(fabrics, node) if hca.pci for card in _describe_card(hca)}
        for name, node in nodes.items()
    }
    findings = []
    for group in group_families({name: frozenset(of_node) for name, of_node in cards.items()}).values():
        at: dict[str, dict[str, _Card]] = {}
        for name in group:
            for address, card in cards[name].items():
                at.setdefault(address, {})[name] = card
        # most fleets have one model at each address
        mixed = {address for address, found in at.items() if len({card[1:] for card in found.values()}) > 1}
        for name in group if mixed else ():
            odd = [
                found
                for address in sorted(mixed & set(cards[name]))
                for found in _find_odd(cards[name][address], address, at[address])
            ]
            alone = len(odd) < len(cards[name])
            findings += [_report(name, found, len(group), alone) for found in odd]
    return findings


def _describe_card(hca: Hca) -> typing.Iterator[_Card]:
    """Yield the model and the rate of an HCA; nothing for an HCA whose rate is unknown, as on a port that is down."""
    rates = [netdev.supported_gbps for netdev in hca.netdevs if netdev.supported_gbps]
    rates = rates or [port.rate_gbps for port in hca.ports if port.rate_gbps and port.state == "ACTIVE"]
    rates = rates or [netdev.speed_gbps for netdev in hca.netdevs if netdev.speed_gbps]
    if hca.pci is not None and rates:
        yield _Card(hca.name, f"{hca.pci.vendor}:{hca.pci.device} {hca.board or 'PSID unknown'}", max(rates))


def _find_odd(card: _Card, address: str, found: typing.Mapping[str, _Card]) -> typing.Iterator[_Odd]:
    """Yield the HCA of a node if it is slower and of another model than at the same address of as many other nodes.

    :param found: HCAs at this address, by node
    """
    faster = {name: other for name, other in found.items() if other.gbps > card.gbps and other.model != card.model}
    alike = sum(other.model == card.model for other in found.values())
    if faster and len(faster) >= alike:
        clear = len(faster) >= _CLEAR and len(faster) > alike
        yield _Odd(card, address, min(faster.values(), key=lambda other: other.gbps), tuple(faster), clear)


def _report(name: str, odd: _Odd, compared: int, alone: bool) -> Finding:
    """Return the finding on a slower HCA of another model.

    :param compared: number of nodes with HCAs at the same addresses
    :param alone: whether the node has other HCAs of the usual model
    """
    where = f"{odd.card.name} ({odd.address})"
    why = (
        f"{len(odd.nodes)} of {count_of(compared, 'node')} ({join_first(odd.nodes, _NAMED)}) have a faster model at"
        f" {odd.address}. {_HARM}"
        + (
            " The other HCAs of this node are of the same model as on the other nodes, so this HCA may be a"
            " wrong spare part."
            if alone
            else ""
        )
    )
    remedy = (
        f"Run lspci -s {odd.address} -vv on {name} and compare the part number of the card with that of the other"
        " nodes. If the card is a wrong part, replace it. If it is the same part, reseat or replace its cable, and"
        " check the speed of its switch port. If the difference is intended, waive this finding with the reason, or"
        " describe a fabric of the intent for each rate. Then run stage discover again."
    )
    return Finding(
        "discover.models",
        f"{name} {odd.card.name}",
        UNKNOWN if odd.clear and alone else WARN,
        f"{where}: {odd.card.model}, {odd.card.gbps:g} Gb/s",
        f"{odd.usual.model}, {odd.usual.gbps:g} Gb/s, as on comparable nodes",
        why,
        remedy,
    )
