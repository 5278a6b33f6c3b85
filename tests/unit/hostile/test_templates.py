# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of a hostile cluster under a real ansible-playbook: none is taken for a template, and none reaches the command
line of ssh.

Each text would leave a file behind if it were a template. The core is the newest one, or that of
LINERATE_ANSIBLE_PLAYBOOK: dev/parts.py has this file on the oldest cores as well, where each string is a template
unless it is marked.
"""

from __future__ import annotations

import http.server
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import threading
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import remove_effects

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = str(ROOT / "build" / "collections")
PLAYBOOK = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
    pathlib.Path(sys.executable).with_name("ansible-playbook")
)
#: the parser of an older release, which takes every text of a Node: what it lets through must be marked all the same
TRUSTING = """
from ..._model.kubernetes.inventory import Inventory, InventoryNode

def parse_inventory(resources):
    found = []
    for item in resources:
        labels = item["metadata"]["labels"]
        error = labels.get("error", "")
        address = "" if error else item["status"]["addresses"][0]["address"]
        image = item["status"]["nodeInfo"]["osImage"]
        told = {"os": image, "zone": labels.get("zone", "")}
        found.append(InventoryNode(item["metadata"]["name"], address, labels, told, error))
    return Inventory(tuple(found))
"""
#: what runs a command in a template of ansible-core; the second one needs no lookup, which inventory plugins turn off.
#: Short, since messages cut long texts
TEMPLATES = (
    "{{ lookup('pipe', 'touch MARK') }}",
    "{{ cycler.__init__.__globals__.os.system('touch MARK') }}",
    "{% if cycler.__init__.__globals__.os.system('touch MARK') %}{% endif %}",
)
#: the first line of a run shows it
CONTEXT = TEMPLATES[0].replace("MARK", "MARK-of-a-context")
#: a module that answers with these texts, as one on a hostile node does
MODULE = """#!/usr/bin/python
import json
text = TEXTS
facts = {"hostile": text[2], "hostile_list": text}
print(json.dumps({"changed": False, "msg": text[0], "list": text, "ansible_facts": facts}))
"""


def texts() -> typing.Iterator[str]:
    """Hostile texts without end, each of which leaves a file of its own in the folder of the play."""
    number = 0
    while True:
        for template in TEMPLATES:
            number += 1
            yield template.replace("MARK", f"MARK-{number}")


def node(name: str, text: typing.Iterator[str], **labels: str) -> dict[str, typing.Any]:
    """A Node with a hostile text in each field that the inventory reads."""
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "example.com/rack": next(text),
                "topology.kubernetes.io/zone": next(text),
                "zone": next(text),
                "nvidia.com/gpu.machine": next(text),
                **labels,
            },
            "annotations": {
                "machineconfiguration.openshift.io/desiredConfig": (
                    f"rendered-{next(text)}-0123456789abcdef0123456789abcdef"
                )
            },
        },
        "status": {"nodeInfo": {"osImage": next(text)}, "addresses": [{"type": "InternalIP", "address": next(text)}]},
    }


class Server(http.server.ThreadingHTTPServer):
    """An API server with these nodes, which refuses all else with a hostile text.

    :ivar nodes: what it lists, those by ssh first
    """

    def __init__(self, nodes: typing.Sequence[dict[str, typing.Any]], refusal: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.nodes, self.refusal = nodes, refusal
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = typing.cast(Server, self.server)
        path, _mark, query = self.path.partition("?")
        code = 200
        body: dict[str, typing.Any] = {
            "kind": "APIGroupList",
            "groups": [],
            "versions": ["v1"],
            "gitVersion": "v1.34.4",
            "major": "1",
            "minor": "34",
        }
        if path == "/api/v1/nodes":
            chosen = server.nodes[:2] if "way" in query else server.nodes
            body = {"kind": "NodeList", "metadata": {}, "items": chosen}
        elif path.startswith("/api/v1/"):
            code, body = (
                403,
                {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": server.refusal, "code": 403},
            )
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: typing.Any) -> None:
        """Says nothing."""


ALL = (
    "{{ hostvars[inventory_hostname] }} {{ group_names }} {{ rack | default('') }} {{ copied | default('') }} {{"
    " ansible_host | default('') }}"
)
Play = dict[str, typing.Any]
ON_NODES: Play = {
    "hosts": "rdma_nodes",
    "gather_facts": False,
    "ignore_unreachable": True,
    "tasks": [
        {
            "name": "Keep a copy",
            "ansible.builtin.set_fact": {
                "copied": "{{ rack | default('') }}",
                "place": "{{ ansible_host | default('') | string }}",
            },
        },
        {"name": "Show all", "ansible.builtin.debug": {"msg": ALL}},
        {"name": "Show the variables", "ansible.builtin.debug": {"var": "hostvars[inventory_hostname]"}},
        {"name": "Connect", "ansible.builtin.raw": "true plain", "register": "connected", "ignore_errors": True},
        {
            "name": "Show what was said",
            "ansible.builtin.debug": {"msg": "{{ connected.msg | default('') }} {{ connected }}"},
        },
        {
            "name": "Run a module on the node whose ssh server is hostile",
            "linerate.rdma.on_node": {
                "module": "ansible.builtin.file",
                "options": {"path": "/tmp/x", "state": "directory"},
            },
            "when": "ansible_connection == 'ansible.builtin.ssh'",
            "register": "made",
        },
        {
            "name": "Show what ssh said",
            "ansible.builtin.debug": {"msg": "{{ made }} {{ made.msg | default('') }}"},
            "when": "made is not changed",
        },
        {
            "name": "Look at the node whose address is refused",
            "linerate.rdma.node_info": {"facts_dir": "{{ report }}", "run": "run-1"},
            "when": "ansible_connection == 'linerate.rdma.refused'",
            "register": "looked",
        },
        {"name": "Show what the look said", "ansible.builtin.debug": {"msg": "{{ looked.msg | default('') }}"}},
        {"name": "Keep what was said", "ansible.builtin.set_fact": {"said": "{{ connected.msg | default('') }}"}},
        {"name": "Show what was kept", "ansible.builtin.debug": {"msg": "{{ said }}"}},
    ],
}
ON_LOCALHOST: Play = {
    "hosts": "localhost",
    "connection": "local",
    "gather_facts": False,
    "tasks": [
        {
            "name": "Ask the facts",
            "linerate.rdma.query": {"report_dir": "{{ report }}", "query": "[hcas, platform]"},
            "register": "asked",
        },
        {
            "name": "Show the answer",
            "ansible.builtin.debug": {"msg": "{{ asked.answers }} {{ asked.lines }} {{ inner }}"},
            "vars": {"inner": "{{ asked }}"},
        },
        {"name": "Keep the answer", "ansible.builtin.set_fact": {"kept": "{{ asked.answers }}"}},
        {"name": "Show it again", "ansible.builtin.debug": {"msg": "{{ kept }} {{ kept | to_json | from_json }}"}},
        {
            "name": "Begin a run, which names a hostile context",
            "linerate.rdma.run_begin": {"report_dir": "{{ report }}/begun"},
            "register": "begun",
        },
        {"name": "Show what was begun", "ansible.builtin.debug": {"msg": "{{ begun }}"}},
        {"name": "Ask a module", "hostile": None, "register": "told"},
        {
            "name": "Show its answer",
            "ansible.builtin.debug": {
                "msg": "{{ told }} {{ told.msg }} {{ told.list[1] }} {{ hostile }} {{ ansible_facts.hostile_list }}"
            },
        },
        {
            "name": "Keep its answer",
            "ansible.builtin.set_fact": {
                "kept": "{{ told.list }}",
                "joined": "{{ told.list | join(' ') }} {{ hostile }}",
            },
        },
        {"name": "Show what was kept", "ansible.builtin.debug": {"msg": "{{ kept }} {{ joined }}"}},
        {
            "block": [
                {
                    "name": "Give a wrong choice",
                    "linerate.rdma.stage_begin": "{{ {'stage': told.msg, 'report_dir': report} }}",
                }
            ],
            "rescue": [
                {
                    "name": "Show the refused choice",
                    "ansible.builtin.debug": {"msg": "{{ ansible_failed_result.msg }} {{ ansible_failed_result }}"},
                }
            ],
        },
        {
            "block": [
                {
                    "name": "Ask for no node",
                    "linerate.rdma.query": {"report_dir": "{{ report }}", "query": "hcas", "nodes": ["{{ told.msg }}"]},
                }
            ],
            "rescue": [
                {
                    "name": "Show the refusal",
                    "ansible.builtin.debug": {"msg": "{{ ansible_failed_result.msg }} {{ ansible_failed_result }}"},
                }
            ],
        },
    ],
}
CONSTRUCTED = """
selector: ''
ssh: example.com/way=ssh
compose: {rack: "labels['example.com/rack']", where: address, all_labels: labels}
groups: {with_zone: "labels['zone'] | length > 0", same: address == node}
keyed_groups: [{prefix: rack, key: "labels['example.com/rack']"}, {key: labels}]
"""


class Run(typing.NamedTuple):
    """What an ansible-playbook left.

    :ivar ran: the templates that were run
    :ivar called: command lines of ssh
    """

    code: int
    output: str
    ran: list[str]
    called: str


def play(folder: pathlib.Path, collections: str, server: Server, *plays: Play) -> Run:
    """The plays, on the nodes of a server."""
    text = [f"{one.replace('MARK', 'MARK-of-a-module')}" for one in (*TEMPLATES, TEMPLATES[0])]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": "c", "user": "u"}}],
        "current-context": CONTEXT,
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    (folder / "linerate.rdma.yml").write_text(
        f"plugin: linerate.rdma.nodes\nkubeconfig: {folder}/config\n{CONSTRUCTED}"
    )
    (folder / "plays.yml").write_text(yaml.safe_dump(list(plays)))
    ssh = folder / "ssh"
    # with a banner where a module is to run
    banner = f'case $* in *plain*) exit 0 ;; esac\necho "{TEMPLATES[1].replace("MARK", "MARK-of-ssh")}" >&2\nexit 255\n'
    ssh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {folder}/called\n{banner}')
    ssh.chmod(0o755)
    facts = FactFolder(str(folder / "report"), "run-1")
    facts.begin(RunStart("run-1", "2026-01-01T00:00:00Z", nodes=("worker-9",)))
    facts.write("hcas", "worker-9", text[0])
    facts.write("platform", "worker-9", error=text[1])
    (folder / "library").mkdir()
    (folder / "library" / "hostile.py").write_text(MODULE.replace("TEXTS", repr(text)))
    # the oldest cores have environments of their own, without the libraries of the collection
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        f"import sys\nsys.path.append({sysconfig.get_paths()['purelib']!r})\n"
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("K8S_AUTH_", "KUBE", "ANSIBLE_")) and not name.lower().endswith("_proxy")
    }
    environment = {
        **kept,
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "ANSIBLE_SSH_EXECUTABLE": str(ssh),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "PYTHONPATH": str(folder / "site"),
        "HOME": str(folder),
    }
    command = [
        PLAYBOOK,
        "-i",
        str(folder / "linerate.rdma.yml"),
        str(folder / "plays.yml"),
        "-e",
        f"report={folder}/report",
    ]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    called = folder / "called"
    marks = sorted(path.name for path in folder.rglob("MARK-*"))
    return Run(done.returncode, f"{done.stdout}{done.stderr}", marks, called.read_text() if called.exists() else "")


@pytest.fixture(name="server")
def fixture_server(tmp_path: pathlib.Path) -> typing.Iterator[Server]:
    text = texts()
    good = node("worker-2", text)
    good["status"]["addresses"][0]["address"] = "10.0.0.2"
    with Server(
        [node("worker-1", text), good, node("worker-3", text)], TEMPLATES[0].replace("MARK", "MARK-0")
    ) as server:
        yield server
        server.shutdown()


def test_words_of_a_node_that_ansible_shows_drive_no_terminal() -> None:
    evil = "\x1b[2J\x1b[1;1Hlinerate.rdma: GREEN \u202e"
    answer = {
        "warnings": [evil],
        "deprecations": [{"msg": evil, "version": None}],
        "msg": evil,
        "module_stdout": evil,
        "module_stderr": evil + "\nb",
    }
    shown = remove_effects(answer)
    assert "\x1b" not in repr_of(shown) and "\u202e" not in repr_of(shown) and shown["module_stderr"].endswith("\nb")
    assert remove_effects({"msg": "a\nb", "hcas": [evil]}) == {"msg": "a\nb", "hcas": [evil]}


def test_so_do_its_traceback_and_its_difference() -> None:
    evil = "\x1b[2J\x1b[1;1Hlinerate.rdma: GREEN \u202e\x9b31m"
    keys = ("before", "after", "prepared", "before_header", "after_header")
    shown = remove_effects({"exception": f"a\n{evil}", "diff": [dict.fromkeys(keys, evil)]})
    texts = [shown["exception"], *(shown["diff"][0][key] for key in keys)]
    assert not any(sign in text for text in texts for sign in "\x1b\u202e\x9b") and shown["exception"].startswith("a\n")
    assert remove_effects({"diff": {"before": "a\n", "after": "b\n"}}) == {"diff": {"before": "a\n", "after": "b\n"}}


def repr_of(shown: typing.Mapping[str, typing.Any]) -> str:
    texts = [
        *shown["warnings"],
        shown["deprecations"][0]["msg"],
        *(shown[name] for name in ("msg", "module_stdout", "module_stderr")),
    ]
    return "".join(texts)


def test_no_text_of_a_cluster_is_a_template(tmp_path: pathlib.Path, server: Server) -> None:
    found = play(tmp_path, COLLECTIONS, server, ON_NODES, ON_LOCALHOST)
    assert found.ran == [], found.output
    assert "Traceback" not in found.output and found.code in (0, 2, 4), found.output
    # the good address is reached by ssh, the bad one not at all, and both are named
    assert "MARK-of-ssh" in found.output
    assert "10.0.0.2" in found.called and "MARK" not in found.called and "worker-1" not in found.called
    assert "Node worker-1: its InternalIP" in " ".join(found.output.split())
    # its stage says so
    seen = json.loads((tmp_path / "report" / "facts" / "hcas" / "worker-1.json").read_text())
    assert seen["error"].startswith("unreachable: ") and "its InternalIP" in seen["error"]
    where = f"http://127.0.0.1:{server.server_address[1]}"
    assert f", context {CONTEXT}, API server {where}\n" in found.output
    assert "Show it again" in found.output and "Show the refusal" in found.output and "MARK" in found.output


def test_what_a_parser_lets_through_is_marked(tmp_path: pathlib.Path, server: Server) -> None:
    copy = tmp_path / "collections" / "ansible_collections" / "linerate" / "rdma"
    shutil.copytree(ROOT / "plugins", copy / "plugins", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "meta", copy / "meta")
    shutil.copy(ROOT / "galaxy.yml", copy)
    (copy / "plugins" / "module_utils" / "_parse" / "kubernetes" / "inventory.py").write_text(TRUSTING)
    refused, reached = server.nodes[0]["metadata"]["labels"], server.nodes[1]
    refused["error"] = refused["zone"]
    reached["status"]["addresses"][0]["address"] = reached["metadata"]["labels"]["zone"]
    found = play(tmp_path, f"{copy.parents[2]}:{COLLECTIONS}", server, ON_NODES)
    assert found.ran == [], found.output
    assert found.output.count("MARK") > 20


#: what runs no module on the node
ON_CONTROLLER = (
    "block",
    *(f"ansible.builtin.{name}" for name in ("debug", "fail", "include_role", "include_tasks", "meta")),
)
NODE_FILES = ("platform/tasks/kernel.yml", "platform/tasks/look_again.yml", "teardown/tasks/nodes.yml")
NODE_TASKS = sorted({*ROOT.glob("roles/*/tasks/observe.yml"), *(ROOT / "roles" / name for name in NODE_FILES)})


def tasks(listed: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
    for task in listed:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks(task.get(part, ()))


@pytest.mark.parametrize("path", NODE_TASKS, ids=lambda path: str(path.relative_to(ROOT / "roles")))
def test_what_runs_on_nodes_is_marked_and_sets_no_variable(path: pathlib.Path) -> None:
    """A lost connection is marked as well: on old cores its message is a template, which a mere 'is changed'
    evaluates."""
    for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
        (name,) = (
            (key for key in task if key.startswith(("ansible.", "linerate.", "block")))
            if "block" not in task
            else ("block",)
        )
        if name not in ON_CONTROLLER and task.get("delegate_to") != "localhost":
            assert name.startswith("linerate.rdma."), f"{task['name']}: give it to linerate.rdma.on_node"
            action = importlib.import_module(
                f"ansible_collections.linerate.rdma.plugins.action.{name.rpartition('.')[2]}"
            ).ActionModule
            assert name == "linerate.rdma.on_node" or issubclass(action, (ObserverAction, ControllerAction)), (
                f"{task['name']}: {name} does not mark a lost connection"
            )


def test_an_answer_of_a_node_sets_no_variable_and_adds_no_host(tmp_path: pathlib.Path) -> None:
    """Names that tasks on the controller take: an answer would stand above the inventory."""
    powers = {
        "ansible_facts": {"rdma_kubeconfig": "of the node", "inventory_hostname": "worker-2"},
        "add_host": {"host_name": "x"},
        "ansible_stats": {},
    }
    answer = {"changed": True, "stdout": "", "state": "absent", "add_group": "x"}
    assert remove_effects({**answer, **powers}) == {"changed": True, "stdout": "", "state": "absent"}
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "hostile.py").write_text(
        f"#!/usr/bin/python\nimport json\nprint(json.dumps({ {**answer, **powers}!r}))\n"
    )
    checks = [
        "rdma_kubeconfig is undefined",
        "inventory_hostname == 'worker-1'",
        "'x' not in groups.all",
        "made is changed",
    ]
    plays = [
        {
            "hosts": "worker-1",
            "gather_facts": False,
            "tasks": [
                {"linerate.rdma.on_node": {"module": "hostile"}, "register": "made"},
                {"ansible.builtin.assert": {"that": checks}},
            ],
        }
    ]
    (tmp_path / "plays.yml").write_text(yaml.safe_dump(plays))
    (tmp_path / "hosts.yml").write_text(
        yaml.safe_dump(
            {
                "all": {
                    "hosts": {"worker-1": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}
                }
            }
        )
    )
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS, "HOME": str(tmp_path)}
    command = [PLAYBOOK, "-i", str(tmp_path / "hosts.yml"), str(tmp_path / "plays.yml")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
