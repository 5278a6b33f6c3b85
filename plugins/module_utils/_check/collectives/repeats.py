# SPDX-License-Identifier: GPL-3.0-or-later

"""Repeats of a slow group with one change each, to distinguish causes that the log and the facts of the nodes leave
open. Check id: ``collectives.repeat``.

Only changes that the log or the facts make plausible are tried, on one group: the smallest group that is slow although
its links are fast. The first repeat changes nothing. If its figure already differs, the other repeats would prove
nothing and are left out.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.collectives import CollectiveGroup, Repeat
from ..._model.base.phrases import format_clause
from ..._model.job.nccl import NcclChoice, NcclLog, NcclProcess
from ..._model.measurement.collectives import Variables
from ..._model.run.findings import UNKNOWN, WARN, Finding, build_pass
from .causes import LIMITS
from .floor import spell_gbs
from .network_causes import CHOICES, SIZES, has_few_queue_pairs, has_wrong_traffic_class
from .surroundings import Surroundings

#: repeats with a change, at most; one without comes before them
MOST_CHANGES = 6
#: by which a figure has to rise: sound runs of one group differ by less (docs/collectives.md, published runs)
MOVED = 0.1
#: other variables of an image that take a choice from NCCL
_OTHERS = ("NCCL_IB_ADAPTIVE_ROUTING", "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_PXN_DISABLE", "NCCL_P2P_PXN_LEVEL")


@dataclasses.dataclass(frozen=True)
class Change:
    """A change that a repetition of a slow group makes to find the cause.

    :ivar name: name of the change in the facts
    :ivar variables: environment variables that it sets; a value of None removes the variable
    :ivar why: conclusion if the repeat is faster
    :ivar remedy: remedy if the repeat is faster
    """

    name: str
    variables: Variables = ()
    why: str = ""
    remedy: str = ""

    @property
    def words(self) -> str:
        """Return the environment variables of the change as text, such as ``NCCL_ALGO=Ring``."""
        found = [f"{name}={value}" if value is not None else f"without {name}" for name, value in self.variables]
        return ", ".join(found) or "nothing changed"

    def is_in(self, log: NcclLog) -> bool:
        """Return whether the log shows the change: at least one process reports each variable with its value, and no
        process reports another value. NCCL logs only the variables that a process reads. A variable that the change
        removes may be reported by no process.
        """
        read = {name: {process.environment.get(name) for process in log.processes} for name, _value in self.variables}
        return all(value in read[name] and read[name] <= {value, None} for name, value in self.variables)


UNCHANGED = Change("unchanged")
#: name of the change after which channels go without GPUDirect RDMA
GPU_DIRECT_OFF = "gpu_direct_off"


@dataclasses.dataclass(frozen=True)
class SlowGroup:
    """The bandwidth of a group that is too slow although its links are fast, and the changes to try.

    :ivar bus_gbs: bus bandwidth of its figure, in GB/s
    :ivar changes: changes that are plausible
    """

    bus_gbs: float
    changes: tuple[Change, ...]


def find_changes(log: NcclLog, choice: typing.Optional[NcclChoice], seen: Surroundings) -> tuple[Change, ...]:
    """Return the changes to try on a slow group, which the log and the facts make plausible. The most likely change
    comes first, and there are at most ``MOST_CHANGES``.

    :param log: log that contains only the communicators of the run
    :param choice: algorithm, protocol and number of channels that NCCL chose for the message size of the figure; None
        if unknown
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    keys = {(rank.host, rank.pid) for item in log.communicators for rank in item.ranks}
    own = [process for process in log.processes if (process.host, process.pid) in keys]
    found = (
        *_list_setting_changes(own, seen),
        *_gpu_direct(log, own, seen),
        *_through_others(log),
        *_of_rdma(own, seen),
        *_list_channel_changes(log, choice),
    )
    return found[:MOST_CHANGES]


