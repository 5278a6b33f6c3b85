# SPDX-License-Identifier: GPL-3.0-or-later

"""The proposal of one fabric of the intent."""

from __future__ import annotations

import collections
import re
import typing

from ..._analysis.fleet.hca_locations import collect_places, number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import resolve_members
from ..._analysis.fleet.vendors import find_vendor_with
from ..._model.intent.intent import Fabric, Select
from ..._model.intent.networks import Network
from ..._model.intent.proposal import Blank, Entry, Section, Value
from ..._model.operators.sriov_operator import OperatorFacts
from .groups import HcaGroup, compute_rate, explain_unfit, link_of, model_of
from .inputs import Nodes, ProposalInputs
from .networks import Networks
from .room import propose_pods_section

#: VFs of an HCA where firmware offers more: pods of a node that share an HCA are seldom more
USUAL_FUNCTIONS = 8
# share of the HCAs that must be on their rail's leaf: a few cables may be swapped, and stage fabric names them
_ON_RAIL = 0.8
#: label of GPU feature discovery with the model of a node's GPUs (NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery)
GPU_MODEL = "nvidia.com/gpu.product"
#: of the class of the H100 and above, and the A100 before them, by the names that the driver gives them
_FAST_GPU = re.compile(r"\b(A100|A800|G?H[0-9]{2,3}|G?B[0-9]{3})\b")


def propose_fabric_section(
    name: str, group: HcaGroup, alone: bool, seen: ProposalInputs, nodes: Nodes, networks: Networks
) -> Section:
    resource = f"rdma_{name.replace('-', '_')}"
    functions = _propose_functions(group)
    named = Value(name, "any name; findings and objects use it")
    entries: list[tuple[str, Entry]] = [
        ("name", named),
        ("profile", _propose_profile(group, seen.operators)),
        ("select", _build_select_section(group, alone, nodes)),
    ]
    entries += [
        ("virtual_functions", functions),
        ("resource_name", Value(resource, "any name; pods request the VFs by this name")),
        ("network", _propose_network(name, group, seen.namespace)),
        ("ipam", _propose_ipam(name, group, functions, seen, networks)),
    ]
    if group.infiniband:
        entries.append(("rails", _propose_rails(group, seen)))
    pods = propose_pods_section(group, seen.room)
    if pods is not None:
        entries.append(("pods", pods))
    models = collections.Counter(map(model_of, group.all))
    found = ", ".join(f"{count} HCAs of model {model}" for model, count in sorted(models.items()))
    return Section(tuple(entries), f"{group.why}: {found}, {_find_rates(group)}, on {len(group.members)} nodes")


def _find_rates(group: HcaGroup) -> str:
    rates = sorted({compute_rate(hca) for hca in group.all})
    return " and ".join(f"{rate:g} Gb/s" for rate in rates)


def _propose_profile(group: HcaGroup, operators: typing.Optional[OperatorFacts]) -> Value:
    gpus = _describe_gpus(group, operators)
    if group.infiniband:
        return Value("sriov_infiniband", f"the ports are InfiniBand, and the HCAs support virtual functions{gpus}")
    return Value(
        "sriov_ethernet", f"the ports are Ethernet with RDMA (RoCE), and the NICs support virtual functions{gpus}"
    )


def _describe_gpus(group: HcaGroup, operators: typing.Optional[OperatorFacts]) -> str:
    """Return a text about whether jobs on several nodes need RDMA, judged by the GPU model of the group's nodes. Return
    an empty text if no node label names the model.

    :param group: HCAs of the fabric
    :param operators: cluster facts with the node labels; None if they could not be read
    """
    nodes = operators.nodes if operators else ()
    models = sorted(
        {node.labels[GPU_MODEL] for node in nodes if node.name in group.members and node.labels.get(GPU_MODEL)}
    )
    if not models:
        return ""
    fast = [model for model in models if _FAST_GPU.search(model)]
    if fast:
        return (
            f"; jobs on several nodes with GPUs such as {', '.join(fast)} require them, because these GPUs produce"
            " gradients faster than a vNIC transfers them"
        )
    return (
        f"; with GPUs such as {', '.join(models)}, a network without RDMA may be sufficient: stage compare shows this"
        " with your measurements"
    )


