# SPDX-License-Identifier: GPL-3.0-or-later

"""The differences between an existing intent and a proposal."""

from __future__ import annotations

import typing

from ..._model.base.load import to_data
from ..._model.intent.proposal import Entry, Proposal, Section, Sections, Value, make_data

#: what has many right values
_FREE = ("name", "intent_name", "resource_name", "range", "wait_seconds")


def list_differences(proposal: Proposal, fabrics: typing.Any, cluster: typing.Any) -> tuple[str, ...]:
    """Return the differences between an existing intent and the proposal, one line each.

    Fabrics are compared by their position in the list. Not compared are the names of fabrics and of the intent,
    resource names, address ranges, ``wait_seconds``, values that the proposal leaves to the user, and keys that the
    proposal does not contain.

    :param fabrics: value of ``rdma_fabrics``; None if not set
    :param cluster: value of ``rdma_cluster``; None if not set
    """
    lines: list[str] = []
    there = {"rdma_fabrics": to_data(fabrics), "rdma_cluster": to_data(cluster)}
    if isinstance(fabrics, (list, tuple)) and len(fabrics) != len(proposal.fabrics.items):
        lines.append(f"rdma_fabrics: {len(fabrics)} fabrics; proposed are {len(proposal.fabrics.items)}")
    _collect_differences(proposal.variables, there, "", lines)
    return tuple(lines)


def _collect_differences(entry: Entry, there: typing.Any, path: str, lines: list[str]) -> None:
    if there is None:
        return
    if isinstance(entry, Section) and isinstance(there, dict):
        for key, item in entry.entries:
            if key not in _FREE:
                _collect_differences(item, there.get(key), f"{path}.{key}" if path else key, lines)
    elif isinstance(entry, Sections) and isinstance(there, list):
        for index, (item, other) in enumerate(zip(entry.items, there)):
            _collect_differences(item, other, f"{path}[{index}]", lines)
    elif isinstance(entry, Value) and _wrap_in_list(make_data(entry)) != _wrap_in_list(there):
        lines.append(f"{path}: {there}; proposed is {make_data(entry)}: {entry.why}")


def _wrap_in_list(value: typing.Any) -> typing.Any:
    """Return a list unchanged, and any other value as a list of one item. The option for subnet managers accepts a
    single value without a list.
    """
    return value if isinstance(value, list) else [value]
