# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage validate: check that the addresses of each fabric suffice and do not contradict each other. Check ids:
``validate.*``. The checks that need data from the cluster are in in_use.py.
"""

from __future__ import annotations

import typing

from ..._model.base.load_exactly import Unread
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import Fabric, Intent, Ipam, NvIpamPool, Route
from ..._model.intent.profiles import count_pods_on_a_node, find_traits
from ..._model.run.findings import FAIL, WARN, Finding, ok
from ..._parse.kubernetes.addresses import (
    Blocks,
    Network,
    Pool,
    RangeError,
    is_address,
    parse_blocks,
    parse_network,
    parse_networks,
    parse_range,
)

Nodes = typing.Sequence[str]


def check(intent: Intent, nodes: Nodes) -> tuple[Finding, ...]:
    """Return the findings on the addresses of each fabric, and on overlaps between fabrics.

    :param nodes: names of the nodes of the inventory
    """
    findings: list[Finding] = []
    for index, fabric in enumerate(intent.fabrics):
        findings += run_rule(_check_fabric, fabric, f"rdma_fabrics[{index}].ipam", nodes)
    return (*findings, *_check_disjoint(intent))


def find_pool(ipam: Ipam) -> typing.Union[Pool, Blocks]:
    """Return the addresses that an IPAM plugin allocates to pods according to an ipam mapping. The gateway is excluded:
    whereabouts itself does not exclude it, so the renderer does.

    :raises RangeError: the range or another value of the mapping is invalid
    """
    if ipam.type == "whereabouts":
        pool = parse_range(ipam.range, ipam.range_start, ipam.range_end, ipam.exclude)
        if ipam.gateway is not None and pool.hands_out(ipam.gateway):
            return parse_range(ipam.range, ipam.range_start, ipam.range_end, (*ipam.exclude, ipam.gateway.strip()))
        return pool
    wanted = ipam.pool or NvIpamPool("")
    if wanted.kind == "IPPool":
        return parse_blocks(ipam.range, wanted.per_node_block_size, ipam.gateway, ipam.exclude)
    return parse_networks(ipam.range, wanted.per_node_network_prefix or 0, wanted.gateway_index, ipam.exclude)


def outside_of(fabric: Fabric, address: typing.Optional[str]) -> str:
    """Return the range of the fabric as text if an address is outside of it; empty if the address is inside.

    The result is also empty if the fabric has no ipam, if the address is unknown, or if the range is invalid, which
    stage validate reports.

    :param address: address of a pod on the network of the fabric; None if unknown
    """
    if fabric.ipam is None or not address:
        return ""
    try:
        inside = find_pool(fabric.ipam).spans(address)
    except RangeError:
        return ""
    ends = [end for end in (fabric.ipam.range_start, fabric.ipam.range_end) if end is not None]
    if inside:
        return ""
    return f"{fabric.ipam.range}, {' to '.join(ends)}" if ends else fabric.ipam.range


def excluded_from(fabric: Fabric, address: typing.Optional[str]) -> str:
    """Return the words of ipam that keep an address of the range from pods; empty where a pod may have it, where it is
    not of the range, and where stage validate refuses the range.

    :param address: of a pod on the network of the fabric; None where it is not known
    """
    if fabric.ipam is None or not address:
        return ""
    try:
        excluded = find_pool(fabric.ipam).excludes(address)
    except RangeError:
        return ""
    pool = fabric.ipam.pool
    words = [f"exclude {', '.join(fabric.ipam.exclude)}"] if fabric.ipam.exclude else []
    words += [f"gateway {fabric.ipam.gateway}"] if fabric.ipam.gateway is not None else []
    words += [f"gateway_index {pool.gateway_index}"] if pool is not None and pool.gateway_index is not None else []
    return "; ".join(words) if excluded else ""


def count_needed_on_a_node(fabric: Fabric) -> int:
    """Return the number of addresses that the pods of one node may use at the same time: one per VF, or one per pod."""
    return count_pods_on_a_node(fabric)


def need(fabric: Fabric, nodes: int) -> str:
    """Return the number of required addresses with its calculation, as text for a finding.

    :param nodes: number of nodes
    """
    return f"{nodes * count_pods_on_a_node(fabric)} addresses: {nodes} nodes x {_describe_addresses_per_node(fabric)}"


def _describe_addresses_per_node(fabric: Fabric) -> str:
    """Describe the VFs or pods of one node that need an address."""
    if find_traits(fabric).functions:
        return f"{fabric.select.hcas_per_node} HCAs x {fabric.virtual_functions} VFs"
    return f"{count_pods_on_a_node(fabric)} pods"


def _report_bad(check_id: str, subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    return Finding(check_id, subject, FAIL, measured, expected, why, remedy)


def _check_fabric(fabric: Fabric, path: str, nodes: Nodes) -> typing.Iterator[Finding]:
    if fabric.ipam is None:
        # whether the profile does without is validate.profile's to say
        return
    wrong = run_rule(_check_pool, fabric.ipam, path)
    if wrong:
        places = {finding.subject for finding in wrong}
        yield from wrong
        yield from (
            finding
            for finding in run_rules(
                (_report_gateway_alone, _report_exclusions_alone, _report_routes_alone), fabric.ipam, path
            )
            if finding.subject not in places
        )
        return
    try:
        findings = _check_addresses(fabric, fabric.ipam, path, nodes)
    except Unread:
        # what is not known is part of the arithmetic
        findings = run_rules((_report_gateway_alone, _report_exclusions_alone, _report_routes_alone), fabric.ipam, path)
    yield from findings


def _check_pool(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a finding for each key of an ipam mapping that contradicts another key. If there is none, yield a finding
    on an invalid range.

    :param path: path of the mapping in the intent
    """
    foreign = _check_keys(ipam, path)
    yield from foreign
    if not foreign:
        try:
            find_pool(ipam)
        except RangeError as error:
            yield _report_bad(
                "validate.ipam", f"{path}.{error.field}", f"'{error.seen}'", error.expected, error.why, error.remedy
            )


