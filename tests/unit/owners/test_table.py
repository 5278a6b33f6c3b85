# SPDX-License-Identifier: GPL-3.0-or-later

"""Each cell of the table of owners, played with the code that a run and a teardown use."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pathlib
import shlex
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import (
    INTENT_LABEL,
    LABEL,
    build_user_label,
    find_users,
    mark_intent,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import powers
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import HOST_KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import (
    list_needed_rights,
    of_observers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import Settings
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import remove_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.whose_scope import learn_scope
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.nic_configuration import render_templates
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.tuned import render_tuned
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_roller import (
    PoolRoller,
)
from dev import rbac
from tests.unit.owners.page import render
from tests.unit.owners.table import ELSEWHERE, KEEP, OWNERS, REFUSE, ROWS, TAKE
from tests.unit.run.test_intents import RUNNING, SELECTOR, Api, job
from tests.unit.run.test_roll import Operator

Item = dict[str, typing.Any]
Played = tuple[str, str]
TESTS = pathlib.Path(__file__).resolve().parents[1]
#: profile of the fabric of which a kind is an object
PROFILES = {
    "SriovIBNetwork": "sriov_infiniband",
    "MacvlanNetwork": "rdma_shared",
    "IPoIBNetwork": "ipoib",
    "HostDeviceNetwork": "host_device",
    "NetworkAttachmentDefinition": "macvlan",
    "IPPool.nv-ipam.nvidia.com": "macvlan",
    "CIDRPool.nv-ipam.nvidia.com": "macvlan",
}
POOLS: dict[str, Item] = {
    "IPPool.nv-ipam.nvidia.com": {"name": "own", "create": True, "per_node_block_size": 8},
    "CIDRPool.nv-ipam.nvidia.com": {
        "name": "own",
        "create": True,
        "kind": "CIDRPool",
        "per_node_network_prefix": 28,
        "gateway_index": 1,
    },
}
NODES = [
    {"kind": "Node", "metadata": {"name": f"{kind}0", "labels": {"kind": kind}}, "spec": {}} for kind in ("a", "b")
]
CELLS = [(kind, owner) for kind, row in ROWS.items() for owner in row]


class Server(Api):
    """An API server that selects by the label of the collection, and knows kinds of several API groups."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        found = super().list(kind, namespace)
        items = (item for item in found.items if not selector or LABEL in item["metadata"]["labels"])
        return dataclasses.replace(found, items=tuple(items))

    def delete(self, kind: str, *arguments: typing.Any, **options: typing.Any) -> bool:
        return super().delete(kind.partition(".")[0], *arguments, **options)


def fabric(title: str, profile: str, kind: str = "") -> Item:
    """Return a fabric as a user writes it."""
    functions = profile.startswith("sriov")
    return {
        "name": title,
        "profile": profile,
        "select": {"hcas_per_node": 1, "netdev": ["ens1"], "vendor": "15b3"},
        **({"virtual_functions": 4} if functions else {}),
        **({} if profile in ("macvlan", "ipoib") else {"resource_name": title}),
        "network": {"name": f"net-{title}", "namespace": "jobs"},
        "ipam": {
            "type": "nv-ipam" if kind in POOLS and not functions else "whereabouts",
            "range": "100.64.0.0/16",
            **({"pool": POOLS[kind]} if kind in POOLS and not functions else {}),
        },
    }


def intent_for(kind: str, name: str = "prod", selector: str = "a") -> Intent:
    """Return an intent with the object of a kind, and with a policy, which proves the nodes of its name."""

    profile = PROFILES.get(kind, "sriov_ethernet")
    fabrics = [fabric("compute", profile, kind)]
    fabrics += [] if profile.startswith("sriov") else [fabric("storage", "sriov_ethernet")]
    settings = {
        "intent_name": name,
        "node_selector": {"kind": selector},
        "operator_namespace": "sriov",
        "node_pool": {"max_unavailable": 1},
        "disruption": "reboot",
    }
    return parse_intent(fabrics, None, settings)


def rendered(kind: str, intent: Intent) -> list[tuple[str, Item]]:
    cluster = intent.cluster
    made = list(network.render(intent.fabrics, cluster, {}).objects)
    if kind == "NicConfigurationTemplate":
        made += [
            ("compute", item)
            for item in render_templates(intent.fabrics, cluster, {"compute": ["1021"]}, "nvidia-network-operator")
        ]
    if kind == "Tuned":
        tuned = render_tuned(Settings({}), cluster.node_selector, "worker", "openshift-node")
        made.append(("", mark_intent(tuned, cluster.intent_name)))
    return [(fabric, copy.deepcopy(item)) for fabric, item in made]


def is_of(kind: str, item: Item) -> bool:
    return bool(item["kind"] == kind.partition(".")[0])


