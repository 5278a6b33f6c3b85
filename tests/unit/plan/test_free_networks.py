# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that a proposal takes: the same as a look at each pair finds, and soon also where tenants have taken
many."""

from __future__ import annotations

import ipaddress
import typing

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.addresses.host_networks import (
    Hosts,
    list_host_networks,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.proposal import Value
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    InterfaceNetwork,
    NodePlatform,
    ObservedPlatform,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.addresses import parse_range
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.networks import Networks
from ansible_collections.linerate.rdma.tests.unit.limit import bounded
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

_PRIVATE = tuple(map(ipaddress.IPv4Network, ("172.16.0.0/12", "10.0.0.0/8", "192.168.0.0/16")))
_DOCKER = ipaddress.IPv4Network("172.17.0.0/16")


def facts(taken: typing.Iterable[str]) -> AddressFacts:
    return AddressFacts(taken=tuple(UsedNetwork("attachment", network, "tenant/net") for network in taken))


def looked_for(taken: typing.Iterable[str], prefix: int) -> typing.Optional[str]:
    """Each network of each private one, from above, against each that is taken."""
    mine = [_DOCKER, *(ipaddress.IPv4Network(item, strict=False) for item in taken)]
    for private in _PRIVATE:
        for network in reversed(list(private.subnets(new_prefix=prefix))) if prefix >= private.prefixlen else ():
            if not any(item.overlaps(network) for item in mine):
                return str(network)
    return None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("172.31", "172.30", "172.16", "10.255", "10.0", "192.168")),
            st.integers(0, 255),
            st.integers(8, 32),
        ),
        max_size=8,
    ),
    st.integers(12, 18),
)
def test_the_same_as_a_look_at_each(parts: list[tuple[str, int, int]], prefix: int) -> None:
    taken = [f"{begin}.{third}.0/{length}" for begin, third, length in parts]
    found = Networks(facts(taken)).take(1 << (32 - prefix), "pods")
    assert (found.value if isinstance(found, Value) else None) == looked_for(taken, prefix)


def hosts(networks: typing.Iterable[str]) -> dict[str, ObservedPlatform]:
    """One node for each network, which it has on an interface of its own."""
    return {
        f"node-{number}": ObservedPlatform(
            NodePlatform("6.12", "x86_64", networks=(InterfaceNetwork("eno1", network),), addresses=())
        )
        for number, network in enumerate(networks)
    }


@given(
    st.lists(
        st.tuples(st.sampled_from(("172.31", "172.16", "10.255", "10.0", "192.168")), st.integers(8, 30)), max_size=6
    ),
    st.integers(12, 18),
)
def test_no_network_of_a_host_is_proposed(parts: list[tuple[str, int]], prefix: int) -> None:
    of_hosts = [str(ipaddress.ip_network(f"{begin}.0.0/{length}", strict=False)) for begin, length in parts]
    found = Networks(facts(()), hosts(of_hosts)).take(1 << (32 - prefix), "pods")
    assert (found.value if isinstance(found, Value) else None) == looked_for(of_hosts, prefix)
    if isinstance(found, Value):
        # what the stages that judge the range say of it
        (fabric,) = healthy(PAIR).intent.fabrics
        seen = list_host_networks(fabric, parse_range(str(found.value)), Hosts(hosts(of_hosts)))
        assert seen == []
        assert "of the nodes' own interfaces" in found.why or not of_hosts


def test_a_proposal_says_of_how_many_hosts_the_networks_are_unknown() -> None:
    seen = {
        **hosts(["172.31.0.0/16", "172.31.0.0/16", "2001:db8::/64"]),
        "deaf": ObservedPlatform(error="ssh: timeout"),
        "old": ObservedPlatform(NodePlatform("6.12", "x86_64")),
    }
    found = typing.cast(Value, Networks(facts(()), seen).take(200, "pods"))
    assert found.value == "172.30.255.0/24" and "the 2 networks of the nodes' own interfaces" in found.why
    assert found.why.endswith("The networks of the interfaces of 2 nodes are unknown.")
    assert "interfaces" not in typing.cast(Value, Networks(facts(())).take(200, "pods")).why


def test_each_is_given_out_once() -> None:
    networks = Networks(facts(()))
    assert [typing.cast(Value, networks.take(200, "pods")).value for _time in range(3)] == [
        "172.31.255.0/24",
        "172.31.254.0/24",
        "172.31.253.0/24",
    ]


def test_tenants_that_took_many_are_walked_through_once() -> None:
    # every second address of each /24 from above, so that nothing collapses
    taken = [
        f"172.{31 - (number >> 8)}.{255 - (number & 255)}.{host}/32"
        for number in range(3000)
        for host in range(1, 40, 2)
    ]
    networks = Networks(facts(taken))
    with bounded(15):
        found = networks.take(200, "pods")
    assert isinstance(found, Value) and found.value == "172.20.71.0/24"
