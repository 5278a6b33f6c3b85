# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists with one entry for each thing. The attribute ``ONCE`` of the entries' class names the fields that say which
thing an entry is about.

Two entries about one thing contradict each other, and a check would take one of them for the truth. So a list that has
them is refused as a whole.
"""

from __future__ import annotations

import typing


def list_keys(cls: typing.Any) -> tuple[str, ...]:
    """Return the fields that say what an entry of a class is about; none where several entries may be about one
    thing."""
    found: tuple[str, ...] = getattr(cls, "ONCE", ()) if isinstance(cls, type) else ()
    return found


def find_second(keys: typing.Sequence[str], items: typing.Sequence[typing.Any]) -> typing.Optional[int]:
    """Return the index of the first entry that is about the same thing as an earlier one; None where there is none.

    :param keys: names of fields, with a dot for a field of a field: ``pci.address``. An entry without a value in any of
        them names no thing, and is left out
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
