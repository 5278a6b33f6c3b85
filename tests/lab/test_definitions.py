# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for operators that the lab does not run: a real API server judges it by the operators' own
definitions, in every field."""

from __future__ import annotations

import json
import pathlib
import re
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import NAMESPACE as MEASURING
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import NAMESPACE
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import collect_settings
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster import admission
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.tuned import render_tuned
from lab.processes import wait_until

from .conftest import MANAGED, SETTINGS, Lab
from .scenarios import BANDWIDTH, PODS_READY, alone
from .test_access import shipped
from .test_observers import AUDIT, changed_since

JOB = {
    "name": "train",
    "fabric": "storage",
    "nodes": 2,
    "gpus_per_node": 1,
    "image": "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
    "command": ["torchrun", "/etc/training/train.py"],
    "cpu": "1",
    "memory": "1Gi",
    "claim": {"name": "models", "path": "/models"},
    "queue": "gpu",
}
#: kinds of job: API versions and kinds of the objects that are made
JOBS = {
    "PyTorchJob": ("kubeflow.org/v1/PyTorchJob",),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1/TrainingRuntime", "trainer.kubeflow.org/v1alpha1/TrainJob"),
}
#: what makes two MachineConfigs and a KubeletConfig
HOST = {
    "memlock": {"by": "machine_config", "limit_gib": 64},
    "kernel_arguments": ["intel_iommu=on", "iommu=pt"],
    "kubelet": {
        "topology_manager_policy": "single-numa-node",
        "topology_manager_scope": "pod",
        "cpu_manager_policy": "static",
        "reserved_system_cpus": "0-1,32",
    },
}
#: what lets OpenShift admit the pods that measure, each with its namespace as the API server's audit log has it
ADMISSION = {"securitycontextconstraints": "", **dict.fromkeys(("serviceaccounts", "roles", "rolebindings"), MEASURING)}
CONSTRAINTS = "security.openshift.io/v1/SecurityContextConstraints"
MACHINES = "machineconfiguration.openshift.io/v1"
RENDERED = "{{ rdma_job | linerate.rdma.render_job(rdma_fabrics, rdma_cluster) }}"


@pytest.fixture(scope="module", autouse=True)
def definitions(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    with Lab(tmp_path_factory.mktemp("definitions")).definitions():
        yield


def play(folder: pathlib.Path, **modules: typing.Mapping[str, typing.Any]) -> str:
    """A playbook of the user's own: one task a module; ``custom_resources`` is that of the collection."""
    arguments = {"kubeconfig": "{{ rdma_kubeconfig }}"}
    tasks: list[dict[str, typing.Any]] = [
        {"name": f"Call {name}", f"linerate.rdma.{name}": {**arguments, **given}, "register": "answer"}
        for name, given in modules.items()
    ]
    keep = {"content": "{{ answer | to_json }}", "dest": str(folder / "answer.json"), "mode": "0600"}
    tasks.append({"name": "Keep the answer", "ansible.builtin.copy": keep, "check_mode": False})
    path = folder / "play.yml"
    path.write_text(
        yaml.safe_dump([{"name": "A user's own play", "hosts": "localhost", "gather_facts": False, "tasks": tasks}])
    )
    return str(path)


def answer(folder: pathlib.Path) -> dict[str, typing.Any]:
    found: dict[str, typing.Any] = json.loads((folder / "answer.json").read_text())
    return found


def kept(folder: pathlib.Path) -> list[str]:
    return [f"{item['action']} {item['kind']}" for item in answer(folder)["applied"]]


@pytest.mark.parametrize("kind", [pytest.param("PyTorchJob", marks=pytest.mark.thorough), "TrainJob"])
def test_a_rendered_job_is_shown_made_and_found_unchanged(lab: Lab, kind: str) -> None:
    path = play(lab.folder, custom_resources={"objects": RENDERED})
    variables = {"rdma_job": {**JOB, "kind": kind}}
    kinds = [name.rpartition("/")[2] for name in JOBS[kind]]

    shown = lab.playbook(path, "--check", "--diff", variables=variables)
    assert shown.code == 0, shown.end
    assert "+  name: train" in shown.output or "+name: train" in shown.output, shown.end
    assert [lab.objects(name, MANAGED) for name in JOBS[kind]] == [[] for _name in JOBS[kind]]

    made = lab.playbook(path, variables=variables)
    assert made.code == 0, made.end
    assert kept(lab.folder) == [f"created {name}" for name in kinds]

    again = lab.playbook(path, variables=variables)
    assert again.code == 0, again.end
    assert kept(lab.folder) == [f"unchanged {name}" for name in kinds]


