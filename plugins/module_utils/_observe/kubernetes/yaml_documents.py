# SPDX-License-Identifier: GPL-3.0-or-later

"""Read YAML that others have written: a ConfigMap, a file with objects, a Helm chart. Few lines of it can stand for
much, so each has its limits. What cannot be read is an RdmaError, whatever is written there."""

from __future__ import annotations

import contextlib
import functools
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import both_ends
from ..._model.boundary.form import shown
from ..._parse.limits import MIB, MOST_DEPTH
from .kinds import Resource

with contextlib.suppress(ImportError):
    import yaml

#: bytes of YAML in a ConfigMap. PyYAML takes half a second for it; those that are read have a few thousand
MOST_YAML = 32 * 1024
#: characters of a file with objects, and of a Helm chart, which has definitions of 2 MiB
MOST_FILE, MOST_CHART = MIB, 8 * MIB
#: values in such a text, aliases unfolded. A chart has some ten thousand, its definitions 100,000. So many take 2 s and
#: 190 MiB with libyaml. Where PyYAML is built without it, they take 10 s and 250 MiB, and a text of the largest size
#: with few values 12 s
MOST_VALUES = 262_144
#: libyaml compares each directive %TAG with all before it
_MOST_TAGS = 64
#: characters of a scalar that YAML may take for a number
_MOST_NUMBER, _NUMBER = 1000, re.compile(r"[-+]?[0-9][0-9_:.]*")
#: tags of scalars that YAML takes for something else than text
_NOT_TEXT = tuple(f"tag:yaml.org,2002:{name}" for name in ("binary", "bool", "float", "int", "null", "timestamp"))
_TEXT = "tag:yaml.org,2002:str"
#: explicit tags that change nothing. Behind any other one PyYAML takes the words that follow for granted: it raises
#: what its own code fails with, or makes sets, bytes and pairs, which no Kubernetes object has
_PLAIN_TAGS = {
    "ScalarEvent": ("!", _TEXT),
    "SequenceStartEvent": ("!", "tag:yaml.org,2002:seq"),
    "MappingStartEvent": ("!", "tag:yaml.org,2002:map"),
}
#: what PyYAML makes of a scalar without a tag that Kubernetes takes for text: a date, and the lone signs = and <<
_TEXT_AS_WELL = tuple(f"tag:yaml.org,2002:{name}" for name in ("merge", "timestamp", "value"))
_SPLIT = "Write what is repeated less often, or give the objects in several files"


