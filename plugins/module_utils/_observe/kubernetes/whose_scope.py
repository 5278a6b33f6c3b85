# SPDX-License-Identifier: GPL-3.0-or-later

"""Learn from the cluster what the name of an intent proves, and which of its fabrics have policies of others."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import DEFAULT_INTENT, FABRIC_LABEL, INTENT_LABEL, SELECTOR, format_nodes
from ..._model.base.text import join_first
from ..._model.kubernetes.own_kinds import NETWORKS, POOLS
from ..._model.kubernetes.scope import Scope
from ..._model.kubernetes.scope_fields import find_made_for, find_selector, format_labels, read_nodes
from ..._model.node.node_tuning import NAMESPACE as TUNING
from ..._parse.kubernetes.foreign import is_copied
from ..._parse.kubernetes.resource import labels_of, name_of, read_namespace
from ..._parse.operators.nic_configuration_operator import is_reported
from ..operators.sriov_operator import find_namespace
from .client import Cluster
from .errors import ApiError
from .kinds import Resource
from .removal.removable_objects import Removal, list_objects

_POLICY = "SriovNetworkNodePolicy"
#: kinds of the collection that select nodes by labels
SELECTING = (_POLICY, "SriovNetworkPoolConfig", "NicConfigurationTemplate", "Tuned")
#: nodes that a message names
_NAMED = 5


def learn_scope(cluster: Cluster, scope: Scope) -> Scope:
    """Return the scope of an intent, completed with what the cluster shows: whether another intent may have the same
    name, and the fabrics whose policies are of this intent or of another.

    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    places = _Places(cluster, scope)
    doubt = _find_doubt(cluster, scope, places) if scope.intent != DEFAULT_INTENT else ""
    found = dataclasses.replace(scope, doubt=doubt)
    policies = tuple(_list(cluster, _POLICY, places)) if found.fabrics else ()
    strange = {
        str(labels_of(item).get(FABRIC_LABEL)): f"{_POLICY} {_name(item)}"
        for item in policies
        if found.explain_foreign(_POLICY, item)
    }
    fabrics = {str(labels_of(item).get(FABRIC_LABEL)) for item in policies}
    others = _find_other_nodes(cluster, scope) if found.fabrics and scope.intent != DEFAULT_INTENT else frozenset()
    return dataclasses.replace(found, strange=strange, known=frozenset(fabrics - strange.keys()), other_nodes=others)


def _find_other_nodes(cluster: Cluster, scope: Scope) -> frozenset[str]:
    """Return the annotations of networks and pools which name node labels that also select nodes outside this intent.
    Only objects with the name of this intent count. Such an annotation only shows that its own object may be another
    intent's, so a copied object does not put the others in doubt.
    """
    found = {
        find_made_for(item)
        for kind in (*NETWORKS, *POOLS)
        for item in list_objects(cluster, kind, Removal((kind,), SELECTOR))
        if labels_of(item).get(INTENT_LABEL) == scope.intent
    } - {"", format_nodes(scope.selector)}
    nodes = [labels_of(node) for node in (cluster.list("Node").items if found else ())]
    outside = [labels for labels in nodes if not scope.selector.items() <= labels.items()]
    return frozenset(text for text in found if any(read_nodes(text).items() <= labels.items() for labels in outside))


class _Places:
    """The namespaces in which intents have their objects that select nodes. The operators of these objects read no
    other namespace. A user with rights in another namespace can create such objects there with any label, so those do
    not count.
    """

    def __init__(self, cluster: Cluster, scope: Scope) -> None:
        self._cluster, self._scope = cluster, scope
        self._known: dict[str, frozenset[str]] = {"Tuned": frozenset((TUNING,))}

    def has(self, kind: str, item: Resource) -> bool:
        """Return whether an object is in a namespace in which intents have objects of its kind. Return True for any
        object if this namespace is not known.

        :raises ApiError: the API server cannot be reached
        """
        group = "NicDevice" if kind == "NicConfigurationTemplate" else kind if kind in self._known else _POLICY
        if group not in self._known:
            self._known[group] = frozenset(self._find(group))
        places = self._known[group]
        return not places or read_namespace(item) in places

    def _find(self, group: str) -> typing.Iterable[str]:
        if group == _POLICY:
            return filter(None, [find_namespace(self._cluster, self._scope.operator)])
        try:
            # the operator makes them in its own namespace, and writes their status, which no other user can
            return {read_namespace(item) for item in self._cluster.pages(group) if is_reported(item)}
        except ApiError as error:
            if error.status == 0:
                raise
            return ()


def _find_doubt(cluster: Cluster, scope: Scope, places: _Places) -> str:
    """Return why another intent may have the name of this intent, as text that begins with ``a name that another intent
    may have``. The reason is an object with this name that selects nodes outside this intent, or an object of a fabric
    that this intent does not have and that selects fewer nodes. Return an empty text if there is no such object.

    :param places: namespaces in which intents have such objects; objects elsewhere are ignored
    """
    others = [
        (kind, item, find_selector(kind, item) if "spec" in item else {})
        for kind in SELECTING
        for item in _list(cluster, kind, places)
        if labels_of(item).get(INTENT_LABEL) == scope.intent and not scope.confirmation.keys() & labels_of(item).keys()
    ]
    others = [(kind, item, selector) for kind, item, selector in others if selector not in (None, dict(scope.selector))]
    nodes = [(name_of(node), labels_of(node)) for node in (cluster.list("Node").items if others else ())]
    for kind, item, selector in others:
        chosen = [(name, labels) for name, labels in nodes if (selector or {}).items() <= labels.items()]
        outside = [name for name, labels in chosen if not scope.selector.items() <= labels.items()]
        if outside:
            return (
                f"a name that another intent may have ({kind} {_name(item)} with it selects nodes that this intent does"
                f" not select: {join_first(outside, _NAMED)})"
            )
        narrower = chosen or (selector or {}).items() > scope.selector.items()
        if narrower and labels_of(item).get(FABRIC_LABEL) not in (None, *scope.fabrics):
            return (
                f"a name that another intent may have ({kind} {_name(item)} with it is of another fabric and selects"
                f" the nodes with {format_labels(selector or {})})"
            )
    return ""


def _list(cluster: Cluster, kind: str, places: _Places) -> typing.Iterator[Resource]:
    found = list_objects(cluster, kind, Removal((kind,), SELECTOR))
    return (item for item in found if not is_copied(item) and places.has(kind, item))


def _name(item: Resource) -> str:
    return "/".join(filter(None, (read_namespace(item), name_of(item))))
