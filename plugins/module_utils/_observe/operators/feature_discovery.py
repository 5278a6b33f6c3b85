# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the workers of node feature discovery: the nodes on which they run, and their configuration. This is done only
if a node lacks a label that node feature discovery should set.
"""

from __future__ import annotations

import dataclasses
import heapq
import typing

from ..._model.base.errors import RdmaError
from ..._model.operators.feature_discovery import FeatureDiscovery, WorkerConfig
from ..._model.operators.sriov_operator import OperatorFacts
from ..._parse.kubernetes import core as kubernetes
from ..._parse.kubernetes.pod_state import state_of_pod
from ..._parse.operators.nfd_and_olm import config_maps, is_worker, worker_config, worker_text
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Resource
from ..kubernetes.yaml_documents import read_yaml

#: a cluster has one, and a worker mounts one
_MOST_WORKERS, _MOST_CONFIG_MAPS = 4, 4


def add_discovery(
    cluster: Cluster, facts: OperatorFacts, selector: typing.Mapping[str, str], nodes: typing.Iterable[str]
) -> OperatorFacts:
    """Return the facts, with the workers of node feature discovery added if one of the nodes lacks a label of the
    selector. A refusal of the API server is added to ``errors``.

    :param facts: facts about the nodes and the operators
    :param selector: labels that the nodes must have
    :param nodes: names of the nodes that count
    :raises ApiError: the API server cannot be reached
    """
    lacking = [
        node
        for node in facts.nodes
        if node.name in set(nodes) and any(node.labels.get(key) != value for key, value in selector.items())
    ]
    if not lacking:
        return facts
    try:
        return dataclasses.replace(facts, discovery=observe(cluster))
    except ApiError as error:
        if error.status == 0:
            raise
        return dataclasses.replace(facts, errors=(*facts.errors, error.seen))


def observe(cluster: Cluster) -> tuple[FeatureDiscovery, ...]:
    """Return the DaemonSets that run the worker of node feature discovery. A tenant can create any number of such
    DaemonSets, so only the ``_MOST_WORKERS`` with the most ready pods are returned. If the configuration of a worker
    cannot be read, ``unread`` of its entry has the reason.

    :raises ApiError: the API server cannot be reached, or refuses to list DaemonSets or pods
    """
    workers = heapq.nlargest(
        _MOST_WORKERS,
        filter(is_worker, cluster.pages("DaemonSet")),
        key=lambda daemon: kubernetes.parse_workload(daemon).ready,
    )
    return tuple(_observe_nfd_worker(cluster, daemon) for daemon in workers)


def _observe_nfd_worker(cluster: Cluster, daemon: Resource) -> FeatureDiscovery:
    metadata = daemon["metadata"]

    def is_owned(pod: Resource) -> bool:
        return any(owner.get("uid") == metadata.get("uid") for owner in pod["metadata"].get("ownerReferences") or [])

    owned = cluster.pages("Pod", metadata["namespace"], only=is_owned)
    stands = {str(pod.get("spec", {}).get("nodeName", "")): state_of_pod(pod) for pod in owned}
    ready = tuple(sorted(node for node, stand in stands.items() if stand.phase == "ready"))
    config, unread = _read_worker_config(cluster, daemon)
    return FeatureDiscovery(
        worker=dataclasses.replace(kubernetes.parse_workload(daemon), nodes=ready),
        pods={node: stand.detail for node, stand in sorted(stands.items()) if stand.phase != "ready"},
        config=config,
        unread=unread,
    )


def _read_worker_config(cluster: Cluster, daemon: Resource) -> tuple[typing.Optional[WorkerConfig], str]:
    """Return two values: the configuration of a worker of node feature discovery (None if it is unknown), and the
    reason why it is unknown (empty if it is known). Without a ConfigMap the worker uses its defaults, which are
    returned.

    :param daemon: DaemonSet of the worker
    :raises ApiError: the API server cannot be reached
    """
    for name in config_maps(daemon)[:_MOST_CONFIG_MAPS]:
        try:
            text = worker_text(cluster.get("ConfigMap", daemon["metadata"]["namespace"], name))
            if text:
                return worker_config(read_yaml(text)), ""
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent:
                return None, error.seen
        except RdmaError as error:
            return None, error.seen
    return WorkerConfig(), ""
