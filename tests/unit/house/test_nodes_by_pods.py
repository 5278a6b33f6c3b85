# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done on nodes beside looking, under a real ansible-playbook, where observers are the only way to them: the
teardown, and the limit of containerd.

The cluster is an API server that is played, the observers are processes of this machine, and what is done in the
cluster itself has tests of its own.
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

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import DROP_IN
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import RECORD
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit import fake_observers
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY, ExecServer, Fault
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi
from ansible_collections.linerate.rdma.tests.unit.fake_observers import IMAGE, World
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = ROOT / "build" / "collections" / "ansible_collections"
RUN = "20260102T030405Z-aaaaaa"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma"
PODS = ("worker-1", "worker-2")
POD = {
    "ansible_connection": "linerate.rdma.pod",
    "ansible_pod_namespace": fake_observers.NAMESPACE,
    "ansible_pipelining": True,
    "ansible_python_interpreter": sys.executable,
}
FAR = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": "-o ControlPath=none"}
#: what the tasks that take back objects tell of them
TAKEN_BACK = {
    **{
        kind: {"applied": []}
        for kind in ("objects_removed", "maps_removed", "admission_removed", "olm_removed", "namespaces_removed")
    },
    "operators_left": {"operators": {}},
    "rolls": {"rolls": []},
}
#: in the place of these tasks, which have tests of their own
CLUSTER = [
    {
        "name": "Leave a mark",
        "ansible.builtin.copy": {"content": "", "dest": "{{ fake_mark }}", "mode": "0644"},
        "check_mode": False,
        "changed_when": False,
    },
    *(
        {"name": f"Tell {kind}", "linerate.rdma.fact": {"kind": kind, "node": "cluster", "value": value}}
        for kind, value in TAKEN_BACK.items()
    ),
]


class Api(World):
    """Says what it is as well."""

    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)


class Site:
    """A cluster, an inventory, and ansible-playbook beside them.

    :ivar host: the files of each node, as its observer has them
    :ivar mark: what was done in the cluster has left it
    """

    def __init__(self, folder: pathlib.Path, collections: pathlib.Path, world: World, execs: ExecServer) -> None:
        self.folder, self.collections, self.world, self.execs = folder, collections, world, execs
        self.host, self.mark = folder / "host", folder / "mark"
        (self.host / "etc/systemd/system").mkdir(parents=True)
        self.hosts: dict[str, typing.Any] = {name: {**POD, "ansible_pod_node": name} for name in PODS}
        FakeApi.write_kubeconfig(world.url, folder, "x")

    def play(self, playbook: str, *arguments: str, **variables: typing.Any) -> tuple[int, str]:
        self.mark.unlink(missing_ok=True)
        (self.folder / "hosts.yml").write_text(
            yaml.safe_dump({"all": {"children": {"rdma_nodes": {"hosts": self.hosts}}}}), encoding="utf-8"
        )
        environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))
            },
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        known = {
            "rdma_kubeconfig": str(self.folder / "kubeconfig"),
            "rdma_observers_image": IMAGE,
            "fake_mark": str(self.mark),
        }
        everything = {**known, "teardown_host_files": str(self.host), "observers_wait_seconds": 30, **variables}
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        command = [program, "-i", "hosts.yml", playbook, "-e", json.dumps(everything), *arguments]
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
        return done.returncode, done.stdout + done.stderr

    def nothing_is_left(self) -> bool:
        """Neither observers nor the Lease."""
        return self.world.all("Namespace") == [] and self.world.object(LEASE) is None


