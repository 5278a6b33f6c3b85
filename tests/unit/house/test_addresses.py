# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.addresses import (
    RangeError,
    parse_range,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.nv_ipam import (
    parse_blocks,
    parse_networks,
)


@pytest.mark.parametrize(
    ("text", "rest", "first", "last", "capacity"),
    [
        ("100.100.0.0/22", {}, "100.100.0.1", "100.100.3.254", 1022),
        # whereabouts' documentation: a /28 holds 14
        ("192.168.2.224/28", {}, "192.168.2.225", "192.168.2.238", 14),
        ("192.168.2.200-192.168.2.205/24", {}, "192.168.2.200", "192.168.2.205", 6),
        (
            "100.100.100.0/24",
            {"start": "100.100.100.101", "end": "100.100.100.212"},
            "100.100.100.101",
            "100.100.100.212",
            112,
        ),
        (
            "10.0.0.0/24",
            {"exclude": ["10.0.0.0/25", "10.0.0.200", "10.0.0.1"]},
            "10.0.0.1",
            "10.0.0.254",
            254 - 127 - 1,
        ),
        ("10.0.0.0/24", {"exclude": ["10.1.0.0/24"]}, "10.0.0.1", "10.0.0.254", 254),
        ("fd00:1::/112", {}, "fd00:1::1", "fd00:1::fffe", 65534),
    ],
)
def test_range(text: str, rest: dict[str, typing.Any], first: str, last: str, capacity: int) -> None:
    pool = parse_range(text, **rest)
    assert (str(pool.first), str(pool.last), pool.capacity) == (first, last, capacity)


@pytest.mark.parametrize(
    ("text", "rest", "field", "said"),
    [
        ("100.100.100.0/1", {}, "range", "0.0.0.0/1"),
        ("0.0.0.0/0", {}, "range", "4294967296 addresses"),
        ("10.0.0.1/24", {}, "range", "10.0.0.0/24"),
        ("10.0.0.0", {}, "range", "Without a prefix"),
        ("10.0.0.0/31", {}, "range", "no address for a pod"),
        ("10.0.0.0/33", {}, "range", "does not appear to be an IPv4 or IPv6"),
        ("", {}, "range", "Without a prefix"),
        ("10.0.0.9-10.0.0.3/24", {}, "range", "ends before it starts"),
        ("10.0.0.9-/24", {}, "range", "does not appear to be an IPv4 or IPv6"),
        ("x-10.0.0.9/24", {}, "range", "It is not an IP address."),
        (
            "10.0.0.0/24",
            {"start": "10.0.1.1"},
            "range_start",
            "whereabouts ignores it without an error and assigns addresses of the whole network.",
        ),
        (
            "10.0.0.0/24",
            {"end": "10.0.0.255"},
            "range_end",
            "whereabouts ignores it without an error and assigns addresses of the whole network.",
        ),
        (
            "10.0.0.0/24",
            {"start": "10.0.0.9", "end": "10.0.0.3"},
            "range_end",
            "whereabouts ignores it without an error and assigns addresses of the whole network.",
        ),
        (
            "10.0.0.0/24",
            {"end": "fd00::1"},
            "range_end",
            "whereabouts ignores it without an error and assigns addresses of the whole network.",
        ),
        (
            "10.0.0.9-10.0.0.30/24",
            {"start": "10.0.0.12"},
            "range_start",
            "range contains its first and last address, and whereabouts uses those.",
        ),
        (
            "10.0.0.9-10.0.0.30/24",
            {"end": "10.0.0.12"},
            "range_end",
            "range contains its first and last address, and whereabouts uses those.",
        ),
        ("10.0.0.0/24", {"exclude": ["10.0.0.7", "ten"]}, "exclude[1]", "does not appear to be an IPv4 or IPv6"),
        ("10.0.0.0/24", {"exclude": ["fd00::/64"]}, "exclude[0]", "other IP version"),
    ],
)
def test_wrong_range_is_refused(text: str, rest: dict[str, typing.Any], field: str, said: str) -> None:
    with pytest.raises(RangeError) as caught:
        parse_range(text, **rest)
    assert caught.value.field == field
    assert said in f"{caught.value.why} {caught.value.expected}"
    assert caught.value.remedy


