# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage virtual_functions: sysfs of the node, the report of the operator and the allocatable resources of
the kubelet agree with the intent. If not, a finding names the first layer that is wrong. Check ids:
``virtual_functions.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.device_plugin import why_not_offered
from ..._analysis.controllers.sync_errors import add_cause
from ..._analysis.fleet import machines
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve
from ..._model.base.phrases import clause, count_of
from ..._model.base.text import folded
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_traits, is_infiniband, owns_rdma
from ..._model.kubernetes.objects import ClusterNode
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.node.hca import NodeHcas, ObservedHcas
from ..._model.operators.sriov_operator import NodeState, OperatorFacts
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from . import guids
from . import settings as vf_settings
from .count import check_count
from .desired import find_other_rdma_mode
from .devices import check_driver, check_rdma, check_report
from .free_settings import check_free
from .function_reports import FunctionReports
from .hardware_addresses import check_addresses


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: answer of node_info of each node, taken after the stage network
    :ivar subnets: answer of subnet_manager_info of each node (stage fabric), by which an InfiniBand HCA is on a fabric
    :ivar operators: answer of sriov_operator_info; None when it did not run
    :ivar pods: answer of vf_pods, where a network has settings for the VF of a pod
    :ivar held: answer of node_info of each node while these pods ran
    :ivar topologies: answer of fabric_info (stage fabric), by which the GUIDs of other devices are known
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    operators: typing.Optional[OperatorFacts] = None
    pods: tuple[RdmaPod, ...] = ()
    held: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of stage virtual_functions: on each node, on each physical function of a fabric, and on each
    fabric on each node.
    """
    findings: list[Finding] = []
    if not facts.nodes:
        why = "Data was collected from no node, so the state of the virtual functions is unknown."
        findings.append(
            Finding(
                "virtual_functions.node",
                "inventory",
                UNKNOWN,
                "no node",
                "at least 1 node",
                why,
                "Add the nodes to the group rdma_nodes of the inventory, then run stage virtual_functions again.",
            )
        )
    read: dict[str, NodeHcas] = {}
    for name, observed in facts.nodes.items():
        if observed.value is None or observed.error is not None:
            why = (
                "Data collection (module node_info) failed on this node:"
                f" {clause(observed.error, 'no data was returned')}."
            )
            findings.append(
                Finding(
                    "virtual_functions.node",
                    name,
                    UNKNOWN,
                    "no data",
                    "data from module node_info",
                    why,
                    f"Correct the error under 'why' on {name}, then run stage virtual_functions again."
                    if observed.error
                    else f"Run stage virtual_functions again. If {name} returns no data again, run ansible"
                    f" {name} --become -m linerate.rdma.node_info to see the error.",
                )
            )
        else:
            read[name] = observed.value
            if observed.value.errors:
                why = (
                    "These files could not be read, so their values are unknown:"
                    f" {clause('; '.join(observed.value.errors[:10]))}."
                )
                remedy = (
                    "Run stage virtual_functions again: files that change while the operator creates VFs can be read in"
                    f" the next run. If the finding remains, read the files on {name} as root."
                )
                measured = count_of(len(observed.value.errors), "unreadable file")
                findings.append(
                    Finding("virtual_functions.read", name, WARN, measured, "0 unreadable files", why, remedy)
                )
    subnets = {name: seen.value for name, seen in facts.subnets.items() if seen.value is not None}
    for fabric in intent.fabrics:
        if not find_traits(fabric).functions:
            # this pass only states that the stage does not cover the fabric
            findings.append(
                ok(
                    "virtual_functions.members",
                    fabric.name,
                    f"profile {fabric.profile}, which creates no VFs",
                    "checked only for SR-IOV profiles",
                )
            )
            continue
        membership = resolve(fabric, read, subnets)
        if not membership.resolved:
            findings.append(_report_unresolved(membership))
            continue
        everywhere: list[FunctionReports] = []
        for name, node in read.items():
            functions = _list_functions(fabric, membership, name, node, facts.operators)
            everywhere += functions
            findings.append(_check_members(fabric, name, functions))
            # those that are there are judged whatever their number: a waiver of a missing one is about that one
            for layers in functions:
                findings += _check_function(layers)
            findings.append(_report_offer(intent, fabric, name, functions, facts))
            state = functions[0].state if functions else None
            findings += [_check_sync(intent, fabric, state)] if state is not None else []
            if fabric.network.vf_settings:
                pods = [pod for pod in facts.pods if (pod.fabric, pod.node) == (fabric.name, name)]
                held = facts.held.get(name, ObservedHcas(error="the node was not queried"))
                findings.append(
                    vf_settings.check_settings(
                        fabric, name, pods, held, [vf for layers in functions for vf in layers.vfs if vf.held]
                    )
                )
        if not is_infiniband(fabric):
            findings += check_addresses(fabric.name, everywhere)
        findings += vf_settings.compare_mtus(fabric, everywhere)
        findings += check_free(fabric, everywhere)
    if facts.operators is not None:
        answers = (
            machines.collect_answers("hcas_after_network", facts.nodes),
            machines.collect_answers("hcas_in_use", facts.held),
        )
        findings += machines.check("virtual_functions.machine", facts.nodes, answers, facts.operators.nodes)
    if any(is_infiniband(fabric) for fabric in intent.fabrics):
        findings += guids.check_duplicate_guids(read, guids.find_others(read, facts.topologies, subnets))
    return tuple(findings)


def _report_unresolved(membership: Membership) -> Finding:
    why = f"The physical functions of the fabric are unknown: {clause(membership.why)}."
    return Finding(
        "virtual_functions.members",
        membership.fabric,
        UNKNOWN,
        "unknown",
        "physical functions of each node",
        why,
        f"{membership.remedy}. Then run stage virtual_functions again."
        if membership.remedy
        else "See the findings of stage fabric.",
    )


def _list_functions(
    fabric: Fabric, membership: Membership, name: str, node: NodeHcas, operators: typing.Optional[OperatorFacts]
) -> tuple[FunctionReports, ...]:
    state = next((state for state in operators.states if state.node == name), None) if operators else None
    unread = ""
    if state is None and (operators is None or operators.errors):
        unread = "; ".join(operators.errors[:3]) if operators else "the API server was not queried"
    result = []
    for member in membership.members.get(name, ()):
        vfs = tuple(hca for hca in node.hcas if member.hca.pci and hca.physical_function == member.hca.pci.address)
        result.append(FunctionReports(fabric, name, member.hca, vfs, state, unread))
    return tuple(result)


def _check_members(fabric: Fabric, name: str, functions: typing.Sequence[FunctionReports]) -> Finding:
    expected = count_of(fabric.select.hcas_per_node, "physical function")
    measured = folded([layers.hca.name for layers in functions]) or "none"
    if len(functions) == fabric.select.hcas_per_node:
        return ok("virtual_functions.members", f"{fabric.name} {name}", measured, expected)
    why = (
        "Intent or hardware: the number of physical functions of the fabric on this node differs from hcas_per_node of"
        " the intent."
    )
    return Finding(
        "virtual_functions.members",
        f"{fabric.name} {name}",
        FAIL,
        measured,
        expected,
        why,
        "See the findings discover.hcas and fabric.hcas of this node.",
    )


def _check_function(layers: FunctionReports) -> list[Finding]:
    """Return the findings on the VFs of a physical function. If it has no VFs, only their number is checked.

    :param layers: reports of kernel, operator and config daemon on the function
    """
    findings = [check_count(layers)]
    if not layers.vfs:
        return findings
    findings += [check_driver(layers), check_report(layers), vf_settings.check_mtu(layers)]
    if owns_rdma(layers.fabric):
        findings.append(check_rdma(layers))
    if is_infiniband(layers.fabric):
        findings.append(guids.check_guids(layers))
    return findings + [
        finding for finding in (vf_settings.check_link_state(layers), vf_settings.check_idle(layers)) if finding
    ]


def _check_sync(intent: Intent, fabric: Fabric, state: NodeState) -> Finding:
    """Check that the operator has finished its work on the node. Until then it may remove or change VFs."""
    subject, expected = f"{fabric.name} {state.node}", "Succeeded, Idle"
    steps = [step for step in (state.desired_state, state.current_state) if step not in ("", "Idle")]
    measured = ", ".join((state.sync_status or "no sync status", *steps))
    if state.sync_status == "Succeeded" and not steps:
        pool = intent.cluster.node_pool
        other = find_other_rdma_mode(state, (pool.rdma_mode if pool else None) or "")
        if not other:
            return ok("virtual_functions.sync", subject, f"{measured}, Idle", expected)
        remedy = (
            "Check rdmaMode of the pools: kubectl get sriovnetworkpoolconfigs -A -o yaml. Correct it, then run stage"
            f" network again. If the mode does not change, restart {state.node}."
        )
        why, mode = f"RDMA mode: {other}.", f"RDMA mode {state.rdma_mode or 'unknown'}"
        expected = f"{expected}, the same RDMA mode in the intent, the operator and the node"
        return Finding("virtual_functions.sync", subject, FAIL, f"{measured}, Idle, {mode}", expected, why, remedy)
    log = f"Read the log of the config daemon on {state.node} (kubectl logs -l app=sriov-network-config-daemon)"
    if state.sync_status == "Failed":
        error, remedy = add_cause(state.last_sync_error)
        why = f"The config daemon failed: {clause(error)}."
        return Finding(
            "virtual_functions.sync",
            subject,
            FAIL,
            measured,
            expected,
            why,
            remedy or f"{log}, and correct the error in it. Then run stage virtual_functions again.",
        )
    why = (
        "The operator has not finished its work on this node, or requests a drain or a reboot. Therefore the virtual"
        " functions may still change."
    )
    return Finding(
        "virtual_functions.sync",
        subject,
        UNKNOWN,
        measured,
        expected,
        why,
        f"Wait until the operator has finished, then run stage virtual_functions again. {log}.",
    )


def _report_offer(
    intent: Intent, fabric: Fabric, name: str, functions: typing.Sequence[FunctionReports], facts: Facts
) -> Finding:
    """Check that the kubelet of a node reports the VFs of the fabric as an allocatable resource, in the required
    number.

    :param name: name of the node
    :param functions: reports on the physical functions of the fabric on the node
    """
    resource, wanted = (
        f"{intent.cluster.resource_prefix}/{fabric.resource_name}",
        fabric.virtual_functions * fabric.select.hcas_per_node,
    )
    subject, expected = f"{fabric.name} {name}", f"{wanted} {resource}"
    node = next((node for node in facts.operators.nodes if node.name == name), None) if facts.operators else None
    if facts.operators is None or node is None:
        why = (
            ("The API server was not queried.")
            if facts.operators is None
            else "The cluster has no node with this name."
        )
        return Finding(
            "virtual_functions.allocatable",
            subject,
            UNKNOWN,
            "unknown",
            expected,
            why,
            "Check the kubeconfig and the name of the node in the inventory.",
        )
    offered = node.allocatable.get(resource)
    measured = f"{offered if offered is not None else 'no'} {resource}"
    if offered == wanted:
        return ok("virtual_functions.allocatable", subject, measured, expected)
    return Finding(
        "virtual_functions.allocatable",
        subject,
        FAIL,
        measured,
        expected,
        *_why_not_offered(resource, wanted, functions, node),
    )


def _why_not_offered(
    resource: str, wanted: int, functions: typing.Sequence[FunctionReports], node: ClusterNode
) -> tuple[str, str]:
    in_kernel = sum(len(layers.vfs) for layers in functions)
    if not functions:
        return (
            "Intent: the node has no physical function on this fabric.",
            "See the finding virtual_functions.members of this node.",
        )
    if in_kernel != wanted:
        why = (
            f"Kernel: the node has {in_kernel} of the {wanted} virtual functions. The device plugin cannot offer more"
            " than these to the kubelet."
        )
        return why, f"Correct the findings virtual_functions.count of {node.name} first."
    return why_not_offered(
        node,
        resource,
        wanted,
        {group.resource for layers in functions if layers.desired for group in layers.desired.groups},
    )
