# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage network, before anything is touched: from intent and facts to objects, to what speaks against them, and to what
must come of them."""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.addresses import in_use as ipam
from .._analysis.readiness.state import Target
from .._check.network.check import LintFacts
from .._check.network.lint.check import lint_all, read_held, remaining
from .._check.network.lint.policy_context import read_cluster_before
from .._model.intent.host_intent import HostNeeds
from .._model.intent.intent import ClusterIntent, Fabric, Intent
from .._model.intent.profiles import attachment_name, count_pods_on_a_node, find_traits, reporting, resource_of
from .._model.kubernetes.addresses import AddressFacts
from .._model.kubernetes.apply import AppliedObject
from .._model.node.platform import ObservedPlatform
from .._model.operators.sriov_operator import OperatorFacts
from .._parse.operators.sriov_operator import policy
from .._render.network import network
from .._render.node import host
from .node_answers import NodeAnswers

#: an object to apply and the fabric that it is for; empty for what fabrics share
Item = dict[str, typing.Any]


@dataclasses.dataclass(frozen=True)
class NetworkPlan:
    """The objects that stage network would apply.

    :ivar hosts: MachineConfigs and KubeletConfigs, which reboot nodes
    :ivar objects: what the fabrics need, without those that are held back, in the order in which they can be applied
    :ivar unmade: fabrics whose objects could not be written, each with the reason
    :ivar lint: what speaks against them
    """

    hosts: tuple[Item, ...] = ()
    objects: tuple[Item, ...] = ()
    unmade: dict[str, str] = dataclasses.field(default_factory=dict)
    lint: LintFacts = dataclasses.field(default_factory=LintFacts)


def plan(
    intent: Intent,
    nodes: typing.Sequence[str],
    answers: NodeAnswers,
    addresses: AddressFacts,
    operators: OperatorFacts,
    platforms: typing.Optional[typing.Mapping[str, ObservedPlatform]] = None,
) -> NetworkPlan:
    """Write the objects of all fabrics and judge them by what is there.

    Left out is a fabric whose addresses somebody else uses, and one with a failure of the linter that no waiver covers.

    :param nodes: names of the nodes that must take part
    :param addresses: which IP addresses the cluster uses already
    :param operators: what the operator reports of the nodes, and which policies are there
    :param platforms: with which of the wanted kernel arguments each node runs
    """
    cluster = dataclasses.replace(intent.cluster, operator_namespace=operators.namespace)
    refused = ipam.refused(intent, ipam.check(intent, nodes, addresses))
    rendered = network.render(
        [fabric for fabric in intent.fabrics if fabric.name not in refused], cluster, _list_functions(intent, answers)
    )
    # the linter reads what will be applied, and not what was meant
    policies = [(name, policy(item)) for name, item in rendered.objects if item["kind"] == "SriovNetworkNodePolicy"]
    findings = lint_all(intent.fabrics, policies, read_cluster_before(operators, answers.hcas, intent.cluster), nodes)
    stopped = read_held(findings, intent.waivers)
    objects = [{"fabric": name, "object": item} for name, item in rendered.objects]
    return NetworkPlan(
        tuple(
            {"fabric": "", "object": item}
            for item in host.render_host_configs(
                _find_host_needs(intent.cluster.host, nodes, operators, platforms or {})
            )
        ),
        tuple(network.without(remaining(objects, stopped), intent, stopped)),
        {**rendered.unmade, **refused},
        LintFacts(tuple(item for mine in findings.values() for item in mine), stopped, operators.errors),
    )


def _find_host_needs(
    needs: HostNeeds,
    nodes: typing.Sequence[str],
    operators: OperatorFacts,
    platforms: typing.Mapping[str, ObservedPlatform],
) -> HostNeeds:
    """Kernel arguments need no MachineConfig where no node has one, and each of them was seen to run with all: stage
    platform sets them there."""
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
    """Return the targets of the fabrics of which the API server accepted all objects; with ``every``, of all fabrics
    whose VFs must go."""
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
    """Return the target of a fabric."""
    return Target(
        fabric=fabric.name,
        policies=policies,
        resource=resource_of(fabric, cluster),
        attachment=attachment_name(fabric),
        nodes=nodes,
        hcas_per_node=fabric.select.hcas_per_node,
        predicates=find_traits(fabric).predicates,
        objects=reporting(fabric),
        plugin=network.render_plugin(fabric, cluster),
        pool=(
            f"{fabric.pool.kind}.nv-ipam.nvidia.com {fabric.pool.namespace}/{fabric.pool.name}"
            if fabric.pool and not find_traits(fabric).functions
            else ""
        ),
        offers=count_pods_on_a_node(fabric),
        exact=find_traits(fabric).shared,
    )


def _list_functions(intent: Intent, answers: NodeAnswers) -> dict[str, dict[str, tuple[str, ...]]]:
    """PCI addresses of each fabric's physical functions on each node. A fabric that can't be made out has none."""
    return {
        fabric.name: {
            node: tuple(member.hca.pci.address for member in members if member.hca.pci)
            for node, members in answers.members(fabric).members.items()
        }
        for fabric in intent.fabrics
    }
