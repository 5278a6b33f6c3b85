# SPDX-License-Identifier: GPL-3.0-or-later

"""The two fleets that ``linerate.rdma.demo`` judges, made up and of no hardware: ``python -m tests.unit.truth.demo``
packs them.

Both are one fleet. In the second one four things are not as they should be, each in the facts alone: what they are
called is for the checks to say.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import sys
import tempfile
import typing
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES, Source
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import Link, SlowPort, Topology
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    NodePlatform,
    PciEvidence,
    VfMemory,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store import facts as fact_files
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.tests.unit.truth.breaks import kind_of
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import RATE, Fleet, Shape, healthy
from ansible_collections.linerate.rdma.tests.unit.truth.folder import ROOT, STARTED, write

#: where the archives are
SHIPPED = ROOT / "playbooks" / "files"


class _Shape(Shape):
    """Its nodes have names that no reader of a report takes for theirs."""

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"demo-{number:02d}" for number in range(1, self.nodes + 1))


SHAPE = _Shape("32 nodes of 8 HCAs", 32, 8, functions=1, partners=3)

#: node and HCA of a cable at half its width, the leaf and the spine whose link is gone, the node whose BIOS has SR-IOV
#: off, node and HCA of a narrow slot
CABLE, LEAF, SPINE, BIOS, SLOT = (
    ("demo-12", "mlx5_3"),
    "demo-leaf-5-2",
    "demo-spine-3",
    "demo-23",
    ("demo-07", "mlx5_6"),
)
#: what the run waived, so that it went on to the next fault; the demonstration waives nothing
WAIVERS = tuple(
    {"check": f"fabric.{name}", "reason": "to be corrected when the run has seen the rest"}
    for name in ("rate", "uplinks")
)

Facts = dict[Source, typing.Any]
Change = typing.Callable[[typing.Any], typing.Any]


def whole() -> Fleet:
    """The fleet as it should be."""
    fleet = healthy(SHAPE)
    facts = dict(fleet.facts)

    def named(seen: typing.Any) -> typing.Any:
        nodes = tuple(
            dataclasses.replace(node, description=f"demo-{node.description}") if node.kind == "Switch" else node
            for node in seen.topology.nodes
        )
        return dataclasses.replace(seen, topology=Topology(nodes, seen.topology.links))

    _on_topology(facts, named)
    return dataclasses.replace(fleet, facts=facts)


def faulty() -> Fleet:
    """The fleet at its first run, with its faults."""
    fleet = whole()
    facts = dict(fleet.facts)
    for name in SHAPE.names:
        _on(facts, "hcas", name, _without_functions)
        _on(facts, "platform", name, _without_their_evidence)
    _halve_cable(facts)
    _cut_uplink(facts)
    _switch_sriov_off(facts)
    _narrow_slot(facts)
    return dataclasses.replace(fleet, facts=facts)


def _halve_cable(facts: Facts) -> None:
    """Two lanes of four, as the node, the topology and iblinkinfo show it."""
    node, device = CABLE
    guid = next(hca for hca in _value(facts, "hcas", node).hcas if hca.name == device).ports[0].guid

    def halved(hca: Hca) -> Hca:
        return dataclasses.replace(hca, ports=(dataclasses.replace(hca.ports[0], width=2, rate_gbps=RATE / 2),))

    _on(facts, "hcas", node, _hca(device, halved))
    _relink(facts, lambda link: dataclasses.replace(link, width=2) if link.b.port_guid == guid else link)
    _on_topology(
        facts,
        lambda seen: dataclasses.replace(
            seen, capabilities=dataclasses.replace(seen.capabilities, slow=(SlowPort(guid, 1, "4X"),))
        ),
    )


def _cut_uplink(facts: Facts) -> None:
    """The topology without it, and so one link less that was asked for its errors and its capabilities."""
    guids = {node.description: node.guid for node in _value(facts, "topologies", SHAPE.names[0])[0].topology.nodes}
    ends = {guids[LEAF], guids[SPINE]}
    _relink(facts, lambda link: None if {link.a.guid, link.b.guid} == ends else link)

    def counted(seen: typing.Any) -> typing.Any:
        ports = 2 * len(seen.topology.links)
        reports = {name: dataclasses.replace(getattr(seen.errors, name), checked=ports) for name in ("first", "later")}
        return dataclasses.replace(
            seen,
            capabilities=dataclasses.replace(seen.capabilities, links=ports),
            errors=dataclasses.replace(seen.errors, **reports),
        )

    _on_topology(facts, counted)


def _switch_sriov_off(facts: Facts) -> None:
    """The BIOS gave virtual functions no memory, and its BMC shows the setting."""

    def without_memory(platform: NodePlatform) -> NodePlatform:
        functions = tuple(
            dataclasses.replace(item, memory=VfMemory((), (0,))) if item.capability else item
            for item in platform.functions
        )
        return dataclasses.replace(platform, functions=functions)

    def off(bios: typing.Any) -> typing.Any:
        settings = [
            dataclasses.replace(item, attributes=tuple(_disabled(item.attributes))) if item.key == "sriov" else item
            for item in bios.settings
        ]
        return dataclasses.replace(bios, settings=tuple(settings))

    _on(facts, "platform", BIOS, without_memory)
    _on(facts, "bios", BIOS, off)


def _disabled(attributes: typing.Iterable[typing.Any]) -> typing.Iterator[typing.Any]:
    return (dataclasses.replace(item, current="Disabled") for item in attributes)


def _narrow_slot(facts: Facts) -> None:
    """Eight lanes of sixteen."""
    node, device = SLOT

    def narrowed(hca: Hca) -> Hca:
        assert hca.pci is not None
        link = dataclasses.replace(hca.pci.link, current_width=8, slot_width=8)
        return dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, link=link))

    _on(facts, "hcas", node, _hca(device, narrowed))


# changes of facts


def _source(kind: str) -> Source:
    return next(item for sources in SOURCES.values() for item in sources.values() if kind_of(item) == kind)


def _value(facts: Facts, kind: str, node: str) -> typing.Any:
    return facts[_source(kind)][node].value


def _on(facts: Facts, kind: str, node: str, change: Change) -> None:
    """Change what one node answered."""
    nodes = facts[_source(kind)]
    facts[_source(kind)] = {**nodes, node: dataclasses.replace(nodes[node], value=change(nodes[node].value))}


def _on_topology(facts: Facts, change: Change) -> None:
    _on(facts, "topologies", SHAPE.names[0], lambda seen: tuple(map(change, seen)))


def _relink(facts: Facts, change: typing.Callable[[Link], typing.Optional[Link]]) -> None:
    """Change the links of the fabric; None takes one away."""

    def relinked(seen: typing.Any) -> typing.Any:
        links = tuple(link for link in map(change, seen.topology.links) if link is not None)
        return dataclasses.replace(seen, topology=Topology(seen.topology.nodes, links))

    _on_topology(facts, relinked)


def _hca(device: str, change: typing.Callable[[Hca], Hca]) -> Change:
    return lambda node: dataclasses.replace(
        node, hcas=tuple(change(hca) if hca.name == device else hca for hca in node.hcas)
    )


def _without_functions(node: NodeHcas) -> NodeHcas:
    hcas = tuple(
        dataclasses.replace(hca, sriov=dataclasses.replace(hca.sriov, current=0)) for hca in node.hcas if hca.sriov
    )
    return dataclasses.replace(node, hcas=hcas)


def _without_their_evidence(platform: NodePlatform) -> NodePlatform:
    functions: tuple[PciEvidence, ...] = tuple(item for item in platform.functions if item.capability)
    return dataclasses.replace(platform, functions=functions)


def make(folder: pathlib.Path) -> list[pathlib.Path]:
    """Pack both fleets.

    :returns: the archives
    """
    archives = []
    for name, fleet, waivers in (("healthy", whole(), ()), ("faulty", faulty(), WAIVERS)):
        # one time for all facts: the same fleet gives the same archive
        at_start = unittest.mock.patch.object(fact_files, "format_now", lambda: STARTED)
        with at_start, tempfile.TemporaryDirectory() as place:
            write(fleet, pathlib.Path(place), f"made-up-{name}", waivers, {"facts": "made up, of no hardware"})
            archives.append(folder / f"demo-{name}.tar.gz")
            pack(place, str(archives[-1]), f"made-up-{name}")
    return archives


if __name__ == "__main__":
    for path in make(SHIPPED):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
