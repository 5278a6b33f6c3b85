# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats of times: RFC 3339 in UTC."""

from __future__ import annotations

import datetime
import re
import typing

from .form import Form

_FORM = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)", re.ASCII)
#: no release of Kubernetes, no driver and no BMC that is supported is older
EARLIEST = datetime.datetime(2015, 1, 1, tzinfo=datetime.timezone.utc)


def parse_moment(text: typing.Any) -> typing.Optional[datetime.datetime]:
    """Return the time, or None if the value is not a text of this format. Digits after the microsecond are dropped."""
    match = _FORM.fullmatch(text) if isinstance(text, str) and len(text) <= TIME.longest else None
    if match is None:
        return None
    try:
        found = datetime.datetime.strptime(f"{match[1]} {match[2]}.{(match[3] or '0')[:6]}", "%Y-%m-%d %H:%M:%S.%f")
    except ValueError:
        return None
    return found.replace(tzinfo=datetime.timezone.utc)


def _parse_plausible_time(text: str) -> typing.Optional[str]:
    found = parse_moment(text)
    return text if found is not None and found >= EARLIEST else None


#: whether it lies too far in the future, the caller knows, who has a clock
TIME = Form("a time in UTC, 2015 or later", "2026-01-02T03:04:05Z", 40, _parse_plausible_time)

Time = typing.Annotated[str, TIME]
