# SPDX-License-Identifier: GPL-3.0-or-later

"""The scale plane: nodes by the hundred that are only objects (kwok). For load and faults of status; they run nothing,
so they prove nothing else."""

from __future__ import annotations

import pathlib

from dev.steps import StepError, step

from . import objects
from .build import gotools
from .description import Description
from .pki import Pki
from .processes import Processes, wait_until

MODULE = "sigs.k8s.io/kwok"
TOOLS = ("kwok",)
READY_SECONDS = 120
LABEL = "lab.linerate.rdma/simulated"
#: resources of a simulated node, as a GPU server has them
CAPACITY = {"cpu": "128", "memory": "1Ti", "pods": "250"}


def name(number: int) -> str:
    return f"simulated-{number:04d}"


def build() -> None:
    """Build what the plane needs, outside of the lab's network namespace."""
    for tool in TOOLS:
        gotools.binary(tool)
    gotools.module_folder("kwok", MODULE)


def start(description: Description, processes: Processes, authority: Pki, nodes: int) -> None:
    """Start kwok and make ``nodes`` nodes, simulated-0001 and on; wait until all are Ready.

    :raises StepError: not Ready in time
    """
    if nodes == 0:
        return
    authority.identity("kwok", "lab:kwok", "system:masters", hosts=("127.0.0.1", description.network.address))
    module = gotools.module_folder("kwok", MODULE)
    client = objects.client(authority.path("admin.kubeconfig"))
    with step(f"start kwok and {nodes} simulated nodes"):
        objects.apply(client, objects.read(module / "kustomize/crd/bases/kwok.x-k8s.io_stages.yaml"))
        objects.await_served(client, "kwok.x-k8s.io/v1alpha1", "Stage")
        for folder in ("node/fast", "node/heartbeat-with-lease", "pod/fast"):
            for path in sorted((module / "kustomize/stage" / folder).glob("*.yaml")):
                objects.apply(client, [item for item in objects.read(path) if item["kind"] == "Stage"])
        processes.start("kwok", _command(description, authority))
        for number in range(1, nodes + 1):
            objects.apply(client, [_node(name(number))])
        resource = client.resources.get(api_version="v1", kind="Node")

        def ready() -> bool:
            processes.check("kwok")
            items = resource.get(label_selector=LABEL).items
            return (
                sum(
                    any(c.type == "Ready" and c.status == "True" for c in item.status.conditions or [])
                    for item in items
                )
                >= nodes
            )

        if not wait_until(ready, READY_SECONDS, 0.5):
            raise StepError(
                f"simulated nodes not Ready after {READY_SECONDS} s:\n{processes.log('kwok')}",
                "ask for fewer, or run it again",
            )


def _command(description: Description, authority: Pki) -> list[str | pathlib.Path]:
    return [
        *(
            gotools.binary("kwok"),
            f"--kubeconfig={authority.path('kwok.kubeconfig')}",
            f"--manage-nodes-with-label-selector={LABEL}",
        ),
        *(
            "--node-ip",
            description.network.address,
            "--node-port",
            "10247",
            "--node-lease-duration-seconds",
            "40",
            "--enable-crds=Stage",
        ),
        *(
            f"--tls-cert-file={authority.path('kwok.crt')}",
            f"--tls-private-key-file={authority.path('kwok.key')}",
            "--server-address=127.0.0.1:10247",
        ),
    ]


def _node(node: str) -> objects.Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node,
            "labels": {LABEL: "true", "kubernetes.io/hostname": node},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        # nothing that was not meant for a simulated node lands on one
        "spec": {"taints": [{"key": LABEL, "effect": "NoSchedule"}]},
        "status": {"allocatable": CAPACITY, "capacity": CAPACITY},
    }
