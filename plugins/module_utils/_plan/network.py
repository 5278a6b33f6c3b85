# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan stage network before it changes anything: the objects that intent and facts require, the findings about these
objects, and the state to wait for after they are applied.
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.addresses import in_use as ipam
from .._analysis.addresses.host_networks import Hosts
from .._analysis.fleet.nics_in_use import find_nics_in_use, find_upper_interfaces, list_node_addresses, select_driven
from .._analysis.readiness.state import Target
from .._check.network.facts import LintFacts
from .._check.network.lint.check import lint_all, read_held, select_remaining
from .._check.network.lint.policy_context import read_cluster_before
from .._model.base.errors import ParseError
from .._model.intent.host_intent import HostNeeds
from .._model.intent.intent import ClusterIntent, Fabric, Intent
from .._model.intent.profiles import (
    HOST_DEVICE,
    IPOIB,
    NIC_POLICY,
    attachment_kind,
    attachment_name,
    count_pods_on_a_node,
    find_traits,
    list_reporting_objects,
    resource_of,
)
from .._model.kubernetes.addresses import AddressFacts
from .._model.kubernetes.apply import AppliedObject
from .._model.node.platform import ObservedPlatform
from .._model.operators.sriov_operator import OperatorFacts, Policy
from .._parse.limits import decode_json
from .._parse.operators.sriov_operator import parse_policy
from .._render.cluster.names import policy_name
from .._render.network import network
from .._render.node import host
from .node_answers import NodeAnswers

#: an object to apply and the fabric that it is for; empty for what fabrics share
Item = dict[str, typing.Any]
#: device plugins in a NicClusterPolicy, each with the key of its configuration that lists the resources
_DEVICE_PLUGINS = {"rdmaSharedDevicePlugin": "configList", "sriovDevicePlugin": "resourceList"}
#: resource of the API in the error of a request
_POLICIES = "nicclusterpolicies"


@dataclasses.dataclass(frozen=True)
class NetworkPlan:
    """The objects that stage network would apply, and the findings about them.

    :ivar hosts: MachineConfigs and KubeletConfigs, which reboot nodes
    :ivar objects: objects of the fabrics in the order of application, without those of fabrics that are held back
        because of a failure
    :ivar unmade: reason why the objects of a fabric could not be rendered, by fabric
    :ivar lint: findings of the linter about the objects
    :ivar in_use: physical functions that a node itself uses: for each node, what it uses the function for, by interface
        or PCI address
    :ivar driven: the part of ``in_use`` with those functions whose driver NVIDIA's network operator replaces. A node
        whose default routes are unknown is left out of both
    :ivar uppers: names of the interfaces above the physical functions of a node, by node and by PCI address
    """

    hosts: tuple[Item, ...] = ()
    objects: tuple[Item, ...] = ()
    unmade: dict[str, str] = dataclasses.field(default_factory=dict)
    lint: LintFacts = dataclasses.field(default_factory=LintFacts)
    in_use: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    driven: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    uppers: dict[str, dict[str, tuple[str, ...]]] = dataclasses.field(default_factory=dict)


