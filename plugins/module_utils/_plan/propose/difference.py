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

    A fabric is compared with the proposed fabric of its profile. Fabrics of the same profile are compared in their
    order. Not compared are the names of fabrics and of the intent, resource names, address ranges, ``wait_seconds``,
    values that the proposal leaves to the user, and keys that the proposal does not contain.

    :param fabrics: value of ``rdma_fabrics``; None if not set
    :param cluster: value of ``rdma_cluster``; None if not set
    """
    lines: list[str] = []
    for key, there in (("rdma_fabrics", to_data(fabrics)), ("rdma_cluster", to_data(cluster))):
        for name, entry in proposal.variables.entries:
            if name == key:
                _collect_differences(entry, there, key, lines)
    return tuple(lines)


def _collect_differences(entry: Entry, there: typing.Any, path: str, lines: list[str]) -> None:
    if there is None:
        return
    _check_type(entry, there, path, lines)
    if isinstance(entry, Section) and isinstance(there, dict):
        for key, item in entry.entries:
            if key not in _FREE:
                _collect_differences(item, there.get(key), f"{path}.{key}", lines)
    elif isinstance(entry, Sections) and isinstance(there, list):
        _compare_fabrics(entry, there, path, lines)
    elif isinstance(entry, Value) and _wrap_in_list(make_data(entry)) != _wrap_in_list(there):
        lines.append(f"{path}: {there}; proposed is {make_data(entry)}: {entry.why}")


def _check_type(entry: Entry, there: typing.Any, path: str, lines: list[str]) -> None:
    """Add a line if a value of the intent has the wrong type: the proposal has a mapping or a list at this place, and
    the intent has neither.

    :param entry: part of the proposal
    :param there: value of the intent at the same place
    :param path: keys that lead to the value, such as ``rdma_fabrics[0].select``, for the line
    :param lines: list to which the line is added
    """
    if isinstance(entry, (Section, Sections)):
        expected = dict if isinstance(entry, Section) else list
        if not isinstance(there, expected):
            noun = "a mapping" if expected is dict else "a list"
            lines.append(f"{path}: not {noun}; proposed is {noun}. Run linerate.rdma.validate, which checks the intent")


def _check_types(entry: Section, there: typing.Any, path: str, lines: list[str]) -> None:
    """Add a line for each part of a fabric that has the wrong type, compared with the parts of a proposed fabric. This
    is for a fabric of the intent without a proposed fabric of its profile, for which only the types can be checked.

    :param entry: any proposed fabric
    :param there: fabric of the intent
    :param path: place of the fabric in the intent, such as ``rdma_fabrics[0]``
    :param lines: list to which the lines are added
    """
    for key, item in entry.entries:
        if isinstance(there, dict) and there.get(key) is not None:
            _check_type(item, there[key], f"{path}.{key}", lines)


def _compare_fabrics(proposed: Sections, there: list[typing.Any], path: str, lines: list[str]) -> None:
    """Add a line for each difference between fabrics of the same profile, for each fabric of the intent without a
    proposed fabric, and for each proposed fabric that the intent lacks.
    """
    rest = dict(enumerate(there))
    lacking = []
    for item in proposed.items:
        profile = make_data(item).get("profile")
        index = next((index for index, fabric in rest.items() if _read_profile(fabric) == profile), None)
        if index is None:
            lacking.append(profile)
        else:
            _collect_differences(item, rest.pop(index), f"{path}[{index}]", lines)
    for index, fabric in rest.items():
        lines.append(f"{path}[{index}]: profile {_read_profile(fabric)}; no such fabric is proposed")
        if proposed.items:
            _check_types(proposed.items[0], fabric, f"{path}[{index}]", lines)
    lines += [f"{path}: lacks a fabric of profile {profile}, which is proposed" for profile in lacking]


def _read_profile(fabric: typing.Any) -> typing.Any:
    return fabric.get("profile", "not set") if isinstance(fabric, dict) else "not set"


def _wrap_in_list(value: typing.Any) -> typing.Any:
    """Return a list unchanged, and any other value as a list of one item. The option for subnet managers accepts a
    single value without a list.
    """
    return value if isinstance(value, list) else [value]
