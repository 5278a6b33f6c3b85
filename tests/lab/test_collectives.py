# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage collectives on real pods: mpirun and its daemons, rings over the pods' own VFs, what proves and refuses them.

nccl-tests and NCCL are a stand-in (lab/collectives), which needs no GPU: it says of each channel what it really went
over. One HCA of each worker makes one rail.
"""

from __future__ import annotations

import contextlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import NAMESPACE
from lab.collectives.image import IMAGE
from lab.description import read
from lab.processes import wait_until

from .conftest import MANAGED, SETTINGS, Lab, Run
from .scenarios import NETWORK, PODS_READY, intent
from .test_jobs import node

pytestmark = pytest.mark.thorough

WORKERS = ("worker-1", "worker-2")
COLLECTIVES = "playbooks/collectives.yml"
#: one rail. Two with a VF each would be another NUM_OF_VFS of the firmware, for which the operator reboots the workers
RAILS = tuple(hca for hca in read().hcas if hca.fabric == "fabric-1")[:1]
#: of a whole run with stage bandwidth
SECONDS = 2400.0
LEAST_BYTES = 65536
#: on each worker: each VF that comes to a pod sends as much as the others. What software RDMA reaches by itself under
#: emulation varies too much to hold a figure against another one
STEADY = (
    "touch /run/steady; (while [ -e /run/steady ]; do for pod in $(ls /run/netns); do for dev in net1; do "
    "if ! [ -e /run/steady.$pod.$dev ] && ip -n $pod link show $dev; then "
    "tc -n $pod qdisc replace dev $dev root tbf rate 4mbit burst 16kb latency 400ms && touch /run/steady.$pod.$dev; "
    "fi; done; done; sleep 1; done) < /dev/null > /dev/null 2>&1 &"
)
UNLIMITED = "rm -f /run/steady*"
#: on a worker: a loop that ends with the file, over what belongs to each rank that runs
_EACH_RANK = (
    "touch /run/broken; (while [ -e /run/broken ]; do for rank in /proc/[0-9]*; do "
    'if [ "$(cat $rank/comm)" = all_reduce_perf ]; then %s; fi; done; sleep 0.5; done) < /dev/null > /dev/null 2>&1 &'
)
#: a rank has begun once its log has lines
_KILL = 'if [ -n "$(cat $rank/root/tmp/nccl/*)" ]; then kill -9 ${rank#/proc/}; fi'
#: the lines that end the initialization of the rank are lost. What it writes afterwards follows a gap
_CUT = "for log in $rank/root/tmp/nccl/*; do truncate -s 1000 $log; done"
#: a quarter of what the others send, on what STEADY has limited
_SLOW = (
    "touch /run/broken; (while [ -e /run/broken ]; do for mark in /run/steady.*.net1; do pod=${mark#/run/steady.}; "
    "tc -n ${pod%.net1} qdisc replace dev net1 root tbf rate 1mbit burst 16kb latency 1600ms; done; sleep 1; done) "
    "< /dev/null > /dev/null 2>&1 &"
)
_WHOLE = "rm -f /run/broken"
WANTED = {
    "image": IMAGE,
    "cpu": "1",
    "memory": "512Mi",
    "fabric": "compute",
    "gpus_per_node": len(RAILS),
    # the lab has no GPU: ranks of a node share its memory, and what they send comes from there
    "gpu_direct": False,
    "shared_memory": True,
    # what takes as long here as 8 GiB elsewhere
    "least_bytes": LEAST_BYTES,
    "most_bytes": 2 * LEAST_BYTES,
    "share": 0.5,
    "share_reason": "the ranks of a worker share its two emulated processors",
}


def _compute() -> dict[str, typing.Any]:
    (fabric,) = [item for item in SETTINGS["rdma_fabrics"] if item["name"] == "compute"]
    return {
        **fabric,
        "select": {**fabric["select"], "hcas_per_node": len(RAILS), "pci": [hca.pci for hca in RAILS]},
        # a ring sends and receives at the same time
        "bandwidth": {"directions": "at_once"},
    }


COMPUTE = _compute()
VARIABLES: typing.Mapping[str, typing.Any] = {
    "rdma_fabrics": [COMPUTE],
    "rdma_cluster": {**SETTINGS["rdma_cluster"], "collectives": WANTED},
}


@pytest.fixture(scope="module", autouse=True)
def rails(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    """The image is on the workers, each has as many GPUs as rails by its status, and VFs on the HCAs of these alone."""
    others = [fabric for fabric in intent() if fabric["name"] != "compute"]
    here, back = (Lab(tmp_path_factory.mktemp(name)) for name in ("rails", "back"))
    with here.running_on_demand("collectives"):
        here.apply(
            *(node(name, capacity={"nvidia.com/gpu": str(len(RAILS))}) for name in WORKERS), subresource="status"
        )
        try:
            for worker in WORKERS:
                steady = here.command("on", worker, STEADY)
                assert steady.returncode == 0, steady.stderr
            made = here.playbook(NETWORK, variables={"rdma_fabrics": [COMPUTE, *others]})
            assert made.code == 0, made.end
            yield
        finally:
            for worker in WORKERS:
                here.command("on", worker, UNLIMITED)
            here.apply(*(node(name) for name in WORKERS), subresource="status")
            restored = back.playbook(NETWORK, variables={"rdma_fabrics": intent()})
        assert restored.code == 0, restored.end


def figures(run: Run) -> list[dict[str, str]]:
    """What counts as a figure between nodes."""
    return [item for item in run.findings("collectives", "pass", "fail") if item["check"] == "collectives.bandwidth"]


def assert_gone(lab: Lab) -> None:
    assert lab.objects("v1/Pod", MANAGED) == []
    assert wait_until(lambda: NAMESPACE not in lab.namespaces(), 300), f"namespace {NAMESPACE} is still there"


def test_collectives_over_the_pods_own_functions_are_proven_from_one_node_to_all(lab: Lab) -> None:
    run = lab.playbook("site.yml", "--tags", "bandwidth,collectives", variables=VARIABLES, seconds=SECONDS)
    seen = run.fact("collectives")["collectives"]
    assert [(pod["node"], pod.get("error", "")) for pod in seen["pods"]] == [(name, "") for name in WORKERS], run.end
    assert [sorted(hca["rail"] for hca in pod["hcas"]) for pod in seen["pods"]] == [list(range(len(RAILS)))] * len(
        WORKERS
    )
    # one rank of a node alone sends nothing. Whatever its speed, each run is proven, has figures, and ended by itself
    assert {(ran["kind"], ran.get("failure", "")) for ran in seen["runs"]} == {("two nodes", "")}, run.end
    ways = [item for item in run.findings("collectives", "pass") if item["check"] == "collectives.way"]
    assert len(ways) == len(seen["runs"]), run.end
    assert all(
        row["in_place"]["wrong"] == 0 and row["in_place"]["time_us"] > 0
        for ran in seen["runs"]
        for row in ran["figures"]["rows"]
    )
    assert run.findings("collectives", "fail", "unknown") == [], run.end
    assert figures(run) and all("KiB" in item["measured"] and "RING" in item["measured"] for item in figures(run))
    assert run.code == 0, run.end
    assert_gone(lab)


def test_a_node_whose_ports_go_down_falls_back_to_tcp_and_is_named(lab: Lab) -> None:
    """The links of its VFs are disabled once its pod is there: its ranks find no active port, and go over TCP."""
    with contextlib.ExitStack() as stack, lab.running(COLLECTIVES, variables=VARIABLES) as playbook:
        playbook.await_text(PODS_READY, len(WORKERS))
        for hca in RAILS:
            stack.enter_context(lab.fault("vf-link-disabled", worker="worker-2", device=hca.name))
        run = playbook.wait(SECONDS)
    named = [item for item in run.findings("collectives", "fail") if item["check"] == "collectives.transport"]
    assert any(
        "worker-2 rank" in item["subject"] and "NCCL found no RDMA device in the pod" in item["why"] for item in named
    ), run.end
    assert figures(run) == [] and run.code != 0, run.end
    assert_gone(lab)


@contextlib.contextmanager
def broken(lab: Lab, script: str) -> typing.Iterator[None]:
    """A loop runs on worker-2, until it is taken back."""
    try:
        begun = lab.command("on", "worker-2", script)
        assert begun.returncode == 0, begun.stderr
        yield
    finally:
        ended = lab.command("on", "worker-2", _WHOLE)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("script", "check"),
    (
        (_EACH_RANK % _KILL, "collectives.started"),
        (_EACH_RANK % _CUT, "collectives.ranks"),
        (_SLOW, "collectives.bandwidth"),
    ),
    ids=("a rank dies", "the log of a rank is cut off", "a rail of a node is slow"),
)
def test_what_breaks_on_a_node_during_a_collective_is_no_pass(lab: Lab, script: str, check: str) -> None:
    """It breaks once the pods of stage collectives are there: stage bandwidth has measured the rails before."""
    tags = ("--tags", "bandwidth,collectives")
    with contextlib.ExitStack() as stack, lab.running("site.yml", *tags, variables=VARIABLES) as playbook:
        playbook.await_text(PODS_READY, 2 * len(WORKERS))
        stack.enter_context(broken(lab, script))
        run = playbook.wait(SECONDS)
    assert [item for item in run.findings("collectives", "fail", "unknown") if item["check"] == check], run.end
    assert [item for item in figures(run) if item["status"] == "pass"] == [] and run.code != 0, run.end
    assert_gone(lab)
