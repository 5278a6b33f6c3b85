# SPDX-License-Identifier: GPL-3.0-or-later

"""What every Kubernetes resource has, as the API server sends it.

A resource of another shape is an error, never an empty fact: what the API server did not say must not look like good
news.
"""

from __future__ import annotations

import datetime
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.base.text import both_ends, kind_of, plain
from ..._model.boundary.form import Form, shown
from ..._model.boundary.kubernetes import LABEL, OBJECT_NAME
from ..._model.boundary.times import EARLIEST, moment
from ..._model.kubernetes.disruption import LabelExpression, LabelSelector
from ..limits import decode_json

_LONGEST_MESSAGE = 2000
#: characters of a message in an object: a few sentences, as kubelets and operators write them
MOST_EXCERPT = 1000

Resource = typing.Mapping[str, typing.Any]

#: key of an object whose metadata alone was read: why
NOT_READ = "linerate.rdma/not-read"


class ResourceError(RdmaError):
    """A resource without what its kind must have. The message says which resource, and what was expected where, in a
    few words without control characters."""

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(plain(seen, _LONGEST_MESSAGE), remedy)


def title_of(resource: typing.Any) -> str:
    """Return the kind and name of a resource, for an error's text; of another thing its type."""
    if not isinstance(resource, dict):
        return kind_of(resource)
    metadata = resource.get("metadata")
    name = metadata.get("name", "without a name") if isinstance(metadata, dict) else "without metadata"
    return f"{shown(resource.get('kind', 'resource'))} {shown(name)}"


def why_not_read(resource: typing.Any) -> str:
    """Return why the metadata of an object was read alone; empty where all of it was."""
    return str(resource.get(NOT_READ) or "") if isinstance(resource, dict) else ""


def mapping_at(resource: typing.Any, *path: str) -> dict[str, typing.Any]:
    """Return the mapping at ``path``; an absent one is empty.

    :raises ResourceError: it is none, or what leads to it is none, or it was not read
    """
    if path and path[0] != "metadata" and why_not_read(resource):
        raise ResourceError(f"{title_of(resource)}: {why_not_read(resource)}")
    value = resource
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            raise ResourceError(f"{title_of(resource)}: {'.'.join(path[:depth]) or 'the resource'} is no mapping")
        value = value.get(key) or {}
    if not isinstance(value, dict):
        raise ResourceError(f"{title_of(resource)}: {'.'.join(path)} is no mapping")
    return value


def items_of(parent: Resource, key: str, what: str) -> list[dict[str, typing.Any]]:
    """Return the list of mappings at ``key``; an absent one is empty.

    :raises ResourceError: it is none
    """
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ResourceError(f"{what}: {key} is no list of mappings")
    return value


def texts_of(parent: Resource, key: str, what: str) -> tuple[str, ...]:
    """Return the list at ``key`` as text; an absent one is empty.

    :raises ResourceError: it is none
    """
    value = parent.get(key) or []
    if not isinstance(value, list):
        raise ResourceError(f"{what}: {key} is no list")
    return tuple(str(item) for item in value)


def name_of(resource: Resource) -> str:
    """metadata.name.

    :raises ResourceError: there is none, or it is no name of an object
    """
    name = mapping_at(resource, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise ResourceError(f"{title_of(resource)}: metadata.name is missing")
    return text_of(OBJECT_NAME, name, f"{title_of(resource)}: metadata.name")


def read_namespace(resource: Resource) -> str:
    """Return the namespace of an object; ``default`` where it names none.

    :raises ResourceError: it is not the name of a namespace
    """
    return text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{title_of(resource)}: metadata") or "default"


def namespace_of(resource: Resource) -> str:
    """Return the namespace of an object; empty where it is not the name of a namespace."""
    try:
        return read_namespace(resource)
    except ResourceError:
        return ""


def full_name_of(resource: Resource) -> str:
    """``namespace/name``.

    :raises ResourceError: it has no name
    """
    return f"{mapping_at(resource, 'metadata').get('namespace', '')}/{name_of(resource)}"


def json_of(text: typing.Any, what: str) -> typing.Any:
    """Load the JSON of a text in a resource, which any user may have written.

    :raises ResourceError: no JSON
    """
    try:
        return decode_json(text, what, unique=False)
    except ParseError as error:
        raise ResourceError(f"{what} is no JSON: {error}") from None


def refusal(what: str, value: typing.Any, form: Form) -> str:
    """Return an error for a text that is not of its type.

    :param what: whose text it is
    """
    return f"{what} '{shown(value)}' is refused: it is not {form.expected}"


def text_of(form: Form, value: typing.Any, what: str) -> str:
    """Return a text of a resource as its type writes it.

    :param what: where it stands, for the message
    :raises ResourceError: it is not of the type
    """
    found = form.parse(value)
    if found is None:
        raise ResourceError(refusal(what, value, form))
    return found


def text_at(form: Form, parent: Resource, key: str, what: str) -> str:
    """Return the text at ``key`` as its type writes it; empty where it is absent or empty.

    :param what: whose text it is, for the message
    :raises ResourceError: it is not of the type
    """
    value = parent.get(key)
    return "" if value is None or value == "" else text_of(form, value, f"{what}: {key}")


def excerpt_of(value: typing.Any) -> str:
    """Return a message that a kubelet, a daemon on a node or a runtime wrote into an object, in at most MOST_EXCERPT
    characters: it may be as long as the object, and a wait repeats it."""
    return both_ends(str(value or ""), MOST_EXCERPT)


def labels_of(resource: Resource) -> dict[str, str]:
    """metadata.labels."""
    return {str(key): str(value) for key, value in mapping_at(resource, "metadata", "labels").items()}


def known(form: Form, value: typing.Any) -> str:
    """Return the text as its type writes it; empty where it is absent or not of the type, which is not known then. For
    what a node says of itself, and no list may end with."""
    return form.parse(value) or ""


_LONGEST_NUMBER = 20
#: of 64 bits, as the API server has them
_MOST = 2**63 - 1


def number_of(value: typing.Any, what: str) -> int:
    """Parse a whole number of 64 bits.

    :raises ResourceError: it is none
    """
    found: typing.Any = value
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and value.isascii() and value.lstrip("-").isdigit():
        try:
            found = int(value)
        except ValueError:
            found = None
    elif isinstance(value, float) and value.is_integer():
        found = int(value)
    if not isinstance(found, int) or isinstance(found, bool) or not -_MOST <= found <= _MOST:
        raise ResourceError(
            f"{what}: '{shown(value if isinstance(value, str) else str(value)[:100])}' is no whole number"
        )
    return found


def selector_of(parent: Resource, key: str, what: str) -> typing.Optional[LabelSelector]:
    """Parse a LabelSelector; None where there is none."""
    if parent.get(key) is None:
        return None
    mapping = mapping_at(parent, key)
    asked = items_of(mapping, "matchExpressions", what)
    return LabelSelector(
        labels={str(name): str(value) for name, value in mapping_at(mapping, "matchLabels").items()},
        expressions=tuple(
            LabelExpression(str(item.get("key")), str(item.get("operator")), texts_of(item, "values", what))
            for item in asked
        ),
    )


def moment_of(text: typing.Any) -> typing.Optional[datetime.datetime]:
    """Time or MicroTime (RFC 3339 without or with microseconds) as UTC; None when it is absent or no time, or before
    all that can be true."""
    found = moment(text)
    return found if found is not None and found >= EARLIEST else None
