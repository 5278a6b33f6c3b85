# SPDX-License-Identifier: GPL-3.0-or-later

"""Check ``rdma_cluster`` of the intent. Check id: ``validate.cluster``."""

from __future__ import annotations

import re
import typing

from ..._model.base.load_error import suggest_nearest
from ..._model.base.phrases import count_of
from ..._model.base.rules import run_rules
from ..._model.intent.intent import ClusterIntent, Intent
from ..._model.intent.mirror import EVERYTHING
from ..._model.intent.profiles import carries_rdma, find_traits
from ..._model.run.findings import Finding, build_pass
from .refusal import refuse_value

# RFC 1123 label: what Kubernetes takes as the name of an object and of a namespace
_RELEASE = re.compile(r"v\d+\.\d+\.\d+(-[a-z]+\.\d+)?", re.ASCII)
# a host with a dot, a port, or localhost, as in the name of an image; and what is below it
_PLACE = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+(?=:))(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", re.ASCII
)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def check_cluster(intent: Intent) -> list[Finding]:
    """Check that the settings in ``rdma_cluster`` are valid and do not contradict each other, including those for the
    training job."""
    cluster = intent.cluster
    findings = run_rules(
        (
            _check_node_selector,
            _check_nodes_expected,
            _check_wait_seconds,
            _check_node_pool,
            _look_at_firmware,
            _check_operator_release,
            _check_operator_namespace,
            _check_mirror,
        ),
        cluster,
    )
    findings += run_rules(
        (_check_training_fabric, _check_training_ranks, _check_training_interfaces, _check_functions_of_firmware),
        intent,
    )
    return findings or [
        build_pass(
            "validate.cluster",
            "rdma_cluster",
            f"operator in {cluster.operator_namespace or 'the namespace that is seen'}",
            "usable values",
        )
    ]