def _build_select_section(group: HcaGroup, alone: bool, nodes: Nodes) -> Section:
    entries: list[tuple[str, Entry]] = []
    chosen = {(name, hca.name) for name, hcas in group.members.items() for hca in hcas}
    addresses = tuple(sorted({hca.pci.address for hca in group.all if hca.pci}))
    if group.infiniband:
        if alone:
            entries.append(
                (
                    "subnet_manager",
                    Value(
                        "any", f"the nodes have only one InfiniBand fabric; its subnet manager is {group.managers[0]}"
                    ),
                )
            )
        else:
            said = (
                f"the {'subnet managers' if len(group.managers) > 1 else 'subnet manager'} of this fabric that the"
                " ports report; add every subnet manager that may become its master"
            )
            entries.append(("subnet_manager", Value(group.managers, said)))
        rest = [
            hca
            for name, hcas in nodes.items()
            for hca in hcas
            if not hca.is_virtual and link_of(hca) == "InfiniBand" and explain_unfit(hca)
        ]
        if rest:
            entries.append(
                (
                    "pci",
                    Value(
                        addresses, "PCI addresses of the HCAs: other HCAs that are left out may be on the same fabric"
                    ),
                )
            )
    else:
        devices = sorted({hca.pci.device for hca in group.all if hca.pci})
        vendors = sorted({hca.pci.vendor for hca in group.all if hca.pci})
        models = {model_of(hca) for hca in group.all}
        same = [
            (name, hca.name)
            for name, hcas in nodes.items()
            for hca in hcas
            if not hca.is_virtual and hca.pci and model_of(hca) in models
        ]
        if len(vendors) == 1:
            vendor = find_vendor_with(vendors[0])
            entries.append(
                (
                    "vendor",
                    Value(vendors[0], f"PCI vendor of all NICs of the fabric: {vendor.name if vendor else 'unknown'}"),
                )
            )
        if len(models) == 1 and set(same) == chosen:
            entries.append(
                (
                    "device",
                    Value(devices[0], "PCI device ID of all NICs of the fabric, and of no other NIC of these nodes"),
                )
            )
        else:
            entries.append(
                (
                    "pci",
                    Value(
                        addresses,
                        "PCI addresses of the NICs: they are of several models, or other NICs of their model are left"
                        " out",
                    ),
                )
            )
    counts = collections.Counter(len(hcas) for hcas in group.members.values())
    entries.append(
        (
            "hcas_per_node",
            Value(group.per_node, f"{counts[group.per_node]} of {len(group.members)} nodes have this number"),
        )
    )
    return Section(tuple(entries), "HCAs of a node that belong to the fabric")


def _propose_functions(group: HcaGroup) -> typing.Union[Value, Blank]:
    totals = {hca.sriov.total if hca.sriov else None for hca in group.all}
    currents = {hca.sriov.current if hca.sriov else None for hca in group.all}
    known = [total for total in totals if total]
    if len(known) < len(totals):
        without = sum(1 for hca in group.all if not (hca.sriov and hca.sriov.total))
        why = (
            f"{without} of {len(group.all)} HCAs do not report SR-IOV: it is disabled in the firmware or the BIOS, or"
            " hidden. Stage platform reports these HCAs and the remedies."
        )
        return Blank("number of VFs of each HCA, 1 to 128", why)
    most = min(known)
    current = next(iter(currents)) if len(currents) == 1 else None
    if current:
        return Value(min(current, most), f"each HCA has this number of VFs now; the firmware supports {most}")
    few = min(most, USUAL_FUNCTIONS)
    return Value(
        few, f"the firmware of all HCAs supports {most}; each pod uses one VF, so this number of pods can share an HCA"
    )


