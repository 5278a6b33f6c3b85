# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the driver (spec.ofedDriver) of a rendered NicClusterPolicy with the policy in the cluster.

The operator runs the driver in a DaemonSet on each node with the label of NVIDIA's NICs, in the inventory or not. A new
driver is loaded after a drain (safeLoad, autoUpgrade). Without spec.ofedDriver, the operator deletes the DaemonSet, and
drains no node. [src Mellanox/network-operator manifests/state-ofed-driver/0050_ofed-driver-ds.yaml, pkg/state
state_ofed.go Sync, controllers/upgrade_controller.go]
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import MANAGER, is_ours
from ..._model.kubernetes.disruption import LabelExpression, LabelSelector
from ..._model.operators.drivers import NIC, DriverChange, OperatorUpgrade
from ..kubernetes.core import tolerates_taint
from ..kubernetes.resource import Resource, items_of, labels_of, mapping_at, name_of, number_of, texts_of, title_of

#: settings by which the operator drains nodes; a change of them alone restarts no driver
_UPGRADE = "upgradePolicy"
_TITLE = "NicClusterPolicy"
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
#: taints that the DaemonSet of the driver tolerates whatever the policy says: those of Kubernetes, and that of GPUs
_TOLERATED = "node.kubernetes.io/"
_GPU_TAINT = ("nvidia.com/gpu", "NoSchedule")
_EVICTING = ("NoSchedule", "NoExecute")


def parse_driver_change(wanted: Resource, there: typing.Optional[Resource]) -> typing.Optional[DriverChange]:
    """Return the change of the driver that a rendered NicClusterPolicy causes when it is applied. Return None if the
    driver stays as it is.

    The driver is removed if the rendered policy does not contain it, and only the collection has set the driver in the
    cluster.

    :param wanted: the rendered policy
    :param there: the policy in the cluster; None if there is none
    :raises ResourceError: an object does not have the form of its kind
    """
    new, old = mapping_at(wanted, "spec", "ofedDriver"), mapping_at(there or {}, "spec", "ofedDriver")
    name = name_of(wanted)
    subject = f"driver of NVIDIA's network operator (NicClusterPolicy {name}, spec.ofedDriver)"
    found: DriverChange
    if new:
        changed = [key for key, value in new.items() if key != _UPGRADE and value != old.get(key)]
        version = f"{new.get('version')}"
        if not old:
            found = DriverChange(name, "load", f"{subject}: version {version} is new")
        elif changed:
            texts = ", ".join(f"{key} {old.get(key) or 'not set'} -> {new[key]}" for key in changed)
            found = DriverChange(name, "load", f"{subject}: {texts}")
        elif mapping_at(new, _UPGRADE).get("autoUpgrade") and not mapping_at(old, _UPGRADE).get("autoUpgrade"):
            found = DriverChange(
                name, "load", f"{subject}: autoUpgrade false -> true, which reloads drivers that are not up to date"
            )
        else:
            return None
    elif there is not None and old and _is_set_by_us(there):
        text = f"{subject}: version {old.get('version') or 'not set'} is removed from all nodes at the same time"
        found = DriverChange(name, "remove", text, None)
    else:
        return None
    terms = _parse_affinity(there or {})
    if found.action == "remove":
        return dataclasses.replace(found, affinity=terms)
    upgrade = mapping_at(new, _UPGRADE)
    return dataclasses.replace(
        found,
        at_once=number_of(upgrade.get("maxParallelUpgrades", 1), f"{_TITLE}: maxParallelUpgrades") or None,
        affinity=terms,
    )


def parse_driver_upgrade(policy: Resource, upgrade: OperatorUpgrade, kind: str = NIC) -> typing.Optional[DriverChange]:
    """Return the reload of the driver that an upgrade of NVIDIA's network operator causes. Return None if the policy
    has no driver, or no ``autoUpgrade``, without which the operator replaces no pod of the driver that runs. Each
    NicNodePolicy has turns of its own. [controllers/upgrade_controller.go reconcileNodePolicyUpgrades]

    :param policy: the NicClusterPolicy in the cluster, or a NicNodePolicy
    :param kind: kind of the policy
    :raises ResourceError: the object does not have the form of its kind
    """
    rollout, name = mapping_at(policy, "spec", "ofedDriver", _UPGRADE), name_of(policy)
    if rollout.get("autoUpgrade") is not True:
        return None
    return DriverChange(
        name if kind == NIC else f"{kind} {name}",
        "load",
        f"an upgrade of NVIDIA's network operator reloads its driver ({kind} {name}; {upgrade.text})",
        number_of(rollout.get("maxParallelUpgrades", 1), f"{_TITLE}: maxParallelUpgrades") or None,
        affinity=_parse_affinity(policy),
    )


