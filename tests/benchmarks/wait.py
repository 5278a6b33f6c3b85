# SPDX-License-Identifier: GPL-3.0-or-later

"""Cost of the wait for many nodes: build/venv/bin/python tests/benchmarks/wait.py [--nodes 1000]

A server in another process plays a rollout over HTTP: each node's sync begins, makes its virtual functions, and the
kubelet offers them. The wait is measured beside a loop of the same run that lists nodes and node states every few
seconds, as ``kubernetes.core.k8s_info`` with ``until`` does; it uses the same parsers and the same judgement, and is
not charged for the start of a module at each turn. A node state has 8 HCAs.
"""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import multiprocessing.connection
import pathlib
import sys
import time
import typing

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import Target
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import (
    IN_NAMESPACE,
    KINDS,
    SELECTORS,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.wait_for_network import judge_once, wait
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import WatchFeed
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi

ROOT = pathlib.Path(__file__).parent.parent.parent


@dataclasses.dataclass(frozen=True)
class Size:
    """:ivar rollout: seconds of it; :ivar turn: seconds between two turns of the loop"""

    nodes: int = 1_000
    rollout: float = 20.0
    turn: float = 5.0


SMALLEST = Size(4, 1.0, 0.25)
#: of a node, as those have that RDMA networks are made for, and virtual functions of each one but the first
HCAS, FUNCTIONS = 8, 8
FIXTURES = ROOT / "tests/unit/fixtures/kubernetes"
NAMESPACES = dict.fromkeys(IN_NAMESPACE, "ops")
Resource = dict[str, typing.Any]


def fixture(name: str, kind: str) -> Resource:
    data = yaml.safe_load((FIXTURES / name).read_text())
    return next(item for item in data.get("items", [data]) if item["kind"] == kind)


def grown(state: Resource) -> Resource:
    """A node state with all HCAs: its first one as it is, which the policy is about, and others of which none is
    asked."""
    new = copy.deepcopy(state)
    first = new["status"]["interfaces"][0]
    for number in range(1, HCAS):
        hca = {**copy.deepcopy(first), "name": f"ens{number}f0np0", "pciAddress": f"0000:{16 + number:02x}:00.0"}
        function = hca["Vfs"][0]
        hca["Vfs"] = [
            {**function, "vfID": index, "pciAddress": f"0000:{16 + number:02x}:01.{index}"}
            for index in range(FUNCTIONS)
        ]
        new["status"]["interfaces"].append(hca)
    return new


def named(resource: Resource, name: str) -> Resource:
    new = copy.deepcopy(resource)
    new["metadata"]["name"] = name
    return new


def serve(pipe: multiprocessing.connection.Connection, size: Size) -> None:
    """Tell where the server is, play the rollout when asked, tell when its last event was made and how often the server
    was asked."""
    state, node = (
        grown(fixture("sriovnetworknodestates-igb-succeeded.yaml", "SriovNetworkNodeState")),
        fixture("node-worker-sriov.yaml", "Node"),
    )
    working, bare = copy.deepcopy(state), copy.deepcopy(node)
    working["status"]["syncStatus"] = "InProgress"
    bare["status"]["allocatable"]["openshift.io/igbvf"] = "0"
    names = [f"worker-{number}" for number in range(size.nodes)]
    api = FakeApi()
    api.serve("Node", [named(bare, name) for name in names])
    api.serve("SriovNetworkNodeState", [named(working, name) for name in names], "ops")
    api.serve("SriovNetworkNodePolicy", [fixture("sriov-crs.yaml", "SriovNetworkNodePolicy")], "ops")
    api.serve(
        "NetworkAttachmentDefinition",
        yaml.safe_load((FIXTURES / "networkattachmentdefinitions.yaml").read_text())["items"],
    )
    api.serve("SriovNetworkPoolConfig", [], "ops")
    api.serve("PodDisruptionBudget", [])
    api.serve("Pod", [], "ops")
    api.start()
    pipe.send(api.url)
    pipe.recv()
    events = [("SriovNetworkNodeState", named(working, name), "ops") for name in names]
    events += [("SriovNetworkNodeState", named(state, name), "ops") for name in names]
    events += [("Node", named(node, name), "") for name in names]
    start, halfway, last = time.monotonic(), 0, 0.0
    for number, (kind, item, namespace) in enumerate(events):
        time.sleep(max(0.0, start + number * size.rollout / len(events) - time.monotonic()))
        # before it, since the answer may be there sooner than this process goes on
        last = time.monotonic()
        api.put(kind, item, namespace)
        if number == len(events) // 2:
            halfway = sum(api.requests.values())
    pipe.send((len(events), last))
    pipe.recv()
    pipe.send((halfway, sum(api.requests.values())))


def by_watch(url: str, targets: tuple[Target, ...], begin: typing.Callable[[], None], size: Size) -> None:
    feed = WatchFeed(FakeApi.client(url), NAMESPACES, KINDS, selectors=SELECTORS)
    feed.start()
    begin()
    facts = wait(feed, targets, 10 * size.rollout, time.monotonic, lambda line: None, steady=0.0)
    feed.stop()
    assert all(node.phase == "ready" for node in facts.nodes)


def by_loop(url: str, targets: tuple[Target, ...], begin: typing.Callable[[], None], size: Size) -> None:
    cluster = FakeApi.client(url)
    begin()
    while not all(node.phase == "ready" for node in judge_once(cluster, NAMESPACES, targets).nodes):
        time.sleep(size.turn)


def measure(work: typing.Callable[..., None], size: Size) -> dict[str, float]:
    """Requests, seconds from the last event to the verdict, and processor seconds of the waiting side."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there, size), daemon=True)
    server.start()
    url = here.recv()
    targets = (
        Target(
            "storage",
            ("pol1",),
            "openshift.io/igbvf",
            "default/op-net",
            tuple(f"worker-{number}" for number in range(size.nodes)),
            1,
        ),
    )
    before = time.process_time()
    work(url, targets, lambda: here.send("begin"), size)
    verdict, spent = time.monotonic(), time.process_time() - before
    events, last = here.recv()
    here.send("requests")
    halfway, requests = here.recv()
    server.join()
    return {
        "requests": requests,
        "second half": requests - halfway,
        "verdict": verdict - last,
        "cpu": spent,
        "cpu an event": 1000 * spent / events,
    }


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--nodes", type=int, default=Size.nodes)
    made.add_argument(
        "--rollout",
        type=float,
        default=Size.rollout,
        help="seconds of it: the events stay as many, and the loop turns the more often",
    )
    options = made.parse_args(arguments)
    size = SMALLEST if options.smallest else Size(options.nodes, options.rollout)
    loop_name = f"a list every {size.turn:g} s"
    watch, loop = measure(by_watch, size), measure(by_loop, size)
    words = f"{size.nodes} nodes, {3 * size.nodes} events in {size.rollout:g} s"
    results = []
    for what, figures in (("watch", watch), (loop_name, loop)):
        notes = {
            "requests": f"{figures['second half']:.0f} of them in the second half",
            "verdict": "",
            "cpu": f"{figures['cpu an event']:.2f} ms an event",
        }
        for name, unit in (
            ("requests", "requests"),
            ("verdict", "s from the last event to the verdict"),
            ("cpu", "processor s"),
        ):
            results.append(Result(what, words, figures[name], unit, figures[name] / loop[name], loop_name, notes[name]))
    return show(results, options.json)


if __name__ == "__main__":
    main()
