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
    "memmap",
    "module_blacklist",
    "rd.driver.blacklist",
)
#: keys with a list of options between commas. The arguments of such a key add to each other, and the last value of each
#: option counts (pci_setup of drivers/pci/pci.c, iommu_setup of arch/x86/kernel/pci-dma.c, intel_iommu_setup)
_LISTS = ("intel_iommu", "iommu", "pci")
#: what an option without "=" sets, where another option sets the same
_OPTIONS: typing.Mapping[tuple[str, str], typing.Mapping[str, str]] = {
    ("intel_iommu", "on"): {"intel_iommu": "on"},
    ("intel_iommu", "off"): {"intel_iommu": "off"},
    ("intel_iommu", "sm_on"): {"scalable mode": "on"},
    ("intel_iommu", "sm_off"): {"scalable mode": "off"},
    ("iommu", "force"): {"iommu": "on"},
    ("iommu", "noforce"): {"iommu": "default"},
    ("iommu", "off"): {"iommu": "off", "intel_iommu": "off", "passthrough": "off"},
    ("iommu", "pt"): {"passthrough": "on"},
    ("iommu", "nopt"): {"passthrough": "off"},
    ("pci", "realloc"): {"pci=realloc": "on"},
    ("pci", "nomsi"): {"msi": "off"},
    ("pci", "noaer"): {"aer": "off"},
    ("pci", "use_crs"): {"crs": "on"},
    ("pci", "nocrs"): {"crs": "off"},
}
#: values that switch off what another argument of the key switches on
_OFF = ("0", "disable", "disabled", "n", "no", "nopt", "off")
_ON = ("1", "y", "yes", "on", "enable", "enabled")


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

    Of several arguments with one name, the last one counts. Of the keys in ``_LISTS``, this holds for each option.

    :param wanted: arguments of the intent
    :param arguments: arguments of the kernel in their order, including all of the intent
    """
    undone: list[str] = []
    doubtful: list[str] = []
    for argument in wanted:
        last = max(place for place, seen in enumerate(arguments) if seen == argument)
        key, _equals, own = argument.partition("=")
        settings = _read_settings(argument)
        for later in arguments[last + 1 :]:
            name, _blank, value = later.partition("=")
            if later in wanted:
                continue
            if settings:
                undone.extend([later] if _differ(settings, _read_settings(later)) else ())
            elif name == key and key not in (*_ADDS, *_LISTS):
                (undone if value in _OFF and own not in _OFF else doubtful).append(later)
    return Overridden(tuple(dict.fromkeys(undone)), tuple(dict.fromkeys(doubtful)))


def _differ(first: typing.Mapping[str, str], second: typing.Mapping[str, str]) -> bool:
    """Return whether two arguments give one setting two values."""
    return any(second.get(setting, value) != value for setting, value in first.items())


def _read_settings(argument: str) -> typing.Mapping[str, str]:
    """Return the value of each setting of an argument with a list of options, ``on`` and ``off`` for switches; empty
    for arguments of other keys.
    """
    key, _equals, options = argument.partition("=")
    if key == "iommu.passthrough":
        return {"passthrough": _read_switch(options)}
    if key not in _LISTS:
        return {}
    settings: dict[str, str] = {}
    for option in options.split(","):
        name, equals, value = option.partition("=")
        known = None if equals else _OPTIONS.get((key, option))
        settings.update(known or {f"{key}={name}": _read_switch(value) if equals else "on"})
    return settings


def _read_switch(value: str) -> str:
    """Return ``on`` or ``off`` for a value of a switch, and any other value as it is."""
    if value in _ON:
        return "on"
    return "off" if value in _OFF else value
