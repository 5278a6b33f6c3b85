# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage collectives on real pods: mpirun and its daemons, rings over the pods' own VFs, what proves and refuses them.

nccl-tests and NCCL are a stand-in (lab/collectives), which needs no GPU: it says of each channel what it really went
over. Two HCAs of each worker make two rails, with one VF each, so that a pod that gets two has one of each.
"""

from __future__ import annotations

import contextlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.measuring import NAMESPACE
from lab.collectives.image import IMAGE
from lab.description import read
from lab.processes import wait_until

from .conftest import MANAGED, SETTINGS, Lab, Run
from .scenarios import NETWORK, PODS_READY, intent
from .test_jobs import node

pytestmark = pytest.mark.thorough

WORKERS = ("worker-1", "worker-2")
COLLECTIVES = "playbooks/collectives.yml"
RAILS = tuple(hca for hca in read().hcas if hca.fabric == "fabric-1")[:2]
#: of a whole run with stage bandwidth
SECONDS = 2400.0
#: seconds that a script on a worker waits for the ranks that it strikes
STRIKE_SECONDS = 500
LEAST_BYTES = 65536
#: both rails are netdevs of one subnet: each leaves by its own, and answers for its own address alone
OWN_WAYS = [{"type": "sbr"}, {"type": "tuning", "sysctl": {"net.ipv4.conf.all.arp_ignore": "1"}}]
#: on each worker: each VF that comes to a pod sends as much as the others. What software RDMA reaches by itself under
#: emulation varies too much to hold a figure against another one
STEADY = (
    "touch /run/steady; (while [ -e /run/steady ]; do for pod in $(ls /run/netns); do for dev in net1 net2; do "
    "if ! [ -e /run/steady.$pod.$dev ] && ip -n $pod link show $dev; then "
    "tc -n $pod qdisc replace dev $dev root tbf rate 4mbit burst 16kb latency 400ms && touch /run/steady.$pod.$dev; "
    "fi; done; done; sleep 1; done) < /dev/null > /dev/null 2>&1 &"
)
UNLIMITED = "rm -f /run/steady*"
#: a quarter of that, for one VF of the pod of the stage, which alone has several
SLOW = (
    "for pod in $(ls /run/netns); do if ip -n $pod link show net2 > /dev/null 2>&1; then "
    "touch /run/steady.$pod.net1; "
    "tc -n $pod qdisc replace dev net1 root tbf rate 1mbit burst 16kb latency 400ms && exit 0; fi; done"
)
#: what the stage tells of a test of two nodes whose figure does not count
NOT_PROVEN = "two nodes: worker-1, worker-2: no figure that counts, not proven"
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
    "expected_busbw": [
        {
            "test": "all_reduce",
            "gbs": 0.0003,
            "reason": "all rails and ranks of a worker share its two emulated processors",
        }
    ],
}


def _compute() -> dict[str, typing.Any]:
    (fabric,) = [item for item in SETTINGS["rdma_fabrics"] if item["name"] == "compute"]
    return {
        **fabric,
        "select": {**fabric["select"], "hcas_per_node": len(RAILS), "pci": [hca.pci for hca in RAILS]},
        "virtual_functions": 1,
        "network": {**fabric["network"], "meta_plugins": OWN_WAYS},
        # a ring sends and receives at the same time
        "bandwidth": {"directions": "at_once"},
    }


COMPUTE = _compute()
#: fewer VFs are another NUM_OF_VFS of the firmware, which the operator reboots the workers for
REBOOT = {**SETTINGS["rdma_cluster"], "disruption": "reboot"}
VARIABLES: typing.Mapping[str, typing.Any] = {
    "rdma_fabrics": [COMPUTE],
    "rdma_cluster": {**SETTINGS["rdma_cluster"], "collectives": WANTED},
}


@pytest.fixture(scope="module", autouse=True)
def rails(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    """The image is on the workers, each has as many GPUs as rails by its status, and one VF on each of these."""
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
            made = here.playbook(NETWORK, variables={"rdma_fabrics": [COMPUTE, *others], "rdma_cluster": REBOOT})
            assert made.code == 0, made.end
            yield
        finally:
            for worker in WORKERS:
                here.command("on", worker, UNLIMITED)
            here.apply(*(node(name) for name in WORKERS), subresource="status")
            restored = back.playbook(NETWORK, variables={"rdma_fabrics": intent(), "rdma_cluster": REBOOT})
        assert restored.code == 0, restored.end


def struck(lab: Lab, script: str, *stages: str, pods: int = len(WORKERS)) -> Run:
    """Run the stage; once its pods are ready, a script on worker-2 waits for what it strikes.

    :param stages: options of site.yml, in place of the stage alone
    :param pods: that are ready by then
    """
    with lab.running("site.yml" if stages else COLLECTIVES, *stages, variables=VARIABLES) as running:
        running.await_text(PODS_READY, pods)
        done = lab.command(
            "on",
            "worker-2",
            f"end=$(($(date +%s) + {STRIKE_SECONDS})); "
            f"while [ $(date +%s) -lt $end ]; do {script}; sleep 0.2; done; exit 1",
        )
        assert done.returncode == 0, done.stderr
        return running.wait(SECONDS)


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
    # whatever their speed: each run is proven, has figures, and ended by itself
    assert [(ran["kind"], ran.get("failure", "")) for ran in seen["runs"]][:3] == [
        ("one node", ""),
        ("one node", ""),
        ("two nodes", ""),
    ], run.end
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
        "worker-2 rank" in item["subject"] and "no RDMA device that it may use" in item["why"] for item in named
    ), run.end
    assert figures(run) == [] and run.code != 0, run.end
    assert_gone(lab)


def test_a_node_that_lost_one_port_does_not_use_that_rail_and_is_named(lab: Lab) -> None:
    with contextlib.ExitStack() as stack, lab.running(COLLECTIVES, variables=VARIABLES) as playbook:
        playbook.await_text(PODS_READY, len(WORKERS))
        stack.enter_context(lab.fault("vf-link-disabled", worker="worker-2", device=RAILS[1].name))
        run = playbook.wait(SECONDS)
    named = [item for item in run.findings("collectives", "fail") if item["check"] == "collectives.rails"]
    assert any(item["subject"].endswith("worker-2") and "rail 1" in item["why"] for item in named), run.end
    assert figures(run) == [] and run.code != 0, run.end
    assert_gone(lab)


def attempts(run: Run) -> list[dict[str, typing.Any]]:
    """Tests of two nodes over all rails. One that proves nothing is made once more, if each rail alone is fast."""
    runs = run.fact("collectives")["collectives"]["runs"]
    assert {ran["rail"] for ran in runs if ran.get("rail") is not None} == set(range(len(RAILS))), run.end
    return [ran for ran in runs if ran["kind"] == "two nodes"]


def test_a_rank_that_dies_ends_its_test_alone(lab: Lab) -> None:
    """It is one of two nodes: the tests of one node were made before, and what follows is whole again."""
    script = (
        "for pid in $(pgrep -x all_reduce_perf); do "
        "if grep -qz ^NCCL_TESTS_SPLIT= /proc/$pid/environ "
        "&& grep -qs 'Connected all rings' /proc/$pid/root/tmp/nccl/*; then kill -9 $pid && exit 0; fi; done"
    )
    run = struck(lab, script)
    struck_one, again = attempts(run)
    assert struck_one.get("failure") and not (struck_one.get("figures") or {}).get("rows"), struck_one
    assert not again.get("failure") and again["figures"]["rows"], again
    assert NOT_PROVEN in " ".join(run.output.split()), run.end
    assert_gone(lab)


def test_a_log_that_is_cut_off_proves_nothing(lab: Lab) -> None:
    """Of one rank of two nodes the first lines are left; what it still writes goes nowhere."""
    script = (
        "for log in /var/lib/kubelet/pods/*/volumes/kubernetes.io~empty-dir/logs/*.worker-2.*; do "
        "if grep -qs 'via NET/IB' $log; then head -n 8 $log > /tmp/cut && mv /tmp/cut $log && exit 0; fi; done"
    )
    run = struck(lab, script)
    cut, again = attempts(run)
    assert not cut.get("failure") and cut["figures"]["rows"] and not again.get("failure"), (cut, again)
    assert NOT_PROVEN in " ".join(run.output.split()), run.end
    assert_gone(lab)


def test_a_slow_port_is_halved_until_its_rail_is_named(lab: Lab) -> None:
    """One VF of the pod of a node is limited once stage bandwidth has measured it. Of two nodes none is known to be
    fast: the rail is named for both."""
    # those of stage bandwidth have one rail each
    run = struck(lab, SLOW, "--tags", "bandwidth,collectives", pods=len(WORKERS) * (len(RAILS) + 1))
    slow = [item for item in run.findings("collectives", "fail") if item["check"] == "collectives.bandwidth"]
    assert any("two nodes" in item["subject"] for item in slow), run.end
    trials = [ran for ran in run.fact("collectives")["collectives"]["runs"] if ran.get("rail") is not None]
    assert {ran["rail"] for ran in trials} == set(range(len(RAILS)))
    suspected = [
        item["subject"]
        for item in run.findings("collectives", "fail", "unknown")
        if item["check"] == "collectives.suspect"
    ]
    suspects = {subject for subject in suspected if " rail " in subject}
    assert len({subject.partition(" rail ")[2].partition(" ")[0] for subject in suspects}) == 1, (suspects, run.end)
    assert_gone(lab)
