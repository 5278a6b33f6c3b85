# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/truth.md, made from the table: ``python -m tests.unit.truth.page > docs/truth.md``."""

from __future__ import annotations

import pathlib
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.row import TuningRow
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS as TUNING
from ansible_collections.linerate.rdma.tests.unit.truth.site_table import SITE, TEARDOWN
from ansible_collections.linerate.rdma.tests.unit.truth.table import GAPS, ROWS, Row

HEAD = """# What a green run does not depend on

Each fact that a run is judged by is broken in turn, in healthy fleets of several sizes: made wrong, larger, smaller, or
that of another node; unread; left out. The run must not be green then. Where it may be, a row of this page says why.
Each row is a test (`tests/unit/truth`): a fact that is noticed after all has no row, and one that is not noticed has
one. The page is made from these tests (`python -m tests.unit.truth.page > docs/truth.md`). `*` stands for any text.

Facts are named as they lie in the folder of the report, `facts/<kind>/<node>.json` (see [facts](facts.md)); `(PF)`,
`(leaf)` or `(node)` says of what.

"""
SILENT_HEAD = "## Facts that do not count\n\n"
WARNED_HEAD = "\n## Facts that are warned of\n\nA finding warns, and the gate stays open.\n\n"
GAPS_HEAD = "\n## Facts that should count, and do not yet\n\n"
COMPARED_HEAD = """
## Values of nodes that are only compared

Stage tuning has no value to require in these rows, because the right one depends on the machine or the recommendations
contradict each other. A node that differs from others of its kind is warned of; nodes that all have the same value are
not, whatever it is. `rdma_cluster.tuning.expected` requires a value of each node (see [intent](intent.md)). Models of
CPUs, GPUs and HCAs tell nodes of different kinds apart.

| row | what it is | recommendations |
|---|---|---|
"""
UNSEEN_HEAD = """
## What no fact shows

No stage can judge this, so a green run says nothing of it.

| what | why | what shows it |
|---|---|---|
"""
#: what no module observes: why, and what shows it by hand or by other means
UNSEEN: tuple[tuple[str, str, str], ...] = (
    (
        "Errors and drops of Ethernet switches; without observers, also those of the nodes' ports and PFC pauses",
        "Switches of Ethernet tell a node none of their counters. On RoCE stage bandwidth compares the error counters"
        " of each RDMA device in pods around each measurement, and those of the physical function only where an"
        " observer reads them; a virtual function counts no errors of the cable.",
        "`rdma_observers` (docs/observers.md). By hand: `ethtool -S DEVICE` on the nodes, and the switches.",
    ),
    (
        "Errors of InfiniBand links that come only under load, on links that still reach their floor",
        "Stage fabric reads all error counters twice, before data flows. Stage bandwidth reads the counters of the"
        " ports on a path only where its figure does not tell which link is slow.",
        "A soak of stage collectives (`soak_minutes`) compares the counters of the HCAs. By hand: `ibqueryerrors`"
        " after stage bandwidth.",
    ),
    (
        "The traffic of all but one virtual function of each physical function",
        "Stage bandwidth attaches one pod for each function. Stage virtual_functions judges the settings of the others,"
        " as far as the driver shows them.",
        "Jobs that use all of them, and stage training on their logs.",
    ),
    (
        "The configuration of Ethernet switches: PFC, ECN and buffers",
        "Only the nodes' side is read, and only where NVIDIA's driver packages show it (stage tuning).",
        "Stage collectives, which loads all rails at once; the configuration of the switches.",
    ),
    (
        "A network without RDMA (TCP) that is slow between all nodes alike",
        "CPUs limit TCP, so the rate of the links gives no floor: a pair is compared with the best pair of its network."
        " Below 5 Gb/s and 5 % of the rate of the links is a warning, where the node shows that rate.",
        "`line_rate.floor_gbps` of the fabric; `iperf3` between two nodes without pods.",
    ),
    (
        "Uplinks of Ethernet leaves that are down, and a fabric that is oversubscribed",
        "LLDP shows the nodes no uplink. Where the rounds use each link (`auto`, more than 16 nodes), one flow at"
        " a time leaves or enters a leaf, because two flows may share a link by the hash of the switch. One uplink of a"
        " leaf carries it at full rate.",
        "Stage collectives, whose groups load all uplinks at once; `show interfaces status` on the leaves.",
    ),
    (
        "On Ethernet, the links between the leaves of different rails",
        "Stage bandwidth never measures between rails there, because the host or its NIC may forward the data without a"
        " switch. If each rail has one leaf, no test uses a spine. Jobs send between rails in alltoall without PXN and"
        " in trees.",
        "`ping -I INTERFACE` in a pod to the address of another rail on another node; an alltoall with"
        " `NCCL_PXN_DISABLE=1`.",
    ),
    (
        "The traffic class of rping, and of the measurements from the host to the pod that name the layer of a suspect",
        "Some versions of rping have no option for it, and the tools of the host are not asked for one. With `roce` of"
        " the fabric, ib_write_bw in pods and stage collectives use its class.",
        "Stage bandwidth: figures and error counters of ib_write_bw; `bandwidth.packets` warns where it set no class.",
    ),
    (
        "Faults of GPUs, HCAs and PCIe that the kernel logged before the oldest message that it still has",
        "The kernel keeps some hundred KiB of messages, which a busy node fills in days. Stage tuning reads these.",
        "`journalctl -k` on the node; `dmesg | head -1` shows how far the messages of the kernel reach back.",
    ),
    (
        "The second link of a RoCE bond (LAG) that is up and carries little",
        "The queue pairs of a measurement may all take one link, so the floor counts one. Stage discover judges the"
        " state of each part of the bond, stage bandwidth its rate, and stage tuning its RoCE settings.",
        "`line_rate.floor_gbps` above the rate of one link, with several queue pairs (`pods.queue_pairs`).",
    ),
    (
        "The path between HCAs and GPU memory, where the intent has neither collectives nor training: ACS, an IOMMU"
        " that translates, a GPU behind another socket",
        "Stage bandwidth measures from the memory of the host. Stage host judges the kernel and the drivers of a node,"
        " and stage tuning warns of settings. The speed of the PCIe link of a GPU in another performance state than"
        " P0 is not judged, because the GPU may have lowered it.",
        "Stage collectives (`rdma_cluster.collectives`); stage training on the log of a job.",
    ),
    (
        "The state of GPUs of other vendors than NVIDIA: clock, ECC, and the links between them",
        "Only nvidia-smi is asked. Of GPUs of AMD and of Gaudi, stage tuning reads PCI: their number, link width and"
        " NUMA node, their path to the HCAs with ACS, and P2PDMA of the kernel.",
        "`rocm-smi` or `hl-smi` on the node; stage training on the log of a job.",
    ),
    (
        "Several RoCE rails in one subnet: in a pod with all of them, routes and ARP may send the data of one through"
        " another",
        "The pods of stage bandwidth have one rail each.",
        "Stage collectives, whose pods have all rails; stage training on the log of a job.",
    ),
    (
        "Addresses that whereabouts keeps from pods by an OverlappingRangeIPReservation alone",
        "The leases of its IPPools are compared with the pods, not these objects, which name one address each.",
        "`kubectl get overlappingrangeipreservations.whereabouts.cni.cncf.io -A`, compared with the pods.",
    ),
    (
        "Deadlocks of InfiniBand routing, adaptive routing that a switch lacks, and SHARP",
        "Of the routing, the forwarding tables and the counters of single tests are read, no service levels, no credit"
        " loops and no aggregation trees.",
        "Stage collectives under full load; `ibdiagnet -r` and the log of the subnet manager.",
    ),
    (
        "Nodes that are virtual machines on one host, with functions of one card",
        "The card passes their data from one function to the other. A pair of such nodes that is no faster than the"
        " port looks like any other pair, although no cable and no switch carried its data. Where it is faster, stage"
        " bandwidth calls the figure invalid.",
        "The placement of the virtual machines; pairs of nodes on different hosts.",
    ),
    (
        "The age of the log of a job in `training_logs`",
        "The log has no date. Host names of a job and names of its functions are often the same in each run, so the log"
        " of an earlier run fits the pods of today.",
        "Stage collectives, which runs a job of its own. By hand: `kubectl logs` of the pods while they run.",
    ),
    (
        "The Arm side of a BlueField in DPU mode: its OVS, its offload and its own firmware settings",
        "The nodes' side alone is read, on which the mode of the card shows.",
        "Stage bandwidth, which such a bridge slows down; `ovs-appctl dpctl/dump-flows type=offloaded` on the card.",
    ),
)
COLUMNS = "| kind | fact | when it is | on | why |\n|---|---|---|---|---|\n"


