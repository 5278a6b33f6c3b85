# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation that a reader trusts must agree with the code: intent, modules, check ids, links."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import re
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import (
    comparison,
    host_intent,
    intent,
    networks,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement import collectives
from ansible_collections.linerate.rdma.plugins.module_utils._model.node import bios, tuning
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import BESIDE, WHAT
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver, judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from dev import content, docs
from lab.faults import FAULTS
from tests.lab import page as faults
from tests.lab.olm_scenarios import OLM_SCENARIOS
from tests.lab.scenarios import SCENARIOS

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")])
SECTIONS = {
    "rdma_fabrics": intent.Fabric,
    "select": intent.Select,
    "network": networks.Network,
    "ipam": networks.Ipam,
    "pool": networks.NvIpamPool,
    "line_rate": intent.LineRate,
    "pods": intent.Pods,
    "bandwidth": intent.Bandwidth,
    "rdma_cluster": intent.ClusterIntent,
    "node_pool": intent.DrainPool,
    "rdma_job": Job,
    "host": host_intent.HostNeeds,
    "memlock": host_intent.Memlock,
    "kubelet": host_intent.Kubelet,
    "bios": bios.BiosIntent,
    "tuning": tuning.Tuning,
    "roce": tuning.Roce,
    "measures": comparison.Measure,
    "figures": comparison.Figure,
    "training": intent.Training,
    "collectives": collectives.Collectives,
    "expected_busbw": collectives.ExpectedBusbw,
    "rdma_waivers": Waiver,
}


def sections(text: str) -> dict[str, str]:
    """Text below each heading that starts with a name in back-quotes."""
    parts = re.split(r"^#+ `(\w+)`.*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize(("name", "schema"), SECTIONS.items())
def test_intent_is_documented_key_by_key(name: str, schema: typing.Any) -> None:
    section = sections((ROOT / "docs" / "intent.md").read_text(encoding="utf-8"))[name].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == {
        field.name for field in dataclasses.fields(schema)
    }


def test_variables_are_documented() -> None:
    text = (ROOT / "docs" / "intent.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in validate.VARIABLES)


def test_readme_fits_a_screen() -> None:
    """Galaxy and a terminal show it as it is written."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert not [f"README.md:{at}: {len(line)} columns" for at, line in enumerate(lines, 1) if len(line) > 160]


@pytest.mark.parametrize("stage", WHAT)
def test_every_check_is_in_the_readme_of_its_role(stage: str) -> None:
    text = (ROOT / "roles" / stage / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(rf"\b{stage}\.([a-z_]+)\b", text)) - {"md", "yml"} == set(WHAT[stage])


@pytest.mark.parametrize("subject", BESIDE)
def test_every_check_beside_the_stages_is_in_its_page(subject: str) -> None:
    text = (ROOT / "docs" / "job.md").read_text(encoding="utf-8")
    assert set(re.findall(rf"`{subject}\.([a-z_]+)`", text)) == set(BESIDE[subject])


def test_job_of_the_page_is_a_right_one() -> None:
    blocks = [
        yaml.safe_load(block)
        for block in re.findall(
            r"```yaml\n(.*?)```", (ROOT / "docs" / "job.md").read_text(encoding="utf-8"), flags=re.DOTALL
        )
    ]
    (wanted,) = (block["rdma_job"] for block in blocks if isinstance(block, dict))
    assert load(Job, wanted, "rdma_job").nodes > 1


def test_content_page_is_made_from_the_plugins_and_has_a_row_for_each_stage() -> None:
    text = (ROOT / "docs/content.md").read_text(encoding="utf-8")
    assert content.put_tables(text) == text, "run: python -m dev.content"
    assert re.findall(r"^\| `(\w+)` \|", text.split("\n## Modules")[0], re.MULTILINE) == [
        stage for stage in WHAT if stage != "teardown"
    ]
    assert {f"`{path.stem}`" for path in (ROOT / "plugins/modules").glob("*.py")} <= set(
        re.findall(r"`\w+`", text.partition("\n## Modules")[2])
    )


def test_readme_is_short_and_keeps_the_command_that_ci_runs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1200
    commands = [
        line.split("  ")[0]
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    assert commands[0] == "make demo" and "make test" in [command.strip() for command in commands]


def test_readme_says_within_its_first_lines_what_to_type_and_what_comes_of_it() -> None:
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("## Requirements")[0].splitlines()
    commands = [line.partition("#")[0].strip() for line in head[:15]]
    wanted = ["propose -i linerate.rdma.yml", "site -i linerate.rdma.yml --check", "site -i linerate.rdma.yml"]
    assert [command for command in commands if command.startswith("ansible-playbook")] == [
        f"ansible-playbook linerate.rdma.{name}" for name in wanted
    ]
    assert sum(line.startswith(("[fail]", "    why:", "    do:", "linerate.rdma:")) for line in head[:30]) == 5


def test_readme_has_absolute_links_only() -> None:
    """Galaxy and Automation Hub show it away from the repository."""
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links and all(link.startswith("https://") for link in links)


def test_readme_has_the_sections_that_certification_and_inclusion_ask_for_in_their_order() -> None:
    """[partner-certification-requirements docs/readme-template.md; collection_requirements.rst]; what is for our
    readers alone stands between them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    asked = [
        "Description",
        "Requirements",
        "Installation",
        "Use cases",
        "Included content",
        "Testing",
        "Contributing",
        "Support",
    ]
    asked += ["Release notes and roadmap", "Related information", "License information"]
    assert [name for name in re.findall(r"^## (.+)$", text, re.MULTILINE) if name in asked] == asked
    assert "https://forum.ansible.com/" in text and "CODE_OF_CONDUCT.md" in text and "semver.org" in text
    assert not re.search(r"pip install ['\"]?ansible(-core)?\b", text), "its customers run it in execution environments"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: pathlib.Path) -> None:
    ours = "https://github.com/linerate/linerate.rdma/blob/main/"
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        target, _hash, heading = link.partition("#")
        if target.startswith(ours):
            found = ROOT / target[len(ours) :]
        elif target.startswith("https://"):
            continue
        else:
            found = path.parent / target if target else path
        assert found.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}, link


@pytest.mark.parametrize("name", ["example", "lab"])
def test_shown_intent_is_a_right_one(name: str) -> None:
    variables = yaml.safe_load((ROOT / "inventory" / name / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    wishes = parse_intent(variables["rdma_fabrics"], variables.get("rdma_waivers"), variables.get("rdma_cluster"))
    findings = validate.check(
        wishes,
        validate.Facts(
            nodes=("worker-1", "worker-2"), variables=tuple(key for key in variables if key.startswith("rdma_"))
        ),
    )
    assert [finding for finding in findings if finding.status != "pass"] == []
    assert judge(findings).open


def test_intent_of_the_first_run_is_a_right_one() -> None:
    blocks = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs/guides/first_run.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    together: dict[str, typing.Any] = {}
    for block in blocks:
        together.update(yaml.safe_load(block))
    wishes = parse_intent(together["rdma_fabrics"], together["rdma_waivers"], together["rdma_cluster"])
    findings = validate.check(wishes, validate.Facts(nodes=("worker-1", "worker-2")))
    assert [finding for finding in findings if finding.status != "pass"] == []


def test_the_page_of_faults_is_made_from_its_tests() -> None:
    assert (ROOT / "docs/faults.md").read_text(encoding="utf-8") == faults.page(), (
        "run: python -m tests.lab.page > docs/faults.md"
    )


def test_each_fault_of_the_page_says_how_it_is_injected() -> None:
    ways = {
        (scenario.name, expected.fault): faults.how(scenario, index)
        for scenario in (*SCENARIOS, *OLM_SCENARIOS)
        for index, expected in enumerate(scenario.expected)
    }
    assert ways
    assert [name for name, way in ways.items() if not way] == []


def named_in(document: str) -> set[str]:
    return set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", (ROOT / "docs" / document).read_text(encoding="utf-8")))


def test_evidence_names_tests_that_exist() -> None:
    names = sorted(named_in("evidence.md") | named_in("faults.md"))
    assert names
    for name in names:
        path, _colons, test = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert not test or re.search(rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), name


def test_each_row_has_its_evidence() -> None:
    rows = re.findall(r"^\| (S\d\.\d+) \|", (ROOT / "docs/evidence.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [
        f"S{part}.{number}" for part, last in ((1, 12), (2, 7), (3, 8), (4, 13)) for number in range(1, last + 1)
    ]


def test_content_page_lists_each_filter() -> None:
    doors = (
        importlib.import_module(f"ansible_collections.linerate.rdma.plugins.filter.{path.stem}")
        for path in (ROOT / "plugins/filter").glob("*.py")
    )
    filters = {name for door in doors for name in door.FilterModule().filters()}
    listed = (ROOT / "docs/content.md").read_text(encoding="utf-8").partition("\n## Filters\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)) == filters


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_the_lab_is_documented(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs/lab.md").read_text(encoding="utf-8")


def test_code_that_the_glossary_names_exists() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`(_[\w/]+(?:\.py|/))`", text))
    files = {path for path in paths if path.endswith(".py")}
    assert files and paths - files
    utils = ROOT / "plugins/module_utils"
    assert [name for name in sorted(files) if not (utils / name).is_file()] == []
    assert [name for name in sorted(paths - files) if not (utils / name).is_dir()] == []
    for name, path in re.findall(r"`(\w+)` \(`(_[\w/]+\.py)`\)", text):
        assert re.search(
            rf"^(class|def) {name}\b|^{name}\b.*=",
            (ROOT / "plugins/module_utils" / path).read_text(encoding="utf-8"),
            re.MULTILINE,
        ), name


#: in docs/architecture.md
WALKS = (
    "A fact of an HCA, from sysfs to the report",
    "The intent, to an applied policy",
    "A measured figure, to the verdict",
)


@pytest.mark.parametrize("walk", WALKS)
def test_walk_through_the_code_names_at_most_15_files_that_exist_and_functions_that_they_define(walk: str) -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d+\. (.*)$", text.partition(f"\n### {walk}\n")[2].partition("\n### ")[0], re.MULTILINE)
    assert 5 <= len(steps) <= 15
    for step in steps:
        name, function = re.findall(r"^`([\w/]+\.(?:py|yml))`(?:: `(\w+)`)?", step)[0]
        path = ROOT / "plugins/module_utils" / name if name.startswith("_") else ROOT / name
        assert path.is_file(), name
        assert not function or re.search(rf"^ *def {function}\(", path.read_text(encoding="utf-8"), re.MULTILINE), (
            f"{name} has no {function}"
        )


def test_architecture_page_has_the_walks_alone() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^### (.*)$", text, re.MULTILINE)) == WALKS


#: an option (O) or a return value (RV) of a plugin of another collection: its name, its kind, and the key
_FOREIGN = re.compile(r"\b(O|RV)\((?!linerate\.)(\w+\.\w+\.\w+)#(\w+):([^)=]+)\)")


def test_each_option_and_return_value_of_another_collection_is_known_to_the_site() -> None:
    """Sphinx fails, after minutes, for a label that its inventory of Ansible's documentation lacks."""
    references = [
        found
        for path in sorted((ROOT / "plugins").glob("*/*.py"))
        for found in _FOREIGN.findall(path.read_text(encoding="utf-8"))
    ]
    labels = {
        f"std:label ansible_collections.{name}_{kind}__{'parameter' if letter == 'O' else 'return'}-{key}"
        for letter, name, kind, key in references
    }
    assert ("RV", "kubernetes.core.helm_info", "module", "status") in references
    assert labels <= set(docs.ANSIBLE), labels - set(docs.ANSIBLE)
