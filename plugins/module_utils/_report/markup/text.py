# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of the world on its way into a report: names and output of tools, which may hold anything."""

from __future__ import annotations

from ..._model.base import escape
from ..._model.base.redact import redact_text

#: a page must stay readable whatever a tool prints; the records and the facts have all of it
MOST = 2000


def plain(text: str) -> str:
    """``text`` without secrets, and with a visible escape for what a reader would not see: ``\\u202e``. Its lines
    stay."""
    return escape.xml(redact_text(text))


def short(text: str, most: int = MOST) -> str:
    """``plain`` text, cut after ``most`` characters with a word on how much there is."""
    text = plain(text)
    return text if len(text) <= most else f"{text[:most]}\u2026 ({len(text)} characters; the records have them all)"


def one_line(text: str) -> str:
    """``short`` text with its line breaks made visible, for what must be one line."""
    return short(text).replace("\n", "\\n").replace("\t", " ")
