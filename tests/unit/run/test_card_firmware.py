# SPDX-License-Identifier: GPL-3.0-or-later

"""The number of virtual functions in the firmware of a card (NUM_OF_VFS), which another operator sets too, or of which
another port of the card needs more.
"""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import check_plan, may_go_on
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import NicDevice
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import Policy
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.roll import list_removal_blockers
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.card_templates import refuse_conflicts
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import NOW, POLICIES
from ansible_collections.linerate.rdma.tests.unit.run.test_undrained_changes import (
    BARE,
    NO_CLAIMS,
    OPERATOR,
    PF,
    Data,
    WithFields,
)

GROUP, SRIOV = "configuration.net.nvidia.com", "sriovnetwork.openshift.io"
ADDRESS = PF["pciAddress"]
OTHER = f"{ADDRESS[:-1]}1"
POLICY = dataclasses.replace(NOW, vendor="15b3", device="1021", root_devices=(ADDRESS,), pf_names=(), vfs_count=4)
REBOOT = ClusterIntent(disruption="reboot", operator_namespace="ops")
PATCH = (
    "kubectl patch sriovoperatorconfig -n ops default --type merge -p"
    """ '{"spec":{"disablePlugins":["mellanox"]}}'"""
)
DISABLED: Data = {**OPERATOR, "spec": {"disablePlugins": ["mellanox"]}}
FORBIDDEN = ApiError(403, "Forbidden", "templates are forbidden", "GET")


class Served(WithFields):
    """A cluster that serves the kinds of NVIDIA's NIC configuration operator.

    :ivar groups: API groups that it serves
    """

    def __init__(self, groups: typing.Container[str] = (GROUP, SRIOV), **changes: typing.Any) -> None:
        super().__init__(**changes)
        self.groups = groups

    def serves(self, group: str) -> bool:
        return group in self.groups


def template(
    number: typing.Any = 8, namespace: str = "nvidia", labels: typing.Any = None, **selector: typing.Any
) -> Data:
    return {
        "kind": "NicConfigurationTemplate",
        "metadata": {"name": "t", "namespace": namespace, "labels": {}},
        "spec": {
            "nodeSelector": labels or {},
            "nicSelector": {"nicType": "1021", **selector},
            "template": {"numVfs": number, "linkType": "Infiniband"},
        },
    }


def device(serial: str = "MT1", namespace: str = "nvidia") -> Data:
    return {
        "kind": "NicDevice",
        "metadata": {"name": "kl-a-1021-mt1", "namespace": namespace},
        "spec": {},
        "status": {"node": "kl-a", "type": "1021", "serialNumber": serial, "ports": [{"pci": ADDRESS}]},
    }


def state(other: int = 0, total: int = 8) -> Data:
    """Return a node with a card of two ports: the first one has no virtual functions, the other one has functions
    without a policy.

    :param other: number of virtual functions of the other port
    :param total: number of virtual functions in the firmware
    """
    made = copy.deepcopy(BARE)
    (port,) = made["status"]["interfaces"]
    port.update(totalvfs=total, vendor="15b3", deviceID="1021", driver="mlx5_core")
    made["status"]["interfaces"].append(
        {**copy.deepcopy(port), "name": "storage1", "pciAddress": OTHER, "numVfs": other}
    )
    return made


def cluster(groups: typing.Container[str] = (GROUP, SRIOV), **objects: typing.Any) -> Served:
    everything: Data = {
        "SriovNetworkNodeState": (state(),),
        "SriovNetworkNodePolicy": (),
        "SriovOperatorConfig": (OPERATOR,),
        "ResourceClaim": NO_CLAIMS,
        "ResourceClaimTemplate": NO_CLAIMS,
        "NicConfigurationTemplate": (),
        "Pod": (),
    }
    return Served(groups, **{**everything, **objects})


def plan(api: Served, policy: Policy = POLICY) -> DisruptionPlan:
    return read_plan(typing.cast(Api, api), "ops", RenderedObjects((policy,)), ("kl-a",), REBOOT, {})


def judge(planned: DisruptionPlan) -> list[Finding]:
    return [one for one in check_plan(REBOOT, planned, ("kl-a",)) if one.status in ("fail", "unknown")]


@pytest.mark.parametrize("name", ["linerate-a", "of-another-team"])
def test_a_template_with_another_number_keeps_the_policies_from_being_applied(name: str) -> None:
    theirs = template()
    theirs["metadata"]["name"] = name
    planned = plan(cluster(NicConfigurationTemplate=(theirs,)))
    (found,) = judge(planned)
    assert (found.check, found.subject, found.status) == ("network.drain", "kl-a", "fail")
    assert f"NicConfigurationTemplate nvidia/{name} sets NUM_OF_VFS 8 for {ADDRESS}" in found.measured
    assert "the SR-IOV operator sets 4" in found.measured and PATCH in found.measured
    assert "PodDisruptionBudget" not in found.remedy and "run stage network again" in found.remedy
    assert not may_go_on(REBOOT, planned, ("kl-a",))


