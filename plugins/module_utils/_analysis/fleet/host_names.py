# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the node to which an InfiniBand node description belongs. rdma-ndd writes it as ``<host> <device>``, usually
without the domain of the host, whereas the inventory usually contains the domain.
"""

from __future__ import annotations

import ipaddress
import typing

from ..._model.node.hca import NodeHcas


def collect_owners(nodes: typing.Mapping[str, NodeHcas]) -> dict[str, tuple[str, ...]]:
    """Return the nodes by the short name of their host, in lower case: by the name in the inventory, and by the name in
    the node descriptions of the node's own HCAs.

    If HCAs of several nodes have the same first word in their descriptions, it is not a host name, such as ``MT4129``
    before rdma-ndd changes it.
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
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
