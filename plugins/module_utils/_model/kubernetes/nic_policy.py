# SPDX-License-Identifier: GPL-3.0-or-later

"""The components of a NicClusterPolicy that the collection wrote. A cluster has one NicClusterPolicy, so a component
may be that of another intent.
"""

from __future__ import annotations

import json
import typing

from ..base.marks import DEFAULT_INTENT, INTENT_LABEL, MANAGER, find_users
from .mappings import find_mapping

Item = typing.Mapping[str, typing.Any]
#: kinds of the networks and pools that need a component of the policy
NEEDING_KINDS = (
    "MacvlanNetwork",
    "IPoIBNetwork",
    "HostDeviceNetwork",
    "IPPool.nv-ipam.nvidia.com",
    "CIDRPool.nv-ipam.nvidia.com",
)
#: components whose resources are compared instead
_PLUGINS = ("rdmaSharedDevicePlugin", "sriovDevicePlugin")


def list_components(policy: Item) -> tuple[str, ...]:
    """Return the names of the components of a NicClusterPolicy that only the collection wrote, such as ``ofedDriver``.
    Device plugins are left out. If the policy has no records of field managers, all other components count.

    :param policy: the policy; a policy of which only the metadata was read is sufficient if it has records
    """
    records = find_mapping(policy, "metadata").get("managedFields")
    if not isinstance(records, list) or not records:
        return _name_components(find_mapping(policy, "spec"), "")
    ours: dict[str, typing.Any] = {}
    others: dict[str, typing.Any] = {}
    for record in records:
        fields = find_mapping(record, "fieldsV1", "f:spec")
        _merge(ours if find_mapping(record).get("manager") == MANAGER else others, fields)
    return _name_components(_subtract(ours, others), "f:")


def find_dropped(wanted: Item, there: Item) -> tuple[str, ...]:
    """Return the names of the components of an existing policy that a rendered one would drop.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    kept = list_components({"spec": wanted.get("spec")})
    return tuple(name for name in list_components(there) if name not in kept)


def find_other_users(wanted: Item, there: Item) -> tuple[str, ...]:
    """Return the sorted keys of the labels by which other intents than that of a rendered policy record that they need
    the policy.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    mine, found = (find_users(find_mapping(item, "metadata", "labels")) for item in (wanted, there))
    return tuple(sorted(found.keys() - mine.keys()))


def find_other_intents(wanted: Item, there: Item) -> tuple[str, ...]:
    """Return the names of the intents that record that they need a policy, and that have another name than that of a
    rendered policy. The default name is left out, because several intents may have it.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    labels = find_users(find_mapping(there, "metadata", "labels"))
    mine = find_mapping(wanted, "metadata", "labels").get(INTENT_LABEL)
    names = {labels[label] for label in find_other_users(wanted, there)}
    return tuple(sorted(names - {mine, "", DEFAULT_INTENT}))


def explain_driver(wanted: Item, there: Item) -> str:
    """Return how the driver of a rendered policy differs from that of the policy in the cluster, if other intents need
    the policy. Return an empty text if the drivers are equal, if one of the policies names no driver, or if no other
    intent needs the policy.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    mine, theirs = (_describe_driver(item) for item in (wanted, there))
    others = find_other_users(wanted, there)
    if not others or not mine or not theirs or mine == theirs:
        return ""
    own = ", ".join(sorted(find_users(find_mapping(wanted, "metadata", "labels")))) or "no label"
    return (
        f"the intent with the label {', '.join(others)} needs the driver {theirs} (ofedDriver), and this intent ({own})"
        f" asks for {mine}. The driver of all nodes would be replaced"
    )


def describe_driver_remedy(wanted: Item, there: Item) -> str:
    """Return the remedy for the case that two intents need different drivers.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    name = find_mapping(there, "metadata").get("name")
    labels = " ".join(f"{label}-" for label in find_other_users(wanted, there))
    for owner in find_other_intents(wanted, there):
        return (
            "Ask its owner before you change it. Set the same rdma_cluster.network_operator.ofed_driver in both"
            f" intents. If both are the same intent, set rdma_cluster.intent_name: {owner}. Then run stage network"
            " again"
        )
    return (
        "Set the same rdma_cluster.network_operator.ofed_driver in both intents, and give each intent its own"
        " rdma_cluster.intent_name. If no other intent needs the policy, such as after a change of node_selector,"
        f" remove the old label: kubectl label nicclusterpolicies.mellanox.com {name} {labels}. Then run stage network"
        " again"
    )


def _describe_driver(policy: Item) -> str:
    """Return the image of the driver in a policy, with its version; empty if the policy has no driver."""
    driver = find_mapping(policy, "spec", "ofedDriver")
    path = "/".join(str(driver[key]) for key in ("repository", "image") if driver.get(key))
    return f"{path}:{driver.get('version')}" if driver else ""


def format_removal(wanted: Item, there: Item) -> str:
    """Return the command that removes the components which a rendered policy would drop. Return an empty text if it
    would not drop a component.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    patch = [{"op": "remove", "path": f"/spec/{name}"} for name in find_dropped(wanted, there)]
    name = find_mapping(there, "metadata").get("name")
    return f"kubectl patch nicclusterpolicies.mellanox.com {name} --type json -p '{json.dumps(patch)}'" if patch else ""


def _name_components(fields: Item, prefix: str) -> tuple[str, ...]:
    """Return the names of the components in a mapping, without device plugins. Keys without the prefix are ignored.

    :param fields: fields of the policy by name
    :param prefix: beginning of each key, which is removed: ``f:`` in records of field managers, otherwise empty
    """
    names = (str(key)[len(prefix) :] for key in fields if str(key).startswith(prefix))
    return tuple(name for name in names if name and name not in _PLUGINS)


def _merge(into: dict[str, typing.Any], fields: Item, depth: int = 3) -> None:
    for key, value in fields.items():
        found = into.setdefault(key, {})
        if depth and isinstance(value, typing.Mapping):
            _merge(found, value, depth - 1)


def _subtract(ours: Item, others: Item) -> dict[str, typing.Any]:
    """Return the fields of ``ours`` that ``others`` does not contain. A field with subfields remains if one of its
    subfields does.

    :param ours: nested fields in the records of the collection, as in ``fieldsV1``
    :param others: nested fields in the records of all other field managers
    """
    left: dict[str, typing.Any] = {}
    for key, value in ours.items():
        if key == ".":
            continue
        rest = _subtract(value, others[key]) if key in others else value
        if rest or key not in others:
            left[key] = rest
    return left
