# SPDX-License-Identifier: GPL-3.0-or-later

"""A value, or why there is none. The attribute ``EITHER`` of a class names the fields of the value, and those that say
why it is missing.

An entry that has both contradicts itself, and a check would take one of them for the truth. So it is refused.
"""

from __future__ import annotations

import typing

#: fields of the value, of which all must be set; fields that give a reason, of which none may be set then
Sides = tuple[tuple[str, ...], tuple[str, ...]]


def list_sides(cls: typing.Any) -> typing.Optional[Sides]:
    """Return the two sides of a class. None where it has no such sides."""
    found: typing.Optional[Sides] = getattr(cls, "EITHER", None)
    return found


def find_beside(sides: Sides, item: typing.Any) -> typing.Optional[tuple[str, str]]:
    """Return a field of the value and a field with a reason why there is none, where both are set; else None. A field
    is set where it differs from its default."""
    values, reasons = sides
    if not all(_is_set(item, name) for name in values):
        return None
    return next(((values[0], name) for name in reasons if _is_set(item, name)), None)


def _is_set(item: typing.Any, name: str) -> bool:
    value = getattr(item, name)
    # an empty text says nothing
    return value is not None and value != "" and value != getattr(type(item), name, None)
