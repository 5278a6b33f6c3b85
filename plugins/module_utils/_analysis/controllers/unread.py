# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding on cluster objects that a stage needs and that could not be read."""

from __future__ import annotations

import typing

from ..._model.base.phrases import clause, count_of
from ..._model.base.text import folded
from ..._model.run.findings import UNKNOWN, Finding

#: errors that the finding quotes
_QUOTED = 5
#: things that a value names, and characters of a name
_NAMED, _LONGEST = 8, 60


def count_unread(errors: typing.Sequence[str], noun: str = "") -> str:
    """Return how many could not be read, and what they are: a waiver of one of them is none of another one.

    :param errors: each begins with what was not read, and a colon
    :param noun: noun for what was not read; empty for none
    """
    names = dict.fromkeys(error.partition(":")[0].strip()[:_LONGEST] for error in errors)
    words = f"{count_of(len(errors), noun)} not read" if noun else f"{len(errors)} unread"
    return f"{words}: {folded(list(names), _NAMED)}"


def describe_unread(check: str, subject: str, errors: typing.Sequence[str], rights: str) -> Finding:
    """Return the finding of status unknown on objects that the API server did not return, and on malformed objects.

    :param check: check id of the finding
    :param rights: instruction by which the user gets the rights to read the objects
    """
    why = f"These objects could not be read, or their format is invalid: {clause('; '.join(errors[:_QUOTED]))}."
    remedy = f"{rights} Ask the owner of an object with an invalid format to correct it."
    return Finding(check, subject, UNKNOWN, count_unread(errors), "all objects read", why, remedy)
