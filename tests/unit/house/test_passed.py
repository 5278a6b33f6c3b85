# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a tool has passed before: it looks again at one that changed, and at one that imports it."""

from __future__ import annotations

import pathlib
import typing

import pytest

from dev import passed
from dev.passed import PassedFiles, digest_files
from dev.steps import ROOT
from dev.tree import list_files

FILES = {
    "plugins/module_utils/_model/hca.py": "class Hca:\n    pass\n",
    "plugins/module_utils/_model/__init__.py": "",
    "plugins/module_utils/_parse/sysfs.py": "from .._model.hca import Hca\n",
    "plugins/module_utils/_parse/other.py": "import json\n",
    "plugins/modules/node_info.py": (
        "from ansible_collections.linerate.rdma.plugins.module_utils._parse import sysfs\n"
    ),
    "plugins/doc_fragments/facts.py": "class ModuleDocFragment:\n    pass\n",
    "tests/unit/test_sysfs.py": "import ansible_collections.linerate.rdma.plugins.modules.node_info\n",
    "roles/look/tasks/main.yml": "- name: Look\n",
}
FRAGMENT = "plugins/doc_fragments/facts.py"


@pytest.fixture
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(passed, "CACHE", tmp_path / "cache")
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "root"


def look(root: pathlib.Path, name: str = "tool 1.0", paths: typing.Iterable[str] = tuple(FILES)) -> PassedFiles:
    return PassedFiles(name, root, [path for path in paths if (root / path).exists()])


def test_nothing_has_passed_before_the_tool_has_run(root: pathlib.Path) -> None:
    assert look(root).list_others() == sorted(FILES) and not look(root).is_known()


def test_all_has_passed_as_long_as_nothing_changes(root: pathlib.Path) -> None:
    look(root).keep()
    assert look(root).list_others() == [] and look(root).is_known()
    assert not look(root, "tool 1.1").is_known() and look(root, "tool 1.1").list_others() == sorted(FILES)


def test_files_that_are_not_chosen_count_by_what_imports_them_alone(root: pathlib.Path) -> None:
    def read() -> PassedFiles:
        return PassedFiles("tool 1.0", root, FILES, lambda path: path.startswith("plugins/modules/"))

    read().keep()
    assert list(read().files) == ["plugins/modules/node_info.py"] and read().is_known()
    (root / "tests/unit/test_sysfs.py").write_text("#\n", encoding="utf-8")
    assert read().is_known()
    (root / "plugins/module_utils/_model/hca.py").write_text("#\n", encoding="utf-8")
    assert read().list_others() == ["plugins/modules/node_info.py"]


@pytest.mark.parametrize(
    ("changed", "others"),
    [
        ("roles/look/tasks/main.yml", ["roles/look/tasks/main.yml"]),
        ("plugins/module_utils/_parse/other.py", ["plugins/module_utils/_parse/other.py"]),
        (
            "plugins/module_utils/_model/hca.py",
            [
                "plugins/module_utils/_model/hca.py",
                "plugins/module_utils/_parse/sysfs.py",
                "plugins/modules/node_info.py",
                "tests/unit/test_sysfs.py",
            ],
        ),
        (FRAGMENT, sorted(path for path in FILES if path.startswith("plugins/"))),
    ],
)
def test_a_file_is_another_one_when_what_it_imports_changes(
    root: pathlib.Path, changed: str, others: list[str]
) -> None:
    look(root).keep()
    (root / changed).write_text(FILES[changed] + "#\n", encoding="utf-8")
    assert look(root).list_others() == others
    # back on the first branch
    look(root).keep()
    (root / changed).write_text(FILES[changed], encoding="utf-8")
    assert look(root).is_known()


def test_a_file_that_is_gone_or_may_be_executed_is_noticed(root: pathlib.Path) -> None:
    look(root).keep()
    (root / "roles/look/tasks/main.yml").chmod(0o755)
    assert look(root).list_others() == ["roles/look/tasks/main.yml"]
    (root / "roles/look/tasks/main.yml").unlink()
    assert look(root).list_others() == [] and not look(root).is_known()


def test_a_file_with_a_syntax_error_is_left_to_the_tool(root: pathlib.Path) -> None:
    (root / "plugins/module_utils/_parse/other.py").write_text("def (:\n", encoding="utf-8")
    assert "plugins/module_utils/_parse/other.py" in look(root).list_others()


def test_files_of_this_repository_have_digests() -> None:
    names = [name for name in list_files(ROOT) if (ROOT / name).is_file()]
    assert names and set(digest_files(ROOT, names)) == set(names)
