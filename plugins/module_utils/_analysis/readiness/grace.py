# SPDX-License-Identifier: GPL-3.0-or-later

"""The grace period of each suspect state of a node, which is the time that the state may last before it counts as a
failure, and the remedy of the state.
"""

from __future__ import annotations

import dataclasses
import math
import typing

from ..._model.base.phrases import describe_unread_remedy
from ..._model.kubernetes.wait import SyncNode
from .state import Judgement

#: seconds that a suspect state may last before it is a failure, and the remedy then
GRACE: dict[str, tuple[float, str]] = {
    # the daemon retries a failed sync at once, and a report of an older policy is replaced within seconds
    "sync_failed": (
        20.0,
        "Correct the error that the config daemon reports. Its log (pods sriov-network-config-daemon) has the details.",
    ),
    "wrong_selection": (10.0, "Correct select and hcas_per_node of the fabric."),
    "not_seen": (
        180.0,
        "Start the operator if it does not run (kubectl get pods -A). Otherwise correct the error in its log, or the"
        " other policy that selects the function.",
    ),
    # the daemon of release 1.6.0 repeats a sync that fails and does not report it; what is in its log is the cause
    "sync_failing": (60.0, "Correct the error in the log of the config daemon (pods sriov-network-config-daemon)."),
    "sync_stuck": (
        900.0,
        (
            "Correct the error in the log of the config daemon on the node (pods sriov-network-config-daemon). If the"
            " log ends without an error, delete the pod, so that it starts again."
        ),
    ),
    "daemon_down": (
        120.0,
        (
            "Restore the pod of the config daemon (DaemonSet sriov-network-config-daemon). Without it, no virtual"
            " functions are created on the node."
        ),
    ),
    "drain_blocked": (
        600.0,
        "End the pods that the operator cannot evict: its log names them. Or drain the node manually.",
    ),
    # another replica may be about to start; after that nothing changes by itself
    "drain_held": (180.0, "Let the PodDisruptionBudget allow an eviction (one more replica), or delete the pod."),
    "no_turn": (
        10.0,
        "Set maxUnavailable of the SriovNetworkPoolConfig to at least 1, and assign each node to one pool only.",
    ),
    "pool_held": (
        60.0,
        "Complete the update of the MachineConfigPool: unpause it, or correct the cause of its degraded state.",
    ),
    # the control plane itself has waited for 40 s or more before it says NotReady
    "node_lost": (
        120.0,
        "Run kubectl describe node for the node, and restore its power, its kubelet (systemctl status kubelet)"
        " or its management network.",
    ),
    # firmware and memory tests of a large machine
    "rebooting": (
        1800.0,
        "The node was rebooted, and is not Ready again: correct the error on its console, or power-cycle it.",
    ),
    "not_offered": (
        180.0,
        (
            "Correct the error in the log of the pod sriov-device-plugin on the node. If the pod is absent, the"
            " label sriovnetwork.openshift.io/device-plugin of the node must be Enabled."
        ),
    ),
    "unschedulable": (60.0, "Correct the cause that the scheduler reports: the resource, CPU, memory or a taint."),
    "image": (60.0, "Correct pods.image and pods.image_pull_policy, or give the nodes access to the registry."),
    "container": (30.0, "Correct the error that the kubelet reports."),
    "not_reported": (
        120.0,
        (
            "Correct the error in the log of NVIDIA's network operator (kubectl logs -n nvidia-network-operator"
            " deploy/nvidia-network-operator)."
        ),
    ),
    # a driver may be built on the node, for as long as that takes: only the limit of the wait ends this
    "part": (
        math.inf,
        "Correct the pods of NVIDIA's network operator that are not ready: kubectl get pods -n"
        " nvidia-network-operator -o wide",
    ),
    "part_image": (
        180.0,
        (
            "Give the node access to the registry, or set rdma_cluster.network_operator.repository to a registry that"
            " has the image, and version to an existing release."
        ),
    ),
    "part_container": (
        300.0,
        "Correct the error in the log of the pod that the message names: kubectl logs -n nvidia-network-operator POD",
    ),
    "part_unschedulable": (180.0, "Correct the cause that the scheduler reports: CPU, memory or a taint of the node."),
    "no_nic_label": (
        180.0,
        (
            "Configure node feature discovery on the node to label the vendors of NICs (sources.pci of its worker:"
            " deviceClassWhitelist with 02, deviceLabelFields: [vendor])."
        ),
    ),
    "state_error": (60.0, "Correct the error that the operator reports. Its log has the details."),
    "bad_attachment": (
        60.0,
        (
            "Correct the program that writes the NetworkAttachmentDefinition: its operator (the log shows its error)"
            " or another tool. Then run stage network again."
        ),
    ),
    "no_share": (
        60.0,
        "Correct the nodeSelector or the size of the pool: the log of the controller of nv-ipam shows the error.",
    ),
    "not_shared": (
        300.0,
        "Correct the selectors of the device plugin so that they match an interface of the node, or the error in its"
        " log on the node.",
    ),
    "other_share": (
        300.0,
        (
            "Delete the pod of the device plugin on the node (kubectl get pods -A -o wide), which may run with an"
            " earlier configuration. If a pod holds the interface, the plugin offers the interface only after that pod"
            " has ended."
        ),
    ),
    "unread": (10.0, "Give the user of the kubeconfig the rights in docs/rbac/look.yml."),
    "vfs_left": (
        120.0,
        "If another program created the virtual functions, keep them. Otherwise correct the error in the log of the"
        " config daemon.",
    ),
    "no_attachment": (
        60.0,
        "Correct the error in the log of the operator. The namespace must exist, and the ipam text must be valid JSON.",
    ),
}


