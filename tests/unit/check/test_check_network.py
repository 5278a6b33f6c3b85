# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage network: what the API server refused, and what did not come of what it took."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.facts import Facts, LintFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import attachment_kind
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import (
    COPIED,
    AppliedObject,
    Leftovers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    LabelSelector,
    MachinePool,
    NodePlan,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import (
    HostConfig,
    KubeletStatus,
    Roll,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts, SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

INTENT = parse_intent(
    [
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
)
POLICY = AppliedObject("SriovNetworkNodePolicy", "linerate-storage", "ops", "storage", "created")
NETWORK = AppliedObject("SriovNetwork", "net", "ops", "storage", "unchanged")
NAMESPACE = AppliedObject("Namespace", "test", action="unchanged")
READY = SyncNode("storage", "worker-1", "ready", "4 openshift.io/igb", matched=("0000:01:00.0",), allocatable=4)
PLAN = DisruptionPlan((NodePlan("worker-1", "configure"),))
FACTS = Facts(
    ("worker-1",),
    (NAMESPACE, POLICY, NETWORK),
    SyncFacts(True, False, 24.0, (READY,)),
    plan=PLAN,
    ipam=AddressFacts(pods=1),
    leftovers=Leftovers(),
    lint=LintFacts(),
)


def statuses(facts: Facts) -> dict[str, str]:
    return {finding.check: finding.status for finding in check(INTENT, facts)}


def found(facts: Facts, name: str) -> Finding:
    (finding,) = [finding for finding in check(INTENT, facts) if finding.check == name]
    return finding


def refused(text: str, reason: str = "Forbidden") -> Facts:
    return dataclasses.replace(
        FACTS, applied=(NAMESPACE, dataclasses.replace(POLICY, action="refused", refusal=text, reason=reason), NETWORK)
    )


def synced(**changes: typing.Any) -> Facts:
    return dataclasses.replace(FACTS, sync=SyncFacts(True, False, 24.0, (dataclasses.replace(READY, **changes),)))


def test_all_in_place() -> None:
    assert statuses(FACTS) == {
        "network.addresses": "pass",
        "network.address_overlap": "pass",
        "network.disruption": "pass",
        "network.drain": "pass",
        "network.namespace_accepted": "pass",
        "network.policy_accepted": "pass",
        "network.attachment_accepted": "pass",
        "network.allocatable": "pass",
        "network.leftover": "pass",
    }


def test_objects_that_nobody_has_linted_are_unknown() -> None:
    finding = found(dataclasses.replace(FACTS, lint=None), "network.lint_read")
    assert (finding.subject, finding.status, finding.measured) == ("cluster", "unknown", "objects not checked")
    assert "ended before it checked the objects against the nodes" in finding.why and finding.remedy.startswith(
        "Run stage network again. If it ends early again"
    )


def test_facts_survive_the_way_through_ansible() -> None:
    assert load(Facts, to_data(FACTS), "facts") == FACTS


@pytest.mark.parametrize(
    ("text", "reason", "why"),
    [
        # the words of the webhook of operator v1.6.0, as the lab's API server passed them on
        (
            (
                'admission webhook "operator-webhook.sriovnetwork.openshift.io" denied the request:'
                " no supported NIC is selected by the nicSelector in CR linerate-compute"
            ),
            "Forbidden",
            "No node reports a physical function that the policy's nicSelector selects",
        ),
        (
            "numVfs(99) in CR bad1 exceed the maximum allowed value(7) interface(eth2)",
            "Forbidden",
            "fewer virtual functions",
        ),
        ("no matched node is selected by the nodeSelector in CR x", "Forbidden", "No node carries the labels"),
        (
            "root device 0000:3c:00.0 is overlapped with existing policy other",
            "Forbidden",
            "Another policy already has",
        ),
        (
            'resource name "mlx-test" contains invalid characters, the accepted syntax',
            "Forbidden",
            "only letters, digits and underscores",
        ),
        ("vendor 1af4 is not supported", "Forbidden", "list of supported NICs"),
        (
            "the server could not find the requested resource",
            "NotFound",
            "the operator that defines it is not installed",
        ),
        ("Apply failed with 1 conflict", "Conflict", "Another tool owns a field"),
        (
            'sriovnetworknodepolicies is forbidden: User "x" cannot patch',
            "Forbidden",
            "does not have the right to write this object",
        ),
        (
            (
                'Internal error occurred: failed calling webhook "operator-webhook.sriovnetwork.openshift.io": failed'
                " to call webhook: Post"
                ' "https://operator-webhook-service.sriov-network-operator.svc:443/mutating-custom-resource?timeout=10s":'
                ' no endpoints available for service "operator-webhook-service"'
            ),
            "InternalError",
            "Service sriov-network-operator/operator-webhook-service has no ready pod",
        ),
        (
            (
                "failed to create typed patch object (ops/linerate-storage; sriovnetwork.openshift.io/v1,"
                " Kind=SriovNetworkNodePolicy): .spec.bridge: field not declared in schema"
            ),
            "",
            "does not have the field .spec.bridge",
        ),
        ("something new", "Invalid", "The message of the API server is under 'measured'"),
    ],
)
def test_a_refused_policy_names_the_cause_and_keeps_the_words(text: str, reason: str, why: str) -> None:
    finding = found(refused(text, reason), "network.policy_accepted")
    assert finding.status == "fail"
    assert text in finding.measured
    assert why in finding.why


def test_a_field_that_the_server_drops_is_no_success() -> None:
    taken = dataclasses.replace(POLICY, action="created", warnings=('unknown field "spec.bridge"',))
    finding = found(dataclasses.replace(FACTS, applied=(NAMESPACE, taken, NETWORK)), "network.policy_accepted")
    assert (finding.status, finding.measured) == ("fail", "created without the fields spec.bridge")
    assert (
        "it belongs to a different version of its operator than this collection expects." in finding.why
        and "helm show crds" in finding.remedy
    )


@pytest.mark.parametrize("item", [POLICY, NETWORK, dataclasses.replace(NETWORK, kind="IPPool")])
def test_what_was_refused_of_a_fabric_that_the_intent_does_not_have_is_told(item: AppliedObject) -> None:
    stray = dataclasses.replace(
        item, name="stray", fabric="gone", action="refused", refusal="denied", reason="Forbidden"
    )
    (told_of,) = [
        finding
        for finding in check(INTENT, dataclasses.replace(FACTS, applied=(*FACTS.applied, stray)))
        if finding.status != "pass"
    ]
    assert (told_of.check, told_of.subject, told_of.status) == (
        "network.object_accepted",
        f"{item.kind} stray",
        "fail",
    )
    assert "denied" in told_of.measured


def test_nothing_is_known_of_nodes_whose_policy_was_refused() -> None:
    facts = dataclasses.replace(refused("no supported NIC is selected by"), sync=None)
    finding = found(facts, "network.allocatable")
    assert finding.status == "unknown"
    assert "was refused" in finding.why


def test_a_fabric_that_could_not_be_written() -> None:
    facts = dataclasses.replace(
        FACTS,
        applied=(NAMESPACE, NETWORK),
        sync=None,
        unmade={"storage": "no physical function is selected"},
    )
    assert found(facts, "network.policy_accepted").why == (
        "No object was made for the fabric: no physical function is selected."
    )
    assert found(facts, "network.allocatable").status == "unknown"


def test_the_cause_of_a_failed_node_is_the_finding_s() -> None:
    finding = found(
        synced(phase="failed", detail="the config daemon failed: busy", remedy="look", allocatable=None),
        "network.allocatable",
    )
    why = "The node cannot become ready for the fabric: the config daemon failed: busy."
    assert (finding.status, finding.why, finding.remedy) == ("fail", why, "look. Then run stage network again.")


def test_a_failed_wait_for_as_many_as_the_node_offers_says_both() -> None:
    finding = found(synced(phase="failed", detail="the wait broke off."), "network.allocatable")
    assert finding.status == "fail" and finding.why == (
        "The node offers this number, but the run stopped to wait for it, because the SR-IOV operator does not complete"
        " the node. Last state: the wait broke off."
    )
    assert (
        "and correct the error in syncStatus and lastSyncError of its status. Then run stage network again."
        in finding.remedy
    )


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("refused", "The API server or a webhook rejected the object and reported no message."),
        ("", "The run ended before it sent the object to the API server."),
        (
            "absent",
            "The intent requires the object, but the last run did not apply it: it was a removal (playbook teardown),"
            " which found no such object.",
        ),
    ],
)
def test_an_object_without_a_message_blames_no_message(action: str, why: str) -> None:
    facts = dataclasses.replace(
        FACTS, applied=tuple(dataclasses.replace(item, action=action, refusal="") for item in FACTS.applied)
    )
    finding = found(facts, "network.policy_accepted")
    assert (finding.status, finding.measured, finding.why) == (
        "fail",
        {"absent": "absent, not applied"}.get(action, action or "not sent"),
        why,
    )
    assert "under 'measured'" not in finding.remedy and finding.remedy.startswith("Run stage network again.")


@pytest.mark.parametrize(
    ("sync", "why", "remedy"),
    [
        (None, "ended before it waited", "output of ansible-playbook"),
        (SyncFacts(True, False, 24.0, ()), "did not wait for fabric storage", "with the current intent"),
        (
            SyncFacts(True, False, 24.0, (dataclasses.replace(READY, node="worker-2"),)),
            "waited for 1 other node of the fabric, but not for worker-1",
            "also waits for worker-1",
        ),
    ],
)
def test_a_node_without_a_wait_has_the_cause_and_its_remedy(
    sync: typing.Optional[SyncFacts], why: str, remedy: str
) -> None:
    finding = found(dataclasses.replace(FACTS, sync=sync), "network.allocatable")
    assert finding.status == "unknown" and why in finding.why and remedy in finding.remedy


def test_a_wait_that_timed_out_says_where_it_stood() -> None:
    finding = found(synced(phase="waiting", detail="the node is drained first", allocatable=0), "network.allocatable")
    assert finding.status == "fail"
    assert "Last state: the node is drained first" in finding.why
    finding = found(
        synced(phase="waiting", detail="the config daemon works", remedy="See its log.", allocatable=0),
        "network.allocatable",
    )
    assert finding.remedy == (
        "See its log. If the node only needs more time, raise rdma_cluster.wait_seconds. Then run stage network again."
    )


def test_check_mode_proves_nothing() -> None:
    facts = dataclasses.replace(synced(phase="failed", detail="there is no policy"), check_mode=True)
    assert found(facts, "network.allocatable").status == "unknown"


def test_another_number_than_the_intent_s_is_no_pass() -> None:
    # the policy in the cluster is an older one, and the operator has done what that asks for
    given = synced(allocatable=2, detail="2 openshift.io/igb on 1 physical function")
    assert found(given, "network.allocatable").status == "fail"
    assert found(dataclasses.replace(given, check_mode=True), "network.allocatable").status == "unknown"


@pytest.mark.parametrize("sync", [None, SyncFacts(True, False, 0.0, ())])
def test_a_node_that_nobody_looked_at_is_unknown(sync: typing.Optional[SyncFacts]) -> None:
    assert found(dataclasses.replace(FACTS, sync=sync), "network.allocatable").status == "unknown"


def test_no_node_and_no_object_is_no_good_news() -> None:
    assert set(statuses(Facts()).values()) == {"fail", "unknown"}


def test_an_object_of_unknown_fate_is_no_pass() -> None:
    assert (
        found(
            dataclasses.replace(FACTS, applied=(NAMESPACE, dataclasses.replace(POLICY, action=""), NETWORK)),
            "network.policy_accepted",
        ).status
        == "fail"
    )


def test_what_the_linter_found_is_kept_and_a_held_fabric_proves_nothing() -> None:
    found = Finding(
        "network.lint_functions", "storage worker-1 eth1", "fail", "8", "7", "The card has fewer.", "Ask for fewer."
    )
    facts = Facts(
        ("worker-1",),
        (NAMESPACE,),
        SyncFacts(True, False, 0.0, ()),
        lint=LintFacts((found,), {"storage": "1 findings"}, ("GET nodes: no",)),
    )
    findings = {finding.check: finding for finding in check(INTENT, load(Facts, to_data(facts), "facts"))}
    assert findings["network.lint_functions"] == found
    assert findings["network.lint_read"].status == "unknown"
    assert {findings[name].status for name in ("network.policy_accepted", "network.attachment_accepted")} == {"skipped"}
    assert "1 findings" in findings["network.policy_accepted"].why
    assert (
        findings["network.allocatable"].status,
        "The fabric has findings network.lint_*" in findings["network.allocatable"].why,
    ) == (
        "unknown",
        True,
    )


POOL = MachinePool(
    "worker",
    wanted_config="rendered-2",
    current_config="rendered-2",
    config_selector=LabelSelector({"machineconfiguration.openshift.io/role": "worker"}),
    sources=("99-worker-generated-kubelet",),
    labels={"a": "b"},
)
KUBELET = HostConfig(
    "KubeletConfig", "linerate-worker", "CPU manager static", selector=LabelSelector({"a": "b"}), refusal="", there=True
)


@pytest.mark.parametrize(
    ("stand", "status"),
    [
        (KubeletStatus((KUBELET,), (), (POOL,)), "pass"),
        (KubeletStatus(error="forbidden"), "unknown"),
        (None, "unknown"),
    ],
)
def test_settings_of_the_kubelet_are_looked_at_when_the_intent_asks_for_them(
    stand: typing.Optional[KubeletStatus], status: str
) -> None:
    asking = dataclasses.replace(
        INTENT, cluster=ClusterIntent(host=HostNeeds(kubelet=Kubelet(cpu_manager_policy="static")))
    )
    facts = dataclasses.replace(FACTS, kubelet=stand)
    assert load(Facts, to_data(facts), "facts") == facts
    assert [item.status for item in check(asking, facts) if item.check == "network.kubelet"] == [status]
    assert "network.kubelet" not in statuses(facts)


STALE = AppliedObject("SriovNetworkNodePolicy", "linerate-compute", "ops", "compute")


@pytest.mark.parametrize(
    ("item", "why", "remedy"),
    [
        (
            STALE,
            (
                "for fabric compute, which the current intent does not contain. The policy still"
                " reserves its virtual functions."
            ),
            (
                "kubectl delete sriovnetworknodepolicy linerate-compute -n ops. The deletion makes the SR-IOV network"
                " operator drain the nodes that the policy selects"
            ),
        ),
        (
            AppliedObject("MacvlanNetwork", "old", fabric="storage"),
            "for which the current intent requires a different object.",
            "delete it: kubectl delete macvlannetwork old. Do not run linerate.rdma.teardown for this object",
        ),
        (
            AppliedObject("IPPool", "pool", "ops"),
            "for a different intent.",
            "kubectl delete ippools.nv-ipam.nvidia.com pool -n ops.",
        ),
        (
            AppliedObject("NicClusterPolicy", "nic-cluster-policy"),
            "for a different intent.",
            "The deletion removes the components of all owners in the object from all nodes",
        ),
        (
            AppliedObject("SriovNetworkPoolConfig", "linerate", "ops"),
            "for a different intent.",
            (
                "If the object sets an RDMA mode (kubectl get sriovnetworkpoolconfig linerate -n ops -o"
                " jsonpath='{.spec.rdmaMode}'), the operator drains and reboots its nodes, without the checks of a run."
            ),
        ),
        (
            AppliedObject("MachineConfig", "99-old"),
            "for a different intent.",
            (
                'kubectl patch machineconfigpool POOL --type merge -p \'{"spec":{"paused":true}}\'. Delete the object:'
                " kubectl delete machineconfig 99-old. When the nodes may reboot, run the command for the"
                " pools again with false in place of true."
            ),
        ),
        (
            AppliedObject("KubeletConfig", "old"),
            "for a different intent.",
            "drain and reboot all nodes of the pools that are not paused, without the checks of a run.",
        ),
        (
            dataclasses.replace(STALE, reason=COPIED),
            "A teardown does not delete it.",
            "The deletion makes the SR-IOV network operator drain the nodes",
        ),
    ],
)
def test_what_an_earlier_intent_left_is_named(item: AppliedObject, why: str, remedy: str) -> None:
    finding = found(dataclasses.replace(FACTS, leftovers=Leftovers((item,))), "network.leftover")
    assert (finding.status, finding.subject) == ("warn", f"{item.kind} {item.name}")
    assert finding.why.endswith(why) and remedy in finding.remedy
    # it removes what the intent needs too
    assert "with a teardown" not in finding.remedy and "a teardown also" not in finding.remedy


@pytest.mark.parametrize(
    "excuse",
    [
        {"lint": LintFacts(held={"compute": "overlap"})},
        {"unmade": {"compute": "no physical function is selected"}},
    ],
)
def test_what_stands_of_a_fabric_that_was_not_applied_is_no_leftover(excuse: dict[str, typing.Any]) -> None:
    assert (
        found(dataclasses.replace(FACTS, leftovers=Leftovers((STALE,)), **excuse), "network.leftover").status == "pass"
    )


@pytest.mark.parametrize(
    ("seen", "measured"),
    [
        (None, "objects not listed"),
        (Leftovers((STALE,), ("list sriovnetworks: forbidden",)), "1 kind not read: list sriovnetworks"),
    ],
)
def test_leftovers_that_nobody_could_look_for_are_unknown(seen: typing.Optional[Leftovers], measured: str) -> None:
    finding = found(dataclasses.replace(FACTS, leftovers=seen), "network.leftover")
    assert (finding.status, finding.measured) == ("unknown", measured)
    if seen is not None:
        assert finding.why.endswith(" The errors are: list sriovnetworks: forbidden.")
        assert "Otherwise correct the errors." in finding.remedy


STORAGE = INTENT.fabrics[0]
MACVLAN = dataclasses.replace(
    STORAGE, name="plain", profile="macvlan", virtual_functions=0, resource_name="", rdma=False
)
DEFINITION = AppliedObject("NetworkAttachmentDefinition", "net", "test", "plain", "created")
ATTACHED = dataclasses.replace(
    READY, fabric="plain", detail="NetworkAttachmentDefinition test/net", matched=(), allocatable=None
)


def told(facts: Facts, fabrics: tuple[Fabric, ...], *checks: str) -> list[tuple[str, ...]]:
    """Check, subject and status of each finding of these checks."""
    asked = dataclasses.replace(INTENT, fabrics=tuple(fabrics))
    return [
        (item.check, item.subject, item.status) for item in check(asked, facts) if not checks or item.check in checks
    ]


def test_each_finding_accuses_its_own_object_and_node() -> None:
    shared = AppliedObject("IPPool", "pool", "ops", action="refused", refusal="no", reason="Invalid")
    waiting = dataclasses.replace(READY, node="worker-2", phase="waiting", allocatable=3)
    facts = dataclasses.replace(
        FACTS,
        nodes=("worker-1", "worker-2", "worker-3"),
        applied=(NAMESPACE, shared, POLICY, NETWORK, DEFINITION),
        sync=SyncFacts(True, False, 24.0, (waiting, ATTACHED, READY)),
    )
    wanted = (
        "network.namespace_accepted",
        "network.object_accepted",
        "network.policy_accepted",
        "network.attachment_accepted",
    )
    assert told(facts, (STORAGE, MACVLAN), *wanted, "network.allocatable", "network.ready") == [
        ("network.namespace_accepted", "Namespace test", "pass"),
        ("network.object_accepted", "IPPool pool", "fail"),
        ("network.policy_accepted", "storage SriovNetworkNodePolicy linerate-storage", "pass"),
        ("network.attachment_accepted", "storage SriovNetwork net", "pass"),
        ("network.allocatable", "storage worker-1", "pass"),
        ("network.allocatable", "storage worker-2", "fail"),
        ("network.allocatable", "storage worker-3", "unknown"),
        ("network.attachment_accepted", "plain NetworkAttachmentDefinition net", "pass"),
        # the pool that was refused is of all fabrics
        ("network.ready", "plain worker-1", "fail"),
        ("network.ready", "plain worker-2", "unknown"),
        ("network.ready", "plain worker-3", "unknown"),
    ]


@pytest.mark.parametrize(
    ("phase", "changes", "status"),
    [
        ("ready", {}, "pass"),
        ("waiting", {}, "fail"),
        ("failed", {}, "fail"),
        ("waiting", {"check_mode": True}, "unknown"),
        ("waiting", {"allowed": False}, "unknown"),
        ("ready", {"allowed": False}, "pass"),
    ],
)
def test_a_network_without_functions_is_ready_or_not(
    phase: typing.Literal["ready", "waiting", "failed"], changes: dict[str, typing.Any], status: str
) -> None:
    sync = SyncFacts(True, False, 24.0, (dataclasses.replace(ATTACHED, phase=phase),))
    facts = dataclasses.replace(FACTS, applied=(NAMESPACE, DEFINITION), sync=sync, **changes)
    assert told(facts, (MACVLAN,), "network.ready") == [("network.ready", "plain worker-1", status)]


@pytest.mark.parametrize(
    ("changes", "facts", "status"),
    [
        ({"phase": "failed"}, {}, "fail"),
        ({"phase": "waiting"}, {}, "fail"),
        ({"allocatable": 3}, {}, "fail"),
        ({"allocatable": 3}, {"allowed": False}, "unknown"),
    ],
)
def test_what_is_not_allocatable_is_told_of_the_node(
    changes: dict[str, typing.Any], facts: dict[str, typing.Any], status: str
) -> None:
    assert told(dataclasses.replace(synced(**changes), **facts), (STORAGE,), "network.allocatable") == [
        ("network.allocatable", "storage worker-1", status)
    ]


def test_the_functions_of_all_hcas_are_counted() -> None:
    two = dataclasses.replace(STORAGE, select=dataclasses.replace(STORAGE.select, hcas_per_node=2))
    for allocatable, status in ((8, "pass"), (4, "fail"), (2, "fail")):
        assert told(synced(allocatable=allocatable), (two,), "network.allocatable") == [
            ("network.allocatable", "storage worker-1", status)
        ]


def test_a_refused_policy_asks_for_nothing_and_takes_nothing_away() -> None:
    """What an earlier policy made is there still; what is not there was never asked for. The finding on the policy
    fails in both cases."""
    no = dataclasses.replace(POLICY, action="refused", refusal="no", reason="Invalid")
    for phase, status in (("ready", "pass"), ("waiting", "unknown")):
        facts = dataclasses.replace(synced(phase=phase), applied=(NAMESPACE, no, NETWORK))
        assert told(facts, (STORAGE,), "network.policy_accepted", "network.allocatable") == [
            ("network.policy_accepted", "storage SriovNetworkNodePolicy linerate-storage", "fail"),
            ("network.allocatable", "storage worker-1", status),
        ]
    # that of another fabric, or another object of this one, is no reason
    others = (dataclasses.replace(no, fabric="other"), dataclasses.replace(NETWORK, action="refused", refusal="no"))
    facts = dataclasses.replace(synced(phase="waiting"), applied=(NAMESPACE, POLICY, *others))
    assert told(facts, (STORAGE,), "network.allocatable") == [("network.allocatable", "storage worker-1", "fail")]


def test_what_check_mode_could_not_judge_is_unknown() -> None:
    unjudged = dataclasses.replace(POLICY, action="unjudged", refusal='namespaces "ops" not found', reason="NotFound")
    facts = dataclasses.replace(FACTS, applied=(NAMESPACE, unjudged, NETWORK), check_mode=True)
    assert told(facts, (STORAGE,), "network.policy_accepted") == [
        ("network.policy_accepted", "storage SriovNetworkNodePolicy linerate-storage", "unknown")
    ]


def test_objects_that_are_held_back_or_missing_are_told_of_their_fabric() -> None:
    ids = ("network.policy_accepted", "network.attachment_accepted")
    held = dataclasses.replace(FACTS, applied=(), lint=LintFacts(held={"storage": "overlap"}))
    assert told(held, (STORAGE,), *ids) == [(name, "storage", "skipped") for name in ids]
    assert told(dataclasses.replace(FACTS, applied=()), (STORAGE,), *ids) == [(name, "storage", "fail") for name in ids]


@pytest.mark.parametrize("profile", ["rdma_shared", "host_device", "ipoib"])
@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({}, ""),
        ({"kind": "SriovNetwork"}, "whole"),
        ({"name": "other"}, "whole"),
        ({"policy": "other"}, "NicClusterPolicy nic-cluster-policy"),
        ({"policy": ""}, "NicClusterPolicy nic-cluster-policy"),
    ],
)
def test_the_attachment_and_the_policy_that_the_profile_needs_are_the_ones_that_were_applied(
    profile: typing.Any, change: dict[str, str], subject: str
) -> None:
    fabric = dataclasses.replace(MACVLAN, name="whole", profile=profile, resource_name="nic", rdma=True)
    kind = attachment_kind(fabric)
    policy = change.get("policy", "nic-cluster-policy")
    made = AppliedObject(change.get("kind", kind), change.get("name", "net"), fabric="whole", action="created")
    applied = (NAMESPACE, made, *([AppliedObject("NicClusterPolicy", policy, action="created")] if policy else []))
    facts = dataclasses.replace(FACTS, applied=applied)
    wanted = ("network.attachment_accepted", "network.object_accepted")
    failed = [item for item in told(facts, (fabric,), *wanted) if item[2] != "pass"]
    assert [item[1:] for item in failed] == ([(subject, "fail")] if subject else [])


