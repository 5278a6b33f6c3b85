# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the network of a job's pods: attachments, routes, devices, and the permission to pin memory."""

from __future__ import annotations

import collections
import typing

from ..._model.base.phrases import count_of
from ..._model.job.job import Replaced
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..._parse.kubernetes.quantity import parse_quantity
from .scope import LintedTemplate, has_gpus, is_gpu


def check_networks(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that the pods have a secondary network whose NetworkAttachmentDefinition exists.

    Pods on the network of the node (hostNetwork) get a warning. Without a cluster, attachments that the annotation
    names are not checked.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = "job.networks", "a secondary network that exists"
    template = scope.template
    if template.host_network:
        why = (
            "Pods on the network of the node need no attachment, but they share ports and interfaces with all programs"
            " on the node."
        )
        yield Finding(
            check,
            scope.subject,
            WARN,
            "network of the node (hostNetwork: true)",
            expected,
            why,
            (
                "Remove hostNetwork: true from the pod template, and add the annotation k8s.v1.cni.cncf.io/networks."
                " If the rules of the cluster require hostNetwork, waive this finding."
            ),
        )
        return
    if not template.networks and scope.claims_network:
        yield _check_claim(scope)
        return
    if not template.networks:
        if _count_pods_with_gpus(scope) < 2 and not scope.devices:
            yield build_pass(check, scope.subject, "none, because the job has one pod", "none")
            return
        why = (
            "Without the annotation k8s.v1.cni.cncf.io/networks, a pod has only the cluster's own network. On this"
            " network, two nodes are often slower than one node."
        )
        yield Finding(
            check,
            scope.subject,
            FAIL,
            "no annotation k8s.v1.cni.cncf.io/networks",
            expected,
            why,
            (
                "Add the annotation with the name of the network to metadata.annotations of the pod template, not of"
                " the job. kubectl get network-attachment-definitions -A lists the networks."
            ),
        )
        return
    if scope.surroundings is None:
        return
    names = scope.surroundings.attachment_names
    for request, item in scope.attachments():
        subject = f"{scope.subject} {request.full_name}"
        if item is None:
            why = "No NetworkAttachmentDefinition of this name exists, so the pods would stay in ContainerCreating."
            hint = scope.hints.nearest(request.full_name, names)
            yield Finding(
                check,
                subject,
                FAIL,
                "NetworkAttachmentDefinition does not exist",
                expected + hint,
                why,
                (
                    "Correct the name or the namespace in the annotation. A name without a namespace refers to the"
                    " namespace of the pod."
                ),
            )
        elif item.problem:
            yield Finding(
                check,
                subject,
                UNKNOWN,
                "plugins of the network not read from spec.config",
                "a spec.config with the plugins of the network",
                item.problem + ".",
                (
                    "Run kubectl get network-attachment-definitions -A -o yaml. If spec.config is empty on purpose,"
                    " multus reads the configuration from a file on each node (by default in /etc/cni/multus/net.d):"
                    " check that the file exists on the nodes of the job, and waive this finding. Otherwise ask the"
                    " owner of the NetworkAttachmentDefinition to correct spec.config, or run stage network again if"
                    " this stage created the object."
                ),
            )
        else:
            yield build_pass(check, subject, " + ".join(item.kinds), expected)


def _count_pods_with_gpus(scope: LintedTemplate) -> int:
    return sum(item.count for item in scope.job.templates if any(has_gpus(container) for container in item.containers))


def _check_claim(scope: LintedTemplate) -> Finding:
    """Judge the network of pods that have device claims and no network annotation. The status is unknown if no claim is
    known to provide a network device.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = "job.networks", "a secondary network that exists"
    names = ", ".join(sorted({item.name for container in scope.workers for item in container.device_claims}))
    if "network" in scope.claimed:
        return build_pass(check, scope.subject, f"network devices from claims: {names}", expected)
    why = (
        "The pods have no annotation k8s.v1.cni.cncf.io/networks, and job_lint does not know whether one of their"
        " claims provides a network device."
    )
    remedy = (
        "Run kubectl get deviceclasses -o yaml: the driver of a class for network devices is, for example, dra.net or"
        " sriovnetwork.k8snetworkplumbingwg.io. If one of the claims has such a class, waive this finding. Otherwise"
        " add the annotation to the pod template."
    )
    return Finding(check, scope.subject, UNKNOWN, f"claims {names}", expected, why, remedy)


def check_routes(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that no secondary network sets a default route of the pods, by ``default-route`` in the annotation or by
    ``ipam.routes`` of the attachment.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = "job.routes", "no default route over a secondary network"
    wrong = []
    for request, item in scope.attachments():
        if request.default_route or (item and item.default_route):
            place = (
                "The annotation requests a default route"
                if request.default_route
                else "The attachment has a default route in ipam.routes, and CNI adds it to the default route of"
                " the cluster"
            )
            why = (
                f"{place}. Packets to the API server, DNS and the other pods would leave over a network that cannot"
                " carry them."
            )
            remedy = (
                "Remove default-route from the annotation."
                if request.default_route
                else (
                    "Ask the owner of the NetworkAttachmentDefinition to remove the route to 0.0.0.0/0 (or ::/0)"
                    " from ipam.routes."
                )
            )
            wrong.append(
                Finding(
                    check,
                    f"{scope.subject} {request.full_name}",
                    FAIL,
                    "default route over " + request.interface,
                    expected,
                    why,
                    remedy,
                )
            )
    if scope.surroundings is not None or wrong:
        yield from wrong or [build_pass(check, scope.subject, "no default route over a secondary network", expected)]


def check_devices(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that the pods request as many devices of each extended resource as they have network attachments that use
    this resource, and no devices without an attachment.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = "job.devices", "a device for each attachment"
    asked, used = (
        scope.devices,
        collections.Counter(item.resource for _request, item in scope.attachments() if item and item.resource),
    )
    wrong = []
    for name, count in sorted(used.items()):
        if asked.get(name, 0) < count:
            why = (
                "The pod needs one device of this resource for each attachment. Only the injector of the SR-IOV"
                " operator adds the resource to the pod, if it runs."
            )
            remedy = f"Add {name}: {count} to requests and limits."
            for replaced, amount in _list_replaced_resources(scope, name):
                if amount >= count:
                    why, remedy = _why_replaced(replaced, {name: str(amount)})
            wrong.append(
                Finding(
                    check,
                    f"{scope.subject} {name}",
                    WARN if name not in asked else FAIL,
                    f"{count_of(asked.get(name, 0), 'device')} requested",
                    f"{count_of(count, 'device')} requested, one for each attachment",
                    why,
                    remedy,
                )
            )
    offered = scope.surroundings.attachment_resources if scope.surroundings else frozenset()
    for name, count in sorted(asked.items()):
        if name in offered and count > used.get(name, 0):
            why = (
                "The pods request devices that no attachment brings into them. The pods cannot use these devices, and"
                " other pods cannot get them."
            )
            wrong.append(
                Finding(
                    check,
                    f"{scope.subject} {name}",
                    FAIL,
                    f"{count_of(count, 'device')} requested",
                    f"{count_of(used.get(name, 0), 'device')} requested, one for each attachment",
                    why,
                    "Name the attachment in the annotation once for each device, or request fewer devices.",
                )
            )
    on_node = scope.template.host_network and _count_pods_with_gpus(scope) > 1
    if not asked and not used and (scope.template.networks or on_node) and not scope.tcp and not scope.claims_network:
        if all(container.privileged for container in scope.workers):
            yield _check_privileged(scope)
            return
        why = (
            "The containers request no resource of a device plugin, so the pods have no /dev/infiniband. NCCL finds no"
            " HCA and sends over TCP."
        )
        remedy = "Request the resource of the network in requests and limits, such as rdma/rdma_shared_device_eth: 1."
        for container in scope.workers:
            if container.replaced is not None and _collect_network_devices(container.replaced):
                why, remedy = _why_replaced(container.replaced, _collect_network_devices(container.replaced))
        wrong.append(Finding(check, scope.subject, FAIL, "no RDMA resource", expected, why, remedy))
    yield from wrong or [
        build_pass(
            check,
            scope.subject,
            ", ".join(f"{name}: {count}" for name, count in sorted(asked.items())) or "none",
            expected,
        )
    ]


def _check_privileged(scope: LintedTemplate) -> Finding:
    """Judge privileged containers without an RDMA resource, which can open each device of the node.

    With hostNetwork they can use the RDMA devices, so the finding passes. On a network of their own they can use them
    only if the RDMA subsystem is in shared mode. This is not known here, so the status is ``unknown``.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, measured = "job.devices", "no RDMA resource, privileged containers"
    if scope.template.host_network:
        return build_pass(check, scope.subject, f"{measured}: each RDMA device of the node", "an RDMA device")
    why = (
        "Privileged containers can open each RDMA device of the node, but no device belongs to the pod. In the"
        " exclusive mode of the RDMA subsystem, the pod sees none of these devices, and NCCL sends over TCP."
    )
    remedy = (
        "Request the resource of the network in requests and limits, such as rdma/rdma_shared_device_eth: 1. If rdma"
        " system show prints 'netns shared' on each node, you can waive this finding instead."
    )
    return Finding(check, scope.subject, UNKNOWN, measured, "a device for each attachment", why, remedy)


def _collect_network_devices(replaced: Replaced) -> dict[str, str]:
    """Return the amount of each extended resource, other than GPUs, that a container requested before another object
    replaced its resources, by name.

    :param replaced: resources of the container before another object replaced them
    """
    return {name: amount for name, amount in replaced.limits.items() if "/" in name and not is_gpu(name)}


def _list_replaced_resources(scope: LintedTemplate, name: str) -> typing.Iterator[tuple[Replaced, int]]:
    """Yield the replacements that removed a network resource from a container that computes, each with the removed
    amount.

    :param scope: pod template of a job, and the cluster in which it would run
    :param name: extended resource
    """
    for container in scope.workers:
        if (
            container.replaced is not None
            and name in _collect_network_devices(container.replaced)
            and name not in container.limits
        ):
            yield container.replaced, int(parse_quantity(container.replaced.limits[name], name))


def _why_replaced(replaced: Replaced, devices: typing.Mapping[str, str]) -> tuple[str, str]:
    """Return the cause and the remedy for network resources that a container lost because another object replaced all
    its resources.

    :param replaced: resources of the container before another object replaced them
    :param devices: amounts of the lost resources, by name
    """
    names = ", ".join(f"{name}: {amount}" for name, amount in sorted(devices.items()))
    why = (
        f"{replaced.of} requests {names}, but {replaced.by} replaces all of its resources. The pods do not get these"
        " devices, so NCCL sends over TCP."
    )
    return why, f"Add {names} to requests and limits in {replaced.by}."


def check_memlock(scope: LintedTemplate) -> Finding:
    """Check that the containers that compute may lock (pin) memory, which RDMA needs: by IPC_LOCK, or by a memlock
    limit that is large enough.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    expected = "root with IPC_LOCK, or a memlock limit of at least the memory that the job registers"
    if scope.tcp or not (scope.template.networks or scope.devices or scope.claims_network):
        return build_pass("job.memlock", scope.subject, "no RDMA, so no memory to pin", expected)
    without = [
        item.name for item in scope.workers if not item.privileged and not {"IPC_LOCK", "ALL"} & set(item.capabilities)
    ]
    if without and not (scope.template.networks or scope.devices or "network" in scope.claimed):
        why = (
            "If a claim provides an RDMA device, the pods must be able to pin memory. job_lint does not know whether"
            " one of the claims does."
        )
        remedy = (
            "Add IPC_LOCK to securityContext.capabilities.add of the container. If no claim provides an RDMA device"
            " (kubectl get deviceclasses -o yaml), waive this finding."
        )
        return Finding(
            "job.memlock",
            scope.subject,
            UNKNOWN,
            f"container {', '.join(without)} has no IPC_LOCK",
            expected,
            why,
            remedy,
        )
    if without:
        why = (
            "RDMA pins memory. Without IPC_LOCK, the memlock limit of the container runtime applies. job_lint does not"
            " read it. With the usual limit of 64 KiB, ibv_reg_mr fails with 'Cannot allocate memory', so NCCL fails."
        )
        remedy = (
            "Add IPC_LOCK to securityContext.capabilities.add of the container. Or set rdma_cluster.host.memlock, run"
            " stages network and host again, and waive this finding after host.memlock passes on the nodes of the job."
        )
        measured = f"container {', '.join(without)} has no IPC_LOCK, memlock limit not read"
        return Finding("job.memlock", scope.subject, UNKNOWN, measured, expected, why, remedy)
    others = [item.name for item in scope.workers if not item.privileged and (item.non_root or item.user)]
    if others:
        why = (
            "The container does not run as root, so IPC_LOCK has no effect, and the memlock limit of the container"
            " runtime applies. job_lint does not read it. With the usual limit of 64 KiB, ibv_reg_mr fails with 'Cannot"
            " allocate memory', so NCCL fails."
        )
        remedy = (
            "Set rdma_cluster.host.memlock.limit_gib to at least the buffers of NCCL plus the pinned memory of the"
            " framework, run stages network and host again, and waive this finding after host.memlock passes on the"
            " nodes of the job. Or run the container as root: remove runAsNonRoot, and set securityContext.runAsUser:"
            " 0."
        )
        return Finding(
            "job.memlock",
            scope.subject,
            WARN,
            f"IPC_LOCK without root in container {', '.join(others)}; memlock limit not read",
            expected,
            why,
            remedy,
        )
    return build_pass("job.memlock", scope.subject, "IPC_LOCK", expected)
