# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever the environment says, Helm works on the cluster of all other tasks: a program that stands for it writes down
what it is told."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import sriov_operator
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import kept_release
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY, RESOURCES
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = str(ROOT / "build" / "collections")
PLAYBOOK = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
    pathlib.Path(sys.executable).with_name("ansible-playbook")
)
MODULES = ("kubernetes.core.helm", "kubernetes.core.helm_info")
ANOTHER = "https://another.example:6443"
RUN = "20260102T030405Z-aaaaaa"
STAYS = {"subject": "Helm release ops/x", "why": "whose it is is not proven", "remedy": "helm uninstall -n ops x"}
DOES = ("list", "show", "template", "upgrade", "uninstall", "rollback")
#: that Helm reads above its kubeconfig [helm.sh/docs/helm/helm, environment variables]
VARIABLES = (
    *("HELM_KUBEAPISERVER", "HELM_KUBEASGROUPS", "HELM_KUBEASUSER", "HELM_KUBECAFILE", "HELM_KUBECONTEXT"),
    *("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", "HELM_KUBETLS_SERVER_NAME", "HELM_KUBETOKEN"),
)
HELM = """#!{python}
import json, os, sys
said = {{name: text for name, text in os.environ.items() if name.startswith("HELM_KUBE")}}
arguments = sys.argv[1:]
path = os.environ.get("KUBECONFIG", os.devnull)
if "--kubeconfig" in arguments:
    path = arguments[arguments.index("--kubeconfig") + 1]
with open(path) as file:
    content = file.read()
what = next(word for word in arguments if not word.startswith("-"))
if what != "version":
    with open({log!r}, "a") as log:
        log.write(json.dumps({{"what": what, "kubeconfig": content, "said": said, "arguments": arguments}}) + "\\n")
release = {release}
answers = {{
    "version": 'version.BuildInfo{{Version:"v3.19.0", GitCommit:"x", GoVersion:"go1.24"}}',
    "list": json.dumps(release),
    "get": "{{}}",
    "show": "name: sriov-network-operator-chart\\nversion: 1.6.0",
    "plugin": "NAME\\tVERSION\\tDESCRIPTION",
    "template": "---\\n# Source: c/templates/a.yaml\\nkind: CustomResourceDefinition\\nmetadata: {{name: a}}",
}}
print(answers.get(what, ""))
"""
RELEASE = {
    "name": "x",
    "namespace": "ops",
    "revision": "3",
    "status": "deployed",
    "chart": "sriov-network-operator-chart-1.6.0",
    "app_version": "1",
}
OLDER = {**RELEASE, "chart": "sriov-network-operator-chart-1.5.0"}


def tasks_of(path: pathlib.Path) -> typing.Iterator[typing.Mapping[str, typing.Any]]:
    def walk(item: typing.Any) -> typing.Iterator[typing.Mapping[str, typing.Any]]:
        if isinstance(item, list):
            for one in item:
                yield from walk(one)
        elif isinstance(item, dict):
            yield item
            for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
                yield from walk(item.get(key))

    yield from walk(yaml.safe_load(path.read_text(encoding="utf-8")))


def options_of(task: typing.Mapping[str, typing.Any]) -> typing.Optional[typing.Mapping[str, typing.Any]]:
    """What a task gives to a module of Helm."""
    asked = task.get("linerate.rdma.on_node") or {}
    task = {**task, asked.get("module", ""): asked.get("options")}
    return next((task[module] for module in MODULES if module in task), None)


