# SPDX-License-Identifier: GPL-3.0-or-later

"""Rendered jobs against golden files (LINERATE_UPDATE_GOLDEN=1 writes them anew), and their start scripts, run in a
file tree that stands for a pod."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import RenderError
from ansible_collections.linerate.rdma.plugins.module_utils._render.job import job_start
from ansible_collections.linerate.rdma.plugins.module_utils._render.job.job import render
from ansible_collections.linerate.rdma.tests.unit.check.job_world import FABRICS, job, objects

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


class Dumper(yaml.SafeDumper):
    """Scripts as a reader would write them, and no anchors."""

    def ignore_aliases(self, data: typing.Any) -> bool:
        return True


Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("job-pytorch", {"queue": "gpu", "topology_file": "/etc/topology.xml"}),
        (
            "job-trainjob-roce",
            {"kind": "TrainJob", "fabric": "roce", "queue": "gpu", "nic_map": "roce-nic-map", "claim": None},
        ),
        ("job-pod-network", {"fabric": None, "namespace": "training", "nodes": 1, "claim": None, "config": None}),
    ],
)
def test_golden(name: str, changes: dict[str, typing.Any]) -> None:
    text = "---\n" + yaml.dump_all(objects(**changes), Dumper=Dumper, sort_keys=False, width=150)
    path = GOLDEN / f"{name}.golden"
    if os.environ.get("LINERATE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def containers(item: dict[str, typing.Any]) -> list[dict[str, typing.Any]]:
    return [replica["template"]["spec"]["containers"][0] for replica in item["spec"]["pytorchReplicaSpecs"].values()]


def variables(item: dict[str, typing.Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in containers(item)[0]["env"]}


def test_master_and_workers_make_up_the_nodes() -> None:
    (two,), (one,), (eight,) = (objects(nodes=count) for count in (2, 1, 8))
    assert [list(item["spec"]["pytorchReplicaSpecs"]) for item in (one, two)] == [["Master"], ["Master", "Worker"]]
    assert eight["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 7


def test_one_attachment_and_one_device_for_each_interface() -> None:
    (item,) = objects(interfaces=2)
    template = item["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    assert (
        template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]
        == "training/sriov-ib-compute,training/sriov-ib-compute"
    )
    assert template["spec"]["containers"][0]["resources"]["limits"]["openshift.io/mlx_compute"] == "2"
    assert variables(item)["NCCL_SOCKET_IFNAME"] == "=net1,net2"


def test_the_user_has_the_last_word_on_variables() -> None:
    (item,) = objects(environment={"NCCL_DEBUG": "WARN", "HF_HOME": "/models"})
    assert variables(item)["NCCL_DEBUG"] == "WARN"
    assert list(variables(item))[-1] == "HF_HOME"


def test_wishes_for_a_closed_cluster() -> None:
    wanted = {"tolerations": [{"operator": "Exists"}], "service_account": "rdma", "image_pull_secrets": ["registry"]}
    spec = objects(**wanted)[0]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert (spec["tolerations"], spec["serviceAccountName"], spec["imagePullSecrets"]) == (
        [{"operator": "Exists"}],
        "rdma",
        [{"name": "registry"}],
    )


OTHERS: dict[str, typing.Any] = {
    "shared": {
        "profile": "rdma_shared",
        "resource_name": "rdma_shared_device_eth",
        "select": {"hcas_per_node": 1, "netdev": ["ens1f0"]},
    },
    "whole": {"profile": "host_device", "select": {"hcas_per_node": 1, "netdev": ["ens1f0"]}},
    "plain": {"profile": "macvlan", "select": {"hcas_per_node": 1, "netdev": ["ens1f0"]}},
    "base": {"profile": "pod_network"},
}


@pytest.mark.parametrize(
    ("name", "annotation", "device", "rdma"),
    [
        ("shared", "training/net", "rdma/rdma_shared_device_eth", True),
        ("whole", "training/net", None, True),
        ("plain", "training/net", None, False),
        ("base", None, None, False),
    ],
)
def test_jobs_on_the_other_profiles(
    name: str, annotation: typing.Optional[str], device: typing.Optional[str], rdma: bool
) -> None:
    network = (
        {}
        if name == "base"
        else {
            "network": {"name": "net", "namespace": "training"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        }
    )
    fabric = load(
        Fabric, {"name": name, "network": {"namespace": "training"}, **OTHERS[name], **network}, "rdma_fabrics[0]"
    )
    (item,) = render(job(fabric=name), (fabric,), ClusterIntent())
    template = item["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    (container,) = template["spec"]["containers"]
    assert template["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/networks") == annotation
    assert [key for key in container["resources"]["limits"] if key not in ("cpu", "memory", "nvidia.com/gpu")] == (
        [device] if device else []
    )
    assert ("add" in container["securityContext"]["capabilities"], container["command"][0] == "sh") == (rdma, rdma)
    assert variables(item).get("NCCL_IB_DISABLE") == (None if rdma else "1")


def test_a_fabric_without_rdma_is_used_over_tcp() -> None:
    fabric = dataclasses.replace(FABRICS[1], rdma=False)
    (item,) = render(job(fabric="roce"), (fabric,), ClusterIntent())
    container, _worker = containers(item)
    assert (container["command"], container["securityContext"]["capabilities"]) == (
        ["torchrun", "/etc/training/train.py"],
        {"drop": ["ALL"]},
    )
    assert (variables(item)["NCCL_IB_DISABLE"], variables(item)["NCCL_SOCKET_IFNAME"]) == ("1", "=net1")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"fabric": "computer"}, "no fabric has the name 'computer'; rdma_fabrics contains compute, roce"),
        ({"fabric": None}, "rdma_job.namespace"),
        ({"name": "Train_1"}, "rdma_job.name: 'Train_1'; expected at most 50 lower-case letters"),
        ({"nodes": 0}, "rdma_job.nodes: 0; expected at least 1"),
        ({"gpus_per_node": 0}, "rdma_job.gpus_per_node: 0"),
        ({"command": []}, "rdma_job.command: nothing"),
        ({"interfaces": 33}, "rdma_job.interfaces: 33; expected 1 to 32, the number of interfaces of a node"),
        (
            {"fabric": None, "namespace": "training", "interfaces": 1},
            "rdma_job.interfaces: 1; expected no value without a fabric",
        ),
        ({"fabric": None, "namespace": "training", "nic_map": "map"}, "rdma_job.nic_map: map"),
    ],
)
def test_a_job_that_is_nowhere_is_refused(changes: dict[str, typing.Any], text: str) -> None:
    with pytest.raises(RenderError, match=text):
        objects(**changes)


# The start of a pod


class Pod:
    """The parts of a pod's file system that the scripts read."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def function(self, address: str, device: str) -> None:
        (self.root / f"sys/bus/pci/devices/{address}/infiniband/{device}").mkdir(parents=True)

    def gid(
        self, device: str, index: int, gid: str, kind: str = "RoCE v2", netdev: str = "net1", number: int = 1
    ) -> None:
        port = f"sys/class/infiniband/{device}/ports/{number}"
        self.write(f"{port}/gids/{index}", gid + "\n")
        self.write(f"{port}/gid_attrs/types/{index}", kind + "\n")
        self.write(f"{port}/gid_attrs/ndevs/{index}", netdev + "\n")

    def run(self, command: tuple[str, ...], **environment: str) -> subprocess.CompletedProcess[str]:
        moved = [word.replace("/sys/", f"{self.root}/sys/") for word in command]
        moved = [
            word.replace('"/dev/infiniband', f'"{self.root}/dev/infiniband').replace(
                job_start.MAP_FOLDER, f"{self.root}/map"
            )
            for word in moved
        ]
        path = f"{self.root}/bin:{os.environ['PATH']}"
        return subprocess.run(
            moved, capture_output=True, text=True, env={"PATH": path, **environment}, timeout=30, check=False
        )


