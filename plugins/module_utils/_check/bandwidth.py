# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: does each pair of nodes reach its line rate, through pods, over RDMA (rows S1.10 to S1.12). Check ids: ``bandwidth.*``.

Two floors: one from the link itself (fraction of the slowest of port rate, PCIe and the virtual function's share of both), so that a uniformly slow
fabric shows; and one from the fleet (93 % of the best pair of the same rail), so that one slow node shows. The average column counts, never the peak.
Where pods have no RDMA device, TCP is measured for stage compare; without a floor of the intent no figure of it is too low, as processors bound it.
A pair that fails accuses two ends; ``bandwidth.suspect`` names the one, or the path, that is left when partners that pass are taken into account.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from .._model.bandwidth import BandwidthFacts, PairResult, RdmaPod
from .._model.fabric import ObservedSubnets, ObservedTopologies, Place
from .._model.findings import FAIL, PASS, UNKNOWN, WARN, Finding, ok
from .._model.hca import ObservedHcas
from .._model.intent import Fabric, Intent
from .._model.profiles import rails
from .fleet.hcas_of_fabric import resolve
from .fleet.places import places
from .fleet.suspects import Element, suspects, trial

#: round trips that rping must count
PINGS = 5

#: kind of failure (_parse/pods/failure.py): cause and remedy
CAUSES: typing.Dict[str, typing.Tuple[str, str]] = {
    "not_listening": (
        "No server accepted the connection.",
        "See the server's line. Then look for another process on its port (ss -ltnp in the pod) and for a firewall or NetworkPolicy between the pods.",
    ),
    "no_address": (
        "The address is not reachable by RDMA from here: no route, or the interface has no RDMA device.",
        "Compare ip addr and rdma link in both pods. On InfiniBand, set network.link_state: enable.",
    ),
    "name": ("The server's name could not be resolved.", "Use the address of the network-status annotation."),
    "no_device": (
        "The RDMA device is not in the pod.",
        "Check that the policy has isRdma: true, then restart the device plugin's pod if it is older than the policy (kubectl delete pod).",
    ),
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
    "peer_gone": (
        "The other end ended in the middle of the run.",
        "See why the other pod ended: kubectl describe pod, and dmesg of its node for a process that was killed.",
    ),
    "not_closed": (
        "It measured, and the two ends then missed each other in their last handshake, each time that it was tried, so neither vouches for the figure.",
        "Use a newer perftest in pods.image; on iWARP, where this is a race, run the stage again.",
    ),
    "no_tool": (
        "The image lacks a tool: it needs timeout, stdbuf, rping and ib_write_bw, or iperf3 where pods have no RDMA device.",
        "Use an image with perftest and rdma-core's utilities in pods.image, and with iperf3 where TCP is measured.",
    ),
    "hang": (
        "The tool did not end within its limit: its packets are dropped on the way without an error.",
        "On RoCE, let UDP port 4791 through. Otherwise raise pods.limit_seconds.",
    ),
    "crash": (
        "The tool crashed.",
        "Check that the VF has a node GUID (ip link show <PF>): rdma_cm crashes on zeros. Otherwise give the image perftest and rdma-core of one release.",
    ),
    "pod_gone": (
        "The pod ended in the middle of the run: it was evicted or deleted, or its node was lost.",
        "See the events of the pod and of its node (kubectl get events), and run the stage again.",
    ),
    "refused": (
        "The API server refused the pod.",
        "IPC_LOCK needs a namespace with the label pod-security.kubernetes.io/enforce: privileged, on OpenShift a pods.service_account whose SCC allows it.",
    ),
    "stuck": (
        "A pod of an earlier run is still there, although it was deleted.",
        "See its events, and whether the kubelet of its node works; if the node is lost for good, delete the pod with --force.",
    ),
    "unschedulable": (
        "No pod of ours fits on the node.",
        "A taint: pods.tolerations. Too few CPUs or too little memory: pods.cpu, pods.memory. No free virtual function: end the pods that hold them.",
    ),
    "image": ("The image cannot be pulled.", "Correct pods.image, or name pods.image_pull_secrets."),
    "container": ("The container cannot be created.", "Run kubectl describe pod while the stage runs. The node must know pods.runtime_class."),
    "rail": (
        "No pod stands for this rail.",
        "See the stage virtual_functions for each HCA of the fabric, end other pods that hold its virtual functions, and check select and hcas_per_node.",
    ),
    "exec_lost": (
        "The connection to the pod broke, so the exit code is not known.",
        "Look for a pod or node that is gone, or an API server that restarted (kubectl get events -A). Then run the stage again.",
    ),
    "no_measurement": ("The tool ended with 0 and printed no usable figure.", "Zero, inf or nan come from an unstable clock on the node: see its clocksource."),
    "exit_code": ("The tool ended with an error that is not known here.", "Read its text beside 'measured'."),
    "pod": ("One of the two pods could not be used.", "See the finding on the pod."),
    "not_run": ("The measurement did not run.", "Run the stage again."),
    "ping": ("rping already failed, so a bandwidth was not measured.", "See the finding on rping."),
}


#: what of a pair's ends is compared: its rail and the node's name
End = typing.Tuple[int, str]
Pair = typing.FrozenSet[End]
Pairs = typing.AbstractSet[Pair]


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar bandwidth: answer of rdma_bandwidth; None when it did not run
    :ivar hcas: answer of node_info of each node; with the next two, where a suspect is
    :ivar subnets: answer of subnet_manager_info of each node
    :ivar topologies: answer of fabric_info of each node
    """

    nodes: typing.Tuple[str, ...] = ()
    bandwidth: typing.Optional[BandwidthFacts] = None
    hcas: typing.Dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: typing.Dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: typing.Dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> typing.Tuple[Finding, ...]:
    """Findings for each pod, for each pair, for who is left as a suspect, and on what was left behind."""
    findings: typing.List[Finding] = []
    seen = facts.bandwidth or BandwidthFacts((), ())
    for fabric in intent.fabrics:
        pods = {(pod.rail, pod.node): pod for pod in seen.pods if pod.fabric == fabric.name}
        pairs = [pair for pair in seen.pairs if pair.fabric == fabric.name]
        for rail in rails(fabric):
            findings += [_pod(fabric, (rail, name), pods.get((rail, name))) for name in facts.nodes]
            findings += _coverage(fabric, rail, facts.nodes, pods, pairs)
        best, shares = _best(pairs), shares_of(fabric, seen.pods)
        for pair in pairs:
            findings += _pair(fabric, pair, pods, shares, best.get(pair.rail))
        findings += _suspects(fabric, pods, pairs, _places(fabric, facts))
    if facts.bandwidth is not None:
        findings.append(_cleanup(seen))
    return tuple(findings)


def verdicts(fabric: Fabric, pods: typing.Sequence[RdmaPod], pairs: typing.Sequence[PairResult]) -> typing.Tuple[Pairs, Pairs]:
    """The pairs that passed in all that was measured of them, and those that did not."""
    ends = {(pod.rail, pod.node): pod for pod in pods if pod.fabric == fabric.name}
    good: typing.Dict[Pair, bool] = {}
    for pair, passed in zip(pairs, _passed(fabric, ends, pairs)):
        key = frozenset(((pair.rail, pair.client), (pair.rail, pair.server)))
        good[key] = passed and good.get(key, True)
    return {key for key, passed in good.items() if passed}, {key for key, passed in good.items() if not passed}


def _passed(fabric: Fabric, pods: typing.Mapping[End, RdmaPod], pairs: typing.Sequence[PairResult]) -> typing.List[bool]:
    """Whether each pair has a figure, and nothing speaks against it. A floor that cannot be set accuses nobody."""
    best, shares = _best(pairs), shares_of(fabric, pods.values())
    judged = ([finding.status for finding in _pair(fabric, pair, pods, shares, best.get(pair.rail))] for pair in pairs)
    return [FAIL not in statuses and _measured("", pair).status == PASS for pair, statuses in zip(pairs, judged)]


def _best(pairs: typing.Iterable[PairResult]) -> typing.Dict[int, float]:
    """The best average of each rail, in Gb/s."""
    best: typing.Dict[int, float] = {}
    for pair in pairs:
        if pair.average_gbps is not None and not pair.failure:
            best[pair.rail] = max(pair.average_gbps, best.get(pair.rail, 0.0))
    return best


def _on(fabric: Fabric, rail: int) -> str:
    """The rail in a subject, where a node has more than one."""
    return f" rail {rail}" if fabric.select.hcas_per_node > 1 else ""


def subject_of(fabric: Fabric, pair: PairResult) -> str:
    """Of the findings on one measurement."""
    arrow = "<->" if fabric.bandwidth.directions == "at_once" else "->"
    return f"{fabric.name} {pair.client} {arrow} {pair.server}{_on(fabric, pair.rail)}{' again' if pair.again else ''}"


def _pod(fabric: Fabric, end: End, pod: typing.Optional[RdmaPod]) -> Finding:
    subject, expected = f"{fabric.name} {end[1]}{_on(fabric, end[0])}", "a pod with an RDMA device and an address on the network"
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
        why, remedy = CAUSES.get(pod.cause, ("", ""))
        if not remedy:
            describe = f"kubectl -n {pod.namespace} describe pod {pod.name} while the stage runs."
            remedy = describe if pod.name else "See the stages network and virtual_functions."
        return Finding("bandwidth.pod", subject, status, pod.name or "no pod", expected, f"{why} {pod.error}".strip(), remedy)
    if pod.device is None:
        return ok("bandwidth.pod", subject, f"{pod.interface} {pod.address}, no RDMA device: TCP is measured", "a pod with an address on the network")
    rate = f"{pod.rate_gbps:g} Gb/s port" if pod.rate_gbps is not None else "port rate not known"
    measured = f"{pod.device} on {pod.interface} {pod.address}, {rate}" + (f", {pod.binding}" if pod.binding else "")
    return ok("bandwidth.pod", subject, measured, expected)


def _coverage(
    fabric: Fabric, rail: int, nodes: typing.Sequence[str], pods: typing.Mapping[End, RdmaPod], pairs: typing.Sequence[PairResult]
) -> typing.List[Finding]:
    """What should have been measured and was not: whole rails, nodes, and pairs of those that could."""
    usable = [name for name in nodes if (rail, name) in pods and not pods[rail, name].error]
    if len(nodes) < 2:
        why, remedy = "A pair needs two nodes.", "Put a second node into the group rdma_nodes."
        return [Finding("bandwidth.measured", f"{fabric.name}{_on(fabric, rail)}", UNKNOWN, "no pair", "at least one pair", why, remedy)]
    findings = []
    met: typing.Dict[str, typing.Set[str]] = collections.defaultdict(set)
    for pair in pairs:
        if pair.rail == rail:
            met[pair.client].add(pair.server)
            if fabric.bandwidth.directions != "both":
                met[pair.server].add(pair.client)
    # with a node that rests in each round, as an odd number has it, some partners are one less
    partners = len(usable) - 1
    if fabric.bandwidth.rounds is not None:
        partners = min(partners, max(1, fabric.bandwidth.rounds - len(usable) % 2))
    for name in nodes:
        subject = f"{fabric.name} {name}{_on(fabric, rail)}"
        expected = f"measured with {max(1, partners)} others"
        if name not in usable:
            error = pods[rail, name].error if (rail, name) in pods else "none was started"
            why, remedy = f"There is no pod to measure with: {error}.", CAUSES["pod"][1]
            findings.append(Finding("bandwidth.measured", subject, UNKNOWN, "with none", expected, why, remedy))
        elif len(met[name]) < max(1, partners):
            why, remedy = (CAUSES["not_run"][0], CAUSES["not_run"][1]) if partners > 0 else ("No other node has a pod to measure with.", CAUSES["pod"][1])
            findings.append(Finding("bandwidth.measured", subject, UNKNOWN, f"with {len(met[name])}", expected, why, remedy))
    return findings


def _pair(fabric: Fabric, pair: PairResult, pods: typing.Mapping[End, RdmaPod], shares: "Shares", best: typing.Optional[float]) -> typing.List[Finding]:
    subject, tcp = subject_of(fabric, pair), pair.transport == "TCP"
    findings = [_measured(subject, pair)] if tcp else [_ping(subject, pair), _measured(subject, pair)]
    if pair.average_gbps is not None and (not tcp or fabric.line_rate.floor_gbps is not None):
        ends = [pods[pair.rail, name] for name in (pair.client, pair.server) if (pair.rail, name) in pods]
        findings.append(_floor(subject, fabric, pair.average_gbps, ends, shares))
        if best is not None and not tcp:
            findings.append(_fleet(subject, fabric, pair.average_gbps, best))
    if fabric.bandwidth.sweep and not tcp:
        findings.append(_sweep(subject, pair))
    return findings


def _ping(subject: str, pair: PairResult) -> Finding:
    expected = f"{PINGS} round trips, exit code 0"
    measured = f"{pair.pings if pair.pings is not None else 'no'} round trips" + (f"; {pair.ping_evidence}" if pair.ping_evidence else "")
    if pair.pings is not None and pair.pings >= PINGS and not pair.ping_failure:
        return ok("bandwidth.rping", subject, measured, expected)
    if pair.ping_failure:
        why, remedy = CAUSES.get(pair.ping_failure, CAUSES["exit_code"])
        return Finding("bandwidth.rping", subject, FAIL, measured, expected, why, remedy)
    if pair.pings is None:
        return Finding("bandwidth.rping", subject, UNKNOWN, measured, expected, CAUSES["not_run"][0], CAUSES["not_run"][1])
    return Finding("bandwidth.rping", subject, FAIL, measured, expected, "Fewer round trips than asked for, without an error.", "Run the stage again.")


def _measured(subject: str, pair: PairResult) -> Finding:
    expected = "an average in Gb/s, exit code 0"
    # a figure beside a failure is none: a killed server leaves a perfect table and exit code 1
    if pair.average_gbps is not None and pair.average_gbps > 0 and not pair.failure:
        how = f"TCP, {pair.streams} streams at once" if pair.transport == "TCP" else f"{pair.message_bytes} bytes x {pair.iterations}"
        figures = f"{_gbps(pair.average_gbps)} average, {how}"
        return ok("bandwidth.measured", subject, figures, expected)
    why, remedy = CAUSES.get(pair.failure, CAUSES["exit_code"])
    status: typing.Literal["unknown", "fail"] = UNKNOWN if pair.failure in ("ping", "not_run", "pod") else FAIL
    return Finding("bandwidth.measured", subject, status, pair.evidence or "nothing", expected, why, remedy)


def _sweep(subject: str, pair: PairResult) -> Finding:
    expected = "an average in Gb/s for each message size"
    if pair.sweep and not pair.sweep_failure:
        return ok("bandwidth.sweep", subject, "; ".join(f"{row.message_bytes} bytes: {_gbps(row.average_gbps)}" for row in pair.sweep), expected)
    why = "The sweep failed, though the measurement of one size worked." if pair.sweep_failure else "The measurement before it failed."
    remedy = "Raise pods.limit_seconds if it was stopped; otherwise see the text beside 'measured'."
    return Finding("bandwidth.sweep", subject, UNKNOWN, pair.sweep_failure or "nothing", expected, why, remedy)


#: how many virtual functions that measure at the same time share a port (the PCI address of its function), or a card (that address less the function)
Shares = typing.Mapping[typing.Tuple[str, str], int]


def shares_of(fabric: Fabric, pods: typing.Iterable[RdmaPod]) -> Shares:
    """By node, and port or card."""
    shares: typing.Dict[typing.Tuple[str, str], int] = collections.Counter()
    if fabric.bandwidth.rails == "parallel":
        for pod in pods:
            if pod.fabric == fabric.name and pod.physical_function and not pod.error:
                shares[pod.node, pod.physical_function] += 1
                shares[pod.node, _card(pod.physical_function)] += 1
    return shares


def _card(address: str) -> str:
    return address.rpartition(".")[0]


def floor_of(fabric: Fabric, ends: typing.Sequence[RdmaPod], shares: Shares) -> typing.Tuple[typing.Optional[float], str]:
    """The floor in Gb/s, and how it comes about; None where neither the intent nor the pods' links say enough.

    :param ends: the two pods of the pair
    """
    rule = fabric.line_rate
    if rule.floor_gbps is not None:
        return rule.floor_gbps, f"absolute floor of the intent: {_gbps(rule.floor_gbps)}; reason: {rule.reason or 'none given'}"
    # without the ports' rate there is nothing to take a fraction of
    if len(ends) < 2 or any(pod.rate_gbps is None for pod in ends):
        return None, "the rate of both ports is not known"
    limits: typing.List[typing.Tuple[float, str]] = []
    for pod in ends:
        address = pod.physical_function or ""
        for what, rate, shared in (("port", pod.rate_gbps, address), ("PCIe", pod.pcie_gbps, _card(address))):
            if rate is not None:
                number = shares.get((pod.node, shared), 1)
                share = f" / {number} VFs at once" if number > 1 else ""
                limits.append((rate / number, f"{what} of {pod.node} {rate:g}{share}"))
    # a link carries its rate in each direction
    slowest, ways = min(limits)[0], 2 if fabric.bandwidth.directions == "at_once" else 1
    double = "2 x " if ways == 2 else ""
    return ways * rule.fraction * slowest, f"{double}{rule.fraction:g} x {slowest:g} Gb/s, the slowest of: {', '.join(text for _value, text in limits)} Gb/s"


def _floor(subject: str, fabric: Fabric, average: float, ends: typing.Sequence[RdmaPod], shares: Shares) -> Finding:
    floor, text = floor_of(fabric, ends, shares)
    if floor is None:
        remedy = "See why the pods' sysfs shows no rate, or give line_rate.floor_gbps with a reason."
        return Finding("bandwidth.floor", subject, UNKNOWN, _gbps(average), "a floor", f"No floor can be set: {text}.", remedy)
    if average >= floor:
        return ok("bandwidth.floor", subject, _gbps(average), f">= {_gbps(floor)} ({text})")
    bound = "; ".join(f"{pod.node}: {pod.binding}" for pod in ends if pod.binding)
    why = "The pair is slower than its link allows for." + (f" It ran {bound}." if bound else "")
    remedy = "See bandwidth.suspect for the end at fault; there look at PCIe speed and width, NUMA node, MTU and the link's error counters."
    return Finding("bandwidth.floor", subject, FAIL, _gbps(average), f">= {_gbps(floor)} ({text})", why, remedy)


def _fleet(subject: str, fabric: Fabric, average: float, best: float) -> Finding:
    fraction = fabric.line_rate.fleet_fraction
    expected = f">= {_gbps(fraction * best)} ({fraction:g} of the best pair of the rail, {_gbps(best)})"
    if average >= fraction * best:
        return ok("bandwidth.fleet", subject, _gbps(average), expected)
    why = "The pair is slower than others on the same rail, so one of its ends or the path between them is at fault."
    return Finding("bandwidth.fleet", subject, FAIL, _gbps(average), expected, why, "See bandwidth.suspect for the end at fault.")


# Suspects


def _places(fabric: Fabric, facts: Facts) -> typing.Dict[End, Place]:
    """Where each end is, as far as it is known."""
    hcas = {name: observed.value for name, observed in facts.hcas.items() if observed.value is not None}
    subnets = {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None}
    return {(place.rail, place.node): place for place in places(resolve(fabric, hcas, subnets), facts.topologies).values()}


def _suspects(
    fabric: Fabric, pods: typing.Mapping[End, RdmaPod], pairs: typing.Sequence[PairResult], where: typing.Mapping[End, Place]
) -> typing.List[Finding]:
    """What the pairs that failed have in common, told from those that passed."""
    if not pairs:
        return []
    ends = {end: where.get(end) or Place(end[1], pod.physical_function or f"rail {end[0]}", end[0]) for end, pod in pods.items()}
    expected = "nothing that failing pairs have in common"
    trials = [
        trial(fabric.name, ends[pair.rail, pair.client], ends[pair.rail, pair.server], passed)
        for pair, passed in zip(pairs, _passed(fabric, pods, pairs))
        if (pair.rail, pair.client) in ends and (pair.rail, pair.server) in ends
    ]
    if all(one.passed for one in trials):
        return [ok("bandwidth.suspect", fabric.name, f"{len(trials)} measurements passed", expected)]
    findings = []
    for suspect in suspects(trials):
        measured = f"{suspect.failed} of {suspect.trials} measurements failed"
        names = _names(suspect.elements)
        if not names:
            some = ", ".join(f"{one.client} -> {one.server}" for one in suspect.explained[:8])
            why = f"What these have in common, others that passed have as well: {some}."
            remedy = "See the cause beside each of them; it may be another one for each, or come and go."
            findings.append(Finding("bandwidth.suspect", fabric.name, FAIL, measured, expected, why, remedy))
            continue
        text = " or ".join(names)
        told = [_told(place, pods[end]) for end, place in ends.items() if f"{place.node} {place.hca}" in text]
        why = "What failed went over it, and what did not go over it passed or has another cause." if suspect.trials < len(trials) else "Nothing passed."
        if len(names) > 1:
            why += " Which of these it is cannot be told from the pairs that there are: measure with a further node."
        remedy = "Look there at PCIe speed and width, link width and speed, error counters, MTU and the VF's state."
        findings.append(Finding("bandwidth.suspect", f"{fabric.name} {text}", FAIL, measured, expected, " ".join((why, *told[:4])), remedy))
    return findings


def _names(elements: typing.Sequence[Element]) -> typing.List[str]:
    """What is suspected, without what follows from the rest: a node whose one HCA is named, a fabric of which parts are."""
    hcas = [element.name for element in elements if element.kind == "hca"]
    nodes = [element.name for element in elements if element.kind == "node" and not any(name.startswith(f"{element.name} ") for name in hcas)]
    others = [f"{element.kind} {element.name}" for element in elements if element.kind not in ("hca", "node", "client", "server", "fabric")]
    return [*hcas, *nodes, *others] or [f"{element.kind} {element.name}" for element in elements]


def _told(place: Place, pod: RdmaPod) -> str:
    """Where an HCA is."""
    leaf = f", leaf {place.leaf} port {place.leaf_port}" if place.leaf else ""
    return f"{place.node} {place.hca}: {pod.physical_function or 'PCI address not known'}, rail {place.rail}{leaf}."


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
