# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments for GRUB on Debian and Ubuntu: a drop-in that GRUB's shell reads after /etc/default/grub."""

from __future__ import annotations

import typing


def grub_drop_in(arguments: typing.Sequence[str]) -> str:
    """Return the text of the drop-in file for GRUB, which appends arguments to those that other files set.

    :param arguments: kernel arguments without characters that a shell would interpret
    """
    head = "# written by linerate.rdma; its module kernel_arguments takes it back"
    return f'{head}\nGRUB_CMDLINE_LINUX="{" ".join(("$GRUB_CMDLINE_LINUX", *arguments))}"\n'