def existing(kind: str, owner: str) -> list[Item]:
    """Return the objects of the owner in the cluster. Their content differs from what the intent renders now."""
    intent = intent_for(kind, "prod", "b" if owner in ("other", "equal") else "a")
    found = []
    for _fabric, item in rendered(kind, intent):
        metadata = item["metadata"]
        manager = "kubectl" if owner in ("admin", "copied") and is_of(kind, item) else "linerate.rdma"
        fields: Item = {"f:spec": {f"f:{key}": {} for key in item.get("spec", {})}}
        metadata |= {
            "uid": f"uid-{metadata['name']}",
            "managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": fields}],
        }
        if owner == "other":
            metadata["labels"][INTENT_LABEL] = "b"
        if owner == "earlier":
            kept = metadata["labels"].keys() - find_users(metadata["labels"]).keys() - {INTENT_LABEL}
            metadata["labels"] = {key: metadata["labels"][key] for key in kept}
        if owner == "admin" and is_of(kind, item):
            metadata["labels"] = {}
        if is_of(kind, item):
            # a content that the intent does not ask for any more
            item["spec" if kind != "Namespace" else "metadata"]["was"] = "before"
        found.append(item)
    return found


def of_tenant(kind: str) -> Item:
    """Return a policy of a tenant, who took the labels and the field manager from those of the intent."""
    found = next(item for item in existing(kind, "own") if item["kind"] == "SriovNetworkNodePolicy")
    found["metadata"] |= {"name": "x", "namespace": "team-x", "uid": "x"}
    found["spec"]["nodeSelector"] = {}
    return found


def play_fabric(kind: str, owner: str) -> Played:
    """Return what a run and a teardown do with the object of a kind."""
    intent = intent_for(kind)
    beside = [job("train", "jobs", "prod", **RUNNING)] if owner == "used" else []
    there = existing(kind, owner)
    keys = [Api.key(item) for item in there if is_of(kind, item)]
    beside += [of_tenant(kind)] if owner == "beside" else []

    def learnt(api: Server) -> typing.Any:
        return learn_scope(typing.cast(Cluster, api), build_scope(intent.fabrics, intent.cluster))

    api = Server(*there, *NODES, *beside)
    before = copy.deepcopy(api.items)
    outcomes = apply_all(
        typing.cast(Cluster, api), rendered(kind, intent), False, lambda: 0.0, lambda _s: None, scope=learnt(api)
    )
    (done,) = (item.applied for item in outcomes if item.before is not None and Api.key(item.before) in keys)
    same = all(api.items[key] == before[key] for key in keys)
    applied = {"changed": TAKE, "unchanged": KEEP, "refused": REFUSE}[done.action]
    assert same is (applied != TAKE)
    if applied == REFUSE:
        explains(done.refusal, done.name)

    api = Server(*there, *NODES, *beside)
    removal = Removal(KINDS, SELECTOR, limit=3.0, scope=learnt(api))
    try:
        refuse_removal(typing.cast(Cluster, api), removal, "reboot")
    except RdmaError as error:
        assert "PyTorchJob jobs/train" in error.seen and "kubectl delete" in error.remedy
        return applied, REFUSE
    removed = remove_all(typing.cast(Cluster, api), removal, False, lambda: 0.0, lambda _seconds: None)
    left = [key for key in keys if key in api.items]
    named = {(item.applied.kind, item.applied.name) for item in removed if item.applied.action in ("kept", "refused")}
    # a removal finds objects by the label of the collection
    assert owner == "admin" or all((key[0], key[2]) in named for key in left)
    return applied, KEEP if left else TAKE


def explains(refusal: str, name: str) -> None:
    """Assert that a refusal has a command about the object, or names the object of the same fabric that has one. An
    object with the name of another intent is left to its owner, without a command.
    """
    if "Follow the message about this" in refusal:
        return
    if "it belongs to the intent" in refusal:
        assert "Ask its owner" in refusal and "set rdma_cluster.intent_name: " in refusal, refusal
        assert "kubectl" not in refusal, refusal
        return
    if "needs it too, and differs from" in refusal:
        assert "Ask its owner" in refusal and "kubectl" not in refusal, refusal
        return
    words = shlex.split(refusal.rpartition("kubectl ")[2])
    assert "label" in words and name in words and len(words[words.index(name) :]) >= 2, refusal


HOSTS: dict[str, Item] = {
    "MachineConfig": {"kernel_arguments": ["iommu=pt"]},
    "KubeletConfig": {"kubelet": {"topology_manager_policy": "restricted"}},
}
HOSTS_NOW: dict[str, Item] = {
    "MachineConfig": {"kernel_arguments": ["iommu=pt", "pci=realloc"]},
    "KubeletConfig": {"kubelet": {"topology_manager_policy": "single-numa-node"}},
}


