# SPDX-License-Identifier: GPL-3.0-or-later

"""What a training pod got on its secondary networks, from the captured pod with a virtual function."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.multus import (
    training_pod,
    training_pods,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError


def pod(**spec: typing.Any) -> dict[str, typing.Any]:
    """The captured pod; keywords change its specification."""
    path = pathlib.Path(__file__).parents[1] / "fixtures" / "kubernetes" / "pod-with-vf.yaml"
    found: dict[str, typing.Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["spec"].update(spec)
    return found


def test_what_a_training_pod_got() -> None:
    found = to_data(training_pod(pod()))
    assert found["functions"] == [
        {"network": "default/op-net", "interface": "net1", "pci": "0000:01:10.0", "rdma_device": None}
    ]
    assert (found["name"], found["host"], found["error"]) == ("op-a", "op-a", "")


def test_host_name_of_a_training_pod_is_nccl_s() -> None:
    assert training_pod(pod(hostname="job-0-1.example")).host == "job-0-1"
    assert training_pod(pod(hostNetwork=True, nodeName="worker-1.example.com")).host == "worker-1"


def test_training_pod_without_networks() -> None:
    bare = pod()
    bare["metadata"]["annotations"] = {}
    found = training_pod(bare)
    assert found.functions is None and "multus did not attach it" in found.error
    with pytest.raises(ResourceError, match=r"metadata.name is missing"):
        training_pod({"metadata": {}})


def _of_a_job(name: str, phase: str, owner: str, **metadata: typing.Any) -> dict[str, typing.Any]:
    found = pod(hostname="job-0")
    found["metadata"] = {
        **found["metadata"],
        "name": name,
        "ownerReferences": [{"uid": owner, "controller": True}],
        **metadata,
    }
    found["status"]["phase"] = phase
    return found


def test_a_pod_that_its_job_has_replaced_is_none_of_it_and_one_that_a_kubelet_made_is_none() -> None:
    failed, again, alone = (
        _of_a_job("job-0-a", "Failed", "u"),
        _of_a_job("job-0-b", "Running", "u"),
        _of_a_job("job-0-c", "Failed", "v"),
    )
    mirror = _of_a_job(
        "aaa", "Running", "w", annotations={**failed["metadata"]["annotations"], "kubernetes.io/config.mirror": "x"}
    )
    waits = _of_a_job("job-0-d", "Pending", "u")
    del waits["spec"]["nodeName"]
    assert [item.name for item in training_pods([failed, mirror, again, waits])] == ["job-0-b"]
    # nothing has come in its place: that of another owner is another one's
    assert [item.name for item in training_pods([alone, again])] == ["job-0-c", "job-0-b"]
    assert [item.name for item in training_pods([alone])] == ["job-0-c"]
