# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts must have for a job: locked memory, and a way for NICs to reach the memory of GPUs."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.host import check as host
from ansible_collections.linerate.rdma.plugins.module_utils._check.host import gpudirect
from ansible_collections.linerate.rdma.plugins.module_utils._check.host.kernel_arguments import (
    Overridden,
    find_overridden,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    Fabric,
    Intent,
    Select,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    NodePlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import (
    ClusterPolicies,
    MemlockProof,
    ObservedText,
    Roll,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    GpuDriver,
    NodePlatform,
    ObservedPlatform,
    PciEvidence,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding

FABRIC = Fabric(
    "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.0.0.0/24")
)
MEMLOCK = Memlock("containerd", limit_gib=8, proof_mib=64)
PROOF = MemlockProof(
    "compute", "a", "test/pod", 65532, 8 << 30, 8 << 30, "mlx5_4", 64 << 20, 64 << 20, "local address: ..."
)
OPEN = GpuDriver("570.86.15", True)


def intent(memlock: typing.Optional[Memlock] = MEMLOCK, fabric: Fabric = FABRIC, **needs: typing.Any) -> Intent:
    return Intent((fabric,), cluster=ClusterIntent(host=HostNeeds(memlock, **needs)))


def judged(proof: typing.Optional[MemlockProof] = PROOF, memlock: Memlock = MEMLOCK, **facts: typing.Any) -> Finding:
    found = host.check(intent(memlock), host.Facts(("a",), (proof,) if proof else (), **facts))
    (only,) = [finding for finding in found if finding.check == "host.memlock"]
    return only


def changed(**changes: typing.Any) -> MemlockProof:
    return dataclasses.replace(PROOF, **changes)


def test_nothing_is_asked_for() -> None:
    assert [(item.check, item.status) for item in host.check(intent(None), host.Facts(("a",)))] == [
        ("host.memlock_limit", "pass")
    ]


def test_a_limit_that_is_proven() -> None:
    found = judged()
    assert (found.status, found.subject) == ("pass", "compute a")
    assert found.measured == "ulimit -l 8 GiB (hard 8 GiB) as user 65532, 64 MiB registered on mlx5_4"
    assert judged(changed(soft=-1, hard=-1)).status == "pass"


@pytest.mark.parametrize(
    ("proof", "status", "words"),
    [
        (changed(soft=8 << 20, registered=0, evidence="Couldn't register MR"), "fail", "lower than the tested size"),
        (changed(registered=0, evidence="Couldn't register MR"), "fail", "the limit of locked memory is not the cause"),
        (changed(soft=1 << 30), "fail", "NCCL falls back to TCP without an error"),
        (changed(user=0), "unknown", "ran as root"),
        (changed(user=None), "unknown", "does not show as which user the test ran"),
        (
            changed(asked=1 << 20, registered=1 << 20),
            "unknown",
            "rdma_cluster.host.memlock.proof_mib now requires 64 MiB",
        ),
        (
            changed(error="the node offers no openshift.io/mlx", soft=None, registered=None),
            "unknown",
            "the node offers no openshift.io/mlx",
        ),
        (None, "unknown", "No test pod was started on the node"),
    ],
)
def test_what_is_no_proof(proof: typing.Optional[MemlockProof], status: str, words: str) -> None:
    found = judged(proof)
    assert found.status == status and words in found.why


def test_a_pod_without_its_image_is_told_by_the_kubelet_s_words() -> None:
    error = "the pod did not end within 300 s: ErrImagePull: unauthorized: authentication required"
    found = judged(changed(error=error, soft=None, registered=None))
    assert (found.status, "no pull secret" in found.why, error in found.why) == ("unknown", True, True)
    assert "pods.image_pull_secrets" in found.remedy and "-n test " in found.remedy


def test_the_remedy_is_that_of_the_runtime() -> None:
    assert "systemctl show containerd" in judged(changed(soft=1 << 20)).remedy
    assert "network.roll" in judged(changed(soft=1 << 20), Memlock("machine_config", limit_gib=8)).remedy


@pytest.mark.parametrize(
    ("seen", "check_mode", "status", "words"),
    [
        (ObservedText("8589934592\n"), False, "pass", ""),
        (ObservedText("8388608"), False, "fail", "another drop-in"),
        (ObservedText(""), False, "fail", "another drop-in"),
        (ObservedText("8388608"), True, "unknown", "Check mode"),
        (ObservedText(error="was not asked: Restart containerd with it: job failed"), False, "unknown", "job failed"),
        (None, False, "unknown", "was not queried"),
    ],
)
def test_containerd_has_the_limit_that_systemd_gives_it(
    seen: typing.Any, check_mode: bool, status: str, words: str
) -> None:
    facts = host.Facts(("a",), (PROOF,), check_mode=check_mode, runtimes={"a": seen} if seen else {})
    (found,) = [item for item in host.check(intent(), facts) if item.check == "host.containerd"]
    assert found.status == status and words in found.why


def test_infinity_is_no_limit_and_a_machine_config_has_no_drop_in() -> None:
    facts = host.Facts(("a",), runtimes={"a": ObservedText("infinity")})
    unlimited = host.check(intent(Memlock("containerd", unlimited=True)), facts)
    assert [item.status for item in unlimited if item.check == "host.containerd"] == ["pass"]
    assert not [
        item
        for item in host.check(intent(Memlock("machine_config", limit_gib=8)), facts)
        if item.check == "host.containerd"
    ]


def test_check_mode_proves_nothing() -> None:
    assert judged(None, check_mode=True).remedy == "Run stage host again, without --check."


def test_no_limit_is_warned_of_and_must_be_none_in_the_pod() -> None:
    memlock = Memlock("containerd", unlimited=True, proof_mib=64)
    (limit,) = [item for item in host.check(intent(memlock), host.Facts(("a",))) if item.check == "host.memlock_limit"]
    assert limit.status == "warn" and "kubelet" in limit.why
    assert judged(changed(soft=-1), memlock).status == "pass"
    assert judged(changed(soft=8 << 30), memlock).status == "fail"


def test_without_an_rdma_fabric_or_a_node_nothing_is_a_pass() -> None:
    plain = dataclasses.replace(FABRIC, profile="sriov_ethernet", rdma=False)
    assert [item.check for item in host.check(intent(fabric=plain), host.Facts(("a",))) if item.status != "pass"] == [
        "host.containerd",
        "host.memlock",
    ]
    assert [item.status for item in host.check(intent(), host.Facts())] == ["pass", "unknown"]


READY = ClusterPolicies(("gpu-cluster-policy",), "ready", True)


@pytest.mark.parametrize(
    ("policies", "check_mode", "status", "words"),
    [
        (READY, False, "pass", ""),
        (None, False, "unknown", "the module cluster_policy did not run"),
        (ClusterPolicies(error="may not list clusterpolicies"), False, "unknown", "may not list"),
        (dataclasses.replace(READY, rdma=False, error="conflict with helm"), False, "fail", "conflict with helm"),
        (ClusterPolicies(), False, "fail", "installs nothing"),
        (ClusterPolicies(("a", "b"), "ready", True), False, "fail", "ignores the others: a, b"),
        (dataclasses.replace(READY, state="notReady"), False, "unknown", "The GPU operator has not finished"),
        (dataclasses.replace(READY, changed=True), False, "unknown", "has just set driver.rdma.enabled: true"),
        (dataclasses.replace(READY, changed=True), True, "unknown", "Check mode"),
    ],
)
def test_peermem_needs_one_cluster_policy_that_is_ready(
    policies: typing.Any, check_mode: bool, status: str, words: str
) -> None:
    found = host.check(intent(None, gpudirect="peermem"), host.Facts(("a",), policies=policies, check_mode=check_mode))[
        0
    ]
    assert (found.check, found.status) == ("host.cluster_policy", status) and words in found.why


@pytest.mark.parametrize(
    ("needs", "path"),
    [
        (HostNeeds(Memlock("containerd")), "memlock"),
        (HostNeeds(Memlock("containerd", 8, True)), "memlock"),
        (HostNeeds(Memlock("containerd", 0)), "memlock.limit_gib"),
        (HostNeeds(Memlock("containerd", 1, proof_mib=1025)), "memlock.proof_mib"),
        (HostNeeds(Memlock("containerd", 64, proof_mib=2048)), "memlock.proof_mib"),
        (HostNeeds(Memlock("containerd", 64, ulimits=("nofile=1:1",))), "memlock.ulimits"),
        *(
            (HostNeeds(Memlock("machine_config", 64, ulimits=(entry,))), "memlock.ulimits")
            for entry in ("", "nofile", "nofile=1:2:3", "memlock=1:1", "nofile=1\n", 'nofile=1", "x=1')
        ),
        (HostNeeds(machine_role="Worker"), "machine_role"),
        (HostNeeds(kernel_arguments=("iommu=pt intel_iommu=on",)), "kernel_arguments[0]"),
        (HostNeeds(kubelet=Kubelet()), "kubelet"),
        (HostNeeds(kubelet=Kubelet(pool_labels={"a": "b"})), "kubelet"),
        (HostNeeds(kubelet=Kubelet(topology_manager_scope="pod")), "kubelet.topology_manager_scope"),
        (HostNeeds(kubelet=Kubelet("none", "pod")), "kubelet.topology_manager_scope"),
        *(
            (HostNeeds(kubelet=Kubelet(reserved_system_cpus=cpus)), "kubelet.reserved_system_cpus")
            for cpus in ("", "1-0", "0, 1", "a", "0-", "0\n", "\u0663")
        ),
    ],
)
def test_needs_that_cannot_be_are_refused_with_their_path(needs: HostNeeds, path: str) -> None:
    found = validate.check(Intent((FABRIC,), cluster=ClusterIntent(host=needs)), validate.Facts(("a", "b")))
    assert f"rdma_cluster.host.{path}" in [
        item.subject for item in found if item.check == "validate.host" and item.status == "fail"
    ]


@pytest.mark.parametrize("cpus", ["0", "0-1,32", "5,0-3,7-7"])
def test_lists_of_cpus_that_the_kubelet_takes(cpus: str) -> None:
    needs = HostNeeds(kubelet=Kubelet("single-numa-node", "pod", "static", cpus))
    found = validate.check(Intent((FABRIC,), cluster=ClusterIntent(host=needs)), validate.Facts(("a", "b")))
    assert [item.status for item in found if item.check == "validate.host"] == ["pass"]


# GPUDirect


def told(way: typing.Any, gpu: typing.Optional[GpuDriver], kernel: str = "5.14.0-427.13.1.el9_4.x86_64") -> Finding:
    (found,) = gpudirect.check("a", HostNeeds(gpudirect=way), ObservedPlatform(NodePlatform(kernel, "x86_64", gpu=gpu)))
    return found


@pytest.mark.parametrize(
    ("way", "built", "status", "words"),
    [
        ("dma_buf", "on", "pass", ""),
        ("dma_buf", "off", "unknown", "built without CONFIG_PCI_P2PDMA"),
        # nvidia_peermem is loaded, and the intent does not ask for it
        ("dma_buf", "peermem", "unknown", "built without CONFIG_PCI_P2PDMA"),
        ("auto", "off", "unknown", "built without CONFIG_PCI_P2PDMA"),
        ("peermem", "off", "fail", "nvidia_peermem is not loaded"),
    ],
)
def test_dma_buf_needs_a_kernel_with_p2pdma(way: typing.Any, built: str, status: str, words: str) -> None:
    tunings = {"a": ObservedTuning(NodeTuning({"p2pdma": (RowReading(built),)}))}
    platforms = {"a": ObservedPlatform(NodePlatform("6.12.45", "x86_64", gpu=OPEN))}
    found = host.check(intent(None, gpudirect=way), host.Facts(("a",), platforms=platforms, tunings=tunings))
    (item,) = [item for item in found if item.check == "host.gpudirect"]
    assert item.status == status and words in item.why
    assert ("CONFIG_PCI_P2PDMA=y" in item.remedy) is (status == "unknown")


@pytest.mark.parametrize(
    ("drivers", "status"),
    [
        # the last NIC is of no fabric
        (("bnxt_en", "bnxt_en", "mlx5_core"), "unknown"),
        (("mlx5_core", "mlx5_core", "bnxt_en"), "pass"),
        # each NIC of a fabric needs one, and here one of them has none that is known
        (("mlx5_core", "qede", "mlx5_core"), "unknown"),
        (("mlx5_core", "bnxt_en", "mlx5_core"), "unknown"),
        (("mlx5_core", "vfio-pci", "mlx5_core"), "pass"),
    ],
)
def test_the_driver_of_a_nic_of_no_fabric_does_not_count(drivers: tuple[str, ...], status: str) -> None:
    fabric = dataclasses.replace(
        FABRIC, profile="sriov_ethernet", select=Select(2, pci=("0000:10:00.0", "0000:11:00.0"))
    )
    addresses = [f"0000:1{place}:00.0" for place in range(len(drivers))]
    hcas = tuple(
        Hca(f"nic{place}", rdma_device=f"rdma{place}", pci=PciFunction(address, "15b3", "1021", "0200", driver=driver))
        for place, (address, driver) in enumerate(zip(addresses, drivers))
    )
    evidence = tuple(PciEvidence(address, driver, 8, 0, 1, None) for address, driver in zip(addresses, drivers))
    node = ObservedPlatform(NodePlatform("5.15.0-122-generic", "x86_64", functions=evidence, gpu=OPEN))
    for seen, expected in ((ObservedHcas(NodeHcas(hcas)), status), (ObservedHcas(error="not read"), "pass")):
        facts = host.Facts(("a",), platforms={"a": node}, hcas={"a": seen})
        found = host.check(intent(None, fabric, gpudirect="dma_buf"), facts)
        assert [item.status for item in found if item.check == "host.gpudirect"] == [expected]


def test_peermem_replaces_p2pdma_of_the_kernel() -> None:
    node = ObservedPlatform(NodePlatform("6.12.45", "x86_64", gpu=dataclasses.replace(PEERMEM, open=True)))
    off = NodeTuning({"p2pdma": (RowReading("peermem"),)})
    (item,) = gpudirect.check("a", HostNeeds(gpudirect="auto"), node, tuning=off)
    assert (item.status, item.measured.partition(":")[0]) == ("pass", "nvidia-peermem")


@pytest.mark.parametrize("tuning", [None, NodeTuning(), NodeTuning({"p2pdma": ()}, {"p2pdma": "no config.gz"})])
def test_a_kernel_whose_configuration_is_unread_is_judged_by_its_version(tuning: typing.Optional[NodeTuning]) -> None:
    node = ObservedPlatform(NodePlatform("6.12.45", "x86_64", gpu=OPEN))
    (item,) = gpudirect.check("a", HostNeeds(gpudirect="dma_buf"), node, tuning=tuning)
    assert item.status == "pass"


PEERMEM = GpuDriver("535.104.05", False, True, ("nvidia-peermem",), "24.10-1.1.4")


@pytest.mark.parametrize(
    ("drivers", "kernel", "status", "words"),
    [
        (("mlx5_core",), "5.14.0", "pass", "mlx5_core of the kernel"),
        # one NIC without RDMA besides
        (("ice", "mlx5_core"), "5.14.0", "pass", "mlx5_core of the kernel"),
        (("bnxt_en",), "6.8.0", "pass", "NIC driver bnxt_en"),
        (("ionic",), "5.15.0", "pass", "NIC driver ionic"),
        (("bnxt_en",), "5.14.0", "unknown", "NIC driver bnxt_en"),
        (("bnxt_en", "ice"), "6.2.0", "unknown", "NIC driver bnxt_en, ice"),
        (("bnxt_en", "ice"), "6.5.0", "pass", "NIC driver bnxt_en, ice"),
        # a driver of which nothing is known, and none
        (("qede", None), "6.18.0", "unknown", "NIC driver qede"),
        (("vfio-pci", None), "5.14.0", "pass", "mlx5_core of the kernel"),
        (("qede", "bnxt_en"), "6.8.0", "pass", "NIC driver bnxt_en, qede"),
    ],
)
@pytest.mark.parametrize("way", ["auto", "dma_buf"])
def test_dma_buf_needs_a_nic_driver_that_registers_it(
    way: typing.Any, drivers: tuple[typing.Optional[str], ...], kernel: str, status: str, words: str
) -> None:
    functions = tuple(PciEvidence(f"0000:{place}c:00.0", driver) for place, driver in enumerate(drivers))
    seen = ObservedPlatform(NodePlatform(kernel, "x86_64", functions=functions, gpu=OPEN))
    (found,) = gpudirect.check("a", HostNeeds(gpudirect=way), seen)
    assert (found.status, words in found.measured) == (status, True)
    assert status == "pass" or "grep reg_user_mr_dmabuf /proc/kallsyms" in found.remedy


def test_driver_of_unknown_version_is_not_proven_to_export_gpu_memory() -> None:
    seen = ObservedPlatform(NodePlatform("6.12.45", "x86_64", gpu=dataclasses.replace(OPEN, version=None)))
    (found,) = gpudirect.check("a", HostNeeds(gpudirect="dma_buf"), seen)
    assert found.status == "unknown" and "version of the driver is unknown" in found.why


def test_what_one_way_surely_lacks_makes_no_failure_of_the_other_that_is_unknown() -> None:
    """With ``auto`` one way is enough; for one way a sure lack decides, whatever else is unknown of it."""
    assert told("auto", dataclasses.replace(OPEN, open=None), "6.8.0").status == "unknown"
    assert told("dma_buf", dataclasses.replace(OPEN, open=False), "unknown").status == "fail"


def test_a_cluster_policy_that_leaves_the_driver_to_other_objects_is_not_the_place_to_set_it() -> None:
    for found in (told("peermem", OPEN), told("dma_buf", PEERMEM)):
        assert "ClusterPolicy of the GPU operator" in found.remedy
        assert "useNvidiaDriverCRD: true" in found.remedy and "below spec of each NVIDIADriver instead" in found.remedy
        assert found.remedy.endswith("(kubectl get nvidiadrivers). Then run stages platform and host again.")
    # a kernel is of the node
    assert "NVIDIADriver" not in told("dma_buf", OPEN, "4.18.0-553.el8").remedy


@pytest.mark.parametrize(
    ("way", "gpu", "kernel", "status", "words"),
    [
        (
            "auto",
            OPEN,
            "6.8.0-45-generic",
            "pass",
            ("DMA-BUF: driver 570.86.15 (open kernel modules), kernel 6.8.0-45-generic, mlx5_core of the kernel"),
        ),
        (
            "auto",
            PEERMEM,
            "5.4.0",
            "pass",
            (
                "nvidia-peermem: driver 535.104.05 (proprietary kernel modules), kernel 5.4.0, mlx5_core 24.10-1.1.4 of"
                " OFED"
            ),
        ),
        ("dma_buf", PEERMEM, "6.8.0", "fail", "proprietary"),
        ("dma_buf", OPEN, "4.18.0-553.el8", "fail", "older than 5.12"),
        ("dma_buf", dataclasses.replace(OPEN, version="510.47.03"), "6.8.0", "fail", "older than 515"),
        (
            "dma_buf",
            dataclasses.replace(OPEN, open=None),
            "6.8.0",
            "unknown",
            "whether the driver uses the open kernel modules is unknown",
        ),
        ("dma_buf", OPEN, "unknown", "unknown", "the version of the kernel is unknown"),
        ("peermem", OPEN, "6.8.0", "fail", "the module nvidia_peermem is not loaded"),
        (
            "peermem",
            dataclasses.replace(PEERMEM, peer_clients=()),
            "6.8.0",
            "fail",
            "not registered with the RDMA core",
        ),
        ("auto", None, "6.8.0", "unknown", "nvidia is not loaded"),
    ],
)
def test_gpudirect_is_told_from_kernel_and_driver(
    way: str, gpu: typing.Optional[GpuDriver], kernel: str, status: str, words: str
) -> None:
    found = told(way, gpu, kernel)
    assert found.status == status and words in (found.measured if status == "pass" else found.why)


def test_a_cluster_policy_that_waits_for_a_foreign_node_is_a_warning_where_ours_are_proven() -> None:
    policies = ClusterPolicies(("gpu",), "notReady", True)
    for driver, state, status in (
        (PEERMEM, "notReady", "warn"),
        (OPEN, "notReady", "unknown"),
        (PEERMEM, "", "unknown"),
        (PEERMEM, "ignored", "unknown"),
    ):
        platforms = {"a": ObservedPlatform(NodePlatform("5.14.0", "x86_64", gpu=driver))}
        facts = host.Facts(("a",), policies=dataclasses.replace(policies, state=state), platforms=platforms)
        assert host.check(intent(None, gpudirect="peermem"), facts)[0].status == status
    assert host.check(intent(None, gpudirect="peermem"), host.Facts((), policies=policies))[0].status == "unknown"


def test_the_remedy_names_the_one_cluster_policy() -> None:
    assert "in the ClusterPolicy" in told("peermem", OPEN).remedy
    assert gpudirect.check("a", HostNeeds(), ObservedPlatform(error="unreachable")) == ()


def test_each_node_is_looked_at_and_one_that_gives_no_answer_is_unknown() -> None:
    seen = {
        "a": ObservedPlatform(NodePlatform("6.8.0", "x86_64", gpu=OPEN)),
        "b": ObservedPlatform(error="unreachable: no route"),
    }
    found = host.check(intent(None, gpudirect="auto"), host.Facts(("a", "b", "c"), platforms=seen))
    assert [(item.subject, item.status) for item in found if item.check == "host.gpudirect"] == [
        ("a", "pass"),
        ("b", "unknown"),
        ("c", "unknown"),
    ]


# Whom a finding accuses, and the edges


def accused(found: typing.Iterable[Finding], check: str) -> list[tuple[str, str]]:
    """Subject and status of each finding of a check."""
    return [(item.subject, item.status) for item in found if item.check == check]


@pytest.mark.parametrize(
    ("proof", "status"),
    [
        (PROOF, "pass"),
        (None, "unknown"),
        (changed(user=None), "unknown"),
        (changed(user=0), "unknown"),
        (changed(registered=0), "fail"),
        (changed(soft=1 << 30), "fail"),
        # no memory at all may be locked; a device may still have registered some by other means
        (changed(soft=0), "fail"),
        (changed(registered=1 << 20), "unknown"),
        (changed(error="the pod was deleted"), "unknown"),
        (changed(soft=None), "unknown"),
    ],
)
def test_a_proof_is_told_of_its_fabric_and_node(proof: typing.Optional[MemlockProof], status: str) -> None:
    found = host.check(intent(), host.Facts(("a",), (proof,) if proof else ()))
    assert accused(found, "host.memlock") == [("compute a", status)]
    assert accused(found, "host.memlock_limit") == [("rdma_cluster.host.memlock", "pass")]


def test_no_limit_is_told_of_the_key_and_a_proof_of_another_node_is_none() -> None:
    found = host.check(
        intent(Memlock("machine_config", unlimited=True)),
        host.Facts(("a", "b"), (changed(soft=-1, registered=1 << 40),)),
    )
    assert accused(found, "host.memlock_limit") == [("rdma_cluster.host.memlock", "warn")]
    assert accused(found, "host.memlock") == [("compute a", "pass"), ("compute b", "unknown")]


def test_a_fabric_without_rdma_proves_nothing_and_is_not_asked() -> None:
    plain = dataclasses.replace(FABRIC, name="plain", profile="sriov_ethernet", rdma=False)
    assert accused(host.check(intent(fabric=plain), host.Facts(("a",))), "host.memlock") == [("fabrics", "unknown")]
    both = dataclasses.replace(intent(), fabrics=(plain, FABRIC))
    assert accused(host.check(both, host.Facts(("a",), (PROOF,))), "host.memlock") == [("compute a", "pass")]


@pytest.mark.parametrize(
    ("seen", "check_mode", "status"),
    [
        (ObservedText("8589934592"), False, "pass"),
        (ObservedText("8388608"), False, "fail"),
        (ObservedText("8388608"), True, "unknown"),
        (ObservedText(error="job failed"), False, "unknown"),
        # what was read before the restart failed
        (ObservedText("8589934592", "job failed"), False, "unknown"),
    ],
)
def test_containerd_is_told_of_its_node(seen: ObservedText, check_mode: bool, status: str) -> None:
    found = host.check(intent(), host.Facts(("a",), check_mode=check_mode, runtimes={"a": seen}))
    assert accused(found, "host.containerd") == [("a", status)]


@pytest.mark.parametrize(
    ("policies", "check_mode", "subject", "status"),
    [
        (READY, False, "ClusterPolicy gpu-cluster-policy", "pass"),
        (dataclasses.replace(READY, rdma=False), False, "ClusterPolicy gpu-cluster-policy", "fail"),
        (dataclasses.replace(READY, error="conflict"), False, "ClusterPolicy gpu-cluster-policy", "fail"),
        (dataclasses.replace(READY, changed=True), True, "ClusterPolicy gpu-cluster-policy", "unknown"),
        (dataclasses.replace(READY, changed=True), False, "ClusterPolicy gpu-cluster-policy", "unknown"),
        (dataclasses.replace(READY, state="notReady"), False, "ClusterPolicy gpu-cluster-policy", "warn"),
        (
            dataclasses.replace(READY, state="notReady", rdma=False),
            False,
            "ClusterPolicy gpu-cluster-policy",
            "unknown",
        ),
        (ClusterPolicies(("a", "b"), "ready", True), False, "ClusterPolicy", "fail"),
        (ClusterPolicies(), False, "ClusterPolicy", "fail"),
        (ClusterPolicies(error="forbidden"), False, "ClusterPolicy", "unknown"),
    ],
)
def test_a_cluster_policy_is_told_of_by_its_name(
    policies: ClusterPolicies, check_mode: bool, subject: str, status: str
) -> None:
    platforms = {"a": ObservedPlatform(NodePlatform("5.14.0", "x86_64", gpu=PEERMEM))}
    facts = host.Facts(("a",), policies=policies, platforms=platforms, check_mode=check_mode)
    assert accused(host.check(intent(None, gpudirect="peermem"), facts), "host.cluster_policy") == [(subject, status)]


@pytest.mark.parametrize(
    ("way", "gpu", "kernel", "status"),
    [
        ("dma_buf", OPEN, "5.12.0", "pass"),
        ("dma_buf", OPEN, "5.11.22", "fail"),
        ("dma_buf", dataclasses.replace(OPEN, version="515.0"), "6.8.0", "pass"),
        ("dma_buf", dataclasses.replace(OPEN, version="514.99"), "6.8.0", "fail"),
        ("dma_buf", dataclasses.replace(OPEN, open=None), "6.8.0", "unknown"),
        ("peermem", dataclasses.replace(PEERMEM, peer_clients=("nv_mem",)), "5.4.0", "pass"),
        ("peermem", dataclasses.replace(PEERMEM, peer_clients=("amdkfd",)), "5.4.0", "fail"),
        ("auto", None, "6.8.0", "unknown"),
    ],
)
def test_gpudirect_is_told_of_its_node_and_begins_with_a_version(
    way: str, gpu: typing.Optional[GpuDriver], kernel: str, status: str
) -> None:
    found = told(way, gpu, kernel)
    assert (found.subject, found.status) == ("a", status)


def test_gpudirect_of_a_rolled_node_is_what_it_shows_after_the_roll() -> None:
    right = ObservedPlatform(NodePlatform("6.12.45", "x86_64", gpu=OPEN))
    wrong = ObservedPlatform(NodePlatform("6.12.45", "x86_64", gpu=dataclasses.replace(OPEN, open=False)))
    off = {"a": ObservedTuning(NodeTuning({"p2pdma": (RowReading("off"),)}))}

    def judge(before: ObservedPlatform, **after: typing.Any) -> str:
        facts = host.Facts(("a",), platforms={"a": before}, plan=PLAN, rolls=(ROLL,), **after)
        found = host.check(intent(None, gpudirect="dma_buf"), facts)
        return next(item.status for item in found if item.check == "host.gpudirect")

    assert judge(wrong, platforms_after_roll={"a": right}) == "pass"
    assert judge(wrong, platforms_after_roll={"a": right}, tunings=off) == "pass"
    assert judge(right, platforms_after_roll={"a": right}, tunings_after_roll=off) == "unknown"
    assert judge(right, platforms_after_roll={"a": wrong}) == "fail"
    assert judge(right) == "unknown"


def test_an_answer_beside_an_error_says_nothing_of_gpudirect() -> None:
    observed = ObservedPlatform(NodePlatform("6.8.0", "x86_64", gpu=OPEN), "the module was killed")
    assert [item.status for item in gpudirect.check("a", HostNeeds(gpudirect="auto"), observed)] == ["unknown"]


ARGUMENTS = ("iommu=pt", "intel_iommu=on")
MACHINE_CONFIG = AppliedObject("MachineConfig", "99-worker-linerate-kernel-arguments", action="created")
UNCHANGED = dataclasses.replace(MACHINE_CONFIG, action="unchanged")
PLAN = DisruptionPlan((NodePlan("a", "reboot", rolled_by="worker"),))
ROLL = Roll("worker", 1, "rendered-worker-2", 3, 3, 300.0)


def arguments_of(given: host.Facts) -> Finding:
    found = host.check(intent(None, kernel_arguments=ARGUMENTS), given)
    (only,) = [item for item in found if item.check == "host.kernel_arguments"]
    return only


def node(*arguments: str) -> ObservedPlatform:
    return ObservedPlatform(NodePlatform("6.12.95", "x86_64", kernel_arguments=arguments))


def test_number_of_huge_pages_behind_another_size_is_not_that_of_the_intent() -> None:
    wanted = intent(None, kernel_arguments=("hugepagesz=1G", "hugepages=16"))

    def judge(*arguments: str) -> Finding:
        found = host.check(wanted, host.Facts(nodes=("a",), platforms={"a": node(*arguments)}))
        return next(item for item in found if item.check == "host.kernel_arguments")

    assert judge("hugepagesz=2M", "hugepages=8", "hugepagesz=1G", "hugepages=16").status == "pass"
    torn = judge("hugepagesz=1G", "hugepages=4", "hugepagesz=2M", "hugepages=16")
    assert (torn.status, torn.measured) == (
        "fail",
        "kernel command line with hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=16",
    )
    assert "in an order in which they mean something else" in torn.why


def test_a_later_argument_of_the_same_name_may_undo_one_of_the_intent() -> None:
    assert find_overridden(("mitigations=off",), ("mitigations=off", "mitigations=auto")).doubtful == (
        "mitigations=auto",
    )
    assert find_overridden(("pci=realloc",), ("pci=realloc", "pci=noaer")) == Overridden()
    assert find_overridden(("quiet",), ("quiet", "quiet")) == Overridden()


@pytest.mark.parametrize(
    ("wanted", "later"),
    [
        (("pci=realloc",), "pci=realloc=off"),
        (("pci=realloc=off",), "pci=realloc"),
        (("pci=noaer,realloc",), "pci=realloc=off"),
        (("pci=disable_acs_redir=pci:0:0",), "pci=disable_acs_redir=pci:8086:1234"),
        (("iommu=pt",), "iommu.passthrough=0"),
        (("iommu=pt",), "iommu=nopt"),
        (("iommu=pt",), "iommu=off"),
        (("iommu.passthrough=1",), "iommu=force,nopt"),
        (("intel_iommu=on",), "intel_iommu=off,sm_on"),
        (("intel_iommu=on",), "iommu=off"),
    ],
)
def test_a_later_option_with_another_value_undoes_that_of_the_intent(wanted: tuple[str, ...], later: str) -> None:
    assert find_overridden(wanted, (*wanted, later)).undone == (later,)
    assert find_overridden(wanted, (later, *wanted)) == Overridden()


@pytest.mark.parametrize(
    ("wanted", "later"),
    [
        (("pci=realloc",), "pci=noaer,realloc=on"),
        (("pci=realloc", "pci=noaer"), "pci=nocrs"),
        (("iommu=pt",), "iommu=force"),
        (("iommu=pt",), "iommu.passthrough=1"),
        (("intel_iommu=on",), "intel_iommu=sm_off"),
        (("hugepagesz=1G", "hugepages=16"), "hugepagesz=2M"),
    ],
)
def test_a_later_option_of_another_setting_undoes_nothing(wanted: tuple[str, ...], later: str) -> None:
    assert find_overridden(wanted, (*wanted, later)) == Overridden()


@pytest.mark.parametrize(
    ("seen", "applied", "status", "measured", "why"),
    [
        (node(*ARGUMENTS, "quiet"), (), "pass", "booted with all of them", ""),
        (node("intel_iommu=off", *ARGUMENTS), (), "pass", "booted with all of them", ""),
        (node(*ARGUMENTS, "intel_iommu=sm_on", "iommu=pt"), (), "pass", "booted with all of them", ""),
        (
            node(*ARGUMENTS, "intel_iommu=off"),
            (),
            "fail",
            "kernel command line with intel_iommu=off after them",
            "the kernel uses the last one",
        ),
        (node("intel_iommu=on", "--", "iommu=pt"), (), "fail", "kernel command line without iommu=pt", ""),
        (
            node("iommu=pt"),
            (),
            "fail",
            "kernel command line without intel_iommu=on",
            "The kernel of the node was booted without intel_iommu=on, and this run applied",
        ),
        (
            node("iommu=pt"),
            (MACHINE_CONFIG,),
            "fail",
            "kernel command line without intel_iommu=on",
            "although its MachineConfigPool has given it a new configuration in this run",
        ),
        (
            node("iommu=pt"),
            (dataclasses.replace(MACHINE_CONFIG, action="refused"),),
            "fail",
            "kernel command line without intel_iommu=on",
            "applied no MachineConfig",
        ),
        (
            node("iommu=pt"),
            (dataclasses.replace(MACHINE_CONFIG, name="99-worker-linerate-memlock"),),
            "fail",
            "kernel command line without intel_iommu=on",
            "",
        ),
        (ObservedPlatform(error="ssh: timeout"), (), "unknown", "kernel command line not read", "ssh: timeout"),
        (
            ObservedPlatform(NodePlatform("6.12.95", "x86_64")),
            (),
            "unknown",
            "kernel command line not read",
            "the module node_info returned none",
        ),
    ],
)
def test_kernel_arguments_are_those_that_the_node_runs_with_or_a_machine_config_brings(
    seen: ObservedPlatform, applied: typing.Any, status: str, measured: str, why: str
) -> None:
    given = host.Facts(("a",), platforms={"a": node()}, applied=applied, plan=PLAN, rolls=(ROLL,))
    given = dataclasses.replace(given, platforms_after_roll={"a": seen})
    found = arguments_of(given)
    assert (found.subject, found.status, found.measured, found.expected) == (
        "a",
        status,
        measured,
        "kernel command line with iommu=pt intel_iommu=on",
    )
    assert why in (found.why or "") and ("platform_settle=true" in (found.remedy or "")) == (
        status == "fail" and "after them" not in measured and applied != (MACHINE_CONFIG,)
    )
    assert "host.kernel_arguments" not in {item.check for item in host.check(intent(None), given)}


@pytest.mark.parametrize("applied", [MACHINE_CONFIG, UNCHANGED], ids=["created", "unchanged"])
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "pass"),
        ({"rolls": ()}, "fail"),
        ({"rolls": (dataclasses.replace(ROLL, rolls=0),)}, "fail"),
        ({"rolls": (dataclasses.replace(ROLL, updated=2),)}, "fail"),
        ({"rolls": (dataclasses.replace(ROLL, updated=2, others=("b",)),)}, "pass"),
        ({"rolls": (dataclasses.replace(ROLL, error="the pool is paused"),)}, "fail"),
        ({"rolls": (dataclasses.replace(ROLL, pool="infra"),)}, "fail"),
        ({"plan": DisruptionPlan((NodePlan("a", "configure"),))}, "fail"),
        ({"plan": DisruptionPlan((NodePlan("b", "reboot", rolled_by="worker"),))}, "fail"),
        ({"plan": None}, "fail"),
        # what was read before the roll counts no more
        ({"platforms_after_roll": {}}, "unknown"),
        ({"platforms_after_roll": {}, "platforms": {"a": node(*ARGUMENTS)}}, "unknown"),
        ({"platforms_after_roll": {"a": ObservedPlatform(error="ssh: timeout")}}, "unknown"),
        ({"rolls": (), "platforms": {"a": ObservedPlatform(error="ssh: timeout")}}, "unknown"),
    ],
)
def test_a_machine_config_counts_where_this_run_has_seen_it_reach_the_node(
    applied: AppliedObject, changes: dict[str, typing.Any], status: str
) -> None:
    """The second run over a pool that somebody paused finds the object unchanged, and the node as it was."""
    given = host.Facts(("a",), platforms={"a": node("iommu=pt")}, applied=(applied,), plan=PLAN, rolls=(ROLL,))
    given = dataclasses.replace(given, platforms_after_roll={"a": node(*ARGUMENTS)})
    found = arguments_of(dataclasses.replace(given, **changes))
    assert found.status == status
    assert status != "fail" or ("paused" in found.why and "machineconfigpools" in found.remedy)


