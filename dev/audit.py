# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks for known vulnerabilities in all that is pinned, by pip-audit, in an environment of its own. It fails where the
index can't be asked.

It is no part of the linters: an index that learns something would turn red what did not change, and where it can't be
reached nothing was looked at.
"""

from __future__ import annotations

import pathlib
import typing

from .pin import LISTS
from .setup import make_environment
from .steps import BUILD, ROOT, guarded, run, say

ENVIRONMENT = BUILD / "venv-audit"


def pinned() -> list[pathlib.Path]:
    """All lists of exact versions, those of the sanity tests and of the first look among them."""
    of_releases = [path for name in ("demo-*.txt", "sanity-*.txt") for path in sorted((ROOT / "dev").glob(name))]
    return [*(folder / f"{name}.txt" for name, folder in LISTS.items()), *of_releases]


def requirements(paths: typing.Iterable[pathlib.Path]) -> list[str]:
    """Each exact version of each package once, in order."""
    lines = {line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines()}
    return sorted(line for line in lines if "==" in line and not line.startswith("#"))


def main() -> None:
    paths = pinned()
    wanted = requirements(paths)
    make_environment(ENVIRONMENT, ROOT / "dev" / "audit.txt")
    # one version of a package in each file: pip-audit refuses a file with two
    for number, part in enumerate(_parts(wanted)):
        file = BUILD / f"audit-{number}.txt"
        file.write_text("\n".join(part) + "\n", encoding="utf-8")
        # strict: a package that the index does not tell of was not looked at
        command = [
            str(ENVIRONMENT / "bin" / "pip-audit"),
            "--strict",
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "--requirement",
            str(file),
        ]
        run(
            f"pip-audit, {len(part)} packages",
            command,
            "Renew the pins (python3 -m dev.pin). If it asked nobody: reach https://pypi.org/pypi/pip/json.",
        )
    say(f"{len(wanted)} versions of {len(paths)} lists: no known vulnerability")


def _parts(wanted: typing.Iterable[str]) -> list[list[str]]:
    """So that no part has two versions of one package."""
    parts: list[dict[str, str]] = []
    for line in wanted:
        name = line.partition("==")[0]
        part = next((part for part in parts if name not in part), None)
        if part is None:
            part = {}
            parts.append(part)
        part[name] = line
    return [list(part.values()) for part in parts]


if __name__ == "__main__":
    guarded(main)
