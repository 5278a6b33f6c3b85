# SPDX-License-Identifier: GPL-3.0-or-later

"""Removal of secrets from data that is written to disk or shown.

Facts and findings should not contain secrets. This is the second line of defense, for a tool or API that returns more
than was requested.
"""

from __future__ import annotations

import functools
import re
import typing

from .credentials import (
    REDACTED,
    asks_secret,
    is_suspect_document,
    may_hold_credentials,
    remove_credentials,
    remove_value,
)
from .logins import remove_logins

__all__ = ["MOST_SUSPECT", "REDACTED", "is_free", "is_suspect", "redact", "redact_text"]

#: characters of texts that may hold a secret, of what one node answers: of more nobody looks for the secrets, since a
#: million of them takes 0.3 to 0.6 s
MOST_SUSPECT = 1 << 20

# the last word of a name whose value is a secret, in whatever style the name is written
_WORDS = (
    r"passwords?|passwd|passphrase|tokens?|(?:client|[_-])[_-]?secret|(?:api|access|secret|private|encryption)[_-]?key"
)
# names of fields whose value is a secret whatever it looks like
_SECRET_KEY = re.compile(
    rf"(?:{_WORDS})$"
    r"|[_.-](?:pass|pwd)$|^pwd$|(?-i:[a-z0-9](?:Pass|Pwd)$)"
    r"|(?:^|[_.-])(?:secret|bearer|authorization|auth|cookie|kubeconfig|m_?key|sm_?key|sa_?key"
    r"|dockerconfigjson|dockercfg|psk|community|keytab|credentials)$|[a-z0-9]\.key$"
    r"|private[_-]?key|client[_-]?key|client-certificate-data|certificate-authority-data|api[_-]?key|access[_-]?key",
    re.IGNORECASE,
)

