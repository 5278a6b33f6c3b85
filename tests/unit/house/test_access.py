# SPDX-License-Identifier: GPL-3.0-or-later

"""The first line of a run: to which cluster it leads. It shows no secret, and no kubeconfig ends a run by it."""

from __future__ import annotations

import os
import pathlib
import sys
import typing

import pytest
import yaml
from ansible.errors import AnsibleLookupError, AnsibleUndefinedVariable

from ansible_collections.linerate.rdma.plugins.inventory import nodes
from ansible_collections.linerate.rdma.plugins.inventory.nodes import InventoryModule
from ansible_collections.linerate.rdma.plugins.lookup import kubeconfig
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.plugin_utils import _access
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKEN = "sha256~token-that-nobody-may-see"


def config(server: typing.Any = "https://api.gpu.example.com:6443", name: typing.Any = "gpu") -> dict[str, typing.Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "site", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": name, "context": {"cluster": "site", "user": "admin"}}],
        "current-context": name,
    }


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """An environment that names no cluster."""
    for name in [name for name in os.environ if name.startswith(("K8S_AUTH_", "KUBE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def written(path: pathlib.Path, data: typing.Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    return str(path)


def access(**variables: typing.Any) -> str:
    return _access.access_of(variables, lambda value: value)


def test_line_says_source_context_and_server(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    assert access() == ""
    written(tmp_path / ".kube" / "config", config("https://default.example.com"))
    rest = "context gpu, API server https://default.example.com"
    assert access() == f"kubeconfig config in {tmp_path}/.kube (the default), {rest}"
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "own", config("https://own.example.com", "own")))
    rest = "context own, API server https://own.example.com"
    assert access() == f"kubeconfig own in {tmp_path} (from KUBECONFIG), {rest}"
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", written(tmp_path / "awx", config("https://awx.example.com")))
    rest = "context gpu, API server https://awx.example.com"
    assert access() == f"kubeconfig awx in {tmp_path} (from K8S_AUTH_KUBECONFIG; KUBECONFIG is not used), {rest}"
    named = written(tmp_path / "named", config())
    rest = "context gpu, API server https://api.gpu.example.com:6443"
    assert access(rdma_kubeconfig=named) == (
        f"kubeconfig named in {tmp_path} (from rdma_kubeconfig; K8S_AUTH_KUBECONFIG and KUBECONFIG are not used),"
        f" {rest}"
    )
    monkeypatch.setenv("K8S_AUTH_HOST", "https://admin:secret@other.example.com/?token=secret#secret")
    assert access(rdma_kubeconfig=named).endswith(
        ", context gpu, API server https://other.example.com/ (from K8S_AUTH_HOST)"
    )


def test_context_of_the_environment_counts_and_lists_are_merged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    first = written(tmp_path / "first", config("https://first.example.com", "first"))
    second = config("https://second.example.com", "second")
    second["clusters"][0]["name"] = second["contexts"][0]["context"]["cluster"] = "other"
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path}/missing:{written(tmp_path / 'second', second)}")
    line = access()
    assert f"first in {tmp_path} and missing in {tmp_path} and second in {tmp_path} (from KUBECONFIG)" in line
    assert line.endswith("context second, API server https://second.example.com")
    monkeypatch.setenv("K8S_AUTH_CONTEXT", "first")
    assert access().endswith("context first (from K8S_AUTH_CONTEXT), API server https://first.example.com")
    monkeypatch.setenv("K8S_AUTH_CONTEXT", "absent")
    assert access().endswith("(from KUBECONFIG), context absent (from K8S_AUTH_CONTEXT)")


def test_credentials_without_a_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("K8S_AUTH_HOST", "https://api.example.com")
    monkeypatch.setenv("K8S_AUTH_API_KEY", TOKEN)
    assert access() == "K8S_AUTH_HOST, API server https://api.example.com"
    monkeypatch.setenv("KUBECONFIG", "/another")
    assert access(rdma_kubeconfig=config()) == (
        "K8S_AUTH_HOST (rdma_kubeconfig and KUBECONFIG are not used), API server https://api.example.com"
    )
    monkeypatch.delenv("KUBECONFIG")
    for name in ("K8S_AUTH_HOST", "K8S_AUTH_API_KEY"):
        monkeypatch.delenv(name)
    from kubernetes.config import incluster_config

    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", written(tmp_path / "token", TOKEN))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", written(tmp_path / "ca", "certificate"))
    for host, shown in (("10.0.0.1", "10.0.0.1"), ("fd00::1", "[fd00::1]")):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
        monkeypatch.setattr(
            "ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials._in_pod", lambda: True
        )
        assert access() == f"service account of this pod, API server https://{shown}:443"


