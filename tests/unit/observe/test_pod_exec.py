# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands in pods over real websockets, with a server that goes wrong as API servers, proxies and kubelets do."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import hashlib
import pathlib
import select
import socket
import ssl
import threading
import time
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as some
from kubernetes.client import ApiClient, Configuration
from kubernetes.dynamic import DynamicClient

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Answer, Container
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import errors
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec import channels, pod_exec
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.pod_exec import (
    Limits,
    NoAnswer,
    run,
    run_on_many,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.framing import BEGIN, STDERR, STDOUT
from ansible_collections.linerate.rdma.tests.unit.exec_server import V4, V5, ExecServer, Fault
from lab.pki import Pki

EVERYTHING = bytes(range(256))
SIX_MB = EVERYTHING * (6 * 1024 * 1024 // 256)
SHORT = Limits(connect=0.3, run=0.3)


def frame(opcode: int, data: bytes) -> bytes:
    return bytes([0x80 | opcode, len(data)]) + data


FRAMES = [
    frame(2, b"\1@linerate-begin\n"),
    frame(2, b"\1\n@linerate-end x 0\n"),
    frame(2, b"\1"),
    frame(2, b""),
    frame(1, b"\3{"),
    frame(2, b"\xff\1"),
    frame(2, b"\x09unknown channel"),
    frame(9, b"ping"),
    frame(8, b"\3\xe8"),
    frame(8, b"x"),
    frame(11, b"no such opcode"),
    # the second half of a message that never began
    frame(0, b"rest"),
]


class Rude:
    """Opens a websocket, sends some bytes, and hangs up; over TLS it waits until the client does."""

    def __init__(self, sent: bytes, tls: typing.Optional[ssl.SSLContext] = None) -> None:
        self._sent, self._tls = sent, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"

    def __exit__(self, *_error: object) -> None:
        self._thread.join(30)
        self._listener.close()

    def _serve(self) -> None:
        accepted = self._listener.accept()[0]
        with self._tls.wrap_socket(accepted, server_side=True) if self._tls else accepted as connection:
            head = connection.recv(65536).decode()
            key = next(
                line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")
            )
            accept = base64.b64encode(
                hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode(), usedforsecurity=False).digest()
            ).decode()
            lines = [
                "HTTP/1.1 101 Switching Protocols",
                "Upgrade: websocket",
                "Connection: Upgrade",
                f"Sec-WebSocket-Accept: {accept}",
            ]
            connection.sendall("\r\n".join([*lines, f"Sec-WebSocket-Protocol: {V5}", "", ""]).encode())
            connection.sendall(self._sent)
            while self._tls and connection.recv(65536):
                pass


def cluster(url: str, **options: typing.Any) -> Cluster:
    configuration = Configuration(host=url)
    for name, value in options.items():
        setattr(configuration, name, value)
    return Cluster(DynamicClient(ApiClient(configuration), discoverer=lambda *_arguments: None))


def pod(name: str = "pod") -> Container:
    return Container("observers", name, "main")


@pytest.fixture(params=[(V5, V4), (V4,)], ids=["v5", "v4"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[ExecServer]:
    monkeypatch.setattr(errors, "PAUSES", (0.01, 0.02))
    with ExecServer(request.param) as here:
        yield here
        assert set(here.chosen) <= {request.param[0]}


def test_both_streams_and_the_exit_code(server: ExecServer) -> None:
    script = "cat; echo error >&2; exit 3"
    assert run(cluster(server.url), pod(), ["sh", "-c", script], EVERYTHING) == Answer(3, EVERYTHING, b"error\n")
    assert run(cluster(server.url), pod(), ["true"]) == Answer(0, b"", b"")
    query = server.queries[0]
    assert {name: query[name] for name in ("container", "stdin", "stdout", "stderr", "tty")} == {
        "container": ["main"],
        **{name: ["true"] for name in ("stdin", "stdout", "stderr")},
        "tty": ["false"],
    }
    assert query["command"][-3:] == ["sh", "-c", script]


def test_large_input_and_output_are_the_same_byte_for_byte(server: ExecServer) -> None:
    assert run(cluster(server.url), pod(), ["cat"], SIX_MB) == Answer(0, SIX_MB, b"")


def test_a_command_that_writes_before_it_reads_does_not_block(server: ExecServer) -> None:
    """More than all buffers on the way hold, in both directions."""
    size = 30_000_000
    answer = run(
        cluster(server.url), pod(), ["sh", "-c", f"head -c {size} /dev/zero; cat"], SIX_MB * 2, Limits(output=2 * size)
    )
    assert (answer.rc, len(answer.stdout), answer.stdout[size:] == SIX_MB * 2) == (0, size + len(SIX_MB) * 2, True)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            Fault(cut=100_000),
            (
                "the stream ended, and the API server reports: Success. But the command's end mark on"
                " stdout and stderr did not arrive"
            ),
        ),
        (Fault(drop=100_000), "the connection broke"),
        # all output is there, and the marks: the command ended with 0 for what it got
        (Fault(starve=100_000), "the confirmation of the shell that all of stdin arrived did not arrive"),
    ],
    ids=["cut", "drop", "starve"],
)
def test_a_part_is_no_answer_whatever_the_server_says(server: ExecServer, fault: Fault, said: str) -> None:
    server.faults["pod"] = fault
    with pytest.raises(NoAnswer, match="exec in pod observers/pod, container main") as caught:
        run(cluster(server.url), pod(), ["cat"], SIX_MB)
    assert said in caught.value.seen
    assert (
        90_000 < caught.value.stdout_bytes <= 100_000
        and f"{caught.value.stdout_bytes} bytes of stdout" in caught.value.seen
    )
    assert "kubectl -n observers get pod pod" in caught.value.remedy
    assert server.asked["pod"] == 1, "it may have done something: nobody does it again"


