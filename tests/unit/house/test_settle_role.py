# SPDX-License-Identifier: GPL-3.0-or-later

"""What platform_settle does about the firmware of HCAs, under a real ansible-playbook: by a stand-in for mstconfig, or
by a played operator of NVIDIA."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource, on_this_machine
from ansible_collections.linerate.rdma.tests.unit.firmware_node import ADDRESSES, FirmwareNode
from ansible_collections.linerate.rdma.tests.unit.roll_world import World, merged, node, ready
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import SIX_HCAS

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN, NODE = "20260102T030405Z-aaaaaa", "worker-1"
FIRST = ADDRESSES[0]
FABRIC = {
    "name": "compute",
    "profile": "sriov_ethernet",
    "select": {"pci": [FIRST], "hcas_per_node": 1},
    "virtual_functions": 16,
    "resource_name": "mlx_compute",
    "network": {"name": "sriov-compute", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "100.100.0.0/22"},
}
TEMPLATES = "/apis/configuration.net.nvidia.com/v1alpha1/namespaces/nvidia-network-operator/nicconfigurationtemplates"


def card(template: typing.Optional[Resource], reason: str) -> Resource:
    condition = {"type": "ConfigUpdateInProgress", "reason": reason, "status": "False", "observedGeneration": 1}
    return {
        "metadata": {"name": "card", "namespace": "nvidia-network-operator", "generation": 1},
        "spec": {"configuration": {"template": template}} if template else {},
        "status": {"node": NODE, "type": "1021", "ports": [{"pci": FIRST}], "conditions": [condition]},
    }


class Api(World):
    """A cluster with NVIDIA's operator, which gives cards what their template says at once, and ends with
    ``reason``."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = "UpdateSuccessful"
        self.serve("Lease", [], "default")
        self.put("Node", on_this_machine(node(NODE)))

    def with_the_operator(self) -> None:
        # the operator does not reboot the machine that runs ansible-playbook
        self.put("Node", node(NODE))
        self.serve("NicDevice", [card(None, "DeviceConfigSpecEmpty")])
        self.serve("NicConfigurationTemplate", [])
        self.serve("NicConfigurationTemplate", [], "nvidia-network-operator")

    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        answer = super().write(method, path, body, dry_run)
        if body.get("kind") == "NicConfigurationTemplate" and not dry_run:
            self.put("NicDevice", card(body["spec"]["template"], self.reason))
        return answer


class Site:
    """A node that is reached like one by ssh, its HCAs, and ansible-playbook."""

    def __init__(self, folder: pathlib.Path, world: Api, node: FirmwareNode) -> None:
        self.folder, self.world, self.node = folder, world, node
        self.cluster: dict[str, typing.Any] = {"firmware": {"ats_enabled": False}, "disruption": "reboot"}
        self.facts = FactFolder(str(folder / "report"), RUN)
        self.by_pod = False
        FakeApi.write_kubeconfig(world.url, folder, "x")

    def play(self, *arguments: str) -> str:
        """Look at the node, then the tasks of firmware.yml, as the play of playbooks/platform.yml does."""
        self.facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, (NODE,), ()))
        (play,) = [
            item
            for item in yaml.safe_load((ROOT / "playbooks/platform.yml").read_text(encoding="utf-8"))
            if "tasks" in item
        ]
        play["module_defaults"] = {
            "group/linerate.rdma.facts": {"facts_dir": str(self.folder / "report"), "run": RUN},
            "group/linerate.rdma.cluster": {"kubeconfig": str(self.folder / "kubeconfig")},
            "group/linerate.rdma.lease": {"holder": "a test"},
        }
        look = {
            "linerate.rdma.node_info": {"sysfs": "{{ rdma_sysfs }}", "gather_subset": ["hcas", "platform", "firmware"]},
            "check_mode": False,
        }
        nics = {"linerate.rdma.nic_device_info": {}, "run_once": True, "delegate_to": "localhost"}
        settle = {
            "ansible.builtin.import_role": {
                "name": "linerate.rdma.platform",
                "tasks_from": "firmware",
                "rolespec_validate": False,
            }
        }
        play["tasks"] = [look, nics, settle]
        (self.folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (self.folder / "hosts.yml").write_text(
            yaml.safe_dump({"all": {"children": {"rdma_nodes": {"hosts": {NODE: host}}}}}), encoding="utf-8"
        )
        variables = {
            "rdma_fabrics": [FABRIC],
            "rdma_cluster": self.cluster,
            "rdma_sysfs": [str(self.node.tree.root)],
            "platform_kernel_arguments": [],
            "platform_operator_seconds": 0,
        }
        environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))
            },
            "PATH": f"{self.node.tools}:{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        command = [
            str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            "hosts.yml",
            "play.yml",
            "-e",
            json.dumps(variables),
            *arguments,
        ]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        return done.stdout + done.stderr

    def stored(self) -> str:
        """What the next reset brings."""
        return str(self.node.settings(FIRST)["ATS_ENABLED"][2])

    def kept(self) -> typing.Any:
        """What became of it on the node."""
        fact = self.facts.read("nic_firmware", NODE)
        return None if fact is None else fact.value or fact.error


