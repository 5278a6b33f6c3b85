# SPDX-License-Identifier: GPL-3.0-or-later

"""The source of each field of the class ``Facts`` of each stage: a fact of the nodes, a fact of the cluster, or data of
the run. _app/folder.py reads the facts from these sources (``read_facts``).
"""

from __future__ import annotations

import typing

from .._analysis.schedule.measurements import by_links
from .._model.intent.intent import Intent
from .._model.intent.profiles import carries_roce
from .._model.run.fact_kinds import HOST, IB_PORTS, WHOLE_FABRIC, list_kinds_from


class OfNodes(typing.NamedTuple):
    """A source that gives a fact of each node: its value, or the error of the node.

    :ivar kind: kind of the fact
    :ivar key: key in the value, if only this part is used; empty for the whole value
    :ivar listed_by: kind of the cluster fact that lists the nodes that were asked; all other nodes count as read, with
        an empty value. Empty if all nodes were asked
    """

    kind: str
    key: str = ""
    listed_by: str = ""


class OfListedNodes(typing.NamedTuple):
    """A source that gives a fact, as value or error, only of the nodes that a cluster fact lists. Without that cluster
    fact in this run, it gives the fact of no node.

    :ivar kind: kind of the fact of the nodes
    :ivar listed_by: kind of the cluster fact whose value is the list of node names
    """

    kind: str
    listed_by: str


class OfNodesThatHaveIt(typing.NamedTuple):
    """A source that gives the value of a fact of each node that has this fact.

    Nodes without it do not count as missing.

    :ivar kind: kind of the fact
    :ivar no_hcas: whether a fact counts as one without HCAs if it was not read because the facts of its kind are too
        large together; the check then reports its node as unknown. If False, the stage cannot be judged with such a
        fact
    """

    kind: str
    no_hcas: bool = False


class OfCluster(typing.NamedTuple):
    """A source that gives one key of a fact about the cluster. If this run has no such fact, the field of ``Facts``
    keeps its default.

    :ivar kind: kind of the fact
    :ivar key: name of the value in the fact
    """

    kind: str
    key: str


class Joined(typing.NamedTuple):
    """A source that gives one list from several facts about the cluster: the lists under the same key, concatenated.

    :ivar kinds: kinds of the facts
    :ivar key: key of the list in each fact
    :ivar whole: whether all of the facts must exist; if one is missing, the field of ``Facts`` keeps its default
    """

    kinds: tuple[str, ...]
    key: str
    whole: bool = False


class OfRun(typing.NamedTuple):
    """A source that gives a field of the data with which the run started (run.json).

    :ivar field: name of the field of ``RunStart``
    """

    field: str


Source = typing.Union[OfNodes, OfListedNodes, OfNodesThatHaveIt, OfCluster, Joined, OfRun]

#: shown by sysfs, procfs and PCI configuration space of a node, in one look
HCAS = OfNodes("hcas")
PLATFORM = OfNodes("platform")
#: shown by the tools of a node, where it has them
FIRMWARE = OfNodes("firmware")
CLOCKS = OfNodes("clock")
TUNING = OfNodes("tuning")
#: asked through the ports of a node
SUBNETS = OfNodes("subnets")
TOPOLOGIES = OfNodes("topologies", listed_by="vantage_points")
#: heard at the ports of a node, which takes half a minute: only where rounds are made of what it tells
NEIGHBOURS = OfListedNodes("neighbours", "listeners")
#: facts that several stages are judged by; a run observes them once
SHARED = tuple(
    TOPOLOGIES if kind == TOPOLOGIES.kind else OfNodes(kind) for kind in list_kinds_from(HOST, IB_PORTS, WHOLE_FABRIC)
)

NODES = OfRun("nodes")
#: those of them that are reached by observers: a remedy names the way to a node
BY_PODS = OfRun("by_pods")

