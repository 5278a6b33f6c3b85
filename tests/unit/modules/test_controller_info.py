# SPDX-License-Identifier: GPL-3.0-or-later

"""What controller_info sees: each thing that is not there is an answer, and the module never fails for it."""

from __future__ import annotations

import http.server
import importlib
import json
import os
import pathlib
import socket
import threading
import time
import typing

import kubernetes.client
import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as theirs
from ansible_collections.linerate.rdma.plugins.module_utils._ansible import cluster, controller
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import find_credentials
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError

TOKEN = "sha256~token-that-nobody-may-see"
FABRIC = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9"},
    "virtual_functions": 4,
    "resource_name": "igb",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}
ANSWERS = {
    "/version": {"kind": "Version", "gitVersion": "v1.34.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
}


@pytest.fixture(autouse=True)
def nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no API server."""
    for name in list(os.environ):
        if name.startswith(("K8S_AUTH_", "KUBE")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    theirs._pool.clear()
    kubernetes.client.Configuration.set_default(None)


def look(capsys: pytest.CaptureFixture[str], **options: typing.Any) -> dict[str, typing.Any]:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.controller_info")
    with patch_module_args({"fabrics": [FABRIC], "in_site": True, **options}), pytest.raises(SystemExit) as ended:
        module.main()
    said = capsys.readouterr().out
    assert TOKEN not in said
    result = json.loads(said)
    assert (ended.value.code, result["changed"]) == (0, False)
    found: dict[str, typing.Any] = result["controller"]
    return found


class Reviewer(http.server.BaseHTTPRequestHandler):
    """An API server that allows nothing but to list nodes; or that does not say."""

    silent = False

    def do_GET(self) -> None:
        self.answer(ANSWERS.get(self.path, {"kind": "APIResourceList", "resources": []}))

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["spec"]["resourceAttributes"]
        self.answer(
            {"status": {} if self.silent else {"allowed": (asked["verb"], asked["resource"]) == ("list", "nodes")}}
        )

    def answer(self, data: typing.Any) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: typing.Any) -> None:
        """Says nothing."""


def serve(handler: type[Reviewer]) -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_what_awx_sets_is_enough(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve(Reviewer)
    for name, value in (("HOST", url), ("API_KEY", TOKEN), ("VERIFY_SSL", "False")):
        monkeypatch.setenv(f"K8S_AUTH_{name}", value)
    seen = look(capsys)
    assert (seen["where"], seen["named"], seen["server"], seen["error"], seen["helm"]) == (
        f"API server {url}",
        True,
        "v1.34.4",
        "",
        None,
    )
    denied = [item["text"] for item in seen["rights"]["denied"]]
    assert seen["rights"]["asked"] == len(denied) + 1 > 2 and "list pods" in denied and "list nodes" not in denied
    # of a wrong intent no rights are known; the frame says what is wrong in it
    assert look(capsys, fabrics=[{"name": 5}])["rights"] is None


def test_an_api_server_that_does_not_say_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    class Silent(Reviewer):
        silent = True

    seen = look(capsys, host=serve(Silent), api_key=TOKEN)
    assert seen["rights"] is None and "the response has no status.allowed" in seen["rights_error"]


def test_nothing_that_is_missing_fails_the_module(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    seen = look(capsys)
    assert (seen["named"], seen["where"], seen["server"], seen["error"]) == (
        False,
        f"kubeconfig config in {tmp_path}/.kube (the default)",
        "",
        "",
    )
    seen = look(capsys, kubeconfig=str(tmp_path / "none"))
    said = f"kubeconfig none in {tmp_path} (from rdma_kubeconfig or the option kubeconfig): the file does not exist"
    assert seen["named"] and seen["error"] == said and "export" not in seen["remedy"]
    assert seen["remedy"] == "Set the path of an existing kubeconfig: -e rdma_kubeconfig=FILE"
    seen = look(capsys, host="http://127.0.0.1:1", api_key=TOKEN)
    assert "API server http://127.0.0.1:1: the API server did not respond: " in seen["error"]
    monkeypatch.setattr(cluster, "HAS_KUBERNETES", False)
    seen = look(capsys, host="http://127.0.0.1:1", api_key=TOKEN)
    assert (seen["library"], seen["where"], seen["error"]) == ("", "", "") and seen["python"]


def test_an_api_server_that_never_answers_has_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:

        class Module:
            params: typing.ClassVar[dict[str, typing.Any]] = {
                "host": f"http://127.0.0.1:{silent.getsockname()[1]}",
                "api_key": TOKEN,
            }
            no_log_values: typing.ClassVar[set[str]] = set()

        begin = time.monotonic()
        seen = controller.inspect_controller(Module(), None, None, (), limit=0.2)
        assert "the API server did not respond within 0.2 s" in seen.error
        assert time.monotonic() - begin < 30


def test_no_client_waits_without_end_for_a_server_that_takes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inventory, the modules and the connection all make theirs there."""
    monkeypatch.setattr(cluster, "FIRST_ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {"host": f"http://127.0.0.1:{silent.getsockname()[1]}", "api_key": TOKEN}
        begin = time.monotonic()
        with pytest.raises(
            ApiError, match=r"the API server did not respond within 0\.2 s.*check that the API server runs"
        ):
            cluster.make_client(options, find_credentials(options, {}))
        assert time.monotonic() - begin < 30


def test_helm_is_asked_for_its_version(tmp_path: pathlib.Path) -> None:
    for script, version, error in (
        ("echo v3.19.4+g7cfb6e4", "3.19.4", ""),
        ("echo v4.0.0", "4.0.0", ""),
        ("echo 'WARNING: Kubernetes configuration file is group-readable' >&2; echo v3.8.0+gd141386", "3.8.0", ""),
        ("echo 'Client: v2.17.0+ga690bad'", "2.17.0", ""),
        ("echo no", "", "the program does not report its version"),
        ("echo v3.19.4; exit 3", "", "helm version --short ended with exit code 3: v3.19.4"),
    ):
        path = tmp_path / "helm"
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        seen = controller.find_helm(str(path))
        assert (seen.binary, seen.version, seen.error) == (str(path), version, error)
    assert (
        controller.find_helm("helm-that-is-not-there").error
        == "the program does not exist in the PATH of the controller"
    )
    assert controller.find_helm(str(tmp_path / "none")).error == "the program does not exist"
