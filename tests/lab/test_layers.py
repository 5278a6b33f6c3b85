# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer that loses: a limit at each step from the cable to the pod, injected for real, and the step that is named.

The storage NIC has no RDMA device, so it gets software ones on the host (``host-rdma``), which send 12 Mb/s. What soft
RDMA reaches by itself varies too much to compare two of its figures. A slow cable slows all that is above it: so does
each limit here.
"""

from __future__ import annotations

import contextlib
import typing

import pytest

from .conftest import MANAGED, Lab, Run
from .scenarios import BANDWIDTH, PODS_READY, alone

pytestmark = pytest.mark.thorough

WORKERS = ("worker-1", "worker-2")
#: whose limits are injected, and the pair that has them: it sends
SLOW, PAIR = "worker-2", "storage worker-2 -> worker-1"
LAYERS = ("pf_host", "vf_host", "vf_pod")
#: a message takes less time than RDMA waits for its acknowledgement, also at 3 Mb/s
SMALL: typing.Mapping[str, typing.Any] = {"message_bytes": 16384, "iterations": 100}
#: the fastest pair of pods is not limited, and no floor for the host
FLOOR: typing.Mapping[str, typing.Any] = {"fleet_fraction": 0.05, "reason": "the layers are compared, not the pairs"}


def measured(lab: Lab, *faults: str, in_pods: bool = True, **storage: typing.Any) -> Run:
    """Stage bandwidth with RDMA on the hosts, these faults from the start, and the pods of the slow node limited once
    they are there."""
    with contextlib.ExitStack() as stack:
        for worker in WORKERS:
            stack.enter_context(lab.fault("host-rdma", worker=worker))
        for fault in faults:
            stack.enter_context(lab.fault(fault, worker=SLOW))
        variables = {"rdma_fabrics": alone(**{"pods": SMALL, "line_rate": FLOOR, **storage})}
        with lab.running(BANDWIDTH, variables=variables, by_pods=True) as playbook:
            if in_pods:
                playbook.await_text(PODS_READY, 2)
                stack.enter_context(lab.fault("slow-direction", worker=SLOW))
            run = playbook.wait()
    assert lab.objects("v1/Pod", MANAGED) == []
    assert "linerate-observers" not in lab.namespaces()
    return run


def figures(run: Run) -> dict[str, typing.Any]:
    """Of the slow pair by layer."""
    (layers,) = [item for item in run.fact("bandwidth")["bandwidth"]["layers"] if item["client"] == SLOW]
    return {step["layer"]: step for step in layers["steps"]}


@pytest.mark.parametrize(
    ("faults", "loses", "slow"),
    [
        (("slow-pf", "slow-vf"), "the cable, the fabric or the HCA itself", LAYERS),
        (("slow-vf",), "SR-IOV or its rate limits", LAYERS[1:]),
        ((), "the pod: the settings of its VF, its NUMA node or its CPUs", LAYERS[2:]),
    ],
)
def test_the_layer_that_loses_is_named(lab: Lab, faults: tuple[str, ...], loses: str, slow: tuple[str, ...]) -> None:
    run = measured(lab, *faults)
    assert run.code != 0, run.end
    steps = figures(run)
    assert {layer for layer in LAYERS if (steps[layer].get("average_gbps") or 1.0) < 0.0045} == set(slow), (
        steps,
        run.end,
    )
    finding = run.finding("bandwidth", "bandwidth.layer", PAIR)
    assert finding["status"] == "fail" and f"The cause is {loses}." in finding["why"], finding
    assert finding["remedy"]


def test_without_rdma_on_the_host_the_layers_are_not_told_apart(lab: Lab) -> None:
    with lab.running(BANDWIDTH, variables={"rdma_fabrics": alone()}, by_pods=True) as playbook:
        playbook.await_text(PODS_READY, 2)
        with lab.fault("slow-direction", worker=SLOW):
            run = playbook.wait()
    finding = run.finding("bandwidth", "bandwidth.layer", PAIR)
    assert (
        finding["status"] == "unknown"
        and "cannot distinguish these causes" in finding["why"]
        and "RDMA device" in finding["why"]
    ), finding


def test_a_pod_without_enough_cpu_is_seen_to_be_held_back(lab: Lab) -> None:
    run = measured(lab, in_pods=False, pods={**SMALL, "cpu": "100m"}, bandwidth={"layers": "all"})
    step = figures(run)["vf_pod"]
    assert step["client"].get("throttled") or step["server"].get("throttled"), (step, run.end)
