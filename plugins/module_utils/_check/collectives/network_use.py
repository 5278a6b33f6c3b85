# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the communicators of a run span the nodes of the test, and that its hosts use the network and all rails.
Check ids: ``collectives.*``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.job.nccl import NcclCommunicator, NcclLog
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from ..job.log.ranks import spell_numbers
from .channel_verdicts import (
    NEED_WHOLE_LOG,
    RequiredProof,
    list_hcas,
)


def check_nodes(communicator: NcclCommunicator, wanted: RequiredProof) -> Finding:
    """Return the finding that compares the number of nodes of a communicator with that of the test.

    :param wanted: properties that the log must show
    """
    subject, nodes, expected = (
        f"communicator {communicator.name}",
        count_nodes(communicator),
        count_of(wanted.nodes, "node"),
    )
    if nodes == wanted.nodes:
        return build_pass("collectives.nodes", subject, count_of(nodes, "node"), expected)
    why = (
        "NCCL's communicator has a different number of nodes than the group of this test, so its bandwidth cannot be"
        " compared with the floor of the group. NCCL counts ranks with the same host ID as one node. A possible cause"
        " is the variable NCCL_HOSTID, which replaces the host ID of a pod and which this check does not read."
    )
    return Finding(
        "collectives.nodes",
        subject,
        FAIL,
        count_of(nodes, "node"),
        expected,
        why,
        (
            "Run podman run --rm --entrypoint env IMAGE, with the image in rdma_cluster.collectives.image. If the"
            " output contains NCCL_HOSTID, remove this variable from the image. Also remove it from /etc/nccl.conf in"
            " the image. Then run stage collectives again."
        ),
    )


def count_nodes(communicator: NcclCommunicator) -> int:
    """Return the number of nodes that a communicator spans: the number that its ranks report, or the number of their
    hosts if that is larger.
    """
    return max([rank.nodes or 0 for rank in communicator.ranks] + [len({rank.host for rank in communicator.ranks})])


def report_leaving(communicator: NcclCommunicator) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` on the channels on which, according to the log, a node sends nothing over
    the network. Yield nothing for a communicator on a single node.

    :param communicator: communicator of the run with the routes of its ranks
    """
    nodes, hosts = count_nodes(communicator), {rank.host for rank in communicator.ranks}
    if nodes < 2:
        return
    leaves: dict[int, list[str]] = {}
    for rank in communicator.ranks:
        over = {
            channel
            for route in rank.routes
            if route.transport in ("NET", "COLLNET") and route.direction == "send"
            for channel in route.channels
        }
        for channel in over:
            leaves.setdefault(channel, []).append(rank.host)
    channels = range(max((rank.channels or 0 for rank in communicator.ranks), default=0))
    within = [
        channel for channel in channels if len(leaves.get(channel, ())) < nodes or not hosts <= set(leaves[channel])
    ]
    if within:
        why = (
            f"NCCL's log has no connection over the network from each node for channel {spell_numbers(within)}: lines"
            " of the log are missing, or the channel uses another transport."
        )
        measured = f"{len(channels) - len(within)} of {len(channels)} channels leave each node over the network"
        yield Finding(
            "collectives.network",
            f"communicator {communicator.name}",
            UNKNOWN,
            measured,
            f"{len(channels)} of {len(channels)} channels leave each node over the network",
            why,
            NEED_WHOLE_LOG,
        )


def check_rails_used(log: NcclLog, wanted: RequiredProof) -> typing.Iterator[Finding]:
    """Check for each host that its processes use the HCAs of all rails of the run. Yield one finding for each host.

    :param wanted: properties that the log must show
    """
    processes = {(process.host, process.pid): process for process in log.processes}
    used: dict[str, dict[str, None]] = {}
    for communicator in log.communicators:
        for rank in communicator.ranks:
            process = processes.get((rank.host, rank.pid))
            over = [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]
            used.setdefault(rank.host, {}).update(
                dict.fromkeys(name for route in over if process for name in list_hcas(route, process))
            )
    expected = f"rail {spell_numbers(wanted.rails)} of each host"
    for host, names in used.items():
        rails = wanted.hcas.get(host, {})
        seen = {rails[name] for name in names if rails.get(name) is not None}
        idle = [rail for rail in wanted.rails if rail not in seen]
        numbers = sorted(rail for rail in seen if rail is not None)
        measured = f"rail {spell_numbers(numbers)}" if numbers else "no rail"
        unknown = [name for name in names if name in rails and rails[name] is None]
        if not idle:
            yield build_pass("collectives.rails", host, measured, expected)
        elif unknown or not names or host not in wanted.hcas:
            why = (
                f"The rail of {', '.join(unknown or names)} is unknown."
                if names
                else "The log does not report an HCA for the channels of this host."
            )
            yield Finding(
                "collectives.rails",
                host,
                UNKNOWN,
                measured,
                expected,
                why,
                (
                    f"Follow the remedies of the findings fabric.hca and collectives.way of {host}, then run"
                    " stages fabric and collectives again."
                ),
            )
        else:
            why = (
                f"No channel uses rail {spell_numbers(idle)}. Possible causes: NCCL_IB_HCA excludes the HCA of the"
                " rail, its port is down, or no GPU of the test is near the HCA."
            )
            yield Finding(
                "collectives.rails",
                host,
                FAIL,
                measured,
                expected,
                why,
                (
                    f"Check that NCCL_IB_HCA in the image (environment, /etc/nccl.conf) does not exclude the HCA of"
                    f" rail {spell_numbers(idle)}, that its port is active (finding discover.port of this node), and"
                    f" that rdma_cluster.collectives.gpus_per_node is at least {len(wanted.rails)}. Correct what"
                    " differs, then run stage collectives again."
                ),
            )
