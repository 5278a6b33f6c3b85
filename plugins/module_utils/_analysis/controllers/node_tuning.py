# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the collection's Tuned object in OpenShift's Node Tuning Operator: whether the collection may create it, and
whether the operator has applied it on each node.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import ClusterPod, MachinePool
from ..._model.kubernetes.objects import ClusterNode
from ..._model.node.node_tuning import NAMESPACE, TUNED, NodeProfile, NodeSetting, Recommendation
from .tuned_profiles import name_recommending

#: seconds in which the operator chooses a profile; a node that has another one then does not get ours by itself
CHOOSES_SECONDS = 60.0
#: of the pods that run TuneD [assets/tuned/manifests/ds-tuned.yaml]
POD_LABEL = ("openshift-app", "tuned")
#: who has a control plane beside its work gets OpenShift's profile for that
CONTROL_PLANE = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/infra",
)


@dataclasses.dataclass(frozen=True)
class TuningState:
    """The state of the Node Tuning Operator at one time.

    :ivar nodes: nodes of the cluster, by name
    :ivar profiles: Profile of each node
    :ivar pods: pods of the operator
    :ivar invalid: why the operator rejects the Tuned; empty if it accepts it
    :ivar entries: entries of all Tuneds
    :ivar pools: MachineConfigPools of the cluster
    """

    nodes: typing.Mapping[str, ClusterNode]
    profiles: typing.Mapping[str, NodeProfile]
    pods: tuple[ClusterPod, ...] = ()
    invalid: str = ""
    entries: tuple[Recommendation, ...] = ()
    pools: tuple[MachinePool, ...] = ()


def get_parent_profile(nodes: typing.Iterable[ClusterNode]) -> str:
    """Return the name of OpenShift's TuneD profile that the collection's profile includes: that of control-plane nodes
    if any of these nodes belongs to the control plane, else that of workers.

    :param nodes: nodes that get the profile
    """
    return (
        "openshift-control-plane"
        if any(set(CONTROL_PLANE) & node.labels.keys() for node in nodes)
        else "openshift-node"
    )


def explain_refusal(
    profiles: typing.Mapping[str, typing.Mapping[str, str]],
    nodes: typing.Iterable[ClusterNode],
    run_nodes: typing.Collection[str],
) -> tuple[str, str]:
    """Return why the collection must not create its Tuned object, and the remedy. Both are empty if it may create it.

    :param profiles: labels that select the nodes of each PerformanceProfile, by the name of the PerformanceProfile
    :param nodes: nodes that get the collection's profile
    :param run_nodes: names of the nodes of the run
    """
    for name, labels in profiles.items():
        taken = [node.name for node in nodes if labels.items() <= node.labels.items()]
        if taken:
            why = (
                f"PerformanceProfile {name} tunes {taken[0]}{f' and {len(taken) - 1} more' if len(taken) > 1 else ''};"
                " a node can have only one profile"
            )
            remedy = (
                f"Write the settings into your own Tuned with include=openshift-node-performance-{name} and a"
                " priority below 20, and set rdma_cluster.tuning.set: false."
            )
            if not set(taken) & set(run_nodes):
                remedy = (
                    "These nodes are not in the inventory: set labels in rdma_cluster.node_selector that they do not"
                    " have, then run stage tuning again."
                )
            return why, remedy
    return "", ""


def find_setting(
    name: str, data: str, selector: typing.Mapping[str, str], seen: TuningState, seconds: float
) -> NodeSetting:
    """Return whether the collection's TuneD profile is applied on one node, with cause and remedy if it is not.

    :param name: name of the node
    :param data: text of the collection's profile
    :param selector: labels by which the collection's Tuned matches nodes
    :param seen: state of the Node Tuning Operator
    :param seconds: seconds since the Tuned was applied
    """
    node, profile, late = seen.nodes.get(name), seen.profiles.get(name), seconds >= CHOOSES_SECONDS
    look = f"oc -n {NAMESPACE} get profile.tuned.openshift.io {name} -o yaml"
    if node is None:
        return NodeSetting(
            "stuck",
            "the cluster has no node with this name",
            "Use the node name of the cluster in the inventory: oc get nodes.",
        )
    missing = [f"{key}={value}" for key, value in selector.items() if node.labels.get(key) != value]
    if missing:
        return NodeSetting(
            "stuck",
            f"the node lacks the label {missing[0]}, by which Tuned {TUNED} selects nodes",
            f"oc label node {name} {missing[0]}",
        )
    if seen.invalid:
        return NodeSetting(
            "stuck",
            f"the operator rejects Tuned {TUNED}: {seen.invalid}",
            f"oc -n {NAMESPACE} get tuned {TUNED} -o yaml",
        )
    if profile is None:
        why = f"Profile {name} does not exist in {NAMESPACE}"
        return NodeSetting(
            "stuck" if late else "coming",
            why,
            (
                f"Correct the error in the log of the operator: oc -n {NAMESPACE} logs"
                " deployment/cluster-node-tuning-operator."
            ),
        )
    if profile.wanted != TUNED:
        owner = name_recommending(node, profile.wanted, seen.entries, seen.pools)
        why = f"the operator has selected profile {profile.wanted or 'none'}{f' of {owner}' if owner else ''}"
        remedy = (
            "Change the match of that Tuned so that it does not select this node. Or write the settings into its"
            f" profile, and set rdma_cluster.tuning.set: false. Then run stage tuning again. See the profile:"
            f" {look}."
        )
        return NodeSetting("stuck" if late else "coming", why, remedy)
    if profile.data is not None and profile.data.strip() != data.strip():
        return NodeSetting(
            "stuck" if late else "coming",
            "the operator has not yet copied the settings to the Profile of the node",
            f"See the Profile: {look}.",
        )
    if not any(pod.node == name and POD_LABEL in pod.labels.items() and not pod.ended for pod in seen.pods):
        why = (
            "no pod of DaemonSet tuned runs on the"
            f" node{f'; the node is not ready: {node.not_ready}' if not node.ready else ''}"
        )
        return NodeSetting(
            "stuck" if late else "coming",
            why,
            f"Correct the cause in the events of the DaemonSet: oc -n {NAMESPACE} describe daemonset tuned.",
        )
    if not profile.current or profile.active != TUNED:
        return NodeSetting(
            "coming",
            f"TuneD on the node has not activated the profile yet; its active profile is {profile.active or 'none'}",
            f"See the messages of TuneD in the Profile: {look}.",
        )
    if profile.degraded:
        return NodeSetting(
            "stuck",
            f"TuneD on the node is degraded: {profile.message or 'no reason reported'}",
            f"Correct the problem that TuneD reports; then: {look}.",
        )
    if not profile.applied:
        return NodeSetting(
            "coming",
            f"TuneD has not applied the profile: {profile.message or 'no reason reported'}",
            f"See the messages of TuneD in the Profile: {look}.",
        )
    return NodeSetting("set")
