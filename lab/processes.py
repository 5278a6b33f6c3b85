# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's processes on the host: started in its network namespace, remembered by id and start time, ended by their
own ids."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
import typing

from dev.steps import StepError

STOP_SECONDS = 10.0


class Processes:
    """Processes of one lab.

    :param folder: the lab's folder (.lab); records go to run/, outputs to log/
    :param namespace: network namespace to start them in
    """

    def __init__(self, folder: pathlib.Path, namespace: str) -> None:
        self.records = folder / "run"
        self.logs = folder / "log"
        self.namespace = namespace
        # those that this program started itself: of them alone it learns how they end
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        for path in (self.records, self.logs):
            path.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        name: str,
        argv: typing.Sequence[typing.Union[str, pathlib.Path]],
        env: typing.Optional[typing.Mapping[str, str]] = None,
        cwd: typing.Optional[pathlib.Path] = None,
        stdin: typing.Optional[int] = None,
    ) -> int:
        """Start it, unless it runs; its output goes to log/<name>.log. Returns the process id.

        :param stdin: file descriptor, for a console
        """
        running = self.pid(name)
        if running:
            return running
        words = ["ip", "netns", "exec", self.namespace, *(str(word) for word in argv)]
        with open(self.logs / f"{name}.log", "ab") as log:
            # 'ip netns exec' becomes the command: the id is the command's own
            process = subprocess.Popen(
                words,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[name] = process
        self._record(name).write_text(json.dumps({"pid": process.pid, "started": _start_time(process.pid)}))
        return process.pid

    def pid(self, name: str) -> typing.Optional[int]:
        """Process id, or None when it does not run. A number that another process has since been given is not taken for
        it."""
        try:
            record = json.loads(self._record(name).read_text())
        except FileNotFoundError:
            return None
        started = _start_time(record["pid"])
        return record["pid"] if started is not None and started == record["started"] else None

    def alive(self, name: str) -> bool:
        return self.pid(name) is not None

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.records.glob("*.json"))

    def signal(self, name: str, number: signal.Signals) -> None:
        """:raises StepError: it does not run"""
        pid = self.pid(name)
        if pid is None:
            raise StepError(f"{name} does not run", "see 'make lab-status'")
        os.kill(pid, number)

    def stop(self, *names: str) -> None:
        """End them side by side and wait until they are gone; SIGKILL after some seconds."""
        end([pid for pid in map(self.pid, names) if pid is not None])
        for name in names:
            self._record(name).unlink(missing_ok=True)

    def log(self, name: str, lines: int = 15) -> str:
        """The end of its output, for an error message."""
        try:
            return "\n".join((self.logs / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no output)"

    def check(self, *names: str) -> None:
        """:raises StepError: one of them has ended"""
        for name in names:
            if not self.alive(name):
                raise StepError(self.end_of(name), f"the whole output is in {self.logs / name}.log")

    def end_of(self, name: str) -> str:
        """How a process that runs no more has ended, as far as is known, with its last output."""
        child = self._children.get(name)
        code = child.poll() if child else None
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by {signal.Signals(-code).name}"
        return f"{name} has ended{how}; its last output:\n{self.log(name)}"

    def _record(self, name: str) -> pathlib.Path:
        return self.records / f"{name}.json"


def end(pids: typing.Sequence[int]) -> None:
    """SIGTERM to all, and SIGKILL to those that are still there some seconds later. Returns when they are gone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                # a stopped process (a fault of ours) takes SIGTERM only when it goes on
                os.kill(pid, signal.SIGCONT)
        if wait_until(lambda: all(_start_time(pid) is None for pid in pids), STOP_SECONDS, 0.05):
            return


def wait_until(condition: typing.Callable[[], bool], limit: float, interval: float = 0.2) -> bool:
    """Ask every ``interval`` seconds until it holds; False when ``limit`` seconds have passed."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True


def _start_time(pid: int) -> typing.Optional[str]:
    """Start time of a process in clock ticks since boot (proc(5), field 22); None when it is gone or a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]
