# SPDX-License-Identifier: GPL-3.0-or-later

"""The escaping of untrusted text for a report: names and output of tools, which may contain anything."""

from __future__ import annotations

from ..._model.base import escape
from ..._model.base.redact import redact_text

#: a page must stay readable whatever a tool prints; the records and the facts have all of it
MOST = 2000


def plain(text: str) -> str:
    r"""Return ``text`` without secrets, and with visible escapes for invisible characters: ``\u202e``. Line breaks
    stay.
    """
    return escape.xml(redact_text(text))


def short(text: str, most: int = MOST) -> str:
    """Return the ``plain`` text. If it is longer than ``most`` characters, cut it there and append its length."""
    text = plain(text)
    return (
        text
        if len(text) <= most
        else f"{text[:most]}\u2026 ({len(text)} characters; the records contain the whole text)"
    )


def one_line(text: str) -> str:
    """Return the ``short`` text with visible escapes for line breaks and a blank for each tab, so that it is one
    line.
    """
    return short(text).replace("\n", "\\n").replace("\t", " ")
