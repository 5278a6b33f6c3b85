# SPDX-License-Identifier: GPL-3.0-or-later

"""The outcome of a change to an object of the cluster: the object before and after it, and its owner."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import MANAGER, is_ours
from ..._model.kubernetes.apply import AppliedObject
from .client import Cluster
from .errors import ApiError
from .kinds import Resource, kind_of

#: of server-side apply
FIELD_MANAGER = MANAGER
#: kinds of which a cluster has one object for all its users: the collection adds its fields to those of others, and
#: removes them without deleting the object
JOINT_KINDS = ("NicClusterPolicy",)
_VOLATILE = (
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "selfLink",
    "finalizers",
    "deletionTimestamp",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of applying or removing one object.

    :ivar applied: kind, name and fabric of the object, with the action on it or the reason why it was refused
    :ivar before: the object before the change, without the fields that the API server writes; None if it did not exist
    :ivar after: the object after the change, or as check mode predicts it; None if it was deleted or refused
    """

    applied: AppliedObject
    before: typing.Optional[Resource] = None
    after: typing.Optional[Resource] = None

    @property
    def changed(self) -> bool:
        return self.applied.action in ("created", "changed", "deleted", "released", "unjudged")


def has_our_label(resource: Resource) -> bool:
    """Return whether an object has the label of the collection."""
    return is_ours(resource.get("metadata", {}).get("labels") or {})


def read_existing(cluster: Cluster, definition: Resource) -> typing.Optional[Resource]:
    """Return the existing object with the kind, namespace and name of ``definition``. Return None if it does not exist,
    or if the server does not know the kind.

    :raises ApiError: the server refuses, or cannot be reached
    """
    try:
        return cluster.get(
            kind_of(definition), definition["metadata"].get("namespace", ""), definition["metadata"]["name"]
        )
    except ApiError as error:
        if error.absent:
            return None
        raise


def strip_volatile(resource: Resource) -> Resource:
    """Return a copy of the object without its status and the metadata that the API server writes, so that two versions
    of it can be compared.
    """
    metadata = {key: value for key, value in resource.get("metadata", {}).items() if key not in _VOLATILE}
    return {
        **{key: value for key, value in resource.items() if key not in ("status", "metadata")},
        "metadata": metadata,
    }


def identify_object(fabric: str, definition: Resource) -> AppliedObject:
    """Return the identity of an object: its kind, name, namespace and fabric. No action on it is set yet.

    :param fabric: name of the fabric of the object; empty for a shared object
    """
    metadata = definition["metadata"]
    return AppliedObject(definition["kind"], metadata["name"], metadata.get("namespace", ""), fabric)


def describe_refusal(applied: AppliedObject, error: ApiError) -> AppliedObject:
    """Return the identity of an object with the action ``refused``, and the reason and message of the API server's
    error.

    :raises ApiError: the error is that the API server cannot be reached, so it has not refused anything
    """
    if error.status == 0:
        raise error
    return dataclasses.replace(applied, action="refused", refusal=error.text, reason=error.reason)
