# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the software stack that a training job needs: whether each operator exists and is ready, its version, and
whether the queue can admit the job. Check ids: ``stack.*``.

The requirements are derived from the job: its kind, resources, attachments, queue and claims.
"""

from __future__ import annotations

import collections
import decimal
import typing

from ..._analysis.controllers.label_selectors import labels_match
from ..._analysis.controllers.unread import describe_unread
from ..._model.base.load_error import suggest_nearest
from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.job.job import JobWorkload
from ..._model.job.stack import ClusterQueue, Stack
from ..._model.job.surroundings import JobSurroundings
from ..._model.kubernetes.disruption import LabelSelector
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, add_rerun, build_pass
from ..._parse.job.manifest import parse_workload as parse
from ..._parse.kubernetes.quantity import parse_quantity
from ..._parse.kubernetes.resource import Resource, ResourceError
from .operators import check_operators

#: what Kueue calls the kinds that it does not manage unless it is told to [src kueue v0.19.2
#: config/components/manager/controller_manager_config.yaml]
_FRAMEWORKS = {
    "PyTorchJob": "kubeflow.org/pytorchjob",
    "MPIJob": "kubeflow.org/mpijob",
    "TrainJob": "trainer.kubeflow.org/trainjob",
}
#: provisioners whose volumes many nodes can write, by a part of their names
_SHARED = (
    "cephfs",
    "nfs",
    "lustre",
    "spectrumscale",
    "beegfs",
    "weka",
    "efs.csi",
    "file.csi",
    "filestore",
    "glusterfs",
    "vast",
    "quobyte",
    "juicefs",
)


def check(
    resources: typing.Sequence[Resource],
    runtimes: typing.Sequence[Resource],
    surroundings: JobSurroundings,
    stack: Stack,
) -> tuple[Finding, ...]:
    """Check that the cluster has what the jobs need: the operator of each kind of job, queues and storage. A job that
    can't be read is skipped; the linter reports it.

    :param resources: objects of the jobs
    :param runtimes: runtimes to which TrainJobs refer
    :param surroundings: state of the cluster in which the job would run
    :param stack: operators, queues and storage of the cluster
    """
    jobs = []
    for resource in resources:
        try:
            jobs.append(parse(resource, runtimes))
        except ResourceError:
            continue
    findings = [_check_read_errors(stack)] if jobs else []
    findings += check_operators(jobs, surroundings, stack)
    for job in jobs:
        if job.queue:
            findings += _check_queue(job, stack)
    if any(template.claims for job in jobs for template in job.templates):
        findings.append(_check_storage(stack))
    return add_rerun(findings, "job_lint", "Then run job_lint again.")


def _check_read_errors(stack: Stack) -> Finding:
    if not stack.errors:
        return build_pass("stack.read", "cluster", "everything was read", "everything")
    return describe_unread(
        "stack.read", "cluster", stack.errors, "give the user of the kubeconfig the rights that docs/job.md lists."
    )


# Kueue


def _check_queue(job: JobWorkload, stack: Stack) -> typing.Iterator[Finding]:
    check_id, subject, expected = (
        "stack.queue",
        f"{job.subject} queue {job.queue}",
        "an active queue that has room for the job",
    )
    framework, wrong = _FRAMEWORKS.get(job.kind), False
    if framework and stack.frameworks is not None and framework not in stack.frameworks:
        why = (
            f"The configuration of Kueue does not list {framework}, so Kueue ignores the queue label of the job. The"
            " job starts at once, regardless of all quotas."
        )
        remedy = (
            f"Add {framework} to integrations.frameworks in the ConfigMap kueue-manager-config, and restart"
            " Kueue: kubectl -n kueue-system rollout restart deployment kueue-controller-manager."
        )
        wrong = True
        yield Finding(check_id, subject, FAIL, f"Kueue does not manage {job.kind}", expected, why, remedy)
    local = next((item for item in stack.local_queues if item.name == f"{job.namespace}/{job.queue}"), None)
    if local is None:
        # what other tenants have is not told
        names = [item.name for item in stack.local_queues if item.name.startswith(f"{job.namespace}/")]
        seen = (
            f"a LocalQueue of the namespace:"
            f" {join_first(names) or 'none'}{suggest_nearest(f'{job.namespace}/{job.queue}', names)}"
        )
        why = "No LocalQueue of this name exists in the namespace of the job, so the job would stay suspended."
        yield Finding(
            check_id,
            subject,
            FAIL,
            "LocalQueue does not exist",
            seen,
            why,
            "Create the LocalQueue, or correct the label kueue.x-k8s.io/queue-name of the job.",
        )
        return
    queue = next((item for item in stack.cluster_queues if item.name == local.cluster_queue), None)
    if queue is None:
        why = f"LocalQueue {local.name} refers to a ClusterQueue that does not exist. The job would stay suspended."
        yield Finding(
            check_id,
            subject,
            FAIL,
            f"ClusterQueue {local.cluster_queue} does not exist",
            expected,
            why,
            "Create the ClusterQueue, or correct spec.clusterQueue of the LocalQueue.",
        )
        return
    for name, reason in ((f"LocalQueue {local.name}", local.inactive), (f"ClusterQueue {queue.name}", queue.inactive)):
        if reason:
            wrong = True
            yield Finding(
                check_id,
                subject,
                FAIL,
                f"{name} is not active",
                expected,
                f"The job would stay suspended. Reason for the inactive queue: {format_clause(reason)}.",
                f"Run kubectl describe {name.partition(' ')[0].lower()} -A, and correct the cause that it shows.",
            )
    labels = stack.namespaces.get(job.namespace)
    if queue.namespaces is None or (labels is not None and not labels_match(queue.namespaces, labels)):
        wrong = True
        why = (
            "The namespaceSelector of the ClusterQueue does not match the namespace of the job. A ClusterQueue without"
            " a namespaceSelector admits no namespace."
        )
        yield Finding(
            check_id,
            subject,
            FAIL,
            f"ClusterQueue {queue.name} does not admit namespace {job.namespace}",
            expected,
            why,
            "Set namespaceSelector: {} in the ClusterQueue to admit all namespaces, or label the namespace.",
        )
    elif labels is None and queue.namespaces != LabelSelector():
        wrong = True
        why = (
            "The namespace does not exist, or the user of the run may not read it. The ClusterQueue admits only"
            " namespaces with certain labels."
        )
        yield Finding(
            check_id,
            subject,
            UNKNOWN,
            f"labels of namespace {job.namespace} not read",
            f"labels that ClusterQueue {queue.name} admits",
            why,
            (
                f"Run kubectl get namespace {job.namespace}. If it does not exist, create it. If the command is"
                " forbidden, give the user of the kubeconfig the rights that docs/job.md lists."
            ),
        )
    quotas = list(_check_quotas(job, subject, queue, stack))
    yield from quotas
    if not wrong and not quotas:
        yield build_pass(check_id, subject, f"LocalQueue {local.name}, ClusterQueue {queue.name}", expected)


def _check_quotas(job: JobWorkload, subject: str, queue: ClusterQueue, stack: Stack) -> typing.Iterator[Finding]:
    """Yield a failed finding for each resource of the job that its ClusterQueue does not cover, or for which no flavor
    of the queue has enough quota for all pods. If the queue can borrow quota from its cohort, yield a warning instead.
    Resources that Kueue does not count are skipped.

    :param subject: subject of the findings
    :param queue: ClusterQueue to which the job's queue sends it
    :param stack: configuration of Kueue
    """
    expected = "a quota for each resource that the job requests"
    for name, amount in sorted(_sum_demand(job).items()):
        if name.startswith(stack.excluded) or name in stack.replaced:
            continue
        quotas = [
            parse_quantity(flavor[name], name) for group in queue.groups for flavor in group.values() if name in flavor
        ]
        largest = max(quotas, default=None)
        if largest is None:
            why = (
                f"ClusterQueue {queue.name} does not cover {name}, and Kueue does not admit a job that requests a"
                " resource which its queue does not cover."
            )
            remedy = (
                f"Add {name} to coveredResources and to the flavors of the ClusterQueue, or to excludeResourcePrefixes"
                " in the configuration of Kueue."
            )
            yield Finding("stack.queue", f"{subject} {name}", FAIL, f"no quota for {name}", expected, why, remedy)
        elif largest < amount:
            measured = f"a quota of at most {largest.normalize():f}"
            wanted = f"a quota of at least {amount.normalize():f}, for all pods"
            if queue.cohort:
                why = f"Kueue admits the job only while other queues of cohort {queue.cohort} lend the missing quota."
                yield Finding(
                    "stack.queue",
                    f"{subject} {name}",
                    WARN,
                    measured,
                    wanted,
                    why,
                    "Raise nominalQuota of the ClusterQueue, or accept that the job may have to wait.",
                )
            else:
                why = "The job requests more than the quota of the queue, so it stays suspended."
                yield Finding(
                    "stack.queue",
                    f"{subject} {name}",
                    FAIL,
                    measured,
                    wanted,
                    why,
                    "Raise nominalQuota of the ClusterQueue, or request less.",
                )


def _sum_demand(job: JobWorkload) -> dict[str, decimal.Decimal]:
    """Return the total request of all pods of a job, by name of the resource."""
    found: dict[str, decimal.Decimal] = collections.defaultdict(decimal.Decimal)
    for template in job.templates:
        for container in template.containers:
            for name, amount in container.requests.items():
                found[name] += parse_quantity(amount, name) * template.count
    return found


def _check_storage(stack: Stack) -> Finding:
    check_id, subject, expected = (
        "stack.storage",
        "storage classes",
        "a storage class with volumes that many nodes can write (ReadWriteMany)",
    )
    proven = [item.name for item in stack.storage if item.shared]
    likely = [
        f"{item.name} ({item.provisioner})"
        for item in stack.storage
        if any(part in item.provisioner for part in _SHARED)
    ]
    if proven:
        return build_pass(check_id, subject, f"{', '.join(proven)}: the cluster has such volumes", expected)
    if likely:
        return build_pass(check_id, subject, f"{', '.join(likely)}: according to the provisioner", expected)
    measured = ", ".join(f"{item.name} ({item.provisioner})" for item in stack.storage) or "no StorageClass"
    if stack.storage:
        why = (
            "No volume of these classes has ReadWriteMany yet, and their provisioners are not among those that are"
            " known to support it."
        )
        return Finding(
            check_id,
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Create a PersistentVolumeClaim with ReadWriteMany. If it becomes Bound (kubectl get pvc), waive this"
            " finding. Otherwise install a CSI driver for a shared file system.",
        )
    why = "The cluster has no StorageClass, so an admin must create every volume by hand."
    return Finding(
        check_id,
        subject,
        FAIL,
        measured,
        expected,
        why,
        "Install a CSI driver for a shared file system, such as CephFS or NFS.",
    )
