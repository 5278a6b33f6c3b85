# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done with the folder of a run afterwards, under a real ansible-playbook and without an inventory: one run,
and many questions to it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing

import pytest

from tests.unit.house import test_frame as frame
from tests.unit.house.conftest import make_fabrics

pytestmark = pytest.mark.processes

# the copy of the collection with tiny stages
collections = frame.collections

FINDING = {
    "check": "fabric.one_master",
    "subject": "compute",
    "status": "fail",
    "why": "two masters",
    "remedy": "stop one",
}
WAIVER = {"check": "fabric.one_master", "reason": "a fabric under test"}
STAGES = "validate,discover,fabric,network"


class Answer(typing.NamedTuple):
    """What an invocation of ansible-playbook said."""

    code: int
    output: str
    told: str


class Folder:
    """The folder of a run, and ansible-playbook beside it, without an inventory."""

    def __init__(self, path: pathlib.Path, collections: pathlib.Path) -> None:
        self.path = path
        self.collections = collections

    def play(self, playbook: str, *arguments: str, **variables: typing.Any) -> Answer:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(frame.ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_HOME": str(self.path.parent / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SHOW_CUSTOM_STATS": "1",
        }
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        everything = {"rdma_report_dir": str(self.path), **variables}
        command = [program, f"linerate.rdma.{playbook}", "-e", json.dumps(everything), *arguments]
        done = subprocess.run(
            command,
            cwd=self.path.parent,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        # Ansible folds long lines, each release in its own way
        return Answer(done.returncode, " ".join((done.stdout + done.stderr).split()), frame.told(done.stdout))

    def report(self, folder: str = "judged") -> dict[str, typing.Any]:
        report: dict[str, typing.Any] = json.loads((self.path / folder / "report.json").read_text(encoding="utf-8"))
        return report

    def everything(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file() and "judged" not in path.parts
        }


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory, collections: pathlib.Path) -> pathlib.Path:
    """The folder of a run of some stages, one of them with a waiver."""
    folder = tmp_path_factory.mktemp("lived")
    player = frame.Player(folder, collections, make_fabrics())
    run = player.play(
        "linerate.rdma.site", "--tags", f"{STAGES},report", fake_findings={"fabric": [FINDING]}, rdma_waivers=[WAIVER]
    )
    assert run.stage("network")["state"] == "open", run.output
    return folder / "build" / "report"


@pytest.fixture
def folder(lived: pathlib.Path, collections: pathlib.Path, tmp_path: pathlib.Path) -> Folder:
    return Folder(pathlib.Path(shutil.copytree(lived, tmp_path / "report")), collections)


def findings(report: dict[str, typing.Any]) -> typing.Any:
    return [(stage["name"], stage["state"], stage["findings"]) for stage in report["stages"]]


def test_judged_again_a_run_has_the_same_verdict_finding_by_finding(folder: Folder) -> None:
    before = folder.everything()
    answer = folder.play("judge")
    assert "Each gate and each finding is what it was in the run" in answer.output, answer.output
    lived, judged = folder.report("."), folder.report()
    assert findings(lived) == findings(judged) and lived["summary"] == judged["summary"]
    assert (
        answer.code != 0
        and f"linerate.rdma: {judged['summary']} - report: {folder.path}/judged/report.html" in answer.output
    )
    assert folder.everything() == before, "the evidence is not touched"


def test_judged_by_other_waivers_and_another_intent(folder: Folder) -> None:
    answer = folder.play("judge", rdma_waivers=[], rdma_judged_dir=str(folder.path.parent / "strict"))
    assert answer.code != 0 and "stage fabric: fabric.one_master on compute: fail, waived -> fail" in answer.output, (
        answer.output
    )
    assert "NOT GREEN - stage fabric: 1 fail (fabric.one_master on compute)" in answer.output
    assert (
        "check: fabric.one_master" in answer.told
        and "verdict: NOT GREEN" in answer.told
        and "strict/report.html" in answer.told
    ), answer.output
    assert (folder.path.parent / "strict" / "report.html").exists() and not (folder.path / "judged").exists()
    answer = folder.play("judge", rdma_fabrics=make_fabrics(virtual_functions="eight"))
    assert "NOT GREEN - stage validate: 1 fail (validate.intent on rdma_fabrics[0].virtual_functions: " in answer.output


