# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes a release: version, changelog, tarball, checks, commit, tag. ``python -m dev.release 1.2.0 [--dry-run]``.

All of it is made in a worktree of its own and reaches the branch at the end, in one step. So what fails or is
interrupted leaves nothing, and a dry run is the same up to there. Nothing is pushed or published: the last lines say
how.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

from .lint import galaxy
from .sizes import ALL
from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, ROOT, VENV, StepError, guarded, run, say

SITE = BUILD / "release"
TREE = SITE / "ansible_collections" / "linerate" / "rdma"
#: where the version stands, as what
PLACES = {"galaxy.yml": "version: {}", "plugins/module_utils/_model/base/version.py": 'COLLECTION_VERSION = "{}"'}
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_GIT = ("git", "-c", "core.hooksPath=/dev/null")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make release")
    parser.add_argument("version", nargs="?", default="", help="such as 1.2.0")
    parser.add_argument("--dry-run", action="store_true", help="do all but tests, commit and tag")
    given = parser.parse_args()
    refuse(ROOT, given.version, dry_run=given.dry_run)
    if not given.dry_run and subprocess.call([sys.executable, "-m", "dev.test", ALL], cwd=ROOT):
        raise StepError(
            "the tests of what is to be released have failed",
            "Correct what they name, commit it, and give the command again.",
        )
    try:
        archive = _prepare(given.version)
        if given.dry_run:
            say(git(TREE, "diff", "--cached", "--stat").rstrip())
            say(f"Nothing was changed, since this is a dry run. The tarball that it would be: {archive}")
            return
        # somebody may have written into the checkout while the tests ran
        refuse(ROOT, given.version)
        git(TREE, "commit", "--message", f"Release {given.version}")
        git(ROOT, "merge", "--ff-only", git(TREE, "rev-parse", "HEAD").strip())
        git(ROOT, "tag", "--annotate", given.version, "--message", f"linerate.rdma {given.version}")
    finally:
        _forget()
    say(
        f"Released. To publish it:\n  git push origin HEAD {given.version}\n  ansible-galaxy collection publish"
        f" {archive}"
    )


def refuse(root: pathlib.Path, version: str, dry_run: bool = False) -> None:
    """See whether this checkout can be released as this version.

    :param dry_run: a checkout with changes will do: what is committed is looked at
    :raises StepError: it can't; names what is in the way
    """
    if not _VERSION.fullmatch(version):
        raise StepError(
            f"'{version}' is no version; expected three numbers, such as 1.2.0", "Give it: make release VERSION=1.2.0"
        )
    changed = git(root, "status", "--porcelain").splitlines()
    if changed and not dry_run:
        raise StepError(
            "\n".join(["the checkout has changes that are not committed:", *changed[:10]]),
            "Commit them or take them away.",
        )
    if version in git(root, "tag", "--list").split():
        raise StepError(
            f"there is a tag {version} already",
            "Take the next version; a release that was published is never made again.",
        )
    changelog = yaml.safe_load(git(root, "show", "HEAD:changelogs/changelog.yaml"))
    newest = max(map(numbers, changelog["releases"]), default=(0, 0, 0))
    if numbers(version) <= newest:
        raise StepError(
            f"{version} is not newer than {'.'.join(map(str, newest))}, the last one in changelogs/changelog.yaml",
            "Take a higher version.",
        )
    if not git(root, "ls-tree", "--name-only", "HEAD", "changelogs/fragments/").split():
        raise StepError(
            "changelogs/fragments has no fragment, so users would notice nothing",
            "Add one for each change that users notice.",
        )


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def write_version(root: pathlib.Path, version: str) -> None:
    """Write the version into all of its places.

    :raises StepError: a place does not have it, as written in PLACES
    """
    for name, form in PLACES.items():
        path = root / name
        pattern = "^" + re.escape(form).replace(r"\{\}", _VERSION.pattern) + "$"
        text, count = re.subn(pattern, form.format(version), path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if count != 1:
            raise StepError(
                f"{name} has {count} lines of the form '{form.format('1.2.3')}'; expected 1",
                "Correct it, or PLACES in dev/release.py.",
            )
        path.write_text(text, encoding="utf-8")


def git(root: pathlib.Path, *arguments: str) -> str:
    """What git prints.

    :raises StepError: it fails
    """
    done = subprocess.run([*_GIT, *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StepError(f"git {' '.join(arguments)}: {done.stderr.strip()}", "See git status.")
    return done.stdout


def _prepare(version: str) -> pathlib.Path:
    """The release in its worktree, all in the index; returns the tarball, which was looked at."""
    _forget()
    SITE.mkdir(parents=True, exist_ok=True)
    git(ROOT, "worktree", "add", "--detach", "--quiet", str(TREE), "HEAD")
    write_version(TREE, version)
    environment = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": f"{SITE}:{COLLECTIONS}"}
    changelog = [str(VENV / "bin" / "antsibull-changelog"), "release", "--version", version]
    run("changelog", changelog, "Correct the fragment that it names.", cwd=TREE, env=environment)
    git(TREE, "add", "--all")
    built = galaxy(TREE)
    kept = SITE / built.name
    shutil.copy2(built, kept)
    _install(kept)
    return kept


def _install(archive: pathlib.Path) -> None:
    """A user's machine: what comes out of the tarball is all found."""
    target = SITE / "installed"
    shutil.rmtree(target, ignore_errors=True)
    binaries = VENV / "bin"
    command = [
        str(binaries / "ansible-galaxy"),
        "collection",
        "install",
        "--no-deps",
        "--offline",
        "--collections-path",
        str(target),
        str(archive),
    ]
    environment = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": str(target)}
    run("install the tarball", command, "See what the tarball lacks: build_ignore in galaxy.yml.", env=environment)
    text = run(
        "list what is installed",
        [binaries / "ansible-doc", "-t", "module", "-l", "linerate.rdma"],
        "See build_ignore in galaxy.yml.",
        env=environment,
    )
    missing = [
        path.stem for path in (TREE / "plugins/modules").glob("*.py") if f"linerate.rdma.{path.stem} " not in text
    ]
    if missing:
        raise StepError(
            f"the tarball does not show the modules {', '.join(missing)}", "See build_ignore in galaxy.yml."
        )


def _forget() -> None:
    subprocess.run([*_GIT, "worktree", "remove", "--force", str(TREE)], cwd=ROOT, capture_output=True, check=False)
    shutil.rmtree(TREE, ignore_errors=True)
    subprocess.run([*_GIT, "worktree", "prune"], cwd=ROOT, capture_output=True, check=False)


if __name__ == "__main__":
    guarded(main)
