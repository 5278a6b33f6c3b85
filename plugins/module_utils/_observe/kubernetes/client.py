# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin access to the API server: list, watch, apply, delete, run a command in a pod. _parse parses its answers."""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ..._model.base.errors import ParseError
from ..._model.base.text import folded
from ..._model.kubernetes.objects import Container
from ..._parse.kubernetes.no_answer import cause_of
from ..._parse.kubernetes.resource import NOT_READ, title_of
from ..._parse.limits import MIB, decode_answer
from . import answers
from .answers import (
    Choice,
    Page,
    cut_largest,
    decode_object,
    describe_place,
    describe_too_large,
    find_metadata,
    find_version,
    list_items,
    list_warnings,
    read_counted,
    read_lines,
    read_object,
    read_page,
)
from .channels import Channels, Refused, Way
from .errors import TOO_LARGE, ApiError, ApiException, HTTPError, again, api_error
from .kinds import Kind, Resource, kind_of, path_of
from .shell import Clock, Shell

#: objects of one answer, where a kind may have many. It is asked for fewer where these are larger than a page may be
PAGE, FEWER = 500, 4
#: values of a list that is held as a whole, and bytes: 5,000 nodes have 6,000,000 and 150 MB
MOST_HELD, MOST_HELD_BYTES = 8_000_000, 256 * MIB
#: answers of one list. 5,000 nodes have 1,100 of their pods; etcd has room for 16,000 objects that fill an answer alone
MOST_PAGES = 20_000
#: lines of a log that are asked for, and bytes that are taken of it: the kubelet of the node sends it
LOG_LINES, MOST_LOG = 20_000, 16 * MIB
#: seconds that the kubelet may be silent over it, and that the whole of it may take
LOG_SILENCE, LOG_SECONDS = 10.0, 30.0
#: bytes of an answer that no page divides: PackageManifests of all catalogs, which an admin adds, and what the API
#: server tells of itself
MOST_LIST = 768 * MIB
#: answers after which a list of so many objects at most ends, however few of them were chosen: 100,000 Events
MOST_PASSED = 200
#: seconds to connect, and to wait for an answer
TIMEOUT = (5.0, 30.0)
#: the server ends a watch after this; with bookmarks about once a minute, silence beyond the second figure means a dead
#: connection
WATCH_SECONDS, WATCH_SILENCE = 600, 90.0
#: kinds that a server of its own has, which knows no pages: it answers with all objects whatever the limit is
_WHOLE = ("PackageManifest",)
#: kinds of which a node or a tenant writes some, and whose parsers know an object of which its metadata alone was read:
#: that one is judged by its name, and the others as if it were small
_PARTIAL = ("Node", "NicDevice", "SriovNetworkNodeState", "NetworkAttachmentDefinition")
#: metadata alone: what Secrets hold never comes here. A server that does not know the form sends whole objects
#: [kubernetes.io, API concepts]
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
#: names of objects in a message
_NAMED = 5
_SHRINK = (
    "Have who made such objects remove or shrink them (kubectl get -A -o json says how large each is), and run again"
)


@dataclasses.dataclass(frozen=True)
class Listing:
    """:ivar version: resourceVersion from which a watch goes on"""

    items: tuple[Resource, ...]
    version: str