def of_helm() -> typing.Iterator[tuple[str, typing.Mapping[str, typing.Any]]]:
    for path in sorted([*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml"), *ROOT.glob("*.yml")]):
        for task in tasks_of(path):
            if options_of(task) is not None or "helm_binary" in str(task.get("ansible.builtin.command", "")):
                yield f"{path.relative_to(ROOT)}: {task['name']}", task


def test_each_task_of_helm_names_its_cluster_and_takes_nothing_from_the_environment() -> None:
    found = dict(of_helm())
    assert len(found) >= 5
    for place, task in found.items():
        assert task.get("environment") == "{{ operators_helm_environment }}", place
        options = options_of(task)
        if options is not None:
            assert options["kubeconfig"] == "{{ operators_kubeconfig }}", place
            assert (options["host"], options["api_key"]) == ("", ""), place
        elif "'template'" not in str(task):
            assert "'--kubeconfig', operators_kubeconfig" in task["ansible.builtin.command"]["argv"], place
    cleared = yaml.safe_load((ROOT / "roles/operators/vars/main.yml").read_text(encoding="utf-8"))[
        "operators_helm_environment"
    ]
    assert {name: cleared.get(name) for name in VARIABLES} == dict.fromkeys(VARIABLES, "")


class Leases(FakeApi):
    """Has the Lease, and says what it is."""

    def __init__(self) -> None:
        super().__init__()
        self.serve("Lease", [], "default")

    def object(self, path: str) -> typing.Optional[Resource]:
        return {**DISCOVERY, "/api/v1": RESOURCES}.get(path) or super().object(path)


@pytest.fixture(name="leases")
def _leases() -> typing.Iterator[Leases]:
    leases = Leases()
    leases.start()
    yield leases
    leases.stop()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("role", "part", "release", "stays", "asked", "holds", "configs"),
    [
        ("operators", "release", [], {}, ["list", "show", "upgrade"], True, []),
        ("operators", "release", [OLDER], {}, ["list", "template", "show", "upgrade"], True, []),
        ("operators", "release", [OLDER], {}, ["list"], True, []),
        ("operators", "release", [], {}, ["list"], False, []),
        ("teardown", "operator", [RELEASE], {}, ["list", "uninstall"], True, []),
        ("teardown", "operator", [RELEASE], {}, [], False, []),
        ("teardown", "operator", [RELEASE], STAYS, ["list"], True, []),
        ("teardown", "operator", [], STAYS, ["list"], True, []),
        # a deletion would ask the other cluster, and fail
        ("teardown", "operator", [RELEASE], STAYS, ["list"], True, ["ops"]),
        ("teardown", "operator", [], STAYS, ["list"], True, ["ops"]),
    ],
    ids=[
        "install",
        "upgrade",
        "upgrade where nothing may be disturbed",
        "install without the Lease",
        "ours",
        "ours without the Lease",
        "not ours",
        "none",
        "configured by others",
        "configured by others by hand",
    ],
)
def test_helm_works_on_the_cluster_of_all_other_tasks_and_takes_back_what_is_ours(
    tmp_path: pathlib.Path,
    leases: Leases,
    role: str,
    part: str,
    release: typing.Any,
    stays: typing.Mapping[str, str],
    asked: list[str],
    holds: bool,
    configs: list[str],
) -> None:
    ours, theirs = (tmp_path / name for name in ("ours", "theirs"))
    for path, server in ((ours, "https://ours.example:6443"), (theirs, ANOTHER)):
        entries = {"clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}]}
        contexts = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
        path.write_text(
            yaml.safe_dump(
                {"apiVersion": "v1", "kind": "Config", **entries, "contexts": contexts, "current-context": "x"}
            ),
            encoding="utf-8",
        )
    helm, log = tmp_path / "helm", tmp_path / "log"
    helm.write_text(HELM.format(python=sys.executable, log=str(log), release=release), encoding="utf-8")
    helm.chmod(0o755)
    wanted = {
        "operator": "o",
        "release": "x",
        "namespace": "ops",
        "chart": "oci://r.example/c",
        "version": "1.6.0",
        "repository": "",
        "values": {},
        "drains": True,
        "guards": True,
    }
    refused = release == [OLDER] and asked == ["list"]
    variables = {
        "rdma_cluster": {"disruption": "none"} if refused else {},
        # in the place of the lookup, which asks the environment for what these hold
        "operators_kubeconfig": str(ours),
        "operators_helm_binary": str(helm),
        "operators_wanted": wanted,
        "operators_changes": [],
        "teardown_before": {
            "namespace": "ops",
            "configs": configs,
            "config_uid": "c" if configs else "",
            "release_stays": {},
            "users": [],
        },
        "teardown_settled": {"busy": [], "stays": [], "release_stays": stays, "users": []},
        "teardown_olm": {"namespaces": []},
        "teardown_sriov_release": "x",
    }
    facts = FactFolder(str(tmp_path / "report"), RUN)
    facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, ()))
    leases.write_kubeconfig(leases.url, tmp_path, "x")
    hold: list[dict[str, typing.Any]] = [{"linerate.rdma.cluster_lease": {}}] if holds else []
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {
            "group/linerate.rdma.facts": {"facts_dir": facts.report_dir, "run": RUN},
            # the environment leads elsewhere
            "group/linerate.rdma.cluster": {
                "kubeconfig": str(tmp_path / "kubeconfig"),
                "host": leases.url,
                "api_key": "x",
            },
            "group/linerate.rdma.lease": {"holder": "a test"},
        },
        "tasks": [*hold, {"ansible.builtin.include_role": {"name": f"linerate.rdma.{role}", "tasks_from": part}}],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    # an upgrade asks the API server for its version, and this way leads to the played one
    host = leases.url if release == [OLDER] else ANOTHER
    secret = {"K8S_AUTH_HOST": host, "K8S_AUTH_API_KEY": "another", "KUBECONFIG": str(theirs)}
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
        "HOME": str(tmp_path),
        **dict.fromkeys(VARIABLES, ANOTHER),
        **secret,
    }
    given = json.dumps({**variables, "ansible_python_interpreter": sys.executable})
    command = [PLAYBOOK, "-i", "localhost,", "-c", "local", "-e", given, str(tmp_path / "play.yml")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode == 0) is (holds and not refused), f"{done.stdout}{done.stderr}"
    assert ("rdma_cluster.disruption is none" in done.stdout) is refused
    calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    assert list(dict.fromkeys(call["what"] for call in calls if call["what"] in DOES)) == asked
    # the judgement of the teardown tells it
    told = [STAYS["subject"]] if stays and release else []
    told += ["SriovOperatorConfig ops/default"] if configs else []
    assert [item["subject"] for item in (facts.value("release_kept") or {"stays": []})["stays"]] == told
    for call in calls:
        # the definitions of a chart are read without a cluster
        assert (
            "ours.example" in call["kubeconfig"] or (call["what"] == "template" and not call["kubeconfig"])
        ) and not any(call["said"].values()), call
        assert ANOTHER not in str(call["arguments"])
        # webhooks of an operator that does not serve would refuse the objects of others
        assert call["what"] not in ("install", "upgrade") or "--atomic" in call["arguments"]


