# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's OLM: refused beside a Helm release, its catalog waited for with what says why not, and taken back in the
order in which it lets go."""

from __future__ import annotations

import pathlib
import types
import typing

import pytest

from dev.steps import StepError
from lab import controlplane, description, objects, olm
from lab.build import gotools

DESCRIPTION = description.read()
AUTHORITY: typing.Any = types.SimpleNamespace(path=pathlib.Path)


class Answer:
    """Of a list, or of an object."""

    def __init__(self, items: typing.Sequence[typing.Any] = (), **data: typing.Any) -> None:
        self.items, self.data = items, data

    def to_dict(self) -> dict[str, typing.Any]:
        return {"items": self.items, **self.data}


class Running:
    """Processes of which none has ended, and those that were stopped."""

    def __init__(self) -> None:
        self.checked: set[str] = set()
        self.stopped: list[str] = []

    def check(self, *names: str) -> None:
        self.checked |= {*names}

    def stop(self, *names: str) -> None:
        self.stopped += names

    def log(self, name: str) -> str:
        return f"last words of {name}"


def cluster(monkeypatch: pytest.MonkeyPatch, answers: typing.Mapping[str, Answer]) -> None:
    """An API server that gives the same answer for a kind each time."""

    def resource(api_version: str, kind: str) -> typing.Any:
        return types.SimpleNamespace(get=lambda **_where: answers.get(kind, Answer()), kind=kind, version=api_version)

    monkeypatch.setattr(
        objects, "client", lambda path: types.SimpleNamespace(resources=types.SimpleNamespace(get=resource))
    )
    monkeypatch.setattr(olm, "READY_SECONDS", 0)


def processes() -> typing.Any:
    return Running()


def test_it_is_refused_where_helm_has_installed_the_operator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    cluster(monkeypatch, {"Secret": Answer(["a release"])})
    with pytest.raises(StepError) as error:
        olm.start(DESCRIPTION, AUTHORITY, tmp_path, processes())
    assert "Helm" in str(error.value) and "teardown.yml" in error.value.remedy


@pytest.mark.parametrize(
    ("state", "there", "fine"),
    [("READY", True, True), ("READY", False, False), ("TRANSIENT_FAILURE", False, True), ("", True, False)],
)
def test_the_catalog_is_waited_for(monkeypatch: pytest.MonkeyPatch, state: str, there: bool, fine: bool) -> None:
    cluster(
        monkeypatch,
        {"CatalogSource": Answer(status={"connectionState": {"lastObservedState": state}} if state else None)},
    )
    running = processes()
    if fine:
        olm.await_catalog(AUTHORITY, running, there)
    else:
        with pytest.raises(StepError, match="last words of opm"):
            olm.await_catalog(AUTHORITY, running, there)
    # a catalog that is to be gone has ended
    assert running.checked == {*olm.TOOLS} - (set() if there else {"opm"})


def test_what_olm_made_goes_while_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    kinds = (
        "CatalogSource",
        "ClusterServiceVersion",
        "InstallPlan",
        "OperatorGroup",
        "Subscription",
        "SriovNetwork",
        "SriovOperatorConfig",
    )
    crds = [
        {"metadata": {"name": name}, "spec": {"group": "operators.coreos.com", "names": {"kind": name}}}
        for name in kinds
    ]
    cluster(monkeypatch, {"CustomResourceDefinition": Answer(crds)})
    running, order = processes(), typing.cast(list[str], [])
    monkeypatch.setattr(
        objects,
        "remove",
        lambda resource, names=None: order.append(
            resource.kind if not running.stopped else f"{resource.kind} after it"
        ),
    )
    monkeypatch.setattr(olm, "_definitions", lambda: crds)
    monkeypatch.setattr(controlplane, "apply_base", lambda *_lab: order.append("the lab's own kinds"))
    (tmp_path / "olm").mkdir()
    olm.stop(DESCRIPTION, AUTHORITY, tmp_path, running)
    # the operator's own while it runs, which is until its version goes; kinds that are not served are left out
    own = ["SriovNetwork", "SriovOperatorConfig"]
    made = [
        "Subscription",
        "ClusterServiceVersion",
        "InstallPlan",
        "CatalogSource",
        "OperatorGroup",
        "CustomResourceDefinition",
    ]
    assert order == [*own, *made, "Namespace after it", "the lab's own kinds"]
    assert running.stopped == [*olm.TOOLS] and not (tmp_path / "olm").exists()


def test_it_is_built_on_demand_alone() -> None:
    assert set(olm.TOOLS) <= set(gotools.TOOL)
    assert gotools.flags([gotools.TOOL["opm"]])[1:3] == ["-tags", "json1,containers_image_openpgp"]
    assert "-tags" not in gotools.flags([gotools.TOOL["kubelet"]])
