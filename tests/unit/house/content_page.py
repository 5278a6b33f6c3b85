# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of docs/content.md, made from the documentation of plugins and roles: ``python -m tests.unit.house.content_page`` writes them."""

from __future__ import annotations

import importlib
import pathlib
import re
import sys
import typing

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build/collections"))

#: headings, folders below plugins, and what stands above the table
KINDS = (
    ("Modules", "modules", "Action groups for `module_defaults`: `cluster` (authentication) and `facts` (where facts are stored)."),
    ("Filters", "filter", ""),
    ("Lookups", "lookup", ""),
    ("Inventory", "inventory", ""),
    ("Connections", "connection", ""),
    ("Callback", "callback", ""),
)
PAGE = ROOT / "docs/content.md"
MARK = "<!-- made by 'python -m tests.unit.house.content_page' -->\n"


def page() -> str:
    """Return the text of the page: the stages as they are written there, and the tables."""
    parts = [PAGE.read_text(encoding="utf-8").partition(MARK)[0] + MARK]
    for heading, folder, above in KINDS:
        parts.append("\n".join([f"## {heading}", "", *([above, ""] if above else []), *_table("name", _plugins(folder))]) + "\n")
    parts.append("\n".join(["## Roles", "", "One role for each stage, and:", "", *_table("role", _roles())]) + "\n")
    return "\n".join(parts)


def _table(head: str, rows: typing.Dict[str, str]) -> typing.List[str]:
    return [f"| {head} | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in sorted(rows.items()))]


def _plugins(folder: str) -> typing.Dict[str, str]:
    """Return the short description of each plugin, by name."""
    found = {}
    for path in sorted((ROOT / "plugins" / folder).glob("*.*")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".yml":
            found[path.stem] = yaml.safe_load(text)["DOCUMENTATION"]["short_description"]
        elif documentation := re.search(r'^DOCUMENTATION = r?"""\n(.*?)"""', text, re.MULTILINE | re.DOTALL):
            found[path.stem] = yaml.safe_load(documentation[1])["short_description"]
    return found


def _roles() -> typing.Dict[str, str]:
    """Return the short descriptions of the entry points of each role that is not a stage, by name."""
    stages = importlib.import_module("ansible_collections.linerate.rdma.plugins.module_utils._model.findings").STAGES
    specs = {path.parents[1].name: yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"] for path in ROOT.glob("roles/*/meta/argument_specs.yml")}
    return {
        f"{role}`, entry point `{entry}" if entry != "main" else role: spec["short_description"]
        for role, entries in specs.items()
        if role not in stages
        for entry, spec in entries.items()
    }


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
