# SPDX-License-Identifier: GPL-3.0-or-later

"""Examines the namespace of an operator before a run installs or upgrades the operator in it: a tenant who may make namespaces can make that one first.

Who has rights in the namespace of an operator has those of the operator, because they can run commands in its pods. And Helm makes, with the rights of the run,
all that the record of a release names; who may write Secrets in the namespace can forge a record.
"""

from __future__ import annotations

import typing

from .._model.errors import RdmaError
from .._model.operators import UntrustedNamespace
from .._model.text import folded, plain
from .._parse.kubernetes.resource import name_of
from .._parse.kubernetes.tenancy import VIEW, RoleName, acts, is_record, only_reads, release_of, role_of, strangers
from .apply import existing
from .foreign import everything
from .kubernetes import ApiError, Cluster

#: how many names a cause has
_NAMED = 5
_BEFORE = "it was there before the operator, and has"
#: that OLM does not make by itself, and that act: see ``acts``. All kinds would need the right to list them all
_ACTORS = ("ServiceAccount", "Pod", "CatalogSource")


def examine(cluster: Cluster, places: typing.Mapping[str, typing.Tuple[str, str]], trusted: typing.Container[str]) -> typing.Dict[str, UntrustedNamespace]:
    """Find the operators in whose namespaces no Helm release may be made or upgraded. A namespace that cannot be read is one of these.

    :param places: namespace and release of each operator
    :param trusted: namespaces that are not examined
    :raises ApiError: the server cannot be reached
    """
    found = {}
    for operator, (namespace, release) in places.items():
        if namespace not in trusted:
            try:
                why = refuse_release(cluster, namespace, release)
            except RdmaError as error:
                if isinstance(error, ApiError) and error.status == 0:
                    raise
                why = f"whose it is could not be read: {error.seen}"
            if why:
                found[operator] = UntrustedNamespace(namespace, plain(why))
    return found


def refuse_release(cluster: Cluster, namespace: str, release: str) -> str:
    """Tell why no Helm release may be made or upgraded in a namespace; empty where it may, and where the namespace is not there.

    A release that is there is taken for the cluster's own if a ClusterRoleBinding is of it. Without one, the namespace must hold nothing that acts.

    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    decided = _decide_early(cluster, namespace)
    if decided is not None:
        return decided
    proven = proven_releases(cluster, namespace)
    others = _strangers(cluster, namespace, release in proven)
    if others or release in proven:
        return others
    unread: typing.List[str] = []
    actors = [(kind, item) for kind, item in everything(cluster, namespace, unread) if acts(kind, item)]
    if any(is_record(item, release) for _kind, item in actors):
        return f"it has the Helm release {release}, and no ClusterRoleBinding is of it: whoever made the namespace may have forged it"
    if proven:
        # the release of another operator in the same namespace
        return ""
    return _told(_BEFORE, [f"{kind} {name_of(item)}" for kind, item in actors]) or _told("not listed of it", unread)


def proven_releases(cluster: Cluster, namespace: str) -> typing.FrozenSet[str]:
    """Name the Helm releases of a namespace of which there is a ClusterRoleBinding: every operator has one, and no tenant can write it.

    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    return frozenset(name for item in cluster.pages("ClusterRoleBinding") for name, where in (release_of(item),) if name and where == namespace)


def refuse_package(cluster: Cluster, namespace: str, installed: bool) -> str:
    """Tell why OLM may install no package in a namespace; empty where it may, and where the namespace is not there.

    :param installed: a ClusterServiceVersion of the package is there, with all that belongs to the operator
    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    decided = _decide_early(cluster, namespace)
    if decided is not None:
        return decided
    others = _strangers(cluster, namespace, installed)
    if others or installed:
        return others
    return _told(_BEFORE, [f"{kind} {name_of(item)}" for kind in _ACTORS for item in cluster.pages(kind, namespace) if acts(kind, item)])


def _decide_early(cluster: Cluster, namespace: str) -> typing.Optional[str]:
    """Decide without a look into the namespace: it is used if it is not there, and refused while it is being deleted; None for all others."""
    found = existing(cluster, {"kind": "Namespace", "metadata": {"name": namespace}})
    if found is None:
        return ""
    return "it is being deleted" if "deletionTimestamp" in found["metadata"] else None


def _strangers(cluster: Cluster, namespace: str, trusts_own: bool) -> str:
    """Name who else has more than reading rights in a namespace. A role is read only if a stranger has it."""
    bindings = [binding for binding in cluster.pages("RoleBinding", namespace) if strangers([binding], namespace, trusts_own=trusts_own)]
    readers = {VIEW, *(role for role in {*map(role_of, bindings)} if _reads(cluster, role, namespace))}
    return _told("others have rights in it, and so those of the operator", strangers(bindings, namespace, readers, trusts_own))


def _reads(cluster: Cluster, role: RoleName, namespace: str) -> bool:
    kind, name = role
    if kind not in ("Role", "ClusterRole"):
        return False
    found = existing(cluster, {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if kind == "Role" else {})}})
    return found is not None and only_reads(found)


def _told(what: str, found: typing.Sequence[str]) -> str:
    return f"{what}: {folded(found, _NAMED)}" if found else ""
