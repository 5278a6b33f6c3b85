# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the pods that prove how much memory a container may lock, one for each node and fabric, and reads their results.
The pods are removed in all cases.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ..._model.intent.host_intent import Memlock
from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import resource_of
from ..._model.kubernetes.host import MemlockProof
from ..._model.kubernetes.measuring import Refusal
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.outcome import FIELD_MANAGER, has_our_label
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes import core as kubernetes
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.pod_state import state_of_pod
from ..._parse.node.memlock import MemlockError
from ..._parse.node.memlock import parse as parse_log
from ..._render.measurement.memlock import render_memlock_pod
from .measuring_plan import explain_lacking, start_workers
from .pods.readiness import find_node

#: seconds between two looks; of the log that are read, longer than any pod of ours lives; that the removal of all pods
#: may take
LOOK, LOG, REMOVAL = 1.0, 86400, 120.0
#: pods that are looked at at once: a kubelet that does not answer for a log keeps the others waiting no longer than one
#: answer may take
PARALLEL = 32


@dataclasses.dataclass(frozen=True)
class MemlockTask:
    """The nodes and fabrics on which to prove how much memory a container may lock.

    :ivar fabrics: fabrics whose pods are started
    :ivar cluster: settings of the intent that all fabrics share
    :ivar memlock: settings of the proof, such as the amount of memory
    :ivar nodes: names of the nodes
    :ivar limit: seconds within which all pods must end
    :ivar run: id of the run that owns the pods
    :ivar refused: refusal of each fabric on which no pod may be created, by name of the fabric
    """

    fabrics: tuple[Fabric, ...]
    cluster: ClusterIntent
    memlock: Memlock
    nodes: tuple[str, ...]
    limit: float = 300.0
    run: str = ""
    refused: typing.Mapping[str, Refusal] = dataclasses.field(default_factory=dict)


