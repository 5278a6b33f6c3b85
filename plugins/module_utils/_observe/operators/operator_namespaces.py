# SPDX-License-Identifier: GPL-3.0-or-later

"""Examine the namespace of an operator before a run installs or upgrades the operator in it. A tenant that may create
namespaces can create this one first.

A user with rights in the namespace of an operator has the rights of the operator too, because the user can run commands
in its pods. Also, Helm creates all objects that the record of a release names, with the rights of the run. A user that
may write Secrets in the namespace can forge such a record.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import cut_plain, cut_text, join_first
from ..._model.operators.operators import UntrustedNamespace
from ..._parse.kubernetes.resource import Resource, mapping_at, name_of
from ..._parse.kubernetes.tenancy import (
    UNPROVEN,
    VIEW,
    RoleName,
    asks_for_more,
    can_act_for_creator,
    is_record,
    list_strangers,
    only_reads,
    proven_releases,
    role_of,
)
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.outcome import read_existing
from ..kubernetes.removal.foreign import list_everything

#: how many names a cause has
_NAMED = 5
#: characters of a name that is told, or whose role is read; roles that are remembered
_LONGEST, _ROLES = 300, 1000
_BEFORE, _GOING = "it existed before the operator, and has", "it is being deleted"
#: that OLM does not make by itself, and that act: see ``acts``. All kinds would need the right to list them all
_ACTORS = ("ServiceAccount", "Pod", "CatalogSource")


def find_absent(cluster: Cluster, namespaces: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the namespaces that do not exist, sorted. Call this before ``examine``: a namespace that appears between
    the two calls was not created by this run.

    :param namespaces: names of namespaces
    :raises ApiError: the server cannot be reached, or refuses
    """
    return tuple(name for name in sorted(set(namespaces)) if _namespace(cluster, name) is None)


def examine(
    cluster: Cluster, places: typing.Mapping[str, tuple[str, str]], trusted: typing.Container[str], made: bool
) -> dict[str, UntrustedNamespace]:
    """Return the operators whose namespaces must not get a Helm release, each with the reason. A namespace whose owner
    cannot be read must not get one either.

    :param places: namespace, and name of the Helm release, by operator
    :param trusted: names of namespaces that are not examined
    :param made: whether the run has already created missing namespaces. If so, a namespace that is missing nevertheless
        is refused: it was deleted in between, and a tenant may create it again
    :raises ApiError: the API server cannot be reached
    """
    found = {}
    for operator, (namespace, release) in places.items():
        if namespace not in trusted:
            gone = made and find_absent(cluster, [namespace])
            why = "it does not exist anymore" if gone else try_to_refuse(refuse_release, cluster, namespace, release)
            if why:
                found[operator] = UntrustedNamespace(namespace, cut_plain(why))
    return found


def try_to_refuse(refuse: typing.Callable[..., str], *arguments: typing.Any) -> str:
    """Call ``refuse`` and return its result. If it fails, return the error as the reason, so that a malformed object in
    one namespace cannot block operators in other namespaces.

    :param refuse: function that returns the reason why a namespace must not be used, or an empty text
    :param arguments: arguments of ``refuse``
    :raises ApiError: the API server cannot be reached
    """
    try:
        return refuse(*arguments)
    except RdmaError as error:
        if isinstance(error, ApiError) and error.status == 0:
            raise
        return f"its owner could not be read: {error.seen}"


