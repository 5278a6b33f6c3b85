# SPDX-License-Identifier: GPL-3.0-or-later

"""A build of Go tools goes on after a download that broke off, and after nothing else."""

from __future__ import annotations

import pathlib
import typing

import pytest

from dev.steps import StepError
from lab.build import gotools

BROKEN_OFF = 'k8s.io/kubernetes@v1.34.4: Get "https://proxy.example/k8s.io.zip": net/http: TLS handshake timeout'


@pytest.mark.parametrize(
    ("says", "runs", "fails"),
    [
        ([BROKEN_OFF], 2, False),
        ([BROKEN_OFF] * 3, 3, True),
        (["undefined: x"], 1, True),
        ([BROKEN_OFF, "undefined: x"], 2, True),
        ([], 1, False),
    ],
)
def test_build_goes_on_after_a_broken_download_only(
    says: list[str], runs: int, fails: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[typing.Sequence[str]] = []

    def run(command: typing.Sequence[str], **_more: typing.Any) -> str:
        commands.append(command)
        if len(commands) <= len(says):
            raise StepError(f"'go build' ended with 1:\n{says[len(commands) - 1]}", "is the Go module proxy reachable?")
        return ""

    monkeypatch.setattr(gotools, "run", run)
    try:
        gotools._compile(tmp_path, [gotools.TOOL["etcd"]], tmp_path)
        assert not fails
    except StepError as error:
        assert fails and says[-1] in str(error)
    assert len(commands) == runs and len({tuple(command) for command in commands}) == 1
