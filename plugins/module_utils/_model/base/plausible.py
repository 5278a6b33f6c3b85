# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the schema version and the times in the files of a run. The functions are pure; the current time is an
argument.
"""

from __future__ import annotations

import datetime
import typing

#: no run of this collection is older
EARLIEST = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)
#: how far the clock of the machine that ran may be ahead of the one that reads
MOST_AHEAD = datetime.timedelta(hours=24)


def wrong_schema(data: typing.Any, known: int) -> tuple[str, str]:
    """Return why data does not have schema version ``known``, and the remedy. Return two empty texts if the version is
    correct, or if data is not a mapping.

    :param data: content of a file of a run
    :param known: schema version that this version of the collection reads
    """
    if not isinstance(data, dict):
        return "", ""
    schema = data.get("schema")
    # True is an int as well
    version = schema if isinstance(schema, int) and not isinstance(schema, bool) else None
    if version == known:
        return "", ""
    if version is not None and version > known:
        return f"schema is {schema}, of a newer version of linerate.rdma; expected {known}", "Install the newer version"
    seen = "schema is missing" if "schema" not in data else f"schema is {str(schema)[:40]!r}"
    return f"{seen}; expected {known}", "Use the unmodified file of a run of this version, or rerun its stage"


def wrong_time(text: str, now: datetime.datetime) -> str:
    """Return why the time of a run is implausible, or an empty text if it is plausible.

    :param text: ISO 8601 with an offset from UTC
    :param now: the current time, UTC
    """
    try:
        # Python 3.9 knows no Z
        found = datetime.datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except (AttributeError, TypeError, ValueError):
        return f"{str(text)[:40]!r} is not a valid time; expected ISO 8601"
    if found.tzinfo is None:
        return f"the time {text} has no offset from UTC; expected ISO 8601 with +00:00"
    if found < EARLIEST:
        return f"the time {text} is before {EARLIEST:%Y-%m-%d}, which is earlier than any run"
    if found > now + MOST_AHEAD:
        return (
            f"the time {text} is in the future: the local time is {now:%Y-%m-%dT%H:%M:%S+00:00}, and the clocks may"
            f" differ by at most {MOST_AHEAD.total_seconds() / 3600:g} h"
        )
    return ""
