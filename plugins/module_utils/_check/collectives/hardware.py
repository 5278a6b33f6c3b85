# SPDX-License-Identifier: GPL-3.0-or-later

"""A test of a group as a run of nccl-tests: its nodes and GPUs, the properties that its log must show, its floor."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.schedule.collectives import SMALL, Repeat, Test
from ..._analysis.schedule.halving import RailTrial
from ..._model.job.nccl import NcclLog, NcclProcess
from ..._model.measurement.collectives import (
    CollectiveRun,
    Collectives,
    ExpectedBusbw,
    TestName,
    Variables,
)
from ..job.channels import name_hcas
from .channel_verdicts import RequiredProof
from .floor import Algorithm, Floor, NodeFigure, Shape, expect
from .surroundings import UsedHca


@dataclasses.dataclass(frozen=True)
class NodesHardware:
    """The hardware of the nodes.

    :ivar hosts: by node the host name of its pod, up to the first dot, as NCCL writes it
    :ivar hcas: by node and RDMA device in its pod
    :ivar gpu_of_rail: number of the GPU that is beside a rail's HCA
    """

    hosts: typing.Mapping[str, str]
    hcas: typing.Mapping[str, typing.Mapping[str, UsedHca]]
    gpu_of_rail: typing.Mapping[int, int]


def plan_run(
    test: Test, number: int, name: TestName, ground: NodesHardware, variables: Variables = ()
) -> CollectiveRun:
    """Return the run of a test: two nodes rail by rail at the same time, one rail of a halving by the GPU beside it,
    all others over all rails.

    :param number: of the test in the climb, for the names of its objects
    :param variables: of a repeat
    """
    if isinstance(test, Repeat):
        run = plan_run(test.group, number, name, ground)
        return dataclasses.replace(run, variables=variables, small=test.change == SMALL)
    if isinstance(test, RailTrial):
        return CollectiveRun(f"{name.replace('_', '-')}-{number}", name, test.nodes, gpu=ground.gpu_of_rail[test.rail])
    return CollectiveRun(f"{name.replace('_', '-')}-{number}", name, test.nodes, by_rail=test.kind == "two nodes")


def plan_proof(run: CollectiveRun, test: Test, wanted: Collectives, ground: NodesHardware) -> RequiredProof:
    """Return what the log of a run must show."""
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
    """Return what a run should reach; None of one node, and where the rate of a rail was not measured.

    :param node: what one node alone reached
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
        return expect(run.test, Shape(len(run.nodes), 1), [share], algorithm, None, wanted.share, library)
    gpus = 1 if run.gpu is not None else wanted.gpus_per_node
    return expect(
        run.test, Shape(len(run.nodes), gpus), slowest, algorithm, node if gpus > 1 else None, wanted.share, library
    )


def _compute_rail_rate(ground: NodesHardware, node: str, rail: int) -> typing.Optional[float]:
    """Return the rate of a rail of a node in Gb/s: of several HCAs on one the sum; None where one of them was not
    measured."""
    rates = [hca.rate_gbps for hca in ground.hcas.get(node, {}).values() if hca.rail == rail]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None


def pick_expected(run: CollectiveRun, wanted: Collectives) -> typing.Optional[ExpectedBusbw]:
    """Return the intent's own floor of a run over all rails: that of its number of nodes before that of all. A rail
    alone has a floor of its own."""
    if run.by_rail or run.gpu is not None or len(run.nodes) < 2:
        return None
    found = {
        item.nodes: item
        for item in wanted.expected_busbw
        if item.test == run.test and item.nodes in (None, len(run.nodes))
    }
    return found.get(len(run.nodes), found.get(None))


def learn_gpus(log: NcclLog, ground: NodesHardware, gpus: int) -> dict[int, int]:
    """Return the GPU of each rail on most hosts, where a rank uses one rail alone: by rail the number of the GPU on its
    node.

    Each host counts once for each rail, however many ranks the log of its pod has.

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
