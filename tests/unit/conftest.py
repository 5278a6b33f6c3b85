# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts the checkout where Python finds it as ``ansible_collections.linerate.rdma``, and makes property tests repeatable."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
import tempfile

import hypothesis
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / "build" / "collections"

# a slow machine is no failure; the same examples on each run, so that a red run can be looked at
hypothesis.settings.register_profile("linerate", deadline=None, derandomize=True, database=None, max_examples=40)
# 'make test-all': --hypothesis-profile thorough
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("linerate"), max_examples=400)
hypothesis.settings.load_profile("linerate")

sys.path.insert(0, str(COLLECTIONS))
if importlib.util.find_spec("ansible_collections.linerate.rdma") is None:
    raise pytest.UsageError(f"{COLLECTIONS} does not hold this checkout; run: python3 -m dev.setup")


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
    """The Kubernetes client keeps there what an API server serves, by its address; a test's server may get the port of an earlier one's."""
    folder = tempfile.mkdtemp(dir=scratch)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)
