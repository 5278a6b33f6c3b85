# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Stage bandwidth: does each pair of nodes reach its line rate, through pods, over RDMA (rows S1.10 to S1.12). Check ids: ``bandwidth.*``.

Two floors: one from the link itself (fraction of the slower of port rate and PCIe), so that a uniformly slow fabric shows; and one from the
fleet (93 % of the best pair), so that one slow node shows. The average column counts, never the peak.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.cluster import BandwidthFacts, PairResult, RdmaPod
from .._model.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .._model.intent import Fabric, Intent

#: of the best pair of the same fabric
FLEET_FRACTION = 0.93
#: round trips that rping must count
PINGS = 5

#: kind of failure (_parse/rdma_failure.py): cause and remedy
CAUSES: typing.Dict[str, typing.Tuple[str, str]] = {
    "not_listening": ("No server accepted the connection.", "See the server's line; is another process on its port, or a firewall between the pods?"),
    "no_address": (
        "The address is not reachable by RDMA from here: no route, or the interface has no RDMA device.",
        "Compare ip addr and rdma link in both pods; on InfiniBand, is the VF's link state enabled?",
    ),
    "name": ("The server's name could not be resolved.", "Use the address of the network-status annotation."),
    "no_device": ("The RDMA device is not in the pod.", "Does the policy say isRdma, and is the device plugin's pod newer than the policy?"),
    "device_access": (
        "The pod may not open the RDMA device.",
        "Mount the character devices: isRdma in the policy, or pods.runtime_class and pods.mount_infiniband.",
    ),
    "port_down": (
        "The port of the RDMA device is not active.",
        "On InfiniBand: link_state enable, and a subnet manager that serves virtual functions. On Ethernet: carrier of the PF.",
    ),
    "memlock": (
        "Memory could not be pinned: memlock is too low, or the VF has node GUID 0.",
        "Give the pod IPC_LOCK or raise the runtime's memlock; look at the VF's GUID on its node.",
    ),
    "gid": (
        "The queue pairs could not be connected: the GIDs of the two ends do not fit.",
        "Same GID type and address family on both ends; on iWARP use pods.connection rdma_cm.",
    ),
    "mismatch": (
        "The transfer ended with an error: the two ends run with other settings, or the peer refused.",
        "Same perftest, size and options on both ends.",
    ),
    "transport_retry": (
        "Packets were lost until the retries were used up (status 12).",
        "Look at the path: error counters of the links, MTU, priority flow control.",
    ),
    "peer_gone": ("The other end ended in the middle of the run.", "See the other pod: was it evicted, or its process killed?"),
    "no_tool": ("The image has no rping, ib_write_bw, timeout or stdbuf.", "Use an image with perftest and rdma-core's utilities in pods.image."),
    "hang": (
        "The tool did not end within its limit: its packets are dropped on the way without an error.",
        "On RoCE: is UDP 4791 filtered? Otherwise raise pods.limit_seconds.",
    ),
    "exec_lost": (
        "The connection to the pod broke, so the exit code is not known.",
        "Is the pod or its node gone, or the API server restarted? Run the stage again.",
    ),
    "no_measurement": ("The tool ended with 0 and printed no usable figure.", "Zero, inf or nan come from an unstable clock on the node: see its clocksource."),
    "exit_code": ("The tool ended with an error that is not known here.", "Read its text beside 'measured'."),
    "pod": ("One of the two pods could not be used.", "See the finding on the pod."),
    "not_run": ("The measurement did not run.", "Run the stage again."),
    "ping": ("rping already failed, so a bandwidth was not measured.", "See the finding on rping."),
}


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar bandwidth: answer of rdma_bandwidth; None when it did not run
    """

    nodes: typing.Tuple[str, ...] = ()
    bandwidth: typing.Optional[BandwidthFacts] = None


def check(intent: Intent, facts: Facts) -> typing.Tuple[Finding, ...]:
    """Findings for each pod, for each ordered pair, and on what was left behind."""
    findings: typing.List[Finding] = []
    seen = facts.bandwidth or BandwidthFacts((), ())
    for fabric in intent.fabrics:
        pods = {pod.node: pod for pod in seen.pods if pod.fabric == fabric.name}
        findings += [_pod(fabric, name, pods.get(name)) for name in facts.nodes]
        pairs = {(pair.client, pair.server): pair for pair in seen.pairs if pair.fabric == fabric.name}
        wanted = [(client, server) for client in facts.nodes for server in facts.nodes if client != server]
        if not wanted:
            why = "A pair needs two nodes."
            findings.append(
                Finding("bandwidth.measured", fabric.name, UNKNOWN, "no pair", "at least one pair", why, "Put a second node into the group rdma_nodes.")
            )
        best = max((pair.average_gbps for pair in pairs.values() if pair.average_gbps is not None), default=None)
        for client, server in wanted:
            findings += _pair(fabric, client, server, pairs.get((client, server)), pods, best)
    if facts.bandwidth is not None:
        findings.append(_cleanup(seen))
    return tuple(findings)


def _pod(fabric: Fabric, name: str, pod: typing.Optional[RdmaPod]) -> Finding:
    subject, expected = f"{fabric.name} {name}", "a pod with an RDMA device and an address on the network"
    if pod is None:
        why = "No pod was started on this node."
        return Finding("bandwidth.pod", subject, UNKNOWN, "no pod", expected, why, "See the stage network: does the node offer the resource?")
    if pod.error:
        status: typing.Literal["unknown", "fail"] = UNKNOWN if not pod.name else FAIL
        remedy = (
            "See the stages network and virtual_functions." if not pod.name else f"kubectl -n {pod.namespace} describe pod {pod.name} while the stage runs."
        )
        return Finding("bandwidth.pod", subject, status, pod.name or "no pod", expected, pod.error, remedy)
    rate = f"{pod.rate_gbps:g} Gb/s port" if pod.rate_gbps is not None else "port rate not known"
    return ok("bandwidth.pod", subject, f"{pod.device} on {pod.interface} {pod.address}, {rate}", expected)


def _pair(
    fabric: Fabric, client: str, server: str, pair: typing.Optional[PairResult], pods: typing.Mapping[str, RdmaPod], best: typing.Optional[float]
) -> typing.List[Finding]:
    subject = f"{fabric.name} {client} -> {server}"
    if pair is None:
        return [_unmeasured(subject, client, server, pods)]
    findings = [_ping(subject, pair), _measured(subject, pair)]
    if pair.average_gbps is not None:
        findings.append(_floor(subject, fabric, pair.average_gbps, [pods[name] for name in (client, server) if name in pods]))
        if best is not None:
            findings.append(_fleet(subject, pair.average_gbps, best))
    return findings


def _unmeasured(subject: str, client: str, server: str, pods: typing.Mapping[str, RdmaPod]) -> Finding:
    broken = [f"{name}: {pods[name].error if name in pods else 'no pod was started'}" for name in (client, server) if name not in pods or pods[name].error]
    why = f"No pod to measure with. {'; '.join(broken)}" if broken else CAUSES["not_run"][0]
    return Finding("bandwidth.measured", subject, UNKNOWN, "nothing", "an average in Gb/s", why, CAUSES["pod" if broken else "not_run"][1])


def _ping(subject: str, pair: PairResult) -> Finding:
    expected = f"{PINGS} round trips, exit code 0"
    measured = f"{pair.pings if pair.pings is not None else 'no'} round trips" + (f"; {pair.ping_evidence}" if pair.ping_evidence else "")
    if pair.pings is not None and pair.pings >= PINGS and not pair.ping_failure:
        return ok("bandwidth.rping", subject, measured, expected)
    if pair.pings is None:
        return Finding("bandwidth.rping", subject, UNKNOWN, measured, expected, CAUSES["not_run"][0], CAUSES["not_run"][1])
    why, remedy = CAUSES.get(pair.ping_failure, ("Fewer round trips than asked for, without an error.", "Run the stage again."))
    return Finding("bandwidth.rping", subject, FAIL, measured, expected, why, remedy)


def _measured(subject: str, pair: PairResult) -> Finding:
    expected = "an average in Gb/s, exit code 0"
    # a figure beside a failure is none: a killed server leaves a perfect table and exit code 1
    if pair.average_gbps is not None and pair.average_gbps > 0 and not pair.failure:
        figures = f"{_gbps(pair.average_gbps)} average, {pair.message_bytes} bytes x {pair.iterations}"
        return ok("bandwidth.measured", subject, figures, expected)
    why, remedy = CAUSES.get(pair.failure, CAUSES["exit_code"])
    status: typing.Literal["unknown", "fail"] = UNKNOWN if pair.failure in ("ping", "not_run", "pod") else FAIL
    return Finding("bandwidth.measured", subject, status, pair.evidence or "nothing", expected, why, remedy)


def floor_of(fabric: Fabric, pods: typing.Sequence[RdmaPod]) -> typing.Tuple[typing.Optional[float], str]:
    """The floor in Gb/s, and how it comes about; None where neither the intent nor the pods' links say enough."""
    rule = fabric.line_rate
    if rule.floor_gbps is not None:
        return rule.floor_gbps, f"absolute floor of the intent: {_gbps(rule.floor_gbps)}; reason: {rule.reason or 'none given'}"
    limits: typing.List[typing.Tuple[float, str]] = []
    for pod in pods:
        if pod.rate_gbps is not None:
            limits.append((pod.rate_gbps, f"port of {pod.node} {pod.rate_gbps:g}"))
        if pod.pcie_gbps is not None:
            limits.append((pod.pcie_gbps, f"PCIe of {pod.node} {pod.pcie_gbps:g}"))
    # without the ports' rate there is nothing to take a fraction of
    if len(pods) < 2 or any(pod.rate_gbps is None for pod in pods):
        return None, "the rate of both ports is not known"
    slowest = min(limits)[0]
    return rule.fraction * slowest, f"{rule.fraction:g} x {slowest:g} Gb/s, the slowest of: {', '.join(text for _value, text in limits)} Gb/s"


