# SPDX-License-Identifier: GPL-3.0-or-later

"""``ansible-test sanity`` without a single ignore, on the ansible-core releases that this Python can install.

``python -m dev.sanity`` does what 'make test' has of it; arguments are sizes (``test-all``: what that one has more) and
releases.

Each release has a virtual environment of its own below ``build/``. The newest one runs all tests. What can differ
between Pythons is looked at on the controller's, and on the oldest one by the oldest release, since a node may have
both. The other Pythons, and the oldest one by the newest release, come with the largest size. The oldest release runs
what can differ between releases: does the collection document itself, and does it import. How validate-modules of the
older releases sees it comes with the largest size. ansible-test names Python 3.8 as well, and looks at no file there:
tests/config.yml says that it is too old.

The newest release reads what the collection ships in 'make test', and its tests, its tools and its lab in 'make
test-all': pylint alone takes most of an hour of a small machine for all of them, and 'make lint' has ruff and mypy for
each file.

A file that has passed is looked at again only if it changes, or what it imports (dev/passed.py); tests that look at the
collection as a whole run each time, unless nothing has changed at all. ``make clean-cache`` forgets what has passed.

Invocations run beside each other: each has a copy of the checkout and a home of its own, since ``ansible-test`` keeps
results in the one and makes virtual environments in the other without looking whether another one does the same.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import shutil
import sys
import typing

from . import pythons
from .cores import NEWEST, environment_of, list_pins
from .passed import PassedFiles
from .sizes import ALL, SIZES, TEST
from .steps import BUILD, CACHE, VENV, StepError, guarded, run, say, together
from .tree import TREE, list_files, make_tree

PYTHONS = BUILD / "pythons"
#: of files that changed: with more of them ansible-test looks at all
_MOST_NAMED = 400
#: files for ansible-test to be called with, where no other one needs it
_SMALL, _SMALL_UNSHIPPED = "galaxy.yml", "dev/sizes.py"
#: what all results depend on, beside the file that is looked at and what it imports
_GROUNDS = ("dev/sanity.py", "tests/config.yml", "galaxy.yml", "meta/runtime.yml")
#: of nodes and observers; the newest is the newest that an ansible-core here knows
_MINORS = range(9, 14)

OLDEST, CONTROLLER, BETWEEN = "the oldest Python", "the controller's Python", "the other Pythons"
#: tests that run once for each Python; all others run on that of the controller
ON_PYTHONS = ("compile", "import")

#: folders that the tarball of the collection leaves out (galaxy.yml)
UNSHIPPED_FOLDERS = ("dev/", "lab/", "tests/")
SHIPPED, UNSHIPPED, EACH = "what ships", "what does not ship", ""


@dataclasses.dataclass(frozen=True)
class Invocation:
    """A call of ansible-test.

    :ivar size: the smallest that has it
    :ivar tests: empty: all but those of ON_PYTHONS
    :ivar pythons: for those of ON_PYTHONS
    :ivar files: that are looked at: SHIPPED, UNSHIPPED or EACH
    """

    release: str
    size: str
    tests: tuple[str, ...] = ()
    pythons: tuple[str, ...] = (CONTROLLER,)
    files: str = EACH

    @property
    def name(self) -> str:
        """What it does, on a line."""
        on = f" on {' and '.join(self.pythons)}" if set(self.tests) & set(ON_PYTHONS) else ""
        return (
            f"ansible-core {self.release}:"
            f" {', '.join(self.tests) or f'all tests but {ON_PYTHONS[0]} and {ON_PYTHONS[1]}'}{on}"
            f"{f', {self.files}' if self.files else ''}"
        )

    @property
    def place(self) -> str:
        """What its copy and its home have in their names; those of one place run one after the other."""
        return "" if not self.tests else f"-{self.release}{'-pythons' if self.tests == ON_PYTHONS else ''}"

    def has_file(self, path: str) -> bool:
        """Return whether the invocation looks at a file.

        :param path: below the root of the repository
        """
        return not self.files or path.startswith(UNSHIPPED_FOLDERS) == (self.files == UNSHIPPED)

    @property
    def limits(self) -> tuple[str, ...]:
        """The arguments that limit ansible-test to the files where no file is named."""
        if self.files == SHIPPED:
            return tuple(word for folder in UNSHIPPED_FOLDERS for word in ("--exclude", folder))
        return UNSHIPPED_FOLDERS if self.files == UNSHIPPED else ()


#: the longest first: they run beside each other
INVOCATIONS = (
    Invocation(NEWEST, TEST, files=SHIPPED),
    Invocation("2.16", TEST, ("ansible-doc", "runtime-metadata", *ON_PYTHONS), (OLDEST,)),
    Invocation(NEWEST, TEST, ON_PYTHONS, (CONTROLLER,)),
    Invocation(NEWEST, ALL, files=UNSHIPPED),
    Invocation(NEWEST, ALL, ON_PYTHONS, (OLDEST, BETWEEN)),
    Invocation("2.16", ALL, ("validate-modules",)),
    Invocation("2.18", ALL, ("validate-modules", "ansible-doc", "runtime-metadata")),
)

# ansible-test fetches pip's installer from a server of its own, unless it lies in its cache. This one does the same
# with what Python carries
_BOOTSTRAP = """
import subprocess
import sys

