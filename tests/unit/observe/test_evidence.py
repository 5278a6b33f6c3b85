# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a run as an archive: the same bytes each time, no secret in it, and no way out of the folder when it is
unpacked."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._store import unpacking
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.unpacking import unpack

FILES = {
    "run.json": '{"run": "run-1"}\n',
    "facts/hcas/worker-1.json": '{"value": {"hcas": []}}\n',
    "facts/hcas/%2E.%2Fworker-2.json": '{"value": null, "error": "worker-2: no route"}\n',
    "stages/fabric.jsonl": '{"stage":"fabric"}\n{"finding":{}}\n',
    "report.html": "<p>fine</p>\n",
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return written(tmp_path / "report", FILES)


def written(folder: pathlib.Path, files: typing.Mapping[str, str]) -> pathlib.Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def forged(path: pathlib.Path, *members: tuple[tarfile.TarInfo, bytes], sums: bool = True) -> str:
    lines = "".join(
        f"{hashlib.sha256(text).hexdigest()}  {member.name.partition('/')[2]}\n"
        for member, text in members
        if member.isreg()
    )
    with tarfile.open(path, "w:gz") as tar:
        for member, text in members:
            tar.addfile(member, io.BytesIO(text))
        if sums:
            tar.addfile(info("run-1/SHA256SUMS", len(lines)), io.BytesIO(lines.encode()))
    return str(path)


def info(name: str, size: int = 0, **changes: typing.Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    for key, value in changes.items():
        setattr(member, key, value)
    return member


def test_an_archive_with_other_content_is_not_replaced(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    archive = tmp_path / "a.tar.gz"
    first = pack(str(folder), str(archive), "run-1", replaces=False)
    assert pack(str(folder), str(archive), "run-1", replaces=False) == first
    content = archive.read_bytes()
    (folder / "stages" / "fabric.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"a\.tar\.gz already exists with different content, so it was not replaced"):
        pack(str(folder), str(archive), "run-1", replaces=False)
    assert archive.read_bytes() == content
    assert pack(str(folder), str(archive), "run-1") != first and archive.read_bytes() != content


def test_there_and_back(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    sums, left_out, sha256 = pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    assert set(sums) == set(FILES) and left_out == []
    assert unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back")) == (sums, sha256)
    assert {
        str(path.relative_to(tmp_path / "back")): path.read_text(encoding="utf-8")
        for path in (tmp_path / "back").rglob("*.*")
        if path.is_file()
    } == {name: text for name, text in FILES.items() if name != "report.html"}, "pages are made anew by who unpacks"
    assert unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back")) == (sums, sha256), "the same once more is fine"
    (tmp_path / "back" / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileError, match=r"run\.json in it differs from the file in the archive"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back"))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_same_folder_gives_the_same_bytes(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    (folder / "run.json").chmod(0o600)
    pack(str(folder), str(tmp_path / "b.tar.gz"), "run-1")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_only_what_a_run_leaves_is_packed(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written(folder, {"notes.txt": "mine", "judged/report.json": "{}", "facts/hcas/.hidden.tmp": "x"})
    (folder / "stages" / "host.jsonl").symlink_to("/etc/passwd")
    (folder / "facts" / "away").symlink_to("/etc")
    os.mkfifo(folder / "facts" / "hcas" / "pipe.json")
    sums, left_out, _sha256 = pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    assert set(sums) == set(FILES)
    assert left_out == [
        "facts/away",
        "facts/hcas/.hidden.tmp",
        "facts/hcas/pipe.json",
        "judged/report.json",
        "notes.txt",
        "stages/host.jsonl",
    ]


def test_odd_names_and_deep_folders_are_left_out(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written(folder, {"facts/hcas/a b.json": "{}", "facts/hcas/x/y/z.json": "{}"})
    with open(os.fsencode(folder) + b"/facts/hcas/\xff.json", "wb"):
        pass
    deep = os.open(folder / "facts", os.O_RDONLY)
    for _level in range(sys.getrecursionlimit() + 100):
        os.mkdir("d", dir_fd=deep)
        deeper = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = deeper
    os.close(deep)
    try:
        sums, left_out, _sha256 = pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    finally:
        subprocess.run(["/bin/rm", "-rf", str(folder / "facts" / "d")], check=True)
    assert set(sums) == set(FILES)
    assert left_out == ["facts/d/d", "facts/hcas/\\xff.json", "facts/hcas/a b.json", "facts/hcas/x"]


@pytest.mark.parametrize("name", ["facts/hcas/node-1.json", "facts/operators/cluster.json"])
def test_a_fact_that_no_run_would_write_is_not_read_to_be_packed(
    folder: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    written(folder, {name: "{}"})
    os.truncate(folder / name, 33 << 20)
    with pytest.raises(FileError, match=r"it has 34603008 bytes; the limit is (8388608|33554432)"):
        pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")


def test_no_secret_is_packed(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written(
        folder,
        {
            "facts/platform/worker-1.json": '{"value": {"password": "hunter2-a", "args": ["token=hunter2-b"]}}\n',
            "stages/host.jsonl": '{"stage": "host", "api_key": "hunter2-c"}\n{"password=hunter2-d": torn\n',
            "report.html": "<p>Bearer hunter2-eeeeeee</p>",
        },
    )
    pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back"))
    assert b"hunter2" not in gzip.decompress((tmp_path / "a.tar.gz").read_bytes())
    assert "[redacted]" in (tmp_path / "back" / "facts" / "platform" / "worker-1.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (info("run-1/../../etc/run.json"), "not a file that a run writes"),
        (info("/etc/run.json"), "not a file that a run writes"),
        (info("../run.json"), "not a file that a run writes"),
        (info("run-1/facts/hcas/../../../x.json"), "not a file that a run writes"),
        (info("run-1/facts/../x.json"), "not a file that a run writes"),
        (info("run-1/authorized_keys"), "not a file that a run writes"),
        (info("run-1/report.json", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link"),
        (info("run-1/report.json", type=tarfile.LNKTYPE, linkname="run-1/run.json"), "is a link"),
        (info("run-1/report.json", type=tarfile.CHRTYPE), "is a device"),
        (info("run-1/report.json", type=tarfile.FIFOTYPE), "is a device, a pipe"),
        (info("run-1/facts", type=tarfile.DIRTYPE), "is a folder"),
        (info("run-2/report.json"), "more than one folder"),
        (info("run-1/run.json"), "a duplicate name"),
    ],
    ids=lambda item: getattr(item, "name", None),
)
def test_what_leads_out_is_refused_by_name(tmp_path: pathlib.Path, member: tarfile.TarInfo, said: str) -> None:
    archive = forged(tmp_path / "a.tar.gz", (info("run-1/run.json", 2), b"{}"), (member, b""))
    with pytest.raises(FileError, match=said) as error:
        unpack(archive, str(tmp_path / "deep" / "back"))
    assert repr(member.name) in str(error.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar.gz", "deep"], "nothing is left"


def test_absurd_sizes_are_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = forged(
        tmp_path / "a.tar.gz", (info("run-1/run.json", 2), b"{}"), (info("run-1/report.json", 9), b"123456789")
    )
    monkeypatch.setattr(unpacking, "MOST_BYTES_OF_A_FILE", 8)
    with pytest.raises(FileError, match=r"'run-1/report\.json' has 9 bytes; the limit is 8"):
        unpack(archive, str(tmp_path / "back"))
    monkeypatch.setattr(unpacking, "MOST_BYTES_OF_A_FILE", 1000)
    for limit, value in (("MOST_BYTES", 10), ("MOST_FILES", 1), ("MOST_AT_ONCE", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(unpacking, limit, value)
            with pytest.raises(FileError, match=r"too (many|large)|the limit is|more than 10 bytes"):
                unpack(archive, str(tmp_path / "back"))
    assert len(unpack(archive, str(tmp_path / "back")).sums) == 2


def test_a_changed_file_is_named(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        members = [(member, typing.cast(typing.IO[bytes], tar.extractfile(member)).read()) for member in tar]
    changes: typing.Sequence[
        tuple[typing.Callable[[tarfile.TarInfo, bytes], typing.Optional[tuple[tarfile.TarInfo, bytes]]], str]
    ] = (
        (lambda member, text: (member, text.replace(b"fine", b"good")), "report.html was changed"),
        (
            lambda member, text: None if member.name.endswith("fabric.jsonl") else (member, text),
            "stages/fabric.jsonl is missing",
        ),
        (lambda member, text: (member, text[:-20] if member.name.endswith("SUMS") else text), "is not a checksum"),
        (lambda member, text: None if member.name.endswith("SUMS") else (member, text), "has no SHA256SUMS"),
    )
    for change, said in changes:
        changed = [item for item in (change(member, text) for member, text in members) if item]
        for member, text in changed:
            member.size = len(text)
        with pytest.raises(FileError, match=said):
            unpack(forged(tmp_path / "b.tar.gz", *changed, sums=False), str(tmp_path / "back"))
    for member, text in members:
        member.size = len(text)
    more = forged(tmp_path / "b.tar.gz", *members, (info("run-1/facts/hcas/x.json", 2), b"{}"), sums=False)
    with pytest.raises(FileError, match=r"facts/hcas/x\.json was added"):
        unpack(more, str(tmp_path / "back"))


@pytest.mark.parametrize(
    "text", [b"", b"no archive", gzip.compress(b"no archive", mtime=0), gzip.compress(b"x" * 5000, mtime=0)[:-20]]
)
def test_what_is_no_archive_is_said(tmp_path: pathlib.Path, text: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(text)
    with pytest.raises(FileError, match=r"could not be unpacked|has no SHA256SUMS"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back"))
    with pytest.raises(FileError, match=r"No such file"):
        unpack(str(tmp_path / "nowhere.tar.gz"), str(tmp_path / "back"))


def test_an_archive_is_opened_once(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its checksum and its unpacking another one may come to its name, or into it."""
    archive, forgery = tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"
    signed = pack(str(folder), str(archive), "run-1").sha256
    assert signed == hashlib.sha256(archive.read_bytes()).hexdigest()
    written(folder, {"run.json": '{"run": "forged"}\n'})
    pack(str(folder), str(forgery), "run-1")
    true, false = archive.read_bytes(), forgery.read_bytes()
    really = unpacking._unpack_archive

    def unpack_while(change: typing.Callable[[], object]) -> None:
        def changed(*arguments: typing.Any) -> typing.Any:
            change()
            return really(*arguments)

        monkeypatch.setattr(unpacking, "_unpack_archive", changed)

    unpack_while(lambda: os.replace(forgery, archive))
    assert unpack(str(archive), str(tmp_path / "back"), signed=signed).sha256 == signed
    assert (tmp_path / "back" / "run.json").read_text(encoding="utf-8") == FILES["run.json"]
    archive.write_bytes(true)
    unpack_while(lambda: archive.write_bytes(false))
    with pytest.raises(FileError, match="was changed while it was read") as error:
        unpack(str(archive), str(tmp_path / "other"), signed=signed)
    assert "nothing was unpacked" in error.value.remedy and not (tmp_path / "other").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_archive_without_an_end_is_refused(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "a.tar.gz")
    for place in (tmp_path / "a.tar.gz", tmp_path, pathlib.Path("/dev/zero")):
        with pytest.raises(FileError, match="could not be read: it is not a regular file"):
            unpack(str(place), str(tmp_path / "back"))
