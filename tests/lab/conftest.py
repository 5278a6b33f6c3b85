# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests that need the lab. They run the playbooks as a user does, on a lab that is up, and take back every fault that
they inject."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import typing

import pytest
import yaml

from lab.processes import wait_until

ROOT = pathlib.Path(__file__).parent.parent.parent
#: in the lab's network namespace
PLAYBOOK = ROOT / "lab/ansible-playbook"
PLAYBOOK_SECONDS = 900
LINES_OF_END = 60
SETTINGS = yaml.safe_load((ROOT / "inventory/lab/group_vars/all.yml").read_text())
#: label of all that the collection makes
MANAGED = "app.kubernetes.io/managed-by=linerate.rdma"


def record_of(path: pathlib.Path) -> dict[str, typing.Any]:
    """A record: its head, with the findings of the other lines as ``judged``."""
    head, *judged = map(json.loads, path.read_text().splitlines())
    return {**head, "judged": judged}


@dataclasses.dataclass(frozen=True)
class Run:
    """A playbook that ended.

    :ivar records: of each stage, as it left them for the report
    """

    code: int
    output: str
    report_folder: pathlib.Path

    @property
    def end(self) -> str:
        """The last lines of the output: they say why it ended, and fit into the record of a test that failed."""
        return "\n".join(self.output.splitlines()[-LINES_OF_END:])

    @property
    def records(self) -> dict[str, typing.Any]:
        return {path.stem: record_of(path) for path in (self.report_folder / "stages").glob("*.jsonl")}

    def fact(self, kind: str, node: str = "cluster") -> typing.Any:
        """The value of a fact."""
        return json.loads((self.report_folder / "facts" / kind / f"{node}.json").read_text())["value"]

    def findings(self, stage: str, *status: str) -> list[dict[str, str]]:
        """Findings of a stage with one of these statuses."""
        return [item["finding"] for item in self.records[stage]["judged"] if item["finding"]["status"] in status]

    def finding(self, stage: str, check: str, subject: str) -> dict[str, str]:
        """The one finding of a check on a subject."""
        found = [
            item["finding"]
            for item in self.records[stage]["judged"]
            if item["finding"]["check"] == check and item["finding"]["subject"] == subject
        ]
        assert len(found) == 1, f"{check} on {subject}: {found}\n{self.end}"
        (one,) = typing.cast(list[dict[str, str]], found)
        return one

    def recap(self, host: str, counter: str) -> int:
        """A counter of Ansible's play recap: ok, changed, unreachable, failed..."""
        match = re.search(rf"^{re.escape(host)} .*\b{counter}=(\d+)", self.output, re.MULTILINE)
        assert match, self.end
        return int(match[1])


@dataclasses.dataclass(frozen=True)
class Playbook:
    """A playbook that runs, and the file that its output goes to."""

    process: subprocess.Popen[bytes]
    log: pathlib.Path
    report_folder: pathlib.Path

    def wait(self, seconds: float = PLAYBOOK_SECONDS) -> Run:
        self.process.wait(seconds)
        return Run(self.process.returncode, self.log.read_text(), self.report_folder)

    def await_text(self, text: str, times: int = 1) -> None:
        """Wait until the playbook has said it so often; one that ends before is an error."""
        deadline = time.monotonic() + PLAYBOOK_SECONDS
        while self.log.read_text().count(text) < times:
            assert self.process.poll() is None, f"ended without saying '{text}' {times} times:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"has not said '{text}' {times} times:\n{self.log.read_text()}"
            time.sleep(0.2)


