# SPDX-License-Identifier: GPL-3.0-or-later

"""Escapes text from outside for each target that it leaves to: a terminal, OpenMetrics, JUnit, a comment of YAML. HTML
has ``_report/markup/markup.py``.

Each of them starts from ``visible``. A name that another person or machine chose must not move the cursor, turn the
line around, or begin a line of its own.
"""

from __future__ import annotations

import re
import typing

# OpenMetrics 1.0, section "ABNF": label-name is a letter or an underscore, then letters, digits and underscores
_NO_LABEL = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)
# RFC 3986, section 3.1
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FORGES = re.compile(r"\n(?=\S)")
#: characters that are looked at one by one at the same time: each takes 60 bytes and more meanwhile, and a node may
#: send millions
_PIECE = 4096
#: what a template of Ansible begins with
_TEMPLATES = ("{{", "{%", "{#")


def visible(text: str, keep: str = "\n") -> str:
    """Return ``text`` with an escape such as ``\\u202e`` for each character that does not print: control characters,
    direction marks, surrogates.

    :param keep: characters that stay although they do not print
    """
    bare = text
    for sign in keep:
        bare = bare.replace(sign, "")
    if bare.isprintable():
        return text
    return "".join(_escaped(text[place : place + _PIECE], keep) for place in range(0, len(text), _PIECE))


def _escaped(piece: str, keep: str) -> str:
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode("ascii") for sign in piece
    )


def line(text: str) -> str:
    """Return ``text`` as one line of a terminal: a line end becomes ``\\n``."""
    return visible(text, "")


def lines(text: str) -> str:
    """Return ``text`` for a terminal; each line after the first is indented, so that no text from outside can begin a
    line as a verdict does."""
    return _FORGES.sub("\n  ", visible(text))


def data(value: typing.Any) -> typing.Any:
    """Return data of JSON with each text in it, the names of fields among them, as ``visible`` shows it; line ends and
    tabs stay."""
    if isinstance(value, str):
        return visible(value, "\n\t")
    if isinstance(value, (list, tuple)):
        return [data(item) for item in value]
    if isinstance(value, dict):
        return {data(key): data(item) for key, item in value.items()}
    return value


def xml(text: str) -> str:
    """Return ``text`` without the characters that XML 1.0 can't hold [XML 1.0, production 2]. The writer of the
    document escapes the markup."""
    return visible(text, "\n\t")


def label_value(text: str) -> str:
    """Return ``text`` as the value of a label or the text of HELP [OpenMetrics 1.0, section 'Escaping']."""
    return line(text).replace("\\", "\\\\").replace('"', '\\"')


def label_names(names: typing.Iterable[str], taken: typing.Iterable[str] = ()) -> dict[str, str]:
    """Return a valid label name for each name; no two are the same, and none is one that is taken.

    >>> label_names(["ansible-core", "ansible core", "1.0"], ["run"])
    {'ansible-core': 'ansible_core', 'ansible core': 'ansible_core_2', '1.0': 'version_1_0'}
    """
    used, found = set(taken), {}
    numbers: dict[str, int] = {}
    for name in names:
        plain = _NO_LABEL.sub("_", name).strip("_")[:64]
        # names that begin with two underscores are Prometheus' own
        base = plain if plain[:1].isalpha() else f"version_{plain}".rstrip("_")
        label = base
        while label in used:
            numbers[base] = numbers.get(base, 1) + 1
            label = f"{base}_{numbers[base]}"
        used.add(label)
        found[name] = label
    return found


def comment(text: str) -> str:
    """Return ``text`` as the comment of one line of YAML, in ASCII: YAML knows more line ends than one [YAML 1.1,
    section 5.4]."""
    return "".join(
        sign if " " <= sign <= "~" else sign.encode("unicode_escape").decode("ascii") for sign in " ".join(text.split())
    )


def is_link(text: str) -> bool:
    """Return whether ``text`` may be the address of a link: relative, or http(s). Browsers drop control characters and
    spaces before they look at its scheme [WHATWG URL, section 4.4]."""
    scheme = _SCHEME.match("".join(sign for sign in text if sign > " " and sign.isprintable()))
    return scheme is None or scheme[1].lower() in ("http", "https")


def is_template(text: str) -> bool:
    """Return whether Ansible would take ``text`` for a template."""
    return any(mark in text for mark in _TEMPLATES)