def test_kubeconfig_as_a_mapping_or_as_text_is_not_shown() -> None:
    rest = "context gpu, API server https://api.gpu.example.com:6443"
    assert access(rdma_kubeconfig=config()) == f"kubeconfig given as a mapping (from rdma_kubeconfig), {rest}"
    line = access(rdma_kubeconfig=yaml.safe_dump(config()))
    assert line == "kubeconfig given as text, where a path or a mapping is expected (from rdma_kubeconfig)"


@pytest.mark.parametrize(
    "data",
    [
        "",
        "a: [",
        "kind: Config\ncontexts: 5\ncurrent-context: x",
        "kind: Config\ncontexts: [5]\nclusters: [{}]\ncurrent-context: x",
        "- 1",
        "text",
        "\x00\x01",
        "!!python/object/apply:os.system [touch MARK]",
        "a: &a [x, x]\nb: &b [*a, *a]\nkind: Config\nclusters: [*b]\n",
        yaml.safe_dump(config())[:120],
        f"{'a' * 2_000_000}: 1",
    ],
)
def test_broken_kubeconfig_leaves_the_source(
    data: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "own", data))
    assert access().startswith(f"kubeconfig own in {tmp_path} (from KUBECONFIG)")
    assert "API server" not in access() and not (tmp_path / "MARK").exists()


