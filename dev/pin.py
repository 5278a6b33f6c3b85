# SPDX-License-Identifier: GPL-3.0-or-later

"""Pins ``test-requirements.txt``: every package that ``test-requirements.in`` leads to, in the newest release that fits.

Run it with the oldest Python that the project is developed on.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

from .steps import ROOT, guarded, run, say


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", str(report), "-r", "test-requirements.in"]
        run("resolve test-requirements.in", command, "Look whether the Python package index can be reached, and whether the requirements fit together.")
        packages = [item["metadata"] for item in json.loads(report.read_text(encoding="utf-8"))["install"]]
    lines = sorted(f"{package['name'].lower().replace('_', '-')}=={package['version']}" for package in packages)
    head = "# Made by 'python3 -m dev.pin' from test-requirements.in. Do not edit."
    (ROOT / "test-requirements.txt").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    say(f"{len(lines)} packages")


if __name__ == "__main__":
    guarded(main)
