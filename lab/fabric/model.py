# SPDX-License-Identifier: GPL-3.0-or-later

"""What the fabric plane is made from: the part of ``lab.yml`` that is about InfiniBand."""

from __future__ import annotations

import dataclasses
import re
import typing

from dev.steps import StepError

# ibsim takes one UDP port for control and one for each client (see lab/build/ibsim.patch)
CLIENTS = 128
# ports of a Quantum-2 that hosts and spines can use; the 65th is its aggregation node's
SWITCH_PORTS = 64
# name -> what ibsim can carry; XDR it cannot
SPEEDS = ("SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR")

REMEDY = "correct lab/lab.yml"


@dataclasses.dataclass(frozen=True)
class Fabric:
    """One InfiniBand subnet, held by one ibsim.

    :param port: first of the 129 UDP ports of its ibsim
    :param leaves: leaf switches; HCA k of a host is on leaf k, k counted among the host's HCAs on this fabric
    :param spines: spine switches, each linked to each leaf; needed where there is more than one leaf
    :param extra_hosts: simulated hosts beside the workers, with the same HCAs
    :param speed: of all links, 4X wide
    """

    name: str
    port: int
    leaves: int
    spines: int = 0
    extra_hosts: int = 0
    speed: str = "NDR"


@dataclasses.dataclass(frozen=True)
class SimulatedHca:
    """One HCA that every worker has.

    :param pci: address of its function, ``0000:3c:00.0``
    :param fabric: name of the fabric that its port is cabled to
    """

    name: str
    netdev: str
    pci: str
    numa_node: int
    fabric: str


@dataclasses.dataclass(frozen=True)
class Fabrics:
    """The whole plane.

    :param address: where ibsim listens, and where its clients come from on this machine too
    :param workers: host names
    """

    address: str
    workers: tuple[str, ...]
    hcas: tuple[SimulatedHca, ...]
    fabrics: tuple[Fabric, ...]

    def __post_init__(self) -> None:
        _unique("fabrics: name", [fabric.name for fabric in self.fabrics])
        for key in ("name", "netdev", "pci"):
            _unique(f"hcas: {key}", [getattr(hca, key) for hca in self.hcas])
        names = [fabric.name for fabric in self.fabrics]
        for hca in self.hcas:
            if hca.fabric not in names:
                raise StepError(
                    f"hcas: {hca.name} is on fabric '{hca.fabric}', which is not among {', '.join(names)}", REMEDY
                )
            if not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", hca.pci):
                raise StepError(
                    f"hcas: {hca.name} has the PCI address '{hca.pci}', expected one as 0000:3c:00.0", REMEDY
                )
        ports = sorted((fabric.port, fabric.name) for fabric in self.fabrics)
        for (first, one), (second, other) in zip(ports, ports[1:]):
            if second - first <= CLIENTS:
                raise StepError(
                    f"fabrics: {one} needs the UDP ports {first} to {first + CLIENTS}, and {other} begins at {second}",
                    REMEDY,
                )
        for fabric in self.fabrics:
            self._check(fabric)

    def _check(self, fabric: Fabric) -> None:
        rails = len(self.hcas_on(fabric.name))
        if fabric.speed not in SPEEDS:
            raise StepError(
                f"fabrics: {fabric.name} has the speed '{fabric.speed}', ibsim knows {', '.join(SPEEDS)}", REMEDY
            )
        if rails == 0:
            raise StepError(f"fabrics: no HCA is on {fabric.name}", REMEDY)
        if fabric.leaves < 1 or fabric.spines < 0 or fabric.extra_hosts < 0:
            raise StepError(f"fabrics: {fabric.name} needs at least one leaf, and no number below 0", REMEDY)
        if fabric.leaves > 1 and fabric.spines == 0:
            raise StepError(
                f"fabrics: {fabric.name} has {fabric.leaves} leaves and no spine, so it would be {fabric.leaves}"
                " subnets",
                REMEDY,
            )
        if fabric.leaves > rails and fabric.leaves % rails:
            raise StepError(
                f"fabrics: {fabric.name} has {fabric.leaves} leaves, which is no multiple of its {rails} rails", REMEDY
            )
        if fabric.leaves > SWITCH_PORTS:
            raise StepError(
                f"fabrics: {fabric.name} has {fabric.leaves} leaves, a spine has {SWITCH_PORTS} ports", REMEDY
            )

    def hcas_on(self, fabric: str) -> tuple[SimulatedHca, ...]:
        """In the order of the rails."""
        return tuple(hca for hca in self.hcas if hca.fabric == fabric)

    def fabric(self, name: str) -> Fabric:
        """:raises StepError: no fabric has this name"""
        for fabric in self.fabrics:
            if fabric.name == name:
                return fabric
        raise StepError(f"no fabric '{name}'", f"use one of {', '.join(fabric.name for fabric in self.fabrics)}")

    def hca(self, name: str) -> SimulatedHca:
        """:raises StepError: no HCA has this name"""
        for hca in self.hcas:
            if hca.name == name:
                return hca
        raise StepError(f"no simulated HCA '{name}'", f"use one of {', '.join(hca.name for hca in self.hcas)}")


def _unique(what: str, values: typing.Sequence[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise StepError(f"{what} '{value}' is given twice", REMEDY)
