# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan which firmware settings of HCAs to write, from the reported and the desired settings. If one of them cannot be
written, none is written.
"""

from __future__ import annotations

import re
import typing

from .._model.base.errors import RdmaError
from .._model.node.firmware import FirmwareChange, HcaFirmware, NodeFirmware, is_equal, parse_number

#: a value goes to the tool behind a name: neither an option of it nor two of them
_VALUE = re.compile(r"\A[A-Za-z0-9_][A-Za-z0-9_.:,]{0,127}\Z", re.ASCII)
#: what the tool shows only while ADVANCED_PCI_SETTINGS is on
_ADVANCED = ("PCI_WR_ORDERING", "MAX_ACC_OUT_READ")
Wishes = typing.Mapping[str, str]
#: what is wished of an HCA, by its address
WishesOf = typing.Callable[[str], Wishes]


class FirmwareError(RdmaError):
    """Raised if a desired firmware setting cannot be written. No setting was written."""


def list_changes(seen: NodeFirmware, wishes_of: WishesOf) -> tuple[FirmwareChange, ...]:
    """Return the settings to write to each HCA, in the order of the HCAs. The desired settings are compared with the
    values that the firmware will use after the next reset, so a value that is stored already is not written again.

    :param seen: firmware settings that the HCAs of the node report
    :param wishes_of: function that returns the desired settings of an HCA by its PCI address
    :raises FirmwareError: a setting cannot be written. The message lists the problems of all HCAs
    """
    values = dict.fromkeys(item for hca in seen.hcas for item in wishes_of(hca.address).items())
    problems = [f"{value!r} is not a valid value of {name}" for name, value in values if not _VALUE.match(value)]
    for hca in seen.hcas:
        problems += [f"{hca.address}: {problem}" for problem in _list_firmware_problems(hca, wishes_of(hca.address))]
    if problems:
        raise FirmwareError(
            "; ".join(problems), "No setting was written. Correct the settings, or select other devices, then rerun"
        )
    return tuple(_build_firmware_change(hca, wishes_of(hca.address)) for hca in seen.hcas)


def needs_reset(seen: HcaFirmware, wishes: Wishes, changed: bool) -> bool:
    """Return whether a reset is needed before the desired settings take effect. If the firmware does not report its
    current values, a reset is needed after each change.

    :param seen: firmware settings that the HCA reports
    :param wishes: desired settings of the HCA
    :param changed: whether settings of the HCA were written
    """
    settings = [setting for setting in seen.settings if setting.name in wishes]
    return any(setting.pending for setting in settings) or (
        changed and any(setting.current is None for setting in settings)
    )


def list_unmet(seen: HcaFirmware, wishes: Wishes) -> tuple[str, ...]:
    """Return the names of the desired settings that the HCA will not have after the next reset.

    :param seen: firmware settings that the HCA reports
    :param wishes: desired settings of the HCA
    """
    return tuple(name for name, value in wishes.items() if not _is_next_value(seen, name, value))


def _list_firmware_problems(hca: HcaFirmware, wishes: Wishes) -> typing.Iterator[str]:
    if hca.errors or not hca.settings:
        yield "; ".join(hca.errors) or "; ".join(hca.not_asked) or "its settings are unknown"
        return
    if hca.dpu:
        yield "the HCA is a BlueField in DPU mode: its Arm cores manage its settings, so the host must not change them"
        return
    for name, value in wishes.items():
        setting = hca.setting(name)
        if setting is None:
            hint = (
                (
                    ": the firmware reports this setting only after ADVANCED_PCI_SETTINGS is set to True and the HCA is"
                    " reset"
                )
                if name in _ADVANCED
                else ""
            )
            yield f"its firmware has no setting {name}{hint}"
        elif setting.read_only and not _is_next_value(hca, name, value):
            yield f"{name} is read-only"


def _build_firmware_change(hca: HcaFirmware, wishes: Wishes) -> FirmwareChange:
    names = list_unmet(hca, wishes)
    return FirmwareChange(
        hca.address,
        hca.device,
        {name: _get_next_value(hca, name) for name in names},
        {name: _for_tool(wishes[name]) for name in names},
    )


def _is_next_value(hca: HcaFirmware, name: str, value: str) -> bool:
    return is_equal(_get_next_value(hca, name), value)


def _get_next_value(hca: HcaFirmware, name: str) -> str:
    setting = hca.setting(name)
    return setting.next or "N/A" if setting is not None else "N/A"


def _for_tool(value: str) -> str:
    """Return a value in the form that mstconfig accepts. A boolean becomes 1 or 0, which all its versions accept, and a
    number is written in decimal.
    """
    words = {"true": "1", "yes": "1", "false": "0", "no": "0"}
    found = words.get(value.lower(), value)
    return str(parse_number(found)) if parse_number(found) is not None else found
