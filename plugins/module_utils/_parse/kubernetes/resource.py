# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the parts that all Kubernetes objects have, as the API server sends them.

If a part does not have the expected form, an error is raised: an unreadable object must never look like an object
without that part.
"""

from __future__ import annotations

import datetime
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.base.text import both_ends, cut_plain, kind_of
from ..._model.boundary.form import Form, describe_rejected
from ..._model.boundary.kubernetes import LABEL, OBJECT_NAME
from ..._model.boundary.times import EARLIEST, parse_moment
from ..._model.kubernetes.disruption import LabelExpression, LabelSelector
from ..limits import decode_json

_LONGEST_MESSAGE = 2000
#: characters of a message in an object: a few sentences, as kubelets and operators write them
MOST_EXCERPT = 1000

Resource = typing.Mapping[str, typing.Any]

#: key of an object whose metadata alone was read: why
NOT_READ = "linerate.rdma/not-read"


class ResourceError(RdmaError):
    """The error for an object that lacks a key that its kind requires, or that has a value of an unexpected form. The
    short message names the object, the key and the expected value, and contains no control characters.
    """

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(cut_plain(seen, _LONGEST_MESSAGE), remedy)


def title_of(resource: typing.Any) -> str:
    """Return the kind and the name of an object, for messages. Return the name of the type if the value is not an
    object.

    :param resource: value that should be an object of Kubernetes
    """
    if not isinstance(resource, dict):
        return kind_of(resource)
    metadata = resource.get("metadata")
    name = metadata.get("name", "without a name") if isinstance(metadata, dict) else "without metadata"
    return f"{describe_rejected(resource.get('kind', 'resource'))} {describe_rejected(name)}"


def why_not_read(resource: typing.Any) -> str:
    """Return the reason why only the metadata of an object was read. Return an empty string if the whole object was
    read, or if the value is not an object.

    :param resource: value that should be an object of Kubernetes
    """
    return str(resource.get(NOT_READ) or "") if isinstance(resource, dict) else ""


def mapping_at(resource: typing.Any, *path: str) -> dict[str, typing.Any]:
    """Return the mapping at ``path``, a sequence of keys. Return an empty mapping if a key is missing, or its value is
    empty.

    :param resource: object of Kubernetes, or a mapping in one
    :raises ResourceError: the value or a value on the path is not a mapping, or only the metadata of the object was
        read and the path leads to another part
    """
    if path and path[0] != "metadata" and why_not_read(resource):
        raise ResourceError(f"{title_of(resource)}: {why_not_read(resource)}")
    value = resource
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            raise ResourceError(f"{title_of(resource)}: {'.'.join(path[:depth]) or 'the resource'} is not a mapping")
        value = value.get(key) or {}
    if not isinstance(value, dict):
        raise ResourceError(f"{title_of(resource)}: {'.'.join(path)} is not a mapping")
    return value


def items_of(parent: Resource, key: str, what: str) -> list[dict[str, typing.Any]]:
    """Return the list of mappings at ``key``. Return an empty list if the key is missing or empty.

    :param what: name of ``parent`` in messages
    :raises ResourceError: the value is not a list of mappings
    """
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ResourceError(f"{what}: {key} is not a list of mappings")
    return value


def texts_of(parent: Resource, key: str, what: str) -> tuple[str, ...]:
    """Return the items of the list at ``key``, each converted to text. Return an empty tuple if the key is missing or
    empty.

    :param what: name of ``parent`` in messages
    :raises ResourceError: the value is not a list
    """
    value = parent.get(key) or []
    if not isinstance(value, list):
        raise ResourceError(f"{what}: {key} is not a list")
    return tuple(str(item) for item in value)


def name_of(resource: Resource) -> str:
    """Return the name of an object (metadata.name).

    :raises ResourceError: the name is missing, or is not a valid name of an object
    """
    name = mapping_at(resource, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise ResourceError(f"{title_of(resource)}: metadata.name is missing")
    return text_of(OBJECT_NAME, name, f"{title_of(resource)}: metadata.name")


def read_namespace(resource: Resource) -> str:
    """Return the namespace of an object, or ``default`` if the object has none. Unlike :func:`namespace_of`, raise an
    error for an invalid value.

    :raises ResourceError: the value is not a valid name of a namespace
    """
    return text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{title_of(resource)}: metadata") or "default"


def namespace_of(resource: Resource) -> str:
    """Return the namespace of an object, or ``default`` if the object has none. Unlike :func:`read_namespace`, return
    an empty string if the value is not a valid name of a namespace.
    """
    try:
        return read_namespace(resource)
    except ResourceError:
        return ""


def full_name_of(resource: Resource) -> str:
    """Return ``namespace/name`` of an object. The part before the slash is empty if the object has no namespace.

    :raises ResourceError: the object has no valid name
    """
    return f"{mapping_at(resource, 'metadata').get('namespace', '')}/{name_of(resource)}"


def json_of(text: typing.Any, what: str) -> typing.Any:
    """Decode JSON that is stored as text in an object. Any user may have written the text.

    :param what: name of the text in messages
    :raises ResourceError: the text is not valid JSON
    """
    try:
        return decode_json(text, what, unique=False)
    except ParseError as error:
        raise ResourceError(f"{what} is not JSON: {error}") from None


def format_refusal(what: str, value: typing.Any, form: Form) -> str:
    """Return the error message for a value that does not have the required form. The value is quoted in a shortened and
    escaped form.

    :param what: name of the value in the message
    :param form: form that the value must have
    """
    return f"{what} '{describe_rejected(value)}' is rejected: it is not {form.expected}"


def text_of(form: Form, value: typing.Any, what: str) -> str:
    """Return a value of an object as text in the normalized spelling of its form.

    :param form: the required form, such as that of a DNS label
    :param what: name of the value in messages
    :raises ResourceError: the value does not have the form
    """
    found = form.parse(value)
    if found is None:
        raise ResourceError(format_refusal(what, value, form))
    return found


def text_at(form: Form, parent: Resource, key: str, what: str) -> str:
    """Return the text at ``key`` in the normalized spelling of its form. Return an empty string if the key is missing
    or its value empty.

    :param form: the required form, such as that of a DNS label
    :param what: name of ``parent`` in messages
    :raises ResourceError: the value does not have the form
    """
    value = parent.get(key)
    return "" if value is None or value == "" else text_of(form, value, f"{what}: {key}")


def excerpt_of(value: typing.Any) -> str:
    """Return a message as text shortened in its middle to MOST_EXCERPT characters. Return an empty string for None. A
    kubelet, a daemon on a node or a container runtime may write a message as long as an object, and a run that waits
    repeats the message.
    """
    return both_ends(str(value or ""), MOST_EXCERPT)


def find_manager(resource: Resource, *path: str, besides: str = "") -> str:
    """Return the field manager that last set a field of the spec, as the API server records it in
    ``metadata.managedFields``. Return an empty string if no record names the field.

    :param path: keys of the field below the spec, such as ``paused``
    :param besides: manager whose records are ignored; empty if none are ignored
    :raises ResourceError: the records have an unexpected form
    """
    *above, field = (f"f:{key}" for key in path)
    for entry in items_of(mapping_at(resource, "metadata"), "managedFields", title_of(resource)):
        if entry.get("subresource") or field not in mapping_at(entry, "fieldsV1", "f:spec", *above):
            continue
        manager = str(entry.get("manager") or "")
        if not besides or manager != besides:
            return manager
    return ""


def labels_of(resource: Resource) -> dict[str, str]:
    """Return the labels of an object (metadata.labels) as texts. Return an empty mapping if it has none.

    :raises ResourceError: the labels are not a mapping
    """
    return {str(key): str(value) for key, value in mapping_at(resource, "metadata", "labels").items()}


def normalize_known(form: Form, value: typing.Any) -> str:
    """Return a text in the normalized spelling of its form. Return an empty string if the value is missing or does not
    have the form. It is used for values that a node reports, so that an invalid value does not stop the processing of
    the other nodes.

    :param form: the required form, such as that of a UID
    """
    return form.parse(value) or ""


def list_known(form: Form, values: typing.Iterable[typing.Any]) -> tuple[str, ...]:
    """Return those of the values that have a form, in their normalized spelling. The other values are left out instead
    of being replaced by empty texts. A list with an empty text could not be loaded again, and then the whole fact that
    contains the list would be lost.

    :param form: the required form, such as that of a DNS label
    """
    return tuple(filter(None, (normalize_known(form, value) for value in values)))


_LONGEST_NUMBER = 20
#: of 64 bits, as the API server has them
_MOST = 2**63 - 1


def number_of(value: typing.Any, what: str) -> int:
    """Parse a whole number of at most 64 bits, from a number or its decimal digits.

    :param what: name of the value in messages
    :raises ResourceError: the value is not such a number
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
            f"{what}: '{describe_rejected(value if isinstance(value, str) else str(value)[:100])}' is not a whole"
            " number"
        )
    return found


def selector_of(parent: Resource, key: str, what: str) -> typing.Optional[LabelSelector]:
    """Parse the LabelSelector at ``key``. Return None if the key is missing or null. An empty LabelSelector, which
    selects all objects, is returned as such.

    :param what: name of ``parent`` in messages
    :raises ResourceError: the value does not have the form of a LabelSelector
    """
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
    """Parse a Time or MicroTime (RFC 3339 without or with microseconds) and return it in UTC. Return None if the value
    is missing, is not a time, or is before ``EARLIEST``.
    """
    found = parse_moment(text)
    return found if found is not None and found >= EARLIEST else None
