# SPDX-License-Identifier: GPL-3.0-or-later

"""Which layer of a slow pair loses: the step at which its figure falls, what is known of it, and that what was not
measured is never passed over."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.layers import choose_pairs, list_pairs
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import (
    BandwidthFacts,
    LayerEnd,
    LayerName,
    LayerStep,
    PairLayers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import PcieLink
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding

from .test_check_bandwidth import facts, ground, intent, pair

#: of a link of 400 Gb/s
GOOD, SLOW = 375.0, 90.0
LAYERS: tuple[LayerName, ...] = ("pf_host", "vf_host", "vf_pod", "gpu_pod")
NO_GPU = "the pod has no GPU"
Figures = tuple[typing.Optional[float], ...]


def steps(
    *figures: typing.Optional[float], absent: tuple[str, ...] = ("gpu_pod",), **ends: typing.Any
) -> tuple[LayerStep, ...]:
    """A step for each figure from the PF on; those that are missing are not there.

    :param ends: what is known of the client, and of the server as ``server_<name>``
    """
    client = {name: value for name, value in ends.items() if not name.startswith("server_")}
    server = {name[len("server_") :]: value for name, value in ends.items() if name.startswith("server_")}
    made = []
    for layer, figure in zip(LAYERS, (*figures, None, None, None, None)):
        gone = figure is None and layer in absent
        why = "" if figure is not None else NO_GPU if gone else f"no way to {layer}"
        both = (LayerEnd("a", "mlx5_0", "0000:0c:00.0", **client), LayerEnd("b", "mlx5_0", "0000:0c:00.0", **server))
        made.append(LayerStep(layer, *both, figure, None, 1048576, 5000, why, gone))
    return tuple(made)


def layers(*found: LayerStep, **changes: typing.Any) -> PairLayers:
    return dataclasses.replace(PairLayers("compute", "a", "b", steps=found), **changes)


def judged(given: PairLayers, other: float = GOOD, seen: typing.Any = None, **wanted: typing.Any) -> Finding:
    """The finding on a pair that was slow in the rounds.

    :param other: figure of the other direction, with which it is compared
    """
    measured = facts(pair("a", "b", SLOW), pair("b", "a", other), seen=seen, layers=(given,))
    (found,) = [finding for finding in check(intent(wanted), measured) if finding.check == "bandwidth.layer"]
    return found


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        ((SLOW, SLOW, SLOW), "cable"),
        ((GOOD, SLOW, SLOW), "SR-IOV"),
        ((GOOD, GOOD, SLOW), "the pod"),
        ((GOOD, GOOD, GOOD, SLOW), "path to the GPU"),
    ],
)
def test_the_step_at_which_the_figure_falls_is_named_and_no_other(figures: Figures, named: str) -> None:
    found = judged(layers(*steps(*figures)))
    assert found.status == "fail" and found.subject == "compute a -> b" and found.remedy
    blamed = found.why.partition("The cause is ")[2].partition(". ")[0]
    others = {"cable", "SR-IOV", "the pod", "path to the GPU"} - {named}
    assert named in blamed and not [other for other in others if other in blamed]


@pytest.mark.parametrize(("more_than", "status"), [(4, "fail"), (None, "unknown")])
def test_layers_of_more_queue_pairs_are_measurements_where_they_were_asked_for(
    more_than: typing.Optional[int], status: str
) -> None:
    shown = [dataclasses.replace(step, message_bytes=4194304) for step in steps(GOOD, GOOD, SLOW)]
    found = judged(layers(*shown, more_than=more_than))
    assert found.status == status, found
    told = (
        "The cause is the pod"
        if more_than
        else "The figure is from messages of 4194304 bytes, but 1048576 bytes were requested (pods.message_bytes)"
    )
    assert told in found.why and found.remedy


def test_the_first_loss_counts_not_the_largest() -> None:
    found = judged(layers(*steps(GOOD, 300.0, 20.0)))
    assert "SR-IOV" in found.why and "20 % less than PF on the host" in found.why


def test_a_figure_that_falls_across_a_step_without_one_is_not_told_apart() -> None:
    found = judged(layers(*steps(GOOD, None, SLOW)))
    assert found.status == "fail" and "SR-IOV or its rate limits or the pod" in found.why
    assert (
        "cannot distinguish these causes" in found.why
        and "no way to vf_host" in found.why
        and "no way to vf_host" in found.remedy
    )


def test_a_slow_pod_alone_tells_no_layer() -> None:
    found = judged(layers(*steps(None, None, SLOW)))
    assert (
        found.status == "unknown"
        and "cable" in found.why
        and "SR-IOV" in found.why
        and "no way to pf_host" in found.why
    )


@pytest.mark.parametrize("figures", [(None, GOOD, GOOD), (GOOD, None, GOOD), (GOOD, GOOD, None)])
def test_a_step_without_a_figure_is_no_pass_where_nothing_falls(figures: Figures) -> None:
    missing = LAYERS[figures.index(None)]
    found = judged(layers(*steps(*figures), suspect=False))
    assert (
        found.status == "unknown" and f"no way to {missing}" in found.why and f"no way to {missing}" in found.measured
    )


def test_what_was_slow_and_is_no_more_is_a_warning() -> None:
    found = judged(layers(*steps(GOOD, GOOD, GOOD)))
    assert found.status == "warn" and "is intermittent" in found.why and NO_GPU in found.measured


def test_who_was_no_suspect_passes() -> None:
    assert judged(layers(*steps(GOOD, GOOD, GOOD), suspect=False)).status == "pass"


def test_small_losses_that_add_up_are_no_pass() -> None:
    found = judged(layers(*steps(GOOD, 345.0, 325.0)))
    assert found.status == "fail" and "no figure is more than" in found.why


def test_without_a_floor_the_cable_is_not_known_to_be_good() -> None:
    nothing: dict[str, typing.Any] = {"hcas": {}, "subnets": {}, "topologies": {}}
    measured = facts(seen=nothing, pods=(), layers=(layers(*steps(GOOD, GOOD, GOOD)),))
    (found,) = [finding for finding in check(intent(), measured) if finding.check == "bandwidth.layer"]
    assert found.status == "unknown" and "expected_gbps" in found.remedy


def test_a_figure_above_the_link_is_none() -> None:
    found = judged(layers(*steps(900.0, GOOD, GOOD)))
    assert found.status == "unknown" and "above the capacity of the link" in found.measured


def test_the_rate_limit_of_a_vf_is_the_cause_where_the_figure_comes_near_to_it() -> None:
    found = judged(layers(*steps(GOOD, SLOW, SLOW, max_tx_rate=95000)))
    assert (
        "to 95 Gb/s (max_tx_rate 95000)" in found.why.partition("explains the loss")[2]
        and "max_tx_rate 0" in found.remedy
    )
    for rate in (0, None, 400000):
        assert "explains the loss" not in judged(layers(*steps(GOOD, SLOW, SLOW, max_tx_rate=rate))).why
    # a limit of 300 does not make 90 of 375
    assert "explains the loss" not in judged(layers(*steps(GOOD, SLOW, SLOW, max_tx_rate=300000))).why


def test_the_limit_of_who_receives_explains_nothing() -> None:
    assert "explains the loss" not in judged(layers(*steps(GOOD, SLOW, SLOW, server_max_tx_rate=95000))).why


def test_what_the_intent_lets_pods_send_is_no_loss() -> None:
    network = {"name": "ib", "namespace": "test", "max_tx_rate": 100000}
    wanted: dict[str, typing.Any] = {
        "profile": "sriov_ethernet",
        "network": network,
        "line_rate": {"floor_gbps": 80.0, "reason": "limited"},
    }
    assert judged(layers(*steps(GOOD, GOOD, 95.0), suspect=False), 95.0, **wanted).status == "pass"
    assert judged(layers(*steps(GOOD, GOOD, 82.0), suspect=False), 82.0, **wanted).status == "fail"


def test_cpus_of_another_numa_node_and_too_few_of_them_are_causes_in_the_pod() -> None:
    binding = "on other CPUs (8-15) than those of the HCA's NUMA node 0 (0-7)"
    found = judged(layers(*steps(GOOD, GOOD, SLOW, near=False, binding=binding, server_throttled=17)))
    assert (
        binding in found.why
        and "17 periods" in found.why
        and "pods.cpu" in found.remedy
        and "topologyManagerPolicy" in found.remedy
    )


def test_the_slot_is_a_cause_on_the_host() -> None:
    seen = ground("ab", a=(400.0, PcieLink(16.0, 8, 32.0, 16, 32.0, 16, 128, 512)))
    found = judged(layers(*steps(SLOW, SLOW, SLOW)), seen=seen)
    assert (
        "runs at 16 GT/s x8, but supports 32 GT/s x16" in found.why
        and "MaxPayload 128" in found.why
        and "lspci" in found.remedy
    )


def test_what_is_not_known_of_the_step_is_said() -> None:
    found = judged(layers(*steps(GOOD, GOOD, SLOW)))
    assert (
        "max_tx_rate unknown" in found.why
        and "CPUs of the tool unknown" in found.why
        and "CPU throttling unknown" in found.why
    )


def test_a_pair_that_was_not_looked_at_is_unknown_with_the_reason() -> None:
    found = judged(layers(why="more than 8 pairs are suspects"))
    assert found.status == "unknown" and "more than 8 pairs are suspects" in found.why and found.remedy


@pytest.mark.parametrize(
    ("wanted", "subjects"),
    [("none", []), ("suspects", ["compute a -> b"]), ("all", ["compute a -> b", "compute b -> a"]), (None, [])],
)
def test_whom_the_intent_wants_to_be_looked_at_is_unknown_where_nobody_looked(
    wanted: typing.Optional[str], subjects: list[str]
) -> None:
    measured = facts(pair("a", "b", SLOW), pair("b", "a", GOOD))
    bandwidth = {"layers": wanted} if wanted else {}
    found = [
        finding for finding in check(intent({"bandwidth": bandwidth}), measured) if finding.check == "bandwidth.layer"
    ]
    assert [finding.subject for finding in found] == subjects and all(finding.status == "unknown" for finding in found)


def test_facts_of_before_have_no_layers() -> None:
    data = to_data(BandwidthFacts((), ()))
    del data["layers"]
    old: BandwidthFacts = load(BandwidthFacts, data, "facts")
    assert old.layers == ()


def test_what_is_kept_is_what_is_read() -> None:
    made = BandwidthFacts(
        (), (), layers=(layers(*steps(GOOD, None, SLOW, near=False, max_tx_rate=100)), layers(why="no observer"))
    )
    assert load(BandwidthFacts, to_data(made), "facts") == made


# which pairs are looked at


def rounds(nodes: str, slow: typing.Callable[[str, str], bool]) -> tuple[list[typing.Any], list[bool]]:
    """All ordered pairs, and whether they passed."""
    pairs = [pair(one, other, SLOW if slow(one, other) else GOOD) for one in nodes for other in nodes if one != other]
    return pairs, [(item.average_gbps or 0.0) == GOOD for item in pairs]


def named(pairs: typing.Iterable[typing.Any]) -> list[tuple[str, str]]:
    return [(item.client, item.server) for item in pairs]


def test_nothing_slow_nobody_is_looked_at() -> None:
    assert choose_pairs(*rounds("abcd", lambda _one, _other: False)) == ()


def test_one_slow_node_is_looked_at_once_in_each_role() -> None:
    looked = named(choose_pairs(*rounds("abcdef", lambda one, other: "c" in (one, other))))
    assert len(looked) == 2 and {one for one, _other in looked} >= {"c"} and {other for _one, other in looked} >= {"c"}


def test_a_node_that_only_sends_slowly_is_looked_at_as_a_client() -> None:
    looked = named(choose_pairs(*rounds("abcdef", lambda one, _other: one == "c")))
    assert len(looked) == 1 and looked[0][0] == "c"


def test_of_two_nodes_the_slow_direction_is_looked_at() -> None:
    assert named(choose_pairs(*rounds("ab", lambda one, _other: one == "a"))) == [("a", "b")]


def test_a_path_between_good_ends_is_looked_at() -> None:
    assert named(choose_pairs(*rounds("abcd", lambda one, other: (one, other) == ("a", "d")))) == [("a", "d")]


def test_pairs_without_a_figure_or_a_verdict_are_left_out() -> None:
    broken = dataclasses.replace(pair("a", "b", None), failure="hang")
    assert choose_pairs([broken, pair("b", "a", SLOW)], [False, None]) == ()
    assert named(
        list_pairs([broken, pair("b", "a"), pair("b", "a"), dataclasses.replace(pair("a", "b"), transport="TCP")])
    ) == [("b", "a")]
