# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage validate: check that the addresses of each fabric suffice and do not contradict each other. Check ids:
``validate.*``. The checks that need data from the cluster are in in_use.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.load_exactly import Unread
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import Fabric, Intent, Ipam, NvIpamPool, Route
from ..._model.intent.profiles import count_pods_on_a_node, find_traits
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from ..._parse.kubernetes.addresses import Network, Pool, RangeError, is_address, parse_network, parse_range
from ..._parse.kubernetes.nv_ipam import Blocks, parse_blocks, parse_networks

Nodes = typing.Sequence[str]


def check(intent: Intent, nodes: Nodes) -> tuple[Finding, ...]:
    """Check the address range of each fabric, its gateway, exclusions and routes, and that the ranges of different
    fabrics do not overlap. Return findings of pass and of each fault.

    :param nodes: names of the nodes of the inventory
    """
    findings: list[Finding] = []
    for index, fabric in enumerate(intent.fabrics):
        findings += run_rule(_check_fabric, fabric, f"rdma_fabrics[{index}].ipam", nodes)
    return tuple(map(_add_rerun, (*findings, *_check_disjoint(intent))))


def _add_rerun(finding: Finding) -> Finding:
    """Return a finding with the instruction to run stage validate again at the end of its remedy. A finding without a
    remedy is returned unchanged."""
    if not finding.remedy or "run stage" in finding.remedy:
        return finding
    return dataclasses.replace(finding, remedy=f"{finding.remedy.rstrip('.')}. Then run stage validate again.")


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
    """Return the ipam settings that exclude an address from pods, such as ``exclude 10.0.0.0/28; gateway 10.0.0.1``.
    The text is empty if a pod may have the address, if the address is outside of the range, or if the range is invalid.

    :param address: address of a pod on the network of the fabric; None if unknown
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


def describe_need(fabric: Fabric, nodes: int) -> str:
    """Return the number of required addresses with its calculation, as text for a finding.

    :param nodes: number of nodes
    """
    return f"{nodes * count_pods_on_a_node(fabric)} addresses: {nodes} nodes x {_describe_addresses_per_node(fabric)}"


def _describe_addresses_per_node(fabric: Fabric) -> str:
    """Return as text how many addresses the pods of one node need, such as ``2 HCAs x 8 VFs`` or ``63 pods``."""
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
    """Yield a failed finding for each key of an ipam mapping that contradicts another key. If there is none, yield a
    failed finding on an invalid range.

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
    """Yield a failed finding if the gateway is not a valid IP address. The range is not used, since it may be invalid.

    :param path: path of the ipam mapping in the intent
    """
    if ipam.gateway is not None and not is_address(ipam.gateway):
        remedy = "Correct the gateway, or remove it: RDMA traffic in one subnet needs no gateway."
        yield _report_bad(
            "validate.gateway",
            f"{path}.gateway",
            f"'{ipam.gateway}'",
            "an IP address in the range",
            "The value is not an IP address, so pods cannot reach the gateway.",
            remedy,
        )


