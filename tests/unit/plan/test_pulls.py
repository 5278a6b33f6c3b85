# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run would have pulled, out of the intent and of what charts name; and the files with which a mirror is
filled."""

from __future__ import annotations

import re
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pulls import (
    ChartSeen,
    ImageSeen,
    Pulls,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import JobNeeds
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pulled_images import pulled_images
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import (
    OperatorRequests,
    collect_requests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.pulls import collect_charts, collect_pulls
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster import pulls as render

SRIOV: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3", "device": "1021"},
    "virtual_functions": 4,
    "resource_name": "mlx",
    "network": {"name": "net", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    "pods": {"image": "registry.example/tools@sha256:" + "a" * 64},
}
SHARED = {
    **SRIOV,
    "name": "shared",
    "profile": "rdma_shared",
    "virtual_functions": 0,
    "select": {"hcas_per_node": 1, "netdev": ["ens1np0"]},
    "mtu": 9000,
}
NONE = OperatorRequests()
SEEN = {
    "sriov-network-operator": ChartSeen((ImageSeen("ghcr.io/k8snetworkplumbingwg/sriov-network-operator"),)),
    "node-feature-discovery": ChartSeen((ImageSeen("registry.k8s.io/nfd/node-feature-discovery:v0.18.3"),)),
}


def listed(
    *fabrics: dict[str, typing.Any], olm: bool = False, wishes: OperatorRequests = NONE, **more: typing.Any
) -> Pulls:
    intent = parse_intent(list(fabrics) or [SRIOV], None, more.pop("cluster", None))
    return collect_pulls(
        intent, more.pop("job", None), olm, wishes, more.pop("seen", SEEN), more.pop("named", {}), "4.20"
    )


def container(**fields: typing.Any) -> dict[str, typing.Any]:
    return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [fields]}}}}


def test_images_of_containers_and_of_variables_that_name_some() -> None:
    variables = [
        {"name": "SRIOV_CNI_IMAGE", "value": "ghcr.io/site/cni:1"},
        {"name": "PULL_IMAGE", "value": "Always"},
        {"name": "HOME", "value": "/root"},
        {"name": "POD", "valueFrom": {"fieldRef": {}}},
    ]
    found = pulled_images(container(name="operator", image="ghcr.io/site/operator:1", env=variables))
    assert found == (ImageSeen("ghcr.io/site/cni:1"), ImageSeen("ghcr.io/site/operator:1"))


def test_fields_of_nvidias_policies() -> None:
    policy = {
        "kind": "ClusterPolicy",
        "spec": {
            "driver": {
                "repository": "nvcr.io/nvidia",
                "image": "driver",
                "version": "580.95.05",
                "manager": {
                    "repository": "nvcr.io/nvidia/cloud-native",
                    "image": "k8s-driver-manager",
                    "version": "v0.9",
                },
            },
            "toolkit": {
                "repository": "nvcr.io/nvidia/k8s",
                "image": "container-toolkit",
                "version": "sha256:" + "b" * 64,
            },
            "gds": {
                "enabled": False,
                "repository": "nvcr.io/nvidia/cloud-native",
                "image": "nvidia-fs",
                "version": "2",
            },
            "vfioManager": {"repository": "nvcr.io/nvidia/cloud-native", "image": "vfio", "version": "1"},
            "dcgm": {"image": "registry.example/dcgm:4"},
        },
    }
    toolkit = "nvcr.io/nvidia/k8s/container-toolkit@sha256:" + "b" * 64
    assert {(image.name, image.by_system) for image in pulled_images(policy)} == {
        ("nvcr.io/nvidia/driver:580.95.05", True),
        ("nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.9", False),
        (toolkit, False),
        ("registry.example/dcgm:4", False),
    }
    assert "nvcr.io/nvidia/cloud-native/vfio:1" in {
        image.name
        for image in pulled_images({**policy, "spec": {**policy["spec"], "sandboxWorkloads": {"enabled": True}}})  # type: ignore[dict-item]
    }


def test_a_driver_of_a_kind_of_its_own_has_the_system_in_its_tag() -> None:
    driver = {"kind": "NVIDIADriver", "spec": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580"}}
    assert pulled_images(driver) == (ImageSeen("nvcr.io/nvidia/driver:580", True),)


def test_a_definition_names_no_image() -> None:
    assert pulled_images({**container(image="registry.example/none:1"), "kind": "CustomResourceDefinition"}) == ()


@hypothesis.given(
    some.recursive(
        some.none() | some.booleans() | some.text(max_size=8),
        lambda inner: some.lists(inner) | some.dictionaries(some.text(max_size=8), inner),
    )
)
def test_whatever_an_object_holds_it_is_read(data: typing.Any) -> None:
    assert all(image.name for image in pulled_images({"kind": "ClusterPolicy", "spec": data}))


def test_the_image_of_collectives_is_listed_by_its_name_on_the_mirror() -> None:
    wanted = {"image": "registry.example/nccl-tests:1", "cpu": "64", "memory": "512Gi"}
    found = listed(cluster={"collectives": wanted, "mirror": "mirror.example/all"})
    users = {image.name: image.needed_by for image in found.images}
    assert [needed for name, needed in users.items() if "nccl-tests" in name] == [("pods of stage collectives",)]
    assert not [name for image in listed().images for name in (image.name,) if "nccl-tests" in name]


def test_each_image_once_with_all_that_need_it() -> None:
    found = listed(
        SRIOV,
        {**SRIOV, "name": "storage"},
        named={"rdma_observers_image": SRIOV["pods"]["image"], "rdma_job.image": ""},
    )
    users = {image.name: image.needed_by for image in found.images}
    assert users[SRIOV["pods"]["image"]] == ("pods of fabric compute", "pods of fabric storage", "rdma_observers_image")
    # a name without a tag is that of latest, and the file needs one
    assert users["ghcr.io/k8snetworkplumbingwg/sriov-network-operator:latest"] == ("operator sriov-network-operator",)
    assert found.unlisted == ()


def test_images_that_are_never_pulled_are_not_listed() -> None:
    assert not any(
        "tools" in image.name
        for image in listed({**SRIOV, "pods": {**SRIOV["pods"], "image_pull_policy": "Never"}}).images
    )


def test_the_policy_of_the_profiles_is_listed_with_the_repository_of_the_intent() -> None:
    cluster = {"network_operator": {"repository": "registry.example/mellanox", "ofed_driver": "doca3.4.0"}}
    names = {
        image.name: image
        for image in listed(SHARED, cluster=cluster, wishes=collect_requests({}, {}, ["network-operator"])).images
    }
    assert "registry.example/mellanox/k8s-rdma-shared-dev-plugin:network-operator-v26.4.1" in names
    assert names["registry.example/mellanox/doca-driver:doca3.4.0"].by_system


def test_charts_of_helm_with_their_values() -> None:
    found = collect_charts(parse_intent([SHARED], None, None), None, NONE)
    assert {name: chart.version for name, (chart, _values) in found.items()} == {
        "node-feature-discovery": "0.18.3",
        "network-operator": "26.4.1",
    }
    assert found["network-operator"][1]["nfd"] == {"enabled": False}
    assert {chart.reference for chart in listed(SHARED).charts} == {
        "oci://registry.k8s.io/nfd/charts/node-feature-discovery",
        "network-operator",
    }


def test_a_chart_that_lies_here_is_not_pulled() -> None:
    found = listed(wishes=collect_requests({"sriov-network-operator": {"chart": "/srv/chart"}}, {}, []))
    assert "sriov-network-operator" not in str(found.charts)
    assert any("sriov-network-operator" in image.name for image in found.images)


def test_what_somebody_else_installs_is_not_listed() -> None:
    found = listed(wishes=collect_requests({}, {}, ["sriov-network-operator", "node-feature-discovery"]))
    assert found.charts == () and [image.name for image in found.images] == [SRIOV["pods"]["image"]]


@pytest.mark.parametrize("image", ["tools", "Registry Example", "registry.example/UPPER:1"])
def test_a_name_that_says_no_image_leaves_the_list_incomplete(image: str) -> None:
    found = listed(named={"rdma_observers_image": image})
    assert len(found.unlisted) == 1 and "rdma_observers_image" in found.unlisted[0]


def test_no_text_of_a_chart_begins_a_line_of_its_own() -> None:
    """Behind a comment it would be a document of YAML, and the first of the file."""
    found = listed(
        seen={
            **SEEN,
            "sriov-network-operator": ChartSeen(error="x \nquay.io:\r\n images: \u2028{evil/miner: [latest]}\u202e"),
        }
    )
    for told in (*render.render_heads(found, {}).values(), render.format_list(found)):
        assert any("evil/miner" in line for line in told) and all(line.isprintable() for line in told)


def test_a_chart_that_was_not_read_leaves_the_list_incomplete() -> None:
    found = listed(seen={**SEEN, "sriov-network-operator": ChartSeen(error="helm template ended with 1: no such host")})
    assert found.unlisted == ("images of operator sriov-network-operator: helm template ended with 1: no such host",)
    assert all(any("NOT COMPLETE" in line for line in head) for head in render.render_heads(found, {}).values())
    assert any(line.startswith("NOT LISTED") for line in render.format_list(found))


def test_packages_of_olm_in_their_catalogs() -> None:
    cluster = {"host": {"gpudirect": "peermem"}, "node_selector": {"role": "gpu"}}
    wishes = collect_requests(
        {}, {"gpu-operator": {"channel": "v26.3", "version": "gpu-operator-certified.v26.3.0"}}, []
    )
    found = listed(olm=True, cluster=cluster, wishes=wishes)
    assert found.charts == ()
    assert render.render_image_set(found)["mirror"]["operators"] == [
        {
            "catalog": "registry.redhat.io/redhat/redhat-operator-index:v4.20",
            "packages": [{"name": "nfd"}, {"name": "sriov-network-operator"}],
        },
        {
            "catalog": "registry.redhat.io/redhat/certified-operator-index:v4.20",
            "packages": [
                {
                    "name": "gpu-operator-certified",
                    "defaultChannel": "v26.3",
                    "channels": [{"name": "v26.3", "minVersion": "26.3.0", "maxVersion": "26.3.0"}],
                }
            ],
        },
    ]
    assert any("oc-mirror knows" in line for line in render.render_heads(found, {})[render.SKOPEO])


@pytest.mark.parametrize("version", ["gpu-rhmp.v26.3.0", "gpu-operator-certified.v26.3.0", "26.3.0"])
def test_version_of_a_package_of_another_name_is_read_from_its_service_version(version: str) -> None:
    wishes = collect_requests({}, {"gpu-operator": {"package": "gpu-rhmp", "version": version}}, [])
    found = listed(olm=True, cluster={"host": {"gpudirect": "peermem"}}, wishes=wishes)
    assert [item.version for item in found.packages if item.package == "gpu-rhmp"] == ["26.3.0"]


def test_a_catalog_of_the_clusters_own_is_told() -> None:
    found = listed(olm=True, wishes=collect_requests({}, {"sriov-network-operator": {"source": "mirrored"}}, []))
    assert "mirrored" in found.unlisted[0] and "sriov-network-operator" not in str(found.packages)


@pytest.mark.parametrize("olm", [False, True])
def test_what_is_installed_by_hand_is_a_note(olm: bool) -> None:
    found = listed(olm=olm, job=JobNeeds("PyTorchJob"))
    assert any("training-operator must be installed manually: Run kubectl apply" in note for note in found.notes)
    assert found.unlisted == ()


def test_file_of_skopeo() -> None:
    cluster = {"network_operator": {"ofed_driver": "doca3.4.0"}, "node_selector": {"role": "gpu"}}
    found = listed(SHARED, SRIOV, cluster=cluster, seen={**SEEN, "network-operator": ChartSeen()})
    content = render.render_sync(found)
    assert content["registry.example"]["images"]["tools"] == ["sha256:" + "a" * 64]
    # a chart of an OCI registry is an image there
    assert content["registry.k8s.io"]["images"]["nfd/charts/node-feature-discovery"] == ["0.18.3"]
    (expression,) = content["nvcr.io"]["images-by-tag-regex"].values()
    assert re.search(expression, "doca3.4.0-ubuntu24.04-amd64") and not re.search(expression, "doca3x4.0-rhel9")
    assert "mellanox/doca-driver" not in content["nvcr.io"]["images"]


def test_file_of_oc_mirror_and_the_commands_beside_it() -> None:
    found = listed(
        SHARED,
        seen={
            **SEEN,
            "network-operator": ChartSeen((ImageSeen("nvcr.io/nvidia/cloud-native/network-operator:v26.4.1"),)),
        },
    )
    mirror = render.render_image_set(found)["mirror"]
    assert mirror["helm"]["repositories"] == [
        {
            "name": "charts-1",
            "url": "https://helm.ngc.nvidia.com/nvidia",
            "charts": [{"name": "network-operator", "version": "26.4.1"}],
        }
    ]
    assert {"name": "nvcr.io/nvidia/cloud-native/network-operator:v26.4.1"} in mirror["additionalImages"]
    assert render.render_commands(found, {}) == (
        "helm pull network-operator --repo https://helm.ngc.nvidia.com/nvidia --version 26.4.1",
        "helm push network-operator-26.4.1.tgz oci://MIRROR/helm.ngc.nvidia.com/nvidia",
    )
    assert any(
        "skopeo copy --all docker://registry.k8s.io/nfd/charts/node-feature-discovery:0.18.3" in line
        for line in render.render_heads(found, {})[render.OC_MIRROR]
    )


def test_with_a_mirror_the_commands_name_it() -> None:
    found = listed(SHARED, SRIOV, seen={**SEEN, "network-operator": ChartSeen()})
    everything, mapping = (
        {"*": "mirror.example/m"},
        {"helm.ngc.nvidia.com": "mirror.example/n", "registry.example": "mirror.example/r"},
    )
    assert "oci://mirror.example/m/helm.ngc.nvidia.com/nvidia" in render.render_commands(found, everything)[1]
    assert render.render_heads(found, everything)[render.SKOPEO][0].endswith(" skopeo-sync.yml mirror.example/m")
    # skopeo sync knows one layout, so that of oc-mirror takes a command for each image
    name = SRIOV["pods"]["image"]
    assert (
        f"skopeo copy --all docker://{name} docker://{name.replace('registry.example', 'mirror.example/r')}"
        in render.render_commands(found, mapping)
    )
    assert render.render_commands(found, mapping)[-1].endswith("oci://mirror.example/n/nvidia")


def test_what_the_intent_names_on_the_mirror_is_not_copied() -> None:
    mirror = {"*": "mirror.example/m"}
    found = listed({**SRIOV, "pods": {"image": "mirror.example/m/site/tools:1"}})
    copied = render.to_copy(found, mirror)
    assert len(found.images) == len(copied.images) + 1 and "mirror.example" not in render.render_sync(copied)
    assert (
        render.render_copy("mirror.example/m/site/tools:1", mirror)
        == "skopeo copy --all docker://SOURCE docker://mirror.example/m/site/tools:1"
    )
    assert render.to_copy(found, {}) == found