def plan(
    intent: Intent,
    nodes: typing.Sequence[str],
    answers: NodeAnswers,
    addresses: AddressFacts,
    operators: OperatorFacts,
    platforms: typing.Optional[typing.Mapping[str, ObservedPlatform]] = None,
) -> NetworkPlan:
    """Render the objects of all fabrics, and check them against the state of the cluster. The objects of a fabric are
    left out if its IP addresses are already in use, or if a check of the objects fails and no waiver covers it. The
    entries of such a fabric in the existing NicClusterPolicy are kept.

    :param nodes: names of the nodes on which the fabrics must work
    :param answers: HCAs and subnets that the nodes reported
    :param addresses: IP addresses that the cluster uses already
    :param operators: node states that the operator reports, and the existing policies
    :param platforms: observed platform of each node, with the kernel arguments that the node runs with; None if no
        platform was observed
    """
    cluster = dataclasses.replace(intent.cluster, operator_namespace=operators.namespace)
    hosts = None if platforms is None else Hosts(platforms, answers.hcas)
    refused = ipam.list_refused_fabrics(intent, ipam.check(intent, nodes, addresses, hosts))
    rendered = network.render(
        [fabric for fabric in intent.fabrics if fabric.name not in refused],
        cluster,
        _list_functions(intent, answers, nodes, operators.policies),
    )
    # the linter reads what will be applied, and not what was meant
    policies = [
        (name, parse_policy(item)) for name, item in rendered.objects if item["kind"] == "SriovNetworkNodePolicy"
    ]
    in_use = None if platforms is None else _find_nics_in_use(nodes, answers, platforms, addresses)
    findings = lint_all(
        intent.fabrics, policies, read_cluster_before(operators, answers.hcas, intent.cluster, in_use), nodes
    )
    stopped = read_held(findings, intent.waivers)
    objects = [{"fabric": name, "object": item} for name, item in rendered.objects]
    return NetworkPlan(
        tuple(
            {"fabric": "", "object": item}
            for item in host.render_host_configs(
                _find_host_needs(intent.cluster.host, nodes, operators, platforms or {}), intent.cluster.intent_name
            )
        ),
        tuple(
            network.drop_held(
                select_remaining(objects, stopped), intent, stopped, _find_policy_entries(intent.fabrics, operators)
            )
        ),
        {**rendered.unmade, **refused},
        LintFacts(tuple(item for mine in findings.values() for item in mine), stopped, operators.errors),
        in_use or {},
        {node: select_driven(answers.hcas.get(node), used) for node, used in (in_use or {}).items()},
        {node: uppers for node in nodes if (uppers := find_upper_interfaces(answers.hcas.get(node)))},
    )


def _find_nics_in_use(
    nodes: typing.Iterable[str],
    answers: NodeAnswers,
    platforms: typing.Mapping[str, ObservedPlatform],
    addresses: AddressFacts,
) -> dict[str, dict[str, str]]:
    """Return the physical functions that a node itself uses: for each node, what it uses the function for, by interface
    or PCI address. A node whose default routes are unknown is left out.

    :param platforms: observed platform of each node
    :param addresses: IP addresses that the cluster uses already, with those of the nodes
    """
    own = list_node_addresses(addresses)
    found = {node: find_nics_in_use(answers.hcas.get(node), platforms.get(node), own.get(node, ())) for node in nodes}
    return {node: used for node, used in found.items() if used is not None}


def _find_policy_entries(
    fabrics: typing.Iterable[Fabric], operators: OperatorFacts
) -> typing.Optional[dict[str, list[Item]]]:
    """Return what the existing NicClusterPolicy contains for each fabric: the entries of its device plugins, as far as
    no other field manager wrote their configuration. The list is empty for a fabric with IPoIB that has no entry.
    Fabrics for which the policy contains nothing are left out. Return None if the policy could not be read.

    :param operators: observed operators, with the NicClusterPolicies
    """
    policy = next((item for item in operators.nic_policies if item.name == NIC_POLICY), None)
    if policy is None:
        return None if any(_POLICIES in error for error in operators.errors) else {}
    found: dict[str, list[Item]] = {}
    for part, entries in _DEVICE_PLUGINS.items():
        if part in policy.owners:
            continue
        try:
            config = decode_json(policy.configs.get(part) or "{}", part, unique=False)
        except ParseError:
            continue  # the device plugin cannot read it either
        listed = config.get(entries) if isinstance(config, dict) else None
        for fabric in fabrics:
            mine = [
                entry
                for entry in (listed if isinstance(listed, list) else ())
                if isinstance(entry, dict) and entry.get("resourceName") == fabric.resource_name
            ]
            if mine and _find_device_plugin(fabric) == part:
                found[fabric.name] = mine
    if policy.ours:
        for fabric in fabrics:
            if attachment_kind(fabric) == IPOIB:
                found.setdefault(fabric.name, [])
    return found


def _find_device_plugin(fabric: Fabric) -> str:
    """Return the key of the device plugin in the NicClusterPolicy that offers the resource of a fabric. Return an empty
    text if the fabric needs no device plugin of that policy.
    """
    if fabric.profile == "rdma_shared":
        return "rdmaSharedDevicePlugin"
    return "sriovDevicePlugin" if attachment_kind(fabric) == HOST_DEVICE else ""


