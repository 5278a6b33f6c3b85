# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers of one model, by the slots of their HCAs; and the partitions that keep two ports apart, by their keys."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.host_names import collect_owners, host_of
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.layouts import group_families, number_rails
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.paths.partitions import explain_separation
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, PciFunction
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
    assert group_families(seats) == {"long": ("long",), "usual-1": usual, "alone": ("alone", "alone-lacks")}
    other = {"a": {"1", "2", "7"}, "b": {"1", "2", "8"}, "c": {"1", "2", "8"}, "lacks": {"1", "2"}}
    assert group_families(other) == {"a": ("a",), "b": ("b", "c", "lacks")}


def test_a_layout_that_lacks_an_hca_is_none_of_its_own_for_one_that_lacks_two() -> None:
    seats = {
        "usual-1": {"1", "2", "3"},
        "usual-2": {"1", "2", "3"},
        "lacks-1": {"1", "3"},
        "lacks-2": {"1", "3"},
        "lacks-two": {"1"},
    }
    assert group_families(seats) == {"usual-1": tuple(seats)}


def seat(address: str, device: str) -> Hca:
    return Hca(device, rdma_device=device, pci=PciFunction(address, "15b3", "1021", "0207", "mlx5_core"))


def test_two_devices_of_one_function_have_a_rail_each() -> None:
    seats = {"a": [seat("01", "mlx5_0"), seat("01", "mlx5_1")], "b": [seat("01", "mlx5_0"), seat("02", "mlx5_1")]}
    rails = number_rails(seats, seats, 2)
    assert (
        [rails["a", name] for name in ("mlx5_0", "mlx5_1")]
        == [rails["b", name] for name in ("mlx5_0", "mlx5_1")]
        == [0, 1]
    )


def test_names_by_which_nodes_of_one_layout_differ_order_nothing() -> None:
    """The kernel numbered them another way on the second node of each layout: then the order of the addresses
    counts."""
    seats: dict[str, list[Hca]] = {}
    for layout in "xyz":
        for node, names in (("1", range(4)), ("2", reversed(range(4)))):
            seats[layout + node] = [seat(f"{layout}{place}", f"mlx5_{name}") for place, name in enumerate(names)]
    rails = number_rails(seats, seats, 4)
    assert {node: [rails[node, hca.name] for hca in hcas] for node, hcas in seats.items()} == {
        node: [0, 1, 2, 3] for node in seats
    }


def test_keys_that_were_not_read_keep_nobody_apart() -> None:
    limited, full = ("0x7fff",), ("0xffff",)
    assert (
        explain_separation((), limited) is None
        and explain_separation(limited, ()) is None
        and explain_separation((), ()) is None
    )
    assert (
        explain_separation(limited, full) is None
        and explain_separation(full, limited) is None
        and explain_separation(full, full) is None
    )
    both = explain_separation(limited, limited)
    assert (
        both is not None
        and both.why.startswith("Both ports are limited members of partition 0x7fff")
        and both.shared == ()
    )


def test_keys_of_other_partitions_keep_two_ports_apart_and_the_shared_one_is_named() -> None:
    found = explain_separation(("0x8001", "0x8002"), ("0x7fff", "0x0002"))
    assert (
        found is not None
        and found.why == "ibping sends with partition key 0x8001, and the other port has only 0x7fff, 0x0002."
    )
    assert found.shared == ("0x8002",)
    many = explain_separation(("0x8001",), tuple(f"0x{0x8010 + number:04x}" for number in range(20)))
    assert many is not None and "0x8017" in many.why and "0x8018" not in many.why


def test_an_inventory_of_addresses_names_no_host() -> None:
    assert set(collect_owners({"10.0.0.1": world.node(1), "fd00::2": world.node(2)})) == {"worker-1", "worker-2"}
    assert collect_owners({"Node-7.example.com": world.node(1)})["node-7"] == ("Node-7.example.com",)
    assert host_of("") == "" and host_of("  a.b c") == "a"
