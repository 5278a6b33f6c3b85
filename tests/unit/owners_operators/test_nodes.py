# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes, which an upgrade of OpenShift and the cluster-autoscaler take down as well."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import KEEP
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.turns.roll_limits import RollLimits
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.roll_world import NODES, Killed, World, merged, playing, states

from ..run.test_driver_plan import Cluster, intent_of, read, refusals
from .situations import REFUSE, ROLL, SCALED, UPGRADING, cells

Data = dict[str, typing.Any]
GROUP = "/apis/config.openshift.io"


def cluster_version(progressing: bool) -> Data:
    condition = {"type": "Progressing", "status": str(progressing), "message": "Working towards 4.20.3: 40% complete."}
    return {"kind": "ClusterVersion", "metadata": {"name": "version"}, "status": {"conditions": [condition]}}


class OpenShift(World):
    """A cluster with a ClusterVersion, and what the cluster-autoscaler may delete."""

    def __init__(self, progressing: bool) -> None:
        super().__init__()
        self.serve("ClusterVersion", [cluster_version(progressing)])
        #: nodes that were drained without the annotation
        self.deletable: list[str] = []

    def object(self, path: str) -> typing.Optional[Data]:
        return {"kind": "APIGroup"} if path == GROUP else super().object(path)

    def boot(self, name: str) -> None:
        super().boot(name)
        if self.seen(name)["metadata"].get("annotations", {}).get(KEEP) != "true":
            self.deletable.append(name)

    def kept(self, name: str) -> bool:
        return KEEP in self.seen(name)["metadata"].get("annotations", {})


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize(("owner", "action", "result"), cells("Node"))
def test_cell(certificates: Certificates, owner: str, action: str, result: str) -> None:
    world = OpenShift(owner == UPGRADING)
    if owner == SCALED:
        # an admin has set it for one node
        world.put("Node", merged(world.seen(NODES[0]), {"metadata": {"annotations": {KEEP: "true"}}}))
    with playing(certificates, world) as site:
        done = site.run()
    assert action == ROLL and (result == REFUSE) is (not world.did)
    assert set(states(done).values()) == {"blocked" if result == REFUSE else "done"}
    if result == REFUSE:
        for one in done.outcomes:
            assert "Working towards 4.20.3" in one.why and "oc get clusterversion version" in one.why
    # the annotation of the admin stays, and no other
    assert [world.kept(name) for name in NODES] == [owner == SCALED, False, False] and not world.deletable


@pytest.mark.parametrize("killed", [False, True])
def test_value_that_keeps_no_node_is_replaced_while_the_node_is_empty_and_comes_back(
    certificates: Certificates, killed: bool
) -> None:
    world = OpenShift(False)
    world.put("Node", merged(world.seen(NODES[0]), {"metadata": {"annotations": {KEEP: "false"}}}))
    with playing(certificates, world) as site:
        if killed:
            world.kill = f"reset {NODES[0]}"
            with pytest.raises(Killed):
                site.run()
        site.run()
    assert not world.deletable
    assert [world.seen(name)["metadata"]["annotations"].get(KEEP) for name in NODES] == ["false", None, None]


def test_the_next_run_removes_the_annotation_of_a_killed_one(certificates: Certificates) -> None:
    world = OpenShift(False)
    with playing(certificates, world) as site:
        world.kill = f"reset {NODES[0]}"
        with pytest.raises(Killed):
            site.run()
        assert world.kept(NODES[0])
        site.run()
        assert not any(map(world.kept, NODES)) and not world.deletable


def test_a_node_that_is_not_drained_is_released(certificates: Certificates) -> None:
    world = OpenShift(False)
    with playing(certificates, world) as site:
        site.limits = RollLimits(drain=2, back=300, settle=10, grace=30)
        world.add("web", NODES[0])
        world.held["web"] = 1000
        site.run()
    assert not world.kept(NODES[0])


class Upgraded(OpenShift):
    """A cluster whose admin begins an upgrade during a roll.

    :ivar begins: action of the roll after which the upgrade begins
    :ivar ends: whether it ends while the next node waits
    """

    def __init__(self, begins: str, ends: bool = False) -> None:
        super().__init__(False)
        self.begins, self.ends, self.waited = begins, ends, 0

    def do(self, what: str) -> None:
        super().do(what)
        if what == self.begins:
            self.put("ClusterVersion", cluster_version(True))

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        self.waited += self.ends and not self.away
        if self.waited == 10:
            self.put("ClusterVersion", cluster_version(False))


def test_an_upgrade_that_begins_during_a_roll_keeps_the_nodes_that_have_not_begun(certificates: Certificates) -> None:
    world = Upgraded(f"reset {NODES[0]}")
    with playing(certificates, world) as site:
        done = site.run()
    assert [what for what in world.did if what.startswith(("reset", "cordon"))] == [
        f"cordon {NODES[0]}",
        f"reset {NODES[0]}",
    ]
    assert states(done) == {NODES[0]: "done", NODES[1]: "left", NODES[2]: "left"}
    for one in done.outcomes[1:]:
        assert "Working towards 4.20.3" in one.why and "oc get clusterversion version" in one.why


def test_a_node_waits_for_an_upgrade_that_ends_soon(certificates: Certificates) -> None:
    world = Upgraded(f"reset {NODES[0]}", ends=True)
    with playing(certificates, world) as site:
        done = site.run()
    assert set(states(done).values()) == {"done"} and world.waited > 10


def test_a_node_is_not_reset_for_which_the_upgrade_begins_during_its_drain(certificates: Certificates) -> None:
    world = Upgraded("evict web")
    world.add("web", NODES[0])
    with playing(certificates, world) as site:
        done = site.run()
    assert "evict web" in world.did and not any(what.startswith("reset") for what in world.did)
    assert states(done) == {NODES[0]: "failed", NODES[1]: "left", NODES[2]: "left"} and not world.cordoned(NODES[0])
    assert "drained but not reset: an upgrade of OpenShift is in progress" in done.outcomes[0].why


class Known(Cluster):
    """A cluster of OpenShift."""

    def serves(self, group: str) -> bool:
        return group == "config.openshift.io"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((cluster_version(True),), "an upgrade of OpenShift is in progress"),
        ((cluster_version(False),), ""),
        (ApiError(403, "Forbidden", "forbidden", "GET"), "upgrade of OpenShift is in progress is unknown"),
    ],
    ids=["upgrade", "none", "unread"],
)
def test_the_plan_of_stage_network_refuses_drains_during_an_upgrade(answer: typing.Any, said: str) -> None:
    intent = intent_of()
    checks: Data = dict.fromkeys(
        ("MachineHealthCheck.machine.openshift.io", "MachineHealthCheck.cluster.x-k8s.io", "NodeHealthCheck"), ()
    )
    planned = read(intent, Known(ClusterVersion=answer, Machine=(), **checks))
    refused = " ".join(refusals(intent, planned))
    assert (said in refused) and bool(refused) is bool(said)
