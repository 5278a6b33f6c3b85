# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the fields of an object that show to which intent it belongs: the resources that it offers, its addresses, and
the labels of the nodes that it selects. An object may have been written by any user, so no field is trusted to exist or
to have its type.
"""

from __future__ import annotations

import json
import typing

from ..base.marks import MANAGER, NODES_ANNOTATION
from .mappings import find_mapping
from .own_kinds import NETWORKS

Item = typing.Mapping[str, typing.Any]
_HOSTNAME = "kubernetes.io/hostname"

#: kinds with a fixed name for each fabric or intent
NAMED_KINDS = (
    *NETWORKS,
    "IPPool",
    "CIDRPool",
    "SriovNetworkPoolConfig",
    "MachineConfig",
    "KubeletConfig",
    "Tuned",
)
#: kinds with names that begin with that of the fabric
FABRIC_KINDS = ("SriovNetworkNodePolicy", "NicConfigurationTemplate")
#: pools of nv-ipam, each with the field that has its addresses
POOL_SUBNETS = {"IPPool": "subnet", "CIDRPool": "cidr"}

_ENTRIES = (("rdmaSharedDevicePlugin", "configList"), ("sriovDevicePlugin", "resourceList"))


def list_entries(policy: Item) -> tuple[str, ...]:
    """Return the names of the resources that the device plugins of a NicClusterPolicy offer. Device plugins whose
    configuration another field manager wrote are left out, and so are those whose configuration is not a JSON object.
    """
    found = []
    records = find_mapping(policy, "metadata").get("managedFields") or ()
    written = [
        find_mapping(record, "fieldsV1", "f:spec")
        for record in records
        if isinstance(record, typing.Mapping) and record.get("manager") == MANAGER
    ]
    for plugin, entries in _ENTRIES:
        if records and not any(f"f:{plugin}" in fields for fields in written):
            continue
        try:
            config = json.loads(str(find_mapping(policy, "spec", plugin).get("config") or "{}"))
        except ValueError:
            continue
        listed = config.get(entries) if isinstance(config, dict) else None
        found += [
            str(entry.get("resourceName") or "")
            for entry in (listed if isinstance(listed, list) else ())
            if isinstance(entry, dict)
        ]
    return tuple(dict.fromkeys(found))


def find_pool_nodes(kind: str, item: Item) -> typing.Optional[dict[str, str]]:
    """Return the labels of the nodes for which a pool of nv-ipam has addresses. Return None if the object is not such a
    pool, or if its node selector has another form than that of the collection's pools.

    :param kind: kind of the object
    """
    terms = find_mapping(item, "spec", "nodeSelector").get("nodeSelectorTerms") if kind in POOL_SUBNETS else None
    first = terms[0] if isinstance(terms, list) and len(terms) == 1 else None
    found = find_mapping(first).get("matchExpressions")
    chosen: dict[str, str] = {}
    for entry in found if isinstance(found, list) else ():
        values = find_mapping(entry).get("values")
        if find_mapping(entry).get("operator") != "In" or not isinstance(values, list) or len(values) != 1:
            return None
        chosen[str(find_mapping(entry).get("key"))] = str(values[0])
    return chosen or None


def find_pools(kind: str, item: Item) -> tuple[tuple[str, str], ...]:
    """Return the pools of nv-ipam from which a network takes its addresses, each as two texts: its kind in lower case,
    and its name. The result is empty if the network does not use nv-ipam.

    A network of two IP versions names two pools, separated by a comma. A network that names no pool uses the pool with
    its own name. [README of Mellanox/nvidia-k8s-ipam, CNI configuration: poolName]

    :param kind: kind of the network
    :param item: the network
    """
    spec = find_mapping(item, "spec")
    own = str(find_mapping(item, "metadata").get("name") or "")
    if kind != "NetworkAttachmentDefinition":
        return _list_pools(_read_json(spec.get("ipam")), own)
    config = _read_json(spec.get("config"))
    plugins = config.get("plugins")
    entries = [config, *(plugins if isinstance(plugins, list) else [])]
    name = str(config.get("name") or own)
    found = (pool for entry in entries for pool in _list_pools(find_mapping(entry, "ipam"), name))
    return tuple(dict.fromkeys(found))


def _list_pools(ipam: Item, network: str) -> tuple[tuple[str, str], ...]:
    """Return the pools that an ``ipam`` section names, as in :func:`find_pools`.

    :param network: name of the network
    """
    if ipam.get("type") != "nv-ipam":
        return ()
    kind = str(ipam.get("poolType") or "ippool").lower()
    return tuple((kind, name.strip()) for name in str(ipam.get("poolName") or network).split(","))


def find_made_for(item: Item) -> str:
    """Return the text of the annotation in which an object stores the node selector of its intent. Return an empty text
    if the object does not have this annotation.
    """
    return str(find_mapping(item, "metadata", "annotations").get(NODES_ANNOTATION) or "")


def read_nodes(text: str) -> dict[str, str]:
    """Return the labels in the text of the annotation in which an object stores the node selector of its intent. Return
    an empty mapping if the text is not a JSON mapping, which no run writes.
    """
    return {str(key): str(value) for key, value in _read_json(text).items()}


def find_selector(kind: str, item: Item) -> typing.Optional[dict[str, str]]:
    """Return the labels of the nodes that an object selects. The label with the name of a single node is left out.
    Return None if the kind of the object does not select nodes by labels.

    :param kind: kind of the object
    """
    spec = find_mapping(item, "spec")
    if kind in FABRIC_KINDS:
        chosen = find_mapping(spec, "nodeSelector")
    elif kind == "SriovNetworkPoolConfig":
        chosen = find_mapping(spec, "nodeSelector", "matchLabels")
    elif kind == "Tuned":
        return _find_tuned_selector(spec)
    else:
        return None
    return {str(key): str(value) for key, value in chosen.items() if key != _HOSTNAME}


def find_network(kind: str, item: Item) -> tuple[str, str]:
    """Return two texts about a network or a pool of nv-ipam: the name of the resource that pods request, and the
    addresses. The addresses are a range, or the name of the pool that has them. Both texts are empty for other kinds.

    :param kind: kind of the object
    """
    spec = find_mapping(item, "spec")
    if kind in POOL_SUBNETS:
        return "", str(spec.get(POOL_SUBNETS[kind]) or "")
    if kind == "NetworkAttachmentDefinition":
        config = _read_json(spec.get("config"))
        plugins = config.get("plugins")
        first = plugins[0] if isinstance(plugins, list) and plugins else config
        ipam = find_mapping(first, "ipam")
    elif kind in NAMED_KINDS:
        ipam = _read_json(spec.get("ipam"))
    else:
        return "", ""
    return str(spec.get("resourceName") or ""), str(ipam.get("range") or ipam.get("poolName") or "")


def _read_json(text: typing.Any) -> Item:
    """Return a mapping that is stored as JSON; empty if the text is no such mapping."""
    try:
        found = json.loads(str(text or "{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _find_tuned_selector(spec: Item) -> typing.Optional[dict[str, str]]:
    """Return the labels that the first recommendation of a Tuned matches. Return None if it matches no labels."""
    recommend = spec.get("recommend")
    first = recommend[0] if isinstance(recommend, list) and recommend and isinstance(recommend[0], dict) else {}
    found: dict[str, str] = {}
    match = first.get("match")
    while isinstance(match, list) and match and isinstance(match[0], dict):
        found[str(match[0].get("label") or "")] = str(match[0].get("value") or "")
        match = match[0].get("match")
    return found or None


def format_labels(labels: Item) -> str:
    """Return labels as text, sorted, such as ``rack=1, zone=a``. The text is ``any labels`` if there are no labels."""
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "any labels"
