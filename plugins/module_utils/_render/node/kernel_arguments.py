# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments as GRUB takes them on Debian and Ubuntu: a drop-in of its settings, which its shell reads after
/etc/default/grub."""

from __future__ import annotations

import typing


def grub_drop_in(arguments: typing.Sequence[str]) -> str:
    """Return the file; it adds to what the others have set.

    :param arguments: without what a shell takes apart
    """
    head = "# written by linerate.rdma; its module kernel_arguments takes it back"
    return f'{head}\nGRUB_CMDLINE_LINUX="{" ".join(("$GRUB_CMDLINE_LINUX", *arguments))}"\n'
