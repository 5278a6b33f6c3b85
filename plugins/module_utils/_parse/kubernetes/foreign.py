# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the foreign objects of a namespace, which would be lost if linerate.rdma deleted the namespace. These are
objects that linerate.rdma did not create, that do not exist in every namespace, and that controllers of the API server
did not create.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import MANAGER, is_ours
from ..._model.kubernetes.scope import Scope
from .resource import Resource, items_of, labels_of, mapping_at, name_of, texts_of, title_of

#: API groups that show again what other groups hold, or what no namespace holds: packages of catalogs, OpenShift's
#: copies of RBAC
_SHOWN_AGAIN = (
    "packages.operators.coreos.com",
    "authorization.openshift.io",
    "project.openshift.io",
    "quota.openshift.io",
)
#: resources without data of their own: what happened, who leads, and tags of an ImageStream
_WITHOUT_DATA = ("events", "leases", "imagestreamtags", "imagetags")
#: that Kubernetes, OpenShift, Istio, OpenShift AI (odh) and OpenShift Pipelines make in each namespace: kind and names
_EVERYWHERE: dict[str, tuple[str, ...]] = {
    "ConfigMap": (
        "kube-root-ca.crt",
        "openshift-service-ca.crt",
        "istio-ca-root-cert",
        "odh-trusted-ca-bundle",
        "config-trusted-cabundle",
        "config-service-cabundle",
    ),
    "ServiceAccount": ("default", "builder", "deployer", "pipeline"),
    "RoleBinding": (
        "system:image-pullers",
        "system:image-builders",
        "system:deployers",
        "pipeline",
        "openshift-pipelines-edit",
        "pipelines-scc-rolebinding",
    ),
}
#: label of a ConfigMap that OpenShift's network operator fills with certificates
_CERTIFICATES = "config.openshift.io/inject-trusted-cabundle"
#: annotations of a Secret that name the ServiceAccount whose credentials it holds
_ACCOUNT_OF = ("kubernetes.io/service-account.name", "openshift.io/internal-registry-auth-token.service-account")
#: managers that create Secrets for each ServiceAccount
_MAKERS = ("kube-controller-manager", "openshift-controller-manager", "cluster-policy-controller")
#: of a ConfigMap by which controllers elect a leader
_LEADER = "control-plane.alpha.kubernetes.io/leader"
#: of a ClusterServiceVersion that OLM shows in each namespace
_COPIED = "olm.copiedFrom"
#: owners of an object that are looked at, and characters of a uid: the API server takes any text for that of an owner
_MOST_OWNERS, _MOST_OF_UID = 100, 64
#: annotation of a Pod that shows what a kubelet runs from its own files
_MIRROR = "kubernetes.io/config.mirror"
#: manager under which the API server merges its oldest records [structured-merge-diff, capmanagers.go]
_MERGED = "ancient-changes"


@dataclasses.dataclass(frozen=True)
class ApiResource:
    """A resource of the API, such as ``persistentvolumeclaims``.

    :ivar base: path of its API, such as ``/apis/apps/v1``
    :ivar plural: name of the resource in paths, such as ``persistentvolumeclaims``
    :ivar kind: kind of its objects, such as ``PersistentVolumeClaim``
    :ivar listable: whether it is namespaced, can be listed, and holds data of its own
    """

    base: str
    plural: str
    kind: str
    listable: bool


@dataclasses.dataclass(frozen=True)
class ForeignObjects:
    """The foreign objects of a namespace, each as ``kind name``, sorted.

    :ivar foreign: foreign objects that remain until a user deletes them
    :ivar going: foreign objects that are being deleted, or that the garbage collector will delete because their owner
        no longer exists
    """

    foreign: tuple[str, ...] = ()
    going: tuple[str, ...] = ()


def parse_versions(groups: Resource) -> tuple[str, ...]:
    """Return the API paths of all versions in an APIGroupList, such as ``/apis/apps/v1``. The preferred version of each
    group comes before its other versions. Groups that only repeat the data of other groups are left out.

    :raises ResourceError: the object is not a valid APIGroupList
    """
    found: list[str] = []
    for group in items_of(mapping_at(groups), "groups", "APIGroupList"):
        name = str(group.get("name") or "")
        # figures of pods; an adapter that is away tells nothing at all
        if name in _SHOWN_AGAIN or name.endswith("metrics.k8s.io"):
            continue
        preferred = str(mapping_at(group, "preferredVersion").get("groupVersion") or "")
        every = [str(item.get("groupVersion") or "") for item in items_of(group, "versions", f"API group {name}")]
        found += [f"/apis/{version}" for version in sorted(every, key=lambda version: version != preferred)]
    return tuple(found)


def parse_resources(listed: Resource, base: str) -> tuple[ApiResource, ...]:
    """Return the resources of an APIResourceList, without subresources.

    :param listed: APIResourceList as the API server returned it
    :param base: path of the API version, such as ``/apis/apps/v1``
    :raises ResourceError: the object is not a valid APIResourceList
    """
    found = []
    for item in items_of(mapping_at(listed), "resources", f"APIResourceList {base}"):
        plural = str(item.get("name") or "")
        if "/" not in plural:
            listable = (
                item.get("namespaced") is True
                and "list" in texts_of(item, "verbs", f"APIResource {plural}")
                and plural not in _WITHOUT_DATA
            )
            found.append(ApiResource(base, plural, str(item.get("kind") or plural), listable))
    return tuple(found)


