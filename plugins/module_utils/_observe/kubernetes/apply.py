# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply objects to the cluster: a dry run of all objects, then an apply of each that the server accepts."""

from __future__ import annotations

import dataclasses
import time
import typing

from ..._model.base.marks import (
    FABRIC_LABEL,
    INTENT_LABEL,
    LABEL,
    NODES_ANNOTATION,
    SELECTOR,
    find_users,
    mark_intent,
    replace_labels,
)
from ..._model.kubernetes.apply import FOREIGN, FOREIGN_STEPS, OTHER_INTENT, AppliedObject
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.kubernetes.scope import Scope
from ..._model.kubernetes.scope_fields import find_made_for
from ..._parse.kubernetes.foreign import is_copied
from .client import Cluster
from .differences import describe_difference
from .errors import ApiError
from .fabric_owners import Explain, Owners, explain_nothing
from .kinds import Resource, kind_of
from .outcome import (
    FIELD_MANAGER,
    JOINT_KINDS,
    Outcome,
    describe_refusal,
    has_our_label,
    identify_object,
    read_existing,
    strip_volatile,
)
from .planned_pools import PlannedPools
from .refusals import explain_refusal
from .shell import Clock

#: seconds in which a webhook, which reads its own copy of the cluster, must see an object that was just made
WEBHOOK_SECONDS = 10.0
#: kind and action of a Namespace in which nothing is applied
_REFUSED_SPACE = ("Namespace", "refused")


def apply_all(
    cluster: Cluster,
    wanted: typing.Sequence[tuple[str, Resource]],
    check_mode: bool,
    clock: Clock = time.monotonic,
    pause: typing.Callable[[float], None] = time.sleep,
    absent: typing.Container[str] = (),
    scope: typing.Optional[Scope] = None,
    explain_unrecorded: Explain = explain_nothing,
) -> tuple[Outcome, ...]:
    """Dry-run all objects on the server, then apply those that the server accepts and that would change. Return the
    outcome of each object, in the same order. A refusal is stored as an outcome, and the remaining objects follow. Only
    a SriovNetworkNodePolicy is not applied while a SriovNetworkPoolConfig is not as rendered.

    A foreign object is one that the collection did not create. A foreign namespace is not changed. A foreign object of
    a joint kind (NicClusterPolicy) gets the fields of the collection and remains foreign. Any other foreign object is
    used if it equals the rendered one. If it differs, it is refused: with the label of the collection, the teardown
    would delete it.

    :param wanted: pairs of the name of the fabric and the object to apply
    :param check_mode: whether to stop after the dry run
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param absent: namespaces that did not exist earlier in the run. If one of them exists now, another client created
        it, and no object is applied in it
    :param scope: objects of the intent, as learnt from the cluster; None if not learnt: the name of the intent then
        proves that an object is of this intent, unless it is the default name
    :param explain_unrecorded: function that gets an existing MachineConfig or KubeletConfig that no intent has
        recorded, and returns why another intent may need it; empty if no intent may
    :raises ApiError: the server cannot be reached
    """
    owners = Owners(wanted, scope, explain_unrecorded)
    planned = [_plan_apply(cluster, fabric, definition, absent, owners) for fabric, definition in wanted]
    planned = [(definition, owners.refuse(outcome)) for definition, outcome in planned]
    pools, made = PlannedPools(), [outcome.applied for _definition, outcome in planned if outcome.changed]
    for definition, outcome in planned:
        if not (check_mode and (_is_not_found(outcome) or _came_too_early(outcome, made))):
            pools.add(definition, outcome)
    if check_mode:
        taken = {
            item.applied.name
            for _definition, item in planned
            if (item.applied.kind, item.applied.action) == _REFUSED_SPACE
        }
        planned = [(definition, pools.refuse(outcome)) for definition, outcome in planned]
        made = [outcome.applied for _definition, outcome in planned if outcome.applied.action == "created"]
        return tuple(
            _refuse_space(outcome) if outcome.applied.namespace in taken else _mark_unjudged(definition, outcome, made)
            for definition, outcome in planned
        )
    outcomes: list[Outcome] = []
    created: list[AppliedObject] = []
    #: names of Namespaces
    refused: set[str] = set()
    for (fabric, given), early in zip(wanted, planned):
        definition, outcome = early
        if outcome.applied.namespace in refused:
            outcomes.append(_refuse_space(outcome))
            continue
        again, end = _came_too_early(outcome, created), clock() + WEBHOOK_SECONDS
        while again:
            # the object that it needs exists now; a webhook sees that a moment later than the API server
            definition, outcome = _plan_apply(cluster, fabric, given, absent, owners)
            outcome = owners.refuse(outcome)
            again = _came_too_early(outcome, created) and clock() < end
            if again:
                pause(1.0)
        outcome = pools.refuse(outcome)
        outcomes.append(_apply_planned(cluster, definition, outcome) if outcome.changed else outcome)
        pools.add(given, outcomes[-1])
        last = outcomes[-1].applied
        created += [last] if last.action == "created" else []
        refused |= {last.name} if (last.kind, last.action) == _REFUSED_SPACE else set()
    return tuple(outcomes)


