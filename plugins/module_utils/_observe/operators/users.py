# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the custom resources of other users and of other intents that an operator serves, and the objects of other
intents. A teardown keeps an operator that has some.
"""

from __future__ import annotations

import json
import typing

from ..._model.base.marks import SELECTOR
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.kubernetes.mappings import find_mapping
from ..._model.kubernetes.nic_policy import NEEDING_KINDS
from ..._model.kubernetes.own_kinds import NETWORKS, OF_FABRICS, POOLS, RUNNING_JOBS
from ..._model.kubernetes.owner_marks import explain_owner, find_owner_mark
from ..._model.kubernetes.scope import Scope
from ..._model.kubernetes.scope_fields import find_pools
from ..._model.operators.olm import DRIVER, IN_USE, NEEDED, RetainedObject
from ..._parse.kubernetes.foreign import is_copied, is_mirror_pod
from ..._parse.kubernetes.resource import items_of, mapping_at, name_of, read_namespace, title_of, why_not_read
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Resource
from ..kubernetes.outcome import Outcome, has_our_label
from ..kubernetes.removal.copies import keep_other

#: kinds of the SR-IOV network operator by which a user asks for something
SRIOV_KINDS = ("SriovNetworkNodePolicy", "SriovNetwork", "SriovIBNetwork", "SriovNetworkPoolConfig")
#: kinds of objects that a run makes for its intent
_OF_INTENTS = (
    *dict.fromkeys((*SRIOV_KINDS, *OF_FABRICS)),
    "NicConfigurationTemplate",
    "Tuned",
    *HOST_KINDS,
    *RUNNING_JOBS,
)
#: kinds of the GPU operator and of the network operator, whose objects need the labels of node feature discovery
_NEEDING_LABELS = ("ClusterPolicy", "NicClusterPolicy")
#: kinds whose pods can select nodes by these labels, and the beginning of their keys
_SELECTING, _FEATURES = ("DaemonSet", "Deployment"), "feature.node.kubernetes.io/"
#: kinds whose objects own the DaemonSets and Deployments of the operators of the collection, and of node feature
#: discovery itself
_OWNERS = (*_NEEDING_LABELS, "SriovOperatorConfig", "NodeFeatureDiscovery")
_NIC_POLICY = "NicClusterPolicy"
#: kinds whose objects operators and their daemons make
_MADE_BY_OPERATORS = ("NicDevice", "NodeFeature", "SriovNetworkNodeState")
#: names of objects that the SR-IOV network operator makes
_DEFAULT = (("SriovNetworkNodePolicy", "default"), ("SriovOperatorConfig", "default"))
#: annotation of an attachment with the network of which the SR-IOV network operator made it
_OF_NETWORK = "sriovnetwork.openshift.io/owner-ref"
#: field managers of kubectl create and kubectl apply, and an annotation of the objects of a Helm release
_KUBECTL, _OF_HELM = ("kubectl", "kubectl-client-side-apply", "kubectl-create"), "meta.helm.sh/release-name"
#: objects that are named
_NAMED = 20


def name_users(kind: str, items: typing.Iterable[Resource], scope: typing.Optional[Scope] = None) -> list[str]:
    """Return the ``kind namespace/name`` of each object that a user or another intent made. Objects of this intent,
    objects that an operator made, and objects that are being deleted are left out.

    :param kind: kind of the objects
    :param items: objects of the kind
    :param scope: objects of the intent; None: all objects with the label of the collection count as those of this
        intent
    :raises ResourceError: an object is malformed
    """
    found = []
    for item in items:
        metadata, name = mapping_at(item, "metadata"), name_of(item)
        default = (kind, name) in _DEFAULT and not find_owner_mark(item) and not _is_made_by_hand(item)
        made = kind in _MADE_BY_OPERATORS or default or metadata.get("ownerReferences")
        ours = has_our_label(item) and not is_copied(item) and not find_owner_mark(item)
        ours = ours and (scope is None or not scope.explain_foreign(kind, item))
        if not made and not ours and "deletionTimestamp" not in metadata:
            space = str(metadata.get("namespace") or "")
            found.append(f"{kind} {space}/{name}" if space else f"{kind} {name}")
    return found


def _is_made_by_hand(item: Resource) -> bool:
    """Return whether an admin made an object with kubectl create or apply. An object that an admin only edited does not
    count, and neither does an object of the collection or of a Helm release.
    """
    metadata = mapping_at(item, "metadata")
    if has_our_label(item) or _OF_HELM in mapping_at(metadata, "annotations"):
        return False
    return any(record.get("manager") in _KUBECTL for record in items_of(metadata, "managedFields", title_of(item)))


def find_sriov_users(cluster: Cluster, scope: typing.Optional[Scope] = None) -> tuple[str, ...]:
    """Return the objects of other users and intents that the SR-IOV network operator serves, as ``kind
    namespace/name``. Of more than ``_NAMED`` objects, return the first ones and a text with the number of the others.

    :param scope: objects of the intent; None: all objects with the label of the collection count as those of this
        intent
    :raises ApiError: the API server refuses, or cannot be reached
    """
    return tuple(fold_users(_find_users(cluster, (*SRIOV_KINDS, "SriovOperatorConfig"), scope)))


def find_label_users(cluster: Cluster, scope: typing.Optional[Scope] = None) -> list[str]:
    """Return the objects of other users and intents that may need the labels of node feature discovery, as ``kind
    namespace/name``: objects of the SR-IOV network operator, the GPU operator and NVIDIA's network operator, and the
    DaemonSets and Deployments of other software whose pods select nodes by such a label.

    :param scope: objects of the intent; None: all objects with the label of the collection count as those of this
        intent
    :raises ApiError: the API server refuses, or cannot be reached
    """
    selecting = [
        f"{kind} {read_namespace(item)}/{name_of(item)}"
        for kind in _SELECTING
        for item in _list_objects(cluster, kind)
        if _selects_by_features(item) and not _is_of_operators(item)
    ]
    return _find_users(cluster, (*SRIOV_KINDS, *_NEEDING_LABELS), scope) + selecting


def _selects_by_features(item: Resource) -> bool:
    """Return whether the pods of a DaemonSet or Deployment select nodes by a label of node feature discovery, as
    nodeSelector or as node affinity. A preferred affinity counts too.
    """
    spec = find_mapping(item, "spec", "template", "spec")
    if any(str(key).startswith(_FEATURES) for key in find_mapping(spec, "nodeSelector")):
        return True
    # a key occurs there as "key": "feature.node.kubernetes.io/..."; its place in the terms does not matter
    return f'"{_FEATURES}' in json.dumps(find_mapping(spec, "affinity", "nodeAffinity"))


def _is_of_operators(item: Resource) -> bool:
    """Return whether an object of one of the operators of the collection owns a DaemonSet or Deployment, directly."""
    owners = find_mapping(item, "metadata").get("ownerReferences")
    return any(find_mapping(owner).get("kind") in _OWNERS for owner in (owners if isinstance(owners, list) else ()))


def split_needed(
    cluster: Cluster, kind: str, items: tuple[Resource, ...], scope: typing.Optional[Scope]
) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return two values: the objects of a kind that a removal may take, and the outcomes ``kept`` of the others. An
    object is kept if it belongs to a GitOps tool, or if networks or pools of other users and intents need it. A
    NicClusterPolicy can be needed, because its components and drivers serve all networks, and so can an address pool of
    nv-ipam.

    :param kind: kind of the objects
    :param items: objects of the kind that belong to the intent
    :param scope: objects of the intent; None: only objects of a GitOps tool are kept
    :raises ApiError: the API server refuses, or cannot be reached
    """
    managed = [keep_other(item, why) for item in items if (why := explain_owner(item))]
    items = tuple(item for item in items if not find_owner_mark(item))
    if kind in POOLS and scope is not None and items:
        free, needed = _split_needed_pools(cluster, kind, items, scope)
        return free, [*managed, *needed]
    if kind != _NIC_POLICY or scope is None or not items:
        return items, managed
    users = [
        user
        for needing in NEEDING_KINDS
        for user in name_users(needing.partition(".")[0], _list_objects(cluster, needing), scope)
    ]
    users += _find_address_users(cluster, scope)
    if not users:
        return items, managed
    why = f"networks or pools that are not of this intent need it: {', '.join(fold_users(users))}"
    return (), [*managed, *(keep_other(item, why) for item in items)]


