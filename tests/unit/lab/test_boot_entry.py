# SPDX-License-Identifier: GPL-3.0-or-later

"""What outlives the reset of a worker, whose disk does not."""

from __future__ import annotations

import base64
import io
import pathlib
import tarfile
import typing

import pytest

from lab import description, workers


class Disk:
    """What a guest's agent says of the disk.

    :ivar archive: of the boot entry, as tar makes it; empty where there is none
    """

    def __init__(self, archive: bytes = b"") -> None:
        self.archive = archive

    def check(self, script: str, stdin: bytes = b"") -> str:
        if not self.archive:
            return ""
        return base64.b64encode(self.archive).decode() if "tar -c" in script else "quiet one=1\n"


def an_entry() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("boot/arguments"))
    return packed.getvalue()


@pytest.fixture(name="left")
def left_fixture(tmp_path: pathlib.Path) -> pathlib.Path:
    """What a worker finds for its fresh disk."""
    share = workers.share(tmp_path, description.read().workers[0])
    share.mkdir(parents=True)
    return share / "kept"


def test_a_boot_entry_is_left_for_the_fresh_disk(tmp_path: pathlib.Path, left: pathlib.Path) -> None:
    worker = description.read().workers[0]
    workers.keep_boot(tmp_path, worker, typing.cast(typing.Any, Disk(an_entry())))
    workers.leave_boot(tmp_path, worker)
    assert base64.b64decode(left.read_text()) == an_entry()


def test_a_worker_without_one_gets_none_and_not_that_of_an_earlier_boot(
    tmp_path: pathlib.Path, left: pathlib.Path
) -> None:
    worker = description.read().workers[0]
    for archive in (an_entry(), b""):
        workers.keep_boot(tmp_path, worker, typing.cast(typing.Any, Disk(archive)))
        workers.leave_boot(tmp_path, worker)
    assert not left.exists()
