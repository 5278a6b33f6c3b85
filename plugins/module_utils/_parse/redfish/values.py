# SPDX-License-Identifier: GPL-3.0-or-later

"""Interpret the values of BIOS attributes, which each vendor writes differently."""

from __future__ import annotations

import re
import typing

_ON = {"enabled", "enable", "yes", "true", "1", "on"}
#: the last three: HPE's MinProcIdlePower, and AMI's package C-state
_OFF = {"disabled", "disable", "no", "false", "0", "off", "nocstates", "no c-states", "c0/c1 state"}
#: 4096, 4096B, 4096 Bytes
_BYTES = re.compile(r"([0-9]{1,12}) ?(?:b|bytes)?")
#: 1, NPS1, 2-Way, 2-Way Clustering, SNC2, Enable SNC2 (2-clusters), HPE's OneMemoryDomainPerSocket
_DOMAINS = re.compile(
    r"(?:nps|(?:enable )?snc ?)?([0-9]{1,4})(?:-way(?: clustering)?| ?\([0-9]{1,4}-clusters\))?"
    r"|(one|two|four)memorydomains?persocket"
)
#: on and off, as they go together
_PAIRS = (("enabled", "disabled"), ("enable", "disable"), ("yes", "no"), ("true", "false"), ("on", "off"), ("1", "0"))
_WORDS = {"one": 1, "two": 2, "four": 4}


def _normalize_value(value: typing.Any) -> str:
    """Return a value as text in lower case with single spaces, for comparisons."""
    return " ".join(str(value).lower().split())


def parse_switch(value: typing.Any) -> typing.Optional[bool]:
    """Return whether a value means on (True) or off (False). Return None if it means neither, such as ``Auto``::

    >>> parse_switch("Enable"), parse_switch("No"), parse_switch(True), parse_switch("Auto")
    (True, False, True, None)
    """
    word = _normalize_value(value)
    return True if word in _ON else False if word in _OFF else None


def parse_number(key: str, value: typing.Any) -> typing.Optional[int]:
    """Return the number that a value stands for: bytes of a read request, or NUMA nodes of a socket. Return None if the
    value contains no number::

        >>> parse_number("max_read_request", "4096B")
        4096
        >>> parse_number("numa_per_socket", "NPS2"), parse_number("numa_per_socket", "Disabled")
        (2, 1)

    :param key: ``max_read_request`` for bytes; any other key for NUMA nodes
    """
    word = _normalize_value(value)
    if key == "max_read_request":
        found = _BYTES.fullmatch(word) if len(word) < 20 else None
        return int(found.group(1)) if found else None
    # clusters below the socket that are off: the socket is one
    if parse_switch(word) is False and word != "0":
        return 1
    found = _DOMAINS.fullmatch(word) if len(word) < 40 else None
    if not found:
        return None
    return int(found.group(1)) if found.group(1) else _WORDS[found.group(2)]


def _match_bios_value(
    key: str, wanted: typing.Any, value: typing.Any, label: typing.Any = None
) -> typing.Optional[bool]:
    """Return whether a BIOS value and a desired value have the same meaning, such as ``Enable`` and ``on``. Return None
    if this is ambiguous, or if the BIOS value is None.

    :param key: key of the setting
    :param wanted: the desired value, in the spelling of any vendor
    :param value: value of the BIOS attribute
    :param label: other name of the BIOS value, such as its display name; None if it has none
    """
    if value is None:
        return None
    words = {_normalize_value(word) for word in (value, label) if word is not None}
    # beside a word a number is its place in a list: in some registries '0' is Enable
    words = {word for word in words if not word.isdigit()} or words
    if _normalize_value(wanted) in words:
        return True
    if key in ("numa_per_socket", "max_read_request"):
        numbers = {parse_number(key, word) for word in words} - {None}
        aim = parse_number(key, wanted)
        return None if aim is None or not numbers else aim in numbers
    aim_switch = parse_switch(wanted)
    if aim_switch is None:
        return False
    switches = {parse_switch(word) for word in words} - {None}
    return aim_switch in switches if len(switches) == 1 else None


def value_matches(
    key: str, wanted: typing.Iterable[typing.Any], value: typing.Any, label: typing.Any = None
) -> typing.Optional[bool]:
    """Return whether a BIOS value has the same meaning as one of the desired values. Return None if it matches none of
    them for certain, but the comparison with at least one is ambiguous.

    :param key: key of the setting
    :param wanted: desired values, in the spelling of any vendor
    :param value: value of the BIOS attribute
    :param label: other name of the BIOS value, such as its display name; None if it has none
    """
    answers = {_match_bios_value(key, one, value, label) for one in wanted}
    return True if True in answers else None if None in answers else False


def spell_like_current(current: typing.Any, key: str, wanted: typing.Any) -> typing.Any:
    """Return a desired value in the spelling of the current value of a BMC, for attributes without a registry that
    lists the allowed values. Return None if the spelling cannot be derived.

    A text that means neither on, nor off, nor a number is returned unchanged, because it is a value of that BIOS::

        >>> spell_like_current("Disabled", "sriov", True), spell_like_current(True, "acs", "off")
        ('Enabled', False)
        >>> spell_like_current("NPS4", "numa_per_socket", 1)
        'NPS1'

    :param current: value that the BMC reports now
    :param key: key of the setting
    :param wanted: desired value, in the spelling of any vendor
    """
    if key in ("numa_per_socket", "max_read_request"):
        aim = parse_number(key, wanted)
        if aim is None:
            return wanted if isinstance(wanted, str) else None
        if isinstance(current, int):
            return aim
        found = re.sub(r"\d+", str(aim), str(current)[:40], count=1)
        return found if parse_number(key, found) == aim else None
    on = parse_switch(wanted)
    if on is None:
        return wanted
    if isinstance(current, bool):
        return on
    word = str(current)
    aims = [pair[0 if on else 1] for pair in _PAIRS if word.lower() in pair]
    if not aims:
        return None
    spelt = (
        aims[0].upper() if word.isupper() and len(word) > 1 else aims[0].capitalize() if word[:1].isupper() else aims[0]
    )
    return int(spelt) if isinstance(current, int) else spelt
