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
import hashlib
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

Tree = dict[str, typing.Any]
Headers = tuple[tuple[str, str], ...]
Server = typing.TypeVar("Server", bound="BmcServer")

#: kinds of reset after which the BIOS runs; of DMTF's Resource.ResetType
RESTARTS = ("On", "ForceOn", "ForceRestart", "GracefulRestart", "PowerCycle")
STOPS = ("ForceOff", "GracefulShutdown")
RESET = "/Actions/ComputerSystem.Reset"
#: seconds that the command behind a reset may take
_RESET_SECONDS = 120
STATE, FAULTS = "state.json", "faults.json"
_JOB = {"JobType": "BIOSConfiguration", "Name": "Configure: BIOS.Setup.1-1", "JobState": "Scheduled"}


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


class Answer(typing.NamedTuple):
    """:ivar body: what it says, before it is JSON; None for nothing"""

    status: int
    body: typing.Any = None
    headers: Headers = ()


class Bios:
    """The BIOS of one system in a tree: its values, and what waits for a reset.

    :ivar forgets: it says yes to new values, and keeps none
    :ivar stubborn: attributes that keep their value at a reset
    :ivar contended: before each write somebody else changes what waits, and takes it back
    """

    def __init__(self, answers: Tree) -> None:
        self.answers = answers
        self.forgets = False
        self.stubborn: frozenset[str] = frozenset()
        self.contended = False
        systems = [
            path
            for path, resource in answers.items()
            if isinstance(resource, dict) and "SystemType" in resource and "Bios" in resource
        ]
        self.system = systems[0] if systems else ""
        self.path = _plain(answers[self.system]["Bios"]["@odata.id"]) if self.system else ""
        self.settings = (
            _plain(self._bios.get("@Redfish.Settings", {}).get("SettingsObject", {}).get("@odata.id", ""))
            if self.system
            else ""
        )
        # of a full copy or of what waits alone; absent where the settings object shows no attributes while nothing
        # waits
        self._shown = copy.deepcopy(answers.get(self.settings, {}).get("Attributes"))

    def call(self, uuid: str, serial: str) -> None:
        """Give the system the identity of the machine that it is."""
        self.answers[self.system].update(UUID=uuid, SerialNumber=serial)

    @property
    def _bios(self) -> Tree:
        found: Tree = self.answers.get(self.path, {})
        return found

    @property
    def attributes(self) -> Tree:
        """What the BIOS runs with."""
        found: Tree = self._bios["Attributes"]
        return found

    @property
    def etag(self) -> str:
        """Of the settings object; empty where the vendor has none."""
        return str(self.answers.get(self.settings, {}).get("@odata.etag", ""))

    @property
    def jobs(self) -> str:
        """Path of the queue of jobs; empty where the vendor has none."""
        managers = [
            resource.get("Links", {}).get("Oem", {}).get("Dell", {})
            for resource in self.answers.values()
            if isinstance(resource, dict)
        ]
        return next((_plain(manager["Jobs"]["@odata.id"]) for manager in managers if "Jobs" in manager), "")

    @property
    def is_locked(self) -> bool:
        """Whether lockdown is on, in Dell's words or in Supermicro's."""
        resources = [resource for resource in self.answers.values() if isinstance(resource, dict)]
        dell = any(
            one.get("Attributes", {}).get("Lockdown.1.SystemLockdown") == "Enabled"
            for one in resources
            if isinstance(one.get("Attributes"), dict)
        )
        return dell or any(one.get("SysLockdownEnabled") is True for one in resources)

    def job(self) -> typing.Optional[Tree]:
        """The one that holds the BIOS."""
        members = self.answers.get(self.jobs, {}).get("Members", ())
        found = [self.answers[_plain(member["@odata.id"])] for member in members]
        return next(
            (
                one
                for one in found
                if one.get("JobType") == _JOB["JobType"] and one.get("JobState") in ("Scheduled", "New", "Running")
            ),
            None,
        )

    def write(self, body: typing.Any, match: typing.Optional[str]) -> Answer:
        """New values.

        :param match: the header If-Match
        """
        attributes = body.get("Attributes") if isinstance(body, dict) else None
        if not isinstance(attributes, dict) or not attributes:
            return _refusal(
                "PropertyMissing", "The property Attributes is a required property and must be included in the request."
            )
        if self.contended:
            self._touch()
        if self.etag and match is None:
            return _refusal("PreconditionRequired", "The request requires an If-Match header.", 428)
        if match is not None and match != self.etag:
            return _refusal(
                "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.", 412
            )
        if self.is_locked:
            return _refusal(
                "ServerInLockdown", "Unable to complete the operation because the system is in lockdown mode."
            )
        held = self.job()
        if held:
            return _refusal(
                "PendingJob",
                "Pending configuration values are already committed, unable to perform another set operation:"
                f" {held['Id']}.",
            )
        wrong = self._wrong(attributes)
        if wrong:
            return wrong
        if self.forgets:
            return Answer(200, {})
        settings = self.answers[self.settings]
        settings["Attributes"] = {**(settings.get("Attributes") or {}), **attributes}
        self._touch()
        time_ = body.get("@Redfish.SettingsApplyTime", {}).get("ApplyTime")
        return self._schedule() if self.jobs and time_ == "OnReset" else Answer(200, {})

    def lock(self, on: bool) -> None:
        """Switch lockdown on or off, in Dell's words and in Supermicro's."""
        for one in self.answers.values():
            if isinstance(one, dict) and "Lockdown.1.SystemLockdown" in (one.get("Attributes") or {}):
                one["Attributes"]["Lockdown.1.SystemLockdown"] = "Enabled" if on else "Disabled"
            elif isinstance(one, dict) and "SysLockdownEnabled" in one:
                one["SysLockdownEnabled"] = on

    def hold(self) -> None:
        """A job of somebody else waits, and holds the BIOS."""
        self._schedule()

    def release(self) -> None:
        """The job that holds the BIOS is given up."""
        held = self.job()
        if held:
            held["JobState"] = "Failed"

    def reset(self) -> None:
        """What waits becomes true, but for what the BIOS does not take. On a BMC with jobs only a job applies it."""
        job = self.job()
        if self.jobs and not job:
            return
        settings = self.answers.get(self.settings, {})
        waiting = {
            name: value for name, value in (settings.get("Attributes") or {}).items() if name not in self.stubborn
        }
        current = self._bios["Attributes"]
        current.update(waiting)
        if self._shown is None:
            settings.pop("Attributes", None)
        else:
            settings["Attributes"] = {name: current[name] for name in self._shown if name in current}
        refused = {
            "MessageId": "BIOS.1.0.SettingNotApplied",
            "Message": f"The BIOS did not take {', '.join(sorted(self.stubborn))}.",
        }
        self._bios.setdefault("@Redfish.Settings", {})["Messages"] = (
            [refused] if self.stubborn else [{"MessageId": "Base.1.0.Success"}]
        )
        if job:
            job.update(
                JobState="Failed" if self.stubborn else "Completed",
                CompletionTime=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
            )
        self._touch()

    def changed(self) -> Tree:
        """All resources that writes and resets change."""
        members = self.answers.get(self.jobs, {}).get("Members", ())
        paths = (
            self.path,
            self.settings,
            *([self.jobs] if self.jobs else []),
            *(_plain(member["@odata.id"]) for member in members),
        )
        return {path: self.answers[path] for path in paths if path in self.answers}

    def _touch(self) -> None:
        settings = self.answers.get(self.settings, {})
        if "@odata.etag" in settings:
            digest = hashlib.sha256(
                json.dumps([settings.get("Attributes"), settings["@odata.etag"]]).encode()
            ).hexdigest()
            settings["@odata.etag"] = f'"{digest[:12]}"'

    def _wrong(self, attributes: typing.Mapping[str, typing.Any]) -> typing.Optional[Answer]:
        rows = {row["AttributeName"]: row for row in self._registry()}
        for name, value in attributes.items():
            row = rows.get(name, {})
            if name not in self._bios["Attributes"]:
                return _refusal(
                    "PropertyUnknown", f"The property {name} is not in the list of valid properties for the resource."
                )
            if row.get("ReadOnly"):
                return _refusal(
                    "PropertyNotWritable",
                    f"The property {name} is a read only property and cannot be assigned a value.",
                )
            allowed = {
                word for one in row.get("Value") or () for word in (one.get("ValueName"), one.get("ValueDisplayName"))
            }
            if allowed and value not in allowed:
                return _refusal(
                    "PropertyValueNotInList",
                    f"The value {value} for the property {name} is not in the list of acceptable values.",
                )
        return None

    def _registry(self) -> list[Tree]:
        found = [
            one["RegistryEntries"]["Attributes"]
            for one in self.answers.values()
            if isinstance(one, dict) and "RegistryEntries" in one
        ]
        return list(found[0]) if found else []

    def _schedule(self) -> Answer:
        queue = self.answers[self.jobs]
        name = f"JID_{len(queue['Members']) + 1:012}"
        path = f"{self.jobs}/{name}"
        self.answers[path] = {**_JOB, "@odata.id": path, "Id": name}
        queue["Members"].append({"@odata.id": path})
        return Answer(202, None, (("Location", path),))


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
        found = self.answers.get(_plain(bare))
        if found is None:
            return self.message(404, "ResourceMissingAtURI")
        if query.startswith("$expand") and self.expands:
            return Answer(
                200, {**found, "Members": [self.answers[_plain(member["@odata.id"])] for member in found["Members"]]}
            )
        tag = found.get("@odata.etag") if isinstance(found, dict) else None
        return Answer(200, found, (("ETag", tag),) if tag and _plain(bare) == self.bios.settings else ())

    def patch(self, path: str, body: typing.Any, match: typing.Optional[str]) -> Answer:
        """New values for the settings object of the BIOS; anything else takes none."""
        with self._lock:
            self.written.append(body)
            if not self.bios.settings or _plain(path) != self.bios.settings:
                return self.message(405, "OperationNotAllowed")
            self._read_faults()
            answer = self.bios.write(body, match)
            self._save()
            return answer

    def post(self, path: str, body: typing.Any) -> Answer:
        """A reset of the system; nothing else can be asked for."""
        kind = body.get("ResetType") if isinstance(body, dict) else None
        if not self.bios.system or _plain(path) != self.bios.system + RESET:
            return self.message(404, "ResourceMissingAtURI")
        if kind not in (*RESTARTS, *STOPS):
            return _refusal(
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
        return Answer(status, _message(name, f"denied: {who.basic} {who.password} {who.token}"))

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


def _plain(path: str) -> str:
    return path.rstrip("/")


def _message(name: str, text: str) -> Tree:
    told = {"MessageId": f"Base.1.12.{name}", "Message": text}
    return {"error": {"code": told["MessageId"], "message": text, "@Message.ExtendedInfo": [told]}}


def _refusal(name: str, text: str, status: int = 400) -> Answer:
    return Answer(status, _message(name, text))


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
