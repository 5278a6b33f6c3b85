# SPDX-License-Identifier: GPL-3.0-or-later

"""The link of a virtual function that a pod has, disabled under it."""

from __future__ import annotations

import contextlib
import re

import pytest

from lab.processes import wait_until

from .conftest import Lab
from .named import assert_named
from .scenarios import VIRTUAL_FUNCTIONS, Expected, intent
from .test_measuring import pod

pytestmark = pytest.mark.thorough

#: those of its fabric: which of them the pod gets is the device plugin's choice
HCAS = ("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5")
ONE = {"openshift.io/mlx_compute": "1"}


def test_a_link_that_is_disabled_under_a_pod_is_named(lab: Lab) -> None:
    asked = {
        "container": {"resources": {"requests": ONE, "limits": ONE}},
        "annotations": {"k8s.v1.cni.cncf.io/networks": "sriov-ib-compute"},
    }
    with lab.present(pod("training", nodeName="worker-1", **asked)), contextlib.ExitStack() as faults:

        def running() -> bool:
            return any(
                item["metadata"]["name"] == "mine" and item["status"]["phase"] == "Running"
                for item in lab.objects("v1/Pod")
            )

        assert wait_until(running, 300), "the pod does not run"
        for device in HCAS:
            faults.enter_context(lab.fault("vf-link-disabled", worker="worker-1", device=device))
        run = lab.playbook(VIRTUAL_FUNCTIONS, variables={"rdma_fabrics": intent()})
    assert run.code != 0, run.end
    says = ("These VFs are in pods, and the CNI plugin has not set their link state",)
    assert_named(
        run,
        Expected(
            "a VF whose link is disabled",
            "virtual_functions.link_state",
            "compute worker-1 mlx5_*",
            says,
            " state enable",
        ),
    )
    found = run.findings("virtual_functions", "fail")
    remedies = [item["remedy"] for item in found if item["check"] == "virtual_functions.link_state"]
    assert any(re.search(r"ip link set \w+ vf [0-9]+ state enable", remedy) for remedy in remedies), remedies
