# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether a namespace that the collection created may be deleted. It must not contain objects of other clients,
because they would be deleted with it.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.text import join_first
from ...._model.kubernetes.scope import Scope
from ...._parse.kubernetes.foreign import ApiResource, judge_objects, parse_resources, parse_versions
from ...._parse.kubernetes.resource import Resource, ResourceError
from ..client import Cluster
from ..errors import ApiError
from ..shell import Clock

#: seconds between two looks while objects of the namespace are being deleted
_LOOK = 2.0
#: of the objects that keep a namespace, those that are named
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class Kept:
    """The reasons why a namespace must not be deleted.

    :ivar objects: ``kind name`` of each object that the collection did not create, or that did not disappear in time
    :ivar unread: resources that could not be listed, so that their objects are unknown, each with the reason
    """

    objects: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join(
            filter(
                None,
                (
                    _format_counted_names("it has objects that this collection did not create", self.objects),
                    _format_counted_names("could not be listed", self.unread),
                ),
            )
        )


def objects_of_others(
    cluster: Cluster,
    namespace: str,
    limit: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
    scope: typing.Optional[Scope] = None,
) -> typing.Optional[Kept]:
    """Return the reasons why a namespace that the collection created must not be deleted. Return None if it may be
    deleted. All objects of the namespace are listed, of each kind in the discovery of the API server.

    Objects that are being deleted are awaited. If some of them remain at the limit, the namespace must not be deleted.
    The user needs the right to list all resources in the namespace, because a resource that cannot be listed prevents
    the deletion. Objects that are created after this check are not found.

    :param limit: limit in seconds of the wait for objects that are being deleted
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param scope: objects of the intent; an object of another intent also prevents the deletion. None: objects of all
        intents count as the collection's own
    :param pause: function that sleeps for a number of seconds
    :raises ApiError: the API server cannot be reached
    """
    end = clock() + limit
    while True:
        unread: list[str] = []
        try:
            judged = judge_objects(list_everything(cluster, namespace, unread), scope)
        except ResourceError as error:
            return Kept(unread=(*unread, error.seen))
        if judged.foreign or unread:
            return Kept(judged.foreign, tuple(unread))
        if not judged.going:
            return None
        if clock() >= end:
            return Kept(judged.going)
        pause(_LOOK)


def list_everything(cluster: Cluster, namespace: str, unread: list[str]) -> typing.Iterator[tuple[str, Resource]]:
    """Yield the kind and metadata of each object in a namespace, for each kind in the discovery of the API server.

    :param unread: list to which resources that could not be listed are added, each with the reason
    :raises ApiError: the server cannot be reached
    """
    for item in _list_api_resources(cluster, unread):
        for seen in _list_resource_objects(cluster, item, namespace, unread):
            yield item.kind, seen


def _list_api_resources(cluster: Cluster, unread: list[str]) -> list[ApiResource]:
    """Return all listable resources of the API server. A resource that several versions of its group serve is returned
    once, in the version that the server prefers.

    :param unread: list to which API versions whose resources are unknown are added, each with the reason
    """
    found: dict[tuple[str, str], ApiResource] = {}
    try:
        bases = ("/api/v1", *parse_versions(cluster.read("/apis")))
    except (ApiError, ResourceError) as error:
        _note_unread_resource(error, "the API groups", unread)
        return []
    for base in bases:
        try:
            every = parse_resources(cluster.read(base), base)
        except (ApiError, ResourceError) as error:
            _note_unread_resource(error, base, unread)
            continue
        for item in every:
            found.setdefault((base.rpartition("/")[0], item.plural), item)
    return [item for item in found.values() if item.listable]


def _list_resource_objects(
    cluster: Cluster, resource: ApiResource, namespace: str, unread: list[str]
) -> typing.Iterator[Resource]:
    """Yield the metadata of the objects of one resource in a namespace.

    :param resource: kind of the objects, as the API server serves it
    :param unread: list to which the resource is added, with the reason, if it cannot be listed
    :raises ApiError: the API server cannot be reached
    """
    try:
        yield from cluster.metadata((resource.base, resource.plural, True), namespace)
    except ApiError as error:
        # a resource whose definition has gone since it was told holds nothing
        if not error.absent:
            _note_unread_resource(error, resource.plural, unread)


def _note_unread_resource(error: typing.Union[ApiError, ResourceError], what: str, unread: list[str]) -> None:
    """Append a resource that could not be listed to ``unread``, as text with the reason.

    :param error: reason why the resource could not be listed
    :param what: name of the resource or API version
    :param unread: list to which the name and the reason are appended
    :raises ApiError: the error is that the API server cannot be reached
    """
    if isinstance(error, ApiError) and error.status == 0:
        raise error
    unread.append(f"{what} ({error.text if isinstance(error, ApiError) else error.seen})")


def _format_counted_names(what: str, items: typing.Sequence[str]) -> str:
    return f"{what} ({len(items)}): {join_first(items, _NAMED)}" if items else ""
