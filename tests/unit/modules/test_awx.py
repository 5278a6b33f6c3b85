# SPDX-License-Identifier: GPL-3.0-or-later

"""What is made in AWX: taken by the real modules of awx.awx, which a played API serves; AWX's own judgement is not in
here."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import ssl
import subprocess
import sys
import types
import typing

import jinja2.sandbox
import pytest
import yaml
from ansible.module_utils import urls
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.action import awx_objects
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.awx import AwxObject, AwxWanted
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.module_utils._render.awx.awx import (
    render_approval,
    render_objects,
    render_removals,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.awx.awx_templates import render_templates
from ansible_collections.linerate.rdma.tests.unit.awx_server import TOKEN, AwxServer

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECRET = "hook-s3cret"
WANTED = AwxWanted(
    organization="Default",
    site_url="https://git.example.com/site.git",
    playbooks_url="https://git.example.com/linerate.rdma.git",
    image="registry.example.com/ee:1",
    cluster_credential="gpu cluster",
    credentials=("ssh", "bmcs"),
    controller_credential="this awx",
    schedule="DTSTART:20260101T030000Z RRULE:FREQ=DAILY;INTERVAL=1",
    notification_type="webhook",
    notification_configuration={"url": f"https://hooks.example.com/{SECRET}"},
    instance_groups=("gpu site",),
    extra_vars={"rdma_report_dir": "/reports"},
    forks=20,
)
#: the least that can be wanted
LEAST = AwxWanted(
    organization="Default", site_url="https://git.example.com/site.git", image="ee:1", cluster_credential="gpu cluster"
)


class Spec(Exception):
    """What a module of awx.awx takes."""


def spec_of(kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, typing.Any]:
    """The arguments that the real module declares, and its rules."""
    module = importlib.import_module(f"ansible_collections.awx.awx.plugins.modules.{kind}")

    def tell(**declared: typing.Any) -> typing.NoReturn:
        raise Spec(declared)

    with monkeypatch.context() as patch, pytest.raises(Spec) as told:
        patch.setattr(module, "ControllerAPIModule", tell)
        module.main()
    declared: dict[str, typing.Any] = told.value.args[0]
    return declared


@pytest.mark.parametrize("wanted", [WANTED, LEAST])
def test_the_modules_of_awx_know_all_that_they_are_given(wanted: AwxWanted, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [*render_objects(wanted), *render_removals(wanted), render_approval(wanted, "the plan")]
    for one in calls:
        declared = spec_of(one.kind, monkeypatch)
        rules = {name: declared[name] for name in ("mutually_exclusive", "required_if") if name in declared}
        checked = ArgumentSpecValidator(declared["argument_spec"], **rules).validate(one.arguments)
        assert not checked.error_messages, (one.kind, one.name, checked.error_messages)
    assert {one.kind for one in calls} >= {
        "project",
        "execution_environment",
        "inventory_source",
        "job_template",
        "workflow_job_template_node",
    }


def test_a_parameter_that_no_module_has_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = spec_of("job_template", monkeypatch)
    checked = ArgumentSpecValidator(declared["argument_spec"]).validate({"name": "x", "ask_node_on_launch": True})
    assert checked.error_messages


class Played:
    """The action, and beneath it the real modules in this process: each of them asks the played API."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.server = AwxServer()
        self._capsys, self.check_mode = capsys, False
        monkeypatch.setenv("CONTROLLER_HOST", self.server.address)
        monkeypatch.setenv("CONTROLLER_OAUTH_TOKEN", TOKEN)
        # the server has no certificate, and each request would read all authorities of the machine anew
        context = ssl.create_default_context()
        monkeypatch.setattr(urls, "make_context", lambda **given: context)
        for kind, names in {
            "organizations": ["Default"],
            "credentials": ["gpu cluster", "ssh", "bmcs", "this awx"],
            "instance_groups": ["gpu site"],
        }.items():
            for name in names:
                self.server.add(kind, name=name)

    def module(
        self, module_name: str, module_args: dict[str, typing.Any], task_vars: typing.Any
    ) -> dict[str, typing.Any]:
        module = importlib.import_module(
            f"ansible_collections.awx.awx.plugins.modules.{module_name.rpartition('.')[2]}"
        )
        answer: dict[str, typing.Any] = {"failed": True, "msg": "the module did not exit"}
        try:
            with patch_module_args({**module_args, "_ansible_check_mode": self.check_mode}):
                module.main()
        except SystemExit:
            answer = json.loads(self._capsys.readouterr().out.splitlines()[-1])
        except TypeError as error:
            # how a node of a workflow ends whose job template is not there
            answer = {"failed": True, "msg": str(error)}
        return answer

    def bring(self, wanted: AwxWanted, state: str = "present") -> dict[str, typing.Any]:
        return dict(work(self, {**dataclasses.asdict(wanted), "wait": False, "state": state}))


