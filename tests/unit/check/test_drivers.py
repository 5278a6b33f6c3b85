# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told of a driver container before its policy is applied: each way in which it would not come up, with its
cause and its next step."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.drivers import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import NodePlatform, ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import DriverHost, DriverPolicy
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

FABRIC = {
    "name": "rdma",
    "profile": "rdma_shared",
    "select": {"hcas_per_node": 1},
    "network": {"name": "n", "namespace": "t"},
}
VERSION = "doca3.2.0-25.10-1.2.8.0-2"
UBUNTU = DriverHost("worker-1", "ubuntu", "22.04", "5.15.0-91-generic", "amd64")
RHEL = DriverHost("worker-1", "rhel", "9.4", "5.14.0-427.13.1.el9_4.x86_64", "amd64")
RHCOS = DriverHost("worker-1", "rhcos", "4.18", "5.14.0-427.50.1.el9_4.x86_64", "amd64", "418.94.202501221327-0")
NVIDIAS = DriverPolicy("NicClusterPolicy", "nic-cluster-policy", True, "nvcr.io/nvidia/mellanox/doca-driver", VERSION)
FORCED = dataclasses.replace(NVIDIAS, precompiled=True)
GPUS = DriverPolicy("ClusterPolicy", "cluster-policy", True, "nvcr.io/nvidia/driver", "580")
TAGGED = f"nvcr.io/nvidia/mellanox/doca-driver:{VERSION}-5.15.0-91-generic-ubuntu22.04-amd64"


def intent_of(driver: typing.Optional[str] = VERSION, **cluster: typing.Any) -> Intent:
    return parse_intent([FABRIC], None, {"network_operator": {"ofed_driver": driver} if driver else {}, **cluster})


def platform_of(signed: typing.Optional[bool]) -> ObservedPlatform:
    return ObservedPlatform(NodePlatform("5.15", "x86_64", signed_modules=signed))


def look(
    hosts: typing.Sequence[DriverHost] = (UBUNTU,),
    policy: typing.Optional[DriverPolicy] = None,
    intent: typing.Optional[Intent] = None,
    signed: typing.Optional[bool] = False,
    mirrored: bool = False,
    device: typing.Optional[str] = None,
) -> list[Finding]:
    seen = OperatorsSeen(drivers=(policy,) if policy else (), hosts=tuple(hosts))
    hcas = {host.name: ObservedHcas(NodeHcas((Hca("a", device),))) for host in hosts}
    return list(check(intent or intent_of(), seen, {host.name: platform_of(signed) for host in hosts}, hcas, mirrored))


def driver(*args: typing.Any, **more: typing.Any) -> Finding:
    found = [finding for finding in look(*args, **more) if finding.check == "operators.driver"]
    assert len(found) == 1
    return found[0]


def test_a_driver_that_is_compiled_is_told_with_the_tag_that_would_spare_it() -> None:
    found = driver()
    assert found.status == "pass" and found.measured.startswith("image ")
    assert (
        ", with which each of 1 node compiles the driver with packages of the distribution, which takes minutes"
        in found.measured
    )
    assert TAGGED in found.measured and f"{VERSION}-ubuntu22.04-amd64" in found.measured


def test_nothing_is_said_where_no_policy_brings_or_may_bring_a_driver() -> None:
    assert look(intent=intent_of(None)) == []
    assert list(check(intent_of(None), OperatorsSeen(errors=("forbidden",)), {}, {}, False)) == []
    assert driver(intent=intent_of(None), policy=dataclasses.replace(NVIDIAS, container=False)).status == "pass"
    host = dataclasses.replace(UBUNTU, gpu=True)
    assert driver([host], dataclasses.replace(GPUS, container=False), intent_of(None)).measured.startswith(
        "no driver container"
    )
    assert look([UBUNTU], GPUS, intent_of(None)) == [], "no node has a GPU"


