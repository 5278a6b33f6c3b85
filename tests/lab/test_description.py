# SPDX-License-Identifier: GPL-3.0-or-later

"""One description: what the inventory repeats of it, it repeats rightly."""

from __future__ import annotations

import yaml

from lab import description

from .conftest import ROOT, SETTINGS


def test_the_inventory_names_the_workers_of_the_description() -> None:
    hosts = yaml.safe_load((ROOT / "inventory/lab/hosts.yml").read_text())["all"]["children"]["rdma_nodes"]["hosts"]
    assert {name: host["ansible_host"] for name, host in hosts.items()} == {worker.name: worker.address for worker in description.read().workers}


def test_the_intent_selects_what_the_description_has() -> None:
    lab = description.read()
    fabrics = {fabric["name"]: fabric for fabric in SETTINGS["rdma_fabrics"]}
    assert (fabrics["storage"]["select"]["vendor"], fabrics["storage"]["select"]["device"]) == (lab.sriov.vendor, lab.sriov.device)
    first = lab.fabrics[0].name
    assert fabrics["compute"]["select"]["hcas_per_node"] == sum(hca.fabric == first for hca in lab.hcas)
