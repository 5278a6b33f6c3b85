# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the lab import it from the checkout; and the plane of lab.yml, for all of them."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from lab import description  # noqa: E402
from lab.fabric import topology  # noqa: E402
from lab.fabric.model import Fabrics  # noqa: E402


@pytest.fixture(scope="session")
def fabrics() -> Fabrics:
    """The fabric plane as lab.yml describes it."""
    return description.read().fabric_plane


@pytest.fixture(scope="session")
def topologies(fabrics: Fabrics) -> dict[str, topology.Topology]:
    return {fabric.name: topology.build(fabrics, fabric.name) for fabric in fabrics.fabrics}
