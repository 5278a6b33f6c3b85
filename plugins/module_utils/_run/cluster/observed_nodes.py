# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the nodes that get an observer, and the image of the observers."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.observers import judge, select_nodes
from ..._model.base.errors import RdmaError
from ..._model.kubernetes.observers import PUBLIC_IMAGE, Wanted
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._parse.kubernetes import core
from ..._parse.kubernetes import observers as parse
from .observer_view import seen_in


def nodes_to_observe(cluster: Cluster, wanted: Wanted) -> tuple[str, ...]:
    """Return the names of the nodes that the settings name or, if they name none, of all nodes that match their
    selector.

    :param wanted: settings of the observers
    :raises RdmaError: the selector matches no node, or the nodes cannot be read
    """
    found = wanted.nodes or select_nodes(map(core.parse_node, cluster.list("Node").items), wanted.node_selector)
    if not found:
        labels = ", ".join(f"{key}={value}" for key, value in wanted.node_selector.items()) or "kubernetes.io/os=linux"
        raise RdmaError(
            f"no node of the cluster matches the node selector {labels}",
            "Correct the node selector, then rerun; kubectl get nodes --show-labels lists the labels of all nodes",
        )
    return found


def leave_out(
    cluster: Cluster, wanted: Wanted, nodes: typing.Sequence[str], excluded: typing.Container[str]
) -> tuple[Wanted, tuple[str, ...]]:
    """Return two values: the settings of the observers without the nodes that ``--limit`` excludes, and those of
    ``nodes`` that it does not exclude. An excluded node stays in the settings if a ready observer that belongs to no
    run is on it, so that this observer is not removed.

    :param wanted: settings of the observers
    :param nodes: nodes that would need an observer without ``--limit``
    :param excluded: names of the nodes that ``--limit`` excludes
    :raises ApiError: the existing observers cannot be read
    """
    chosen = tuple(node for node in nodes if node not in excluded)
    if len(chosen) == len(nodes):
        return wanted, chosen
    out = [node for node in nodes if node in excluded]
    kept = () if wanted.run else judge(out, seen_in(cluster, wanted.namespace))
    stay = {item.node for item in kept if item.phase == "ready"}
    return dataclasses.replace(
        wanted, nodes=tuple(node for node in nodes if node not in excluded or node in stay)
    ), chosen


def own_image(cluster: Cluster, openshift: bool) -> str:
    """Return the tools image of an OpenShift cluster, with its digest, as image of the observers. Every release of
    OpenShift contains this image, and so does every mirror of a release.

    :param openshift: whether the cluster is OpenShift
    :raises RdmaError: the cluster is not OpenShift, or the image cannot be read
    :raises ApiError: the API server cannot be reached
    """
    remedy = (
        f"Run the same command with -e rdma_observers_image={PUBLIC_IMAGE}, which is a public image of NVIDIA, or with"
        " an image of your own: docs/observers.md lists the tools of each image"
    )
    if not openshift:
        raise RdmaError(
            "rdma_observers_image is not set, and the cluster is not OpenShift, which provides an image", remedy
        )
    try:
        return parse.image_of_tag(cluster.get("ImageStreamTag", "openshift", "tools:latest"))
    except ApiError as error:
        if error.status == 0:
            raise
        raise RdmaError(
            f"the observer image is unknown because the ImageStreamTag could not be read: {error.seen}",
            remedy,
        ) from error
