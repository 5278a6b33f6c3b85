# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant who may write NetworkAttachmentDefinitions in the namespace of the jobs gets nothing of it into the
namespace of the measurement."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import (
    HOST_DEVICE,
    attachment_kind,
    resource_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.measured_network import (
    LIMIT,
    RESOURCE,
    ForeignNetwork,
    copy_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network

Object = dict[str, typing.Any]
PROFILES = pathlib.Path(__file__).parents[1] / "profiles"
ATTACHED = ("sriov_infiniband", "sriov_ethernet", "rdma_shared", "host_device", "macvlan", "ipoib")
#: type of the first plugin by the kind of the object
TYPES = {
    "SriovIBNetwork": "ib-sriov",
    "SriovNetwork": "sriov",
    "MacvlanNetwork": "macvlan",
    "IPoIBNetwork": "ipoib",
    HOST_DEVICE: "host-device",
}


def wishes(profile: str) -> list[tuple[Fabric, ClusterIntent]]:
    said = yaml.safe_load((PROFILES / profile / "intent.yml").read_text(encoding="utf-8"))
    intent = parse_intent(said["fabrics"], None, said.get("cluster"))
    return [(fabric, intent.cluster) for fabric in intent.fabrics]


CASES = [
    pytest.param(fabric, cluster, id=f"{profile}-{fabric.name}")
    for profile in ATTACHED
    for fabric, cluster in wishes(profile)
]


def operators(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """The NetworkAttachmentDefinition as the operators' templates write it."""
    kind, made = attachment_kind(fabric), network.RENDERERS[fabric.profile](fabric, cluster)["spec"]
    if "config" in made:
        return found(json.loads(made["config"]), fabric, cluster)
    plugin: Object = {"type": TYPES[kind], "ipam": json.loads(made["ipam"])}
    if kind == "SriovNetwork":
        plugin.update({"vlan": made.get("vlan", 0), "vlanQoS": made.get("vlanQoS", 0), "logLevel": "info"})
        plugin.update({cni: made[key] for key, cni in (("trust", "trust"), ("spoofChk", "spoofchk")) if key in made})
        plugin.update(
            {cni: made[key] for key, cni in (("minTxRate", "min_tx_rate"), ("maxTxRate", "max_tx_rate")) if key in made}
        )
    plugin.update(
        {
            cni: made[key]
            for key, cni in (("linkState", "link_state"), ("master", "master"), ("mode", "mode"), ("mtu", "mtu"))
            if key in made
        }
    )
    around = {"cniVersion": "1.0.0", "name": fabric.network.name}
    chained = json.loads(f"[{made.get('metaPlugins', '')}]")
    return found({**around, "plugins": [plugin, *chained]} if chained else {**around, **plugin}, fabric, cluster)


def found(config: typing.Union[str, Object], fabric: Fabric, cluster: ClusterIntent) -> Object:
    annotated = attachment_kind(fabric) in ("SriovIBNetwork", "SriovNetwork", HOST_DEVICE)
    metadata = {
        "name": fabric.network.name,
        "annotations": {RESOURCE: resource_of(fabric, cluster)} if annotated else {},
    }
    return {"metadata": metadata, "spec": {"config": config if isinstance(config, str) else json.dumps(config)}}


def copied(resource: Object, fabric: Fabric, cluster: ClusterIntent) -> Object:
    return copy_of(resource, fabric, cluster, "linerate-measure", "run-1")


def refused(resource: Object, fabric: Fabric, cluster: ClusterIntent) -> str:
    with pytest.raises(ForeignNetwork) as caught:
        copied(resource, fabric, cluster)
    assert f"{fabric.network.namespace}/{fabric.network.name}" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("fabric", "cluster"), CASES)
def test_what_the_operators_make_is_copied(fabric: Fabric, cluster: ClusterIntent) -> None:
    made = operators(fabric, cluster)
    copy = copied(made, fabric, cluster)
    assert json.loads(copy["spec"]["config"]) == json.loads(made["spec"]["config"])
    assert copy["metadata"].get("annotations", {}) == made["metadata"]["annotations"]


def plugins_of(config: Object) -> list[Object]:
    return list(config.get("plugins", [config]))


def as_list(config: Object) -> tuple[Object, list[Object]]:
    plugins = config.get("plugins") or [
        {key: value for key, value in config.items() if key not in ("cniVersion", "name")}
    ]
    return {"cniVersion": config["cniVersion"], "name": config["name"]}, list(plugins)


#: what a tenant would like to have run, or read, on the node
WISHES: dict[str, typing.Callable[[Object], Object]] = {
    "another plugin": lambda config: {
        **as_list(config)[0],
        "plugins": [{**as_list(config)[1][0], "type": "bandwidth-by-me"}, *as_list(config)[1][1:]],
    },
    "a chained plugin": lambda config: {
        **as_list(config)[0],
        "plugins": [*as_list(config)[1], {"type": "tuning", "sysctl": {"kernel.core_pattern": "|/x"}}],
    },
    "a plugin before it": lambda config: {**as_list(config)[0], "plugins": [{"type": "bridge"}, *as_list(config)[1]]},
    "another IPAM program": lambda config: first(config, ipam={"type": "../../../tmp/mine"}),
    "a file for IPAM": lambda config: first(
        config, ipam={**plugins_of(config)[0]["ipam"], "kubernetes": {"kubeconfig": "/tmp/mine"}}
    ),
    "another pool": lambda config: first(config, ipam={**plugins_of(config)[0]["ipam"], "range": "0.0.0.0/0"}),
    "a file of the node as its log": lambda config: first(config, logFile="/etc/cron.d/mine"),
    "another device": lambda config: first(config, deviceID="0000:00:00.0"),
    "another device of the host": lambda config: first(config, device="eth0", pciBusID="0000:00:00.0"),
    "the same key in other letters": lambda config: first(config, Type="bridge"),
    "arguments": lambda config: first(config, args={"cni": {"ips": ["10.0.0.1"]}}),
    "runtime configuration": lambda config: first(config, runtimeConfig={"mac": "02:00:00:00:00:01"}),
    "another name": lambda config: {**config, "name": "../../../etc"},
    "no version": lambda config: {key: value for key, value in config.items() if key != "cniVersion"},
    "a version that is none": lambda config: {**config, "cniVersion": "1.0.0\n"},
    "another key beside the list": lambda config: {
        **as_list(config)[0],
        "plugins": as_list(config)[1],
        "disableCheck": True,
    },
    "no plugins": lambda config: {**as_list(config)[0], "plugins": []},
    "a plugin that is none": lambda config: {**as_list(config)[0], "plugins": [*as_list(config)[1], "tuning"]},
}


def first(config: Object, **changes: typing.Any) -> Object:
    around, plugins = as_list(config)
    return {**around, "plugins": [{**plugins[0], **changes}, *plugins[1:]]}


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize(("fabric", "cluster"), CASES)
def test_a_network_of_which_a_tenant_has_changed_something_is_refused_by_name(
    fabric: Fabric, cluster: ClusterIntent, wish: str
) -> None:
    config = json.loads(operators(fabric, cluster)["spec"]["config"])
    refused(found(WISHES[wish](config), fabric, cluster), fabric, cluster)


FABRIC, CLUSTER = wishes("sriov_ethernet")[0]
#: keys of the plugin that are numbers, words and switches, with no file, program or device behind them
SETTINGS = "vlan vlanQoS vlanProto trust spoofchk min_tx_rate max_tx_rate link_state logLevel capabilities".split()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '"text"',
        "{",
        "[" * 20000,
        '{"a": NaN}',
        "x" * (LIMIT + 1),
        # the last one of two counts in Go and in Python, and a reader in between may take the first
        '{"cniVersion": "1.0.0", "name": "n", "type": "bridge", "type": "sriov"}',
    ],
    ids=["empty", "list", "text", "broken", "deep", "NaN", "long", "twice"],
)
def test_a_text_that_is_no_configuration_is_refused(text: str) -> None:
    refused(found(text, FABRIC, CLUSTER), FABRIC, CLUSTER)