def _check_node_selector(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if not cluster.node_selector:
        why = (
            "An empty selector selects every node of the cluster, including the control plane. The operator drains and"
            " reboots the nodes that the selector selects."
        )
        remedy = (
            "Set rdma_cluster.node_selector to a label that only RDMA nodes have, or remove the key to use the default."
        )
        yield refuse_value("cluster", "rdma_cluster.node_selector", "no label", "at least 1 label", why, remedy)


def _check_nodes_expected(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.nodes_expected is not None and cluster.nodes_expected < 1:
        why = "Any number of nodes would satisfy this value, so the run would not report a missing node."
        expected, remedy = (
            "at least 1 node",
            "Set rdma_cluster.nodes_expected to the number of nodes in use, or remove the key.",
        )
        yield refuse_value(
            "cluster", "rdma_cluster.nodes_expected", count_of(cluster.nodes_expected, "node"), expected, why, remedy
        )


def _check_wait_seconds(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.wait_seconds < 1:
        yield refuse_value(
            "cluster",
            "rdma_cluster.wait_seconds",
            f"{cluster.wait_seconds} s",
            "at least 1 s",
            "With this limit, the run would not wait at all, but no object in the cluster is ready immediately.",
            "Set rdma_cluster.wait_seconds to the seconds that the slowest node needs, or remove the key.",
        )


def _check_node_pool(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.node_pool is not None and cluster.node_pool.max_unavailable < 1:
        why = (
            "With 0 nodes at a time, the SR-IOV operator would never drain and configure a node, and the run"
            " would wait until its time limit."
        )
        expected = "at least 1 node"
        yield refuse_value(
            "cluster",
            "rdma_cluster.node_pool.max_unavailable",
            count_of(cluster.node_pool.max_unavailable, "node"),
            expected,
            why,
            "Set rdma_cluster.node_pool.max_unavailable to the number of nodes that may be drained at once.",
        )


def _look_at_firmware(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    for key, value, least in (
        ("num_of_vfs", cluster.firmware.num_of_vfs, 1),
        ("max_acc_out_read", cluster.firmware.max_acc_out_read, 0),
    ):
        if value is not None and value < least:
            why = f"The firmware of the HCA rejects {key} below {least}."
            yield refuse_value(
                "cluster",
                f"rdma_cluster.firmware.{key}",
                str(value),
                f"at least {least}",
                why,
                f"Set rdma_cluster.firmware.{key} to at least {least}, or remove the key.",
            )


def _check_functions_of_firmware(intent: Intent) -> typing.Iterator[Finding]:
    """The plugin ``mellanox`` of the SR-IOV operator writes the number of virtual functions of the policy to NUM_OF_VFS
    at each start of its daemon, and reboots the node for it. [sriov-network-operator pkg/vendors/mellanox/mellanox.go
    HandleTotalVfs; network-operator-docs nic-fw-configuration.rst]
    """
    number = intent.cluster.firmware.num_of_vfs or 0
    fewer = [one for one in intent.fabrics if find_traits(one).functions and one.virtual_functions < number]
    if fewer:
        yield refuse_value(
            "cluster",
            "rdma_cluster.firmware.num_of_vfs",
            str(number),
            f"at most {fewer[0].virtual_functions}, the virtual_functions of fabric {fewer[0].name}",
            "The SR-IOV operator writes virtual_functions of the fabric into the firmware (NUM_OF_VFS) whenever its"
            " config daemon starts, and reboots the node. The operator and this run would overwrite the value of"
            " the other, with a reboot each time.",
            "Remove rdma_cluster.firmware.num_of_vfs. If disablePlugins of the SriovOperatorConfig contains mellanox,"
            " waive the check validate.cluster for this subject with that reason.",
        )


def _check_operator_release(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if not _RELEASE.fullmatch(cluster.network_operator.version):
        why = (
            "The image tags of NVIDIA's network operator are its release names, and no release has a name of this form."
        )
        seen = f"'{cluster.network_operator.version}'"
        remedy = "Set rdma_cluster.network_operator.version to a release that the release notes of the operator list."
        yield refuse_value(
            "cluster", "rdma_cluster.network_operator.version", seen, "a release, such as v26.4.1", why, remedy
        )


def _check_operator_namespace(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.operator_namespace is not None and not _LABEL.fullmatch(cluster.operator_namespace):
        why = "This is not a valid name of a namespace, and the API server would reject it."
        expected = "lower-case letters, digits and hyphens"
        yield refuse_value(
            "cluster",
            "rdma_cluster.operator_namespace",
            f"'{cluster.operator_namespace}'",
            expected,
            why,
            "Set rdma_cluster.operator_namespace to the namespace of the operator, or remove the key.",
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
        why = "The run puts this value at the start of the image names, and it is not a valid name of a registry."
        remedy = (
            "Set rdma_cluster.mirror to the host of the registry, its port, and a path in lower case, without https://"
            " and a trailing slash."
        )
        yield refuse_value(
            "cluster",
            "rdma_cluster.mirror",
            ", ".join(f"'{place}'" for place in wrong[:5]),
            "a registry, such as registry.example:5000/mirror",
            why,
            remedy,
        )


def _check_training_fabric(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is None or training.fabric is None:
        return
    names = [fabric.name for fabric in intent.fabrics]
    if training.fabric not in names:
        expected = f"one of: {', '.join(names)}{suggest_nearest(training.fabric, names)}"
        why = "The training job must use the HCAs of this fabric, but no fabric in rdma_fabrics has this name."
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.fabric",
            f"'{training.fabric}'",
            expected,
            why,
            "Set rdma_cluster.training.fabric to the name of a fabric in rdma_fabrics.",
        )


def _check_training_ranks(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is not None and training.ranks is not None and training.ranks < 2:
        why = "A job with one rank uses no network, so its log cannot verify the network."
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.ranks",
            count_of(training.ranks, "rank"),
            "at least 2 ranks",
            why,
            "Set rdma_cluster.training.ranks to the number of ranks of the job, or remove the key.",
        )
    if training is not None and training.ranks is not None and training.library == "ucx":
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.ranks",
            f"{training.ranks} with library: ucx",
            "no number of ranks with library: ucx",
            "The UCX log does not contain ranks, so the number cannot be compared with the log.",
            (
                "Remove rdma_cluster.training.ranks. With UCX, the log of each pod of the job on the network must"
                " contain an endpoint line."
            ),
        )


def _check_training_interfaces(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is None or training.interfaces is None:
        return
    chosen = [fabric for fabric in intent.fabrics if training.fabric in (None, fabric.name) and carries_rdma(fabric)]
    most = max((fabric.select.hcas_per_node for fabric in chosen), default=1)
    if not 1 <= training.interfaces <= most:
        yield refuse_value(
            "cluster",
            "rdma_cluster.training.interfaces",
            count_of(training.interfaces, "rail"),
            f"1 to {count_of(most, 'rail')}, the HCAs of a node",
            "A pod of the job gets at least one rail, and no more than its node has.",
            "Set rdma_cluster.training.interfaces to the value of rdma_job.interfaces, or remove the key.",
        )
