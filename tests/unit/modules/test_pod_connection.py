# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection linerate.rdma.pod under Ansible itself. Its container is a process of this machine, behind a server
that speaks exec."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import typing

import kubernetes.client
import pytest
import yaml
from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleFileNotFound
from ansible.playbook.play_context import PlayContext
from ansible.plugins.shell import sh

from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as theirs
from ansible_collections.linerate.rdma.plugins.connection.pod import DOCUMENTATION, Connection
from ansible_collections.linerate.rdma.tests.unit.exec_server import ExecServer, Fault

ROOT = pathlib.Path(__file__).resolve().parents[3]
ANSIBLE = pathlib.Path(sys.executable).with_name("ansible")
NAME = "linerate.rdma.pod"
TOKEN = "token-that-nobody-may-see"
SIX_MB = bytes(range(256)) * (6 * 1024 * 1024 // 256)
NAMES = ["plain", "two  words", "it's", 'say "x"', "$HOME `id` \\ *", "-n", "\u00b5"]


class Cluster:
    """A server, a folder, and an inventory of pods."""

    def __init__(self, server: ExecServer, folder: pathlib.Path) -> None:
        self.server = server
        self.folder = folder
        # nothing of the user's
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_", "KUBE"))}
        paths = {
            "HOME": str(folder),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
        }
        self.environment = {
            **kept,
            **paths,
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "K8S_AUTH_HOST": server.url,
            "K8S_AUTH_API_KEY": TOKEN,
        }

    def ansible(
        self, module: str, arguments: typing.Any = "", pod: str = "pod", **variables: typing.Any
    ) -> tuple[str, typing.Any, str]:
        """How a task ended, its result, and all that Ansible printed."""
        known = {
            "ansible_connection": NAME,
            "ansible_pod_namespace": "observers",
            "ansible_pipelining": True,
            "ansible_python_interpreter": sys.executable,
            "ansible_remote_tmp": str(self.folder / "remote"),
            **variables,
        }
        inventory = self.folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"hosts": {pod: known}}}))
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        command = [str(ANSIBLE), "-i", str(inventory), pod, "-m", module, *(["-a", given] if given else [])]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        shown = done.stdout + done.stderr
        assert TOKEN not in shown
        first = re.search(rf"^{re.escape(pod)} \| ([A-Z!]+)", done.stdout, flags=re.MULTILINE)
        assert first, shown
        _head, _arrow, result = done.stdout[first.start() :].partition(" => ")
        return first[1], json.loads(result) if result.startswith("{") else None, shown


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> typing.Iterator[Cluster]:
    with ExecServer(environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}) as server:
        yield Cluster(server, tmp_path)


def test_a_module_is_one_exec(cluster: Cluster) -> None:
    ended, result, _shown = cluster.ansible("ansible.builtin.ping")
    assert (ended, result["ping"]) == ("SUCCESS", "pong")
    assert cluster.server.asked == {"pod": 1}
    assert {name.lower(): value for name, value in cluster.server.seen[0].items()}["authorization"] == f"Bearer {TOKEN}"


def test_modules_that_change_and_that_fail(cluster: Cluster) -> None:
    ended, result, shown = cluster.ansible("ansible.builtin.command", {"argv": ["printf", "%s|", "two  words", "it's"]})
    assert (ended, result) == ("CHANGED", None), "ad hoc, the output of a command is shown as it is"
    assert "two  words|it's|" in shown
    ended, result, shown = cluster.ansible("ansible.builtin.command", {"argv": ["sh", "-c", "echo why >&2; exit 7"]})
    assert ended == "FAILED" and "rc=7" in shown and "why" in shown
    ended, result, _shown = cluster.ansible(
        "ansible.builtin.file", {"path": f"{cluster.folder}/no/such/folder", "state": "touch"}
    )
    assert ended == "FAILED!" and "could not touch target" in result["msg"]


def test_raw_needs_no_python(cluster: Cluster) -> None:
    ended, _result, shown = cluster.ansible(
        "ansible.builtin.raw", "echo out; echo error >&2; exit 3", ansible_python_interpreter="/no/python"
    )
    assert ended == "FAILED" and "rc=3" in shown and "out" in shown and "error" in shown


