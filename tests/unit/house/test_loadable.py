# SPDX-License-Identifier: GPL-3.0-or-later

"""What the folder of facts gives back is what was put there: no dataclass of the model has a tuple whose places differ,
which the loader can't tell apart."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils import _model
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.machine_config import machine_pool

#: that never leave the process
INSIDE = {"CollectiveRun.variables", "NicMap.broken", "Section.entries", "ErrorReading.ends"}
MODULES = [
    importlib.import_module(found.name) for found in pkgutil.walk_packages(_model.__path__, f"{_model.__name__}.")
]


def uneven(kind: typing.Any) -> bool:
    places = typing.get_args(kind)
    return (typing.get_origin(kind) is tuple and Ellipsis not in places and len(set(places)) > 1) or any(
        map(uneven, places)
    )


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_tuple_has_places_that_differ(module: types.ModuleType) -> None:
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
    ]
    found = {
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, hint in typing.get_type_hints(kind).items()
        if uneven(hint)
    }
    assert found <= INSIDE


def test_a_pool_that_selects_by_expressions_comes_back() -> None:
    expression = {"key": "machineconfiguration.openshift.io/role", "operator": "In", "values": ["worker", "gpu"]}
    pool = machine_pool(
        {
            "metadata": {"name": "gpu"},
            "spec": {"machineConfigSelector": {"matchExpressions": [expression]}},
            "status": {},
        }
    )
    assert pool.config_selector is not None and pool.config_selector.expressions[0].values == ("worker", "gpu")
    assert load(type(pool), to_data(pool)) == pool
