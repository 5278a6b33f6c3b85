# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespace of the observers: its owner, and the objects of the collection in it."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.kubernetes.observers import DAEMON_SET, LABEL, PREPARED
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.foreign import Kept
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import observers as parse

#: remedy where the user of the kubeconfig lacks a right
RIGHTS = (
    "Have an admin of the cluster prepare the namespace: kubectl apply -f docs/rbac/observers.yml; docs/observers.md"
    " says what that gives"
)


class ForeignNamespace(RdmaError):
    """The error that the namespace with the name of the observers' namespace belongs to another user and must not be
    used.
    """

    def __init__(self, namespace: str) -> None:
        seen = (
            f"the namespace {namespace} is there, and not the collection's: it has no label {LABEL}. Nothing was"
            " changed"
        )
        remedy = (
            f"Give the observers another namespace; or, if it is for them: kubectl label namespace {namespace}"
            f" {LABEL}={PREPARED}"
        )
        super().__init__(seen, remedy)


class TakenNamespace(RdmaError):
    """The error that another client created the namespace of the observers during the run."""

    def __init__(self, namespace: str) -> None:
        seen = (
            f"the namespace {namespace} is not the one that this run made or looked at: somebody else made one since."
            " No observer was started in it"
        )
        remedy = (
            f"See who made it: kubectl get namespace {namespace} -o yaml; kubectl get rolebindings -n {namespace} -o"
            " wide. Delete it and run again; or have an admin prepare it: kubectl apply -f docs/rbac/observers.yml"
        )
        super().__init__(seen, remedy)


@dataclasses.dataclass(frozen=True)
class ObserverResources:
    """The namespace and the DaemonSet of the observers as they were before any change.

    :ivar namespace: None if it does not exist
    :ivar whose: owner of the namespace: ``own`` for the collection, ``prepared`` for an admin who prepared it, ``none``
        if it does not exist
    :ivar run: id of the run that owns the observers; empty if no run owns them
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
    """The error that the namespace of the observers cannot be deleted: it contains objects of other users, or its
    contents could not be listed.
    """

    def __init__(self, namespace: str, kept: Kept) -> None:
        right = (
            "Give the user of the kubeconfig the right to list all resources in this namespace. " if kept.unread else ""
        )
        remedy = f"{right}Move or delete what others have there, then delete it: kubectl delete namespace {namespace}"
        super().__init__(f"the observers are gone, and their namespace {namespace} stays: {kept}", remedy)


def find_object(cluster: Cluster, kind: str, namespace: str, name: str) -> typing.Optional[Resource]:
    """Read an object, and add its kind; None if the object does not exist.

    :param namespace: empty for a cluster-scoped object
    :raises ApiError: the API server cannot be reached, or refuses to show the object
    """
    try:
        return {"kind": kind, **cluster.get(kind, namespace, name)}
    except ApiError as error:
        if error.absent:
            return None
        raise


def read_resources(cluster: Cluster, name: str) -> ObserverResources:
    """Read the namespace of the observers, and their DaemonSet in it.

    :raises ForeignNamespace: the namespace is not for the observers
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
