# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster whose nodes boot anew when their BMC resets them, evicts pods, and keeps the order of what was done."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import typing
import uuid

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifferences,
    NodeOutcome,
    NodeRoll,
    RollPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims, Identity
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import Guard
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import name_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import ANNOTATION
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import May
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.source import BiosSource
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.node_roll import NodeRoller
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.node_sources import Source
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.observed_source import ObservedSource
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.turns.roll_limits import RollLimits

from .bmc_server import BASIC, PASSWORD, TOKEN, USER, BmcServer, Certificates, tree
from .fake_api import FakeApi, Resource

NODES = ("worker-1", "worker-2", "worker-3")
ATTRIBUTE = "SriovGlobalEnable"
REBOOT = ClusterIntent(disruption="reboot")


def uuid_of(name: str) -> str:
    """Of the machine that a node is."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


class Killed(BaseException):
    """The run is killed."""


class World(FakeApi):
    """A cluster whose nodes boot anew when their BMC resets them.

    :ivar did: what was done to nodes, in its order: ``cordon worker-1``...
    :ivar held: pods that a budget holds, and for how many evictions more
    :ivar away: nodes that are booting, and for how many pauses more; None: for ever
    :ivar kill: what of ``did`` the run does not outlive
    """

    def __init__(self) -> None:
        super().__init__()
        self.did: list[str] = []
        self.held: dict[str, int] = {}
        self.away: dict[str, typing.Optional[int]] = {}
        self.boot_pauses: typing.Optional[int] = 3
        self.kill = ""
        self.killed = False
        self.now = 0.0
        self.serve("Node", [node(name) for name in NODES])
        self.serve("Pod", [])
        self.serve("PodDisruptionBudget", [])

    def add(
        self,
        name: str,
        on: str,
        owner: str = "ReplicaSet",
        labels: typing.Optional[dict[str, str]] = None,
        uid: str = "",
        **spec: typing.Any,
    ) -> None:
        owners = [{"kind": owner, "name": "x", "uid": f"uid-{owner}", "controller": True}] if owner else []
        metadata = {
            "name": name,
            "namespace": "jobs",
            "ownerReferences": owners,
            "labels": labels or {},
            "uid": uid or f"uid-{name}",
        }
        self.put(
            "Pod",
            {"metadata": metadata, "spec": {"nodeName": on, "containers": [], **spec}, "status": {"phase": "Running"}},
        )

    def pod(self, name: str) -> typing.Optional[Resource]:
        return self.object(f"/api/v1/pods/{name}")

    def seen(self, name: str) -> Resource:
        found = self.object(f"/api/v1/nodes/{name}")
        assert found is not None
        return found

    def note(self, name: str) -> typing.Any:
        text = self.seen(name)["metadata"].get("annotations", {}).get(ANNOTATION)
        return None if text is None else json.loads(text)

    def cordoned(self, name: str) -> bool:
        return bool(self.seen(name)["spec"].get("unschedulable"))

    def do(self, what: str) -> None:
        self.did.append(what)
        self.killed = self.killed or what == self.kill

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path.endswith("/eviction"):
            name = path.split("/")[-2]
            assert body["kind"] == "Eviction" and body["metadata"]["name"] == name
            uid = body.get("deleteOptions", {}).get("preconditions", {}).get("uid")
            found = self.pod(name)
            if found is None:
                return 404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": f'pods "{name}" not found'}
            if uid is not None and uid != found["metadata"]["uid"]:
                return 409, {
                    "kind": "Status",
                    "code": 409,
                    "reason": "Conflict",
                    "message": f"Precondition failed: UID in precondition: {uid}",
                }
            if self.held.get(name, 0) > 0:
                self.held[name] -= 1
                message = "Cannot evict pod as it would violate the pod's disruption budget."
                details = {
                    "causes": [
                        {
                            "reason": "DisruptionBudget",
                            "message": "The disruption budget web needs 1 healthy pods and has 1 currently",
                        }
                    ]
                }
                return 429, {
                    "kind": "Status",
                    "code": 429,
                    "reason": "TooManyRequests",
                    "message": message,
                    "details": details,
                }
            self.do(f"evict {name}")
            self.drop("Pod", {"metadata": {"name": name}})
            return 201, {"kind": "Status", "status": "Success"}
        if not path.startswith("/api/v1/nodes/"):
            return super().write(method, path, body, dry_run)
        assert method == "PATCH"
        found = self.seen(path.rpartition("/")[2])
        name, before = found["metadata"]["name"], self.cordoned(found["metadata"]["name"])
        new = self.cordon(merged(found, body), before, self.manager)
        self.put("Node", new)
        note = self.note(name)
        if self.cordoned(name) != before:
            self.do(f"{'un' if before else ''}cordon {name}")
        self.do(f"note {name} {'reset' if note['reset'] else 'begun'}" if note else f"unnote {name}")
        return 200, new

    @staticmethod
    def cordon(new: Resource, before: bool, manager: str) -> Resource:
        """As the API server does, which records who has changed a field last."""
        cordoned = bool(new.get("spec", {}).get("unschedulable"))
        if cordoned == before:
            return new
        records = [{"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}] if cordoned else []
        return {**new, "metadata": {**new["metadata"], "managedFields": records}}

    def cordon_by_admin(self, name: str, cordoned: bool) -> None:
        new = merged(self.seen(name), {"spec": {"unschedulable": True if cordoned else None}})
        self.put("Node", self.cordon(new, self.cordoned(name), "kubectl-cordon"))

    def boot(self, name: str) -> None:
        """The node goes down, and comes up again by pauses of the run."""
        self.do(f"reset {name}")
        self.put("Node", ready(self.seen(name), False))
        self.away[name] = self.boot_pauses

    def pause(self, seconds: float) -> None:
        self.now += seconds
        for name, left in list(self.away.items()):
            if left == 0:
                del self.away[name]
                found = ready(self.seen(name), True)
                found["status"]["nodeInfo"]["bootID"] += "x"
                self.put("Node", found)
            elif left is not None:
                self.away[name] = left - 1
        if self.killed:
            self.killed = False
            raise Killed


def node(name: str) -> Resource:
    found = {
        "metadata": {"name": name, "labels": {}},
        "spec": {},
        "status": {"nodeInfo": {"bootID": f"boot-{name}", "systemUUID": uuid_of(name)}},
    }
    return ready(found, True)


def ready(found: Resource, is_ready: bool) -> Resource:
    conditions = [
        {
            "type": "Ready",
            "status": "True" if is_ready else "Unknown",
            "message": "" if is_ready else "Kubelet stopped posting node status.",
        }
    ]
    return {**found, "status": {**found["status"], "conditions": conditions}}


def merged(target: typing.Any, change: typing.Any) -> typing.Any:
    """RFC 7386."""
    if not isinstance(change, dict):
        return change
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


class Server(BmcServer):
    """A BMC that resets its node of the world."""

    def __init__(self, world: World, name: str, certificate: pathlib.Path) -> None:
        super().__init__(tree("dell"), certificate)
        self.world, self.node = world, name
        self.bios.call(uuid_of(name), f"SERIAL-{name}")
        self.bios.answers[self.bios.path]["Attributes"][ATTRIBUTE] = "Disabled"

    def __enter__(self) -> Server:
        super().__enter__()
        return self

    def post(self, path: str, body: typing.Any) -> typing.Any:
        answer = super().post(path, body)
        if answer.status == 204:
            self.world.boot(self.node)
        return answer

    def patch(self, path: str, body: typing.Any, match: typing.Optional[str]) -> typing.Any:
        self.world.do(f"set {self.node}")
        return super().patch(path, body, match)

    @property
    def value(self) -> str:
        return str(self.bios.answers[self.bios.path]["Attributes"][ATTRIBUTE])


class Site:
    """A cluster and its BMCs."""

    def __init__(self, certificates: Certificates, servers: typing.Mapping[str, Server], world: World) -> None:
        self.world, self.servers, self._trust = world, servers, Trust(True, str(certificates.authority))
        self.said: list[str] = []
        self.stop: typing.Callable[[], bool] = lambda: False
        self.wanted: dict[str, typing.Any] = {"sriov": True}
        self.limits = RollLimits(drain=60, back=300, settle=10, grace=30)
        self.drain = DrainOptions()
        self.facts: dict[str, NodeDifferences] = {}
        #: by node: whose BMC the inventory names in place of its own; who is asserted to be right; what DMI of nodes
        #: shows
        self.exchanged: dict[str, str] = {}
        self.asserted: set[str] = set()
        self.looked: dict[str, Identity] = {}
        self.guard = Guard(lambda: 60.0)
        #: MachineConfigs that are wanted; what else may differ on nodes
        self.hosts: typing.Sequence[Resource] = ()
        self.more: tuple[Source, ...] = ()
        self.cluster = FakeApi.client(world.url)

    def roller(self) -> NodeRoller:
        places = {name: self.servers.get(self.exchanged.get(name, name)) for name in self.servers}
        bmcs = [
            Bmc(name, "localhost", one.port, USER, PASSWORD, asserted=name in self.asserted)
            for name, one in places.items()
            if one is not None
        ]
        reported = {name_of(node): core.system_uuid(node) for node in self.cluster.list("Node").items}
        claims = Claims(reported, self.looked, {bmc.node: bmc.place for bmc in bmcs})
        source = BiosSource(bmcs, {}, find_wanted(self.wanted), self._trust, May(claims, self.guard), 30)
        world = self.world
        return NodeRoller(
            self.cluster,
            [source, ObservedSource(self.facts, of_pools=False), *self.more],
            source,
            lambda: world.now,
            world.pause,
            self.said.append,
            self.stop,
            self.limits,
            self.hosts,
        )

    def plan(self, intent: ClusterIntent = REBOOT) -> RollPlan:
        return self.roller().plan(NODES, dataclasses.replace(intent, drain=self.drain))

    def run(self, intent: ClusterIntent = REBOOT, check_mode: bool = False) -> NodeRoll:
        roller = self.roller()
        done = roller.roll(roller.plan(NODES, dataclasses.replace(intent, drain=self.drain)), check_mode)
        told = json.dumps(to_data(done)) + "\n".join(self.said)
        assert not any(secret in told for secret in (PASSWORD, TOKEN, BASIC))
        return done

    def prove(self) -> NodeRoll:
        """After the look that follows a roll."""
        roller = self.roller()
        return roller.prove(roller.plan(NODES, REBOOT))

    def resets(self) -> dict[str, int]:
        return {name: len(server.resets) for name, server in self.servers.items() if server.resets}


@contextlib.contextmanager
def playing(certificates: Certificates, world: World) -> typing.Iterator[Site]:
    """Serve a world and a BMC for each of its nodes while the block runs."""
    world.start()
    with contextlib.ExitStack() as stack:
        stack.callback(world.stop)
        file = certificates.of()
        yield Site(certificates, {name: stack.enter_context(Server(world, name, file)) for name in NODES}, world)


def states(done: NodeRoll) -> dict[str, str]:
    return {outcome.node: outcome.state for outcome in done.outcomes}


def of(done: NodeRoll, name: str) -> NodeOutcome:
    return next(outcome for outcome in done.outcomes if outcome.node == name)


def only(site: Site, *names: str) -> None:
    """Only these have something that differs."""
    for name, server in site.servers.items():
        if name not in names:
            server.bios.answers[server.bios.path]["Attributes"][ATTRIBUTE] = "Enabled"


def kill_at_once(site: Site) -> None:
    """The run dies with what follows what it does not outlive: with its next request, or its next pause."""
    original = site.cluster._call

    def call(*arguments: typing.Any, **more: typing.Any) -> typing.Any:
        if site.world.killed:
            site.world.killed = False
            site.cluster._call = original  # type: ignore[method-assign]
            raise Killed
        return original(*arguments, **more)

    site.cluster._call = call  # type: ignore[method-assign]
