# SPDX-License-Identifier: GPL-3.0-or-later

"""Learn from the cluster what the name of an intent proves, and which of its fabrics have policies of others."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import DEFAULT_INTENT, FABRIC_LABEL, INTENT_LABEL, SELECTOR
from ..._model.base.text import join_first
from ..._model.kubernetes.scope import Scope, find_selector
from ..._parse.kubernetes.foreign import is_copied
from ..._parse.kubernetes.resource import labels_of, name_of, read_namespace
from .client import Cluster
from .kinds import Resource
from .remove import Removal, list_objects

_POLICY = "SriovNetworkNodePolicy"
#: kinds of the collection that select nodes by labels
SELECTING = (_POLICY, "SriovNetworkPoolConfig", "NicConfigurationTemplate", "Tuned")
#: nodes that a message names
_NAMED = 5


def learn_scope(cluster: Cluster, scope: Scope) -> Scope:
    """Return the scope of an intent with what the cluster shows about its owner: whether another intent may have the
    same name, and the fabrics whose policies are not of this intent.

    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    found = dataclasses.replace(scope, doubt=_find_doubt(cluster, scope) if scope.intent != DEFAULT_INTENT else "")
    policies = tuple(_list(cluster, _POLICY)) if found.fabrics else ()
    strange = {
        str(labels_of(item).get(FABRIC_LABEL)): f"{_POLICY} {_name(item)}"
        for item in policies
        if found.explain_foreign(_POLICY, item)
    }
    fabrics = {str(labels_of(item).get(FABRIC_LABEL)) for item in policies}
    return dataclasses.replace(found, strange=strange, known=frozenset(fabrics - strange.keys()))


def _find_doubt(cluster: Cluster, scope: Scope) -> str:
    """Return why another intent may have the name of this one: an object with the name selects nodes that this intent
    does not select. Return an empty text if there is no such object.
    """
    others = [
        (kind, item, find_selector(kind, item) if "spec" in item else {})
        for kind in SELECTING
        for item in _list(cluster, kind)
        if labels_of(item).get(INTENT_LABEL) == scope.intent and not scope.confirmation.keys() & labels_of(item).keys()
    ]
    others = [(kind, item, selector) for kind, item, selector in others if selector not in (None, dict(scope.selector))]
    nodes = [
        (name_of(node), labels_of(node))
        for node in (cluster.list("Node").items if others else ())
        if not scope.selector.items() <= labels_of(node).items()
    ]
    for kind, item, selector in others:
        outside = [name for name, labels in nodes if (selector or {}).items() <= labels.items()]
        if outside:
            return (
                f"a name that another intent may have ({kind} {_name(item)} with it selects nodes that this intent does"
                f" not select: {join_first(outside, _NAMED)})"
            )
    return ""


def _list(cluster: Cluster, kind: str) -> typing.Iterator[Resource]:
    found = list_objects(cluster, kind, Removal((kind,), SELECTOR))
    return (item for item in found if not is_copied(item))


def _name(item: Resource) -> str:
    return "/".join(filter(None, (read_namespace(item), name_of(item))))
