# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove the objects of the collection from the cluster, and wait until they are gone."""

from __future__ import annotations

import collections
import dataclasses
import functools
import typing

from ...._model.base.marks import FABRIC_LABEL, INTENT_LABEL
from ...._model.kubernetes.apply import (
    FOREIGN,
    KEPT,
    MOST_LEFT,
    MOST_LEFT_ALIKE,
    MOST_OF_KIND,
    UNREAD,
    AppliedObject,
    Leftovers,
)
from ...._model.kubernetes.measuring import NAMESPACE as MEASURING
from ...._model.kubernetes.own_kinds import NETWORKS, RUNNING_JOBS
from ...._model.kubernetes.scope import Scope
from ...operators.users import split_needed
from ..client import Cluster
from ..errors import ApiError
from ..kinds import Resource, kind_of
from ..outcome import (
    FIELD_MANAGER,
    JOINT_KINDS,
    Outcome,
    describe_refusal,
    has_our_label,
    identify_object,
    strip_volatile,
)
from ..shell import Clock
from .copies import keep_other, mark_copy, split_copies, split_other_intents
from .foreign import Kept, objects_of_others
from .removable_objects import Removal, find_managers, list_each_kind, list_objects

#: times the limit of one wait that all waits of a removal may take together
_ALL_WAITS = 2.0
#: least seconds for reading the content of all namespaces
_LOOKS = 600.0
#: kinds whose objects of other intents keep a namespace, and that name it
_USERS = (*RUNNING_JOBS, *NETWORKS)
#: least seconds of the wait for each kind
_LEAST_WAIT = 60.0
_Left = typing.TypeVar("_Left")


class Waits:
    """The waits of one removal for deleted objects to disappear. All waits together may take twice the limit of one
    wait, because a tenant can create any number of objects with a finalizer that is never removed.

    :param limit: limit of one wait in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param least: seconds that each wait may take even after the time of all waits is used up; at most ``limit``
    """

    def __init__(self, limit: float, clock: Clock, pause: typing.Callable[[float], None], least: float = 0.0) -> None:
        self._limit, self._clock, self._pause, self._least = limit, clock, pause, min(least, limit)
        self._rest = _ALL_WAITS * limit

    def await_gone(self, look: typing.Callable[[], _Left]) -> _Left:
        """Call ``look`` once a second until no object remains or the limit of the wait is reached. Return the objects
        that remain.

        :param look: function that returns the remaining objects, or a false value if none remain
        """
        begin = self._clock()
        while True:
            left = look()
            waited = self._clock() - begin
            if not left or waited >= max(self._least, min(self._limit, self._rest)):
                # a successful wait counts as well: a tenant may have each object disappear just before the limit
                self._rest -= waited
                return left
            self._pause(1.0)


def remove_all(
    cluster: Cluster, removal: Removal, check_mode: bool, clock: Clock, pause: typing.Callable[[float], None]
) -> tuple[Outcome, ...]:
    """Delete the objects with the label, kind by kind, and wait until each kind is gone. An object of a joint kind with
    other managers only loses the fields of the collection. A copy that a user made of an object is kept, and so is an
    object that does not belong to the intent.

    A tenant can give this label, and a finalizer that is never removed, to an object of each kind. So the waits for all
    kinds except namespaces share a budget of twice the limit. After that, each kind is still awaited for up to 60
    seconds. The deletions have a budget of the same size, because a tenant can create any number of such objects. The
    objects of a kind that remain after it are counted in one refused outcome, and the next removal goes on with them.

    A namespace with foreign objects remains, and its refusal lists them. Check mode does not search for them, because a
    real run would delete many of the present objects before.

    :param removal: the selection of the objects
    :param check_mode: whether to only let the API server check the deletions
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :raises ApiError: the server cannot be reached, or refuses a list
    """
    outcomes: list[Outcome] = []
    # pods get this time to end before the objects that they use are removed, even if other objects never disappear
    waits = Waits(removal.limit, clock, pause, _LEAST_WAIT)
    rest = _ALL_WAITS * removal.limit
    for kind in removal.kinds:
        found, copies = split_copies(kind, list_objects(cluster, kind, removal))
        found, others = split_other_intents(kind, found, removal.scope)
        found, needed = split_needed(cluster, kind, found, removal.scope)
        outcomes += [*copies, *others, *needed]
        kept = {} if check_mode or kind != "Namespace" else dict(_find_kept(cluster, found, removal, clock, pause))
        begin, results = clock(), []
        for item in found:
            if clock() - begin > max(_LEAST_WAIT, min(removal.limit, rest)):
                break
            results.append(kept.get(item["metadata"]["name"]) or remove_object(cluster, item, check_mode))
        rest -= clock() - begin
        if not check_mode:
            left_there = ("refused", KEPT)
            asked = {
                _identify_deleted(item) for item, one in zip(found, results) if one.applied.action not in left_there
            }
            # namespaces come last, and have a limit of their own
            waits = Waits(removal.limit, clock, pause) if kind == "Namespace" else waits
            left = waits.await_gone(functools.partial(_find_left, cluster, kind, removal, asked)) if asked else {}
            results = [_refuse_remaining(outcome, left) for outcome in results]
        late = [_refuse_late(kind, len(found) - len(results))] if len(results) < len(found) else []
        outcomes += [*fold_outcomes(results), *late]
    return tuple(outcomes)


