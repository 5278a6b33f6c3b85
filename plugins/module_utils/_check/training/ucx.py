# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the transports and HCAs of UCX endpoints, for jobs that send over UCX, such as those of NIXL. Check id:
``training.ucx``.
"""

from __future__ import annotations

import typing

from ..._model.base.text import folded
from ..._model.job.nccl import NcclLog
from ..._model.job.ucx import UcxEndpoint
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

_CHECK, _EXPECTED = "training.ucx", "RDMA alone between hosts, by the HCAs of the pod"
_SHOW = (
    "Run the job with UCX_LOG_LEVEL=info, which writes the transports of each endpoint, and give the log of each pod."
)
_TCP = (
    "In the pod, ucx_info -d must show rc or dc on an HCA, and ulimit -l enough. Then take UCX_TLS and UCX_NET_DEVICES"
    " out of the job, or name RDMA transports and the HCAs of the pod in them."
)
_WITHOUT_NVLINK = (
    "Run the job once with UCX_TLS=^cuda_ipc, and give the log of that run: it shows what the network does."
)
#: names in one text, at most
_MOST = 8


def judge_endpoints(
    log: NcclLog,
    allowed: typing.Mapping[str, typing.Optional[typing.AbstractSet[str]]],
    expected: typing.Iterable[str] = (),
) -> typing.Iterator[Finding]:
    """Return a finding on each host with endpoints, and on each that should have some; one that is unknown where there
    is none.

    :param allowed: RDMA devices that the pod of a host got; None where that is not known
    :param expected: hosts of the pods of the job that are on the network
    """
    hosts: dict[str, list[UcxEndpoint]] = {}
    for endpoint in log.endpoints:
        hosts.setdefault(endpoint.host, []).append(endpoint)
    if not hosts:
        why = "No line of UCX in the log tells over which transports its endpoints send."
        yield Finding(_CHECK, "job", UNKNOWN, f"{log.lines} lines, none of an endpoint", _EXPECTED, why, _SHOW)
    if log.more_endpoints:
        why = (
            "The log has lines of endpoints that are torn or cut off, or more kinds of them than are kept, and of these"
            " nothing is known."
        )
        measured = f"{log.more_endpoints} more lines of endpoints"
        remedy = "Give one file a pod, whole, and the log of fewer pods where there are very many."
        yield Finding(_CHECK, "other endpoints", UNKNOWN, measured, _EXPECTED, why, remedy)
    for host in dict.fromkeys(expected) if hosts else ():
        if host not in hosts:
            why = "The pod of this host is of the same job and on the network, and no line of an endpoint is of it."
            yield Finding(_CHECK, host, UNKNOWN, "no line of an endpoint", _EXPECTED, why, _SHOW)
    for host, endpoints in hosts.items():
        yield _judge_host(host, [item for item in endpoints if item.over_network], allowed.get(host))


def _judge_host(
    host: str, endpoints: typing.Sequence[UcxEndpoint], allowed: typing.Optional[typing.AbstractSet[str]]
) -> Finding:
    lanes = list(dict.fromkeys(lane for item in endpoints for lane in (*item.rdma, *item.tcp, *item.nvlink)))
    measured = folded(lanes, _MOST) if lanes else "no transport of a network"
    bare = [item for item in endpoints if not item.rdma and not item.tcp]
    if bare and all(item.nvlink for item in bare):
        why = (
            f"{sum(item.count for item in bare)} endpoints to other hosts send by NVLink between nodes (cuda_ipc)"
            " alone, so nothing is proven of the network."
        )
        return Finding(_CHECK, host, UNKNOWN, measured, _EXPECTED, why, _WITHOUT_NVLINK)
    if not endpoints or bare:
        why = (
            "None of its endpoints goes to another host, so nothing is proven of the network."
            if not endpoints
            else "An endpoint to another host shows no transport of a network, so its line is not whole."
        )
        return Finding(_CHECK, host, UNKNOWN, measured, _EXPECTED, why, _SHOW)
    slow = [item for item in endpoints if not item.rdma]
    if slow:
        why = (
            f"{sum(item.count for item in slow)} endpoints to other hosts send over TCP. UCX says so at no other level."
        )
        return Finding(_CHECK, host, FAIL, measured, _EXPECTED, why, _TCP)
    used = list(dict.fromkeys(device for item in endpoints for device in item.devices))
    foreign = [device for device in used if allowed is not None and device not in allowed]
    if foreign:
        why = f"{folded(foreign, _MOST)} is none of the HCAs that the pod got of the fabric."
        remedy = "Name the HCAs of the pod in UCX_NET_DEVICES, or leave it unset where the pod sees its own alone."
        return Finding(_CHECK, host, FAIL, measured, _EXPECTED, why, remedy)
    if any(item.tcp for item in endpoints):
        why = "Endpoints to other hosts have TCP beside RDMA, and large messages may be split over both."
        return Finding(_CHECK, host, WARN, measured, _EXPECTED, why, "Set UCX_TLS=^tcp, or name RDMA transports in it.")
    beside = [item for item in endpoints if item.nvlink]
    if beside and allowed is not None:
        why = (
            f"{sum(item.count for item in beside)} endpoints to other hosts have NVLink between nodes (cuda_ipc) beside"
            " RDMA. Data of GPUs go by NVLink, and the log proves nothing of the network for them."
        )
        return Finding(_CHECK, host, WARN, measured, _EXPECTED, why, _WITHOUT_NVLINK)
    datagrams = [item for item in endpoints if item.sends_datagrams]
    if datagrams and allowed is not None:
        why = (
            f"{sum(item.count for item in datagrams)} endpoints to other hosts send by unreliable datagrams (UD) alone,"
            " in packets of the MTU and by the CPU. UCX takes them where it can't open RC or DC, or where a process has"
            " more peers than UCX_RC_MAX_NUM_EPS."
        )
        remedy = (
            "In the pod, see that ucx_info -d shows rc or dc on the HCA. Then set UCX_TLS to rc,cuda,sm,self, or to dc"
            " in place of rc on HCAs of NVIDIA with many peers."
        )
        return Finding(_CHECK, host, WARN, measured, _EXPECTED, why, remedy)
    if allowed is None:
        why = "It is not known which HCAs the pod of this host got, so they are not held against those of the log."
        remedy = "Set training_namespace, while the pods of the job are still there."
        return Finding(_CHECK, host, UNKNOWN, measured, _EXPECTED, why, remedy)
    return ok(_CHECK, host, measured, _EXPECTED)
