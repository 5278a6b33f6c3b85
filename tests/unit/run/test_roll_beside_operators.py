# SPDX-License-Identifier: GPL-3.0-or-later

"""A roll by BMCs while the SR-IOV operator drains nodes itself, one after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    REBOOT,
    Server,
    Site,
    World,
    of,
    only,
)

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


def test_all_states_with_a_status_count_where_nothing_shows_the_operator(certificates: Certificates) -> None:
    """The API server drops the status of an object that a tenant creates."""
    theirs = states("Drain_Required", "team-x")[0]
    theirs["metadata"]["name"] = "worker-2"
    del theirs["status"]
    with site_beside(certificates, "Drain_Required", SriovOperatorConfig=[]) as site:
        site.world.put("SriovNetworkNodeState", theirs)
        refusal = site.plan().refusal
        assert "worker-3: the SR-IOV operator drains it" in refusal and "worker-2" not in refusal
    with site_beside(certificates, "Idle", SriovOperatorConfig=[]) as site:
        site.world.put("SriovNetworkNodeState", theirs)
        assert not site.plan().refusal


def card(reason: str, status: str = "True", kind: str = "ConfigUpdateInProgress", **more: typing.Any) -> Data:
    """A card of worker-3 on which the template of this run decides."""
    condition = {"type": kind, "status": status, "reason": reason, "observedGeneration": 2, "message": "", **more}
    return {
        "apiVersion": "configuration.net.nvidia.com/v1alpha1",
        "kind": "NicDevice",
        "metadata": {"name": "worker-3-101d-mt3", "namespace": "nvidia-network-operator", "generation": 2},
        "spec": {"configuration": {"template": {"numVfs": 8, "linkType": "Ethernet"}}},
        "status": {"node": "worker-3", "ports": [{"pci": "0000:01:00.0"}], "conditions": [condition]},
    }


@pytest.mark.parametrize(
    ("item", "taken"),
    [
        (card("PendingReboot"), True),
        (card("UpdateStarted"), True),
        (card("PendingNodeMaintenance", kind="FirmwareUpdateInProgress"), True),
        (card("FirmwareUpdateStarted", kind="FirmwareUpdateInProgress"), True),
        # the daemon has not seen the template of this run
        (card("UpdateSuccessful", "False", observedGeneration=1), True),
        (card("UpdateSuccessful", "False"), False),
        # the operator does not go on by itself
        (card("IncorrectSpec", "False"), False),
        (card("FirmwareError", "False", observedGeneration=1), False),
        (card("PendingFirmwareUpdate"), False),
        (card("FirmwareUpdateFailed", "False", kind="FirmwareUpdateInProgress"), False),
    ],
)
def test_a_node_that_waits_for_nvidias_nic_configuration_operator_counts_as_away(
    certificates: Certificates, item: Data, taken: bool
) -> None:
    with site_beside(certificates, "Idle", NicDevice=[item]) as site:
        refusal = site.plan().refusal
        assert ("worker-3: NVIDIA's NIC configuration operator reboots it or waits for its turn" in refusal) is taken
        assert ("no other node may go down" in refusal) is taken and bool(refusal) is taken


def test_a_node_that_the_operator_reboots_is_not_reset_by_its_bmc(certificates: Certificates) -> None:
    with site_beside(certificates, "Idle", NicDevice=[card("PendingReboot")]) as site:
        bios = site.servers["worker-3"].bios
        bios.answers[bios.path]["Attributes"][ATTRIBUTE] = "Disabled"
        (step,) = (step for step in site.plan().steps if step.node == "worker-3")
        assert "Wait until the operator is done with the node" in " ".join(step.blockers)
        assert of(site.run(), "worker-3").state == "blocked" and site.resets() == {}


def test_a_card_of_a_tenant_does_not_stop_a_roll(certificates: Certificates) -> None:
    """A tenant writes no status of its NicDevice."""
    theirs = {**card("PendingReboot"), "status": {}}
    with site_beside(
        certificates, "Idle", NicDevice=[theirs, {**theirs, "metadata": {"name": "x", "namespace": "y"}}]
    ) as site:
        assert not site.plan().refusal and of(site.run(), "worker-1").state == "done"


@pytest.mark.parametrize("node", ["worker-1", "worker-3"])
def test_a_turn_that_begins_during_the_drain_stops_the_reset(certificates: Certificates, node: str) -> None:
    with site_beside(certificates, "Idle", NicDevice=[]) as site:
        site.world.add("job", "worker-1")
        begun = card("PendingReboot")
        begun["status"]["node"] = node
        do = site.world.do

        def then(what: str) -> None:
            do(what)
            if what == "evict job":
                site.world.put("NicDevice", begun)

        site.world.do = then  # type: ignore[method-assign]
        outcome = of(site.run(), "worker-1")
        assert outcome.state == "failed" and site.resets() == {}
        assert "the node was drained but not reset" in outcome.why and "NIC configuration operator" in outcome.why


def test_cards_that_could_not_be_read_stop_the_roll(certificates: Certificates) -> None:
    with site_beside(certificates, "Idle", NicDevice=[]) as site:
        call = site.cluster._call

        def refusing(method: str, path: str, *more: typing.Any, **options: typing.Any) -> typing.Any:
            if path.startswith(path_of("NicDevice", "")):
                raise ApiError(403, "Forbidden", "cannot list nicdevices", "GET")
            return call(method, path, *more, **options)

        site.cluster._call = refusing  # type: ignore[method-assign]
        outcome = of(site.run(), "worker-1")
        assert outcome.state == "blocked" and "cannot list nicdevices" in outcome.why and site.resets() == {}
        assert "docs/rbac/look.yml" in outcome.why
