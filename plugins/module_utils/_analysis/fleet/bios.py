# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the BIOS settings of a node with the desired values. All stages use this comparison."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.node.bios import KEYS, BiosAttribute, BiosIntent, BiosSetting, BiosState, Key, NodeBios, State
from ..._parse.redfish.values import value_matches

Wanted = typing.Mapping[Key, tuple[typing.Any, ...]]

#: the worse one is the setting's
_WORST: tuple[State, ...] = ("read_only", "wrong", "unknown", "pending", "ok")
#: keys whose attributes are different things, of which not each one knows each value
_ALTERNATIVES = ("profile", "c_states")


class _Judged(typing.NamedTuple):
    state: State
    why: str


def find_wanted(data: typing.Mapping[str, typing.Any]) -> Wanted:
    """Return the accepted BIOS values by key. A key with a list of values permits any of them.

    :param data: desired values as the user wrote them, by key
    :raises RdmaError: a key is unknown, or a value is invalid
    """
    found = {}
    for key, value in data.items():
        values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if key not in KEYS:
            raise RdmaError(f"wanted: {key!r} is not a supported BIOS key", f"Use one of {', '.join(KEYS)}")
        if not values or any(not isinstance(one, (str, int, bool)) or not str(one).strip() for one in values):
            raise RdmaError(
                f"wanted.{key}: {value!r} is not a valid value",
                "Give a string, a number or a boolean, or a list of these",
            )
        found[key] = values
    return typing.cast(Wanted, found)


def find_wanted_by(wishes: BiosIntent) -> Wanted:
    """Return the accepted values of each BIOS setting that an intent sets, by key of the intent.

    :param wishes: BIOS settings in the intent
    """
    given = {field.name: getattr(wishes, field.name) for field in dataclasses.fields(wishes)}
    found = {
        key: value if isinstance(value, tuple) else (value,)
        for key, value in given.items()
        if value is not None and value != ()
    }
    return typing.cast(Wanted, found)


def describe_way_out(bios: NodeBios) -> str:
    """Return the instruction that makes a read-only BIOS setting writable on this BMC.

    :param bios: BIOS of the node
    """
    if bios.lockdown:
        return "Disable the lockdown mode of the BMC, set the BIOS, and enable the lockdown mode again"
    if bios.jobs:
        job = bios.jobs[0].id
        return (
            "Reset the node so that the job ends. If the job never ends, delete it in the job queue of the BMC: racadm"
            f" jobqueue delete -i {job}"
        )
    return "Set the settings first on which this setting depends, or leave it out for this node"


def list_states(bios: NodeBios, wanted: Wanted) -> tuple[BiosState, ...]:
    """Return for each BIOS setting with a desired value whether it is right, wrong, pending until a reset, or unknown.

    :param bios: BIOS of the node
    :param wanted: accepted values of each setting, by key of the intent
    """
    settings = {setting.key: setting for setting in bios.settings}
    return tuple(
        _judge_bios_setting(bios, settings.get(key, BiosSetting(key)), values) for key, values in wanted.items()
    )


def _judge_bios_setting(bios: NodeBios, setting: BiosSetting, wanted: tuple[typing.Any, ...]) -> BiosState:
    """Return whether a setting of the BIOS has one of the wanted values. If several attributes make the setting, the
    worst of them decides.

    :param setting: attributes of the BIOS that make the setting; empty if the BIOS has none of them
    :param wanted: values of the intent, each of which is right
    """
    job = bios.jobs[0].id if bios.jobs else ""
    if not setting.attributes:
        where = (
            f"the registry {bios.registry}"
            if bios.registry
            else f"the BIOS, whose registry is missing ({bios.registry_error})"
        )
        looked = ", ".join(setting.looked_for) or "nothing, because this key was not requested"
        return BiosState(
            setting.key, "unknown", wanted, "not found", f"No such attribute in {where}. Searched for: {looked}.", job
        )
    attributes = select_concerned(setting, wanted)
    judged = [(one, _judge_attribute(bios, setting.key, one, wanted)) for one in attributes]
    state = min((answer.state for _one, answer in judged), key=_WORST.index)
    whys = dict.fromkeys(f"{one.name}: {answer.why}" for one, answer in judged if answer.state == state and answer.why)
    return BiosState(
        setting.key,
        state,
        wanted,
        ", ".join(map(describe_attribute, attributes)),
        "; ".join(whys),
        job if state in ("pending", "read_only") else "",
    )


