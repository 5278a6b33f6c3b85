# SPDX-License-Identifier: GPL-3.0-or-later

"""What a compromised kubelet says of its node: refused by the node's name, and the other nodes go on."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.inventory import refuse_shared_addresses
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import internal_address
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.inventory import (
    inventory_node,
    parse_inventory,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError

HOSTILE_ADDRESSES = (
    "{{ lookup('pipe', 'id') }}",
    "10.0.0.2\ntouch /tmp/x",
    "10.0.0.2\n",
    "-oProxyCommand=touch /tmp/x",
    "$(id)",
    "10.0.0.2;id",
    "10.0.0.2 10.0.0.3",
    "fe80::1%eth0",
    "fd00::1%{{ x }}",
    "localhost",
    # these lead to the controller itself
    "127.0.0.1",
    "::1",
    "0.0.0.0",
    "::ffff:127.0.0.1",
    "224.0.0.1",
    "10.0.0.2\x00",
    "\uff11\uff10.0.0.2",
    "1" * 1_000_000,
)


def node(
    name: str, *addresses: typing.Any, labels: typing.Any = None, image: str = "Ubuntu 24.04"
) -> dict[str, typing.Any]:
    told = [{"type": "InternalIP", "address": address} for address in addresses]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"addresses": told, "nodeInfo": {"osImage": image}},
    }


@pytest.mark.parametrize("address", HOSTILE_ADDRESSES)
def test_what_is_no_address_is_an_error_of_its_node(address: str) -> None:
    found = parse_inventory([node("worker-1", address), node("worker-2", "10.0.0.3")])
    bad, good = found.nodes
    assert (bad.name, bad.address) == ("worker-1", "") and "Node worker-1" in bad.error and "InternalIP" in bad.error
    assert bad.error.isprintable() and len(bad.error) < 400
    assert (good.address, good.error, found.refused) == ("10.0.0.3", "", ())
    with pytest.raises(ResourceError, match="Node worker-1: its InternalIP"):
        internal_address(node("worker-1", address))


def test_a_second_address_that_is_none_is_an_error_as_well() -> None:
    assert inventory_node(node("worker-1", "10.0.0.2", "-oProxyCommand=x")).address == ""


def test_addresses_of_both_versions() -> None:
    both = node("worker-1", "fd00::2", "10.0.0.2")
    assert internal_address(both) == "10.0.0.2" and inventory_node(both).address == "fd00::2"
    assert internal_address(node("worker-1", "FD00:0::2")) == "fd00::2"


@pytest.mark.parametrize("text", ["{{ x }}", "a\nb", "-o", "$(id)", "\u202egpu", "x" * 1000, "../x"])
def test_labels_and_the_name_of_the_system_are_held_to_their_types(text: str) -> None:
    found = inventory_node(node("worker-1", "10.0.0.2", labels={"example.com/rack": text, "good": "yes"}, image=text))
    assert found.labels == {"good": "yes"} and found.groups == {} and found.address == "10.0.0.2"
    assert (
        "example.com/rack" in found.error
        and "Node worker-1: value of its os" in found.error
        and found.error.isprintable()
    )


def test_a_label_without_a_value_is_one() -> None:
    found = inventory_node(node("worker-1", "10.0.0.2", labels={"node-role.kubernetes.io/worker": ""}))
    assert found.labels == {"node-role.kubernetes.io/worker": ""} and found.error == ""


def test_what_is_no_node_is_named_and_the_others_go_on() -> None:
    found = parse_inventory([{"kind": "Node", "metadata": {}}, node("-oProxyCommand=x"), node("worker-2", "10.0.0.3")])
    assert [item.name for item in found.nodes] == ["worker-2"]
    assert len(found.refused) == 2 and all("Node" in text for text in found.refused)


def test_an_address_that_another_node_has_leads_to_neither() -> None:
    everyone = parse_inventory(
        [
            node("control-plane", "10.0.0.1"),
            node("worker-1", "10.0.0.1"),
            node("worker-2", "10.0.0.3"),
            node("worker-3"),
        ]
    )
    chosen = parse_inventory([node("worker-1", "10.0.0.1"), node("worker-2", "10.0.0.3"), node("worker-3")])
    first, second, third = refuse_shared_addresses(chosen, everyone.nodes).nodes
    assert (
        first.address == ""
        and first.error == "Node worker-1: its InternalIP 10.0.0.1 is also the InternalIP of control-plane"
    )
    # also where the owner has it beside its first one
    owner = node("worker-2", "10.0.0.3", "fd00::2")
    owner["status"]["addresses"].append({"type": "ExternalIP", "address": "192.0.2.7"})
    for address in ("fd00::2", "192.0.2.7"):
        thief = parse_inventory([node("worker-1", address)])
        assert (
            refuse_shared_addresses(thief, parse_inventory([owner, node("worker-1", address)]).nodes).nodes[0].address
            == ""
        )
    assert (second.address, second.error, third.address, third.error) == ("10.0.0.3", "", "", "")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_no_node_takes_the_place_of_the_controller(name: str) -> None:
    """What plays run on localhost, with the kubeconfig among its arguments, would run on the node."""
    found = parse_inventory([node("worker-1", "10.0.0.1"), node(name, "10.6.6.6")])
    assert [one.name for one in found.nodes] == ["worker-1"]
    (refused,) = found.refused
    assert f"Node {name} has the name that Ansible reserves for the controller" in refused


def test_no_node_takes_the_place_of_the_cluster() -> None:
    """The facts of the cluster have other limits, and no secret in them is looked for twice."""
    found = parse_inventory([node("worker-1", "10.0.0.1"), node("cluster", "10.6.6.6")])
    assert [one.name for one in found.nodes] == ["worker-1"]
    assert "Node cluster has the name that a run reserves for the facts of the cluster" in found.refused[0]
