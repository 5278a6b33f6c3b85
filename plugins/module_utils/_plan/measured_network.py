# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the copy of a fabric's NetworkAttachmentDefinition that the pods of a measurement use.

Reason for the copy: with ``namespaceIsolation`` of multus, which OpenShift always enables, a pod can use only networks
of its own namespace and of ``globalNamespaces``. A copy in the namespace of the measurement works with and without this
isolation, and gives the pods the same network as the pods of jobs. [multus-cni v4 docs/configuration.md]

Reason for the comparison with the intent: tenants may be able to write NetworkAttachmentDefinitions in the namespace of
the jobs, and CNI plugins run as root on the node. The copy therefore contains only values that match the intent, key by
key, and is serialized from the compared data. Keys that Go would interpret and this comparison would miss (duplicate
keys, or keys in another case) are refused.

Formats: sriov-network-operator bindata/manifests/cni-config, network-operator manifests/state-*-network.
"""

from __future__ import annotations

import json
import re
import typing

from .._model.base.errors import ParseError, RdmaError
from .._model.intent.intent import ClusterIntent, Fabric
from .._model.intent.profiles import HOST_DEVICE, IPOIB, MACVLAN, PLAIN, attachment_kind, find_traits, resource_of
from .._parse.limits import decode_json
from .._render.cluster.names import Object, build_labels, build_owner_label, keep_filled
from .._render.network import network

#: annotation: the device plugin's resource of which multus takes a device [network-attachment-definition-client]
RESOURCE = "k8s.v1.cni.cncf.io/resourceName"
#: bytes of a configuration that are read
LIMIT = 65536
#: plugin that each kind of object becomes
_TYPES = {
    "SriovIBNetwork": "ib-sriov",
    "SriovNetwork": "sriov",
    MACVLAN: "macvlan",
    IPOIB: "ipoib",
    HOST_DEVICE: "host-device",
}
_VERSION = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9.]{1,16}", re.ASCII)


def _is_number(value: typing.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10_000_000


def _is_word(value: typing.Any) -> bool:
    return isinstance(value, str) and bool(_WORD.fullmatch(value))


def _is_switches(value: typing.Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, bool) for item in value.values())


#: settings of a virtual function, and what an admin may give the operator beside the intent. None of them names a file,
#: a program or a device. They are copied as they are: the stage virtual_functions reads them back from the function
#: that a pod has, and holds them against the intent
_SETTINGS: dict[str, typing.Callable[[typing.Any], bool]] = {
    **dict.fromkeys(("vlan", "vlanQoS", "min_tx_rate", "max_tx_rate"), _is_number),
    **dict.fromkeys(("vlanProto", "trust", "spoofchk", "link_state", "logLevel"), _is_word),
    "capabilities": _is_switches,
}


class ForeignNetwork(RdmaError):
    """Raised if a NetworkAttachmentDefinition does not match the intent."""


def copy_of(
    found: typing.Mapping[str, typing.Any], fabric: Fabric, cluster: ClusterIntent, namespace: str, run: str
) -> Object:
    """Return the copy of a NetworkAttachmentDefinition, labeled as owned by a run.

    :param found: NetworkAttachmentDefinition in the namespace of the jobs
    :param namespace: namespace of the copy
    :raises ForeignNetwork: the NetworkAttachmentDefinition does not match the intent
    """
    title = f"NetworkAttachmentDefinition {fabric.network.namespace}/{fabric.network.name}"
    try:
        config = _read_cni_config(found, fabric, cluster)
        resource = _read_resource_name(found, fabric, cluster)
    except _Different as problem:
        raise ForeignNetwork(f"{title}: {problem}") from problem
    metadata: Object = {
        "name": fabric.network.name,
        "namespace": namespace,
        "labels": {**build_labels(fabric.name), **build_owner_label(run)},
    }
    if resource:
        metadata["annotations"] = {RESOURCE: resource}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": PLAIN,
        "metadata": metadata,
        "spec": {"config": json.dumps(config)},
    }


class _Different(Exception):
    """Raised inside this module if the NetworkAttachmentDefinition differs from the intent. The message describes the
    difference.
    """


def _read_cni_config(found: typing.Mapping[str, typing.Any], fabric: Fabric, cluster: ClusterIntent) -> Object:
    config = _decode_cni_config(found)
    if "plugins" in config:
        plugins, around = config["plugins"], config
    else:
        plugins = [{key: value for key, value in config.items() if key not in ("cniVersion", "name")}]
        around = {key: config[key] for key in ("cniVersion", "name") if key in config}
    if not isinstance(plugins, list) or not plugins or not all(isinstance(item, dict) for item in plugins):
        raise _Different("spec.config has no valid list of plugins")
    if not isinstance(around.get("cniVersion"), str) or not _VERSION.fullmatch(around["cniVersion"]):
        raise _Different(f"cniVersion is {_format_short_json(around.get('cniVersion'))}, which is not a valid version")
    _require_equal_values("name", around.get("name"), fabric.network.name)
    _require_known_keys(around, ("cniVersion", "name", "plugins"))
    _require_main_plugin(plugins[0], fabric, cluster)
    _require_equal_values("the chained plugins", plugins[1:], [dict(item) for item in fabric.network.meta_plugins])
    return config


def _decode_cni_config(found: typing.Mapping[str, typing.Any]) -> Object:
    spec = found.get("spec")
    text = spec.get("config") if isinstance(spec, dict) else None
    if not isinstance(text, str) or not text:
        raise _Different("spec.config is empty, so multus would use a configuration file of the node")
    try:
        config = decode_json(text, "spec.config", LIMIT)
    except ParseError as error:
        raise _Different(str(error)) from error
    if not isinstance(config, dict):
        raise _Different("spec.config is not a mapping")
    return config


def _require_main_plugin(plugin: Object, fabric: Fabric, cluster: ClusterIntent) -> None:
    """Check that the main plugin, the CNI plugin that creates the interface, matches the intent. Settings of a virtual
    function that the intent does not define are accepted if their values are harmless.

    :raises _Different: a value or a key does not match
    """
    wanted, settings = _render_required_plugin(fabric, cluster), _SETTINGS if find_traits(fabric).functions else {}
    for key in dict.fromkeys([*wanted, *plugin]):
        if key in wanted:
            _require_equal_values(key, plugin.get(key), wanted[key])
        elif key not in settings or not settings[key](plugin[key]):
            raise _Different(
                f"{_format_short_json(key)} is {_format_short_json(plugin[key])}, which the intent does not specify"
            )


def _render_required_plugin(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Return the values that the CNI plugin which creates the interface (the main plugin) must have according to the
    intent, by key.
    """
    kind = attachment_kind(fabric)
    if not find_traits(fabric).functions:
        return keep_filled(**{"type": _TYPES.get(kind), **network.render_plugin(fabric, cluster)})
    addresses = network.RENDERERS[fabric.profile](fabric, cluster)["spec"].get("ipam")
    return {"type": _TYPES[kind], "ipam": json.loads(addresses) if addresses else {}}


