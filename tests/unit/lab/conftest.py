# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plane of lab.yml, for all tests of the lab."""

from __future__ import annotations

import pytest

from lab import description
from lab.fabric import topology
from lab.fabric.model import Fabrics


@pytest.fixture(scope="session")
def fabrics() -> Fabrics:
    """The fabric plane as lab.yml describes it."""
    return description.read().fabric_plane


@pytest.fixture(scope="session")
def topologies(fabrics: Fabrics) -> dict[str, topology.Topology]:
    return {fabric.name: topology.build(fabrics, fabric.name) for fabric in fabrics.fabrics}