def test_who_is_cut_before_the_first_byte_is_told_so(server: ExecServer) -> None:
    server.faults["pod"] = Fault(cut=0)
    with pytest.raises(ApiError, match="the shell in the pod did not start: the API server reports: Success"):
        run(cluster(server.url), pod(), ["true"])


def test_silence_ends_with_the_limits(server: ExecServer) -> None:
    server.faults["silent"] = Fault(silent=True)
    with pytest.raises(ApiError, match=r"the shell in the pod did not start within 0\.3 s") as silent:
        run(cluster(server.url), pod("silent"), ["true"], limits=SHORT)
    assert "does not reach the kubelet" in silent.value.remedy
    with pytest.raises(
        NoAnswer, match="the command did not end within 0\\.3 s: 3 bytes of stdout and 0 bytes of stderr arrived"
    ) as slow:
        run(cluster(server.url), pod(), ["sh", "-c", "echo up; exec sleep 600"], limits=Limits(connect=30, run=0.3))
    assert (slow.value.stdout_bytes, "longer limit" in slow.value.remedy) == (3, True)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(times=2, refuse=503, words="the server is currently unable to handle the request"),
        Fault(times=2, refuse=429, words="too many requests"),
        Fault(times=2, words="error dialing backend: Receive channel from agent is full"),
    ],
    ids=["503", "429", "agent"],
)
def test_what_had_not_begun_is_asked_for_again(server: ExecServer, fault: Fault) -> None:
    server.faults["pod"] = fault
    assert run(cluster(server.url), pod(), ["cat"], b"once") == Answer(0, b"once", b"")
    assert server.asked["pod"] == 3


@pytest.mark.parametrize(
    ("fault", "asked", "said"),
    [
        (Fault(refuse=503, words="overloaded"), 3, "overloaded"),
        (
            Fault(refuse=403, words='pods "pod" is forbidden'),
            1,
            "is forbidden. As an admin of the cluster, apply the file of docs/rbac that has this right",
        ),
        (Fault(refuse=404, words='pods "pod" not found'), 1, "not found"),
        (
            Fault(words='container not found ("main")'),
            1,
            ('did not start: the API server reports: container not found ("main"). The container must run'),
        ),
    ],
)
def test_what_is_refused_for_good_says_why(server: ExecServer, fault: Fault, asked: int, said: str) -> None:
    server.faults["pod"] = fault
    with pytest.raises(ApiError) as caught:
        run(cluster(server.url), pod(), ["true"])
    assert said in str(caught.value) and "exec in pod observers/pod, container main" in str(caught.value)
    assert caught.value.status == (fault.refuse or 500)
    assert server.asked["pod"] == asked


