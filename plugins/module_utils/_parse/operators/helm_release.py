# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the time of a Helm release, as ``helm list`` prints it."""

from __future__ import annotations

import datetime
import re
import typing

#: a time of Go, 2026-01-02 03:04:05.678901234 +0000 UTC, or of RFC 3339, 2026-01-02T03:04:05.678+02:00
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.\d{1,9})?(?: ?([+-]\d{2}:?\d{2}|Z)(?: .*)?)?", re.ASCII
)
_SECONDS = "%Y-%m-%d %H:%M:%S%z"


def parse_updated(text: typing.Any) -> typing.Optional[datetime.datetime]:
    """Return the time of the last change of a release, as ``helm list`` prints it. A time without an offset is UTC.
    Return None if the value is not such a time.
    """
    found = _TIME.fullmatch(str(text)[:100].strip())
    if found is None:
        return None
    date, time, zone = found.groups()
    try:
        return datetime.datetime.strptime(f"{date} {time}{zone or 'Z'}", _SECONDS)
    except ValueError:
        return None
