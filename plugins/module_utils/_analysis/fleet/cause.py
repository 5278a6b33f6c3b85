# SPDX-License-Identifier: GPL-3.0-or-later

"""The cause of a failure with its remedies. These depend on the link layer, because advice for RoCE (PFC, ECN, UDP
ports) is misleading on InfiniBand.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband

#: empty where it is not known
Link = typing.Literal["InfiniBand", "Ethernet", ""]


class Cause(typing.NamedTuple):
    """A cause of a failure with its remedies.

    :ivar why: the cause, as text
    :ivar remedy: remedy on any link layer
    :ivar infiniband: additional remedy on InfiniBand
    :ivar ethernet: additional remedy on Ethernet, for RoCE and iWARP
    """

    why: str
    remedy: str = ""
    infiniband: str = ""
    ethernet: str = ""

    def on(self, link: Link) -> tuple[str, str]:
        """Return the cause, and its remedy for a link layer: the general remedy and the one of the link layer. If the
        link layer is unknown, the remedy contains those of InfiniBand and of Ethernet, each with its name.

        :param link: ``InfiniBand`` or ``Ethernet``; empty if unknown
        """
        parts = [self.remedy]
        if link:
            parts.append(self.infiniband if link == "InfiniBand" else self.ethernet)
        else:
            parts += [
                f"On {name}: {text}"
                for name, text in (("InfiniBand", self.infiniband), ("Ethernet", self.ethernet))
                if text
            ]
        return self.why, " ".join(part for part in parts if part)


def link_of(fabric: Fabric) -> Link:
    """Return the link layer of a fabric: ``InfiniBand`` or ``Ethernet``."""
    return "InfiniBand" if is_infiniband(fabric) else "Ethernet"
