# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose host a node description of a fabric names. rdma-ndd writes ``<host> <device>``, the host mostly without its
domain; an inventory mostly has it."""

from __future__ import annotations

import ipaddress
import typing

from ..._model.node.hca import NodeHcas


def collect_owners(nodes: typing.Mapping[str, NodeHcas]) -> dict[str, tuple[str, ...]]:
    """Return the nodes by the short names of their hosts, in lower case: the name in the inventory, and the one that a
    node's own HCAs bear.

    The first word that HCAs of several nodes bear is none: ``MT4129``, before rdma-ndd wrote another.
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
    """Return the short name of the host that a node description or an inventory names first; empty where there is
    none."""
    return next(iter(text.split()), "").partition(".")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