def test_gateway() -> None:
    pool = parse_range("10.0.0.0/24", start="10.0.0.10", exclude=["10.0.0.20/30"])
    assert pool.on_network("10.0.0.1") and not pool.hands_out("10.0.0.1")
    assert pool.hands_out("10.0.0.10") and not pool.hands_out("10.0.0.21")
    assert (
        not pool.on_network("10.0.0.255")
        and not pool.on_network("10.0.1.1")
        and not pool.on_network("fd00::1")
        and not pool.on_network("")
    )


@hypothesis.given(
    some.text(max_size=30), some.none() | some.text(max_size=15), some.lists(some.text(max_size=15), max_size=2)
)
def test_any_text_is_read_or_refused(text: str, start: typing.Optional[str], exclude: list[str]) -> None:
    try:
        parse_range(text, start=start, exclude=exclude)
    except RangeError as error:
        assert error.why and error.remedy


EXCLUDED = some.lists(some.tuples(some.integers(0, 300), some.integers(24, 32)), max_size=4)


@hypothesis.given(some.ip_addresses(v=4), some.integers(min_value=8, max_value=30), EXCLUDED)
def test_capacity_is_the_number_of_addresses(
    base: ipaddress.IPv4Address, prefix: int, excluded: list[tuple[int, int]]
) -> None:
    """Counted one by one in small networks: excluded networks may overlap each other and the edges."""
    network = ipaddress.ip_network((base, max(prefix, 22)), strict=False)
    exclude = [
        str(ipaddress.ip_network((min(int(network.network_address) + offset, 2**32 - 1), length), strict=False))
        for offset, length in excluded
    ]
    pool = parse_range(str(network), exclude=exclude)
    holes = [ipaddress.ip_network(item) for item in exclude]
    free = [address for address in network.hosts() if not any(address in hole for hole in holes)]
    assert pool.capacity == len(free)
    assert all(pool.hands_out(str(address)) for address in free)


@pytest.mark.parametrize(
    ("text", "size", "rest", "nodes", "share"),
    [
        # the documentation's example: four nodes get 24 addresses each, from .1 on
        ("192.168.0.0/16", 24, {}, 4, (4, 24)),
        ("192.168.0.0/24", 100, {}, 3, (2, 100)),
        ("192.168.0.0/24", 254, {}, 1, (1, 254)),
        ("192.168.0.0/24", 127, {}, 2, (2, 127)),
        # the gateway is no pod's address
        ("192.168.0.0/24", 100, {"gateway": "192.168.0.1"}, 2, (2, 99)),
        ("192.168.0.0/24", 100, {"gateway": "192.168.0.254"}, 2, (2, 100)),
        # 1 to 32 and 33 to 64, of which 40 to 43 are excluded
        ("192.168.0.0/24", 32, {"exclude": ["192.168.0.40/30"]}, 2, (2, 28)),
        # a block that is excluded as a whole is passed over
        ("192.168.0.0/24", 10, {"exclude": ["192.168.0.0/28"]}, 24, (24, 5)),
        ("192.168.0.0/24", 1, {"gateway": "192.168.0.1", "exclude": ["192.168.0.2"]}, 254, (252, 1)),
        ("192.168.0.0/24", 8, {"exclude": ["192.168.0.0/24"]}, 2, (0, 0)),
        ("192.168.0.0/31", 1, {}, 3, (2, 1)),
        # IPv6 has no broadcast address
        ("fd00::/120", 255, {}, 2, (1, 255)),
    ],
)
def test_blocks_of_an_ip_pool(
    text: str, size: int, rest: dict[str, typing.Any], nodes: int, share: tuple[int, int]
) -> None:
    assert parse_blocks(text, size, **rest).share(nodes) == share


