# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why an object that may belong to another intent is not changed, with the command by which the user goes
on.
"""

from __future__ import annotations

import typing

from ..._model.base.marks import DEFAULT_INTENT, INTENT_LABEL, find_users
from ..._model.kubernetes.apply import AppliedObject
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.kubernetes.nic_policy import (
    describe_driver_remedy,
    explain_driver,
    find_other_intents,
    format_removal,
)
from ..._model.kubernetes.scope import Scope
from .kinds import Resource, kind_of
from .outcome import JOINT_KINDS

#: of an object that an intent with another name has or needs: no command here would take it from this intent
ASK_OWNER = "Ask its owner before you change it."
SAME_INTENT = "If both are the same intent, set rdma_cluster.intent_name: {owner}"
_SAME_NAME = "a name that another intent may have"
#: of the labels by which intents record that they need a shared object
OLD_RECORD = "After a change of intent_name or node_selector, an older label may be of this intent itself."


def explain_refusal(
    applied: AppliedObject,
    definition: Resource,
    there: Resource,
    why: str,
    scope: typing.Optional[Scope],
    difference: str = "",
) -> str:
    """Return the message about the refusal of an object that differs from the rendered one and may belong to another
    intent, with what the user can do. If the object has the name of another intent, no command to take it over is
    given.

    :param applied: identity of the object
    :param definition: the rendered object
    :param there: the existing object
    :param why: why the object may belong to another intent
    :param scope: objects of the intent; None if they are not known
    :param difference: fields in which the objects differ, as text; empty if they are not known
    """
    differs = f"differs from the rendered object{f' in {difference}' if difference else ''}"
    mine = str(definition["metadata"]["labels"][INTENT_LABEL])
    found = there["metadata"].get("labels") or {}
    where = f"-n {applied.namespace} " if applied.namespace else ""
    command = f"kubectl {where}label {kind_of(definition).lower()} {applied.name}"
    if definition["kind"] in HOST_KINDS and scope is not None and found.get(INTENT_LABEL, mine) == mine:
        return f"{why}, and {differs}. {_explain_shared(command, definition, there, scope)}"
    another = (
        "A cluster has one NicClusterPolicy: list all fabrics that need it in one intent"
        if definition["kind"] in JOINT_KINDS
        else "Use another name in this intent"
    )
    if definition["kind"] in JOINT_KINDS and explain_driver(definition, there) == why:
        return f"{why}. {describe_driver_remedy(definition, there)}"
    owners = [str(found.get(INTENT_LABEL, ""))]
    owners += find_other_intents(definition, there) if definition["kind"] in JOINT_KINDS else ()
    for owner in owners:
        if owner not in ("", mine, DEFAULT_INTENT):
            return f"{why}, and {differs}. {ASK_OWNER} {another}. {SAME_INTENT.format(owner=owner)}"
    removal = format_removal(definition, there) if definition["kind"] in JOINT_KINDS else ""
    another += f". If no intent needs the components, remove them: {removal}" if removal else ""
    doubt = (scope.doubt or (_SAME_NAME if scope.explain_other_nodes(there) else "")) if scope is not None else ""
    if scope is not None and doubt and found.get(INTENT_LABEL) == mine:
        return (
            f"{why}, and {differs}. It has the label {INTENT_LABEL}={mine}, {doubt}. Give"
            " each intent of the cluster its own rdma_cluster.intent_name. If it is of this intent, such as after a"
            f" change of node_selector, label it: {command} {_format_labels(scope.confirmation)}"
        )
    record = (
        ""
        if definition["kind"] in (*HOST_KINDS, *JOINT_KINDS)
        else _format_labels(find_users(definition["metadata"]["labels"]))
    )
    name = mine if mine != DEFAULT_INTENT else "NAME"
    # the name of another intent stays a proof
    recorded = record and found.get(INTENT_LABEL, mine) == mine
    label = record if recorded else f"{INTENT_LABEL}={name} --overwrite"
    rename = "" if recorded or mine != DEFAULT_INTENT else f"set rdma_cluster.intent_name: {name}, and "
    return f"{why}, and {differs}. {another}. If it is of this intent, {rename}label it: {command} {label}"


def _explain_shared(command: str, definition: Resource, there: Resource, scope: Scope) -> str:
    """Return what the user can do about a MachineConfig or KubeletConfig that another intent may need with its present
    content, as text with a command.

    :param command: beginning of the kubectl command that labels the object
    :param definition: the rendered object
    :param there: the existing object
    """
    same = "Intents with one rdma_cluster.host.machine_role share it: set the same rdma_cluster.host in each of them"
    users = scope.find_other_users(str(definition["kind"]), there)
    others = sorted(users)
    for owner in sorted({*users.values()} - {scope.intent, DEFAULT_INTENT}):
        return f"{ASK_OWNER} {same}. {SAME_INTENT.format(owner=owner)}"
    if others:
        return (
            f"{same}. {OLD_RECORD} If no other intent needs it any more, remove the labels, then run stage network"
            f" again: {command} {' '.join(f'{key}-' for key in others)}"
        )
    return (
        f"{same}, and run stage network with each of them. If only this intent needs it, label it, then run stage"
        f" network again: {command} {_format_labels(scope.user_label)}"
    )


def _format_labels(labels: typing.Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items())
