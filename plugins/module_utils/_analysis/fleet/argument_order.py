# SPDX-License-Identifier: GPL-3.0-or-later

"""Find kernel arguments that a command line lacks, or has at a place where they mean something else. Pure."""

from __future__ import annotations

import typing

Arguments = tuple[str, ...]

#: names of arguments whose meaning depends on their place
_PAGES, _SIZE, _DEFAULT_SIZE, _CONSOLE = "hugepages", "hugepagesz", "default_hugepagesz", "console"


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
