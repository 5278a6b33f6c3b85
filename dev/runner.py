# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs as AWX runs them, by ansible-runner, where nothing is but what the execution environment has. Arguments go to
pytest.

The tarball of the collection, and the collections that it wants, are installed into a virtual environment of their own
below ``build/``: an execution environment without its container.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

from . import pythons
from .lint import tarball
from .setup import make_environment
from .steps import BUILD, COLLECTIONS, ROOT, VENV, guarded, run
from .tree import make_tree

ENVIRONMENT = BUILD / "venv-runner"
#: in an image it is /usr/share/ansible/collections
INSTALLED = ENVIRONMENT / "share" / "ansible" / "collections"
#: the others of execution-environment.yml, and what they want
OTHERS = ("kubernetes/core", "awx/awx")


def main() -> int:
    """Install the collection, and run the tests in the foreground.

    :returns: pytest's exit code
    """
    make_environment(ENVIRONMENT, pathlib.Path(__file__).parent / "runner.txt", pythons.of_execution_environment())
    _install(tarball(make_tree(), BUILD / "runner"))
    return subprocess.call(
        [str(VENV / "bin" / "python"), "-m", "pytest", "--durations", "5", "tests/runner", *sys.argv[1:]], cwd=ROOT
    )


def _install(archive: pathlib.Path) -> None:
    shutil.rmtree(INSTALLED, ignore_errors=True)
    for name in OTHERS:
        shutil.copytree(COLLECTIONS / "ansible_collections" / name, INSTALLED / "ansible_collections" / name)
    command = [
        str(ENVIRONMENT / "bin" / "ansible-galaxy"),
        "collection",
        "install",
        "--offline",
        "--collections-path",
        str(INSTALLED),
        str(archive),
    ]
    environment = {"ANSIBLE_HOME": str(BUILD / "ansible-home"), "ANSIBLE_COLLECTIONS_PATH": str(INSTALLED)}
    run(
        "install the collection as an image has it",
        command,
        "See galaxy.yml: its dependencies, and what its tarball lacks.",
        cwd=archive.parent,
        env=environment,
    )


if __name__ == "__main__":
    guarded(main)