#: stage: field of its Facts: where it comes from
SOURCES: dict[str, dict[str, Source]] = {
    "validate": {
        "nodes": NODES,
        "variables": OfRun("variables"),
        "images": OfRun("images"),
        "strict_images": OfRun("strict_images"),
        "mistyped": OfRun("mistyped"),
        "origins": OfRun("origins"),
        "inventory_error": OfRun("inventory_error"),
        "inventory_kind": OfRun("inventory_kind"),
        "inventory_where": OfRun("inventory_where"),
        "unchecked_hosts": OfRun("unchecked_hosts"),
        "by_pods": BY_PODS,
        "controller": OfCluster("controller", "controller"),
        # only where the archive of the report shall go somewhere
        "archive": OfCluster("report_archive", "archive"),
    },
    "discover": {"nodes": HCAS, "clocks": CLOCKS, "by_pods": BY_PODS},
    "fabric": {"nodes": HCAS, "subnets": SUBNETS, "topologies": TOPOLOGIES, "by_pods": BY_PODS},
    "reachability": {
        "nodes": HCAS,
        "subnets": SUBNETS,
        "topologies": TOPOLOGIES,
        "plan": OfNodesThatHaveIt("ping_plan"),
        "servers": OfNodes("ping_servers"),
        "pings": OfNodes("pings"),
        "stopped": OfNodes("ping_servers_stopped"),
        "by_pods": BY_PODS,
    },
    "platform": {
        "nodes": HCAS,
        "subnets": SUBNETS,
        "platforms": PLATFORM,
        # only of nodes whose BMC the inventory names
        "bioses": OfListedNodes("bios", "bmcs"),
        "firmware": FIRMWARE,
        "nics": OfCluster("nic_devices", "nics"),
        "by_pods": BY_PODS,
        # only where the nodes were to be brought to what is wanted
        "roll_plan": OfCluster("node_roll", "plan"),
        "rolled": OfCluster("node_roll", "outcomes"),
        "roll_error": OfCluster("node_roll", "error"),
        # what the stages before have judged
        "before": OfNodesThatHaveIt("hcas_before_reset", no_hcas=True),
    },
    "tuning": {
        "nodes": HCAS,
        "tunings": TUNING,
        "by_pods": BY_PODS,
        # only where something was to be set; of the nodes that no operator sets
        "set": OfCluster("node_tuning", "set"),
        "kernel_settings": OfListedNodes("kernel_settings", "kernel_settings_nodes"),
        "check_mode": OfRun("check_mode"),
    },
    "operators": {
        "nodes": NODES,
        "operators": OfCluster("operators", "operators"),
        "images": OfCluster("operators", "images"),
        # only where the intent has a mirror
        "mirror": OfCluster("mirror", "mirror"),
        "needed": OfCluster("needed_operators", "operators"),
        "rights": OfCluster("access", "rights"),
        # only where OLM was to install some
        "olm": OfCluster("olm", "olm"),
        "hcas": HCAS,
        "platforms": PLATFORM,
    },
    "network": {
        "nodes": NODES,
        "applied": OfCluster("applied", "applied"),
        "leftovers": OfCluster("applied", "leftovers"),
        "sync": OfCluster("sync", "sync"),
        "unmade": OfCluster("network_objects", "unmade"),
        "lint": OfCluster("network_objects", "lint"),
        "ipam": OfCluster("addresses", "addresses"),
        # with the networks of the hosts' own interfaces
        "platforms": PLATFORM,
        "hcas": HCAS,
        "check_mode": OfRun("check_mode"),
        "allowed": OfCluster("disruption", "allowed"),
        "plan": OfCluster("disruption", "plan"),
        "rolls": OfCluster("rolls", "rolls"),
        "kubelet": OfCluster("rolls", "kubelet"),
        "roll_error": OfCluster("roll_prepared", "error"),
    },
    "virtual_functions": {
        "nodes": OfNodes("hcas_after_network"),
        "subnets": SUBNETS,
        "operators": OfCluster("operators_after_network", "operators"),
        "pods": OfCluster("vf_pods", "pods"),
        "held": OfNodes("hcas_in_use"),
        "topologies": TOPOLOGIES,
    },
    "host": {
        "nodes": NODES,
        "proofs": OfCluster("memlock", "proofs"),
        "runtimes": OfNodes("containerd", key="limit"),
        "platforms": PLATFORM,
        "hcas": HCAS,
        # how a kernel is built, of which GPUDirect RDMA by DMA-BUF depends, and how the kubelet runs
        "tunings": TUNING,
        "policies": OfCluster("cluster_policy", "policies"),
        # by which nodes of a MachineConfigPool get their kernel arguments
        "applied": OfCluster("applied", "applied"),
        "plan": OfCluster("disruption", "plan"),
        "rolls": OfCluster("rolls", "rolls"),
        # only of nodes that this run rolled, since kernel and kubelet run with other settings then
        "tunings_after_roll": OfListedNodes("tuning_after_network", "rolled_nodes"),
        "platforms_after_roll": OfListedNodes("platform_after_network", "rolled_nodes"),
        "check_mode": OfRun("check_mode"),
        "by_pods": BY_PODS,
    },
    "bandwidth": {
        "nodes": NODES,
        "bandwidth": OfCluster("bandwidth", "bandwidth"),
        "hcas": HCAS,
        # of a run that has made virtual functions since it looked
        "functions": OfNodes("hcas_after_network"),
        "subnets": SUBNETS,
        "topologies": TOPOLOGIES,
        "neighbours": NEIGHBOURS,
        # only where runs are kept
        "earlier": OfCluster("bandwidth", "earlier"),
    },
    "collectives": {
        "nodes": NODES,
        # only where the intent asks for collectives
        "collectives": OfCluster("collectives", "collectives"),
        "bandwidth": OfCluster("bandwidth", "bandwidth"),
        "hcas": HCAS,
        "subnets": SUBNETS,
        "topologies": TOPOLOGIES,
        "tunings": TUNING,
        # only of an Ethernet fabric whose leaves the intent does not name
        "neighbours": NEIGHBOURS,
        # only where runs are kept
        "earlier": OfCluster("collectives", "earlier"),
    },
    # collectives: only where the intent asks for them
    "compare": {
        "bandwidth": OfCluster("bandwidth", "fabrics"),
        "collectives": OfCluster("collectives", "steps"),
        "latencies": OfCluster("collectives", "latencies"),
    },
    "training": {
        "log": OfCluster("nccl_log", "log"),
        "pods": OfCluster("job_pods", "pods"),
        "hcas": HCAS,
        "subnets": SUBNETS,
        "topologies": TOPOLOGIES,
        "tunings": TUNING,
    },
    "teardown": {
        "nodes": NODES,
        "removed": Joined(
            ("objects_removed", "maps_removed", "admission_removed", "olm_removed", "namespaces_removed"),
            "applied",
            whole=True,
        ),
        "stays": Joined(("olm_removed", "release_kept", "roll_prepared", "checks_resumed"), "stays"),
        "left": OfCluster("operators_left", "operators"),
        "sync": OfCluster("sync", "sync"),
        "operators": OfCluster("operators", "operators"),
        "rolls": OfCluster("rolls", "rolls"),
        "roll_error": OfCluster("roll_prepared", "error"),
        "hosts_unread": OfCluster("roll_prepared", "unread"),
        "drop_ins": OfNodes("drop_in", key="state"),
        "kernel_arguments": OfNodes("kernel_arguments_left", key="arguments"),
        "kernel_settings": OfNodes("kernel_settings"),
        "by_pods": BY_PODS,
        "check_mode": OfRun("check_mode"),
    },
}

