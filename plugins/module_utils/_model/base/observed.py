# SPDX-License-Identifier: GPL-3.0-or-later

"""The observation of one node."""

from __future__ import annotations

import dataclasses
import typing

Value = typing.TypeVar("Value")


@dataclasses.dataclass(frozen=True)
class Observed(typing.Generic[Value]):
    """The answer of one node, or why there is no answer.

    :ivar value: the answer; None beside an error
    :ivar error: the cause, as text; None beside a value
    """

    EITHER = (("value",), ("error",))

    value: typing.Optional[Value] = None
    error: typing.Optional[str] = None


def is_observed(cls: typing.Any) -> bool:
    """Return whether a type is the observation of one node, with or without the type of its value."""
    return (typing.get_origin(cls) or cls) is Observed
