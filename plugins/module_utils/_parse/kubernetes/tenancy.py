# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine which subjects have rights in a namespace by its RoleBindings, which of its objects can act for their
creator, and which rights linerate.rdma would add.

Labels and annotations of a namespace and of its objects prove nothing, because the creator of a namespace chooses them.
Those of a ClusterRoleBinding are proof, because only a user with rights in the whole cluster can write one.
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
UNPROVEN = "it has no ClusterRoleBinding that is younger than the namespace"


def list_strangers(
    bindings: typing.Iterable[Resource],
    namespace: str,
    readers: typing.Container[RoleName] = (VIEW,),
    trusts_own: bool = False,
) -> tuple[str, ...]:
    """Return the foreign subjects that have rights in a namespace, each as ``RoleBinding name: kind name``.

    A tenant who created the namespace may still have tokens of its ServiceAccounts. No object shows these tokens, and
    they stay valid after the tenant has lost all rights. The ServiceAccounts of the namespace are therefore foreign,
    too, except in the roles that OpenShift binds in each namespace.

    :param bindings: all RoleBindings of the namespace
    :param readers: kind and name of roles that only let their subjects read objects other than Secrets. Their subjects
        are left out
    :param trusts_own: whether the ServiceAccounts of the namespace are trusted, because no tenant can have created the
        namespace or a cluster administrator installed their workloads
    :raises ResourceError: an object is not a valid RoleBinding
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
    """Return the kind and the name of the role that a RoleBinding grants. A missing value is empty.

    :raises ResourceError: the object is not a valid RoleBinding
    """
    role = mapping_at(binding, "roleRef")
    return str(role.get("kind") or ""), str(role.get("name") or "")


def only_reads(role: Resource) -> bool:
    """Return whether a Role or ClusterRole only lets its subjects read objects other than Secrets. A right on a
    subresource other than status, scale and log does not count as reading, because a command can be run in a pod with
    the verb ``get``.

    :raises ResourceError: the object is not a valid role
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
    """Return the name and the namespace of the Helm release that an object's annotations name. A missing annotation
    becomes an empty string.

    :raises ResourceError: the object has an unexpected form
    """
    notes = mapping_at(resource, "metadata", "annotations")
    return str(notes.get(_RELEASE) or ""), str(notes.get(_RELEASE_NAMESPACE) or "")


def proven_releases(namespace: Resource, bindings: typing.Iterable[Resource]) -> frozenset[str]:
    """Return the names of the Helm releases of a namespace that have a ClusterRoleBinding. Every operator has one, and
    no tenant can create one. The result is empty if the age of the namespace is unknown.

    A ClusterRoleBinding that is older than the namespace belongs to a release in an earlier namespace of the same name,
    and proves nothing.

    :param namespace: Namespace as the API server returned it
    :param bindings: all ClusterRoleBindings of the cluster
    :raises ResourceError: an object has an unexpected form
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
    """Return whether a Subscription makes OLM do more than the run requires: it names another package, or configures
    the pods of the operator.

    :param packages: packages that the run installs in the namespace
    :raises ResourceError: the object is not a valid Subscription
    """
    spec = mapping_at(subscription, "spec")
    return spec.get("name") not in packages or "config" in spec


def is_record(resource: Resource, release: str) -> bool:
    """Return whether an object stores a revision of a Helm release. Helm finds such objects by their labels.

    :param release: name of the release
    :raises ResourceError: the object has an unexpected form
    """
    labels = labels_of(resource)
    return labels.get("owner") == "helm" and labels.get("name") == release


def can_act_for_creator(kind: str, resource: Resource) -> bool:
    """Return whether an object of a namespace can act for its creator: it runs pods, is a ServiceAccount or its token,
    belongs to a Helm release, or stores a revision of a release.

    Return False for objects that exist in each namespace, and for objects that only hold data or limits. Return False
    for mirror pods as well, because otherwise a single kubelet could block the installation of operators.

    :param kind: kind of the object
    :param resource: the object, of which only the metadata is read
    :raises ResourceError: the object has an unexpected form
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


def describe_missing_part(found: typing.Optional[Resource], wanted: Resource, owned: str) -> str:
    """Return a description of the first part of ``wanted`` that the existing object lacks, and that linerate.rdma would
    add. Return an empty string if the existing object has all parts.

    :param found: the existing object; None if it does not exist
    :param wanted: a Namespace, Role or RoleBinding that linerate.rdma would apply
    :param owned: name of the label with the run that owns the object, which is not compared
    :raises ResourceError: an object has an unexpected form
    """
    kind, name = wanted["kind"], name_of(wanted)
    if found is None:
        return f"{kind} {name} does not exist"
    labels = labels_of(found)
    missing = [
        f"{key}={value}" for key, value in labels_of(wanted).items() if key != owned and labels.get(key) != value
    ]
    if kind == "Namespace" and missing:
        return f"it lacks the label {', '.join(missing)}"
    other = [key for key in ("rules", "roleRef", "subjects") if key in wanted and found.get(key) != wanted[key]]
    return f"{kind} {name} has different {', '.join(other)}" if other else ""
