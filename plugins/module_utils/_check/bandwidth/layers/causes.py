# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the limits that explain the loss of bandwidth at a layer, and describe what is known about both ends of the
pair.
"""

from __future__ import annotations

import typing

from ...._analysis.bandwidth.bounds import BandwidthBound, bound_by_far_cpus, bound_by_rate_limit
from ...._analysis.bandwidth.floors import PairLimits
from ...._model.base.phrases import count_of
from ...._model.measurement.bandwidth import LayerEnd, LayerName, LayerStep
from ...._model.node.hca import Hca, PcieLink
from .loss import IN_PODS, STEPS, Hcas

#: a limit explains a figure that reaches this much of it
_NEAR = 0.5


def _select_steps(layers: typing.Iterable[LayerName], steps: typing.Iterable[LayerStep]) -> list[LayerStep]:
    return [step for step in steps if step.layer in layers]


def _can_explain_loss(rate: typing.Optional[int], before: float, step: LayerStep, ways: int) -> bool:
    """Return whether a rate limit of a virtual function explains the bandwidth of a step.

    It does so if the limit is below the bandwidth of the step before, and if this step has no figure or reached more
    than half of the limit.

    :param rate: rate limit in Mb/s; None or 0 without a limit
    :param before: bandwidth of the step before, in Gb/s for one direction
    :param ways: number of directions that are measured at the same time
    """
    return (
        bool(rate)
        and rate is not None
        and rate / 1000 < before
        and (step.average_gbps is None or step.average_gbps / ways > _NEAR * rate / 1000)
    )


def _list_senders(ground: PairLimits, step: LayerStep) -> tuple[LayerEnd, ...]:
    """Return the ends of a step that send: the client, or client and server if both directions are measured at the same
    time. Only their rate limits count.

    :param ground: limits of the pairs of the fabric
    """
    return (step.client,) if ground.ways == 1 else (step.client, step.server)


def find_causes(
    ground: PairLimits, lost: typing.Sequence[LayerName], steps: typing.Sequence[LayerStep], before: float, hcas: Hcas
) -> list[BandwidthBound]:
    """Return the limits of both ends that explain why bandwidth is lost, each once with its text and remedy.

    The list is empty if no known limit explains the loss.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param lost: layers at which bandwidth may be lost
    :param steps: all steps of the pair
    :param before: bandwidth of the step before the loss, in Gb/s
    :param hcas: HCAs of each node, by node
    """
    causes: list[BandwidthBound] = []
    for step in _select_steps(lost, steps):
        ends = (step.client, step.server)
        if step.layer in ("vf_host", "vf_pod"):
            for end in _list_senders(ground, step):
                if _can_explain_loss(end.max_tx_rate, before / ground.ways, step, ground.ways):
                    seen = hcas.get(end.node)
                    bound = bound_by_rate_limit(
                        end.node, end.function, end.max_tx_rate or 0, seen.value if seen is not None else None
                    )
                    by_intent = ground.fabric.network.max_tx_rate == end.max_tx_rate
                    causes.append(
                        bound._replace(
                            remedy="Remove network.max_tx_rate of the fabric from the intent, and run stage network."
                        )
                        if by_intent
                        else bound
                    )
        for end in ends:
            if step.layer in IN_PODS and end.throttled:
                text = (
                    f"the kernel throttled the CPUs of the pod on {end.node} in"
                    f" {count_of(end.throttled, 'period')} (pods.cpu"
                    f" {ground.fabric.pods.cpu})"
                )
                causes.append(
                    BandwidthBound(
                        text,
                        "Raise pods.cpu of the fabric, which is the CPU limit of the measuring pods.",
                    )
                )
            if end.near is False:
                bound = bound_by_far_cpus(f"the tool on {end.node}", end.binding, end.node)
                in_pod = step.layer in IN_PODS
                causes.append(
                    bound
                    if in_pod
                    else bound._replace(
                        remedy=(
                            f"Run grep Cpus_allowed_list /proc/self/status in the pod that inspects {end.node}. If it"
                            " lists not all CPUs, remove the limit of the CPUs of this pod (rdma_observers)."
                        )
                    )
                )
        if step.layer in ("pf_host", "gpu_pod"):
            for end in ends:
                link = _find_pcie_link(hcas, end)
                slow = _describe_slow_link(link) if link is not None else ""
                if slow:
                    remedy = (
                        "Reseat the card or its riser, and check the settings of the slot in the BIOS. Read the state"
                        f" of the link with lspci -vv -s {end.function} on {end.node}."
                    )
                    causes.append(BandwidthBound(f"the PCIe link of {end.function} on {end.node} {slow}", remedy))
    return list(dict.fromkeys(causes))


def find_physical_function(hcas: Hcas, end: LayerEnd) -> typing.Optional[Hca]:
    """Return the physical function of an end as its node reports it, or None if it is unknown. For a virtual function,
    this is the physical function to which it belongs.

    :param hcas: HCAs of each node, by node
    """
    seen = hcas.get(end.node)
    if seen is None or seen.value is None:
        return None
    found = seen.value.at(end.function)
    return seen.value.at(found.physical_function) if found is not None and found.is_virtual else found


def _find_pcie_link(hcas: Hcas, end: LayerEnd) -> typing.Optional[PcieLink]:
    found = find_physical_function(hcas, end)
    return found.pci.link if found is not None and found.pci is not None else None


def _describe_slow_link(link: PcieLink) -> str:
    """Describe a PCIe link that runs below the maximum of both of its ends. The text is empty if it runs at the
    maximum, or if that is unknown.
    """
    could = [
        min(most for most in pair if most is not None) if any(most is not None for most in pair) else None
        for pair in ((link.max_speed, link.slot_speed), (link.max_width, link.slot_width))
    ]
    now = (link.current_speed, link.current_width)
    if any(one is not None and most is not None and one < most for one, most in zip(now, could)):
        return (
            f"runs at {_format_number(now[0])} GT/s x{_format_number(now[1])}, but supports {_format_number(could[0])}"
            f" GT/s x{_format_number(could[1])}"
        )
    return ""


def _format_number(value: typing.Optional[float]) -> str:
    return "?" if value is None else f"{value:g}"


def describe_known_ends(lost: typing.Sequence[LayerName], steps: typing.Sequence[LayerStep], hcas: Hcas) -> str:
    """Describe the known properties of both ends at the steps that may cause the loss, such as device, NUMA node and
    PCIe link. The text is empty if none of these steps exists on the nodes.

    :param lost: layers that may cause the loss
    :param steps: all steps of the pair
    :param hcas: HCAs of each node, by node
    """
    words: list[str] = []
    for step in _select_steps(lost, steps):
        if step.absent:
            continue
        for end in (step.client, step.server):
            text = "; ".join(_of_end(step.layer, end, hcas))
            words.append(f"{STEPS[step.layer]}, {end.node}: {text}.")
    return f"Details: {' '.join(words)}" if words else ""


def _of_end(layer: LayerName, end: LayerEnd, hcas: Hcas) -> typing.Iterator[str]:
    yield f"{end.device or 'unknown device'} {end.function}".strip()
    hca = find_physical_function(hcas, end)
    numa = hca.pci.numa_node if hca is not None and hca.pci is not None else None
    yield f"NUMA node {numa}" if numa is not None else "NUMA node of the HCA unknown"
    yield f"the tool {end.binding}" if end.binding else "CPUs of the tool unknown"
    link = _find_pcie_link(hcas, end)
    if layer in ("pf_host", "gpu_pod"):
        speed = (
            f"PCIe {_format_number(link.current_speed)} GT/s x{_format_number(link.current_width)}, MaxPayload"
            f" {_format_number(link.payload)}"
            if link is not None
            else ""
        )
        yield speed or "PCIe link unknown"
    if layer in ("vf_host", "vf_pod"):
        yield (
            "max_tx_rate"
            f" {f'{end.max_tx_rate} Mb/s' if end.max_tx_rate else 'none' if end.max_tx_rate == 0 else 'unknown'}"
        )
        yield f"VLAN priority {'unknown' if end.vlan_qos is None else end.vlan_qos}"
    if layer in IN_PODS:
        yield (
            "CPU throttling unknown" if end.throttled is None else f"throttled in {count_of(end.throttled, 'period')}"
        )