def _refuse_space(outcome: Outcome) -> Outcome:
    """Return the outcome of an object whose Namespace was refused: it is refused as well."""
    why = f"Namespace {outcome.applied.namespace} was refused"
    applied = dataclasses.replace(outcome.applied, action="refused", reason="NotFound", refusal=why)
    return Outcome(applied, outcome.before)


def _came_too_early(outcome: Outcome, made: typing.Iterable[AppliedObject]) -> bool:
    """Return whether an object was refused because another object of the same run did not exist yet: either its
    namespace, or an object that a webhook names in its refusal.

    :param outcome: outcome of the object
    :param made: objects that this run creates
    """
    applied = outcome.applied
    if applied.action != "refused":
        return False
    return any(
        (item.kind == "Namespace" and item.name == applied.namespace and applied.reason == "NotFound")
        or (item.kind in applied.refusal and f'"{item.name}" not found' in applied.refusal)
        for item in made
    )


def _plan_apply(
    cluster: Cluster, fabric: str, definition: Resource, absent: typing.Container[str], owners: Owners
) -> tuple[Resource, Outcome]:
    """Dry-run one object, and add its outcome to ``owners``. Return the definition to apply, and the outcome that
    applying it would have.

    :param fabric: name of the fabric of the object; empty for a shared object
    :param definition: the rendered object
    :param absent: namespaces that did not exist earlier in the run
    :param owners: proofs that a fabric is of this intent; updated with the outcome
    """
    planned = _plan_one(cluster, fabric, definition, absent, owners)
    owners.add(*planned)
    return planned


def _plan_one(
    cluster: Cluster, fabric: str, definition: Resource, absent: typing.Container[str], owners: Owners
) -> tuple[Resource, Outcome]:
    """Dry-run one object. Return the definition to apply, and the outcome that applying it would have. Unlike
    ``_plan_apply``, this leaves ``owners`` unchanged.

    :param fabric: name of the fabric of the object; empty for a shared object
    :param definition: the rendered object
    :param absent: namespaces that did not exist earlier in the run. If ``definition`` is such a Namespace and exists
        now, it is refused, because another client created it
    :param owners: proofs that the fabric is of this intent
    """
    applied, proven = identify_object(fabric, definition), owners.is_proven(fabric)
    there = read_existing(cluster, definition)
    if there is not None and definition["kind"] == "Namespace" and applied.name in absent:
        why = "it did not exist when this run checked its owner, and another client has created it since then"
        return definition, Outcome(
            dataclasses.replace(applied, action="refused", reason="AlreadyExists", refusal=why),
            strip_volatile(there),
            strip_volatile(there),
        )
    if there is not None and definition["kind"] == "Namespace" and not has_our_label(there):
        return definition, Outcome(
            dataclasses.replace(applied, action="unchanged"), strip_volatile(there), strip_volatile(there)
        )
    if there is not None and definition["kind"] == "Namespace":
        # several intents may use it, and it stays that of the intent that made it
        definition = _keep_intent(definition, there)
    elif there is not None and (has_our_label(there) or definition["kind"] in JOINT_KINDS):
        definition = _keep_users(definition, there)
        why = owners.explain(definition, there, proven)
        if why:
            return _compare_other_intent(cluster, applied, definition, there, why, owners.scope)
        definition = _keep_users(definition, there, JOINT_KINDS)
        recorded = find_users(there["metadata"].get("labels") or {})
        if (
            not proven
            and recorded
            and not recorded.keys() & find_users(definition["metadata"].get("labels") or {}).keys()
        ):
            # another intent with the default name may have made it
            definition = _keep_record(definition, there)
    if there is not None and definition["kind"] in JOINT_KINDS and not has_our_label(there):
        # with the collection's label the teardown would delete an object of others
        definition = {**definition, "metadata": {"name": definition["metadata"]["name"]}}
    elif there is not None and has_our_label(definition) and not has_our_label(there):
        return definition, _compare_foreign(cluster, applied, definition, there)
    before = strip_volatile(there) if there is not None else None
    try:
        result, warnings = cluster.apply(definition, FIELD_MANAGER, dry_run=True)
    except ApiError as error:
        return definition, Outcome(describe_refusal(applied, error), before)
    after = strip_volatile(result)
    # an object that a user has labelled or copied becomes one of the collection only by a write
    same = before == after and (there is None or not is_copied(there))
    action = "created" if before is None else "unchanged" if same else "changed"
    return definition, Outcome(dataclasses.replace(applied, action=action, warnings=warnings), before, after)


