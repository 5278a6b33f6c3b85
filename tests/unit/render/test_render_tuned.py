# SPDX-License-Identifier: GPL-3.0-or-later

"""The Tuned, against a golden file and against OpenShift's own definition in every field. LINERATE_UPDATE_GOLDEN=1
writes it anew."""

from __future__ import annotations

import configparser
import copy
import os
import pathlib
import typing

import jsonschema
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import Settings
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import collect_settings
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.tuned import render_profile, render_tuned

from ..plan.test_tuning_settings import intent_of

UNIT = pathlib.Path(__file__).parent.parent
DEFINITION = yaml.safe_load((UNIT / "fixtures/kubernetes/tuneds.tuned.openshift.io.yaml").read_text(encoding="utf-8"))
LABELS = {"feature.node.kubernetes.io/network-sriov.capable": "true", "nvidia.com/gpu.present": "true"}


def closed(schema: typing.Any) -> typing.Any:
    """The API server drops a field that the definition does not have, and says nothing; here it is refused."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    return {**made, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else made


SCHEMA = closed(DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


def test_a_tuned() -> None:
    made = render_tuned(collect_settings(intent_of(expected={"thp": "always"})), LABELS, "worker", "openshift-node")
    text, path = yaml.safe_dump(made, sort_keys=False), UNIT / "golden" / "tuned.golden"
    if os.environ.get("LINERATE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    jsonschema.validate(made["spec"], SCHEMA)
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "linerate.rdma"}


def test_all_labels_must_match() -> None:
    (recommend,) = render_tuned(Settings(), LABELS, "worker", "openshift-node")["spec"]["recommend"]
    # one that is beside another would be an or
    (outer,) = recommend["match"]
    (inner,) = outer["match"]
    assert {outer["label"]: outer["value"], inner["label"]: inner["value"]} == LABELS and "match" not in inner
    assert recommend["priority"] < 30, "OpenShift's own have 30 and 40"


def test_without_labels_it_is_for_a_pool() -> None:
    made = render_tuned(Settings(), {}, "gpu", "openshift-node")["spec"]
    assert made["recommend"] == [
        {
            "profile": "linerate-rdma",
            "priority": 20,
            "machineConfigLabels": {"machineconfiguration.openshift.io/role": "gpu"},
        }
    ]
    jsonschema.validate(made, SCHEMA)


@pytest.mark.parametrize(
    "path",
    [
        ("profile", 0, "data"),
        ("profile", 0, "name"),
        ("recommend", 0, "priority"),
        ("recommend", 0, "match", 0, "label"),
    ],
)
def test_a_misspelt_field_is_refused(path: tuple[typing.Any, ...]) -> None:
    spec = copy.deepcopy(render_tuned(collect_settings(intent_of()), LABELS, "worker", "openshift-node")["spec"])
    at = spec
    for step in path[:-1]:
        at = at[step]
    at[path[-1] + "s"] = at.pop(path[-1])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spec, SCHEMA)


def test_the_profile_is_an_ini_file_that_adds_to_its_parent() -> None:
    found = collect_settings(intent_of())
    parsed = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parsed.optionxform = str  # type: ignore[method-assign, assignment]
    parsed.read_string(render_profile(found, "openshift-control-plane"))
    assert parsed["main"]["include"] == "openshift-control-plane"
    assert {name: dict(parsed[name]) for name in parsed.sections() if name != "main"} == found.sections
