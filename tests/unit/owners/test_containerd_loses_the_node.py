# SPDX-License-Identifier: GPL-3.0-or-later

"""A restart of containerd that systemd reports as done, and that ends containers or loses the node."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import subprocess
import sys
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.plugin_utils import _containerd
from ansible_collections.linerate.rdma.plugins.plugin_utils._containerd import ContainerdRestart
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, on_this_machine

ROOT = pathlib.Path(__file__).resolve().parents[3]
ON_NODE = importlib.import_module("ansible_collections.linerate.rdma.plugins.action.on_node")
NODES = ("worker-1", "worker-2", "worker-3")
#: 2026-01-02T03:04:05Z
NOW = 1767323045
#: of containerd 1.7
LOADED = """TYPE                                   ID       PLATFORMS      STATUS
io.containerd.snapshotter.v1           overlayfs linux/amd64    ok
io.containerd.grpc.v1                  cri      linux/amd64    {}
"""


class Machine:
    """A node in the place of systemd and containerd, and its Node.

    :ivar answers: of the commands, by their begin
    :ivar statuses: of the condition Ready, one for each look, with the time of the heartbeat; the last one stays
    """

    def __init__(self, api: FakeApi) -> None:
        self.api, self.now, self.asked = api, 0.0, typing.cast(list[str], [])
        self.answers: dict[str, tuple[int, str]] = {
            "systemctl daemon-reload": (0, "MainPID=812\nKillMode=process\n"),
            "xargs": (0, ""),
            "containerd config": (0, ""),
            "ctr plugins": (0, LOADED.format("ok")),
            "systemctl is-active kubelet": (0, "active\n"),
            "date": (0, f"{NOW}\n"),
        }
        self.show("True")

    def say(self, command: str) -> dict[str, typing.Any]:
        self.asked.append(command)
        code, text = next(answer for begin, answer in self.answers.items() if command.startswith(begin))
        return {"rc": code, "stdout": text}

    def show(self, status: str, heartbeat: str = "2026-01-02T03:04:00Z") -> None:
        ready = {"type": "Ready", "status": status, "message": "runtime is down", "lastHeartbeatTime": heartbeat}
        self.api.put("Node", {"kind": "Node", "metadata": {"name": "worker-1"}, "status": {"conditions": [ready]}})

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def restart(self) -> ContainerdRestart:
        return ContainerdRestart("worker-1", self.say, FakeApi.client(self.api.url), lambda: self.now, self.pause)


@pytest.fixture
def machine() -> typing.Iterator[Machine]:
    api = FakeApi()
    api.serve("Node", [])
    api.serve("Pod", [])
    api.start()
    yield Machine(api)
    api.stop()


@pytest.mark.parametrize(
    ("command", "answer", "said", "remedy"),
    [
        ("systemctl daemon-reload", (0, "MainPID=812\nKillMode=control-group\n"), "would end the running", "KillMode="),
        (
            "systemctl daemon-reload",
            (1, "no bus"),
            "does not report the unit of containerd: no bus",
            "systemctl status",
        ),
        ("xargs", (123, "failed to load TOML: line 3"), "configuration: failed to load TOML: line 3", "config dump"),
    ],
)
def test_restart_that_would_lose_the_node_is_refused(
    machine: Machine, command: str, answer: tuple[int, str], said: str, remedy: str
) -> None:
    machine.answers[command] = answer
    with pytest.raises(RdmaError, match=said) as raised:
        machine.restart().check()
    assert "containerd was not restarted" in raised.value.seen and remedy in raised.value.remedy


#: id of the container of shop/train, and the unit that systemd has for it
TRAIN = "3f" * 32
UNIT = f"Id=cri-containerd-{TRAIN}.scope\nLoadState=loaded\nDevicePolicy={{}}\nDeviceAllow=char-pts rwm\n{{}}"
LEGACY = UNIT.format("strict", "DeviceAllow=/dev/char/1:3 rwm\n")


def gpu_pod(resource: str = "nvidia.com/gpu", **state: typing.Any) -> dict[str, typing.Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"nodeName": "worker-1", "containers": [{"name": "c", "resources": {"limits": {resource: "8"}}}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "c", "containerID": f"containerd://{TRAIN}", "state": state or {"running": {}}}
            ],
        },
    }


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"])
def test_reload_that_takes_the_gpus_of_a_container_is_refused(machine: Machine, resource: str) -> None:
    machine.api.put("Pod", gpu_pod(resource))
    machine.answers["systemctl show --property=Id"] = (0, LEGACY)
    for refused in (machine.restart().check_reload, machine.restart().check):
        with pytest.raises(RdmaError, match=r"1 pod on worker-1 would lose the use of GPUs.*: shop/train") as raised:
            refused()
        assert "kubectl drain worker-1" in raised.value.remedy and "cdi.enabled: true" in raised.value.remedy
    assert not [command for command in machine.asked if "daemon-reload" in command], "systemd reads nothing"


@pytest.mark.parametrize(
    "shown",
    [
        UNIT.format("strict", "DeviceAllow=/dev/char/195:0 rw\n"),
        UNIT.format("strict", "DeviceAllow=char-nvidia-frontend rw\n"),
        # privileged
        UNIT.format("auto", ""),
        # the kubelet and containerd use the cgroup driver cgroupfs
        f"Id=cri-containerd-{TRAIN}.scope\nLoadState=not-found\nDevicePolicy=auto\n",
    ],
    ids=["cdi", "by name", "privileged", "cgroupfs"],
)
def test_reload_is_permitted_where_systemd_knows_the_gpus_or_no_container(machine: Machine, shown: str) -> None:
    machine.api.put("Pod", gpu_pod())
    other = UNIT.format("strict", "").replace(TRAIN, "ab" * 32)
    machine.answers["systemctl show --property=Id"] = (0, f"{other}\n{shown}")
    machine.restart().check()


@pytest.mark.parametrize("pod", [gpu_pod("cpu"), gpu_pod(terminated={}), {}], ids=["no GPU", "ended", "no pod"])
def test_reload_asks_systemd_for_no_container_without_gpus(machine: Machine, pod: dict[str, typing.Any]) -> None:
    if pod:
        machine.api.put("Pod", pod)
    machine.restart().check_reload()
    assert machine.asked == []


@pytest.mark.parametrize("answer", [(1, "no bus"), (0, ""), (0, LEGACY.replace(TRAIN, "ab" * 32)), (0, "Id\n=\n\0")])
def test_reload_is_refused_where_the_devices_of_a_container_are_not_known(
    machine: Machine, answer: tuple[int, str]
) -> None:
    machine.api.put("Pod", gpu_pod())
    machine.answers["systemctl show --property=Id"] = answer
    with pytest.raises(RdmaError, match="it is not known whether they lose the GPUs") as raised:
        machine.restart().check_reload()
    assert "kubectl drain worker-1" in raised.value.remedy


def test_reload_is_refused_where_the_pods_are_not_read() -> None:
    api = FakeApi()
    api.serve("Node", [])
    api.start()
    try:
        with pytest.raises(RdmaError, match="the pods of worker-1 were not read"):
            Machine(api).restart().check_reload()
    finally:
        api.stop()


def test_configuration_is_read_with_the_options_of_the_process(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "containerd"
    program.write_text('#!/bin/sh\necho "$2" "$3" "$4" >&2\necho password\nexit 1\n', encoding="utf-8")
    program.chmod(0o755)
    words = (str(program), "--config", "/etc/its own.toml", "")
    (tmp_path / "cmdline").write_text("\0".join(words), encoding="utf-8")
    command = _containerd.DUMP.replace("/proc/{pid}", str(tmp_path))
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    # the configuration has the passwords of registries
    assert (done.returncode, done.stdout) == (123, "/etc/its own.toml config dump\n")


def test_containerd_that_does_not_run_is_asked_for_its_default_configuration(machine: Machine) -> None:
    machine.answers["systemctl daemon-reload"] = (0, "MainPID=0\nKillMode=process\n")
    machine.restart().check()
    assert _containerd.DUMP_OF_DEFAULT in machine.asked


def test_node_that_stays_ready_is_not_waited_for(machine: Machine) -> None:
    restart = machine.restart()
    restart.check()
    restart.wait()
    assert machine.now == 0


@pytest.mark.parametrize(
    ("command", "answer", "said"),
    [
        ("ctr plugins", (0, LOADED.format("error")), r"without its CRI plugin \(status: error\)"),
        ("ctr plugins", (0, "TYPE ID PLATFORMS STATUS\n"), r"without its CRI plugin \(status: not loaded\)"),
        ("systemctl is-active kubelet", (3, "failed\n"), "120 s later: the unit kubelet is not active"),
    ],
)
def test_lost_node_is_named(machine: Machine, command: str, answer: tuple[int, str], said: str) -> None:
    restart = machine.restart()
    restart.check()
    machine.answers[command] = answer
    with pytest.raises(RdmaError, match=said):
        restart.wait()


def test_node_that_is_not_ready_is_lost_after_the_limit(machine: Machine) -> None:
    restart = machine.restart()
    restart.check()
    machine.show("False")
    with pytest.raises(RdmaError, match=r"120 s later: the Node is not Ready \(runtime is down\)") as raised:
        restart.wait()
    assert "kubectl describe node worker-1" in raised.value.remedy and machine.now == _containerd.READY


@pytest.mark.parametrize(
    ("heartbeat", "proven"), [("2026-01-02T03:04:49Z", False), ("2026-01-02T03:04:50Z", True), ("x", False)]
)
def test_without_ctr_only_a_later_status_of_the_kubelet_counts(machine: Machine, heartbeat: str, proven: bool) -> None:
    machine.answers["ctr plugins"] = (127, "ctr: not found")
    machine.show("True", heartbeat)
    if proven:
        machine.restart().wait()
        return
    with pytest.raises(RdmaError, match="420 s later: the kubelet has reported no new status"):
        machine.restart().wait()


def test_host_without_a_node_is_proven_by_ctr_only(machine: Machine) -> None:
    machine.api.drop("Node", {"metadata": {"name": "worker-1"}})
    machine.restart().wait()
    machine.answers["ctr plugins"] = (127, "ctr: not found")
    with pytest.raises(RdmaError, match="has no Node worker-1") as raised:
        machine.restart().wait()
    assert "ctr plugins ls" in raised.value.remedy


class Restarting:
    """A task that restarts containerd on nodes, one after the other, in place of systemd and of the checks.

    :ivar ran: nodes on which the module ran
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.path, self.ran = folder / "turn.json", typing.cast(list[str], [])

    def run(self, node: str, refused: str = "", lost: str = "") -> dict[str, typing.Any]:
        """Return the result on a node.

        :param refused: why containerd must not be restarted there
        :param lost: how the restart loses the node
        """

        def check(*_arguments: typing.Any) -> typing.Any:
            if refused:
                raise RdmaError(refused)
            return types.SimpleNamespace(wait=wait)

        def wait() -> None:
            if lost:
                raise RdmaError(lost)

        def run(task_vars: typing.Any) -> dict[str, typing.Any]:
            self.ran.append(node)
            return {"changed": True, "state": "started"}

        plugin = object.__new__(ON_NODE.ActionModule)
        plugin._check_restart = check
        answer = plugin._run_in_turn(
            str(self.path), {"restarts_containerd": True}, types.SimpleNamespace(run=run), node, {}
        )
        assert isinstance(answer, dict)
        return answer


