# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of other stages that the intent does not apply any more: stage network names them."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import INTENT_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import Leftovers
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.leftovers import (
    find_all_leftovers,
)
from tests.unit.observe.test_apply import thing
from tests.unit.run.test_intents import SELECTOR, A, Api, intent_of, objects_of, scope_of

Item = dict[str, typing.Any]
OPERATOR, TUNING = "nvidia-network-operator", "openshift-cluster-node-tuning-operator"


def template(name: str, fabric: str, intent: str = "a", **selector: typing.Any) -> Item:
    item = thing(name, "NicConfigurationTemplate", OPERATOR)
    item["metadata"]["managedFields"] = [{"manager": "linerate.rdma"}]
    item["metadata"]["labels"] |= {"linerate.rdma/fabric": fabric, INTENT_LABEL: intent}
    return {**item, "spec": {"nicSelector": {"nicType": "1021", **selector}}}


def tuned(intent: str = "a") -> Item:
    item = thing("linerate-rdma", "Tuned", TUNING)
    item["metadata"]["labels"] |= {INTENT_LABEL: intent}
    return item


def find(*items: Item, tunes: bool = False) -> Leftovers:
    return find_all_leftovers(typing.cast(Cluster, Api(*items)), (), SELECTOR, [], scope_of(A), tunes)


def test_templates_of_an_earlier_intent_or_release_are_leftovers() -> None:
    found = find(
        template("linerate-retired-1021", "retired", serialNumbers=["1"]),
        template("linerate-compute-1021", "compute", pciAddresses=["0000:10:00.0"]),
        template("linerate-compute-1023", "compute", serialNumbers=["2"]),
        template("linerate-other-1021", "other", "b", pciAddresses=["0000:10:00.0"]),
    )
    assert [item.name for item in found.objects] == ["linerate-retired-1021", "linerate-compute-1021"]
    said = {item.subject: item for item in check(A, Facts(leftovers=found)) if item.check == "network.leftover"}
    by_address = said["NicConfigurationTemplate linerate-compute-1021"]
    assert "by model and PCI address" in by_address.why and "platform_settle=true" in by_address.remedy
    delete = f"kubectl delete nicconfigurationtemplate linerate-{{}}-1021 -n {OPERATOR}"
    assert delete.format("compute") in by_address.remedy
    assert delete.format("retired") in said["NicConfigurationTemplate linerate-retired-1021"].remedy


def test_a_tuned_that_no_stage_applies_is_a_leftover() -> None:
    (left,) = find(tuned()).objects
    (finding,) = (item for item in check(A, Facts(leftovers=find(tuned()))) if item.subject.startswith("Tuned"))
    assert left.kind == "Tuned" and "rdma_cluster.tuning.set is not true" in finding.why
    assert find(tuned(), tunes=True).objects == find(tuned("b")).objects == ()


def test_objects_of_another_intent_are_no_leftovers_of_an_intent_whose_objects_are_all_held_back() -> None:
    """As a linter that holds back each fabric: then no rendered object has the name of this intent."""
    ada, theirs = intent_of("ada-storage", "ada"), intent_of("storage", "infiniband-c692b2")
    api = Api(*objects_of(theirs), *objects_of(intent_of("retired", "ada")))
    kinds = ("SriovNetwork", "SriovNetworkNodePolicy")
    found = find_all_leftovers(typing.cast(Cluster, api), kinds, SELECTOR, [], scope_of(ada))
    assert [item.name for item in found.objects] == ["net-retired", "linerate-retired"]


def test_a_machine_configuration_that_another_intent_records_is_no_leftover() -> None:
    config = thing("99-linerate-rdma-worker", "MachineConfig", "")
    config["metadata"]["labels"] |= {INTENT_LABEL: "a", f"{INTENT_LABEL}-b": ""}
    assert find(config).objects == ()


def test_remedy_for_further_leftovers_shows_the_intent_of_each_object() -> None:
    found = check(A, Facts(leftovers=Leftovers((), (), 3)))
    (finding,) = (item for item in found if item.subject == "more objects")
    assert f"-L {INTENT_LABEL}" in finding.remedy and "leave those of another intent to their owner" in finding.remedy
