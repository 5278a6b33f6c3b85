# SPDX-License-Identifier: GPL-3.0-or-later

"""Linter of a training job that somebody wrote, or that runs: what keeps its NCCL from the RDMA network, in silence. Check ids: ``job.*``.

Each rule is about one thing that the API server takes and that then costs days: a variable that nobody reads, an interface that no attachment makes,
memory that can't be pinned. Without a cluster to ask, the rules that need one are left out.
[src NVIDIA/nccl v2.30.7 src/misc/socket.cc, src/transport/net_ib, src/misc/utils.cc parseStringList; multus-cni v4; k8s.io/kubernetes QoS classes]
"""

from __future__ import annotations

import collections
import dataclasses
import re
import typing

from ..._model.boundary.form import shown
from ..._model.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, ok
from ..._model.job import Attachment, Container, JobSurroundings, NetworkRequest, PodTemplate, Replaced, Variable, Workload
from ..._model.load import Hints
from ..._model.text import cut, folded
from ..._parse.job.manifest import RUNTIMES, is_job
from ..._parse.job.manifest import workload as parse
from ..._parse.kubernetes.quantity import quantity
from ..._parse.kubernetes.resource import Resource, ResourceError
from . import admission
from .nccl_variables import GONE, KNOWN, OTHERS, RELEASE, is_read

#: interfaces that every pod has
_OWN = ("lo", "eth0")
#: CNI plugins that give a pod a virtual function of its own, whose name is known only when the pod starts
_VIRTUAL = ("sriov", "ib-sriov")
_INFINIBAND = ("ib-sriov", "ipoib")
#: beginnings of the names of all HCAs of a driver, which look like names
_DRIVERS = ("mlx4", "mlx5")
#: characters of a list of names in a finding, of which each node and each pod may have one
_SHOWN = 400
#: the beginning of a text that C takes for a number of base 16, 8 or 10
_NUMBER = re.compile(r"[ \t-\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]{0,30}))")


@dataclasses.dataclass(frozen=True)
class Scope:
    """One pod template of a job, and what it meets.

    :ivar world: None where no cluster was asked
    :ivar hints: of all jobs that are looked at together
    """

    job: Workload
    template: PodTemplate
    world: typing.Optional[JobSurroundings]
    hints: Hints

    @property
    def subject(self) -> str:
        return f"{self.job.subject} {self.template.path}".rstrip()

    @property
    def workers(self) -> typing.Tuple[Container, ...]:
        """The containers that compute: those with GPUs, else those for which somebody set NCCL's variables, else all."""
        found = [item for item in self.template.containers if _gpus(item)]
        found = found or [item for item in self.template.containers if any(variable.name.startswith("NCCL_") for variable in item.environment)]
        return tuple(found) or self.template.containers

    @property
    def devices(self) -> typing.Dict[str, int]:
        """Extended resources of the containers that compute, but for the GPUs: the network's."""
        found: typing.Counter[str] = collections.Counter()
        for container in self.workers:
            found.update({name: int(quantity(amount, name)) for name, amount in container.limits.items() if "/" in name and not _is_gpu(name)})
        return dict(found)

    @property
    def computes(self) -> bool:
        """Whether this is about the network at all: the launcher of an MPIJob, say, is not."""
        return bool(self.template.networks or self.devices or any(_gpus(item) for item in self.template.containers))

    @property
    def tcp(self) -> bool:
        """Whether the job says that it wants no RDMA."""
        disable = self.value("NCCL_IB_DISABLE")
        return disable is not None and disable.value is not None and _integer(disable.value) != 0

    def value(self, name: str) -> typing.Optional[Variable]:
        """The last setting of a variable in the containers that compute; what only a shell knows is no setting."""
        found = [item for container in self.workers for item in container.environment if item.name == name]
        return next((item for item in reversed(found) if item.value is not None or item.place.endswith(".env")), None)

    def attachments(self) -> typing.List[typing.Tuple[NetworkRequest, typing.Optional[Attachment]]]:
        known = {item.name: item for item in self.world.attachments} if self.world else {}
        return [(request, known.get(request.full_name)) for request in self.template.networks]


