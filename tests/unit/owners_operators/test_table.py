# SPDX-License-Identifier: GPL-3.0-or-later

"""The table has a row for each kind that the operators' code writes or deletes."""

from __future__ import annotations

import ast
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import DesiredOperator
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import TABLE as OPERATORS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import JOINT_KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.users import name_users
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster import olm
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_cluster_policy

from ..observe.test_apply import thing
from ..run.test_intents import Api, removed, scope_of
from . import situations
from .situations import COPY, GITOPS, HAND, KEEP, OWN, TABLE, TAKE, cells
from .test_nic_cluster_policy import intent
from .test_olm_objects import METADATA

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "plugins/module_utils/_run/operators"
#: what a client of the API server is called by to write
_WRITES = ("patch", "delete", "create")


def written() -> set[str]:
    """The kinds that calls in the code of operators name."""
    found = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _WRITES and node.args:
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) and isinstance(first.value, str) else set()
    return found


def of_roles() -> set[str]:
    """The kinds that tasks of the roles operators and teardown delete, and the releases of Helm."""
    found: set[str] = set()

    def visit(value: typing.Any) -> None:
        if isinstance(value, list):
            for item in value:
                visit(item)
        elif isinstance(value, dict):
            found.update({"Helm release"} if "kubernetes.core.helm" in value else set())
            asked = value.get("kubernetes.core.k8s")
            if isinstance(asked, dict):
                found.add(str(asked.get("kind") or "CustomResourceDefinition"))
            for item in value.values():
                visit(item)

    for role in ("operators", "teardown"):
        for path in (ROOT / "roles" / role / "tasks").glob("*.yml"):
            visit(yaml.safe_load(path.read_text(encoding="utf-8")))
    return found


def rendered() -> set[str]:
    wish = DesiredOperator("nfd", "ops")
    made = [
        olm.render_namespace("ops"),
        olm.render_operator_group("g", "ops", ()),
        olm.render_subscription("s", wish, ""),
    ]
    configurations = {operator.configuration for operator in OPERATORS if operator.configuration}
    return {str(item["kind"]) for item in (*made, render_cluster_policy("gpu"))} | configurations | set(JOINT_KINDS)


def test_each_kind_has_a_row() -> None:
    kinds = written() | of_roles() | rendered()
    assert {"InstallPlan", "Subscription", "Operator", "SriovOperatorConfig", "Kueue", "Namespace"} <= kinds
    assert kinds - TABLE.keys() == set()
    assert all(TABLE.values())


def test_each_row_has_a_test() -> None:
    """Of a row that no test reads nobody knows whether it holds."""
    tests = "".join(path.read_text(encoding="utf-8") for path in pathlib.Path(__file__).parent.glob("test_*.py"))
    read = {kind for kind in TABLE if f'cells("{kind}")' in tests or kind in (*situations.CONFIGURATIONS, *JOINT_KINDS)}
    assert TABLE.keys() - read == set()


def test_only_records_of_the_release_are_deleted() -> None:
    assert [result for _owner, _action, result in cells("Secret")] == [TAKE]
    tasks = yaml.safe_load((ROOT / "roles/operators/tasks/release.yml").read_text(encoding="utf-8"))
    (asked,) = (task["kubernetes.core.k8s"] for task in tasks if "delete_all" in task.get("kubernetes.core.k8s", {}))
    assert asked["namespace"] == "{{ operators_wanted.namespace }}"
    assert asked["label_selectors"][:2] == ["owner=helm", "name={{ operators_wanted.release }}"]
    assert "deployed" not in str(asked["label_selectors"])


@pytest.mark.parametrize("kind", situations.CONFIGURATIONS)
def test_an_operator_stays_with_a_configuration_of_another_owner(kind: str) -> None:
    for owner, _action, result in cells(kind):
        item = {"kind": kind, "metadata": {"name": "default", "namespace": "ops", **METADATA[owner]}}
        assert bool(name_users(kind, [item])) is (result == KEEP), owner


@pytest.mark.parametrize(("owner", "_action", "result"), cells("Namespace"))
def test_namespace(owner: str, _action: str, result: str) -> None:
    mine = intent("fa", "a")
    space = thing("ops", "Namespace", "")
    space["metadata"] = {**space["metadata"], **METADATA[owner]}
    api = Api(space)
    said = [item.applied for item in removed(api, scope_of(mine), ("Namespace",))]
    assert (("Namespace", "", "ops") in api.items) is (result == KEEP)
    assert result == TAKE or owner in (HAND, COPY) or "Argo CD" in said[0].refusal
    assert owner in (OWN, HAND, COPY, GITOPS)