@pytest.fixture
def site(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[Site]:
    node, world = FirmwareNode(tmp_path, monkeypatch), Api()
    node.add_mstconfig()
    node.set(
        FIRST, ATS_ENABLED=["False(0)", "True(1)", "True(1)", False], LINK_TYPE_P1=["ETH(2)", "ETH(2)", "ETH(2)", False]
    )
    node.tree.write(f"class/infiniband/{SIX_HCAS[0][0]}/ports/1/link_layer", "Ethernet")
    world.start()
    yield Site(tmp_path, world, node)
    world.stop()


def test_check_then_set_then_again(site: Site) -> None:
    said = site.play("--check", "--diff")
    assert site.stored() == "True(1)" and site.kept()["hcas"][0]["after"] == {"ATS_ENABLED": "0"}, said
    assert f"+{FIRST} ATS_ENABLED=0" in said
    said = site.play()
    assert site.stored() == "False(0)" and site.kept() == {
        "hcas": [
            {"address": FIRST, "device": "1021", "before": {"ATS_ENABLED": "True(1)"}, "after": {"ATS_ENABLED": "0"}}
        ],
        "refusal": "",
    }, said
    seen = site.facts.read("firmware", NODE)
    assert seen is not None and "False(0)" in json.dumps(
        next(hca for hca in seen.value["hcas"] if hca["address"] == FIRST)
    ), "it was looked at again"
    again = site.play()
    assert "changed=0" in again and site.facts.read("nic_firmware_settings", NODE).value["settings"] == {}, again  # type: ignore[union-attr]


@pytest.mark.thorough
def test_what_can_not_be_set_is_kept_with_its_cause(site: Site) -> None:
    site.node.set(FIRST, ATS_ENABLED=["False(0)", "True(1)", "True(1)", True])
    said = site.play()
    assert "ATS_ENABLED is read-only" in site.kept() and site.stored() == "True(1)", said


@pytest.mark.thorough
def test_the_operator_sets_its_own_cards_and_the_node_does_not(site: Site) -> None:
    site.world.with_the_operator()
    said = site.play("--check")
    assert site.world.object(f"{TEMPLATES}/linerate-compute-1021") is None, said
    assert [one["action"] for one in site.facts.value("nic_templates")["applied"]] == ["created"], said
    said = site.play()
    made = site.world.object(f"{TEMPLATES}/linerate-compute-1021")
    assert made is not None and made["spec"]["nicSelector"] == {"nicType": "1021", "pciAddresses": [FIRST]}, said
    assert site.stored() == "True(1)" and site.facts.value("nic_devices")["left"] == {}, said
    again = site.play()
    assert "changed=0" in again and [one["action"] for one in site.facts.value("nic_templates")["applied"]] == [
        "unchanged"
    ], again


@pytest.mark.thorough
def test_the_operator_gets_no_template_while_the_cluster_does_not_bear_a_reboot(site: Site) -> None:
    """One gate for each who reboots nodes: another node of the fabric is away."""
    site.world.with_the_operator()
    beside = ready(merged(node("worker-2"), {"metadata": {"labels": ClusterIntent().node_selector}}), False)
    site.world.put("Node", beside)
    said = site.play()
    assert site.world.object(f"{TEMPLATES}/linerate-compute-1021") is None, said
    plan = site.facts.read("nic_firmware_plan")
    assert plan is not None and "worker-2: NotReady or cordoned, so no other node may go down" in str(plan.error), said


@pytest.mark.thorough
def test_the_operator_gets_no_template_while_its_drain_would_lose_a_pod(site: Site) -> None:
    site.world.with_the_operator()
    site.world.add("train", "worker-1", owner="")
    said = site.play()
    assert site.world.object(f"{TEMPLATES}/linerate-compute-1021") is None, said
    plan = site.facts.read("nic_firmware_plan")
    assert plan is not None and "worker-1: no controller recreates these pods: jobs/train" in str(plan.error), said


@pytest.mark.thorough
@pytest.mark.parametrize("number", [8, 16])
def test_the_operator_gets_no_template_whose_number_of_functions_a_policy_contradicts(site: Site, number: int) -> None:
    """Each of the two operators would set its own number again, and reboot the node for it."""
    site.world.with_the_operator()
    site.world.put("Node", merged(node(NODE), {"metadata": {"labels": ClusterIntent().node_selector}}))
    site.cluster["operator_namespace"] = "sriov"
    policy = {"resourceName": "x", "numVfs": number, "nicSelector": {"rootDevices": [FIRST]}, "nodeSelector": {}}
    interface = {"name": "p0", "pciAddress": FIRST, "vendor": "15b3", "deviceID": "1021", "totalvfs": number}
    status = {"syncStatus": "Succeeded", "interfaces": [interface]}
    site.world._objects["/apis/sriovnetwork.openshift.io"] = {}
    site.world._events["/apis/sriovnetwork.openshift.io"] = []
    for kind, item in (
        ("SriovNetworkNodePolicy", {"metadata": {"name": "p", "namespace": "sriov"}, "spec": policy}),
        ("SriovNetworkNodeState", {"metadata": {"name": NODE, "namespace": "sriov"}, "spec": {}, "status": status}),
        ("SriovOperatorConfig", {"metadata": {"name": "default", "namespace": "sriov"}, "spec": {}}),
    ):
        site.world.serve(kind, [item], "sriov")
    said = site.play()
    assert (site.world.object(f"{TEMPLATES}/linerate-compute-1021") is None) is (number == 8), said
    plan = site.facts.read("nic_firmware_plan")
    told = "linerate-compute-1021 sets NUM_OF_VFS 16"
    assert plan is not None and (told in str(plan.error)) is (number == 8), said


@pytest.mark.thorough
def test_the_operator_is_not_asked_where_nodes_may_not_reboot(site: Site) -> None:
    site.world.with_the_operator()
    site.cluster["disruption"] = "drain"
    said = site.play()
    assert site.world.object(f"{TEMPLATES}/linerate-compute-1021") is None and "changed=0" in said, said
    assert [one["action"] for one in site.facts.value("nic_templates")["applied"]] == [
        "created"
    ] and site.stored() == "True(1)", said


@pytest.mark.thorough
def test_a_card_that_never_gets_there_is_left_with_its_cause(site: Site) -> None:
    site.world.with_the_operator()
    site.world.reason = "PendingReboot"
    said = site.play()
    assert "PendingReboot" in site.facts.value("nic_devices")["left"]["card"], said
