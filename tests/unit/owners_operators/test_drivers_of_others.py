# SPDX-License-Identifier: GPL-3.0-or-later

"""Drivers that objects of others configure: a plan says nothing that it does not know, and no run changes them."""

from __future__ import annotations

import shlex
import types
import typing

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ClusterPolicies
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.gpu_operator import enable_rdma
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.gpu_driver import parse_gpu_driver_change
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.helm_release import parse_updated
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_cluster_policy
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import find_limit

from ..run.test_driver_plan import Cluster, intent_of, read, refusals
from .situations import KEEP, TAKE, cells

FORBIDDEN = ApiError(403, "Forbidden", "forbidden", "GET")
Data = dict[str, typing.Any]


class Gpus:
    """An API server with one ClusterPolicy and some NVIDIADrivers."""

    def __init__(self, delegates: bool, *drivers: Data, refuses: typing.Optional[ApiError] = None) -> None:
        spec = {"driver": {"useNvidiaDriverCRD": True} if delegates else {}}
        self.policy = {"kind": "ClusterPolicy", "metadata": {"name": "gpu"}, "spec": spec, "status": {"state": "ready"}}
        self.drivers, self.refuses = drivers, refuses
        self.applied: list[Data] = []

    def list(self, kind: str) -> Listing:
        if kind == "NVIDIADriver" and self.refuses:
            raise self.refuses
        return Listing((self.policy,) if kind == "ClusterPolicy" else self.drivers, "1")

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        self.applied.append(definition)
        return definition, ()


def driver(name: str, rdma: bool) -> Data:
    return {"kind": "NVIDIADriver", "metadata": {"name": name}, "spec": {"rdma": {"enabled": True}} if rdma else {}}


def enabled(api: Gpus) -> ClusterPolicies:
    return enable_rdma(typing.cast(typing.Any, api), render_cluster_policy, False)


@pytest.mark.parametrize(("owner", "_action", "result"), [*cells("ClusterPolicy"), *cells("NVIDIADriver")])
def test_cell(owner: str, _action: str, result: str) -> None:
    delegated = (owner, _action, result) in cells("NVIDIADriver")
    api = Gpus(delegated, driver("train", False))
    seen = enabled(api)
    assert result == (KEEP if delegated else TAKE)
    assert (bool(api.applied), seen.changed, bool(seen.error)) == (not delegated, not delegated, delegated)


def test_a_driver_of_the_site_is_named_with_the_command() -> None:
    seen = enabled(Gpus(True, driver("train", False), driver("other", True)))
    assert "useNvidiaDriverCRD" in seen.error and "(train)" in seen.error and not seen.rdma
    words = shlex.split(seen.error[seen.error.index("kubectl") :])
    assert words[:4] == ["kubectl", "patch", "nvidiadrivers.nvidia.com", "train"]


@pytest.mark.parametrize(
    ("drivers", "refuses", "said"),
    [((driver("train", True),), None, ""), ((), None, "has none"), ((), FORBIDDEN, "forbidden")],
)
def test_the_setting_of_the_drivers_counts(
    drivers: tuple[Data, ...], refuses: typing.Optional[ApiError], said: str
) -> None:
    seen = enabled(Gpus(True, *drivers, refuses=refuses))
    assert (seen.rdma, said in seen.error, bool(seen.error)) == (not said, True, bool(said))


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-02T05:04:05.678+02:00", "2026-01-02T05:04:05+02:00"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02 05:04:05.678901234 +0200 CEST", "2026-01-02T05:04:05+02:00"),
        ("2026-01-02 03:04:05", "2026-01-02T03:04:05+00:00"),
    ],
)
def test_the_offset_of_a_time_of_helm_counts(text: str, seconds: str) -> None:
    found = parse_updated(text)
    assert found is not None and found.isoformat() == seconds
