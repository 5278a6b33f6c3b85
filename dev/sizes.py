# SPDX-License-Identifier: GPL-3.0-or-later

"""The sizes of a run of the tests. Each has all of the smaller ones; what is in them is in dev/parts.py."""

from __future__ import annotations

CHECK = "check"
TEST = "test"
ALL = "test-all"
#: the smallest first; their names are the targets of make
SIZES = (CHECK, TEST, ALL)


def up_to(size: str) -> tuple[str, ...]:
    """This size and the smaller ones."""
    return SIZES[: SIZES.index(size) + 1]
