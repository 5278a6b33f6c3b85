# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments of a node: the desired ones and their state."""

from __future__ import annotations

import dataclasses

from ..base.observed import Observed

#: below the root of a node: what of its boot loader is ours, with update-grub and with grubby
DROP_IN = "etc/default/grub.d/99-linerate.cfg"
RECORD = "etc/linerate-rdma/kernel-arguments"
#: the arguments of each intent, a line each: its name, and its arguments
INTENTS = "etc/linerate-rdma/kernel-arguments.intents"


@dataclasses.dataclass(frozen=True)
class KernelArguments:
    """The state of the desired kernel arguments on a node.

    :ivar missing: desired arguments that the running kernel does not have
    :ivar refusal: why they cannot be stored for the next boot, with a remedy
    :ivar boot: id of the current boot
    :ivar by_pod: whether an observer (pod) read the state; it cannot write arguments
    """

    missing: tuple[str, ...] = ()
    refusal: str = ""
    boot: str = ""
    by_pod: bool = False


#: kernel arguments of the collection that one node still gets at its next boot, after the teardown
LeftArguments = Observed[tuple[str, ...]]


#: kernel arguments of one node
ObservedKernelArguments = Observed[KernelArguments]
