# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack a module of the collection, and the modules of the collection that it imports, into a zip file that Python can
run. It runs in observers, pods that have Python but not the collection.

The sources are read through their loaders, so this works from a folder and from the archive into which Ansible packs a
module.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import typing
import zipfile

from ..._model.base.errors import RdmaError

#: before 1980 a zip file knows no time; a fixed one makes the same file of the same sources
_TIME = (1980, 1, 1, 0, 0, 0)
_ROOT = __package__.rsplit(".", 2)[0]
#: run with the archive on stdin: it needs a folder that can be written, since Python loads no archive from memory
START = (
    "import os, runpy, sys, tempfile\n"
    "handle, path = tempfile.mkstemp(suffix='.zip')\n"
    "try:\n"
    "    with os.fdopen(handle, 'wb') as file:\n"
    "        file.write(sys.stdin.buffer.read())\n"
    "    sys.path.insert(0, path)\n"
    "    sys.dont_write_bytecode = True\n"
    "    name = sys.argv.pop(1)\n"
    "    runpy.run_module(name, run_name='__main__', alter_sys=True)\n"
    "finally:\n"
    "    os.remove(path)\n"
)


def build_archive(entry: str) -> bytes:
    """Return a zip file with a Python module and all modules of the collection that it imports, in their packages.

    :param entry: full name of the module, such as ``ansible_collections.linerate.rdma.plugins.module_utils.x``
    :raises RdmaError: the source of a module cannot be read
    """
    sources: dict[str, str] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        path = _get_module_path(name)
        if path not in sources:
            source = _read_module_source(name)
            tree = ast.parse(source)
            sources[path] = _blank_docstrings(source, tree)
            waiting += _list_imports(name, path, tree)
    for path in list(sources):
        parts = path.split("/")[:-1]
        for length in range(1, len(parts) + 1):
            sources.setdefault("/".join((*parts[:length], "__init__.py")), "")
    return _pack_sources(sources)


def _pack_sources(sources: typing.Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for path, source in sorted(sources.items()):
            file.writestr(zipfile.ZipInfo(path, _TIME), source, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _get_module_path(name: str) -> str:
    spec = importlib.util.find_spec(name)
    parts = name.replace(".", "/")
    return f"{parts}/__init__.py" if spec is not None and spec.submodule_search_locations is not None else f"{parts}.py"


def _read_module_source(name: str) -> str:
    spec = importlib.util.find_spec(name)
    read = getattr(spec.loader if spec else None, "get_source", None)
    source = read(name) if read else None
    if source is None:
        raise RdmaError(
            f"the source of {name} could not be read",
            "Install the collection again: ansible-galaxy collection install linerate.rdma --force",
        )
    return str(source)


def _blank_docstrings(source: str, tree: ast.AST) -> str:
    """Return a source with empty docstrings. This makes the archive smaller, which goes to each node. The lines keep
    their numbers, so that tracebacks name the right ones.

    :param tree: syntax tree of the source
    """
    lines = source.encode("utf-8").split(b"\n")
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) or ast.get_docstring(node) is None:
            continue
        text = node.body[0]
        first, last = text.lineno - 1, (text.end_lineno or text.lineno) - 1
        lines[last] = lines[last][text.end_col_offset :] if last > first else lines[last]
        rest = lines[first][text.end_col_offset :] if last == first else b""
        lines[first] = lines[first][: text.col_offset] + b'""' + rest
        lines[first + 1 : last] = [b""] * max(0, last - first - 1)
    return b"\n".join(lines).decode("utf-8")


def _list_imports(name: str, path: str, tree: ast.AST) -> typing.Iterator[str]:
    """Yield the full names of the modules of the collection that a source imports. All of these imports are relative.

    :param name: full name of the module with the source
    :param path: path of the module in the archive
    :param tree: syntax tree of the source
    """
    package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(
                [
                    *package.split(".")[: len(package.split(".")) - node.level + 1],
                    *([node.module] if node.module else []),
                ]
            )
            if not base.startswith(_ROOT):
                continue
            yield base
            for alias in node.names:
                if importlib.util.find_spec(base) and _is_module(f"{base}.{alias.name}"):
                    yield f"{base}.{alias.name}"


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        # what it is imported from is no package
        return False
