# SPDX-License-Identifier: GPL-3.0-or-later

"""The escaping of untrusted text for a report: names and output of tools, which may contain anything."""

from __future__ import annotations

from ..._model.base import escape
from ..._model.base.redact import redact_text

#: a page must stay readable whatever a tool prints; the records and the facts have all of it
MOST = 2000


def escape_plain(text: str) -> str:
    r"""Return ``text`` with secrets redacted, and with visible escapes for invisible characters: ``\u202e``. Line
    breaks stay.
    """
    return escape.escape_xml(redact_text(text))


def shorten_plain(text: str, most: int = MOST) -> str:
    """Return a text with secrets redacted and invisible characters escaped. If it is longer than ``most`` characters,
    cut it there and append its length.
    """
    text = escape_plain(text)
    return (
        text
        if len(text) <= most
        else f"{text[:most]}\u2026 ({len(text)} characters; the records contain the whole text)"
    )


def one_line(text: str) -> str:
    """Return a text in one line: secrets are redacted, invisible characters and line breaks are escaped, a tab becomes
    a blank, and the length is limited.
    """
    return shorten_plain(text).replace("\n", "\\n").replace("\t", " ")
