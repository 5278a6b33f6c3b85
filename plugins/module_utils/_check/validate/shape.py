# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a part of the intent could not be loaded, and give the next step of the user. The explanation depends on
the kind of error, not on the key.
"""

from __future__ import annotations

import re

from ..._model.base.load_error import LoadError

_MEANT = re.compile(r"did you mean '([^']+)'\?")
_KEYS = "docs/intent.md lists all keys."
#: why, and what to do, by what was seen; ``{path}`` is the place. Whatever else was seen has the last of these
_MISSING, _UNKNOWN, _BLANK, _WRONG = (
    ("This key is required and has no default, because the value depends on your site.", f"Add {{path}}. {_KEYS}"),
    (
        "linerate.rdma has no key of this name, and would ignore it without a message.",
        f"Remove {{path}}, or correct its name. {_KEYS}",
    ),
    (
        "The proposal contains no value for this key, because the cluster does not show the value.",
        f"Set {{path}}. {_KEYS}",
    ),
    (
        "The value under 'measured' does not have the type or the form under 'expected'. linerate.rdma does not convert"
        " values: it does not read the text '8', for example, as the number 8.",
        f"Set {{path}} to a value of the type and the form under 'expected'. {_KEYS}",
    ),
)
_BY_SEEN = {"missing": _MISSING, "unknown key": _UNKNOWN, "not filled in yet": _BLANK}


def explain_cause(problem: LoadError) -> tuple[str, str]:
    """Return two texts: the reason why a key of the intent could not be loaded, and the remedy.

    :param problem: error that the loader found
    """
    if problem.path == "rdma_fabrics" and problem.seen == "missing":
        why = "The intent is missing: rdma_fabrics is set neither in the inventory nor with -e."
        return (
            why,
            (
                "Generate an intent from the nodes: ansible-playbook linerate.rdma.propose -i <inventory>."
                " docs/intent.md lists all keys."
            ),
        )
    why, remedy = _BY_SEEN.get(problem.seen, _WRONG)
    meant = _MEANT.search(problem.expected) if problem.seen == "unknown key" else None
    if meant:
        remedy = f"Rename the key to '{meant[1]}' if you meant this key. Otherwise remove it. {_KEYS}"
    return why, remedy.replace("{path}", problem.path or "the variable")
