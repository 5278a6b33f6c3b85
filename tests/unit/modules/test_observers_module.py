# SPDX-License-Identifier: GPL-3.0-or-later

"""The module observers against an API server over HTTP: checked, run, run again, changed, removed, interrupted,
refused; and the rights that it takes."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers import observers as check
from ansible_collections.linerate.rdma.plugins.module_utils._app.propose import collect_inputs
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import by_digest
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import PUBLIC_IMAGE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.inputs import NamedImage
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observer_view import seen_in
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.modules import observers as module
from ansible_collections.linerate.rdma.tests.unit import fake_observers as play
from ansible_collections.linerate.rdma.tests.unit.fake_observers import IMAGE, NAMESPACE, World

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers"
Worlds = typing.Callable[..., World]
Answer = tuple[int, dict[str, typing.Any]]


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[Worlds]:
    made = []

    def make(*nodes: Resource, **rest: typing.Any) -> World:
        world = World(*(nodes or (play.node("a"), play.node("b"))), **rest)
        world.start()
        made.append(world)
        monkeypatch.setattr(module, "connect", lambda given: world.client(world.url))
        return world

    # no test waits for a patience that is over in seconds on a cluster
    monkeypatch.setattr(f"{RUN}_removal.LOOK", 0.01)
    monkeypatch.setattr(f"{RUN}.SETTLE", 0.01)
    monkeypatch.setattr(check, "GRACE", dict.fromkeys(check.GRACE, 0.05))
    yield make
    for world in made:
        world.stop()


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> typing.Callable[..., Answer]:
    def run(check_mode: bool = False, **options: typing.Any) -> Answer:
        arguments = {"wait_seconds": 20, **({} if options.get("state") == "absent" else {"image": IMAGE}), **options}
        with (
            patch_module_args({**arguments, "_ansible_check_mode": check_mode, "_ansible_diff": True}),
            pytest.raises(SystemExit) as ended,
        ):
            module.main()
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out)

    return run


Call = typing.Callable[..., Answer]


def stands(answer: typing.Mapping[str, typing.Any]) -> dict[str, str]:
    return {item["node"]: item["reason"] or item["phase"] for item in answer["nodes"]}


def labels(world: World) -> dict[str, str]:
    (namespace,) = world.all("Namespace")
    return dict(namespace["metadata"]["labels"])


def test_checked_run_run_again_and_removed(worlds: Worlds, call: Call) -> None:
    world = worlds()
    code, checked = call(check_mode=True)
    assert (code, checked["changed"], stands(checked)) == (0, True, {"a": "check_mode", "b": "check_mode"})
    assert world.all("Namespace") == [] and checked["changes"][0] == f"created Namespace {NAMESPACE}"
    code, started = call()
    assert (code, started["changed"], stands(started)) == (0, True, {"a": "ready", "b": "ready"})
    assert (started["ready"], started["missing"], started["image"], started["timed_out"]) == (2, 0, IMAGE, False)
    assert (
        started["changes"]
        == checked["changes"]
        == [
            f"created Namespace {NAMESPACE}",
            *(f"created {kind} linerate-observer" for kind in ("ServiceAccount", "DaemonSet")),
        ]
    )
    assert [item["before"] for item in started["diff"]] == ["", "", ""] and "hostNetwork: true" in started["diff"][2][
        "after"
    ]
    for mode in (False, True):
        code, again = call(check_mode=mode)
        assert (code, again["changed"], again["changes"], again["diff"], stands(again)) == (
            0,
            False,
            [],
            [],
            {"a": "ready", "b": "ready"},
        )
    code, would = call(check_mode=True, state="absent")
    assert (would["changed"], len(world.all("Namespace"))) == (True, 1)
    world.lingers = 3
    code, removed = call(state="absent")
    assert (code, removed["changed"], removed["changes"]) == (0, True, [f"deleted Namespace {NAMESPACE}"])
    assert (world.all("Namespace"), world.all("Pod"), world.all("DaemonSet")) == ([], [], [])
    assert call(state="absent")[1]["changed"] is False
    # a module beside the run gives the Lease back
    assert world.object("/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma") is None


def test_other_options_replace_the_pods(worlds: Worlds, call: Call) -> None:
    world = worlds()
    call()
    before = {pod["metadata"]["annotations"]["linerate.rdma/template"] for pod in world.all("Pod")}
    code, changed = call(lifetime=600, nodes=["a"])
    assert (code, changed["changes"], stands(changed)) == (0, ["changed DaemonSet linerate-observer"], {"a": "ready"})
    assert "sleep 600" in changed["diff"][0]["after"]
    (pod,) = world.all("Pod")
    assert pod["metadata"]["annotations"]["linerate.rdma/template"] not in before


def run_of(tmp_path: pathlib.Path, name: str, **rest: typing.Any) -> dict[str, typing.Any]:
    folder = FactFolder(str(tmp_path / name), name)
    folder.begin(RunStart(name, "2026-01-02T03:04:05+00:00", nodes=("a",)))
    return {"facts_dir": folder.report_dir, "run": name, **rest}


def test_a_run_has_them_on_its_nodes_and_keeps_a_fact(worlds: Worlds, call: Call, tmp_path: pathlib.Path) -> None:
    world = worlds()
    options = run_of(tmp_path, "run-1")
    code, answer = call(**options)
    assert (code, answer["counts"], answer["ready"]) == (0, {"changes": 3, "nodes": 1}, 1)
    assert "nodes" not in answer and "changes" not in answer
    value = FactFolder(options["facts_dir"], "run-1").value("observers")
    assert [(item["node"], item["pod"], item["container"]) for item in value["nodes"]] == [
        ("a", "linerate-observer-a", "observer")
    ]
    assert labels(world)["linerate.rdma/run"] == "run-1"
    assert [pod["spec"]["nodeName"] for pod in world.all("Pod")] == ["a"]
    # a proposal reads the same fact
    ran = collect_inputs(FactFolder(options["facts_dir"], "run-1"), image=NamedImage("x:1", False)).observers
    assert ran is not None and [one.node for one in ran.nodes] == ["a"]


def test_what_a_dead_run_has_left_is_swept_first(worlds: Worlds, call: Call, tmp_path: pathlib.Path) -> None:
    world = worlds()
    call(**run_of(tmp_path, "run-1"))
    # it was killed, and its Lease has run out
    world.drop("Lease", lease_of(world), "default")
    uid = world.all("Namespace")[0]["metadata"]["uid"]
    world.lingers = 2
    code, checked = call(check_mode=True, **run_of(tmp_path, "run-2"))
    assert (code, checked["changed"], labels(world)["linerate.rdma/run"]) == (0, True, "run-1")
    progress = tmp_path / "progress"
    code, answer = call(**run_of(tmp_path, "run-2", progress_file=str(progress)))
    assert (code, answer["ready"]) == (0, 1)
    assert labels(world)["linerate.rdma/run"] == "run-2" and world.all("Namespace")[0]["metadata"]["uid"] != uid
    lines = progress.read_text(encoding="utf-8")
    assert "run run-1 left observers in the namespace" in lines and "1 of 1 nodes have an observer" in lines


def lease_of(world: World) -> Resource:
    found = world.object("/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma")
    assert found is not None
    return found


def test_another_run_that_lives_keeps_its_own(worlds: Worlds, call: Call, tmp_path: pathlib.Path) -> None:
    world = worlds()
    call(**run_of(tmp_path, "run-1"))
    for options in (run_of(tmp_path, "run-2"), {"state": "absent"}):
        world.asked.clear()
        code, answer = call_at_once(call, options)
        assert (code, answer["failure"]["kind"]) == (1, "LeaseHeld")
        assert labels(world)["linerate.rdma/run"] == "run-1" and len(world.all("Pod")) == 1


def test_run_that_never_held_the_lease_waits_for_no_other_run_to_remove_nothing(
    worlds: Worlds, call: Call, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds()
    call(**run_of(tmp_path, "run-1"))
    monkeypatch.setattr("ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease.WAIT", float("nan"))
    code, answer = call(state="absent", unless_held=True, **run_of(tmp_path, "run-2"))
    assert (code, answer["changed"]) == (0, False)
    assert labels(world)["linerate.rdma/run"] == "run-1" and len(world.all("Pod")) == 1
    # its own observers are removed
    code, answer = call(state="absent", unless_held=True, **run_of(tmp_path, "run-1"))
    assert (code, answer["changed"], world.all("DaemonSet")) == (0, True, [])


def call_at_once(call: Call, options: typing.Mapping[str, typing.Any]) -> Answer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease.WAIT", 0.0)
        return call(**options)


def test_kept_observers_stay_and_are_taken_over(worlds: Worlds, call: Call, tmp_path: pathlib.Path) -> None:
    world = worlds()
    call(keep=True, **run_of(tmp_path, "run-1"))
    assert "linerate.rdma/run" not in labels(world)
    uid = world.all("Namespace")[0]["metadata"]["uid"]
    world.drop("Lease", lease_of(world), "default")
    assert call(keep=True, **run_of(tmp_path, "run-2"))[1]["changed"] is False
    world.drop("Lease", lease_of(world), "default")
    # without keep they go with this run, also when it is killed; their pods stay as they are
    pods = world.all("Pod")
    code, answer = call(**run_of(tmp_path, "run-3"))
    assert (code, answer["changed"], labels(world)["linerate.rdma/run"]) == (0, True, "run-3")
    assert world.all("Namespace")[0]["metadata"]["uid"] == uid and world.all("Pod") == pods


@pytest.mark.parametrize("options", [{}, {"state": "absent"}])
@pytest.mark.parametrize(
    "theirs", [{}, {"app.kubernetes.io/managed-by": "linerate.rdma"}, {"linerate.rdma/observers": "own"}]
)
def test_a_foreign_namespace_is_refused_by_its_name(
    worlds: Worlds, call: Call, options: dict[str, str], theirs: dict[str, str]
) -> None:
    world = worlds()
    world.make_namespace(theirs)
    code, answer = call(**options)
    assert (code, answer["failure"]["kind"]) == (1, "ForeignNamespace")
    assert (
        NAMESPACE in answer["msg"]
        and f"kubectl label namespace {NAMESPACE} linerate.rdma/observers=prepared" in answer["msg"]
    )
    assert labels(world) == theirs and world.all("DaemonSet") == []


def test_a_prepared_namespace_keeps_what_is_not_ours(worlds: Worlds, call: Call, tmp_path: pathlib.Path) -> None:
    world = worlds(openshift=True)
    world.make_namespace({"linerate.rdma/observers": "prepared"})
    code, answer = call(**run_of(tmp_path, "run-1"))
    assert (code, answer["ready"], world.all("Role"), labels(world)) == (
        0,
        1,
        [],
        {"linerate.rdma/observers": "prepared"},
    )
    world.drop("Lease", lease_of(world), "default")
    # of a dead run: swept here as well
    uid = world.all("DaemonSet")[0]["metadata"]["uid"]
    code, answer = call(**run_of(tmp_path, "run-2"))
    assert (code, answer["ready"]) == (0, 1) and world.all("DaemonSet")[0]["metadata"]["uid"] != uid
    world.drop("Lease", lease_of(world), "default")
    code, answer = call(state="absent")
    assert (code, answer["changes"]) == (
        0,
        ["deleted DaemonSet linerate-observer", "deleted ServiceAccount linerate-observer"],
    )
    assert len(world.all("Namespace")) == 1 and (world.all("Pod"), world.all("ServiceAccount")) == ([], [])


def test_what_is_not_ours_in_a_prepared_namespace_is_not_removed(worlds: Worlds, call: Call) -> None:
    world = worlds()
    world.make_namespace({"linerate.rdma/observers": "prepared", "app.kubernetes.io/managed-by": "linerate.rdma"})
    world.put("ServiceAccount", {"metadata": {"name": "linerate-observer", "uid": "theirs"}}, NAMESPACE)
    assert call(state="absent")[1]["changed"] is False
    assert len(world.all("ServiceAccount")) == len(world.all("Namespace")) == 1


def test_another_namespace_of_the_name_is_not_the_one_that_was_deleted(
    worlds: Worlds, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds()
    call()

    def replace(path: str, item: Resource) -> None:
        World._happen(world, path, "DELETED", item)
        if path == "/api/v1/namespaces":
            world.make_namespace({})

    monkeypatch.setattr(world, "remove", replace)
    code, answer = call(state="absent", wait_seconds=2)
    assert (code, answer["changed"]) == (0, True)
    assert [item["metadata"]["uid"] for item in world.all("Namespace")] == ["before"]


def test_openshift_is_seen_and_brings_its_own_image(worlds: Worlds, call: Call) -> None:
    world = worlds(openshift=True)
    code, answer = call(image="")
    assert (code, answer["image"]) == (0, IMAGE.replace("rdma-tools", "ocp-tools"))
    assert len(world.all("Role")) == len(world.all("RoleBinding")) == 1


def test_elsewhere_the_image_must_be_named(worlds: Worlds, call: Call) -> None:
    worlds()
    code, answer = call(image="")
    assert code == 1 and answer["msg"] == (
        "rdma_observers_image is not set, and the cluster is not OpenShift, which provides an"
        f" image. Run the same command with -e rdma_observers_image={PUBLIC_IMAGE}, which is a public image of NVIDIA,"
        " or with an image of your own: docs/observers.md lists the tools of each image"
    ), "what the user types, and no option of a module"
    assert by_digest(PUBLIC_IMAGE), "each node runs the same image"
    worlds(openshift=True).drop("ImageStreamTag", {"metadata": {"name": "tools:latest"}}, "openshift")
    code, answer = call(image="")
    assert (code, "-e rdma_observers_image=" in answer["msg"], "imagestreamtags/tools:latest" in answer["msg"]) == (
        1,
        True,
        True,
    )


def test_an_older_api_server_is_not_asked_for_what_it_does_not_know(worlds: Worlds, call: Call) -> None:
    world = worlds()
    world.have("", {"metadata": {"name": "version"}, "gitVersion": "v1.30.2"})
    call()
    (daemon,) = world.all("DaemonSet")
    mount, _tmp = daemon["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert (mount["readOnly"], "recursiveReadOnly" in mount, mount["mountPropagation"]) == (
        True,
        False,
        "HostToContainer",
    )


def test_a_tag_is_warned_of(worlds: Worlds, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds()
    said: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda self, text: said.append(text))
    call()
    assert said == []
    call(image="registry.example/rdma-tools:1")
    assert ["the image registry.example/rdma-tools:1 is referenced by a tag" in text for text in said] == [True]


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [(play.SCC, "scc"), (play.POD_SECURITY, "pod_security"), (play.QUOTA, "quota"), (play.WEBHOOK, "policy")],
)
def test_the_wait_ends_when_no_node_can_get_one(worlds: Worlds, call: Call, refusal: str, reason: str) -> None:
    world = worlds()
    world.refusal = refusal
    code, answer = call()
    assert (code, answer["changed"], answer["timed_out"], stands(answer)) == (
        0,
        True,
        False,
        {"a": reason, "b": reason},
    )
    assert all(item["phase"] == "failed" and item["remedy"] and item["detail"] in refusal for item in answer["nodes"])


def test_one_node_without_one_keeps_nobody_else_back(worlds: Worlds, call: Call) -> None:
    world = worlds(play.node("a"), play.node("b"), play.node("c", ready=False), play.node("d", gpu="no"))
    world.stand = {"b": play.waiting("ImagePullBackOff", "Back-off pulling image"), "c": None}
    code, answer = call(nodes=["a", "b", "c", "z"])
    assert (code, stands(answer)) == (0, {"a": "ready", "b": "image", "c": "node_not_ready", "z": "no_node"})
    assert (answer["ready"], answer["missing"]) == (1, 3)


def test_a_slow_node_is_waited_for_until_the_limit(worlds: Worlds, call: Call) -> None:
    world = worlds()
    world.stand = {"b": play.waiting("ContainerCreating", "")}
    code, answer = call(wait_seconds=1)
    assert (code, answer["timed_out"], stands(answer)) == (0, True, {"a": "ready", "b": "starting"})


def test_a_pod_that_becomes_ready_ends_the_wait(worlds: Worlds, call: Call) -> None:
    world = worlds()
    world.stand = {"b": play.waiting("ContainerCreating", "")}

    def say(line: str) -> None:
        if "1 of 2" in line:
            (pod,) = (pod for pod in world.all("Pod") if pod["spec"]["nodeName"] == "b")
            world.put("Pod", {**pod, "status": play.running()}, NAMESPACE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "open_progress", lambda path: speaking(say))
        code, answer = call()
    assert (code, answer["timed_out"], stands(answer)) == (0, False, {"a": "ready", "b": "ready"})


class speaking:
    """What progress gives, with a listener."""

    def __init__(self, say: typing.Callable[[str], None]) -> None:
        self._say = say

    def __enter__(self) -> typing.Callable[[str], None]:
        return self._say

    def __exit__(self, *_error: typing.Any) -> None:
        return None


def test_nobody_fits(worlds: Worlds, call: Call) -> None:
    world = worlds()
    code, answer = call(node_selector={"gpu": "yes"})
    assert (code, "gpu=yes" in answer["msg"], world.all("Namespace")) == (1, True, [])


@pytest.mark.parametrize("kind", ["Namespace", "DaemonSet"])
def test_who_is_refused_leaves_nothing(worlds: Worlds, call: Call, kind: str, tmp_path: pathlib.Path) -> None:
    world = worlds()
    world.refuses = {kind: f"{kind.lower()}s is forbidden: User viewer cannot patch resource"}
    options = run_of(tmp_path, "run-1")
    code, answer = call(**options)
    assert (
        code,
        "cannot patch resource" in answer["msg"],
        "docs/rbac/observers.yml" in answer["failure"]["remedy"],
    ) == (1, True, True)
    # the next look at it finds it gone
    world.object(f"/api/v1/namespaces/{NAMESPACE}")
    assert world.all("Namespace") == []
    fact = FactFolder(options["facts_dir"], "run-1").read("observers")
    assert fact is not None and fact.error == answer["msg"]


@pytest.mark.parametrize("before", [False, True])
def test_an_interrupt_leaves_what_was_there_before(worlds: Worlds, call: Call, before: bool) -> None:
    world = worlds()
    if before:
        call()

    def interrupt(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "open_progress", lambda path: speaking(interrupt))
        with pytest.raises(KeyboardInterrupt), patch_module_args({"image": IMAGE}):
            module.main()
    world.object(f"/api/v1/namespaces/{NAMESPACE}")
    assert len(world.all("Namespace")) == before
    assert world.object("/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma") is None


def test_a_namespace_that_does_not_go_is_named(worlds: Worlds, call: Call) -> None:
    world = worlds()
    call()
    world.lingers = 10**6
    code, answer = call(state="absent", wait_seconds=0)
    assert (code, NAMESPACE in answer["msg"], f"kubectl get namespace {NAMESPACE} -o yaml" in answer["msg"]) == (
        1,
        True,
        True,
    )
    # and who comes while it goes waits for it
    world.lingers = 2
    code, answer = call()
    assert (code, answer["ready"]) == (0, 2) and not world.all("Namespace")[0]["metadata"].get("deletionTimestamp")


def test_an_api_server_that_tells_nothing_of_the_nodes_proves_nothing(worlds: Worlds, call: Call) -> None:
    world = worlds()
    world.stand = {"b": None}

    def silent(path: str) -> typing.Optional[bytes]:
        return None if path.endswith("/nodes") and world.all("DaemonSet") else World.listing(world, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "listing", silent)
        code, answer = call(nodes=["a", "b"], wait_seconds=1)
    # a pod that is ready speaks for itself
    assert (code, stands(answer)) == (0, {"a": "ready", "b": "unread"})


def why_none(world: World, node: str) -> str:
    (observer,) = check.judge([node], seen_in(world.client(world.url), NAMESPACE))
    return check.describe_missing(observer)


def test_a_line_says_why_a_node_has_none(worlds: Worlds, call: Call) -> None:
    world = worlds()
    assert "no_daemon_set" in why_none(world, "a")
    world.stand = {"b": play.waiting("ImagePullBackOff", "Back-off pulling image")}
    call()
    assert [why_none(world, name)[:40] for name in ("a", "b", "z")] == [
        "",
        "node b has no observer (image): registry",
        "node z has no observer (no_node): the cl",
    ]


def test_events_only_explain(worlds: Worlds, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds()
    world.stand = {"b": None}
    call(wait_seconds=0)
    monkeypatch.setattr(world, "listing", lambda path: None if path.endswith("/events") else World.listing(world, path))
    assert "(no_pod)" in why_none(world, "b")


def granted() -> set[tuple[str, str, str]]:
    """(verb, resource, namespace) that an admin gives for a prepared namespace, beside the rights to look at the
    cluster."""
    found = set()
    items = [
        item
        for name in ("look", "change", "observers")
        for item in yaml.safe_load((ROOT / f"docs/rbac/{name}.yml").read_text(encoding="utf-8"))["items"]
    ]
    roles = {
        (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", "")): item
        for item in items
        if item["kind"].endswith("Role")
    }
    for binding in items:
        if binding["kind"].endswith("Binding") and "linerate-rdma-operators" in {
            subject["name"] for subject in binding["subjects"]
        }:
            space = binding["metadata"].get("namespace", "")
            for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"], space]["rules"]:
                found |= {(verb, kind, space) for verb in rule["verbs"] for kind in rule["resources"]}
    return found


def test_the_rights_of_a_prepared_namespace_are_enough(worlds: Worlds, call: Call, tmp_path: pathlib.Path) -> None:
    world = worlds()
    world.make_namespace({"linerate.rdma/observers": "prepared"})
    world.asked.clear()
    assert call(**run_of(tmp_path, "run-1"))[0] == 0
    world.drop("Lease", lease_of(world), "default")
    assert call(**run_of(tmp_path, "run-2"))[0] == 0
    assert call(state="absent", **run_of(tmp_path, "run-2"))[0] == 0
    # each user may ask which API groups there are, and which version the server is of
    asked, given = {right for right in world.asked if right[1] != ""}, granted()
    assert {right for right in asked if right not in given and (right[0], right[1], "") not in given} == set()
    # and nothing more, but for what a connection through an observer needs beside it, and to take off a finalizer that
    # holds a pod up
    more = {(verb, kind, space) for verb, kind, space in given if space == NAMESPACE} - asked
    assert more == {("create", "pods/exec", NAMESPACE), ("get", "pods/exec", NAMESPACE), ("patch", "pods", NAMESPACE)}


def test_nodes_that_a_limit_excludes_get_no_observer(worlds: Worlds, call: Call) -> None:
    world = worlds()
    code, answer = call(excluded=["a", "b"])
    assert (code, answer["changed"], answer["nodes"], world.all("Namespace")) == (0, False, [], [])
    code, answer = call(excluded=["b"])
    assert (code, stands(answer)) == (0, {"a": "ready"})
    assert {pod["spec"]["nodeName"] for pod in world.all("Pod")} == {"a"}


def test_observers_that_stay_also_stay_on_nodes_that_a_limit_excludes(worlds: Worlds, call: Call) -> None:
    world = worlds()
    call(keep=True, nodes=["a", "b"])
    code, answer = call(keep=True, nodes=["a", "b"], excluded=["b"])
    assert (code, answer["changed"], stands(answer)) == (0, False, {"a": "ready"})
    assert {pod["spec"]["nodeName"] for pod in world.all("Pod")} == {"a", "b"}
