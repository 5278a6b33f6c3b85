# SPDX-License-Identifier: GPL-3.0-or-later

"""Find kernel arguments of the intent that a later argument on the command line of a node overrides."""

from __future__ import annotations

import typing

#: keys whose arguments add to each other, so that a later one undoes none before it
_ADDS = (
    "console",
    "dyndbg",
    "earlycon",
    "hugepages",
    "hugepagesz",
    "initcall_blacklist",
    "intel_iommu",
    "iommu",
    "memmap",
    "module_blacklist",
    "pci",
    "rd.driver.blacklist",
)
#: values that switch off what another argument of the key switches on
_OFF = ("0", "disable", "disabled", "n", "no", "nopt", "off")


class Overridden(typing.NamedTuple):
    """Arguments of the intent behind which another argument of the same key stands.

    :ivar undone: the later arguments that switch them off
    :ivar doubtful: other later arguments, of which it is not known what they do to them
    """

    undone: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def cut_to_kernel(arguments: typing.Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of the kernel: those behind ``--`` are of init."""
    return tuple(arguments[: list(arguments).index("--")] if "--" in arguments else arguments)


def find_overridden(wanted: typing.Sequence[str], arguments: typing.Sequence[str]) -> Overridden:
    """Return the later arguments that may undo those of the intent: of several with one key the last one counts.

    :param arguments: of the kernel, in their order, with all that are wanted
    """
    undone, doubtful = [], []
    for argument in wanted:
        last = max(place for place, seen in enumerate(arguments) if seen == argument)
        key, _equals, own = argument.partition("=")
        for later in arguments[last + 1 :]:
            name, _blank, value = later.partition("=")
            if name != key or later in wanted:
                continue
            if value in _OFF and own not in _OFF:
                undone.append(later)
            elif key not in _ADDS:
                doubtful.append(later)
    return Overridden(tuple(dict.fromkeys(undone)), tuple(dict.fromkeys(doubtful)))
