# SPDX-License-Identifier: GPL-3.0-or-later

"""What a teardown knows of the NICs that nodes use themselves. It asks no node: the last run of stage network did."""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.disruption.driver_links import CHECK, DriverUses
from ...._model.run.findings import FAIL, Finding, Waiver


@dataclasses.dataclass(frozen=True)
class KnownUses:
    """The uses of NICs by the nodes themselves, as the last run of stage network saw them.

    :ivar functions: use of physical functions as text, by node, and for each node by interface or PCI address. A node
        whose default routes are unknown is left out
    :ivar driven: use of NICs whose driver NVIDIA's network operator replaces; None if it is not known
    :ivar uppers: names of the interfaces above the physical functions, by node and by PCI address
    :ivar waivers: waivers of the intent
    :ivar told: warnings so far, as text; ``warn`` appends to it
    """

    functions: typing.Mapping[str, typing.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    driven: DriverUses = None
    uppers: typing.Mapping[str, typing.Mapping[str, typing.Sequence[str]]] = dataclasses.field(default_factory=dict)
    waivers: typing.Sequence[Waiver] = ()
    told: list[str] = dataclasses.field(default_factory=list)

    def warn(self, text: str) -> None:
        """Append a warning to ``told``.

        :param text: the warning
        """
        self.told.append(text)

    def is_waived(self, subject: str, measured: str) -> bool:
        """Return whether a waiver for network.lint_uplink permits that a node loses the link of a NIC that it uses
        itself.

        :param subject: subject of the waiver
        :param measured: use of the NIC, as text
        """
        why = "The node loses the link of a NIC that it uses itself."
        finding = Finding(CHECK, subject, FAIL, measured, "", why, describe_waiver(subject))
        return any(waiver.covers(finding) for waiver in self.waivers)


def describe_waiver(subject: str) -> str:
    """Return the remedy for the finding that a node uses a NIC itself, with the waiver that permits its loss.

    :param subject: subject of the waiver
    """
    return (
        "Move what the NIC carries to another NIC. If the loss of the link is acceptable, add a waiver for"
        f" {CHECK} with the subject '{subject}' to rdma_waivers, and get access to the console of the node."
    )
