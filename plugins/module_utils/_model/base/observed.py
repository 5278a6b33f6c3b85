# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a query of one node: its answer or an error."""

from __future__ import annotations

import dataclasses
import typing

Value = typing.TypeVar("Value")


@dataclasses.dataclass(frozen=True)
class Observed(typing.Generic[Value]):
    """The answer of one node, or the reason why there is none.

    :ivar value: data that the node returned; None if there is an error
    :ivar error: reason why there is no data, as text; None if there is a value
    """

    EITHER = (("value",), ("error",))

    value: typing.Optional[Value] = None
    error: typing.Optional[str] = None


def is_observed(cls: typing.Any) -> bool:
    """Return whether a type is ``Observed``, with or without a type argument."""
    return (typing.get_origin(cls) or cls) is Observed
