# SPDX-License-Identifier: GPL-3.0-or-later

"""Text from outside, for a terminal: a name that somebody else chose must not move the cursor, turn the line around or
fill the screen."""

from __future__ import annotations

import typing

from .escape import visible

#: types in the words of YAML and JSON; those of Ansible, which have names of their own, are built on them
_KINDS = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (dict, "a mapping"),
    (list, "a list"),
    (tuple, "a list"),
)


def kind_of(value: typing.Any) -> str:
    """Return the type of a value in words: ``a mapping``."""
    if value is None:
        return "nothing"
    found = [words for kind, words in _KINDS if isinstance(value, kind)]
    return found[0] if found else f"a {type(value).__name__.lstrip('_')}"


def both_ends(text: str, limit: int = 600) -> str:
    """``text`` in ``limit`` characters: what was wrapped around an error stands before it, the error itself at the
    end."""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-(limit // 2) :]}"


def plain(text: str, limit: int = 2000) -> str:
    """``text`` with all that does not print but line ends as escapes, cut behind ``limit`` characters, and then it says
    how long it was."""
    return visible(cut(text, limit))


def cut(text: str, limit: int) -> str:
    """``text``, cut behind ``limit`` characters, and then it says how long it was."""
    return f"{text[:limit]}... ({len(text)} characters)" if len(text) > limit else text


def cut_texts(data: typing.Any, limit: int) -> typing.Any:
    """Plain data whose texts are cut, keys as well. It is not nested deeper than Python's own recursion goes."""
    if isinstance(data, str):
        return cut(data, limit)
    if isinstance(data, dict):
        return {cut(key, limit): cut_texts(item, limit) for key, item in data.items()}
    return [cut_texts(item, limit) for item in data] if isinstance(data, list) else data


def folded(names: typing.Sequence[str], most: int = 12, between: str = ", ") -> str:
    """Name the first ones, and count how many more there are: ``a, b and 3 more``."""
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def parse_number(text: str) -> typing.Optional[int]:
    """Return a whole number of at most nine digits; None of any other text. ``str.isdigit`` is true of more than
    ``int`` reads."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def percent(part: int, whole: int) -> str:
    """Return a share for a reader: 99.9, and 100 of all alone."""
    return f"{100.0 if part == whole else min(99.9, 100 * part / whole):.3g}"


def ranges(numbers: typing.Iterable[int]) -> str:
    """Numbers as the kernel lists CPUs: 0-3,8."""
    parts: list[list[int]] = []
    for item in sorted(set(numbers)):
        if parts and item == parts[-1][1] + 1:
            parts[-1][1] = item
        else:
            parts.append([item, item])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
