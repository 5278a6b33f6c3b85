# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide by how much two networks may differ without a proof that one of them is slower, and what to do if one is."""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.floors import TCP_WARN
from ..._model.intent.comparison import FabricBandwidth, Measure
from .scaling import CLOSE

#: share of the figure of the faster network that one figure alone must reach, where no spread is known: a choice of
#: this collection, because no source of the published runs gives the spread of a job
WITHOUT_SPREAD = 0.9


def compute_noise(slow: typing.Optional[FabricBandwidth], fast: typing.Optional[FabricBandwidth]) -> tuple[float, str]:
    """Return two values: the share of the figure of the faster network below which the slower network has a fault, and
    the reason as a sentence.

    :param slow: bandwidths of the slower network; None if the figures are not bandwidths that stage bandwidth measured
    :param fast: bandwidths of the faster network; None likewise
    """
    if slow is None or fast is None:
        return WITHOUT_SPREAD, (
            f"One figure for each network does not show how much the figures vary, so a difference of up to"
            f" {_format_loss(WITHOUT_SPREAD)} proves nothing."
        )
    if slow.transport == "TCP":
        return TCP_WARN, (
            f"{slow.fabric} was measured over TCP, which the CPUs of the nodes limit, so a difference of up to"
            f" {_format_loss(TCP_WARN)} proves nothing."
        )
    if slow.best >= fast.worst:
        return TCP_WARN, (
            f"The figures overlap: {slow.fabric} has {_format_range(slow)}, {fast.fabric} has {_format_range(fast)}."
        )
    return CLOSE, ""


def describe_fault_remedy(measure: Measure, network: str, measured: typing.Collection[str]) -> str:
    """Return the remedy for a network that is slower than the pod network.

    :param measure: job or test with the figures
    :param network: name of the slower network
    :param measured: names of the measures whose figures stage bandwidth measured
    """
    if measure.name in measured:
        return (
            f"Follow the remedies of the findings of stages fabric and bandwidth for {network}. Then run stages"
            " bandwidth and compare again."
        )
    return (
        "Look in the NCCL log of the job (NCCL_DEBUG=INFO) for the interface and the transport that the job used."
        " Follow the remedies of the findings of stages fabric and bandwidth. Then measure the job again and run"
        " stage compare again."
    )


def describe_noise_remedy(measure: Measure, measured: typing.Collection[str]) -> str:
    """Return the remedy for a difference that may be noise: measure again.

    :param measure: job or test with the figures
    :param measured: names of the measures whose figures stage bandwidth measured
    """
    if measure.name in measured:
        return (
            "Run stages bandwidth and compare again while no job runs. If the pod network is faster again, compare the"
            " CPUs, the MTU and the links of the two networks."
        )
    return "Measure the job again on both networks, correct its figures in the intent, and run stage compare again."


def _format_loss(share: float) -> str:
    return f"{100 * (1 - share):.0f} %"


def _format_range(seen: FabricBandwidth) -> str:
    return f"{seen.worst:.4g} to {seen.best:.4g} Gb/s"
