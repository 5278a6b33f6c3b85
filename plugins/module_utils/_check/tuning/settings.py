# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the tuning values that the intent asks to set were set. Check id: ``tuning.set``. The other checks of
stage tuning show whether the nodes have these values.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import Intent
from ..._model.node.node_tuning import NodeSetting, ObservedSettings, TuningSet
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok
from .rows import names, wanted

CHECK = "tuning.set"
_EXPECTED = "what rdma_cluster.tuning expects and needs no reboot is set"
_SAYS = {"set": "TuneD has applied it", "planned": "a dry run: it would be set"}
_AGAIN = "Run the stage again."


@dataclasses.dataclass(frozen=True)
class Set:
    """The answers of the tools that set tuning values on the nodes.

    :ivar found: answer of node_tuning; None if there is none
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
    """
    found = seen.found
    asked = [row.name for row in ROWS if row.setting is not None and wanted(intent, row).rule]
    if found is None:
        why = "node_tuning gave no answer, so it is not known what is set."
        yield Finding(
            CHECK,
            "cluster",
            UNKNOWN,
            "no answer",
            _EXPECTED,
            why,
            "Look above for what failed, and run the stage again.",
        )
    elif found.refusal:
        yield Finding(
            CHECK,
            "cluster",
            FAIL,
            "nothing was set",
            _EXPECTED,
            f"{found.refusal.rstrip('.')}.",
            found.remedy or "Correct it, and run the stage again.",
        )
    elif found.way == "nothing" and asked:
        why = f"There are rules for {names(asked)}, and node_tuning has found nothing to set."
        yield Finding(CHECK, "cluster", UNKNOWN, "nothing was set", _EXPECTED, why, _AGAIN)
    elif found.way == "nothing":
        yield ok(CHECK, "cluster", "no row has a rule that can be set", _EXPECTED)
    elif found.way == "tuned":
        yield from (_check_tuned(name, found.nodes.get(name), seen.check_mode) for name in nodes)
    else:
        yield from (_check_module(name, seen.plain.get(name), name in seen.by_pods) for name in nodes)


def _check_tuned(name: str, seen: typing.Optional[NodeSetting], check_mode: bool) -> Finding:
    if seen is None or (seen.state == "planned" and not check_mode):
        return Finding(CHECK, name, UNKNOWN, "not looked at", _EXPECTED, "node_tuning says nothing of it.", _AGAIN)
    if seen.state in _SAYS:
        return ok(CHECK, name, _SAYS[seen.state], _EXPECTED)
    measured = "not yet, when the time was over" if seen.state == "coming" else "it does not come by itself"
    return Finding(
        CHECK, name, FAIL, measured, _EXPECTED, f"{seen.why or 'node_tuning names no cause'}.", seen.remedy or _AGAIN
    )


def _check_module(name: str, seen: typing.Optional[ObservedSettings], by_pod: bool) -> Finding:
    if by_pod:
        why = "It is reached by an observer, which changes nothing, and the cluster has no Node Tuning Operator."
        remedy = (
            "Let Ansible reach it by ssh, or set it by hand as the findings about rows say, and"
            " rdma_cluster.tuning.set: false."
        )
        return Finding(CHECK, name, FAIL, "nothing was set", _EXPECTED, why, remedy)
    if seen is None:
        return Finding(
            CHECK, name, UNKNOWN, "no answer", _EXPECTED, "The module kernel_settings did not run there.", _AGAIN
        )
    if seen.error is not None or seen.value is None:
        remedy = "Correct what the text names, and run the stage again."
        return Finding(CHECK, name, UNKNOWN, "not set", _EXPECTED, f"{seen.error or 'empty answer'}.", remedy)
    return ok(CHECK, name, "the module kernel_settings has set it", _EXPECTED)
