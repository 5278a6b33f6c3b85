# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab waits for node feature discovery, and says which worker it has not labelled; nothing else in the lab sets a
label of it."""

from __future__ import annotations

import pathlib
import types
import typing

import pytest

from dev.steps import ROOT, StepError
from lab import description, feature_discovery, objects
from lab.feature_discovery import LABEL

WORKERS = description.read().workers


class Labels:
    def __init__(self, names: typing.Sequence[str]) -> None:
        self.names = names

    def to_dict(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "true")


def cluster(monkeypatch: pytest.MonkeyPatch, labelled: typing.Collection[str]) -> typing.Any:
    """An authority whose API server has the workers and a stranger, some of them with the label."""
    names = [*(worker.name for worker in WORKERS), "simulated-0001"]
    items = [
        types.SimpleNamespace(
            metadata=types.SimpleNamespace(name=name, labels=Labels([LABEL] if name in labelled else []))
        )
        for name in names
    ]
    nodes = types.SimpleNamespace(get=lambda: types.SimpleNamespace(items=items))
    monkeypatch.setattr(
        objects,
        "client",
        lambda path: types.SimpleNamespace(resources=types.SimpleNamespace(get=lambda **_kind: nodes)),
    )
    monkeypatch.setattr(feature_discovery, "LABEL_SECONDS", 0)
    return types.SimpleNamespace(path=pathlib.Path)


@pytest.mark.parametrize(
    ("labelled", "there", "wrong"),
    [
        (("worker-1", "worker-2"), True, ""),
        (("worker-1",), True, "worker-2"),
        ((), True, "worker-1, worker-2"),
        (("simulated-0001",), False, ""),
        (("worker-2", "simulated-0001"), False, "worker-2"),
    ],
)
def test_who_has_no_label_is_named(
    monkeypatch: pytest.MonkeyPatch, labelled: tuple[str, ...], there: bool, wrong: str
) -> None:
    authority = cluster(monkeypatch, labelled)
    if not wrong:
        feature_discovery.await_label(authority, WORKERS, there)
        return
    with pytest.raises(StepError) as error:
        feature_discovery.await_label(authority, WORKERS, there)
    assert str(error.value).startswith(f"{wrong}: ")


def test_the_lab_sets_no_label_of_it() -> None:
    """Its name is in one file of the lab, which waits for it and gives it to a policy's selector."""
    told = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "lab").rglob("*.py"))
        if "feature.node.kubernetes.io" in path.read_text()
    ]
    assert told == ["lab/feature_discovery.py"]
