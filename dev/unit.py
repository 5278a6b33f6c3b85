# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests that need no lab. Arguments go to pytest."""

from __future__ import annotations

import subprocess
import sys

from .steps import ROOT, VENV

#: all of them, on all processors
ALL = ("-n", "auto", "tests/unit")


def unit(*arguments: str) -> int:
    """Run them in the foreground: pytest shows its own progress.

    :returns: pytest's exit code
    """
    return subprocess.call([str(VENV / "bin" / "python"), "-m", "pytest", *(arguments or ALL)], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(unit(*sys.argv[1:]))
