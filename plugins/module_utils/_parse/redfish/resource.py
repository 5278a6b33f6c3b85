# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the parts that all Redfish resources of a BMC have, from decoded JSON. If a required part has an unexpected
form, an error is raised: an unreadable resource must never look like one without that part.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.paths import PATH

Data = typing.Mapping[str, typing.Any]

#: characters of the name of an attribute, of what the screen calls it, and of its value, where real ones have 60 at
#: most
MOST_LETTERS = 256


def get_mapping(data: typing.Any, source: str) -> Data:
    """Return the data unchanged after checking that it is a mapping.

    :param source: name of the resource in messages
    :raises ParseError: the data is not a mapping
    """
    if not isinstance(data, dict):
        raise ParseError(source, str(data), "an object")
    return data


def get_inner(data: Data, *names: str) -> Data:
    """Return the object at a path of names. Return an empty mapping if it is missing or not an object. Unlike
    :func:`get_mapping`, this is for optional parts.
    """
    for name in names:
        found = data.get(name)
        data = found if isinstance(found, dict) else {}
    return data


def get_rows(data: typing.Any) -> list[Data]:
    """Return the objects in a list. Items that are not objects are left out, and any other value than a list becomes an
    empty list. It is used for optional parts.
    """
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def text_at(data: Data, name: str) -> str:
    """Return the text under a name as one line of at most 200 characters. Return an empty string if it is missing or
    not a text.
    """
    found = data.get(name)
    return " ".join(found.split())[:200] if isinstance(found, str) else ""


def is_path(text: typing.Any) -> bool:
    """Return whether a value is a text that is a valid path on the same BMC, and so can be used in a request line."""
    return PATH.fits(text)


def parse_link(data: typing.Any) -> str:
    """Return the path in a Redfish reference (``@odata.id``). Return an empty string if the value is not a reference,
    or leads to another host.
    """
    found = data.get("@odata.id") if isinstance(data, dict) else None
    return str(found) if is_path(found) else ""


def get_last_part(path: str) -> str:
    """Return the last segment of a path, which is the ID of the resource. A slash at the end is ignored."""
    return path.rstrip("/").rpartition("/")[2]
