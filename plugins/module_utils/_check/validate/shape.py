# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a part of the intent could not be loaded, and what the user can do. The explanation depends on the kind
of error, not on the key.
"""

from __future__ import annotations

import re

from ..._model.base.load_error import LoadError

_MEANT = re.compile(r"did you mean '([^']+)'\?")
_KEYS = "docs/intent.md lists all keys."
#: why, and what to do, by what was seen; ``{path}`` is the place. Whatever else was seen has the last of these
_MISSING, _UNKNOWN, _BLANK, _WRONG = (
    ("It has no default: what it says is known to nobody but you.", f"Add {{path}}; {_KEYS}"),
    (
        "No part of the collection reads this key, so what it asks for would be dropped in silence.",
        f"Take {{path}} out, or correct its name; {_KEYS}",
    ),
    ("The proposal left it to you, since the cluster does not show it.", f"Fill in {{path}}; {_KEYS}"),
    (
        "The key takes a value of another type or form, and none is guessed from what is there.",
        f"Correct {{path}}; {_KEYS}",
    ),
)
_BY_SEEN = {"missing": _MISSING, "unknown key": _UNKNOWN, "not filled in yet": _BLANK}


def explain_cause(problem: LoadError) -> tuple[str, str]:
    """Return why a part of the intent could not be loaded, and the remedy."""
    if problem.path == "rdma_fabrics" and problem.seen == "missing":
        why = "There is no intent: the variable is set neither in the inventory nor with -e."
        return (
            why,
            (
                "Have one written by what the nodes show: ansible-playbook linerate.rdma.propose -i <inventory>."
                " docs/intent.md has all keys."
            ),
        )
    why, remedy = _BY_SEEN.get(problem.seen, _WRONG)
    meant = _MEANT.search(problem.expected) if problem.seen == "unknown key" else None
    if meant:
        remedy = f"Write '{meant[1]}' in its place, if that is what it shall be; {_KEYS}"
    return why, remedy.replace("{path}", problem.path or "the variable")
