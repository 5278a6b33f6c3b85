# SPDX-License-Identifier: GPL-3.0-or-later

"""The time limits of a roll, its interruption, and the intent and plan that all of its threads share."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.node_roll import RollPlan
from ...._observe.kubernetes.patience import AWAY

Say = typing.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class RollLimits:
    """The time limits of a roll, in seconds.

    :ivar look: time between two reads of a node
    :ivar drain: limit until all pods are gone
    :ivar back: limit from the reset until the node is Ready
    :ivar settle: limit until a BMC reports the result of the reset, which some report late
    :ivar grace: if an earlier run has ordered a reset and the node has not rebooted after this time, the reset is
        ordered again. A Node stays Ready for 40 s after its kubelet has stopped
    :ivar whole: limit until the next node may begin. It includes the time until etcd has all of its members again,
        which takes 120 s and more on OpenShift
    :ivar operator: limit until another operator is done with a node that the roll has reset, for example the SR-IOV
        operator, which may reboot the node once more
    :ivar api: limit for which the API server may be unreachable in each step of the roll
    """

    look: float = 5.0
    drain: float = 1800.0
    back: float = 1800.0
    settle: float = 120.0
    grace: float = 120.0
    whole: float = 600.0
    operator: float = 3600.0
    api: float = AWAY


#: for who has no reason for others
USUAL = RollLimits()


class RollInterrupt:
    """A flag that all threads of a roll share. After an interruption, the roll changes nothing more and does not undo
    its changes. The next run continues it.

    :ivar over: whether the roll was interrupted
    """

    def __init__(self, sleep: typing.Callable[[float], None]) -> None:
        self._sleep, self.over = sleep, False

    def pause(self, seconds: float) -> None:
        """Sleep for a number of seconds, then raise an exception if the roll was interrupted.

        :raises KeyboardInterrupt: the roll was interrupted
        """
        self._sleep(seconds)
        self.check()

    def check(self) -> None:
        """Raise an exception if the roll was interrupted. Call this after each pause and before each change.

        :raises KeyboardInterrupt: the roll was interrupted
        """
        if self.over:
            raise KeyboardInterrupt


@dataclasses.dataclass
class CurrentRoll:
    """The roll that is carried out.

    :ivar intent: settings of the intent that all fabrics share
    :ivar inventory: names of the nodes of the run
    :ivar planned: the plan that is carried out
    :ivar finished: names of the nodes whose step of this roll is over
    """

    intent: ClusterIntent = dataclasses.field(default_factory=ClusterIntent)
    inventory: tuple[str, ...] = ()
    planned: RollPlan = dataclasses.field(default_factory=RollPlan)
    finished: set[str] = dataclasses.field(default_factory=set)
