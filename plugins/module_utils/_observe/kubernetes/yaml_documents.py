# SPDX-License-Identifier: GPL-3.0-or-later

"""Read YAML of any origin: a ConfigMap, a file with objects, the output of a Helm chart. A few lines of YAML can expand
to a large structure, so each source has limits. Any text that cannot be read raises RdmaError.
"""

from __future__ import annotations

import contextlib
import functools
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import both_ends
from ..._model.boundary.form import describe_rejected
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
_SPLIT = "Reduce the repetition, or split the objects into several files"


def read_yaml(text: str) -> typing.Any:
    """Return the data of a YAML text from a ConfigMap, which may belong to a tenant.

    :raises RdmaError: the text is not valid YAML, is longer than ``MOST_YAML`` characters, contains an alias or a tag
        that changes a type, or is nested too deeply
    """
    if len(text) > MOST_YAML:
        raise RdmaError(f"YAML of {len(text)} characters; expected at most {MOST_YAML}")
    try:
        _limit_nodes(text)
        return yaml.load(text, Loader=_restrict_loader(yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RdmaError(f"not valid YAML: {both_ends(str(error))}") from error


def _limit_nodes(text: str) -> None:
    """Verify that a YAML text has no aliases, no tags that change a type, and limited nesting. With a few aliases, a
    text can represent a structure whose traversal practically never ends.

    :raises ValueError: the text contains an alias, a tag, or too many levels
    :raises yaml.YAMLError: the text is not valid YAML
    """
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        _refuse_tag(event)
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"alias *{event.anchor}; expected no alias")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise ValueError(f"nesting of more than {MOST_DEPTH} levels")


def _refuse_tag(event: typing.Any) -> None:
    """Raise an error for an explicit tag that changes the type of a value.

    :param event: event of the YAML parser
    :raises ValueError: the event has such a tag
    """
    tag = getattr(event, "tag", None)
    if tag is not None and tag not in _PLAIN_TAGS.get(type(event).__name__, ()):
        raise ValueError(f"tag '{describe_rejected(tag)}' in line {event.start_mark.line + 1}; expected no tag")


def has_libyaml() -> bool:
    """Return whether PyYAML was built with libyaml, which is four times as fast."""
    return hasattr(yaml, "CSafeLoader")


@functools.cache
def _restrict_loader(loader: typing.Any) -> typing.Any:
    """Return a class of YAML loaders that raises only errors of YAML and constructs only types of JSON.

    The loader reads each mapping key as text, as in JSON, and refuses a key that is not a scalar. The reason is hash
    collisions: the author of a text can choose numeric keys with equal hashes, and a mapping of 300,000 such keys takes
    more than a minute. Numbers of 61 bits are sufficient for that, so a limit of their size does not help. The hash of
    a text is randomized.

    :param loader: a safe loader of PyYAML
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
            what = f"{node.tag.rpartition(':')[2]} '{describe_rejected(node.value)}' could not be parsed"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error

    methods = {"construct_mapping": construct_mapping, "construct_object": construct_object}
    made = type("Restricted", (loader,), methods)
    for tag in _TEXT_AS_WELL:
        made.add_constructor(tag, loader.construct_yaml_str)  # type: ignore[attr-defined]
    return made


def _text_key(key: typing.Any) -> typing.Any:
    """Return the YAML node of a mapping key, converted to a text node if its value is a number, a boolean or null.

    :raises yaml.YAMLError: the key is a list or a mapping
    """
    if not isinstance(key, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(None, None, "a mapping key is a list or a mapping", key.start_mark)
    # a new node: by an alias the same one may be a value elsewhere
    return yaml.ScalarNode(_TEXT, key.value, key.start_mark, key.end_mark) if key.tag in _NOT_TEXT else key


def read_documents(text: str, most: int = MOST_CHART) -> list[Resource]:
    """Return the objects of a text with one or more YAML documents. A List is replaced by its items.

    Aliases are allowed. The values that an alias repeats count at each use, so that a few lines cannot expand without
    limit.

    :param most: maximum number of characters of the text, and of its scalars with aliases expanded. The number of
        values is limited to MOST_VALUES
    :raises RdmaError: the text is not valid YAML, exceeds a limit, or contains a document that is not a Kubernetes
        object
    """
    if len(text) > most:
        raise RdmaError(f"YAML of {len(text)} characters; expected at most {most}", _SPLIT)
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
        raise RdmaError(f"not valid YAML: {both_ends(str(error))}") from error
    found: list[Resource] = []
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        items = document.get("items") if isinstance(kind, str) and kind.endswith("List") else [document]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise RdmaError(f"a document contains a value of type {type(document).__name__}, not a Kubernetes object")
        found += items
    return found


class _Unfolds(Exception):
    """Raised if a YAML text with its aliases expanded exceeds the limits of values, characters or levels."""


class _Open(typing.NamedTuple):
    """A list or mapping of a YAML text whose end has not been read yet.

    :ivar anchor: anchor of the list or mapping; None without an anchor
    :ivar nodes: number of values in the text before it
    :ivar characters: number of characters of scalars in the text before it
    :ivar deepest: deepest level in the text before it
    """

    anchor: typing.Optional[str]
    nodes: int
    characters: int
    deepest: int


class _Count:
    """A counter of the values, characters and levels that a YAML text has when its aliases are expanded.

    :param most: limit of the characters of all scalars together
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._deepest = self._nodes = self._characters = 0
        self._open: list[_Open] = []
        # of the document: values, characters and levels of what has an anchor
        self._sizes: dict[str, tuple[int, int, int]] = {}

    def read(self, text: str, loader: typing.Any) -> None:
        """Count the values, characters and levels that a YAML text has when its aliases are expanded, and raise an
        error at the first exceeded limit.

        :param loader: class of PyYAML loaders
        :raises _Unfolds: the text exceeds a limit, or has an alias without an anchor
        :raises yaml.YAMLError: the text is not valid YAML
        :raises ValueError: the text contains a tag that changes the type of a value
        """
        if text.count("%TAG") > _MOST_TAGS:
            raise _Unfolds(f"the YAML has more than {_MOST_TAGS} %TAG directives")
        for event in yaml.parse(text, Loader=loader):
            _refuse_tag(event)
            if isinstance(event, yaml.DocumentStartEvent):
                self._sizes = {}
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._sizes:
                    raise _Unfolds(
                        f"the alias *{describe_rejected(event.anchor)} refers to no anchor, or to the node that"
                        " contains the alias"
                    )
                self._spend_limits(*self._sizes[event.anchor])
            elif isinstance(event, yaml.ScalarEvent):
                self._take_scalar(event.value, event.anchor)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin_collection(event.anchor)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end_collection()

    def _take_scalar(self, value: str, anchor: typing.Optional[str]) -> None:
        if len(value) > _MOST_NUMBER and _NUMBER.fullmatch(value):
            # numbers of base 60 take the square of their length
            raise _Unfolds(f"a number of {len(value)} characters; expected at most {_MOST_NUMBER}")
        self._spend_limits(1, len(value), 1)
        if anchor is not None:
            self._sizes[anchor] = (1, len(value), 1)

    def _begin_collection(self, anchor: typing.Optional[str]) -> None:
        if anchor is not None:
            # what an anchor named before is not what an alias within means
            self._sizes.pop(anchor, None)
        here = _Open(anchor, self._nodes, self._characters, self._deepest)
        self._deepest = len(self._open)
        self._spend_limits(1, 0, 1)
        self._open.append(here)

    def _end_collection(self) -> None:
        here = self._open.pop()
        if here.anchor is not None:
            self._sizes[here.anchor] = (
                self._nodes - here.nodes,
                self._characters - here.characters,
                self._deepest - len(self._open),
            )
        self._deepest = max(self._deepest, here.deepest)

    def _spend_limits(self, nodes: int, characters: int, levels: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MOST_VALUES or self._characters > self._most:
            what = f"{MOST_VALUES} values" if self._nodes > MOST_VALUES else f"{self._most} characters"
            raise _Unfolds(f"the YAML has more than {what} after its aliases are expanded")
        self._deepest = max(self._deepest, len(self._open) + levels)
        if self._deepest > MOST_DEPTH:
            raise _Unfolds(f"the YAML is nested more than {MOST_DEPTH} levels deep")
