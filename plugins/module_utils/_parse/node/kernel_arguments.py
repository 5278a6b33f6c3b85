# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the arguments of the running kernel, and of the kernels that the boot loader can start."""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError

Arguments = tuple[str, ...]

#: names of arguments whose meaning depends on their place
_PAGES, _SIZE, _DEFAULT_SIZE, _CONSOLE = "hugepages", "hugepagesz", "default_hugepagesz", "console"
#: parted by spaces that are not in double quotes [linux lib/cmdline.c next_arg]
_ARGUMENT = re.compile(r'(?:[^\s"]|"[^"]*(?:"|\Z))+')
#: a line of grub.cfg that starts a kernel; linuxefi and linux16 are those of older releases
_LINUX = re.compile(r"\A\s*linux(?:efi|16)?\s+\S+(.*)\Z", re.DOTALL)
_GRUBBY = re.compile(r'\Aargs="(.*)"\s*\Z', re.DOTALL)
_DROP_IN = re.compile(r'\AGRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX((?: [^\s"$`\\]+)*)"\s*\Z')


def find_missing_arguments(wanted: Arguments, there: Arguments) -> Arguments:
    """Return the arguments of ``wanted`` that a command line lacks, or that mean something else on it because of their
    place: ``hugepages`` is the number of pages of the size before it, and the last ``console`` is /dev/console.

    :param wanted: desired arguments, in their order
    :param there: arguments of the command line, in their order
    """
    missing = {argument for argument in wanted if argument not in there}
    consoles = _select(wanted, (_CONSOLE,))
    if len(consoles) > 1:
        last = [argument for argument in there if argument in consoles]
        missing |= set(consoles[-1:]) - set(last[-1:])
    default, pages = _read_huge_pages(there)
    for size, counts in _read_huge_pages(wanted)[1].items():
        # the size may be named on one of both, and be the default on the other
        found = [*pages.get(size, ()), *(pages.get("", ()) if size == default else ())]
        found += pages.get(default, ()) if not size and default else ()
        if set(found) != set(counts) or len(set(counts)) > 1:
            missing |= set(_select(wanted, (_PAGES, _SIZE)))
    return tuple(argument for argument in dict.fromkeys(wanted) if argument in missing)


def _select(arguments: Arguments, keys: Arguments) -> Arguments:
    """Return the arguments with one of some names, in their order."""
    return tuple(argument for argument in arguments if argument.partition("=")[0] in keys)


def _read_huge_pages(arguments: Arguments) -> tuple[str, dict[str, list[str]]]:
    """Return the default size of huge pages as the command line sets it, empty if it does not, and the numbers of pages
    that it sets for each size. The size is empty for numbers without a size before them, which are for the default.
    The kernel ignores the second number of a size, and earlier releases the first one.
    [linux mm/hugetlb.c hugepages_setup, hugepagesz_setup, default_hugepagesz_setup]

    :param arguments: arguments of the command line, in their order
    """
    default, size, found = "", "", typing.cast(dict[str, list[str]], {})
    for argument in arguments:
        key, _equals, value = argument.partition("=")
        if key == _DEFAULT_SIZE:
            default, size = value.upper(), ""
        elif key == _SIZE:
            size = value.upper()
        elif key == _PAGES:
            found.setdefault(size, []).append(value)
    return default, found


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
