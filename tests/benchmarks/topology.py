# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed and memory of what is done with a large topology: build/venv/bin/python tests/benchmarks/topology.py [--peer TOPO_AWARE]

A fabric in rails: 8 HCAs a host, leaves of 32 hosts and 8 uplinks, so 10,000 hosts have 100,000 links. Each figure is of a process of its own,
and a ratio against a baseline of the same run: ``json.loads`` of the same topology, which is C and does no checking. With ``--peer``, the file
``superbench/common/utils/topo_aware.py`` of microsoft/superbenchmark reads the same text: its parser and its graph's edges alone, without networkx.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import types
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import check as fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import (
    ErrorReport,
    ManagerPort,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenErrors,
    SeenManagers,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import Hca, NodeHcas, ObservedHcas, PciFunction, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Fabric, Intent, Ipam, Network, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import ibnetdiscover

HOSTS = (1_000, 10_000)
RAILS, PER_LEAF, UPLINKS = 8, 32, 8
ROUNDS = 3
#: GUIDs of leaves, spines, HCAs
LEAF, SPINE, HCA = 0x1, 0x800000, 0x10000000


def large_fabric(hosts: int) -> str:
    """ibnetdiscover text: unit ``u`` of 32 hosts has a leaf for each rail, and each leaf a link to each of the 8 spines of its rail."""
    units = -(-hosts // PER_LEAF)
    lines = []
    for leaf in range(units * RAILS):
        unit, rail = divmod(leaf, RAILS)
        lines.append(f'Switch\t65 "S-{LEAF + leaf:016x}"\t\t# "leaf{leaf}" enhanced port 0 lid {leaf + 1} lmc 0')
        for place in range(PER_LEAF):
            hca = (unit * PER_LEAF + place) * RAILS + rail
            name = f"worker{hca // RAILS} mlx5_{rail}"
            lines.append(f'[{place + 1}]\t"H-{HCA + 2 * hca:016x}"[1]({HCA + 2 * hca + 1:x}) \t\t# "{name}" lid {hca % 40000 + 9000} 4xNDR')
        for uplink in range(UPLINKS):
            spine = rail * UPLINKS + uplink
            lines.append(f'[{uplink + 33}]\t"S-{SPINE + spine:016x}"[{unit + 1}]\t\t# "spine{spine}" lid {8000 + spine} 4xNDR')
    for spine in range(RAILS * UPLINKS):
        lines.append(f'Switch\t400 "S-{SPINE + spine:016x}"\t\t# "spine{spine}" enhanced port 0 lid {8000 + spine} lmc 0')
    for hca in range(units * PER_LEAF * RAILS):
        host, rail = divmod(hca, RAILS)
        leaf = host // PER_LEAF * RAILS + rail
        near = f"[1]({HCA + 2 * hca + 1:x})"
        lines.append(f'Ca\t1 "H-{HCA + 2 * hca:016x}"\t\t# "worker{host} mlx5_{rail}"')
        lines.append(f'{near} \t"S-{LEAF + leaf:016x}"[{host % PER_LEAF + 1}]\t\t# lid {hca % 40000 + 9000} lmc 0 "leaf{leaf}" lid {leaf + 1} 4xNDR')
    return "\n".join(lines) + "\n"


def large_facts(topology: Topology, hosts: int) -> fabric.Facts:
    """All nodes answer, and the first of them shows the fabric."""
    master = SubnetManager(9001, f"0x{HCA + 1:016x}", "MASTER", 15, 1)
    nodes, subnets = {}, {}
    for host in range(hosts):
        hcas = []
        for rail in range(RAILS):
            guid = HCA + 2 * (host * RAILS + rail)
            port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", 1, 9001, f"0x{guid + 1:016x}")
            pci = PciFunction(f"0000:{16 + rail:02x}:00.0", "15b3", "1021", "0207", "mlx5_core")
            hcas.append(Hca(f"mlx5_{rail}", f"mlx5_{rail}", (), pci, f"0x{guid:016x}", ports=(port,)))
        nodes[f"worker{host}"] = ObservedHcas(NodeHcas(tuple(hcas)))
        subnets[f"worker{host}"] = ObservedSubnets(tuple(SeenSubnet(f"mlx5_{rail}", 1, master) for rail in range(RAILS)))
    report = ErrorReport((), 300_000)
    managers = SeenManagers((ManagerPort(9001, master),), None, master.guid, 1, 9, 10.0)
    seen = SeenTopology("mlx5_0", 1, topology, None, managers, SeenCapabilities(links=200_000), SeenErrors(report, report, 10.0))
    return fabric.Facts(nodes, subnets, {"worker0": ObservedTopologies((seen,))})


def parse_by_peer(peer: pathlib.Path, text: pathlib.Path) -> None:
    """The peer's parser, with stand-ins for what it imports; no host of ours is known to it, so it searches for no paths."""

    class Graph:
        def add_nodes_from(self, nodes: typing.Any) -> None:
            self.nodes = list(nodes)

        def add_edge(self, *ends: str) -> None:
            self.last = ends

    networkx = types.ModuleType("networkx")
    vars(networkx).update(Graph=Graph, all_pairs_shortest_path_length=lambda _graph: {})
    utils = types.ModuleType("superbench.common.utils")
    vars(utils).update(logger=types.SimpleNamespace(error=sys.exit))
    sys.modules.update({"networkx": networkx, "superbench": utils, "superbench.common": utils, "superbench.common.utils": utils})
    spec = importlib.util.spec_from_file_location("topo_aware", peer)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.gen_topo_aware_config([], "/dev/null", str(text), 1, 1)


def works(what: str, hosts: int, text: pathlib.Path, peer: typing.Optional[pathlib.Path]) -> typing.Callable[[], typing.Any]:
    """What is measured, with all that it needs ready."""
    if what == "parse":
        read = text.read_text()
        return lambda: ibnetdiscover.parse(read)
    if what == "peer" and peer:
        return lambda: parse_by_peer(peer, text)
    topology = ibnetdiscover.parse(text.read_text())
    if what == "baseline":
        document = json.dumps(to_data(topology))
        return lambda: json.loads(document)
    if what == "load":
        data = to_data(topology)
        return lambda: load(Topology, data)
    facts = large_facts(topology, hosts)
    network, ipam = Network("x", "y"), Ipam("whereabouts", "10.0.0.0/8")
    rdma = Fabric("compute", "sriov_infiniband", Select(hcas_per_node=RAILS, subnet_manager="any"), 8, "x", network, ipam)
    return lambda: fabric.check(Intent((rdma,)), facts)


def measure(what: str, hosts: int, text: pathlib.Path, peer: typing.Optional[pathlib.Path]) -> None:
    """Print processor seconds of the fastest of some rounds, growth of the peak memory in MiB, and how many findings there are."""
    work = works(what, hosts, text, peer)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, answer = [], None
    for _round in range(ROUNDS):
        answer = None
        start = time.process_time()
        answer = work()
        times.append(time.process_time() - start)
    findings = answer if what == "check" and isinstance(answer, tuple) else ()
    bad = [finding for finding in findings if finding.status not in ("pass", "warn")]
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([min(times), growth, len(findings), len(bad)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=pathlib.Path)
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "HOSTS", "TEXT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one[0], int(options.one[1]), pathlib.Path(options.one[2]), options.peer)
        return
    print("hosts    text MiB  what      seconds   ratio  peak memory MiB")
    for hosts in HOSTS:
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "fabric.txt")
            text.write_text(large_fabric(hosts))
            size, baseline = text.stat().st_size / 2**20, 0.0
            for what in ("baseline", "parse", *(["peer"] if options.peer else []), "load", "check"):
                peer = ["--peer", str(options.peer)] if options.peer else []
                done = subprocess.run([sys.executable, __file__, *peer, "--one", what, str(hosts), str(text)], capture_output=True, text=True, check=True)
                seconds, memory, findings, bad = json.loads(done.stdout)
                baseline = baseline or seconds
                more = f"  {findings} findings, {bad} of them bad" if findings else ""
                print(f"{hosts:<8} {size:8.1f}  {what:<8} {seconds:8.2f}  {seconds / baseline:6.1f}  {memory:15.0f}{more}")


if __name__ == "__main__":
    main()
