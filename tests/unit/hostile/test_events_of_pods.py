# SPDX-License-Identifier: GPL-3.0-or-later

"""An Event about a pod that fails: any kubelet may write one about a pod of any node."""

from __future__ import annotations

import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.readiness import ReadinessWait

UID = "0e1d2c3b-1111-2222-3333-444455556666"
KUBELET = {"source": {"component": "kubelet", "host": "worker-1"}}
NEWER = {"source": {"component": "kubelet"}, "reportingComponent": "kubelet", "reportingInstance": "worker-1"}


@pytest.mark.parametrize(
    ("who", "told"),
    [
        (KUBELET, "Failed: no CNI"),
        (NEWER, "Failed: no CNI"),
        ({"source": {"component": "multus"}}, "an Event reports: Failed: no CNI"),
        (
            {"reportingComponent": "default-scheduler", "reportingInstance": "default-scheduler-cp-1"},
            "an Event reports: Failed: no CNI",
        ),
        ({"source": "worker-1", "reportingComponent": ["kubelet"]}, "an Event reports: Failed: no CNI"),
        ({"source": {"component": "kubelet", "host": "worker-2"}}, ""),
        ({"reportingComponent": "kubelet", "reportingInstance": "worker-2"}, ""),
    ],
)
def test_an_event_of_another_node_is_no_cause(who: dict[str, typing.Any], told: str) -> None:
    about = {"name": "p", "uid": UID}
    event = {"type": "Warning", "reason": "Failed", "message": "no CNI", "involvedObject": about, **who}
    assert last_warning([event]) == told


def test_events_about_the_name_of_a_pod_without_its_uid_hide_none() -> None:
    """The kubelet of another node knows the name, and writes hundreds before the one of the pod."""
    about = {"name": "p", "uid": UID}
    event = {"type": "Warning", "reason": "Failed", "message": "no CNI", "involvedObject": about, **KUBELET}
    others = [{**event, "message": "cause", "involvedObject": {**about, "uid": uid}} for uid in ("", "forged", None)]
    assert last_warning([*others * 200, event]) == "Failed: no CNI"
    assert last_warning(others) == ""


def last_warning(events: list[dict[str, typing.Any]]) -> str:
    """What is told of these Events about the pod."""

    class Server:
        def list(self, *_arguments: typing.Any, most: int, fields: str) -> Listing:
            asked = dict(field.split("=") for field in fields.split(",") if field.startswith("involvedObject."))
            found = [event for event in events if str(event["involvedObject"]["uid"]) == asked["involvedObject.uid"]]
            return Listing(tuple(found[:most]), "1")

    wait = object.__new__(ReadinessWait)
    wait._measurement = typing.cast("typing.Any", types.SimpleNamespace(cluster=Server()))
    return wait._find_last_warning(RdmaPod("compute", "worker-1", "p", "linerate-measure"), UID)
