# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe the difference between an object in the cluster and the rendered one, as text of a few words."""

from __future__ import annotations

import json
import typing

#: fields that are named, and characters of each of their values
_MOST_FIELDS, _MOST_OF_A_VALUE = 4, 40
#: of a field that one of the objects does not have
_ABSENT = object()


def describe_difference(there: typing.Mapping[str, typing.Any], wanted: typing.Mapping[str, typing.Any]) -> str:
    """Return the first fields that differ, such as ``numVfs: 4 -> 2``, and the number of further ones. Return an empty
    text if no field differs. Metadata and status are left out.

    :param there: the existing object
    :param wanted: the object as it would be after the change
    """
    found = [
        item
        for key in sorted({*there, *wanted} - {"metadata", "status"})
        for item in _list_differences("" if key == "spec" else key, there.get(key, _ABSENT), wanted.get(key, _ABSENT))
    ]
    more = f", and {len(found) - _MOST_FIELDS} more" if len(found) > _MOST_FIELDS else ""
    return ", ".join(found[:_MOST_FIELDS]) + more


def _list_differences(path: str, there: typing.Any, wanted: typing.Any) -> list[str]:
    """Return the fields at or below a path that differ, each as text with both values, such as ``numVfs: 4 -> 2``. A
    text that contains a JSON mapping is compared as that mapping.

    :param path: path of the compared values in the object, such as ``linkState.mode``; empty for the top
    :param there: value in the existing object; ``_ABSENT`` if it has none
    :param wanted: value in the rendered object; ``_ABSENT`` if it has none
    """
    if there == wanted:
        return []
    before, after = _load_mapping(there), _load_mapping(wanted)
    if before is None or after is None:
        return [f"{path}: {_format_value(there)} -> {_format_value(wanted)}"]
    return [
        item
        for key in sorted({*before, *after}, key=str)
        for item in _list_differences(
            f"{path}.{key}" if path else str(key), before.get(key, _ABSENT), after.get(key, _ABSENT)
        )
    ]


def _load_mapping(value: typing.Any) -> typing.Optional[dict[str, typing.Any]]:
    """Return a mapping as it is, and a text that contains a JSON mapping as that mapping. Return None for any other
    value.
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _format_value(value: typing.Any) -> str:
    """Return a value on one line, cut to ``_MOST_OF_A_VALUE`` characters. ``_ABSENT`` becomes ``not set``."""
    if value is _ABSENT:
        return "not set"
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _MOST_OF_A_VALUE else f"{text[: _MOST_OF_A_VALUE - 3]}..."