def select_concerned(setting: BiosSetting, wanted: tuple[typing.Any, ...]) -> tuple[BiosAttribute, ...]:
    """Return the BIOS attributes of a setting that must have the desired value: the attributes that support it, or all
    attributes of the setting if none of them supports it.

    :param setting: attributes of the BIOS for one key
    :param wanted: accepted values
    """
    return tuple(one for one in setting.attributes if _can_have_value(setting.key, one, wanted)) or setting.attributes


def _can_have_value(key: Key, attribute: BiosAttribute, wanted: tuple[typing.Any, ...]) -> bool:
    """Return whether an attribute supports a desired value. Return True for an attribute without a list of allowed
    values, and for settings other than profiles and C-states, all of whose attributes must have the value.

    :param key: key of the intent
    :param attribute: attribute of the BIOS
    :param wanted: accepted values
    """
    if key not in _ALTERNATIVES or not attribute.allowed:
        return True
    return any(value_matches(key, wanted, one.value, one.label) for one in attribute.allowed)


def _judge_attribute(bios: NodeBios, key: Key, attribute: BiosAttribute, wanted: tuple[typing.Any, ...]) -> _Judged:
    """Return whether an attribute of the BIOS has a wanted value now and after the next reset, with the reason if it
    has not or if this is not known.

    :param key: key of the setting in the intent
    :param wanted: values of the intent, each of which is right
    """
    now = is_right(key, attribute, attribute.current, wanted)
    waits = attribute.pending is not None
    then = is_right(key, attribute, attribute.pending, wanted) if waits else now
    if waits and then:
        if now:
            return _Judged("ok", "")
        return _Judged(
            "pending", f"the value {attribute.pending} takes effect at the next reset{_describe_pending_job(bios)}"
        )
    if now is not False and then is not False:
        if now is None or then is None:
            return _Judged(
                "unknown",
                (
                    f"the value {attribute.current if now is None else attribute.pending} does not show"
                    " whether the setting is"
                    f" {in_words(wanted)}"
                ),
            )
        # nothing is known to wait
        return (
            _Judged("unknown", f"the current value is correct, but {bios.pending_error}")
            if bios.pending_error
            else _Judged("ok", "")
        )
    seen = (
        f"the value {attribute.pending}, which takes effect at the next reset, does not mean {in_words(wanted)}"
        if waits and then is False
        else f"the value is {attribute.current}, not {in_words(wanted)}"
    )
    if attribute.read_only:
        return _Judged("read_only", f"{seen}; {attribute.read_only}")
    if attribute.allowed and not any(value_matches(key, wanted, one.value, one.label) for one in attribute.allowed):
        return _Judged(
            "wrong",
            (
                f"{seen}, and the attribute does not support that value; allowed values:"
                f" {', '.join(one.value for one in attribute.allowed)}"
            ),
        )
    failed = f"; the last attempt to apply values reported: {bios.last_apply}" if bios.last_apply and not waits else ""
    return _Judged("wrong", f"{seen}{failed}")


def _describe_pending_job(bios: NodeBios) -> str:
    """Return the end of a sentence about a pending value: the job that applies it at a reset, or the fact that no such
    job exists. Return an empty text if the BMC does not show its jobs.

    :param bios: BIOS of the node
    """
    if bios.jobs:
        return f" by the job {bios.jobs[0].id} ({bios.jobs[0].state})"
    return "" if bios.jobs is None else ", but no job exists that applies it"


def is_right(
    key: Key, attribute: BiosAttribute, value: typing.Any, wanted: tuple[typing.Any, ...]
) -> typing.Optional[bool]:
    """Return whether a value of a BIOS attribute is one of the desired values. Return None if that cannot be decided.

    :param key: key of the intent
    :param attribute: attribute of the BIOS
    :param value: current or pending value of the attribute
    :param wanted: accepted values
    """
    labels = [one.label for one in attribute.allowed if one.value == value]
    return value_matches(key, wanted, value, labels[0] if labels else None)


def describe_attribute(attribute: BiosAttribute) -> str:
    """Return an attribute with its value as text, and with the value that is pending until a reset.

    :param attribute: attribute of the BIOS
    """
    return f"{attribute.name} {attribute.current}" + (
        "" if attribute.pending is None else f" ({attribute.pending} after a reset)"
    )


def in_words(wanted: tuple[typing.Any, ...]) -> str:
    """Return the desired values of a BIOS setting as text.

    :param wanted: accepted values
    """
    return " or ".join({True: "on", False: "off"}[one] if isinstance(one, bool) else str(one) for one in wanted)
