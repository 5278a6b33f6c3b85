# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of a node's kernel: what is asked of them, and what the node makes of it."""

from __future__ import annotations

import dataclasses
import typing

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


@dataclasses.dataclass(frozen=True)
class LeftArguments:
    """Those of the collection that the next boot of a node still gets after the teardown, or why there is no answer."""

    value: typing.Optional[tuple[str, ...]] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ObservedKernelArguments:
    """The same of one node, or why there is no answer."""

    value: typing.Optional[KernelArguments] = None
    error: typing.Optional[str] = None
