# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs with one folder of the report: the second one is refused while the first one runs, also in another
container."""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import resume_run, start_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import folder_lock
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process.process import read_identity
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import (
    FolderInUse,
    get_holder,
    refuse_folder_in_use,
)

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: a task that begins a run. The process of the run is written as that of another container, in which it has another ID
TASK = """
import sys
from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import start_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import refuse_folder_in_use
refuse_folder_in_use(sys.argv[1])
options = {"report_dir": sys.argv[1], "fabrics": [], "waivers": None, "cluster": {}}
print(start_run(options, RunStart("", "", process="another-boot/4026531836/7/1"), "2.19").run)
"""
#: an ansible-playbook that has a task and goes on after it
PLAYBOOK = """
import subprocess, sys
done = subprocess.run([sys.executable, "-c", *sys.argv[1:]], capture_output=True, text=True)
print((done.stdout or done.stderr).strip().rpartition("\\n")[2], flush=True)
input()
"""
WISHES: typing.Mapping[str, typing.Any] = {"fabrics": [], "waivers": None, "cluster": {}}


@pytest.fixture(name="other")
def _other() -> typing.Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def begin(folder: pathlib.Path, process: str) -> str:
    return start_run({"report_dir": str(folder), **WISHES}, RunStart("", "", process=process), "2.19").run


def test_a_run_is_refused_in_a_folder_of_a_run_that_still_runs(
    tmp_path: pathlib.Path, other: subprocess.Popen[bytes]
) -> None:
    run = begin(tmp_path, read_identity(other.pid))
    with pytest.raises(FolderInUse, match=rf"run {run} \(process {other.pid}\) still runs") as refused:
        refuse_folder_in_use(str(tmp_path))
    assert "-e rdma_report_dir=" in refused.value.remedy
    other.kill()
    other.wait()
    refuse_folder_in_use(str(tmp_path))


@pytest.fixture(name="elsewhere")
def _elsewhere(tmp_path: pathlib.Path) -> typing.Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "collections")}
    command = [sys.executable, "-c", PLAYBOOK, TASK, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    yield process
    process.kill()
    process.communicate()


def await_lock(folder: pathlib.Path) -> None:
    """Return as soon as the lock of a folder is free."""
    with (folder / folder_lock.LOCK).open("rb") as file:
        signal.alarm(120)
        fcntl.flock(file, fcntl.LOCK_EX)
        signal.alarm(0)


def test_a_run_in_another_container_keeps_its_folder_until_its_end(
    tmp_path: pathlib.Path, elsewhere: subprocess.Popen[str]
) -> None:
    """The process of its task has ended, and that of the run is not known here."""
    assert elsewhere.stdout is not None
    run = elsewhere.stdout.readline().strip()
    with pytest.raises(FolderInUse, match=f"^run {run} in another container or on another machine still runs"):
        refuse_folder_in_use(str(tmp_path))
    elsewhere.kill()
    elsewhere.wait()
    await_lock(tmp_path)
    refuse_folder_in_use(str(tmp_path))


def test_a_run_in_another_container_that_has_not_written_its_start_keeps_its_folder(tmp_path: pathlib.Path) -> None:
    assert folder_lock.lock_folder(str(tmp_path), os.getpid()) == folder_lock.LockOutcome()
    with pytest.raises(FolderInUse, match=r"^another run in another container or on another machine still runs"):
        refuse_folder_in_use(str(tmp_path))
    begin(tmp_path, get_holder())
    refuse_folder_in_use(str(tmp_path))


def test_a_folder_without_locks_is_used_with_a_warning(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    refuse_folder_in_use(str(tmp_path))
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot be locked (No locks available)" in said and "-e rdma_report_dir=" in said


@pytest.mark.parametrize("process", ["", "another-boot/4026531836/1/1", "no identity", get_holder()])
def test_a_run_of_this_process_or_of_one_whose_end_is_not_known_keeps_nobody_out(
    tmp_path: pathlib.Path, process: str
) -> None:
    begin(tmp_path, process)
    refuse_folder_in_use(str(tmp_path))


@pytest.mark.parametrize("text", [None, "{"], ids=["no file", "damaged"])
def test_a_folder_without_a_readable_start_of_a_run_is_free(tmp_path: pathlib.Path, text: typing.Optional[str]) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    refuse_folder_in_use(str(tmp_path))


def test_a_resumed_run_belongs_to_the_process_that_resumed_it(tmp_path: pathlib.Path) -> None:
    begin(tmp_path, "boot/1/2/3")
    options = {"report_dir": str(tmp_path), "stage": "validate", "resume_from": "validate", **WISHES}
    resumed = resume_run({**options, "facts_max_age": 3600}, (), False, process="boot/1/4/5")
    assert resumed.start().process == "boot/1/4/5"
