# SPDX-License-Identifier: GPL-3.0-or-later

"""The operators of training jobs, for real: Kubeflow's training operator and Trainer, JobSet and Kueue, as processes of
the host, with their own webhooks.

They were made for pods, so what a pod would have is put where they look for it: certificates, by a mount that they
alone see. The training operator's init container, which asks the cluster's DNS for the master's address, is one that
waits for nothing: the lab has no such DNS.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import pathlib
import shutil
import socket
import typing

import kubernetes.dynamic
import kubernetes.dynamic.exceptions
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dev.steps import StepError, step

from . import definitions, objects
from .build import gotools
from .build.images import POD_IMAGE
from .pki import Pki, host_name, pem, subject_of, unsigned
from .processes import Processes, wait_until

#: of their webhooks, each its own, since all processes of the lab share one network namespace
PORTS = {"training-operator": 9543, "kueue": 9643, "jobset": 9743, "trainer": 9843}
READY_SECONDS = 120
CERTIFICATES = "k8s-webhook-server/serving-certs"
_MOUNTED = ("unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh")


@dataclasses.dataclass(frozen=True)
class Operator:
    """One of them: its sources, and how it is started.

    :ivar module: folder of lab/go that pins it, and its Go module
    :ivar definitions: of its kinds, a pattern of paths in its sources
    :ivar webhooks: path of their configurations in its sources
    :ivar namespace: in which it would be a pod
    :ivar config: of its file config.yaml
    :ivar place: folder of the host in whose place it sees its own: not all of them can be told where certificates are
    """

    module: tuple[str, str]
    definitions: str
    webhooks: str
    namespace: str
    arguments: tuple[str, ...]
    config: typing.Any
    place: str = "/tmp"

    @functools.cached_property
    def sources(self) -> pathlib.Path:
        return gotools.module_folder(*self.module)


def _config(name: str, version: str, **more: typing.Any) -> objects.Object:
    """Of an operator that reads its settings from a file: nothing but webhooks is served, and certificates are
    given."""
    return {
        "apiVersion": version,
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": PORTS[name], "host": ""},
        "leaderElection": {"leaderElect": False},
        **more,
    }


OPERATORS: typing.Mapping[str, Operator] = {
    "training-operator": Operator(
        module=("training-operator", "github.com/kubeflow/training-operator"),
        definitions="manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
        webhooks="manifests/base/webhook/manifests.yaml",
        namespace="kubeflow",
        arguments=(
            *(
                f"--webhook-server-port={PORTS['training-operator']}",
                "--enable-scheme=pytorchjob",
                "--metrics-bind-address=0",
            ),
            *("--health-probe-bind-address=0", "--pytorch-init-container-template-file=/tmp/config.yaml"),
        ),
        config=[{"name": "init-pytorch", "image": POD_IMAGE, "command": ["true"]}],
    ),
    "kueue": Operator(
        module=("kueue", "sigs.k8s.io/kueue"),
        definitions="config/components/crd/bases/*.yaml",
        webhooks="config/components/webhook/manifests.yaml",
        namespace="kueue-system",
        arguments=("--config=/etc/config.yaml", "--feature-gates=VisibilityOnDemand=false"),
        config=_config(
            "kueue",
            "config.kueue.x-k8s.io/v1beta2",
            namespace="kueue-system",
            webhook={"port": PORTS["kueue"], "certDir": f"/etc/{CERTIFICATES}"},
            internalCertManagement={"enable": False},
            integrations={"frameworks": ["kubeflow.org/pytorchjob", "trainer.kubeflow.org/trainjob"]},
        ),
        place="/etc",
    ),
    "jobset": Operator(
        module=("trainer", "sigs.k8s.io/jobset"),
        definitions="config/components/crd/bases/*.yaml",
        webhooks="config/components/webhook/manifests.yaml",
        namespace="jobset-system",
        arguments=("--config=/tmp/config.yaml",),
        config=_config("jobset", "config.jobset.x-k8s.io/v1alpha1", internalCertManagement={"enable": False}),
    ),
    "trainer": Operator(
        module=("trainer", "github.com/kubeflow/trainer/v2"),
        definitions="manifests/base/crds/trainer.kubeflow.org_*.yaml",
        webhooks="manifests/base/webhook/manifests.yaml",
        namespace="kubeflow-system",
        arguments=("--config=/tmp/config.yaml",),
        config=_config("trainer", "config.trainer.kubeflow.org/v1alpha1", certManagement={"enable": False}),
    ),
}
#: kinds of objects that are to go while their operators are there to let them, in the order of use
EMPTIED = (
    "PyTorchJob",
    "TrainJob",
    "TrainingRuntime",
    "JobSet",
    "Workload",
    "LocalQueue",
    "ClusterQueue",
    "ResourceFlavor",
)


def build() -> None:
    """Compile them, outside of the lab's network namespace and best before its guests run."""
    for name, operator in OPERATORS.items():
        gotools.binary(name)
        gotools.module_folder(*operator.module)


