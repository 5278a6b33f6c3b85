# SPDX-License-Identifier: GPL-3.0-or-later

"""Log of the config daemon of operator v1.6.0: what stopped the last sync, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.config_daemon_log import last_error

# kubectl logs ds/sriov-network-config-daemon: a node in order. The error is about another device, is always there, and
# stops nothing
IN_ORDER = (
    "2026-11-21T11:55:51.321641566Z\tERROR\tdaemon/status.go:112\tDiscoverSriovDevices(): unable to get device name for"
    ' device, skipping\t{"device":'
    ' "0000:00:01.0"}\n2026-11-21T11:55:52.672140917Z\tINFO\tdaemon/daemon.go:203\tverifying interfaces status'
    " change\n2026-11-21T11:55:52.681750351Z\tLEVEL(-2)\tdaemon/daemon.go:203\tverifying status change for"
    ' plugin\t{"pluginName": "intel"}\n2026-11-21T11:55:52.700747997Z\tINFO\tdaemon/daemon.go:203\tInterfaces not'
    " changed\n"
)


def failed(error: str) -> str:
    place = "2026-11-21T11:57:01.1Z\tERROR\tcontroller/controller.go:316\tReconciler error"
    return f'{place}\t{{"controller": "sriovnetworknodestate", "name": "worker-1", "error": "{error}"}}\n'


def test_a_node_in_order_has_no_error() -> None:
    assert last_error(IN_ORDER) == ""


def test_the_last_failed_sync_counts() -> None:
    assert (
        last_error(IN_ORDER + failed("device or resource busy") + failed("cannot allocate memory") + IN_ORDER)
        == "cannot allocate memory"
    )


def test_an_error_without_a_cause_is_completed_by_the_step_that_failed() -> None:
    step = (
        "2026-04-02T11:57:01.1Z\tERROR\tsriov/sriov.go:681\tconfigSriovInterfaces(): fail to configure sriov interface."
        " resetting interface.\t"
    )
    cause = "write /sys/bus/pci/devices/0000:17:00.0/sriov_numvfs: no space left on device"
    text = (
        f'{step}{{"address": "0000:17:00.0", "error": "{cause}"}}\n{step}{{"error": "cannot configure sriov'
        ' interfaces"}\n'
    )
    assert (
        last_error(IN_ORDER + text + failed("cannot configure sriov interfaces") + IN_ORDER)
        == f"cannot configure sriov interfaces: {cause}"
    )
    # of another sync, after this one
    assert (
        last_error(IN_ORDER + failed("cannot configure sriov interfaces") + text) == "cannot configure sriov interfaces"
    )
    # an error that has its cause needs none
    assert last_error(text + failed("device or resource busy")) == "device or resource busy"


@pytest.mark.parametrize("fields", ['{"error": "cut o', "no JSON", "[1]", '{"name": "worker-1"}'])
def test_what_is_no_error_with_its_fields_is_given_as_it_is(fields: str) -> None:
    assert last_error(f"x\tERROR\ty\tReconciler error\t{fields}\n") == fields


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert len(last_error(text + "\tReconciler error\t" + text)) <= 500
