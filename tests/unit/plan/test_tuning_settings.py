# SPDX-License-Identifier: GPL-3.0-or-later

"""What is set of the host: one value that fits each rule, nothing that nobody asks for, and nothing about which experts
contradict each other."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.filter.host import tuning_settings
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import Settings
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.row import (
    choose_setting,
    rule_accepts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import (
    collect_kernel_settings,
    collect_settings,
)

FABRIC: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": "any", "hcas_per_node": 8},
    "virtual_functions": 4,
    "resource_name": "compute",
    "network": {"name": "net", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}


def intent_of(**tuning: typing.Any) -> Intent:
    return parse_intent([FABRIC], None, {"tuning": {"set": True, **tuning}})


def only(**expected: typing.Any) -> Settings:
    return collect_settings(intent_of(profile="none", expected=expected))


def test_what_training_expects() -> None:
    found = collect_settings(intent_of())
    assert found.cpu == {"governor": "performance", "force_latency": "100"}
    assert found.modules == {"ib_umad": "+r"}
    assert found.vm == {}
    assert found.sysctl == {
        "kernel.numa_balancing": "0",
        "vm.min_free_kbytes": ">65536",
        "net.ipv4.conf.all.arp_announce": "2",
        "net.ipv4.conf.all.arp_ignore": "1",
        "net.ipv4.conf.all.rp_filter": "2",
        "net.ipv4.neigh.default.gc_thresh1": ">8192",
        "net.ipv4.neigh.default.gc_thresh2": ">32768",
        "net.ipv4.neigh.default.gc_thresh3": ">65536",
    }


def test_nothing_is_set_unless_it_is_asked_for() -> None:
    assert collect_settings(parse_intent([FABRIC], None, {"tuning": {"expected": {"thp": "always"}}})) == Settings()
    assert collect_settings(intent_of(profile="none")) == Settings()
    assert not tuning_settings({}, [FABRIC])["asked"]


def test_what_needs_a_reboot_or_hands_is_not_set() -> None:
    assert only(iommu="identity", smt="off", swap_kib=0, hugepages="2M:1024", isolated="4-63").rows == ()


def test_experts_that_contradict_each_other_wait_for_a_word_of_the_intent() -> None:
    assert "transparent_hugepages" not in collect_settings(intent_of()).vm
    assert only(thp="always|madvise").vm == {"transparent_hugepages": "always"}
    assert only(thp_defrag="defer+madvise").vm == {"transparent_hugepage.defrag": "defer+madvise"}
    assert "kernel.numa_balancing" not in collect_settings(intent_of(expected={"numa_balancing": None})).sysctl


@pytest.mark.parametrize(
    ("rows", "key", "value"),
    [
        ({"min_free_kbytes": ">=135168"}, "vm.min_free_kbytes", ">135168"),
        ({"min_free_kbytes": 90000}, "vm.min_free_kbytes", "90000"),
        ({"swappiness": "<=10"}, "vm.swappiness", "<10"),
        ({"arp_announce": "1"}, "net.ipv4.conf.all.arp_announce", "1"),
        ({"rp_filter": "0|2"}, "net.ipv4.conf.all.rp_filter", "2"),
        ({"gc_thresh1": ">=16384"}, "net.ipv4.neigh.default.gc_thresh1", ">16384"),
        ({"gc_thresh1": "<=4096"}, "net.ipv4.neigh.default.gc_thresh1", "<4096"),
    ],
)
def test_one_value_of_each_rule(rows: dict[str, typing.Any], key: str, value: str) -> None:
    assert only(**rows).sysctl == {key: value}


def test_a_module_is_loaded_and_never_taken_out() -> None:
    assert only(ib_umad="loaded").modules == {"ib_umad": "+r"}
    assert only(ib_umad="absent").modules == {}


_NUMBERS = some.integers(0, 10**17).map(str)
_OPTIONS = some.one_of(
    _NUMBERS,
    some.sampled_from([">=", "<="]).flatmap(lambda sign: _NUMBERS.map(sign.__add__)),
    some.sampled_from(["always", "madvise"]),
)


@hypothesis.given(some.lists(_OPTIONS, min_size=1, max_size=3).map("|".join), some.one_of(some.just(""), _NUMBERS))
def test_what_is_chosen_fits_the_rule(rule: str, best: str) -> None:
    bound, value = choose_setting(rule, best)
    assert rule_accepts(rule, value)
    assert bound in ("", ">", "<")
    # what the bound leaves as it is fits as well
    kept = {">": str(int(value) + 1), "<": str(max(0, int(value) - 1))}[bound] if bound else value
    assert rule_accepts(rule, kept)


def test_each_key_is_set_by_one_row() -> None:
    keys = [(row.setting.section, row.setting.key) for row in ROWS if row.setting]
    assert len(keys) == len(set(keys)) and len(keys) > 15
    # what the best value is for must take it
    assert all(
        rule_accepts(rule, row.setting.best)
        for row in ROWS
        if row.setting and row.setting.best
        for rule in (row.training, row.inference)
        if rule
    )


def test_options_of_the_module() -> None:
    found = only(governor="performance", thp="always", swappiness="<=10", ib_umad="loaded", idle_latency="<=100")
    assert collect_kernel_settings(found) == {
        "sysctl": {"vm.swappiness": "<10"},
        "sysfs": {
            "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor": "performance",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always",
        },
    }
    assert collect_kernel_settings(only(ib_umad="loaded")) == {}


def test_the_filter_shows_what_would_be_set() -> None:
    found = tuning_settings({"tuning": {"set": True}}, [FABRIC])
    assert found["asked"] and found["sections"]["cpu"]["governor"] == "performance"
    assert found["kernel_settings"]["sysctl"]["kernel.numa_balancing"] == "0"
