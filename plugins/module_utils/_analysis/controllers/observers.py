# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge which nodes have an observer, and why the other nodes have none, by the messages of the API server, the
scheduler and the kubelet.

A DaemonSet has no pod on a node that its selector leaves out, and reports that nowhere
[pkg/controller/daemon/daemon_controller.go NodeShouldRunDaemonPod]. If the API server rejects a pod, only an event of
the DaemonSet shows it. That event names no node, so it is the reason for all nodes that have no pod.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.base.text import both_ends
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.observers import DAEMON_SET, ClusterEvent, Observer, ObserverPod, ObserverSet, ObserversSeen
from .image_pull import Keys, explain, names_cause

#: seconds that a reason may last until waiting no longer helps; a reason that is not here waits for the limit
GRACE: dict[str, float] = {
    "no_node": 0.0,
    "left_out": 0.0,
    "unread": 10.0,
    "no_daemon_set": 10.0,
    # a binding that was just made is known to the admission some seconds later
    "scc": 20.0,
    "pod_security": 20.0,
    "quota": 20.0,
    "priority_class": 20.0,
    "policy": 20.0,
    "refused": 20.0,
    "container": 30.0,
    "image": 60.0,
    "unschedulable": 60.0,
    "ended": 60.0,
    # the control plane itself has waited for 40 s or more before it says NotReady
    "node_not_ready": 60.0,
    "no_pod": 60.0,
    "not_seen": 60.0,
    "sandbox": 120.0,
}
#: what the API server says when it refuses a pod; the first that fits counts
_REFUSALS: tuple[tuple[str, typing.Pattern[str]], ...] = (
    ("scc", re.compile(r"security context constraint")),
    ("pod_security", re.compile(r"violates PodSecurity|PodSecurityPolicy")),
    ("quota", re.compile(r"exceeded quota|failed quota|insufficient quota")),
    ("priority_class", re.compile(r"no PriorityClass|priorityClass is not permitted")),
    ("policy", re.compile(r"admission webhook|ValidatingAdmissionPolicy")),
)
#: the namespace is made and removed by the role, unless an admin has prepared it: a Secret must be in one that stays
_KEYS = Keys(
    "rdma_observers_image",
    "observers_pull_policy",
    "observers_pull_secrets, in a namespace that stays (docs/observers.md)",
    "",
    "",
)
#: events of a pod that is about to start, when it does not
_START = (
    "FailedCreatePodSandBox",
    "FailedCreatePodContainer",
    "FailedMount",
    "FailedAttachVolume",
    "FailedSync",
    "NetworkNotReady",
)
_COMBINED = "(combined from similar events): "
#: any kubelet may write an event, and the name of the pod stands in a command
_FAILED_POD = re.compile(r"Found failed daemon pod [^/\s]+/([a-z0-9][a-z0-9.-]{0,252}) on node ([^\s,]+),")


def judge(nodes: typing.Iterable[str], seen: ObserversSeen) -> tuple[Observer, ...]:
    """Return the state of the observer of each node: ready, or waiting with a reason. How long a reason may last is not
    judged.

    :param nodes: names of the nodes that need an observer
    :param seen: observers and events of the cluster
    """
    index = _Index(seen)
    return tuple(index.judge(node) for node in nodes)


def describe_missing(observer: Observer) -> str:
    """Return one line with the reason why a node has no observer, and the remedy. The line is empty if the observer is
    ready.
    """
    if observer.phase == "ready":
        return ""
    return f"{explain_absence(observer)}. {observer.remedy}".strip()


def explain_absence(observer: Observer) -> str:
    """Return the reason why a node has no observer as a clause, without the remedy."""
    return f"node {observer.node} has no observer ({observer.reason}): {' '.join(observer.detail.split()).rstrip('.')}"


