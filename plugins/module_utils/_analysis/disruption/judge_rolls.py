# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge whether the MachineConfigPools rolled as planned. Check ids: ``network.roll`` and that of the teardown."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import Roll
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

LOG_OF_CONTROLLER = "oc logs -n openshift-machine-config-operator deployment/machine-config-controller"


def check_rolls(rolls: typing.Iterable[Roll], error: str, check: str = "network.roll") -> typing.Iterator[Finding]:
    """Yield a finding for each MachineConfigPool on whether all of its machines got the new configuration in a single
    roll, and one failed finding if the configuration was not rendered.

    :param rolls: observed roll of each pool
    :param error: why the new configuration was not rendered; empty if it was
    :param check: check id of the findings
    """
    expected, again = "all machines on the new configuration, updated once", _describe_rerun(check)
    if error:
        why = (
            f"The machine config operator did not render the new configuration: {format_clause(error)}. The pools were"
            " unpaused nevertheless, so that no pool stays paused."
        )
        yield Finding(
            check,
            "MachineConfigPools",
            FAIL,
            "new configuration not rendered",
            expected,
            why,
            f"Read the log: {LOG_OF_CONTROLLER}. Correct the cause, then {again}.",
        )
    for roll in rolls:
        subject, measured = (
            f"MachineConfigPool {roll.pool}",
            f"{roll.updated} of {count_of(roll.machines, 'machine')} on {roll.config or 'no configuration'}, updated"
            f" {'once' if roll.rolls == 1 else f'{roll.rolls} times'}",
        )
        if roll.error:
            why = f"Not all nodes of the pool reached the new configuration: {format_clause(roll.error)}."
            remedy = (
                f"Run oc describe machineconfigpool {roll.pool}, and read the log of the machine-config-daemon on the"
                f" node that makes no progress. Correct the cause, then {again}."
            )
            yield Finding(check, subject, FAIL, f"{measured}, update failed", expected, why, remedy)
        elif not roll.updated <= roll.machines <= roll.updated + len(roll.others):
            why = (
                "The waiting time of the run ended before all machines of the pool had the new configuration. A"
                " degraded node or a blocked drain stops a pool."
            )
            yield Finding(
                check,
                subject,
                FAIL,
                measured,
                expected,
                why,
                f"Run oc describe machineconfigpool {roll.pool}. If it shows a degraded node or a blocked drain,"
                f" correct this. Otherwise wait until oc get machineconfigpool {roll.pool} shows UPDATED True. Then"
                f" {again}.",
            )
        elif roll.rolls > 1:
            why = (
                "Another program gave the pool a different configuration during the update, so nodes rebooted more than"
                " once."
            )
            yield Finding(
                check,
                subject,
                FAIL,
                measured,
                expected,
                why,
                "Find the program that changes MachineConfigs (oc get machineconfig --sort-by"
                f" .metadata.creationTimestamp --show-managed-fields), and stop it. Then {again}.",
            )
        elif roll.others:
            why = (
                "Each node of the inventory has the new configuration. These other nodes of the pool do not have it:"
                f" {join_first(roll.others, 20)}."
            )
            yield Finding(
                check,
                subject,
                WARN,
                f"{measured}; {count_of(len(roll.others), 'other node')} not updated",
                expected,
                why,
                "Run oc describe node for each of these nodes: a NotReady node applies no configuration. Repair or"
                f" remove it, then {again}.",
            )
        else:
            yield build_pass(check, subject, measured, expected)


def report_not_rolled(
    planned: typing.Optional[DisruptionPlan], rolls: typing.Iterable[Roll], check: str = "network.roll"
) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` for each pool whose planned roll was not observed, for each pool that has
    fewer machines than planned, and for each pool whose plan contradicts the plans of its nodes.

    :param planned: predicted drains and reboots; None yields no finding
    :param rolls: observed roll of each pool
    :param check: check id of the findings
    """
    if planned is None:
        return
    rolls = tuple(rolls)
    seen = {roll.pool for roll in rolls}
    machines = {roll.pool: roll.machines for roll in rolls if not roll.error}
    members = {pool.name: pool.nodes for pool in planned.pools if pool.machines}
    by_nodes: dict[str, set[str]] = {}
    for node in planned.nodes:
        if node.rolled_by:
            by_nodes.setdefault(node.rolled_by, set()).add(node.node)
    unknown = {node.node for node in planned.nodes if node.action == "unknown"}
    again = _describe_rerun(check)
    expected = "all machines on the new configuration, after 1 roll"
    for name in dict.fromkeys((*members, *by_nodes)):
        subject = f"MachineConfigPool {name}"
        if name not in seen:
            why = "The new MachineConfigs update this pool, but the run ended before it waited for the update."
            wait = f"Wait until oc get machineconfigpool {name} shows UPDATED True, then {again}."
            yield Finding(check, subject, UNKNOWN, "update not observed", expected, why, wait)
        nodes = len(members.get(name, ()))
        if machines.get(name, nodes) < nodes:
            why = (
                f"The pool had {count_of(nodes, 'node')} before the update ({join_first(members[name], 8)}), and has"
                f" {machines[name]} now. A node leaves a pool when it loses a label that the pool selects, or when it"
                " is removed from the cluster. Whether such a node has the new configuration is unknown."
            )
            left = (
                f"Compare oc get nodes --show-labels with the labels that oc get machineconfigpool {name} -o"
                " jsonpath='{.spec.nodeSelector}' shows. Give each node that must stay in the pool the missing label:"
                f" oc label node NODE KEY=VALUE. Then {again}."
            )
            measured = f"{count_of(machines[name], 'machine')} in the pool"
            yield Finding(check, subject, UNKNOWN, measured, f"{count_of(nodes, 'machine')}, updated once", why, left)
        listed, named = set(members.get(name, ())), by_nodes.get(name, set())
        odd = sorted((named ^ listed) - unknown)
        if odd:
            one_sided = (
                (listed - named - unknown, "nodes {nodes} under the pool, but not the pool under these nodes"),
                (named - listed - unknown, "the pool under nodes {nodes}, but not these nodes under the pool"),
            )
            texts = [f"It lists {text.format(nodes=join_first(sorted(some)))}." for some, text in one_sided if some]
            why = f"The plan that the run stored contradicts itself. {' '.join(texts)}"
            remedy = f"{again[0].upper()}{again[1:]}: it makes a new plan."
            yield Finding(
                check,
                subject,
                UNKNOWN,
                f"nodes of the pool contradictory: {join_first(odd)}",
                "the same nodes of the pool in the whole plan",
                why,
                remedy,
            )


def _describe_rerun(check: str) -> str:
    """Return the instruction to run again the stage, or the teardown, to which a check belongs.

    :param check: check id, which begins with the name of its stage
    """
    stage = check.partition(".")[0]
    return "run the teardown again" if stage == "teardown" else f"run stage {stage} again"
