# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the changelog that the next release would have to ``build/CHANGELOG.md`` and ``build/CHANGELOG.rst``.
``python -m dev.changelog [VERSION]``; without a version it is the one of galaxy.yml.

Makes it in a copy of the checkout, so the fragments stay. Fragments without a commit count.
"""

from __future__ import annotations

import pathlib
import shutil
import sys
import typing

import yaml

from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, VENV, StepError, guarded, run, say
from .tree import make_tree

NAMES = ("CHANGELOG.md", "CHANGELOG.rst")


def main() -> None:
    paths = write(make_tree(BUILD / "changelog"), sys.argv[1:], BUILD)
    say("\n".join(map(str, paths)))


def write(copy: pathlib.Path, versions: typing.Sequence[str], folder: pathlib.Path) -> list[pathlib.Path]:
    """Make the changelog from the fragments of a copy of the checkout.

    :param copy: its fragments are removed, as a release does
    :param versions: the version of the release; empty: that of galaxy.yml
    :param folder: where the changelog goes
    :returns: the paths of the files
    :raises StepError: the version was released before, or antsibull-changelog fails
    """
    galaxy = yaml.safe_load((copy / "galaxy.yml").read_text(encoding="utf-8"))
    version = (*versions, galaxy["version"])[0]
    released = yaml.safe_load((copy / "changelogs/changelog.yaml").read_text(encoding="utf-8"))["releases"]
    if version in released:
        raise StepError(
            f"changelogs/changelog.yaml has version {version} already",
            "Give the next version: build/venv/bin/python -m dev.changelog 1.2.0",
        )
    environment = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": f"{copy.parents[2]}:{COLLECTIONS}"}
    command = [str(VENV / "bin" / "antsibull-changelog"), "release", "--version", version]
    run("changelog", command, "Correct the fragment that it names.", cwd=copy, env=environment)
    return [pathlib.Path(shutil.copy2(copy / name, folder / name)) for name in NAMES]


if __name__ == "__main__":
    guarded(main)
