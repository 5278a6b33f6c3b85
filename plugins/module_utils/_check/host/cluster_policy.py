# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the GPU operator loads nvidia-peermem: by its ClusterPolicy, or by the objects of kind NVIDIADriver if the
ClusterPolicy leaves the driver to them. Check id: ``host.cluster_policy``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.kubernetes.host import ClusterPolicies, DriverOfNodes
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

_EXPECTED = "spec.rdma.enabled: true, state ready"


def check(
    policies: typing.Optional[ClusterPolicies], nodes: typing.Collection[str], loaded: bool, check_mode: bool
) -> typing.Iterator[Finding]:
    """Yield the findings on the objects by which the GPU operator configures the driver: on each NVIDIADriver of nodes
    of the inventory if the ClusterPolicy leaves the driver to such objects, else on the ClusterPolicy.

    :param policies: answer of cluster_policy; None if it did not run
    :param nodes: names of the nodes of the inventory
    :param loaded: whether all nodes of the inventory passed ``host.gpudirect``
    :param check_mode: whether the run is in check mode, in which nothing is changed
    """
    if policies is None or not policies.delegated:
        yield _check_policy(policies, loaded, check_mode)
        return
    subject = f"ClusterPolicy {policies.names[0]}"
    delegates = (
        "spec.driver.useNvidiaDriverCRD of the ClusterPolicy is true, so the GPU operator ignores driver.rdma.enabled"
        " there, and objects of kind NVIDIADriver configure the driver."
    )
    if policies.error:
        yield Finding(
            "host.cluster_policy",
            subject,
            UNKNOWN,
            "NVIDIADrivers not read",
            f"an NVIDIADriver of the nodes: {_EXPECTED}",
            f"{delegates} They were not read: {format_clause(policies.error)}.",
            (
                "If the error contains 'forbidden', an admin of the cluster must give the user of the kubeconfig the"
                " rights: kubectl apply -f docs/rbac/look.yml. Otherwise correct the error. Then run stage host"
                " again."
            ),
        )
        return
    mine = [item for item in policies.drivers if item.nodes is None or not set(item.nodes).isdisjoint(nodes)]
    if not mine:
        others = join_first([item.name for item in policies.drivers]) or "the cluster has none"
        yield Finding(
            "host.cluster_policy",
            subject,
            FAIL,
            "no NVIDIADriver selects a node of the inventory",
            f"an NVIDIADriver of the nodes: {_EXPECTED}",
            f"{delegates} The nodeSelector of no NVIDIADriver ({others}) matches a node of the inventory.",
            "Create an NVIDIADriver with spec.rdma.enabled: true and a spec.nodeSelector that matches the nodes"
            " (kubectl get nodes --show-labels), then run stage host again.",
        )
    for item in mine:
        yield _check_driver(item, delegates, nodes, loaded)


def _check_driver(item: DriverOfNodes, delegates: str, nodes: typing.Collection[str], loaded: bool) -> Finding:
    """Check that an NVIDIADriver that selects nodes of the inventory loads nvidia-peermem and is ready.

    :param item: the NVIDIADriver with the nodes that it selects
    :param delegates: sentence that the ClusterPolicy leaves the driver to such objects, for the cause
    :param nodes: names of the nodes of the inventory
    :param loaded: whether all nodes of the inventory passed ``host.gpudirect``
    """
    check_id, subject = "host.cluster_policy", f"NVIDIADriver {item.name}"
    measured = f"spec.rdma.enabled: {str(item.rdma).lower()}, state {item.state or 'not set yet'}"
    if not item.rdma:
        of_whom = (
            f"It selects {join_first(sorted(set(item.nodes) & set(nodes)))}"
            if item.nodes is not None
            else "Which nodes it selects is not known, because the nodes were not read"
        )
        patch = """--type merge -p '{"spec":{"rdma":{"enabled":true}}}'"""
        return Finding(
            check_id,
            subject,
            FAIL if item.nodes is not None else UNKNOWN,
            measured,
            _EXPECTED,
            f"{delegates} This one does not load nvidia-peermem, and no run changes it. {of_whom}.",
            "When the pods with GPUs may be evicted, run kubectl patch nvidiadrivers.nvidia.com"
            f" {item.name} {patch}. Then run stages platform and host again.",
        )
    if item.state != "ready":
        return Finding(
            check_id,
            subject,
            WARN if loaded and item.state == "notReady" else UNKNOWN,
            measured,
            _EXPECTED,
            f"The GPU operator has not finished: the NVIDIADriver reports {item.state or 'no state'}."
            f"{' The nodes of the inventory meet the requirement.' if loaded else ''}",
            "Run kubectl get pods -n gpu-operator -o wide to find the driver pod that is not ready. Run kubectl"
            " describe pod -n gpu-operator with its name, and correct the cause that its events show. Then run"
            " stages platform and host again.",
        )
    return build_pass(check_id, subject, measured, _EXPECTED)


