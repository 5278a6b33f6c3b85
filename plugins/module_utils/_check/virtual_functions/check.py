# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage virtual_functions: sysfs of the node, the report of the operator and the allocatable resources of
the kubelet agree with the intent. If not, a finding names the first layer that is wrong. Check ids:
``virtual_functions.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.sriov.device_plugin import why_not_offered
from ..._analysis.fleet import machines
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve_members
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_traits, is_infiniband, owns_rdma
from ..._model.kubernetes.objects import ClusterNode
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.node.hca import NodeHcas, ObservedHcas
from ..._model.operators.sriov_operator import OperatorFacts
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from . import guids, links, sync, unread
from . import settings as vf_settings
from .count import check_count
from .devices import check_driver, check_rdma, check_report
from .free_settings import check_free
from .function_reports import FunctionReports
from .hardware_addresses import check_addresses


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: answer of node_info of each node after stage network
    :ivar subnets: answer of subnet_manager_info of each node (stage fabric), which assigns InfiniBand HCAs to fabrics
    :ivar operators: answer of sriov_operator_info; None if it did not run
    :ivar pods: pods that vf_pods started, for networks with settings for the VF of a pod
    :ivar held: answer of node_info of each node while these pods ran
    :ivar topologies: answer of fabric_info (stage fabric), which contains the GUIDs of devices outside of the nodes
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
        why = "The inventory contains no node, so no virtual function was checked."
        findings.append(
            Finding(
                "virtual_functions.node",
                "inventory",
                UNKNOWN,
                "0 nodes",
                "at least 1 node",
                why,
                "Add the nodes to the group rdma_nodes of the inventory, then run stage virtual_functions again.",
            )
        )
    read: dict[str, NodeHcas] = {}
    for name, observed in facts.nodes.items():
        if observed.value is None or observed.error is not None:
            why = (
                f"The module node_info failed on {name}: {format_clause(observed.error)}."
                if observed.error
                else f"The module node_info returned nothing from {name}."
            )
            findings.append(
                Finding(
                    "virtual_functions.node",
                    name,
                    UNKNOWN,
                    "list of HCAs and VFs not read",
                    "list of the HCAs and VFs of the node",
                    why,
                    (
                        f"Run ansible {name} --become -m linerate.rdma.node_info to see the error again, and correct"
                        " it. Then run stage virtual_functions again."
                    )
                    if observed.error
                    else f"Run ansible {name} --become -m linerate.rdma.node_info to see the error. Correct it, then"
                    " run stage virtual_functions again.",
                )
            )
        else:
            read[name] = observed.value
            if observed.value.errors:
                files = format_clause(join_first(observed.value.errors, 10, "; "))
                why = (
                    f"These files of the node could not be read, so the checks that need them give no result: {files}."
                )
                remedy = (
                    "Run stage virtual_functions again: files that change while the operator creates VFs can be read in"
                    f" the next run. If the finding remains, read the files on {name} as root with cat, and correct the"
                    " error that it reports. Then run stage virtual_functions again."
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
                build_pass(
                    "virtual_functions.members",
                    fabric.name,
                    f"profile {fabric.profile}, which creates no VFs",
                    "checked only for SR-IOV profiles",
                )
            )
            continue
        membership = resolve_members(fabric, read, subnets)
        if not membership.resolved:
            findings.append(_report_unresolved(fabric, membership))
            continue
        everywhere: list[FunctionReports] = []
        for name, node in read.items():
            functions = _list_functions(fabric, membership, name, node, facts.operators)
            everywhere += functions
            of_node = [_check_members(fabric, name, functions)]
            # those that are there are judged whatever their number: a waiver of a missing one is about that one
            for layers in functions:
                of_node += _check_function(layers)
            of_node.append(_report_offer(intent, fabric, name, functions, facts))
            state = functions[0].state if functions else None
            of_node += [sync.check_sync(intent, fabric, state)] if state is not None else []
            if fabric.network.vf_settings:
                pods = [pod for pod in facts.pods if (pod.fabric, pod.node) == (fabric.name, name)]
                held = facts.held.get(name, ObservedHcas(error=NOT_QUERIED))
                of_node.append(
                    vf_settings.check_settings(
                        fabric, name, pods, held, [vf for layers in functions for vf in layers.vfs if vf.held]
                    )
                )
            findings += of_node
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


def _report_unresolved(fabric: Fabric, membership: Membership) -> Finding:
    why = f"The HCAs of the fabric could not be determined: {format_clause(membership.why)}."
    return Finding(
        "virtual_functions.members",
        membership.fabric,
        UNKNOWN,
        "HCAs of the fabric not known",
        f"{count_of(fabric.select.hcas_per_node, 'physical function')} on each node",
        why,
        f"{membership.remedy}. Then run stages fabric and virtual_functions again.",
    )


def _list_functions(
    fabric: Fabric, membership: Membership, name: str, node: NodeHcas, operators: typing.Optional[OperatorFacts]
) -> tuple[FunctionReports, ...]:
    state = next((state for state in operators.states if state.node == name), None) if operators else None
    reason = ""
    if state is None and (operators is None or operators.errors):
        reason = unread.join_errors(operators)
    result = []
    for member in membership.members.get(name, ()):
        vfs = tuple(hca for hca in node.hcas if member.hca.pci and hca.physical_function == member.hca.pci.address)
        result.append(FunctionReports(fabric, name, member.hca, vfs, state, reason))
    return tuple(result)


