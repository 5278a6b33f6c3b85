# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLink between the nodes of a job: ComputeDomain, its nodes and their cliques."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint, list_jobs, list_objects
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import (
    JobObjects,
    JobSurroundings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.compute_domains import (
    ClaimingPod,
    ComputeDomain,
    ComputeDomainNode,
    joins_machines,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.jobs import observe
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.dra.compute_domains import (
    parse_claiming_pod,
    parse_compute_domain,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError

from . import job_world

Made = dict[str, typing.Any]
RACK = "8b1d2f6e-3c54-4a0e-9a6f-0d6a51c2b7aa"
ONE, OTHER = f"{RACK}.32766", f"{RACK}.32767"
CHANNEL: Made = {
    "apiVersion": "resource.nvidia.com/v1beta1",
    "kind": "ComputeDomain",
    "metadata": {"name": "train", "namespace": "training"},
    "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "nvlink"}}},
}


def domain(
    status: str = "Ready", wanted: int = 0, cliques: typing.Optional[typing.Mapping[str, str]] = None
) -> ComputeDomain:
    """A ComputeDomain with a ready node for each clique."""
    nodes = tuple(ComputeDomainNode(name, clique, True) for name, clique in (cliques or {}).items())
    return ComputeDomain("training/train", "nvlink", wanted, status, nodes)


def job(*beside: Made, claim: bool = True) -> list[Made]:
    """A PyTorchJob of two pods, each with a channel of the ComputeDomain."""
    (made,) = job_world.objects()
    for replica in made["spec"]["pytorchReplicaSpecs"].values() if claim else ():
        spec = replica["template"]["spec"]
        spec["resourceClaims"] = [{"name": "nvlink", "resourceClaimTemplateName": "nvlink"}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "nvlink"}]
    return [made, *beside]


def judge(made: typing.Sequence[Made], world: typing.Optional[JobSurroundings] = None) -> list[Finding]:
    return [item for item in lint(list_jobs(made), made, world) if item.check == "job.compute_domain"]


def world(there: typing.Optional[ComputeDomain], *nodes: str, **more: typing.Any) -> JobSurroundings:
    """A cluster with a ComputeDomain, and the pods of the job on nodes."""
    pods = tuple(ClaimingPod(f"train-{number}", node, ("nvlink",)) for number, node in enumerate(nodes))
    domains = (there,) if there is not None else ()
    return dataclasses.replace(job_world.WORLD, compute_domains=domains, claiming_pods=pods, **more)


BOTH = {"worker-1": ONE, "worker-2": ONE}


@pytest.mark.parametrize(
    ("there", "nodes", "status", "part"),
    [
        (domain(cliques=BOTH), ("worker-1", "worker-2"), "pass", "2 pods"),
        # before it runs, a ComputeDomain has no nodes
        (domain("NotReady"), (), "pass", "2 pods"),
        (domain("NotReady", cliques=BOTH), ("worker-1", "worker-2"), "fail", "NotReady, 2 nodes for 2 pods on 2 nodes"),
        # Ready, with a node less than pods: numNodes 0 is Ready with any number
        (domain(cliques={"worker-1": ONE}), ("worker-1", "worker-2"), "fail", "Ready, 1 node for 2 pods on 2 nodes"),
        (
            domain(cliques={"worker-1": ONE, "worker-3": ONE}),
            ("worker-1", "worker-2"),
            "fail",
            "Ready, 2 nodes for 2 pods",
        ),
        (domain(), ("worker-1", "worker-2"), "unknown", "Ready, 0 nodes for 2 pods"),
        (domain(cliques={"worker-1": ONE, "worker-2": OTHER}), ("worker-1", "worker-2"), "warn", f"{ONE} on worker-1"),
        (domain(cliques={"worker-1": ONE, "worker-2": ""}), ("worker-1", "worker-2"), "fail", "no clique on worker-2"),
        (None, ("worker-1", "worker-2"), "unknown", "no ComputeDomain"),
        (domain(wanted=2, cliques=BOTH), ("worker-1", "worker-2"), "pass", "2 pods"),
        (domain(wanted=4), (), "fail", "numNodes 4, 2 pods with a channel"),
        (domain(wanted=1), (), "warn", "numNodes 1, 2 pods with a channel"),
    ],
)
def test_domain_is_ready_with_as_many_nodes_as_pods(
    there: typing.Optional[ComputeDomain], nodes: tuple[str, ...], status: str, part: str
) -> None:
    (found,) = judge(job(CHANNEL), world(there, *nodes))
    assert (found.status, found.subject) == (status, "PyTorchJob training/train nvlink")
    assert part in found.measured
    assert bool(found.why and found.remedy) == (status != "pass")


def test_node_whose_daemon_is_not_ready_is_named() -> None:
    nodes = (ComputeDomainNode("worker-1", ONE, True), ComputeDomainNode("worker-2", ONE, False))
    (found,) = judge(
        job(CHANNEL), world(ComputeDomain("training/train", "nvlink", 0, "NotReady", nodes), "worker-1", "worker-2")
    )
    assert found.status == "fail" and "the IMEX daemon is not ready on worker-2" in found.why


def test_label_that_differs_from_the_clique_is_a_warning() -> None:
    labelled = tuple(
        dataclasses.replace(job_world.node(name), labels={"nvidia.com/gpu.clique": clique})
        for name, clique in (("worker-1", ONE), ("worker-2", OTHER))
    )
    (found,) = judge(job(CHANNEL), world(domain(cliques=BOTH), "worker-1", "worker-2", nodes=labelled))
    assert found.status == "warn" and found.measured == f"worker-2: {ONE} in the ComputeDomain, {OTHER} in the label"


def test_number_of_nodes_is_judged_from_the_file_alone() -> None:
    wrong = copy.deepcopy(CHANNEL)
    wrong["spec"]["numNodes"] = 3
    assert [(item.status, item.measured) for item in judge(job(wrong))] == [
        ("fail", "numNodes 3, 2 pods with a channel")
    ]
    assert [item.status for item in judge(job(CHANNEL))] == ["pass"]


def test_domains_that_cannot_be_read_are_unknown() -> None:
    unread = dataclasses.replace(job_world.WORLD, compute_domains=None)
    (found,) = judge(job(CHANNEL), unread)
    assert (found.status, found.measured) == ("unknown", "ComputeDomains not read") and "docs/job.md" in found.remedy


def rack(*cliques: str) -> JobSurroundings:
    nodes = tuple(
        ClusterNode(
            f"worker-{number}",
            {"nvidia.com/gpu.clique": clique} if clique else {},
            True,
            allocatable={"nvidia.com/gpu": 4},
        )
        for number, clique in enumerate(cliques)
    )
    return dataclasses.replace(job_world.WORLD, nodes=nodes)


@pytest.mark.parametrize(
    ("cliques", "status"),
    [
        ((ONE, ONE), "warn"),
        ((ONE, ONE, OTHER, OTHER), "warn"),
        # a node without NVLink to others, and GPUs with NVLink inside of their machine
        ((ONE, ONE, ""), "pass"),
        ((ONE, OTHER), "pass"),
        (("00000000-0000-0000-0000-000000000000.0",) * 2, "pass"),
        ((), "pass"),
    ],
)
def test_job_without_a_channel_on_nodes_that_nvlink_joins_is_a_warning(cliques: tuple[str, ...], status: str) -> None:
    (found,) = judge(job(claim=False), rack(*cliques))
    assert (found.status, found.measured) == (status, "no claim of a ComputeDomain")


def test_cliques_of_one_machine_join_none() -> None:
    assert [joins_machines(text) for text in ("", "0.0", "00000000-0000-0000-0000-000000000000.0", ONE)] == [
        False,
        False,
        False,
        True,
    ]


STATUS = {
    "status": "Ready",
    "nodes": [
        {"name": "worker-1", "ipAddress": "10.0.0.1", "cliqueID": ONE, "index": 0, "status": "Ready"},
        {"name": "worker-2", "ipAddress": "10.0.0.2", "cliqueID": "", "index": -1},
    ],
}


def test_status_of_a_compute_domain_is_read() -> None:
    found = parse_compute_domain({**CHANNEL, "status": STATUS})
    nodes = (ComputeDomainNode("worker-1", ONE, True), ComputeDomainNode("worker-2"))
    assert found == ComputeDomain("training/train", "nvlink", 0, "Ready", nodes)
    with pytest.raises(ResourceError, match=r"channel\.resourceClaimTemplate\.name"):
        parse_compute_domain({**CHANNEL, "spec": {"channel": {}}})
    with pytest.raises(ResourceError, match="4097 entries"):
        parse_compute_domain({**CHANNEL, "status": {"nodes": [{"name": "a"}] * 4097}})


def running(name: str, node: str, **claims: str) -> Made:
    listed = [
        {"name": key, f"resourceClaim{'Template' if key == 'nvlink' else ''}Name": of} for key, of in claims.items()
    ]
    return {
        "metadata": {"name": name, "namespace": "training", "labels": {"training.kubeflow.org/job-name": "train"}},
        "spec": {"nodeName": node, "resourceClaims": listed},
        "status": {"phase": "Running"},
    }


def test_node_and_templates_of_a_running_pod_are_read() -> None:
    assert parse_claiming_pod(running("a", "worker-1", nvlink="nvlink", other="x")) == ClaimingPod(
        "a", "worker-1", ("nvlink",)
    )
    assert parse_claiming_pod(running("a", "worker-1", other="x")) is None
    assert parse_claiming_pod(running("a", "", nvlink="nvlink")) is None


class Api:
    """An API server with the objects of some kinds. A kind that it does not have is not served."""

    def __init__(self, **kinds: list[Made]) -> None:
        self.kinds = kinds

    def pages(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        *,
        only: typing.Callable[[Made], bool] = lambda _item: True,
    ) -> typing.Iterator[Made]:
        assert not selector
        if kind not in self.kinds:
            raise ApiError(404, "NotFound", "absent", kind)
        yield from filter(only, json.loads(json.dumps(self.kinds[kind])))

    def list(
        self, kind: str, namespace: str = "", selector: str = "", *, only: typing.Callable[[Made], bool]
    ) -> Listing:
        return Listing(tuple(item for item in self.pages(kind, namespace) if only(item)), "1")

    def get(self, kind: str, namespace: str, name: str) -> Made:
        raise ApiError(404, "NotFound", "absent", kind)


def test_compute_domains_of_the_job_and_the_nodes_of_its_pods_are_read_from_the_cluster() -> None:
    foreign = {**CHANNEL, "metadata": {"name": "b", "namespace": "training"}}
    foreign["spec"] = {"channel": {"resourceClaimTemplate": {"name": "foreign"}}}
    pods = [running("train-0", "worker-1", nvlink="nvlink"), running("train-1", "worker-2", nvlink="nvlink")]
    api = Api(ComputeDomain=[{**CHANNEL, "status": STATUS}, foreign], Pod=pods)
    made = job(CHANNEL)
    wanted = list_objects(list_jobs(made), made)
    found = observe(typing.cast(Cluster, api), ["training"], [("training", "train")], {}, wanted)
    assert [item.name for item in found.compute_domains or ()] == ["training/train"]
    assert [(item.name, item.node) for item in found.claiming_pods] == [
        ("train-0", "worker-1"),
        ("train-1", "worker-2"),
    ]
    # a job without such a claim, and an API server that does not serve the kind
    assert observe(typing.cast(Cluster, api), ["training"], [], {}, JobObjects()).compute_domains is None
    assert observe(typing.cast(Cluster, Api()), ["training"], [], {}, wanted).compute_domains is None
