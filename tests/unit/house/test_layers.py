# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers: arrows go down only. Held by reading the imports of every file, so that no reviewer has to."""

from __future__ import annotations

import ast
import pathlib
import sys
import typing

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins" / "module_utils"
OURS = "ansible_collections.linerate.rdma.plugins.module_utils"

# layer: layers it may import from, beside itself. _run holds the loops that observe and decide in turn (waits,
# measurements); nothing below _app knows it
ALLOWED = {
    "_model": set(),
    "_parse": {"_model"},
    "_store": {"_model", "_parse"},
    "_observe": {"_model", "_parse", "_store"},
    "_analysis": {"_model", "_parse"},
    "_render": {"_model", "_parse"},
    "_check": {"_analysis", "_model", "_parse"},
    "_report": {"_analysis", "_check", "_model", "_parse"},
    "_plan": {"_analysis", "_check", "_model", "_parse", "_render"},
    "_run": {"_analysis", "_check", "_model", "_observe", "_parse", "_plan", "_render", "_store"},
    "_app": {"_check", "_model", "_parse", "_plan", "_render", "_report", "_store"},
    "_ansible": {"_analysis", "_app", "_model", "_observe", "_parse", "_plan", "_run", "_store"},
}
# of _check: what stages share. Each other folder or file there is a stage, and stages don't import each other
SHARED = {"job"}
# the table of the stages, and the frame that calls them
ABOVE_STAGES = {"stages", "frame", "sources", "rejudge", "resume"}
# importer: the modules of another stage that it may import. validate judges the figures that compare is given
ACROSS = {
    "_check.validate.check": {"_check.compare.mistakes", "_check.collectives.wanted"},
    # what stage operators would find missing is told before the first stage
    "_check.validate.controller": {"_check.operators.rbac"},
}
# what may do no I/O and know no Ansible
PURE = {"_analysis", "_check", "_model", "_parse", "_plan", "_render", "_report"}
# modules of the standard library that reach the world, or ask for the time or for chance
IMPURE = set(
    "os pathlib subprocess socket shutil tempfile urllib http time random secrets threading asyncio signal glob".split()
)
# runs on the controller only, where the Kubernetes client and what it stands on are
CONTROLLER = {
    "_observe/kubernetes/errors.py": {"kubernetes", "urllib3"},
    "_observe/kubernetes/yaml_documents.py": {"yaml"},
    "_observe/kubernetes/exec/channels.py": {"websocket"},
    "_observe/kubernetes/exec/exec_connection.py": {"kubernetes", "websocket", "certifi"},
}


def imports(path: pathlib.Path) -> typing.Iterator[tuple[str, int]]:
    """Absolute dotted names of what a file imports, anywhere in it, with line numbers."""
    package = (
        (OURS + "." + ".".join(path.relative_to(UTILS).parent.parts)).rstrip(".") if path.is_relative_to(UTILS) else ""
    )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join(parts[: len(parts) - node.level + 1])
                module = f"{base}.{module}".rstrip(".")
            yield module, node.lineno
            for alias in node.names:
                yield f"{module}.{alias.name}", node.lineno


def layer_of(path: pathlib.Path) -> str:
    return path.relative_to(UTILS).parts[0]


def module_of(path: pathlib.Path) -> str:
    """Dotted name below module_utils; a package has that of its folder."""
    parts = path.relative_to(UTILS).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: pathlib.Path, modules: typing.Container[str]) -> set[str]:
    """The modules of ours that a file imports anywhere in it, so under ``if TYPE_CHECKING`` as well."""
    names = (name[len(OURS) + 1 :] for name, _line in imports(path) if name.startswith(OURS + "."))
    return {name for name in names if name in modules}


