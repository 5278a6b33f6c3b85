# SPDX-License-Identifier: GPL-3.0-or-later

"""How fast a pair must be, and how fast it can't be: by what its links could carry, and among pairs whose links could
carry the same.

A floor never comes from what a link trained down to: it would sink with the fault.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma
from ..._model.measurement.bandwidth import End, PairResult, RdmaPod
from ..._model.node.hca import NodeHcas, Port
from ..fleet.line_rates import HcaRates, LineRates, compute_most_of_pcie
from ..schedule.wider import wider

#: of a rate: clocks of processors, by which the tools measure time, are a little off
CLOCKS = 1.01
#: of the best TCP figure of a network. What processors and their load do to TCP explains a half, and no tenth
TCP_WARN, TCP_FAIL = 0.5, 0.1

#: how many virtual functions that measure at the same time share a port (the PCI address of its function), or a card
#: (that address less the function)
Shares = typing.Mapping[tuple[str, str], int]


class Limit(typing.NamedTuple):
    """In Gb/s, and for a reader."""

    gbps: float
    text: str


@dataclasses.dataclass(frozen=True)
class EndRate:
    """The rate that one end of a pair can carry.

    :ivar could: its link, its PCIe link and its share of both, where nothing is broken
    :ivar unknown: why no floor can be set; empty where one can
    :ivar most: what no figure can be above: its link and its PCIe link as they run
    :ivar now: the rate of its link, as far as it is known
    """

    could: tuple[Limit, ...] = ()
    unknown: str = ""
    most: tuple[Limit, ...] = ()
    now: typing.Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Best:
    """The best pair among those whose links could carry the same.

    :ivar now: the rate of its link, as far as it is known
    :ivar queue_pairs: that it was measured with
    """

    average: float
    now: typing.Optional[float]
    queue_pairs: int = 1


#: a rail, or None for all pairs between two rails, and what the links of a pair could carry; None where that is not
#: known
Kind = tuple[typing.Optional[int], typing.Optional[float]]


class PairLimits:
    """The limits by which each pair of one fabric is judged.

    :ivar pods: the pod of each end
    :ivar nodes: HCAs of the nodes, virtual ones too, as far as they are known
    """

    def __init__(
        self,
        fabric: Fabric,
        pods: typing.Mapping[End, RdmaPod],
        rates: LineRates,
        nodes: typing.Optional[typing.Mapping[str, NodeHcas]] = None,
    ) -> None:
        self.fabric, self.pods, self.nodes = fabric, pods, nodes or {}
        shares = compute_shares(fabric, pods.values())
        by_rail = {(node, found.rail): found for (node, _address), found in rates.items()}
        self._ends = {}
        for end, pod in pods.items():
            # an interface that pods share has no function of the pod's own
            found = rates.get((pod.node, pod.physical_function or pod.pci or "")) or by_rail.get((pod.node, pod.rail))
            self._ends[end] = _compute_end_rate(fabric, pod, found, shares)

    def ends(self, pair: PairResult) -> list[EndRate]:
        """Of its client and its server."""
        return [
            self._ends.get(end, EndRate(unknown=f"{end[1]} has no pod")) for end in (pair.client_end, pair.server_end)
        ]

    def ports(self, end: End) -> tuple[Port, ...]:
        """Return the ports of the physical function that an end measures over, as far as its node shows them."""
        pod, node = self.pods.get(end), self.nodes.get(end[1])
        hca = node.at(pod.physical_function or pod.pci) if node and pod else None
        return hca.all_ports if hca else ()

    def floor(self, pair: PairResult) -> tuple[typing.Optional[float], str]:
        """Return the floor in Gb/s, and how it comes about; None where neither the intent nor the links say enough."""
        rule = self.fabric.line_rate
        if rule.floor_gbps is not None:
            return (
                rule.floor_gbps,
                f"absolute floor of the intent: {gbps(rule.floor_gbps)}; reason: {rule.reason or 'none given'}",
            )
        ends = self.ends(pair)
        unknown = [end.unknown for end in ends if end.unknown]
        if unknown:
            return None, "; ".join(dict.fromkeys(unknown))
        limits = [limit for end in ends for limit in end.could]
        slowest, ways = min(limits).gbps, self.ways
        double = "2 x " if ways == 2 else ""
        return (
            ways * rule.fraction * slowest,
            (
                f"{double}{rule.fraction:g} x {slowest:g} Gb/s, the slowest of:"
                f" {', '.join(limit.text for limit in limits)} Gb/s"
            ),
        )

    @property
    def ways(self) -> int:
        """A link carries its rate in each direction."""
        return 2 if self.fabric.bandwidth.directions == "at_once" else 1

    def kind(self, pair: PairResult) -> Kind:
        """Among whom a pair is compared."""
        ends, rail = self.ends(pair), None if pair.between_rails else pair.rail
        if any(end.unknown or not end.could for end in ends):
            return rail, None
        return rail, round(min(limit.gbps for end in ends for limit in end.could), 3)

    def now(self, pair: PairResult) -> typing.Optional[float]:
        """Return the slower of its links, where both are known."""
        rates = [end.now for end in self.ends(pair)]
        return None if None in rates else min(rate for rate in rates if rate is not None)

    def best(self, pairs: typing.Iterable[PairResult]) -> dict[Kind, Best]:
        """Return the best average of each kind, of figures that are some."""
        best: dict[Kind, Best] = {}
        for pair in pairs:
            if pair.average_gbps is not None and not pair.failure and not self.doubt(pair):
                kind = self.kind(pair)
                if kind not in best or pair.average_gbps > best[kind].average:
                    best[kind] = Best(pair.average_gbps, self.now(pair), pair.queue_pairs or 1)
        return best

    def doubt(self, pair: PairResult, more_than: typing.Optional[int] = None) -> str:
        """Return why the figure of a pair is no measurement; empty where it may be one.

        :param more_than: queue pairs of the first figure, where this one was measured with more
        """
        amount = wider(self.fabric, more_than) if more_than is not None else None
        if amount is not None:
            return self._doubt(pair, amount.message_bytes, amount.iterations, "more queue pairs", "more queue pairs")
        wanted = self.fabric.pods
        if (
            pair.average_gbps is not None
            and pair.transport == "RDMA"
            and wanted.queue_pairs not in (None, pair.queue_pairs)
        ):
            return (
                f"It is of {pair.queue_pairs or 'an unknown number of'} queue pairs, and {wanted.queue_pairs} were"
                " asked for (pods.queue_pairs)."
            )
        return self._doubt(pair, wanted.message_bytes, wanted.iterations, "pods.message_bytes", "pods.iterations")

    def doubt_wider(self, pair: PairResult) -> str:
        """Return why the figure with more queue pairs is no measurement; empty where it may be one."""
        found = pair.wider
        if found is None or not found.average_gbps:
            return (found.why if found is not None else "") or "It was not measured."
        wanted = wider(self.fabric, pair.queue_pairs)
        if wanted is None or found.queue_pairs != wanted.queue_pairs:
            return (
                f"It is of {found.queue_pairs} queue pairs, and {wanted.queue_pairs if wanted else 'none'} were to be"
                " measured."
            )
        return self._doubt(
            _with_more(pair), wanted.message_bytes, wanted.iterations, "more queue pairs", "more queue pairs"
        )

    def proven(self, pair: PairResult) -> typing.Optional[float]:
        """Return the rate that a pair carried with more queue pairs, in Gb/s; None where it was not measured with more,
        or that is no measurement."""
        return None if self.doubt_wider(pair) or pair.wider is None else pair.wider.average_gbps

    def best_of(self, pair: PairResult) -> PairResult:
        """Return the pair with the figure that tells most of its path: the one with more queue pairs, where that is
        higher."""
        proven = self.proven(pair)
        return _with_more(pair) if proven is not None and proven > (pair.average_gbps or 0.0) else pair

    def _doubt(
        self, pair: PairResult, message_bytes: int, iterations: typing.Optional[int], of_bytes: str, of_iterations: str
    ) -> str:
        """:param message_bytes: that were asked for, and by what"""
        average = pair.average_gbps
        if average is None:
            return ""
        if pair.transport != "RDMA" and carries_rdma(self.fabric):
            return f"It is of {pair.transport}, and the pods of this fabric are to have RDMA."
        if pair.transport == "RDMA":
            if pair.message_bytes != message_bytes:
                return (
                    f"It is of messages of {pair.message_bytes} bytes, and {message_bytes} were asked for ({of_bytes})."
                )
            # of each queue pair, or of all together, as the version of perftest has it
            told = (iterations, iterations * (pair.queue_pairs or 1)) if iterations is not None else (pair.iterations,)
            if not pair.iterations or pair.iterations not in told:
                asked = (
                    f"{iterations} were asked for ({of_iterations})"
                    if iterations is not None
                    else "a figure needs one at least"
                )
                return f"It is of {pair.iterations} messages, and {asked}."
            # both have two digits behind the point, or six
            if pair.peak_gbps is not None and average > pair.peak_gbps * CLOCKS + 0.01:
                return f"Its average is above its peak of {gbps(pair.peak_gbps)}."
        limits = [limit for end in self.ends(pair) for limit in end.most]
        least = min(limits, default=None)
        if least is not None and average > self.ways * least.gbps * CLOCKS:
            return (
                f"It is above what the link can carry: {least.text}"
                f" Gb/s{', in each direction' if self.ways == 2 else ''}."
            )
        return ""


def _with_more(pair: PairResult) -> PairResult:
    """Return the pair as it was measured with more queue pairs."""
    found = pair.wider
    if found is None:
        return pair
    return dataclasses.replace(
        pair,
        average_gbps=found.average_gbps,
        peak_gbps=found.peak_gbps,
        message_bytes=found.message_bytes,
        iterations=found.iterations,
        queue_pairs=found.queue_pairs,
    )


def _compute_end_rate(fabric: Fabric, pod: RdmaPod, found: typing.Optional[HcaRates], shares: Shares) -> EndRate:
    if pod.error:
        return EndRate(unknown=f"{pod.node} has no pod")
    expected = fabric.line_rate.expected_gbps
    if found is None and expected is not None:
        found = HcaRates("", pod.rail, pod.rate_gbps, expected, "line_rate.expected_gbps")
    if found is None:
        unknown = f"what the link of {pod.node} could carry is not known: node_info shows no HCA for its pod"
        own = (Limit(pod.rate_gbps, f"port of {pod.node} {pod.rate_gbps:g}"),) if pod.rate_gbps else ()
        return EndRate((), unknown, own, pod.rate_gbps)
    address, hca = pod.physical_function or pod.pci or "", found.pcie
    rates = [rate for rate in (pod.rate_gbps, found.now, found.could) if rate is not None]
    most: tuple[Limit, ...] = (Limit(max(rates), f"port of {pod.node} {max(rates):g}"),) if rates else ()
    if pod.pcie_gbps is not None and hca is not None:
        carried = compute_most_of_pcie(pod.pcie_gbps, hca.payload)
        most += (Limit(carried, f"PCIe of {pod.node} {carried:.4g}"),)
    now = found.now if found.now is not None else pod.rate_gbps
    if found.could is None:
        return EndRate((), f"what the link of {pod.node} {found.hca} could carry is not known: {found.why}", most, now)
    limits = [("port", found.data * found.could, address)]
    if hca is not None and hca.could is not None:
        limits.append(("PCIe", hca.could, _strip_pci_function(address)))
    could = []
    for what, rate, shared in limits:
        number = shares.get((pod.node, shared), 1)
        could.append(
            Limit(rate / number, f"{what} of {pod.node} {rate:.5g}{f' / {number} VFs at once' if number > 1 else ''}")
        )
    if fabric.network.max_tx_rate:
        could.append(
            Limit(fabric.network.max_tx_rate / 1000, f"network.max_tx_rate {fabric.network.max_tx_rate / 1000:g}")
        )
    return EndRate(tuple(could), "", most, now)


def compute_shares(fabric: Fabric, pods: typing.Iterable[RdmaPod]) -> Shares:
    """Return the shares by node, and port or card."""
    shares: dict[tuple[str, str], int] = collections.Counter()
    if fabric.bandwidth.rails == "parallel":
        for pod in pods:
            if pod.fabric == fabric.name and pod.physical_function and not pod.error:
                shares[pod.node, pod.physical_function] += 1
                shares[pod.node, _strip_pci_function(pod.physical_function)] += 1
    return shares


def _strip_pci_function(address: str) -> str:
    return address.rpartition(".")[0]


def in_pods(pods: typing.Iterable[RdmaPod]) -> dict[tuple[str, str], float]:
    """Rates of ports that pods saw, by node and PCI address of the HCA."""
    return {
        (pod.node, pod.physical_function or pod.pci or ""): pod.rate_gbps for pod in pods if pod.rate_gbps is not None
    }


def read(hcas: typing.Mapping[str, typing.Any]) -> dict[str, NodeHcas]:
    """Read the nodes whose HCAs could be read."""
    return {name: seen.value for name, seen in hcas.items() if seen.value is not None and seen.error is None}


def gbps(value: float) -> str:
    """For a reader."""
    return f"{value:.2f} Gb/s" if value >= 1 else f"{value:.4f} Gb/s"
