# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators that take nodes down at the same time as a roll, or as another operator."""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.action import nic_firmware_plan
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.gate import list_roll_blockers
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import (
    CardTurns,
    count_operations,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.room import GateInputs
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import may_go_on
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    LabelSelector,
    MachinePool,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.roll import list_removal_blockers
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import gate as GATE
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import read_gate_inputs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.health_checks import HealthChecks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_turns import TurnReader
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.hostile.test_rolls import control_plane
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    NODES,
    REBOOT,
    Site,
    World,
    merged,
    of,
    only,
    playing,
    states,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import MORE, OBJECTS
from ansible_collections.linerate.rdma.tests.unit.run.test_undrained_changes import (
    NO_CLAIMS,
    OPERATOR,
    STATE,
    WithFields,
)

Data = dict[str, typing.Any]
PLACE = "sriov-network-operator"
TWO = dataclasses.replace(REBOOT, node_pool=DrainPool(max_unavailable=2))
IDLE, REQUIRED = "Idle", "Reboot_Required"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def state(name: str, desired: str = IDLE, sync: str = "Succeeded", current: str = IDLE, place: str = PLACE) -> Data:
    notes = {
        "sriovnetwork.openshift.io/desired-state": desired,
        "sriovnetwork.openshift.io/current-state": current,
    }
    return {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodeState",
        "metadata": {"name": name, "namespace": place, "annotations": notes},
        "status": {"syncStatus": sync},
    }


def daemon(node: str, start: str, place: str = PLACE, name: str = "") -> Data:
    labels = {"app": "sriov-network-config-daemon"}
    metadata = {"name": name or f"daemon-{node}", "namespace": place, "labels": labels, "uid": f"uid-{node}"}
    owners = [{"kind": "DaemonSet", "name": "sriov-network-config-daemon", "uid": "d", "controller": True}]
    return {
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": owners},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running", "containerStatuses": [{"name": "daemon", "containerID": start}]},
    }


class Beside(World):
    """A cluster with the SR-IOV operator.

    :ivar on: what happens in the cluster after something was done to a node
    :ivar later: what happens at a time of the clock
    """

    def __init__(self) -> None:
        super().__init__()
        self.on: dict[str, typing.Callable[[], object]] = {}
        self.later: list[tuple[float, typing.Callable[[], None]]] = []
        self.serve("SriovNetworkNodeState", [state(name) for name in NODES])
        self.serve("SriovOperatorConfig", [{"metadata": {"name": "default", "namespace": PLACE}}])

    def do(self, what: str) -> None:
        super().do(what)
        self.on.pop(what, lambda: None)()

    def pause(self, seconds: float) -> None:
        for when, then in [one for one in self.later if one[0] <= self.now]:
            self.later.remove((when, then))
            then()
        super().pause(seconds)

    def turn(self, name: str, desired: str, sync: str = "Succeeded", after: float = 0.0) -> float:
        """Return the time at which it happens."""

        def then() -> None:
            self.do(f"{desired} {name}")
            self.put("SriovNetworkNodeState", state(name, desired, sync))

        if after:
            self.later.append((self.now + after, then))
        else:
            then()
        return self.now + after

    def start_daemon(self, name: str, start: str, after: float = 0.0) -> float:
        """Return the time at which it happens."""

        def then() -> None:
            self.do(f"daemon {name} {start}")
            self.put("Pod", daemon(name, start))

        if after:
            self.later.append((self.now + after, then))
        else:
            then()
        return self.now + after


@contextlib.contextmanager
def beside(certificates: Certificates, *changed: str) -> typing.Iterator[tuple[Site, Beside]]:
    world = Beside()
    with playing(certificates, world) as site:
        site.limits = dataclasses.replace(site.limits, whole=60, operator=300)
        only(site, *(changed or ("worker-1", "worker-2")))
        yield site, world


@pytest.mark.parametrize("compact", [False, True], ids=["workers", "compact"])
def test_the_roll_waits_for_the_reboot_that_its_own_reset_causes(certificates: Certificates, compact: bool) -> None:
    with beside(certificates) as (site, world):
        if compact:
            control_plane(world, *NODES)
        world.on["uncordon worker-1"] = lambda: [
            world.turn("worker-1", REQUIRED),
            world.turn("worker-1", IDLE, after=150),
        ]
        done = site.run()
        assert states(done)["worker-2"] == "done" and site.resets() == {"worker-1": 1, "worker-2": 1}
        assert world.did.index("Idle worker-1") < world.did.index("cordon worker-2")
        (said,) = [line for line in site.said if line.startswith("the next nodes wait at most")]
        assert "worker-1" in said and "desired-state Reboot_Required" in said and "300 s" in said


