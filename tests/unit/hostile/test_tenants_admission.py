# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespace of the jobs keeps its own admission: nothing that a run makes there lets a tenant have more than an
admin gave."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job import admission
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import pod_security
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import (
    ENFORCE,
    JobSurroundings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.admission import render_objects
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.measuring import move_fabrics
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.memlock import render_memlock_pod
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import render_measuring_pod
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.network import render, render_namespace
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import FABRIC

LEVEL = {"enforce": "privileged", "reason": "jobs of one team, who have root on the nodes anyway"}


def intent(*networks: typing.Mapping[str, typing.Any], **changes: typing.Any) -> Intent:
    return parse_intent(
        [
            {
                **FABRIC,
                "name": f"f{index}",
                "network": {**FABRIC["network"], "name": f"net-{index}", **network},
                **changes,
            }
            for index, network in enumerate(networks or ({},))
        ]
    )


def told(said: Intent) -> list[Finding]:
    return list(pod_security.check(said))


def test_no_namespace_of_jobs_is_labelled_unless_the_intent_says_so() -> None:
    said = intent({}, {"namespace": "other", "pod_security": LEVEL})
    made = [item for _fabric, item in render(said.fabrics, said.cluster, {}).objects if item["kind"] == "Namespace"]
    assert {item["metadata"]["name"]: item["metadata"]["labels"].get(ENFORCE) for item in made} == {
        "test": None,
        "other": "privileged",
    }


def test_no_pod_that_measures_is_in_a_namespace_of_jobs() -> None:
    (fabric,) = move_fabrics(intent({}, pods={"mount_infiniband": True}).fabrics)
    assert render_measuring_pod(fabric, intent().cluster, "a")["metadata"]["namespace"] == "linerate-measure"
    cluster = parse_intent([FABRIC], None, {"host": {"memlock": {"by": "containerd", "limit_gib": 1}}}).cluster
    assert cluster.host.memlock is not None
    assert render_memlock_pod(fabric, cluster, "a", cluster.host.memlock)["metadata"]["namespace"] == "linerate-measure"
    assert {item["metadata"].get("namespace") for item in render_objects(["linerate-measure"], True)} == {
        None,
        "linerate-measure",
    }


def test_the_namespace_of_the_measurement_is_none_of_the_jobs() -> None:
    found = validate(intent({"namespace": "linerate-measure"}), Facts(("a", "b")))
    (wrong,) = [item for item in found if item.check == "validate.names" and item.status == "fail"]
    assert wrong.subject == "rdma_fabrics[0].network.namespace" and "deletes the namespace" in wrong.why


def applied(before: Resource, wanted: Resource, check_mode: bool = False) -> tuple[str, Resource]:
    """What becomes of a namespace that is there, and what a run says that it did."""
    api = FakeApi()
    api.serve("Namespace", [before])
    api.start()
    try:
        (outcome,) = apply_all(FakeApi.client(api.url), [("", wanted)], check_mode)
        return outcome.applied.action, api.object(f"/api/v1/namespaces/{before['metadata']['name']}") or {}
    finally:
        api.stop()


def there(**labels: str) -> Resource:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "test", "labels": labels, "uid": "1", "resourceVersion": "1"},
    }


def test_the_label_that_an_earlier_release_gave_is_taken_back_once_and_said_to_be_a_change() -> None:
    before = there(**MANAGED_BY, **{ENFORCE: "privileged"})
    assert applied(before, render_namespace("test"), check_mode=True) == ("changed", before)
    action, after = applied(before, render_namespace("test"))
    assert (action, after["metadata"]["labels"]) == ("changed", MANAGED_BY)
    again, _after = applied(after, render_namespace("test"))
    assert again == "unchanged"


def test_a_namespace_of_somebody_else_keeps_its_level_whatever_the_intent_says() -> None:
    said = intent({"pod_security": LEVEL})
    before = there(**{ENFORCE: "baseline"})
    assert applied(before, render_namespace("test", said.fabrics)) == ("unchanged", before)


@pytest.mark.parametrize(
    "wrong", [{"enforce": "privileged"}, {"reason": "because"}, {"enforce": "none", "reason": "because"}, "privileged"]
)
def test_a_level_without_a_reason_or_of_another_name_is_no_intent(wrong: typing.Any) -> None:
    with pytest.raises(IntentError) as caught:
        intent({"pod_security": wrong})
    assert any(
        "network.pod_security" in problem.path
        for problem in typing.cast(typing.Sequence[LoadError], caught.value.problems)
    )


