# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings by which the pods of a job do not meet: the loopback interface."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.check.job_world import WORLD, objects

Resource = dict[str, typing.Any]


def templates(made: typing.Sequence[Resource]) -> typing.Iterator[Resource]:
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        yield replica["template"]


def judge(made: typing.Sequence[Resource]) -> list[Finding]:
    """Return the findings that are no pass, without the one that each PyTorchJob gets."""
    return [item for item in lint(made, made, WORLD) if item.status != "pass" and item.check != "job.added"]


def found_at(made: typing.Sequence[Resource]) -> set[tuple[str, str, str]]:
    return {(item.check, item.status, item.subject.rpartition(" ")[2]) for item in judge(made)}


@pytest.mark.parametrize("fabric", ["compute", "roce"])
@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"NCCL_SOCKET_IFNAME": "lo"}, "NCCL_SOCKET_IFNAME"),
        ({"NCCL_SOCKET_IFNAME": "=lo"}, "NCCL_SOCKET_IFNAME"),
        # the kernel lists lo before net1, whatever the order in the value
        ({"NCCL_SOCKET_IFNAME": "net1,lo"}, "NCCL_SOCKET_IFNAME"),
        ({"NCCL_SOCKET_IFNAME": "^eth,net"}, "NCCL_SOCKET_IFNAME"),
        # a value that excludes others only takes lo, too
        ({"NCCL_SOCKET_IFNAME": "^docker0"}, "NCCL_SOCKET_IFNAME"),
        ({"NCCL_SOCKET_IFNAME": "^=docker0,l"}, "NCCL_SOCKET_IFNAME"),
        ({"NCCL_COMM_ID": "127.0.0.1:1234"}, "NCCL_COMM_ID"),
        ({"NCCL_COMM_ID": "127.8.0.1:1"}, "NCCL_COMM_ID"),
        ({"NCCL_COMM_ID": "localhost:1234"}, "NCCL_COMM_ID"),
        ({"NCCL_COMM_ID": "[::1]:1234"}, "NCCL_COMM_ID"),
        ({"NCCL_OOB_NET_IFNAME": "lo", "NCCL_OOB_NET_ENABLE": "1"}, "NCCL_OOB_NET_IFNAME"),
    ],
)
def test_pods_that_meet_at_the_loopback_interface_are_refused(
    fabric: str, variables: dict[str, str], named: str
) -> None:
    assert found_at(objects(fabric=fabric, environment=variables)) == {("job.interfaces", "fail", named)}


def test_loopback_for_gloo_is_a_warning() -> None:
    made = objects(environment={"GLOO_SOCKET_IFNAME": "lo"})
    assert found_at(made) == {("job.interfaces", "warn", "GLOO_SOCKET_IFNAME")}


@pytest.mark.parametrize(
    "variables",
    [
        {"NCCL_SOCKET_IFNAME": "^lo,docker"},
        {"NCCL_SOCKET_IFNAME": "^=lo"},
        {"NCCL_SOCKET_IFNAME": "eth0"},
        {"NCCL_COMM_ID": "10.0.0.1:1234"},
        {"NCCL_COMM_ID": "train-master-0:1234"},
        {"NCCL_COMM_ID": "[fd00::1]:1234"},
        # NCCL reads the variable only if NCCL_OOB_NET_ENABLE is set
        {"NCCL_OOB_NET_IFNAME": "lo"},
        {"NCCL_OOB_NET_IFNAME": "lo", "NCCL_OOB_NET_ENABLE": "0"},
        {"NCCL_OOB_NET_IFNAME": "mlx5_0", "NCCL_OOB_NET_ENABLE": "1"},
        {"GLOO_SOCKET_IFNAME": "eth0"},
    ],
)
def test_interfaces_that_other_pods_reach_pass(variables: dict[str, str]) -> None:
    assert judge(objects(environment=variables)) == []


@pytest.mark.parametrize(
    "variables", [{"NCCL_SOCKET_IFNAME": "lo"}, {"NCCL_COMM_ID": "127.0.0.1:1"}, {"GLOO_SOCKET_IFNAME": "lo"}]
)
def test_a_job_of_one_pod_may_use_the_loopback_interface(variables: dict[str, str]) -> None:
    assert judge(objects(nodes=1, environment=variables)) == []


def test_pods_with_the_network_of_their_node_do_not_meet_at_loopback_either() -> None:
    made = objects(environment={"NCCL_SOCKET_IFNAME": "lo"})
    for template in templates(made):
        template["spec"]["hostNetwork"] = True
    assert ("job.interfaces", "fail", "NCCL_SOCKET_IFNAME") in found_at(made)


def test_a_loopback_interface_in_a_command_counts() -> None:
    made = objects()
    for template in templates(made):
        (container,) = template["spec"]["containers"]
        container["command"] = ["sh", "-c", "export NCCL_SOCKET_IFNAME=lo; torchrun train.py"]
    assert found_at(made) == {("job.interfaces", "fail", "NCCL_SOCKET_IFNAME")}
