# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of the world on its way into a report: names and output of tools, which may hold anything."""

from __future__ import annotations

import re
import typing

from .._model.redact import redact_text

#: a page must stay readable whatever a tool prints; the records and the facts have all of it
MOST = 2000

# what has no width, turns the direction of text, drives a terminal, or is no character: it would hide or forge what a reader sees
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """``text`` without secrets, and with a visible escape for what a reader would not see: ``\\u202e``. Its lines stay."""
    return _UNSEEN.sub(_escape, redact_text(text))


def short(text: str, most: int = MOST) -> str:
    """``plain`` text, cut after ``most`` characters with a word on how much there is."""
    text = plain(text)
    return text if len(text) <= most else f"{text[:most]}\u2026 ({len(text)} characters; the records have them all)"


def one_line(text: str) -> str:
    """``short`` text with its line breaks made visible, for what must be one line."""
    return short(text).replace("\n", "\\n").replace("\t", " ")


def _escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def folded(names: typing.Sequence[str], most: int = 12) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
