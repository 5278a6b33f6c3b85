# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter of NIC maps, rendered by the collection or written by hand. It compares the lines with the nodes, and the
nodes with the lines. Check ids: ``nic_map.*``.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.addresses.pools import find_pool
from ..._analysis.fleet.hcas_of_fabric import resolve_members
from ..._model.base.load_error import Hints
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import both_ends, join_first
from ..._model.infiniband.fabric import ObservedSubnets
from ..._model.intent.intent import Fabric
from ..._model.job.nic_map import NicLine, NicMap
from ..._model.node.hca import ObservedHcas
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, add_rerun, build_pass
from ..._parse.kubernetes.networks.addresses import Pool, RangeError
from ..._parse.kubernetes.networks.multus import MOST_INTERFACES

#: pod interfaces that are named, and characters of why a node could not be read: a map may have a line for each, tens
#: of thousands of times
_NAMED, _SAID = 12, 300
#: step for an incomplete map
_RENDER = (
    "Render and apply the map again with your playbook that calls the filter linerate.rdma.render_nic_map (example:"
    " section 'The NIC map' of docs/job.md)."
)


@dataclasses.dataclass(frozen=True)
class NicMapInputs:
    """The observed and planned data with which the lines of a NIC map are compared.

    :ivar netdevs: all netdevs of each node that was read
    :ivar unread: reason for each node that was not read
    :ivar members: netdevs of the fabric on each node; None if the fabric is not known
    :ivar pool: addresses of the fabric's network, and those that its IPAM plugin assigns; None if not known
    :ivar gateway: gateway of that network; empty if it has none
    """

    netdevs: typing.Mapping[str, tuple[str, ...]]
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    members: typing.Optional[typing.Mapping[str, tuple[str, ...]]] = None
    pool: typing.Optional[Pool] = None
    gateway: str = ""


