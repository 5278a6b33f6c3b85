# SPDX-License-Identifier: GPL-3.0-or-later

"""What is judged with a memory is what is judged without one, whatever changes in between."""

from __future__ import annotations

import copy
import dataclasses
import typing

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness import readiness_cache, sriov
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.sriov import judge
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import ClusterState, Target
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import merge_kind_updates, take
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from tests.unit.run.test_sync import NODE, POD, POLICY, STATE, booted, changed

Resource = dict[str, typing.Any]
NAMES = ("kl-a", "kl-b", "kl-c")
TARGETS = (
    Target("storage", ("pol1",), "openshift.io/igbvf", "default/op-net", NAMES, 1),
    Target("plain", (), "", "default/op-net", NAMES[:2], 1, ("attachment",)),
)


def named(resource: Resource, name: str) -> Resource:
    new = copy.deepcopy(resource)
    new["metadata"]["name"] = name
    return new


NODES = [NODE, changed(NODE, status__allocatable={}), booted("0"), booted("1", "False"), booted("1", "Unknown")]
STATES = [
    STATE,
    changed(STATE, status__syncStatus="InProgress"),
    changed(STATE, status__syncStatus="Failed"),
    changed(STATE, spec={}),
]
STATES.append(changed(STATE, metadata__annotations={"sriovnetwork.openshift.io/desired-state": "Drain_Required"}))
NAME = st.sampled_from(NAMES)
CHANGES = st.one_of(
    st.builds(lambda item, name: KindUpdate("Node", "put", (named(item, name),)), st.sampled_from(NODES), NAME),
    st.builds(
        lambda item, name: KindUpdate("SriovNetworkNodeState", "put", (named(item, name),)),
        st.sampled_from(STATES),
        NAME,
    ),
    st.builds(lambda name: KindUpdate("Node", "drop", (named(NODE, name),)), NAME),
    st.builds(lambda name: KindUpdate("SriovNetworkNodeState", "drop", (named(STATE, name),)), NAME),
    st.sampled_from(
        [KindUpdate("SriovNetworkNodePolicy", "put", (POLICY,)), KindUpdate("SriovNetworkNodePolicy", "replace", ())]
    ),
    st.sampled_from(
        [KindUpdate("NetworkAttachmentDefinition", "replace", ()), KindUpdate("Node", "error", error="no answer")]
    ),
    st.sampled_from(
        [
            KindUpdate("PodDisruptionBudget", "error", error="forbidden"),
            KindUpdate("SriovNetworkPoolConfig", "replace", ()),
        ]
    ),
)


@given(st.lists(st.lists(CHANGES, max_size=4), max_size=6), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_with_a_memory_the_same_is_said_of_each_world(
    steps: typing.Sequence[typing.Sequence[KindUpdate]], drained: bool
) -> None:
    judges = readiness_cache.ReadinessCache(TARGETS)
    world = ClusterState()
    for step in [
        [
            KindUpdate("Node", "replace", tuple(named(NODE, name) for name in NAMES)),
            KindUpdate("SriovNetworkNodePolicy", "replace", (POLICY,)),
        ],
        *steps,
    ]:
        for change in merge_kind_updates(step):
            world = take(world, change)
        if drained:
            # what the loop adds by itself
            world = dataclasses.replace(
                world, pods={NAMES[0]: (POD,)}, logs={NAMES[1]: "busy"}, daemons=None if len(step) % 2 else {}
            )
        assert judges.judge(world) == judge(TARGETS, world)
        assert judges.judge(world) == judge(TARGETS, world)


@given(st.lists(CHANGES, max_size=12))
@settings(max_examples=examples(150), deadline=None)
def test_gathered_changes_make_the_same_world(news: typing.Sequence[KindUpdate]) -> None:
    one = other = ClusterState()
    for change in news:
        one = take(one, change)
    for change in merge_kind_updates(news):
        other = take(other, change)
    assert one == other
    assert len(list(merge_kind_updates(news))) <= len(news)


def test_each_field_of_a_world_is_one_of_nodes_or_one_that_they_share() -> None:
    fields = {field.name for field in dataclasses.fields(ClusterState)}
    assert fields == {*readiness_cache.OF_NODES, *readiness_cache.SHARED, *readiness_cache.SMALL}


def test_a_node_is_judged_anew_only_when_something_of_it_changed(monkeypatch: typing.Any) -> None:
    asked: list[str] = []
    real = sriov.judge_node

    def counted(target: Target, name: str, world: ClusterState, turns: typing.Any) -> typing.Any:
        asked.append(name)
        return real(target, name, world, turns)

    monkeypatch.setattr(readiness_cache, "judge_node", counted)
    judges, world = readiness_cache.ReadinessCache(TARGETS[:1]), ClusterState()
    for kind, item in (("Node", NODE), ("SriovNetworkNodeState", STATE)):
        world = take(world, KindUpdate(kind, "replace", tuple(named(item, name) for name in NAMES)))
    world = take(world, KindUpdate("SriovNetworkNodePolicy", "replace", (POLICY,)))
    judges.judge(world)
    assert asked == list(NAMES)
    judges.judge(take(world, KindUpdate("Node", "put", (named(booted("1"), "kl-b"),))))
    assert asked == [*NAMES, "kl-b"]
