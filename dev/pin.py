# SPDX-License-Identifier: GPL-3.0-or-later

"""Pins the lists of packages: every package that a list of names leads to, in the newest release that fits.

``test-requirements.txt`` is what developers need; beside this file, ``docs.txt`` is what builds the documentation,
``browser.txt`` what drives a browser, ``audit.txt`` what looks for known vulnerabilities, and ``runner.txt`` what an
execution environment has, for whose build it is ``meta/ee-constraints.txt`` as well. Arguments name lists; else all are
renewed. Run it with the oldest Python that the project is developed on. The list of the execution environment wants a
newer one, which must be there.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

from . import pythons
from .steps import ROOT, guarded, run, say

LISTS = {
    "test-requirements": ROOT,
    "docs": ROOT / "dev",
    "browser": ROOT / "dev",
    "audit": ROOT / "dev",
    "runner": ROOT / "dev",
}


def main() -> None:
    for name in sys.argv[1:] or LISTS:
        _pin(LISTS[name] / f"{name}.in", pythons.of_execution_environment() if name == "runner" else sys.executable)


def _pin(wanted: pathlib.Path, python: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [
            python,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--quiet",
            "--report",
            str(report),
            "-r",
            str(wanted),
        ]
        run(
            f"resolve {wanted.name}",
            command,
            "Look whether the Python package index can be reached, and whether the requirements fit together.",
        )
        packages = [item["metadata"] for item in json.loads(report.read_text(encoding="utf-8"))["install"]]
    lines = sorted(f"{package['name'].lower().replace('_', '-')}=={package['version']}" for package in packages)
    head = f"# Made by 'python3 -m dev.pin' from {wanted.name}. Do not edit."
    text = "\n".join([head, *lines]) + "\n"
    wanted.with_suffix(".txt").write_text(text, encoding="utf-8")
    if wanted.name == "runner.in":
        # what jobs are tried with is what the image is built of
        (ROOT / "meta" / "ee-constraints.txt").write_text(text, encoding="utf-8")
    say(f"{len(lines)} packages")


if __name__ == "__main__":
    guarded(main)
