# SPDX-License-Identifier: GPL-3.0-or-later

"""Convert a test of a collective to a run of nccl-tests: its nodes and GPUs, the properties that its log must show, and
the bandwidth that it must reach.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.schedule.collectives import SMALL, Repeat, Test
from ..._analysis.schedule.halving import RailTrial
from ..._model.intent.intent import Fabric
from ..._model.job.nccl import NcclLog, NcclProcess
from ..._model.measurement.bandwidth import BandwidthFacts
from ..._model.measurement.collectives import (
    CollectiveRun,
    Collectives,
    ExpectedBusbw,
    TestName,
    Variables,
)
from ..job.log.channels import name_hcas
from .channel_verdicts import RequiredProof
from .floor import Algorithm, Floor, NodeFigure, Shape, compute_bandwidth_floor
from .surroundings import UsedHca


@dataclasses.dataclass(frozen=True)
class NodesHardware:
    """The hardware of the nodes.

    :ivar hosts: host name of each node's pod, up to the first dot, as NCCL writes it
    :ivar hcas: HCAs by node and by RDMA device in its pod
    :ivar gpu_of_rail: number of the GPU that is beside the HCA of each rail
    """

    hosts: typing.Mapping[str, str]
    hcas: typing.Mapping[str, typing.Mapping[str, UsedHca]]
    gpu_of_rail: typing.Mapping[int, int]


def plan_run(
    test: Test, number: int, name: TestName, ground: NodesHardware, variables: Variables = ()
) -> CollectiveRun:
    """Return the run of nccl-tests for a test. A test of two nodes uses all rails at the same time, each with ranks of
    its own. A test of a single rail uses the GPU beside the HCA of this rail. All other tests use all rails together.

    :param test: group of nodes, single-rail test or repetition that is due
    :param number: number of the test in the course, for the names of its objects
    :param name: name of the collective
    :param ground: GPUs and HCAs of the nodes
    :param variables: environment variables that a repeat sets or removes
    """
    if isinstance(test, Repeat):
        run = plan_run(test.group, number, name, ground)
        return dataclasses.replace(run, variables=variables, small=test.change == SMALL)
    if isinstance(test, RailTrial):
        return CollectiveRun(f"{name.replace('_', '-')}-{number}", name, test.nodes, gpu=ground.gpu_of_rail[test.rail])
    return CollectiveRun(f"{name.replace('_', '-')}-{number}", name, test.nodes, by_rail=test.kind == "two nodes")


def plan_proof(run: CollectiveRun, test: Test, wanted: Collectives, ground: NodesHardware) -> RequiredProof:
    """Return the properties that the log of a run must show, so that the figure of the run counts.

    :param run: planned run of the test
    :param wanted: settings of the collectives in the intent
    :param ground: hardware of the nodes
    """
    rails = (test.rail,) if isinstance(test, RailTrial) else tuple(sorted(ground.gpu_of_rail))
    each = 1 if run.by_rail or run.gpu is not None else wanted.gpus_per_node
    return RequiredProof(
        len(run.nodes),
        {
            ground.hosts[node]: {device: hca.rail for device, hca in ground.hcas.get(node, {}).items()}
            for node in run.nodes
            if node in ground.hosts
        },
        rails if len(run.nodes) > 1 else (),
        each * len(run.nodes),
        wanted.gpu_direct,
        wanted.shared_memory,
        groups=wanted.gpus_per_node if run.by_rail else 1,
        slowest_group=True,
    )


def plan_floor(
    run: CollectiveRun,
    test: Test,
    wanted: Collectives,
    ground: NodesHardware,
    algorithm: typing.Optional[Algorithm] = "ring",
    node: typing.Optional[NodeFigure] = None,
    library: str = "NCCL",
) -> typing.Optional[Floor]:
    """Return the lowest bus bandwidth that passes for a run. Return None for a run on one node, and if the rate of a
    rail was not measured or no formula is known.

    :param run: planned run of the test
    :param test: group of nodes, single-rail test or repetition that is run
    :param wanted: settings of the collectives in the intent
    :param ground: GPUs and HCAs of the nodes, with measured rates
    :param algorithm: algorithm of NCCL; None if unknown
    :param node: bus bandwidth of a single node; None if it was not measured
    :param library: NCCL or RCCL
    """
    rails = (test.rail,) if isinstance(test, RailTrial) else tuple(sorted(ground.gpu_of_rail))
    rates = {rail: [_compute_rail_rate(ground, node_name, rail) for node_name in run.nodes] for rail in rails}
    if len(run.nodes) < 2 or any(rate is None for found in rates.values() for rate in found):
        return None
    slowest = [min(rate for rate in found if rate is not None) for found in rates.values()]
    if run.by_rail:
        # each group has a rail to itself, shared where there are more GPUs than rails; the figure is that of the
        # slowest
        share = min(slowest) * len(rails) / wanted.gpus_per_node
        floor = compute_bandwidth_floor(
            run.test, Shape(len(run.nodes), 1), [share], algorithm, None, wanted.share, library
        )
    else:
        gpus = 1 if run.gpu is not None else wanted.gpus_per_node
        floor = compute_bandwidth_floor(
            run.test, Shape(len(run.nodes), gpus), slowest, algorithm, node if gpus > 1 else None, wanted.share, library
        )
    if floor is None or wanted.share is None or not wanted.share_reason:
        return floor
    return dataclasses.replace(floor, how=f"{floor.how}, because: {wanted.share_reason}")


def _compute_rail_rate(ground: NodesHardware, node: str, rail: int) -> typing.Optional[float]:
    """Return the rate of a rail of a node in Gb/s, which is the sum of its HCAs. Return None if the node has no HCA on
    the rail, or if one of them was not measured.

    :param ground: hardware of the nodes
    :param node: name of the node
    :param rail: number of the rail
    """
    rates = [hca.rate_gbps for hca in ground.hcas.get(node, {}).values() if hca.rail == rail]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None


def pick_expected(run: CollectiveRun, wanted: Collectives) -> typing.Optional[ExpectedBusbw]:
    """Return the floor that the intent sets for a run over all rails. Return None if it sets none, and for runs on one
    node or rail by rail. A floor for the run's number of nodes takes precedence over a floor for any number.

    :param run: planned run of the test
    :param wanted: settings of the collectives in the intent
    """
    if run.by_rail or run.gpu is not None or len(run.nodes) < 2:
        return None
    found = {
        item.nodes: item
        for item in wanted.expected_busbw
        if item.test == run.test and item.nodes in (None, len(run.nodes))
    }
    return found.get(len(run.nodes), found.get(None))


def learn_gpus(log: NcclLog, ground: NodesHardware, gpus: int) -> dict[int, int]:
    """Return the number of the GPU that uses each rail on most hosts, by rail.

    Only a rank that is the only process of its host and uses a single rail counts. The result is empty if fewer than
    two rails are found.

    Each host counts once for each rail, however many ranks the log of its pod has. If two GPUs are used equally often,
    the lower number is returned.

    :param ground: hardware of the nodes
    :param gpus: number of GPUs of a node
    """
    by_host = {
        host: {device: hca.rail for device, hca in ground.hcas.get(node, {}).items()}
        for node, host in ground.hosts.items()
    }
    processes = {(process.host, process.pid): process for process in log.processes}
    votes: dict[int, dict[str, int]] = {}
    for communicator in log.communicators:
        for rank in communicator.ranks:
            names = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid)).devices
            used = {route.device for route in rank.routes if route.transport == "NET" and route.proxy is None}
            rails = {
                by_host.get(rank.host, {}).get(name)
                for device in names
                if device.index in used
                for name in name_hcas(device.name)
            }
            rail = rails.pop() if len(rails) == 1 else None
            alone = (
                rail is not None and len({other.pid for other in communicator.ranks if other.host == rank.host}) == 1
            )
            if rail is not None and alone and rank.gpu is not None and rank.gpu in range(gpus):
                votes.setdefault(rail, {}).setdefault(rank.host, rank.gpu)
    # with one rail alone, CUDA_VISIBLE_DEVICES decides the number, which is then not that of the node
    counts = {rail: collections.Counter(found.values()) for rail, found in votes.items()}
    return (
        {rail: max(found, key=lambda gpu: (found[gpu], -gpu)) for rail, found in counts.items()}
        if len(votes) > 1
        else {}
    )


def collect_rates(fabric: Fabric, seen: typing.Optional[BandwidthFacts]) -> dict[tuple[int, str], float]:
    """Return the rate in Gb/s that each rail of each node sends in one direction, by rail and node. The rate is that of
    the best pair of the rail, because a slow pair may be slow at its other end.

    A rate is limited to the rate of the port. If both directions were measured at once, the figure is their sum, and
    half of it counts.

    :param seen: answer of rdma_bandwidth; None if it did not run
    """
    if seen is None:
        return {}
    links = {(pod.rail, pod.node): pod.rate_gbps for pod in seen.pods if pod.fabric == fabric.name}
    found: dict[tuple[int, str], float] = {}
    for pair in seen.pairs:
        if pair.fabric != fabric.name or not pair.is_comparable:
            continue
        best = max(pair.average_gbps or 0.0, (pair.wider.average_gbps or 0.0) if pair.wider is not None else 0.0)
        rate = best / 2 if fabric.bandwidth.directions == "at_once" else best
        for end in (pair.client_end, pair.server_end):
            found[end] = max(found.get(end, 0.0), min(rate, links.get(end) or rate))
    return found
