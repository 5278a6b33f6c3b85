# SPDX-License-Identifier: GPL-3.0-or-later

"""The one ClusterPolicy is patched, and never a second one made."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ClusterPolicies
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.gpu_operator import enable_rdma
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_cluster_policy


class Api:
    def __init__(
        self,
        *policies: typing.Any,
        refuses: typing.Optional[ApiError] = None,
        listing: typing.Optional[ApiError] = None,
    ) -> None:
        self.policies, self.refuses, self.listing = policies, refuses, listing
        self.applied: list[tuple[typing.Any, bool]] = []

    def list(self, kind: str) -> Listing:
        if self.listing:
            raise self.listing
        return Listing(self.policies, "1")

    def apply(self, definition: typing.Any, manager: str, dry_run: bool) -> tuple[typing.Any, tuple[str, ...]]:
        if self.refuses:
            raise self.refuses
        self.applied.append((definition, dry_run))
        return definition, ()


def policy(name: str, enabled: typing.Optional[bool] = None) -> typing.Any:
    driver = {} if enabled is None else {"rdma": {"enabled": enabled}}
    return {
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"driver": driver},
        "status": {"state": "ready"},
    }


def seen(api: Api, check_mode: bool = False) -> ClusterPolicies:
    return enable_rdma(api, render_cluster_policy, check_mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("enabled", [None, False])
def test_the_one_that_is_there_is_patched(enabled: typing.Optional[bool]) -> None:
    api = Api(policy("gpu", enabled))
    assert seen(api) == ClusterPolicies(("gpu",), "ready", True, True)
    ((patch, dry_run),) = api.applied
    assert patch == {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "gpu"},
        "spec": {"driver": {"rdma": {"enabled": True}}},
    }
    assert not dry_run


def test_check_mode_is_a_dry_run() -> None:
    api = Api(policy("gpu"))
    assert seen(api, True) == ClusterPolicies(("gpu",), "ready", False, True)
    assert api.applied[0][1]


def test_one_that_is_on_is_left_alone() -> None:
    api = Api(policy("gpu", True))
    assert seen(api) == ClusterPolicies(("gpu",), "ready", True) and api.applied == []


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_none_and_two_are_left_alone(names: tuple[str, ...]) -> None:
    api = Api(*map(policy, names))
    assert seen(api) == ClusterPolicies(names) and api.applied == []


def test_what_the_server_says_is_kept() -> None:
    conflict = ApiError(409, "Conflict", 'conflict with "helm": .spec.driver.rdma.enabled', "PATCH")
    assert "helm" in seen(Api(policy("gpu", False), refuses=conflict)).error
    assert seen(Api(listing=ApiError(404, "NotFound", "x", "GET"))) == ClusterPolicies()
    assert seen(Api(listing=ApiError(403, "Forbidden", "may not list", "GET"))).error == "may not list"
    for away in (
        {"listing": ApiError(0, "Unreachable", "x", "GET")},
        {"refuses": ApiError(0, "Unreachable", "x", "GET")},
    ):
        with pytest.raises(ApiError):
            seen(Api(policy("gpu"), **away))
