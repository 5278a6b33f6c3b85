# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measurements between pods: order, retries, failures, and that no pod stays. The API server and the pods are played."""

from __future__ import annotations

import json
import threading

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.cluster import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError, Listing
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.pairs import Bench, Plan

INTENT = parse_intent(
    [
        {
            "name": "storage",
            "profile": "sriov_ethernet",
            "select": {"hcas_per_node": 1},
            "virtual_functions": 4,
            "resource_name": "igb",
            "network": {"name": "net", "namespace": "test"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
            "pods": {"connection": "rdma_cm", "iterations": 100},
        }
    ]
)
PINGS = "".join(f"ping data: rdma-ping-{number}: ABC\n" for number in range(5))
TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      100           0.084767            {}            0.000066\n"
)
GOOD = TABLE.format("0.034819")
REFUSED = CommandResult("", 1, "", "Couldn't connect to 10.0.0.2:18603\n")


class Session:
    def __init__(self, result, up):
        self.result = result
        self.up = up
        self.closed = False

    @property
    def running(self):
        return self.up

    def wait_for(self, text, seconds):
        return self.up

    def wait(self, seconds):
        return self.result

    def close(self):
        self.closed = True


class Api:
    """One API server with a kubelet that starts every pod at once. ``answers``: what a tool's client and server do."""

    def __init__(self, nodes=("a", "b"), offered="4", answers=None, refuse=None):
        self.nodes = nodes
        self.offered = offered
        self.answers = answers or {}
        self.refuse = refuse
        self.pods = {}
        self.made = []
        self.ran = []

    def list(self, kind, namespace="", selector=""):
        if kind == "Node":
            return Listing(
                tuple({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"openshift.io/igb": self.offered}}} for name in self.nodes), "1"
            )
        if kind == "Pod":
            assert selector == "app.kubernetes.io/managed-by=linerate.rdma,linerate.rdma/fabric"
            return Listing(tuple(self.pods.values()), "1")
        return Listing((), "1")

    def watch(self, kind, version, namespace="", selector=""):
        # nothing more ever happens
        threading.Event().wait()
        yield {}

    def create(self, definition):
        if self.refuse:
            raise self.refuse
        name = definition["metadata"]["name"]
        number = len(self.made) + 1
        self.made.append(name)
        status = [{"name": "test/net", "interface": "net1", "ips": [f"10.0.0.{number}"]}]
        annotations = {**definition["metadata"]["annotations"], "k8s.v1.cni.cncf.io/network-status": json.dumps(status)}
        self.pods[name] = {
            "kind": "Pod",
            "metadata": {**definition["metadata"], "annotations": annotations},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]},
        }

    def delete(self, kind, namespace, name, grace_seconds=None, dry_run=False):
        return self.pods.pop(name, None) is not None

    def run(self, namespace, pod, container, command, clock):
        tool = next(word for word in command if word in ("sh", "rping", "ib_write_bw"))
        if tool == "sh":
            return Session(CommandResult("probe", 0, f'rdma [{{"ifname":"siw-{pod[-1]}","netdev":"net1"}}]\nrate siw-{pod[-1]} 2.5 Gb/sec\n'), True)
        client = command[-1].startswith("10.") or "-c" in command
        self.ran.append((tool, "client" if client else "server", pod[-1], command))
        answer = self.answers.get((tool, "client" if client else "server"))
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        default = CommandResult(" ".join(command), 0, PINGS if tool == "rping" else GOOD if client else "")
        return Session(answer or default, True)


class Clock:
    now = 0.0

    def __call__(self):
        self.now += 0.01
        return self.now


def run(api, nodes=("a", "b"), **options):
    lines = []
    plan = Plan(INTENT.fabrics, INTENT.cluster, nodes, parallel=2, pod_seconds=60.0, **options)
    return Bench(api, plan, Clock(), lambda seconds: None, lines.append).run(), lines


def test_each_ordered_pair_is_measured_once_and_no_pod_stays():
    api = Api()
    facts, lines = run(api)
    assert [(pair.client, pair.server, pair.pings, pair.average_gbps) for pair in facts.pairs] == [("a", "b", 5, 0.034819), ("b", "a", 5, 0.034819)]
    assert [(pod.node, pod.device, pod.interface, pod.rate_gbps) for pod in facts.pods] == [("a", "siw-a", "net1", 2.5), ("b", "siw-b", "net1", 2.5)]
    assert api.pods == {}
    assert (facts.leftovers, facts.remaining) == ((), ())
    assert "storage a -> b: 5 pings, 0.0348 Gb/s" in lines


