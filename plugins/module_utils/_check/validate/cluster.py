# SPDX-License-Identifier: GPL-3.0-or-later

"""Check ``rdma_cluster`` of the intent. Check id: ``validate.cluster``."""

from __future__ import annotations

import re
import typing

from ..._model.base.load_error import nearest
from ..._model.base.rules import run_rules
from ..._model.intent.intent import ClusterIntent, Intent
from ..._model.intent.mirror import EVERYTHING
from ..._model.run.findings import Finding, ok
from .refusal import refuse_value

# RFC 1123 label: what Kubernetes takes as the name of an object and of a namespace
_RELEASE = re.compile(r"v\d+\.\d+\.\d+(-[a-z]+\.\d+)?", re.ASCII)
# a host with a dot, a port, or localhost, as in the name of an image; and what is below it
_PLACE = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+(?=:))(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", re.ASCII
)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def check_cluster(intent: Intent) -> list[Finding]:
    """Check ``rdma_cluster``, including its settings for the training job."""
    cluster = intent.cluster
    findings = run_rules(
        (
            _check_node_selector,
            _check_nodes_expected,
            _check_wait_seconds,
            _check_node_pool,
            _look_at_firmware,
            _check_operator_release,
            _check_driver,
            _check_operator_namespace,
            _check_mirror,
        ),
        cluster,
    )
    findings += run_rules((_check_training_fabric, _check_training_ranks), intent)
    return findings or [
        ok(
            "validate.cluster",
            "rdma_cluster",
            f"operator in {cluster.operator_namespace or 'the namespace that is seen'}",
            "usable values",
        )
    ]


def _check_node_selector(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if not cluster.node_selector:
        why = (
            "An empty selector takes every node of the cluster, control plane included, and the operator drains and"
            " reboots what it takes."
        )
        remedy = "Name a label that only RDMA nodes have, or remove the key for the default."
        yield refuse_value("cluster", "rdma_cluster.node_selector", "no label", "one label at least", why, remedy)


def _check_nodes_expected(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.nodes_expected is not None and cluster.nodes_expected < 1:
        why = "Any number of nodes would be enough, so that a node that is missing has no finding."
        expected, remedy = "1 node at least", "Count the nodes that take part, or remove the key."
        yield refuse_value("cluster", "rdma_cluster.nodes_expected", str(cluster.nodes_expected), expected, why, remedy)


def _check_wait_seconds(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.wait_seconds < 1:
        yield refuse_value(
            "cluster",
            "rdma_cluster.wait_seconds",
            f"{cluster.wait_seconds} s",
            "1 s at least",
            "Nothing is ready at once.",
            "Correct it.",
        )


def _check_node_pool(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.node_pool is not None and cluster.node_pool.max_unavailable < 1:
        why = "No node would ever get its turn, and the wait would end with its time."
        expected = "1 node at least"
        yield refuse_value(
            "cluster",
            "rdma_cluster.node_pool.max_unavailable",
            str(cluster.node_pool.max_unavailable),
            expected,
            why,
            "Correct it.",
        )


def _look_at_firmware(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    for key, value, least in (
        ("num_of_vfs", cluster.firmware.num_of_vfs, 1),
        ("max_acc_out_read", cluster.firmware.max_acc_out_read, 0),
    ):
        if value is not None and value < least:
            why = "No firmware takes such a number."
            yield refuse_value(
                "cluster",
                f"rdma_cluster.firmware.{key}",
                str(value),
                f"{least} at least",
                why,
                "Correct it, or remove the key.",
            )


def _check_operator_release(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if not _RELEASE.fullmatch(cluster.network_operator.version):
        why = "Images of NVIDIA's network operator are named after its releases, and there would be none of this name."
        seen = f"'{cluster.network_operator.version}'"
        remedy = "Copy it out of the operator's release notes."
        yield refuse_value(
            "cluster", "rdma_cluster.network_operator.version", seen, "a release, such as v26.4.1", why, remedy
        )


def _check_driver(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.network_operator.ofed_driver is not None and cluster.disruption == "none":
        why = (
            "A driver that is loaded anew takes the RDMA devices from all pods of the node, so the operator drains it."
        )
        remedy = "Allow drains in rdma_cluster.disruption, or leave the driver to the nodes."
        expected = "no driver with disruption: none"
        yield refuse_value(
            "cluster",
            "rdma_cluster.network_operator.ofed_driver",
            cluster.network_operator.ofed_driver,
            expected,
            why,
            remedy,
        )


def _check_operator_namespace(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.operator_namespace is not None and not _LABEL.fullmatch(cluster.operator_namespace):
        why = "It is the name of a namespace, and the API server knows no such one."
        expected = "lower-case letters, digits and hyphens"
        yield refuse_value(
            "cluster",
            "rdma_cluster.operator_namespace",
            f"'{cluster.operator_namespace}'",
            expected,
            why,
            "Correct the name.",
        )


def _check_mirror(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    wrong = [
        place
        for source, place in cluster.mirror.items()
        for place in (source, place)
        if place != EVERYTHING and not _PLACE.fullmatch(place)
    ]
    wrong += [place for place in cluster.mirror.values() if place == EVERYTHING]
    if wrong:
        why = "A name of an image is made of it, and no registry has one of this form."
        remedy = (
            "Write the registry's host, its port, and a path in lower case, without https:// and without a slash at the"
            " end."
        )
        yield refuse_value(
            "cluster",
            "rdma_cluster.mirror",
            ", ".join(f"'{place}'" for place in wrong[:5]),
            "such as registry.example:5000/mirror",
            why,
            remedy,
        )


def _check_training_fabric(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is None or training.fabric is None:
        return
    names = [fabric.name for fabric in intent.fabrics]
    if training.fabric not in names:
        expected = f"one of: {', '.join(names)}{nearest(training.fabric, names)}"
        why = "The HCAs of this fabric are those that the job must use."
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.fabric",
            f"'{training.fabric}'",
            expected,
            why,
            "Name a fabric of rdma_fabrics.",
        )


def _check_training_ranks(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is not None and training.ranks is not None and training.ranks < 2:
        why = "A job of one rank uses no network, so its log proves nothing."
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.ranks",
            str(training.ranks),
            "2 ranks at least",
            why,
            "Correct the number.",
        )
    if training is not None and training.ranks is not None and training.library == "ucx":
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.ranks",
            f"{training.ranks} with library: ucx",
            "no number of ranks with library: ucx",
            "UCX writes no ranks, so nothing in its log can be held against the number.",
            "Take ranks out. Each pod of the job that is on the network must have a line of an endpoint.",
        )
