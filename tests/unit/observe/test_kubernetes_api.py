# SPDX-License-Identifier: GPL-3.0-or-later

"""The thin edge: what a client library answers or raises, as results and errors of ours."""

from __future__ import annotations

import json
import typing

import pytest
import urllib3
import urllib3.exceptions
from kubernetes.client.exceptions import ApiException

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import PAGE
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import Channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import kind_of, path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell


class Response:
    status = 200

    def __init__(
        self,
        data: bytes = b"{}",
        chunks: typing.Union[
            list[typing.Union[urllib3.exceptions.ProtocolError, ConnectionResetError, bytes]], tuple[()]
        ] = (),
        headers: typing.Union[list[tuple[str, str]], tuple[()]] = (),
    ) -> None:
        self.chunks = chunks or [data]
        self.headers = urllib3.HTTPHeaderDict(headers)
        self.closed = False

    def stream(self, amt: None = None, decode_content: bool = True) -> typing.Iterator[bytes]:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def close(self) -> None:
        self.closed = True


class Dynamic:
    def __init__(self, answer: typing.Any) -> None:
        self.answer = answer
        self.calls: list[typing.Any] = []
        self.bodies: list[typing.Any] = []

    def request(
        self, method: str, path: str, body: typing.Optional[dict[str, typing.Any]] = None, **options: typing.Any
    ) -> typing.Optional[Response]:
        self.calls.append((method, path, dict(options["query_params"])))
        self.bodies.append(body)
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: typing.Optional[Response] = self.answer
        return answer


def status_error(code: int, reason: str, message: str) -> ApiException:
    error = ApiException(status=code, reason="x")
    error.body = json.dumps({"kind": "Status", "reason": reason, "message": message, "code": code})
    return error


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("Node",), "/api/v1/nodes"),
        (("Node", "ignored", "a"), "/api/v1/nodes/a"),
        (("Pod", "test", "p"), "/api/v1/namespaces/test/pods/p"),
        (("SriovNetworkNodeState", "ops"), "/apis/sriovnetwork.openshift.io/v1/namespaces/ops/sriovnetworknodestates"),
        (("NetworkAttachmentDefinition",), "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"),
    ],
)
def test_paths(arguments: tuple[str, ...], path: str) -> None:
    assert path_of(*arguments) == path


def test_list_gives_items_their_kind() -> None:
    listing = Cluster(
        Dynamic(Response(b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}'))
    ).list("Node")
    assert (listing.version, listing.items) == ("7", ({"kind": "Node", "metadata": {"name": "a"}},))


def test_pages_are_read_to_the_last() -> None:
    class Pages(Dynamic):
        def request(
            self, method: str, path: str, body: typing.Optional[dict[str, typing.Any]] = None, **options: typing.Any
        ) -> Response:
            super().request(method, path, body, **options)
            if "continue" in self.calls[-1][2]:
                return Response(b'{"items":[{"metadata":{"name":"b"}}]}')
            return Response(b'{"metadata":{"continue":"more"},"items":[{"metadata":{"name":"a"}}]}')

    dynamic = Pages(None)
    assert [item["metadata"]["name"] for item in Cluster(dynamic).pages("Pod")] == ["a", "b"]
    assert [query for _method, _path, query in dynamic.calls] == [
        {"limit": str(PAGE)},
        {"limit": str(PAGE), "continue": "more"},
    ]


@pytest.mark.parametrize(
    ("definition", "path"),
    [
        (
            {"kind": "IPPool", "apiVersion": "nv-ipam.nvidia.com/v1alpha1"},
            "/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/x/ippools",
        ),
        (
            {"kind": "IPPool", "apiVersion": "whereabouts.cni.cncf.io/v1alpha1"},
            "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/x/ippools",
        ),
        ({"kind": "Pod", "apiVersion": "v1"}, "/api/v1/namespaces/x/pods"),
        ({"kind": "CIDRPool.nv-ipam.nvidia.com"}, "/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/x/cidrpools"),
    ],
)
def test_two_kinds_of_one_name_are_told_apart(definition: dict[str, str], path: str) -> None:
    assert path_of(kind_of(definition), "x") == path


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b"{}"])
def test_an_answer_that_is_no_list_is_an_error(data: bytes) -> None:
    with pytest.raises(ApiError):
        Cluster(Dynamic(Response(data))).list("Node")


def test_the_server_s_own_words_are_kept() -> None:
    with pytest.raises(ApiError, match="no supported NIC") as caught:
        Cluster(Dynamic(status_error(403, "Forbidden", "no supported NIC is selected"))).apply(
            {"kind": "Pod", "metadata": {"name": "x"}}, "m", True
        )
    assert (caught.value.status, caught.value.reason, caught.value.absent) == (403, "Forbidden", False)


