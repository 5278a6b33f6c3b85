# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant makes any number of objects with the label of the collection."""

from __future__ import annotations

import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.labelled_objects import (
    MOST_ALIKE,
    fold_alike,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import WARN, Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.remove import Removal, remove_all
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.modules import custom_resources

INTENT = parse_intent(
    [
        {
            "name": "storage",
            "profile": "sriov_ethernet",
            "select": {"hcas_per_node": 1},
            "virtual_functions": 4,
            "resource_name": "igb",
            "network": {"name": "net", "namespace": "test"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        }
    ]
)
LABEL = "app.kubernetes.io/managed-by"


class Api:
    """Each deletion takes a second."""

    def __init__(self, **numbers: int) -> None:
        self.now, self.names = 0.0, {kind: [f"n{one}" for one in range(number)] for kind, number in numbers.items()}

    def list(self, kind: str, _namespace: str = "", _selector: str = "") -> Listing:
        marks = {"namespace": "tenant", "labels": {LABEL: "linerate.rdma"}}
        return Listing(
            tuple(
                {"kind": kind, "apiVersion": "v1", "metadata": {"name": name, "uid": name, **marks}}
                for name in self.names[kind]
            ),
            "1",
        )

    def delete(self, kind: str, _namespace: str, name: str, **_options: typing.Any) -> bool:
        self.now += 1.0
        self.names[kind].remove(name)
        return True


def removed(api: Api) -> tuple[Outcome, ...]:
    removal = Removal(("Pod", "SriovNetwork"), f"{LABEL}=linerate.rdma", limit=100.0)
    return remove_all(typing.cast(Cluster, api), removal, False, lambda: api.now, lambda _seconds: None)


def test_deletions_end_in_time_and_the_next_removal_goes_on() -> None:
    api = Api(Pod=150, SriovNetwork=3)
    late = [item.applied for item in removed(api) if item.applied.action == "refused"]
    assert [(item.kind, item.name) for item in late] == [("Pod", "(49 more)")] and not api.names["SriovNetwork"]
    found = [item for item in check(INTENT, Facts(removed=tuple(late))) if item.check == "teardown.object"]
    assert [item.status for item in found] == ["fail"] and "49 objects of the kind were not deleted" in found[0].why
    assert [item.applied.action for item in removed(api)] == ["deleted"] * 49


def test_findings_of_a_kind_in_a_namespace_are_counted_and_no_status_is_lost() -> None:
    objects = [AppliedObject("Pod", f"p{one}", "tenant", action="deleted") for one in range(100)]
    objects += [AppliedObject("Pod", f"q{one}", "tenant", action="refused", refusal="no") for one in range(5)]
    found = [item for item in check(INTENT, Facts(removed=tuple(objects))) if item.check == "teardown.object"]
    assert [item.status for item in found] == ["pass"] * MOST_ALIKE + ["fail", "fail"]
    assert (found[-1].subject, found[-1].measured) == ("more Pod in namespace tenant", "40 more")


def test_warnings_of_many_objects_are_counted_by_kind_and_namespace() -> None:
    warned = Finding("network.leftover", "x", WARN, "there", "gone", "why", "remedy")
    many = [(AppliedObject("Pod", f"p{one}", "a"), warned) for one in range(1000)]
    found = fold_alike([*many, (AppliedObject("Pod", "p", "b"), warned)])
    assert len(found) == MOST_ALIKE + 2 and found[MOST_ALIKE].measured == f"{1000 - MOST_ALIKE} more"


@pytest.mark.parametrize("asked", [False, True])
def test_the_difference_is_made_only_where_it_is_asked_for(asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    params = {
        "state": "absent",
        "label_selector": LABEL,
        "kinds": ["Pod"],
        "keep_namespaces": [],
        "namespaces": [],
        "wait_seconds": 1,
        "on_refusal": "tell",
    }
    module = types.SimpleNamespace(params=params, check_mode=False, _diff=asked)
    monkeypatch.setattr(custom_resources, "remove_all", lambda *_arguments: ())
    answer = custom_resources.change(typing.cast(typing.Any, module), typing.cast(Cluster, None), [])
    assert ("diff" in answer) is asked
