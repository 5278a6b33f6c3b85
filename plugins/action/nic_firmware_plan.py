# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans what is set in the firmware of HCAs, and by whom. Documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import cluster_spec, connect
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import ParseError, RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.firmware import NodeFirmwarePlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster, Resource
from ansible_collections.linerate.rdma.plugins.module_utils._observe.nic_configuration_operator import templates
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import name_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import mark
from ansible_collections.linerate.rdma.plugins.module_utils._plan.nic_templates import ByOperator, by_operator
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_firmware import OfHost, of_host, to_set
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, Caller, ControllerAction, Result, by_pods
from ansible_collections.linerate.rdma.plugins.plugin_utils._firmware import Known, firmware_of

FACT = "nic_firmware_plan"
_BY_POD = "an observer changes nothing on its node. Reach it by ssh, or set them by hand"


class ActionModule(ControllerAction):
    """Reads the facts of the run. It asks the API server only where something has to be set."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = cluster_spec(**FOLDER_SPEC, fabrics={"type": "raw", "required": True}, cluster={"type": "raw"})

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        try:
            answer = self._plan(options, variables, folder)
        except RdmaError as error:
            folder.write(FACT, error=str(error))
            raise
        folder.write(FACT, value=answer)
        return answer

    def _plan(self, options: Result, variables: Result, folder: FactFolder) -> Result:
        nodes = folder.start().nodes
        known = firmware_of(folder, nodes, options["fabrics"], options["cluster"])
        api: typing.List[Cluster] = []

        def cluster() -> Cluster:
            api.extend([] if api else [connect(typing.cast(typing.Any, Caller(FACT, options, bool(self._task.check_mode))))])
            return api[0]

        operator = _by_operator(known, cluster)
        planned = {node: one for node, one in _planned(known, operator, by_pods(nodes, variables), cluster).items() if one != NodeFirmwarePlan()}
        objects = [{"fabric": fabric, "object": made} for fabric, made in operator.objects]
        templated = sorted(node for node, one in planned.items() if one.templates)
        return {"nodes": to_data(planned), "templates": objects, "templated": templated, "wanted": dict(operator.wanted)}


def _by_operator(known: Known, cluster: typing.Callable[[], Cluster]) -> ByOperator:
    """A template may be there of an earlier run, also where all cards are as wanted."""
    unread = ""
    try:
        there = templates(cluster()) if known.nics.devices else ()
    except RdmaError as error:
        there, unread = (), f"which templates there are is not known: {error}"
    return by_operator(known.memberships, known.platforms, known.fleet, known.nics, there, unread)


def _planned(known: Known, operator: ByOperator, pods: typing.Container[str], cluster: typing.Callable[[], Cluster]) -> typing.Dict[str, NodeFirmwarePlan]:
    hosts = {
        node: of_host(node, known.memberships, platform.value, known.fleet) if platform.value is not None else OfHost()
        for node, platform in known.platforms.items()
    }
    unset = [node for node, host in hosts.items() if to_set(host, ())]
    # two who set one HCA would undo each other's settings
    unread = f"whether NVIDIA's operator sets them is not known: {known.nics.errors[0]}" if known.nics.errors else ""
    try:
        marks = {name_of(item): item for item in cluster().list("Node").items} if unset else {}
    except RdmaError as error:
        marks, unread = {}, f"whether nodes were reset for them before is not known: {error}"
    found = {}
    for node, host in hosts.items():
        before, broken = _reset_for(marks.get(node))
        settings = to_set(host, before)
        refusal = (unread or broken or (_BY_POD if node in pods else "")) if settings else ""
        by = operator.cards.get(node, ())
        names, cards = (tuple(dict.fromkeys(pair[of] for pair in by)) for of in (0, 1))
        found[node] = NodeFirmwarePlan({} if refusal else settings, refusal, names, cards, operator.notes.get(node, ()))
    return found


def _reset_for(node: typing.Optional[Resource]) -> typing.Tuple[typing.Tuple[str, ...], str]:
    """Identities of the differences for which a node was reset, or why they are not known."""
    try:
        noted = mark(node) if node is not None else None
    except ParseError as error:
        return (), f"whether it was reset for them before is not known: {error.seen}"
    return noted.differences if noted is not None and noted.reset else (), ""