def lint(
    resources: typing.Sequence[Resource], runtimes: typing.Sequence[Resource] = (), world: typing.Optional[JobSurroundings] = None
) -> typing.Tuple[Finding, ...]:
    """Findings on jobs: on each pod template one at least for each rule.

    :param resources: the jobs
    :param runtimes: to which TrainJobs among them refer
    :param world: what they meet; None leaves out the rules that need a cluster
    """
    findings: typing.List[Finding] = []
    hints = Hints()
    for resource in resources:
        try:
            job = parse(resource, runtimes)
        except ResourceError as error:
            why = f"It can't be read: {error.seen}."
            remedy = "Correct it; kubectl apply --dry-run=server says more."
            findings.append(Finding("job.read", _name(resource), UNKNOWN, "not read", "a job that Kubernetes would take", why, remedy))
            continue
        findings.append(ok("job.read", job.subject, f"{sum(item.count for item in job.templates)} pods", "a job that Kubernetes would take"))
        findings += _lint_job(job, world, hints)
    if not resources:
        why = "Nothing of what was given makes pods, so nothing was looked at."
        findings.append(Finding("job.read", "job", UNKNOWN, "no job", "1 at least", why, "Name the job, or the file that it is in."))
    return tuple(findings)


def jobs_of(resources: typing.Iterable[Resource]) -> typing.Tuple[Resource, ...]:
    """Those that pods are made of. A runtime counts where no TrainJob stands beside it, and what can't be read counts as well."""
    resources = tuple(resources)
    beside = any(item.get("kind") == "TrainJob" for item in resources)
    return tuple(item for item in resources if _may_be_job(item) and not (beside and item.get("kind") in RUNTIMES))


def _may_be_job(resource: Resource) -> bool:
    try:
        return is_job(resource)
    except ResourceError:
        return True


def _name(resource: Resource) -> str:
    metadata = resource.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{shown(resource.get('kind') or 'object')} {shown(name or 'without a name')}"


def _lint_job(job: Workload, world: typing.Optional[JobSurroundings], hints: Hints) -> typing.Iterator[Finding]:
    scopes = [Scope(job, template, world, hints) for template in job.templates]
    yield _framework(job)
    for scope in scopes:
        yield from _variables(scope)
        yield from _volumes(scope)
    scopes = [scope for scope in scopes if scope.computes]
    if not scopes:
        why = "No pod of it asks for a GPU, an extended resource or a secondary network."
        remedy = "Add the GPUs and the network; see docs/job.md for an example."
        yield Finding("job.networks", job.subject, FAIL, "no GPU and no network", "pods that compute together", why, remedy)
    for scope in scopes:
        yield from _transport(scope)
        yield _evidence(scope)
        yield from _networks(scope)
        yield from _interfaces(scope)
        yield from _hcas(scope)
        yield from _devices(scope)
        yield _memlock(scope)
        yield admission.check(scope.template, scope.subject, world.enforced.get(job.namespace) if world is not None else None)
        yield _shared_memory(scope)
        yield from _guaranteed(scope)
        yield from _added(scope)
        yield from _routes(scope)
    if world is not None:
        if world.errors:
            why = f"The API server did not let us read: {'; '.join(world.errors[:5])}."
            yield Finding("job.read", job.subject, UNKNOWN, f"{len(world.errors)} kinds unread", "everything", why, "Give the user the rights of docs/job.md.")
        yield from _places(scopes, world)
        yield from _claims(job, scopes, world)


def _framework(job: Workload) -> Finding:
    expected = "pods that are told of each other"
    if not job.lost:
        return ok("job.framework", job.subject, "nothing speaks against it", expected)
    return Finding("job.framework", job.subject, FAIL, "they are not", expected, f"{job.lost}.", "Add what is missing; see docs/job.md for an example.")


# NCCL's variables


def _variables(scope: Scope) -> typing.Iterator[Finding]:
    check, expected = "job.nccl_variables", f"variables that NCCL {RELEASE} reads"
    found = [item for container in scope.template.containers for item in container.environment if item.name.upper().startswith("NCCL_")]
    wrong = [item for item in found if not is_read(item.name)]
    for item in wrong:
        subject = f"{scope.subject} {item.name}"
        if item.name in GONE:
            why = f"NCCL read it up to release {GONE[item.name]}; later ones pass over it in silence."
            yield Finding(check, subject, WARN, "read no longer", expected, why, "Remove it, or say so where an old image needs it.")
        else:
            near = scope.hints.nearest(item.name.upper(), KNOWN | OTHERS)
            why = "NCCL does not know this name and says nothing: the job runs as if it were not set."
            yield Finding(check, subject, FAIL, f"set in {item.place}", f"{expected}{near}", why, "Correct the name, or remove the variable.")
    sources = [source for container in scope.workers for source in container.sources]
    if sources:
        why = f"Variables also come from {', '.join(sources)}, which is not looked into."
        yield Finding(check, scope.subject, WARN, "envFrom", expected, why, "Write NCCL's variables into env, where they are seen.")
    if not wrong:
        yield ok(check, scope.subject, f"{len({item.name for item in found})} variables, all of them read", expected)