# a quote, as it stands in JSON that is itself a text of JSON
_QUOTE = r"\\{0,7}[\"']"
# up to the same quote; what is cut off has none
_QUOTED = r"(?P<open>(?P<escape>\\{0,7})(?P<quote>[\"']))(?:(?!(?<!\\)(?P=escape)(?P=quote))[^\n])+"
_IS = rf"(?:{_QUOTE})?[ \t]{{0,8}}[:=]{{1,2}}>?[ \t]{{0,8}}"
# how many tokens a model takes is none
_NAME = _WORDS.replace("tokens?", rf"tokens?(?!{_IS}[0-9]{{1,9}}(?:[\s,;}})\]]|$))")
_WORD = rf"(?!{_QUOTE}|(?:true|false|null)(?:[\s,;}})\]]|$))\S+"
# the result of a test, a count, a template
_NO_PASSWORD = (
    rf"(?!{_QUOTE}|(?:true|false|null|none|yes|no|ok|on|off|pass(?:ed)?|fail(?:ed)?|skip(?:ped)?|[0-9]{{1,3}})"
    r"(?:[\s,;})\]]|$)|\{\{|\$[({A-Za-z_])"
)
_SUFFIXED = r"(?:[a-z0-9][_-]pass|(?-i:[a-z0-9]Pass))"
_SHORT = r"(?:[a-z0-9][_-]pwd|(?-i:[a-z0-9]Pwd))"
_BLOCK_NAME = rf"(?:{_WORDS}|\bsecret|{_SUFFIXED}|{_SHORT})"
_KEEPS = rf"\g<before>\g<open>{REDACTED}"
_KEEPS_NAME = rf"\g<before>{REDACTED}"
_SECRET_TEXT = (
    # YAML: a block, and a value on the next line, which is no mapping
    (
        re.compile(
            rf"(?i)(?P<before>{_BLOCK_NAME}(?:{_QUOTE})?[ \t]{{0,8}}:[ \t]{{0,8}}[|>][0-9+-]{{0,2}}[ \t]{{0,8}}\r?\n"
            r"(?P<indent>[ \t]{1,32}))(?!\[redacted\])[^\s][^\n]*(?:\n(?P=indent)[^\n]*)*"
        ),
        _KEEPS_NAME,
    ),
    (
        re.compile(
            rf"(?i)(?P<before>{_BLOCK_NAME}(?:{_QUOTE})?[ \t]{{0,8}}:[ \t]{{0,8}}\r?\n[ \t]{{1,32}})"
            r"(?!\[redacted\]|[^\n]*:(?:\s|\Z))[^\s\[{][^\n]*"
        ),
        _KEEPS_NAME,
    ),
    (
        re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        REDACTED,
    ),
    # the same in base64, as Secrets and kubeconfigs hold it. It is not followed by the C of a certificate
    (re.compile(r"LS0tLS1CRUdJTi(?!BD)[A-Za-z0-9+/=]{8,}"), REDACTED),
    # a token has digits or is long; the word after Bearer in prose is neither
    (
        re.compile(r"(?<=Bearer )(?:(?=[A-Za-z._~+/=-]{0,128}[0-9])[A-Za-z0-9._~+/=-]{8,}|[A-Za-z._~+/=-]{24,})"),
        REDACTED,
    ),
    (
        re.compile(
            rf"(?i)(?P<before>(?:{_NAME}|client-key-data|client-certificate-data|certificate-authority-data){_IS})(?:{_QUOTED}|{_WORD})"
        ),
        _KEEPS,
    ),
    # BMC_PASS=..., and DB_PWD=..., but not the folder in PWD=/root
    (
        re.compile(rf"(?i)(?P<before>{_SUFFIXED}[ \t]{{0,8}}={{1,2}}>?[ \t]{{0,8}})(?:{_QUOTED}|{_NO_PASSWORD}\S+)"),
        _KEEPS,
    ),
    (
        re.compile(
            rf"(?i)(?P<before>pwd[ \t]{{0,8}}={{1,2}}>?[ \t]{{0,8}})(?![\"'\\]{{0,8}}[/~.])"
            rf"(?:{_QUOTED}|{_NO_PASSWORD}\S+)"
        ),
        _KEEPS,
    ),
    # before a colon, a value in quotes or the last one of its line: "first_pass: the ..." is prose
    (
        re.compile(
            rf"(?i)(?P<before>(?:{_SUFFIXED}|{_SHORT}|[\"']pwd)(?:{_QUOTE})?[ \t]{{0,8}}:[ \t]{{0,8}})"
            rf"(?![\"'\\]{{0,8}}[/~.]){_QUOTED}"
        ),
        _KEEPS,
    ),
    (
        re.compile(
            rf"(?i)(?P<before>{_SUFFIXED}:[ \t]{{1,8}})(?:{_NO_PASSWORD}[^\s,}}]+)(?=[ \t]{{0,8}}(?:$|[\r\n,}}]))"
        ),
        _KEEPS_NAME,
    ),
    (re.compile(rf"(?i)(?P<before>\bpass=){_NO_PASSWORD}(?=[^\sa-z]{{0,32}}[a-z])\S{{6,}}"), _KEEPS_NAME),
    # "The secret: it ..." is prose
    (re.compile(rf"(?i)(?P<before>\bsecret(?:(?:{_QUOTE})[ \t]{{0,8}}:|=)[ \t]{{0,8}})(?:{_QUOTED}|{_WORD})"), _KEEPS),
    (re.compile(rf"(?i)(?P<before>[\"'](?:auth|credentials){_QUOTE}[ \t]{{0,8}}:[ \t]{{0,8}}){_QUOTED}"), _KEEPS),
    # a path in an error stands in front of words
    (
        re.compile(rf"(?i)(?P<before>\.(?:dockerconfigjson|dockercfg|key){_IS})(?:{_QUOTED}|[A-Za-z0-9+/=]{{16,}})"),
        _KEEPS,
    ),
    (
        re.compile(
            rf"(?i)(?P<before>\bcookie(?:{_QUOTE})?[ \t]{{0,8}}:["
            rf" \t]{{0,8}})(?:{_QUOTED}|(?=[^\s=;,\"']{{1,128}}=)[^\r\n\"']+)"
        ),
        _KEEPS,
    ),
    # a variable of a container: {name: X_PASSWORD, value: ...}
    (
        re.compile(
            rf"(?i)(?P<before>\bname{_IS}(?:{_QUOTE})?[a-z0-9_.-]{{0,64}}(?:{_WORDS})(?:{_QUOTE})?"
            rf"(?:,\s{{0,64}}|\s{{1,64}})(?:{_QUOTE})?value{_IS})(?:{_QUOTED}|{_WORD})"
        ),
        _KEEPS,
    ),
    (
        re.compile(
            rf"(?i)(?P<before>\bname{_IS}(?:{_QUOTE})?[a-z0-9_.-]{{0,64}}(?:{_SUFFIXED}|{_SHORT})"
            rf"(?:{_QUOTE})?(?:,\s{{0,64}}|\s{{1,64}})(?:{_QUOTE})?value{_IS})(?:{_QUOTED}|{_NO_PASSWORD}\S+)"
        ),
        _KEEPS,
    ),
)