def refuse_release(cluster: Cluster, namespace: str, release: str) -> str:
    """Return the reason why no Helm release must be installed or upgraded in a namespace. Return an empty text if a
    release is allowed, or if the namespace does not exist.

    An existing release is trusted if a ClusterRoleBinding proves that an administrator installed it. Otherwise the
    namespace must not contain any object that can act for its creator, such as a pod or the record of a release.

    :param namespace: name of the namespace
    :param release: name of the release
    :raises ApiError: the API server cannot be reached, or refuses
    :raises ResourceError: an object is malformed
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
    for kind, item in list_everything(cluster, namespace, unread):
        if can_act_for_creator(kind, item):
            actors.append(f"{kind} {name_of(item)}")
            forged = forged or is_record(item, release)
    if forged:
        return (
            f"it has the Helm release {release}, and {UNPROVEN}: the creator of the namespace may have forged the"
            " release, or the first installation of the release was interrupted"
        )
    if proven:
        # the release of another operator in the same namespace
        return ""
    return _format_name_list(_BEFORE, actors) or _format_name_list("could not be listed in it", unread)


def refuse_package(cluster: Cluster, namespace: str, packages: typing.Container[str], installed: bool) -> str:
    """Return the reason why OLM must not install a package in a namespace. Return an empty text if the installation is
    allowed, or if the namespace does not exist.

    :param namespace: name of the namespace
    :param packages: names of the packages that the run installs in the namespace. A Subscription of another package is
        a reason, because the first OperatorGroup of a namespace makes OLM install the packages of all its Subscriptions
    :param installed: whether a ClusterServiceVersion of one of these packages exists in the namespace. If so, the
        objects of the operator are trusted
    :raises ApiError: the API server cannot be reached, or refuses
    :raises ResourceError: an object is malformed
    """
    found = _namespace(cluster, namespace)
    if found is None or _is_going(found):
        return "" if found is None else _GOING
    others = _describe_foreign_subjects(cluster, namespace, installed)
    if others or installed:
        return others
    actors = [
        f"{kind} {name_of(item)}"
        for kind in _ACTORS
        for item in cluster.pages(kind, namespace)
        if can_act_for_creator(kind, item)
    ]
    actors += [
        f"Subscription {name_of(item)}"
        for item in cluster.pages("Subscription", namespace)
        if asks_for_more(item, packages)
    ]
    return _format_name_list(_BEFORE, actors)


def prove_release(cluster: Cluster, namespace: str, release: str) -> bool:
    """Return whether a ClusterRoleBinding proves that a Helm release was installed with rights in the whole cluster. No
    tenant can create a ClusterRoleBinding.

    :param namespace: namespace of the release
    :param release: name of the release
    :raises ApiError: the API server cannot be reached, or refuses
    :raises ResourceError: an object is malformed
    """
    found = _namespace(cluster, namespace)
    return found is not None and release in proven_releases(found, cluster.pages("ClusterRoleBinding"))


def _namespace(cluster: Cluster, name: str) -> typing.Optional[Resource]:
    return read_existing(cluster, {"kind": "Namespace", "metadata": {"name": name}})


def _is_going(namespace: Resource) -> bool:
    return "deletionTimestamp" in mapping_at(namespace, "metadata")


def _describe_foreign_subjects(cluster: Cluster, namespace: str, trusts_own: bool) -> str:
    """Return a message with the foreign subjects (users, groups and ServiceAccounts of other namespaces) that have more
    than read access in a namespace. Return an empty text if there are none. At most ``_NAMED`` subjects are named, and
    the others are counted.

    A role is read only if a foreign subject has it. Only the names in the message are kept in memory, because the
    creator of a RoleBinding decides its size.

    :param namespace: name of the namespace
    :param trusts_own: whether the ServiceAccounts of the namespace itself are trusted; if False, they are foreign as
        well
    """
    named: list[str] = []
    more, readers = 0, {VIEW: True}
    for binding in cluster.pages("RoleBinding", namespace):
        others = list_strangers([binding], namespace, trusts_own=trusts_own)
        if others and not _only_reads(cluster, role_of(binding), namespace, readers):
            room = _NAMED - len(named)
            named += [cut_text(other, _LONGEST) for other in others[:room]]
            more += len(others[room:])
    also = f" and {more} more" if more else ""
    return (
        (f"other accounts have rights in it and can use the rights of the operator: {', '.join(named)}{also}")
        if named
        else ""
    )


def _only_reads(cluster: Cluster, role: RoleName, namespace: str, known: dict[RoleName, bool]) -> bool:
    """Return whether a role grants only read access. A missing role, and one with another kind or a too long name,
    counts as False.

    :param role: kind and name of the role
    :param namespace: namespace of the role if it is a Role
    :param known: result for each role that was read; updated, up to ``_ROLES`` roles
    """
    kind, name = role
    if kind not in ("Role", "ClusterRole") or len(name) > _LONGEST:
        return False
    if role not in known:
        found = _is_read_only_role(cluster, role, namespace)
        if len(known) >= _ROLES:
            return found
        known[role] = found
    return known[role]


def _is_read_only_role(cluster: Cluster, role: RoleName, namespace: str) -> bool:
    kind, name = role
    found = read_existing(
        cluster, {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if kind == "Role" else {})}}
    )
    return found is not None and only_reads(found)


def _format_name_list(what: str, found: typing.Sequence[str]) -> str:
    return f"{what}: {join_first(found, _NAMED)}" if found else ""
