# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of the SR-IOV network operator, and of the software that it depends on, such as multus and node
feature discovery.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.marks import SELECTOR
from ..._model.base.text import cut_texts
from ..._model.job.stack import has_rights
from ..._model.kubernetes.admission import OPENSHIFT_GROUP
from ..._model.kubernetes.objects import Workload
from ..._model.operators.olm import RetainedObject
from ..._model.operators.sriov_operator import OperatorFacts
from ..._parse.job.stack import account_of, list_accounts
from ..._parse.kubernetes import core as kubernetes
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.networks import multus
from ..._parse.kubernetes.pod_state import state_of_pod
from ..._parse.kubernetes.resource import mapping_at, name_of
from ..._parse.operators import nvidia_network_operator, sriov_operator
from ..._parse.operators.config_daemon_log import last_error
from ..._parse.operators.nfd_and_olm import olm_object
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Resource
from .operator_namespaces import prove_release

#: the number of a pod's template, and of the present one of its DaemonSet
_TEMPLATE_LABEL, _TEMPLATE_NOTE = "pod-template-generation", "deprecated.daemonset.template.generation"
#: of the custom resource definitions, those of these API groups
GROUPS = (
    "sriovnetwork.openshift.io",
    "k8s.cni.cncf.io",
    "whereabouts.cni.cncf.io",
    "nv-ipam.nvidia.com",
    "mellanox.com",
)
DAEMON = "sriov-network-config-daemon"
#: ConfigMap of the operator, whichever way it was installed
SUPPORTED_NICS = "supported-nic-ids"
#: of the operator's log: it tries again after 1000 s at most [controller-runtime: its rate limiter]
LOG_SECONDS = 1000
#: where the guides install the operator: OpenShift's own, and the operator's
_ON_OPENSHIFT, _ELSEWHERE = "openshift-sriov-network-operator", "sriov-network-operator"
#: characters of a text of a pod that are kept: a kubelet may write 1.5 MB into each status
_MOST_TEXT = 2000
_Answer = typing.TypeVar("_Answer")
_Taken = typing.TypeVar("_Taken")
_Read = typing.Callable[[], typing.Iterable[str]]


def namespace_of_operator(cluster: Cluster, named: typing.Optional[str] = None) -> str:
    """Return the namespace of the SR-IOV operator. This is ``named``, else the only namespace with a Deployment of the
    operator that has rights in the whole cluster, else the only namespace with an SriovOperatorConfig. The Deployment
    is more reliable: a tenant can create an SriovOperatorConfig, but cannot give a Deployment these rights.

    If none of these is found, the result is the namespace in which the guide for this kind of cluster installs the
    operator. Objects that the user may not read count as absent. A later check then reports that the operator is
    missing in the namespace.

    :param named: namespace in the settings; None or empty if the settings do not name it
    :raises ApiError: the server cannot be reached
    """
    return find_namespace(cluster, named) or _choose_usual_namespace(cluster)


def find_namespace(cluster: Cluster, named: typing.Optional[str] = None) -> str:
    """Return the namespace of the SR-IOV operator as ``namespace_of_operator`` does, but an empty text if neither the
    settings nor the objects of the cluster show it.

    :param named: namespace in the settings; None or empty if the settings do not name it
    :raises ApiError: the server cannot be reached
    """
    if named:
        return named

    def read(kind: str) -> typing.Iterator[Resource]:
        try:
            yield from cluster.pages(kind)
        except ApiError as error:
            if error.status == 0:
                raise

    def running() -> list[str]:
        # a tenant may give a Deployment the operator's name
        bound = list(map(_list_bound_accounts, read("ClusterRoleBinding")))
        return [
            _get_namespace(item)
            for item in read("Deployment")
            if is_operator(item) and has_rights(account_of(item), bound)
        ]

    return _find_operator_namespace(
        lambda: map(_get_namespace, filter(_is_config, read("SriovOperatorConfig"))), running
    )