def list_members(
    fabric: Fabric, hcas: typing.Mapping[str, ObservedHcas], subnets: typing.Mapping[str, ObservedSubnets]
) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return the netdevs of a fabric on each node that answered, by node and in the order of the rails, and an empty
    text. If the HCAs of the fabric could not be determined, the text is the reason.

    An HCA without a netdev is left out.

    :param hcas: HCAs that node_info read, or the error, by node
    :param subnets: answer of subnet_manager_info of each node, which assigns InfiniBand HCAs to fabrics
    """
    read = {name: item.value for name, item in hcas.items() if item.value is not None}
    found = resolve_members(
        fabric, read, {name: item.value for name, item in subnets.items() if item.value is not None}
    )
    return {
        name: tuple(member.hca.netdevs[0].name for member in mine if member.hca.netdevs)
        for name, mine in found.members.items()
    }, found.why


def collect_inputs(
    fabric: typing.Optional[Fabric],
    hcas: typing.Mapping[str, ObservedHcas],
    subnets: typing.Mapping[str, ObservedSubnets],
) -> NicMapInputs:
    """Return the data with which a NIC map is compared: the interfaces and addresses of each node, and the nodes that
    could not be read.

    :param fabric: fabric of the map; None if the intent does not contain it
    :param hcas: HCAs that node_info read, or the error, by node
    :param subnets: subnet managers that the ports of a node see, or the error, by node
    """
    read = {name: item.value for name, item in hcas.items() if item.value is not None}
    unread = {name: item.error or "no result of node_info" for name, item in hcas.items() if item.value is None}
    netdevs = {name: tuple(netdev.name for hca in node.hcas for netdev in hca.netdevs) for name, node in read.items()}
    if fabric is None or fabric.ipam is None:
        return NicMapInputs(netdevs, unread)
    members, why = list_members(fabric, hcas, subnets)
    try:
        pool = find_pool(fabric.ipam)
    except RangeError:
        pool = None  # stage validate says why
    unread.update({fabric.name: why} if why else {})
    return NicMapInputs(netdevs, unread, members, pool if isinstance(pool, Pool) else None, fabric.ipam.gateway or "")


def lint(name: str, found: NicMap, inputs: NicMapInputs) -> tuple[Finding, ...]:
    """Return the findings on a NIC map. A rule whose data are known yields at least one finding.

    A map without any line, valid or not, gets a single finding.

    :param name: name of the map in the findings
    :param found: the parsed map
    :param inputs: data with which the map is compared
    """
    if not found.lines and not found.broken:
        why = "The map has no line, so no pod would get an address."
        return (
            Finding(
                "nic_map.read",
                name,
                UNKNOWN,
                "map without a line",
                "a line for each interface",
                why,
                f"{_RENDER} Or set name and namespace of nic_map_lint to those of the right map.",
            ),
        )
    findings = (
        *_check_map_lines(name, found),
        *_check_netdevs(name, found.lines, inputs),
        *_report_unique(name, found.lines),
        *_check_peers(name, found.lines),
        *_check_addresses(name, found, inputs),
    )
    return add_rerun(findings, "nic_map_lint", "Then run nic_map_lint again.")


def _check_map_lines(name: str, found: NicMap) -> typing.Iterator[Finding]:
    expected = "<node>:<host netdev>:<pod interface>:<ip>"
    for number, text, wrong in found.broken:
        yield Finding(
            "nic_map.read",
            f"{name} line {number}",
            FAIL,
            f"'{text}'",
            expected,
            f"The line is not valid: {wrong}.",
            "Correct the line in the map, then run nic_map_lint again.",
        )
    if not found.broken:
        yield build_pass("nic_map.read", name, count_of(len(found.lines), "line"), expected)


def _check_netdevs(name: str, lines: typing.Sequence[NicLine], inputs: NicMapInputs) -> typing.Iterator[Finding]:
    """Check that the interface of each line of a NIC map exists on its node, and that each interface of the fabric has
    a line.

    :param name: name of the map in the findings
    :param lines: valid lines of the map
    :param inputs: data with which the map is compared
    """
    check, expected, wrong, hints = "nic_map.netdevs", "an interface of the node", 0, Hints()
    for line in lines:
        subject = f"{name} {line.node} {line.netdev}"
        if line.node in inputs.netdevs and line.netdev in inputs.netdevs[line.node]:
            continue
        wrong += 1
        if line.node in inputs.unread:
            why = f"The node could not be read: {both_ends(inputs.unread[line.node], _SAID)}."
            yield Finding(
                check,
                subject,
                UNKNOWN,
                "interfaces not read",
                expected,
                why,
                (
                    f"Run ansible {line.node} --become -m linerate.rdma.node_info to see the error, and correct it."
                    " Then run nic_map_lint again with the new result."
                ),
            )
        elif line.node not in inputs.netdevs:
            why = "node_info returned no node of this name, so no pod uses this line."
            hint = hints.nearest(line.node, inputs.netdevs)
            yield Finding(
                check,
                subject,
                FAIL,
                "node does not exist",
                f"a node of the inventory{hint}",
                why,
                "Correct the name of the node in the map, or remove the line.",
            )
        else:
            why = (
                "The node has no such interface, so no pod uses this line, and the intended interface has no address"
                " in the map."
            )
            hint = hints.nearest(line.netdev, inputs.netdevs[line.node])
            yield Finding(
                check,
                subject,
                FAIL,
                "interface does not exist",
                f"{expected}{hint}",
                why,
                "Correct the name of the interface in the map. Run 'ip link' on the node to list its interfaces.",
            )
    if not wrong:
        yield build_pass(check, name, count_of(len(lines), "line"), expected)
    if inputs.members is None:
        return
    has = {(line.node, line.netdev) for line in lines}
    missing = [
        (node, netdev)
        for node, names in sorted(inputs.members.items())
        for netdev in names
        if (node, netdev) not in has
    ]
    for node, netdev in missing:
        why = (
            f"Without this line, a pod on {node} keeps the address on {netdev} that its IPAM plugin assigned. The pods"
            " on other nodes have no route to this address."
        )
        yield Finding(
            "nic_map.complete",
            f"{name} {node} {netdev}",
            FAIL,
            "no line for this interface",
            "a line for each interface",
            why,
            _RENDER,
        )
    for node, why in sorted(inputs.unread.items()):
        yield Finding(
            "nic_map.complete",
            f"{name} {node}",
            UNKNOWN,
            "interfaces not read",
            "a line for each interface",
            f"The interfaces of {node} were not determined:"
            f" {format_clause(why, 'the module node_info returned nothing')}.",
            (
                f"If {node} is a node, run ansible {node} --become -m linerate.rdma.node_info to see the error,"
                " and correct it. If it is a fabric, run stage fabric, and follow the remedies of its findings."
                " Then run nic_map_lint again with the new results."
            ),
        )
    if not missing and not inputs.unread:
        yield build_pass(
            "nic_map.complete",
            name,
            count_of(sum(map(len, inputs.members.values())), "interface"),
            "a line for each interface",
        )


def _report_unique(name: str, lines: typing.Sequence[NicLine]) -> typing.Iterator[Finding]:
    check, wrong = "nic_map.unique", False
    for what, key in (
        ("address", lambda line: line.address),
        ("pod interface", lambda line: (line.node, line.interface)),
        ("host netdev", lambda line: (line.node, line.netdev)),
    ):
        groups: dict[typing.Any, list[NicLine]] = collections.defaultdict(list)
        for line in lines:
            groups[key(line)].append(line)
        for group in groups.values():
            if len(group) > 1:
                wrong = True
                why = (
                    f"These lines of the NIC map have the same {what}. Packets for one of these pods reach another"
                    " pod, or only the last line takes effect."
                )
                yield Finding(
                    check,
                    f"{name} {group[0].text}",
                    FAIL,
                    " and ".join(line.text for line in group),
                    f"each {what} once",
                    why,
                    f"Change the {what} in one of these lines of the ConfigMap with the NIC map, or render the map"
                    " again with the filter linerate.rdma.render_nic_map. Then run nic_map_lint again.",
                )
    if not wrong:
        yield build_pass(
            check,
            name,
            count_of(len(lines), "address", "addresses"),
            "each address, pod interface and host netdev once",
        )


def _check_peers(name: str, lines: typing.Sequence[NicLine]) -> typing.Iterator[Finding]:
    """Check that all nodes have the same pod interfaces. Routes lead to peers on the same interface, so a node without
    an interface can't reach the peers on it.

    :param name: name of the map in the findings
    :param lines: valid lines of the map
    """
    check, expected = "nic_map.peers", "the same pod interfaces on each node"
    interfaces: dict[str, set[str]] = collections.defaultdict(set)
    for line in lines:
        interfaces[line.node].add(line.interface)
    everything = set().union(*interfaces.values())
    if len(everything) > MOST_INTERFACES:
        why = (
            f"No pod has more than {MOST_INTERFACES} interfaces, so no pod uses most of these lines. The interfaces"
            " that each node lacks are not listed."
        )
        yield Finding(
            check,
            name,
            FAIL,
            count_of(len(everything), "pod interface"),
            expected,
            why,
            _RENDER,
        )
        return
    lacking = {node: sorted(everything - names) for node, names in sorted(interfaces.items()) if everything - names}
    for node, names in lacking.items():
        why = (
            "The other nodes have these pod interfaces. A rank on another node finds no peer on this node, so NCCL"
            " waits and then ends with a timeout."
        )
        yield Finding(
            check,
            f"{name} {node}",
            FAIL,
            f"without {join_first(names, _NAMED)}",
            expected,
            why,
            "Add the missing lines for this node, or remove these interfaces from the other nodes.",
        )
    if not lacking:
        yield build_pass(
            check, name, f"{join_first(sorted(everything), _NAMED)} on {count_of(len(interfaces), 'node')}", expected
        )


def _check_addresses(name: str, found: NicMap, inputs: NicMapInputs) -> typing.Iterator[Finding]:
    check, pool = "nic_map.range", inputs.pool
    if pool is None:
        return
    expected, wrong = f"a host address in {pool.network} that no IPAM plugin assigns", 0
    for line in found.lines:
        if not pool.on_network(line.address) or line.address == inputs.gateway:
            wrong += 1
            why = (
                "The address belongs to the gateway."
                if line.address == inputs.gateway
                else "The address is outside the network of the fabric, so peers have no route to it."
            )
            yield Finding(
                check,
                f"{name} {line.node} {line.netdev}",
                FAIL,
                line.address,
                expected,
                why,
                "Correct the address in the map, then run nic_map_lint again.",
            )
        elif pool.hands_out(line.address):
            wrong += 1
            why = (
                "The IPAM plugin of the attachment does not know the map, so it can assign the same address to another"
                " pod."
            )
            yield Finding(
                check,
                f"{name} {line.node} {line.netdev}",
                WARN,
                line.address,
                expected,
                why,
                "Add the addresses of the map to ipam.exclude of the fabric, and run stage network.",
            )
    if not wrong:
        yield build_pass(check, name, count_of(len(found.lines), "address", "addresses"), expected)
