# SPDX-License-Identifier: GPL-3.0-or-later

"""Create the findings on values of the intent that the collection does not accept, and on numbers out of range."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.run.findings import FAIL, Finding


def format_value(value: typing.Any) -> str:
    """Return a value of the intent as text for a finding: a boolean as YAML writes it, a list as the number
    of its items.

    :param value: value that was loaded from the intent
    """
    if isinstance(value, bool):
        return str(value).lower()
    return count_of(len(value), "item") if isinstance(value, (tuple, list)) else str(value)


def refuse_value(check_id: str, subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    """Return a failed finding on a value of the intent that the collection does not accept.

    :param check_id: id of the check without the stage
    :param subject: path of the value in the intent
    :param measured: refused value, as text
    :param expected: accepted values, as text
    :param why: consequence of the value
    :param remedy: instruction to the user that resolves the cause
    """
    return Finding(f"validate.{check_id}", subject, FAIL, measured, expected, why, end_with_rerun(remedy))


def end_with_rerun(remedy: str) -> str:
    """Return a remedy that ends with the instruction to run stage validate again.

    :param remedy: instruction to the user that resolves the cause
    """
    return remedy if "run stage" in remedy else f"{remedy.rstrip('. ')}. Then run stage validate again."


def check_range(place: str, value: int, low: int, high: int, unit: str) -> typing.Iterator[Finding]:
    """Yield a failed finding if a number of a fabric is below ``low`` or above ``high``.

    :param place: path of the number in the intent
    :param value: number in the intent
    :param low: smallest accepted number
    :param high: largest accepted number
    :param unit: unit of the number, for the message
    """
    if not low <= value <= high:
        why = "No HCA and driver support this number. The operator would reject it, or fail on the node."
        yield refuse_value(
            "numbers",
            place,
            f"{value} {unit}",
            f"{low} to {high} {unit}",
            why,
            f"Set {place} to a number in this range.",
        )
