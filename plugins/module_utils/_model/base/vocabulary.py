# SPDX-License-Identifier: GPL-3.0-or-later

"""Vocabularies: tables of kinds of problems, each with the patterns by which a message of a tool is recognized as a
problem of this kind.
"""

from __future__ import annotations

import re
import typing

Kind = typing.TypeVar("Kind", bound=str)
#: the first kind that a message names counts
Vocabulary = tuple[tuple[Kind, typing.Pattern[str]], ...]


def compile_vocabulary(rows: typing.Iterable[tuple[Kind, typing.Iterable[str]]]) -> Vocabulary[Kind]:
    """Return a compiled vocabulary. A message is of a kind if at least one regular expression of the kind matches.

    :param rows: pairs of a kind and the regular expressions of its messages
    """
    return tuple((kind, re.compile("|".join(patterns))) for kind, patterns in rows)


def find_kind(vocabulary: Vocabulary[Kind], text: str) -> typing.Optional[Kind]:
    """Return the first kind of the vocabulary whose pattern matches a part of ``text``. Return None if no pattern
    matches.
    """
    return next((kind for kind, pattern in vocabulary if pattern.search(text)), None)
