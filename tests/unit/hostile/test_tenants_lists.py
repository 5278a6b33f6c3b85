# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of objects that tenants make: as large as etcd takes them, and as many as they like."""

from __future__ import annotations

import json
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import answers, cluster_reader
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import PAGE
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.foreign import (
    Kept,
    objects_of_others,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB, count_values_outside_strings
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import drain
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.drain import Drain, NodeFailed
from ansible_collections.linerate.rdma.tests.unit.hostile.streamed_answer import StreamedAnswer

#: variables of a Deployment
LARGE, SMALL = 2_000, 2


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fiftieth of the values, so that the tests take a fiftieth of the time."""
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 20_000)


class Server:
    """An API server with Deployments, which it tells in pages.

    :ivar limits: what it was asked for, in order
    :ivar metadata: how often metadata alone was asked for
    """

    def __init__(self, entries: typing.Sequence[int], pages: bool = True) -> None:
        """:param entries: variables of each Deployment"""
        self.entries, self.pages = entries, pages
        self.limits: list[int] = []
        self.metadata = 0

    @staticmethod
    def _text(place: int, entries: int, whole: bool) -> bytes:
        env = b",".join([b'{"name":"A"}'] * entries)
        spec = b',"spec":{"template":{"spec":{"containers":[{"name":"c","env":[' + env + b"]}]}}}" if whole else b""
        return b'{"metadata":{"name":"d%d","namespace":"tenant"}' % place + spec + b"}"

    def request(self, _method: str, _path: str, body: typing.Any, **options: typing.Any) -> StreamedAnswer:
        query = dict(options["query_params"])
        whole = "Accept" not in options["header_params"]
        self.metadata += not whole
        begin, limit = int(query.get("continue", 0)), int(query["limit"]) if self.pages else len(self.entries)
        self.limits.append(int(query["limit"]))
        end = min(begin + limit, len(self.entries))
        told = b",".join(self._text(place, self.entries[place], whole) for place in range(begin, end))
        rest = json.dumps(str(end) if end < len(self.entries) else "").encode()
        return StreamedAnswer(b'{"metadata":{"resourceVersion":"7","continue":' + rest + b'},"items":[' + told + b"]}")


def test_many_deployments_as_large_as_etcd_takes_them_are_never_held_together() -> None:
    server = Server([LARGE] * 100)
    tracemalloc.start()
    try:
        names = [item["metadata"]["name"] for item in Cluster(server).pages("Deployment")]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert names == [f"d{number}" for number in range(100)]
    # all of them at once are 40 MiB
    assert peak < 12 * MIB
    assert server.limits[:6] == [500, 125, 31, 7, 1, 2]
    assert max(server.limits[6:]) <= 4 and len(server.limits) < 65


def test_a_few_objects_are_as_many_as_have_room_in_a_page() -> None:
    """Events of a pod, which any kubelet writes."""
    server = Server([LARGE] * 60)
    tracemalloc.start()
    try:
        found = Cluster(server).list("Event", most=50).items
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 50 of them are 23 MiB
    assert peak < 12 * MIB
    assert (server.limits[:4], len(server.limits)) == ([50, 12, 3, 3], 4)
    assert [item["metadata"]["name"] for item in found] == [f"d{number}" for number in range(6)]


def test_a_few_small_objects_are_one_request() -> None:
    server = Server([SMALL] * 300)
    assert len(Cluster(server).list("Event", most=200).items) == 200
    assert server.limits == [200]


@pytest.mark.parametrize("items", [b"", b'{"metadata":{"name":"a"}}'])
def test_a_list_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch, items: bytes) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_PAGES", 50)
    server, seen = Whole(b'{"metadata":{"continue":"more"},"items":[%s]}' % items), 0
    with pytest.raises(ApiError, match="the list does not end after 50 responses") as caught:
        for _item in Cluster(server).pages("Pod"):
            seen += 1
    assert seen == (50 if items else 0) and caught.value.status == 200 and "API server" in caught.value.remedy


class Namespace(Server):
    """A namespace with ConfigMaps, whose metadata is as large as etcd takes it."""

    @staticmethod
    def _text(place: int, entries: int, whole: bool) -> bytes:
        assert not whole, "what Secrets hold is not asked for"
        references = b",".join(b'{"uid":"%d"}' % number for number in range(entries))
        finalizers = b",".join([b'"a/b"'] * entries)
        return b'{"metadata":{"name":"d%d","uid":"u%d","ownerReferences":[%s],"finalizers":[%s]}}' % (
            place,
            place,
            references,
            finalizers,
        )

    def request(self, _method: str, _path: str, body: typing.Any, **options: typing.Any) -> StreamedAnswer:
        if _path == "/apis":
            return StreamedAnswer(b'{"groups":[]}')
        if _path == "/api/v1":
            return StreamedAnswer(
                b'{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}'
            )
        assert _path == "/api/v1/namespaces/tenant/configmaps"
        return super().request(_method, _path, body, **options)


def test_a_namespace_whose_metadata_is_large_is_looked_through_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 10_000)
    server = Namespace([LARGE // 2] * 30)
    tracemalloc.start()
    try:
        kept = objects_of_others(Cluster(server), "tenant", 0, lambda: 0.0, lambda _seconds: None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # each has an owner that is not there
    assert kept == Kept(tuple(sorted(f"ConfigMap d{number}" for number in range(30))))
    # all of them at once are 10 MiB
    assert peak < 5 * MIB
    assert server.limits[:5] == [500, 125, 31, 7, 1]


def test_an_object_whose_metadata_alone_is_too_large_keeps_its_namespace() -> None:
    kept = objects_of_others(
        Cluster(Namespace([SMALL, 20_000, SMALL])), "tenant", 0, lambda: 0.0, lambda _seconds: None
    )
    assert kept is not None and kept.unread == ("configmaps (the page has more than 20000 values)",)


def test_what_no_page_divides_has_a_limit_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 10_000)
    with pytest.raises(ApiError, match="the answer has more than 10000 values"):
        Cluster(Whole(b'{"items":[' + b'{"metadata":{"name":"a"}},' * 5000 + b"{}]}")).list("PackageManifest")
    with pytest.raises(ApiError, match="the page has more than 20000 values"):
        Cluster(Whole(b'{"groups":[' + b"{}," * 20_000 + b"{}]}")).read("/apis")


class Whole:
    """A server that answers one thing."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def request(self, *_arguments: typing.Any, **_options: typing.Any) -> StreamedAnswer:
        return StreamedAnswer(self.body)


def test_a_fleet_is_asked_for_as_seldom_as_before() -> None:
    server = Server([SMALL] * 1200)
    assert len(list(Cluster(server).pages("Deployment"))) == 1200
    assert server.limits == [PAGE] * 3
    listing = Cluster(Server([SMALL] * 1200)).list("Deployment")
    assert (len(listing.items), listing.version, listing.items[0]["kind"]) == (1200, "7", "Deployment")


def test_one_large_object_among_small_ones_costs_a_few_requests() -> None:
    entries = [SMALL] * 1000
    entries[700] = 20_000
    server = Server(entries)
    there: list[str] = []
    pages = Cluster(server).pages("Deployment")
    with pytest.raises(ApiError, match="not read: Deployment d700 in namespace tenant") as caught:
        there.extend(item["metadata"]["name"] for item in pages)
    assert there == [f"d{number}" for number in range(1000) if number != 700]
    assert caught.value.status and not caught.value.absent and "shrink" in caught.value.remedy
    assert server.metadata == 1 and len(server.limits) < 60


def test_a_server_without_pages_is_left_after_a_few_requests() -> None:
    server = Server([LARGE] * 16, pages=False)
    with pytest.raises(ApiError, match="more than 40000 values"):
        list(Cluster(server).pages("Deployment"))
    assert len(server.limits) == 6


def test_a_list_that_is_held_as_a_whole_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 10_000)
    with pytest.raises(ApiError, match="more than 10000 values; the objects from Deployment d"):
        Cluster(Server([SMALL] * 5000)).list("Deployment")


