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
#: label with the fabric of an object
FABRIC_LABEL = "linerate.rdma/fabric"
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
    """The result of a change to an object.

    :ivar before: the object before the change, without fields of the server; None when it did not exist
    :ivar after: the object after the change, or as check mode predicts it; None when it was deleted or refused
    """

    applied: AppliedObject
    before: typing.Optional[Resource] = None
    after: typing.Optional[Resource] = None

    @property
    def changed(self) -> bool:
        return self.applied.action in ("created", "changed", "deleted", "released", "unjudged")


def ours(resource: Resource) -> bool:
    """Return whether the collection made the object."""
    return is_ours(resource.get("metadata", {}).get("labels") or {})


def read_existing(cluster: Cluster, definition: Resource) -> typing.Optional[Resource]:
    """Return the existing object of that kind and name; None where it does not exist, or the server does not know the
    kind.

    :raises ApiError: the server cannot be reached, or refuses to show it
    """
    try:
        return cluster.get(
            kind_of(definition), definition["metadata"].get("namespace", ""), definition["metadata"]["name"]
        )
    except ApiError as error:
        if error.absent:
            return None
        raise


def stable(resource: Resource) -> Resource:
    """Return the object without its status and the metadata that the server writes, so that it can be compared."""
    metadata = {key: value for key, value in resource.get("metadata", {}).items() if key not in _VOLATILE}
    return {
        **{key: value for key, value in resource.items() if key not in ("status", "metadata")},
        "metadata": metadata,
    }


def identify_object(fabric: str, definition: Resource) -> AppliedObject:
    """Return the kind, name, namespace and fabric of an object."""
    metadata = definition["metadata"]
    return AppliedObject(definition["kind"], metadata["name"], metadata.get("namespace", ""), fabric)


def describe_refusal(applied: AppliedObject, error: ApiError) -> AppliedObject:
    """Return the object as refused by the server.

    :raises ApiError: the server cannot be reached, so it has not refused anything
    """
    if error.status == 0:
        raise error
    return dataclasses.replace(applied, action="refused", refusal=error.text, reason=error.reason)
