# SPDX-License-Identifier: GPL-3.0-or-later

"""Find nodes whose cables are swapped between two InfiniBand fabrics. Check id: ``fabric.hcas``.

The number of HCAs on each fabric is right on such a node. Only a comparison with nodes of the same model shows that the
HCA in a slot is on another fabric than usual.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.layouts import address_of, group_families
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.run.findings import FAIL, WARN, Finding
from .membership import MOST_HCAS

#: nodes with the usual fabric at an address, for each node with another one, from which on the latter are wrong. With
#: fewer, the nodes may be cabled in two ways on purpose
_CLEAR = 2


class _Place(typing.NamedTuple):
    hca: str
    fabric: str


def check_crossed_cables(
    fabrics: typing.Sequence[Fabric], memberships: typing.Mapping[str, Membership]
) -> list[Finding]:
    """Return a finding for each node whose HCAs are on other fabrics than the HCAs at the same PCI addresses of most
    nodes of the same model. The status is ``fail`` if most nodes are clear, else ``warn``. Nodes with a wrong number of
    HCAs on a fabric are left out, since they have a finding of their own.

    :param fabrics: all fabrics of the intent
    :param memberships: HCAs that belong to each fabric of the intent, by the name of the fabric
    """
    places = _map_addresses([fabric for fabric in fabrics if is_infiniband(fabric)], memberships)
    findings = []
    for nodes in group_families({name: frozenset(of_node) for name, of_node in places.items()}).values():
        counts: dict[str, collections.Counter[str]] = {}
        for name in nodes:
            for address, place in places[name].items():
                counts.setdefault(address, collections.Counter())[place.fabric] += 1
        usual = {address: max(count, key=count.__getitem__) for address, count in counts.items()}
        for name in nodes:
            wrong = {
                address: place for address, place in sorted(places[name].items()) if place.fabric != usual[address]
            }
            if wrong:
                most = min(counts[address][usual[address]] for address in wrong)
                clear = all(
                    counts[address][usual[address]]
                    >= _CLEAR * (sum(counts[address].values()) - counts[address][usual[address]])
                    for address in wrong
                )
                findings.append(_report(name, wrong, usual, f"{most} of {len(nodes)} nodes", clear))
    return findings


def _map_addresses(
    fabrics: typing.Sequence[Fabric], memberships: typing.Mapping[str, Membership]
) -> dict[str, dict[str, _Place]]:
    """Return the fabric of the HCA at each PCI address, by node. HCAs without an address or on several fabrics are left
    out. The result is empty unless at least two fabrics are identified.

    :param fabrics: InfiniBand fabrics
    """
    known = [fabric for fabric in fabrics if memberships[fabric.name].resolved]
    result: dict[str, dict[str, _Place]] = {}
    for name in memberships[known[0].name].members if len(known) > 1 else ():
        its = {fabric.name: memberships[fabric.name].members.get(name, ()) for fabric in known}
        if any(len(its[fabric.name]) != fabric.select.hcas_per_node for fabric in known):
            continue
        found: dict[str, list[_Place]] = {}
        for fabric, members in its.items():
            for member in members:
                found.setdefault(address_of(member.hca), []).append(_Place(member.hca.name, fabric))
        result[name] = {address: of[0] for address, of in found.items() if address and len(of) == 1}
    return result


def _report(
    name: str, wrong: typing.Mapping[str, _Place], usual: typing.Mapping[str, str], most: str, clear: bool
) -> Finding:
    """Return the finding on a node with HCAs on unusual fabrics.

    :param wrong: HCAs on unusual fabrics, by PCI address
    :param usual: fabric of most nodes at each PCI address
    :param most: nodes with the usual fabrics, as text
    :param clear: whether clearly most nodes have them
    """
    seen = join_first([f"{place.hca} ({address}) on {place.fabric}" for address, place in wrong.items()], MOST_HCAS)
    wanted = join_first([f"{place.hca} on {usual[address]}" for address, place in wrong.items()], MOST_HCAS)
    why = (
        "The cables of these HCAs are connected to another fabric than those of the HCAs at the same PCI addresses"
        " of the other nodes."
        + (" The cables are swapped." if clear else " The cables are swapped on some of the nodes.")
        + " The number of HCAs on each fabric is right, but a GPU sends through an HCA behind another PCIe"
        " switch."
    )
    devices = " and ".join(place.hca for place in list(wrong.values())[:2])
    remedy = (
        f"Drain {name}, and exchange the cables of {devices}."
        if len(wrong) == 2
        else f"Drain {name}, and connect the cable of each of these HCAs to a switch of the fabric under 'expected'."
    )
    return Finding(
        "fabric.hcas",
        f"{name} cables",
        FAIL if clear else WARN,
        seen,
        f"{wanted}, as on {most} of this model",
        why,
        f"If {name} is cabled like this on purpose, waive this finding. Otherwise follow these steps."
        f" {remedy} Then run stage fabric again.",
    )
