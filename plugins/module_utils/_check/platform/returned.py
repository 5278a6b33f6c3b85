# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that a node that was reset has all HCAs and links that it had before. Check id: ``platform.returned``.

The earlier stages judged the node before its reset. Their results hold only if the node came back unchanged.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.boundary.devices import assigned_address
from ..._model.kubernetes.node_roll import NodeOutcome
from ..._model.node.hca import NO_GUID, Hca, NodeHcas, ObservedHcas, Port
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass

#: length of the text of a MAC address
_MAC = 17
_CHECK, _EXPECTED = "platform.returned", "all HCAs and links from before the reset"
_AGAIN = "run the playbook again from stage discover on: -e rdma_from=discover."
_COMPARE = (
    "Compare the HCAs and links of the node with the report of an earlier run, and correct what is missing. Then"
    f" {_AGAIN}"
)
_PORT, _INTERFACE, _GONE = " port ", "the interface ", " and now is missing"


def check(
    before: typing.Mapping[str, NodeHcas],
    now: typing.Mapping[str, ObservedHcas],
    outcomes: typing.Optional[typing.Iterable[NodeOutcome]] = (),
) -> typing.Iterator[Finding]:
    """Compare the HCAs and links of each node that was reset with those that it had before the reset, and yield one
    finding for each node.

    :param before: HCAs before the reset, by node, of the nodes that were reset
    :param now: HCAs that node_info read after the reset, or the error, by node
    :param outcomes: outcome of the roll on each node; None if this run has not rolled nodes
    """
    reset = dict.fromkeys(outcome.node for outcome in outcomes or () if outcome.was_reset)
    for node in (name for name in reset if name not in before):
        why = (
            "The node was reset, but the data from before the reset was not stored. It is unknown whether all HCAs and"
            " links returned."
        )
        yield Finding(_CHECK, node, UNKNOWN, "HCAs and links not compared", _EXPECTED, why, _COMPARE)
    for node, had in before.items():
        seen = now.get(node, ObservedHcas(error=NOT_QUERIED))
        if seen.value is None or seen.error is not None:
            why = (
                "The HCAs and links of the node after its reset are unknown:"
                f" {format_clause(seen.error, 'no data was returned')}."
            )
            yield Finding(
                _CHECK,
                node,
                UNKNOWN,
                "HCAs and links after the reset not read",
                _EXPECTED,
                why,
                f"Run ansible {node} --become -m ansible.builtin.ping until it succeeds. If the node does not start,"
                f" correct the error on its console. Then {_AGAIN}",
            )
            continue
        if node in reset and had.boot and had.boot == seen.value.boot:
            why = (
                f"The node reports the same boot as before its reset ({had.boot}). The node was not reset, or its data"
                " is from before the reset."
            )
            remedy = f"Run stage platform again. If the boot stays the same, reset the node by hand, then {_AGAIN}"
            yield Finding(_CHECK, node, UNKNOWN, "same boot as before the reset", "a new boot", why, remedy)
            continue
        own, shown = _identify(had), _identify(seen.value)
        if own and shown and not own & shown:
            why = (
                "The node reports none of the node GUIDs and MAC addresses from before its reset. The stored data is of"
                " a different machine, or a different machine now responds to this name."
            )
            remedy = (
                f"Check that ansible_host and the BMC address of this node lead to the right machine, then {_AGAIN}"
            )
            yield Finding(_CHECK, node, UNKNOWN, "HCAs of a different machine", _EXPECTED, why, remedy)
            continue
        if not _list_physical(had):
            why = (
                "The data from before the reset contains no HCA, or was too large to be read. It is unknown whether all"
                " HCAs and links returned."
            )
            yield Finding(_CHECK, node, UNKNOWN, "HCAs and links not compared", _EXPECTED, why, _COMPARE)
            continue
        lost = list_missing_parts(had, seen.value)
        if lost:
            yield Finding(
                _CHECK,
                node,
                FAIL,
                f"missing or slower: {join_first(lost, 10, '; ')}",
                _EXPECTED,
                "The node had them before its reset. Its hardware or a driver did not start completely, or a setting"
                " that took effect at the reset changed them.",
                _describe_remedy(lost),
            )
        else:
            yield build_pass(
                _CHECK,
                node,
                f"{count_of(len(_list_physical(had)), 'HCA is', 'HCAs are')} present again, with all links",
                _EXPECTED,
            )


