# SPDX-License-Identifier: GPL-3.0-or-later

"""Functions that select the HCAs of a node, and describe them for findings."""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import find_candidates
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.node.hca import Hca, Netdev, NodeHcas

#: of a list that a node gives, in the words of a finding; and of its HCAs, of which nodes have 16 at most
MOST, MOST_HCAS = 8, 16


def list_others(node: NodeHcas, chosen: typing.Iterable[Hca]) -> list[Hca]:
    """Return the functions of a node that are not among the chosen functions.

    They are compared by identity, since a comparison by value would take quadratic time.

    :param chosen: functions of the same node
    """
    known = set(map(id, chosen))
    return [hca for hca in node.hcas if id(hca) not in known]


def list_fitting(fabrics: typing.Sequence[Fabric], node: NodeHcas) -> list[Hca]:
    """Return the physical HCAs of a node that could be members of at least one of the fabrics, each once."""
    chosen = {id(hca) for fabric in fabrics for hca in find_candidates(fabric, node)}
    return [hca for hca in node.hcas if not hca.is_virtual and id(hca) in chosen]


def list_infiniband_hcas(nodes: typing.Mapping[str, NodeHcas]) -> typing.Iterator[tuple[str, Hca]]:
    """Yield the physical InfiniBand HCAs, each with the name of its node."""
    for name, node in nodes.items():
        for hca in node.hcas:
            if not hca.is_virtual and any(port.link_layer == "InfiniBand" for port in hca.ports):
                yield name, hca


def describe_address(hca: Hca) -> str:
    return hca.pci.address if hca.pci else hca.name


def describe_hcas(hcas: typing.Sequence[Hca]) -> str:
    return join_first([describe(hca) for hca in hcas], MOST_HCAS)


def describe_states(netdevs: typing.Sequence[Netdev]) -> str:
    """Return network interfaces with their states as text, such as ``ib0 up``."""
    return join_first([f"{netdev.name} {netdev.state or 'state not read'}" for netdev in netdevs], MOST)


def describe(hca: Hca) -> str:
    """Return the name and the PCI address of an HCA as text, such as ``mlx5_0 (0000:3c:00.0)``."""
    return f"{hca.name} ({hca.pci.address})" if hca.pci and hca.pci.address != hca.name else hca.name
