# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse which nodes the pods of a job may use: nodeSelector, required node affinity and tolerations of a pod template,
and the taints of a node.

[k8s.io/component-helpers scheduling/corev1 nodeaffinity and ToleratesTaint]
"""

from __future__ import annotations

import typing

from ..._model.job.job import (
    NodeChoice,
    NodeRequirement,
)
from ..._model.job.stack import ResourceFlavor
from ..kubernetes.resource import Resource, ResourceError, items_of, mapping_at, name_of, texts_of

#: effects of taints that keep pods from a node
_EFFECTS = ("NoSchedule", "NoExecute")
#: entries of a list
_MOST = 1000


def parse_node_choice(spec: Resource, what: str) -> NodeChoice:
    """Return the conditions on nodes under which the pods of a template may run: node selector, required node affinity
    and tolerations. A condition that the template does not have is empty.

    :param spec: ``spec`` of the pod template
    :param what: name of the template in messages
    :raises ResourceError: a part has an unexpected form, or too many entries
    """
    required = mapping_at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return NodeChoice(
        {str(key): str(value) for key, value in mapping_at(spec, "nodeSelector").items()},
        tuple(_parse_term(term, what) for term in _list_entries(required, "nodeSelectorTerms", what)),
        tuple(_list_entries(spec, "tolerations", what)),
    )


def parse_taints(node: Resource) -> tuple[str, tuple[dict[str, typing.Any], ...]]:
    """Return the name of a v1 Node, and its taints that keep pods away (``NoSchedule`` and ``NoExecute``) as mappings.

    :raises ResourceError: the taints have an unexpected form
    """
    taints = _list_entries(mapping_at(node, "spec"), "taints", f"Node {name_of(node)}")
    return str(name_of(node)), tuple(item for item in taints if item.get("effect") in _EFFECTS)


def parse_flavor(resource: Resource) -> ResourceFlavor:
    """Return the name of a ResourceFlavor of Kueue, and its node labels, taints and tolerations. Only taints that keep
    pods away are returned (``NoSchedule`` and ``NoExecute``). [src kueue v0.19.2
    apis/kueue/v1beta1/resourceflavor_types.go]

    :raises ResourceError: the object is not a valid ResourceFlavor
    """
    name, spec = name_of(resource), mapping_at(resource, "spec")
    what = f"ResourceFlavor {name}"
    return ResourceFlavor(
        name,
        {str(key): str(value) for key, value in mapping_at(spec, "nodeLabels").items()},
        tuple(item for item in _list_entries(spec, "nodeTaints", what) if item.get("effect") in _EFFECTS),
        tuple(_list_entries(spec, "tolerations", what)),
    )


def _parse_term(term: Resource, what: str) -> tuple[NodeRequirement, ...]:
    """Return the requirements of one term of node affinity. A term without requirements matches no node.

    :param what: name of the pod template in messages
    """
    return tuple(
        NodeRequirement(
            str(item.get("key") or ""),
            str(item.get("operator") or ""),
            tuple(texts_of(item, "values", what)),
            key == "matchFields",
        )
        for key in ("matchExpressions", "matchFields")
        for item in _list_entries(term, key, what)
    )


def _list_entries(parent: Resource, key: str, what: str) -> list[dict[str, typing.Any]]:
    found = items_of(parent, key, what)
    if len(found) > _MOST:
        raise ResourceError(f"{what}: {key} has {len(found)} entries; the limit is {_MOST}")
    return found
