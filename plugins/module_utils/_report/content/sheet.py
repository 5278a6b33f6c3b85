# SPDX-License-Identifier: GPL-3.0-or-later

"""The sheet of a node: its HCAs and GPUs in its PCI tree by NUMA node, the problems, and the values that are not known.

Whether a port has a problem is determined by the check of stage discover, the possible rate of a PCIe link by
``line_rates``, and the reason why a tuning setting could not be read by the check of stage tuning.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.bandwidth.pcie_rates import find_pcie
from ..._check.discover.ports import find_trouble
from ..._check.tuning.rows import explain_why_unread
from ..._model.node.hca import Hca, Port
from ..._model.node.tuning import NodeTuning
from ..._parse.node import pci_path
from .sheet_parts import MOST_GPUS, UNKNOWN, Block, Device, Sheet, SheetInputs, SheetItem, Statement, Tone
from .verdict import label_finding

#: of a GPU whose nearest HCA is at another socket, in the words of pci_path
_ACROSS = "SYS"
#: what says how to make a node answer
_OF_SILENCE = ("discover.node", "tuning.node")
#: on the way to a function, itself too: more than PCI has room for, whose buses are 256 and switches cost two each
_MOST_BRIDGES = 64


def make_sheet(seen: SheetInputs) -> Sheet:
    """Build the sheet of a node from its facts and findings. Values that the facts do not contain are shown as unknown.
    Without facts, all values of the node are unknown, and the sheet contains the remedies.
    """
    findings = [item.finding for item in seen.judged if label_finding(item) in ("fail", "unknown")]
    wrong = [
        f"{finding.check} on {finding.subject}: {finding.measured or finding.why}"
        for finding in findings
        if finding.status == "fail"
    ]
    unknown = [
        f"{finding.check} on {finding.subject}: {finding.why or finding.measured}"
        for finding in findings
        if finding.status != "fail"
    ]
    value = seen.hcas.value if seen.hcas.error is None else None
    tree = _Tree(seen, [hca for hca in value.hcas if not hca.is_virtual] if value else [])
    lacks: list[str] = []
    if value is None:
        lacks.append(f"HCAs: {seen.hcas.error or 'no data'}")
    else:
        lacks += [f"HCAs: {error}" for error in value.errors]
    if tree.rows is None:
        lacks.append(f"GPUs, NUMA nodes and PCI: {seen.tuning.error or 'no data'}")
    blocks = tree.blocks()
    marks = [*tree.without_place, *(mark for block in blocks for mark in _list_marks(block))]
    silent = value is None or tree.rows is None
    steps = (
        tuple(dict.fromkeys(finding.remedy for finding in findings if finding.check in _OF_SILENCE)) if silent else ()
    )
    if silent and not steps:
        steps = (f"Run stages discover and tuning on {seen.node}: run site.yml again with --tags discover,tuning.",)
    return Sheet(
        seen.node,
        seen.kind,
        blocks,
        tree.ports(),
        tree.gpus(),
        tuple(dict.fromkeys([*(text for text, tone in marks if tone == "bad"), *wrong])),
        tuple(dict.fromkeys([*lacks, *(text for text, tone in marks if tone == "unknown"), *unknown])),
        seen.odd,
        steps,
    )


def _list_marks(block: Block) -> typing.Iterator[tuple[str, Tone]]:
    if block.cpus.tone:
        yield f"{block.name}: {block.cpus.text}", block.cpus.tone
    pending = list(reversed(block.items))
    while pending:
        item = pending.pop()
        yield from ((f"{item.name}: {one.text}", one.tone) for one in item.said if one.tone)
        pending += reversed(item.below)


class _Tree:
    """The PCI tree of a node with its HCAs and GPUs, and statements about them from the facts of stages discover and
    tuning.

    :ivar seen: facts of stages discover and tuning on the node
    :ivar hcas: HCAs of the node
    :ivar rows: tuning facts of the node; None if they were not read
    :ivar known: tuning facts of the node; empty facts if they were not read
    :ivar cards: PCI addresses of the GPUs that are drawn, as keys
    :ivar more: number of GPUs that are not drawn
    :ivar ways: PCI path of each HCA and GPU, by its name
    :ivar models: model of each GPU
    :ivar numa: NUMA node of each GPU
    :ivar lanes: width of the PCIe link of each GPU
    :ivar nearest: nearest HCA of each GPU, and the distance to it
    :ivar wanted: names of the HCAs that a fabric selects
    :ivar cpus: CPUs of each NUMA node
    :ivar acs: state of ACS (Access Control Services) of each PCI bridge
    :ivar between: bridges between a GPU and its nearest HCA
    """

    def __init__(self, seen: SheetInputs, hcas: typing.Sequence[Hca]) -> None:
        self.seen, self.hcas = seen, hcas
        self.rows = seen.tuning.value if seen.tuning.error is None and seen.tuning.value is not None else None
        # without a fact each row is unread, and each answer unknown; the sheet says once why
        self.known = self.rows or NodeTuning()
        cards = sorted({name for reading in self.known.rows.get("gpu_model", ()) for name in reading.where})
        self.cards, self.more = dict.fromkeys(cards[:MOST_GPUS]), max(0, len(cards) - MOST_GPUS)
        ways = ((name, _parse_pci_path(value)) for name, value in self._map_row_values("pci_way").items())
        self.ways = {name: way for name, way in ways if way is not None}
        self.models, self.numa, self.lanes = (
            self._map_row_values("gpu_model"),
            self._map_row_values("gpu_numa"),
            self._map_row_values("gpu_link_width"),
        )
        self.nearest = {
            name.partition(" ")[0]: (name.partition(" ")[2], value)
            for name, value in self._map_row_values("gpu_nic_path").items()
        }
        self.wanted = {hca.name for hca in hcas if hca.name in seen.wanted}
        self.cpus = {name.rpartition(" ")[2]: cpus for name, cpus in self._map_row_values("numa_cpus").items()}
        self.acs = self._map_row_values("acs")
        self.between = {
            bridge for card, (hca, _far) in self.nearest.items() for bridge in self._list_bridges_between(card, hca)
        }

    def _map_row_values(self, row: str) -> dict[str, str]:
        """Return the values of a tuning setting, by the device or other object from which each value was read. The
        result is empty if the setting was not read.

        :param row: ID of the setting
        """
        return {name: reading.value for reading in self.known.rows.get(row, ()) for name in reading.where}

    def _explain_unread_row(self, row: str) -> typing.Optional[str]:
        return explain_why_unread(self.known, row) if self.rows is not None else None

    def _list_bridges_between(self, card: str, hca: str) -> tuple[str, ...]:
        if card not in self.ways or hca not in self.ways:
            return ()
        return pci_path.list_bridges_between(self.ways[card], self.ways[hca])

    @property
    def without_place(self) -> typing.Iterator[tuple[str, Tone]]:
        """Yield the problems and unknown values that do not belong to a single item of the tree, each as text and tone
        (``bad`` or ``unknown``).
        """
        why = self._explain_unread_row("gpus") or self._explain_unread_row("gpu_model")
        count = next((reading.value for reading in self.known.rows.get("gpus", ())), "0")
        if self.more:
            yield (
                (
                    f"GPUs: {len(self.cards) + self.more} reported, more than a node can have; {self.more} of them not"
                    " shown"
                ),
                "unknown",
            )
        if why is not None:
            yield f"GPUs: {why}", "unknown"
        elif count != str(len(self.cards) + self.more):
            yield f"GPUs: {count} on PCI, but only {len(self.cards)} of them shown", "unknown"
        if self.cards and self._explain_unread_row("acs") is not None:
            yield f"ACS on the path between GPUs and HCAs: {self._explain_unread_row('acs')}", "unknown"

    def blocks(self) -> tuple[Block, ...]:
        found: dict[str, list[SheetItem]] = {}
        leaves: dict[tuple[str, str], list[tuple[tuple[str, ...], SheetItem]]] = {}
        for number, name, item in [*map(self._build_gpu_item, self.cards), *map(self._build_hca_item, self.hcas)]:
            way = self.ways.get(name)
            found.setdefault(number, [])
            if way is None:
                place = (
                    Statement("PCI path unknown", "unknown")
                    if name in self.cards or name in self.wanted
                    else Statement("PCI path not queried")
                )
                found[number].append(dataclasses.replace(item, said=(*item.said, place)))
            else:
                leaves.setdefault((number, way.root), []).append((way.functions[:-1], item))
        for (number, root), items in sorted(leaves.items()):
            found[number].append(SheetItem("root", f"host bridge {root or UNKNOWN}", (), self._group_by_bridge(items)))
        for number in self.cpus:
            found.setdefault(number, [])
        return tuple(
            Block(f"NUMA node {number}", self._of_cpus(number), tuple(items))
            for number, items in sorted(found.items(), key=lambda at: (len(at[0]), at[0]))
        )

    def _group_by_bridge(self, items: typing.Sequence[tuple[tuple[str, ...], SheetItem]]) -> tuple[SheetItem, ...]:
        """Return the PCI tree of the given items. Items directly below the current bridge come first. The next bridges
        follow in the order of their addresses, each with the items below it.

        :param items: HCAs and GPUs, each with the addresses of the bridges between the current bridge and the item
        """
        by_bridge: dict[str, list[tuple[tuple[str, ...], SheetItem]]] = {}
        ends = [item for bridges, item in items if not bridges]
        for bridges, item in items:
            if bridges:
                by_bridge.setdefault(bridges[0], []).append((bridges[1:], item))
        return (
            *ends,
            *(
                SheetItem("bridge", f"bridge {bridge}", self._describe_acs(bridge), self._group_by_bridge(rest))
                for bridge, rest in sorted(by_bridge.items())
            ),
        )

    def _describe_acs(self, bridge: str) -> tuple[Statement, ...]:
        if self.acs.get(bridge) == "redirect":
            return (Statement("ACS redirect: packets between GPU and HCA pass through the host", "bad"),)
        if self.acs.get(bridge) == "direct":
            return (Statement("ACS direct"),)
        return (Statement("ACS unknown", "unknown"),) if bridge in self.between else ()

    def _build_gpu_item(self, card: str) -> tuple[str, str, SheetItem]:
        said = [Statement(self.models[card]), self._describe_gpu_lanes(card), self._describe_nearest_hca(card)]
        return self._numa_of_gpu(card), card, SheetItem("gpu", f"GPU {card}", tuple(said))

    def _describe_gpu_lanes(self, card: str) -> Statement:
        lanes = self.lanes.get(card)
        if lanes is None:
            return Statement("link width unknown", "unknown")
        return Statement("all lanes" if lanes == "full" else f"link {lanes}", "" if lanes == "full" else "bad")

    def _describe_nearest_hca(self, card: str) -> Statement:
        if card not in self.nearest:
            no_hca = (
                self._explain_unread_row("gpu_nic_path") is None
                and self.rows is not None
                and not self.known.rows.get("gpu_nic_path")
            )
            return (
                Statement("no HCA with an RDMA device")
                if no_hca
                else Statement("path to the nearest HCA unknown", "unknown")
            )
        hca, far = self.nearest[card]
        if far == _ACROSS:
            return Statement(f"path to the nearest HCA {hca} crosses the CPU sockets ({far})", "bad")
        return Statement(
            f"{far} to {hca}" if far in pci_path.DISTANCES else f"path to {hca} unknown",
            "" if far in pci_path.DISTANCES else "unknown",
        )

    def gpus(self) -> tuple[Device, ...]:
        return tuple(
            Device(
                card,
                (
                    Statement(self.models[card]),
                    _or_unknown(self._numa_of_gpu(card)),
                    self._describe_gpu_lanes(card),
                    self._describe_nearest_hca(card),
                ),
            )
            for card in self.cards
        )

    def _build_hca_item(self, hca: Hca) -> tuple[str, str, SheetItem]:
        said = [*(self._describe_port_state(hca, port) for port in hca.all_ports), *self._describe_pcie_link(hca)]
        if hca.name in self.seen.wanted and not hca.all_ports:
            said.insert(0, Statement("no port reported", "unknown"))
        rail = self.seen.rails.get(hca.name)
        words = rail or ("rail unknown" if hca.name in self.seen.wanted else "on no fabric of the intent")
        return (
            self._numa_of_hca(hca),
            hca.name,
            SheetItem(
                "hca",
                f"HCA {hca.name}",
                (Statement(words, "" if rail or hca.name not in self.seen.wanted else "unknown"), *said),
            ),
        )

    def _numa_of_gpu(self, card: str) -> str:
        return self._resolve_numa_node(self.numa.get(card))

    def _numa_of_hca(self, hca: Hca) -> str:
        return self._resolve_numa_node(None if hca.pci is None or hca.pci.numa_node is None else str(hca.pci.numa_node))

    def _resolve_numa_node(self, numa: typing.Optional[str]) -> str:
        """Return the number of a NUMA node as text. Some platforms do not report it. In this case return the only NUMA
        node, or ``unknown`` if there are several or their number is not known.

        :param numa: NUMA node as it was read; None or ``none`` if the platform does not report it
        """
        if numa is not None and numa != "none":
            return numa
        return (
            next(iter(self.cpus)) if len(self.cpus) == 1 and self._explain_unread_row("numa_cpus") is None else UNKNOWN
        )

    def _of_cpus(self, number: str) -> Statement:
        known = self.cpus.get(number)
        return Statement(f"CPUs {known}") if known else Statement("CPUs unknown", "unknown")

    def _mute_unused_hca(self, hca: Hca, said: Statement) -> Statement:
        """Return a statement about an HCA unchanged if the intent uses the HCA. Otherwise return it without its tone,
        because problems of unused HCAs are not marked.

        :param said: statement about the HCA
        """
        return said if hca.name in self.seen.wanted else Statement(said.text)

    def _describe_port_state(self, hca: Hca, port: Port) -> Statement:
        if port.link_layer == "InfiniBand":
            wrong = find_trouble(port)
            if wrong is not None:
                return self._mute_unused_hca(
                    hca, Statement(f"port {port.number} {wrong.measured}", "bad" if wrong.known else "unknown")
                )
        elif port.state is None:
            return self._mute_unused_hca(hca, Statement(f"port {port.number} state unknown", "unknown"))
        elif port.state != "ACTIVE":
            down = f"port {port.number} {port.state}, {port.physical_state or 'link unread'}"
            return (
                Statement(down) if hca.name in self.seen.moved else self._mute_unused_hca(hca, Statement(down, "bad"))
            )
        if port.rate_gbps is None:
            return self._mute_unused_hca(hca, Statement(f"port {port.number} ACTIVE, rate unknown", "unknown"))
        return Statement(f"port {port.number} ACTIVE, {port.rate_gbps:g} Gb/s")

    def _describe_pcie_link(self, hca: Hca) -> typing.Iterator[Statement]:
        """Yield one statement about the PCIe link of an HCA. Yield nothing for an HCA without a PCI function, and for a
        virtual device of a hypervisor, which has no link.
        """
        if hca.pci is None or hca.pci.driver == "virtio-pci":
            return
        link = hca.pci.link
        if link.current_speed is None or link.current_width is None or link.max_speed is None or link.max_width is None:
            yield self._mute_unused_hca(hca, Statement("PCIe link unknown", "unknown"))
            return
        pcie, now = find_pcie(link), f"PCIe {link.current_speed:g} GT/s x{link.current_width}"
        card = f"{link.max_speed:g} GT/s x{link.max_width}"
        if pcie.trained_down:
            yield self._mute_unused_hca(hca, Statement(f"{now}, below the capability of card ({card}) and slot", "bad"))
        elif link.current_speed < link.max_speed or link.current_width < link.max_width:
            yield self._mute_unused_hca(hca, Statement(f"{now}, limited by its slot; the card supports {card}", "bad"))
        else:
            yield Statement(now)

    def ports(self) -> tuple[Device, ...]:
        """Return the lines of the table of ports: one for each port, and one for each HCA without ports."""
        found = []
        for hca in self.hcas:
            wanted = hca.name in self.seen.wanted
            rail = self.seen.rails.get(hca.name)
            of_card = (
                Statement(hca.hca_type or (f"{hca.pci.vendor}:{hca.pci.device}" if hca.pci else UNKNOWN)),
                _or_unknown(hca.board),
                _or_unknown(hca.firmware),
                _or_unknown(self._numa_of_hca(hca)),
                Statement(rail) if rail else Statement(UNKNOWN, "unknown") if wanted else Statement("none"),
            )
            link = next(self._describe_pcie_link(hca), Statement("no link"))
            link = Statement(f"{hca.pci.address if hca.pci else 'no PCI function'}: {link.text}", link.tone)
            for port in hca.all_ports:
                lid = (
                    Statement(UNKNOWN, "unknown")
                    if f"ports/{port.number}/lid" in hca.unread
                    else Statement(str(port.lid or "none"))
                )
                found.append(
                    Device(
                        f"{hca.name} port {port.number}", (*of_card, self._describe_port_state(hca, port), lid, link)
                    )
                )
            if not hca.all_ports:
                found.append(
                    Device(
                        hca.name,
                        (
                            *of_card,
                            self._mute_unused_hca(hca, Statement("no port reported", "unknown")),
                            Statement("none"),
                            link,
                        ),
                    )
                )
        return tuple(found)


def _or_unknown(text: typing.Optional[str]) -> Statement:
    return Statement(text) if text and text != UNKNOWN else Statement(UNKNOWN, "unknown")


def _parse_pci_path(value: str) -> typing.Optional[pci_path.Path]:
    """Return a PCI path from its text in the tuning facts: the host bridge and the PCI addresses below it, separated by
    blanks. Return None if the text contains no address, or more than _MOST_BRIDGES.
    """
    root, _blank, functions = value.partition(" ")
    found = tuple(functions.split())
    return pci_path.Path(root, found) if 0 < len(found) <= _MOST_BRIDGES else None
