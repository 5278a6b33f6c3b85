# SPDX-License-Identifier: GPL-3.0-or-later

"""Each power against an API server that is played: what is asked for is granted by its file, and nothing is granted
that nobody asks for."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import threading
import time
import typing

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import Target
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import resource_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import powers
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ROLE_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import NAMESPACE as MEASURING
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import machine_objects
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import DesiredOperator
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import NAME as LEASE
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import KINDS, path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.olm import is_served
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.network import render
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.claimed_devices import ClaimedDevices
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import (
    IN_NAMESPACE,
    SELECTORS,
    list_kinds,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import WatchFeed
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import (
    MeasuringNamespace,
    prepare_measurement,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_turns import TurnReader
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.olm import Installer
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.remove_olm import Remover
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource
from ansible_collections.linerate.rdma.tests.unit.hostile.test_rolls import PAUSE, Checked
from ansible_collections.linerate.rdma.tests.unit.hostile.test_tenants_networks import operators
from ansible_collections.linerate.rdma.tests.unit.olm_world import OlmWorld
from ansible_collections.linerate.rdma.tests.unit.roll_world import merged, playing
from dev import rbac

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs/rbac"
INTENT = rbac.everything()
CLUSTER_API = "cluster.x-k8s.io"


class Asked(typing.NamedTuple):
    """One request as RBAC sees it; an empty namespace or name is all of them."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def covers(self, other: Asked) -> bool:
        same = self.verb == other.verb and (self.group, self.resource) in (("*", "*"), (other.group, other.resource))
        return same and self.namespace in ("", other.namespace) and self.name in ("", other.name)


def asked(method: str, path: str, query: typing.Sequence[tuple[str, str]], content: str) -> typing.Iterator[Asked]:
    """What a request asks for. Which API groups there are, the version, and what oneself may do, each user may ask.
    [kubernetes system:discovery]"""
    base, _slash, rest = path.lstrip("/").partition("/")
    parts = rest.split("/")
    if path == "/version" or (base in ("api", "apis") and len(parts) <= (1 if base == "api" else 2)):
        return
    group = parts[0] if base == "apis" else ""
    parts = parts[2:] if base == "apis" else parts[1:]
    namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else ""
    parts = parts[2:] if namespace else parts
    resource, name = "/".join([parts[0], *parts[2:]]), parts[1] if len(parts) > 1 else ""
    verb = {"post": "create", "put": "update"}.get(method, method)
    if verb == "get" and not name:
        verb = "watch" if ("watch", "true") in query else "list"
    # what has no name in its URL: RBAC's rules with names do not grant it
    yield Asked(verb, group, resource, namespace, name)
    if "apply" in content:
        # the API server asks for it where the object is not there, with the name of the URL [patch.go
        # createAuthorizerAttributes]
        yield Asked("create", group, resource, namespace, name)