def test_a_job_that_is_there_is_judged_with_what_the_cluster_lacks(lab: Lab) -> None:
    """No GPU and no training operator in the lab: the linter has to say so, and nothing else is wrong with what is
    rendered."""
    made = lab.playbook(play(lab.folder, custom_resources={"objects": RENDERED}), variables={"rdma_job": JOB})
    assert made.code == 0, made.end
    judged = lab.playbook(play(lab.folder, job_lint={"kind": "PyTorchJob", "name": "train", "namespace": "training"}))
    assert judged.code != 0
    for words in ("job.resources", "nvidia.com/gpu", "stack.operator", "stack.queue", "job.claims"):
        assert words in judged.output, judged.end
    for words in ("job.nccl_variables", "job.networks", "job.guaranteed", "job.memlock"):
        assert f"fail {words}" not in judged.output, judged.end
        assert f"unknown {words}" not in judged.output, judged.end


@pytest.mark.parametrize("kind", JOBS)
def test_a_field_that_is_misspelt_is_refused(lab: Lab, kind: str) -> None:
    wrong = RENDERED.replace("}}", "| to_json | replace('\"containers\"', '\"containrs\"') | from_json }}")
    run = lab.playbook(
        play(lab.folder, custom_resources={"objects": wrong}),
        "--check",
        variables={"rdma_job": {**JOB, "kind": kind, "name": "wrong"}},
    )
    assert run.code != 0, run.end
    refused = JOBS[kind][0].rpartition("/")[2]
    assert f"refused {refused} training/wrong" in run.output and "containrs" in run.output, run.end


def test_machine_configs_are_what_openshift_takes(lab: Lab) -> None:
    run = lab.playbook(
        play(lab.folder, custom_resources={"objects": "{{ rdma_cluster | linerate.rdma.render_host }}"}),
        "--check",
        variables={"rdma_cluster": {"host": HOST}},
    )
    assert run.code == 0, run.end
    assert kept(lab.folder) == [*["created MachineConfig"] * 2, "created KubeletConfig"], answer(lab.folder)


@pytest.mark.thorough
def test_a_tuned_is_what_openshift_takes(lab: Lab) -> None:
    wishes = parse_intent(SETTINGS["rdma_fabrics"], None, {"tuning": {"set": True, "expected": {"thp": "always"}}})
    made = render_tuned(
        collect_settings(wishes),
        {"feature.node.kubernetes.io/network-sriov.capable": "true"},
        "worker",
        "openshift-node",
    )
    misspelt = {**made, "spec": {**made["spec"], "recommended": []}}
    with lab.present({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}):
        for item, done in ((made, ["created Tuned"]), (misspelt, ["refused Tuned"])):
            given = {"objects": [{"object": item}], "on_refusal": "tell"}
            run = lab.playbook(play(lab.folder, custom_resources=given), "--check")
            assert run.code == 0, run.end
            assert kept(lab.folder) == done, answer(lab.folder)


@pytest.mark.parametrize("profile", ["rdma_shared", "host_device", "ipoib", "macvlan"])
def test_networks_of_nvidia_s_operator_are_what_its_definitions_take(lab: Lab, profile: str) -> None:
    """Release 1.4.0, the newest of which Go's module proxy has the definitions: fields that came later are refused, and
    those alone."""
    intent = yaml.safe_load(
        (pathlib.Path(__file__).parent.parent / "unit/profiles" / profile / "intent.yml").read_text()
    )
    # of the lab's intent: the lab has a network of one of these names, and the run of another intent leaves it alone
    cluster = {**(intent.get("cluster") or {}), "intent_name": "lab"}
    wishes = parse_intent(intent["fabrics"], None, cluster)
    objects = [
        {"fabric": name, "object": item} for name, item in network.render(wishes.fabrics, wishes.cluster, {}).objects
    ]
    run = lab.playbook(play(lab.folder, custom_resources={"objects": objects, "on_refusal": "tell"}), "--check")
    assert run.code == 0, run.end
    refused = {item["kind"]: item["refusal"] for item in answer(lab.folder)["applied"] if item["action"] == "refused"}
    # nv-ipam has its kinds of its own project
    assert refused.pop("IPPool", "not found") in ("not found", "404 page not found")
    assert set(refused) <= {"NicClusterPolicy"}, refused
    for refusal in refused.values():
        # the API server names the first that it meets, in no order
        assert re.findall(r"\.spec\.(\w+): field not declared", refusal)[:1] in (
            ["nicFeatureDiscovery"],
            ["nvIpam"],
        ), refusal


@pytest.mark.thorough
def test_nvidia_peermem_is_switched_on_in_the_cluster_policy_that_is_there(lab: Lab) -> None:
    """Before the GPU operator's own definition (1.11.1): nobody else's field changes, and of two policies none is
    taken."""
    parts: dict[str, typing.Any] = {
        name: {}
        for name in ("daemonsets", "dcgm", "dcgmExporter", "devicePlugin", "gfd", "nodeStatusExporter", "toolkit")
    }
    driver = {"enabled": True, "version": "580.95.05", "rdma": {"useHostMofed": False}}
    spec = {**parts, "driver": driver, "operator": {"defaultRuntime": "containerd"}}
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": spec,
    }
    lab.apply(policy)
    path = play(lab.folder, cluster_policy={"cluster": {"host": {"gpudirect": "peermem"}, "disruption": "drain"}})

    def run(*options: str) -> tuple[bool, typing.Any]:
        done = lab.playbook(path, *options)
        assert done.code == 0, done.end
        return answer(lab.folder)["changed"], [
            item["spec"]["driver"] for item in lab.objects("nvidia.com/v1/ClusterPolicy")
        ]

    wanted = {**driver, "rdma": {"enabled": True, "useHostMofed": False}}
    assert run("--check") == (True, [driver])
    assert run() == (True, [wanted])
    assert run() == (False, [wanted])
    lab.apply({**policy, "metadata": {"name": "another"}})
    assert run() == (False, [driver, wanted])
    assert answer(lab.folder)["policies"]["names"] == ["another", "cluster-policy"]


