# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether a control-plane node may go down. etcd loses its quorum if too many members are down, and the
PodDisruptionBudgets of kubeadm do not prevent that. Pure.
"""

from __future__ import annotations

import typing

from ...._model.base.phrases import describe_unread_remedy, format_clause
from ...._model.kubernetes.control_plane import EtcdMember
from ...._model.kubernetes.objects import ClusterNode

#: of nodes with a member of etcd, by RKE2 and K3s, which may give that role to nodes of its own
ETCD = "node-role.kubernetes.io/etcd"
#: labels of control-plane nodes, the second one of older clusters and of OpenShift, the last one of OpenShift's third
#: member of etcd beside two nodes. No kubelet may write them: of the labels below kubernetes.io the admission plugin
#: NodeRestriction leaves it some names, kubelet.kubernetes.io/ and node.kubernetes.io/
LABELS = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    ETCD,
    "node-role.kubernetes.io/arbiter",
)
#: MicroK8s gives its nodes this label alone, by their kubelets
MICROK8S = "node.kubernetes.io/microk8s-controlplane"


def is_control_plane(node: ClusterNode, nodes: typing.Iterable[ClusterNode]) -> bool:
    """Return whether a node belongs to the control plane, by its labels. Data that a kubelet can write, such as a
    static pod, is not used.

    :param nodes: nodes of the cluster. If one of them has a label of ``LABELS``, the label of MicroK8s does not count
    """
    return _has_role(node) or (MICROK8S in node.labels and not any(map(_has_role, nodes)))


def list_control_plane(nodes: typing.Sequence[ClusterNode]) -> tuple[ClusterNode, ...]:
    """Return the control-plane nodes: those with a label of ``LABELS``, or, if no node has one, those with the label of
    MicroK8s.
    """
    return tuple(filter(_has_role, nodes)) or tuple(node for node in nodes if MICROK8S in node.labels)


def _has_role(node: ClusterNode) -> bool:
    return any(label in node.labels for label in LABELS)


def explain_why_kept(
    node: ClusterNode,
    nodes: typing.Sequence[ClusterNode],
    members: typing.Sequence[EtcdMember],
    unread: str,
    awaited: typing.Container[str] = (),
) -> str:
    """Return why a control-plane node must not go down now, with the remedy; empty if it may go down, and for every
    worker.

    It must not go down while another control-plane node is NotReady or cordoned, whether that node is in the inventory
    or not. Each control-plane node must also have a Ready member of etcd. In clusters with nodes of the role etcd, only
    those nodes, and nodes that have a member, need one. A member on any other node does not count, because a kubelet
    may claim that it runs one.

    :param nodes: nodes of the cluster
    :param members: members of etcd
    :param unread: why the pods of etcd could not be read; empty if they were read
    :param awaited: names of nodes that this roll has taken down, and that return before this node goes down
    """
    if not is_control_plane(node, nodes):
        return ""
    control = list_control_plane(nodes)
    others = [other for other in control if other.name != node.name and other.name not in awaited]
    down = [other.name for other in others if not other.ready or other.unschedulable]
    if down:
        return (
            "the node is a control-plane node, and these control-plane nodes are NotReady or cordoned too:"
            f" {', '.join(down)}. Restore them first: kubectl get nodes."
        )
    if unread:
        return (
            f"the node is a control-plane node, and the members of etcd could not be read ({unread})."
            f" {describe_unread_remedy((unread,), 'Give the user of the kubeconfig the right to list pods')}."
        )
    seats = {node.name, *(other.name for other in control)}
    members = [member for member in members if member.node in seats]
    if not members:
        why = (
            "neither kube-system (component=etcd) nor openshift-etcd (app=etcd) has a pod of etcd, so it is unknown"
            " whether etcd would keep its quorum"
        )
        return (
            f"the node is a control-plane node, and {why}. Reset such nodes manually, one after the other, and remove"
            " them from the inventory."
        )
    ready = {member.node for member in members if member.ready}
    every = (node, *others)
    having = {member.node for member in members} | {other.name for other in every if ETCD in other.labels}
    split = any(ETCD in other.labels for other in every)
    lacking = [other.name for other in every if other.name not in ready and (other.name in having or not split)]
    if lacking:
        return (
            f"the node is a control-plane node, and etcd has no Ready member on {', '.join(lacking)}. Restore the"
            " member first: kubectl get pods -A -l component=etcd."
        )
    return ""


def describe_shape(nodes: typing.Sequence[ClusterNode], going: typing.Iterable[str]) -> tuple[str, ...]:
    """Return a sentence on the effect of the resets on a cluster without a spare control-plane node, as a tuple. The
    tuple is empty for any other cluster.

    :param going: names of the nodes that are reset
    """
    control = [node.name for node in list_control_plane(nodes)]
    mine = [name for name in going if name in control]
    if not mine:
        return ()
    if len(nodes) == 1:
        return (
            (
                f"single-node cluster: {mine[0]} is its only node. While the node is reset, there is no API server, and"
                " no pod runs."
            ),
        )
    if len(control) == 1:
        return (
            (
                f"{mine[0]} is the only control-plane node. While the node is reset, there is no API server, and no"
                " pods are scheduled."
            ),
        )
    if len(control) == len(nodes):
        why = (
            "all of its nodes are control-plane nodes and workers. The nodes are reset one at a time, and etcd"
            " tolerates no other failure during that time"
        )
        return (f"compact cluster of {len(nodes)} nodes: {format_clause(why)}.",)
    return ()
