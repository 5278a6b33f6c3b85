# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has rights in a namespace, as its RoleBindings say, and whether what the collection makes there would give it more than it has.

Labels and annotations prove nothing: whoever makes a namespace chooses them, and those of what is in it.
"""

from __future__ import annotations

import typing

from .resource import Resource, items_of, labels_of, mapping_at, name_of

#: ClusterRoles that let read what is no secret, and run nothing: what Kubernetes gives a reader
_READERS = ("view",)
#: namespaces whose ServiceAccounts are the cluster's own. On OpenShift users can make none of these
_OPENSHIFT_SYSTEM = "openshift-monitoring"


def strangers(bindings: typing.Iterable[Resource], namespace: str, openshift: bool = False) -> typing.Tuple[str, ...]:
    """Who else has rights in a namespace: ``RoleBinding name: kind name`` for each subject that is not one of its own ServiceAccounts.

    Own ServiceAccounts have no token outside of it. So without strangers only who has rights in all namespaces has them here.

    :param bindings: all RoleBindings of the namespace
    :param openshift: its monitoring reads metrics by an account of its own
    :raises ResourceError: an object that is none
    """
    found = []
    for binding in bindings:
        role, title = mapping_at(binding, "roleRef"), f"RoleBinding {name_of(binding)}"
        if role.get("kind") == "ClusterRole" and role.get("name") in _READERS:
            continue
        found += [
            f"{title}: {subject.get('kind')} {subject.get('name')}"
            for subject in items_of(binding, "subjects", title)
            if not _is_inside(subject, namespace) and not (openshift and _is_account(subject) and subject.get("namespace") == _OPENSHIFT_SYSTEM)
        ]
    return tuple(found)


def _is_account(subject: Resource) -> bool:
    return subject.get("kind") == "ServiceAccount"


def _is_inside(subject: Resource, namespace: str) -> bool:
    if subject.get("kind") == "Group":
        return subject.get("name") == f"system:serviceaccounts:{namespace}"
    return _is_account(subject) and subject.get("namespace", namespace) == namespace


def adds_to(found: typing.Optional[Resource], wanted: Resource, owned: str) -> str:
    """What an object would get that it has not: empty where it has all that ``wanted`` says.

    :param found: None where it is not there
    :param wanted: a Namespace, a Role or a RoleBinding of ours
    :param owned: label that says which run owns it, and gives nothing
    :raises ResourceError: no object
    """
    kind, name = wanted["kind"], name_of(wanted)
    if found is None:
        return f"{kind} {name} is not in it"
    labels = labels_of(found)
    missing = [f"{key}={value}" for key, value in labels_of(wanted).items() if key != owned and labels.get(key) != value]
    if kind == "Namespace" and missing:
        return f"it has no label {', '.join(missing)}"
    other = [key for key in ("rules", "roleRef", "subjects") if key in wanted and found.get(key) != wanted[key]]
    return f"{kind} {name} has other {', '.join(other)}" if other else ""
