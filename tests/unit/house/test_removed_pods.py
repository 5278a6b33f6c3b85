# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods of running jobs have the label of the collection: only those of a run may be removed by their kind alone."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import RUN_LABEL
from ansible_collections.linerate.rdma.plugins.modules import custom_resources

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULE = "linerate.rdma.custom_resources"


def list_removals(tasks: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
    """Yield the options of each task that removes pods."""
    for task in tasks or ():
        for part in ("block", "rescue", "always"):
            yield from list_removals(task.get(part))
        options = task.get(MODULE) or {}
        if options.get("state") == "absent" and "Pod" in (options.get("kinds") or ()):
            yield options


@pytest.mark.parametrize("path", sorted(ROOT.glob("roles/*/tasks/*.yml")), ids=lambda path: f"{path.parts[-3]}")
def test_a_role_removes_pods_of_a_run_or_of_its_intent_alone(path: pathlib.Path) -> None:
    for options in list_removals(yaml.safe_load(path.read_text(encoding="utf-8"))):
        assert RUN_LABEL in options.get("label_selector", "") or "fabrics" in options, path


def test_the_roles_and_the_example_remove_pods() -> None:
    (example,) = list_removals(yaml.safe_load(custom_resources.EXAMPLES))
    assert RUN_LABEL in example["label_selector"]
    paths = ROOT.glob("roles/*/tasks/*.yml")
    roles = {path.parts[-3] for path in paths for _options in list_removals(yaml.safe_load(path.read_text()))}
    assert roles >= {"bandwidth", "collectives"}