def _keep_intent(definition: Resource, there: Resource) -> Resource:
    """Return a rendered object with the intent label of the existing object. If either object has no intent label,
    return the rendered object unchanged.

    :param there: the existing object
    """
    intent = (there["metadata"].get("labels") or {}).get(INTENT_LABEL)
    if intent is None or INTENT_LABEL not in (definition["metadata"].get("labels") or {}):
        return definition
    return mark_intent(definition, str(intent))


def _keep_users(definition: Resource, there: Resource, kinds: typing.Container[str] = HOST_KINDS) -> Resource:
    """Return a rendered object with the labels by which intents have recorded on the existing object that they need it.
    An object whose kind is not among ``kinds`` is returned unchanged.

    :param there: the existing object; not used for an object of another kind
    :param kinds: kinds that several intents share
    """
    users = find_users(there["metadata"].get("labels") or {}) if definition["kind"] in kinds else {}
    if not users:
        return definition
    return replace_labels(definition, {**users, **(definition["metadata"].get("labels") or {})})


def _keep_record(definition: Resource, there: Resource) -> Resource:
    """Return a rendered network or pool whose labels that record an intent are replaced by those of the existing
    object, which may be none. A MachineConfig or KubeletConfig is returned unchanged, because each intent that needs it
    adds its own record.

    :param there: the existing object
    """
    if definition["kind"] in HOST_KINDS:
        return definition
    made = _strip_users(definition)
    users = find_users(there["metadata"].get("labels") or {})
    return replace_labels(made, {**made["metadata"]["labels"], **users})


def _keep_nodes(definition: Resource, there: Resource) -> Resource:
    """Return a rendered object with the annotation of the existing object that names the node labels of its intent. If
    the existing object lacks this annotation, it is removed from the rendered object.

    :param there: the existing object
    """
    notes = {**(definition["metadata"].get("annotations") or {})}
    notes.pop(NODES_ANNOTATION, None)
    found = find_made_for(there)
    notes |= {NODES_ANNOTATION: found} if found else {}
    metadata = {key: value for key, value in definition["metadata"].items() if key != "annotations"}
    return {**definition, "metadata": {**metadata, **({"annotations": notes} if notes else {})}}


def _strip_users(resource: Resource) -> Resource:
    """Return an object without the labels by which intents record that they need it."""
    labels = resource["metadata"].get("labels") or {}
    users = find_users(labels)
    return replace_labels(resource, {key: value for key, value in labels.items() if key not in users})


def _compare_other_intent(
    cluster: Cluster,
    applied: AppliedObject,
    definition: Resource,
    there: Resource,
    why: str,
    scope: typing.Optional[Scope],
) -> tuple[Resource, Outcome]:
    """Return the definition to apply and its outcome, for an existing object that may belong to another intent. The
    outcome is unchanged if a dry run shows that the object equals the rendered one. If a MachineConfig or KubeletConfig
    differs only by the label with which this intent records that it needs the object, the outcome is to add this label.
    Otherwise the object is refused. Nothing is written.

    :param applied: identity of the object
    :param definition: the rendered object
    :param there: the existing object
    :param why: why the object may belong to another intent
    :param scope: objects of the intent; None if they are not known
    """
    kept = _keep_nodes(_keep_record(_keep_intent(definition, there), there), there)
    before = strip_volatile(there)
    try:
        result, warnings = cluster.apply(kept, FIELD_MANAGER, dry_run=True)
    except ApiError as error:
        return definition, Outcome(describe_refusal(applied, error), before, before)
    after = strip_volatile(result)
    if after == before:
        used = f"{why}, so it is used unchanged, and a teardown of this intent leaves it"
        same = dataclasses.replace(applied, action="unchanged", warnings=(*warnings, used))
        return definition, Outcome(same, before, before)
    if definition["kind"] in HOST_KINDS and _strip_users(after) == _strip_users(before):
        return kept, Outcome(dataclasses.replace(applied, action="changed", warnings=warnings), before, after)
    refusal = explain_refusal(applied, definition, there, why, scope, describe_difference(before, after))
    refused = dataclasses.replace(applied, action="refused", reason=OTHER_INTENT, refusal=refusal)
    return definition, Outcome(refused, before, before)