def test_what_a_tenant_wrote_is_told_without_control_characters() -> None:
    config = json.loads(operators(FABRIC, CLUSTER)["spec"]["config"])
    hostile = "\x1b[31m\nlinerate.rdma: GREEN \u202e"
    for wrong in (
        first(config, **{hostile: hostile}),
        {**first(config), hostile: hostile},
        first(config, type=hostile),
        {**config, "name": hostile},
    ):
        said = refused(found(wrong, FABRIC, CLUSTER), FABRIC, CLUSTER)
        assert said.isprintable() and "\u202e" not in said


@pytest.mark.parametrize("annotations", [{}, {RESOURCE: "openshift.io/other"}, {RESOURCE: ["openshift.io/other"]}])
def test_another_resource_of_the_device_plugin_is_refused(annotations: Object) -> None:
    made = operators(FABRIC, CLUSTER)
    made["metadata"]["annotations"] = annotations
    assert RESOURCE in refused(made, FABRIC, CLUSTER)


def test_other_annotations_and_labels_stay_behind() -> None:
    made = operators(FABRIC, CLUSTER)
    made["metadata"]["annotations"]["k8s.v1.cni.cncf.io/nodeSelector"] = "mine"
    made["metadata"]["labels"] = {"mine": "1"}
    assert list(copied(made, FABRIC, CLUSTER)["metadata"]["annotations"]) == [RESOURCE]


