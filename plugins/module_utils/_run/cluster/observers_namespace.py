# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespace of the observers: its owner, and the objects of the collection in it."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.kubernetes.observers import DAEMON_SET, LABEL, PREPARED
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.removal.foreign import Kept
from ..._parse.kubernetes import observers as parse

#: remedy where the user of the kubeconfig lacks a right
RIGHTS = (
    "Ask a cluster admin to prepare the namespace: kubectl apply -f docs/rbac/observers.yml (docs/observers.md"
    " describes the rights), then rerun"
)


class ForeignNamespace(RdmaError):
    """Raised if the namespace of the observers exists and lacks the label of the collection. It belongs to another user
    and must not be used.
    """

    def __init__(self, namespace: str) -> None:
        seen = (
            f"the namespace {namespace} exists but does not belong to this collection: it has no label {LABEL}."
            " Nothing was changed"
        )
        remedy = (
            "Choose a different namespace for the observers. If this namespace is meant for the observers, label it:"
            f" kubectl label namespace {namespace} {LABEL}={PREPARED}"
        )
        super().__init__(seen, remedy)


class TakenNamespace(RdmaError):
    """Raised if another client created or replaced the namespace of the observers during the run."""

    def __init__(self, namespace: str) -> None:
        seen = (
            f"the namespace {namespace} is not the namespace that this run created or read: another user created it in"
            " the meantime. No observer was started in it"
        )
        remedy = (
            f"Find the creator of the namespace: kubectl get namespace {namespace} -o yaml; kubectl get rolebindings"
            f" -n {namespace} -o wide. Delete the namespace and rerun, or ask a cluster admin to prepare it: kubectl"
            " apply -f docs/rbac/observers.yml"
        )
        super().__init__(seen, remedy)


@dataclasses.dataclass(frozen=True)
class ObserverResources:
    """The namespace and the DaemonSet of the observers as they were before any change.

    :ivar namespace: the Namespace; None if it does not exist
    :ivar whose: owner of the namespace: ``own`` for the collection, ``prepared`` for an admin who prepared it, ``none``
        if it does not exist
    :ivar run: id of the run that owns the observers; empty if they belong to no run
    :ivar daemon: the DaemonSet; None if it does not exist
    """

    namespace: typing.Optional[Resource]
    whose: typing.Literal["own", "prepared", "none"]
    run: str = ""
    daemon: typing.Optional[Resource] = None

    @property
    def going(self) -> bool:
        """Return whether the namespace is being deleted."""
        return bool(self.namespace is not None and self.namespace["metadata"].get("deletionTimestamp"))


class NamespaceStays(RdmaError):
    """Raised if the namespace of the observers must not be deleted, because it contains objects of other users or
    because its contents could not be listed. The observers themselves were removed.
    """

    def __init__(self, namespace: str, kept: Kept) -> None:
        right = (
            "Give the user of the kubeconfig the right to list all resources in this namespace. " if kept.unread else ""
        )
        remedy = (
            f"{right}Move or delete the objects in the namespace that do not belong to this collection, then delete"
            f" the namespace: kubectl delete namespace {namespace}"
        )
        super().__init__(f"the observers were removed, but their namespace {namespace} was kept: {kept}", remedy)


def find_object(cluster: Cluster, kind: str, namespace: str, name: str) -> typing.Optional[Resource]:
    """Return an object, with its kind as the key ``kind``. Return None if the object does not exist, or if the API
    server does not know the kind.

    :param namespace: namespace of the object; empty for a cluster-scoped object
    :raises ApiError: the API server cannot be reached, or refuses to show the object
    """
    try:
        return {"kind": kind, **cluster.get(kind, namespace, name)}
    except ApiError as error:
        if error.absent:
            return None
        raise


def read_resources(cluster: Cluster, name: str) -> ObserverResources:
    """Return the namespace of the observers with its owner, and their DaemonSet, as far as they exist.

    :param name: name of the namespace
    :raises ForeignNamespace: the namespace lacks the label of the collection
    :raises ApiError: the API server cannot be reached, or refuses to show an object
    """
    namespace = find_object(cluster, "Namespace", "", name)
    if namespace is None:
        return ObserverResources(None, "none")
    whose, run = parse.owned_namespace(namespace)
    if whose == "foreign":
        raise ForeignNamespace(name)
    daemon = find_object(cluster, "DaemonSet", name, DAEMON_SET)
    if daemon is not None and whose == "prepared":
        run = parse.observer_set(daemon).run
    return ObserverResources(namespace, whose, run, daemon)
