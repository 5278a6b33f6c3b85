# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding on objects of the cluster that a stage needs and that could not be read."""

from __future__ import annotations

import typing

from ..._model.run.findings import UNKNOWN, Finding

#: errors that the finding quotes
_QUOTED = 5


def describe_unread(check: str, subject: str, errors: typing.Sequence[str], rights: str) -> Finding:
    """Return the finding on errors of the API server, and on objects that are not of their form.

    :param rights: instruction by which the user gets the rights to read them
    """
    why = f"The API server did not let us read it, or it is not of its form: {'; '.join(errors[:_QUOTED])}."
    remedy = f"{rights} Have who made an object that is not of its form correct it."
    return Finding(check, subject, UNKNOWN, f"{len(errors)} unread", "everything", why, remedy)