@pytest.fixture(scope="module", name="collections")
def fixture_collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A copy of the collection in which a teardown does nothing in the cluster."""
    folder = tmp_path_factory.mktemp("collections")
    copy = folder / "ansible_collections" / "linerate" / "rdma"
    for name in ("plugins", "playbooks", "meta", "roles"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "galaxy.yml", copy)
    (copy / "roles" / "teardown" / "tasks" / "cluster.yml").write_text(yaml.safe_dump(CLUSTER), encoding="utf-8")
    for name in ("ansible", "kubernetes"):
        (folder / "ansible_collections" / name).symlink_to(COLLECTIONS / name)
    return folder


@pytest.fixture
def site(tmp_path: pathlib.Path, collections: pathlib.Path) -> typing.Iterator[Site]:
    world = Api(*(fake_observers.node(name) for name in PODS))
    tools = tmp_path / "tools"
    tools.mkdir()
    with ExecServer(
        environment={"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    ) as execs:
        world.on_exec = execs.serve
        world.start()
        yield Site(tmp_path, collections, world, execs)
        world.stop()


@pytest.fixture(name="intent")
def fixture_intent() -> dict[str, typing.Any]:
    """Of a fabric without virtual functions, so that nobody has to have waited for their end."""
    network, ipam = {"name": "net", "namespace": "test"}, {"type": "whereabouts", "range": "10.0.0.0/24"}
    return {
        "rdma_fabrics": [
            {
                "name": "storage",
                "profile": "macvlan",
                "select": {"hcas_per_node": 1, "netdev": ["eth1"]},
                "network": network,
                "ipam": ipam,
            }
        ]
    }


def leave_a_drop_in(site: Site) -> pathlib.Path:
    path = site.host / DROP_IN.strip("/")
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nLimitMEMLOCK=infinity\n", encoding="utf-8")
    return path


def test_nodes_that_show_nothing_of_ours_are_proven_and_nothing_is_changed(site: Site, intent: typing.Any) -> None:
    code, said = site.play("linerate.rdma.teardown", **intent)
    assert code == 0, said
    assert site.mark.exists() and site.nothing_is_left()
    assert site.execs.asked == {f"linerate-observer-{name}": 1 for name in PODS}, (
        "one look at each, and no module there"
    )
    assert set(re.findall(r"changed=(\d+)", said)) == {"0"}, said


@pytest.mark.thorough
def test_what_ssh_has_left_is_named_with_the_command_and_so_is_who_could_not_be_asked(
    site: Site, intent: typing.Any
) -> None:
    left = leave_a_drop_in(site)
    (site.host / RECORD).parent.mkdir(parents=True)
    (site.host / RECORD).write_text("iommu=pt\n", encoding="utf-8")
    site.hosts["worker-3"] = FAR
    site.execs.faults["linerate-observer-worker-2"] = Fault(refuse=403, words="pods is forbidden")
    code, said = site.play("linerate.rdma.teardown", **intent)
    assert code != 0 and "The teardown is not complete." in said
    assert (
        "teardown.drop_in worker-1: fail, file." in said
        and f"rm {DROP_IN} && systemctl daemon-reload && systemctl restart containerd" in said
    )
    assert "teardown.drop_in worker-2: unknown, drop-in not read." in said and "pods is forbidden" in said
    assert "teardown.drop_in worker-3: unknown, drop-in not read." in said and "unreachable" in said
    assert (
        "teardown.kernel_arguments worker-1: fail, iommu=pt." in said
        and "teardown.kernel_arguments worker-2: unknown, not read." in said
    )
    assert left.exists() and site.mark.exists() and site.nothing_is_left()


@pytest.mark.thorough
def test_check_mode_tells_it_of_the_nodes_on_which_a_teardown_does_nothing(site: Site, intent: typing.Any) -> None:
    left = leave_a_drop_in(site)
    site.hosts["worker-3"] = FAR
    code, said = site.play("linerate.rdma.teardown", "--check", "--diff", **intent)
    assert code != 0 and "teardown.drop_in worker-1: fail, file." in said and "teardown.drop_in worker-3" not in said, (
        said
    )
    assert site.nothing_is_left()
    shutil.rmtree(left.parent)
    code, said = site.play("linerate.rdma.teardown", "--check", "--diff", **intent)
    assert code == 0, said


@pytest.mark.thorough
def test_without_observers_the_rest_is_taken_back_and_each_node_says_why(site: Site, intent: typing.Any) -> None:
    code, said = site.play("linerate.rdma.teardown", **intent, rdma_observers_image="")
    assert code != 0 and site.mark.exists() and site.nothing_is_left()
    for name in PODS:
        for check, measured in (("drop_in", "drop-in not read"), ("kernel_arguments", "not read")):
            assert re.search(
                rf"teardown\.{check} {name}: unknown, {measured}\. .* failed: [^.]*Start an observer on each node:"
                r" .*image",
                said,
            ), said
    assert site.execs.asked == {}


def played(site: Site, task: dict[str, typing.Any], **variables: typing.Any) -> tuple[FactFolder, str]:
    """What a role does on nodes, as the play of its stage does it: observers are started, and then it is played."""
    folder = FactFolder(str(site.folder / "report"), RUN)
    folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=tuple(site.hosts), by_pods=PODS))
    groups = {
        "group/linerate.rdma.facts": {"facts_dir": folder.report_dir, "run": RUN},
        "group/linerate.rdma.cluster": {"kubeconfig": "{{ rdma_kubeconfig }}"},
        "group/linerate.rdma.lease": {"holder": "a-1"},
    }
    start = {
        "name": "Start them",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "module_defaults": groups,
    }
    on_nodes = {
        "name": "Observe",
        "hosts": "rdma_nodes",
        "gather_facts": False,
        "ignore_unreachable": True,
        "ignore_errors": True,
        "module_defaults": groups,
    }
    plays = [
        {**start, "tasks": [{"name": "Start", "ansible.builtin.import_role": {"name": "linerate.rdma.observers"}}]},
        {**on_nodes, "tasks": [task]},
    ]
    (site.folder / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    code, said = site.play("play.yml", **variables)
    assert code == 0, said
    return folder, said


def observed_by_role_host(site: Site, nsenter: str) -> tuple[FactFolder, str]:
    """:param nsenter: script of the program by which an observer asks its node"""
    program = site.folder / "tools" / "nsenter"
    program.write_text(f"#!/bin/sh\n{nsenter}\n", encoding="utf-8")
    program.chmod(0o755)
    memlock = {"by": "containerd", "limit_gib": 8, "proof_mib": 64}
    task = {"name": "Role", "ansible.builtin.import_role": {"name": "linerate.rdma.host", "tasks_from": "observe"}}
    return played(site, task, rdma_cluster={"host": {"memlock": memlock}})


def test_the_limit_of_containerd_is_looked_at_and_never_written(site: Site) -> None:
    """By whoever asks first; the other node has no systemd, and says so."""
    absent = "echo 'nsenter: failed to execute systemctl: No such file or directory' >&2; exit 127"
    folder, said = observed_by_role_host(
        site, f'echo "$@" >> "$HOME/asked"; mkdir "$HOME/first" 2> "$HOME/null" && echo 8388608 && exit; {absent}'
    )
    facts = [folder.read("containerd", name) for name in PODS]
    (value, _none), (nothing, error) = sorted(
        ((fact.value, fact.error) for fact in facts if fact is not None), key=lambda one: one[0] is None
    )
    assert (value, nothing) == ({"limit": "8388608", "changes": []}, None), said
    assert "failed to execute systemctl: No such file or directory" in (error or "")
    command = "--target=1 --mount -- systemctl show containerd --property=LimitMEMLOCK --value\n"
    assert (site.folder / "asked").read_text() == command * len(PODS)
    # one module each: none that makes a folder, writes a file, or restarts anything. The server knows no field
    # selectors, so that both find the first pod
    assert sum(site.execs.asked.values()) == len(PODS)
    assert not (site.host / DROP_IN.strip("/")).parent.exists()


def test_a_second_look_is_one_command_in_each_observer_and_one_module_over_ssh(site: Site) -> None:
    """Of the nodes that a stage has changed; of the others nobody asks."""
    add_six_hcas(Tree(site.folder / "sys"))
    over_ssh = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    site.hosts |= {"worker-3": over_ssh, "worker-4": over_ssh}
    again = {"name": "linerate.rdma.discover", "tasks_from": "again", "rolespec_validate": False}
    asked = {
        "discover_nodes": ["worker-2", "worker-3"],
        "discover_kinds": ["hcas", "clock"],
        "discover_since": "before_reset",
    }
    folder, said = played(
        site,
        {"name": "Again", "ansible.builtin.include_role": again, "vars": asked},
        rdma_sysfs=[str(site.folder / "sys")],
    )
    assert site.execs.asked == {"linerate-observer-worker-2": 1}, said
    seen = {node: folder.read("hcas", node) for node in site.hosts}
    assert [node for node, fact in seen.items() if fact is not None and fact.value["hcas"]] == [
        "worker-2",
        "worker-3",
    ], said
    assert (seen["worker-1"], seen["worker-4"]) == (None, None)
