# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps an observer from a node, or its answer from us: each is named for that node, and the other node goes
on."""

from __future__ import annotations

import pathlib
import sys

import pytest
import yaml

from .conftest import ROOT, Lab, Run
from .test_access import identity, shipped, wanted

pytestmark = pytest.mark.thorough

NAMESPACE = "linerate-observers"
DISCOVER = "playbooks/discover.yml"
#: said when the look through observers starts
LOOKING = "Read HCAs, platform and settings of each node through its observer"
PROXY_PORT = 16443


def blind(run: Run) -> str:
    """What discover says of worker-2, which it could not see; worker-1 is seen all the same."""
    assert run.code != 0, run.end
    assert run.fact("hcas", "worker-1"), run.end
    (finding,) = [
        item
        for item in run.findings("discover", "unknown")
        if (item["check"], item["subject"]) == ("discover.node", "worker-2")
    ]
    assert not [item for item in run.findings("discover", "unknown", "fail") if "worker-1" in item["subject"]], run.end
    assert "ssh" not in finding["remedy"]
    return f"{finding['measured']} | {finding['why']} | {finding['remedy']}"


def test_an_image_that_no_node_has(lab: Lab) -> None:
    said = blind(lab.playbook(DISCOVER, variables={"rdma_observers_image": "localhost/absent:1"}))
    assert "ErrImageNeverPull" in said and "localhost/absent:1" in said
    assert NAMESPACE not in lab.namespaces()


def test_a_namespace_that_admits_no_privileged_pods(lab: Lab) -> None:
    labels = {"linerate.rdma/observers": "prepared", "pod-security.kubernetes.io/enforce": "baseline"}
    with lab.present({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}):
        said = blind(lab.playbook(DISCOVER))
        assert (
            "(pod_security)" in said
            and "violates PodSecurity" in said
            and "pod-security.kubernetes.io/enforce=privileged" in said
        )
        # what an admin has prepared stays, without what the run has made in it
        assert NAMESPACE in lab.namespaces()
        assert [item for item in lab.objects("apps/v1/DaemonSet") if item["metadata"]["namespace"] == NAMESPACE] == []


@pytest.mark.parametrize(
    ("fault", "words"), [("observer-killed", "exit code 137"), ("api-restart", "the connection broke")]
)
def test_an_observer_that_is_killed_and_an_api_server_that_restarts_while_it_answers(
    lab: Lab, fault: str, words: str
) -> None:
    with lab.running(DISCOVER) as playbook:
        playbook.await_text(LOOKING)
        with lab.fault(fault, worker="worker-2"):
            run = playbook.wait()
    said = blind(run)
    assert words in said and "end mark on stdout and stderr did not come" in said
    assert NAMESPACE not in lab.namespaces()


def test_a_kubelet_that_hangs(lab: Lab) -> None:
    with lab.fault("kubelet-frozen", worker="worker-2"):
        said = blind(lab.playbook(DISCOVER))
    assert "worker-2 has no observer (node_not_ready)" in said and "Kubelet stopped posting node status" in said


def test_a_stream_that_is_cut_and_says_success(lab: Lab, tmp_path: pathlib.Path) -> None:
    kubeconfig = yaml.safe_load((ROOT / ".lab/pki/admin.kubeconfig").read_text())
    cluster = kubeconfig["clusters"][0]["cluster"]
    cluster["server"] = f"{cluster['server'].rpartition(':')[0]}:{PROXY_PORT}"
    path = tmp_path / "proxy.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    path.chmod(0o600)
    with lab.background(
        sys.executable, "-u", "-m", "lab.cutting_proxy", str(PROXY_PORT), "5000", said="cuts each stream"
    ):
        said = blind(lab.playbook(DISCOVER, kubeconfig=str(path)))
    # what passed, without the line that says that the command has begun
    assert "the API server reports: Success" in said and "4984 bytes of stdout" in said, said


def test_who_may_run_no_commands_in_pods(lab: Lab) -> None:
    roles = shipped(lab, *wanted())
    for item in roles:
        if "rules" in item:
            item["rules"] = [rule for rule in item["rules"] if rule["resources"] != ["pods/exec"]]
    with lab.present(*roles):
        said = blind(lab.playbook(DISCOVER, kubeconfig=identity(lab.folder / "pki", "linerate-rdma-operators")))
    assert "pods/exec" in said and "docs/rbac" in said
