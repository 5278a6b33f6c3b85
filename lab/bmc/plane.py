# SPDX-License-Identifier: GPL-3.0-or-later

"""The workers' BMCs: what a vendor's BMC answers, a BIOS that is kept, and a reset that starts the worker anew as its
BIOS says."""

from __future__ import annotations

import http.client
import json
import pathlib
import secrets
import ssl
import sys
import typing

from dev.steps import StepError

from ..description import Worker
from ..pki import Pki
from ..processes import Processes, wait_until
from . import bios, server

PORT = 443
USER = "linerate"
#: what real BMCs of each vendor have answered
TREES = pathlib.Path(__file__).parents[2] / "tests/unit/fixtures/redfish"
_READY_SECONDS = 30.0
#: words of vendors for an attribute that is on, and for the same one that is off
_WORDS = {"Enabled": "Disabled", "Enable": "Disable"}
_PATCH = {"Content-Type": "application/json"}


class Bmc:
    """The BMC of a worker.

    :param folder: of the lab
    """

    def __init__(self, worker: Worker, folder: pathlib.Path, processes: Processes) -> None:
        self.worker = worker
        self.name = f"{worker.name}.bmc"
        self.folder = folder / "bmc" / worker.name
        self._credentials = folder / "bmc" / "credentials.json"
        self._authority = folder / "pki" / "ca.crt"
        self._processes = processes

    def prepare(self, authority: Pki) -> None:
        """Write what it needs: its resources, its certificate, and the password, which all BMCs of the lab share as
        those of many a site do."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._credentials.exists():
            self._credentials.touch(mode=0o600)
            self._credentials.write_text(json.dumps({"user": USER, "password": secrets.token_urlsafe(16)}))
        answers = json.loads((TREES / f"{self.worker.bmc.vendor}.json").read_text(encoding="utf-8"))
        bios.Bios(answers).call(self.worker.uuid, self.worker.serial)
        (self.folder / "tree.json").write_text(json.dumps(answers), encoding="utf-8")
        authority.identity(self.name, self.name, hosts=(self.worker.bmc.address,))
        self._certificate(authority, self.name).rename(self.folder / "certificate.pem")

    def start(self, **others: typing.Any) -> None:
        """Start it, unless it runs.

        :param others: options of the server that are not as the inventory expects them; then nobody waits until it
            answers
        :raises StepError: it does not answer
        """
        usual = {
            "tree": self.folder / "tree.json",
            "certificate": self.folder / "certificate.pem",
            "credentials": self._credentials,
            "state": self.folder,
            "address": self.worker.bmc.address,
            "port": PORT,
        }
        options = [word for name, value in {**usual, **others}.items() for word in (f"--{name}", str(value))]
        options.append("--forever")
        # its last argument is the kind of reset
        reset = [sys.executable, "-m", "lab", "reset", self.worker.name]
        self._processes.start(
            self.name,
            [sys.executable, "-m", server.__name__, *options, "--reset", *reset],
            cwd=pathlib.Path(__file__).parents[2],
        )
        if not others and not wait_until(self._answers, _READY_SECONDS):
            self._processes.check(self.name)
            raise StepError(
                f"{self.name} does not answer after {_READY_SECONDS:.0f} s",
                f"see {self._processes.logs / self.name}.log",
            )

    def stop(self) -> None:
        self._processes.stop(self.name)

    def change_password(self) -> None:
        """As somebody does who tells nobody."""
        other = self.folder / "other.json"
        other.touch(mode=0o600)
        other.write_text(json.dumps({"user": USER, "password": secrets.token_urlsafe(16)}))
        self.stop()
        self.start(credentials=other)

    def slow_down(self, seconds: float) -> None:
        """Each of its answers takes that long from now on."""
        self.stop()
        self.start(latency=seconds)

    def expire(self, authority: Pki) -> None:
        """Its certificate was good until yesterday."""
        name = f"{self.name}-expired"
        authority.identity(name, self.name, hosts=(self.worker.bmc.address,), days=-1)
        self.stop()
        self.start(certificate=self._certificate(authority, name))

    def keep_settings(self, attributes: typing.Iterable[str]) -> None:
        """Its BIOS says yes to new values of these attributes, and does not take them at a reset."""
        self._tell(stubborn=sorted(attributes))

    def contend(self, on: bool) -> None:
        """Somebody else changes what waits in its BIOS whenever somebody writes."""
        self._tell(contended=on)

    def _tell(self, **told: typing.Any) -> None:
        """What goes wrong from now on, beside what does already."""
        path = self.folder / server.FAULTS
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**before, **told}))

    def alter(self, change: typing.Callable[[bios.Bios], None]) -> None:
        """Change what it answers, as if it had always been so."""
        self.stop()
        bios = self._bios
        change(bios)
        made = json.loads((self.folder / "tree.json").read_text())
        (self.folder / server.STATE).write_text(
            json.dumps({path: resource for path, resource in bios.answers.items() if resource != made.get(path)})
        )
        self.start()

    def _certificate(self, authority: Pki, name: str) -> pathlib.Path:
        """File with certificate and key of an identity."""
        certificate = self.folder / f"{name}.pem"
        certificate.touch(mode=0o600)
        certificate.write_text("".join(authority.path(f"{name}.{suffix}").read_text() for suffix in ("crt", "key")))
        return certificate

    @property
    def has_iommu(self) -> bool:
        """Whether the BIOS has its IOMMU switched on, as the worker boots next."""
        return self.attributes[self.worker.bmc.iommu] in _WORDS

    def switch_iommu(self, on: bool) -> None:
        """Enter it on the setup screen; it waits for a reset.

        :raises StepError: the BMC does not take it
        """
        now = self.attributes[self.worker.bmc.iommu]
        words = next((pair for pair in _WORDS.items() if now in pair), None)
        if words is None:
            raise StepError(f"{self.worker.bmc.iommu} is {now}, which is neither on nor off", f"look at {self.folder}")
        self.set({self.worker.bmc.iommu: words[0] if on else words[1]})

    @property
    def attributes(self) -> typing.Mapping[str, typing.Any]:
        """Of the BIOS as it is; what waits for a reset is not among them."""
        return self._bios.attributes

    @property
    def _bios(self) -> bios.Bios:
        """As the BMC has kept it."""
        answers = json.loads((self.folder / "tree.json").read_text())
        kept = self.folder / server.STATE
        if kept.exists():
            answers.update(json.loads(kept.read_text()))
        return bios.Bios(answers)

    def set(self, attributes: typing.Mapping[str, str]) -> None:
        """What somebody enters on the setup screen: it waits for a reset.

        :raises StepError: the BMC does not take it
        """
        settings = self._bios.settings
        body = {"Attributes": attributes, "@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
        etag = self._ask("GET", settings)
        self._ask("PATCH", settings, body, {"If-Match": etag} if etag else {})

    def reset(self) -> None:
        """Reset the worker; what waits in its BIOS is applied.

        :raises StepError: the BMC does not do it
        """
        self._ask("POST", self._bios.system + server.RESET, {"ResetType": "ForceRestart"})

    def _ask(
        self, method: str, path: str, body: typing.Any = None, headers: typing.Optional[typing.Mapping[str, str]] = None
    ) -> str:
        """Answers with the ETag of the resource; empty where it has none."""
        who = server.Credentials(**json.loads(self._credentials.read_text()))
        trust = ssl.create_default_context(cafile=str(self._authority))
        connection = http.client.HTTPSConnection(self.worker.bmc.address, PORT, context=trust, timeout=60)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {**_PATCH, "Authorization": who.basic, **(headers or {})})
            answer = connection.getresponse()
            said = answer.read().decode(errors="replace")
        except OSError as error:
            raise StepError(f"{self.name} does not answer: {error}", "see 'make lab-status'") from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise StepError(
                f"{self.name} answers {method} {path} with {answer.status}: {said[:300]}", "correct what it names"
            )
        return answer.headers.get("ETag") or ""

    def _answers(self) -> bool:
        try:
            self._ask("GET", "/redfish/v1/Systems")
        except StepError:
            return False
        return True