def test_the_wait_for_the_operator_ends(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        world.on["uncordon worker-1"] = lambda: world.turn("worker-1", REQUIRED)
        left = of(site.run(), "worker-2")
        assert left.state == "left" and site.resets() == {"worker-1": 1} and "cordon worker-2" not in world.did
        assert "worker-1: the SR-IOV operator drains it" in left.why and 300 <= world.now < 600


def test_a_turn_that_begins_during_the_next_drain_is_awaited_before_the_reset(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        world.add("job", "worker-2")
        world.on["evict job"] = lambda: [world.turn("worker-1", REQUIRED), world.turn("worker-1", IDLE, after=90)]
        assert states(site.run())["worker-2"] == "done"
        assert world.did.index("evict job") < world.did.index("Idle worker-1") < world.did.index("reset worker-2")
        assert any("worker-2: drained, waits at most 300 s for its reset" in line for line in site.said)


def test_a_drained_node_is_released_when_the_operator_does_not_end(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        world.add("job", "worker-2")
        world.on["evict job"] = lambda: world.turn("worker-1", REQUIRED)
        failed = of(site.run(), "worker-2")
        assert failed.state == "failed" and "the node was drained but not reset" in failed.why
        assert not world.cordoned("worker-2") and site.resets() == {"worker-1": 1}


def test_a_node_that_the_operator_takes_before_its_own_turn_counts(certificates: Certificates) -> None:
    """It has a step of the roll, but the operator reboots it first."""
    with beside(certificates, "worker-1", "worker-2", "worker-3") as (site, world):
        world.on["uncordon worker-1"] = lambda: world.turn("worker-3", REQUIRED)
        done = states(site.run())
        assert (done["worker-2"], done["worker-3"]) == ("left", "left") and site.resets() == {"worker-1": 1}


def test_the_roll_waits_until_the_config_daemon_has_started_since_the_reset(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        for name in ("worker-1", "worker-2"):
            world.start_daemon(name, "first")
        world.on["uncordon worker-1"] = lambda: world.start_daemon("worker-1", "second", after=40)
        world.on["daemon worker-1 second"] = lambda: [
            world.turn("worker-1", IDLE, "InProgress"),
            world.turn("worker-1", REQUIRED, after=20),
            world.turn("worker-1", IDLE, after=60),
        ]
        assert states(site.run())["worker-2"] == "done"
        ends = max(place for place, what in enumerate(world.did) if what == "Idle worker-1")
        assert world.did.index("Reboot_Required worker-1") < ends < world.did.index("cordon worker-2")
        told = "\n".join(site.said)
        assert "the config daemon of the SR-IOV operator has not started on it since" in told
        assert "syncStatus InProgress" in told


@pytest.mark.parametrize("sync", ["Succeeded", "Failed", "InProgress", ""])
def test_a_healthy_roll_waits_for_no_operator(certificates: Certificates, sync: str) -> None:
    """Also beside an operator that had not finished its work before the roll."""
    with beside(certificates) as (site, world):
        for name in NODES:
            world.put("SriovNetworkNodeState", state(name, sync=sync))
            world.start_daemon(name, "first")
        for name in ("worker-1", "worker-2"):
            world.on[f"reset {name}"] = lambda name=name: world.start_daemon(name, "second")  # type: ignore[misc]
        assert states(site.run())["worker-2"] == "done" and not any("wait at most" in line for line in site.said)
        again = site.run()
        assert states(again) == dict.fromkeys(NODES, "nothing") or not again.changes


def test_a_pod_of_a_tenant_is_no_config_daemon(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        world.put("Pod", daemon("worker-1", "always", place="team-x", name="theirs"))
        mirror = daemon("worker-1", "always", name="mirror")
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        world.put("Pod", mirror)
        assert states(site.run())["worker-2"] == "done" and not any("wait at most" in line for line in site.said)


@pytest.mark.parametrize(
    ("status", "reads", "held"),
    [(403, (1,), True), (403, (2, 3, 4), True), (403, (2,), False), (404, (1, 2, 3, 4), False)],
    ids=["before the reset", "after the reset", "for a moment", "absent"],
)
def test_a_config_daemon_that_cannot_be_read_after_a_reset_holds_the_next_node(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, status: int, reads: tuple[int, ...], held: bool
) -> None:
    with beside(certificates) as (site, world):
        for name in ("worker-1", "worker-2"):
            world.start_daemon(name, "first")
            world.on[f"reset {name}"] = lambda name=name: world.start_daemon(name, "second")  # type: ignore[misc]
        original, done = Api.list, typing.cast(list[str], [])

        def read(self: Api, kind: str, *place: typing.Any, **more: typing.Any) -> typing.Any:
            if "app=sriov-network-config-daemon" in place and "spec.nodeName=worker-1" in place:
                done.append(kind)
                if len(done) in reads or (held and len(done) > max(reads) > 1):
                    raise ApiError(status, "NotFound" if status == 404 else "Forbidden", "pods is forbidden", "GET")
            return original(self, kind, *place, **more)

        monkeypatch.setattr(Api, "list", read)
        second = of(site.run(), "worker-2")
        assert second.state == ("left" if held else "done")
        assert site.resets() == ({"worker-1": 1} if held else {"worker-1": 1, "worker-2": 1})
        assert ("it is unknown whether the SR-IOV operator drains nodes" in second.why) is held
        assert ("app=sriov-network-config-daemon: worker-1: pods is forbidden" in second.why) is held


# --- the other gates ---


def inputs(site: Site) -> typing.Any:
    nodes = tuple(map(core.parse_node, site.cluster.list("Node").items))
    checks = HealthChecks(site.cluster, lambda _line: None)
    return read_gate_inputs(site.cluster, nodes, checks=checks, turns=TurnReader(site.cluster))


SRIOV = PoolPlan("", ("worker-1", "worker-2"), 1, 2, "the operator's default")
CARDS = CardTurns("", ("worker-1", "worker-2"), 1, None, "maxParallelOperations is not set")
DRIVER = PoolPlan("nic-cluster-policy", NODES, 1, 3, "maxParallelUpgrades is 1", driver="load")
MACHINES = PoolPlan("worker", ("worker-1", "worker-2"), 1, 2, "maxUnavailable is 1", machines=True)


def ask(stand: typing.Any, *rolls: PoolPlan, intent: ClusterIntent = REBOOT) -> str:
    return " ".join(list_roll_blockers(rolls, (), stand, (), intent, NODES))


def test_each_gate_counts_the_nodes_that_another_operator_takes(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        assert ask(inputs(site), CARDS) == ask(inputs(site), SRIOV) == ask(inputs(site), MACHINES) == ""
        world.turn("worker-3", REQUIRED)
        stand = inputs(site)
        for roll in (CARDS, DRIVER, MACHINES):
            one = dataclasses.replace(roll, nodes=("worker-1",))
            assert "worker-3: the SR-IOV operator drains it" in ask(stand, one), roll
            assert "Wait until the operators are done with them" in ask(stand, one), roll


def test_the_nodes_of_the_same_operator_do_not_refuse_the_next_run(certificates: Certificates) -> None:
    """A run was interrupted, and the operator still works on the nodes of its policies, one after the other."""
    with beside(certificates) as (site, world):
        for name in ("worker-2", "worker-3"):
            world.turn(name, REQUIRED)
        assert ask(inputs(site), dataclasses.replace(SRIOV, nodes=("worker-1",))) == ""
        # another SriovNetworkPoolConfig has a limit of its own
        other = dataclasses.replace(SRIOV, name="rack-2", nodes=("worker-1",))
        assert "worker-2: the SR-IOV operator drains it" in ask(inputs(site), other)
        # the operator takes the next node beside a node that is cordoned while it waits
        world.cordon_by_admin("worker-3", True)
        assert "worker-3: NotReady or cordoned" in ask(inputs(site), dataclasses.replace(SRIOV, nodes=("worker-1",)))


def test_an_operator_counts_as_many_nodes_as_it_takes_at_the_same_time(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        for name in ("worker-2", "worker-3"):
            world.turn(name, REQUIRED)
        one = dataclasses.replace(CARDS, nodes=("worker-1",))
        assert ask(inputs(site), one, intent=TWO) == "" and ask(inputs(site), one) != ""


def pool(name: str, most: str, place: str = PLACE) -> Data:
    return {"metadata": {"name": name, "namespace": place}, "spec": {"maxUnavailable": most}}


def card(node: str, place: str = "nvidia-network-operator") -> Data:
    waits = {"type": "ConfigUpdateInProgress", "status": "True", "reason": "PendingReboot"}
    status = {"node": node, "ports": [{"pci": "0000:01:00.0"}], "conditions": [waits]}
    return {"metadata": {"name": f"card-{node}", "namespace": place}, "spec": {}, "status": status}


def config(most: typing.Any, place: str = "nvidia-network-operator", name: str = "default") -> Data:
    return {"metadata": {"name": name, "namespace": place}, "spec": {"maxParallelOperations": most}}


def test_objects_of_a_tenant_limit_no_operator(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        for name in ("worker-2", "worker-3"):
            world.turn(name, REQUIRED)
        world.serve("SriovNetworkPoolConfig", [pool("theirs", "0", "team-x"), pool("own", "2")])
        world.serve("NicDevice", [card("worker-1")])
        configs = (config(9, "team-x"), config(3), config(9, name="other"))
        listed = site.cluster.list

        def listing(kind: str, *more: typing.Any, **options: typing.Any) -> Listing:
            """The API keeps objects of one name in several namespaces."""
            return Listing(configs, "1") if kind == "MaintenanceOperatorConfig" else listed(kind, *more, **options)

        site.cluster.list = listing  # type: ignore[method-assign,assignment]
        turns = {turn.operator: turn for turn in inputs(site).turns}
        assert (turns["sriov"].pool, turns["sriov"].at_once, turns["nic_configuration"].at_once) == ("own", 2, 3)
        assert TurnReader(site.cluster).read_operations((), 3)[0] == 9, "the highest, if it is not known which counts"


def test_a_limit_that_cannot_be_read_is_unknown(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        assert TurnReader(site.cluster).read_operations((), 3)[::2] == (1, "")
        world.serve("MaintenanceOperatorConfig", [config([4])])
        assert "maxParallelOperations is not a number" in TurnReader(site.cluster).read_operations((), 3)[2]
        call = site.cluster._call

        def refusing(method: str, path: str, *more: typing.Any, **options: typing.Any) -> typing.Any:
            if path.startswith(path_of("MaintenanceOperatorConfig", "")):
                raise ApiError(403, "Forbidden", "cannot list", "GET")
            return call(method, path, *more, **options)

        site.cluster._call = refusing  # type: ignore[method-assign]
        at_once, _limit, why = TurnReader(site.cluster).read_operations((), 3)
        assert at_once is None and "cannot list" in why and "docs/rbac/look.yml" in why


@pytest.mark.parametrize(
    ("values", "at_once"),
    [
        ((), 1),
        (("",), 1),
        (("4",), 4),
        (("10%",), 2),
        (("100%",), 16),
        # documented as no limit
        (("0",), None),
        (("many",), None),
        (("2", ""), 2),
    ],
)
def test_parallel_operations_of_the_maintenance_operator(
    values: tuple[str, ...], at_once: typing.Optional[int]
) -> None:
    found, limit = count_operations(values, 16)
    assert found == at_once and "maxParallelOperations" in limit


def test_parallel_operations_above_the_limit_of_the_intent_are_refused(certificates: Certificates) -> None:
    with beside(certificates) as (site, _world):
        four = dataclasses.replace(
            CARDS, at_once=4, limit="maxParallelOperations of the MaintenanceOperatorConfig is 4"
        )
        told = ask(inputs(site), four)
        assert "NVIDIA's NIC configuration operator allows 4 nodes to go down" in told
        assert "Set spec.maxParallelOperations of the MaintenanceOperatorConfig default to 1" in told
        assert ask(inputs(site), dataclasses.replace(four, nodes=("worker-1",))) == "", "one node is never several"


# --- the sum ---


def test_what_several_operators_take_in_sum_is_limited(certificates: Certificates) -> None:
    with beside(certificates) as (site, _world):
        stand = inputs(site)
        told = ask(stand, SRIOV, DRIVER)
        assert (
            "the default pool of the SR-IOV operator and NVIDIA's network operator do not wait for each other" in told
        )
        assert "take down 2 nodes at the same time, and the intent permits 1" in told
        assert "Change only one of them in a run" in told
        racks = [dataclasses.replace(MACHINES, name=name, nodes=(node,)) for name, node in zip("ab", NODES)]
        assert "Set rdma_cluster.node_pool.max_unavailable to 2, then rerun" in ask(stand, *racks)
        assert ask(stand, *racks, intent=TWO) == ""
        assert ask(stand, SRIOV) == ask(stand, DRIVER) == ask(stand, SRIOV, DRIVER, intent=TWO) == ""
        three = dataclasses.replace(SRIOV, name="rack-2", nodes=("worker-3",))
        assert "take down 3 nodes" in ask(stand, SRIOV, three, DRIVER, intent=TWO)


def test_one_node_is_never_several_of_two_operators(certificates: Certificates) -> None:
    """As on OpenShift with a single node."""
    with beside(certificates) as (site, world):
        for name in ("worker-2", "worker-3"):
            world.drop("Node", {"metadata": {"name": name}})
        alone = [dataclasses.replace(roll, nodes=("worker-1",)) for roll in (SRIOV, DRIVER)]
        assert ask(inputs(site), *alone) == ""


def test_control_plane_nodes_are_rebooted_by_one_operator_at_a_time(certificates: Certificates) -> None:
    """Two of three members of etcd, whatever max_unavailable is."""
    with beside(certificates) as (site, world):
        control_plane(world, *NODES)
        one = dataclasses.replace(CARDS, nodes=("worker-1",))
        assert ask(inputs(site), one, intent=TWO) == ""
        world.turn("worker-3", REQUIRED)
        told = ask(inputs(site), one, intent=TWO)
        assert (
            "would reboot control-plane nodes while the SR-IOV operator reboots the control-plane node worker-3" in told
        )
        (step,) = (step for step in site.plan(TWO).steps if step.node == "worker-1")
        assert "the SR-IOV operator reboots the control-plane node worker-3" in " ".join(step.blockers)


def test_the_sriov_operator_waits_for_the_machine_config_pool_of_its_nodes() -> None:
    nodes = tuple(ClusterNode(name, {"role": "gpu"}, ready=True, boot_id="b") for name in NODES)
    inside = MachinePool("worker", LabelSelector({"role": "gpu"}), max_unavailable="1")
    outside = MachinePool("worker", LabelSelector({"role": "cpu"}), max_unavailable="1")
    sriov = dataclasses.replace(SRIOV, nodes=("worker-3",))

    def told(pool: MachinePool) -> str:
        return " ".join(list_roll_blockers([MACHINES, sriov], (), GateInputs(nodes), [pool], REBOOT, NODES))

    assert told(inside) == ""
    assert "MachineConfigPool worker and the default pool of the SR-IOV operator do not wait for" in told(outside)


# --- the machine that runs ansible-playbook ---


@pytest.mark.parametrize("roll", [SRIOV, CARDS])
def test_no_operator_reboots_the_machine_that_runs_the_playbook(certificates: Certificates, roll: PoolPlan) -> None:
    with beside(certificates) as (site, _world):
        stand = dataclasses.replace(inputs(site), own_boot="boot-worker-2")
        told = ask(stand, roll)
        assert "worker-2: ansible-playbook runs on this node" in told and "Run the playbook on a machine" in told
        assert "worker-1: ansible-playbook" not in told
        # a drain stops no process of the node, and the machine config operator goes on without the run
        assert not list_roll_blockers([roll], ("worker-1", "worker-2"), stand, (), REBOOT, NODES)
        assert ask(stand, MACHINES) == ""


# --- the stages ---


def read_network(**objects: typing.Any) -> DisruptionPlan:
    """A change of stage network on one node, whose NICs have virtual functions already."""
    (first,) = OBJECTS["Node"]
    everything: Data = {"Node": (first,), "SriovNetworkNodeState": (STATE,), "SriovOperatorConfig": (OPERATOR,)}
    everything |= {"Pod": (), "ResourceClaim": NO_CLAIMS, "ResourceClaimTemplate": NO_CLAIMS, **objects}
    cluster = typing.cast(Api, WithFields(**everything))
    return read_plan(cluster, "ops", RenderedObjects((MORE,)), ("kl-a",), REBOOT, {})


def test_stage_network_counts_the_nodes_that_nvidias_operator_takes() -> None:
    assert read_network().closed == ()
    assert read_network(NicDevice=(card("kl-z"),)).closed == (), "a node outside of the fleet does not count"
    (first,) = OBJECTS["Node"]
    of_fleet = {**first, "metadata": {"name": "kl-z", "labels": dict(REBOOT.node_selector)}}
    planned = read_network(Node=(first, of_fleet), NicDevice=(card("kl-z"),))
    assert "kl-z: NVIDIA's NIC configuration operator reboots it or waits for its turn" in " ".join(planned.closed)
    assert not may_go_on(REBOOT, planned, ("kl-a",))


def test_stage_network_names_the_node_that_runs_the_playbook(monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = OBJECTS["Node"]
    here = {**first, "status": {**first["status"], "nodeInfo": {"bootID": "own"}}}
    assert "ansible-playbook runs on this node" not in " ".join(read_network(Node=(here,)).nodes[0].reasons)
    monkeypatch.setattr(GATE, "read_boot_id", lambda: "own")
    planned = read_network(Node=(here,))
    assert planned.nodes[0].action == "drain" and "ansible-playbook runs on this node" in planned.nodes[0].reasons[-1]
    assert planned.closed == () and may_go_on(REBOOT, planned, ("kl-a",)), "a drain stops no process of the node"


def test_teardown_counts_the_nodes_that_nvidias_operator_takes(certificates: Certificates) -> None:
    with beside(certificates) as (site, world):
        policy = {
            "metadata": {"name": "p", "namespace": PLACE},
            "spec": {
                "nodeSelector": {"role": "gpu"},
                "resourceName": "x",
                "numVfs": 4,
                "nicSelector": {"vendor": "15b3"},
            },
        }
        for name, labels in (("worker-1", {"role": "gpu"}), ("worker-3", dict(REBOOT.node_selector))):
            world.put("Node", merged(world.seen(name), {"metadata": {"labels": labels}}))
        world.serve("SriovNetworkNodePolicy", [policy])
        intent = dataclasses.replace(REBOOT, operator_namespace=PLACE)
        assert list_removal_blockers(site.cluster, [policy], (), intent) == ()
        world.serve("NicDevice", [card("worker-3")])
        told = " ".join(list_removal_blockers(site.cluster, [policy], (), intent))
        assert "worker-3: NVIDIA's NIC configuration operator reboots it" in told and "Wait until" in told


def change_firmware(world: World) -> str:
    """Ask the gate of NVIDIA's operator for worker-1.

    :returns: its refusal; empty if it permits the reboot
    """
    intent = ClusterIntent(disruption="reboot")
    fleet = types.SimpleNamespace(intent=types.SimpleNamespace(cluster=intent))
    known = typing.cast(typing.Any, types.SimpleNamespace(fleet=fleet, nics=types.SimpleNamespace(devices=())))
    world.start()
    try:
        nic_firmware_plan._ask_gate(("worker-1",), world.client(world.url), known, NODES)
    except RdmaError as error:
        return str(error)
    finally:
        world.stop()
    return ""


@pytest.mark.parametrize("rolling", [False, True])
def test_nvidias_operator_waits_for_the_machine_config_pools_of_other_nodes(rolling: bool) -> None:
    world = World()
    world._objects["/apis/machineconfiguration.openshift.io"] = {}
    world._events["/apis/machineconfiguration.openshift.io"] = []
    pools = [("a", "a1"), ("b", "b2" if rolling else "b1")]
    world.serve(
        "MachineConfigPool",
        [
            {
                "metadata": {"name": name},
                "spec": {"nodeSelector": {"matchLabels": {"pool": name}}, "configuration": {"name": wanted}},
                "status": {"configuration": {"name": f"{name}1"}},
            }
            for name, wanted in pools
        ],
    )
    for name, pool in zip(NODES, "abb"):
        notes = {
            f"machineconfiguration.openshift.io/{key}": value
            for key, value in (("currentConfig", f"{pool}1"), ("desiredConfig", f"{pool}1"), ("state", "Done"))
        }
        world.put("Node", merged(world.seen(name), {"metadata": {"labels": {"pool": pool}, "annotations": notes}}))
    assert ("the machine config operator may reboot" in change_firmware(world)) is rolling
