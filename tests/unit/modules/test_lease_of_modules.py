# SPDX-License-Identifier: GPL-3.0-or-later

"""Where modules take the Lease: all of a run under one name, others under their own; none in check mode; and a second
run's pods are left alone."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import threading
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import BETWEEN, WORKING
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import process
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.fake_api import LeaseHolder

MODULES = "ansible_collections.linerate.rdma.plugins.modules"
HERE = process.read_identity(os.getpid())
# a process of this machine that is no more: no number is as large
GONE = "/".join((*HERE.split("/")[:2], str(2**22 + 1), "1"))


class Api(LeaseHolder):
    """A cluster that keeps what is made and what is deleted, and by whom the Lease was held then."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[typing.Any] = []
        self.pods = ["linerate-a"]
        self.after_delete: typing.Callable[[], None] = lambda: None

    def list(
        self, kind: str, namespace: str = "", selector: str = "", fields: str = "", most: int = 0, only: object = None
    ) -> Listing:
        metadata = {"namespace": "test", "uid": "u", "labels": {"linerate.rdma/run": "run-1"}}
        left = self.pods if kind == "Pod" and not self.done else ()
        return Listing(tuple({"kind": kind, "metadata": {"name": name, **metadata}} for name in left), "1")

    def pages(self, kind: str, namespace: str = "", selector: str = "") -> typing.Iterator[typing.Any]:
        yield from ()

    def serves(self, group: str) -> bool:
        return False

    def watch(self, kind: str, version: str, namespace: str = "", selector: str = "") -> typing.Iterator[typing.Any]:
        # nothing ever happens
        threading.Event().wait()
        yield {}

    def get(self, kind: str, namespace: str, name: str) -> None:
        raise AssertionError("nobody asks for one object")

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        only: typing.Optional[dict[str, str]] = None,
    ) -> bool:
        if kind == "Lease":
            return super().delete(kind, namespace, name, only=only)
        self.guard()
        self.done.append(
            (name, (self.lease or {}).get("spec", {}).get("holderIdentity", "").partition("@")[0], dry_run)
        )
        self.after_delete()
        return True


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    found = Api()
    for name in ("custom_resources", "cluster_lease", "sriov_sync"):
        monkeypatch.setattr(importlib.import_module(f"{MODULES}.{name}"), "connect", lambda given: found)
    # no test waits
    monkeypatch.setattr("ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease.WAIT", 0.0)
    return found


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> FactFolder:
    found = FactFolder(str(tmp_path), "run-2")
    found.begin(RunStart("run-2", "2026-01-02T03:04:05+00:00"))
    return found


def run(
    name: str, arguments: dict[str, typing.Any], capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, typing.Any]]:
    module = importlib.import_module(f"{MODULES}.{name}")
    with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
        module.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def of_run(folder: FactFolder, **rest: typing.Any) -> dict[str, typing.Any]:
    return {"facts_dir": folder.report_dir, "run": folder.run, "holder": HERE, **rest}


def held_by(api: Api, name: str, identity: str, seconds: int = WORKING) -> None:
    annotations = {"linerate.rdma/run": name, "linerate.rdma/process": identity, "linerate.rdma/host": "other"}
    spec = {"holderIdentity": f"{name}@other", "leaseDurationSeconds": seconds}
    api.lease = {"metadata": {"uid": "1", "resourceVersion": "1", "annotations": annotations}, "spec": spec}


PODS = {"state": "absent", "kinds": ["Pod"]}


def test_a_second_run_deletes_no_pod_of_the_first_one(
    api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    held_by(api, "run-1", process.read_identity(os.getppid()))
    code, result = run("custom_resources", of_run(folder, **PODS), capsys)
    assert (code, api.done) == (1, [])
    assert "run run-1 on host other" in result["msg"] and result["failure"]["kind"] == "LeaseHeld"
    assert "kubectl delete lease linerate-rdma -n default" in result["failure"]["remedy"]
    fact = folder.read("applied")
    assert fact is not None and fact.error == result["msg"], "the stage must learn of it"


@pytest.mark.parametrize("taken", [True, False], ids=["taken by another run", "deleted"])
def test_a_lease_that_is_lost_between_two_writes_stops_the_second(
    api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str], taken: bool
) -> None:
    """At once, and not at the next renewal: the second pod may be one of the run that has the Lease now."""

    def lose() -> None:
        api.lease = None
        if taken:
            held_by(api, "run-3", "boot2/ns/77/100")

    api.pods, api.after_delete = ["linerate-a", "linerate-b"], lose
    code, result = run("custom_resources", of_run(folder, **PODS), capsys)
    assert (code, api.done) == (1, [("linerate-a", "run-2", False)])
    assert result["failure"]["kind"] == "LeaseLost" and ("run-3" in result["msg"]) is taken


def test_pods_of_a_run_that_is_dead_go(api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]) -> None:
    held_by(api, "run-1", GONE, BETWEEN)
    code, _result = run("custom_resources", of_run(folder, **PODS), capsys)
    assert (code, api.done) == (0, [("linerate-a", "run-2", False)])


