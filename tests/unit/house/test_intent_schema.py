# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/intent.schema.json and the loader take and refuse the same."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import re
import typing

import hypothesis
import hypothesis.strategies as some
import jsonschema
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.form import Form
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from tests.unit.house import intent_schema

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
VALIDATOR = jsonschema.Draft202012Validator(intent_schema.schema())

Data = dict[str, typing.Any]


def loads(variables: Data) -> bool:
    """Whether the loader takes the four variables."""
    try:
        parse_intent(variables.get("rdma_fabrics"), variables.get("rdma_waivers"), variables.get("rdma_cluster"))
        if "rdma_job" in variables:
            load(Job, variables["rdma_job"], "rdma_job")
    except (IntentError, LoadError):
        return False
    return True


TEXT = some.text(max_size=5)
PLAIN: dict[typing.Any, some.SearchStrategy[typing.Any]] = {
    str: TEXT,
    bool: some.booleans(),
    int: some.integers(),
    float: some.integers() | some.floats(allow_nan=False, allow_infinity=False),
    typing.Any: some.none() | some.booleans() | some.integers() | TEXT | some.lists(TEXT, max_size=2),
}


def wished(cls: typing.Any) -> some.SearchStrategy[typing.Any]:
    """Data that a user may write for this type, by its annotations."""
    origin, arguments = typing.get_origin(cls), typing.get_args(cls)
    if cls in PLAIN:
        return PLAIN[cls]
    if origin is typing.Literal:
        return some.sampled_from(arguments)
    if origin is typing.Union:
        return some.one_of(some.none(), *(wished(argument) for argument in arguments if argument is not type(None)))
    if origin is typing.Annotated:
        form = arguments[1]
        return some.sampled_from(("", "a", form.example)) if isinstance(form, Form) else wished(arguments[0])
    if origin is tuple:
        return some.lists(wished(arguments[0]), max_size=2)
    if origin is dict:
        return some.dictionaries(TEXT, wished(arguments[1]), max_size=2)
    hints = typing.get_type_hints(cls, include_extras=True)
    needed: dict[str, some.SearchStrategy[typing.Any]] = {}
    free: dict[str, some.SearchStrategy[typing.Any]] = {}
    for field in dataclasses.fields(cls):
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        (free if has_default else needed)[field.name] = wished(hints[field.name])
    return some.fixed_dictionaries(needed, optional=free)


INTENTS = some.fixed_dictionaries(
    {"rdma_fabrics": some.lists(wished(Fabric), min_size=1, max_size=2)},
    optional={
        "rdma_cluster": some.none() | wished(ClusterIntent),
        "rdma_waivers": some.none() | some.lists(wished(Waiver), max_size=2),
        "rdma_job": wished(Job),
        "ntp_servers": TEXT,
    },
)


def places(data: typing.Any) -> typing.Iterator[tuple[typing.Any, typing.Any]]:
    """Each container in the data with each of its keys."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, item in items:
        yield data, key
        yield from places(item)


def test_the_schema_is_made_from_the_code() -> None:
    assert (DOCS / "intent.schema.json").read_text(encoding="utf-8") == intent_schema.page(), (
        "run: python -m tests.unit.house.intent_schema > docs/intent.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(intent_schema.schema())


@pytest.mark.parametrize("name", ["example", "lab"])
def test_shown_variables_are_valid(root: pathlib.Path, name: str) -> None:
    variables = yaml.safe_load((root / "inventory" / name / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    VALIDATOR.validate(variables)
    assert not VALIDATOR.is_valid(
        {**variables, "rdma_fabrics": [{**variables["rdma_fabrics"][0], "virtual_function": 8}]}
    )


def test_shown_blocks_are_valid(root: pathlib.Path) -> None:
    pages = [(root / name).read_text(encoding="utf-8") for name in ("docs/guides/first_run.md", "docs/job.md")]
    blocks = [text for page in pages for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    shown = [
        block
        for block in map(yaml.safe_load, blocks)
        if isinstance(block, dict) and any(key.startswith("rdma_") for key in block)
    ]
    assert {"rdma_fabrics", "rdma_job"} <= {key for block in shown for key in block}
    for block in shown:
        VALIDATOR.validate(block)


@hypothesis.given(INTENTS)
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_what_can_be_wished_is_taken_by_both(variables: Data) -> None:
    assert loads(variables)
    VALIDATOR.validate(variables)


@hypothesis.given(INTENTS, some.data())
@hypothesis.settings(max_examples=examples(300), suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_what_is_damaged_is_taken_or_refused_by_both(variables: Data, draw: some.DataObject) -> None:
    damaged = copy.deepcopy(variables)
    container, key = draw.draw(some.sampled_from([place for place in places(damaged) if place[1] != "ntp_servers"]))
    how = draw.draw(some.sampled_from(["other", "gone", "more"]))
    wrong: typing.Any = draw.draw(
        some.sampled_from([None, True, 0, -1, 1.5, "x", "any", "leaf", [], ["x"], [5], [{}], {}, {"x": 1}])
    )
    if how == "other":
        container[key] = wrong
    elif how == "gone" and not (container is damaged and key == "rdma_fabrics"):
        # a file need not have all variables
        del container[key]
    elif isinstance(container, dict):
        container["mtux" if container is not damaged else "ntp_server"] = wrong
    assert VALIDATOR.is_valid(damaged) == loads(damaged), damaged


@pytest.mark.parametrize("manager", ["any", None, [], ["0xb83fd20300e00000"], "0xb83fd20300e00000"])
def test_one_subnet_manager_needs_no_list(fabrics: typing.Any, manager: typing.Any) -> None:
    wanted = fabrics()
    wanted[0]["select"]["subnet_manager"] = manager
    VALIDATOR.validate({"rdma_fabrics": wanted})
    assert loads({"rdma_fabrics": wanted})


@pytest.mark.parametrize(("text", "right"), [("{{ common + more }}", True), ("common", False)])
@pytest.mark.parametrize("name", ["rdma_fabrics", "rdma_cluster", "rdma_waivers", "rdma_job"])
def test_an_expression_in_place_of_a_variable_is_left_alone(name: str, text: str, right: bool) -> None:
    assert VALIDATOR.is_valid({name: text}) is right


def test_each_key_that_the_code_explains_has_its_words() -> None:
    definitions = intent_schema.schema()["$defs"]
    assert definitions["Select"]["properties"]["hcas_per_node"] == {
        "description": "required number of physical functions per node on this fabric",
        "type": "integer",
    }
    assert definitions["LineRate"]["properties"]["fraction"]["default"] == 0.92
    assert definitions["Fabric"]["required"] == ["name", "profile", "network"]
