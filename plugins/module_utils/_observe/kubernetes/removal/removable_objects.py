# SPDX-License-Identifier: GPL-3.0-or-later

"""List the objects that a removal selects, also where tenants made them too large to be read as a whole."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.marks import FABRIC_LABEL, INTENT_LABEL, LABEL, RUN_LABEL
from ...._model.base.text import cut_texts
from ...._model.kubernetes.scope import Scope
from ...._parse.kubernetes.foreign import is_copied, is_mirror_pod
from ..client import Cluster
from ..errors import ApiError
from ..kinds import Resource, version_of
from ..outcome import FIELD_MANAGER, JOINT_KINDS, has_our_label

#: metadata that a deletion needs; its lists are cut, since any client that makes an object decides their length
_ESSENTIAL, _MOST_ENTRIES = ("name", "namespace", "uid", "finalizers", "deletionTimestamp", "ownerReferences"), 8
#: characters of a text in them; a finalizer has 317 at most
_MOST_TEXT = 320


@dataclasses.dataclass(frozen=True)
class Removal:
    """The selection of the objects to remove from the cluster.

    :ivar kinds: kinds, in the order of their removal
    :ivar selector: label selector of the API
    :ivar keep: namespaces that are not deleted
    :ivar namespaces: namespaces in which objects are searched; empty means all, and needs the right to list the kinds
        in all of them
    :ivar scope: objects of the intent; objects that do not belong to it are kept. None: the selector alone decides
    :ivar limit: longest wait in seconds until the objects of one kind are gone
    """

    kinds: tuple[str, ...]
    selector: str
    keep: tuple[str, ...] = ()
    limit: float = 300.0
    namespaces: tuple[str, ...] = ()
    scope: typing.Optional[Scope] = None


def list_each_kind(
    cluster: Cluster, kinds: typing.Iterable[str], selector: str, errors: list[str]
) -> typing.Iterator[tuple[str, tuple[Resource, ...]]]:
    """Yield each kind with those of its objects that the selector selects. A kind that the API server refuses to list
    is left out, and the error is added to ``errors``. A kind that the server does not know has no objects.

    :param kinds: kinds to list
    :param selector: label selector of the objects
    :param errors: list to which the errors are added
    :raises ApiError: the API server cannot be reached
    """
    for kind in kinds:
        try:
            items = list_objects(cluster, kind, Removal((kind,), selector))
        except ApiError as error:
            if error.status == 0:
                raise
            errors.append(error.seen)
            continue
        yield kind, items


def list_objects(cluster: Cluster, kind: str, removal: Removal) -> tuple[Resource, ...]:
    """Return the objects of a kind that a removal selects by its selector and namespaces. Of a joint kind
    (NicClusterPolicy), return the objects that have the label of the collection or fields that it applied. A kind that
    the API server does not know has no objects.

    :raises ApiError: the API server refuses the list, or cannot be reached
    """
    try:
        if kind in JOINT_KINDS:
            return tuple(
                item
                for item in _list_labelled(cluster, kind, "", "")
                if has_our_label(item) or find_managers(item).get(FIELD_MANAGER)
            )
        items = [
            item
            for namespace in removal.namespaces or ("",)
            for item in _list_labelled(cluster, kind, namespace, removal.selector)
        ]
        return tuple(item for item in items if kind != "Namespace" or item["metadata"]["name"] not in removal.keep)
    except ApiError as error:
        # the server does not know the kind, so no object of it exists
        if error.absent:
            return ()
        raise


def _list_labelled(cluster: Cluster, kind: str, namespace: str, selector: str) -> tuple[Resource, ...]:
    """Return the objects of a kind that a label selector selects. If the list is too large, which tenants can cause,
    return only the metadata that a deletion needs. Mirror pods are left out, because their kubelets recreate them.

    :param namespace: namespace of the objects; empty for all namespaces
    :param selector: label selector in the notation of kubectl; empty for all objects
    :raises ApiError: the server refuses the list
    """
    try:
        return tuple(item for item in cluster.list(kind, namespace, selector).items if not is_mirror_pod(kind, item))
    except ApiError as error:
        if not error.too_large:
            raise
    found = cluster.metadata(kind, namespace, selector)
    return tuple(_keep_essential(kind, item) for item in found if not is_mirror_pod(kind, item))


def _keep_essential(kind: str, item: Resource) -> Resource:
    """Return an object with only the metadata that its deletion needs. Long lists and texts in it are cut."""
    metadata = item.get("metadata") or {}
    # only admins make objects of joint kinds, and their managed fields name the managers
    names = (*_ESSENTIAL, "managedFields") if kind in JOINT_KINDS else _ESSENTIAL
    kept = {key: value for key, value in metadata.items() if key in names}
    if kind not in JOINT_KINDS and is_copied(item):
        # one record says it, of lists that any client may make long
        kept["managedFields"] = [{"manager": "others"}]
    for key, value in kept.items():
        if isinstance(value, list) and key != "managedFields":
            kept[key] = cut_texts(value[:_MOST_ENTRIES], _MOST_TEXT)
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if key in (LABEL, FABRIC_LABEL, INTENT_LABEL, RUN_LABEL)
    }
    return {"apiVersion": version_of(kind), "kind": kind.partition(".")[0], "metadata": {**kept, "labels": labels}}


def find_managers(item: Resource) -> dict[str, bool]:
    """Return whether each field manager that wrote fields of the spec of an object used server-side apply, by name of
    the manager. Managers that wrote only the status are left out.
    """
    entries = [
        entry for entry in item["metadata"].get("managedFields") or [] if "f:spec" in (entry.get("fieldsV1") or {})
    ]
    return {str(entry.get("manager")): entry.get("operation") == "Apply" for entry in entries}