def _read_resource_name(found: typing.Mapping[str, typing.Any], fabric: Fabric, cluster: ClusterIntent) -> str:
    """Return the name of the device plugin's resource from the annotation of a NetworkAttachmentDefinition. Return an
    empty text if the annotation does not exist and the profile of the fabric does not need it.

    :param found: NetworkAttachmentDefinition as the API server returned it
    :raises _Different: the name does not match the intent, or is missing although the profile needs it
    """
    annotations = (found.get("metadata") or {}).get("annotations") or {}
    said, wanted = annotations.get(RESOURCE) or "", resource_of(fabric, cluster)
    needed = find_traits(fabric).functions or attachment_kind(fabric) == HOST_DEVICE
    if said or needed:
        _require_equal_values(f"the annotation {RESOURCE}", said, wanted)
    return str(said)


def _require_equal_values(what: str, seen: typing.Any, wanted: typing.Any) -> None:
    # as text: in Python true is 1
    if _format_json(seen) != _format_json(wanted):
        raise _Different(f"{what} is {_format_short_json(seen)}, but the intent requires {_format_short_json(wanted)}")


def _require_known_keys(mapping: Object, keys: typing.Sequence[str]) -> None:
    for key in mapping:
        if key not in keys:
            raise _Different(
                f"{_format_short_json(key)} is {_format_short_json(mapping[key])}, which the intent does not specify"
            )


def _format_json(value: typing.Any) -> str:
    return json.dumps(value, sort_keys=True)


def _format_short_json(value: typing.Any) -> str:
    text = _format_json(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