def test_an_image_without_a_tool_says_which_one(tmp_path: pathlib.Path) -> None:
    with (
        ExecServer(environment={"PATH": str(tmp_path)}) as here,
        pytest.raises(ApiError, match="did not start: the image has no head") as caught,
    ):
        run(cluster(here.url), pod(), ["true"])
    assert "its image must contain sh, head and cat" in caught.value.remedy
    assert here.asked["pod"] == 1


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ApiError, match=r"no connection: .*refused.*Check the kubeconfig"):
        run(cluster(url), pod(), ["true"])
    assert len(pauses) == 2 and 0.5 <= pauses[0] <= 1.5 <= pauses[1] <= 4.5
    # one that takes connections and says nothing
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        pytest.raises(ApiError, match="the API server did not respond within 0\\.3 s"),
    ):
        run(cluster(f"http://127.0.0.1:{mute.getsockname()[1]}"), pod(), ["true"], limits=SHORT)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 nonsense\r\n\r\n", b"\0\0\0\0\r\n\r\n", b"HTTP/1.1 101 Switching\r\n\r\n", b""]
)
def test_what_is_no_api_server_is_an_error_like_any_other(answer: bytes) -> None:
    def reply(listener: socket.socket) -> None:
        with listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=reply, args=(listener,), daemon=True).start()
        with pytest.raises(ApiError, match=r"no connection: ."):
            run(cluster(f"http://127.0.0.1:{listener.getsockname()[1]}"), pod(), ["true"])


@given(
    some.binary(max_size=60) | some.lists(some.sampled_from(FRAMES) | some.binary(max_size=4), max_size=8).map(b"".join)
)
def test_nothing_that_a_server_sends_is_an_answer_or_a_traceback(sent: bytes) -> None:
    with Rude(sent) as url, pytest.raises(RdmaError, match="exec in pod observers/pod"):
        # what it said is all there is: it hangs up
        run(cluster(url), pod(), ["true"], b"stdin")


def test_a_flood_ends_with_its_limit(server: ExecServer) -> None:
    with pytest.raises(NoAnswer, match="the output has more than 1000000 bytes and does not end"):
        run(cluster(server.url), pod(), ["cat", "/dev/zero"], limits=Limits(output=1_000_000))


def test_another_thread_may_close_what_one_waits_for(server: ExecServer) -> None:
    for _number in range(20):
        shell = cluster(server.url).shell("observers", "pod", "main", ["sleep", "600"], time.monotonic)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waits = pool.submit(shell.wait_for, "never", 600)
            shell.close()
            assert waits.result(30) is False and not shell.open
    opened = cluster(server.url).exec(pod(), ["sleep", "600"])
    # at the moment between a look at it and its use
    opened._socket.shutdown()
    opened.update(0)
    assert (opened.open, opened.lost) == (False, "closed by this process")


def test_the_streams_of_something_else_are_told_from_those_of_our_shell(
    server: ExecServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.pod_exec.SHELL",
        ("sh", "-c", "echo Welcome"),
    )
    with pytest.raises(NoAnswer, match=r"'Welcome\\n' is not @linerate-begin"):
        run(cluster(server.url), pod(), ["true"])


def test_over_tls_as_the_user_that_all_else_comes_as(tmp_path: pathlib.Path) -> None:
    pki = Pki(tmp_path, "")
    pki.identity("server", "server", hosts=["127.0.0.1"])
    pki.identity("client", "client")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki.path("server.crt"), pki.path("server.key"))
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(pki.path("ca.crt"))
    known = {
        "cert_file": str(pki.path("client.crt")),
        "key_file": str(pki.path("client.key")),
        "api_key": {"authorization": "Bearer token"},
    }
    with ExecServer(tls=tls) as here:
        ours = cluster(here.url, ssl_ca_cert=str(pki.path("ca.crt")), **known)
        assert run(ours, pod(), ["cat"], SIX_MB) == Answer(0, SIX_MB, b"")
        assert {name.lower(): value for name, value in here.seen[0].items()}["authorization"] == "Bearer token"
        assert run(cluster(here.url, verify_ssl=False, **known), pod(), ["true"]).rc == 0
        with pytest.raises(
            ApiError,
            match=r"The kubeconfig does not trust this server\. Set the certificate authority of this cluster",
        ):
            run(cluster(here.url, **known), pod(), ["true"])


