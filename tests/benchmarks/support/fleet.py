# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet of any size for benchmarks: what its observers would answer, with one slow HCA and one cut uplink, and what a
run must find in it.

Made from the same world as the tests of the report, with the VFs and the platform that those do not need.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    SeenCapabilities,
    SeenTopology,
    SlowPort,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    Port,
    VfAdministration,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import NodePlatform, PciEvidence
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import NodeTuning, RowReading
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World, fabrics, seen

RAILS, FUNCTIONS, MOST_ON_LEAF = 8, 8, 32
#: where the slow HCA and the cut uplink are
SLOW_NODE, SLOW_RAIL = 2, 1
#: the connection that answers from files puts the time in its place
NOW = "@now@"
Data = dict[str, typing.Any]


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Nodes with 8 HCAs of 8 VFs each, on leaves of at most 32 hosts; three leaves at least in each rail: of two,
    neither is the usual one.

    :ivar nodes: how many, 3 at least
    """

    nodes: int

    @functools.cached_property
    def world(self) -> World:
        return World(self.nodes, RAILS, min(MOST_ON_LEAF, self.nodes // 3))

    @property
    def names(self) -> tuple[str, ...]:
        return self.world.names

    def findings(self) -> set[tuple[str, str]]:
        """Check and subject of all that a run must find not to pass, from validate to platform."""
        # the stages of the benchmark ask no API server, so its absence is a warning
        return {
            ("validate.api_server", "API server"),
            ("fabric.rate", f"{self.names[SLOW_NODE - 1]} mlx5_{SLOW_RAIL}"),
            ("fabric.uplinks", "leaf-0-1"),
            ("fabric.capability", "compute"),
        }

    def variables(self) -> Data:
        """The intent. Later stages run only when what is known to be wrong is waived."""
        reasons = {
            "fabric.rate": "the slow HCA of this benchmark",
            "fabric.uplinks": "the cut uplink of this benchmark",
        }
        # there is no API server
        return {
            "platform_nic_devices": False,
            "rdma_fabrics": fabrics(self.world),
            "rdma_waivers": [{"check": check, "reason": reason} for check, reason in reasons.items()],
        }

    def write(self, folder: pathlib.Path) -> None:
        """Write ``<module>/<node>.json``: the answer of each observer of each node, as the module prints it."""
        hcas, subnets, topologies = seen(self.world)
        for number, name in enumerate(self.names):
            value, ports = hcas[name].value, subnets[name].value or ()
            assert value is not None
            node = NodeHcas(tuple(self._functions(number, value)))
            topology = tuple(self._topology(item) for item in topologies[name].value or ())
            answers = {
                "node_info": {
                    "hcas": node,
                    "platform": _platform(node),
                    # no tool is there
                    "firmware": {"hcas": []},
                    "clock": {"seconds": NOW, "synchronised": True, "error_seconds": 0.01},
                    "tuning": NodeTuning(
                        {
                            row.name: (RowReading(row.training.partition("|")[0].lstrip(">=<") or "none"),)
                            for row in ROWS
                        }
                    ),
                },
                "subnet_manager_info": {"subnets": ports},
                "fabric_info": {"topology": topology},
                "ping": {"ping": "pong"},
            }
            for module, answer in answers.items():
                path = folder / module / f"{name}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"changed": False, **to_data(answer)}), encoding="utf-8")

    def _functions(self, number: int, node: NodeHcas) -> typing.Iterator[Hca]:
        """Physical functions, then the virtual ones, as node_info sorts them."""
        for rail, hca in enumerate(node.hcas):
            port = hca.ports[0]
            if number == SLOW_NODE - 1 and rail == SLOW_RAIL:
                assert port.rate_gbps is not None and port.width is not None
                port = dataclasses.replace(port, rate_gbps=port.rate_gbps / 2, width=port.width // 2)
            yield dataclasses.replace(
                hca,
                netdevs=(_netdev(f"ibp{16 + rail}s0", port),),
                ports=(dataclasses.replace(port, pkeys=("0xffff",), mtu=4092),),
            )
        for rail, hca in enumerate(node.hcas):
            for index in range(FUNCTIONS):
                yield _virtual(hca, number, rail, index)

    def _topology(self, item: SeenTopology) -> SeenTopology:
        """One link between the first leaf of rail 0 and a spine is not there, and the slow HCA is at half its width."""
        topology, slow = item.topology, f"{self.names[SLOW_NODE - 1]} mlx5_{SLOW_RAIL}"
        assert topology is not None and item.capabilities is not None
        guids = {node.description: node.guid for node in topology.nodes}
        links, cut, ends = [], False, []
        for link in topology.links:
            if not cut and link.a.guid == guids["leaf-0-1"] and link.b.kind == "Switch":
                cut = True
            elif link.b.guid == guids[slow]:
                ends = [SlowPort(link.b.port_guid or "", link.b.port, "4X")]
                links.append(dataclasses.replace(link, width=2))
            else:
                links.append(link)
        assert cut and ends
        return dataclasses.replace(
            item,
            topology=Topology(topology.nodes, tuple(links)),
            capabilities=SeenCapabilities(tuple(ends), 2 * len(links)),
        )


def _virtual(hca: Hca, number: int, rail: int, index: int) -> Hca:
    """A VF that the subnet manager has set up."""
    assert hca.pci is not None
    guid = f"0x02{number:06x}{rail:02x}{index:02x}0000"
    device = f"mlx5_{RAILS + rail * FUNCTIONS + index}"
    port = dataclasses.replace(hca.ports[0], guid=guid, pkeys=("0xffff",), mtu=4092)
    return dataclasses.replace(
        hca,
        name=device,
        rdma_device=device,
        netdevs=(_netdev(f"ibp{16 + rail}s0v{index}", port),),
        pci=dataclasses.replace(
            hca.pci,
            address=f"{hca.pci.address[:-1]}{index + 1}" if index < 7 else f"{hca.pci.address[:-4]}01.0",
            device="101e",
        ),
        node_guid=guid,
        node_description=f"{hca.node_description} vf {index}",
        ports=(port,),
        sriov=None,
        physical_function=hca.pci.address,
        vf_index=index,
        administration=VfAdministration(guid, guid, "Follow", 0, 0, False, True, 0, 0),
    )


def _netdev(name: str, port: Port) -> Netdev:
    guid = (port.guid or "0x").removeprefix("0x")
    address = ":".join(
        ["00:00:10:49:fe:80:00:00:00:00:00:00", *(guid[place : place + 2] for place in range(0, len(guid), 2))]
    )
    return Netdev(name, address, 4092, "up", port.guid, "0xfe80000000000000", 4169, 1)


def _platform(node: NodeHcas) -> NodePlatform:
    functions = tuple(
        PciEvidence(
            hca.pci.address,
            hca.pci.driver,
            hca.sriov.total if hca.sriov else None,
            hca.sriov.current if hca.sriov else None,
            30 + place,
            hca.physical_function,
        )
        for place, hca in enumerate(node.hcas)
        if hca.pci is not None
    )
    return NodePlatform(
        "6.12.95", "x86_64", ("intel_iommu=on", "iommu=pt"), ("dmar0", "dmar1"), 160, ("DMAR",), functions
    )
