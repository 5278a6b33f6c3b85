# SPDX-License-Identifier: GPL-3.0-or-later

"""A removal counts each object of another intent, and takes what it could not read for the worst."""

from __future__ import annotations

import copy
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import TOO_LARGE, ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.copies import MOST_COPIES
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from tests.unit.run.test_intents import SELECTOR, A, Api, B, intent_of, live, objects_of, removed, scope_of, shared
from tests.unit.run.test_roll import Operator, roller

Item = dict[str, typing.Any]


def test_each_network_of_another_intent_keeps_its_namespace() -> None:
    """A user can make any number of labelled networks, which come before the one in the namespace."""
    space = next(item for item in objects_of(A) if item["kind"] == "Namespace")
    net = next(item for item in objects_of(B) if item["kind"] == "SriovNetwork")
    many = [copy.deepcopy(net) for _number in range(MOST_COPIES + 6)]
    for number, item in enumerate(many):
        item["metadata"]["name"] = f"net-{number:03}"
    many[-1]["spec"]["networkNamespace"] = space["metadata"]["name"]
    (outcome,) = removed(Api(space, *many), scope_of(A), ("Namespace",))
    assert (outcome.applied.action, f"SriovNetwork net-{MOST_COPIES + 5:03} uses it" in outcome.applied.refusal) == (
        "kept",
        True,
    )


class Large(Api):
    """An API server whose lists are too large, so that only metadata is read."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        found = super().list(kind, namespace, selector)
        if found.items:
            raise ApiError(200, TOO_LARGE, "the list is too large", "GET")
        return found

    def metadata(self, kind: str, namespace: str, selector: str = "") -> typing.Iterator[Item]:
        for item in super().list(kind, namespace, selector).items:
            yield {"metadata": copy.deepcopy(item["metadata"])}


POOLED = intent_of("compute", "a", node_pool={"max_unavailable": 1})


@pytest.mark.parametrize("kind", ["SriovNetworkPoolConfig", "NicClusterPolicy", "SriovNetworkNodePolicy"])
def test_an_object_without_its_content_counts_for_the_worst(kind: str) -> None:
    made = objects_of(POOLED) + objects_of(shared("team_a", "a"))
    api = Large(*(item for item in made if item["kind"] == kind))
    removal = Removal((kind,), SELECTOR, scope=scope_of(POOLED))
    worst = "reboot" if kind == "SriovNetworkPoolConfig" else "drain"
    with pytest.raises(RdmaError, match=rf"removing {kind} .* may {worst} nodes"):
        refuse_removal(typing.cast(Cluster, api), removal, "none")


def test_a_removal_without_an_intent_counts_the_machine_configs() -> None:
    """Its selector alone decides."""
    with pytest.raises(RdmaError, match="removing MachineConfig 99-worker-linerate-kernel-arguments may reboot"):
        refuse_removal(typing.cast(Cluster, Api(*live("b"))), Removal((), SELECTOR), "drain")


class Plain(Operator):
    """An API server without the machine config operator, whose user may list few kinds."""

    def serves(self, group: str) -> bool:
        return False

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> typing.Any:
        if kind == "MachineConfigPool":
            raise ApiError(403, "Forbidden", "cannot list resource machineconfigpools", "GET")
        return super().list(kind, namespace, selector, fields)


def test_a_cluster_without_machine_configs_is_not_asked_for_their_pools() -> None:
    gone = roller(Plain()).remove(live("a"), False, (), scope_of(A))
    assert (gone.outcomes, gone.stays, gone.error) == ((), (), "")


def test_objects_that_are_counted_together_have_a_command_that_lists_and_one_that_deletes() -> None:
    (net,) = (item for item in objects_of(B) if item["kind"] == "SriovNetwork")
    many = [copy.deepcopy(net) for _number in range(MOST_COPIES + 6)]
    for number, item in enumerate(many):
        item["metadata"]["name"] = f"net-{number:03}"
    kept = [outcome.applied for outcome in removed(Api(*many), scope_of(A), ("SriovNetwork",))]
    said = {item.subject: item.remedy for item in check(A, Facts(("a0",), removed=tuple(kept)))}
    (remedy,) = (text for subject, text in said.items() if subject.startswith("SriovNetwork (6 more)"))
    assert f"kubectl get sriovnetwork -A -l {SELECTOR} --show-labels. " in remedy
    assert remedy.endswith("kubectl delete sriovnetwork NAME -n NAMESPACE")
