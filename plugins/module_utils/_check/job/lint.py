# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter of training jobs, both of manifests and of running jobs. It reports the settings that keep NCCL off the
RDMA network without an error message. Check ids: ``job.*``.

Each rule is about a mistake that the API server accepts: a variable that NCCL does not read, an interface that no
attachment creates, memory that can't be pinned. Without access to a cluster, the rules that need one are skipped. [src
NVIDIA/nccl v2.30.7 src/misc/socket.cc, src/transport/net_ib, src/misc/utils.cc parseStringList; multus-cni v4;
k8s.io/kubernetes QoS classes]
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.unread import describe_unread
from ..._model.base.load_error import Hints
from ..._model.base.phrases import count_of
from ..._model.boundary.form import describe_rejected
from ..._model.job.job import (
    JobWorkload,
    PodTemplate,
)
from ..._model.job.surroundings import (
    JobObjects,
    JobSurroundings,
)
from ..._model.kubernetes.device_claims import DeviceClaims
from ..._model.run.findings import FAIL, UNKNOWN, Finding, add_rerun, build_pass
from ..._parse.job.manifest import is_job
from ..._parse.job.manifest import parse_workload as parse
from ..._parse.job.train_job import RUNTIMES
from ..._parse.kubernetes.resource import Resource, ResourceError
from . import admission
from .containers import check_added, check_guaranteed, check_shared_memory, check_volumes
from .devices.claims import check_device_claims
from .devices.compute_domains import check_compute_domains
from .devices.known_claims import add_cluster, add_uses, read_claims
from .hcas import check_hcas
from .nccl import check_evidence, check_interfaces, check_transport, check_variables
from .network import check_devices, check_memlock, check_networks, check_routes
from .places import check_claims, check_places
from .rendezvous import check_rendezvous
from .scope import ComparisonBudget, LintedTemplate

_CORRECT = "Correct the object. Run kubectl apply --dry-run=server -f FILE for the error of the API server."


def lint(
    resources: typing.Sequence[Resource],
    runtimes: typing.Sequence[Resource] = (),
    surroundings: typing.Optional[JobSurroundings] = None,
) -> tuple[Finding, ...]:
    """Return the findings of all rules of the linter on jobs. A rule that applies to a pod template yields at least one
    finding on it.

    :param resources: objects of the jobs
    :param runtimes: other objects of the same files: runtimes to which TrainJobs refer, and claims of devices
    :param surroundings: state of the cluster; None skips the rules that need a cluster
    """
    findings: list[Finding] = []
    hints, budget = Hints(), ComparisonBudget()
    try:
        beside = read_claims(runtimes)
    except ResourceError as error:
        beside = DeviceClaims()
        why = f"An object in the file of the job could not be read: {error.seen}."
        findings.append(
            Finding("job.read", "claims", UNKNOWN, "not read", "claims that Kubernetes accepts", why, _CORRECT)
        )
    known = add_cluster(beside, surroundings)
    for resource in resources:
        try:
            job = add_uses(parse(resource, runtimes), known)
        except ResourceError as error:
            why = f"The job could not be read: {error.seen}."
            findings.append(
                Finding(
                    "job.read",
                    _name_resource(resource),
                    UNKNOWN,
                    "not read",
                    "a job that Kubernetes accepts",
                    why,
                    _CORRECT,
                )
            )
            continue
        findings.append(
            build_pass(
                "job.read",
                job.subject,
                count_of(sum(item.count for item in job.templates), "pod"),
                "a job that Kubernetes accepts",
            )
        )
        findings += _lint_job(job, surroundings, hints, budget, known)
    if not resources:
        why = "The given objects create no pods, so job_lint checked nothing."
        findings.append(
            Finding(
                "job.read",
                "job",
                UNKNOWN,
                "no job",
                "at least 1 job",
                why,
                "Give job_lint the kind and the name of the job, or the file that contains it (path).",
            )
        )
    return add_rerun(findings, "job_lint", "Then run job_lint again.")