def _transport(scope: Scope) -> typing.Iterator[Finding]:
    check, expected = "job.transport", "nothing that keeps NCCL from RDMA"
    rdma = bool(scope.devices)
    wrong: typing.List[typing.Tuple[Variable, Status, str, str]] = []
    disable = scope.value("NCCL_IB_DISABLE")
    if disable and scope.tcp:
        if rdma:
            why = "It switches RDMA off, InfiniBand and RoCE alike: the job takes an RDMA device and sends over TCP."
            wrong.append((disable, FAIL, why, "Set it to 0, or remove it."))
        else:
            wrong.append((disable, WARN, "NCCL sends over TCP, which is right only where pods have no RDMA device.", "Use an RDMA network."))
    net = scope.value("NCCL_NET")
    if net and (net.value or "").lower() == "socket":
        wrong.append((net, FAIL if rdma else WARN, "It makes NCCL send over TCP, whatever devices the pod has.", "Remove it."))
    over_nodes = scope.value("NCCL_MNNVL_ENABLE")
    if over_nodes and over_nodes.value is not None and _integer(over_nodes.value) == 0:
        why = "It switches NVLink between nodes off: on machines that have it, such as GB200 NVL72, the job sends over the HCAs alone."
        remedy = "Remove it, and give the pods a claim of a ComputeDomain, with which IMEX works. Leave it where the HCAs are to be measured."
        wrong.append((over_nodes, WARN, why, remedy))
    index = scope.value("NCCL_IB_GID_INDEX")
    kinds = {kind for _request, item in scope.attachments() if item for kind in item.kinds}
    if index and kinds & set(_INFINIBAND):
        why = "On InfiniBand the index chooses among subnet prefixes, which is nothing to set: it is RoCE that needs one."
        wrong.append((index, WARN, why, "Remove it."))
    for variable, status, why, remedy in wrong:
        yield Finding(check, f"{scope.subject} {variable.name}", status, str(variable.value), expected, why, remedy)
    hidden = [name for name in ("NCCL_IB_DISABLE", "NCCL_NET") if (item := scope.value(name)) and item.value is None]
    if hidden:
        why = f"The value of {' and '.join(hidden)} is in another object."
        yield Finding(check, scope.subject, UNKNOWN, "valueFrom", expected, why, "Write the value into the job.")
    elif not wrong:
        yield ok(check, scope.subject, "nothing", expected)


def _evidence(scope: Scope) -> Finding:
    found = scope.value("NCCL_DEBUG")
    measured, expected = found.value if found and found.value else "not set", "INFO or TRACE"
    if measured.upper() in ("INFO", "TRACE"):
        return ok("job.evidence", scope.subject, measured, expected)
    why = "NCCL then does not say over which transport each channel goes, and a job on TCP looks like one on RDMA."
    return Finding("job.evidence", scope.subject, WARN, measured, expected, why, "Set NCCL_DEBUG to INFO; it costs a few lines at the start.")


# The network


def _networks(scope: Scope) -> typing.Iterator[Finding]:
    check, expected = "job.networks", "a secondary network that is there"
    template = scope.template
    if template.host_network:
        why = "Pods on the node's own network need no attachment, and share ports and interfaces with everything on the node."
        yield Finding(check, scope.subject, WARN, "hostNetwork", expected, why, "Use an attachment, unless the cluster's rules say otherwise.")
        return
    if not template.networks:
        pods = sum(item.count for item in scope.job.templates if any(_gpus(container) for container in item.containers))
        if pods < 2 and not scope.devices:
            yield ok(check, scope.subject, "none: it is one pod", "none")
            return
        why = "Without the annotation k8s.v1.cni.cncf.io/networks a pod is only on the cluster's own network, where two nodes are often slower than one."
        yield Finding(check, scope.subject, FAIL, "no annotation", expected, why, "Add the annotation to the pod template's metadata, not to the job's.")
        return
    if scope.world is None:
        return
    names = {item.name for item in scope.world.attachments}
    for request, item in scope.attachments():
        subject = f"{scope.subject} {request.full_name}"
        if item is None:
            why = "There is no NetworkAttachmentDefinition of this name: the pods would wait for ever in ContainerCreating."
            hint = scope.hints.nearest(request.full_name, names)
            yield Finding(check, subject, FAIL, "absent", expected + hint, why, "Correct the name, or its namespace: without one the pod's own is meant.")
        elif item.problem:
            yield Finding(check, subject, UNKNOWN, "not understood", expected, item.problem + ".", "Look at its spec.config.")
        else:
            yield ok(check, subject, " + ".join(item.kinds), expected)


