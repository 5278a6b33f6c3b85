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
