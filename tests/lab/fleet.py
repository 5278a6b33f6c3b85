# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods of many nodes made, measured and removed, while nodes die and the API server restarts: build/venv/bin/python
tests/lab/fleet.py [--nodes 1000]

etcd, API server and scheduler are real, in a network namespace of their own, and the stage's code is all of it. The
nodes are objects. Their kubelets are one stand-in: it makes pods ready, serves their exec, in which rping and
ib_write_bw only take their time, and deletes them when asked. A node that dies loses its connections and is reached no
more; its Node and its pods are then told not ready, as the node lifecycle controller does it.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import json
import pathlib
import resource
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import typing
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "build/collections"))

import aiohttp
from aiohttp import web
from kubernetes.config import new_client_from_config
from kubernetes.dynamic import DynamicClient

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.results import split_verdicts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.tests.benchmarks import rounds
from ansible_collections.linerate.rdma.tests.benchmarks.support import memory
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from lab import controlplane, description, network, objects
from lab.pki import Pki
from lab.processes import Processes

NAMESPACE, USER = "linerate-fleet", "fleet"
#: of the nodes, all of them addresses of this network namespace
NODES_NETWORK = "10.79.0.0/16"
KUBELET_PORT, ORDERS_PORT = 10250, 10240
SHARE_DEAD, DOWN_SECONDS, ROUNDS = 0.03, 2.0, 2
OPTIONS = (
    f"--audit-policy-file={pathlib.Path(__file__).with_name('fleet-audit.yaml')}",
    # there is no controller manager, which makes service accounts and takes the taint of a new node away
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    # the stand-in speaks websocket, and not what the API server makes of it for kubelets
    "--feature-gates=TranslateStreamCloseWebsocketRequests=false",
)
Object = dict[str, typing.Any]


def name(number: int) -> str:
    return f"node-{number:04d}"


def address(node: str) -> str:
    number = int(node.rpartition("-")[2])
    return f"10.79.{number // 250}.{number % 250 + 1}"


def ready(status: str) -> Object:
    return {"type": "Ready", "status": status, "reason": "KubeletReady" if status == "True" else "NodeStatusUnknown"}


def node_object(node: str) -> Object:
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "250", rounds.RESOURCE: "8"}
    addresses = [{"type": "InternalIP", "address": address(node)}]
    endpoint = {"kubeletEndpoint": {"Port": KUBELET_PORT}}
    status = {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [ready("True")],
        "addresses": addresses,
        "daemonEndpoints": endpoint,
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status}


