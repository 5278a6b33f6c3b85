# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the NVLink between the nodes of a job (GB200, GB300): the ComputeDomain of its pods, which must be ready on
each of their nodes, and the cliques of these nodes. Check id: ``job.compute_domain``.
"""

from __future__ import annotations

import collections
import typing

from ...._model.base.phrases import count_of
from ...._model.base.text import join_first
from ...._model.job.job import JobWorkload
from ...._model.job.surroundings import JobSurroundings
from ...._model.kubernetes.compute_domains import CLIQUE_LABEL, READY, ClaimingPod, ComputeDomain, joins_machines
from ...._model.kubernetes.device_claims import DeviceClaims, PodClaim
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..scope import LintedTemplate, is_gpu

_CHECK, _EXPECTED = "job.compute_domain", "a ComputeDomain that is Ready on the node of each pod, in one clique"
_LOOK = (
    "Run kubectl get computedomains -A -o yaml to see the state of each node, and kubectl get pods -A -o wide |"
    " grep computedomain to find the daemon of a node that is not ready. Correct the error in its log (kubectl"
    " logs)."
)
#: nodes in one text
_SHOWN = 5


def check_compute_domains(scopes: typing.Sequence[LintedTemplate], known: DeviceClaims) -> typing.Iterator[Finding]:
    """Check each ComputeDomain whose channels the pods of a job claim: its ``numNodes`` equals the number of pods, it
    is ready, and its nodes are in one NVLink clique. A job without such a claim gets one finding. Nothing is yielded
    without templates.

    :param scopes: pod templates of one job
    :param known: ResourceClaims and DeviceClasses from the file and from the cluster
    """
    if not scopes:
        return
    job, surroundings = scopes[0].job, scopes[0].surroundings
    domains = {
        item.name.partition("/")[0] + "/" + item.template: item
        for item in (surroundings and surroundings.compute_domains) or ()
    }
    found = False
    for template in dict.fromkeys(claim.of for item in job.templates for claim in item.device_claims if claim.template):
        domain = domains.get(f"{job.namespace}/{template}")
        if domain is None and not _is_channel(job, template, known):
            continue
        found = True
        wanted = domain.wanted if domain is not None else _find_wanted(job, template, known)
        wrong = list(_check_number(job, template, wanted))
        if surroundings is not None:
            wrong += _check_domain(job, template, domain, surroundings)
        measured = f"ComputeDomain of {template}, {count_of(_count_pods(job, template), 'pod')}"
        yield from wrong or [build_pass(_CHECK, f"{job.subject} {template}", measured, _EXPECTED)]
    if not found:
        yield _check_unused(scopes, surroundings)


def _is_channel(job: JobWorkload, template: str, known: DeviceClaims) -> bool:
    """Return whether a ResourceClaimTemplate provides a channel of NVLink between nodes.

    :param template: name of the ResourceClaimTemplate
    :param known: ResourceClaims and DeviceClasses from the file and from the cluster
    """
    claim = known.find(job.namespace, PodClaim(template, template, True))
    return claim is not None and any(
        known.use_of(name) == "channel" for request in claim.requests for name in request.classes
    )


def _find_wanted(job: JobWorkload, template: str, known: DeviceClaims) -> int:
    claim = known.find(job.namespace, PodClaim(template, template, True))
    return claim.nodes if claim is not None else 0


def _count_pods(job: JobWorkload, template: str) -> int:
    """Return the number of pods of a job that get a claim from a ResourceClaimTemplate.

    :param template: name of the ResourceClaimTemplate
    """
    return sum(item.count for item in job.templates if any(one.of == template for one in item.device_claims))


def _check_number(job: JobWorkload, template: str, wanted: int) -> typing.Iterator[Finding]:
    """Compare ``numNodes`` of a ComputeDomain with the number of pods that claim its channels.

    Yield a failed finding if ``numNodes`` is larger, a warning if it is smaller, and nothing if it is equal or 0. A
    node has one default channel, so each of these pods runs on another node.

    :param template: name of the ResourceClaimTemplate
    :param wanted: ``numNodes`` of the ComputeDomain; 0 if it is not set
    """
    pods = _count_pods(job, template)
    if not wanted or wanted == pods:
        return
    if wanted > pods:
        why = (
            f"The ComputeDomain waits for {count_of(wanted, 'node')}, and each pod with a channel is on its own node."
            " The domain never becomes Ready. With IMEXDaemonsWithDNSNames off, its pods do not start."
        )
    else:
        why = (
            f"The ComputeDomain is Ready with {count_of(wanted, 'node')}, so Ready does not mean that all nodes of the"
            " job share memory over NVLink. With IMEXDaemonsWithDNSNames off, NVIDIA's driver supports no further"
            " nodes."
        )
    yield Finding(
        _CHECK,
        f"{job.subject} {template}",
        FAIL if wanted > pods else WARN,
        f"numNodes {wanted}, {count_of(pods, 'pod')} with a channel",
        f"numNodes {pods} or 0",
        why,
        f"Set numNodes of the ComputeDomain to {pods}. Newer drivers recommend 0.",
    )


def _check_domain(
    job: JobWorkload, template: str, domain: typing.Optional[ComputeDomain], surroundings: JobSurroundings
) -> typing.Iterator[Finding]:
    """Check that a ComputeDomain is ready on the nodes on which the pods of the job run.

    Before the pods run, a ComputeDomain has no nodes, so only its existence is checked.

    :param template: name of the ResourceClaimTemplate of the ComputeDomain
    :param domain: ComputeDomain that creates this ResourceClaimTemplate; None if it was not found
    :param surroundings: state of the cluster
    """
    subject = f"{job.subject} {template}"
    if domain is None:
        absent = surroundings.compute_domains is not None
        why = (
            "No ComputeDomain creates this ResourceClaimTemplate, so no driver connects the nodes over NVLink."
            if absent
            else "The ComputeDomains could not be read: the API server does not serve resource.nvidia.com/v1beta1, or"
            " does not allow the user to list computedomains."
        )
        remedy = (
            "Create a ComputeDomain with this name in channel.resourceClaimTemplate, and remove the template."
            if absent
            else "Give the user of the kubeconfig the rights that docs/job.md lists."
        )
        yield Finding(
            _CHECK,
            subject,
            UNKNOWN,
            "no ComputeDomain" if absent else "ComputeDomains not read",
            _EXPECTED,
            why,
            remedy,
        )
        return
    pods = [pod for pod in surroundings.claiming_pods if template in pod.templates]
    if not pods:
        return
    places = {pod.node for pod in pods}
    members = {item.name: item for item in domain.nodes}
    missing = sorted(places - members.keys())
    late = sorted(name for name in places & members.keys() if not members[name].ready)
    measured = (
        f"{domain.status or 'no status'}, {count_of(len(members), 'node')} for {count_of(len(pods), 'pod')} on"
        f" {count_of(len(places), 'node')}"
    )
    if not members and domain.status == READY:
        why = (
            "The ComputeDomain lists no node. This is so if the host manages IMEX: Ready then does not mean that the"
            " daemons of the nodes are connected."
        )
        yield Finding(
            _CHECK,
            subject,
            UNKNOWN,
            measured,
            _EXPECTED,
            why,
            "Run nvidia-imex-ctl -N on a node of the job. If it shows all nodes of the job as connected, waive this"
            " finding.",
        )
        return
    if missing or late or domain.status != READY:
        parts = [f"no IMEX daemon on {join_first(missing, _SHOWN)}"] if missing else []
        parts += [f"the IMEX daemon is not ready on {join_first(late, _SHOWN)}"] if late else []
        parts += [] if parts else ["the driver does not report it as Ready"]
        why = (
            f"The GPUs of these nodes cannot share memory over NVLink: {'; '.join(parts)}. NCCL fails, or sends over"
            " the network instead."
        )
        yield Finding(_CHECK, subject, FAIL, measured, _EXPECTED, why, _LOOK)
        return
    yield from _check_cliques(subject, domain, surroundings, pods)


def _check_cliques(
    subject: str, domain: ComputeDomain, surroundings: JobSurroundings, pods: typing.Sequence[ClaimingPod]
) -> typing.Iterator[Finding]:
    """Check that all nodes on which the pods run are in one NVLink clique. Yield a failed finding for nodes without a
    clique, and warnings if there are several cliques, or if the status of the ComputeDomain contradicts the clique
    label of a node.

    :param subject: subject of the finding
    :param domain: ComputeDomain whose channels the pods claim
    :param surroundings: state of the cluster in which the job would run
    :param pods: running pods of the job that claim a channel
    """
    labels = {node.name: node.labels.get(CLIQUE_LABEL, "") for node in surroundings.nodes}
    cliques: dict[str, list[str]] = {}
    contrary: list[str] = []
    used = {pod.node for pod in pods}
    for item in domain.nodes:
        if item.name in used:
            cliques.setdefault(item.clique, []).append(item.name)
            label = labels.get(item.name, "")
            if label and item.clique and label != item.clique:
                contrary.append(f"{item.name}: {item.clique} in the ComputeDomain, {label} in the label")
    if "" in cliques:
        measured = f"no clique on {join_first(sorted(cliques['']), _SHOWN)}"
        why = "The driver found no NVLink to other machines on these nodes. Their GPUs send over the network."
        remedy = (
            "Run nvidia-smi --query-gpu=fabric.state,fabric.status,fabric.clusterUuid,fabric.cliqueId --format=csv on"
            " these nodes, and check the NVLink partitions with NMX-C."
        )
        yield Finding(_CHECK, subject, FAIL, measured, _EXPECTED, why, remedy)
    if len(cliques.keys() - {""}) > 1:
        measured = join_first(
            [f"{name} on {join_first(sorted(on), _SHOWN)}" for name, on in sorted(cliques.items()) if name]
        )
        why = "GPUs of different cliques have no NVLink between them. The job sends over the network there."
        remedy = (
            f"Select the nodes of the job by the label {CLIQUE_LABEL}. If the job is larger than a clique, waive this"
            " finding."
        )
        yield Finding(_CHECK, subject, WARN, measured, _EXPECTED, why, remedy)
    if contrary:
        why = f"The label {CLIQUE_LABEL} is wrong or old, so a job that selects nodes by it gets nodes without NVLink."
        remedy = (
            "Restart GPU Feature Discovery on these nodes: delete its pods (kubectl -n gpu-operator get pods -o"
            " wide -l app=gpu-feature-discovery). The label must then equal nvidia-smi"
            " --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv on the node."
        )
        yield Finding(_CHECK, subject, WARN, join_first(contrary, _SHOWN), _EXPECTED, why, remedy)


def _check_unused(scopes: typing.Sequence[LintedTemplate], surroundings: typing.Optional[JobSurroundings]) -> Finding:
    """Return a warning about a job of several pods with GPUs that claims no channel, if each node with GPUs shares an
    NVLink domain with another node. Otherwise the finding passes.

    :param scopes: pod templates of one job
    :param surroundings: state of the cluster; None if no cluster was queried
    """
    subject, none = scopes[0].job.subject, "no claim of a ComputeDomain"
    pods = sum(scope.template.count for scope in scopes if scope.computes)
    nodes = [
        node
        for node in (surroundings.nodes if surroundings is not None else ())
        if any(is_gpu(name) and count for name, count in node.allocatable.items())
    ]
    cliques = [node.labels.get(CLIQUE_LABEL, "") for node in nodes]
    joined = bool(cliques) and all(
        joins_machines(clique) and count > 1 for clique, count in collections.Counter(cliques).items()
    )
    expected = "a ComputeDomain where NVLink joins the nodes"
    if not joined or pods < 2:
        return build_pass(_CHECK, subject, none, expected)
    why = (
        f"NVLink joins the {len(nodes)} nodes with GPUs of this cluster ({count_of(len(set(cliques)), 'clique')})."
        " Without a channel of IMEX, the pods cannot use it and send over the network."
    )
    remedy = (
        "Create a ComputeDomain, and add its ResourceClaimTemplate to resourceClaims of the pods and to"
        " resources.claims of their containers."
    )
    return Finding(_CHECK, subject, WARN, none, expected, why, remedy)