def _list_setting_changes(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Change]:
    names = {name for process in processes for name in process.environment} - seen.set_by_run
    known = [name for name in (*SIZES, *LIMITS, *CHOICES, *_OTHERS) if name in names]
    if known:
        why = "The settings of the image slow down the collective. NCCL's own choice is faster."
        remedy = f"Remove {', '.join(known)} from the image and from the jobs, then run stage collectives again."
        yield Change("settings", tuple((name, None) for name in known), why, remedy)


def _gpu_direct(log: NcclLog, processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Change]:
    routes = [route for item in log.communicators for rank in item.ranks for route in rank.routes]
    without = [route for route in routes if route.transport == "NET" and not route.gpu_direct]
    used = any(route.gpu_direct for route in routes)
    far = any("distance" in reason for process in processes for device in process.devices for reason in device.reasons)
    if without and far:
        why = "GPUDirect RDMA over the longer path is faster than the path through host memory."
        remedy = (
            "Set NCCL_NET_GDR_LEVEL=SYS in the jobs, or give each GPU an HCA beside it. Then run stage collectives"
            " again."
        )
        yield Change("gpu_direct_far", (("NCCL_NET_GDR_LEVEL", "SYS"),), why, remedy)
    if used and not without and seen.from_gpu_memory is not True:
        why = (
            "The path between GPU and HCA is slower than the path through host memory. Possible causes are ACS, the"
            " IOMMU or PCIe."
        )
        remedy = (
            "Follow the findings of stages tuning and host on acs, iommu and max_read_request. To measure this"
            " path, set bandwidth.layers: all of the fabric. Then run stages bandwidth and collectives again."
        )
        yield Change(GPU_DIRECT_OFF, (("NCCL_NET_GDR_LEVEL", "LOC"),), why, remedy)


def _through_others(log: NcclLog) -> typing.Iterator[Change]:
    if any(route.proxy is not None for item in log.communicators for rank in item.ranks for route in rank.routes):
        why = "The path through the GPU of another rank (PXN) is slower than the path through the HCA of each GPU."
        remedy = (
            "Set NCCL_PXN_DISABLE=1 in the jobs. Run nvidia-smi topo -m on the nodes: each GPU should have an"
            " HCA at PIX or PXB. Then run stage collectives again."
        )
        yield Change("pxn_off", (("NCCL_PXN_DISABLE", "1"),), why, remedy)


def _of_rdma(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Change]:
    if has_few_queue_pairs(processes, seen):
        why = "One queue pair does not fill the link, or several flows share one link between switches."
        remedy = "Set NCCL_IB_QPS_PER_CONNECTION=4 in the jobs and in the image, then run stage collectives again."
        yield Change("queue_pairs", (("NCCL_IB_QPS_PER_CONNECTION", "4"),), why, remedy)
    if seen.roce is not None and has_wrong_traffic_class(processes, seen):
        value = str(seen.roce.traffic_class)
        why = "The traffic class of the fabric keeps RDMA packets out of a queue that loses packets."
        yield Change(
            "traffic_class",
            (("NCCL_IB_TC", value),),
            why,
            f"Set NCCL_IB_TC={value} in the jobs and in the image, then run stage collectives again.",
        )
    if seen.roce is not None and seen.several_leaves and seen.adaptive_routing:
        why = (
            "Without this variable, NCCL does not request adaptive routing on RoCE, and flows share links between"
            " switches."
        )
        remedy = "Set NCCL_IB_ADAPTIVE_ROUTING=1 in the jobs and in the image, then run stage collectives again."
        yield Change("adaptive_routing", (("NCCL_IB_ADAPTIVE_ROUTING", "1"),), why, remedy)


