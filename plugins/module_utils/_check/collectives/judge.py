# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge whether the bandwidth of a proven run reaches its floor. Check ids: ``collectives.bandwidth``,
``collectives.inside`` and, for a slow run, ``collectives.cause``.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing

from ..._model.base.phrases import count_of
from ..._model.job.nccl import NcclChoice, NcclLog
from ..._model.job.nccl_tests import NcclTestRow, NcclTests
from ..._model.measurement.collectives import ExpectedBusbw
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from ..job.log.nccl_run import cut_to_run, group_by_process
from .causes import find_causes
from .floor import LEAST_BYTES, Algorithm, Floor, compute_bus_factor, name_algorithm, spell_gbs
from .network_causes import check_traffic_class
from .network_use import count_nodes
from .proof import Proof, count_rows
from .surroundings import Surroundings

#: by which a figure may be above its bound: the rails were measured at another time
_ABOVE = 1.05
#: of the median of the nodes, below which the inside of one is slow: NVIDIA's bring-up procedure looks at what is below
#: 0.93 of the best
_LIKE = 0.93
#: of the fastest message, below which a larger one shows that the bandwidth does not last: repeated runs differ by less
_LASTS = 0.85
#: GB/s, below which the two decimals of the table are less than time and bytes tell
_COARSE = 1.0
_CLASS = (
    "Run stage collectives again: it sets NCCL_IB_TC for its tests. If the finding remains, remove NCCL_IB_TC from"
    " rdma_cluster.collectives.image, and use a network plugin of NCCL that supports the variable."
)
#: nodes, from which on a median says something
_SEVERAL = 3
_FUNCTIONS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
}
#: of which NCCL counts what one rank has, and the test what all have
_OF_A_RANK = ("all_gather", "reduce_scatter")


@dataclasses.dataclass(frozen=True)
class CollectiveFigure:
    """The bus bandwidth of a run that is compared with the floor. It is that of the fastest large message, or that of a
    larger message between nodes which is much slower: jobs send such messages too.

    :ivar size_bytes: size of this message, in bytes
    :ivar bus_gbs: mean of the out-of-place and in-place bus bandwidth, in GB/s
    :ivar choice: algorithm, protocol and channels that NCCL chose for this message size; None if the log does not show
        it
    :ivar sizes: message sizes in bytes, each with its bus bandwidth in GB/s
    :ivar fastest: size in bytes and bus bandwidth in GB/s of the fastest large message, if the figure is that of a
        larger and slower one; None otherwise
    """

    size_bytes: int
    bus_gbs: float
    choice: typing.Optional[NcclChoice] = None
    sizes: tuple[tuple[int, float], ...] = ()
    fastest: typing.Optional[tuple[int, float]] = None


def pick_figure(
    log: NcclLog, run: NcclTests, proof: Proof, least_bytes: int = LEAST_BYTES
) -> typing.Optional[CollectiveFigure]:
    """Return the bus bandwidth of a run that is compared with its floor, or None if no message is large enough or the
    run is not proven.

    :param log: log by which the run was proven
    :param run: parsed table that nccl-tests printed
    :param proof: proof that the log gives for the run
    :param least_bytes: size in bytes of the smallest message that counts
    """
    sizes = tuple((row.size_bytes, _compute_mean(row, run, log)) for row in count_rows(run, proof) if row.figures)
    large = [item for item in sizes if item[0] >= least_bytes]
    if not large:
        return None
    fastest = max(large, key=lambda item: item[1])
    # nodes alone are compared with each other, by the most that each of them reaches
    between = max(map(count_nodes, log.communicators), default=0) > 1
    slower = [item for item in large if between and item[0] > fastest[0] and item[1] < _LASTS * fastest[1]]
    size_bytes, bus_gbs = min(slower, key=lambda item: item[1]) if slower else fastest
    choice = _find_nccl_choice(log, run, size_bytes)
    return CollectiveFigure(size_bytes, bus_gbs, choice, sizes, fastest if slower else None)


def _compute_mean(row: NcclTestRow, run: NcclTests, log: NcclLog) -> float:
    """Return the mean of the out-of-place and in-place bus bandwidth, in GB/s.

    A bandwidth so low that the table may show it as 0.00 is computed from the time and the size of the message.

    :param row: line of the table that nccl-tests printed, for one message size
    :param run: parsed output of one run of nccl-tests
    :param log: NCCL's log of the run, which shows the number of ranks
    """
    sizes = {communicator.size for communicator in log.communicators}
    ranks = sizes.pop() if len(sizes) == 1 else None
    factor = (
        compute_bus_factor(run.collective, ranks)
        if ranks and run.collective in _FUNCTIONS and not run.cpu_time
        else None
    )
    found = [
        row.size_bytes / figure.time_us / 1000 * factor
        if factor is not None and figure.algorithm_gbs < _COARSE and figure.time_us > 0
        else figure.bus_gbs
        for figure in row.figures
    ]
    return sum(found) / len(found)