def test_refused_restart_ends_no_order(tmp_path: pathlib.Path) -> None:
    task = Restarting(tmp_path)
    answer = task.run("worker-1", refused="it has KillMode=mixed")
    assert answer["failed"] and "KillMode=mixed" in answer["msg"]
    assert not task.run("worker-2").get("failed") and task.ran == ["worker-2"]


def test_lost_node_ends_the_order(tmp_path: pathlib.Path) -> None:
    task = Restarting(tmp_path)
    answer = task.run("worker-1", lost="the Node is not Ready")
    assert answer["failed"] and answer["changed"] and "the Node is not Ready" in answer["msg"]
    assert "because it failed on worker-1 before" in task.run("worker-2")["msg"] and task.ran == ["worker-1"]


#: what the play below finds in PATH
PROGRAMS = {
    "systemctl": '[ "$1" = is-active ] || printf "MainPID=0\\nKillMode=process\\n"',
    "containerd": "exit 0",
    "ctr": f"cat <<END\n{LOADED.format('$(cat $STATE)')}END",
}
#: reports that it is done, and containerd has no CRI plugin then
MODULE = """#!/usr/bin/python
import os
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"folder": {}, "node": {}})
open(os.path.join(module.params["folder"], "ran-" + module.params["node"]), "w").close()
module.exit_json(changed=True, state="started")
"""


