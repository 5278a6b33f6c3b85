# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts the checkout where Python finds it as ``ansible_collections.linerate.rdma``, and makes property tests repeatable."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import hypothesis
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / "build" / "collections"

# a slow machine is no failure; the same examples on each run, so that a red run can be looked at
hypothesis.settings.register_profile("linerate", deadline=None, derandomize=True, database=None, max_examples=60)
hypothesis.settings.load_profile("linerate")

sys.path.insert(0, str(COLLECTIONS))
if importlib.util.find_spec("ansible_collections.linerate.rdma") is None:
    raise pytest.UsageError(f"{COLLECTIONS} does not hold this checkout; run: python3 -m dev.setup")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The root of the checkout."""
    return ROOT
