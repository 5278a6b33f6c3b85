# SPDX-License-Identifier: GPL-3.0-or-later

"""The SR-IOV operator's own reboots, for a policy that asks for another number of VFs than the firmware of the HCAs.

It drains a node, sets its firmware and reboots it, and the node boots by itself, with the firmware that was set.
"""

from __future__ import annotations

import contextlib
import typing

import pytest

from lab.fabric.emulated import TOTAL_VFS
from lab.processes import wait_until
from lab.workers import READY_SECONDS

from .conftest import SETTINGS, Lab
from .test_real import WORKERS
from .test_roll import boots_of, node_of

NETWORK, PLATFORM, VIRTUAL_FUNCTIONS = (
    f"playbooks/{name}.yml" for name in ("network", "platform", "virtual_functions")
)
RESOURCE = "openshift.io/mlx_compute"
OTHER_VFS = 4
#: of the fabric 'compute' on each worker, and one of the other fabric, which no policy selects
HCAS, UNASKED = ("0000:3c:00.0", "0000:4d:00.0", "0000:bc:00.0", "0000:dc:00.0"), "0000:5e:00.0"
#: two workers, one after the other: drained, booted, and their pods started again
WAIT_SECONDS, PLAYBOOK_SECONDS = 1500, 2400.0
CONFIG = {
    "apiVersion": "sriovnetwork.openshift.io/v1",
    "kind": "SriovOperatorConfig",
    "metadata": {"name": "default", "namespace": "sriov-network-operator"},
}


def asked(functions: int, disruption: str) -> dict[str, typing.Any]:
    """The lab's intent, with so many VFs on each HCA of the fabric 'compute'."""
    return {
        "rdma_fabrics": [
            {**fabric, "virtual_functions": functions} if fabric["name"] == "compute" else fabric
            for fabric in SETTINGS["rdma_fabrics"]
        ],
        "rdma_cluster": {
            **SETTINGS["rdma_cluster"],
            "disruption": disruption,
            # pods of the lab's operators have emptyDir volumes
            "drain": {"delete_empty_dir_data": True, "force": True},
            "wait_seconds": WAIT_SECONDS,
        },
    }


@contextlib.contextmanager
def draining(lab: Lab) -> typing.Iterator[None]:
    """The operator drains nodes, one after the other, as it does by default."""
    lab.apply({**CONFIG, "spec": {"disableDrain": False}})
    try:
        yield
    finally:
        lab.apply({**CONFIG, "spec": {"disableDrain": True}})


def offered(lab: Lab) -> dict[str, int]:
    """VFs that each worker offers."""
    return {
        item["metadata"]["name"]: int(item["status"]["allocatable"].get(RESOURCE, 0))
        for item in lab.objects("v1/Node")
        if item["metadata"]["name"] in WORKERS
    }


def totals(lab: Lab, node: str) -> list[int]:
    """What the kernel of a node says of the firmware of its HCAs."""
    files = " ".join(f"/sys/bus/pci/devices/{address}/sriov_totalvfs" for address in (*HCAS, UNASKED))
    return [int(word) for word in lab.command("on", node, f"cat {files}").stdout.split()]


def assert_firmware(lab: Lab, functions: int) -> None:
    """Stage ``platform`` is green, and finds in the firmware of each node what was asked for; nothing waits there."""
    done = lab.playbook(PLATFORM, variables=asked(functions, "none"))
    assert done.code == 0, done.end
    for node in WORKERS:
        assert totals(lab, node) == [functions] * len(HCAS) + [TOTAL_VFS]
        settings = {
            hca["address"]: {item["name"]: (item.get("current"), item.get("next")) for item in hca["settings"]}
            for hca in done.fact("firmware", node)["hcas"]
        }
        for address in HCAS:
            assert settings[address]["NUM_OF_VFS"] == (str(functions), str(functions)), (node, address)


@pytest.mark.thorough
def test_the_operator_sets_firmware_and_reboots_each_worker_for_it(lab: Lab) -> None:
    before = {name: (node_of(lab, name), boots_of(lab, name)) for name in WORKERS}
    with draining(lab):
        try:
            refused = lab.playbook(NETWORK, variables=asked(OTHER_VFS, "drain"))
            assert refused.code != 0 and "reboot" in str(refused.finding("network", "network.disruption", WORKERS[0]))
            assert {name: node_of(lab, name) for name in WORKERS} == {name: each[0] for name, each in before.items()}

            done = lab.playbook(NETWORK, variables=asked(OTHER_VFS, "reboot"), seconds=PLAYBOOK_SECONDS)
            assert done.code == 0, done.end
            for name, ((boot, _takes_pods), boots) in before.items():
                after, takes_pods = node_of(lab, name)
                assert after != boot and takes_pods, name
                assert len(boots_of(lab, name) - boots) == 1, name
            assert offered(lab) == dict.fromkeys(WORKERS, OTHER_VFS * len(HCAS))
            assert_firmware(lab, OTHER_VFS)
            verified = lab.playbook(VIRTUAL_FUNCTIONS, variables=asked(OTHER_VFS, "none"))
            assert verified.code == 0, verified.end

            # the disk of a worker that its BMC resets is a fresh one, and its cards are the same
            name = WORKERS[1]
            boot = node_of(lab, name)[0]
            assert lab.command("reset", name, "ForceRestart").returncode == 0
            assert wait_until(lambda: node_of(lab, name)[0] != boot, READY_SECONDS, 2)
            assert wait_until(lambda: offered(lab)[name] == OTHER_VFS * len(HCAS), READY_SECONDS, 2)
            assert totals(lab, name) == [OTHER_VFS] * len(HCAS) + [TOTAL_VFS]
        finally:
            back = lab.playbook(NETWORK, variables=asked(TOTAL_VFS, "reboot"), seconds=PLAYBOOK_SECONDS)
    assert back.code == 0, back.end
    assert offered(lab) == dict.fromkeys(WORKERS, TOTAL_VFS * len(HCAS))
    assert_firmware(lab, TOTAL_VFS)
