# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All tests, in the order of their cost; the first part that fails ends it. One lab serves molecule and the tests on the lab, and is taken down at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import typing

from .steps import ANSIBLE_ENV, BUILD, ROOT, VENV, say

PYTHON = str(VENV / "bin" / "python")
# tools.sanity has made its environment by then
OLDEST = [PYTHON, "-m", "pytest", "tests/unit/house/test_frame.py", "-k", "green_twice or wrong_type or broken_role or never_dropped"]


def main() -> int:
    start = time.monotonic()
    code = (
        _part("lint", [PYTHON, "-m", "tools.lint"])
        or _part("tests without a lab", [PYTHON, "-m", "tools.unit"])
        or _part("the frame on the oldest ansible-core", OLDEST, {"LINERATE_ANSIBLE_PLAYBOOK": str(BUILD / "venv-core-2.16" / "bin" / "ansible-playbook")})
        or _on_the_lab()
    )
    say(f"== {'all tests passed' if code == 0 else 'FAILED'} after {time.monotonic() - start:.0f} s")
    return code


def _on_the_lab() -> int:
    """Molecule first: it wants the lab as it is made. Its destroy comes last, also when something failed."""
    molecule = [str(VENV / "bin" / "molecule")]
    code = 1
    try:
        code = (
            _part("lab", [PYTHON, "-m", "lab", "up"])
            or _part("molecule, scenario default", [*molecule, "test", "--scenario-name", "default", "--destroy", "never"])
            or _part("tests on the lab", [PYTHON, "-m", "pytest", "tests/lab", "-m", "not thorough"])
        )
    finally:
        # molecule leaves out what it does not remember having made; the second one proves in any case that nothing is left
        down = _part("molecule destroy", [*molecule, "destroy", "--scenario-name", "default"]) or _part("lab down", [PYTHON, "-m", "lab", "down"])
    return code or down


def _part(name: str, command: typing.Sequence[str], environment: typing.Optional[typing.Mapping[str, str]] = None) -> int:
    say(f"== {name}")
    start = time.monotonic()
    code = subprocess.call(command, cwd=ROOT, env={**os.environ, **ANSIBLE_ENV, **(environment or {})})
    say(f"== {name}: {'ok' if code == 0 else f'FAILED with {code}'}, {time.monotonic() - start:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
