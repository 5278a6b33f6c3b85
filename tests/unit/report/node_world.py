# SPDX-License-Identifier: GPL-3.0-or-later

"""GPU servers for the world of the report: two sockets with two PCIe switches each, below each of them two GPUs with an
HCA each, and what may be wrong."""

from __future__ import annotations

import dataclasses
import functools
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.discover import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import check as fabric
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform import check as platform
from ansible_collections.linerate.rdma.plugins.module_utils._check.tuning import check as tuning
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.clock import NodeClock, ObservedClock
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FirmwareSetting,
    HcaFirmware,
    NodeFirmware,
    ObservedFirmware,
    ReportedSetting,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    NodePlatform,
    ObservedPlatform,
    PciEvidence,
    SriovCapability,
    VfMemory,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount
from ansible_collections.linerate.rdma.tests.unit.report.report_world import (
    FINISHED,
    RUN,
    STARTED,
    Made,
    World,
    fabrics,
    records,
    seen,
)

Hcas = dict[str, ObservedHcas]
Tunings = dict[str, ObservedTuning]
Firmware = dict[str, ObservedFirmware]


@dataclasses.dataclass(frozen=True)
class Servers:
    """What the nodes show."""

    hcas: Hcas
    tunings: Tunings
    firmware: Firmware

    def hca(self, node: str, number: int, change: typing.Callable[[Hca], Hca]) -> Servers:
        """The same with one HCA changed."""
        value = self.hcas[node].value
        assert value is not None
        hcas = tuple(change(hca) if place == number else hca for place, hca in enumerate(value.hcas))
        return dataclasses.replace(self, hcas={**self.hcas, node: ObservedHcas(NodeHcas(hcas))})

    def row(self, node: str, name: str, *readings: RowReading) -> Servers:
        """The same with one row of a node changed."""
        value = self.tunings[node].value
        assert value is not None
        return dataclasses.replace(
            self,
            tunings={
                **self.tunings,
                node: ObservedTuning(dataclasses.replace(value, rows={**value.rows, name: readings})),
            },
        )

    def unread(self, node: str, name: str, why: str) -> Servers:
        value = self.tunings[node].value
        assert value is not None
        rows = {row: shown for row, shown in value.rows.items() if row != name}
        return dataclasses.replace(self, tunings={**self.tunings, node: ObservedTuning(NodeTuning(rows, {name: why}))})

    def silent(self, node: str, why: str) -> Servers:
        """The same with a node that gave no answer."""
        return Servers(
            {**self.hcas, node: ObservedHcas(error=why)},
            {**self.tunings, node: ObservedTuning(error=why)},
            {**self.firmware, node: ObservedFirmware(error=why)},
        )

    def runs(self, node: str, address: str, version: str) -> Servers:
        """The same with an HCA of other firmware, by the driver and by the tools."""
        told = self.firmware[node].value
        assert told is not None
        hcas = tuple(
            dataclasses.replace(hca, running=ReportedSetting(version, "sysfs")) if hca.address == address else hca
            for hca in told.hcas
        )
        shown = dataclasses.replace(
            self, firmware={**self.firmware, node: ObservedFirmware(dataclasses.replace(told, hcas=hcas))}
        )
        return shown.hca(node, int(address[5:7], 16) - 0x10, lambda hca: dataclasses.replace(hca, firmware=version))


def socket(world: World, rail: int) -> int:
    return 2 * rail // max(2, world.rails)


def gpu(rail: int) -> str:
    return f"0000:{0x40 + rail:02x}:00.0"


