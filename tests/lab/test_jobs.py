# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that are rendered, before the real operators and the real Kueue: queued, admitted, made into pods that are on
the network, and finished.

GPUs are a number in the nodes' status, and the job is no training: what runs in its pods looks at what they got.
"""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
import yaml

from lab.processes import wait_until

from .conftest import MANAGED, Lab
from .test_definitions import RENDERED, answer, play

pytestmark = pytest.mark.thorough

#: pods of a network without RDMA devices: on one with RDMA, the job rightly refuses to start without them, and software
#: devices are no part of a job
JOB = {
    "fabric": "fast",
    "nodes": 2,
    "gpus_per_node": 1,
    "image": "localhost/rdma-tools:1",
    "command": [
        "sh",
        "-c",
        'ip -4 -brief address show net1 && test -n "$PET_NNODES" && test "$NCCL_SOCKET_IFNAME" = =net1',
    ],
    "cpu": "250m",
    "memory": "64Mi",
    "shared_memory": "16Mi",
    "queue": "gpu",
}
#: kinds of job: what is made of each, with the condition that says that it ended well
ENDS = {
    "PyTorchJob": {"kubeflow.org/v1/PyTorchJob": "Succeeded"},
    "TrainJob": {"jobset.x-k8s.io/v1alpha2/JobSet": "Completed", "trainer.kubeflow.org/v1alpha1/TrainJob": "Complete"},
}
NIC_MAP = "{{ rdma_fabrics | linerate.rdma.render_nic_map('vnic-map', 'vnic', hcas) }}"
WORKERS = ("worker-1", "worker-2")
QUEUES = "kueue.x-k8s.io/v1beta2"
SECONDS = 180


def queue(name: str, gpus: int) -> list[dict[str, typing.Any]]:
    """A queue for so many GPUs, and its place in the namespace of the pods."""
    quotas = {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": str(gpus)}
    flavor = {"name": "gpu-nodes", "resources": [{"name": key, "nominalQuota": value} for key, value in quotas.items()]}
    return [
        {"kind": "ResourceFlavor", "metadata": {"name": "gpu-nodes"}},
        {
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(quotas), "flavors": [flavor]}],
            },
        },
        {"kind": "LocalQueue", "metadata": {"name": name, "namespace": "training"}, "spec": {"clusterQueue": name}},
    ]


def node(name: str, **status: typing.Any) -> dict[str, typing.Any]:
    """What the tests say of a node's status."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