def kept_release(cluster: Cluster, namespace: str, release: str) -> typing.Optional[RetainedObject]:
    """Return the entry by which a removal keeps a Helm release of the SR-IOV operator, because the collection did not
    install it, with the reason. Return None if the removal may take the release.

    :param namespace: namespace of the release
    :param release: name of the release
    :raises ApiError: the API server refuses, or cannot be reached
    """
    ours = {item["metadata"]["name"] for item in cluster.list("Namespace", selector=SELECTOR).items}
    running = [item for item in cluster.list("Deployment", namespace).items if is_operator(item)]
    return sriov_operator.kept_release(
        namespace, release, namespace in ours, running, prove_release(cluster, namespace, release)
    )


def find_config_uid(cluster: Cluster, namespace: str) -> str:
    """Return the uid of the SriovOperatorConfig that the operator in a namespace uses. Return an empty string if it
    does not exist, or if the API server refuses to list it.

    :raises ApiError: the API server cannot be reached
    """
    try:
        found = [item for item in cluster.list("SriovOperatorConfig").items if _is_config(item)]
    except ApiError as error:
        if error.status == 0:
            raise
        return ""
    return next((str(item["metadata"]["uid"]) for item in found if _get_namespace(item) == namespace), "")


def _choose_usual_namespace(cluster: Cluster) -> str:
    """Return the namespace in which the guide for this kind of cluster (OpenShift or another one) installs the
    operator.

    :raises ApiError: the API server refuses, or cannot be reached
    """
    return _ON_OPENSHIFT if cluster.serves(OPENSHIFT_GROUP) else _ELSEWHERE


def _find_operator_namespace(configs: _Read, deployments: _Read) -> str:
    """Return the only namespace with a Deployment of the operator. Without any Deployment, return the only namespace
    with a configuration object. Return an empty text if there are several such namespaces, or none.

    :param configs: function that returns the namespaces of the configuration objects; called only without a Deployment
    :param deployments: function that returns the namespaces of the Deployments of the operator that have its rights
    """

    def only(namespaces: typing.Iterable[str]) -> str:
        there = set(namespaces)
        return there.pop() if len(there) == 1 else ""

    proven = set(deployments())
    return only(proven or configs())


