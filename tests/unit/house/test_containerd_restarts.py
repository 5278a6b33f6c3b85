# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage host on nodes with containerd, under a real ansible-playbook: containerd restarts for another limit only, a
killed run is finished by the next one, and a drop-in of another intent stays."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.filter.host import make_containerd_drop_in
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

pytestmark = pytest.mark.processes

Node = dict[str, typing.Any]
ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-aaaaaa"
OLD, LIMIT = "65536", str(8 << 30)
#: a node with systemd and containerd, in place of the modules that the role runs on it
MODULE = """#!/usr/bin/python
import base64, json, os, re, signal
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"node": {}, "kills": {"type": "bool"}, "named": {}, "options": {"type": "dict"}})
path, named, options = module.params["node"], module.params["named"], module.params["options"]
node = json.load(open(path))
def load():
    found = re.search("LimitMEMLOCK=(.*)", node["file"] or "")
    node.update(loaded=found[1] if found else "65536", needs="no", reloads=node["reloads"] + 1)
def end(**answer):
    with open(path, "w") as file:
        json.dump(node, file)
    module.exit_json(**answer)
if named == "stat":
    end(stat={"exists": node["file"] is not None})
if named == "slurp":
    end(content=base64.b64encode(node["file"].encode()).decode())
if named == "file":
    end(state=options["state"])
if named == "copy":
    new = options["content"] != node["file"]
    node.update(file=options["content"], needs="yes" if new else node["needs"])
    end(changed=new, state="file")
if named == "command" and options["argv"][0] == "systemctl":
    end(stdout="MainPID=812\\nNeedDaemonReload=%(needs)s\\nLimitMEMLOCK=%(loaded)s\\n" % node)
if named == "command":
    end(stdout="Max locked memory         %(running)s %(running)s bytes     \\n" % node)
if options.get("state") == "restarted" and module.params["kills"]:
    os.kill(int(open(os.path.join(os.path.dirname(path), "pid")).read()), signal.SIGKILL)
    module.fail_json(msg="killed")
load()
if options.get("state") == "restarted":
    node.update(running=node["loaded"], restarts=node["restarts"] + 1)
end(changed=True, state="started")
"""


def drop_in(intent: str, gib: int = 8) -> str:
    memlock = {"by": "containerd", "limit_gib": gib}
    return str(make_containerd_drop_in({"intent_name": intent, "host": {"memlock": memlock}})["content"])


def make_node(text: typing.Optional[str], running: str = OLD, loaded: str = OLD, needs: str = "no") -> Node:
    return {"file": text, "running": running, "loaded": loaded, "needs": needs, "restarts": 0, "reloads": 0}