def _describe_remedy(lost: typing.Sequence[str]) -> str:
    """Return the remedy for HCAs, ports, links or interfaces that a node lacks since its reset.

    :param lost: descriptions of the missing HCAs, ports and interfaces
    """
    gone = [text for text in lost if text.endswith(_GONE)]
    ports = [text for text in lost if (_PORT in text or ", which was up" in text) and text not in gone]
    interfaces = [text for text in lost if text.startswith(_INTERFACE)]
    steps = []
    if len(gone) + len(ports) + len(interfaces) < len(lost):
        steps.append(
            "Run lspci -nn on the node. If it does not list the HCA, drain and power-cycle the node, and reseat or"
            " replace the card if it stays missing. If it lists the HCA, correct the error that dmesg shows for its"
            " driver."
        )
    if gone:
        steps.append(
            "Run ibstat on the node. If it does not list the missing port, correct the error that dmesg shows for its"
            " HCA. Without an error, set the firmware settings that differ from those of the same HCA of another node"
            " (mstconfig -d ADDRESS query)."
        )
    if ports:
        steps.append(
            "Run ibstat or ip link on the node to see the state of the port, and correct its cable or its switch port."
        )
    if interfaces:
        steps.append(
            "Run ip link on the node. If the interface has a new name, give it its old name back, such as by a file"
            " of systemd.link. If it is missing, correct the error that dmesg shows for its driver."
        )
    return f"{' '.join(steps)} Then {_AGAIN}"


def list_missing_parts(before: NodeHcas, now: NodeHcas) -> tuple[str, ...]:
    """Return a description of each part that a node had before its reset and does not have now: physical functions,
    their RDMA devices, active ports, link rates and interfaces.

    An HCA is identified by its node GUID, or without one by its PCI address, since a reset may renumber the buses.
    """
    there = {_identify_hca(hca): hca for hca in now.hcas}
    lost: list[str] = []
    for hca in _list_physical(before):
        again = there.get(_identify_hca(hca))
        lost += [_describe_hca(hca)] if again is None else _list_lost_parts(hca, again)
    return tuple(lost)


def _list_physical(node: NodeHcas) -> list[Hca]:
    # VFs are made anew after a boot, by whom stage virtual_functions asks
    return [hca for hca in node.hcas if not hca.is_virtual]


def _identify(node: NodeHcas) -> frozenset[str]:
    """Return the node GUIDs and MAC addresses of the physical functions, which identify a machine.

    Interfaces of a bond are left out, since each of them may show the address of another port of the bond. IPoIB
    interfaces are left out too, since their addresses are GUIDs.
    """
    found = set()
    for hca in _list_physical(node):
        if hca.node_guid and hca.node_guid != NO_GUID:
            found.add(hca.node_guid)
        found |= {
            assigned_address(netdev.hardware_address)
            for netdev in hca.all_netdevs
            if len(netdev.hardware_address) == _MAC and not netdev.bond and netdev.queue_pair is None
        }
    return frozenset(found - {""})


def _identify_hca(hca: Hca) -> str:
    if hca.node_guid and hca.node_guid != NO_GUID:
        return hca.node_guid
    return hca.pci.address if hca.pci else hca.name


def _describe_hca(hca: Hca) -> str:
    return f"{hca.name} ({hca.pci.address})" if hca.pci and hca.pci.address != hca.name else hca.name


def _list_lost_parts(had: Hca, has: Hca) -> typing.Iterator[str]:
    if had.rdma_device and not has.rdma_device:
        yield f"the RDMA device of {_describe_hca(had)}"
        return
    ports = {port.number: port for port in has.all_ports}
    for port in had.all_ports:
        if port.state != "ACTIVE":
            continue
        again = ports.get(port.number, Port(port.number))
        if again.state != "ACTIVE":
            yield f"{had.name} port {port.number}, which was ACTIVE and now is {again.state or 'missing'}"
        elif port.rate_gbps and (again.rate_gbps is None or again.rate_gbps < port.rate_gbps):
            rate = "an unknown rate" if again.rate_gbps is None else f"{again.rate_gbps:g} Gb/s"
            yield f"{had.name} port {port.number}, which had {port.rate_gbps:g} Gb/s and now has {rate}"
    # a pod that had some of them is gone by now
    for name in sorted(set(had.names) - set(has.names)):
        yield f"the interface {name or 'without a name'} of {_describe_hca(had)}"
    states = {netdev.name: netdev.state for netdev in has.netdevs}
    for netdev in had.netdevs:
        if netdev.state == "up" and states.get(netdev.name, "up") != "up":
            yield f"{netdev.name}, which was up and now is {states[netdev.name] or 'in an unknown state'}"
