# SPDX-License-Identifier: GPL-3.0-or-later

"""node_roll under a real ansible-playbook: what it takes from the inventory, its Lease, its fact, check mode, and no
secret in anything that it leaves."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.action.node_roll import _look_at_firmware, _look_at_operator
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import Mark, NodeDifferences
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FirmwareSet,
    FirmwareSetting,
    NodeFirmware,
    NodeFirmwarePlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.health_check import PAUSE_REQUEST
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.roll_mark import mark_node
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._firmware import read_firmware_facts
from ansible_collections.linerate.rdma.tests.unit.bmc_server import BASIC, PASSWORD, TOKEN, USER, Certificates
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi
from ansible_collections.linerate.rdma.tests.unit.roll_world import ATTRIBUTE, NODES, Server, World, merged
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma"


class Api(World):
    """Says what it is as well, and its nodes are back as soon as somebody looks a second time."""

    def object(self, path: str) -> typing.Any:
        if path.startswith("/api/v1/nodes/"):
            self.pause(0)
        return DISCOVERY.get(path) or super().object(path)

    def seen(self, name: str) -> typing.Any:
        return super(World, self).object(f"/api/v1/nodes/{name}")


class Site:
    """A cluster, its BMCs, an inventory that names them, and ansible-playbook beside them."""

    def __init__(
        self, folder: pathlib.Path, world: World, servers: typing.Mapping[str, Server], authority: pathlib.Path
    ) -> None:
        self.folder, self.world, self.servers = folder, world, servers
        self.cluster: dict[str, typing.Any] = {"bios": {"sriov": True}, "disruption": "reboot"}
        FakeApi.write_kubeconfig(world.url, folder, "t0ken-of-the-cluster")
        begin = {"linerate.rdma.run_begin": {"report_dir": "report"}, "register": "begun"}
        options = {
            "facts_dir": "report",
            "run": "{{ begun.run }}",
            "holder": "{{ begun.holder }}",
            "kubeconfig": "kubeconfig",
            "cluster": "{{ cluster }}",
        }
        kept = {"facts_dir": "report", "run": "{{ begun.run }}", "kind": "hcas", "value": {"hcas": [], "errors": []}}
        seen = {"linerate.rdma.fact": {**kept, "node": "{{ item }}"}, "loop": list(servers), "check_mode": False}
        roll = {"linerate.rdma.node_roll": {**options, "bmc_ca_path": str(authority)}, "register": "rolled"}
        self.facts: dict[str, typing.Any] = {}
        told = {"facts_dir": "report", "run": "{{ begun.run }}", "kind": "kernel_arguments"}
        fact = {
            "linerate.rdma.fact": {**told, "node": "{{ item.key }}", "value": "{{ item.value }}"},
            "loop": "{{ looked | dict2items }}",
        }
        # as the stage does: another look, then the proof
        again = {**fact, "loop": "{{ looked_again | dict2items }}"}
        proof = {
            "linerate.rdma.node_roll": {**options, "bmc_ca_path": str(authority), "prove": True},
            "when": "looked_again is defined",
            "register": "proved",
        }
        again["when"] = "looked_again is defined"
        # as the teardown does
        resume = {
            "linerate.rdma.node_roll": {**options, "resume_checks": True},
            "when": "resume is defined",
            "register": "resumed",
        }
        show = {
            "ansible.builtin.copy": {
                "content": "{{ (resumed if resume is defined else rolled) | to_json }}",
                "dest": str(folder / "rolled.json"),
                "mode": "0600",
            },
            "check_mode": False,
        }
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "connection": "local",
            "tasks": [begin, seen, fact, roll, resume, show, again, proof],
        }
        (folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")

    def play(self, *arguments: str) -> dict[str, typing.Any]:
        """The result of node_roll."""
        bmcs = {
            name: {
                "rdma_bmc_address": "localhost",
                "rdma_bmc_port": server.port,
                "rdma_bmc_user": USER,
                "rdma_bmc_password": PASSWORD,
            }
            for name, server in self.servers.items()
        }
        inventory = {
            "all": {
                "vars": {"cluster": self.cluster, "looked": {}, **self.facts},
                "children": {"rdma_nodes": {"hosts": bmcs}},
            }
        }
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        environment = {
            **{
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE", "RDMA_"))
            },
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
        command = [program, "-vvv", "-i", "hosts.yml", "play.yml", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=200,
            check=False,
        )
        self.said = done.stdout + done.stderr
        told = self.said + "".join(
            path.read_text(encoding="utf-8") for path in (self.folder / "report").rglob("*.json")
        )
        assert not any(secret in told for secret in (PASSWORD, TOKEN, BASIC, "t0ken-of-the-cluster"))
        assert done.returncode == 0, self.said
        found: dict[str, typing.Any] = json.loads((self.folder / "rolled.json").read_text(encoding="utf-8"))
        return found

    def fact(self, kind: str = "node_roll") -> dict[str, typing.Any]:
        found: dict[str, typing.Any] = json.loads(
            (self.folder / f"report/facts/{kind}/cluster.json").read_text(encoding="utf-8")
        )["value"]
        return found


@pytest.fixture
def site(tmp_path: pathlib.Path) -> typing.Iterator[Site]:
    certificates, world = Certificates(tmp_path), Api()
    world.boot_pauses = 1
    world.serve("Lease", [], "default")
    world.start()
    with contextlib.ExitStack() as stack:
        stack.callback(world.stop)
        file = certificates.of()
        servers = {name: stack.enter_context(Server(world, name, file)) for name in NODES[:2]}
        servers["worker-1"].bios.answers[servers["worker-1"].bios.path]["Attributes"][ATTRIBUTE] = "Enabled"
        yield Site(tmp_path, world, servers, certificates.authority)


def test_a_roll_after_its_check_mode_and_again(site: Site) -> None:
    would = site.play("--check", "--diff")
    assert (
        would["changed"]
        and would["counts"] == {"nothing": 1, "planned": 1}
        and site.world.did == []
        and site.world.object(LEASE) is None
    )
    assert "worker-2 (wave 1): set, drain, reset" in site.said
    done = site.play()
    assert done["changed"] and done["counts"] == {"nothing": 1, "done": 1} and done["reset"] == ["worker-2"]
    assert site.servers["worker-2"].value == "Enabled" and site.servers["worker-2"].resets == ["ForceRestart"]
    assert site.fact()["error"] == "" and [one["state"] for one in site.fact()["outcomes"]] == ["nothing", "done"]
    assert "worker-2: done" in site.said, "its progress is shown"
    assert [path.name for path in (site.folder / "report/facts/hcas_before_reset").iterdir()] == ["worker-2.json"], (
        "of who was reset, and of nobody else"
    )
    assert site.world.object(LEASE) is not None, "the run has taken the Lease, and the report gives it back"
    again = site.play()
    assert (
        not again["changed"]
        and again["counts"] == {"nothing": 2}
        and site.servers["worker-2"].resets == ["ForceRestart"]
    )


def test_what_is_not_allowed_is_refused(site: Site) -> None:
    site.cluster["disruption"] = "drain"
    done = site.play()
    assert not done["changed"] and "rdma_cluster.disruption is drain" in done["plan"][0] and site.world.did == []
    assert site.fact()["plan"]["refusal"].startswith("rdma_cluster.disruption is drain")


def test_a_limit_that_excludes_a_node_refuses_the_roll(site: Site) -> None:
    """The BMCs of all nodes of the run would be asked, and worker-2 would be reset."""
    site.play("--check", "--limit", "localhost,worker-1")
    with pytest.raises(AssertionError, match="--limit excludes 1 of the nodes that stage platform would change"):
        site.play("--limit", "localhost,worker-1")
    assert "excludes 1 of the nodes that stage platform would change: worker-2" in site.said and site.world.did == []
    assert site.play("--limit", "localhost,rdma_nodes")["reset"] == ["worker-2"]


def test_nothing_asked_is_nothing_done(site: Site) -> None:
    del site.cluster["bios"]
    assert (
        not site.play()["changed"]
        and site.world.object(LEASE) is None
        and not any(server.asked for server in site.servers.values())
    )


def test_a_node_that_a_killed_run_has_cordoned_takes_pods_again_when_nothing_is_asked_any_more(site: Site) -> None:
    name = NODES[0]
    site.world.put("Node", merged(site.world.seen(name), mark_node(Mark(cordoned=True), True)))
    site.cluster = {"disruption": "reboot"}
    assert site.play()["changes"] == [f"{name}: uncordoned"], site.said
    assert (
        not site.world.cordoned(name)
        and site.world.note(name) is None
        and site.world.did == [f"uncordon {name}", f"unnote {name}"]
    )


def test_a_health_check_that_a_killed_run_has_paused_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    del site.cluster["bios"]
    site.cluster["intent_name"] = "compute"
    site.facts = {"resume": True}
    original, name = site.world.write, "nhc"
    paused = {"spec": {"pauseRequests": ["an upgrade", f"{PAUSE_REQUEST}, intent compute"]}}
    other = {
        "metadata": {"name": "other", "resourceVersion": "1"},
        "spec": {"pauseRequests": [f"{PAUSE_REQUEST}, intent storage"]},
    }
    own = {"metadata": {"name": name, "resourceVersion": "1"}, **paused}
    site.world.serve("NodeHealthCheck", [own, other])
    monkeypatch.setitem(DISCOVERY, "/apis/remediation.medik8s.io", {"kind": "APIGroup"})

    def write(method: str, path: str, body: typing.Any, dry_run: bool = False) -> typing.Any:
        found = site.world.object(path) if path.endswith(f"/nodehealthchecks/{name}") else None
        if found is None:
            return original(method, path, body, dry_run)
        site.world.put("NodeHealthCheck", merged(found, body))
        return 200, found

    monkeypatch.setattr(site.world, "write", write)
    done = site.play()
    left = site.world.object(f"/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks/{name}")
    assert done["changed"] and done["changes"] == ["NodeHealthCheck nhc is resumed"] and left is not None
    assert left["spec"]["pauseRequests"] == ["an upgrade"], "what others have asked for stays"
    (stays,) = site.fact("checks_resumed")["stays"]
    assert stays["subject"] == "NodeHealthCheck other" and "intent 'storage'" in stays["why"]


@pytest.mark.thorough
def test_kernel_arguments_take_the_same_reset_and_the_look_after_it_proves_them(site: Site) -> None:
    site.cluster["host"] = {"kernel_arguments": ["iommu=pt"]}
    seen = {
        name: {"missing": ["iommu=pt"] if name == "worker-2" else [], "refusal": "", "boot": f"boot-{name}"}
        for name in NODES[:2]
    }
    site.facts = {
        "looked": seen,
        "looked_again": {"worker-2": {"missing": [], "refusal": "", "boot": "boot-worker-2x"}},
    }
    done = site.play()
    assert (
        done["counts"] == {"nothing": 1, "unproven": 1}
        and done["reset"] == ["worker-2"]
        and site.servers["worker-2"].resets == ["ForceRestart"]
    )
    assert [one["state"] for one in site.fact()["outcomes"]] == ["nothing", "done"] and site.world.note(
        "worker-2"
    ) is None
    assert {step["node"]: len(step["differences"]) for step in site.fact()["plan"]["steps"]} == {
        "worker-1": 0,
        "worker-2": 2,
    }
    assert any("kernel argument iommu=pt set (now absent), by its boot loader" in line for line in done["plan"])


@pytest.mark.thorough
def test_machine_configs_of_the_intent_take_the_same_reboot(site: Site) -> None:
    site.cluster["host"] = {"memlock": {"by": "machine_config", "limit_gib": 8}}
    role = "machineconfiguration.openshift.io/role"
    spec = {
        "nodeSelector": {"matchLabels": {}},
        "machineConfigSelector": {"matchLabels": {role: "worker"}},
        "configuration": {"name": "rendered-0", "source": []},
    }
    site.world.serve("MachineConfig", [])
    site.world.serve(
        "MachineConfigPool",
        [{"metadata": {"name": "worker"}, "spec": spec, "status": {"configuration": {"name": "rendered-0"}}}],
    )
    told = {
        f"machineconfiguration.openshift.io/{key}": value
        for key, value in (("currentConfig", "rendered-0"), ("desiredConfig", "rendered-0"), ("state", "Done"))
    }
    # the pool has a node outside of the inventory too
    for name in NODES:
        site.world.put("Node", merged(site.world.seen(name), {"metadata": {"annotations": told}}))
    would = site.play("--check")
    assert would["counts"] == {"planned": 2} and site.world.did == []
    for name, bios in (("worker-1", False), ("worker-2", True)):
        (text,) = (text for text in would["plan"] if text.startswith(name))
        assert (
            "one reboot by the machine config operator (MachineConfigPool worker)" in text
            and "99-worker-linerate-memlock" in text
        )
        assert ("BIOS sriov" in text) == bios
    assert [pool["name"] for pool in site.fact()["plan"]["rolls"]] == ["worker"]


def test_a_proof_that_fails_leaves_what_is_known(site: Site) -> None:
    del site.cluster["bios"]
    site.cluster["host"] = {"kernel_arguments": ["iommu=pt"]}
    seen = {name: {"missing": ["iommu=pt"], "refusal": "", "boot": f"boot-{name}"} for name in NODES[:1]}
    site.facts = {
        "looked": seen,
        "looked_again": {"worker-1": {"missing": ["iommu=pt"], "refusal": "", "boot": "boot-worker-1x"}},
    }
    site.play()
    first, second = site.fact()["outcomes"]
    assert (
        first["state"] == "failed"
        and "the node did not apply these settings at the reset" in first["why"]
        and second["state"] == "unknown"
    )
    assert site.servers["worker-1"].resets == ["ForceRestart"] and site.world.note("worker-1")["reset"]


def test_firmware_that_waits_for_a_reset_by_the_facts_of_the_run(tmp_path: pathlib.Path) -> None:
    fleet, folder = healthy(PAIR), FactFolder(str(tmp_path), "r1")
    facts, nodes = fleet.of("platform"), fleet.shape.names
    folder.begin(RunStart("r1", "2026-01-01T00:00:00.000Z", nodes=nodes))
    fabrics, cluster = to_data(fleet.intent.fabrics), {"firmware": {"ats_enabled": False}}

    def seen(prove: bool = False) -> dict[str, NodeDifferences]:
        return _look_at_firmware(folder, read_firmware_facts(folder, nodes, fabrics, cluster), prove)

    for kind, told in (
        ("hcas", facts.nodes),
        ("subnets", facts.subnets),
        ("platform", facts.platforms),
        ("firmware", facts.firmware),
    ):
        for node, observed in told.items():
            folder.write(kind, node, observed.value, observed.error)
    assert all(one.differences == () and one.error == one.blind == "" for one in seen().values())
    first, *rest = facts.firmware[nodes[0]].value.hcas
    others = [setting for setting in first.settings if setting.name != "ATS_ENABLED"]
    stored, unset = (
        NodeFirmware(
            (dataclasses.replace(first, settings=(FirmwareSetting("ATS_ENABLED", following, "1"), *others)), *rest)
        )
        for following in ("0", "1")
    )
    folder.write("firmware", nodes[0], stored)
    folder.write("firmware", nodes[1], error="unreachable")
    one, other = (seen()[node] for node in nodes)
    assert {difference.key.partition(" ")[2] for difference in one.differences} == {"ATS_ENABLED"}
    assert "unreachable" in other.blind and _look_at_firmware(folder, None, False) == {}
    # what nic_firmware made of it counts before the reset, and the look after it alone then
    folder.write("firmware", nodes[0], unset)
    assert seen()[nodes[0]].differences == () and len(seen()[nodes[0]].unset) == 1
    folder.write("nic_firmware", nodes[0], FirmwareSet(refusal="an observer changes nothing on its node"))
    assert "an observer" in seen()[nodes[0]].refusals[0] and seen(prove=True)[nodes[0]].refusals == ()


def test_what_the_operator_does_by_the_facts_of_the_run(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "r1")
    folder.begin(RunStart("r1", "2026-01-01T00:00:00.000Z", nodes=("a", "b")))
    reboot = ClusterIntent(disruption="reboot")
    assert _look_at_operator(folder, reboot, False) == {}
    plans = {"a": NodeFirmwarePlan(templates=("t",), cards=("card",)), "b": NodeFirmwarePlan(notes=("left alone",))}
    folder.write("nic_firmware_plan", value={"templates": [], "wanted": {}})
    for node, plan in plans.items():
        folder.write("nic_firmware_settings", node, plan)
    assert (
        "It is unknown whether NicConfigurationTemplate t was applied"
        in _look_at_operator(folder, reboot, False)["a"].refusals[0]
    ), "the templates were not even tried"
    folder.write(
        "nic_templates", value={"applied": [{"kind": "NicConfigurationTemplate", "name": "t", "action": "created"}]}
    )
    folder.write("nic_devices", value={"nics": {}, "left": {"card": "PendingReboot"}})
    found = _look_at_operator(folder, reboot, False)
    assert (
        found["b"] == NodeDifferences(notes=("left alone",))
        and "has not configured NicDevice card: PendingReboot" in found["a"].refusals[0]
    )
    assert "disruption" in _look_at_operator(folder, ClusterIntent(disruption="drain"), False)["a"].refusals[0]
    folder.write("nic_firmware_plan", error="forbidden")
    with pytest.raises(RdmaError, match="forbidden"):
        _look_at_operator(folder, reboot, False)
