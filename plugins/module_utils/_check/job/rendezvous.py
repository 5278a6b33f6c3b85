# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the processes that torchrun starts in the pods of a job find each other, and use the GPUs of their pod.
Check id: ``job.framework``.

An option on the command line takes precedence over the variable of the operator, and without both torchrun starts one
process on one node. [src pytorch torch/distributed/run.py; kubeflow/trainer v1.9.4
pkg/controller.v1/pytorch/envvar.go]
"""

from __future__ import annotations

import re
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import cut_text
from ..._model.job.job import JobWorkload, PodContainer, TorchRun
from ..._model.run.findings import FAIL, WARN, Finding, Status
from ..._parse.kubernetes.quantity import parse_quantity
from .choice import SHOWN
from .loopback import cut_port, is_loopback
from .scope import LintedTemplate, is_gpu

_CHECK = "job.framework"
#: kinds whose operator gives torchrun the number of pods and the address of the first one
_OPERATED = ("PyTorchJob", "TrainJob")
#: kinds whose pods may be independent of each other
_INDEPENDENT = ("Deployment", "ReplicaSet", "DaemonSet", "Pod")
#: variables of the operator, in an option
_OF_OPERATOR = re.compile(r"\$[({]?(?:PET_[A-Z_]+|WORLD_SIZE)[)}]?")
_NODES = re.compile(r"([0-9]{1,6})(?::([0-9]{1,6}))?")


def check_rendezvous(job: JobWorkload, scopes: typing.Sequence[LintedTemplate]) -> typing.Iterator[Finding]:
    """Yield the calls of torchrun by which the pods of a job do not find each other, or do not use their GPUs.

    :param job: job that the linter checks
    :param scopes: pod templates of the job that compute
    """
    pods = sum(scope.template.count for scope in scopes)
    for scope in scopes:
        for container in scope.workers:
            for run in container.torchruns:
                if pods > 1:
                    yield from _check_nodes(job, scope, container, run, pods)
                yield from _check_processes(job, scope, container, run)


def _check_nodes(
    job: JobWorkload, scope: LintedTemplate, container: PodContainer, run: TorchRun, pods: int
) -> typing.Iterator[Finding]:
    expected, subject = f"torchrun on {pods} nodes", f"{scope.subject} {container.name} torchrun"
    remedy = f"Remove --standalone, and set --nnodes to {pods}, the number of pods."
    operated = job.kind in _OPERATED
    if operated:
        remedy = "Remove --standalone and --nnodes: torchrun then uses the values of the operator (PET_*)."
    status: Status = WARN if job.kind in _INDEPENDENT else FAIL
    nodes = run.nodes if run.nodes is not None else "" if operated else _find_variable(container, "PET_NNODES", "1")
    shown = f"--nnodes {nodes}" if run.nodes is not None else f"--nnodes not set, so {nodes}"
    why = (
        "The processes of each pod form a job of their own, so no data passes between pods. The option takes precedence"
        " over the variables of the operator."
    )
    if run.standalone:
        yield Finding(_CHECK, subject, status, "--standalone", expected, why, remedy)
        return
    if nodes and "$" in nodes:
        if not (operated and _OF_OPERATOR.fullmatch(nodes)):
            why = "Only a shell can compute the value, so job_lint did not compare it with the number of pods."
            yield Finding(
                _CHECK, subject, WARN, cut_text(shown, SHOWN), expected, why, "Write the number itself into --nnodes."
            )
        return
    found = _NODES.fullmatch(nodes.strip()) if nodes else None
    if found is not None:
        least, most = int(found[1]), int(found[2] or found[1])
        if most == 1:
            yield Finding(_CHECK, subject, status, shown, expected, why, remedy)
            return
        if most < pods or least > pods:
            why = (
                f"The job has {count_of(pods, 'pod')}. torchrun starts no processes in pods above the number of nodes."
            )
            if least > pods:
                why = f"torchrun waits for {least} pods, and the job has {count_of(pods, 'pod')}."
            # replicas of a group, such as those of a LeaderWorkerSet, may be jobs of their own
            yield Finding(_CHECK, subject, FAIL if operated else WARN, shown, expected, why, remedy)
            return
    if run.rendezvous and is_loopback(cut_port(run.rendezvous)):
        why = "The address of the rendezvous is a different place in each pod, so the pods never meet."
        remedy = "Set --rdzv-endpoint to the host name of the first pod and a port."
        if operated:
            remedy = "Remove --rdzv-endpoint and --master-addr: torchrun then uses the address of the operator (PET_*)."
        yield Finding(
            _CHECK, subject, FAIL, cut_text(run.rendezvous, SHOWN), "an address of the first pod", why, remedy
        )


def _check_processes(
    job: JobWorkload, scope: LintedTemplate, container: PodContainer, run: TorchRun
) -> typing.Iterator[Finding]:
    gpus = sum(
        int(parse_quantity(amount, name))
        for name, amount in container.limits.items()
        if is_gpu(name) and not name.endswith(".shared")
    )
    given = run.processes
    by = "--nproc-per-node"
    if given is None and job.kind in _OPERATED:
        given, by = job.processes, "processes per node in the object of the job:"
    elif given is None:
        given, by = _find_variable(container, "PET_NPROC_PER_NODE", "1"), "--nproc-per-node not set, so"
    if not gpus or not re.fullmatch(r"[0-9]{1,6}", given or "") or int(given or 0) == gpus:
        return
    why = "A process usually uses one GPU. The other GPUs of the pod are idle, and so are the HCAs near them."
    if int(given or 0) > gpus:
        why = "torchrun starts more processes than the pod has GPUs. CUDA refuses the others: invalid device ordinal."
    yield Finding(
        _CHECK,
        f"{scope.subject} {container.name} torchrun processes",
        WARN,
        f"{by} {given}",
        f"{count_of(gpus, 'process', 'processes')}, one for each GPU of the pod",
        why,
        "Set --nproc-per-node to gpu, or to the number of GPUs of the pod. Waive this finding if each process uses more"
        " than one GPU.",
    )


def _find_variable(container: PodContainer, name: str, default: str) -> str:
    """Return the value of a variable of a container. Return ``default`` if it is not set, and an empty string if its
    value is unknown, or if other objects may set it (envFrom).
    """
    found = [item.value for item in container.environment if item.name == name]
    return (found[-1] or "") if found else "" if container.sources else default
