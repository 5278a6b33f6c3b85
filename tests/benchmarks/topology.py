# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed and memory of what is done with a large topology: build/venv/bin/python tests/benchmarks/topology.py [--hosts
1000 10000] [--peer TOPO_AWARE]

A fabric in rails: 8 HCAs a host, leaves of 32 hosts and 8 uplinks, so 10,000 hosts have 100,000 links; LIDs come again
beyond 40,000 HCAs. Each figure is of a process of its own, and a ratio of the same run. The baseline of reading the
text is NVIDIA topograph's parser (pkg/ib, Go), which keeps the names of hosts and switches; where it can't be built,
the note says why, and the text is split into lines instead. That of all else is ``json.loads`` of the same topology,
which is C and does no checking. With ``--peer``, the file ``superbench/common/utils/topo_aware.py`` of
microsoft/superbenchmark reads the same text: its parser and its graph's edges alone, without networkx.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import check as fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    SeenErrors,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ManagerPort,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenManagers,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import ibnetdiscover
from ansible_collections.linerate.rdma.tests.benchmarks.support import topograph
from ansible_collections.linerate.rdma.tests.benchmarks.support.memory import peak
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

HOSTS, SMALLEST = (1_000, 10_000), (32,)
RAILS, PER_LEAF, UPLINKS = 8, 32, 8
ROUNDS = 3
#: GUIDs of leaves, spines, HCAs; each node has 16
LEAF, SPINE, HCA, GUIDS = 0xB83FD20301000000, 0xB83FD20302000000, 0xB83FD20310000000, 16


