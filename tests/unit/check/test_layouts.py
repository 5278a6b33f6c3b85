# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers of one model, by the slots of their HCAs; and the partitions that keep two ports apart, by their keys."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.host_names import host_of, owners
from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.layouts import families
from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.partitions import apart
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world


def test_a_node_that_lacks_an_hca_belongs_to_the_most_frequent_layout_that_has_the_rest() -> None:
    seats = {
        "long": {"1", "2", "3", "4", "5"},
        "usual-1": {"1", "2", "3"},
        "usual-2": {"1", "2", "3"},
        "lacks-one": {"1", "2"},
        "lacks-all": set(),
        "alone": {"8", "9"},
        "alone-lacks": {"9"},
    }
    usual = ("usual-1", "usual-2", "lacks-one", "lacks-all")
    assert families(seats) == {"long": ("long",), "usual-1": usual, "alone": ("alone", "alone-lacks")}
    other = {"a": {"1", "2", "7"}, "b": {"1", "2", "8"}, "c": {"1", "2", "8"}, "lacks": {"1", "2"}}
    assert families(other) == {"a": ("a",), "b": ("b", "c", "lacks")}


def test_keys_that_were_not_read_keep_nobody_apart() -> None:
    limited, full = ("0x7fff",), ("0xffff",)
    assert apart((), limited) is None and apart(limited, ()) is None and apart((), ()) is None
    assert apart(limited, full) is None and apart(full, limited) is None and apart(full, full) is None
    both = apart(limited, limited)
    assert both is not None and both.why.startswith("Both ports are limited members of partition 0x7fff") and both.shared == ()


def test_keys_of_other_partitions_keep_two_ports_apart_and_the_shared_one_is_named() -> None:
    found = apart(("0x8001", "0x8002"), ("0x7fff", "0x0002"))
    assert found is not None and found.why == "ibping sends with partition key 0x8001, and the other port has only 0x7fff, 0x0002."
    assert found.shared == ("0x8002",)
    many = apart(("0x8001",), tuple(f"0x{0x8010 + number:04x}" for number in range(20)))
    assert many is not None and "0x8017" in many.why and "0x8018" not in many.why


def test_an_inventory_of_addresses_names_no_host() -> None:
    assert set(owners({"10.0.0.1": world.node(1), "fd00::2": world.node(2)})) == {"worker-1", "worker-2"}
    assert owners({"Node-7.example.com": world.node(1)})["node-7"] == ("Node-7.example.com",)
    assert host_of("") == "" and host_of("  a.b c") == "a"