def observe(cluster: Cluster, named: typing.Optional[str] = None) -> OperatorFacts:
    """Return the facts of the SR-IOV network operator and of the software that it depends on. Refusals of the API
    server are stored in ``errors`` of the result.

    :param named: namespace of the operator; None to search for the operator
    :raises ApiError: the API server cannot be reached
    :raises RdmaError: an object is malformed
    """
    errors: list[str] = []

    def answer(ask: typing.Callable[[], _Answer]) -> typing.Optional[_Answer]:
        try:
            return ask()
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent:
                errors.append(error.seen)
            return None

    def read(kind: str, where: str = "") -> typing.Optional[tuple[Resource, ...]]:
        listing = answer(lambda: cluster.list(kind, where))
        return listing.items if listing is not None else None

    def only(kind: str, take: typing.Callable[[Resource], typing.Optional[_Taken]]) -> list[_Taken]:
        """Return the relevant objects of a kind that tenants create too. They are read page by page, so that no object
        of a tenant is kept.

        :param take: function that returns the relevant data of an object, or None for an object that is not relevant
        """
        found: list[_Taken] = []
        answer(lambda: found.extend(taken for taken in map(take, cluster.pages(kind)) if taken is not None))
        return found

    crds = only("CustomResourceDefinition", lambda item: find_established_name(item) or None)
    bound = only("ClusterRoleBinding", _list_bound_accounts)
    deployments = only(
        "Deployment",
        lambda item: (
            sriov_operator.parse_installation(item)
            if is_operator(item) and has_rights(account_of(item), bound)
            else None
        ),
    )
    configs = read("SriovOperatorConfig") or ()
    namespace = named or _find_operator_namespace(
        lambda: map(_get_namespace, filter(_is_config, configs)),
        lambda: (item.deployment.namespace for item in deployments),
    )
    namespace = namespace or _choose_usual_namespace(cluster)
    daemons = only("DaemonSet", lambda item: _find_daemon(item, namespace, bound))
    attachments = answer(lambda: sum(1 for _attachment in cluster.pages("NetworkAttachmentDefinition")))
    nic_policies = read("NicClusterPolicy") or ()
    nodes = read("Node") or ()
    states = read("SriovNetworkNodeState", namespace) or ()

    def pods_of(where: str) -> tuple[Resource, ...]:
        """Return the pods of a namespace, with long texts cut, because a kubelet can write texts of any length. Mirror
        pods are left out, because any kubelet can create them.

        :param where: name of the namespace
        """
        found: list[Resource] = []
        answer(
            lambda: found.extend(cut_texts(pod, _MOST_TEXT) for pod in cluster.pages("Pod", where, only=is_made_pod))
        )
        return tuple(found)

    pods = pods_of(namespace)
    policies = read("SriovNetworkNodePolicy", namespace) or ()
    olm = [*(read("ClusterServiceVersion", namespace) or ()), *(read("Subscription", namespace) or ())]
    namespaces: dict[str, tuple[Resource, ...]] = {namespace: pods}

    def of_namespace(name: str) -> tuple[Resource, ...]:
        if name not in namespaces:
            namespaces[name] = pods_of(name)
        return namespaces[name]

    nics = answer(lambda: cluster.get("ConfigMap", namespace, SUPPORTED_NICS))
    try:
        daemon = next((item for item in daemons if item.work.name == DAEMON), None)
        return OperatorFacts(
            crds=tuple(sorted(crds)),
            installations=tuple(deployments),
            configs=tuple(sorted(item["metadata"].get("namespace", "") for item in configs if _is_config(item))),
            nodes=tuple(kubernetes.parse_node(item) for item in nodes),
            states=tuple(sriov_operator.node_state(item) for item in states),
            daemon=_add_nodes(daemon, pods) if daemon else None,
            policies=tuple(sriov_operator.parse_policy(item) for item in policies),
            supported_nics=sriov_operator.supported_nics(nics) if nics is not None else None,
            olm=tuple(filter(None, map(olm_object, olm))),
            multus=tuple(_add_nodes(item, of_namespace(item.work.namespace)) for item in _find_multus(daemons)),
            multus_pods=sum(multus.STATUS_ANNOTATION in (item["metadata"].get("annotations") or {}) for item in pods),
            attachments=attachments,
            nic_policies=tuple(nvidia_network_operator.nic_policy(item) for item in nic_policies),
            troubles=tuple(filter(None, map(_describe_pod_trouble, pods))),
            errors=tuple(errors),
            namespace=namespace,
            says=_read_sync_error(cluster, namespace, pods) if daemon is None else "",
        )
    except KeyError as error:
        raise RdmaError(f"an object of the API server lacks the key {error}") from error


def _read_sync_error(cluster: Cluster, namespace: str, pods: typing.Iterable[Resource]) -> str:
    """Return the reason why the last sync of the operator failed, from its log. Return an empty text if the operator
    does not run, if no sync failed, or if its log cannot be read.

    :param namespace: namespace of the operator
    :param pods: pods of the namespace
    :raises ApiError: the API server cannot be reached
    """
    for pod in pods:
        if state_of_pod(pod).phase == "ready" and sriov_operator.runs_operator(
            pod.get("spec", {}).get("containers") or []
        ):
            try:
                return last_error(cluster.log(namespace, pod["metadata"]["name"], LOG_SECONDS))
            except ApiError as error:
                if error.status == 0:
                    raise
    return ""


def _describe_pod_trouble(pod: Resource) -> str:
    stand = state_of_pod(pod)
    return "" if stand.phase == "ready" else f"{pod['metadata']['name']}: {stand.detail}"


def is_operator(deployment: Resource) -> bool:
    """Return whether a Deployment is the SR-IOV network operator, however it was installed."""
    return sriov_operator.runs_operator(_list_containers(deployment))


def _is_config(config: Resource) -> bool:
    """Return whether an SriovOperatorConfig is the one that the operator uses. It only reads the object named
    ``default``.
    """
    return bool(config["metadata"]["name"] == "default")