class Anything(FakeApi):
    """Serves each kind of the collection, with no objects at first. It is OpenShift."""

    def have(
        self,
        kind: str,
        name: str,
        namespace: str = "",
        labels: typing.Optional[typing.Mapping[str, str]] = None,
        annotations: typing.Optional[typing.Mapping[str, str]] = None,
        **parts: typing.Any,
    ) -> None:
        marks = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
        metadata = {"name": name, "uid": f"uid-{name}", **marks, **({"namespace": namespace} if namespace else {})}
        base, _plural, _spaced = KINDS[kind]
        item = {
            "apiVersion": base.partition("/apis/")[2] or "v1",
            "kind": kind.partition(".")[0],
            "metadata": metadata,
            **parts,
        }
        for where in ("", namespace) if namespace else ("",):
            self._known(path_of(kind, where))
            self.put(kind, item, where)

    def _known(self, path: str) -> None:
        self._objects.setdefault(path, {})
        self._events.setdefault(path, [])

    def object(self, path: str) -> typing.Optional[Resource]:
        parts = path.strip("/").split("/")
        if parts == ["apis"]:
            return {"kind": "APIGroupList", "groups": []}
        if parts == ["api", "v1"]:
            return {
                "kind": "APIResourceList",
                "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["list"]}],
            }
        if parts[0] == "apis" and len(parts) == 2:
            return {"kind": "APIGroup"}
        return super().object(path)

    def listing(self, path: str) -> typing.Optional[bytes]:
        if path.rpartition("/")[2] not in _PLURALS:
            return None
        self._known(path)
        return super().listing(path)

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        folder = path if method == "POST" else path.rpartition("/")[0]
        self._known(folder)
        if path.endswith("selfsubjectaccessreviews"):
            return 201, {"status": {"allowed": True}}
        if method == "PATCH" and "apiVersion" not in body:
            # no apply, but what is to become of an object that is there
            body = merged(self._objects[folder][path.rpartition("/")[2]], body)
        code, answer = super().write(method, path, body, dry_run)
        everywhere = re.sub("/namespaces/[^/]+", "", folder) if code < 300 and str(body.get("kind")) in _PLAIN else ""
        if everywhere and everywhere != folder and not dry_run:
            # lists of all namespaces have it as well
            self._known(everywhere)
            self._objects[everywhere][answer["metadata"]["name"]] = answer
        return code, answer

    def remove(self, path: str, item: Resource) -> None:
        super().remove(path, item)
        for objects in self._objects.values():
            found = objects.get(item["metadata"]["name"])
            if found is not None and found["metadata"].get("uid") == item["metadata"]["uid"]:
                del objects[item["metadata"]["name"]]


_PLURALS = {plural for _base, plural, _spaced in KINDS.values()}
_PLAIN = {kind.partition(".")[0] for kind in KINDS}


class Ledger:
    """What was asked of any API server of the test."""

    def __init__(self) -> None:
        self.found: set[Asked] = set()
        self._news = threading.Condition()

    def note(self, items: typing.Iterable[Asked]) -> None:
        with self._news:
            self.found |= set(items)
            self._news.notify_all()

    def wait_for(self, found: typing.Callable[[], bool]) -> bool:
        """Until threads have asked for it; far more time than that takes."""
        with self._news:
            return self._news.wait_for(found, 60)

    def outside(self, *names: str) -> set[Asked]:
        """Requests that no file of these powers grants."""
        given = granted(*names)
        return {item for item in self.found if not any(right.covers(item) for right in given)}

    def unused(self, power: str) -> set[Asked]:
        """What the file of a power grants for no request."""
        return {right for right in granted(power) if not any(right.covers(item) for item in self.found)}


