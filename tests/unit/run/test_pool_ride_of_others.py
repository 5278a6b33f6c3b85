# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage platform may do with MachineConfigPools beside its own nodes: pools that another intent left paused, nodes
of its pool that are not in the inventory, and pools that reboot more nodes at once than the intent permits."""

from __future__ import annotations

import contextlib
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.machine_config import PAUSED_ANNOTATION
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import Resource
from ansible_collections.linerate.rdma.tests.unit.roll_world import NODES, REBOOT, Server, merged, node, of, states
from ansible_collections.linerate.rdma.tests.unit.run.test_pool_ride import (
    ANNOTATIONS,
    POOLS,
    Operated,
    Pooled,
    certificates,
    dies,
    pool,
)

__all__ = ["certificates"]
OUTSIDER = "outsider"


class Shared(Operated):
    """A cluster with a second pool, infra, and a node of the pool worker that is not in the inventory."""

    def __init__(self) -> None:
        super().__init__()
        for group in ("machineconfiguration.openshift.io", "remediation.medik8s.io"):
            self._objects[f"/apis/{group}"], self._events[f"/apis/{group}"] = {}, []
        self.serve("NodeHealthCheck", [])
        self.put("Node", node(OUTSIDER))
        self.unpaused: list[str] = []

    def leave_paused(self, intent: str) -> None:
        """A killed run of another intent left the pool infra paused before a new configuration."""
        manager = {"manager": "linerate.rdma", "fieldsV1": {"f:spec": {"f:paused": {}}}}
        metadata = {"name": "infra", "annotations": {PAUSED_ANNOTATION: intent}, "managedFields": [manager]}
        spec = {
            "paused": True,
            "nodeSelector": {"matchLabels": {"role": "infra"}},
            "machineConfigSelector": {"matchLabels": {f"{ANNOTATIONS}role": "infra"}},
            "configuration": {"name": "rendered-infra-2", "source": []},
        }
        status = {"configuration": {"name": "rendered-infra-1"}, "machineCount": 1, "updatedMachineCount": 0}
        self.put("MachineConfigPool", merged(pool(), {"metadata": metadata, "spec": spec, "status": status}))
        config = {f"{ANNOTATIONS}{key}Config": "rendered-infra-1" for key in ("current", "desired")}
        told = {"labels": {"role": "infra"}, "annotations": {**config, f"{ANNOTATIONS}state": "Done"}}
        self.put("Node", merged(node("infra-1"), {"metadata": told}))

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path != f"{POOLS}/infra":
            return super().write(method, path, body, dry_run)
        found = merged(self.object(path) or {}, body)
        if not body["spec"]["paused"]:
            self.unpaused.append("infra")
            found = merged(found, {"status": {"configuration": {"name": "rendered-infra-2"}, "updatedMachineCount": 1}})
        self.put("MachineConfigPool", found)
        return 200, found


@pytest.fixture
def site(certificates: Certificates) -> typing.Iterator[Pooled]:
    world = Shared()
    world.start()
    with contextlib.ExitStack() as stack:
        stack.callback(world.stop)
        file = certificates.of()
        world.servers = {name: stack.enter_context(Server(world, name, file)) for name in NODES}
        found = Pooled(certificates, world.servers, world)
        found.look(*NODES)
        yield found


def shared(site: Pooled) -> Shared:
    assert isinstance(site.world, Shared)
    return site.world


@pytest.mark.parametrize("killed", [True, False], ids=["while its own pool rolls", "before it begins"])
def test_a_pool_that_another_intent_left_paused_stays_paused(site: Pooled, killed: bool) -> None:
    if killed:
        dies(site, "operator takes worker-1")
    shared(site).leave_paused("storage")
    assert not any("infra" in line for line in describe_plan(site.plan()))
    assert set(states(site.settle()).values()) == {"done"}
    assert shared(site).unpaused == []


def test_a_pool_that_the_own_intent_left_paused_is_planned_and_unpaused(site: Pooled) -> None:
    shared(site).leave_paused("true")
    site.world.put("Node", merged(site.world.seen("worker-3"), {"metadata": {"labels": {"role": "infra"}}}))
    assert any("MachineConfigPool infra" in line for line in describe_plan(site.plan()))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("check", "outsider (not in the inventory): NodeHealthCheck checks"),
        ("pod", "no controller recreates these pods: jobs/training"),
        ("not ready", "outsider (not in the inventory): the node is not Ready"),
    ],
)
def test_a_node_outside_of_the_inventory_that_must_not_go_down_holds_the_roll_of_its_pool(
    site: Pooled, change: str, why: str
) -> None:
    site.world.join(OUTSIDER)
    if change == "check":
        site.world.put("Node", merged(site.world.seen(OUTSIDER), {"metadata": {"labels": {"watched": "yes"}}}))
        spec = {"selector": {"matchLabels": {"watched": "yes"}}}
        site.world.put("NodeHealthCheck", {"metadata": {"name": "checks", "resourceVersion": "1"}, "spec": spec})
    elif change == "pod":
        site.world.add("training", OUTSIDER, owner="")
    else:
        site.world.put("Node", merged(site.world.seen(OUTSIDER), {"status": {"conditions": []}}))
    done = site.run()
    assert set(states(done).values()) == {"blocked"} and site.world.reboots == {}
    assert why in of(done, "worker-1").why


def test_a_pool_that_reboots_more_nodes_at_once_than_the_intent_permits_is_not_rolled(site: Pooled) -> None:
    site.world.change({"spec": {"maxUnavailable": "100%"}})
    roller = site.roller()
    done = roller.roll(roller.plan(NODES, dataclasses.replace(REBOOT, node_pool=DrainPool(1))))
    assert set(states(done).values()) == {"blocked"} and site.world.did == []
    assert "allows 3 nodes to go down at the same time (maxUnavailable is 100%)" in of(done, "worker-1").why
