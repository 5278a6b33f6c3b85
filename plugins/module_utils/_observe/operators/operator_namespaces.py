# SPDX-License-Identifier: GPL-3.0-or-later

"""Examines the namespace of an operator before a run installs or upgrades the operator in it: a tenant who may make
namespaces can make that one first.

Who has rights in the namespace of an operator has those of the operator, because they can run commands in its pods. And
Helm makes, with the rights of the run, all that the record of a release names; who may write Secrets in the namespace
can forge a record.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import cut, folded, plain
from ..._model.operators.operators import UntrustedNamespace
from ..._parse.kubernetes.resource import Resource, mapping_at, name_of
from ..._parse.kubernetes.tenancy import (
    UNPROVEN,
    VIEW,
    RoleName,
    acts,
    asks_for_more,
    is_record,
    only_reads,
    proven_releases,
    role_of,
    strangers,
)
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.foreign import everything
from ..kubernetes.outcome import read_existing

#: how many names a cause has
_NAMED = 5
#: characters of a name that is told, or whose role is read; roles that are remembered
_LONGEST, _ROLES = 300, 1000
_BEFORE, _GOING = "it was there before the operator, and has", "it is being deleted"
#: that OLM does not make by itself, and that act: see ``acts``. All kinds would need the right to list them all
_ACTORS = ("ServiceAccount", "Pod", "CatalogSource")


def find_absent(cluster: Cluster, namespaces: typing.Iterable[str]) -> tuple[str, ...]:
    """Name those of the namespaces that are not there. Look before ``examine``: one that comes in between is nobody's
    of this run.

    :raises ApiError: the server cannot be reached, or does not let us read
    """
    return tuple(name for name in sorted(set(namespaces)) if _namespace(cluster, name) is None)


def examine(
    cluster: Cluster, places: typing.Mapping[str, tuple[str, str]], trusted: typing.Container[str], made: bool
) -> dict[str, UntrustedNamespace]:
    """Find the operators in whose namespaces no Helm release may be made or upgraded. A namespace that cannot be read
    is one of these.

    :param places: namespace and release of each operator
    :param trusted: namespaces that are not examined
    :param made: the run has made those that were not there: one that is not there now may come back as somebody else's
    :raises ApiError: the server cannot be reached
    """
    found = {}
    for operator, (namespace, release) in places.items():
        if namespace not in trusted:
            gone = made and find_absent(cluster, [namespace])
            why = "it is not there any more" if gone else try_to_refuse(refuse_release, cluster, namespace, release)
            if why:
                found[operator] = UntrustedNamespace(namespace, plain(why))
    return found


def try_to_refuse(refuse: typing.Callable[..., str], *arguments: typing.Any) -> str:
    """Return the refusal of ``refuse``, or its error: an object that a user made in one namespace keeps no other
    operator out.

    :raises ApiError: the server cannot be reached
    """
    try:
        return refuse(*arguments)
    except RdmaError as error:
        if isinstance(error, ApiError) and error.status == 0:
            raise
        return f"whose it is could not be read: {error.seen}"


def refuse_release(cluster: Cluster, namespace: str, release: str) -> str:
    """Tell why no Helm release may be made or upgraded in a namespace; empty where it may, and where the namespace is
    not there.

    A release that is there is taken for the cluster's own if a ClusterRoleBinding proves it. Without one, the namespace
    must hold nothing that acts.

    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    found = _namespace(cluster, namespace)
    if found is None or _is_going(found):
        return "" if found is None else _GOING
    proven = proven_releases(found, cluster.pages("ClusterRoleBinding"))
    others = _describe_foreign_subjects(cluster, namespace, release in proven)
    if others or release in proven:
        return others
    unread: list[str] = []
    actors: list[str] = []
    forged = False
    # no more is held of an object than its name: who makes it decides how large it is
    for kind, item in everything(cluster, namespace, unread):
        if acts(kind, item):
            actors.append(f"{kind} {name_of(item)}")
            forged = forged or is_record(item, release)
    if forged:
        return (
            f"it has the Helm release {release}, and {UNPROVEN}: whoever made the namespace may have forged it, or its"
            " first installation broke off"
        )
    if proven:
        # the release of another operator in the same namespace
        return ""
    return _format_name_list(_BEFORE, actors) or _format_name_list("not listed of it", unread)


def refuse_package(cluster: Cluster, namespace: str, packages: typing.Container[str], installed: bool) -> str:
    """Tell why OLM may install no package in a namespace; empty where it may, and where the namespace is not there.

    :param packages: that the run installs there. The first OperatorGroup of a namespace has OLM install what all of its
        Subscriptions name
    :param installed: a ClusterServiceVersion of one of them is there, with all that belongs to the operator
    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    found = _namespace(cluster, namespace)
    if found is None or _is_going(found):
        return "" if found is None else _GOING
    others = _describe_foreign_subjects(cluster, namespace, installed)
    if others or installed:
        return others
    actors = [
        f"{kind} {name_of(item)}" for kind in _ACTORS for item in cluster.pages(kind, namespace) if acts(kind, item)
    ]
    actors += [
        f"Subscription {name_of(item)}"
        for item in cluster.pages("Subscription", namespace)
        if asks_for_more(item, packages)
    ]
    return _format_name_list(_BEFORE, actors)


def prove_release(cluster: Cluster, namespace: str, release: str) -> bool:
    """Tell whether a ClusterRoleBinding proves a Helm release, see ``proven_releases``.

    :raises ApiError: the server cannot be reached, or does not let us read
    :raises ResourceError: an object has another form
    """
    found = _namespace(cluster, namespace)
    return found is not None and release in proven_releases(found, cluster.pages("ClusterRoleBinding"))


def _namespace(cluster: Cluster, name: str) -> typing.Optional[Resource]:
    return read_existing(cluster, {"kind": "Namespace", "metadata": {"name": name}})


def _is_going(namespace: Resource) -> bool:
    return "deletionTimestamp" in mapping_at(namespace, "metadata")


def _describe_foreign_subjects(cluster: Cluster, namespace: str, trusts_own: bool) -> str:
    """Name who else has more than reading rights in a namespace. A role is read only if a stranger has it.

    Of a RoleBinding no more is held than the names that are told: who makes it decides how large it is.
    """
    named: list[str] = []
    more, readers = 0, {VIEW: True}
    for binding in cluster.pages("RoleBinding", namespace):
        others = strangers([binding], namespace, trusts_own=trusts_own)
        if others and not _only_reads(cluster, role_of(binding), namespace, readers):
            room = _NAMED - len(named)
            named += [cut(other, _LONGEST) for other in others[:room]]
            more += len(others[room:])
    also = f" and {more} more" if more else ""
    return f"others have rights in it, and so those of the operator: {', '.join(named)}{also}" if named else ""


def _only_reads(cluster: Cluster, role: RoleName, namespace: str, known: dict[RoleName, bool]) -> bool:
    """:param known: roles that were read, and whether they let read alone"""
    kind, name = role
    if kind not in ("Role", "ClusterRole") or len(name) > _LONGEST:
        return False
    if role not in known:
        found = _reads(cluster, role, namespace)
        if len(known) >= _ROLES:
            return found
        known[role] = found
    return known[role]


def _reads(cluster: Cluster, role: RoleName, namespace: str) -> bool:
    kind, name = role
    found = read_existing(
        cluster, {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if kind == "Role" else {})}}
    )
    return found is not None and only_reads(found)


def _format_name_list(what: str, found: typing.Sequence[str]) -> str:
    return f"{what}: {folded(found, _NAMED)}" if found else ""
