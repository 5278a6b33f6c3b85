# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage training: a job used the HCAs of its pods, all rails of the fabric, and no other network. Check
ids: ``training.*``.

_check/job/log/channels.py judges the log by itself. This check compares it with the intent, the pods and the nodes.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.fleet.hca_locations import number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import Member, resolve_members
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.intent.intent import Fabric, Intent, Training
from ..._model.intent.profiles import attachment_name, carries_rdma, find_traits
from ..._model.job.nccl import NcclLog, NcclProcess, PodFunction, TrainingPod
from ..._model.node.hca import NodeHcas, ObservedHcas
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import FAIL, UNKNOWN, Finding, add_rerun, build_pass
from ..job.log.channels import doubt_files, judge_log, judge_problems, limit_findings, name_hcas, spans_nodes
from ..job.log.sources import leave_out_forged
from . import queue_pairs
from .hcas import FabricDevices, check_hcas, check_rails
from .pods_of_hosts import (
    NO_HOST_NAME,
    find_hosts_on_one_node,
    find_hosts_with_nvlink,
    is_strange,
    report_no_fabric,
    report_no_pod,
    report_one_host,
    report_one_node,
    report_other_job,
    report_several_pods,
    report_silent_pod,
)
from .settings import check_settings
from .ucx import judge_endpoints


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage training is judged, besides the intent.

    :ivar log: answer of nccl_log_info; None if no log was given
    :ivar pods: pods of the job; None if the API server was not queried
    :ivar hcas: HCAs of each node (node_info)
    :ivar subnets: subnet manager of each port of each node (subnet_manager_info)
    :ivar topologies: topology of the fabric (fabric_info), since the leaf determines the rail in a fleet of several
        server models
    :ivar tunings: settings of each node, which may set the traffic class of its HCAs
    """

    log: typing.Optional[NcclLog] = None
    pods: typing.Optional[tuple[TrainingPod, ...]] = None
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    tunings: dict[str, ObservedTuning] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Judge the log of a training job: warnings and errors, the channels of each rank, and for each host that it uses
    the interface, HCAs and rails of the fabric. For jobs over UCX, judge its warnings and its endpoints. Without a log,
    return a single finding.
    """
    wanted = intent.cluster.training
    if facts.log is None:
        return (_report_no_log(wanted),)
    wanted = wanted or Training()
    if wanted.library == "ucx":
        problems = judge_problems(facts.log)
        allowed = _list_allowed(intent, wanted, facts)
        hosts = _list_hosts_of_job(intent, wanted, facts, allowed)
        return _add_stage((*problems, *limit_findings(judge_endpoints(facts.log, allowed, hosts))))
    nvlink = find_hosts_with_nvlink(facts.pods or (), facts.tunings)
    findings = judge_log(facts.log, wanted.ranks, wanted.gpu_direct, nvlink)
    if not facts.log.nccl_lines:
        return _add_stage(findings)
    log, _forged = leave_out_forged(facts.log)
    return _add_stage((*findings, *check_settings(log), *limit_findings(_list_hosts(intent, wanted, facts, log))))