def routed(
    uplinks: typing.Optional[tuple[str, ...]], policy: DriverPolicy = NVIDIAS, module: str = "mlx5_core"
) -> list[Finding]:
    """What is told of default routes, of two nodes with the NICs eno1 of the board and ens1 of that driver; worker-2
    has its routes over eno1."""
    hosts = [dataclasses.replace(UBUNTU, name=name) for name in ("worker-1", "worker-2")]
    nic = Hca(
        "mlx5_0",
        "mlx5_0",
        (Netdev("ens1", "02:00:00:00:00:01"),),
        PciFunction("0000:3b:00.0", "15b3", "1021", "0200", module, 0),
    )
    board = Hca(
        "eno1",
        None,
        (Netdev("eno1", "02:00:00:00:00:02"),),
        PciFunction("0000:01:00.0", "8086", "1563", "0200", "ixgbe", 0),
    )
    platforms = {
        name: ObservedPlatform(NodePlatform("5.15", "x86_64", signed_modules=False, uplinks=("eno1",)))
        for name in ("worker-1", "worker-2")
    }
    platforms["worker-1"] = ObservedPlatform(NodePlatform("5.15", "x86_64", signed_modules=False, uplinks=uplinks))
    hcas = {host.name: ObservedHcas(NodeHcas((nic, board))) for host in hosts}
    found = check(intent_of(None), OperatorsSeen(drivers=(policy,), hosts=tuple(hosts)), platforms, hcas, False)
    return [finding for finding in found if finding.subject.endswith("default routes")]


def test_a_node_whose_default_route_leads_over_what_the_container_reloads_is_told_before() -> None:
    for uplinks in (("ens1",), ("bond0", "eno1", "ens1"), ("br-ex", "ens1", "ovs-system")):
        (finding,) = routed(uplinks)
        assert (finding.check, finding.status, finding.subject) == (
            "operators.driver",
            "warn",
            "NicClusterPolicy nic-cluster-policy, default routes",
        )
        assert (
            finding.measured == "worker-1 over ens1 (mlx5_0)"
            and "unloads mlx5_core and loads its own driver" in finding.why
        )
        assert (
            finding.remedy is not None
            and "ip route show default" in finding.remedy
            and "remove spec.ofedDriver" in finding.remedy
        )


def test_routes_that_were_not_read_are_no_better() -> None:
    (finding,) = routed(None)
    assert (finding.status, finding.measured) == (
        "warn",
        "routes unknown on worker-1",
    ) and "On worker-1, run ip route show default and ip -6 route show default" in (finding.remedy or "")


def test_nothing_is_said_of_routes_that_stay() -> None:
    assert routed(("eno1",)) == routed(()) == routed(("ens1",), module="mlx5_vfio") == []
    assert routed(("ens1",), dataclasses.replace(NVIDIAS, ready=True)) == [], "it runs already"
    assert routed(("ens1",), dataclasses.replace(NVIDIAS, container=False)) == [] and routed(("ens1",), GPUS) == []


@pytest.mark.parametrize("seen", [None, OperatorsSeen(errors=("GET NicClusterPolicy: forbidden",))])
def test_what_was_not_read_is_unknown(seen: typing.Optional[OperatorsSeen]) -> None:
    (found,) = check(intent_of(), seen, {}, {}, False)
    assert (found.check, found.status) == ("operators.driver", "unknown")


