# SPDX-License-Identifier: GPL-3.0-or-later

"""Pools of addresses of nv-ipam and two intents without a name: neither a run nor a teardown of one takes a pool from
the networks of the other."""

from __future__ import annotations

import copy
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from tests.unit.owners.test_table import Server as Api
from tests.unit.run.test_intents import applied, objects_of, removed, scope_of

Item = dict[str, typing.Any]
POOLS: dict[str, Item] = {
    "IPPool": {"name": "common", "create": True, "per_node_block_size": 8},
    "CIDRPool": {
        "name": "common",
        "create": True,
        "kind": "CIDRPool",
        "per_node_network_prefix": 28,
        "gateway_index": 1,
    },
}


def pool_intent(fabric: str, kind: str, selector: str, create: bool = True, name: str = "") -> Intent:
    pool = {**POOLS[kind], "create": create}
    wanted = {
        "name": fabric,
        "profile": "rdma_shared",
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "resource_name": fabric,
        "network": {"name": f"net-{fabric}", "namespace": "jobs"},
        "ipam": {"type": "nv-ipam", "range": "100.64.0.0/16", "pool": pool},
    }
    return parse_intent([wanted], None, {"intent_name": name or "default", "node_selector": {"kind": selector}})


def _is_pool(outcome: Outcome, kind: str) -> bool:
    return outcome.applied.kind.partition(".")[0] == kind


@pytest.mark.parametrize("name", ["", "prod"])
@pytest.mark.parametrize("kind", POOLS)
def test_a_teardown_leaves_a_pool_that_a_network_of_another_intent_uses(kind: str, name: str) -> None:
    mine = pool_intent("compute", kind, "a", name=name)
    theirs = pool_intent("storage", kind, "b", create=False)
    api = Api(*objects_of(mine), *objects_of(theirs))
    (kept,) = (item.applied for item in removed(api, scope_of(mine), KINDS[:-1]) if _is_pool(item, kind))
    assert kept.action == "kept" and "MacvlanNetwork net-storage" in kept.refusal
    assert kind in {key[0] for key in api.items}
    # its own networks keep no pool
    alone = Api(*objects_of(mine))
    removed(alone, scope_of(mine), KINDS[:-1])
    assert kind not in {key[0] for key in alone.items}


@pytest.mark.parametrize("kind", POOLS)
def test_a_network_of_a_user_keeps_the_pool(kind: str) -> None:
    mine = pool_intent("compute", kind, "a")
    ipam = {"type": "nv-ipam", "poolName": "common", "poolType": kind.lower()}
    attachment: Item = {
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "team-x", "namespace": "team-x", "uid": "x"},
        "spec": {"config": json.dumps({"plugins": [{"type": "macvlan", "ipam": ipam}]})},
    }
    api = Api(*objects_of(mine), attachment)
    (kept,) = removed(api, scope_of(mine), (f"{kind}.nv-ipam.nvidia.com",))
    assert kept.applied.action == "kept" and "NetworkAttachmentDefinition team-x/team-x" in kept.applied.refusal
    assert kind in {key[0] for key in api.items}
    attachment["spec"]["config"] = json.dumps({"type": "macvlan", "ipam": {**ipam, "poolName": "other"}})
    api = Api(*objects_of(mine), attachment)
    removed(api, scope_of(mine), (f"{kind}.nv-ipam.nvidia.com",))
    assert kind not in {key[0] for key in api.items}


_NV_IPAM: Item = {"type": "nv-ipam", "poolType": "ippool"}


def attachment_of(**config: typing.Any) -> Item:
    return {
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "team-x", "namespace": "team-x", "uid": "x", "labels": {}},
        "spec": {"config": json.dumps({"name": "n", "type": "macvlan", **config})},
    }


def network_of(kind: str, **ipam: str) -> Item:
    return {
        "kind": kind,
        "metadata": {"name": "theirs", "namespace": "operator", "uid": "x", "labels": {}},
        "spec": {"ipam": json.dumps({**_NV_IPAM, **ipam}), "networkNamespace": "team-x", "resourceName": "r"},
    }


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(attachment_of(ipam={**_NV_IPAM, "poolName": "common,common6"}), id="the first of two"),
        pytest.param(attachment_of(ipam={**_NV_IPAM, "poolName": "common6, common"}), id="the second of two"),
        pytest.param(network_of("MacvlanNetwork", poolName="common,common6"), id="two pools of a network"),
        pytest.param(attachment_of(name="common", ipam=_NV_IPAM), id="the name of the network"),
        pytest.param(
            attachment_of(
                plugins=[{"type": "tuning"}, {"type": "macvlan", "ipam": {**_NV_IPAM, "poolName": "common"}}]
            ),
            id="the second plugin",
        ),
    ],
)
def test_each_form_of_the_name_keeps_the_pool(network: Item) -> None:
    mine = pool_intent("compute", "IPPool", "a", name="prod")
    api = Api(*objects_of(mine), network)
    (kept,) = removed(api, scope_of(mine), ("IPPool.nv-ipam.nvidia.com",))
    assert kept.applied.action == "kept" and network["metadata"]["name"] in kept.applied.refusal
    assert "IPPool" in {key[0] for key in api.items}


@pytest.mark.parametrize("network", [attachment_of(ipam=_NV_IPAM), network_of("SriovNetwork", poolName="other")])
def test_a_network_that_uses_nv_ipam_keeps_the_policy_that_runs_it(network: Item) -> None:
    mine = pool_intent("compute", "IPPool", "a", name="prod")
    api = Api(*objects_of(mine), network)
    found = [item.applied for item in removed(api, scope_of(mine), KINDS[:-1])]
    (policy,) = (item for item in found if item.kind == "NicClusterPolicy")
    assert policy.action == "kept" and network["metadata"]["name"] in policy.refusal
    assert "NicClusterPolicy" in {key[0] for key in api.items}
    api = Api(*objects_of(mine), attachment_of(ipam={"type": "whereabouts", "range": "192.0.2.0/24"}))
    removed(api, scope_of(mine), KINDS[:-1])
    assert "NicClusterPolicy" not in {key[0] for key in api.items}


@pytest.mark.parametrize("kind", POOLS)
def test_a_run_of_a_second_intent_takes_no_pool(kind: str) -> None:
    """A pool of the same name and range gives addresses to the nodes of its own intent."""
    mine, theirs = pool_intent("compute", kind, "a"), pool_intent("compute", kind, "b")
    api = Api(*objects_of(mine))
    before = copy.deepcopy(api.items)
    done = applied(api, theirs)[kind]
    assert (done.action, done.reason) == ("refused", "OtherIntent")
    assert {key: item for key, item in api.items.items() if key[0] == kind} == {
        key: item for key, item in before.items() if key[0] == kind
    }
