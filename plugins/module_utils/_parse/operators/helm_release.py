# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the time of a Helm release, as ``helm list`` prints it."""

from __future__ import annotations

import datetime
import typing

#: a time of Go: 2026-01-02 03:04:05.678901234 +0000 UTC
_SECONDS = "%Y-%m-%d %H:%M:%S"
_LENGTH = len("2026-01-02 03:04:05")


def parse_updated(text: typing.Any) -> typing.Optional[datetime.datetime]:
    """Return the time of the last change of a release. Return None if the text is not such a time."""
    words = str(text)[:100].replace("T", " ", 1).split()
    try:
        moment = datetime.datetime.strptime(" ".join(words[:2])[:_LENGTH], _SECONDS)
        zone = datetime.datetime.strptime(words[2], "%z").tzinfo if len(words) > 2 else datetime.timezone.utc
        return moment.replace(tzinfo=zone)
    except ValueError:
        return None
