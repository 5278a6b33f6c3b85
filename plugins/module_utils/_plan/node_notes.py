# SPDX-License-Identifier: GPL-3.0-or-later

"""Collect notes about restarts of services and drains of a node that later stages of the same run will cause, besides
the resets. The plan of the resets shows these notes. Pure.
"""

from __future__ import annotations

import typing

from .._analysis.fleet.hcas_of_fabric import Membership
from .._model.intent.intent import Intent
from .._model.intent.profiles import find_traits
from .._model.node.platform import ObservedPlatform
from .._model.node.tuning import ObservedTuning

_NO_REBOOT = "no reboot required"


def of_restarts(tuning: ObservedTuning, intent: Intent) -> tuple[str, ...]:
    """Return notes about changes for which a later stage restarts services on a node that is in no MachineConfigPool. A
    change whose value is already in force needs no restart and gets no note. If the present value is not known, the
    note calls the restart possible.

    :param tuning: observed tuning of the node
    """
    host, notes = intent.cluster.host, []
    if host.memlock is not None and host.memlock.by == "containerd":
        wanted = str(host.memlock.limit_bytes or "unlimited")
        if _collect_row_values(tuning, "memlock", "containerd") != {wanted}:
            notes.append(
                f"{_NO_REBOOT}: stage host sets the limit of locked memory to {wanted}, and restarts containerd if"
                " the present limit differs, on one node after the other until it fails on a node. Running containers"
                " are not stopped"
            )
    kubelet = host.kubelet
    asked = (
        {}
        if kubelet is None
        else {
            "topology_manager": ("policy of the topology manager", kubelet.topology_manager_policy),
            "topology_scope": ("scope of the topology manager", kubelet.topology_manager_scope),
            "cpu_manager": ("policy of the cpu manager", kubelet.cpu_manager_policy),
        }
    )
    for row, (name, setting) in asked.items():
        values = _collect_row_values(tuning, row)
        if setting is not None and values != {setting}:
            has = ", ".join(sorted(values)) or "unknown"
            what = f"the {name} of the kubelet is {has}, but the intent requires {setting}"
            notes.append(
                f"{_NO_REBOOT}: {what}. This collection does not change the kubelet of a node without a"
                f" MachineConfigPool: set the {name.partition(' ')[0]} in the configuration of the kubelet, and restart"
                " the kubelet"
            )
    return tuple(notes)


def of_functions(
    node: str, memberships: typing.Iterable[Membership], platform: ObservedPlatform, intent: Intent
) -> tuple[str, ...]:
    """Return a note about the HCAs of a node whose number of VFs the SR-IOV network operator will change. The operator
    drains the node for this. Return an empty tuple if no number changes.
    """
    functions = (
        {function.address: function for function in platform.value.functions} if platform.value is not None else {}
    )
    fabrics = {fabric.name: fabric for fabric in intent.fabrics if find_traits(fabric).functions}
    changed = []
    for membership in (one for one in memberships if one.fabric in fabrics):
        wanted = fabrics[membership.fabric].virtual_functions
        for hca in (member.hca for member in membership.members.get(node, ())):
            function = functions.get(hca.pci.address) if hca.pci else None
            if function is not None and (function.sriov_current or 0) != wanted:
                changed.append(f"{hca.name} {function.sriov_current or 0} -> {wanted}")
    if not changed:
        return ()
    why = (
        "The operator drains the node by its own policies after the resets of this plan, because it can create the"
        " VFs only when the new settings are in force. This plan does not include that drain"
    )
    return (
        (
            "stage network: the SR-IOV network operator drains the node to change the number of VFs"
            f" ({', '.join(changed)}). {why}"
        ),
    )


def _collect_row_values(tuning: ObservedTuning, row: str, where: str = "") -> set[str]:
    readings = tuning.value.rows.get(row, ()) if tuning.value is not None and tuning.error is None else ()
    return {reading.value for reading in readings if not where or where in reading.where}