WISH = Kubelet("single-numa-node", "pod", cpu_manager_policy="static", reserved_system_cpus="0-3")


def tuning_of(values: typing.Mapping[str, str], unread: typing.Optional[dict[str, str]] = None) -> ObservedTuning:
    """The tuning of a node that has these values, and else those of the intent."""
    rows = {
        "topology_manager": "single-numa-node",
        "topology_scope": "pod",
        "cpu_manager": "static",
        "reserved_cpus": "0,1-3",
        **values,
    }
    return ObservedTuning(NodeTuning({row: (RowReading(value),) for row, value in rows.items() if value}, unread or {}))


def of_kubelet(
    values: typing.Mapping[str, str], unread: typing.Optional[dict[str, str]] = None, **facts: typing.Any
) -> list[Finding]:
    """What is said of the kubelet of a node, whose tuning has these values and those of the intent."""
    given = host.Facts(("a",), **{"tunings": {"a": tuning_of(values, unread)}, **facts})
    return [item for item in host.check(intent(kubelet=WISH), given) if item.check == "host.kubelet"]


@pytest.mark.parametrize(
    ("values", "measured"),
    [
        ({"topology_manager": "best-effort"}, "topology_manager_policy best-effort"),
        ({"topology_scope": "container"}, "topology_manager_scope container"),
        ({"cpu_manager": "none"}, "cpu_manager_policy none"),
        ({"reserved_cpus": "none"}, "reserved_system_cpus none"),
        ({"reserved_cpus": "0-4", "cpu_manager": "none"}, "cpu_manager_policy none, reserved_system_cpus 0-4"),
    ],
)
def test_a_kubelet_that_runs_otherwise_than_the_intent_asks_fails(
    values: typing.Mapping[str, str], measured: str
) -> None:
    """The KubeletConfig is accepted and its pool reached it, as the finding network.kubelet says."""
    (found,) = of_kubelet(values)
    assert (found.subject, found.status, found.measured) == ("a", "fail", measured)
    intended = (
        "topology_manager_policy single-numa-node",
        "topology_manager_scope pod",
        "cpu_manager_policy static",
        "reserved_system_cpus 0-3",
    )
    wanted = ", ".join(text for text in intended if text.partition(" ")[0] in measured)
    assert found.expected == wanted, "the settings that were measured"
    assert "a drop-in, a flag" in found.why and "systemctl cat kubelet on a" in found.remedy
    # what was read before the roll counts no more: the roll may have changed it, for better or worse
    (unread,) = of_kubelet(values, plan=PLAN, rolls=(ROLL,))
    assert (unread.subject, unread.status, unread.measured) == ("a", "unknown", "not read")
    assert "after its MachineConfigPool rolled it" in unread.why and "did not read the kubelet again" in unread.why
    right, wrong = tuning_of({}), tuning_of(values)
    for before in (right, wrong):
        rolled: dict[str, typing.Any] = {"plan": PLAN, "rolls": (ROLL,), "tunings": {"a": before}}
        assert of_kubelet({}, **rolled, tunings_after_roll={"a": wrong}) == [found]
        assert [item.status for item in of_kubelet({}, **rolled, tunings_after_roll={"a": right})] == ["pass"]
        failed = ObservedTuning(error="failed: no answer")
        (unread,) = of_kubelet({}, **rolled, tunings_after_roll={"a": failed})
        assert unread.status == "unknown" and "no answer" in unread.why
    (found,) = of_kubelet(values, plan=PLAN, rolls=(dataclasses.replace(ROLL, rolls=0),))
    assert found.status == "fail"


