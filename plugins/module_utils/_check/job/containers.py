# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the shared memory, the volumes and the QoS class of a job's containers."""

from __future__ import annotations

import typing

from ..._model.job.job import PodContainer
from ..._model.run.findings import FAIL, WARN, Finding, ok
from ..._parse.kubernetes.quantity import quantity
from .scope import Scope


def check_shared_memory(scope: Scope) -> Finding:
    """Check that /dev/shm of each container that computes is a memory volume, and that its size limit does not exceed
    the memory limit of the container.
    """
    expected, memory = "a volume in memory at /dev/shm", scope.template.memory_volumes
    without = [item.name for item in scope.workers if item.mounts.get("/dev/shm") not in memory]
    if without:
        why = (
            "A container has 64 MiB of shared memory else: too little for NCCL between the GPUs of a pod and for the"
            " workers of a data loader."
        )
        remedy = "Add an emptyDir with medium: Memory and a sizeLimit, and mount it at /dev/shm."
        return Finding(
            "job.shared_memory", scope.subject, FAIL, f"container {', '.join(without)} has none", expected, why, remedy
        )
    for item in scope.workers:
        size, limit = memory[item.mounts["/dev/shm"]], item.limits.get("memory")
        if size and limit and quantity(size, "sizeLimit") > quantity(limit, "memory"):
            why = "What is written there counts as memory of the container, which is killed before the volume is full."
            return Finding(
                "job.shared_memory",
                scope.subject,
                WARN,
                size,
                f"at most {limit}, the limit of memory",
                why,
                "Raise the limit of memory, or lower sizeLimit.",
            )
    return ok("job.shared_memory", scope.subject, "/dev/shm in memory", expected)


def check_volumes(scope: Scope) -> typing.Iterator[Finding]:
    """Check that the pod has the volume of each mount of its containers."""
    check, expected, there = "job.volumes", "volumes of the pod", frozenset(scope.template.volumes)
    wrong = []
    for item in (*scope.template.init_containers, *scope.template.containers):
        for path, name in item.mounts.items():
            if name not in there:
                why = "The operator's definition takes it, and the API server then refuses each of the pods."
                subject, hint = f"{scope.subject} {item.name} {path}", scope.hints.nearest(name, scope.template.volumes)
                wrong.append(
                    Finding(
                        check,
                        subject,
                        FAIL,
                        f"volume '{name}' is not there",
                        expected + hint,
                        why,
                        "Add the volume, or correct its name.",
                    )
                )
    yield from wrong or [ok(check, scope.subject, ", ".join(scope.template.volumes) or "none", expected)]


def check_guaranteed(scope: Scope) -> typing.Iterator[Finding]:
    """Check that the requests of each container equal its limits, as the QoS class Guaranteed requires."""
    check, expected = "job.guaranteed", "requests equal limits"
    wrong = []
    for item in (*scope.template.init_containers, *scope.template.containers):
        differs = [
            name for name in sorted({"cpu", "memory", *item.requests, *item.limits}) if _has_different_limit(item, name)
        ]
        if differs:
            shown = "; ".join(
                f"{name} {item.requests.get(name, 'none')} / {item.limits.get(name, 'none')}" for name in differs
            )
            why = (
                "The pod is not of the QoS class Guaranteed: it gets no CPUs of its own, and is the first to go when"
                " memory is short."
            )
            wrong.append(
                Finding(
                    check,
                    f"{scope.subject} {item.name}",
                    FAIL,
                    f"{shown} (requests / limits)",
                    expected,
                    why,
                    "Write the same into both.",
                )
            )
    yield from wrong or [ok(check, scope.subject, "requests equal limits in all that the job names", expected)]


def check_added(scope: Scope) -> typing.Iterator[Finding]:
    """Warn about the init container that the training operator (v1) adds to the Workers of a PyTorchJob that has a
    Master. [training-operator pkg/controller.v1/pytorch/initcontainer.go, 1.7 to 1.9]
    """
    names = {template.path.rpartition(".")[2] for template in scope.job.templates}
    if scope.job.kind != "PyTorchJob" or "Master" not in names or not scope.template.path.endswith("Worker"):
        return
    measured, expected = (
        "init-pytorch: CPU 50m of 100m, memory 10Mi of 20Mi",
        "no container whose requests are not its limits",
    )
    why = (
        "The operator has Workers wait for the Master in an init container of its own, and for that the pod is not of"
        " the QoS class Guaranteed."
    )
    remedy = (
        "Give the operator another template (--pytorch-init-container-template-file), or use a TrainJob; once it is"
        " given, waive this."
    )
    yield Finding("job.added", scope.subject, WARN, measured, expected, why, remedy)


def _has_different_limit(item: PodContainer, name: str) -> bool:
    if name not in item.requests or name not in item.limits:
        return True
    return quantity(item.requests[name], name) != quantity(item.limits[name], name)