#: stage: kinds whose values say under ``changes`` what was made, one line of text each
CHANGES: dict[str, tuple[Source, ...]] = {
    "platform": (OfCluster("node_roll", "changes"),),
    "tuning": (
        OfCluster("node_tuning", "changes"),
        OfNodes("kernel_settings", key="changes", listed_by="kernel_settings_nodes"),
    ),
    "operators": (
        OfCluster("operator_namespace", "changes"),
        OfCluster("operator_configurations", "changes"),
        OfCluster("olm", "changes"),
    ),
    "network": (
        OfCluster("disruption", "lines"),
        OfCluster("roll_prepared", "changes"),
        OfCluster("applied", "changes"),
    ),
    "virtual_functions": (OfCluster("vf_pods", "changes"),),
    "host": (OfNodes("containerd", key="changes"), OfCluster("cluster_policy", "changes")),
    "bandwidth": (OfCluster("bandwidth", "changes"),),
    "collectives": (OfCluster("collectives", "changes"),),
}


#: what a stage plans by, beside what it is judged by: where its HCAs are decides what it makes and whom it attaches,
#: and with which kernel arguments the nodes run, whether these need a MachineConfig
PLANNED_BY: dict[str, tuple[OfNodes, ...]] = {
    "network": (HCAS, SUBNETS, PLATFORM),
    "virtual_functions": (HCAS, SUBNETS),
}


