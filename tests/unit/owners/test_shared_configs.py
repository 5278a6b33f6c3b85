# SPDX-License-Identifier: GPL-3.0-or-later

"""A MachineConfig that two intents share: neither changes what the other needs, and no pool reboots in turns."""

from __future__ import annotations

import copy
import shlex

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import find_users
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_roller import (
    Prepared,
)
from tests.unit.run.test_intents import intent_of
from tests.unit.run.test_roll import Operator, roller

NAME = "99-worker-linerate-kernel-arguments"


def of_host(name: str, kind: str, *arguments: str) -> Intent:
    selector = {"role": "worker"} if kind == "all" else {"kind": kind}
    return intent_of("compute", name, host={"kernel_arguments": arguments}, node_selector=selector, disruption="reboot")


def prepare(operator: Operator, intent: Intent, check_mode: bool = False) -> tuple[Prepared, list[int]]:
    """Return what the run did, and the nodes that it rebooted."""
    operator.away.clear()
    wanted = render_host_configs(intent.cluster.host, intent.cluster.intent_name)
    run = roller(operator, intent.cluster)
    prepared = run.prepare([copy.deepcopy(item) for item in wanted], check_mode=check_mode)
    run.release(prepared.paused, 600, ["n0"])
    return prepared, sorted(set(operator.away))


def action(prepared: Prepared) -> str:
    (outcome,) = prepared.outcomes
    return outcome.applied.action


@pytest.mark.parametrize("names", [("", ""), ("a", "b")])
def test_two_intents_with_other_contents_do_not_take_turns(names: tuple[str, str]) -> None:
    operator = Operator()
    one, two = of_host(names[0], "a", "iommu=pt"), of_host(names[1], "b", "iommu=pt", "pci=realloc")
    assert prepare(operator, one)[1] == [0, 1, 2]
    for _round in range(2):
        for check_mode in (True, False):
            refused, away = prepare(operator, two, check_mode)
            assert (action(refused), away, operator.paused) == ("refused", [], False)
        assert prepare(operator, one)[1] == []
    assert operator.configs[NAME]["spec"]["kernelArguments"] == ["iommu=pt"]


@pytest.mark.parametrize("names", [("", ""), ("a", "b"), ("", "b")])
def test_the_owner_does_not_change_what_another_intent_needs_until_its_label_is_removed(names: tuple[str, str]) -> None:
    operator = Operator()
    for name, kind in zip(names, "ab"):
        prepare(operator, of_host(name, kind, "iommu=pt"))
    new = of_host(names[0], "a", "iommu=pt", "pci=realloc")
    refused, away = prepare(operator, new)
    assert (action(refused), away) == ("refused", [])
    said = refused.outcomes[0].applied.refusal
    assert f"the intent '{names[1] or 'default'}' needs it too" in said and "rdma_cluster.host" in said
    if names[1] == "b":
        # the object is not taken from an intent whose name shows that it is another one
        assert "Ask its owner before you change it." in said and "set rdma_cluster.intent_name: b" in said
        assert "kubectl" not in said
        return
    # it may be of this intent, with an earlier node_selector
    words = shlex.split(said.partition("run stage network again: kubectl ")[2])
    assert words[:3] == ["label", "machineconfig", NAME] and words[3].endswith("-")
    del operator.configs[NAME]["metadata"]["labels"][words[3][:-1]]
    assert prepare(operator, new)[1] == [0, 1, 2]


@pytest.mark.parametrize(("kind", "refuses"), [("a", True), ("all", False)])
def test_a_machine_config_of_an_earlier_release_is_changed_only_for_nodes_of_the_intent(
    kind: str, refuses: bool
) -> None:
    operator = Operator()
    prepare(operator, of_host("", kind, "iommu=pt"))
    labels = operator.configs[NAME]["metadata"]["labels"]
    for key in (*find_users(labels), "linerate.rdma/intent"):
        del labels[key]
    new = of_host("", kind, "iommu=pt", "pci=realloc")
    prepared, away = prepare(operator, new)
    assert (action(prepared), away) == (("refused", []) if refuses else ("changed", [0, 1, 2]))
    if not refuses:
        return
    said = prepared.outcomes[0].applied.refusal
    assert "has nodes that this intent does not select: n0, n1, n2" in said
    key, _equals, value = said.rpartition(" ")[2].partition("=")
    labels[key] = value
    assert prepare(operator, new)[1] == [0, 1, 2]