def page() -> str:
    silent, warned = ([row for row in (*ROWS, *SITE, *TEARDOWN) if row.warns is warns] for warns in (False, True))
    text = HEAD + SILENT_HEAD + _table(silent) + WARNED_HEAD + _table(warned)
    text += COMPARED_HEAD + "".join(map(_compared, list_compared()))
    text += UNSEEN_HEAD + "".join(f"| {' | '.join(row)} |\n" for row in UNSEEN)
    return text + GAPS_HEAD + _table(GAPS) if GAPS else text


def list_compared() -> tuple[TuningRow, ...]:
    """The rows of stage tuning of which no profile requires a value, and no other check does."""
    return tuple(row for row in TUNING if not row.training and not row.inference and row.check != "roce")


def _compared(row: TuningRow) -> str:
    return f"| `{row.name}` | {row.what} | {row.source or '-'} |\n"


def _table(rows: typing.Iterable[Row]) -> str:
    return COLUMNS + "".join(map(_row, rows))


def _row(row: Row) -> str:
    kinds, facts = (
        ", ".join(f"`{name}`" if name else "all of it" for name in names) for names in (row.kinds, row.facts)
    )
    return f"| {kinds} | {facts} | {', '.join(row.hows) or 'anything'} | {row.on or 'both'} | {row.why} |\n"


if __name__ == "__main__":
    print(page(), end="")
