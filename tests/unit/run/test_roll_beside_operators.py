# SPDX-License-Identifier: GPL-3.0-or-later

"""A roll by BMCs while the SR-IOV operator drains nodes itself, one after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.roll_world import NODES, REBOOT, Server, Site, World, of, only

Data = dict[str, typing.Any]


def states(desired: str, namespace: str = "sriov-network-operator") -> list[Data]:
    annotations = {
        "sriovnetwork.openshift.io/desired-state": desired,
        "sriovnetwork.openshift.io/current-state": "Idle",
    }
    metadata = {"name": "worker-3", "namespace": namespace, "annotations": annotations}
    kind = {"apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState"}
    return [{**kind, "metadata": metadata, "status": {"syncStatus": "InProgress"}}]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.contextmanager
def site_beside(certificates: Certificates, desired: str, **served: list[Data]) -> typing.Iterator[Site]:
    world = World()
    world.serve("SriovNetworkNodeState", states(desired))
    for kind, items in served.items():
        world.serve(kind, items)
    world.start()
    with contextlib.ExitStack() as stack:
        stack.callback(world.stop)
        file = certificates.of()
        site = Site(certificates, {name: stack.enter_context(Server(world, name, file)) for name in NODES}, world)
        only(site, "worker-1")
        yield site


def test_a_node_that_waits_for_its_turn_of_the_sriov_operator_counts_as_away(certificates: Certificates) -> None:
    with site_beside(certificates, "Drain_Required") as site:
        refusal = site.plan().refusal
        assert "worker-3: the SR-IOV operator drains it or waits for its turn" in refusal
        assert "no other node may go down" in refusal


def test_nodes_that_the_sriov_operator_left_idle_do_not_stop_a_roll(certificates: Certificates) -> None:
    with site_beside(certificates, "Idle") as site:
        assert not site.plan().refusal
        assert of(site.run(), "worker-1").state == "done"


CONFIG: Data = {"kind": "SriovOperatorConfig", "metadata": {"name": "default", "namespace": "sriov-network-operator"}}


@pytest.mark.parametrize("intent", [REBOOT, dataclasses.replace(REBOOT, operator_namespace="sriov-network-operator")])
@pytest.mark.parametrize("own", ["Idle", "Drain_Required"])
def test_states_of_a_tenant_do_not_stop_a_roll(certificates: Certificates, own: str, intent: ClusterIntent) -> None:
    """A tenant may create an object with the name of any node in its namespace."""
    theirs = states("Drain_Required", "team-x")
    theirs[0]["metadata"]["name"] = "worker-2"
    named = bool(intent.operator_namespace)
    served = {"SriovOperatorConfig": [] if named else [CONFIG]}
    with site_beside(certificates, own, **served) as site:
        site.world.put("SriovNetworkNodeState", theirs[0])
        refusal = site.plan(intent).refusal
        assert "worker-2" not in refusal and bool(refusal) is (own != "Idle")
        if own == "Idle":
            assert of(site.run(intent), "worker-1").state == "done"


def test_all_states_count_where_nothing_shows_the_operator(certificates: Certificates) -> None:
    with site_beside(certificates, "Drain_Required", SriovOperatorConfig=[]) as site:
        assert "worker-3: the SR-IOV operator drains it" in site.plan().refusal
