# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the tuning values that the intent asks to set were set. Check id: ``tuning.set``. The other checks of
stage tuning show whether the nodes have these values.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Intent
from ..._model.node.file_owner import build_owner, describe_owner_remedy
from ..._model.node.node_tuning import SYSCTL, TMPFILES, NodeSetting, ObservedSettings, TuningSet
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .rows import get_expected_value, join_node_names

CHECK = "tuning.set"
_EXPECTED = "all settings of rdma_cluster.tuning that need no reboot applied"
_SAYS = {"set": "applied by TuneD", "planned": "dry run: would be applied"}
_AGAIN = "Run stage tuning again."
_LOOK = (
    "Read the log of the TuneD pod on the node (kubectl -n openshift-cluster-node-tuning-operator get pods -o wide)."
    " Correct the cause, then run stage tuning again."
)


@dataclasses.dataclass(frozen=True)
class Set:
    """The answers of the tools that set tuning values on the nodes.

    :ivar found: result of node_tuning; None if it gave none
    :ivar plain: answer of kernel_settings, by the nodes on which it was to set values
    :ivar by_pods: names of the nodes that are read by observers, which change nothing
    :ivar check_mode: whether ansible-playbook ran with --check
    """

    found: typing.Optional[TuningSet]
    plain: typing.Mapping[str, ObservedSettings]
    by_pods: typing.Collection[str]
    check_mode: bool


def check(intent: Intent, nodes: typing.Collection[str], seen: Set) -> typing.Iterator[Finding]:
    """Yield a finding for each node, or a single one for the cluster if node_tuning did not answer, refused, or had
    nothing to set. Call it only if ``rdma_cluster.tuning.set`` is true.

    :param seen: answers of the tools that set values
    """
    found = seen.found
    asked = [row.name for row in ROWS if row.setting is not None and get_expected_value(intent, row).rule]
    if found is None:
        why = "The module node_tuning returned no result, so it is unknown which settings were applied."
        yield Finding(
            CHECK,
            "cluster",
            UNKNOWN,
            "no result of the module node_tuning",
            _EXPECTED,
            why,
            "Find the failed task of node_tuning in the output of the playbook (-v shows the whole error), correct its"
            " cause, then run stage tuning again.",
        )
    elif found.refusal:
        yield Finding(
            CHECK,
            "cluster",
            FAIL,
            "no setting applied",
            _EXPECTED,
            f"The module node_tuning set nothing: {format_clause(found.refusal)}.",
            _add_rerun(found.remedy)
            or (
                "Run the playbook with -v to see the whole error of the task. Correct it, then run stage tuning again."
            ),
        )
    elif found.way == "nothing" and asked:
        why = (
            f"The intent has rules for {join_node_names(asked)}, but the module node_tuning found no setting to"
            " apply. Its result is of an earlier intent."
        )
        yield Finding(CHECK, "cluster", UNKNOWN, "no setting applied", _EXPECTED, why, _AGAIN)
    elif found.way == "nothing":
        yield build_pass(
            CHECK, "cluster", "no rule of the intent or of the profile can be applied without a reboot", _EXPECTED
        )
    elif found.way == "tuned":
        yield from (_check_tuned(name, found.nodes.get(name), seen.check_mode) for name in nodes)
    else:
        owner = build_owner(intent.cluster.intent_name, intent.cluster.node_selector)
        yield from (_check_module(name, seen.plain.get(name), name in seen.by_pods, owner) for name in nodes)


def _add_rerun(remedy: str) -> str:
    """Return a remedy of the module node_tuning that ends with the stage to run again; empty if the remedy is empty."""
    return remedy if not remedy or "run stage" in remedy else f"{remedy.rstrip('. ')}. Then run stage tuning again."


def _check_tuned(name: str, seen: typing.Optional[NodeSetting], check_mode: bool) -> Finding:
    if seen is None or (seen.state == "planned" and not check_mode):
        return Finding(
            CHECK,
            name,
            UNKNOWN,
            "state of the settings not reported",
            _EXPECTED,
            "The stored result of the module node_tuning does not contain this node: it was written before the node"
            " joined the group rdma_nodes.",
            _AGAIN,
        )
    if seen.state in _SAYS:
        return build_pass(CHECK, name, _SAYS[seen.state], _EXPECTED)
    measured = f"settings not applied {'before the timeout' if seen.state == 'coming' else '(final state of TuneD)'}"
    return Finding(
        CHECK,
        name,
        FAIL,
        measured,
        _EXPECTED,
        f"TuneD on the node has not applied the settings: {format_clause(seen.why)}.",
        _add_rerun(seen.remedy) or _LOOK,
    )


def _check_module(name: str, seen: typing.Optional[ObservedSettings], by_pod: bool, owner: str) -> Finding:
    if by_pod:
        why = (
            "Ansible does not reach the node by ssh. The pod that inspects the node changes no settings, and the"
            " cluster has no Node Tuning Operator."
        )
        remedy = (
            "Let Ansible reach the node by ssh. Or apply the settings by hand, as the findings tuning.* of the node"
            " describe, and set rdma_cluster.tuning.set: false. Then run stage tuning again."
        )
        return Finding(CHECK, name, FAIL, "no setting applied", _EXPECTED, why, remedy)
    if seen is None:
        return Finding(
            CHECK,
            name,
            UNKNOWN,
            "no result of the module kernel_settings",
            _EXPECTED,
            "The run stored no result of the module kernel_settings for this node, so it is unknown whether"
            " its settings were applied.",
            "Run the playbook with -v. If a task of kernel_settings fails on this node, correct the error that it"
            " shows. Then run stage tuning again for all nodes.",
        )
    if seen.error is not None or seen.value is None:
        remedy = (
            "Run the playbook with -v, and correct the error of the task of kernel_settings that it shows. If"
            f" systemctl status tuned on {name} shows that TuneD does not run, start it. Then run stage tuning again."
        )
        return Finding(
            CHECK,
            name,
            UNKNOWN,
            "settings not applied",
            _EXPECTED,
            f"The module kernel_settings failed on the node: {format_clause(seen.error, 'it returned no data')}.",
            remedy,
        )
    refusal = str(seen.value.get("refusal") or "")
    if refusal:
        return Finding(
            CHECK,
            name,
            FAIL,
            "no setting applied",
            _EXPECTED,
            f"The module kernel_settings set nothing: {format_clause(refusal)}.",
            describe_owner_remedy(f"/{SYSCTL} /{TMPFILES}", "rdma_cluster.tuning", "tuning", owner),
        )
    return build_pass(CHECK, name, "applied by the module kernel_settings", _EXPECTED)
