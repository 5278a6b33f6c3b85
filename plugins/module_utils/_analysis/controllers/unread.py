# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding on cluster objects that a stage needs and that could not be read."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, format_clause, is_throttled
from ..._model.base.text import join_first
from ..._model.run.findings import STAGES, UNKNOWN, Finding

#: errors that the finding quotes
_QUOTED = 5
#: things that a value names, and characters of a name
_NAMED, _LONGEST = 8, 60


def count_unread(errors: typing.Sequence[str], noun: str = "") -> str:
    """Return the number and the names of the objects that could not be read, as the measured value of a finding.
    Because the names are part of it, a waiver of one set of objects does not cover another.

    :param errors: one text for each object: its name, a colon and the reason
    :param noun: noun for the objects in the text; empty for "object"
    """
    names = dict.fromkeys(error.partition(":")[0].strip()[:_LONGEST] for error in errors)
    words = f"{count_of(len(errors), noun or 'object')} not read"
    return f"{words}: {join_first(list(names), _NAMED)}"


def describe_unread(check: str, subject: str, errors: typing.Sequence[str], rights: str) -> Finding:
    """Return the finding of status unknown on objects that the API server did not return, and on malformed objects.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param errors: one text for each object: its name, a colon and the reason
    :param rights: instruction by which the user gets the rights to read the objects
    """
    step = check.partition(".")[0]
    again = f"Then run stage {step} again." if step in STAGES else "Then run job_lint again."
    first = f"The first {_QUOTED} errors" if len(errors) > _QUOTED else "Errors"
    why = f"The API server did not return the objects, or their format is invalid. {first}: {_quote(errors)}."
    busy = (
        " If an error reports too many requests, wait until the API server is less busy."
        if any(map(is_throttled, errors))
        else ""
    )
    remedy = (
        f"If an error contains 'forbidden', {rights[:1].lower()}{rights[1:]}{busy} If an object has an invalid"
        f" format, ask its owner to correct it. {again}"
    )
    return Finding(check, subject, UNKNOWN, count_unread(errors), "all objects read", why, remedy)


def _quote(errors: typing.Sequence[str]) -> str:
    return format_clause("; ".join(errors[:_QUOTED]))
