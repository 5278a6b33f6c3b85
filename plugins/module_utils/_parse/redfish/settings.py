# SPDX-License-Identifier: GPL-3.0-or-later

"""From what a BMC tells to the settings behind the keys: attributes with value, pending value, what is allowed, and why
they can't be written."""

from __future__ import annotations

import typing

from ..._model.node.bios import BiosAttribute, BiosJob, BiosSetting, Key
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
    """Return the settings of a node, one for each key, also for one whose attribute was not found.

    :param pending: values that wait for a reset, by attribute
    :param registry: None where its body is missing; attributes are found by the table of names then, as where no
        display name fits
    :param held: why nothing of this BIOS can be written now, see ``why_held``; empty when it can
    """
    return tuple(
        _find_by_registry(key, bios, pending, registry, held) if registry else _find_by_names(key, bios, pending, held)
        for key in keys
    )


def explain_why_held(bios: Bios, lockdown: typing.Optional[bool], jobs: typing.Optional[tuple[BiosJob, ...]]) -> str:
    """Return why a BMC would refuse any new value of its BIOS now; empty when it would not, or gives no reason."""
    if lockdown:
        return "lockdown: the BMC is locked down and refuses all changes"
    if jobs:
        return f"job scheduled: {jobs[0].id} ({jobs[0].state}) holds the BIOS until it is over"
    return "" if bios.settings else "the BMC offers no settings object for its BIOS"


def _find_by_registry(
    key: Key, bios: Bios, pending: typing.Mapping[str, typing.Any], registry: Registry, held: str
) -> BiosSetting:
    # an attribute of the registry that this node does not tell is of another board of the model
    shown = [
        entry for entry in registry.entries if entry.name in bios.attributes and not entry.is_hidden(bios.attributes)
    ]
    found = [entry for entry in shown if is_display(key, entry.name, entry.display_name)]
    # HPE's Gen12 with Intel has no attribute of its own for I/O: the one of the processor's virtualization, which only
    # its name tells, switches it
    found = found or [entry for entry in shown if is_name(key, entry.name)]
    return BiosSetting(
        key,
        tuple(_build_bios_attribute(entry, bios, pending, held) for entry in found),
        (*TABLE[key].display, *TABLE[key].names),
    )


def _build_bios_attribute(
    entry: Entry, bios: Bios, pending: typing.Mapping[str, typing.Any], held: str
) -> BiosAttribute:
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
    found = tuple(
        BiosAttribute(name=name, current=value, pending=pending.get(name), read_only=held)
        for name, value in bios.attributes.items()
        if is_name(key, name)
    )
    return BiosSetting(key, found, TABLE[key].names)
