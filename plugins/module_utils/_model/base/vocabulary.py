# SPDX-License-Identifier: GPL-3.0-or-later

"""Vocabularies: kinds of problems, and the words in messages that name each of them."""

from __future__ import annotations

import re
import typing

Kind = typing.TypeVar("Kind", bound=str)
#: the first kind that a message names counts
Vocabulary = tuple[tuple[Kind, typing.Pattern[str]], ...]


def compile_vocabulary(rows: typing.Iterable[tuple[Kind, typing.Iterable[str]]]) -> Vocabulary[Kind]:
    """Return a vocabulary of kinds, each with patterns of which a message has at least one."""
    return tuple((kind, re.compile("|".join(patterns))) for kind, patterns in rows)


def find_kind(vocabulary: Vocabulary[Kind], text: str) -> typing.Optional[Kind]:
    """Return the kind that a message names; None when it names no kind of the vocabulary."""
    return next((kind for kind, pattern in vocabulary if pattern.search(text)), None)