def _interfaces(scope: Scope) -> typing.Iterator[Finding]:
    check, expected = "job.interfaces", "interfaces that the pods have"
    setting = scope.value("NCCL_SOCKET_IFNAME")
    if setting is None:
        yield ok(check, scope.subject, "NCCL_SOCKET_IFNAME is not set: NCCL takes the first interface that is up", expected)
        return
    subject = f"{scope.subject} NCCL_SOCKET_IFNAME"
    if setting.value is None:
        yield Finding(check, subject, UNKNOWN, "valueFrom", expected, "The value is in another object.", "Write the value into the job.")
        return
    if scope.template.host_network:
        why = "The pods have the interfaces of their nodes, which are not known here."
        yield Finding(check, subject, WARN, setting.value, expected, why, "Compare with 'ip link' on each node.")
        return
    running = [item.interfaces for item in scope.world.pods] if scope.world else []
    sets = running or [tuple(request.interface for request in scope.template.networks)]
    choice, value = Choice.of(setting.value), cut(setting.value, _SHOWN)
    missing = sorted({pattern for interfaces in sets for pattern in choice.unmatched((*_OWN, *interfaces))})
    shown = ", ".join(sorted({*_OWN, *(name for interfaces in sets for name in interfaces)}))
    if missing or not choice.patterns:
        why = f"No attachment creates {_named(missing) or 'anything of that name'}; NCCL would stop, or take another one."
        yield Finding(
            check,
            subject,
            FAIL,
            value,
            f"{expected}: {shown}",
            why,
            "Name the interfaces of the annotation: net1, net2 ..., or @name behind it.",
        )
    elif not any(choice.takes(name) for interfaces in sets for name in (*_OWN, *interfaces)):
        yield Finding(check, subject, FAIL, value, f"{expected}: {shown}", "It excludes all of them.", "Leave one at least.")
    else:
        yield ok(check, subject, value, f"{expected}: {shown}")


def _hcas(scope: Scope) -> typing.Iterator[Finding]:
    check, subject, expected = "job.hcas", f"{scope.subject} NCCL_IB_HCA", "the HCAs that the pods get, and no other"
    setting = scope.value("NCCL_IB_HCA")
    if setting is None:
        yield ok(check, scope.subject, "NCCL_IB_HCA is not set in the job: NCCL takes every device that the pod can open", expected)
        return
    if setting.value is None:
        yield Finding(check, subject, UNKNOWN, "valueFrom", expected, "The value is in another object.", "Write the value into the job.")
        return
    choice, value, remedy = Choice.of(setting.value), cut(setting.value, _SHOWN), "Write the exact names behind '=', such as =mlx5_1,mlx5_2."
    if not choice.patterns:
        yield Finding(check, subject, FAIL, f"'{value}'", expected, "It names no HCA, and NCCL falls back to TCP.", remedy)
        return
    pods = [pod for pod in scope.world.pods if pod.devices] if scope.world else []
    if pods:
        yield from (_of_pod(check, f"{subject} of pod {pod.name}", choice, pod.devices, value) for pod in pods)
        return
    findings = []
    kinds = {kind for _request, item in scope.attachments() if item for kind in item.kinds}
    # pods get functions with other names than those of the node: of these only the beginning of all names of a driver excludes all
    wide = not choice.exact and any(f"{driver}_".startswith(pattern) for driver in _DRIVERS for pattern in choice.patterns)
    given = bool(kinds & set(_VIRTUAL)) and not wide
    nodes = scope.world.devices if scope.world else {}
    # most nodes have the same names
    unmatched = {names: choice.unmatched(names) for names in set(nodes.values())}
    for node, names in sorted(nodes.items()):
        missing = unmatched[names]
        if missing and not choice.exclude:
            why = f"The node has no such HCA: {_named(missing)}. NCCL passes over it in silence, and over all of them to TCP."
            findings.append(Finding(check, f"{subject} on {node}", FAIL, value, ", ".join(names) or "no HCA", why, "Names differ between nodes: see discover."))
        elif names and choice.exclude and not given and not any(choice.takes(name) for name in names):
            why = "It excludes each HCA of the node, and NCCL falls back to TCP in silence."
            findings.append(Finding(check, f"{subject} on {node}", FAIL, value, ", ".join(names), why, "Leave one at least, or remove NCCL_IB_HCA."))
    named = not choice.exclude and any(pattern[-1:].isdigit() and pattern not in _DRIVERS for pattern in choice.patterns)
    if named and kinds & set(_VIRTUAL):
        why = "Each pod gets another virtual function, and its name is known only when the pod starts; this one is given to one pod at most."
        findings.append(Finding(check, subject, FAIL, value, expected, why, "Find the name at the start of the pod, as the rendered job does, or remove it."))
    elif named and not choice.exact:
        why = "Names are prefixes: mlx5_1 also takes mlx5_10 to mlx5_19."
        findings.append(Finding(check, subject, WARN, value, "exact names", why, remedy))
    yield from findings or [ok(check, subject, value, expected)]


