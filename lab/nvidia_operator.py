# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA's network operator, for real, as a process of the host: what its controllers make of a NicClusterPolicy and of
its networks.

They make DaemonSets of the one and NetworkAttachmentDefinitions of the others, and say how far each is. The images of
these DaemonSets are in a registry that the lab does not have, so that none of its pods ever runs: what they would do on
a node is not shown here.
"""

from __future__ import annotations

import contextlib
import pathlib
import typing
import urllib.error
import urllib.request

import kubernetes.dynamic.exceptions

from dev.steps import StepError, step

from . import definitions, objects
from .build import gotools
from .pki import Pki
from .processes import Processes, wait_until

#: folder of lab/go and binary
NAME = "network-operator"
TOOLS = (NAME,)
NAMESPACE = "nvidia-network-operator"
#: of its probes, on which it answers when its controllers are made
PORT = 9861
READY_SECONDS = 60
#: labels of nodes in this domain are its own, and it never takes them back
LABELS = "network.nvidia.com/"


def sources() -> pathlib.Path:
    return gotools.module_folder(NAME, gotools.NETWORK_OPERATOR)


def build() -> None:
    """Compile it, outside of the lab's network namespace and best before its guests run."""
    gotools.binary(NAME)
    sources()


def start(authority: Pki, processes: Processes) -> None:
    """Serve its kinds, and start it; inside of the lab's network namespace.

    :raises StepError: it ends, or does not answer in time
    """
    client = objects.client(authority.path("admin.kubeconfig"))
    with step("serve the kinds of NVIDIA's network operator"):
        definitions.apply(client, _definitions())
        objects.apply(client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    with step(f"start {NAME}"):
        processes.start(
            NAME,
            [gotools.binary(NAME), "--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{PORT}"],
            {
                "KUBECONFIG": str(authority.path("admin.kubeconfig")),
                "POD_NAMESPACE": NAMESPACE,
                "STATE_MANIFEST_BASE_DIR": str(sources() / "manifests"),
            },
        )

        def ready() -> bool:
            processes.check(NAME)
            with (
                contextlib.suppress(urllib.error.URLError, OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=1),
            ):
                return True
            return False

        if not wait_until(ready, READY_SECONDS):
            raise StepError(
                f"{NAME} does not answer; its last output:\n{processes.log(NAME)}",
                f"its log is {processes.logs / NAME}.log",
            )


def stop(authority: Pki, processes: Processes) -> None:
    """Take back its kinds with all objects of these, and what came of them; then end it."""
    client = objects.client(authority.path("admin.kubeconfig"))
    with step(f"take back {NAME}"):
        kinds = _definitions()
        for item in kinds:
            with contextlib.suppress(kubernetes.dynamic.exceptions.ResourceNotFoundError):
                objects.remove(
                    client.resources.get(api_version=definitions.stored(item), kind=item["spec"]["names"]["kind"])
                )
        definitions.remove(client, kinds)
        objects.remove(client.resources.get(api_version="v1", kind="Namespace"), [NAMESPACE])
        processes.stop(NAME)
        forget(client)


def forget(client: typing.Any) -> None:
    """Take its labels from all nodes."""
    nodes = client.resources.get(api_version="v1", kind="Node")
    for node in nodes.get().to_dict()["items"]:
        left = dict.fromkeys(key for key in node["metadata"].get("labels") or {} if key.startswith(LABELS))
        if left:
            nodes.patch(
                name=node["metadata"]["name"],
                body={"metadata": {"labels": left}},
                content_type="application/merge-patch+json",
            )


def _definitions() -> list[objects.Object]:
    return definitions.read(sorted((sources() / "config/crd/bases").glob("*.yaml")))
