# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of a run on its way: folders, and servers that take it, refuse it, are elsewhere, slow or not there. No
secret is in what is told."""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import socket
import threading
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import (
    Address,
    ArchiveError,
    ArchiveLogin,
    Folder,
    Place,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import place_of
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.unpacking import unpack
from ansible_collections.linerate.rdma.plugins.plugin_utils import _archive, _archive_request
from ansible_collections.linerate.rdma.plugins.plugin_utils._archive import Sent, probe_destination, send
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.put_server import PutServer

RUN, LATER = "20260102T030405Z-aaaaaa", "20260103T030405Z-bbbbbb"
NAME = f"rdma-evidence-{RUN}.tar.gz"
WORD = "5ecret-0123456789"
PATIENCE = 20.0
NOBODY = ArchiveLogin()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture()
def report(tmp_path: pathlib.Path) -> str:
    folder = str(tmp_path / "report")
    FactFolder(folder, RUN).begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=("worker-1",)))
    return folder


@pytest.fixture()
def server() -> typing.Iterator[PutServer]:
    with PutServer() as found:
        yield found


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("authority"))


def at(said: str) -> Place:
    found = place_of(said)
    assert found is not None
    return found


def sent(
    report: str, said: str, login: ArchiveLogin = NOBODY, authority: str = "", keep: int = 9, patience: float = PATIENCE
) -> Sent:
    return send(report, RUN, at(said), login, authority, keep, patience)


def refused(
    report: str, said: str, login: ArchiveLogin = NOBODY, authority: str = "", patience: float = PATIENCE
) -> ArchiveError:
    with pytest.raises(ArchiveError) as told:
        sent(report, said, login, authority, patience=patience)
    assert (
        told.value.remedy
        and WORD not in str(told.value)
        and base64.b64encode(f"me:{WORD}".encode()).decode() not in str(told.value)
    )
    return told.value


def test_a_server_has_the_archive_and_then_its_checksum(report: str, server: PutServer, tmp_path: pathlib.Path) -> None:
    found = sent(report, f"{server.address}/reports/")
    assert [request.path for request in server.asked] == [f"/reports/{NAME}", f"/reports/{NAME}.sha256"]
    content = server.files[f"/reports/{NAME}"]
    assert found == Sent(
        f"{server.address}/reports/{NAME}",
        hashlib.sha256(content).hexdigest(),
        len(content),
        f"{server.address}/reports/{NAME}.sha256",
    )
    assert server.files[f"/reports/{NAME}.sha256"].decode() == f"{found.sha256}  {NAME}\n"
    (tmp_path / NAME).write_bytes(content)
    assert "run.json" in unpack(str(tmp_path / NAME), str(tmp_path / "back")).sums


def test_the_name_of_the_run_may_be_anywhere_in_the_path(report: str, server: PutServer) -> None:
    sent(report, f"{server.address}/a/{{run}}/report.tar.gz")
    assert sorted(server.files) == [f"/a/{RUN}/report.tar.gz", f"/a/{RUN}/report.tar.gz.sha256"]
    assert server.files[f"/a/{RUN}/report.tar.gz.sha256"].decode().endswith("  report.tar.gz\n")


def test_a_signed_address_gets_the_archive_alone_and_its_query_is_not_told(report: str, server: PutServer) -> None:
    found = sent(report, f"{server.address}/last.tar.gz?X-Amz-Signature={WORD}")
    assert list(server.files) == [f"/last.tar.gz?X-Amz-Signature={WORD}"]
    assert found.place == f"{server.address}/last.tar.gz?..." and found.sum_place == ""


@pytest.mark.parametrize(
    ("code", "again", "word"),
    [
        (401, False, "password"),
        (403, False, "RDMA_REPORT_ARCHIVE_"),
        (404, False, "folder"),
        (405, False, "WebDAV"),
        (413, False, "size"),
        (418, False, "server"),
        (429, True, "server"),
        (503, True, "server"),
        (507, False, "Free space on the server"),
    ],
)
def test_a_refusal_is_told_with_what_to_do(report: str, server: PutServer, code: int, again: bool, word: str) -> None:
    server.answers = [code]
    error = refused(report, f"{server.address}/reports/")
    assert f"HTTP {code}" in error.seen and word in error.remedy and error.again is again
    assert len(server.asked) == 1 and not server.files, "no checksum of an archive that is not there"


def test_a_signature_that_is_over_is_told_in_the_words_of_s3(report: str, server: PutServer) -> None:
    server.answers = [403]
    server.body = (
        f"<Error><Code>AccessDenied</Code><Message>{WORD} has expired</Message><Key>{WORD}</Key></Error>".encode()
    )
    error = refused(report, f"{server.address}/last.tar.gz?X-Amz-Signature={WORD}")
    assert "AccessDenied: ... has expired" in error.seen and "Sign the URL again" in error.remedy and not error.again


def test_an_answer_elsewhere_is_not_followed(report: str, server: PutServer, certificates: Certificates) -> None:
    with PutServer(certificates.of()) as other:
        server.answers, server.headers = [307], {"Location": f"{other.address}/there/?token={WORD}"}
        error = refused(report, f"{server.address}/reports/")
        assert (
            "HTTP 307" in error.seen
            and f"on {other.address}: set the URL of that location" in error.remedy
            and "there" not in error.remedy
            and not other.asked
        )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("https://other.example/login/{}/", ", on https://other.example: set the URL of that location"),
        ("https://other.example/{}/?a={}", ", on https://other.example: set the URL of that location"),
        ("https://{}.example/a/", ", on https://....example: set the URL of that location"),
        ("https://me:{}@other.example/", "The server redirects to another location: set the URL of that location"),
    ],
)
def test_where_an_answer_leads_is_told_without_what_was_sent(
    report: str, server: PutServer, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    # this server has no TLS
    monkeypatch.setattr(_archive, "_check_login", lambda _place, _login: None)
    server.answers, server.headers = [307], {"Location": said.replace("{}", WORD)}
    error = refused(report, f"{server.address}/a/", ArchiveLogin(token=WORD))
    assert "HTTP 307" in error.seen and told in error.remedy


@pytest.mark.parametrize(
    "said",
    [
        *("Pa55w/rd+l ng", "Pa55w%2Frd%2Bl%20ng", "Pa55w%2frd%2bl%20ng", "Pa55w/rd%2Bl%20ng", "Pa55w%2Frd%2Bl+ng"),
        *(base64.b64encode(b"me:Pa55w/rd+l ng").decode(), base64.b64encode(b"Pa55w/rd+l ng").decode().rstrip("=")),
        *(
            "abc%2Fdef1234567",
            "abc/def1234567",
            "abc%2fdef1234567",
            base64.b64encode(b"abc/def1234567").decode(),
            "X-Amz-Signature=abc/def1234567",
        ),
    ],
)
def test_no_form_of_what_was_sent_is_told(said: str) -> None:
    place = place_of("https://host/a/?X-Amz-Signature=abc%2Fdef1234567")
    assert isinstance(place, Address)
    assert (
        _archive_request._remove_secrets(f"X: {said} is not known", place, ArchiveLogin("me", "Pa55w/rd+l ng"))
        == "X: ... is not known"
    )
    escaped = ("p&amp;ss&quot;w\u00f6rd", 'p&ss\\"w\\u00f6rd', 'p&ss"w\u00f6rd'.encode().hex())
    assert (
        _archive_request._remove_secrets(" ".join(escaped), place, ArchiveLogin("me", 'p&ss"w\u00f6rd'))
        == "... ... ..."
    )
    assert (
        _archive_request._remove_secrets(
            base64.b64encode(b"Bearer tok/en+1").decode(), place, ArchiveLogin(token="tok/en+1")
        )
        == "..."
    )
    assert (
        _archive_request._remove_secrets(
            f"X: {base64.b64encode(b'tok/en+1').decode()}", place, ArchiveLogin(token="tok/en+1")
        )
        == "X: ..."
    )


def test_credentials_go_by_tls_to_whom_is_trusted(report: str, certificates: Certificates) -> None:
    with PutServer(certificates.of()) as server:
        sent(report, f"{server.address}/", ArchiveLogin(token=WORD), str(certificates.authority))
        sent(report, f"{server.address}/", ArchiveLogin("me", WORD), str(certificates.authority))
    assert [request.authorization for request in server.asked[1:3]] == [
        f"Bearer {WORD}",
        "Basic " + base64.b64encode(f"me:{WORD}".encode()).decode(),
    ]


def test_who_is_not_trusted_is_sent_nothing(report: str, certificates: Certificates) -> None:
    with PutServer(certificates.of()) as server:
        error = refused(report, f"{server.address}/", ArchiveLogin(token=WORD))
        assert "not trusted" in error.seen and "rdma_report_archive_ca" in error.remedy and not server.asked
    with PutServer(certificates.of(days=-1)) as server:
        assert (
            "expired"
            in refused(report, f"{server.address}/", ArchiveLogin(token=WORD), str(certificates.authority)).seen
            and not server.asked
        )


@pytest.mark.parametrize("login", [ArchiveLogin(token=WORD), ArchiveLogin("me", WORD)])
def test_credentials_are_not_sent_for_all_to_read(report: str, server: PutServer, login: ArchiveLogin) -> None:
    assert "not encrypted" in refused(report, f"{server.address}/", login).seen and not server.asked


@pytest.mark.parametrize(
    "login",
    [
        ArchiveLogin("me", WORD, WORD),
        ArchiveLogin("me"),
        ArchiveLogin(password=WORD),
        ArchiveLogin(token=f"{WORD}\nX: y"),
    ],
)
def test_credentials_that_contradict_themselves_are_refused(report: str, login: ArchiveLogin) -> None:
    refused(report, "https://localhost:1/", login)


def test_nobody_there_is_told(report: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        error = refused(report, f"http://127.0.0.1:{closed.getsockname()[1]}/last?{WORD}")
    assert "refused" in error.seen and error.again


def test_a_server_that_gives_no_sign_is_given_up(report: str, server: PutServer) -> None:
    server.silent = True
    error = refused(report, f"{server.address}/last?{WORD}", patience=1.0)
    assert "did not respond within 1 s" in error.seen and error.again


def test_a_connection_that_ends_without_an_answer_is_told(report: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _peer = listener.accept()
            with connection:
                connection.recv(1)

        thread = threading.Thread(target=hang_up)
        thread.start()
        error = refused(report, f"http://127.0.0.1:{listener.getsockname()[1]}/last?{WORD}")
        thread.join()
    assert "closed the connection" in error.seen and "size" in error.remedy and error.again


def test_what_speaks_no_http_is_told_without_the_address(report: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def babble() -> None:
            connection, _peer = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 ftp ready\r\n")
                connection.recv(65536)

        thread = threading.Thread(target=babble)
        thread.start()
        assert (
            "could not be reached" in refused(report, f"http://127.0.0.1:{listener.getsockname()[1]}/last?{WORD}").seen
        )
        thread.join()


def names_in(folder: pathlib.Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def test_a_folder_keeps_the_newest_under_their_own_names(report: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    FactFolder(report, RUN).begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", cluster_uid="a"))
    found = sent(report, str(folder))
    assert names_in(folder) == [NAME, f"{NAME}.sha256"]
    assert (
        folder / f"{NAME}.sha256"
    ).read_text() == f"{hashlib.sha256((folder / NAME).read_bytes()).hexdigest()}  {NAME}\n" and found.removed == ()
    (folder / "of somebody else.tar.gz").touch()
    FactFolder(report, LATER).begin(RunStart(LATER, "2026-01-03T03:04:05+00:00", cluster_uid="a"))
    after = send(report, LATER, Folder(str(folder)), ArchiveLogin(), "", 1)
    assert [os.path.basename(path) for path in after.removed] == [NAME]
    assert names_in(folder) == [
        "of somebody else.tar.gz",
        f"rdma-evidence-{LATER}.tar.gz",
        f"rdma-evidence-{LATER}.tar.gz.sha256",
    ]


def test_archives_of_other_clusters_in_a_folder_stay_and_push_none_out(report: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"

    def send_of(cluster: str, way: str, day: int) -> list[str]:
        run = f"2026010{day}T030405Z-aaaaaa"
        # K3s writes this URL for each cluster, and so does a tunnel
        access = f"{way}, API server https://127.0.0.1:6443"
        start = RunStart(run, "2026-01-03T03:04:05+00:00", access=access, cluster_uid=cluster)
        FactFolder(report, run).begin(start)
        found = send(report, run, Folder(str(folder)), ArchiveLogin(), "", 2)
        return [os.path.basename(path)[21:22] for path in found.removed]

    for number in range(5):
        folder.mkdir(exist_ok=True)
        (folder / f"rdma-evidence-9999010{number}T000000Z-cccccc.tar.gz").touch()
    assert [send_of(cluster, "a file", day) for cluster, day in (("a", 1), ("b", 2), ("b", 3), ("a", 4))] == [[]] * 4
    # AWX writes the kubeconfig to another file in each job
    assert send_of("a", "another file", 5) == ["1"] and send_of("b", "a file", 6) == ["2"]
    assert [name[21] for name in names_in(folder) if name.endswith(".sha256")] == ["3", "4", "5", "6"]
    assert len(list(folder.glob("rdma-evidence-9999*"))) == 5


def test_archives_of_runs_without_a_known_cluster_are_never_removed(report: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    for number, access in enumerate(("", "", *["a file, API server https://127.0.0.1:6443"] * 3), 1):
        run = f"2026010{number}T030405Z-aaaaaa"
        FactFolder(report, run).begin(RunStart(run, "2026-01-03T03:04:05+00:00", access=access))
        assert send(report, run, Folder(str(folder)), ArchiveLogin(), "", 1).removed == ()
    assert len(list(folder.glob("*.tar.gz"))) == 5


def test_the_archive_of_an_older_run_is_not_removed_as_it_comes(report: str, tmp_path: pathlib.Path) -> None:
    FactFolder(report, LATER).begin(RunStart(LATER, "2026-01-03T03:04:05+00:00", cluster_uid="a"))
    send(report, LATER, Folder(str(tmp_path / "kept")), ArchiveLogin(), "", 1)
    FactFolder(report, RUN).begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", cluster_uid="a"))
    assert os.path.exists(sent(report, str(tmp_path / "kept"), keep=1).place)


def test_a_folder_that_cannot_be_written_is_refused_before_and_after(report: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    for dry in (True, False):
        with pytest.raises(ArchiveError, match=r"could not be written: (Not a directory|File exists)"):
            probe_destination(Folder(str(tmp_path / "file" / "deeper")), ArchiveLogin(), "", dry)
    with pytest.raises(FileError, match="could not be written"):
        sent(report, str(tmp_path / "file" / "deeper"))


def test_a_look_leaves_no_file_and_in_check_mode_no_folder(tmp_path: pathlib.Path) -> None:
    probe_destination(Folder(str(tmp_path / "dry" / "deeper")), ArchiveLogin(), "", True)
    assert os.listdir(tmp_path) == []
    probe_destination(Folder(str(tmp_path / "wet" / "deeper")), ArchiveLogin(), "", False)
    assert os.listdir(tmp_path / "wet" / "deeper") == []


def test_a_look_shows_no_secret_to_a_server_and_takes_any_answer(server: PutServer) -> None:
    probe_destination(at(f"{server.address}/last.tar.gz?X-Amz-Signature={WORD}"), ArchiveLogin(), "", True)
    assert [(request.method, request.path, request.authorization) for request in server.asked] == [
        ("HEAD", "/last.tar.gz", None)
    ]


def test_a_look_finds_what_would_fail_later(certificates: Certificates, tmp_path: pathlib.Path) -> None:
    with PutServer(certificates.of()) as server:
        probe_destination(at(f"{server.address}/"), ArchiveLogin(token=WORD), str(certificates.authority), False)
        assert [request.authorization for request in server.asked] == [None]
        with pytest.raises(ArchiveError, match="not trusted"):
            probe_destination(at(f"{server.address}/"), ArchiveLogin(token=WORD), "", False)
        (tmp_path / "no.pem").write_text("no certificate")
        for authority in (tmp_path / "no.pem", tmp_path / "absent.pem"):
            with pytest.raises(ArchiveError, match="contains no certificate"):
                probe_destination(at(f"{server.address}/"), ArchiveLogin(), str(authority), False)
    signed = Address("https://localhost:1/last", "?X-Amz-Date=20200102T030405Z&X-Amz-Expires=3600")
    with pytest.raises(ArchiveError, match="expired at 2020-01-02 04:04:05 UTC"):
        probe_destination(signed, ArchiveLogin(), "", False)
