# SPDX-License-Identifier: GPL-3.0-or-later

"""A job as AWX 24 runs it: a private data directory that ansible-runner sends, works on where nothing else is, and
takes back.

After ``awx/main/tasks/jobs.py`` (RunJob) and ``awx/main/tasks/receptor.py``: the three ends are ``transmit``,
``ansible-runner worker`` and ``process``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import typing

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "venv-runner"
COLLECTIONS = ENVIRONMENT / "share" / "ansible" / "collections"
#: dev/runner.py has just brought it up to date: what git tracks, or would
CHECKOUT = ROOT / "build" / "tree" / "ansible_collections" / "linerate" / "rdma"

_TRANSMIT = (
    "import json, sys, ansible_runner as r; r.interface.run(streamer='transmit', _output=sys.stdout.buffer,"
    " **json.load(sys.stdin))"
)
_PROCESS = (
    "import json, sys, ansible_runner as r; "
    "done = r.interface.run(streamer='process', quiet=True, _input=open(sys.argv[1], 'rb'), **json.load(sys.stdin)); "
    "print(json.dumps(done.status))"
)

Data = dict[str, typing.Any]


class _Unsafe(str):
    """A text of AWX's extra variables: no template, whatever is in it."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


@dataclasses.dataclass
class Job:
    """What is launched.

    :ivar playbook: of the project
    :ivar variables: of the job template, its survey, or who launched it
    :ivar inventory: as AWX's script prints it
    :ivar environment: what credentials put into the environment
    :ivar injected: what credentials put into extra variables
    :ivar files: more of them in the project, by their paths
    """

    playbook: str
    variables: Data = dataclasses.field(default_factory=dict)
    inventory: Data = dataclasses.field(default_factory=dict)
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    injected: Data = dataclasses.field(default_factory=dict)
    verbosity: int = 0
    tags: str = ""
    files: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Ended:
    """What AWX has of a job at its end.

    :ivar folder: private data directory of the side that launched it
    :ivar container: what the worker could write: its own private data directory, and its home
    :ivar watched: what the worker's Pythons opened, started, connected to: audit event and what it was about
    """

    status: str
    code: int
    events: tuple[Data, ...]
    folder: pathlib.Path
    container: pathlib.Path
    watched: tuple[tuple[str, str], ...]

    def of(self, *kinds: str) -> list[Data]:
        return [event for event in self.events if event["event"] in kinds]

    @property
    def handed_over(self) -> Data:
        """What AWX keeps as artifacts of the job."""
        (last,) = self.of("playbook_on_stats")
        kept: Data = last["event_data"]["artifact_data"]
        return kept

    def written(self) -> typing.Iterator[pathlib.Path]:
        """What the job left, on both sides. Without what AWX had put there; and without ``command``, into which
        ansible-runner itself copies the environment of each job: AWX cuts the secrets out of what it keeps of that, and
        removes the file."""
        for side in (self.folder, self.container / "runner"):
            yield from (path for path in (side / "artifacts").rglob("*") if path.is_file() and path.name != "command")
        for folder in (self.container / "home", self.container / "elsewhere", self.container / "tmp"):
            yield from (path for path in folder.rglob("*") if path.is_file())

    @property
    def output(self) -> str:
        """What AWX shows of the job."""
        return "\n".join(event["stdout"] for event in self.events)


def meta(job_id: int, template: str) -> Data:
    """Variables that AWX gives to each job, here to one of a workflow that a schedule started."""
    told: Data = {
        "job_id": job_id,
        "job_launch_type": "workflow",
        "workflow_job_id": job_id - 1,
        "workflow_job_name": "linerate.rdma: from plan to proof",
        "workflow_job_launch_type": "scheduled",
        "parent_job_schedule_id": 3,
        "parent_job_schedule_name": "linerate.rdma: day 2",
        "user_id": 1,
        "user_name": "admin",
        "user_email": "admin@example.com",
        "user_first_name": "",
        "user_last_name": "",
        "inventory_id": 2,
        "inventory_name": "linerate.rdma",
        "project_revision": "0123456789abcdef0123456789abcdef01234567",
        "project_scm_branch": "1.0.0",
        "job_template_id": 9,
        "job_template_name": f"linerate.rdma: {template}",
        "execution_node": "awx-task-0",
    }
    return {f"{prefix}_{name}": value for prefix in ("awx", "tower") for name, value in told.items()}