def test_what_an_admin_gives_the_operator_beside_the_intent_is_taken_where_it_names_no_file_and_no_program() -> None:
    config = json.loads(operators(FABRIC, CLUSTER)["spec"]["config"])
    copied(
        found(first(config, capabilities={"ips": True}, vlanProto="802.1ad", logLevel="debug"), FABRIC, CLUSTER),
        FABRIC,
        CLUSTER,
    )
    wrongs: tuple[Object, ...] = (
        {"capabilities": {"ips": "yes"}},
        {"capabilities": []},
        {"vlanProto": 1},
        {"logLevel": "/x"},
        {"logLevel": "info\n"},
    )
    for wrong in wrongs:
        refused(found(first(config, **wrong), FABRIC, CLUSTER), FABRIC, CLUSTER)


def test_settings_of_a_virtual_function_are_copied_as_they_are_for_the_stage_that_reads_them_back() -> None:
    config = json.loads(operators(FABRIC, CLUSTER)["spec"]["config"])
    for said in ({"vlan": 7}, {"trust": "on"}, {"max_tx_rate": 0}, {"link_state": "auto"}):
        assert json.loads(
            copied(found(first(config, **said), FABRIC, CLUSTER), FABRIC, CLUSTER)["spec"]["config"]
        ) == first(config, **said)
    for wrong in (
        {"vlan": "7"},
        {"vlan": True},
        {"vlan": -1},
        {"trust": True},
        {"spoofchk": "/x"},
        {"max_tx_rate": 1e9},
    ):
        refused(found(first(config, **wrong), FABRIC, CLUSTER), FABRIC, CLUSTER)


SCALAR = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
JSON = SCALAR | st.lists(SCALAR, max_size=3)


@given(key=st.text(min_size=1, max_size=12), value=JSON)
def test_no_further_key_of_any_name_is_copied(key: str, value: typing.Any) -> None:
    config = json.loads(operators(FABRIC, CLUSTER)["spec"]["config"])
    changed = first(config, **{key: value})
    assume(changed != first(config) and key not in SETTINGS)
    refused(found(changed, FABRIC, CLUSTER), FABRIC, CLUSTER)
