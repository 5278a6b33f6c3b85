# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep objects that only have the label of the collection, because a user copied them: a removal names and does not
delete them.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.apply import COPIED, KEPT, AppliedObject
from ..._parse.kubernetes.foreign import is_copied
from .kinds import Resource
from .outcome import JOINT_KINDS, Outcome, identify_object, strip_volatile

#: copies of a kind that are named; a tenant may make any number of them
MOST_COPIES = 64


def split_copies(kind: str, items: typing.Iterable[Resource]) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return the objects of a kind that the collection wrote, and the outcomes of the copies. The copies beyond
    ``MOST_COPIES`` are counted in one outcome.

    Objects of joint kinds are all returned, because their field managers decide what is removed from them.

    :raises ResourceError: an object has another form
    """
    own: list[Resource] = []
    copies: list[Resource] = []
    for item in items:
        (copies if kind not in JOINT_KINDS and is_copied(item) else own).append(item)
    outcomes = [_keep(item) for item in copies[:MOST_COPIES]]
    if len(copies) > MOST_COPIES:
        name = f"({len(copies) - MOST_COPIES} more)"
        outcomes.append(Outcome(dataclasses.replace(outcomes[0].applied, name=name, namespace="")))
    return tuple(own), outcomes


def mark_copy(applied: AppliedObject, item: Resource) -> AppliedObject:
    """Return the identity of an object, with the reason ``COPIED`` if it is a copy.

    :raises ResourceError: the object has another form
    """
    return dataclasses.replace(applied, reason=COPIED) if is_copied(item) else applied


def _keep(item: Resource) -> Outcome:
    applied = dataclasses.replace(mark_copy(identify_object("", item), item), action=KEPT)
    return Outcome(applied, strip_volatile(item), strip_volatile(item))
