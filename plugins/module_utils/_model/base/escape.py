# SPDX-License-Identifier: GPL-3.0-or-later

"""Escaping of text from outside for each output format: terminal, OpenMetrics, JUnit and YAML comments. HTML is escaped
in ``_report/markup/markup.py``.

Most functions build on ``escape_nonprinting``. A name that another person or machine chose must not move the cursor,
reverse the text direction, or start a line of its own.
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


def escape_nonprinting(text: str, keep: str = "\n") -> str:
    r"""Return ``text`` with an escape such as ``\u202e`` in place of each character that does not print: control
    characters, direction marks, surrogates.

    :param keep: non-printing characters that are not escaped
    """
    bare = text
    for sign in keep:
        bare = bare.replace(sign, "")
    if bare.isprintable():
        return text
    return "".join(_escape_piece(text[place : place + _PIECE], keep) for place in range(0, len(text), _PIECE))


def _escape_piece(piece: str, keep: str) -> str:
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode("ascii") for sign in piece
    )


def escape_line(text: str) -> str:
    r"""Return ``text`` as one line for a terminal. A line end becomes ``\n``."""
    return escape_nonprinting(text, "")


def escape_lines(text: str) -> str:
    """Return ``text`` for a terminal. Each line after the first is indented, so that text from outside cannot imitate a
    line of the verdict.
    """
    return _FORGES.sub("\n  ", escape_nonprinting(text))


def escape_data(value: typing.Any) -> typing.Any:
    """Return JSON data in which each text, including the keys of mappings, is escaped by ``escape_nonprinting``. Line
    ends and tabs are kept.
    """
    if isinstance(value, str):
        return escape_nonprinting(value, "\n\t")
    if isinstance(value, (list, tuple)):
        return [escape_data(item) for item in value]
    if isinstance(value, dict):
        return {escape_data(key): escape_data(item) for key, item in value.items()}
    return value


def escape_xml(text: str) -> str:
    """Return ``text`` with each non-printing character escaped, which includes all characters that XML 1.0 does not
    allow [XML 1.0, production 2]. Line ends and tabs are kept. The XML writer escapes the markup.
    """
    return escape_nonprinting(text, "\n\t")


def label_value(text: str) -> str:
    """Return ``text`` escaped as a label value or HELP text [OpenMetrics 1.0, section 'Escaping']."""
    return escape_line(text).replace("\\", "\\\\").replace('"', '\\"')


def label_names(names: typing.Iterable[str], taken: typing.Iterable[str] = ()) -> dict[str, str]:
    """Return a valid label name for each name. The label names are unique and differ from all names in ``taken``.
    Example::

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


def escape_comment(text: str) -> str:
    """Return ``text`` as a one-line YAML comment. Whitespace is collapsed and all other characters outside printable
    ASCII are escaped, since YAML recognizes several characters as line ends [YAML 1.1, section 5.4].
    """
    return "".join(
        sign if " " <= sign <= "~" else sign.encode("unicode_escape").decode("ascii") for sign in " ".join(text.split())
    )


def is_link(text: str) -> bool:
    """Return whether ``text`` is allowed as the target of a link: a relative, http or https URL. Spaces and control
    characters are ignored, since browsers drop them before they parse the scheme [WHATWG URL, section 4.4].
    """
    scheme = _SCHEME.match("".join(sign for sign in text if sign > " " and sign.isprintable()))
    return scheme is None or scheme[1].lower() in ("http", "https")


def is_template(text: str) -> bool:
    """Return whether Ansible would treat ``text`` as a template."""
    return any(mark in text for mark in _TEMPLATES)