#: what may be a JSON web token, as service accounts have. It begins at the first of its characters alone: at each of
#: them, it takes the square of the time
_DOTTED = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
_TOKEN_HEAD = re.compile(r"\beyJ(?=[A-Za-z0-9_-]{5})")


# in lower case, one of them is in each text that has any of the above. Reports of large clusters hold millions of
# texts, and hardly one of them has any
_HINTS = (
    *(
        "-----begin",
        "ls0tls1c",
        "eyj",
        "bearer ",
        "passw",
        "passphrase",
        "token",
        "secret",
        "cookie",
        "dockerc",
        ".key",
        *("_pass", "-pass", "pass=", "pwd"),
        *(f"{name}{end}" for name in ("auth", "credentials") for end in ('"', "'", "\\")),
    ),
    *(
        f"{what}{between}key"
        for what in ("private", "client", "api", "access", "encryption")
        for between in ("", "_", "-")
    ),
    *("client-certificate-data", "certificate-authority-data"),
)
# the same of names of fields, and of what JSON escapes and may hide one
_SUSPECTS = (
    *_HINTS,
    "bearer",
    "authorization",
    "kubeconfig",
    "mkey",
    "m_key",
    "\\u",
    "community",
    "keytab",
    ".pass",
    "sakey",
)


def is_free(document: str) -> bool:
    """Return whether a JSON document in ASCII contains nothing that ``redact`` would remove. False may be returned for
    a harmless document. The test takes a tenth of the time of ``redact``.
    """
    lower = document.lower()
    return "Pass" not in document and not (any(suspect in lower for suspect in _SUSPECTS) or is_suspect_document(lower))


def is_suspect(data: typing.Any) -> bool:
    """Return whether plain data has too much text that may contain a secret to be searched: more than ``MOST_SUSPECT``
    characters in total.
    """
    left, rest = MOST_SUSPECT, [data]
    while rest and left >= 0:
        item = rest.pop()
        if isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, (list, tuple)):
            rest += item
        elif isinstance(item, str) and (_has_hint(item) or may_hold_credentials(item)):
            left -= len(item)
    return left < 0


def _has_hint(text: str) -> bool:
    lower = text.lower()
    # as in adminPass: in lower case, results of tests have the word too
    return "Pass" in text or any(hint in lower for hint in _HINTS)


def redact_text(text: str) -> str:
    """Return ``text`` without private keys, tokens and passwords."""
    text = remove_credentials(text)
    if not _has_hint(text):
        return text
    if "eyJ" in text:
        text = _DOTTED.sub(_remove_token, text)
    for pattern, instead in _SECRET_TEXT:
        text = pattern.sub(instead, text)
    return text


def _remove_token(match: typing.Match[str]) -> str:
    """Return the matched dotted words, with a JSON web token replaced by ``REDACTED``. A token has two parts of at
    least six characters, of which the first begins like ``{"`` in base64.
    """
    parts = match[0].split(".")
    for number, (part, following) in enumerate(zip(parts, parts[1:])):
        head = _TOKEN_HEAD.search(part)
        if head is not None and len(following) >= 5:
            return ".".join((*parts[:number], part[: head.start()] + REDACTED))
    return match[0]


def redact(data: typing.Any, key: str = "") -> typing.Any:
    """Return plain data (mappings, lists, text, numbers) without secrets. The keys of mappings are kept, so that the
    structure stays visible.

    :param key: key of ``data`` in its mapping; a text under a secret key is replaced as a whole
    """
    if isinstance(data, dict):
        named = str(data["name"]) if "value" in data and "name" in data else ""
        return {
            name: redact(value, named if name == "value" and _is_secret(named) else str(name))
            for name, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        # of a command, the argument after --password is no text that shows what it is
        data = remove_logins(data)
        before = [None, *data][: len(data)]
        return [
            REDACTED
            if item and isinstance(item, str) and asks_secret(flag)
            else redact(remove_value(item) if isinstance(item, str) else item, key)
            for flag, item in zip(before, data)
        ]
    if isinstance(data, str):
        # the folder of a shell, in its environment
        is_folder = key.lower() == "pwd" and data.startswith("/")
        return REDACTED if data and _is_secret(key) and not is_folder else redact_text(data)
    return data


@functools.lru_cache(maxsize=4096)
def _is_secret(key: str) -> bool:
    """Return whether a key names a secret. The result is cached, since facts repeat a few keys very often."""
    return _SECRET_KEY.search(key) is not None
