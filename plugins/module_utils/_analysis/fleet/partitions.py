# SPDX-License-Identifier: GPL-3.0-or-later

"""Which ports a partition lets meet (InfiniBand Architecture Specification, volume 1, 10.9.3): the same key in the
lower 15 bits, and one of them at least a full member, which the upper bit says. Two limited members, 0x7fff and 0x7fff,
drop each other's packets."""

from __future__ import annotations

import typing

_FULL = 0x8000
_BASE = 0x7FFF


class Apart(typing.NamedTuple):
    """Two ports that can't exchange management datagrams, which go with the first key of the sender.

    :ivar why: a sentence
    :ivar shared: keys by which other traffic of theirs may meet: ``0x8001``
    """

    why: str
    shared: tuple[str, ...]


def apart(sender: typing.Sequence[str], receiver: typing.Sequence[str]) -> typing.Optional[Apart]:
    """Return why two ports are kept apart; None when they are not, or when the keys of one were not read.

    :param sender: its partition keys that are set, ``0xffff``, in the order of its table
    """
    if not sender or not receiver or any(_is_matching_pkey(sender[0], key) for key in receiver):
        return None
    first, same = sender[0], [key for key in receiver if _compute_pkey_base(key) == _compute_pkey_base(sender[0])]
    if same:
        why = f"Both ports are limited members of partition {first}, and limited members drop each other's packets."
    else:
        why = f"ibping sends with partition key {first}, and the other port has only {', '.join(receiver[:8])}."
    return Apart(why, shared(sender, receiver))


def shared(one: typing.Iterable[str], other: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the keys of partitions in which two ports with these keys meet, as full members have them: ``0xffff``."""
    full, known = _list_members(one)
    others_full, others_known = _list_members(other)
    return tuple(f"0x{base | _FULL:04x}" for base in sorted(known & others_known & (full | others_full)))


def _list_members(keys: typing.Iterable[str]) -> tuple[set[int], set[int]]:
    """Partitions of a port with these keys, by the lower 15 bits: those of which it is a full member, and all."""
    numbers = {int(key, 16) for key in keys}
    return {number & _BASE for number in numbers if number & _FULL}, {number & _BASE for number in numbers}


def _is_matching_pkey(one: str, other: str) -> bool:
    return _compute_pkey_base(one) == _compute_pkey_base(other) and bool((int(one, 16) | int(other, 16)) & _FULL)


def is_limited(key: str) -> bool:
    """Return whether a port with this key is a limited member of the partition."""
    return not int(key, 16) & _FULL


def _compute_pkey_base(key: str) -> int:
    return int(key, 16) & _BASE
