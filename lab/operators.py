# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operators of training jobs, for real: Kubeflow's training operator and Kueue, as processes of the host, with their own webhooks.

Both were made for pods, so what a pod would have is put where they look for it: certificates, by a mount that they alone see. The training operator's
init container, which asks the cluster's DNS for the master's address, is one that waits for nothing: the lab has no such DNS.
"""

from __future__ import annotations

import base64
import contextlib
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

from . import definitions, objects
from .build import gotools
from .build.images import POD_IMAGE
from .console import LabError, step
from .pki import Pki, host_name, pem, subject_of, unsigned
from .processes import Processes, wait_until

TOOLS = ("training-operator", "kueue")
TRAINING, KUEUE = ("training-operator", "github.com/kubeflow/training-operator"), ("kueue", "sigs.k8s.io/kueue")
#: each with its own port for webhooks, since all processes of the lab share one network namespace
PORTS = {"training-operator": 9543, "kueue": 9643}
#: folders of the host in whose place each sees its own: where it looks for certificates cannot be chosen
PLACES = {"training-operator": "/tmp", "kueue": "/etc"}
NAMESPACES = {"training-operator": "kubeflow", "kueue": "kueue-system"}
READY_SECONDS = 120
#: which groups' webhooks are served: those of kinds that the lab has
GROUPS = {"kubeflow.org", "kueue.x-k8s.io"}
CERTIFICATES = "k8s-webhook-server/serving-certs"
_MOUNTED = ("unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh")
INIT_CONTAINER = "- {name: init-pytorch, image: {{.InitContainerImage}}, command: ['true']}\n"


def build() -> None:
    """Compile them, outside of the lab's network namespace and best before its guests run."""
    for name in TOOLS:
        gotools.binary(name)
    for module in (TRAINING, KUEUE):
        gotools.module_folder(*module)


def start(authority: Pki, folder: pathlib.Path, processes: Processes) -> None:
    """Serve their kinds, and start both; inside of the lab's network namespace.

    :param folder: of the lab
    :raises LabError: one of them does not serve in time
    """
    client = objects.client(authority.path("admin.kubeconfig"))
    with step("serve the kinds of the training operator and Kueue"):
        definitions.apply(client, _definitions())
        objects.apply(client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES.values()])
    with step("start the training operator and Kueue"):
        # with new certificates; those that run have the old ones
        processes.stop(*TOOLS)
        certificates = _certificates()
        encoded = {name: base64.b64encode(content).decode() for name, content in certificates.items()}
        secret = {"name": "training-operator-webhook-cert", "namespace": NAMESPACES["training-operator"]}
        objects.apply(client, [{"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": encoded}, *_webhooks(encoded["ca.crt"])])
        for name, arguments in _arguments().items():
            room = folder / "operators" / name
            _furnish(room, name, authority, certificates)
            environment = {"KUBECONFIG": f"{PLACES[name]}/kubeconfig", "MY_POD_NAMESPACE": NAMESPACES[name]}
            processes.start(name, [*_MOUNTED, room, PLACES[name], f"{PLACES[name]}/program", *arguments], environment)
        for name in TOOLS:
            if not wait_until(functools.partial(_serves, processes, name), READY_SECONDS):
                raise LabError(f"{name} does not serve its webhooks; its last output:\n{processes.log(name)}", f"its log is {processes.logs / name}.log")


def _arguments() -> typing.Dict[str, typing.List[str]]:
    training = [f"--webhook-server-port={PORTS['training-operator']}", "--enable-scheme=pytorchjob", "--metrics-bind-address=0"]
    training += ["--health-probe-bind-address=0", f"--pytorch-init-container-image={POD_IMAGE}"]
    training.append(f"--pytorch-init-container-template-file={PLACES['training-operator']}/init-container.yaml")
    return {"training-operator": training, "kueue": [f"--config={PLACES['kueue']}/kueue.yaml", "--feature-gates=VisibilityOnDemand=false"]}


def _furnish(room: pathlib.Path, name: str, authority: Pki, certificates: typing.Mapping[str, bytes]) -> None:
    """What an operator needs, in the folder that it sees in place of one of the host's."""
    for folder in (CERTIFICATES, "kueue/metrics/certs"):
        (room / folder).mkdir(parents=True, exist_ok=True)
        for file, content in certificates.items():
            (room / folder / file).write_bytes(content)
    shutil.copy2(gotools.binary(name), room / "program")
    shutil.copy2(authority.path("admin.kubeconfig"), room / "kubeconfig")
    (room / "init-container.yaml").write_text(INIT_CONTAINER)
    (room / "kueue.yaml").write_text(yaml.safe_dump(_kueue_config()))