def _check_members(fabric: Fabric, name: str, functions: typing.Sequence[FunctionReports]) -> Finding:
    expected = count_of(fabric.select.hcas_per_node, "physical function")
    names = join_first([layers.hca.name for layers in functions])
    measured = count_of(len(functions), "physical function") + (f": {names}" if names else "")
    if len(functions) == fabric.select.hcas_per_node:
        return build_pass("virtual_functions.members", f"{fabric.name} {name}", measured, expected)
    fewer = len(functions) < fabric.select.hcas_per_node
    if is_infiniband(fabric):
        why = (
            "An HCA belongs to the fabric if its port sees the subnet manager of the fabric. Fewer ports of the"
            " node see"
            " it than hcas_per_node of the fabric requires."
            if fewer
            else "More ports of the node see the subnet manager of this fabric than hcas_per_node of the fabric allows."
        )
        remedy = (
            "Follow the remedies of the findings discover.hcas (a missing card) and fabric.hcas (a port without"
            f" this subnet manager) of {name}. If both passed, correct hcas_per_node of the fabric"
            f" '{fabric.name}' in the intent. Then run stages discover, fabric and virtual_functions again."
        )
    else:
        why = (
            f"select of the fabric '{fabric.name}' matches fewer NICs of the node than hcas_per_node requires."
            if fewer
            else f"The selectors of the fabric '{fabric.name}' also match NICs of other networks."
        )
        remedy = (
            f"Read the finding discover.hcas of {name}, which lists its NICs. If a NIC is missing there, follow"
            f" its remedy. Otherwise correct select or hcas_per_node of the fabric '{fabric.name}' in the intent."
            " Then run stages discover and virtual_functions again."
        )
    return Finding("virtual_functions.members", f"{fabric.name} {name}", FAIL, measured, expected, why, remedy)


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
    return findings + [finding for finding in (links.check_link_state(layers), links.check_idle(layers)) if finding]


def _report_offer(
    intent: Intent, fabric: Fabric, name: str, functions: typing.Sequence[FunctionReports], facts: Facts
) -> Finding:
    """Compare the number of VFs that the kubelet of a node reports as allocatable with the number that the fabric
    requires.

    :param name: name of the node
    :param functions: reports on the physical functions of the fabric on the node
    """
    resource, wanted = (
        f"{intent.cluster.resource_prefix}/{fabric.resource_name}",
        fabric.virtual_functions * fabric.select.hcas_per_node,
    )
    subject, expected = f"{fabric.name} {name}", f"{wanted} {resource} allocatable"
    node = next((node for node in facts.operators.nodes if node.name == name), None) if facts.operators else None
    if facts.operators is None or node is None:
        why, remedy = _why_not_read(name, facts.operators)
        return Finding(
            "virtual_functions.allocatable", subject, UNKNOWN, "allocatable resources not read", expected, why, remedy
        )
    offered = node.allocatable.get(resource)
    measured = f"{offered if offered is not None else 0} {resource} allocatable"
    if offered == wanted:
        return build_pass("virtual_functions.allocatable", subject, measured, expected)
    return Finding(
        "virtual_functions.allocatable",
        subject,
        FAIL,
        measured,
        expected,
        *_why_not_offered(resource, wanted, functions, node),
    )


def _why_not_read(name: str, operators: typing.Optional[OperatorFacts]) -> tuple[str, str]:
    """Return the cause and the remedy if the cluster reports no allocatable resources of a node.

    :param name: name of the node
    :param operators: answer of sriov_operator_info; None if it did not run
    """
    if operators is None or operators.errors:
        reason = unread.join_errors(operators)
        return f"The Node objects of the cluster could not be read: {reason}.", unread.choose_remedy(reason)
    return (
        f"The cluster has no Node named {name}.",
        f"Run kubectl get nodes. If it lists the machine under another name, change {name} in the inventory to that"
        " name. If it does not list the machine, join the machine to the cluster, or remove it from the group"
        " rdma_nodes. Then run stage virtual_functions again.",
    )


def _why_not_offered(
    resource: str, wanted: int, functions: typing.Sequence[FunctionReports], node: ClusterNode
) -> tuple[str, str]:
    in_kernel = sum(len(layers.vfs) for layers in functions)
    if not functions:
        return (
            "The node has no physical function on this fabric, so it has no virtual functions to offer.",
            f"Follow the remedy of the finding virtual_functions.members of {node.name}, then run stages network"
            " and virtual_functions again.",
        )
    if in_kernel != wanted:
        why = (
            f"The kernel of the node has {in_kernel} of the {wanted} virtual functions, and the device plugin can offer"
            " only these to the kubelet."
        )
        return why, (
            f"Follow the remedies of the findings virtual_functions.count of {node.name}, then run stage"
            " virtual_functions again."
        )
    return why_not_offered(
        node,
        resource,
        wanted,
        {group.resource for layers in functions if layers.desired for group in layers.desired.groups},
    )
