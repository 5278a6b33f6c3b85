# SPDX-License-Identifier: GPL-3.0-or-later

"""Healthy facts that no fleet of fleet.py has: of a site with a mirror, whose nodes were reset and whose runs are kept;
and what a teardown leaves of it."""

from __future__ import annotations

import dataclasses
import functools
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import (
    SOURCES,
    OfNodesThatHaveIt,
    OfRun,
    Source,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown import check as teardown
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts as TeardownFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.mirror import MirrorAnswer, MirrorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.controller import (
    ControllerFacts,
    HelmFacts,
    NodeRoom,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ObservedText, Roll
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeOutcome,
    NodeStep,
    RollPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts, SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import (
    BandwidthFacts,
    Earlier,
    EarlierPair,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    CollectivesFacts,
    EarlierCollectives,
    EarlierStep,
    LatencyFigures,
    StepFigures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import LeftArguments
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import ObservedSettings
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OperatorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import ArchiveFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.collectives import CollectivesRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.tests.unit.collectives_world import COLLECTIVES, INSIDE, NcclApi, functions_of
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import Clock

from .fleet import Fleet, Shape, cluster_of, fabrics_of, healthy

SHAPE = Shape("2 nodes of 2 HCAs, of a site with a mirror", 2, 2, functions=1)
MIRROR = "mirror.example:5000"
NODE, OTHER = SHAPE.names
Hints = typing.Mapping[Source, typing.Any]


def _source(stage: str, field: str) -> Source:
    return SOURCES[stage][field]


@functools.cache
def site() -> tuple[Fleet, Hints]:
    """The fleet, and the types of the facts that only it has."""
    whole = healthy(SHAPE)
    intent = parse_intent(
        fabrics_of(SHAPE),
        [],
        {**cluster_of(SHAPE), "mirror": {"*": MIRROR}, "collectives": {**COLLECTIVES, "fabric": "compute"}},
    )
    more = {source: value for source, value in _of_site(whole, intent).items() if source not in whole.facts}
    hints = {
        source: typing.get_type_hints(TABLE[stage][0])[field]
        for stage in TABLE
        for field, source in SOURCES[stage].items()
        if source in more
    }
    assert set(hints) == set(more)
    return Fleet(SHAPE, intent, {**whole.facts, **more}), hints


def _of_site(whole: Fleet, intent: Intent) -> dict[Source, typing.Any]:
    hcas, measured = whole.facts[_source("platform", "nodes")], whole.facts[_source("bandwidth", "bandwidth")]
    wish = NodeDifference("BIOS", "SriovGlobalEnable", "Disabled", "Enabled")
    steps = (NodeStep(NODE, "reboot", (wish,), wave=1), NodeStep(OTHER, "nothing"))
    outcomes = (
        NodeOutcome(NODE, "done", did=("BIOS SriovGlobalEnable Enabled", "reset by its BMC"), seconds=300.0),
        NodeOutcome(OTHER, "nothing"),
    )
    images = [
        MirrorAnswer(
            image.partition("/")[2], image, ("pods of fabric compute",), (f"skopeo copy docker://{image}",), "there"
        )
        for image in dict.fromkeys(fabric.pods.image for fabric in intent.fabrics)
    ]
    wanted = intent.cluster.collectives
    assert wanted is not None
    place = wanted.image
    images.append(
        MirrorAnswer(
            place.partition("/")[2], place, ("pods of stage collectives",), (f"skopeo copy docker://{place}",), "there"
        )
    )
    kept = [
        EarlierPair(
            fabric=pair.fabric,
            rail=pair.rail,
            client=pair.client,
            server=pair.server,
            figures=(pair.average_gbps or 0.0,) * 3,
            server_rail=pair.server_rail,
            places=(0, 1, 2),
        )
        for pair in measured.pairs
    ]
    rights, helm = RightsFacts(40), HelmFacts("helm", "3.18.4")
    room = tuple(NodeRoom(name, 256_000, 2 << 40, 500, 1 << 30, 1000, 1 << 30) for name in SHAPE.names)
    asking = ("operators", "network", "virtual_functions", "host", "bandwidth")
    return {
        OfRun("by_pods"): (),
        _source("validate", "controller"): ControllerFacts(
            "python3.11", asking, "32.0.1", "~/.kube/config", True, "v1.33.1", rights=rights, helm=helm, room=room
        ),
        _source("validate", "archive"): ArchiveFacts("/srv/reports"),
        _source("platform", "roll_plan"): RollPlan(steps, limit="rdma_cluster.drain"),
        _source("platform", "rolled"): outcomes,
        _source("platform", "roll_error"): "",
        OfNodesThatHaveIt("hcas_before_reset", no_hcas=True): {
            NODE: dataclasses.replace(hcas[NODE].value, boot=f"boot-before-{NODE}")
        },
        _source("operators", "mirror"): MirrorFacts(tuple(images)),
        _source("collectives", "collectives"): _collectives(intent),
        _source("collectives", "earlier"): EarlierCollectives(
            ("run-1", "run-2", "run-3"), (), (EarlierStep("all_reduce", "one node", 1, (INSIDE,) * 3),)
        ),
        _source("compare", "collectives"): (
            StepFigures("compute", "all_reduce", "all", len(SHAPE.names), 1, 90.0, 90.0, 90.0),
        ),
        _source("compare", "latencies"): (LatencyFigures("compute", "all_reduce", 4, 18.0, 20.0, 22.0, 30.0),),
        _source("bandwidth", "earlier"): Earlier(("run-1", "run-2", "run-3"), (), tuple(kept)),
    }


def _collectives(intent: Intent) -> CollectivesFacts:
    """Return what the stage has found, as pods that are played show it."""
    wanted = intent.cluster.collectives
    assert wanted is not None
    api = NcclApi(SHAPE.names)
    of_node = {function: rail for rail, (_vf, function, _device) in enumerate(functions_of(0))}
    rails = {"compute": dict.fromkeys(SHAPE.names, of_node)}
    plan = Plan(intent.fabrics[:1], intent.cluster, SHAPE.names, rails, parallel=2, pod_seconds=60.0)
    pairs = tuple(PairResult("compute", NODE, OTHER, 5, average_gbps=390.0, rail=rail) for rail in range(SHAPE.rails))
    seen = Facts(SHAPE.names, bandwidth=BandwidthFacts((), pairs))
    return CollectivesRun(
        typing.cast(Cluster, api), plan, wanted, Clock(), lambda seconds: None, lambda line: None, seen
    ).run()


@functools.cache
def taken_back() -> tuple[Fleet, Hints]:
    """What a teardown with MachineConfigs leaves, and the types of its facts."""
    names = SHAPE.names
    cluster = {**cluster_of(SHAPE), "host": {"memlock": {"by": "machine_config", "limit_gib": 8}}}
    intent = parse_intent(fabrics_of(SHAPE), [], cluster)
    values: dict[str, typing.Any] = {
        "nodes": names,
        "removed": (
            AppliedObject("SriovNetworkNodePolicy", "compute", "sriov-network-operator", "compute", "deleted"),
        ),
        "stays": (),
        "left": OperatorsSeen(),
        "sync": SyncFacts(
            True, False, 9.0, tuple(SyncNode("compute", name, "ready", "no virtual function") for name in names)
        ),
        "operators": OperatorFacts((), (), (), ()),
        "rolls": (Roll("worker", 1, "rendered-worker-b", 2, 2),),
        "roll_error": "",
        "hosts_unread": (),
        "drop_ins": dict.fromkeys(names, ObservedText("absent")),
        "kernel_arguments": dict.fromkeys(names, LeftArguments(())),
        "kernel_settings": dict.fromkeys(names, ObservedSettings({"changes": []})),
        "by_pods": (),
        "check_mode": False,
    }
    hints, sources = typing.get_type_hints(TeardownFacts), SOURCES["teardown"]
    assert set(values) == set(sources)
    facts = {sources[field]: value for field, value in values.items()}
    return Fleet(SHAPE, intent, facts), {source: hints[field] for field, source in sources.items()}


def judge_teardown(fleet: Fleet, facts: typing.Mapping[Source, typing.Any]) -> tuple[Finding, ...]:
    """Return the findings of a teardown that has taken the operator back as well."""
    seen = {field: facts[source] for field, source in SOURCES["teardown"].items() if source in facts}
    return teardown.check(fleet.intent, TeardownFacts(operator_removed=True, **seen))
