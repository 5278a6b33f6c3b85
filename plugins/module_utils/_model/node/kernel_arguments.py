# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of a node's kernel: what is asked of them, and what the node makes of it."""

from __future__ import annotations

import dataclasses

from ..base.observed import Observed

#: below the root of a node: what of its boot loader is ours, with update-grub and with grubby
DROP_IN = "etc/default/grub.d/99-linerate.cfg"
RECORD = "etc/linerate-rdma/kernel-arguments"


@dataclasses.dataclass(frozen=True)
class KernelArguments:
    """The state of the wanted kernel arguments on a node.

    :ivar missing: of those, what the running kernel was not given
    :ivar refusal: why it can't be written for the next boot, with what to do
    :ivar boot: id of the boot that runs
    :ivar by_pod: an observer has looked, and writes nothing
    """

    missing: tuple[str, ...] = ()
    refusal: str = ""
    boot: str = ""
    by_pod: bool = False


#: kernel arguments of the collection that one node still gets at its next boot, after the teardown
LeftArguments = Observed[tuple[str, ...]]


#: kernel arguments of one node
ObservedKernelArguments = Observed[KernelArguments]