@pytest.mark.parametrize(
    ("host", "policy", "more", "status", "cause", "remedy"),
    [
        (RHEL, None, {}, "warn", "require a subscription", "subscription-manager status"),
        (RHEL, dataclasses.replace(NVIDIAS, repositories="repo"), {}, "pass", "", ""),
        (
            dataclasses.replace(RHEL, os="sles", version="15.7"),
            None,
            {},
            "warn",
            "require a subscription",
            "SUSEConnect",
        ),
        (RHCOS, None, {}, "pass", "", ""),
        (dataclasses.replace(RHCOS, ostree=""), None, {}, "fail", "OSTREE_VERSION", "node feature discovery"),
        (
            dataclasses.replace(UBUNTU, os="", version=""),
            None,
            {},
            "fail",
            "It starts no driver on a node without this label",
            "--show-labels",
        ),
        (
            dataclasses.replace(UBUNTU, os="rocky", version="9.4"),
            None,
            {},
            "warn",
            "No image for rocky is known",
            "use the driver of the node",
        ),
        (
            UBUNTU,
            None,
            {"mirrored": True},
            "warn",
            "headers of kernel 5.15.0-91-generic",
            "spec.ofedDriver.repoConfig.name",
        ),
        (UBUNTU, None, {"signed": True}, "fail", "Key was rejected by service", "mokutil --import"),
        (
            UBUNTU,
            None,
            {"signed": None},
            "pass",
            "whether the kernel accepts unsigned modules is unknown",
            "",
        ),
        (RHCOS, None, {"signed": True}, "fail", "only signed modules", "turn secure boot off"),
        (UBUNTU, FORCED, {}, "warn", "exactly this kernel", f"skopeo inspect --no-tags docker://{TAGGED}"),
        (UBUNTU, FORCED, {"signed": True}, "fail", "only signed modules", "forcePrecompiled"),
        (
            RHEL,
            FORCED,
            {},
            "warn",
            "publishes precompiled drivers for ubuntu22.04 and ubuntu24.04",
            "set spec.ofedDriver.forcePrecompiled to false",
        ),
        (
            dataclasses.replace(UBUNTU, kernel="6.8.0-1-lowlatency"),
            FORCED,
            {},
            "warn",
            "with kernels generic, nvidia",
            "Build the image for kernel 6.8.0-1-lowlatency",
        ),
        (
            UBUNTU,
            dataclasses.replace(FORCED, message="ForcePrecompiled is enabled and precompiled tag was not found: x"),
            {},
            "fail",
            "precompiled tag was not found",
            "set spec.ofedDriver.forcePrecompiled to false",
        ),
        (UBUNTU, dataclasses.replace(NVIDIAS, ready=True), {"signed": True}, "pass", "", ""),
    ],
)
def test_what_keeps_the_driver_of_the_hcas_from_coming_up(
    host: DriverHost,
    policy: typing.Optional[DriverPolicy],
    more: dict[str, typing.Any],
    status: str,
    cause: str,
    remedy: str,
) -> None:
    found = driver([host], policy, **more)
    assert found.status == status, found
    assert cause in f"{found.why} {found.measured}" and remedy in found.remedy


@pytest.mark.parametrize(
    ("policy", "more", "status", "says"),
    [
        (GPUS, {}, "pass", "nvcr.io/nvidia/driver:580-ubuntu22.04"),
        (
            dataclasses.replace(GPUS, precompiled=True),
            {},
            "warn",
            "docker://nvcr.io/nvidia/driver:580-5.15.0-91-generic-ubuntu22.04",
        ),
        (dataclasses.replace(GPUS, precompiled=True), {"signed": True}, "warn", "usePrecompiled"),
        (
            dataclasses.replace(GPUS, precompiled=True, image="mirror.example/driver"),
            {"signed": True},
            "warn",
            "this check does not inspect the image",
        ),
        (GPUS, {"signed": True}, "fail", "set spec.driver.enabled to false"),
        (dataclasses.replace(GPUS, ready=True), {"signed": True}, "pass", "runs, as the operator reports"),
    ],
)
def test_the_driver_of_the_gpus(policy: DriverPolicy, more: dict[str, typing.Any], status: str, says: str) -> None:
    found = driver([dataclasses.replace(UBUNTU, gpu=True)], policy, intent_of(None), **more)
    assert found.status == status and says in f"{found.measured} {found.why} {found.remedy}"


@pytest.mark.parametrize(("names", "missing"), [(("a", "b"), 0), (("a", "b", "c"), 1), ((), 0)])
def test_nodes_of_the_inventory_that_the_cluster_does_not_show_are_not_left_out(
    names: tuple[str, ...], missing: int
) -> None:
    """Of the hosts that are there is not of all."""
    seen = OperatorsSeen(hosts=tuple(dataclasses.replace(UBUNTU, name=name) for name in ("a", "b")))
    nodes = {name: ObservedHcas(NodeHcas(())) for name in names}
    told = [item for item in check(intent_of(), seen, {}, nodes, False) if item.subject.endswith(", nodes")]
    assert [(item.status, item.measured) for item in told] == (
        [("unknown", "kernel unknown on 1 of 3 nodes")] if missing else []
    )
    assert [item for item in check(intent_of(None), seen, {}, nodes, False) if "nodes" in item.subject] == []


def test_another_version_than_the_one_that_runs_is_told_as_new() -> None:
    there = dataclasses.replace(NVIDIAS, version="25.01", ready=True, message="old")
    found = driver([RHEL], there)
    assert found.status == "warn" and VERSION in found.measured


