# SPDX-License-Identifier: GPL-3.0-or-later

"""All tests, in the order of their cost; the first part that fails ends it. One lab serves molecule and the tests on the lab, and is taken down at the end.

The lab is built beside all that needs no lab, which leaves a processor idle now and then: on a fresh machine that takes longest of all. No guest runs yet.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import typing

from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, ROOT, VENV, log_of, say

PYTHON = str(VENV / "bin" / "python")
MOLECULE = [str(VENV / "bin" / "molecule")]
# its frame around Ansible's output folds the lines that name a cause
UNFRAMED = {"MOLECULE_COMMAND_BORDERS": "false"}
# dev.sanity has made its environment by then
_ON_OLDEST = ("green_twice", "wrong_type", "broken_role", "never_dropped", "busy_server")
OLDEST = [PYTHON, "-m", "pytest", "-n", "auto", *[f"tests/unit/house/test_{name}.py" for name in ("frame", "report_archive")], "-k", " or ".join(_ON_OLDEST)]
#: cores on which each string is a template that nobody marks
UNTAGGED = ("2.16", "2.18")
HOSTILE = [PYTHON, "-m", "pytest", "-n", "auto", "tests/unit/hostile/test_templates.py"]
# how Ansible, pytest and our own tools begin a line that names a cause
_CAUSE = re.compile(r"^(\x1b\[[0-9;]*m|\s)*(fatal: |\[ERROR\]|E  |FAILED|ERROR)")
_CAUSES = 20
_CAUSE_CHARACTERS = 600


def main() -> int:
    """Run the parts.

    :returns: exit code: 0, or 1 when a part failed
    """
    start, begun = time.monotonic(), time.time()
    # galaxy-importer gives its linter three minutes: nothing may be taken from it
    with _beside("lab build", ["nice", "-n", "19", PYTHON, "-m", "lab", "build"]) as built:
        failed = (
            _part("lint", [PYTHON, "-m", "dev.lint"])
            or _part("tests without a lab", [PYTHON, "-m", "dev.unit"])
            or _part("molecule, scenario judge", [*MOLECULE, "test", "--scenario-name", "judge"], UNFRAMED)
            or _part("the frame on the oldest ansible-core", OLDEST, _core("2.16"))
            or next((log for log in (_part(f"hostile texts on ansible-core {core}", HOSTILE, _core(core)) for core in UNTAGGED) if log), None)
            or built()
        )
    failed = failed or _on_the_lab()
    say(f"== {'FAILED' if failed else 'all tests passed'} after {time.monotonic() - start:.0f} s")
    if failed:
        # once more as the last words: the clean-up has scrolled them away, and many a CI shows the end alone
        say(f"== what failed, of {failed.relative_to(ROOT)}:")
        for line in [*_causes(failed.read_text(encoding="utf-8", errors="replace")), *_findings(begun)]:
            say(f"  | {line}")
    return 1 if failed else 0


def _core(release: str) -> typing.Dict[str, str]:
    """What makes tests run the ansible-playbook of a release."""
    return {"LINERATE_ANSIBLE_PLAYBOOK": str(BUILD / f"venv-core-{release}" / "bin" / "ansible-playbook")}


def _on_the_lab() -> typing.Optional[pathlib.Path]:
    """Molecule first: it wants the lab as it is made. Its destroy comes last, also when something failed, and ends the namespace that the rest is in."""
    inside = [PYTHON, "-m", "lab", "exec"]
    try:
        failed = (
            _part("lab", [PYTHON, "-m", "lab", "up"])
            or _part("molecule, scenario default", [*inside, *MOLECULE, "test", "--scenario-name", "default", "--destroy", "never"], UNFRAMED)
            or _part("tests on the lab", [PYTHON, "-m", "pytest", "tests/lab", "-m", "not thorough", "--durations", "20"])
        )
    finally:
        # molecule leaves out what it does not remember having made; the second one proves in any case that nothing is left
        destroyed = _part("molecule destroy", [*MOLECULE, "destroy", "--scenario-name", "default"], UNFRAMED)
        down = _part("lab down", [PYTHON, "-m", "lab", "down"])
    return failed or destroyed or down


@contextlib.contextmanager
def _beside(name: str, command: typing.Sequence[str]) -> typing.Iterator[typing.Callable[[], typing.Optional[pathlib.Path]]]:
    """Run a part beside others, which have the terminal; unless it is waited for, it ends with them.

    :returns: waits for the part, and returns as ``_part`` does
    """
    start = time.monotonic()
    log = log_of(f"test {name}")
    # with what it starts: a compiler would go on
    with (
        log.open("wb") as kept,
        subprocess.Popen(command, cwd=ROOT, env=_environment(), stdout=kept, stderr=subprocess.STDOUT, start_new_session=True) as process,
    ):
        # each session has the same share of the processor where the kernel groups by them, whatever nice says
        with contextlib.suppress(OSError):
            pathlib.Path(f"/proc/{process.pid}/autogroup").write_text("19", encoding="ascii")

        def wait() -> typing.Optional[pathlib.Path]:
            process.wait()
            sys.stdout.write(log.read_text(encoding="utf-8", errors="replace"))
            return _ended(f"{name}, beside what is above", process.returncode, start, log)

        try:
            yield wait
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)


def _environment(more: typing.Optional[typing.Mapping[str, str]] = None) -> typing.Dict[str, str]:
    return {**os.environ, **ANSIBLE_ENV, "PYTHONUNBUFFERED": "1", **(more or {})}


def _part(name: str, command: typing.Sequence[str], environment: typing.Optional[typing.Mapping[str, str]] = None) -> typing.Optional[pathlib.Path]:
    """Run a part; its output is shown as it comes, and kept.

    :returns: nothing, or where the output of a part lies that failed
    """
    say(f"== {name}")
    start = time.monotonic()
    log = log_of(f"test {name}")
    with (
        log.open("wb") as kept,
        subprocess.Popen(command, cwd=ROOT, env=_environment(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        for line in typing.cast(typing.BinaryIO, process.stdout):
            kept.write(line)
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
    return _ended(name, process.returncode, start, log)


def _ended(name: str, code: int, start: float, log: pathlib.Path) -> typing.Optional[pathlib.Path]:
    say(f"== {name}: {'ok' if code == 0 else f'FAILED with {code}'}, {time.monotonic() - start:.0f} s")
    return log if code else None


def _causes(output: str) -> typing.List[str]:
    lines = [line[:_CAUSE_CHARACTERS] for line in output.splitlines() if line.strip()]
    return ([line for line in lines if _CAUSE.match(line)] or lines)[-_CAUSES:]


def _findings(begun: float) -> typing.Iterator[str]:
    """What closed a gate in the last run of site.yml, of whichever part it was. The collection itself says which findings those are."""
    folder = BUILD / "report"
    if not (folder / "report.json").exists() or (folder / "report.json").stat().st_mtime < begun:
        return
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.linerate.rdma.plugins.module_utils._observe.records import read_records
    from ansible_collections.linerate.rdma.plugins.module_utils._report.verdict import build, closing

    report = build(*read_records(str(folder / "stages")), run="", created="")
    yield f"{folder.relative_to(ROOT)}: {report.summary}"
    for finding in [finding for stage in report.stages if stage.state == "closed" for finding in closing(stage)][:_CAUSES]:
        yield f"{finding.check} on {finding.subject}: {finding.status}, {finding.measured}. {finding.why}"[:_CAUSE_CHARACTERS]


if __name__ == "__main__":
    sys.exit(main())
