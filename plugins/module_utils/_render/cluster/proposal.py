# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders a proposal as YAML with the reason for each line as a comment. The lines are formatted here because a YAML
dumper cannot write comments.
"""

from __future__ import annotations

import json
import re
import textwrap
import typing

from ..._model.base.escape import escape_comment, is_template
from ..._model.intent.disruption_override import build_reference
from ..._model.intent.proposal import Blank, Entry, Proposal, Section, Sections, Value

_WIDTH = 120
# unquoted only what no YAML 1.1 parser takes for anything but a text
_PLAIN = re.compile(r"[a-zA-Z][a-zA-Z0-9_./-]*", re.ASCII)
_WORDS = {"y", "n", "yes", "no", "true", "false", "on", "off", "null", "nan", "inf"}


def render(proposal: Proposal) -> str:
    """Render the YAML file of a proposal: comments with notes and omissions, then the variables rdma_fabrics and
    rdma_cluster.
    """
    lines = ["---"]
    lines += _format_comment("Proposed by linerate.rdma.propose. The comment of each line names its source.", 0)
    lines += _format_comment("Stage validate refuses this file until each FILL_IN is replaced.", 0)
    for note in proposal.notes:
        lines += _format_comment(f"Note: {note}", 0)
    for item in proposal.left_out:
        lines += _format_comment(f"Left out: {item.what}: {item.why}", 0)
    for key, entry in proposal.variables.entries:
        lines += ["", *_format_entry(key, entry, 0, "")]
    return "\n".join(lines) + "\n"


def _format_entry(key: str, entry: Entry, indent: int, dash: str) -> list[str]:
    """Return the YAML lines of a key and its value.

    :param entry: value or nested entries, with the reason for the comment
    :param indent: number of columns before the key
    :param dash: ``"- "`` before the first key of a list item, otherwise empty. Its two columns are part of ``indent``
    """
    if isinstance(entry, Section):
        lines = _format_line(
            f"{_quote_yaml_text(key)}:" if entry.entries else f"{_quote_yaml_text(key)}: {{}}", entry.why, indent, dash
        )
        for name, item in entry.entries:
            lines += _format_entry(name, item, indent + 2, "")
        return lines
    if isinstance(entry, Sections):
        lines = _format_line(
            f"{_quote_yaml_text(key)}:" if entry.items else f"{_quote_yaml_text(key)}: []", entry.why, indent, dash
        )
        for section in entry.items:
            lines += _format_comment(section.why, indent + 2) if section.why else []
            for place, (name, item) in enumerate(section.entries):
                lines += _format_entry(name, item, indent + 4, "" if place else "- ")
        return lines
    return _format_line(f"{_quote_yaml_text(key)}: {_format_value(entry)}", entry.why, indent, dash)


def _format_line(code: str, why: str, indent: int, dash: str) -> list[str]:
    """Return the YAML lines of code and comment: on one line, or the comment above the code if both do not fit on a
    line.

    :param why: text of the comment
    :param indent: number of columns before the code
    :param dash: ``"- "`` before the first key of a list item, otherwise empty
    """
    line = f"{' ' * (indent - len(dash))}{dash}{code}"
    if not why:
        return [line]
    together = f"{line}  # {escape_comment(why)}"
    return [together] if len(together) <= _WIDTH else [*_format_comment(why, indent - len(dash)), line]


def _format_comment(text: str, indent: int) -> list[str]:
    beginning = f"{' ' * indent}# "
    # paths and names stay whole, so that they can be copied
    wrapper = textwrap.TextWrapper(
        max(_WIDTH, indent + 60), beginning, f"{beginning}  ", break_on_hyphens=False, break_long_words=False
    )
    return wrapper.wrap(escape_comment(text))


def _format_value(entry: typing.Union[Value, Blank]) -> str:
    if isinstance(entry, Blank):
        return _quote_yaml_text(entry.text)
    if entry.asked:
        return _quote_yaml_text(build_reference(str(entry.value)))
    if isinstance(entry.value, tuple):
        return f"[{', '.join(map(_format_scalar, entry.value))}]"
    return _format_scalar(entry.value)


def _format_scalar(value: typing.Union[str, int, bool]) -> str:
    """Return a value as YAML. A text that Ansible would treat as a template is tagged ``!unsafe``, so that it stays
    text.
    """
    if not isinstance(value, str):
        return json.dumps(value)
    return f"{'!unsafe ' if is_template(value) else ''}{_quote_yaml_text(value)}"


def _quote_yaml_text(text: str) -> str:
    """Return a text as YAML, quoted if necessary. JSON quotes are valid in YAML, except that JSON escapes characters
    beyond the basic plane as two surrogates. These are joined.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    quoted = json.dumps(text)
    return re.sub(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", _join_surrogates, quoted)


def _join_surrogates(halves: typing.Match[str]) -> str:
    high, low = int(halves[1], 16), int(halves[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
