# SPDX-License-Identifier: GPL-3.0-or-later

"""A port whose node tells the LID of another one: a finding of stage fabric with both ports, and no proof for stage
reachability."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.pings import Endpoint, plan
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.check import Facts as FabricFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.check import check as check_fabric
from ansible_collections.linerate.rdma.plugins.module_utils._check.reachability.check import Facts as ReachabilityFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.reachability.check import check as check_reachability
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    ObservedTopologies,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import (
    ObservedPings,
    ObservedServers,
    Ping,
    PingServer,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding

from . import fabric_world as world

#: LID of mlx5_1 of worker-2, and of mlx5_0
OTHER, OWN = 33, 32
INTENT = Intent((world.fabric(),))
SUBNETS = {name: ObservedSubnets(world.subnets()) for name in world.NODES}
SHOWN = {"worker-1": ObservedTopologies(world.seen_topologies()), "worker-2": ObservedTopologies(())}
UNSHOWN = {"worker-1": ObservedTopologies(world.seen_topologies(error="timeout")), "worker-2": ObservedTopologies(())}
#: indexes of row S1.6 of the fabric, rail by rail
MEMBERS = (0, 1, 4, 5)


def hcas(**port: typing.Any) -> dict[str, ObservedHcas]:
    """Both workers; keywords change what worker-2 tells of its mlx5_0."""
    return {
        "worker-1": ObservedHcas(world.node(1)),
        "worker-2": ObservedHcas(world.node(2, mlx5_0=world.hca(2, 0, **port))),
    }


def lids(topologies: typing.Mapping[str, ObservedTopologies], **port: typing.Any) -> list[Finding]:
    findings = check_fabric(INTENT, FabricFacts(hcas(**port), SUBNETS, dict(topologies)))
    return [finding for finding in findings if finding.check == "fabric.lids"]


@pytest.mark.parametrize("topologies", [SHOWN, UNSHOWN])
def test_ports_with_lids_of_their_own_are_no_finding(topologies: typing.Mapping[str, ObservedTopologies]) -> None:
    assert lids(topologies) == lids(topologies, lid=None) == []


def test_the_topology_tells_whose_a_lid_is() -> None:
    (finding,) = lids(SHOWN, lid=OTHER)
    assert (finding.subject, finding.status, finding.measured) == (
        "compute LID 33",
        "fail",
        "LID 33 in sysfs of worker-2 mlx5_0 port 1",
    )
    guid = world.hca(2, 1).ports[0].guid
    assert (
        finding.why == "The nodes report LID 33 for worker-2 mlx5_0 port 1 and worker-2 mlx5_1 port 1. "
        f"The topology shows this LID at worker-2 mlx5_1 (GUID {guid}), LID 32 at worker-2 mlx5_0 port 1. "
        "The LID in sysfs of worker-2 mlx5_0 port 1 is therefore wrong, or it changed during the stage."
    )
    assert (
        "run smpquery nodeinfo 33 as root on another node, and compare its PortGuid with the last 8 bytes of"
        " /sys/class/infiniband/mlx5_0/ports/1/gids/0 on worker-2. If they differ or smpquery fails, worker-2 reports"
        " a wrong LID:" in finding.remedy
    )
    assert "If they are equal, let the subnet manager assign the LIDs again" in finding.remedy
    assert finding.remedy.endswith("Then run stage fabric again.")
    assert finding.expected == "a LID in sysfs of each port that is equal to the LID from the subnet manager"


def test_without_a_topology_neither_of_two_ports_has_it() -> None:
    (finding,) = lids(UNSHOWN, lid=OTHER)
    assert finding.measured == "LID 33 in sysfs of worker-2 mlx5_0 port 1, worker-2 mlx5_1 port 1"
    assert finding.why.startswith(
        "The nodes report LID 33 for worker-2 mlx5_0 port 1 and worker-2 mlx5_1 port 1."
        " Packets to a LID reach only one port, so at most one of these ports has the LID."
    )


def test_a_port_that_says_to_be_the_other_one_in_all_takes_it_from_neither() -> None:
    (finding,) = lids(SHOWN, lid=OTHER, guid=world.hca(2, 1).ports[0].guid)
    assert finding.measured == "LID 33 in sysfs of worker-2 mlx5_0 port 1, worker-2 mlx5_1 port 1"


def test_a_lid_that_no_node_tells_and_the_topology_shows_elsewhere() -> None:
    (finding,) = lids(SHOWN, lid=1)
    assert finding.why.startswith(
        "The node reports LID 1 for worker-2 mlx5_0 port 1. The topology shows this LID at"
        " MF0;leaf00:MQM9700/U1 (GUID 0x0000000000000100), LID 32"
    )
    (unseen,) = lids(SHOWN, lid=1, guid="0x00000000000000ff")
    assert (
        "port 1. The topology shows this LID at MF0;leaf00:MQM9700/U1 (GUID 0x0000000000000100). The LID"
    ) in unseen.why


def test_two_subnets_have_the_same_lids() -> None:
    """mlx5_2 sees another manager, of another fabric."""
    nodes = {**hcas(), "worker-1": ObservedHcas(world.node(1, mlx5_2=world.hca(1, 2, lid=OTHER)))}
    findings = check_fabric(INTENT, FabricFacts(nodes, SUBNETS, dict(SHOWN)))
    assert [finding for finding in findings if finding.check == "fabric.lids"] == []


def test_a_virtual_function_has_the_lid_of_its_card() -> None:
    parent = world.hca(2, 1)
    assert parent.pci is not None
    virtual = dataclasses.replace(parent, name="mlx5_9", physical_function=parent.pci.address)
    node = NodeHcas((*world.node(2).hcas, virtual))
    findings = check_fabric(INTENT, FabricFacts({**hcas(), "worker-2": ObservedHcas(node)}, SUBNETS, dict(SHOWN)))
    assert [finding for finding in findings if finding.check == "fabric.lids"] == []


def test_a_node_that_takes_every_lid_gets_32_findings() -> None:
    many = tuple(dataclasses.replace(world.hca(2, 0), name=f"mlx5_{number}") for number in range(100, 140))
    crowd = [
        dataclasses.replace(one, rdma_device=one.name, ports=(dataclasses.replace(one.ports[0], lid=number),))
        for number, one in enumerate(many, 1000)
    ]
    nodes = {"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(NodeHcas((*world.node(2).hcas, *crowd)))}
    seen = (*world.subnets(), *(dataclasses.replace(world.subnets()[0], rdma_device=one.name) for one in crowd))
    findings = check_fabric(INTENT, FabricFacts(nodes, {**SUBNETS, "worker-2": ObservedSubnets(seen)}, dict(SHOWN)))
    found = [finding for finding in findings if finding.check == "fabric.lids"]
    assert len(found) == 33
    assert (found[-1].subject, found[-1].measured) == ("compute LIDs", "40 LIDs in sysfs of wrong ports")


@pytest.mark.parametrize(("topologies", "proven"), [(SHOWN, "pass"), (UNSHOWN, "fail")])
def test_who_answers_at_the_lid_of_another_port_proves_nothing(
    topologies: typing.Mapping[str, ObservedTopologies], proven: str
) -> None:
    told = hcas(lid=OTHER)
    lid = {(name, index): 16 * number + index for name, number in world.NODES.items() for index in MEMBERS}
    lid["worker-2", 0] = OTHER
    planned = plan(
        [{name: Endpoint(f"mlx5_{index}", 1, lid[name, index]) for name in world.NODES} for index in MEMBERS]
    )
    pings = {
        name: ObservedPings(tuple(Ping(task.device, 1, one, 500, 500) for task in part.clients for one in task.lids))
        for name, part in planned.items()
    }
    serving = {
        name: ObservedServers(tuple(PingServer(port.device, port.port) for port in part.servers))
        for name, part in planned.items()
    }
    findings = check_reachability(
        INTENT, ReachabilityFacts(told, SUBNETS, dict(topologies), planned, serving, pings, serving)
    )
    by_subject = {finding.subject: finding for finding in findings}
    port = by_subject["compute rail 0 worker-2 mlx5_0 port 1"]
    assert (port.status, port.measured) == ("fail", "LID 33 in sysfs of this port")
    assert port.why.endswith("So pings to LID 33 may have reached a different port.")
    assert "The nodes report LID 33 for worker-2 mlx5_0 port 1 and worker-2 mlx5_1 port 1" in port.why
    assert "Follow the remedy of the finding fabric.lids of LID 33" in port.remedy
    assert by_subject["compute rail 1 worker-2 mlx5_1 port 1"].status == proven
    pair = by_subject["compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0"]
    assert (pair.status, pair.measured) == ("unknown", "no result of ibping (LID 16 -> LID 33)")
    assert ("the LID of the server is not verified, so a different port may have answered") in pair.why
