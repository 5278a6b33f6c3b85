# SPDX-License-Identifier: GPL-3.0-or-later

"""The clock of a node, beside the controller's."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.numbers import Moment, Seconds


@dataclasses.dataclass(frozen=True)
class NodeClock:
    """The time of a node's clock, between two moments of the controller's.

    :ivar seconds: since 1970-01-01 UTC, by the node's clock
    :ivar synchronised: whether the kernel's clock is kept by a time service; None where the kernel did not say
    :ivar error_seconds: the most that the kernel holds it to be off; counts only where it is synchronised
    :ivar asked: by the controller's clock, just before the node was asked; None where no controller stamped it
    :ivar answered: just after the answer
    """

    seconds: Moment
    synchronised: typing.Optional[bool] = None
    error_seconds: typing.Optional[Seconds] = None
    asked: typing.Optional[Moment] = None
    answered: typing.Optional[Moment] = None


#: clock of one node (module node_info)
ObservedClock = Observed[NodeClock]
