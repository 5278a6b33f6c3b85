# SPDX-License-Identifier: GPL-3.0-or-later

"""The limits of facts in bytes: for a node, for the cluster, and for all facts of one kind. The largest facts are left
out if all of them together exceed their limit.
"""

from __future__ import annotations

import typing

from .._model.boundary.form import describe_rejected
from .._model.run.fact_kinds import WHOLE_FABRIC, list_kinds_from
from .._parse.limits import MIB, MOST_ANSWER, MOST_FABRIC_ANSWER
from .files import json_of

#: bytes of a fact of one node. Nodes in observers answer to all kinds together with so many; 4,096 functions have some
#: 5 MiB. Kinds that grow with the fleet have what a node may answer
_MOST_OF_NODE, _MOST_OF_HCAS, _OF_FABRIC = 4 * MIB, 8 * MIB, frozenset(("pings", "ping_plan"))
#: bytes of a fact of the cluster, and for each node of the run, up to MOST_BYTES. What grows with the nodes is the
#: state of the SR-IOV operator, with 12 KiB for a node with eight virtual functions on each of eight rails, and the
#: logs of collectives, with 60 KiB for a node that took part in fifteen
MOST_OF_CLUSTER, MOST_FOR_A_NODE = 32 * MIB, 64 * 1024
#: bytes for each node of all facts of one kind, beside those that one of them may have. HCAs of a node with eight rails
#: and sixty-four virtual functions on each have 600 KiB
MOST_OF_EACH, MOST_OF_EACH_HCAS = 256 * 1024, 768 * 1024


def largest_part(value: typing.Any) -> str:
    """Return a sentence for a message: the name and the size in bytes of the largest entry of a dict or list. Return an
    empty string for any other value, and for an empty one.

    :param value: plain data of a fact
    """
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    size, name = max(((len(json_of(part)), str(name)) for name, part in parts), default=(0, ""))
    return (
        (
            f". Its largest part is {'entry ' if isinstance(value, list) else ''}{describe_rejected(name)} with"
            f" {size} bytes"
        )
        if size
        else ""
    )


def count_functions(value: typing.Any) -> int:
    """Return the number of PCI functions in a fact about HCAs. Return 0 for any other fact."""
    functions = value.get("hcas") if isinstance(value, dict) else None
    return len(functions) if isinstance(functions, list) else 0


def limit_of_node(kind: str) -> tuple[int, str]:
    """Return the limit in bytes of a fact of one node, and a text for messages that names the facts to which it
    applies."""
    if kind in list_kinds_from(WHOLE_FABRIC):
        return MOST_FABRIC_ANSWER, "a fabric"
    most = MOST_ANSWER if kind in _OF_FABRIC else _MOST_OF_HCAS if kind.startswith("hcas") else _MOST_OF_NODE
    return most, f"the fact {kind} of one node"


def choose_largest(sizes: typing.Mapping[str, int], most: int, what: str) -> dict[str, str]:
    """Return the facts that are left out so that the remaining ones together do not exceed a limit: the largest ones,
    by name, each with the reason.

    :param sizes: size of each fact in bytes, by name
    :param most: limit in bytes of all facts together
    :param what: the facts and their number, for the reason
    """
    total = left = sum(sizes.values())
    chosen: dict[str, str] = {}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if left <= most:
            break
        left -= sizes[name]
        chosen[name] = (
            f"{what} have {total} bytes; the limit is {most} for all of them together, and this fact is one of the"
            f" largest with {sizes[name]} bytes"
        )
    return chosen
