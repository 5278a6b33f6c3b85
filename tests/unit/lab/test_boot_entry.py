# SPDX-License-Identifier: GPL-3.0-or-later

"""What outlives the reset of a worker, whose disk does not."""

from __future__ import annotations

import base64
import io
import pathlib
import tarfile
import typing

from lab import description, workers


class Disk:
    """What a guest's agent says of the disk.

    :ivar archive: of the boot entry, as tar makes it; empty where there is none
    """

    def __init__(self, archive: bytes = b"") -> None:
        self.archive = archive
        self.given: list[bytes] = []

    def check(self, script: str, stdin: bytes = b"") -> str:
        if "base64 -d" in script:
            self.given.append(stdin)
            return ""
        if not self.archive:
            return ""
        return base64.b64encode(self.archive).decode() if "tar -c" in script else "quiet one=1\n"


def an_entry() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("boot/arguments"))
    return packed.getvalue()


def test_a_boot_entry_is_on_the_fresh_disk_again(tmp_path: pathlib.Path) -> None:
    worker, fresh = description.read().workers[0], Disk()
    workers.keep_boot(tmp_path, worker, typing.cast(typing.Any, Disk(an_entry())))
    workers.put_boot(tmp_path, worker, typing.cast(typing.Any, fresh))
    (given,) = fresh.given
    assert base64.b64decode(given) == an_entry()


def test_a_worker_without_one_gets_none_and_not_that_of_an_earlier_boot(tmp_path: pathlib.Path) -> None:
    worker, fresh = description.read().workers[0], Disk()
    workers.keep_boot(tmp_path, worker, typing.cast(typing.Any, Disk(an_entry())))
    workers.keep_boot(tmp_path, worker, typing.cast(typing.Any, Disk()))
    workers.put_boot(tmp_path, worker, typing.cast(typing.Any, fresh))
    assert not fresh.given
