# SPDX-License-Identifier: GPL-3.0-or-later

"""The control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, native, in the lab's network
namespace."""

from __future__ import annotations

import pathlib
import ssl
import typing
import urllib.error
import urllib.request

from dev.steps import StepError, step

from . import objects
from .build import gotools
from .description import Description
from .pki import Pki
from .processes import Processes, wait_until

API_PORT = 6443
WEBHOOK_PORT = 9443
READY_SECONDS = 300
HERE = pathlib.Path(__file__).parent
AUDIT_POLICY = pathlib.Path(__file__).parent / "manifests" / "audit-policy.yaml"
#: folder of lab/go and Go module whose sources bring custom resource definitions
OPERATOR = (gotools.CLUSTER, gotools.OPERATOR)
WHEREABOUTS = (gotools.CLUSTER, "github.com/k8snetworkplumbingwg/whereabouts")
ATTACHMENTS = (gotools.CLUSTER, "github.com/k8snetworkplumbingwg/network-attachment-definition-client")


def pki(description: Description, folder: pathlib.Path) -> Pki:
    """All identities of the lab but the workers' own."""
    network = description.network
    authority = Pki(folder / "pki", f"https://{network.address}:{API_PORT}")
    service = str(description.service_address)
    names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
    authority.identity("kube-apiserver", "kube-apiserver", hosts=("127.0.0.1", network.address, service, *names))
    authority.identity("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
    authority.identity("admin", "admin", "system:masters")
    authority.identity("kube-controller-manager", "system:kube-controller-manager")
    authority.identity("kube-scheduler", "system:kube-scheduler")
    authority.identity("sriov-network-webhook", "lab:sriov-network-webhook", hosts=("127.0.0.1",))
    authority.identity("multus", "lab:multus")
    authority.identity("whereabouts", "lab:whereabouts")
    return authority


def audit_log(folder: pathlib.Path) -> pathlib.Path:
    """What users changed and ran in pods, one event in JSON a line, as manifests/audit-policy.yaml says."""
    return folder / "audit.log"


def start_api(
    description: Description,
    folder: pathlib.Path,
    processes: Processes,
    authority: Pki,
    more: typing.Sequence[str] = (),
) -> None:
    """Start etcd and the API server, and wait until the latter serves.

    :param more: options of the API server, of which the last one of a name counts
    """
    path = authority.path
    processes.start(
        "etcd",
        [
            gotools.binary("etcd"),
            *(
                "--data-dir",
                folder / "etcd",
                "--listen-client-urls",
                "http://127.0.0.1:2379",
                "--advertise-client-urls",
                "http://127.0.0.1:2379",
            ),
            *("--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380"),
            *("--initial-cluster", "default=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level", "warn"),
        ],
    )
    processes.start(
        "kube-apiserver",
        [
            gotools.binary("kube-apiserver"),
            *(
                "--etcd-servers=http://127.0.0.1:2379",
                f"--secure-port={API_PORT}",
                f"--advertise-address={description.network.address}",
            ),
            *(
                f"--service-cluster-ip-range={description.network.services}",
                "--authorization-mode=Node,RBAC",
                "--allow-privileged=true",
            ),
            *(
                "--enable-admission-plugins=NodeRestriction",
                "--profiling=false",
                "--service-account-issuer=https://kubernetes.default.svc",
            ),
            *(
                f"--client-ca-file={path('ca.crt')}",
                f"--tls-cert-file={path('kube-apiserver.crt')}",
                f"--tls-private-key-file={path('kube-apiserver.key')}",
            ),
            *(f"--service-account-key-file={path('sa.pub')}", f"--service-account-signing-key-file={path('sa.key')}"),
            *(
                f"--kubelet-client-certificate={path('kubelet-client.crt')}",
                f"--kubelet-client-key={path('kubelet-client.key')}",
            ),
            *(f"--kubelet-certificate-authority={path('ca.crt')}", "--kubelet-preferred-address-types=InternalIP"),
            *(
                f"--audit-policy-file={AUDIT_POLICY}",
                f"--audit-log-path={audit_log(folder)}",
                "--audit-log-maxsize=50",
                "--audit-log-maxbackup=1",
            ),
            *more,
        ],
    )
    wait_ready(description, processes, authority)


def wait_ready(description: Description, processes: Processes, authority: Pki) -> None:
    """:raises StepError: the API server ended, or does not serve in time"""

    def served() -> bool:
        processes.check("etcd", "kube-apiserver")
        return ready(description, authority)

    if not wait_until(served, READY_SECONDS):
        raise StepError(
            f"the API server is not ready after {READY_SECONDS} s; its last output:\n{processes.log('kube-apiserver')}",
            "is the machine busy with something else? 'make lab' can be run again",
        )


def ready(description: Description, authority: Pki) -> bool:
    """Whether /readyz says ok."""
    context = ssl.create_default_context(cafile=str(authority.path("ca.crt")))
    context.load_cert_chain(authority.path("admin.crt"), authority.path("admin.key"))
    try:
        with urllib.request.urlopen(f"{authority.server}/readyz", timeout=2, context=context) as answer:
            return bool(answer.read() == b"ok")
    except (urllib.error.URLError, OSError):
        return False


CONTROLLERS = ("kube-controller-manager", "kube-scheduler")


def start_controllers(processes: Processes, authority: Pki, wanted: typing.Container[str] = CONTROLLERS) -> None:
    """Start the controller manager and the scheduler; both wait for the API server by themselves."""
    common = ("--leader-elect=false", "--bind-address=127.0.0.1", "--profiling=false")
    for name, own in (
        (
            "kube-controller-manager",
            (
                *("--use-service-account-credentials", f"--root-ca-file={authority.path('ca.crt')}"),
                *(f"--service-account-private-key-file={authority.path('sa.key')}", "--allocate-node-cidrs=false"),
            ),
        ),
        ("kube-scheduler", ("--kube-api-qps=1000", "--kube-api-burst=2000")),
    ):
        if name not in wanted:
            continue
        config = authority.path(f"{name}.kubeconfig")
        flags = (
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
        )
        processes.start(name, [gotools.binary(name), *flags, *common, *own])


def start_webhook(description: Description, processes: Processes, authority: Pki) -> None:
    """Start the SR-IOV operator's real admission webhook; it ends while the operator's configuration is not there, so
    it is started again until it is."""
    processes.start(
        "sriov-network-webhook",
        [
            *(
                "python3",
                HERE / "again.py",
                gotools.binary("sriov-network-webhook"),
                "start",
                "--port",
                str(WEBHOOK_PORT),
            ),
            *(
                "--tls-cert-file",
                authority.path("sriov-network-webhook.crt"),
                "--tls-private-key-file",
                authority.path("sriov-network-webhook.key"),
            ),
        ],
        env={
            "KUBECONFIG": str(authority.path("sriov-network-webhook.kubeconfig")),
            "NAMESPACE": description.operator_namespace,
            "CLUSTER_TYPE": "kubernetes",
            "RESOURCE_PREFIX": "openshift.io",
        },
    )


def apply_base(description: Description, authority: Pki) -> None:
    """The operators' own custom resource definitions, and what the lab itself needs in the API server."""
    client = objects.client(authority.path("admin.kubeconfig"))
    operator, whereabouts, attachments = (
        gotools.module_folder(*module) for module in (OPERATOR, WHEREABOUTS, ATTACHMENTS)
    )
    with step("apply the operators' custom resource definitions"):
        for folder in (operator / "config/crd/bases", whereabouts / "doc/crds"):
            for path in sorted(folder.glob("*.yaml")):
                objects.apply(
                    client, [item for item in objects.read(path) if item["kind"] == "CustomResourceDefinition"]
                )
        objects.apply(client, objects.read(attachments / "artifacts/networks-crd.yaml"))
        values: dict[str, str] = {
            "WEBHOOK": f"https://127.0.0.1:{WEBHOOK_PORT}",
            "CA": objects.encoded(authority.path("ca.crt")),
        }
        objects.apply(client, objects.read(HERE / "manifests/base.yaml", values))