def list_kinds(sources: typing.Iterable[Source]) -> set[str]:
    """Return the kinds of facts that these sources read, and those of the cluster facts that list their nodes.

    :param sources: sources of the fields of one stage, or of several
    """
    kinds: set[str] = set()
    for source in sources:
        if isinstance(source, (OfNodes, OfListedNodes, OfCluster, OfNodesThatHaveIt)):
            kinds.add(source.kind)
        if isinstance(source, (OfNodes, OfListedNodes)) and source.listed_by:
            kinds.add(source.listed_by)
        if isinstance(source, Joined):
            kinds.update(source.kinds)
    return kinds


def list_shared_sources(stage: str) -> tuple[OfNodes, ...]:
    """Return the sources of node facts that a stage shares with other stages. The facts must be read before the stage's
    own commands run on the nodes.

    :param stage: name of the stage
    """
    needed = (*SOURCES[stage].values(), *PLANNED_BY.get(stage, ()))
    return tuple(source for source in SHARED if source in needed)


def needs_lldp(stage: str, intent: typing.Callable[[], Intent], nodes: int) -> bool:
    """Return whether the stage needs the LLDP neighbors of the ports of Ethernet fabrics. It needs them if its rounds
    must use each link, or if its collectives run leaf by leaf on three or more nodes.

    :param stage: name of the stage
    :param intent: function that returns the loaded intent; it may raise, since stage validate may not have judged the
        intent yet
    :param nodes: number of nodes of the run
    """
    if NEIGHBOURS not in SOURCES[stage].values():
        return False
    asked = intent()
    ethernet = [fabric for fabric in asked.fabrics if carries_roce(fabric)]
    if stage == "collectives":
        wanted = asked.cluster.collectives
        if wanted is None or wanted.leaves or nodes < 3:
            return False
        return any(wanted.fabric in (None, fabric.name) for fabric in ethernet)
    return any(by_links(fabric, nodes) for fabric in ethernet)


def observes_nodes(stage: str) -> bool:
    """Return whether the stage reads facts from the nodes that only this stage uses.

    :param stage: name of the stage
    """
    return any(isinstance(source, OfNodes) and source not in SHARED for source in SOURCES[stage].values())


def observes_again(stage: str, intent: typing.Callable[[], Intent]) -> bool:
    """Return whether the stage may change the state of the nodes.

    Facts that this run has already read must then be read again.

    :param stage: name of the stage
    :param intent: function that returns the loaded intent; it may raise, since stage validate may not have judged the
        intent yet
    """
    return stage == "tuning" and intent().cluster.tuning.set
