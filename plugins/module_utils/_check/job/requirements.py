# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare a requirement of node affinity with the labels of a node or of a ResourceFlavor."""

from __future__ import annotations

import typing

from ..._model.job.job import NodeRequirement


def is_met(requirement: NodeRequirement, labels: typing.Mapping[str, str], name: str = "") -> bool:
    """Return whether labels meet a requirement of node affinity.

    An operator that this collection does not know counts as met.

    :param labels: labels of a node, or node labels of a ResourceFlavor
    :param name: name of the node; empty for a ResourceFlavor
    """
    value = name if requirement.of_name else labels.get(requirement.key)
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("Gt", "Lt"):
        bound, number = _parse_integer(values[0] if values else ""), _parse_integer(value or "")
        return bound is not None and number is not None and (number > bound if operator == "Gt" else number < bound)
    return True


def _parse_integer(text: str) -> typing.Optional[int]:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
