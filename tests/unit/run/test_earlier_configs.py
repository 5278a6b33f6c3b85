# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigs of an earlier release, which did not record which intents need them: a teardown leaves them while
another intent may need them."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import find_users
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from tests.unit.run.test_intents import scope_of
from tests.unit.run.test_removal_gate import gate, hosts, of_host, there, with_pools
from tests.unit.run.test_roll import Operator, roller

NAME = "MachineConfig 99-worker-linerate-kernel-arguments"


class Mixed(Operator):
    """Nodes of two intents in one pool."""

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        found = super().list(kind, namespace, selector, fields)
        if kind == "Node":
            for place, node in enumerate(found.items):
                node["metadata"]["labels"]["kind"] = "b" if place else "a"
        return found


def earlier(name: str = "a", mixed: bool = True) -> Operator:
    """An operator with what an earlier release wrote: objects without a record."""
    operator = hosts(of_host(name, "a"))
    operator.__class__ = Mixed if mixed else Operator
    for item in operator.configs.values():
        labels = item["metadata"]["labels"]
        item["metadata"]["labels"] = {key: labels[key] for key in labels.keys() - find_users(labels).keys()}
    return operator


@pytest.mark.parametrize("name", ["a", ""])
def test_an_object_without_a_record_stays_while_its_pool_has_nodes_of_others(name: str) -> None:
    operator, intent = earlier(name), of_host(name, "a")
    gate(with_pools(operator, *there(operator)), intent, "none")
    gone = roller(operator, intent.cluster).remove([], False, there(operator), scope_of(intent))
    (stays,) = gone.stays
    assert (gone.outcomes, gone.paused, operator.away, stays.subject) == ((), (), [], NAME)
    assert "nodes that this intent does not select: n1, n2" in stays.why
    assert "Run stage network once with each intent" in stays.remedy
    assert stays.remedy.endswith("kubectl delete machineconfig 99-worker-linerate-kernel-arguments")


def test_its_record_by_the_next_run_lets_the_teardown_delete_it() -> None:
    """As the remedy says, with one intent."""
    operator, intent = earlier(), of_host("a", "a")
    wanted = render_host_configs(intent.cluster.host, intent.cluster.intent_name)
    prepared = roller(operator, intent.cluster).prepare(wanted, check_mode=False)
    assert (prepared.paused, operator.away) == ((), [])
    with pytest.raises(RdmaError, match="may reboot nodes"):
        gate(with_pools(operator, *there(operator)), intent, "drain")
    gone = roller(operator, intent.cluster).remove([], False, there(operator), scope_of(intent))
    assert (len(gone.outcomes), gone.stays, gone.paused) == (1, (), ("worker",))


@pytest.mark.parametrize("selector", [{"role": "worker"}, {}])
def test_it_goes_where_all_nodes_of_its_pool_are_of_the_intent(selector: dict[str, str]) -> None:
    operator = earlier(mixed=False)
    intent = of_host("a", "a")
    scope = dataclasses.replace(scope_of(intent), selector=selector)
    gone = roller(operator, intent.cluster).remove([], False, there(operator), scope)
    assert (len(gone.outcomes), gone.stays, gone.paused) == (1, (), ("worker",))
