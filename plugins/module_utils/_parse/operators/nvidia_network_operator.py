# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects of NVIDIA's network operator and of multus into facts.

Each kind reports its progress in another field: status.state and status.appliedStates of a NicClusterPolicy,
status.state and status.reason of the networks [network-operator v26.4.1 api/v1alpha1], status.allocations of the pools
of nv-ipam. A NetworkAttachmentDefinition has its CNI configuration as text.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..._model.base.marks import MANAGER, is_ours
from ..._model.boundary.words import WORD
from ..._model.kubernetes.objects import Attachment
from ..._model.operators.nvidia import NicPolicy, Reported
from ..kubernetes.resource import (
    Resource,
    excerpt_of,
    find_manager,
    items_of,
    mapping_at,
    name_of,
    normalize_known,
    why_not_read,
)
from ..limits import decode_json

_CONFIGS = ("rdmaSharedDevicePlugin", "sriovDevicePlugin")


def parse_reported(resource: Resource) -> Reported:
    """Parse the progress that the status of an object of NVIDIA's network operator reports. A missing value is empty.
    The state is empty as well if a condition belongs to an older generation of the object, which newer releases of the
    operator show by observedGeneration.

    :raises ResourceError: the object has an unexpected form
    """
    name, status, metadata = name_of(resource), mapping_at(resource, "status"), mapping_at(resource, "metadata")
    kind = normalize_known(WORD, resource.get("kind"))
    seen = [item.get("observedGeneration") for item in items_of(status, "conditions", name)]
    older = any(isinstance(number, int) and number < (metadata.get("generation") or 0) for number in seen)
    namespace = metadata.get("namespace")
    return Reported(
        kind=kind,
        name=f"{namespace}/{name}" if namespace else name,
        state="" if older else normalize_known(WORD, status.get("state")),
        reason=excerpt_of(status.get("reason")),
        parts=tuple(
            map(
                _describe_applied_state,
                (
                    item
                    for item in items_of(status, "appliedStates", name)
                    if item.get("state") not in ("ready", "ignore")
                ),
            )
        ),
        nodes=tuple(str(item.get("nodeName", "")) for item in items_of(status, "allocations", name)),
    )


def _describe_applied_state(item: typing.Mapping[str, typing.Any]) -> str:
    text = f"{item.get('name') or 'a part without a name'} {item.get('state') or 'without a state'}"
    return f"{text}: {item['message']}" if item.get("message") else text


def nic_policy(resource: Resource) -> NicPolicy:
    """Parse a NicClusterPolicy. The result contains its state, whether linerate.rdma created it, the configurations of
    its device plugins, and the other field managers that have set these configurations.

    :raises ResourceError: the object is not a valid NicClusterPolicy
    """
    spec = mapping_at(resource, "spec")
    configs = {part: str(mapping_at(spec, part).get("config") or "") for part in _CONFIGS}
    return NicPolicy(
        name=name_of(resource),
        state=normalize_known(WORD, mapping_at(resource, "status").get("state")),
        ours=is_ours(mapping_at(resource, "metadata", "labels")),
        configs={part: text for part, text in configs.items() if text},
        owners={part: owner for part in configs if (owner := find_manager(resource, part, "config", besides=MANAGER))},
    )


def parse_attachment(resource: Resource) -> Attachment:
    """Parse a NetworkAttachmentDefinition. The result contains the first plugin of its CNI configuration, or the reason
    why multus cannot read the configuration.

    :raises ResourceError: the object is not a valid NetworkAttachmentDefinition
    """
    name = name_of(resource)
    if why_not_read(resource):
        return Attachment(name, fault=f"it is {why_not_read(resource)}")
    text = mapping_at(resource, "spec").get("config")
    if not text:
        return Attachment(name, fault="spec.config is empty")
    try:
        config = decode_json(text, "spec.config", unique=False)
    except (TypeError, ParseError) as error:
        return Attachment(name, fault=f"spec.config is not JSON: {error}")
    if not isinstance(config, dict):
        return Attachment(name, fault="spec.config is not a mapping")
    plugins = config.get("plugins", [config])
    if (
        not isinstance(plugins, list)
        or not plugins
        or not all(isinstance(plugin, dict) and plugin.get("type") for plugin in plugins)
    ):
        return Attachment(name, fault="spec.config names no plugin with a type")
    return Attachment(name, plugins[0])
