# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module, a role and a stage must declare. A module that says it supports check mode and does not is a lie that
only users notice."""

from __future__ import annotations

import ast
import collections
import importlib
import pathlib
import re
import typing

import pytest
import yaml

from ansible_collections.kubernetes.core.plugins.doc_fragments.k8s_auth_options import (
    ModuleDocFragment as TheirAuthentication,
)
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.linerate.rdma.plugins.doc_fragments import _attributes, _authentication, _options
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import VARIABLES
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.version import COLLECTION_VERSION
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import BESIDE, CHECKS, WHAT
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULES = sorted((ROOT / "plugins" / "modules").glob("*.py"))
#: of a task, beside the name of its module
KEYWORDS = ("run_once", "changed_when", "delegate_to")
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())


def documents(path: pathlib.Path) -> dict[str, typing.Any]:
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        ):
            assert isinstance(node.value.value, str)
            found[node.targets[0].id] = yaml.safe_load(node.value.value)
    return found


def action_of(path: pathlib.Path) -> typing.Any:
    """The action plugin that does the work of a module without code; None where the module has code."""
    if "AnsibleModule" in path.read_text(encoding="utf-8"):
        return None
    return importlib.import_module(f"ansible_collections.linerate.rdma.plugins.action.{path.stem}").ActionModule


def supports_check_mode(path: pathlib.Path) -> bool:
    """The value that the code hands to AnsibleModule; False, Ansible's default, where it hands none. Or that of the
    action plugin."""
    if action_of(path) is not None:
        return bool(action_of(path)._supports_check_mode)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "supports_check_mode" and isinstance(node.value, ast.Constant):
            return bool(node.value.value)
    return False


def whole(documentation: typing.Mapping[str, typing.Any], part: str) -> dict[str, typing.Any]:
    """``options`` or ``attributes`` of a module, with those out of the collection's own documentation fragments, put
    together as Ansible does it."""
    found: dict[str, typing.Any] = {}
    for name in documentation.get("extends_documentation_fragment", []):
        for fragments in (_attributes, _options):
            beginning, _dot, section = name.partition(f".{fragments.__name__.rpartition('.')[2]}.")
            if beginning == "linerate.rdma":
                found.update(yaml.safe_load(getattr(fragments.ModuleDocFragment, section.upper())).get(part, {}))
    own = documentation.get(part, {})
    return {**found, **{name: {**found.get(name, {}), **said} for name, said in own.items()}}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_declares_what_it_does(path: pathlib.Path) -> None:
    found = documents(path)
    documentation = found["DOCUMENTATION"]
    assert documentation["module"] == path.stem
    attributes = whole(documentation, "attributes")
    assert set(attributes) >= {"check_mode", "diff_mode", "idempotent"}
    assert supports_check_mode(path) == (attributes["check_mode"]["support"] != "none")
    for name, attribute in attributes.items():
        assert attribute["support"] in ("full", "N/A") or attribute.get("details"), (
            f"{name} is not full and does not say why"
        )
    assert found["EXAMPLES"] and found["RETURN"]
    assert all("." in key for task in found["EXAMPLES"] for key in task if "_" in key and key not in KEYWORDS), (
        "examples use full names"
    )


ACTIONS = [path for path in MODULES if action_of(path) is not None]


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.stem)
def test_options_of_an_action_without_a_module_are_its_documentation(path: pathlib.Path) -> None:
    """ansible-test compares the two for modules only."""
    kinds = ("type", "required", "default", "choices", "elements")
    documentation = documents(path)["DOCUMENTATION"]

    def said(option: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
        inside = {name: said(part) for name, part in option.get("suboptions", {}).items()}
        return {**{key: option[key] for key in kinds if key in option}, **({"options": inside} if inside else {})}

    documented = {name: said(option) for name, option in whole(documentation, "options").items()}
    # as documented by the collection that they are of
    others = (
        AUTH_ARG_SPEC
        if "linerate.rdma._authentication.options" in documentation["extends_documentation_fragment"]
        else {}
    )
    spec = action_of(path).SPEC
    assert others.keys() <= spec.keys()
    # whether an option is secret stands in no documentation of Ansible
    assert documented == {
        name: {key: value for key, value in option.items() if key != "no_log"}
        for name, option in spec.items()
        if name not in others
    }


def test_options_of_authentication_are_documented_as_kubernetes_core_does() -> None:
    theirs = yaml.safe_load(TheirAuthentication.DOCUMENTATION)
    for option in theirs["options"].values():
        # of a release of that collection
        option.pop("version_added", None)
    assert yaml.safe_load(_authentication.ModuleDocFragment.OPTIONS) == theirs


def test_a_variable_that_is_read_is_one_that_validate_knows() -> None:
    """It takes what it does not know for a misspelt name, and closes its gate."""
    read = re.compile(r"\brdma_[a-z_]+(?= *\| *(default|ansible\.builtin\.realpath)| is (not )?defined)")
    files = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml")]
    found = {match[0] for path in files for match in read.finditer(path.read_text(encoding="utf-8"))}
    assert {"rdma_fabrics", "rdma_report_dir", "rdma_report_keep"} <= found <= set(VARIABLES)


def test_version_is_that_of_the_collection() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"] == COLLECTION_VERSION


@pytest.mark.parametrize("path", ROLES, ids=lambda path: path.name)
def test_role_is_complete(path: pathlib.Path) -> None:
    assert (path / "README.md").read_text(encoding="utf-8").startswith("#")
    assert (path / "meta" / "main.yml").exists()
    assert (path / "defaults" / "main.yml").exists() == (path / "tasks").exists(), (
        "tasks have defaults, and a stage that facts alone are judged by has none"
    )
    specs = yaml.safe_load((path / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    assert "main" in specs
    assert (path / "tasks" / "main.yml").exists() or specs["main"]["options"] == {}
    assert all(entry == "main" or (path / "tasks" / f"{entry}.yml").exists() for entry in specs), (
        "an entry point without tasks"
    )
    for entry, spec in specs.items():
        assert spec.get("short_description") and spec.get("description"), entry
        check_options(spec.get("options", {}), entry)


@pytest.mark.parametrize("path", [path for path in ROLES if (path / "tasks").exists()], ids=lambda path: path.name)
def test_defaults_of_a_role_are_in_its_specs(path: pathlib.Path) -> None:
    defaults = yaml.safe_load((path / "defaults" / "main.yml").read_text(encoding="utf-8")) or {}
    specs = yaml.safe_load((path / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    declared = {name for spec in specs.values() for name in spec.get("options", {})}
    assert set(defaults) <= declared, "a variable that a user may set has no documentation"
    assert all(name.startswith((f"{path.name}_", "rdma_")) for name in defaults), (
        "variables carry the name of their role"
    )


@pytest.mark.parametrize("stage", STAGES)
def test_stage_has_playbook_role_and_check(stage: str) -> None:
    assert stage in TABLE and stage in SOURCES
    assert (ROOT / "roles" / stage / "meta" / "argument_specs.yml").exists()
    plays = yaml.safe_load((ROOT / "playbooks" / f"{stage}.yml").read_text(encoding="utf-8"))
    assert all(play["tags"] == [stage] for play in plays)
    begin, *observed, judge = plays
    for part, playbook in ((begin, "stage_begin"), (judge, "stage_judge")):
        assert part["ansible.builtin.import_playbook"] == f"{playbook}.yml" and part["vars"]["stage_name"] == stage
    # the nodes' part of these two is run by stage_begin, for whoever needs it first
    own = stage not in ("discover", "fabric") and (ROOT / "roles" / stage / "tasks" / "observe.yml").exists()
    assert bool(observed) == own, "observers that no play runs, or a play without observers"
    check_observing(observed)


def test_parts_of_all_stages_keep_who_cannot_be_reached() -> None:
    plays = [
        play
        for name in ("stage_begin", "stage_judge")
        for play in yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text(encoding="utf-8"))
    ]
    assert [play["hosts"] for play in plays[1:]] == ["rdma_nodes", "localhost"] and all(
        play["gather_facts"] is False for play in plays
    )
    check_observing([play for play in plays if play["hosts"] == "rdma_nodes"])


def check_observing(plays: typing.Sequence[typing.Mapping[str, typing.Any]]) -> None:
    for play in plays:
        assert play["hosts"] == "rdma_nodes" and play["gather_facts"] is False
        assert play["ignore_unreachable"] is True, "a node that can't be reached must become a finding"
        assert set(play["module_defaults"]["group/linerate.rdma.facts"]) == {
            "facts_dir",
            "run",
        }, "or Ansible gets all that was seen"


def test_groups_of_modules_are_those_that_take_their_options() -> None:
    """module_defaults of a group reach exactly the modules that are in it."""
    groups = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))["action_groups"]
    text = {
        path.stem: path.read_text(encoding="utf-8") + text_of(ROOT / "plugins" / "action" / path.name)
        for path in MODULES
    }
    takes = {
        "facts": (
            r"\bmake_(facts|pods)_spec\(|\b(OBSERVER_SPEC|FACT_SPEC|FOLDER_SPEC)\b|\*\*CONFIRM_SPEC\b|\bfacts_dir="
        ),
        "cluster": r"\bmake_(cluster|facts|pods)_spec\(|\bCONFIRM_SPEC\b",
        "lease": r"\*\*LEASE_SPEC\b|\bCONFIRM_SPEC\b",
    }
    for group, pattern in takes.items():
        assert groups[group] == sorted(groups[group])
        assert set(groups[group]) == {name for name, code in text.items() if re.search(pattern, code)}, group


def text_of(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_check_ids_are_those_that_the_checks_use() -> None:
    """Each id is written out in the code of its check, so that who searches for it finds it; the helper of validate
    puts its stage in front."""
    used = set()
    utils = ROOT / "plugins" / "module_utils"
    for path in (*(utils / "_check").rglob("*.py"), *(utils / "_analysis").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # in these, other words of this form are paths in the intent
        own = ("validate",) if path.parent.name == "validate" else (*STAGES, *BESIDE)
        used |= {(stage, what) for stage, what in re.findall(r'"([a-z_]+)\.([a-z_]+)"', text) if stage in own}
        if path.parent.name == "validate":
            used |= {("validate", what) for what in re.findall(r'_bad\(\s*"([a-z_]+)"', text)}
    assert used == {(stage, what) for stage, names in {**WHAT, **BESIDE}.items() for what in names}, (
        "correct _model/run/check_ids.py"
    )
    assert len(CHECKS) == len(set(CHECKS))


def test_no_line_is_longer_than_ansible_test_takes() -> None:
    """ruff spares a line whose end is a pragma; ansible-test, which runs last, does not."""
    sources = [path for folder in ("plugins", "tests", "dev", "lab") for path in (ROOT / folder).rglob("*.py")]
    assert sources
    long = [
        f"{path.relative_to(ROOT)}:{at}"
        for path in sources
        for at, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > 160
    ]
    assert not long


def test_site_is_the_table_of_contents() -> None:
    plays = yaml.safe_load((ROOT / "playbooks" / "site.yml").read_text(encoding="utf-8"))
    assert [play["ansible.builtin.import_playbook"] for play in plays] == [
        f"{name}.yml" for name in ("invocation", *STAGES, "report")
    ]
    assert all(play["vars"]["stage_in_site"] is True for play in plays[1:-1])


def test_stage_choices_agree() -> None:
    for name in ("stage_begin", "stage_gate"):
        options = whole(documents(ROOT / "plugins" / "modules" / f"{name}.py")["DOCUMENTATION"], "options")
        assert options["stage"]["choices"] == list(STAGES)
    specs = yaml.safe_load((ROOT / "roles" / "stage" / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]
    assert all(spec["options"]["stage_name"]["choices"] == list(STAGES) for spec in specs.values())


def check_options(options: dict[str, typing.Any], path: str) -> None:
    """Options have a text and a type, nested ones too."""
    for name, option in options.items():
        where = f"{path}.{name}"
        assert option.get("description"), f"{where} has no description"
        assert option.get("type"), f"{where} has no type"
        assert option["type"] != "list" or option.get("elements"), f"{where} does not say of what"
        check_options(option.get("options", {}), where)


def constants(path: pathlib.Path) -> typing.Iterator[str]:
    """Each assignment of a name that a file makes where it stands alone, outside of conditions."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            yield from (
                item.id for item in ast.walk(target) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
            )


def test_no_file_gives_a_constant_two_values() -> None:
    """The second value would count where the first one is meant, and no linter says so."""
    twice = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("plugins", "dev", "lab")
        for path in (ROOT / folder).rglob("*.py")
        for name, count in collections.Counter(constants(path)).items()
        if count > 1
    }
    assert twice == set()