def work(played: Played, options: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """What the action does with options that Ansible has checked."""
    there = types.SimpleNamespace(find_plugin_with_context=lambda name: types.SimpleNamespace(resolved=True))
    parts: dict[str, typing.Any] = {
        "_shared_loader_obj": types.SimpleNamespace(module_loader=there),
        "_task": types.SimpleNamespace(check_mode=played.check_mode),
        "_execute_module": played.module,
    }
    action = object.__new__(awx_objects.ActionModule)
    for name, value in parts.items():
        setattr(action, name, value)
    where = dict.fromkeys(
        ("controller_host", "controller_username", "controller_password", "controller_oauthtoken", "validate_certs")
    )
    return action.work({**where, "collection": "awx.awx", **options}, {})


@pytest.fixture(name="played")
def fixture_played(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> typing.Iterator[Played]:
    played = Played(monkeypatch, capsys)
    yield played
    played.server.stop()


def test_all_is_made_once_and_removed_once(played: Played) -> None:
    assert played.bring(WANTED)["changed"]
    made, writes = {kind: set(items) for kind, items in played.server.items.items()}, played.server.writes
    assert played.bring(WANTED) == {"changed": False, "objects": []}
    assert played.server.writes == writes
    server, name = played.server, "linerate.rdma"
    way = ["look", "plan", "describe", "approval", "apply", "prove"]
    assert [server.linked("workflow_job_template_nodes", node, "success_nodes") for node in way] == [
        [node] for node in way[1:]
    ] + [[]]
    assert set(server.linked("job_templates", f"{name}: plan", "credentials")) == {"bmcs", "gpu cluster", "ssh"}
    assert server.linked("job_templates", f"{name}: describe the plan", "credentials") == ["this awx"]
    assert server.linked("job_templates", f"{name}: prove", "notification_templates_error") == [f"{name}: verdict"]
    assert json.loads(server.named("job_templates", f"{name}: prove")["extra_vars"]) == {
        "rdma_disruption_of_job": "none",
        "rdma_report_dir": "/reports",
    }
    assert (
        server.named("schedules", f"{name}: day 2")["unified_job_template"]
        == server.named("job_templates", f"{name}: prove")["id"]
    )
    removed = played.bring(WANTED, "absent")
    assert removed["changed"] and made.keys() >= {"job_templates", "inventories", "schedules"}
    left = {kind: [item["name"] for item in items.values()] for kind, items in server.items.items() if items}
    assert left.keys() == {"organizations", "credentials", "instance_groups", "workflow_approval_templates"}
    assert played.bring(WANTED, "absent") == {"changed": False, "objects": []}


def test_check_mode_says_all_that_would_be_made_and_makes_nothing(played: Played) -> None:
    played.check_mode = True
    told = played.bring(WANTED)
    assert played.server.writes == 0
    assert {(one["kind"], one["name"]) for one in told["objects"]} == {
        (one.kind, one.name) for one in render_objects(WANTED)
    }


def test_what_is_refused_says_which_object_and_no_secret(played: Played) -> None:
    with pytest.raises(RdmaError) as refused:
        played.bring(dataclasses.replace(WANTED, cluster_credential="nobody made it"))
    assert (
        "inventory_source 'linerate.rdma'" in str(refused.value)
        and "name=nobody+made+it returned 0" in str(refused.value)
        and SECRET not in str(refused.value)
    )


def test_an_inventory_that_awx_still_deletes_is_no_failure(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def deletes(module_name: str, **rest: typing.Any) -> dict[str, typing.Any]:
        going = module_name == "awx.awx.inventory"
        return {
            "failed": going,
            "msg": "Unable to delete inventory linerate.rdma: Inventory is already pending deletion.",
        }

    monkeypatch.setattr(played, "module", deletes)
    assert played.bring(WANTED, "absent") == {"changed": False, "objects": []}


def test_what_a_plan_wrote_into_the_approval_stays(played: Played) -> None:
    played.bring(WANTED)
    (template,) = played.server.items["workflow_approval_templates"].values()
    template["description"] = "reboot: 2 nodes"
    assert not played.bring(WANTED)["changed"] and template["description"] == "reboot: 2 nodes"


def test_each_stage_has_a_template_and_each_template_its_playbook(root: pathlib.Path) -> None:
    assert [template.playbook for template in render_templates(True) if template.key.startswith("stage ")] == list(
        STAGES
    )
    assert all((root / "playbooks" / f"{template.playbook}.yml").is_file() for template in render_templates(True))
    # AWX refuses a survey twice over one variable, and a question whose answer its template has fixed would be asked
    # for nothing
    for template in render_templates(True):
        asked = [question.variable for question in template.survey]
        assert len(set(asked)) == len(asked) and not set(asked) & set(template.variables)


def test_tags_of_a_template_are_stages() -> None:
    assert all(set(template.tags) <= set(STAGES) for template in render_templates(True))


def arguments(wanted: AwxWanted, kind: str, name: str) -> dict[str, typing.Any]:
    (found,) = [one for one in render_objects(wanted) if (one.kind, one.name) == (kind, name)]
    return found.arguments


def test_what_would_change_something_asks_before() -> None:
    looks = [arguments(WANTED, "job_template", f"linerate.rdma: {key}") for key in ("look", "plan", "propose")]
    assert all(one["job_type"] == "check" for one in looks)
    before = [one.arguments for one in render_objects(LEAST) if one.arguments.get("success_nodes") == ["apply"]]
    assert [node["identifier"] for node in before] == ["approval"]


def test_the_workflow_hands_its_answers_to_jobs_that_ask_the_same() -> None:
    asked = {
        question["variable"]
        for question in arguments(WANTED, "workflow_job_template", "linerate.rdma: from plan to proof")["survey_spec"][
            "spec"
        ]
    }
    for key in ("plan", "apply"):
        assert {
            question["variable"]
            for question in arguments(WANTED, "job_template", f"linerate.rdma: {key}")["survey_spec"]["spec"]
        } == asked
    assert arguments(WANTED, "job_template", "linerate.rdma: prove")["survey_spec"] == {}


STATS = {
    "verdict": "NOT GREEN",
    "summary": 'NOT GREEN - stage fabric: 1 fail "x" {{ y }}',
    "first": {"why": 'a "quoted" cause'},
}


def test_messages_tell_the_verdict_and_whoever_waits() -> None:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined)
    messages = arguments(WANTED, "notification_template", "linerate.rdma: verdict")["messages"]
    job = {"name": "prove", "status": "failed", "artifacts": {"linerate_rdma": STATS}, "description": "reboot: 1 node"}
    told = {
        "job": job,
        "url": "https://awx/#/jobs/7",
        "workflow_url": "https://awx/#/jobs/9",
        "approval_node_name": "approve",
        "approval_status": "approved",
    }
    line = environment.from_string(messages["error"]["message"]).render(told)
    assert line == f"prove: {STATS['summary']} https://awx/#/jobs/7"
    assert json.loads(environment.from_string(messages["error"]["body"]).render(told)) == STATS
    # a job that ended before it had a verdict, and AWX's own stub when it looks at the template
    without = {**told, "job": {**job, "artifacts": {}}}
    assert environment.from_string(messages["error"]["message"]).render(without) == "prove: failed https://awx/#/jobs/7"
    assert json.loads(environment.from_string(messages["success"]["body"]).render(without)) == {}
    waits = messages["workflow_approval"]["running"]
    assert json.loads(environment.from_string(waits["body"]).render(told))["plan"] == "reboot: 1 node"
    assert all(
        "\n" not in environment.from_string(one["message"]).render(told)
        for one in messages["workflow_approval"].values()
    )


def test_what_is_removed_is_what_can_be_made() -> None:
    gone = {(one.kind, one.name) for one in render_removals(AwxWanted(organization="Default"))}
    goes_along = {"inventory_source", "workflow_job_template_node", "schedule"}
    assert gone == {(one.kind, one.name) for one in render_objects(WANTED) if one.kind not in goes_along}


def test_a_secret_of_a_credential_is_one() -> None:
    for one in render_objects(WANTED):
        if one.kind == "credential_type":
            secret = {field["id"] for field in one.arguments["inputs"]["fields"] if field.get("secret")}
            assert secret >= {field["id"] for field in one.arguments["inputs"]["fields"]} & {"password", "token"}


def playbook(folder: pathlib.Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "CONTROLLER_", "TOWER_"))
    }
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), *arguments]
    everything = {
        **clean,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        **environment,
    }
    return subprocess.run(command, cwd=folder, env=everything, capture_output=True, text=True, check=False)