def test_a_kubelet_that_runs_as_the_intent_asks_passes() -> None:
    assert [item.status for item in of_kubelet({})] == ["pass"]
    no_rule = host.check(intent(kubelet=Kubelet(pool_labels={"a": "b"})), host.Facts(("a",)))
    assert "host.kubelet" not in {item.check for item in (*no_rule, *host.check(intent(), host.Facts(("a",))))}


@pytest.mark.parametrize("rolled", [False, True], ids=["settled", "rolled"])
@pytest.mark.parametrize(
    ("values", "unread", "facts", "why"),
    [
        ({"topology_manager": ""}, {}, {}, "the node shows no such value"),
        ({}, {"reserved_cpus": "the command line of the kubelet was not found"}, {}, "command line of the kubelet"),
        ({}, {}, {"tunings": {"a": ObservedTuning(error="ssh: timeout")}}, "ssh: timeout"),
        ({}, {}, {"tunings": {}}, "--limit"),
    ],
)
def test_a_kubelet_that_was_not_read_is_unknown(
    values: typing.Mapping[str, str],
    unread: dict[str, str],
    facts: dict[str, typing.Any],
    why: str,
    rolled: bool,
) -> None:
    if rolled:
        after = facts.get("tunings", {"a": tuning_of(values, unread)})
        facts = {"plan": PLAN, "rolls": (ROLL,), "tunings_after_roll": after}
        why = why.replace("--limit", "did not read the kubelet again")
        values, unread = {}, {}
    (found,) = of_kubelet(values, unread, **facts)
    assert (found.subject, found.status) == ("a", "unknown") and why in f"{found.why} {found.remedy}"


