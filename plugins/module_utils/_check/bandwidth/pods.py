# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on the measuring pods: whether each pod can be used, and whether any remains after the stage. Check ids:
``bandwidth.pod``, ``bandwidth.cleanup``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.addresses.pools import excluded_from, outside_of
from ..._analysis.controllers.image_pull import explain, of_pods
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma, is_interface_moved, list_rails
from ..._model.kubernetes.measuring import BY_LIMIT, NAMESPACE
from ..._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ..._model.measurement.pairs import End
from ..._model.node.hca import NodeHcas, ObservedHcas
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from .addresses import find_announced_twice, find_held_twice
from .causes import CAUSES, add_stage, explain_cause, name_check_of_hcas, name_ends
from .facts import Facts
from .pairs import on_rail


def check_pods(
    fabric: Fabric,
    rail: int,
    pods: typing.Mapping[End, RdmaPod],
    membership: Membership,
    facts: Facts,
) -> list[Finding]:
    """Check for each node that its measuring pod on a rail is ready, has one RDMA device and an address that no other
    pod has, and is on the expected HCA.

    :param rail: number of the rail
    :param pods: pods of all rails of the fabric, by rail and node; the addresses are compared over all rails
    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param facts: facts of the stage, with the names of the nodes
    """
    announced, held = find_announced_twice(pods.values()), find_held_twice(fabric, pods.values())
    findings = []
    for name in facts.nodes:
        end = (rail, name)
        pod = pods.get(end)
        if pod is not None and pod.name in announced:
            pod = dataclasses.replace(pod, error=announced[pod.name], cause="address")
        finding = check_pod(fabric, end, pod)
        if pod is not None and finding.status == PASS:
            after = facts.functions.get(name, ObservedHcas()).value
            doubt, first = held.get(end, ""), ""
            if not doubt:
                doubt, first = _why_on_another_rail(fabric, pod, membership)
            doubt = doubt or _why_no_function(pod, after)
            if not doubt:
                doubt, first = _why_another_port(pod, membership)
            if doubt:
                finding = dataclasses.replace(
                    finding,
                    status=UNKNOWN,
                    measured=f"{finding.measured}; HCA of the pod not verified",
                    expected="a pod with a function of the HCA of this rail",
                    why=f"{format_clause(doubt)}.",
                    remedy=f"{first} {_ONE_RUN}".strip(),
                )
        findings.append(finding)
    return findings


_ONE_RUN = (
    "Run all stages again in one run, so that their data describe the same state: ansible-playbook linerate.rdma.site."
)


def _why_on_another_rail(fabric: Fabric, pod: RdmaPod, membership: Membership) -> tuple[str, str]:
    """Return a clause that names the HCA of the pod if it is not the HCA of the pod's rail, and the first step of the
    remedy. The step is empty if the HCA of the rail is known. Both texts are empty if the pod is on the HCA of its
    rail, if the HCAs of the node are unknown, or if the fabric has one rail and the HCA of the pod is unknown.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    """
    rails = {member.hca.pci.address: member.rail for member in membership.members.get(pod.node, ()) if member.hca.pci}
    function = pod.physical_function or pod.pci
    # a function that a pod gets as a whole is the HCA itself
    only = len(list_rails(fabric)) == 1 and not (pod.physical_function or (is_interface_moved(fabric) and pod.pci))
    if not rails or only or rails.get(function or "") == pod.rail:
        return "", ""
    text = f"The pod {pod.name} has a function of {function or 'an HCA that sysfs does not report'}, but"
    mine = ", ".join(address for address, number in rails.items() if number == pod.rail)
    if mine:
        return f"{text} the HCA of the rail is {mine}", ""
    return (
        f"{text} the data of {pod.node} have no HCA of the fabric {fabric.name} on rail {pod.rail}",
        f"If {pod.node} has a finding {name_check_of_hcas(fabric)}, follow its remedy first.",
    )