def _report_gateway_alone(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a finding if the gateway is not a valid address. This check does not need a valid range.

    :param path: path of the ipam mapping in the intent
    """
    if ipam.gateway is not None and not is_address(ipam.gateway):
        remedy = "Correct the gateway, or remove it: RDMA traffic of one subnet needs none."
        yield _report_bad(
            "validate.gateway",
            f"{path}.gateway",
            f"'{ipam.gateway}'",
            "an address in range",
            "A pod can't reach what is no address.",
            remedy,
        )


def _report_exclusions_alone(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a finding for each entry of ``exclude`` that is not a valid network. This check does not need a valid
    range.

    :param path: path of the ipam mapping in the intent
    """
    for index, item in enumerate(ipam.exclude):
        try:
            parse_network(item)
        except RangeError as error:
            yield _report_bad(
                "validate.ipam", f"{path}.exclude[{index}]", f"'{item}'", error.expected, error.why, error.remedy
            )


def _report_routes_alone(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a finding for each route whose destination is not a valid network. This check does not need a valid range.

    :param path: path of the ipam mapping in the intent
    """
    for index, route in enumerate(ipam.routes):
        yield from run_rule(_report_route_alone, route, f"{path}.routes[{index}].dst")


def _report_route_alone(route: Route, place: str) -> typing.Iterator[Finding]:
    try:
        parse_network(route.dst)
    except RangeError as error:
        yield _report_bad("validate.routes", place, f"'{route.dst}'", error.expected, error.why, error.remedy)


def _check_addresses(fabric: Fabric, ipam: Ipam, path: str, nodes: Nodes) -> list[Finding]:
    """Check that the addresses suffice, and that the gateway and the routes fit the network."""
    pool = find_pool(ipam)
    findings = [ok("validate.ipam", path, f"{ipam.type} {pool.network}", f"keys and values that {ipam.type} takes")]
    if isinstance(pool, Blocks):
        findings += run_rule(_check_pool_blocks, fabric, pool, path, max(1, len(nodes)))
    else:
        findings += run_rule(_check_pool_capacity, fabric, pool, path, max(1, len(nodes)))
        findings += _check_gateway(ipam, pool, path)
    return findings + _check_routes(ipam, pool.network, path)


def _check_keys(ipam: Ipam, path: str) -> list[Finding]:
    """Return a finding for each key of an ipam mapping that its IPAM plugin, or the kind of its nv-ipam pool, does not
    accept.

    :param path: path of the mapping in the intent
    """
    pool = ipam.pool or NvIpamPool("")
    whereabouts, blocks, networks = (
        ipam.type == "whereabouts",
        *(ipam.pool is not None and pool.kind == kind for kind in ("IPPool", "CIDRPool")),
    )
    prefix = "pool.per_node_network_prefix"
    wrong: tuple[tuple[bool, str, str, str], ...] = (
        (whereabouts and ipam.pool is not None, "pool", "no pool with whereabouts", "Pools of nodes are nv-ipam's."),
        (
            not whereabouts and ipam.pool is None,
            "pool",
            "a pool with its name",
            "nv-ipam gives addresses out of a pool, and none is named.",
        ),
        (
            not whereabouts and ipam.range_start is not None,
            "range_start",
            "no range_start with nv-ipam",
            "Only whereabouts knows it.",
        ),
        (
            not whereabouts and ipam.range_end is not None,
            "range_end",
            "no range_end with nv-ipam",
            "Only whereabouts knows it.",
        ),
        (
            networks and ipam.gateway is not None,
            "gateway",
            "pool.gateway_index",
            "In a CIDRPool each node has a gateway of its own.",
        ),
        (
            networks and pool.per_node_network_prefix is None,
            prefix,
            "a prefix, such as 24",
            "A CIDRPool is cut into networks of this prefix.",
        ),
        (
            blocks and pool.per_node_network_prefix is not None,
            prefix,
            "pool.per_node_block_size",
            "An IPPool is cut into blocks of addresses.",
        ),
        (
            blocks and pool.gateway_index is not None,
            "pool.gateway_index",
            "gateway",
            "An IPPool has one gateway for all nodes.",
        ),
        (
            not pool.create and bool(ipam.routes),
            "routes",
            "no routes with a pool that somebody else made",
            "nv-ipam takes routes from its pool.",
        ),
    )
    return [
        _report_bad(
            "validate.ipam",
            f"{path}.{key}",
            "contradicts the rest of ipam",
            expected,
            why,
            f"Correct {path}.{key}; docs/intent.md shows both types.",
        )
        for is_wrong, key, expected, why in wrong
        if is_wrong
    ]


def _check_pool_blocks(fabric: Fabric, pool: Blocks, path: str, nodes: int) -> typing.Iterator[Finding]:
    yield _check_blocks(fabric, pool, path, nodes)


def _check_pool_capacity(fabric: Fabric, pool: Pool, path: str, nodes: int) -> typing.Iterator[Finding]:
    yield _check_capacity(fabric, pool, path, nodes)


def _check_capacity(fabric: Fabric, pool: Pool, path: str, nodes: int) -> Finding:
    needed = nodes * count_needed_on_a_node(fabric)
    subject, measured, expected = f"{path}.range", f"{pool.capacity} addresses", need(fabric, nodes)
    if pool.capacity < needed:
        why = "Each pod takes an address, so the last ones would wait for ever with 'Could not allocate IP in range'."
        remedy = (
            "Widen range (or range_start and range_end), or lower"
            f" {'virtual_functions' if find_traits(fabric).functions else 'pods_per_node'}."
        )
        return _report_bad("validate.addresses", subject, measured, expected, why, remedy)
    if pool.capacity < needed + count_needed_on_a_node(fabric):
        why = (
            "It is enough until a node dies: whereabouts keeps the addresses of its pods until the nightly reconciler"
            f" comes, and the pods that replace them need {count_needed_on_a_node(fabric)} more."
        )
        return Finding(
            "validate.addresses",
            subject,
            WARN,
            measured,
            f"{expected}, and one node's {count_needed_on_a_node(fabric)} more",
            why,
            "Widen range.",
        )
    return ok("validate.addresses", subject, measured, expected)


def _check_blocks(fabric: Fabric, pool: Blocks, path: str, nodes: int) -> Finding:
    """Check that nv-ipam can give each node a share of the pool, and that the smallest share has an address for each VF
    or pod of a node.

    :param path: path of the ipam mapping in the intent
    :param nodes: number of nodes
    """
    key = "per_node_block_size" if fabric.pool is None or fabric.pool.kind == "IPPool" else "per_node_network_prefix"
    served, poorest = pool.share(nodes)
    needed = count_needed_on_a_node(fabric)
    if served < nodes:
        why = (
            "nv-ipam gives each node a share of its own; the nodes that come last get none, and their pods no address."
        )
        remedy = f"Widen range, or make the shares smaller ({path}.pool.{key}): {needed} addresses are needed in each."
        measured = f"{served} shares of {pool.size} addresses in {pool.network}"
        return _report_bad(
            "validate.addresses", f"{path}.range", measured, f"{nodes} shares, one for each node", why, remedy
        )
    if poorest < needed:
        why = (
            "Each pod takes an address of its node's share, so the node's last pods would get none. Gateway and"
            " exclusions are taken off."
        )
        expected = f"{needed} addresses in each share: {_describe_addresses_per_node(fabric)}"
        return _report_bad(
            "validate.addresses",
            f"{path}.pool.{key}",
            f"{poorest} addresses in the smallest share",
            expected,
            why,
            "Make the shares larger.",
        )
    return ok(
        "validate.addresses",
        f"{path}.range",
        f"{nodes} shares, {poorest} addresses in the smallest",
        f"{nodes} shares with {needed} addresses at least",
    )


def _check_gateway(ipam: Ipam, pool: Pool, path: str) -> list[Finding]:
    if ipam.gateway is None:
        return []
    if not pool.on_network(ipam.gateway):
        why = "A pod can't reach a gateway that is outside its own network."
        remedy = "Correct the gateway, or remove it: RDMA traffic of one subnet needs none."
        return [
            _report_bad(
                "validate.gateway", f"{path}.gateway", f"'{ipam.gateway}'", f"an address in {pool.network}", why, remedy
            )
        ]
    # whereabouts itself reserves none; pool_of and the renderer exclude it
    return [ok("validate.gateway", f"{path}.gateway", ipam.gateway, f"in {pool.network}, never handed out")]


def _check_routes(ipam: Ipam, network: Network, path: str) -> list[Finding]:
    findings: list[Finding] = []
    for index, route in enumerate(ipam.routes):
        subject = f"{path}.routes[{index}]"
        try:
            target = parse_network(route.dst)
        except RangeError as error:
            findings.append(
                _report_bad(
                    "validate.routes", f"{subject}.dst", f"'{route.dst}'", error.expected, error.why, error.remedy
                )
            )
            continue
        if target.version != network.version:
            why = "A route of the other IP version can't use this network."
            findings.append(
                _report_bad(
                    "validate.routes",
                    f"{subject}.dst",
                    str(target),
                    f"IPv{network.version}",
                    why,
                    "Correct or remove it.",
                )
            )
        elif target.prefixlen == 0:
            why = (
                "A default route over the secondary network: the pod already has one over the cluster's own, and what"
                " is meant for the API server, DNS and everything else outside would leave over a network that can't"
                " carry it, or only sometimes."
            )
            remedy = "Remove it. To reach other networks of the fabric, name them, such as 100.101.0.0/16."
            findings.append(
                Finding("validate.routes", f"{subject}.dst", WARN, str(target), "no default route", why, remedy)
            )
        else:
            findings.append(_check_way(ipam, route.gw, network, subject, target))
    return findings


def _check_way(ipam: Ipam, way: typing.Optional[str], network: Network, subject: str, target: Network) -> Finding:
    if ipam.type == "nv-ipam":
        has_gateway = ipam.gateway is not None or (ipam.pool is not None and ipam.pool.gateway_index is not None)
        if way is not None or not has_gateway:
            why = "nv-ipam leads all routes over the gateway of its pool."
            expected = "no gw, and a gateway (IPPool) or pool.gateway_index (CIDRPool)"
            return _report_bad("validate.routes", subject, f"gw {way}", expected, why, "Correct the two.")
        return ok("validate.routes", subject, str(target), "over the gateway of the pool")
    over = way if way is not None else ipam.gateway
    if over is None or not parse_range(ipam.range).on_network(over):
        why = "Without a gateway on its own network a pod finds no way to the other one."
        return _report_bad(
            "validate.routes",
            f"{subject}.gw",
            f"'{over}'" if over else "none",
            f"an address in {network}",
            why,
            "Set gw, or gateway.",
        )
    return ok("validate.routes", subject, f"{target} over {over}", f"a gateway in {network}")


def _check_disjoint(intent: Intent) -> tuple[Finding, ...]:
    pools: list[tuple[str, Network]] = []
    findings: list[Finding] = []
    for index, fabric in enumerate(intent.fabrics):
        try:
            if fabric.ipam is None:
                continue
            path, network = f"rdma_fabrics[{index}].ipam.range", parse_range(fabric.ipam.range).network
        except (RangeError, Unread):
            continue  # named already, by its own finding
        for other_path, other in pools:
            if network.version == other.version and network.overlaps(other):
                why = "A pod on both fabrics would have two ways to the same addresses and send on the wrong one."
                expected = f"no overlap with {other_path} ({other})"
                findings.append(
                    _report_bad(
                        "validate.disjoint_ranges",
                        path,
                        str(network),
                        expected,
                        why,
                        "Give each fabric its own network.",
                    )
                )
        pools.append((path, network))
    return tuple(findings) or (
        ok("validate.disjoint_ranges", "rdma_fabrics", f"{len(pools)} networks", "networks that do not overlap"),
    )
