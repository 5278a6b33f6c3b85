# SPDX-License-Identifier: GPL-3.0-or-later

"""Each profile from intent to objects: one folder a profile, with an intent and what becomes of it.
LINERATE_UPDATE_GOLDEN=1 writes them anew.

Take away or misspell any field of any object, and something refuses it: the schemas here (schemas.yml), or the wait,
which compares the attachment. What an object may have or not is named in ``optional`` of the folder's intent; the
golden file holds it.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pathlib
import typing

import jsonschema
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.plain_network import PREDICATES
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.plain_network import RULES
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import profile_keys
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import (
    PROFILES,
    attachment_kind,
    find_traits,
    list_definitions,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import pods
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.measuring import move_fabrics
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.network import RENDERERS, render

HERE = pathlib.Path(__file__).parent
SCHEMAS = yaml.safe_load((HERE / "schemas.yml").read_text(encoding="utf-8"))
FOLDERS = sorted(path.parent.name for path in HERE.glob("*/intent.yml"))
#: fields that hold a text of JSON, and the schema of it
TEXTS = {"/spec/ipam": "ipam", "/spec/config": "config"}
TEXTS.update({f"/spec/{part}/config": part for part in ("rdmaSharedDevicePlugin", "sriovDevicePlugin")})
#: in each text of addresses, what the intent may leave out
ADDRESSES = ("gateway", "exclude", "routes", "gw")
#: mappings whose keys are the user's
FREE = ("/metadata/labels", "/spec/nodeSelector/", "/spec/nicSelector/")


def written(profile: str) -> dict[str, typing.Any]:
    found: dict[str, typing.Any] = yaml.safe_load((HERE / profile / "intent.yml").read_text(encoding="utf-8"))
    return found


def intent_of(profile: str) -> Intent:
    data = written(profile)
    return parse_intent(data["fabrics"], None, data.get("cluster"))


def objects_of(profile: str) -> list[dict[str, typing.Any]]:
    intent = intent_of(profile)
    # where it is seen, as a plan has it
    rendered = render(
        intent.fabrics, dataclasses.replace(intent.cluster, operator_namespace="sriov-network-operator"), {}
    )
    assert rendered.unmade == {}
    return [item for _fabric, item in rendered.objects]


def problems(item: dict[str, typing.Any]) -> list[str]:
    """What speaks against an object: its schema, and those of the texts in it."""
    if set(item) != {"apiVersion", "kind", "metadata", "spec"}:
        return ["the object is no custom resource"]
    kind = SCHEMAS["kinds"].get(item["kind"])
    if kind is None:
        return [f"kind {item['kind']} is not known"]
    if item["apiVersion"] not in (
        path_of(name).removeprefix("/apis/").rpartition("/")[0]
        for name in (item["kind"], f"{item['kind']}.nv-ipam.nvidia.com")
        if known(name)
    ):
        return [f"{item['apiVersion']} has no {item['kind']}"]
    found = [error.message for error in jsonschema.Draft202012Validator(kind["spec"]).iter_errors(item["spec"])]
    for path, name in TEXTS.items():
        text = at(item, path)
        if text is not None:
            try:
                found += [
                    error.message
                    for error in jsonschema.Draft202012Validator(SCHEMAS["texts"][name]["schema"]).iter_errors(
                        json.loads(text)
                    )
                ]
            except ValueError as error:
                found.append(str(error))
    metadata = item["metadata"]
    namespaced = (
        path_of(
            next(name for name in (item["kind"], f"{item['kind']}.nv-ipam.nvidia.com") if known(name)), "there"
        ).count("/namespaces/")
        == 1
    )
    required = {"name", "labels"} | ({"namespace"} if namespaced else set())
    if set(metadata) != required or metadata["labels"].get("app.kubernetes.io/managed-by") != "linerate.rdma":
        found.append(f"metadata has {sorted(metadata)}, and the teardown looks for the collection's label")
    return found


def known(kind: str) -> bool:
    try:
        return bool(path_of(kind))
    except KeyError:
        return False


def at(item: typing.Any, path: str) -> typing.Any:
    for key in path.strip("/").split("/"):
        item = item.get(key) if isinstance(item, dict) else None
    return item


def places(value: typing.Any, path: str = "") -> typing.Iterator[str]:
    """Each key and each item of a list, with its path; texts of JSON are gone into."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield f"{path}/{key}"
        yield from places(inner, f"{path}/{key}")


def change(value: dict[str, typing.Any], path: str, act: typing.Callable[..., typing.Any]) -> dict[str, typing.Any]:
    """The value, with what ``act`` does to the parent of ``path``."""
    value = copy.deepcopy(value)
    keys = path.strip("/").split("/")
    parent = value
    for key in keys[:-1]:
        parent = parent[int(key) if isinstance(parent, list) else key]
    act(parent, int(keys[-1]) if isinstance(parent, list) else keys[-1])
    return value


