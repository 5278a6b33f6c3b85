# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook propose under a real ansible-playbook: nodes are folders that look like sysfs, the cluster is an API
server that has next to nothing."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._app.propose import ProposalError, default_path
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import PUBLIC_IMAGE
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError, write_new
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
NODES = ("worker-1", "worker-2")
LABEL = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
KINDS = ("CustomResourceDefinition", "Deployment", "DaemonSet", "ServiceCIDR", "Pod")


#: what a client asks first
ABOUT: dict[str, typing.Any] = {
    "/version": {"gitVersion": "v1.33.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {"kind": "APIGroupList", "groups": []},
}


class Api(FakeApi):
    """Says what it is as well."""

    def object(self, path: str) -> typing.Any:
        return ABOUT.get(path) or super().object(path)


@pytest.fixture
def api() -> typing.Iterator[FakeApi]:
    server = Api()
    nodes = [
        {
            "metadata": {"name": name, "labels": LABEL},
            "spec": {"podCIDR": f"172.31.{number}.0/24"},
            "status": {"addresses": []},
        }
        for number, name in enumerate(NODES)
    ]
    server.serve("Node", nodes)
    for kind in KINDS:
        server.serve(kind, [])
    server.start()
    yield server
    server.stop()


class Site:
    """An inventory of nodes with a RoCE NIC each, and ansible-playbook beside it."""

    def __init__(self, folder: pathlib.Path, url: str) -> None:
        self.folder = folder
        self.file = folder / "group_vars" / "all" / "rdma.yml"
        hosts = {}
        for number, name in enumerate(NODES, 1):
            tree = Tree(folder / name)
            function = tree.function(
                "0000:3c:00.0", "0x15b3", "0x1021", "0x020000", sriov_totalvfs="16", sriov_numvfs="0"
            )
            tree.rdma(function, "mlx5_0", f"b83f:d203:00e{number}:0000", node_desc=f"{name} mlx5_0")
            tree.port("mlx5_0", link_layer="Ethernet", lid="0x0", sm_lid="0x0")
            tree.netdev(function, "ens1np0", f"94:6d:ae:00:00:0{number}")
            # one of the node itself, which is none of NVIDIA's
            other = tree.function(
                "0000:01:00.0", "0x8086", "0x1592", "0x020000", "ice", sriov_totalvfs="64", sriov_numvfs="0"
            )
            tree.netdev(other, "eno1", f"94:6d:ae:00:01:0{number}")
            hosts[name] = {
                "ansible_connection": "local",
                "ansible_python_interpreter": sys.executable,
                "rdma_sysfs": [str(folder / name)],
            }
        (folder / "hosts.yml").write_text(
            yaml.safe_dump({"all": {"children": {"rdma_nodes": {"hosts": hosts}}}}), encoding="utf-8"
        )
        FakeApi.write_kubeconfig(url, folder, "x")

    def play(self, playbook: str, *arguments: str, **variables: typing.Any) -> tuple[int, str]:
        environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))
            },
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        everything = {"rdma_kubeconfig": str(self.folder / "kubeconfig"), **variables}
        command = [program, "-i", "hosts.yml", f"linerate.rdma.{playbook}", "-e", json.dumps(everything), *arguments]
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

    def proposed(self) -> dict[str, typing.Any]:
        found: dict[str, typing.Any] = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        return found


@pytest.fixture
def site(tmp_path: pathlib.Path, api: FakeApi) -> Site:
    return Site(tmp_path, api.url)


@pytest.mark.thorough
def test_from_nothing_to_a_file_that_validate_refuses_until_it_is_filled_in(site: Site, api: FakeApi) -> None:
    # the namespace of the pods, from who knows it
    code, said = site.play("propose", "--check", "--diff", rdma_proposal_namespace="training")
    assert code == 0, said
    assert (
        "+rdma_fabrics:" in said
        and re.search(r"^\+.*\bnamespace: .?training\b", said, re.MULTILINE)
        and not site.file.exists()
    )
    assert set(re.findall(r"to fill in: (\S+):", said)) == {"rdma_fabrics[0].ipam.type"}
    code, said = site.play("propose")
    assert code == 0, said
    assert "2 lines to fill in; read it, then linerate.rdma.site with --check shows the plan" in " ".join(said.split())
    (fabric,) = site.proposed()["rdma_fabrics"]
    assert fabric["select"] == {"vendor": "15b3", "device": "1021", "hcas_per_node": 1}
    # the pods' networks are at the upper end of the first private one
    assert fabric["ipam"]["range"] == "172.31.255.0/24"
    assert site.proposed()["rdma_cluster"]["node_selector"] == LABEL
    blanks = sorted(set(re.findall(r"to fill in: (\S+):", said)))
    assert blanks == ["rdma_fabrics[0].ipam.type", "rdma_fabrics[0].network.namespace"]
    # nothing was asked to change
    assert not [request for request in api.requests if not request.startswith(("list", "get", "watch"))]
    code, said = site.play("validate")
    assert code != 0
    for place in blanks:
        assert place in said
    assert "not filled in yet" in said
    # it is the intent now: nothing is written, and it says what is proposed
    before = site.file.read_text(encoding="utf-8")
    code, said = site.play("propose")
    assert (code, site.file.read_text(encoding="utf-8")) == (0, before), said
    assert "an intent exists already" in said and "changed=0" in said
    assert "nothing written, because an intent exists - 0 differences" in " ".join(said.split())
    assert "lines to fill in" not in said


