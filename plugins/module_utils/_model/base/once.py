# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists that have at most one entry per subject. The attribute ``ONCE`` of the entry class names the fields that
identify the subject.

Two entries about the same subject contradict each other, and a check would rely on one of them. The loader therefore
rejects the whole list.
"""

from __future__ import annotations

import typing


def list_keys(cls: typing.Any) -> tuple[str, ...]:
    """Return the names of the fields that identify the subject of an entry. Return an empty tuple if several entries
    may have the same subject.
    """
    found: tuple[str, ...] = getattr(cls, "ONCE", ()) if isinstance(cls, type) else ()
    return found


def find_second(keys: typing.Sequence[str], items: typing.Sequence[typing.Any]) -> typing.Optional[int]:
    """Return the index of the first entry with the same subject as an earlier entry. Return None if all subjects
    differ, or if there are no keys.

    :param keys: names of the fields that identify the subject, with a dot for a nested field: ``pci.address``. An entry
        in which all of these fields are empty is ignored
    :param items: the entries of the list
    """
    if len(items) < 2 or not keys:
        return None
    seen: set[tuple[typing.Any, ...]] = set()
    for number, item in enumerate(items):
        of = tuple([_get_nested_value(item, key) for key in keys])
        if any(part not in (None, "") for part in of):
            if of in seen:
                return number
            seen.add(of)
    return None


def _get_nested_value(item: typing.Any, key: str) -> typing.Any:
    for name in key.split("."):
        item = getattr(item, name, None)
    return item