def test_equal_contents_are_shared_without_a_reboot() -> None:
    operator = Operator()
    prepare(operator, of_host("", "a", "iommu=pt"))
    for kind in "baba":
        prepared, away = prepare(operator, of_host("", kind, "iommu=pt"))
        assert (action(prepared), away) in (("changed", []), ("unchanged", []))
    assert len(find_users(operator.configs[NAME]["metadata"]["labels"])) == 2


def follow_label_command(remedy: str, labels: dict[str, str]) -> None:
    """Change labels as the command of a remedy does."""
    words = shlex.split(remedy.partition("in its labels: kubectl ")[2].partition(". Then")[0])
    assert words[:4] == ["label", "--overwrite", "machineconfig", NAME]
    for word in words[4:]:
        key, equals, value = word.partition("=")
        if equals:
            labels[key] = value
        else:
            del labels[key[:-1]]


@pytest.mark.parametrize("names", [("a", "b"), ("", "b"), ("a", "")])
@pytest.mark.parametrize("check_mode", [True, False])
def test_the_label_command_of_an_object_that_stays_gives_it_to_the_intent(
    names: tuple[str, str], check_mode: bool
) -> None:
    """The teardown has left it to the other intent, which no run uses any more."""
    operator = Operator()
    first, second = (of_host(name, kind, "iommu=pt") for name, kind in zip(names, "ab"))
    for intent in (first, second):
        prepare(operator, intent)
    scope = build_scope((), first.cluster)
    live = {**operator.configs[NAME], "kind": "MachineConfig"}
    (stay,) = roller(operator).remove([], check_mode, [copy.deepcopy(live)], scope).stays
    follow_label_command(stay.remedy, operator.configs[NAME]["metadata"]["labels"])
    live = {**operator.configs[NAME], "kind": "MachineConfig"}
    again = roller(operator).remove([], False, [copy.deepcopy(live)], scope)
    assert again.stays == () and NAME not in operator.configs


def test_the_remedy_of_a_shared_object_that_a_gitops_tool_owns_changes_no_labels() -> None:
    operator = Operator()
    for name, kind in (("a", "a"), ("b", "b")):
        prepare(operator, of_host(name, kind, "iommu=pt"))
    live = copy.deepcopy({**operator.configs[NAME], "kind": "MachineConfig"})
    live["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "app:x"}
    scope = build_scope((), of_host("a", "a", "iommu=pt").cluster)
    (stay,) = roller(operator).remove([], True, [live], scope).stays
    assert "Argo CD" in stay.why and "kubectl label" not in stay.remedy


@pytest.mark.parametrize(("name", "kind"), [("", "b"), ("a", "a")])
def test_a_teardown_after_a_change_of_the_selector_or_the_name_names_the_older_label(name: str, kind: str) -> None:
    """The label may be of another intent, so the machine config stays until a user removes it."""
    operator = Operator()
    prepare(operator, of_host("", "a", "iommu=pt"))
    intent = of_host(name, kind, "iommu=pt")
    if name:
        operator.configs[NAME]["metadata"]["labels"]["linerate.rdma/intent"] = name
    prepare(operator, intent)
    scope = build_scope((), intent.cluster)
    live = {**operator.configs[NAME], "kind": "MachineConfig"}
    (stay,) = roller(operator).remove([], True, [copy.deepcopy(live)], scope).stays
    assert "an older label may be of this intent itself" in stay.remedy
    follow_label_command(stay.remedy, live["metadata"]["labels"])
    assert roller(operator).remove([], True, [copy.deepcopy(live)], scope).stays == ()
