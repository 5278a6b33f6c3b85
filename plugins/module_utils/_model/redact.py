# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes secrets out of what is written to disk or shown.

Facts and findings should hold none; this is the second line of defence, for a tool or an API that says more than it was asked.
"""

from __future__ import annotations

import functools
import re
import typing

from .credentials import REDACTED, SUSPECTS, asks_secret, without_credentials

__all__ = ["REDACTED", "is_free", "redact", "redact_text"]

# names of fields whose value is a secret whatever it looks like
_SECRET_KEY = re.compile(
    r"(^|[_.-])(password|passwd|passphrase|secret|token|bearer|authorization|kubeconfig|m_?key|sm_?key)$"
    r"|private[_-]?key|client[_-]?key|client-certificate-data|certificate-authority-data|api[_-]?key|access[_-]?key",
    re.IGNORECASE,
)
_SECRET_TEXT = (
    re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}"),
    # key: value in a text that holds a kubeconfig or a command line
    re.compile(r"(?<=client-key-data: )\S+|(?<=client-certificate-data: )\S+|(?<=certificate-authority-data: )\S+"),
    re.compile(r"(?i)(?<=password=)\S+|(?<=password: )\S+|(?<=token=)\S+|(?<=token: )\S+"),
)

#: what may be a JSON web token, as service accounts have. It begins at the first of its characters alone: at each of them, it takes the square of the time
_DOTTED = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
_TOKEN_HEAD = re.compile(r"\beyJ(?=[A-Za-z0-9_-]{5})")


# what each of them needs; reports of large clusters hold millions of texts, and hardly one of them has any
_HINT = re.compile(r"-----BEGIN|\beyJ|Bearer |-data: |(?i:password|token)(?:=|: )")


# in lower case, of what any of the above needs. What JSON escapes may hide one
_SUSPECTS = (
    *SUSPECTS,
    *("-----begin", "eyj", "bearer", "-data", "password", "passwd", "passphrase", "secret", "token", "authorization", "kubeconfig", "mkey", "m_key", "\\u"),
    *(f"{what}{between}key" for what in ("private", "client", "api", "access") for between in ("", "_", "-")),
)


def is_free(document: str) -> bool:
    """Whether a JSON document of ASCII has nothing that ``redact`` would take out. It may say no of a harmless one, and costs a tenth of looking through it."""
    lower = document.lower()
    return not any(suspect in lower for suspect in _SUSPECTS)


def redact_text(text: str) -> str:
    """``text`` without private keys, tokens and passwords."""
    text = without_credentials(text)
    if _HINT.search(text) is None:
        return text
    if "eyJ" in text:
        text = _DOTTED.sub(_without_token, text)
    for pattern in _SECRET_TEXT:
        text = pattern.sub(REDACTED, text)
    return text


def _without_token(match: typing.Match[str]) -> str:
    """Words with dots between them, up to a JSON web token: two parts of six characters at least, of which the first begins as ``{"`` does in base64."""
    parts = match[0].split(".")
    for number, (part, following) in enumerate(zip(parts, parts[1:])):
        head = _TOKEN_HEAD.search(part)
        if head is not None and len(following) >= 5:
            return ".".join((*parts[:number], part[: head.start()] + REDACTED))
    return match[0]


def redact(data: typing.Any, key: str = "") -> typing.Any:
    """Plain data (mappings, lists, text, numbers) without secrets. A mapping's keys stay, so that a reader sees what was there."""
    if isinstance(data, dict):
        return {name: redact(value, str(name)) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        # of a command, the argument after --password is no text that shows what it is
        before = [None, *data][: len(data)]
        return [REDACTED if item and isinstance(item, str) and asks_secret(flag) else redact(item, key) for flag, item in zip(before, data)]
    if isinstance(data, str):
        return REDACTED if data and _is_secret(key) else redact_text(data)
    return data


@functools.lru_cache(maxsize=4096)
def _is_secret(key: str) -> bool:
    """Facts have few names, and each of them a million times."""
    return _SECRET_KEY.search(key) is not None