def parse_driver_removal(policy: Resource) -> typing.Optional[DriverChange]:
    """Return the change of the driver that happens when the collection removes its NicClusterPolicy, or only its own
    fields of the policy. Return None if the policy has no driver, or if other field managers have set all fields of the
    driver, so that it stays.

    :param policy: the policy in the cluster. A policy whose spec could not be read is assumed to have a driver
    :raises ResourceError: the object does not have the form of its kind
    """
    driver, name = mapping_at(policy, "spec", "ofedDriver"), name_of(policy)
    ours, others = _list_managed_fields(policy)
    if ("spec" in policy and not driver) or (others and not ours - others):
        return None
    return DriverChange(
        name,
        "remove",
        f"NicClusterPolicy {name}, spec.ofedDriver: version {driver.get('version') or 'not set'}",
        None,
        affinity=_parse_affinity(policy),
    )


def list_kept_out(nodes: typing.Iterable[Resource], policy: typing.Optional[Resource]) -> tuple[str, ...]:
    """Return the names of the nodes that the driver does not run on, because its pods do not tolerate a taint of the
    node.

    :param nodes: nodes of the cluster
    :param policy: the NicClusterPolicy in the cluster, which may have further tolerations; None if there is none
    :raises ResourceError: an object does not have the form of its kind
    """
    tolerations = items_of(mapping_at(policy or {}, "spec"), "tolerations", _TITLE)
    return tuple(name_of(node) for node in nodes if _is_kept_out(node, tolerations))


def _parse_affinity(policy: Resource) -> tuple[LabelSelector, ...]:
    affinity = mapping_at(policy, "spec", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(_parse_term(term) for term in items_of(affinity, "nodeSelectorTerms", _TITLE))


def _parse_term(term: typing.Mapping[str, typing.Any]) -> LabelSelector:
    """Return a term of a node affinity. Expressions with operators that a label selector does not have are left out.

    :raises ResourceError: a value has another form
    """
    asked = (item for item in items_of(term, "matchExpressions", _TITLE) if item.get("operator") in _OPERATORS)
    return LabelSelector(
        expressions=tuple(
            LabelExpression(str(item.get("key")), str(item.get("operator")), texts_of(item, "values", _TITLE))
            for item in asked
        )
    )


def _is_kept_out(node: Resource, tolerations: typing.Sequence[typing.Mapping[str, typing.Any]]) -> bool:
    """Return whether a taint of the node keeps the pods of the driver away.

    :param tolerations: tolerations of the policy, in addition to those that the operator sets
    """
    return any(
        taint.get("effect") in _EVICTING
        and not str(taint.get("key")).startswith(_TOLERATED)
        and (taint.get("key"), taint.get("effect")) != _GPU_TAINT
        and not any(tolerates_taint(toleration, taint) for toleration in tolerations)
        for taint in items_of(mapping_at(node, "spec"), "taints", "Node")
    )


def _is_set_by_us(policy: Resource) -> bool:
    """Return whether the collection has set fields of the driver that no other field manager has set. The next
    server-side apply that leaves such fields out removes them. If the API server has no records of the managers, the
    label of the collection decides.
    """
    if not items_of(mapping_at(policy, "metadata"), "managedFields", title_of(policy)):
        return is_ours(labels_of(policy))
    ours, others = _list_managed_fields(policy)
    return bool(ours - others)


def _list_managed_fields(policy: Resource) -> tuple[set[str], set[str]]:
    """Return two sets of the names of the driver's fields: those that the collection has set, and those that other
    field managers have set. A field can be in both.
    """
    ours: set[str] = set()
    others: set[str] = set()
    for entry in items_of(mapping_at(policy, "metadata"), "managedFields", title_of(policy)):
        if not entry.get("subresource"):
            fields = mapping_at(entry, "fieldsV1", "f:spec", "f:ofedDriver").keys() - {".", f"f:{_UPGRADE}"}
            (ours if entry.get("manager") == MANAGER else others).update(fields)
    return ours, others