def spell_bytes(count: int) -> str:
    """Format the size of a message as text with its unit.

    :param count: number of bytes
    """
    units = ((30, "GiB"), (20, "MiB"))
    shift, unit = next(((shift, unit) for shift, unit in units if count >= 1 << shift), (10, "KiB"))
    return f"{count / (1 << shift):g} {unit}"


def _find_nccl_choice(log: NcclLog, run: NcclTests, size_bytes: int) -> typing.Optional[NcclChoice]:
    """Return the algorithm, protocol and channels that NCCL chose for a message size. Return None if the log does not
    show it, or if ranks chose differently.

    :param run: parsed table that nccl-tests printed
    :param size_bytes: message size in bytes
    """
    own, _silent = cut_to_run(log, run, group_by_process(log))
    keys = {(rank.host, rank.pid) for communicator in own.communicators for rank in communicator.ranks}
    sizes = {communicator.size or 1 for communicator in own.communicators} if run.collective in _OF_A_RANK else {1}
    found = {
        choice
        for process in own.processes
        if (process.host, process.pid) in keys
        for choice in process.choices
        if choice.function in ("", _FUNCTIONS.get(run.collective))
        and any(choice.size_bytes * size == size_bytes for size in sizes)
    }
    return found.pop() if len(found) == 1 else None


def find_algorithm(figure: CollectiveFigure, log: NcclLog) -> typing.Optional[Algorithm]:
    """Return the algorithm that NCCL used for a figure, or None if the log does not show it or no formula is known for
    it.
    """
    nodes = max(map(count_nodes, log.communicators), default=0)
    return name_algorithm(figure.choice.algorithm, nodes) if figure.choice else None


def judge_figure(
    subject: str,
    log: NcclLog,
    run: NcclTests,
    proof: Proof,
    floor: typing.Optional[Floor],
    seen: Surroundings,
    wanted: typing.Optional[ExpectedBusbw] = None,
    least_bytes: int = LEAST_BYTES,
) -> tuple[Finding, ...]:
    """Compare the bus bandwidth of a run with the lowest bandwidth that passes: that of the intent, else the computed
    floor. If the run is too slow, add a warning for each possible cause.

    :param subject: subject of the group
    :param log: log of the run
    :param run: parsed table that nccl-tests printed
    :param proof: proof that the log gives for the run
    :param floor: computed lowest bandwidth that passes; None if no formula is known
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    :param wanted: entry of ``expected_busbw`` that replaces the computed floor; None if the intent has none
    :param least_bytes: size in bytes of the smallest message that counts
    """
    check = "collectives.bandwidth"
    asked = wanted.gbs if wanted else floor.floor_gbs if floor else None
    how = (
        f"at least {spell_gbs(wanted.gbs)}, set in the intent: {wanted.reason}"
        if wanted
        else f"at least {spell_gbs(floor.floor_gbs)} ({floor.how})"
        if floor
        else "at least a known minimum bandwidth"
    )
    if proof.status != PASS:
        why = "NCCL's log does not prove over which transport this test ran, so its bandwidth does not count."
        return (
            Finding(
                check,
                subject,
                UNKNOWN,
                "not verified",
                how,
                why,
                (
                    "Follow the remedies of the findings collectives.way, collectives.transport and"
                    " collectives.started of this test, then run stage collectives again."
                ),
            ),
        )
    figure = pick_figure(log, run, proof, least_bytes)
    if figure is None:
        why = "Smaller messages do not fill the links, so their bandwidth does not count."
        return (
            Finding(
                check,
                subject,
                UNKNOWN,
                f"no message of at least {spell_bytes(least_bytes)}",
                how,
                why,
                (
                    "Set rdma_cluster.collectives.most_bytes to 8589934592 (8 GiB), or to as much as GPU memory allows."
                    " Then run stage collectives again."
                ),
            ),
        )
    measured = f"{spell_gbs(figure.bus_gbs)} with messages of {spell_bytes(figure.size_bytes)}" + (
        f", {figure.choice.algorithm}" if figure.choice else ""
    )
    if figure.fastest is not None:
        measured += f" ({spell_gbs(figure.fastest[1])} with messages of {spell_bytes(figure.fastest[0])})"
    if asked is None:
        why = "No formula is known for this collective and algorithm, so the minimum cannot be computed."
        return (
            Finding(
                check,
                subject,
                UNKNOWN,
                f"{measured}, minimum unknown",
                how,
                why,
                (
                    "Set the expected bandwidth and its reason in rdma_cluster.collectives.expected_busbw, then"
                    " run stage collectives again."
                ),
            ),
        )
    highest_gbs = figure.fastest[1] if figure.fastest is not None else figure.bus_gbs
    if floor is not None and highest_gbs > _ABOVE * floor.most_gbs:
        why = (
            "The bandwidth is higher than the links can carry, so a figure is wrong: a part of the data took"
            " another path (NVLink between nodes), or other traffic slowed the rails while stage bandwidth"
            " measured them."
        )
        remedy = (
            "Measure again while no other job uses the fabric: ansible-playbook linerate.rdma.site --tags"
            " bandwidth,collectives. If the finding remains and the nodes have NVLink between them, set"
            " NCCL_MNNVL_ENABLE=0 in the image."
        )
        most = f"at most {spell_gbs(floor.most_gbs)}, which the links carry"
        return (Finding(check, subject, UNKNOWN, measured, most, why, remedy),)
    own, _silent = cut_to_run(log, run, group_by_process(log))
    if figure.bus_gbs >= asked and (wanted or floor is None or figure.bus_gbs >= floor.network_gbs):
        other = tuple(check_traffic_class(own.processes, seen))
        if other:
            why = (
                "The test did not use the traffic class of the fabric, so its bandwidth is that of another queue of the"
                " switches. Jobs with the class of the fabric may be slower."
            )
            return (Finding(check, subject, WARN, f"{measured}; {other[0].measured}", other[0].expected, why, _CLASS),)
        return (build_pass(check, subject, measured, how),)
    if figure.bus_gbs >= asked and floor is not None:
        why = (
            "The inside of the nodes allows less than the rails. If all nodes are slow inside for the same cause, the"
            " comparison of the nodes does not show it."
        )
        remedy = (
            "If the GPUs have no NVLink, set the expected bandwidth and its reason in"
            " rdma_cluster.collectives.expected_busbw. Otherwise run nvidia-smi nvlink -s and systemctl status"
            " nvidia-fabricmanager on the nodes, correct what is down, and remove NCCL_P2P_LEVEL from the image."
            " Then run stage collectives again."
        )
        rails = f"at least {spell_gbs(floor.network_gbs)}, which the rails allow"
        return (Finding(check, subject, WARN, measured, rails, why, remedy),)
    causes = find_causes(subject, own, figure.choice, seen)
    lasting = (
        "Larger messages are slower than smaller ones. Possible causes are congestion, a buffer that overflows, and a"
        " device that throttles after some seconds of load. "
        if figure.fastest is not None
        else ""
    )
    why = f"The bandwidth is {figure.bus_gbs / asked:.0%} of the minimum. {lasting}{causes[0].why}"
    remedy = causes[0].remedy + (
        f" More possible causes: {len(causes) - 1}, in the findings collectives.cause." if len(causes) > 1 else ""
    )
    return (Finding(check, subject, FAIL, measured, how, why, remedy), *causes)


