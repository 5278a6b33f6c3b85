# SPDX-License-Identifier: GPL-3.0-or-later

"""Node feature discovery, for real: its master and its workers are pods, by its own chart, from an image on the
workers' disk.

The lab itself sets none of its labels: the one by which nodes take part comes from the emulated NIC.
"""

from __future__ import annotations

import json
import typing

from dev.steps import StepError, step

from . import charts, definitions, objects
from .build import gotools
from .build.images import DISCOVERY_IMAGE
from .description import Worker
from .pki import Pki
from .processes import wait_until

MODULE = (gotools.CLUSTER, gotools.DISCOVERY)
#: namespace and release
NAME = "node-feature-discovery"
LABEL = "feature.node.kubernetes.io/network-sriov.capable"
LABEL_SECONDS = 600
_WORKERS = "app.kubernetes.io/name=node-feature-discovery,role=worker"
_VERSION = "nfd.k8s-sigs.io/v1alpha1"


def start(authority: Pki) -> None:
    """Serve its kinds and make its objects; its pods run as soon as a worker is Ready."""
    with step("apply node feature discovery"):
        client = _client(authority)
        made = _objects()
        definitions.apply(client, [item for item in made if item["kind"] == "CustomResourceDefinition"])
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}
        objects.apply(client, [namespace, *(item for item in made if item["kind"] != "CustomResourceDefinition")])


def await_label(authority: Pki, workers: typing.Iterable[Worker], there: bool = True) -> None:
    """Wait until each of the workers carries the label, or none of them.

    :raises StepError: not in time
    """
    names, nodes = {worker.name for worker in workers}, _client(authority).resources.get(api_version="v1", kind="Node")

    def wrong() -> set[str]:
        return {
            item.metadata.name
            for item in nodes.get().items
            if item.metadata.name in names and (LABEL in item.metadata.labels.to_dict()) != there
        }

    if not wait_until(lambda: not wrong(), LABEL_SECONDS, 0.5):
        raise StepError(
            f"{', '.join(sorted(wrong()))}: {LABEL} is {'absent' if there else 'still there'} after {LABEL_SECONDS} s",
            f"see its pods: lab/kubectl -n {NAME} get pods,nodefeatures",
        )


def keep_away(authority: Pki, worker: Worker) -> None:
    """Its worker keeps away from a node, and what it has told of the node is gone, as of a node on which it has never
    been."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [worker.name]}]}]
    _settle(
        authority, {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    )
    client = _client(authority)
    pods, told = (
        client.resources.get(api_version="v1", kind="Pod"),
        client.resources.get(api_version=_VERSION, kind="NodeFeature"),
    )

    def left() -> bool:
        return not any(
            pod.spec.nodeName == worker.name for pod in pods.get(namespace=NAME, label_selector=_WORKERS).items
        )

    if not wait_until(left, LABEL_SECONDS, 0.5):
        raise StepError(
            f"its worker is still on {worker.name} after {LABEL_SECONDS} s",
            f"see its pods: lab/kubectl -n {NAME} get pods",
        )
    if any(item.metadata.name == worker.name for item in told.get(namespace=NAME).items):
        told.delete(name=worker.name, namespace=NAME)
    await_label(authority, [worker], there=False)


def come_back(authority: Pki, worker: Worker) -> None:
    """Its worker is on each node again, and tells of it."""
    _settle(authority, None)
    await_label(authority, [worker])


def configure(authority: Pki, settings: typing.Optional[typing.Mapping[str, typing.Any]]) -> None:
    """Give its workers another configuration, which they read when they start.

    :param settings: None is the chart's own
    """
    client = _client(authority)
    (config,) = (item for item in _objects() if item["kind"] == "ConfigMap" and "nfd-worker.conf" in item["data"])
    if settings is not None:
        config["data"]["nfd-worker.conf"] = json.dumps(settings)
    objects.apply(client, [config])
    client.resources.get(api_version="v1", kind="Pod").delete(namespace=NAME, label_selector=_WORKERS)


def _settle(authority: Pki, affinity: typing.Optional[typing.Mapping[str, typing.Any]]) -> None:
    daemons = _client(authority).resources.get(api_version="apps/v1", kind="DaemonSet")
    body = {"spec": {"template": {"spec": {"affinity": affinity}}}}
    daemons.patch(name=f"{NAME}-worker", namespace=NAME, body=body, content_type="application/merge-patch+json")


def _objects() -> list[objects.Object]:
    repository, _colon, tag = DISCOVERY_IMAGE.partition(":")
    # nodes of the lab do not leave, so that there is nothing to collect after them; and a look takes seconds of an
    # emulated CPU, which measurements would see
    worker = {"config": {"core": {"sleepInterval": "3600s"}}}
    values = {
        "worker": worker,
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "gc": {"enable": False},
    }
    return charts.render(gotools.module_folder(*MODULE) / f"deployment/helm/{NAME}", NAME, NAME, values)


def _client(authority: Pki) -> typing.Any:
    return objects.client(authority.path("admin.kubeconfig"))
