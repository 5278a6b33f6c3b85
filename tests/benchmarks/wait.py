# SPDX-License-Identifier: GPL-3.0-or-later

"""Cost of the wait for 1,000 nodes: build/venv/bin/python tests/benchmarks/wait.py

A server in another process plays a rollout over HTTP: each node's sync begins, makes its virtual functions, and the kubelet offers them. The wait is
measured beside a loop of the same run that lists nodes and node states every few seconds, as ``kubernetes.core.k8s_info`` with ``until`` does; it uses the
same parsers and the same judgement, and is not charged for the start of a module at each turn.
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import multiprocessing.connection
import pathlib
import sys
import time
import typing

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.wait.state import Target
from ansible_collections.linerate.rdma.plugins.module_utils._run.wait_for_network import IN_NAMESPACE, KINDS, SELECTORS, look, wait
from ansible_collections.linerate.rdma.plugins.module_utils._run.watch import WatchFeed
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi

ROOT = pathlib.Path(__file__).parent.parent.parent
NODES = 1_000
#: seconds of the rollout, and between two turns of the loop
ROLLOUT, TURN = 20.0, 5.0
FIXTURES = ROOT / "tests/unit/fixtures/kubernetes"
NAMESPACES = dict.fromkeys(IN_NAMESPACE, "ops")
Resource = typing.Dict[str, typing.Any]


def fixture(name: str, kind: str) -> Resource:
    data = yaml.safe_load((FIXTURES / name).read_text())
    return next(item for item in data.get("items", [data]) if item["kind"] == kind)


def named(resource: Resource, name: str) -> Resource:
    new = copy.deepcopy(resource)
    new["metadata"]["name"] = name
    return new


def serve(pipe: multiprocessing.connection.Connection) -> None:
    """Tell where the server is, play the rollout when asked, tell when its last event was made and how often the server was asked."""
    state, node = fixture("sriovnetworknodestates-igb-succeeded.yaml", "SriovNetworkNodeState"), fixture("node-worker-sriov.yaml", "Node")
    working, bare = copy.deepcopy(state), copy.deepcopy(node)
    working["status"]["syncStatus"] = "InProgress"
    bare["status"]["allocatable"]["openshift.io/igbvf"] = "0"
    names = [f"worker-{number}" for number in range(NODES)]
    api = FakeApi()
    api.serve("Node", [named(bare, name) for name in names])
    api.serve("SriovNetworkNodeState", [named(working, name) for name in names], "ops")
    api.serve("SriovNetworkNodePolicy", [fixture("sriov-crs.yaml", "SriovNetworkNodePolicy")], "ops")
    api.serve("NetworkAttachmentDefinition", yaml.safe_load((FIXTURES / "networkattachmentdefinitions.yaml").read_text())["items"])
    api.serve("SriovNetworkPoolConfig", [], "ops")
    api.serve("PodDisruptionBudget", [])
    api.serve("Pod", [], "ops")
    api.start()
    pipe.send(api.url)
    pipe.recv()
    events = [("SriovNetworkNodeState", named(working, name), "ops") for name in names]
    events += [("SriovNetworkNodeState", named(state, name), "ops") for name in names]
    events += [("Node", named(node, name), "") for name in names]
    start, halfway = time.monotonic(), 0
    for number, (kind, item, namespace) in enumerate(events):
        time.sleep(max(0.0, start + number * ROLLOUT / len(events) - time.monotonic()))
        api.put(kind, item, namespace)
        if number == len(events) // 2:
            halfway = sum(api.requests.values())
    pipe.send((len(events), time.monotonic()))
    pipe.recv()
    pipe.send((halfway, sum(api.requests.values())))


def by_watch(url: str, targets: typing.Tuple[Target, ...], begin: typing.Callable[[], None]) -> None:
    feed = WatchFeed(FakeApi.client(url), NAMESPACES, KINDS, selectors=SELECTORS)
    feed.start()
    begin()
    facts = wait(feed, targets, 10 * ROLLOUT, time.monotonic, lambda line: None, steady=0.0)
    feed.stop()
    assert all(node.phase == "ready" for node in facts.nodes)


def by_loop(url: str, targets: typing.Tuple[Target, ...], begin: typing.Callable[[], None]) -> None:
    cluster = FakeApi.client(url)
    begin()
    while not all(node.phase == "ready" for node in look(cluster, NAMESPACES, targets).nodes):
        time.sleep(TURN)


def measure(name: str, work: typing.Callable[..., None]) -> typing.Dict[str, float]:
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = here.recv()
    targets = (Target("storage", ("pol1",), "openshift.io/igbvf", "default/op-net", tuple(f"worker-{number}" for number in range(NODES)), 1),)
    before = time.process_time()
    work(url, targets, lambda: here.send("begin"))
    verdict, spent = time.monotonic(), time.process_time() - before
    events, last = here.recv()
    here.send("requests")
    halfway, requests = here.recv()
    server.join()
    figures = {"requests": requests, "in the second half": requests - halfway, "verdict": verdict - last, "cpu": spent, "cpu an event": 1000 * spent / events}
    print(f"{name:<22} {requests:>8} {requests - halfway:>19} {figures['verdict']:>15.2f} s {spent:>9.2f} s {figures['cpu an event']:>11.2f} ms")
    return figures


def main() -> None:
    print(f"{NODES} nodes, {3 * NODES} events in {ROLLOUT:.0f} s")
    print("                       requests  in the second half  event to verdict   processor    an event")
    watch = measure("watch", by_watch)
    loop = measure(f"list every {TURN:.0f} s", by_loop)
    ratios = {name: round(loop[name] / watch[name], 1) if watch[name] else None for name in ("requests", "verdict", "cpu")}
    print(f"loop / watch: {json.dumps(ratios)}")


if __name__ == "__main__":
    main()
