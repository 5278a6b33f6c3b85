# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the fabric: each is injected for real, waits until it can be seen, and can be taken back. Both ways can be
repeated. A fault is told to ibsim, or to the emulated HCAs. Then ``lab.refresh()`` copies the state to the workers.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import signal
import typing

from dev.steps import StepError

from ..fault import Target
from ..processes import wait_until
from . import emulated
from .plane import FabricPlane
from .port import COUNTERS, PortState
from .topology import SUBNET_MANAGERS, Link, Node, Topology

SEEN_LIMIT = 30.0
#: until a port that was told its width is told again, in seconds
TOLD_LIMIT = 3.0
# enough that a loss of one in ten, or more, is seen (0.9^200 is 7e-10)
PROBES = 200
# management class of ibping's messages, IB_VENDOR_OPENIB_PING_CLASS
PING_CLASS = 0x32
# LinkWidthEnabled: one lane, and one or four
ONE_LANE, ALL_LANES = "1", "3"
_NEIGHBOUR = re.compile(r"^Guid:\.+0x([0-9a-f]+)$", re.MULTILINE)
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


@dataclasses.dataclass(frozen=True)
class FabricFault:
    """A fault of a fabric, whose directions know of nothing but the fabrics.

    :param what: one line for the user
    :param uses: fields of the target that matter
    :param on: injects it and returns what is now so
    :param off: takes it back and returns what is now so
    """

    name: str
    what: str
    uses: tuple[str, ...]
    on: typing.Callable[[FabricPlane, Target], str]
    off: typing.Callable[[FabricPlane, Target], str]


def _await(what: str, condition: typing.Callable[[], bool]) -> None:
    if not wait_until(condition, SEEN_LIMIT):
        raise StepError(
            f"after {SEEN_LIMIT:.0f} s it is still not so that {what}",
            "read the logs in .lab/log; 'make lab-down' and start the lab again",
        )


def _hca(plane: FabricPlane, target: Target) -> tuple[Topology, Node]:
    item = plane.topologies[plane.fabrics.hca(target.device).fabric]
    return item, item.hca(target.worker, target.device)


def _fabric(plane: FabricPlane, target: Target) -> Topology:
    return plane.topologies[plane.fabrics.fabric(target.fabric).name]


def _port(plane: FabricPlane, item: Topology, node: Node) -> PortState:
    return plane.port_states(item, [node])[node]


def _active(plane: FabricPlane, item: Topology, node: Node) -> bool:
    return _port(plane, item, node).active


def _clean(plane: FabricPlane, item: Topology) -> None:
    """What a fault left in the error counters goes with it."""

    def clean() -> bool:
        plane.clear_errors(item)
        return plane.run(item, item.managers[-1], "ibqueryerrors").returncode == 0

    _await(f"{item.fabric.name} has no errors counted", clean)


def _silent(plane: FabricPlane, item: Topology, hosts: typing.Sequence[str]) -> None:
    for host, manager in zip(SUBNET_MANAGERS, item.managers):
        if host in hosts:
            _await(
                f"the subnet manager of {host} does not answer", functools.partial(_is_silent, plane, item, manager.lid)
            )


def _is_silent(plane: FabricPlane, item: Topology, lid: int) -> bool:
    return plane.subnet_manager(item, lid) is None


# subnet managers


def _sm_killed(plane: FabricPlane, target: Target) -> str:
    item = _fabric(plane, target)
    for host in SUBNET_MANAGERS:
        name = plane.manager_process(item, host)
        if plane.processes.alive(name):
            # no good bye, as in a crash
            plane.processes.signal(name, signal.SIGKILL)
        plane.processes.stop(name)
    _silent(plane, item, SUBNET_MANAGERS)
    return f"{item.fabric.name} has no subnet manager; its ports keep what the last one gave them"


