# SPDX-License-Identifier: GPL-3.0-or-later

"""An Event about a pod that fails: any kubelet may write one about a pod of any node."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pod_readiness import ReadinessWait

KUBELET = {"source": {"component": "kubelet", "host": "worker-1"}}
NEWER = {"source": {"component": "kubelet"}, "reportingComponent": "kubelet", "reportingInstance": "worker-1"}


@pytest.mark.parametrize(
    ("who", "told"),
    [
        (KUBELET, "Failed: no CNI"),
        (NEWER, "Failed: no CNI"),
        ({"source": {"component": "multus"}}, "an Event says: Failed: no CNI"),
        (
            {"reportingComponent": "default-scheduler", "reportingInstance": "default-scheduler-cp-1"},
            "an Event says: Failed: no CNI",
        ),
        ({"source": "worker-1", "reportingComponent": ["kubelet"]}, "an Event says: Failed: no CNI"),
        ({"source": {"component": "kubelet", "host": "worker-2"}}, ""),
        ({"reportingComponent": "kubelet", "reportingInstance": "worker-2"}, ""),
    ],
)
def test_an_event_of_another_node_is_no_cause(who: dict[str, typing.Any], told: str) -> None:
    class Server:
        def list(self, *_arguments: typing.Any, **_options: typing.Any) -> Listing:
            return Listing(
                ({"type": "Warning", "reason": "Failed", "message": "no CNI", "involvedObject": {"name": "p"}, **who},),
                "1",
            )

    wait = object.__new__(ReadinessWait)
    wait._cluster = typing.cast("typing.Any", Server())
    assert wait._find_last_warning(RdmaPod("compute", "worker-1", "p", "linerate-measure")) == told