def _list_channel_changes(log: NcclLog, choice: typing.Optional[NcclChoice]) -> typing.Iterator[Change]:
    there = min((rank.channels for item in log.communicators for rank in item.ranks if rank.channels), default=0)
    if choice is not None and choice.channels is not None and choice.channels < there:
        why = "NCCL uses only some of its channels for messages of this size."
        yield Change(
            "channels",
            (("NCCL_MIN_NCHANNELS", str(there)),),
            why,
            f"Set NCCL_MIN_NCHANNELS={there} in the jobs and in the image, then run stage collectives again.",
        )


class Repeats:
    """The repeats of one collective. It selects the group to repeat, returns its repeats one by one, and judges their
    results.

    :ivar told: by group, a text on the change that raised its figure
    """

    def __init__(self) -> None:
        self._slow: dict[CollectiveGroup, SlowGroup] = {}
        self._group: typing.Optional[CollectiveGroup] = None
        self._waiting: list[Change] = []
        self._before = 0.0
        self.told: dict[CollectiveGroup, str] = {}

    def note(self, group: CollectiveGroup, slow: typing.Optional[SlowGroup]) -> None:
        """Store the latest result of a group. A group that is not slow, or for which no change is plausible, is not
        repeated.

        :param group: group of nodes that was tested
        :param slow: bandwidth and possible changes of the group; None if it is not slow or its links are not proven
        """
        self._slow.pop(group, None)
        if slow is not None and slow.changes:
            self._slow[group] = slow

    def next(self) -> typing.Optional[tuple[Repeat, Change]]:
        """Return the next repeat and its change, or None if no repeats remain.

        A repeat is returned again until its result was passed to ``take``. Call this only after all groups were passed
        to ``note``.
        """
        if self._group is None and self._slow:
            self._group = min(self._slow, key=lambda group: len(group.nodes))
            slow = self._slow[self._group]
            self._before, self._waiting = slow.bus_gbs, [UNCHANGED, *slow.changes]
        if self._group is None or not self._waiting:
            return None
        return Repeat(self._group, self._waiting[0].name), self._waiting[0]

    def take(self, subject: str, bus_gbs: typing.Optional[float], lacks: str = "") -> Finding:
        """Return the finding on the repeat that ``next`` returned last: whether its change raised the bandwidth.

        If a repeat without a change gives another bandwidth, the remaining repeats are dropped, since they would prove
        nothing.

        :param subject: subject of the findings on the group
        :param bus_gbs: bus bandwidth of the repeat, in GB/s; None if none is proven
        :param lacks: reason why the repeat proves nothing; empty if it counts
        """
        change = self._waiting.pop(0)
        name, expected = f"{subject}, {change.words}", f"within {MOVED:.0%} of {spell_gbs(self._before)}"
        if bus_gbs is None or lacks:
            why = f"The repeated test cannot show a cause: {format_clause(lacks, 'it gave no verified bandwidth')}."
            return Finding(
                "collectives.repeat",
                name,
                UNKNOWN,
                "no valid bandwidth",
                expected,
                why,
                "Follow the remedies of the other findings of this group, then run stage collectives again.",
            )
        rise = bus_gbs / self._before - 1 if self._before else 0.0
        measured = f"{spell_gbs(bus_gbs)}, {rise:+.0%}"
        if change is UNCHANGED:
            if abs(rise) >= MOVED:
                self._waiting.clear()
                why = "The bandwidth varies without a change of settings, so tests with a change cannot show the cause."
                remedy = (
                    "Repair links that lose packets (ibqueryerrors, or ethtool -S), and cool GPUs that nvidia-smi -q"
                    " -d PERFORMANCE shows as throttled. Then run stage collectives again on an idle fabric."
                )
                return Finding("collectives.repeat", name, UNKNOWN, measured, expected, why, remedy)
            self._before = max(self._before, bus_gbs)
        elif rise >= MOVED and self._group is not None:
            self.told.setdefault(self._group, f"With {change.words}, the group reaches {measured}. {change.why}")
            return Finding("collectives.repeat", name, WARN, measured, expected, change.why, change.remedy)
        return build_pass("collectives.repeat", name, measured, expected)
