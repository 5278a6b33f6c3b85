# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the network of a job's pods: attachments, routes, devices, and the permission to pin memory."""

from __future__ import annotations

import collections
import typing

from ..._model.job.job import Replaced
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from ..._parse.kubernetes.quantity import quantity
from .scope import Scope, has_gpus, is_gpu


def check_networks(scope: Scope) -> typing.Iterator[Finding]:
    """Check that the pods have a secondary network whose NetworkAttachmentDefinition exists. Pods on the network of the
    node (hostNetwork) get a warning.
    """
    check, expected = "job.networks", "a secondary network that is there"
    template = scope.template
    if template.host_network:
        why = (
            "Pods on the node's own network need no attachment, and share ports and interfaces with everything on the"
            " node."
        )
        yield Finding(
            check,
            scope.subject,
            WARN,
            "hostNetwork",
            expected,
            why,
            "Use an attachment, unless the cluster's rules say otherwise.",
        )
        return
    if not template.networks and scope.claims_network:
        yield _check_claim(scope)
        return
    if not template.networks:
        pods = sum(
            item.count for item in scope.job.templates if any(has_gpus(container) for container in item.containers)
        )
        if pods < 2 and not scope.devices:
            yield ok(check, scope.subject, "none: it is one pod", "none")
            return
        why = (
            "Without the annotation k8s.v1.cni.cncf.io/networks a pod is only on the cluster's own network, where two"
            " nodes are often slower than one."
        )
        yield Finding(
            check,
            scope.subject,
            FAIL,
            "no annotation",
            expected,
            why,
            "Add the annotation to the pod template's metadata, not to the job's.",
        )
        return
    if scope.world is None:
        return
    names = {
        *(item.name for item in scope.world.attachments),
        *scope.world.others.get("NetworkAttachmentDefinition", ()),
    }
    for request, item in scope.attachments():
        subject = f"{scope.subject} {request.full_name}"
        if item is None:
            why = (
                "There is no NetworkAttachmentDefinition of this name: the pods would wait for ever in"
                " ContainerCreating."
            )
            hint = scope.hints.nearest(request.full_name, names)
            yield Finding(
                check,
                subject,
                FAIL,
                "absent",
                expected + hint,
                why,
                "Correct the name, or its namespace: without one the pod's own is meant.",
            )
        elif item.problem:
            yield Finding(
                check, subject, UNKNOWN, "not understood", expected, item.problem + ".", "Look at its spec.config."
            )
        else:
            yield ok(check, subject, " + ".join(item.kinds), expected)


def _check_claim(scope: Scope) -> Finding:
    """Judge the network of pods that have device claims and no network annotation. The status is unknown if no claim is
    known to provide a network device.
    """
    check, expected = "job.networks", "a secondary network that is there"
    names = ", ".join(sorted({item.name for container in scope.workers for item in container.device_claims}))
    if "network" in scope.claimed:
        return ok(check, scope.subject, f"devices of a network by claim: {names}", expected)
    why = (
        "Pods get a network by the annotation k8s.v1.cni.cncf.io/networks or by a claim. These have claims, and whether"
        " one is of a network is not known."
    )
    remedy = (
        "See job.device_claims; kubectl get deviceclasses -o yaml shows of which driver a class is, such as dra.net or"
        " sriovnetwork.k8snetworkplumbingwg.io."
    )
    return Finding(check, scope.subject, UNKNOWN, f"claims {names}", expected, why, remedy)


