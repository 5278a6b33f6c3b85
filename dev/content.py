# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of plugins and roles in docs/content.md, made from their documentation. ``python -m dev.content`` writes
them."""

from __future__ import annotations

import re
import typing

import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES

from .blocks import put_block
from .steps import ROOT

#: headings, folders below plugins, and what stands above the table
KINDS = (
    (
        "Modules",
        "modules",
        "Action groups for `module_defaults`: `cluster` (authentication) and `facts` (where facts are stored).",
    ),
    ("Filters", "filter", ""),
    ("Lookups", "lookup", ""),
    ("Inventory", "inventory", ""),
    ("Connections", "connection", ""),
    ("Callback", "callback", ""),
)
PAGE = ROOT / "docs/content.md"


def tables() -> str:
    """Return a table for each kind of plugin, and one of the roles."""
    parts = [_part(heading, above, "name", _plugins(folder)) for heading, folder, above in KINDS]
    return "\n" + "\n".join([*parts, _part("Roles", "One role for each stage, and:", "role", _roles())])


def put_tables(page: str) -> str:
    """Return the text of the page with the tables in their place."""
    return put_block(page, "dev.content", PAGE, tables())


def _part(heading: str, above: str, head: str, rows: typing.Mapping[str, str]) -> str:
    table = [f"| {head} | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in sorted(rows.items()))]
    return "\n".join([f"## {heading}", "", *([above, ""] if above else []), *table]) + "\n"


def _plugins(folder: str) -> dict[str, str]:
    """Return the short description of each plugin, by name."""
    found = {}
    for path in sorted((ROOT / "plugins" / folder).glob("*.*")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".yml":
            found[path.stem] = yaml.safe_load(text)["DOCUMENTATION"]["short_description"]
        elif documentation := re.search(r'^DOCUMENTATION = r?"""\n(.*?)"""', text, re.MULTILINE | re.DOTALL):
            found[path.stem] = yaml.safe_load(documentation[1])["short_description"]
    return found


def _roles() -> dict[str, str]:
    """Return the short descriptions of the entry points of each role that is not a stage, by name."""
    specs = {
        path.parents[1].name: yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    }
    return {
        f"{role}`, entry point `{entry}" if entry != "main" else role: spec["short_description"]
        for role, entries in specs.items()
        if role not in STAGES
        for entry, spec in entries.items()
    }


if __name__ == "__main__":
    PAGE.write_text(put_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
