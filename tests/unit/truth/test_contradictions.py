# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts that contradict each other, or are but half there: no such run is green, and the finding says what does not
fit."""

from __future__ import annotations

import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    LostManager,
    ObservedTopologies,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclProblem
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import NodePlatform

from .breaks import kind_of
from .fleet import MIXED, PAIR, ROCE, Shape, healthy
from .judge import findings

Change = typing.Callable[[typing.Any], typing.Any]


def replaced(**changes: typing.Any) -> Change:
    return lambda value: dataclasses.replace(value, **changes)


def first(change: Change) -> Change:
    """A change of the first entry of a list."""
    return lambda items: (change(items[0]), *items[1:])


def on_first_node(change: Change) -> Change:
    """A change of what the first node answered."""

    def changed(nodes: typing.Any) -> typing.Any:
        name = next(iter(nodes))
        return {**nodes, name: dataclasses.replace(nodes[name], value=change(nodes[name].value))}

    return changed


def vfio(value: NodePlatform) -> NodePlatform:
    return dataclasses.replace(value, functions=first(replaced(driver="vfio-pci"))(value.functions))


def without_a_leaf(value: typing.Any) -> typing.Any:
    seen = value[0]
    nodes = tuple(node for node in seen.topology.nodes if node.description != "leaf-1-1")
    return (dataclasses.replace(seen, topology=dataclasses.replace(seen.topology, nodes=nodes)),)


def another_destination(plan: typing.Any) -> typing.Any:
    """The first port was to ping a LID that no port has."""
    name = next(iter(plan))
    task = plan[name].clients[0]
    clients = (dataclasses.replace(task, lids=(7, *task.lids[1:])), *plan[name].clients[1:])
    return {**plan, name: dataclasses.replace(plan[name], clients=clients)}


def only_one_gpu_direct(log: typing.Any) -> typing.Any:
    """The log does not say of one connection over the network whether it is GPUDirect RDMA."""
    ranks = log.communicators[0].ranks
    routes = tuple(
        dataclasses.replace(route, gpu_direct=None) if route.transport == "NET" else route for route in ranks[0].routes
    )
    changed = (dataclasses.replace(ranks[0], routes=routes), *ranks[1:])
    return dataclasses.replace(log, communicators=(dataclasses.replace(log.communicators[0], ranks=changed),))


def unknown_and_not_listed(plan: typing.Any) -> typing.Any:
    """Nothing is known of a node, and the plan says that the inventory does not have it."""
    return dataclasses.replace(plan, nodes=first(replaced(action="unknown", listed=False))(plan.nodes))


def lost_beside_a_master(subnets: typing.Any) -> typing.Any:
    """The port from which the fabric is seen has lost its manager, by one part of its answer."""
    return first(replaced(lost=LostManager(1)))(subnets)


def of_the_second_node(nodes: typing.Any) -> typing.Any:
    """One machine under two names of the inventory."""
    names = list(nodes)
    return {**nodes, names[0]: nodes[names[1]]}


class Contradiction(typing.NamedTuple):
    """check, subject, status and words of the finding that must come of it."""

    shape: Shape
    kind: str
    change: Change
    check: str
    subject: str
    status: str
    says: str


CASES = (
    Contradiction(
        PAIR,
        "subnets",
        on_first_node(lost_beside_a_master),
        "fabric.island",
        "compute",
        "fail",
        "queries to the subnet manager get no response: node-1 mlx5_0",
    ),
    Contradiction(
        PAIR,
        "disruption.plan",
        unknown_and_not_listed,
        "network.disruption",
        "node-1 (not in the inventory)",
        "unknown",
        "it is unknown whether the change drains or reboots the node",
    ),
    Contradiction(
        ROCE,
        "hcas",
        of_the_second_node,
        "discover.hardware_addresses",
        "MAC address 94:6d:ae:01:00:00",
        "fail",
        "node-1 mlx5_0 (ens0np0), node-2 mlx5_0 (ens0np0)",
    ),
    Contradiction(
        PAIR,
        "platform",
        on_first_node(vfio),
        "platform.driver",
        "node-1 mlx5_0",
        "fail",
        "The whole function is assigned to a virtual machine",
    ),
    Contradiction(
        PAIR,
        "platform",
        on_first_node(replaced(errors=("functions: I/O error",))),
        "platform.node",
        "node-1",
        "warn",
        "functions: I/O error",
    ),
    Contradiction(
        PAIR,
        "topologies",
        on_first_node(without_a_leaf),
        "fabric.topology",
        "compute links",
        "unknown",
        "switch 0x0300000001000000",
    ),
    Contradiction(
        MIXED,
        "ping_plan",
        another_destination,
        "reachability.port",
        "compute rail 0 node-01 mlx5_0 port 1",
        "unknown",
        "to LID 7, which no port of the rail has any more",
    ),
    Contradiction(
        ROCE,
        "rolls",
        lambda rolls: (),
        "network.roll",
        "MachineConfigPool worker",
        "unknown",
        "the run ended before it waited for the update",
    ),
    Contradiction(
        PAIR,
        "addresses",
        lambda seen: dataclasses.replace(seen, taken=first(replaced(network="10.244.0.0/99"))(seen.taken)),
        "network.address_overlap",
        "cluster",
        "unknown",
        "'10.244.0.0/99' is not a valid network",
    ),
    Contradiction(
        PAIR,
        "cluster_policy.policies",
        replaced(rdma=False),
        "host.cluster_policy",
        "ClusterPolicy cluster-policy",
        "fail",
        "This run did not set driver.rdma.enabled to true",
    ),
    Contradiction(
        PAIR,
        "memlock.proofs",
        first(replaced(user=None)),
        "host.memlock",
        "compute node-1",
        "unknown",
        "does not show as which user the test ran",
    ),
    Contradiction(
        PAIR,
        "memlock.proofs",
        first(replaced(registered=1 << 20)),
        "host.memlock",
        "compute node-1",
        "unknown",
        "registered 1 MiB",
    ),
    Contradiction(
        PAIR,
        "nccl_log.log",
        replaced(processes=()),
        "training.oob",
        "job-worker-1",
        "unknown",
        "lacks the line 'Bootstrap: Using INTERFACE:ADDRESS'",
    ),
    Contradiction(
        PAIR,
        "nccl_log.log",
        replaced(processes=()),
        "training.ranks",
        "job-worker-1 rank 4",
        "unknown",
        "but not the first lines of its process",
    ),
    Contradiction(
        PAIR,
        "nccl_log.log",
        only_one_gpu_direct,
        "training.gpu_direct",
        "job-worker-0 rank 0",
        "fail",
        "does not show the reason",
    ),
    Contradiction(
        PAIR,
        "nccl_log.log",
        replaced(problems=(NcclProblem("of a newer version", "text", "", ("job-worker-0",), 1, 9),)),
        "training.problem",
        "job-worker-0 line 9",
        "warn",
        "its effect on the network is not known",
    ),
)


def test_what_does_not_fit_is_named() -> None:
    wrong = []
    for case in CASES:
        fleet = healthy(case.shape)
        source = next(item for sources in SOURCES.values() for item in sources.values() if kind_of(item) == case.kind)
        found = findings(fleet, case.check.partition(".")[0], {**fleet.facts, source: case.change(fleet.facts[source])})
        same = [
            item for item in found if (item.check, item.subject, item.status) == (case.check, case.subject, case.status)
        ]
        if not any(case.says in f"{item.measured} {item.why}" for item in same):
            wrong.append(f"{case.check} {case.subject}: {[item for item in found if item.check == case.check][:4]}")
    assert not wrong, "\n".join(wrong)


def test_a_leaf_that_is_not_among_the_nodes_is_called_by_its_guid() -> None:
    """A suspect must have a name, also where the discovery missed it."""
    fleet = healthy(PAIR)
    source = next(item for item in SOURCES["fabric"].values() if kind_of(item) == "topologies")
    seen = {
        name: ObservedTopologies(without_a_leaf(item.value)) if item.value else item
        for name, item in fleet.facts[source].items()
    }
    assert {item.status for item in findings(fleet, "reachability", {**fleet.facts, source: seen})} == {"pass"}
