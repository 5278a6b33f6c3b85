# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the fabric: each is injected for real, waits until it can be seen, and can be taken back. Both ways can be
repeated. A fault is told to ibsim, or to the emulated HCAs. Then ``lab.refresh()`` copies the state to the workers.
"""

from __future__ import annotations

import typing

from dev.steps import StepError

from ..fault import Target
from . import emulated
from .fault import FabricFault, await_state, clear_counters, find_hca, is_listed, read_port
from .link_faults import (
    cut_leaf,
    cut_link,
    narrow_link,
    restore_cables,
    restore_leaf,
    restore_link,
    swap_cables,
    widen_link,
)
from .manager_faults import (
    kill_managers,
    kill_master,
    restore_managers,
    start_second_master,
    stop_managers,
    stop_second_master,
)
from .plane import FabricPlane
from .port import COUNTERS
from .topology import Node, Topology

# enough that a loss of one in ten, or more, is seen (0.9^200 is 7e-10)
PROBES = 200
# management class of ibping's messages, IB_VENDOR_OPENIB_PING_CLASS
PING_CLASS = 0x32
# console names of ibsim for the counters that it can be told to have
_CONSOLE_COUNTERS = {
    "symbol_error": "SymbolErrorCounter",
    "link_error_recovery": "LinkErrorRecoveryCounter",
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
    "port_rcv_switch_relay_errors": "PortRcvSwitchRelayErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "port_xmit_constraint_errors": "PortXmitConstraintErrors",
    "port_rcv_constraint_errors": "PortRcvConstraintErrors",
    "local_link_integrity_errors": "LocalLinkIntegrityErrors",
    "excessive_buffer_overrun_errors": "ExcessiveBufferOverrunErrors",
    "VL15_dropped": "VL15Dropped",
    "port_xmit_wait": "PortXmitWait",
}


# messages and counters


def _loses(plane: FabricPlane, item: Topology, node: Node) -> bool:
    """Is any of many messages over the link to the port lost?"""
    return plane.lost(item, node, PROBES) > 0


def _mad_loss(plane: FabricPlane, target: Target) -> str:
    item, node = find_hca(plane, target)
    if not 10 <= target.percent <= 100:
        raise StepError(f"a loss of {target.percent} % is asked for", "use 10 to 100")
    plane.console(item, f'Error "{node.id}"[1] {target.percent}')
    await_state(f"messages to {node.description} are lost", lambda: _loses(plane, item, node))
    return f"{node.description}: {target.percent} % of the management messages to it are lost"


def _ping_unreachable(plane: FabricPlane, target: Target) -> str:
    item, node = find_hca(plane, target)
    plane.console(item, f'Error "{node.id}"[1] 100 0 {PING_CLASS:#x}')
    if not read_port(plane, item, node).active:
        raise StepError(
            f"the port of {node.description} is not active, so its silence says nothing",
            "take back the fault that is on it first",
        )
    return (
        f"{node.description}: the port is active, but messages of ibping's class to it are lost, so no server behind it"
        " is reached"
    )


def _no_loss(plane: FabricPlane, target: Target) -> str:
    item, node = find_hca(plane, target)
    plane.console(item, f'Error "{node.id}"[1] 0')
    await_state(f"no message to {node.description} is lost", lambda: not _loses(plane, item, node))
    # what was lost may have made the subnet manager give up on the port
    await_state(
        f"the port of {node.description} is active",
        lambda: read_port(plane, item, node).active and is_listed(plane, item, node),
    )
    clear_counters(plane, item)
    return f"{node.description}: all messages come through"


def _counter(plane: FabricPlane, target: Target) -> tuple[Topology, Node, str, int]:
    """Where the counter is, ibsim's command that sets it, without the value, and the largest value."""
    item, node = find_hca(plane, target)
    name = _CONSOLE_COUNTERS.get(target.counter)
    if name is None:
        raise StepError(f"no error counter '{target.counter}'", f"use one of {', '.join(_CONSOLE_COUNTERS)}")
    return item, node, f'PerformanceSet "{node.id}"[1] PortCounters.{name}', (1 << COUNTERS[target.counter][1]) - 1


def _set_counter(plane: FabricPlane, target: Target, value: int) -> str:
    item, node, command, largest = _counter(plane, target)
    if not 0 <= value <= largest:
        raise StepError(f"{target.counter} can't be {value}", f"it holds 0 to {largest}")
    plane.console(item, f"{command}={value}")
    await_state(
        f"{target.counter} of {node.description} is {value}",
        lambda: read_port(plane, item, node).counters.get(target.counter) == value,
    )
    return f"{node.description}: {target.counter} is {value}"