def take(parent: typing.Any, key: typing.Union[int, str]) -> None:
    del parent[key]


def misspell(parent: dict[str, typing.Any], key: str) -> None:
    parent[f"{key}x"] = parent.pop(key)


def mutants(
    item: dict[str, typing.Any],
) -> typing.Iterator[tuple[str, typing.Callable[..., typing.Any], dict[str, typing.Any]]]:
    """Each wrong object: where, what was done there, and the object."""
    for path in places(item):
        if path in TEXTS:
            inner = json.loads(at(item, path))
            for inside in (inside for inside in places(inner) if not inside.startswith("/plugins/1/")):
                for act in (take, misspell):
                    if act is misspell and is_item(inside):
                        continue
                    text = json.dumps(change(inner, inside, act))
                    yield (
                        f"{path}:{inside}",
                        act,
                        change(item, path, lambda parent, key, text=text: parent.update({key: text})),
                    )
        if not path.startswith(FREE):
            yield path, take, change(item, path, take)
            if not is_item(path):
                yield path, misspell, change(item, path, misspell)


def is_item(path: str) -> bool:
    return path.rpartition("/")[2].isdigit()


def test_each_profile_has_a_folder_a_row_of_rules_and_what_it_needs() -> None:
    assert sorted(PROFILES) == FOLDERS
    assert sorted(RULES) == sorted(name for name, its in PROFILES.items() if not its.functions)
    assert sorted(RENDERERS) == sorted(name for name, its in PROFILES.items() if its.members)
    for its in PROFILES.values():
        assert its.predicates == ("virtual_functions",) or set(its.predicates) <= set(PREDICATES)


@pytest.mark.parametrize("profile", FOLDERS)
def test_the_intent_is_a_right_one(profile: str) -> None:
    intent = intent_of(profile)
    found = validate.check(intent, validate.Facts(("worker-1", "worker-2"), ("rdma_fabrics",)))
    assert [finding for finding in found if finding.status not in ("pass", "warn")] == []
    assert {fabric.profile for fabric in intent.fabrics} == {profile}