def test_the_command_keeps_the_plugins_that_are_disabled_already() -> None:
    other = {**OPERATOR, "spec": {"disablePlugins": ["intel"]}}
    (found,) = judge(plan(cluster(SriovOperatorConfig=(other,), NicConfigurationTemplate=(template(),))))
    assert '{"spec":{"disablePlugins":["intel","mellanox"]}}' in found.measured


@pytest.mark.parametrize(
    ("one", "devices", "refused"),
    [
        (template(), (), True),
        (template(4), (), False),
        (template("x"), (), True),
        (template(nicType="101b"), (), False),
        (template(labels={"kl/none": "x"}), (), False),
        (template(labels={"kl/sriov": "yes"}), (), True),
        # a card is configured as a whole
        (template(pciAddresses=[OTHER]), (), True),
        (template(pciAddresses=["0000:99:00.0"]), (), False),
        # the serial number of the card is not known, or known
        (template(serialNumbers=["MT2"]), (), True),
        (template(serialNumbers=["MT2"]), (device(),), False),
        (template(serialNumbers=["MT2", "MT1"]), (device(),), True),
        # the operator reads templates in its own namespace only
        (template(namespace="team-x"), (device(),), False),
        (template(), (device(namespace="nvidia"),), True),
    ],
)
def test_a_template_counts_for_the_cards_that_it_selects(one: Data, devices: tuple[Data, ...], refused: bool) -> None:
    node = {**cluster().objects["Node"][0]}
    node["metadata"] = {**node["metadata"], "labels": {**node["metadata"]["labels"], "kl/sriov": "yes"}}
    found = judge(plan(cluster(Node=(node,), NicConfigurationTemplate=(one,), NicDevice=devices)))
    assert any("NicConfigurationTemplate" in item.measured for item in found) is refused


def test_without_the_plugin_of_the_operator_templates_are_not_read() -> None:
    api = cluster(SriovOperatorConfig=(DISABLED,), NicConfigurationTemplate=FORBIDDEN)
    assert judge(plan(api)) == []
    assert "NicConfigurationTemplate" not in {kind for kind, _namespace in api.asked}


def test_a_policy_for_functions_of_another_program_writes_no_firmware() -> None:
    external = dataclasses.replace(POLICY, external=True)
    assert not any(
        "NUM_OF_VFS" in one.measured for one in judge(plan(cluster(NicConfigurationTemplate=(template(),)), external))
    )


@pytest.mark.parametrize("answer", [FORBIDDEN, ApiError(404, "NotFound", "no version v1alpha1", "GET")])
@pytest.mark.parametrize("served", [False, True])
def test_templates_that_cannot_be_read_are_unknown_if_the_operator_is_there(answer: ApiError, served: bool) -> None:
    found = judge(plan(cluster((GROUP,) if served else (), NicConfigurationTemplate=answer)))
    assert [(one.subject, one.status) for one in found] == (
        [("cluster NicConfigurationTemplate", "unknown")] if served else []
    )


def test_a_node_that_does_not_change_is_refused_if_it_is_one_of_the_inventory() -> None:
    for listed in (True, False):
        there = copy.deepcopy(state(total=4))
        policy = dataclasses.replace(POLICY, node_selector={"kl/none": "x"})
        theirs = {**POLICIES[0], "spec": {**POLICIES[0]["spec"], **_spec(4)}}
        api = cluster(
            SriovNetworkNodeState=(_succeeded(there),),
            SriovNetworkNodePolicy=(theirs,),
            NicConfigurationTemplate=(template(),),
        )
        rendered = RenderedObjects((dataclasses.replace(policy, name="ours"),))
        planned = read_plan(typing.cast(Api, api), "ops", rendered, ("kl-a",) if listed else (), REBOOT, {})
        (node,) = planned.nodes
        assert node.action == "nothing" and bool(node.blockers) is listed


def _spec(number: int) -> Data:
    return {
        "nicSelector": {"vendor": "15b3", "deviceID": "1021", "rootDevices": [ADDRESS]},
        "numVfs": number,
    }