class Lab:
    """The running lab, and playbooks on it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``python -m lab`` with these words."""
        return subprocess.run(
            [sys.executable, "-m", "lab", *words], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
        )

    @contextlib.contextmanager
    def fault(self, name: str, **target: str) -> typing.Iterator[None]:
        """Inject a fault; take it back whatever happens."""
        words = [word for key, value in target.items() for word in (f"--{key}", value)]
        injected = self.command("fault", name, "on", *words)
        try:
            assert injected.returncode == 0, injected.stderr
            yield
        finally:
            removed = self.command("fault", name, "off", *words)
        assert removed.returncode == 0, removed.stderr

    @contextlib.contextmanager
    def running(
        self,
        name: str,
        *options: str,
        variables: typing.Optional[typing.Mapping[str, typing.Any]] = None,
        by_pods: bool = False,
        kubeconfig: str = "",
        inventory: typing.Optional[pathlib.Path] = None,
    ) -> typing.Iterator[Playbook]:
        """A playbook of the collection that runs meanwhile, its report in this test's own folder; it ends with the
        block.

        :param kubeconfig: of another user than the lab's admin
        :param by_pods: with nothing but the kubeconfig, all nodes by observers
        :param inventory: in place of the lab's own
        """
        other = {"rdma_kubeconfig": kubeconfig} if kubeconfig else {}
        given = json.dumps({"rdma_report_dir": str(self.folder), **other, **(variables or {})})
        log = self.folder / "output.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [
                    PLAYBOOK,
                    "-i",
                    inventory or f"inventory/{'lab-pods' if by_pods else 'lab'}",
                    name,
                    "-e",
                    given,
                    *options,
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    **({"LAB_KUBECONFIG": kubeconfig} if kubeconfig else {}),
                    "ANSIBLE_FORCE_COLOR": "0",
                    "ANSIBLE_NOCOLOR": "1",
                },
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        try:
            yield Playbook(process, log, self.folder)
        finally:
            process.kill()
            process.wait()

    def playbook(self, name: str, *options: str, seconds: float = PLAYBOOK_SECONDS, **how: typing.Any) -> Run:
        """Run a playbook of the collection to its end; see ``running``."""
        with self.running(name, *options, **how) as playbook:
            return playbook.wait(seconds)

    def apply(
        self, *definitions: typing.Mapping[str, typing.Any], subresource: str = "", manager: str = "test"
    ) -> None:
        """Server-side apply of objects, or of this part of them: ``status``.

        :param manager: field manager; a teardown deletes only what ``linerate.rdma`` has written
        """
        script = (
            "for o in json.loads(args[0]):\n"
            "    r = kind(o).subresources[args[1]] if args[1] else kind(o)\n"
            "    client.server_side_apply(r, o, **place(o), field_manager=args[2], force_conflicts=True)\n"
        )
        self._client(script, json.dumps(definitions), subresource, manager)

    def delete(self, *definitions: typing.Mapping[str, typing.Any]) -> None:
        """Delete these objects."""
        self._client("for o in json.loads(args[0]):\n    kind(o).delete(**place(o))\n", json.dumps(definitions))

    @contextlib.contextmanager
    def present(self, *definitions: typing.Mapping[str, typing.Any]) -> typing.Iterator[None]:
        """These objects are there meanwhile."""
        self.apply(*definitions)
        try:
            yield
        finally:
            self.delete(*reversed(definitions))
            # a namespace is gone some time after its deletion, and takes nothing new until then
            gone = {item["metadata"]["name"] for item in definitions if item["kind"] == "Namespace"}
            assert wait_until(lambda: not gone & self.namespaces(), 60), f"namespaces that do not go: {gone}"

    def namespaces(self) -> set[str]:
        """Names of the namespaces that are there, or are on their way out."""
        return {item["metadata"]["name"] for item in self.objects("v1/Namespace")}

    def in_pod(self, namespace: str, name: str, container: str, *command: str) -> str:
        """Output of a command in a pod, which must end well."""
        script = (
            # with the content loaded beforehand, JSON would come back as Python writes it
            "call = kubernetes.client.CoreV1Api(client.client).connect_get_namespaced_pod_exec\nway = {'container':"
            " args[2], 'command': args[3:], 'stdout': True, 'stderr': True, '_preload_content': False}\ndone ="
            " kubernetes.stream.stream(call, args[1], args[0],"
            " **way)\ndone.run_forever(timeout=60)\nprint(done.read_stdout())\nsys.exit(done.read_stderr() if"
            " done.returncode else 0)\n"
        )
        return self._client(script, namespace, name, container, *command)

    def _client(self, script: str, *arguments: str) -> str:
        """Output of a script in the lab's network namespace.

        It finds a Kubernetes client in ``client``, its arguments in ``args``, and functions for the kind of an object
        and for where it is.
        """
        opened = (
            "import json, sys, kubernetes.config, kubernetes.dynamic, kubernetes.stream\n"
            "client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(sys.argv[1]))\n"
            "args = sys.argv[2:]\n"
            "kind = lambda o: client.resources.get(api_version=o['apiVersion'], kind=o['kind'])\n"
            "place = lambda o: {'name': o['metadata']['name'], 'namespace': o['metadata'].get('namespace')}\n"
        )
        done = self.command("exec", sys.executable, "-c", opened + script, ".lab/pki/admin.kubeconfig", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def background(self, *words: str, said: str = "") -> typing.Iterator[pathlib.Path]:
        """A command in the lab's network namespace meanwhile; the file that its output goes to.

        :param said: text that must be there before the block begins
        """
        log = self.folder / "background.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "lab", "exec", *words], cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT
            )
        try:
            if said:
                Playbook(process, log, self.folder).await_text(said)
            yield log
        finally:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def running_on_demand(self, name: str) -> typing.Iterator[None]:
        """What ``python -m lab NAME on`` starts is there meanwhile; all that came of it goes with it."""
        started = self.command(name, "on")
        try:
            assert started.returncode == 0, started.stderr
            yield
        finally:
            stopped = self.command(name, "off")
        assert stopped.returncode == 0, stopped.stderr

    @contextlib.contextmanager
    def definitions(self) -> typing.Iterator[None]:
        """Kinds of operators that do not run here are served meanwhile; with them all objects of these kinds go."""
        with self.running_on_demand("definitions"):
            yield

    @contextlib.contextmanager
    def machines(self, *options: str) -> typing.Iterator[pathlib.Path]:
        """OpenShift's machine config controller meanwhile, and what stands in for its daemon on the nodes; the file
        that the latter's output goes to.

        :param options: of machine_config_daemon
        """
        stand_in = (sys.executable, "-m", "tests.lab.machine_config_daemon", ".lab/pki/admin.kubeconfig", *options)
        with self.running_on_demand("machines"), self.background(*stand_in, said="ready") as log:
            yield log

    def objects(self, kind: str, selector: str = "") -> list[dict[str, typing.Any]]:
        """Objects of the API server.

        :param kind: with its version: v1/Pod
        :param selector: of labels; empty: all of them
        """
        script = (
            "r = client.resources.get(api_version=args[0], kind=args[1]);print(json.dumps([i.to_dict() for i in"
            " r.get(label_selector=args[2]).items]))"
        )
        version, _slash, name = kind.rpartition("/")
        found: list[dict[str, typing.Any]] = json.loads(self._client(script, version, name, selector))
        return found


@pytest.fixture
def lab(tmp_path: pathlib.Path) -> Lab:
    """The lab, which 'make lab' has started; a lab that is down or damaged is an error here, not a reason to pass."""
    here = Lab(tmp_path)
    status = here.command("status")
    assert status.returncode == 0, f"the lab is not whole, run 'make lab':\n{status.stdout}{status.stderr}"
    return here