def _find_address_users(cluster: Cluster, scope: Scope) -> list[str]:
    """Return the networks of other users and intents that take their addresses from nv-ipam, which a NicClusterPolicy
    runs. Kinds that need the policy anyway are left out.
    """
    return [
        user
        for kind in NETWORKS
        if kind not in NEEDING_KINDS
        for user in name_users(
            kind,
            [item for item in _list_objects(cluster, kind) if find_pools(kind, item) and not _is_derived(item)],
            scope,
        )
    ]


def _is_derived(item: Resource) -> bool:
    """Return whether the SR-IOV network operator made an attachment of one of its networks, without an owner."""
    return _OF_NETWORK in mapping_at(mapping_at(item, "metadata"), "annotations")


def _split_needed_pools(
    cluster: Cluster, kind: str, pools: tuple[Resource, ...], scope: Scope
) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return two values: the address pools that a removal may take, and the outcomes ``kept`` of those from which
    networks of other users and intents take their addresses.

    :param kind: kind of the pools
    :param pools: objects of the kind that belong to the intent
    :param scope: objects of the intent
    """
    short, users = kind.partition(".")[0].lower(), dict[str, list[str]]()
    for network in NETWORKS:
        for item in _list_objects(cluster, network):
            for of_kind, name in () if _is_derived(item) else find_pools(network, item):
                if of_kind == short:
                    users.setdefault(name, []).extend(name_users(network, [item], scope))
    needed = [
        keep_other(item, f"networks that are not of this intent need it: {', '.join(fold_users(users[name_of(item)]))}")
        for item in pools
        if users.get(name_of(item))
    ]
    return tuple(item for item in pools if not users.get(name_of(item))), needed


def find_other_intents(cluster: Cluster, scope: Scope) -> list[str]:
    """Return the objects that a run made for another intent, or that may belong to another intent, as ``kind
    namespace/name``. Objects that an operator or a user derived from them are left out.

    :param scope: objects of the intent
    :raises ApiError: the API server refuses, or cannot be reached
    """
    found: list[str] = []
    for kind in _OF_INTENTS:
        items = _list_objects(cluster, kind, SELECTOR)
        found += name_users(kind.partition(".")[0], [item for item in items if not is_copied(item)], scope)
    return found


#: prefix of the resources of GPUs, also of virtual machines (``nvidia.com/pgpu``, ``nvidia.com/GH100_H100_SXM5_80GB``)
_OF_NVIDIA = "nvidia.com/"
#: beginnings of the names of RuntimeClasses by which the GPU operator gives GPUs to pods
_GPU_RUNTIMES = ("nvidia", "kata-qemu-nvidia", "kata-nvidia")


def find_gpu_pods(cluster: Cluster) -> list[str]:
    """Return the pods of all namespaces that use GPUs on a node and have not ended, as ``Pod namespace/name``. Each
    resource of NVIDIA counts, because the names of passed-through GPUs and of vGPUs are those of their models. A pod
    that is too large to be read counts. A pod that uses a GPU by a ResourceClaim alone is not recognized.

    :raises ApiError: the API server refuses, or cannot be reached
    """
    return [
        f"Pod {read_namespace(pod)}/{name_of(pod)}"
        for pod in cluster.pages("Pod", partial=True)
        if not is_mirror_pod("Pod", pod) and (why_not_read(pod) or _uses_gpus(pod))
    ]


def _uses_gpus(pod: Resource) -> bool:
    """Return whether a pod is assigned to a node, requests GPUs, and has not ended."""
    spec = mapping_at(pod, "spec")
    if not spec.get("nodeName") or mapping_at(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return False
    if str(spec.get("runtimeClassName") or "").startswith(_GPU_RUNTIMES):
        return True
    return any(name.startswith(_OF_NVIDIA) for name in list_resource_names(spec))


def list_resource_names(spec: Resource) -> set[str]:
    """Return the names of the resources in the requests and limits of the containers and init containers of a pod.

    :param spec: spec of the pod
    :raises ResourceError: the spec is malformed
    """
    containers = (item for key in ("containers", "initContainers") for item in items_of(spec, key, "Pod"))
    amounts = (mapping_at(item, "resources", part) for item in containers for part in ("limits", "requests"))
    return {str(name) for amount in amounts for name in amount}


def _find_users(cluster: Cluster, kinds: typing.Iterable[str], scope: typing.Optional[Scope]) -> list[str]:
    return [user for kind in kinds for user in name_users(kind, _list_objects(cluster, kind), scope)]


def _list_objects(cluster: Cluster, kind: str, selector: str = "") -> tuple[Resource, ...]:
    """Return the objects of a kind in all namespaces. Return an empty tuple if the API server does not serve the kind.

    :param selector: label selector in the notation of kubectl; empty for all objects
    :raises ApiError: the API server refuses, or cannot be reached
    """
    try:
        return cluster.list(kind, selector=selector).items
    except ApiError as error:
        if not error.absent:
            raise
        return ()


def fold_users(users: typing.Sequence[str]) -> list[str]:
    """Return the first ``_NAMED`` names. If there are more, append a text with the number of the others, such as ``3
    more``.

    :param users: names of objects
    """
    more = len(users) - _NAMED
    return [*users[:_NAMED], *([f"{more} more"] if more > 0 else [])]


def keep_operator(subject: str, users: typing.Sequence[str]) -> RetainedObject:
    """Return the entry by which the teardown retains an operator or its Helm release, because objects of other users or
    intents use it.

    :param subject: name of the operator or release as subject of the finding
    :param users: objects that :func:`fold_users` returned
    """
    remedy = (
        "If they are no longer needed, delete these objects, then run the teardown again with teardown_operator: true."
        " If they are needed, set teardown_operator: false"
    )
    return RetainedObject(subject, f"{IN_USE}: {', '.join(users)}", remedy)


def keep_needed(subject: str, others: typing.Sequence[str]) -> RetainedObject:
    """Return the entry by which the teardown retains an operator, because objects of other intents or operators may
    need it. Unlike ``keep_operator``, the remedy leaves the removal to the teardown of the last intent.

    :param subject: name of the operator as subject of the finding
    :param others: objects that :func:`fold_users` returned
    """
    remedy = (
        "If another intent needs them, set teardown_operator: false, and remove the operator with the teardown of the"
        " last intent. If they are no longer needed, delete these objects, then run the teardown again with"
        " teardown_operator: true"
    )
    return RetainedObject(subject, f"{NEEDED}: {', '.join(others)}", remedy)


def keep_driver(subject: str, pods: typing.Sequence[str] = ()) -> RetainedObject:
    """Return the entry by which the teardown retains the GPU operator, because its removal takes the GPU driver off all
    nodes.

    :param subject: name of the operator as subject of the finding
    :param pods: pods that use GPUs, as :func:`fold_users` returned them; empty if the intent permits no drain
    """
    if not pods:
        return RetainedObject(
            subject,
            f"{DRIVER} with the operator, which rdma_cluster.disruption: none does not permit",
            "When no pod uses GPUs, set rdma_cluster.disruption: drain, then run the teardown again with"
            " teardown_operator: true. If the operator is needed, set teardown_operator: false",
        )
    remedy = (
        "Wait until these pods end, or delete what creates them, then run the teardown again with teardown_operator:"
        " true. If they are needed, set teardown_operator: false. To list a pod with its owner: kubectl get pod NAME -n"
        " NAMESPACE -o yaml"
    )
    return RetainedObject(subject, f"{DRIVER} with the operator, and pods use GPUs: {', '.join(pods)}", remedy)