@pytest.mark.processes
@pytest.mark.parametrize(("kind", "failed"), [("_AnsibleTaggedStr", False), ("Deprecated", True)])
def test_values_of_a_release_write_nothing_to_the_terminal(tmp_path: pathlib.Path, kind: str, failed: bool) -> None:
    tags = [{"__ansible_type": "Deprecated", "msg": "\x1b[31mRED\nlinerate.rdma: GREEN"}]
    values = {"x": {"__ansible_type": kind, **({"msg": tags[0]["msg"]} if failed else {"value": "y", "tags": tags})}}
    helm = tmp_path / "helm"
    text = HELM.format(python=sys.executable, log=str(tmp_path / "log"), release=[RELEASE])
    helm.write_text(text.replace('"get": "{}"', f'"get": {json.dumps(values)!r}'), encoding="utf-8")
    helm.chmod(0o755)
    options = {"binary_path": str(helm), "release_name": "x", "release_namespace": "ops", "kubeconfig": os.devnull}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {
                "block": [
                    {
                        "linerate.rdma.on_node": {"module": "kubernetes.core.helm_info", "options": options},
                        "register": "release",
                    }
                ],
                "rescue": [{"ansible.builtin.debug": {"msg": "rescued"}}],
            },
            {"ansible.builtin.debug": {"msg": "value {{ release.status['values'].x | default('none') }}"}},
        ],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    given = json.dumps({"ansible_python_interpreter": sys.executable})
    done = subprocess.run(
        [PLAYBOOK, "-i", "localhost,", "-c", "local", "-e", given, str(tmp_path / "play.yml")],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    assert "\x1b[31mRED" not in output and "\nlinerate.rdma: GREEN" not in output, output
    # before ansible-core 2.19 such a mapping is one as any other
    assert "value y" in output or "rescued" in output or "value {" in output, output
    assert "UNREACHABLE" not in output


def deployment(**annotations: str) -> dict[str, typing.Any]:
    notes = {f"meta.helm.sh/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {"metadata": {"name": "sriov-network-operator", "namespace": "ops", "annotations": notes}}


OURS = deployment(release_name="x", release_namespace="ops")


@pytest.mark.parametrize(
    ("ours", "operators", "why"),
    [
        (True, [OURS], None),
        (True, [deployment(), OURS], None),
        (False, [OURS], "namespace ops existed before this collection, or belongs to another owner"),
        (True, [deployment(release_name="y", release_namespace="ops")], "installed no SR-IOV network operator"),
        (True, [deployment(release_name="x", release_namespace="another")], "installed no SR-IOV network operator"),
        (True, [deployment()], "installed no SR-IOV network operator"),
        (True, [], "installed no SR-IOV network operator"),
    ],
)
def test_a_release_is_not_ours_by_its_name(ours: bool, operators: list[typing.Any], why: typing.Optional[str]) -> None:
    found = kept_release("ops", "x", ours, operators, True)
    assert (
        found is None
        if why is None
        else found is not None and why in found.why and "helm uninstall --wait -n ops x" in found.remedy
    )


def test_a_release_that_stays_is_a_finding_with_its_command(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), RUN)
    folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, ()))
    folder.write("release_kept", value={"stays": [STAYS]})
    found = check(Intent(()), load(Facts, read_facts(folder, "teardown")[0], "facts"))
    (stays,) = [
        finding for finding in found if finding.check == "teardown.stays" and finding.subject == STAYS["subject"]
    ]
    assert (stays.status, stays.remedy) == ("warn", STAYS["remedy"]) and STAYS["why"] in stays.why