class Site:
    """Nodes in files, and the role host for the intent ``compute``."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.facts = folder, FactFolder(str(folder / "report"), RUN)
        (folder / "library").mkdir()
        (folder / "library/node.py").write_text(MODULE, encoding="utf-8")
        self.tasks = {name: self._read_tasks(name) for name in ("observe", "runtime")}

    def _read_tasks(self, name: str) -> typing.Any:
        tasks = yaml.safe_load((ROOT / f"roles/host/tasks/{name}.yml").read_text(encoding="utf-8"))
        listed = [part for task in tasks for part in (*task.get("block", ()), *task.get("rescue", ()), task)]
        for task in listed:
            asked = task.get("linerate.rdma.on_node")
            if asked is not None:
                named = asked["module"].rpartition(".")[2]
                options = {"node": "{{ state }}", "kills": "{{ kills }}", "named": named, "options": asked["options"]}
                task["linerate.rdma.on_node"] = {"module": "node", "options": options}
            if task.pop("linerate.rdma.cluster_lease", "") is None:
                task["ansible.builtin.debug"] = {}
        return tasks

    def play(self, nodes: typing.Mapping[str, Node], kills: bool) -> tuple[int, str, dict[str, Node]]:
        """Return the exit code, the output, and the nodes after the run."""
        self.facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, tuple(nodes)))
        (self.folder / "roles/host/tasks").mkdir(parents=True, exist_ok=True)
        for name, tasks in self.tasks.items():
            (self.folder / f"roles/host/tasks/{name}.yml").write_text(yaml.safe_dump(tasks), encoding="utf-8")
        hosts = {}
        for name, node in nodes.items():
            (self.folder / f"{name}.json").write_text(json.dumps(node), encoding="utf-8")
            hosts[name] = {"state": str(self.folder / f"{name}.json"), "ansible_connection": "local"}
            hosts[name]["ansible_python_interpreter"] = sys.executable
        play = {
            "hosts": "all",
            "gather_facts": False,
            "ignore_errors": True,
            "module_defaults": {"group/linerate.rdma.facts": {"facts_dir": self.facts.report_dir, "run": RUN}},
            "vars": {
                "kills": kills,
                "rdma_cluster": {
                    "intent_name": "compute",
                    "host": {"memlock": {"by": "containerd", "limit_gib": 8}},
                },
            },
            "tasks": [{"ansible.builtin.import_role": {"name": "host", "tasks_from": "observe"}}],
        }
        (self.folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
        (self.folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_"))},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_ROLES_PATH": str(self.folder / "roles"),
            "ANSIBLE_LIBRARY": str(self.folder / "library"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), str(self.folder / "play.yml")]
        # a file: a process of a killed run keeps a pipe open
        output = self.folder / "output"
        with (
            output.open("w", encoding="utf-8") as stream,
            subprocess.Popen(
                [*command, "-i", str(self.folder / "hosts.yml")],
                cwd=ROOT,
                env=environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            ) as run,
        ):
            (self.folder / "pid").write_text(str(run.pid), encoding="utf-8")
            run.wait(timeout=300)
        said = output.read_text(encoding="utf-8")
        after = {name: json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8")) for name in nodes}
        return run.returncode, said, after


def test_containerd_restarts_for_another_limit_only(tmp_path: pathlib.Path) -> None:
    site = Site(tmp_path)
    # killed just before the restarts, which come one after the other: both nodes have the drop-in, and run without it
    code, said, killed = site.play({"first": make_node(None), "second": make_node(None)}, kills=True)
    assert code == -signal.SIGKILL, said
    assert {(node["file"], node["running"], node["restarts"]) for node in killed.values()} == {
        (drop_in("compute"), OLD, 0)
    }
    others = {
        # systemd did not read it before the end
        "unread": make_node(drop_in("compute"), needs="yes"),
        # another file of the unit is new
        "other_file": make_node(drop_in("compute"), LIMIT, LIMIT, needs="yes"),
        "earlier": make_node(f"[Service]\nLimitMEMLOCK={LIMIT}\n", LIMIT, LIMIT),
        "equal": make_node(drop_in("storage"), LIMIT, LIMIT),
        "foreign": make_node(drop_in("storage", 4), OLD, str(4 << 30)),
    }
    code, said, after = site.play({**killed, **others}, kills=False)
    restarts = {name: node["restarts"] for name, node in after.items()}
    assert restarts == {**dict.fromkeys(after, 0), "first": 1, "second": 1, "unread": 1}, said
    assert {name for name, node in after.items() if node["running"] != LIMIT} == {"foreign"}
    assert (after["other_file"]["needs"], after["earlier"]["needs"]) == ("no", "no")
    # the file of an earlier release has the name of the intent from now on
    assert after["earlier"]["file"] == drop_in("compute")
    assert {name: after[name]["file"] for name in ("equal", "foreign")} == {
        name: others[name]["file"] for name in ("equal", "foreign")
    }
    kept = {name: site.facts.read("containerd", name) for name in after}
    assert kept["equal"] is not None and kept["equal"].value == {"limit": LIMIT, "changes": []}
    foreign = kept["foreign"]
    assert foreign is not None and "belongs to the intent 'storage'" in (foreign.error or ""), said
    assert "rm -f /etc/systemd/system/containerd.service.d/linerate-memlock.conf" in (foreign.error or "")