@pytest.fixture
def pod(tmp_path: pathlib.Path) -> Pod:
    return Pod(tmp_path)


SHOW = ("sh", "-c", 'echo "${NCCL_IB_HCA-unset} ${NCCL_IB_GID_INDEX-unset}" "$@"', "show", "an argument", "$HOME")


def start(roce: bool = False) -> tuple[str, ...]:
    return job_start.render_start_command("openshift.io/mlx_compute", roce, SHOW)


def test_names_of_the_functions_that_the_plugin_gave(pod: Pod) -> None:
    pod.function("0000:3c:00.2", "mlx5_6")
    pod.function("0000:4d:00.5", "mlx5_17")
    pod.function("0000:bc:00.5", "mlx5_20")
    done = pod.run(
        start(),
        PCIDEVICE_OPENSHIFT_IO_MLX_COMPUTE="0000:3c:00.2,0000:4d:00.5",
        PCIDEVICE_OPENSHIFT_IO_OTHER="0000:bc:00.5",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "=mlx5_6,mlx5_17 unset an argument $HOME\n", "")


def test_devices_that_can_be_opened_where_the_plugin_names_no_function(pod: Pod) -> None:
    for index in range(3):
        pod.write(f"sys/class/infiniband_verbs/uverbs{index}/ibdev", f"mlx5_{index}\n")
    pod.write("dev/infiniband/uverbs1")
    assert pod.run(start()).stdout == "=mlx5_1 unset an argument $HOME\n"


@pytest.mark.parametrize("verbs", [False, True])
def test_a_pod_without_a_device_does_not_train_over_tcp_in_silence(pod: Pod, verbs: bool) -> None:
    if verbs:
        pod.write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n")
    done = pod.run(start())
    assert (done.returncode, done.stdout) == (1, "")
    assert "the pod has no RDMA device; expected one of openshift.io/mlx_compute" in done.stderr


def roce_pod(pod: Pod) -> dict[str, str]:
    pod.function("0000:3c:00.2", "mlx5_6")
    pod.function("0000:4d:00.2", "mlx5_7")
    pod.write("sys/class/net/net1/x")
    return {"PCIDEVICE_OPENSHIFT_IO_MLX_COMPUTE": "0000:3c:00.2,0000:4d:00.2"}


