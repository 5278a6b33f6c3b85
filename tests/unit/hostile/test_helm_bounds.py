# SPDX-License-Identifier: GPL-3.0-or-later

"""What a repository of charts makes the program helm take: a program that stands for it says which limits it has."""

from __future__ import annotations

import pathlib
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorChart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import helm
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command

SAYS = """#!{python}
import json, os, resource, sys
names = ("HELM_CACHE_HOME", "HELM_REPOSITORY_CACHE", "HELM_CONTENT_CACHE")
said = {{name: os.environ.get(name) for name in names}}
sys.stdin.read()
while resource.getrlimit(resource.RLIMIT_FSIZE)[0] < 0:
    pass
for name in names:
    if said[name]:
        os.makedirs(said[name], exist_ok=True)
said["data"], said["file"] = (resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE))
print(json.dumps(said))
"""
GREEDY = """#!{python}
import os
try:
    bytearray({most})
except MemoryError:
    os.write(2, b"fatal error: runtime: out of memory")
    os._exit(2)
"""


def made(folder: pathlib.Path, text: str, **more: typing.Any) -> str:
    path = folder / "helm"
    path.write_text(text.format(python=sys.executable, **more), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def chart(reference: str = "c", repository: str = "") -> OperatorChart:
    return OperatorChart(reference, "1.0.0", "ops", "c", repository)


@pytest.mark.parametrize(
    ("of", "is_fetched"),
    [(chart(repository="https://charts.example"), True), (chart("oci://r.example/c"), True), (chart("added/c"), False)],
)
def test_helm_has_limits_and_leaves_nothing_that_it_fetched(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, of: OperatorChart, is_fetched: bool
) -> None:
    for name in helm._CACHES:
        monkeypatch.delenv(name, raising=False)
    said = helm.default_values(made(tmp_path, SAYS), of)
    assert (said["data"], said["file"]) == (1 << 30, 128 << 20)
    for name in helm._CACHES:
        assert bool(said[name]) is is_fetched
        assert not said[name] or not pathlib.Path(said[name]).exists()


def test_helm_that_takes_too_much_memory_is_an_error_of_its_chart(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm, "_BOUNDS", command.Bounds(256 << 20, 1 << 20))
    of = chart(repository="https://charts.example")
    with pytest.raises(helm.HelmError, match="out of memory") as refused:
        helm.render_chart(made(tmp_path, GREEDY, most=1 << 29), of, {})
    assert "Helm may use at most 256 MiB of memory" in refused.value.remedy and "charts.example" in refused.value.remedy
