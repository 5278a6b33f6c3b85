# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker whose own Node object is hostile, as the kubelet of a compromised node may write it."""

from __future__ import annotations

import pathlib
import sys

import pytest
import yaml

from .conftest import ROOT, Lab

pytestmark = pytest.mark.thorough

HOSTILE, OTHER = "worker-2", "worker-1"
#: writes the address again and again, since the kubelet of the worker writes its own. It says what the API server takes
#: of both
WRITER = """
import sys, time
import kubernetes.client, kubernetes.config
from kubernetes.client.exceptions import ApiException

kubernetes.config.load_kube_config(sys.argv[1])
api, name, address = kubernetes.client.CoreV1Api(), sys.argv[2], sys.argv[3]
try:
    api.patch_node(name, {"metadata": {"labels": {"example.com/rack": address}}})
    print("label taken", flush=True)
except ApiException as error:
    print(f"label refused with {error.status}", flush=True)
said = False
while True:
    own = [item.to_dict() for item in api.read_node_status(name).status.addresses if item.type != "InternalIP"]
    api.patch_node_status(name, {"status": {"addresses": [{"type": "InternalIP", "address": address}, *own]}})
    if not said:
        print("address taken", flush=True)
    said = True
    time.sleep(0.2)
"""


def test_node_with_a_hostile_address_is_an_error_of_its_own(lab: Lab, tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "ran"
    address = f"{{{{ lookup('pipe', 'touch {marker}') }}}}"
    # with the variables of the lab beside it
    (tmp_path / "group_vars").symlink_to(ROOT / "inventory/lab-pods/group_vars")
    inventory = tmp_path / "hostile.linerate.rdma.yml"
    inventory.write_text(yaml.safe_dump({"plugin": "linerate.rdma.nodes", "ssh": f"kubernetes.io/hostname={HOSTILE}"}))
    writer = (sys.executable, "-c", WRITER, ".lab/pki/admin.kubeconfig", HOSTILE, address)
    with lab.background(*writer, said="address taken") as log:
        run = lab.playbook("playbooks/discover.yml", inventory=inventory)
        # the API server holds labels to their form, and takes any text for an address
        assert "label refused with 422" in log.read_text()
    assert not marker.exists(), run.end
    assert run.code != 0, run.end
    answer = run.finding("discover", "discover.node", HOSTILE)
    assert answer["status"] == "unknown" and "its InternalIP" in answer["why"], answer
    assert run.finding("discover", "discover.node", OTHER)["status"] == "pass"