def _of_pod(check: str, subject: str, choice: Choice, devices: typing.Tuple[str, ...], value: str) -> Finding:
    left, extra = [name for name in devices if not choice.takes(name)], [] if choice.exclude else choice.unmatched(devices)
    expected = ", ".join(devices)
    if not left and not extra:
        return ok(check, subject, value, expected)
    parts = [f"it leaves out {', '.join(left)}"] if left else []
    parts += [f"{_named(extra)} is not the pod's"] if extra else []
    return Finding(
        check, subject, FAIL, value, expected, f"Of the devices that the pod got, {'; '.join(parts)}.", "Name what the pod has, or remove NCCL_IB_HCA."
    )


def _routes(scope: Scope) -> typing.Iterator[Finding]:
    check, expected = "job.routes", "the cluster's own network keeps the default route"
    wrong = []
    for request, item in scope.attachments():
        if request.default_route or (item and item.default_route):
            place = "The annotation asks for it" if request.default_route else "The attachment's ipam.routes hold it, and CNI adds it beside the cluster's"
            why = f"{place}. What is meant for the API server, DNS and the other pods would leave over a network that can't carry it."
            remedy = "Remove default-route." if request.default_route else "Remove the route to 0.0.0.0/0 (or ::/0) from the attachment."
            wrong.append(Finding(check, f"{scope.subject} {request.full_name}", FAIL, "default route over " + request.interface, expected, why, remedy))
    if scope.world is not None or wrong:
        yield from wrong or [ok(check, scope.subject, "no default route over a secondary network", expected)]


# What the pods ask for


def _devices(scope: Scope) -> typing.Iterator[Finding]:
    """Extended resources of the network against the attachments."""
    check, expected = "job.devices", "a device for each attachment"
    asked, used = scope.devices, collections.Counter(item.resource for _request, item in scope.attachments() if item and item.resource)
    wrong = []
    for name, count in sorted(used.items()):
        if asked.get(name, 0) < count:
            why = f"{count} attachments take a device of it each. Only where the SR-IOV operator's injector runs is it added to the pod."
            remedy = f"Add {name}: {count} to requests and limits."
            for replaced, amount in _replaced(scope, name):
                if amount >= count:
                    why, remedy = _why_replaced(replaced, {name: str(amount)})
            wrong.append(Finding(check, f"{scope.subject} {name}", WARN if name not in asked else FAIL, str(asked.get(name, 0)), str(count), why, remedy))
    offered = {item.resource for item in scope.world.attachments} if scope.world else set()
    for name, count in sorted(asked.items()):
        if name in offered and count > used.get(name, 0):
            why = "The pods hold devices that no attachment brings into them: nobody else can have those, and the pods can't use them."
            wrong.append(Finding(check, f"{scope.subject} {name}", FAIL, str(count), str(used.get(name, 0)), why, "Name the attachment once for each device."))
    if not asked and not used and scope.template.networks and not scope.tcp:
        why = "No device plugin's resource is asked for, so /dev/infiniband is not in the pods: NCCL finds no HCA and sends over TCP."
        remedy = "Ask for the network's resource, such as rdma/rdma_shared_device_eth: 1."
        for container in scope.workers:
            if container.replaced is not None and _network_devices(container.replaced):
                why, remedy = _why_replaced(container.replaced, _network_devices(container.replaced))
        wrong.append(Finding(check, scope.subject, FAIL, "no RDMA resource", expected, why, remedy))
    yield from wrong or [ok(check, scope.subject, ", ".join(f"{name}: {count}" for name, count in sorted(asked.items())) or "none", expected)]