def bridges(rail: int) -> tuple[str, str]:
    """The ports of the switch that lead to the GPU and to the HCA of a rail."""
    bus = 0x82 + 0x10 * (rail // 2)
    return f"0000:{bus:02x}:{2 * (rail % 2):02x}.0", f"0000:{bus:02x}:{2 * (rail % 2) + 1:02x}.0"


def _way(rail: int, bridge: str, address: str) -> str:
    bus = 0x80 + 0x10 * (rail // 2)
    return f"pci0000:{bus:02x} 0000:{bus:02x}:01.0 0000:{bus + 1:02x}:00.0 {bridge} {address}"


@functools.cache
def _tuning(rails: int) -> NodeTuning:
    world, each = World(rails=rails), range(rails)
    rows: dict[str, tuple[RowReading, ...]] = {
        row.name: (RowReading(row.training.partition("|")[0].lstrip(">=<") or "none"),) for row in ROWS
    }
    gpus, hcas = tuple(gpu(rail) for rail in each), tuple(f"mlx5_{rail}" for rail in each)
    ways = [
        _way(rail, bridge, end)
        for rail in each
        for bridge, end in zip(bridges(rail), (gpu(rail), f"0000:{0x10 + rail:02x}:00.0"))
    ]
    names = [name for rail in each for name in (gpu(rail), f"mlx5_{rail}")]
    rows.update(
        cpu_model=(RowReading("AMD EPYC 9654 96-Core Processor"),),
        numa_cpus=(RowReading("0-95,192-287", ("node 0",)), RowReading("96-191,288-383", ("node 1",))),
        hca_model=(RowReading("1021", hcas),),
        gpus=(RowReading(str(rails)),),
        gpu_model=(RowReading("10de:2330", gpus),),
        gpu_numa=tuple(
            RowReading(str(number), tuple(gpu(rail) for rail in each if socket(world, rail) == number))
            for number in (0, 1)
        ),
        gpu_link_width=(RowReading("full", gpus),),
        gpu_nic_path=(RowReading("PIX", tuple(f"{gpu(rail)} mlx5_{rail}" for rail in each)),),
        gpu_slowed=(RowReading("none", gpus),),
        acs=(RowReading("direct", tuple(bridge for rail in each for bridge in bridges(rail))),),
        pci_way=tuple(RowReading(way, (name,)) for way, name in sorted(zip(ways, names))),
    )
    return NodeTuning(rows)


def servers(world: World) -> Servers:
    hcas, tunings, firmware = {}, {}, {}
    for name, observed in seen(world)[0].items():
        assert observed.value is not None
        cards = []
        for rail, hca in enumerate(observed.value.hcas):
            assert hca.pci is not None
            cards.append(
                dataclasses.replace(
                    hca, hca_type="MT4129", pci=dataclasses.replace(hca.pci, numa_node=socket(world, rail))
                )
            )
        hcas[name] = ObservedHcas(NodeHcas(tuple(cards)))
        tunings[name] = ObservedTuning(_tuning(world.rails))
        settings = (
            FirmwareSetting("SRIOV_EN", "True(1)", "True(1)"),
            FirmwareSetting("NUM_OF_VFS", "16", "16"),
            FirmwareSetting("ATS_ENABLED", "False(0)", "False(0)"),
        )
        of_hcas = (
            HcaFirmware(
                hca.pci.address,
                "1021",
                settings=settings,
                settings_from="mstconfig",
                running=ReportedSetting(hca.firmware or "", "sysfs"),
            )
            for hca in cards
            if hca.pci
        )
        firmware[name] = ObservedFirmware(NodeFirmware(tuple(of_hcas)))
    return Servers(hcas, tunings, firmware)


def _function(address: str, rail: int) -> PciEvidence:
    offers = SriovCapability(16, 16, 0, 1, 1, True, (0,))
    return PciEvidence(
        address, "mlx5_core", 16, 0, 30 + rail, capability=offers, memory=VfMemory((0,)), last_bus=0x10 + rail
    )


def run(world: World, shown: typing.Optional[Servers] = None) -> Made:
    """Records and facts of a run, with stages discover, platform and tuning by their checks."""
    shown = shown or servers(world)
    made, subnets = records(world), seen(world)[1]
    functions = {
        name: (
            tuple(_function(hca.pci.address, rail) for rail, hca in enumerate(observed.value.hcas) if hca.pci)
            if observed.value
            else ()
        )
        for name, observed in shown.hcas.items()
    }
    platforms = {
        name: (
            ObservedPlatform(NodePlatform("6.12", "x86_64", (), ("dmar0",), 9, ("DMAR",), functions[name]))
            if shown.hcas[name].value
            else ObservedPlatform(error="no ssh")
        )
        for name in shown.hcas
    }
    facts: dict[str, typing.Any] = {
        "discover": discover.Facts(
            shown.hcas, dict.fromkeys(shown.hcas, ObservedClock(NodeClock(1000.0, True, 0.01, 999.9, 1000.1)))
        ),
        "platform": platform.Facts(shown.hcas, subnets, platforms, firmware=shown.firmware),
        "tuning": tuning.Facts(shown.hcas, shown.tunings),
        "fabric": fabric.Facts(shown.hcas, *seen(world)[1:]),
    }
    data, result = dict(made.facts), dict(made.records)
    for stage, of_stage in facts.items():
        data[stage] = to_data(of_stage)
        context = StageContext(stage, RUN, STARTED, FINISHED, False, {})
        result[stage] = judge_stage(
            context, RawIntent(fabrics(world), []), data[stage], (), (FactCount("hcas", world.nodes, 0),)
        )
    return Made(result, data)