def test_a_digest_is_one_image_for_one_kernel() -> None:
    digest = "sha256:" + "a" * 64
    found = look(
        [UBUNTU, dataclasses.replace(UBUNTU, name="worker-2", kernel="5.15.0-92-generic")], intent=intent_of(digest)
    )
    assert [item.status for item in found] == ["warn", "warn", "fail"]
    assert f"doca-driver@{digest}" in found[0].remedy and "only one of these kernels" in found[-1].why
    assert "set spec.ofedDriver.version of NicClusterPolicy nic-cluster-policy, or rdma_cluster." in found[-1].remedy


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (None, "compiled for each kernel separately"),
        (FORCED, "its own precompiled image"),
        (dataclasses.replace(NVIDIAS, ready=True), ""),
    ],
)
def test_nodes_of_one_policy_with_different_kernels(policy: typing.Optional[DriverPolicy], why: str) -> None:
    others = [dataclasses.replace(UBUNTU, name=name, kernel="6.8.0-49-generic") for name in ("worker-2", "worker-3")]
    found = [item for item in look([UBUNTU, *others], policy) if item.check == "operators.driver_kernels"]
    assert len(found) == 1 and found[0].status == ("warn" if why else "pass") and why in found[0].why
    assert (
        found[0].measured
        == "ubuntu22.04 5.15.0-91-generic amd64 on worker-1; ubuntu22.04 6.8.0-49-generic amd64 on worker-2, worker-3"
    )


def test_one_node_whose_kernel_asks_for_signatures_is_enough() -> None:
    hosts = (UBUNTU, dataclasses.replace(UBUNTU, name="worker-2"))
    platforms = {"worker-1": platform_of(False), "worker-2": platform_of(True)}
    found = list(check(intent_of(), OperatorsSeen(hosts=hosts), platforms, {}, False))
    assert [item.status for item in found] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("device", "cluster", "told"),
    [("mlx5_0", {}, True), (None, {}, False), ("mlx5_0", {"host": {"gpudirect": "peermem"}}, False)],
)
def test_the_drivers_of_the_nodes_may_be_enough(
    device: typing.Optional[str], cluster: dict[str, typing.Any], told: bool
) -> None:
    assert ("no driver container is needed" in driver([RHEL], None, intent_of(**cluster), device=device).why) is told


NONE = dataclasses.replace(NVIDIAS, container=False)
POOL = dataclasses.replace(NVIDIAS, kind="NicNodePolicy", name="pool-a", nodes=("worker-1",))
DELEGATED = dataclasses.replace(GPUS, container=False, delegated=True)
OBJECT = dataclasses.replace(GPUS, kind="NVIDIADriver", name="demo", nodes=("worker-1",))


@pytest.mark.parametrize(("whole", "part"), [(NONE, POOL), (DELEGATED, OBJECT)])
def test_a_policy_of_some_nodes_brings_the_driver_in_place_of_the_one_of_all(
    whole: DriverPolicy, part: DriverPolicy
) -> None:
    """Nothing of a run waits for it: a driver of which its operator does not say that it runs is no pass."""
    host = dataclasses.replace(UBUNTU, gpu=True)
    other = dataclasses.replace(host, name="worker-2", kernel="6.8.0-51-generic")

    def told(policy: DriverPolicy) -> dict[str, str]:
        seen = OperatorsSeen(drivers=(whole, policy), hosts=(host, other))
        platforms = {name: platform_of(False) for name in ("worker-1", "worker-2")}
        return {
            item.subject: item.status
            for item in check(intent_of(None), seen, platforms, {}, False)
            if item.check == "operators.driver"
        }

    subject = f"{part.kind} {part.name}, kernel 5.15.0-91-generic of ubuntu22.04 amd64"
    assert told(part) == {subject: "unknown"}
    assert told(dataclasses.replace(part, message="no such image")) == {subject: "fail"}
    assert told(dataclasses.replace(part, ready=True)) == {subject: "pass"}
    assert len(told(dataclasses.replace(part, ready=True, nodes=None))) == 2


def test_an_nvidia_driver_counts_where_the_cluster_policy_leaves_the_driver_to_it() -> None:
    host = dataclasses.replace(UBUNTU, gpu=True)
    found = list(
        check(
            intent_of(None),
            OperatorsSeen(drivers=(GPUS, OBJECT), hosts=(host,)),
            {"worker-1": platform_of(False)},
            {},
            False,
        )
    )
    assert {item.subject.partition(",")[0] for item in found} == {"ClusterPolicy cluster-policy"}