@pytest.mark.processes
def test_without_the_modules_the_playbook_says_what_to_install(tmp_path: pathlib.Path) -> None:
    alone = tmp_path / "ansible_collections" / "linerate"
    alone.mkdir(parents=True)
    (alone / "rdma").symlink_to(ROOT)
    given = {
        "awx_site_url": "https://git.example.com/site.git",
        "awx_image": "ee:1",
        "awx_cluster_credential": "gpu cluster",
    }
    run = playbook(tmp_path, "linerate.rdma.awx", "-e", json.dumps(given), ANSIBLE_COLLECTIONS_PATH=str(tmp_path))
    assert run.returncode != 0 and "ansible-galaxy collection install awx.awx" in run.stdout + run.stderr


@pytest.mark.processes
def test_the_job_before_the_approval_writes_the_plan_into_it(played: Played, tmp_path: pathlib.Path) -> None:
    played.bring(WANTED)
    variables = {
        "linerate_rdma": {"plan": "reboot: 2 nodes {{ no_template }}"},
        "awx_name": WANTED.name,
        "awx_organization": "Default",
    }
    # as AWX does it: variables in a file, the way to itself in the environment
    (tmp_path / "extravars").write_text(
        yaml.safe_dump(variables).replace("'reboot", "!unsafe 'reboot"), encoding="utf-8"
    )
    where = {"CONTROLLER_HOST": played.server.address, "CONTROLLER_OAUTH_TOKEN": TOKEN}
    run = playbook(tmp_path, str(ROOT / "playbooks" / "awx_approval.yml"), "-e", "@extravars", **where)
    assert run.returncode == 0, run.stdout + run.stderr
    (template,) = played.server.items["workflow_approval_templates"].values()
    assert template["description"] == "reboot: 2 nodes {{ no_template }}"


def test_kinds_are_in_the_order_in_which_they_need_each_other() -> None:
    kinds = [one.kind for one in render_objects(WANTED)]
    order: list[str] = []
    for kind in kinds:
        if not order or order[-1] != kind:
            order.append(kind)
    assert len(order) == len(set(order)) and order.index("inventory_source") < order.index(
        "job_template"
    ) < order.index("workflow_job_template_node")
    assert isinstance(render_objects(WANTED)[0], AwxObject)