@pytest.mark.parametrize(
    "error",
    [
        urllib3.exceptions.MaxRetryError(typing.cast(typing.Any, None), "/", typing.cast(typing.Any, "refused")),
        ConnectionResetError("reset"),
        ApiException(status=0, reason="SSLError"),
    ],
)
def test_no_answer_is_status_0(
    error: typing.Union[urllib3.exceptions.MaxRetryError, ApiException, ConnectionResetError],
) -> None:
    with pytest.raises(ApiError) as caught:
        Cluster(Dynamic(error)).get("Node", "", "a")
    assert caught.value.status == 0


def test_apply_is_server_side_and_never_forced() -> None:
    dynamic = Dynamic(Response(b'{"metadata":{}}', headers=[("Warning", '299 - "is created or updated but not used"')]))
    _result, warnings = Cluster(dynamic).apply(
        {"kind": "SriovNetwork", "metadata": {"name": "x", "namespace": "ops"}}, "linerate.rdma", True
    )
    assert warnings == ("is created or updated but not used",)
    assert dynamic.calls[0][2] == {"fieldManager": "linerate.rdma", "force": "false", "dryRun": "All"}


def test_patch_merges_what_is_given_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamic, sent = Dynamic(Response(b'{"kind":"MachineConfigPool"}')), {}
    request = dynamic.request
    monkeypatch.setattr(
        dynamic, "request", lambda method, path, **options: sent.update(options) or request(method, path, **options)
    )
    change = {"metadata": {"annotations": {"linerate.rdma/paused": None}}, "spec": {"paused": False}}
    assert Cluster(dynamic).patch("MachineConfigPool", "", "worker", change) == {"kind": "MachineConfigPool"}
    assert dynamic.calls == [("patch", "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker", {})]
    assert (sent["body"], sent["content_type"]) == (change, "application/merge-patch+json")


def test_a_delete_of_one_object_only_says_all_in_its_body_since_the_server_then_reads_no_url() -> None:
    dynamic = Dynamic(Response())
    Cluster(dynamic).delete("Pod", "test", "x", grace_seconds=0, dry_run=True, only={"uid": "1"})
    (body,) = dynamic.bodies
    assert (body["gracePeriodSeconds"], body["dryRun"], body["propagationPolicy"], body["preconditions"]) == (
        0,
        ["All"],
        "Background",
        {"uid": "1"},
    )


ONE = {"uid": "1"}


def test_delete_of_what_is_not_there() -> None:
    assert Cluster(Dynamic(status_error(404, "NotFound", "not found"))).delete("Pod", "test", "x", only=ONE) is False
    with pytest.raises(ApiError, match="cannot delete"):
        Cluster(Dynamic(status_error(403, "Forbidden", "cannot delete"))).delete("Pod", "test", "x", only=ONE)


def test_delete_by_name_alone_is_not_sent() -> None:
    """Another client may have made the object of this name."""
    dynamic = Dynamic(Response())
    with pytest.raises(KeyError):
        Cluster(dynamic).delete("Pod", "test", "x", only={})
    assert dynamic.calls == []


def test_watch_joins_lines_over_chunks() -> None:
    response = Response(chunks=[b'{"type":"ADDED","object":{"a"', b':1}}\n{"type":"MODIFIED","object":{}}\n', b"\n"])
    events = list(Cluster(Dynamic(response)).watch("Node", "7"))
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED"]
    assert response.closed


def test_watch_from_too_old_a_version() -> None:
    response = Response(
        chunks=[b'{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old resource version"}}\n']
    )
    with pytest.raises(ApiError, match="too old") as caught:
        list(Cluster(Dynamic(response)).watch("Node", "1"))
    assert caught.value.reason == "Expired"


@pytest.mark.parametrize(
    "broken", [urllib3.exceptions.ProtocolError("broken"), ConnectionResetError("reset"), b"{no json\n"]
)
def test_a_broken_watch_is_an_error(
    broken: typing.Union[urllib3.exceptions.ProtocolError, ConnectionResetError, bytes],
) -> None:
    with pytest.raises(ApiError, match="the watch was interrupted:"):
        list(Cluster(Dynamic(Response(chunks=[b'{"type":"ADDED","object":{}}\n', broken]))).watch("Node", "1"))


class Frames:
    """Plays channels: each update gives one frame. An exception breaks the connection."""

    def __init__(self, *frames: typing.Union[typing.Mapping[int, typing.Union[bytes, str]], Exception]) -> None:
        self.frames = list(frames)
        self.now: dict[int, bytes] = {}
        self.closed = False
        self.written = b""
        self.lost = ""

    @property
    def open(self) -> bool:
        return bool(self.frames) and not self.closed and not self.lost

    def update(self, seconds: float) -> None:
        frame = self.frames.pop(0)
        if isinstance(frame, Exception):
            self.lost = str(frame)
        else:
            self.now = {channel: data if isinstance(data, bytes) else data.encode() for channel, data in frame.items()}

    def take(self, channel: int) -> bytes:
        return self.now.pop(channel, b"")

    def write(self, data: bytes) -> None:
        if self.open:
            self.written += data

    def close(self) -> None:
        self.closed = True


