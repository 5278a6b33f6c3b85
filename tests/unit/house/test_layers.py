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

# layer: layers it may import from, beside itself. _run holds the loops that observe and decide in turn (waits, measurements); nothing below knows it
ALLOWED = {
    "_model": set(),
    "_parse": {"_model"},
    "_check": {"_model", "_parse"},
    "_render": {"_model", "_parse"},
    "_schedule": {"_model", "_parse"},
    "_observe": {"_model", "_parse"},
    "_report": {"_model", "_parse", "_check"},
    "_plan": {"_model", "_parse", "_check", "_render", "_schedule"},
    "_run": {"_model", "_parse", "_check", "_render", "_schedule", "_observe", "_plan"},
}
# what may do no I/O and know no Ansible
PURE = {"_model", "_parse", "_check", "_render", "_schedule", "_plan", "_report"}
# modules of the standard library that reach the world, or ask for the time or for chance
IMPURE = set("os pathlib subprocess socket shutil tempfile urllib http time random secrets threading asyncio signal glob".split())
# runs on the controller only, where the Kubernetes client and what it stands on are
CONTROLLER = {"_observe/kubernetes.py": {"kubernetes", "websocket", "urllib3", "yaml"}}


def imports(path: pathlib.Path) -> typing.Iterator[typing.Tuple[str, int]]:
    """Absolute dotted names of what a file imports, anywhere in it, with line numbers."""
    package = (OURS + "." + ".".join(path.relative_to(UTILS).parent.parts)).rstrip(".") if path.is_relative_to(UTILS) else ""
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


def violations(path: pathlib.Path) -> typing.List[str]:
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
        if layer in ALLOWED and (top in ("ansible", "ansible_collections", "kubernetes")):
            found.append(f"{place}: only _ansible.py, modules and plugins know Ansible")
        elif layer in ALLOWED and top not in sys.stdlib_module_names:
            found.append(f"{place}: nodes have the standard library only")
    return found


def python_files() -> typing.List[pathlib.Path]:
    return sorted(UTILS.rglob("*.py"))


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(UTILS)))
def test_imports_point_down(path: pathlib.Path) -> None:
    assert violations(path) == []


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(UTILS)))
def test_private_and_marked(path: pathlib.Path) -> None:
    assert path.relative_to(UTILS).parts[0].startswith("_"), "nothing in module_utils is public"
    text = path.read_text(encoding="utf-8")
    if text.strip():
        assert text.startswith("# SPDX-License-Identifier: GPL-3.0-or-later\n")


@pytest.mark.parametrize("path", [*ROOT.glob("plugins/modules/*.py"), *ROOT.glob("plugins/filter/*.py")], ids=lambda path: path.name)
def test_modules_and_filters_are_wiring(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = sum(
        node.end_lineno - node.lineno + 1
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("DOCUMENTATION", "EXAMPLES", "RETURN") and node.end_lineno
    )
    assert len(path.read_text(encoding="utf-8").splitlines()) - documentation < 150
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            assert node.end_lineno and node.end_lineno - node.lineno + 1 < 30, "main() is wiring"


@pytest.mark.parametrize(
    ("layer", "line", "said"),
    [
        ("_model", "from .._parse import sminfo", "may import nothing of ours"),
        ("_parse", "from .._check import validate", "may import ['_model'] of ours"),
        ("_check", "from .._observe.command import run", "may import ['_model', '_parse'] of ours"),
        ("_observe", "from .._run import sync", "may import ['_model', '_parse'] of ours"),
        ("_plan", "from .._observe.facts import FactFolder", "may import ['_check', '_model', '_parse', '_render', '_schedule'] of ours"),
        ("_plan", "import os", "_plan is pure"),
        ("_report", "from .._plan.observed import Observed", "may import ['_check', '_model', '_parse'] of ours"),
        ("_run", "from .._folder import facts_of", "_run may import"),
        ("_render", "import subprocess", "_render is pure"),
        ("_check", "def f():\n    import os", "_check is pure"),
        ("_observe", "from ansible.module_utils.basic import AnsibleModule", "know Ansible"),
        ("_parse", "import yaml", "standard library only"),
    ],
)
def test_the_test_sees_a_violation(layer: str, line: str, said: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "UTILS", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / layer).mkdir()
    path = tmp_path / layer / "bad.py"
    path.write_text(line + "\n", encoding="utf-8")
    assert said in "\n".join(violations(path))
