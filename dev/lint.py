# SPDX-License-Identifier: GPL-3.0-or-later

"""All linters, each without exceptions. ``python -m dev.lint quick`` leaves out ``ansible-test``, for while you write."""

from __future__ import annotations

import pathlib
import sys

from . import sanity
from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, ROOT, VENV, guarded, run
from .tree import TREE, make_tree

#: what is strictly typed of the plugins, by the name under which Ansible finds them
KINDS = ("module_utils", "plugin_utils", "action", "connection", "filter", "inventory", "lookup", "modules")
PLUGINS = [f"ansible_collections/linerate/rdma/plugins/{name}" for name in KINDS]
#: and of all else
OTHERS = ("dev", "lab", "tests")


def main() -> None:
    binaries = VENV / "bin"
    run("ruff check", [binaries / "ruff", "check", "."], "Correct what it names; 'ruff check --fix' can do a part of it.")
    run("ruff format", [binaries / "ruff", "format", "--check", "."], "Give the command: build/venv/bin/ruff format")
    _types()
    run("yamllint", [binaries / "yamllint", "--strict", "."], "Correct what it names.")
    run("ansible-lint, profile production", [binaries / "ansible-lint", "--nocolor"], "Correct what it names; nothing is skipped here.", env=ANSIBLE_ENV)
    run("antsibull-changelog", [binaries / "antsibull-changelog", "lint"], "Correct the fragment that it names; see CONTRIBUTING.md.")
    _docs(make_tree())
    if "quick" not in sys.argv[1:]:
        sys.argv[1:] = []
        sanity.main()


def _types() -> None:
    mypy = [str(VENV / "bin" / "mypy"), "--config-file", str(ROOT / "pyproject.toml")]
    remedy = "Correct the types that it names."
    run("mypy on the plugins", [*mypy, *PLUGINS], remedy, cwd=COLLECTIONS)
    # tests import from folders that are not looked at: each file answers for itself
    run("mypy on the rest", [*mypy, "--follow-imports", "silent", *OTHERS], remedy)


def _docs(copy: pathlib.Path) -> None:
    """Markup and references of all documentation. The dependencies are found beside the copy, and git must not take them for ignored files of this one."""
    command = [str(VENV / "bin" / "antsibull-docs"), "lint-collection-docs", "--plugin-docs", "--validate-collection-refs=dependent", "."]
    environment = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": str(TREE), "GIT_CEILING_DIRECTORIES": str(BUILD)}
    run("antsibull-docs", command, "Correct the documentation that it names.", cwd=copy, env=environment)


if __name__ == "__main__":
    guarded(main)