def play_host(kind: str, owner: str) -> Played:
    """Return what a run and a teardown do with a MachineConfig or a KubeletConfig of a pool of three nodes."""
    name, selector = ("b" if owner == "other" else "prod"), {"kind": "b"} if owner == "equal" else {"role": "worker"}

    def host(settings: Item, name: str = "prod", selector: typing.Optional[Item] = None) -> Intent:
        chosen = {"node_selector": selector or {"role": "worker"}, "intent_name": name, "disruption": "reboot"}
        made = parse_intent([fabric("compute", "sriov_ethernet")], None, {**chosen, "host": settings})
        return dataclasses.replace(made, fabrics=())

    def prepare(operator: Operator, intent: Intent) -> typing.Any:
        scope = dataclasses.replace(build_scope((), intent.cluster), doubt=doubt)
        say = operator.log.append
        run = PoolRoller(
            typing.cast(Cluster, operator), operator.clock, operator.sleep, say, None, intent.cluster, scope
        )
        wanted = [copy.deepcopy(item) for item in render_host_configs(intent.cluster.host, intent.cluster.intent_name)]
        prepared = run.prepare(wanted, check_mode=False)
        run.release(prepared.paused, 600, ["n0"])
        return prepared

    def world() -> tuple[Operator, Item]:
        operator = Operator()
        prepare(operator, host(HOSTS[kind], name, selector))
        (item,) = (item for item in operator._objects(kind).values() if item["metadata"]["name"].find("generated") < 0)
        labels = item["metadata"]["labels"]
        for key in [*find_users(labels), INTENT_LABEL] if owner == "earlier" else ():
            del labels[key]
        if owner == "shared":
            labels |= build_user_label("b", {})
        if owner == "admin":
            del labels[LABEL]
        if owner in ("admin", "copied"):
            item["metadata"]["managedFields"] = [{"manager": "kubectl"}]
        operator.away.clear()
        return operator, item

    doubt = ""
    operator, item = world()
    # the node selector of another inventory of this name, which its policies show
    doubt = "a name that another intent may have" if owner == "equal" else ""
    mine = host(HOSTS_NOW[kind], "prod", {"kind": "a"} if owner == "equal" else None)
    before = copy.deepcopy(item["spec"])
    (outcome,) = prepare(operator, mine).outcomes
    applied = {"changed": TAKE, "refused": REFUSE}[outcome.applied.action]
    if applied == REFUSE:
        assert operator.away == [] and not operator.paused
        assert operator._objects(kind)[item["metadata"]["name"]]["spec"] == before
        explains(outcome.applied.refusal, outcome.applied.name)

    operator, item = world()
    scope = dataclasses.replace(build_scope((), mine.cluster), doubt=doubt)
    run = PoolRoller(
        typing.cast(Cluster, operator), operator.clock, operator.sleep, operator.log.append, None, mine.cluster, scope
    )
    item["metadata"]["uid"] = f"uid-{item['metadata']['name']}"
    gone = run.remove([], False, [{**copy.deepcopy(item), "kind": kind}], scope)
    assert bool(gone.outcomes) is not bool(gone.stays)
    assert all("kubectl" in stay.remedy and stay.subject == f"{kind} {item['metadata']['name']}" for stay in gone.stays)
    return applied, KEEP if gone.stays else TAKE


@pytest.mark.parametrize(("kind", "owner"), CELLS)
def test_cell(kind: str, owner: str) -> None:
    play = play_host if kind in HOST_KINDS else play_fabric
    assert play(kind, owner) == tuple(ROWS[kind][owner])


def test_each_kind_that_the_collection_creates_or_changes_has_a_row() -> None:
    """By the rights that it asks for: another helper of the table has the operators."""
    beside = (powers.OLM, powers.OLM_REMOVAL)
    rights = [*list_needed_rights(rbac.everything(), rbac.OPERATOR, olm=False), *of_observers(rbac.OBSERVERS)]
    written = {
        right.kind
        for right in rights
        if right.verb in ("create", "patch", "update", "delete") and right.power not in beside
    }
    assert {*written, *KINDS, *HOST_KINDS} - {*ROWS, *ELSEWHERE} == set()
    assert not ROWS.keys() & ELSEWHERE.keys()


def test_tests_that_play_other_rows_exist() -> None:
    for name in (name for names in ELSEWHERE.values() for name in names):
        path, _colons, function = name.partition("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        assert function in {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}, name


def test_owners_are_those_of_the_table() -> None:
    assert {owner for row in ROWS.values() for owner in row} == set(OWNERS)


def test_the_page_for_admins_is_made_of_the_table() -> None:
    page = (TESTS.parents[1] / "docs/security.md").read_text(encoding="utf-8")
    begin, end = "<!-- made by 'python -m tests.unit.owners.page' -->\n", "\n<!-- end -->"
    assert page.partition(begin)[2].partition(end)[0] == render()
