# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of a run under a real ansible-playbook: a report that can't be kept fails the run, whatever its verdict,
and no secret gets anywhere."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.tests.unit.put_server import PutServer
from tests.unit.report.test_history import a_run, run_of

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORD = "5ecret-0123456789"


class Site:
    """A folder with runs, and ansible-playbook beside it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.report = path / "report"

    def play(self, playbook: str, *arguments: str, callback: str = "default", **environment: str) -> tuple[int, str]:
        everything = {
            **{
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("ANSIBLE_", "RDMA_", "KUBE", "K8S_"))
            },
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
            "ANSIBLE_HOME": str(self.path / "home"),
            "ANSIBLE_LOG_PATH": str(self.path / "ansible.log"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_STDOUT_CALLBACK": callback,
            "HOME": str(self.path),
            "NO_PROXY": "*",
            **environment,
        }
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        command = [
            program,
            f"linerate.rdma.{playbook}",
            "-i",
            "worker-1,",
            "-e",
            f"rdma_report_dir={self.report}",
            "-e",
            "report_archive_delay=0",
            *arguments,
        ]
        done = subprocess.run(
            command,
            cwd=self.path,
            env=everything,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def written(self) -> bytes:
        """All that a run left, its log included."""
        return b"\n".join(
            path.read_bytes() for path in self.path.rglob("*") if path.is_file() and not path.is_symlink()
        )


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def server() -> typing.Iterator[PutServer]:
    with PutServer() as found:
        yield found


def test_a_green_run_whose_archive_is_not_taken_fails_with_cause_and_next_step(site: Site, server: PutServer) -> None:
    a_run(site.report, 1)
    server.answers, server.body = [403], f"<Code>AccessDenied</Code><Message>{WORD} has expired</Message>".encode()
    code, output = site.play(
        "report", "-vvv", RDMA_REPORT_ARCHIVE=f"{server.address}/last.tar.gz?X-Amz-Signature={WORD}"
    )
    flat = " ".join(output.split())
    assert code != 0 and "HTTP 403 Forbidden (AccessDenied: ... has expired). Sign the URL again" in flat
    assert re.search(r"linerate.rdma: GREEN - .* THE ARCHIVE IS NOT AT ITS PLACE", flat), output
    assert json.loads((site.report / "report.json").read_text())["verdict"] == "GREEN", (
        "the verdict is that of the network"
    )
    assert WORD not in output and WORD.encode() not in site.written()


def test_a_busy_server_is_asked_again_and_check_mode_sends_nothing(site: Site, server: PutServer) -> None:
    said = ("-e", json.dumps({"rdma_report_archive": f"{server.address}/reports/"}))
    a_run(site.report, 1)
    server.answers = [503]
    code, output = site.play("report", *said, callback="linerate.rdma.stages")
    assert code == 0 and f"archive: {server.address}/reports/rdma-evidence-{run_of(1)}.tar.gz, " in output, output
    assert output.rstrip().splitlines()[-1].startswith("linerate.rdma: GREEN - "), output
    assert "Failure using method" not in output, "the callback writes into a log file as well"
    assert (
        sorted(server.files) == [f"/reports/rdma-evidence-{run_of(1)}.tar.gz{end}" for end in ("", ".sha256")]
        and len(server.asked) == 3
    )
    server.asked.clear()
    _code, output = site.play("report", *said, "--check", callback="linerate.rdma.stages")
    assert (
        server.asked == []
        and f"check mode: the archive of this run would be sent to {server.address}/reports/; nothing was sent"
        in output
    ), output


def test_stage_validate_refuses_a_place_before_anything_is_run(site: Site, server: PutServer) -> None:
    over = f"{server.address}/last?X-Amz-Date=20200102T030405Z&X-Amz-Expires=1&X-Amz-Signature={WORD}"
    code, output = site.play("validate", "-e", json.dumps({"rdma_fabrics": []}), RDMA_REPORT_ARCHIVE=over)
    assert code != 0 and "[fail] validate.archive on rdma_report_archive" in output and "expired at 2020" in output, (
        output
    )
    fact = json.loads((site.report / "facts" / "report_archive" / "cluster.json").read_text(encoding="utf-8"))["value"][
        "archive"
    ]
    assert fact["place"] == f"{server.address}/last?..." and fact["remedy"] and server.asked == []
    assert WORD not in output and WORD.encode() not in site.written()
