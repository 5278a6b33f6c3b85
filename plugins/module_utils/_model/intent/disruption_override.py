# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of ``rdma_disruption``, with which an AWX survey or a schedule sets the allowed disruption of the nodes at
the start of a run. It has an effect only if the intent refers to this variable.
"""

from __future__ import annotations

import typing

from ..base.errors import RdmaError
from .intent import ClusterIntent, Disruption

#: the variable that is asked
DISRUPTION = "rdma_disruption"
#: what may be asked for
WORDS: tuple[str, ...] = typing.get_args(Disruption)


def reference(variable: str, otherwise: str) -> str:
    """Return the Jinja expression that an intent uses for a value that the start of a run may override. The default
    also replaces an empty text, since AWX leaves an unanswered question unset or empty. Example::

        >>> reference("rdma_disruption", "reboot")
        "{{ rdma_disruption | default('reboot', true) }}"
    """
    return f"{{{{ {variable} | default('{otherwise}', true) }}}}"


def check_override(asked: typing.Any, cluster: typing.Any) -> None:
    """Reject a run whose intent allows another disruption than the start of the run requested. Otherwise a run started
    with ``none`` could reboot a node because the intent ignores the variable.

    :param asked: value of ``rdma_disruption``; None or empty if nothing was requested
    :param cluster: value of ``rdma_cluster``, of any type; stage ``validate`` reports errors in it
    :raises RdmaError: the intent and ``asked`` differ, or ``asked`` is not a valid value
    """
    if asked is None or asked == "":
        return
    if asked not in WORDS:
        raise RdmaError(f"{DISRUPTION} is {str(asked)[:40]!r}", f"Set it to one of: {', '.join(WORDS)}")
    unsaid = ClusterIntent.disruption
    said = cluster.get("disruption", unsaid) if isinstance(cluster, dict) else unsaid
    if said != asked:
        seen = (
            f"{DISRUPTION} is '{asked}', but rdma_cluster.disruption of the intent is '{said}' and does not refer to"
            " this variable, so the variable would have no effect"
        )
        raise RdmaError(seen, f'Add to rdma_cluster of the intent: disruption: "{reference(DISRUPTION, said)}"')