def _add_stage(findings: typing.Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with the instruction to run the job and stage training again at the end of their remedies.
    Checks that stage collectives shares do not name a stage themselves.
    """
    again, with_job = (
        "Then run stage training again with the new log.",
        "Then run the job again, and run stage training",
    )
    return tuple(
        judged
        for finding in findings
        for judged in add_rerun(
            (finding,),
            "training",
            again if "the job again" in finding.remedy else f"{with_job} again with the new log.",
        )
    )


def _list_allowed(
    intent: Intent, wanted: Training, facts: Facts
) -> dict[str, typing.Optional[typing.AbstractSet[str]]]:
    """Return the RDMA devices of the pod of each host with UCX endpoints, by host.

    The value is None for a host whose pod or whose devices are not known.

    :param wanted: properties that the log must prove
    """
    fabrics = [fabric for fabric in intent.fabrics if wanted.fabric in (None, fabric.name) and carries_rdma(fabric)]
    members = _list_members(fabrics, facts)
    found: dict[str, typing.Optional[typing.AbstractSet[str]]] = {}
    for host in dict.fromkeys(endpoint.host for endpoint in (facts.log.endpoints if facts.log is not None else ())):
        pods = {(item.node, item.functions): item for item in facts.pods or () if item.host == host}
        pod = next(iter(pods.values())) if len(pods) == 1 else None
        if pod is None or pod.functions is None:
            found[host] = None
            continue
        node = facts.hcas.get(pod.node)
        gots = [
            _collect_pod_devices(fabric, pod.functions, members.get((fabric.name, pod.node), ()), node)
            for fabric in fabrics
        ]
        known = not any(got.nameless for got in gots)
        found[host] = {device for got in gots for device in got.devices} if known else None
    return found


def _list_hosts_of_job(
    intent: Intent, wanted: Training, facts: Facts, seen: typing.Container[str]
) -> typing.Iterator[str]:
    """Yield the host name of each pod whose job the log contains, if the pod has, or may have, an interface on a fabric
    of the job.

    :param wanted: properties that the log must prove
    :param seen: hosts in the log
    """
    networks = {attachment_name(fabric) for fabric in intent.fabrics if wanted.fabric in (None, fabric.name)}
    jobs = {pod.job for pod in facts.pods or () if pod.host in seen}
    for pod in facts.pods or ():
        mine = pod.functions is None or any(function.network in networks for function in pod.functions)
        if pod.job in jobs and mine:
            yield pod.host


def _list_hosts(intent: Intent, wanted: Training, facts: Facts, log: NcclLog) -> typing.Iterator[Finding]:
    """Check for each host of a log that NCCL used the interface, the HCAs and the rails of the fabric that its pod got,
    and that its queue pairs have the settings of the intent. Report the pods of the job of which the log contains no
    line.

    :param wanted: properties that the log must prove
    :param log: parsed log of NCCL
    """
    several = any(spans_nodes(communicator) for communicator in log.communicators)
    used = _collect_used_devices(log)
    fabrics = [fabric for fabric in intent.fabrics if wanted.fabric in (None, fabric.name) and carries_rdma(fabric)]
    members = _list_members(fabrics, facts)
    ranks = [rank for communicator in log.communicators for rank in communicator.ranks]
    pods: dict[str, list[TrainingPod]] = {}
    for item in facts.pods or ():
        pods.setdefault(item.host, []).append(item)
    over_nvlink = {rank.host for rank in ranks if any(route.via == "MNNVL" for route in rank.routes)}
    by_host: dict[str, list[NcclProcess]] = {}
    for process in log.processes:
        by_host.setdefault(process.host, []).append(process)
    hosts = dict.fromkeys([*by_host, *(rank.host for rank in ranks)])
    on_one_node = find_hosts_on_one_node(log, pods)
    rails = _list_job_rails(fabrics, members, facts, [pod for host in hosts for pod in pods.get(host, ())])
    jobs = collections.Counter(job for host in hosts for job in {item.job for item in pods.get(host, ())})
    for host in hosts:
        doubts = (doubt_files("training.hcas", host, process) for process in by_host.get(host, ()))
        doubt = next((found for found in doubts if found is not None), None)
        if doubt is not None:
            yield doubt
            continue
        yield _check_oob(host, by_host.get(host, []), several)
        if not several:
            yield report_one_host(host)
            continue
        if not fabrics:
            yield report_no_fabric(host)
            continue
        named = pods.get(host, [])
        if len({(item.node, item.functions, item.error) for item in named}) > 1:
            yield report_several_pods(host, named)
            continue
        pod = named[0] if named else None
        if pod is not None and is_strange(pod, jobs):
            every = [item for name in hosts for item in pods.get(name, ())]
            yield report_other_job(host, pod, every)
            continue
        if pod is None or pod.functions is None:
            yield report_no_pod(host, facts.pods is not None, pod)
            continue
        if host in on_one_node:
            yield report_one_node(host, on_one_node[host])
        node = facts.hcas.get(pod.node)
        gots = [
            _collect_pod_devices(fabric, pod.functions, members.get((fabric.name, pod.node), ()), node)
            for fabric in fabrics
        ]
        allowed = {device for got in gots for device in got.devices}
        for fabric, got in zip(fabrics, gots):
            subject, on_host = f"{fabric.name} {host}", used.get(host, {})
            yield check_hcas(subject, got, on_host, allowed, host in over_nvlink)
            of_node = rails.get((fabric.name, pod.node), frozenset())
            yield check_rails(fabric, subject, got, on_host, pod.node, host in over_nvlink, of_node, wanted.interfaces)
        carried = [fabric for fabric, got in zip(fabrics, gots) if got.devices]
        mine = [member.hca for fabric in carried for member in members.get((fabric.name, pod.node), ())]
        vendors = {hca.pci.vendor for hca in mine if hca.pci is not None}
        by_node = _collect_classes(facts.tunings.get(pod.node), {hca.rdma_device for hca in mine})
        sends = bool(used.get(host))
        yield from queue_pairs.check(host, by_host.get(host, []), carried, vendors, by_node, sends)
    # where ranks are missing in the log, training.ranks names them
    whole = all(len(item.ranks) == item.size for item in log.communicators)
    expected = _list_hosts_of_job(intent, wanted, facts, hosts) if several and fabrics and whole else ()
    for host in dict.fromkeys(expected):
        if host not in hosts:
            yield report_silent_pod(host, wanted)


def _report_no_log(wanted: typing.Optional[Training]) -> Finding:
    if wanted is None:
        return build_pass("training.log", "job", "no log", "no verification of a job required")
    why = "rdma_cluster.training is set, so stage training must verify a job, but training_logs names no log."
    return Finding(
        "training.log",
        "job",
        UNKNOWN,
        "no log",
        "the NCCL log of every rank",
        why,
        "Run the job with NCCL_DEBUG=INFO, and set training_logs to its logs. Then run stage training again.",
    )


def _collect_used_devices(log: NcclLog) -> dict[str, dict[str, bool]]:
    """Return the RDMA devices that channels use, by host and then by device.

    The value of a device is True if the log contains its name. It is False if the log contains only its number, which
    then stands for the name.
    """
    names = {
        (process.host, process.pid): {device.index: device.name for device in process.devices}
        for process in log.processes
    }
    found: dict[str, dict[str, bool]] = {}
    for communicator in log.communicators:
        for rank in communicator.ranks:
            for route in rank.routes:
                if route.via == "Socket" or route.transport != "NET":
                    continue
                name = names.get((rank.host, rank.pid), {}).get(-1 if route.device is None else route.device)
                parts = (
                    name_hcas(name)
                    if name
                    else [f"device {'without a number' if route.device is None else route.device}"]
                )
                found.setdefault(rank.host, {}).update(dict.fromkeys(parts, name is not None))
    return found


def _list_members(fabrics: typing.Sequence[Fabric], facts: Facts) -> dict[tuple[str, str], tuple[Member, ...]]:
    """Return the members of each fabric on each node, by fabric and node name."""
    nodes = {name: observed.value for name, observed in facts.hcas.items() if observed.value is not None}
    subnets = {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None}
    fleet = {
        fabric.name: number_by_leaf(resolve_members(fabric, nodes, subnets), facts.topologies) for fabric in fabrics
    }
    return {
        (fabric, node): members for fabric, membership in fleet.items() for node, members in membership.members.items()
    }


def _list_job_rails(
    fabrics: typing.Sequence[Fabric],
    members: typing.Mapping[tuple[str, str], tuple[Member, ...]],
    facts: Facts,
    pods: typing.Sequence[TrainingPod],
) -> dict[tuple[str, str], frozenset[int]]:
    """Return the rails that all pods of the job on a node got together, by fabric and node name.

    :param members: HCAs of each fabric on each node
    :param pods: pods with the host names of the log
    """
    found: dict[tuple[str, str], frozenset[int]] = {}
    for pod in pods:
        node = facts.hcas.get(pod.node)
        for fabric in fabrics:
            key = (fabric.name, pod.node)
            got = _collect_pod_devices(fabric, pod.functions or (), members.get(key, ()), node)
            found[key] = found.get(key, frozenset()) | got.rails
    return found


def _collect_pod_devices(
    fabric: Fabric,
    functions: typing.Sequence[PodFunction],
    members: typing.Sequence[Member],
    observed: typing.Optional[ObservedHcas],
) -> FabricDevices:
    """Return the RDMA devices of a fabric that the pod got, with their rails. The names come from the annotation of
    multus, or from sysfs of the node.

    :param functions: network devices of the pod
    :param members: HCAs of the fabric on the node
    :param observed: HCAs that node_info read on the node; None if the node was not queried
    """
    mine = [function for function in functions if function.network == attachment_name(fabric)]
    if find_traits(fabric).shared and mine:
        return FabricDevices({member.hca.rdma_device: member.rail for member in members if member.hca.rdma_device}, ())
    hcas = {hca.pci.address: hca for hca in (observed.value or NodeHcas(())).hcas if hca.pci} if observed else {}
    rails = {member.hca.pci.address: member.rail for member in members if member.hca.pci}
    devices: dict[str, typing.Optional[int]] = {}
    nameless = []
    for function in mine:
        hca = hcas.get(function.pci or "")
        device = function.rdma_device or (hca.rdma_device if hca else None)
        if device is None:
            nameless.append(function.interface)
        else:
            devices[device] = rails.get((hca.physical_function if hca else None) or function.pci or "")
    return FabricDevices(devices, tuple(nameless))


def _collect_classes(
    observed: typing.Optional[ObservedTuning], devices: typing.AbstractSet[typing.Optional[str]]
) -> set[str]:
    """Return the traffic classes that a node sets for RDMA devices. The set is empty if none was read.

    :param observed: tuning of the node; None if it was not read
    :param devices: RDMA devices of the node on the fabrics of the job
    """
    rows = observed.value.rows if observed is not None and observed.value is not None else {}
    return {reading.value for reading in rows.get("roce_traffic_class", ()) if devices & set(reading.where)}


def _check_oob(host: str, processes: typing.Sequence[NcclProcess], several: bool) -> Finding:
    seen = sorted({f"{process.oob_interface} {process.oob_address}" for process in processes if process.oob_interface})
    host, expected = host or NO_HOST_NAME, "one interface that reaches the other hosts"
    if not seen:
        why, remedy = (
            "The log lacks the line 'Bootstrap: Using INTERFACE:ADDRESS' of this host.",
            (
                "Set training_logs to the complete log of a job with NCCL_DEBUG=INFO, from its first line on. Then"
                " run stage training again."
            ),
        )
        return Finding("training.oob", host, UNKNOWN, "interface not in the log", expected, why, remedy)
    if several and any(line.startswith("lo ") for line in seen):
        why = "NCCL makes its own connections over the loopback interface, which other hosts cannot reach."
        return Finding(
            "training.oob",
            host,
            FAIL,
            join_first(seen),
            expected,
            why,
            "Set NCCL_SOCKET_IFNAME in the job to an interface of the pod network, and run the job again. Then run"
            " stage training again with the new logs.",
        )
    return build_pass("training.oob", host, join_first(seen), expected)