def select_nodes(nodes: typing.Iterable[ClusterNode], node_selector: typing.Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted names of the Linux nodes that a node selector matches."""
    wanted = {"kubernetes.io/os": "linux", **node_selector}
    return tuple(
        sorted(node.name for node in nodes if all(node.labels.get(key) == value for key, value in wanted.items()))
    )


class Patience:
    """A timer that turns an observer that waits too long for the same reason into a failed one. The caller passes the
    time.
    """

    def __init__(self, grace: typing.Optional[typing.Mapping[str, float]] = None) -> None:
        """Create the timer of the states in which observers wait.

        :param grace: seconds for each reason, by reason, in place of those of GRACE
        """
        self._grace = GRACE if grace is None else grace
        self._since: dict[str, tuple[str, float]] = {}

    def apply(self, observers: typing.Iterable[Observer], now: float) -> tuple[Observer, ...]:
        """Return the observers, with the phase ``failed`` for each observer that has waited too long for the same
        reason.

        :param observers: state of the observer of each node now
        :param now: time of a monotonic clock, in seconds
        """
        return tuple(self._apply_grace_period(observer, now) for observer in observers)

    def _apply_grace_period(self, observer: Observer, now: float) -> Observer:
        reason, since = self._since.get(observer.node, ("", now))
        if reason != observer.reason:
            since = now
        self._since[observer.node] = (observer.reason, since)
        over = observer.reason in self._grace and now - since >= self._grace[observer.reason]
        return dataclasses.replace(observer, phase="failed") if observer.phase == "waiting" and over else observer

    def wake(self, now: float) -> typing.Optional[float]:
        """Return the seconds until the next waiting observer becomes a failed one, or None if none will.

        :param now: time of a monotonic clock, in seconds
        """
        ends = [since + self._grace[reason] - now for reason, since in self._since.values() if reason in self._grace]
        left = [seconds for seconds in ends if seconds > 0]
        return min(left) if left else None


class _Index:
    """An index of the observer pods by node, and of the events by pod."""

    def __init__(self, seen: ObserversSeen) -> None:
        self._seen = seen
        self._pods: dict[str, list[ObserverPod]] = {}
        for pod in seen.pods:
            if seen.daemon is not None and seen.daemon.is_controller_of(pod):
                self._pods.setdefault(pod.node, []).append(pod)
        #: by uid; of a pod that has ended, of which only the name is known, words alone by its name
        self._of_pods: dict[str, list[ClusterEvent]] = {}
        self._words_of: dict[str, ClusterEvent] = {}
        #: by node, the name of the last pod that ended there
        self._ended: dict[str, str] = {}
        self._refusal: typing.Optional[ClusterEvent] = None
        daemon = seen.daemon
        for event in sorted(seen.events, key=_get_event_time):
            # any kubelet may write an Event about any object, and knows the uid of its own pods alone
            if event.kind == "Pod" and event.warning and event.uid:
                self._of_pods.setdefault(event.uid, []).append(event)
                self._words_of[event.name] = event
            elif event.kind == "DaemonSet" and daemon is not None and event.uid and event.uid == daemon.uid:
                if event.reason == "FailedCreate":
                    self._refusal = event
                found = _FAILED_POD.search(event.message)
                if found:
                    self._ended[found[2]] = found[1]

    def judge(self, node: str) -> Observer:
        daemon, pod = self._seen.daemon, self._pod(node)
        if pod is not None and pod.phase == "ready" and daemon is not None and pod.template == daemon.template:
            return Observer(
                node,
                "ready",
                pod=pod.name,
                uid=pod.uid,
                container=pod.container,
                image_id=pod.image_id,
                restarts=pod.restarts,
            )
        reason, detail, remedy = self._why_not(node, pod)
        return Observer(
            node, "waiting", reason, both_ends(detail), remedy, pod.name if pod else "", pod.uid if pod else ""
        )

    def _pod(self, node: str) -> typing.Optional[ObserverPod]:
        """Return the observer pod that counts for a node, or None if it has none. A pod that is being deleted counts
        only if there is no other.
        """
        return min(
            self._pods.get(node, ()), key=lambda pod: (pod.deleting, pod.phase != "ready", pod.name), default=None
        )

    def _why_not(self, name: str, pod: typing.Optional[ObserverPod]) -> tuple[str, str, str]:
        seen, daemon, node = self._seen, self._seen.daemon, self._seen.nodes.get(name)
        if seen.unread:
            return (
                "unread",
                "; ".join(seen.unread),
                "Give the user of the kubeconfig the rights: kubectl apply -f docs/rbac/observers.yml",
            )
        if node is None:
            return (
                "no_node",
                "the cluster has no node with this name",
                "Use the node name of the cluster in the inventory; kubectl get nodes lists the names",
            )
        if daemon is None:
            return (
                "no_daemon_set",
                f"DaemonSet {seen.namespace}/{DAEMON_SET} does not exist",
                f"Start the observers again, and see kubectl get events -n {seen.namespace}",
            )
        if pod is None or pod.deleting:
            return self._without_pod(node, daemon, pod)
        return self._with_pod(node, daemon, pod)

    def _without_pod(
        self, node: ClusterNode, daemon: ObserverSet, pod: typing.Optional[ObserverPod]
    ) -> tuple[str, str, str]:
        space = self._seen.namespace
        if daemon.nodes and node.name not in daemon.nodes:
            return (
                "left_out",
                "the list of nodes of the DaemonSet does not contain the node",
                "Add the node to the nodes of the observers, or leave that list empty",
            )
        missing = [f"{key}={value}" for key, value in daemon.node_selector.items() if node.labels.get(key) != value]
        if missing:
            return (
                "left_out",
                f"the node has no label {', '.join(missing)}, which the node selector of the DaemonSet requires",
                (
                    f"Change the node selector of the observers, or label the node: kubectl label node {node.name}"
                    f" {' '.join(missing)}"
                ),
            )
        if not daemon.seen:
            remedy = (
                "Restore the kube-controller-manager of the control plane: kubectl get pods -n kube-system -l"
                " component=kube-controller-manager"
            )
            return "not_seen", "the DaemonSet controller has not processed the DaemonSet yet", remedy
        if pod is not None:
            return (
                "outdated",
                f"pod {pod.name} is being deleted",
                "Remove the finalizer that keeps the pod, or restart the kubelet of its node: kubectl get pod"
                f" {pod.name} -n {space} -o yaml",
            )
        if self._refusal is not None:
            return _explain_refusal(self._refusal.message, space)
        ended = self._of_ended(node.name)
        if ended:
            return ended
        if not node.ready:
            return self._lost(node)
        return (
            "no_pod",
            "the pod of the observer has not been created yet",
            f"Correct the cause in the events of the DaemonSet: kubectl describe daemonset {daemon.name} -n {space}",
        )

    def _with_pod(self, node: ClusterNode, daemon: ObserverSet, pod: ObserverPod) -> tuple[str, str, str]:
        show = f"kubectl describe pod {pod.name} -n {self._seen.namespace}"
        words = self._describe_pod_state(pod)
        if pod.template != daemon.template and pod.phase == "ready":
            return (
                "outdated",
                f"pod {pod.name} still has the previous configuration of the DaemonSet",
                f"Correct the cause in the events of the DaemonSet: kubectl describe daemonset {daemon.name}",
            )
        if pod.phase == "failed":
            return (
                "ended",
                words,
                f"Correct the cause that ended the pod, otherwise the next pod ends as well; {show} shows the cause",
            )
        if pod.suspect == "unschedulable":
            return (
                "unschedulable",
                words,
                (
                    f"Free resources on the node, or reduce the resource requests of the observers; {show} shows the"
                    " missing resources"
                ),
            )
        if not node.ready and pod.suspect != "image":
            return self._lost(node)
        if pod.suspect == "image":
            why, remedy = explain(words, _KEYS._replace(namespace=self._seen.namespace, show=show))
            return (
                "image",
                f"{daemon.image or 'the image'} cannot be pulled. {why} {self._quote_pull_error(pod)}",
                remedy,
            )
        if pod.suspect == "container":
            return (
                "container",
                words,
                (
                    f"Correct the error that the kubelet reports; the image needs /bin/sh and sleep. {show} shows all"
                    " messages"
                ),
            )
        if any(event.reason in _START for event in self._of_pods.get(pod.uid, ())):
            return "sandbox", words, f"Correct the error that the kubelet reports; {show} shows all messages"
        return "starting", words, f"Wait until the pod runs, or correct the cause in its events: {show}"

    def _lost(self, node: ClusterNode) -> tuple[str, str, str]:
        detail = f"the node is NotReady: {node.not_ready or 'its condition Ready is not True'}"
        return (
            "node_not_ready",
            detail,
            (
                f"Restore the node: check its power, kubelet and network; kubectl describe node {node.name} shows its"
                " conditions"
            ),
        )

    def _of_ended(self, node: str) -> typing.Optional[tuple[str, str, str]]:
        """Return the reason, detail and remedy for a node whose observer pod has ended and no longer exists, or None.
        The events of such a pod remain readable.
        """
        name = self._ended.get(node)
        if not name:
            return None
        last = self._words_of.get(name)
        words = [] if last is None else [f"{last.reason}: {last.message}"]
        detail = "; ".join([f"pod {name} of the observer ended, and its replacement has not started yet", *words])
        remedy = (
            f"Correct the cause that ended the pod: kubectl get events -n {self._seen.namespace} --field-selector"
            f" involvedObject.name={name}"
        )
        return "ended", detail, remedy

    def _quote_pull_error(self, pod: ObserverPod) -> str:
        """Return the message of the kubelet about a pull that failed, once: the last Event that has a cause, otherwise
        the state of the container. Both start with the reason, such as ErrImagePull.
        """
        reason, _colon, message = pod.detail.partition(": ")
        causes = [event.message for event in self._of_pods.get(pod.uid, ()) if names_cause(event.message)]
        return f"{reason}: {causes[-1] if causes else message}"

    def _describe_pod_state(self, pod: ObserverPod) -> str:
        """Return the state of a pod as text, followed by its cause from the last event that contains one."""
        causes = [event for event in self._of_pods.get(pod.uid, ()) if names_cause(event.message)]
        # what it says first is enough where the kubelet repeats it
        return "; ".join(
            [
                pod.detail,
                *(f"{event.reason}: {event.message}" for event in causes[-1:] if event.message not in pod.detail),
            ]
        )


def _get_event_time(event: ClusterEvent) -> str:
    return event.time


def _explain_refusal(message: str, namespace: str) -> tuple[str, str, str]:
    reason = next((name for name, pattern in _REFUSALS if pattern.search(message)), "refused")
    events = f"kubectl get events -n {namespace} --field-selector reason=FailedCreate"
    # what the recorder of events writes before those that come after many alike
    message = message[len(_COMBINED) :] if message.startswith(_COMBINED) else message
    remedies = {
        "scc": (
            "Allow the service account of the pods to use the SCC, or ask an administrator of the cluster: oc adm"
            f" policy add-scc-to-user privileged -z {DAEMON_SET} -n {namespace}"
        ),
        "pod_security": (
            f"Allow privileged pods in the namespace: kubectl label namespace {namespace}"
            " pod-security.kubernetes.io/enforce=privileged --overwrite"
        ),
        "quota": (
            "Raise the quota, or set observers_resources or observers_priority_class to values that the quota allows:"
            f" kubectl describe resourcequota -n {namespace}"
        ),
        "priority_class": "Name an existing priority class; kubectl get priorityclass lists them",
        "policy": (
            f"Change the policy that the message names so that it accepts the pods of namespace {namespace}; {events}"
            " shows all messages"
        ),
        "refused": f"Correct the error that the API server reports; {events} shows all messages",
    }
    return reason, message, remedies[reason]
