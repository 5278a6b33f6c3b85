# SPDX-License-Identifier: GPL-3.0-or-later

"""Report the hosts of a log whose pods are not known, or are not those of the job. Check ids: ``training.*``."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Training
from ..._model.job.nccl import NcclLog, TrainingPod
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import UNKNOWN, WARN, Finding, Status

#: subject of the findings on ranks whose lines of the log have no host name
NO_HOST_NAME = "host without a name"


def report_one_host(host: str) -> Finding:
    """Return the finding that all ranks of the job are on one host."""
    why = "All ranks are on one host, so the job sends no data over the network."
    return Finding(
        "training.hcas",
        host,
        UNKNOWN,
        "ranks on 1 host",
        "ranks on at least 2 hosts",
        why,
        "Run the job on at least two nodes, then run stage training again with the new logs.",
    )


def find_hosts_on_one_node(log: NcclLog, pods: typing.Mapping[str, typing.Sequence[TrainingPod]]) -> dict[str, str]:
    """Return the hosts whose pod shares its node with the pods of all hosts of its communicators, with this node.

    NCCL takes each pod for a node, so the log alone does not show this. Hosts without a known pod are left out, and so
    are the hosts of their communicators.

    :param log: parsed log of NCCL
    :param pods: pods of the job by host name
    """
    peers: dict[str, set[str]] = {}
    for communicator in log.communicators:
        together = {rank.host for rank in communicator.ranks}
        for host in together if len(together) > 1 else ():
            peers.setdefault(host, set()).update(together)
    found = {}
    for host, together in peers.items():
        nodes = {pod.node for name in together for pod in pods.get(name, ())}
        if len(nodes) == 1 and all(pods.get(name) for name in together):
            found[host] = next(iter(nodes))
    return found


def find_hosts_with_nvlink(
    pods: typing.Iterable[TrainingPod], tunings: typing.Mapping[str, ObservedTuning]
) -> frozenset[str]:
    """Return the host names of pods on nodes whose GPUs are all registered with the NVLink fabric. A host name that
    several pods have is returned only if this is true of the nodes of all of them.

    :param pods: pods of the job
    :param tunings: settings of each node
    """
    found: dict[str, bool] = {}
    for pod in pods:
        observed = tunings.get(pod.node)
        rows = observed.value.rows if observed is not None and observed.value is not None else {}
        states = {reading.value for reading in rows.get("gpu_fabric", ())}
        found[pod.host] = found.get(pod.host, True) and states == {"Success"}
    return frozenset(host for host, linked in found.items() if linked)


def report_one_node(host: str, node: str) -> Finding:
    """Return the finding that the pod of a host is on the same node as the pods of its communicators.

    :param host: host name of the pod
    :param node: name of the node
    """
    why = (
        f"All pods with which this pod communicates are on node {node} too. The HCAs of the node loop the data back, so"
        " the job sends no data over a cable or a switch."
    )
    remedy = (
        "Run the job on at least two nodes: add a podAntiAffinity with topologyKey kubernetes.io/hostname to the pods,"
        " or request all GPUs of a node in each pod. Then run stage training again with the new logs."
    )
    return Finding("training.hcas", host, UNKNOWN, f"pods on 1 node: {node}", "pods on at least 2 nodes", why, remedy)


def report_silent_pod(host: str, wanted: Training) -> Finding:
    """Return the finding on a pod of the job that has, or may have, HCAs of the fabrics, and of which the log contains
    no line. It is a warning, or has the status ``unknown`` if the intent does not set the number of ranks.

    :param host: host name of the pod
    :param wanted: properties that the log must prove
    """
    why = (
        f"The pod {host} belongs to the job of these logs and has an interface on a fabric of the intent, so its ranks"
        " must be in the logs of training_logs."
    )
    remedy = (
        "Set training_logs to the logs of all pods of the job. If the log of this pod (kubectl logs) shows no rank,"
        " find the error in it. Then run stage training again."
    )
    # where the intent says how many ranks there are, training.ranks misses none
    status: Status = UNKNOWN if wanted.ranks is None else WARN
    return Finding(
        "training.hcas", host, status, "no line of this pod in the logs", "lines of each pod of the job", why, remedy
    )


def report_no_fabric(host: str) -> Finding:
    """Return the finding that the intent has no fabric with which the HCAs of a host could be compared."""
    why = "The intent has no fabric with RDMA for the job, so the HCAs in the log could not be compared with a fabric."
    remedy = "Set rdma_cluster.training.fabric to a fabric with RDMA, then run stage training again."
    return Finding("training.hcas", host, UNKNOWN, "0 fabrics with RDMA", "at least 1 fabric with RDMA", why, remedy)


def report_several_pods(host: str, pods: typing.Sequence[TrainingPod]) -> Finding:
    """Report several pods with the same host name. NCCL's log contains only the host name, so it is unknown which pod
    wrote a line.

    :param host: host name that the pods share
    :param pods: pods with this host name
    """
    why = "The pods got different virtual functions, and the log shows only the host name, not which of them wrote it."
    remedy = (
        "Set training_selectors to the labels of the job, and delete the pods that do not belong to this run of the"
        " job. Then run stage training again."
    )
    return Finding(
        "training.hcas",
        host,
        UNKNOWN,
        f"{count_of(len(pods), 'pod')} with this host name: {join_first([item.name for item in pods])}",
        "1 pod with this host name",
        why,
        remedy,
    )


def is_strange(pod: TrainingPod, jobs: typing.Mapping[str, int]) -> bool:
    """Return whether a pod may belong to another job than the log, because another job has at least as many pods with
    host names of the log.

    :param jobs: number of pods with these host names, by job; it contains the job of the pod
    """
    return any(count >= jobs[pod.job] for job, count in jobs.items() if job != pod.job)


def report_other_job(host: str, pod: TrainingPod, every: typing.Iterable[TrainingPod]) -> Finding:
    """Report a pod that may belong to another job than the log.

    :param host: host name of the pod
    :param every: pods with the host names of the log
    """
    others = dict.fromkeys(_describe_job(item) for item in every if item.job != pod.job)
    why = (
        "NCCL writes only host names into the log, and pods of different jobs have these names. So the log may come"
        " from another job."
    )
    remedy = (
        "Set training_selectors to the labels of the job, then run stage training again before the pods of the job are"
        " removed."
    )
    return Finding(
        "training.hcas",
        host,
        UNKNOWN,
        f"host names of the log match {_describe_job(pod)}, and {join_first(list(others), 4)}",
        "host names of the log match pods of one job only",
        why,
        remedy,
    )


def _describe_job(pod: TrainingPod) -> str:
    return f"pod {pod.name} of the job {pod.job}" if pod.job else f"pod {pod.name} without a job"


def report_no_pod(host: str, asked: bool, pod: typing.Optional[TrainingPod]) -> Finding:
    """Return the finding that the HCAs of the pod of a host are unknown, with the reason.

    :param asked: whether the API server was queried for the pods of the job
    :param pod: pod of the host; None if it is not known
    """
    measured, expected = (
        "HCAs that the pod got from its networks not read",
        "HCAs that the pod got from its networks read",
    )
    if not host:
        why = "The log contains no host name for these ranks, so their pod is unknown."
        remedy = (
            "Run the job again with NCCL_DEBUG=INFO, then run stage training again with the unchanged log of each pod."
        )
        return Finding("training.hcas", NO_HOST_NAME, UNKNOWN, measured, expected, why, remedy)
    if pod is not None:
        reason = format_clause(pod.error, "The annotation k8s.v1.cni.cncf.io/network-status of the pod names no HCA")
        remedy = (
            f"Run kubectl get pods -A --field-selector metadata.name={pod.name} -o yaml: the annotation"
            " k8s.v1.cni.cncf.io/network-status must list the interfaces and PCI addresses of the pod. If it"
            " does not, correct the error in the log of multus on the node of the pod, and create the pod again."
            " Then run stage training again."
        )
        return Finding("training.hcas", host, UNKNOWN, measured, expected, f"{reason}.", remedy)
    if not asked:
        why = (
            "training_namespace is not set, so the run did not read the pods of the job, and it is not known which"
            " HCAs they got."
        )
        remedy = (
            "Set training_namespace to the namespace of the job, and run stage training again while its pods still"
            " exist."
        )
        return Finding("training.hcas", host, UNKNOWN, measured, expected, why, remedy)
    why = "No pod in training_namespace has this host name, so it is not known which HCAs the pod of these ranks got."
    remedy = (
        f"If kubectl get pods -A lists the pod {host}, set training_namespace to its namespace. If the pod was removed,"
        " run the job again. Run stage training again while the pods still exist."
    )
    return Finding("training.hcas", host, UNKNOWN, measured, expected, why, remedy)
