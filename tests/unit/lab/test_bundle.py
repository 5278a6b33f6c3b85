# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's catalog: a bundle that needs no registry, with all that the operator's chart holds; and the inventory that
installs from it."""

from __future__ import annotations

import base64
import json
import typing

import yaml

from dev.steps import ROOT
from lab import bundle, description, olm

SUBJECT = {"kind": "ServiceAccount", "name": "operator", "namespace": "here"}
RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
POD = {"replicas": 1, "template": {"spec": {"serviceAccountName": "operator"}}}


def kind(name: str, of: str, **more: typing.Any) -> dict[str, typing.Any]:
    return {"apiVersion": "v1", "kind": of, "metadata": {"name": name}, **more}


def definition(name: str, group: str) -> dict[str, typing.Any]:
    spec = {"group": group, "names": {"kind": name.capitalize()}, "versions": [{"name": "v1"}]}
    return kind(f"{name}s.{group}", "CustomResourceDefinition", spec=spec)


MADE = (
    definition("thing", bundle.GROUP),
    # of multus
    definition("network", "k8s.cni.cncf.io"),
    kind("operator", "ServiceAccount"),
    kind("operator", "Deployment", spec=POD),
    kind("own", "Role", rules=RULES),
    kind("all", "ClusterRole", rules=RULES),
    kind("nobodys", "Role", rules=RULES),
    kind(
        "own",
        "RoleBinding",
        roleRef={"kind": "Role", "name": "own"},
        subjects=[SUBJECT, {"kind": "User", "name": "somebody"}],
    ),
    kind("all", "ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "all"}, subjects=[SUBJECT]),
    kind("nics", "ConfigMap", data={"igb": "8086 10c9 10ca"}),
    kind("default", "SriovOperatorConfig", spec={"disableDrain": True}),
)


def bundles() -> dict[str, dict[str, typing.Any]]:
    return {item["name"]: item for item in bundle.catalog(MADE) if item["schema"] == "olm.bundle"}


def carried(item: typing.Mapping[str, typing.Any]) -> list[dict[str, typing.Any]]:
    """Objects that a bundle carries."""
    return [
        json.loads(base64.b64decode(each["value"]["data"]))
        for each in item["properties"]
        if each["type"] == "olm.bundle.object"
    ]


def test_the_service_version_has_what_the_chart_has() -> None:
    spec = bundle.service_version(MADE, "1.2.3")["spec"]
    install = spec["install"]["spec"]
    assert install["deployments"] == [{"name": "operator", "spec": POD}]
    assert (
        install["permissions"] == install["clusterPermissions"] == [{"serviceAccountName": "operator", "rules": RULES}]
    )
    assert [item["name"] for item in spec["customresourcedefinitions"]["owned"]] == [f"things.{bundle.GROUP}"]
    # the collection's OperatorGroup names the operator's own namespace
    assert {"type": "OwnNamespace", "supported": True} in spec["installModes"]


def test_a_bundle_carries_its_objects_and_names_no_image() -> None:
    for item in bundles().values():
        assert item["image"] == ""
        assert [each["kind"] for each in carried(item)] == [
            "ClusterServiceVersion",
            "CustomResourceDefinition",
            "ConfigMap",
        ]
        assert item["name"] == carried(item)[0]["metadata"]["name"]


def test_each_channel_has_its_bundle_and_one_is_the_default() -> None:
    made = bundle.catalog(MADE)
    channels = {
        item["name"]: [entry["name"] for entry in item["entries"]] for item in made if item["schema"] == "olm.channel"
    }
    assert sorted(channels) == sorted([bundle.CHANNEL, bundle.INCOMPLETE])
    assert sorted(name for names in channels.values() for name in names) == sorted(bundles())
    (package,) = (item for item in made if item["schema"] == "olm.package")
    assert (package["name"], package["defaultChannel"]) == (bundle.PACKAGE, bundle.CHANNEL)


def test_one_bundle_requires_what_nobody_owns_and_lets_olm_begin() -> None:
    requires = {
        name: carried(item)[0]["spec"]["customresourcedefinitions"].get("required", [])
        for name, item in bundles().items()
    }
    (lacking,) = (name for name, found in requires.items() if found)
    assert requires[lacking][0]["name"] == bundle.REQUIRED[0]
    assert lacking == f"{bundle.PACKAGE}.v{bundle.INCOMPLETE_VERSION}"
    assert {each["type"] for each in bundles()[lacking]["properties"]} == {
        "olm.package",
        "olm.gvk",
        "olm.bundle.object",
    }


def test_the_configuration_is_that_of_the_chart() -> None:
    assert bundle.configuration(MADE)["spec"] == {"disableDrain": True}


def test_the_inventory_installs_from_the_catalog_of_the_lab() -> None:
    given = yaml.safe_load((ROOT / "inventory/lab-olm/group_vars/all/olm.yml").read_text())
    assert given["operators_by"] == "olm"
    wish = given["operators_packages"][bundle.PACKAGE]
    assert wish == {
        "namespace": description.read().operator_namespace,
        "source": olm.CATALOG,
        "source_namespace": olm.NAMESPACE,
    }
