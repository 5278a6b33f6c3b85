# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the API server for the rights of the user (SelfSubjectAccessReview, authorization.k8s.io/v1). Every authenticated
user may do that.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.rights import ANYTHING, Denied, Right, RightsFacts
from .client import Cluster
from .errors import ApiError
from .kinds import KINDS, Resource, group_of


def observe(cluster: Cluster, rights: typing.Sequence[Right]) -> RightsFacts:
    """Ask the API server for each of the given rights, and return those that the user does not have.

    :param rights: rights that the run needs
    :raises ApiError: the API server refuses or does not answer, or its answer is incomplete
    """
    return RightsFacts(
        len(rights),
        tuple(Denied(right.need, text_of(right), right.power) for right in rights if not _has_right(cluster, right)),
    )


def text_of(right: Right) -> str:
    """Return a right in the syntax of kubectl auth can-i, such as ``create pods/exec in default``."""
    group, resource = _resolve_resource(right)
    parts = (
        f".{group}" if group else "",
        f"/{right.subresource or right.name}" if right.subresource or right.name else "",
    )
    return f"{right.verb} {resource}{parts[0]}{parts[1]}{' in ' + right.namespace if right.namespace else ''}"


def build_attributes(right: Right) -> Resource:
    """Return the fields of ``spec.resourceAttributes`` with which a SelfSubjectAccessReview asks for a right."""
    group, resource = _resolve_resource(right)
    return {
        "verb": right.verb,
        "group": group,
        "resource": resource,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }


def _resolve_resource(right: Right) -> tuple[str, str]:
    return ("*", "*") if right.kind == ANYTHING else (group_of(right.kind), KINDS[right.kind][1])


def _has_right(cluster: Cluster, right: Right) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": build_attributes(right)},
    }
    answer = cluster.create(review)
    allowed = (answer.get("status") or {}).get("allowed")
    if not isinstance(allowed, bool):
        raise ApiError(
            200, "Unreadable", "the response has no status.allowed", f"SelfSubjectAccessReview {text_of(right)}"
        )
    return allowed
