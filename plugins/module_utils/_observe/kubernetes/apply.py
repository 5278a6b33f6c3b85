# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects into the cluster and out of it: dry run of all, then apply each that the server takes; deletion with
proof."""

from __future__ import annotations

import dataclasses
import functools
import time
import typing

from ..._model.base.marks import LABEL, MANAGER, is_ours
from ..._model.base.text import cut_texts
from ..._model.kubernetes.apply import FOREIGN, UNREAD, AppliedObject, Leftovers
from ..._model.kubernetes.measuring import NAMESPACE as MEASURING
from ..._parse.kubernetes.foreign import is_mirror_pod
from .client import Cluster
from .errors import ApiError
from .foreign import Kept, objects_of_others
from .kinds import Resource, kind_of, version_of
from .shell import Clock

#: of server-side apply
FIELD_MANAGER = MANAGER
#: kinds of which a cluster has one object for all who use it: our fields join those of others, and leave them without
#: deleting the rest
_JOINT = ("NicClusterPolicy",)
#: that a webhook has to see what was just made: it looks into its own copy of the cluster
WEBHOOK_SECONDS = 10.0
#: metadata that a deletion needs; lists of it are cut, since who makes an object decides how long they are
_ESSENTIAL, _MOST_ENTRIES = ("name", "namespace", "uid", "finalizers", "deletionTimestamp", "ownerReferences"), 8
#: characters of a text in them; a finalizer has 317 at most
_MOST_TEXT = 320
#: label of an object that is of one fabric
_FABRIC = "linerate.rdma/fabric"
_VOLATILE = (
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "selfLink",
    "finalizers",
    "deletionTimestamp",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """:ivar before: the object as it was, without what the server writes; None when it was not there
    :ivar after: as it is, or would be; None when it is gone or was refused
    """

    applied: AppliedObject
    before: typing.Optional[Resource] = None
    after: typing.Optional[Resource] = None

    @property
    def changed(self) -> bool:
        return self.applied.action in ("created", "changed", "deleted", "released", "unjudged")


def ours(resource: Resource) -> bool:
    """Return whether the collection made the object."""
    return is_ours(resource.get("metadata", {}).get("labels") or {})


def apply_all(
    cluster: Cluster,
    wanted: typing.Sequence[tuple[str, Resource]],
    check_mode: bool,
    clock: Clock = time.monotonic,
    pause: typing.Callable[[float], None] = time.sleep,
    absent: typing.Container[str] = (),
) -> tuple[Outcome, ...]:
    """Server-side dry run of all objects, then apply those that it takes and that would change. A refusal is an
    outcome, not an end.

    A namespace that somebody else made is left as it is. An object of a joint kind that somebody else made gets our
    fields, and stays theirs. Any other object that somebody else made is used as it is where it equals the rendered
    one, and refused where it differs: our label on it would have the teardown delete it.

    :param wanted: fabric and object
    :param check_mode: stop after the dry run
    :param pause: sleeps; given in, as ``clock``, so that a test needs no time
    :param absent: namespaces that the run has looked for and not found: one that is there now is somebody else's, and
        gets nothing
    :raises ApiError: the server cannot be reached
    """
    planned = [_plan(cluster, fabric, definition, absent) for fabric, definition in wanted]
    if check_mode:
        made = [outcome.applied for _definition, outcome in planned if outcome.applied.action == "created"]
        return tuple(_unjudged(definition, outcome, made) for definition, outcome in planned)
    outcomes: list[Outcome] = []
    created: list[AppliedObject] = []
    #: names of Namespaces
    refused: set[str] = set()
    for (fabric, given), early in zip(wanted, planned):
        definition, outcome = early
        if outcome.applied.namespace in refused:
            why = f"Namespace {outcome.applied.namespace} was refused"
            outcomes.append(
                Outcome(
                    dataclasses.replace(outcome.applied, action="refused", reason="NotFound", refusal=why),
                    outcome.before,
                )
            )
            continue
        again, end = _came_too_early(outcome, created), clock() + WEBHOOK_SECONDS
        while again:
            # what it waits for is there now; a webhook sees that a moment later than the API server
            definition, outcome = _plan(cluster, fabric, given, absent)
            again = _came_too_early(outcome, created) and clock() < end
            if again:
                pause(1.0)
        outcomes.append(_commit(cluster, definition, outcome) if outcome.changed else outcome)
        last = outcomes[-1].applied
        created += [last] if last.action == "created" else []
        refused |= {last.name} if (last.kind, last.action) == ("Namespace", "refused") else set()
    return tuple(outcomes)


def _came_too_early(outcome: Outcome, made: typing.Iterable[AppliedObject]) -> bool:
    """Return whether an object was refused for want of one that is made in the same run: its namespace, or one that a
    webhook looked for and names."""
    applied = outcome.applied
    if applied.action != "refused":
        return False
    return any(
        (item.kind == "Namespace" and item.name == applied.namespace and applied.reason == "NotFound")
        or (item.kind in applied.refusal and f'"{item.name}" not found' in applied.refusal)
        for item in made
    )


def _plan(
    cluster: Cluster, fabric: str, definition: Resource, absent: typing.Container[str]
) -> tuple[Resource, Outcome]:
    """Return the outcome of applying an object, and its definition."""
    applied = _identity(fabric, definition)
    there = existing(cluster, definition)
    if there is not None and definition["kind"] == "Namespace" and applied.name in absent:
        why = "it was not there when this run looked whose it is, and somebody has made it since"
        return definition, Outcome(
            dataclasses.replace(applied, action="refused", reason="AlreadyExists", refusal=why),
            stable(there),
            stable(there),
        )
    if there is not None and definition["kind"] == "Namespace" and not ours(there):
        return definition, Outcome(dataclasses.replace(applied, action="unchanged"), stable(there), stable(there))
    if there is not None and definition["kind"] in _JOINT and not ours(there):
        # our label would have the teardown delete what is not ours
        definition = {**definition, "metadata": {"name": definition["metadata"]["name"]}}
    elif there is not None and ours(definition) and not ours(there):
        return definition, _compare(cluster, applied, definition, there)
    before = stable(there) if there is not None else None
    try:
        result, warnings = cluster.apply(definition, FIELD_MANAGER, dry_run=True)
    except ApiError as error:
        return definition, Outcome(_refused(applied, error), before)
    after = stable(result)
    action = "created" if before is None else "unchanged" if before == after else "changed"
    return definition, Outcome(dataclasses.replace(applied, action=action, warnings=warnings), before, after)


def _compare(cluster: Cluster, applied: AppliedObject, definition: Resource, there: Resource) -> Outcome:
    """Return the outcome of an object that somebody else made, and that an apply would make the collection's: unchanged
    where the server finds it equal to the rendered one, refused otherwise. Nothing is written."""
    metadata, before = dict(definition["metadata"]), stable(there)
    metadata["labels"] = {key: value for key, value in metadata["labels"].items() if key not in (LABEL, _FABRIC)}
    if not metadata["labels"]:
        del metadata["labels"]
    differs = "differs from the rendered object"
    try:
        result, warnings = cluster.apply({**definition, "metadata": metadata}, FIELD_MANAGER, dry_run=True)
        if stable(result) == before:
            used = f"it has no label {LABEL}={MANAGER}, so it is used as it is, and no teardown deletes it"
            return Outcome(dataclasses.replace(applied, action="unchanged", warnings=(*warnings, used)), before, before)
    except ApiError as error:
        if error.reason != "Conflict":
            return Outcome(_refused(applied, error), before, before)
        differs = error.text
    where = f"-n {applied.namespace} " if applied.namespace else ""
    refusal = (
        f"somebody else made it, since it has no label {LABEL}={MANAGER}, and {differs}. Use another name, delete it,"
        f" or hand it over, so that a teardown deletes it: kubectl {where}label {kind_of(definition).lower()}"
        f" {applied.name} {LABEL}={MANAGER} --overwrite"
    )
    return Outcome(dataclasses.replace(applied, action="refused", reason=FOREIGN, refusal=refusal), before, before)


def _unjudged(definition: Resource, planned: Outcome, made: typing.Iterable[AppliedObject]) -> Outcome:
    """In check mode, a kind or a namespace that is missing may be one that an earlier stage would make: the server
    cannot judge the object yet.

    :param made: objects that this run would make
    """
    if not _not_found(planned) and not _came_too_early(planned, made):
        return planned
    return Outcome(dataclasses.replace(planned.applied, action="unjudged"), planned.before, stable(definition))


def _not_found(outcome: Outcome) -> bool:
    """Return whether the API server refused it because its kind or its namespace is not there."""
    return outcome.applied.action == "refused" and outcome.applied.reason == "NotFound"


def _commit(cluster: Cluster, definition: Resource, planned: Outcome) -> Outcome:
    try:
        if definition["kind"] == "Namespace" and planned.before is None and _admits_privileged(definition):
            # a tenant may have made one since, which must not get this level. An apply would not tell the two apart,
            # and a POST needs a right without a name
            result, warnings = cluster.create(definition, FIELD_MANAGER), planned.applied.warnings
        else:
            result, warnings = cluster.apply(definition, FIELD_MANAGER, dry_run=False)
    except ApiError as error:
        return Outcome(_refused(planned.applied, error), planned.before)
    return dataclasses.replace(
        planned, applied=dataclasses.replace(planned.applied, warnings=warnings), after=stable(result)
    )


def _admits_privileged(namespace: Resource) -> bool:
    """Return whether a Namespace would get the level of Pod Security that gives its pods the node."""
    return (namespace["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce") == "privileged"


#: of the limit of one wait, how much the waits of a removal may take together
_ALL_WAITS = 2.0
#: seconds in which namespaces are looked through at least
_LOOKS = 600.0
#: seconds that each kind is waited for at least
_LEAST_WAIT = 60.0
_Left = typing.TypeVar("_Left")


class Waits:
    """The waits of a removal for deleted objects to go. A tenant may plant any number of objects with a finalizer that
    never goes.

    :param limit: seconds of one wait
    :param pause: sleeps; given in, as ``clock``, so that a test needs no time
    :param least: seconds that each wait has, whatever the others took
    """

    def __init__(self, limit: float, clock: Clock, pause: typing.Callable[[float], None], least: float = 0.0) -> None:
        self._limit, self._clock, self._pause, self._least = limit, clock, pause, min(least, limit)
        self._rest = _ALL_WAITS * limit

    def await_gone(self, look: typing.Callable[[], _Left]) -> _Left:
        """Look once a second, and return what is left: nothing, or what has not gone within the limit.

        :param look: returns what is left; false where nothing is
        """
        begin = self._clock()
        while True:
            left = look()
            waited = self._clock() - begin
            if not left or waited >= max(self._least, min(self._limit, self._rest)):
                # also of what went: whoever plants objects may have each of them go right before the limit
                self._rest -= waited
                return left
            self._pause(1.0)


@dataclasses.dataclass(frozen=True)
class Removal:
    """The objects that are removed.

    :ivar kinds: in this order
    :ivar selector: label selector of the API
    :ivar keep: namespaces that stay
    :ivar namespaces: to look in; none means all, and needs the right to list the kinds in all of them
    :ivar limit: seconds for each kind
    """

    kinds: tuple[str, ...]
    selector: str
    keep: tuple[str, ...] = ()
    limit: float = 300.0
    namespaces: tuple[str, ...] = ()


def remove_all(
    cluster: Cluster, removal: Removal, check_mode: bool, clock: Clock, pause: typing.Callable[[float], None]
) -> tuple[Outcome, ...]:
    """Delete what carries the label, kind by kind, and wait until each kind is gone. What others have a part in only
    loses ours.

    A tenant may give an object of each kind our label, and a finalizer that never goes: what does not go is waited for
    twice the limit at most, all kinds but namespaces together.

    A namespace with objects of others stays, and its refusal lists them. In check mode nobody looks for them: much of
    what is there now would be gone by then.

    :param pause: sleeps; given in, so that a test needs no time
    :raises ApiError: the server cannot be reached, or does not let us list
    """
    outcomes: list[Outcome] = []
    # pods end before what they use goes, also where somebody has planted objects that never do
    waits = Waits(removal.limit, clock, pause, _LEAST_WAIT)
    for kind in removal.kinds:
        found = _list(cluster, kind, removal)
        kept = {} if check_mode or kind != "Namespace" else dict(_kept(cluster, found, removal.limit, clock, pause))
        results = [kept.get(item["metadata"]["name"]) or remove(cluster, item, check_mode) for item in found]
        if not check_mode:
            asked = {(one.applied.namespace, one.applied.name) for one in results if one.applied.action != "refused"}
            # namespaces come last, and are waited for whatever the others took
            waits = Waits(removal.limit, clock, pause) if kind == "Namespace" else waits
            left = waits.await_gone(functools.partial(_find_left, cluster, kind, removal, asked)) if asked else {}
            results = [_still_there(outcome, left) for outcome in results]
        outcomes.extend(results)
    return tuple(outcomes)


def _kept(
    cluster: Cluster,
    namespaces: typing.Iterable[Resource],
    limit: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
) -> typing.Iterator[tuple[str, Outcome]]:
    """Yield the namespaces that may not be deleted, each with what became of it. One that is being deleted is past
    that.

    What is being deleted in them is awaited until one and the same moment: who plants many namespaces holds up nothing
    longer than who plants one.
    """
    end = clock() + limit
    # what the collection measures in first: anybody may make a namespace with its label, and each look asks for all
    # that there is
    mine = sorted(namespaces, key=lambda item: item["metadata"]["name"] != MEASURING)
    for item in (item for item in mine if "deletionTimestamp" not in item["metadata"]):
        if clock() >= end + max(limit, _LOOKS):
            kept: typing.Optional[Kept] = Kept(
                unread=(f"what is in it, since the look at {len(mine)} namespaces took too long",)
            )
        else:
            kept = objects_of_others(cluster, item["metadata"]["name"], max(0.0, end - clock()), clock, pause)
        if kept is not None:
            applied = dataclasses.replace(
                _labelled(item), action="refused", reason=FOREIGN if kept.objects else UNREAD, refusal=str(kept)
            )
            yield applied.name, Outcome(applied, stable(item), stable(item))


def find_leftovers(
    cluster: Cluster, kinds: typing.Sequence[str], selector: str, wanted: typing.Iterable[Resource]
) -> Leftovers:
    """Return the objects that have the label and are not wanted. What an operator made of one of our objects is not
    counted: it goes with its owner.

    :raises ApiError: the server cannot be reached
    """
    asked = {_identity("", item) for item in wanted}
    found: list[AppliedObject] = []
    errors: list[str] = []
    for kind in kinds:
        try:
            items = _list(cluster, kind, Removal((kind,), selector))
        except ApiError as error:
            if error.status == 0:
                raise
            errors.append(error.seen)
            continue
        # what is in the namespace of a measurement goes with it, or with the next one
        mine = [
            item
            for item in items
            if not item["metadata"].get("ownerReferences") and item["metadata"].get("namespace") != MEASURING
        ]
        found += [_labelled(item) for item in mine if _identity("", item) not in asked]
    return Leftovers(tuple(found), tuple(errors))


def _labelled(item: Resource) -> AppliedObject:
    """Return an object of the collection by its own words."""
    return _identity((item["metadata"].get("labels") or {}).get(_FABRIC, ""), item)


def remove(cluster: Cluster, item: Resource, check_mode: bool) -> Outcome:
    """Delete an object, or take our fields out of one in which others have a part. A refusal is an outcome.

    :raises ApiError: the server cannot be reached
    """
    applied = _labelled(item)
    try:
        if item["kind"] in _JOINT and _is_joint(item):
            # an empty wish takes back the fields that nobody else owns
            result, _warnings = cluster.apply(_bare(item), FIELD_MANAGER, dry_run=check_mode)
            return Outcome(dataclasses.replace(applied, action="released"), stable(item), stable(result))
        uid = item["metadata"].get("uid")
        # another object of this name that has been made since is not the one that was looked at
        there = cluster.delete(
            kind_of(item), applied.namespace, applied.name, dry_run=check_mode, only={"uid": uid} if uid else None
        )
    except ApiError as error:
        return Outcome(_refused(applied, error), stable(item), stable(item))
    return Outcome(dataclasses.replace(applied, action="deleted" if there else "absent"), stable(item))


def _managers(item: Resource) -> dict[str, bool]:
    """Return the managers that wrote into spec, and whether it was by server-side apply. What a controller writes is in
    status."""
    entries = [
        entry for entry in item["metadata"].get("managedFields") or [] if "f:spec" in (entry.get("fieldsV1") or {})
    ]
    return {str(entry.get("manager")): entry.get("operation") == "Apply" for entry in entries}


def _is_joint(item: Resource) -> bool:
    """Return whether other managers own a part of the object."""
    return not ours(item) or bool(set(_managers(item)) - {FIELD_MANAGER})


def _bare(item: Resource) -> Resource:
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": {"name": item["metadata"]["name"]}}


def _find_left(
    cluster: Cluster, kind: str, removal: Removal, asked: typing.Container[tuple[str, str]]
) -> dict[tuple[str, str], Resource]:
    """Return the objects of a kind that are still there, by namespace and name.

    :param asked: namespaces and names of what is to go
    """
    found = _list(cluster, kind, removal)
    mine = {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in found
        if kind not in _JOINT or not _is_joint(item)
    }
    return {key: item for key, item in mine.items() if key in asked}


def _still_there(outcome: Outcome, left: typing.Mapping[tuple[str, str], Resource]) -> Outcome:
    item = left.get((outcome.applied.namespace, outcome.applied.name))
    if item is None or outcome.applied.action == "refused":
        return outcome
    finalizers = ", ".join(item["metadata"].get("finalizers") or []) or "none"
    applied = dataclasses.replace(
        outcome.applied,
        action="refused",
        reason="Remains",
        refusal=f"still there after its deletion; finalizers: {finalizers}",
    )
    return dataclasses.replace(outcome, applied=applied, after=stable(item))


def _list(cluster: Cluster, kind: str, removal: Removal) -> tuple[Resource, ...]:
    try:
        if kind in _JOINT:
            return tuple(
                item for item in _labelled_as(cluster, kind, "", "") if ours(item) or _managers(item).get(FIELD_MANAGER)
            )
        items = [
            item
            for namespace in removal.namespaces or ("",)
            for item in _labelled_as(cluster, kind, namespace, removal.selector)
        ]
        return tuple(item for item in items if kind != "Namespace" or item["metadata"]["name"] not in removal.keep)
    except ApiError as error:
        # the server does not know the kind, so nothing of it exists
        if error.absent:
            return ()
        raise


def _labelled_as(cluster: Cluster, kind: str, namespace: str, selector: str) -> tuple[Resource, ...]:
    """Return the objects of a kind with a label. Where they are too large to be read, as tenants may make theirs, with
    no more than what a deletion needs. Mirror pods are not among them: their kubelets make them again.

    :raises ApiError: refused
    """
    try:
        return tuple(item for item in cluster.list(kind, namespace, selector).items if not is_mirror_pod(kind, item))
    except ApiError as error:
        if not error.too_large:
            raise
    found = cluster.metadata(kind, namespace, selector)
    return tuple(_essence(kind, item) for item in found if not is_mirror_pod(kind, item))


def _essence(kind: str, item: Resource) -> Resource:
    """Return an object with the metadata that its deletion needs alone."""
    metadata = item.get("metadata") or {}
    # of joint kinds, which admins alone make, the fields tell who has a part in them
    names = (*_ESSENTIAL, "managedFields") if kind in _JOINT else _ESSENTIAL
    kept = {key: value for key, value in metadata.items() if key in names}
    for key, value in kept.items():
        if isinstance(value, list) and key != "managedFields":
            kept[key] = cut_texts(value[:_MOST_ENTRIES], _MOST_TEXT)
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key in (LABEL, _FABRIC)}
    return {"apiVersion": version_of(kind), "kind": kind.partition(".")[0], "metadata": {**kept, "labels": labels}}


def existing(cluster: Cluster, definition: Resource) -> typing.Optional[Resource]:
    """Return the object of that kind and name as it is; None where there is none, or the server does not know the kind.

    :raises ApiError: the server cannot be reached, or does not tell
    """
    try:
        return cluster.get(
            kind_of(definition), definition["metadata"].get("namespace", ""), definition["metadata"]["name"]
        )
    except ApiError as error:
        if error.absent:
            return None
        raise


def stable(resource: Resource) -> Resource:
    """Return the object without status and what the server writes into metadata: what can be compared."""
    metadata = {key: value for key, value in resource.get("metadata", {}).items() if key not in _VOLATILE}
    return {
        **{key: value for key, value in resource.items() if key not in ("status", "metadata")},
        "metadata": metadata,
    }


def _identity(fabric: str, definition: Resource) -> AppliedObject:
    metadata = definition["metadata"]
    return AppliedObject(definition["kind"], metadata["name"], metadata.get("namespace", ""), fabric)


def _refused(applied: AppliedObject, error: ApiError) -> AppliedObject:
    if error.status == 0:
        raise error
    return dataclasses.replace(applied, action="refused", refusal=error.text, reason=error.reason)
