# SPDX-License-Identifier: GPL-3.0-or-later

"""The Pythons of this machine, beside the one that runs us."""

from __future__ import annotations

import os
import pathlib
import shutil
import typing

from .steps import StepError

#: for the ansible-core of execution-environment.yml, oldest first
_OF_EXECUTION_ENVIRONMENT = range(12, 15)


def find(minors: typing.Iterable[int]) -> dict[int, str]:
    """Those that start, by the minor version of Python 3, each with the path of its interpreter."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    found = {}
    for minor in minors:
        folders = [*plain_path(), *map(str, sorted(versions.glob(f"3.{minor}.*/bin")))]
        path = shutil.which(f"python3.{minor}", path=os.pathsep.join(folders))
        if path:
            found[minor] = path
    return found


def plain_path() -> list[str]:
    """PATH without pyenv's shims: they are there for Pythons that then refuse to start, and ansible-test takes that for
    a failure."""
    return [folder for folder in os.environ["PATH"].split(os.pathsep) if pathlib.Path(folder).name != "shims"]


def of_execution_environment() -> str:
    """The oldest Python here that the execution environment's ansible-core runs on.

    :raises StepError: there is none
    """
    for path in find(_OF_EXECUTION_ENVIRONMENT).values():
        return path
    raise StepError(
        "no Python 3.12 or newer is here, which the ansible-core of execution-environment.yml wants",
        "Install one, for example: pyenv install 3.12",
    )
