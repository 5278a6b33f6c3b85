# SPDX-License-Identifier: GPL-3.0-or-later

"""The teardown's proof."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ObservedText, Roll
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Workload
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts, SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import LeftArguments
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import ObservedSettings
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import RetainedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.recognition import name_operator
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    OperatorFacts,
    OperatorInstallation,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.busy_nodes import keep_busy_operator
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.users import keep_operator
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

FABRICS = [
    {
        "name": "storage",
        "profile": "sriov_ethernet",
        "select": {"hcas_per_node": 1},
        "virtual_functions": 4,
        "resource_name": "igb",
        "network": {"name": "net", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    }
]
INTENT = parse_intent(FABRICS)
GONE = SyncFacts(True, False, 9.0, (SyncNode("storage", "worker-1", "ready", "no virtual function"),))


def statuses(facts: Facts) -> list[tuple[str, str]]:
    """All but those on the nodes' drop-ins and kernel arguments, on pools and on what stays, which have tests of their
    own."""
    own = ("teardown.drop_in", "teardown.kernel_arguments", "teardown.roll", "teardown.stays")
    return [
        (finding.check.split(".")[1], finding.status) for finding in check(INTENT, facts) if finding.check not in own
    ]


def removed(action: str, refusal: str = "") -> tuple[AppliedObject, ...]:
    return (AppliedObject("Pod", "p", "test", "storage", action, refusal),)


@pytest.mark.parametrize(
    ("action", "status"),
    [("deleted", "pass"), ("absent", "pass"), ("released", "pass"), ("refused", "fail"), ("", "fail")],
)
def test_objects(action: str, status: str) -> None:
    assert statuses(Facts(("worker-1",), removed(action), GONE)) == [("object", status), ("virtual_functions", "pass")]


def test_a_second_run_has_nothing_to_take_back() -> None:
    assert statuses(Facts(("worker-1",), (), GONE)) == [("object", "pass"), ("virtual_functions", "pass")]


def test_what_became_of_the_objects_has_to_be_told() -> None:
    """A list that nobody wrote is none without an object."""
    found = check(INTENT, Facts(("worker-1",), None, GONE))[0]
    assert (found.check, found.subject, found.status, found.measured) == (
        "teardown.object",
        "objects",
        "unknown",
        "results of the deletions not read",
    )
    assert "so the remaining objects are unknown" in found.why and found.remedy == "Run the teardown again."


@pytest.mark.parametrize(
    "host",
    [
        {},
        {"memlock": {"by": "machine_config", "limit_gib": 8}},
        {"kubelet": {"topology_manager_policy": "restricted"}},
        {"kernel_arguments": ["iommu=pt"]},
    ],
)
def test_pools_that_lose_a_machine_config_have_to_be_looked_at(host: dict[str, typing.Any]) -> None:
    """Whether the intent has settings of the host: an earlier one may have had some."""
    intent = parse_intent(FABRICS, None, {"host": host})
    (found,) = (item for item in check(intent, Facts(("worker-1",), (), GONE)) if item.check == "teardown.roll")
    assert (found.subject, found.status, found.measured) == (
        "MachineConfigPools",
        "unknown",
        "update of the machines after the removal not checked",
    ) and "whether the nodes returned after their removal" in found.why
    assert [
        item for item in check(intent, Facts(("worker-1",), (), GONE, rolls=())) if item.check == "teardown.roll"
    ] == []


def test_machine_configs_that_could_not_be_looked_for_are_unknown() -> None:
    facts = Facts(("worker-1",), (), GONE, rolls=(), hosts_unread=("GET kubeletconfigs: forbidden",))
    (found,) = (item for item in check(INTENT, facts) if item.subject == "MachineConfigs and KubeletConfigs")
    assert (found.check, found.status) == ("teardown.object", "unknown") and "GET kubeletconfigs: forb" in found.why
    assert "kubectl get machineconfigs,kubeletconfigs -l app.kubernetes.io/managed-by=linerate.rdma" in found.remedy


def test_functions_that_are_left_and_nodes_that_nobody_looked_at() -> None:
    left = SyncFacts(False, True, 300.0, (SyncNode("storage", "worker-1", "waiting", "0000:01:00.0 has 4"),))
    assert statuses(Facts(("worker-1",), (), left))[1] == ("virtual_functions", "fail")
    assert statuses(Facts(("worker-1",), (), None))[1] == ("virtual_functions", "unknown")


def test_definitions_that_helm_leaves_are_named_with_the_command_that_deletes_them() -> None:
    names = ("sriovnetworks.sriovnetwork.openshift.io", "pods.example", "sriovibnetworks.sriovnetwork.openshift.io")
    found = check(INTENT, Facts((), (), GONE, OperatorFacts(names, (), (), ()), True))
    (stays,) = [item for item in found if item.check == "teardown.stays" and "definitions" in item.subject]
    assert stays.status == "warn" and "2 definitions" in stays.measured and "pods.example" not in stays.measured
    assert stays.remedy.endswith(f"kubectl delete crd {names[2]} {names[0]}")
    there = OperatorFacts(names, (OperatorInstallation(Workload("op", "ns", 1, 1)),), (), ())
    assert not any("definitions" in item.subject for item in check(INTENT, Facts((), (), GONE, there, True)))
    kept = tuple(RetainedObject(f"CustomResourceDefinition {name}", "1 of its objects") for name in names)
    told = check(INTENT, Facts((), (), GONE, OperatorFacts(names, (), (), ()), True, stays=kept))
    assert not any("definitions" in item.subject for item in told), "each has a finding of its own"
    remedies = [item.remedy for item in told if item.subject == f"CustomResourceDefinition {names[0]}"]
    assert len(remedies) == 1 and remedies[0].endswith(f"kubectl delete crd {names[0]}")


@pytest.mark.parametrize(
    ("operators", "status"),
    [
        (OperatorFacts((), (), (), ()), "pass"),
        (OperatorFacts((), (OperatorInstallation(Workload("op", "ns", 1, 1)),), (), ()), "fail"),
        (OperatorFacts((), (), (), (), errors=("forbidden",)), "unknown"),
        (None, "unknown"),
    ],
)
def test_operator(operators: typing.Optional[OperatorFacts], status: str) -> None:
    assert statuses(Facts((), (), GONE, operators, True))[-1] == ("operator", status)


@pytest.mark.parametrize(
    ("seen", "status", "why"),
    [
        (ObservedText("absent"), "pass", ""),
        (ObservedText("file"), "fail", "still exists"),
        (
            ObservedText("absent", "failed: Remove the drop-in"),
            "unknown",
            "is gone and containerd runs without it: failed: Remove the drop-in",
        ),
        (
            ObservedText("file", "failed: Remove the drop-in"),
            "unknown",
            "is gone and containerd runs without it: failed: Remove the drop-in",
        ),
        (
            ObservedText(error="unreachable: No route to host"),
            "unknown",
            "is gone and containerd runs without it: unreachable: No route to host",
        ),
        (None, "unknown", "is gone and containerd runs without it: the node was not queried"),
    ],
)
def test_drop_ins_on_the_nodes(seen: typing.Optional[ObservedText], status: str, why: str) -> None:
    findings = check(INTENT, Facts(("worker-1",), (), GONE, drop_ins={"worker-1": seen} if seen else {}))
    (finding,) = (item for item in findings if item.check == "teardown.drop_in")
    assert (finding.subject, finding.status) == ("worker-1", status)
    assert why in finding.why
    if status == "unknown":
        # the file is removed last, so that a second teardown finds it
        assert (
            "run the teardown again: it restarts containerd before it removes the file. To remove the drop-in by hand"
            " instead, run on worker-1, as root: rm -f /etc" in finding.remedy
        )
        assert finding.remedy.endswith(" && systemctl daemon-reload && systemctl restart containerd")


@pytest.mark.parametrize(
    ("seen", "status", "measured", "why"),
    [
        (LeftArguments(()), "pass", "none", ""),
        (
            LeftArguments(("iommu=pt", "quiet")),
            "fail",
            "iommu=pt quiet",
            "added these arguments, and the teardown could not remove them",
        ),
        (
            LeftArguments(error="unreachable: No route to host"),
            "unknown",
            "kernel arguments not read",
            "still set for the next boot: unreachable: No route to host.",
        ),
        (
            LeftArguments((), "failed: update-grub"),
            "unknown",
            "kernel arguments not read",
            "still set for the next boot: failed: update-grub.",
        ),
        (LeftArguments(), "unknown", "kernel arguments not read", "still set for the next boot: no data was returned."),
        (None, "unknown", "kernel arguments not read", "still set for the next boot: the node was not queried."),
    ],
)
def test_kernel_arguments_of_the_next_boot(
    seen: typing.Optional[LeftArguments], status: str, measured: str, why: str
) -> None:
    facts = Facts(("worker-1",), (), GONE, kernel_arguments={"worker-1": seen} if seen else {})
    (finding,) = (item for item in check(INTENT, facts) if item.check == "teardown.kernel_arguments")
    assert (finding.subject, finding.status, finding.measured) == ("worker-1", status, measured) and why in finding.why
    if status != "pass":
        assert (
            "un the teardown again" in finding.remedy
            and "rm /etc/default/grub.d/99-linerate.cfg && update-grub" in finding.remedy
        )
        assert (
            "grubby --update-kernel=ALL --remove-args=" in finding.remedy
            and "/etc/linerate-rdma/kernel-arguments" in finding.remedy
        )


def told(facts: Facts, intent: Intent = INTENT) -> list[tuple[str, ...]]:
    """Check, subject and status of each finding."""
    return [(finding.check, finding.subject, finding.status) for finding in check(intent, facts)]


def test_without_a_node_nothing_is_proven_of_the_nodes() -> None:
    assert told(Facts((), (), GONE, left=OperatorsSeen(), rolls=()))[1:] == [
        ("teardown.virtual_functions", "storage inventory", "unknown"),
        ("teardown.drop_in", "inventory", "unknown"),
        ("teardown.kernel_arguments", "inventory", "unknown"),
    ]


def test_each_finding_accuses_its_own_object_and_node() -> None:
    """A node that is left is not excused by one that is not."""
    sync = SyncFacts(
        True,
        False,
        9.0,
        (SyncNode("other", "worker-2", "ready", ""), *GONE.nodes, SyncNode("storage", "worker-3", "waiting", "has 4")),
    )
    facts = Facts(
        ("worker-1", "worker-2", "worker-3"),
        (*removed("deleted"), AppliedObject("Namespace", "test", action="refused", refusal="no")),
        sync,
        drop_ins={"worker-1": ObservedText("absent"), "worker-2": ObservedText("file")},
        kernel_arguments={"worker-1": LeftArguments(()), "worker-3": LeftArguments(("quiet",))},
        rolls=(Roll("worker", 1, "b", 3, 3),),
        roll_error="nothing was rendered",
        left=OperatorsSeen(),
    )
    assert told(facts) == [
        ("teardown.object", "Pod test/p", "pass"),
        ("teardown.object", "Namespace test", "fail"),
        ("teardown.virtual_functions", "storage worker-1", "pass"),
        ("teardown.virtual_functions", "storage worker-2", "unknown"),
        ("teardown.virtual_functions", "storage worker-3", "fail"),
        ("teardown.roll", "MachineConfigPools", "fail"),
        ("teardown.roll", "MachineConfigPool worker", "pass"),
        ("teardown.drop_in", "worker-1", "pass"),
        ("teardown.drop_in", "worker-2", "fail"),
        ("teardown.drop_in", "worker-3", "unknown"),
        ("teardown.kernel_arguments", "worker-1", "pass"),
        ("teardown.kernel_arguments", "worker-2", "unknown"),
        ("teardown.kernel_arguments", "worker-3", "fail"),
    ]


def test_a_fabric_without_functions_leaves_none() -> None:
    macvlan = dataclasses.replace(INTENT.fabrics[0], profile="macvlan", virtual_functions=0, resource_name="")
    seen = {"drop_ins": {"worker-1": ObservedText("absent")}, "kernel_arguments": {"worker-1": LeftArguments(())}}
    gone: dict[str, typing.Any] = {**seen, "left": OperatorsSeen(), "rolls": ()}
    assert told(Facts(("worker-1",), removed("deleted"), **gone), dataclasses.replace(INTENT, fabrics=(macvlan,))) == [
        ("teardown.object", "Pod test/p", "pass"),
        ("teardown.drop_in", "worker-1", "pass"),
        ("teardown.kernel_arguments", "worker-1", "pass"),
    ]


def test_what_an_observer_sees_it_can_not_take_back() -> None:
    seen = {
        "worker-1": ObservedText("file"),
        "worker-2": ObservedText(error="unreachable: node worker-2 has no observer (image)"),
        "worker-3": ObservedText("absent"),
    }
    facts = Facts(
        ("worker-1", "worker-2", "worker-3", "worker-4"),
        (),
        GONE,
        drop_ins=seen,
        by_pods=("worker-1", "worker-2", "worker-3"),
    )
    first, second, third, fourth = (item for item in check(INTENT, facts) if item.check == "teardown.drop_in")
    assert (first.status, second.status, third.status, fourth.status) == ("fail", "unknown", "pass", "unknown")
    path = "/etc/systemd/system/containerd.service.d/linerate-memlock.conf"
    assert (
        f"On worker-1, as root: rm {path} && systemctl daemon-reload && systemctl restart containerd."
        " Or let Ansible reach the node by ssh again." in first.remedy
    )
    assert (
        "changes nothing on the node" in first.why
        and "has no observer (image)" in second.why
        and f"ls {path} on worker-2" in second.remedy
    )
    # in check mode nothing was taken back, and of the nodes by ssh nothing is known
    checked = dataclasses.replace(facts, check_mode=True)
    found = [item for item in check(INTENT, checked) if item.check == "teardown.drop_in"]
    assert [(item.subject, item.status) for item in found] == [
        ("worker-1", "fail"),
        ("worker-2", "unknown"),
        ("worker-3", "pass"),
    ]


@pytest.mark.parametrize("by_pods", [(), ("worker-1",)])
@pytest.mark.parametrize(
    ("state", "status", "why"),
    [
        ("of intent storage", "warn", "was written by the intent 'storage'"),
        ("without an intent", "warn", "was written by an earlier release"),
        ("of intent compute", "fail", ""),
        ("file", "fail", ""),
    ],
)
def test_a_drop_in_of_another_intent_stays_and_is_named(
    state: str, status: str, why: str, by_pods: tuple[str, ...]
) -> None:
    intent = parse_intent(FABRICS, None, {"intent_name": "compute"})
    facts = Facts(("worker-1",), (), GONE, drop_ins={"worker-1": ObservedText(state)}, by_pods=by_pods)
    (finding,) = (item for item in check(intent, facts) if item.check == "teardown.drop_in")
    assert finding.status == status and why in finding.why
    assert "systemctl restart containerd" in finding.remedy


def test_settings_of_another_intent_stay_and_are_named() -> None:
    intent = parse_intent(FABRICS, None, {"intent_name": "compute", "tuning": {"set": True}})
    stays = ["/etc/sysctl.d/90-linerate-rdma.conf of the intent 'storage'", "/etc/x; reboot of the intent 'y'"]
    seen = {"worker-1": ObservedSettings({"changes": [], "stays": stays})}
    facts = Facts(("worker-1",), (), GONE, kernel_settings=seen)
    (finding,) = (item for item in check(intent, facts) if item.check == "teardown.settings")
    assert finding.status == "warn" and "of the intent 'storage'" in finding.why
    # a node names files, and no commands
    assert finding.remedy.endswith("run on the node, as root: rm -f /etc/sysctl.d/90-linerate-rdma.conf")


def test_kernel_arguments_that_an_observer_sees_it_can_not_take_back() -> None:
    names = ("worker-1", "worker-2", "worker-3")
    seen = {
        "worker-1": LeftArguments(("iommu=pt", "x" * 5000)),
        "worker-2": LeftArguments(error="unreachable: node worker-2 has no observer (image)"),
        "worker-3": LeftArguments(()),
    }
    facts = Facts(names, (), GONE, kernel_arguments=seen, by_pods=names)
    for judged in (facts, dataclasses.replace(facts, check_mode=True)):
        first, second, third = (item for item in check(INTENT, judged) if item.check == "teardown.kernel_arguments")
        assert [(item.subject, item.status) for item in (first, second, third)] == list(
            zip(names, ("fail", "unknown", "pass"))
        )
        assert (
            first.why.startswith("The module kernel_arguments added iommu=pt xx")
            and "(5009 characters) when the run reached the node by ssh." in first.why
        )
        assert (
            "The run now reaches the node by a pod that inspects it, which changes nothing on the node." in first.why
            and len(first.why) < 600
        )
        assert first.remedy.startswith(
            "Run on worker-1, as root: rm /etc/default/grub.d/99-linerate.cfg && update-grub (Debian, Ubuntu); or"
        )
        assert first.remedy.endswith("Or let Ansible reach the node by ssh again. Then run the teardown again.")
        assert "has no observer (image)" in second.why
        looked = "run ls /etc/default/grub.d/99-linerate.cfg /etc/linerate-rdma/kernel-arguments on "
        assert looked in second.remedy


def test_releases_of_helm_that_a_run_made_are_named_with_what_removes_them_in_its_order() -> None:
    there = (
        Controller("node-feature-discovery", "node-feature-discovery/nfd-master", "v0.18.3", 1, 1, "helm", "nfd"),
        Controller("gpu-operator", "gpu-operator/gpu-operator", "v26.3.3", 1, 1, "helm", "gpu-operator"),
        Controller("kueue", "kueue-system/kueue-controller-manager", "v0.19.2", 1, 1, "helm", "theirs"),
    )
    left = OperatorsSeen(controllers=there, made=("gpu-operator", "network-operator", "node-feature-discovery"))
    found = [
        item for item in check(INTENT, Facts(("worker-1",), (), GONE, left=left)) if item.check == "teardown.stays"
    ]
    assert [(item.subject, item.status) for item in found] == [
        ("Helm release gpu-operator/gpu-operator", "warn"),
        ("namespace of operator network-operator", "warn"),
        ("Helm release node-feature-discovery/nfd", "warn"),
    ], "the last one first, and none of somebody else's"
    steps = found[0].remedy.split("; then ")
    assert (
        "kubectl delete KIND --all -A" in steps[0] and steps[1] == "helm uninstall --wait -n gpu-operator gpu-operator"
    )
    assert (
        "--api-group=nvidia.com" in steps[2]
        and "kubectl delete crd NAME" in steps[2]
        and steps[3] == "kubectl delete namespace gpu-operator."
    )
    assert (
        "helm uninstall" not in found[1].remedy
        and "kubectl delete namespace nvidia-network-operator" in found[1].remedy
    )


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (OperatorsSeen(errors=("GET deployments: forbidden",)), "forbidden"),
        (None, "ended before it queried the API server"),
    ],
)
def test_operators_that_could_not_be_read_are_unknown(left: typing.Optional[OperatorsSeen], why: str) -> None:
    (found,) = [
        item for item in check(INTENT, Facts(("worker-1",), (), GONE, left=left)) if item.check == "teardown.stays"
    ]
    assert found.status == "unknown" and why in found.why


def test_a_webhook_that_does_not_serve_keeps_an_object_and_is_named() -> None:
    text = (
        'failed calling webhook "v.kb.io": failed to call webhook: Post "https://hook.ops.svc:443/x?timeout=10s":'
        ' service "hook" not found'
    )
    found = check(INTENT, Facts(("worker-1",), removed("refused", text), GONE))[0]
    assert (found.check, found.status) == ("teardown.object", "fail") and text in found.measured
    assert (
        "Service ops/hook does not exist" in found.why
        and "delete the configuration that names this Service" in found.remedy
    )


def test_copies_of_users_are_a_warning_with_both_ways_out() -> None:
    copies = (
        AppliedObject("IPPool", "p", "team", action="kept", reason="Copied"),
        AppliedObject("Pod", "(9 more)", action="kept", reason="Copied"),
    )
    found = check(INTENT, Facts(("worker-1",), copies, GONE))
    named, counted = (item for item in found if item.measured == "not deleted")
    assert [(item.check, item.status) for item in (named, counted)] == [("teardown.stays", "warn")] * 2
    assert "label ippools.nv-ipam.nvidia.com p -n team app.kubernetes.io/managed-by-" in named.remedy
    assert "kubectl delete ippools.nv-ipam.nvidia.com p -n team" in named.remedy and "no run wrote it" in named.why
    assert "kubectl get pod -A -l app.kubernetes.io/managed-by=linerate.rdma" in counted.remedy


@pytest.mark.parametrize(
    "subject",
    [
        "Helm release ops/sriov",
        "operator sriov-network-operator",
        name_operator("sriov-certified", {"sriov-network-operator"}),
        name_operator("both", {"sriov-network-operator", "network-operator"}),
    ],
)
def test_an_operator_amid_its_drains_is_not_removed_and_the_finding_says_how_to_go_on(subject: str) -> None:
    there = OperatorFacts((), (OperatorInstallation(Workload("op", "ns", 1, 1)),), (), ())
    kept = keep_busy_operator(subject, "ns", ("w0 (desired-state Drain_Required, current-state Draining)",))
    found = check(INTENT, Facts((), (), GONE, there, True, stays=(kept,)))
    (stays,) = [finding for finding in found if finding.check == "teardown.stays" and finding.subject == subject]
    assert stays.status == "warn" and "w0 (desired-state Drain_Required" in stays.why
    last = found[-1]
    assert (last.check, last.status, last.remedy) == ("teardown.operator", "fail", kept.remedy)
    assert "stay drained and cordoned" in last.why and "w0" in last.why
    gone = check(INTENT, Facts((), (), GONE, dataclasses.replace(there, installations=()), True, stays=(kept,)))[-1]
    assert gone.status == "pass"


@pytest.mark.parametrize(
    "subject",
    [
        "Helm release ops/sriov",
        "operator sriov-network-operator",
        name_operator("sriov-certified", {"sriov-network-operator"}),
        name_operator("both", {"sriov-network-operator", "network-operator"}),
    ],
)
def test_an_operator_that_others_use_is_left_intentionally(subject: str) -> None:
    there = OperatorFacts((), (OperatorInstallation(Workload("op", "ns", 1, 1)),), (), ())
    for kept, status in (
        (keep_operator(subject, ["SriovNetwork ops/theirs"]), "warn"),
        (keep_operator("operator nfd", ["NodeFeatureRule theirs"]), "fail"),
        (keep_operator(name_operator("theirs", {"network-operator"}), ["IPPool theirs"]), "fail"),
        (RetainedObject(subject, "another reason"), "fail"),
    ):
        found = check(INTENT, Facts((), (), GONE, there, True, stays=(kept,)))[-1]
        assert (found.check, found.status) == ("teardown.operator", status)
        assert status == "fail" or "SriovNetwork ops/theirs" in found.why


@pytest.mark.parametrize(
    ("phase", "measured", "why"),
    [
        ("waiting", "removal not completed", "wait for a drain or a reboot"),
        ("failed", "removal failed", "change of the"),
    ],
)
def test_removal_that_is_not_complete_differs_from_the_expected_value(
    phase: typing.Literal["waiting", "failed"], measured: str, why: str
) -> None:
    sync = SyncFacts(False, True, 300.0, (SyncNode("storage", "worker-1", phase, "no virtual function"),))
    found = check(INTENT, Facts(("worker-1",), removed("deleted"), sync))
    (finding,) = [item for item in found if item.check == "teardown.virtual_functions"]
    assert finding.measured == f"no virtual function; {measured}" and why in finding.why
    assert finding.expected.endswith(", removal completed")
    assert "If it waits for a reboot, drain the node and reboot it." in finding.remedy