def circles() -> list[str]:
    """Import circles among all modules of module_utils, each as the way around it."""
    files = {module_of(path): path for path in python_files() if path.name != "__init__.py"}
    graph = {name: sorted(imported(path, files)) for name, path in files.items()}
    done: set[str] = set()
    found = []

    def walk(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            found.append(" -> ".join((*way[way.index(name) :], name)))
        elif name not in done:
            for other in graph[name]:
                walk(other, (*way, name))
            done.add(name)

    for name in graph:
        walk(name, ())
    return found


def trespasses(path: pathlib.Path) -> list[str]:
    """What a file of _check imports of a stage that is not its own."""
    importer = module_of(path)
    if not importer.startswith("_check."):
        return []
    room = importer.split(".")[1]
    found = []
    for name, line in imports(path):
        parts = name[len(OURS) + 1 :].split(".") if name.startswith(OURS + "._check.") else []
        if len(parts) < 2 or parts[1] in {room, *SHARED} or room in ABOVE_STAGES:
            continue
        target = ".".join(parts)
        # a package on the way to a module that is allowed, the module itself, or a name in it
        if any(
            f"{allowed}.".startswith(f"{target}.") or f"{target}.".startswith(f"{allowed}.")
            for allowed in ACROSS.get(importer, ())
        ):
            continue
        found.append(
            f"{path.relative_to(ROOT)}:{line} imports {name}: what {parts[1]} and {room} share belongs into a folder of"
            f" {sorted(SHARED)}, or into _analysis"
        )
    return found


def violations(path: pathlib.Path) -> list[str]:
    """What a file of module_utils imports and may not."""
    layer = layer_of(path)
    if path.parent != UTILS and layer not in ALLOWED:
        return [f"{path.relative_to(ROOT)}: {layer} is no layer; see docs/architecture.md"]
    found = []
    for name, line in imports(path):
        place = f"{path.relative_to(ROOT)}:{line} imports {name}"
        if name.startswith(OURS + "."):
            target = name[len(OURS) + 1 :].split(".")[0]
            if layer in ALLOWED and target != layer and target not in ALLOWED[layer]:
                found.append(f"{place}: {layer} may import {sorted(ALLOWED[layer]) or 'nothing'} of ours")
            continue
        top = name.split(".")[0]
        if top in CONTROLLER.get(path.relative_to(UTILS).as_posix(), ()):
            continue
        if layer in PURE and top in IMPURE:
            found.append(f"{place}: {layer} is pure")
        if layer == "_ansible":
            continue
        if layer in ALLOWED and (top in ("ansible", "ansible_collections", "kubernetes")):
            found.append(f"{place}: only _ansible, modules and plugins know Ansible")
        elif layer in ALLOWED and top not in sys.stdlib_module_names:
            found.append(f"{place}: nodes have the standard library only")
    return found


def python_files() -> list[pathlib.Path]:
    return sorted(UTILS.rglob("*.py"))


def test_imports_point_down() -> None:
    assert python_files()
    assert [violation for path in python_files() for violation in (*violations(path), *trespasses(path))] == []


def test_no_import_circle() -> None:
    assert circles() == []


def test_exceptions_are_needed() -> None:
    files = {module_of(path): path for path in python_files()}
    assert {
        name: {other for other in imported(files[name], files) if other in allowed} for name, allowed in ACROSS.items()
    } == ACROSS


def test_private_and_marked() -> None:
    for path in python_files():
        assert path.relative_to(UTILS).parts[0].startswith("_"), f"{path}: nothing in module_utils is public"
        text = path.read_text(encoding="utf-8")
        assert not text.strip() or text.startswith("# SPDX-License-Identifier: GPL-3.0-or-later\n"), path


@pytest.mark.parametrize(
    "path", [*ROOT.glob("plugins/modules/*.py"), *ROOT.glob("plugins/filter/*.py")], ids=lambda path: path.name
)
def test_modules_and_filters_are_wiring(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    beside = sum(
        node.end_lineno - node.lineno + 1
        for node in tree.body
        if node.end_lineno
        and (
            isinstance(node, (ast.Import, ast.ImportFrom))
            or (
                isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", "") in ("DOCUMENTATION", "EXAMPLES", "RETURN")
            )
        )
    )
    assert len(path.read_text(encoding="utf-8").splitlines()) - beside < 135
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            assert node.end_lineno and node.end_lineno - node.lineno + 1 < 30, "main() is wiring"


@pytest.mark.parametrize(
    ("folder", "line", "said"),
    [
        ("_model", "from .._parse import sminfo", "may import nothing of ours"),
        ("_parse", "from .._check import validate", "may import ['_model'] of ours"),
        ("_check", "from .._observe.command import run", "may import ['_analysis', '_model', '_parse'] of ours"),
        ("_observe", "from .._run import sync", "may import ['_model', '_parse', '_store'] of ours"),
        (
            "_plan",
            "from .._store.facts import FactFolder",
            "may import ['_analysis', '_check', '_model', '_parse', '_render'] of ours",
        ),
        ("_plan", "import os", "_plan is pure"),
        (
            "_report",
            "from .._plan.node_answers import NodeAnswers",
            "may import ['_analysis', '_check', '_model', '_parse'] of ours",
        ),
        ("_run", "from .._app.folder import read_facts", "_run may import"),
        ("_render", "import subprocess", "_render is pure"),
        ("_check", "def f():\n    import os", "_check is pure"),
        ("_observe", "from ansible.module_utils.basic import AnsibleModule", "know Ansible"),
        ("_parse", "import yaml", "standard library only"),
        # nested: the layer is the first folder, and more dots lead out of it
        ("_parse/infiniband", "from ..._check.validate import check", "may import ['_model'] of ours"),
        (
            "_check/network/lint",
            "from ...._observe.command import run",
            "may import ['_analysis', '_model', '_parse'] of ours",
        ),
        ("_check/network/lint", "import socket", "_check is pure"),
        (
            "_check/fabric",
            "import typing\nif typing.TYPE_CHECKING:\n    from ..._run import pods",
            "may import ['_analysis', '_model', '_parse'] of ours",
        ),
        # one stage in another
        ("_check/fabric", "from ..network.lint.check import lint_all", "what network and fabric share"),
        ("_check/fabric", "from .. import platform", "what platform and fabric share"),
        ("_check/network/lint", "from ...fabric import check", "what fabric and network share"),
        ("_check/tuning", "from ..host.check import Facts", "what host and tuning share"),
        ("_check", "from .host import check", "what host and bad share"),
        ("_check/validate", "from ..compare import check", "what compare and validate share"),
    ],
)
def test_the_test_sees_a_violation(
    folder: str, line: str, said: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "UTILS", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / folder / "bad.py"
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n", encoding="utf-8")
    assert said in "\n".join(violations(path) + trespasses(path))


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("_check/network/lint", "from ...._model.findings import ok"),
        ("_check/network/lint", "from ...._analysis.fleet import hca_locations"),
        ("_check/network/lint", "from ..policy_context import PolicyContext"),
        ("_check/network", "from ..job.scope import LintedTemplate"),
        ("_app", "from .._store.facts import FactFolder"),
        ("_ansible", "from ansible.module_utils.basic import AnsibleModule"),
        ("_parse/job", "from ..kubernetes.resource import Resource"),
    ],
)
def test_what_is_allowed_passes(
    folder: str, line: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "UTILS", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / folder / "good.py"
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n", encoding="utf-8")
    assert violations(path) + trespasses(path) == []


@pytest.mark.parametrize(
    "back",
    [
        "from .one import A",
        "from . import one",
        "import typing\nif typing.TYPE_CHECKING:\n    from .one import A",
        "def f():\n    from ..wait.one import A",
    ],
)
def test_the_test_sees_a_circle(back: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "UTILS", tmp_path)
    folder = tmp_path / "_check" / "wait"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "one.py").write_text("from .two import B\n", encoding="utf-8")
    (folder / "two.py").write_text("", encoding="utf-8")
    assert circles() == []
    (folder / "two.py").write_text(back + "\n", encoding="utf-8")
    assert circles() == ["_check.wait.one -> _check.wait.two -> _check.wait.one"]
