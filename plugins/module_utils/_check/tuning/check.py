# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage tuning: is the host under the network as experts would have it, and as its like are. Check ids: ``tuning.*``.

What the intent itself expects of a row fails; a profile's advice warns. Findings that close the gate are of one node,
so that they can be waived by it; all others are of a row and name the nodes, since a thousand nodes that lack the same
are one piece of news.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._model.intent.intent import Intent
from ..._model.node.hca import ObservedHcas
from ..._model.node.node_tuning import ObservedSettings, TuningSet
from ..._model.node.tuning import NodeTuning, ObservedTuning
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import UNKNOWN, Finding, ok
from . import alike, nvlink_domain, others, rows, settings
from .roce import check as check_roce


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: answer of node_info of each node
    :ivar tunings: answer of node_info of each node
    :ivar by_pods: names of the nodes that are reached by observers
    :ivar set: what became of the wish to set something; None where there is none, or no answer
    :ivar kernel_settings: what the module kernel_settings did, of the nodes that it was to set
    :ivar check_mode: nothing was set
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    tunings: dict[str, ObservedTuning] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()
    set: typing.Optional[TuningSet] = None
    kernel_settings: dict[str, ObservedSettings] = dataclasses.field(default_factory=dict)
    check_mode: bool = False


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return a finding for each node, for each row and for each kind of nodes at least."""
    findings: list[Finding] = []
    if not facts.tunings:
        why = "No node was asked, so nothing is known."
        return (
            Finding(
                "tuning.node",
                "inventory",
                UNKNOWN,
                "no node",
                "at least 1 node",
                why,
                "Put the nodes into the inventory's group rdma_nodes.",
            ),
        )
    if intent.cluster.tuning.set:
        findings += settings.check(
            intent, facts.tunings, settings.Set(facts.set, facts.kernel_settings, facts.by_pods, facts.check_mode)
        )
    seen: dict[str, NodeTuning] = {}
    for name, observed in facts.tunings.items():
        if observed.value is None or observed.error is not None:
            why, remedy = (
                f"node_info: {observed.error or 'empty answer'}.",
                unreachable_nodes.remedy(name, facts.by_pods, "Python 3.9 or later"),
            )
            findings.append(Finding("tuning.node", name, UNKNOWN, "no answer", "an answer of node_info", why, remedy))
        else:
            seen[name] = observed.value
            findings.append(
                ok(
                    "tuning.node",
                    name,
                    f"{len(observed.value.rows)} rows, {len(observed.value.unread)} unread",
                    "an answer of node_info",
                )
            )
    hcas = {
        name: observed.value
        for name, observed in facts.nodes.items()
        if observed.value is not None and observed.error is None
    }
    of_fabrics = others.without(intent, hcas, seen)
    strangers = rows.find_strangers(hcas)
    judged = [rows.judge(intent, row, of_fabrics, strangers) for row in ROWS if row.check != "roce" and seen]
    findings += (finding for one in judged for finding in one.findings)
    findings += check_roce(intent, facts.nodes, seen)
    findings += nvlink_domain.check(seen)
    findings += alike.check(seen, {one.row.name: one.told for one in judged}, strangers)
    return tuple(findings)


def make_groups(facts: Facts) -> tuple[alike.NodeGroup, ...]:
    """Return the nodes of one kind and what is odd on whom: what ``tuning.alike`` tells of, and rows of which another
    finding tells already."""
    return alike.make_groups(
        {
            name: observed.value
            for name, observed in facts.tunings.items()
            if observed.value is not None and observed.error is None
        },
        {},
    )