@pytest.mark.parametrize(("pipelining", "data"), [(True, SIX_MB), (False, b"")], ids=["pipelining", "empty"])
def test_files_go_there_and_come_back(cluster: Cluster, pipelining: bool, data: bytes) -> None:
    source, target, back = cluster.folder / "source", cluster.folder / "it's there", cluster.folder / "back"
    source.write_bytes(data)
    ended, result, shown = cluster.ansible(
        "ansible.builtin.copy", {"src": str(source), "dest": str(target)}, ansible_pipelining=pipelining
    )
    assert (ended, result["changed"]) == ("CHANGED", True), shown
    assert target.read_bytes() == data
    ended, _result, shown = cluster.ansible(
        "ansible.builtin.fetch", {"src": str(target), "dest": str(back), "flat": True}
    )
    assert ended == "CHANGED", shown
    assert back.read_bytes() == data


def test_a_module_without_pipelining(cluster: Cluster) -> None:
    assert cluster.ansible("ansible.builtin.ping", ansible_pipelining=False)[:2] == (
        "SUCCESS",
        {"changed": False, "ping": "pong"},
    )
    assert (cluster.folder / "remote").is_dir()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        # that of stderr may have come before
        (
            Fault(cut=40),
            (
                "the API server reports: Success\\. But the command's end mark on stdout( and stderr)?"
                " did not arrive; 24 bytes of stdout"
            ),
        ),
        (
            Fault(refuse=403, words="forbidden"),
            (
                "exec in pod observers/worker-1: forbidden\\. As an admin of the cluster, apply the file of docs/rbac"
                " that has this right"
            ),
        ),
        (
            Fault(words='container not found ("main")'),
            "The container must run, and its image must contain sh, head and cat",
        ),
        (Fault(silent=True), "did not start within 0.5 s"),
    ],
    ids=["cut", "forbidden", "no container", "silent"],
)
def test_a_host_that_gives_no_answer_is_unreachable_and_says_why(cluster: Cluster, fault: Fault, said: str) -> None:
    cluster.server.faults["worker-1"] = fault
    # one that would be a success, had nobody looked for its end
    ended, result, shown = cluster.ansible(
        "ansible.builtin.raw", "printf %050d 0", pod="worker-1", ansible_pod_connect_timeout=0.5
    )
    assert ended == "UNREACHABLE!" and re.search(said, result["msg"]), shown
    assert "Traceback" not in shown


def test_who_can_not_connect_is_told_what_to_do(cluster: Cluster) -> None:
    for variables, said in (
        ({"ansible_pod_kubeconfig": "/no/such/file", "ansible_pod_api": ""}, "the file does not exist"),
        (
            {"ansible_pod_ca_cert": "/no/ca.crt"},
            "ca_cert (K8S_AUTH_SSL_CA_CERT) is /no/ca.crt, but this file does not exist",
        ),
        ({"ansible_pod_api": "http://127.0.0.1:1"}, "Check the kubeconfig (or the variables K8S_AUTH_*)"),
    ):
        ended, result, shown = cluster.ansible("ansible.builtin.raw", "true", **variables)
        assert ended == "UNREACHABLE!" and said in result["msg"], shown
        assert "Traceback" not in shown


def connection(
    server: ExecServer, monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, **variables: typing.Any
) -> Connection:
    """As a task gets it, in a process that has asked no other API server before."""
    theirs._pool.clear()
    kubernetes.client.Configuration.set_default(None)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    # as the loader does it, which would take over the imports of this process
    constants.config.initialize_plugin_configuration_definitions(
        "connection", NAME, yaml.safe_load(DOCUMENTATION)["options"]
    )
    made = Connection(PlayContext(), shell=sh.ShellModule())
    made._load_name = NAME
    known = {"inventory_hostname": "pod", "ansible_pod_api": server.url, "ansible_pod_api_key": TOKEN, **variables}
    made.set_options(var_options=known)
    return made


