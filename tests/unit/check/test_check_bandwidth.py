# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: the figures of row S1.12 against the floors, and what is no measurement. What links could carry is
in test_line_rates.py."""

from __future__ import annotations

import dataclasses
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.bandwidth.floors import Doubt, PairLimits
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import Member, Membership
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.measurement.completions import COMPLETIONS
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.causes import (
    CAUSES,
    explain_cause,
    name_ends,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.pairs import PINGS
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.pods import check_pods
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.results import (
    keep_valid_results,
    split_verdicts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenSubnet,
    SeenTopology,
    SlowPort,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import (
    BandwidthFacts,
    CoverPlan,
    RdmaPod,
    RoundPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.completions import STATUSES
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult, SweepRow, Wider
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
    VfAdministration,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods import failure as rdma_failure
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy


def intent(
    fabric_changes: typing.Optional[dict[str, typing.Any]] = None, **line_rate: typing.Union[float, str]
) -> Intent:
    fabric = {
        "name": "compute",
        "profile": "sriov_infiniband",
        "select": {"hcas_per_node": 1},
        "virtual_functions": 8,
        "resource_name": "mlx",
        "network": {"name": "ib", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/8"},
    }
    return parse_intent([{**fabric, "line_rate": line_rate, **(fabric_changes or {})}])


GEN5, GEN6 = (PcieLink(speed, 16, speed, 16, speed, 16, 256, 256) for speed in (32.0, 64.0))
RATES = {40.0: (4, "QDR"), 100.0: (4, "EDR"), 200.0: (4, "HDR"), 400.0: (4, "NDR")}


def ground(
    nodes: typing.Union[str, tuple[str, ...]],
    rails: int = 1,
    rate: typing.Optional[float] = 400.0,
    link: PcieLink = GEN5,
    slow: typing.Optional[dict[str, str]] = None,
    read: bool = True,
    **of_nodes: tuple[typing.Optional[float], PcieLink],
) -> dict[str, typing.Any]:
    """What nodes, ports and fabric show: HCA k of each node at 0000:<k>c:00.0.

    :param slow: what iblinkinfo says that the port of a node could be, by its name
    :param of_nodes: rate and PCIe link of a node of its own
    """
    hcas, subnets, ends = {}, {}, []
    links: list[Link] = []
    for place, node in enumerate(nodes):
        found = []
        own_rate, own_link = of_nodes.get(node, (rate, link))
        for rail in range(rails):
            guid, width = f"0x{place * 16 + rail + 1:016x}", RATES.get(typing.cast(float, own_rate), (4, "NDR"))
            pci = PciFunction(f"0000:{rail}c:00.0", "15b3", "1021", "0207", "mlx5_core", 0, own_link)
            found.append(
                Hca(
                    f"mlx5_{rail}",
                    f"mlx5_{rail}",
                    (),
                    pci,
                    guid,
                    ports=(Port(1, "ACTIVE", "LinkUp", "InfiniBand", own_rate, *width, 1, 1, guid),),
                )
            )
            ends.append(FabricNode("Ca", guid, f"{node} mlx5_{rail}", 1))
            links.append(
                Link(
                    LinkEnd("Switch", "0x00000000000000ff", len(links) + 1), LinkEnd("Ca", guid, 1, None, guid), *width
                )
            )
        hcas[node] = ObservedHcas(NodeHcas(tuple(found)))
        subnets[node] = ObservedSubnets(
            tuple(
                SeenSubnet(f"mlx5_{rail}", 1, SubnetManager(1, "0x00000000000000aa", "MASTER", 1, 1))
                for rail in range(rails)
            )
        )
    guids = {node: f"0x{place * 16 + 1:016x}" for place, node in enumerate(nodes)}
    could = SeenCapabilities(
        tuple(SlowPort(guids[node], 1, text) for node, text in (slow or {}).items()), 2 * len(links)
    )
    topology = Topology((FabricNode("Switch", "0x00000000000000ff", "leaf", 64), *ends), tuple(links))
    seen = SeenTopology(
        "mlx5_0", 1, topology, capabilities=could if read else SeenCapabilities(error="iblinkinfo: not found")
    )
    return {"hcas": hcas, "subnets": subnets, "topologies": {nodes[0]: ObservedTopologies((seen,))} if nodes else {}}


# NDR 400, PCIe generation 5 x16 less its encoding: row S1
PODS = tuple(
    RdmaPod(
        "compute",
        node,
        f"linerate-compute-{node}",
        "test",
        "mlx5_16",
        address,
        "0000:3c:00.2",
        "net1",
        400.0,
        504.12,
        physical_function="0000:0c:00.0",
    )
    for node, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
)


def pod_on(node: str, **changes: typing.Any) -> RdmaPod:
    """A pod like the first, with a name and an address of its own."""
    number = int.from_bytes(node.encode(), "big") % 60000
    own = {"name": f"linerate-compute-{node}", "address": f"10.0.{number // 250}.{number % 250 + 1}"}
    return dataclasses.replace(PODS[0], node=node, **{**own, **changes})


def pair(client: str, server: str, average: typing.Optional[float] = 373.64, **changes: typing.Any) -> PairResult:
    return dataclasses.replace(
        PairResult(
            "compute",
            client,
            server,
            5,
            average_gbps=average,
            peak_gbps=(average or 0) + 0.34,
            message_bytes=1048576,
            iterations=5000,
        ),
        **changes,
    )


def facts(
    *pairs: PairResult,
    pods: tuple[RdmaPod, ...] = PODS,
    seen: typing.Optional[dict[str, typing.Any]] = None,
    **changes: typing.Any,
) -> Facts:
    return Facts(
        ("a", "b"),
        BandwidthFacts(pods, pairs or (pair("a", "b"), pair("b", "a")), **changes),
        **(ground("ab") if seen is None else seen),
    )


def statuses(given: Facts, wanted: typing.Optional[Intent] = None) -> dict[tuple[str, str], str]:
    return {
        (finding.check.split(".")[1], finding.subject): finding.status for finding in check(wanted or intent(), given)
    }


def found(given: Facts, name: str, subject: str, wanted: typing.Optional[Intent] = None) -> Finding:
    (finding,) = [
        finding
        for finding in check(wanted or intent(), given)
        if finding.check == f"bandwidth.{name}" and finding.subject == subject
    ]
    return finding


AB = "compute a -> b"


def test_row_s1_12_passes_at_its_line_rate() -> None:
    assert set(statuses(facts()).values()) == {"pass"}
    floor = found(facts(), "floor", AB)
    assert (floor.measured, floor.expected) == (
        "373.64 Gb/s",
        (
            ">= 368.00 Gb/s (0.92 x 400 Gb/s, the lowest of: port of a 400, PCIe of a 414.82, port"
            " of b 400, PCIe of b 414.82 Gb/s)"
        ),
    )


def test_facts_survive_the_way_through_ansible() -> None:
    assert load(Facts, to_data(facts()), "facts") == facts()


@pytest.mark.parametrize(
    ("average", "rule", "status"),
    [
        (373.64, {"fraction": 0.92}, "pass"),
        (373.64, {"fraction": 0.95}, "fail"),
        (368.0, {"fraction": 0.92}, "pass"),
        (367.99, {"fraction": 0.92}, "fail"),
        (373.64, {"floor_gbps": 370.0, "reason": "acceptance line of the site"}, "pass"),
        (369.9, {"floor_gbps": 370.0, "reason": "acceptance line of the site"}, "fail"),
        (0.031, {"floor_gbps": 0.005, "reason": "software RDMA"}, "pass"),
        (0.0048, {"floor_gbps": 0.005, "reason": "software RDMA"}, "fail"),
    ],
)
def test_floor(average: float, rule: dict[str, typing.Any], status: str) -> None:
    given = facts(pair("a", "b", average), pair("b", "a", average))
    finding = found(given, "floor", AB, intent(**rule))
    assert finding.status == status
    assert rule.get("reason", "0.9") in finding.expected


@pytest.mark.parametrize(
    ("count", "advice"),
    [(1, "one queue pair, which does not fill"), (4, "4 queue pairs, which do not fill"), (8, ""), (None, "")],
)
def test_a_pair_of_few_queue_pairs_is_to_be_measured_with_more_before_anything_is_replaced(
    count: typing.Optional[int], advice: str
) -> None:
    """NVIDIA/nccl issue 2409: at 400 Gb/s and 1 MiB one carries 284.4 Gb/s, and eight carry 391.5."""
    finding = found(
        facts(pair("a", "b", 284.4, queue_pairs=count), pair("b", "a", 284.4, queue_pairs=count)), "floor", AB
    )
    assert (finding.status, advice in finding.why) == ("fail", True), finding
    assert (finding.remedy or "").startswith(
        "Before you replace anything, set pods.queue_pairs of the fabric to 8 and run stage bandwidth again."
    ) == bool(advice), finding


def slow(**changes: typing.Any) -> PairResult:
    """a -> b, below its floor with 4 queue pairs, and with 16 not."""
    more = dataclasses.replace(Wider(16, 4194304, 391.5, 392.0, 5000, commands=("ib_write_bw -q 16",)), **changes)
    return pair("a", "b", 218.0, queue_pairs=4, wider=more)


def by_check(given: Facts, wanted: typing.Optional[Intent] = None) -> dict[str, Finding]:
    """The findings on a -> b, and that on suspects of the fabric."""
    return {
        item.check.split(".")[1]: item for item in check(wanted or intent(), given) if item.subject in (AB, "compute")
    }


def test_a_pair_that_reaches_its_floor_with_more_queue_pairs_alone_accuses_nobody_where_few_explain_it() -> None:
    given = facts(slow(), pair("b", "a", 284.4, queue_pairs=4, wider=Wider(16, 4194304, 391.5, 392.0, 5000)))
    findings = by_check(given)
    for name in ("floor", "fleet"):
        finding = findings[name]
        assert (finding.status, finding.measured) == (
            "warn",
            "218.00 Gb/s with 4 queue pairs and messages of 1048576 bytes, 391.50 Gb/s with 16 queue pairs"
            " and messages of 4194304 bytes",
        )
        assert "the path and both HCAs are fast enough. In the slow measurement, the queue pairs were too few" in (
            finding.why or ""
        )
        assert "NCCL_IB_QPS_PER_CONNECTION" in (
            finding.remedy or ""
        ) and "Set pods.queue_pairs of the fabric to 16" in (finding.remedy or "")
    assert findings["suspect"].status == "pass"
    assert {item.status for item in check(intent(), given)} == {"pass", "warn"}


def test_where_others_are_fast_with_as_few_queue_pairs_their_number_explains_nothing() -> None:
    """One slow measurement and a fast one leave open what was slow. Nobody is accused, and the run is not green."""
    given = facts(slow(), pair("b", "a", 391.0, queue_pairs=4))
    findings = by_check(given)
    for name in ("floor", "fleet"):
        finding = findings[name]
        assert (finding.status, finding.measured) == (
            "unknown",
            "218.00 Gb/s with 4 queue pairs and messages of 1048576 bytes, 391.50 Gb/s with 16 queue pairs"
            " and messages of 4194304 bytes",
        )
        assert (
            "Other pairs are fast enough with as few queue pairs, so the number of queue pairs alone"
            " does not explain the result. Possible causes: temporary load"
        ) in finding.why
        assert "verified" not in finding.why and "switches" not in finding.why
        assert finding.remedy.startswith(
            "Read the errors (ibqueryerrors) of both ends, and correct the cause of counters that increase. Then run"
            " stage bandwidth again on idle nodes."
        )
    assert (findings["suspect"].status, findings["suspect"].measured) == ("pass", "1 measurement passed")


@pytest.mark.parametrize("others", [284.4, 391.0])
@pytest.mark.parametrize("label", [None, 0x12345])
def test_on_ethernet_more_queue_pairs_prove_no_link_between_switches_unless_they_are_one_flow(
    label: typing.Optional[int], others: float
) -> None:
    few = others < 368
    other = pair(
        "b", "a", others, queue_pairs=4, flow_label=label, wider=Wider(16, 4194304, 391.5, 392.0, 5000) if few else None
    )
    wanted = intent({"profile": "sriov_ethernet"}, expected_gbps=400.0)
    findings = by_check(facts(dataclasses.replace(slow(), flow_label=label), other), wanted)
    assert findings["floor"].status == ("warn" if few else "unknown")
    # among others of as few queue pairs it is slow by itself
    assert findings["fleet"].status == ("warn" if few and label else "unknown")
    shared = "a slow link between the switches" if few else "a slow link between switches"
    assert (shared in findings["floor"].why) == (label is None)
    assert ("the path and both HCAs are fast enough" in findings["floor"].why) == bool(few and label)
    assert ("--flow_label" in findings["fleet"].remedy) == (label is None) and "ibqueryerrors" not in findings[
        "fleet"
    ].remedy


def test_what_is_known_to_hold_a_pair_back_is_said_also_where_more_queue_pairs_fill_the_link() -> None:
    pods = (dataclasses.replace(PODS[0], far_cpus=True, binding="on CPUs 0-3 of NUMA node 1"), PODS[1])
    given = facts(slow(), pair("b", "a", 284.4, queue_pairs=4), pods=pods)
    finding = found(given, "floor", AB)
    assert finding.status == "warn" and "The pod on a ran on CPUs 0-3 of NUMA node 1" in finding.why
    assert finding.remedy.startswith(
        "Run the pod on CPUs of the NUMA node of its HCA: set topologyManagerPolicy single-numa-node"
    )


def test_more_queue_pairs_of_the_best_pair_are_not_as_few() -> None:
    """A port whose rate its pod does not show is measured with one."""
    one = dataclasses.replace(slow(), queue_pairs=1)
    finding = found(facts(one, pair("b", "a", 391.0, queue_pairs=8)), "floor", AB)
    assert finding.status == "warn" and "the queue pairs were too few" in finding.why


def test_a_pair_that_stays_below_its_floor_fails_with_both_figures() -> None:
    given = facts(slow(average_gbps=220.0, peak_gbps=221.0), pair("b", "a", 391.0, queue_pairs=4))
    finding = found(given, "floor", AB)
    assert (finding.status, finding.measured) == (
        "fail",
        "218.00 Gb/s with 4 queue pairs and messages of 1048576 bytes, 220.00 Gb/s with 16 queue pairs"
        " and messages of 4194304 bytes",
    )
    assert "With 16 queue pairs and messages of 4194304 bytes the pair is too slow as well" in (finding.why or "")
    assert (finding.remedy or "").startswith(
        "Follow the remedy of the finding bandwidth.suspect, which names the end at fault"
    )
    assert "fail" in {item.status for item in check(intent(), given) if item.check == "bandwidth.suspect"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"average_gbps": None, "why": "memlock: Couldn't allocate MR"},
            "There is no valid figure with 16 queue pairs: memlock: Couldn't allocate MR.",
        ),
        ({"average_gbps": 900.0, "peak_gbps": 901.0}, "The figure is above the capacity of the link"),
        ({"peak_gbps": 100.0}, "The average is above the peak of the same measurement"),
        ({"message_bytes": 65536}, "The figure is from messages of 65536 bytes, but 4194304 bytes were requested"),
        ({"iterations": 0}, "The figure is from 0 messages"),
        ({"queue_pairs": 4}, "The figure is from 4 queue pairs, but 16 were requested"),
    ],
)
def test_a_second_figure_that_is_none_proves_nothing(changes: dict[str, typing.Any], why: str) -> None:
    finding = found(facts(slow(**changes), pair("b", "a", 391.0)), "floor", AB)
    assert finding.status == "fail" and why in (finding.why or ""), finding
    assert (finding.remedy or "").startswith("Before you replace anything, set pods.queue_pairs of the fabric to 8")


def test_a_pair_that_others_speak_for_is_not_to_be_measured_with_more_first() -> None:
    why = "2 other pairs with a as the client were measured with more queue pairs, and were still too slow or failed"
    finding = found(
        facts(slow(average_gbps=None, commands=(), why=why), pair("b", "a", 391.0, queue_pairs=4)), "floor", AB
    )
    assert finding.status == "fail" and f"There is no valid figure with 16 queue pairs: {why}." in finding.why
    assert finding.remedy.startswith("Follow the remedy of the finding bandwidth.suspect, which names the end at fault")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (8, ""),
        (4, "The figure is from 4 queue pairs, but 8 were requested (pods.queue_pairs)."),
        (None, "an unknown number of"),
    ],
)
def test_a_figure_of_other_queue_pairs_than_the_intent_s_is_no_measurement(
    count: typing.Optional[int], said: str
) -> None:
    (fabric,) = intent().fabrics
    wanted = Intent((dataclasses.replace(fabric, pods=dataclasses.replace(fabric.pods, queue_pairs=8)),))
    given = facts(pair("a", "b", queue_pairs=count), pair("b", "a", queue_pairs=8))
    finding = found(given, "measured", AB, wanted)
    assert finding.status == ("unknown" if said else "pass") and said in (finding.why or "")


@pytest.mark.parametrize(
    ("ipam", "expected"),
    [
        ({}, ""),
        ({"range": "10.1.0.0/24"}, "an address of 10.1.0.0/24"),
        ({"range_start": "10.0.0.2"}, "an address of 10.0.0.0/24, 10.0.0.2"),
        ({"range": "fd00::/64"}, "an address of fd00::/64"),
        (
            {"type": "nv-ipam", "range": "10.1.0.0/24", "pool": {"name": "p", "per_node_block_size": 8}},
            "an address of 10.1.0.0/24",
        ),
        # stage validate says what is wrong with it
        ({"range": "10.0.0.0"}, ""),
    ],
)
def test_a_pod_has_an_address_of_the_range(ipam: dict[str, typing.Any], expected: str) -> None:
    wanted = intent({"ipam": {"type": "whereabouts", "range": "10.0.0.0/24", **ipam}})
    finding = found(facts(), "pod", "compute a", wanted)
    assert finding.status == ("fail" if expected else "pass"), finding
    if expected:
        assert (finding.measured, finding.expected) == (
            "net1 10.0.0.1",
            expected,
        ) and "is outside the range that ipam of the fabric sets in the intent" in finding.why
        assert finding.remedy.startswith("Run stage network again")


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        ({"exclude": ["10.0.0.0/30"]}, "exclude 10.0.0.0/30"),
        ({"gateway": "10.0.0.1"}, "gateway 10.0.0.1"),
        ({"exclude": ["10.0.0.128/25"], "gateway": "10.0.0.126"}, ""),
        ({"type": "nv-ipam", "pool": {"name": "p", "per_node_block_size": 8}, "exclude": ["10.0.0.1/32"]}, "exclude"),
        ({"type": "nv-ipam", "pool": {"name": "p", "per_node_block_size": 8}, "gateway": "10.0.0.1"}, "gateway"),
        ({"type": "nv-ipam", "pool": {"name": "p", "per_node_block_size": 8}, "gateway": "10.0.0.9"}, ""),
        (
            {
                "type": "nv-ipam",
                "range": "10.0.0.0/16",
                "pool": {"name": "p", "kind": "CIDRPool", "per_node_network_prefix": 24, "gateway_index": 1},
            },
            "gateway_index 1",
        ),
        (
            {
                "type": "nv-ipam",
                "range": "10.0.0.0/16",
                "pool": {"name": "p", "kind": "CIDRPool", "per_node_network_prefix": 24, "gateway_index": 2},
            },
            "",
        ),
    ],
)
def test_a_pod_has_no_address_that_ipam_keeps_for_others(ipam: dict[str, typing.Any], words: str) -> None:
    wanted = intent({"ipam": {"type": "whereabouts", "range": "10.0.0.0/24", **ipam}})
    finding = found(facts(), "pod", "compute a", wanted)
    assert finding.status == ("fail" if words else "pass"), finding
    if words:
        assert finding.measured == "net1 10.0.0.1" and words in finding.expected
        assert "reserves for other uses" in finding.why and "ipam.exclude" in finding.remedy


def test_iterations_may_be_told_of_each_queue_pair_or_of_all() -> None:
    (fabric,) = intent().fabrics
    wanted = Intent((dataclasses.replace(fabric, pods=dataclasses.replace(fabric.pods, iterations=5000)),))
    for told, count, status in ((5000, 8, "pass"), (40000, 8, "pass"), (10000, 8, "unknown"), (40000, None, "unknown")):
        given = facts(pair("a", "b", iterations=told, queue_pairs=count), pair("b", "a"))
        assert found(given, "measured", AB, wanted).status == status, (told, count)


def floor_of(given: Facts, subject: str = AB, wanted: typing.Optional[Intent] = None) -> float:
    """The floor in Gb/s that a finding names."""
    return float(found(given, "floor", subject, wanted).expected.split()[1])


def test_the_smallest_slot_sets_the_floor() -> None:
    # the card of b sits in a generation 4 slot: 252 Gb/s less what headers and flow control take are all that it can
    given = facts(
        pair("a", "b", 200.0),
        pair("b", "a", 200.0),
        seen=ground("ab", b=(400.0, PcieLink(16.0, 16, 32.0, 16, 16.0, 16, 256, 256))),
    )
    finding = found(given, "floor", AB)
    assert finding.status == "pass"
    assert floor_of(given) == pytest.approx(0.92 * 252.06 * 256 / 280 * 0.9, abs=0.01)
    assert "PCIe of b 207.41" in finding.expected


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (ground("ab", read=False), "iblinkinfo: not found"),
        (ground("a"), "node_info reports no HCA for its pod"),
        ({}, "node_info reports no HCA for its pod"),
        (ground("ab", rate=None), "sysfs shows no rate of the port"),
    ],
)
def test_without_what_the_links_could_carry_there_is_no_floor(seen: dict[str, typing.Any], text: str) -> None:
    given = facts(seen=seen)
    finding = found(given, "floor", AB)
    assert finding.status == "unknown" and text in finding.why
    # that is nobody's fault
    assert found(given, "suspect", "compute").status == "pass"
    # what it shall be is as good
    assert found(given, "floor", AB, intent(expected_gbps=400)).status == "pass"


def test_floor_without_two_rates_has_a_cause_in_the_plural() -> None:
    why = found(facts(seen={}), "floor", AB).why
    assert "he highest rates of the links of" in why and " are unknown: " in why


def test_floor_without_a_rate_names_the_nodes_and_their_findings() -> None:
    assert found(facts(seen=ground("a")), "floor", AB).remedy.startswith(
        "Follow the remedy of the finding bandwidth.link of b, then run stage bandwidth again. Or set"
    )
    assert found(facts(pods=PODS[:1]), "floor", AB).remedy == (
        "Follow the remedy of the finding bandwidth.pod of b, then run stage bandwidth again."
    )


def test_link_without_an_hca_names_the_cause_that_is_known() -> None:
    unread = {**ground("ab"), "hcas": {**ground("ab")["hcas"], "b": ObservedHcas(error="timed out")}}
    empty = {**ground("ab"), "hcas": {**ground("ab")["hcas"], "b": ObservedHcas(NodeHcas(()))}}
    for given, why, remedy in (
        (facts(seen=unread), "could not read the HCAs of b: timed out", "the finding discover.node of b"),
        (facts(seen=ground("a")), "node_info did not query b", "the finding discover.node of b"),
        (facts(seen=empty), "The data of b have no HCA of the fabric compute", "the finding fabric.hcas of b"),
    ):
        finding = links(given)["compute b"]
        assert finding.measured == "network link and PCIe link not checked, because no HCA is known"
        assert why in finding.why and remedy in finding.remedy


def test_the_fleet_catches_the_slow_direction() -> None:
    given = facts(pair("a", "b", 373.64), pair("b", "a", 340.0))
    assert found(given, "fleet", AB).status == "pass"
    slow = found(given, "fleet", "compute b -> a")
    assert (slow.status, slow.expected) == ("fail", ">= 347.49 Gb/s (0.93 of the best pair of the rail, 373.64 Gb/s)")


def test_a_figure_beside_a_failure_is_none() -> None:
    # a killed server leaves a perfect table and exit code 1
    given = facts(
        pair("a", "b", failure="peer_gone", evidence="ethernet_read_keys: Couldn't read remote address"), pair("b", "a")
    )
    finding = found(given, "measured", AB)
    assert finding.status == "fail"
    assert "Couldn't read remote address" in finding.measured


@pytest.mark.parametrize("average", [None, 0.0, -1.0])
def test_no_figure_is_no_pass(average: typing.Optional[float]) -> None:
    assert found(facts(pair("a", "b", average), pair("b", "a")), "measured", AB).status == "fail"


@pytest.mark.parametrize(
    ("pings", "failure", "status"),
    [(5, "", "pass"), (4, "", "fail"), (0, "no_address", "fail"), (None, "", "unknown"), (5, "hang", "fail")],
)
def test_rping(pings: typing.Optional[int], failure: str, status: str) -> None:
    assert found(facts(pair("a", "b", pings=pings, ping_failure=failure), pair("b", "a")), "rping", AB).status == status


def test_a_failed_ping_leaves_the_bandwidth_unknown() -> None:
    given = facts(
        pair("a", "b", None, pings=0, ping_failure="no_address", failure="ping", evidence="ADDR_ERROR"), pair("b", "a")
    )
    assert found(given, "measured", AB).status == "unknown"


def test_a_pair_that_was_not_measured_is_unknown_with_the_pod_s_cause() -> None:
    missing = RdmaPod("compute", "b", "", "test", error="the node offers no openshift.io/mlx")
    given = Facts(("a", "b"), BandwidthFacts((PODS[0], missing), ()))
    finding = found(given, "measured", "compute b")
    assert (finding.status, "the node offers no openshift.io/mlx" in finding.why) == ("unknown", True)
    # a has nobody to measure with
    assert found(given, "measured", "compute a").status == "unknown"
    assert found(given, "pod", "compute b").status == "unknown"
    # a pod that was started and is broken is a failure, not an open question
    broken = dataclasses.replace(PODS[1], error="no RDMA device on net1")
    assert found(Facts(("a", "b"), BandwidthFacts((PODS[0], broken), ())), "pod", "compute b").status == "fail"


@pytest.mark.parametrize("given", [Facts(("a", "b"), None), Facts(("a",), BandwidthFacts((), ())), Facts()])
def test_nothing_measured_is_never_good_news(given: Facts) -> None:
    found_statuses = [finding.status for finding in check(intent(), given) if finding.check == "bandwidth.measured"]
    assert found_statuses
    assert set(found_statuses) == {"unknown"}


def test_what_was_left_behind() -> None:
    assert found(facts(remaining=("test/x",)), "cleanup", "pods").status == "fail"
    assert found(facts(leftovers=("test/x",)), "cleanup", "pods").status == "warn"


def test_every_kind_of_failure_has_a_cause_and_a_remedy() -> None:
    kinds = [kind for kinds in typing.get_args(rdma_failure.Kind) for kind in typing.get_args(kinds)]
    assert set(kinds) <= {*CAUSES, *COMPLETIONS}
    assert all(
        why and remedy
        for kind in {*CAUSES, *kinds}
        for wanted in (intent(), ETHERNET)
        for why, remedy in [explain_cause(kind, wanted.fabrics[0])]
    )
    assert PINGS == 5


@pytest.mark.parametrize("kind", sorted(CAUSES))
def test_a_remedy_names_what_to_run_again_once(kind: str) -> None:
    for wanted in (intent(), ETHERNET):
        remedy = explain_cause(kind, wanted.fabrics[0])[1]
        assert "run all stages" not in remedy and remedy.count("un stage bandwidth again") == 1, remedy


def test_a_pod_of_a_network_without_rdma_needs_no_rdma_device() -> None:
    dead = dataclasses.replace(PODS[0], error="the pod ended", cause="pod_gone")
    given = dataclasses.replace(facts(), bandwidth=BandwidthFacts((dead, *PODS[1:]), ()))
    without = intent({"profile": "sriov_ethernet", "rdma": False})
    assert found(given, "pod", "compute a", without).expected == "1 pod with an address on the network"
    assert found(given, "pod", "compute a").expected == "1 pod with an RDMA device and an address on the network"


@pytest.mark.parametrize("number", STATUSES)
def test_each_completion_status_has_a_cause_and_a_remedy_of_its_own(number: int) -> None:
    kind = STATUSES[number].kind
    failed = pair("a", "b", None, failure=kind, evidence=f"Failed status {number}")
    finding = found(facts(failed, pair("b", "a")), "measured", AB)
    assert (finding.status, f"tatus {number}" in finding.why, len(finding.remedy) > 20) == ("fail", True, True)
    assert sum(other.why == COMPLETIONS[kind].why for other in COMPLETIONS.values()) == 1


def test_a_local_protection_error_names_memory_and_no_path() -> None:
    finding = found(
        facts(pair("a", "b", None, failure="local_protection", evidence="Failed status 4"), pair("b", "a")),
        "measured",
        AB,
    )
    assert (
        "could not access the memory of its own program (status 4): the registration is invalid, the IOMMU"
        in finding.why
    )
    assert "dmesg | grep -iE 'DMAR|AMD-Vi|smmu'" in finding.remedy and "peer memory" in finding.remedy
    assert "ibqueryerrors" not in finding.remedy and "same message size" not in finding.remedy


@pytest.mark.parametrize(
    ("kind", "why", "remedy"),
    [
        (
            "provider_abi",
            "rdma-core in the image does not match the driver of the node",
            "Use an image whose rdma-core release matches the driver of the node",
        ),
        ("provider_missing", "the image has no provider library for it", "ibverbs-providers on Debian"),
        ("uverbs_abi", "does not match the verbs of the kernel of the node", "modprobe ib_uverbs"),
    ],
)
def test_an_image_whose_libibverbs_knows_no_device_is_at_fault_and_not_the_pod(
    kind: str, why: str, remedy: str
) -> None:
    finding = found(facts(pair("a", "b", None, failure=kind), pair("b", "a")), "measured", AB)
    assert finding.status == "fail" and why in finding.why and remedy in finding.remedy
    assert "isRdma" not in finding.remedy and "is not in the pod" not in finding.why


def test_rping_s_completion_status_has_the_same_cause() -> None:
    finding = found(
        facts(pair("a", "b", None, pings=0, ping_failure="receiver_not_ready", failure="ping"), pair("b", "a")),
        "rping",
        AB,
    )
    assert finding.why.startswith("The other end had no receive buffer ready")


@pytest.mark.parametrize(
    ("kind", "why", "remedy"),
    [
        (
            "address_family",
            "one end uses IPv4 and the other end IPv6, or the address is an IPv6 link-local address",
            "an address of the same family that is not link-local",
        ),
        (
            "port_in_use",
            "Other processes in the pod's network namespace occupied every port",
            "POD -- ss -ltnp",
        ),
    ],
)
def test_addresses_and_ports_that_rdma_cm_refuses(kind: str, why: str, remedy: str) -> None:
    finding = found(
        facts(pair("a", "b", None, pings=0, ping_failure=kind, failure="ping"), pair("b", "a")), "rping", AB
    )
    assert finding.status == "fail" and why in finding.why and remedy in finding.remedy


def test_gids_of_zeros_name_the_interface_of_the_pod() -> None:
    finding = found(facts(pair("a", "b", None, failure="no_gid"), pair("b", "a")), "measured", AB, ETHERNET)
    assert finding.status == "fail" and "its network interface belongs to another device" in finding.why
    assert (
        "gid_attrs/ndevs" in finding.remedy
        and "the master of a macvlan network must be the interface of the RDMA device itself" in finding.remedy
    )


ETHERNET = intent({"profile": "sriov_ethernet"})
#: words that mislead on InfiniBand
ROCE = re.compile(r"\bPFC\b|\bECN\b|flow control|\bMTU\b|\bDSCP\b|4791|RoCE|iWARP|GID type|GID index")


@pytest.mark.parametrize("kind", sorted({*CAUSES, *COMPLETIONS} - {"network_refused"}))
def test_no_advice_on_roce_is_given_on_infiniband(kind: str) -> None:
    infiniband, ethernet = (" ".join(explain_cause(kind, wanted.fabrics[0])) for wanted in (intent(), ETHERNET))
    assert not ROCE.search(infiniband)
    assert not re.search(r"ibqueryerrors|subnet manager|InfiniBand", ethernet)


def test_the_link_layer_decides_on_the_remedy_of_lost_packets() -> None:
    lost = facts(
        pair("a", "b", None, pings=None, failure="transport_retry", evidence="Failed status 12"), pair("b", "a")
    )
    finding = found(lost, "measured", AB)
    assert "ibqueryerrors" in finding.remedy and not ROCE.search(finding.why + finding.remedy)
    finding = found(lost, "measured", AB, ETHERNET)
    assert "PFC (dcb pfc show)" in finding.remedy and "ibqueryerrors" not in finding.remedy


@pytest.mark.parametrize(
    ("rate", "pings", "named"),
    [(400.0, 5, True), (200.0, 5, False), (400.0, 0, False)],
    ids=["NDR", "HDR, which it knows", "small messages are lost too"],
)
def test_large_messages_that_alone_are_lost_on_ndr_accuse_the_subnet_manager(
    rate: float, pings: int, named: bool
) -> None:
    lost = facts(
        pair("a", "b", None, pings=pings, failure="transport_retry", evidence="Failed status 12"),
        pair("b", "a"),
        seen=ground("ab", rate=rate),
    )
    finding = found(lost, "measured", AB)
    assert finding.status == "fail" and not ROCE.search(finding.why + finding.remedy)
    assert (
        "The small messages of rping arrived, so the path loses only large messages. On NDR switches" in finding.why
    ) is named
    assert (
        finding.remedy.startswith(
            "Find the master subnet manager (sminfo) and its release (run opensm --version on its host)."
        )
        is named
    )


def test_a_slow_pair_and_a_suspect_are_told_of_the_mtu_on_ethernet_alone() -> None:
    slow = facts(pair("a", "b", 200.0), pair("b", "a", 200.0))
    for name, subject in (("floor", AB), ("suspect", "compute a mlx5_0 or b mlx5_0 or leaf leaf")):
        assert not ROCE.search(found(slow, name, subject).remedy)
    assert "MTU" in found(slow, "floor", AB, intent({"profile": "sriov_ethernet"}, floor_gbps=300.0, reason="r")).remedy


RAILS = intent({"select": {"hcas_per_node": 2}})


def rail_pods(*nodes: str, **changes: typing.Any) -> tuple[RdmaPod, ...]:
    return tuple(
        RdmaPod(
            "compute",
            node,
            f"{node}-{rail}",
            "test",
            f"mlx5_{rail}",
            pod_on(node).address if not rail else f"10.1.{rail}.{ord(node)}",
            f"0000:{rail}c:00.2",
            "net1",
            400.0,
            504.12,
            rail=rail,
            **{"physical_function": f"0000:{rail}c:00.0", **changes},
        )
        for node in nodes
        for rail in (0, 1)
    )


def test_rails_are_judged_by_themselves() -> None:
    pairs = [
        pair(*names, average, rail=rail)
        for names in (("a", "b"), ("b", "a"))
        for rail, average in ((0, 373.0), (1, 390.0))
    ]
    given = Facts(("a", "b"), BandwidthFacts(rail_pods("a", "b"), tuple(pairs)), **ground("ab", 2))
    assert set(statuses(given, RAILS).values()) == {"pass"}
    assert found(given, "fleet", "compute a -> b rail 0", RAILS).expected.endswith(
        "(0.93 of the best pair of the rail, 373.00 Gb/s)"
    )
    # each of the two HCAs is a card of its own, with a slot of its own
    assert floor_of(given, "compute a -> b rail 0", RAILS) == pytest.approx(368.0)
    assert found(given, "pod", "compute a rail 1", RAILS).status == "pass"


def test_a_rail_without_a_pod_is_unknown_by_name() -> None:
    missing = RdmaPod(
        "compute", "b", "", "test", error="none of the 9 virtual functions is of rail 1", rail=1, cause="rail"
    )
    pods = (*(pod for pod in rail_pods("a", "b") if (pod.node, pod.rail) != ("b", 1)), missing)
    given = Facts(("a", "b"), BandwidthFacts(pods, (pair("a", "b"), pair("b", "a"))), **ground("ab", 2))
    assert found(given, "pod", "compute b rail 1", RAILS).status == "unknown"
    assert found(given, "measured", "compute b rail 1", RAILS).status == "unknown"
    assert "compute b rail 0" not in {finding.subject for finding in check(RAILS, given) if finding.status != "pass"}


def test_virtual_functions_that_measure_at_once_share_port_and_card() -> None:
    # two ports of one card, in a slot of 504 Gb/s
    pods = tuple(dataclasses.replace(pod, physical_function=f"0000:3c:00.{pod.rail}") for pod in rail_pods("a", "b"))
    given = Facts(("a", "b"), BandwidthFacts(pods, (pair("a", "b"), pair("b", "a"))), **ground("ab", 2))
    finding = found(given, "floor", "compute a -> b rail 0", RAILS)
    assert floor_of(given, "compute a -> b rail 0", RAILS) == pytest.approx(0.92 * 414.82 / 2, abs=0.01)
    assert "PCIe of a 414.82 / 2 VFs at once" in finding.expected
    serial = intent({"select": {"hcas_per_node": 2}, "bandwidth": {"rails": "serial"}})
    assert floor_of(given, "compute a -> b rail 0", serial) == pytest.approx(368.0)
    # two virtual functions of one port
    shared = tuple(dataclasses.replace(pod, physical_function="0000:0c:00.0") for pod in pods)
    given = dataclasses.replace(given, bandwidth=BandwidthFacts(shared, (pair("a", "b", 190.0), pair("b", "a", 190.0))))
    assert floor_of(given, "compute a -> b rail 0", RAILS) == pytest.approx(0.92 * 400 / 2, abs=0.01)


@pytest.mark.parametrize(
    "at",
    [{"physical_function": "0000:1c:00.0", "pci": "0000:1c:00.2"}, {"physical_function": None, "pci": "0000:1c:00.0"}],
)
def test_an_end_is_judged_by_the_hca_that_its_pod_has(at: dict[str, typing.Any]) -> None:
    seen = ground("ab", 2)
    for node in "ab":
        first, second = seen["hcas"][node].value.hcas
        small = dataclasses.replace(
            second, pci=dataclasses.replace(second.pci, link=PcieLink(16.0, 16, 32.0, 16, 16.0, 16, 256, 256))
        )
        seen["hcas"][node] = ObservedHcas(NodeHcas((first, small)))
    pods = tuple(dataclasses.replace(pod, **at) for pod in rail_pods("a", "b") if pod.rail == 0)
    given = Facts(("a", "b"), BandwidthFacts(pods, (pair("a", "b", 200.0), pair("b", "a", 200.0))), **seen)
    assert floor_of(given, "compute a -> b rail 0", RAILS) == pytest.approx(0.92 * 207.41, abs=0.01)


def test_both_directions_at_once_have_twice_the_link() -> None:
    wanted = intent({"bandwidth": {"directions": "at_once"}})
    given = facts(pair("a", "b", 700.0))
    finding = found(given, "floor", "compute a <-> b", wanted)
    assert (finding.status, finding.expected.split(" (")[0]) == ("fail", ">= 736.00 Gb/s")
    assert {key: status for key, status in statuses(given, wanted).items() if key[0] == "measured"} == {
        ("measured", "compute a <-> b"): "pass"
    }


@pytest.mark.parametrize(
    ("retried", "status", "told"),
    [
        ((), "pass", None),
        (
            ("crash", "port_in_use", "exec_lost", "not_listening"),
            "pass",
            "crash, port in use, exec lost, not listening",
        ),
        # neighbours may not know a port that has just come up
        (("no_address",), "pass", "no address"),
        (("no_address", "no_address"), "warn", "no address (2 times)"),
        (("disconnected",), "warn", "disconnected"),
        (("crash", "disconnected", "disconnected"), "warn", "crash, disconnected (2 times)"),
    ],
)
@pytest.mark.parametrize("by_rdma", [True, False])
def test_a_pair_that_passes_after_it_was_lost_is_told(
    by_rdma: bool, retried: tuple[str, ...], status: str, told: typing.Optional[str]
) -> None:
    wanted, given = (intent(), facts(pair("a", "b"), pair("b", "a"))) if by_rdma else tcp(91.0, 91.0)
    measured = typing.cast(BandwidthFacts, given.bandwidth)
    pairs = (dataclasses.replace(measured.pairs[0], retried=retried), *measured.pairs[1:])
    given = dataclasses.replace(given, bandwidth=dataclasses.replace(measured, pairs=pairs))
    finding = found(given, "rping" if by_rdma else "measured", AB if by_rdma else "pods a -> b", wanted)
    assert finding.status == status
    assert finding.measured.partition("; earlier attempts failed: ")[2] == (told or "")
    if status == "warn":
        assert f"only at attempt {len(retried) + 1}" in (finding.why or "")


@pytest.mark.parametrize(("average", "status"), [(390.0, "fail"), (739.9, "fail"), (740.0, "pass")])
def test_an_absolute_floor_is_that_of_each_direction(average: float, status: str) -> None:
    """Both at once give the sum: 390 Gb/s are 195 Gb/s in each direction."""
    wanted = intent({"bandwidth": {"directions": "at_once"}}, floor_gbps=370.0, reason="acceptance line")
    finding = found(facts(pair("a", "b", average)), "floor", "compute a <-> b", wanted)
    assert (finding.status, finding.expected) == (
        status,
        ">= 740.00 Gb/s (2 x the absolute floor of the intent: 370.00 Gb/s; reason: acceptance line)",
    )


def test_an_hca_that_runs_on_the_wrong_cpus_is_said_beside_a_low_figure() -> None:
    words = "on other CPUs (0-3) than those of the HCA's NUMA node 1 (4-7)"
    pods = (
        dataclasses.replace(PODS[0], binding=words, far_cpus=True),
        dataclasses.replace(PODS[1], binding="on CPUs 0-7 of NUMA node 0"),
    )
    given = facts(pair("a", "b", 200.0), pair("b", "a", 200.0), pods=pods)
    finding = found(given, "floor", AB)
    assert (
        f"The pod on a ran {words}, but its HCA is on another NUMA node, so all of its data crosses" in finding.why
        and "The pod on b" not in finding.why
        and "CPU binding of the pods: b: on CPUs 0-7" in finding.why
    )
    assert "topologyManagerPolicy" in finding.remedy and "kubelet configuration of a" in finding.remedy
    assert "on other CPUs (0-3)" in found(given, "pod", "compute a").measured


def limited(node: str, rate: typing.Optional[int], address: str = "0000:3c:00.2") -> dict[str, ObservedHcas]:
    """What a node shows after its virtual functions were made: that of the pods is the one at ``0000:3c:00.2``."""
    physical = Hca("mlx5_0", "mlx5_0", (Netdev("ib0", "00"),), PciFunction("0000:0c:00.0", "15b3", "1021", "0207"))
    administration = None if rate is None else VfAdministration(max_tx_rate=rate)
    virtual = Hca(
        address,
        pci=PciFunction(address, "15b3", "1022", "0207"),
        physical_function="0000:0c:00.0",
        vf_index=3,
        administration=administration,
    )
    return {node: ObservedHcas(NodeHcas((physical, virtual)))}


def test_a_rate_limit_of_the_sender_s_virtual_function_is_named() -> None:
    given = dataclasses.replace(facts(pair("a", "b", 99.0), pair("b", "a", 373.6)), functions=limited("a", 100000))
    finding = found(given, "floor", AB)
    assert "limits 0000:3c:00.2 of a, VF 3 of ib0, to 100 Gb/s (max_tx_rate 100000)" in finding.why
    assert (
        "Run on a, as root: ip link set ib0 vf 3 max_tx_rate 0" in finding.remedy
        and "network.max_tx_rate" in finding.remedy
    )
    assert found(given, "floor", "compute b -> a").status == "pass"


def test_it_is_named_by_what_the_node_showed_before_too() -> None:
    given = facts(pair("a", "b", 99.0))
    assert (
        "max_tx_rate"
        in found(
            dataclasses.replace(given, hcas={**given.hcas, **limited("a", 100000)}),
            "floor",
            AB,
            intent(floor_gbps=300.0, reason="r"),
        ).why
    )


@pytest.mark.parametrize(
    "functions",
    [
        pytest.param(limited("b", 100000), id="the receiver's"),
        pytest.param(limited("a", 0), id="none"),
        pytest.param(limited("a", None), id="not shown"),
        pytest.param(limited("a", 380000), id="above the floor"),
        pytest.param(limited("a", 100000, "0000:3c:00.3"), id="another one's"),
        pytest.param({"a": ObservedHcas(None, "unreachable")}, id="not known"),
    ],
)
def test_what_holds_nobody_back_is_not_named(functions: dict[str, ObservedHcas]) -> None:
    finding = found(dataclasses.replace(facts(pair("a", "b", 99.0)), functions=functions), "floor", AB)
    assert (
        finding.status == "fail"
        and "max_tx_rate" not in finding.why + finding.remedy
        and "bandwidth.suspect" in finding.remedy
    )


def test_a_limit_makes_no_figure_good() -> None:
    given = dataclasses.replace(facts(pair("a", "b", 99.9)), functions=limited("a", 100000))
    assert found(given, "floor", AB).status == "fail"


def fleet(
    nodes: str,
    bad: typing.Union[str, tuple[typing.Union[str, tuple[str, str]], ...]] = (),
    rounds: None = None,
    again: tuple[()] = (),
) -> Facts:
    """Each pair of the nodes, slow where it is in ``bad`` or has a node that is."""
    names = [(one, other) for one in nodes for other in nodes if one != other]
    pods = tuple(pod_on(node) for node in nodes)
    pairs = tuple(pair(*both, 200.0 if set(both) & set(bad) or both in bad else 373.64) for both in names)
    return Facts(tuple(nodes), BandwidthFacts(pods, pairs), **ground(nodes))


def suspected(given: Facts) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check(intent(), given) if finding.check == "bandwidth.suspect"}


def test_nobody_is_suspected_where_all_pass() -> None:
    assert [finding.status for finding in suspected(fleet("abcd")).values()] == ["pass"]


def test_a_slow_node_is_named_with_its_hca_and_nobody_else() -> None:
    ((subject, finding),) = suspected(fleet("abcdef", bad=("d",))).items()
    assert (subject, finding.status) == ("compute d mlx5_0", "fail")
    assert "0000:0c:00.0, rail 0, leaf leaf port 4" in finding.why


def test_a_slow_path_accuses_neither_end() -> None:
    ((subject, finding),) = suspected(fleet("abcdef", bad=(("a", "d"), ("d", "a")))).items()
    assert (subject, finding.status) == ("compute path a mlx5_0 <-> d mlx5_0", "fail")


def test_of_two_nodes_neither_can_be_accused_alone() -> None:
    ((subject, finding),) = suspected(fleet("ab", bad="b")).items()
    assert subject == "compute a mlx5_0 or b mlx5_0 or leaf leaf"
    assert "cannot distinguish these components" in finding.why


def test_a_node_that_is_slow_on_all_rails_is_named_once() -> None:
    nodes = "abcdef"
    pairs = tuple(
        pair(one, other, 200.0 if "d" in (one, other) else 373.64, rail=rail)
        for rail in (0, 1)
        for one in nodes
        for other in nodes
        if one != other
    )
    given = Facts(tuple(nodes), BandwidthFacts(rail_pods(*nodes), pairs), **ground(nodes, 2))
    accused = [(item.subject, item.status) for item in check(RAILS, given) if item.check == "bandwidth.suspect"]
    assert accused == [("compute d", "fail")]


def test_one_slow_direction_has_nothing_in_common_with_others_and_is_told() -> None:
    ((subject, finding),) = suspected(fleet("abcdef", bad=(("a", "d"),))).items()
    assert (subject, finding.status) == ("compute", "fail")
    assert finding.measured.endswith("measurements failed: a mlx5_0 -> d mlx5_0")


def test_verdicts_of_a_pair_need_both_directions() -> None:
    given = fleet("abc", bad=(("a", "b"),))
    passed, failed = split_verdicts(
        intent().fabrics[0],
        typing.cast(BandwidthFacts, given.bandwidth).pods,
        typing.cast(BandwidthFacts, given.bandwidth).pairs,
        given,
    )
    assert failed == {frozenset(((0, "a"), (0, "b")))}
    assert len(passed) == 2


@pytest.mark.parametrize(("rounds", "met", "status"), [(None, 2, "unknown"), (1, 1, None), (2, 1, "unknown")])
def test_who_met_fewer_than_it_should_is_unknown(
    rounds: typing.Optional[int], met: int, status: typing.Optional[str]
) -> None:
    nodes = ("a", "b", "c", "d")
    pairs = [
        pair(one, other)
        for one, other in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("a", "c"), ("c", "a"))[
            : 6 if met == 2 else 4
        ]
    ]
    given = Facts(nodes, BandwidthFacts(tuple(pod_on(node) for node in nodes), tuple(pairs)))
    wanted = intent({"bandwidth": {"rounds": rounds}} if rounds else None)
    assert statuses(given, wanted).get(("measured", "compute d")) == status


@pytest.mark.parametrize(
    ("failure", "rows", "status"),
    [("", ((2, 0.1), (4, 0.2)), "pass"), ("hang: no end", (), "unknown"), ("", (), "unknown")],
)
def test_a_sweep_that_was_asked_for(failure: str, rows: tuple[tuple[int, float], ...], status: str) -> None:
    wanted = intent({"bandwidth": {"sweep": True}})
    swept = pair("a", "b", sweep=tuple(SweepRow(*row) for row in rows), sweep_failure=failure)
    finding = found(facts(swept, pair("b", "a")), "sweep", AB, wanted)
    assert finding.status == status
    assert not rows or "4 bytes: 0.2000 Gb/s" in finding.measured


def test_an_image_that_cannot_be_pulled_is_told_by_the_kubelet_s_words() -> None:
    error = (
        'the pod did not become ready: ErrImagePull: Get "https://r/v2/": x509: certificate signed by unknown authority'
    )
    broken = dataclasses.replace(PODS[1], error=error, cause="image")
    finding = found(Facts(("a", "b"), BandwidthFacts((PODS[0], broken), ())), "pod", "compute b")
    assert finding.status == "fail" and error in finding.why and "does not trust the certificate" in finding.why
    assert "additionalTrustedCA" in finding.remedy


@pytest.mark.parametrize("cause", ["refused", "stuck", "unschedulable", "container", "rail", "no_tool", "no_device"])
def test_a_pod_s_trouble_has_a_remedy_of_its_own(cause: str) -> None:
    broken = dataclasses.replace(PODS[1], error="the server's words", cause=cause)
    finding = found(Facts(("a", "b"), BandwidthFacts((PODS[0], broken), ())), "pod", "compute b")
    remedy = name_ends(explain_cause(cause, intent().fabrics[0])[1], ["b"], [broken.name])
    assert (finding.status, finding.remedy) == ("fail", remedy)
    assert "the server's words" in finding.why


@pytest.mark.parametrize(
    ("evidence", "measured", "why"),
    [
        ("", "5 round trips, rping failed without an error message", "rping failed after 5 round trips and printed"),
        (
            "exit code 9: odd",
            "5 round trips; exit code 9: odd",
            "The measuring tool ended with an error whose cause linerate.rdma",
        ),
    ],
)
def test_rping_failure_without_a_text_does_not_refer_to_one(evidence: str, measured: str, why: str) -> None:
    given = facts(pair("a", "b", ping_failure="exit_code", ping_evidence=evidence), pair("b", "a"))
    finding = found(given, "rping", AB)
    assert finding.measured == measured and finding.why.startswith(why)
    assert ("under 'measured'" in finding.remedy) == bool(evidence)


# A floor that does not sink with the fault


def links(given: Facts, wanted: typing.Optional[Intent] = None) -> dict[str, Finding]:
    return {
        finding.subject: finding for finding in check(wanted or intent(), given) if finding.check == "bandwidth.link"
    }


def slower(average: float, pods: tuple[RdmaPod, ...] = PODS, **seen: typing.Any) -> Facts:
    return facts(pair("a", "b", average), pair("b", "a", average), pods=pods, seen=ground("ab", **seen))


def test_links_that_run_as_they_can_are_told() -> None:
    finding = links(facts())["compute a mlx5_0"]
    assert (finding.status, finding.measured) == ("pass", "400 Gb/s, PCIe 32 GT/s x16 with packets of 256 bytes")
    assert finding.expected == "400 Gb/s (iblinkinfo), PCIe 32 GT/s x16 with packets of 256 bytes"


def test_pcie_that_trained_down_fails_the_pair_and_its_hca() -> None:
    # generation 3 x4 under NDR: 30.1 of the 31.5 Gb/s that are left
    trained = PcieLink(8.0, 4, 32.0, 16, 32.0, 16, 256, 256)
    pods = (PODS[0], dataclasses.replace(PODS[1], pcie_gbps=31.5))
    given = slower(28.5, pods, b=(400.0, trained))
    assert found(given, "floor", AB).status == "fail"
    assert links(given)["compute a mlx5_0"].status == "pass"
    finding = links(given)["compute b mlx5_0"]
    assert (finding.status, finding.measured) == ("fail", "400 Gb/s, PCIe 8 GT/s x4 with packets of 256 bytes")
    assert (
        "PCIe 32 GT/s x16" in finding.expected
        and "below the rate that both the card and the slot support" in finding.why
    )
    # both are as bad: nobody is faster, and both are named
    both = slower(28.5, tuple(dataclasses.replace(pod, pcie_gbps=31.5) for pod in PODS), link=trained)
    assert [finding.status for finding in links(both).values()] == ["fail", "fail"]
    assert found(both, "floor", AB).status == "fail"
    # 30.1 Gb/s are more than headers leave of such a link
    assert found(slower(30.1, pods, b=(400.0, trained)), "measured", AB).status == "unknown"


@pytest.mark.parametrize(
    ("rate", "width", "text", "could"),
    [
        (25.0, 1, "4X, 106.25 Gbps", "400"),
        (100.0, 1, "4X", "400"),
        (200.0, 2, "4X", "400"),
        (100.0, 4, "106.25 Gbps", "400"),
        (200.0, 4, "106.25 Gbps", "400"),
        (40.0, 4, "14.0625 Gbps", "56"),
        (2.5, 1, "4X, 10.0 Gbps (FDR10)", "40"),
        (400.0, 4, "212.5 Gbps", "800"),
    ],
)
def test_a_link_below_what_both_of_its_ends_can_do(rate: float, width: int, text: str, could: str) -> None:
    # of one node, and of all: the fastest is no measure
    for slow in ({"b": text}, {"a": text, "b": text}):
        seen = ground("ab", link=GEN6, slow=slow, **({"b": (rate, GEN6)} if len(slow) == 1 else {"rate": rate}))
        for node in slow:
            (hca,) = seen["hcas"][node].value.hcas
            port = dataclasses.replace(hca.ports[0], width=width)
            seen["hcas"][node] = ObservedHcas(NodeHcas((dataclasses.replace(hca, ports=(port,)),)))
        pods = tuple(dataclasses.replace(pod, rate_gbps=rate if pod.node in slow else 400.0) for pod in PODS)
        given = facts(pair("a", "b", 0.97 * rate), pair("b", "a", 0.97 * rate), pods=pods, seen=seen)
        # one port of 400 is all that the pair can have
        assert found(given, "floor", AB).status == ("pass" if rate == 400 and len(slow) == 1 else "fail")
        finding = links(given)["compute b mlx5_0"]
        assert finding.status == "fail" and "below the rate that both of its ends support" in finding.why
        assert f"{could} Gb/s (iblinkinfo: could be {text})" in finding.expected


def test_old_speeds_are_told_with_their_encoding() -> None:
    # QDR: 40 Gb/s, of which 32 are data
    seen = ground("ab", rate=40.0)
    for node in "ab":
        (hca,) = seen["hcas"][node].value.hcas
        seen["hcas"][node] = ObservedHcas(
            NodeHcas((dataclasses.replace(hca, ports=(dataclasses.replace(hca.ports[0], width=4, speed="QDR"),)),))
        )
    pods = tuple(dataclasses.replace(pod, rate_gbps=40.0) for pod in PODS)
    for average, status in ((30.0, "pass"), (29.0, "fail")):
        assert (
            found(facts(pair("a", "b", average), pair("b", "a", average), pods=pods, seen=seen), "floor", AB).status
            == status
        )


@pytest.mark.parametrize(
    ("rate", "speed", "expected", "status"),
    [
        (40.0, "QDR", 32, "pass"),
        (56.0, "FDR", 54.3, "pass"),
        (400.0, "NDR", 320, "unknown"),
        (400.0, "NDR", 400, "pass"),
    ],
)
def test_a_link_may_be_named_by_its_rate_without_the_encoding(
    rate: float, speed: str, expected: float, status: str
) -> None:
    """Of QDR the kernel tells 40 Gb/s, of which 32 are data; of 400 Gb/s of NDR nobody means 320."""
    seen = ground("ab", rate=rate)
    for node in "ab":
        (hca,) = seen["hcas"][node].value.hcas
        port = dataclasses.replace(hca.ports[0], width=4, speed=speed, rate_gbps=rate)
        seen["hcas"][node] = ObservedHcas(NodeHcas((dataclasses.replace(hca, ports=(port,)),)))
    given = facts(pair("a", "b", rate), pair("b", "a", rate), seen=seen)
    found_one = links(given, intent(expected_gbps=expected))["compute a mlx5_0"]
    assert found_one.status == status and ("the intent gives no reason" in found_one.why) == (status == "unknown")


@pytest.mark.parametrize("words", ["undefined (8)", "4X", "25.78125 Gbps"])
def test_what_iblinkinfo_says_in_other_words_is_not_known(words: str) -> None:
    # a port that could be what it is says nothing
    given = slower(97.0, slow={"b": words}, rate=100.0)
    assert links(given)["compute b mlx5_0"].status == "unknown"
    assert found(given, "floor", AB).status == "unknown"


def changed(node: str, seen: typing.Optional[dict[str, typing.Any]] = None, **of_port: None) -> dict[str, typing.Any]:
    """Facts of which the port of a node is another one."""
    seen = seen or ground("ab")
    (hca,) = seen["hcas"][node].value.hcas
    seen["hcas"][node] = ObservedHcas(
        NodeHcas((dataclasses.replace(hca, ports=(dataclasses.replace(hca.ports[0], **of_port),)),))
    )
    return seen


def test_a_port_without_a_width_can_be_compared_with_nothing() -> None:
    given = facts(seen=changed("b", ground("ab", slow={"b": "106.25 Gbps"}), width=None))
    assert (links(given)["compute a mlx5_0"].status, links(given)["compute b mlx5_0"].status) == ("pass", "unknown")


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        ({}, "pass", ""),
        # two links have four ends
        ({"capabilities": SeenCapabilities(links=3)}, "unknown", "iblinkinfo did not report all ports"),
        ({"capabilities": None}, "unknown", "iblinkinfo was not run"),
        ({"topology": None, "error": "ibnetdiscover: no answer"}, "unknown", "ibnetdiscover: no answer"),
    ],
)
def test_what_was_not_read_of_a_fabric_is_not_taken_for_the_best_that_a_link_can_be(
    changes: dict[str, typing.Any], status: str, text: str
) -> None:
    seen = ground("ab")
    seen["topologies"] = {
        "a": ObservedTopologies(tuple(dataclasses.replace(one, **changes) for one in seen["topologies"]["a"].value))
    }
    finding = links(facts(seen=seen))["compute b mlx5_0"]
    assert (finding.status, text in finding.why) == (status, True)


def test_an_hca_without_a_pci_address_has_no_link_to_judge() -> None:
    seen = ground("ab")
    (hca,) = seen["hcas"]["b"].value.hcas
    seen["hcas"]["b"] = ObservedHcas(NodeHcas((dataclasses.replace(hca, pci=None),)))
    assert links(facts(seen=seen))["compute b"].status == "unknown"


def test_the_intent_tells_what_the_links_shall_be() -> None:
    pods = tuple(dataclasses.replace(pod, rate_gbps=100.0) for pod in PODS)
    given = slower(97.0, pods, rate=100.0)
    assert {found(given, "floor", AB).status, links(given)["compute a mlx5_0"].status} == {"pass"}
    wanted = intent(expected_gbps=400)
    assert {found(given, "floor", AB, wanted).status, links(given, wanted)["compute a mlx5_0"].status} == {"fail"}
    # and it may be less than what they can
    less = slower(97.0, pods, rate=100.0, slow={"a": "106.25 Gbps", "b": "106.25 Gbps"})
    assert found(less, "floor", AB).status == "fail"
    assert {
        found(less, "floor", AB, intent(expected_gbps=100)).status,
        links(less, intent(expected_gbps=100))["compute a mlx5_0"].status,
    } == {"pass"}


@pytest.mark.parametrize(
    ("link", "status", "text"),
    [
        # a slot that is smaller than the card is no fault, and neither are the figures in it
        (
            PcieLink(16.0, 16, 32.0, 16, 16.0, 16, 256, 256),
            "warn",
            "The slot has fewer lanes or a lower speed than the card",
        ),
        (PcieLink(16.0, 16, 32.0, 16), "unknown", "the rate that the slot supports is unknown"),
        (PcieLink(32.0, 8, 32.0, 16, 32.0, 16), "fail", "below the rate that both the card and the slot support"),
        (PcieLink(32.0, 16, 32.0, 16, 32.0, 16, 128, 512), "warn", "MaxPayload"),
        (PcieLink(32.0, 16, 32.0, 16, 64.0, 16, 512, 512), "pass", ""),
        # what a hypervisor makes up above a card that it hands over, and a link that nobody knows
        (PcieLink(32.0, 16, 32.0, 16, 2.5, 1, 256, 256), "pass", ""),
        (PcieLink(), "pass", ""),
    ],
)
def test_what_is_said_of_a_pcie_link(link: PcieLink, status: str, text: str) -> None:
    finding = links(slower(373.64, link=link))["compute a mlx5_0"]
    assert (finding.status, text in finding.why) == (status, True)


def test_of_several_things_about_a_link_the_worst_counts() -> None:
    # headers take more than they must, and the port trained down
    given = slower(97.0, b=(100.0, PcieLink(32.0, 16, 32.0, 16, 32.0, 16, 128, 512)), slow={"b": "106.25 Gbps"})
    finding = links(given)["compute b mlx5_0"]
    assert finding.status == "fail" and "MaxPayload" in finding.why and "below the rate that both" in finding.why


def test_a_slot_that_is_not_known_leaves_nothing_open_where_the_intent_sets_the_floor() -> None:
    given = slower(373.64, link=PcieLink(16.0, 16, 32.0, 16))
    assert links(given, intent(floor_gbps=370.0, reason="acceptance line"))["compute a mlx5_0"].status == "warn"


@pytest.mark.parametrize(
    ("link", "rate", "passes", "fails", "most"),
    [
        # a healthy pair in a slot of generation 5 x4
        (PcieLink(32.0, 4, 32.0, 4, 32.0, 4, 256, 256), 200.0, 97.28, 90.0, 116.9),
        (PcieLink(32.0, 4, 32.0, 4, 32.0, 4), 200.0, 97.28, 90.0, 126.0),
        (PcieLink(32.0, 4, 32.0, 4, 32.0, 4, 512, 512), 200.0, 97.28, 90.0, 121.3),
        # generation 3 x8: 57.6 at most for writes with packets of 256 bytes
        (PcieLink(8.0, 8, 8.0, 8, 8.0, 8, 256, 256), 100.0, 52.0, 45.0, 58.4),
        (PcieLink(8.0, 8, 8.0, 8, 8.0, 8, 128, 128), 100.0, 46.0, 40.0, 58.4),
        (PcieLink(5.0, 8, 5.0, 8, 5.0, 8, 256, 256), 40.0, 26.0, 22.0, 29.7),
    ],
)
def test_what_packets_leave_of_pcie_is_the_floor(
    link: PcieLink, rate: float, passes: float, fails: float, most: float
) -> None:
    assert link.current_speed is not None and link.current_width is not None
    width, raw = (
        link.current_width,
        link.current_speed * link.current_width * (0.8 if link.current_speed < 8 else 128 / 130),
    )
    assert width
    pods = tuple(dataclasses.replace(pod, rate_gbps=rate, pcie_gbps=raw) for pod in PODS)
    for average, status in ((passes, "pass"), (fails, "fail")):
        assert found(slower(average, pods, rate=rate, link=link), "floor", AB).status == status
    for average, status in ((most, "pass"), (most * 1.03, "unknown")):
        assert found(slower(average, pods, rate=rate, link=link), "measured", AB).status == status


# What is no measurement


@pytest.mark.parametrize(
    ("changes", "expected", "remedy"),
    [
        (
            {"message_bytes": 65536},
            "a bandwidth measured with the requested messages",
            "head nvcr.io/nvidia/doca/doca:3.1.0-full-rt-host -c 4 /usr/bin/ib_write_bw",
        ),
        ({"average_gbps": 9000.0, "peak_gbps": None}, "within the capacity of the link", "current_clocksource"),
    ],
)
def test_a_figure_that_is_not_valid_has_the_remedy_of_its_cause(
    changes: dict[str, typing.Any], expected: str, remedy: str
) -> None:
    given = fleet("ab")
    measured = typing.cast(BandwidthFacts, given.bandwidth)
    pairs = tuple(dataclasses.replace(one, **changes) for one in measured.pairs)
    given = dataclasses.replace(given, bandwidth=dataclasses.replace(measured, pairs=pairs))
    finding = found(given, "measured", AB)
    assert expected in finding.expected and remedy in finding.remedy


def test_remedy_of_a_figure_does_not_depend_on_the_name_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = Doubt("rate", "The figure is above the capacity of the link: port of requested-1 400 Gb/s.")
    monkeypatch.setattr(PairLimits, "doubt", lambda self, pair, more_than=None: doubt)
    finding = found(fleet("ab"), "measured", AB)
    assert finding.why == doubt.text
    assert "within the capacity of the link" in finding.expected and "current_clocksource" in finding.remedy
    # two virtual machines with functions of one card come before a clock that is wrong
    assert finding.remedy.index("virtual machines on one host") < finding.remedy.index("the clock of")


@pytest.mark.parametrize(
    ("changes", "wanted", "text"),
    [
        ({"average_gbps": 9000.0, "peak_gbps": None}, {}, "above the capacity of the link: port of"),
        ({"average_gbps": 420.0, "peak_gbps": 421.0}, {}, "above the capacity of the link"),
        ({"average_gbps": 380.0, "peak_gbps": 370.0}, {}, "above the peak of the same measurement, 370.00 Gb/s"),
        ({"average_gbps": 0.9, "peak_gbps": 0.5}, {}, "above the peak of the same measurement, 0.5000 Gb/s"),
        ({"iterations": 0}, {}, "from 0 messages"),
        ({"iterations": None}, {}, "from an unknown number of messages"),
        ({"message_bytes": 65536}, {}, "1048576 bytes were requested"),
        ({"message_bytes": 8388608}, {}, "1048576 bytes were requested"),
        ({"iterations": 4999}, {"pods": {"iterations": 5000}}, "5000 were requested"),
    ],
)
def test_what_is_no_measurement_accuses_nobody(
    changes: dict[str, typing.Any], wanted: dict[str, typing.Any], text: str
) -> None:
    nodes = "abcd"
    given = fleet(nodes)
    odd = tuple(
        dataclasses.replace(one, **changes) if (one.client, one.server) == ("a", "b") else one
        for one in typing.cast(BandwidthFacts, given.bandwidth).pairs
    )
    given = dataclasses.replace(
        given, bandwidth=dataclasses.replace(typing.cast(BandwidthFacts, given.bandwidth), pairs=odd)
    )
    findings = check(intent(wanted), given)
    assert {(finding.check, finding.subject) for finding in findings if finding.status != "pass"} == {
        ("bandwidth.measured", AB)
    }
    finding = found(given, "measured", AB, intent(wanted))
    assert (finding.status, text in finding.why, bool(finding.remedy)) == ("unknown", True, True)
    # neither does any other stage take it, nor is it asked of its ends again
    assert (
        len(keep_valid_results(intent(wanted).fabrics, typing.cast(BandwidthFacts, given.bandwidth), given).pairs) == 11
    )
    passed, failed = split_verdicts(
        intent(wanted).fabrics[0],
        typing.cast(BandwidthFacts, given.bandwidth).pods,
        typing.cast(BandwidthFacts, given.bandwidth).pairs,
        given,
    )
    assert not failed and len(passed) == 6


def test_without_any_measurement_nobody_is_cleared() -> None:
    given = facts(pair("a", "b", 9000.0), pair("b", "a", 9000.0))
    assert found(given, "suspect", "compute").status == "unknown"


def test_figures_at_the_edge_of_what_a_link_carries_count() -> None:
    for average, peak in ((400.0, 400.0), (404.0, 404.0), (373.64, 373.64), (0.11, 0.11)):
        assert found(facts(pair("a", "b", average, peak_gbps=peak), pair("b", "a")), "measured", AB).status == "pass"
    wanted = intent({"bandwidth": {"directions": "at_once"}})
    for average, status in ((790.0, "pass"), (830.0, "unknown")):
        assert found(facts(pair("a", "b", average)), "measured", "compute a <-> b", wanted).status == status


def test_no_figure_is_above_the_port_that_a_pod_saw_where_its_node_shows_no_hca() -> None:
    pods = tuple(dataclasses.replace(pod, pcie_gbps=None) for pod in PODS)
    for average, status in ((373.64, "pass"), (410.0, "unknown")):
        assert (
            found(facts(pair("a", "b", average), pair("b", "a", average), pods=pods, seen={}), "measured", AB).status
            == status
        )


def test_a_port_that_came_up_slower_in_a_pod_than_it_is_now_bounds_nothing() -> None:
    pods = tuple(dataclasses.replace(pod, rate_gbps=200.0) for pod in PODS)
    assert found(facts(pods=pods), "measured", AB).status == "pass"


def test_hcas_of_an_answer_with_an_error_are_not_known() -> None:
    seen = ground("ab")
    seen["hcas"]["b"] = dataclasses.replace(seen["hcas"]["b"], error="torn")
    given = facts(seen=seen)
    assert links(given)["compute b"].status == "unknown"
    assert found(given, "floor", AB).status == "unknown"


# Fleets of several kinds


def test_a_pair_is_not_compared_with_those_whose_links_are_known_where_its_own_are_not() -> None:
    nodes = "abc"
    pods = tuple(pod_on(node) for node in nodes)
    pairs = tuple(
        pair(one, other, 200.0 if "c" in (one, other) else 373.64) for one in nodes for other in nodes if one != other
    )
    given = Facts(tuple(nodes), BandwidthFacts(pods, pairs), **ground("ab"))
    assert found(given, "fleet", "compute a -> c").status == "pass"
    assert [finding.status for finding in suspected(given).values()] == ["pass"]


@pytest.mark.parametrize(("of_pods", "of_nodes"), [(True, False), (False, True)])
def test_slower_links_are_no_fault_whoever_tells_their_rate(of_pods: bool, of_nodes: bool) -> None:
    nodes = "abcd"
    rates = {"a": 400.0, "b": 400.0, "c": 200.0, "d": 200.0}
    pods = tuple(pod_on(node, rate_gbps=rates[node] if of_pods else None) for node in nodes)
    pairs = tuple(
        pair(one, other, 0.95 * min(rates[one], rates[other])) for one in nodes for other in nodes if one != other
    )
    of_links: dict[str, typing.Any] = {node: (rate if of_nodes else None, GEN5) for node, rate in rates.items()}
    seen = ground(nodes, read=False, **of_links)
    given = Facts(tuple(nodes), BandwidthFacts(pods, pairs), **seen)
    assert found(given, "fleet", "compute c -> d").status == "unknown"
    assert [finding.status for finding in suspected(given).values()] == ["pass"]


def test_slower_hcas_are_compared_with_their_like() -> None:
    # HDR beside NDR, or a split cable: both ends of each link can do no more
    nodes = "abcdef"
    rates = {"d": 200.0, "e": 200.0, "f": 200.0}
    of_links: dict[str, typing.Any] = {name: (rate, GEN5) for name, rate in rates.items()}
    pods = tuple(pod_on(node, rate_gbps=rates.get(node, 400.0)) for node in nodes)

    def made(broken: str = "", **changes: typing.Any) -> Facts:
        pairs = tuple(
            pair(
                one,
                other,
                (0.5 if broken in (one, other) else 0.95) * min(rates.get(one, 400.0), rates.get(other, 400.0)),
            )
            for one in nodes
            for other in nodes
            if one != other
        )
        return Facts(tuple(nodes), BandwidthFacts(pods, pairs), **ground(nodes, **of_links, **changes))

    assert set(statuses(made("-")).values()) == {"pass"}
    # a slow one among them is still found
    ((subject, finding),) = suspected(made("e")).items()
    assert (subject, finding.status) == ("compute e mlx5_0", "fail")
    # where nobody knows whether the slower links could do more, nobody is accused
    unread = check(intent(), made("-", read=False))
    assert {finding.status for finding in unread if finding.check == "bandwidth.fleet"} == {"pass", "unknown"}
    assert not [finding for finding in unread if finding.status == "fail"]


@pytest.mark.parametrize(("rate", "known"), [(400.0, True), (None, False)])
def test_a_slow_pair_fails_where_nobody_knows_what_its_link_could_carry(
    rate: typing.Optional[float], known: bool
) -> None:
    nodes = "abcd"
    pods = tuple(pod_on(node, rate_gbps=400.0 if known else None) for node in nodes)
    pairs = tuple(
        pair(one, other, 200.0 if "d" in (one, other) else 373.64) for one in nodes for other in nodes if one != other
    )
    given = Facts(tuple(nodes), BandwidthFacts(pods, pairs), **ground(nodes, rate=rate, read=False))
    assert found(given, "floor", "compute a -> d").status == "unknown"
    assert found(given, "fleet", "compute a -> d").status == "fail"
    assert list(suspected(given)) == ["compute d mlx5_0"]


def test_the_edge_of_the_fleet_s_floor_passes() -> None:
    assert found(facts(pair("a", "b", 400.0), pair("b", "a", 372.0)), "fleet", "compute b -> a").status == "pass"


# TCP


def tcp_pair(client: str, server: str, average: float) -> PairResult:
    return PairResult("pods", client, server, average_gbps=average, transport="TCP", streams=4)


def tcp(*averages: float, **line_rate: typing.Any) -> tuple[Intent, Facts]:
    """A pod network of three nodes with the figures of its pairs, in their order."""
    wanted = parse_intent(
        [{"name": "pods", "profile": "pod_network", "network": {"namespace": "test"}, "line_rate": line_rate}]
    )
    pods = tuple(
        RdmaPod("pods", node, f"linerate-pods-{node}", "test", None, "10.1.0.1", interface="eth0") for node in "abc"
    )
    names = (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"))
    pairs = tuple(tcp_pair(*ends, average) for ends, average in zip(names, averages))
    return wanted, Facts(("a", "b", "c"), BandwidthFacts(pods, pairs))


@pytest.mark.parametrize(
    ("slow", "status"), [(91.0, "pass"), (45.5, "pass"), (45.0, "warn"), (9.1, "warn"), (9.0, "fail"), (0.004, "fail")]
)
def test_a_tcp_figure_far_below_its_network_is_told(slow: float, status: str) -> None:
    wanted, given = tcp(91.0, 91.0, slow, slow, slow, slow)
    finding = found(given, "fleet", "pods a -> c", wanted)
    assert finding.status == status
    assert status == "pass" or (finding.why and finding.remedy)
    suspects = {item.subject: item.status for item in check(wanted, given) if item.check == "bandwidth.suspect"}
    assert suspects == ({"pods c rail 0": "fail"} if status == "fail" else {"pods": "pass"})


@pytest.mark.parametrize(
    ("average", "rate", "changes", "status"),
    [
        (0.9, 400.0, {}, "warn"),
        (4.99, 400.0, {}, "warn"),
        (5.0, 400.0, {}, "pass"),
        # 5 % of a slow link, and a link of unknown rate
        (0.49, 10.0, {}, "warn"),
        (0.5, 10.0, {}, "pass"),
        (0.9, None, {}, "pass"),
        # of both directions the sum counts, and the intent decides where it sets a floor
        (9.9, 400.0, {"bandwidth": {"directions": "at_once"}}, "warn"),
        (10.0, 400.0, {"bandwidth": {"directions": "at_once"}}, "pass"),
        (0.9, 400.0, {"line_rate": {"floor_gbps": 0.5, "reason": "a test network"}}, "pass"),
    ],
)
def test_a_network_of_tcp_that_is_slow_everywhere_is_warned_of(
    average: float, rate: typing.Optional[float], changes: dict[str, typing.Any], status: str
) -> None:
    _wanted, given = tcp(average, average)
    fabric = {"name": "pods", "profile": "pod_network", "network": {"namespace": "test"}, **changes}
    wanted = parse_intent([fabric])
    measured = typing.cast(BandwidthFacts, given.bandwidth)
    pods = tuple(dataclasses.replace(pod, rate_gbps=rate) for pod in measured.pods)
    given = dataclasses.replace(given, bandwidth=dataclasses.replace(measured, pods=pods))
    arrow = "<->" if "bandwidth" in changes else "->"
    finding = found(given, "fleet", f"pods a {arrow} b", wanted)
    assert finding.status == status
    assert status == "pass" or "line_rate.floor_gbps" in (finding.remedy or "")


# Several fabrics


def two_fabrics() -> tuple[Intent, Facts]:
    """An InfiniBand fabric with a figure above its links and a slow one, and after it a network whose pods did not
    start."""
    wanted, other = tcp(91.0, 91.0)
    nodes = ("a", "b", "c")
    pods = tuple(pod_on(node) for node in nodes)
    pairs = (pair("a", "b", 9000.0, peak_gbps=None), pair("b", "a", 340.0), pair("a", "c", 340.0))
    broken = tuple(
        dataclasses.replace(pod, error="the image is not there", cause="image")
        for pod in typing.cast(BandwidthFacts, other.bandwidth).pods
    )
    plans = (RoundPlan("compute", 1, 2, 40.0, 1500.0), RoundPlan("pods", 2, 2, 40.0, 1500.0))
    both = Facts(
        nodes,
        BandwidthFacts((*pods, *broken), (*pairs, *typing.cast(BandwidthFacts, other.bandwidth).pairs), plans=plans),
        **ground("abc"),
    )
    return dataclasses.replace(wanted, fabrics=(*intent().fabrics, *wanted.fabrics)), both


def of_one(facts: Facts, name: str) -> Facts:
    """The same without what is of other fabrics."""
    kept = {
        key: tuple(item for item in getattr(facts.bandwidth, key) if item.fabric == name)
        for key in ("pods", "pairs", "plans")
    }
    return dataclasses.replace(
        facts, bandwidth=dataclasses.replace(typing.cast(BandwidthFacts, facts.bandwidth), **kept)
    )


def test_fabrics_are_judged_by_themselves() -> None:
    wanted, given = two_fabrics()
    alone = [
        finding
        for fabric in wanted.fabrics
        for finding in check(dataclasses.replace(wanted, fabrics=(fabric,)), of_one(given, fabric.name))
        if finding.check != "bandwidth.cleanup"
    ]
    assert [finding for finding in check(wanted, given) if finding.check != "bandwidth.cleanup"] == alone
    assert {finding.subject for finding in alone if finding.check == "bandwidth.rounds"} == {"compute", "pods"}


def test_other_stages_take_the_sound_figures_of_all_fabrics() -> None:
    wanted, given = two_fabrics()
    figures = [
        (one.fabric, one.client, one.server)
        for one in keep_valid_results(wanted.fabrics, typing.cast(BandwidthFacts, given.bandwidth), given).pairs
    ]
    assert figures == [("compute", "b", "a"), ("compute", "a", "c"), ("pods", "a", "b"), ("pods", "b", "a")]
    # the slow one is below the floor of its links, and there is no other to compare it with
    passed, failed = split_verdicts(
        wanted.fabrics[0], typing.cast(BandwidthFacts, given.bandwidth).pods, [pair("b", "a", 340.0)], given
    )
    assert not passed and failed == {frozenset(((0, "a"), (0, "b")))}


# What is missing


def test_subnets_that_could_not_be_read_leave_their_node_unknown() -> None:
    seen = ground("abc")
    seen["subnets"]["b"] = ObservedSubnets(error="unreachable")
    given = facts(seen=seen)
    assert links(given)["compute a mlx5_0"].status == "pass"
    assert links(given)["compute b"].status == "unknown"
    assert found(given, "floor", AB).status == "unknown"


def test_a_node_without_a_pod_is_unknown_and_a_pod_without_a_device_fails() -> None:
    assert found(facts(pods=PODS[:1]), "pod", "compute b").status == "unknown"
    assert found(facts(pods=(PODS[0], dataclasses.replace(PODS[1], device=None))), "pod", "compute b").status == "fail"


def test_an_absolute_floor_judges_a_pair_without_pods() -> None:
    assert found(facts(pods=()), "floor", AB, intent(floor_gbps=370.0, reason="acceptance line")).status == "pass"
    assert (
        found(
            facts(pair("a", "b", 300.0), pods=()), "floor", AB, intent(floor_gbps=370.0, reason="acceptance line")
        ).status
        == "fail"
    )


def test_a_rail_that_was_not_measured_is_unknown_on_each_node() -> None:
    given = Facts(("a", "b"), BandwidthFacts(rail_pods("a", "b"), (pair("a", "b"), pair("b", "a"))), **ground("ab", 2))
    unknown = {
        finding.subject
        for finding in check(RAILS, given)
        if finding.check == "bandwidth.measured" and finding.status == "unknown"
    }
    assert unknown == {"compute a rail 1", "compute b rail 1"}


def test_who_missed_one_of_all_partners_is_unknown() -> None:
    nodes = "abcd"
    given = fleet(nodes)
    kept = tuple(
        one for one in typing.cast(BandwidthFacts, given.bandwidth).pairs if {one.client, one.server} != {"b", "d"}
    )
    given = dataclasses.replace(
        given, bandwidth=dataclasses.replace(typing.cast(BandwidthFacts, given.bandwidth), pairs=kept)
    )
    unknown = {
        finding.subject
        for finding in check(intent(), given)
        if finding.check == "bandwidth.measured" and finding.status == "unknown"
    }
    assert unknown == {"compute b", "compute d"}


def test_of_an_odd_number_of_nodes_one_rests_in_each_round() -> None:
    given = fleet("abc")
    kept = tuple(
        one for one in typing.cast(BandwidthFacts, given.bandwidth).pairs if {one.client, one.server} != {"b", "c"}
    )
    given = dataclasses.replace(
        given, bandwidth=dataclasses.replace(typing.cast(BandwidthFacts, given.bandwidth), pairs=kept)
    )
    for rounds, status in ((2, None), (3, "unknown")):
        assert statuses(given, intent({"bandwidth": {"rounds": rounds}})).get(("measured", "compute c")) == status


# Rounds


COVER = CoverPlan(8, 16, 16)


@pytest.mark.parametrize(
    ("rounds", "cover", "asked", "nodes"),
    [
        (1, None, 3, 4),
        (1, None, 3, 5),
        (1, None, "all", 4),
        (0, None, 1, 4),
        # of a run that was to use each link, or was not
        (2, COVER, 3, 4),
        (2, COVER, "all", 4),
        (2, COVER, None, 4),
        (3, None, "auto", 4),
    ],
)
def test_a_plan_of_another_intent_proves_nothing_of_this_one(
    rounds: int, cover: typing.Optional[CoverPlan], asked: typing.Any, nodes: int
) -> None:
    """Judged again: the plan of a run never says what is enough."""
    names = tuple("abcdef"[:nodes])
    pods = tuple(pod_on(name) for name in names)
    pairs = tuple(pair(*ends) for ends in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")))
    for everybody in (rounds, 3, 5):
        plan = RoundPlan("compute", rounds, everybody, 40.0, 1500.0, cover)
        given = Facts(names, BandwidthFacts(pods, pairs, plans=(plan,)), **ground(names))
        wanted = intent({"bandwidth": {"rounds": asked}})
        assert "The intent has changed since the measurement" in found(given, "rounds", "compute", wanted).why
        assert found(given, "rounds", "compute", wanted).status == "unknown"
        if isinstance(asked, int) and asked > 1:
            assert statuses(given, wanted)["measured", "compute a"] == "unknown"


@pytest.mark.parametrize(
    ("rounds", "asked", "status"),
    [(3, None, "pass"), (1, None, "warn"), (1, 1, "pass"), (3, 7, "pass"), (3, "all", "pass")],
)
def test_the_plan_says_how_many_partners_each_node_gets(rounds: int, asked: typing.Any, status: str) -> None:
    nodes = ("a", "b", "c", "d")
    pods = tuple(pod_on(node) for node in nodes)
    pairs = tuple(pair(*ends) for ends in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")))
    plan = RoundPlan("compute", rounds, 3, 40.0, 1500.0)
    given = Facts(nodes, BandwidthFacts(pods, pairs, plans=(plan,)), **ground(nodes))
    wanted = intent({"bandwidth": {"rounds": asked}} if asked else None)
    finding = found(given, "rounds", "compute", wanted)
    assert (finding.status, finding.measured) == (status, f"{rounds} of 3 rounds, less than a minute, at most 25 min")
    # who met as many as were planned met enough
    assert statuses(given, wanted).get(("measured", "compute d")) == (None if rounds == 1 else "unknown")


@pytest.mark.parametrize(
    ("ends", "directions", "cover", "status", "measured"),
    [
        (("ab", "bc", "ca"), "one", None, "pass", "3 HCAs sent and received"),
        (("ab", "cb", "ca"), "one", None, "warn", "never sent: b; never received: c"),
        (("ab",), "one", None, "warn", "never sent: b; never received: a"),
        (("ab",), "one", COVER, None, ""),
        (("ab",), "at_once", None, None, ""),
        (("ab",), "both", None, None, ""),
    ],
)
def test_a_direction_that_no_pair_has_is_told(
    ends: tuple[str, ...],
    directions: str,
    cover: typing.Optional[CoverPlan],
    status: typing.Optional[str],
    measured: str,
) -> None:
    nodes = tuple(sorted({*"".join(ends)}))
    plan = RoundPlan("compute", 1, 1, 40.0, 1500.0, cover)
    pairs = tuple(pair(*names) for names in ends)
    given = Facts(nodes, BandwidthFacts(tuple(map(pod_on, nodes)), pairs, plans=(plan,)), **ground(nodes))
    wanted = intent({"bandwidth": {"directions": directions}})
    assert statuses(given, wanted).get(("rounds", "compute directions")) == status
    if status is not None:
        assert found(given, "rounds", "compute directions", wanted).measured == measured


def test_ports_that_say_less_than_the_fabric_shows_do_not_lower_the_floor() -> None:
    """Also where each port says it."""
    seen = ground("ab")
    for node in "ab":
        (hca,) = seen["hcas"][node].value.hcas
        halved = dataclasses.replace(hca, ports=(dataclasses.replace(hca.ports[0], rate_gbps=200.0),))
        seen["hcas"][node] = ObservedHcas(NodeHcas((halved,)))
    pods = tuple(dataclasses.replace(pod, rate_gbps=200.0) for pod in PODS)
    given = facts(pair("a", "b", 195.0), pair("b", "a", 195.0), pods=pods, seen=seen)
    assert found(given, "floor", AB).status == "fail"
    finding = links(given)["compute b mlx5_0"]
    assert (finding.status, "the topology shows 4X NDR" in finding.expected) == ("fail", True)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"address": "10.1.1.97"}, "fail", "the address 10.1.1.97, which is also announced by the pod a-1 on a"),
        ({"address": "fd00:0::1"}, "fail", "the address fd00:0::1, which is also announced by the pod a-1 on a"),
        ({"name": "a-1"}, "unknown", "The pod a-1 is also listed as the pod a-1 on a"),
        (
            {"pci": "0000:1c:00.2"},
            "unknown",
            "uses the virtual function 0000:1c:00.2, which is also used by the pod a-1 on a",
        ),
        (
            {"physical_function": "0000:1c:00.0"},
            "unknown",
            "uses the HCA 0000:1c:00.0, which is also used by the pod a-1 on a",
        ),
        ({"physical_function": "0000:9c:00.0"}, "unknown", "a function of 0000:9c:00.0, but the HCA of the rail is"),
        (
            {"physical_function": None},
            "unknown",
            "a function of 0000:0c:00.2, but the HCA of the rail is 0000:0c:00.0",
        ),
        ({"physical_function": None, "pci": None}, "unknown", "an HCA that sysfs does not report"),
    ],
)
def test_what_one_pod_can_have_no_other_one_has_in_a_run_that_is_judged_again(
    changes: dict[str, typing.Any], status: str, words: str
) -> None:
    pods = list(rail_pods("a", "b"))
    if str(changes.get("address")).startswith("fd00"):
        pods[1] = dataclasses.replace(pods[1], address="fd00::1")
    pods[0] = dataclasses.replace(pods[0], **changes)
    pairs = tuple(pair(*names, rail=rail) for names in (("a", "b"), ("b", "a")) for rail in (0, 1))
    given = Facts(("a", "b"), BandwidthFacts(tuple(pods), pairs), **ground("ab", 2))
    any_address = intent({"select": {"hcas_per_node": 2}, "ipam": {"type": "nv-ipam", "range": "::/0"}})
    finding = found(given, "pod", "compute a rail 0", RAILS if "address" not in changes else any_address)
    assert (finding.status, words in finding.why) == (status, True), finding.why
    assert finding.remedy


def test_a_function_of_a_pod_is_one_that_its_node_shows() -> None:
    hca = Hca("mlx5_9", pci=PciFunction("0000:0c:00.7", "15b3", "101e", "0207"), physical_function="0000:0c:00.0")
    given = Facts(("a", "b"), BandwidthFacts(PODS, (pair("a", "b"), pair("b", "a"))), **ground("ab"))
    assert found(given, "pod", "compute a").status == "pass"
    after = {"a": ObservedHcas(NodeHcas((hca,)))}
    finding = found(dataclasses.replace(given, functions=after), "pod", "compute a")
    assert finding.status == "unknown" and "virtual functions of 0000:0c:00.0 are 0000:0c:00.7" in finding.why
    same = {
        "a": ObservedHcas(
            NodeHcas((dataclasses.replace(hca, pci=PciFunction("0000:3c:00.2", "15b3", "101e", "0207")),))
        )
    }
    assert found(dataclasses.replace(given, functions=same), "pod", "compute a").status == "pass"


@pytest.mark.parametrize(("address", "status"), [("0000:0c:00.0", "pass"), ("0000:99:00.0", "unknown")])
def test_a_pod_that_gets_a_whole_function_has_that_of_the_fabric(address: str, status: str) -> None:
    wanted = intent(
        {
            "profile": "host_device",
            "select": {"hcas_per_node": 1, "netdev": ["ib0"], "subnet_manager": ["0x00000000000000aa"]},
            "resource_name": "hostdev",
        }
    )
    seen = ground("ab")
    for name in "ab":
        (hca,) = seen["hcas"][name].value.hcas
        named = dataclasses.replace(hca, netdevs=(Netdev("ib0", "00:01", 4092, "up"),))
        seen["hcas"][name] = ObservedHcas(NodeHcas((named,)))
    pods = tuple(dataclasses.replace(pod, pci=address, physical_function=None) for pod in PODS)
    given = Facts(("a", "b"), BandwidthFacts(pods, (pair("a", "b"), pair("b", "a"))), **seen)
    assert found(given, "pod", "compute a", wanted).status == status


@pytest.mark.parametrize(("functions", "told"), [(2, True), (1, False)])
def test_a_pod_proves_one_of_the_functions_of_its_hca(functions: int, told: bool) -> None:
    fleet = healthy(dataclasses.replace(PAIR, functions=functions))
    found = [item for item in check(fleet.intent, fleet.of("bandwidth")) if item.check == "bandwidth.pod"]
    assert found and all(("1 of the 2 virtual functions of its HCA" in item.measured) is told for item in found)


@pytest.mark.parametrize(
    ("number", "virtual", "status"), [(1, False, "pass"), (2, False, "unknown"), (2, True, "pass")]
)
def test_a_port_that_the_tools_do_not_use_is_not_measured(number: int, virtual: bool, status: str) -> None:
    """The tools in the pods use port 1 of the RDMA device; a virtual function has ports with numbers of its own."""
    pci = PciFunction("0000:3c:00.0", "15b3", "1011", "0207", "mlx5_core", 0, GEN5)
    hca, port = Hca("mlx5_0", "mlx5_0", (), pci), Port(number, "ACTIVE", "LinkUp", "InfiniBand", 56.0)
    membership = Membership("compute", (), {name: (Member(0, hca, port),) for name in "ab"})
    pods = {
        (0, name): RdmaPod(
            "compute",
            name,
            f"pod-{name}",
            "test",
            "mlx5_0",
            f"10.0.0.{place}",
            interface="net1",
            physical_function="0000:3c:00.0" if virtual else None,
        )
        for place, name in enumerate("ab", 1)
    }
    told = check_pods(intent().fabrics[0], 0, pods, membership, Facts(("a", "b")))
    assert [item.status for item in told] == [status] * 2
    assert status == "pass" or all(f"port {number} of the HCA" in item.why for item in told)
