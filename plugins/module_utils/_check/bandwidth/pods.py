# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods that measure: each can be used, and none is left. Check ids: ``bandwidth.pod``, ``bandwidth.cleanup``."""

from __future__ import annotations

import typing

from ..._analysis.addresses.arithmetic import excluded_from, outside_of
from ..._analysis.controllers.image_pull import explain, of_pods
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma
from ..._model.measurement.bandwidth import BandwidthFacts, End, RdmaPod
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .causes import CAUSES, explain_cause
from .pairs import on_rail


def check_pod(fabric: Fabric, end: End, pod: typing.Optional[RdmaPod]) -> Finding:
    subject, expected = (
        f"{fabric.name} {end[1]}{on_rail(fabric, end[0])}",
        "a pod with an RDMA device and an address on the network",
    )
    if pod is None:
        why = "No pod was started on this node."
        return Finding(
            "bandwidth.pod",
            subject,
            UNKNOWN,
            "no pod",
            expected,
            why,
            "See network.allocatable of this node: the node must offer the resource (kubectl describe node).",
        )
    if pod.error:
        status: typing.Literal["unknown", "fail"] = UNKNOWN if not pod.name else FAIL
        if pod.cause == "image":
            why, remedy = explain(pod.error, of_pods(pod.namespace, pod.name))
        else:
            why, remedy = explain_cause(pod.cause, fabric) if pod.cause in CAUSES else ("", "")
        if not remedy:
            remedy = (
                f"kubectl -n {pod.namespace} describe pod {pod.name} while the stage runs."
                if pod.name
                else "See the stages network and virtual_functions."
            )
        return Finding(
            "bandwidth.pod", subject, status, pod.name or "no pod", expected, f"{why} {pod.error}".strip(), remedy
        )
    if pod.device is None and carries_rdma(fabric):
        why, remedy = explain_cause("no_device", fabric)
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
            f"See which attachment the pod has (kubectl -n {pod.namespace} get pod {pod.name} -o yaml, its"
            " network-status), and run stage network again: another tool may keep another range in it."
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
            f"See which attachment the pod has (kubectl -n {pod.namespace} get pod {pod.name} -o yaml, its"
            " network-status). Compare the exclusions in it, or in the pool of nv-ipam, with ipam of the fabric, and"
            " run stage network again. If the address is free, take it out of exclude."
        )
        return Finding(
            "bandwidth.pod",
            subject,
            FAIL,
            f"{pod.interface} {pod.address}",
            f"an address that ipam leaves to pods ({excluded})",
            _EXCLUDED,
            remedy,
        )
    if pod.device is None:
        return ok(
            "bandwidth.pod",
            subject,
            f"{pod.interface} {pod.address}, no RDMA device: TCP is measured",
            "a pod with an address on the network",
        )
    rate = f"{pod.rate_gbps:g} Gb/s port" if pod.rate_gbps is not None else "port rate not known"
    measured = f"{pod.device} on {pod.interface} {pod.address}, {rate}" + (f", {pod.binding}" if pod.binding else "")
    return ok("bandwidth.pod", subject, measured, expected)


_EXCLUDED = (
    "The pod has an address that ipam of the intent keeps for others. Two owners of one address lose packets of each"
    " other; and what hands out addresses does not do as the intent says."
)
_OUTSIDE = (
    "The pod is on the network, and its address is none that ipam of the intent hands out: what was measured has other"
    " addresses than the intent asks for."
)


def check_cleanup(seen: BandwidthFacts) -> Finding:
    expected = "no pod of ours is left"
    if seen.remaining:
        why = f"These pods are still there, or may still run: {', '.join(seen.remaining)}."
        return Finding(
            "bandwidth.cleanup",
            "pods",
            FAIL,
            f"{len(seen.remaining)} left",
            expected,
            why,
            "Delete them by hand; see their events if they stay in Terminating, and the kubelet of a node that did not"
            " end its pod.",
        )
    if seen.leftovers:
        why = f"An interrupted earlier run had left these pods, which were removed first: {', '.join(seen.leftovers)}."
        return Finding(
            "bandwidth.cleanup",
            "pods",
            WARN,
            f"0 left, {len(seen.leftovers)} of an earlier run removed",
            expected,
            why,
            "Nothing to do.",
        )
    return ok("bandwidth.cleanup", "pods", "0 left", expected)
