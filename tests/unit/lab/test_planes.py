# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of the whole lab."""

from __future__ import annotations

import pathlib

from lab.planes import set_report_aside


def test_report_of_a_cluster_that_ends_is_set_aside(tmp_path: pathlib.Path) -> None:
    report, kept = tmp_path / "report", tmp_path / "report-before"
    set_report_aside(report)
    assert not kept.exists()
    for text in ("first", "second"):
        report.mkdir()
        (report / "run.json").write_text(text, encoding="utf-8")
        set_report_aside(report)
        assert not report.exists() and (kept / "run.json").read_text(encoding="utf-8") == text
