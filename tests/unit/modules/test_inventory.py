# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory out of a cluster, by ansible-inventory itself, before an API server that pages and selects as the real
one does."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import typing
import urllib.parse

import pytest

from ansible_collections.linerate.rdma.plugins.inventory import nodes
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.inventory import inventory_node

from .test_kubeconfig import kubeconfig

ROOT = pathlib.Path(__file__).parents[3]
RENDERED = "rendered-gpu-0123456789abcdef0123456789abcdef"
ANSWERS: dict[str, dict[str, typing.Any]] = {
    "/version": {"kind": "Version", "major": "1", "minor": "34", "gitVersion": "v1.34.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
}


def node(
    name: str, image: str, address: str = "", annotations: typing.Optional[dict[str, str]] = None, **labels: str
) -> dict[str, typing.Any]:
    addresses = [
        {"type": "Hostname", "address": name},
        *([{"type": "InternalIP", "address": address}] if address else []),
    ]
    named = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": named, "annotations": annotations or {}},
        "status": {"nodeInfo": {"osImage": image}, "addresses": addresses},
    }


NODES = (
    node("control", "Debian GNU/Linux 12 (bookworm)", "10.0.0.1", example_com__role="control"),
    node(
        "gpu-1.example.com",
        "Red Hat Enterprise Linux CoreOS 418.94.202501",
        "10.0.0.11",
        {"machineconfiguration.openshift.io/desiredConfig": RENDERED},
        example_com__role="gpu",
        nvidia_com__gpu_machine="DGX-H100",
        topology_kubernetes_io__zone="hall-2",
        fabric_topograph_run__tier_0="ignored",
    ),
    node("gpu-2", "Talos (v1.9.1)", "10.0.0.12", example_com__role="gpu", example_com__way="ssh"),
    node("gpu-3", "Ubuntu 22.04.4 LTS", example_com__role="gpu", example_com__way="ssh"),
)


class Nodes(http.server.BaseHTTPRequestHandler):
    """Serves two nodes a page, of those that have all labels of the selector, which are ``key=value`` here."""

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/api/v1/nodes":
            wanted = {
                key: value
                for key, _mark, value in (
                    part.partition("=") for part in query.get("labelSelector", "").split(",") if part
                )
            }
            chosen = [item for item in NODES if wanted.items() <= item["metadata"]["labels"].items()]
            first = int(query.get("continue", 0))
            rest = {"continue": str(first + 2)} if len(chosen) > first + 2 else {}
            body: dict[str, typing.Any] = {"kind": "NodeList", "metadata": rest, "items": chosen[first : first + 2]}
        else:
            body = ANSWERS.get(url.path, {"kind": "APIResourceList", "resources": []})
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: typing.Any) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> typing.Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nodes) as served:
        threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()