class Prover:
    """A client that runs the pods of the memlock proof, reads their results and removes them."""

    def __init__(
        self, cluster: Cluster, task: MemlockTask, clock: Clock, pause: typing.Callable[[float], None]
    ) -> None:
        self._cluster = cluster
        self._task = task
        self._clock = clock
        self._pause = pause
        #: of the pods that this run made, by namespace and name: what somebody else makes under such a name is not ours
        #: to delete
        self._uids: dict[tuple[str, str], str] = {}

    def run(self) -> tuple[MemlockProof, ...]:
        """Run the pods, remove them, and return for each fabric on each node the memlock proof or the reason why there
        is none, in the order of fabrics and nodes.

        :raises ApiError: the API server cannot be reached
        """
        known = {node.name: node for node in map(kubernetes.parse_node, self._cluster.list("Node").items)}
        proofs: dict[tuple[str, str], MemlockProof] = {}
        pods: dict[tuple[str, str], Resource] = {}
        try:
            for fabric in self._task.fabrics:
                wanted = resource_of(fabric, self._task.cluster)
                for name in self._task.nodes:
                    key = (fabric.name, name)
                    if fabric.name in self._task.refused:
                        proofs[key] = MemlockProof(fabric.name, name, error=self._task.refused[fabric.name].told)
                        continue
                    if name not in known or known[name].allocatable.get(wanted, 0) < 1:
                        proofs[key] = MemlockProof(fabric.name, name, error=explain_lacking(wanted, name, known))
                        continue
                    pods[key] = render_memlock_pod(fabric, self._task.cluster, name, self._task.memlock, self._task.run)
            # the result of a leftover pod of the same name is outdated. All are removed together, so that one that does
            # not end delays the pods of the other nodes only once
            self._remove_pods(pods.values())
            for (fabric_name, name), made in pods.items():
                refusal = self._create_pod(made)
                if refusal:
                    proofs[fabric_name, name] = MemlockProof(fabric_name, name, error=refusal)
            self._await_proofs(pods, proofs)
        finally:
            self._remove_pods(pods.values())
        return tuple(proofs[fabric.name, name] for fabric in self._task.fabrics for name in self._task.nodes)

    def _create_pod(self, made: Resource) -> str:
        """Create a pod. Return the reason if the API server refuses it. Return an empty text if it was created.

        :param made: object of the pod, as the collection renders it
        :raises ApiError: the API server cannot be reached
        """
        try:
            metadata = self._cluster.create(made, FIELD_MANAGER)["metadata"]
            self._uids[metadata["namespace"], metadata["name"]] = metadata["uid"]
        except ApiError as error:
            if error.status == 0:
                raise
            taken = self._explain_taken(made) if error.reason == "AlreadyExists" else ""
            return taken or f"the API server rejected the pod: {error.text}"
        return ""

    def _explain_taken(self, made: Resource) -> str:
        """Return a message about the existing pod whose name prevents the creation of a pod: a pod of another client, a
        pod of an earlier run that does not end, or a mirror pod of a kubelet, which no deletion ends. Return an empty
        text if the existing pod cannot be read.

        :param made: object of the pod that could not be created
        """
        namespace, name = made["metadata"]["namespace"], made["metadata"]["name"]
        try:
            found = self._cluster.get("Pod", namespace, name)
        except ApiError:
            return ""
        node = find_node(found) or "unknown"
        if is_made_pod(found) and not has_our_label(found):
            return f"a pod {namespace}/{name} without the label of linerate.rdma exists on node {node}; delete it"
        if is_made_pod(found):
            return f"a pod {namespace}/{name} of an earlier run on node {node} does not end"
        return f"the kubelet of node {node} reports a mirror pod {namespace}/{name}"

    def _await_proofs(
        self, pods: typing.Mapping[tuple[str, str], Resource], proofs: dict[tuple[str, str], MemlockProof]
    ) -> None:
        end = self._clock() + self._task.limit
        with start_workers(PARALLEL) as pool:
            while True:
                left = [key for key in pods if key not in proofs]
                over = self._clock() >= end
                provings = [
                    pool.submit(
                        self._read_proof, *key, pods[key]["metadata"]["namespace"], pods[key]["metadata"]["name"], over
                    )
                    for key in left
                ]
                for key, proving in zip(left, provings):
                    proof = proving.result()
                    if proof:
                        proofs[key] = proof
                if set(pods) <= set(proofs):
                    return
                self._pause(LOOK)

    def _read_proof(
        self, fabric: str, node: str, namespace: str, name: str, over: bool
    ) -> typing.Optional[MemlockProof]:
        """Return the result of a pod that has ended, or the error that prevents a result. Return None while the pod may
        still end in time.

        :param fabric: name of the fabric
        :param node: name of the node
        :param namespace: namespace of the pod
        :param name: name of the pod
        :param over: whether the time limit of all pods is exceeded
        :raises ApiError: the API server cannot be reached
        """
        subject = f"{namespace}/{name}"
        try:
            found = self._cluster.get("Pod", namespace, name)
            if (found.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                return parse_log(self._cluster.log(namespace, name, LOG), fabric, node, subject)
        except ApiError as error:
            if error.status == 0:
                raise
            # the API server, or the way from it to the node, may be better at the next look
            return None if error.passing and not over else MemlockProof(fabric, node, subject, error=error.text)
        except MemlockError as error:
            return MemlockProof(fabric, node, subject, error=f"{error}; state of the pod: {state_of_pod(found).detail}")
        if over:
            return MemlockProof(
                fabric,
                node,
                subject,
                error=f"the pod did not end within {self._task.limit:.0f} s: {state_of_pod(found).detail}",
            )
        return None

    def _remove_pods(self, pods: typing.Iterable[Resource]) -> None:
        """Delete the pods, and wait up to ``REMOVAL`` seconds until all are gone, because a remaining pod holds a
        virtual function. Mirror pods are not deleted, because their kubelet creates them again. Errors of the API
        server are ignored, so that the proofs are returned.

        :param pods: objects of the pods, as the collection renders them
        """
        names = [(made["metadata"]["namespace"], made["metadata"]["name"]) for made in pods]
        with contextlib.suppress(ApiError):
            left = {item: uid for item in names if (uid := self._delete_pod(*item))}
            end = self._clock() + REMOVAL
            while left and self._clock() < end:
                left = {item: uid for item, uid in left.items() if self._is_pod_present(*item, uid)}
                if left:
                    self._pause(LOOK)

    def _delete_pod(self, namespace: str, name: str) -> str:
        """Delete a pod that this run created, or a pod of an earlier run with its name, and return the uid of the
        deleted pod. Return an empty text if there is no such pod, or if the API server refuses the deletion.

        :raises ApiError: the API server cannot be reached
        """
        try:
            uid = self._uids.get((namespace, name)) or self._find_leftover(namespace, name)
            deleted = bool(uid) and self._cluster.delete("Pod", namespace, name, grace_seconds=1, only={"uid": uid})
        except ApiError as error:
            if error.status == 0:
                raise
            return ""
        return uid if deleted else ""

    def _find_leftover(self, namespace: str, name: str) -> str:
        """Return the uid of a pod of an earlier run. Return an empty text if the pod of this name lacks the label of
        the collection, or is a mirror pod, which its kubelet creates again.

        :raises ApiError: the pod does not exist, or the API server refuses
        """
        found = self._cluster.get("Pod", namespace, name)
        return str(found["metadata"]["uid"]) if has_our_label(found) and is_made_pod(found) else ""

    def _is_pod_present(self, namespace: str, name: str, uid: str) -> bool:
        """Return whether a deleted pod still exists. A pod of the same name with another uid was created later and does
        not count. Return True if a temporary error of the API server leaves this open.

        :param uid: uid of the deleted pod
        :raises ApiError: the API server cannot be reached
        """
        try:
            return bool(self._cluster.get("Pod", namespace, name)["metadata"]["uid"] == uid)
        except ApiError as error:
            if error.status == 0:
                raise
            return error.passing