def _check_policy(policies: typing.Optional[ClusterPolicies], loaded: bool, check_mode: bool) -> Finding:
    """Check that exactly one ClusterPolicy of the GPU operator exists, that it enables ``driver.rdma`` to load
    nvidia-peermem, and that it is ready.

    :param policies: answer of cluster_policy; None if it did not run
    :param loaded: whether all nodes of the inventory passed ``host.gpudirect``
    :param check_mode: whether the run is in check mode, in which nothing is changed
    """
    seen, expected = (
        policies or ClusterPolicies(error="the module cluster_policy did not run"),
        "1 ClusterPolicy: driver.rdma.enabled: true, state ready",
    )
    subject = f"ClusterPolicy {seen.names[0]}" if len(seen.names) == 1 else "ClusterPolicy"
    if seen.error:
        why = f"The ClusterPolicy was not {'changed' if seen.names else 'read'}: {format_clause(seen.error)}."
        remedy = (
            "Look for a failed task before cluster_policy in the output of the playbook, and correct its cause. Then"
            " run stage host again."
        )
        if policies is not None:
            remedy = (
                "If the error under 'why' names nodes or a command, follow it. If it names another tool that"
                " owns the field, such as Helm, set driver.rdma.enabled: true in that tool. If it contains"
                " 'forbidden', an admin of the cluster must run kubectl apply -f docs/rbac/peermem.yml. Then run"
                " stage host again."
            )
        return Finding(
            "host.cluster_policy",
            subject,
            FAIL if seen.names else UNKNOWN,
            "driver.rdma.enabled: not changed by this run" if seen.names else "ClusterPolicy not read",
            expected,
            why,
            remedy,
        )
    if len(seen.names) != 1:
        why = (
            "The cluster has no ClusterPolicy. Without it, the GPU operator installs nothing, and nvidia-peermem is not"
            " loaded."
            if not seen.names
            else f"The GPU operator uses one ClusterPolicy and ignores the others: {', '.join(seen.names)}."
        )
        remedy = (
            (
                "Install the GPU operator, whose Helm chart creates the ClusterPolicy: helm install"
                " --create-namespace -n gpu-operator --repo https://helm.ngc.nvidia.com/nvidia gpu-operator"
                " gpu-operator --set driver.rdma.enabled=true. Then run stage host again."
            )
            if not seen.names
            else (
                "Run kubectl get clusterpolicies.nvidia.com to list their states. Delete each one in state ignored"
                " (kubectl delete clusterpolicies.nvidia.com NAME), and keep the one that the operator uses. Then"
                " run stage host again."
            )
        )
        return Finding(
            "host.cluster_policy", subject, FAIL, f"{len(seen.names)} ClusterPolicies", expected, why, remedy
        )
    measured = f"driver.rdma.enabled: {str(seen.rdma).lower()}, state {seen.state or 'not set yet'}"
    if seen.changed and check_mode:
        why = (
            "Check mode: a run without check mode would set driver.rdma.enabled: true, and the operator would then"
            " load nvidia-peermem."
        )
        return Finding(
            "host.cluster_policy", subject, UNKNOWN, measured, expected, why, "Run stage host again, without --check."
        )
    if loaded and not seen.changed and seen.rdma and seen.state == "notReady":
        why = (
            "The GPU operator has not finished on all nodes of the cluster. The nodes of the inventory meet the"
            " requirement."
        )
        return Finding(
            "host.cluster_policy",
            subject,
            WARN,
            measured,
            expected,
            why,
            "Run kubectl get pods -n gpu-operator -o wide to find the pod that is not ready. Run kubectl"
            " describe pod -n gpu-operator with its name, and correct the cause that its events show. Then run"
            " stage host again.",
        )
    if seen.changed or seen.state != "ready":
        why = (
            "This run has just set driver.rdma.enabled: true, so the GPU operator recreates the driver pods."
            if seen.changed
            else f"The GPU operator has not finished: the ClusterPolicy reports {seen.state or 'no state'}."
        )
        remedy = (
            "Wait until kubectl get clusterpolicies.nvidia.com shows the state ready, then run stages platform and"
            " host again."
        )
        if seen.changed:
            measured = (
                f"driver.rdma.enabled: {str(seen.rdma).lower()} (set by this run), state before it"
                f" {seen.state or 'not set yet'}"
            )
        return Finding("host.cluster_policy", subject, UNKNOWN, measured, expected, why, remedy)
    if not seen.rdma:
        why = (
            "This run did not set driver.rdma.enabled to true, or another tool set it back. The GPU operator does not"
            " load nvidia-peermem."
        )
        return Finding(
            "host.cluster_policy",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Run stage host again. If the value is false again, set driver.rdma.enabled: true in the tool that manages"
            " the ClusterPolicy, such as Helm.",
        )
    return build_pass("host.cluster_policy", subject, measured, expected)
