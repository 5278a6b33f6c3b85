# SPDX-License-Identifier: GPL-3.0-or-later

"""All tests of a size: ``python -m dev.test [check | test | test-all]``, as the targets of make call it. What they hold
is in dev/parts.py.

The first part that fails ends it. One lab serves molecule and the tests on the lab, and is taken down at the end. It is
built beside all that needs no lab, which leaves a processor idle now and then: on a fresh machine that takes longest of
all. What runs beside guests makes them lose the packets of stage reachability, unless it takes no processor from them
(dev/idle.py). Where that can't be had it runs before them.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import typing

from . import times
from .idle import Group, idle_group, within
from .parts import ALONE, BESIDE, END, LAB, MEANWHILE, Part, parts_of
from .sizes import SIZES, TEST
from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, ROOT, StepError, log_of, say

# how Ansible, pytest and our own tools begin a line that names a cause
_CAUSE = re.compile(r"^(\x1b\[[0-9;]*m|\s)*(fatal: |\[ERROR\]|E  |FAILED|ERROR)")
_CAUSES = 20
_CAUSE_CHARACTERS = 600
# how a build of the lab begins that was not in the cache (lab/cache.py)
_MADE = re.compile(r"^- build ", re.MULTILINE)

Failed = typing.Optional[pathlib.Path]


def main() -> int:
    """Run the parts.

    :returns: exit code: 0, or 1 when a part failed
    """
    size = (sys.argv[1:] or [TEST])[0]
    if size not in SIZES:
        sys.exit(f"FAILED: there is no size '{size}'\nWhat to do: Give one of {', '.join(SIZES)}.")
    run = Run()
    start, begun = time.monotonic(), time.time()
    try:
        failed = run.run(parts_of(size))
    finally:
        total = time.monotonic() - start
        _tell_times(size, run, total)
    say(f"== {'FAILED' if failed else f'all of make {size} passed'} after {total:.0f} s")
    if failed:
        # once more as the last words: the clean-up has scrolled them away, and many a CI shows the end alone
        say(f"== what failed, of {failed.relative_to(ROOT)}:")
        for line in [*_causes(failed.read_text(encoding="utf-8", errors="replace")), *_findings(begun)]:
            say(f"  | {line}")
    return 1 if failed else 0


def _tell_times(size: str, run: Run, total: float) -> None:
    """Nothing fails by it."""
    times.keep(size, run.times, total)
    try:
        known = times.read_page(times.PAGE.read_text(encoding="utf-8"))
    except StepError as error:
        say(f"== times; nothing to compare them with: {error}")
        known = {}
    else:
        say("== times, and what they were before by docs/lab.md")
    for line in times.show(run.times, known):
        say(f"  {line}")


class Run:
    """Parts that run, and what they took.

    :ivar times: of those that ended, in this order
    """

    def __init__(self) -> None:
        self.times: list[times.Time] = []

    def run(self, parts: typing.Iterable[Part]) -> Failed:
        """Run them, each in its place.

        :returns: nothing, or where the output of the first part lies that failed
        """
        chosen = tuple(parts)
        with idle_group() as group:
            places = {MEANWHILE: ALONE} if group is None else {}
            at = {
                place: [part for part in chosen if places.get(part.place, part.place) == place]
                for place in (BESIDE, ALONE, MEANWHILE, LAB, END)
            }
            with contextlib.ExitStack() as stack:
                waits = [stack.enter_context(self.beside(part)) for part in at[BESIDE]]
                failed = self._first(at[ALONE]) or _first_of(waits)
            if failed:
                return failed
            with contextlib.ExitStack() as stack:
                waits = [stack.enter_context(self.beside(part, group)) for part in at[MEANWHILE]]
                try:
                    failed = self._first(at[LAB])
                finally:
                    # before the others are waited for: guests that nobody needs any more take two thirds of a processor
                    # each
                    ends = [self.part(part) for part in at[END]]
                return failed or next((log for log in ends if log), None) or _first_of(waits)

    def _first(self, parts: typing.Iterable[Part]) -> Failed:
        return next((log for log in map(self.part, parts) if log), None)

    @contextlib.contextmanager
    def beside(self, part: Part, group: Group = None) -> typing.Iterator[typing.Callable[[], Failed]]:
        """Run a part beside others, which have the terminal; unless it is waited for, it ends with them.

        :param group: in which it runs
        :returns: waits for the part, and returns as ``part`` does
        """
        start = time.monotonic()
        log = log_of(f"test {part.name}")
        ended: list[tuple[float, float]] = []
        command = ("nice", "-n", "19", *part.command)
        command = within(group, command) if group else command
        # with what it starts: a compiler would go on
        with (
            log.open("wb") as kept,
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(part.environment),
                stdout=kept,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            # each session has the same share of the processor where the kernel groups by them, whatever nice says
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{process.pid}/autogroup").write_text("19", encoding="ascii")
            # its end is when it ends, and not when the others have
            reaper = threading.Thread(
                target=lambda: ended.append((_reap(process), time.monotonic() - start)), daemon=True
            )
            reaper.start()

            def wait() -> Failed:
                reaper.join()
                sys.stdout.write(log.read_text(encoding="utf-8", errors="replace"))
                return self._ended(part.name, process.returncode, *ended[0], log, ", beside what is above")

            try:
                yield wait
            finally:
                if reaper.is_alive():
                    os.killpg(process.pid, signal.SIGTERM)
                    reaper.join()
                    self._ended(part.name, process.returncode, *ended[0], log, ", ended with what is above")

    def part(self, part: Part) -> Failed:
        """Run a part; its output is shown as it comes, and kept.

        :returns: nothing, or where the output of a part lies that failed
        """
        say(f"== {part.name}")
        start = time.monotonic()
        log = log_of(f"test {part.name}")
        with (
            log.open("wb") as kept,
            subprocess.Popen(
                part.command,
                cwd=ROOT,
                env=_environment(part.environment),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            for line in typing.cast(typing.BinaryIO, process.stdout):
                kept.write(line)
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
            processor = _reap(process)
        return self._ended(part.name, process.returncode, processor, time.monotonic() - start, log)

    def _ended(self, name: str, code: int, processor: float, wall: float, log: pathlib.Path, how: str = "") -> Failed:
        builds = name.startswith(times.BUILDS) and code == 0
        cached = not _MADE.search(log.read_text(encoding="utf-8", errors="replace")) if builds else None
        self.times.append(times.Time(name, round(wall, 1), round(processor, 1), cached, code != 0))
        say(f"== {name}{how}: {'ok' if code == 0 else f'FAILED with {code}'}, {wall:.0f} s")
        return log if code else None


def _first_of(waits: typing.Iterable[typing.Callable[[], Failed]]) -> Failed:
    return next((log for log in (wait() for wait in waits) if log), None)


def _reap(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; seconds of a processor that it and what it has waited for took."""
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _environment(more: typing.Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **ANSIBLE_ENV, "PYTHONUNBUFFERED": "1", **more}


def _causes(output: str) -> list[str]:
    lines = [line[:_CAUSE_CHARACTERS] for line in output.splitlines() if line.strip()]
    return ([line for line in lines if _CAUSE.match(line)] or lines)[-_CAUSES:]


def _findings(begun: float) -> typing.Iterator[str]:
    """What closed a gate in the last run of site.yml, of whichever part it was. The collection itself says which
    findings those are."""
    folder = BUILD / "report"
    if not (folder / "report.json").exists() or (folder / "report.json").stat().st_mtime < begun:
        return
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import (
        build_report,
        list_closing,
    )
    from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records

    report = build_report(*read_records(str(folder / "stages")), run="", created="")
    yield f"{folder.relative_to(ROOT)}: {report.summary}"
    for finding in [finding for stage in report.stages if stage.state == "closed" for finding in list_closing(stage)][
        :_CAUSES
    ]:
        yield f"{finding.check} on {finding.subject}: {finding.status}, {finding.measured}. {finding.why}"[
            :_CAUSE_CHARACTERS
        ]


if __name__ == "__main__":
    sys.exit(main())
