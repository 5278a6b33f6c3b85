# SPDX-License-Identifier: GPL-3.0-or-later

"""Drivers that objects of others configure: a plan says nothing that it does not know, and no run changes them."""

from __future__ import annotations

import shlex
import types
import typing

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ansible_collections.linerate.rdma.plugins.module_utils._check.host import cluster_policy
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ClusterPolicies
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.gpu_operator import enable_rdma
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.gpu_driver import parse_gpu_driver_change
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_cluster_policy
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import find_limit

from ..run.test_driver_plan import Cluster, intent_of, read, refusals
from .situations import KEEP, TAKE, cells

FORBIDDEN = ApiError(403, "Forbidden", "forbidden", "GET")
Data = dict[str, typing.Any]


class Gpus:
    """An API server with one ClusterPolicy and some NVIDIADrivers."""

    def __init__(self, delegates: bool, *drivers: Data, refuses: typing.Optional[dict[str, ApiError]] = None) -> None:
        spec = {"driver": {"useNvidiaDriverCRD": True} if delegates else {}}
        self.policy = {"kind": "ClusterPolicy", "metadata": {"name": "gpu"}, "spec": spec, "status": {"state": "ready"}}
        self.drivers, self.refuses = drivers, refuses or {}
        self.applied: list[Data] = []

    def list(self, kind: str) -> Listing:
        if kind in self.refuses:
            raise self.refuses[kind]
        items: dict[str, tuple[Data, ...]] = {"ClusterPolicy": (self.policy,), "Node": (NODE,)}
        return Listing(items.get(kind, self.drivers), "1")

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        self.applied.append(definition)
        return definition, ()


NODE = {"metadata": {"name": "a", "labels": {"pool": "x", "nvidia.com/gpu.present": "true"}}}


def driver(name: str, rdma: bool, selector: typing.Optional[dict[str, str]] = None, state: str = "ready") -> Data:
    spec = {"rdma": {"enabled": True}} if rdma else {}
    of_nodes = {} if selector is None else {"nodeSelector": selector}
    return {"kind": "NVIDIADriver", "metadata": {"name": name}, "spec": spec | of_nodes, "status": {"state": state}}


def enabled(api: Gpus) -> ClusterPolicies:
    return enable_rdma(typing.cast(typing.Any, api), render_cluster_policy, False)


@pytest.mark.parametrize(("owner", "_action", "result"), [*cells("ClusterPolicy"), *cells("NVIDIADriver")])
def test_cell(owner: str, _action: str, result: str) -> None:
    delegated = (owner, _action, result) in cells("NVIDIADriver")
    api = Gpus(delegated, driver("train", False))
    seen = enabled(api)
    assert result == (KEEP if delegated else TAKE)
    assert (bool(api.applied), seen.changed, seen.delegated, seen.error) == (
        not delegated,
        not delegated,
        delegated,
        "",
    )


def judged(seen: ClusterPolicies, nodes: tuple[str, ...] = ("a",), loaded: bool = False) -> list[Finding]:
    return list(cluster_policy.check(seen, nodes, loaded, False))


def test_a_driver_of_the_site_is_named_with_the_command() -> None:
    seen = enabled(Gpus(True, driver("train", False), driver("other", True)))
    assert not seen.rdma
    (found, good) = judged(seen)
    assert (found.subject, found.status, found.measured) == (
        "NVIDIADriver train",
        "fail",
        "spec.rdma.enabled: false, state ready",
    )
    assert "useNvidiaDriverCRD" in found.why and "It selects a." in found.why
    words = shlex.split(found.remedy[found.remedy.index("kubectl") :])
    assert words[:4] == ["kubectl", "patch", "nvidiadrivers.nvidia.com", "train"]
    assert (good.subject, good.status) == ("NVIDIADriver other", "pass")


@pytest.mark.parametrize(
    ("drivers", "refuses", "status", "said"),
    [
        ([("train", True, {}, "ready")], {}, "pass", ""),
        ([], {}, "fail", "the cluster has none"),
        ([], {"NVIDIADriver": FORBIDDEN}, "unknown", "They were not read: forbidden"),
        # the driver of other nodes does not count, and one of all nodes with GPUs does
        ([("train", True, {"pool": "x"}, "ready"), ("other", False, {"pool": "y"}, "ready")], {}, "pass", ""),
        ([("train", True, {"pool": "y"}, "ready")], {}, "fail", "(train) matches a node of the inventory"),
        ([("train", True, {"nvidia.com/gpu.present": "true"}, "ready")], {}, "pass", ""),
        ([("train", True, None, "ready")], {}, "pass", ""),
        # what the object reports counts, and not the state of the ClusterPolicy
        ([("train", True, {}, "notReady")], {}, "unknown", "the NVIDIADriver reports notReady"),
        ([("train", True, {}, "")], {}, "unknown", "the NVIDIADriver reports no state"),
        ([("train", False, {}, "ready")], {"Node": FORBIDDEN}, "unknown", "the nodes were not read"),
        ([("train", True, {}, "ready")], {"Node": FORBIDDEN}, "pass", ""),
    ],
)
def test_the_setting_of_the_drivers_of_the_nodes_counts(
    drivers: list[tuple[str, bool, typing.Any, str]], refuses: dict[str, ApiError], status: str, said: str
) -> None:
    made = [driver(name, rdma, selector, state) for name, rdma, selector, state in drivers]
    seen = enabled(Gpus(True, *made, refuses=refuses))
    (found,) = judged(seen)
    assert (found.check, found.status) == ("host.cluster_policy", status) and said in found.why


def test_a_driver_that_waits_for_another_node_is_a_warning_where_ours_are_proven() -> None:
    seen = enabled(Gpus(True, driver("train", True, state="notReady")))
    assert [[item.status for item in judged(seen, loaded=loaded)] for loaded in (False, True)] == [
        ["unknown"],
        ["warn"],
    ]


@pytest.mark.parametrize("delegates", [False, True])
def test_the_plan_counts_no_restart_of_a_driver_that_the_run_does_not_change(delegates: bool) -> None:
    assert (parse_gpu_driver_change(Gpus(delegates).policy) is None) is delegates


def test_a_driver_that_could_not_be_read_is_not_new() -> None:
    intent = intent_of()
    planned = read(intent, Cluster(NicClusterPolicy=FORBIDDEN))
    said = " ".join(refusals(intent, planned))
    assert "NicClusterPolicy" in said and "is new" not in said and not planned.pools


def limit(folder: str) -> typing.Optional[RdmaError]:
    task = types.SimpleNamespace(args={"facts_dir": folder, "run": "run-1"}, check_mode=False)
    action = types.SimpleNamespace(_task=task, _loader=None)
    return find_limit(typing.cast(typing.Any, action), {}, "stage host")


def test_a_run_that_cannot_be_read_is_no_limit(tmp_path: typing.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes are unknown, and the message says so instead of a refusal by --limit."""
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(subset="worker-1"))
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(RdmaError) as error:
        limit(str(tmp_path))
    assert "--limit" not in str(error.value)
