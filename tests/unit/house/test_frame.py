# SPDX-License-Identifier: GPL-3.0-or-later

"""The frame under a real ansible-playbook: real playbooks, modules and roles of the frame, and real observers that look
at the 'nodes' (this machine).

A copy of the collection gets tiny roles in place of what measures and makes things, and a table of checks that return
what they are told.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing
from xml.etree import ElementTree

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = ROOT / "build" / "collections" / "ansible_collections"
FRAME_ROLES = ("stage", "report")
LOOKING_ROLES = ("discover", "fabric")
OBSERVED = tuple(
    stage
    for stage in STAGES
    if stage not in LOOKING_ROLES and (ROOT / "roles" / stage / "tasks" / "observe.yml").exists()
)
TABLE = """
import dataclasses

def check_of(stage):
    def check(_intent, facts):
        told = (facts.fake or {}).get(stage)
        return tuple(Finding(**item) for item in told) if told else (Finding(f"{stage}.fine", "all", "pass"),)
    return check

def facts_of(cls):
    return dataclasses.make_dataclass("Facts", [("fake", typing.Any, None)], bases=(cls,), frozen=True)

PLAYED = {stage: (facts_of(cls), check_of(stage)) for stage, (cls, _check) in TABLE.items()}
TABLE = {**PLAYED, "validate": TABLE["validate"]}
"""
SOURCES = """
PLAYED_SOURCES = {stage: {**fields, "fake": OfCluster("fake", "findings")} for stage, fields in SOURCES.items()}
SOURCES = {**PLAYED_SOURCES, "validate": SOURCES["validate"]}
CHANGES = {}
"""
OBSERVE = [
    {
        "name": "Leave a mark",
        "ansible.builtin.file": {
            "path": "{{ fake_marks }}/STAGE-{{ inventory_hostname }}",
            "state": "touch",
            "mode": "0644",
        },
        "changed_when": False,
    }
]
MAIN = [
    {
        "name": "Fail where told to",
        "ansible.builtin.fail": {"msg": "broken {{ '{{' }} 1 }}"},
        "when": "stage_name == fake_crash | default('')",
    },
    {
        "name": "Keep what the check shall say",
        "linerate.rdma.fact": {
            "kind": "fake",
            "node": "cluster",
            "value": {"findings": "{{ fake_findings | default({}) }}"},
        },
    },
    {
        "name": "Tell what was changed",
        "ansible.builtin.set_fact": {
            "{{ stage_name }}_changes": "{{ (fake_changes | default({}))[stage_name] | default([]) }}"
        },
    },
]


class Run(typing.NamedTuple):
    """What an invocation of ansible-playbook left behind."""

    code: int
    output: str
    report: typing.Optional[dict[str, typing.Any]]
    folder: pathlib.Path
    marks: list[str]

    def stage(self, name: str) -> dict[str, typing.Any]:
        assert self.report is not None
        return next(stage for stage in self.report["stages"] if stage["name"] == name)

    def record(self, name: str) -> dict[str, typing.Any]:
        """Head of a record."""
        with (self.folder / "report" / "stages" / f"{name}.jsonl").open(encoding="utf-8") as stream:
            head: dict[str, typing.Any] = json.loads(stream.readline())
        return head

    def fact(self, kind: str, node: str) -> dict[str, typing.Any]:
        fact: dict[str, typing.Any] = json.loads(
            (self.folder / "report" / "facts" / kind / f"{node}.json").read_text(encoding="utf-8")
        )
        return fact

    @property
    def told(self) -> str:
        """What was handed over to whatever runs next, on one line; empty where nothing was."""
        return told(self.output)

    def looked(self) -> list[str]:
        """Nodes that were looked at, in whatever run."""
        return sorted(path.stem for path in (self.folder / "report" / "facts" / "hcas").glob("*.json"))


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A copy of the collection with tiny stages."""
    folder = tmp_path_factory.mktemp("collections")
    copy = folder / "ansible_collections" / "linerate" / "rdma"
    for name in ("plugins", "playbooks", "meta"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "galaxy.yml", copy)
    for role in (*FRAME_ROLES, *LOOKING_ROLES):
        shutil.copytree(ROOT / "roles" / role, copy / "roles" / role)
    (copy / "roles" / "validate").mkdir()
    for stage in STAGES[1:]:
        tasks = copy / "roles" / stage / "tasks"
        tasks.mkdir(parents=True, exist_ok=True)
        if stage not in LOOKING_ROLES:
            (tasks / "observe.yml").write_text(yaml.safe_dump(OBSERVE).replace("STAGE", stage), encoding="utf-8")
        (tasks / "main.yml").write_text(yaml.safe_dump(MAIN), encoding="utf-8")
    for name, more in (("stages.py", TABLE), ("sources.py", SOURCES)):
        with (copy / "plugins" / "module_utils" / "_check" / name).open("a", encoding="utf-8") as stream:
            stream.write(more)
    for name in ("ansible", "kubernetes"):
        (folder / "ansible_collections" / name).symlink_to(COLLECTIONS / name)
    return folder


