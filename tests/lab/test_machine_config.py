# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigs and KubeletConfigs before OpenShift's real machine config controller: it renders them, orders the
nodes and drains them.

What its daemon does on a node is a stand-in's (machine_config_daemon.py).
"""

from __future__ import annotations

import contextlib
import typing

import pytest

from lab.build.images import PAUSE_IMAGE
from lab.processes import wait_until

from .conftest import SETTINGS, Lab
from .scenarios import NETWORK
from .test_definitions import HOST, answer, play
from .test_roll import NODE, PLATFORM, asked, boots_of

pytestmark = pytest.mark.thorough

MACHINES = "machineconfiguration.openshift.io/v1"
ROLE = "machineconfiguration.openshift.io/role"
CAPABLE = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
WORKERS = ("worker-1", "worker-2")
#: of the collection, beside those that each cluster begins with
OURS = "linerate"


def pool(name: str, labels: typing.Mapping[str, str], *roles: str) -> dict[str, typing.Any]:
    return {
        "apiVersion": MACHINES,
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "labels": {f"pools.operator.machineconfiguration.openshift.io/{name}": ""}},
        "spec": {
            "machineConfigSelector": {
                "matchExpressions": [{"key": ROLE, "operator": "In", "values": list(roles or (name,))}]
            },
            "nodeSelector": {"matchLabels": dict(labels)},
        },
    }


def node_config(lab: Lab, name: str) -> str:
    """The MachineConfig that the daemon says the node has."""
    (node,) = (item for item in lab.objects("v1/Node") if item["metadata"]["name"] == name)
    return str(node["metadata"]["annotations"].get("machineconfiguration.openshift.io/currentConfig", ""))


@contextlib.contextmanager
def pools(
    lab: Lab, *wanted: typing.Mapping[str, typing.Any], options: typing.Sequence[str] = ()
) -> typing.Iterator[typing.Any]:
    """The controller, with pools that all workers have joined; the daemon's output."""
    with lab.machines(*options) as log:
        lab.apply(*wanted)
        assert wait_until(lambda: all(node_config(lab, worker) for worker in WORKERS), 120, 2.0), log.read_text()
        yield log


def boots(lab: Lab) -> dict[str, int]:
    """How often each worker has booted."""
    return {worker: len(boots_of(lab, worker)) for worker in WORKERS}


def ours(lab: Lab) -> list[str]:
    return [
        item["metadata"]["name"]
        for kind in ("MachineConfig", "KubeletConfig")
        for item in lab.objects(f"{MACHINES}/{kind}")
        if OURS in item["metadata"]["name"]
    ]


def rolling(**cluster: typing.Any) -> dict[str, typing.Any]:
    """An intent of one fabric that may reboot nodes, and needs one roll.

    :param cluster: keys of ``rdma_cluster`` that are another one's
    """
    asked_for = {
        **SETTINGS["rdma_cluster"],
        "host": {"kernel_arguments": ["iommu=pt"]},
        "disruption": "reboot",
        **cluster,
    }
    return {
        "rdma_cluster": asked_for,
        "rdma_fabrics": [fabric for fabric in SETTINGS["rdma_fabrics"] if fabric["name"] == "storage"],
    }


def courses(said: str) -> list[list[str]]:
    """What each node went through, one after the other: its name and the words of each step."""
    lines = [line.split() for line in said.splitlines() if line.split()[0] in WORKERS]
    return [[words[0], " ".join(words[1:3])] for words in lines]


def test_all_that_reboots_a_node_comes_in_one_roll(lab: Lab) -> None:
    """Two MachineConfigs, a KubeletConfig, and one pool of two machines; no node is reset."""
    variables = rolling(host=HOST)
    with pools(lab, pool("worker", CAPABLE), options=["stay"]) as log:
        shown = lab.playbook("playbooks/network.yml", "--check", variables=variables)
        plan = "\n".join(shown.records["network"]["changes"])
        assert "worker-2 reboots: MachineConfig" in plan and "in 2 waves, rolled once" in plan, plan
        assert (
            "KubeletConfig linerate-worker (CPU manager static, system CPUs 0-1,32, topology manager single-numa-node"
            in plan
        ), plan
        assert ours(lab) == []
        rolled = lab.playbook("playbooks/network.yml", variables=variables)
        assert rolled.code == 0, rolled.end
        finding = rolled.finding("network", "network.roll", "MachineConfigPool worker")
        assert finding["status"] == "pass" and "updated once" in finding["measured"], finding
        assert rolled.finding("network", "network.kubelet", "KubeletConfig linerate-worker")["status"] == "pass"
        said = log.read_text()
        steps = courses(said)
        # one at a time, and each of them once
        assert [steps[0], steps[1]] == [[steps[0][0], "goes to"], [steps[0][0], steps[1][1]]] and len(steps) == 4, said
        assert {words[0] for words in steps} == set(WORKERS), said
        again = lab.playbook("playbooks/network.yml", variables=variables)
        assert (again.code, again.recap("localhost", "changed")) == (0, 0), again.end
        assert log.read_text() == said, "the second run made the machines go again"
        for state in ("removed", "released"):
            objects = "{{ rdma_cluster | linerate.rdma.render_host }}"
            # the objects are those of this intent
            given = {"state": state, "objects": objects, "cluster": "{{ rdma_cluster }}"}
            back = lab.playbook(play(lab.folder, machine_config_roll=given), variables=variables)
            assert back.code == 0 and not answer(lab.folder)["error"], back.end
        assert [item["rolls"] for item in answer(lab.folder)["rolls"]] == [1], answer(lab.folder)
        assert ours(lab) == []