def _find_host_needs(
    needs: HostNeeds,
    nodes: typing.Sequence[str],
    operators: OperatorFacts,
    platforms: typing.Mapping[str, ObservedPlatform],
) -> HostNeeds:
    """Return the settings that fabrics need on the hosts. The kernel arguments are left out if no MachineConfig has to
    set them: no node is in a MachineConfigPool (stage platform sets the arguments on such nodes), and all nodes
    already run with all arguments.

    :param operators: observed operators, with the MachineConfigPools
    :param platforms: observed platform of each node
    """
    pooled = any(node.machine_config for node in operators.nodes if node.name in nodes)
    seen = [platforms.get(node, ObservedPlatform()) for node in nodes]
    runs = [
        set(one.value.kernel_arguments or ()) if one.error is None and one.value is not None else set() for one in seen
    ]
    running = bool(runs) and all(arguments.issuperset(needs.kernel_arguments) for arguments in runs)
    return dataclasses.replace(needs, kernel_arguments=()) if running and not pooled else needs


def list_targets(
    intent: Intent, nodes: typing.Sequence[str], applied: typing.Sequence[AppliedObject], every: bool = False
) -> tuple[Target, ...]:
    """Return the target of each fabric: the state to wait for. A fabric has a target if objects of it were applied, and
    the API server refused none of them. For a fabric with VFs, only its SriovNetworkNodePolicies count as its objects.
    A fabric whose profile selects no HCAs has a target even if no object was applied.

    :param nodes: names of the nodes that each target waits for
    :param applied: outcomes of the applied objects
    :param every: whether to return the targets of all fabrics with VFs, and of no other fabrics, even if no object was
        applied. This is for the removal of their VFs
    """
    chosen = []
    for fabric in intent.fabrics:
        its = find_traits(fabric)
        mine = [
            item
            for item in applied
            if item.fabric == fabric.name and (item.kind == "SriovNetworkNodePolicy" or not its.functions)
        ]
        there = (its.functions or not every) and (mine or every or not its.members)
        if there and not any(item.action == "refused" for item in mine):
            chosen.append(
                make_target(fabric, intent.cluster, tuple(item.name for item in mine if its.functions), tuple(nodes))
            )
    return tuple(chosen)


def make_target(fabric: Fabric, cluster: ClusterIntent, policies: tuple[str, ...], nodes: tuple[str, ...]) -> Target:
    """Return the target of a fabric: the state that the nodes and the operators have to reach after its objects are
    applied.

    :param policies: names of the applied SriovNetworkNodePolicies
    :param nodes: names of the nodes on which the fabric must work
    """
    return Target(
        fabric=fabric.name,
        policies=policies,
        resource=resource_of(fabric, cluster),
        attachment=attachment_name(fabric),
        nodes=nodes,
        hcas_per_node=fabric.select.hcas_per_node,
        predicates=find_traits(fabric).predicates,
        objects=list_reporting_objects(fabric),
        plugin=network.render_plugin(fabric, cluster),
        pool=(
            f"{fabric.pool.kind}.nv-ipam.nvidia.com {fabric.pool.namespace}/{fabric.pool.name}"
            if fabric.pool and not find_traits(fabric).functions
            else ""
        ),
        offers=count_pods_on_a_node(fabric),
        exact=find_traits(fabric).shared,
    )


def _list_functions(
    intent: Intent, answers: NodeAnswers, nodes: typing.Iterable[str], policies: typing.Iterable[Policy]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the PCI addresses of the physical functions that belong to each fabric, by fabric and node. A node has no
    addresses if its HCAs were not read, or cannot be identified. Such a node is left out if the fabric already has one
    policy for all nodes with the addresses of the other nodes: that policy was made when all nodes were known.

    :param nodes: names of the nodes on which the fabrics must work
    :param policies: policies in the cluster
    """
    present = {policy.name: policy for policy in policies}
    found = {}
    for fabric in intent.fabrics:
        members = answers.members(fabric).members
        seen = {
            node: tuple(member.hca.pci.address for member in members.get(node, ()) if member.hca.pci)
            for node in dict.fromkeys((*members, *nodes))
        }
        known = {node: addresses for node, addresses in seen.items() if addresses}
        common = present.get(policy_name(fabric.name))
        applied = common is not None and {tuple(sorted(one)) for one in known.values()} == {
            tuple(sorted(common.root_devices))
        }
        found[fabric.name] = known if applied else seen
    return found
