# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cluster shows of the SR-IOV network operator and of what it stands on."""

from __future__ import annotations

import dataclasses
import typing

from .._model.admission import OPENSHIFT_GROUP
from .._model.errors import RdmaError
from .._model.kubernetes import Workload
from .._model.marks import LABEL, MANAGER
from .._model.olm import Stay
from .._model.sriov_operator import OperatorFacts
from .._model.stack import has_rights
from .._parse.job.stack import account_of, accounts_of
from .._parse.kubernetes import core as kubernetes
from .._parse.kubernetes import multus, nvidia_network_operator, sriov_operator
from .._parse.kubernetes.config_daemon_log import last_error
from .._parse.kubernetes.nfd_and_olm import olm_object
from .._parse.kubernetes.pod_state import state_of_pod
from .kubernetes import ApiError, Cluster, Resource
from .operator_namespaces import prove_release

#: of the custom resource definitions, those of these API groups
GROUPS = ("sriovnetwork.openshift.io", "k8s.cni.cncf.io", "whereabouts.cni.cncf.io", "nv-ipam.nvidia.com", "mellanox.com")
DAEMON = "sriov-network-config-daemon"
#: ConfigMap of the operator, whichever way it was installed
SUPPORTED_NICS = "supported-nic-ids"
#: of the operator's log: it tries again after 1000 s at most [controller-runtime: its rate limiter]
LOG_SECONDS = 1000
#: where the guides install the operator: OpenShift's own, and the operator's
_ON_OPENSHIFT, _ELSEWHERE = "openshift-sriov-network-operator", "sriov-network-operator"
_Answer = typing.TypeVar("_Answer")
_Read = typing.Callable[[], typing.Iterable[Resource]]


def namespace_of_operator(cluster: Cluster, named: typing.Optional[str] = None) -> str:
    """Where the operator is: the namespace that is named, else that of its SriovOperatorConfig or of itself, where there is one only.

    Without any it is where the guide for this kind of cluster installs it. What may not be read counts as not there: whoever needs the operator then finds
    none in that namespace, and says so.

    :raises ApiError: the server cannot be reached
    """
    if named:
        return named

    def read(kind: str) -> typing.Tuple[Resource, ...]:
        try:
            return cluster.list(kind).items
        except ApiError as error:
            if error.status == 0:
                raise
            return ()

    def running() -> typing.List[Resource]:
        # a tenant may give a Deployment the operator's name
        found = [item for item in read("Deployment") if is_operator(item)]
        return _with_rights(found, read("ClusterRoleBinding")) if found else []

    return _seen(cluster, lambda: read("SriovOperatorConfig"), running)


def kept_release(cluster: Cluster, namespace: str, release: str) -> typing.Optional[Stay]:
    """Why the Helm release of this name is not the collection's; None where it is.

    :raises ApiError: the server refuses, or cannot be reached
    """
    ours = {item["metadata"]["name"] for item in cluster.list("Namespace", selector=f"{LABEL}={MANAGER}").items}
    running = [item for item in cluster.list("Deployment", namespace).items if is_operator(item)]
    return sriov_operator.kept_release(namespace, release, namespace in ours, running, prove_release(cluster, namespace, release))


def _seen(cluster: Cluster, configs: _Read, deployments: _Read) -> str:
    """Namespace of the operator, by as little as tells it."""

    def only(items: typing.Iterable[Resource]) -> str:
        there = {str(item["metadata"].get("namespace", "")) for item in items}
        return there.pop() if len(there) == 1 else ""

    return only(filter(_is_config, configs())) or only(filter(is_operator, deployments())) or (_ON_OPENSHIFT if cluster.serves(OPENSHIFT_GROUP) else _ELSEWHERE)


