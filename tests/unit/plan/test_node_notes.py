# SPDX-License-Identifier: GPL-3.0-or-later

"""What else restarts or drains a node is in the plan: only where it is due, and never as a reboot that does not
come."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import resolve_members
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_notes import of_functions, of_restarts
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

FLEET = healthy(PAIR)
NODE = "node-1"
GIB = 1 << 30


def restarts(host: HostNeeds, **rows: str) -> tuple[str, ...]:
    readings: dict[str, tuple[RowReading, ...]] = {
        name: (RowReading(value, ("containerd",) if name == "memlock" else ()),) for name, value in rows.items()
    }
    intent = dataclasses.replace(FLEET.intent, cluster=dataclasses.replace(FLEET.intent.cluster, host=host))
    return of_restarts(ObservedTuning(NodeTuning(readings)), intent)


@pytest.mark.parametrize(
    ("memlock", "value", "due"),
    [
        (Memlock("containerd", 8), str(8 * GIB), False),
        (Memlock("containerd", 8), "8388608", True),
        (Memlock("containerd", unlimited=True), "unlimited", False),
        (Memlock("containerd", unlimited=True), "8388608", True),
        # by the machine config operator, which reboots
        (Memlock("machine_config", 8), "8388608", False),
    ],
)
def test_containerd_is_restarted_where_its_limit_is_another(memlock: Memlock, value: str, due: bool) -> None:
    notes = restarts(HostNeeds(memlock=memlock), memlock=value)
    assert bool(notes) is due and all("no reboot required" in note and "restarts containerd" in note for note in notes)


def test_a_limit_that_nobody_has_seen_may_be_another() -> None:
    assert restarts(HostNeeds(memlock=Memlock("containerd", 8)))
    intent = dataclasses.replace(
        FLEET.intent,
        cluster=dataclasses.replace(FLEET.intent.cluster, host=HostNeeds(memlock=Memlock("containerd", 8))),
    )
    assert of_restarts(ObservedTuning(error="unreachable"), intent)


def test_policies_of_the_kubelet_take_a_restart_that_nobody_does() -> None:
    asked = HostNeeds(kubelet=Kubelet(topology_manager_policy="single-numa-node", cpu_manager_policy="static"))
    (note,) = restarts(asked, topology_manager="none", cpu_manager="static")
    assert (
        "the policy of the topology manager of the kubelet is none, but the intent requires single-numa-node" in note
        and "no reboot required" in note
        and "This collection does not change the kubelet of a node without a MachineConfigPool" in note
    )
    assert restarts(asked, topology_manager="single-numa-node", cpu_manager="static") == () == restarts(HostNeeds())
    assert len(restarts(asked)) == 2


def functions(current: typing.Optional[int]) -> tuple[str, ...]:
    """Notes where the first HCA has so many VFs."""
    facts = FLEET.of("platform")
    nodes = {name: observed.value for name, observed in facts.nodes.items()}
    memberships = [
        resolve_members(fabric, nodes, {name: observed.value for name, observed in facts.subnets.items()})
        for fabric in FLEET.intent.fabrics
    ]
    platform = facts.platforms[NODE].value
    wanted = {fabric.name: fabric.virtual_functions for fabric in FLEET.intent.fabrics}
    of_hcas = {
        member.hca.pci.address: wanted[one.fabric]
        for one in memberships
        for member in one.members[NODE]
        if member.hca.pci
    }
    seen = [dataclasses.replace(one, sriov_current=of_hcas.get(one.address)) for one in platform.functions]
    first = next(index for index, one in enumerate(seen) if one.address in of_hcas)
    if current is not None:
        seen[first] = dataclasses.replace(seen[first], sriov_current=current)
    return of_functions(
        NODE, memberships, ObservedPlatform(dataclasses.replace(platform, functions=tuple(seen))), FLEET.intent
    )


def test_a_drain_of_the_sriov_operator_is_told_where_vfs_change() -> None:
    assert functions(None) == ()
    (note,) = functions(0)
    assert (
        "stage network: the SR-IOV network operator drains the node" in note
        and " 0 -> " in note
        and "This plan does not include that drain" in note
    )
    assert of_functions(NODE, [], ObservedPlatform(error="unreachable"), FLEET.intent) == ()