def start(authority: Pki, folder: pathlib.Path, processes: Processes) -> None:
    """Serve their kinds, and start them; inside of the lab's network namespace.

    :param folder: of the lab
    :raises StepError: one of them does not serve in time
    """
    client = objects.client(authority.path("admin.kubeconfig"))
    with step("serve the kinds of the operators of training jobs"):
        served = _definitions()
        definitions.apply(client, served)
        namespaces = [operator.namespace for operator in OPERATORS.values()]
        objects.apply(
            client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces]
        )
    with step(f"start {', '.join(OPERATORS)}"):
        # with new certificates; those that run have the old ones
        processes.stop(*OPERATORS)
        certificates = _certificates()
        encoded = {name: base64.b64encode(content).decode() for name, content in certificates.items()}
        secret = {"name": "training-operator-webhook-cert", "namespace": OPERATORS["training-operator"].namespace}
        objects.apply(
            client,
            [
                {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": encoded},
                *_webhooks(served, encoded["ca.crt"]),
            ],
        )
        for name, operator in OPERATORS.items():
            room, place = folder / "operators" / name, operator.place
            _furnish(room, name, authority, certificates)
            environment = {"KUBECONFIG": f"{place}/kubeconfig", "MY_POD_NAMESPACE": operator.namespace}
            processes.start(name, [*_MOUNTED, room, place, f"{place}/program", *operator.arguments], environment)
        for name in OPERATORS:
            if not wait_until(functools.partial(_serves, processes, name), READY_SECONDS):
                raise StepError(
                    f"{name} does not serve its webhooks; its last output:\n{processes.log(name)}",
                    f"its log is {processes.logs / name}.log",
                )


def _furnish(room: pathlib.Path, name: str, authority: Pki, certificates: typing.Mapping[str, bytes]) -> None:
    """What an operator needs, in the folder that it sees in place of one of the host's."""
    for folder in (CERTIFICATES, "kueue/metrics/certs"):
        (room / folder).mkdir(parents=True, exist_ok=True)
        for file, content in certificates.items():
            (room / folder / file).write_bytes(content)
    shutil.copy2(gotools.binary(name), room / "program")
    shutil.copy2(authority.path("admin.kubeconfig"), room / "kubeconfig")
    (room / "config.yaml").write_text(yaml.safe_dump(OPERATORS[name].config))


def _serves(processes: Processes, name: str) -> bool:
    """:raises StepError: it has ended"""
    processes.check(name)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORTS[name]), timeout=1):
        return True
    return False


def stop(authority: Pki, folder: pathlib.Path, processes: Processes) -> None:
    """Take back their kinds with all objects of these, while they are there to let them go; then end them."""
    client = objects.client(authority.path("admin.kubeconfig"))
    with step(f"take back {', '.join(OPERATORS)}"):
        kinds = {item["spec"]["names"]["kind"]: item for item in _definitions()}
        for kind in EMPTIED:
            _empty(client, kinds[kind])
        for resource, names in (
            (
                _resource(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition"),
                [item["metadata"]["name"] for item in kinds.values()],
            ),
            *(
                (_resource(client, item["apiVersion"], item["kind"]), [item["metadata"]["name"]])
                for item in _webhooks(kinds.values(), "")
            ),
            (_resource(client, "v1", "Namespace"), [operator.namespace for operator in OPERATORS.values()]),
        ):
            objects.remove(resource, names)
        processes.stop(*OPERATORS)
        shutil.rmtree(folder / "operators", ignore_errors=True)


def _resource(client: kubernetes.dynamic.DynamicClient, version: str, kind: str) -> typing.Any:
    return client.resources.get(api_version=version, kind=kind)


def _empty(client: kubernetes.dynamic.DynamicClient, definition: objects.Object) -> None:
    """Delete all objects of a kind, if there is such a kind."""
    with contextlib.suppress(kubernetes.dynamic.exceptions.ResourceNotFoundError):
        objects.remove(_resource(client, definitions.stored(definition), definition["spec"]["names"]["kind"]))


def _definitions() -> list[objects.Object]:
    return definitions.read(
        path for operator in OPERATORS.values() for path in sorted(operator.sources.glob(operator.definitions))
    )


def _webhooks(served: typing.Iterable[objects.Object], authority: str) -> list[objects.Object]:
    """Their own webhooks for their own kinds, called at the host instead of at a service.

    :param served: definitions of these kinds
    :param authority: certificate of the authority, in base64
    """
    kinds = {(item["spec"]["group"], item["spec"]["names"]["plural"]) for item in served}
    made = []
    for name, operator in OPERATORS.items():
        for item in objects.read(operator.sources / operator.webhooks):
            # the name by which the training operator looks for its own
            item["metadata"] = {
                "name": (
                    f"{item['metadata']['name']}.{name}"
                    if name != "training-operator"
                    else "validator.training-operator.kubeflow.org"
                )
            }
            item["webhooks"] = [hook for hook in item["webhooks"] if _about(hook) <= kinds]
            for hook in item["webhooks"]:
                path_there = hook["clientConfig"]["service"]["path"]
                hook["clientConfig"] = {"url": f"https://127.0.0.1:{PORTS[name]}{path_there}", "caBundle": authority}
            made.append(item)
    return made


def _about(hook: objects.Object) -> set[tuple[str, str]]:
    """Groups and names of the kinds that it is called for."""
    return {
        (group, kind.partition("/")[0])
        for rule in hook["rules"]
        for group in rule["apiGroups"]
        for kind in rule["resources"]
    }


def _certificates() -> dict[str, bytes]:
    """An authority and a server's certificate, in the form in which the training operator keeps its own (RSA, PKCS
    #1)."""
    keys = {name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for name in ("ca", "tls")}
    names = {"ca": "training-operator-ca", "tls": f"training-operator.{OPERATORS['training-operator'].namespace}.svc"}
    made = {}
    for name, key in keys.items():
        builder = (
            unsigned(subject_of(names[name]), subject_of(names["ca"]), key.public_key())
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([host_name(names[name]), host_name("127.0.0.1")]), critical=False
            )
        )
        made[f"{name}.crt"] = builder.sign(keys["ca"], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        made[f"{name}.key"] = pem(key)
    return made
