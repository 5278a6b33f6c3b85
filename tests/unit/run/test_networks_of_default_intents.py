# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks of intents with the default name that have no policies: the record of its intent proves whose a network
is."""

from __future__ import annotations

import copy
import shlex
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import LABEL, find_users
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from tests.unit.run.test_intents import Api, applied, objects_of

KEY = ("MacvlanNetwork", "", "net-compute")
NEW = "10.5.0.0/16"
Item = dict[str, typing.Any]


def shared(addresses: str = "10.0.0.0/16", selector: str = "a", name: str = "", mtu: int = 1500) -> Intent:
    wanted = {
        "name": "compute",
        "profile": "rdma_shared",
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "resource_name": "compute",
        "mtu": mtu,
        "network": {"namespace": "jobs", "name": "net-compute"},
        "ipam": {"type": "whereabouts", "range": addresses},
    }
    named = {"intent_name": name} if name else {}
    return parse_intent([wanted], None, {**named, "node_selector": {"kind": selector}})


def earlier(intent: Intent) -> list[Item]:
    """What an earlier release wrote: networks without a record."""
    objects = objects_of(intent)
    for item in objects:
        labels = item["metadata"]["labels"]
        item["metadata"]["labels"] = {key: labels[key] for key in labels.keys() - find_users(labels).keys()}
    return objects


def record(selector: str) -> dict[str, str]:
    made = next(item for item in objects_of(shared(selector=selector)) if item["kind"] == "MacvlanNetwork")
    return find_users(made["metadata"]["labels"])


def records(api: Api) -> dict[str, str]:
    return find_users(api.items[KEY]["metadata"]["labels"])


def do(api: Api, refusal: str) -> None:
    """Label the network as a refusal says."""
    words = shlex.split(refusal.partition("label it: kubectl ")[2])
    assert words[:3] == ["label", "macvlannetwork", "net-compute"] and len(words) == 4
    key, _equals, value = words[3].partition("=")
    api.items[KEY]["metadata"]["labels"][key] = value


@pytest.mark.parametrize("name", ["", "a"])
def test_an_intent_may_change_the_range_of_its_own_network(name: str) -> None:
    api = Api(*objects_of(shared(name=name)))
    assert applied(api, shared(NEW, name=name))["MacvlanNetwork"].action == "changed"
    assert NEW in api.items[KEY]["spec"]["ipam"]
    assert applied(api, shared(NEW, name=name))["MacvlanNetwork"].action == "unchanged"


@pytest.mark.parametrize("made", [objects_of, earlier])
def test_an_intent_for_other_nodes_changes_no_range(made: typing.Callable[[Intent], list[Item]]) -> None:
    api = Api(*made(shared()))
    before = copy.deepcopy(api.items[KEY])
    refused = applied(api, shared(NEW, "b"))["MacvlanNetwork"]
    assert (refused.action, refused.reason) == ("refused", "OtherIntent")
    assert api.items[KEY] == before


def test_the_command_of_the_refusal_lets_the_next_run_change_the_network() -> None:
    api = Api(*earlier(shared()))
    refused = applied(api, shared(NEW))["MacvlanNetwork"]
    assert refused.action == "refused" and "intent_name" not in refused.refusal
    do(api, refused.refusal)
    assert applied(api, shared(NEW))["MacvlanNetwork"].action == "changed"


def test_the_command_works_after_a_change_of_the_nodes_too() -> None:
    api = Api(*objects_of(shared()))
    refused = applied(api, shared(NEW, "b"))["MacvlanNetwork"]
    do(api, refused.refusal)
    assert applied(api, shared(NEW, "b"))["MacvlanNetwork"].action == "changed"
    assert records(api) == record("b") != record("a")


def test_a_run_without_a_change_records_the_intent() -> None:
    api = Api(*earlier(shared()))
    assert applied(api, shared())["MacvlanNetwork"].action == "changed"
    assert records(api) == record("a")
    assert applied(api, shared(NEW))["MacvlanNetwork"].action == "changed"


def test_the_record_of_another_intent_stays() -> None:
    """Two intents with equal networks do not take turns."""
    api = Api(*objects_of(shared()))
    assert applied(api, shared(selector="b"))["MacvlanNetwork"].action == "unchanged"
    assert records(api) == record("a")
    assert applied(api, shared(selector="a"))["MacvlanNetwork"].action == "unchanged"


def test_the_network_of_an_intent_with_a_name_is_used_unchanged_and_gets_no_record() -> None:
    api = Api(*objects_of(shared(name="a")))
    used = applied(api, shared())["MacvlanNetwork"]
    assert used.action == "unchanged" and "belongs to the intent 'a'" in str(used.warnings)
    refused = applied(api, shared(NEW))["MacvlanNetwork"]
    assert "If both are the same intent, set rdma_cluster.intent_name: a" in refused.refusal
    assert "kubectl" not in refused.refusal and "NAME" not in refused.refusal and records(api) == {}


def test_an_equal_network_of_a_user_is_used_unchanged() -> None:
    objects = objects_of(shared())
    for item in objects:
        item["metadata"]["labels"] = {
            key: value for key, value in item["metadata"]["labels"].items() if key != LABEL and "fabric" not in key
        }
    api = Api(*objects)
    used = applied(api, shared())["MacvlanNetwork"]
    assert used.action == "unchanged" and "no teardown deletes it" in str(used.warnings)
