# SPDX-License-Identifier: GPL-3.0-or-later

"""What a round of many pairs costs beyond the tests themselves: build/venv/bin/python tests/benchmarks/rounds.py
[--pairs 500] [--seconds 10]

All of the stage's own code runs, down to its websockets. What it talks to is a small API server in a process of its
own, in whose pods rping and ib_write_bw only take their time: a node that is but an object, as kwok makes them, can run
no command. The baseline is measured in the same run: one pair after the other, a new exec for each command, on a few
pairs, and scaled by their number.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import concurrent.futures
import contextlib
import json
import pathlib
import resource
import shlex
import subprocess
import sys
import time
import typing
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from aiohttp import WSMsgType, web
from kubernetes.client import ApiClient, Configuration, CoreV1Api
from kubernetes.dynamic import DynamicClient
from kubernetes.stream import stream

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod, RoundPlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.shell import MARK
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import commands
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

PAIRS, SECONDS, PING_SECONDS = 500, 10.0, 0.5
SMALLEST = (2, 0.25)
BASELINE_PAIRS = 2
RESOURCE = "openshift.io/mlx"
FABRIC = {
    "name": "compute",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3"},
    "virtual_functions": 8,
    "resource_name": "mlx",
    "network": {"name": "net", "namespace": "linerate-measure"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
    "bandwidth": {"rounds": 1},
}
PINGS = "".join(f"ping data: rdma-ping-{number}: ABC\n" for number in range(commands.PINGS))
TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 1048576    267246         0.00               373.64             0.044541\n"
)


class Pods:
    """The API server's side: pods that are ready at once, and the tools in them."""

    def __init__(self, nodes: int, seconds: float) -> None:
        self.nodes = [f"node-{number}" for number in range(nodes)]
        self.seconds = seconds
        self.pods: dict[str, typing.Any] = {}
        self.served: dict[tuple[str, str], asyncio.Event] = {}
        self.counts: typing.Counter[str] = collections.Counter()

    def application(self) -> web.Application:
        application = web.Application()
        pods = "/api/v1/namespaces/{namespace}/pods"
        application.add_routes(
            [
                web.get("/counts", self.count),
                web.get("/api/v1/nodes", self.list_nodes),
                web.get(pods, self.list_pods),
                web.post(pods, self.create),
                web.get(pods + "/{name}", self.read),
                web.delete(pods + "/{name}", self.delete),
                web.get(pods + "/{name}/exec", self.exec),
            ]
        )
        return application

    async def count(self, _request: web.Request) -> web.Response:
        return web.json_response(self.counts)

    async def list_nodes(self, _request: web.Request) -> web.Response:
        self.counts["list nodes"] += 1
        items = [{"metadata": {"name": name}, "status": {"allocatable": {RESOURCE: "8"}}} for name in self.nodes]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async def list_pods(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            self.counts["watch pods"] += 1
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.sleep(600)
            return response
        self.counts["list pods"] += 1
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": list(self.pods.values())})

    async def create(self, request: web.Request) -> web.Response:
        self.counts["create pod"] += 1
        pod = await request.json()
        number = len(self.pods)
        status = [
            {"name": "linerate-measure/net", "interface": "net1", "ips": [f"10.0.{number // 250}.{number % 250 + 1}"]}
        ]
        pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] = json.dumps(status)
        pod["status"] = {
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
        }
        pod["metadata"]["uid"] = f"uid-{self.counts['create pod']}"
        self.pods[pod["metadata"]["name"]] = pod
        return web.json_response(pod)

    async def read(self, request: web.Request) -> web.Response:
        self.counts["get pod"] += 1
        return web.json_response(self.pods[request.match_info["name"]])

    async def delete(self, request: web.Request) -> web.Response:
        self.counts["delete pod"] += 1
        return web.json_response(self.pods.pop(request.match_info["name"]))

    async def exec(self, request: web.Request) -> web.WebSocketResponse:
        self.counts["exec"] += 1
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        command = request.query.getall("command")

        async def say(channel: int, text: str) -> None:
            await socket.send_bytes(bytes([channel]) + text.encode())

        if command[0] != "sh":
            await self.tool(command, lambda text: say(1, text))
            await say(3, '{"status":"Success"}')
            return socket
        greeting = 'rdma [{"ifname":"mlx5_9","netdev":"net1"}]\nrate mlx5_9 400 Gb/sec (4X NDR)'
        await say(1, f"{greeting}\n\n{MARK} 0 0\n")
        jobs = set()
        async for message in socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                continue
            data = message.data if isinstance(message.data, bytes) else message.data.encode()
            job = asyncio.create_task(self.job(data[1:].decode(), say))
            jobs.add(job)
            job.add_done_callback(jobs.discard)
        # what runs in a pod ends with its connection
        for job in jobs:
            job.cancel()
        return socket

    async def job(self, line: str, say: typing.Callable[[int, str], typing.Awaitable[None]]) -> None:
        number, *command = shlex.split(line)
        # the client may be gone by then
        with contextlib.suppress(ConnectionError):
            await self.tool(command, lambda text: say(1, text))
            await say(1, f"\n{MARK} {number} 0\n")

    async def tool(self, command: typing.Sequence[str], out: typing.Callable[[str], typing.Awaitable[None]]) -> None:
        """rping or ib_write_bw: a server ends with its client."""
        ping = "rping" in command
        port = command[command.index("-p") + 1]
        client = "-c" in command if ping else command[-1].count(".") == 3
        if client:
            await self.run(PING_SECONDS if ping else self.seconds)
            await out(PINGS if ping else TABLE)
            self.served[port, str(ping)].set()
        else:
            ended = self.served[port, str(ping)] = asyncio.Event()
            await out(commands.PING_SERVER_UP if ping else commands.BANDWIDTH_SERVER_UP)
            await ended.wait()

    async def run(self, seconds: float) -> None:
        """A client measures."""
        await asyncio.sleep(seconds)


