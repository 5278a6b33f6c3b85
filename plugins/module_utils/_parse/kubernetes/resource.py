# SPDX-License-Identifier: GPL-3.0-or-later

"""What every Kubernetes resource has, as the API server sends it.

A resource of another shape is an error, never an empty fact: what the API server did not say must not look like good news.
"""

from __future__ import annotations

import datetime
import typing

from ..._model.disruption import LabelExpression, LabelSelector
from ..._model.errors import ParseError, RdmaError
from ..limits import decode_json

Resource = typing.Mapping[str, typing.Any]


class ResourceError(RdmaError):
    """A resource without what its kind must have. The message says which resource, and what was expected where."""


def title_of(resource: typing.Any) -> str:
    """Kind and name of a resource, for an error's text; of another thing its type."""
    if not isinstance(resource, dict):
        return f"a {type(resource).__name__}"
    metadata = resource.get("metadata")
    name = metadata.get("name", "without a name") if isinstance(metadata, dict) else "without metadata"
    return f"{resource.get('kind', 'resource')} {name}"


def mapping_at(resource: typing.Any, *path: str) -> typing.Dict[str, typing.Any]:
    """The mapping at ``path``; an absent one is empty.

    :raises ResourceError: it is none, or what leads to it is none
    """
    value = resource
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            raise ResourceError(f"{title_of(resource)}: {'.'.join(path[:depth]) or 'the resource'} is no mapping")
        value = value.get(key) or {}
    if not isinstance(value, dict):
        raise ResourceError(f"{title_of(resource)}: {'.'.join(path)} is no mapping")
    return value


def items_of(parent: Resource, key: str, what: str) -> typing.List[typing.Dict[str, typing.Any]]:
    """The list of mappings at ``key``; an absent one is empty.

    :raises ResourceError: it is none
    """
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ResourceError(f"{what}: {key} is no list of mappings")
    return value


def texts_of(parent: Resource, key: str, what: str) -> typing.Tuple[str, ...]:
    """The list at ``key`` as text; an absent one is empty.

    :raises ResourceError: it is none
    """
    value = parent.get(key) or []
    if not isinstance(value, list):
        raise ResourceError(f"{what}: {key} is no list")
    return tuple(str(item) for item in value)


def name_of(resource: Resource) -> str:
    """metadata.name.

    :raises ResourceError: when there is none
    """
    name = mapping_at(resource, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise ResourceError(f"{title_of(resource)}: metadata.name is missing")
    return name


def full_name_of(resource: Resource) -> str:
    """``namespace/name``.

    :raises ResourceError: it has no name
    """
    return f"{mapping_at(resource, 'metadata').get('namespace', '')}/{name_of(resource)}"


def json_of(text: typing.Any, what: str) -> typing.Any:
    """What a text of a resource holds, which may be anybody's.

    :raises ResourceError: no JSON
    """
    try:
        return decode_json(text, what, unique=False)
    except ParseError as error:
        raise ResourceError(f"{what} is no JSON: {error}") from None


def labels_of(resource: Resource) -> typing.Dict[str, str]:
    """metadata.labels."""
    return {str(key): str(value) for key, value in mapping_at(resource, "metadata", "labels").items()}


def number_of(value: typing.Any, what: str) -> int:
    """A whole number.

    :raises ResourceError: it is none
    """
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ResourceError(f"{what}: '{str(value)[:100]}' is no whole number") from None


def selector_of(parent: Resource, key: str, what: str) -> typing.Optional[LabelSelector]:
    """A LabelSelector; None where there is none."""
    if parent.get(key) is None:
        return None
    mapping = mapping_at(parent, key)
    asked = items_of(mapping, "matchExpressions", what)
    return LabelSelector(
        labels={str(name): str(value) for name, value in mapping_at(mapping, "matchLabels").items()},
        expressions=tuple(LabelExpression(str(item.get("key")), str(item.get("operator")), texts_of(item, "values", what)) for item in asked),
    )


def moment_of(text: typing.Any) -> typing.Optional[datetime.datetime]:
    """Time or MicroTime (RFC 3339 without or with microseconds) as UTC; None when it is absent or no time."""
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            return datetime.datetime.strptime(str(text), form).replace(tzinfo=datetime.timezone.utc)
        except ValueError:
            continue
    return None
