# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``date +%s.%N``: seconds since 1970-01-01 UTC, and nanoseconds [GNU coreutils]. busybox does not
support ``%N`` and prints it unchanged.
"""

from __future__ import annotations

import re
import typing

COMMAND = ("date", "+%s.%N")
_ANSWER = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}\s*")


def parse_date(text: str) -> typing.Optional[float]:
    """Parse the time that ``date`` has printed on a node.

    :returns: seconds since 1970-01-01 UTC; None for a text of any other form
    """
    return float(text) if _ANSWER.fullmatch(text[:64]) and len(text) <= 64 else None