def check_routes(scope: Scope) -> typing.Iterator[Finding]:
    """Check that no secondary network takes the default route of the pods."""
    check, expected = "job.routes", "the cluster's own network keeps the default route"
    wrong = []
    for request, item in scope.attachments():
        if request.default_route or (item and item.default_route):
            place = (
                "The annotation asks for it"
                if request.default_route
                else "The attachment's ipam.routes hold it, and CNI adds it beside the cluster's"
            )
            why = (
                f"{place}. What is meant for the API server, DNS and the other pods would leave over a network that"
                " can't carry it."
            )
            remedy = (
                "Remove default-route."
                if request.default_route
                else "Remove the route to 0.0.0.0/0 (or ::/0) from the attachment."
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
    if scope.world is not None or wrong:
        yield from wrong or [ok(check, scope.subject, "no default route over a secondary network", expected)]


def check_devices(scope: Scope) -> typing.Iterator[Finding]:
    """Compare the extended resources that the pods request with their network attachments."""
    check, expected = "job.devices", "a device for each attachment"
    asked, used = (
        scope.devices,
        collections.Counter(item.resource for _request, item in scope.attachments() if item and item.resource),
    )
    wrong = []
    for name, count in sorted(used.items()):
        if asked.get(name, 0) < count:
            why = (
                f"{count} attachments take a device of it each. Only where the SR-IOV operator's injector runs is it"
                " added to the pod."
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
                    str(asked.get(name, 0)),
                    str(count),
                    why,
                    remedy,
                )
            )
    offered = {*(item.resource for item in scope.world.attachments), *scope.world.offered} if scope.world else set()
    for name, count in sorted(asked.items()):
        if name in offered and count > used.get(name, 0):
            why = (
                "The pods hold devices that no attachment brings into them: nobody else can have those, and the pods"
                " can't use them."
            )
            wrong.append(
                Finding(
                    check,
                    f"{scope.subject} {name}",
                    FAIL,
                    str(count),
                    str(used.get(name, 0)),
                    why,
                    "Name the attachment once for each device.",
                )
            )
    if not asked and not used and scope.template.networks and not scope.tcp and not scope.claims_network:
        why = (
            "No device plugin's resource is asked for, so /dev/infiniband is not in the pods: NCCL finds no HCA and"
            " sends over TCP."
        )
        remedy = "Ask for the network's resource, such as rdma/rdma_shared_device_eth: 1."
        for container in scope.workers:
            if container.replaced is not None and _collect_network_devices(container.replaced):
                why, remedy = _why_replaced(container.replaced, _collect_network_devices(container.replaced))
        wrong.append(Finding(check, scope.subject, FAIL, "no RDMA resource", expected, why, remedy))
    yield from wrong or [
        ok(
            check,
            scope.subject,
            ", ".join(f"{name}: {count}" for name, count in sorted(asked.items())) or "none",
            expected,
        )
    ]


def _collect_network_devices(replaced: Replaced) -> dict[str, str]:
    """Return the extended resources other than GPUs that a container requested before another object replaced its
    resources, with their amounts.
    """
    return {name: amount for name, amount in replaced.limits.items() if "/" in name and not is_gpu(name)}


def _list_replaced_resources(scope: Scope, name: str) -> typing.Iterator[tuple[Replaced, int]]:
    """Yield the replacements that removed a network resource from a container that computes, each with the removed
    amount.

    :param name: extended resource
    """
    for container in scope.workers:
        if (
            container.replaced is not None
            and name in _collect_network_devices(container.replaced)
            and name not in container.limits
        ):
            yield container.replaced, int(quantity(container.replaced.limits[name], name))


def _why_replaced(replaced: Replaced, devices: typing.Mapping[str, str]) -> tuple[str, str]:
    """Return the cause and the remedy for network resources that a container lost because another object replaced all
    its resources.

    :param devices: amounts of the lost resources, by name
    """
    names = ", ".join(f"{name}: {amount}" for name, amount in sorted(devices.items()))
    why = (
        f"{replaced.of} asks for {names}, and {replaced.by} replaces all of its resources, so the pods have no such"
        " device: NCCL sends over TCP."
    )
    return why, f"Add {names} to requests and limits in {replaced.by}."


def check_memlock(scope: Scope) -> Finding:
    """Check that the containers that compute may lock (pin) memory, which RDMA needs."""
    expected = "IPC_LOCK, or a memlock limit that is large enough"
    if scope.tcp or not (scope.template.networks or scope.devices or scope.claims_network):
        return ok("job.memlock", scope.subject, "no RDMA, so no memory to pin", expected)
    without = [
        item.name for item in scope.workers if not item.privileged and not {"IPC_LOCK", "ALL"} & set(item.capabilities)
    ]
    if without and not (scope.template.networks or scope.devices or "network" in scope.claimed):
        why = "Where a claim brings an RDMA device, pods must be able to pin memory; whether one does is not known."
        remedy = "See job.device_claims; or add IPC_LOCK to securityContext.capabilities.add of the container."
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
            "RDMA pins memory. With the usual limit of 64 KiB, ibv_reg_mr fails with 'Cannot allocate memory', and NCCL"
            " with it."
        )
        remedy = "Add IPC_LOCK to securityContext.capabilities.add of the container."
        return Finding(
            "job.memlock", scope.subject, FAIL, f"container {', '.join(without)} has no IPC_LOCK", expected, why, remedy
        )
    others = [item.name for item in scope.workers if not item.privileged and (item.non_root or item.user)]
    if others:
        why = (
            "A capability that is added is of use to root only; another user needs the limit of the container runtime."
        )
        remedy = "Raise memlock on the nodes (see stage platform), or run as root."
        return Finding(
            "job.memlock",
            scope.subject,
            WARN,
            f"container {', '.join(others)} does not run as root",
            expected,
            why,
            remedy,
        )
    return ok("job.memlock", scope.subject, "IPC_LOCK", expected)
