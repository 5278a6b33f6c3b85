# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of a program of nccl-tests or rccl-tests. Sizes in bytes, times in microseconds (us), bandwidths in
gigabytes per second (GB/s, decimal).
"""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class NcclTestRank:
    """A rank, as the test lists it before it begins.

    :ivar rank: number in the whole test
    :ivar group: group of NCCL_TESTS_SPLIT; 0 without one, and for versions that do not print it
    :ivar gpu: CUDA or HIP device of the process
    :ivar bus_id: PCI bus id of the GPU, as printed: 0000:1b:00 or 0x1b
    """

    rank: int
    group: int
    pid: int
    host: str
    gpu: int
    bus_id: str
    model: str


@dataclasses.dataclass(frozen=True)
class NcclTestFigure:
    """The time and the bandwidths of a test for one message size, in place or out of place.

    :ivar time_us: time of one collective; with option -C the CPU time to start it
    :ivar algorithm_gbs: bytes divided by time
    :ivar bus_gbs: that value times the factor of the collective
    :ivar wrong: number of wrong values; None if they were not checked (N/A), or the version does not print the number
    :ivar largest_error: largest difference, which versions before 2.13 print instead
    :ivar p99_us: 99th percentile of the iteration time, of the slowest process; None without option -I
    """

    time_us: float
    algorithm_gbs: float
    bus_gbs: float
    wrong: typing.Optional[int] = None
    largest_error: typing.Optional[float] = None
    p99_us: typing.Optional[float] = None


@dataclasses.dataclass(frozen=True)
class NcclTestRow:
    """A row of the table that nccl-tests prints: the figures for one message size.

    :ivar count: number of elements
    :ivar type: type of an element
    :ivar operation: reduction operation; empty if the test has none
    :ivar root: root rank; None if the collective has none
    :ivar out_of_place: None if the test omits it
    :ivar in_place: None if the test omits it
    """

    size_bytes: int
    count: int
    type: str
    operation: str
    root: typing.Optional[int]
    out_of_place: typing.Optional[NcclTestFigure]
    in_place: typing.Optional[NcclTestFigure]

    @property
    def figures(self) -> tuple[NcclTestFigure, ...]:
        """Return the figures that the row has, out of place first."""
        return tuple(figure for figure in (self.out_of_place, self.in_place) if figure is not None)


@dataclasses.dataclass(frozen=True)
class NcclTestTransport:
    """The transport of a run, and whether the log proves it.

    :ivar proven: whether the log shows each channel of each rank of the test, and none of them uses TCP
    :ivar transports: transports of the logged channels: NET/IB/GDRDMA, NET/Socket, P2P/CUMEM, SHM/direct
    :ivar reasons: why the transport is not proven
    """

    proven: bool
    transports: tuple[str, ...]
    reasons: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class NcclTests:
    """One run of one test.

    :ivar collective: all_reduce, all_gather ...; empty where the version does not say (before 2.16.4)
    :ivar version: of nccl-tests; empty where it does not say
    :ivar library: release of NCCL that ran: 2.28.9; empty where it does not say
    :ivar ranks: that the test lists; it cuts off a long list itself
    :ivar announced: rows that it said it would make for one type, operation and root; None where it does not say
    :ivar cpu_time: its times are those of the CPU (option -C), and say nothing of the bandwidth
    :ivar rows: that are whole
    :ivar unfinished: sizes of the rows that were begun and not ended
    :ivar out_of_bounds: what its summary says; None where there is no summary, or two that differ
    :ivar average_bus_gbs: what its summary says; None where there is no summary, or two that differ
    :ivar concluded: its last line is there: that of the end, or, of a version without one, that of the average
    :ivar errors: lines that say what failed, 20 at most
    :ivar torn: rows whose figures are not whole or contradict each other
    :ivar lacks: why these are not the figures of a whole run; empty of a whole run
    :ivar transport: None where nobody judged it
    :ivar reduced_bytes: size of the largest message for which the memory of the GPUs is enough, where the program says
        that it reduced it; None where it does not
    """

    collective: str = ""
    version: str = ""
    library: str = ""
    ranks: tuple[NcclTestRank, ...] = ()
    announced: typing.Optional[int] = None
    cpu_time: bool = False
    rows: tuple[NcclTestRow, ...] = ()
    unfinished: tuple[int, ...] = ()
    out_of_bounds: typing.Optional[int] = None
    average_bus_gbs: typing.Optional[float] = None
    concluded: bool = False
    errors: tuple[str, ...] = ()
    torn: int = 0
    lacks: tuple[str, ...] = ()
    transport: typing.Optional[NcclTestTransport] = None
    reduced_bytes: typing.Optional[int] = None
