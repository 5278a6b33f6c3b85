# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may do what: the files of docs/rbac that an intent needs are enough, and no others; who has fewer is told what is
lacking before anything is made."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import powers
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import needed_powers
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from lab.build.disk import ADMIN
from lab.pki import DAYS, Pki

from .conftest import ROOT, SETTINGS, Lab
from .scenarios import alone

#: whoever may only look may start no observers, and has nodes by ssh alone
BY_SSH = {"rdma_nodes": {"hosts": {"worker-2": {"ansible_connection": "ssh"}}}}


def shipped(lab: Lab, *names: str) -> list[dict[str, typing.Any]]:
    """The objects of these files of docs, but for bindings in namespaces that are not there: what nobody has made,
    nobody needs rights in."""
    items = [item for name in names for item in yaml.safe_load((ROOT / f"docs/rbac/{name}.yml").read_text())["items"]]
    there = lab.namespaces() | {item["metadata"]["name"] for item in items if item["kind"] == "Namespace"}
    return [item for item in items if item["metadata"].get("namespace", "default") in there]


@pytest.fixture
def roles(lab: Lab) -> typing.Iterator[None]:
    with lab.present(*shipped(lab, *wanted())):
        yield


def wanted(*without: str) -> list[str]:
    """The files that the lab's intent needs, as validate names them, and those that its inventory needs beside them."""
    given = parse_intent(SETTINGS["rdma_fabrics"], None, SETTINGS.get("rdma_cluster"))
    # nobody submits jobs here, and the namespaces are the collection's own
    names = [*(power.name for power in needed_powers(given)), powers.OBSERVERS, powers.NAMESPACES]
    return [name for name in names if name not in without]


def identity(folder: pathlib.Path, group: str, days: int = DAYS) -> str:
    """Kubeconfig of a user of the lab's authority who is in one group and in no other, good for so many days."""
    here = ROOT / ".lab/pki"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in ("ca.key", "ca.crt", "sa.key", "sa.pub"):
        (folder / name).write_bytes((here / name).read_bytes())
    server = yaml.safe_load((here / "admin.kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    # a colon would stand between two kubeconfigs
    name = group.replace(":", "-")
    Pki(folder, server).identity(name, f"test:{group}", group, days=days)
    return str(folder / f"{name}.kubeconfig")


def run_by_ssh(here: Lab, group: str, stage: str) -> typing.Any:
    path = here.folder / "by_ssh.yml"
    path.write_text(yaml.safe_dump(BY_SSH))
    return run_as(here, group, stage, "-i", str(path))


def run_as(here: Lab, group: str, stage: str, *words: str, days: int = DAYS, **more: typing.Any) -> typing.Any:
    kubeconfig = identity(here.folder / "pki", group, days)
    return here.playbook(
        f"playbooks/{stage}.yml", *words, variables={"operators_install": False, **more}, kubeconfig=kubeconfig
    )


def test_who_may_only_look_is_told_which_rights_are_missing(lab: Lab, roles: None) -> None:
    run = run_by_ssh(lab, "linerate-rdma-viewers", "operators")
    assert run.code != 0
    assert {finding["subject"] for finding in run.findings("operators", "fail")} == {"stage network", "stage bandwidth"}
    measured = run.finding("operators", "operators.rights", "stage network")["measured"]
    assert "patch sriovnetworknodepolicies.sriovnetwork.openshift.io in sriov-network-operator" in measured
    assert run.finding("operators", "operators.rights", "teardown")["status"] == "warn"


@pytest.mark.thorough
def test_who_may_only_look_changes_nothing(lab: Lab, roles: None) -> None:
    before = lab.objects("sriovnetwork.openshift.io/v1/SriovNetworkNodePolicy")
    run = run_by_ssh(lab, "linerate-rdma-viewers", "network")
    assert run.code != 0
    measured = run.finding("network", "network.error", "stage network")["measured"]
    # before anything is read that a plan would build on
    assert 'cannot get resource "leases"' in measured and "kubectl apply -f docs/rbac/change.yml" in measured
    assert lab.objects("sriovnetwork.openshift.io/v1/SriovNetworkNodePolicy") == before


@pytest.mark.parametrize("stage", ["operators", pytest.param("network", marks=pytest.mark.thorough)])
def test_the_shipped_roles_are_enough(lab: Lab, roles: None, stage: str) -> None:
    run = run_as(lab, "linerate-rdma-operators", stage)
    assert run.code == 0, run.end
    if stage == "network":
        assert run.finding("network", "network.leftover", "cluster")["status"] == "pass"


@pytest.mark.thorough
@pytest.mark.parametrize("power", [powers.SRIOV, powers.MEASURING, powers.CHANGE])
def test_no_power_that_is_named_can_be_left_out(lab: Lab, power: str) -> None:
    """Without one of the files the run ends before it has changed anything, and names the file."""
    with lab.present(*shipped(lab, *wanted(power))):
        run = run_as(lab, "linerate-rdma-operators", "operators")
        assert run.code != 0
        assert any(f"docs/rbac/{power}.yml" in finding["remedy"] for finding in run.findings("operators", "fail")), (
            run.end
        )


@pytest.mark.thorough
def test_the_shipped_roles_are_enough_to_measure(lab: Lab, roles: None) -> None:
    run = run_as(lab, "linerate-rdma-operators", "bandwidth", rdma_fabrics=alone())
    assert [
        finding["subject"] for finding in run.findings("bandwidth", "pass") if finding["check"] == "bandwidth.measured"
    ], run.end


@pytest.mark.thorough
def test_sudo_does_in_place_of_root(lab: Lab) -> None:
    """Over ssh as a user who is not root: sysfs and configuration spaces, umad, and pings in the background."""
    path = lab.folder / "by_sudo.yml"
    # what Debian's sudo leaves when somebody of the group admin has used it
    used = f"/home/{ADMIN}/.sudo_as_admin_successful"
    assert lab.command("on", "worker-1", "rm", "-f", used).returncode == 0
    path.write_text(
        yaml.safe_dump({"rdma_nodes": {"hosts": {"worker-1": {"ansible_user": ADMIN, "ansible_become": True}}}})
    )
    run = lab.playbook("playbooks/reachability.yml", "-i", str(path))
    assert run.code == 0, run.end
    assert run.finding("reachability", "reachability.node", "worker-1")["status"] == "pass"
    assert lab.command("on", "worker-1", "ls", used).returncode == 0, "it did not come in as this user"


def test_an_expired_certificate_is_named_as_such(lab: Lab) -> None:
    run = run_as(lab, "system:masters", "operators", days=-1)
    assert run.code != 0
    assert "the client certificate in the kubeconfig is wrong or has expired" in run.output
    assert "changed=0" in run.output