class Cluster:
    """One API server."""

    def __init__(self, dynamic: typing.Any, guard: typing.Optional[typing.Callable[[], None]] = None) -> None:
        """:param dynamic: a DynamicClient of the kubernetes client (kubernetes.core's get_api_client makes one)
        :param guard: asked before anything is written; it raises what forbids that
        """
        self._dynamic = dynamic
        self._guard = guard
        self._way: typing.Optional[Way] = None

    def guarded(self, guard: typing.Callable[[], None]) -> Cluster:
        """The same API server, for whom ``guard`` is asked before anything is written."""
        return Cluster(self._dynamic, guard)

    def _call(
        self,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> typing.Any:
        where = f"{method.upper()} {path}"
        if self._guard is not None and method != "get" and ("dryRun", "All") not in query:
            self._guard()
        options = {
            "serialize": False,
            "_request_timeout": TIMEOUT,
            "query_params": list(query),
            "header_params": {},
            **more,
        }
        try:
            return self._dynamic.request(method, path, body=body, **options)
        except ApiException as error:
            raise api_error(error, where) from error
        except (HTTPError, OSError) as error:
            raise ApiError(
                0, "Unreachable", f"no answer from the API server: {cause_of(str(error)) or error}", where
            ) from error

    def _json(
        self,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> Resource:
        return read_object(self._call(method, path, query, body, **more), f"{method.upper()} {path}")

    def version(self) -> str:
        """Return the version of the API server, such as v1.34.4.

        :raises ApiError: no answer
        """
        return str(self._json("get", "/version").get("gitVersion") or "of unknown version")

    def serves(self, group: str) -> bool:
        """Return whether the server knows an API group, such as security.openshift.io.

        :raises ApiError: any other refusal than that it does not
        """
        try:
            self._json("get", f"/apis/{group}")
        except ApiError as error:
            if not error.absent:
                raise
            return False
        return True

    def read(self, path: str) -> Resource:
        """Return the answer to a path of the API, such as the list of its resources.

        :raises ApiError: also when it is not there, or larger than a page of objects may be
        """
        where = f"GET {path}"
        return decode_object(read_page(self._call("get", path), where)[0], 200, where)

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        """:raises ApiError: also when it is not there"""
        return self._json("get", path_of(kind, namespace, name))

    def dated(self, kind: str, namespace: str, name: str) -> tuple[typing.Optional[Resource], str]:
        """An object, None when it is not there, and when the server says that this was: its header Date.

        :raises ApiError: any other refusal
        """
        path = path_of(kind, namespace, name)
        try:
            response = self._call("get", path)
            return read_object(response, f"GET {path}"), str(response.headers.get("Date") or "")
        except ApiError as error:
            if not error.absent:
                raise
            return None, str((getattr(error.__cause__, "headers", None) or {}).get("Date") or "")

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        *,
        most: int = 0,
        only: typing.Optional[Choice] = None,
    ) -> Listing:
        """All objects of a kind. An item gets the kind, which the API leaves out in lists.

        :param selector: label selector; ``fields``: field selector
        :param most: objects that are asked for; fewer come where they are larger than a page may be, or where ``only``
            takes none in MOST_PASSED answers. 0 for all
        :param only: takes an object by its metadata. The others are not held, and may be of any number and size

        An object that is larger than a page may be comes as its metadata and ``NOT_READ``, if its kind is in _PARTIAL.
        So do the largest objects of such a kind where all of them together are more than may be held.

        :raises ApiError: with ``absent`` when the server does not know the kind
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        path = path_of(kind, namespace)
        if kind in _WHOLE:
            body, _values = read_counted(self._call("get", path, chosen), f"GET {path}", "answer", MOST_LIST, MOST_HELD)
            data = decode_object(body, 200, f"GET {path}")
            return Listing(tuple(list_items(kind, data, path)), find_version(data))
        found: list[Resource] = []
        version, held, size = "", 0, 0
        pages = self._pages(kind, namespace, chosen, most=min(most, PAGE) or PAGE, only=only)
        for number, page in enumerate(pages, 1):
            version, held, size = version or page.version, held + page.values, size + page.size
            found += page.items
            if kind in _PARTIAL and (held > MOST_HELD or size > MOST_HELD_BYTES):
                found, held, size = cut_largest(found)
            if held > MOST_HELD or size > MOST_HELD_BYTES:
                first = f"those from {title_of(page.items[0])} on" if page.items else "the others"
                limit = f"{MOST_HELD} values" if held > MOST_HELD else f"{MOST_HELD_BYTES} bytes"
                raise ApiError(
                    200, TOO_LARGE, f"all objects have more than {limit}; {first} are not read", f"GET {path}", _SHRINK
                )
            if most and (len(found) >= most or held > answers.MOST_PAGE_VALUES or number >= MOST_PASSED):
                break
        return Listing(tuple(found[: most or None]), version)

    def pages(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        *,
        only: typing.Optional[Choice] = None,
        partial: bool = False,
    ) -> typing.Iterator[Resource]:
        """All objects of a kind, read in pages, so that not all of a large cluster is held at once.

        :param selector: label selector; ``fields``: field selector
        :param only: as of ``list``
        :param partial: the caller knows an object of which its metadata alone was read, as of a kind in _PARTIAL
        :raises ApiError: as ``list``. Of an object that is larger than a page may be, and is not partial:
            after all the others, with its name
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        for page in self._pages(kind, namespace, chosen, only=only, partial=partial):
            yield from page.items

    def metadata(self, kind: Kind, namespace: str, selector: str = "", fields: str = "") -> typing.Iterator[Resource]:
        """The metadata of all objects of a kind, as ``pages`` reads them. What Secrets hold never comes here.

        :raises ApiError: as ``pages``
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        for page in self._pages(kind, namespace, chosen, METADATA):
            yield from page.items

    def _pages(
        self,
        kind: Kind,
        namespace: str,
        chosen: typing.Sequence[tuple[str, str]],
        accept: str = "",
        most: int = PAGE,
        only: typing.Optional[Choice] = None,
        partial: bool = False,
    ) -> typing.Iterator[Page]:
        """Pages of as many objects as have room in one: who may make an object decides how large it is, and there are
        500 of them in the memory.

        :param accept: media types, as the header Accept has them; empty for whole objects
        :param most: objects of a page
        :param only: as of ``list``
        """
        path, rest, limit = path_of(kind, namespace), "", most
        headers = {"Accept": accept} if accept else {}
        large: list[str] = []
        for _page in range(MOST_PAGES):
            query = [("limit", str(limit)), *chosen, *([("continue", rest)] if rest else [])]
            try:
                response = self._call("get", path, query, header_params=dict(headers))
                body, values = read_page(response, f"GET {path}", limit)
                data = decode_object(body, 200, f"GET {path}")
            except ApiError as error:
                if not error.too_large:
                    raise
                if limit > 1:
                    limit = max(1, limit // FEWER)
                    continue
                passed, rest = self._passed(kind, path, query, error)
                chosen_too = only is None or only(passed.items[0])
                if chosen_too and (partial or kind in _PARTIAL):
                    yield passed
                elif chosen_too:
                    large.append(describe_place(passed.items[0]))
            else:
                page = Page(tuple(list_items(kind, data, path)), find_version(data), values, len(body))
                yield page if only is None else page.chosen(only)
                rest = find_metadata(data, "continue")
                if values * FEWER <= answers.MOST_PAGE_VALUES and len(body) * FEWER <= answers.MOST_PAGE:
                    limit = min(most, limit * 2)
            if not rest:
                break
        else:
            raise ApiError(
                200,
                "Unreadable",
                f"the list has no end after {MOST_PAGES} answers",
                f"GET {path}",
                "Look at what answers as the API server",
            )
        if large:
            seen = f"{describe_too_large()}: {folded(large, _NAMED)}"
            raise ApiError(200, TOO_LARGE, seen, f"GET {path}", _SHRINK)

    def _passed(
        self, kind: Kind, path: str, query: typing.Sequence[tuple[str, str]], error: ApiError
    ) -> tuple[Page, str]:
        """A page with the one object that is too large, of which it has the metadata, and what goes on behind it.

        :raises ApiError: the metadata is as large, or it is not of one object
        """
        body, values = read_page(self._call("get", path, query, header_params={"Accept": METADATA}), f"GET {path}")
        data = decode_object(body, 200, f"GET {path}")
        items = list(list_items(kind, data, path))
        if len(items) != 1:
            raise error
        name = kind if isinstance(kind, str) else kind[1]
        item = {"kind": name, "metadata": items[0].get("metadata"), NOT_READ: describe_too_large()}
        return Page((item,), find_version(data), values, len(body)), find_metadata(data, "continue")

    def watch(self, kind: str, version: str, namespace: str = "", selector: str = "") -> typing.Iterator[Resource]:
        """Events since ``version``, until the server ends the watch. The connection is there when this returns.

        :raises ApiError: also, from the iterator, for an ERROR event; its status is 410 when ``version`` is too old
        """
        path = path_of(kind, namespace)
        query = [
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(WATCH_SECONDS)),
        ]
        response = self._call(
            "get",
            path,
            query + ([("labelSelector", selector)] if selector else []),
            _request_timeout=(TIMEOUT[0], WATCH_SILENCE),
        )
        return self._events(response, path)

    @staticmethod
    def _events(response: typing.Any, path: str) -> typing.Iterator[Resource]:
        try:
            for line in read_lines(response, f"WATCH {path}"):
                event = decode_answer(line, "an event")
                if not isinstance(event, dict):
                    raise ValueError(f"an event is a {type(event).__name__}")
                if event.get("type") == "ERROR":
                    status = event.get("object", {})
                    raise ApiError(
                        int(status.get("code", 500)),
                        str(status.get("reason", "")),
                        str(status.get("message", "")),
                        f"WATCH {path}",
                    )
                yield event
        except (HTTPError, OSError, ValueError, ParseError) as error:
            raise ApiError(0, "Unreachable", f"the watch broke off: {error}", f"WATCH {path}") from error
        finally:
            with contextlib.suppress(HTTPError, OSError):
                response.close()

    def log(self, namespace: str, pod: str, seconds: int) -> str:
        """The last seconds of a pod's log.

        :raises ApiError: not there, not allowed, or longer than any log of so few lines; with status 0 where the API
            server itself does not answer, and with 504 where it does, and the kubelet behind it gives no log
        """
        query = [("sinceSeconds", str(seconds)), ("tailLines", str(LOG_LINES))]
        path = f"{path_of('Pod', namespace, pod)}/log"
        where = f"GET {path}"
        try:
            response = self._call("get", path, query, _request_timeout=(TIMEOUT[0], LOG_SILENCE))
            return read_counted(response, where, "log", MOST_LOG, 0, LOG_SECONDS)[0].decode(errors="replace")
        except ApiError as error:
            if error.status != 0:
                raise
            text = error.text
        # it raises where the API server is away
        self.version()
        raise ApiError(504, "NoLog", f"the kubelet of the pod's node gives no log: {text}", where)

    def apply(self, definition: Resource, manager: str, dry_run: bool) -> tuple[Resource, tuple[str, ...]]:
        """Server-side apply; the object as it then is, and the server's warnings.

        :raises ApiError: refused by the server or a webhook; reason Conflict when another manager owns a field
        """
        metadata = definition["metadata"]
        path = path_of(kind_of(definition), metadata.get("namespace", ""), metadata["name"])
        query = [("fieldManager", manager), ("force", "false")] + ([("dryRun", "All")] if dry_run else [])
        response = self._call("patch", path, query, definition, content_type="application/apply-patch+yaml")
        return read_object(response, f"PATCH {path}"), list_warnings(response)

    def patch(self, kind: str, namespace: str, name: str, change: Resource) -> Resource:
        """Merge ``change`` into an object (JSON merge patch, RFC 7386): null takes a key away.

        :raises ApiError: refused, or not there
        """
        return self._json(
            "patch", path_of(kind, namespace, name), body=change, content_type="application/merge-patch+json"
        )

    def remove_field(self, kind: str, namespace: str, name: str, uid: str, field: str) -> Resource:
        """Remove a field of an object, whatever else of it has changed meanwhile (JSON patch, RFC 6902).

        :param uid: of the object; another one of this name keeps its field
        :param field: JSON pointer to it
        :raises ApiError: refused, not there, or another object by now
        """
        change = [{"op": "test", "path": "/metadata/uid", "value": uid}, {"op": "remove", "path": field}]
        return self._json(
            "patch", path_of(kind, namespace, name), body=change, content_type="application/json-patch+json"
        )

    def create(self, definition: Resource, manager: str = "") -> Resource:
        """Make an object that is not there.

        :param manager: of its fields; empty for the one that the API server takes from the client's name
        :raises ApiError: refused; reason AlreadyExists
        """
        path, query = (
            path_of(kind_of(definition), definition["metadata"].get("namespace", "")),
            [("fieldManager", manager)] if manager else [],
        )
        return self._json("post", path, query, body=definition)

    def replace(self, definition: Resource) -> Resource:
        """Write a whole object anew.

        :raises ApiError: refused; reason Conflict when its resourceVersion is not that of the object any more
        """
        metadata = definition["metadata"]
        return self._json(
            "put", path_of(kind_of(definition), metadata.get("namespace", ""), metadata["name"]), body=definition
        )

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        only: typing.Optional[typing.Mapping[str, str]] = None,
    ) -> bool:
        """Ask for deletion; False when it was not there.

        :param only: its ``uid`` or ``resourceVersion``: another object of this name is not deleted, and counts as not
            there
        :raises ApiError: refused
        """
        query = [("propagationPolicy", "Background")] + ([("dryRun", "All")] if dry_run else [])
        if grace_seconds is not None:
            query.append(("gracePeriodSeconds", str(grace_seconds)))
        body: typing.Optional[Resource] = None
        if only:
            # the API server reads no option from the URL of a request that has a body
            body = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": dict(only),
                "propagationPolicy": "Background",
            }
            body.update(
                {"dryRun": ["All"]} if dry_run else {},
                **({} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}),
            )
        try:
            self._json("delete", path_of(kind, namespace, name), query, body)
        except ApiError as error:
            if error.absent or (only and error.reason == "Conflict"):
                return False
            raise
        return True

    def evict(self, namespace: str, pod: str, uid: str) -> bool:
        """Ask for the end of a pod, as a drain does: PodDisruptionBudgets are asked. False when it was not there.

        :param uid: of the pod that is meant. Another pod of this name, such as that of a StatefulSet on another node,
            stays, and counts as not there
        :raises ApiError: refused; with ``held`` while a PodDisruptionBudget holds it
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": options,
        }
        try:
            self._json("post", f"{path_of('Pod', namespace, pod)}/eviction", body=body)
        except ApiError as error:
            if error.absent or error.reason == "Conflict":
                return False
            raise
        return True

    def exec(
        self, container: Container, command: typing.Sequence[str], stderr: bool = True, seconds: float = TIMEOUT[1]
    ) -> Channels:
        """Start a command in a container, with its stdin and its streams.

        :param stderr: whether it has a channel of its own; if not, nobody sees it
        :param seconds: limit of each step of the connection
        :raises ApiError: the container is not there or does not run, or this is not allowed
        """
        if self._way is None:
            self._way = Way(self._dynamic.configuration, self._dynamic.client.default_headers.items())
        streams = [("stdin", "true"), ("stdout", "true"), ("stderr", "true" if stderr else "false"), ("tty", "false")]
        names = [("container", container.name)] if container.name else []
        query = [*(("command", word) for word in command), *names, *streams]
        try:
            return self._way.open(f"{path_of('Pod', container.namespace, container.pod)}/exec", query, seconds)
        except Refused as refused:
            raise api_error(refused, f"exec in {container}") from refused

    def shell(self, namespace: str, pod: str, container: str, command: typing.Sequence[str], clock: Clock) -> Shell:
        """Start a shell in a container (see _parse/pods/shell.py for what it prints).

        :raises ApiError: the container is not there or does not run
        """
        target = Container(namespace, pod, container)
        return Shell(again(lambda: self.exec(target, command, stderr=False)), clock)
