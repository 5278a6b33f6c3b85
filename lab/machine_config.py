# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenShift's machine config controller, for real, as a process of the host.

It renders the MachineConfigs of each pool, makes MachineConfigs of KubeletConfigs, says which node is to go to which
configuration and how many at a time, and cordons and drains the node when the node's daemon asks for it. The daemon
itself, which writes a configuration and reboots its node, runs on Red Hat's operating system alone: a stand-in of the
tests has its part.
"""

from __future__ import annotations

import pathlib
import typing

import kubernetes.dynamic.exceptions

from dev.steps import StepError, step

from . import definitions, objects
from .build import gotools
from .description import Description
from .pki import Pki
from .processes import Processes, wait_until

NAME = "machine-config-controller"
TOOLS = (NAME,)
NAMESPACE = "openshift-machine-config-operator"
#: folder of lab/go
PINNED_IN = "machine-config"
MANIFEST = pathlib.Path(__file__).parent / "manifests" / "machine-config.yaml"
#: its kinds, and OpenShift's that it looks at: paths in the sources of OpenShift's API
_API = "github.com/openshift/api"
_PAYLOAD = "payload-manifests/crds"
_KINDS = (
    *(
        f"{_PAYLOAD}/0000_80_machine-config_01_{name}.crd.yaml"
        for name in (
            "containerruntimeconfigs",
            "controllerconfigs-Default",
            "kubeletconfigs",
            "machineconfigpools-Default",
            "machineconfigs",
        )
    ),
    *(
        f"{_PAYLOAD}/0000_10_config-operator_01_{name}.crd.yaml"
        for name in (
            "apiservers",
            "featuregates",
            "imagecontentsourcepolicies",
            "imagedigestmirrorsets",
            "images-Default",
            "imagetagmirrorsets",
        )
    ),
    *(f"{_PAYLOAD}/0000_10_config-operator_01_{name}-Default.crd.yaml" for name in ("nodes", "schedulers")),
    f"{_PAYLOAD}/0000_50_storage_01_storages.crd.yaml",
    "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
)
#: with objects of these kinds it has work to do before they are gone
_EMPTIED = ("KubeletConfig", "MachineConfigPool", "MachineConfig")
VERSION = "machineconfiguration.openshift.io/v1"
READY_SECONDS = 120
#: of the nodes, its own and the daemon's
ANNOTATIONS = "machineconfiguration.openshift.io/"
TAINT = "UpdateInProgress"


def build() -> None:
    """Compile it, outside of the lab's network namespace and best before its guests run."""
    gotools.binary(NAME)
    _sources()
    _files()


def start(description: Description, authority: Pki, processes: Processes) -> None:
    """Serve its kinds, and start it; inside of the lab's network namespace. Returns when it has made the MachineConfigs
    that each cluster begins with.

    :raises StepError: it ends, or has not made them in time
    """
    client = objects.client(authority.path("admin.kubeconfig"))
    with step("serve the kinds of OpenShift's machine config controller"):
        definitions.apply(client, _definitions())
        values = {
            "VERSION": gotools.MACHINE_CONFIG_VERSION,
            "CA": objects.encoded(authority.path("ca.crt")),
            "API": authority.server,
            "DNS": str(description.service_address),
        }
        objects.apply(client, objects.read(MANIFEST, values))
    with step(f"start {NAME}"):
        kubeconfig = authority.path("admin.kubeconfig")
        arguments = (
            f"--kubeconfig={kubeconfig}",
            f"--templates={_sources() / 'templates'}",
            f"--resourcelock-namespace={NAMESPACE}",
        )
        processes.start(NAME, [gotools.binary(NAME), "start", *arguments], {"KUBECONFIG": str(kubeconfig)})
        configs = client.resources.get(api_version=VERSION, kind="MachineConfig")

        def made() -> bool:
            processes.check(NAME)
            return {"00-worker", "01-worker-kubelet"} <= {item.metadata.name for item in configs.get().items}

        if not wait_until(made, READY_SECONDS):
            raise StepError(
                f"{NAME} makes no MachineConfigs; its last output:\n{processes.log(NAME)}",
                f"its log is {processes.logs / NAME}.log",
            )


def stop(authority: Pki, processes: Processes) -> None:
    """Take back its kinds with all objects of these; then end it, and what it has said of the nodes goes, too."""
    client = objects.client(authority.path("admin.kubeconfig"))
    with step(f"take back {NAME}"):
        for kind in _EMPTIED:
            try:
                resource = client.resources.get(api_version=VERSION, kind=kind)
            except kubernetes.dynamic.exceptions.ResourceNotFoundError:
                continue
            if kind == "MachineConfig":
                # those that each cluster begins with it would make anew
                processes.stop(NAME)
            objects.remove(resource)
        processes.stop(NAME)
        definitions.remove(client, _definitions())
        objects.remove(client.resources.get(api_version="v1", kind="Namespace"), [NAMESPACE, "openshift-config"])
        forget(client)


def forget(client: typing.Any) -> None:
    """Take away what was said of all nodes, and let pods go there again."""
    nodes = client.resources.get(api_version="v1", kind="Node")
    for node in nodes.get().to_dict()["items"]:
        told = dict.fromkeys(key for key in node["metadata"].get("annotations") or {} if key.startswith(ANNOTATIONS))
        taints = [
            taint
            for taint in node["spec"].get("taints") or []
            if taint["key"] not in (TAINT, "node.kubernetes.io/unschedulable")
        ]
        if told:
            body = {"metadata": {"annotations": told}, "spec": {"taints": taints, "unschedulable": None}}
            nodes.patch(name=node["metadata"]["name"], body=body, content_type="application/merge-patch+json")


def _sources() -> pathlib.Path:
    return gotools.module_folder(PINNED_IN, gotools.MACHINE_CONFIG)


def _files() -> list[pathlib.Path]:
    folder = gotools.module_folder(definitions.PINNED_IN, _API)
    return [folder / path for path in _KINDS]


def _definitions() -> list[objects.Object]:
    return definitions.read(_files())
