# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and values of the user's variables: a misspelt one ends each playbook before it does anything, and those of
others stay as they are."""

from __future__ import annotations

import json
import pathlib
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.action import variables_lint
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import (
    RawIntent,
    StageContext,
    collect_validate_facts,
    may_start,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, STAGES
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.public_names import ROLE_VARIABLES
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.variables import (
    RDMA_VARIABLES,
    correct_name,
    is_refused,
    list_own_names,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils import _variables
from dev import names

ROOT = pathlib.Path(__file__).resolve().parents[3]
MISSPELT = {
    "reachability_timeout": "reachability_timeout_ms",
    "operators_wait": "operators_wait_seconds",
    "rdma_intent_applid": "rdma_intent_applied",
    "rdma_waiver": "rdma_waivers",
    "operators_instal": "operators_install",
    "operator_install": "operators_install",
    "platform_settel": "platform_settle",
    "platfrom_settle": "platform_settle",
    "awx_organisation": "awx_organization",
    "awx_organisatoin": "awx_organization",
    "awx_wiat": "awx_wait",
    "observers_image_": "observers_image",
    "rdma_context": "K8S_AUTH_CONTEXT",
    "rdma_kube_context": "K8S_AUTH_CONTEXT",
}
#: AWX gives these to each job, and the rest is anybody's
OF_OTHERS = (
    *(
        f"awx_{name}"
        for name in (
            "job_id",
            "job_launch_type",
            "job_template_id",
            "job_template_name",
            "workflow_job_id",
            "workflow_job_name",
        )
    ),
    *(
        f"awx_{name}"
        for name in (
            "schedule_id",
            "schedule_name",
            "user_id",
            "user_name",
            "user_email",
            "inventory_id",
            "inventory_name",
        )
    ),
    *(
        f"awx_{name}"
        for name in (
            "project_revision",
            "project_scm_branch",
            "execution_node",
            "webhook_event_type",
            "parent_job_name",
        )
    ),
    *("ansible_host", "inventory_hostname", "group_names", "playbook_dir", "hostvars", "omit", "environment"),
    *(
        "operator_namespace",
        "network_name",
        "network_interface",
        "host_name",
        "platform_name",
        "report_title",
        "training_data",
        "tuning_profile",
    ),
    *("validate_certs", "namespace", "kubeconfig", "k8s_wait_seconds", "x", ""),
)


def test_a_run_says_who_began_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "bastion")
    monkeypatch.setattr("getpass.getuser", lambda: "admin")
    assert _variables.describe_installer({}) == _variables.describe_installer({"awx_job_id": 7}) == "admin on bastion"
    assert (
        _variables.describe_installer({"awx_user_name": "ada", "awx_job_id": 7, "tower_user_name": "x"})
        == "ada (AWX job 7)"
    )
    assert _variables.describe_installer({"tower_user_name": "ada", "tower_job_id": 7}) == "ada (AWX job 7)"

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", unknown)
    monkeypatch.setattr("os.getuid", lambda: 1234)
    assert _variables.describe_installer({}) == "user 1234 on bastion"


def misspelt_of(nodes: typing.Iterable[str], variables: typing.Mapping[str, typing.Any]) -> dict[str, str]:
    return _variables.find_misspelt_of_nodes(_variables.read_as_written(nodes, variables), variables)


def test_a_misspelt_variable_of_a_node_is_told_with_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a BMC, say, which would not be asked, and nobody would say so."""
    of_nodes = {
        "worker-1": {"ansible_host": "10.0.0.1", "rdma_waiver": 1},
        "worker-2": {"rdma_bmc_adress": "10.0.1.2", "rdma_bmc_user": "x", 7: "x"},
    }
    variables = {
        "rdma_waiver": 1,
        "groups": {"rdma_nodes": list(of_nodes)},
        "hostvars": types.SimpleNamespace(raw_get=of_nodes.get),
    }
    assert misspelt_of(of_nodes, variables) == {"rdma_bmc_adress": "the variables of node worker-2"}, (
        "what localhost has as well is told once"
    )
    assert misspelt_of(["gone"], variables) == misspelt_of([], {}) == {}
    action = object.__new__(variables_lint.ActionModule)
    action._templar = typing.cast(typing.Any, types.SimpleNamespace(template=lambda value: value))
    with pytest.raises(
        RdmaError,
        match=(
            r"rdma_bmc_adress \(the variables of node worker-2\) is not a variable of this collection \(did you mean"
            r" 'rdma_bmc_address'\?\)"
        ),
    ):
        action.work({"show_cluster": False}, variables)
    monkeypatch.setattr(
        _variables,
        "_describe_origin",
        lambda value: "host_vars/worker-2.yml, line 3" if value == "rdma_bmc_adress" else "",
    )
    assert misspelt_of(of_nodes, variables) == {"rdma_bmc_adress": "host_vars/worker-2.yml, line 3"}


