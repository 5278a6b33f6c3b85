# SPDX-License-Identifier: GPL-3.0-or-later

"""Read objects and logs from the API server: get, list, watch. The layer _parse parses the objects."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import join_first
from ..._parse.kubernetes.no_answer import cause_of
from ..._parse.kubernetes.resource import NOT_READ, title_of
from ..._parse.limits import MIB
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
    read_counted,
    read_events,
    read_object,
    read_page,
)
from .errors import TOO_LARGE, ApiError, ApiException, HTTPError, api_error
from .kinds import Kind, Resource, path_of

#: objects of one answer, where a kind may have many; divided by FEWER where the answer is larger than a page may be
PAGE, FEWER = 500, 4
#: values, and bytes, of a list that is kept as a whole: 5,000 nodes have 6,000,000 and 150 MB
MOST_HELD, MOST_HELD_BYTES = 8_000_000, 256 * MIB
#: answers of one list. 5,000 nodes have 1,100 of their pods; etcd has room for 16,000 objects that fill an answer alone
MOST_PAGES = 20_000
#: lines of a log that are requested, and bytes of it that are read: the kubelet of the node sends it
LOG_LINES, MOST_LOG = 20_000, 16 * MIB
#: seconds that the kubelet may be silent during a log, and that the whole log may take
LOG_SILENCE, LOG_SECONDS = 10.0, 30.0
#: bytes of an answer without pages: PackageManifests of all catalogs, which an admin adds
MOST_LIST = 768 * MIB
#: answers after which a list with a limit ends, even if few objects were chosen: 100,000 Events
MOST_PASSED = 200
#: seconds to connect, and to wait for an answer
TIMEOUT = (5.0, 30.0)
#: seconds after which the server ends a watch, and seconds of silence after which the connection is dead: bookmarks
#: come about once a minute
WATCH_SECONDS, WATCH_SILENCE = 600, 90.0
#: kinds of an aggregated API server without pages: it answers with all objects whatever the limit is
_WHOLE = ("PackageManifest",)
#: kinds that a node or a tenant can write, and whose parsers accept an object with its metadata alone: such an object
#: is judged by its name, and does not affect the others
_PARTIAL = ("Node", "NicDevice", "SriovNetworkNodeState", "NetworkAttachmentDefinition")
#: metadata alone, so that the content of Secrets is never read. A server that does not know the form sends whole
#: objects [kubernetes.io, API concepts]
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
#: names of objects in a message
_NAMED = 5
_SHRINK = (
    "Ask the owner of these objects to remove or shrink them (kubectl get -A -o json shows their sizes), then rerun"
)


@dataclasses.dataclass(frozen=True)
class Listing:
    """The objects of a list request.

    :ivar items: the objects
    :ivar version: resourceVersion from which a watch continues
    """

    items: tuple[Resource, ...]
    version: str


class ClusterReader:
    """A client that reads objects, logs and watches from one API server."""

    def __init__(self, dynamic: typing.Any, guard: typing.Optional[typing.Callable[[], None]] = None) -> None:
        """Create a client that only reads.

        :param dynamic: a DynamicClient of the kubernetes client, as get_api_client of kubernetes.core returns it
        :param guard: function that is called before each write of a subclass, and raises an error if writes are
            forbidden; None: all writes are permitted
        """
        self._dynamic = dynamic
        self._guard = guard

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
                0, "Unreachable", f"the API server did not respond: {cause_of(str(error)) or error}", where
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
        """Return the version of the API server, such as v1.34.4, or ``of unknown version`` if the answer does not
        contain it.

        :raises ApiError: the server refuses or does not answer
        """
        return str(self._json("get", "/version").get("gitVersion") or "of unknown version")

    def serves(self, group: str) -> bool:
        """Return whether the server serves an API group, such as security.openshift.io. Without the group, the result
        is False.

        :raises ApiError: the server refuses for another reason, or does not answer
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

        :raises ApiError: the server refuses, the path does not exist, or the answer does not fit into one page
        """
        where = f"GET {path}"
        return decode_object(read_page(self._call("get", path), where)[0], 200, where)

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        """Return one object as the API server sends it.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :raises ApiError: the server refuses, or the object does not exist
        """
        return self._json("get", path_of(kind, namespace, name))

    def dated(self, kind: str, namespace: str, name: str) -> tuple[typing.Optional[Resource], str]:
        """Return an object, and the text of the header ``Date`` of the answer. The object is None if it does not exist,
        and the text is empty if the header is missing.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :raises ApiError: the server refuses for any other reason
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
        """Return all objects of a kind. Each object gets the key ``kind``, which the API leaves out in lists.

        An object of some kinds that a node or a tenant can write (``_PARTIAL``) may be too large for one page
        (``MOST_PAGE`` bytes). It is returned with only its metadata and the key ``NOT_READ``. So are the largest
        objects of such a kind if all of them together would be too large.

        :param namespace: namespace of the objects; empty for all namespaces
        :param selector: label selector in the notation of kubectl; empty for all objects
        :param fields: field selector in the notation of kubectl; empty for all objects
        :param most: maximum number of objects; 0 for no limit. Fewer are returned if one page has fewer, or if ``only``
            rejects many
        :param only: function that gets an object and returns whether to keep it, by its metadata; None keeps all
        :raises ApiError: the server refuses or does not know the kind (``absent`` is true), or the list is too large
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        path = path_of(kind, namespace)
        if kind in _WHOLE:
            body, _values = read_counted(self._call("get", path, chosen), f"GET {path}", "answer", MOST_LIST, MOST_HELD)
            data = decode_object(body, 200, f"GET {path}")
            return Listing(tuple(list_items(kind, data, path)), find_version(data))
        found: list[Resource] = []
        version, held, size = "", 0, 0
        pages = self._read_pages(kind, namespace, chosen, most=min(most, PAGE) or PAGE, only=only)
        for number, page in enumerate(pages, 1):
            version, held, size = version or page.version, held + page.values, size + page.size
            found += page.items
            if kind in _PARTIAL and (held > MOST_HELD or size > MOST_HELD_BYTES):
                found, held, size = cut_largest(found)
            if held > MOST_HELD or size > MOST_HELD_BYTES:
                first = f"the objects from {title_of(page.items[0])} on" if page.items else "the remaining objects"
                limit = f"{MOST_HELD} values" if held > MOST_HELD else f"{MOST_HELD_BYTES} bytes"
                raise ApiError(
                    200, TOO_LARGE, f"all objects have more than {limit}; {first} were not read", f"GET {path}", _SHRINK
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
        """Yield all objects of a kind, page by page, so that only one page is in memory.

        :param namespace: namespace of the objects; empty for all namespaces
        :param selector: label selector in the notation of kubectl; empty for all objects
        :param fields: field selector in the notation of kubectl; empty for all objects
        :param only: function that gets an object and returns whether to keep it, by its metadata; None keeps all
        :param partial: whether an object of any kind that does not fit into one page is yielded with only its metadata
        :raises ApiError: the server refuses, or does not know the kind. If an object does not fit into one page and
            must not be partial, an error with its name is raised after all other objects
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        for page in self._read_pages(kind, namespace, chosen, only=only, partial=partial):
            yield from page.items

    def metadata(self, kind: Kind, namespace: str, selector: str = "", fields: str = "") -> typing.Iterator[Resource]:
        """Yield the metadata of all objects of a kind, page by page. The content of Secrets is never read.

        :param namespace: namespace of the objects; empty for all namespaces
        :param selector: label selector in the notation of kubectl; empty for all objects
        :param fields: field selector in the notation of kubectl; empty for all objects
        :raises ApiError: the server refuses, does not know the kind, or an object's metadata does not fit into one page
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        for page in self._read_pages(kind, namespace, chosen, METADATA):
            yield from page.items

    def _read_pages(
        self,
        kind: Kind,
        namespace: str,
        chosen: typing.Sequence[tuple[str, str]],
        accept: str = "",
        most: int = PAGE,
        only: typing.Optional[Choice] = None,
        partial: bool = False,
    ) -> typing.Iterator[Page]:
        """Yield pages with as many objects as fit into ``MOST_PAGE`` bytes. A larger page is requested again with fewer
        objects.

        :param namespace: namespace of the objects; empty for all namespaces
        :param chosen: query parameters of the selectors, as name and value
        :param accept: media types of the header Accept; empty for whole objects
        :param most: maximum number of objects of a page
        :param only: function that gets an object and returns whether to keep it, by its metadata; None keeps all
        :param partial: whether an object of any kind that does not fit into one page is yielded with only its metadata
        :raises ApiError: the server refuses, does not know the kind, or the list does not end. If an object does not
            fit into one page and must not be partial, an error with its name is raised after all other pages
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
                passed, rest = self._read_large(kind, path, query, error)
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
                f"the list does not end after {MOST_PAGES} responses",
                f"GET {path}",
                "Check which server responds at the address of the API server in the kubeconfig",
            )
        if large:
            seen = f"{describe_too_large()}: {join_first(large, _NAMED)}"
            raise ApiError(200, TOO_LARGE, seen, f"GET {path}", _SHRINK)

    def _read_large(
        self, kind: Kind, path: str, query: typing.Sequence[tuple[str, str]], error: ApiError
    ) -> tuple[Page, str]:
        """Return a page with only the metadata of an object that is too large to read, and the token of the next page.

        :param path: path of the list in the API
        :param query: parameters of a request for a page of one object
        :param error: error of the request for the whole object
        :raises ApiError: the metadata is too large as well, or the page does not contain exactly one object
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
        """Open a watch. Return an iterator over the events of a kind since a resourceVersion, which ends when the
        server ends the watch. The connection is open when this function returns.

        :param version: resourceVersion from which the watch begins
        :param namespace: namespace of the objects; empty for all namespaces
        :param selector: label selector in the notation of kubectl; empty for all objects
        :raises ApiError: the server refuses. The iterator raises it for an ERROR event too; its status is 410 if
            ``version`` is too old
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
        return read_events(response, path)

    def log(self, namespace: str, pod: str, seconds: int) -> str:
        """Return the lines that a pod has logged in the last ``seconds``. If there are more than ``LOG_LINES``, return
        the newest ones.

        :param pod: name of the pod
        :raises ApiError: the pod does not exist, or the log is forbidden or exceeds its limit. The status is 0 if the
            API server does not answer, and 504 if the kubelet of the node does not return the log
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
        # this raises an error where the API server does not answer
        self.version()
        raise ApiError(504, "NoLog", f"the kubelet of the pod's node does not return the log: {text}", where)