def find_established_name(crd: Resource) -> str:
    """Return the name of a CustomResourceDefinition if the API server serves it and its API group is one of GROUPS.
    Otherwise return an empty string.

    :param crd: CustomResourceDefinition as the API server sends it
    """
    name = str(crd["metadata"]["name"])
    if not name.endswith(GROUPS):
        return ""
    conditions = crd.get("status", {}).get("conditions", [])
    return (
        name if any(item.get("type") == "Established" and item.get("status") == "True" for item in conditions) else ""
    )


class _Daemon(typing.NamedTuple):
    """The parts of a DaemonSet that are kept.

    :ivar work: name, namespace, images and numbers of pods
    :ivar uid: uid of the DaemonSet; empty if the API server did not send it
    :ivar runs_multus: whether the name of a container ends with multus
    :ivar template: generation of its pod template; empty if the DaemonSet does not report it
    """

    work: Workload
    uid: str
    runs_multus: bool
    template: str


def _find_daemon(
    item: Resource, namespace: str, bound: typing.Collection[typing.Container[str]]
) -> typing.Optional[_Daemon]:
    """Return the DaemonSet if it is the config daemon of the operator in ``namespace``, or if its name contains multus
    and its ServiceAccount has cluster-wide rights. Return None for any other DaemonSet.

    :param item: DaemonSet as the API server returned it
    :param namespace: namespace of the operator
    :param bound: ServiceAccounts with cluster-wide rights, for each ClusterRoleBinding
    :raises ResourceError: the object is malformed
    """
    name = name_of(item)
    ours = name == DAEMON and _get_namespace(item) == namespace
    if not ours and not ("multus" in name and has_rights(account_of(item), bound)):
        return None
    runs_multus = any(str(container.get("name", "")).endswith("multus") for container in _list_containers(item))
    template = mapping_at(item, "metadata", "annotations").get(_TEMPLATE_NOTE)
    return _Daemon(
        kubernetes.parse_workload(item), str(item["metadata"].get("uid") or ""), runs_multus, str(template or "")
    )


def _find_multus(daemons: typing.Iterable[_Daemon]) -> list[_Daemon]:
    """Return the DaemonSets that run multus: those with a container whose name ends with multus. If there is none,
    return all given DaemonSets except the config daemon of the SR-IOV operator.

    The name of a DaemonSet is not sufficient. It differs between installations (kube-multus-ds, rke2-multus,
    OpenShift's multus), and OpenShift's multus-additional-cni-plugins and multus-admission-controller do not run
    multus.

    :param daemons: DaemonSets with multus in their name, and the config daemon
    """
    named = [item for item in daemons if item.work.name != DAEMON]
    return [item for item in named if item.runs_multus] or named


def _list_bound_accounts(binding: Resource) -> frozenset[str]:
    return list_accounts({"kind": "ClusterRoleBinding", **binding})


def _get_namespace(item: Resource) -> str:
    return str(item["metadata"].get("namespace", ""))


def _list_containers(workload: Resource) -> list[Resource]:
    return workload.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or []


def _add_nodes(daemon: _Daemon, pods: typing.Iterable[Resource]) -> Workload:
    """Return a DaemonSet with the nodes on which its pods are ready. The numbers in its status are not sufficient,
    because they include nodes outside of the run.

    While the DaemonSet replaces pods, pods of an earlier template do not count as ready [k8s.io/kubernetes
    pkg/controller/daemon/util/daemonset_util.go IsPodUpdated].

    :param pods: pods of the namespace of the DaemonSet
    """
    owned = [
        pod
        for pod in pods
        if daemon.uid and any(owner.get("uid") == daemon.uid for owner in pod["metadata"].get("ownerReferences") or [])
    ]
    if daemon.template and daemon.work.ready < daemon.work.wanted:
        owned = [
            pod
            for pod in owned
            if mapping_at(pod, "metadata", "labels").get(_TEMPLATE_LABEL) in (None, daemon.template)
        ]
    nodes = {str(pod.get("spec", {}).get("nodeName", "")) for pod in owned if state_of_pod(pod).phase == "ready"}
    return dataclasses.replace(daemon.work, nodes=tuple(sorted(nodes)))