def observe(cluster: Cluster, named: typing.Optional[str] = None) -> OperatorFacts:
    """Read it all. What cannot be read is in ``errors``; only a server that does not answer at all is an error.

    :param named: namespace of the operator; None is where it is seen
    :raises ApiError: the server cannot be reached
    """
    errors: typing.List[str] = []

    def answer(ask: typing.Callable[[], _Answer]) -> typing.Optional[_Answer]:
        try:
            return ask()
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent:
                errors.append(error.seen)
            return None

    def read(kind: str, where: str = "") -> typing.Optional[typing.Tuple[Resource, ...]]:
        listing = answer(lambda: cluster.list(kind, where))
        return listing.items if listing is not None else None

    crds = read("CustomResourceDefinition") or ()
    bindings = read("ClusterRoleBinding") or ()
    deployments = _with_rights(filter(is_operator, read("Deployment") or ()), bindings)
    daemons = read("DaemonSet") or ()
    configs = read("SriovOperatorConfig") or ()
    namespace = named or _seen(cluster, lambda: configs, lambda: deployments)
    attachments = read("NetworkAttachmentDefinition")
    nic_policies = read("NicClusterPolicy") or ()
    nodes = read("Node") or ()
    states = read("SriovNetworkNodeState", namespace) or ()
    pods = read("Pod", namespace) or ()
    policies = read("SriovNetworkNodePolicy", namespace) or ()
    olm = [*(read("ClusterServiceVersion", namespace) or ()), *(read("Subscription", namespace) or ())]
    namespaces: typing.Dict[str, typing.Tuple[Resource, ...]] = {namespace: pods}

    def of_namespace(name: str) -> typing.Tuple[Resource, ...]:
        if name not in namespaces:
            namespaces[name] = read("Pod", name) or ()
        return namespaces[name]

    nics = answer(lambda: cluster.get("ConfigMap", namespace, SUPPORTED_NICS))
    try:
        daemon = next((item for item in daemons if item["metadata"]["name"] == DAEMON and item["metadata"].get("namespace") == namespace), None)
        return OperatorFacts(
            crds=tuple(sorted(name for name in map(established, crds) if name)),
            installations=tuple(sriov_operator.installation(item) for item in deployments),
            configs=tuple(sorted(item["metadata"].get("namespace", "") for item in configs if _is_config(item))),
            nodes=tuple(kubernetes.node(item) for item in nodes),
            states=tuple(sriov_operator.node_state(item) for item in states),
            daemon=_with_nodes(kubernetes.workload(daemon), daemon, pods) if daemon else None,
            policies=tuple(sriov_operator.policy(item) for item in policies),
            supported_nics=sriov_operator.supported_nics(nics) if nics is not None else None,
            olm=tuple(filter(None, map(olm_object, olm))),
            multus=tuple(
                _with_nodes(kubernetes.workload(item), item, of_namespace(item["metadata"].get("namespace", ""))) for item in multus_daemons(daemons, bindings)
            ),
            multus_pods=sum(multus.STATUS_ANNOTATION in (item["metadata"].get("annotations") or {}) for item in pods),
            attachments=len(attachments) if attachments is not None else None,
            nic_policies=tuple(nvidia_network_operator.nic_policy(item) for item in nic_policies),
            troubles=tuple(filter(None, map(_trouble, pods))),
            errors=tuple(errors),
            namespace=namespace,
            says=_says(cluster, namespace, pods) if daemon is None else "",
        )
    except KeyError as error:
        raise RdmaError(f"an object of the API server has no {error}") from error


def _says(cluster: Cluster, namespace: str, pods: typing.Iterable[Resource]) -> str:
    """Why the operator's last sync failed; empty where it does not run, where none failed, and where its log may not be read."""
    for pod in pods:
        if state_of_pod(pod).phase == "ready" and sriov_operator.runs_operator(pod.get("spec", {}).get("containers") or []):
            try:
                return last_error(cluster.log(namespace, pod["metadata"]["name"], LOG_SECONDS))
            except ApiError as error:
                if error.status == 0:
                    raise
    return ""


def _trouble(pod: Resource) -> str:
    stand = state_of_pod(pod)
    return "" if stand.phase == "ready" else f"{pod['metadata']['name']}: {stand.detail}"


def is_operator(deployment: Resource) -> bool:
    """Whether a Deployment is the SR-IOV network operator, whichever way it was installed."""
    return sriov_operator.runs_operator(_containers(deployment))


def _is_config(config: Resource) -> bool:
    """Whether the operator obeys it: it looks at one name only."""
    return bool(config["metadata"]["name"] == "default")


def established(crd: Resource) -> str:
    """Name of a definition of one of our groups that the server serves; else empty."""
    name = str(crd["metadata"]["name"])
    if not name.endswith(GROUPS):
        return ""
    conditions = crd.get("status", {}).get("conditions", [])
    return name if any(item.get("type") == "Established" and item.get("status") == "True" for item in conditions) else ""


def _with_rights(workloads: typing.Iterable[Resource], bindings: typing.Iterable[Resource]) -> typing.List[Resource]:
    """Deployments and DaemonSets with rights, see ``has_rights``.

    :raises ResourceError: an object is none
    """
    bound = [accounts_of({"kind": "ClusterRoleBinding", **item}) for item in bindings]
    return [item for item in workloads if has_rights(account_of(item), bound)]


def multus_daemons(daemons: typing.Iterable[Resource], bindings: typing.Iterable[Resource] = ()) -> typing.List[Resource]:
    """DaemonSets that run multus on the nodes, and have the rights for that.

    By the name, which each installation begins in another way (kube-multus-ds, rke2-multus, OpenShift's multus), and by a container that ends with it:
    OpenShift's multus-additional-cni-plugins and multus-admission-controller are no multus.
    """
    named = _with_rights((item for item in daemons if "multus" in item["metadata"]["name"]), bindings)
    running = [item for item in named if any(str(container.get("name", "")).endswith("multus") for container in _containers(item))]
    return running or named


def _containers(workload: Resource) -> typing.List[Resource]:
    return workload.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or []


def _with_nodes(daemon: Workload, resource: Resource, pods: typing.Iterable[Resource]) -> Workload:
    """With the nodes on which its pods are ready. What a DaemonSet counts itself takes in nodes that are not ours."""
    uid = resource["metadata"].get("uid")
    owned = (pod for pod in pods if any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or []))
    nodes = {str(pod.get("spec", {}).get("nodeName", "")) for pod in owned if state_of_pod(pod).phase == "ready"}
    return dataclasses.replace(daemon, nodes=tuple(sorted(nodes)))
