# SPDX-License-Identifier: GPL-3.0-or-later

"""Verifies after a reset that a node has its desired settings."""

from __future__ import annotations

import typing

from ...._model.base.errors import RdmaError
from ...._model.kubernetes.node_roll import NodeDifference, NodeDifferences, NodeStep
from ...._observe.kubernetes.shell import Clock
from ...._parse.kubernetes.roll_mark import ANNOTATION
from ...._plan.node_firmware import FIRMWARE
from ...._plan.node_sources import KERNEL
from ..drain import NodeFailed
from ..node_sources import Sources
from .roll_limits import RollInterrupt, RollLimits

#: where to look for why something did not take
_WHERE = {
    "BIOS": "Check the log of the BMC and the BIOS setup screen of the node.",
    KERNEL: "Check /proc/cmdline of the node and the entries of its boot loader.",
    FIRMWARE: "Check mstconfig -e query on the node; some HCAs apply a setting only after a power loss.",
}


class SettingsCheck:
    """A client that compares the settings of nodes with the desired ones.

    :param sources: sources of the settings, such as the BIOS
    :param going: flag that shows an interruption of the roll
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param limits: time limits of the roll
    """

    def __init__(self, sources: Sources, going: RollInterrupt, clock: Clock, limits: RollLimits) -> None:
        self._sources, self._going, self._clock, self._limits = sources, going, clock, limits

    def has_differences(self, name: str) -> bool:
        """Return whether settings of a node differ from the desired ones. Settings that cannot be read count as
        different.

        :param name: name of the node
        """
        seen = self._sources.look([name]).get(name, NodeDifferences())
        return bool(seen.differences or seen.error or seen.blind or seen.unset)

    def await_settled(self, name: str) -> NodeDifferences:
        """Return the differences of a node that remain after its reset, from sources that read the node. As long as
        there are any, read again until the limit ``settle``, because some BMCs report the result of a reset late.

        :param name: name of the node
        """
        end = self._clock() + self._limits.settle
        while True:
            seen = self._sources.look([name], live_only=True).get(name, NodeDifferences())
            if not (seen.error or seen.differences) or self._clock() >= end:
                return seen
            self._going.pause(self._limits.look)

    def check_taken(self, step: NodeStep, seen: NodeDifferences) -> None:
        """Verify what was read of a node after its settings took effect.

        :param step: step of the node
        :param seen: differences of the node that remain
        :raises NodeFailed: the settings cannot be read, or settings without a reset differ
        """
        if seen.error:
            raise NodeFailed(
                f"it is unknown whether the node applied the settings: {seen.error}",
                "Restore the access to the BMC, then rerun: the node is not reset again",
            )
        if step.action == "set" and seen.differences:
            raise not_taken(step.node, seen.differences, "when they were set")


def not_taken(name: str, left: typing.Sequence[NodeDifference], when: str) -> RdmaError:
    """Return the error that lists the settings of a node that did not take effect, with the remedy.

    :param name: name of the node
    :param left: settings that did not take effect
    :param when: event after which they should be in effect, such as ``at the reset``
    """
    told = ", ".join(map(str, left))
    where = " ".join(_WHERE[source] for source in dict.fromkeys(one.source for one in left) if source in _WHERE)
    remedy = (
        f"{where} The node is not reset again for these settings. To retry, remove the annotation, then rerun: kubectl"
        f" annotate node {name} {ANNOTATION}-"
    )
    return NodeFailed(f"the node did not apply these settings {when}: {told}", remedy.strip())