class Kubelets(rounds.Pods):
    """The kubelets of all nodes."""

    def __init__(self, seconds: float, authority: Pki) -> None:
        super().__init__(0, seconds)
        self._api: typing.Any = None
        self._authority = authority
        self._context = ssl.create_default_context(cafile=str(authority.path("ca.crt")))
        self._context.load_cert_chain(authority.path("kubelets.crt"), authority.path("kubelets.key"))
        self._node: dict[str, str] = {}
        self._dead: set[str] = set()
        self._open: dict[str, set[asyncio.Transport]] = collections.defaultdict(set)
        self._jobs: set[asyncio.Task[None]] = set()
        self._clients, self._since, self._measured = 0, 0.0, 0.0

    async def serve(self) -> None:
        application = web.Application()
        application.add_routes(
            [
                web.get("/exec/{namespace}/{pod}/{container}", self.exec),
                web.get("/die/{nodes}", self.die),
                web.get("/measured", self.measured),
            ]
        )
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._authority.path("kubelets.crt"), self._authority.path("kubelets.key"))
        await web.TCPSite(runner, "0.0.0.0", KUBELET_PORT, ssl_context=tls, backlog=4096).start()
        await web.TCPSite(runner, "127.0.0.1", ORDERS_PORT).start()
        async with aiohttp.ClientSession(
            self._authority.server, connector=aiohttp.TCPConnector(ssl=self._context, limit=16)
        ) as api:
            self._api = api
            print("ready", flush=True)
            while True:
                with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, ValueError):
                    await self._follow()
                await asyncio.sleep(0.5)

    async def _follow(self) -> None:
        """Pods, until the API server goes away."""
        async with self._api.get("/api/v1/pods") as answer:
            listing = await answer.json()
        for pod in listing["items"]:
            self._act(pod)
        query = {"watch": "true", "resourceVersion": listing["metadata"]["resourceVersion"]}
        async with self._api.get("/api/v1/pods", params=query, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            rest = b""
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for event in map(json.loads, lines):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._act(event["object"])

    def _act(self, pod: Object) -> None:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        if not node or node in self._dead:
            return
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if metadata.get("deletionTimestamp"):
            self._later(self._ask("DELETE", path, {"gracePeriodSeconds": 0}))
        elif metadata["name"] not in self._node or not pod["status"].get("podIP"):
            self._node[metadata["name"]] = node
            networks = [{"name": "linerate-measure/net", "interface": "net1", "ips": [address(node)]}]
            conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
            annotations = {"k8s.v1.cni.cncf.io/network-status": json.dumps(networks)}
            status = {
                "phase": "Running",
                "conditions": conditions,
                "podIP": address(node),
                "podIPs": [{"ip": address(node)}],
            }
            self._later(
                self._ask("PATCH", f"{path}/status", {"metadata": {"annotations": annotations}, "status": status})
            )

    def _later(self, work: typing.Coroutine[typing.Any, typing.Any, None]) -> None:
        job = asyncio.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _ask(self, method: str, path: str, body: Object) -> None:
        """Until the API server has answered."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        while True:
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                async with self._api.request(
                    method, path, data=json.dumps(body), headers={"Content-Type": kind}
                ) as answer:
                    if answer.status < 500:
                        return
            await asyncio.sleep(0.5)

    async def exec(self, request: web.Request) -> web.WebSocketResponse:
        mine, transport = self._open[self._node[request.match_info["pod"]]], request.transport
        assert transport is not None
        mine.add(transport)
        try:
            return await super().exec(request)
        finally:
            mine.discard(transport)

    async def run(self, seconds: float) -> None:
        if not self._clients:
            self._since = time.monotonic()
        self._clients += 1
        try:
            await super().run(seconds)
        finally:
            self._clients -= 1
            if not self._clients:
                self._measured += time.monotonic() - self._since

    async def measured(self, _request: web.Request) -> web.Response:
        """Seconds in which anything was measured anywhere."""
        return web.json_response(self._measured)

    async def die(self, request: web.Request) -> web.Response:
        nodes = request.match_info["nodes"].split(",")
        for node in nodes:
            self._dead.add(node)
            for transport in self._open[node]:
                transport.abort()
            subprocess.run(["ip", "route", "add", "unreachable", f"{address(node)}/32", "table", "local"], check=True)
            self._later(
                self._ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready("Unknown")]}})
            )
            for pod in [pod for pod, its in self._node.items() if its == node]:
                conditions = [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "False", "reason": "NodeNotReady"},
                ]
                self._later(
                    self._ask(
                        "PATCH",
                        f"/api/v1/namespaces/linerate-measure/pods/{pod}/status",
                        {"status": {"conditions": conditions}},
                    )
                )
        return web.json_response(nodes)


@dataclasses.dataclass
class Faults:
    """What goes wrong in the middle, from the first measurement on.

    :ivar dead: nodes that die
    :ivar own: seconds that all tests take
    :ivar away: seconds for which there was no API server
    """

    dead: typing.Sequence[str]
    own: float
    restart: typing.Callable[[], None]
    away: float = 0.0
    failed: list[BaseException] = dataclasses.field(default_factory=list)

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            time.sleep(self.own / 8)
            assert order(f"die/{','.join(self.dead)}") == list(self.dead)
            time.sleep(self.own / 2)
            start = time.monotonic()
            self.restart()
            self.away = time.monotonic() - start
        except BaseException as error:
            self.failed.append(error)


def order(path: str) -> typing.Any:
    """What the stand-in answers.

    :raises OSError: it does not
    """
    with urllib.request.urlopen(f"http://127.0.0.1:{ORDERS_PORT}/{path}") as answer:
        return json.load(answer)


class Stage(rounds.Timed):
    """:ivar faults: begin with the measurements"""

    faults: typing.Optional[Faults] = None

    def _measure(self, *arguments: typing.Any) -> typing.Any:
        if self.faults is not None:
            self.faults.begin()
        return super()._measure(*arguments)


def run(
    kubeconfig: pathlib.Path, nodes: typing.Sequence[str], faults: typing.Optional[Faults]
) -> tuple[BandwidthFacts, Stage, float]:
    client = new_client_from_config(str(kubeconfig))
    dynamic = DynamicClient.__new__(DynamicClient)
    dynamic.client, dynamic.configuration = client, client.configuration
    intent = parse_intent([{**rounds.FABRIC, "bandwidth": {"rounds": ROUNDS}}])
    start = time.monotonic()
    stage = Stage(Cluster(dynamic), Plan(intent.fabrics, intent.cluster, tuple(nodes)), time.monotonic, time.sleep, say)
    stage.faults = faults
    return stage.run(), stage, time.monotonic() - start


def say(line: str) -> None:
    if "the test is repeated" not in line and "pod is ready" not in line and "373.64" not in line:
        print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr)


def judge(facts: BandwidthFacts, nodes: typing.Sequence[str], dead: typing.Collection[str]) -> None:
    """The list is the true one: the dead are the ends that failed and passed with nobody, all pairs of others passed,
    and no pod is left."""
    passed, failed = split_verdicts(parse_intent([rounds.FABRIC]).fabrics[0], facts.pods, facts.pairs)
    good = {node for pair in passed for _rail, node in pair}
    bad = [pair for pair in facts.pairs if pair.failure and not {pair.client, pair.server} & set(dead)]
    assert not bad, [(pair.client, pair.server, pair.failure, pair.evidence) for pair in bad[:5]]
    accused = {node for pair in failed for _rail, node in pair} - good
    assert accused == set(dead), sorted(accused ^ set(dead))
    assert good == set(nodes) - set(dead), sorted((set(nodes) - set(dead)) ^ good)
    assert not facts.remaining, facts.remaining


def requests_in(log: pathlib.Path) -> typing.Counter[str]:
    """Of the stage, by what it asked for."""
    seen = {}
    for path in log.parent.glob(f"{log.stem}*{log.suffix}"):
        for line in path.read_text().splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                what = event.get("objectRef") or {}
                seen[event["auditID"]] = (
                    f"{event['verb']}"
                    f" {what.get('resource')}{'/' + what['subresource'] if what.get('subresource') else ''}"
                )
    return collections.Counter(seen.values())


def inside(folder: pathlib.Path, number: int, seconds: float, calm: bool) -> typing.Iterator[Result]:
    """In the network namespace."""
    own_description = describe()
    nodes = [name(place) for place in range(1, number + 1)]
    authority = controlplane.pki(own_description, folder)
    authority.identity(USER, USER, "system:masters")
    authority.identity("kubelets", "lab:kubelets", "system:masters", hosts=[address(node) for node in nodes])
    subprocess.run(["ip", "route", "add", "local", NODES_NETWORK, "dev", "lo"], check=True)
    processes = Processes(folder, NAMESPACE)

    def serve() -> None:
        controlplane.start_api(own_description, folder, processes, authority, OPTIONS)

    def restart() -> None:
        processes.signal("kube-apiserver", signal.SIGKILL)
        time.sleep(DOWN_SECONDS)
        serve()

    serve()
    controlplane.start_controllers(processes, authority, ("kube-scheduler",))
    core = objects.client(authority.path("admin.kubeconfig"))
    objects.apply(core, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "linerate-measure"}}])
    for node in nodes:
        core.resources.get(api_version="v1", kind="Node").create(body=node_object(node))
    command = [sys.executable, __file__, "--serve", str(folder), "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as kubelets:
        assert kubelets.stdout is not None and kubelets.stdout.readline() == "ready\n"
        try:
            dead = nodes[:: round(1 / SHARE_DEAD)][: max(1, round(SHARE_DEAD * number))]
            own = ROUNDS * 2 * (seconds + rounds.PING_SECONDS)
            faults = None if calm else Faults(dead, own, restart)
            facts, stage, everything = run(authority.path(f"{USER}.kubeconfig"), nodes, faults)
            assert faults is None or not faults.failed, faults.failed
            judge(facts, nodes, () if calm else dead)
            yield from results(
                number, own, order("measured"), stage, everything, requests_in(controlplane.audit_log(folder)), faults
            )
        finally:
            kubelets.terminate()
            processes.stop(*processes.names())


def results(
    number: int,
    own: float,
    measured: float,
    stage: Stage,
    everything: float,
    asked: typing.Counter[str],
    faults: typing.Optional[Faults],
) -> typing.Iterator[Result]:
    """:param measured: seconds in which anything was measured, also what was measured anew"""
    size, tools = f"{number} nodes, {ROUNDS} rounds", "the tests alone"
    what = (
        "calm"
        if faults is None
        else f"{SHARE_DEAD:.0%} of the nodes die, the API server is away for {faults.away:.1f} s"
    )
    yield Result(tools, size, own, "s", 1.0, tools)
    yield Result(
        "measurements",
        size,
        stage.seconds,
        "s",
        stage.seconds / own,
        tools,
        f"{what}; {stage.processor:.1f} processor s",
    )
    yield Result(
        "seconds of them in which nothing was measured",
        size,
        stage.seconds - measured,
        "s",
        (stage.seconds - measured) / measured,
        "the others",
    )
    yield Result("with the life of the pods", size, everything, "s", everything / own, tools)
    total = sum(asked.values())
    note = ", ".join(f"{count} x {kind}" for kind, count in asked.most_common())
    yield Result("requests", size, total, "requests", total / number, "nodes", note)
    yield Result("nodes", size, number, "requests", 1.0, "nodes", "one for each")
    yield Result("memory of the controller", size, memory.peak(), "MiB", 1.0, "memory of the controller")


def describe() -> description.Description:
    """The lab's, in a network namespace of another name, and without workers."""
    lab = description.read()
    return dataclasses.replace(
        lab, name=NAMESPACE, network=dataclasses.replace(lab.network, namespace=NAMESPACE), workers=()
    )


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--nodes", type=int, default=1000)
    made.add_argument("--seconds", type=float, default=30.0, help="that ib_write_bw takes")
    made.add_argument("--calm", action="store_true", help="nothing goes wrong")
    made.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)
    made.add_argument("--serve", type=pathlib.Path, help=argparse.SUPPRESS)
    options = made.parse_args(arguments)
    if options.serve:
        asyncio.run(
            Kubelets(
                options.seconds,
                Pki(options.serve / "pki", f"https://{describe().network.address}:{controlplane.API_PORT}"),
            ).serve()
        )
        return ()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if options.inside:
        return show(inside(options.inside, options.nodes, options.seconds, options.calm), options.json)
    own = describe()
    with tempfile.TemporaryDirectory() as folder:
        network.create(own)
        try:
            given = list(sys.argv[1:] if arguments is None else arguments)
            subprocess.run(
                ["ip", "netns", "exec", NAMESPACE, sys.executable, __file__, *given, "--inside", folder], check=True
            )
        finally:
            network.remove(own)
    return ()


if __name__ == "__main__":
    main()