class Api:
    """Lists of three kinds. A ClusterRoleBinding is of the release, and as old as the namespace."""

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        assert (kind, name) == ("Namespace", "ops")
        return {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}}

    def pages(self, kind: str) -> typing.Iterator[typing.Mapping[str, typing.Any]]:
        assert kind == "ClusterRoleBinding"
        yield {
            "metadata": {
                "name": "x",
                "annotations": OURS["metadata"]["annotations"],
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }
        }

    def __init__(self, labelled: typing.Sequence[str], *deployments: typing.Mapping[str, typing.Any]) -> None:
        self.labelled, self.deployments = labelled, deployments

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        if kind == "Namespace":
            assert selector == "app.kubernetes.io/managed-by=linerate.rdma"
            return Listing(tuple({"metadata": {"name": name}} for name in self.labelled), "1")
        assert (kind, namespace) == ("Deployment", "ops")
        return Listing(tuple(dict(item) for item in self.deployments), "1")


def test_the_namespace_tells_by_its_label_and_the_operator_by_what_it_runs() -> None:
    container = {
        "name": "m",
        "image": "r.example/x",
        "command": ["sriov-network-operator"],
        "env": [{"name": "SRIOV_CNI_IMAGE", "value": "r.example/y"}],
    }
    runs = {**OURS, "spec": {"template": {"spec": {"containers": [container]}}}}
    other = {**OURS, "spec": {"template": {"spec": {"containers": [{"name": "m", "image": "r.example/x"}]}}}}

    def stays(*world: typing.Any) -> bool:
        return sriov_operator.kept_release(typing.cast(typing.Any, Api(*world)), "ops", "x") is not None

    assert [stays(["ops"], runs), stays(["another"], runs), stays(["ops"], other)] == [False, True, True]