def test_the_client_aims_at_the_server_s_address_with_its_own_device():
    api = Api()
    facts, _lines = run(api)
    addresses = {pod.node: pod.address for pod in facts.pods}
    for tool, side, node, command in api.ran:
        if tool == "ib_write_bw":
            assert command[command.index("-d") + 1] == f"siw-{node}"
            assert "-R" in command
        if side == "client":
            assert command[command.index("-a") + 1 if tool == "rping" else -1] == addresses["b" if node == "a" else "a"]
        assert command[:3] == ("timeout", "--kill-after=5", command[2])


def test_three_nodes_are_six_pairs():
    facts, _lines = run(Api(("a", "b", "c")), ("a", "b", "c"))
    assert len({(pair.client, pair.server) for pair in facts.pairs}) == len(facts.pairs) == 6


def test_no_two_runs_share_a_port():
    api = Api(("a", "b", "c"))
    run(api, ("a", "b", "c"))
    servers = [command[command.index("-p") + 1] for _tool, side, _node, command in api.ran if side == "server"]
    assert len(set(servers)) == len(servers)


def test_a_node_that_offers_nothing_gets_no_pod():
    api = Api(offered="0")
    facts, _lines = run(api)
    assert api.made == []
    assert [pod.error for pod in facts.pods] == ["the node offers no openshift.io/igb"] * 2
    assert facts.pairs == ()


def test_a_node_that_the_cluster_does_not_know():
    facts, _lines = run(Api(("a",)))
    assert facts.pods[1].error == "the cluster knows no such node"


def test_a_refused_pod_keeps_the_server_s_words():
    facts, _lines = run(Api(refuse=ApiError(403, "Forbidden", "violates PodSecurity baseline", "POST")))
    assert "violates PodSecurity baseline" in facts.pods[0].error


def test_a_client_that_came_too_early_is_tried_again():
    api = Api(answers={("ib_write_bw", "client"): [REFUSED, REFUSED, None, None]})
    facts, _lines = run(api)
    assert [pair.average_gbps for pair in facts.pairs] == [0.034819, 0.034819]


def test_the_retries_are_bounded():
    api = Api(answers={("ib_write_bw", "client"): REFUSED})
    facts, _lines = run(api)
    assert [pair.failure for pair in facts.pairs] == ["not_listening", "not_listening"]
    assert sum(tool == "ib_write_bw" and side == "client" for tool, side, _node, _command in api.ran) == 10


@pytest.mark.parametrize(
    ("side", "answer", "failure"),
    [
        # a perfect table beside a failure
        ("client", CommandResult("", 1, GOOD, "ethernet_read_keys: Couldn't read remote address\n"), "peer_gone"),
        ("client", CommandResult("", 0, TABLE.format("0.000000")), "no_measurement"),
        ("client", CommandResult("", 0, TABLE.format("inf")), "no_measurement"),
        ("client", CommandResult("", 0, ""), "no_measurement"),
        ("client", CommandResult("", 124, "", "", True), "hang"),
        ("client", CommandResult("", None, GOOD, "", False, 1.0, "the connection to the pod broke"), "exec_lost"),
        ("client", ApiError(404, "NotFound", "pod not found", "exec"), "exec_lost"),
        ("server", CommandResult("", 1, "", "Couldn't allocate MR\n"), "memlock"),
    ],
)
def test_failures_are_no_measurements(side, answer, failure):
    api = Api(answers={("ib_write_bw", side): answer})
    facts, _lines = run(api)
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [(failure, None)] * 2
    assert api.pods == {}


def test_a_failed_ping_spares_the_bandwidth():
    api = Api(answers={("rping", "client"): CommandResult("", 255, "", "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110\n")})
    facts, _lines = run(api)
    assert [(pair.ping_failure, pair.failure, pair.average_gbps) for pair in facts.pairs] == [("no_address", "ping", None)] * 2
    assert not any(tool == "ib_write_bw" for tool, _side, _node, _command in api.ran)


def test_rping_s_server_may_fail_after_a_good_run():
    api = Api(answers={("rping", "server"): CommandResult("", 255, "", "rping server failed: -1\n")})
    facts, _lines = run(api)
    assert all(pair.ping_failure == "" and pair.average_gbps for pair in facts.pairs)


def test_leftovers_are_removed_first_and_named():
    api = Api()
    api.pods["old"] = {"kind": "Pod", "metadata": {"name": "old", "namespace": "test"}}
    facts, lines = run(api)
    assert facts.leftovers == ("test/old",)
    assert "interrupted earlier run: test/old" in lines[0]


def test_an_interrupt_leaves_no_pod():
    api = Api(answers={("rping", "server"): KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(api)
    assert api.made
    assert api.pods == {}


def test_an_api_server_that_is_away_at_the_end_does_not_hide_the_figures():
    api = Api()

    def away(*arguments, **options):
        raise ApiError(0, "Unreachable", "refused", "DELETE")

    api.delete = away
    facts, _lines = run(api)
    assert len(facts.pairs) == 2
    assert "refused" in facts.remaining[0]