def test_many_pods_each_with_its_answer_or_its_error() -> None:
    with ExecServer(latency=0.05) as here:
        here.faults.update({"pod-3": Fault(cut=2), "pod-5": Fault(refuse=404, words="not found")})
        wanted = [pod(f"pod-{number}") for number in range(40)]
        found = dict(
            run_on_many(cluster(here.url), wanted, ["sh", "-c", "cat; hostname > /dev/null"], b"archive", parallel=8)
        )
        assert set(found) == set(wanted)
        assert {container.pod for container, outcome in found.items() if outcome != Answer(0, b"archive", b"")} == {
            "pod-3",
            "pod-5",
        }
        assert isinstance(found[pod("pod-3")], RdmaError) and isinstance(found[pod("pod-5")], ApiError)
        # the server may not have seen yet that one has left
        assert 1 < here.most <= 2 * 8
        assert len(here.chosen) == 39


def test_who_stops_listening_waits_for_nobody() -> None:
    with ExecServer() as here:
        answers = run_on_many(
            cluster(here.url),
            [pod(f"pod-{number}") for number in range(50)],
            ["sh", "-c", 'read -r go; sleep "$go"'],
            b"1\n",
            parallel=2,
        )
        next(iter(answers))
        start = time.monotonic()
        answers.close()  # type: ignore[attr-defined]
        assert time.monotonic() - start < 15
        assert sum(here.asked.values()) < 50


def test_who_stops_listening_leaves_what_runs() -> None:
    with ExecServer() as here:
        here.faults["first"] = Fault(refuse=404, words="not found")
        answers = run_on_many(cluster(here.url), [pod(name) for name in ("first", "second")], ["sleep", "600"])
        assert next(iter(answers))[0] == pod("first")
        assert here.wait_for(1)
        answers.close()  # type: ignore[attr-defined]
        assert here.wait_for(0)


