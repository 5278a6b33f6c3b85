# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare what the kubelet of each node runs with with the kubelet settings of the intent. Check id: ``host.kubelet``.

A KubeletConfig that the machine config operator accepted is no proof: a drop-in, a flag or another object may override
its values on a node.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED_BY_LIMIT
from ..._model.base.errors import ParseError
from ..._model.base.phrases import format_clause
from ..._model.intent.host_intent import Kubelet
from ..._model.node.tuning import NodeTuning, ObservedTuning
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from ..._parse.node.tuning import parse_cpu_list
from .unread_nodes import choose_remedy

_CHECK = "host.kubelet"
#: settings of the intent, by the tuning row that shows their value on a node
_ROWS = {
    "topology_manager": "topology_manager_policy",
    "topology_scope": "topology_manager_scope",
    "cpu_manager": "cpu_manager_policy",
    "reserved_cpus": "reserved_system_cpus",
}
_AGAIN = "Then run stages tuning and host again."
_NOT_AGAIN = "the run did not read the kubelet again after the update of the MachineConfigPool"


def check(
    wanted: Kubelet,
    nodes: typing.Sequence[str],
    tunings: typing.Mapping[str, ObservedTuning],
    after: typing.Mapping[str, ObservedTuning],
    rolled: typing.Container[str],
    by_pods: typing.Container[str],
) -> typing.Iterator[Finding]:
    """Yield a finding for each node on the kubelet settings of the intent. Settings that the intent does not set are
    not compared.

    On a node that this run rolled, only the values that were read after the roll count, because the roll may have
    changed those that stage tuning read before it.

    :param wanted: kubelet settings of the intent
    :param nodes: names of the nodes
    :param tunings: tuning rows of each node, as stage tuning judged them
    :param after: tuning rows of each rolled node, read after the roll
    :param rolled: names of the nodes that a MachineConfigPool has given a new configuration in this run
    :param by_pods: names of the nodes that are read by observers
    """
    rules = {row: value for row, key in _ROWS.items() if (value := getattr(wanted, key)) is not None}
    expected = _describe(rules)
    for name in nodes if rules else ():
        if name in rolled:
            seen, what = (
                after.get(name, ObservedTuning(error=_NOT_AGAIN)),
                "the node after its MachineConfigPool rolled it",
            )
        else:
            seen, what = tunings.get(name, ObservedTuning(error=NOT_QUERIED_BY_LIMIT)), "the node"
        if seen.value is None or seen.error is not None:
            cause = format_clause(seen.error, "the module node_info returned none of its values")
            why = f"The tuning of {what} was not read: {cause}."
            remedy = choose_remedy(seen.error, name, by_pods, "Python 3.9 or later")
            yield Finding(_CHECK, name, UNKNOWN, "not read", expected, why, remedy)
            continue
        values = {row: _find_value(seen.value, row) for row in rules}
        wrong = {
            row: value for row, value in values.items() if value is not None and not _is_met(row, rules[row], value)
        }
        unread = [row for row, value in values.items() if value is None]
        if unread:
            yield _report_unread(name, seen.value, unread, _describe_rows(rules, unread))
        elif wrong:
            yield _report_wrong(name, wrong, _describe_rows(rules, wrong))
        else:
            yield build_pass(_CHECK, name, _describe({row: value or "" for row, value in values.items()}), expected)


def _find_value(node: NodeTuning, row: str) -> typing.Optional[str]:
    """Return the value of a tuning row of the kubelet. Return None if it was not read, or if the node has none."""
    return next((reading.value for reading in node.rows.get(row, ())), None) if row not in node.unread else None


def _is_met(row: str, wanted: str, value: str) -> bool:
    """Return whether the value of a tuning row is the value of the intent. Lists of CPUs are compared as sets."""
    if row != "reserved_cpus":
        return value == wanted
    try:
        return parse_cpu_list(value) == parse_cpu_list(wanted)
    except ParseError:
        return value == wanted


def _describe(values: typing.Mapping[str, str]) -> str:
    return ", ".join(f"{_ROWS[row]} {value}" for row, value in values.items())


def _describe_rows(rules: typing.Mapping[str, str], rows: typing.Container[str]) -> str:
    """Return the values of the intent for some rows, as text for a finding on these rows only."""
    return _describe({row: value for row, value in rules.items() if row in rows})


def _report_unread(name: str, node: NodeTuning, rows: typing.Sequence[str], expected: str) -> Finding:
    names = ", ".join(_ROWS[row] for row in rows)
    reason = next((node.unread[row] for row in rows if row in node.unread), "the node shows no such value")
    why = f"The kubelet of the node was not read completely: {format_clause(reason)}."
    remedy = (
        f"Run systemctl status kubelet on {name}, and start the kubelet if it does not run. Make the file that the"
        f" message names readable, or correct it. {_AGAIN}"
    )
    return Finding(_CHECK, name, UNKNOWN, f"{names} not read", expected, why, remedy)


def _report_wrong(name: str, wrong: typing.Mapping[str, str], expected: str) -> Finding:
    why = (
        "The kubelet of the node runs with other values than rdma_cluster.host.kubelet. Its MachineConfigPool has not"
        " given the node the KubeletConfig, or a drop-in, a flag, a MachineConfig or a PerformanceProfile overrides it."
    )
    remedy = (
        f"Run systemctl cat kubelet on {name}, and search the files of --config and --config-dir, and the flags, for"
        " the value. Remove it there, or in the object that writes it (oc get kubeletconfig; oc get"
        f" performanceprofile), and restart the kubelet. {_AGAIN}"
    )
    return Finding(_CHECK, name, FAIL, _describe(wrong), expected, why, remedy)
