# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes through observers, with nothing but the kubeconfig: the same facts as by ssh, all stages green, and looks
that change nothing elsewhere."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
import yaml

from lab.controlplane import audit_log

from .conftest import MANAGED, ROOT, SETTINGS, Lab
from .test_access import identity, shipped, wanted

AUDIT = audit_log(ROOT / ".lab")
LOOKING = ("discover", "fabric", "reachability", "platform", "tuning")
#: with the report, so that observers stay from stage to stage; it is not green, since not all stages run
STAGES = ("--tags", ",".join(("validate", *LOOKING, "report")))
NODES = ("worker-1", "worker-2")
#: what differs from look to look, or has no order
MOVES = (
    "seconds",
    "activity",
    "activity_first",
    "activity_later",
    "activity_seconds",
    "asked",
    "answered",
    "error_seconds",
)


def still(value: typing.Any) -> typing.Any:
    """A fact without what moves, lists in an order."""
    if isinstance(value, dict):
        return {key: still(item) for key, item in value.items() if key not in MOVES}
    if isinstance(value, list):
        return sorted(map(still, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def changed_since(position: int) -> set[tuple[str, str, str]]:
    """Verb, resource and namespace of what users changed and ran since the log was so long."""
    with AUDIT.open(encoding="utf-8") as log:
        log.seek(position)
        events = [json.loads(line) for line in log]
    found = set()
    for event in events:
        what = event.get("objectRef") or {}
        resource = "/".join(part for part in (what.get("resource", ""), what.get("subresource", "")) if part)
        namespace = what.get("namespace") or (what.get("name") if what.get("resource") == "namespaces" else "")
        found.add((event["verb"], resource, namespace or ""))
    return found


@pytest.mark.thorough
def test_observers_see_what_ssh_sees_and_change_nothing_else(lab: Lab) -> None:
    both_ways, by_pods = Lab(lab.folder / "both"), Lab(lab.folder / "pods")
    for one in (both_ways, by_pods):
        one.folder.mkdir()
    # worker-1 by ssh
    first = both_ways.playbook("site.yml", *STAGES)
    position = AUDIT.stat().st_size
    second = by_pods.playbook("site.yml", *STAGES, by_pods=True)
    for run in (first, second):
        assert [run.records[stage]["gate"] for stage in LOOKING] == ["open"] * len(LOOKING), run.end
    for kind in ("hcas", "platform", "subnets"):
        for node in NODES:
            assert still(second.fact(kind, node)) == still(first.fact(kind, node)), (kind, node)
    for stage in LOOKING:
        told = [
            {
                (item["check"], item["subject"], item["status"])
                for item in run.findings(stage, "pass", "warn", "fail", "unknown")
            }
            for run in (first, second)
        ]
        assert told[0] == told[1], stage
    changes = changed_since(position)
    outside = {item for item in changes if item[2] != "linerate-observers" and item[1:] != ("leases", "default")}
    # whoever asks what he may do writes a review, which is kept nowhere
    assert {item for item in outside if not item[1].endswith("reviews")} == set()
    assert ("create", "daemonsets", "linerate-observers") in changes or (
        "patch",
        "daemonsets",
        "linerate-observers",
    ) in changes
    assert "linerate-observers" not in lab.namespaces()


@pytest.mark.thorough
def test_a_kubeconfig_is_enough_for_all_stages(lab: Lab) -> None:
    run = lab.playbook("site.yml", by_pods=True)
    assert run.code == 0, run.end
    assert {record["gate"] for record in run.records.values()} == {"open"}, run.end
    assert "GREEN" in run.output
    assert "linerate-observers" not in lab.namespaces()


def propose(lab: Lab) -> tuple[pathlib.Path, dict[str, typing.Any]]:
    """Propose an intent from the kubeconfig alone. What the lab can't prove is waived as in its own intent, whose
    fabrics have other names.

    :returns: folder of the inventory, and the proposal
    """
    settings = {name: value for name, value in SETTINGS.items() if name not in ("rdma_fabrics", "rdma_cluster")}
    settings["rdma_waivers"] = [
        {**item, "subject": item.get("subject", "*").replace("compute", "fabric-*")}
        for item in SETTINGS["rdma_waivers"]
    ]
    inventory = lab.folder / "inventory"
    (inventory / "group_vars" / "all").mkdir(parents=True)
    for name, content in (
        ("linerate.rdma.yml", {"plugin": "linerate.rdma.nodes"}),
        ("group_vars/all/lab.yml", {**settings, "lab_folder": str(ROOT / ".lab")}),
    ):
        (inventory / name).write_text(yaml.safe_dump(content))
    proposed = lab.playbook(
        "playbooks/propose.yml", inventory=inventory, variables={"rdma_proposal_namespace": "training"}
    )
    assert proposed.code == 0 and "0 lines to fill in" in proposed.output, proposed.end
    shown: dict[str, typing.Any] = yaml.safe_load((inventory / "group_vars/all/rdma.yml").read_text())
    return inventory, shown


def test_an_intent_is_proposed_through_observers(lab: Lab) -> None:
    _inventory, shown = propose(lab)
    assert [
        (item["select"]["hcas_per_node"], item["virtual_functions"], item["rails"]) for item in shown["rdma_fabrics"]
    ] == [(4, 2, "leaf"), (2, 2, "leaf")]
    assert "linerate-observers" not in lab.namespaces()


@pytest.mark.thorough
def test_an_intent_that_is_proposed_is_green_without_a_change(lab: Lab) -> None:
    """All of the cluster but its kubeconfig is seen."""
    inventory, _shown = propose(lab)
    run = lab.playbook("site.yml", inventory=inventory)
    assert run.code == 0, run.end
    assert {record["gate"] for record in run.records.values()} == {"open"}, run.end


@pytest.mark.thorough
def test_the_shipped_roles_are_enough_for_all_stages_by_pods(lab: Lab) -> None:
    """With exactly the rights of the files that the intent needs; who installs the operator by Helm needs more."""
    with lab.present(*shipped(lab, *wanted())):
        user = identity(lab.folder / "pki", "linerate-rdma-operators")
        run = lab.playbook("site.yml", by_pods=True, kubeconfig=user, variables={"operators_install": False})
        assert run.code == 0, run.end
        assert {record["gate"] for record in run.records.values()} == {"open"}, run.end
        assert lab.objects("v1/Pod", MANAGED) == []


@pytest.mark.thorough
def test_the_shipped_roles_are_enough_to_look_through_observers(lab: Lab) -> None:
    """With exactly the rights of the files that the intent needs, in the namespace that an admin has prepared."""
    with lab.present(*shipped(lab, *wanted())):
        run = lab.playbook(
            "playbooks/discover.yml", by_pods=True, kubeconfig=identity(lab.folder / "pki", "linerate-rdma-operators")
        )
        assert run.code == 0, run.end
        assert "linerate-observers" in lab.namespaces()
        assert [
            item for item in lab.objects("apps/v1/DaemonSet") if item["metadata"]["namespace"] == "linerate-observers"
        ] == []