def list_objects(resources: typing.Iterable[Resource], runtimes: typing.Sequence[Resource]) -> JobObjects:
    """Return the names of the cluster objects that the jobs refer to, such as attachments and claims. A job that can't
    be read is skipped.

    :param resources: objects of the jobs
    :param runtimes: other objects of the same files: runtimes to which TrainJobs refer, and claims of devices
    """
    templates: list[tuple[str, PodTemplate]] = []
    for resource in resources:
        try:
            job = parse(resource, runtimes)
        except ResourceError:
            continue
        templates += [(job.namespace, template) for template in job.templates]
    return JobObjects(
        frozenset(request.full_name for _namespace, template in templates for request in template.networks),
        frozenset(
            (claim.kind, f"{namespace}/{claim.of}")
            for namespace, template in templates
            for claim in template.device_claims
        ),
        frozenset(
            name
            for _namespace, template in templates
            for container in template.containers
            for name in container.limits
            if "/" in name
        ),
    )


def list_jobs(resources: typing.Iterable[Resource]) -> tuple[Resource, ...]:
    """Return the resources to check as jobs. A runtime counts as a job only if no TrainJob is among the resources. A
    resource that can't be read is included, so that a finding reports it.

    :param resources: objects of a file
    """
    resources = tuple(resources)
    beside = any(item.get("kind") == "TrainJob" for item in resources)
    return tuple(item for item in resources if _may_be_job(item) and not (beside and item.get("kind") in RUNTIMES))


def _may_be_job(resource: Resource) -> bool:
    try:
        return is_job(resource)
    except ResourceError:
        return True


def _name_resource(resource: Resource) -> str:
    metadata = resource.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{describe_rejected(resource.get('kind') or 'object')} {describe_rejected(name or 'without a name')}"


def _lint_job(
    job: JobWorkload,
    surroundings: typing.Optional[JobSurroundings],
    hints: Hints,
    budget: ComparisonBudget,
    known: DeviceClaims,
) -> typing.Iterator[Finding]:
    scopes = [LintedTemplate(job, template, surroundings, hints, budget) for template in job.templates]
    yield from _check_framework(job, [scope for scope in scopes if scope.computes])
    for scope in scopes:
        yield from check_variables(scope)
        yield from check_volumes(scope)
        yield from check_device_claims(scope, known)
    yield from check_compute_domains(scopes, known)
    scopes = [scope for scope in scopes if scope.computes]
    if not scopes:
        why = "No pod of the job requests a GPU, an extended resource or a secondary network."
        remedy = "Add the GPUs and the network to the pod template; docs/job.md has an example."
        yield Finding(
            "job.networks", job.subject, FAIL, "no GPU and no network", "pods with GPUs or a network", why, remedy
        )
    for scope in scopes:
        yield from check_transport(scope)
        yield check_evidence(scope)
        yield from check_networks(scope)
        yield from check_interfaces(scope)
        yield from check_hcas(scope)
        yield from check_devices(scope)
        yield check_memlock(scope)
        yield admission.check(
            scope.template,
            scope.subject,
            surroundings.enforced.get(job.namespace) if surroundings is not None else None,
            job.namespace,
        )
        yield check_shared_memory(scope)
        yield from check_guaranteed(scope)
        yield from check_added(scope)
        yield from check_routes(scope)
    if surroundings is not None:
        if surroundings.errors:
            yield describe_unread(
                "job.read",
                job.subject,
                surroundings.errors,
                "give the user of the kubeconfig the rights that docs/job.md lists.",
            )
        yield from check_places(scopes, surroundings)
        yield from check_claims(job, scopes, surroundings)


def _check_framework(job: JobWorkload, scopes: typing.Sequence[LintedTemplate]) -> typing.Iterator[Finding]:
    """Check that the operator makes the pods known to each other, and that torchrun in them uses all pods and GPUs.

    :param scopes: pod templates of the job that compute
    """
    expected, apart = "pods that start and find each other", tuple(check_rendezvous(job, scopes))
    yield from apart
    if not job.lost:
        if not apart:
            yield build_pass("job.framework", job.subject, "no obstacle found", expected)
        return
    yield Finding(
        "job.framework",
        job.subject,
        FAIL,
        "pods that do not start or do not find each other",
        expected,
        f"{job.lost}.",
        "Correct what 'why' names in the job. docs/job.md has an example.",
    )
