# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is -> the intent that fits it. Each value carries from what it was concluded; what nothing shows is a blank for the user to fill in."""

from __future__ import annotations

import collections
import dataclasses
import ipaddress
import typing

from .._check.fleet.hcas_of_fabric import resolve
from .._check.fleet.places import by_leaf, places
from .._model.addresses import AddressFacts
from .._model.fabric import ObservedSubnets, ObservedTopologies, SubnetManager
from .._model.hca import Hca, ObservedHcas
from .._model.intent import ClusterIntent, Fabric, Network, Select
from .._model.load import to_data
from .._model.proposal import Blank, Entry, LeftOut, Proposal, Section, Sections, Value, data_of
from .._model.sriov_operator import OperatorFacts

#: PCI vendor of NVIDIA's network adapters, and its adapters with processors of their own: BlueField 1 to 4 (pci.ids)
NVIDIA = "15b3"
BLUEFIELDS = ("a2d2", "a2d6", "a2dc", "a2df")
#: VFs of an HCA where firmware offers more: pods of a node that share an HCA are seldom more
USUAL_FUNCTIONS = 8
# private networks (RFC 1918), those first that sites use least. Those of RFC 6598 (100.64.0.0/10) are left alone: OVN-Kubernetes has some of them inside,
# and no object of the cluster shows it
_PRIVATE = tuple(map(ipaddress.IPv4Network, ("172.16.0.0/12", "10.0.0.0/8", "192.168.0.0/16")))
# of Docker's bridge, which no object of the cluster shows either
_DOCKER = ipaddress.IPv4Network("172.17.0.0/16")
# around the address of a node: how long the prefix of its network is, no object says
_AROUND_NODE = 16
_SMALLEST, _LARGEST = 24, 12
# of a node that the operator drains, and that it reboots as well
_DRAIN_SECONDS, _REBOOT_SECONDS = 300, 900
# share of the HCAs that must be on their rail's leaf: a few cables may be swapped, and stage fabric names them
_ON_RAIL = 0.8