def test_a_run_keeps_it_from_module_to_module_and_gives_it_back(
    api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("cluster_lease", of_run(folder), capsys)[1]["held"] is True
    assert api.lease is not None
    assert api.lease["spec"]["leaseDurationSeconds"] == BETWEEN
    run("custom_resources", of_run(folder, **PODS), capsys)
    assert {name.partition("@")[0] for name in api.holders} == {"run-2"} and api.lease is not None
    note = os.path.join(folder.report_dir, "lease.json")
    assert os.path.exists(note)
    code, result = run("cluster_lease", of_run(folder, state="released"), capsys)
    assert (code, result["held"], result["changed"], os.path.exists(note)) == (0, False, False, False)
    assert typing.cast(typing.Any, api.lease) is None


def test_a_run_that_lost_it_between_two_modules_stops(
    api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    run("cluster_lease", of_run(folder), capsys)
    held_by(api, "run-3", GONE)
    code, result = run("custom_resources", of_run(folder, **PODS), capsys)
    assert (code, result["failure"]["kind"], api.done) == (1, "LeaseLost", [])
    # what it no longer has it does not give back
    assert run("cluster_lease", of_run(folder, state="released"), capsys)[0] == 0
    assert api.lease is not None
    assert api.lease["spec"]["holderIdentity"] == "run-3@other"


def test_a_run_that_goes_on_takes_it_again_at_once(
    api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    run("cluster_lease", of_run(folder, holder=GONE), capsys)
    assert run("cluster_lease", of_run(folder), capsys)[0] == 0
    assert api.lease is not None
    assert api.lease["metadata"]["annotations"]["linerate.rdma/process"] == HERE
    # but not beside itself
    held_by(api, folder.run, HERE)
    other = HERE.replace(HERE.split("/")[3], "1")
    code, result = run("cluster_lease", of_run(folder, holder=other), capsys)
    assert (code, result["failure"]["kind"]) == (1, "LeaseHeld")


def test_check_mode_holds_nothing(api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]) -> None:
    for name, arguments in (
        ("cluster_lease", {}),
        ("cluster_lease", {"state": "released"}),
        ("custom_resources", PODS),
    ):
        code, _result = run(name, of_run(folder, **arguments, _ansible_check_mode=True), capsys)
        assert code == 0
    assert (api.lease, api.holders, [dry for _name, _holder, dry in api.done]) == (None, [], [True])
    assert not os.path.exists(os.path.join(folder.report_dir, "lease.json"))


def test_a_module_outside_of_a_run_holds_it_while_it_works(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    code, _result = run("custom_resources", PODS, capsys)
    assert (code, api.lease, len(api.done)) == (0, None, 1)
    assert api.done[0][1] == api.holders[0].partition("@")[0] != ""
    api.done.clear()
    held_by(api, "run-1", HERE)
    code, result = run("custom_resources", PODS, capsys)
    assert (code, result["failure"]["kind"], api.done) == (1, "LeaseHeld", [])


def test_jobs_wait_for_no_run(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    held_by(api, "run-1", HERE)
    assert (
        run(
            "custom_resources",
            {"state": "absent", "kinds": ["PyTorchJob", "TrainJob", "TrainingRuntime", "ConfigMap"]},
            capsys,
        )[0]
        == 0
    )
    assert api.holders == []


def test_a_wait_keeps_it_and_takes_none(api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str]) -> None:
    wait = {"targets": [], "wait_seconds": 1}
    assert run("sriov_sync", of_run(folder, **wait), capsys)[0] == 0
    assert api.holders == []
    run("cluster_lease", of_run(folder), capsys)
    api.holders.clear()
    assert run("sriov_sync", of_run(folder, **wait), capsys)[0] == 0
    assert api.lease is not None
    assert api.holders and api.lease["spec"]["leaseDurationSeconds"] == BETWEEN


def test_a_report_of_a_run_that_held_nothing_asks_no_server(
    folder: FactFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(module: typing.Any) -> None:
        raise AssertionError("no cluster is needed")

    monkeypatch.setattr(importlib.import_module(f"{MODULES}.cluster_lease"), "connect", connect)
    assert run("cluster_lease", of_run(folder, state="released"), capsys)[0] == 0


def test_a_lease_that_can_t_be_given_back_fails_nobody(
    api: Api, folder: FactFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("cluster_lease", of_run(folder), capsys)
    module = importlib.import_module(f"{MODULES}.cluster_lease")
    said = []
    monkeypatch.setattr(module.AnsibleModule, "warn", lambda self, text: said.append(text))

    def away(*_arguments: str, **_options: typing.Any) -> None:
        raise module.ApiError(0, "Unreachable", "no answer", "GET")

    api.dated = away  # type: ignore[assignment, method-assign]
    code, _result = run("cluster_lease", of_run(folder, state="released"), capsys)
    assert (code, ["900 s" in line for line in said]) == (0, [True])