def _sm_restored(plane: FabricPlane, target: Target) -> str:
    item = _fabric(plane, target)
    for host in SUBNET_MANAGERS:
        name = plane.manager_process(item, host)
        if plane.processes.alive(name):
            plane.processes.signal(name, signal.SIGCONT)
        plane.start_manager(item, host)
    plane.wait_ready(item)
    _clean(plane, item)
    return f"{item.fabric.name}: {SUBNET_MANAGERS[0]} is master, {SUBNET_MANAGERS[1]} standby"


def _sm_master_killed(plane: FabricPlane, target: Target) -> str:
    item = _fabric(plane, target)
    name = plane.manager_process(item, SUBNET_MANAGERS[0])
    if plane.processes.alive(name):
        plane.processes.signal(name, signal.SIGKILL)
    plane.processes.stop(name)
    plane.wait_ready(item, SUBNET_MANAGERS[1], None)
    return f"{item.fabric.name}: {SUBNET_MANAGERS[0]} is dead, {SUBNET_MANAGERS[1]} is master"


def _sm_stopped(plane: FabricPlane, target: Target) -> str:
    item = _fabric(plane, target)
    for host in SUBNET_MANAGERS:
        plane.processes.signal(plane.manager_process(item, host), signal.SIGSTOP)
    _silent(plane, item, SUBNET_MANAGERS)
    return f"{item.fabric.name}: both subnet managers hang; they still have the IsSM bit set"


def _second_master(plane: FabricPlane, target: Target) -> str:
    item, node = _hca(plane, target)
    # the usual reason in the field: an opensm that came with a package on some host, told to mind no other
    plane.start_manager(item, target.worker, node, ignore_other_sm="TRUE")
    lids = [item.managers[0].lid, node.lid]

    def two() -> bool:
        found = [plane.subnet_manager(item, lid) for lid in lids]
        return all(manager is not None and manager.state == "MASTER" for manager in found)

    _await(f"{SUBNET_MANAGERS[0]} and {node.description} are both master", two)
    return (
        f"{item.fabric.name} has two masters: {SUBNET_MANAGERS[0]} (LID {lids[0]}) and {node.description} (LID"
        f" {lids[1]})"
    )


def _second_master_gone(plane: FabricPlane, target: Target) -> str:
    item = _hca(plane, target)[0]
    plane.processes.stop(plane.manager_process(item, target.worker))
    # the ports still name the one that is gone
    plane.sweep(item)
    plane.wait_ready(item)
    _clean(plane, item)
    return f"{item.fabric.name} has one master again: {SUBNET_MANAGERS[0]}"


# links and messages


def _link_cut(plane: FabricPlane, target: Target) -> str:
    item, node = _hca(plane, target)
    if _port(plane, item, node).state != 1:
        plane.console(item, f'Unlink "{node.id}"[1]')
    _await(f"the port of {node.description} is down", lambda: _port(plane, item, node).state == 1)
    _await(
        f"the subnet manager has seen it: {node.description} is no longer in its list",
        lambda: not _listed(plane, item, node),
    )
    return f"{node.description}: the link is down"


def _link_back(plane: FabricPlane, target: Target) -> str:
    item, node = _hca(plane, target)
    if _port(plane, item, node).state == 1:
        plane.console(item, f'ReLink "{node.id}"[1]')
    _await(f"the port of {node.description} is active", lambda: _port(plane, item, node).active)
    _await(f"{node.description} is in the subnet manager's list", lambda: _listed(plane, item, node))
    _clean(plane, item)
    return f"{node.description}: the link is active, LID {_port(plane, item, node).lid}"


def _cable(item: Topology, node: Node) -> Link:
    """The cable of an HCA as the description has it."""
    return next(link for link in item.links if link.peer == node)


def _pull(plane: FabricPlane, item: Topology, node: Node) -> None:
    plane.console(item, f'Unlink "{node.id}"[1]')


