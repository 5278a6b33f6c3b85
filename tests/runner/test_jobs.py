# SPDX-License-Identifier: GPL-3.0-or-later

"""What AWX gets to know of a job, and what the job needs beside the execution environment: nothing."""

from __future__ import annotations

import json
import os
import pathlib
import pwd
import subprocess
import typing

import pytest

from ansible_collections.linerate.rdma.tests.runner.conftest import INJECTED, SECRETS, SIGNATURE, Launched
from ansible_collections.linerate.rdma.tests.runner.job import ENVIRONMENT, ROOT, Ended, Job, launch

ENDS = ("runner_on_ok", "runner_on_failed", "runner_on_skipped", "runner_on_unreachable")
#: programs that any image has
OF_THE_SYSTEM = {"/bin/sh", "/sbin/ldconfig"}


def test_nothing_is_there_but_what_the_execution_environment_has() -> None:
    listed = subprocess.run(
        [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    ).stdout
    lines = (ROOT / "dev" / "runner.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if not line.startswith("#")}
    assert {item["name"].lower().replace("_", "-") for item in json.loads(listed)} - {"pip", "setuptools"} == pinned
    collections = ENVIRONMENT / "share" / "ansible" / "collections" / "ansible_collections"
    assert {path.parent.name for path in collections.glob("*/*/MANIFEST.json")} == {"rdma", "core", "awx"}


def test_a_green_job_hands_over_its_verdict(green: Launched) -> None:
    job, volume = green
    assert (job.status, job.code) == ("successful", 0), job.output
    told = job.handed_over["linerate_rdma"]
    assert (told["verdict"], told["green"], told["first"]) == ("GREEN", True, None)
    assert told["counts"]["pass"] > 0 and told["counts"]["fail"] == told["counts"]["unknown"] == 0
    assert told["report"] == str(volume / "judged" / "report.html") and (volume / "judged" / "report.html").exists()
    assert f"GREEN - 13 stages, {told['counts']['pass']} findings pass" in job.output


def test_a_red_job_fails_and_hands_over_its_verdict_all_the_same(red: Launched) -> None:
    job, _volume = red
    assert job.status == "failed" and job.code not in (0, None)
    told = job.handed_over["linerate_rdma"]
    assert (told["verdict"], told["green"]) == ("NOT GREEN", False) and told["counts"]["fail"] >= 2
    assert (told["first"]["check"], told["first"]["status"]) == ("discover.hcas", "fail") and told["first"]["remedy"]
    (failed,) = job.of("runner_on_failed")
    assert (
        "discover.hcas" in failed["event_data"]["res"]["msg"] and failed["event_data"]["task"] == "End with the verdict"
    )


def test_a_stage_runs_alone(validated: Launched) -> None:
    job, volume = validated
    assert (job.status, job.code) == ("successful", 0), job.output
    told = job.handed_over["linerate_rdma"]
    assert (told["verdict"], told["green"], told["counts"]["fail"]) == ("PASSED", False, 0)
    assert pathlib.Path(told["report"]) == volume / "stages" / "validate.jsonl"
    assert (
        told["counts"]["pass"] + told["counts"]["warn"]
        == len((volume / "stages" / "validate.jsonl").read_text(encoding="utf-8").splitlines()) - 1
    )


@pytest.mark.parametrize("name", ["green", "red", "validated", "secretive"])
def test_each_task_has_its_events(name: str, request: pytest.FixtureRequest) -> None:
    job: Ended = request.getfixturevalue(name)[0]
    assert [event["counter"] for event in job.events] == list(range(1, len(job.events) + 1))
    tasks = [event["event_data"] for event in job.of("playbook_on_task_start")]
    # what Ansible does itself has no result
    began = {task["task_uuid"] for task in tasks if task["task_action"] != "ansible.builtin.meta"}
    ended = {event["event_data"]["task_uuid"] for event in job.of(*ENDS)}
    assert len(began) >= 5 and began == ended


def test_a_run_that_reaches_no_cluster_says_so(secretive: Launched) -> None:
    job, volume = secretive
    assert job.status == "failed" and job.code not in (0, None)
    told = job.handed_over["linerate_rdma"]
    assert told["verdict"] == "NOT GREEN" and told["first"] and (volume / "report.html").exists()
    assert "https://127.0.0.1:1" in job.output


def seen(job: Ended, secrets: typing.Iterable[str], *more: pathlib.Path) -> set[str]:
    """Which of the secrets are in an event, or in a file that the job left."""
    files = [*job.written(), *(path for folder in more for path in folder.rglob("*") if path.is_file())]
    texts = [json.dumps(job.events).encode(), *(path.read_bytes() for path in files)]
    return {secret for secret in secrets if any(secret.encode() in text for text in texts)}


def test_no_secret_is_in_an_event_or_in_a_file(secretive: Launched) -> None:
    job, volume = secretive
    assert not seen(job, [*SECRETS.values(), SIGNATURE, INJECTED], volume)


@pytest.mark.parametrize("name", ["green", "red", "validated", "secretive"])
def test_nothing_is_read_or_started_from_elsewhere(name: str, request: pytest.FixtureRequest) -> None:
    job, volume = request.getfixturevalue(name)
    assert any(about.startswith(str(job.container / "runner" / "project")) for _event, about in job.watched)
    assert elsewhere(job, volume) <= OF_THE_SYSTEM


def elsewhere(job: Ended, *more: pathlib.Path) -> set[str]:
    """What the Pythons of a job have read or started that is not of the image or of the job."""
    command = [str(ENVIRONMENT / "bin" / "python"), "-c", "import sys; print(sys.base_prefix)"]
    allowed = (
        str(ENVIRONMENT),
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(),
        str(job.container),
        *map(str, more),
        # Ansible takes the home of a local connection out of the system's list of users
        f"{pwd.getpwuid(os.getuid()).pw_dir}/.ansible/tmp/",
        # where a system's own plugins would lie: an image has none
        "/usr/share/ansible/plugins/",
        "/proc/",
        "/dev/",
        "/etc/",
        "/usr/share/zoneinfo/",
    )
    events = ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.posix_spawn", "os.exec")
    # a name alone is one in a folder that is open already, or is looked up in PATH, which the job was given
    return {
        about
        for event, about in job.watched
        if event in events and about.startswith("/") and not about.startswith(allowed)
    }


def test_a_playbook_that_shows_a_secret_and_reads_elsewhere_would_have_been_found(tmp_path: pathlib.Path) -> None:
    strange = str(ROOT / "pyproject.toml")
    shows = (
        "{{ lookup('ansible.builtin.env', 'RDMA_BMC_PASSWORD') }} {{ rdma_bmc_password }} {{ awx_job_template_name }}"
        " {{ tower_job_id }}"
    )
    reads = f"{{{{ lookup('ansible.builtin.file', '{strange}') | length }}}}"
    play = [
        {"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": f"{shows} {reads}"}}]}
    ]
    job = Job(
        "shows.yml",
        environment=SECRETS,
        injected={"rdma_bmc_password": INJECTED},
        files={"shows.yml": json.dumps(play)},
    )
    ended = launch(job, tmp_path)
    assert seen(ended, [*SECRETS.values(), INJECTED]) == {SECRETS["RDMA_BMC_PASSWORD"], INJECTED}
    assert elsewhere(ended) - OF_THE_SYSTEM == {strange}
    # and what AWX says of a job is there
    assert "linerate.rdma: shows 42" in ended.output


def test_no_job_talks_to_anybody_who_was_not_named(green: Launched, validated: Launched, secretive: Launched) -> None:
    def addresses(job: Ended) -> set[str]:
        # a path is a socket of this machine
        return {about for event, about in job.watched if event == "socket.connect" and about.startswith("(")}

    assert not addresses(green[0]) and not addresses(validated[0])
    assert addresses(secretive[0]) == {"('127.0.0.1', 1)"}