def measured(lab: Lab) -> tuple[set[str], dict[str, set[str]]]:
    """Accounts of the pods of a measurement that proves something, and what became of each kind of ADMISSION meanwhile:
    verbs of the audit log."""
    position = AUDIT.stat().st_size
    with lab.running(BANDWIDTH, variables={"rdma_fabrics": alone()}) as playbook:
        playbook.await_text(PODS_READY)
        accounts = {pod["spec"]["serviceAccountName"] for pod in lab.objects("v1/Pod", MANAGED)}
        run = playbook.wait()
    assert [finding for finding in run.findings("bandwidth", "pass") if finding["check"] == "bandwidth.measured"], (
        run.end
    )
    changes = changed_since(position)
    return accounts, {
        kind: {verb for verb, *where in changes if where == [kind, namespace]} for kind, namespace in ADMISSION.items()
    }


@pytest.mark.thorough
def test_openshift_admits_the_pods_that_measure_by_what_comes_and_goes(lab: Lab) -> None:
    """Before OpenShift's own definition; that its admission obeys it no lab without OpenShift shows."""
    accounts, verbs = measured(lab)
    assert accounts == {"linerate-rdma"}
    assert verbs == {kind: {"patch", "delete"} for kind in ADMISSION}
    assert lab.objects(CONSTRAINTS) == []


@pytest.mark.thorough
def test_what_an_admin_has_prepared_for_it_stays_as_it_is(lab: Lab) -> None:
    # that of the measurement before may still be on its way out
    assert wait_until(lambda: MEASURING not in lab.namespaces(), 60)
    with lab.present(*shipped(lab, "measuring-openshift")):
        before = lab.objects(CONSTRAINTS)
        accounts, verbs = measured(lab)
        assert (accounts, verbs) == ({"linerate-rdma"}, {kind: set() for kind in ADMISSION})
        assert lab.objects(CONSTRAINTS) == before


@pytest.mark.thorough
def test_what_a_killed_run_has_left_of_it_is_taken_back(lab: Lab) -> None:
    # where releases made it that measured in the namespace of the jobs
    left = admission.render_objects(["training"], run="killed")
    lab.apply(*left)
    path = play(
        lab.folder,
        custom_resources={"state": "absent", "kinds": ["SecurityContextConstraints"], "namespaces": ["training"]},
    )
    deleted = [f"deleted {item['kind']}" for item in (*reversed(left[1:]), left[0])]
    for options, expected, stay in ((("--check",), deleted, 1), ((), deleted, 0), ((), [], 0)):
        run = lab.playbook(path, *options)
        assert run.code == 0, run.end
        assert (kept(lab.folder), len(lab.objects(CONSTRAINTS))) == (expected, stay)


def test_mirror_rules_are_read_as_openshift_has_them(lab: Lab) -> None:
    config, source = "config.openshift.io/v1", "quay.io/site"
    rule = {"source": source, "mirrors": ["mirror.example:5000/site"]}
    lab.apply(
        {
            "apiVersion": config,
            "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "site"},
            "spec": {"imageDigestMirrors": [{**rule, "mirrorSourcePolicy": "NeverContactSource"}]},
        },
        {
            "apiVersion": config,
            "kind": "ImageTagMirrorSet",
            "metadata": {"name": "site"},
            "spec": {"imageTagMirrors": [rule]},
        },
        {
            "apiVersion": "operator.openshift.io/v1alpha1",
            "kind": "ImageContentSourcePolicy",
            "metadata": {"name": "old"},
            "spec": {"repositoryDigestMirrors": [rule]},
        },
        {
            "apiVersion": config,
            "kind": "Image",
            "metadata": {"name": "cluster"},
            "spec": {"registrySources": {"blockedRegistries": ["docker.io"]}},
        },
    )
    run = lab.playbook(play(lab.folder, sriov_operator_info={"images": {"rdma_observers_image": ""}}))
    assert run.code == 0, run.end
    seen = answer(lab.folder)["images"]
    assert (seen["errors"], seen["registries"]["blocked"]) == ([], ["docker.io"])
    assert [(item["owner"], item["form"], item["source"], item["never"]) for item in seen["rules"]] == [
        ("ImageDigestMirrorSet site", "digest", source, True),
        ("ImageTagMirrorSet site", "tag", source, False),
        ("ImageContentSourcePolicy old", "digest", source, False),
    ]
