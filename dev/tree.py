# SPDX-License-Identifier: GPL-3.0-or-later

"""A copy of the checkout at ``build/tree/ansible_collections/linerate/rdma``, or below another folder than
``build/tree``.

``ansible-test`` and ``antsibull-docs`` want a collection at a real path of that form, inside a git repository, and take
no link for it. The copy holds what git tracks and what it would track; so uncommitted work is looked at too.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess

from .steps import BUILD, COLLECTIONS, ROOT

TREE = BUILD / "tree"


def make_tree(tree: pathlib.Path = TREE) -> pathlib.Path:
    """Make or refresh the copy and return its path. Files that did not change keep their times, so that caches stay
    good.

    :param tree: of its own for each ``ansible-test`` that runs beside another one: it keeps results and caches in the
        copy
    """
    copy = tree / "ansible_collections" / "linerate" / "rdma"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    names = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    copy.mkdir(parents=True, exist_ok=True)
    for path in sorted(copy.rglob("*"), reverse=True):
        relative = path.relative_to(copy).as_posix()
        if relative.split("/")[0] in (".git", "tests/output"):
            continue
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif relative not in names:
            path.unlink()
    for name in sorted(names):
        source, target = ROOT / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (
            not target.exists()
            or target.read_bytes() != source.read_bytes()
            or target.stat().st_mode != source.stat().st_mode
        ):
            shutil.copy2(source, target)
    link = tree / "ansible_collections" / "kubernetes"
    if not link.exists():
        link.symlink_to(COLLECTIONS / "ansible_collections" / "kubernetes")
    if not (copy / ".git").exists():
        subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    subprocess.run(["git", "add", "--all", "--force"], cwd=copy, check=True)
    return copy


def list_files(copy: pathlib.Path) -> list[str]:
    """List the files of a copy, as paths below it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=copy, capture_output=True, check=True).stdout
    return [name for name in listed.decode().split("\0") if name]
