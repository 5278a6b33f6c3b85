# SPDX-License-Identifier: GPL-3.0-or-later

"""A teardown asks for jobs again right before it removes the first object of the cluster."""

from __future__ import annotations

import copy
import types
import typing

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.modules import custom_resources
from tests.unit.run.test_intents import ROLE, RUNNING, SELECTOR, A, Api, job, objects_of

FABRIC = {
    "name": "compute",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3"},
    "virtual_functions": 4,
    "resource_name": "compute",
    "network": {"name": "net-compute", "namespace": "jobs-compute"},
    "ipam": {"type": "whereabouts", "range": "100.64.0.0/24"},
}
CLUSTER = {"intent_name": "a", "node_selector": {"kind": "a"}, "operator_namespace": "sriov"}


def remove_first(api: Api, monkeypatch: pytest.MonkeyPatch) -> list[typing.Any]:
    """Call the module as the first task of the role that removes objects. Return what it would remove."""
    tasks = yaml.safe_load((ROLE / "cluster.yml").read_text(encoding="utf-8"))
    arguments = next(
        task["linerate.rdma.custom_resources"] for task in tasks if "linerate.rdma.custom_resources" in task
    )
    given = {"fabrics": [FABRIC], "cluster": CLUSTER, "wait_seconds": 3, "runs_dir": None, "waivers": None}
    defaults = {"label_selector": SELECTOR, "keep_namespaces": [], "namespaces": [], "within_disruption": False}
    asked: list[typing.Any] = []

    def note(_cluster: object, removal: object, *_others: object) -> tuple[()]:
        asked.append(removal)
        return ()

    monkeypatch.setattr(custom_resources, "remove_all", note)
    module = types.SimpleNamespace(params={**defaults, **arguments, **given}, check_mode=False, _diff=False)
    custom_resources.change(typing.cast(AnsibleModule, module), typing.cast(Cluster, api), [])
    return asked


def test_a_job_that_started_since_ends_the_removal_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = objects_of(A)
    (removal,) = remove_first(Api(*copy.deepcopy(objects)), monkeypatch)
    assert "SriovNetworkNodePolicy" in removal.kinds
    with pytest.raises(RdmaError, match=r"PyTorchJob jobs-compute/run\. No object of the cluster was removed"):
        remove_first(Api(*objects, job("run", "jobs-compute", "a", **RUNNING)), monkeypatch)