def granted(*names: str) -> set[Asked]:
    """What the files give to the group of users that runs playbooks."""
    found = set()
    for name in names:
        items = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))["items"]
        roles = {
            (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", "")): item
            for item in items
            if item["kind"].endswith("Role")
        }
        for binding in items:
            if binding["kind"].endswith("Binding") and rbac.OPERATORS in {
                subject["name"] for subject in binding["subjects"]
            }:
                space = binding["metadata"].get("namespace", "")
                for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"], space]["rules"]:
                    kinds = [(group, resource) for group in rule["apiGroups"] for resource in rule["resources"]]
                    found |= {
                        Asked(verb, *kind, space, item)
                        for verb in rule["verbs"]
                        for kind in kinds
                        for item in rule.get("resourceNames", [""])
                    }
    return found


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    kept, call = Ledger(), Cluster._call

    def recorded(
        self: Cluster,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> typing.Any:
        kept.note(asked(method, path, query, more.get("content_type", "")))
        return call(self, method, path, query, body, **more)

    monkeypatch.setattr(Cluster, "_call", recorded)
    # so that no test waits
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return kept


@pytest.fixture
def api() -> typing.Iterator[Anything]:
    found = Anything()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> typing.Callable[..., Resource]:
    """Run a module on an API server; its answer."""

    def run(on: FakeApi, name: str, **options: typing.Any) -> Resource:
        module = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.modules.{name}")
        monkeypatch.setattr(module, "connect", lambda given: FakeApi.client(on.url))
        with patch_module_args(options), pytest.raises(SystemExit):
            module.main()
        answer: Resource = json.loads(capsys.readouterr().out)
        assert not answer.get("failed"), answer.get("msg", answer)
        return answer

    return run


Call = typing.Callable[..., Resource]
#: rights of every run
ALWAYS = (powers.LOOK, powers.CHANGE)
RAW = rbac.variables()
PCI = {"a": {"worker-1": ["0000:3c:00.0"]}, "b": {"worker-1": ["0000:3c:00.1"]}, "c": {"worker-1": ["0000:5c:00.0"]}}


def rendered() -> list[Resource]:
    made = render(INTENT.fabrics, INTENT.cluster, PCI)
    # the profiles that want an interface of the node are rendered by other means than this intent's selection
    return [{"fabric": fabric, "object": item} for fabric, item in made.objects]


def test_networks(api: Anything, ledger: Ledger, call: Call) -> None:
    objects = rendered()
    attachment = {
        "kind": "NetworkAttachmentDefinition",
        "apiVersion": "k8s.cni.cncf.io/v1",
        "metadata": {"name": "d", "namespace": rbac.JOBS, "labels": MANAGED_BY},
    }
    networks = [
        {"kind": kind, "apiVersion": "mellanox.com/v1alpha1", "metadata": {"name": "x", "labels": MANAGED_BY}}
        for kind in ("MacvlanNetwork", "IPoIBNetwork", "HostDeviceNetwork")
    ]
    objects += [{"fabric": "d", "object": item} for item in (attachment, *networks)]
    call(api, "custom_resources", objects=objects, find_leftovers=True)
    kinds = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.custom_resources").OF_FABRICS
    call(api, "custom_resources", state="absent", kinds=[*kinds, "Namespace"], wait_seconds=0)
    mine = (powers.SRIOV, powers.NVIDIA, powers.ATTACHMENTS, powers.POOLS, powers.NAMESPACES)
    # others may hold secrets: where this is forbidden, the MachineConfigPools name those of the collection
    beside = Asked("list", "machineconfiguration.openshift.io", "machineconfigs", "", "")
    assert ledger.outside(*ALWAYS, *mine) == {beside}
    assert [ledger.unused(power) for power in mine] == [set()] * len(mine)
    # each alone is not enough
    assert all(ledger.outside(*ALWAYS, *(other for other in mine if other != power)) for power in mine)


def test_jobs(api: Anything, ledger: Ledger, call: Call) -> None:
    """Who submits a job waits for no run, and needs no right to the Lease."""
    groups = {
        "PyTorchJob": "kubeflow.org/v1",
        "TrainJob": "trainer.kubeflow.org/v1alpha1",
        "TrainingRuntime": "trainer.kubeflow.org/v1alpha1",
        "ConfigMap": "v1",
    }
    objects = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "job", "namespace": rbac.JOBS, "labels": MANAGED_BY}}
        for kind, version in groups.items()
    ]
    call(api, "custom_resources", objects=[{"object": item} for item in objects])
    call(
        api, "custom_resources", state="absent", kinds=[kind for kind in groups if kind != "ConfigMap"], wait_seconds=0
    )
    call(api, "custom_resources", state="absent", kinds=["ConfigMap"], namespaces=[rbac.JOBS], wait_seconds=0)
    assert ledger.outside(powers.LOOK, powers.JOBS) == set()
    assert ledger.unused(powers.JOBS) == set()