def _plug(plane: FabricPlane, item: Topology, node: Node, place: Link) -> None:
    """Put an HCA's cable into the port of a leaf that another link of the description has, or its own."""
    plane.console(item, f'Link "{node.id}"[1] "{place.switch.id}"[{place.port}]')


def _wait_linked(plane: FabricPlane, item: Topology, nodes: typing.Sequence[Node]) -> None:
    for node in nodes:
        _await(f"the port of {node.description} is active", functools.partial(_active, plane, item, node))
        _await(f"{node.description} is in the subnet manager's list", functools.partial(_listed, plane, item, node))


def _is_at(plane: FabricPlane, item: Topology, node: Node, leaf: Node) -> bool:
    """Is that switch at the other end of the HCA's cable? Asked from there: one hop out of port 1."""
    found = _NEIGHBOUR.search(plane.run(item, node, "smpquery", "--Direct", "nodeinfo", "0,1").stdout)
    return found is not None and int(found[1], 16) == leaf.guid


def _neighbours(plane: FabricPlane, target: Target) -> tuple[Topology, Node, Node]:
    """The HCA, and the next of its host on the same fabric."""
    item, node = _hca(plane, target)
    names = [hca.name for hca in plane.fabrics.hcas_on(item.fabric.name)]
    if len(names) < 2:
        raise StepError(
            f"{target.device} is the only HCA on {item.fabric.name}", "use an HCA of a fabric with two rails or more"
        )
    return item, node, item.hca(target.worker, names[(names.index(target.device) + 1) % len(names)])


def _cables_swapped(plane: FabricPlane, target: Target) -> str:
    item, one, other = _neighbours(plane, target)
    first, second = _cable(item, one), _cable(item, other)
    _cross(plane, item, {one: second, other: first})
    return (
        f"{one.description} is at {second.switch.description} port {second.port}, {other.description} at"
        f" {first.switch.description} port {first.port}"
    )


def _cables_right(plane: FabricPlane, target: Target) -> str:
    item, one, other = _neighbours(plane, target)
    _cross(plane, item, {one: _cable(item, one), other: _cable(item, other)})
    _clean(plane, item)
    return f"{one.description} and {other.description} are at their own leaves"


def _cross(plane: FabricPlane, item: Topology, places: typing.Mapping[Node, Link]) -> None:
    if not all(_is_at(plane, item, node, place.switch) for node, place in places.items()):
        for node in places:
            _pull(plane, item, node)
        for node, place in places.items():
            _plug(plane, item, node, place)
    for node, place in places.items():
        _await(
            f"{node.description} is at {place.switch.description}",
            functools.partial(_is_at, plane, item, node, place.switch),
        )
    _wait_linked(plane, item, list(places))


def _set_width(plane: FabricPlane, target: Target, enabled: str, width: str) -> tuple[Node, PortState]:
    """Allow both ends of the HCA's cable so many lanes; of ibsim's ports the one that was told last decides for
    both."""
    item, node = _hca(plane, target)
    place = _cable(item, node)

    def right() -> bool:
        return f"({width}X " in _port(plane, item, node).rate

    def told() -> bool:
        for lid, number in ((place.switch.lid, place.port), (node.lid, 1)):
            plane.run(item, item.managers[-1], "ibportstate", str(lid), str(number), "width", enabled)
        return wait_until(right, TOLD_LIMIT)

    # twice, and each time until it stays: a subnet manager in the middle of a sweep writes back what it has read before
    for _round in range(2):
        _await(f"the link of {node.description} has {width} lanes", lambda: right() or told())
        _wait_linked(plane, item, [node])
    return node, _port(plane, item, node)


def _link_narrow(plane: FabricPlane, target: Target) -> str:
    node, state = _set_width(plane, target, ONE_LANE, "1")
    return f"{node.description}: three of four lanes are dead, {state.rate}"


def _link_wide(plane: FabricPlane, target: Target) -> str:
    node, state = _set_width(plane, target, ALL_LANES, "4")
    _clean(plane, _hca(plane, target)[0])
    return f"{node.description}: {state.rate}"


