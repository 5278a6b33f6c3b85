# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the shared memory, the volumes and the QoS class of a job's containers."""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.job.job import PodContainer
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from ..._parse.kubernetes.quantity import parse_quantity
from .scope import LintedTemplate

#: resources that do not count for the QoS class of a pod [k8s.io/kubernetes pkg/apis/core/v1/helper/qos]
_NOT_OF_QOS = frozenset(("ephemeral-storage",))


def check_shared_memory(scope: LintedTemplate) -> Finding:
    """Check that /dev/shm of each container that computes is a memory volume, and that its size limit does not exceed
    the memory limit of the container.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    expected, memory = "a memory volume at /dev/shm", scope.template.memory_volumes
    if scope.template.host_ipc:
        return build_pass("job.shared_memory", scope.subject, "/dev/shm of the node (hostIPC)", expected)
    without = [item.name for item in scope.workers if item.mounts.get("/dev/shm") not in memory]
    if without:
        why = (
            "Without a memory volume, a container has 64 MiB of shared memory. This is too little for NCCL between the"
            " GPUs of a pod and for the workers of a data loader."
        )
        remedy = (
            "Add an emptyDir volume with medium: Memory and a sizeLimit to the pod template, and mount it at /dev/shm."
        )
        return Finding(
            "job.shared_memory",
            scope.subject,
            FAIL,
            f"no memory volume in container {', '.join(without)}",
            expected,
            why,
            remedy,
        )
    for item in scope.workers:
        size, limit = memory[item.mounts["/dev/shm"]], item.limits.get("memory")
        if size and limit and parse_quantity(size, "sizeLimit") > parse_quantity(limit, "memory"):
            why = (
                "Data in this volume counts as memory of the container, so the kernel kills the container before the"
                " volume is full."
            )
            return Finding(
                "job.shared_memory",
                scope.subject,
                WARN,
                f"sizeLimit {size}",
                f"sizeLimit of at most {limit}, the memory limit",
                why,
                "Raise the memory limit of the container, or lower sizeLimit of the volume.",
            )
    return build_pass("job.shared_memory", scope.subject, "a memory volume at /dev/shm", expected)


def check_volumes(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that each volume that a container mounts is defined in the pod template.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, there = "job.volumes", frozenset(scope.template.volumes)
    expected = f"a volume of the pod: {join_first(scope.template.volumes, 8) or 'none'}"
    wrong = []
    for item in (*scope.template.init_containers, *scope.template.containers):
        for path, name in item.mounts.items():
            if name not in there:
                why = (
                    "A container mounts a volume that its pod does not have. The API server accepts the job, but"
                    " refuses each of its pods."
                )
                subject, hint = f"{scope.subject} {item.name} {path}", scope.hints.nearest(name, scope.template.volumes)
                wrong.append(
                    Finding(
                        check,
                        subject,
                        FAIL,
                        f"volume '{name}' does not exist",
                        expected + hint,
                        why,
                        "Add the volume to the pod template, or correct its name.",
                    )
                )
    yield from wrong or [build_pass(check, scope.subject, ", ".join(scope.template.volumes) or "none", expected)]


def check_guaranteed(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that the requests of CPU and memory of each container equal its limits, as the QoS class Guaranteed
    requires.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = "job.guaranteed", "requests equal limits"
    wrong = []
    for item in (*scope.template.init_containers, *scope.template.containers):
        differs = [
            name
            for name in sorted({"cpu", "memory", *item.requests, *item.limits} - _NOT_OF_QOS)
            if _has_different_limit(item, name)
        ]
        if differs:
            shown = "; ".join(
                f"{name} {item.requests.get(name, 'none')} / {item.limits.get(name, 'none')}" for name in differs
            )
            why = (
                "The pod does not have the QoS class Guaranteed. It gets no exclusive CPUs, and it is killed before"
                " Guaranteed pods when memory is short."
            )
            wrong.append(
                Finding(
                    check,
                    f"{scope.subject} {item.name}",
                    FAIL,
                    f"{shown} (requests / limits)",
                    expected,
                    why,
                    "Set the requests of the container equal to its limits.",
                )
            )
    yield from wrong or [
        build_pass(check, scope.subject, "requests equal limits in all containers of the job", expected)
    ]


def check_added(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Warn that a container without equal requests and limits is added to the Workers of a PyTorchJob that has a
    Master: the init container of the training operator (v1). Other jobs get no finding. [training-operator
    pkg/controller.v1/pytorch/initcontainer.go, 1.7 to 1.9]

    :param scope: pod template of a job, and the cluster in which it would run
    """
    names = {template.path.rpartition(".")[2] for template in scope.job.templates}
    if scope.job.kind != "PyTorchJob" or "Master" not in names or not scope.template.path.endswith("Worker"):
        return
    measured, expected = (
        "init-pytorch: CPU requests 50m, limits 100m; memory requests 10Mi, limits 20Mi",
        "requests equal limits in all containers",
    )
    why = (
        "The training operator adds an init container to each Worker, in which the Worker waits for the Master."
        " Its requests are lower than its limits, so the Worker does not have the QoS class Guaranteed: it gets no"
        " exclusive CPUs, and it is killed before Guaranteed pods when memory is short."
    )
    remedy = (
        "Write a template of this init container in which the requests of CPU and memory equal the limits, and start"
        " the training operator with --pytorch-init-container-template-file=FILE. Or submit the job as a TrainJob. If"
        " the operator already uses a template with equal requests and limits, waive this finding."
    )
    yield Finding("job.added", scope.subject, WARN, measured, expected, why, remedy)


def _has_different_limit(item: PodContainer, name: str) -> bool:
    if name not in item.requests or name not in item.limits:
        return True
    return parse_quantity(item.requests[name], name) != parse_quantity(item.limits[name], name)