def test_machine_configs(api: Anything, ledger: Ledger, call: Call) -> None:
    api.have(
        "MachineConfigPool",
        "worker",
        labels={"pools.operator.machineconfiguration.openshift.io/worker": ""},
        spec={
            "machineConfigSelector": {"matchLabels": {ROLE_LABEL: "worker"}},
            "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/worker": ""}},
        },
        status={"configuration": {"name": "rendered-1"}, "machineCount": 0},
    )
    api.have(
        "Node",
        "worker-1",
        labels={"node-role.kubernetes.io/worker": ""},
        spec={},
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    )
    for group in ("machine.openshift.io", CLUSTER_API):
        api.have(f"Machine.{group}", "m", "machines", status={"nodeRef": {"name": "worker-1"}})
        api.have(f"MachineHealthCheck.{group}", "workers", "machines", spec={"selector": {}})
    api.have("NodeHealthCheck", "all", spec={"selector": {}})
    objects = [{"fabric": "", "object": item} for item in render_host_configs(INTENT.cluster.host)]
    call(api, "sriov_plan", objects=objects, nodes=["worker-1"], cluster=RAW["cluster"])
    ended = iter(range(0, 10**9, 600))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: next(ended))
        call(api, "machine_config_roll", state="prepared", objects=objects, cluster=RAW["cluster"])
        call(
            api,
            "machine_config_roll",
            state="released",
            objects=objects,
            cluster=RAW["cluster"],
            pools=["worker"],
            wait_seconds=0,
        )
        call(api, "machine_config_roll", state="removed", objects=objects, cluster=RAW["cluster"])
    assert ledger.outside(*ALWAYS, powers.MACHINES) == set()
    assert ledger.unused(powers.MACHINES) == set()


def test_the_names_of_host_configs_are_those_that_are_rendered() -> None:
    assert set(machine_objects(INTENT)) == {
        (item["kind"], item["metadata"]["name"]) for item in render_host_configs(INTENT.cluster.host)
    }


@pytest.mark.parametrize("name", ["cluster-policy", "gpu-cluster-policy"])
def test_peermem(api: Anything, ledger: Ledger, call: Call, name: str) -> None:
    api.have("ClusterPolicy", name, spec={}, status={"state": "ready"})
    assert call(api, "cluster_policy", cluster=RAW["cluster"])["changed"]
    left = {right for right in ledger.unused(powers.PEERMEM) if right.name == name}
    assert (
        ledger.outside(*ALWAYS, powers.PEERMEM) - {Asked("create", "nvidia.com", "clusterpolicies", "", name)},
        left,
    ) == (set(), set())


def test_tuning(api: Anything, ledger: Ledger, call: Call) -> None:
    api.have("Node", "worker-1", labels={"kubernetes.io/os": "linux"}, status={})
    assert call(api, "node_tuning", fabrics=RAW["fabrics"], cluster=RAW["cluster"], nodes=["worker-1"], wait_seconds=0)[
        "changed"
    ]
    call(api, "custom_resources", state="absent", kinds=["Tuned"], wait_seconds=0)
    assert ledger.outside(*ALWAYS, powers.TUNING) == set()
    assert ledger.unused(powers.TUNING) == set()


def test_firmware(api: Anything, ledger: Ledger, call: Call) -> None:
    template = {"apiVersion": "configuration.net.nvidia.com/v1alpha1", "kind": "NicConfigurationTemplate"}
    metadata = {"name": "linerate-a", "namespace": "nvidia-network-operator", "labels": MANAGED_BY}
    call(api, "custom_resources", objects=[{"fabric": "a", "object": {**template, "metadata": metadata}}])
    call(api, "custom_resources", state="absent", kinds=["NicConfigurationTemplate"], wait_seconds=0)
    assert ledger.outside(*ALWAYS, powers.FIRMWARE) == set()
    assert ledger.unused(powers.FIRMWARE) == set()


def test_roll(ledger: Ledger, tmp_path: pathlib.Path) -> None:
    roll(tmp_path)
    assert ledger.outside(*ALWAYS, powers.ROLL) == set()
    # the played cluster has the health checks of OpenShift and of Medik8s; those of Cluster API are asked for in the
    # same way
    assert {right for right in ledger.unused(powers.ROLL) if right.group != CLUSTER_API} == set()


def roll(folder: pathlib.Path) -> None:
    """Nodes are drained and reset by their BMCs."""
    with playing(Certificates(folder), Checked()) as site:
        site.world.add("web-1", "worker-1")
        assert site.run(PAUSE).changes


