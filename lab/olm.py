# SPDX-License-Identifier: GPL-3.0-or-later

"""The Operator Lifecycle Manager, for real, and a catalog of the lab's own: three processes, which make the operator's
pods on the workers.

What is not here is its server of PackageManifests: without a network of services the API server cannot call one. So
nobody tells what the catalog offers, and OLM itself has to say that a channel does not exist.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import typing

from dev.steps import StepError, step

from . import bundle, controlplane, definitions, objects
from .build import gotools
from .description import Description
from .pki import Pki
from .processes import Processes, wait_until

#: of the catalog first: the others ask it
TOOLS = ("opm", "catalog", "olm")
MODULE = ("olm", gotools.LIFECYCLE)
#: its namespace, and that of the catalog
NAMESPACE = "olm"
CATALOG = "lab"
CATALOG_PORT = 50051
READY_SECONDS = 300
_GROUP = "operators.coreos.com"
#: of the operator, which alone takes its finalizers off
_OPERATORS = ("SriovNetwork", "SriovIBNetwork", "SriovOperatorConfig")
#: what goes while OLM runs, which alone takes its finalizers off: first what it would make anew
_EMPTIED = (
    *(
        (f"{_GROUP}/v1alpha1", kind)
        for kind in ("Subscription", "ClusterServiceVersion", "InstallPlan", "CatalogSource")
    ),
    (f"{_GROUP}/v1", "OperatorGroup"),
)


def build() -> None:
    """Compile it, outside of the lab's network namespace and best before its guests run."""
    for name in TOOLS:
        gotools.binary(name)
    gotools.module_folder(*MODULE)


def start(description: Description, authority: Pki, folder: pathlib.Path, processes: Processes) -> None:
    """Serve its kinds, and start it with its catalog; inside of the lab's network namespace.

    :param folder: of the lab
    :raises StepError: Helm has installed the operator, or the catalog is not ready in time
    """
    client = objects.client(authority.path("admin.kubeconfig"))
    _refuse_beside_helm(client, description)
    made = bundle.chart_objects(description.operator_namespace)
    # a teardown takes the operator's kinds away with what OLM has installed
    controlplane.apply_base(description, authority)
    with step("serve the kinds of OLM"):
        definitions.apply(client, _definitions())
        names = (NAMESPACE, description.operator_namespace)
        objects.apply(client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names])
        configuration = bundle.configuration(made)
        objects.await_served(client, configuration["apiVersion"], configuration["kind"])
        # as an admin's own: the one that the collection makes turns on webhooks behind services, which the lab has none
        # of
        objects.apply(client, [configuration])
    with step("start OLM and its catalog"):
        write_catalog(made, folder)
        start_catalog(folder, processes)
        start_operators(authority, processes)
        address = f"{description.network.address}:{CATALOG_PORT}"
        spec = {"sourceType": "grpc", "address": address, "displayName": "the lab's own"}
        metadata = {"name": CATALOG, "namespace": NAMESPACE}
        objects.apply(
            client, [{"apiVersion": f"{_GROUP}/v1alpha1", "kind": "CatalogSource", "metadata": metadata, "spec": spec}]
        )
        await_catalog(authority, processes)


def write_catalog(made: typing.Sequence[objects.Object], folder: pathlib.Path) -> None:
    place = folder / "olm" / "catalog"
    place.mkdir(parents=True, exist_ok=True)
    (place / "catalog.json").write_text("\n".join(json.dumps(item) for item in bundle.catalog(made)))


def start_catalog(folder: pathlib.Path, processes: Processes) -> None:
    """Serve the catalog that was written; it looks at it once, when it starts."""
    place = folder / "olm"
    processes.stop("opm")
    # it may be of a catalog that was another one, and nobody holds it against that
    shutil.rmtree(place / "cache", ignore_errors=True)
    # an empty cache has no digest, and its profiler takes a port that may be somebody else's
    options = ("--cache-dir", place / "cache", "--cache-enforce-integrity=false", "--pprof-addr", "")
    processes.start("opm", [gotools.binary("opm"), "serve", place / "catalog", "--port", str(CATALOG_PORT), *options])