@pytest.fixture(scope="module", autouse=True)
def operators(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    here = Lab(tmp_path_factory.mktemp("operators"))
    with here.running_on_demand("operators"):
        try:
            here.apply(*({"apiVersion": QUEUES, **item} for item in (*queue("gpu", 2), *queue("small", 1))))
            here.apply(*(node(name, capacity={"nvidia.com/gpu": "1"}) for name in WORKERS), subresource="status")
            yield
        finally:
            here.apply(*(node(name) for name in WORKERS), subresource="status")


def condition(lab: Lab, kind: str, job: str, name: str) -> dict[str, typing.Any]:
    """A condition of the objects of a job, once it is there; they carry the job's name or begin with it."""

    def items() -> list[dict[str, typing.Any]]:
        return [item for item in lab.objects(kind) if job in item["metadata"]["name"]]

    def found() -> list[dict[str, typing.Any]]:
        return [
            entry
            for item in items()
            for entry in (item.get("status") or {}).get("conditions") or []
            if entry["type"] == name
        ]

    assert wait_until(lambda: bool(found()), SECONDS, 2), (
        f"{kind} {job} has no condition {name}: {json.dumps([item.get('status') for item in items()])}"
    )
    return found()[0]


def submit(lab: Lab, **job: typing.Any) -> None:
    made = lab.playbook(
        play(lab.folder, custom_resources={"objects": RENDERED}), variables={"rdma_job": {**JOB, **job}}
    )
    assert made.code == 0, made.end


def pods_of(lab: Lab, job: str) -> dict[str, dict[str, typing.Any]]:
    """Pods of a job by their nodes."""
    return {
        item["spec"]["nodeName"]: item
        for item in lab.objects("v1/Pod", f"linerate.rdma/job={job}")
        if item["spec"].get("nodeName")
    }


@pytest.mark.parametrize(("name", "kind"), [("v1", "PyTorchJob"), ("v2", "TrainJob")])
def test_a_job_is_admitted_runs_on_its_network_and_ends(lab: Lab, name: str, kind: str) -> None:
    submit(lab, name=name, kind=kind)
    for made, end in {**ENDS[kind], f"{QUEUES}/Workload": "Finished"}.items():
        assert condition(lab, made, name, end)["status"] == "True"
    pods = pods_of(lab, name).values()
    assert {item["spec"]["nodeName"] for item in pods} == set(WORKERS)
    networks = [json.loads(item["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"]) for item in pods]
    addresses = [entry["ips"][0] for status in networks for entry in status if entry["name"] == "training/macvlan-fast"]
    assert len(set(addresses)) == 2 and all(address.startswith("10.86.0.") for address in addresses), networks


def test_a_job_for_which_the_queue_has_no_room_is_named_by_the_linter(lab: Lab) -> None:
    submit(lab, name="waits", queue="small")
    waiting = condition(lab, f"{QUEUES}/Workload", "waits", "QuotaReserved")
    assert waiting["status"] == "False" and "nvidia.com/gpu" in waiting["message"], waiting
    assert lab.objects("v1/Pod", "linerate.rdma/job=waits") == []
    judged = lab.playbook(play(lab.folder, job_lint={"kind": "PyTorchJob", "name": "waits", "namespace": "training"}))
    assert judged.code != 0
    words = " ".join(judged.output.split())
    assert (
        "stack.queue" in words and "The job requests more than the quota of the queue, so it stays suspended." in words
    ), judged.end


SYSFS = "{{ rdma_sysfs | default(['/sys']) }}"
NETDEVS = (
    "{{ rdma_fabrics | selectattr('select', 'defined') | map(attribute='select') | selectattr('netdev', 'defined') |"
    " map(attribute='netdev') | flatten }}"
)


def after_a_look_at_the_nodes(path: str) -> str:
    """The playbook with a play before it that reads the nodes' interfaces; their answers are in ``hcas``."""
    look = {
        "name": "Read the interfaces",
        "linerate.rdma.node_info": {"gather_subset": ["hcas"], "sysfs": SYSFS, "netdevs": NETDEVS},
        "register": "node",
    }
    plays = yaml.safe_load(pathlib.Path(path).read_text())
    for item in plays:
        item["vars"] = {"hcas": "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'node', 'hcas') }}"}
    pathlib.Path(path).write_text(
        yaml.safe_dump(
            [{"name": "Read the nodes", "hosts": "rdma_nodes", "gather_facts": False, "tasks": [look]}, *plays]
        )
    )
    return path


def test_pods_take_their_addresses_and_routes_from_the_nic_map(lab: Lab) -> None:
    """A plain NIC, which each pod has as a whole; the pods' own addresses by IPAM make way for those of the map."""
    lint = {
        "name": "vnic-map",
        "namespace": "training",
        "hcas": "{{ hcas }}",
        "fabrics": "{{ rdma_fabrics }}",
        "fabric": "vnic",
    }
    mapped = lab.playbook(
        after_a_look_at_the_nodes(play(lab.folder, custom_resources={"objects": [NIC_MAP]}, nic_map_lint=lint))
    )
    assert mapped.code == 0 and answer(lab.folder)["gate"] == "open", mapped.end
    config_map = next(item for item in lab.objects("v1/ConfigMap", MANAGED) if item["metadata"]["name"] == "vnic-map")
    lines = [line.split(":") for line in config_map["data"]["nic-map"].splitlines()]
    assert [line[:3] for line in lines] == [[name, "vnic0", "net1"] for name in WORKERS], lines
    addresses = {node: address for node, _netdev, _interface, address in lines}

    submit(lab, name="mapped", fabric="vnic", nic_map="vnic-map", command=["iperf3", "--server"])
    assert wait_until(
        lambda: [pod["status"]["phase"] for pod in pods_of(lab, "mapped").values()] == ["Running"] * 2, SECONDS, 2
    ), pods_of(lab, "mapped")
    pods = {node: pod["metadata"]["name"] for node, pod in pods_of(lab, "mapped").items()}
    assert set(pods) == set(WORKERS)

    def inside(node: str, *words: str) -> typing.Any:
        return json.loads(lab.in_pod("training", pods[node], "pytorch", *words))

    for node, peer in (WORKERS, WORKERS[::-1]):
        own, other = addresses[node], addresses[peer]
        (interface,) = inside(node, "ip", "-json", "-4", "address", "show", "dev", "net1")
        assert [(item["local"], item["prefixlen"]) for item in interface["addr_info"]] == [(own, 32)]
        routes = inside(node, "ip", "-json", "-4", "route", "show", "dev", "net1")
        assert [(item["dst"], item["prefsrc"], item["metric"]) for item in routes] == [(other, own, 150)]
        sent = inside(
            node, "iperf3", "--json", "--client", other, "--bind", own, "--bytes", "1M", "--connect-timeout", "20000"
        )
        assert sent["end"]["sum_received"]["bytes"] > 0, sent


def test_jobs_and_nic_maps_are_taken_back_with_their_pods(lab: Lab) -> None:
    absent = {
        "state": "absent",
        "kinds": ["PyTorchJob", "TrainJob", "TrainingRuntime", "ConfigMap"],
        "namespaces": ["training"],
    }
    gone = lab.playbook(play(lab.folder, custom_resources=absent))
    assert gone.code == 0, gone.end
    kinds = ("v1/ConfigMap", "trainer.kubeflow.org/v1alpha1/TrainingRuntime", *ENDS["PyTorchJob"], *ENDS["TrainJob"])
    assert [kind for kind in kinds if lab.objects(kind, MANAGED)] == []
    assert wait_until(lambda: lab.objects("v1/Pod", "linerate.rdma/job") == [], SECONDS, 2), (
        "the pods of a job that is gone are still there"
    )
    back = [lab.command("on", name, "test", "-e", "/sys/class/net/vnic0").returncode for name in WORKERS]
    assert back == [0, 0], "a NIC that was a pod's is not back on its node"