def _network_devices(replaced: Replaced) -> typing.Dict[str, str]:
    """Return the extended resources that were replaced, but for the GPUs."""
    return {name: amount for name, amount in replaced.limits.items() if "/" in name and not _is_gpu(name)}


def _replaced(scope: Scope, name: str) -> typing.Iterator[typing.Tuple[Replaced, int]]:
    """Return what replaced a resource of the containers that compute, and how much of it there was."""
    for container in scope.workers:
        if container.replaced is not None and name in _network_devices(container.replaced) and name not in container.limits:
            yield container.replaced, int(quantity(container.replaced.limits[name], name))


def _why_replaced(replaced: Replaced, devices: typing.Mapping[str, str]) -> typing.Tuple[str, str]:
    """Return cause and remedy of resources that are in one object and that another one replaced."""
    names = ", ".join(f"{name}: {amount}" for name, amount in sorted(devices.items()))
    why = f"{replaced.of} asks for {names}, and {replaced.by} replaces all of its resources, so the pods have no such device: NCCL sends over TCP."
    return why, f"Add {names} to requests and limits in {replaced.by}."


def _memlock(scope: Scope) -> Finding:
    expected = "IPC_LOCK, or a memlock limit that is large enough"
    if scope.tcp or not (scope.template.networks or scope.devices):
        return ok("job.memlock", scope.subject, "no RDMA, so no memory to pin", expected)
    without = [item.name for item in scope.workers if not item.privileged and not {"IPC_LOCK", "ALL"} & set(item.capabilities)]
    if without:
        why = "RDMA pins memory. With the usual limit of 64 KiB, ibv_reg_mr fails with 'Cannot allocate memory', and NCCL with it."
        remedy = "Add IPC_LOCK to securityContext.capabilities.add of the container."
        return Finding("job.memlock", scope.subject, FAIL, f"container {', '.join(without)} has no IPC_LOCK", expected, why, remedy)
    others = [item.name for item in scope.workers if not item.privileged and (item.non_root or item.user)]
    if others:
        why = "A capability that is added is of use to root only; another user needs the limit of the container runtime."
        remedy = "Raise memlock on the nodes (see stage platform), or run as root."
        return Finding("job.memlock", scope.subject, WARN, f"container {', '.join(others)} does not run as root", expected, why, remedy)
    return ok("job.memlock", scope.subject, "IPC_LOCK", expected)


def _shared_memory(scope: Scope) -> Finding:
    expected, memory = "a volume in memory at /dev/shm", scope.template.memory_volumes
    without = [item.name for item in scope.workers if item.mounts.get("/dev/shm") not in memory]
    if without:
        why = "A container has 64 MiB of shared memory else: too little for NCCL between the GPUs of a pod and for the workers of a data loader."
        remedy = "Add an emptyDir with medium: Memory and a sizeLimit, and mount it at /dev/shm."
        return Finding("job.shared_memory", scope.subject, FAIL, f"container {', '.join(without)} has none", expected, why, remedy)
    for item in scope.workers:
        size, limit = memory[item.mounts["/dev/shm"]], item.limits.get("memory")
        if size and limit and quantity(size, "sizeLimit") > quantity(limit, "memory"):
            why = "What is written there counts as memory of the container, which is killed before the volume is full."
            return Finding(
                "job.shared_memory", scope.subject, WARN, size, f"at most {limit}, the limit of memory", why, "Raise the limit of memory, or lower sizeLimit."
            )
    return ok("job.shared_memory", scope.subject, "/dev/shm in memory", expected)


def _volumes(scope: Scope) -> typing.Iterator[Finding]:
    check, expected, there = "job.volumes", "volumes of the pod", frozenset(scope.template.volumes)
    wrong = []
    for item in (*scope.template.init_containers, *scope.template.containers):
        for path, name in item.mounts.items():
            if name not in there:
                why = "The operator's definition takes it, and the API server then refuses each of the pods."
                subject, hint = f"{scope.subject} {item.name} {path}", scope.hints.nearest(name, scope.template.volumes)
                wrong.append(Finding(check, subject, FAIL, f"volume '{name}' is not there", expected + hint, why, "Add the volume, or correct its name."))
    yield from wrong or [ok(check, scope.subject, ", ".join(scope.template.volumes) or "none", expected)]


