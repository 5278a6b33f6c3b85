# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the objects of an earlier intent, of all kinds that stage network applies."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.marks import FABRIC_LABEL, INTENT_LABEL
from ...._model.kubernetes.apply import BY_ADDRESS, MOST_LEFT, MOST_LEFT_ALIKE, AppliedObject, Leftovers
from ...._model.kubernetes.scope import Scope
from ..client import Cluster
from ..kinds import Resource
from ..machines import find_labelled
from ..outcome import identify_object
from .copies import mark_copy
from .removable_objects import list_each_kind
from .remove import find_leftovers, is_of_another


def find_all_leftovers(
    cluster: Cluster,
    kinds: typing.Sequence[str],
    selector: str,
    wanted: typing.Sequence[Resource],
    scope: typing.Optional[Scope] = None,
    tunes: bool = True,
) -> Leftovers:
    """Return the objects with the label of the collection that the intent no longer requires: objects of ``kinds``, and
    MachineConfigs and KubeletConfigs. With a scope, NicConfigurationTemplates and the Tuned, which other stages apply,
    are included. At most ``MOST_LEFT`` objects are returned, with the number of further ones. A list that the API
    server refuses is stored in ``errors`` of the result.

    :param kinds: kinds that are searched besides MachineConfigs and KubeletConfigs
    :param selector: label selector of the collection
    :param wanted: objects that the intent requires
    :param scope: objects of the intent; None: objects that other stages apply are not searched
    :param tunes: whether stage tuning of the intent applies a Tuned
    :raises ApiError: the API server cannot be reached
    """
    found, hosts = find_leftovers(cluster, kinds, selector, wanted, scope), find_labelled(cluster, wanted)
    mine = [item for item in hosts.objects if not is_of_another(item, wanted, scope)]
    beside, errors = _find_of_stages(cluster, selector, scope, tunes) if scope is not None else ([], [])
    # first, because tenants can make any number of the others
    objects = (*(mark_copy(identify_object("", item), item) for item in mine), *beside, *found.objects)
    return dataclasses.replace(
        found,
        objects=objects[:MOST_LEFT],
        more=found.more + len(objects[MOST_LEFT:]),
        errors=(*found.errors, *hosts.unread, *errors),
    )


def _find_of_stages(
    cluster: Cluster, selector: str, scope: Scope, tunes: bool
) -> tuple[list[AppliedObject], list[str]]:
    """Return two lists: the NicConfigurationTemplates and the Tuned with the label that no stage of the intent applies
    any more, each with the reason, and the errors of kinds that could not be listed.

    :param selector: label selector of the collection
    :param tunes: whether stage tuning of the intent applies a Tuned
    """
    found: list[AppliedObject] = []
    errors: list[str] = []
    for kind, items in list_each_kind(cluster, ("NicConfigurationTemplate", "Tuned"), selector, errors):
        for item in items:
            labels = item["metadata"].get("labels") or {}
            why, reason = _explain_tuned(tunes) if kind == "Tuned" else _explain_template(item, scope)
            if why and labels.get(INTENT_LABEL, scope.intent) == scope.intent:
                named = identify_object(str(labels.get(FABRIC_LABEL) or ""), item)
                found.append(mark_copy(dataclasses.replace(named, refusal=why, reason=reason), item))
    return found[:MOST_LEFT_ALIKE], errors


def _explain_tuned(tunes: bool) -> tuple[str, str]:
    return ("", "") if tunes else ("rdma_cluster.tuning.set is not true, and the Tuned still sets nodes", "")


def _explain_template(item: Resource, scope: Scope) -> tuple[str, str]:
    """Return why the intent does not apply a NicConfigurationTemplate any more, and the code of the reason
    (``BY_ADDRESS``, or empty). Both are empty if the intent may still apply it.
    """
    fabric = str((item["metadata"].get("labels") or {}).get(FABRIC_LABEL) or "")
    if fabric not in scope.fabrics:
        return f"the intent does not contain its fabric {fabric or '(none)'}, and it still configures HCAs", ""
    chosen = (item.get("spec") or {}).get("nicSelector") or {}
    if "spec" in item and not chosen.get("serialNumbers"):
        return (
            "it selects HCAs by model and PCI address, so it also configures HCAs of nodes that join later",
            BY_ADDRESS,
        )
    return "", ""
