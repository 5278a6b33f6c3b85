# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep objects that only have the label of the collection: a user copied them, or another intent applied them. A
removal names and does not delete them.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.marks import FABRIC_LABEL
from ...._model.kubernetes.apply import COPIED, KEPT, OTHER_INTENT, AppliedObject
from ...._model.kubernetes.scope import Scope
from ...._parse.kubernetes.foreign import is_copied
from ..kinds import Resource
from ..outcome import JOINT_KINDS, Outcome, identify_object, strip_volatile

#: copies of a kind that are named; a tenant may make any number of them
MOST_COPIES = 64


def split_copies(kind: str, items: typing.Iterable[Resource]) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return two values: the objects of a kind that the collection wrote, and the outcomes ``kept`` of those that users
    copied with the label. If there are more than ``MOST_COPIES`` copies, one further outcome has the number of the
    rest.

    Objects of a joint kind (NicClusterPolicy) are all returned as objects, because their field managers decide which
    fields are removed from them.

    :param items: objects of the kind with the label of the collection
    :raises ResourceError: an object is malformed
    """
    own: list[Resource] = []
    copies: list[Resource] = []
    for item in items:
        (copies if kind not in JOINT_KINDS and is_copied(item) else own).append(item)
    return tuple(own), _count_beyond([_keep(item) for item in copies[:MOST_COPIES]], len(copies))


def split_other_intents(
    kind: str, items: typing.Iterable[Resource], scope: typing.Optional[Scope]
) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return the objects of a kind that belong to the intent, and the outcomes ``kept`` of the others. If there are
    more than ``MOST_COPIES`` others, one further outcome has the number of the rest. An object with an owner
    (ownerReferences) that belongs to another intent is in neither value, because its owner is judged.

    :param items: objects of the kind with the label of the collection
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
    """Return the outcomes. If some objects have no outcome, append an outcome with their number.

    :param outcomes: outcomes of the first objects; this list is changed
    :param number: number of all objects, with and without an outcome
    """
    if number > len(outcomes):
        name = f"({number - len(outcomes)} more)"
        outcomes.append(Outcome(dataclasses.replace(outcomes[0].applied, name=name, namespace="")))
    return outcomes


def keep_other(item: Resource, why: str) -> Outcome:
    """Return the outcome of an object that is kept because it may belong to another intent.

    :param why: why the object may belong to another intent
    """
    fabric = str((item["metadata"].get("labels") or {}).get(FABRIC_LABEL) or "")
    applied = dataclasses.replace(identify_object(fabric, item), action=KEPT, reason=OTHER_INTENT, refusal=why)
    return Outcome(applied, strip_volatile(item), strip_volatile(item))


def mark_copy(applied: AppliedObject, item: Resource) -> AppliedObject:
    """Return the identity of an object that has the label of the collection. If a user copied the object with its
    label, the reason of the returned identity is ``COPIED``.

    :param applied: identity of the object
    :param item: the object
    :raises ResourceError: the object is malformed
    """
    return dataclasses.replace(applied, reason=COPIED) if is_copied(item) else applied


def _keep(item: Resource) -> Outcome:
    applied = dataclasses.replace(mark_copy(identify_object("", item), item), action=KEPT)
    return Outcome(applied, strip_volatile(item), strip_volatile(item))
