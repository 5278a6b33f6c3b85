# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs with one folder of the report: the second one is refused while the first one runs."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import resume_run, start_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process.process import read_identity
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import (
    FolderInUse,
    get_holder,
    refuse_folder_in_use,
)

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
