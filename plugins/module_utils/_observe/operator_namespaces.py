# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an operator may be installed or upgraded in a namespace that is there: whoever may make namespaces can make that of an operator first.

Who has rights in the namespace of an operator has those of the operator: they can run commands in its pods. And Helm makes, with the rights of the run, all
that the record of a release names; who may write Secrets in the namespace can forge one.
"""

from __future__ import annotations

import typing

from .._parse.kubernetes.resource import name_of
from .._parse.kubernetes.tenancy import VIEW, RoleName, acts, is_record, only_reads, release_of, role_of, strangers
from .foreign import everything
from .kubernetes import ApiError, Cluster

#: of what keeps a namespace from being used, how much is named
_NAMED = 5
_BEFORE = "it was there before the operator, and has"
#: that OLM does not make by itself, and that act: see ``acts``. All kinds would need the right to list them all
_ACTORS = ("ServiceAccount", "Pod", "CatalogSource")


def why_no_release(cluster: Cluster, namespace: str, release: str) -> str:
    """Why no Helm release may be made or upgraded in a namespace; empty where it may, or where there is no namespace.

    A release that is there is taken for the cluster's own if a ClusterRoleBinding is of it. Without one, the namespace must hold nothing that acts.

    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    if not _is_there(cluster, namespace):
        return ""
    others = _strangers(cluster, namespace)
    if others:
        return others
    proven = proven_releases(cluster, namespace)
    if release in proven:
        return ""
    unread: typing.List[str] = []
    found = [(kind, item) for kind, item in everything(cluster, namespace, unread) if acts(kind, item)]
    if any(is_record(item, release) for _kind, item in found):
        return f"it has the Helm release {release}, and no ClusterRoleBinding is of it: whoever made the namespace may have forged it"
    if proven:
        # that of another operator
        return ""
    return _told(_BEFORE, [f"{kind} {name_of(item)}" for kind, item in found]) or _told("not listed of it", unread)


def proven_releases(cluster: Cluster, namespace: str) -> typing.FrozenSet[str]:
    """Helm releases of a namespace of which there is a ClusterRoleBinding: every operator has one, and no tenant can write it.

    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    return frozenset(name for item in cluster.pages("ClusterRoleBinding") for name, where in (release_of(item),) if name and where == namespace)


def why_no_package(cluster: Cluster, namespace: str, installed: bool) -> str:
    """The same of a package of OLM.

    :param installed: a ClusterServiceVersion of the package is there, with all that belongs to the operator
    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    if not _is_there(cluster, namespace):
        return ""
    others = _strangers(cluster, namespace)
    if others or installed:
        return others
    found = [f"{kind} {name_of(item)}" for kind in _ACTORS for item in cluster.pages(kind, namespace) if acts(kind, item)]
    return _told(_BEFORE, found)


def _is_there(cluster: Cluster, namespace: str) -> bool:
    try:
        cluster.get("Namespace", "", namespace)
    except ApiError as error:
        if error.absent:
            return False
        raise
    return True


def _strangers(cluster: Cluster, namespace: str) -> str:
    """Who else has rights in a namespace; readers are none."""
    bindings = tuple(cluster.pages("RoleBinding", namespace))
    readers = {role for role in map(role_of, bindings) if role == VIEW or _reads(cluster, role, namespace)} if strangers(bindings, namespace) else {VIEW}
    return _told("others have rights in it, and so those of the operator", strangers(bindings, namespace, readers))


def _reads(cluster: Cluster, role: RoleName, namespace: str) -> bool:
    kind, name = role
    if kind not in ("Role", "ClusterRole"):
        return False
    try:
        return only_reads(cluster.get(kind, namespace if kind == "Role" else "", name))
    except ApiError as error:
        if error.absent:
            return False
        raise


def _told(what: str, found: typing.Sequence[str]) -> str:
    if not found:
        return ""
    return f"{what}: {', '.join(found[:_NAMED])}" + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