def _guaranteed(scope: Scope) -> typing.Iterator[Finding]:
    check, expected = "job.guaranteed", "requests equal limits"
    wrong = []
    for item in (*scope.template.init_containers, *scope.template.containers):
        differs = [name for name in sorted({"cpu", "memory", *item.requests, *item.limits}) if _differs(item, name)]
        if differs:
            shown = "; ".join(f"{name} {item.requests.get(name, 'none')} / {item.limits.get(name, 'none')}" for name in differs)
            why = "The pod is not of the QoS class Guaranteed: it gets no CPUs of its own, and is the first to go when memory is short."
            wrong.append(Finding(check, f"{scope.subject} {item.name}", FAIL, f"{shown} (requests / limits)", expected, why, "Write the same into both."))
    yield from wrong or [ok(check, scope.subject, "requests equal limits in all that the job names", expected)]


def _added(scope: Scope) -> typing.Iterator[Finding]:
    """What the training operator (v1) adds to a Worker beside a Master. [training-operator pkg/controller.v1/pytorch/initcontainer.go, 1.7 to 1.9]"""
    names = {template.path.rpartition(".")[2] for template in scope.job.templates}
    if scope.job.kind != "PyTorchJob" or "Master" not in names or not scope.template.path.endswith("Worker"):
        return
    measured, expected = "init-pytorch: CPU 50m of 100m, memory 10Mi of 20Mi", "no container whose requests are not its limits"
    why = "The operator has Workers wait for the Master in an init container of its own, and for that the pod is not of the QoS class Guaranteed."
    remedy = "Give the operator another template (--pytorch-init-container-template-file), or use a TrainJob; once it is given, waive this."
    yield Finding("job.added", scope.subject, WARN, measured, expected, why, remedy)


def _differs(item: Container, name: str) -> bool:
    if name not in item.requests or name not in item.limits:
        return True
    return quantity(item.requests[name], name) != quantity(item.limits[name], name)


def _places(scopes: typing.Sequence[Scope], world: JobSurroundings) -> typing.Iterator[Finding]:
    """Whether the nodes have what the pods ask for: names, amounts, and all pods at once."""
    groups: typing.Dict[typing.Tuple[typing.Tuple[str, int], ...], typing.List[Scope]] = {}
    for scope in scopes:
        groups.setdefault(tuple(sorted(_extended(scope.template).items())), []).append(scope)
    findings: typing.List[Finding] = []
    for amounts, mine in groups.items():
        subject = ", ".join(scope.subject if index == 0 else scope.template.path for index, scope in enumerate(mine))
        findings += _group_places(subject, dict(amounts), sum(scope.template.count for scope in mine), world, mine[0].hints)
    yield from findings
    if all(finding.status == PASS for finding in findings):
        yield from _all_places(scopes, world)


def _all_places(scopes: typing.Sequence[Scope], world: JobSurroundings) -> typing.Iterator[Finding]:
    """Pods that ask for different amounts, each of which would find its room, need the same nodes: together they may ask for more than there is."""
    wanted: typing.Counter[str] = collections.Counter()
    for scope in scopes:
        wanted.update({name: count * scope.template.count for name, count in _extended(scope.template).items()})
    for name, amount in sorted(wanted.items()):
        there = sum(node.allocatable.get(name, 0) for node in world.nodes if node.ready and not node.unschedulable)
        if there < amount:
            why = "Each kind of pod finds room by itself, and all of them must run at once: those that find none wait, and the others wait for them."
            subject, expected = f"{scopes[0].job.subject} {name}", f"{amount} for all pods together"
            yield Finding("job.resources", subject, FAIL, f"{there} on the nodes that are ready", expected, why, "Ask for less, or free or add nodes.")


