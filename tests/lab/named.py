# SPDX-License-Identifier: GPL-3.0-or-later

"""A run has named a fault as its scenario says."""

from __future__ import annotations

import fnmatch

from .conftest import Run
from .scenarios import Expected


def assert_named(run: Run, expected: Expected) -> None:
    found = [
        finding
        for finding in run.findings(expected.stage, expected.status)
        if finding["check"] == expected.check and fnmatch.fnmatchcase(finding["subject"], expected.subject)
    ]
    assert found, f"no finding {expected.check} on {expected.subject} is {expected.status}\n{run.end}"
    for finding in found:
        words = f"{finding['measured']} | {finding['expected']} | {finding['why']}"
        assert [text for text in expected.says if text not in words] == [], finding
        assert expected.remedy in finding["remedy"], finding
