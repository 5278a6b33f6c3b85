# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that a proposal takes: the same as a look at each pair finds, and soon also where tenants have taken
many."""

from __future__ import annotations

import ipaddress
import typing

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.proposal import Value
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.networks import Networks
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

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