def start_operators(authority: Pki, processes: Processes) -> None:
    """The two operators that are OLM."""
    config = authority.path("admin.kubeconfig")
    environment = {"KUBECONFIG": str(config), "OPERATOR_NAME": NAMESPACE, "OPERATOR_NAMESPACE": NAMESPACE}
    # images of pods that unpack bundles and serve catalogs, of which there are none
    unused = (
        "--configmapServerImage",
        "none",
        "--util-image",
        "none",
        "--opmImage",
        "none",
        "--set-workload-user-id=true",
    )
    # both end when all that they find bears their label, and want to be started again
    again = ("python3", pathlib.Path(__file__).parent / "again.py")
    processes.start(
        "catalog",
        [*again, gotools.binary("catalog"), "--kubeconfig", config, "--namespace", NAMESPACE, *unused],
        environment,
    )
    processes.start(
        "olm",
        [*again, gotools.binary("olm"), "--namespace", NAMESPACE, "--watchedNamespaces", "", "--writeStatusName", ""],
        environment,
    )


def lose_catalog(authority: Pki, processes: Processes) -> None:
    """End the server of the catalog, and start anew who asks it: for minutes it would go on with what it remembers."""
    processes.stop("opm")
    await_catalog(authority, processes, there=False)
    processes.stop("catalog")
    start_operators(authority, processes)


def await_catalog(authority: Pki, processes: Processes, there: bool = True) -> None:
    """Wait until OLM says that the catalog answers, or that it does not.

    :raises StepError: one of its processes has ended, or not in time
    """
    running = [name for name in TOOLS if there or name != "opm"]
    catalogs = objects.client(authority.path("admin.kubeconfig")).resources.get(
        api_version=f"{_GROUP}/v1alpha1", kind="CatalogSource"
    )

    def settled() -> bool:
        processes.check(*running)
        status = catalogs.get(name=CATALOG, namespace=NAMESPACE).to_dict().get("status") or {}
        return ((status.get("connectionState") or {}).get("lastObservedState") == "READY") == there

    if not wait_until(settled, READY_SECONDS, 0.5):
        told = f"lab/kubectl -n {NAMESPACE} get catalogsource {CATALOG} -o yaml"
        raise StepError(
            f"the catalog is {'not ready' if there else 'still ready'} after {READY_SECONDS} s; {processes.log('opm')}",
            f"see {told}",
        )


def stop(description: Description, authority: Pki, folder: pathlib.Path, processes: Processes) -> None:
    """Take back what it has installed while it is there to let it go, then its kinds; then end it. The operator's kinds
    are served as before."""
    client = objects.client(authority.path("admin.kubeconfig"))
    with step("take back OLM and what it has installed"):
        served = _served(client)
        for version, kind in (*(("sriovnetwork.openshift.io/v1", kind) for kind in _OPERATORS), *_EMPTIED):
            if kind in served:
                objects.remove(client.resources.get(api_version=version, kind=kind))
        definitions.remove(client, _definitions())
        processes.stop(*TOOLS)
        objects.remove(
            client.resources.get(api_version="v1", kind="Namespace"), [NAMESPACE, description.operator_namespace]
        )
        shutil.rmtree(folder / "olm", ignore_errors=True)
    controlplane.apply_base(description, authority)


def _served(client: typing.Any) -> set[str]:
    """Kinds of custom resources."""
    found = (
        client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
        .get()
        .to_dict()["items"]
    )
    return {item["spec"]["names"]["kind"] for item in found}


def _definitions() -> list[objects.Object]:
    return definitions.read(sorted((gotools.module_folder(*MODULE) / "deploy/chart/crds").glob("*.yaml")))


def _refuse_beside_helm(client: typing.Any, description: Description) -> None:
    secrets = client.resources.get(api_version="v1", kind="Secret")
    if secrets.get(namespace=description.operator_namespace, label_selector=f"owner=helm,name={bundle.PACKAGE}").items:
        remedy = (
            "lab/ansible-playbook teardown.yml -i inventory/lab -e teardown_operator=true; or begin anew: make"
            " lab-down lab"
        )
        raise StepError("Helm has installed the SR-IOV operator in this lab, so that OLM would install nothing", remedy)