def read_yaml(text: str) -> typing.Any:
    """Text out of a ConfigMap, which may be a tenant's.

    :raises RdmaError: no YAML, or such as costs more than a configuration does
    """
    if len(text) > MOST_YAML:
        raise RdmaError(f"YAML of {len(text)} characters, expected {MOST_YAML} at most")
    try:
        _limit_nodes(text)
        return yaml.load(text, Loader=_restrict_loader(yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RdmaError(f"no YAML: {both_ends(str(error))}") from error


def _limit_nodes(text: str) -> None:
    """:raises ValueError: an alias, of which few make a mapping that has no end when it is walked through, many levels,
    or a tag"""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        _refuse_tag(event)
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"alias *{event.anchor}, expected none")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise ValueError(f"nesting of more than {MOST_DEPTH} levels")


def _refuse_tag(event: typing.Any) -> None:
    """:raises ValueError: an explicit tag that changes what is written there"""
    tag = getattr(event, "tag", None)
    if tag is not None and tag not in _PLAIN_TAGS.get(type(event).__name__, ()):
        raise ValueError(f"tag '{shown(tag)}' in line {event.start_mark.line + 1}, expected none")


def has_libyaml() -> bool:
    """Return whether PyYAML was built with libyaml, which takes a quarter of the time."""
    return hasattr(yaml, "CSafeLoader")


@functools.cache
def _restrict_loader(loader: typing.Any) -> typing.Any:
    """Return a loader that raises nothing but errors of YAML, and makes nothing but what JSON has.

    It takes each key of a mapping as the text that is written there, as a JSON object has it, and refuses a key that is
    no scalar. Whoever writes the text chooses the hash of a number, and Python puts numbers with one hash, or whose
    places in the dict meet, one behind the other: a mapping of 300,000 such keys takes a minute and more. Numbers of 61
    bits suffice for that, so that no limit of their size helps. The hash of a text has a secret in it.
    """

    def construct_mapping(self: typing.Any, node: typing.Any, deep: bool = False) -> typing.Any:
        if isinstance(node, yaml.MappingNode):
            self.flatten_mapping(node)
            node.value = [(_text_key(key), value) for key, value in node.value]
        return loader.construct_mapping(self, node, deep)

    def construct_object(self: typing.Any, node: typing.Any, deep: bool = False) -> typing.Any:
        if not isinstance(node, yaml.ScalarNode):
            return loader.construct_object(self, node, deep)
        try:
            return loader.construct_object(self, node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # PyYAML reads it by code of its own: 0x_ has no digits, and 200 places of base 60 fit into no float
            what = f"{node.tag.rpartition(':')[2]} '{shown(node.value)}' can't be read"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error

    methods = {"construct_mapping": construct_mapping, "construct_object": construct_object}
    made = type("Restricted", (loader,), methods)
    for tag in _TEXT_AS_WELL:
        made.add_constructor(tag, loader.construct_yaml_str)  # type: ignore[attr-defined]
    return made


def _text_key(key: typing.Any) -> typing.Any:
    """:raises yaml.YAMLError: a list or a mapping"""
    if not isinstance(key, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(None, None, "a list or a mapping as a key", key.start_mark)
    # a new node: by an alias the same one may be a value elsewhere
    return yaml.ScalarNode(_TEXT, key.value, key.start_mark, key.end_mark) if key.tag in _NOT_TEXT else key


def read_documents(text: str, most: int = MOST_CHART) -> list[Resource]:
    """Objects of a file with one YAML document or several; a List counts as what is in it.

    Aliases are taken, as a file may repeat itself. What they repeat counts as often as it stands there, so that a few
    lines can't become what has no end.

    :param most: characters, of the text and of all that is in it with its aliases. It may have MOST_VALUES values
    :raises RdmaError: no YAML, a document that is no object of Kubernetes, or more than that
    """
    if len(text) > most:
        raise RdmaError(f"YAML of {len(text)} characters, expected {most} at most", _SPLIT)
    loader = yaml.CSafeLoader if has_libyaml() else yaml.SafeLoader
    try:
        # first all is counted: an object of PyYAML takes 600 bytes, one that is only counted none
        _Count(most).read(text, loader)
        documents = [
            document for document in yaml.load_all(text, Loader=_restrict_loader(loader)) if document is not None
        ]
    except _Unfolds as error:
        raise RdmaError(str(error), _SPLIT) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        # an anchor or a tag in it may be as long as the text
        raise RdmaError(f"no YAML: {both_ends(str(error))}") from error
    found: list[Resource] = []
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        items = document.get("items") if isinstance(kind, str) and kind.endswith("List") else [document]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise RdmaError(f"a document holds {type(document).__name__}, not a Kubernetes object")
        found += items
    return found


class _Unfolds(Exception):
    """A text of YAML that is more than it looks like."""


class _Open(typing.NamedTuple):
    """A list or a mapping whose end has not come yet.

    :ivar nodes: values before it
    :ivar characters: of scalars before it
    :ivar deepest: level that was reached before it
    """

    anchor: typing.Optional[str]
    nodes: int
    characters: int
    deepest: int


class _Count:
    """Counts what is in a text of YAML, with what aliases repeat.

    :param most: characters of scalars
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._deepest = self._nodes = self._characters = 0
        self._open: list[_Open] = []
        # of the document: values, characters and levels of what has an anchor
        self._sizes: dict[str, tuple[int, int, int]] = {}

    def read(self, text: str, loader: typing.Any) -> None:
        """Go through a text.

        :raises _Unfolds: it has more than the limits
        :raises yaml.YAMLError: it is no YAML
        :raises ValueError: it has a tag
        """
        if text.count("%TAG") > _MOST_TAGS:
            raise _Unfolds(f"YAML with more than {_MOST_TAGS} directives %TAG")
        for event in yaml.parse(text, Loader=loader):
            _refuse_tag(event)
            if isinstance(event, yaml.DocumentStartEvent):
                self._sizes = {}
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._sizes:
                    raise _Unfolds(f"alias *{shown(event.anchor)} of nothing, or of what it is in")
                self._spend(*self._sizes[event.anchor])
            elif isinstance(event, yaml.ScalarEvent):
                self._take_scalar(event.value, event.anchor)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event.anchor)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()

    def _take_scalar(self, value: str, anchor: typing.Optional[str]) -> None:
        if len(value) > _MOST_NUMBER and _NUMBER.fullmatch(value):
            # numbers of base 60 take the square of their length
            raise _Unfolds(f"a number of {len(value)} characters, expected {_MOST_NUMBER} at most")
        self._spend(1, len(value), 1)
        if anchor is not None:
            self._sizes[anchor] = (1, len(value), 1)

    def _begin(self, anchor: typing.Optional[str]) -> None:
        if anchor is not None:
            # what an anchor named before is not what an alias within means
            self._sizes.pop(anchor, None)
        here = _Open(anchor, self._nodes, self._characters, self._deepest)
        self._deepest = len(self._open)
        self._spend(1, 0, 1)
        self._open.append(here)

    def _end(self) -> None:
        here = self._open.pop()
        if here.anchor is not None:
            self._sizes[here.anchor] = (
                self._nodes - here.nodes,
                self._characters - here.characters,
                self._deepest - len(self._open),
            )
        self._deepest = max(self._deepest, here.deepest)

    def _spend(self, nodes: int, characters: int, levels: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MOST_VALUES or self._characters > self._most:
            what = f"{MOST_VALUES} values" if self._nodes > MOST_VALUES else f"{self._most} characters"
            raise _Unfolds(f"YAML of more than {what}, with what its aliases repeat")
        self._deepest = max(self._deepest, len(self._open) + levels)
        if self._deepest > MOST_DEPTH:
            raise _Unfolds(f"YAML with nesting of more than {MOST_DEPTH} levels")
