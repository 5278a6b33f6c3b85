# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric that is held back keeps its part of the NicClusterPolicy, which all fabrics of the cluster share."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nvidia_network_operator import nic_policy
from ansible_collections.linerate.rdma.plugins.module_utils._plan import network
from tests.unit.plan.test_network import FREE, NOTHING, SHARED, Data, operators
from tests.unit.run.test_intents import Api, objects_of

KEY = ("NicClusterPolicy", "", "nic-cluster-policy")
#: in the range of the fabric held
USED = AddressFacts((UsedNetwork("services", "10.20.0.0/16", "ServiceCIDR kubernetes"),), pods=1)
PLUGINS = {"rdmaSharedDevicePlugin": "configList", "sriovDevicePlugin": "resourceList"}


def fabric(name: str, net: int = 21, **changes: typing.Any) -> Data:
    return {
        **SHARED,
        "name": name,
        "resource_name": name,
        "select": {"hcas_per_node": 1, "netdev": [name]},
        "network": {"name": name, "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": f"10.{net}.100.0/24"},
        **changes,
    }


HELD = fabric("held", 20)
IPOIB = fabric("held", 20, profile="ipoib")
del IPOIB["resource_name"]
DEVICE = fabric("held", 20, profile="host_device")


def intent_of(*fabrics: Data, name: str = "a") -> Intent:
    return parse_intent(list(fabrics), None, {"intent_name": name, "disruption": "none"})


def run(api: Api, intent: Intent, addresses: AddressFacts, errors: tuple[str, ...] = ()) -> dict[str, str]:
    """Plan and apply as stage network does. Return what became of each kind."""
    there = (nic_policy(api.items[KEY]),) if KEY in api.items and not errors else ()
    seen = dataclasses.replace(operators(8), nic_policies=there, errors=errors)
    planned = network.plan(intent, ["worker-1"], NOTHING, addresses, seen)
    wanted = [(item["fabric"], item["object"]) for item in planned.objects]
    done = apply_all(typing.cast(Cluster, api), wanted, False, lambda: 0.0, lambda _seconds: None)
    return {item.applied.kind: item.applied.action for item in done}


def resources(api: Api) -> dict[str, list[str]]:
    """Return the names of the resources in the policy, by device plugin."""
    spec = api.items[KEY]["spec"]
    return {
        part: [entry["resourceName"] for entry in json.loads(spec[part]["config"])[entries]]
        for part, entries in PLUGINS.items()
        if part in spec
    }


@pytest.mark.parametrize("name", ["a", "default"])
@pytest.mark.parametrize(
    "fabrics",
    [
        (HELD, fabric("other")),
        (fabric("other"), HELD),
        (DEVICE, fabric("other")),
        (HELD, fabric("other", profile="host_device")),
        (IPOIB, fabric("other")),
    ],
)
def test_a_held_fabric_keeps_what_the_policy_contains(fabrics: tuple[Data, ...], name: str) -> None:
    intent = intent_of(*fabrics, name=name)
    api = Api(*objects_of(intent))
    before = copy.deepcopy(api.items[KEY])
    assert run(api, intent, USED)["NicClusterPolicy"] == "unchanged"
    assert api.items[KEY] == before


def test_the_entry_stays_as_it_is_and_the_others_change() -> None:
    api = Api(*objects_of(intent_of(HELD, fabric("other"))))
    before = json.loads(api.items[KEY]["spec"]["rdmaSharedDevicePlugin"]["config"])["configList"]
    changed: Data = {"select": {"hcas_per_node": 1, "netdev": ["new"]}}
    assert run(api, intent_of({**HELD, **changed}, fabric("other", **changed)), USED)["NicClusterPolicy"] == "changed"
    after = json.loads(api.items[KEY]["spec"]["rdmaSharedDevicePlugin"]["config"])["configList"]
    assert after[0] == before[0] and after[1]["selectors"] == {"ifNames": ["new"]}


def test_a_held_fabric_that_the_policy_does_not_contain_gets_no_entry() -> None:
    intent = intent_of(HELD, fabric("other"))
    api = Api()
    run(api, intent, USED)
    assert resources(api) == {"rdmaSharedDevicePlugin": ["other"]}
    run(api, intent, USED)
    assert resources(api) == {"rdmaSharedDevicePlugin": ["other"]}
    run(api, intent, FREE)
    assert resources(api) == {"rdmaSharedDevicePlugin": ["held", "other"]}


def test_a_fabric_that_is_not_in_the_intent_any_more_loses_its_entry() -> None:
    api = Api(*objects_of(intent_of(HELD, fabric("other"), fabric("gone", 22))))
    run(api, intent_of(HELD, fabric("other")), USED)
    assert resources(api) == {"rdmaSharedDevicePlugin": ["held", "other"]}


@pytest.mark.parametrize("config", ["no JSON", "[]", '{"resourceList": 1}', '{"resourceList": [1, {}]}'])
def test_an_entry_of_another_manager_or_of_another_form_is_not_applied(config: str) -> None:
    intent = intent_of(DEVICE, fabric("other"))
    api = Api(*objects_of(intent))
    api.items[KEY]["spec"]["sriovDevicePlugin"]["config"] = config
    run(api, intent, USED)
    assert resources(api) == {"rdmaSharedDevicePlugin": ["other"]}
    api = Api(*objects_of(intent))
    api.items[KEY]["metadata"]["managedFields"] = [
        {"manager": "helm", "fieldsV1": {"f:spec": {"f:sriovDevicePlugin": {"f:config": {}}}}}
    ]
    run(api, intent, USED)
    assert resources(api) == {"rdmaSharedDevicePlugin": ["other"]}


def test_a_policy_that_cannot_be_read_is_not_applied_while_a_fabric_is_held() -> None:
    intent = intent_of(HELD, fabric("other"))
    api = Api(*objects_of(intent))
    before = copy.deepcopy(api.items[KEY])
    error = ("GET /apis/mellanox.com/v1alpha1/nicclusterpolicies: overloaded",)
    assert "NicClusterPolicy" not in run(api, intent, USED, error)
    assert api.items[KEY] == before
    assert run(api, intent, FREE, error)["NicClusterPolicy"] == "unchanged"
