# SPDX-License-Identifier: GPL-3.0-or-later

"""Text from outside, prepared for a terminal. A name from outside must not move the cursor, reverse the text direction
or fill the screen.
"""

from __future__ import annotations

import typing

from .escape import escape_nonprinting

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
    """Return the type of a value in words, such as ``a mapping``."""
    if value is None:
        return "nothing"
    found = [words for kind, words in _KINDS if isinstance(value, kind)]
    return found[0] if found else f"a {type(value).__name__.lstrip('_')}"


def both_ends(text: str, limit: int = 600) -> str:
    """Return ``text``, shortened to about ``limit`` characters by removing its middle. An error message has its context
    at the beginning and its cause at the end.
    """
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-(limit // 2) :]}"


def cut_plain(text: str, limit: int = 2000) -> str:
    """Return ``text`` truncated to ``limit`` characters, with its full length appended if it was longer. Non-printing
    characters other than line ends are escaped.
    """
    return escape_nonprinting(cut_text(text, limit))


def cut_text(text: str, limit: int) -> str:
    """Return ``text`` truncated to ``limit`` characters, with its full length appended if it was longer."""
    return f"{text[:limit]}... ({len(text)} characters)" if len(text) > limit else text


def cut_texts(data: typing.Any, limit: int) -> typing.Any:
    """Return plain data with each text and each key truncated by ``cut_text``. The nesting must not exceed Python's
    recursion limit.
    """
    if isinstance(data, str):
        return cut_text(data, limit)
    if isinstance(data, dict):
        return {cut_text(key, limit): cut_texts(item, limit) for key, item in data.items()}
    return [cut_texts(item, limit) for item in data] if isinstance(data, list) else data


def join_first(names: typing.Sequence[str], most: int = 12, between: str = ", ") -> str:
    """Return the first ``most`` names and the number of the remaining ones as text: ``a, b and 3 more``.

    :param between: separator between the names
    """
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def parse_number(text: str) -> typing.Optional[int]:
    """Return a non-negative integer of at most nine digits, or None for any other text. ``str.isdigit`` alone would
    accept characters that ``int`` rejects.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def format_percent(part: int, whole: int) -> str:
    """Return a percentage as text with three significant digits, without a percent sign. Only ``part == whole`` gives
    100; any smaller share is at most 99.9.
    """
    return f"{100.0 if part == whole else min(99.9, 100 * part / whole):.3g}"


def format_ranges(numbers: typing.Iterable[int]) -> str:
    """Return numbers in the format of the kernel's CPU lists: ``0-3,8``."""
    parts: list[list[int]] = []
    for item in sorted(set(numbers)):
        if parts and item == parts[-1][1] + 1:
            parts[-1][1] = item
        else:
            parts.append([item, item])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