class _Other(typing.NamedTuple):
    """An object that linerate.rdma did not create. Only these fields of the object are kept, because its creator
    controls its size.

    :ivar kind: kind of the object
    :ivar name: name of the object
    :ivar owners: uids of its owners
    :ivar passes: whether the object can disappear without an action of a user: it is being deleted, has an owner, or is
        an Endpoints object
    """

    kind: str
    name: str
    owners: frozenset[str]
    passes: bool


def _list_owner_uids(references: typing.Sequence[Resource]) -> frozenset[str]:
    """Return the uids of the owners of an object. Only the first _MOST_OWNERS owners are used, more than any controller
    writes, and uids that are too long are left out. An object with a forged list of owners so counts as foreign.

    :param references: ownerReferences of the object
    """
    uids = (str(owner.get("uid") or "") for owner in references[:_MOST_OWNERS])
    return frozenset(uid for uid in uids if len(uid) <= _MOST_OF_UID)


def judge_objects(
    objects: typing.Iterable[tuple[str, Resource]], scope: typing.Optional[Scope] = None
) -> ForeignObjects:
    """Return the foreign objects of a namespace: those that neither linerate.rdma nor the API server and its
    controllers created, and those of other intents. An object whose owner is in the namespace is left out, because only
    the owner counts. Mirror pods are left out, because their containers keep running without them.

    :param objects: all objects of the namespace, each with its kind and a mapping that contains its metadata
    :param scope: objects of the intent; None if all objects of linerate.rdma belong to it
    :raises ResourceError: an object has no name, or its metadata has an unexpected form
    """
    there: set[str] = set()
    services: set[str] = set()
    others: list[_Other] = []
    for kind, item in objects:
        if is_mirror_pod(kind, item):
            continue
        metadata, name = mapping_at(item, "metadata"), name_of(item)
        there.add(str(metadata.get("uid") or ""))
        services |= {name} if kind == "Service" else set()
        owners = items_of(metadata, "ownerReferences", f"{kind} {name}")
        stranger = not is_ours(labels_of(item)) or is_copied(item)
        stranger = stranger or (scope is not None and bool(scope.explain_foreign(kind, item)))
        if stranger and not is_everywhere(kind, item):
            others.append(
                _Other(
                    kind,
                    name,
                    _list_owner_uids(owners),
                    bool(owners) or "deletionTimestamp" in metadata or kind == "Endpoints",
                )
            )
    foreign: list[str] = []
    going: list[str] = []
    for other in others:
        if other.owners.isdisjoint(there) and not (other.kind == "Endpoints" and other.name in services):
            (going if other.passes else foreign).append(f"{other.kind} {other.name}")
    return ForeignObjects(tuple(sorted(foreign)), tuple(sorted(going)))


def is_copied(item: Resource) -> bool:
    """Return whether an object has the label of linerate.rdma although linerate.rdma never wrote the object, because a
    user copied another object with its labels. The API server records the writers of an object in
    ``metadata.managedFields``.

    The result is False for an object with an owner, which a controller created, and for an object without such records.

    :raises ResourceError: the metadata have an unexpected form
    """
    metadata = mapping_at(item, "metadata")
    if not is_ours(labels_of(item)) or metadata.get("ownerReferences"):
        return False
    records = items_of(metadata, "managedFields", title_of(item))
    managers = {str(record["manager"]) for record in records if record.get("manager")}
    return bool(managers) and managers.isdisjoint((MANAGER, _MERGED))


def is_everywhere(kind: str, item: Resource) -> bool:
    """Return whether Kubernetes, OpenShift or an add-on creates an object of this kind and name in each namespace.

    :param kind: kind of the object
    :param item: object as the API server returned it
    :raises ResourceError: the object has an unexpected form
    """
    annotations = mapping_at(item, "metadata", "annotations")
    if kind == "Secret":
        token, pull = (annotations.get(key) in _EVERYWHERE["ServiceAccount"] for key in _ACCOUNT_OF)
        return pull or (token and _is_made(item))
    if kind == "ConfigMap" and (_LEADER in annotations or labels_of(item).get(_CERTIFICATES) == "true"):
        return True
    return name_of(item) in _EVERYWHERE.get(kind, ()) or (
        kind == "ClusterServiceVersion" and _COPIED in labels_of(item)
    )


def _is_made(item: Resource) -> bool:
    """Return whether a controller created the Secret of a ServiceAccount. From Kubernetes 1.24 on, a user creates such
    a Secret for a token that does not expire. Its owner or the record of its first writer shows the controller.

    :raises ResourceError: the metadata have an unexpected form
    """
    metadata = mapping_at(item, "metadata")
    if metadata.get("ownerReferences"):
        return True
    # kube-controller-manager fills the Secret of a user too, by an update of data and metadata
    return any(
        str(record.get("manager")) in _MAKERS and "f:type" in mapping_at(record, "fieldsV1")
        for record in items_of(metadata, "managedFields", title_of(item))
    )


def is_mirror_pod(kind: str, item: Resource) -> bool:
    """Return whether an object is a mirror pod, which represents a static pod of a kubelet. A kubelet can create mirror
    pods in any namespace, and they have no ServiceAccount.

    The API server does not allow the annotation to be added to an existing pod. [pkg/apis/core/validation
    ValidatePodSpecificAnnotationUpdates, plugin/pkg/admission/serviceaccount Validate]

    :param kind: kind of the object
    :param item: the object, of which only the metadata is read
    :raises ResourceError: the object has an unexpected form
    """
    return kind == "Pod" and _MIRROR in mapping_at(item, "metadata", "annotations")


def is_made_pod(item: Resource) -> bool:
    """Return whether a client of the API server created a Pod, so that it is not a mirror pod. Only the metadata of the
    Pod is read.

    :raises ResourceError: the object has an unexpected form
    """
    return not is_mirror_pod("Pod", item)
