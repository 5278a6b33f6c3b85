# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps that run beside each other: each ends, and each that failed is named."""

from __future__ import annotations

import functools
import os
import pathlib
import sys
import threading
import typing

import pytest

from dev.steps import StepError, run, together


def test_all_end_and_each_failure_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dev.steps.LOGS", tmp_path)
    monkeypatch.setattr("dev.steps.ROOT", tmp_path)
    scripts = {
        "one": "raise SystemExit('first cause')",
        "two": "print('fine')",
        "three": "raise SystemExit('last cause')",
    }
    with pytest.raises(StepError) as failed:
        together(
            [
                functools.partial(run, name, [sys.executable, "-c", script], f"Correct {name}.", tmp_path)
                for name, script in scripts.items()
            ]
        )
    assert (
        "'one' ended with 1" in str(failed.value)
        and "first cause" in str(failed.value)
        and "last cause" in str(failed.value)
    )
    assert failed.value.remedy == "Correct one.\nCorrect three."
    assert "  two: " in capsys.readouterr().out and (tmp_path / "two.log").read_text() == "fine\n"


def test_they_run_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    meeting = threading.Barrier(2, timeout=60)
    together([meeting.wait, meeting.wait])


@pytest.mark.parametrize(
    "order",
    [(StepError("foreseen", ""), OSError("not foreseen")), (OSError("not foreseen"), StepError("foreseen", ""))],
)
def test_what_nobody_foresaw_is_no_failure_of_a_step(order: typing.Sequence[Exception]) -> None:
    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(OSError, match="not foreseen"):
        together([functools.partial(fail, error) for error in order])
