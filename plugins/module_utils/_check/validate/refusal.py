# SPDX-License-Identifier: GPL-3.0-or-later

"""A value of the intent that the collection refuses, and a number out of its range."""

from __future__ import annotations

import typing

from ..._model.run.findings import FAIL, Finding


def refuse_value(check_id: str, subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    """Return the finding for a value that the collection refuses.

    :param check_id: without the stage
    """
    return Finding(f"validate.{check_id}", subject, FAIL, measured, expected, why, remedy)


def check_range(place: str, value: int, low: int, high: int, unit: str) -> typing.Iterator[Finding]:
    """Refuse a number of a fabric below ``low`` or above ``high``."""
    if not low <= value <= high:
        why = "Out of what any HCA and its driver can do; the operator would refuse it, or fail on the node."
        yield refuse_value("numbers", place, f"{value} {unit}", f"{low} to {high} {unit}", why, "Correct the number.")