@pytest.mark.parametrize("profile", FOLDERS)
def test_objects_and_pods(profile: str) -> None:
    intent = intent_of(profile)
    made = objects_of(profile) + [
        pods.render_measuring_pod(fabric, intent.cluster, "worker-1") for fabric in move_fabrics(intent.fabrics)
    ]
    text = "---\n" + yaml.safe_dump_all(made, sort_keys=False, default_flow_style=False, width=150)
    path = HERE / profile / "objects.golden"
    if os.environ.get("LINERATE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("profile", FOLDERS)
def test_a_field_that_is_missing_or_misspelt_is_refused(profile: str) -> None:
    passed: set[str] = set()
    misspelt: set[str] = set()
    for item in (item for item in objects_of(profile) if item["kind"] != "Namespace"):
        assert problems(item) == []
        for path, act, mutant in mutants(item):
            if not problems(mutant):
                (passed if act is take else misspelt).add(path)
    assert misspelt == set()
    free = {path for path in passed if is_item(path) or path.rpartition("/")[2] in ADDRESSES}
    assert passed - free == set(written(profile).get("optional", []))


@pytest.mark.parametrize("profile", FOLDERS)
def test_each_kind_has_a_definition_that_stage_operators_looks_for(profile: str) -> None:
    intent = intent_of(profile)
    wanted = {name for fabric in intent.fabrics for name in list_definitions(fabric)}
    for item in objects_of(profile):
        if item["kind"] not in ("Namespace", "SriovNetworkPoolConfig"):
            group = item["apiVersion"].partition("/")[0]
            assert any(name.endswith(group) for name in wanted), item["kind"]
    for fabric in intent.fabrics:
        assert bool(attachment_kind(fabric)) == find_traits(fabric).members


@pytest.mark.parametrize("profile", [name for name, its in PROFILES.items() if its.shared])
def test_a_fabric_without_its_one_interface_is_not_made_and_keeps_nobody_back(profile: str) -> None:
    intent = intent_of(profile)
    bare = [dataclasses.replace(fabric, select=Select(1)) for fabric in intent.fabrics]
    baseline = intent_of("macvlan").fabrics[0]
    rendered = render([*bare, dataclasses.replace(baseline, name="good")], intent.cluster, {})
    assert {name: "select.netdev has 0 interfaces" in why for name, why in rendered.unmade.items()} == {
        fabric.name: True for fabric in bare
    }
    assert "good" in {name for name, _object in rendered.objects}


@pytest.mark.parametrize("profile", ["macvlan", "rdma_shared"])
def test_settings_of_perftest_are_warned_of_where_tcp_is_measured(profile: str) -> None:
    """Several fabrics may have one mapping of pods in common."""
    intent = intent_of(profile)
    pods = dataclasses.replace(intent.fabrics[0].pods, queue_pairs=16, message_bytes=4096, iterations=7)
    found = profile_keys.check(dataclasses.replace(intent.fabrics[0], pods=pods), "rdma_fabrics[0]")
    warned = [(item.subject, item.status) for item in found if item.status != "pass"]
    assert warned == (
        [(f"rdma_fabrics[0].pods.{key}", "warn") for key in ("message_bytes", "queue_pairs", "iterations")]
        if profile == "macvlan"
        else []
    )


ETHERNET = {
    "profile": "sriov_ethernet",
    "virtual_functions": 2,
    "resource_name": "r",
    "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
}


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({**ETHERNET, "virtual_functions": 0}, "virtual_functions", "get virtual functions"),
        ({**ETHERNET, "ipam": None}, "ipam", "need addresses"),
        ({**ETHERNET, "pods_per_node": 4}, "pods_per_node", "Only profiles whose pods share one interface"),
        ({**ETHERNET, "network": {"namespace": "t"}}, "network.name", "refer to the attachment by name"),
        ({**ETHERNET, "network": {"vlan": 4095}}, "network.vlan", "the sriov CNI plugin rejects them"),
        ({**ETHERNET, "network": {"vlan": 5, "vlan_qos": 8}}, "network.vlan_qos", "3 bits"),
        ({**ETHERNET, "network": {"vlan_qos": 3}}, "network.vlan_qos", "priority without a VLAN"),
        ({**ETHERNET, "network": {"max_tx_rate": -1}}, "network.max_tx_rate", "rejects a negative rate"),
        ({**ETHERNET, "network": {"min_tx_rate": 200, "max_tx_rate": 100}}, "network.min_tx_rate", "EINVAL"),
        ({"profile": "macvlan", "network": {"trust": False}}, "network.trust", "have a trust setting"),
        ({"profile": "macvlan", "resource_name": "r"}, "resource_name", "request no device"),
        ({"profile": "macvlan", "virtual_functions": 2}, "virtual_functions", "creates no virtual functions"),
        ({"profile": "macvlan", "select": {"hcas_per_node": 1}}, "select.netdev", "refers to one interface"),
        (
            {"profile": "macvlan", "select": {"hcas_per_node": 2, "netdev": ["ens1"]}},
            "select.hcas_per_node",
            "One interface belongs to one HCA",
        ),
        ({"profile": "macvlan", "pods_per_node": 0}, "pods_per_node", "cannot be tested"),
        ({"profile": "macvlan", "network": {"mode": "passthru"}}, "pods_per_node", "belongs to one pod"),
        ({"profile": "rdma_shared"}, "resource_name", "name of a resource"),
        ({"profile": "rdma_shared", "resource_name": "r", "rdma": False}, "rdma", "use profile macvlan or ipoib"),
        (
            {
                "profile": "rdma_shared",
                "resource_name": "r",
                "mtu": 4000,
                "select": {"hcas_per_node": 1, "netdev": ["ib0"], "subnet_manager": "any"},
            },
            "mtu",
            "the MTU of the partition",
        ),
        (
            {"profile": "ipoib", "network": {"meta_plugins": [{"type": "tuning"}]}},
            "network.meta_plugins",
            "does not support chained CNI plugins",
        ),
        (
            {"profile": "host_device", "select": {"hcas_per_node": 2, "netdev": ["ens1", "ens2"]}},
            "select.hcas_per_node",
            "One interface belongs to one HCA",
        ),
        ({"profile": "pod_network"}, "ipam", "already have addresses of the cluster network"),
        ({"profile": "pod_network"}, "select", "so no HCA belongs to the fabric"),
        *(
            (
                {"profile": "macvlan", word.partition(".")[0]: {word.partition(".")[2]: value}},
                word,
                "so stage bandwidth measures TCP",
            )
            for word, value in (
                ("bandwidth.latency", True),
                ("bandwidth.most_latency_us", 3.0),
                ("bandwidth.sweep", True),
                ("bandwidth.layers", "all"),
                ("line_rate.fraction", 0.99),
            )
        ),
        (
            {**ETHERNET, "rdma": False, "bandwidth": {"latency": True}},
            "bandwidth.latency",
            "so stage bandwidth measures TCP",
        ),
    ],
)
def test_a_key_that_does_not_go_with_the_profile_is_refused(
    changes: dict[str, typing.Any], key: str, said: str
) -> None:
    data = {
        "name": "f",
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
        **changes,
    }
    network = changes.get("network", {})
    data["network"] = network if set(network) == {"namespace"} else {"name": "n", "namespace": "t", **network}
    intent = parse_intent([{name: value for name, value in data.items() if value is not None}])
    found = {finding.subject: finding for finding in profile_keys.check(intent.fabrics[0], "rdma_fabrics[0]")}
    assert found[f"rdma_fabrics[0].{key}"].status == "fail"
    assert said in found[f"rdma_fabrics[0].{key}"].why