@dataclasses.dataclass(frozen=True)
class Seen:
    """What a proposal is made of. None: nobody could be asked, and why is in ``unread``.

    :ivar unread: what could not be asked of the cluster, and why
    """

    hcas: typing.Mapping[str, ObservedHcas]
    subnets: typing.Mapping[str, ObservedSubnets]
    topologies: typing.Mapping[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    addresses: typing.Optional[AddressFacts] = None
    operators: typing.Optional[OperatorFacts] = None
    unread: typing.Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Group:
    """HCAs of one fabric.

    :ivar managers: GUIDs of its subnet managers, the master first; none on Ethernet
    :ivar members: by node
    :ivar why: from what it was concluded that they are on one fabric
    """

    infiniband: bool
    managers: typing.Tuple[str, ...]
    members: typing.Mapping[str, typing.Tuple[Hca, ...]]
    why: str

    @property
    def all(self) -> typing.Tuple[Hca, ...]:
        return tuple(hca for hcas in self.members.values() for hca in hcas)

    @property
    def per_node(self) -> int:
        """HCAs that most nodes have on it; of two such numbers the larger one."""
        counts = collections.Counter(len(hcas) for hcas in self.members.values())
        return max(counts, key=lambda count: (counts[count], count))


class _Out:
    """Who is left out, gathered by reason."""

    def __init__(self, nodes: typing.Collection[str]) -> None:
        self._nodes = nodes
        self._found: typing.Dict[typing.Tuple[str, str], typing.Dict[str, typing.List[str]]] = {}

    def add(self, node: str, hca: Hca, why: str) -> None:
        self._found.setdefault((_model(hca), why), {}).setdefault(node, []).append(hca.name)

    def told(self) -> typing.Iterator[LeftOut]:
        for (model, why), by_node in self._found.items():
            names = {tuple(hcas) for hcas in by_node.values()}
            if len(names) == 1 and len(by_node) > 1:
                nodes = f"all {len(by_node)} nodes" if len(by_node) == len(self._nodes) else ", ".join(by_node)
                (same,) = names
                yield LeftOut(f"{', '.join(same)} ({model}) of {nodes}", why)
            else:
                yield LeftOut("; ".join(f"{node} {', '.join(hcas)}" for node, hcas in by_node.items()) + f" ({model})", why)


def propose(seen: Seen) -> Proposal:
    """The intent for what was seen. Without any fabric the proposal has an empty list, and says in ``left_out`` why."""
    nodes = {name: item.value.hcas for name, item in seen.hcas.items() if item.value is not None and item.error is None}
    out = _Out(nodes)
    absent = tuple(
        LeftOut(f"node {name}", f"it gave no answer: {item.error or 'nothing'}. Make it answer, or take it out of the group rdma_nodes.")
        for name, item in seen.hcas.items()
        if name not in nodes
    )
    has_infiniband = any(_link(hca) == "InfiniBand" for hcas in nodes.values() for hca in hcas if not hca.is_virtual)
    groups = _infiniband(nodes, seen, out) if has_infiniband else _ethernet(nodes, out)
    if has_infiniband:
        why = "it is no InfiniBand, and the nodes have that as well: mostly it is for storage or the node itself. Add a fabric by hand."
        for name, hcas in nodes.items():
            for hca in hcas:
                if not hca.is_virtual and _link(hca) != "InfiniBand":
                    out.add(name, hca, why)
    groups.sort(key=lambda group: (-group.per_node * max(_rate(hca) for hca in group.all), group.managers))
    networks = _Networks(seen.addresses)
    items, odd = [], []
    for number, group in enumerate(groups, 1):
        items.append(_fabric(f"fabric-{number}", group, len(groups) == 1, seen, nodes, networks))
        odd += list(_odd(f"fabric-{number}", group))
    fabrics = Sections(tuple(items), _fabrics_why(groups))
    names = {f"linerate-fabric-{number}" for number in range(1, len(groups) + 1)}
    notes = (*(f"{text}: what depends on it is to be filled in." for text in seen.unread), *_partly(seen), *_holders(nodes, seen, names, not has_infiniband))
    return Proposal(fabrics, _cluster(groups, items, seen, tuple(seen.hcas)), (*absent, *odd, *out.told()), notes)


def _fabrics_why(groups: typing.Sequence[_Group]) -> str:
    if groups and groups[0].infiniband:
        return f"{len(groups)} InfiniBand {'fabric' if len(groups) == 1 else 'fabrics'}, told apart by the subnet managers that the ports see"
    return "the fastest Ethernet NICs with RDMA" if groups else "nothing that a fabric could be made of"


def _model(hca: Hca) -> str:
    return f"{hca.pci.vendor}:{hca.pci.device}" if hca.pci else "no PCI function"


def _link(hca: Hca) -> str:
    return next((port.link_layer for port in hca.all_ports if port.link_layer), "")


def _rate(hca: Hca) -> float:
    return max((port.rate_gbps or 0.0 for port in hca.all_ports), default=0.0)


def _unfit(hca: Hca) -> str:
    """Why an HCA is none that virtual functions are proposed for; empty when it is one."""
    if hca.pci is None:
        return "it has no PCI function, so no virtual functions can be made of it."
    if hca.pci.vendor != NVIDIA:
        return "its vendor is not NVIDIA, and what its firmware and driver can do is not known here. Add a fabric by hand, see docs/intent.md."
    if hca.pci.device in BLUEFIELDS:
        return (
            "it is a BlueField, and the node does not show whether it is in DPU mode, where its own processors own the ports."
            f" Look at INTERNAL_CPU_OFFLOAD_ENGINE in mlxconfig -d {hca.pci.address} query; in NIC mode add a fabric by hand."
        )
    return ""


_Nodes = typing.Mapping[str, typing.Tuple[Hca, ...]]


def _infiniband(nodes: _Nodes, seen: Seen, out: _Out) -> typing.List[_Group]:
    """One group for each fabric: HCAs whose ports see the same subnet manager, or two that see each other."""
    alias = _same_fabric(seen.topologies)
    groups: typing.Dict[str, typing.Dict[str, typing.List[Hca]]] = {}
    for name, hcas in nodes.items():
        answers = seen.subnets.get(name, ObservedSubnets())
        masters: typing.Dict[str, SubnetManager] = {}
        for item in answers.value or ():
            if item.master:
                masters.setdefault(item.rdma_device, item.master)
        for hca in hcas:
            if hca.is_virtual or _link(hca) != "InfiniBand":
                continue
            master = masters.get(hca.rdma_device or "")
            why = _unfit(hca)
            if why:
                out.add(name, hca, why)
            elif master is None:
                states = ", ".join(sorted({f"{port.state} and {port.physical_state}" for port in hca.all_ports}))
                asked = f" ({answers.error})" if answers.error else ""
                out.add(name, hca, f"no subnet manager answers through its ports, which are {states}{asked}, so its fabric is not known. Bring them up.")
            else:
                groups.setdefault(alias.get(master.guid, (master.guid,))[0], {}).setdefault(name, []).append(hca)
    result = []
    for guid, members in groups.items():
        managers = alias.get(guid, (guid,))
        result.append(_Group(True, managers, {name: tuple(hcas) for name, hcas in members.items()}, f"the ports see the subnet manager {guid}"))
    return result


def _same_fabric(topologies: typing.Mapping[str, ObservedTopologies]) -> typing.Dict[str, typing.Tuple[str, ...]]:
    """For the GUID of each subnet manager all those of its fabric, the master first."""
    found: typing.Dict[str, typing.Tuple[str, ...]] = {}
    for observed in topologies.values():
        for seen in observed.value or ():
            if seen.managers is None or seen.managers.master is None:
                continue
            others = {port.manager.guid for port in seen.managers.ports if port.manager} - {seen.managers.master}
            known = (seen.managers.master, *sorted(others))
            known = next((found[guid] for guid in known if guid in found), known)
            for guid in (seen.managers.master, *others):
                found.setdefault(guid, known)
    return found


def _ethernet(nodes: _Nodes, out: _Out) -> typing.List[_Group]:
    """The fastest NICs with RDMA. Which of them are cabled to one network no fact shows, so that they are one fabric."""
    fit: typing.Dict[str, typing.List[Hca]] = {}
    for name, hcas in nodes.items():
        for hca in hcas:
            if hca.is_virtual:
                continue
            why = _unfit(hca) or _not_roce(hca)
            if why:
                out.add(name, hca, why)
            else:
                fit.setdefault(name, []).append(hca)
    best = max((_rate(hca) for hcas in fit.values() for hca in hcas), default=0.0)
    members = {}
    for name, some in fit.items():
        for hca in some:
            if _rate(hca) < best:
                out.add(name, hca, f"its link runs at {_rate(hca):g} Gb/s and others at {best:g}: mostly it is for storage or the node itself. Add it by hand.")
        members[name] = tuple(hca for hca in some if _rate(hca) == best)
    members = {name: hcas for name, hcas in members.items() if hcas}
    why = f"Ethernet links of {best:g} Gb/s with RDMA; which network they are cabled to is not seen, so look whether it is one"
    return [_Group(False, (), members, why)] if members else []


def _not_roce(hca: Hca) -> str:
    if not hca.rdma_device:
        return "it has no RDMA device."
    if not any(port.state == "ACTIVE" for port in hca.all_ports):
        return "its port has no link. Bring it up if it is on the fabric."
    bonds = sorted({netdev.bond for netdev in hca.all_netdevs if netdev.bond})
    return f"it is part of the bond {', '.join(bonds)}, which mostly is for storage or the node itself. Add a fabric by hand." if bonds else ""


def _odd(fabric: str, group: _Group) -> typing.Iterator[LeftOut]:
    """Nodes that have another number of HCAs on it than the rest."""
    for name, hcas in group.members.items():
        if len(hcas) != group.per_node:
            what = f"it has {len(hcas)} HCAs on {fabric} ({', '.join(hca.name for hca in hcas)}) and the rest {group.per_node}."
            yield LeftOut(f"node {name}", f"{what} Repair it, or take it out of the group rdma_nodes.")


def _fabric(name: str, group: _Group, alone: bool, seen: Seen, nodes: _Nodes, networks: _Networks) -> Section:
    resource = f"rdma_{name.replace('-', '_')}"
    functions = _functions(group)
    named = Value(name, "any name will do; findings and objects bear it")
    entries: typing.List[typing.Tuple[str, Entry]] = [("name", named), ("profile", _profile(group)), ("select", _select(group, alone, nodes))]
    entries += [
        ("virtual_functions", functions),
        ("resource_name", Value(resource, "any name will do; pods ask for it")),
        ("network", _network(name, group)),
        ("ipam", _ipam(name, group, functions, seen, networks)),
    ]
    if group.infiniband:
        entries.append(("rails", _rails(group, seen)))
    models = collections.Counter(map(_model, group.all))
    found = ", ".join(f"{count} HCAs of model {model}" for model, count in sorted(models.items()))
    return Section(tuple(entries), f"{group.why}: {found}, {_rates(group)}, on {len(group.members)} nodes")


def _rates(group: _Group) -> str:
    rates = sorted({_rate(hca) for hca in group.all})
    return " and ".join(f"{rate:g} Gb/s" for rate in rates)


def _profile(group: _Group) -> Value:
    if group.infiniband:
        return Value("sriov_infiniband", "the ports are InfiniBand, and the HCAs can have virtual functions")
    return Value("sriov_ethernet", "the ports are Ethernet with RDMA (RoCE), and the NICs can have virtual functions")


def _select(group: _Group, alone: bool, nodes: _Nodes) -> Section:
    entries: typing.List[typing.Tuple[str, Entry]] = []
    chosen = {(name, hca.name) for name, hcas in group.members.items() for hca in hcas}
    addresses = tuple(sorted({hca.pci.address for hca in group.all if hca.pci}))
    if group.infiniband:
        if alone:
            entries.append(("subnet_manager", Value("any", f"there is one fabric only; its subnet manager is {group.managers[0]}")))
        else:
            said = f"the port's subnet managers: {'those' if len(group.managers) > 1 else 'the one'} of this fabric; add any that may become its master"
            entries.append(("subnet_manager", Value(group.managers, said)))
        rest = [hca for name, hcas in nodes.items() for hca in hcas if not hca.is_virtual and _link(hca) == "InfiniBand" and _unfit(hca)]
        if rest:
            entries.append(("pci", Value(addresses, "where the HCAs are: others that are left out may be on the same fabric")))
    else:
        devices = sorted({hca.pci.device for hca in group.all if hca.pci})
        same = [(name, hca.name) for name, hcas in nodes.items() for hca in hcas if not hca.is_virtual and hca.pci and hca.pci.device in devices]
        entries.append(("vendor", Value(NVIDIA, "PCI vendor of all of them: NVIDIA")))
        if len(devices) == 1 and set(same) == chosen:
            entries.append(("device", Value(devices[0], "PCI device of all of them, and of no other NIC of these nodes")))
        else:
            entries.append(("pci", Value(addresses, "where the NICs are: they are of several models, or others of their model are left out")))
    counts = collections.Counter(len(hcas) for hcas in group.members.values())
    entries.append(("hcas_per_node", Value(group.per_node, f"{counts[group.per_node]} of {len(group.members)} nodes have so many")))
    return Section(tuple(entries), "which HCAs of a node belong to the fabric")


def _functions(group: _Group) -> typing.Union[Value, Blank]:
    totals = {hca.sriov.total if hca.sriov else None for hca in group.all}
    currents = {hca.sriov.current if hca.sriov else None for hca in group.all}
    known = [total for total in totals if total]
    if len(known) < len(totals):
        without = sum(1 for hca in group.all if not (hca.sriov and hca.sriov.total))
        why = f"{without} of {len(group.all)} HCAs show no SR-IOV: it is off in firmware or BIOS, or hidden. Stage platform says which and what to do."
        return Blank("how many VFs each HCA shall have, 1 to 128", why)
    most = min(known)
    current = next(iter(currents)) if len(currents) == 1 else None
    if current:
        return Value(min(current, most), f"each HCA has so many now; firmware offers {most}")
    few = min(most, USUAL_FUNCTIONS)
    return Value(few, f"firmware of all HCAs offers {most}; each pod takes one, so that this is how many share an HCA")


def _network(name: str, group: _Group) -> Section:
    entries: typing.List[typing.Tuple[str, Entry]] = [
        ("name", Value(name, "any name will do; pods name it in their annotation")),
        ("namespace", Blank("namespace of the pods that shall use it", "nothing shows where your jobs will run")),
    ]
    if group.infiniband:
        entries.append(("link_state", Value("enable", "a VF of InfiniBand has no link of its own before that")))
    return Section(tuple(entries), "what pods name in their annotation")


def _ipam(name: str, group: _Group, functions: typing.Union[Value, Blank], seen: Seen, networks: _Networks) -> Section:
    each = functions.value if isinstance(functions, Value) and isinstance(functions.value, int) else 2 * USUAL_FUNCTIONS
    on_node = group.per_node * each
    count = len(seen.hcas)
    crds = seen.operators.crds if seen.operators else ()
    kind: typing.Union[Value, Blank]
    block = 0
    if "ippools.whereabouts.cni.cncf.io" in crds:
        kind = Value("whereabouts", "the cluster has its IPPools")
    elif "ippools.nv-ipam.nvidia.com" in crds:
        kind, block = Value("nv-ipam", "the cluster has its IPPools, and none of whereabouts"), 1 << max(on_node - 1, 1).bit_length()
    else:
        why = "the cluster could not be asked"
        if seen.operators:
            why = "neither was found, and not all could be read" if seen.operators.errors else "the cluster has neither"
        kind = Blank("whereabouts, or nv-ipam with a pool; install it", f"{why}, and pods need one of them for their addresses")
    need = 2 * (count + 1) * (block or on_node) + 2
    sum_of = f"{count} nodes and one to spare x {group.per_node} HCAs x {each} VFs, and as much again to grow"
    entries: typing.List[typing.Tuple[str, Entry]] = [("type", kind), ("range", networks.take(need, sum_of))]
    if block:
        pool: typing.Tuple[typing.Tuple[str, Entry], ...] = (
            ("name", Value(name, "any name will do")),
            ("per_node_block_size", Value(block, f"a node's {group.per_node} HCAs x {each} VFs, rounded up")),
        )
        entries.append(("pool", Section(pool, "nv-ipam gives each node a block of it")))
    return Section(tuple(entries), "addresses of the VFs")


class _Networks:
    """Gives out networks that overlap nothing, and none twice."""

    def __init__(self, addresses: typing.Optional[AddressFacts]) -> None:
        self._addresses = addresses
        self._taken = [_DOCKER]
        self._known = 0
        for text, kind in _in_use(addresses):
            network = ipaddress.ip_network(text, strict=False) if _is_network(text) else None
            if isinstance(network, ipaddress.IPv4Network):
                self._known += 1
                wide = kind == "node" and network.prefixlen > _AROUND_NODE
                self._taken.append(network.supernet(new_prefix=_AROUND_NODE) if wide else network)

    def take(self, addresses: int, why: str) -> typing.Union[Value, Blank]:
        """A network with so many addresses; a blank where nobody knows what is in use."""
        prefix = min(_SMALLEST, 32 - (addresses - 1).bit_length())
        if self._addresses is None or self._addresses.errors:
            seen = f"could not be read: {'; '.join(self._addresses.errors)}" if self._addresses else "could not be asked for"
            return Blank(f"a private network of /{prefix} or wider that nobody uses", f"what the cluster uses {seen}. Room: {why}")
        found = self._free(prefix) if prefix >= _LARGEST else None
        if found is None:
            return Blank(f"a network of /{prefix} that nobody uses", f"no private network of this size is free. Room: {why}")
        self._taken.append(found)
        pods = "" if self._addresses.pods or any(item.kind == "pods" for item in self._addresses.taken) else " The pods' own network is not known yet."
        beside = f"overlaps none of {self._known} networks that the cluster uses; ask your site for those outside of it.{pods}"
        return Value(str(found), f"room for {why}; {beside}")

    def _free(self, prefix: int) -> typing.Optional[ipaddress.IPv4Network]:
        """From the upper end of each private network down: people begin at the lower one."""
        size = 1 << (32 - prefix)
        for private in _PRIVATE:
            start = int(private.broadcast_address) + 1 - size
            while start >= int(private.network_address):
                network = ipaddress.IPv4Network((start, prefix))
                met = [int(item.network_address) for item in self._taken if item.overlaps(network)]
                if not met:
                    return network
                start = min(*met, start) // size * size - size
        return None


def _in_use(addresses: typing.Optional[AddressFacts]) -> typing.Iterator[typing.Tuple[str, str]]:
    if addresses is not None:
        yield from ((item.network, item.kind) for item in addresses.taken)
        yield from ((pool.network, "attachment") for pool in addresses.pools)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _rails(group: _Group, seen: Seen) -> typing.Union[Value, Blank]:
    if group.per_node == 1:
        return Value("leaf", "one HCA a node is one rail")
    hcas = {name: item.value for name, item in seen.hcas.items() if item.value is not None and item.error is None}
    subnets = {name: item.value for name, item in seen.subnets.items() if item.value is not None and item.error is None}
    chosen = tuple(sorted({hca.pci.address for hca in group.all if hca.pci}))
    fabric = Fabric("proposed", "sriov_infiniband", Network("default"), Select(group.per_node, group.managers, chosen))
    leaves: typing.Dict[str, typing.Counter[int]] = {}
    for place in places(by_leaf(resolve(fabric, hcas, subnets), seen.topologies), seen.topologies).values():
        if place.leaf is not None:
            leaves.setdefault(place.leaf, collections.Counter())[place.rail] += 1
    if not leaves:
        return Blank("leaf or none", "no topology was read, so nothing shows on which leaf the HCAs are; leaf: HCA k of each node is on the others' HCA k's")
    right, total = sum(max(rails.values()) for rails in leaves.values()), sum(sum(rails.values()) for rails in leaves.values())
    said = f"by the topology {right} of {total} HCAs are on a leaf of their rail"
    return Value("leaf" if right >= _ON_RAIL * total else "none", said)


def _cluster(groups: typing.Sequence[_Group], items: typing.Sequence[Section], seen: Seen, nodes: typing.Tuple[str, ...]) -> Section:
    disruption = _disruption(groups, items)
    seconds = len(nodes) * (_REBOOT_SECONDS if disruption.value == "reboot" else _DRAIN_SECONDS)
    wait = max(ClusterIntent().wait_seconds, seconds)
    entries: typing.Tuple[typing.Tuple[str, Entry], ...] = (
        ("node_selector", _node_selector(seen.operators, nodes)),
        _resource_prefix(seen.operators),
        ("wait_seconds", Value(wait, f"the operator takes {len(nodes)} nodes one after the other; set node_pool.max_unavailable for more at a time")),
        ("disruption", disruption),
    )
    return Section(entries, "what all fabrics share")


def _disruption(groups: typing.Sequence[_Group], items: typing.Sequence[Section]) -> Value:
    wanted = [data_of(item).get("virtual_functions") for item in items]
    there = all(hca.sriov and hca.sriov.current == count for group, count in zip(groups, wanted) for hca in group.all)
    if there:
        return Value("drain", "the VFs are there already; a policy that is new to them drains nodes one after the other: their pods move")
    return Value("reboot", "VFs are to be made, and the first policy on ConnectX mostly changes firmware: each node is drained and reboots, one by one")


def _resource_prefix(operators: typing.Optional[OperatorFacts]) -> typing.Tuple[str, Entry]:
    """What the operator puts before the names of resources. Where it is needs no key: each stage sees that."""
    usual = ClusterIntent().resource_prefix
    key, hint = "resource_prefix", "prefix of the device plugin's resources"
    if operators is None:
        return key, Blank(hint, "the cluster could not be asked")
    if len(operators.installations) == 1:
        (found,) = operators.installations
        by = f"the operator {found.deployment.name} {found.version}".strip()
        where = f"{by} in {found.deployment.namespace}, installed by {found.origin}"
        return key, Value(found.resource_prefix or usual, f"RESOURCE_PREFIX of {where}" if found.resource_prefix else f"the default of {where}: it does not say")
    if operators.installations:
        names = ", ".join(item.deployment.namespace for item in operators.installations)
        return key, Blank(hint, f"there are {len(operators.installations)} SR-IOV operators, in {names}, and one only may be")
    if operators.errors:
        return key, Blank(hint, "none was found, and not all could be read: see the notes above")
    return key, Value(usual, f"no operator is there yet; this is its default, and operators_install: true installs it into {operators.namespace}")


def _node_selector(operators: typing.Optional[OperatorFacts], nodes: typing.Tuple[str, ...]) -> typing.Union[Section, Blank]:
    label = ClusterIntent().node_selector
    ((key, value),) = label.items()
    hint = "a mapping with a label of the nodes that take part, and of no other"
    if operators is None:
        return Blank(hint, "the cluster could not be asked")
    bearing = {node.name for node in operators.nodes if node.labels.get(key) == value}
    if set(nodes) <= bearing:
        others = sorted(bearing - set(nodes))
        more = f"; so do {', '.join(others)}, which take no part here and would get VFs as well" if others else ""
        return Section(((key, Value(value, f"all {len(nodes)} nodes have it, by node feature discovery{more}")),), "which nodes take part")
    without = sorted(set(nodes) - bearing)
    known = {node.name for node in operators.nodes}
    strangers = [name for name in without if name not in known]
    if strangers and operators.errors:
        return Blank(hint, f"of {', '.join(strangers)} no labels are known, and not all could be read: see the notes above")
    why = f"the cluster has no node of the name {', '.join(strangers)}" if strangers else f"{', '.join(without)} lack the usual label {key}: {value}"
    return Blank(hint, f"{why}; a label of your own: kubectl label node NODE example.com/rdma=true")


def _partly(seen: Seen) -> typing.Iterator[str]:
    """What could be read in part only."""
    for name, item in seen.hcas.items():
        if item.value is not None and item.value.errors:
            yield f"of node {name} could not be read: {'; '.join(item.value.errors)}."
    if seen.operators is not None and seen.operators.errors:
        yield f"of the operators could not be read: {'; '.join(seen.operators.errors)}."


def _holders(nodes: _Nodes, seen: Seen, ours: typing.Container[str], ethernet: bool) -> typing.Iterator[str]:
    """Who has what the fabrics will want."""
    if ethernet:
        yield "which NIC carries a node's own addresses is not seen: look whether one of these does, since it loses its link while VFs are made."
    for policy in seen.operators.policies if seen.operators else ():
        if policy.name not in ours:
            what = f"{policy.vfs_count} VFs of {', '.join(policy.root_devices or policy.pf_names) or policy.vendor or 'any NIC'} as {policy.resource_name}"
            yield f"SriovNetworkNodePolicy {policy.name} makes {what}: where it selects the same HCAs, remove it, since each policy undoes the other."
    held = {name: sum(hca.held is not None for hca in hcas) for name, hcas in nodes.items()}
    busy = {name: count for name, count in held.items() if count}
    if busy:
        said = ", ".join(f"{name} {count}" for name, count in busy.items())
        yield f"Pods hold functions now ({said}); a drain ends these pods."


def difference(proposal: Proposal, fabrics: typing.Any, cluster: typing.Any) -> typing.Tuple[str, ...]:
    """Where an intent that is there says something else than the proposal, one line each. What a proposal leaves open is no difference.

    Fabrics are compared in their order. Names and ranges are the user's to give, and no difference; neither is what the proposal says nothing about.

    :param fabrics: value of ``rdma_fabrics``, and ``cluster`` that of ``rdma_cluster``; None where there is none
    """
    lines: typing.List[str] = []
    there = {"rdma_fabrics": to_data(fabrics), "rdma_cluster": to_data(cluster)}
    if isinstance(fabrics, (list, tuple)) and len(fabrics) != len(proposal.fabrics.items):
        lines.append(f"rdma_fabrics: {len(fabrics)} fabrics; proposed are {len(proposal.fabrics.items)}")
    _differ(proposal.variables, there, "", lines)
    return tuple(lines)


#: what has many right values
_FREE = ("name", "resource_name", "range", "wait_seconds")


def _differ(entry: Entry, there: typing.Any, path: str, lines: typing.List[str]) -> None:
    if there is None:
        return
    if isinstance(entry, Section) and isinstance(there, dict):
        for key, item in entry.entries:
            if key not in _FREE:
                _differ(item, there.get(key), f"{path}.{key}" if path else key, lines)
    elif isinstance(entry, Sections) and isinstance(there, list):
        for index, (item, other) in enumerate(zip(entry.items, there)):
            _differ(item, other, f"{path}[{index}]", lines)
    elif isinstance(entry, Value) and _listed(data_of(entry)) != _listed(there):
        lines.append(f"{path}: {there}; proposed is {data_of(entry)}: {entry.why}")


def _listed(value: typing.Any) -> typing.Any:
    """One subnet manager may be written as a list of one, or without it."""
    return value if isinstance(value, list) else [value]