def _errors_grow(plane: FabricPlane, target: Target) -> str:
    item, node, command, largest = _counter(plane, target)
    before = read_port(plane, item, node).counters.get(target.counter, 0)
    plane.raise_counter(item, command, before, largest)
    await_state(
        f"{target.counter} of {node.description} rises",
        lambda: read_port(plane, item, node).counters.get(target.counter, 0) > before,
    )
    return f"{node.description}: {target.counter} rises all the time"


def _errors_stop(plane: FabricPlane, target: Target) -> str:
    plane.processes.stop(plane.rising_process(find_hca(plane, target)[0]))
    return _set_counter(plane, target, 0)


# functions


def _hca_missing(plane: FabricPlane, target: Target) -> str:
    node = find_hca(plane, target)[1]
    cut_link(plane, target)
    plane.set_flaw(target.worker, target.device, emulated.MISSING)
    return f"{node.description}: the card is gone, and with it its link"


def _hca_back(plane: FabricPlane, target: Target) -> str:
    plane.set_flaw(target.worker, target.device, None)
    return restore_link(plane, target)


def _without_room(plane: FabricPlane, target: Target) -> str:
    plane.set_flaw(target.worker, target.device, emulated.WITHOUT_ROOM)
    return (
        f"{find_hca(plane, target)[1].description}: the BARs of its VFs get no addresses, as with SR-IOV or Above 4G"
        " decoding off in the BIOS"
    )


def _with_room(plane: FabricPlane, target: Target) -> str:
    plane.set_flaw(target.worker, target.device, None)
    return f"{find_hca(plane, target)[1].description}: the BARs of its VFs get addresses"


_ALL = (
    FabricFault("sm-killed", "both subnet managers of a fabric crash", ("fabric",), kill_managers, restore_managers),
    FabricFault(
        "sm-master-killed",
        "the master crashes and the standby takes over",
        ("fabric",),
        kill_master,
        restore_managers,
    ),
    FabricFault(
        "sm-stopped",
        "both subnet managers hang: running, but no answer and no sweep",
        ("fabric",),
        stop_managers,
        restore_managers,
    ),
    FabricFault(
        "second-master",
        "an opensm on a worker ignores the others: two masters",
        ("worker", "device"),
        start_second_master,
        stop_second_master,
    ),
    FabricFault("link-cut", "the cable of an HCA is pulled", ("worker", "device"), cut_link, restore_link),
    FabricFault(
        "hca-missing",
        "an HCA is gone from a worker, as a card that is dead",
        ("worker", "device"),
        _hca_missing,
        _hca_back,
    ),
    FabricFault(
        "pf-without-room",
        "the VFs of an HCA get no addresses, as by its BIOS",
        ("worker", "device"),
        _without_room,
        _with_room,
    ),
    FabricFault(
        "link-narrow", "the link of an HCA has one lane left of four", ("worker", "device"), narrow_link, widen_link
    ),
    FabricFault("leaf-cut", "a leaf switch loses all its uplinks", ("fabric", "leaf"), cut_leaf, restore_leaf),
    FabricFault(
        "swapped-cables",
        "an HCA and the next of its host are at each other's leaf",
        ("worker", "device"),
        swap_cables,
        restore_cables,
    ),
    FabricFault(
        "mad-loss",
        "part of the management messages to an HCA is lost",
        ("worker", "device", "percent"),
        _mad_loss,
        _no_loss,
    ),
    FabricFault(
        "ibping-unreachable",
        "an HCA is active, but no ibping server behind it is reached",
        ("worker", "device"),
        _ping_unreachable,
        _no_loss,
    ),
    FabricFault(
        "error-counters",
        "an error counter of an HCA is not 0",
        ("worker", "device", "counter", "value"),
        lambda plane, target: _set_counter(plane, target, target.value),
        lambda plane, target: _set_counter(plane, target, 0),
    ),
    FabricFault(
        "errors-growing",
        "an error counter of an HCA rises all the time",
        ("worker", "device", "counter"),
        _errors_grow,
        _errors_stop,
    ),
)
FABRIC_FAULTS: typing.Mapping[str, FabricFault] = {fault.name: fault for fault in _ALL}
