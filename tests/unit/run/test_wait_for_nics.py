# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait for NVIDIA's NIC configuration operator ends when cards have what they must, or have failed for a while, and
says why. The server is played."""

from __future__ import annotations

import types
import typing
import weakref

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import NicState
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nic_configuration_operator import nic_state
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators import wait_for_nics as module
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.wait_for_nics import (
    GRACE_SECONDS,
    wait_for_nics,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource

TEMPLATE = {"numVfs": 8, "linkType": "Infiniband"}


class Operator(FakeApi):
    """An operator that goes on by the pauses of who waits.

    :ivar story: what it says of the card after each pause; the last holds on
    """

    def __init__(self, *story: typing.Optional[Resource]) -> None:
        super().__init__()
        self.now, self.story = 0.0, list(story)
        self.serve("NicDevice", [])
        self.tell()

    def tell(self) -> None:
        said = self.story.pop(0) if len(self.story) > 1 else self.story[0]
        if said is not None:
            self.put("NicDevice", said)

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.tell()

    def wait(self, limit: float = 3600.0) -> dict[str, str]:
        return wait_for_nics(self.client(self.url), {"card": TEMPLATE}, limit, lambda: self.now, self.pause)


def card(reason: str, generation: int = 2, message: str = "", template: typing.Optional[Resource] = None) -> Resource:
    condition = {
        "type": "ConfigUpdateInProgress",
        "reason": reason,
        "status": "True",
        "observedGeneration": generation,
        "message": message,
    }
    return {
        "metadata": {"name": "card", "namespace": "nic", "generation": 2},
        "spec": {"configuration": {"template": TEMPLATE if template is None else template}},
        "status": {"node": "worker-1", "ports": [{"pci": "0000:3c:00.0"}], "conditions": [condition]},
    }


@pytest.fixture
def play() -> typing.Iterator[typing.Callable[..., Operator]]:
    made: list[Operator] = []

    def begin(*story: typing.Optional[Resource]) -> Operator:
        made.append(Operator(*story))
        made[-1].start()
        return made[-1]

    yield begin
    for one in made:
        one.stop()


Play = typing.Callable[..., Operator]


def test_through_after_a_reboot(play: Play) -> None:
    old = card("UpdateSuccessful", generation=1, template={"numVfs": 4})
    api = play(
        old,
        card("UpdateSuccessful", generation=1),
        card("UpdateStarted"),
        card("PendingReboot"),
        card("UpdateSuccessful"),
    )
    assert api.wait() == {} and api.now == 20.0


def test_a_failure_that_lasts_ends_the_wait_with_its_cause(play: Play) -> None:
    api = play(card("UpdateStarted"), card("IncorrectSpec", message="no such link"))
    left = api.wait()
    assert "IncorrectSpec (no such link)" in left["card"] and GRACE_SECONDS <= api.now < 2 * GRACE_SECONDS


def test_a_failure_that_the_operator_gets_over(play: Play) -> None:
    assert play(card("NonVolatileConfigUpdateFailed"), card("UpdateStarted"), card("UpdateSuccessful")).wait() == {}


def test_card_of_a_tenant_with_the_name_of_another_one_does_not_count() -> None:
    """A user with rights in a namespace may create a NicDevice there, but not write its status."""
    theirs = {**card("UpdateSuccessful", template={}), "status": {}}
    theirs["metadata"]["namespace"] = "team-x"
    for items in ([card("UpdateSuccessful"), theirs], [theirs, card("UpdateSuccessful")]):
        api = types.SimpleNamespace(pages=lambda _kind, items=items: iter(items))
        assert wait_for_nics(typing.cast(Cluster, api), {"card": TEMPLATE}, 0.0, lambda: 0.0, lambda _s: None) == {}


def test_one_that_never_ends(play: Play) -> None:
    api = play(card("PendingReboot"))
    assert "PendingReboot" in api.wait(limit=600)["card"] and api.now >= 600


def test_no_template_and_no_card(play: Play) -> None:
    assert "node_selector" in play(card("UpdateSuccessful", template={})).wait()["card"]
    assert "the NicDevice does not exist" in play(None).wait(limit=30)["card"]
    assert "the NicDevice does not exist" in play({**card("UpdateSuccessful"), "status": "x"}).wait(limit=30)["card"]


def test_the_api_server_is_away_while_its_node_reboots(play: Play) -> None:
    api = play(card("PendingReboot"))
    cluster = api.client(api.url)
    api.stop()

    def back(seconds: float) -> None:
        api.now += seconds
        api.story = [card("UpdateSuccessful")]
        api.tell()
        api.start()

    assert wait_for_nics(cluster, {"card": TEMPLATE}, 600, lambda: api.now, back) == {}
    api.stop()
    with pytest.raises(ApiError):
        wait_for_nics(cluster, {"card": TEMPLATE}, 0, lambda: api.now, api.pause)


def test_nothing_wanted_is_nothing_asked(play: Play) -> None:
    api = play(None)
    assert wait_for_nics(api.client(api.url), {}, 600, lambda: api.now, api.pause) == {} and not api.requests


def test_nothing_is_kept_of_cards_that_are_not_waited_for(
    play: typing.Callable[..., Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon of the operator may make any number of them, each with a template of a megabyte."""
    operator, read = play(card("UpdateSuccessful")), []
    for number in range(20):
        operator.put(
            "NicDevice", {**card("UpdateSuccessful", template={"a": "x"}), "metadata": {"name": f"more-{number}"}}
        )
    kept = typing.cast(list[weakref.ref[NicState]], [])

    def noted(item: Resource) -> NicState:
        read.append(item["metadata"]["name"])
        state = nic_state(item)
        kept.append(weakref.ref(state))
        return state

    monkeypatch.setattr(module, "nic_state", noted)
    assert operator.wait() == {} and read == ["card"]
    assert [state() for state in kept] == [None]