def test_operators_by_olm(ledger: Ledger) -> None:
    install_by_olm()
    # the played operator has a namespace of its own, not that of its row in the table; what removes it is cluster-admin
    left = {(item.resource, item.name) for item in ledger.outside(*ALWAYS, powers.OLM) if item.verb != "delete"}
    assert left == {("namespaces", "ops")}
    # what an operator is configured by only its package says
    mine = {right for right in ledger.unused(powers.OLM) if right.group == "operators.coreos.com"}
    assert mine == {Asked("get", "operators.coreos.com", "clusterserviceversions", "", "")}


def install_by_olm() -> None:
    """An operator is installed and taken back."""
    world = OlmWorld()
    world.start()
    try:
        client = world.client(world.url)
        facts, _outcomes = Installer(client, time.monotonic, time.sleep, lambda text: None, lambda: "1", 120.0).run(
            (DesiredOperator("nfd", "ops"),), False, 60.0
        )
        assert facts.operators[0].phase == "ready"
        assert Remover(client, False, 60.0, time.monotonic, time.sleep).run().outcomes
    finally:
        world.stop()


def test_looking(api: Anything, ledger: Ledger, call: Call, tmp_path: pathlib.Path) -> None:
    """All that reads, alone and on the way to a change, with what a teardown looks for."""
    operator = {"name": "operator", "command": ["sriov-network-operator"]}
    ready = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "operator", "ready": True}],
    }
    api.have("SriovOperatorConfig", "default", rbac.OPERATOR, spec={})
    api.have("Pod", "operator", rbac.OPERATOR, spec={"nodeName": "worker-1", "containers": [operator]}, status=ready)
    api.have("Node", "worker-1", labels={"kubernetes.io/os": "linux"}, status={})
    client, both, host = (
        FakeApi.client(api.url),
        {"fabrics": RAW["fabrics"], "cluster": RAW["cluster"]},
        render_host_configs(INTENT.cluster.host),
    )
    call(api, "sriov_operator_info", namespace=rbac.OPERATOR, nodes=["worker-1"], images={})
    call(api, "operators_info", **both, nodes=["worker-1"], by="olm")
    call(api, "address_info", ranges=["10.0.0.0/16"])
    call(api, "nic_device_info", wait_seconds=0)
    call(api, "sriov_plan", objects=rendered(), nodes=["worker-1"], cluster=RAW["cluster"])
    call(
        api,
        "machine_config_roll",
        state="released",
        objects=[{"object": item} for item in host],
        wait_seconds=0,
        _ansible_check_mode=True,
    )
    call(api, "node_tuning", **both, nodes=["worker-1"], wait_seconds=0, _ansible_check_mode=True)
    call(api, "custom_resources", objects=rendered(), _ansible_check_mode=True)
    call(api, "custom_resources", state="absent", wait_seconds=0, _ansible_check_mode=True)
    call(
        api,
        "custom_resources",
        state="absent",
        kinds=["SecurityContextConstraints"],
        namespaces=[MEASURING],
        _ansible_check_mode=True,
    )
    call(api, "access_info", **both, install="olm")
    assert TurnReader(client).read_operations((), 1)[0] == 1
    assert ClaimedDevices(client).may_be_network(
        {"resourceClaims": [{"name": "vf", "resourceClaimName": "vf"}]}, rbac.JOBS
    )
    is_served(client, "olm", "catalog")
    watch(client, ledger)
    install_by_olm()
    roll(tmp_path)
    assert {right for right in ledger.unused(powers.LOOK) if right.group != CLUSTER_API} == set()
    # what is beside it is a right to change something
    assert {item for item in ledger.outside(powers.LOOK) if item.verb in ("list", "watch")} == set()


