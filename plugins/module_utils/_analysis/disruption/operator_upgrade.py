# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict what an upgrade of the SR-IOV network operator does to nodes.

In each mode the new release updates the DaemonSets of the config daemon and of the device plugin, a third of their
nodes at the same time. Pods keep their virtual functions meanwhile. The new config daemon then compares the
configuration of its node with the SriovNetworkNodeState, which the upgrade leaves unchanged.
[bindata/manifests/daemon/daemonset.yaml, bindata/manifests/plugins/sriov-device-plugin.yaml: maxUnavailable 33%;
pkg/daemon/daemon.go Reconcile, apply]

With configurationMode systemd it also compares the text of its file on the node and of its systemd units with those of
its own release. If they differ, it drains and reboots the node, in the turns of the SriovNetworkPoolConfigs. On
OpenShift the units are in a MachineConfig, by which the machine config operator reboots the nodes of its pools. The
units differ between releases 1.5.0 and 1.6.0 (OpenShift 4.18 and 4.19), the file between 4.20 and 4.21.
[pkg/host/internal/systemd/systemd.go WriteConfFile; pkg/plugins/k8s/k8s_plugin.go OnNodeStateChange;
controllers/sriovoperatorconfig_controller.go syncOpenShiftSystemdService]
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import DisruptionPlan, NodePlan
from ..._model.operators.drivers import OperatorUpgrade, UpgradeEffect
from ..controllers.machine_configs.pools import find_machine_pool
from .live_state import Live
from .machine_config import Machines, add_pool_reboot, roll_of
from .node_plan import add_pods
from .sriov import list_pools

#: mode in which the nodes are configured when they boot
_AT_BOOT = "systemd"
#: MachineConfig with the systemd units of the operator [pkg/consts/constants.go SystemdServiceOcpMachineConfigName]
_UNITS = "sriov-config-service"


def plan_sriov_upgrade(
    live: Live, upgrade: OperatorUpgrade, inventory: typing.Iterable[str], prefix: str
) -> DisruptionPlan:
    """Return what an upgrade of the SR-IOV network operator does to the nodes that have its config daemon. A node that
    only gets another config daemon has a reason, and no action.

    :param live: present state of the cluster
    :param inventory: names of the nodes of the run
    :param prefix: prefix of the device plugin's resources
    """
    known, listed = {node.name: node for node in live.nodes}, tuple(inventory)
    reboots = _AT_BOOT in (live.settings.mode, upgrade.mode)
    planned = {name: NodePlan(name, "nothing") for name in listed}
    for name, node in known.items():
        if name not in live.states:
            continue
        reason = f"an upgrade of the SR-IOV network operator ({upgrade.text}) restarts its config daemon"
        there = NodePlan(name, "nothing", (reason,), listed=name in listed)
        if reboots:
            reason += f", which reboots the node if its files differ (configurationMode is {_AT_BOOT})"
            there = add_pods(NodePlan(name, "reboot", (reason,), listed=name in listed), node, live, prefix, ())
        planned[name] = there
    pools = list_pools(tuple(planned.values()), known, live)
    machines = Machines((), (), live.machine_pools, live.nodes, live.pods, live.budgets)
    rolls = []
    for pool in live.machine_pools:
        if not reboots or _UNITS not in pool.sources:
            continue
        members = [node.name for node in live.nodes if find_machine_pool(node, live.machine_pools) == pool]
        for name in members:
            there = planned.get(name, NodePlan(name, "nothing", listed=name in listed))
            planned[name] = add_pool_reboot(there, pool, (f"MachineConfig {_UNITS} ({upgrade.text})",), machines)
        rolls += [roll_of(pool, tuple(members))] if members else []
    return DisruptionPlan(tuple(planned.values()), (*rolls, *pools), not live.settings.disable_drain, dict(live.unread))


def describe_sriov_upgrade(planned: DisruptionPlan, refused: tuple[str, ...]) -> UpgradeEffect:
    """Return the effect of an upgrade of the SR-IOV network operator.

    :param planned: plan of the upgrade
    :param refused: reasons against it
    """
    rebooted = tuple(node.title for node in planned.nodes if node.action == "reboot")
    if rebooted:
        limits = join_first(tuple(dict.fromkeys(pool.limit for pool in planned.pools)), between="; ")
        return UpgradeEffect(rebooted, refused, "can drain and reboot", limits)
    return UpgradeEffect(
        tuple(node.title for node in planned.nodes if node.reasons),
        refused,
        "restarts the config daemon and the device plugin of",
        "a third of them at the same time, without a drain. The new release drains a node only if it finds another"
        " configuration there than that of its SriovNetworkNodeState",
    )