@pytest.fixture
def pod(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[Connection]:
    with ExecServer() as server:
        yield connection(server, monkeypatch, tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [b"", b"\0\n\xff" * 1000], ids=["empty", "binary"])
def test_names_and_bytes_are_what_they_are(pod: Connection, tmp_path: pathlib.Path, name: str, data: bytes) -> None:
    source, target, back = tmp_path / "source", tmp_path / name, tmp_path / "back"
    source.write_bytes(data)
    pod.put_file(str(source), str(target))
    assert target.read_bytes() == data
    pod.fetch_file(str(target), str(back))
    assert back.read_bytes() == data


def test_files_that_can_not_be_are_named(pod: Connection, tmp_path: pathlib.Path) -> None:
    with pytest.raises(AnsibleFileNotFound, match="source does not exist on the controller"):
        pod.put_file(str(tmp_path / "source"), str(tmp_path / "target"))
    (tmp_path / "source").touch()
    with pytest.raises(
        AnsibleError, match=r"no/target could not be written in pod default/pod: .*Set ansible_remote_tmp"
    ):
        pod.put_file(str(tmp_path / "source"), str(tmp_path / "no" / "target"))
    with pytest.raises(AnsibleError, match="no/source could not be read in pod default/pod: "):
        pod.fetch_file(str(tmp_path / "no" / "source"), str(tmp_path / "back"))
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("way", ["put_file", "fetch_file"])
def test_the_name_of_a_file_that_the_container_gave_drives_no_terminal(
    pod: Connection, tmp_path: pathlib.Path, way: str
) -> None:
    (tmp_path / "here").touch()
    names = [str(tmp_path / "here"), str(tmp_path / "no\x1b[2J\u202e\nlinerate.rdma: GREEN" / "there")]
    with pytest.raises(AnsibleError) as raised:
        getattr(pod, way)(*(names if way == "put_file" else reversed(names)))
    said = str(raised.value)
    assert "/no\\x1b[2J\\u202e\\nlinerate.rdma: GREEN/there could not be " in said
    assert not {"\x1b", "\u202e", "\n"} & set(said)


def test_a_file_that_comes_in_part_is_not_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(SIX_MB)
    with ExecServer() as server:
        here = connection(server, monkeypatch, tmp_path)
        server.faults["pod"] = Fault(cut=1_000_000)
        with pytest.raises(AnsibleConnectionFailure, match=r"9[0-9]{5} bytes of stdout"):
            here.fetch_file(str(tmp_path / "source"), str(tmp_path / "back"))
        server.faults["pod"] = Fault(starve=1_000_000)
        with pytest.raises(AnsibleConnectionFailure, match="all of stdin arrived"):
            here.put_file(str(tmp_path / "source"), str(tmp_path / "target"))
    assert not (tmp_path / "back").exists()


def test_it_can_be_closed_and_used_again(pod: Connection) -> None:
    assert not pod.connected
    for use in (pod.reset, pod.close, lambda: None):
        assert pod.exec_command("cat; echo end", in_data=b"in ") == (0, b"in end\n", b"")
        assert pod.connected
        use()


def test_a_password_for_become_is_refused_in_words(pod: Connection) -> None:
    class Asks:
        @staticmethod
        def expect_prompt() -> bool:
            return True

    pod.become = Asks()  # type: ignore[assignment]
    with pytest.raises(AnsibleError, match="NOPASSWD"):
        pod.exec_command("id")
    assert pod.exec_command("true", sudoable=False)[0] == 0


def test_acts_as_whom_it_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExecServer() as server:
        here = connection(
            server,
            monkeypatch,
            tmp_path,
            ansible_pod_impersonate_user="joe",
            ansible_pod_name="other",
            ansible_pod_container="main",
        )
        assert here.exec_command("true")[0] == 0
        assert {name.lower(): value for name, value in server.seen[0].items()}["impersonate-user"] == "joe"
        assert (server.asked, server.queries[0]["container"]) == ({"other": 1}, ["main"])


def test_a_kubeconfig_may_be_given_as_a_mapping(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExecServer() as server:
        user = {"username": "me", "password": "secret"}
        config = {
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        monkeypatch.delenv("K8S_AUTH_HOST", raising=False)
        here = connection(
            server, monkeypatch, tmp_path, ansible_pod_kubeconfig=config, ansible_pod_api=None, ansible_pod_api_key=None
        )
        assert here.exec_command("echo here") == (0, b"here\n", b"")
        kind, text = {name.lower(): value for name, value in server.seen[0].items()}["authorization"].split()
        assert (kind.lower(), base64.b64decode(text)) == ("basic", b"me:secret")
