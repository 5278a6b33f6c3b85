# SPDX-License-Identifier: GPL-3.0-or-later

"""What every resource of a BMC has, as it is decoded from JSON. A part of another form than it must have is an error,
never an empty fact."""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.paths import PATH

Data = typing.Mapping[str, typing.Any]

#: characters of the name of an attribute, of what the screen calls it, and of its value, where real ones have 60 at
#: most
MOST_LETTERS = 256


def get_mapping(data: typing.Any, source: str) -> Data:
    """Parse a resource.

    :param source: what it is, for the error's text
    :raises ParseError: it is none
    """
    if not isinstance(data, dict):
        raise ParseError(source, str(data), "an object")
    return data


def get_inner(data: Data, *names: str) -> Data:
    """Return the object at this path; an absent one, and what is none, is empty. For parts that a BMC need not have."""
    for name in names:
        found = data.get(name)
        data = found if isinstance(found, dict) else {}
    return data


def get_rows(data: typing.Any) -> list[Data]:
    """Return the objects of a list; of anything else none. For parts that a BMC need not have."""
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def text_at(data: Data, name: str) -> str:
    """Return a text in one line; empty where there is none."""
    found = data.get(name)
    return " ".join(found.split())[:200] if isinstance(found, str) else ""


def is_path(text: typing.Any) -> bool:
    """Return whether it is a path on the same BMC, which a request line can hold."""
    return PATH.fits(text)


def link(data: typing.Any) -> str:
    """Return the path of a reference; empty where it is none. One that leads away from this BMC is none."""
    found = data.get("@odata.id") if isinstance(data, dict) else None
    return str(found) if is_path(found) else ""


def last(path: str) -> str:
    """Return the id at the end of a path."""
    return path.rstrip("/").rpartition("/")[2]
