# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the floor of each pair, which is the lowest bandwidth that passes, and the highest bandwidth that is
plausible.

Both depend on the rates that the links of a pair support, and on the best pair whose links support the same rate. A
floor never depends on the rate to which a link has trained down, because it would drop with the fault.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma, carries_roce
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.pairs import End, PairResult
from ..._model.node.hca import NodeHcas, Port
from ..fleet.line_rates import LineRates
from ..fleet.paths.packets import compute_data_share, find_least_mtu
from ..schedule.wider import widen_amount
from .end_rates import NO_POD, EndRate, compute_end_rate, compute_shares

#: of a rate: clocks of processors, by which the tools measure time, are a little off
CLOCKS = 1.01
#: of what packets leave of a link for data, a faultless pair reaches at least this share
_OF_DATA = 0.97
#: of the best TCP figure of a network. What processors and their load do to TCP explains a half, and no tenth
TCP_WARN, TCP_FAIL = 0.5, 0.1
#: of the current rate of a link, and in Gb/s: to less than both no processor limits TCP, also not without offloads
TCP_SHARE, TCP_GBPS = 0.05, 5.0


class Doubt(typing.NamedTuple):
    """The reason why a figure is not a valid measurement.

    :ivar kind: ``amount``: other messages or queue pairs than requested. ``transport``: not by RDMA. ``rate``: above
        what the link or the measurement permits
    :ivar text: the reason, as a sentence
    """

    kind: typing.Literal["amount", "transport", "rate"]
    text: str


@dataclasses.dataclass(frozen=True)
class Best:
    """The best pair of a group of pairs whose links could carry the same rate.

    :ivar average: average rate of this pair in Gb/s
    :ivar now: current rate of the slower of its links in Gb/s; None if unknown
    :ivar queue_pairs: number of queue pairs of its measurement
    """

    average: float
    now: typing.Optional[float]
    queue_pairs: int = 1


#: a rail, or None for all pairs between two rails, and what the links of a pair could carry; None where that is not
#: known
Kind = tuple[typing.Optional[int], typing.Optional[float]]


