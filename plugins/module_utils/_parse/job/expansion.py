# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the variables that the command of a container sets, and expand references to other variables.

A reference is expanded only where the text of the object determines its value: ``$NAME`` and ``${NAME}`` of a shell,
``${NAME:-default}``, and ``$(NAME)`` of Kubernetes. A command in ``$(...)`` or backquotes is not run, so its value is
unknown. [k8s.io/kubernetes third_party/forked/golang/expansion; POSIX.1-2024 XCU 2.6.2]
"""

from __future__ import annotations

import re
import typing

#: values by the names of variables; None for a value that the text of the object does not contain
Known = typing.Mapping[str, typing.Optional[str]]

#: a value as a shell reads it: in quotes of one kind, or without quotes
VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s;&|\"']*)"
_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,100}"
#: ``NAME=value``, and ``${NAME:=value}``, which sets a variable that has no value
_SETTING = re.compile(rf"\b({_NAME})={VALUE}|\$\{{({_NAME}):?=([^}}]{{0,200}})\}}")
_LISTED = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]{0,252})\)")
_REFERENCE = re.compile(rf"\$\(({_NAME})\)|\$\{{({_NAME})(?:(:?)[-=]([^}}$]*))?\}}|\$({_NAME})")


def find_settings(words: str, known: Known) -> list[tuple[str, typing.Optional[str]]]:
    """Return the variables that a command sets, in the order of the text. The value is None if only a shell can compute
    it.

    :param words: command and arguments of a container
    :param known: variables of its environment
    """
    values, found = dict(known), []
    for match in _SETTING.finditer(words):
        name, text, with_default, default = match.groups()
        if name:
            value = expand_word(text, values)
        else:
            name = with_default
            value = values[name] if values.get(name, "") != "" else expand(default, values)
        values[name] = value
        found.append((name, value))
    return found


def expand_word(text: str, known: Known) -> typing.Optional[str]:
    """Return the value of a word of a shell without its quotes. Return None if its value is unknown.

    :param text: word, with its quotes
    :param known: variables that are set before
    """
    if text.startswith("'"):
        return text.strip("'")
    return expand(text.strip("\"'"), known)


def expand(text: str, known: Known) -> typing.Optional[str]:
    """Return a text with its references to variables replaced by their values. Return None if the text runs a command,
    or if a referenced variable is not set or has an unknown value.

    :param text: text without quotes
    :param known: variables that are set before
    """
    parts: list[str] = []
    end = 0
    for match in _REFERENCE.finditer(text):
        of_kubernetes, braced, colon, default, plain = match.groups()
        name = of_kubernetes or braced or plain
        value = known.get(name, default)
        if value is None:
            return None
        parts += [text[end : match.start()], value or (default if colon and default else "")]
        end = match.end()
    parts.append(text[end:])
    rest = [part for part in parts[::2] if "$" in part or "`" in part]
    return None if rest else "".join(parts)


def expand_listed(text: str, known: Known) -> typing.Optional[str]:
    """Return the value of a variable in env of a container: Kubernetes replaces ``$(NAME)`` by the value of a variable
    that is listed before, and keeps the text of each other reference. Return None if a referenced value is unknown.

    :param text: value as written in the object
    :param known: variables of env that are listed before
    """
    parts: list[str] = []
    end = 0
    for match in _LISTED.finditer(text):
        value = "$" if match[0] == "$$" else known.get(match[1], match[0])
        if value is None:
            return None
        parts += [text[end : match.start()], value]
        end = match.end()
    return "".join((*parts, text[end:]))