def clock(step: float = 0.1) -> typing.Callable[..., typing.Any]:
    now = [0.0]

    def tick() -> float:
        now[0] += step
        return now[0]

    return tick


GREETED = {1: "rate mlx5_0 400\n\n@linerate 0 0\n"}


def ran(*frames: dict[int, typing.Any], seconds: int = 60, code: int = 0) -> CommandResult:
    """A command whose shell goes on afterwards, as it does in a pod."""
    shell = Shell(
        typing.cast(Channels, Frames(GREETED, *frames, {1: f"\n@linerate 1-t0k {code}\n"}, {})), clock(), "t0k"
    )
    assert shell.wait(seconds).output == "rate mlx5_0 400\n"
    shell.start(("tool", "-x", "two words"))
    return shell.wait(seconds)


def test_a_command_s_output_and_exit_code() -> None:
    result = ran({1: "out "}, {1: "put"})
    assert (result.exit_code, result.output, result.timed_out, result.error) == (0, "out put", False, "")
    assert result.command == "tool -x 'two words'"


@pytest.mark.parametrize(("code", "timed_out"), [(1, False), (124, True), (137, True)])
def test_exit_codes_are_true(code: int, timed_out: bool) -> None:
    result = ran(code=code)
    assert (result.exit_code, result.timed_out) == (code, timed_out)


def test_one_connection_serves_many_commands() -> None:
    channels = Frames(
        GREETED,
        {1: "a\n@linerate 1-t0k 0\n"},
        {1: "b"},
        {1: "\n@linerate 2-t0k 3\n"},
        {1: "c\n@linerate 3-t0k 0\n"},
        {},
    )
    shell = Shell(typing.cast(Channels, channels), clock(), "t0k")
    results = []
    for name in ("one", "two", "three"):
        shell.start((name,))
        results.append(shell.wait(60))
    assert [(result.exit_code, result.output) for result in results] == [(0, "a"), (3, "b"), (0, "c")]
    assert channels.written == b"1-t0k one\n2-t0k two\n3-t0k three\n"
    assert (shell.running, shell.open) == (False, True)


def test_what_an_older_command_still_prints_is_not_the_new_one_s() -> None:
    shell = Shell(
        typing.cast(Channels, Frames(GREETED, {1: "old"}, {1: "er\n@linerate 1-t0k 143\n"}, {1: "new"}, {})),
        clock(),
        "t0k",
    )
    shell.start(("one",))
    assert shell.wait_for("old", 60)
    shell.start(("two",))
    assert shell.wait(60).output == "new"


def test_a_connection_that_ends_is_no_success() -> None:
    shell = Shell(typing.cast(Channels, Frames(GREETED, {1: "perfect table"}, {3: '{"status":"Success"}'})), clock())
    shell.start(("tool",))
    result = shell.wait(60)
    assert (result.exit_code, result.timed_out) == (None, False)
    assert "no exit code" in result.error


def test_a_character_that_comes_in_two_pieces_is_one() -> None:
    first, second = "µs".encode()[:1], "µs".encode()[1:]
    assert ran({1: first}, {1: second}).output == "µs"


def test_an_image_without_a_shell_says_so() -> None:
    text = 'OCI runtime exec failed: exec: "sh": executable file not found in $PATH'
    result = Shell(
        typing.cast(Channels, Frames({3: json.dumps({"status": "Failure", "message": text})})), clock()
    ).wait(60)
    assert (result.exit_code, result.error) == (None, f"no exit code: {text}")


@pytest.mark.parametrize("broken", [ConnectionError("lost"), ConnectionResetError("reset")])
def test_a_connection_that_breaks_is_no_success(broken: typing.Union[ConnectionError, ConnectionResetError]) -> None:
    shell = Shell(
        typing.cast(Channels, Frames(GREETED, {1: "a"}, broken, {1: "\n@linerate 1-t0k 0\n"})), clock(), "t0k"
    )
    shell.start(("tool",))
    result = shell.wait(60)
    assert (result.exit_code, result.output) == (None, "a")
    assert "broke" in result.error
    shell.start(("next",))
    assert not shell.open


def test_the_limit_outside_ends_a_command_that_does_not() -> None:
    channels = Frames(*[{1: "."}] * 10000)
    result = Shell(typing.cast(Channels, channels), clock()).wait(5)
    assert (result.exit_code, result.timed_out, channels.closed) == (None, True, True)


def test_wait_for_a_text() -> None:
    assert Shell(typing.cast(Channels, Frames({1: "rdma_"}, {1: "listen\n"}, {1: "more"})), clock()).wait_for(
        "rdma_listen", 60
    )
    assert not Shell(typing.cast(Channels, Frames({1: "other"})), clock()).wait_for("rdma_listen", 60)
    assert not Shell(typing.cast(Channels, Frames(*[{}] * 10000)), clock()).wait_for("rdma_listen", 5)
