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
    """The arguments that follow those of the intent on the command line and have the same name. The kernel uses the
    last one.

    :ivar undone: later arguments that disable a feature that the intent enables
    :ivar doubtful: later arguments whose effect on those of the intent is unknown
    """

    undone: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def cut_to_kernel(arguments: typing.Sequence[str]) -> tuple[str, ...]:
    """Return the arguments that the kernel reads. Arguments after ``--`` are for init and left out.

    :param arguments: arguments of the command line, in order
    """
    return tuple(arguments[: list(arguments).index("--")] if "--" in arguments else arguments)


def find_overridden(wanted: typing.Sequence[str], arguments: typing.Sequence[str]) -> Overridden:
    """Return the later arguments that may override those of the intent.

    Of several arguments with one name, the last one counts.

    :param wanted: arguments of the intent
    :param arguments: arguments of the kernel in their order, including all of the intent
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
