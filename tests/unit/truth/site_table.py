# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of a site that has more, and a teardown, do not notice, and why that is no false green: rows as those of
table.py."""

from __future__ import annotations

from .table import BROKEN, LESS, NUMBER, OTHER, Row

_GONE = ("unread", "left out")
_OPERATORS = "Stage operators asks the API server itself."
_PENDING = "Stage bandwidth names a pod that finds no room."
_BESIDE = "It is told beside what is judged."
_PLANNED = "It tells what was to be done; what became of each node, and what the node shows now, is judged."
_COPIED = (
    "It is a copy of what stages discover and fabric have judged before the reset: what it lacks has closed their"
    " gates."
)
_PULLS = "It tells the reader what pulls the image, and how to put it there."
_TREND = "A trend is a warning before a floor is reached; the floors are judged by this run alone."
_COMPARED = "Stage collectives judges the figures; stage compare advises by them."
_PARSED = "The parser works it out of the same lines as what is judged."
_LISTED = "What carries the collection's label was listed and removed, kind by kind; what is not listed is not there."
_DEPLOYED = "Its Deployment is what runs it; what else stays is told by teardown.stays, or was removed by name."

_PORT = ("state", "physical_state", "link_layer", "width", "speed", "lid", "sm_lid", "guid", "pkeys*", "mtu")
_NETDEV = (
    "hardware_address",
    "mtu",
    "state",
    "port_guid",
    "subnet_prefix",
    "queue_pair",
    "port",
    "bond",
    "bridge",
    "uppers*",
    "speed_gbps",
    "supported_gbps",
    "partner_gbps",
)
_HCA = (
    "name",
    "rdma_device",
    "netdevs",
    "netdevs[]",
    "pci*",
    "node_description",
    "firmware",
    "board",
    "hca_type",
    "ports",
    "ports[]",
    "sriov",
    "sriov.*",
)
_MORE = ("physical_function", "vf_index", "administration*", "sriov_absence", "held", "unread")


def _under(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names)


SITE: tuple[Row, ...] = (
    Row(("run.by_pods",), ("",), "It says how the node is reached, for remedies.", BROKEN),
    Row(
        ("controller",), ("", "stages", "stages[]"), "It is told before a run begins. " + _OPERATORS, (*_GONE, "broken")
    ),
    Row(
        ("controller",),
        _under("", "python", "where", "named", "error", "remedy", "rights_error", "room_error"),
        "It explains what is absent, and nothing is.",
    ),
    Row(("controller",), ("room",), f"A folder of an older release has none. {_PENDING}", ("unread",)),
    Row(("controller",), ("room[]", "room[].node"), _PENDING, warns=True),
    Row(("controller",), _under("room[].", "cpu", "memory"), _PENDING, ("unread",), warns=True),
    Row(
        ("controller",),
        _under("room[].", "cpu", "memory", "cpu_kept", "memory_kept", "cpu_moving", "memory_moving"),
        "The measuring pods have room as well.",
        NUMBER,
    ),
    Row(("controller",), ("library", "server"), "It is a version, whatever its number.", BROKEN),
    Row(("controller",), ("rights.asked",), _BESIDE, NUMBER),
    Row(
        ("controller",),
        ("helm", "helm.binary", "helm.error"),
        "Stage operators fails where it needs Helm and has none.",
    ),
    Row(("controller",), ("helm.version",), "It is new enough.", BROKEN),
    Row(("report_archive.archive",), ("",), "Where the report can't go, the task that sends it says so.", _GONE),
    Row(("report_archive.archive",), ("place", "remedy"), _BESIDE),
    Row(
        ("node_roll.plan",),
        _under("", "at_once", "limit", "rolls", "most", "shape", "pauses")
        + _under(
            "steps[].",
            "action",
            "differences*",
            "phase",
            "pods",
            "lost",
            "blockers",
            "wave",
            "untaken",
            "pool",
            "reasons",
            "also",
            "notes",
        ),
        _PLANNED,
    ),
    Row(("node_roll.outcomes",), ("[].state",), "Nothing had to be done, or it was.", (*BROKEN, *OTHER)),
    Row(("node_roll.outcomes",), _under("[].", "why", "remedy", "did*", "seconds"), _BESIDE),
    Row(("node_roll.error",), ("",), "Plan and outcomes are there.", ("left out",)),
    Row(
        ("hcas_before_reset",),
        _under(
            "node.hcas(PF)",
            "",
            *_under(".", *_HCA, *_MORE),
            *_under(".netdevs[].", *_NETDEV),
            *_under(".ports[].", *_PORT),
        ),
        _COPIED,
    ),
    Row(
        ("hcas_before_reset",),
        ("node.boot",),
        "It is another boot than the present one; which machine that is, the present one tells.",
    ),
    Row(("hcas_before_reset",), ("node.hcas(PF).ports[].rate_gbps",), _COPIED, ("unread", *LESS)),
    Row(
        ("hcas_before_reset",),
        ("node.hcas(VF)*", "node.errors"),
        "Virtual functions are made anew after a reset, and stage virtual_functions judges them.",
    ),
    Row(("mirror",), _under("answers[].", "source", "needed_by*", "put*", "said", "by_system"), _PULLS),
    Row(
        ("collectives",),
        (
            "pods[].name",
            "pods[].cause",
            "runs[].seconds",
            "runs[].evidence",
            "runs[].command",
            "announced",
        ),
        _BESIDE,
    ),
    Row(("collectives",), ("pods[].hcas[].numa_node",), "It is told where a group is slow, and none is."),
    Row(
        ("collectives",),
        ("pods[].hcas[].physical",),
        "It names the device whose counters a soak reads; the intent of this site asks for no soak.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.collective",
            "runs[].figures.out_of_bounds",
        ),
        "The parser works out of it why a run is not whole, which is judged, or it is a version, or told by the"
        " command.",
        ("unread",),
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.version",
            "runs[].figures.library",
            "runs[].figures.announced",
            "runs[].figures.unfinished",
            "runs[].figures.average_bus_gbs",
            "runs[].figures.concluded",
            "runs[].figures.torn",
            "runs[].figures.transport",
        ),
        "The parser works out of it why a run is not whole, which is judged, or it is a version, or told by the"
        " command.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.ranks",
            "runs[].figures.ranks[]",
            "runs[].figures.ranks[].rank",
            "runs[].figures.ranks[].group",
            "runs[].figures.ranks[].gpu",
            "runs[].figures.ranks[].bus_id",
            "runs[].figures.ranks[].model",
        ),
        "The log tells who took part; by this list its part is found where there are several runs.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.ranks[].pid",
            "runs[].figures.ranks[].host",
        ),
        "The log tells who took part; by this list its part is found where there are several runs.",
        ("another's",),
    ),
    Row(
        ("collectives",),
        ("runs[].figures.rows[].out_of_place.p99_us", "runs[].figures.rows[].in_place.p99_us"),
        "It is printed of small messages alone, which this site does not run.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.rows[]",
            "runs[].figures.rows[].size_bytes",
            "runs[].figures.rows[].count",
            "runs[].figures.rows[].type",
            "runs[].figures.rows[].operation",
            "runs[].figures.rows[].root",
            "runs[].figures.rows[].out_of_place",
            "runs[].figures.rows[].out_of_place.time_us",
            "runs[].figures.rows[].out_of_place.algorithm_gbs",
            "runs[].figures.rows[].out_of_place.largest_error",
            "runs[].figures.rows[].in_place",
            "runs[].figures.rows[].in_place.time_us",
            "runs[].figures.rows[].in_place.algorithm_gbs",
            "runs[].figures.rows[].in_place.largest_error",
        ),
        "The fastest message counts, or a slow larger one; the parser refuses contradicting figures.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.rows[].out_of_place.bus_gbs",
            "runs[].figures.rows[].in_place.bus_gbs",
        ),
        "The fastest message counts, or a slow larger one; the parser refuses contradicting figures.",
        ("less",),
    ),
    Row(
        ("collectives",),
        (
            "runs[].figures.rows[].out_of_place.wrong",
            "runs[].figures.rows[].in_place.wrong",
        ),
        "The fastest message counts, or a slow larger one; the parser refuses contradicting figures.",
        ("unread",),
    ),
    Row(
        ("collectives",),
        ("runs[].log.shared.versions[]",),
        "It is told beside what is judged; a channel that is lost with a line is unknown.",
        ("broken",),
    ),
    Row(
        ("collectives",),
        (
            *_under(
                "runs[].log.shared.processes[].",
                "version",
                "network",
                "oob_interface",
                "oob_address",
                "dma_buf",
                "without_ib",
                "environment",
                *(
                    f"environment[NCCL_{name}]"
                    for name in (
                        "ALGO",
                        "DEBUG",
                        "DEBUG_FILE",
                        "DEBUG_SUBSYS",
                        "MNNVL_ENABLE",
                        "NVLS_ENABLE",
                        "SOCKET_IFNAME",
                        "TESTS_SPLIT",
                    )
                ),
                "choices",
                "mtus",
                "gid_indexes",
                "host",
                "pid",
            ),
            "runs[].log.shared.problems",
            "runs[].log.processes[].oob_address",
        ),
        "Channels show what was used; this tells why, where a group is slow.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].log.shared.processes[].devices",
            "runs[].log.shared.processes[].devices[]",
            *_under(
                "runs[].log.shared.processes[].devices[].",
                "index",
                "name",
                "port",
                "link",
                "rail",
                "gpu_direct",
                "reasons",
            ),
        ),
        "That a device is listed proves nothing; of a rank that sends nothing over the network.",
    ),
    Row(
        ("collectives",),
        (
            "runs[].log.communicators[].name",
            "runs[].log.communicators[].ranks[].gpu",
            "runs[].log.communicators[].ranks[].bus_id",
            *_under("runs[].log.rank_kinds[].", "trees", "rings", "rank", "host", "pid", "gpu", "bus_id"),
            *_under("runs[].log.shared.", "lines", "nccl_lines", "torn", "cut", "endpoints*", "more_endpoints"),
        ),
        "It is told beside what is judged; a channel that is lost with a line is unknown.",
    ),
    Row(("collectives",), ("runs[].log.communicators[].size", "runs[].log.rank_kinds[].channels"), _PARSED, ("less",)),
    Row(
        ("collectives",),
        (
            "runs[].log.rank_kinds[].point_to_point_channels",
            *_under(
                "runs[].log.rank_kinds[].routes(P2P).",
                "direction",
                "device",
                "gpu_direct",
                "connection",
                "proxy",
                "lines",
            ),
            "runs[].log.rank_kinds[].routes(NET)",
            *_under(
                "runs[].log.rank_kinds[].routes(NET).",
                "transport",
                "direction",
                "connection",
                "proxy",
                "channels",
                "channels[]",
                "lines",
            ),
        ),
        _PARSED,
    ),
    Row(("collectives",), ("runs[].log.rank_kinds[].nodes",), _PARSED, ("another's", "less", "unread")),
    Row(("collectives",), ("runs[].log.rank_kinds[].routes(P2P).via",), _PARSED, ("unread",)),
    Row(("collectives",), ("runs[].log.communicators[].ranks[].kind",), _PARSED, ("another's", "more", "less")),
    Row(
        ("collectives",),
        ("runs[].log.shared.processes[].files",),
        "A process is in one file, whatever its name.",
        ("broken",),
    ),
    Row(
        ("collectives",),
        ("runs[].log.shared.communicators",),
        "The communicators are beside what they share.",
        ("broken",),
    ),
    Row(("collectives",), ("runs[].errors*",), "They are of a soak, which this site does not run."),
    Row(("collectives",), ("leftovers",), "They are gone.", warns=True),
    Row(("bandwidth.earlier",), ("", "runs*", "pairs*"), _TREND),
    Row(("bandwidth.earlier",), ("unread",), _TREND, warns=True),
    Row(("collectives.earlier",), ("", "runs*", "steps*", "latencies*"), _TREND),
    Row(("collectives.earlier",), ("unread",), _TREND, warns=True),
    Row(("collectives.steps",), ("*",), _COMPARED),
    Row(("collectives.latencies",), ("*",), _COMPARED),
)

TEARDOWN: tuple[Row, ...] = (
    Row(
        ("run.nodes",),
        ("[]",),
        "The inventory is the user's word: a node that it does not name is none of the fleet.",
        ("left out",),
    ),
    Row(
        ("run.by_pods",),
        ("",),
        "It says how a node is reached, for remedies and for what can be removed there.",
        BROKEN,
    ),
    Row(
        ("objects_removed.applied",),
        _under(
            "(SriovNetworkNodePolicy)",
            "",
            *_under(".", "kind", "name", "namespace", "fabric", "refusal", "reason", "warnings"),
        ),
        _LISTED,
    ),
    Row(("objects_removed.applied",), ("(SriovNetworkNodePolicy).action",), "Absent is as good as deleted.", BROKEN),
    Row(("olm_removed.stays",), ("",), "What stays on purpose is told, and closes nothing.", ("left out",)),
    Row(("olm_removed.stays",), ("",), "What stays on purpose is told, and closes nothing.", BROKEN, warns=True),
    Row(
        ("operators_left.operators",),
        (
            *("olm", "job", "controllers", "configurations", "labelled", "made", "drivers", "hosts", "untrusted"),
            *("install", "leave", "versions", "left"),
        ),
        "What stays on purpose is told, and closes nothing.",
    ),
    Row(
        ("sync",),
        ("finished", "timed_out", "waited_seconds", *_under("nodes[].", "detail", "remedy", "matched", "allocatable")),
        _BESIDE,
    ),
    Row(
        ("operators",),
        _under(
            "",
            "crds",
            "configs",
            "nodes",
            "states",
            "daemon",
            "policies",
            "supported_nics",
            "discovery",
            "olm",
            "multus",
            "multus_pods",
            "attachments",
            "nic_policies",
            "troubles",
            "namespace",
            "says",
        ),
        _DEPLOYED,
    ),
    Row(("rolls",), ("[]",), "A pool from which nothing was taken has no roll.", ("left out",)),
    Row(("rolls",), _under("[].", "pool", "config", "seconds"), _BESIDE),
    Row(("rolls",), ("[].rolls",), "It rolled once at most.", LESS),
    Row(("rolls",), ("[].others",), "Each node of the inventory has come.", warns=True),
    Row(("roll_prepared.error",), ("",), "The pools have rolled, or their fact says why not.", ("left out",)),
    Row(("roll_prepared.unread",), ("",), "All were found; that nobody looked shows at the rolls.", ("left out",)),
)
