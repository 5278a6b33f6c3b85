# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters between the observers: from answers of nodes to what the next module is asked."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.linerate.rdma.plugins.filter.ping_plan import ping_plan
from ansible_collections.linerate.rdma.plugins.filter.training_pods import training_pods
from ansible_collections.linerate.rdma.plugins.filter.vantage_points import vantage_points
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world

HCAS = {name: {"value": to_data(world.node(number)), "error": None} for name, number in world.NODES.items()}
SUBNETS = {name: {"value": to_data(world.subnets()), "error": None} for name in world.NODES}
NO_ANSWER = {"value": None, "error": "unreachable: No route to host"}


def test_one_port_looks_at_each_fabric() -> None:
    assert vantage_points({**SUBNETS, "worker-3": NO_ANSWER}) == {
        "worker-1": [{"device": "mlx5_0", "port": 1}, {"device": "mlx5_2", "port": 1}],
        "worker-2": [],
        "worker-3": [],
    }


def test_the_plan_is_what_ibping_takes() -> None:
    plan = ping_plan(to_data([world.fabric(), world.storage()]), {**HCAS, "worker-3": NO_ANSWER}, {**SUBNETS, "worker-3": NO_ANSWER}, 31)["nodes"]
    assert plan["worker-1"]["servers"] == [{"device": f"mlx5_{index}", "port": 1} for index in (0, 1, 4, 5)]
    assert plan["worker-1"]["clients"] == [{"device": f"mlx5_{index}", "port": 1, "lids": [32 + index]} for index in (0, 1, 4, 5)]
    assert plan["worker-3"] == {"servers": [], "clients": []}


def test_a_fabric_that_is_not_known_is_not_in_the_plan() -> None:
    plan = ping_plan(to_data([world.fabric(hcas_per_node=5)]), HCAS, SUBNETS)["nodes"]
    assert plan == {name: {"servers": [], "clients": []} for name in world.NODES}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: vantage_points({"worker-1": []}), r"subnets\.worker-1: a list; expected a mapping"),
        (lambda: ping_plan([{"nam": "x"}], {}, {}), r"rdma_fabrics\[0\]\.nam: unknown key"),
        (lambda: ping_plan([], {"worker-1": {"value": {"hca": []}}}, {}), r"hcas\.worker-1\.value\.hca: unknown key"),
    ],
)
def test_bad_input_is_refused_with_its_path(call, text: str) -> None:
    with pytest.raises(AnsibleFilterError, match=text):
        call()


def pods(**spec: typing.Any) -> typing.List[typing.Any]:
    """The captured pod with a virtual function; keywords change its specification."""
    path = pathlib.Path(__file__).parents[1] / "fixtures" / "kubernetes" / "pod-with-vf.yaml"
    pod = yaml.safe_load(path.read_text(encoding="utf-8"))
    pod["spec"].update(spec)
    return [pod]


def test_what_a_training_pod_got() -> None:
    (pod,) = training_pods(pods())
    assert pod["functions"] == [{"network": "default/op-net", "interface": "net1", "pci": "0000:01:10.0", "rdma_device": None}]
    assert (pod["name"], pod["host"], pod["error"]) == ("op-a", "op-a", "")


def test_host_name_of_a_training_pod_is_nccl_s() -> None:
    assert training_pods(pods(hostname="job-0-1.example"))[0]["host"] == "job-0-1"
    assert training_pods(pods(hostNetwork=True, nodeName="worker-1.example.com"))[0]["host"] == "worker-1"


def test_training_pod_without_networks() -> None:
    (pod,) = pods()
    pod["metadata"]["annotations"] = {}
    (found,) = training_pods([pod])
    assert found["functions"] is None and "multus did not attach it" in found["error"]
    with pytest.raises(AnsibleFilterError, match=r"metadata.name is missing"):
        training_pods([{"metadata": {}}])
