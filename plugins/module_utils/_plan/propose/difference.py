# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an intent that is there says something else than a proposal."""

from __future__ import annotations

import typing

from ..._model.base.load import to_data
from ..._model.intent.proposal import Entry, Proposal, Section, Sections, Value, make_data

#: what has many right values
_FREE = ("name", "resource_name", "range", "wait_seconds")


def difference(proposal: Proposal, fabrics: typing.Any, cluster: typing.Any) -> tuple[str, ...]:
    """Return the differences between an existing intent and the proposal, one line each. What a proposal leaves open is
    no difference.

    Fabrics are compared in their order. Names and ranges are the user's to give, and no difference; neither is what the
    proposal says nothing about.

    :param fabrics: value of ``rdma_fabrics``, and ``cluster`` that of ``rdma_cluster``; None where there is none
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
    """One subnet manager may be written as a list of one, or without it."""
    return value if isinstance(value, list) else [value]