def _why_another_port(pod: RdmaPod, membership: Membership) -> tuple[str, str]:
    """Return a clause that the port of the fabric is not port 1 of its HCA, and the first step of the remedy.

    The tools in the pod use port 1 of the RDMA device. Both texts are empty if the port is port 1 or unknown, if the
    pod has no RDMA device, and for virtual functions, whose ports have numbers of their own.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    """
    ports = [
        member.port.number
        for member in membership.members.get(pod.node, ())
        if member.rail == pod.rail and member.port is not None
    ]
    if pod.physical_function or pod.device is None or not ports or ports[0] == 1:
        return "", ""
    return (
        f"The port of the fabric is port {ports[0]} of the HCA, and the pod {pod.name} measured with port 1 of"
        f" {pod.device}",
        f"Move the cable of the fabric on {pod.node} to port 1 of the HCA, or measure port {ports[0]} by hand"
        f" (ib_write_bw -i {ports[0]}) and waive this finding.",
    )


def _why_no_function(pod: RdmaPod, node: typing.Optional[NodeHcas]) -> str:
    """Return a clause that the node does not report the virtual function of the pod.

    Return an empty text if the node reports it, or if the node reports no virtual function of the HCA.

    :param node: HCAs of the node; None if unknown, for which the text is empty
    """
    if node is None or pod.physical_function is None:
        return ""
    its = [hca.pci.address for hca in node.hcas if hca.pci and hca.physical_function == pod.physical_function]
    if not its or pod.pci in its:
        return ""
    return (
        f"The pod {pod.name} has {pod.pci or 'an unknown function'}, but the virtual functions of"
        f" {pod.physical_function} are {join_first(its, 8)}"
    )


