# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a namespace that the collection made may be deleted: not with objects of others in it, since they would go
with it."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import folded
from ..._parse.kubernetes.foreign import ApiResource, judge, resources, versions
from ..._parse.kubernetes.resource import Resource, ResourceError
from .client import Cluster
from .errors import ApiError
from .shell import Clock

#: seconds between two looks while objects of the namespace are being deleted
_LOOK = 2.0
#: of the objects that keep a namespace, those that are named
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class Kept:
    """The reason why a namespace stays.

    :ivar objects: ``kind name`` of what is not the collection's
    :ivar unread: what could not be listed, and why: nobody knows what is there
    """

    objects: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join(
            filter(
                None,
                (
                    _format_counted_names("it has objects that the collection did not make", self.objects),
                    _format_counted_names("not listed", self.unread),
                ),
            )
        )


def objects_of_others(
    cluster: Cluster, namespace: str, limit: float, clock: Clock, pause: typing.Callable[[float], None]
) -> typing.Optional[Kept]:
    """Look through all that a namespace holds, by the API server's own discovery, and say what keeps it from being
    deleted; None when nothing does.

    For each deletion of a namespace that the collection made. What is being deleted is waited for, and keeps the
    namespace when it does not go. The user needs the right to list all resources in the namespace; what may not be
    listed keeps it, too. An object that is made after the look is not seen.

    :param limit: seconds to wait for what is being deleted
    :param pause: sleeps; given in, as ``clock``, so that a test needs no time
    :raises ApiError: the server cannot be reached
    """
    end = clock() + limit
    while True:
        unread: list[str] = []
        try:
            judged = judge(everything(cluster, namespace, unread))
        except ResourceError as error:
            return Kept(unread=(*unread, error.seen))
        if judged.foreign or unread:
            return Kept(judged.foreign, tuple(unread))
        if not judged.going:
            return None
        if clock() >= end:
            return Kept(judged.going)
        pause(_LOOK)


def everything(cluster: Cluster, namespace: str, unread: list[str]) -> typing.Iterator[tuple[str, Resource]]:
    """Yield the kind and metadata of each object of a namespace, by the API server's own discovery.

    :param unread: takes what could not be listed, and why
    :raises ApiError: the server cannot be reached
    """
    for item in _list_api_resources(cluster, unread):
        for seen in _list_resource_objects(cluster, item, namespace, unread):
            yield item.kind, seen


def _list_api_resources(cluster: Cluster, unread: list[str]) -> list[ApiResource]:
    """Each resource once, in the version that the server prefers.

    :param unread: takes the versions of the API that do not tell their resources, and why
    """
    found: dict[tuple[str, str], ApiResource] = {}
    try:
        bases = ("/api/v1", *versions(cluster.read("/apis")))
    except (ApiError, ResourceError) as error:
        _note_unread_resource(error, "the API groups", unread)
        return []
    for base in bases:
        try:
            every = resources(cluster.read(base), base)
        except (ApiError, ResourceError) as error:
            _note_unread_resource(error, base, unread)
            continue
        for item in every:
            found.setdefault((base.rpartition("/")[0], item.plural), item)
    return [item for item in found.values() if item.listable]


def _list_resource_objects(
    cluster: Cluster, resource: ApiResource, namespace: str, unread: list[str]
) -> typing.Iterator[Resource]:
    """Yield the objects of one resource in a namespace, with their metadata."""
    try:
        yield from cluster.metadata((resource.base, resource.plural, True), namespace)
    except ApiError as error:
        # a resource whose definition has gone since it was told holds nothing
        if not error.absent:
            _note_unread_resource(error, resource.plural, unread)


def _note_unread_resource(error: typing.Union[ApiError, ResourceError], what: str, unread: list[str]) -> None:
    """:raises ApiError: the server cannot be reached"""
    if isinstance(error, ApiError) and error.status == 0:
        raise error
    unread.append(f"{what} ({error.text if isinstance(error, ApiError) else error.seen})")


def _format_counted_names(what: str, items: typing.Sequence[str]) -> str:
    return f"{what} ({len(items)}): {folded(items, _NAMED)}" if items else ""