def _succeeded(there: Data, number: int = 4) -> Data:
    """Return the state of a node after the operator has applied the policy of ``_spec``."""
    spec = POLICIES[0]["spec"]
    group = {
        "policyName": POLICIES[0]["metadata"]["name"],
        "resourceName": spec["resourceName"],
        "deviceType": spec.get("deviceType", "netdevice"),
        "vfRange": f"0-{number - 1}",
    }
    wanted = {"pciAddress": ADDRESS, "name": PF["name"], "numVfs": number, "vfGroups": [group]}
    for key in ("mtu", "linkType", "eSwitchMode"):
        if spec.get(key):
            wanted[key] = spec[key]
    if spec.get("mtu"):
        group["mtu"] = spec["mtu"]
    there["spec"] = {"interfaces": [wanted]}
    there["status"]["syncStatus"] = "Succeeded"
    there["status"]["interfaces"][0]["numVfs"] = number
    return there


# The other port of a card


@pytest.mark.parametrize(
    ("functions", "operator", "refused"),
    [(16, OPERATOR, True), (4, OPERATOR, False), (0, OPERATOR, False), (16, DISABLED, False)],
)
def test_functions_of_the_other_port_that_a_smaller_number_takes_are_a_loss(
    functions: int, operator: Data, refused: bool
) -> None:
    planned = plan(cluster(SriovNetworkNodeState=(state(functions, 16),), SriovOperatorConfig=(operator,)))
    found = [one for one in judge(planned) if "NUM_OF_VFS" in one.measured and one.check == "network.drain"]
    assert bool(found) is refused
    for one in found:
        assert f"storage1 {OTHER} has 16 virtual functions without a policy" in one.measured
        assert "sets NUM_OF_VFS 4 for the card" in one.measured and PATCH in one.measured


def test_functions_of_a_policy_on_the_other_port_count_in_the_number() -> None:
    both = dataclasses.replace(POLICY, root_devices=(ADDRESS, OTHER))
    assert judge(plan(cluster(SriovNetworkNodeState=(state(16, 16),)), both)) == []


def remove(functions: int, left: bool = False, operator: typing.Optional[Data] = None) -> str:
    """Return the reasons against the removal of the policy of a card whose other port has functions without a policy.

    :param left: whether a policy remains on the card, with 8 functions
    :param operator: SriovOperatorConfig; None for the usual one
    """
    policy = {**POLICIES[0], "spec": {**POLICIES[0]["spec"], **_spec(4)}}
    policy["metadata"] = {**policy["metadata"], "namespace": "ops"}
    remains = {**policy, "metadata": {**policy["metadata"], "name": "remains"}}
    remains["spec"] = {**policy["spec"], "numVfs": 8}
    api = cluster(
        SriovNetworkNodePolicy=(policy, *((remains,) if left else ())),
        SriovNetworkNodeState=(_succeeded(state(functions, 16)),),
        SriovOperatorConfig=(operator or OPERATOR,),
    )
    return " ".join(list_removal_blockers(typing.cast(Api, api), [policy], (), REBOOT))


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        ((16,), 0),
        ((1,), 0),
        ((0,), None),
        ((16, True), 8),
        ((8, True), None),
        ((16, False, DISABLED), None),
    ],
)
def test_the_removal_of_a_policy_that_takes_functions_of_the_other_port_is_refused(
    arguments: typing.Any, number: typing.Optional[int]
) -> None:
    told = remove(*arguments)
    assert ("NUM_OF_VFS" in told) is (number is not None)
    if number is not None:
        assert f"kl-a: storage1 {OTHER} has" in told and f"sets NUM_OF_VFS {number} for the card" in told
        assert PATCH in told


# Templates before they are applied


@pytest.mark.parametrize(
    ("number", "policy", "changes", "refused"),
    [
        (8, 4, {}, True),
        (4, 4, {}, False),
        (8, None, {}, False),
        (8, 4, {"SriovOperatorConfig": (DISABLED,)}, False),
        (8, 4, {"groups": (GROUP,)}, False),
    ],
)
def test_a_template_is_not_applied_beside_a_policy_with_another_number(
    number: int, policy: typing.Optional[int], changes: Data, refused: bool
) -> None:
    theirs = {**POLICIES[0], "spec": {**POLICIES[0]["spec"], **_spec(policy or 0)}}
    api = typing.cast(Api, cluster(**{"SriovNetworkNodePolicy": (theirs,) if policy else (), **changes}))
    devices = (NicDevice("d", "kl-a", (ADDRESS,), serial="MT1"),)
    for serials, counts in ((["MT1"], True), (["MT2"], False)):
        made = template(number, serialNumbers=serials)
        if refused and counts:
            with pytest.raises(RdmaError) as told:
                refuse_conflicts(api, "ops", [made], devices)
            assert f"kl-a: NicConfigurationTemplate nvidia/t sets NUM_OF_VFS 8 for {ADDRESS}" in told.value.seen
            assert PATCH in told.value.seen and "run stage platform again" in told.value.remedy
        else:
            refuse_conflicts(api, "ops", [made], devices)
