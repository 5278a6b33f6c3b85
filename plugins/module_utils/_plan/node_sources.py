# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs on a node from what is wanted of it, by each source that a reset brings into force. Pure."""

from __future__ import annotations

import typing

from .._check.fleet.bios import Wanted, in_words, states
from .._check.fleet.hcas_of_fabric import Membership
from .._check.platform.firmware import Fleet, in_force, wishes
from .._model.bios import NodeBios
from .._model.firmware import ObservedFirmware
from .._model.kernel_arguments import ObservedKernelArguments
from .._model.node_roll import Difference, Needs, Seen
from .._model.platform import ObservedPlatform
from .bios import plan as plan_bios

KERNEL, FIRMWARE = "kernel argument", "firmware"


def of_bios(bios: NodeBios, wanted: Wanted) -> Seen:
    """What of a BIOS is not as wanted, and what of that nobody can set."""
    planned = plan_bios(bios, wanted)
    waits_not = {key for key in wanted if all(not write.reset_required for write in planned.writes if write.key == key)}
    found = []
    for state in states(bios, wanted):
        if state.state in ("wrong", "pending"):
            written = any(write.key == state.key for write in planned.writes)
            needs: Needs = "nothing" if state.state == "wrong" and written and state.key in waits_not else "reboot"
            how = "set by its BMC" if written else "waits for a reset"
            found.append(Difference("BIOS", state.key, state.measured, in_words(state.wanted), needs, how))
    return Seen(tuple(found), tuple(f"BIOS {one.key}: {one.why.rstrip('.')}. {one.remedy.rstrip('.')}." for one in planned.refusals))


def of_kernel(observed: ObservedKernelArguments, wanted: typing.Sequence[str]) -> Seen:
    """Which of the wanted kernel arguments the node runs without. They were written for the next boot before, by the node itself."""
    value = observed.value
    if value is None or observed.error is not None:
        return Seen(error=f"its kernel arguments are not known: {observed.error or 'empty answer'}") if wanted else Seen()
    missing = [argument for argument in wanted if argument in value.missing]
    refusals = (f"Kernel arguments {', '.join(missing)}: {value.refusal}",) if missing and value.refusal else ()
    differences = tuple(Difference(KERNEL, argument, "absent", "set", how="by its boot loader") for argument in missing)
    return Seen(differences, refusals, boots=(value.boot,))


def of_firmware(node: str, memberships: typing.Iterable[Membership], platform: ObservedPlatform, fleet: Fleet) -> typing.Optional[Seen]:
    """Which settings that the intent wants wait for a reset in the firmware of the node's HCAs; None where no tool says what waits.

    What is not set at all is no matter of a reset, and neither are HCAs on which the Arm cores of a BlueField or NVIDIA's operator decide. A warm reboot does
    not always load settings, and a BlueField takes nothing less than a power cycle.
    """
    observed = fleet.firmware.get(node, ObservedFirmware(error="was not asked"))
    if platform.value is None or platform.error is not None or observed.value is None or observed.error is not None:
        return Seen(blind=f"the firmware of its HCAs is not known: {platform.error or observed.error or 'empty answer'}")
    functions = {function.address: function for function in platform.value.functions}
    fabrics = {fabric.name: fabric for fabric in fleet.intent.fabrics}
    found, blind, asked = typing.cast(typing.List[Difference], []), typing.cast(typing.List[str], []), False
    for membership in memberships:
        for hca in (member.hca for member in membership.members.get(node, ())):
            function = functions.get(hca.pci.address) if hca.pci else None
            seen, nic = (fleet.of(node, function.address), fleet.nic(node, function.address)) if function is not None else (None, None)
            if function is None or seen is None or seen.dpu or (nic is not None and (nic.dpu or nic.configured)):
                continue
            asked = asked or bool(seen.settings or seen.errors)
            blind += seen.errors
            fabric = fabrics[membership.fabric]
            for wish in wishes(fabric, seen, fleet.intent):
                setting = seen.setting(wish.name)
                if setting is not None and wish.met(setting.next) and in_force(wish, setting, fabric, function) is False:
                    key, now, later = f"{seen.address} {wish.name}", str(setting.current), str(setting.next)
                    found.append(Difference(FIRMWARE, key, now, later, "power_cycle", "waits for a reset"))
    if not asked:
        return None
    boot = platform.value.boot
    if found and not boot:
        return Seen(error="the boot in which its firmware was looked at is not known")
    return Seen(tuple(dict.fromkeys(found)), boots=(boot,) if boot else (), blind="; ".join(dict.fromkeys(blind)))
