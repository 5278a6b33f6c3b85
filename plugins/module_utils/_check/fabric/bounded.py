# SPDX-License-Identifier: GPL-3.0-or-later

"""Limit the number of findings about links between switches. The topology is read through the port of one node, which
could invent any number of links.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding

#: findings of one check and status about ports. A fabric of 10,000 nodes has as many links that are bad at once only
#: where its counters or tools are wrong
MOST_OF_PORTS = 1024


def limit_findings(fabric: Fabric, findings: typing.Sequence[Finding], of_what: str) -> list[Finding]:
    """Return the findings, limited for each status.

    Of more than ``MOST_OF_PORTS`` findings with the same status, return the first ``MOST_OF_PORTS`` and one finding
    that states the number of the remaining findings.

    :param findings: findings of one check, without passes
    :param of_what: noun for the subjects of the findings, in the plural, such as ``links``
    """
    kept: list[Finding] = []
    for status in (FAIL, UNKNOWN, WARN):
        found = [item for item in findings if item.status == status]
        kept += found[:MOST_OF_PORTS]
        more = len(found) - MOST_OF_PORTS
        if more > 0:
            first = found[MOST_OF_PORTS]
            why = (
                f"Only the first {MOST_OF_PORTS} {of_what} have a finding of their own. The first of the others is"
                f" {first.subject} ({first.measured}). Either all of these {of_what} have the fault, or the node"
                f" that reported the topology reported {of_what} that do not exist."
            )
            remedy = (
                f"Run ibnetdiscover as root on another node. If its output also has these {of_what}, follow the"
                " remedies of the other findings of this check. Otherwise put that node first in the inventory."
                " Then run ansible-playbook linerate.rdma.site --tags validate,discover,fabric."
            )
            subject = f"{fabric.name} more {of_what}"
            measured, expected = f"{more} more {of_what} with this fault", f"no {of_what} with this fault"
            kept.append(Finding(first.check, subject, status, measured, expected, why, remedy))
    return kept if len(kept) < len(findings) else list(findings)