def judge_inside(
    figures: typing.Mapping[str, CollectiveFigure], wanted: typing.Optional[ExpectedBusbw] = None
) -> tuple[Finding, ...]:
    """Compare the bus bandwidth of each node that was tested alone with the entry of the intent, or else with the
    median of all nodes, and return one finding for each node.

    The finding fails if the node is slower. If there are too few nodes for a comparison with the median, the finding on
    a node that is not slower names no limit.

    :param figures: proven figures by node, all of one test
    :param wanted: entry of ``expected_busbw`` for one node; None if the intent has none
    """
    check, usual = (
        "collectives.inside",
        statistics.median(figure.bus_gbs for figure in figures.values()) if figures else 0.0,
    )
    asked = wanted.gbs if wanted else _LIKE * usual
    how = (
        f"at least {spell_gbs(asked)}, set in the intent: {wanted.reason}"
        if wanted
        else f"at least {spell_gbs(asked)} ({_LIKE:g} x the median of {count_of(len(figures), 'node')})"
    )
    findings = []
    for node, figure in figures.items():
        measured = f"{spell_gbs(figure.bus_gbs)} with messages of {spell_bytes(figure.size_bytes)}"
        if figure.bus_gbs < asked:
            why = (
                "The test of this node alone uses no network, and the node is slower than the others. Possible"
                " causes are an NVLink that is down, a throttled GPU, or a different topology."
            )
            remedy = (
                f"Run nvidia-smi nvlink -s, nvidia-smi -q -d PERFORMANCE and nvidia-smi topo -m on {node} and on"
                " a fast node. Correct what differs: an inactive link, a reason for throttling, or a missing"
                " GPU. Then run stage collectives again."
            )
            findings.append(Finding(check, node, FAIL, measured, how, why, remedy))
        elif wanted is None and len(figures) < _SEVERAL:
            findings.append(
                build_pass(
                    check, node, measured, f"no limit: too few for a comparison ({count_of(len(figures), 'node')})"
                )
            )
        else:
            findings.append(build_pass(check, node, measured, how))
    return tuple(findings)
