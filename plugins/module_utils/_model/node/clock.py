# SPDX-License-Identifier: GPL-3.0-or-later

"""The clock of a node in comparison with the controller's clock."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.numbers import Moment, Seconds


@dataclasses.dataclass(frozen=True)
class NodeClock:
    """The time of a node's clock, between two timestamps of the controller.

    :ivar seconds: seconds since 1970-01-01 UTC, by the node's clock
    :ivar synchronised: whether a time service synchronizes the kernel's clock; None if the kernel did not report it
    :ivar error_seconds: maximum error as estimated by the kernel, in seconds; valid only if synchronized
    :ivar asked: time of the controller just before the query; None if the controller took no time
    :ivar answered: controller's time just after the answer
    """

    seconds: Moment
    synchronised: typing.Optional[bool] = None
    error_seconds: typing.Optional[Seconds] = None
    asked: typing.Optional[Moment] = None
    answered: typing.Optional[Moment] = None


#: clock of one node (module node_info)
ObservedClock = Observed[NodeClock]
