# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the arguments of the running kernel, and of the kernels that the boot loader can start."""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError

Arguments = tuple[str, ...]

#: parted by spaces that are not in double quotes [linux lib/cmdline.c next_arg]
_ARGUMENT = re.compile(r'(?:[^\s"]|"[^"]*(?:"|\Z))+')
#: a line of grub.cfg that starts a kernel; linuxefi and linux16 are those of older releases
_LINUX = re.compile(r"\A\s*linux(?:efi|16)?\s+\S+(.*)\Z", re.DOTALL)
_GRUBBY = re.compile(r'\Aargs="(.*)"\s*\Z', re.DOTALL)
_DROP_IN = re.compile(r'\AGRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX((?: [^\s"$`\\]+)*)"\s*\Z')


def parse_command_line(text: str) -> Arguments:
    """Return the arguments in a kernel command line, such as the contents of /proc/cmdline, in their order. An argument
    may contain blanks within double quotes.
    """
    return tuple(_ARGUMENT.findall(text))


def parse_grub_entries(text: str) -> tuple[Arguments, ...]:
    """Return the arguments of each entry of grub.cfg that boots a system, in the order of the file. Such an entry has
    the argument ``root=``. Other entries, such as that of a memory test, are left out.

    :raises ParseError: grub.cfg has no such entry
    """
    found = [
        parse_command_line(match.group(1)) for line in text.splitlines() for match in [_LINUX.match(line)] if match
    ]
    systems = tuple(arguments for arguments in found if any(argument.startswith("root=") for argument in arguments))
    if not systems:
        raise ParseError("grub.cfg", text[-200:], "a file with a line 'linux ... root=...'")
    return systems


def parse_grubby_entries(text: str) -> tuple[Arguments, ...]:
    """Return the arguments of the kernel in each boot entry in the output of ``grubby --info=ALL``, in the order of the
    output.

    :raises ParseError: the output contains no entry
    """
    found = tuple(
        parse_command_line(match.group(1)) for line in text.splitlines() for match in [_GRUBBY.match(line)] if match
    )
    if not found:
        raise ParseError("grubby --info=ALL", text, 'a list with a line args="..."')
    return found


def drop_in(text: str) -> Arguments:
    """Return the kernel arguments in the GRUB drop-in file that linerate.rdma writes. The result is empty if the file
    adds none.

    :raises ParseError: the file does not have the form that linerate.rdma writes
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    matches = [_DROP_IN.match(line) for line in lines]
    if len(matches) != 1 or matches[0] is None:
        raise ParseError("the drop-in of GRUB", text, "the content that this collection writes")
    return tuple(matches[0].group(1).split())