def inventory(folder: pathlib.Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What ansible-inventory makes of a file, with a kubeconfig ``config`` beside it."""
    path = folder / "linerate.rdma.yml"
    path.write_text(f"plugin: linerate.rdma.nodes\n{text}")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("K8S_AUTH_", "KUBE")) and not name.lower().endswith("_proxy")
    }
    environment = {
        **kept,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "HOME": str(folder),
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-inventory")), "-i", str(path), "--list", *options]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_nodes_are_reached_by_pods_and_grouped_by_what_they_are(server: str, tmp_path: pathlib.Path) -> None:
    config = kubeconfig(tmp_path / "config", server)
    done = inventory(
        tmp_path,
        f"kubeconfig: {config}\nselector: example.com/role=gpu\nssh: example.com/way=ssh\nkeyed_groups: [{{prefix:"
        " role, key: \"labels['example.com/role']\"}]\ncompose: {rack: \"address.split('.')[3]\"}\n",
    )
    assert done.returncode == 0, done.stderr
    # texts from outside are marked, so that nobody takes them for templates
    listed = json.loads(done.stdout, object_hook=lambda item: item.get("__ansible_unsafe", item))
    variables = listed["_meta"]["hostvars"]
    assert sorted(listed["rdma_nodes"]["hosts"]) == ["gpu-1.example.com", "gpu-2", "gpu-3"]
    first, second, third = (variables[name] for name in ("gpu-1.example.com", "gpu-2", "gpu-3"))
    assert (
        first["ansible_connection"] == "linerate.rdma.pod"
        and first["ansible_python_interpreter"] == "/usr/bin/python3"
        and first["rack"] == "11"
    )
    assert (second["ansible_connection"], second["ansible_host"]) == ("ansible.builtin.ssh", "10.0.0.12")
    assert third["ansible_connection"] == "ansible.builtin.ssh" and "ansible_host" not in third
    assert all(values["rdma_listed_by_cluster"] is True for values in variables.values())
    assert {values["rdma_kubeconfig"] for values in variables.values()} == {config}
    groups = {
        name: item["hosts"]
        for name, item in listed.items()
        if name.startswith(("os_", "model_", "pool_", "zone_", "role_")) and "hosts" in item
    }
    assert groups == {
        "os_red_hat_enterprise_linux_coreos": ["gpu-1.example.com"],
        "os_talos": ["gpu-2"],
        "os_ubuntu": ["gpu-3"],
        "model_dgx_h100": ["gpu-1.example.com"],
        "pool_gpu": ["gpu-1.example.com"],
        "zone_hall_2": ["gpu-1.example.com"],
        "role_gpu": ["gpu-1.example.com", "gpu-2", "gpu-3"],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "kubeconfig: {folder}/config\nselector: example.com/role=cpu",
            "no node of the cluster has the labels 'example.com/role=cpu'. Set selector in this file to labels of the"
            " nodes (kubectl get nodes --show-labels lists them), or to '' for all nodes",
        ),
        ("kubeconfig: {folder}/absent", "the file does not exist"),
        ("kubeconfig: {folder}/config\nselektor: x", "selektor"),
    ],
)
def test_a_mistake_is_named(server: str, tmp_path: pathlib.Path, text: str, words: str) -> None:
    kubeconfig(tmp_path / "config", server)
    done = inventory(tmp_path, text.format(folder=tmp_path))
    assert done.returncode != 0 and words in " ".join(done.stderr.split()) and "Traceback" not in done.stderr, (
        done.stderr
    )


def test_cluster_without_nodes_is_named_where_the_selector_takes_all() -> None:
    said = nodes._explain_missing_nodes("")
    assert said.startswith("the cluster has no nodes. Check that the kubeconfig") and "selector" not in said


def test_the_kubeconfig_of_the_command_line_is_that_of_the_playbooks(server: str, tmp_path: pathlib.Path) -> None:
    kubeconfig(tmp_path / "own", server)
    kubeconfig(tmp_path / "other", "http://127.0.0.1:9")
    typed = ("-e", f"rdma_kubeconfig={tmp_path}/own")
    assert inventory(tmp_path, f"kubeconfig: {tmp_path}/other\nselector: example.com/role=gpu").returncode != 0
    done = inventory(tmp_path, f"kubeconfig: {tmp_path}/other\nselector: example.com/role=gpu", *typed)
    assert done.returncode == 0, done.stderr


def test_playbooks_get_the_absolute_path_of_a_relative_kubeconfig(server: str, tmp_path: pathlib.Path) -> None:
    kubeconfig(tmp_path / "own", server)
    done = inventory(tmp_path, "kubeconfig: own\nselector: example.com/role=gpu")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout, object_hook=lambda item: item.get("__ansible_unsafe", item))
    hosts = listed["_meta"]["hostvars"]
    assert [host["rdma_kubeconfig"] for host in hosts.values()] == [str(tmp_path / "own")] * 3


def test_an_api_server_that_is_away_is_named(tmp_path: pathlib.Path) -> None:
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    done = inventory(tmp_path, f"kubeconfig: {config}")
    assert done.returncode != 0 and "the API server did not respond:" in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize(
    ("labels", "image", "os"),
    [
        ({}, "Bottlerocket OS 1.20.3 (aws-k8s-1.29)", "Bottlerocket OS"),
        ({}, "Flatcar Container Linux by Kinvolk 3815.2.0 (Oklo)", "Flatcar Container Linux by Kinvolk"),
        ({}, "", None),
        ({"feature_node_kubernetes_io__system-os_release_ID": "rhcos"}, "x", "x"),
    ],
)
def test_operating_systems(labels: dict[str, typing.Any], image: str, os: typing.Optional[str]) -> None:
    assert inventory_node(node("n", image, **labels)).groups.get("os") == os


def test_feature_discovery_tells_the_version_as_well() -> None:
    discovered = node("n", "Ubuntu 24.04")
    prefix = "feature.node.kubernetes.io/system-os_release."
    discovered["metadata"]["labels"] = {f"{prefix}ID": "ubuntu", f"{prefix}VERSION_ID": "24.04"}
    assert inventory_node(discovered).groups["os"] == "ubuntu-24.04"
