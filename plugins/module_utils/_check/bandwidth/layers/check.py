# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, layer by layer: the same pair is measured over the PF on the host, the VF on the host, the VF in the
pod, and from GPU memory in the pod. The step at which the bandwidth drops is reported. Check id: ``bandwidth.layer``.

A step that could not be measured is never skipped silently: if the bandwidth drops across such a step, the finding
names all layers between the two measured steps.
"""

from __future__ import annotations

import dataclasses
import math
import typing

from ...._analysis.bandwidth.bounds import BandwidthBound
from ...._analysis.bandwidth.floors import PairLimits, format_gbps
from ...._analysis.fleet.vendors import link_command, priorities_command
from ...._analysis.schedule.wider import widen_amount
from ...._model.base.phrases import format_clause
from ...._model.measurement.bandwidth import LayerName, LayerStep, PairLayers
from ...._model.measurement.pairs import PairResult
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..causes import add_stage
from .causes import describe_known_ends, find_causes, find_physical_function
from .loss import ADDS, STEPS, TOLERANCE, Hcas, find_loss

_CHECK = "bandwidth.layer"
#: what a pair must reach at least, in Gb/s; None where that is not known
Least = typing.Callable[[PairResult], typing.Optional[float]]


def check_layers(
    ground: PairLimits, pairs: typing.Iterable[tuple[str, PairLayers]], bound: Least, hcas: Hcas
) -> list[Finding]:
    """Judge each pair that was to be measured layer by layer: from the physical functions on the hosts, from the VFs on
    the hosts, from the pods, and from GPU memory. The finding names the layers at which bandwidth is lost.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: pairs of the fabric, each with the subject of its findings
    :param bound: function that returns the lowest acceptable rate of a pair in Gb/s: its floor, or the bandwidth
        expected from the best comparable pair if that is higher
    :param hcas: HCAs of each node, for the PCIe slots in the remedy
    """
    return [_judge_pair_layers(ground, subject, pair, bound, hcas) for subject, pair in pairs]


def _judge_pair_layers(ground: PairLimits, subject: str, pair: PairLayers, bound: Least, hcas: Hcas) -> Finding:
    if not pair.steps:
        remedy = (
            "If 'why' names an error, correct it. These measurements need pods that inspect the nodes: set"
            " rdma_observers (docs/observers.md). To measure all pairs in this way, set bandwidth.layers: all of"
            " the fabric, and to measure none, set bandwidth.layers: none. Then run stage bandwidth again."
        )
        return Finding(
            _CHECK,
            subject,
            UNKNOWN,
            "not measured",
            _describe_expected_rates(None),
            f"The bandwidth was not measured on the host and in the pod:"
            f" {format_clause(pair.why, 'no reason is given')}.",
            remedy,
        )
    steps = [_drop_doubtful_figure(ground, pair, step) for step in pair.steps]
    least = bound(_as_pair(pair, steps[-1]))
    measured, expected = "; ".join(map(_describe_layer_step, steps)), _describe_expected_rates(least)
    lost, before, at = find_loss(least, steps, _compute_wanted_rate(ground))
    missing = [step for step in steps if step.average_gbps is None and not step.absent]
    unseen = "".join(f" {STEPS[step.layer]} could not be measured: {format_clause(step.why)}." for step in missing)
    known = describe_known_ends(lost or [step.layer for step in steps if not step.absent], steps, hcas)
    if at is not None and before is not None and at.average_gbps is not None:
        told = _describe_rate_drop(steps, at, before, at.average_gbps)
        alternatives = " or ".join(ADDS[layer] for layer in lost)
        causes = find_causes(ground, lost, steps, before, hcas)
        # from the first step on: nothing is told apart yet, only that it is slow, which bandwidth.floor and
        # bandwidth.fleet say as well
        if len(lost) > 1:
            why = (
                f"{told} The cause is {alternatives}. The measurement cannot distinguish these causes.{unseen} {known}"
            )
            remedy = f"{_to_measure(missing)} {' '.join(dict.fromkeys(cause.remedy for cause in causes))}".strip()
            remedy = add_stage(remedy or _describe_remedy(lost[0], at, hcas))
            whole = steps[0].layer in lost
            return Finding(
                _CHECK, subject, UNKNOWN if whole else FAIL, measured, expected, _add_causes(why, causes), remedy
            )
        remedy = add_stage(
            " ".join(dict.fromkeys(cause.remedy for cause in causes)) or _describe_remedy(lost[0], at, hcas)
        )
        return Finding(
            _CHECK,
            subject,
            FAIL,
            measured,
            expected,
            _add_causes(f"{told} The cause is {alternatives}.{unseen} {known}", causes),
            remedy,
        )
    if missing:
        why = f"No figure is more than {100 - 100 * TOLERANCE:.0f} % below the figure before it.{unseen} {known}"
        return Finding(_CHECK, subject, UNKNOWN, measured, expected, why.strip(), _to_measure(missing))
    if ground.floor(_as_pair(pair, steps[-1]))[0] is None:
        # to be as fast as others is no proof: all of them may be slow
        remedy = (
            "Set line_rate.expected_gbps of the fabric to the rate that its links must have, then run stage bandwidth"
            " again."
        )
        why = (
            "No figure is far below the figure before it, but the rate that the first figure (PF on the host) must"
            " reach is unknown. The cable and the fabric may lose bandwidth. " + known
        )
        return Finding(_CHECK, subject, UNKNOWN, measured, expected, why.strip(), remedy)
    last = next(step for step in reversed(steps) if step.average_gbps is not None)
    if least is not None and (last.average_gbps or 0.0) < least:
        why = (
            f"The pair is too slow, but no figure is more than {100 - 100 * TOLERANCE:.0f} % below the figure"
            f" before it:"
            f" SR-IOV, the pod and the GPU path lose a little each. {known}"
        )
        remedy = "Follow the remedies of the findings of stage tuning, then run stage bandwidth again on idle nodes."
        return Finding(_CHECK, subject, FAIL, measured, expected, why.strip(), remedy)
    if not pair.suspect:
        return build_pass(_CHECK, subject, measured, expected)
    why = (
        "The pair was slow in its first measurement, but the repeated measurements are good. So the cause is"
        f" intermittent, such as the load of other jobs. {known}"
    )
    remedy = (
        "Run stage bandwidth again while the nodes and the fabric are idle. If the pair is slow again, correct the"
        " errors that ibqueryerrors and dmesg of both nodes show for it, then run stage bandwidth again."
    )
    return Finding(_CHECK, subject, WARN, measured, expected, why.strip(), remedy)


def _compute_wanted_rate(ground: PairLimits) -> float:
    """Return the highest rate in Gb/s at which the intent permits a pair to send in pods; infinity without
    ``network.max_tx_rate``. If a pod is slower than its host because of this limit, no bandwidth is lost.

    :param ground: limits of the pairs of the fabric
    """
    limit = ground.fabric.network.max_tx_rate
    return ground.ways * limit / 1000 if limit else math.inf


def _as_pair(pair: PairLayers, step: LayerStep) -> PairResult:
    return PairResult(
        pair.fabric,
        pair.client,
        pair.server,
        average_gbps=step.average_gbps,
        peak_gbps=step.peak_gbps,
        message_bytes=step.message_bytes,
        iterations=step.iterations,
        rail=pair.rail,
        server_rail=pair.server_rail,
    )


def _drop_doubtful_figure(ground: PairLimits, pair: PairLayers, step: LayerStep) -> LayerStep:
    """Return the step unchanged if its figure is a valid measurement. Otherwise return the step with the reason in
    place of the figure.

    :param ground: limits of the pairs of the fabric
    """
    wanted = widen_amount(ground.fabric, pair.more_than) if pair.more_than is not None else None
    shown = dataclasses.replace(
        _as_pair(pair, step), queue_pairs=wanted.queue_pairs if wanted else ground.fabric.pods.queue_pairs
    )
    doubt = ground.doubt(shown, pair.more_than)
    return (
        LayerStep(
            step.layer,
            step.client,
            step.server,
            why=f"{format_gbps(step.average_gbps or 0.0)} is not a valid measurement. {doubt.text.rstrip('.')}",
        )
        if doubt
        else step
    )


def _describe_expected_rates(least: typing.Optional[float]) -> str:
    first = f"at least {format_gbps(least)}" if least is not None else "a known minimum"
    return f"PF on the host: {first}; each later figure: at least {TOLERANCE:.0%} of the figure before it"


def _describe_layer_step(step: LayerStep) -> str:
    if step.average_gbps is not None:
        return f"{STEPS[step.layer]} {format_gbps(step.average_gbps)}"
    return f"{STEPS[step.layer]} {'not there' if step.absent else 'not measured'}: {step.why}"


def _describe_rate_drop(steps: typing.Sequence[LayerStep], at: LayerStep, before: float, now: float) -> str:
    earlier = [step for step in steps[: steps.index(at)] if step.average_gbps is not None]
    of = STEPS[earlier[-1].layer] if earlier else "the rate that the link must reach"
    return (
        f"The bandwidth drops at '{STEPS[at.layer]}': {format_gbps(now)}, {100 * (1 - now / before):.0f} % less than"
        f" {of} ({format_gbps(before)})."
    )


def _add_causes(text: str, causes: typing.Iterable[BandwidthBound]) -> str:
    """Return the text with the known causes of the loss appended.

    :param text: explanation of the loss
    :param causes: known limits of the bandwidth of the pair, such as a rate limit
    """
    return " ".join([text.strip(), *(f"This explains the loss: {cause.text}." for cause in causes)])


def _to_measure(missing: typing.Sequence[LayerStep]) -> str:
    """Describe for a remedy how to measure the steps without a figure; empty if there are none.

    :param missing: steps without a figure
    """
    return (
        "Correct the errors that prevented these measurements, then run stage bandwidth again:"
        f" {'; '.join(f'{STEPS[step.layer]} ({step.why})' for step in missing)}."
        if missing
        else ""
    )


def _describe_remedy(layer: LayerName, step: LayerStep, hcas: Hcas) -> str:
    """Return the remedy for a loss at a layer if no known cause explains the loss.

    :param layer: layer that may cause the loss
    :param step: step at which the bandwidth drops
    :param hcas: HCAs of each node, by node
    """
    pair = " and ".join(dict.fromkeys((step.client.node, step.server.node)))
    address, hca = step.client.function or "ADDRESS", find_physical_function(hcas, step.client)
    infiniband = hca is not None and any(port.link_layer == "InfiniBand" for port in hca.all_ports)
    errors = "ibqueryerrors" if infiniband else "ethtool -S INTERFACE"
    return {
        "pf_host": (
            f"On {pair}: check the errors and the cable with {errors} and {link_command(hca, address)}, and the slot"
            f" with lspci -vv -s {address}."
        ),
        "vf_host": (
            f"On {pair}: check the rate limits with ip -d link show and devlink port function rate show, and the QoS of"
            f" the port with {priorities_command(hca)}."
        ),
        "vf_pod": (
            f"On {pair}: check the VF with ip -d link show. Check the pod with tc qdisc show (in the pod), and its CPUs"
            " and limits with kubectl describe pod. Raise pods.cpu of the fabric."
        ),
        "gpu_pod": (
            f"On {pair}: check the PCIe path to the GPU with nvidia-smi topo -m, and switch ACS off on the bridges"
            " between the HCA and the GPU: lspci -vvv | grep ACSCtl."
        ),
    }[layer]
