# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan which attributes of a node's BIOS to write, so that the BIOS has the desired settings after the next reset. The
plan also has the reasons why attributes cannot be written.
"""

from __future__ import annotations

import typing

from .._analysis.fleet.bios import Wanted, describe_way_out, in_words, is_right, list_states, select_concerned
from .._model.base.text import cut_text, join_first
from .._model.node.bios import BiosAttribute, BiosPlan, BiosRefusal, BiosSetting, BiosWrite, Key, NodeBios, Refused
from .._parse.redfish.values import spell_like_current, value_matches

#: characters of a text of the BMC in a refusal, and number of allowed values that it names. The refusals of all nodes
#: are in one fact
_MOST_OF_A_VALUE, _NAMED = 200, 8
#: when new values are applied: at a reset that somebody else orders
ON_RESET = "OnReset"
Values = tuple[typing.Any, ...]


def plan_bios(bios: NodeBios, wanted: Wanted) -> BiosPlan:
    """Plan the attribute values to write. A correct pending value is not written again. The exception is a BMC that
    applies values by a job but has no such job: the value is written again if the current value is wrong.

    :param wanted: desired settings, each with the acceptable values
    :returns: the writes, and a refusal for each attribute that cannot be written or found
    """
    settings = {setting.key: setting for setting in bios.settings}
    writes: list[BiosWrite] = []
    refusals: list[BiosRefusal] = []
    for key, values in wanted.items():
        setting = settings.get(key, BiosSetting(key))
        if not setting.attributes:
            refusals.append(_not_found(bios, key, values))
        for attribute in select_concerned(setting, values):
            if _is_done(bios, key, attribute, values):
                continue
            after = _find_allowed_value(key, attribute, values)
            refusal = _find_refusal(bios, key, attribute, values, after)
            if refusal:
                refusals.append(refusal)
            else:
                before = attribute.current if attribute.pending is None else attribute.pending
                writes.append(BiosWrite(key, attribute.name, before, after, attribute.reset_required is not False))
    return BiosPlan(tuple(writes), tuple(refusals))


def make_body(bios: NodeBios, writes: typing.Iterable[BiosWrite]) -> dict[str, typing.Any]:
    """Return the body of the request to the settings object. It requests that the values are applied at the next reset,
    if the BMC supports that: without an apply time [DSP0266, 9.10] some BMCs keep the values but never create the job
    that applies them.

    :param bios: BIOS of the node with the apply times that the BMC supports
    :param writes: attributes to write, with their new values
    """
    attributes: dict[str, typing.Any] = {"Attributes": {write.attribute: write.after for write in writes}}
    return (
        {**attributes, "@Redfish.SettingsApplyTime": {"ApplyTime": ON_RESET}}
        if ON_RESET in bios.apply_times
        else attributes
    )


def is_value_pending(bios: NodeBios, wanted: Wanted) -> bool:
    """Return whether a value of a desired setting is pending, so that the next reset changes the setting.

    :param wanted: desired settings, each with the acceptable values
    """
    return any(
        attribute.pending is not None
        for setting in bios.settings
        if setting.key in wanted
        for attribute in select_concerned(setting, wanted[setting.key])
    )


def _is_done(bios: NodeBios, key: Key, attribute: BiosAttribute, wanted: Values) -> bool:
    now = is_right(key, attribute, attribute.current, wanted)
    if attribute.pending is None:
        return now is True
    without_job = bios.jobs == () and ON_RESET in bios.apply_times
    return is_right(key, attribute, attribute.pending, wanted) is True and not (without_job and not now)


def _find_allowed_value(key: Key, attribute: BiosAttribute, wanted: Values) -> typing.Any:
    """Return the first of the acceptable values of a setting that the attribute allows, in the form in which the BMC
    reports values. Return None if the attribute allows none of them.

    :param key: key of the setting
    :param wanted: acceptable values, the preferred one first
    """
    for one in wanted:
        if attribute.allowed:
            found = [value.value for value in attribute.allowed if value_matches(key, [one], value.value, value.label)]
            if found:
                return found[0]
        else:
            value = spell_like_current(attribute.current, key, one)
            if value is not None:
                return value
    return None


def _not_found(bios: NodeBios, key: Key, wanted: Values) -> BiosRefusal:
    (state,) = list_states(bios, {key: wanted})
    return BiosRefusal(
        key,
        "attribute",
        state.why,
        f"Remove {key} from the BIOS settings of this node, or set it on the BIOS setup screen of the node and"
        " report the name of its attribute to the authors of linerate.rdma",
    )


def _find_refusal(
    bios: NodeBios, key: Key, attribute: BiosAttribute, wanted: Values, after: typing.Any
) -> typing.Optional[BiosRefusal]:
    current = cut_text(str(attribute.current), _MOST_OF_A_VALUE)
    seen = f"{cut_text(attribute.name, _MOST_OF_A_VALUE)} is {current}, not {in_words(wanted)}"
    if attribute.read_only:
        cause: Refused = "lockdown" if bios.lockdown else "job" if bios.jobs else "read_only"
        return BiosRefusal(
            key, cause, f"{seen}; {cut_text(attribute.read_only, _MOST_OF_A_VALUE)}", describe_way_out(bios)
        )
    if after is None:
        may = (
            f"the allowed values are"
            f" {join_first([cut_text(one.value, _MOST_OF_A_VALUE) for one in attribute.allowed], _NAMED)}"
            if attribute.allowed
            else "no attribute registry lists its allowed values"
        )
        return BiosRefusal(
            key,
            "value",
            f"{cut_text(attribute.name, _MOST_OF_A_VALUE)} cannot be set to {in_words(wanted)}: {may}",
            "Set a value that this BIOS allows",
        )
    return None
