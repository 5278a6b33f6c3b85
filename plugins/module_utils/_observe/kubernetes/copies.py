# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep objects that only have the label of the collection: a user copied them, or another intent applied them. A
removal names and does not delete them.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import FABRIC_LABEL
from ..._model.kubernetes.apply import COPIED, KEPT, OTHER_INTENT, AppliedObject
from ..._model.kubernetes.scope import Scope
from ..._parse.kubernetes.foreign import is_copied
from .kinds import Resource
from .outcome import JOINT_KINDS, Outcome, identify_object, strip_volatile

#: copies of a kind that are named; a tenant may make any number of them
MOST_COPIES = 64


def split_copies(kind: str, items: typing.Iterable[Resource]) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return two values: the objects of a kind that the collection wrote, and the outcomes of those that users copied.
    One outcome has the number of the copies beyond ``MOST_COPIES``.

    Objects of joint kinds are all returned, because their field managers decide which fields are removed from them.

    :param items: objects of the kind with the label of the collection
    :raises ResourceError: an object has another form
    """
    own: list[Resource] = []
    copies: list[Resource] = []
    for item in items:
        (copies if kind not in JOINT_KINDS and is_copied(item) else own).append(item)
    return tuple(own), _count_beyond([_keep(item) for item in copies[:MOST_COPIES]], len(copies))


def split_other_intents(
    kind: str, items: typing.Iterable[Resource], scope: typing.Optional[Scope]
) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return the objects of a kind that belong to the intent, and the outcomes of the others. Those beyond
    ``MOST_COPIES`` are counted in one outcome, and those with an owner have none.

    :param scope: objects of the intent; None: all of them belong to it
    """
    own: list[Resource] = []
    others: list[Outcome] = []
    number, name = 0, kind.partition(".")[0]
    for item in items:
        why = scope.explain_foreign(name, item) if scope is not None else ""
        if not why:
            own.append(item)
        elif scope is not None and not scope.is_left_to_owner(item):
            number += 1
            others += [keep_other(item, why)] if number <= MOST_COPIES else []
    return tuple(own), _count_beyond(others, number)


def _count_beyond(outcomes: list[Outcome], number: int) -> list[Outcome]:
    """Return the outcomes, and one that counts the objects without an outcome.

    :param number: number of all objects
    """
    if number > len(outcomes):
        name = f"({number - len(outcomes)} more)"
        outcomes.append(Outcome(dataclasses.replace(outcomes[0].applied, name=name, namespace="")))
    return outcomes


def keep_other(item: Resource, why: str) -> Outcome:
    """Return the outcome of an object that is kept because it may belong to another intent.

    :param why: the reason
    """
    fabric = str((item["metadata"].get("labels") or {}).get(FABRIC_LABEL) or "")
    applied = dataclasses.replace(identify_object(fabric, item), action=KEPT, reason=OTHER_INTENT, refusal=why)
    return Outcome(applied, strip_volatile(item), strip_volatile(item))


def mark_copy(applied: AppliedObject, item: Resource) -> AppliedObject:
    """Return the identity of an object that has the label of the collection. If a user copied the object with its
    label, the reason of the identity is set to ``COPIED``.

    :raises ResourceError: the object has another form
    """
    return dataclasses.replace(applied, reason=COPIED) if is_copied(item) else applied


def _keep(item: Resource) -> Outcome:
    applied = dataclasses.replace(mark_copy(identify_object("", item), item), action=KEPT)
    return Outcome(applied, strip_volatile(item), strip_volatile(item))
