# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/intent.schema.json, made from the dataclasses: ``python -m tests.unit.house.intent_schema >
docs/intent.schema.json``.

Types become types, docstrings descriptions. What the loader takes, the schema takes; what the schema refuses, the
loader refuses.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import pathlib
import re
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.form import Bound, Form
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.kubernetes import LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.disruption_override import DISRUPTION
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver

Schema = dict[str, typing.Any]

#: an empty text is not set
_PATTERNS = {LABEL: r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$(?!\n)"}
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}
_VARIABLES = {
    "rdma_fabrics": "What is wanted: one item for each fabric.",
    "rdma_cluster": "What all fabrics share.",
    "rdma_waivers": "Checks that need not pass, each with the reason.",
    "rdma_job": "A training job, for the filter render_job.",
}
_IVAR = re.compile(r"^:ivar (\w+): (.*?)(?=^:ivar |\Z)", re.MULTILINE | re.DOTALL)


def schema() -> Schema:
    """Of a file of variables: the four of the intent, beside any others."""
    made = _Maker()
    variables = {
        "rdma_fabrics": {"type": "array", "minItems": 1, "items": made.type(Fabric)},
        "rdma_cluster": made.type(typing.Optional[ClusterIntent]),
        "rdma_waivers": made.type(typing.Optional[tuple[Waiver, ...]]),
        "rdma_job": made.type(Job),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://github.com/linerate/linerate.rdma/blob/main/docs/intent.schema.json",
        "title": "The intent of linerate.rdma",
        "description": (
            "Variables of an inventory; docs/intent.md explains them. Stage validate checks what they mean together as"
            " well."
        ),
        "type": "object",
        "properties": {
            name: {"description": _VARIABLES[name], **_or_template(variable)} for name, variable in variables.items()
        },
        "$defs": dict(sorted(made.definitions.items())),
    }


def page() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _or_template(variable: Schema) -> Schema:
    """A variable may be the result of an expression, whose text says nothing of it."""
    return {"if": {"type": "string"}, "then": {"pattern": r"\{\{"}, "else": variable}


class _Maker:
    """Schemas of types; each dataclass becomes a definition of its name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def type(self, cls: typing.Any) -> Schema:
        """:raises TypeError: a type that the loader does not know either"""
        origin, arguments = typing.get_origin(cls), typing.get_args(cls)
        if cls is typing.Any:
            return {}
        if cls in _PLAIN:
            return {"type": _PLAIN[cls]}
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin is typing.Union:
            options = [self.type(argument) for argument in arguments if argument is not type(None)]
            return _or_null(options[0]) if len(options) == 1 else {"anyOf": [*options, {"type": "null"}]}
        if origin is typing.Annotated:
            return {
                **self.type(arguments[0]),
                **({"maxItems": arguments[1].most} if isinstance(arguments[1], Bound) else {}),
                **({"pattern": _PATTERNS[arguments[1]]} if isinstance(arguments[1], Form) else {}),
            }
        if origin is tuple:
            return {"type": "array", "items": self.type(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.type(arguments[1])}
        if dataclasses.is_dataclass(cls) and inspect.isclass(cls):
            if cls.__name__ not in self.definitions:
                self.definitions[cls.__name__] = self._definition(cls)
            return {"$ref": f"#/$defs/{cls.__name__}"}
        raise TypeError(f"no schema of {cls}")

    def _definition(self, cls: typing.Any) -> Schema:
        text, hints = inspect.getdoc(cls) or "", typing.get_type_hints(cls, include_extras=True)
        described = {name: _words(words) for name, words in _IVAR.findall(text)}
        properties = {
            field.name: self._property(cls, field, hints[field.name], described.get(field.name, ""))
            for field in dataclasses.fields(cls)
        }
        what = _words(text.partition(":ivar")[0])
        return {
            **({"description": what} if what else {}),
            "type": "object",
            "properties": properties,
            "required": [field.name for field in dataclasses.fields(cls) if _default(field) is dataclasses.MISSING],
            "additionalProperties": False,
        }

    def _property(
        self, cls: typing.Any, field: dataclasses.Field[typing.Any], hint: typing.Any, described: str
    ) -> Schema:
        made = self.type(hint)
        if (cls, field.name) == (Select, "subnet_manager"):
            # one alone needs no list [_parse/intent.py]
            made = {**made, "type": ["array", "string", "null"]}
        if (cls, field.name) == (ClusterIntent, "mirror"):
            # one place of everything [_parse/intent.py]
            made = {**made, "type": ["object", "string", "null"]}
        if (cls, field.name) == (ClusterIntent, "disruption"):
            # a run may be asked for it, and what is proposed refers to that [_model/intent/disruption_override.py]
            made = {"anyOf": [made, {"type": "string", "pattern": rf"\{{\{{.*\b{DISRUPTION}\b"}]}
        default = to_data(_default(field))
        # of a mapping each key has its own, and an unset one has none
        shown = (
            {"default": default}
            if isinstance(default, (bool, int, float, str))
            or (isinstance(default, dict) and default and "$ref" not in made)
            else {}
        )
        return {**({"description": described} if described else {}), **made, **shown}


def _or_null(made: Schema) -> Schema:
    if "enum" in made:
        return {"enum": [*made["enum"], None]}
    if "type" in made:
        return {**made, "type": [made["type"], "null"]}
    return {"anyOf": [made, {"type": "null"}]}


def _default(field: dataclasses.Field[typing.Any]) -> typing.Any:
    """``MISSING`` where there is none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _words(text: str) -> str:
    """A docstring's words for who writes YAML."""
    return re.sub(r"\bNone\b", "null", " ".join(text.split()).replace("``", "`"))


if __name__ == "__main__":
    print(page(), end="")
