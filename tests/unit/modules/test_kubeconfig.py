# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubeconfigs that do not lead to an API server that lets us in: each a message with the file and the next step, never
a traceback, no secret in it."""

from __future__ import annotations

import http.server
import importlib
import json
import pathlib
import ssl
import threading
import typing

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from lab.pki import Pki

TOKEN = "token-that-nobody-may-see"


def failure(capsys: pytest.CaptureFixture[str], **options: typing.Any) -> str:
    """What sriov_operator_info says of it."""
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.sriov_operator_info")
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        module.main()
    result = json.loads(capsys.readouterr().out)
    assert ended.value.code == 1 and result["failed"]
    assert "exception" not in result
    assert TOKEN not in json.dumps(result)
    return str(result["msg"])


class Server:
    """Answers everything with one HTTP status."""

    def __init__(self, code: int, message: str, context: typing.Optional[ssl.SSLContext] = None) -> None:
        body = json.dumps(
            {"kind": "Status", "status": "Failure", "reason": "x", "message": message, "code": code}
        ).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: typing.Any) -> None:
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def kubeconfig(path: pathlib.Path, server: str, **cluster: str) -> str:
    config = {
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the file does not exist"),
        (b"", "the file is empty"),
        (b"just words", "the file contains other data"),
        (b"- a", "the file contains other data"),
        (b"kind: Pod", "the file contains other data"),
        (f"users: [{{user: {{token: {TOKEN}}}}}\nx: ]".encode(), "is not valid YAML, line 2"),
        (b"\x00\xff\xfe", "the file is not UTF-8 text"),
        (b"kind: Config\nclusters: []\nusers: []\ncontexts: []\n", "current-context"),
    ],
)
def test_a_file_that_is_no_kubeconfig(
    content: typing.Optional[bytes], said: str, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "mine.conf"
    if content is not None:
        path.write_bytes(content)
    message = failure(capsys, kubeconfig=str(path))
    assert f"kubeconfig mine.conf in {tmp_path} (from rdma_kubeconfig or the option kubeconfig): " in message
    assert said in message
    # no server was asked, so nothing is said of one
    missing = content is None
    assert ("Set the path of an existing kubeconfig: -e rdma_kubeconfig=FILE" in message) == missing, message
    assert ("Correct the kubeconfig or the variables K8S_AUTH_*" in message) != missing, message
    assert "check that the API server runs" not in message


def test_a_relative_path_is_read_from_the_folder_of_the_playbook(capsys: pytest.CaptureFixture[str]) -> None:
    message = failure(capsys, kubeconfig="mine.conf")
    assert "-e rdma_kubeconfig=FILE, with its absolute path. Modules read a relative one from the folder of" in message


def test_a_folder_is_no_kubeconfig(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    assert "the file could not be read: Is a directory" in failure(capsys, kubeconfig=str(tmp_path))


def test_no_kubeconfig_at_all_names_where_it_was_looked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("K8S_AUTH_KUBECONFIG", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"kubeconfig config in {tmp_path}/.kube (the default): the file does not exist" in failure(capsys)
    for name in ("KUBECONFIG", "K8S_AUTH_KUBECONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "gone"))
        assert f"the file does not exist. Set the path of an existing kubeconfig: export {name}=FILE" in failure(capsys)


@pytest.mark.parametrize(
    ("code", "said", "remedy"),
    [
        (401, "Unauthorized", "is wrong or has expired. Renew it"),
        (403, 'User "x" cannot get path "/version"', "describe clusterrolebinding system:public-info-viewer"),
        (403, 'User "x" cannot list resource "nodes" in API group ""', "run kubectl apply -f docs/rbac/look.yml. The"),
        (
            403,
            'User "x" cannot create resource "pods" in API group "" in the namespace "n"',
            "docs/rbac/README.md lists",
        ),
        (
            403,
            'User "x" cannot create resource "pods" in API group "" in the namespace "linerate-measure"',
            "run kubectl apply -f docs/rbac/measuring.yml. The file gives the rights to the group",
        ),
        (503, "the server is shutting down", ""),
    ],
)
def test_a_server_that_does_not_let_us_in(
    code: int, said: str, remedy: str, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    message = failure(capsys, kubeconfig=kubeconfig(tmp_path / "k", Server(code, said).url))
    assert message.startswith(f"kubeconfig k in {tmp_path} (from rdma_kubeconfig or the option kubeconfig): {said}")
    assert remedy in message


def test_nobody_listens(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    message = failure(capsys, kubeconfig=kubeconfig(tmp_path / "k", "http://127.0.0.1:1"))
    assert "the API server did not respond: connection refused by http://127.0.0.1:1. " in message
    assert "Check the kubeconfig (or the variables K8S_AUTH_*), and check that the API server runs" in message


def test_the_server_of_another_cluster(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    theirs = Pki(tmp_path / "theirs", "")
    theirs.identity("server", "server", hosts=["127.0.0.1"])
    Pki(tmp_path / "ours", "")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(theirs.path("server.crt"), theirs.path("server.key"))
    server = Server(401, "Unauthorized", context)
    message = failure(
        capsys,
        kubeconfig=kubeconfig(tmp_path / "k", server.url, **{"certificate-authority": str(tmp_path / "ours/ca.crt")}),
    )
    assert "The kubeconfig does not trust this server" in message


def contexts(path: pathlib.Path, *names: str, current: str = "") -> str:
    """A kubeconfig of these contexts."""
    entries = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in names]
    data = {"kind": "Config", "contexts": entries, "clusters": [], "users": [{"name": "u", "user": {"token": TOKEN}}]}
    path.write_text(yaml.safe_dump({**data, **({"current-context": current} if current else {})}))
    return str(path)


def test_a_context_that_is_not_there_is_told_with_those_that_are(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = contexts(tmp_path / "config", "lab", "prod", current="gone")
    assert "has no context 'gone', which its current-context names; its contexts are lab, prod" in failure(
        capsys, kubeconfig=path
    )
    named = failure(capsys, kubeconfig=path, context="other")
    assert "has no context 'other', which the option context names; its contexts are lab, prod" in named
    monkeypatch.setenv("K8S_AUTH_CONTEXT", "typo")
    told = failure(capsys, kubeconfig=path)
    assert "has no context 'typo', which K8S_AUTH_CONTEXT names; its contexts are lab, prod" in told
    assert "unset K8S_AUTH_CONTEXT" in told and "export K8S_AUTH_CONTEXT=lab" in told
    # of several files all contexts count
    two = contexts(tmp_path / "second", "typo")
    assert "no context" not in failure(capsys, kubeconfig=f"{path}:{two}")
    assert "it has none" in failure(capsys, kubeconfig=contexts(tmp_path / "empty"))