def _serves(processes: Processes, name: str) -> bool:
    """:raises LabError: it has ended"""
    processes.check(name)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORTS[name]), timeout=1):
        return True
    return False


def stop(authority: Pki, folder: pathlib.Path, processes: Processes) -> None:
    """Take back their kinds with all objects of these, while Kueue is there to let them go; then end both."""
    client = objects.client(authority.path("admin.kubeconfig"))
    with step("take back the training operator and Kueue"):
        kinds = {item["spec"]["names"]["kind"]: item for item in _definitions()}
        # in the order of use
        for kind in ("PyTorchJob", "Workload", "LocalQueue", "ClusterQueue", "ResourceFlavor"):
            _empty(client, kinds[kind])
        for resource, names in (
            (_resource(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition"), [item["metadata"]["name"] for item in kinds.values()]),
            *((_resource(client, item["apiVersion"], item["kind"]), [item["metadata"]["name"]]) for item in _webhooks("")),
            (_resource(client, "v1", "Namespace"), list(NAMESPACES.values())),
        ):
            objects.remove(resource, names)
        processes.stop(*TOOLS)
        shutil.rmtree(folder / "operators", ignore_errors=True)


def _resource(client: kubernetes.dynamic.DynamicClient, version: str, kind: str) -> typing.Any:
    return client.resources.get(api_version=version, kind=kind)


def _empty(client: kubernetes.dynamic.DynamicClient, definition: objects.Object) -> None:
    """Delete all objects of a kind, if there is such a kind."""
    with contextlib.suppress(kubernetes.dynamic.exceptions.ResourceNotFoundError):
        objects.remove(_resource(client, definitions.stored(definition), definition["spec"]["names"]["kind"]))


def _definitions() -> typing.List[objects.Object]:
    training, kueue = gotools.module_folder(*TRAINING), gotools.module_folder(*KUEUE)
    paths = [training / "manifests/base/crds/kubeflow.org_pytorchjobs.yaml", *sorted((kueue / "config/components/crd/bases").glob("*.yaml"))]
    return definitions.read(paths)


def _webhooks(authority: str) -> typing.List[objects.Object]:
    """Their own webhooks for the kinds that the lab has, called at the host instead of at a service.

    :param authority: certificate of the authority, in base64
    """
    files = (
        ("training-operator", gotools.module_folder(*TRAINING) / "manifests/base/webhook/manifests.yaml"),
        ("kueue", gotools.module_folder(*KUEUE) / "config/components/webhook/manifests.yaml"),
    )
    made = []
    for owner, path in files:
        for item in objects.read(path):
            # the name by which the training operator looks for its own
            item["metadata"] = {"name": "validator.training-operator.kubeflow.org" if owner == "training-operator" else f"kueue-{item['metadata']['name']}"}
            item["webhooks"] = [hook for hook in item["webhooks"] if _of_the_lab(hook)]
            for hook in item["webhooks"]:
                path_there = hook["clientConfig"]["service"]["path"]
                hook["clientConfig"] = {"url": f"https://127.0.0.1:{PORTS[owner]}{path_there}", "caBundle": authority}
            made.append(item)
    return made


def _of_the_lab(hook: objects.Object) -> bool:
    groups = {group for rule in hook["rules"] for group in rule["apiGroups"]}
    kinds = {kind.partition("/")[0] for rule in hook["rules"] for kind in rule["resources"]}
    return groups <= GROUPS and ("kubeflow.org" not in groups or kinds == {"pytorchjobs"})


def _kueue_config() -> typing.Dict[str, typing.Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACES["kueue"],
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": PORTS["kueue"], "certDir": f"{PLACES['kueue']}/{CERTIFICATES}"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["kubeflow.org/pytorchjob"]},
    }


def _certificates() -> typing.Dict[str, bytes]:
    """An authority and a server's certificate, in the form in which the training operator keeps its own (RSA, PKCS #1)."""
    keys = {name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for name in ("ca", "tls")}
    names = {"ca": "training-operator-ca", "tls": f"training-operator.{NAMESPACES['training-operator']}.svc"}
    made = {}
    for name, key in keys.items():
        builder = (
            unsigned(subject_of(names[name]), subject_of(names["ca"]), key.public_key())
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([host_name(names[name]), host_name("127.0.0.1")]), critical=False)
        )
        made[f"{name}.crt"] = builder.sign(keys["ca"], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        made[f"{name}.key"] = pem(key)
    return made