def _propose_network(name: str, group: HcaGroup, namespace: str) -> Section:
    pods: Entry = Blank("namespace of the pods that use this network", "no object shows the namespace of your jobs")
    entries: list[tuple[str, Entry]] = [
        ("name", Value(name, "any name; pods use it in their annotation")),
        (
            "namespace",
            Value(namespace, "namespace of the pods that use this network, as you specified") if namespace else pods,
        ),
    ]
    if group.infiniband:
        entries.append(("link_state", Value("enable", "without this setting, an InfiniBand VF has no link")))
    return Section(tuple(entries), "network that pods use in their annotation")


def _propose_ipam(
    name: str, group: HcaGroup, functions: typing.Union[Value, Blank], seen: ProposalInputs, networks: Networks
) -> Section:
    each = functions.value if isinstance(functions, Value) and isinstance(functions.value, int) else 2 * USUAL_FUNCTIONS
    on_node = group.per_node * each
    count = len(seen.hcas)
    crds = seen.operators.crds if seen.operators else ()
    kind: typing.Union[Value, Blank]
    block = 0
    if "ippools.whereabouts.cni.cncf.io" in crds:
        kind = Value("whereabouts", "the cluster has the CRD of the IPPools of whereabouts")
    elif "ippools.nv-ipam.nvidia.com" in crds:
        kind, block = (
            Value("nv-ipam", "the cluster has the CRD of the IPPools of nv-ipam, and not that of whereabouts"),
            1 << max(on_node - 1, 1).bit_length(),
        )
    else:
        why = "the cluster could not be queried"
        if seen.operators:
            why = (
                "neither whereabouts nor nv-ipam was found, but not all objects could be read"
                if seen.operators.errors
                else "the cluster has neither whereabouts nor nv-ipam"
            )
        kind = Blank(
            "whereabouts, or nv-ipam with a pool; install one of them",
            f"{why}, and pods require one of them for their addresses",
        )
    need = 2 * (count + 1) * (block or on_node) + 2
    sum_of = f"({count} nodes + 1 spare node) x {group.per_node} HCAs x {each} VFs, doubled for growth"
    entries: list[tuple[str, Entry]] = [("type", kind), ("range", networks.take(need, sum_of))]
    if block:
        pool: tuple[tuple[str, Entry], ...] = (
            ("name", Value(name, "any name")),
            ("per_node_block_size", Value(block, f"{group.per_node} HCAs x {each} VFs of a node, rounded up")),
        )
        entries.append(("pool", Section(pool, "nv-ipam assigns a block of this pool to each node")))
    return Section(tuple(entries), "addresses of the VFs")


def _propose_rails(group: HcaGroup, seen: ProposalInputs) -> typing.Union[Value, Blank]:
    if group.per_node == 1:
        return Value("leaf", "each node has one HCA, which is one rail")
    hcas = {name: item.value for name, item in seen.hcas.items() if item.value is not None and item.error is None}
    subnets = {name: item.value for name, item in seen.subnets.items() if item.value is not None and item.error is None}
    chosen = tuple(sorted({hca.pci.address for hca in group.all if hca.pci}))
    fabric = Fabric("proposed", "sriov_infiniband", Network("default"), Select(group.per_node, group.managers, chosen))
    leaves: dict[str, typing.Counter[int]] = {}
    for place in collect_places(
        number_by_leaf(resolve_members(fabric, hcas, subnets), seen.topologies), seen.topologies
    ).values():
        if place.leaf is not None:
            leaves.setdefault(place.leaf, collections.Counter())[place.rail] += 1
    if not leaves:
        return Blank(
            "leaf or none",
            "no topology was read, so the leaves of the HCAs are unknown. Use leaf if HCA k of each node is on the"
            " same leaf as HCA k of the other nodes",
        )
    right, total = (
        sum(max(rails.values()) for rails in leaves.values()),
        sum(sum(rails.values()) for rails in leaves.values()),
    )
    said = f"according to the topology, {right} of {total} HCAs are on a leaf of their rail"
    return Value("leaf" if right >= _ON_RAIL * total else "none", said)
