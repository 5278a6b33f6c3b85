# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether Pod Security admits the pods of a job in their namespace. Check id: ``job.admission``.

Rules: Kubernetes' Pod Security Standards (baseline), k8s.io/pod-security-admission v0.34 policy; OpenShift's
SecurityContextConstraints v1.
"""

from __future__ import annotations

import typing

from ..._model.job.job import PodTemplate
from ..._model.job.surroundings import ENFORCE as LABEL
from ..._model.run.findings import FAIL, WARN, Finding, build_pass

#: what a job with IPC_LOCK needs
NEEDS_PRIVILEGED = (
    f"{LABEL}=privileged for jobs with IPC_LOCK, and on OpenShift an SCC with allowedCapabilities [IPC_LOCK] for their"
    " service account"
)
#: capabilities that a container may add at the level baseline
_BASELINE = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split(),
)


def beyond_baseline(template: PodTemplate) -> tuple[str, ...]:
    """Return a description of each property of a pod that the Pod Security level baseline refuses: namespaces and ports
    of the host, hostPath volumes, privileged containers and added capabilities.
    """
    of_host = (
        ("hostNetwork", template.host_network),
        ("hostIPC", template.host_ipc),
        ("hostPID", template.host_pid),
    )
    found = [name for name, used in of_host if used]
    found += [f"hostPath {path}" for path in template.host_paths]
    for container in (*template.init_containers, *template.containers):
        found += [f"container {container.name}: privileged"] if container.privileged else []
        found += [f"container {container.name}: hostPort {port}" for port in container.host_ports]
        found += [
            f"container {container.name}: capability {name}" for name in container.capabilities if name not in _BASELINE
        ]
    return tuple(dict.fromkeys(found))


def describe_constraints(template: PodTemplate) -> str:
    """Return as text which permissions the SecurityContextConstraints of OpenShift must grant to the service account of
    the pod.
    """
    containers = (*template.init_containers, *template.containers)
    added = sorted({name for container in containers for name in container.capabilities})
    needs = [f"allowedCapabilities [{', '.join(added)}]"] if added else []
    needs += ["allowHostDirVolumePlugin"] if template.host_paths else []
    needs += ["allowHostNetwork"] if template.host_network else []
    needs += ["allowHostIPC"] if template.host_ipc else []
    needs += ["allowHostPID"] if template.host_pid else []
    needs += ["allowHostPorts"] if any(container.host_ports for container in containers) else []
    needs += ["allowPrivilegedContainer"] if any(container.privileged for container in containers) else []
    return f"an SCC with {', '.join(needs)} for service account {template.account or 'default'}"


def check(template: PodTemplate, subject: str, enforced: typing.Optional[str], namespace: str = "NAMESPACE") -> Finding:
    """Compare the privileges that the pods of a job need (capabilities, hostPath, host network) with the Pod Security
    level that their namespace enforces.

    :param template: pod template of the job
    :param subject: subject of the finding: the job and the pod template
    :param enforced: level that the label of the namespace enforces. Empty if the namespace has no such label, so that
        the default of the cluster applies. None if the label was not read
    :param namespace: namespace of the job
    """
    beyond = beyond_baseline(template)
    if not beyond:
        seen, expected = (
            "no capability, hostPath or host network beyond the level baseline",
            f"{LABEL}=baseline or privileged",
        )
        if enforced != "restricted":
            return build_pass("job.admission", subject, seen, expected)
        why = (
            "The namespace enforces the level restricted. This check does not verify the further requirements of that"
            " level: runAsNonRoot, seccompProfile and dropped capabilities."
        )
        return Finding(
            "job.admission",
            subject,
            WARN,
            seen,
            expected,
            why,
            "Run kubectl apply --dry-run=server -f FILE with the job: the API server warns of each missing setting.",
        )
    needs = "; ".join(beyond)
    expected = f"{LABEL}=privileged; on OpenShift {describe_constraints(template)}"
    if enforced in ("baseline", "restricted"):
        why = (
            f"The namespace enforces the level {enforced}, but the pods need {needs}. The API server refuses the pods."
        )
        remedy = (
            "Ask an admin of the cluster to permit the level privileged: set enforce: privileged and a reason in"
            " network.pod_security of the fabric and run stage network, or run kubectl label namespace"
            f" {namespace} {LABEL}=privileged --overwrite. Every user who can create pods in the namespace can then"
            " become root on the nodes."
        )
        if any("IPC_LOCK" in need for need in beyond):
            remedy += (
                " Or set rdma_cluster.host.memlock, which raises the limit of locked memory on the nodes, and run the"
                " job without IPC_LOCK."
            )
        return Finding("job.admission", subject, FAIL, f"{LABEL}={enforced}", expected, why, remedy)
    return build_pass("job.admission", subject, needs, expected)