packages = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.run([sys.executable, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--quiet", *packages]))
"""
_BOOTSTRAP_NAMES = ("get_pip_24_2.py", "get_pip_23_1_2.py")


def main() -> None:
    words = sys.argv[1:] or [TEST]
    known = {*SIZES, *(invocation.release for invocation in INVOCATIONS)}
    if not known.issuperset(words):
        raise StepError(
            f"no size and no release: {', '.join(sorted(set(words) - known))}",
            f"Give some of: {', '.join(sorted(known))}",
        )
    wanted = [invocation for invocation in INVOCATIONS if invocation.release in words or invocation.size in words]
    versions = _gather_pythons()
    for release in dict.fromkeys(invocation.release for invocation in wanted):
        environment_of(release)
    places = dict.fromkeys(invocation.place for invocation in wanted)
    together(
        [
            functools.partial(_sanity, place, [each for each in wanted if each.place == place], versions)
            for place in places
        ]
    )


def command_of(invocation: Invocation, versions: typing.Sequence[str]) -> list[str]:
    """The command line, but for the program; empty when this machine has none of the Pythons that it is for.

    :param versions: Pythons of this machine, the oldest first
    """
    controller = f"3.{sys.version_info.minor}"
    by_name = {
        OLDEST: versions[:1],
        CONTROLLER: [controller],
        BETWEEN: [version for version in versions[1:] if version != controller],
    }
    targets = dict.fromkeys(version for name in invocation.pythons for version in by_name[name])
    if not targets:
        return []
    option, named = ("--test", invocation.tests) if invocation.tests else ("--skip-test", ON_PYTHONS)
    tests = [word for test in named for word in (option, test)]
    return ["sanity", "--color", "no", *tests, *[word for version in targets for word in ("--target-python", version)]]


def _sanity(place: str, invocations: typing.Sequence[Invocation], versions: typing.Sequence[str]) -> None:
    """:param invocations: of one place, and so of one release"""
    tree, home = TREE.with_name(f"{TREE.name}{place}"), CACHE / f"ansible-test-home{place}"
    release = invocations[0].release
    copy = make_tree(tree)
    _lay_bootstrap(home)
    environment = environment_of(release)
    variables = {
        # ansible-test keeps its virtual environments below its home; there they outlive this checkout and touch nothing
        # of the user
        "HOME": str(home),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(pathlib.Path.home() / ".cache" / "pip")),
        "PATH": os.pathsep.join([str(environment / "bin"), str(VENV / "bin"), str(PYTHONS), *pythons.plain_path()]),
        "ANSIBLE_COLLECTIONS_PATH": str(tree),
        "GIT_CEILING_DIRECTORIES": str(BUILD),
    }
    remedy = f"Correct what it names; alone it is run by: build/venv/bin/python -m dev.sanity {release}"
    for invocation in invocations:
        command = command_of(invocation, versions)
        if not command:
            say(f"- not run, since no Python of this machine is for it: {invocation.name}")
            continue
        grounds = _describe_grounds(invocation, command, copy)
        passed = PassedFiles(grounds, copy, list_files(copy), invocation.has_file)
        if passed.is_known():
            say(f"- passed before, all {len(passed.files)} files as they are: {invocation.name}")
            continue
        # a file is gone, perhaps, and no other one imports it: tests of the whole collection look for that
        small = _SMALL if invocation.has_file(_SMALL) else _SMALL_UNSHIPPED
        named = passed.list_others() or [small]
        if len(named) < len(passed.files):
            say(f"- {len(named)} of {len(passed.files)} files have changed, or what they import: {invocation.name}")
        run(
            f"ansible-test sanity, {invocation.name}",
            [
                environment / "bin" / "ansible-test",
                *command,
                *(named if len(named) <= _MOST_NAMED else invocation.limits),
            ],
            remedy,
            cwd=copy,
            env=variables,
        )
        passed.keep()


def _describe_grounds(invocation: Invocation, command: typing.Sequence[str], copy: pathlib.Path) -> str:
    """Return what the results of all files depend on: command line, packages, Python, settings."""
    settings = [(copy / name).read_text(encoding="utf-8") for name in _GROUNDS]
    pins = list_pins(invocation.release).read_text(encoding="utf-8")
    return "\n".join([*command, invocation.files, sys.version, pins, *settings])


def _gather_pythons() -> list[str]:
    """Links to the Pythons of this machine that start, so that modules are compiled and imported by them.

    :returns: their versions, the oldest first
    """
    shutil.rmtree(PYTHONS, ignore_errors=True)
    PYTHONS.mkdir(parents=True)
    found = []
    for minor, path in pythons.find(_MINORS).items():
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