def told(output: str) -> str:
    """The custom stats of a run, out of what the default callback shows at its end."""
    return "".join(re.findall(r"^CUSTOM STATS: .*\n\s*RUN: +(.*)", output, re.MULTILINE))


class Player:
    """Calls ansible-playbook in a folder of its own, which keeps its records between calls."""

    def __init__(self, folder: pathlib.Path, collections: pathlib.Path, fabrics: typing.Any) -> None:
        self.folder = folder
        self.collections = collections
        self.variables: dict[str, typing.Any] = {"rdma_fabrics": fabrics, "fake_marks": str(folder / "marks")}
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self.hosts: dict[str, typing.Any] = {"worker-1": dict(local), "worker-2": dict(local)}
        self.callback = "default"

    def play(self, playbook: str, *arguments: str, **variables: typing.Any) -> Run:
        marks = self.folder / "marks"
        shutil.rmtree(marks, ignore_errors=True)
        marks.mkdir()
        everything = {**self.variables, **variables}
        inventory = {"all": {"children": {"rdma_nodes": {"hosts": self.hosts}}, "vars": everything}}
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_STDOUT_CALLBACK": self.callback,
            "ANSIBLE_SHOW_CUSTOM_STATS": "1",
        }
        # 'make test' runs a part of these with the oldest ansible-core too
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        command = [program, "-i", "hosts.yml", playbook, *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        report = self.folder / "build" / "report"
        data = (
            json.loads((report / "report.json").read_text(encoding="utf-8"))
            if (report / "report.json").exists()
            else None
        )
        return Run(
            done.returncode,
            done.stdout + done.stderr,
            data,
            self.folder / "build",
            sorted(path.name for path in marks.iterdir()),
        )


@pytest.fixture
def player(tmp_path: pathlib.Path, collections: pathlib.Path, fabrics: typing.Any) -> Player:
    return Player(tmp_path, collections, fabrics())


def changed(run: Run) -> set[str]:
    return set(re.findall(r"changed=(\d+)", run.output))


def test_whole_run_is_green_twice_shows_its_waiver_and_changes_nothing(player: Player) -> None:
    finding = {
        "check": "fabric.one_master",
        "subject": "compute",
        "status": "fail",
        "why": "two masters",
        "remedy": "stop one",
    }
    player.variables["fake_findings"] = {"fabric": [finding]}
    player.variables["rdma_waivers"] = [{"check": "fabric.one_master", "reason": "a fabric under test"}]
    first = player.play("linerate.rdma.site")
    assert first.code == 0, first.output
    assert f"linerate.rdma: GREEN, 1 WAIVED - {len(STAGES)} stages" in first.output
    assert first.report is not None and first.report["waivers"][0]["covered"][0]["check"] == "fabric.one_master"
    assert "a fabric under test" in (first.folder / "report" / "report.html").read_text(encoding="utf-8")
    lines = re.findall(r"\b(\w+) +(\d+\.\d) s\b", first.output)
    assert [name for name, _seconds in lines] == [*STAGES, "total"], "where the time went is said before the verdict"
    assert first.output.index("total  ") < first.output.index("linerate.rdma: GREEN")
    assert abs(float(lines[-1][1]) - first.report["seconds"]) <= 0.05 and 0 < first.report["seconds"] < 300
    assert first.report["green"] is True and first.report["waived"] == 1
    assert first.marks == sorted(f"{stage}-worker-{number}" for stage in OBSERVED for number in (1, 2))
    assert changed(first) == {"0"}
    assert set(first.looked()) == {"worker-1", "worker-2"}
    assert first.fact("platform", "worker-2")["run"] == first.record("discover")["run"]
    assert (
        "Listen for the switches" not in first.output
        and not (first.folder / "report" / "facts" / "neighbours").exists()
    ), "no rounds are made of that"
    # the same once more, as an admin at a terminal wants it: what changed and what failed would be a line, and the
    # recap's counts are in one
    player.callback = "linerate.rdma.stages"
    second = player.play("linerate.rdma.site")
    assert second.code == 0, second.output
    assert [
        line for line in second.output.splitlines() if line.startswith(("changed", "fatal", "TASK", "PLAY", "ok:"))
    ] == []
    assert re.findall(r"^  changed +(.*)$", second.output, re.MULTILINE) == ["0 tasks"], "by Ansible's own counts"
    headings = re.findall(r"^== (.+?)(?: \(|$)", second.output, re.MULTILINE)
    # a machine that is slow shows that the report is being written
    assert [heading for heading in headings if not heading.startswith("Write the report")] == [*STAGES, "stages"]
    assert re.findall(
        "^== fabric \\(usually \\d+ s, based on 1 previous run\\)\\nfabric: 1 waived - passed$",
        second.output,
        re.MULTILINE,
    )
    assert "    waiver: a fabric under test\n" in second.output
    assert re.findall(r"^  (\w+) +\d+\.\d s", second.output, re.MULTILINE) == [*STAGES, "total"]
    assert second.output.rstrip().splitlines()[-1].startswith(f"linerate.rdma: GREEN, 1 WAIVED - {len(STAGES)} stages")
    assert len(second.output.splitlines()) < len(first.output.splitlines()) / 8
    assert second.report is not None and second.report["run"] > first.report["run"]


def test_wrong_type_in_the_intent_is_refused_before_any_host_is_touched(player: Player, fabrics: typing.Any) -> None:
    run = player.play("linerate.rdma.site", rdma_fabrics=fabrics(virtual_functions="eight"))
    assert run.code != 0
    assert "[fail] validate.intent on rdma_fabrics[0].virtual_functions" in run.output
    assert (run.stage("validate")["findings"][0]["measured"], run.stage("validate")["findings"][0]["expected"]) == (
        "'eight' (string)",
        "an integer",
    )
    assert run.marks == [] and run.looked() == [], "no host may be touched"
    assert run.report is not None and run.report["summary"].startswith(
        "NOT GREEN - stage validate: 1 fail (validate.intent on rdma_fabrics[0]"
    )
    assert [stage["state"] for stage in run.report["stages"]] == ["closed"] + ["skipped"] * (len(STAGES) - 1)
    assert (run.folder / "report" / "report.html").exists()
    assert ElementTree.parse(run.folder / "report" / "report.xml").getroot().get("failures") == "1"


def test_wrong_intent_stops_a_stage_that_runs_alone(player: Player, fabrics: typing.Any) -> None:
    run = player.play("linerate.rdma.fabric", rdma_fabrics=fabrics(resource_name="mlx-compute"))
    assert run.code != 0 and "validate.names on rdma_fabrics[0].resource_name" in run.output
    assert run.marks == [] and run.looked() == [] and run.report is None
    assert "check: validate.names" in run.told and "verdict: NOT GREEN" in run.told, run.output


def test_closed_gate_ends_the_run_after_its_stage_and_the_report_follows(player: Player) -> None:
    finding = {
        "check": "fabric.one_master",
        "subject": "compute",
        "status": "unknown",
        "why": "two masters",
        "remedy": "stop one",
    }
    run = player.play("linerate.rdma.site", fake_findings={"fabric": [finding]})
    assert run.code != 0
    assert "linerate.rdma: NOT GREEN - stage fabric: 1 unknown (fabric.one_master on compute) - report: " in run.output
    assert not any(mark.startswith(("reachability", "platform")) for mark in run.marks)
    assert [run.stage(name)["state"] for name in ("discover", "fabric", "reachability", "bandwidth")] == [
        "open",
        "closed",
        "skipped",
        "skipped",
    ]
    assert (
        run.output.count("Hand over the verdict") == 1 and "summary: 'NOT GREEN - stage fabric: 1 unknown" in run.told
    ), run.told
    after = run.output.partition("stopped here")[2]
    assert f"{len(STAGES) - 3} stages not run: the run stopped at stage fabric" in after
    assert "PLAY [" not in after, "no play of a later stage is begun"
    assert "skipping:" not in after.partition(" : Write the report]")[0], "no task of a later stage is shown as skipped"


@pytest.mark.thorough
def test_closed_gate_leads_to_the_report_in_check_mode_by_tags_and_where_the_run_goes_on(player: Player) -> None:
    """In one folder, with the callback of the collection: a plan, a part of the stages, and a run that was mended and
    goes on."""
    player.callback = "linerate.rdma.stages"
    finding = {
        "check": "fabric.one_master",
        "subject": "compute",
        "status": "unknown",
        "why": "two masters",
        "remedy": "stop one",
    }
    later = {
        "check": "host.memlock",
        "subject": "worker-1",
        "status": "fail",
        "why": "too little",
        "remedy": "raise it",
    }
    told = "stages not run: the run stopped at stage"
    plan = player.play("linerate.rdma.site", "--check", fake_findings={"fabric": [finding]})
    assert plan.code != 0 and f"    do: stop one\n{len(STAGES) - 3} {told} fabric\n" in plan.output, plan.output
    assert (
        plan.output.rstrip()
        .splitlines()[-1]
        .startswith("linerate.rdma: check mode: 0 changes would be made, and stage fabric: 1 unknown")
    ), plan.output
    assert plan.stage("training")["state"] == "skipped" and "== reachability" not in plan.output
    part = player.play(
        "linerate.rdma.site", "--tags", "discover,fabric,platform,host,report", fake_findings={"fabric": [finding]}
    )
    assert part.code != 0 and f"\n2 {told} fabric\n" in part.output, part.output
    assert [part.stage(name)["state"] for name in ("fabric", "reachability", "platform", "host")] == [
        "closed",
        "stale",
        "skipped",
        "skipped",
    ]
    red = player.play("linerate.rdma.site", fake_findings={"host": [later]})
    assert red.code != 0 and f"\n4 {told} host\n" in red.output, red.output
    green = player.play("linerate.rdma.site", rdma_from="host")
    assert green.code == 0 and told not in green.output and green.report is not None, green.output
    assert red.report is not None and (green.report["green"], green.report["run"]) == (True, red.report["run"])


def test_stage_alone_ends_at_once_with_what_closed_it(player: Player) -> None:
    finding = {
        "check": "fabric.one_master",
        "subject": "compute",
        "status": "fail",
        "why": "two masters",
        "remedy": "stop one",
    }
    for arguments in (["linerate.rdma.fabric"], ["linerate.rdma.site", "--tags", "fabric"]):
        run = player.play(*arguments, fake_findings={"fabric": [finding]})
        assert run.code != 0 and "why: two masters" in run.output and "do: stop one" in run.output
        assert run.looked() == ["worker-1", "worker-2"] and run.report is None
        assert run.record("fabric")["gate"] == "closed"
        verdict = "linerate.rdma: NOT GREEN - stage fabric: 1 fail (fabric.one_master on compute) - record: "
        assert verdict in run.output and "stages/fabric.jsonl" in run.output
        assert "check: fabric.one_master" in run.told and "verdict: NOT GREEN" in run.told and "fail: 1 " in run.told, (
            run.output
        )


def test_stage_alone_passes_but_the_report_of_one_stage_is_not_green(player: Player) -> None:
    alone = player.play("linerate.rdma.site", "--tags", "fabric")
    assert alone.code == 0, alone.output
    before = alone.record("fabric")["run"]
    assert alone.fact("hcas", "worker-1")["run"] == before
    assert (
        "first: null" in alone.told
        and "green: false" in alone.told
        and "summary: 'PASSED - stage fabric: 1 pass'" in alone.told
    ), alone.told
    assert "linerate.rdma: PASSED - stage fabric: 1 pass - record: " in alone.output
    run = player.play("linerate.rdma.site", "--tags", "discover,report")
    assert run.code != 0 and run.report is not None
    assert [run.stage(name)["state"] for name in ("discover", "fabric", "platform")] == ["open", "stale", "missing"]
    assert run.fact("hcas", "worker-1")["run"] == run.record("discover")["run"] != before, (
        "a fact of another run is looked at again"
    )


def test_broken_role_is_a_finding_and_the_report_follows(player: Player) -> None:
    run = player.play("linerate.rdma.site", fake_crash="operators")
    assert run.code != 0 and run.report is not None and "rights: docs/rbac" not in run.output
    (finding,) = run.stage("operators")["findings"]
    assert (finding["check"], finding["status"], finding["measured"]) == (
        "operators.error",
        "fail",
        "Fail where told to: broken {{ 1 }}",
    )


def test_node_that_fails_or_is_not_reached_is_never_dropped(player: Player) -> None:
    player.hosts["worker-1"]["ansible_python_interpreter"] = "/nowhere/python3"
    player.hosts["worker-2"] = {
        "ansible_host": "127.0.0.1",
        "ansible_port": 1,
        "ansible_ssh_common_args": "-o ControlPath=none",
    }
    run = player.play("linerate.rdma.discover")
    failed, unreached = run.fact("hcas", "worker-1"), run.fact("hcas", "worker-2")
    assert failed["value"] is None and failed["error"].startswith("failed") and "/nowhere/python3" in failed["error"]
    assert unreached["value"] is None and unreached["error"].startswith("unreachable")
    assert run.record("discover")["facts"][0] == {"kind": "hcas", "seen": 0, "missing": 2}
    assert run.code == 0, "the frame goes on; it is for the check to judge what is missing"


def test_limit_cannot_make_a_run_that_proves_nothing(player: Player) -> None:
    run = player.play("linerate.rdma.site", "--limit", "worker-1")
    assert run.code != 0 and "--limit 'localhost,worker-1'" in run.output
    run = player.play("linerate.rdma.discover", "--limit", "localhost,worker-1")
    assert run.looked() == ["worker-1"]
    assert run.record("discover")["facts"][0] == {"kind": "hcas", "seen": 1, "missing": 1}


def test_switches_are_listened_for_where_rounds_are_made_of_what_they_tell(player: Player, fabrics: typing.Any) -> None:
    given = fabrics()
    given[1]["bandwidth"] = {"rounds": "auto"}
    run = player.play("linerate.rdma.bandwidth", rdma_fabrics=given)
    assert run.code == 0 and "Listen for the switches" in run.output, run.output
    # this machine has no HCA, so there is nobody to listen to
    assert [run.fact("neighbours", node)["value"]["netdevs"] for node in ("worker-1", "worker-2")] == [[], []]
    assert run.fact("listeners", "cluster")["value"] == ["worker-1", "worker-2"]
    kinds = {count["kind"]: (count["seen"], count["missing"]) for count in run.record("bandwidth")["facts"]}
    assert kinds["neighbours"] == (2, 0)


def test_check_mode_says_what_would_be_made_and_is_never_green(player: Player) -> None:
    missing = {
        "check": "virtual_functions.count",
        "subject": "worker-1",
        "status": "fail",
        "why": "none",
        "remedy": "make them",
    }
    changes = {"network": ["policy would be created"]}
    run = player.play(
        "linerate.rdma.site",
        "--check",
        "--diff",
        "-v",
        fake_changes=changes,
        fake_findings={"virtual_functions": [missing]},
    )
    assert run.code == 0, run.output
    assert "hcas: " in run.output and "device_class" not in run.output, "Ansible has counts alone"
    assert "rights: docs/rbac/look.yml - required by the current intent" in run.output, "validate lists them with -v"
    assert "linerate.rdma: check mode: 1 change would be made (network 1), nothing is verified" in run.output
    assert run.report is not None and run.report["green"] is False and run.report["check_mode"] is True
    assert run.stage("virtual_functions")["state"] == "pending"
    assert run.marks == [], "the mark is a change, and nothing is changed"


def test_stage_that_is_asked_again_keeps_its_beginning(collections: pathlib.Path, player: Player) -> None:
    """A stage asks again once its observers have looked. That time is in its duration, and in the age of its record."""
    tasks = collections / "ansible_collections" / "linerate" / "rdma" / "roles" / "stage" / "tasks"
    again = yaml.safe_load((tasks / "begin.yml").read_text(encoding="utf-8"))[1]["block"][-1]
    assert again["ansible.builtin.include_tasks"]["file"] == "ask.yml"
    again["ansible.builtin.include_tasks"]["file"] = str(tasks / "ask.yml")
    first = {"name": "First", "ansible.builtin.include_tasks": {"file": str(tasks / "ask.yml")}}
    wait = {"name": "Look", "ansible.builtin.pause": {"seconds": 1}}
    show = {"name": "Show", "ansible.builtin.debug": {"msg": "began {{ stage_first }}, {{ stage_result.started }}"}}
    keep = {"name": "Keep", "ansible.builtin.set_fact": {"stage_first": "{{ stage_result.started }}"}}
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {"stage_name": "validate", "stage_report_dir": "build/report", "stage_result": {}},
            "tasks": [first, keep, wait, again, show],
        }
    ]
    (player.folder / "again.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    run = player.play("again.yml")
    found = re.search(r"began ([\d:T.+-]+), ([\d:T.+-]+)", run.output)
    assert found is not None, run.output
    assert found[1] == found[2]


def test_empty_inventory_is_not_green(player: Player) -> None:
    player.hosts = {}
    run = player.play("linerate.rdma.validate")
    assert run.code != 0 and "validate.nodes on inventory" in run.output
