# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of ``rdma_disruption``, with which an AWX survey or a schedule sets the allowed disruption of the nodes at
the start of a run. It has an effect only if the intent refers to this variable.
"""

from __future__ import annotations

import typing

from ..base.errors import RdmaError
from .intent import ClusterIntent, Disruption

#: variable that the start of a run sets
DISRUPTION = "rdma_disruption"
#: variable that a job template sets. It has precedence, because AWX passes the answers of a workflow's survey to all
#: jobs of the workflow [awx/main/models/workflow.py get_job_kwargs]
OF_JOB = "rdma_disruption_of_job"
#: their values
WORDS: tuple[str, ...] = typing.get_args(Disruption)


def build_reference(otherwise: str) -> str:
    """Return the Jinja expression that an intent uses for the allowed disruption, which the start of a run may
    override. The defaults also replace an empty text, since AWX leaves an unanswered question unset or empty. Example::

        >>> build_reference("reboot")
        "{{ rdma_disruption_of_job | default(rdma_disruption | default('reboot', true), true) }}"

    :param otherwise: allowed disruption if the start of the run sets none: ``none``, ``drain`` or ``reboot``
    """
    return f"{{{{ {OF_JOB} | default({DISRUPTION} | default('{otherwise}', true), true) }}}}"


def check_override(asked: typing.Any, cluster: typing.Any, of_job: typing.Any = None) -> None:
    """Reject a run whose intent allows another disruption than the start of the run requested. Otherwise a run started
    with ``none`` could reboot a node because the intent ignores the variable.

    :param asked: value of ``rdma_disruption``; None or empty if nothing was requested
    :param cluster: value of ``rdma_cluster``, of any type; stage ``validate`` reports errors in it
    :param of_job: value of ``rdma_disruption_of_job``, which has precedence over ``asked``; None or empty if not set
    :raises RdmaError: the intent and the request differ, or a variable has an invalid value
    """
    name, value = (OF_JOB, of_job) if of_job not in (None, "") else (DISRUPTION, asked)
    if value is None or value == "":
        return
    if value not in WORDS:
        raise RdmaError(f"{name} is {str(value)[:40]!r}", f"Set it to one of: {', '.join(WORDS)}")
    unsaid = ClusterIntent.disruption
    said = cluster.get("disruption", unsaid) if isinstance(cluster, dict) else unsaid
    if said != value:
        seen = (
            f"{name} is '{value}', but rdma_cluster.disruption of the intent is '{said}' and does not refer to"
            " this variable, so the variable would have no effect"
        )
        raise RdmaError(seen, f'Set in rdma_cluster of the intent: disruption: "{build_reference(said)}"')