def _group_places(subject: str, amounts: typing.Mapping[str, int], pods: int, world: JobSurroundings, hints: Hints) -> typing.Iterator[Finding]:
    check, known = "job.resources", {name for node in world.nodes for name in (*node.allocatable, *node.unread)}
    absent = sorted(set(amounts) - known)
    for name in absent:
        why = "No node offers this resource, so the pods would stay Pending."
        remedy = "Correct the name; kubectl describe node shows what a node has under Allocatable."
        yield Finding(check, f"{subject} {name}", FAIL, "no node has it", f"a resource of the nodes{hints.nearest(name, known)}", why, remedy)
    if absent:
        return
    fit = [node for node in world.nodes if node.ready and not node.unschedulable]
    places = sum(min((node.allocatable.get(name, 0) // count for name, count in amounts.items() if count), default=pods) for node in fit)
    shown, measured = ", ".join(f"{name}: {count}" for name, count in amounts.items()), f"room for {places} pods on {len(fit)} nodes that are ready"
    if places < pods:
        why = f"A pod needs {shown}, and all pods must run at once: those that find no room wait, and the others wait for them."
        yield Finding(check, subject, FAIL, measured, f"room for {pods} pods", why, "Ask for less, or free or add nodes.")
    else:
        yield ok(check, subject, measured, f"room for {pods} pods")


def _claims(job: Workload, scopes: typing.Sequence[Scope], world: JobSurroundings) -> typing.Iterator[Finding]:
    known = {item.name: item for item in world.claims}
    pods = sum(scope.template.count for scope in scopes)
    for name in sorted({name for scope in scopes for name in scope.template.claims}):
        subject, expected = f"{job.subject} claim {name}", "Bound, ReadWriteMany" if pods > 1 else "Bound"
        found = known.get(f"{job.namespace}/{name}")
        if found is None:
            why = "There is no PersistentVolumeClaim of this name in the job's namespace: the pods would stay Pending."
            yield Finding("job.claims", subject, FAIL, "absent", expected, why, "Create it, or correct the name.")
            continue
        measured = ", ".join((found.phase or "no phase", *found.modes))
        if pods > 1 and not {"ReadWriteMany", "ReadOnlyMany"} & set(found.modes):
            why = "Only one node can mount it, and the pods are on several."
            yield Finding("job.claims", subject, FAIL, measured, expected, why, "Use a claim with ReadWriteMany, of a storage class that can.")
        elif found.phase == "Lost":
            why = "Its volume is gone: nothing binds another one to it, and the pods would stay Pending."
            yield Finding("job.claims", subject, FAIL, measured, expected, why, f"kubectl -n {job.namespace} describe pvc {name}; restore the volume.")
        elif found.phase != "Bound":
            why = "No volume is bound to it yet. Some storage classes do so only when a pod comes (WaitForFirstConsumer)."
            yield Finding("job.claims", subject, WARN, measured, expected, why, f"kubectl -n {job.namespace} describe pvc {name}")
        else:
            yield ok("job.claims", subject, measured, expected)


# NCCL's lists of names


@dataclasses.dataclass(frozen=True)
class Choice:
    """A value of NCCL_IB_HCA or NCCL_SOCKET_IFNAME: ``^`` excludes, ``=`` wants whole names, else they are prefixes; ``:port`` stands behind a name."""

    patterns: typing.Tuple[str, ...]
    exclude: bool
    exact: bool

    @classmethod
    def of(cls, value: str) -> Choice:
        text = value.strip()
        exclude = text.startswith("^")
        exact = text[exclude:].startswith("=")
        text = text[exclude + exact :]
        return cls(tuple(name for part in text.split(",") if (name := part.partition(":")[0].strip())), exclude, exact)

    def _hits(self, pattern: str, name: str) -> bool:
        return name == pattern if self.exact else name.startswith(pattern)

    def takes(self, name: str) -> bool:
        return any(self._hits(pattern, name) for pattern in self.patterns) != self.exclude

    def unmatched(self, names: typing.Iterable[str]) -> typing.List[str]:
        """Patterns that are there for nothing."""
        names = tuple(names)
        return [] if self.exclude else [pattern for pattern in self.patterns if not any(self._hits(pattern, name) for name in names)]


def _named(names: typing.Sequence[str]) -> str:
    """Names of a list that somebody wrote, for each node and each pod again."""
    return cut(folded(names), _SHOWN)


def _integer(text: str) -> int:
    """As NCCL reads it, by strtoll with base 0: what stands before the first character that is no digit, and 0 where nothing does. A leading 0 is octal.

    What is out of range leaves its default, which is 0 of those that are read here. [src NVIDIA/nccl v2.30.7: src/misc/param.cc ncclLoadParam]
    """
    found = _NUMBER.match(text)
    if found is None:
        return 0
    sign, hexadecimal, octal, decimal = found.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal or "0")
    value = -value if sign == "-" else value
    return value if -(1 << 63) <= value < 1 << 63 else 0


def _is_gpu(name: str) -> bool:
    return name.endswith("/gpu") or "/mig-" in name


def _gpus(container: Container) -> bool:
    return any(_is_gpu(name) and quantity(amount, name) > 0 for name, amount in container.limits.items())


def _extended(template: PodTemplate) -> typing.Dict[str, int]:
    found: typing.Counter[str] = collections.Counter()
    for container in template.containers:
        found.update({name: int(quantity(amount, name)) for name, amount in container.limits.items() if "/" in name})
    return dict(found)
