# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage tuning: the settings of the nodes are as recommended for RDMA, and the same on comparable nodes.
Check ids: ``tuning.*``.

A row is one observable property of a node, with an expected value. A value that contradicts the intent fails; one that
contradicts the recommendation of a profile is a warning. A failure is one finding for each node, so that it can be
waived by node. A warning lists the nodes, so that a setting that a thousand nodes lack is one finding.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._model.base.phrases import count_of, format_clause
from ..._model.intent.intent import Intent
from ..._model.node.hca import ObservedHcas
from ..._model.node.node_tuning import ObservedSettings, TuningSet
from ..._model.node.tuning import NodeTuning, ObservedTuning
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import UNKNOWN, Finding, build_pass
from . import alike, nvlink_domain, others, rows, settings
from .roce import check as check_roce


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage tuning is judged, besides the intent.

    :ivar nodes: HCAs of each node (node_info)
    :ivar tunings: values of the tuning rows (observable properties) of each node (node_info)
    :ivar by_pods: names of the nodes that are read by observers (pods) instead of ssh
    :ivar set: result of node_tuning; None if the intent sets nothing, or if the module gave no result
    :ivar kernel_settings: answer of the module kernel_settings, by the nodes on which it was to set values
    :ivar check_mode: whether nothing was set, because ansible-playbook ran with --check
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    tunings: dict[str, ObservedTuning] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()
    set: typing.Optional[TuningSet] = None
    kernel_settings: dict[str, ObservedSettings] = dataclasses.field(default_factory=dict)
    check_mode: bool = False


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Compare the tuning of each node with the profile and with comparable nodes. Return at least one finding for each
    node, each tuning row and each group of comparable nodes. Without any node, return a single finding.
    """
    findings: list[Finding] = []
    if not facts.tunings:
        why = (
            "No node was queried: the group rdma_nodes of the inventory is empty, or --limit excluded all of its nodes."
        )
        return (
            Finding(
                "tuning.node",
                "inventory",
                UNKNOWN,
                "0 nodes",
                "at least 1 node",
                why,
                "Run ansible-inventory --graph rdma_nodes. If it lists no node, put the nodes into the group"
                " rdma_nodes. Otherwise leave out --limit. Then run stage tuning again.",
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
                f"The tuning of the node was not read:"
                f" {format_clause(observed.error, 'module node_info returned no data')}.",
                unreachable_nodes.get_remedy(name, facts.by_pods, "Python 3.9 or later", "node_info"),
            )
            findings.append(
                Finding("tuning.node", name, UNKNOWN, "tuning not read", "tuning of the node read", why, remedy)
            )
        else:
            seen[name] = observed.value
            findings.append(
                build_pass(
                    "tuning.node",
                    name,
                    f"{count_of(len(observed.value.rows), 'setting')} read,"
                    f" {count_of(len(observed.value.unread), 'setting')} not read",
                    "its tuning read",
                )
            )
    hcas = {
        name: observed.value
        for name, observed in facts.nodes.items()
        if observed.value is not None and observed.error is None
    }
    of_fabrics = others.drop_unused_hcas(intent, hcas, seen)
    strangers = rows.find_other_vendors(hcas)
    devices = {name: others.list_rdma_devices(intent, node) for name, node in hcas.items()}
    judged = [rows.judge(intent, row, of_fabrics, strangers, devices) for row in ROWS if row.check != "roce" and seen]
    findings += (finding for one in judged for finding in one.findings)
    findings += check_roce(intent, facts.nodes, seen)
    findings += nvlink_domain.check(seen)
    findings += alike.check(seen, {one.row.name: one.told for one in judged}, strangers)
    return tuple(findings)


def make_groups(facts: Facts) -> tuple[alike.NodeGroup, ...]:
    """Return the groups of comparable nodes, with the tuning rows in which their nodes differ. This includes rows that
    other findings already report, which the check ``tuning.alike`` leaves out.
    """
    return alike.make_groups(
        {
            name: observed.value
            for name, observed in facts.tunings.items()
            if observed.value is not None and observed.error is None
        },
        {},
    )