def _compare_foreign(cluster: Cluster, applied: AppliedObject, definition: Resource, there: Resource) -> Outcome:
    """Return the outcome for a foreign object that would get the label of the collection. The outcome is unchanged if a
    dry run shows that the object equals the rendered one, and refused otherwise. Nothing is written.

    :param applied: identity of the object
    :param definition: the rendered object
    :param there: the existing object
    """
    metadata, before = dict(_keep_nodes(_keep_record(definition, there), there)["metadata"]), strip_volatile(there)
    metadata["labels"] = {
        key: value for key, value in metadata["labels"].items() if key not in (LABEL, FABRIC_LABEL, INTENT_LABEL)
    }
    # a user who takes the label of the collection off leaves that of the intent
    kept = (there["metadata"].get("labels") or {}).get(INTENT_LABEL)
    metadata["labels"] |= {INTENT_LABEL: kept} if kept is not None else {}
    if not metadata["labels"]:
        del metadata["labels"]
    differs = ""
    try:
        result, warnings = cluster.apply({**definition, "metadata": metadata}, FIELD_MANAGER, dry_run=True)
        if strip_volatile(result) == before:
            used = f"it has no label {SELECTOR}, so it is used unchanged, and no teardown deletes it"
            return Outcome(dataclasses.replace(applied, action="unchanged", warnings=(*warnings, used)), before, before)
        difference = describe_difference(before, strip_volatile(result))
        differs = f"differs from the rendered object{f' in {difference}' if difference else ''}"
    except ApiError as error:
        if error.reason != "Conflict":
            return Outcome(describe_refusal(applied, error), before, before)
        differs = error.text
    where = f"-n {applied.namespace} " if applied.namespace else ""
    refusal = (
        f"it has no label {SELECTOR}, so this collection did not create it, and {differs}.{FOREIGN_STEPS}"
        f" add the label so that a teardown deletes it: kubectl {where}label"
        f" {kind_of(definition).lower()} {applied.name} {SELECTOR} --overwrite"
    )
    return Outcome(dataclasses.replace(applied, action="refused", reason=FOREIGN, refusal=refusal), before, before)


def _mark_unjudged(definition: Resource, planned: Outcome, made: typing.Iterable[AppliedObject]) -> Outcome:
    """Return the planned outcome of an object in check mode. If its kind or its namespace does not exist yet, because
    an earlier stage or this run would create it, the action becomes ``unjudged``: the API server cannot judge the
    object.

    :param definition: the rendered object
    :param planned: outcome of the dry run
    :param made: objects that this run would create
    """
    if not _is_not_found(planned) and not _came_too_early(planned, made):
        return planned
    return Outcome(dataclasses.replace(planned.applied, action="unjudged"), planned.before, strip_volatile(definition))


def _is_not_found(outcome: Outcome) -> bool:
    """Return whether the API server refused an object because its kind or its namespace does not exist."""
    return outcome.applied.action == "refused" and outcome.applied.reason == "NotFound"


def _apply_planned(cluster: Cluster, definition: Resource, planned: Outcome) -> Outcome:
    try:
        if definition["kind"] == "Namespace" and planned.before is None and _admits_privileged(definition):
            # a tenant may have made the namespace in the meantime, and it must not get this level: an apply would
            # change it, and a creation fails. Only here, since a creation needs a right without a name
            result, warnings = cluster.create(definition, FIELD_MANAGER), planned.applied.warnings
        else:
            result, warnings = cluster.apply(definition, FIELD_MANAGER, dry_run=False)
    except ApiError as error:
        return Outcome(describe_refusal(planned.applied, error), planned.before)
    return dataclasses.replace(
        planned, applied=dataclasses.replace(planned.applied, warnings=warnings), after=strip_volatile(result)
    )


def _admits_privileged(namespace: Resource) -> bool:
    """Return whether a Namespace enforces the Pod Security level ``privileged``, which allows its pods full access to
    the node.
    """
    return (namespace["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce") == "privileged"
