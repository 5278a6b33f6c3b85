# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage platform: the nodes can create VFs, and if not, which layer prevents it. Check ids:
``platform.*``.

The check reads the effects of BIOS and firmware settings on the node, which prove the settings. If a firmware tool is
installed, it also reads the firmware settings, since only they show the state after the next reset. If the inventory
names the BMC of a node, it also reads the BIOS settings.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._analysis.fleet.bios import find_wanted_by
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve_members
from ..._model.base.phrases import count_of, format_clause
from ..._model.infiniband.fabric import ObservedSubnets
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_traits
from ..._model.kubernetes.node_roll import NodeOutcome, RollPlan
from ..._model.node.bios import ObservedBios
from ..._model.node.firmware import NicDevices, ObservedFirmware
from ..._model.node.hca import NodeHcas, ObservedHcas
from ..._model.node.identity import Claims
from ..._model.node.platform import NodePlatform, ObservedPlatform
from ..._model.run.findings import UNKNOWN, WARN, Finding, build_pass
from . import bios, bmc, firmware, firmware_fleet, returned, roll, sriov

_NO_DATA = "the module node_info returned no data"


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage platform is judged, besides the intent.

    :ivar nodes: HCAs of each node (node_info)
    :ivar subnets: subnet manager of each port of each node (subnet_manager_info)
    :ivar platforms: SR-IOV, IOMMU and kernel state of each node (node_info)
    :ivar bioses: BIOS settings that the BMC reports, of each node for which the inventory names a BMC
    :ivar firmware: firmware of the HCAs of each node (node_info)
    :ivar nics: answer of nic_device_info: reports of NVIDIA's NIC configuration operator
    :ivar by_pods: names of the nodes that are read by observers (pods) instead of ssh
    :ivar roll_plan: plan of the roll that brings nodes to the desired settings; None if no roll was requested
    :ivar rolled: outcome of each node of the roll
    :ivar roll_error: reason for which the outcomes are not known; empty if they are
    :ivar before: HCAs before the reset, of each node that was reset (node_info)
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    platforms: dict[str, ObservedPlatform] = dataclasses.field(default_factory=dict)
    bioses: dict[str, ObservedBios] = dataclasses.field(default_factory=dict)
    firmware: dict[str, ObservedFirmware] = dataclasses.field(default_factory=dict)
    nics: NicDevices = dataclasses.field(default_factory=NicDevices)
    by_pods: tuple[str, ...] = ()
    roll_plan: typing.Optional[RollPlan] = None
    rolled: typing.Optional[tuple[NodeOutcome, ...]] = None
    roll_error: str = ""
    before: dict[str, NodeHcas] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Check the platform of each node (IOMMU, kernel arguments, BIOS) and each HCA that must create VFs (SR-IOV,
    firmware, PCIe). Return at least one finding for each node and for each of these HCAs."""
    nodes = _select_answered_nodes(facts.nodes)
    findings: list[Finding] = []
    if not facts.nodes:
        why = (
            "No node was queried: the group rdma_nodes of the inventory is empty, or --limit excluded all of its nodes."
        )
        remedy = (
            "Run ansible-inventory --graph rdma_nodes. If it lists no node, put the nodes into the group"
            " rdma_nodes. Otherwise leave out --limit. Then run stage platform again."
        )
        findings.append(Finding("platform.node", "inventory", UNKNOWN, "0 nodes", "at least 1 node", why, remedy))
    memberships, fleet = _compared(intent, facts)
    findings += firmware.report_unread(facts.nics)
    wishes = find_wanted_by(intent.cluster.bios)
    claims = Claims(
        looked={
            name: one.value.identity
            for name, one in facts.platforms.items()
            if one.value is not None and one.error is None
        },
        machines={
            name: told.value.identity
            for name, told in facts.bioses.items()
            if told.value is not None and told.error is None
        },
    )
    for fabric in intent.fabrics:
        if not find_traits(fabric).functions:
            findings.append(
                build_pass(
                    "platform.scope",
                    fabric.name,
                    f"profile {fabric.profile}: creates no VFs",
                    "the HCAs that must create VFs",
                )
            )
            continue
        if not memberships[fabric.name].resolved:
            why = f"The HCAs of the fabric could not be determined: {memberships[fabric.name].why}."
            findings.append(
                Finding(
                    "platform.scope",
                    fabric.name,
                    UNKNOWN,
                    "HCAs not determined",
                    "the HCAs that must create VFs",
                    why,
                    f"{memberships[fabric.name].remedy}. Then run stages discover and platform again.",
                )
            )
    for name, hcas in facts.nodes.items():
        observed = facts.platforms.get(name, ObservedPlatform(error=unreachable_nodes.NOT_QUERIED_BY_LIMIT))
        errors = [format_clause(hcas.error, _NO_DATA)] if name not in nodes else []
        if observed.value is None or observed.error is not None:
            errors.append(format_clause(observed.error, _NO_DATA))
        expected = "data of its HCAs, PCI functions and kernel"
        if errors or observed.value is None:
            remedy = unreachable_nodes.get_remedy(name, facts.by_pods, "Python 3.9 or later", "node_info")
            if {*errors} == {unreachable_nodes.NOT_QUERIED_BY_LIMIT}:
                remedy = (
                    "Run stages discover and platform again, with this node in --limit or without --limit. To continue"
                    " without this node, remove it from the group rdma_nodes."
                )
            findings.append(
                Finding(
                    "platform.node",
                    name,
                    UNKNOWN,
                    "not read",
                    expected,
                    f"{_describe_unread(name not in nodes, observed)} not read:"
                    f" {format_clause('; '.join(dict.fromkeys(errors)))}.",
                    remedy,
                )
            )
            continue
        findings.append(
            build_pass("platform.node", name, f"kernel {observed.value.kernel}, {observed.value.machine}", expected)
        )
        said = bmc.find_report(
            name, facts.bioses.get(name), claims, wishes, any(name in one.members for one in memberships.values())
        )
        of_node = _check_node(name, observed.value, intent, memberships, fleet, said)
        findings += [*of_node, *bmc.check(name, said, wishes, of_node, _ari_on(name, observed.value, memberships))]
    return (
        *findings,
        *roll.check(facts.roll_plan, facts.rolled, facts.roll_error),
        *returned.check(facts.before, facts.nodes, facts.rolled),
    )


def _describe_unread(without_hcas: bool, observed: ObservedPlatform) -> str:
    """Return the beginning of the sentence that names the unread data of a node.

    :param without_hcas: whether the HCAs of the node were not read
    :param observed: PCI functions and kernel of the node, or the error
    """
    if observed.value is not None and observed.error is None:
        return "The HCAs of the node were"
    return f"{'The HCAs, PCI functions' if without_hcas else 'The PCI functions'} and kernel of the node were"


def make_groups(intent: Intent, facts: Facts) -> tuple[firmware_fleet.HcaModel, ...]:
    """Return the HCAs of the fabrics with VFs in groups of one model, each with the firmware versions and settings in
    which HCAs differ from most of their model. The check ``platform.firmware`` reports the same differences.
    """
    memberships, fleet = _compared(intent, facts)
    return firmware_fleet.group_by_model(memberships.values(), fleet)


def _compared(intent: Intent, facts: Facts) -> tuple[dict[str, Membership], firmware_fleet.Fleet]:
    subnets = {
        name: observed.value
        for name, observed in facts.subnets.items()
        if observed.value is not None and observed.error is None
    }
    nodes = _select_answered_nodes(facts.nodes)
    memberships = {
        fabric.name: resolve_members(fabric, nodes, subnets)
        for fabric in intent.fabrics
        if find_traits(fabric).functions
    }
    return memberships, firmware_fleet.collect_fleet(intent, memberships.values(), facts.firmware, facts.nics)


def _select_answered_nodes(nodes: typing.Mapping[str, ObservedHcas]) -> dict[str, NodeHcas]:
    return {
        name: observed.value
        for name, observed in nodes.items()
        if observed.value is not None and observed.error is None
    }


def _ari_on(name: str, platform: NodePlatform, memberships: typing.Mapping[str, Membership]) -> bool:
    """Return whether ARI is on for every HCA of the node that creates VFs, as its PCI configuration space shows. Return
    False if the node has no such HCA.

    :param name: name of the node
    :param platform: kernel, IOMMU, BIOS tables and SR-IOV functions of the node
    :param memberships: HCAs of each fabric
    """
    addresses = {
        member.hca.pci.address for one in memberships.values() for member in one.members.get(name, ()) if member.hca.pci
    }
    functions = [function for function in platform.functions if function.address in addresses]
    return bool(functions) and all(
        function.capability is not None and function.capability.ari for function in functions
    )


def _check_node(
    name: str,
    platform: NodePlatform,
    intent: Intent,
    memberships: typing.Mapping[str, Membership],
    fleet: firmware_fleet.Fleet,
    said: typing.Optional[bmc.BmcReport],
) -> list[Finding]:
    findings = [*_check_read(name, platform), bmc.explain(_check_iommu(name, platform), said, "iommu")]
    evidence = {function.address: function for function in platform.functions}
    for fabric in (fabric for fabric in intent.fabrics if fabric.name in memberships):
        for member in memberships[fabric.name].members.get(name, ()):
            hca, subject = member.hca, f"{name} {member.hca.name}"
            function = evidence.get(hca.pci.address) if hca.pci else None
            findings += sriov.check(subject, fabric, hca, function, bool(platform.locked_down))
            if function is not None:
                findings += bios.check(subject, fabric, hca, function, platform.kernel_arguments or (), said)
                findings += firmware.check(name, fabric, hca, function, fleet)
    return findings


def _check_read(name: str, platform: NodePlatform) -> list[Finding]:
    """Report the data of a node that could not be read, with the errors. The findings of this stage that need these
    data have the status unknown. The result is empty if there are no errors.

    :param name: name of the node
    :param platform: kernel, IOMMU, BIOS tables and SR-IOV functions of the node
    """
    if not platform.errors:
        return []
    first = "" if len(platform.errors) <= 10 else f" (the first 10 of {len(platform.errors)})"
    why = (
        f"Some values of the node could not be read, so findings that need them can be unknown. The errors{first}"
        f" are: {format_clause('; '.join(platform.errors[:10]))}."
    )
    return [
        Finding(
            "platform.node",
            name,
            WARN,
            f"{count_of(len(platform.errors), 'value')} not read",
            "all values read",
            why,
            f"Let Ansible read {name} as root (ansible_become: true). If it reads as root already, run cat on these"
            f" files on {name}, and correct the error that it prints. Then run stage platform again.",
        )
    ]


def _check_iommu(name: str, platform: NodePlatform) -> Finding:
    """Check that the IOMMU is on. The IOMMU groups of the kernel prove it. Without them, the ACPI tables show whether
    the BIOS or the kernel is the cause.

    :param name: name of the node
    :param platform: kernel, IOMMU, BIOS tables and SR-IOV functions of the node
    """
    expected = "IOMMU active"
    arguments = (
        f"kernel arguments {' '.join(platform.kernel_arguments)}"
        if platform.kernel_arguments
        else "no kernel argument for the IOMMU"
    )
    if platform.iommu_devices is None or platform.iommu_groups is None or platform.acpi_tables is None:
        sources = (
            (platform.iommu_devices, "/sys/class/iommu"),
            (platform.iommu_groups, "/sys/kernel/iommu_groups"),
            (platform.acpi_tables, "/sys/firmware/acpi/tables"),
        )
        unread = ", ".join(path for value, path in sources if value is None)
        why = (
            f"The run did not get the entries of {unread} from the node, so it is unknown whether the IOMMU is active."
        )
        off = (
            "the IOMMU is off: drain the node, enable VT-d (Intel) or IOMMU (AMD) in its BIOS, and boot it with"
            " intel_iommu=on (Intel)"
            if platform.iommu_devices is None or platform.iommu_groups is None
            else "ACPI is off: drain the node, remove acpi=off from its kernel arguments, and reboot it"
        )
        if platform.errors:
            why = f"{why} Errors on the node: {format_clause('; '.join(platform.errors[:5]))}."
        return Finding(
            "platform.iommu",
            name,
            UNKNOWN,
            "not read",
            expected,
            why,
            f"Run ls {unread.replace(',', '')} as root on {name}. If it lists entries, let Ansible read the node as"
            f" root (ansible_become: true). If it lists none, {off}. Then run stage platform again.",
        )
    tables = ", ".join(platform.acpi_tables)
    if platform.iommu_devices and platform.iommu_groups:
        return build_pass(
            "platform.iommu",
            name,
            f"{', '.join(platform.iommu_devices[:4])}, {count_of(platform.iommu_groups, 'group')}, {arguments}",
            expected,
        )
    harm = "VFs for network interfaces work without an IOMMU. VFs that a pod drives itself (vfio-pci) do not."
    if platform.acpi_tables:
        why = f"The BIOS offers an IOMMU ({tables}), but the kernel does not use it ({arguments}). {harm}"
        return Finding(
            "platform.iommu",
            name,
            WARN,
            f"IOMMU off in the kernel, {tables} present",
            expected,
            why,
            "Drain the node, add the kernel arguments intel_iommu=on iommu=pt (Intel) or iommu=pt (AMD),"
            " and reboot it. If no pod uses vfio-pci, you can waive this finding instead. Then run stage"
            " platform again.",
        )
    why = f"The BIOS offers no IOMMU: the ACPI tables DMAR, IVRS and IORT are all missing. {harm}"
    return Finding(
        "platform.iommu",
        name,
        WARN,
        "IOMMU off in the BIOS",
        expected,
        why,
        "Drain the node, enable VT-d (Intel) or IOMMU (AMD) in its BIOS, and reboot it. If no pod uses"
        " vfio-pci, you can waive this finding instead. Then run stage platform again.",
    )