def test_what_jobs_need_is_said_with_the_exact_label_and_the_scc() -> None:
    (finding,) = told(intent({}))
    assert (finding.status, finding.subject, finding.measured) == (
        "pass",
        "namespace test",
        "the namespace keeps its own level",
    )
    for words in (f"{ENFORCE}=privileged", "allowedCapabilities [IPC_LOCK]", "rdma_cluster.host.memlock"):
        assert words in finding.expected
    (plain,) = told(intent({}, rdma=False, pods={}))
    assert "IPC_LOCK" not in plain.expected


def test_privileged_warns_of_what_it_gives_and_prints_the_reason() -> None:
    (finding,) = told(intent({"pod_security": LEVEL}))
    assert finding.status == "warn" and finding.subject == "rdma_fabrics[0].network.pod_security"
    assert "root on the nodes" in finding.why and LEVEL["reason"] in finding.why


def test_a_level_that_refuses_the_jobs_and_one_without_words_and_two_of_one_namespace() -> None:
    (low,) = told(intent({"pod_security": {"enforce": "baseline", "reason": "shared"}}))
    assert low.status == "warn" and "rejects pods with the capability IPC_LOCK" in low.why
    found = told(
        intent(
            {"pod_security": {**LEVEL, "reason": " "}}, {"pod_security": {"enforce": "baseline", "reason": "shared"}}
        )
    )
    assert [(item.subject, item.status) for item in found if item.status == "fail"] == [
        ("rdma_fabrics[1].network.pod_security", "fail"),
        ("rdma_fabrics[0].network.pod_security.reason", "fail"),
    ]


def job(spec: typing.Mapping[str, typing.Any], **container: typing.Any) -> Resource:
    """A pod of a job."""
    mine = {"name": "worker", "image": "image", "resources": {"limits": {"nvidia.com/gpu": "1"}}, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "job", "namespace": "training"},
        "spec": {"containers": [mine], **spec},
    }


def linted(resource: Resource, **enforced: str) -> Finding:
    world = JobSurroundings(enforced=enforced)
    (finding,) = [item for item in lint([resource], (), world) if item.check == "job.admission"]
    return finding


CAPABILITY = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}


@pytest.mark.parametrize(
    ("resource", "needs", "scc"),
    [
        (job({}, **CAPABILITY), "container worker: capability IPC_LOCK", "allowedCapabilities [IPC_LOCK]"),
        (job({"serviceAccountName": "trainer"}, **CAPABILITY), "capability IPC_LOCK", "for service account trainer"),
        (job({}, securityContext={"privileged": True}), "container worker: privileged", "allowPrivilegedContainer"),
        (job({"hostNetwork": True}), "hostNetwork", "allowHostNetwork"),
        (
            job({"volumes": [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]}),
            "hostPath /dev/infiniband",
            "allowHostDirVolumePlugin",
        ),
        (
            job({"initContainers": [{"name": "first", "image": "image", **CAPABILITY}]}),
            "container first: capability IPC_LOCK",
            "IPC_LOCK",
        ),
    ],
    ids=["capability", "account", "privileged", "hostNetwork", "hostPath", "init container"],
)
def test_the_linter_says_what_a_job_needs_of_its_namespace(resource: Resource, needs: str, scc: str) -> None:
    for enforced in ({"training": ""}, {"training": "privileged"}, {}):
        finding = linted(resource, **enforced)
        assert finding.status == "pass" and needs in finding.measured
        assert f"{ENFORCE}=privileged" in finding.expected and scc in finding.expected
    for level in ("baseline", "restricted"):
        finding = linted(resource, training=level)
        assert (finding.status, finding.measured) == ("fail", f"{ENFORCE}={level}")
        assert (
            needs in finding.why
            and "network.pod_security" in finding.remedy
            and "become root on the nodes" in finding.remedy
        )


def test_a_job_that_needs_nothing_of_it_passes_at_each_level() -> None:
    plain = job({}, securityContext={"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}})
    assert [linted(plain, training=level).status for level in ("", "baseline", "privileged", "restricted")] == [
        "pass",
        "pass",
        "pass",
        "warn",
    ]
    assert admission.NEEDS_PRIVILEGED in told(intent({}))[0].expected
