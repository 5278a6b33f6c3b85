# SPDX-License-Identifier: GPL-3.0-or-later

"""A cause with its remedy, where the remedy depends on the link layer: advice on RoCE (PFC, ECN, UDP ports) misleads on
InfiniBand."""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband

#: empty where it is not known
Link = typing.Literal["InfiniBand", "Ethernet", ""]


class Cause(typing.NamedTuple):
    """A cause.

    :ivar remedy: on any link layer
    :ivar infiniband: what to do besides on InfiniBand
    :ivar ethernet: what to do besides on Ethernet: RoCE and iWARP
    """

    why: str
    remedy: str = ""
    infiniband: str = ""
    ethernet: str = ""

    def on(self, link: Link) -> tuple[str, str]:
        """Return the cause, and its remedy on a link layer; where that is not known, the remedies on both, by name."""
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
    """Return the link layer of a fabric."""
    return "InfiniBand" if is_infiniband(fabric) else "Ethernet"