def _leaf(plane: FabricPlane, target: Target) -> tuple[Topology, Node, list[Link], list[Node]]:
    """A leaf, its uplinks, and the HCAs at it."""
    item = _fabric(plane, target)
    if not 1 <= target.leaf <= item.fabric.leaves:
        raise StepError(f"{item.fabric.name} has no leaf {target.leaf}", f"use 1 to {item.fabric.leaves}")
    leaf = item.switches[target.leaf - 1]
    links = [link for link in item.links if link.switch == leaf]
    hcas = [link.peer for link in links if link.peer.kind == "hca"]
    if set(hcas) & set(item.managers):
        raise StepError(
            f"a subnet manager's server is at leaf {target.leaf}: the rest would be cut off from it",
            "use a leaf between the first and the last",
        )
    return item, leaf, [link for link in links if link.peer.kind == "switch"], hcas


def _leaf_cut(plane: FabricPlane, target: Target) -> str:
    item, leaf, uplinks, hcas = _leaf(plane, target)
    for link in uplinks:
        plane.console(item, f'Unlink "{leaf.id}"[{link.port}]')
    for node in hcas:
        _await(f"the subnet manager has lost {node.description}", functools.partial(_lost, plane, item, node))
    return (
        f"{leaf.description}: all {len(uplinks)} uplinks are down; cut off are"
        f" {', '.join(node.description for node in hcas)}"
    )


def _leaf_back(plane: FabricPlane, target: Target) -> str:
    item, leaf, uplinks, hcas = _leaf(plane, target)
    for link in uplinks:
        plane.console(item, f'ReLink "{leaf.id}"[{link.port}]')
    _wait_linked(plane, item, hcas)
    _clean(plane, item)
    return f"{leaf.description}: all {len(uplinks)} uplinks are active"


def _listed(plane: FabricPlane, item: Topology, node: Node) -> bool:
    """Does subnet administration know the port? (NodeRecord of its LID)"""
    return node.description in plane.run(item, item.managers[-1], "saquery", "NR", str(node.lid)).stdout


def _lost(plane: FabricPlane, item: Topology, node: Node) -> bool:
    return not _listed(plane, item, node)


def _loses(plane: FabricPlane, item: Topology, node: Node) -> bool:
    """Is any of many messages over the link to the port lost?"""
    return plane.lost(item, node, PROBES) > 0


def _mad_loss(plane: FabricPlane, target: Target) -> str:
    item, node = _hca(plane, target)
    if not 10 <= target.percent <= 100:
        raise StepError(f"a loss of {target.percent} % is asked for", "use 10 to 100")
    plane.console(item, f'Error "{node.id}"[1] {target.percent}')
    _await(f"messages to {node.description} are lost", lambda: _loses(plane, item, node))
    return f"{node.description}: {target.percent} % of the management messages to it are lost"


def _ping_unreachable(plane: FabricPlane, target: Target) -> str:
    item, node = _hca(plane, target)
    plane.console(item, f'Error "{node.id}"[1] 100 0 {PING_CLASS:#x}')
    if not _port(plane, item, node).active:
        raise StepError(
            f"the port of {node.description} is not active, so its silence says nothing",
            "take back the fault that is on it first",
        )
    return (
        f"{node.description}: the port is active, but messages of ibping's class to it are lost, so no server behind it"
        " is reached"
    )


def _no_loss(plane: FabricPlane, target: Target) -> str:
    item, node = _hca(plane, target)
    plane.console(item, f'Error "{node.id}"[1] 0')
    _await(f"no message to {node.description} is lost", lambda: not _loses(plane, item, node))
    # what was lost may have made the subnet manager give up on the port
    _await(
        f"the port of {node.description} is active",
        lambda: _port(plane, item, node).active and _listed(plane, item, node),
    )
    _clean(plane, item)
    return f"{node.description}: all messages come through"


