# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the node to which an InfiniBand node description belongs. rdma-ndd writes it as ``<host> <device>``, usually
without the domain of the host, whereas the inventory usually contains the domain.
"""

from __future__ import annotations

import ipaddress
import typing

from ..._model.node.hca import NodeHcas


def collect_owners(nodes: typing.Mapping[str, NodeHcas]) -> dict[str, tuple[str, ...]]:
    """Return the names of the nodes by the short name of their host, in lower case. The short name is that of the name
    in the inventory, and the first word in the node descriptions of the node's own HCAs.

    A first word that HCAs of several nodes have in their descriptions is ignored: it is the name of a model, such as
    ``MT4129``, which rdma-ndd has not replaced yet. A name in the inventory that is an IP address is ignored too.

    :param nodes: HCAs of each node
    """
    borne: dict[str, set[str]] = {}
    for name, node in nodes.items():
        for hca in node.hcas:
            if hca.node_description:
                borne.setdefault(host_of(hca.node_description), set()).add(name)
    result = {host: set(names) for host, names in borne.items() if host and len(names) == 1}
    for name in nodes:
        if not _is_address(name):
            result.setdefault(host_of(name), set()).add(name)
    return {host: tuple(sorted(names)) for host, names in result.items()}


def host_of(text: str) -> str:
    """Return the short name of the host at the start of a node description or of a name in the inventory, in lower
    case. Return an empty string if the text is empty.

    :param text: node description or name in the inventory
    """
    return next(iter(text.split()), "").partition(".")[0].lower()


def _is_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
