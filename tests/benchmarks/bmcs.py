# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the BIOS of many nodes takes to read over Redfish: build/venv/bin/python tests/benchmarks/bmcs.py [--bmcs
1000] [--latency 2] [--pools 128 256 512]

One server in a process of its own stands for all BMCs, and lets each answer wait. Some BMCs are dead: they take the
connection and say nothing. Each pool is measured in a process of its own, for the sake of its memory; the time is that
of the last BMC that is not dead. The baseline is one BMC after the other, measured on a few and scaled by their number.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import NodeBios
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import (
    PARALLEL,
    BiosQuery,
    read,
)
from ansible_collections.linerate.rdma.tests.benchmarks.support.memory import peak
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.unit.bmc_server import PASSWORD, USER

ROOT = pathlib.Path(__file__).parents[2]
BMCS, DEAD, LATENCY, POOLS = 1000, 20, 2.0, (128, 256, PARALLEL)
SMALLEST = (8, 1, 0.02, (2, 8))
#: measured one after the other
FEW = 2
#: that a BMC has in all; the dead ones use all of it
SECONDS, SMALLEST_SECONDS = 60.0, 3.0
REGISTRY = "/redfish/v1/Systems/System.Embedded.1/Bios/BiosRegistry"
BASELINE = "one after the other"


class Figures(typing.NamedTuple):
    """:ivar wall: seconds until the last BMC that is not dead
    :ivar memory: MiB, all of the process
    """

    wall: float
    processor: float
    memory: float


@contextlib.contextmanager
def served(latency: float) -> typing.Iterator[dict[str, typing.Any]]:
    """Port and authority of the server. Each BMC that answers is asked once for its registry."""
    command = [sys.executable, "-m", "tests.unit.bmc_server", "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout is not None and server.stdin is not None
            where: dict[str, typing.Any] = json.loads(server.stdout.readline())
            yield where
            server.stdin.close()
            asked = json.loads(server.stdout.read())["asked"].count(REGISTRY)
            if asked != where["registries"]:
                raise SystemExit(f"the registry was read {asked} times of {where['registries']} BMCs")
        finally:
            server.kill()


def measure(port: int, ca: str, bmcs: int, dead: int, pool: int, seconds: float) -> Figures:
    """Reads them all in this process."""
    with socket.socket() as quiet:
        quiet.bind(("127.0.0.1", 0))
        quiet.listen(bmcs)
        ports = {f"node-{number}": quiet.getsockname()[1] if number < dead else port for number in range(bmcs)}
        start, last, wrong = time.monotonic(), 0.0, []
        asked = (Bmc(node, "localhost", where, USER, PASSWORD) for node, where in ports.items())
        for bmc, outcome in read(asked, Trust(True, ca), BiosQuery(seconds=seconds), pool):
            good = isinstance(outcome, NodeBios)
            if good:
                last = time.monotonic() - start
            if good != (bmc.port == port):
                wrong.append(outcome)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {bmcs} answers are wrong: {wrong[:1]}")
    return Figures(last, time.process_time(), peak())


def in_process(where: typing.Mapping[str, typing.Any], *arguments: typing.Any) -> Figures:
    command = [sys.executable, __file__, "--measure", str(where["port"]), where["ca"], *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Figures(*json.loads(done.stdout))


def compare(
    bmcs: int, dead: int, latency: float, pools: typing.Sequence[int], seconds: float
) -> typing.Iterator[Result]:
    size = f"{bmcs} BMCs, {dead} of them dead, {latency:g} s an answer"
    with served(latency) as where:
        where["registries"] = FEW + (bmcs - dead) * len(pools)
        base = in_process(where, FEW, 0, 1, seconds)
        yield Result(
            BASELINE,
            size,
            base.wall * bmcs / FEW,
            "s",
            1.0,
            BASELINE,
            f"{FEW} BMCs, scaled; the first one also parses the registry",
        )
        yield Result(BASELINE, size, base.memory, "MiB", 1.0, BASELINE)
        for pool in pools:
            what, found = f"{pool} at once", in_process(where, bmcs, dead, pool, seconds)
            yield Result(
                what,
                size,
                found.wall,
                "s",
                found.wall / (base.wall * bmcs / FEW),
                BASELINE,
                f"{found.processor:.1f} processor s",
            )
            yield Result(what, size, found.memory, "MiB", found.memory / base.memory, BASELINE)


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--bmcs", type=int, default=BMCS)
    made.add_argument("--dead", type=int, default=DEAD)
    made.add_argument("--latency", type=float, default=LATENCY)
    made.add_argument("--pools", nargs="+", type=int, default=POOLS)
    made.add_argument("--measure", nargs=6, help=argparse.SUPPRESS)
    options = made.parse_args(arguments)
    if options.measure:
        port, ca, bmcs, dead, pool, seconds = options.measure
        print(json.dumps(measure(int(port), ca, int(bmcs), int(dead), int(pool), float(seconds))))
        return ()
    if options.smallest:
        return show(compare(*SMALLEST, SMALLEST_SECONDS), options.json)
    return show(compare(options.bmcs, options.dead, options.latency, options.pools, SECONDS), options.json)


if __name__ == "__main__":
    main()
