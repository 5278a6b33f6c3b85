# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's description (lab.yml) as values; every plane is made from it."""

from __future__ import annotations

import dataclasses
import ipaddress
import pathlib
import uuid

import yaml

from .fabric.model import Fabric, Fabrics, SimulatedHca

PATH = pathlib.Path(__file__).parent / "lab.yml"


@dataclasses.dataclass(frozen=True)
class Network:
    """Addresses of the lab, all inside of its network namespace."""

    namespace: str
    address: str
    prefix: int
    pods: str
    services: str


@dataclasses.dataclass(frozen=True)
class Guest:
    """Size of a worker; memory in MiB."""

    cpus: int
    memory_mib: int


@dataclasses.dataclass(frozen=True)
class Bmc:
    """The BMC of a worker.

    :ivar vendor: whose answers it gives: a file of tests/unit/fixtures/redfish
    :ivar iommu: attribute of its BIOS that decides whether the worker has an IOMMU
    :ivar sriov: attribute of its BIOS for SR-IOV; the worker boots the same with and without, since no emulated BIOS
        hides it
    """

    vendor: str
    address: str
    iommu: str
    sriov: str


@dataclasses.dataclass(frozen=True)
class Worker:
    """A worker; its number counts from 1.

    :ivar sealed: as an image-based system: without sshd, Python and the tools of a fabric, its ``/usr`` read-only
    """

    name: str
    address: str
    number: int
    bmc: Bmc
    sealed: bool = False

    @property
    def uuid(self) -> str:
        """Of the machine: its DMI shows it, so that its kubelet tells it as systemUUID, and so does its BMC."""
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}.lab.linerate.example"))

    @property
    def serial(self) -> str:
        """Of the machine, as its DMI and its BMC tell it."""
        return f"LAB{self.number:05d}"


@dataclasses.dataclass(frozen=True)
class Sriov:
    """The real NIC with SR-IOV of each worker."""

    netdev: str
    vendor: str
    device: str


@dataclasses.dataclass(frozen=True)
class Description:
    """All of lab.yml."""

    name: str
    network: Network
    guest: Guest
    workers: tuple[Worker, ...]
    sriov: Sriov
    hcas: tuple[SimulatedHca, ...]
    fabrics: tuple[Fabric, ...]
    operator_namespace: str = "sriov-network-operator"

    @property
    def service_address(self) -> ipaddress.IPv4Address:
        """Address of the service kubernetes.default: the first of the range."""
        return ipaddress.IPv4Network(self.network.services)[1]

    @property
    def fabric_plane(self) -> Fabrics:
        """What the fabric plane is made from."""
        return Fabrics(self.network.address, tuple(worker.name for worker in self.workers), self.hcas, self.fabrics)

    def pod_subnet(self, worker: Worker) -> ipaddress.IPv4Network:
        """The /24 of a worker's pods: its number in the third octet."""
        return list(ipaddress.IPv4Network(self.network.pods).subnets(new_prefix=24))[worker.number]


def read(path: pathlib.Path = PATH) -> Description:
    """Read the description. An unknown or a missing key is a TypeError that names it."""
    data = yaml.safe_load(path.read_text())
    return Description(
        name=data["name"],
        network=Network(**data["network"]),
        guest=Guest(**data["guest"]),
        workers=tuple(
            Worker(number=number, **{**worker, "bmc": Bmc(**worker["bmc"])})
            for number, worker in enumerate(data["workers"], start=1)
        ),
        sriov=Sriov(**data["sriov"]),
        hcas=tuple(SimulatedHca(**hca) for hca in data["hcas"]),
        fabrics=tuple(Fabric(**fabric) for fabric in data["fabrics"]),
    )
