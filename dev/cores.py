# SPDX-License-Identifier: GPL-3.0-or-later

"""Environments of the releases of ansible-core that are supported. ``python -m dev.cores 2.16 ARGUMENTS...`` runs
pytest with the ansible-playbook of one."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from .setup import make_environment
from .steps import BUILD, ROOT, VENV, guarded

#: the one of the set-up; the others have a list of packages each, dev/sanity-<release>.txt
NEWEST = "2.19"


def list_pins(release: str) -> pathlib.Path:
    """Return the file with the exact packages of a release."""
    return ROOT / ("test-requirements.txt" if release == NEWEST else f"dev/sanity-{release}.txt")


def environment_of(release: str) -> pathlib.Path:
    """Make the environment of a release, unless it is there."""
    if release == NEWEST:
        return VENV
    path = BUILD / f"venv-core-{release}"
    make_environment(path, list_pins(release))
    return path


def main() -> int:
    """Run pytest in the foreground.

    :returns: its exit code
    """
    release, *arguments = sys.argv[1:]
    program = environment_of(release) / "bin" / "ansible-playbook"
    command = [str(VENV / "bin" / "python"), "-m", "pytest", *arguments]
    return subprocess.call(command, cwd=ROOT, env={**os.environ, "LINERATE_ANSIBLE_PLAYBOOK": str(program)})


if __name__ == "__main__":
    guarded(main)