def test_the_file_of_names_is_made_of_the_roles() -> None:
    assert names.FILE.read_text(encoding="utf-8") == names.text(), "run: python -m dev.names"
    assert {"operators_install": "bool", "bandwidth_parallel": "int"}.items() <= ROLE_VARIABLES.items()


@pytest.mark.parametrize(("name", "known"), MISSPELT.items())
def test_a_misspelt_name_is_told_from_the_right_one(name: str, known: str) -> None:
    assert correct_name(name) == known


@pytest.mark.parametrize("name", [*RDMA_VARIABLES, *ROLE_VARIABLES, *OF_OTHERS, "rdma_xyzzy"])
def test_right_names_and_those_of_others_are_left_alone(name: str) -> None:
    assert correct_name(name) == ""


def test_names_inside_of_the_collection_are_none_that_look_misspelt() -> None:
    """A playbook of several parts has them when a later part begins."""

    def keys(data: typing.Any) -> typing.Iterator[str]:
        if isinstance(data, dict):
            for key, value in data.items():
                if key == "register":
                    yield str(value)
                if key in ("vars", "ansible.builtin.set_fact") and isinstance(value, dict):
                    yield from map(str, value)
                yield from keys(value)
        elif isinstance(data, list):
            for item in data:
                yield from keys(item)

    files = [
        *(ROOT / "playbooks").glob("*.yml"),
        *(ROOT / "roles").glob("*/tasks/*.yml"),
        *(ROOT / "roles").glob("*/vars/*.yml"),
    ]
    found = {key for path in files for key in keys(yaml.safe_load(path.read_text(encoding="utf-8")))}
    assert "stage_result" in found and len(found) > 50
    assert {name: correct_name(name) for name in found if correct_name(name)} == {}
    assert list_own_names(["operators_instal", "mine", "rdma_from", "rdma_mine"]) == (
        "operators_instal",
        "rdma_from",
        "rdma_mine",
    )


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("operators_install", "ture", True),
        ("operators_install", "true", False),
        ("operators_install", True, False),
        ("operators_install", "No", False),
        ("operators_install", 3, True),
        ("operators_install", "", False),
        ("bandwidth_parallel", "8", False),
        ("bandwidth_parallel", "eight", True),
        ("rdma_intent_applied", "flase", True),
        ("rdma_report_keep", 10, False),
        ("rdma_report_dir", "ture", False),
        ("mine", "ture", False),
    ],
)
def test_a_value_that_its_variable_cannot_have(name: str, value: typing.Any, refused: bool) -> None:
    assert is_refused(name, value) is refused


def test_each_playbook_that_runs_no_stage_begins_with_the_check() -> None:
    """The stages have it in their frame; a playbook that only imports others has theirs."""
    checked = []
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        plays = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.stem in STAGES or path.stem in ("site", "invocation", "stage_begin", "stage_judge"):
            continue
        assert "linerate.rdma.variables_lint" in plays[0]["tasks"][0] and "'localhost'" in plays[0]["hosts"], path.name
        checked.append(path.stem)
    assert {
        "propose",
        "judge",
        "evidence",
        "difference",
        "facts",
        "image",
        "images",
        "awx",
        "awx_approval",
        "teardown",
        "report",
        "demo",
    } == set(checked)


def lint(show_cluster: bool = False, **variables: typing.Any) -> typing.Any:
    """What the action says of these variables, which are no templates."""
    action = object.__new__(variables_lint.ActionModule)
    action._templar = typing.cast(typing.Any, types.SimpleNamespace(template=lambda value: value))
    return action.work({"show_cluster": show_cluster}, variables)


