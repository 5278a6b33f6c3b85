# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage tuning: faults by name, advice that does not close the gate, what the intent says that does, and one node of
many that is unlike the others."""

from __future__ import annotations

import dataclasses
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.tuning.absent import explain_absent
from ansible_collections.linerate.rdma.plugins.module_utils._check.tuning.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.tuning.others import drop_unused_hcas
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import tuning as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    Roce,
    RowReading,
    Tuning,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.row import TuningRow
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
    Waiver,
    judge,
)
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import FEW, PAIR, ROCE, Shape, healthy

MANY = Shape("1,000 nodes", 1000, 1)
THREE = Shape("3 nodes", 3, 2)
#: ClusterUUID of the GPUs of a healthy fleet
DOMAIN = "7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8"
GPUS = ("0000:18:00.0", "0000:2a:00.0")
Rows = typing.Mapping[str, tuple[RowReading, ...]]


def shows(value: str, *where: str) -> tuple[RowReading, ...]:
    return (RowReading(value, where),)


def judged(
    shape: Shape,
    changes: typing.Mapping[str, Rows],
    unread: typing.Optional[typing.Mapping[str, str]] = None,
    intent: typing.Optional[Intent] = None,
) -> list[Finding]:
    """What is not a pass, of a healthy fleet in which some nodes show something else.

    :param changes: rows by node
    :param unread: why a row of the nodes in ``changes`` is unread
    """
    fleet, unread = healthy(shape), unread or {}
    facts: Facts = fleet.of("tuning")
    tunings = dict(facts.tunings)
    for name, rows in changes.items():
        value = tunings[name].value
        assert value is not None
        tunings[name] = ObservedTuning(
            NodeTuning({row: shown for row, shown in {**value.rows, **rows}.items() if row not in unread}, dict(unread))
        )
    return [
        finding
        for finding in check(intent or fleet.intent, dataclasses.replace(facts, tunings=tunings))
        if finding.status != PASS
    ]


def with_tuning(shape: Shape, **given: typing.Any) -> Intent:
    intent = healthy(shape).intent
    return dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, tuning=Tuning(**given)))


def with_roce(roce: typing.Optional[Roce]) -> Intent:
    intent = healthy(ROCE).intent
    return dataclasses.replace(
        intent, fabrics=tuple(dataclasses.replace(fabric, roce=roce) for fabric in intent.fabrics)
    )


@pytest.mark.parametrize(
    ("rows", "check_id", "status", "says"),
    [
        (
            {"governor": (RowReading("performance", ("0-254",)), RowReading("powersave", ("255",)))},
            "tuning.cpu",
            WARN,
            "powersave (CPU 255) on node-2",
        ),
        ({"idle_latency": shows("133", "0-255")}, "tuning.cpu", WARN, "133 (CPUs 0-255)"),
        ({"swap_kib": shows("8388604")}, "tuning.memory", WARN, "8388604"),
        ({"numa_balancing": shows("1")}, "tuning.memory", WARN, "1 on node-2"),
        ({"min_free_kbytes": shows("4096")}, "tuning.memory", WARN, "4096"),
        ({"memlock": shows("65536", "containerd")}, "tuning.memory", WARN, "65536 (containerd)"),
        (
            {"acs": (RowReading("direct", ("0000:19:00.0",)), RowReading("redirect", ("0000:19:01.0",)))},
            "tuning.pci",
            WARN,
            "redirect (0000:19:01.0)",
        ),
        ({"max_read_request": shows("512", "mlx5_1")}, "tuning.pci", WARN, "512 (mlx5_1)"),
        ({"gpu_nic_path": shows("SYS", "0000:18:00.0 mlx5_0")}, "tuning.pci", WARN, "SYS"),
        ({"iommu": shows("DMA-FQ", "mlx5_0")}, "tuning.kernel", WARN, "DMA-FQ"),
        ({"kernel_log": shows("Xid 79", "0000:18:00")}, "tuning.kernel", WARN, "Xid 79 (0000:18:00)"),
        (
            {"kernel_log_corrected": shows("PCIe error Corrected", "0000:17:01.0")},
            "tuning.kernel",
            WARN,
            "PCIe error Corrected (0000:17:01.0)",
        ),
        (
            {"gpu_slowed": (RowReading("none", ("0000:18:00.0",)), RowReading("hw_thermal", ("0000:2a:00.0",)))},
            "tuning.gpu",
            FAIL,
            "hw_thermal (0000:2a:00.0)",
        ),
        ({"gpu_ecc": shows("Disabled", "0000:18:00.0")}, "tuning.gpu", WARN, "Disabled"),
        ({"gpu_mig": shows("Enabled", "0000:18:00.0")}, "tuning.gpu", WARN, "Enabled"),
        ({"gpu_fabric": shows("In Progress", *GPUS)}, "tuning.gpu", FAIL, "In Progress (0000:18:00.0"),
        ({"gpu_fabric": shows("Insufficient Resources", *GPUS)}, "tuning.gpu", FAIL, "Insufficient"),
        ({"gpu_fabric_health": shows("Limited Capacity", "0000:18:00.0")}, "tuning.gpu", WARN, "Limited Capacity"),
        ({"cpu_manager": shows("none")}, "tuning.kubelet", WARN, "none"),
        ({"arp_ignore": shows("0", "mlx5_0")}, "tuning.network", WARN, "0 (mlx5_0)"),
        # nothing is expected of these: it is told that the nodes differ
        ({"thp": shows("never")}, "tuning.alike", WARN, "node-2: never"),
        ({"pci_realloc": shows("off")}, "tuning.alike", WARN, "node-2: off"),
        ({"gpu_driver": shows("550.54.15", "0000:18:00.0")}, "tuning.alike", WARN, "node-2: 550.54.15"),
        ({"gpus": shows("7")}, "tuning.alike", WARN, "node-2: 7"),
    ],
)
def test_a_fault_is_named_once(rows: Rows, check_id: str, status: str, says: str) -> None:
    (finding,) = judged(PAIR, {"node-2": rows})
    assert (finding.check, finding.status) == (check_id, status) and says in finding.measured
    (row,) = rows
    assert row in finding.subject and "node-2" in finding.subject


def test_gpus_of_amd_are_judged_without_nvidia_smi() -> None:
    of_nvidia = (
        *("gpu_slowed", "gpu_fabric", "gpu_clique", "gpu_fabric_health", "gpu_persistence", "gpu_ecc", "gpu_mig"),
        "gpu_link_speed",
    )
    nothing: Rows = dict.fromkeys((*of_nvidia, "gpu_driver", "gpu_max_clock", "relaxed_ordering_gpu"), ())
    amd: Rows = {**nothing, "gpu_model": shows("1002:74a1", *GPUS)}
    assert judged(PAIR, {"node-1": amd, "node-2": amd}) == []
    # a node that lost a GPU, and a narrow link
    (lost,) = judged(PAIR, {"node-1": amd, "node-2": {**amd, "gpus": shows("1")}})
    assert (lost.check, lost.status) == ("tuning.alike", WARN) and "node-2: 1" in lost.measured
    narrow = {**amd, "gpu_link_width": (RowReading("x4 of x16", GPUS[:1]), RowReading("full", GPUS[1:]))}
    (link,) = judged(PAIR, {"node-1": amd, "node-2": narrow})
    assert (link.check, link.status) == ("tuning.pci", WARN) and "x4 of x16" in link.measured


def test_a_fault_in_the_kernel_log_has_the_remedy_of_its_cause() -> None:
    (device,) = judged(PAIR, {"node-2": {"kernel_log": shows("Xid 79", "0000:18:00")}})
    assert 0 <= device.remedy.find("Drain the node") < device.remedy.find("reset") < device.remedy.find("reboot")
    (link,) = judged(PAIR, {"node-2": {"kernel_log_corrected": shows("PCIe error Corrected", "0000:17:01.0")}})
    assert "no data was lost" in link.why and "replace" not in link.remedy and "waive" in link.remedy
    # a job that crashed leaves no warning until the next boot
    program: Rows = {"kernel_log_programs": shows("Xid 31", "0000:18:00")}
    assert judged(PAIR, {"node-2": program}) == []
    # but the intent may require a log without it
    (asked,) = judged(PAIR, {"node-2": program}, intent=with_tuning(PAIR, expected={"kernel_log_programs": "none"}))
    assert asked.status == FAIL and "the GPU works" in asked.why and "Compute Sanitizer" in asked.remedy


def onboard(rows: Rows) -> list[Finding]:
    """What is not a pass where each node has a NIC on its board as well, which is of no fabric with RoCE, and the
    intent expects a row of HCAs."""
    fleet = healthy(PAIR)
    facts: Facts = fleet.of("tuning")
    nodes, tunings = dict(facts.nodes), dict(facts.tunings)
    for name in fleet.shape.names:
        hcas, tuning = nodes[name].value, tunings[name].value
        assert hcas is not None and tuning is not None
        (port,) = hcas.hcas[0].ports
        nic = dataclasses.replace(
            hcas.hcas[0],
            name="mlx5_9",
            rdma_device="mlx5_9",
            ports=(dataclasses.replace(port, link_layer="Ethernet", guid=None),),
        )
        nodes[name] = ObservedHcas(dataclasses.replace(hcas, hcas=(*hcas.hcas, nic)))
        tunings[name] = ObservedTuning(dataclasses.replace(tuning, rows={**tuning.rows, **rows}))
    intent = with_tuning(PAIR, expected={"max_read_request": 4096})
    return [
        finding
        for finding in check(intent, dataclasses.replace(facts, nodes=nodes, tunings=tunings))
        if finding.status != PASS
    ]


_HCAS = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3")


def test_a_nic_of_no_fabric_is_not_held_to_what_is_expected_of_hcas() -> None:
    request = {"max_read_request": (RowReading("4096", _HCAS), RowReading("512", ("mlx5_9",)))}
    assert onboard({**request, "relaxed_ordering": (RowReading("on", _HCAS), RowReading("off", ("mlx5_9",)))}) == []
    assert onboard({"max_read_request": (RowReading("4096", (*_HCAS, "mlx5_9")),)}) == []


def test_an_hca_of_a_fabric_is_held_to_it_beside_such_a_nic() -> None:
    found = onboard({"max_read_request": (RowReading("4096", _HCAS[1:]), RowReading("512", ("mlx5_0", "mlx5_9")))})
    assert [(finding.check, finding.status, finding.subject, finding.measured) for finding in found] == [
        ("tuning.pci", FAIL, f"node-{number} max_read_request", "512 (mlx5_0)") for number in (1, 2)
    ]
    # the NIC alone shows the row: the HCAs of the fabric don't
    found = onboard({"max_read_request": (RowReading("4096", ("mlx5_9",)),)})
    assert [(finding.status, finding.measured) for finding in found] == [(FAIL, "not present on the node")] * 2


def of_vendor(hca: Hca, vendor: str) -> Hca:
    return dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, vendor=vendor, driver=None) if hca.pci else None)


NVIDIA_S = ("NVIDIA", "mlxconfig", "mlnx-tools")


@pytest.mark.parametrize(
    ("vendors", "named"),
    [(("15b3", "15b3"), (True, False)), (("14e4", "1dd8"), (False, True)), (("15b3", "14e4"), (True, True))],
)
@pytest.mark.parametrize(
    ("row", "value", "elsewhere"),
    [
        ("max_read_request", "512", "each boot: setpci -s ADDRESS CAP_EXP+8.w=5000:7000"),
        ("relaxed_ordering", "off", "each boot: setpci -s ADDRESS CAP_EXP+8.w=10:10"),
        ("irq_locality", "remote", "CPUs of the NUMA node of the HCA to /proc/irq/NUMBER/smp_affinity_list"),
    ],
)
@pytest.mark.parametrize("expected", [True, False])
def test_what_an_hca_shows_on_pci_is_set_by_the_means_of_its_vendor(
    vendors: tuple[str, str], named: tuple[bool, bool], row: str, value: str, elsewhere: str, expected: bool
) -> None:
    """By a finding on each node where the intent expects it, and by one on both, or on what is odd, where it does
    not."""
    facts: Facts = healthy(PAIR).of("tuning")
    nodes, tunings = dict(facts.nodes), dict(facts.tunings)
    for name, seen in nodes.items():
        hcas, tuning = seen.value, tunings[name].value
        assert hcas is not None and tuning is not None
        of = dict(zip((hca.name for hca in hcas.hcas if not hca.is_virtual), vendors))
        nodes[name] = ObservedHcas(
            dataclasses.replace(
                hcas, hcas=tuple(of_vendor(hca, of[hca.name]) if hca.name in of else hca for hca in hcas.hcas)
            )
        )
        tunings[name] = ObservedTuning(dataclasses.replace(tuning, rows={**tuning.rows, row: shows(value, *of)}))
    (word,) = {reading.value for reading in healthy(PAIR).of("tuning").tunings["node-1"].value.rows[row]}
    intent = with_tuning(PAIR, expected={row: word}) if expected else healthy(PAIR).intent
    found = [
        item
        for item in check(intent, dataclasses.replace(facts, nodes=nodes, tunings=tunings))
        if item.status != PASS and row in item.subject
    ]
    assert [item.status for item in found] == ([FAIL, FAIL] if expected else [WARN])
    for item in found:
        assert (any(tool in item.remedy for tool in NVIDIA_S), elsewhere in item.remedy) == named


def test_where_no_hca_of_a_node_fits_a_fabric_all_are_held_to_it() -> None:
    fleet = healthy(PAIR)
    facts: Facts = fleet.of("tuning")
    tuning = facts.tunings["node-1"].value
    assert tuning is not None
    off = {
        "node-1": ObservedTuning(
            dataclasses.replace(tuning, rows={**tuning.rows, "max_read_request": (RowReading("512", ("mlx5_9",)),)})
        )
    }
    intent = with_tuning(PAIR, expected={"max_read_request": 4096})
    for seen in (ObservedHcas(NodeHcas(())), ObservedHcas(error="no answer")):
        found = check(
            intent, dataclasses.replace(facts, nodes={**facts.nodes, "node-1": seen}, tunings={**facts.tunings, **off})
        )
        assert [finding.measured for finding in found if finding.status == FAIL] == ["512 (mlx5_9)"]


def test_one_of_a_thousand_with_another_governor_is_found() -> None:
    (finding,) = judged(MANY, {"node-0500": {"governor": shows("powersave", "0-255")}})
    assert finding.measured == "powersave (CPUs 0-255) on node-0500" and finding.why.startswith(
        "This applies to 1 of 1000 nodes."
    )


@pytest.mark.parametrize("profile", ["training", "inference", "none"])
def test_one_node_that_is_unlike_the_others_is_found_whatever_is_expected(profile: str) -> None:
    (finding,) = judged(MANY, {"node-0500": {"thp": shows("never")}}, intent=with_tuning(MANY, profile=profile))
    assert (finding.check, finding.subject, finding.measured) == ("tuning.alike", "thp of node-0500", "never")
    assert "999 of 1000 comparable nodes have the value always" in finding.why and finding.status == WARN


def test_a_thousand_nodes_that_lack_the_same_are_one_piece_of_news() -> None:
    names = healthy(MANY).shape.names
    (finding,) = judged(MANY, {name: {"numa_balancing": shows("1")} for name in names})
    assert finding.subject.endswith("and 995 more") and finding.why.startswith("This applies to 1000 of 1000 nodes.")
    assert finding.why.endswith("The files facts/tuning/NODE.json of the run have the values of all nodes.")


def test_of_as_many_neither_is_usual() -> None:
    (finding,) = judged(PAIR, {"node-2": {"thp": shows("never")}})
    assert "the usual value is unknown" in finding.why and "node-1: always" in finding.measured


def test_nodes_of_other_models_are_held_against_their_own_kind() -> None:
    """Of five nodes two are of another model: what both of them show is usual among them."""
    assert judged(FEW, {name: {"kernel": shows("5.14.0")} for name in ("node-2", "node-4")}) == []
    (finding,) = judged(FEW, {"node-1": {"kernel": shows("5.14.0")}})
    assert finding.subject == "kernel of node-1" and "2 of 3 comparable nodes have the value" in finding.why


def test_what_has_no_usual_value_within_a_node_is_told() -> None:
    (finding,) = judged(
        THREE, {"node-2": {"max_payload": (RowReading("128", ("mlx5_1",)), RowReading("512", ("mlx5_0",)))}}
    )
    assert finding.measured == "128 (mlx5_1); 512 (mlx5_0)" and finding.check == "tuning.alike"


@pytest.mark.parametrize(
    ("profile", "rows", "found"),
    [
        ("training", {"gpu_mig": shows("Enabled", "0000:18:00.0")}, ["tuning.gpu"]),
        ("inference", {"gpu_mig": shows("Enabled", "0000:18:00.0")}, []),
        ("inference", {"governor": shows("powersave", "0-255")}, ["tuning.cpu"]),
        ("none", {"governor": shows("powersave", "0-255")}, []),
        ("none", {"gpu_slowed": shows("hw_thermal", "0000:18:00.0", "0000:2a:00.0")}, []),
    ],
)
def test_profiles(profile: str, rows: Rows, found: list[str]) -> None:
    """All nodes show the same, so that none is unlike the others."""
    every = dict.fromkeys(PAIR.names, rows)
    assert (
        sorted({finding.check for finding in judged(PAIR, every, intent=with_tuning(PAIR, profile=profile))}) == found
    )


@pytest.mark.parametrize(
    ("expected", "rows", "status"),
    [
        ({"thp": "never"}, {}, FAIL),
        ({"thp": "never|always"}, {}, None),
        ({"governor": "schedutil"}, {}, FAIL),
        ({"governor": None}, {"governor": shows("powersave", "0-255")}, WARN),
        ({"swappiness": 10}, {}, None),
        ({"swappiness": 1}, {}, FAIL),
        ({"gpu_driver": ">=580"}, {}, FAIL),
        ({"gpu_driver": ">=570"}, {}, None),
        # the intent asks for what the node has not
        ({"turbo": "off"}, {"turbo": ()}, FAIL),
    ],
)
def test_the_intent_s_own_word_fails(expected: dict[str, typing.Any], rows: Rows, status: typing.Optional[str]) -> None:
    findings = judged(PAIR, {"node-2": rows}, intent=with_tuning(PAIR, expected=expected))
    assert {finding.status for finding in findings} == ({status} if status else set())
    assert all(finding.subject.startswith("node-") for finding in findings if finding.status == FAIL), (
        "so that one node can be waived"
    )


@pytest.mark.parametrize(("cuda", "status"), [("13.0", FAIL), ("12.8", None), (None, None)])
def test_a_driver_that_is_too_old_for_cuda(cuda: typing.Optional[str], status: typing.Optional[str]) -> None:
    findings = judged(PAIR, {}, intent=with_tuning(PAIR, cuda=cuda))
    assert {finding.status for finding in findings} == ({status} if status else set())
    assert all("CUDA 13.0" in finding.expected and "at least 580" in finding.expected for finding in findings)


def test_a_row_that_a_node_has_not_is_no_fault() -> None:
    """As of virtual machines, of nodes without GPUs, and without a kubelet."""
    absent = {row.name: () for row in ROWS if row.check != "roce"}
    assert judged(PAIR, dict.fromkeys(PAIR.names, absent)) == []


def test_what_was_not_read_is_never_a_pass() -> None:
    for row in (row for row in ROWS if row.check != "roce"):
        findings = judged(PAIR, {"node-2": {}}, {row.name: "/sys/x: Permission denied"})
        # without the models nobody knows of which kind a node is
        own = [finding for finding in findings if finding.check == f"tuning.{row.check}"]
        assert own and all("Permission denied" in finding.why and "node-2" in finding.remedy for finding in own), (
            row.name
        )
        assert {finding.status for finding in own} == {UNKNOWN if row.level == "fail" else WARN}
    (finding,) = judged(PAIR, {"node-2": {}}, {"thp": "x: y"}, with_tuning(PAIR, expected={"thp": "always"}))
    assert (finding.status, finding.subject) == (UNKNOWN, "node-2 thp")


def test_a_gpu_of_which_nothing_is_said_is_not_known() -> None:
    (finding,) = judged(PAIR, {"node-2": {"gpu_slowed": shows("none", "0000:18:00.0")}})
    assert finding.status == UNKNOWN and "0000:2a:00.0" in finding.why


def test_nodes_that_gave_no_answer_close_the_gate() -> None:
    fleet = healthy(PAIR)
    facts: Facts = fleet.of("tuning")
    for tunings in (
        {},
        {**facts.tunings, "node-2": ObservedTuning(error="unreachable: no route")},
        {**facts.tunings, "node-2": ObservedTuning()},
    ):
        findings = check(fleet.intent, dataclasses.replace(facts, tunings=tunings))
        assert [
            finding.status for finding in findings if finding.check == "tuning.node" and finding.status != PASS
        ] == [UNKNOWN]
        assert not judge(findings).open


def test_experts_that_contradict_each_other_are_told_and_not_judged() -> None:
    fleet = healthy(PAIR)
    told = {finding.subject: finding for finding in check(fleet.intent, fleet.of("tuning")) if finding.status == PASS}
    assert "TuneD hpc-compute says always" in told["thp"].expected and "not checked" in told["thp"].expected
    assert "realloc=off" in told["pci_realloc"].expected


def test_a_finding_of_one_node_can_be_waived() -> None:
    findings = judged(PAIR, {"node-2": {"gpu_slowed": shows("hw_thermal", "0000:18:00.0", "0000:2a:00.0")}})
    assert not judge(findings).open
    assert judge(findings, [Waiver("tuning.gpu", "its fan is on order", "node-2 *")]).open


# RoCE


def roce(value: str, other: typing.Optional[str] = None) -> tuple[RowReading, ...]:
    """Of both HCAs of a node; the second one may have another value."""
    return (
        shows(value, "mlx5_0", "mlx5_1")
        if other is None
        else (RowReading(value, ("mlx5_0",)), RowReading(other, ("mlx5_1",)))
    )


@pytest.mark.parametrize(
    ("rows", "status", "says"),
    [
        ({"roce_trust": roce("pcp")}, FAIL, "pcp"),
        ({"roce_pfc": roce("none")}, FAIL, "none"),
        ({"roce_pfc": roce("3,4")}, FAIL, "3,4"),
        ({"roce_dscp": roce("48:6")}, FAIL, "48:6"),
        ({"roce_dscp": roce("26:3 48:6")}, WARN, "26:3 48:6"),
        ({"roce_ecn": roce("none")}, WARN, "none"),
        ({"roce_ecn": roce("0-7")}, WARN, "0-7"),
        # digits that are no numbers, and more of them than a number has
        ({"roce_ecn": roce("\u00b2")}, WARN, ""),
        ({"roce_ecn": roce("9" * 5000)}, WARN, ""),
        ({"roce_traffic_class": roce("105")}, WARN, "105"),
        ({"mtu": roce("1500")}, WARN, "1500"),
        # only NVIDIA's driver packages show it
        ({"roce_traffic_class": ()}, None, ""),
        ({"roce_pfc": ()}, UNKNOWN, "not read"),
    ],
)
def test_roce_is_as_the_fabric_says(rows: Rows, status: typing.Optional[str], says: str) -> None:
    findings = judged(ROCE, {"node-2": rows})
    assert {finding.status for finding in findings} == ({status} if status else set())
    assert all(
        finding.check == "tuning.roce"
        and "compute" in finding.subject
        and "node-2" in finding.subject
        and says in finding.measured
        for finding in findings
    )


#: settings of the second port of a bond: of a port whose switch and driver are as they come
_AS_IT_COMES = {"roce_trust": "pcp", "roce_pfc": "none", "roce_dscp": "none", "roce_ecn": "none", "mtu": "9000"}
_BONDED: typing.Mapping[str, typing.Mapping[str, typing.Any]] = {
    "sriov_ethernet": {},
    "rdma_shared": {"select": Select(hcas_per_node=1, netdev=("bond0",))},
}


def bonded(profile: typing.Any, rows: typing.Mapping[str, typing.Optional[str]], second: bool = False) -> list[Finding]:
    """What is said of RoCE where the two NICs of each node are a bond.

    :param rows: values of the port of ``mlx5_1``; None where it has none
    :param second: whether ``mlx5_1`` has an RDMA device of its own
    """
    fleet = healthy(ROCE)
    facts: Facts = fleet.of("tuning")
    nodes, tunings = {}, {}
    for name, seen in facts.nodes.items():
        assert seen.value is not None
        hcas = tuple(
            hca
            if hca.is_virtual
            else dataclasses.replace(
                hca,
                rdma_device=hca.rdma_device if second or hca.name == "mlx5_0" else None,
                ports=hca.ports if second or hca.name == "mlx5_0" else (),
                netdevs=tuple(dataclasses.replace(netdev, bond="bond0") for netdev in hca.netdevs),
            )
            for hca in seen.value.hcas
        )
        nodes[name] = dataclasses.replace(seen, value=dataclasses.replace(seen.value, hcas=hcas))
        value = facts.tunings[name].value
        assert value is not None
        own = {row: tuple(RowReading(item.value, ("mlx5_0",)) for item in value.rows[row]) for row in _OF_ROCE}
        own.update({row: (*own[row], *shows(said, "mlx5_1")) for row, said in rows.items() if said is not None})
        tunings[name] = ObservedTuning(dataclasses.replace(value, rows={**value.rows, **own}))
    (fabric,) = fleet.intent.fabrics
    intent = dataclasses.replace(
        fleet.intent, fabrics=(dataclasses.replace(fabric, profile=profile, **_BONDED[profile]),)
    )
    found = check(intent, dataclasses.replace(facts, nodes=nodes, tunings=tunings))
    return [finding for finding in found if finding.check == "tuning.roce"]


_OF_ROCE = tuple(row.name for row in ROWS if row.check == "roce")


@pytest.mark.parametrize("profile", [*_BONDED])
def test_each_port_of_a_bond_is_as_the_fabric_says(profile: str) -> None:
    """The RDMA device of a bond sends through both ports, though it belongs to one of its functions."""
    found = {(item.subject.rpartition(" ")[2], item.status) for item in bonded(profile, _AS_IT_COMES)}
    assert {("roce_trust", FAIL), ("roce_pfc", FAIL), ("roce_dscp", FAIL)} < found
    failed = [item for item in bonded(profile, _AS_IT_COMES) if item.status == FAIL and "side" not in item.subject]
    assert {item.subject.split()[2] for item in failed} == {"mlx5_1"} and len(failed) == 9
    right = {"roce_trust": "dscp", "roce_pfc": "3", "roce_dscp": "26:3", "roce_ecn": "3", "mtu": "9000"}
    assert {item.status for item in bonded(profile, right)} == {PASS}
    assert {item.measured for item in bonded(profile, right) if "pfc" in item.subject} == {"3 on 6 of 6 HCAs"}
    # settings of the RDMA device, of which the bond has one
    assert {item.measured for item in bonded(profile, right) if "tos" in item.subject} == {"106 on 3 of 3 HCAs"}


@pytest.mark.parametrize("profile", [*_BONDED])
def test_a_port_of_a_bond_that_was_not_read_is_unknown(profile: str) -> None:
    unread = [item for item in bonded(profile, {}) if item.status == UNKNOWN]
    assert {item.subject.rpartition(" ")[2] for item in unread} == {"roce_trust", "roce_pfc", "roce_dscp"}


def test_a_part_of_a_bond_that_has_an_rdma_device_is_judged_too() -> None:
    found = bonded("rdma_shared", {**_AS_IT_COMES, "roce_traffic_class": "106", "roce_tos": "106"}, second=True)
    assert {item.subject.split()[2] for item in found if item.status == FAIL and "side" not in item.subject} == {
        "mlx5_1"
    }


@pytest.mark.parametrize(("vendor", "named"), [("15b3", True), ("14e4", False)])
def test_nics_of_other_vendors_are_set_by_neither_operator_nor_tools_of_nvidia(vendor: str, named: bool) -> None:
    fleet = healthy(ROCE)
    facts: Facts = fleet.of("tuning")
    nodes = {}
    for name, seen in facts.nodes.items():
        assert seen.value is not None
        hcas = tuple(
            dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, vendor=vendor, driver=None)) if hca.pci else hca
            for hca in seen.value.hcas
        )
        nodes[name] = dataclasses.replace(seen, value=dataclasses.replace(seen.value, hcas=hcas))
    tunings = dict(facts.tunings)
    value = tunings["node-2"].value
    assert value is not None
    tunings["node-2"] = ObservedTuning(NodeTuning({**value.rows, "roce_trust": roce("pcp"), "roce_pfc": roce("none")}))
    intent = dataclasses.replace(
        fleet.intent,
        fabrics=tuple(
            dataclasses.replace(item, select=dataclasses.replace(item.select, vendor=vendor))
            for item in fleet.intent.fabrics
        ),
    )
    found = [
        finding
        for finding in check(intent, dataclasses.replace(facts, nodes=nodes, tunings=tunings))
        if finding.status == FAIL
    ]
    assert found and {finding.check for finding in found} == {"tuning.roce"}
    text = " ".join(finding.remedy for finding in found)
    assert [word in text for word in ("NVIDIA", "mlnx_qos", "dcb apptrust set dev INTERFACE order dscp")] == [
        named,
        named,
        not named,
    ]
    assert "dcb pfc set dev INTERFACE prio-pfc all:off 3:on" in text
    assert "un this command on the node now, and in a systemd unit at each boot: dcb pfc" in text
    assert "INTERFACE is the network interface of the HCA" in text


@pytest.mark.parametrize(("wrong", "named"), [(("node-1",), True), (("node-2",), False), (("node-1", "node-2"), None)])
@pytest.mark.parametrize("advice", [False, True])
def test_in_a_fabric_of_two_vendors_each_nic_has_the_remedy_of_its_own(
    wrong: tuple[str, ...], named: typing.Optional[bool], advice: bool
) -> None:
    """The NICs of node-2 are of Broadcom, those of the other nodes of NVIDIA."""
    facts: Facts = healthy(ROCE).of("tuning")
    seen = facts.nodes["node-2"]
    assert seen.value is not None
    hcas = tuple(of_vendor(hca, "14e4") for hca in seen.value.hcas)
    nodes = {**facts.nodes, "node-2": dataclasses.replace(seen, value=dataclasses.replace(seen.value, hcas=hcas))}
    tunings = dict(facts.tunings)
    for name in wrong:
        value = tunings[name].value
        assert value is not None
        tunings[name] = ObservedTuning(NodeTuning({**value.rows, "roce_trust": roce("pcp")}))
    (fabric,) = with_roce(None if advice else healthy(ROCE).intent.fabrics[0].roce).fabrics
    select = Select(pci=("0000:10:00.0", "0000:11:00.0"), hcas_per_node=2)
    intent = dataclasses.replace(healthy(ROCE).intent, fabrics=(dataclasses.replace(fabric, select=select),))
    findings = check(intent, dataclasses.replace(facts, nodes=nodes, tunings=tunings))
    found = [item for item in findings if "roce_trust" in item.subject and item.status != PASS]
    assert {item.status for item in found if "one side" not in item.subject} == {WARN if advice else FAIL}
    for item in found:
        of_nvidia, of_others = ("node-1" in item.subject or "node-3" in item.subject), "node-2" in item.subject
        assert ("mlnx_qos" in item.remedy) == of_nvidia, item
        assert ("dcb apptrust set dev INTERFACE order dscp" in item.remedy) == of_others, item
    text = " ".join(item.remedy for item in found)
    assert named is None or ("mlnx_qos" in text) == named


@pytest.mark.parametrize(
    ("vendor", "row", "reason", "part"),
    [
        ("1dd8", "roce_ecn", "ens1: only the driver packages of NVIDIA provide it", "with nicctl show qos"),
        ("1dd8", "roce_pfc", "dcb -j pfc show dev ens1: Operation not supported", "with nicctl show qos"),
        ("14e4", "roce_ecn", "ens1: only the driver packages of NVIDIA provide it", "the tool of the vendor"),
        ("15b3", "roce_ecn", "ens1: only the driver packages of NVIDIA provide it", "Install DOCA-OFED"),
        ("14e4", "roce_pfc", "dcb is not installed", "Install dcb"),
    ],
)
def test_unread_roce_setting_has_the_remedy_of_the_vendor(vendor: str, row: str, reason: str, part: str) -> None:
    fleet = healthy(ROCE)
    facts: Facts = fleet.of("tuning")
    nodes, tunings = dict(facts.nodes), dict(facts.tunings)
    for name, seen in facts.nodes.items():
        value = tunings[name].value
        assert seen.value is not None and value is not None
        hcas = tuple(of_vendor(hca, vendor) for hca in seen.value.hcas)
        nodes[name] = dataclasses.replace(seen, value=dataclasses.replace(seen.value, hcas=hcas))
        rows = {known: shown for known, shown in value.rows.items() if known != row}
        tunings[name] = ObservedTuning(NodeTuning(rows, {row: reason}))
    select = Select(pci=("0000:10:00.0", "0000:11:00.0"), hcas_per_node=2)
    intent = dataclasses.replace(fleet.intent, fabrics=(dataclasses.replace(fleet.intent.fabrics[0], select=select),))
    findings = check(intent, dataclasses.replace(facts, nodes=nodes, tunings=tunings))
    found = [
        item for item in findings if item.check == "tuning.roce" and f" {row}" in item.subject and item.status != PASS
    ]
    assert found and all(part in item.remedy for item in found), [item.remedy for item in found]
    assert vendor == "15b3" or not any("DOCA" in item.remedy for item in found)


def test_without_a_word_of_the_fabric_roce_is_advice() -> None:
    every = {name: {"roce_pfc": roce("none"), "roce_trust": roce("pcp")} for name in ROCE.names}
    assert {finding.status for finding in judged(ROCE, every, intent=with_roce(None))} == {WARN}
    intent = with_roce(None)
    quiet = dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, tuning=Tuning(profile="none")))
    assert judged(ROCE, every, intent=quiet) == []


@pytest.mark.parametrize("row", ["roce_ecn", "roce_traffic_class", "roce_tos"])
@pytest.mark.parametrize("rows", [(), roce("4711")[:1]], ids=["no HCA", "one HCA"])
def test_a_row_of_roce_that_the_intent_expects_is_read_of_each_hca(row: str, rows: typing.Any) -> None:
    some = tuple(dataclasses.replace(item, where=item.where[:1]) for item in rows)
    found = judged(ROCE, {"node-2": {row: some}}, intent=with_tuning(ROCE, expected={row: "4711"}))
    of_node = [item for item in found if item.subject == f"compute node-2 {row}"]
    assert [(item.status, item.measured) for item in of_node] == [(UNKNOWN, "not read")]


def test_a_row_of_roce_that_no_fabric_is_judged_by_is_refused() -> None:
    found = judged(PAIR, {}, intent=with_tuning(PAIR, expected={"roce_pfc": "3", "mtu": "9000"}))
    assert {(item.subject, item.status, item.measured) for item in found} == {
        (f"rdma_cluster.tuning.expected.{row}", FAIL, "no fabric with RoCE") for row in ("roce_pfc", "mtu")
    }


def test_a_row_of_which_null_is_expected_expects_nothing() -> None:
    nothing = dict.fromkeys(("roce_pfc", "mtu", "roce_ecn", "max_read_request"))
    assert judged(PAIR, {}, intent=with_tuning(PAIR, expected=nothing)) == []
    # a row that only some driver packages show is not missed either
    unshown: dict[str, Rows] = {name: {"roce_ecn": ()} for name in healthy(ROCE).shape.names}
    assert judged(ROCE, unshown, intent=with_tuning(ROCE, expected=nothing)) == []
    (found, *_more) = judged(ROCE, unshown, intent=with_tuning(ROCE, expected={"roce_ecn": "3"}))
    assert (found.check, found.status) == ("tuning.roce", UNKNOWN)


@pytest.mark.parametrize(
    ("row", "value", "where", "says"),
    [
        ("max_read_request", "4096", ("mlx5_0",), "no value for HCA mlx5_1, mlx5_2, mlx5_3"),
        ("gpu_persistence", "Enabled", ("0000:18:00.0",), "no value for GPU 0000:2a:00.0"),
        ("governor", "performance", ("0-127",), "no value for 128 of 256 CPUs"),
    ],
)
def test_what_the_intent_expects_is_read_of_each_place(row: str, value: str, where: tuple[str, ...], says: str) -> None:
    """Some of it read is not all of it."""
    intent = with_tuning(PAIR, expected={row: value})
    assert judged(PAIR, {}, intent=intent) == []
    (found,) = judged(PAIR, {"node-2": {row: shows(value, *where)}}, intent=intent)
    assert (found.subject, found.status) == (f"node-2 {row}", UNKNOWN) and says in found.why
    # what is no list of CPUs proves nothing, and is told where it is read
    assert judged(PAIR, {"node-2": {row: shows(value, "elsewhere")}}, intent=intent) == []


def test_an_hca_that_the_tuning_does_not_list_is_missed_as_well() -> None:
    """The HCAs are also known by themselves."""
    three = ("mlx5_0", "mlx5_1", "mlx5_2")
    unlisted = {"hca_model": shows("4129", *three), "max_read_request": shows("4096", *three)}
    for row, value in (("max_read_request", "4096"), ("hca_model", "4129")):
        (found, *more) = [
            item
            for item in judged(PAIR, {"node-2": unlisted}, intent=with_tuning(PAIR, expected={row: value}))
            if item.subject == f"node-2 {row}"
        ]
        assert (found.status, more) == (UNKNOWN, []) and "no value for HCA mlx5_3" in found.why


@pytest.mark.parametrize("odd", ["none", "4"])
def test_pfc_on_one_side_only_fails_whatever_is_expected(odd: str) -> None:
    intent = with_roce(None)
    quiet = dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, tuning=Tuning(profile="none")))
    (finding,) = judged(ROCE, {"node-2": {"roce_pfc": roce("3", odd)}}, intent=quiet)
    assert (
        (finding.status, finding.measured) == (FAIL, odd)
        and "node-2 mlx5_1" in finding.subject
        and "on one side only" in finding.subject
    )


def test_a_site_with_its_own_priority() -> None:
    own = {
        name: {
            "roce_pfc": roce("5"),
            "roce_dscp": roce("40:5"),
            "roce_ecn": roce("5"),
            "roce_traffic_class": roce("162"),
            "roce_tos": roce("162"),
        }
        for name in ROCE.names
    }
    assert judged(ROCE, own, intent=with_roce(Roce(40, 5))) == []
    assert {finding.status for finding in judged(ROCE, own)} == {FAIL, WARN}


def test_dcb_that_is_not_there_is_not_known_by_its_name() -> None:
    why = "dcb is not installed. Install iproute2"
    findings = judged(ROCE, {"node-2": {}}, {"roce_pfc": why, "roce_dscp": why})
    assert {finding.status for finding in findings} == {UNKNOWN} and all("dcb" in finding.why for finding in findings)
    assert {finding.status for finding in judged(ROCE, {"node-2": {}}, {"roce_pfc": why}, with_roce(None))} == {WARN}


def test_infiniband_has_no_roce() -> None:
    assert [
        finding for finding in check(healthy(PAIR).intent, healthy(PAIR).of("tuning")) if finding.check == "tuning.roce"
    ] == []


def test_a_fabric_without_hcas_is_not_known() -> None:
    facts: Facts = healthy(ROCE).of("tuning")
    found = [
        finding
        for finding in check(healthy(ROCE).intent, dataclasses.replace(facts, nodes={}))
        if finding.check == "tuning.roce"
    ]
    assert [finding.status for finding in found] == [UNKNOWN]


# the intent


@pytest.mark.parametrize(
    ("tuning", "wrong"),
    [
        ({}, []),
        (
            {
                "profile": "none",
                "cuda": "12.8",
                "expected": {"thp": "always|never", "min_free_kbytes": ">=65536", "swappiness": 1, "gc_thresh3": None},
            },
            [],
        ),
        ({"expected": {"govenor": "performance"}}, ["expected.govenor"]),
        ({"expected": {"smt": True}}, ["expected.smt"]),
        ({"expected": {"smt": ["on"], "thp": ""}}, ["expected.smt", "expected.thp"]),
        ({"expected": {"gpu_driver": "> 580"}}, ["expected.gpu_driver"]),
        ({"cuda": "13.0.1"}, ["cuda"]),
        ({"cuda": "9.0"}, ["cuda"]),
    ],
)
def test_what_can_be_expected(tuning: dict[str, typing.Any], wrong: list[str]) -> None:
    found = [finding for finding in validate.check(with_tuning(PAIR, **tuning)) if finding.status != PASS]
    assert [finding.subject for finding in found] == [f"rdma_cluster.tuning.{place}" for place in wrong]
    assert all(finding.check == "validate.tuning" and finding.status == FAIL for finding in found)
    assert "did you mean 'governor'" in found[0].expected if wrong == ["expected.govenor"] else True


def test_roce_of_a_fabric_that_has_none_or_no_packet_can_carry() -> None:
    assert [finding.subject for finding in validate.check(with_roce(Roce(64, 8))) if finding.status == FAIL] == [
        "rdma_fabrics[0].roce.dscp",
        "rdma_fabrics[0].roce.priority",
    ]
    intent = healthy(PAIR).intent
    wrong = dataclasses.replace(
        intent, fabrics=tuple(dataclasses.replace(fabric, roce=Roce()) for fabric in intent.fabrics)
    )
    assert [finding.subject for finding in validate.check(wrong)] == ["rdma_fabrics[0].roce"]
    assert Roce().traffic_class == 106


def test_nodes_of_two_nvlink_domains_are_compared_within_each() -> None:
    other = DOMAIN.replace("7c", "8d")
    assert judged(PAIR, {"node-2": {"gpu_clique": shows(f"{other}.1", *GPUS)}}) == []


def test_nodes_of_one_nvlink_domain_in_two_cliques_are_told() -> None:
    (finding,) = judged(THREE, {"node-2": {"gpu_clique": shows(f"{DOMAIN}.2", *GPUS)}})
    assert (finding.check, finding.status) == ("tuning.nvlink_domain", WARN) and DOMAIN in finding.subject
    assert finding.measured == "clique 1 on node-1, node-3, clique 2 on node-2"


def test_gpus_of_one_node_in_two_cliques_are_told() -> None:
    rows = (RowReading(f"{DOMAIN}.1", ("0000:18:00.0",)), RowReading(f"{DOMAIN}.2", ("0000:2a:00.0",)))
    (finding,) = judged(PAIR, {"node-2": {"gpu_clique": rows}})
    assert (finding.check, finding.status) == ("tuning.nvlink_domain", WARN)
    assert finding.measured == "clique 1 on node-1, node-2, clique 2 on node-2"


@pytest.mark.parametrize("row", ["gpu_clique", "gpu_fabric"])
def test_a_node_that_does_not_report_its_nvlink_fabric_beside_equal_ones_is_unknown(row: str) -> None:
    findings = judged(PAIR, {"node-2": {row: ()}}, {row: "nvidia-smi has failed"})
    (finding,) = [item for item in findings if item.check == "tuning.nvlink_domain"]
    assert finding.status == UNKNOWN and finding.subject == f"{row} of node-2"
    assert "nvidia-smi has failed" in finding.why


def test_a_gpu_that_does_not_report_its_registration_beside_one_that_does_is_unknown() -> None:
    (finding,) = judged(PAIR, {"node-2": {"gpu_fabric": shows("Success", "0000:18:00.0")}})
    assert (finding.check, finding.status) == ("tuning.nvlink_domain", UNKNOWN) and "0000:2a:00.0" in finding.why


def test_gpus_of_another_model_need_no_nvlink_fabric() -> None:
    rows = {"gpu_model": shows("10de:26b9", "0000:18:00.0", "0000:2a:00.0"), "gpu_fabric": (), "gpu_clique": ()}
    assert [item for item in judged(PAIR, {"node-2": rows}) if item.check == "tuning.nvlink_domain"] == []


@pytest.mark.parametrize(
    "reason, remedy",
    [
        (
            "the stored data of the node lacks this value, as data of an older version of linerate.rdma does",
            "Run stage tuning again, which reads node-2 with the installed version. If the finding remains, report it"
            " to the developers of linerate.rdma, with the version that",
        ),
        ("dcb is not installed", "Install dcb on node-2"),
        ("nvidia-smi exists neither on the node nor in the root of a driver container", "Install the NVIDIA driver"),
        (
            "nvidia-smi does not report the GPU 0000:2a:00.0, which is on PCI",
            "Xid 79, and drain and power-cycle the node",
        ),
        ("nvidia-smi does not report the GPU 0000:2a:00.0, which is on PCI", "the GPU: nvidia-smi -r -i ADDRESS."),
        ("this nvidia-smi does not support the field fabric.health", "Update the GPU driver on node-2"),
        ("ib0: only the driver packages of NVIDIA provide it (class/net/ib0/ecn)", "Install DOCA-OFED on node-2"),
        ("/sys/a: Permission denied", "Let Ansible read node-2 as root"),
        ("/sys/a: Input/output error", "read the entry 'governor' under the key 'unread' of the output"),
    ],
)
def test_unread_row_has_the_remedy_of_its_reason(reason: str, remedy: str) -> None:
    found = judged(PAIR, {"node-2": {}}, {"governor": reason})
    (finding,) = [item for item in found if item.subject == "governor of node-2"]
    assert finding.measured == "not read" and f"{reason}." in finding.why and remedy in finding.remedy
    assert "run stage tuning again" in finding.remedy.lower() and "missing tool" not in finding.remedy


def test_value_that_a_comparable_node_does_not_have_is_not_set_by_the_remedy() -> None:
    found = judged(FEW, {"node-1": {"gpu_ecc": ()}})
    odd = [item for item in found if item.check == "tuning.alike" and item.subject == "gpu_ecc of node-1"]
    assert odd and all(item.measured == "not present on the node" for item in odd)
    assert all(
        "nvidia-smi reports this value for no GPU" in item.why and "nvidia-smi -i GPU -e 1" not in item.remedy
        for item in odd
    )


def test_sysctl_that_only_one_node_lacks_names_the_sysctl_and_not_the_bios() -> None:
    found = judged(FEW, {"node-1": {"gc_thresh1": ()}})
    (odd,) = [item for item in found if item.check == "tuning.alike" and item.subject == "gc_thresh1 of node-1"]
    assert odd.why.endswith("does not have the sysctl net.ipv4.neigh.default.gc_thresh1.")
    assert "Run sysctl net.ipv4.neigh.default.gc_thresh1" in odd.remedy and "BIOS" not in odd.remedy


@pytest.mark.parametrize("row", [row for row in ROWS if row.alike], ids=lambda row: row.name)
def test_each_row_that_a_node_lacks_has_a_cause_and_a_remedy(row: TuningRow) -> None:
    why, remedy = explain_absent(row, "node-1")
    assert why.endswith(".") and "node-1" in remedy and remedy.endswith("then run stage tuning again.")


def test_source_of_a_row_can_be_opened_by_a_reader() -> None:
    assert not [row.name for row in ROWS if re.search(r"\brow S[0-9]", row.source)]


@pytest.mark.parametrize(
    ("row", "value", "setting", "command"),
    [
        ("roce_tos", "106x", "and roceOptimized.qos.tos: 162 in", "cma_roce_tos -d DEVICE -t 162."),
        ("roce_traffic_class", "105", "and roceOptimized.qos.tos: 162 in", "echo 162 > "),
        ("roce_pfc", "3", "and roceOptimized.qos.pfc: 0,0,0,0,0,1,0,0 in", "all:off 5:on."),
        ("roce_dscp", "26:3", "roceOptimized.enabled: true in", "dscp-prio 40:5."),
        ("roce_ecn", "none", "roceOptimized.enabled: true in", "/roce_np/enable/5 "),
    ],
)
def test_remedy_of_roce_contains_the_values_of_the_fabric(row: str, value: str, setting: str, command: str) -> None:
    found = judged(ROCE, {"node-2": {row: roce(value)}}, intent=with_roce(Roce(dscp=40, priority=5)))
    remedies = [item.remedy for item in found if f" {row}" in item.subject and "node-2" in item.subject]
    assert remedies and all(setting in remedy and command in remedy for remedy in remedies)
    assert not any("106" in remedy or "26:3" in remedy or "3:on" in remedy for remedy in remedies)


def test_memory_manager_without_a_state_file_is_not_the_value_none() -> None:
    found = judged(FEW, {"node-1": {"memory_manager": ()}})
    (odd,) = [item for item in found if item.check == "tuning.alike" and item.subject == "memory_manager of node-1"]
    assert "no file /var/lib/kubelet/memory_manager_state" in odd.why and "memoryManagerPolicy" in odd.remedy
    assert odd.expected == "memory manager policy: the value none, as on comparable nodes"


@pytest.mark.parametrize(
    ("place", "path", "acs", "unread"),
    [
        # on the other socket
        ("pci0000:80 0000:80:01.0 0000:90:00.0", "SYS", (), ()),
        # behind the same switch as the GPU
        ("pci0000:00 0000:00:01.0 0000:15:00.0 0000:16:01.0 0000:1b:00.0", "PIX", (), ("acs",)),
        # an older version of the collection did not store it
        (None, "", (), ("acs", "gpu_nic_path")),
    ],
)
def test_path_of_a_gpu_leads_to_an_hca_of_a_fabric_and_not_to_a_nearer_nic(
    place: typing.Optional[str], path: str, acs: tuple[RowReading, ...], unread: tuple[str, ...]
) -> None:
    """A NIC that no fabric uses is beside the GPU, behind a port of its switch."""
    fleet = healthy(PAIR)
    seen = fleet.of("tuning").nodes["node-1"].value
    assert seen is not None
    (hca, *_more) = [item for item in seen.hcas if not item.is_virtual]
    front = dataclasses.replace(
        hca, name="front", pci=dataclasses.replace(hca.pci, vendor="8086"), ports=(), netdevs=()
    )
    ways = (
        RowReading("pci0000:00 0000:00:01.0 0000:15:00.0 0000:16:00.0 0000:18:00.0", ("0000:18:00.0",)),
        RowReading("pci0000:00 0000:00:01.0 0000:15:00.0 0000:16:00.0 0000:19:00.0", ("front",)),
        *((RowReading(place, (hca.name,)),) if place else ()),
    )
    rows = {
        "gpu_nic_path": shows("PIX", "0000:18:00.0 front"),
        "acs": shows("direct", "0000:17:00.0"),
        "pci_way": ways,
        "gpu_numa": shows("0", "0000:18:00.0"),
        "hca_numa": (RowReading("0", ("front",)), RowReading("1", (hca.name,))),
    }
    nodes = {"node-1": dataclasses.replace(seen, hcas=(hca, front))}
    found = drop_unused_hcas(fleet.intent, nodes, {"node-1": NodeTuning(rows)})["node-1"]
    assert found.rows["gpu_nic_path"] == ((RowReading(path, (f"0000:18:00.0 {hca.name}",)),) if path else ())
    assert found.rows["acs"] == acs and tuple(sorted(found.unread)) == unread
