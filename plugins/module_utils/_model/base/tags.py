# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags of ansible-playbook, and which stages they run."""

from __future__ import annotations

import typing


def runs(name: str, tags: typing.Collection[str], skip_tags: typing.Collection[str]) -> bool:
    """Return whether the stage of this name, or the report, runs in site.yml."""
    names = {name, "all", "tagged"}
    return (not tags or bool(names.intersection(tags))) and not names.intersection(skip_tags)
