# SPDX-License-Identifier: GPL-3.0-or-later

"""The escaping of untrusted text for a report: names and output of tools, which may contain anything."""

from __future__ import annotations

from ..._model.base import escape
from ..._model.base.redact import redact_text

#: a page must stay readable whatever a tool prints; the records and the facts have all of it
MOST = 2000


def escape_plain(text: str) -> str:
    r"""Return ``text`` with secrets redacted, and with visible escapes such as ``\u202e`` for invisible characters.
    Line breaks stay.
    """
    return escape.escape_xml(redact_text(text))


def shorten_plain(text: str, most: int = MOST) -> str:
    """Return a text with secrets redacted and invisible characters escaped. A text of more than ``most`` characters is
    cut there, and a note with its whole length is appended.
    """
    text = escape_plain(text)
    return (
        text
        if len(text) <= most
        else f"{text[:most]}\u2026 ({len(text)} characters; the records contain the whole text)"
    )


def one_line(text: str) -> str:
    """Return a text as one line: secrets are redacted, invisible characters and line breaks are escaped, and each tab
    becomes a blank. A text of more than MOST characters is cut, and a note with its whole length is appended.
    """
    return shorten_plain(text).replace("\n", "\\n").replace("\t", " ")
