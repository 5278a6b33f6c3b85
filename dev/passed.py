# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a tool has passed before, with all that they import: the tool needs to look at the others only.

A file counts as another one if it changes itself, or a file of this repository that it imports, directly or by others.
What else the result depends on, such as the version of the tool, belongs into its name. The cache of builds keeps the
digests, so ``make clean-cache`` forgets them.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import pathlib
import typing

from .steps import CACHE

#: the name under which a collection imports itself
_OURS = "ansible_collections.linerate.rdma."
#: a plugin is documented by fragments too, which it names in YAML
_DOCUMENTED = "plugins/"
_FRAGMENTS = "plugins/doc_fragments/"
#: digests that are kept of a name, so that two branches in turn do not forget each other
_MOST = 20_000


class PassedFiles:
    """The digests of files that one tool has passed.

    :ivar files: path below the root -> digest of it and of all that it imports
    :ivar whole: digest of all files together, so that a file that is gone is noticed too
    """

    def __init__(
        self,
        name: str,
        root: pathlib.Path,
        paths: typing.Iterable[str],
        is_chosen: typing.Callable[[str], bool] = lambda path: True,
    ) -> None:
        """:param paths: of all files of the repository, since a file may import each of them
        :param is_chosen: whether the tool looks at a path
        """
        self._path = CACHE / "passed" / hashlib.sha256(name.encode()).hexdigest()[:16]
        self.files = {path: digest for path, digest in digest_files(root, paths).items() if is_chosen(path)}
        self.whole = hashlib.sha256(" ".join(sorted(self.files.values())).encode()).hexdigest()[:20]

    def is_known(self) -> bool:
        """Return whether the files have passed together as they are."""
        return self.whole in self._read()

    def list_others(self) -> list[str]:
        """List the paths that have not passed as they are."""
        known = set(self._read())
        return sorted(path for path, digest in self.files.items() if digest not in known)

    def keep(self) -> None:
        """Keep that all of the files have passed."""
        digests = [*sorted(self.files.values()), self.whole]
        kept = [digest for digest in self._read() if digest not in set(digests)]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        partial.write_text("\n".join([*kept, *digests][-_MOST:]), encoding="utf-8")
        partial.replace(self._path)

    def _read(self) -> list[str]:
        return self._path.read_text(encoding="utf-8").split() if self._path.exists() else []


def digest_files(root: pathlib.Path, paths: typing.Iterable[str]) -> dict[str, str]:
    """Return path -> digest of the file and of all files of the repository that it imports.

    :param root: of the repository
    :param paths: of all its files, below it
    """
    known = set(paths)
    own = {path: _digest_one(root / path) for path in known}
    imports = functools.cache(lambda path: _list_imports(root, path, known))
    fragments = {path for path in known if path.startswith(_FRAGMENTS)}
    found = {}
    for path in known:
        closure, waiting = {path}, [path, *(fragments if path.startswith(_DOCUMENTED) else ())]
        while waiting:
            closure.add(one := waiting.pop())
            waiting += imports(one) - closure
        text = "\n".join([path, *(f"{name} {own[name]}" for name in sorted(closure))])
        found[path] = hashlib.sha256(text.encode()).hexdigest()[:20]
    return found


def _digest_one(path: pathlib.Path) -> str:
    content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
    return hashlib.sha256(b"%o\0%s" % (path.lstat().st_mode, content)).hexdigest()


def _list_imports(root: pathlib.Path, path: str, known: typing.Container[str]) -> set[str]:
    """List the files of the repository that a file imports anywhere in it, and the packages on the way to them."""
    if not path.endswith(".py") or (root / path).is_symlink():
        return set()
    try:
        tree = ast.parse((root / path).read_bytes(), path)
    except SyntaxError:
        # the tool names it
        return set()
    names: set[str] = set()
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*package[: len(package) - node.level + 1], node.module or ""]) if node.level else node.module
            )
            names |= {f"{str(base).rstrip('.')}.{alias.name}" for alias in node.names} | {str(base).rstrip(".")}
    found = set()
    for name in names:
        parts = name.removeprefix(_OURS).split(".")
        for length in range(1, len(parts) + 1):
            place = "/".join(parts[:length])
            found |= {each for each in (f"{place}.py", f"{place}/__init__.py") if each in known}
    return found
