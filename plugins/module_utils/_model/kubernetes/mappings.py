# SPDX-License-Identifier: GPL-3.0-or-later

"""Mappings inside of an object of the cluster, which may lack any of them."""

from __future__ import annotations

import typing


def find_mapping(item: typing.Any, *keys: str) -> typing.Mapping[str, typing.Any]:
    """Return the mapping below some keys of an object. It is empty if a key is absent or has another value.

    :param item: the object, or a part of it
    :param keys: keys from the outside to the inside, such as ``metadata``, ``labels``; none for the object itself
    """
    for key in keys:
        item = item.get(key) if isinstance(item, typing.Mapping) else None
    return item if isinstance(item, typing.Mapping) else {}
