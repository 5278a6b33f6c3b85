# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that open the renderers to playbooks. Thin doors: no decision is made here. Each is documented in the .yml file of its name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.addresses import in_use
from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.hcas_of_fabric import Member, resolve
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.wait.sriov import Target
from ansible_collections.linerate.rdma.plugins.module_utils._model.addresses import AddressFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import ObservedSubnets
from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.profiles import attachment_name, reporting, resource_of, traits
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render import network, pods
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of

Data = typing.Dict[str, typing.Any]


def _members(fabrics: typing.Any, hcas: typing.Any, subnets: typing.Any) -> typing.List[typing.Tuple[str, typing.Mapping[str, typing.Tuple[Member, ...]]]]:
    intent = parse_intent(fabrics)
    nodes = load(typing.Dict[str, ObservedHcas], hcas, "hcas")
    seen = load(typing.Dict[str, ObservedSubnets], subnets or {}, "subnets")
    read = {node: observed.value for node, observed in nodes.items() if observed.value is not None}
    ports = {node: observed.value for node, observed in seen.items() if observed.value is not None}
    return [(fabric.name, resolve(fabric, read, ports).members) for fabric in intent.fabrics]


@filter_of
def fabric_members(fabrics: typing.Any, hcas: typing.Any, subnets: typing.Any = None) -> typing.Dict[str, typing.Dict[str, typing.List[str]]]:
    """PCI addresses of each fabric's physical functions on each node. A fabric that cannot be made out has none."""
    members = _members(fabrics, hcas, subnets)
    return {name: {node: [member.hca.pci.address for member in its if member.hca.pci] for node, its in found.items()} for name, found in members}


@filter_of
def fabric_rails(fabrics: typing.Any, hcas: typing.Any, subnets: typing.Any = None) -> typing.Dict[str, typing.Dict[str, typing.Dict[str, int]]]:
    """The rail of each fabric's physical functions on each node, by their PCI addresses. A fabric that cannot be made out has none."""
    members = _members(fabrics, hcas, subnets)
    return {name: {node: {member.hca.pci.address: member.rail for member in its if member.hca.pci} for node, its in found.items()} for name, found in members}


@filter_of
def render_network(
    fabrics: typing.Any, cluster: typing.Any, members: typing.Any, nodes: typing.Any = (), addresses: typing.Any = None, waivers: typing.Any = None
) -> Data:
    """Namespaces, policies, pools and networks of all fabrics but those whose addresses somebody else uses."""
    intent = parse_intent(fabrics, waivers, cluster)
    functions = load(typing.Dict[str, typing.Dict[str, typing.Tuple[str, ...]]], members, "members")
    seen = load(typing.Optional[AddressFacts], addresses, "addresses")
    refused = in_use.refused(intent, in_use.check(intent, nodes, seen)) if seen is not None else {}
    rendered = network.render([fabric for fabric in intent.fabrics if fabric.name not in refused], intent.cluster, functions)
    return {"objects": [{"fabric": name, "object": item} for name, item in rendered.objects], "unmade": {**rendered.unmade, **refused}}


@filter_of
def render_pods(fabrics: typing.Any, cluster: typing.Any, nodes: typing.Any) -> typing.List[Data]:
    """The pods of the bandwidth stage, one a node and fabric."""
    intent = parse_intent(fabrics, None, cluster)
    return [{"fabric": fabric.name, "object": pods.pod(fabric, intent.cluster, str(node))} for fabric in intent.fabrics for node in nodes]


@filter_of
def render_targets(fabrics: typing.Any, cluster: typing.Any, nodes: typing.Any, applied: typing.Any, every: bool = False) -> typing.List[Data]:
    """What sriov_sync waits for: the fabrics of which the API server took all; with ``every``, all whose virtual functions must go."""
    intent = parse_intent(fabrics, None, cluster)
    outcomes = load(typing.Tuple[AppliedObject, ...], applied, "applied")
    targets = []
    for fabric in intent.fabrics:
        its = traits(fabric)
        mine = [item for item in outcomes if item.fabric == fabric.name and (item.kind == "SriovNetworkNodePolicy" or not its.functions)]
        there = (its.functions or not every) and (mine or every or not its.members)
        if there and not any(item.action == "refused" for item in mine):
            targets.append(to_data(target_of(fabric, intent.cluster, tuple(item.name for item in mine if its.functions), tuple(map(str, nodes)))))
    return targets


def target_of(fabric: Fabric, cluster: ClusterIntent, policies: typing.Tuple[str, ...], nodes: typing.Tuple[str, ...]) -> Target:
    """What must become of a fabric."""
    return Target(
        fabric=fabric.name,
        policies=policies,
        resource=resource_of(fabric, cluster),
        attachment=attachment_name(fabric),
        nodes=nodes,
        hcas_per_node=fabric.select.hcas_per_node,
        predicates=traits(fabric).predicates,
        objects=reporting(fabric),
        plugin=network.plugin(fabric, cluster),
        pool=f"{fabric.pool.kind}.nv-ipam.nvidia.com {fabric.pool.namespace}/{fabric.pool.name}" if fabric.pool and not traits(fabric).functions else "",
    )


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {
            "fabric_members": fabric_members,
            "fabric_rails": fabric_rails,
            "render_network": render_network,
            "render_pods": render_pods,
            "render_targets": render_targets,
        }
