# SPDX-License-Identifier: GPL-3.0-or-later

"""Another cluster than that of the run: the context of the kubeconfig is switched during a run, and a new run begins in
the report folder of another cluster."""

from __future__ import annotations

import importlib
import pathlib
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import start_run
from ansible_collections.linerate.rdma.plugins.module_utils._app.same_cluster import OtherClusterError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.plugin_utils._access import access_of, read_cluster_uid_of
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import Caller
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma"
STAGE = importlib.import_module("ansible_collections.linerate.rdma.plugins.action.stage_begin")
OPTIONS: dict[str, typing.Any] = {"fabrics": [], "waivers": None, "cluster": {}}


class Api(FakeApi):
    def __init__(self, uid: str) -> None:
        super().__init__()
        self.serve("Lease", [], "default")
        self.serve("Namespace", [])
        self.install(uid)

    def install(self, uid: str) -> None:
        """Make it the API server of the cluster with this uid."""
        self.put("Namespace", {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}})

    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)


class Clusters:
    """Two clusters in one kubeconfig, and a run that began with the first one."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.first, self.second = folder, Api("uid-a"), Api("uid-b")
        self.kubeconfig = folder / "kubeconfig"

    def use(self, context: str) -> None:
        """Select a context in another terminal: ``a`` and ``b``, or ``a2``, another URL of the first cluster."""
        urls = {"a": self.first.url, "b": self.second.url, "a2": self.first.url.replace("127.0.0.1", "localhost")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": name, "cluster": {"server": f"{url}/"}} for name, url in urls.items()],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in urls],
            "users": [{"name": "me", "user": {"token": "t"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")

    def begin(self, uid: str = "") -> str:
        """Begin a run with the first cluster, and return its id.

        :param uid: uid of its namespace kube-system, if not as read from the cluster
        """
        self.use("a")
        variables = {"rdma_kubeconfig": str(self.kubeconfig)}
        read = read_cluster_uid_of(variables, lambda value: value)
        assert read == "uid-a"
        access = access_of(variables, lambda value: value)
        start = RunStart("", "", False, ("n0",), access=access, cluster_uid=uid or read)
        return start_run({**OPTIONS, "report_dir": str(self.folder)}, start, "2.19").run

    def caller(self, run: str) -> typing.Any:
        of_run = {"facts_dir": str(self.folder), "run": run, "holder": "", "kubeconfig": str(self.kubeconfig)}
        return Caller("cluster_lease", {**dict.fromkeys(make_cluster_spec()), **of_run}, False)

    def hold(self, run: str) -> None:
        caller = self.caller(run)
        with hold_lease(caller, connect(caller)):
            pass


@pytest.fixture
def clusters(tmp_path: pathlib.Path) -> typing.Iterator[Clusters]:
    made = Clusters(tmp_path)
    for one in (made.first, made.second):
        one.start()
    yield made
    for one in (made.first, made.second):
        one.stop()


def test_switched_context_before_the_first_lease_ends_the_run(clusters: Clusters) -> None:
    run = clusters.begin()
    clusters.use("b")
    with pytest.raises(
        OtherClusterError, match=f"{clusters.first.url}/?, and now it would use .*{clusters.second.url}"
    ):
        clusters.hold(run)
    # a module that only reads has no facts of the other cluster either
    with pytest.raises(OtherClusterError) as raised:
        connect(clusters.caller(run))
    assert "kubectl config view --minify --raw" in raised.value.remedy
    assert clusters.first.object(LEASE) is None and clusters.second.object(LEASE) is None


def test_other_cluster_with_the_same_address_ends_the_run_at_the_first_lease(clusters: Clusters) -> None:
    run = clusters.begin()
    clusters.first.install("uid-b")
    with pytest.raises(OtherClusterError, match="the uid uid-a, and now it has the uid uid-b"):
        clusters.hold(run)
    assert clusters.first.object(LEASE) is None


def test_another_address_of_the_same_cluster_is_used(clusters: Clusters) -> None:
    run = clusters.begin()
    clusters.use("a2")
    clusters.hold(run)
    assert clusters.first.object(LEASE) is not None


def test_run_on_its_own_cluster_asks_for_no_uid_while_it_holds_the_lease(clusters: Clusters) -> None:
    run = clusters.begin()
    clusters.hold(run)
    asked = clusters.first.requests["list /api/v1/namespaces/kube-system"]
    before = sum(clusters.first.requests.values())
    clusters.hold(run)
    assert clusters.first.requests["list /api/v1/namespaces/kube-system"] == asked
    assert sum(clusters.first.requests.values()) > before


def begin_stage(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, access: str, uid: str) -> RunStart:
    """Begin a new run of the stages, and return its start record."""
    monkeypatch.setattr(STAGE, "access_of", lambda *_arguments: access)
    monkeypatch.setattr(STAGE, "read_cluster_uid_of", lambda *_arguments: uid)
    plugin = object.__new__(STAGE.ActionModule)
    plugin._task = types.SimpleNamespace(check_mode=False)
    plugin._templar = types.SimpleNamespace(template=lambda value: value)
    plugin._loader = None
    options = {**OPTIONS, "run": "", "report_dir": str(folder), "resume_from": ""}
    start = plugin._open_run_folder(options, {"groups": {"rdma_nodes": ["n0"]}}, False).start()
    assert isinstance(start, RunStart)
    return start


def test_new_run_on_another_cluster_than_its_report_folder_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = "context {0}, API server https://{0}:6443"
    first = begin_stage(tmp_path, monkeypatch, access.format("a"), "uid-a")
    assert first.cluster_uid == "uid-a"
    # by the uid, also with the same URL; by the URL, if the uid cannot be read
    for context, uid in (("b", "uid-b"), ("a", "uid-b"), ("b", "")):
        with pytest.raises(OtherClusterError, match=r"than this run: .*Nothing was started") as raised:
            begin_stage(tmp_path, monkeypatch, access.format(context), uid)
        for way in ("kubectl config use-context", "rdma_kubeconfig", "rdma_report_dir", f"mv {tmp_path} "):
            assert way in raised.value.remedy
    assert "this run uses API server https://b:6443" in str(raised.value)
    for context, uid in (("b", "uid-a"), ("b", "")):
        assert begin_stage(tmp_path, monkeypatch, access.format(context), uid).run != first.run
    # nodes by ssh, without a cluster
    assert begin_stage(tmp_path, monkeypatch, "", "").access == ""
