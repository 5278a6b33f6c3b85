# SPDX-License-Identifier: GPL-3.0-or-later

"""A BMC over TLS: a tree of resources as a vendor's BMC answers it, whose BIOS can be set, and a reset that applies
what waits.

What a vendor does in its own way is told by its tree: a settings object that holds a full copy, only what waits, or no
attributes at all; an ETag, without which nothing is taken; a queue of jobs, of which one holds the BIOS until the
reset; lockdown. The standard library alone, so that the lab can start it:

    python3 -m lab.bmc.server --tree FILE --certificate FILE --credentials FILE [--address A] [--port N] [--forever]
    [--state FOLDER] [--latency S]
        [--reset COMMAND ARGUMENT...]
"""

from __future__ import annotations

import argparse
import base64
import copy
import dataclasses
import email.message
import http.server
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import typing

from .bios import RESTARTS, STOPS, Answer, Bios, Headers, Tree, make_message, make_refusal, strip_slash

Server = typing.TypeVar("Server", bound="BmcServer")

RESET = "/Actions/ComputerSystem.Reset"
#: seconds that the command behind a reset may take
_RESET_SECONDS = 120
STATE, FAULTS = "state.json", "faults.json"


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Who may ask. token: of a session"""

    user: str
    password: str = dataclasses.field(repr=False)
    token: str = dataclasses.field(default="", repr=False)

    @property
    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


@dataclasses.dataclass(frozen=True)
class Fault:
    """What a path is answered with in place of its resource.

    :ivar times: answers that are wrong; None for all of them
    :ivar status: HTTP status
    :ivar body: of the answer; None for a message of Redfish
    :ivar headers: beside those that each answer has
    :ivar drop: the connection is closed in place of an answer
    :ivar late: what was asked is done before that
    :ivar cut: bytes of the body after which it is closed
    :ivar drip: the answer never ends: a blank every 20 ms
    :ivar gate: the answer waits for it
    :ivar reached: set when it waits
    :ivar method: the only one that is wrong; empty for all of them
    """

    times: typing.Optional[int] = None
    status: int = 200
    body: typing.Optional[bytes] = None
    headers: Headers = ()
    drop: bool = False
    late: bool = False
    cut: typing.Optional[int] = None
    drip: bool = False
    gate: typing.Optional[threading.Event] = None
    reached: typing.Optional[threading.Event] = None
    method: str = ""


class BmcServer:
    """One BMC on a port of this machine.

    :param answers: its resources; a copy is served
    :param certificate: file with certificate and key
    :param address: on which it listens
    :param latency: seconds before each answer
    :param state: folder in which the BIOS is kept, so that it outlives this process; a file faults.json there has what
        goes wrong
    :param reset: command that really resets the node; the kind of reset is its last argument
    :ivar faults: by path, with its query
    :ivar asked: paths of GET in the order in which they came
    :ivar written: bodies of PATCH in the order in which they came
    :ivar resets: kinds of reset
    """

    def __init__(
        self,
        answers: Tree,
        certificate: pathlib.Path,
        latency: float = 0.0,
        credentials: Credentials = Credentials("", ""),
        address: str = "127.0.0.1",
        port: int = 0,
        state: typing.Optional[pathlib.Path] = None,
        reset: typing.Sequence[str] = (),
    ) -> None:
        self.answers = copy.deepcopy(answers)
        self.state = state
        if state and (state / STATE).exists():
            self.answers.update(json.loads((state / STATE).read_text(encoding="utf-8")))
        self.bios = Bios(self.answers)
        if self.bios.system:
            # the trees of the vendors leave it out
            action = {"target": self.bios.system + RESET, "ResetType@Redfish.AllowableValues": [*RESTARTS, *STOPS]}
            self.answers[self.bios.system].setdefault("Actions", {"#ComputerSystem.Reset": action})
        self.credentials = credentials
        self.faults: dict[str, Fault] = {}
        self.latency = latency
        self.asked: list[str] = []
        self.written: list[typing.Any] = []
        self.resets: list[str] = []
        self.expands = False
        self.connections = 0
        self._reset = tuple(reset)
        self._lock = threading.RLock()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server = _Server((address, port), _handler(self))
        self._server.context = context
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self: Server) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_what: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault(self, method: str, path: str) -> typing.Optional[Fault]:
        """What is wrong with this answer; counts it."""
        with self._lock:
            if method == "GET":
                self.asked.append(path)
            found = self.faults.get(path)
            if found is None or found.method not in ("", method):
                return None
            if found.times is not None:
                if found.times <= 0:
                    return None
                self.faults[path] = dataclasses.replace(found, times=found.times - 1)
            return found

    def knows(self, headers: email.message.Message) -> bool:
        """Whether somebody may ask."""
        token = self.credentials.token
        return (
            bool(token and headers.get("X-Auth-Token") == token)
            or headers.get("Authorization") == self.credentials.basic
        )

    def get(self, path: str) -> Answer:
        """A resource, by a path with or without a slash at its end."""
        bare, _mark, query = path.partition("?")
        found = self.answers.get(strip_slash(bare))
        if found is None:
            return self.message(404, "ResourceMissingAtURI")
        if query.startswith("$expand") and self.expands:
            return Answer(
                200,
                {**found, "Members": [self.answers[strip_slash(member["@odata.id"])] for member in found["Members"]]},
            )
        tag = found.get("@odata.etag") if isinstance(found, dict) else None
        return Answer(200, found, (("ETag", tag),) if tag and strip_slash(bare) == self.bios.settings else ())

    def patch(self, path: str, body: typing.Any, match: typing.Optional[str]) -> Answer:
        """New values for the settings object of the BIOS; anything else takes none."""
        with self._lock:
            self.written.append(body)
            if not self.bios.settings or strip_slash(path) != self.bios.settings:
                return self.message(405, "OperationNotAllowed")
            self._read_faults()
            answer = self.bios.write(body, match)
            self._save()
            return answer

    def post(self, path: str, body: typing.Any) -> Answer:
        """A reset of the system; nothing else can be asked for."""
        kind = body.get("ResetType") if isinstance(body, dict) else None
        if not self.bios.system or strip_slash(path) != self.bios.system + RESET:
            return self.message(404, "ResourceMissingAtURI")
        if kind not in (*RESTARTS, *STOPS):
            return make_refusal(
                "ActionParameterNotSupported", f"The value {kind} for the parameter ResetType is not supported."
            )
        with self._lock:
            self._read_faults()
            self.resets.append(kind)
            self.answers[self.bios.system]["PowerState"] = "Off" if kind in STOPS else "On"
            if kind in RESTARTS:
                self.bios.reset()
            self._save()
        if (
            self._reset
            and subprocess.run(
                [*self._reset, kind], check=False, timeout=_RESET_SECONDS, stdin=subprocess.DEVNULL
            ).returncode
        ):
            return self.message(500, "InternalError")
        return Answer(204)

    def reset(self) -> None:
        """What waits is applied, as if somebody had reset the node."""
        with self._lock:
            self.bios.reset()
            self._save()

    def message(self, status: int, name: str) -> Answer:
        """An error of Redfish, whose text repeats what it was sent, as a careless BMC may."""
        who = self.credentials
        return Answer(status, make_message(name, f"denied: {who.basic} {who.password} {who.token}"))

    def _read_faults(self) -> None:
        if self.state and (self.state / FAULTS).exists():
            told = json.loads((self.state / FAULTS).read_text(encoding="utf-8"))
            self.bios.forgets, self.bios.stubborn = bool(told.get("forgets")), frozenset(told.get("stubborn", ()))
            self.bios.contended = bool(told.get("contended"))

    def _save(self) -> None:
        if self.state:
            part = self.state / f"{STATE}.part"
            part.write_text(json.dumps(self.bios.changed()), encoding="utf-8")
            os.replace(part, self.state / STATE)


class _Server(http.server.ThreadingHTTPServer):
    context: ssl.SSLContext
    daemon_threads = True
    request_queue_size = 1024

    def finish_request(self, request: typing.Any, client_address: typing.Any) -> None:
        """The handshake is in the thread of its connection, as a client may be slow with it."""
        try:
            with self.context.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, client_address)
        except (OSError, ValueError):
            # the client does not trust this certificate, or went away
            pass


class _Handler(http.server.BaseHTTPRequestHandler):
    bmc: BmcServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.bmc.connections += 1
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        self._do(lambda _body: self.bmc.get(self.path))

    def do_PATCH(self) -> None:
        self._do(lambda body: self.bmc.patch(self.path, body, self.headers.get("If-Match")))

    def do_POST(self) -> None:
        self._do(lambda body: self.bmc.post(self.path, body))

    def _do(self, work: typing.Callable[[typing.Any], Answer]) -> None:
        body = self._body()
        fault = self.bmc.fault(self.command, self.path)
        time.sleep(self.bmc.latency)
        if fault and fault.reached:
            fault.reached.set()
        if fault and fault.gate:
            fault.gate.wait(30)
        if fault and fault.drop:
            if fault.late:
                work(body)
            self.close_connection = True
        elif fault and fault.drip:
            self._drip()
        elif not self.bmc.knows(self.headers):
            self._say(self.bmc.message(401, "AccessDenied"))
        elif fault and not fault.gate:
            answer = self.bmc.message(fault.status, "Fault")
            self._say(answer if fault.body is None else Answer(fault.status, fault.body), fault.headers, fault.cut)
        else:
            self._say(work(body))

    def _body(self) -> typing.Any:
        try:
            return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        except ValueError:
            return None

    def _say(self, answer: Answer, more: Headers = (), cut: typing.Optional[int] = None) -> None:
        body = (
            answer.body
            if isinstance(answer.body, bytes)
            else b""
            if answer.body is None
            else json.dumps(answer.body).encode()
        )
        self.send_response(answer.status)
        for name, value in (*answer.headers, *more):
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.close_connection = self.close_connection or cut is not None

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" ")
                time.sleep(0.02)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *arguments: typing.Any) -> None:
        """Who wants to know asks ``asked``."""


def _handler(bmc: BmcServer) -> type[http.server.BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"bmc": bmc})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=pathlib.Path, required=True, help="JSON: resources by path")
    parser.add_argument("--certificate", type=pathlib.Path, required=True, help="PEM with certificate and key")
    parser.add_argument(
        "--credentials", type=pathlib.Path, required=True, help="JSON: user, password, and perhaps token"
    )
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--forever", action="store_true", help="until it is ended by a signal")
    parser.add_argument("--state", type=pathlib.Path, help="folder in which the BIOS is kept")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument(
        "--reset",
        nargs=argparse.REMAINDER,
        default=[],
        help="command that resets the node, with its arguments; must come last",
    )
    options = parser.parse_args()
    who = Credentials(**json.loads(options.credentials.read_text(encoding="utf-8")))
    answers = json.loads(options.tree.read_text(encoding="utf-8"))
    with BmcServer(
        answers, options.certificate, options.latency, who, options.address, options.port, options.state, options.reset
    ) as bmc:
        print(json.dumps({"port": bmc.port}), flush=True)
        while options.forever:
            signal.pause()
        # until who started it closes our stdin, or ends
        sys.stdin.read()
        print(json.dumps({"asked": bmc.asked, "connections": bmc.connections}), flush=True)


if __name__ == "__main__":
    main()
