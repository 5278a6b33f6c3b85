# SPDX-License-Identifier: GPL-3.0-or-later

"""Custom resource definitions of operators that the lab does not run: the API server judges what is written for them,
and nobody acts on it."""

from __future__ import annotations

import pathlib
import typing

import kubernetes.dynamic

from dev.steps import step

from . import objects
from .build import gotools
from .pki import Pki

#: folder of lab/go
PINNED_IN = "crds"
#: Go module: folder of its definitions, and those that are of use here
SOURCES: typing.Mapping[str, tuple[str, tuple[str, ...]]] = {
    "github.com/kubeflow/trainer": ("manifests/base/crds", ("kubeflow.org_pytorchjobs",)),
    "github.com/kubeflow/trainer/v2": (
        "manifests/base/crds",
        ("trainer.kubeflow.org_trainjobs", "trainer.kubeflow.org_trainingruntimes"),
    ),
    "sigs.k8s.io/kueue": (
        "config/components/crd/bases",
        ("kueue.x-k8s.io_clusterqueues", "kueue.x-k8s.io_localqueues"),
    ),
    "github.com/openshift/api": (
        "payload-manifests/crds",
        (
            *(
                f"0000_80_machine-config_01_{name}.crd"
                for name in ("kubeletconfigs", "machineconfigs", "machineconfigpools-Default")
            ),
            "0000_03_config-operator_01_securitycontextconstraints-Default.crd",
            *(
                f"0000_10_config-operator_01_{name}.crd"
                for name in (
                    "imagecontentsourcepolicies",
                    "imagedigestmirrorsets",
                    "imagetagmirrorsets",
                    "images-Default",
                )
            ),
        ),
    ),
    "github.com/NVIDIA/gpu-operator": ("config/crd/bases", ("nvidia.com_clusterpolicies",)),
    "github.com/Mellanox/network-operator": (
        "config/crd/bases",
        tuple(
            f"mellanox.com_{name}"
            for name in ("hostdevicenetworks", "ipoibnetworks", "macvlannetworks", "nicclusterpolicies")
        ),
    ),
}

#: definitions that no Go module of use here has, as the tests of the collection have them
KEPT = (pathlib.Path(__file__).parents[1] / "tests/unit/fixtures/kubernetes/tuneds.tuned.openshift.io.yaml",)


def files() -> list[pathlib.Path]:
    """Paths of the definitions, fetched where they are not there; outside of the lab's network namespace."""
    found = [*KEPT]
    for module, (folder, names) in SOURCES.items():
        root = gotools.module_folder(PINNED_IN, module) / folder
        found += [root / f"{name}.yaml" for name in names]
    return found


def serve(authority: Pki, paths: typing.Sequence[pathlib.Path]) -> list[str]:
    """Make the API server serve them.

    :returns: names of the definitions
    :raises StepError: it does not serve one of them in time
    """
    definitions = read(paths)
    with step("apply definitions of operators that do not run here"):
        apply(objects.client(authority.path("admin.kubeconfig")), definitions)
    return [item["metadata"]["name"] for item in definitions]


def withdraw(authority: Pki, paths: typing.Sequence[pathlib.Path]) -> list[str]:
    """Take them back, with all objects of these kinds; those that are not there are left out."""
    with step("take back definitions of operators that do not run here"):
        return remove(objects.client(authority.path("admin.kubeconfig")), read(paths))


def remove(client: kubernetes.dynamic.DynamicClient, definitions: typing.Iterable[objects.Object]) -> list[str]:
    """Remove them, with all objects of these kinds that have no finalizer; those that are not there are left out.

    :returns: names of those that were there
    """
    resource = client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    return objects.remove(resource, [item["metadata"]["name"] for item in definitions])


def apply(client: kubernetes.dynamic.DynamicClient, definitions: typing.Sequence[objects.Object]) -> None:
    """Apply them, and wait until the API server serves each kind.

    :raises StepError: it does not serve one of them in time
    """
    objects.apply(client, definitions)
    for item in definitions:
        objects.await_served(client, stored(item), item["spec"]["names"]["kind"])


def stored(definition: objects.Object) -> str:
    """Group and version in which its objects are kept."""
    spec = definition["spec"]
    return f"{spec['group']}/{next(entry['name'] for entry in spec['versions'] if entry['storage'])}"


def read(paths: typing.Iterable[pathlib.Path]) -> list[objects.Object]:
    """The definitions in files; their versions are not converted."""
    definitions = [item for path in paths for item in objects.read(path) if item["kind"] == "CustomResourceDefinition"]
    for item in definitions:
        # the operators' webhooks, which would convert between versions, do not run
        item["spec"].pop("conversion", None)
        item.pop("status", None)
    return definitions
