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
    :ivar pid: process id
    :ivar host: host name of the process
    :ivar gpu: CUDA or HIP device of the process
    :ivar bus_id: PCI bus id of the GPU, as printed: 0000:1b:00 or 0x1b
    :ivar model: model of the GPU
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
    :ivar algorithm_gbs: algorithm bandwidth: message size divided by time
    :ivar bus_gbs: bus bandwidth: algorithm bandwidth times a factor that depends on the collective and the number of
        ranks
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
    """A line of the table that nccl-tests prints: the figures for one message size.

    :ivar size_bytes: message size in bytes
    :ivar count: number of elements
    :ivar type: type of an element
    :ivar operation: reduction operation; empty if the test has none
    :ivar root: root rank; None if the collective has none
    :ivar out_of_place: figures with separate buffers for input and output; None if the test omits them
    :ivar in_place: figures with one buffer for input and output; None if the test omits them
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
        """Return the figures of this message size that the test measured, out of place first."""
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
    """The parsed output of one run of a program of nccl-tests or rccl-tests.

    :ivar collective: all_reduce, all_gather ...; empty if the version does not print it (before 2.16.4)
    :ivar version: version of nccl-tests; empty if not printed
    :ivar library: version of NCCL, such as 2.28.9; empty if not printed
    :ivar ranks: listed ranks; the program truncates a long list
    :ivar announced: number of table lines that the program announced for one type, operation and root; None if not
        printed
    :ivar cpu_time: whether the times are CPU times (option -C), which show no bandwidth
    :ivar rows: complete lines of the table, one for each message size
    :ivar unfinished: message sizes in bytes of table lines that were begun and not completed
    :ivar out_of_bounds: number of wrong values in the summary; None without a summary, or if two summaries differ
    :ivar average_bus_gbs: average bus bandwidth in the summary, in GB/s; None without a summary, or if two summaries
        differ
    :ivar concluded: whether the last line of the program is present
    :ivar errors: lines that report an error, 20 at most
    :ivar torn: number of table lines that are incomplete or whose values contradict each other
    :ivar lacks: reasons why the run is incomplete; empty for a complete run
    :ivar transport: transport that the NCCL log of the run proves; None if no log was judged
    :ivar reduced_bytes: largest message size for which the GPUs have enough memory, in bytes, if the program reports
        that it reduced the size; None otherwise
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