def test_a_variable_that_nothing_reads_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict over another folder than the one that was named would be believed."""
    said: list[str] = []
    monkeypatch.setattr("ansible.utils.display.Display.warning", lambda _self, text: said.append(text))
    assert lint(rdma_run_dir="/srv/run", rdma_report_dir="/srv/run", mine=1)["names"]
    assert said == [
        "rdma_run_dir has no effect: it is not a variable of this collection. docs/intent.md lists them",
    ]


@pytest.mark.parametrize("shown", [True, False])
def test_the_check_shows_the_cluster_of_a_run_that_contacts_it(
    shown: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    lines: list[str] = []
    monkeypatch.setattr("ansible.utils.display.Display.display", lambda _self, line: lines.append(line))
    lint(show_cluster=shown, rdma_kubeconfig=str(tmp_path / "own"))
    assert lines == ([f"cluster: kubeconfig own in {tmp_path} (from rdma_kubeconfig)"] if shown else [])


def test_playbook_images_shows_the_cluster_only_where_it_contacts_it() -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks" / "images.yml").read_text(encoding="utf-8"))
    shown = play["tasks"][0]["linerate.rdma.variables_lint"]["show_cluster"]
    assert shown == "{{ operators_by | default('auto') == 'auto' }}"


def test_the_check_names_what_was_typed_and_what_was_meant() -> None:
    with pytest.raises(RdmaError) as error:
        lint(awx_organisation="Default", rdma_intent_applid=False, operators_install="ture", awx_job_id=5)
    assert str(error.value) == (
        "awx_organisation is not a variable of this collection (did you mean"
        " 'awx_organization'?); rdma_intent_applid is not a variable of this collection (did you"
        " mean 'rdma_intent_applied'?); operators_install is 'ture'; expected true or false."
        " Nothing was started. Correct these variables, then rerun"
    )
    with pytest.raises(
        RdmaError,
        match=r"rdma_context is not .* \(did you mean 'K8S_AUTH_CONTEXT', which is an environment variable\?\)",
    ):
        lint(rdma_context="gpu")
    assert lint(rdma_report_dir="x", rdma_mine=1, awx_job_id=5, operators_install="yes") == {
        "names": ["rdma_mine", "rdma_report_dir"]
    }


def test_a_stage_does_not_start_with_a_misspelt_variable() -> None:
    start = RunStart(
        "r",
        "s",
        nodes=("worker-1",),
        variables=("operators_instal", "rdma_fabrics"),
        mistyped={"operators_install": "ture"},
    )
    for stage in ("validate", "fabric"):
        record = may_start(StageContext(stage, "r", "s", "f", False, {}), RawIntent([]), collect_validate_facts(start))
        assert record is not None and record.gate == "closed"
        found = {
            judged.finding.subject: judged.finding
            for judged in record.judged
            if judged.finding.check == "validate.variables"
        }
        name, value = found["operators_instal"], found["operators_install"]
        assert (name.status, name.measured, name.remedy) == (
            FAIL,
            "unknown variable",
            "Rename the variable to operators_install. Then run stage validate again.",
        )
        assert "the variable operators_install" in name.expected
        assert (value.status, value.measured, value.expected, value.remedy) == (
            FAIL,
            "'ture'",
            "true or false",
            "Set operators_install to a value of this type. Then run stage validate again.",
        )
    right = RunStart("r", "s", nodes=("worker-1",), variables=("rdma_fabrics", "rdma_mine"))
    assert (
        may_start(StageContext("validate", "r", "s", "f", False, {}), RawIntent([]), collect_validate_facts(right))
        is None
    ), "what is only unknown is told later"


class Origin:
    """As ansible-core from 2.19 on has it: where a value was read."""

    def __init__(
        self,
        path: typing.Optional[str],
        line_num: typing.Optional[int] = None,
        description: typing.Optional[str] = None,
    ) -> None:
        self.path, self.line_num, self.description = path, line_num, description

    @staticmethod
    def get_tag(value: typing.Any) -> typing.Any:
        return getattr(value, "origin", None)


class Text(str):
    origin: typing.Any = None


def read(text: str, line: int, path: str = "group_vars/all/rdma.yml") -> Text:
    found = Text(text)
    found.origin = Origin(str(pathlib.Path(path).absolute()), line)
    return found


def test_a_variable_is_found_in_file_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_variables, "Origin", Origin)
    typed = Text("true")
    typed.origin = Origin(None, description="<CLI option '-e'>")
    variables = {
        "rdma_fabrics": [{read("name", 3): "a", read("profile", 4): read("sriov", 4)}],
        "operators_instal": typed,
        "rdma_from": read("fabric", 7, "/x.yml"),
    }
    found = _variables.find_origins(variables, ("rdma_fabrics", "operators_instal", "rdma_from", "rdma_cluster"))
    assert found == {
        "rdma_fabrics[0].name": "group_vars/all/rdma.yml, line 3",
        "rdma_fabrics[0].profile": "group_vars/all/rdma.yml, line 4",
        "operators_instal": "CLI option '-e'",
        "rdma_from": "/x.yml, line 7",
    }
    monkeypatch.setattr(_variables, "Origin", None)
    assert _variables.find_origins(variables, variables) == {}, "ansible-core before 2.19"


def test_a_finding_ends_with_file_and_line_of_what_it_is_about() -> None:
    origins = {"rdma_fabrics[0]": "rdma.yml, line 2", "rdma_fabrics[0].profile": "rdma.yml, line 4"}
    start = RunStart("r", "s", nodes=("worker-1",), origins=origins)
    raw = RawIntent([{"name": "a", "profile": "sriov", "mut": 9}])
    record = may_start(StageContext("fabric", "r", "s", "f", False, {}), raw, collect_validate_facts(start))
    assert record is not None
    remedies = {
        judged.finding.subject: judged.finding.remedy
        for judged in record.judged
        if judged.finding.check == "validate.intent"
    }
    assert remedies["rdma_fabrics[0].profile"].endswith(
        " The value is defined in rdma.yml, line 4. Then run stage validate again."
    )
    assert remedies["rdma_fabrics[0].mut"].endswith(
        " rdma_fabrics[0] is defined in rdma.yml, line 2. Then run stage validate again."
    )
    without = may_start(StageContext("fabric", "r", "s", "f", False, {}), raw, validate.Facts(("worker-1",)))
    assert without is not None and "rdma.yml" not in json.dumps([judged.finding.remedy for judged in without.judged])