def test_pods_have_the_pod_network_without_any_object() -> None:
    baseline = dataclasses.replace(MACVLAN, name="base", profile="pod_network")
    facts = dataclasses.replace(
        FACTS, applied=(), sync=SyncFacts(True, False, 1.0, (dataclasses.replace(ATTACHED, fabric="base"),))
    )
    assert told(facts, (baseline,), "network.attachment_accepted", "network.ready") == [
        ("network.ready", "base worker-1", "pass")
    ]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({}, ["unknown"], id="nobody waited for the pool"),
        pytest.param({"rolls": (Roll("worker", 1, "rendered-2", 1, 1),)}, ["pass"], id="it rolled"),
        pytest.param({"rolls": (Roll("worker", 1, "rendered-2", 0, 0),)}, ["pass", "unknown"], id="without its nodes"),
        pytest.param({"roll_error": "nothing was rendered"}, ["fail"], id="its configuration never got ready"),
        pytest.param({"check_mode": True}, [], id="nothing was written"),
        pytest.param({"allowed": False}, [], id="nothing was allowed"),
        pytest.param({"check_mode": True, "roll_error": "nothing was rendered"}, ["fail"], id="both"),
    ],
)
def test_a_pool_that_was_to_roll_did_or_is_not_known(changes: dict[str, typing.Any], status: list[str]) -> None:
    plan = DisruptionPlan(
        (NodePlan("worker-1", "reboot", rolled_by="worker"),),
        (PoolPlan("worker", ("worker-1",), 1, 1, "", machines=True),),
    )
    assert [
        found
        for _check, _subject, found in told(
            dataclasses.replace(FACTS, plan=plan, **changes), (STORAGE,), "network.roll"
        )
    ] == status


