# SPDX-License-Identifier: GPL-3.0-or-later

"""What a tenant, a pod or a node tells of a job is not what others of them tell: their pods, logs, devices and objects are told apart, or named."""

from __future__ import annotations

import pathlib
import typing

import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.training.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import PASS, UNKNOWN, Finding, judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.nccl import TrainingPod
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.multus import training_pods
from ansible_collections.linerate.rdma.tests.unit.check import test_training as training

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
Made = typing.Dict[str, typing.Any]


def statuses(findings: typing.Iterable[Finding], check_id: str) -> typing.Dict[str, str]:
    return {finding.subject: finding.status for finding in findings if finding.check == check_id}


# pods


def pod(name: str, phase: str = "Running", uid: str = "job-1", controller: bool = True, **metadata: typing.Any) -> Made:
    """The captured pod with a virtual function, as a pod of an Indexed Job."""
    found: Made = yaml.safe_load((FIXTURES / "kubernetes" / "pod-with-vf.yaml").read_text(encoding="utf-8"))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": uid, "controller": controller}
    found["metadata"] = {**found["metadata"], "name": name, "ownerReferences": [owner] if uid else [], **metadata}
    found["spec"]["hostname"], found["status"]["phase"] = "job-0", phase
    return found


def names(*pods: Made) -> typing.List[str]:
    return [item.name for item in training_pods(pods)]


def test_a_pod_that_only_names_the_job_as_an_owner_replaces_none_of_its_pods() -> None:
    """Whoever makes a pod writes its owners. A controller takes those that name it as their controller for its own, and deletes one more of an index."""
    failed, forged = pod("job-0-b", "Failed"), pod("aaa", controller=False)
    assert names(forged, failed) == ["aaa", "job-0-b"]
    assert names(pod("job-0-c"), failed) == ["job-0-c"]


def test_a_pod_that_is_being_deleted_does_not_count_beside_the_one_in_its_place() -> None:
    ends = pod("job-0-a", deletionTimestamp="2026-11-28T08:00:00Z")
    assert names(ends, pod("job-0-b")) == ["job-0-b"]
    assert names(ends) == ["job-0-a"]
    assert names(ends, pod("job-0-b", uid="other")) == ["job-0-a", "job-0-b"]


def test_the_job_of_a_pod_is_what_its_operator_marks_or_its_controller() -> None:
    label = {"jobset.sigs.k8s.io/jobset-name": "train"}
    made = training_pods([pod("a"), pod("b", labels=label), pod("c", uid=""), pod("d", controller=False, labels=label)])
    assert [item.job for item in made] == ["job-1", "train", "", ""]


def test_pods_of_two_jobs_are_not_those_of_one_log() -> None:
    """The pod of a job that is gone leaves its host name to others."""
    mine, other = (training.pod(*place, job="job-1") for place in training.ETHERNET)
    assert judge(check(training.intent(), training.facts(pods=(mine, other)))).open
    stranger = training.pod(*training.ETHERNET[1], job="job-2")
    findings = check(training.intent(), training.facts(pods=(mine, stranger)))
    assert statuses(findings, "training.hcas") == {"job-worker-0": UNKNOWN, "job-worker-1": UNKNOWN}
    (found, _other) = (finding for finding in findings if finding.check == "training.hcas")
    assert "job-1" in found.measured and "job-2" in found.why and "training_selectors" in found.remedy


def test_of_more_than_two_hosts_the_pod_of_another_job_alone_is_unknown() -> None:
    job = training.Job(hosts=3, hcas=tuple(training.FUNCTIONS))
    places = (*training.ETHERNET, ("job-worker-2", "worker-1"))
    pods = [training.pod(*place, job="job-1") for place in places]
    strange: TrainingPod = training.pod(*places[1], job="")
    for given, expected in ((pods, {PASS}), ([pods[0], strange, pods[2]], {PASS, UNKNOWN})):
        found = statuses(check(training.intent(), training.facts(job, pods=tuple(given))), "training.hcas")
        assert set(found.values()) == expected
    assert [subject for subject, status in found.items() if status == UNKNOWN] == ["job-worker-1"]