class Api(FakeApi):
    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)


def play(folder: pathlib.Path, status: str) -> tuple[list[str], str]:
    """Return the nodes on which the module ran, and the output.

    :param status: of the CRI plugin
    """
    api = Api()
    api.serve("Lease", [], "default")
    api.serve("Pod", [])
    api.serve("Namespace", [{"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "uid-a"}}])
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    api.serve("Node", [on_this_machine({"kind": "Node", "metadata": {"name": "worker-1"}, "status": ready})])
    api.start()
    try:
        FakeApi.write_kubeconfig(api.url, folder, "t")
        for part in ("library", "bin"):
            (folder / part).mkdir()
        (folder / "library/restart.py").write_text(MODULE, encoding="utf-8")
        (folder / "status").write_text(status, encoding="utf-8")
        for name, body in PROGRAMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (folder / "bin" / name).chmod(0o755)
        report, begun = str(folder / "report"), "hostvars['localhost'].begun"
        of_run = {"facts_dir": report, "run": f"{{{{ {begun}.run }}}}", "holder": f"{{{{ {begun}.holder }}}}"}
        of_run["kubeconfig"] = str(folder / "kubeconfig")
        begin = {"stage": "validate", "report_dir": report, "fabrics": [], "cluster": {}}
        restart = {
            **of_run,
            "module": "restart",
            "writes": True,
            "in_turn": "containerd",
            "restarts_containerd": True,
            "options": {"folder": str(folder), "node": "{{ inventory_hostname }}"},
        }
        plays = [
            {
                "hosts": "localhost",
                "gather_facts": False,
                "tasks": [
                    {"linerate.rdma.stage_begin": begin, "register": "begun"},
                    {"linerate.rdma.cluster_lease": of_run},
                ],
            },
            {
                "hosts": "rdma_nodes",
                "gather_facts": False,
                "ignore_errors": True,
                "tasks": [{"linerate.rdma.on_node": restart, "throttle": 1}],
            },
        ]
        (folder / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        hosts = {"all": {"children": {"rdma_nodes": {"hosts": dict.fromkeys(NODES, host)}}}}
        (folder / "hosts.yml").write_text(json.dumps(hosts), encoding="utf-8")
        environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))
            },
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections"),
            "ANSIBLE_LIBRARY": str(folder / "library"),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "KUBECONFIG": str(folder / "kubeconfig"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "STATE": str(folder / "status"),
        }
        done = subprocess.run(
            [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.yml", "play.yml"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        return sorted(path.name.partition("-")[2] for path in folder.glob("ran-*")), done.stdout + done.stderr
    finally:
        api.stop()


@pytest.mark.processes
def test_no_further_node_is_restarted_after_one_is_lost(tmp_path: pathlib.Path) -> None:
    ran, said = play(tmp_path, "error")
    assert ran == ["worker-1"], said
    assert "runs without its CRI plugin" in said and said.count("because it failed on worker-1 before") >= 2, said


@pytest.mark.processes
def test_all_nodes_are_restarted_if_none_is_lost(tmp_path: pathlib.Path) -> None:
    ran, said = play(tmp_path, "ok")
    assert ran == [*NODES] and "fatal" not in said, said


def test_containerd_is_not_restarted_if_systemd_stops_another_unit_with_it(machine: Machine) -> None:
    unit = "MainPID=812\nKillMode=process\nBoundBy=docker.service kubelet.service\nRequiredBy=idle.service\n"
    machine.answers["systemctl daemon-reload"] = (0, f"{unit}ConsistsOf=\n")
    machine.answers["systemctl is-active -- docker.service"] = (0, "active\n")
    machine.answers["systemctl is-active -- idle.service"] = (3, "inactive\n")
    with pytest.raises(RdmaError, match=r"together with containerd: docker\.service"):
        machine.restart().check()
    assert all(key in machine.asked[0] for key in ("BoundBy", "RequiredBy", "ConsistsOf"))
    machine.answers["systemctl is-active -- docker.service"] = (3, "inactive\n")
    machine.restart().check()
