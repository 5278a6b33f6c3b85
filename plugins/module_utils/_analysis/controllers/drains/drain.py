# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the pods that prevent a drain. The rule is one for each drain that a run or a teardown causes, whoever drains:
the collection or an operator. The same pods prevent ``kubectl drain``. Pure.
"""

from __future__ import annotations

import typing

from ...._model.base.text import join_first
from ...._model.intent.intent import DrainOptions
from ...._model.kubernetes.disruption import ClusterPod
from ..sriov.drains import is_evicted

#: remedy for pods that return after they were deleted, and that no drain evicts
OF_DAEMON_SETS = "A DaemonSet creates its pods again: change its nodeSelector, so that it leaves the node."
#: of the pods that stop it, those that are named
_NAMED = 5
_SAME_BY_ROLE = " (platform_delete_unmanaged: true does the same)"
_ALONE, _LOCAL = "no controller recreates these pods", "the drain deletes the emptyDir data of these pods"
_UNREAD = "these pods are too large to be read"
_DEVICES, _SHARED = "would lose their network devices", "would share their network devices with other pods"


def list_drain_blockers(
    pods: typing.Iterable[ClusterPod], allowed: DrainOptions, also: str = _SAME_BY_ROLE
) -> tuple[str, ...]:
    """Return the reasons why a node with these pods must not be drained, each with its remedy; empty if nothing
    prevents the drain.

    Pods without a controller, and pods with emptyDir data, prevent the drain unless the options of the intent permit
    their deletion. Pods that are too large to be read always prevent it. Ended pods do not prevent it. Pods of
    DaemonSets and static pods remain on the node, and pods of a run of the collection do not count. [k8s.io/kubectl
    pkg/drain/filters.go daemonSetFilter, mirrorPodFilter, localStorageFilter, unreplicatedFilter]

    :param allowed: options of the drain in the intent
    :param also: another setting that permits the deletion of pods without a controller, as text
    """
    going = [pod for pod in pods if is_evicted(pod, True, "") and not pod.ended and not pod.of_run]
    alone = _format_pod_names(pod for pod in going if not pod.owner and not pod.unread)
    local = _format_pod_names(pod for pod in going if pod.empty_dir)
    found = []
    unread = _format_pod_names(pod for pod in going if pod.unread)
    if unread:
        found.append(f"{_UNREAD}: {unread}. Delete them, or have their owner reduce their size.")
    if alone and not allowed.force:
        how = f"rdma_cluster.drain.force: true{also}"
        found.append(f"{_ALONE}: {alone}. Delete them, or allow their deletion with {how}.")
    if local and not allowed.delete_empty_dir_data:
        how = "rdma_cluster.drain.delete_empty_dir_data: true"
        found.append(f"{_LOCAL}: {local}. Save the data and delete the pods, or allow the deletion with {how}.")
    return tuple(found)


def explain_driver_users(users: typing.Sequence[str]) -> str:
    """Return why the driver of the NICs must not be removed from a node without a drain, with the remedy: running pods
    use the driver. Return an empty text if no pod uses it.

    :param users: descriptions of the pods that use the driver
    """
    if not users:
        return ""
    return (
        f"these running pods {_DEVICES}, because the operator removes the driver without a drain:"
        f" {join_first(users, _NAMED)}. Wait until they end, or evict them: kubectl drain NODE --ignore-daemonsets. Let"
        f" pods return after the run: kubectl uncordon NODE. {OF_DAEMON_SETS}"
    )


def explain_function_holders(users: typing.Sequence[str], prefix: str, drains: bool = True) -> str:
    """Return why a node must not be drained for a change of its virtual functions, with the remedy: running pods use
    the functions, and the operator does not evict these pods. Return an empty text if no such pod runs.

    :param users: descriptions of the pods that use the functions and are not evicted
    :param prefix: prefix of the resources by which the operator finds the pods to evict
    :param drains: whether the operator drains nodes
    """
    if not users:
        return ""
    if not drains:
        return (
            f"these running pods {_DEVICES}, because disableDrain is true and the SR-IOV operator evicts no pod:"
            f" {join_first(users, _NAMED)}. Wait until they end, scale their controllers to 0 replicas, or set"
            f" disableDrain of the SriovOperatorConfig to false. {OF_DAEMON_SETS}"
        )
    return (
        f"these running pods {_DEVICES}, because the SR-IOV operator evicts only pods that request a resource of"
        f" {prefix}, and no pod of a DaemonSet: {join_first(users, _NAMED)}. Wait until they end, or delete them."
        f" {OF_DAEMON_SETS}"
    )


def explain_link_users(users: typing.Sequence[str]) -> str:
    """Return why the eSwitch mode of a physical function must not change, with the remedy: running pods use the
    function, and a change of the mode removes and creates its network interface and RDMA device. Return an empty text
    if no pod uses the function.

    :param users: descriptions of the pods that use the function
    """
    if not users:
        return ""
    return (
        f"these running pods {_DEVICES}, because they use the NIC itself and another eSwitch mode makes its devices"
        f" again: {join_first(users, _NAMED)}. Wait until they end, or delete them. {OF_DAEMON_SETS}"
    )


def explain_rename_users(users: typing.Optional[typing.Sequence[str]]) -> str:
    """Return why virtual functions must not get another resource name, with the remedy: running pods use the functions.
    The kubelet counts each resource name separately, so it would assign functions that are in use to other pods as
    well.

    :param users: descriptions of the pods that use the functions, at least one; None if the pods could not be read
    """
    if users is None:
        return (
            f"it is unknown whether running pods {_SHARED}, because the pods could not be read. Run kubectl get pods"
            " -A. If it is forbidden, give the user of the kubeconfig the rights in docs/rbac/look.yml. Otherwise keep"
            " resource_name of the fabric, or run the stage again."
        )
    return (
        f"these running pods {_SHARED}, because the device plugin offers their virtual functions again under the other"
        f" resource name: {join_first(users, _NAMED)}. Wait until they end, delete them, or keep resource_name of the"
        " fabric."
    )


def takes_devices(blocker: str) -> bool:
    """Return whether a reason against a change is that running pods would lose or share their network devices.

    :param blocker: the reason, as text
    """
    return _DEVICES in blocker or _SHARED in blocker


def is_loss(blocker: str) -> bool:
    """Return whether a reason against a drain or a change is that pods, their data or their network devices would be
    lost or shared.

    :param blocker: the reason, as a function of this module returned it
    """
    return any(said in blocker for said in (_ALONE, _LOCAL, _DEVICES, _SHARED))


def is_unread_pod(blocker: str) -> bool:
    """Return whether a reason against a drain is that pods are too large to be read.

    :param blocker: the reason, as ``list_drain_blockers`` returned it
    """
    return blocker.startswith(_UNREAD)


def _format_pod_names(pods: typing.Iterable[ClusterPod]) -> str:
    names = [f"{pod.namespace}/{pod.name}" for pod in pods]
    return join_first(names, _NAMED)