def _choose_remedy(suspect: str, node: SyncNode) -> str:
    """Return the remedy for a suspect state of a node.

    :param suspect: suspect state, a key of ``GRACE``
    :param node: the node, whose detail has the reason of the state
    """
    remedy = GRACE[suspect][1]
    return f"{describe_unread_remedy((node.detail,), remedy.rstrip('.'))}." if suspect == "unread" else remedy


class SuspectTimer:
    """A timer that marks a node as failed if its suspect state lasts longer than the grace period. The caller passes
    the time.
    """

    def __init__(self, grace: typing.Optional[typing.Mapping[str, float]] = None) -> None:
        """Create the timer of the suspect states of the nodes.

        :param grace: grace period in seconds by suspect state. It replaces that of GRACE; states that are absent keep
            the period of GRACE. None keeps all of them
        """
        self._grace = {name: (grace or {}).get(name, seconds) for name, (seconds, _remedy) in GRACE.items()}
        self._since: dict[tuple[str, str], tuple[str, float]] = {}
        #: a judgement, and its node with the remedy of its suspect, since most judgements are those of the last call
        self._named: dict[tuple[str, str], tuple[Judgement, SyncNode]] = {}

    def apply(self, judgements: typing.Iterable[Judgement], now: float) -> tuple[SyncNode, ...]:
        """Return the node of each judgment, with the phase ``failed`` if its suspect state has lasted too long.

        :param judgements: judgment of each node at this time
        :param now: time of a monotonic clock, in seconds
        """
        return tuple(self._judge_suspect(judgement, now) for judgement in judgements)

    def _judge_suspect(self, judgement: Judgement, now: float) -> SyncNode:
        """Return the node of a judgment, with the remedy of its suspect state. Its phase is ``failed`` if the state has
        lasted longer than its grace period.

        :param now: time of a monotonic clock, in seconds
        """
        node, key = judgement.node, (judgement.node.fabric, judgement.node.node)
        if not judgement.suspect:
            self._since.pop(key, None)
            return node
        suspect, since = self._since.get(key, ("", now))
        if suspect != judgement.suspect:
            since = now
        self._since[key] = (judgement.suspect, since)
        # the remedy is set before the grace is over, since a wait that ends at its own limit reports it as well
        known, named = self._named.get(key, (None, node))
        if known is not judgement:
            named = dataclasses.replace(node, remedy=node.remedy or _choose_remedy(judgement.suspect, node))
            self._named[key] = (judgement, named)
        return named if now - since < self._grace[judgement.suspect] else dataclasses.replace(named, phase="failed")

    def wake(self, now: float) -> typing.Optional[float]:
        """Return the seconds until the first suspect state becomes a failure, or None if no state is suspect.

        :param now: time of a monotonic clock, in seconds
        """
        ends = [since + self._grace[suspect] - now for suspect, since in self._since.values()]
        return max(0.0, min(ends)) if ends else None
