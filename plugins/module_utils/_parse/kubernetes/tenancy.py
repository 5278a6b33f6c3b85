# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has rights in a namespace, as its RoleBindings say; what in it acts for whoever made it; and what the collection
would give it that it has not.

Labels and annotations of a namespace, and of what is in it, prove nothing: whoever makes a namespace chooses them.
Those of ClusterRoleBindings do, because who may write these has rights in the whole cluster.
"""

from __future__ import annotations

import typing

from .foreign import is_everywhere, is_mirror_pod
from .resource import Resource, items_of, labels_of, mapping_at, moment_of, name_of, texts_of

#: kind and name of a Role or ClusterRole
RoleName = tuple[str, str]
#: what Kubernetes gives a reader: it lets read what is no secret, and run nothing
VIEW: RoleName = ("ClusterRole", "view")
#: that OpenShift gives the ServiceAccounts of each namespace [openshift-controller-manager,
#: pkg/authorization/defaultrolebindings]
_OF_EACH_PROJECT: tuple[RoleName, ...] = tuple(
    ("ClusterRole", f"system:{name}") for name in ("image-puller", "image-builder", "deployer")
)
_READS = ("get", "list", "watch")
#: subresources that show, and do nothing
_SHOWN = ("status", "scale", "log")
#: kinds that hold data or limits. RoleBindings are looked at by themselves, and a Role gives nothing without one
_PASSIVE = ("ConfigMap", "Secret", "ResourceQuota", "LimitRange", "NetworkPolicy", "Role", "RoleBinding")
#: that Kyverno and Trivy write into each namespace
_REPORTS = (
    "PolicyReport",
    "EphemeralReport",
    "ConfigAuditReport",
    "ExposedSecretReport",
    "RbacAssessmentReport",
    "SbomReport",
    "VulnerabilityReport",
)
#: annotation of a Secret with credentials: of which ServiceAccount
_ACCOUNT = "kubernetes.io/service-account.name"
#: by which Helm marks what a release made [helm pkg/action/validate.go]
_RELEASE, _RELEASE_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
#: what is said of a Helm release that ``proven_releases`` does not name
UNPROVEN = "no ClusterRoleBinding that is younger than the namespace is of it"


def strangers(
    bindings: typing.Iterable[Resource],
    namespace: str,
    readers: typing.Container[RoleName] = (VIEW,),
    trusts_own: bool = False,
) -> tuple[str, ...]:
    """Name who has rights in a namespace: ``RoleBinding name: kind name`` for each subject.

    A tenant who made the namespace may hold tokens of its own ServiceAccounts from before. No object shows them, and
    they stay valid when the tenant has lost all rights. So own ServiceAccounts are strangers, too, except in what
    OpenShift binds in each namespace.

    :param bindings: all RoleBindings of the namespace
    :param readers: roles that let their subjects read and nothing more, see ``only_reads``
    :param trusts_own: no tenant can have made the namespace, or an admin of the cluster installed there what has these
        ServiceAccounts
    :raises ResourceError: an object that is none
    """
    found = []
    for binding in bindings:
        title, role = f"RoleBinding {name_of(binding)}", role_of(binding)
        if role not in readers:
            own = trusts_own or role in _OF_EACH_PROJECT
            subjects = [
                subject
                for subject in items_of(binding, "subjects", title)
                if not (own and _is_inside(subject, namespace))
            ]
            found += [f"{title}: {subject.get('kind')} {subject.get('name')}" for subject in subjects]
    return tuple(found)


def role_of(binding: Resource) -> RoleName:
    """Return the kind and name of the role that a RoleBinding gives.

    :raises ResourceError: no RoleBinding
    """
    role = mapping_at(binding, "roleRef")
    return str(role.get("kind") or ""), str(role.get("name") or "")


def only_reads(role: Resource) -> bool:
    """Return whether a Role or ClusterRole lets its subjects read what is no secret, and do nothing: to run a command
    in a pod may be a ``get``.

    :raises ResourceError: no role
    """
    title = f"role {name_of(role)}"
    for rule in items_of(role, "rules", title):
        if not set(texts_of(rule, "verbs", title)) <= set(_READS):
            return False
        for resource in texts_of(rule, "resources", title):
            name, _slash, sub = resource.partition("/")
            if name in ("*", "secrets") or (sub and sub not in _SHOWN):
                return False
    return True


def release_of(resource: Resource) -> tuple[str, str]:
    """Name and namespace of the Helm release that an object says it is of; empty texts where it says none.

    :raises ResourceError: no object
    """
    notes = mapping_at(resource, "metadata", "annotations")
    return str(notes.get(_RELEASE) or ""), str(notes.get(_RELEASE_NAMESPACE) or "")


def proven_releases(namespace: Resource, bindings: typing.Iterable[Resource]) -> frozenset[str]:
    """Name the Helm releases of a namespace of which there is a ClusterRoleBinding: every operator has one, and no
    tenant can write it.

    One that is older than the namespace is of a release that went with an earlier namespace of this name, and proves
    nothing.

    :param bindings: ClusterRoleBindings
    :raises ResourceError: no object
    """
    made = moment_of(mapping_at(namespace, "metadata").get("creationTimestamp"))
    if made is None:
        return frozenset()
    found = set()
    for binding in bindings:
        name, where = release_of(binding)
        since = moment_of(mapping_at(binding, "metadata").get("creationTimestamp"))
        if name and where == name_of(namespace) and since is not None and since >= made:
            found.add(name)
    return frozenset(found)


def asks_for_more(subscription: Resource, packages: typing.Container[str]) -> bool:
    """Return whether a Subscription has OLM do more than the run asks it for: it names another package, or configures
    the pods of the operator.

    :param packages: that the run installs in the namespace
    :raises ResourceError: no Subscription
    """
    spec = mapping_at(subscription, "spec")
    return spec.get("name") not in packages or "config" in spec


def is_record(resource: Resource, release: str) -> bool:
    """Return whether an object is what Helm keeps of a revision of a release, by the labels that Helm looks for.

    :raises ResourceError: no object
    """
    labels = labels_of(resource)
    return labels.get("owner") == "helm" and labels.get("name") == release


def acts(kind: str, resource: Resource) -> bool:
    """Return whether an object of a namespace may act for whoever made it: it runs pods, is an account or its token, is
    of a Helm release, or the record of one.

    What each namespace has by itself, and what holds data or limits alone, does not. Nor does a mirror pod, by which
    one kubelet could keep operators out.

    :param resource: its metadata
    :raises ResourceError: no object
    """
    if is_mirror_pod(kind, resource):
        return False
    labels = labels_of(resource)
    # before all else: Helm takes a record by these labels, whatever else the object says that it is
    if (
        any(release_of(resource))
        or labels.get("app.kubernetes.io/managed-by") == "Helm"
        or labels.get("owner") == "helm"
    ):
        return True
    if is_everywhere(kind, resource):
        return False
    return kind not in (*_PASSIVE, *_REPORTS) or _ACCOUNT in mapping_at(resource, "metadata", "annotations")


def _is_inside(subject: Resource, namespace: str) -> bool:
    if subject.get("kind") == "Group":
        return subject.get("name") == f"system:serviceaccounts:{namespace}"
    return subject.get("kind") == "ServiceAccount" and subject.get("namespace", namespace) == namespace


def adds_to(found: typing.Optional[Resource], wanted: Resource, owned: str) -> str:
    """Return the first part of ``wanted`` that an object lacks; empty where it has all.

    :param found: None where it is not there
    :param wanted: a Namespace, a Role or a RoleBinding of ours
    :param owned: label that says which run owns it, and gives nothing
    :raises ResourceError: no object
    """
    kind, name = wanted["kind"], name_of(wanted)
    if found is None:
        return f"{kind} {name} is not in it"
    labels = labels_of(found)
    missing = [
        f"{key}={value}" for key, value in labels_of(wanted).items() if key != owned and labels.get(key) != value
    ]
    if kind == "Namespace" and missing:
        return f"it has no label {', '.join(missing)}"
    other = [key for key in ("rules", "roleRef", "subjects") if key in wanted and found.get(key) != wanted[key]]
    return f"{kind} {name} has other {', '.join(other)}" if other else ""
