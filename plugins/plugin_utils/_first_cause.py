# SPDX-License-Identifier: GPL-3.0-or-later

"""Why the inventory has no nodes. Ansible makes a warning of it and goes on; tasks are done by children of the process
in which the inventory was read."""

from __future__ import annotations

#: in the order in which they came
_causes: list[str] = []


def note(cause: str) -> None:
    """Keep why an inventory gave no nodes."""
    _causes.append(cause)


def first() -> str:
    """Return the first cause that was kept; empty where there is none."""
    return _causes[0] if _causes else ""
