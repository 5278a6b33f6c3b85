# SPDX-License-Identifier: GPL-3.0-or-later

"""The module olm before a played OLM: check, diff, run, run again, what stays, and the way back."""

from __future__ import annotations

import importlib
import json
import pathlib
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.olm import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.deletions import Deletions
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.remove_olm import Remover
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

from ..fake_api import Resource
from ..olm_world import OURS, SPACE, OlmWorld, group, named, subscription, version

Run = typing.Callable[..., Resource]
OPERATOR = {"package": "nfd", "namespace": SPACE}


@pytest.fixture
def world() -> typing.Iterator[OlmWorld]:
    made = OlmWorld()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def run(world: OlmWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.olm")
    monkeypatch.setattr(module, "connect", lambda options: world.client(world.url))

    def call(**given: typing.Any) -> Resource:
        with patch_module_args(given), pytest.raises(SystemExit) as ended:
            module.main()
        result: Resource = json.loads(capsys.readouterr().out)
        assert not ended.value.code, result
        return result

    return call


def test_check_run_again_and_take_back(run: Run, world: OlmWorld) -> None:
    dry = run(operators=[OPERATOR], _ansible_check_mode=True, _ansible_diff=True)
    assert dry["changes"] == [
        f"created Namespace {SPACE}",
        f"created OperatorGroup {SPACE}/linerate-rdma",
        f"created Subscription {SPACE}/nfd",
    ]
    assert any("installPlanApproval: Manual" in item["after"] for item in dry["diff"]) and not world.names(
        "Subscription"
    )
    done = run(operators=[OPERATOR], _ansible_diff=True)
    assert done["changes"][:-1] == dry["changes"] and done["changes"][-1].startswith(f"approved InstallPlan {SPACE}/")
    assert "approved: true" in done["diff"][-1]["after"] and "approved: false" in done["diff"][-1]["before"]
    again = run(operators=[OPERATOR])
    assert not again["changed"] and again["olm"] == done["olm"]
    shown = run(state="shown")
    assert (
        shown["namespaces"] == [SPACE]
        and shown["stays"][0]["subject"] == f"Subscription {SPACE}/nfd"
        and not shown["changed"]
    )
    foreseen = run(state="absent", _ansible_check_mode=True)
    assert world.names("Subscription") == {"nfd"}
    gone = run(state="absent")
    assert (
        gone["changes"]
        == foreseen["changes"]
        == [
            f"deleted ClusterServiceVersion {SPACE}/nfd.v1.0.0",
            f"deleted Subscription {SPACE}/nfd",
            f"deleted OperatorGroup {SPACE}/linerate-rdma",
        ]
    )
    assert gone["stays"] == [] == gone["namespaces"]
    assert not run(state="absent")["changed"]


def test_its_answer_is_the_fact_that_is_judged(run: Run, world: OlmWorld, tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(RunStart("run-1", "2026-11-24T12:00:00+00:00", False, ("worker-1",)))
    answer = run(
        operators=[OPERATOR, {**OPERATOR, "package": "absent"}], facts_dir=str(tmp_path), run="run-1", holder="me"
    )
    assert "olm" not in answer and answer["changed"]
    facts = load(Facts, {"olm": (folder.value("olm") or {})["olm"]}, "facts")
    assert [finding.status for finding in check(facts.olm)] == ["pass", "fail"]


# the way back


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodes.nfd.io", "uid": "1", "labels": {"olm.managed": "true"}},
    "spec": {
        "group": "nfd.io",
        "scope": "Namespaced",
        "names": {"plural": "nodes", "kind": "Nfd"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}
OWNED = {"customresourcedefinitions": {"owned": [{"name": "nodes.nfd.io", "version": "v1", "kind": "Nfd"}]}}
EVERYWHERE, HERE = "/apis/nfd.io/v1/nodes", f"/apis/nfd.io/v1/namespaces/{SPACE}/nodes"


@pytest.fixture
def installed(world: OlmWorld) -> OlmWorld:
    """An operator of ours with a definition, and an OperatorGroup of ours."""
    world.put("CustomResourceDefinition", CRD)
    for path in (EVERYWHERE, HERE):
        world._objects[path], world._events[path] = {}, []
    world.have(group("linerate-rdma", labels=OURS), version("nfd.v1.0.0", spec=OWNED))
    world.have(subscription(labels=OURS, currentCSV="nfd.v1.0.0", installedCSV="nfd.v1.0.0"))
    return world


def custom(
    world: OlmWorld,
    name: str,
    labels: typing.Optional[dict[str, str]] = None,
    metadata: typing.Optional[Resource] = None,
) -> None:
    item = {
        "apiVersion": "nfd.io/v1",
        "kind": "Nfd",
        "metadata": {"name": name, "namespace": SPACE, "uid": name, "labels": labels or {}, **(metadata or {})},
    }
    world._happen(HERE, "ADDED", item)


#: of what an operator makes itself
OWNED_BY = {"ownerReferences": [{"kind": "DaemonSet", "name": "worker", "uid": "d"}]}


def test_objects_go_before_the_operator_and_the_definition_last(run: Run, installed: OlmWorld) -> None:
    custom(installed, "mine", OURS)
    gone = run(state="absent")
    assert [line.split()[1] for line in gone["changes"]] == [
        "Nfd",
        "ClusterServiceVersion",
        "Subscription",
        "CustomResourceDefinition",
        "OperatorGroup",
    ]
    deleted = [name for name in installed.requests if name.startswith("delete") and "/leases/" not in name]
    assert [name.split("/")[-1] for name in deleted] == ["mine", "nfd.v1.0.0", "nfd", "nodes.nfd.io", "linerate-rdma"]
    assert gone["stays"] == []


@pytest.mark.parametrize(
    ("labels", "metadata"), [({}, {}), (OURS, {"managedFields": [{"manager": "kubectl-client-side-apply"}]})]
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_an_operator_that_others_use_stays_with_its_configuration(
    run: Run, installed: OlmWorld, labels: dict[str, str], metadata: Resource, check_mode: bool
) -> None:
    """An object with our label that no run wrote is of others too."""
    custom(installed, "policy-of-another-team", labels, metadata)
    custom(installed, "configuration", OURS)
    gone = run(state="absent", _ansible_check_mode=check_mode)
    assert gone["changes"] == [] and gone["namespaces"] == [SPACE]
    kept = gone["stays"][0]
    assert kept["subject"] == "operator nfd" and kept["why"].endswith(f": Nfd {SPACE}/policy-of-another-team")
    assert "delete these objects" in kept["remedy"] and "teardown_operator: false" in kept["remedy"]
    assert installed.names("ClusterServiceVersion") == {"nfd.v1.0.0"} and installed.names("Subscription") == {"nfd"}
    assert {"policy-of-another-team", "configuration"} <= set(installed._objects[EVERYWHERE] | installed._objects[HERE])


FABRIC = {
    "name": "c",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3"},
    "virtual_functions": 4,
    "resource_name": "r",
    "network": {"name": "n", "namespace": "t"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}
INTENT = {"fabrics": [FABRIC], "cluster": {"intent_name": "a", "node_selector": {"kind": "a"}}}
WRITTEN: Resource = {"managedFields": [{"manager": "linerate.rdma", "fieldsV1": {}}]}


def _have_policy(world: OlmWorld, kind: str, labels: dict[str, str], metadata: Resource) -> None:
    item = {"kind": kind, "metadata": {"name": "x", "uid": "x", "labels": labels, **metadata}, "spec": {}}
    world.serve(kind, [item])


@pytest.mark.parametrize(
    "intent", [{"linerate.rdma/intent": "b"}, {"linerate.rdma/intent": "default"}, {}], ids=["named", "default", "none"]
)
@pytest.mark.parametrize("kind", ["SriovNetworkNodePolicy", "NicClusterPolicy", "MachineConfig", "TrainJob"])
@pytest.mark.parametrize("check_mode", [False, True])
def test_an_operator_stays_if_another_intent_has_objects(
    run: Run, installed: OlmWorld, kind: str, intent: dict[str, str], check_mode: bool
) -> None:
    """The configuration of the operator is of no intent, so the objects of its own kinds do not tell."""
    custom(installed, "nfd-instance", OURS, WRITTEN)
    metadata: Resource = dict(WRITTEN)
    if kind == "NicClusterPolicy" and not intent:
        intent = {"linerate.rdma/intent": "b"}
    _have_policy(installed, kind, {**OURS, **intent}, metadata)
    gone = run(state="absent", _ansible_check_mode=check_mode, **INTENT)
    assert gone["changes"] == [] and gone["namespaces"] == [SPACE]
    kept = gone["stays"][0]
    assert kept["subject"] == "operator nfd" and f"{kind} x" in kept["why"] and "last intent" in kept["remedy"]
    assert installed.names("Subscription") == {"nfd"} and "nfd-instance" in installed._objects[HERE]


@pytest.mark.parametrize(
    ("kind", "labels", "metadata"),
    [
        ("SriovNetworkNodePolicy", {**OURS, "linerate.rdma/intent": "a"}, WRITTEN),
        # a tenant's copy, and what an operator made
        ("TrainJob", {**OURS, "linerate.rdma/intent": "b"}, {"managedFields": [{"manager": "kubectl"}]}),
        ("NetworkAttachmentDefinition", {**OURS, "linerate.rdma/intent": "b"}, {**WRITTEN, **OWNED_BY}),
    ],
)
def test_an_operator_goes_if_no_other_intent_has_objects(
    run: Run, installed: OlmWorld, kind: str, labels: dict[str, str], metadata: Resource
) -> None:
    custom(installed, "nfd-instance", OURS, WRITTEN)
    _have_policy(installed, kind, labels, metadata)
    gone = run(state="absent", **INTENT)
    assert not installed.names("Subscription") and gone["namespaces"] == []


@pytest.mark.parametrize(
    "needing", ["gpu-operator-certified.v1.0.0", "nvidia-network-operator.v1.0.0", "sriov-network-operator.v1.0.0"]
)
def test_node_feature_discovery_stays_while_an_operator_that_needs_its_labels_does(
    run: Run, installed: OlmWorld, needing: str
) -> None:
    installed.have(version(needing))
    gone = run(state="absent", **INTENT)
    kept = gone["stays"][0]
    assert kept["subject"] == "operator nfd" and f"ClusterServiceVersion {SPACE}/{needing}" in kept["why"]
    assert installed.names("Subscription") == {"nfd"}


@pytest.mark.parametrize("kind", ["ClusterPolicy", "NicClusterPolicy", "SriovNetworkNodePolicy"])
def test_node_feature_discovery_stays_while_others_configure_an_operator_that_needs_its_labels(
    run: Run, installed: OlmWorld, kind: str
) -> None:
    """Helm has installed that operator, so no ClusterServiceVersion tells."""
    _have_policy(installed, kind, {}, {})
    gone = run(state="absent", **INTENT)
    assert f"{kind} x" in gone["stays"][0]["why"] and installed.names("Subscription") == {"nfd"}


_FEATURE = "feature.node.kubernetes.io/amd-gpu"
_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": _FEATURE, "operator": "Exists"}]}]
    }
}


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment"])
@pytest.mark.parametrize(
    ("selection", "owner", "stays"),
    [
        ({"nodeSelector": {_FEATURE: "true"}}, "DeviceConfig", True),
        ({"affinity": {"nodeAffinity": _AFFINITY}}, "", True),
        ({"nodeSelector": {"kubernetes.io/os": "linux"}}, "", False),
        ({"nodeSelector": {_FEATURE: "true"}}, "ClusterPolicy", False),
    ],
    ids=["selector", "affinity", "another label", "an operator that goes"],
)
def test_node_feature_discovery_stays_while_pods_of_others_select_nodes_by_its_labels(
    run: Run, installed: OlmWorld, kind: str, selection: Resource, owner: str, stays: bool
) -> None:
    metadata: Resource = {"name": "driver", "namespace": SPACE, "uid": "d"}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "x", "uid": "o", "apiVersion": "v1"}]
    workload = {"kind": kind, "metadata": metadata, "spec": {"template": {"spec": selection}}}
    installed.serve(kind, [workload])
    gone = run(state="absent", **INTENT)
    assert installed.names("Subscription") == ({"nfd"} if stays else set())
    assert [f"{kind} {SPACE}/driver" in item["why"] for item in gone["stays"][:1]] == ([True] if stays else [])


@pytest.mark.parametrize("check_mode", [False, True])
def test_node_feature_discovery_goes_after_the_operators_that_need_its_labels(
    run: Run, installed: OlmWorld, check_mode: bool
) -> None:
    gpu = "gpu-operator-certified"
    label: dict[str, typing.Any] = {"labels": OURS, "currentCSV": f"{gpu}.v1", "installedCSV": f"{gpu}.v1"}
    # by its name it would be the last
    installed.have(version(f"{gpu}.v1"), subscription("z", spec={"name": gpu}, **label))
    gone = run(state="absent", _ansible_check_mode=check_mode, **INTENT)
    order = [line.split("/")[-1] for line in gone["changes"] if " Subscription " in line]
    assert order == ["z", "nfd"] and gone["stays"] == []


def test_objects_that_an_operator_made_stay_with_their_definition(run: Run, installed: OlmWorld) -> None:
    custom(installed, "theirs", metadata=OWNED_BY)
    gone = run(state="absent")
    assert gone["stays"] == [
        {
            "subject": "CustomResourceDefinition nodes.nfd.io",
            "why": "1 of its objects do not belong to this collection: theirs",
            "remedy": "",
        }
    ]
    assert installed.names("CustomResourceDefinition") == {"nodes.nfd.io"} and not installed.names("Subscription")


def test_the_record_that_olm_leaves_behind_goes_with_the_last_definition(run: Run, installed: OlmWorld) -> None:
    record = {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "Operator",
        "metadata": {"name": f"nfd.{SPACE}", "uid": "o"},
    }
    installed.serve("Operator", [])
    installed.put("Operator", record)
    custom(installed, "theirs", metadata=OWNED_BY)
    kept = {item["subject"]: item["why"] for item in run(state="absent")["stays"]}
    assert "CustomResourceDefinition nodes.nfd.io" in kept[f"Operator nfd.{SPACE}"] and installed.names("Operator") == {
        f"nfd.{SPACE}"
    }


def test_the_record_that_olm_leaves_behind_goes(run: Run, installed: OlmWorld) -> None:
    record = {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "Operator",
        "metadata": {"name": f"nfd.{SPACE}", "uid": "o"},
    }
    installed.serve("Operator", [])
    installed.put("Operator", record)
    gone = run(state="absent")
    assert f"deleted Operator nfd.{SPACE}" in gone["changes"] and gone["stays"] == []
    assert not installed.names("Operator")


def test_a_definition_that_was_there_before_stays(run: Run, installed: OlmWorld) -> None:
    installed.put("CustomResourceDefinition", {**CRD, "metadata": {"name": "nodes.nfd.io", "uid": "1"}})
    assert "before OLM installed" in run(state="absent")["stays"][0]["why"]


def test_an_operator_keeps_what_it_must_let_go_of(
    run: Run, installed: OlmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom(installed, "mine", OURS)
    real = installed.remove
    # a finalizer
    monkeypatch.setattr(installed, "remove", lambda path, item: None if "nfd.io" in path else real(path, item))
    gone = run(state="absent", wait_seconds=0)
    (left,) = [item for item in gone["applied"] if item["action"] == "refused"]
    assert left["kind"] == "Nfd" and left["reason"] == "Remains"
    assert installed.names("ClusterServiceVersion") == {"nfd.v1.0.0"} and gone["namespaces"] == [SPACE]
    assert (
        "objects of this collection that the operator must release still exist; rerun the teardown"
        in gone["stays"][0]["why"]
    )


def test_planted_subscriptions_with_finalizers_hold_up_a_removal_for_no_longer_than_two_waits(
    installed: OlmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, now = installed.remove, [0.0]
    for number in range(30):
        installed.have(named("Subscription", f"a-planted-{number}", labels=OURS, spec={"name": f"a-planted-{number}"}))
    monkeypatch.setattr(
        installed, "remove", lambda path, item: None if "planted" in item["metadata"]["name"] else real(path, item)
    )

    def pause(seconds: float) -> None:
        now[0] += seconds

    removed = Remover(installed.client(installed.url), False, 20.0, lambda: now[0], pause).run()
    assert now[0] <= 2.1 * 20 and len([item for item in removed.outcomes if item.applied.action == "refused"]) == 30
    assert installed.names("ClusterServiceVersion") == set() and "nfd" not in installed.names("Subscription")


def test_a_removal_that_was_interrupted_goes_on(run: Run, installed: OlmWorld) -> None:
    installed.lose(version("nfd.v1.0.0", spec=OWNED))
    installed.put(
        "CustomResourceDefinition",
        {**CRD, "metadata": {"name": "nodes.nfd.io", "uid": "1", "labels": {"operators.coreos.com/nfd.ops": ""}}},
    )
    assert [line.split()[1] for line in run(state="absent")["changes"]] == [
        "Subscription",
        "CustomResourceDefinition",
        "OperatorGroup",
    ]


def test_what_is_not_ours_stays(run: Run, world: OlmWorld) -> None:
    world.have(subscription(currentCSV="nfd.v1.0.0", installedCSV="nfd.v1.0.0"), version("nfd.v1.0.0"), group("theirs"))
    gone = run(state="absent")
    assert (
        gone["changes"] == [] and world.names("Subscription") == {"nfd"} and world.names("OperatorGroup") == {"theirs"}
    )


def test_a_group_that_another_operator_needs_stays(run: Run, installed: OlmWorld) -> None:
    installed.have(named("Subscription", "other", spec={"name": "other"}))
    gone = run(state="absent")
    assert {
        "subject": f"OperatorGroup {SPACE}/linerate-rdma",
        "why": "its namespace contains other operators",
        "remedy": "",
    } in gone["stays"]


@pytest.mark.parametrize("kind", ["Nfd", "ClusterServiceVersion", "Subscription", "OperatorGroup"])
def test_what_others_make_under_a_name_while_a_removal_works_stays(
    kind: str, run: Run, installed: OlmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object that was judged is gone by the time of its deletion, and another one has its name."""
    custom(installed, "mine", OURS)
    original = Deletions.delete

    def replace_first(
        self: Deletions, asked: typing.Any, namespace: str, name: str, *more: typing.Any, **options: typing.Any
    ) -> bool:
        if kind in (asked, *more):
            path = HERE if kind == "Nfd" else path_of(kind, namespace)
            found = installed._objects[path][name]
            theirs = {**found, "metadata": {**found["metadata"], "uid": "of others", "labels": {}}}
            installed._happen(path, "MODIFIED", theirs)
        return original(self, asked, namespace, name, *more, **options)

    monkeypatch.setattr(Deletions, "delete", replace_first)
    run(state="absent", wait_seconds=0)
    path = HERE if kind == "Nfd" else path_of(kind, SPACE)
    assert [item["metadata"]["uid"] for item in installed._objects[path].values()] == ["of others"]


def test_an_object_that_returns_under_its_name_holds_no_removal_up(
    run: Run, installed: OlmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller of others creates a Subscription again as soon as it is deleted."""
    real = installed.remove

    def return_at_once(path: str, item: Resource) -> None:
        real(path, item)
        if item["kind"] == "Subscription":
            installed._happen(path, "ADDED", {**item, "metadata": {**item["metadata"], "uid": "of others"}})

    monkeypatch.setattr(installed, "remove", return_at_once)
    gone = run(state="absent", wait_seconds=0)
    assert [item["action"] for item in gone["applied"] if item["kind"] == "Subscription"] == ["deleted"]