class Timed(BandwidthRun):
    """The stage, with the time of its rounds beside it."""

    seconds = processor = 0.0

    def _measure(
        self, pool: concurrent.futures.Executor, fabric: Fabric, pods: typing.Sequence[RdmaPod], planned: RoundPlan
    ) -> list[PairResult]:
        start, processor = time.monotonic(), time.process_time()
        try:
            return super()._measure(pool, fabric, pods, planned)
        finally:
            self.seconds, self.processor = time.monotonic() - start, time.process_time() - processor


def measure(client: ApiClient, nodes: typing.Sequence[str]) -> tuple[float, float, float]:
    """Seconds of one round of all nodes, each pair in both directions; those of them on a processor; and of all with
    the life of the pods."""
    intent = parse_intent([FABRIC])
    # no discovery: the stage's paths are fixed
    dynamic = DynamicClient.__new__(DynamicClient)
    dynamic.client, dynamic.configuration = client, client.configuration
    bench = Timed(
        Cluster(dynamic),
        Plan(intent.fabrics, intent.cluster, tuple(nodes)),
        time.monotonic,
        time.sleep,
        lambda line: None,
    )
    start = time.monotonic()
    facts = bench.run()
    assert len(facts.pairs) == len(nodes) and all(pair.average_gbps == 373.64 for pair in facts.pairs), facts.pairs[:3]
    return bench.seconds, bench.processor, time.monotonic() - start


def one_after_the_other(client: ApiClient, pairs: int) -> float:
    """Seconds of both directions of some pairs, a new connection for each command and no two at once."""
    fabric = parse_intent([FABRIC]).fabrics[0]

    def run(pod: str, command: typing.Sequence[str]) -> typing.Any:
        core = CoreV1Api(ApiClient(client.configuration))
        options = {
            "command": list(command),
            "stdin": False,
            "stdout": True,
            "stderr": True,
            "tty": False,
            "_preload_content": False,
        }
        return stream(core.connect_get_namespaced_pod_exec, pod, "linerate-measure", **options)

    start = time.monotonic()
    for number in range(2 * pairs):
        port, address = 20000 + 2 * number, "10.0.0.1"
        for up, there, here in (
            (
                commands.PING_SERVER_UP,
                commands.render_ping_server(address, port, 30),
                commands.render_ping_client(address, port, 30),
            ),
            (
                commands.BANDWIDTH_SERVER_UP,
                commands.write_bandwidth(fabric, "mlx5_9", "", port + 1, address, True),
                commands.write_bandwidth(fabric, "mlx5_9", "", port + 1, address, False),
            ),
        ):
            server = run("server", there)
            while up not in server.peek_stdout(timeout=1):
                pass
            for session in (run("client", here), server):
                while session.is_open():
                    session.update(timeout=1)
    return time.monotonic() - start


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--pairs", type=int, default=PAIRS)
    made.add_argument("--seconds", type=float, default=SECONDS, help="that ib_write_bw takes")
    made.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = made.parse_args(arguments)
    pairs, seconds = SMALLEST if options.smallest else (options.pairs, options.seconds)
    if options.serve:
        asyncio.run(serve(2 * pairs, seconds))
        return ()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    command = [sys.executable, __file__, "--serve", "--pairs", str(pairs), "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            return show(_results(server.stdout.readline().strip(), pairs, seconds), options.json)
        finally:
            server.terminate()


def _results(url: str, pairs: int, seconds: float) -> typing.Iterator[Result]:
    client = ApiClient(Configuration(host=url))

    def counts() -> typing.Counter[str]:
        with urllib.request.urlopen(f"{url}/counts") as answer:
            return collections.Counter(json.load(answer))

    own = 2 * (seconds + PING_SECONDS)
    took, processor, everything = measure(client, [f"node-{number}" for number in range(2 * pairs)])
    ours = counts()
    serial = one_after_the_other(client, BASELINE_PAIRS) / BASELINE_PAIRS * pairs
    execs = (counts()["exec"] - ours["exec"]) // BASELINE_PAIRS * pairs
    size, tools = f"{pairs} pairs, both directions", "rping and ib_write_bw alone"
    yield Result(tools, size, own, "s", 1.0, tools)
    yield Result("round", size, took, "s", took / own, tools, f"{processor:.1f} processor s")
    yield Result("round and its pods", size, everything, "s", everything / own, tools)
    note = f"measured on {BASELINE_PAIRS} pairs and scaled, {serial / took:.3g} times as long as the round"
    yield Result("one pair after the other", size, serial, "s", serial / own, tools, note)
    all_requests = ", ".join(f"{number} x {what}" for what, number in sorted(ours.items()))
    each = "an exec for each command"
    yield Result(
        "requests",
        size,
        sum(ours.values()),
        "requests",
        sum(ours.values()) / execs,
        each,
        f"{all_requests}; no more of them for a further round",
    )
    yield Result(each, size, execs, "requests", 1.0, each, "for each round")


async def serve(nodes: int, seconds: float) -> None:
    runner = web.AppRunner(Pods(nodes, seconds).application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
