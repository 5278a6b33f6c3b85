# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the transports and HCAs of UCX endpoints, for jobs that send over UCX, such as those of NIXL. Check id:
``training.ucx``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.job.nccl import NcclLog
from ..._model.job.ucx import UcxEndpoint
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

_CHECK, _EXPECTED = "training.ucx", "only RDMA between hosts, over the HCAs of the pod"
_SHOW = (
    "Run the job with UCX_LOG_LEVEL=info, so that UCX logs the transports of each endpoint, and set"
    " training_logs to the log of each pod. Then run stage training again."
)
_TCP = (
    "Remove UCX_TLS and UCX_NET_DEVICES from the job, and run it again. If it still uses TCP, run ucx_info -d in"
    " the pod: if it does not list rc or dc, request the RDMA resource of the network in the pod template. If it"
    " does, raise the memlock limit (ulimit -l in the pod). Then run stage training again with the new logs."
)
_WITHOUT_NVLINK = (
    "Run the job once with UCX_TLS=^cuda_ipc to use only the network, then run stage training again with the log of"
    " that run."
)
#: names in one text, at most
_MOST = 8


def judge_endpoints(
    log: NcclLog,
    allowed: typing.Mapping[str, typing.Optional[typing.AbstractSet[str]]],
    expected: typing.Iterable[str] = (),
) -> typing.Iterator[Finding]:
    """Yield the findings on the UCX endpoints in the log: one on each host that has endpoints, and one on each host
    that should have some. If the log has no endpoints at all, yield a finding of status unknown.

    :param allowed: RDMA devices that the pod of each host got; None if unknown
    :param expected: hosts of the pods of the job that are on the network
    """
    hosts: dict[str, list[UcxEndpoint]] = {}
    for endpoint in log.endpoints:
        hosts.setdefault(endpoint.host, []).append(endpoint)
    if not hosts:
        why = "UCX logs the transports of an endpoint only with UCX_LOG_LEVEL=info, and the log has no such line."
        yield Finding(
            _CHECK, "job", UNKNOWN, f"{count_of(log.lines, 'line')}, none about an endpoint", _EXPECTED, why, _SHOW
        )
    if log.more_endpoints:
        why = (
            "These lines are incomplete, or the log has too many different endpoints to list them all. The transports"
            " of these endpoints were not read."
        )
        measured = f"{count_of(log.more_endpoints, 'further line')} about endpoints"
        remedy = (
            "Set training_logs to one complete file for each pod. If there are very many pods, use the logs of"
            " fewer pods. Then run stage training again."
        )
        yield Finding(_CHECK, "other endpoints", UNKNOWN, measured, _EXPECTED, why, remedy)
    for host in dict.fromkeys(expected) if hosts else ():
        if host not in hosts:
            why = (
                f"The pod {host} belongs to the job of this log and has an interface on a fabric of the intent, so UCX"
                " opens endpoints in it. UCX logs them only with UCX_LOG_LEVEL=info, or the log of the pod is not in"
                " training_logs."
            )
            yield Finding(_CHECK, host, UNKNOWN, "no line about an endpoint", _EXPECTED, why, _SHOW)
    for host, endpoints in hosts.items():
        yield _judge_host(host, [item for item in endpoints if item.over_network], allowed.get(host))


def _count(endpoints: typing.Iterable[UcxEndpoint], one: str, several: str) -> str:
    """Return the number of endpoints to other hosts as text, such as ``1 endpoint to other hosts uses``.

    :param endpoints: the endpoints, each with its number of log lines
    :param one: verb in the singular, such as ``uses``
    :param several: verb in the plural, such as ``use``
    """
    number = sum(item.count for item in endpoints)
    return count_of(number, f"endpoint to other hosts {one}", f"endpoints to other hosts {several}")