class PairLimits:
    """The limits by which each pair of one fabric is judged.

    :ivar pods: pods of the fabric by rail and node
    :ivar nodes: HCAs of the nodes, including virtual functions, as far as they are known
    :ivar fabric: the fabric
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
            self._ends[end] = compute_end_rate(fabric, pod, found, shares)

    def ends(self, pair: PairResult) -> list[EndRate]:
        """Return the rates of the two ends of a pair: of the client's HCA, then of the server's. If an end has no pod,
        its rate is unknown.
        """
        return [self._ends.get(end, EndRate(unknown=NO_POD, name=end[1])) for end in (pair.client_end, pair.server_end)]

    def own_rates(self) -> dict[End, float]:
        """Return the rate in Gb/s that each end supports by itself, by rail and node. Ends whose rate is unknown are
        left out.
        """
        return {
            end: min(limit.gbps for limit in rate.could)
            for end, rate in self._ends.items()
            if rate.could and not rate.unknown
        }

    def ports(self, end: End) -> tuple[Port, ...]:
        """Return the ports of the physical function that an end uses in its measurements. The result is empty if its
        node does not report them.

        :param end: rail and node
        """
        pod, node = self.pods.get(end), self.nodes.get(end[1])
        hca = node.at(pod.physical_function or pod.pci) if node and pod else None
        return hca.all_ports if hca else ()

    def floor(self, pair: PairResult) -> tuple[typing.Optional[float], str]:
        """Return the lowest bandwidth in Gb/s that passes for a pair, and the derivation of this value as text. If the
        rate of a link is unknown and the intent sets no absolute floor, return None and the reason.
        """
        rule = self.fabric.line_rate
        double = "2 x " if self.ways == 2 else ""
        if rule.floor_gbps is not None:
            return (
                self.ways * rule.floor_gbps,
                f"{double and f'{double}the '}absolute floor of the intent: {format_gbps(rule.floor_gbps)}; reason:"
                f" {rule.reason or 'none given'}",
            )
        ends = self.ends(pair)
        unknown: dict[str, dict[str, None]] = {}
        for end in ends:
            if end.unknown:
                unknown.setdefault(end.unknown, {})[end.name] = None
        if unknown:
            return None, "; ".join(
                f"the highest rates of the links of {' and '.join(names)} are unknown: {reason}"
                if len(names) > 1
                else f"the highest rate of the link of {' and '.join(names)} is unknown: {reason}"
                for reason, names in unknown.items()
            )
        limits = [limit for end in ends for limit in end.could]
        slowest, most = min(limits).gbps, self.limit_by_packets(pair)
        if most is not None and most < rule.fraction * slowest:
            return (
                self.ways * most,
                f"{double}{_OF_DATA:g} of what packets of {pair.packet_bytes} bytes leave for data, which is less than"
                f" {rule.fraction:g} of the lowest of: {', '.join(limit.text for limit in limits)} Gb/s",
            )
        return (
            self.ways * rule.fraction * slowest,
            (
                f"{double}{rule.fraction:g} x {slowest:g} Gb/s, the lowest of:"
                f" {', '.join(limit.text for limit in limits)} Gb/s"
            ),
        )

    def limit_by_packets(self, pair: PairResult) -> typing.Optional[float]:
        """Return the rate in Gb/s that a faultless pair reaches in one direction with packets of its size. Return None
        if the size or the rate of a link is unknown, on InfiniBand, whose headers are small, and if the intent has an
        MTU for larger packets, because the small packets are then a fault.
        """
        size, wanted = pair.packet_bytes, find_least_mtu([self.fabric])
        ends = self.ends(pair)
        if not size or not carries_roce(self.fabric) or (wanted or 0) > size or not all(end.could for end in ends):
            return None
        addresses = [self.pods[end].address or "" for end in (pair.client_end, pair.server_end) if end in self.pods]
        share = compute_data_share(size, bool(self.fabric.network.vlan), any(":" in address for address in addresses))
        # the first limit of an end is that of its port, and PCIe has packets of its own
        return _OF_DATA * share * min(end.could[0].gbps for end in ends)

    @property
    def ways(self) -> int:
        """Return the number of directions in which a pair is measured at the same time: 2 or 1. With two directions the
        floor is twice as high, since a link carries its full rate in each direction.
        """
        return 2 if self.fabric.bandwidth.directions == "at_once" else 1

    def kind(self, pair: PairResult) -> Kind:
        """Return the key of the group of pairs with which a pair is compared: its rail (None for a pair between two
        rails), and the highest rate in Gb/s that its slowest link supports (None if unknown).
        """
        ends, rail = self.ends(pair), None if pair.between_rails else pair.rail
        if any(end.unknown or not end.could for end in ends):
            return rail, None
        return rail, round(min(limit.gbps for end in ends for limit in end.could), 3)

    def now(self, pair: PairResult) -> typing.Optional[float]:
        """Return the current rate of the slower link of a pair in Gb/s, or None if the rate of a link is unknown."""
        rates = [end.now for end in self.ends(pair)]
        return None if None in rates else min(rate for rate in rates if rate is not None)

    def best(self, pairs: typing.Iterable[PairResult]) -> dict[Kind, Best]:
        """Return the best pair of each group of comparable pairs, by the key of the group that ``kind`` returns. Failed
        pairs and invalid measurements do not count.
        """
        best: dict[Kind, Best] = {}
        for pair in pairs:
            if pair.average_gbps is not None and not pair.failure and not self.doubt(pair):
                kind = self.kind(pair)
                if kind not in best or pair.average_gbps > best[kind].average:
                    best[kind] = Best(pair.average_gbps, self.now(pair), pair.queue_pairs or 1)
        return best

    def doubt(self, pair: PairResult, more_than: typing.Optional[int] = None) -> typing.Optional[Doubt]:
        """Return why the figure of a pair is not a valid measurement. Return None if it is valid, or if the pair has no
        figure.

        :param more_than: number of queue pairs of the first measurement, if the figure is that of a repetition with
            more of them; None for the first measurement
        """
        amount = widen_amount(self.fabric, more_than) if more_than is not None else None
        if amount is not None:
            return self._explain_invalid_figure(
                pair, amount.message_bytes, amount.iterations, "more queue pairs", "more queue pairs"
            )
        wanted = self.fabric.pods
        if (
            pair.average_gbps is not None
            and pair.transport == "RDMA"
            and wanted.queue_pairs not in (None, pair.queue_pairs)
        ):
            return Doubt(
                "amount",
                f"The figure is from {pair.queue_pairs or 'an unknown number of'} queue pairs, but {wanted.queue_pairs}"
                " were requested (pods.queue_pairs).",
            )
        return self._explain_invalid_figure(
            pair, wanted.message_bytes, wanted.iterations, "pods.message_bytes", "pods.iterations"
        )

    def doubt_wider(self, pair: PairResult) -> str:
        """Return why the repetition of a pair with more queue pairs gave no valid figure; empty if its figure is
        valid.
        """
        found = pair.wider
        if found is None or not found.average_gbps:
            return (found.why if found is not None else "") or "The pair was not measured with more queue pairs."
        wanted = widen_amount(self.fabric, pair.queue_pairs)
        if wanted is None or found.queue_pairs != wanted.queue_pairs:
            return (
                f"The figure is from {found.queue_pairs} queue pairs, but {wanted.queue_pairs if wanted else 'none'}"
                " were requested."
            )
        doubt = self._explain_invalid_figure(
            _with_more(pair), wanted.message_bytes, wanted.iterations, "more queue pairs", "more queue pairs"
        )
        return doubt.text if doubt is not None else ""

    def proven(self, pair: PairResult) -> typing.Optional[float]:
        """Return the rate in Gb/s that a pair reached when it was measured with more queue pairs. Return None if that
        measurement is missing or invalid.
        """
        return None if self.doubt_wider(pair) or pair.wider is None else pair.wider.average_gbps

    def best_of(self, pair: PairResult) -> PairResult:
        """Return the pair with the higher of its valid figures. If the figure with more queue pairs is higher, it
        replaces the first one.
        """
        proven = self.proven(pair)
        return _with_more(pair) if proven is not None and proven > (pair.average_gbps or 0.0) else pair

    def _explain_invalid_figure(
        self, pair: PairResult, message_bytes: int, iterations: typing.Optional[int], of_bytes: str, of_iterations: str
    ) -> typing.Optional[Doubt]:
        """Return why the figure of a pair is not a valid measurement, apart from its number of queue pairs: it has
        another transport, size or number of messages than requested, or an impossible rate. Return None if it is valid,
        or if the pair has no figure.

        :param message_bytes: requested size of a message in bytes
        :param iterations: requested number of messages; None if the measurement is limited by time
        :param of_bytes: name of the setting that requests ``message_bytes``, for the text
        :param of_iterations: name of the setting that requests ``iterations``, for the text
        """
        average = pair.average_gbps
        if average is None:
            return None
        if pair.transport != "RDMA" and carries_rdma(self.fabric):
            return Doubt(
                "transport",
                "At least 1 pod of this pair had no usable RDMA device, so the stage measured the bandwidth of"
                f" {pair.transport}. This figure does not show the bandwidth of RDMA.",
            )
        if pair.transport == "RDMA":
            if pair.message_bytes != message_bytes:
                return Doubt(
                    "amount",
                    f"The figure is from messages of {pair.message_bytes or 'an unknown number of'} bytes, but"
                    f" {message_bytes} bytes were requested ({of_bytes}).",
                )
            # of each queue pair, or of all together, as the version of perftest has it
            told = (iterations, iterations * (pair.queue_pairs or 1)) if iterations is not None else (pair.iterations,)
            if not pair.iterations or pair.iterations not in told:
                asked = (
                    f"{iterations} were requested ({of_iterations})"
                    if iterations is not None
                    else "a figure needs at least one message"
                )
                count = "an unknown number of" if pair.iterations is None else pair.iterations
                return Doubt("amount", f"The figure is from {count} messages, but {asked}.")
            # both have two digits behind the point, or six
            if pair.peak_gbps is not None and average > pair.peak_gbps * CLOCKS + 0.01:
                return Doubt(
                    "rate", f"The average is above the peak of the same measurement, {format_gbps(pair.peak_gbps)}."
                )
        limits = [limit for end in self.ends(pair) for limit in end.most]
        least = min(limits, default=None)
        if least is not None and average > self.ways * least.gbps * CLOCKS:
            return Doubt(
                "rate",
                f"The figure is above the capacity of the link: {least.text}"
                f" Gb/s{', in each direction' if self.ways == 2 else ''}.",
            )
        return None


def _with_more(pair: PairResult) -> PairResult:
    """Return the pair with its bandwidth replaced by that of its repetition with more queue pairs. Return it unchanged
    if it was not repeated.
    """
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


def in_pods(pods: typing.Iterable[RdmaPod]) -> dict[tuple[str, str], float]:
    """Return the port rates in Gb/s that were read in the pods, by node and PCI address of the HCA."""
    return {
        (pod.node, pod.physical_function or pod.pci or ""): pod.rate_gbps for pod in pods if pod.rate_gbps is not None
    }


def select_read_hcas(hcas: typing.Mapping[str, typing.Any]) -> dict[str, NodeHcas]:
    """Return the HCAs of the nodes that were read without an error, by the name of the node.

    :param hcas: fact ``hcas`` of each node
    """
    return {name: seen.value for name, seen in hcas.items() if seen.value is not None and seen.error is None}


def format_gbps(value: float) -> str:
    """Return a rate as text with its unit, such as ``381.2 Gb/s``.

    :param value: rate in Gb/s
    """
    return f"{value:.2f} Gb/s" if value >= 1 else f"{value:.4f} Gb/s"
