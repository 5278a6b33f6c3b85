# SPDX-License-Identifier: GPL-3.0-or-later

"""The components of a NicClusterPolicy that the collection wrote. A cluster has one NicClusterPolicy, so a component
may be that of another intent.
"""

from __future__ import annotations

import json
import typing

from ..base.marks import MANAGER

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
    """Return the names of the components of a NicClusterPolicy of which only the collection wrote a field, such as
    ``ofedDriver``, without device plugins. Without records of field managers, all components count.

    :param policy: the policy; a policy of which only the metadata was read is sufficient if it has records
    """
    records = _mapping(policy, "metadata").get("managedFields")
    if not isinstance(records, list) or not records:
        return _name_components(_mapping(policy, "spec"), "")
    ours: dict[str, typing.Any] = {}
    others: dict[str, typing.Any] = {}
    for record in records:
        fields = _mapping(record, "fieldsV1", "f:spec")
        _merge(ours if _mapping(record).get("manager") == MANAGER else others, fields)
    return _name_components(_subtract(ours, others), "f:")


def find_dropped(wanted: Item, there: Item) -> tuple[str, ...]:
    """Return the names of the components of an existing policy that a rendered one would drop.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    kept = list_components({"spec": wanted.get("spec")})
    return tuple(name for name in list_components(there) if name not in kept)


def format_removal(wanted: Item, there: Item) -> str:
    """Return the command that removes the components which a rendered policy would drop. Return an empty text if it
    would drop none.

    :param wanted: the rendered policy
    :param there: the policy in the cluster
    """
    patch = [{"op": "remove", "path": f"/spec/{name}"} for name in find_dropped(wanted, there)]
    name = _mapping(there, "metadata").get("name")
    return f"kubectl patch nicclusterpolicies.mellanox.com {name} --type json -p '{json.dumps(patch)}'" if patch else ""


def _name_components(fields: Item, prefix: str) -> tuple[str, ...]:
    """Return the names of components.

    :param prefix: beginning of each key
    """
    names = (str(key)[len(prefix) :] for key in fields if str(key).startswith(prefix))
    return tuple(name for name in names if name and name not in _PLUGINS)


def _merge(into: dict[str, typing.Any], fields: Item, depth: int = 3) -> None:
    for key, value in fields.items():
        found = into.setdefault(key, {})
        if depth and isinstance(value, typing.Mapping):
            _merge(found, value, depth - 1)


def _subtract(ours: Item, others: Item) -> dict[str, typing.Any]:
    """Return the fields of the first record without those that the second one has too."""
    left: dict[str, typing.Any] = {}
    for key, value in ours.items():
        if key == ".":
            continue
        rest = _subtract(value, others[key]) if key in others else value
        if rest or key not in others:
            left[key] = rest
    return left


def _mapping(item: typing.Any, *keys: str) -> Item:
    for key in keys:
        item = item.get(key) if isinstance(item, typing.Mapping) else None
    return item if isinstance(item, typing.Mapping) else {}
