# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the device claims of a job's pods (Dynamic Resource Allocation): the devices that they provide, and whether the
cluster can allocate them. Check id: ``job.device_claims``.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.phrases import count_of
from ...._model.base.text import join_first
from ...._model.job.job import PodTemplate
from ...._model.kubernetes.device_claims import MOST_OF_NODE, DeviceClaim, DeviceClaims, DeviceRequest, PodClaim
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..scope import LintedTemplate
from .known_claims import list_uses
from .rdma import check_rdma
from .selectors import check_selectors, check_totals

_CHECK, _EXPECTED = "job.device_claims", "claims that exist, of classes that exist, each used by a container"


def check_device_claims(scope: LintedTemplate, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Check the device claims of a pod template: each claim exists, its DeviceClasses exist, enough nodes offer the
    devices, and each claim is used by a container. A pod without claims passes.

    :param scope: pod template of a job, and the cluster in which it would run
    :param known: ResourceClaims and DeviceClasses from the file and from the cluster
    """
    template = scope.template
    names = {claim.name for claim in template.device_claims}
    every = [taken for item in (*template.containers, *template.init_containers) for taken in item.device_claims]
    taken = {item.name for item in every}
    wrong = [*_report_not_of_pod(scope, sorted(taken - names)), *_report_not_taken(scope, sorted(names - taken))]
    for claim in template.device_claims:
        wrong += (_report_doubted(item) if known.errors else item for item in _check_claim(scope, claim, known))
        wrong += _report_not_of_claim(
            scope, claim, known, sorted({item.request for item in every if item.name == claim.name and item.request})
        )
    if scope.surroundings is not None and not known.unread:
        claims = [(item.name, known.find(scope.job.namespace, item)) for item in template.device_claims]
        totals = check_totals(scope.subject, [(name, item) for name, item in claims if item is not None], known)
        rdma = check_rdma(scope, known)
        wrong += (_report_doubted(item) if known.errors else item for item in (*totals, *rdma))
    if template.device_claims and known.errors:
        wrong.append(_report_unread(scope, known))
    yield from wrong or [
        build_pass(_CHECK, scope.subject, _describe_claims(template, known, scope.job.namespace), _EXPECTED)
    ]


def _report_doubted(finding: Finding) -> Finding:
    """Return a failed finding with status ``unknown``, and any other finding unchanged.

    It is used if objects of the cluster could not be read, since the object that the finding misses may be one of them.
    """
    return (
        dataclasses.replace(
            finding,
            status=UNKNOWN,
            why=f"{finding.why} This is uncertain, because some objects of these kinds could not be read.",
        )
        if finding.status == FAIL
        else finding
    )


def _report_unread(scope: LintedTemplate, known: DeviceClaims) -> Finding:
    why = (
        f"Some objects do not have the form that Kubernetes defines and were left out:"
        f" {join_first(known.errors, 5, '; ')}."
    )
    remedy = (
        "Ask the owner of each object to correct it: kubectl get"
        " resourceclaims,resourceclaimtemplates,resourceslices -A -o yaml shows them. For a ResourceSlice,"
        " update the driver whose pod on the node writes it."
    )
    return Finding(
        _CHECK,
        scope.subject,
        WARN,
        f"{count_of(len(known.errors), 'object')} could not be read",
        "all claims, classes and slices readable",
        why,
        remedy,
    )


def _report_not_of_pod(scope: LintedTemplate, names: typing.Sequence[str]) -> typing.Iterator[Finding]:
    for name in names:
        why = "A container uses a claim that its pod does not have, so the API server refuses each pod."
        hint = scope.hints.nearest(name, [claim.name for claim in scope.template.device_claims])
        yield Finding(
            _CHECK,
            f"{scope.subject} {name}",
            FAIL,
            "not among resourceClaims",
            _EXPECTED + hint,
            why,
            "Add the claim to spec.resourceClaims of the pod.",
        )


def _report_not_taken(scope: LintedTemplate, names: typing.Sequence[str]) -> typing.Iterator[Finding]:
    for name in names:
        why = (
            "Kubernetes allocates the devices to the pod, but no container of the pod gets them. Other pods cannot use"
            " these devices."
        )
        remedy = "Name the claim in resources.claims of the container that computes."
        yield Finding(_CHECK, f"{scope.subject} {name}", WARN, "used by no container", _EXPECTED, why, remedy)


def _report_not_of_claim(
    scope: LintedTemplate, claim: PodClaim, known: DeviceClaims, requests: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Yield a failed finding for each request that a container names in ``resources.claims``, but that its claim does
    not have. A claim that was not found is skipped.

    :param scope: pod template of a job, and the cluster in which it would run
    :param claim: claim of the pod
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    :param requests: names of requests in the container
    """
    found = known.find(scope.job.namespace, claim)
    for name in requests if found is not None else ():
        if found is not None and not any(item.is_named(name) for item in found.requests):
            why = (
                f"{claim.kind} {claim.of} has no request of this name, so the container gets none of the devices of the"
                " claim."
            )
            hint = scope.hints.nearest(name, [item.name for item in found.requests])
            remedy = (
                "Correct the request in resources.claims of the container, or remove it so that the container gets the"
                " devices of all requests."
            )
            yield Finding(
                _CHECK,
                f"{scope.subject} {claim.name}",
                FAIL,
                f"request {name} does not exist",
                _EXPECTED + hint,
                why,
                remedy,
            )


def _check_claim(scope: LintedTemplate, claim: PodClaim, known: DeviceClaims) -> typing.Iterator[Finding]:
    subject, found = f"{scope.subject} {claim.name}", known.find(scope.job.namespace, claim)
    if found is None and scope.surroundings is None:
        why = f"{claim.kind} {claim.of} is in another file, which job_lint does not read."
        yield Finding(
            _CHECK,
            subject,
            UNKNOWN,
            "claim not read",
            _EXPECTED,
            why,
            "Put the object into the same file, or run job_lint without offline: true.",
        )
        return
    if scope.surroundings is not None and known.unread:
        why = (
            "The API server does not serve resource.k8s.io/v1, or does not allow the user to read its DeviceClasses,"
            " ResourceSlices and claims."
        )
        remedy = (
            "Run kubectl api-resources --api-group=resource.k8s.io: Kubernetes serves v1 from release 1.34 on."
            " Otherwise give the user of the kubeconfig the rights that docs/job.md lists."
        )
        yield Finding(_CHECK, subject, UNKNOWN, "claim not read", _EXPECTED, why, remedy)
        return
    if found is None:
        there = (
            *(item.name for item in known.claims if item.template == claim.template),
            *(scope.surroundings.others.get(claim.kind, ()) if scope.surroundings else ()),
        )
        names = [name.partition("/")[2] for name in there]
        why = f"No {claim.kind} of this name exists in the namespace of the job, so the pods would stay Pending."
        hint = scope.hints.nearest(claim.of, names)
        yield Finding(
            _CHECK,
            subject,
            FAIL,
            f"{claim.kind} {claim.of} does not exist",
            _EXPECTED + hint,
            why,
            (
                f"Create {claim.kind} {claim.of}, or correct its name in spec.resourceClaims of the pod. For a"
                " channel of NVLink, create a ComputeDomain, which creates the ResourceClaimTemplate."
            ),
        )
        return
    pods = sum(
        item.count
        for item in scope.job.templates
        if any((one.of, one.template) == (claim.of, False) for one in item.device_claims)
    )
    if pods > 1 and "network" in list_uses(scope.job.namespace, claim, known):
        why = (
            "These pods share the devices of one claim. All of them must run on the node with the devices, or wait for"
            " room on that node."
        )
        yield Finding(
            _CHECK,
            subject,
            WARN,
            f"{count_of(pods, 'pod')} with the ResourceClaim {claim.of}",
            "a claim of its own for each pod",
            why,
            "Use a ResourceClaimTemplate, from which each pod gets its own claim.",
        )
    classes = {item.name for item in known.classes}
    for request in (item.classes for item in found.requests):
        if scope.surroundings is not None and not classes & set(request):
            why = (
                "No DeviceClass of this name exists, so Kubernetes cannot allocate devices and the pods would stay"
                " Pending."
            )
            hint, absent = scope.hints.nearest(request[0], classes), " or ".join(request)
            yield Finding(
                _CHECK,
                subject,
                FAIL,
                f"DeviceClass {absent} does not exist",
                _EXPECTED + hint,
                why,
                (
                    "Run kubectl get deviceclasses to list the classes. Correct the name of the class in the claim,"
                    " or install the driver that makes it."
                ),
            )
    if scope.surroundings is not None:
        few = [*_report_too_few(subject, found, known), *_report_few_nodes(subject, found, known)]
        yield from few
        if not any(item.status == FAIL for item in few):
            yield from check_selectors(subject, found, known)


def _report_few_nodes(subject: str, claim: DeviceClaim, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Yield a failed finding for a ComputeDomain whose ``numNodes`` exceeds the number of nodes that offer an NVLink
    channel. Yield nothing if the driver of the channels is unknown, or if channels are not assigned to nodes.

    :param subject: subject of the finding
    :param claim: claim of a channel of the ComputeDomain
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    driver = next((known.driver_of(way.device_class) for item in claim.requests for way in item.ways), "")
    nodes = len(known.devices_of(driver)) if driver else 0
    if claim.nodes > nodes and driver and not known.count_shared(driver):
        why = (
            f"The ComputeDomain waits for {count_of(claim.nodes, 'node')} (numNodes). According to the"
            f" ResourceSlices, {count_of(nodes, 'node has', 'nodes have')} a channel of NVLink, so the pods would not"
            " start."
        )
        remedy = (
            "Run kubectl get resourceslices, and verify that the pod of NVIDIA's DRA driver runs on all nodes of the"
            " rack. Or correct numNodes; newer drivers accept 0."
        )
        yield Finding(
            _CHECK,
            subject,
            FAIL,
            f"{count_of(nodes, 'node')} with a channel",
            f"{count_of(claim.nodes, 'node')} with a channel",
            why,
            remedy,
        )


def _report_too_few(subject: str, claim: DeviceClaim, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Yield a failed finding for each request that asks for more devices than any node has, in each of its alternatives
    and even without its selectors. A request is skipped if the driver of one of its classes is not known. Yield
    warnings about numbers of devices that are implausible, or that only one node has.

    :param subject: subject of the finding
    :param claim: claim with the requests
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    drivers: dict[str, None] = {}
    for request in claim.requests:
        wanted = [(way.count, known.driver_of(way.device_class)) for way in request.ways]
        offered = [(count, driver, known.count_devices(driver)) for count, driver in wanted if driver]
        drivers.update(dict.fromkeys(driver for _count, driver, _most in offered))
        if len(offered) != len(wanted):
            continue
        if all(most < count for count, _driver, most in offered):
            measured = " or ".join(
                f"{count_of(count, 'device')} of {driver} requested, at most {most} on a node"
                for count, driver, most in offered
            )
            why = (
                f"According to the ResourceSlices, no node has as many devices as request {request.name} needs, so the"
                " pods would stay Pending."
            )
            remedy = (
                "Run kubectl get resourceslices, and verify that the driver's pod runs on the nodes of the job. Or"
                " request fewer devices."
            )
            expected = f"a node with the devices of request {request.name}"
            yield Finding(_CHECK, subject, FAIL, measured, expected, why, remedy)
        else:
            yield from _check_one_node(subject, request, offered, known)
    for driver in drivers:
        yield from _report_implausible(subject, driver, known)


def _check_one_node(
    subject: str, request: DeviceRequest, offered: typing.Sequence[tuple[int, str, int]], known: DeviceClaims
) -> typing.Iterator[Finding]:
    """Warn about a request that only one of several nodes with devices of its drivers can meet.

    Each node reports its own number of devices, so the number of that node may be wrong.

    :param subject: subject of the finding
    :param offered: three values for each alternative of the request: the number of devices, their driver, and the most
        devices that a node has
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    able: dict[str, str] = {}
    nodes: set[str] = set()
    for count, driver, _most in offered:
        shared = known.count_shared(driver)
        if shared >= count:
            return
        for node, devices in known.devices_of(driver).items():
            nodes.add(node)
            if count - shared <= devices <= MOST_OF_NODE:
                able[node] = f"{count_of(devices, 'device')} of {driver} on {node}"
    if len(able) == 1 and len(nodes) > 1:
        measured = ", ".join(able.values())
        why = (
            f"According to the ResourceSlices, only one node has as many devices as request {request.name} needs. Each"
            " node reports its own number of devices, so this number can be wrong."
        )
        remedy = (
            "Run kubectl get resourceslices -o yaml, and compare the devices of this node with the machine. If"
            " they are right, all pods of the job must have room on this node: otherwise request fewer devices."
        )
        yield Finding(_CHECK, subject, WARN, measured, "as many devices on several nodes", why, remedy)


def _report_implausible(subject: str, driver: str, known: DeviceClaims) -> typing.Iterator[Finding]:
    """Warn about nodes whose ResourceSlices report more devices than any machine can have.

    :param subject: subject of the finding
    :param driver: name of the driver of the devices
    :param known: ResourceClaims, DeviceClasses and ResourceSlices that are known
    """
    found = [
        f"{node}: {count_of(count, 'device')} of {driver}"
        for node, count in known.devices_of(driver).items()
        if count > MOST_OF_NODE
    ]
    if found:
        why = (
            "No machine has so many devices. Each node reports its own number of devices, and this check does not"
            " count these nodes."
        )
        yield Finding(
            _CHECK,
            subject,
            WARN,
            join_first(found),
            f"at most {MOST_OF_NODE} devices on a node",
            why,
            (
                "Run kubectl get resourceslices -o yaml, and compare the devices of these nodes with the machines."
                " Restart the driver's pod on a node whose number is wrong."
            ),
        )


def _describe_claims(template: PodTemplate, known: DeviceClaims, namespace: str) -> str:
    """Return the claims of a pod as text, each with the purposes of its devices; ``none`` if it has no claims.

    :param known: ResourceClaims and DeviceClasses from the file and from the cluster
    :param namespace: namespace of the job
    """
    return (
        ", ".join(
            f"{claim.name}: {' and '.join(list_uses(namespace, claim, known)) or 'nothing'}"
            for claim in template.device_claims
        )
        or "none"
    )