def _counter(plane: FabricPlane, target: Target) -> tuple[Topology, Node, str, int]:
    """Where the counter is, ibsim's command that sets it, without the value, and the largest value."""
    item, node = _hca(plane, target)
    name = _CONSOLE_COUNTERS.get(target.counter)
    if name is None:
        raise StepError(f"no error counter '{target.counter}'", f"use one of {', '.join(_CONSOLE_COUNTERS)}")
    return item, node, f'PerformanceSet "{node.id}"[1] PortCounters.{name}', (1 << COUNTERS[target.counter][1]) - 1


def _set_counter(plane: FabricPlane, target: Target, value: int) -> str:
    item, node, command, largest = _counter(plane, target)
    if not 0 <= value <= largest:
        raise StepError(f"{target.counter} can't be {value}", f"it holds 0 to {largest}")
    plane.console(item, f"{command}={value}")
    _await(
        f"{target.counter} of {node.description} is {value}",
        lambda: _port(plane, item, node).counters.get(target.counter) == value,
    )
    return f"{node.description}: {target.counter} is {value}"


def _errors_grow(plane: FabricPlane, target: Target) -> str:
    item, node, command, largest = _counter(plane, target)
    before = _port(plane, item, node).counters.get(target.counter, 0)
    plane.raise_counter(item, command, before, largest)
    _await(
        f"{target.counter} of {node.description} rises",
        lambda: _port(plane, item, node).counters.get(target.counter, 0) > before,
    )
    return f"{node.description}: {target.counter} rises all the time"


def _errors_stop(plane: FabricPlane, target: Target) -> str:
    plane.processes.stop(plane.rising_process(_hca(plane, target)[0]))
    return _set_counter(plane, target, 0)


# functions


def _hca_missing(plane: FabricPlane, target: Target) -> str:
    node = _hca(plane, target)[1]
    _link_cut(plane, target)
    plane.set_flaw(target.worker, target.device, emulated.MISSING)
    return f"{node.description}: the card is gone, and with it its link"


def _hca_back(plane: FabricPlane, target: Target) -> str:
    plane.set_flaw(target.worker, target.device, None)
    return _link_back(plane, target)


def _without_room(plane: FabricPlane, target: Target) -> str:
    plane.set_flaw(target.worker, target.device, emulated.WITHOUT_ROOM)
    return (
        f"{_hca(plane, target)[1].description}: the BARs of its VFs get no addresses, as with SR-IOV or Above 4G"
        " decoding off in the BIOS"
    )


def _with_room(plane: FabricPlane, target: Target) -> str:
    plane.set_flaw(target.worker, target.device, None)
    return f"{_hca(plane, target)[1].description}: the BARs of its VFs get addresses"


_ALL = (
    FabricFault("sm-killed", "both subnet managers of a fabric crash", ("fabric",), _sm_killed, _sm_restored),
    FabricFault(
        "sm-master-killed",
        "the master crashes and the standby takes over",
        ("fabric",),
        _sm_master_killed,
        _sm_restored,
    ),
    FabricFault(
        "sm-stopped",
        "both subnet managers hang: running, but no answer and no sweep",
        ("fabric",),
        _sm_stopped,
        _sm_restored,
    ),
    FabricFault(
        "second-master",
        "an opensm on a worker ignores the others: two masters",
        ("worker", "device"),
        _second_master,
        _second_master_gone,
    ),
    FabricFault("link-cut", "the cable of an HCA is pulled", ("worker", "device"), _link_cut, _link_back),
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
        "link-narrow", "the link of an HCA has one lane left of four", ("worker", "device"), _link_narrow, _link_wide
    ),
    FabricFault("leaf-cut", "a leaf switch loses all its uplinks", ("fabric", "leaf"), _leaf_cut, _leaf_back),
    FabricFault(
        "swapped-cables",
        "an HCA and the next of its host are at each other's leaf",
        ("worker", "device"),
        _cables_swapped,
        _cables_right,
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
