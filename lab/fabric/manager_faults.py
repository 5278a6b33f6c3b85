# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the subnet managers of a fabric: managers that crash, hang, or are masters at the same time."""

from __future__ import annotations

import functools
import signal
import typing

from ..fault import Target
from .fault import await_state, clear_counters, find_fabric, find_hca
from .plane import FabricPlane
from .topology import SUBNET_MANAGERS, Topology


def _silent(plane: FabricPlane, item: Topology, hosts: typing.Sequence[str]) -> None:
    for host, manager in zip(SUBNET_MANAGERS, item.managers):
        if host in hosts:
            await_state(
                f"the subnet manager of {host} does not answer", functools.partial(_is_silent, plane, item, manager.lid)
            )


def _is_silent(plane: FabricPlane, item: Topology, lid: int) -> bool:
    return plane.subnet_manager(item, lid) is None


def kill_managers(plane: FabricPlane, target: Target) -> str:
    item = find_fabric(plane, target)
    for host in SUBNET_MANAGERS:
        name = plane.manager_process(item, host)
        if plane.processes.alive(name):
            # no good bye, as in a crash
            plane.processes.signal(name, signal.SIGKILL)
        plane.processes.stop(name)
    _silent(plane, item, SUBNET_MANAGERS)
    return f"{item.fabric.name} has no subnet manager; its ports keep what the last one gave them"


def restore_managers(plane: FabricPlane, target: Target) -> str:
    item = find_fabric(plane, target)
    for host in SUBNET_MANAGERS:
        name = plane.manager_process(item, host)
        if plane.processes.alive(name):
            plane.processes.signal(name, signal.SIGCONT)
        plane.start_manager(item, host)
    plane.wait_ready(item)
    clear_counters(plane, item)
    return f"{item.fabric.name}: {SUBNET_MANAGERS[0]} is master, {SUBNET_MANAGERS[1]} standby"


def kill_master(plane: FabricPlane, target: Target) -> str:
    item = find_fabric(plane, target)
    name = plane.manager_process(item, SUBNET_MANAGERS[0])
    if plane.processes.alive(name):
        plane.processes.signal(name, signal.SIGKILL)
    plane.processes.stop(name)
    plane.wait_ready(item, SUBNET_MANAGERS[1], None)
    return f"{item.fabric.name}: {SUBNET_MANAGERS[0]} is dead, {SUBNET_MANAGERS[1]} is master"


def stop_managers(plane: FabricPlane, target: Target) -> str:
    item = find_fabric(plane, target)
    for host in SUBNET_MANAGERS:
        plane.processes.signal(plane.manager_process(item, host), signal.SIGSTOP)
    _silent(plane, item, SUBNET_MANAGERS)
    return f"{item.fabric.name}: both subnet managers hang; they still have the IsSM bit set"


def start_second_master(plane: FabricPlane, target: Target) -> str:
    item, node = find_hca(plane, target)
    # the usual reason in the field: an opensm that came with a package on some host, told to mind no other
    plane.start_manager(item, target.worker, node, ignore_other_sm="TRUE")
    lids = [item.managers[0].lid, node.lid]

    def two() -> bool:
        found = [plane.subnet_manager(item, lid) for lid in lids]
        return all(manager is not None and manager.state == "MASTER" for manager in found)

    await_state(f"{SUBNET_MANAGERS[0]} and {node.description} are both master", two)
    return (
        f"{item.fabric.name} has two masters: {SUBNET_MANAGERS[0]} (LID {lids[0]}) and {node.description} (LID"
        f" {lids[1]})"
    )


def stop_second_master(plane: FabricPlane, target: Target) -> str:
    item = find_hca(plane, target)[0]
    plane.processes.stop(plane.manager_process(item, target.worker))
    # the ports still name the one that is gone
    plane.sweep(item)
    plane.wait_ready(item)
    clear_counters(plane, item)
    return f"{item.fabric.name} has one master again: {SUBNET_MANAGERS[0]}"