def test_objects_that_do_not_count_are_neither_held_nor_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant makes as many and as large objects as the server takes, around the two that count."""
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 20_000)
    entries = [LARGE, SMALL, *[LARGE] * 40, SMALL, 30_000]
    counting = ("d1", "d42")
    with pytest.raises(ApiError, match="all objects have more than 20000 values"):
        Cluster(Server(entries)).list("Deployment")
    found = Cluster(Server(entries)).list("Deployment", only=lambda item: item["metadata"]["name"] in counting)
    assert ([item["metadata"]["name"] for item in found.items], found.version) == (list(counting), "7")
    # one that counts is missed
    with pytest.raises(ApiError, match="not read: Deployment d43 in namespace tenant"):
        Cluster(Server(entries)).list("Deployment", only=lambda item: item["metadata"]["name"] in (*counting, "d43"))


def test_a_list_is_held_up_to_so_many_bytes_also_where_they_are_few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_HELD_BYTES", 100_000)
    body = b'{"metadata":{"resourceVersion":"7"},"items":[%s]}' % b",".join(
        b'{"metadata":{"name":"d%d"},"text":"%s"}' % (n, b"x" * 30_000) for n in range(4)
    )
    with pytest.raises(
        ApiError, match=("all objects have more than 100000 bytes; the objects from Deployment d0 on were not read")
    ):
        Cluster(Whole(body)).list("Deployment")
    assert len(Cluster(Whole(body)).list("Deployment", only=lambda item: item["metadata"]["name"] != "d2").items) == 3


class Node(Server):
    """The pods of one node. Those of ``mirrors`` its kubelet has made.

    :ivar evicted: pods that were asked to go, and have ended
    """

    def __init__(self, entries: typing.Sequence[int], mirrors: typing.Container[int] = ()) -> None:
        super().__init__(entries)
        self.mirrors = mirrors
        self.evicted: list[int] = []

    def _text(self, place: int, entries: int, whole: bool) -> bytes:  # type: ignore[override]
        mark = {"kubernetes.io/config.mirror": "x"} if place in self.mirrors else {}
        owners = [
            {"kind": "ReplicaSet", "name": "r", "uid": f"{place:08}-0000-0000-0000-000000000000", "controller": True}
        ]
        labels = {f"l{number}": "x" for number in range(entries)} if whole else {}
        metadata = {
            "name": f"p{place}",
            "namespace": "tenant",
            "uid": f"{place:08}-0000-0000-0000-000000000001",
            "annotations": mark,
            "labels": labels,
        }
        spec = (
            {
                "spec": {"nodeName": "worker-1", "containers": []},
                "status": {"phase": "Succeeded" if place in self.evicted else "Running"},
            }
            if whole
            else {}
        )
        return json.dumps({"metadata": {**metadata, "ownerReferences": owners}, **spec}).encode()

    def request(self, _method: str, _path: str, body: typing.Any, **options: typing.Any) -> StreamedAnswer:
        if _method == "post":
            self.evicted.append(int(body["metadata"]["name"][1:]))
            return StreamedAnswer(b"{}")
        assert _path == "/api/v1/pods" and ("fieldSelector", "spec.nodeName=worker-1") in options["query_params"]
        # a server may tell fewer than it is asked for
        query = [
            (name, str(min(20, int(value))) if name == "limit" else value) for name, value in options["query_params"]
        ]
        return super().request(_method, _path, None, **{**options, "query_params": query})


def drain_of(node: Node) -> Drain:
    clock = iter(range(10_000))
    return Drain(Cluster(node), lambda: float(next(clock)), lambda: None, lambda _line: None, 600, DrainOptions())


def test_the_pods_of_a_node_are_never_held_together() -> None:
    node = Node([LARGE] * 300)
    tracemalloc.start()
    try:
        left = drain_of(node).left("worker-1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [pod.name for pod in left] == [f"p{number}" for number in range(300)]
    # all of them at once, or their labels alone, are more than 20 MiB
    assert peak < 12 * MIB


def test_a_pod_that_is_too_large_to_be_read_stops_the_drain_by_its_name() -> None:
    node, did = Node([SMALL, 50_000, SMALL]), typing.cast(list[str], [])
    with pytest.raises(ApiError, match="not read: Pod p1 in namespace tenant") as caught:
        drain_of(node).work("worker-1", did)
    assert caught.value.remedy and (node.evicted, did) == ([], [])


def test_mirror_pods_of_any_size_and_number_stop_no_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "MOST_PODS", 3)
    node, did = Node([SMALL, *[30_000] * 2, *[SMALL] * 20], range(1, 23)), typing.cast(list[str], [])
    drain_of(node).work("worker-1", did)
    assert (node.evicted, did) == ([0], ["1 pods evicted"])


def test_more_pods_than_a_node_has_stop_its_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "MOST_PODS", 3)
    node = Node([SMALL] * 4)
    with pytest.raises(NodeFailed, match="more than 3 pods that a drain evicts") as caught:
        drain_of(node).work("worker-1", [])
    assert "spec.nodeName=worker-1" in caught.value.remedy and node.evicted == []
    drain_of(Node([SMALL] * 3)).left("worker-1")


class Strings(Server):
    """Nodes with a condition, of which a kubelet wrote as many commas into the message as etcd takes."""

    COMMAS = b"," * (11 * MIB // 10)

    @staticmethod
    def _text(place: int, entries: int, whole: bool) -> bytes:
        words = Strings.COMMAS if entries == LARGE else b'the kubelet is ready, \\"and\\" waits'
        status = b',"status":{"conditions":[{"type":"Ready","message":"%s"}]}' % words if whole else b""
        return b'{"metadata":{"name":"n%d"}%s}' % (place, status)


def test_commas_in_a_string_of_one_node_take_no_other_node_out_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 1_000_000)
    server = Strings([SMALL, LARGE, *[SMALL] * 8])
    assert [item["metadata"]["name"] for item in Cluster(server).list("Node").items] == [f"n{n}" for n in range(10)]
    # many of them are still not held together
    held = Cluster(Strings([LARGE] * 9)).list("Node").items
    assert len(held) == 9 and all(len(item["status"]["conditions"][0]["message"]) > MIB for item in held)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b'{"a": [1, 2, {"b": "x,[{,"}]}', 5),
        (rb'{"a": "\\", "b": ",\",,", "c": "\\\",["}', 3),
        (b'["' + b"," * 1000 + b'"]', 1),
        (b'""' * 1000, 0),
        (b'"' * 1001 + b",", 1),
        (b"", 0),
    ],
)
def test_values_are_counted_outside_of_strings(text: bytes, values: int) -> None:
    assert count_values_outside_strings(text) == values


def test_the_largest_object_that_etcd_takes_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty message has two bytes in etcd, and two signs of values in an answer: 750,000 have 1.5 MiB."""
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 1_000_000)
    terms: list[dict[str, str]] = [{}] * (1_572_864 // 2)
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = {"metadata": {"name": "huge", "namespace": "tenant"}, "spec": {"affinity": affinity}}
    body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": [pod]}, separators=(",", ":")).encode()
    _body, values = answers.read_page(StreamedAnswer(body), "GET pods", 1)
    assert values > answers.MOST_PAGE_VALUES
    with pytest.raises(ApiError, match="more than 1000000 values"):
        answers.read_page(StreamedAnswer(body), "GET pods", 500)
