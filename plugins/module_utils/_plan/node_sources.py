# SPDX-License-Identifier: GPL-3.0-or-later

"""The differences of a node from its desired settings, for each kind of setting that a reset applies: BIOS, kernel
arguments, and firmware of HCAs. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.fleet.bios import Wanted, in_words, list_states
from .._analysis.fleet.hcas_of_fabric import Membership
from .._check.platform.firmware_fleet import Fleet
from .._model.base.text import join_first
from .._model.kubernetes.node_roll import Needs, NodeDifference, NodeDifferences
from .._model.kubernetes.observers import LOOKS_ONLY
from .._model.node.bios import NodeBios
from .._model.node.firmware import ObservedFirmware, ObservedFirmwareSet
from .._model.node.kernel_arguments import ObservedKernelArguments
from .._model.node.platform import ObservedPlatform
from .bios import plan_bios
from .node_firmware import plan_host

KERNEL = "kernel argument"
#: of the BIOS attributes that others have changed, those that are named
_NAMED = 8


def look_at_bios(bios: NodeBios, wanted: Wanted) -> NodeDifferences:
    """Return the BIOS settings of a node that differ from the desired ones. Add a refusal with a remedy for each
    setting that its BMC cannot write, and a note on values that another user or program has saved at the BMC.

    :param bios: BIOS of the node
    :param wanted: accepted values of each BIOS setting, by key of the intent
    """
    planned = plan_bios(bios, wanted)
    waits_not = {key for key in wanted if all(not write.reset_required for write in planned.writes if write.key == key)}
    found = []
    for state in list_states(bios, wanted):
        if state.state in ("wrong", "pending"):
            written = any(write.key == state.key for write in planned.writes)
            needs: Needs = "nothing" if state.state == "wrong" and written and state.key in waits_not else "reboot"
            how = "set by its BMC" if written else "waits for a reset"
            found.append(NodeDifference("BIOS", state.key, state.measured, in_words(state.wanted), needs, how))
    return NodeDifferences(
        tuple(found),
        tuple(f"BIOS {one.key}: {one.why.rstrip('.')}. {one.remedy.rstrip('.')}." for one in planned.refusals),
        notes=note_others_pending(bios.others_pending),
    )


def note_others_pending(attributes: typing.Sequence[str], error: str = "") -> tuple[str, ...]:
    """Return a note on BIOS attributes that a reset changes although the intent has no value for them.

    :param attributes: names of the attributes that have a pending value
    :param error: reason why the pending values are unknown; empty if they are known
    """
    if error:
        return (f"whether a reset also applies BIOS settings that others saved at the BMC is unknown: {error}",)
    names = join_first(attributes, _NAMED)
    return (f"a reset also applies BIOS settings that others saved at the BMC: {names}",) if names else ()


def look_at_kernel(observed: ObservedKernelArguments, wanted: typing.Sequence[str]) -> NodeDifferences:
    """Return the desired kernel arguments that the running kernel of a node lacks, as differences. A task on the node
    has already written them for the next boot, or reported the reason why it could not, which becomes a refusal.

    :param observed: kernel arguments of the node, and the result of that task
    :param wanted: desired arguments
    """
    value = observed.value
    if value is None or observed.error is not None:
        return (
            NodeDifferences(error=f"the kernel arguments of the node are unknown: {observed.error or 'no data'}")
            if wanted
            else NodeDifferences()
        )
    missing = [argument for argument in wanted if argument in value.missing]
    refusal = f"{LOOKS_ONLY}." if value.by_pod else value.refusal
    refusals = (f"Kernel arguments {', '.join(missing)}: {refusal}",) if missing and refusal else ()
    differences = tuple(
        NodeDifference(KERNEL, argument, "absent", "set", how="by its boot loader") for argument in missing
    )
    return NodeDifferences(differences, refusals, boots=(value.boot,))


def look_at_firmware(
    node: str,
    memberships: typing.Iterable[Membership],
    platform: ObservedPlatform,
    fleet: Fleet,
    told: typing.Optional[ObservedFirmwareSet] = None,
) -> typing.Optional[NodeDifferences]:
    """Return the desired firmware settings of a node's HCAs that take effect only after a reset. Return None if no tool
    reports pending settings.

    Settings that are not stored in the firmware yet need no reset. HCAs that the Arm cores of a BlueField or NVIDIA's
    NIC configuration operator manage are left out.

    :param told: result of writing the settings in this run; None if they were not written
    """
    observed = fleet.firmware.get(node, ObservedFirmware(error="was not asked"))
    if platform.value is None or platform.error is not None or observed.value is None or observed.error is not None:
        unknown = f"the firmware of the HCAs is unknown: {platform.error or observed.error or 'no data'}"
        # what was to be set is not proven
        return NodeDifferences(blind=unknown) if told is None else NodeDifferences(error=unknown)
    host = plan_host(node, memberships, platform.value, fleet)
    made = (
        {change.address: change.after for change in told.value.hcas}
        if told is not None and told.value is not None
        else {}
    )
    why = (told.error or (told.value.refusal if told.value is not None else "no data")) if told is not None else ""
    found, unset = typing.cast(list[NodeDifference], []), typing.cast(list[NodeDifference], [])
    for one in host.unmet:
        now_set = one.wish.name in made.get(one.address, {})
        if one.in_force or (one.in_force is None and one.stored and not now_set):
            # the next reset keeps it, or nobody knows
            continue
        how = "set on the node" if now_set else "waits for a reset" if one.stored else "not set"
        (found if now_set or one.stored or why else unset).append(dataclasses.replace(one.difference, how=how))
    refusals = (f"Firmware of the HCAs: {why.rstrip('.')}.",) if why and found else ()
    if not host.asked and not host.left:
        return None
    boot = platform.value.boot
    if found and not boot:
        return NodeDifferences(error="the boot ID of the node at the time when its firmware was read is unknown")
    return NodeDifferences(
        tuple(found), refusals, "", (boot,) if boot else (), "; ".join(host.errors), tuple(unset), host.left
    )