def _floor(subject: str, fabric: Fabric, average: float, pods: typing.Sequence[RdmaPod]) -> Finding:
    floor, text = floor_of(fabric, pods)
    if floor is None:
        remedy = "See why the pods' sysfs shows no rate, or give line_rate.floor_gbps with a reason."
        return Finding("bandwidth.floor", subject, UNKNOWN, _gbps(average), "a floor", f"No floor can be set: {text}.", remedy)
    if average >= floor:
        return ok("bandwidth.floor", subject, _gbps(average), f">= {_gbps(floor)} ({text})")
    why = "The pair is slower than its link allows for."
    remedy = "Measure each end with another partner, then look at PCIe speed and width, NUMA node, MTU and the links' error counters of the slow end."
    return Finding("bandwidth.floor", subject, FAIL, _gbps(average), f">= {_gbps(floor)} ({text})", why, remedy)


def _fleet(subject: str, average: float, best: float) -> Finding:
    floor = FLEET_FRACTION * best
    expected = f">= {_gbps(floor)} ({FLEET_FRACTION:g} of the fabric's best pair, {_gbps(best)})"
    if average >= floor:
        return ok("bandwidth.fleet", subject, _gbps(average), expected)
    why = "The pair is slower than others on the same fabric, so one of its ends or the path between them is at fault."
    return Finding("bandwidth.fleet", subject, FAIL, _gbps(average), expected, why, "Compare the two ends with the nodes of the best pair.")


def _cleanup(seen: BandwidthFacts) -> Finding:
    expected = "no pod of ours is left"
    if seen.remaining:
        why = f"These pods are still there: {', '.join(seen.remaining)}."
        return Finding(
            "bandwidth.cleanup",
            "pods",
            FAIL,
            f"{len(seen.remaining)} left",
            expected,
            why,
            "Delete them by hand; see their events if they stay in Terminating.",
        )
    if seen.leftovers:
        why = f"An interrupted earlier run had left these pods, which were removed first: {', '.join(seen.leftovers)}."
        return Finding("bandwidth.cleanup", "pods", WARN, f"0 left, {len(seen.leftovers)} of an earlier run removed", expected, why, "Nothing to do.")
    return ok("bandwidth.cleanup", "pods", "0 left", expected)


def _gbps(value: float) -> str:
    return f"{value:.2f} Gb/s" if value >= 1 else f"{value:.4f} Gb/s"