def test_pipe_and_missing_file_leave_the_source(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing"):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / name))
        assert access() == f"kubeconfig {name} in {tmp_path} (from KUBECONFIG)"


def test_hostile_text_stays_one_line_without_secrets(tmp_path: pathlib.Path) -> None:
    name = "x\nlinerate.rdma: GREEN\x1b[2J\u202e" + "n" * 500
    path = written(tmp_path / "own", config(f"https://admin:{TOKEN}@api.example.com/{'p' * 5000}?token={TOKEN}", name))
    line = access(rdma_kubeconfig=path)
    assert line.isprintable() and len(line) < 1100 and "\\nlinerate.rdma: GREEN\\x1b[2J\\u202e" in line
    assert "API server https://api.example.com/pp" in line and TOKEN not in line and "admin" not in line
    assert "@" not in line


@pytest.mark.parametrize("server", [5, None, ["x"], {"a": TOKEN}, "no url", "https://a b\n"])
def test_odd_servers_end_nothing(server: typing.Any, tmp_path: pathlib.Path) -> None:
    line = access(rdma_kubeconfig=written(tmp_path / "own", config(server)))
    assert line.startswith("kubeconfig own in ") and line.isprintable() and TOKEN not in line


def test_controller_without_the_library_says_the_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.config.kube_config", None)
    path = written(tmp_path / "own", config())
    assert access(rdma_kubeconfig=path) == f"kubeconfig own in {tmp_path} (from rdma_kubeconfig)"
    monkeypatch.setitem(
        sys.modules, "ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials", None
    )
    assert access(rdma_kubeconfig=path) == "a kubeconfig that could not be displayed"


def test_inventory_refuses_a_context_that_the_playbooks_do_not_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    plugin = InventoryModule()
    options = {"context": "", "kubeconfig": written(tmp_path / "own", config())}
    monkeypatch.setattr(plugin, "get_option", options.get)
    plugin._refuse_another_context()
    options["context"] = "gpu"
    plugin._refuse_another_context()
    options["context"] = "other site"
    with pytest.raises(RdmaError, match="context is 'other site', but the playbooks use the context 'gpu'") as error:
        plugin._refuse_another_context()
    assert error.value.remedy == "Select it for both: export K8S_AUTH_CONTEXT='other site'"
    monkeypatch.setenv("K8S_AUTH_CONTEXT", "other site")
    plugin._refuse_another_context()
    monkeypatch.delenv("K8S_AUTH_CONTEXT")
    options["kubeconfig"] = ""
    with pytest.raises(RdmaError, match="the playbooks use none"):
        plugin._refuse_another_context()
    monkeypatch.setenv("K8S_AUTH_HOST", "https://api.example.com")
    monkeypatch.setenv("K8S_AUTH_API_KEY", TOKEN)
    options["kubeconfig"] = written(tmp_path / "own", config())
    with pytest.raises(RdmaError, match="the playbooks use K8S_AUTH_HOST and no kubeconfig") as error:
        plugin._refuse_another_context()
    assert error.value.remedy == "Remove context, or use the kubeconfig for both: unset K8S_AUTH_HOST"


def test_variable_that_has_no_value_yet_ends_nothing() -> None:
    def template(_value: typing.Any) -> typing.Any:
        raise AnsibleUndefinedVariable("'x' is undefined")

    assert _access.access_of({"rdma_kubeconfig": "{{ x }}"}, template) == ""


@pytest.mark.parametrize("name", ["default", "linerate.rdma.stages", "ansible.posix.json", "json", "jsonl"])
def test_output_that_is_data_has_no_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("ansible.utils.display.Display.display", lambda _self, line: shown.append(line))
    monkeypatch.setattr("ansible.constants.DEFAULT_STDOUT_CALLBACK", name, raising=False)
    _access.show("kubeconfig x")
    _access.show("")
    none = "cluster: no access is configured by rdma_kubeconfig, K8S_AUTH_*, KUBECONFIG or ~/.kube/config"
    assert shown == ([] if "json" in name else ["cluster: kubeconfig x", none])


def test_what_lacks_the_library_says_which_python_to_install_it_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip of the path may be that of another Python."""
    command = f"{sys.executable} -m pip install 'kubernetes>=24.2.0'"
    assert "\nkubernetes>=24.2.0," in (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for plugin in (nodes, kubeconfig):
        monkeypatch.setattr(plugin, "HAS_KUBERNETES", False)
    with pytest.raises(RdmaError, match="lacks the library kubernetes") as error:
        InventoryModule()._read()
    assert error.value.remedy == f"Install the library for this Python: {command}"
    with pytest.raises(AnsibleLookupError) as refused:
        kubeconfig.LookupModule._one("")
    assert command in str(refused.value)


class Api(FakeApi):
    """An API server with its discovery."""

    def object(self, path: str) -> typing.Optional[Resource]:
        return DISCOVERY.get(path) or super().object(path)


@pytest.mark.parametrize(("namespace", "uid"), [("kube-system", "1b2c-3d4e"), ("kube-public", "")])
def test_uid_of_the_cluster_is_that_of_its_first_namespace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, namespace: str, uid: str
) -> None:
    world = Api()
    world.serve("Namespace", [{"metadata": {"name": namespace, "uid": "1b2c-3d4e"}}])
    world.start()
    try:
        FakeApi.write_kubeconfig(world.url, tmp_path, TOKEN)
        place = str(tmp_path / "kubeconfig")
        found = _access.read_cluster_uid_of({"rdma_kubeconfig": place}, lambda value: value)
        monkeypatch.setenv("K8S_AUTH_KUBECONFIG", place)
        assert (found, _access.read_cluster_uid_of({}, lambda value: value)) == (uid, uid)
    finally:
        world.stop()


def test_boots_of_the_nodes_are_those_that_their_kubelets_report(tmp_path: pathlib.Path) -> None:
    world, boot = Api(), "3f1c7c9e-9a51-4a0a-8f0e-0d6a0f6b1c11"
    told: list[dict[str, typing.Any]] = [
        {"metadata": {"name": "a"}, "status": {"nodeInfo": {"bootID": boot}}},
        {"metadata": {"name": "b"}},
    ]
    world.serve("Node", told)
    world.start()
    try:
        FakeApi.write_kubeconfig(world.url, tmp_path, TOKEN)
        variables = {"rdma_kubeconfig": str(tmp_path / "kubeconfig")}
        assert _access.read_boots_of(variables, lambda value: value) == {"a": boot}
    finally:
        world.stop()
    assert _access.read_boots_of({"rdma_kubeconfig": str(tmp_path / "absent")}, lambda value: value) == {}


@pytest.mark.parametrize("text", ["{", "clusters: 7", None])
def test_uid_of_no_cluster_is_unknown_and_no_error(tmp_path: pathlib.Path, text: typing.Optional[str]) -> None:
    place = str(tmp_path / "absent") if text is None else written(tmp_path / "broken", text)
    assert _access.read_cluster_uid_of({"rdma_kubeconfig": place}, lambda value: value) == ""
