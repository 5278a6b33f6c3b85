# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the rate that the links of one end of a pair support."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import RdmaPod
from ..fleet.line_rates import HcaRates
from .pcie_rates import compute_most_of_pcie

#: how many virtual functions that measure at the same time share a port (the PCI address of its function), or a card
#: (that address less the function)
Shares = typing.Mapping[tuple[str, str], int]


class Limit(typing.NamedTuple):
    """A limit of the bandwidth of a pair.

    :ivar gbps: rate in Gb/s
    :ivar text: description of the limit for a finding
    """

    gbps: float
    text: str


#: why no floor is known for an end without a usable pod
NO_POD = "its pod is missing or not usable (finding bandwidth.pod)"


@dataclasses.dataclass(frozen=True)
class EndRate:
    """The rates of one end of a pair, that is of one HCA with its pod. The floor of the pair is computed from the rates
    of both ends.

    :ivar could: rates of a faultless end: its link and its PCIe link, each divided by the VFs that share it, and the
        max_tx_rate of the fabric
    :ivar unknown: reason why no floor can be computed, without the name of the end; empty if it can be computed
    :ivar most: upper limits of a plausible bandwidth: the highest known rate of its port, or of all ports of its bond,
        and its PCIe link as trained
    :ivar now: current rate of its link in Gb/s; None if unknown
    :ivar name: node and HCA of the end, for texts; empty if ``unknown`` is empty
    """

    could: tuple[Limit, ...] = ()
    unknown: str = ""
    most: tuple[Limit, ...] = ()
    now: typing.Optional[float] = None
    name: str = ""


def compute_end_rate(fabric: Fabric, pod: RdmaPod, found: typing.Optional[HcaRates], shares: Shares) -> EndRate:
    """Return the rates of one end of a pair.

    :param pod: pod of the end
    :param found: rates of its HCA; None if they are unknown
    :param shares: number of VFs that share each port and each NIC
    """
    if pod.error:
        return EndRate(unknown=NO_POD, name=pod.node)
    expected = fabric.line_rate.expected_gbps
    if found is None and expected is not None:
        found = HcaRates("", pod.rail, pod.rate_gbps, expected, "line_rate.expected_gbps")
    if found is None:
        own = (Limit(pod.rate_gbps, f"port of {pod.node} {pod.rate_gbps:g}"),) if pod.rate_gbps else ()
        return EndRate((), "the module node_info reports no HCA for its pod", own, pod.rate_gbps, pod.node)
    address, hca = pod.physical_function or pod.pci or "", found.pcie
    rates = [rate for rate in (pod.rate_gbps, found.now, found.could) if rate is not None]
    most: tuple[Limit, ...] = ()
    if rates:
        port = "port" if found.links == 1 else f"bond of {found.links} ports"
        most = (Limit(max(rates) * found.links, f"{port} of {pod.node} {max(rates) * found.links:g}"),)
    if pod.pcie_gbps is not None and hca is not None:
        carried = compute_most_of_pcie(pod.pcie_gbps, hca.payload)
        most += (Limit(carried, f"PCIe of {pod.node} {carried:.4g}"),)
    now = found.now if found.now is not None else pod.rate_gbps
    if found.could is None:
        return EndRate((), format_clause(found.why), most, now, f"{pod.node} {found.hca}")
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
    """Return the number of VFs that are measured at the same time over one port, or over one NIC with its PCIe link.
    The key is a pair: the name of the node, and the PCI address of the port, or that of the NIC (without the function
    number). The result is empty unless the rails of the fabric are measured in parallel.
    """
    shares: dict[tuple[str, str], int] = collections.Counter()
    if fabric.bandwidth.rails == "parallel":
        for pod in pods:
            if pod.fabric == fabric.name and pod.physical_function and not pod.error:
                shares[pod.node, pod.physical_function] += 1
                shares[pod.node, _strip_pci_function(pod.physical_function)] += 1
    return shares


def _strip_pci_function(address: str) -> str:
    return address.rpartition(".")[0]