def launch(job: Job, folder: pathlib.Path, job_id: int = 42) -> Ended:
    """Run a job to its end.

    :param folder: empty; all that comes of it lies there
    """
    launched, container = folder / f"awx_{job_id}_launched", folder / "container"
    worker, home, elsewhere, temporary = (container / name for name in ("runner", "home", "elsewhere", "tmp"))
    for path in (launched / "env", launched / "inventory", worker, home, elsewhere, temporary):
        path.mkdir(parents=True)
    shutil.copytree(CHECKOUT, launched / "project", ignore=shutil.ignore_patterns(".git"))
    for name, text in job.files.items():
        (launched / "project" / name).write_text(text, encoding="utf-8")
    parameters = _lay(job, job_id, launched, worker)
    plain = {"PATH": os.pathsep.join([str(ENVIRONMENT / "bin"), "/usr/bin", "/bin"]), "HOME": str(home)}
    python = str(ENVIRONMENT / "bin" / "python")
    sent = _call([python, "-c", _TRANSMIT], json.dumps(parameters).encode(), launched, plain)
    watch = container / "watch"
    watch.mkdir()
    shutil.copy(pathlib.Path(__file__).with_name("watch.py"), watch / "sitecustomize.py")
    inside = {**plain, "TMPDIR": str(temporary), "PYTHONPATH": str(watch), "WATCH_LOG": str(folder / "watched")}
    answered = folder / "answered"
    answered.write_bytes(
        _call(
            [str(ENVIRONMENT / "bin" / "ansible-runner"), "worker", "--private-data-dir", str(worker)],
            sent,
            elsewhere,
            inside,
        )
    )
    status = json.loads(
        _call([python, "-c", _PROCESS, str(answered)], json.dumps(parameters).encode(), launched, plain)
    )
    code = int((launched / "artifacts" / str(job_id) / "rc").read_text(encoding="utf-8"))
    kept = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (launched / "artifacts" / str(job_id) / "job_events").glob("*.json")
    ]
    lines = (folder / "watched").read_text(encoding="utf-8").splitlines()
    watched = tuple((event, about) for event, about in map(json.loads, lines))
    return Ended(status, code, tuple(sorted(kept, key=lambda event: event["counter"])), launched, container, watched)


def _lay(job: Job, job_id: int, launched: pathlib.Path, worker: pathlib.Path) -> Data:
    """Write the private data directory.

    :returns: what ansible-runner is called with
    """
    variables = {**job.variables, **meta(job_id, pathlib.Path(job.playbook).stem)}
    (launched / "env" / "extravars").write_text(_yaml(variables), encoding="utf-8")
    script = f"#! /usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint({json.dumps(job.inventory)!r})\n"
    (launched / "inventory" / "hosts").write_text(script, encoding="utf-8")
    (launched / "inventory" / "hosts").chmod(0o700)
    arguments = ["-u", "root"]
    if job.verbosity:
        arguments.append(f"-{'v' * job.verbosity}")
    if job.tags:
        arguments += ["-t", job.tags]
    if job.injected:
        (launched / "env" / "tmp1a2b3c4d").write_text(_yaml(job.injected), encoding="utf-8")
        arguments += ["-e", f"@{worker}/env/tmp1a2b3c4d"]
    (launched / "env" / "cmdline").write_text(" ".join(arguments), encoding="utf-8")
    settings = {"job_timeout": 0, "suppress_ansible_output": True, "suppress_output_file": True}
    (launched / "env" / "settings").write_text(json.dumps(settings), encoding="utf-8")
    (launched / "cp").mkdir(mode=0o700)
    # build/collections is what ansible.cfg of this repository says: AWX reads it, and nothing is there
    collections = f"{worker}/requirements_collections:build/collections:~/.ansible/collections:{COLLECTIONS}"
    environment = {
        "AWX_PRIVATE_DATA_DIR": str(worker),
        "AWX_HOST": "https://awx.example.com",
        "JOB_ID": str(job_id),
        "INVENTORY_ID": "2",
        "PROJECT_REVISION": variables["awx_project_revision"],
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_FORCE_COLOR": "True",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "MAX_EVENT_RES": "700000",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": f"{worker}/cp",
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "ANSIBLE_ROLES_PATH": "requirements_roles:~/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles",
        **job.environment,
    }
    return {
        "ident": str(job_id),
        "private_data_dir": str(launched),
        "playbook": job.playbook,
        "inventory": str(launched / "inventory" / "hosts"),
        "suppress_env_files": True,
        "envvars": environment,
        "fact_cache_type": "",
    }


def _yaml(variables: Data) -> str:
    return yaml.dump(_unsafe(variables), Dumper=_Dumper)


def _unsafe(value: typing.Any) -> typing.Any:
    if isinstance(value, dict):
        return {name: _unsafe(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unsafe(item) for item in value]
    return _Unsafe(value) if isinstance(value, str) else value


def _call(
    command: typing.Sequence[str], given: bytes, cwd: pathlib.Path, environment: typing.Mapping[str, str]
) -> bytes:
    run = subprocess.run(command, input=given, cwd=cwd, env=environment, capture_output=True, check=False)
    # the worker ends with the code of the job
    assert run.stdout and b"Traceback" not in run.stderr, (
        f"{command[:3]} ended with {run.returncode}: {run.stderr.decode(errors='replace')[-4000:]}"
    )
    return run.stdout
