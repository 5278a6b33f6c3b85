# SPDX-License-Identifier: GPL-3.0-or-later

"""What may happen to a node, asked for by whoever starts a run: a survey of AWX, a schedule. The intent stays what says
it, and must refer to the question."""

from __future__ import annotations

import typing

from ..base.errors import RdmaError
from .intent import ClusterIntent, Disruption

#: the variable that is asked
DISRUPTION = "rdma_disruption"
#: what may be asked for
WORDS: tuple[str, ...] = typing.get_args(Disruption)


def reference(variable: str, otherwise: str) -> str:
    """Return the expression that an intent has in place of a value that a run may be asked for: AWX leaves an answer
    that was not given out, or empty.

    >>> reference("rdma_disruption", "reboot")
    "{{ rdma_disruption | default('reboot', true) }}"
    """
    return f"{{{{ {variable} | default('{otherwise}', true) }}}}"


def check_override(asked: typing.Any, cluster: typing.Any) -> None:
    """Refuse a run whose intent allows other things than were asked for: a proof with ``none`` must not reboot a node
    because the intent never looked.

    :param asked: value of ``rdma_disruption``; None or empty when nobody asked
    :param cluster: value of ``rdma_cluster``, of whatever type; stage ``validate`` says what is wrong with it
    :raises RdmaError: the two differ
    """
    if asked is None or asked == "":
        return
    if asked not in WORDS:
        raise RdmaError(f"{DISRUPTION} is {str(asked)[:40]!r}", f"Give one of: {', '.join(WORDS)}")
    unsaid = ClusterIntent.disruption
    said = cluster.get("disruption", unsaid) if isinstance(cluster, dict) else unsaid
    if said != asked:
        seen = (
            f"{DISRUPTION} asks for '{asked}', and rdma_cluster.disruption of the intent is '{said}', so nobody would"
            " heed it"
        )
        raise RdmaError(seen, f'Write into rdma_cluster of the intent: disruption: "{reference(DISRUPTION, said)}"')
