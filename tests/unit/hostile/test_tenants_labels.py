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
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.applied_objects import report_leftovers
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.facts import Facts as NetworkFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import own_kinds
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import (
    MOST_LEFT,
    MOST_LEFT_ALIKE,
    MOST_OF_KIND,
    MOST_REMOVED,
    AppliedObject,
    Leftovers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import WARN, Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.machines import LabelledConfigs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal import leftovers
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.copies import MOST_COPIES
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import (
    find_leftovers,
    fold_outcomes,
    remove_all,
)
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
        #: whether each object is in a namespace of its own
        self.spread = False

    def list(self, kind: str, _namespace: str = "", _selector: str = "") -> Listing:
        labels = {LABEL: "linerate.rdma"}
        return Listing(
            tuple(
                {
                    "kind": kind,
                    "apiVersion": "v1",
                    "metadata": {
                        "name": name,
                        "namespace": name if self.spread else "tenant",
                        "uid": name,
                        "labels": labels,
                    },
                }
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


def test_leftovers_of_any_number_fit_their_fact_and_are_counted() -> None:
    """A tenant labels any number of objects, in one namespace or in many."""
    api = Api(SriovNetwork=MOST_LEFT_ALIKE + 1000, MacvlanNetwork=0)
    found = find_leftovers(typing.cast(Cluster, api), ["SriovNetwork", "MacvlanNetwork"], "", [])
    assert (len(found.objects), found.more) == (MOST_LEFT_ALIKE, 1000)
    spread = Api(SriovNetwork=MOST_LEFT + 50)
    spread.spread = True
    many = find_leftovers(typing.cast(Cluster, spread), ["SriovNetwork"], "", [])
    assert (len(many.objects), many.more) == (MOST_LEFT, 50)
    for fact in (found, many):
        assert load(Leftovers, to_data(fact), "leftovers") == fact
    with pytest.raises(LoadError, match=f"at most {MOST_LEFT} objects"):
        load(Leftovers, {"objects": to_data([*many.objects, many.objects[0]])}, "leftovers")
    facts = NetworkFacts(leftovers=found)
    told = [item for item in report_leftovers(INTENT, facts) if item.subject == "more objects"]
    assert [(item.status, item.measured) for item in told] == [
        ("warn", "1000 more objects with this label, not checked")
    ]
    assert "kubectl get sriovnetwork -A -l" in told[0].remedy and told[0].remedy.endswith(
        "Then run stage network again."
    )


def test_removed_objects_of_any_number_fit_their_fact_and_no_refusal_is_lost() -> None:
    made = [Outcome(AppliedObject("Pod", f"p{one}", "t", action="deleted")) for one in range(MOST_OF_KIND + 500)]
    made += [Outcome(AppliedObject("Pod", f"q{one}", "t", action="refused", refusal="no")) for one in range(7)]
    folded = fold_outcomes(made)
    assert [(item.applied.name, item.applied.action) for item in folded[MOST_OF_KIND:]] == [
        ("(500 more)", "deleted"),
        ("(7 more)", "refused"),
    ]
    found = check(INTENT, Facts(removed=tuple(item.applied for item in folded)))
    assert any(item.status == "fail" and "no" in item.why for item in found if item.check == "teardown.object")
    kinds = len(own_kinds.KINDS) + 4
    assert kinds * (MOST_OF_KIND + 5 + MOST_COPIES + 1) < MOST_REMOVED
    with pytest.raises(LoadError, match=f"at most {MOST_REMOVED} objects"):
        load(Facts, {"removed": [to_data(made[0].applied)] * (MOST_REMOVED + 1)}, "facts")


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
        "within_disruption": False,
    }
    module = types.SimpleNamespace(params=params, check_mode=False, _diff=asked)
    monkeypatch.setattr(custom_resources, "remove_all", lambda *_arguments: ())
    answer = custom_resources.change(typing.cast(typing.Any, module), typing.cast(Cluster, None), [])
    assert ("diff" in answer) is asked


def test_a_machine_config_is_found_beside_any_number_of_objects_of_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = Api(SriovNetwork=MOST_LEFT + 50)
    spread.spread = True
    metadata = {"name": "old", "labels": {LABEL: "linerate.rdma"}}
    config = {"kind": "MachineConfig", "apiVersion": "v1", "metadata": metadata}
    monkeypatch.setattr(leftovers, "find_labelled", lambda cluster, wanted: LabelledConfigs((config,), ()))
    found = leftovers.find_all_leftovers(typing.cast(Cluster, spread), ["SriovNetwork"], "", [])
    assert (found.objects[0].kind, len(found.objects), found.more) == ("MachineConfig", MOST_LEFT, 51)
    assert load(Leftovers, to_data(found), "leftovers") == found
