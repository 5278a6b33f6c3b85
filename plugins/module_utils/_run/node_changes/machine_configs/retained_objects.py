# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds which MachineConfigs, KubeletConfigs and pauses a removal must leave, and why."""

from __future__ import annotations

import typing

from ...._analysis.controllers.labelled_objects import describe_delete
from ...._model.base.marks import INTENT_LABEL, SELECTOR
from ...._model.kubernetes.owner_marks import explain_owner
from ...._model.kubernetes.scope import Scope
from ...._model.operators.olm import RetainedObject
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.outcome import has_our_label
from ...._observe.kubernetes.refusals import OLD_RECORD
from ...._parse.kubernetes.foreign import is_copied
from ...._parse.kubernetes.resource import name_of
from .paused_pools import PoolView, find_paused_pools


def find_other_pauses(view: PoolView, scope: typing.Optional[Scope]) -> dict[str, str]:
    """Return the reason for each MachineConfigPool that a run of another intent left paused, by name of the pool.
    Return an empty dict without a scope, and on a cluster without the machine config operator.

    :param view: reader of the MachineConfigPools
    :param scope: objects of the intent; None for no scope
    """
    return find_paused_pools(view, scope).others if scope is not None and view.served else {}


def explain_stay(live: Resource, scope: typing.Optional[Scope]) -> str:
    """Return the reason why an object must not be deleted. Return an empty text if it belongs to the intent.

    :param live: the object as it is in the cluster
    :param scope: objects of the intent; None: each object of the collection may be deleted, unless a GitOps tool owns
        it
    """
    if not has_our_label(live):
        return f"it has no label {SELECTOR}, so this collection did not create it"
    if is_copied(live):
        return f"no run wrote it: a user copied it with the label {SELECTOR}"
    return explain_owner(live) or (scope.explain_foreign(str(live["kind"]), live) if scope is not None else "")


def retain_object(live: Resource, why: str, scope: typing.Optional[Scope]) -> RetainedObject:
    """Return the entry for an object that is not deleted, with the remedy.

    :param live: the object as it is in the cluster
    :param why: reason why the object is not deleted
    :param scope: objects of the intent, which tell whether other intents need the object; None if they are not known
    """
    kind, name = str(live["kind"]), name_of(live)
    shared = scope is not None and has_our_label(live) and not is_copied(live) and not explain_owner(live)
    if scope is not None and shared and scope.find_other_users(kind, live):
        # without the name and the record of this intent, the next teardown would leave the object to another one
        marks = [f"{key}-" for key in sorted(scope.find_other_users(kind, live))]
        marks += [f"{key}={value}" for key, value in {INTENT_LABEL: scope.intent, **scope.user_label}.items()]
        return RetainedObject(
            f"{kind} {name}",
            why,
            f"The teardown of the last intent that needs it deletes it. {OLD_RECORD} If no other intent needs it any"
            " more, record only this intent in its labels: kubectl label --overwrite"
            f" {kind.lower()} {name} {' '.join(marks)}. Then run the teardown again, which deletes it",
        )
    return RetainedObject(
        f"{kind} {name}",
        why,
        "If it is yours and no longer needed, delete it. The nodes of its MachineConfigPool then reboot:"
        f" {describe_delete(kind, name)}",
    )


def retain_unrecorded(live: Resource, why: str) -> RetainedObject:
    """Return the entry for an object of an earlier release that is not deleted, because another intent may need it,
    with the remedy.

    :param live: the object as it is in the cluster
    :param why: reason why another intent may need it
    """
    kind, name = str(live["kind"]), name_of(live)
    return RetainedObject(
        f"{kind} {name}",
        why,
        "Run stage network once with each intent that needs it, this one included: it records the intents, and no node"
        " reboots for that. Then run the teardown again. If no intent needs it, delete it, and the nodes of its"
        f" MachineConfigPool reboot: {describe_delete(kind, name)}",
    )


def retain_pause(pool: str, why: str) -> RetainedObject:
    """Return the entry for a MachineConfigPool that stays paused, with the remedy.

    :param pool: name of the pool
    :param why: reason why it stays paused
    """
    return RetainedObject(
        f"MachineConfigPool {pool}",
        f"it is paused, and it stays paused: {why}",
        "Run stage network with the other intent again: it unpauses the pool. If you no longer use that intent, unpause"
        f" it, and its nodes may reboot: oc patch machineconfigpool {pool} --type merge -p"
        """ '{"spec":{"paused":false}}'""",
    )
