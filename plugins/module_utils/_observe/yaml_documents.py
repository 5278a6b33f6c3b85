# SPDX-License-Identifier: GPL-3.0-or-later

"""Read YAML that others have written: a ConfigMap, a file with objects, a Helm chart. Few lines of it can stand for much, so each has its limits."""

from __future__ import annotations

import re
import typing

from .._model.boundary.form import shown
from .._model.errors import RdmaError
from .._parse.limits import MIB, MOST_DEPTH
from .kubernetes import Resource

try:
    import yaml
except ImportError:
    pass

#: bytes of YAML in a ConfigMap. PyYAML takes half a second for it; those that are read have a few thousand
MOST_YAML = 32 * 1024
#: characters of a file with objects, and of a Helm chart, which has definitions of 2 MiB
MOST_FILE, MOST_CHART = MIB, 16 * MIB
#: characters of a scalar that YAML may take for a number
_MOST_NUMBER, _NUMBER = 1000, re.compile(r"[-+]?[0-9][0-9_:.]*")
_SPLIT = "Write what is repeated less often, or give the objects in several files"


def read_yaml(text: str) -> typing.Any:
    """Text out of a ConfigMap, which may be a tenant's.

    :raises RdmaError: no YAML, or such as costs more than a configuration does
    """
    if len(text) > MOST_YAML:
        raise RdmaError(f"YAML of {len(text)} characters, expected {MOST_YAML} at most")
    try:
        _limit_nodes(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RdmaError(f"no YAML: {error}") from error


def _limit_nodes(text: str) -> None:
    """:raises ValueError: an alias, of which few make a mapping that has no end when it is walked through, or many levels"""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"alias *{event.anchor}, expected none")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise ValueError(f"nesting of more than {MOST_DEPTH} levels")


def read_documents(text: str, most: int = MOST_CHART) -> typing.List[Resource]:
    """Objects of a file with one YAML document or several; a List counts as what is in it.

    Aliases are taken, as a file may repeat itself. What they repeat counts as often as it stands there, so that a few lines can't become what has no end.

    :param most: characters, of the text and of all that is in it with its aliases; a quarter of so many nodes
    :raises RdmaError: no YAML, a document that is no mapping, or more than that
    """
    if len(text) > most:
        raise RdmaError(f"YAML of {len(text)} characters, expected {most} at most", _SPLIT)
    try:
        documents = [document for document in yaml.load_all(text, Loader=_bounded(most)) if document is not None]
    except _Unfolds as error:
        raise RdmaError(str(error), _SPLIT) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RdmaError(f"no YAML: {error}") from error
    found: typing.List[Resource] = []
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        items = document.get("items") if isinstance(kind, str) and kind.endswith("List") else [document]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise RdmaError(f"a document holds {type(document).__name__}, not a Kubernetes object")
        found += items
    return found


class _Unfolds(Exception):
    """A text of YAML that is more than it looks like."""


def _bounded(most: int) -> typing.Any:
    """A loader of YAML that counts what is in a text, with what aliases repeat.

    :param most: characters of scalars; a quarter of so many nodes
    """

    class Bounded(yaml.SafeLoader):
        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self._depth = self._deepest = self._nodes = self._characters = 0
            self._sizes: typing.Dict[str, typing.Tuple[int, int, int]] = {}

        def compose_document(self) -> typing.Any:
            self._sizes = {}
            return super().compose_document()

        def compose_node(self, parent: typing.Any, index: typing.Any) -> typing.Any:
            event = typing.cast(typing.Any, self).peek_event()
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._sizes:
                    raise _Unfolds(f"alias *{shown(event.anchor)} of nothing, or of what it is in")
                self._spend(*self._sizes[event.anchor])
                return super().compose_node(parent, index)
            nodes, characters, deepest, self._deepest = self._nodes, self._characters, self._deepest, self._depth
            value = event.value if isinstance(event, yaml.ScalarEvent) else ""
            if len(value) > _MOST_NUMBER and _NUMBER.fullmatch(value):
                # numbers of base 60 take the square of their length
                raise _Unfolds(f"a number of {len(value)} characters, expected {_MOST_NUMBER} at most")
            self._spend(1, len(value), 1)
            self._depth += 1
            node = super().compose_node(parent, index)
            self._depth -= 1
            if event.anchor is not None:
                self._sizes[event.anchor] = (self._nodes - nodes, self._characters - characters, self._deepest - self._depth)
            self._deepest = max(self._deepest, deepest)
            return node

        def _spend(self, nodes: int, characters: int, levels: int) -> None:
            self._nodes += nodes
            self._characters += characters
            if self._nodes > most // 4 or self._characters > most:
                what = f"{most // 4} values" if self._nodes > most // 4 else f"{most} characters"
                raise _Unfolds(f"YAML of more than {what}, with what its aliases repeat")
            self._deepest = max(self._deepest, self._depth + levels)
            if self._deepest > MOST_DEPTH:
                raise _Unfolds(f"YAML with nesting of more than {MOST_DEPTH} levels")

    return Bounded