@pytest.mark.parametrize(
    ("text", "prefix", "rest", "nodes", "share"),
    [
        ("192.168.0.0/16", 24, {}, 300, (256, 254)),
        ("192.168.0.0/16", 24, {"gateway_index": 1}, 2, (2, 253)),
        ("192.168.100.0/24", 31, {}, 128, (128, 2)),
        ("192.168.100.0/24", 31, {"gateway_index": 0}, 128, (128, 1)),
        ("192.168.100.0/24", 32, {}, 300, (256, 1)),
        ("192.168.0.0/22", 24, {"exclude": ["192.168.1.0/24", "192.168.2.0/25"]}, 4, (3, 127)),
        ("fd52:2eb5:44::/48", 120, {"gateway_index": 1}, 2000, (2000, 254)),
        # nobody waits for an exclusion of 2**64 networks to be walked through
        ("fd00::/32", 126, {"exclude": ["fd00::/33"]}, 2, (2, 3)),
    ],
)
def test_networks_of_a_cidr_pool(
    text: str, prefix: int, rest: dict[str, typing.Any], nodes: int, share: tuple[int, int]
) -> None:
    assert parse_networks(text, prefix, **rest).share(nodes) == share


@pytest.mark.parametrize(
    ("read", "field", "said"),
    [
        (lambda: parse_blocks("10.0.0.0/24", 255), "pool.per_node_block_size", "larger than its network"),
        (lambda: parse_blocks("10.0.0.0/24", 0), "pool.per_node_block_size", "1 to 254"),
        (lambda: parse_blocks("10.0.0.0/1", 10), "range", "0.0.0.0/1"),
        (lambda: parse_blocks("10.0.0.1-10.0.0.9/24", 10), "range", "only networks"),
        (lambda: parse_blocks("10.0.0.0/24", 10, gateway="10.0.1.1"), "gateway", "outside the pool"),
        (lambda: parse_blocks("10.0.0.0/24", 10, gateway="x"), "gateway", "outside the pool"),
        (lambda: parse_blocks("10.0.0.0/24", 10, exclude=["10.0.1.0/30"]), "exclude[0]", "outside the pool"),
        (lambda: parse_blocks("10.0.0.0/24", 10, exclude=["fd00::1"]), "exclude[0]", "other IP version"),
        (lambda: parse_networks("10.0.0.0/24", 23), "pool.per_node_network_prefix", "24 to 32"),
        (lambda: parse_networks("10.0.0.0/24", 33), "pool.per_node_network_prefix", "24 to 32"),
        (lambda: parse_networks("10.0.0.0/16", 24, gateway_index=0), "pool.gateway_index", "1 to 254"),
        (lambda: parse_networks("10.0.0.0/16", 24, gateway_index=255), "pool.gateway_index", "1 to 254"),
    ],
)
def test_wrong_pool_is_refused(read: typing.Callable[[], typing.Any], field: str, said: str) -> None:
    with pytest.raises(RangeError) as caught:
        read()
    assert caught.value.field == field
    assert said in f"{caught.value.why} {caught.value.expected}"


@hypothesis.given(some.integers(22, 30), some.integers(1, 70), EXCLUDED, some.integers(1, 40))
def test_shares_are_those_that_a_count_one_by_one_finds(
    prefix: int, size: int, excluded: list[tuple[int, int]], nodes: int
) -> None:
    network = ipaddress.ip_network(f"10.0.0.0/{prefix}")
    inside = [
        ipaddress.ip_network((int(network.network_address) + offset % network.num_addresses, 32))
        for offset, _length in excluded
    ]
    hosts = [int(address) for address in network.hosts()]
    if size > len(hosts):
        return
    holes = {int(hole.network_address) for hole in inside}
    blocks = [hosts[start : start + size] for start in range(0, len(hosts) - size + 1, size)]
    free = [len(set(block) - holes) for block in blocks if set(block) - holes][:nodes]
    assert parse_blocks(str(network), size, exclude=[str(hole) for hole in inside]).share(nodes) == (
        len(free),
        min(free, default=0),
    )
