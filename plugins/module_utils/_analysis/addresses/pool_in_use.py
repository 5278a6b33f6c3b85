# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the pool of nv-ipam in the cluster from which a fabric takes its addresses. Check id:
``network.address_pool``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.networks import NvIpamPool
from ..._model.kubernetes.addresses import AddressFacts, SharedPool, UnreadPool, UsedNetwork
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..._parse.kubernetes.networks.nv_ipam import Blocks
from .overlaps import is_pool

#: networks, pods or nodes that a finding names
SHOWN = 5


def check_pool(
    fabric: Fabric,
    pool: Blocks,
    nodes: typing.Sequence[str],
    seen: AddressFacts,
    others: typing.Iterable[UsedNetwork] = (),
) -> Finding:
    """Check for nv-ipam that the pool exists, that it matches the intent, and that each node has a share of it.

    :param pool: nv-ipam pool of the fabric
    :param seen: addresses that are in use in the cluster
    :param others: networks in use, without those of the intent
    """
    wanted = fabric.pool or NvIpamPool("")
    name = f"{wanted.kind} {wanted.namespace}/{wanted.name}"
    share = wanted.per_node_block_size if wanted.kind == "IPPool" else wanted.per_node_network_prefix
    expected = f"{name}: {pool.network}, {_format_node_share(wanted.kind, share)} per node"
    found = next((item for item in seen.pools if is_pool(item, wanted)), None)
    broken = [item for item in seen.unread_pools if is_pool(item, wanted)]
    if found is None and broken:
        return _build_broken(fabric, broken[0], expected)
    if found is None:
        if wanted.create:
            return build_pass("network.address_pool", fabric.name, "does not exist yet", expected)
        why = (
            "The pool does not exist, and stage network does not create it (pool.create is false). Pods would get no"
            " address."
        )
        return Finding(
            "network.address_pool",
            fabric.name,
            FAIL,
            "pool absent",
            expected,
            why,
            "Create the pool, correct pool.name and pool.namespace, or set pool.create: true. Then run stage network"
            " again.",
        )
    measured = (
        f"{found.network or 'no network'}, {_format_node_share(found.kind, found.share)} per node, address blocks for"
        f" {count_of(len(found.nodes), 'node')}"
    )
    if (found.network, found.share) != (str(pool.network), share):
        users = [
            f"NetworkAttachmentDefinition {item.owner}"
            for item in others
            if (item.kind, item.ipam, item.network) == ("attachment", "nv-ipam", found.network)
        ]
        users += [f"Pod {name}" for name in found.pods]
        return _check_other(fabric, found, users, (measured, expected), wanted.create)
    missing = sorted(set(nodes) - set(found.nodes))
    if not missing:
        return build_pass("network.address_pool", fabric.name, measured, expected)
    why = (
        f"nv-ipam has not given an address block to these nodes, so pods on them get no address:"
        f" {join_first(missing, SHOWN)}."
    )
    remedy = (
        f"Read the pool: kubectl -n {found.namespace} get {found.kind.lower()}s.nv-ipam.nvidia.com {found.name} -o"
        " yaml. If its nodeSelector excludes the nodes, correct it. If status.allocations uses the whole range, enlarge"
        " the range. Otherwise read the log: kubectl -n nvidia-network-operator logs deployment/nv-ipam-controller."
        " Then run stage network again."
    )
    return Finding(
        "network.address_pool",
        fabric.name,
        FAIL,
        f"{measured}; {count_of(len(missing), 'node')} without an address block",
        f"{expected}; an address block for each node",
        why,
        remedy,
    )


def _build_broken(fabric: Fabric, broken: UnreadPool, expected: str) -> Finding:
    """Return the finding about a pool of nv-ipam in the cluster that could not be read.

    :param broken: the pool, with the reason
    :param expected: pool that the intent requires, in words
    """
    return Finding(
        "network.address_pool",
        fabric.name,
        UNKNOWN,
        "not read",
        expected,
        f"The pool in the cluster is invalid: {format_clause(broken.why)}.",
        f"Run kubectl -n {broken.namespace} edit {broken.kind.lower()}s.nv-ipam.nvidia.com {broken.name}, and"
        " correct the field that the error under 'why' names. Then run stage network again.",
    )


def _check_other(
    fabric: Fabric, found: SharedPool, users: typing.Sequence[str], texts: tuple[str, str], create: bool
) -> Finding:
    """Return the finding about a pool of nv-ipam in the cluster that differs from the intent: a failure if the run does
    not create pools, or if nodes have addresses of it and it has users. Otherwise a warning if nodes have addresses of
    it.

    :param found: the pool in the cluster
    :param users: pods with addresses of the pool, and networks of others that take their addresses from it
    :param texts: description of that pool, and the pool that the intent requires, in words
    :param create: whether the run creates and changes the pool
    """
    measured, expected = texts
    if not create:
        why = (
            "The pool in the cluster differs from the intent, so the address count of the intent does not apply to it."
        )
        return Finding(
            "network.address_pool",
            fabric.name,
            FAIL,
            measured,
            expected,
            why,
            "Correct range and pool in the intent, or change the pool in the cluster. Then run stage network again.",
        )
    if not found.nodes:
        return build_pass("network.address_pool", fabric.name, f"{measured}; will be changed", expected)
    why = (
        "The run changes the pool to the values of the intent. nv-ipam then discards the address blocks of all nodes."
        " Running pods keep their addresses, but nv-ipam may give the same addresses to other pods."
    )
    if users:
        return Finding(
            "network.address_pool",
            fabric.name,
            FAIL,
            f"{measured}; used by {join_first(users, SHOWN)}",
            expected,
            why,
            "Stop these pods and remove these networks, or set a new pool.name. If duplicate addresses are acceptable,"
            f" add a waiver for network.address_pool with the subject '{fabric.name}'. Then run stage network again.",
        )
    return Finding(
        "network.address_pool",
        fabric.name,
        WARN,
        measured,
        expected,
        why,
        "Stop the pods of this network, or set a new pool.name. Then run stage network again.",
    )


def _format_node_share(kind: str, share: typing.Optional[int]) -> str:
    return f"{share} addresses" if kind == "IPPool" else f"a /{share}"