@pytest.mark.parametrize(
    ("cluster", "fabric", "made", "said"),
    [
        (
            {"node_pool": {"max_unavailable": 1}},
            {},
            "SriovNetworkPoolConfig",
            "(rdma_cluster.node_pool) requires this object",
        ),
        (
            {"host": {"kubelet": {"cpu_manager_policy": "static"}}},
            {},
            "KubeletConfig",
            "(rdma_cluster.host.kubelet) requires this object",
        ),
        (
            {"host": {"memlock": {"by": "machine_config", "limit_gib": 8}}},
            {},
            "MachineConfig",
            "(rdma_cluster.host.memlock) requires this object",
        ),
        (
            {},
            {"ipam": {"type": "nv-ipam", "range": "10.0.0.0/24", "pool": {"name": "p", "per_node_block_size": 8}}},
            "IPPool p",
            "ipam.pool of fabric storage",
        ),
        (
            {},
            {
                "network": {
                    "name": "net",
                    "namespace": "other",
                    "pod_security": {"enforce": "privileged", "reason": "IPC_LOCK"},
                }
            },
            "Namespace other",
            "pod_sec",
        ),
    ],
)
def test_an_object_that_the_intent_asks_for_and_nobody_applied_fails(
    cluster: typing.Any, fabric: typing.Any, made: str, said: str
) -> None:
    wanted = parse_intent([{**to_data(INTENT.fabrics[0]), **fabric}], None, cluster)
    kind, _space, name = made.partition(" ")

    def of_object(applied: tuple[AppliedObject, ...], **changes: typing.Any) -> list[Finding]:
        given = dataclasses.replace(FACTS, applied=applied, **changes)
        return [
            item
            for item in check(wanted, given)
            if item.check == "network.object_accepted" and item.measured == "not applied"
        ]

    (found_one,) = of_object(FACTS.applied)
    assert (
        (found_one.status, found_one.subject) == ("fail", made)
        and said in found_one.why
        and "The run sent other objects, but not this object" in found_one.why
    )
    assert found_one.remedy == "Run stage network again with the current intent."
    namespace = "nvidia-network-operator" if kind == "IPPool" else ""
    assert of_object((*FACTS.applied, AppliedObject(kind, name or "any", namespace, action="created"))) == []
    held = of_object(FACTS.applied, lint=LintFacts(held={"storage": "so"}))
    assert bool(held) == (kind in ("KubeletConfig", "MachineConfig")), (
        "of a fabric that is held back nothing is applied"
    )
