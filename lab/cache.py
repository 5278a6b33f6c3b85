# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds, kept in the user's cache folder by what they are made from."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import pathlib
import shutil
import typing

from dev.steps import CACHE, step

Input = typing.Union[str, pathlib.Path]


def key(inputs: typing.Iterable[Input]) -> str:
    """Digest of texts, of files and of folders (names and contents; ``__pycache__`` left out)."""
    digest = hashlib.sha256()
    for item in inputs:
        if isinstance(item, str):
            digest.update(b"text\0" + item.encode() + b"\0")
            continue
        files = sorted(path for path in item.rglob("*") if path.is_file()) if item.is_dir() else [item]
        for path in files:
            if "__pycache__" not in path.parts:
                name = path.relative_to(item) if path != item else path.name
                digest.update(f"file\0{name}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cached(name: str, inputs: typing.Iterable[Input], build: typing.Callable[[pathlib.Path], None]) -> pathlib.Path:
    """The folder ``<cache>/<name>/<key>``; ``build(folder)`` fills it when it is not there.

    A build that fails or is interrupted leaves nothing that could be taken for a good one; older keys of the name are
    removed.
    """
    parent = CACHE / name
    target = parent / key(inputs)
    if target.is_dir():
        return target
    parent.mkdir(parents=True, exist_ok=True)
    with _lock(parent):
        if target.is_dir():
            return target
        partial = parent / f"{target.name}.partial"
        for stale in parent.iterdir():
            if stale.is_dir():
                shutil.rmtree(stale)
        partial.mkdir()
        with step(f"build {name}"):
            build(partial)
        partial.rename(target)
    return target


@contextlib.contextmanager
def _lock(parent: pathlib.Path) -> typing.Iterator[None]:
    with open(parent / ".lock", "w", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