def large_fabric(hosts: int) -> str:
    """ibnetdiscover text: unit ``u`` of 32 hosts has a leaf for each rail, and each leaf a link to each of the 8 spines
    of its rail."""
    units = -(-hosts // PER_LEAF)
    lines = [
        "#",
        "# Topology file: generated on Fri Nov 20 18:44:22 2026",
        "#",
        f"# Initiated from node {HCA:016x} port {HCA + 1:016x}",
    ]
    for leaf in range(units * RAILS):
        unit, rail = divmod(leaf, RAILS)
        lines += _switch(65, LEAF + GUIDS * leaf, _name("leaf", leaf), leaf + 1)
        for place in range(PER_LEAF):
            hca = (unit * PER_LEAF + place) * RAILS + rail
            guid = HCA + GUIDS * hca
            lines.append(
                f'[{place + 1}]\t"H-{guid:016x}"[1]({guid + 1:x}) \t\t# "{_hca_name(hca)}" lid {_hca_lid(hca)} 4xNDR'
            )
        for uplink in range(UPLINKS):
            spine = rail * UPLINKS + uplink
            lines.append(
                f'[{uplink + 33}]\t"S-{SPINE + GUIDS * spine:016x}"[{unit + 1}]\t\t# "{_name("spine", spine)}" lid'
                f" {8000 + spine} 4xNDR"
            )
    for spine in range(RAILS * UPLINKS):
        rail, uplink = divmod(spine, UPLINKS)
        lines += _switch(400, SPINE + GUIDS * spine, _name("spine", spine), 8000 + spine)
        for unit in range(units):
            leaf = unit * RAILS + rail
            lines.append(
                f'[{unit + 1}]\t"S-{LEAF + GUIDS * leaf:016x}"[{uplink + 33}]\t\t# "{_name("leaf", leaf)}" lid'
                f" {leaf + 1} 4xNDR"
            )
    for hca in range(units * PER_LEAF * RAILS):
        host, rail = divmod(hca, RAILS)
        leaf, guid = host // PER_LEAF * RAILS + rail, HCA + GUIDS * hca
        lines += _identity("0x1021", guid, f"caguid=0x{guid:x}")
        lines.append(f'Ca\t1 "H-{guid:016x}"\t\t# "{_hca_name(hca)}"')
        far = f'"S-{LEAF + GUIDS * leaf:016x}"[{host % PER_LEAF + 1}]'
        lines.append(
            f'[1]({guid + 1:x}) \t{far}\t\t# lid {_hca_lid(hca)} lmc 0 "{_name("leaf", leaf)}" lid {leaf + 1} 4xNDR'
        )
    return "\n".join(lines) + "\n"


def _identity(device: str, guid: int, own: str) -> list[str]:
    return ["", "vendid=0x2c9", f"devid={device}", f"sysimgguid=0x{guid:x}", own]


def _switch(ports: int, guid: int, name: str, lid: int) -> list[str]:
    return [
        *_identity("0xd2f2", guid, f"switchguid=0x{guid:x}({guid:x})"),
        f'Switch\t{ports} "S-{guid:016x}"\t\t# "{name}" enhanced port 0 lid {lid} lmc 0',
    ]


def _name(kind: str, number: int) -> str:
    return f"MF0;{kind}{number:02}:MQM9700/U1"


def _hca_name(hca: int) -> str:
    return f"worker{hca // RAILS:04} mlx5_{hca % RAILS}"


def _hca_lid(hca: int) -> int:
    return hca % 40_000 + 9_000


def large_facts(topology: Topology, hosts: int) -> fabric.Facts:
    """All nodes answer, and the first of them shows the fabric."""
    master = SubnetManager(9001, f"0x{HCA + 1:016x}", "MASTER", 15, 1)
    nodes, subnets = {}, {}
    for host in range(hosts):
        hcas = []
        for rail in range(RAILS):
            guid = HCA + GUIDS * (host * RAILS + rail)
            port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", 1, 9001, f"0x{guid + 1:016x}")
            pci = PciFunction(f"0000:{16 + rail:02x}:00.0", "15b3", "1021", "0207", "mlx5_core")
            hcas.append(Hca(f"mlx5_{rail}", f"mlx5_{rail}", (), pci, f"0x{guid:016x}", ports=(port,)))
        nodes[f"worker{host:04}"] = ObservedHcas(NodeHcas(tuple(hcas)))
        subnets[f"worker{host:04}"] = ObservedSubnets(
            tuple(SeenSubnet(f"mlx5_{rail}", 1, master) for rail in range(RAILS))
        )
    report = ErrorReport((), 300_000)
    managers = SeenManagers((ManagerPort(9001, master),), None, master.guid, 1, 9, 10.0)
    seen = SeenTopology(
        "mlx5_0", 1, topology, None, managers, SeenCapabilities(links=200_000), SeenErrors(report, report, 10.0)
    )
    return fabric.Facts(nodes, subnets, {"worker0000": ObservedTopologies((seen,))})


def parse_by_peer(peer: pathlib.Path, text: pathlib.Path) -> None:
    """The peer's parser, with stand-ins for what it imports; no host of ours is known to it, so it searches for no
    paths."""

    class Graph:
        def add_nodes_from(self, nodes: typing.Any) -> None:
            self.nodes = list(nodes)

        def add_edge(self, *ends: str) -> None:
            self.last = ends

    networkx = types.ModuleType("networkx")
    vars(networkx).update(Graph=Graph, all_pairs_shortest_path_length=lambda _graph: {})
    utils = types.ModuleType("superbench.common.utils")
    vars(utils).update(logger=types.SimpleNamespace(error=sys.exit))
    sys.modules.update(
        {"networkx": networkx, "superbench": utils, "superbench.common": utils, "superbench.common.utils": utils}
    )
    spec = importlib.util.spec_from_file_location("topo_aware", peer)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.gen_topo_aware_config([], "/dev/null", str(text), 1, 1)


def works(
    what: str, hosts: int, text: pathlib.Path, peer: typing.Optional[pathlib.Path]
) -> typing.Callable[[], typing.Any]:
    """What is measured, with all that it needs ready."""
    if what == "parse":
        read = text.read_text()
        return lambda: ibnetdiscover.parse(read)
    if what == "split":
        read = text.read_text()
        return lambda: read.split("\n")
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
    select = Select(hcas_per_node=RAILS, subnet_manager=("any",))
    rdma = Fabric("compute", "sriov_infiniband", network, select, virtual_functions=8, resource_name="x", ipam=ipam)
    return lambda: fabric.check(Intent((rdma,)), facts)


def measure(what: str, hosts: int, text: pathlib.Path, peer: typing.Optional[pathlib.Path]) -> None:
    """Print processor seconds of the fastest of some rounds, growth of the peak memory in MiB, and how many findings
    there are."""
    work = works(what, hosts, text, peer)
    before = peak()
    times, answer = [], None
    for _round in range(ROUNDS):
        answer = None
        start = time.process_time()
        answer = work()
        times.append(time.process_time() - start)
    findings = answer if what == "check" and isinstance(answer, tuple) else ()
    bad = [finding for finding in findings if finding.status not in ("pass", "warn")]
    growth = peak() - before
    print(json.dumps([min(times), growth, len(findings), len(bad)]))


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    made.add_argument("--peer", type=pathlib.Path)
    made.add_argument("--topograph", default="v1.0.0", help="its version, for the Go module proxy")
    made.add_argument("--topograph-source", type=pathlib.Path, help="a checkout of it instead")
    made.add_argument("--one", nargs=3, metavar=("WHAT", "HOSTS", "TEXT"), help=argparse.SUPPRESS)
    options = made.parse_args(arguments)
    if options.one:
        measure(options.one[0], int(options.one[1]), pathlib.Path(options.one[2]), options.peer)
        return ()
    results: list[Result] = []
    try:
        if options.smallest:
            raise topograph.NotBuilt("left out at the smallest size")
        binary, why = topograph.build(options.topograph, options.topograph_source), ""
    except topograph.NotBuilt as error:
        binary, why = None, f"topograph: {error}"
    for hosts in SMALLEST if options.smallest else options.hosts:
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "fabric.txt")
            text.write_text(large_fabric(hosts))
            results += _compare(hosts, text, options.peer, binary, why)
    return show(results, options.json)


def _compare(
    hosts: int, text: pathlib.Path, peer: typing.Optional[pathlib.Path], binary: typing.Optional[pathlib.Path], why: str
) -> typing.Iterator[Result]:
    """What reads the text, then what works on what was read."""
    size = f"{hosts} hosts, {text.stat().st_size / 2**20:.1f} MiB"

    def one(what: str) -> tuple[float, str]:
        more = ["--peer", str(peer)] if peer else []
        command = [sys.executable, __file__, *more, "--one", what, str(hosts), str(text)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds, memory, findings, bad = json.loads(done.stdout)
        return seconds, f"peak memory +{memory:.0f} MiB" + (
            f"; {findings} findings, {bad} of them bad" if findings else ""
        )

    split = "split into lines"
    figures = {split: one("split")}
    if binary:
        figures["topograph's parser"] = topograph.measure(binary, text, ROUNDS)
    figures["parse"] = one("parse")
    if peer:
        figures["superbenchmark's parser"] = one("peer")
    baseline = "topograph's parser" if binary else split
    for what, (seconds, note) in figures.items():
        more = f"; {why}" if why and what == "parse" else ""
        yield Result(what, size, seconds, "processor s", seconds / figures[baseline][0], baseline, note + more)
    figures = {"json.loads": one("baseline"), "load": one("load"), "check": one("check")}
    for what, (seconds, note) in figures.items():
        yield Result(what, size, seconds, "processor s", seconds / figures["json.loads"][0], "json.loads", note)


if __name__ == "__main__":
    main()
