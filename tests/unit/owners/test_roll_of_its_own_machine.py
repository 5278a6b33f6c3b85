# SPDX-License-Identifier: GPL-3.0-or-later

"""A roll of the node on which ansible-playbook runs: its reset would end the run, and leave the node cordoned."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import on_this_machine
from ansible_collections.linerate.rdma.tests.unit.roll_world import World, merged, node, playing, uuid_of


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Mine(World):
    """A cluster whose first node runs the roll."""

    def __init__(self) -> None:
        super().__init__()
        mine = on_this_machine(node("worker-1"))
        self.put("Node", merged(mine, {"status": {"nodeInfo": {"systemUUID": uuid_of("worker-1")}}}))


def test_own_machine_is_not_reset_and_the_others_are(certificates: Certificates) -> None:
    world = Mine()
    with playing(certificates, world) as site:
        told = "\n".join(describe_plan(site.plan()))
        assert "worker-1: left out: ansible-playbook runs on this node" in told, told
        done = site.run()
        (mine,) = [outcome for outcome in done.outcomes if outcome.node == "worker-1"]
        assert mine.state == "blocked" and "Run the playbook on a machine that is not reset" in mine.why
        assert site.resets() == {"worker-2": 1, "worker-3": 1}
        assert not world.cordoned("worker-1") and world.note("worker-1") is None