def test_bios_and_machine_configs_take_one_reboot_by_the_machine_config_operator(lab: Lab) -> None:
    """Both workers are really drained and reset, one after the other; one of them has something in its BIOS that
    waits."""
    variables = asked("reboot")
    variables["rdma_cluster"]["host"] = {"memlock": {"by": "machine_config", "limit_gib": 8}}
    name = "MachineConfig 99-worker-linerate-memlock"

    with pools(lab, pool("worker", CAPABLE)) as log, lab.fault("iommu-off", worker=NODE):
        before = boots(lab)
        refused = lab.playbook(
            PLATFORM, variables={**variables, "rdma_cluster": {**variables["rdma_cluster"], "disruption": "drain"}}
        )
        assert refused.code != 0 and boots(lab) == before, refused.end
        shown = lab.playbook(PLATFORM, "--check", "--diff", variables=variables)
        assert boots(lab) == before and ours(lab) == [], shown.end
        for worker in WORKERS:
            (told,) = (text for text in shown.records["platform"]["changes"] if text.startswith(worker))
            assert "one reboot by the machine config operator (MachineConfigPool worker)" in told and name in told
            assert ("BIOS iommu" in told) == (worker == NODE)

        done = lab.playbook(PLATFORM, variables=variables)
        assert done.code == 0, done.end
        assert boots(lab) == {worker: number + 1 for worker, number in before.items()}, log.read_text()
        for worker in WORKERS:
            finding = done.finding("platform", "platform.roll", worker)
            assert finding["status"] == "pass" and "reset by the machine config operator" in finding["measured"], (
                finding
            )
            assert done.finding("platform", "platform.returned", worker)["status"] == "pass"
        assert done.finding("platform", "platform.iommu", NODE)["status"] == "pass"
        said = log.read_text()
        assert sorted(words[0] for words in courses(said) if words[1] == "goes to") == list(WORKERS), said

        again = lab.playbook(PLATFORM, variables=variables)
        assert (
            again.code == 0
            and boots(lab) == {worker: number + 1 for worker, number in before.items()}
            and log.read_text() == said
        ), again.end


def test_what_keeps_a_pool_from_its_roll_is_told_before_anything_is_applied(lab: Lab) -> None:
    labels = {"app": "held"}
    container = {"name": "held", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    place = {"name": "held", "namespace": "default", "labels": labels}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": place,
        "spec": {"nodeName": WORKERS[0], "containers": [container]},
    }
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": "default"},
        "spec": spec,
    }
    free = pool("worker", CAPABLE)
    with pools(lab, free, options=["stay"]) as log:
        with lab.present(pod, budget):
            run = lab.playbook(NETWORK, variables=rolling(wait_seconds=60))
            finding = run.finding("network", "network.drain", WORKERS[0])
            assert run.code != 0 and finding["status"] == "fail", run.end
            assert (
                "pod default/held is held by PodDisruptionBudget default/held" in finding["measured"]
                and "one more replica" in finding["remedy"]
            )
        lab.apply({**free, "spec": {**free["spec"], "paused": True}})
        run = lab.playbook(NETWORK, variables=rolling(wait_seconds=60))
        finding = run.finding("network", "network.drain", "MachineConfigPool worker")
        assert run.code != 0 and finding["status"] == "fail", run.end
        assert (
            "is paused by another program or user" in finding["measured"]
            and "Repair or unpause the MachineConfigPool" in finding["remedy"]
        ), finding
        assert ours(lab) == [] and courses(log.read_text()) == []


def test_a_pool_that_is_degraded_ends_the_wait_with_its_reason(lab: Lab) -> None:
    with pools(lab, pool("worker", CAPABLE), options=["fail"]) as log:
        run = lab.playbook(NETWORK, variables=rolling(wait_seconds=480))
        finding = run.finding("network", "network.roll", "MachineConfigPool worker")
        assert run.code != 0 and finding["status"] == "fail", run.end
        assert (
            "disk validation failed" in f"{finding['measured']} {finding['why']}" and "oc describe" in finding["remedy"]
        ), finding
        assert [words[1] for words in courses(log.read_text())] == ["goes to", "cannot"], log.read_text()


def test_a_node_that_does_not_come_back_is_named(lab: Lab) -> None:
    with pools(lab, pool("worker", CAPABLE), options=["lose"]) as log:
        try:
            run = lab.playbook(NETWORK, variables=rolling(wait_seconds=120))
        finally:
            lost = {words[0] for words in courses(log.read_text()) if words[1] == "is reset"}
            for worker in lost:
                lab.command("fault", "worker-off", "off", "--worker", worker)
        (worker,) = lost
        finding = run.finding("network", "network.roll", "MachineConfigPool worker")
        assert run.code != 0 and finding["status"] == "fail", run.end
        assert f"node {worker} is NotReady and does not recover" in f"{finding['measured']} {finding['why']}", finding
