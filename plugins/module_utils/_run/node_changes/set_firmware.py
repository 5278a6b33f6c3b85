# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets the firmware of a node's HCAs with mstconfig, one HCA after the other, and verifies the result. Never resets an
HCA.
"""

from __future__ import annotations

import dataclasses
import time
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.operand import require_operand
from ..._model.node.firmware import FirmwareChange, NodeFirmware, way_of_reset
from ..._model.node.hca import NodeHcas
from ..._model.run.guard import LONGEST
from ..._observe.node.firmware import Tool, find_tool, read_firmware
from ..._observe.process import command
from ..._plan.firmware import WishesOf, list_changes, list_unmet, needs_reset

_SET_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class FirmwareOutcome:
    """The result of setting the firmware of a node's HCAs.

    :ivar changes: change of each HCA; an HCA without a difference has an empty change
    :ivar resets: instruction for the user how to put the settings of an HCA into effect, by PCI address; only for HCAs
        that need a reset
    """

    changes: tuple[FirmwareChange, ...]
    resets: dict[str, str]


def set_firmware(
    hcas: NodeHcas,
    root: str,
    chosen: typing.Sequence[str],
    wishes_of: WishesOf,
    dry: bool,
    clock: typing.Callable[[], float] = time.monotonic,
) -> FirmwareOutcome:
    """Set the firmware settings that differ, and verify them. No write is started that might end after ``LONGEST``
    seconds, because another run may change the cluster after that time.

    :param hcas: HCAs of the node
    :param root: sysfs of the kernel that the tools use
    :param chosen: PCI addresses of the HCAs; empty: all HCAs that mstconfig can set
    :param wishes_of: function that gets the PCI address of an HCA and returns its desired settings
    :param dry: whether nothing is changed
    :param clock: function that returns the time of a monotonic clock, in seconds
    :raises ToolMissing: mstconfig is not installed
    :raises FirmwareError: a setting cannot be set. Nothing was set
    :raises RdmaError: mstconfig failed, the time is over, the node has no such HCA, or the firmware did not accept a
        value
    """
    end = clock() + LONGEST
    tool = find_tool()
    seen = _read_chosen_firmware(hcas, root, chosen)
    planned = list_changes(seen, wishes_of)
    done: list[str] = []
    for change in planned if not dry else ():
        if change.after:
            if clock() + _SET_SECONDS > end:
                told = f"Set before: {', '.join(done)}" if done else "Nothing was set"
                raise RdmaError(
                    f"{change.address} was not set because setting all HCAs took more than"
                    f" {LONGEST - _SET_SECONDS:.0f} s",
                    f"{told}. Rerun",
                )
            _set_firmware_values(tool, change, done)
            done.append(change.address)
    later = _read_chosen_firmware(hcas, root, done) if done else NodeFirmware()
    after = {hca.address: hca for hca in (*seen.hcas, *later.hcas)}
    for address in done:
        missed = list_unmet(after[address], wishes_of(address))
        if missed:
            raise RdmaError(
                f"{address}: the tool accepted {', '.join(missed)}, but the next value differs",
                f"Check mstconfig -d {address} -e query on the node",
            )
    due = [
        change
        for change in planned
        if (dry and change.after)
        or needs_reset(after[change.address], wishes_of(change.address), change.address in done)
    ]
    return FirmwareOutcome(planned, {change.address: way_of_reset(change.device, change.address) for change in due})


def _read_chosen_firmware(hcas: NodeHcas, root: str, chosen: typing.Sequence[str]) -> NodeFirmware:
    seen = read_firmware(hcas, root, chosen, every=True)
    missing = sorted({*chosen} - {hca.address for hca in seen.hcas})
    if missing:
        raise RdmaError(
            f"the node has no physical function {', '.join(missing)}",
            "Use addresses that lspci -D shows on this node",
        )
    # with none named, those that no tool can set are not meant
    return seen if chosen else NodeFirmware(tuple(hca for hca in seen.hcas if hca.settings or hca.errors))


def _set_firmware_values(tool: Tool, change: FirmwareChange, done: typing.Sequence[str]) -> None:
    wishes = [require_operand(f"{name}={value}", "a setting of the firmware") for name, value in change.after.items()]
    finished = command.run(
        [tool.path, "-d", require_operand(change.address, "the PCI address"), "-y", "set", *wishes], _SET_SECONDS
    )
    if finished.rc != 0:
        before = f"Set before: {', '.join(done)}" if done else "Nothing was set"
        raise RdmaError(finished.failure, before)
