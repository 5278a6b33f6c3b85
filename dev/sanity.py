# SPDX-License-Identifier: GPL-3.0-or-later

"""``ansible-test sanity`` without a single ignore, on the ansible-core releases that this Python can install.

Each release has a virtual environment of its own below ``build/``, and looks at the copy of the checkout that dev/tree.py makes.
The newest release runs all tests, on each Python of this machine. The older ones run those that can differ between releases: does it document itself, and on
the oldest release, does it import on the oldest Python, where a node may have both. Which Python it is makes no more of a difference there.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import typing

from . import pythons
from .setup import make_environment
from .steps import BUILD, CACHE, VENV, guarded, run, say
from .tree import TREE, make_tree

PYTHONS = BUILD / "pythons"

_DOCUMENTATION = ("validate-modules", "ansible-doc", "runtime-metadata")
#: release of ansible-core: tests to run, empty for all
RELEASES: typing.Dict[str, typing.Tuple[str, ...]] = {"2.19": (), "2.18": _DOCUMENTATION, "2.16": _DOCUMENTATION}
#: release that imports everything on the oldest Python besides
OLDEST = "2.16"

# ansible-test fetches pip's installer from a server of its own, unless it lies in its cache. This one does the same with what Python carries
_BOOTSTRAP = """
import subprocess
import sys

packages = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.run([sys.executable, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--quiet", *packages]))
"""
_BOOTSTRAP_NAMES = ("get_pip_24_2.py", "get_pip_23_1_2.py")


def main() -> None:
    copy = make_tree()
    home = CACHE / "ansible-test-home"
    _lay_bootstrap(home)
    versions = _gather_pythons()
    for release in sys.argv[1:] or RELEASES:
        _sanity(release, copy, home, RELEASES[release])
        if release == OLDEST:
            _sanity(release, copy, home, ("import",), versions[0])


def _sanity(release: str, copy: pathlib.Path, home: pathlib.Path, tests: typing.Sequence[str], python: str = "") -> None:
    """:param tests: empty for all
    :param python: empty for each on which a test can run
    """
    if release == "2.19":
        environment = VENV
    else:
        environment = BUILD / f"venv-core-{release}"
        make_environment(environment, pathlib.Path(__file__).parent / f"sanity-{release}.txt")
    command = [str(environment / "bin" / "ansible-test"), "sanity", "--color", "no"]
    for test in tests:
        command += ["--test", test]
    if python:
        command += ["--python", python]
    variables = {
        # ansible-test keeps its virtual environments below its home; there they outlive this checkout and touch nothing of the user
        "HOME": str(home),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(pathlib.Path.home() / ".cache" / "pip")),
        "PATH": os.pathsep.join([str(environment / "bin"), str(VENV / "bin"), str(PYTHONS), *pythons.plain_path()]),
        "ANSIBLE_COLLECTIONS_PATH": str(TREE),
        "GIT_CEILING_DIRECTORIES": str(BUILD),
    }
    remedy = f"Correct what it names; alone it is run by: build/venv/bin/python -m dev.sanity {release}"
    run(f"ansible-test sanity, ansible-core {release}{f', import on Python {python}' if python else ''}", command, remedy, cwd=copy, env=variables)


def _gather_pythons() -> typing.List[str]:
    """Links to the Pythons of this machine that start, so that modules are compiled and imported by each of them, the oldest one of a node first of all.

    :returns: their versions, the oldest first
    """
    shutil.rmtree(PYTHONS, ignore_errors=True)
    PYTHONS.mkdir(parents=True)
    found = []
    for minor, path in pythons.find(range(9, 14)).items():
        (PYTHONS / f"python3.{minor}").symlink_to(path)
        found.append(f"3.{minor}")
    say(f"- Pythons for compile and import: {', '.join(found)}")
    return found


def _lay_bootstrap(home: pathlib.Path) -> None:
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in _BOOTSTRAP_NAMES:
        (cache / name).write_text(_BOOTSTRAP, encoding="utf-8")


if __name__ == "__main__":
    guarded(main)
