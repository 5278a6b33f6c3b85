# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts the checkout where Python finds it as ``ansible_collections.linerate.rdma``, and makes property tests
repeatable."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import tempfile
import typing

import pytest

from tests.unit.examples import register_profiles

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / "build" / "collections"

register_profiles()

sys.path.insert(0, str(COLLECTIONS))
if importlib.util.find_spec("ansible_collections.linerate.rdma") is None:
    raise pytest.UsageError(f"{COLLECTIONS} does not hold this checkout; run: python3 -m dev.setup")


@pytest.fixture(autouse=True)
def folders_locked_by_this_process(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[None]:
    """A keeper of a lock would run until the parent of pytest ends: until the end of a test, pytest keeps it itself."""
    from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import folder_lock

    files: list[int] = []
    monkeypatch.setattr(folder_lock, "_start_keeper", lambda file, _pid: files.append(os.dup(file)))
    yield
    for file in files:
        os.close(file)


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where the temporary folder of each test lies."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(autouse=True)
def own_temporary_folder(scratch: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Kubernetes client keeps there what an API server serves, by its address; a test's server may get the port of
    an earlier one's."""
    folder = tempfile.mkdtemp(dir=scratch)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)