def _report_exclusions_alone(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a failed finding for each entry of ``exclude`` that is not a valid network. The range is not used, since it
    may be invalid.

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
    """Yield a failed finding for each route whose destination is not a valid network. The range is not used, since it
    may be invalid.

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
    """Check that the range of a fabric has enough addresses for the pods of all nodes, and that its gateway and its
    routes fit the range.

    :param path: path of the ipam mapping in the intent
    :param nodes: names of the nodes of the inventory
    """
    pool = find_pool(ipam)
    findings = [
        build_pass("validate.ipam", path, f"{ipam.type} {pool.network}", f"keys and values that {ipam.type} accepts")
    ]
    if isinstance(pool, Blocks):
        findings += run_rule(_check_pool_blocks, fabric, pool, path, max(1, len(nodes)))
    else:
        findings += run_rule(_check_pool_capacity, fabric, pool, path, max(1, len(nodes)))
        findings += _check_gateway(ipam, pool, path)
    return findings + _check_routes(ipam, pool.network, path)


def _check_keys(ipam: Ipam, path: str) -> list[Finding]:
    """Return a failed finding for each key of an ipam mapping that its IPAM plugin, or the kind of its nv-ipam pool,
    does not accept.

    :param path: path of the mapping in the intent
    """
    pool = ipam.pool or NvIpamPool("")
    whereabouts, blocks, networks = (
        ipam.type == "whereabouts",
        *(ipam.pool is not None and pool.kind == kind for kind in ("IPPool", "CIDRPool")),
    )
    prefix = "pool.per_node_network_prefix"
    wrong: tuple[tuple[bool, str, str, str], ...] = (
        (whereabouts and ipam.pool is not None, "pool", "no pool with whereabouts", "Only nv-ipam has address pools."),
        (
            not whereabouts and ipam.pool is None,
            "pool",
            "a pool with a name (pool.name)",
            "nv-ipam allocates addresses from a pool, and the intent names no pool.",
        ),
        (
            not whereabouts and ipam.range_start is not None,
            "range_start",
            "no range_start with nv-ipam",
            "Only whereabouts supports this key.",
        ),
        (
            not whereabouts and ipam.range_end is not None,
            "range_end",
            "no range_end with nv-ipam",
            "Only whereabouts supports this key.",
        ),
        (
            networks and ipam.gateway is not None,
            "gateway",
            "pool.gateway_index",
            "In a CIDRPool each node has its own gateway.",
        ),
        (
            networks and pool.per_node_network_prefix is None,
            prefix,
            "a prefix, such as 24",
            "nv-ipam divides a CIDRPool into networks with this prefix length.",
        ),
        (
            blocks and pool.per_node_network_prefix is not None,
            prefix,
            "pool.per_node_block_size",
            "nv-ipam divides an IPPool into blocks of addresses.",
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
            "no routes with a pool that stage network does not create",
            "nv-ipam takes the routes from the pool, and stage network does not change this pool.",
        ),
    )
    return [
        _report_bad(
            "validate.ipam",
            f"{path}.{key}",
            "contradicts other keys of ipam",
            expected,
            why,
            f"Correct {path}.{key}. docs/intent.md shows the keys of both ipam types.",
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
    subject, measured, expected = f"{path}.range", f"{pool.capacity} addresses", describe_need(fabric, nodes)
    if pool.capacity < needed:
        why = (
            "Each pod takes one address. Pods without an address wait forever with the error 'Could not allocate IP in"
            " range'."
        )
        remedy = (
            "Enlarge range (or range_start and range_end), or reduce"
            f" {'virtual_functions' if find_traits(fabric).functions else 'pods_per_node'}."
        )
        return _report_bad("validate.addresses", subject, measured, expected, why, remedy)
    if pool.capacity < needed + count_needed_on_a_node(fabric):
        why = (
            "The addresses suffice until a node fails. whereabouts then keeps the addresses of the pods of that node"
            f" until its nightly reconciler runs, and the replacement pods need {count_needed_on_a_node(fabric)} more"
            " addresses."
        )
        return Finding(
            "validate.addresses",
            subject,
            WARN,
            measured,
            f"{expected}, and {count_needed_on_a_node(fabric)} spare addresses for the pods of one node",
            why,
            "Enlarge range.",
        )
    return build_pass("validate.addresses", subject, measured, expected)


def _check_blocks(fabric: Fabric, pool: Blocks, path: str, nodes: int) -> Finding:
    """Check that nv-ipam can give each node a share of the pool, and that the smallest share has an address for each VF
    or pod of a node.

    :param pool: nv-ipam pool of the fabric
    :param path: path of the ipam mapping in the intent
    :param nodes: number of nodes
    """
    key = "per_node_block_size" if fabric.pool is None or fabric.pool.kind == "IPPool" else "per_node_network_prefix"
    served, poorest = pool.share(nodes)
    needed = count_needed_on_a_node(fabric)
    if served < nodes:
        why = (
            "nv-ipam gives each node its own share of the pool. The last nodes get no share, and their pods get no"
            " address."
        )
        remedy = f"Enlarge range, or make the shares smaller ({path}.pool.{key}). Each share needs {needed} addresses."
        measured = f"{served} shares of {pool.size} addresses in {pool.network}"
        return _report_bad(
            "validate.addresses", f"{path}.range", measured, f"{nodes} shares, one for each node", why, remedy
        )
    if poorest < needed:
        why = (
            "Each pod takes one address from the share of its node, so the last pods of a node would get no address."
            " The gateway and the exclusions reduce the share."
        )
        expected = f"{needed} addresses in each share: {_describe_addresses_per_node(fabric)}"
        return _report_bad(
            "validate.addresses",
            f"{path}.pool.{key}",
            f"{poorest} addresses in the smallest share",
            expected,
            why,
            "Change this key so that each share is larger.",
        )
    return build_pass(
        "validate.addresses",
        f"{path}.range",
        f"{nodes} shares, {poorest} addresses in the smallest",
        f"{nodes} shares, at least {needed} addresses in the smallest",
    )


def _check_gateway(ipam: Ipam, pool: Pool, path: str) -> list[Finding]:
    if ipam.gateway is None:
        return []
    if not pool.on_network(ipam.gateway):
        why = "A pod cannot reach a gateway outside its own network."
        remedy = "Correct the gateway, or remove it: RDMA traffic in one subnet needs no gateway."
        return [
            _report_bad(
                "validate.gateway", f"{path}.gateway", f"'{ipam.gateway}'", f"an address in {pool.network}", why, remedy
            )
        ]
    # whereabouts itself reserves none; pool_of and the renderer exclude it
    return [
        build_pass(
            "validate.gateway", f"{path}.gateway", ipam.gateway, f"an address in {pool.network} that pods do not get"
        )
    ]


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
            why = "A route to a network of a different IP version cannot use this network."
            findings.append(
                _report_bad(
                    "validate.routes",
                    f"{subject}.dst",
                    str(target),
                    f"IPv{network.version}",
                    why,
                    "Correct dst, or remove the route.",
                )
            )
        elif target.prefixlen == 0:
            why = (
                "This is a default route over the secondary network, and the pod already has a default route over the"
                " cluster network. Traffic to the API server, DNS and external destinations could leave over a network"
                " that cannot carry it."
            )
            remedy = (
                "Remove the route. To reach other networks of the fabric, add a route to each of them, for example"
                " 100.101.0.0/16."
            )
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
            why = "nv-ipam sends all routes through the gateway of its pool."
            expected = "no gw, and a value for gateway (IPPool) or pool.gateway_index (CIDRPool)"
            return _report_bad(
                "validate.routes",
                subject,
                f"gw {way}",
                expected,
                why,
                "Remove gw, and set gateway (IPPool) or pool.gateway_index (CIDRPool).",
            )
        return build_pass("validate.routes", subject, str(target), "a route through the gateway of the pool")
    over = way if way is not None else ipam.gateway
    if over is None or not parse_range(ipam.range).on_network(over):
        why = "Without a gateway on its own network, a pod cannot reach the destination of the route."
        return _report_bad(
            "validate.routes",
            f"{subject}.gw",
            f"'{over}'" if over else "none",
            f"an address in {network}",
            why,
            "Set gw of the route, or gateway of ipam.",
        )
    return build_pass("validate.routes", subject, f"{target} via {over}", f"a gateway in {network}")


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
                why = (
                    "A pod on both fabrics would have two routes to the same addresses, and could send over the wrong"
                    " fabric."
                )
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
        build_pass(
            "validate.disjoint_ranges",
            "rdma_fabrics",
            f"{len(pools)} networks without overlap",
            "no overlap between the networks",
        ),
    )