def test_evidence_is_packed_sent_and_judged(folder: Folder) -> None:
    answer = folder.play("evidence")
    (archive,) = folder.path.parent.glob("rdma-evidence-*.tar.gz")
    assert answer.code == 0 and str(archive) in answer.output, answer.output
    lived = folder.report(".")
    shutil.rmtree(folder.path)
    folder.path = folder.path.parent / "there"
    answer = folder.play("evidence", rdma_evidence=str(archive))
    assert "Each gate and each finding is what it was in the run" in answer.output, answer.output
    assert answer.code != 0 and findings(folder.report()) == findings(lived)
    archive.write_bytes(archive.read_bytes()[:-200])
    answer = folder.play("evidence", rdma_evidence=str(archive))
    assert answer.code != 0 and "be unpacked: " in answer.output and "NOT GREEN" not in answer.output


def test_two_folders_are_compared(folder: Folder, tmp_path: pathlib.Path) -> None:
    before = shutil.copytree(folder.path, tmp_path / "before")
    answer = folder.play("difference", rdma_before_dir=str(before))
    assert answer.code == 0 and "Nothing has changed" in answer.output, answer.output
    path = folder.path / "facts" / "platform" / "worker-1.json"
    fact = json.loads(path.read_text(encoding="utf-8"))
    fact["value"]["kernel"] = "9.9.9"
    path.write_text(json.dumps(fact), encoding="utf-8")
    answer = folder.play("difference", rdma_before_dir=str(before))
    assert answer.code == 0 and "worker-1: platform kernel: " in answer.output and "-> 9.9.9" in answer.output, (
        answer.output
    )
    assert len(json.loads((folder.path / "difference.json").read_text(encoding="utf-8"))["differences"]) == 1
    answer = folder.play("difference", rdma_before_dir=str(tmp_path / "nowhere"))
    assert answer.code != 0 and "nowhere contains no run" in answer.output
    assert "Set rdma_before_dir to the folder of a run" in answer.output, answer.output


def test_the_facts_answer_a_question(folder: Folder) -> None:
    answer = folder.play("facts", rdma_query="platform.machine")
    assert answer.code == 0 and f"worker-1: {os.uname().machine}" in answer.output and "worker-2: " in answer.output, (
        answer.output
    )
    answer = folder.play("facts", rdma_query="hcas.hcas[].ports[?rate_gbps < `0`][]")
    assert answer.code == 0 and "No result: no node reports a matching value." in answer.output
    answer = folder.play("facts", rdma_query="hcas.hcas[?")
    assert answer.code != 0 and "rdma_query is not a valid JMESPath expression" in answer.output


def test_a_run_goes_on_at_a_stage(tmp_path: pathlib.Path, collections: pathlib.Path) -> None:
    player = frame.Player(tmp_path, collections, make_fabrics())
    tags = "validate,discover,fabric,reachability"
    first = player.play(
        "linerate.rdma.site",
        "--tags",
        tags,
        fake_findings={"reachability": [{**FINDING, "check": "reachability.pings"}]},
    )
    assert first.code != 0 and first.record("reachability")["gate"] == "closed", first.output
    seen = first.fact("hcas", "worker-1")
    second = player.play("linerate.rdma.site", "--tags", f"{tags},report", "-e", "rdma_from=reachability")
    assert second.report is not None and second.report["run"] == first.record("reachability")["run"], second.output
    again = second.fact("hcas", "worker-1")
    assert again["time"] > seen["time"] and again["value"] == seen["value"], (
        "the stage is judged by it, so it was looked at again"
    )
    assert [second.stage(name)["state"] for name in ("validate", "discover", "fabric", "reachability", "host")] == [
        "open"
    ] * 4 + ["missing"]
    assert (
        "the run was resumed at stage reachability" in second.stage("fabric")["note"]
        and "fabric: kept from" in second.output
    )
    third = player.play("linerate.rdma.site", "-e", "rdma_from=netwrok")
    assert third.code != 0 and "which is not a stage; expected one of: validate, discover" in third.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--tags", "fabrik"),
            (
                "--tags contains fabrik, which is not a stage (did you mean 'fabric'?); the stages are"
                " validate, discover"
            ),
        ),
        (("--skip-tags", "all"), "leave no stage to run; the stages are validate, discover"),
        (("--start-at-task", "no such task"), "--start-at-task 'no such task' was given"),
        (("--start-at-task", "Write the report"), "--start-at-task 'Write the report' was given"),
    ],
)
def test_what_would_run_no_stage_is_refused(
    tmp_path: pathlib.Path, collections: pathlib.Path, arguments: typing.Sequence[str], said: str
) -> None:
    answer = Folder(tmp_path / "report", collections).play("site", *arguments)
    assert answer.code != 0 and said in answer.output and "TASK" not in answer.output, answer.output
    assert not (tmp_path / "report").exists()
