# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the firmware settings of HCAs, and whether the host or NVIDIA's operator applies them. The options are
documented in the module of the same name.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.gate import list_roll_blockers
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import CardTurns
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware import unread_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError, RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FIRMWARE_PLAN,
    FIRMWARE_SETTINGS,
    NodeFirmwarePlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.nic_configuration_operator import (
    read_templates,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import name_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import parse_mark
from ansible_collections.linerate.rdma.plugins.module_utils._plan.nic_templates import ByOperator, by_operator
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_firmware import (
    Before,
    OfHost,
    collect_hosts,
    plan_nodes,
    to_set,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.card_templates import refuse_conflicts
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.drain_blockers import (
    read_drain_blockers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import (
    add_machine_pools,
    read_gate_inputs,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.health_checks import HealthChecks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_turns import TurnReader
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import (
    FOLDER_SPEC,
    Caller,
    ControllerAction,
    Result,
    by_pods,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._firmware import Known, read_firmware_facts
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import refuse_limit


class ActionModule(ControllerAction):
    """An action plugin that reads the facts of the run, and stores each node's part of the firmware plan as a fact of
    the node. The API server is queried only if the plan needs data of the cluster.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = make_cluster_spec(
        **FOLDER_SPEC, fabrics={"type": "raw", "required": True}, cluster={"type": "raw"}
    )

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        try:
            if not self._task.check_mode:
                # NVIDIA's operator reboots the nodes of its templates
                refuse_limit(self._loader, variables.get("groups", {}), folder.start().nodes, "stage platform")
            answer = self._plan_node_firmware(options, variables, folder)
        except RdmaError as error:
            folder.write(FIRMWARE_PLAN, error=str(error))
            raise
        return answer

    def _plan_node_firmware(self, options: Result, variables: Result, folder: FactFolder) -> Result:
        nodes = folder.start().nodes
        known = read_firmware_facts(folder, nodes, options["fabrics"], options["cluster"])
        api: list[Cluster] = []

        def cluster() -> Cluster:
            api.extend(
                []
                if api
                else [connect(typing.cast(typing.Any, Caller(FIRMWARE_PLAN, options, bool(self._task.check_mode))))]
            )
            return api[0]

        operator = _look_at_operator(known, cluster)
        if operator.going and known.fleet.intent.cluster.disruption == "reboot":
            templates = [made for _fabric, made in operator.objects]
            place = known.fleet.intent.cluster.operator_namespace
            refuse_conflicts(cluster(), place, templates, known.nics.devices)
            _ask_gate(operator.going, cluster(), known, nodes)
        hosts = collect_hosts(known.memberships, known.platforms, known.fleet)
        before, unread = _read_earlier_resets(known, hosts, cluster)
        planned = plan_nodes(hosts, before, operator, unread, by_pods(nodes, variables))
        for node in nodes:
            # one that had a part before may have none any more
            if node in planned or folder.read(FIRMWARE_SETTINGS, node) is not None:
                folder.write(FIRMWARE_SETTINGS, node, planned.get(node, NodeFirmwarePlan()))
        objects = [{"fabric": fabric, "object": made} for fabric, made in operator.objects]
        templated = sorted(node for node, one in planned.items() if one.templates)
        folder.write(
            FIRMWARE_PLAN, value={"templates": objects, "templated": templated, "wanted": dict(operator.wanted)}
        )
        counts = {
            "set": sum(bool(one.settings) for one in planned.values()),
            "refused": sum(bool(one.refusal) for one in planned.values()),
            "templated": len(templated),
        }
        return {"templates": objects, "templated": templated, "counts": counts}


def _look_at_operator(known: Known, cluster: typing.Callable[[], Cluster]) -> ByOperator:
    """Return which firmware settings NVIDIA's NIC configuration operator applies, and which nodes it may reboot for
    them.

    The existing NicConfigurationTemplates are read whenever the cluster has NicDevices, also if all NICs have their
    desired settings, because an earlier run may have created a template. If the templates cannot be read, the result
    contains the reason.

    :param known: facts of the run
    :param cluster: function without arguments that returns a client of the API server
    """
    unread = ""
    try:
        there = read_templates(cluster()) if known.nics.devices else ()
    except RdmaError as error:
        there, unread = (), f"the existing templates are unknown: {error}"
    return by_operator(known.memberships, known.platforms, known.fleet, known.nics, there, unread)


def _ask_gate(going: tuple[str, ...], cluster: Cluster, known: Known, nodes: typing.Sequence[str]) -> None:
    """Verify that the nodes that NVIDIA's operator will reboot may be rebooted now. The operator reboots them without
    asking, as many at a time as its maintenance operator permits.

    :param going: nodes that the operator may reboot
    :param cluster: client of the API server
    :param known: facts of the run
    :param nodes: nodes of the inventory
    :raises RdmaError: the state of the cluster does not permit the reboots
    """
    intent = known.fleet.intent.cluster
    turns = TurnReader(cluster, intent.operator_namespace)
    every = tuple(map(core.parse_node, cluster.list("Node").items))
    stand = read_gate_inputs(cluster, every, checks=HealthChecks(cluster, lambda _line: None), turns=turns)
    stand = add_machine_pools(cluster, stand)
    places = {nic.namespace for nic in known.nics.devices}
    at_once, limit, unread = turns.read_operations(places, len(every)) if len(going) > 1 else (1, "", "")
    turn = CardTurns("", going, 1 if unread else at_once, None, limit)
    why = (
        *([unread] if unread else []),
        *list_roll_blockers([turn], (), stand, stand.machine_pools, intent, nodes),
        *read_drain_blockers(cluster, dict.fromkeys(going, True), intent),
    )
    if why:
        raise RdmaError(
            f"NVIDIA's operator would reboot nodes that must not be rebooted now: {' '.join(why[:5]).rstrip('.')}",
            "Correct this, then rerun. Nothing was set",
        )


def _read_earlier_resets(
    known: Known, hosts: typing.Mapping[str, OfHost], cluster: typing.Callable[[], Cluster]
) -> tuple[dict[str, Before], str]:
    """Return for which differing settings an earlier run reset each node, and why no setting may be written on any
    node. The API server is queried only if a node has settings to write.

    :param known: facts of the run
    :param hosts: settings that the host writes, by node
    :param cluster: function without arguments that returns a client of the API server
    :returns: the differing settings, or the error why they are unknown, by node; and the reason against any write,
        empty if settings may be written
    """
    # two who set one HCA would undo each other's settings
    unread = f"whether NVIDIA's operator sets them is unknown: {known.nics.errors[0]}" if known.nics.errors else ""
    if not any(to_set(host, ()) for host in hosts.values()):
        return {}, unread
    try:
        found = {name_of(item): _reset_for(item) for item in cluster().list("Node").items}
    except RdmaError as error:
        return {}, f"whether nodes were reset for them before is unknown: {error}"
    for node, causes in unread_of(known.nics).items():
        found[node] = Before(error=f"whether NVIDIA's operator sets them is unknown: {causes[0]}")
    return found, unread


def _reset_for(node: Resource) -> Before:
    try:
        noted = parse_mark(node)
    except ParseError as error:
        return Before(error=f"whether it was reset for them before is unknown: {error.seen}")
    return Before(noted.differences if noted is not None and noted.reset else ())
