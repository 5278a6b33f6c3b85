# SPDX-License-Identifier: GPL-3.0-or-later

"""A node writes its own note of a roll: NodeRestriction lets a kubelet write the annotations of its Node, and cordon
it. Nothing but its own roll follows."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import Mark, NodeRoll
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.roll_mark import mark_node
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    REBOOT,
    Site,
    World,
    merged,
    of,
    only,
    playing,
    ready,
    states,
)

FORGER, HONEST = "worker-1", "worker-2"
BOOT = f"boot-{FORGER}"
SAYS = ", according to the annotation linerate.rdma/roll of the node"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def site(certificates: Certificates) -> typing.Iterator[Site]:
    with playing(certificates, World()) as found:
        only(found, HONEST)
        for name in NODES:
            found.world.add(f"job-{name}", name)
        yield found


def forge(site: Site, noted: Mark, **more: typing.Any) -> None:
    site.world.put("Node", merged(merged(site.world.seen(FORGER), mark_node(noted)), more))


def check(site: Site, done: NodeRoll) -> None:
    """Of others nothing was done but what differs on them."""
    theirs = [what for what in site.world.did if what.endswith(tuple(NODES)) or " worker-" in what]
    assert not [what for what in theirs if "worker-3" in what], "nothing differs on it"
    assert (
        site.resets().get(HONEST, 0) <= 1
        and site.resets().get("worker-3", 0) == 0
        and site.resets().get(FORGER, 0) <= 1
    )
    assert states(done)[HONEST] in ("done", "left")


@pytest.mark.parametrize(
    "noted",
    [
        Mark(boot=BOOT, reset=True),
        Mark(boot=BOOT, reset=True, cordoned=True),
        Mark(("0" * 16,) * 1000, BOOT, reset=True),
        Mark(boot=BOOT, reset=True, pool="master"),
        Mark(boot="another", reset=True),
        Mark(boot="another", reset=True, cordoned=True),
        Mark(cordoned=True),
        Mark(("0" * 16,), "another", True, True, "worker"),
    ],
)
def test_a_forged_note_reaches_no_other_node_and_the_plan_names_it(site: Site, noted: Mark) -> None:
    forge(site, noted)
    planned = site.plan()
    mine = [line for line in describe_plan(planned) if line.startswith(FORGER)]
    assert all(SAYS in line for line in mine)
    done = site.run()
    check(site, done)
    assert of(done, HONEST).state == "done"
    assert mine and site.resets() == {HONEST: 1}, "nothing differs on it"
    assert not site.world.cordoned(FORGER) and site.world.note(FORGER) is None


def test_one_that_claims_to_be_reset_and_stays_away_ends_the_roll_by_its_name(site: Site) -> None:
    """As each node can that does not come back."""
    forge(site, Mark(boot=BOOT, reset=True))
    site.world.put("Node", ready(site.world.seen(FORGER), False))
    done = site.run()
    check(site, done)
    assert (states(done)[FORGER], states(done)[HONEST]) == ("failed", "left")
    assert f"ended at {FORGER}" in of(done, HONEST).why


def test_one_that_claims_that_it_did_not_take_is_a_failure_of_its_own(site: Site) -> None:
    server = site.servers[FORGER]
    server.bios.answers[server.bios.path]["Attributes"][ATTRIBUTE] = "Disabled"
    differences = next(step.differences for step in site.plan().steps if step.node == FORGER)
    forge(site, Mark(tuple(one.identity for one in differences), "another", reset=True))
    done = site.run()
    check(site, done)
    assert (
        states(done)[FORGER] == "failed"
        and "the node did not apply these settings" in of(done, FORGER).why
        and site.resets() == {HONEST: 1}
    )
    assert "kubectl annotate node worker-1 linerate.rdma/roll-" in of(done, FORGER).remedy


def test_a_forged_note_does_not_go_beyond_the_budget(site: Site) -> None:
    """The reset that it claims passes the gate that each reset passes."""
    server = site.servers[FORGER]
    server.bios.answers[server.bios.path]["Attributes"][ATTRIBUTE] = "Disabled"
    forge(site, Mark(boot=BOOT, reset=True))
    roller = site.roller()
    planned = roller.plan(NODES, REBOOT)
    site.world.put("Node", ready(site.world.seen("worker-3"), False))
    done = roller.roll(planned)
    assert site.resets() == {} and "evict" not in json.dumps(site.world.did), site.world.did
    assert states(done)[FORGER] == "failed" and "no further node may be reset" in of(done, FORGER).why
