# SPDX-License-Identifier: GPL-3.0-or-later

"""A catalog of OLM with the SR-IOV operator, whose own sources hold no bundle: its ClusterServiceVersion is made of the
objects of its chart.

A bundle carries its objects inline and names no image, so that OLM unpacks none: there is no registry. Node feature
discovery is not in it: its workers are a DaemonSet, which a ClusterServiceVersion cannot hold, and its operator for
OpenShift is another program.
"""

from __future__ import annotations

import base64
import json
import typing

import yaml

from dev.steps import ROOT

from . import charts
from .build import gotools
from .objects import Object

PACKAGE = "sriov-network-operator"
GROUP = "sriovnetwork.openshift.io"
#: of the catalog's default, and of the bundle that waits for an API for ever
CHANNEL, INCOMPLETE = "stable", "incomplete"
VERSION, INCOMPLETE_VERSION = "1.6.0", "1.6.1"
#: definition that nobody owns: name, group, version, kind
REQUIRED = ("absences.lab.linerate.example", "lab.linerate.example", "v1", "Absence")
#: what the lab's inventory has the chart do, by which the operator is the same however it is installed
_VALUES = ROOT / "inventory/lab/group_vars/all.yml"


def chart_objects(namespace: str) -> list[Object]:
    """The objects of the operator's chart, as the lab's inventory has Helm install it."""
    values = yaml.safe_load(_VALUES.read_text())["operators_sriov_chart_values"]
    chart = gotools.module_folder(gotools.CLUSTER, gotools.OPERATOR) / "deployment/sriov-network-operator-chart"
    return charts.render(chart, PACKAGE, namespace, values)


def configuration(made: typing.Iterable[Object]) -> Object:
    """The operator's configuration among the objects of its chart. OLM makes none."""
    (found,) = (item for item in made if item["kind"] == "SriovOperatorConfig")
    return found


def catalog(made: typing.Sequence[Object]) -> list[Object]:
    """A file-based catalog: the package, a channel that can be installed, and one whose bundle requires an API that
    nobody owns.

    :param made: objects of the operator's chart
    """
    whole = service_version(made, VERSION)
    lacking = service_version(made, INCOMPLETE_VERSION)
    name, _group, version, kind = REQUIRED
    lacking["spec"]["customresourcedefinitions"]["required"] = [
        {"name": name, "version": version, "kind": kind, "displayName": kind}
    ]
    found: list[Object] = [{"schema": "olm.package", "name": PACKAGE, "defaultChannel": CHANNEL}]
    for channel, csv in ((CHANNEL, whole), (INCOMPLETE, lacking)):
        found.append(
            {
                "schema": "olm.channel",
                "package": PACKAGE,
                "name": channel,
                "entries": [{"name": csv["metadata"]["name"]}],
            }
        )
        found.append(bundle([csv, *_definitions(made), *(item for item in made if item["kind"] == "ConfigMap")]))
    return found


def bundle(carried: typing.Sequence[Object]) -> Object:
    """A bundle that carries its objects, the ClusterServiceVersion as the first of them.

    What it requires is no property of it: OLM would then not even make an InstallPlan.
    """
    csv = carried[0]
    properties: list[Object] = [
        {"type": "olm.package", "value": {"packageName": PACKAGE, "version": csv["spec"]["version"]}}
    ]
    for item in _definitions(carried):
        spec = item["spec"]
        served = {"group": spec["group"], "kind": spec["names"]["kind"], "version": spec["versions"][0]["name"]}
        properties.append({"type": "olm.gvk", "value": served})
    for item in carried:
        properties.append(
            {"type": "olm.bundle.object", "value": {"data": base64.b64encode(json.dumps(item).encode()).decode()}}
        )
    return {
        "schema": "olm.bundle",
        "name": csv["metadata"]["name"],
        "package": PACKAGE,
        "image": "",
        "properties": properties,
    }


def service_version(made: typing.Sequence[Object], version: str) -> Object:
    """The ClusterServiceVersion: Deployment, rights and definitions of the chart."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{PACKAGE}.v{version}"},
        "spec": {
            "displayName": "SR-IOV network operator of the lab",
            "version": version,
            "provider": {"name": "linerate.rdma"},
            "installModes": [
                {"type": mode, "supported": mode in ("OwnNamespace", "SingleNamespace")}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "install": {
                "strategy": "deployment",
                "spec": {
                    "deployments": [
                        {"name": item["metadata"]["name"], "spec": item["spec"]}
                        for item in made
                        if item["kind"] == "Deployment"
                    ],
                    "permissions": _rights(made, "Role"),
                    "clusterPermissions": _rights(made, "ClusterRole"),
                },
            },
            "customresourcedefinitions": {
                "owned": [
                    {
                        "name": item["metadata"]["name"],
                        "kind": item["spec"]["names"]["kind"],
                        "version": item["spec"]["versions"][0]["name"],
                        "displayName": item["spec"]["names"]["kind"],
                    }
                    for item in _definitions(made)
                ]
            },
        },
    }


def _definitions(made: typing.Iterable[Object]) -> list[Object]:
    """The operator's own: that of networks comes with multus, and is not to go with the operator."""
    return [item for item in made if item["kind"] == "CustomResourceDefinition" and item["spec"]["group"] == GROUP]


def _rights(made: typing.Sequence[Object], kind: str) -> list[Object]:
    """What each service account may, by the bindings of the chart.

    :param kind: Role or ClusterRole
    """
    rules = {item["metadata"]["name"]: item["rules"] for item in made if item["kind"] == kind}
    return [
        {"serviceAccountName": subject["name"], "rules": rules[item["roleRef"]["name"]]}
        for item in made
        if item["kind"] == f"{kind}Binding"
        for subject in item["subjects"]
        if subject["kind"] == "ServiceAccount"
    ]
