# SPDX-License-Identifier: GPL-3.0-or-later

"""Support for dataclasses that hold either a value or the reason why the value is missing. The class attribute
``EITHER`` names the fields of the value and the fields of the reason.

An instance that has both contradicts itself, and a check would rely on one of them. The loader therefore rejects it.
"""

from __future__ import annotations

import typing

#: fields of the value, of which all must be set; fields that give a reason, of which none may be set then
Sides = tuple[tuple[str, ...], tuple[str, ...]]


def list_sides(cls: typing.Any) -> typing.Optional[Sides]:
    """Return the attribute ``EITHER`` of a class: the names of the fields of the value, and the names of the fields of
    the reason why the value is missing. Return None if the class has no such attribute.
    """
    found: typing.Optional[Sides] = getattr(cls, "EITHER", None)
    return found


def find_beside(sides: Sides, item: typing.Any) -> typing.Optional[tuple[str, str]]:
    """Return a contradiction in an instance: the name of a value field and of a reason field that are both set. Return
    None if only the value or only the reason is set.

    The value counts as set if all its fields are set. A field is set if it is neither None, nor an empty text, nor its
    default.

    :param sides: names of the fields of the value, and names of the fields of the reason, as in ``EITHER``
    :param item: instance that is checked
    """
    values, reasons = sides
    if not all(_is_set(item, name) for name in values):
        return None
    return next(((values[0], name) for name in reasons if _is_set(item, name)), None)


def _is_set(item: typing.Any, name: str) -> bool:
    value = getattr(item, name)
    # an empty text says nothing
    return value is not None and value != "" and value != getattr(type(item), name, None)
