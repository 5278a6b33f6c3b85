# SPDX-License-Identifier: GPL-3.0-or-later

"""An archive from a stranger: small to fetch and large to unpack, with headers without an end, or with pages that are
not what the facts say."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pathlib
import shutil
import tarfile
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.action.evidence import ActionModule
from ansible_collections.linerate.rdma.plugins.module_utils._store import unpacking
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.unpacking import unpack

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "judge" / "run"
MIB = 1 << 20


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.USTAR_FORMAT)


def blocks(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def archive_of(path: pathlib.Path, parts: typing.Iterable[bytes]) -> str:
    with gzip.open(path, "wb") as stream:
        stream.writelines(parts)
        stream.write(bytes(1024))
    return str(path)


def digest_of(archive: str) -> str:
    return hashlib.sha256(pathlib.Path(archive).read_bytes()).hexdigest()


def names_left(tmp_path: pathlib.Path) -> list[str]:
    return sorted(item.name for item in tmp_path.iterdir() if item.name != "a.tar.gz")


def test_an_archive_that_grows_beyond_measure_is_refused_and_takes_no_memory(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "_FREE_BYTES", MIB)
    size = 24 * MIB
    archive = archive_of(tmp_path / "a.tar.gz", [header("run-1/facts/hcas/a.json", size), *[bytes(MIB)] * 24])
    assert os.path.getsize(archive) < MIB / 20
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="too large"):
            unpack(archive, str(tmp_path / "back"))
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()
    assert names_left(tmp_path) == []


def test_a_file_is_unpacked_piece_by_piece(tmp_path: pathlib.Path) -> None:
    size = 24 * MIB
    digest = hashlib.sha256(bytes(size)).hexdigest()
    sums = f"{digest}  facts/hcas/a.json\n".encode()
    parts = [
        header("run-1/facts/hcas/a.json", size),
        *[bytes(MIB)] * 24,
        header("run-1/SHA256SUMS", len(sums)),
        blocks(sums),
    ]
    archive = archive_of(tmp_path / "a.tar.gz", parts)
    tracemalloc.start()
    try:
        assert unpack(archive, str(tmp_path / "back")).sums == {"facts/hcas/a.json": digest}
        assert tracemalloc.get_traced_memory()[1] < 12 * MIB
    finally:
        tracemalloc.stop()


def test_too_many_files_for_its_size_are_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_FREE_FILES", 10)
    archive = archive_of(
        tmp_path / "a.tar.gz", (header(f"run-1/facts/hcas/{number:05}.json", 0) for number in range(600))
    )
    assert os.path.getsize(archive) < 9000
    with pytest.raises(FileError, match="too many files"):
        unpack(archive, str(tmp_path / "back"))
    assert names_left(tmp_path) == []


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_chain_of_headers_ends(tmp_path: pathlib.Path, kind: bytes) -> None:
    record = blocks(b"13 comment=x\n")
    archive = archive_of(
        tmp_path / "a.tar.gz", [(header("x", 13, kind) + record) * 5000, header("run-1/run.json", 2), blocks(b"{}")]
    )
    with pytest.raises(FileError, match=r"more than 4 headers|it contains a global header"):
        unpack(archive, str(tmp_path / "back"))
    assert names_left(tmp_path) == []


def test_one_large_header_is_refused(tmp_path: pathlib.Path) -> None:
    archive = archive_of(
        tmp_path / "a.tar.gz",
        [header("x", 8 * MIB, tarfile.XHDTYPE), bytes(8 * MIB), header("run-1/run.json", 2), blocks(b"{}")],
    )
    with pytest.raises(FileError, match="the limit is"):
        unpack(archive, str(tmp_path / "back"))


@pytest.mark.parametrize(
    "keys",
    [
        {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": "run-1/run.json",
            "GNU.sparse.realsize": "1",
        },
        {"GNU.sparse.size": "1", "GNU.sparse.numblocks": "1", "GNU.sparse.offset": "0", "GNU.sparse.numbytes": "1"},
        {"GNU.sparse.size": "1", "GNU.sparse.map": "0,1"},
    ],
)
def test_the_map_of_a_file_with_holes_is_not_read(tmp_path: pathlib.Path, keys: dict[str, str]) -> None:
    body = b"1000000\n" + b"1\n" * 2_000_000
    member = tarfile.TarInfo("run-1/run.json")
    member.size, member.pax_headers = len(body), keys
    archive = archive_of(tmp_path / "a.tar.gz", [member.tobuf(tarfile.PAX_FORMAT), blocks(body)])
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="it contains a sparse file"):
            unpack(archive, str(tmp_path / "back"))
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()
    assert names_left(tmp_path) == []


def test_an_archive_of_ours_is_far_from_the_limits(tmp_path: pathlib.Path) -> None:
    pack(str(SCENARIO), str(tmp_path / "a.tar.gz"), "run-1")
    size = os.path.getsize(tmp_path / "a.tar.gz")
    content = gzip.decompress((tmp_path / "a.tar.gz").read_bytes())
    assert len(content) < unpacking.MOST_RATIO * size / 4
    sums = unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back")).sums
    assert len(sums) < size / unpacking.LEAST_BYTES_OF_A_FILE / 4


@pytest.mark.parametrize("line", [b"\n", b"x" * MIB, b"0" * 64 + b"  facts/hcas/a.json\n"])
def test_checksums_that_are_none_are_not_held(tmp_path: pathlib.Path, line: bytes) -> None:
    size = 4 * MIB
    content = (line * (size // len(line) + 1))[:size]
    archive = archive_of(
        tmp_path / "a.tar.gz", [header("run-1/run.json", 0), header("run-1/SHA256SUMS", size), blocks(content)]
    )
    del content
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="a line of SHA256SUMS is not a checksum"):
            unpack(archive, str(tmp_path / "back"))
        # the file itself has 4 MiB, and its lines had 300
        assert tracemalloc.get_traced_memory()[1] < 3 * MIB
    finally:
        tracemalloc.stop()


@pytest.fixture
def forged(tmp_path: pathlib.Path) -> str:
    """The archive of a green run, with pages that a stranger wrote."""
    folder = tmp_path / "run"
    shutil.copytree(SCENARIO, folder)
    for name in (
        "report.html",
        "report.prom",
        "report.xml",
        "report.json",
        "report.md",
        "difference.html",
        "difference.json",
    ):
        (folder / name).write_text("<script>forged()</script>", encoding="utf-8")
    pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    return str(tmp_path / "a.tar.gz")


def test_pages_of_a_stranger_are_made_anew(forged: str, tmp_path: pathlib.Path) -> None:
    options = {"state": "unpacked", "archive": forged, "report_dir": str(tmp_path / "back"), "sha256": None}
    answer = ActionModule._unpack_archive(options)
    assert answer["run"] == "20260102T030405Z-a1b2c3"
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "back").glob("*.*")}
    assert not [name for name, text in pages.items() if "forged()" in text]
    assert (
        "GREEN" in pages["report.html"]
        and pages["report.prom"].endswith("# EOF\n")
        and {"report.xml", "report.json", "report.md"} <= set(pages)
    )
    assert ActionModule._unpack_archive(options)["run"] == answer["run"], "the same once more is fine"


@pytest.mark.parametrize("more", ["stages/bandwidth.jsonl", "facts/hcas/another.json", "notes.txt", "runs/1/run.json"])
def test_a_folder_that_holds_more_than_the_archive_is_refused(forged: str, tmp_path: pathlib.Path, more: str) -> None:
    options = {
        "state": "unpacked",
        "archive": forged,
        "report_dir": str(tmp_path / "back"),
        "sha256": digest_of(forged),
    }
    shipped = tmp_path / "back" / more
    ActionModule._unpack_archive(options)
    expected = {path: path.read_bytes() for path in (tmp_path / "back").rglob("*") if path.is_file()}
    if shipped.exists():
        # the stranger left it out of the archive
        archive = tmp_path / "less"
        shutil.copytree(tmp_path / "back", archive)
        (archive / more).unlink()
        pack(str(archive), forged, "run-1")
        options["sha256"] = digest_of(forged)
    shipped.parent.mkdir(parents=True, exist_ok=True)
    shipped.write_bytes(expected.get(shipped, b"{}"))
    with pytest.raises(FileError, match="is not in the archive"):
        ActionModule._unpack_archive(options)


def test_pages_in_a_folder_that_is_there_already_are_made_anew(forged: str, tmp_path: pathlib.Path) -> None:
    options = {"state": "unpacked", "archive": forged, "report_dir": str(tmp_path / "back"), "sha256": None}
    ActionModule._unpack_archive(options)
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    (tmp_path / "back" / "judged" / "stages").mkdir(parents=True)
    for name in (
        "report.html",
        "difference.html",
        "judged/report.html",
        "judged/difference.html",
        "judged/stages/fabric.jsonl",
    ):
        (tmp_path / "back" / name).write_text("forged()", encoding="utf-8")
    (tmp_path / "back" / "judged" / "report.prom").symlink_to(mine)
    ActionModule._unpack_archive(options)
    assert "forged()" not in (tmp_path / "back" / "report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "back" / "difference.html").exists()
    assert not [path for path in (tmp_path / "back" / "judged").rglob("*") if not path.is_dir()]
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "name", ["page.html", "run.json", "facts/hcas/worker-1.json", "stages/fabric.html", "judged/report.html"]
)
def test_what_no_judgement_writes_is_refused_in_its_folder(forged: str, tmp_path: pathlib.Path, name: str) -> None:
    options = {"state": "unpacked", "archive": forged, "report_dir": str(tmp_path / "back"), "sha256": None}
    ActionModule._unpack_archive(options)
    (tmp_path / "back" / "judged" / name).parent.mkdir(parents=True)
    (tmp_path / "back" / "judged" / name).write_text("forged()", encoding="utf-8")
    with pytest.raises(FileError, match=f"'judged/{name}' in it is not in the archive"):
        ActionModule._unpack_archive(options)


def test_a_forged_page_is_still_compared_with_its_checksum(forged: str, tmp_path: pathlib.Path) -> None:
    with tarfile.open(forged) as tar:
        members = [(member, typing.cast(typing.IO[bytes], tar.extractfile(member)).read()) for member in tar]
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
        for member, text in members:
            changed = text.replace(b"forged()", b"other()") if member.name.endswith("report.html") else text
            member.size = len(changed)
            tar.addfile(member, io.BytesIO(changed))
    with pytest.raises(FileError, match=r"report\.html was changed"):
        unpack(str(tmp_path / "b.tar.gz"), str(tmp_path / "back"))


def test_nothing_is_unpacked_if_its_pages_cannot_be_made(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SCENARIO, folder)
    (folder / "run.json").write_text('{"schema": 0}', encoding="utf-8")
    pack(str(folder), str(tmp_path / "a.tar.gz"), "run-1")
    shutil.rmtree(folder)
    with pytest.raises(FileError, match="schema is '0'"):
        ActionModule._unpack_archive(
            {
                "state": "unpacked",
                "archive": str(tmp_path / "a.tar.gz"),
                "report_dir": str(tmp_path / "back"),
                "sha256": None,
            }
        )
    assert names_left(tmp_path) == []


def pax(content: bytes) -> bytes:
    return header("PaxHeader", len(content), tarfile.XHDTYPE) + blocks(content)


def test_a_long_header_is_refused_before_it_is_read(tmp_path: pathlib.Path) -> None:
    """Digits without end: to look for a word behind them takes the square of the time on some releases of Python."""
    archive = archive_of(tmp_path / "a.tar.gz", [pax(b"1" * 65536), header("run-1/run.json", 0)])
    with pytest.raises(FileError, match="a header in it has 65536 bytes"):
        unpack(archive, str(tmp_path / "back"))
    assert names_left(tmp_path) == []


def test_a_header_for_all_files_is_refused(tmp_path: pathlib.Path) -> None:
    """Each of them stays, and each file behind it takes over all of them."""
    content = b"9 abcd=\n"
    for_all = header("x", len(content), tarfile.XGLTYPE) + blocks(content)
    archive = archive_of(
        tmp_path / "a.tar.gz", [header("run-1/run.json", 0), for_all, header("run-1/facts/hcas/a.json", 0)]
    )
    with pytest.raises(FileError, match="it contains a global header"):
        unpack(archive, str(tmp_path / "back"))


def test_no_archive_of_ours_has_a_header_for_all_files(tmp_path: pathlib.Path) -> None:
    run = tmp_path / "run"
    (run / "facts" / "hcas").mkdir(parents=True)
    for name in ("a", "%C3%A4", "n" * 150):
        (run / "facts" / "hcas" / f"{name}.json").write_text("{}", encoding="utf-8")
    pack(str(run), str(tmp_path / "a.tar.gz"), "run-1")
    content = gzip.decompress((tmp_path / "a.tar.gz").read_bytes())
    kinds = {
        content[place + 156 : place + 157]
        for place in range(0, len(content), 512)
        if content[place + 257 : place + 262] == b"ustar"
    }
    assert kinds == {tarfile.REGTYPE, tarfile.XHDTYPE}
    assert len(unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "back")).sums) == 3


def test_a_file_of_less_than_nothing_is_refused(tmp_path: pathlib.Path) -> None:
    """What follows would lie before it: the archive would be read again from its begin, without an end."""
    archive = archive_of(tmp_path / "a.tar.gz", [pax(b"15 size=-51200\n"), header("run-1/run.json", 0)])
    with pytest.raises(FileError, match="-51200 bytes"):
        unpack(archive, str(tmp_path / "back"))
    assert names_left(tmp_path) == []
