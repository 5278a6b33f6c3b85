# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the collection's BIOS settings from the resources of a BMC. Each setting has a key and the attributes that the
key covers, with current value, pending value, allowed values, and the reason why an attribute cannot be written.
"""

from __future__ import annotations

import typing

from ..._model.node.bios import ATTRIBUTES, BiosAttribute, BiosJob, BiosSetting, Key
from .keys import TABLE, is_display, is_name
from .registry import Entry, Registry
from .resources import Bios


def list_settings(
    bios: Bios,
    pending: typing.Mapping[str, typing.Any],
    registry: typing.Optional[Registry],
    held: str,
    keys: typing.Iterable[Key],
) -> tuple[BiosSetting, ...]:
    """Return the BIOS settings of a node, one for each key. If no attribute of the BIOS belongs to a key, its setting
    has no attributes.

    :param pending: values that become active at the next reset, by attribute
    :param registry: registry of the BIOS; None if it could not be read. Attributes are found by the display names in
        the registry. Without a registry, or if no display name matches a key, they are found by the table of attribute
        names
    :param held: reason why the BMC rejects any new value of this BIOS now; empty if it accepts new values
    :param keys: keys of the settings
    """
    if registry is None:
        return tuple(_find_by_names(key, bios, pending, held) for key in keys)
    # each once: a name may belong to several keys
    shown = [
        # an attribute of the registry that this node does not tell is of another board of the model
        (entry, _build_bios_attribute(entry, bios, pending, held))
        for entry in registry.entries
        if entry.name in bios.attributes and not entry.is_hidden(bios.attributes)
    ]
    return tuple(_find_by_registry(key, shown) for key in keys)


def list_others_pending(
    settings: typing.Iterable[BiosSetting], pending: typing.Mapping[str, typing.Any]
) -> tuple[str, ...]:
    """Return the sorted names of the attributes that have a pending value and that no setting covers, up to a limit. An
    admin may have saved such values at the BMC. They become active at the next reset as well.

    :param pending: values that become active at the next reset, by attribute
    """
    covered = {attribute.name for setting in settings for attribute in setting.attributes}
    return tuple(sorted(name for name in pending if name not in covered)[: ATTRIBUTES.most])


def explain_why_held(bios: Bios, lockdown: typing.Optional[bool], jobs: typing.Optional[tuple[BiosJob, ...]]) -> str:
    """Return the reason why a BMC would reject any new value of its BIOS now, such as its lockdown mode or a job that
    has not ended. Return an empty string if no reason is known.

    :param lockdown: whether the BMC is in lockdown mode; None if it does not report it
    :param jobs: jobs that block the BIOS; None if they were not read
    """
    if lockdown:
        return "lockdown: the BMC is locked down and rejects all changes"
    if jobs:
        return f"job scheduled: {jobs[0].id} ({jobs[0].state}) blocks the BIOS until the job ends"
    return "" if bios.settings else "the BMC has no settings object for its BIOS"


def _find_by_registry(key: Key, shown: typing.Sequence[tuple[Entry, BiosAttribute]]) -> BiosSetting:
    """Return a setting with the attributes whose names or display names in the registry mean it.

    :param shown: attributes of the BIOS, each with its entry in the registry
    """
    found = [attribute for entry, attribute in shown if is_display(key, entry.name, entry.display_name)]
    # HPE's Gen12 with Intel has no attribute of its own for I/O: the one of the processor's virtualization, which only
    # its name tells, switches it
    found = found or [attribute for entry, attribute in shown if is_name(key, entry.name)]
    return BiosSetting(key, tuple(found), (*TABLE[key].display, *TABLE[key].names))


def _build_bios_attribute(
    entry: Entry, bios: Bios, pending: typing.Mapping[str, typing.Any], held: str
) -> BiosAttribute:
    """Return an attribute of the BIOS with its current and pending value.

    :param entry: entry of the attribute in the registry
    :param pending: values that wait for a reset, by name of the attribute
    :param held: reason why the BMC takes no values now; empty if it does
    """
    current = bios.attributes[entry.name]
    return BiosAttribute(
        name=entry.name,
        current=current,
        display_name=entry.display_name,
        pending=pending.get(entry.name),
        allowed=entry.allowed(current),
        read_only=held or entry.why_read_only(bios.attributes),
        reset_required=entry.reset_required,
    )


def _find_by_names(key: Key, bios: Bios, pending: typing.Mapping[str, typing.Any], held: str) -> BiosSetting:
    """Return a setting with the attributes whose names mean it. This is for a BMC whose registry is missing.

    :param pending: values that wait for a reset, by name of the attribute
    :param held: reason why the BMC takes no values now; empty if it does
    """
    found = tuple(
        BiosAttribute(name=name, current=value, pending=pending.get(name), read_only=held)
        for name, value in bios.attributes.items()
        if is_name(key, name)
    )
    return BiosSetting(key, found, TABLE[key].names)
