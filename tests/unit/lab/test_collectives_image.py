# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of stage collectives: it has what the stage starts, and above the pods' image what that lacks alone."""

from __future__ import annotations

import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import Collectives, TestName
from dev.steps import StepError
from lab import description, workers
from lab.collectives import image
from lab.guest_agent import Done


def test_the_programs_are_where_the_intent_looks_for_them() -> None:
    assert f"/{image.FOLDER}" == Collectives("image", "1", "1Gi").program_folder
    # the stand-in has rings alone
    assert {f"{name}_perf" for name in typing.get_args(TestName)} == {*image.PROGRAMS, "alltoall_perf"}
    source = image.SOURCE.read_text(encoding="utf-8")
    assert all(f'"{name}"' in source for name in image.PROGRAMS)


def test_the_upper_layer_has_what_the_lower_one_lacks(tmp_path: pathlib.Path) -> None:
    lower, root, upper = (tmp_path / name for name in ("lower", "root", "upper"))
    for place, files in (
        (lower, {"lib/same": "1", "lib/other": "1"}),
        (root, {"lib/same": "1", "lib/other": "2", "bin/new": "3", "lib/libLLVM-17.so.1": "4"}),
    ):
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
    for place, target in ((lower, "same"), (root, "same")):
        (place / "lib/link").symlink_to(target)
    (root / "bin/mpirun").symlink_to("new")
    image.copy_differences(root, lower, upper)
    found = sorted(path.relative_to(upper).as_posix() for path in upper.rglob("*") if not path.is_dir())
    assert found == ["bin/mpirun", "bin/new", "lib/other"]
    assert (upper / "bin/mpirun").is_symlink() and (upper / "lib/other").read_text() == "2"


def test_a_worker_that_does_not_take_the_image_is_told_with_its_words(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "collectives.tar"
    archive.write_bytes(b"image")
    found = description.read()
    for worker in found.workers:
        workers.share(tmp_path, worker).mkdir(parents=True)

    class Agent:
        def run(self, argv: typing.Sequence[str], limit: float) -> Done:
            assert (workers.share(tmp_path, found.workers[0]) / "collectives.tar").read_bytes() == b"image"
            return Done(1, b"", b"no space left on device")

    monkeypatch.setattr(image, "build", lambda: archive)
    monkeypatch.setattr(workers, "agent", lambda _processes, _worker: Agent())
    with pytest.raises(StepError, match=r"worker-1 does not import .*no space left"):
        image.start(found, tmp_path, typing.cast(typing.Any, None))
    assert not (workers.share(tmp_path, found.workers[0]) / "collectives.tar").exists()