def _judge_host(
    host: str, endpoints: typing.Sequence[UcxEndpoint], allowed: typing.Optional[typing.AbstractSet[str]]
) -> Finding:
    lanes = list(dict.fromkeys(lane for item in endpoints for lane in (*item.rdma, *item.tcp, *item.nvlink)))
    measured = join_first(lanes, _MOST) if lanes else "no network transport"
    bare = [item for item in endpoints if not item.rdma and not item.tcp]
    if bare and all(item.nvlink for item in bare):
        why = f"{_count(bare, 'uses', 'use')} only NVLink between nodes (cuda_ipc), so the network was not tested."
        return Finding(_CHECK, host, UNKNOWN, measured, _EXPECTED, why, _WITHOUT_NVLINK)
    if not endpoints or bare:
        if not endpoints:
            why = "None of the endpoints of this host leads to another host, so the job did not use the network."
            remedy = "Run the job on at least two nodes, then run stage training again with the new logs."
            return Finding(_CHECK, host, UNKNOWN, "0 endpoints to other hosts", _EXPECTED, why, remedy)
        why = "An endpoint to another host shows no network transport, so its line in the log is incomplete."
        return Finding(_CHECK, host, UNKNOWN, measured, _EXPECTED, why, _SHOW)
    slow = [item for item in endpoints if not item.rdma]
    if slow:
        why = f"{_count(slow, 'sends', 'send')} over TCP. UCX reports this only at log level info."
        return Finding(_CHECK, host, FAIL, measured, _EXPECTED, why, _TCP)
    used = list(dict.fromkeys(device for item in endpoints for device in item.devices))
    foreign = [device for device in used if allowed is not None and device not in allowed]
    if foreign:
        why = f"The pod did not get {join_first(foreign, _MOST)} as an HCA of the fabric."
        remedy = (
            "Set UCX_NET_DEVICES to the HCAs of the pod, or do not set it if the pod sees only its own HCAs. Then run"
            " stage training again with new logs."
        )
        return Finding(_CHECK, host, FAIL, measured, _EXPECTED, why, remedy)
    idle = sorted((allowed or set()) - set(used))
    if any(item.tcp for item in endpoints) and allowed is not None:
        why = "Endpoints to other hosts use TCP in addition to RDMA, and UCX may split large messages over both."
        remedy = (
            "Set UCX_TLS=^tcp in the job, or set UCX_TLS to RDMA transports. Then run stage training again with new"
            " logs."
        )
        if idle:
            of_idle = _report_idle(host, used, idle)
            measured = f"{measured}; {of_idle.measured}"
            why, remedy = f"{why} {of_idle.why}", f"{remedy} {of_idle.remedy}"
        return Finding(_CHECK, host, WARN, measured, _EXPECTED, why, remedy)
    beside = [item for item in endpoints if item.nvlink]
    if beside and allowed is not None:
        why = (
            f"{_count(beside, 'uses', 'use')} NVLink between nodes (cuda_ipc) in"
            " addition to RDMA. The data of GPUs uses NVLink, so the log does not verify the network for this data."
        )
        return Finding(_CHECK, host, WARN, measured, _EXPECTED, why, _WITHOUT_NVLINK)
    datagrams = [item for item in endpoints if item.sends_datagrams]
    if datagrams and allowed is not None:
        why = (
            f"{_count(datagrams, 'uses', 'use')} only unreliable datagrams (UD). The"
            " CPU then sends the data in packets of the MTU. UCX uses UD if it cannot open RC or DC, or if a process"
            " has more peers than UCX_RC_MAX_NUM_EPS."
        )
        remedy = (
            "Check in the pod that ucx_info -d shows rc or dc on the HCA. Then set UCX_TLS in the job to"
            " rc,cuda,sm,self. On NVIDIA HCAs with many peers, use dc instead of rc. Then run stage training again with"
            " new logs."
        )
        return Finding(_CHECK, host, WARN, measured, _EXPECTED, why, remedy)
    if allowed is None:
        why = (
            "The run read no pod with this host name and its RDMA devices, so the HCAs of the log could not be compared"
            " with those of the pod."
        )
        remedy = (
            f"Set training_namespace to the namespace of the pod {host}, and run stage training again while the"
            f" pod exists. If it is set already, run kubectl get pods -A --field-selector metadata.name={host} -o"
            " yaml: the annotation k8s.v1.cni.cncf.io/network-status must list the devices of the pod."
        )
        return Finding(_CHECK, host, UNKNOWN, f"{measured}; HCAs of the pod not read", _EXPECTED, why, remedy)
    if idle:
        return _report_idle(host, used, idle)
    return build_pass(_CHECK, host, measured, _EXPECTED)


def _report_idle(host: str, used: typing.Sequence[str], idle: typing.Sequence[str]) -> Finding:
    """Return the warning that the endpoints of a host do not use all HCAs of its pod.

    :param used: RDMA devices of the endpoints to other hosts
    :param idle: RDMA devices that the pod got and no endpoint uses
    """
    why = (
        f"No endpoint to another host uses {join_first(idle, _MOST)}, so the log does not prove these HCAs. UCX selects"
        " at most UCX_MAX_RNDV_RAILS HCAs for large messages, 2 by default, and only those in UCX_NET_DEVICES."
    )
    remedy = (
        f"Set UCX_MAX_RNDV_RAILS={len(used) + len(idle)} in the job, or start a process for each GPU with the HCA"
        " beside it in UCX_NET_DEVICES. If UCX_NET_DEVICES names only some HCAs for all processes, remove it. Then run"
        " stage training again with new logs. If the job needs only some of the HCAs, give the pod only these."
    )
    measured = f"{len(used)} of {count_of(len(used) + len(idle), 'HCA')} used: {join_first(used, _MOST)}"
    return Finding(_CHECK, host, WARN, measured, "endpoints over all HCAs of the pod", why, remedy)