def fold_outcomes(outcomes: typing.Sequence[Outcome]) -> list[Outcome]:
    """Return the first ``MOST_OF_KIND`` outcomes. For each action (such as ``deleted``) of the further outcomes, append
    a single outcome with their number and the reason of the first of them.

    :param outcomes: outcomes of the objects of one kind
    """
    rest: dict[str, list[Outcome]] = {}
    for outcome in outcomes[MOST_OF_KIND:]:
        rest.setdefault(outcome.applied.action, []).append(outcome)
    counted = [
        dataclasses.replace(
            items[0],
            applied=dataclasses.replace(items[0].applied, name=f"({len(items)} more)", namespace="", fabric=""),
        )
        for items in rest.values()
    ]
    return [*outcomes[:MOST_OF_KIND], *counted]


def _refuse_late(kind: str, number: int) -> Outcome:
    """Return the outcome for objects of a kind that are not deleted, because the time budget of the deletions is used
    up.

    :param number: number of the objects that are not deleted
    """
    refusal = f"{number} objects of the kind were not deleted, because the deletion of the others took too long"
    return Outcome(AppliedObject(kind, f"({number} more)", action="refused", reason="Remains", refusal=refusal))


def _find_kept(
    cluster: Cluster,
    namespaces: typing.Iterable[Resource],
    removal: Removal,
    clock: Clock,
    pause: typing.Callable[[float], None],
) -> typing.Iterator[tuple[str, Outcome]]:
    """Yield the name of each namespace that must not be deleted, with the outcome that explains why. Namespaces that
    are being deleted already are left out.

    All waits for objects that are being deleted in these namespaces share one deadline, so that many namespaces of a
    tenant delay the removal no longer than one.

    :param namespaces: namespaces that the removal selects
    :param removal: the selection of the objects. Its limit is the time until the deadline in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    """
    limit = removal.limit
    end, used = clock() + limit, _find_used_namespaces(cluster, removal)
    # the namespace of the measurements comes first: any client may make a namespace with the label, and each of them
    # takes a list of all its objects
    mine = sorted(namespaces, key=lambda item: item["metadata"]["name"] != MEASURING)
    for item in (item for item in mine if "deletionTimestamp" not in item["metadata"]):
        if item["metadata"]["name"] in used:
            yield item["metadata"]["name"], keep_other(item, used[item["metadata"]["name"]])
            continue
        if clock() >= end + max(limit, _LOOKS):
            kept: typing.Optional[Kept] = Kept(
                unread=(f"its objects, because listing the objects of {len(mine)} namespaces took too long",)
            )
        else:
            kept = objects_of_others(
                cluster, item["metadata"]["name"], max(0.0, end - clock()), clock, pause, removal.scope
            )
        if kept is not None:
            applied = dataclasses.replace(
                _identify_labelled(item),
                action="refused",
                reason=FOREIGN if kept.objects else UNREAD,
                refusal=str(kept),
            )
            yield applied.name, Outcome(applied, strip_volatile(item), strip_volatile(item))


def is_of_another(item: Resource, wanted: typing.Iterable[Resource], scope: typing.Optional[Scope] = None) -> bool:
    """Return whether an object has the name of an intent other than that of the rendered objects, or whether another
    intent has recorded that it needs the object. An object without the name of an intent does not count.

    :param wanted: objects that the intent requires; empty if all of them are held back
    :param scope: objects of the intent, whose name counts as well; None if they are not known
    """
    names = {(one["metadata"].get("labels") or {}).get(INTENT_LABEL) for one in wanted} - {None}
    names |= {scope.intent} if scope is not None else set()
    intent = (item["metadata"].get("labels") or {}).get(INTENT_LABEL)
    if names and intent is not None and intent not in names:
        return True
    return scope is not None and bool(scope.find_other_users(str(item.get("kind")), item))


def _find_used_namespaces(cluster: Cluster, removal: Removal) -> dict[str, str]:
    """Return the namespaces that jobs or networks of other intents use, each with the reason. Return an empty dict if
    the removal has no scope.
    """
    used: dict[str, str] = {}
    scope = removal.scope
    for kind in _USERS if scope is not None else ():
        # each of them counts: a user may make any number of labelled objects before the one that keeps the namespace
        for item in list_objects(cluster, kind, removal):
            if scope is None or scope.is_left_to_owner(item) or not scope.explain_foreign(kind, item):
                continue
            metadata, networks = item["metadata"], (item.get("spec") or {}).get("networkNamespace")
            for name in filter(None, (str(metadata.get("namespace") or ""), str(networks or ""))):
                used.setdefault(name, f"{kind} {metadata['name']} uses it, which may belong to another intent")
    return used


