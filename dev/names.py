# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and types of the options of all roles, in a file that plugins read. ``python -m dev.names`` makes it of
roles/*/meta/argument_specs.yml."""

from __future__ import annotations

import yaml

from .steps import ROOT

FILE = ROOT / "plugins" / "module_utils" / "_model" / "run" / "public_names.py"
_HEAD = '''# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of the roles of the collection, and their types.

Made by 'python -m dev.names' of roles/*/meta/argument_specs.yml: do not edit it.
"""

from __future__ import annotations

ROLE_VARIABLES: dict[str, str] = {
'''


def options() -> dict[str, str]:
    """Return the options of all entry points of all roles, with their types, by name."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        for spec in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            found.update({name: option.get("type", "str") for name, option in (spec.get("options") or {}).items()})
    return dict(sorted(found.items()))


def text() -> str:
    """Return the file."""
    return _HEAD + "".join(f'    "{name}": "{kind}",\n' for name, kind in options().items()) + "}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