@pytest.mark.thorough
def test_a_file_that_is_no_intent_is_not_overwritten(site: Site) -> None:
    target = site.folder / "mine.yml"
    target.write_text("mine\n", encoding="utf-8")
    code, said = site.play("propose", rdma_proposal=str(target))
    assert code != 0 and "this collection does not overwrite files" in " ".join(said.split()), said
    assert target.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.thorough
def test_without_the_cluster_and_a_node_it_proposes_what_it_can(site: Site, api: FakeApi) -> None:
    api.stop()
    (site.folder / "worker-2").rename(site.folder / "gone")
    code, said = site.play("propose")
    api.start()
    assert code == 0, said
    text = site.file.read_text(encoding="utf-8")
    assert "rdma_cluster" in said and "resource_prefix" in said
    assert "could not be read" in text and "worker-2" in text


def test_a_file_of_variables_is_not_hidden(tmp_path: pathlib.Path) -> None:
    assert default_path(str(tmp_path)) == str(tmp_path / "group_vars" / "all" / "rdma.yml")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("mine: 1\n", encoding="utf-8")
    with pytest.raises(ProposalError, match="Ansible would ignore it"):
        default_path(str(tmp_path))
    (tmp_path / "group_vars" / "all").mkdir()
    assert default_path(str(tmp_path)) == str(tmp_path / "group_vars" / "all" / "rdma.yml")


def test_a_new_file_is_new(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "folder" / "file"
    write_new(str(path), "one")
    with pytest.raises(FileError, match="no file is overwritten"):
        write_new(str(path), "two")
    assert path.read_text(encoding="utf-8") == "one"
    with pytest.raises(FileError, match="could not be written"):
        write_new(str(path / "below"), "three")


def test_where_no_observer_starts_the_cause_is_named(site: Site) -> None:
    """The cluster here takes no observers."""
    inventory = yaml.safe_load((site.folder / "hosts.yml").read_text(encoding="utf-8"))
    for host in inventory["all"]["children"]["rdma_nodes"]["hosts"].values():
        host["ansible_connection"] = "linerate.rdma.pod"
    (site.folder / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    code, said = site.play("propose", rdma_observers_image="registry.example/tools@sha256:" + "0" * 64)
    words = " ".join(said.split())
    # the cause of all that no node said, and not each node that said nothing
    assert (
        code != 0
        and (
            "no intent can be proposed: POST /apis/coordination.k8s.io/v1/namespaces/default/leases:"
            " linerate-rdma not found"
        )
        in words
    )
    # the second one: of the first it is asked whether the run was begun
    assert "[worker-2]" not in said, "a node that can't be seen is asked nothing"
    tasks = re.findall(r"^TASK \[(.*?)\]|^(fatal)", said, re.MULTILINE)
    order = [name or word for name, word in tasks]
    # what could not be removed keeps nothing else back, and what ends the run is said at its end, once there
    assert order[-2:] == ["Write the proposal", "fatal"] and "Let go of the cluster" in order
    # ansible-core from 2.19 on says it in words of its own as well
    assert said.rpartition("\nfatal: ")[2].count("linerate-rdma not found") == 1
    assert not site.file.exists()
    # a user who named no image reads what to type, at the end and once, and not for each node
    code, said = site.play("propose")
    end = " ".join(said.rpartition("\nfatal: ")[2].split())
    wanted = f"Run the same command with -e rdma_observers_image={PUBLIC_IMAGE}, which is a public image"
    assert code != 0 and "no intent can be proposed: rdma_observers_image is not set, " in end and wanted in end
    assert end.count(PUBLIC_IMAGE) == 1 and "[worker-2]" not in said