def find_leftovers(
    cluster: Cluster,
    kinds: typing.Sequence[str],
    selector: str,
    wanted: typing.Iterable[Resource],
    scope: typing.Optional[Scope] = None,
) -> Leftovers:
    """Return the objects that have the label of the collection but are no longer among those that the intent requires.
    An object with an owner is left out, because it is deleted with its owner, and so are objects with the name of
    another intent. At most ``MOST_LEFT`` objects are returned, and ``MOST_LEFT_ALIKE`` of a kind in a namespace;
    further ones are counted in ``more``. A list that the API server refuses is stored in ``errors`` of the result.

    :param kinds: kinds that are searched
    :param selector: label selector of the collection
    :param wanted: objects that the intent requires
    :param scope: objects of the intent; None if they are not known. The name of the intent in it counts even if
        ``wanted`` is empty
    :raises ApiError: the API server cannot be reached
    """
    wanted = tuple(wanted)
    asked = {identify_object("", item) for item in wanted}
    found: list[AppliedObject] = []
    errors: list[str] = []
    alike: typing.Counter[tuple[str, str]] = collections.Counter()
    more = 0
    for kind, items in list_each_kind(cluster, kinds, selector, errors):
        # objects in the namespace of the measurements are removed with it, or by the next measurement
        mine = [
            item
            for item in items
            if not item["metadata"].get("ownerReferences")
            and item["metadata"].get("namespace") != MEASURING
            and not is_of_another(item, wanted, scope)
        ]
        for item in mine:
            if identify_object("", item) in asked:
                continue
            labelled = _identify_labelled(item)
            alike[kind, labelled.namespace] += 1
            if alike[kind, labelled.namespace] > MOST_LEFT_ALIKE or len(found) >= MOST_LEFT:
                more += 1
            else:
                found.append(labelled)
    return Leftovers(tuple(found), tuple(errors), more)


def _identify_labelled(item: Resource) -> AppliedObject:
    """Return the identity of an object that has the label of the collection, including the fabric from its label."""
    return mark_copy(identify_object((item["metadata"].get("labels") or {}).get(FABRIC_LABEL, ""), item), item)


def remove_object(cluster: Cluster, item: Resource, check_mode: bool) -> Outcome:
    """Delete an object. If it is of a joint kind (NicClusterPolicy) and other managers own fields of it, remove only
    the fields of the collection. If the API server refuses this, return an outcome with the reason.

    :param check_mode: whether to only let the API server check the change
    :raises ApiError: the API server cannot be reached
    """
    applied = _identify_labelled(item)
    try:
        if item["kind"] in JOINT_KINDS and _is_joint(item):
            # applying an empty object removes the fields that no other manager owns
            result, _warnings = cluster.apply(_build_empty(item), FIELD_MANAGER, dry_run=check_mode)
            return Outcome(
                dataclasses.replace(applied, action="released"), strip_volatile(item), strip_volatile(result)
            )
        # the uid protects another object of this name that was made after the list
        there = cluster.delete(
            kind_of(item),
            applied.namespace,
            applied.name,
            dry_run=check_mode,
            only={"uid": str(item["metadata"]["uid"])},
        )
    except ApiError as error:
        return Outcome(describe_refusal(applied, error), strip_volatile(item), strip_volatile(item))
    return Outcome(dataclasses.replace(applied, action="deleted" if there else "absent"), strip_volatile(item))


def _is_joint(item: Resource) -> bool:
    """Return whether the collection does not own the object alone: the object lacks the label of the collection, or
    other field managers wrote fields of its spec.
    """
    return not has_our_label(item) or bool(set(find_managers(item)) - {FIELD_MANAGER})


def _build_empty(item: Resource) -> Resource:
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": {"name": item["metadata"]["name"]}}


def _identify_deleted(item: Resource) -> tuple[str, str, str]:
    """Return the namespace, the name and the uid of an object. A missing namespace or uid is an empty text."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"], str(metadata.get("uid", ""))


def _find_left(
    cluster: Cluster, kind: str, removal: Removal, asked: typing.Container[tuple[str, str, str]]
) -> dict[tuple[str, str], Resource]:
    """Return the objects of a kind whose deletion was requested and that still exist, by namespace and name. An object
    of the same name with another uid is left out: a controller created it after the deletion, as that of a StatefulSet
    does with its pods.

    :param removal: the selection of the objects
    :param asked: namespace, name and uid of each object whose deletion was requested
    """
    found = list_objects(cluster, kind, removal)
    return {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in found
        if (kind not in JOINT_KINDS or not _is_joint(item)) and _identify_deleted(item) in asked
    }


def _refuse_remaining(outcome: Outcome, left: typing.Mapping[tuple[str, str], Resource]) -> Outcome:
    item = left.get((outcome.applied.namespace, outcome.applied.name))
    if item is None or outcome.applied.action == "refused":
        return outcome
    finalizers = ", ".join(item["metadata"].get("finalizers") or []) or "none"
    applied = dataclasses.replace(
        outcome.applied,
        action="refused",
        reason="Remains",
        refusal=f"still exists after its deletion; finalizers: {finalizers}",
    )
    return dataclasses.replace(outcome, applied=applied, after=strip_volatile(item))