def test_a_dry_run_plans_the_machine_config_that_it_would_make() -> None:
    given = host.Facts(("a",), platforms={"a": node("iommu=pt")}, applied=(MACHINE_CONFIG,), check_mode=True)
    assert arguments_of(given).status == "pass"
    assert arguments_of(dataclasses.replace(given, applied=(UNCHANGED,))).status == "fail"


@pytest.mark.parametrize(
    ("gpu", "kernel", "step", "other"),
    [
        (dataclasses.replace(OPEN, version="510.47.03"), "6.8.0", "spec.driver.version", "kernelModuleType"),
        (OPEN, "4.18.0-553.el8", "kernel 5.12 or newer", "kernelModuleType"),
        (PEERMEM, "6.8.0", "kernelModuleType: open", "spec.driver.version"),
    ],
)
def test_remedy_for_dma_buf_mends_the_requirement_that_is_not_met(
    gpu: GpuDriver, kernel: str, step: str, other: str
) -> None:
    found = told("dma_buf", gpu, kernel)
    assert step in found.remedy and other not in found.remedy and found.measured.startswith("not available; driver")


def test_remedy_for_peermem_that_is_not_registered_is_the_driver_of_the_nic() -> None:
    without = dataclasses.replace(PEERMEM, peer_clients=())
    found = told("peermem", dataclasses.replace(without, ofed=None))
    assert "install DOCA-OFED" in found.remedy and "spec.driver.rdma.enabled" not in found.remedy
    assert "NVIDIADriver" not in found.remedy
    assert "the NIC driver is that of the kernel" in found.why
    found = told("peermem", dataclasses.replace(without, ofed="24.10"))
    assert "install DOCA-OFED" not in found.remedy and "drain the node and delete its driver pod" in found.remedy
    assert "was built or loaded before this NIC driver" in found.why