class Slow:
    """A cluster whose pod begins after 30 s, ends after 60 and is heard of for the last time after 90, by a clock that
    goes on by 10 s with each update."""

    def __init__(self) -> None:
        self.now = 0.0
        self.open, self.lost, self._said = True, "", [(30, STDOUT, BEGIN)]

    def exec(self, _container: Container, _command: typing.Sequence[str], seconds: float) -> Slow:
        return self

    def update(self, _seconds: float) -> None:
        self.now += 10

    def take(self, channel: int) -> bytes:
        due = [entry for entry in self._said if entry[0] <= self.now and entry[1] == channel]
        self._said = [entry for entry in self._said if entry not in due]
        return b"".join(data for _time, _channel, data in due)

    def write(self, data: bytes) -> None:
        token = data.split()[0] if data.strip() else b""
        if len(data.split()) == 2:
            self._said += [(60, channel, b"\n@linerate-end %s 0\n" % token) for channel in (STDOUT, STDERR)]
        elif token:
            self._said.append((90, STDOUT, b"\n@linerate-heard %s\n" % token))
        else:
            self.open = False

    def close(self) -> None:
        self.open = False


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(connect=30, run=60), ""),
        (Limits(connect=20, run=600), "the shell in the pod did not start within 20 s"),
        (Limits(connect=600, run=50), "the command did not end within 50 s"),
    ],
)
def test_each_limit_has_its_own_clock(limits: Limits, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(f"{pod_exec.__name__}.time.monotonic", lambda: slow.now)
    if not said:
        assert run(typing.cast(Cluster, slow), pod(), ["true"], limits=limits) == Answer(0, b"", b"")
        return
    with pytest.raises(RdmaError, match=said):
        run(typing.cast(Cluster, slow), pod(), ["true"], limits=limits)


def test_frames_that_come_together_are_read_one_after_the_other(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that ends TLS sends several frames in one record: what is decrypted already shows in no poll."""
    monkeypatch.setattr(channels, "BURST", 1)
    pki = Pki(tmp_path, "")
    pki.identity("server", "server", hosts=["127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki.path("server.crt"), pki.path("server.key"))
    with Rude(b"".join(frame(2, b"\1" + word) for word in (b"one", b"two", b"three")), tls) as url:
        opened = cluster(url, ssl_ca_cert=str(pki.path("ca.crt"))).exec(pod(), ["true"])
        words = []
        for _number in range(3):
            opened.update(5)
            words.append(opened.take(1))
        opened.close()
    assert words == [b"one", b"two", b"three"]


def test_a_silent_connection_is_kept_open_by_pings(server: ExecServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "QUIET_SECONDS", 0.05)
    over = threading.Event()

    def leave() -> None:
        server.pinged.wait(30)
        over.set()

    threading.Thread(target=leave, daemon=True).start()
    with pytest.raises(NoAnswer):
        run(cluster(server.url), pod(), ["sleep", "600"], over=over)
    assert server.pinged.is_set()


@contextlib.contextmanager
def proxy_to(server: ExecServer) -> typing.Iterator[tuple[str, list[bytes]]]:
    """A proxy for one connection: its address, and what it was asked."""
    asked: list[bytes] = []

    def serve(listener: socket.socket, target: int) -> None:
        here = listener.accept()[0]
        asked.append(here.recv(65536))
        here.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        there = socket.create_connection(("127.0.0.1", target))
        with here, there:
            sockets = {here: there, there: here}
            while True:
                for ready in select.select(list(sockets), [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    sockets[ready].sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, int(server.url.rpartition(":")[2])), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked


def test_through_a_proxy() -> None:
    with ExecServer() as server, proxy_to(server) as (proxy, asked):
        assert run(cluster(server.url, proxy=proxy, no_proxy="example.com"), pod(), ["cat"], b"far").stdout == b"far"
        assert asked[0].startswith(f"CONNECT {server.url.rpartition('/')[2]} ".encode())


def test_through_a_proxy_over_tls_of_the_server(tmp_path: pathlib.Path) -> None:
    pki = Pki(tmp_path, "")
    pki.identity("server", "server", hosts=["api.example"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki.path("server.crt"), pki.path("server.key"))
    known = {"ssl_ca_cert": str(pki.path("ca.crt")), "api_key": {"authorization": "Bearer token"}}
    with ExecServer(tls=tls) as server:
        with proxy_to(server) as (proxy, asked):
            there = cluster(server.url, proxy=proxy, tls_server_name="api.example", **known)
            assert run(there, pod(), ["cat"], SIX_MB) == Answer(0, SIX_MB, b"")
            assert b"token" not in asked[0]
        # the proxy is no authority on who the server is
        with (
            proxy_to(server) as (proxy, _asked),
            pytest.raises(
                ApiError,
                match=r"The kubeconfig does not trust this server\. Set the certificate authority of this cluster",
            ),
        ):
            run(cluster(server.url, proxy=proxy, **known), pod(), ["true"])


def test_a_shell_over_a_real_websocket(server: ExecServer) -> None:
    """That of the measuring pods: it stays, and takes one command after the other."""
    loop = (
        "printf '\\n@linerate 0 0\\n'; while read -r number command; do eval \"$command\"; printf '\\n@linerate %s"
        ' %s\\n\' "$number" "$?"; done'
    )
    shell = cluster(server.url).shell("observers", "pod", "main", ["sh", "-c", loop], time.monotonic)
    assert shell.wait(30).exit_code == 0
    for number in range(3):
        shell.start(("sh", "-c", f"echo µ{number}; exit {number}"))
        result = shell.wait(30)
        assert (result.exit_code, result.output) == (number, f"µ{number}\n")
    assert shell.open
    shell.close()
    assert not shell.open
    assert server.queries[0]["stderr"] == ["false"]