def watch(client: Cluster, ledger: Ledger) -> None:
    """What is watched while the network comes about, and while pods measure."""
    objects = tuple(f"{kind} x" for kind in ("NicClusterPolicy", "MacvlanNetwork", "IPoIBNetwork", "HostDeviceNetwork"))
    targets = [
        Target("a", (), "r", "n", ("worker-1",), 1, objects=objects, pool=f"{kind}.nv-ipam.nvidia.com ops/p")
        for kind in ("IPPool", "CIDRPool")
    ]
    network = WatchFeed(client, dict.fromkeys(IN_NAMESPACE, rbac.OPERATOR), list_kinds(targets), selectors=SELECTORS)
    pods = WatchFeed(client, {}, ("Pod",))
    wanted = {item for item in granted(powers.LOOK) if item.verb == "watch" and item.group != "operators.coreos.com"}
    network.start()
    pods.start()
    try:
        assert ledger.wait_for(lambda: all(any(right.covers(item) for item in ledger.found) for right in wanted))
    finally:
        network.stop()
        pods.stop()


class Ending(Anything):
    """Each pod has ended as soon as it is made."""

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        ended = {**body, "status": {"phase": "Succeeded"}} if method == "POST" and path.endswith("/pods") else body
        return super().write(method, path, ended, dry_run)


def test_measuring(ledger: Ledger, call: Call) -> None:
    """In the namespace that an admin has prepared by the files, on OpenShift, with copies that a killed run has
    left."""
    api = Ending()
    api.start()
    try:
        node = {
            "allocatable": {
                resource_of(fabric, INTENT.cluster): "1" for fabric in INTENT.fabrics if fabric.resource_name
            }
        }
        api.have("Node", "worker-1", labels={"kubernetes.io/os": "linux"}, status=node)
        (namespace, *_rest), (account,) = (
            [item for item in rbac.objects(power) if item["kind"] == kind]
            for power, kind in (
                (powers.get_powers([powers.MEASURING])[0], "Namespace"),
                (powers.get_powers([powers.ADMISSION])[0], "ServiceAccount"),
            )
        )
        api.have("Namespace", MEASURING, labels=namespace["metadata"]["labels"])
        api.have("ServiceAccount", account["metadata"]["name"], MEASURING)
        api.have("NetworkAttachmentDefinition", "left", MEASURING, labels=MANAGED_BY)
        for fabric in (fabric for fabric in INTENT.fabrics if fabric.profile.startswith("sriov_")):
            made = operators(fabric, INTENT.cluster)
            api.have(
                "NetworkAttachmentDefinition",
                fabric.network.name,
                rbac.JOBS,
                annotations=made["metadata"]["annotations"],
                spec=made["spec"],
            )
        call(api, "memlock_proof", fabrics=RAW["fabrics"], cluster=RAW["cluster"], nodes=["worker-1"], pod_seconds=0)
        place = MeasuringNamespace(FakeApi.client(api.url), "run-1", 0.0, time.monotonic, time.sleep)
        with prepare_measurement(place, FakeApi.client(api.url), INTENT.fabrics, INTENT.cluster, "run-1") as seats:
            assert {fabric.network.namespace for fabric in seats.fabrics} == {MEASURING}
        assert api.object(path_of("Namespace", "", MEASURING)) is not None
    finally:
        api.stop()
    # whether a run of before the namespace has left an account in that of the jobs
    assert ledger.outside(*ALWAYS, powers.MEASURING) == set()
    # news of pods, a shell in one, why one does not start, and a finalizer that holds one up
    shells = {("get", "pods/exec"), ("create", "pods/exec")}
    assert {(right.verb, right.resource) for right in ledger.unused(powers.MEASURING)} == {
        *shells,
        ("watch", "pods"),
        ("list", "events"),
        ("patch", "pods"),
    }


def test_the_lease(api: Anything, ledger: Ledger, call: Call, tmp_path: pathlib.Path) -> None:
    call(api, "custom_resources", state="absent", kinds=["Tuned"], wait_seconds=0)
    spec = {
        "holderIdentity": "other",
        "leaseDurationSeconds": 1,
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "acquireTime": "2026-01-01T00:00:00.000000Z",
    }
    api.have("Lease", LEASE, "default", labels=MANAGED_BY, spec=spec)
    call(api, "custom_resources", state="absent", kinds=["Tuned"], wait_seconds=0)
    assert ledger.outside(*ALWAYS) == set()
    assert ledger.unused(powers.CHANGE) == set()
