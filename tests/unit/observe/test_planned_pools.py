# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies are applied only if the SriovNetworkPoolConfig is as rendered: the plan of the drains counts on it."""

from __future__ import annotations

import copy
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.applied_objects import (
    _describe_refusal_remedy,
    _explain_refusal,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import OTHER_POOL, AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network
from tests.unit.observe.test_apply import Api as Base

Data = dict[str, typing.Any]
POOL, POLICY, NETWORK = "SriovNetworkPoolConfig", "SriovNetworkNodePolicy", "SriovNetwork"
FORBIDDEN = ApiError(403, "Forbidden", "not permitted", "PATCH")


class Api(Base):
    """An API server that adds nothing to an object."""

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        if definition["metadata"]["name"] in self.refuse:
            raise self.refuse[definition["metadata"]["name"]]
        if not dry_run:
            self.items[self.key(definition)] = copy.deepcopy(definition)
        return copy.deepcopy(definition), ()


def intent_of(at_once: int = 1, pools: bool = True) -> Intent:
    fabrics = [
        {
            "name": name,
            "profile": "sriov_ethernet",
            "select": {"hcas_per_node": 1, "netdev": [name]},
            "virtual_functions": 4,
            "resource_name": name,
            "network": {"name": name, "namespace": "jobs"},
            "ipam": {"type": "whereabouts", "range": f"100.64.{number}.0/24"},
        }
        for number, name in enumerate(("eth1", "eth2"))
    ]
    cluster = {"operator_namespace": "ops", **({"node_pool": {"max_unavailable": at_once}} if pools else {})}
    return parse_intent(fabrics, None, cluster)


def objects_of(intent: Intent) -> list[tuple[str, Data]]:
    return list(network.render(intent.fabrics, intent.cluster, {}).objects)


def pool_of(at_once: int, labels: bool = True) -> Data:
    (found,) = (copy.deepcopy(item) for _fabric, item in objects_of(intent_of(at_once)) if item["kind"] == POOL)
    found["metadata"]["uid"] = "p"
    if not labels:
        del found["metadata"]["labels"]
    return found


def run(api: Api, intent: Intent, check: bool = False) -> dict[str, list[AppliedObject]]:
    done: dict[str, list[AppliedObject]] = {}
    for item in apply_all(typing.cast(Cluster, api), objects_of(intent), check, lambda: 0.0, lambda _seconds: None):
        done.setdefault(item.applied.kind, []).append(item.applied)
    return done


def actions(done: dict[str, list[AppliedObject]], kind: str) -> list[str]:
    return [item.action for item in done[kind]]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: Api(pool_of(3, labels=False)),
        lambda: Api(pool_of(3), refuse={"linerate": FORBIDDEN}),
        lambda: Api(refuse={"linerate": FORBIDDEN}),
    ],
    ids=["of another tool", "without the right", "without a pool"],
)
def test_a_refused_pool_holds_the_policies_of_all_fabrics(make: typing.Callable[[], Api], check: bool) -> None:
    api = make()
    done = run(api, intent_of(), check)
    assert actions(done, POOL) == ["refused"] and actions(done, POLICY) == ["refused"] * 2
    assert actions(done, NETWORK) == ["created"] * 2
    assert not [key for key in api.items if key[0] == POLICY]
    (first, _second) = done[POLICY]
    assert first.reason == OTHER_POOL
    assert first.refusal == (
        f"no policy is changed, because {POOL} ops/linerate was refused. Follow the message about this {POOL}"
    )
    assert "as many nodes at the same time" in _explain_refusal(first)
    assert "rdma_cluster.node_pool" in _describe_refusal_remedy(first)


@pytest.mark.parametrize(
    ("api", "action"),
    [
        (Api(), "created"),
        (Api(pool_of(3)), "changed"),
        (Api(pool_of(1, labels=False)), "unchanged"),
        (Api(pool_of(1), refuse={"linerate": FORBIDDEN}), "refused"),
    ],
    ids=["new", "changed", "of another tool, as rendered", "as rendered, without the right"],
)
def test_a_pool_as_rendered_holds_nothing(api: Api, action: str) -> None:
    assert actions(run(api, intent_of(), True), POLICY) == ["created"] * 2
    done = run(api, intent_of())
    assert actions(done, POOL) == [action] and actions(done, POLICY) == ["created"] * 2
    again = run(api, intent_of())
    assert actions(again, POOL) != ["created"] and actions(again, POLICY) == ["unchanged"] * 2


def test_policies_that_do_not_change_are_not_refused() -> None:
    api = Api()
    run(api, intent_of())
    api.items[POOL, "ops", "linerate"]["spec"]["maxUnavailable"] = 3
    api.refuse = {"linerate": FORBIDDEN}
    done = run(api, intent_of())
    assert actions(done, POOL) == ["refused"] and actions(done, POLICY) == ["unchanged"] * 2


def test_an_intent_without_a_pool_holds_nothing() -> None:
    done = run(Api(pool_of(3, labels=False)), intent_of(pools=False))
    assert POOL not in done and actions(done, POLICY) == ["created"] * 2


class Changing(Api):
    """An API server whose webhook changes the limit of a pool, at first or only when the pool is written."""

    in_dry_run = True

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        if definition["kind"] == POOL and (self.in_dry_run or not dry_run):
            definition = {**definition, "spec": {**definition["spec"], "maxUnavailable": "100%"}}
        return super().apply(definition, manager, dry_run)


@pytest.mark.parametrize("in_dry_run", [True, False])
def test_a_pool_that_a_webhook_changes_holds_the_policies(in_dry_run: bool) -> None:
    api = Changing()
    api.in_dry_run = in_dry_run
    done = run(api, intent_of())
    assert actions(done, POOL) == ["created"] and actions(done, POLICY) == ["refused"] * 2
    assert "--show-managed-fields" in done[POLICY][0].refusal


class Late(Api):
    """An API server that refuses a pool only when it is written."""

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        if definition["kind"] == POOL and not dry_run:
            raise FORBIDDEN
        return super().apply(definition, manager, dry_run)


def test_a_pool_that_is_refused_after_the_dry_run_holds_the_policies() -> None:
    done = run(Late(pool_of(3)), intent_of())
    assert actions(done, POOL) == ["refused"] and actions(done, POLICY) == ["refused"] * 2


class WithoutOperator(Api):
    """An API server that does not know the kinds of the operator yet."""

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        if definition["kind"] == POOL:
            raise ApiError(404, "NotFound", "the server could not find the requested resource", "PATCH")
        return super().apply(definition, manager, dry_run)


def test_a_pool_whose_kind_is_not_known_yet_holds_nothing_in_check_mode() -> None:
    done = run(WithoutOperator(), intent_of(), check=True)
    assert actions(done, POOL) == ["unjudged"] and actions(done, POLICY) == ["created"] * 2
    done = run(WithoutOperator(), intent_of())
    assert actions(done, POOL) == ["refused"] and actions(done, POLICY) == ["refused"] * 2