def test_the_index_of_the_gid_is_found(pod: Pod) -> None:
    environment = roce_pod(pod)
    for device in ("mlx5_6", "mlx5_7"):
        pod.gid(device, 0, "fe80:0000:0000:0000:b8ce:f6ff:fe09:1", "IB/RoCE v1")
        pod.gid(device, 1, "fe80:0000:0000:0000:b8ce:f6ff:fe09:1")
        pod.gid(device, 2, "0000:0000:0000:0000:0000:ffff:6465:0001", "IB/RoCE v1")
        pod.gid(device, 3, "0000:0000:0000:0000:0000:ffff:6465:0001")
        pod.gid(device, 4, "0000:0000:0000:0000:0000:ffff:6465:0002")
        # of the node's own namespace, so not shown in the pod
        pod.gid(device, 0, "0000:0000:0000:0000:0000:ffff:6465:0009", netdev="ens1f0")
        (pod.root / f"sys/class/infiniband/{device}/ports/1/gid_attrs/ndevs/0").unlink()
    done = pod.run(start(roce=True), **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "=mlx5_6,mlx5_7 3 an argument $HOME\n", "")


@pytest.mark.parametrize(
    ("state", "index", "shown"),
    [("4: ACTIVE", 3, "3"), ("4: ACTIVE", 5, "unset"), ("4: ACTIVE", None, "unset"), ("1: DOWN", None, "3")],
)
def test_each_active_port_of_a_device_has_the_index(
    pod: Pod, state: str, index: typing.Optional[int], shown: str
) -> None:
    pod.function("0000:3c:00.2", "mlx5_6")
    pod.write("sys/class/net/net1/x")
    pod.gid("mlx5_6", 3, "0000:0000:0000:0000:0000:ffff:6465:0001")
    pod.write("sys/class/infiniband/mlx5_6/ports/12/state", f"{state}\n")
    if index is not None:
        pod.gid("mlx5_6", index, "0000:0000:0000:0000:0000:ffff:6465:0002", number=12)
    done = pod.run(start(roce=True), PCIDEVICE_OPENSHIFT_IO_MLX_COMPUTE="0000:3c:00.2")
    assert (done.returncode, done.stdout) == (0, f"=mlx5_6 {shown} an argument $HOME\n")


@pytest.mark.parametrize("second", [5, None])
def test_without_one_index_for_all_devices_none_is_set(pod: Pod, second: typing.Optional[int]) -> None:
    environment = roce_pod(pod)
    pod.gid("mlx5_6", 3, "0000:0000:0000:0000:0000:ffff:6465:0001")
    if second is not None:
        pod.gid("mlx5_7", second, "0000:0000:0000:0000:0000:ffff:6465:0002")
    done = pod.run(start(roce=True), **environment)
    assert (done.returncode, done.stdout) == (0, "=mlx5_6,mlx5_7 unset an argument $HOME\n")
    assert "no index of a RoCE v2 GID is the same for all of mlx5_6 mlx5_7; NCCL chooses" in done.stderr


MAP = """\
worker-1:ens13:net1:10.249.65.9
worker-1:ens14:net2:fd00:66::9
worker-10:ens13:net1:10.249.65.10
worker-2:ens13:net1:10.249.65.11
worker-2:ens14:net2:fd00:66::b
"""


def test_addresses_and_routes_of_the_map(pod: Pod) -> None:
    pod.write("map/nic-map", MAP)
    pod.write("bin/ip", f'#!/bin/sh\necho "$@" >> {pod.root}/calls\n')
    (pod.root / "bin/ip").chmod(0o755)
    assert pod.run(job_start.render_address_command(), NODE_NAME="worker-1").returncode == 0
    assert (pod.root / "calls").read_text().splitlines() == [
        "address flush dev net1 scope global",
        "address add 10.249.65.9/32 dev net1",
        "route replace 10.249.65.10/32 dev net1 src 10.249.65.9 metric 150",
        "route replace 10.249.65.11/32 dev net1 src 10.249.65.9 metric 150",
        "address flush dev net2 scope global",
        "address add fd00:66::9/128 dev net2",
        "route replace fd00:66::b/128 dev net2 src fd00:66::9 metric 150",
    ]


def test_a_node_that_the_map_does_not_know(pod: Pod) -> None:
    pod.write("map/nic-map", MAP)
    done = pod.run(job_start.render_address_command(), NODE_NAME="worker-3")
    assert done.returncode == 1
    assert "no line of node worker-3" in done.stderr


def test_a_failing_command_ends_the_start(pod: Pod) -> None:
    pod.write("map/nic-map", MAP)
    pod.write("bin/ip", "#!/bin/sh\nexit 2\n")
    (pod.root / "bin/ip").chmod(0o755)
    assert pod.run(job_start.render_address_command(), NODE_NAME="worker-1").returncode == 2
