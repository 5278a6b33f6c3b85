# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage validate: check that the addresses of each fabric suffice and do not contradict each other. Check ids:
``validate.*``. The checks of routes are in routes.py, and those that need data from the cluster are in in_use.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.load_exactly import Unread
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.networks import Ipam, NvIpamPool
from ..._model.intent.profiles import find_traits
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from ..._parse.kubernetes.networks.addresses import Network, Pool, RangeError, is_address, parse_network, parse_range
from ..._parse.kubernetes.networks.nv_ipam import Blocks
from .pools import count_needed_on_a_node, describe_addresses_per_node, describe_need, find_pool
from .routes import check_routes, report_routes_alone

Nodes = typing.Sequence[str]


def check(intent: Intent, nodes: Nodes) -> tuple[Finding, ...]:
    """Check the address range of each fabric, its gateway, exclusions and routes, and that the ranges of different
    fabrics do not overlap. Return a finding for each check: passed, or failed with the reason.

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


def _report_bad(check_id: str, subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    again = remedy if "run stage" in remedy else f"{remedy.rstrip('.')}. Then run stage validate again."
    return Finding(check_id, subject, FAIL, measured, expected, why, again)


def _check_fabric(fabric: Fabric, path: str, nodes: Nodes) -> typing.Iterator[Finding]:
    """Check the addresses of a fabric: its pool, gateway, exclusions and routes. Yield nothing for a fabric without
    ``ipam``.

    :param path: path of the settings in the intent, for the subjects of findings
    """
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
                (_report_gateway_alone, _report_exclusions_alone, report_routes_alone), fabric.ipam, path
            )
            if finding.subject not in places
        )
        return
    try:
        findings = _check_addresses(fabric, fabric.ipam, path, nodes)
    except Unread:
        # what is not known is part of the arithmetic
        findings = run_rules((_report_gateway_alone, _report_exclusions_alone, report_routes_alone), fabric.ipam, path)
    yield from findings


def _check_pool(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a failed finding for each key of an ipam mapping that contradicts another key. If no key does, yield a
    failed finding if the range is invalid.

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
        remedy = (
            f"Set {path}.gateway to an address of the range, or remove it: RDMA traffic in one subnet needs no gateway."
        )
        yield _report_bad(
            "validate.gateway",
            f"{path}.gateway",
            f"'{ipam.gateway}'",
            f"an IP address in the range{f' {ipam.range}' if ipam.range else ''}",
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
    return findings + check_routes(ipam, pool.network, path)


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
            f"{'Remove' if expected.startswith('no ') else 'Replace'} {path}.{key} as 'expected' shows."
            " docs/intent.md shows the keys of both ipam types.",
        )
        for is_wrong, key, expected, why in wrong
        if is_wrong
    ]


def _check_pool_blocks(fabric: Fabric, pool: Blocks, path: str, nodes: int) -> typing.Iterator[Finding]:
    yield _check_blocks(fabric, pool, path, nodes)


def _check_pool_capacity(fabric: Fabric, pool: Pool, path: str, nodes: int) -> typing.Iterator[Finding]:
    yield _check_capacity(fabric, pool, path, nodes)


def _check_capacity(fabric: Fabric, pool: Pool, path: str, nodes: int) -> Finding:
    """Check that a pool has an address for each pod of all nodes. Without spare addresses for the pods of one node, the
    finding is a warning.

    :param path: path of the settings in the intent
    :param nodes: number of nodes
    """
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
            f"{needed + count_needed_on_a_node(fabric)} addresses: {expected}, and"
            f" {count_needed_on_a_node(fabric)} spare addresses for the pods of one node",
            why,
            f"Enlarge {subject} by at least {needed + count_needed_on_a_node(fabric) - pool.capacity} addresses.",
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
        expected = f"{needed} addresses in each share: {describe_addresses_per_node(fabric)}"
        return _report_bad(
            "validate.addresses",
            f"{path}.pool.{key}",
            f"{poorest} addresses in the smallest share",
            expected,
            why,
            f"Set {path}.pool.{key} so that each share has at least {needed} addresses for pods.",
        )
    return build_pass(
        "validate.addresses",
        f"{path}.range",
        f"{nodes} shares, {poorest} addresses in the smallest",
        f"{nodes} shares, at least {needed} addresses in the smallest",
    )


def _check_gateway(ipam: Ipam, pool: Pool, path: str) -> list[Finding]:
    """Check that the gateway of a pool is on the network of its pods. Return no finding without a gateway.

    :param path: path of the settings in the intent
    """
    if ipam.gateway is None:
        return []
    if not pool.on_network(ipam.gateway):
        why = "A pod cannot reach a gateway outside its own network."
        remedy = (
            f"Set {path}.gateway to an address in {pool.network}, or remove it: RDMA traffic in one subnet needs no"
            " gateway."
        )
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


def _check_disjoint(intent: Intent) -> tuple[Finding, ...]:
    """Check that the networks of no two fabrics overlap. Ranges that cannot be read are left out, because they have
    findings of their own.
    """
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
                        f"Set {path} or {other_path} to a network of its own.",
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