def check_pod(fabric: Fabric, end: End, pod: typing.Optional[RdmaPod]) -> Finding:
    subject, expected = (
        f"{fabric.name} {end[1]}{on_rail(fabric, end[0])}",
        f"1 pod with {'an RDMA device and ' if carries_rdma(fabric) else ''}an address on the network",
    )
    if pod is None:
        why = (
            "The stage started no pod on this node, so its bandwidth is not known. The scheduler places a pod"
            " only on a node with a free resource of the fabric."
        )
        return Finding(
            "bandwidth.pod",
            subject,
            UNKNOWN,
            "no pod",
            expected,
            why,
            f"Run kubectl describe node {end[1]}. If Allocatable lacks the resource of the fabric, follow the"
            " remedy of the finding network.allocatable. If Allocated resources shows that pods use all of it,"
            " end one of these pods. Then run stage bandwidth again.",
        )
    if pod.error:
        status: typing.Literal["unknown", "fail"] = UNKNOWN if not pod.name else FAIL
        if pod.cause == "image":
            why, remedy = explain(pod.error, of_pods(pod.namespace, pod.name))
            remedy = add_stage(f"{remedy}.")
        else:
            why, remedy = explain_cause(pod.cause, fabric) if pod.cause in CAUSES else ("", "")
            remedy = name_ends(remedy, [end[1]], [pod.name])
        if pod.cause == BY_LIMIT:
            remedy = f"Run stage bandwidth again, with {end[1]} in --limit or without --limit."
        elif not remedy:
            remedy = (
                f"Run kubectl -n {pod.namespace} describe pod {pod.name} while the stage runs, and correct the error."
                " Then run stage bandwidth again."
                if pod.name
                else "Follow the remedies of the findings of stage network and of stage virtual_functions on"
                f" {end[1]}, then run stage bandwidth again."
            )
        return Finding(
            "bandwidth.pod",
            subject,
            status,
            f"{pod.name} not usable" if pod.name else "pod not started",
            expected,
            f"{why} Details: {format_clause(pod.error)}."
            if why
            else f"{'The pod cannot be used' if pod.name else 'The stage started no pod'}: {format_clause(pod.error)}.",
            remedy,
        )
    if pod.device is None and carries_rdma(fabric):
        why, remedy = explain_cause("no_device", fabric)
        remedy = name_ends(remedy, [end[1]], [pod.name])
        return Finding(
            "bandwidth.pod",
            subject,
            FAIL,
            f"{pod.name}: no RDMA device on {pod.interface or 'its interface'}",
            expected,
            why,
            remedy,
        )
    outside = outside_of(fabric, pod.address)
    if outside:
        remedy = (
            "Run stage network again: it writes the range of the intent into the NetworkAttachmentDefinition, in"
            " which another tool may have set a different range. Then run stage bandwidth again. To see the"
            f" attachment of the pod while the stage runs: kubectl -n {pod.namespace} get pod {pod.name} -o yaml."
        )
        return Finding(
            "bandwidth.pod",
            subject,
            FAIL,
            f"{pod.interface} {pod.address}",
            f"an address of {outside}",
            _OUTSIDE,
            remedy,
        )
    excluded = excluded_from(fabric, pod.address)
    if excluded:
        remedy = (
            "Run stage network again: it writes ipam.exclude of the fabric into the NetworkAttachmentDefinition,"
            " or into the pool of nv-ipam. If no other device uses the address, remove it from ipam.exclude"
            " instead. Then run stage bandwidth again."
        )
        return Finding(
            "bandwidth.pod",
            subject,
            FAIL,
            f"{pod.interface} {pod.address}",
            f"an address that ipam allows for pods (not in: {excluded})",
            _EXCLUDED,
            remedy,
        )
    if pod.device is None:
        return build_pass(
            "bandwidth.pod",
            subject,
            f"{pod.interface} {pod.address}, no RDMA device: TCP is measured",
            "a pod with an address on the network",
        )
    rate = f"{pod.rate_gbps:g} Gb/s port" if pod.rate_gbps is not None else "port rate unknown"
    measured = f"{pod.device} on {pod.interface} {pod.address}, {rate}" + (f", {pod.binding}" if pod.binding else "")
    if fabric.virtual_functions > 1:
        # the other functions of the HCA carry nothing in this stage
        measured += f", 1 of the {fabric.virtual_functions} virtual functions of its HCA"
    return build_pass("bandwidth.pod", subject, measured, expected)


_EXCLUDED = (
    "The pod has an address that ipam of the intent reserves for other uses. Two owners of the same address lose each"
    " other's packets. The IPAM plugin does not follow the intent."
)
_OUTSIDE = (
    "The address of the pod is outside the range that ipam of the fabric sets in the intent. So the IPAM plugin"
    " does not follow the intent, and the measurement did not use the addresses of jobs."
)


def check_cleanup(seen: BandwidthFacts) -> Finding:
    expected = "no measuring pods left"
    if seen.remaining:
        why = f"The stage could not delete these pods: {', '.join(seen.remaining)}."
        return Finding(
            "bandwidth.cleanup",
            "pods",
            FAIL,
            f"{count_of(len(seen.remaining), 'measuring pod')} left",
            expected,
            why,
            f"Delete these pods: kubectl -n {NAMESPACE} delete pod {' '.join(seen.remaining[:8])}. If a pod stays in"
            " Terminating, the kubelet of its node does not respond: run systemctl status kubelet there, and restart"
            " the kubelet. Then run stage bandwidth again.",
        )
    if seen.leftovers:
        why = (
            f"An interrupted earlier run left these pods, and this run removed them first: {', '.join(seen.leftovers)}."
        )
        return Finding(
            "bandwidth.cleanup",
            "pods",
            WARN,
            f"0 measuring pods left, {len(seen.leftovers)} of an earlier run removed",
            f"{expected}, also none of an earlier run",
            why,
            "No action is required, because this run has removed the pods.",
        )
    return build_pass("bandwidth.cleanup", "pods", "0 measuring pods left", expected)
