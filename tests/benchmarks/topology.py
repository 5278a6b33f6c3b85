# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed of what is done with a large topology: build/venv/bin/python tests/benchmarks/topology.py

Each figure is a ratio against a baseline of the same run: ``json.loads`` of the same topology, which is C and does no checking.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import Topology
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse import ibnetdiscover

HOSTS = (1_000, 10_000)
ROUNDS = 3


def large_fabric(hosts: int) -> str:
    """ibnetdiscover text of a fat tree: leaves of 32 hosts and 32 uplinks."""
    lines = []
    leaves = -(-hosts // 32)
    for leaf in range(leaves):
        lines.append(f'Switch\t65 "S-{leaf + 1:016x}"\t\t# "leaf{leaf}" enhanced port 0 lid {leaf + 1} lmc 0')
        for place in range(32):
            host = leaf * 32 + place
            lines.append(f'[{place + 1}]\t"H-{0x100000 + host:016x}"[1]({0x200000 + host:x}) \t\t# "worker{host} mlx5_0" lid {host + 5000} 4xNDR')
            lines.append(f'[{place + 33}]\t"S-{0x1000 + place:016x}"[{leaf % 200 + 1}]\t\t# "spine{place}" lid {4000 + place} 4xNDR')
    for spine in range(32):
        lines.append(f'Switch\t250 "S-{0x1000 + spine:016x}"\t\t# "spine{spine}" enhanced port 0 lid {4000 + spine} lmc 0')
    for host in range(leaves * 32):
        lines.append(f'Ca\t1 "H-{0x100000 + host:016x}"\t\t# "worker{host} mlx5_0"')
        lines.append(
            f'[1]({0x200000 + host:x}) \t"S-{host // 32 + 1:016x}"[{host % 32 + 1}]\t\t# lid {host + 5000} lmc 0 "leaf{host // 32}" lid {host // 32 + 1} 4xNDR'
        )
    return "\n".join(lines) + "\n"


def seconds(work: typing.Callable[[], typing.Any]) -> float:
    """Processor time of the fastest of some rounds, in seconds."""
    times = []
    for _round in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    print("hosts   links   json.loads   parse (ratio)     load (ratio)")
    for hosts in HOSTS:
        text = large_fabric(hosts)
        topology = ibnetdiscover.parse(text)
        data = to_data(topology)
        document = json.dumps(data)
        baseline = seconds(lambda document=document: json.loads(document))
        parse = seconds(lambda text=text: ibnetdiscover.parse(text))
        check = seconds(lambda data=data: load(Topology, data))
        print(f"{hosts:<7} {len(topology.links):<7} {baseline:6.3f} s     {parse:6.2f} s ({parse / baseline:4.0f})   {check:6.2f} s ({check / baseline:4.0f})")


if __name__ == "__main__":
    main()
