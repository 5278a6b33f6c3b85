# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers of things as text."""

from __future__ import annotations


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 node``, ``2 nodes``.

    :param plural: plural of the noun; if empty, the noun with an ``s``
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
