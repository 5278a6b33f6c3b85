# SPDX-License-Identifier: GPL-3.0-or-later

"""One description: what the inventory repeats of it, it repeats rightly."""

from __future__ import annotations

import yaml

from lab import description
from lab.fabric import emulated

from .conftest import ROOT, SETTINGS


def test_the_inventory_names_the_workers_of_the_description() -> None:
    groups = yaml.safe_load((ROOT / "inventory/lab/hosts.yml").read_text())["all"]["children"]
    workers = description.read().workers
    assert {name: host["ansible_host"] for name, host in groups["by_ssh"]["hosts"].items()} == {
        each.name: each.address for each in workers if not each.sealed
    }
    assert {name: host["ansible_pod_node"] for name, host in groups["by_pods"]["hosts"].items()} == {
        each.name: each.name for each in workers if each.sealed
    }


def test_the_intent_selects_what_the_description_has() -> None:
    lab = description.read()
    fabrics = {fabric["name"]: fabric for fabric in SETTINGS["rdma_fabrics"]}
    assert (fabrics["storage"]["select"]["vendor"], fabrics["storage"]["select"]["device"]) == (
        lab.sriov.vendor,
        lab.sriov.device,
    )
    first = lab.fabrics[0].name
    assert fabrics["compute"]["select"]["hcas_per_node"] == sum(hca.fabric == first for hca in lab.hcas)
    # the operator sets the number in the firmware of an HCA, and reboots the node for it
    assert fabrics["compute"]["virtual_functions"] == emulated.TOTAL_VFS


def test_the_inventory_names_the_bmcs_of_the_description() -> None:
    bmcs = yaml.safe_load((ROOT / "inventory/lab/group_vars/rdma_nodes.yml").read_text())["lab_bmcs"]
    assert bmcs == {each.name: each.bmc.address for each in description.read().workers}
