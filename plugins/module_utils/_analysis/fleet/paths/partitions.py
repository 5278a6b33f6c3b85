# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine whether two ports share a partition in which they can communicate (InfiniBand Architecture Specification,
volume 1, 10.9.3). Their keys must be equal in the lower 15 bits, and at least one of the ports must be a full member,
which the upper bit indicates. Two limited members, 0x7fff and 0x7fff, drop each other's packets.
"""

from __future__ import annotations

import typing

#: how ports become full members, after their names. Other tenants keep their partitions; SIGHUP applies the file
#: without a new election of the master
JOIN = (
    "in partitions.conf of opensm, which must be equal on the hosts of all subnet managers, list the port GUIDs of this"
    " fabric as full members of one partition ('compute=0x0001, ipoib : GUID=full, GUID=full;'), then run pkill -HUP -x"
    " opensm on these hosts. With UFM, set a PKey instead. Write 'Default=0x7fff, ipoib : ALL=full;' only if the fabric"
    " has no other tenants, because it makes their ports full members too."
)
#: the same as a sentence
JOIN_SENTENCE = f"I{JOIN[1:]}"

_FULL = 0x8000
_BASE = 0x7FFF


class Apart(typing.NamedTuple):
    """Two ports that cannot exchange management datagrams, which carry the first key of the sender.

    :ivar why: reason, as a sentence
    :ivar shared: keys with which other traffic between them may pass, such as ``0x8001``
    """

    why: str
    shared: tuple[str, ...]


def explain_separation(sender: typing.Sequence[str], receiver: typing.Sequence[str]) -> typing.Optional[Apart]:
    """Return why two ports cannot exchange management datagrams. Return None if they can, or if the keys of one of them
    were not read.

    :param sender: partition keys of the sender that are set, such as ``0xffff``, in the order of its table
    :param receiver: partition keys of the receiver
    """
    if not sender or not receiver or any(_is_matching_pkey(sender[0], key) for key in receiver):
        return None
    first, same = sender[0], [key for key in receiver if _compute_pkey_base(key) == _compute_pkey_base(sender[0])]
    if same:
        why = f"Both ports are limited members of partition {first}, and limited members drop each other's packets."
    else:
        why = f"ibping sends with partition key {first}, and the other port has only {', '.join(receiver[:8])}."
    return Apart(why, list_shared_keys(sender, receiver))


def list_shared_keys(one: typing.Iterable[str], other: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the keys of the partitions in which two ports can communicate, in the form of full members, such as
    ``0xffff``.

    :param one: partition keys of the first port
    :param other: partition keys of the second port
    """
    full, known = _list_members(one)
    others_full, others_known = _list_members(other)
    return tuple(f"0x{base | _FULL:04x}" for base in sorted(known & others_known & (full | others_full)))


def _list_members(keys: typing.Iterable[str]) -> tuple[set[int], set[int]]:
    """Return two sets of partition numbers (the lower 15 bits of a key): the partitions of which the port is a full
    member, and all partitions of the port.

    :param keys: partition keys of the port, such as ``0xffff``
    """
    numbers = {int(key, 16) for key in keys}
    return {number & _BASE for number in numbers if number & _FULL}, {number & _BASE for number in numbers}


def _is_matching_pkey(one: str, other: str) -> bool:
    return _compute_pkey_base(one) == _compute_pkey_base(other) and bool((int(one, 16) | int(other, 16)) & _FULL)


def is_limited(key: str) -> bool:
    """Return whether a port with this key is a limited member of the partition.

    :param key: partition key, such as ``0x7fff``
    """
    return not int(key, 16) & _FULL


def _compute_pkey_base(key: str) -> int:
    return int(key, 16) & _BASE
